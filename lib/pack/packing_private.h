/* packing_private.h - what the files packing*.c share, and private to them.
 *
 * packing.c      arrival, the plan, and which of the two below it is
 * packing_mem.c  items that wait in memory, as arrays: sorted and placed
 * packing_bins.c gathered from there, window by window
 * packing_cuda.c the arrays on a device
 * pack_flow.c    past memory and in parts: the stages, with tables between
 * packing_ext.c  there: where items go, and their bins
 */
#ifndef SLU_PACKING_PRIVATE_H
#define SLU_PACKING_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/gather.h"
#include "kernels/place.h"
#include "kernels/sort.h"
#include "lib/base/map.h"
#include "lib/pack/pack_flow.h"

/* Items side by side that are sorted apart from the others: a domain's. */
struct slu_pack_range {
    uint64_t first_item, n_item; /* n_item may be 0 */
    uint32_t longest;            /* of their lengths; what sort.h wants to know */
    uint32_t zero;
};

/* All items that wait in memory, and where they go, as the kernels take them.
 *
 * Items are numbered 0 … n_item-1, domain by domain, by arrival within a domain. Sorted
 * positions and runs are numbered over all domains too: range d has sorted positions
 * and runs first_item … first_item+n_item-1, and `order` is
 *
 *   order[first_item + k] = first_item + (order of sort.h over its lengths)[k]
 *
 * so that one call of place.h and of gather.h does for all of them: steps, intervals,
 * bins, runs and ids of the packed data go on from one domain to the next.
 *
 * Items that are cut (slu_pack_kind) are neither sorted nor placed: n_step is 0,
 * run_item is 0, 1, … and run_dst is filled before.
 *
 * Ownership: packing_mem.c's, all of it; a device copies what it needs. Host memory
 * stays as it is until the last window is out, so that a device that fails loses
 * nothing.
 */
struct slu_pack_arrays {
    size_t n_item;       /* < 2^32 */
    const uint32_t *len; /* ids of each item, 1 … SLU_MAX_CAPACITY */
    const uint64_t *src; /* its first id in pool */
    const void *pool;    /* n_pool_tok ids of tok_bytes (2 or 4) bytes, page aligned,
                            readable up to a multiple of 64 bytes */
    uint64_t n_pool_tok;
    unsigned tok_bytes;
    uint32_t pad; /* what gather.h fills with */

    const struct slu_pack_range *range;
    size_t n_range;
    const struct slu_place_step *step; /* n_step 0: nothing to sort and place */
    size_t n_step;
    const struct slu_place_interval *interval;
    size_t n_interval;
    uint64_t n_tok; /* ids of the packed data, padding included */

    /* Results, n_item of each. On a device they need not come back but for run_item,
     * from which the segment rows are made. */
    uint32_t *order;
    uint32_t *run_item;
    uint64_t *run_dst;
};

/* What gather.h takes, of arrays that are placed. */
static inline struct slu_gather slu_pack_gather(const struct slu_pack_arrays *a)
{
    return (struct slu_gather){.pool = a->pool,
                               .src = a->src,
                               .len = a->len,
                               .run_item = a->run_item,
                               .run_dst = a->run_dst,
                               .n_run = a->n_item,
                               .pad = a->pad,
                               .tok_bytes = a->tok_bytes};
}

/* ---- a packing ---- */

/* One domain's items. */
struct slu_pack_slot {
    uint32_t domain;              /* as in segments; SLU_NO_DOMAIN where domains mix */
    struct slu_lengths *lengths;  /* where they are counted on arrival */
    struct slu_length_count *row; /* the histogram: of all parts; behind the plan */
    size_t n_row, cap_row;
    struct slu_pack_plan *plan; /* past the budget, and with plan_only */
    uint64_t n_item;            /* that wait, cut */
    uint64_t items, tok;        /* before cutting */
    uint64_t cut, cut_by_concat;
    uint64_t chunk_items; /* in the bin of concatenation that is being filled */
    unsigned __int128 concat_squares; /* sum of l^2 over concat-and-chunk's segments */
    struct slu_pack_sum sum;
};

struct slu_packing {
    struct slu_packing_cfg cfg;
    bool cuts;              /* its method has no plan, see slu_pack_kind */
    struct slu_map slot_of; /* domain -> slot */
    struct slu_pack_slot *slot;
    size_t n_slot, cap_slot;
    uint32_t last_slot;    /* that was looked for */
    uint64_t lengths_byte; /* what the histograms may still take */
    struct {               /* lengths of one slot that are to be counted */
        uint32_t slot, n;
        uint64_t len_tok[256];
    } pending;
    uint64_t n_bin;
    /* What a bin may take: the most pieces that one has, of concatenation counted on
     * arrival, and the ids. */
    uint64_t most_items, id_byte, longest_id;
    /* Both are NULL with plan_only. Where ext is there, items go to the flow, and mem
     * waits for the threads that may still call hold. */
    struct slu_pack_mem *mem;
    struct slu_pack_ext *ext;
    struct slu_pack_flow *flow;       /* that it is of; NULL: none */
    struct slu_pack_related *related; /* NULL: items are not in chains */
    struct slu_packing_stat stat;
};

