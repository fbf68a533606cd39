#include "lib/pack/packing_cuda.h"

#include <stdint.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/hash.h"
#include "kernels/histogram.h"

/* Where things lie in a window; at: 0 … 3, and 4 for its end. */
enum { IDS, HASH, FIRST, LEN, END };

static size_t at(const struct slu_pack_cuda *c, unsigned what)
{
    const size_t ids = (c->window_tok * c->a->tok_bytes + 63) / 64 * 64;
    const size_t of_bin[] = {0, 0, sizeof(struct slu_u128), 24, 28};
    return what ? ids + of_bin[what] * c->window_bin : 0;
}

/* Allocates the arrays that every path needs, but not the pool and the workspace. */
static int alloc_arrays(struct slu_pack_cuda *c)
{
    const struct slu_pack_arrays *a = c->a;
    bool placed = a->n_step == 0;
    const struct {
        void *p; /* address of the pointer */
        size_t n, size;
    } want[] = {
        {&c->dev.src, a->n_item, sizeof *c->dev.src},
        {&c->dev.run_item, a->n_item, sizeof *c->dev.run_item},
        {&c->dev.run_dst, a->n_item, sizeof *c->dev.run_dst},
        {&c->dev.order, placed ? 0 : a->n_item, sizeof *c->dev.order},
        {&c->dev.step, a->n_step, sizeof *c->dev.step},
        {&c->dev.seq_first, a->n_seq, sizeof *c->dev.seq_first},
        {&c->dev.seq_len, a->n_seq, sizeof *c->dev.seq_len},
        {&c->dev.seq_hash, a->n_seq, sizeof *a->seq_hash},
        {&c->dev.interval, placed ? 0 : a->n_interval, sizeof *c->dev.interval},
    };
    int code = 0;
    for (size_t i = 0; i < sizeof want / sizeof *want && !code; i++)
        if (want[i].n) {
            void *p;
            code = slu_device_alloc(&p, want[i].n * want[i].size);
            memcpy(want[i].p, &p, sizeof p);
        }
    return code;
}

static int open_window(struct slu_pack_cuda *c, struct slu_pack_window *w)
{
    void *host = NULL, *dev = NULL;
    int code = slu_device_host_alloc(&host, at(c, END));
    w->host = host;
    if (!code)
        code = slu_device_alloc(&dev, at(c, END));
    w->dev = dev;
    if (!code)
        code = slu_device_event_new(&w->filled);
    if (!code)
        code = slu_device_event_new(&w->copied);
    return code;
}

/* Returns the workspace that suffices for each range. */
static size_t sort_work(const struct slu_pack_arrays *a)
{
    size_t most = 0;
    for (size_t i = 0; i < a->n_range; i++) {
        size_t n = slu_sort_lengths_cuda_work(a->range[i].n_item, a->range[i].longest);
        most = n > most ? n : most;
    }
    return most;
}

/* Locks the pool's pages. If the device has room for the pool, beside what is allocated
 * later and a part that drivers take, starts to copy it; else kernels read it where it
 * is. */
static int put_pool(struct slu_pack_cuda *c)
{
    const struct slu_pack_arrays *a = c->a;
    void *pool = (void *)(uintptr_t)a->pool, *to = NULL;
    /* copy.h: readable up to a multiple of 16 bytes */
    size_t n_byte = (a->n_pool_tok * a->tok_bytes + 15) / 16 * 16, room, total;
    int code = slu_device_memory(&room, &total);
    if (!code)
        code = slu_device_event_new(&c->pooled);
    if (code || !n_byte)
        return code;
    code = slu_device_host_lock(pool, n_byte);
    if (code)
        return code;
    c->locked = pool;
    if (n_byte + sort_work(a) > room - room / 32)
        return slu_device_host_shown(&c->pool, pool);
    code = slu_device_alloc(&to, n_byte);
    c->pool = c->dev.pool = to;
    if (!code)
        code = slu_device_put(to, pool, n_byte, c->copy);
    return code ? code : slu_device_event_record(c->pooled, c->copy);
}

