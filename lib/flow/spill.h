/* spill.h - one temporary file of records grouped into cells; private to the sorter.
 *
 * A flush appends the records in memory cell by cell, then a table of the 2^bits + 1
 * file offsets where cells begin: neighbouring cells are neighbours on disk, so a group
 * of cells is one contiguous extent a flush, whatever the number of cells. Tables stay
 * on disk, so memory does not grow with the amount of data (8 bytes a flush apart).
 *
 * The file has no name and vanishes with the process. Thread safety: one thread at a
 * time.
 */
#ifndef SLU_SPILL_H
#define SLU_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "sorter.h"
#include "spill_io.h"

struct slu_spill_cell {
    uint64_t n_rec, n_byte;   /* on disk, headers included */
    struct slu_u128 min, max; /* of the keys */
};

struct slu_spill {
    struct slu_spill_file file;
    unsigned bits;               /* 2^bits cells */
    struct slu_spill_cell *cell; /* owned */
    uint64_t *table;             /* owned: where each flush's table is */
    size_t n_flush, cap_flush;
    size_t n_cached;   /* flushes through the page cache, before all others */
    uint64_t end_byte; /* size of the file, what waits in `writer` included */
    struct slu_spill_writer *writer; /* borrowed */
    const char *dir;                 /* borrowed, for messages */
};

/* The writer is borrowed until release; it may be shared between spills of which only
 * one is being written. */
SLU_MUST_USE int slu_spill_open(struct slu_spill *sp, const char *dir, unsigned bits,
                                struct slu_spill_writer *w, struct slu_err *err);
/* Nothing may be under way. */
void slu_spill_release(struct slu_spill *sp);

/* Begins a flush, at a multiple of SLU_SPILL_ALIGN. */
void slu_spill_begin_flush(struct slu_spill *sp, bool direct);
/* Appends record r to cell c; within a flush cells ascend. */
SLU_MUST_USE int slu_spill_put(struct slu_spill *sp, size_t c, const struct slu_rec *r,
                               struct slu_err *err);
/* Ends a flush: start[c] is the file offset where cell c of this flush begins,
 * start[2^bits] where the last one ends. It is on the disk once the writer has
 * settled. */
SLU_MUST_USE int slu_spill_end_flush(struct slu_spill *sp, const uint64_t *start,
                                     struct slu_err *err);

/* The bytes of cells [c0, c1) in one flush. */
SLU_MUST_USE int slu_spill_extent(const struct slu_spill *sp, size_t flush, size_t c0,
                                  size_t c1, uint64_t *from_byte, uint64_t *to_byte,
                                  struct slu_err *err);
SLU_MUST_USE int slu_spill_read(const struct slu_spill *sp, void *p, size_t n,
                                uint64_t from_byte, struct slu_err *err);
/* Bytes that are free where the file lies; 0 where nobody knows. */
uint64_t slu_spill_disk_free(const struct slu_spill *sp);
/* Gives the disk space back, where the file system can. */
void slu_spill_discard(const struct slu_spill *sp, uint64_t from_byte,
                       uint64_t to_byte);

/* Reads one cell's records from first to last through a buffer. */
struct slu_spill_cursor {
    const struct slu_spill *sp;
    size_t cell, flush;
    uint64_t at_byte, to_byte; /* of the flush's extent, behind what is in buf */
    uint8_t *buf;              /* borrowed */
    size_t pos, len, cap;
    bool discard; /* give disk space back behind it */
};

void slu_spill_cursor_init(struct slu_spill_cursor *cu, const struct slu_spill *sp,
                           size_t cell, uint8_t *buf, size_t cap);
/* The file offset of the next byte. */
static inline uint64_t slu_spill_cursor_tell(const struct slu_spill_cursor *cu)
{
    return cu->at_byte - (cu->len - cu->pos);
}
/* Some of the bytes that follow, at most max: *n > 0 of them at *p, borrowed until the
 * next call; SLU_EOF behind the last. */
SLU_MUST_USE int slu_spill_cursor_some(struct slu_spill_cursor *cu, uint64_t max,
                                       const uint8_t **p, size_t *n,
                                       struct slu_err *err);
/* Exactly n bytes; SLU_EOF if there is none at all, SLU_E_FORMAT if there are fewer. */
SLU_MUST_USE int slu_spill_cursor_read(struct slu_spill_cursor *cu, void *p, uint64_t n,
                                       struct slu_err *err);

#endif
