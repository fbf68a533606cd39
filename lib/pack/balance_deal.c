/* Deals costs to ranks, by the steps of balance.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/pack/balance.h"

/* A number and its sort key. */
struct keyed {
    uint64_t key;
    uint32_t i;
};

static int costly_first(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

struct deal {
    const uint64_t *cost;
    size_t n, n_bundle, per_rank;
    struct keyed *seq;    /* n, costliest first */
    struct keyed *bundle; /* n_bundle: a heap while dealing, then sorted */
    uint32_t *count;      /* by bundle */
    uint32_t *member;     /* n_bundle x per_rank */
};

static int cheaper(const struct keyed *a, const struct keyed *b)
{
    return a->key != b->key ? a->key < b->key : a->i < b->i;
}

static void sift_down(struct keyed *heap, size_t n)
{
    struct keyed top = heap[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && cheaper(&heap[child + 1], &heap[child]))
            child++;
        if (!cheaper(&heap[child], &top))
            break;
        heap[at] = heap[child];
    }
    heap[at] = top;
}

/* Deals sequences into bundles; sorts d->bundle from costly to cheap. */
static void deal_out(struct deal *d)
{
    for (size_t i = 0; i < d->n; i++)
        d->seq[i] = (struct keyed){d->cost[i], (uint32_t)i};
    qsort(d->seq, d->n, sizeof *d->seq, costly_first);
    for (size_t i = 0; i < d->n_bundle; i++)
        d->bundle[i] = (struct keyed){0, (uint32_t)i};
    size_t open = d->n_bundle;
    for (size_t i = 0; i < d->n; i++) {
        struct keyed *b = &d->bundle[0];
        d->member[b->i * d->per_rank + d->count[b->i]++] = d->seq[i].i;
        b->key += d->seq[i].key;
        if (d->count[b->i] == d->per_rank) { /* full: moves to after the heap */
            struct keyed full = *b;
            d->bundle[0] = d->bundle[--open];
            d->bundle[open] = full;
        }
        sift_down(d->bundle, open);
    }
    qsort(d->bundle, d->n_bundle, sizeof *d->bundle, costly_first);
}

/* Finds the swap of a member of `from` with one of `to`, both from costly to cheap,
 * that brings their costs nearest to each other. False if none makes the costlier one
 * cheaper. */
static int find_swap(const struct deal *d, const uint32_t *from, const uint32_t *to,
                     uint64_t apart, size_t *i, size_t *j)
{
    uint64_t best = apart; /* |2 x difference - apart| must be less */
    size_t k = 0;
    for (size_t x = 0; x < d->per_rank; x++) {
        uint64_t c = d->cost[from[x]];
        /* differences grow with k: try those on both sides of apart / 2 */
        while (k < d->per_rank &&
               (c <= d->cost[to[k]] || c - d->cost[to[k]] < apart / 2))
            k++;
        for (size_t y = k ? k - 1 : 0; y <= k && y < d->per_rank; y++) {
            if (c <= d->cost[to[y]])
                continue;
            uint64_t diff = c - d->cost[to[y]];
            if (diff >= apart)
                continue;
            uint64_t off = diff > apart - diff ? 2 * diff - apart : apart - 2 * diff;
            if (off < best) {
                best = off;
                *i = x;
                *j = y;
            }
        }
    }
    return best < apart;
}

/* Moves member number `at`, whose cost has changed, to its place in the order. */
static void resort(const struct deal *d, uint32_t *member, size_t at)
{
    uint32_t it = member[at];
    for (; at > 0 && d->cost[member[at - 1]] < d->cost[it]; at--)
        member[at] = member[at - 1];
    for (; at + 1 < d->per_rank && d->cost[member[at + 1]] > d->cost[it]; at++)
        member[at] = member[at + 1];
    member[at] = it;
}

/* Swaps between the ranks of a step, until no swap helps, 4 x ranks times at most. */
static void level(struct deal *d, struct keyed *rank, size_t ranks)
{
    for (size_t round = 0; round < 4 * ranks; round++) {
        struct keyed *hi = &rank[0], *lo = &rank[0];
        for (size_t r = 1; r < ranks; r++) {
            hi = rank[r].key > hi->key ? &rank[r] : hi;
            lo = rank[r].key < lo->key ? &rank[r] : lo;
        }
        uint32_t *from = &d->member[hi->i * d->per_rank],
                 *to = &d->member[lo->i * d->per_rank];
        size_t i = 0, j = 0;
        if (hi->key == lo->key || !find_swap(d, from, to, hi->key - lo->key, &i, &j))
            return;
        uint32_t x = from[i];
        uint64_t diff = d->cost[x] - d->cost[to[j]];
        from[i] = to[j];
        to[j] = x;
        resort(d, from, i);
        resort(d, to, j);
        hi->key -= diff;
        lo->key += diff;
    }
}

