/* schedule_passes.c - where the passes and cycles of a schedule begin, and how often it
 * takes each sequence. */
#include <stdlib.h>

#include "lib/schedule/epoch_order.h"
#include "lib/schedule/schedule_private.h"

typedef unsigned __int128 u128;

const char *slu_steps_drop_name(enum slu_steps_drop d)
{
    static const char *const name[] = {"remainder", "odds", "cycles", "balance",
                                       "tokens"};
    return name[d];
}

void slu_steps_info_release(struct slu_steps_info *info)
{
    free(info->bucket);
    info->bucket = NULL;
    info->n_bucket = 0;
}

/* Returns the sequences of a bucket that a pass takes in runs, at least in part. A bucket
 * that has less than a run takes no part: a step would have a sequence several times. */
static uint64_t places(const struct slu_steps_info *info,
                       const struct slu_steps_bucket *b)
{
    if (info->version == 1)
        return b->runs * b->per_step;
    return b->runs ? b->sequences : 0;
}

unsigned __int128 slu_passes_runs(const struct slu_steps_info *info,
                                  const struct slu_steps_bucket *b, uint64_t passes)
{
    return (u128)places(info, b) * passes / b->per_step;
}

uint64_t slu_steps_runs_before(const struct slu_steps_info *info, size_t b,
                               uint64_t pass, uint64_t cycle)
{
    const struct slu_steps_bucket *k = &info->bucket[b];
    uint64_t begin = (uint64_t)slu_passes_runs(info, k, pass);
    if (!cycle)
        return begin;
    uint64_t n = (uint64_t)slu_passes_runs(info, k, pass + 1) - begin;
    return begin + (uint64_t)((u128)n * cycle / info->cycles);
}

static u128 steps_before(const struct slu_steps_info *info, uint64_t pass,
                         uint64_t cycle)
{
    u128 n = 0;
    for (size_t b = 0; b < info->n_bucket; b++)
        n += slu_steps_runs_before(info, b, pass, cycle);
    return n;
}

uint64_t slu_steps_before_cycle(const struct slu_steps_info *info, uint64_t pass,
                                uint64_t cycle)
{
    return (uint64_t)steps_before(info, pass, cycle);
}

struct slu_steps_uses slu_steps_uses(const struct slu_steps_info *info, size_t b)
{
    const struct slu_steps_bucket *k = &info->bucket[b];
    uint64_t n = places(info, k), taken = k->used_steps * k->per_step;
    struct slu_steps_uses u = {.never = k->sequences};
    if (!taken)
        return u;
    u.times = taken / n;
    u.once_more = taken % n;
    u.as_many = n - u.once_more;
    u.never -= n;
    if (!u.times) { /* less than a pass */
        u.never += u.as_many;
        u.as_many = u.once_more;
        u.once_more = 0;
        u.times = 1;
    }
    return u;
}

uint64_t slu_steps_sequence(const struct slu_steps_info *info, size_t b, uint64_t place)
{
    const struct slu_steps_bucket *k = &info->bucket[b];
    if (info->version == 1)
        return place;
    struct slu_epoch_order o = {.seed = info->seed,
                                .epoch = place / k->sequences,
                                .bucket = b,
                                .n = k->sequences,
                                .block = k->block};
    return slu_epoch_sequence(&o, place % k->sequences);
}

uint64_t slu_pass_of(const struct slu_steps_info *info, uint64_t k)
{
    /* No pass has fewer steps than the first. */
    uint64_t low = 0, high = k / info->pass_steps;
    while (low < high && info->version == 2) {
        uint64_t mid = high - (high - low) / 2;
        if (steps_before(info, mid, 0) <= k)
            low = mid;
        else
            high = mid - 1;
    }
    return high;
}
