/* scan_cpu.c - scan.h on the processor: finds the positions in a chunk, then counts
 * lengths. */
#include <string.h>

#include "scan_private.h"

static int has(const char *level)
{
#if defined(__x86_64__)
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
               __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
    if (!strcmp(level, "avx2"))
        return avx2;
    if (!strcmp(level, "avx512"))
        return avx2 && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512cd") &&
               __builtin_cpu_supports("avx512vbmi") &&
               __builtin_cpu_supports("avx512vbmi2");
#endif
    (void)level;
    return 1;
}

/* The best level comes first. */
static const struct slu_eos_kernel *const levels[] = {
#if defined(__x86_64__)
    &eos_avx512,
    &eos_avx2,
#elif defined(__aarch64__)
    &eos_neon,
#endif
    &eos_portable,
};

const struct slu_eos_kernel *slu_eos_kernel(const char *level)
{
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (has(levels[i]->name) && (!level || !strcmp(levels[i]->name, level)))
            return levels[i];
    return NULL;
}

const char *slu_eos_kernel_name(const struct slu_eos_kernel *k)
{
    return k->name;
}

static size_t find(const struct slu_eos_kernel *k, const void *tok, size_t from,
                   size_t n, unsigned tok_bytes, uint32_t eos, uint16_t *at)
{
    if (tok_bytes == 4)
        return k->find_32((const uint32_t *)tok + from, n, eos, at);
    return eos > UINT16_MAX
               ? 0
               : k->find_16((const uint16_t *)tok + from, n, (uint16_t)eos, at);
}

/* Counts the documents between neighbouring positions. */
static void count_between(const uint16_t *at, size_t n_at, uint64_t *count,
                          size_t n_bin, uint64_t *far, struct slu_eos_block *b)
{
    if (n_bin > EOS_CHUNK) {
        for (size_t i = 1; i < n_at; i++)
            count[at[i] - at[i - 1]]++;
        return;
    }
    for (size_t i = 1; i < n_at; i++) {
        size_t len = (size_t)(at[i] - at[i - 1]);
        if (len < n_bin)
            count[len]++;
        else
            far[b->n_far++] = len;
    }
}

void slu_eos_lengths(const struct slu_eos_kernel *k, const void *tok, size_t n,
                     unsigned tok_bytes, uint32_t eos, uint64_t *count, size_t n_bin,
                     uint64_t *far, struct slu_eos_block *b)
{
    uint16_t at[EOS_CHUNK + EOS_SLACK];
    uint64_t begin = 0; /* beginning of the open document */

    *b = (struct slu_eos_block){0, 0, 0, 0};
    for (size_t from = 0; from < n; from += EOS_CHUNK) {
        size_t m = n - from < EOS_CHUNK ? n - from : EOS_CHUNK;
        size_t n_at = find(k, tok, from, m, tok_bytes, eos, at);
        if (!n_at)
            continue;
        uint64_t len = from + at[0] + 1 - begin;
        if (!b->n_eos)
            b->head_tok = len;
        else if (len < n_bin)
            count[len]++;
        else
            far[b->n_far++] = len;
        count_between(at, n_at, count, n_bin, far, b);
        b->n_eos += n_at;
        begin = from + at[n_at - 1] + 1;
    }
    b->tail_tok = n - begin;
}

size_t slu_eos_find(const struct slu_eos_kernel *k, const void *tok, size_t n,
                    unsigned tok_bytes, uint32_t eos, uint32_t *out, size_t most,
                    size_t *n_seen)
{
    uint16_t at[EOS_CHUNK + EOS_SLACK];
    size_t n_out = 0;

    for (size_t from = 0; from < n; from += EOS_CHUNK) {
        size_t m = n - from < EOS_CHUNK ? n - from : EOS_CHUNK;
        size_t n_at = find(k, tok, from, m, tok_bytes, eos, at);
        size_t take = n_at < most - n_out ? n_at : most - n_out;
        for (size_t i = 0; i < take; i++)
            out[n_out + i] = (uint32_t)from + at[i];
        n_out += take;
        if (take < n_at) {
            *n_seen = (size_t)out[most - 1] + 1;
            return n_out;
        }
    }
    *n_seen = n;
    return n_out;
}