int slu_balance_deal(const uint64_t *cost, size_t n_step, size_t ranks, size_t per_rank,
                     uint32_t *order, struct slu_err *err)
{
    struct deal d = {
        cost, n_step * ranks * per_rank, n_step * ranks, per_rank, NULL, NULL, NULL,
        NULL};
    if (!d.n)
        return SLU_OK;
    int rc = SLU_OK;
    d.seq = malloc(d.n * sizeof *d.seq);
    d.bundle = malloc(d.n_bundle * sizeof *d.bundle);
    d.count = calloc(d.n_bundle, sizeof *d.count);
    d.member = malloc(d.n * sizeof *d.member);
    if (!d.seq || !d.bundle || !d.count || !d.member) {
        rc = slu_fail_nomem(err, d.n * sizeof *d.seq);
        goto out;
    }
    deal_out(&d);
    for (size_t b = 0; b < d.n_bundle; b++) {
        if (b % ranks == 0 && per_rank > 1)
            level(&d, &d.bundle[b], ranks);
        uint32_t *row = order + b * per_rank;
        memcpy(row, &d.member[d.bundle[b].i * per_rank], per_rank * sizeof *row);
        qsort(row, per_rank, sizeof *row, by_number);
    }
out:
    free(d.seq);
    free(d.bundle);
    free(d.count);
    free(d.member);
    return rc;
}

int slu_balance_mix(uint32_t *order, size_t n_step, size_t ranks, size_t per_rank,
                    uint64_t seed, uint64_t bucket, uint64_t window,
                    struct slu_err *err)
{
    size_t n = n_step * ranks * per_rank, n_key = n_step > ranks ? n_step : ranks;
    uint32_t *old = malloc((n + 1) * sizeof *old);
    struct keyed *step = malloc((n_step + 1) * sizeof *step),
                 *rank = malloc((n_key + 1) * sizeof *rank);
    int rc = SLU_OK;
    if (!old || !step || !rank) {
        rc = slu_fail_nomem(err, n * sizeof *old);
        goto out;
    }
    memcpy(old, order, n * sizeof *old);
    for (size_t s = 0; s < n_step; s++)
        step[s] = (struct keyed){slu_draw(seed, bucket, window, s, 0), (uint32_t)s};
    qsort(step, n_step, sizeof *step, by_key);
    for (size_t s = 0; s < n_step; s++) {
        for (size_t r = 0; r < ranks; r++)
            rank[r] = (struct keyed){slu_draw(seed, bucket, window, step[s].i, r + 1),
                                     (uint32_t)r};
        qsort(rank, ranks, sizeof *rank, by_key);
        for (size_t r = 0; r < ranks; r++)
            memcpy(order + (s * ranks + r) * per_rank,
                   old + (step[s].i * ranks + rank[r].i) * per_rank,
                   per_rank * sizeof *order);
    }
out:
    free(old);
    free(step);
    free(rank);
    return rc;
}

void slu_balance_measure(const uint64_t *cost, const uint32_t *order, size_t n_step,
                         size_t ranks, size_t per_rank, struct slu_balance_sum *sum)
{
    for (size_t s = 0; s < n_step; s++) {
        uint64_t most = 0, all = 0;
        for (size_t r = 0; r < ranks; r++) {
            uint64_t load = 0;
            for (size_t i = 0; i < per_rank; i++) {
                size_t at = (s * ranks + r) * per_rank + i;
                load += cost[order ? order[at] : at];
            }
            most = load > most ? load : most;
            all += load;
        }
        double mean = (double)all / (double)ranks;
        double ratio = all ? (double)most / mean : 1;
        sum->steps++;
        sum->ratio += ratio;
        sum->worst = ratio > sum->worst ? ratio : sum->worst;
        sum->max += (double)most;
        sum->mean += mean;
    }
}
