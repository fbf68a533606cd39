/* test_fake.c - what is around kernels, on a device that is none: pack's arrays there
 * and back (lib/pack/packing_cuda.h), the length histogram, and the policy of
 * lib/base/device.h, with every call failing in turn, in every way.
 * check-more: whole (cli/device_fake runs programs on this device in make check) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/histogram.h"
#include "lib/base/device.h"
#include "lib/pack/packer.h"
#include "lib/pack/packing_cuda.h"
#include "lib/stream/lengths.h"
#include "tests/fake/device_fake.h"

static uint64_t seed = 7;

static uint64_t rnd(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

/* ---- pack's arrays, as packing_mem.c lays them out ---- */

#define DOMAINS  3
#define CAPACITY 64

struct arrays {
    struct slu_pack_arrays a;
    uint32_t *len;
    uint64_t *src, *seq_first;
    uint32_t *seq_len;
    void *pool;
    struct slu_pack_range range[DOMAINS];
    struct slu_place_step step[4096];
    struct slu_place_interval interval[4096];
    uint8_t *packed; /* what must come out */
};

/* Adds range d's plan. */
static void add_domain(struct arrays *s, int d, uint64_t *first_bin)
{
    struct slu_pack_range *r = &s->range[d];
    struct slu_length_count hist[CAPACITY];
    struct slu_pack_plan *plan;
    struct slu_pack_interval *row;
    size_t n_hist = 0, n_row;
    for (uint64_t v = 1; v <= CAPACITY; v++) {
        uint64_t count = 0;
        for (size_t i = 0; i < r->n_item; i++)
            count += s->len[r->first_item + i] == v;
        if (count)
            hist[n_hist++] = (struct slu_length_count){v, count};
    }
    if (!n_hist)
        return;
    assert_int_equal(slu_pack_bfd(&plan, hist, n_hist, CAPACITY, 0, NULL), SLU_OK);
    assert_int_equal(slu_pack_intervals(plan, &row, &n_row, NULL), SLU_OK);
    uint32_t first_step = (uint32_t)s->a.n_step;
    uint64_t at = r->first_item;
    for (size_t i = 0; i < plan->n_group; i++) {
        const struct slu_pack_group *g = &plan->group[i];
        s->step[s->a.n_step] = (struct slu_place_step){
            .first = at,
            .repeat = g->repeat,
            .len_tok = g->len_tok,
            .first_bin = *first_bin + g->first_bin,
            .slot = g->slot,
            .used = CAPACITY - g->room - g->repeat * g->len_tok};
        slu_place_link(s->step, (uint32_t)s->a.n_step++,
                       g->parent == SLU_PACK_OPENED ? SLU_PLACE_OPENED
                                                    : first_step + g->parent);
        at += g->count * g->repeat;
    }
    for (size_t i = 0; i < n_row; i++)
        s->interval[s->a.n_interval++] =
            (struct slu_place_interval){.first_bin = *first_bin + row[i].first_bin,
                                        .first_item = r->first_item + row[i].first_item,
                                        .items = row[i].items,
                                        .first_tok = s->a.n_tok + row[i].first_tok,
                                        .capacity = row[i].capacity,
                                        .last = first_step + row[i].group};
    *first_bin += plan->n_bin;
    s->a.n_tok += plan->n_bin * CAPACITY;
    free(row);
    slu_pack_plan_free(plan);
}

/* Concatenated: the items as they are. */
static void lay_out_concat(struct arrays *s)
{
    for (size_t i = 0; i < s->a.n_item; i++) {
        s->a.run_item[i] = (uint32_t)i;
        s->a.run_dst[i] = s->a.n_tok;
        s->a.n_tok += s->len[i];
    }
    s->a.n_tok += 5;
}

static void lay_out(struct arrays *s)
{
    uint64_t first_bin = 0;
    for (int d = 0; d < DOMAINS; d++)
        add_domain(s, d, &first_bin);
    for (int d = 0; d < DOMAINS; d++) {
        const struct slu_pack_range *r = &s->range[d];
        void *work = malloc(slu_sort_lengths_ref_work(r->n_item, CAPACITY));
        slu_sort_lengths_ref(s->len + r->first_item, r->n_item, CAPACITY,
                             s->a.order + r->first_item, work);
        for (size_t i = 0; i < r->n_item; i++)
            s->a.order[r->first_item + i] += (uint32_t)r->first_item;
        free(work);
    }
    struct slu_place p = {s->a.order,  s->a.n_item,   s->a.step,
                          s->a.n_step, s->a.interval, s->a.n_interval};
    slu_place_ref(&p, s->a.run_item, s->a.run_dst);
}

