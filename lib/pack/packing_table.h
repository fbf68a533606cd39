/* packing_table.h - what each method would come to for the items of a packing: the
 * figures that choices are made by.
 *
 * A sequence that waits is an item; one longer than a bin is cut into pieces of a bin's
 * length and a rest first, by every method but concat-and-chunk, which cuts where a bin
 * ends. A *segment* is what is left in one bin of an item. With several domains all
 * figures are of sums over the domains' plans. None takes padding for tokens, and none
 * knows of bins that are dropped because they are not full.
 *
 *   certificate   bins - ceil(tokens / ids of a bin): 0 proves that no packing has
 *                 fewer bins
 *   fill          tokens / ids of the bins
 *   padding       (ids of the bins - tokens) / tokens; r_pad of arXiv 2407.07495
 *   truncation    items cut / items; r_tru of the same
 *   concatenation items / bins; r_cat of the same
 *   mean context  sum of l (l - 1) / (2 sum of l) over segments of l tokens: how many
 *                 tokens of its own document a token has before it, on average, where
 *                 attention keeps to documents         (appendix F of arXiv 2405.13226)
 *   attention     sum of l^2 over segments, divided by that of concat-and-chunk
 *
 * Those of concat-and-chunk depend on the order of the items and are exact, too.
 */
#ifndef SLU_PACKING_TABLE_H
#define SLU_PACKING_TABLE_H

#include "lib/pack/packing.h"

struct slu_packing_row {
    char why[128]; /* the method does not apply, and nothing below is known; or "" */
    struct slu_pack_sum sum;
    uint64_t lost; /* tokens in bins that are not full, which --fill drop would drop */
    double padding, truncation, concatenation, mean_context, attention;
    double seconds; /* that solving took: the one figure that is not always the same */
};

/* Row m is of method m, that of the method chosen of the plan to apply, where there is
 * one. p: planned, with plan_only. Methods that would take much longer
 * than others are left out where they were not chosen. */
SLU_MUST_USE int slu_packing_compare(const struct slu_packing *p,
                                     struct slu_packing_row row[SLU_PACK_METHODS],
                                     struct slu_err *err);
/* Appends the rows as a table for people, at most 100 columns wide. passed: sequences
 * that do not wait. */
SLU_MUST_USE int slu_packing_table(const struct slu_packing *p,
                                   const struct slu_packing_row *row,
                                   const struct slu_count *passed, struct slu_buf *text,
                                   struct slu_err *err);
/* Appends them as a JSON array. */
SLU_MUST_USE int slu_packing_table_json(const struct slu_packing *p,
                                        const struct slu_packing_row *row,
                                        struct slu_buf *text, struct slu_err *err);

#endif
