/* substring_scan_body.h - the code that every SIMD level of substring_scan compiles.
 * The including file defines begins(), which lists the positions whose value differs
 * from the one before.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/dedup/substring/substring_scan.h"

static inline uint32_t hash_id(uint32_t id)
{
    uint32_t x = (id + 1) * 0x85ebca6bu;

    return x ^ x >> 15;
}

static inline void hash_16(const uint16_t *restrict tok, size_t n, uint32_t *restrict h)
{
    for (size_t i = 0; i < n; i++)
        h[i] = hash_id(tok[i]);
}

static inline void hash_32(const uint32_t *restrict tok, size_t n, uint32_t *restrict h)
{
    for (size_t i = 0; i < n; i++)
        h[i] = hash_id(tok[i]);
}

/* Turns hashes of one id into hashes of k ids: of 2, 4, … ids each, then of k ids as
 * two that overlap. A polynomial mod 2^32, whose bits are mixed at the end. Returns the
 * number of hashes. */
static inline size_t hashes(size_t n, unsigned k, uint32_t *h)
{
    uint32_t c = 0x9e3779b1;
    unsigned m = 1;

    for (; 2 * m <= k; m *= 2, c *= c) {
        n -= m;
        for (size_t i = 0; i < n; i++)
            h[i] = h[i] * c + h[i + m];
    }
    if (m < k) {
        n -= k - m;
        for (size_t i = 0; i < n; i++)
            h[i] = h[i] * c + h[i + k - m];
    }
    return n;
}

static inline uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline size_t scan(const struct slu_scan *s, const void *tok, unsigned tok_bytes,
                          size_t n_start, uint32_t *h, uint32_t *begin)
{
    size_t n = n_start + s->n_tok - 1;

    if (tok_bytes == 2)
        hash_16(tok, n, h);
    else
        hash_32(tok, n, h);
    n = hashes(n, s->k, h);
    uint32_t high = ~UINT32_C(0) << s->place_bits;
    unsigned m = 1;

    /* The position is below the hash, so the minimum is the leftmost of equal
     * hashes. */
    for (size_t i = 0; i < n; i++) {
        uint32_t x = h[i];
        x = (x ^ x >> 16) * 0x7feb352du;
        x = (x ^ x >> 15) * 0x846ca68bu;
        h[i] = ((x ^ x >> 16) & high) | (uint32_t)i;
    }
    for (; 2 * m <= s->w; m *= 2) {
        n -= m;
        for (size_t i = 0; i < n; i++)
            h[i] = least(h[i], h[i + m]);
    }
    if (m < s->w) {
        n -= s->w - m;
        for (size_t i = 0; i < n; i++)
            h[i] = least(h[i], h[i + s->w - m]);
    }
    return begins(h, n_start, begin);
}
