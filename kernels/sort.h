/* sort.h - sorts items by length, longest first, the order of plans.
 *
 * order becomes the numbers 0 … n-1, sorted by len[i] descending. Equal lengths keep
 * their order (a stable sort), so the result is the same everywhere.
 *
 *   n < 2^32, len[i] <= longest < 2^26 (SLU_MAX_CAPACITY); lengths in tokens. Other
 *   values give undefined results; callers know `longest` from the histogram.
 *
 *   slu_sort_lengths_ref   the oracle: a readable counting sort
 *   slu_sort_lengths_cpu   the fast version, on n_threads threads (at least 1)
 *   slu_sort_lengths_cuda  all pointers are device memory; runs on `stream` (a
 *     cudaStream_t, NULL: the default stream) without waiting; returns 0 or a code for
 *     slu_device_error. `work` is aligned to 256 bytes, as device allocations are.
 *
 * The caller supplies the workspace, X_work(…) bytes, on the host aligned as by malloc.
 * len and order do not overlap.
 */
#ifndef SLU_KERNELS_SORT_H
#define SLU_KERNELS_SORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

size_t slu_sort_lengths_ref_work(size_t n, uint32_t longest);
void slu_sort_lengths_ref(const uint32_t *len, size_t n, uint32_t longest,
                          uint32_t *order, void *work);

size_t slu_sort_lengths_cpu_work(size_t n, uint32_t longest, unsigned n_threads);
void slu_sort_lengths_cpu(const uint32_t *len, size_t n, uint32_t longest,
                          uint32_t *order, void *work, unsigned n_threads);

size_t slu_sort_lengths_cuda_work(size_t n, uint32_t longest);
/* The numbers are first … first + n-1, for a range of a larger array. */
int slu_sort_lengths_cuda(const uint32_t *len, size_t n, uint32_t longest,
                          uint32_t first, uint32_t *order, void *work, size_t work_byte,
                          void *stream);

#ifdef __cplusplus
}
#endif
#endif
