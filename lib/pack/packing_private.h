/* packing_private.h - types and functions shared by packing*.c and pack_flow.c; private
 * to these.
 *
 * packing.c      arrival, the plan, and the choice between the two ways below
 * packing_mem.c  items in memory, as arrays: sorted and placed
 * packing_bins.c bins copied from these arrays, window by window
 * packing_cuda.c the arrays on a device
 * packing_device.c  when there is a device, and the hashes of documents
 * pack_flow.c    beyond memory and in parts: the stages, with tables between
 * packing_ext.c  beyond memory and in parts: where items go, and their bins
 */
#ifndef SLU_PACKING_PRIVATE_H
#define SLU_PACKING_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/copy.h"
#include "kernels/place.h"
#include "kernels/sort.h"
#include "lib/base/map.h"
#include "lib/pack/pack_flow.h"

/* A domain's items, side by side; sorted apart from the others. */
struct slu_pack_range {
    uint64_t first_item, n_item; /* n_item may be 0 */
    uint32_t longest;            /* of their lengths, for sort.h */
    uint32_t zero;
};

/* All items in memory, and their places, as the kernels take them.
 *
 * Items are numbered 0 … n_item-1, domain by domain, by arrival within a domain. Sorted
 * positions and runs are also numbered over all domains: range d has sorted positions
 * and runs first_item … first_item+n_item-1, and `order` is
 *
 *   order[first_item + k] = first_item + (order of sort.h over its lengths)[k]
 *
 * so that one call of place.h and one of copy.h serve all domains: steps, intervals,
 * bins, runs and ids of the packed data continue from one domain to the next.
 *
 * Items of methods that cut (slu_pack_kind) are neither sorted nor placed: n_step is 0,
 * run_item is 0, 1, … and run_dst is filled before.
 *
 * Ownership: packing_mem.c owns all arrays; a device copies what it needs. Host memory
 * stays unchanged until the last window is out, so that a failing device loses nothing.
 */
struct slu_pack_arrays {
    size_t n_item;       /* < 2^32 */
    const uint32_t *len; /* by item: ids, 1 … SLU_MAX_CAPACITY */
    const uint64_t *src; /* by item: its first id in pool */
    const void *pool;    /* n_pool_tok ids of tok_bytes (2 or 4) bytes, page aligned,
                            readable up to a multiple of 64 bytes */
    uint64_t n_pool_tok;
    unsigned tok_bytes;
    bool marked; /* ids have marks of masks */
    /* Sequences in the pool that a device hashes: first id, length, hash (a result). */
    const uint64_t *seq_first;
    const uint32_t *seq_len;
    struct slu_u128 *seq_hash;
    size_t n_seq;
    uint32_t pad; /* copy.h fills gaps with this id */

    const struct slu_pack_range *range;
    size_t n_range;
    const struct slu_place_step *step; /* n_step 0: nothing to sort or place */
    size_t n_step;
    const struct slu_place_interval *interval;
    size_t n_interval;
    uint64_t n_tok; /* ids of the packed data, padding included */

    /* Results, n_item of each. A device need not bring `order` back; the segment rows
     * and its own windows are made from the others. */
    uint32_t *order;
    uint32_t *run_item;
    uint64_t *run_dst;
};

/* Returns the input of copy.h for arrays that are placed. */
static inline struct slu_copy slu_pack_copy(const struct slu_pack_arrays *a)
{
    return (struct slu_copy){.pool = a->pool,
                             .src = a->src,
                             .len = a->len,
                             .run_item = a->run_item,
                             .run_dst = a->run_dst,
                             .n_run = a->n_item,
                             .pad = a->pad,
                             .tok_bytes = a->tok_bytes};
}

/* ---- a packing ---- */

/* A lane: the items of one domain, or of all domains if they share bins. */
struct slu_pack_lane {
    uint32_t domain;             /* as in segments; SLU_NO_DOMAIN with mix_domains */
    struct slu_lengths *lengths; /* counts lengths on arrival, or NULL */
    /* histogram of all parts; or, with plan_only, of the plan */
    struct slu_length_count *row;
    size_t n_row, cap_row;
    struct slu_pack_plan *plan; /* kept beyond memory and with plan_only */
    uint64_t n_item;            /* waiting, after cutting */
    uint64_t items, tok;        /* before cutting */
    uint64_t cut, cut_by_concat;
    uint64_t chunk_items;             /* in concatenation's unfinished bin */
    unsigned __int128 concat_squares; /* sum of l^2 over segments */
    struct slu_pack_sum sum;
};

