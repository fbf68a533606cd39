/* test_multi.c - bins of several lengths: the solver on histograms compared with one
 * that takes item by item. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/pack/packer.h"

static uint64_t state = 11;
static uint64_t rnd(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

enum { MOST = 20000, MOST_LEN = 1024 };

struct bin {
    uint64_t capacity, room, items;
    uint32_t of[MOST_LEN + 1]; /* items by length */
};

/* Fills a bin, one item at a time. */
static void fill(struct bin *b, const uint32_t *left, uint64_t capacity,
                 double threshold, uint64_t max_items)
{
    memset(b, 0, sizeof *b);
    b->capacity = b->room = capacity;
    while (b->items < max_items) {
        uint64_t len = b->room < MOST_LEN ? b->room : MOST_LEN;
        while (len && left[len] == b->of[len])
            len--;
        if (!len || (b->items && b->room <= (uint64_t)(threshold * (double)capacity)))
            return;
        b->of[len]++;
        b->items++;
        b->room -= len;
    }
}

static size_t plain(const struct slu_length_count *hist, size_t n,
                    const struct slu_pack_cfg *cfg, struct bin *bin)
{
    static uint32_t left[MOST_LEN + 1];
    static struct bin one;
    uint64_t most = cfg->max_items ? cfg->max_items : UINT64_MAX;
    size_t n_bin = 0, all = 0;
    memset(left, 0, sizeof left);
    for (size_t i = 0; i < n; i++) {
        left[hist[i].len_tok] = (uint32_t)hist[i].count;
        all += hist[i].count;
    }
    for (uint64_t longest = MOST_LEN; all; n_bin++) {
        while (!left[longest])
            longest--;
        struct bin *best = &bin[n_bin];
        best->capacity = 0;
        for (size_t b = 0; b < cfg->n_bin_tok; b++) {
            uint64_t c = cfg->bin_tok[b];
            if (c < longest)
                continue;
            fill(&one, left, c, cfg->padding_threshold, most);
            if (!best->capacity ||
                (double)one.room / (double)c <
                    (double)best->room / (double)best->capacity ||
                one.room <= (uint64_t)(cfg->padding_threshold * (double)c))
                *best = one;
            if (one.room <= (uint64_t)(cfg->padding_threshold * (double)c))
                break;
        }
        for (size_t l = 1; l <= MOST_LEN; l++)
            left[l] -= best->of[l];
        all -= best->items;
    }
    return n_bin;
}

static void compare(const struct slu_length_count *hist, size_t n,
                    const struct slu_pack_cfg *cfg)
{
    static struct bin want[MOST];
    static uint32_t got[MOST][MOST_LEN / 32], held[MOST];
    static uint64_t room[MOST];
    struct slu_pack_plan *plan;
    struct slu_pack_interval *v;
    size_t n_v, n_bin = plain(hist, n, cfg, want), bin = 0;
    assert_int_equal(slu_pack_solve(&plan, SLU_PACK_MULTI, hist, n, cfg, NULL), SLU_OK);
    assert_int_equal(plan->n_bin, n_bin);
    assert_int_equal(slu_pack_intervals(plan, &v, &n_v, NULL), SLU_OK);
    memset(held, 0, sizeof held);
    memset(got, 0, sizeof got);
    for (size_t i = 0; i < n_v; i++)
        for (uint64_t k = 0; k < v[i].count; k++, bin++) {
            assert_int_equal(v[i].capacity, want[bin].capacity);
            assert_int_equal(v[i].room, want[bin].room);
            assert_int_equal(v[i].items, want[bin].items);
            room[bin] = v[i].capacity;
        }
    assert_int_equal(bin, n_bin);
    for (size_t i = 0; i < plan->n_length; i++) {
        const struct slu_length_count *row = NULL;
        for (size_t h = 0; h < n; h++)
            if (hist[h].len_tok == plan->length[i].len_tok)
                row = &hist[h];
        assert_non_null(row);
        for (uint64_t rank = 0; rank < row->count; rank++) {
            uint64_t b, slot;
            slu_pack_place(plan, i, rank, &b, &slot);
            assert_true(b < n_bin && slot < want[b].items);
            assert_false(got[b][slot / 32] >> slot % 32 & 1);
            got[b][slot / 32] |= 1u << slot % 32;
            held[b]++;
            room[b] -= row->len_tok;
            assert_true(want[b].of[row->len_tok]-- > 0);
        }
    }
    for (size_t b = 0; b < n_bin; b++) {
        assert_int_equal(held[b], want[b].items);
        assert_int_equal(room[b], want[b].room);
    }
    free(v);
    slu_pack_plan_free(plan);
}

