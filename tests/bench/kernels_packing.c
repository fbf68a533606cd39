/* kernels_packing.c - measures place, copy and hash, on packings of random lengths. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/device.h"
#include "kernels/copy.h"
#include "kernels/hash.h"
#include "kernels/place.h"
#include "lib/base/hash.h"
#include "tests/bench/kernels.h"

#pragma weak slu_hash_tokens /* linked where there is libxxhash */

/* ---- place ---- */

struct placing {
    struct slu_place p;
    uint32_t *run_item;
    uint64_t *run_dst;
    unsigned threads;
};

struct group {
    uint64_t first_bin, count, taken, items, used;
    uint32_t next; /* group with the same room, or none */
};

#define NO_GROUP   UINT32_MAX
#define MOST_STEPS 4000000

static int by_first_bin(const void *a, const void *b)
{
    const struct slu_place_interval *x = a, *y = b;
    return x->first_bin < y->first_bin ? -1 : x->first_bin > y->first_bin;
}

/* A best-fit packing of groups, good enough to be placed by. */
static void plan(const uint32_t *len, struct slu_place *p)
{
    uint64_t *count = big((capacity + 1) * (size_t)8), bins = 0, at = 0;
    uint32_t *top = big((capacity + 1) * (size_t)4);
    struct group *g = big(MOST_STEPS * sizeof *g);
    struct slu_place_step *step = big(MOST_STEPS * sizeof *step);
    struct slu_place_interval *v = big(MOST_STEPS * sizeof *v);
    size_t n = 0, m = 0;
    for (size_t i = 0; i < n_item; i++)
        count[len[i]]++;
    memset(top, 0xff, (capacity + 1) * (size_t)4);
    for (uint32_t l = capacity; l > 0; l--)
        while (count[l] && n < MOST_STEPS) {
            uint32_t room = l, parent = NO_GROUP;
            while (room <= capacity && top[room] == NO_GROUP)
                room++;
            uint64_t free_bins = UINT64_MAX, from = capacity;
            g[n] = (struct group){.next = NO_GROUP};
            if (room <= capacity) {
                parent = top[room];
                free_bins = g[parent].count - g[parent].taken;
                from = room;
                g[n].items = g[parent].items;
                g[n].used = g[parent].used;
            }
            uint64_t repeat = from / l < count[l] ? from / l : count[l];
            uint64_t c = count[l] / repeat < free_bins ? count[l] / repeat : free_bins;
            g[n].count = c;
            g[n].first_bin =
                parent == NO_GROUP ? bins : g[parent].first_bin + g[parent].taken;
            step[n] = (struct slu_place_step){.first = at,
                                              .repeat = repeat,
                                              .len_tok = l,
                                              .first_bin = g[n].first_bin,
                                              .slot = g[n].items,
                                              .used = g[n].used};
            slu_place_link(step, (uint32_t)n, parent);
            g[n].items += repeat;
            g[n].used += repeat * l;
            if (parent == NO_GROUP)
                bins += c;
            else if ((g[parent].taken += c) == g[parent].count)
                top[room] = g[parent].next;
            if (g[n].used < capacity) {
                g[n].next = top[capacity - g[n].used];
                top[capacity - g[n].used] = (uint32_t)n;
            }
            count[l] -= c * repeat;
            at += c * repeat;
            n++;
        }
    for (size_t i = 0; i < n; i++)
        if (g[i].taken < g[i].count)
            v[m++] =
                (struct slu_place_interval){.first_bin = g[i].first_bin + g[i].taken,
                                            .items = g[i].items,
                                            .capacity = capacity,
                                            .last = (uint32_t)i};
    qsort(v, m, sizeof *v, by_first_bin);
    uint64_t item = 0;
    for (size_t i = 0; i < m; i++) {
        v[i].first_item = item;
        v[i].first_tok = v[i].first_bin * capacity;
        item += ((i + 1 < m ? v[i + 1].first_bin : bins) - v[i].first_bin) * v[i].items;
    }
    p->step = step;
    p->n_step = n;
    p->interval = v;
    p->n_interval = m;
    munmap(count, (capacity + 1) * (size_t)8);
    munmap(top, (capacity + 1) * (size_t)4);
    munmap(g, MOST_STEPS * sizeof *g);
    printf("(plan: %zu steps, %zu intervals, %llu bins)\n", n, m,
           (unsigned long long)bins);
}