struct slu_packing {
    struct slu_packing_cfg cfg;
    bool cuts; /* the method cuts items and has no plan, see slu_pack_kind */
    struct slu_map lane_of; /* domain -> lane */
    struct slu_pack_lane *lane;
    size_t n_lane, cap_lane;
    uint32_t last_lane;    /* that slu_pack_find_lane gave */
    uint64_t lengths_byte; /* left for the histograms */
    struct {               /* lengths of one lane, not yet counted */
        uint32_t lane, n;
        uint64_t len_tok[256];
    } pending;
    uint64_t n_bin;
    /* Bounds for a bin: the most pieces in one (of concatenation, counted on arrival);
     * bytes of all ids, and of the longest id. */
    uint64_t most_items, id_byte, longest_id;
    /* mem is NULL with plan_only. If ext is set, items go to the flow, and mem stays
     * until the plan, for threads that may still call hold. */
    struct slu_pack_mem *mem;
    struct slu_pack_ext *ext;
    struct slu_pack_flow *flow; /* the flow that this packing is part of, or NULL */
    struct slu_pack_related *related; /* NULL: no chains */
    struct slu_packing_stat stat;
};

/* A piece of a document on its way to a bin, as given to mem or ext. */
struct slu_pack_item {
    struct slu_seg seg; /* id_off is of `id` */
    uint32_t lane;
    uint64_t position; /* of its first token in the domain's concatenation */
    const void *id;    /* and metadata: slu_seg_str(&seg) bytes */
    const void *tok;
};

/* Reports that timing `name` begins. device NULL: the CPU. */
void slu_pack_timing(const struct slu_packing *p, const char *name, const char *device);
/* SLU_E_LIMIT if plans of plan_byte bytes are too large. */
SLU_MUST_USE int slu_pack_check_plan(const struct slu_packing *p, uint64_t plan_byte,
                                     struct slu_err *err);
/* Returns the most bytes of rows and ids that a bin beyond memory may have;
 * slu_pack_refuse_bin is the SLU_E_LIMIT for a bin with more. */
uint64_t slu_pack_bin_limit(const struct slu_packing *p);
SLU_MUST_USE int slu_pack_refuse_bin(const struct slu_packing *p, uint64_t byte,
                                     struct slu_err *err);
/* Counts a length in the lane's histogram. */
SLU_MUST_USE int slu_pack_count(struct slu_packing *p, uint32_t lane, uint64_t len_tok,
                                struct slu_err *err);
/* Returns the cfg for the solver. */
struct slu_pack_cfg slu_pack_solver_cfg(const struct slu_packing *p);
/* Ends counting and gives lane i's histogram. Caller frees *row with free(). */
SLU_MUST_USE int slu_pack_rows(struct slu_packing *p, size_t i,
                               struct slu_length_count **row, size_t *n,
                               struct slu_err *err);
/* Adds a lane for a domain that has none yet. */
SLU_MUST_USE int slu_pack_new_lane(struct slu_packing *p, uint32_t domain,
                                   struct slu_err *err);
/* Makes lane i's plan and sum from its histogram, and takes ownership of that. */
SLU_MUST_USE int slu_pack_make_plan(struct slu_packing *p, size_t i,
                                    struct slu_length_count *row, size_t n,
                                    struct slu_err *err);
/* Finds the lane of a domain; adds it if absent. */
SLU_MUST_USE int slu_pack_find_lane(struct slu_packing *p, uint32_t domain,
                                    uint32_t *lane, struct slu_err *err);

/* ---- packing_mem.c, packing_bins.c ---- */

struct slu_pack_mem {
    struct slu_packing_cfg cfg;
    uint64_t limit_byte;
    bool huge; /* use large pages */