static struct arrays *new_arrays(size_t n_item, unsigned tok_bytes, bool concat)
{
    struct arrays *s = calloc(1, sizeof *s);
    struct slu_pack_arrays *a = &s->a;
    s->len = malloc((n_item + 1) * sizeof *s->len);
    s->src = malloc((n_item + 1) * sizeof *s->src);
    *a = (struct slu_pack_arrays){.n_item = n_item,
                                  .len = s->len,
                                  .src = s->src,
                                  .tok_bytes = tok_bytes,
                                  .marked = tok_bytes == 4 && n_item == 1,
                                  .pad = 777,
                                  .range = s->range,
                                  .n_range = concat ? 0 : DOMAINS,
                                  .step = s->step,
                                  .interval = s->interval};
    a->order = calloc(n_item + 1, sizeof *a->order);
    a->run_item = calloc(n_item + 1, sizeof *a->run_item);
    a->run_dst = calloc(n_item + 1, sizeof *a->run_dst);
    for (size_t i = 0; i < n_item; i++) {
        s->len[i] = 1 + (uint32_t)rnd(1 + rnd(CAPACITY));
        s->src[i] = a->n_pool_tok;
        a->n_pool_tok += s->len[i];
    }
    /* A sequence is one item or two, and some items are of none. */
    s->seq_first = malloc((n_item + 1) * sizeof *s->seq_first);
    s->seq_len = malloc((n_item + 1) * sizeof *s->seq_len);
    a->seq_first = s->seq_first;
    a->seq_len = s->seq_len;
    a->seq_hash = malloc((n_item + 1) * sizeof *a->seq_hash);
    for (size_t i = 0, n; i < n_item; i += n) {
        n = 1 + rnd(i + 1 < n_item ? 2 : 1);
        s->seq_first[a->n_seq] = s->src[i];
        s->seq_len[a->n_seq] = s->len[i] + (n > 1 ? s->len[i + 1] : 0);
        a->n_seq += rnd(8) && !a->marked;
    }
    /* The middle domain is empty. */
    s->range[0] = (struct slu_pack_range){0, n_item / 3, CAPACITY, 0};
    s->range[1] = (struct slu_pack_range){n_item / 3, 0, 0, 0};
    s->range[2] = (struct slu_pack_range){n_item / 3, n_item - n_item / 3, CAPACITY, 0};
    s->pool = malloc(a->n_pool_tok * tok_bytes + 64);
    a->pool = s->pool;
    for (size_t i = 0; i < a->n_pool_tok * tok_bytes; i++)
        ((uint8_t *)s->pool)[i] = (uint8_t)rnd(256);
    if (concat)
        lay_out_concat(s);
    else
        lay_out(s);
    s->packed = malloc(a->n_tok * tok_bytes + 1);
    struct slu_copy copy = slu_pack_copy(a);
    slu_copy_ref(&copy, 0, a->n_tok, s->packed);
    return s;
}

static void free_arrays(struct arrays *s)
{
    free(s->len);
    free(s->src);
    free(s->pool);
    free(s->seq_first);
    free(s->seq_len);
    free(s->a.seq_hash);
    free(s->a.order);
    free(s->a.run_item);
    free(s->a.run_dst);
    free(s->packed);
    free(s);
}

/* The bins of each window. */
static struct {
    size_t n;
    uint32_t tok[256];
} bins[SLU_PACK_WINDOWS];

/* Adds bins of any length, until the window is full or earlier. Returns their ids. */
static uint64_t add_bins(struct slu_pack_cuda *c, uint64_t left)
{
    uint64_t sum = 0;
    size_t w = c->launched % SLU_PACK_WINDOWS;
    for (bins[w].n = 0; sum < left && (!sum || rnd(20)); bins[w].n++) {
        uint64_t n = 1 + rnd(CAPACITY);
        n = n < c->window_tok ? n : c->window_tok;
        n = n < left - sum ? n : left - sum;
        if (!slu_pack_cuda_add(c, 1, n))
            break;
        assert_true(bins[w].n < 256);
        bins[w].tok[bins[w].n] = (uint32_t)n;
        sum += n;
    }
    assert_true(sum > 0);
    return sum;
}