/* Copies the rows of the pool's sequences, before the pool, for which none waits. */
static int put_seqs(struct slu_pack_cuda *c)
{
    const struct slu_pack_arrays *a = c->a;
    int code = slu_device_put(c->dev.seq_first, a->seq_first,
                              a->n_seq * sizeof *a->seq_first, c->copy);
    return code ? code
                : slu_device_put(c->dev.seq_len, a->seq_len,
                                 a->n_seq * sizeof *a->seq_len, c->copy);
}

static int hash_seqs(struct slu_pack_cuda *c)
{
    const struct slu_hash_seqs s = {c->pool, c->a->tok_bytes, c->dev.seq_first,
                                    c->dev.seq_len, c->a->n_seq};
    return slu_hash_cuda(&s, c->dev.seq_hash, c->copy);
}

static void free_seqs(struct slu_pack_cuda *c)
{
    slu_device_free(c->dev.seq_first);
    slu_device_free(c->dev.seq_len);
    slu_device_free(c->dev.seq_hash);
    c->dev.seq_first = c->dev.seq_hash = NULL;
    c->dev.seq_len = NULL;
}

int slu_pack_cuda_hashes(struct slu_pack_cuda *c)
{
    int code = slu_device_select(c->ordinal);
    if (!code)
        code = slu_device_get(c->a->seq_hash, c->dev.seq_hash,
                              c->a->n_seq * sizeof *c->a->seq_hash, c->copy);
    if (!code)
        free_seqs(c);
    return code;
}

int slu_pack_cuda_open(struct slu_pack_cuda *c, int ordinal,
                       const struct slu_pack_arrays *a)
{
    const size_t n_byte = a->n_item * sizeof *a->len;
    void *len = NULL;
    memset(c, 0, sizeof *c);
    c->ordinal = ordinal;
    c->a = a;
    int code = slu_device_select(ordinal);
    if (!code)
        code = slu_device_stream_new(&c->compute);
    if (!code)
        code = slu_device_stream_new(&c->copy);
    if (!code)
        code = slu_device_alloc(&len, n_byte);
    c->dev.len = len;
    return code ? code : slu_device_put(len, a->len, n_byte, c->compute);
}

int slu_pack_cuda_count(struct slu_pack_cuda *c, const struct slu_pack_range *r,
                        uint64_t *count)
{
    const size_t n_bin = (size_t)r->longest + 1, n_byte = n_bin * sizeof *count;
    void *dev = NULL;
    int code = slu_device_select(c->ordinal);
    if (!code)
        code = slu_device_alloc(&dev, n_byte);
    if (!code)
        code = slu_device_zero(dev, n_byte, c->compute);
    if (!code)
        code = slu_histogram_cuda(c->dev.len + r->first_item, r->n_item, dev, n_bin,
                                  c->compute);
    if (!code)
        code = slu_device_get(count, dev, n_byte, c->compute);
    slu_device_free(dev);
    return code;
}

int slu_pack_cuda_ready(struct slu_pack_cuda *c, size_t window_tok)
{
    const struct slu_pack_arrays *a = c->a;
    c->window_tok = window_tok < a->n_tok ? window_tok : (size_t)a->n_tok;
    c->window_bin = c->window_tok / 512 + 1;
    int code = slu_device_select(c->ordinal);
    if (!code)
        code = alloc_arrays(c);
    for (int i = 0; i < SLU_PACK_WINDOWS && !code; i++)
        code = open_window(c, &c->window[i]);
    if (!code && a->n_seq)
        code = put_seqs(c);
    if (!code)
        code = put_pool(c);
    if (!code && a->n_seq)
        code = hash_seqs(c);
    if (!code)
        code =
            slu_device_put(c->dev.src, a->src, a->n_item * sizeof *a->src, c->compute);
    /* Items of methods that cut, and of chains, are already placed. */
    if (!code && !a->n_step)
        code = slu_device_put(c->dev.run_item, a->run_item,
                              a->n_item * sizeof *a->run_item, c->compute);
    if (!code && !a->n_step)
        code = slu_device_put(c->dev.run_dst, a->run_dst,
                              a->n_item * sizeof *a->run_dst, c->compute);
    return code;
}

