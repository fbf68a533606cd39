/* copy.h - puts tokens into bin order: packed data, or a window of it, from a pool of
 * ids.
 *
 * Run r = 0 … n_run-1 copies the len[i] ids at pool + src[i], i = run_item[r], to the
 * ids from run_dst[r] on. Runs ascend in run_dst and do not overlap (place.h makes them
 * so). A call writes out[0 … n_tok), which is ids [first_tok, first_tok + n_tok) of the
 * whole; ids that no run covers become `pad`. Windows need not begin or end with a run.
 *
 * Units: ids of tok_bytes bytes, 2 or 4; src and run_dst count ids.
 *
 *   slu_copy_ref   the oracle: id by id
 *   slu_copy_cpu   the fast version, on n_threads threads (at least 1)
 *   slu_copy_cuda  all pointers, also those in the struct, are device memory; the
 *     call itself reads the struct. pool must be readable up to the multiples of 16
 *     bytes around it (in device memory, a whole allocation rounded up to 16 is). out
 *     need only be aligned to an id; an alignment to 16 bytes is best. See sort.h for
 *     stream and result.
 */
#ifndef SLU_KERNELS_COPY_H
#define SLU_KERNELS_COPY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct slu_copy {
    const void *pool;
    const uint64_t *src; /* by item */
    const uint32_t *len; /* by item */
    const uint32_t *run_item;
    const uint64_t *run_dst;
    size_t n_run; /* < 2^32 */
    uint32_t pad;
    unsigned tok_bytes;
};

void slu_copy_ref(const struct slu_copy *c, uint64_t first_tok, size_t n_tok,
                  void *out);
void slu_copy_cpu(const struct slu_copy *c, uint64_t first_tok, size_t n_tok, void *out,
                  unsigned n_threads);

int slu_copy_cuda(const struct slu_copy *c, uint64_t first_tok, size_t n_tok, void *out,
                  void *stream);

#ifdef __cplusplus
}
#endif
#endif
