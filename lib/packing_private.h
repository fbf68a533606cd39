/* packing_private.h - what the files of lib/packing share. Private to lib/packing*.c.
 *
 * packing.c      arrival, the plan, and which of the two below it is
 * packing_mem.c  items that wait in memory: sorted, placed and gathered as arrays
 * packing_ext.c  past the budget: spool.h, then sorter.h
 * packing_cuda.c the arrays on a device
 */
#ifndef SLU_PACKING_PRIVATE_H
#define SLU_PACKING_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "kernels/gather.h"
#include "kernels/place.h"
#include "kernels/sort.h"

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
 * Concatenated items (SLU_PACK_CONCAT) are neither sorted nor placed: n_step is 0,
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

#endif
