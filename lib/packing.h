/* packing.h - sequences that wait until all of them are known, and the bins they go to.
 *
 *   add … add, plan, next … next
 *
 * Items wait in the order of their arrival (spool.h) while their lengths are counted.
 * plan makes one plan a domain (packer.h; one for everything with mix_domains): domains
 * follow one another in the order in which they first appeared, bins within a domain in
 * plan order (semantics.md 15). Each item's bin and place are then arithmetic on its
 * rank, and sorter.h brings the items there. Two passes over what waits, within
 * budget_byte.
 *
 * The result depends on items, their order and cfg's first block, on nothing else.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_PACKING_H
#define SLU_PACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"
#include "decompose.h"
#include "err.h"
#include "lengths.h"
#include "packer.h"

struct slu_packing_cfg {
    enum slu_pack_method method;
    uint64_t capacity;  /* ids a bin, 1 … SLU_MAX_CAPACITY */
    uint64_t max_items; /* a bin, not for SLU_PACK_CONCAT; 0: no limit */
    bool mix_domains;
    bool drop;    /* drop bins that are not full, else pad them */
    uint64_t pad; /* id of padding; not read with drop */

    unsigned tok_bytes;
    bool plan_only; /* count only: next may not be called */
    uint64_t budget_byte;
    const char *tmpdir; /* borrowed */
    unsigned n_threads;
    struct slu_device *device; /* borrowed; NULL: the CPU */
};

struct slu_packing;

/* SLU_E_LIMIT where bins are too large for the budget. */
SLU_MUST_USE int slu_packing_new(struct slu_packing **p,
                                 const struct slu_packing_cfg *cfg,
                                 struct slu_err *err);
/* Takes a run of b (decompose.h) as an item; copies. What is longer than a bin is cut:
 * into pieces of a bin's length, or where chunks end (concat). Adds to *pieces
 * what it became. Runs without tokens are no items. */
SLU_MUST_USE int slu_packing_add(struct slu_packing *p, const struct slu_batch *b,
                                 const struct slu_run *run, uint64_t *pieces,
                                 struct slu_err *err);
/* No more items. */
SLU_MUST_USE int slu_packing_plan(struct slu_packing *p, struct slu_err *err);
/* Clears out and fills it with the next bins, padded, about `tok` tokens of them.
 * SLU_EOF behind the last. */
SLU_MUST_USE int slu_packing_next(struct slu_packing *p, struct slu_batch *out,
                                  uint64_t tok, struct slu_err *err);

/* What the plan comes to; items are counted before they are cut. Valid after plan. */
struct slu_pack_sum slu_packing_sum(const struct slu_packing *p);
/* The same of concat-and-chunk for the same items, the baseline. */
struct slu_pack_sum slu_packing_baseline(const struct slu_packing *p);

struct slu_packing_stat {
    uint64_t joined;           /* sequences that went into bins, less the bins */
    uint64_t padding;          /* tokens */
    struct slu_count not_full; /* bins that were dropped */
};
/* Valid after the last next. */
struct slu_packing_stat slu_packing_stat(const struct slu_packing *p);
/* Bytes written to temporary files so far. */
uint64_t slu_packing_spilled(const struct slu_packing *p);
/* NULL is legal. */
void slu_packing_free(struct slu_packing *p);

/* Appends a table for people: the packing beside the baseline. passed: sequences that
 * do not wait. */
SLU_MUST_USE int slu_packing_table(const struct slu_packing *p,
                                   const struct slu_count *passed, struct slu_buf *text,
                                   struct slu_err *err);

#endif
