/* shingle_set.c - sets of hashes: sorted, hashed, compared. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/dedup/near/shingle.h"

enum {
    FEW = 48,            /* up to this number: only insertion sort */
    SMALL = 1 << 10,     /* up to this number: digits of 8 bits */
    LARGE = 1 << 16,     /* above this number: four digits, else two */
    DIGIT_BITS_MAX = 11, /* so that the counters of a pass fit the first-level cache */
    MOVES = 8            /* moves by insertion after the passes, for each hash */
};

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Sorts; false if more than max_move moves would be needed. */
static bool insertion_sort(uint64_t *h, size_t n, size_t max_move)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t x = h[i];
        size_t k = i;
        for (; k && h[k - 1] > x; k--)
            h[k] = h[k - 1];
        h[k] = x;
        if (i - k > max_move)
            return false;
        max_move -= i - k;
    }
    return true;
}

/* One stable pass by `bits` bits from `shift` on. */
static void pass(const uint64_t *from, uint64_t *to, size_t n, unsigned shift,
                 unsigned bits)
{
    size_t count[1 << DIGIT_BITS_MAX], sum = 0;
    const size_t n_digit = (size_t)1 << bits, mask = n_digit - 1;

    memset(count, 0, n_digit * sizeof *count);
    for (size_t i = 0; i < n; i++)
        count[from[i] >> shift & mask]++;
    for (size_t d = 0; d < n_digit; d++) {
        size_t c = count[d];
        count[d] = sum;
        sum += c;
    }
    for (size_t i = 0; i < n; i++)
        to[count[from[i] >> shift & mask]++] = from[i];
}

/* Uniform hashes are nearly in order when they are sorted by their highest 2 log2(n)
 * bits. */
static void sort(uint64_t *h, size_t n, uint64_t *spare)
{
    const unsigned bits = n <= SMALL ? 8 : DIGIT_BITS_MAX;

    if (n <= FEW) {
        insertion_sort(h, n, SIZE_MAX);
        return;
    }
    for (unsigned i = n <= LARGE ? 2 : 4; i > 0; i -= 2) {
        pass(h, spare, n, 64 - i * bits, bits);
        pass(spare, h, n, 64 - (i - 1) * bits, bits);
    }
    if (!insertion_sort(h, n, MOVES * n))
        qsort(h, n, sizeof *h, compare);
}

size_t slu_set_make(uint64_t *hash, size_t n, uint64_t *spare)
{
    size_t n_out = 0;

    sort(hash, n, spare);
    for (size_t i = 0; i < n; i++) {
        hash[n_out] = hash[i];
        n_out += i + 1 == n || hash[i] != hash[i + 1];
    }
    return n_out;
}

int slu_hashes_to_set(struct slu_hashes *h, struct slu_err *err)
{
    int rc = slu_grow(&h->spare, &h->cap_spare, h->n, sizeof *h->spare, err);

    if (!rc)
        h->n = slu_set_make(h->hash, h->n, h->spare);
    return rc;
}

struct slu_u128 slu_set_hash128(const uint64_t *hash, size_t n)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "hashes are stored as they are in memory"
#endif
    return slu_hash128(hash, n * sizeof *hash);
}

size_t slu_sets_intersect(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b,
                          size_t need)
{
    enum { STEPS = 32 };
    size_t i = 0, k = 0, n = 0;

    while (i < n_a && k < n_b) {
        size_t left = n_a - i < n_b - k ? n_a - i : n_b - k;
        if (n + left < need)
            return n;
        /* No step reads past an end: each step advances each side by at most one. */
        for (size_t step = left < STEPS ? left : STEPS; step; step--) {
            uint64_t x = a[i], y = b[k];
            n += x == y;
            i += x <= y;
            k += y <= x;
        }
    }
    return n;
}

size_t slu_sets_need(size_t n_a, size_t n_b, uint64_t num, uint64_t den)
{
    /* common * den >= num * (n_a + n_b - common) */
    unsigned __int128 right = (unsigned __int128)num * ((unsigned __int128)n_a + n_b);

    return (size_t)((right + num + den - 1) / ((unsigned __int128)num + den));
}
