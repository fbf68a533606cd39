/* packing.h - sequences that wait until all of them are known, and the bins they go to.
 *
 *   (hold) add … add, plan, take (fill) settle … until SLU_EOF
 *
 * plan makes one plan a domain (packer.h; one for everything with mix_domains): domains
 * follow one another in the order in which they first appeared, bins within a domain in
 * plan order (DESIGN.md, Packing). Each item's bin and place are then arithmetic on its
 * rank.
 *
 * While all that waits, and what it takes to sort it, fits half of budget_byte, it
 * stays in memory: items are arrays, sorted by length and placed by kernels, and bins
 * are gathered where threads are free (packing_mem.c). Past that add is SLU_E_LIMIT,
 * but in a flow (pack_flow.h), which goes on past memory and has the same bins.
 *
 * The result depends on items, their order and cfg's first block, on nothing else.
 *
 * Thread safety: one thread at a time on a handle, but for hold and fill, which any
 * number of threads may call, hold until plan, fill after it, beside the calls of that
 * one thread.
 */
#ifndef SLU_PACKING_H
#define SLU_PACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/decompose/decompose.h"
#include "lib/pack/packer.h"
#include "lib/pack/planfile.h"
#include "lib/stream/batch.h"
#include "lib/stream/lengths.h"

SLU_BEGIN_DECLS

struct slu_packing_cfg {
    enum slu_pack_method method;
    uint64_t capacity;  /* ids a bin, 1 … SLU_MAX_CAPACITY */
    uint64_t max_items; /* a bin, not where items are cut; 0: no limit */
    /* Bins of several lengths, as in packer.h; bin_tok is borrowed. */
    const uint64_t *bin_tok;
    size_t n_bin_tok;
    double padding_threshold;
    bool related; /* chains of related items (related.h), max_items 0, not concat */
    bool mix_domains;
    bool drop;    /* drop bins that are not full, else pad them */
    uint64_t pad; /* id of padding; not read with drop */

    unsigned tok_bytes;
    bool plan_only; /* count only: next may not be called */
    uint64_t budget_byte;
    const char *tmpdir; /* borrowed */
    unsigned n_threads;
    struct slu_device *device; /* borrowed; NULL: the CPU */
    /* Told when a timing begins: histogram, plan, sort, place or write, and on which
     * device; may be NULL. Static strings, but for the device's name. */
    void (*timing)(void *ctx, const char *name, const char *device);
    void *timing_ctx;
    /* Plans are added there, or come from there instead of being made; borrowed, may be
     * NULL. Not where items are cut. */
    struct slu_planfile *save;
    const struct slu_planfile *apply;
    struct slu_names *names; /* of the domains, for the two */
};

/* What plans of such a cfg are made for: the head of a file of them. */
struct slu_plan_head slu_packing_head(const struct slu_packing_cfg *cfg);

struct slu_packing;

/* SLU_E_LIMIT where bins are too large for the budget, SLU_E_MISMATCH where the plan to
 * apply is for others. */
SLU_MUST_USE int slu_packing_new(struct slu_packing **p,
                                 const struct slu_packing_cfg *cfg,
                                 struct slu_err *err);
/* Copies the tokens of n_run runs of b to where they wait, if there is room: returns
 * where that is, or SLU_NOT_HELD. A help only: what is given to add may be held or not.
 */
#define SLU_NOT_HELD UINT64_MAX
uint64_t slu_packing_hold(struct slu_packing *p, const struct slu_batch *b,
                          const struct slu_run *run, size_t n_run);
/* Takes n_run runs of b (decompose.h), each as an item; copies what is not held. held:
 * what slu_packing_hold returned for the same runs, or SLU_NOT_HELD. What is longer
 * than a bin is cut: into pieces of a bin's length, or where chunks end (concat). Adds
 * to *pieces what they became. Runs without tokens are no items. */
SLU_MUST_USE int slu_packing_add(struct slu_packing *p, const struct slu_batch *b,
                                 const struct slu_run *run, size_t n_run, uint64_t held,
                                 uint64_t *pieces, struct slu_err *err);
/* With cfg.related, before each add: key has SLU_RELATED_KEYS for each of its runs;
 * borrowed until it returns. What waits must fit memory then: add is SLU_E_LIMIT past
 * it. */
void slu_packing_relate(struct slu_packing *p, const uint32_t *key);
struct slu_packing_related {
    uint64_t items, chains; /* in chains of more than one item; these */
};
/* Valid after plan, with cfg.related. */
struct slu_packing_related slu_packing_related(const struct slu_packing *p);
/* No more items. SLU_E_MISMATCH where the plan to apply is for others. */
SLU_MUST_USE int slu_packing_plan(struct slu_packing *p, struct slu_err *err);

struct slu_packing_stat {
    uint64_t joined;           /* sequences that went into bins, less the bins */
    uint64_t padding;          /* tokens */
    struct slu_count not_full; /* bins that were dropped */
};

/* Some bins on their way: the caller's memory, private to lib/packing. */
struct slu_packing_window {
    size_t interval;              /* where they begin */
    uint64_t bin;                 /* in the interval */
    uint64_t n_bin, n_run, n_tok; /* of the bins: n_tok without those dropped */
    uint64_t first_run;
    bool got; /* from a device: the batch has the ids of all these bins, in order */
    struct slu_packing_stat stat;
};
/* Bytes that the heaviest bin may take, about; valid after plan. */
uint64_t slu_packing_bin_byte(const struct slu_packing *p);
/* Chooses the next bins, about `tok` tokens of them. SLU_EOF behind the last. `out` is
 * theirs until the window is settled. */
SLU_MUST_USE int slu_packing_take(struct slu_packing *p, struct slu_packing_window *w,
                                  struct slu_batch *out, uint64_t tok,
                                  struct slu_err *err);
/* Makes out those bins, padded. There may be none, where bins are dropped. */
SLU_MUST_USE int slu_packing_fill(const struct slu_packing *p,
                                  struct slu_packing_window *w, struct slu_batch *out,
                                  struct slu_err *err);
/* Books a window that was filled. */
void slu_packing_settle(struct slu_packing *p, const struct slu_packing_window *w);

/* What the plan comes to; items are counted before they are cut. Valid after plan. */
struct slu_pack_sum slu_packing_sum(const struct slu_packing *p);
/* The same of concat-and-chunk for the same items, the baseline. */
struct slu_pack_sum slu_packing_baseline(const struct slu_packing *p);

/* Of the windows that were settled. */
struct slu_packing_stat slu_packing_stat(const struct slu_packing *p);
/* NULL is legal. */
void slu_packing_free(struct slu_packing *p);

SLU_END_DECLS

#endif
