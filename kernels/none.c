/* none.c - what kernels/ answers in a build without CUDA. */
#include "device.h"
#include "histogram.h"

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

size_t slu_histogram_cuda_work(size_t n, size_t n_bin)
{
    (void)n, (void)n_bin;
    return 0;
}

int slu_histogram_cuda(const uint64_t *len, size_t n, uint64_t *count, size_t n_bin,
                       void *work, size_t work_byte, void *stream)
{
    (void)len, (void)n, (void)count, (void)n_bin, (void)work, (void)work_byte,
        (void)stream;
    return SLU_DEVICE_NOT_BUILT;
}