int slu_pack_cuda_sort(struct slu_pack_cuda *c)
{
    const struct slu_pack_arrays *a = c->a;
    void *work = NULL;
    int code = slu_device_select(c->ordinal);
    size_t n_byte = code ? 0 : sort_work(a);
    if (!code)
        code = slu_device_alloc(&work, n_byte);
    if (!code)
        code = slu_device_put(c->dev.step, a->step, a->n_step * sizeof *a->step,
                              c->compute);
    if (!code)
        code = slu_device_put(c->dev.interval, a->interval,
                              a->n_interval * sizeof *a->interval, c->compute);
    for (size_t i = 0; i < a->n_range && !code; i++) {
        const struct slu_pack_range *r = &a->range[i];
        code = slu_sort_lengths_cuda(
            c->dev.len + r->first_item, r->n_item, r->longest, (uint32_t)r->first_item,
            c->dev.order + r->first_item, work, n_byte, c->compute);
    }
    if (!code)
        code = slu_device_sync(c->compute);
    slu_device_free(work);
    return code;
}

int slu_pack_cuda_place(struct slu_pack_cuda *c)
{
    const struct slu_pack_arrays *a = c->a;
    struct slu_place p = {c->dev.order, a->n_item,       c->dev.step,
                          a->n_step,    c->dev.interval, a->n_interval};
    int code = slu_device_select(c->ordinal);
    if (!code)
        code = slu_place_cuda(&p, c->dev.run_item, c->dev.run_dst, c->compute);
    if (!code)
        code = slu_device_get(a->run_item, c->dev.run_item,
                              a->n_item * sizeof *a->run_item, c->compute);
    if (!code)
        code = slu_device_get(a->run_dst, c->dev.run_dst,
                              a->n_item * sizeof *a->run_dst, c->compute);
    return code;
}

uint64_t slu_pack_cuda_add(struct slu_pack_cuda *c, uint64_t n, uint64_t bin_tok)
{
    struct slu_pack_window *w = &c->window[c->launched % SLU_PACK_WINDOWS];
    uint64_t *first = (void *)(w->host + at(c, FIRST));
    uint32_t *len = (void *)(w->host + at(c, LEN));
    uint64_t room = (c->window_tok - w->n_tok) / bin_tok;
    room = room < c->window_bin - w->n_bin ? room : c->window_bin - w->n_bin;
    n = n < room ? n : room;
    for (uint64_t i = 0; i < n; i++, w->n_bin++, w->n_tok += bin_tok) {
        first[w->n_bin] = w->n_tok;
        len[w->n_bin] = (uint32_t)bin_tok;
    }
    return n;
}

/* Hashes the bins of w, whose ids are on the device. */
static int hash_bins(struct slu_pack_cuda *c, struct slu_pack_window *w)
{
    const size_t n = w->n_bin;
    const struct slu_hash_seqs s = {.tok = w->dev,
                                    .tok_bytes = c->a->tok_bytes,
                                    .first = (void *)(w->dev + at(c, FIRST)),
                                    .len = (void *)(w->dev + at(c, LEN)),
                                    .n = n};
    int code = slu_device_put(w->dev + at(c, FIRST), w->host + at(c, FIRST),
                              n * sizeof *s.first, c->compute);
    if (!code)
        code = slu_device_put(w->dev + at(c, LEN), w->host + at(c, LEN),
                              n * sizeof *s.len, c->compute);
    return code ? code : slu_hash_cuda(&s, (void *)(w->dev + at(c, HASH)), c->compute);
}

