/* histogram.h - counts how often each length occurs.
 *
 * count[v] grows by the number of len[i] == v, for v < n_bin. Values of n_bin and more
 * are not counted; the caller knows their number from the sum of counts. Counts are
 * added to, so blocks accumulate. Results are integers and the same everywhere.
 *
 *   slu_histogram_ref   the oracle: one readable loop
 *   slu_histogram_cpu   the fast version, on the calling thread
 *   slu_histogram_cuda  all pointers are device memory; runs on `stream` (a
 *                       cudaStream_t, NULL: the default stream) without waiting;
 *                       returns 0 or a code for slu_device_error
 */
#ifndef SLU_KERNELS_HISTOGRAM_H
#define SLU_KERNELS_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void slu_histogram_ref(const uint32_t *len, size_t n, uint64_t *count, size_t n_bin);
void slu_histogram_cpu(const uint32_t *len, size_t n, uint64_t *count, size_t n_bin);

int slu_histogram_cuda(const uint32_t *len, size_t n, uint64_t *count, size_t n_bin,
                       void *stream);

#ifdef __cplusplus
}
#endif
#endif