static void place_cpu(void *arg)
{
    struct placing *s = arg;
    slu_place_cpu(&s->p, s->run_item, s->run_dst, s->threads);
}

static void place_cuda(void *arg)
{
    struct placing *s = arg;
    must(slu_place_cuda(&s->p, s->run_item, s->run_dst, NULL), "place");
}

void bench_place(const uint32_t *len, const uint32_t *order)
{
    struct placing s = {.p = {.order = order, .n = n_item},
                        .run_item = big(n_item * 4),
                        .run_dst = big(n_item * 8)};
    plan(len, &s.p);
    double n_byte = 16 * (double)n_item;
    for (unsigned t = 1; t <= n_threads; t = t < n_threads ? n_threads : t + 1) {
        s.threads = t;
        row("place", threads_name(t), (double)n_item, n_byte,
            seconds(place_cpu, &s, false), t == 1 ? cpu_memcpy : cpu_memcpy_all);
    }
    if (!have_device)
        return;
    struct slu_place *p = &s.p;
    struct placing on = {{device(p->order, n_item * 4), n_item,
                          device(p->step, p->n_step * sizeof *p->step), p->n_step,
                          device(p->interval, p->n_interval * sizeof *p->interval),
                          p->n_interval},
                         device(NULL, n_item * 4),
                         device(NULL, n_item * 8),
                         0};
    row("place", "device", (double)n_item, n_byte, seconds(place_cuda, &on, true),
        gpu_memcpy);
    slu_device_free((void *)(uintptr_t)on.p.order);
    slu_device_free((void *)(uintptr_t)on.p.step);
    slu_device_free((void *)(uintptr_t)on.p.interval);
    slu_device_free(on.run_item);
    slu_device_free(on.run_dst);
}

/* ---- copy: the first ids of the packing, from items anywhere in the pool ---- */

struct copying {
    struct slu_copy c;
    void *out;
    size_t n_tok;
    unsigned threads;
};

static void copy_cpu(void *arg)
{
    struct copying *s = arg;
    slu_copy_cpu(&s->c, 0, s->n_tok, s->out, s->threads);
}

static void copy_cuda(void *arg)
{
    struct copying *s = arg;
    must(slu_copy_cuda(&s->c, 0, s->n_tok, s->out, NULL), "copy");
}

static void bench_copy_device(const struct copying *s, size_t n, size_t pool_byte)
{
    struct copying on = *s;
    on.c.pool = device(s->c.pool, pool_byte);
    on.c.src = device(s->c.src, n * 8);
    on.c.len = device(s->c.len, n * 4);
    on.c.run_item = device(s->c.run_item, n * 4);
    on.c.run_dst = device(s->c.run_dst, n * 8);
    on.out = device(NULL, s->n_tok * s->c.tok_bytes);
    row("copy", "device", (double)s->n_tok,
        2.0 * s->c.tok_bytes * (double)s->n_tok + 20.0 * (double)n,
        seconds(copy_cuda, &on, true), gpu_memcpy);
    slu_device_free((void *)(uintptr_t)on.c.pool);
    slu_device_free((void *)(uintptr_t)on.c.src);
    slu_device_free((void *)(uintptr_t)on.c.len);
    slu_device_free((void *)(uintptr_t)on.c.run_item);
    slu_device_free((void *)(uintptr_t)on.c.run_dst);
    slu_device_free(on.out);
}

/* Items 0 … n-1 in random order, one after another: what a packing looks like to the
 * copy, but for a little padding. */
