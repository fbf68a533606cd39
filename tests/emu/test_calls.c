/* Each call that a kernel makes to the runtime failing in turn: that is answered, not
 * that arguments are wrong, and nothing of it is left for the next call. What a kernel
 * does for bins of many items. And the policy of lib/base/device.h with its own
 * thresholds, on a device that is there. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/copy.h"
#include "kernels/hash.h"
#include "kernels/histogram.h"
#include "kernels/place.h"
#include "kernels/scan.h"
#include "kernels/sort.h"
#include "lib/base/device.h"
#include "tests/emu/emu.h"

enum { N = 5000, LEN = 3, MOST_WORK = 1 << 20, MANY = (1 << 16) + 1 };

/* Device memory: N lengths, N runs that a plan makes of them, ids; MANY sequences of
 * one id each. */
static struct {
    void *len, *src, *order, *step, *interval, *run_item, *run_dst, *ids, *out;
    void *first, *ones, *hash, *work;
} on;

static void *put(const void *host, size_t n_byte)
{
    void *p;
    assert_int_equal(slu_device_alloc(&p, n_byte), 0);
    assert_int_equal(host ? slu_device_put(p, host, n_byte, NULL)
                          : slu_device_zero(p, n_byte, NULL),
                     0);
    return p;
}

static int set_up(void **state)
{
    (void)state;
    static uint64_t src[N];
    static uint32_t len[N], ones[MANY];
    const struct slu_place_step step = {
        .repeat = 1, .len_tok = LEN, .parent = SLU_PLACE_OPENED};
    const struct slu_place_interval interval = {.items = 1, .capacity = LEN};
    for (uint32_t i = 0; i < N; i++) {
        len[i] = LEN;
        src[i] = (uint64_t)LEN * i;
    }
    for (uint32_t i = 0; i < MANY; i++)
        ones[i] = 1;
    on.len = put(len, sizeof len);
    on.src = put(src, sizeof src);
    on.step = put(&step, sizeof step);
    on.interval = put(&interval, sizeof interval);
    on.order = put(NULL, N * 4);
    on.run_item = put(NULL, N * 4);
    on.run_dst = put(NULL, N * 8);
    on.ids = put(NULL, N * LEN * 2 + 16);
    on.out = put(NULL, N * LEN * 2);
    on.first = put(NULL, MANY * 8);
    on.ones = put(ones, sizeof ones);
    on.hash = put(NULL, MANY * 16);
    on.work = put(NULL, MOST_WORK);
    return 0;
}

/* ---- the kernels; sort and scan say first what workspace they need ---- */

static int histogram(void)
{
    return slu_histogram_cuda(on.len, N, on.out, 1000, NULL);
}

static int sort(void)
{
    size_t n = slu_sort_lengths_cuda_work(N, LEN);
    assert_true(n <= MOST_WORK);
    return slu_sort_lengths_cuda(on.len, N, LEN, 0, on.order, on.work, n, NULL);
}

static int place(void)
{
    const struct slu_place p = {on.order, N, on.step, 1, on.interval, 1};
    return slu_place_cuda(&p, on.run_item, on.run_dst, NULL);
}

static int copy(void)
{
    const struct slu_copy g = {.pool = on.ids,
                               .src = on.src,
                               .len = on.len,
                               .run_item = on.run_item,
                               .run_dst = on.run_dst,
                               .n_run = N,
                               .tok_bytes = 2};
    return slu_copy_cuda(&g, 0, N * LEN, on.out, NULL);
}

/* Of two launches. */
static int hash(void)
{
    const struct slu_hash_seqs s = {
        .tok = on.ids, .tok_bytes = 2, .first = on.first, .len = on.ones, .n = MANY};
    return slu_hash_cuda(&s, on.hash, NULL);
}

static int scan(void)
{
    size_t n = slu_eos_lengths_cuda_work(N * LEN);
    return slu_eos_lengths_cuda(on.ids, N * LEN, 2, 1, on.run_dst, 100, on.order,
                                on.out, on.work, n, NULL);
}

