/* near_table.h - the parts of near_mem.c: a counted budget of mapped memory, pools, and
 * the table of a band.
 *
 * Private to lib/dedup. The tables and pools of a budget must be released before the
 * budget. Thread safety: one thread at a time on a budget with its tables and pools.
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

/* Maps n_byte zeroed bytes, in huge pages if available; *p NULL if the budget is too
 * small. n_byte counts as rounded by near_map_size. */
SLU_MUST_USE int near_map(struct near_budget *b, size_t n_byte, void **p,
                          struct slu_err *err);
void near_unmap(struct near_budget *b, void *p, size_t n_byte);
size_t near_map_size(size_t n_byte);

/* ---- pool: items that never move, by number ---- */

struct near_pool {
    uint8_t **chunk; /* chunks of 2^shift items each */
    size_t n_chunk, cap_chunk;
    size_t item_byte;
    unsigned shift;
    uint64_t n;
};

void near_pool_init(struct near_pool *p, size_t item_byte, unsigned shift);
void near_pool_release(struct near_pool *p, struct near_budget *b);
/* Reserves room for k more items; *fits false if the budget is too small. */
SLU_MUST_USE int near_pool_reserve(struct near_pool *p, struct near_budget *b,
                                   uint64_t k, bool *fits, struct slu_err *err);
static inline void *near_pool_at(const struct near_pool *p, uint64_t i)
{
    return p->chunk[i >> p->shift] +
           (i & ((UINT64_C(1) << p->shift) - 1)) * p->item_byte;
}
/* Returns the next item; its room must have been reserved. */
static inline void *near_pool_add(struct near_pool *p)
{
    return near_pool_at(p, p->n++);
}

/* ---- a band's table: key -> group ---- */

#define NEAR_NONE UINT32_MAX
/* bit of head: head is the number of a node, not of a document */
#define NEAR_LIST (UINT32_C(1) << 31)

struct near_slot {
    uint64_t key;
    uint32_t n;    /* number of distinct documents in the group, limited to
                      UINT32_MAX; 0: empty slot */
    uint32_t head; /* NEAR_NONE, the only kept document, or a list of kept documents */
};
struct near_node {
    uint32_t doc, next; /* next: NEAR_NONE at the end */
};

struct near_table {
    struct near_slot *slot;
    size_t n_slot, n;
};

void near_table_release(struct near_table *t, struct near_budget *b);
/* Reserves room for one more key. */
SLU_MUST_USE int near_table_reserve(struct near_table *t, struct near_budget *b,
                                    bool *fits, struct slu_err *err);
/* Slots ascend with the key, except for collisions, so growing walks both tables in
 * order. */
static inline size_t near_home(uint64_t key, size_t n_slot)
{
    return (size_t)(((unsigned __int128)key * n_slot) >> 64);
}
/* The slot of key, or the empty slot where key would go. */
static inline struct near_slot *near_table_find(const struct near_table *t,
                                                uint64_t key)
{
    size_t i = near_home(key, t->n_slot);

    while (t->slot[i].n && t->slot[i].key != key)
        i = i + 1 == t->n_slot ? 0 : i + 1;
    return &t->slot[i];
}

/* ---- hash of a set -> a number ---- */

struct near_sets {
    struct slu_u128 *hash; /* {0, 0}: empty */
    uint32_t *value;
    size_t n_slot, n;
};

void near_sets_release(struct near_sets *t, struct near_budget *b);
SLU_MUST_USE int near_sets_reserve(struct near_sets *t, struct near_budget *b,
                                   bool *fits, struct slu_err *err);
/* The slot of h, or the empty slot where h would go; h is not {0, 0}. */
static inline size_t near_sets_find(const struct near_sets *t, struct slu_u128 h)
{
    size_t i = near_home(h.hi, t->n_slot);

    while ((t->hash[i].lo | t->hash[i].hi) && slu_u128_cmp(t->hash[i], h))
        i = i + 1 == t->n_slot ? 0 : i + 1;
    return i;
}

#endif