    /* In the order of arrival. The arrays have address space for the largest possible
     * number; only used pages take memory. */
    uint8_t *pool;
    uint64_t cap_tok;
    _Atomic uint64_t n_tok; /* given away, perhaps more than cap_tok */
    atomic_bool closed;     /* the budget is spent */
    struct slu_seg *seg;    /* id_off: offset in id */
    uint32_t *len, *lane;
    uint64_t *src;
    size_t n_item, cap_item;
    uint8_t *id;
    uint64_t n_id;
    /* Sequences whose hashes cfg.reader needs: the first id in the pool, length, and
     * first item of each. */
    uint64_t *late_first;
    uint32_t *late_len, *late_item;
    size_t n_late;

    /* The plan. */
    uint32_t *arrival; /* arrival number of an item of a; NULL: its own number */
    uint32_t *len_of;  /* a.len if there are several domains */
    uint64_t *src_of;
    struct slu_pack_range *range;
    struct slu_place_step *step;
    struct slu_place_interval *interval;
    uint32_t *room; /* ids unfilled in each bin of an interval */
    size_t n_step, cap_step, n_interval, cap_interval, cap_room;
    uint64_t n_bin, n_packed; /* bins; ids in them */
    struct slu_pack_arrays a;

    struct slu_pack_cuda *cuda; /* the arrays on a device; NULL: on the CPU */
    struct slu_pack_cuda *left; /* a device that failed: windows that it filled */

    /* The first bin and run that is in no window. */
    size_t at_interval;
    uint64_t at_bin, at_run;
    struct slu_packing_window ahead; /* which a device fills; n_bin 0: none */
};

/* Makes *m. *m is NULL if the address space for it is not available; then all items go
 * to packing_ext.c. */
SLU_MUST_USE int slu_pack_mem_new(struct slu_pack_mem **m,
                                  const struct slu_packing_cfg *cfg,
                                  struct slu_err *err);
uint64_t slu_pack_mem_hold(struct slu_pack_mem *m, const struct slu_batch *b,
                           const struct slu_run *run, size_t n_run);
/* Adds an item whose tokens are held at `at`. Returns false, and changes nothing, if
 * the budget is spent. */
bool slu_pack_mem_put(struct slu_pack_mem *m, const struct slu_pack_item *it,
                      uint64_t at, size_t n_lane);
/* Moves all items to ext, in order of arrival, and frees most of the memory; from now
 * on hold holds nothing. */
SLU_MUST_USE int slu_pack_mem_leave(struct slu_packing *p, struct slu_err *err);
SLU_MUST_USE int slu_pack_mem_plan(struct slu_packing *p, struct slu_err *err);
/* Finds the most pieces in a bin, after placing. */
void slu_pack_mem_heaviest(struct slu_packing *p);
SLU_MUST_USE int slu_pack_mem_take(struct slu_packing *p, struct slu_packing_window *w,
                                   uint64_t tok, struct slu_err *err);
SLU_MUST_USE int slu_pack_mem_fill(const struct slu_packing *p,
                                   struct slu_packing_window *w, struct slu_batch *out,
                                   struct slu_err *err);
void slu_pack_mem_free(struct slu_pack_mem *m);

/* ---- packing_device.c ---- */

/* Handles the device's error `code`: the CPU takes over, or err is filled. */
SLU_MUST_USE int slu_pack_mem_fault(struct slu_pack_mem *m, int code,
                                    struct slu_err *err);
/* Whether memory holds so many tokens in so many items, whose records have no ids. */
bool slu_pack_mem_fits(const struct slu_pack_mem *m, uint64_t n_tok, uint64_t n_item);
/* Before anything arrives: has auto decide now if all inputs say how many tokens there
 * are, all of them wait, and memory holds them. Then a device hashes the documents of
 * streams; those of sets are hashed already. */
void slu_pack_device_expect(struct slu_pack_mem *m);
/* Opens the device if it takes the work; else m->cuda stays NULL. */
SLU_MUST_USE int slu_pack_device_enter(struct slu_pack_mem *m, struct slu_err *err);
/* Gives the device what is known after the plan. */
SLU_MUST_USE int slu_pack_device_ready(struct slu_pack_mem *m, struct slu_err *err);

/* Notes a sequence of len_tok tokens, held at `at`, whose hash cfg.reader needs. Its
 * first item is number `item`. */