void bench_copy(unsigned tok_bytes)
{
    size_t n = n_id / 300, pool_tok = 0;
    uint32_t *len = big(n * 4), *run_item = big(n * 4);
    uint64_t *src = big(n * 8), *run_dst = big(n * 8), at = 0;
    for (size_t i = 0; i < n; i++) {
        len[i] = draw_length();
        src[i] = pool_tok;
        pool_tok += len[i];
        size_t k = (size_t)(rng() % (i + 1)); /* Fisher and Yates, inside out */
        run_item[i] = run_item[k];
        run_item[k] = (uint32_t)i;
    }
    for (size_t r = 0; r < n; r++) {
        run_dst[r] = at;
        at += len[run_item[r]];
    }
    char *pool = big(pool_tok * tok_bytes), *out = big(at * tok_bytes);
    for (size_t i = 0; i + 8 <= pool_tok * tok_bytes; i += 64)
        memcpy(pool + i, &i, 8);
    struct copying s = {.c = {pool, src, len, run_item, run_dst, n, 0, tok_bytes},
                        .out = out,
                        .n_tok = at};
    printf("(copy: %zu ids of %u bytes, %zu runs)\n", s.n_tok, tok_bytes, n);
    for (unsigned t = 1; t <= n_threads; t = t < n_threads ? n_threads : t + 1) {
        s.threads = t;
        double took = seconds(copy_cpu, &s, false);
        if (t == 1 && tok_bytes == 2)
            model.copy = took / (double)at;
        row("copy", threads_name(t), (double)at,
            2.0 * tok_bytes * (double)at + 20.0 * (double)n, took,
            t == 1 ? cpu_memcpy : cpu_memcpy_all);
    }
    if (have_device)
        bench_copy_device(&s, n, pool_tok * tok_bytes);
    munmap(pool, pool_tok * tok_bytes);
    munmap(out, at * tok_bytes);
    munmap(len, n * 4);
    munmap(run_item, n * 4);
    munmap(src, n * 8);
    munmap(run_dst, n * 8);
}

/* ---- hash: bins, one after another ---- */

struct hashing {
    struct slu_hash_seqs s;
    uint64_t *hash;
};

static void hash_oracle(void *arg)
{
    struct hashing *h = arg;
    slu_hash_ref(&h->s, h->hash);
}

static void hash_cpu(void *arg)
{
    const struct hashing *h = arg;
    for (size_t i = 0; i < h->s.n; i++) {
        const char *tok = (const char *)h->s.tok + h->s.first[i] * h->s.tok_bytes;
        struct slu_u128 v = slu_hash_tokens(tok, h->s.len[i], h->s.tok_bytes);
        memcpy(h->hash + 2 * i, &v, sizeof v);
    }
}

static void hash_cuda(void *arg)
{
    struct hashing *h = arg;
    must(slu_hash_cuda(&h->s, h->hash, NULL), "hash");
}

void bench_hash(unsigned tok_bytes)
{
    const size_t n = n_id / capacity, tok_byte = n * capacity * tok_bytes;
    char *tok = big(tok_byte);
    uint64_t *first = big(n * 8), *hash = big(n * 16);
    uint32_t *len = big(n * 4);
    for (size_t i = 0; i < n; i++) {
        first[i] = i * capacity;
        len[i] = capacity;
    }
    for (size_t i = 0; i + 8 <= tok_byte; i += 64)
        memcpy(tok + i, &i, 8);
    struct hashing h = {{tok, tok_bytes, first, len, n}, hash};
    const char *name = tok_bytes == 2 ? "hash u16" : "hash u32";
    row(name, "oracle x 1", (double)n * capacity, (double)tok_byte,
        seconds(hash_oracle, &h, false), cpu_memcpy);
    if (slu_hash_tokens) {
        double took = seconds(hash_cpu, &h, false);
        if (tok_bytes == 2)
            model.hash = took / ((double)n * capacity);
        row(name, "cpu x 1", (double)n * capacity, (double)tok_byte, took, cpu_memcpy);
    }
    if (have_device) {
        struct hashing on = {{device(tok, tok_byte), tok_bytes, device(first, n * 8),
                              device(len, n * 4), n},
                             device(NULL, n * 16)};
        row(name, "device", (double)n * capacity, (double)tok_byte,
            seconds(hash_cuda, &on, true), gpu_memcpy);
        slu_device_free((void *)(uintptr_t)on.s.tok);
        slu_device_free((void *)(uintptr_t)on.s.first);
        slu_device_free((void *)(uintptr_t)on.s.len);
        slu_device_free(on.hash);
    }
    munmap(tok, tok_byte);
    munmap(first, n * 8);
    munmap(hash, n * 16);
    munmap(len, n * 4);
}
