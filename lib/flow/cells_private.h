/* cells_private.h - what cells.c (cells), cells_groups.c (what meets in them) and who
 * writes cells to files share. Private to them.
 */
#ifndef SLU_CELLS_PRIVATE_H
#define SLU_CELLS_PRIVATE_H

#include "lib/flow/cells.h"

struct slu_cell {
    uint64_t *at, *end;   /* room in the last chunk */
    uint32_t first, last; /* chunks in memory, UINT32_MAX: none */
    uint64_t n_row;       /* in memory and in the file */
};

struct slu_cells {
    const char *tmpdir;
    unsigned n_word, group_bits;
    size_t n_cell;
    uint64_t mask, scale; /* of word 0, before its top bits say which cell */
    struct slu_cell *cell;
    uint64_t *pool; /* max_chunk chunks of per_chunk words */
    size_t pool_byte, per_chunk, n_chunk, max_chunk;
    uint32_t *next; /* chunk -> the next of its cell */
    uint64_t n_row;
    int fd; /* -1: nothing was flushed */
    uint64_t file_byte;
    uint64_t *extent; /* a flush: n_cell + 1 offsets in the file */
    size_t n_flush, cap_extent;
};

struct slu_cells_cursor { /* zero but for the cell at first */
    size_t cell, flush, chunk;
    uint64_t byte;
};

/* No more puts; where there is a file, everything is in it and the memory is free. */
SLU_MUST_USE int slu_cells_seal(struct slu_cells *c, struct slu_err *err);
/* The next rows of the cursor's cell, in the order in which they were put; fewer than
 * max only at its end. */
SLU_MUST_USE int slu_cells_read(const struct slu_cells *c, struct slu_cells_cursor *at,
                                uint64_t *to, size_t max, size_t *n_read,
                                struct slu_err *err);

#endif
