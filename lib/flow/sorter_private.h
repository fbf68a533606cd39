/* sorter_private.h - what sorter.c (memory, flushes), sorter_sort.c, sorter_load.c and
 * sorter_walk.c (the way back) and sorter_mover.c (what is done meanwhile) share.
 * Private to them.
 */
#ifndef SLU_SORTER_PRIVATE_H
#define SLU_SORTER_PRIVATE_H

#include <pthread.h>
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
#define MOVER_BUDGET (1 << 20) /* from there on the arena has halves */
#define ENTRY        sizeof(struct slu_entry)

struct slu_level {
    struct slu_spill spill;
    unsigned skip;       /* leading key bits that all records of the level share */
    bool by_content;     /* keys were made from the records' bytes; */
    struct slu_u128 key; /* this is the key of all of them */
    uint64_t n_byte;     /* what it was made of, where known */
    size_t next_cell;
    size_t kept_cell;   /* the first one loaded whose disk space was not given back */
    uint64_t kept_byte; /* of those */
};

/* Records from its start upwards, their entries from its end downwards; places are
 * offsets in the map. */
struct slu_arena {
    size_t begin_byte, end_byte;
    size_t used_byte;        /* where its records end */
    struct slu_entry *entry; /* n_entry of them, ending at end_byte */
    size_t n_entry, next;
    size_t n_sorted;          /* entries that are known to be in their place */
    struct slu_u128 min, max; /* of the keys */
    uint64_t n_lent;          /* loans that are out */
};

enum slu_task_kind { SLU_TASK_FLUSH, SLU_TASK_LOAD, SLU_TASK_SORT };

/* What the mover does meanwhile. */
struct slu_task {
    enum slu_task_kind kind;
    struct slu_arena *arena;
    struct slu_entry *entry; /* FLUSH: n_entry of them */
    size_t n_entry;
    size_t c0, c1; /* LOAD: cells of the top level */
    bool busy;
    int rc;
    struct slu_err *err; /* of the mover */
};

/* The thread that flushes one half of the arena, or loads and sorts it, while the other
 * one is in use. mu guards the tasks' busy, loans, n_sorted_yet and the flags. */
struct slu_mover {
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t changed;
    struct slu_task *todo[2];
    unsigned n_todo;
    bool ended, stopped;
    size_t n_sorted_yet;
    struct slu_err err[2]; /* of tasks */
};

#define READS 8 /* of extents, under way at once */

struct slu_sorter {
    uint64_t budget_byte;
    char *tmpdir;
    unsigned n_threads;
    uint8_t *map;
    size_t map_byte;
    struct slu_arena whole, half[2]; /* the same memory */
    struct slu_arena *a;             /* the one in use */
    struct slu_mover *mover;         /* NULL: none yet, or none */
    bool no_mover;                   /* nor will there be */
    struct slu_task task[2];         /* of each half */
    bool ahead;                      /* the half not in use is being loaded */
    struct slu_spill_queue *queue;   /* NULL: none */
    struct slu_spill_writer writer;
    uint8_t *read_buf;
    size_t io_byte; /* of read_buf */
    struct slu_spill_req read[READS];
    unsigned max_bits;
    uint64_t *start, *head; /* 2^max_bits + 1 each: groups of a partition */
    bool sealed;
    unsigned sort_bits, sort_skip; /* of the groups that are left to sort */
    size_t sort_group;
    uint64_t n_repeat; /* the record at the arena's start, so many times more */
    bool on_disk;      /* entries refer to the top level's file, not to the arena */
    uint64_t n_shared; /* while they are sorted: bytes that all records share */
    int sort_rc;       /* and what went wrong; */
    struct slu_err *sort_err;
    uint64_t spilled_byte; /* also the mover's */
    uint64_t direct_from; /* offset in a spill from which on it passes the page cache */
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
    return (struct slu_rec *)(void *)(s->map + off);
}

/* What an entry of the arena refers to: the place of a record, and its size in words
 * above that, 0 if it has too many, so that who lends it need not look at it. */
#define REF_PLACE_BITS 44

