/* grouper_private.h - shared by grouper.c (storing), grouper_groups.c (grouping) and
 * the code that writes cells to files. Private to them.
 */
#ifndef SLU_GROUPER_PRIVATE_H
#define SLU_GROUPER_PRIVATE_H

#include "lib/flow/grouper.h"

struct slu_cell {
    uint64_t *at, *end;   /* free part of the last chunk */
    uint32_t first, last; /* its chunks in memory; UINT32_MAX: none */
    uint64_t n_row;       /* rows in memory and in the file */
};

struct slu_grouper {
    const char *tmpdir;
    unsigned n_word, group_bits;
    size_t n_cell;
    uint64_t mask, scale; /* range of word 0, from which its top bits give the cell */
    struct slu_cell *cell;
    uint64_t *pool; /* max_chunk chunks of per_chunk words */
    size_t pool_byte, per_chunk, n_chunk, max_chunk;
    uint32_t *next; /* the next chunk of the same cell */
    uint64_t n_row;
    int fd; /* -1: no rows were flushed */
    uint64_t file_byte;
    uint64_t *extent; /* for each flush, n_cell + 1 offsets in the file */
    size_t n_flush, cap_extent;
};

struct slu_grouper_cursor { /* a position in a cell; starts as zeros except for the
                             number of the cell */
    size_t cell, flush, chunk;
    uint64_t byte;
};

/* Ends the puts. If there is a file, moves all rows to it and frees the memory. */
SLU_MUST_USE int slu_grouper_seal(struct slu_grouper *c, struct slu_err *err);
/* Reads the next rows of the cursor's cell, in the order of the puts. Fewer than max
 * only at the end of the cell. */
SLU_MUST_USE int slu_grouper_read(const struct slu_grouper *c,
                                  struct slu_grouper_cursor *at, uint64_t *to,
                                  size_t max, size_t *n_read, struct slu_err *err);

#endif
