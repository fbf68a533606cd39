/* place.h - every item's bin and offset in it, by arithmetic on its rank.
 *
 * Items are in the order of sort.h. A *step* (a group of packer.h) takes the items of
 * sorted positions [first, first of the next step): `repeat` of them, len_tok ids each,
 * go to each of its bins, first_bin, first_bin + 1, …, behind the `slot` items and
 * `used` ids that are there. An *interval* is bins side by side that hold the same
 * lengths: `items` of them and `capacity` ids each.
 *
 * For position p of step s and k = p - s.first: bin = s.first_bin + k / s.repeat; with
 * v the interval of that bin, b = bin - v.first_bin, j = k % s.repeat, the item's
 * number among all, bin after bin, is
 *
 *   at = v.first_item + b * v.items + s.slot + j
 *   run_item[at] = order[p]
 *   run_dst[at]  = v.first_tok + b * v.capacity + s.used + j * s.len_tok
 *
 * Every run 0 … n-1 is written once, and run_dst ascends. Units: ids (tokens), bins,
 * items.
 *
 * Demands: steps ascend in `first` from 0 without gaps, and each takes a multiple of
 * its `repeat`; intervals ascend in first_bin, first_item and first_tok without gaps
 * from the first bin, item and id on (the first bin of all need not be 0); the last
 * ends with the last bin. `last` and `parent` are numbers of steps: the items of an
 * interval's bins came by its `last` step, that step's parent, and so on up to
 * SLU_PLACE_OPENED; a parent's slot is smaller than its child's. (The oracle does not
 * use the two.)
 *
 *   slu_place_ref   the oracle: the lines above for each position
 *   slu_place_cpu   the same, fast: interval after interval, no division an item,
 *                   written front to back, on n_threads threads
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
    uint64_t first; /* sorted position of the first item that it takes */
    uint64_t repeat, len_tok;
    uint64_t first_bin;
    uint64_t slot, used; /* items and ids that each of its bins had before */
    uint32_t parent;     /* step before it in the same bins, or SLU_PLACE_OPENED */
    uint32_t zero;
};

struct slu_place_interval {
    uint64_t first_bin;
    uint64_t first_item, items;   /* in the bins before; in each of these */
    uint64_t first_tok, capacity; /* ids in the bins before; of each of these */
    uint32_t last;                /* the last step that its bins went through */
    uint32_t zero;
};

/* What is placed; all borrowed. */
struct slu_place {
    const uint32_t *order; /* n items, longest first */
    size_t n;
    const struct slu_place_step *step;
    size_t n_step;
    const struct slu_place_interval *interval;
    size_t n_interval;
};

void slu_place_ref(const struct slu_place *p, uint32_t *run_item, uint64_t *run_dst);
void slu_place_cpu(const struct slu_place *p, uint32_t *run_item, uint64_t *run_dst,
                   unsigned n_threads);

/* The struct is read by the call itself and may lie on the stack; its pointers are
 * device memory. */
size_t slu_place_cuda_work(size_t n, size_t n_step, size_t n_interval);
int slu_place_cuda(const struct slu_place *p, uint32_t *run_item, uint64_t *run_dst,
                   void *work, size_t work_byte, void *stream);

#ifdef __cplusplus
}
#endif
#endif
