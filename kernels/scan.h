/* scan.h - finds the ends of documents in raw ids, and their lengths, in one pass.
 *
 * A document ends with the id `eos`, which belongs to the document; so consecutive EOS
 * are documents of one token. The ids after the last EOS have no end yet. A block of n
 * ids is scanned independently, so blocks may be scanned in any order and on any
 * device:
 *
 *   - documents that begin *and* end in the block are counted: count[len] += 1 if
 *     len < n_bin. Longer lengths are put into `far` in no particular order; the caller
 *     supplies room for slu_eos_far_most(n, n_bin) lengths. (Every document has a
 *     length of at least 1, so count[0] is unchanged. Counts are added to, so blocks
 *     accumulate.)
 *   - struct slu_eos_block has the numbers of ids up to the first EOS and after the
 *     last; slu_eos_join combines these across blocks, in order.
 *
 * The cuts of a greedy decomposition follow from the histogram (slu_decompose_count),
 * because greedy splits depend only on lengths.
 *
 *   slu_eos_lengths_ref   the oracle: one readable loop
 *   slu_eos_lengths       the fast version, on the calling thread; `k` is the SIMD
 *                         level
 *   slu_eos_lengths_cuda  all pointers are device memory, tok aligned to 16 bytes;
 *                         n < 2^31; runs on `stream` (a cudaStream_t, NULL: the default
 *                         stream) without waiting; returns 0 or a code for
 *                         slu_device_error. The caller supplies `work`,
 *                         slu_eos_lengths_cuda_work(n) bytes, aligned to 16.
 *
 * tok_bytes is 2 or 4; ids are in native byte order. Results are integers and the same
 * everywhere, except for the order of far. Any thread.
 */
#ifndef SLU_KERNELS_SCAN_H
#define SLU_KERNELS_SCAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct slu_eos_block {
    uint64_t n_eos;    /* documents that end in the block */
    uint64_t head_tok; /* ids up to and with the first EOS; 0: the block has no EOS */
    uint64_t tail_tok; /* ids after the last EOS; n if the block has no EOS */
    uint64_t n_far;    /* number of lengths in far */
};

static inline size_t slu_eos_far_most(size_t n, size_t n_bin)
{
    return n / (n_bin ? n_bin : 1);
}

void slu_eos_lengths_ref(const void *tok, size_t n, unsigned tok_bytes, uint32_t eos,
                         uint64_t *count, size_t n_bin, uint64_t *far,
                         struct slu_eos_block *b);

/* Adds the next block to a document that began before it: *open_tok is the number of
 * ids of the document so far. Returns the length of the document that ended, 0: none
 * ended. */
static inline uint64_t slu_eos_join(uint64_t *open_tok, const struct slu_eos_block *b)
{
    uint64_t len = b->head_tok ? *open_tok + b->head_tok : 0;
    *open_tok = b->head_tok ? b->tail_tok : *open_tok + b->tail_tok;
    return len;
}

/* ---- the processor ---- */

/* One SIMD level. */
struct slu_eos_kernel;
/* "portable", "avx2", "avx512" or "neon"; NULL: the best one. Returns NULL if this
 * processor lacks the level. */
const struct slu_eos_kernel *slu_eos_kernel(const char *level);
const char *slu_eos_kernel_name(const struct slu_eos_kernel *k);

void slu_eos_lengths(const struct slu_eos_kernel *k, const void *tok, size_t n,
                     unsigned tok_bytes, uint32_t eos, uint64_t *count, size_t n_bin,
                     uint64_t *far, struct slu_eos_block *b);

/* Positions of the first `most` (> 0) EOS: at[i] is the index of the i-th. Returns
 * their number; *n_seen: number of ids that were searched: n if the ids have at most
 * `most` EOS, else at[most - 1] + 1. n < 2^32. */
size_t slu_eos_find_ref(const void *tok, size_t n, unsigned tok_bytes, uint32_t eos,
                        uint32_t *at, size_t most, size_t *n_seen);
size_t slu_eos_find(const struct slu_eos_kernel *k, const void *tok, size_t n,
                    unsigned tok_bytes, uint32_t eos, uint32_t *at, size_t most,
                    size_t *n_seen);

/* ---- the device ---- */

size_t slu_eos_lengths_cuda_work(size_t n);
int slu_eos_lengths_cuda(const void *tok, size_t n, unsigned tok_bytes, uint32_t eos,
                         uint64_t *count, size_t n_bin, uint64_t *far,
                         struct slu_eos_block *b, void *work, size_t work_byte,
                         void *stream);

#ifdef __cplusplus
}
#endif
#endif