/* What both of them are given: a piece of a document on its way to a bin. */
struct slu_pack_item {
    struct slu_seg seg; /* id_off is of `id` */
    uint32_t slot;
    uint64_t position; /* in the domain's concatenation */
    const void *id;    /* seg.id_len bytes */
    const void *tok;
};

/* Tells what begins now; device NULL: the CPU. */
void slu_pack_timing(const struct slu_packing *p, const char *name, const char *device);
/* SLU_E_LIMIT where plans of plan_byte bytes are too many. */
SLU_MUST_USE int slu_pack_check_plan(const struct slu_packing *p, uint64_t plan_byte,
                                     struct slu_err *err);
/* Bytes of rows and ids that a bin past memory may have; one with more is SLU_E_LIMIT.
 */
uint64_t slu_pack_bin_limit(const struct slu_packing *p);
SLU_MUST_USE int slu_pack_refuse_bin(const struct slu_packing *p, uint64_t byte,
                                     struct slu_err *err);
/* Counts a length on arrival. */
SLU_MUST_USE int slu_pack_count(struct slu_packing *p, uint32_t slot, uint64_t len_tok,
                                struct slu_err *err);
/* What the solver is told. */
struct slu_pack_cfg slu_pack_solver_cfg(const struct slu_packing *p);
/* Slot i's histogram; counting ends. Caller frees *row with free(). */
SLU_MUST_USE int slu_pack_rows(struct slu_packing *p, size_t i,
                               struct slu_length_count **row, size_t *n,
                               struct slu_err *err);
/* The next slot, of a domain that has none yet. */
SLU_MUST_USE int slu_pack_new_slot(struct slu_packing *p, uint32_t domain,
                                   struct slu_err *err);
/* Makes slot i's plan from its histogram, which it takes ownership of; sum too. */
SLU_MUST_USE int slu_pack_make_plan(struct slu_packing *p, size_t i,
                                    struct slu_length_count *row, size_t n,
                                    struct slu_err *err);
/* The slot of a domain, made where there is none. */
SLU_MUST_USE int slu_pack_find_slot(struct slu_packing *p, uint32_t domain,
                                    uint32_t *slot, struct slu_err *err);

/* ---- packing_mem.c, packing_bins.c ---- */

struct slu_pack_mem {
    struct slu_packing_cfg cfg;
    uint64_t limit_byte;
    bool huge; /* worth large pages */

    /* By arrival. Address space for all there may be; pages count once they are used.
     */
    uint8_t *pool;
    uint64_t cap_tok;
    _Atomic uint64_t n_tok; /* given away, perhaps past cap_tok */
    atomic_bool closed;     /* the budget is spent */
    struct slu_seg *seg;    /* id_off is of id */
    uint32_t *len, *slot;
    uint64_t *src;
    size_t n_item, cap_item;
    uint8_t *id;
    uint64_t n_id;

    /* The plan. */
    uint32_t *arrival; /* of an item in a.*; NULL: its own number */
    uint32_t *len_of;  /* backs a.len where there are several domains */
    uint64_t *src_of;
    struct slu_pack_range *range;
    struct slu_place_step *step;
    struct slu_place_interval *interval;
    uint32_t *room; /* ids unfilled in each bin of an interval */
    size_t n_step, cap_step, n_interval, cap_interval, cap_room;
    uint64_t n_bin, n_packed; /* bins, and ids in them */
    struct slu_pack_arrays a;

    struct slu_pack_cuda *cuda; /* where they are on a device; NULL: here */

    /* What take gives next. */
    size_t at_interval;
    uint64_t at_bin, at_run;
};

/* *m is NULL where there is no memory to set aside: then items go the other way. */
SLU_MUST_USE int slu_pack_mem_new(struct slu_pack_mem **m,
                                  const struct slu_packing_cfg *cfg,
                                  struct slu_err *err);
uint64_t slu_pack_mem_hold(struct slu_pack_mem *m, const struct slu_batch *b,
                           const struct slu_run *run, size_t n_run);
/* Takes an item whose tokens are held at `at`; false where the budget is spent, and
 * then nothing was done. */
bool slu_pack_mem_put(struct slu_pack_mem *m, const struct slu_pack_item *it,
                      uint64_t at, size_t n_slot);
/* Gives all items to ext, in order of arrival, and most of the memory back; hold holds
 * nothing from then on. */