static void test_calls(void **state)
{
    static const struct {
        const char *name;
        int (*call)(void);
    } KERNEL[] = {{"sort", sort},           {"place", place}, {"copy", copy},
                  {"histogram", histogram}, {"hash", hash},   {"scan", scan}};
    (void)state;
    for (size_t k = 0; k < sizeof KERNEL / sizeof *KERNEL; k++) {
        assert_int_equal(KERNEL[k].call(), 0); /* what is asked once is known now */
        emu_fail_call(0);
        assert_int_equal(KERNEL[k].call(), 0);
        uint64_t n = emu_fail_call(0);
        assert_true(n > 0);
        for (uint64_t i = 1; i <= n; i++) {
            emu_fail_call(i);
            int code = KERNEL[k].call();
            emu_fail_call(0);
            /* CUB has names of its own for what it meets. */
            if (code == 0 || code == cudaErrorInvalidValue)
                fail_msg("%s: call %d of %d fails: %d, %s", KERNEL[k].name, (int)i,
                         (int)n, code, slu_device_error(code));
            assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
            assert_int_equal(KERNEL[k].call(), 0);
        }
    }
}

/* Instructions of lanes to place bins of `depth` items, each by a step of its own. */
static double placed_by(uint32_t depth)
{
    static struct slu_place_step step[N];
    uint32_t n = N / depth * depth, bins = n / depth;
    struct slu_place_interval interval = {.items = depth, .capacity = depth};
    for (uint32_t i = 0; i < depth; i++) {
        step[i] = (struct slu_place_step){.first = (uint64_t)i * bins,
                                          .repeat = 1,
                                          .len_tok = 1,
                                          .slot = i,
                                          .used = i};
        slu_place_link(step, i, i ? i - 1 : SLU_PLACE_OPENED);
    }
    interval.last = depth - 1;
    void *steps = put(step, depth * sizeof *step);
    void *intervals = put(&interval, sizeof interval);
    const struct slu_place p = {on.order, n, steps, depth, intervals, 1};
    uint64_t before = emu_count.lane_ins;
    assert_int_equal(slu_place_cuda(&p, on.run_item, on.run_dst, NULL), 0);
    slu_device_free(steps);
    slu_device_free(intervals);
    return (double)(emu_count.lane_ins - before) / n;
}

/* Each load of a step waits for the one before it: they may not grow with the bin. */
static void test_deep_bins(void **state)
{
    (void)state;
    double few = placed_by(8), many = placed_by(N);
    if (many > 4 * few)
        fail_msg("%.0f instructions an item, in bins of 8 items %.0f", many, few);
}

/* Work that comes in parts is worth a device when the parts together are. */
static void test_policy(void **state)
{
    (void)state;
    struct slu_device d;
    struct slu_err err = SLU_ERR_INIT;
    uint64_t least = slu_device_least(SLU_WORK_PACK, 2);
    assert_true(least > slu_device_least(SLU_WORK_PACK, 1));
    /* From so many threads on the bus is slower than they are. */
    assert_true(slu_device_least(SLU_WORK_PACK, 9) < UINT64_MAX);
    assert_true(slu_device_least(SLU_WORK_PACK, 10) == UINT64_MAX);
    assert_true(slu_device_least(SLU_WORK_SCAN, 1) < UINT64_MAX);
    assert_true(slu_device_least(SLU_WORK_SCAN, 2) == UINT64_MAX);
    assert_true(slu_device_least(SLU_WORK_HISTOGRAM, 1) == UINT64_MAX);
    assert_int_equal(slu_device_choose(&d, SLU_DEVICE_AUTO, 0, &err), SLU_OK);
    d.n_threads = 2;
    assert_false(slu_device_take(&d, SLU_WORK_PACK, least / 2));
    assert_false(slu_device_take(&d, SLU_WORK_PACK, least - least / 2 - 1));
    assert_string_equal(d.name, "cpu");
    assert_false(d.taken);
    assert_true(slu_device_take(&d, SLU_WORK_PACK, 1));
    assert_string_equal(d.name, "cuda:0 (emulated sm_80)");
    assert_true(d.taken);
    assert_true(slu_device_take(&d, SLU_WORK_PACK, UINT64_MAX));
    assert_true(slu_device_take(&d, SLU_WORK_PACK, 1));
    assert_false(slu_device_take(&d, SLU_WORK_SCAN, UINT64_MAX)); /* never */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls),
                                       cmocka_unit_test(test_deep_bins),
                                       cmocka_unit_test(test_policy)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}
