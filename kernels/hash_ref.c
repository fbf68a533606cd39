/* hash_ref.c - the oracle of hash.h. */
#include "hash.h"

#include "hash_short.h"

#define WORD(i, word) [i] = UINT64_C(word),
static const uint64_t secret[HASH_SECRET_WORDS] = {HASH_SECRET(WORD)};

static void add_stripe(const struct hash_in *in, uint64_t at, unsigned key,
                       uint64_t acc[8])
{
    for (unsigned i = 0; i < 8; i++) {
        uint64_t word = hash_u64(in, at + 8 * i);
        acc[i] += hash_product(word, hash_key(secret, key + 8 * i));
        acc[i ^ 1] += word;
    }
}

static uint64_t merge(const uint64_t acc[8], unsigned key, uint64_t sum)
{
    for (unsigned i = 0; i < 4; i++)
        sum += hash_fold(acc[2 * i] ^ hash_key(secret, key + 16 * i),
                         acc[2 * i + 1] ^ hash_key(secret, key + 16 * i + 8));
    return hash_avalanche(sum);
}

static void hash_long(const struct hash_in *in, uint64_t *hash)
{
    uint64_t acc[8] = {HASH_P32_3, HASH_P64_1, HASH_P64_2, HASH_P64_3,
                       HASH_P64_4, HASH_P32_2, HASH_P64_5, HASH_P32_1};
    const uint64_t n = hash_bytes(in);
    for (uint64_t s = 0; s < (n - 1) / HASH_STRIPE; s++) {
        add_stripe(in, HASH_STRIPE * s, 8 * (s % HASH_STRIPES), acc);
        for (unsigned i = 0; i < 8 && s % HASH_STRIPES == HASH_STRIPES - 1; i++)
            acc[i] = hash_scramble(acc[i], secret[16 + i]);
    }
    add_stripe(in, n - HASH_STRIPE, HASH_SECRET_BYTE - HASH_STRIPE - 7, acc);
    hash[0] = merge(acc, 11, n * HASH_P64_1);
    hash[1] = merge(acc, HASH_SECRET_BYTE - HASH_STRIPE - 11, ~(n * HASH_P64_2));
}

void slu_hash_ref(const struct slu_hash_seqs *s, uint64_t *hash)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct hash_in in = {(const char *)s->tok + s->first[i] * s->tok_bytes,
                                   s->tok_bytes, s->len[i], false};
        if (hash_bytes(&in) <= HASH_SHORT)
            hash_short(&in, secret, hash + 2 * i);
        else
            hash_long(&in, hash + 2 * i);
    }
}
