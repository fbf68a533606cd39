/* grouper.h - brings rows with equal keys together. A row has 3 to 6 words, and its key
 * is the top of the first word. Rows wait in cells, which are ranges of the first word:
 * in memory up to a budget, beyond it in a file.
 *
 * lib/flow/sorter does the same for any record; a grouper is for rows of one size of
 * which most have a key that no other row has. The top bits of word 0 choose the cell
 * of a row, and rows stay in the order in which they came. For each cell, or a few
 * small ones together, a table of bits finds keys that occur once, and their rows are
 * left out; the other rows are sorted by their words. Cells are independent, so several
 * threads read and group them. A cell larger than a thread's memory (one key with a
 * large part of all rows) goes through lib/flow/sorter. So the cost is linear in the
 * rows whatever their keys are, and a row is written and read at most once, except in
 * such cells.
 *
 * Thread safety: one thread at a time on a handle; slu_grouper_run starts threads of
 * its own.
 */
#ifndef SLU_GROUPER_H
#define SLU_GROUPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define SLU_GROUPER_LEAST_WORDS 3
#define SLU_GROUPER_MOST_WORDS  6

struct slu_grouper;

/* A group is all rows with the same top group_bits of word 0. The values of a word, [0,
 * 2^64), are divided into n_range ranges; slu_grouper_range gives the range of a
 * value. */
struct slu_grouper_cfg {
    unsigned n_word;      /* words of a row */
    unsigned group_bits;  /* 1 to 64 */
    uint64_t budget_byte; /* at least 64 KiB; for the rows that wait */
    const char *tmpdir;   /* borrowed */
    uint64_t n_range;
    /* true: a cell for each range, for slu_grouper_read. false: all cells in one range,
     * and only rows of this range are added. */
    bool partition;
};
SLU_MUST_USE int slu_grouper_new(struct slu_grouper **c,
                                 const struct slu_grouper_cfg *cfg,
                                 struct slu_err *err);
static inline uint64_t slu_grouper_range(uint64_t word, uint64_t n_range,
                                         unsigned group_bits)
{
    word = word >> (64 - group_bits) << (64 - group_bits);
    return (uint64_t)(((unsigned __int128)word * n_range) >> 64);
}
/* Adds n rows. */
SLU_MUST_USE int slu_grouper_put(struct slu_grouper *c, const uint64_t *row, size_t n,
                                 struct slu_err *err);
void slu_grouper_free(struct slu_grouper *c);
uint64_t slu_grouper_spilled(const struct slu_grouper *c);

/* Receives the rows: all rows of each group of two or more, in ascending order of their
 * words, and by chance some rows that are alone. */
struct slu_group_ops {
    size_t state_byte; /* size of a thread's state, which starts as zeros */
    const void *arg;   /* argument of feed */
    /* Any thread. Receives a row and appends results to `out`. SLU_EOF: the group that
     * ended has more results, so feed is called again with the same row after `out` was
     * taken. The same holds for end. */
    int (*feed)(void *state, const void *arg, const uint64_t *row, struct slu_buf *out,
                struct slu_err *err);
    /* Called after the last row of a cell, to end its last group. */
    int (*end)(void *state, struct slu_buf *out, struct slu_err *err);
    void (*release)(void *state); /* frees a state; NULL: a state owns nothing */
    /* Receives `out`, one call at a time and in an arbitrary order; `out` is cleared
     * afterwards. */
    int (*take)(void *ctx, struct slu_buf *out, struct slu_err *err);
    unsigned out_byte;  /* bytes that feed appends for a row; an upper bound of the
                           mean */
    uint64_t work_byte; /* memory for groups in addition to that of the table */
    void *ctx;          /* argument of take */
};

/* Ends the puts and passes all groups to ops. work_byte: memory in addition to the
 * budget of slu_grouper_new. */
SLU_MUST_USE int slu_grouper_run(struct slu_grouper *c, const struct slu_group_ops *ops,
                                 uint64_t work_byte, unsigned n_threads,
                                 struct slu_err *err);

#endif