int slu_pack_cuda_launch(struct slu_pack_cuda *c)
{
    struct slu_pack_window *w = &c->window[c->launched++ % SLU_PACK_WINDOWS];
    const struct slu_pack_arrays *a = c->a;
    const uint64_t end_tok = c->next_tok + w->n_tok;
    /* The kernel searches the window's runs alone; the one before may reach into it. */
    const size_t first = c->next_run - (c->next_run > 0);
    while (c->next_run < a->n_item && a->run_dst[c->next_run] < end_tok)
        c->next_run++;
    struct slu_copy copy = {.pool = c->pool,
                            .src = c->dev.src,
                            .len = c->dev.len,
                            .run_item = c->dev.run_item + first,
                            .run_dst = c->dev.run_dst + first,
                            .n_run = c->next_run - first,
                            .pad = a->pad,
                            .tok_bytes = a->tok_bytes};
    int code = slu_device_select(c->ordinal);
    if (!code && c->next_tok == 0 && c->dev.pool)
        code = slu_device_event_order(c->pooled, c->compute);
    if (!code)
        code = slu_copy_cuda(&copy, c->next_tok, w->n_tok, w->dev, c->compute);
    c->next_tok = end_tok;
    if (!code && !c->a->marked)
        code = hash_bins(c, w);
    if (!code)
        code = slu_device_event_record(w->filled, c->compute);
    if (!code)
        code = slu_device_event_order(w->filled, c->copy);
    if (!code)
        code =
            slu_device_get_async(w->host, w->dev, w->n_tok * c->a->tok_bytes, c->copy);
    if (!code && !c->a->marked)
        code = slu_device_get_async(w->host + at(c, HASH), w->dev + at(c, HASH),
                                    w->n_bin * sizeof(struct slu_u128), c->copy);
    if (!code)
        code = slu_device_event_record(w->copied, c->copy);
    return code;
}

int slu_pack_cuda_wait(struct slu_pack_cuda *c, const void **tok,
                       struct slu_u128 **hash)
{
    struct slu_pack_window *w = &c->window[c->waited++ % SLU_PACK_WINDOWS];
    int code = slu_device_select(c->ordinal);
    *tok = w->host;
    *hash = c->a->marked ? NULL : (void *)(w->host + at(c, HASH));
    w->n_tok = w->n_bin = 0;
    return code ? code : slu_device_event_wait(w->copied);
}

static void leave_window(struct slu_pack_window *w)
{
    slu_device_free(w->dev);
    slu_device_event_free(w->filled);
    slu_device_event_free(w->copied);
    *w = (struct slu_pack_window){.host = w->host};
}

void slu_pack_cuda_leave(struct slu_pack_cuda *c)
{
    if (!c->a)
        return;
    /* Ids that were not got may still be on their way to the host. */
    (void)slu_device_select(c->ordinal);
    if (c->compute)
        (void)slu_device_sync(c->compute);
    if (c->copy)
        (void)slu_device_sync(c->copy);
    for (int i = 0; i < SLU_PACK_WINDOWS; i++)
        leave_window(&c->window[i]);
    slu_device_host_unlock(c->locked);
    slu_device_event_free(c->pooled);
    slu_device_free(c->dev.len);
    slu_device_free(c->dev.src);
    slu_device_free(c->dev.run_item);
    slu_device_free(c->dev.run_dst);
    slu_device_free(c->dev.pool);
    free_seqs(c);
    slu_device_free(c->dev.order);
    slu_device_free(c->dev.step);
    slu_device_free(c->dev.interval);
    slu_device_stream_free(c->compute);
    slu_device_stream_free(c->copy);
    c->a = NULL;
}

void slu_pack_cuda_close(struct slu_pack_cuda *c)
{
    slu_pack_cuda_leave(c);
    for (int i = 0; i < SLU_PACK_WINDOWS; i++)
        slu_device_host_free(c->window[i].host);
    memset(c, 0, sizeof *c);
}
