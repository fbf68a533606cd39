/* packing.h - collects waiting sequences until all are known, plans their bins, and
 * fills the bins.
 *
 * Call hold (optional) and add for all items, then plan; then take, fill and settle in
 * turn, until take returns SLU_EOF.
 *
 * slu_packing_plan makes one plan per domain (packer.h; one for everything with
 * mix_domains). Domains follow one another in order of first appearance, bins within a
 * domain in plan order (DESIGN.md, Packing). Each item's bin and place then follow from
 * its rank by arithmetic.
 *
 * Items stay in memory as long as they, and the memory to sort them, fit half of
 * budget_byte: as arrays, sorted by length and placed by kernels; any free thread
 * fills bins (packing_bins.c). Beyond that slu_packing_add is SLU_E_LIMIT, except in a
 * flow (pack_flow.h), which continues beyond memory and makes the same bins.
 *
 * The result depends only on the items, their order, and cfg's first block.
 *
 * Thread safety: one thread at a time on a handle, except for hold and fill. Any number
 * of threads may call hold until plan, and fill after plan, beside the calls of that
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
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

struct slu_packing_cfg {
    enum slu_pack_method method;
    uint64_t capacity;  /* ids per bin, 1 … SLU_MAX_CAPACITY */
    uint64_t max_items; /* per bin; 0: unlimited, as for methods that cut items */
    /* For bins of several lengths, as in packer.h; bin_tok is borrowed. */
    const uint64_t *bin_tok;
    size_t n_bin_tok;
    double padding_threshold;
    bool related; /* chains of related items (related.h), max_items 0, not concat */
    bool mix_domains;
    bool drop;    /* drop bins that are not full; false: pad them */
    uint64_t pad; /* id of padding; unused with drop */

    unsigned tok_bytes;
    bool masks;     /* ids are marked (lib/stream/mask.h) */
    bool plan_only; /* count and plan only: no take, fill or settle */
    uint64_t budget_byte;
    const char *tmpdir; /* borrowed */
    unsigned n_threads;
    struct slu_device *device; /* borrowed; NULL: the CPU */
    struct slu_reader *reader; /* gets hashes that come late; NULL: none do */
    /* Called when a timing begins: histogram, plan, sort, place or write, and its
     * device; may be NULL. Strings are static, except the device's name. */
    void (*timing)(void *ctx, const char *name, const char *device);
    void *timing_ctx;
    /* Receives the plans; or gives plans that are applied instead of made. Borrowed,
     * may be NULL; not for methods that cut items. */
    struct slu_planfile *save;
    const struct slu_planfile *apply;
    struct slu_names *names; /* of the domains, for save and apply */
};

/* Returns the head of a plan file for cfg. */
struct slu_plan_head slu_packing_head(const struct slu_packing_cfg *cfg);

struct slu_packing;

/* SLU_E_LIMIT if bins are too large for the budget, SLU_E_MISMATCH if the plan to apply
 * was made for another cfg. */
SLU_MUST_USE int slu_packing_new(struct slu_packing **p,
                                 const struct slu_packing_cfg *cfg,
                                 struct slu_err *err);
/* Copies the tokens of n_run runs of b into the pool, if there is room. Returns their
 * position, or SLU_NOT_HELD. Optional: slu_packing_add accepts runs that are not held.
 */
#define SLU_NOT_HELD UINT64_MAX
uint64_t slu_packing_hold(struct slu_packing *p, const struct slu_batch *b,
                          const struct slu_run *run, size_t n_run);
/* Whether cfg.reader gets the hashes of sequences whose tokens are held, by plan at the
 * latest: a device that is in use hashes them. Each must be a run that is the only one
 * of its sequence, of at most SLU_FRAME_TOKENS. Any thread. */
bool slu_packing_hashes(const struct slu_packing *p);
/* Adds n_run runs of b (decompose.h) as items, and copies those that are not held.
 * held: the result of slu_packing_hold for the same runs, or SLU_NOT_HELD. late: the
 * runs are sequences whose hashes cfg.reader still needs. A run longer than a bin is
 * cut into pieces of a bin's length, or at the ends of chunks (concat). Adds the number
 * of pieces to *pieces. A run without tokens is no item. */
SLU_MUST_USE int slu_packing_add(struct slu_packing *p, const struct slu_batch *b,
                                 const struct slu_run *run, size_t n_run, uint64_t held,
                                 bool late, uint64_t *pieces, struct slu_err *err);
/* With cfg.related, call before each add. key: SLU_RELATED_KEYS for each of its runs;
 * borrowed until add returns. If the items do not fit memory, add is SLU_E_LIMIT. */
void slu_packing_relate(struct slu_packing *p, const uint32_t *key);
struct slu_packing_related {
    uint64_t items, chains; /* items in chains of several; number of such chains */
};
/* Valid after plan, with cfg.related. */
struct slu_packing_related slu_packing_related(const struct slu_packing *p);
/* Ends the additions and makes the plans. SLU_E_MISMATCH if the plan to apply was made
 * for other items. */
SLU_MUST_USE int slu_packing_plan(struct slu_packing *p, struct slu_err *err);

struct slu_packing_stat {
    uint64_t joined;           /* pieces placed, minus bins */
    uint64_t padding;          /* tokens */
    struct slu_count not_full; /* dropped bins */
};

/* Some bins between take and settle: the caller's memory, private to lib/pack. */
struct slu_packing_window {
    size_t interval; /* of the first bin */
    uint64_t bin;    /* number of the first bin in its interval */
    /* of the bins; n_tok: of kept bins, on a device of all */
    uint64_t n_bin, n_run, n_tok;
    uint64_t first_run;
    /* From a device: the ids of all these bins, in order, and their hashes, or NULL. */
    bool got;
    const void *tok;
    struct slu_u128 *hash;
    uint64_t n_filled; /* bins so far */
    struct slu_packing_stat stat;
};
/* Returns about the most bytes that a bin may take. Valid after plan. */
uint64_t slu_packing_bin_byte(const struct slu_packing *p);
/* Returns how many windows may be between take and settle. Valid after plan. */
unsigned slu_packing_windows(const struct slu_packing *p);
/* Chooses the next bins, of about `tok` tokens; where a device fills them, as many as
 * it likes. SLU_EOF after the last bin. `out` belongs to the window until this is
 * settled, and its ids may be the window's. */
SLU_MUST_USE int slu_packing_take(struct slu_packing *p, struct slu_packing_window *w,
                                  struct slu_batch *out, uint64_t tok,
                                  struct slu_err *err);
/* Fills out with the window's bins, padded. out may stay empty if bins are dropped. */
SLU_MUST_USE int slu_packing_fill(const struct slu_packing *p,
                                  struct slu_packing_window *w, struct slu_batch *out,
                                  struct slu_err *err);
/* Adds a filled window to the counts. */
void slu_packing_settle(struct slu_packing *p, const struct slu_packing_window *w);

/* Returns the plan's totals, with items counted before cutting. Valid after plan. */
struct slu_pack_sum slu_packing_sum(const struct slu_packing *p);
/* Returns the totals of concat-and-chunk for the same items, as a baseline. */
struct slu_pack_sum slu_packing_baseline(const struct slu_packing *p);

/* Returns the counts of all settled windows. */
struct slu_packing_stat slu_packing_stat(const struct slu_packing *p);
/* NULL is legal. */
void slu_packing_free(struct slu_packing *p);

SLU_END_DECLS

#endif