void slu_pack_late_add(struct slu_pack_mem *m, uint64_t at, uint64_t len_tok,
                       size_t item);
/* Gives the hashes of noted sequences to the reader. hash: of each; NULL: they are made
 * here. */
void slu_pack_late_give(struct slu_pack_mem *m, const struct slu_u128 *hash);
/* The same, with the hashes that a device has made, if there is one. */
SLU_MUST_USE int slu_pack_late_finish(struct slu_pack_mem *m, struct slu_err *err);

/* ---- packing_related.c ---- */

SLU_MUST_USE int slu_pack_related_new(struct slu_pack_related **r, struct slu_err *err);
void slu_pack_related_free(struct slu_pack_related *r);
/* Stores the keys of an item that arrived as part of run number `run`. */
SLU_MUST_USE int slu_pack_related_add(struct slu_packing *p, size_t run,
                                      struct slu_err *err);
/* Makes a lane's chains. *row: the histogram of their lengths, malloc'd. */
SLU_MUST_USE int slu_pack_related_rows(struct slu_packing *p, size_t lane,
                                       struct slu_length_count **row, size_t *n,
                                       struct slu_err *err);
/* Appends the intervals of a lane's plan to those of mem. */
SLU_MUST_USE int slu_pack_related_append(struct slu_packing *p, size_t lane,
                                         struct slu_err *err);
/* Fills mem's run_item and run_dst. */
void slu_pack_related_place(const struct slu_packing *p);

/* ---- packing_ext.c ---- */

/* An item in a table. Its id and its tokens follow, each padded to a multiple of 8. */
struct slu_pack_wait {
    struct slu_seg seg; /* id_off is 0 */
    uint64_t lane;
};

struct slu_pack_ext {
    struct slu_pack_site { /* per lane */
        uint64_t first_bin;
        uint64_t *rank; /* by index of a length in the plan: the next item's rank */
        uint64_t *end;  /* by index of a length: end of the ranks to give here */
    } * site;           /* NULL: no plan yet */
    size_t n_site;

    /* The unfinished bin. */
    size_t lane; /* the bin's lane */
    struct slu_pack_interval *interval;
    size_t n_interval, at_interval;
    struct slu_table *items; /* sorted by key */
    struct slu_u128 key;     /* of the next item, if any */
    const struct slu_pack_wait *item;
    uint32_t domain; /* of item, as numbered in this process */
    uint64_t next_bin, end_bin;
};

/* Key of a place in a bin: the bin, spread over all 64-bit numbers, then the place.
 * slu_pack_bin_of is the inverse. */
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
/* Returns the tokens that follow an item in a table. */
static inline const void *slu_pack_wait_tok(const struct slu_pack_wait *it)
{
    return (const uint8_t *)(it + 1) + slu_pack_pad8(slu_seg_str(&it->seg));
}

/* Makes p->ext, without sites. */
SLU_MUST_USE int slu_pack_ext_new(struct slu_packing *p, struct slu_err *err);
/* Makes the lanes' sites, after their plans; finds most_items. SLU_E_LIMIT if a bin has
 * too many items. */
SLU_MUST_USE int slu_pack_ext_sites(struct slu_packing *p, struct slu_err *err);
SLU_MUST_USE int slu_pack_ext_next(struct slu_packing *p, struct slu_packing_window *w,
                                   struct slu_batch *out, uint64_t tok,
                                   struct slu_err *err);
void slu_pack_ext_free(struct slu_pack_ext *x);

/* ---- pack_flow.c ---- */

/* Adds an item, which waits for the plan or goes to its bin. No flow: SLU_E_LIMIT. */
SLU_MUST_USE int slu_pack_flow_put(struct slu_packing *p,
                                   const struct slu_pack_item *it, struct slu_err *err);
/* Reads the bins' next item to x->item; NULL after the last. */
SLU_MUST_USE int slu_pack_flow_next(struct slu_packing *p, struct slu_err *err);
/* Checks that the n items taken under `key` are the next bin and all of it.
 * SLU_E_MISMATCH otherwise. */
SLU_MUST_USE int slu_pack_flow_check(struct slu_packing *p, struct slu_u128 key,
                                     uint64_t n, struct slu_err *err);

#endif
