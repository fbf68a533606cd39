/* spill.h - one temporary file of records grouped into cells; private to the sorter.
 *
 * A flush appends the records in memory cell by cell, then a table of 2^bits + 1 file
 * offsets at which cells begin. Neighbouring cells are neighbours on disk, so each
 * flush has a group of cells as one contiguous extent, whatever the number of cells.
 * Tables stay on disk, so memory does not grow with the amount of data, apart from 8
 * bytes for each flush.
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
    unsigned bits;               /* the spill has 2^bits cells */
    struct slu_spill_cell *cell; /* owned */
    uint64_t *table;             /* owned; offset of each flush's table */
    size_t n_flush, cap_flush;
    size_t n_cached;   /* number of flushes through the page cache; they precede all
                          others */
    uint64_t end_byte; /* size of the file, with the bytes that wait in `writer` */
    struct slu_spill_writer *writer; /* borrowed */
    const char *dir;                 /* borrowed, for messages */
};

/* The writer is borrowed until release. Several spills may share a writer if only one
 * of them is written. */
SLU_MUST_USE int slu_spill_open(struct slu_spill *sp, const char *dir, unsigned bits,
                                struct slu_spill_writer *w, struct slu_err *err);
/* No read or write may be in flight. */
void slu_spill_release(struct slu_spill *sp);

/* Begins a flush, at a multiple of SLU_SPILL_ALIGN. */
void slu_spill_begin_flush(struct slu_spill *sp, bool direct);
/* Appends record r to cell c; cells must ascend within a flush. */
SLU_MUST_USE int slu_spill_put(struct slu_spill *sp, size_t c, const struct slu_rec *r,
                               struct slu_err *err);
/* Ends a flush: start[c] is the file offset at which cell c of this flush begins,
 * start[2^bits] the end of the last cell. The flush is on disk after the writer has
 * settled. */
SLU_MUST_USE int slu_spill_end_flush(struct slu_spill *sp, const uint64_t *start,
                                     struct slu_err *err);

/* The bytes of cells [c0, c1) in one flush. */
SLU_MUST_USE int slu_spill_extent(const struct slu_spill *sp, size_t flush, size_t c0,
                                  size_t c1, uint64_t *from_byte, uint64_t *to_byte,
                                  struct slu_err *err);
SLU_MUST_USE int slu_spill_read(const struct slu_spill *sp, void *p, size_t n,
                                uint64_t from_byte, struct slu_err *err);
/* Free bytes of the file's file system; 0 if unknown. */
uint64_t slu_spill_disk_free(const struct slu_spill *sp);
/* Releases the disk space, if the file system supports this. */
void slu_spill_discard(const struct slu_spill *sp, uint64_t from_byte,
                       uint64_t to_byte);

/* Reads the records of one cell from first to last through a buffer. */
struct slu_spill_cursor {
    const struct slu_spill *sp;
    size_t cell, flush;
    uint64_t at_byte, to_byte; /* unread part of the flush's extent, after the bytes
                                  in buf */
    uint8_t *buf;              /* borrowed */
    size_t pos, len, cap;
    bool discard; /* release the disk space of bytes that were read */
};

void slu_spill_cursor_init(struct slu_spill_cursor *cu, const struct slu_spill *sp,
                           size_t cell, uint8_t *buf, size_t cap);
/* The file offset of the next byte. */
static inline uint64_t slu_spill_cursor_tell(const struct slu_spill_cursor *cu)
{
    return cu->at_byte - (cu->len - cu->pos);
}
/* Returns some of the bytes that follow, at most max: *n > 0 bytes at *p, borrowed
 * until the next call; SLU_EOF at the end. */
SLU_MUST_USE int slu_spill_cursor_some(struct slu_spill_cursor *cu, uint64_t max,
                                       const uint8_t **p, size_t *n,
                                       struct slu_err *err);
/* Reads exactly n bytes; SLU_EOF if no bytes are left, SLU_E_FORMAT if fewer than n are
 * left. */
SLU_MUST_USE int slu_spill_cursor_read(struct slu_spill_cursor *cu, void *p, uint64_t n,
                                       struct slu_err *err);

#endif
