/* sorter.h - external sort of records by a 128-bit key within a memory budget.
 *
 * The one engine behind everything that waits or moves: shuffle (key = keyed hash),
 * pack (key = bin and place), exact duplicates past the budget (key = hash, then
 * ordinal). Records are (key, bytes); they come out in ascending order of (key.hi,
 * key.lo), equal keys by memcmp of the bytes, then length: a total order, so the result
 * depends on neither budget nor threads.
 *
 * While everything fits in budget_byte nothing is written. Past it, records go to cells
 * (key ranges of [0, 2^128), by the key's top bits) in files that have no name in
 * tmpdir; a cell larger than the budget is split again. Cost: one write and one read a
 * level. Keys should therefore be spread over the 128-bit range; a key space of n
 * values is spread by the caller.
 *
 * Thread safety: one thread at a time on a handle. With n_threads > 1 and a MiB of
 * budget it has up to three threads of its own, one of them that computes.
 */
#ifndef SLU_SORTER_H
#define SLU_SORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"

SLU_BEGIN_DECLS

struct slu_sorter;

struct slu_sorter_cfg {
    uint64_t budget_byte; /* all memory of the sorter, its buffers included */
    const char *tmpdir;   /* copied */
    unsigned n_threads;
    /* Of a temporary file so many bytes at the least go through the page cache, the
     * others past it, where the file system can. 0: as many as are likely to stay
     * there. */
    uint64_t cached_byte;
};

/* A record as it waits, in memory and on disk: this, n_byte bytes, zeros up to a
 * multiple of 8. */
struct slu_rec {
    struct slu_u128 key;
    uint64_t n_byte;
};

static inline uint64_t slu_rec_size(uint64_t n_byte)
{
    return sizeof(struct slu_rec) + ((n_byte + 7) & ~UINT64_C(7));
}
static inline const uint8_t *slu_rec_bytes(const struct slu_rec *r)
{
    return (const uint8_t *)(r + 1);
}
/* Asks for a record that will be read soon: as much of it as short ones have. Where it
 * is shorter, and the memory ends, nothing comes of it. */
static inline void slu_rec_prefetch(const struct slu_rec *r)
{
    for (unsigned i = 0; i < 3; i++)
        __builtin_prefetch((const uint8_t *)r + 64 * i);
}

struct slu_piece { /* like struct iovec */
    const void *p;
    size_t n;
};

SLU_MUST_USE int slu_sorter_new(struct slu_sorter **s, const struct slu_sorter_cfg *cfg,
                                struct slu_err *err);
/* Adds a record whose bytes are the pieces one after another; copies. A record larger
 * than half the budget is SLU_E_LIMIT. */
SLU_MUST_USE int slu_sorter_add(struct slu_sorter *s, struct slu_u128 key,
                                const struct slu_piece *piece, unsigned n_piece,
                                struct slu_err *err);
/* Adds records that lie one after another in run[0, n_byte), 8-byte aligned: for
 * callers whose threads have made them ready. The same limit for each. */
SLU_MUST_USE int slu_sorter_add_run(struct slu_sorter *s, const void *run,
                                    size_t n_byte, struct slu_err *err);
/* No more records. */
SLU_MUST_USE int slu_sorter_seal(struct slu_sorter *s, struct slu_err *err);
/* The next record in order, borrowed until the next call, 8-byte aligned; SLU_EOF at
 * the end. */
SLU_MUST_USE int slu_sorter_next(struct slu_sorter *s, struct slu_u128 *key,
                                 const void **p, size_t *n, struct slu_err *err);
/* Records may be read by other threads, later: those handed out since the last turn
 * stay where they are until what slu_sorter_hold gave has been returned, by any thread.
 * The caller holds before it lets the sorter turn, that is before slu_sorter_next while
 * slu_sorter_turns. NULL: only the last record stays, until the next call. The sorter
 * waits for what is held when it wants its memory: whoever holds must have it returned
 * by others meanwhile, or stop the sorter, which ends that wait with an error. */
struct slu_arena;
struct slu_arena *slu_sorter_hold(struct slu_sorter *s);
bool slu_sorter_turns(const struct slu_sorter *s);
void slu_sorter_return(struct slu_sorter *s, struct slu_arena *held);
/* The next record for who has held since the last turn, not looked at, so that whoever
 * reads it waits for the memory and the caller does not; *size_byte: of it all. NULL:
 * there is none before the sorter turns, or it can only be had by slu_sorter_next. */
const struct slu_rec *slu_sorter_lend(struct slu_sorter *s, uint64_t *size_byte);
/* Any thread. */
void slu_sorter_stop(struct slu_sorter *s);
/* Bytes written to temporary files so far. */
uint64_t slu_sorter_spilled(const struct slu_sorter *s);
void slu_sorter_free(struct slu_sorter *s);

SLU_END_DECLS

#endif