/* Copies the next window to out, from id *at on, and checks the hashes. */
static int take(struct slu_pack_cuda *c, const struct slu_pack_arrays *a, uint64_t *at,
                uint8_t *out)
{
    const void *tok;
    struct slu_u128 *hash;
    size_t w = c->waited % SLU_PACK_WINDOWS;
    int code = slu_pack_cuda_wait(c, &tok, &hash);
    assert_int_equal(!hash, a->marked);
    for (size_t i = 0; i < bins[w].n && !code; i++) {
        size_t n = bins[w].tok[i], n_byte = n * a->tok_bytes;
        struct slu_u128 want = slu_hash_tokens(tok, n, a->tok_bytes);
        if (hash)
            assert_memory_equal(&hash[i], &want, sizeof want);
        memcpy(out + *at * a->tok_bytes, tok, n_byte);
        tok = (const uint8_t *)tok + n_byte;
        *at += n;
    }
    return code;
}

/* Whether the pool stayed on the host, in some run. */
static bool stayed;

/* Gets the counts of lengths, and checks them. */
static int counts(struct slu_pack_cuda *c, const struct slu_pack_arrays *a)
{
    int code = 0;
    for (size_t i = 0; i < a->n_range && !code; i++) {
        const struct slu_pack_range *r = &a->range[i];
        const size_t n = (size_t)r->longest + 1;
        uint64_t *got = calloc(n, sizeof *got), *want = calloc(n, sizeof *want);
        code = slu_pack_cuda_count(c, r, got);
        slu_histogram_ref(a->len + r->first_item, r->n_item, want, n);
        if (!code)
            assert_memory_equal(got, want, n * sizeof *want);
        free(got);
        free(want);
    }
    return code;
}

/* Gets the hashes of the pool's sequences, and checks them. */
static int hashes(struct slu_pack_cuda *c, const struct slu_pack_arrays *a)
{
    memset(a->seq_hash, 0, a->n_seq * sizeof *a->seq_hash);
    int code = slu_pack_cuda_hashes(c);
    for (size_t i = 0; i < a->n_seq && !code; i++) {
        const uint8_t *tok = (const uint8_t *)a->pool + a->seq_first[i] * a->tok_bytes;
        struct slu_u128 want = slu_hash_tokens(tok, a->seq_len[i], a->tok_bytes);
        assert_memory_equal(&a->seq_hash[i], &want, sizeof want);
    }
    return code;
}

/* All of it on the device, and from where that fails on the host. Returns the device's
 * last answer. `out` is what came out. */
static int materialise(struct arrays *s, size_t window_tok, uint8_t *out)
{
    struct slu_pack_cuda c;
    struct slu_pack_arrays *a = &s->a;
    uint64_t at = 0, next = 0;
    bool placed = a->n_step == 0;
    int code = slu_pack_cuda_open(&c, 0, a);
    if (!code)
        code = counts(&c, a);
    if (!code)
        code = slu_pack_cuda_ready(&c, window_tok);
    stayed |= !code && !c.dev.pool;
    if (!placed) {
        if (!code)
            code = slu_pack_cuda_sort(&c);
        if (!code)
            code = slu_pack_cuda_place(&c);
        placed = code == 0;
    }
    if (!code && a->n_seq)
        code = hashes(&c, a);
    while (!code && at < a->n_tok) {
        while (!code && next < a->n_tok && c.launched < c.waited + 2) {
            next += add_bins(&c, a->n_tok - next);
            code = slu_pack_cuda_launch(&c);
        }
        if (!code)
            code = take(&c, a, &at, out);
    }
    slu_pack_cuda_leave(&c);
    slu_pack_cuda_close(&c);
    slu_pack_cuda_close(&c); /* twice is legal */
    assert_int_equal(slu_fake_held(), 0);
    if (code) { /* as the CPU would go on */
        struct slu_copy copy = slu_pack_copy(a);
        if (!placed) {
            memset(a->run_item, 0, a->n_item * sizeof *a->run_item);
            struct slu_place p = {a->order,  a->n_item,   a->step,
                                  a->n_step, a->interval, a->n_interval};
            slu_place_ref(&p, a->run_item, a->run_dst);
        }
        slu_copy_ref(&copy, at, a->n_tok - at, out + at * a->tok_bytes);
    }
    return code;
}

