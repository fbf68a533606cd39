/* none.c - the device functions in a build without CUDA. */
#include "device.h"
#include "copy.h"
#include "hash.h"
#include "histogram.h"
#include "place.h"
#include "scan.h"
#include "sort.h"

int slu_device_count(int *n)
{
    *n = 0;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_name(int ordinal, char *name, size_t name_cap)
{
    (void)ordinal;
    if (name_cap)
        name[0] = '\0';
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_select(int ordinal)
{
    (void)ordinal;
    return SLU_DEVICE_NOT_BUILT;
}

const char *slu_device_error(int code)
{
    return code == 0 ? "no error" : "built without CUDA";
}

int slu_device_alloc(void **p, size_t n_byte)
{
    (void)n_byte;
    *p = NULL;
    return SLU_DEVICE_NOT_BUILT;
}

void slu_device_free(void *p)
{
    (void)p;
}

int slu_device_zero(void *p, size_t n_byte, void *stream)
{
    (void)p, (void)n_byte, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_put(void *device, const void *host, size_t n_byte, void *stream)
{
    (void)device, (void)host, (void)n_byte, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_get(void *host, const void *device, size_t n_byte, void *stream)
{
    (void)host, (void)device, (void)n_byte, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_memory(size_t *free_byte, size_t *total_byte)
{
    *free_byte = *total_byte = 0;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_host_alloc(void **p, size_t n_byte)
{
    (void)n_byte;
    *p = NULL;
    return SLU_DEVICE_NOT_BUILT;
}

void slu_device_host_free(void *p)
{
    (void)p;
}

int slu_device_host_lock(void *p, size_t n_byte)
{
    (void)p, (void)n_byte;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_host_shown(const void **shown, void *p)
{
    (void)p;
    *shown = NULL;
    return SLU_DEVICE_NOT_BUILT;
}

void slu_device_host_unlock(void *p)
{
    (void)p;
}

int slu_device_get_async(void *host, const void *device, size_t n_byte, void *stream)
{
    (void)host, (void)device, (void)n_byte, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_copy(void *to, const void *from, size_t n_byte, void *stream)
{
    (void)to, (void)from, (void)n_byte, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_stream_new(void **stream)
{
    *stream = NULL;
    return SLU_DEVICE_NOT_BUILT;
}

void slu_device_stream_free(void *stream)
{
    (void)stream;
}

int slu_device_sync(void *stream)
{
    (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_event_new(void **event)
{
    *event = NULL;
    return SLU_DEVICE_NOT_BUILT;
}

void slu_device_event_free(void *event)
{
    (void)event;
}

int slu_device_event_record(void *event, void *stream)
{
    (void)event, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_event_order(void *event, void *stream)
{
    (void)event, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_event_wait(void *event)
{
    (void)event;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_device_event_ms(void *from, void *to, float *ms)
{
    (void)from, (void)to;
    *ms = 0;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_histogram_cuda(const uint32_t *len, size_t n, uint64_t *count, size_t n_bin,
                       void *stream)
{
    (void)len, (void)n, (void)count, (void)n_bin, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

size_t slu_sort_lengths_cuda_work(size_t n, uint32_t longest)
{
    (void)n, (void)longest;
    return 0;
}

int slu_sort_lengths_cuda(const uint32_t *len, size_t n, uint32_t longest,
                          uint32_t first, uint32_t *order, void *work, size_t work_byte,
                          void *stream)
{
    (void)len, (void)n, (void)longest, (void)first, (void)order, (void)work,
        (void)work_byte, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_place_cuda(const struct slu_place *p, uint32_t *run_item, uint64_t *run_dst,
                   void *stream)
{
    (void)p, (void)run_item, (void)run_dst, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_copy_cuda(const struct slu_copy *c, uint64_t first_tok, size_t n_tok, void *out,
                  void *stream)
{
    (void)c, (void)first_tok, (void)n_tok, (void)out, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

size_t slu_eos_lengths_cuda_work(size_t n)
{
    (void)n;
    return 0;
}

int slu_eos_lengths_cuda(const void *tok, size_t n, unsigned tok_bytes, uint32_t eos,
                         uint64_t *count, size_t n_bin, uint64_t *far,
                         struct slu_eos_block *b, void *work, size_t work_byte,
                         void *stream)
{
    (void)tok, (void)n, (void)tok_bytes, (void)eos, (void)count, (void)n_bin, (void)far,
        (void)b, (void)work, (void)work_byte, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}

int slu_hash_cuda(const struct slu_hash_seqs *s, uint64_t *hash, void *stream)
{
    (void)s, (void)hash, (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}
