/* sorter.h - external sort of records by a 128-bit key within a memory budget.
 *
 * This engine is behind all work that waits or moves records: shuffle (key = keyed
 * hash), pack (key = bin and position), exact duplicates beyond the budget (key = hash,
 * then ordinal). Records are (key, bytes). They come out in ascending order of (key.hi,
 * key.lo); equal keys by memcmp of the bytes, then length. This is a total order, so
 * the result depends on neither budget nor threads.
 *
 * While all records fit budget_byte, nothing is written. Beyond that, records go to
 * cells (key ranges of [0, 2^128), by the key's top bits) in files without names in
 * tmpdir; a cell larger than the budget is split again. The cost is one write and one
 * read for each level. Keys should therefore be spread over the 128-bit range; if the
 * key space has only n values, the caller must spread them.
 *
 * Thread safety: one thread at a time on a handle. With n_threads > 1 and a budget of
 * at least 1 MiB the sorter starts up to three threads of its own; one of them
 * computes, the others read and write.
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
    uint64_t budget_byte; /* all memory of the sorter, buffers included */
    const char *tmpdir;   /* copied */
    unsigned n_threads;
    /* At least the first cached_byte of a temporary file go through the page cache;
     * later bytes bypass it if the file system allows. 0: as many bytes as are likely
     * to stay in the cache. */
    uint64_t cached_byte;
};

/* A record in memory and on disk: this header, n_byte bytes, zeros to a multiple of
 * 8. */
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
/* Prefetches a record that will be read soon, as many bytes as short records have.
 * Prefetching beyond the end of the memory is harmless. */
static inline void slu_rec_prefetch(const struct slu_rec *r)
{
    for (unsigned i = 0; i < 3; i++)
        __builtin_prefetch((const uint8_t *)r + 64 * i);
}

struct slu_slice { /* like struct iovec */
    const void *p;
    size_t n;
};

SLU_MUST_USE int slu_sorter_new(struct slu_sorter **s, const struct slu_sorter_cfg *cfg,
                                struct slu_err *err);
/* Adds a record whose bytes are the concatenated pieces; copies. A record larger than
 * half the budget is SLU_E_LIMIT. */
SLU_MUST_USE int slu_sorter_add(struct slu_sorter *s, struct slu_u128 key,
                                const struct slu_slice *piece, unsigned n_piece,
                                struct slu_err *err);
/* Adds the records that lie one after another in run[0, n_byte), 8-byte aligned; for
 * callers whose threads have prepared the records. The limit of a record is that of
 * slu_sorter_add. */
SLU_MUST_USE int slu_sorter_add_run(struct slu_sorter *s, const void *run,
                                    size_t n_byte, struct slu_err *err);
/* Ends the adding of records. */
SLU_MUST_USE int slu_sorter_seal(struct slu_sorter *s, struct slu_err *err);
/* Returns the next record in order, borrowed until the next call, 8-byte aligned;
 * SLU_EOF at the end. */
SLU_MUST_USE int slu_sorter_next(struct slu_sorter *s, struct slu_u128 *key,
                                 const void **p, size_t *n, struct slu_err *err);
/* Other threads may read records later. slu_sorter_pin returns a pin; the records
 * handed out since the last turn stay in place until any thread releases the pin.
 * The caller pins before the sorter turns: before slu_sorter_next, while
 * slu_sorter_turns. NULL: only the last record stays, until the next call. When the
 * sorter needs pinned memory, it waits. So other threads must be able to release
 * the pin meanwhile; or slu_sorter_stop ends the wait with an error. */
struct slu_arena;
struct slu_arena *slu_sorter_pin(struct slu_sorter *s);
bool slu_sorter_turns(const struct slu_sorter *s);
void slu_sorter_unpin(struct slu_sorter *s, struct slu_arena *pin);
/* For a caller that has pinned since the last turn: the next record, without
 * reading it, so that the thread that reads the record waits for the memory, not the
 * caller. *size_byte: size with header. NULL: no record is left before the sorter
 * turns, or only slu_sorter_next can return the next one. */
const struct slu_rec *slu_sorter_next_pinned(struct slu_sorter *s, uint64_t *size_byte);
/* Any thread may call. */
void slu_sorter_stop(struct slu_sorter *s);
/* Bytes written to temporary files so far. */
uint64_t slu_sorter_spilled(const struct slu_sorter *s);
void slu_sorter_free(struct slu_sorter *s);

SLU_END_DECLS

#endif
