/* place.h - computes every item's bin, and its offset in the bin, from its rank.
 *
 * Items are in the order of sort.h. A *step* (a group of packer.h) takes the items of
 * sorted positions [first, first of the next step). `repeat` of these items, len_tok
 * ids each, go to each of its bins first_bin, first_bin + 1, …, after the `slot` items
 * and `used` ids that are already there. An *interval* is a range of bins that hold the
 * same lengths: `items` items and `capacity` ids in each bin.
 *
 * For position p of step s let k = p - s.first, bin = s.first_bin + k / s.repeat and
 * j = k % s.repeat; let v be the interval of that bin, and b = bin - v.first_bin. The
 * item's number among all items, bin after bin, and its results are
 *
 *   at = v.first_item + b * v.items + s.slot + j
 *   run_item[at] = order[p]
 *   run_dst[at]  = v.first_tok + b * v.capacity + s.used + j * s.len_tok
 *
 * Every run 0 … n-1 is written once, and run_dst ascends. Units: ids (tokens), bins,
 * items.
 *
 * Requirements: steps ascend in `first` from 0 without gaps, and each takes a multiple
 * of its `repeat`. Intervals ascend in first_bin, first_item and first_tok without
 * gaps, from the first bin, item and id (the first bin need not be 0), and the last
 * interval ends with the last bin. `last` and `parent` are numbers of steps: the items
 * of an interval's bins were put there by its `last` step, that step's parent, and so
 * on up to SLU_PLACE_OPENED; a parent's slot is smaller than its child's, and the slot
 * of a step without a parent is 0. slu_place_link sets a step's parent and the numbers
 * that shorten the way from an interval's last step to any of its others. (The oracle
 * does not use any of these.)
 *
 *   slu_place_ref   the oracle: the lines above for each position
 *   slu_place_cpu   the fast version: interval after interval, without a division for
 *                   each item, written front to back, on n_threads threads
 *   slu_place_cuda  all pointers are device memory; see sort.h for stream and result
 */
#ifndef SLU_KERNELS_PLACE_H
#define SLU_KERNELS_PLACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLU_PLACE_OPENED UINT32_MAX

struct slu_place_step {
    uint64_t first; /* sorted position of the first item of the step */
    uint64_t repeat, len_tok;
    uint64_t first_bin;
    uint64_t slot, used; /* items and ids that each of its bins already has */
    uint32_t parent;     /* the step before it in the same bins, or SLU_PLACE_OPENED */
    uint32_t jump;       /* a step above the parent, or the parent; of a step without a
                            parent, itself */
    uint32_t depth;      /* number of steps above it */
    uint32_t zero;
};

struct slu_place_interval {
    uint64_t first_bin;
    uint64_t first_item, items;   /* first_item: items in all bins before; items: in
                                     each of these bins */
    uint64_t first_tok, capacity; /* first_tok: ids in all bins before; capacity: of
                                     each of these bins */
    uint32_t last;                /* the last step that filled its bins */
    uint32_t zero;
};

/* The input; all pointers are borrowed. */
struct slu_place {
    const uint32_t *order; /* n items, longest first */
    size_t n;
    const struct slu_place_step *step;
    size_t n_step;
    const struct slu_place_interval *interval;
    size_t n_interval;
};

/* Sets parent, jump and depth of step i; its parent, if any, was linked before. Whoever
 * goes to the jump where that is not too far, else to the parent, passes a number of
 * steps that grows with the logarithm of the depth (Myers, An Applicative Random-Access
 * Stack, 1983). */
static inline void slu_place_link(struct slu_place_step *step, uint32_t i,
                                  uint32_t parent)
{
    step[i].parent = parent;
    step[i].jump = i;
    step[i].depth = 0;
    if (parent == SLU_PLACE_OPENED)
        return;
    const struct slu_place_step *p = &step[parent], *j = &step[p->jump];
    step[i].jump =
        p->depth - j->depth == j->depth - step[j->jump].depth ? j->jump : parent;
    step[i].depth = p->depth + 1;
}

void slu_place_ref(const struct slu_place *p, uint32_t *run_item, uint64_t *run_dst);
void slu_place_cpu(const struct slu_place *p, uint32_t *run_item, uint64_t *run_dst,
                   unsigned n_threads);

/* The call itself reads the struct, which may be on the stack; its pointers are device
 * memory. */
int slu_place_cuda(const struct slu_place *p, uint32_t *run_item, uint64_t *run_dst,
                   void *stream);

#ifdef __cplusplus
}
#endif
#endif
