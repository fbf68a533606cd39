#include "lib/schedule/epoch_order.h"

#include "lib/base/hash.h"

enum { BLOCK_IDS = 1 << 19 }; /* 1 MiB of ids of 2 bytes, 2 MiB of ids of 4 */

/* The finalizer of splitmix64: a bijection of 64 bits. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Permutes 0 … n - 1: a balanced Feistel network of four rounds, repeated until the
 * result is below n. */
static uint64_t permuted(uint64_t key, uint64_t x, uint64_t n)
{
    unsigned half = n > 2 ? (unsigned)(64 - __builtin_clzll(n - 1) + 1) / 2 : 1;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t l = x >> half, r = x & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t t = l ^ (mix(mix(key + round) ^ r) & mask);
            l = r;
            r = t;
        }
        x = l << half | r;
    } while (x >= n);
    return x;
}

uint64_t slu_epoch_sequence(const struct slu_epoch_order *o, uint64_t place)
{
    if (!o->epoch)
        return place;
    uint64_t key = mix(mix(mix(o->seed) ^ o->epoch) ^ o->bucket);
    uint64_t full = o->n / o->block, tail = o->n % o->block;
    /* The block that is not full comes after `before` others. */
    uint64_t before = slu_draw_below(mix(key ^ 1), full + 1), size = o->block, block;
    uint64_t begin = before * o->block;
    if (place >= begin && place - begin < tail) {
        block = full;
        place -= begin;
        size = tail;
    } else {
        place -= place < begin ? 0 : tail;
        block = permuted(key, place / o->block, full);
        place %= o->block;
    }
    return block * o->block + permuted(mix(key ^ (block + 2)), place, size);
}

uint64_t slu_epoch_block(uint64_t length)
{
    uint64_t n = 1;
    while (4 * n <= BLOCK_IDS / length && 4 * n <= SLU_EPOCH_MAX_BLOCK)
        n *= 4;
    return n;
}
