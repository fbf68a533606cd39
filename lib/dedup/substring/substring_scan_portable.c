/* substring_scan_portable.c - the scan in plain C: the oracle of the other levels. */
#include <stddef.h>
#include <stdint.h>

static inline size_t begins(const uint32_t *v, size_t n, uint32_t *begin)
{
    size_t n_begin = 1;

    begin[0] = 0;
    for (size_t i = 1; i < n; i++) {
        begin[n_begin] = (uint32_t)i;
        n_begin += v[i] != v[i - 1];
    }
    return n_begin;
}

#include "lib/dedup/substring/substring_scan_body.h"

size_t slu_scan_portable(const struct slu_scan *s, const void *tok, unsigned tok_bytes,
                         size_t n_start, uint32_t *hash, uint32_t *begin)
{
    return scan(s, tok, tok_bytes, n_start, hash, begin);
}
