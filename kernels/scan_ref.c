/* scan_ref.c - the oracle of scan.h. */
#include "scan.h"

static uint32_t id(const void *tok, unsigned tok_bytes, size_t i)
{
    return tok_bytes == 2 ? ((const uint16_t *)tok)[i] : ((const uint32_t *)tok)[i];
}

void slu_eos_lengths_ref(const void *tok, size_t n, unsigned tok_bytes, uint32_t eos,
                         uint64_t *count, size_t n_bin, uint64_t *far,
                         struct slu_eos_block *b)
{
    uint64_t len = 0;

    *b = (struct slu_eos_block){0, 0, 0, 0};
    for (size_t i = 0; i < n; i++) {
        len++;
        if (id(tok, tok_bytes, i) != eos)
            continue;
        if (b->n_eos++ == 0)
            b->head_tok = len;
        else if (len < n_bin)
            count[len]++;
        else
            far[b->n_far++] = len;
        len = 0;
    }
    b->tail_tok = len;
}

size_t slu_eos_find_ref(const void *tok, size_t n, unsigned tok_bytes, uint32_t eos,
                        uint32_t *at, size_t most, size_t *n_seen)
{
    size_t n_at = 0, i = 0;

    for (; i < n; i++) {
        if (id(tok, tok_bytes, i) != eos)
            continue;
        if (n_at == most)
            break;
        at[n_at++] = (uint32_t)i;
    }
    *n_seen = i == n ? n : (size_t)at[most - 1] + 1;
    return n_at;
}
