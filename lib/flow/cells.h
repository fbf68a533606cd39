/* cells.h - where keys meet that are equal: rows of 3 to 6 words by ranges of their
 * first word, in memory up to a budget and past it in a file, and the groups of them.
 *
 * What lib/flow/sorter does for any record, for rows of one size of which most are
 * alone with their key. Rows go to cells by the top bits of word 0 and stay in the
 * order in which they came; in each cell, or a few small ones together, a table of bits
 * finds what came once, which is left out; the rest is sorted by its words. Cells are
 * independent, so they are read and grouped by several threads. A cell that is larger
 * than a thread's memory (one key with a large part of all rows) goes through
 * lib/flow/sorter. So the cost is linear in the rows whatever their keys, and a row is
 * written and read once at most but for such cells.
 *
 * Thread safety: one thread at a time on a handle, slu_cells_groups' own apart.
 */
#ifndef SLU_CELLS_H
#define SLU_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define SLU_CELLS_LEAST_WORDS 3
#define SLU_CELLS_MOST_WORDS  6

struct slu_cells;

/* A group are rows with the same top group_bits of word 0. Words [0, 2^64) are cut in
 * n_range ranges, slu_cells_range says which. */
struct slu_cells_cfg {
    unsigned n_word;      /* of a row */
    unsigned group_bits;  /* 1 to 64 */
    uint64_t budget_byte; /* at least 64 KiB, holds what waits */
    const char *tmpdir;   /* borrowed */
    uint64_t n_range;
    /* A cell for each range, for slu_cells_read; else all cells in one range, whose
     * rows are the only ones that come. */
    bool partition;
};
SLU_MUST_USE int slu_cells_new(struct slu_cells **c, const struct slu_cells_cfg *cfg,
                               struct slu_err *err);
static inline uint64_t slu_cells_range(uint64_t word, uint64_t n_range,
                                       unsigned group_bits)
{
    word = word >> (64 - group_bits) << (64 - group_bits);
    return (uint64_t)(((unsigned __int128)word * n_range) >> 64);
}
/* Adds n rows. */
SLU_MUST_USE int slu_cells_put(struct slu_cells *c, const uint64_t *row, size_t n,
                               struct slu_err *err);
void slu_cells_free(struct slu_cells *c);
uint64_t slu_cells_spilled(const struct slu_cells *c);

/* What sees the rows: within a group in ascending order of their words; all rows of a
 * group that has at least two, and by chance some that are alone. */
struct slu_meet_ops {
    size_t state_byte; /* a state is zero at first; one a thread */
    const void *arg;   /* of feed */
    /* Any thread. Appends what it finds to `out`. SLU_EOF: there is more, of the group
     * that ended: it is called again once `out` was taken; so is end. */
    int (*feed)(void *state, const void *arg, const uint64_t *row, struct slu_buf *out,
                struct slu_err *err);
    /* After the last row of a cell: as if a group ended. */
    int (*end)(void *state, struct slu_buf *out, struct slu_err *err);
    void (*release)(void *state); /* NULL: it owns nothing */
    /* Serial, in no order that means anything; `out` is cleared after it. */
    int (*take)(void *ctx, struct slu_buf *out, struct slu_err *err);
    unsigned out_byte;  /* what feed appends for a row, at most on average */
    uint64_t work_byte; /* more memory for groups than the table has of its own */
    void *ctx;          /* of take */
};

/* No more puts. work_byte is beside the budget of slu_cells_new. */
SLU_MUST_USE int slu_cells_groups(struct slu_cells *c, const struct slu_meet_ops *ops,
                                  uint64_t work_byte, unsigned n_threads,
                                  struct slu_err *err);

#endif