static void pack_once(size_t n_item, unsigned tok_bytes, bool concat, size_t window_tok)
{
    struct arrays *s = new_arrays(n_item, tok_bytes, concat);
    size_t n_byte = s->a.n_tok * tok_bytes;
    uint32_t *item = malloc(n_item * sizeof *item + 1);
    uint8_t *out = malloc(n_byte + 1);
    memcpy(item, s->a.run_item, n_item * sizeof *item);
    if (!concat)
        memset(s->a.run_item, 0, n_item * sizeof *item);
    memset(out, 0, n_byte);
    uint64_t was = seed;
    for (int ahead = 1; ahead >= 0; ahead--) {
        slu_fake_set(0, SLU_FAKE_ONCE, SIZE_MAX);
        slu_fake_ahead(ahead);
        seed = was;
        assert_int_equal(materialise(s, window_tok, out), 0);
        assert_memory_equal(out, s->packed, n_byte);
    }
    assert_memory_equal(s->a.run_item, item, n_item * sizeof *item);
    long calls = slu_fake_calls();
    for (int mode = 0; mode < SLU_FAKE_MODES; mode++)
        for (long k = 1; k <= calls; k++) {
            slu_fake_set(k, (enum slu_fake_mode)mode, SIZE_MAX);
            seed = was;
            memset(out, 0, n_byte);
            int code = materialise(s, window_tok, out);
            assert_memory_equal(out, s->packed, n_byte);
            /* The last three are in close, when all is out. */
            assert_true(code != 0 || k > calls - 3);
        }
    free(item);
    free(out);
    free_arrays(s);
}

static void pack_arrays(void **unused)
{
    (void)unused;
    pack_once(500, 2, false, 1000);
    pack_once(500, 4, false, 333);
    pack_once(400, 2, true, 1000);
    pack_once(10, 2, false, 100000); /* one window */
    pack_once(1, 4, false, 1);
    pack_once(64, 2, false, CAPACITY); /* windows that end with the data */
}

static void pack_too_large(void **unused)
{
    (void)unused;
    struct arrays *s = new_arrays(500, 2, false);
    uint8_t *out = malloc(s->a.n_tok * 2);
    size_t need = 0;
    stayed = false;
    for (size_t memory = 0; memory < 1 << 20; memory += 1013) {
        slu_fake_set(0, SLU_FAKE_ONCE, memory);
        memset(out, 0, s->a.n_tok * 2);
        int code = materialise(s, 1000, out);
        assert_memory_equal(out, s->packed, s->a.n_tok * 2);
        assert_int_equal(code == 0, need != 0 || code == 0);
        if (code == 0 && !need)
            need = memory;
    }
    assert_true(need > 0 && stayed);
    free(out);
    free_arrays(s);
}

/* ---- the length histogram, and the policy ---- */

static int n_warning;

static void warn(void *arg, const char *text)
{
    (void)arg;
    n_warning++;
    assert_non_null(strstr(text, "cuda:0"));
}

/* Counts some lengths on two handles that share a device. Returns what ended it. */
static int count_lengths(enum slu_device_kind kind, uint64_t *sum, struct slu_err *err)
{
    struct slu_device d;
    struct slu_lengths *l[2] = {NULL, NULL};
    struct slu_length_count *row;
    size_t n_row;
    uint64_t was = seed;
    int rc = slu_device_choose(&d, kind, 0, err);
    d.warn = warn;
    *sum = 0;
    for (int i = 0; i < 2 && !rc; i++)
        rc = slu_lengths_new(&l[i], &d, NULL, err);
    for (int i = 0; i < 40000 && !rc; i++) {
        uint64_t len = rnd(1 + rnd(1 + (uint64_t)i / 8));
        rc = slu_lengths_add(l[i % 3 == 0], &len, 1, err);
    }
    for (int i = 0; i < 2 && !rc; i++) {
        rc = slu_lengths_rows(l[i], &row, &n_row, err);
        for (size_t k = 0; k < n_row && !rc; k++)
            *sum = (*sum ^ row[k].len_tok ^ row[k].count << 32) *
                   UINT64_C(0x9e3779b97f4a7c15);
        free(rc ? NULL : row);
    }
    slu_lengths_free(l[0]);
    slu_lengths_free(l[1]);
    assert_int_equal(slu_fake_held(), 0);
    seed = was;
    return rc;
}

