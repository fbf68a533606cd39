/* hash.c - the device hashes sequences as the oracle does. That the oracle is XXH3 is
 * seen by tests/unit/test_core.c, which has libxxhash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "kernels/hash.h"
#include "tests/kernels/kernels.h"

/* n sequences of `shortest` to `shortest` + n - 1 ids, anywhere in an array; of many
 * sequences, four lengths. */
static bool hash_case(size_t n, uint32_t shortest, unsigned tok_bytes)
{
    const size_t n_tok = n + shortest + 9, n_byte = n_tok * tok_bytes;
    uint8_t *tok = need(n_byte);
    uint64_t *first = need(n * 8), *a = need(n * 16), *b = need(n * 16);
    uint32_t *len = need(n * 4);
    for (size_t i = 0; i < n_byte; i++)
        tok[i] = (uint8_t)rnd(256);
    for (size_t i = 0; i < n; i++) {
        len[i] = shortest + (uint32_t)(i % (n > 1000 ? 4 : n));
        first[i] = rnd(n_tok - len[i] + 1);
    }
    const struct slu_hash_seqs s = {tok, tok_bytes, first, len, n};
    slu_hash_ref(&s, a);
    const struct slu_hash_seqs d = {to_device(tok, n_byte), tok_bytes,
                                    to_device(first, n * 8), to_device(len, n * 4), n};
    uint64_t *hash = to_device(NULL, n * 16);
    bool good = device_said(slu_hash_cuda(&d, hash, NULL), "hash") &&
                from_device(b, hash, n * 16) && !memcmp(a, b, n * 16);
    if (!good)
        fprintf(stderr, "hash: %zu sequences from %u ids, %u bytes\n", n, shortest,
                tok_bytes);
    slu_device_free((void *)(uintptr_t)d.tok);
    slu_device_free((void *)(uintptr_t)d.first);
    slu_device_free((void *)(uintptr_t)d.len);
    slu_device_free(hash);
    free(tok);
    free(first);
    free(len);
    free(a);
    free(b);
    return good;
}

void test_hash(void)
{
    bool good = true;
    if (!have_device) {
        skipped("hash", no_device);
        return;
    }
    for (unsigned w = 2; w <= 4; w += 2) {
        good &= hash_case(0, 1, w);
        good &= hash_case(300, 1, w);  /* all short ones, and past the first block */
        good &= hash_case(40, 490, w); /* around the second block, */
        good &=
            hash_case(37, 4070, w); /* the sixteenth, and where all its stripes end */
        good &= hash_case(3, 8191, w);
        good &= most_items < 65537 || hash_case(65537, 1, w); /* two launches */
    }
    result(good, "hash: sequences of all lengths");
}
