/* near_table.h - what near_mem.c is made of: a counted budget of mapped memory, pools,
 * and the table of a band.
 *
 * Private to lib/dedup. Tables and pools of a budget must be released before it is
 * forgotten. Thread safety: one thread at a time on a budget and all that is of it.
 */
#ifndef SLU_DEDUP_NEAR_TABLE_H
#define SLU_DEDUP_NEAR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"

struct near_budget {
    uint64_t used_byte, most_byte, peak_byte;
};

/* n_byte zeroed bytes, in huge pages where there are such; *p NULL where the budget
 * does not have them. n_byte counts as rounded by near_map_size. */
SLU_MUST_USE int near_map(struct near_budget *b, size_t n_byte, void **p,
                          struct slu_err *err);
void near_unmap(struct near_budget *b, void *p, size_t n_byte);
size_t near_map_size(size_t n_byte);

/* ---- pool: items that never move, by number ---- */

struct near_pool {
    uint8_t **chunk; /* of 2^shift items each */
    size_t n_chunk, cap_chunk;
    size_t item_byte;
    unsigned shift;
    uint64_t n;
};

void near_pool_init(struct near_pool *p, size_t item_byte, unsigned shift);
void near_pool_release(struct near_pool *p, struct near_budget *b);
/* Room for k more items; *fits false where the budget has it not. */
SLU_MUST_USE int near_pool_reserve(struct near_pool *p, struct near_budget *b,
                                   uint64_t k, bool *fits, struct slu_err *err);
static inline void *near_pool_at(const struct near_pool *p, uint64_t i)
{
    return p->chunk[i >> p->shift] +
           (i & ((UINT64_C(1) << p->shift) - 1)) * p->item_byte;
}
/* The next item; room must have been reserved. */
static inline void *near_pool_add(struct near_pool *p)
{
    return near_pool_at(p, p->n++);
}

/* ---- a band's table: key -> group ---- */

#define NEAR_NONE UINT32_MAX
#define NEAR_LIST (UINT32_C(1) << 31) /* of head: number of a node, not a document */

struct near_slot {
    uint64_t key;
    uint32_t n;    /* distinct documents of the group, stuck at the largest; 0: empty */
    uint32_t head; /* NEAR_NONE, a kept document, or a list of them */
};
struct near_node {
    uint32_t doc, next; /* next: NEAR_NONE at the end */
};

struct near_table {
    struct near_slot *slot;
    size_t n_slot, n;
};

void near_table_release(struct near_table *t, struct near_budget *b);
/* Room for one more key. */
SLU_MUST_USE int near_table_reserve(struct near_table *t, struct near_budget *b,
                                    bool *fits, struct slu_err *err);
/* Slots ascend with the key, but for collisions, so growing walks both tables in order.
 */
static inline size_t near_home(uint64_t key, size_t n_slot)
{
    return (size_t)(((unsigned __int128)key * n_slot) >> 64);
}
/* Where key is, or the empty slot where it would go. */
static inline struct near_slot *near_table_find(const struct near_table *t,
                                                uint64_t key)
{
    size_t i = near_home(key, t->n_slot);

    while (t->slot[i].n && t->slot[i].key != key)
        i = i + 1 == t->n_slot ? 0 : i + 1;
    return &t->slot[i];
}

/* ---- twins: hash of a set -> a number ---- */

struct near_twins {
    struct slu_u128 *hash; /* {0, 0}: empty */
    uint32_t *value;
    size_t n_slot, n;
};

void near_twins_release(struct near_twins *t, struct near_budget *b);
SLU_MUST_USE int near_twins_reserve(struct near_twins *t, struct near_budget *b,
                                    bool *fits, struct slu_err *err);
/* The slot where h is, or the empty one where it would go; h is not {0, 0}. */
static inline size_t near_twins_find(const struct near_twins *t, struct slu_u128 h)
{
    size_t i = near_home(h.hi, t->n_slot);

    while ((t->hash[i].lo | t->hash[i].hi) && slu_u128_cmp(t->hash[i], h))
        i = i + 1 == t->n_slot ? 0 : i + 1;
    return i;
}

#endif
