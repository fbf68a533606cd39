/* sorter_private.h - shared by sorter.c (memory, flushes), sorter_sort.c, sorter_load.c
 * and sorter_walk.c (reading back) and sorter_mover.c (the second thread). Private to
 * them.
 */
#ifndef SLU_SORTER_PRIVATE_H
#define SLU_SORTER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/thread.h"
#include "radix.h"
#include "sorter.h"
#include "spill.h"

#define MAX_LEVEL  48
#define MIN_BUDGET (64 << 10)
#define CELL_BYTE                                                                      \
    (64 << 10) /* bytes that a flush writes to a cell, at least, if the arena allows */
#define MOVER_BUDGET (1 << 20) /* with this budget or more, the arena has halves */
#define ENTRY        sizeof(struct slu_entry)

struct slu_level {
    struct slu_spill spill;
    unsigned skip;       /* number of leading key bits that all records of the level
                            share */
    bool by_content;     /* keys were made from the records' bytes */
    struct slu_u128 key; /* then all records have this key */
    uint64_t n_byte;     /* bytes of the records that it was made for, if known */
    size_t next_cell;
    size_t kept_cell;   /* the first loaded cell whose disk space is not released */
    uint64_t kept_byte; /* bytes of these cells */
};

/* Records from its start upwards, their entries from its end downwards; positions are
 * offsets in the map. */
struct slu_arena {
    size_t begin_byte, end_byte;
    size_t used_byte;        /* end of its records */
    struct slu_entry *entry; /* n_entry entries, ending at end_byte */
    size_t n_entry, next;
    size_t n_sorted;          /* entries known to be sorted */
    struct slu_u128 min, max; /* of the keys */
    uint64_t n_pin;           /* pins that were not released */
};

enum slu_task_kind { SLU_TASK_FLUSH, SLU_TASK_LOAD, SLU_TASK_SORT };

/* A task of the mover. */
struct slu_task {
    enum slu_task_kind kind;
    struct slu_arena *arena;
    struct slu_entry *entry; /* FLUSH: n_entry entries */
    size_t n_entry;
    size_t c0, c1; /* LOAD: cells of the top level */
    bool busy;
    int rc;
    struct slu_err *err; /* the mover's */
};

/* The thread that flushes one half of the arena, or loads and sorts it, while the other
 * half is in use. mu guards busy of the tasks, the pins, n_sorted_yet and the
 * flags. */
struct slu_mover {
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t changed;
    struct slu_task *todo[2];
    unsigned n_todo;
    bool ended, stopped;
    size_t n_sorted_yet;
    struct slu_err err[2]; /* errors of the tasks */
};

#define READS 8 /* reads of extents in flight at once */

struct slu_sorter {
    uint64_t budget_byte;
    char *tmpdir;
    unsigned n_threads;
    uint8_t *map;
    size_t map_byte;
    struct slu_arena whole, half[2]; /* whole and both halves share one memory */
    struct slu_arena *a;             /* the arena in use */
    struct slu_mover *mover;         /* NULL: not started, or no mover */
    bool no_mover;                   /* there will be no mover */
    struct slu_task task[2];         /* one for each half */
    bool ahead;                      /* the half that is not in use is being loaded */
    struct slu_spill_queue *queue;   /* NULL: no threads for input and output */
    struct slu_spill_writer writer;
    uint8_t *read_buf;
    size_t io_byte; /* size of read_buf */
    struct slu_spill_req read[READS];
    unsigned max_bits;
    uint64_t *start, *head; /* 2^max_bits + 1 elements each: the groups of a
                               partition */
    bool sealed;
    unsigned sort_bits, sort_skip; /* of the groups that are still to be sorted */
    size_t sort_group;
    uint64_t n_repeat; /* number of further copies of the record at the arena's start */
    bool on_disk;      /* entries refer to the top level's file, not to the arena */
    uint64_t n_shared; /* during the sort: number of bytes that all records share */
    int sort_rc;       /* and the error of the sort */
    struct slu_err *sort_err;
    uint64_t spilled_byte; /* includes the mover's bytes */
    uint64_t direct_from;  /* from this offset on, a spill bypasses the page cache */
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

/* Number of leading bits that a and b share. */
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

/* The reference in an entry of the arena: the position of a record, and above it the
 * record's size in words, so that slu_sorter_next_pinned need not read the record; 0 if
 * the size is too large. */
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

/* Adds the record of `size` bytes, header included, at used_byte. */
static inline void slu_arena_take(struct slu_arena *a, uint64_t prefix, uint64_t size)
{
    *--a->entry = (struct slu_entry){prefix, slu_ref(a->used_byte, size)};
    a->n_entry++;
    a->used_byte += size;
}

/* ---- sorter_sort.c ---- */

/* Sorts e[0, n), whose keys share `skip` leading bits, and whose prefixes are the bits
 * after these. */
void slu_entries_sort(struct slu_sorter *s, struct slu_entry *e, size_t n,
                      unsigned skip);
/* Sorts the records in the arena; some of the sorting is left to slu_sort_more, while
 * records are handed out. */
void slu_sort_begin(struct slu_sorter *s);
/* Sorts more entries: afterwards n_sorted > next. */
void slu_sort_more(struct slu_sorter *s);
/* The same in the mover's thread. */
void slu_sort_groups(struct slu_sorter *s, struct slu_arena *a);

/* ---- sorter.c ---- */

/* Pushes a level for n_byte of records; 0: unknown. */
SLU_MUST_USE int slu_sorter_push(struct slu_sorter *s, uint64_t n_byte,
                                 struct slu_err *err);
void slu_sorter_pop(struct slu_sorter *s);
/* Moves the records of the arena to the top level's spill, and waits for the write. */
SLU_MUST_USE int slu_sorter_flush(struct slu_sorter *s, struct slu_err *err);
/* The mover's part of a flush: n entries and their records. */
SLU_MUST_USE int slu_flush_entries(struct slu_sorter *s, struct slu_entry *e, size_t n,
                                   struct slu_err *err);

/* ---- sorter_load.c ---- */

/* Largest size, entries included, of a group of cells of the top level that can be
 * loaded to a. */
uint64_t slu_load_room(const struct slu_sorter *s, const struct slu_arena *a);
/* Loads cells [c0, c1) of the top level, and sorts their records. */
SLU_MUST_USE int slu_load(struct slu_sorter *s, struct slu_arena *a, size_t c0,
                          size_t c1, struct slu_err *err);

/* ---- sorter_mover.c ---- */

/* Starts the mover, unless the sorter is to have none; false: there is no mover. */
bool slu_mover_start(struct slu_sorter *s);
/* Submits t; no other task may be in flight for its half. */
void slu_mover_submit(struct slu_sorter *s, struct slu_task *t);
/* Waits until t is done; returns at once if t was never submitted. */
SLU_MUST_USE int slu_mover_wait(struct slu_sorter *s, struct slu_task *t,
                                struct slu_err *err);
/* Waits until no record of a is pinned; SLU_E_IO if the sorter was stopped. a NULL:
 * until no record is pinned. */
SLU_MUST_USE int slu_mover_wait_pins(struct slu_sorter *s, struct slu_arena *a,
                                     struct slu_err *err);
void slu_mover_free(struct slu_sorter *s);

#endif