static void lengths(void **unused)
{
    (void)unused;
    uint64_t want, got;
    struct slu_err err = SLU_ERR_INIT;
    for (int k = 0; k < 2; k++) {
        enum slu_device_kind kind = k ? SLU_DEVICE_CUDA : SLU_DEVICE_AUTO;
        slu_fake_set(0, SLU_FAKE_ONCE, SIZE_MAX);
        n_warning = 0;
        assert_int_equal(count_lengths(SLU_DEVICE_CPU, &want, &err), SLU_OK);
        assert_int_equal(slu_fake_calls(), 0);
        assert_int_equal(count_lengths(kind, &got, &err), SLU_OK);
        assert_true(want == got && n_warning == 0);
        long calls = slu_fake_calls(), woken = 3;
        assert_true(calls > 10);
        for (int mode = 0; mode < SLU_FAKE_MODES; mode++)
            for (long n = 1; n <= calls; n++) {
                n_warning = 0;
                slu_fake_set(n, (enum slu_fake_mode)mode, SIZE_MAX);
                int rc = count_lengths(kind, &got, &err);
                bool silent = kind == SLU_DEVICE_AUTO && n <= woken;
                if (kind == SLU_DEVICE_CUDA && rc == SLU_E_DEVICE) {
                    assert_int_equal(err.advice, SLU_ADVISE_DEVICE);
                    continue;
                }
                /* A select may fail that something after it does not mind. */
                assert_int_equal(rc, SLU_OK);
                assert_true(want == got);
                assert_true(n_warning <= 1);
                assert_true(!silent || n_warning == 0);
                assert_true(silent || n_warning == 1 || mode == SLU_FAKE_ONCE);
            }
    }
}

static void policy(void **unused)
{
    (void)unused;
    struct slu_device d;
    struct slu_err err = SLU_ERR_INIT;
    slu_fake_set(0, SLU_FAKE_ONCE, SIZE_MAX);
    assert_int_equal(slu_device_choose(&d, SLU_DEVICE_AUTO, 0, &err), SLU_OK);
    assert_int_equal(slu_fake_calls(), 0); /* not woken yet */
    assert_false(slu_device_take(&d, SLU_WORK_PACK, 0));
    assert_int_equal(slu_fake_calls(), 0);
    assert_true(slu_device_take(&d, SLU_WORK_PACK, slu_device_least(SLU_WORK_PACK, 1)));
    assert_string_equal(d.name, "cuda:0 (fake)");
    d.warn = warn;
    n_warning = 0;
    assert_int_equal(slu_device_fault(&d, 2, &err), SLU_OK);
    assert_int_equal(n_warning, 1);
    assert_string_equal(d.name, "cpu");
    assert_false(slu_device_take(&d, SLU_WORK_PACK, UINT64_MAX));
    assert_int_equal(slu_device_choose(&d, SLU_DEVICE_CPU, 0, &err), SLU_OK);
    assert_false(slu_device_take(&d, SLU_WORK_PACK, UINT64_MAX));
    assert_false(slu_device_take(NULL, SLU_WORK_PACK, UINT64_MAX));
    assert_int_equal(slu_device_choose(&d, SLU_DEVICE_CUDA, 1, &err), SLU_E_DEVICE);
    assert_int_equal(slu_device_choose(&d, SLU_DEVICE_CUDA, 0, &err), SLU_OK);
    assert_true(slu_device_take(&d, SLU_WORK_PACK, 1));
    assert_int_equal(slu_device_fault(&d, 2, &err), SLU_E_DEVICE);
    assert_int_equal(slu_device_choose(&d, SLU_DEVICE_AUTO, 5, &err), SLU_OK);
    assert_false(slu_device_take(&d, SLU_WORK_PACK, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy),
        cmocka_unit_test(lengths),
        cmocka_unit_test(pack_arrays),
        cmocka_unit_test(pack_too_large),
    };
    return cmocka_run_group_tests_name("fake device", tests, NULL, NULL);
}
