#include "radix.h"

#include <string.h>

#define INSERTION_MAX 40

/* Permutes e so that group g (digit = prefix >> shift & mask) lies in [head[g],
 * end[g]); advances head to end. */
static void permute(struct slu_entry *e, uint64_t *head, const uint64_t *end,
                    size_t n_group, unsigned shift)
{
    uint64_t mask = n_group - 1;

    for (size_t g = 0; g < n_group; g++) {
        while (head[g] < end[g]) {
            struct slu_entry x = e[head[g]];
            uint64_t d;
            while ((d = x.prefix >> shift & mask) != g) {
                struct slu_entry y = e[head[d]];
                e[head[d]++] = x;
                x = y;
            }
            e[head[g]++] = x;
        }
    }
}

/* Counts e's groups by (prefix >> shift & mask), and moves entries to their groups in
 * order. */
static void partition(struct slu_entry *e, size_t n, unsigned bits, unsigned shift,
                      uint64_t first, uint64_t *start)
{
    uint64_t head[1 << SLU_PARTITION_MAX_BITS];
    size_t n_group = (size_t)1 << bits;

    memset(head, 0, n_group * sizeof *head);
    for (size_t i = 0; i < n; i++)
        head[e[i].prefix >> shift & (n_group - 1)]++;
    for (size_t g = 0, sum = 0; g < n_group; g++) {
        size_t k = head[g];
        head[g] = sum;
        start[g] = first + sum;
        sum += k;
        start[g + 1] = first + sum;
    }
    uint64_t end[1 << SLU_PARTITION_MAX_BITS];
    for (size_t g = 0; g < n_group; g++)
        end[g] = start[g + 1] - first;
    permute(e, head, end, n_group, shift);
}

/* Many entries are first divided into few groups, each of which then fits the cache;
 * dividing into all groups at once would cost a cache miss for each entry. */
enum { FIRST_BITS = 6, MANY = 1 << 15 };

void slu_entry_partition(struct slu_entry *e, size_t n, unsigned bits, uint64_t *start)
{
    uint64_t first[(1 << FIRST_BITS) + 1];
    unsigned rest = bits - FIRST_BITS;

    if (n < MANY || bits <= FIRST_BITS + 2) {
        partition(e, n, bits, 64 - bits, 0, start);
        return;
    }
    partition(e, n, FIRST_BITS, 64 - FIRST_BITS, 0, first);
    for (size_t g = 0; g < (size_t)1 << FIRST_BITS; g++)
        partition(e + first[g], first[g + 1] - first[g], rest, 64 - bits, first[g],
                  start + (g << rest));
}

static void insertion_sort(struct slu_entry *e, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct slu_entry x = e[i];
        size_t j = i;
        for (; j > 0 && e[j - 1].prefix > x.prefix; j--)
            e[j] = e[j - 1];
        e[j] = x;
    }
}

static void sort_digits(struct slu_entry *e, size_t n, unsigned shift)
{
    uint64_t head[257];
    uint64_t end[257];

    for (;;) {
        if (n <= INSERTION_MAX) {
            insertion_sort(e, n);
            return;
        }
        memset(end, 0, sizeof end);
        for (size_t i = 0; i < n; i++)
            end[e[i].prefix >> shift & 255]++;
        if (end[e[0].prefix >> shift & 255] != n)
            break;
        if (shift == 0)
            return; /* all equal */
        shift -= 8;
    }
    uint64_t sum = 0;
    for (size_t g = 0; g < 256; g++) {
        head[g] = sum;
        sum += end[g];
        end[g] = sum;
    }
    permute(e, head, end, 256, shift);
    if (shift == 0)
        return;
    for (size_t g = 0; g < 256; g++) {
        uint64_t from = g == 0 ? 0 : end[g - 1];
        if (end[g] - from > 1)
            sort_digits(e + from, end[g] - from, shift - 8);
    }
}

void slu_entry_sort(struct slu_entry *e, size_t n)
{
    sort_digits(e, n, 56);
}

static int less(const struct slu_entry *a, const struct slu_entry *b,
                int (*cmp)(void *, uint64_t, uint64_t), void *ctx)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix;
    return cmp(ctx, a->ref, b->ref) < 0;
}

static void sift_down(struct slu_entry *e, size_t i, size_t n,
                      int (*cmp)(void *, uint64_t, uint64_t), void *ctx)
{
    struct slu_entry x = e[i];

    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= n)
            break;
        if (c + 1 < n && less(&e[c], &e[c + 1], cmp, ctx))
            c++;
        if (!less(&x, &e[c], cmp, ctx))
            break;
        e[i] = e[c];
        i = c;
    }
    e[i] = x;
}

void slu_entry_sort_by(struct slu_entry *e, size_t n,
                       int (*cmp)(void *ctx, uint64_t ref_a, uint64_t ref_b), void *ctx)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(e, i, n, cmp, ctx);
    for (size_t i = n; i-- > 1;) {
        struct slu_entry x = e[0];
        e[0] = e[i];
        e[i] = x;
        sift_down(e, 0, i, cmp, ctx);
    }
}
