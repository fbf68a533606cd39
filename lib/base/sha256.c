#include "lib/base/sha256.h"

#include <string.h>

/* FIPS 180-4, 4.2.2: the fractions of the cube roots of the first 64 primes. */
static const uint32_t round_key[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
    0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
    0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};

static uint32_t right(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void compress(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[64], v[8];
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (right(a, 7) ^ right(a, 18) ^ a >> 3) + w[i - 7] +
               (right(b, 17) ^ right(b, 19) ^ b >> 10);
    }
    memcpy(v, h, sizeof v);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t t1 = v[7] + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) +
                      ((e & v[5]) ^ (~e & v[6])) + round_key[i] + w[i];
        uint32_t t2 = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) +
                      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++)
        h[i] += v[i];
}

void slu_sha256_init(struct slu_sha256 *s)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, start, sizeof start);
    s->n_byte = 0;
}

void slu_sha256_update(struct slu_sha256 *s, const void *p, size_t n_byte)
{
    const uint8_t *from = p;
    size_t at = s->n_byte % sizeof s->block;
    s->n_byte += n_byte;
    while (n_byte) {
        size_t n = sizeof s->block - at < n_byte ? sizeof s->block - at : n_byte;
        memcpy(s->block + at, from, n);
        from += n;
        n_byte -= n;
        at += n;
        if (at == sizeof s->block) {
            compress(s->h, s->block);
            at = 0;
        }
    }
}

void slu_sha256_hex(struct slu_sha256 *s, char out[65])
{
    static const char digit[] = "0123456789abcdef";
    uint64_t n_bit = s->n_byte * 8;
    uint8_t end[72] = {0x80}; /* one bit, zeros, the length in the last eight bytes */
    size_t n_pad = 64 - (s->n_byte + 8) % 64;
    for (unsigned i = 0; i < 8; i++)
        end[n_pad + i] = (uint8_t)(n_bit >> (56 - 8 * i));
    slu_sha256_update(s, end, n_pad + 8);
    for (unsigned i = 0; i < 64; i++)
        out[i] = digit[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[64] = '\0';
}