static void test_trials(void **arg)
{
    (void)arg;
    static const uint64_t sets[][4] = {
        {1024}, {256, 512, 1024}, {64, 100, 1000}, {7, 8, 9, 31}, {16, 32, 64, 128}};
    static const size_t size[] = {1, 3, 3, 4, 4};
    static const double threshold[] = {0, 0.02, 0.1, 0.3, 1};
    static struct slu_length_count hist[MOST_LEN];
    for (int t = 0; t < 300; t++) {
        size_t set = rnd(5), n = 0;
        struct slu_pack_cfg cfg = {.capacity = sets[set][size[set] - 1],
                                   .max_items = rnd(3) ? 0 : 1 + rnd(6),
                                   .bin_tok = sets[set],
                                   .n_bin_tok = size[set],
                                   .padding_threshold = threshold[rnd(5)]};
        uint64_t dense = 1 + rnd(40), most = 1 + rnd(rnd(2) ? 4 : 60), left = MOST;
        for (uint64_t l = 1; l <= cfg.capacity && n < MOST_LEN; l++) {
            if (rnd(dense))
                continue;
            hist[n] = (struct slu_length_count){l, 1 + rnd(most)};
            if (hist[n].count > left)
                break;
            left -= hist[n++].count;
        }
        compare(hist, n, &cfg);
    }
}

static void test_threshold_trades(void **arg)
{
    (void)arg;
    static const uint64_t bins[] = {256, 512, 1024};
    static struct slu_length_count hist[MOST_LEN];
    struct slu_pack_sum last = {0};
    for (size_t i = 0; i < MOST_LEN; i++)
        hist[i] = (struct slu_length_count){i + 1, 1000};
    for (int k = 0; k < 3; k++) {
        struct slu_pack_cfg cfg = {.capacity = 1024,
                                   .bin_tok = bins,
                                   .n_bin_tok = 3,
                                   .padding_threshold = 0.1 * k};
        struct slu_pack_plan *plan;
        assert_int_equal(
            slu_pack_solve(&plan, SLU_PACK_MULTI, hist, MOST_LEN, &cfg, NULL), SLU_OK);
        struct slu_pack_sum s = slu_pack_plan_sum(plan);
        if (k) { /* more padding, and more bins for as many documents */
            assert_true(s.ids > last.ids);
            assert_true(s.bins > last.bins);
        } else {
            assert_true((double)s.tok > 0.999 * (double)s.ids);
        }
        last = s;
        slu_pack_plan_free(plan);
    }
}

static void test_refused(void **arg)
{
    (void)arg;
    static const uint64_t down[] = {512, 256, 1024}, up[] = {256, 512};
    struct slu_length_count hist[] = {{100, 1}};
    struct slu_pack_plan *plan;
    struct slu_pack_cfg cfg[] = {
        {.capacity = 1024},
        {.capacity = 1024, .bin_tok = down, .n_bin_tok = 3},
        {.capacity = 1024, .bin_tok = up, .n_bin_tok = 2},
        {.capacity = 512, .bin_tok = up, .n_bin_tok = 2, .padding_threshold = 1.5}};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(slu_pack_solve(&plan, SLU_PACK_MULTI, hist, 1, &cfg[i], NULL),
                         SLU_E_USAGE);
}

static void test_a_thousand_million(void **arg)
{
    (void)arg;
    static const uint64_t bins[] = {256, 512, 1024, 2048, 4096, 8192};
    static struct slu_length_count hist[8192];
    for (size_t i = 0; i < 8192; i++)
        hist[i] = (struct slu_length_count){i + 1, 1000000000 / (i + 10)};
    struct slu_pack_cfg cfg = {
        .capacity = 8192, .bin_tok = bins, .n_bin_tok = 6, .padding_threshold = 0.05};
    struct slu_pack_plan *plan;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    assert_int_equal(slu_pack_solve(&plan, SLU_PACK_MULTI, hist, 8192, &cfg, NULL),
                     SLU_OK);
    clock_gettime(CLOCK_MONOTONIC, &b);
    print_message("%.1f ms, %zu groups\n",
                  (double)(b.tv_sec - a.tv_sec) * 1e3 +
                      (double)(b.tv_nsec - a.tv_nsec) * 1e-6,
                  plan->n_group);
    assert_true(plan->n_group < 1000000);
    slu_pack_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trials),
        cmocka_unit_test(test_threshold_trades),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_a_thousand_million),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
