/* sorter_private.h - what sorter.c (memory, flushes) and sorter_walk.c (the way back)
 * share. Private to them.
 */
#ifndef SLU_SORTER_PRIVATE_H
#define SLU_SORTER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "radix.h"
#include "sorter.h"
#include "spill.h"

#define MAX_LEVEL  48
#define MIN_BUDGET (64 << 10)
#define CELL_BYTE                                                                      \
    (64 << 10) /* what a flush writes to a cell, at least, if the arena allows */
#define ENTRY sizeof(struct slu_entry)

struct slu_level {
    struct slu_spill spill;
    unsigned skip;       /* leading key bits that all records of the level share */
    bool by_content;     /* keys were made from the records' bytes; */
    struct slu_u128 key; /* this is the key of all of them */
    uint64_t n_byte;     /* what it was made of, where known */
    size_t next_cell;
};

struct slu_sorter {
    uint64_t budget_byte;
    char *tmpdir;
    uint8_t *map;
    size_t map_byte;
    uint8_t *arena;
    size_t arena_byte;
    size_t used_byte;        /* records, from the start */
    struct slu_entry *entry; /* n_entry of them, ending at the arena's end */
    size_t n_entry, next;
    uint8_t *write_buf, *read_buf;
    size_t io_byte;
    unsigned max_bits;
    uint64_t *start;          /* 2^max_bits + 1: a flush's groups */
    struct slu_u128 min, max; /* of the keys in the arena */
    bool sealed;
    uint64_t n_repeat; /* the record at the arena's start, so many times more */
    bool on_disk;      /* entries refer to the top level's file, not to the arena */
    uint64_t n_shared; /* while they are sorted: bytes that all records share */
    int sort_rc;       /* and what went wrong; */
    struct slu_err *sort_err;
    uint64_t spilled_byte;
    struct slu_level level[MAX_LEVEL];
    unsigned n_level;
};

/* ---- 128-bit keys ---- */

static inline struct slu_u128 slu_key_shift(struct slu_u128 k, unsigned n)
{
    unsigned __int128 v = (unsigned __int128)k.hi << 64 | k.lo;

    v = n < 128 ? v << n : 0;
    struct slu_u128 r = {(uint64_t)v, (uint64_t)(v >> 64)};
    return r;
}

/* How many leading bits a and b share. */
static inline unsigned slu_key_shared(struct slu_u128 a, struct slu_u128 b)
{
    if (a.hi != b.hi)
        return (unsigned)__builtin_clzll(a.hi ^ b.hi);
    return a.lo != b.lo ? 64 + (unsigned)__builtin_clzll(a.lo ^ b.lo) : 128;
}

/* ---- the arena ---- */

static inline struct slu_rec *slu_rec_at(const struct slu_sorter *s, uint64_t off)
{
    return (struct slu_rec *)(void *)(s->arena + off);
}

static inline void slu_arena_clear(struct slu_sorter *s)
{
    s->used_byte = 0;
    s->entry = (struct slu_entry *)(void *)(s->arena + s->arena_byte);
    s->n_entry = s->next = 0;
    s->on_disk = false;
}

static inline bool slu_arena_has(const struct slu_sorter *s, uint64_t n_byte)
{
    return n_byte + ENTRY <= s->arena_byte - s->used_byte - s->n_entry * ENTRY;
}

/* Books the record that lies at used_byte. */
static inline void slu_arena_take(struct slu_sorter *s, uint64_t prefix)
{
    struct slu_rec *r = slu_rec_at(s, s->used_byte);

    s->entry--;
    s->n_entry++;
    s->entry->prefix = prefix;
    s->entry->ref = s->used_byte;
    s->used_byte += slu_rec_size(r->n_byte);
}

/* Sorts the arena; prefixes are those of `skip` bits. */
void slu_arena_sort(struct slu_sorter *s, unsigned skip);
/* A level for n_byte of records, unknown if 0. */
SLU_MUST_USE int slu_sorter_push(struct slu_sorter *s, uint64_t n_byte,
                                 struct slu_err *err);
void slu_sorter_pop(struct slu_sorter *s);
/* Moves what is in the arena to the top level's spill. */
SLU_MUST_USE int slu_sorter_flush(struct slu_sorter *s, struct slu_err *err);

#endif
