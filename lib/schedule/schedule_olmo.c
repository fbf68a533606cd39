/* schedule_olmo.c - the order in which OLMo-core's variable-sequence-length loader
 * takes its batches (olmo_core.data: NumpyVSLDataLoader, VSLCurriculum and its
 * subclasses).
 *
 * Batches are numbered bucket by bucket, shortest first; batch b of a bucket is its run
 * b. One generator, numpy's PCG64 with seed + epoch (epochs count from 1 there), serves
 * a whole epoch.
 *
 * natural: one draw swaps a batch of the longest bucket with the first batch, so that a
 * lack of memory shows at once; all but the first are then shuffled.
 *
 * grow-p2, grow-linear: each bucket's batches, cut to a multiple of the cycles, are
 * dealt evenly to cycles. Within a cycle they are dealt to as many sub-cycles as there
 * are buckets, in proportion to the bucket's row of odds (32 16 8 4 2 1 / 16 32 8 4 2 1
 * / …); each share is rounded to the nearest, ties to even, and missing batches are
 * added to the last sub-cycle. Each sub-cycle is shuffled. At the end the first batch
 * of the longest bucket and the first batch of all change places.
 *
 * If the shares round up to more than there is, the original fails an assertion and no
 * training begins. Here the excess is taken from the last sub-cycles, the counterpart
 * of adding what is missing there.
 */
#include "lib/schedule/schedule_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/schedule/pcg64.h"

enum { MAX_BUCKETS = 41 }; /* lengths 2^0 … 2^40 */

int slu_olmo_runs(struct slu_steps_info *info, struct slu_err *err)
{
    uint64_t fewest = UINT64_MAX, most = 0;
    bool natural = info->flags & SLU_STEPS_NATURAL;
    if (info->n_bucket > MAX_BUCKETS)
        return slu_fail(err, SLU_E_MISMATCH, "%zu buckets are too many for OLMo-core",
                        info->n_bucket);
    for (size_t i = 0; i < info->n_bucket; i++) {
        struct slu_steps_bucket *b = &info->bucket[i];
        uint64_t kept = natural ? b->runs : b->runs / info->cycles * info->cycles;
        b->dropped[SLU_DROP_CYCLES] = (b->runs - kept) * b->per_step;
        b->runs = kept;
        fewest = kept < fewest ? kept : fewest;
        most = kept > most ? kept : most;
    }
    for (size_t i = 0; i < info->n_bucket && info->flags & SLU_STEPS_BALANCED; i++) {
        struct slu_steps_bucket *b = &info->bucket[i];
        b->dropped[SLU_DROP_BALANCE] = (b->runs - fewest) * b->per_step;
        b->runs = fewest;
    }
    if (most == 0 || (info->flags & SLU_STEPS_BALANCED && fewest == 0))
        return slu_fail(err, SLU_E_MISMATCH,
                        "no bucket has a step for each of %llu cycles; take smaller "
                        "steps, fewer cycles or an unbalanced curriculum",
                        (unsigned long long)info->cycles);
    if (natural && info->bucket[info->n_bucket - 1].runs == 0)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the longest bucket has less than one step, and OLMo-core's "
                        "natural curriculum begins with one; take smaller steps");
    return SLU_OK;
}

/* Returns a bucket's odds in sub-cycle k: up from its own place to the first, then
 * down. */
static uint64_t odds_at(const struct slu_steps_info *info, size_t bucket, size_t k)
{
    size_t n = info->n_bucket, start = n - bucket;
    size_t v = start + k <= n ? start + k : start - (start + k) % n;
    return strcmp(info->curriculum, "grow-p2") == 0 ? UINT64_C(1) << (v - 1) : v;
}

/* Deals `count` batches to sub-cycles: share[k]. Returns true if the original fails. */
static bool shares(const struct slu_steps_info *info, size_t bucket, uint64_t count,
                   uint64_t *share)
{
    size_t n = info->n_bucket;
    uint64_t divisor = 0, total = 0;
    for (size_t k = 0; k < n; k++)
        divisor += odds_at(info, bucket, k);
    for (size_t k = 0; k < n; k++) {
        double p = (double)odds_at(info, bucket, k) / (double)divisor;
        share[k] = (uint64_t)nearbyint(p * (double)count);
        total += share[k];
    }
    if (total < count)
        share[n - 1] += count - total;
    uint64_t excess = total > count ? total - count : 0;
    for (size_t k = n; k-- > 0 && excess;) {
        uint64_t take = excess < share[k] ? excess : share[k];
        share[k] -= take;
        excess -= take;
    }
    return total > count;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t t = *a;
    *a = *b;
    *b = t;
}

static void natural_order(const struct slu_steps_info *info, struct slu_pcg64 *g,
                          uint32_t *order)
{
    size_t n = (size_t)info->pass_steps;
    uint32_t last = (uint32_t)info->bucket[info->n_bucket - 1].runs;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    swap(&order[(uint32_t)n - last + slu_pcg64_upto(g, last - 1)], &order[0]);
    slu_pcg64_shuffle(g, order + 1, n - 1);
}

int slu_olmo_order(const struct slu_steps_info *info, uint64_t epoch, uint32_t *order,
                   uint64_t *faults, struct slu_err *err)
{
    struct slu_pcg64 g;
    size_t n = info->n_bucket, filled = 0;
    slu_pcg64_seed(&g, info->seed + epoch + 1);
    if (info->flags & SLU_STEPS_NATURAL) {
        natural_order(info, &g, order);
        return SLU_OK;
    }
    uint64_t *share = calloc(n * n, sizeof *share), *next = calloc(n, sizeof *next);
    if (!share || !next) {
        free(share);
        free(next);
        return slu_fail_nomem(err, n * n * sizeof *share);
    }
    for (size_t b = 0, base = 0; b < n; b++) {
        uint64_t each = info->bucket[b].runs / info->cycles;
        *faults += shares(info, b, each, share + b * n);
        next[b] = base;
        base += info->bucket[b].runs;
    }
    for (uint64_t cycle = 0; cycle < info->cycles; cycle++)
        for (size_t k = 0; k < n; k++) {
            size_t begin = filled;
            for (size_t b = 0; b < n; b++)
                for (uint64_t i = share[b * n + k]; i-- > 0;)
                    order[filled++] = (uint32_t)next[b]++;
            slu_pcg64_shuffle(&g, order + begin, filled - begin);
        }
    uint32_t longest = (uint32_t)(info->pass_steps - info->bucket[n - 1].runs);
    for (size_t i = 0; i < filled; i++)
        if (order[i] >= longest) {
            swap(&order[i], &order[0]);
            break;
        }
    free(share);
    free(next);
    return SLU_OK;
}
