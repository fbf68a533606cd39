#include "copy.h"

#include <string.h>

#include "parallel.h"

#define AHEAD_ITEM  32  /* runs ahead at which an item's row is prefetched … */
#define AHEAD_POOL  16  /* … and at which its first ids are */
#define SHORT       256 /* largest size that is copied here */
#define LEAST_SHARE (64 * 1024) /* ids for which a thread is worth starting */

struct job {
    const struct slu_copy *c;
    uint64_t first_tok;
    size_t n_tok;
    char *out;
    unsigned n_threads;
};

/* Copies a short run, for which a call would cost as much as the copy. The last block
 * overlaps the one before, so that no byte outside is read or written. */
static inline void copy_run(char *to, const char *from, size_t n)
{
    if (n > SHORT) {
        memcpy(to, from, n);
    } else if (n >= 32) {
        for (size_t i = 0; i + 32 < n; i += 32)
            memcpy(to + i, from + i, 32);
        memcpy(to + n - 32, from + n - 32, 32);
    } else if (n >= 16) {
        memcpy(to, from, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else {
        for (size_t i = 0; i < n; i += 2) /* the number of bytes is even */
            memcpy(to + i, from + i, 2);
    }
}

static inline void fill(const struct slu_copy *c, char *to, uint64_t n)
{
    uint16_t pad2 = (uint16_t)c->pad;
    if (c->tok_bytes == 2)
        for (uint64_t i = 0; i < n; i++)
            memcpy(to + 2 * i, &pad2, 2);
    else
        for (uint64_t i = 0; i < n; i++)
            memcpy(to + 4 * i, &c->pad, 4);
}

/* The run that covers id `at`; if none does, the one before, or the first. */
static size_t first_run(const struct slu_copy *c, uint64_t at)
{
    size_t lo = 0, hi = c->n_run;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->run_dst[mid] <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? lo - 1 : 0;
}

/* An item's row and its ids are at random addresses, so both are prefetched. */
static inline void prefetch(const struct slu_copy *c, size_t r)
{
    if (r + AHEAD_ITEM < c->n_run) {
        uint32_t item = c->run_item[r + AHEAD_ITEM];
        __builtin_prefetch(&c->src[item]);
        __builtin_prefetch(&c->len[item]);
    }
    if (r + AHEAD_POOL < c->n_run) {
        uint32_t item = c->run_item[r + AHEAD_POOL];
        const char *ids = (const char *)c->pool + c->src[item] * c->tok_bytes;
        size_t n = c->len[item] * (size_t)c->tok_bytes;
        for (size_t i = 0; i < n && i < 1024; i += 64)
            __builtin_prefetch(ids + i);
    }
}

static void copy_range(const struct slu_copy *c, uint64_t at, uint64_t end, char *out)
{
    const unsigned size = c->tok_bytes;
    for (size_t r = first_run(c, at); at < end && r < c->n_run; r++) {
        prefetch(c, r);
        uint32_t item = c->run_item[r];
        uint64_t dst = c->run_dst[r], len = c->len[item], skip = 0;
        if (dst >= end)
            break;
        if (dst > at) { /* a gap */
            fill(c, out, dst - at);
            out += (dst - at) * size;
            at = dst;
        } else {
            skip = at - dst; /* only for the first run of the range */
        }
        if (skip >= len)
            continue;
        uint64_t n = len - skip < end - at ? len - skip : end - at;
        copy_run(out, (const char *)c->pool + (c->src[item] + skip) * size, n * size);
        out += n * size;
        at += n;
    }
    fill(c, out, end - at);
}

static void copy_share(void *arg, unsigned thread)
{
    const struct job *j = arg;
    size_t from = slu_kernel_share(j->n_tok, thread, j->n_threads);
    size_t to = slu_kernel_share(j->n_tok, thread + 1, j->n_threads);
    copy_range(j->c, j->first_tok + from, j->first_tok + to,
               j->out + from * j->c->tok_bytes);
}

void slu_copy_cpu(const struct slu_copy *c, uint64_t first_tok, size_t n_tok, void *out,
                  unsigned n_threads)
{
    struct job j = {c, first_tok, n_tok, out, n_threads ? n_threads : 1};
    if (j.n_threads > n_tok / LEAST_SHARE + 1)
        j.n_threads = (unsigned)(n_tok / LEAST_SHARE + 1);
    slu_kernel_parallel(j.n_threads, copy_share, &j);
}
