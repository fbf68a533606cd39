/* packing_table.h - compares the methods for the items of a packing, by the figures
 * that choices are made by.
 *
 * A waiting sequence is an item. Every method but concat-and-chunk first cuts an item
 * longer than a bin into pieces of a bin's length and a rest; concat-and-chunk cuts
 * where a bin ends. A *segment* is the part of an item in one bin. With several domains
 * all figures are of sums over the domains' plans. No figure counts padding as tokens
 * or knows of bins that are dropped because they are not full.
 *
 *   certificate   bins - ceil(tokens / ids of a bin): 0 proves that no packing has
 *                 fewer bins
 *   fill          tokens / ids of the bins
 *   padding       (ids of the bins - tokens) / tokens; r_pad of arXiv 2407.07495
 *   truncation    items cut / items; r_tru of arXiv 2407.07495
 *   concatenation items / bins; r_cat of arXiv 2407.07495
 *   mean context  sum of l (l - 1) / (2 sum of l) over segments of l tokens: the mean
 *                 number of tokens before a token in its own document, if attention
 *                 stays inside documents (appendix F of arXiv 2405.13226)
 *   attention     sum of l^2 over segments, divided by that of concat-and-chunk
 *
 * The figures of concat-and-chunk depend on the order of the items and are exact, too.
 */
#ifndef SLU_PACKING_TABLE_H
#define SLU_PACKING_TABLE_H

#include "lib/pack/packing.h"

struct slu_packing_row {
    /* why the method does not apply; the fields below are 0 then. Otherwise "" */
    char why[128];
    struct slu_pack_sum sum;
    uint64_t lost; /* tokens in bins that are not full: --fill drop drops these */
    double padding, truncation, concatenation, mean_context, attention;
    double seconds; /* of solving: the only figure that varies between runs */
};

/* Fills row m with the figures of method m; for the chosen method, those of the plan to
 * apply, if there is one. p must be planned with plan_only. Leaves out methods that
 * take much longer than the others, unless chosen. */
SLU_MUST_USE int slu_packing_compare(const struct slu_packing *p,
                                     struct slu_packing_row row[SLU_PACK_METHODS],
                                     struct slu_err *err);
/* Appends the rows as a table for people, at most 100 columns wide. passed: sequences
 * that do not wait. */
SLU_MUST_USE int slu_packing_table(const struct slu_packing *p,
                                   const struct slu_packing_row *row,
                                   const struct slu_count *passed, struct slu_buf *text,
                                   struct slu_err *err);
/* Appends the rows as a JSON array. */
SLU_MUST_USE int slu_packing_table_json(const struct slu_packing *p,
                                        const struct slu_packing_row *row,
                                        struct slu_buf *text, struct slu_err *err);

#endif