static inline uint64_t slu_ref(uint64_t place, uint64_t size_byte)
{
    uint64_t n = size_byte / 8;
    return place | (n >> (64 - REF_PLACE_BITS) ? 0 : n << REF_PLACE_BITS);
}

static inline uint64_t slu_ref_place(uint64_t ref)
{
    return ref & ((UINT64_C(1) << REF_PLACE_BITS) - 1);
}

static inline struct slu_rec *slu_ref_rec(const struct slu_sorter *s, uint64_t ref)
{
    return slu_rec_at(s, slu_ref_place(ref));
}

static inline uint64_t slu_ref_size(const struct slu_sorter *s, uint64_t ref)
{
    uint64_t n = ref >> REF_PLACE_BITS;
    return n ? 8 * n : slu_rec_size(slu_ref_rec(s, ref)->n_byte);
}

static inline void slu_arena_clear(const struct slu_sorter *s, struct slu_arena *a)
{
    a->used_byte = a->begin_byte;
    a->entry = (struct slu_entry *)(void *)(s->map + a->end_byte);
    a->n_entry = a->next = a->n_sorted = 0;
}

static inline size_t slu_arena_size(const struct slu_arena *a)
{
    return a->end_byte - a->begin_byte;
}

static inline bool slu_arena_has(const struct slu_arena *a, uint64_t n_byte)
{
    return n_byte + ENTRY <= a->end_byte - a->used_byte - a->n_entry * ENTRY;
}

/* Books the record of `size` bytes, header and all, whose place is used_byte. */
static inline void slu_arena_take(struct slu_arena *a, uint64_t prefix, uint64_t size)
{
    *--a->entry = (struct slu_entry){prefix, slu_ref(a->used_byte, size)};
    a->n_entry++;
    a->used_byte += size;
}

/* ---- sorter_sort.c ---- */

/* Sorts e[0, n), whose keys share `skip` bits, and whose prefixes are those behind. */
void slu_entries_sort(struct slu_sorter *s, struct slu_entry *e, size_t n,
                      unsigned skip);
/* Sorts all records, which are in the arena; some of it while they are handed out. */
void slu_sort_begin(struct slu_sorter *s);
/* More of them: n_sorted > next afterwards. */
void slu_sort_more(struct slu_sorter *s);
/* The mover's part. */
void slu_sort_groups(struct slu_sorter *s, struct slu_arena *a);

/* ---- sorter.c ---- */

/* A level for n_byte of records, unknown if 0. */
SLU_MUST_USE int slu_sorter_push(struct slu_sorter *s, uint64_t n_byte,
                                 struct slu_err *err);
void slu_sorter_pop(struct slu_sorter *s);
/* Moves what is in the arena to the top level's spill, and waits for it. */
SLU_MUST_USE int slu_sorter_flush(struct slu_sorter *s, struct slu_err *err);
/* The mover's part of it: n entries and their records. */
SLU_MUST_USE int slu_flush_entries(struct slu_sorter *s, struct slu_entry *e, size_t n,
                                   struct slu_err *err);

/* ---- sorter_load.c ---- */

/* Bytes that a group of cells of the top level may have, entries included, to be loaded
 * to a. */
uint64_t slu_load_room(const struct slu_sorter *s, const struct slu_arena *a);
/* Loads cells [c0, c1) of the top level, and sorts them. */
SLU_MUST_USE int slu_load(struct slu_sorter *s, struct slu_arena *a, size_t c0,
                          size_t c1, struct slu_err *err);

/* ---- sorter_mover.c ---- */

/* Starts the mover if there is to be one; false: there is none. */
bool slu_mover_start(struct slu_sorter *s);
/* t is of a half that no other task is for. */
void slu_mover_submit(struct slu_sorter *s, struct slu_task *t);
/* Until t, and what it was for, is done; at once if it never began. */
SLU_MUST_USE int slu_mover_wait(struct slu_sorter *s, struct slu_task *t,
                                struct slu_err *err);
/* Until no record of a is lent; SLU_E_IO if the sorter was stopped. a NULL: any. */
SLU_MUST_USE int slu_mover_wait_loans(struct slu_sorter *s, struct slu_arena *a,
                                      struct slu_err *err);
void slu_mover_free(struct slu_sorter *s);

#endif
