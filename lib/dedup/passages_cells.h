/* passages_cells.h - where keys meet that are equal: records of 24 bytes by ranges of
 * their keys, in memory up to a budget and past it in a file, and the groups of them.
 *
 * What lib/sorter does for any record, for records of one size of which most are alone
 * with their key. Records go to cells by the top bits of the key and stay in the order
 * in which they came; in each cell, or a few small ones together, a table of bits finds
 * what came once, which is left out; the rest is sorted by key, stably. Cells are
 * independent, so they are read and grouped by several threads. A cell that is larger
 * than a thread's memory (one key with a large part of all records) goes through
 * lib/sorter. So the cost is linear in the records whatever their keys, and a record is
 * written and read once at most but for such cells.
 *
 * Ties: records of a key come in the order of val, if they were put in that order.
 *
 * Thread safety: one thread at a time on a handle, slu_cells_groups' own apart.
 */
#ifndef SLU_PASSAGES_CELLS_H
#define SLU_PASSAGES_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/dedup/passages_scan.h"
#include "lib/err.h"

struct slu_cells;

/* budget_byte, at least 64 KiB, holds what waits; tmpdir is borrowed. */
SLU_MUST_USE int slu_cells_new(struct slu_cells **c, uint64_t budget_byte,
                               const char *tmpdir, struct slu_err *err);
/* Cells for other work than slu_cells_groups over all keys; before the first put. Of
 * keys only the top group_bits of hi count, as in slu_cells_ops. Keys [0, 2^64) are cut
 * in n_range ranges, slu_cells_range says which. */
struct slu_cells_cfg {
    uint64_t budget_byte;
    const char *tmpdir; /* borrowed */
    uint64_t n_range;
    unsigned group_bits;
    /* A cell for each range, for slu_cells_read; else all cells in one range, whose
     * keys are the only ones that come. */
    bool partition;
};
SLU_MUST_USE int slu_cells_new_of(struct slu_cells **c, const struct slu_cells_cfg *cfg,
                                  struct slu_err *err);
static inline uint64_t slu_cells_range(uint64_t hi, uint64_t n_range,
                                       unsigned group_bits)
{
    hi = hi >> (64 - group_bits) << (64 - group_bits);
    return (uint64_t)(((unsigned __int128)hi * n_range) >> 64);
}
/* Adds n records. */
SLU_MUST_USE int slu_cells_put(struct slu_cells *c, const struct slu_keyed *r, size_t n,
                               struct slu_err *err);
void slu_cells_free(struct slu_cells *c);
uint64_t slu_cells_spilled(const struct slu_cells *c);
uint64_t slu_cells_count(const struct slu_cells *c);

/* What sees the records: in ascending order of (hi, lo, val) within a group, that is
 * records with the same top group_bits (<= 64) of hi; all records of a group that has
 * at least two, and by chance some that are alone. */
struct slu_cells_ops {
    unsigned group_bits;
    size_t state_byte; /* a state is zero at first; one a thread */
    /* Any thread. Appends what it finds to `out`. */
    int (*feed)(void *state, unsigned n_tok, const struct slu_keyed *r,
                struct slu_buf *out, struct slu_err *err);
    unsigned n_tok; /* for feed */
    /* After the last record of a cell: as if a group ended. */
    int (*end)(void *state, struct slu_buf *out, struct slu_err *err);
    void (*release)(void *state);
    /* Serial, in no order that means anything; `out` is cleared after it. */
    int (*take)(void *ctx, struct slu_buf *out, struct slu_err *err);
    unsigned out_byte; /* what feed appends for a record, at most on average */
    void *ctx;         /* of take */
};

/* No more puts. work_byte is beside the budget of slu_cells_new. */
SLU_MUST_USE int slu_cells_groups(struct slu_cells *c, const struct slu_cells_ops *ops,
                                  uint64_t work_byte, unsigned n_threads,
                                  struct slu_err *err);

#endif