SLU_MUST_USE int slu_pack_mem_leave(struct slu_packing *p, struct slu_err *err);
SLU_MUST_USE int slu_pack_mem_plan(struct slu_packing *p, struct slu_err *err);
/* Finds the most pieces that a bin has, behind placing. */
void slu_pack_mem_heaviest(struct slu_packing *p);
SLU_MUST_USE int slu_pack_mem_take(struct slu_packing *p, struct slu_packing_window *w,
                                   struct slu_batch *out, uint64_t tok,
                                   struct slu_err *err);
/* The device answered `code`: the CPU goes on, or err is filled. */
SLU_MUST_USE int slu_pack_mem_fault(struct slu_pack_mem *m, int code,
                                    struct slu_err *err);
SLU_MUST_USE int slu_pack_mem_fill(const struct slu_packing *p,
                                   struct slu_packing_window *w, struct slu_batch *out,
                                   struct slu_err *err);
void slu_pack_mem_free(struct slu_pack_mem *m);

/* ---- packing_related.c ---- */

SLU_MUST_USE int slu_pack_related_new(struct slu_pack_related **r, struct slu_err *err);
void slu_pack_related_free(struct slu_pack_related *r);
/* An item of the run of that number arrived. */
SLU_MUST_USE int slu_pack_related_add(struct slu_packing *p, size_t run,
                                      struct slu_err *err);
/* Makes a slot's chains; *row is the histogram of their lengths, malloc'd. */
SLU_MUST_USE int slu_pack_related_rows(struct slu_packing *p, size_t slot,
                                       struct slu_length_count **row, size_t *n,
                                       struct slu_err *err);
/* Appends the intervals of a slot's plan to those of mem. */
SLU_MUST_USE int slu_pack_related_append(struct slu_packing *p, size_t slot,
                                         struct slu_err *err);
/* Fills mem's run_item and run_dst. */
void slu_pack_related_place(const struct slu_packing *p);

/* ---- packing_ext.c ---- */

/* An item as it waits and as it is sorted; its id and its tokens follow, each with
 * zeros up to a multiple of 8. */
struct slu_pack_wait {
    uint64_t source, document, offset, score;
    uint32_t len_tok, domain, slot, id_len;
};

struct slu_pack_ext {
    struct slu_pack_site { /* of a slot */
        uint64_t first_bin;
        uint64_t *rank; /* by number of a length in the plan: of the next item; */
        uint64_t *end;  /* and of the first that is not to be given here */
    } * site;           /* NULL: there is no plan so far */
    size_t n_site;

    /* The bin that is being filled. */
    size_t slot; /* it is one of this slot's */
    struct slu_pack_interval *interval;
    size_t n_interval, at_interval;
    struct slu_table *items; /* in order; */
    struct slu_u128 key;     /* of the one that comes next, if any */
    const struct slu_pack_wait *item;
    uint32_t domain; /* of item, in this process */
    uint64_t next_bin, end_bin;
};

/* Bins spread over all 64-bit numbers, then the place in the bin; and back. */
static inline struct slu_u128 slu_pack_key(uint64_t n_bin, uint64_t bin, uint64_t place)
{
    unsigned __int128 spread = (unsigned __int128)bin << 64;
    return (struct slu_u128){place, (uint64_t)(spread / n_bin)};
}
static inline uint64_t slu_pack_bin_of(uint64_t n_bin, struct slu_u128 key)
{
    unsigned __int128 scaled = (unsigned __int128)key.hi * n_bin;
    return (uint64_t)((scaled + UINT64_MAX) >> 64);
}
static inline uint64_t slu_pack_pad8(uint64_t n)
{
    return (n + 7) & ~UINT64_C(7);
}

/* p->ext, which has no sites yet. */
SLU_MUST_USE int slu_pack_ext_new(struct slu_packing *p, struct slu_err *err);
/* Where the slots' bins are, behind their plans; finds most_items. */
SLU_MUST_USE int slu_pack_ext_sites(struct slu_packing *p, struct slu_err *err);
SLU_MUST_USE int slu_pack_ext_next(struct slu_packing *p, struct slu_packing_window *w,
                                   struct slu_batch *out, uint64_t tok,
                                   struct slu_err *err);
void slu_pack_ext_free(struct slu_pack_ext *x);

/* ---- pack_flow.c ---- */

/* Takes an item: it waits for the plan, or goes where that says. */
SLU_MUST_USE int slu_pack_flow_put(struct slu_packing *p,
                                   const struct slu_pack_item *it, struct slu_err *err);
/* The next item of the bins to x->item. */
SLU_MUST_USE int slu_pack_flow_next(struct slu_packing *p, struct slu_err *err);
/* n items with keys like this one were taken: the next bin, and all of it? */
SLU_MUST_USE int slu_pack_flow_check(struct slu_packing *p, struct slu_u128 key,
                                     uint64_t n, struct slu_err *err);

#endif
