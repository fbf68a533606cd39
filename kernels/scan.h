/* scan.h - where documents end in raw ids, and how long they are, in one pass.
 *
 * A document is what ends with the id `eos`, that id included; so consecutive EOS are
 * documents of one token. What follows the last EOS has no end yet. A block of n ids is
 * scanned by itself, so that blocks may be scanned in any order and anywhere:
 *
 *   - documents that begin *and* end in the block are counted: count[len] += 1 where
 *     len < n_bin; longer ones are put into `far` in no particular order, which the
 *     caller gives room for slu_eos_far_most(n, n_bin) lengths. (Every document has a
 *     length of at least 1; count[0] stays. Counts are added to, so blocks accumulate.)
 *   - the ids up to the first EOS, and those behind the last one, are told in struct
 *     slu_eos_block; slu_eos_join puts them together over the borders, in order.
 *
 * What decomposition would cut follows from the histogram (slu_decompose_count), for
 * greedy splits depend on lengths alone.
 *
 *   slu_eos_lengths_ref   the oracle: one loop that can be read
 *   slu_eos_lengths       the same, fast, on the calling thread; `k` says how
 *   slu_eos_lengths_cuda  all pointers are device memory, tok aligned to 16 bytes;
 *                         n < 2^31; runs on `stream` (a cudaStream_t, NULL: the default
 *                         stream) without waiting; 0 or a code for slu_device_error.
 *                         `work` is the caller's, slu_eos_lengths_cuda_work(n) bytes,
 *                         aligned to 16.
 *
 * tok_bytes is 2 or 4, ids in native byte order. Results are integers and the same
 * everywhere, but for the order of far. Any thread.
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
    uint64_t head_tok; /* ids up to the first EOS, with it; 0 where there is none */
    uint64_t tail_tok; /* ids behind the last EOS; all n where there is none */
    uint64_t n_far;    /* lengths in far */
};

static inline size_t slu_eos_far_most(size_t n, size_t n_bin)
{
    return n / (n_bin ? n_bin : 1);
}

void slu_eos_lengths_ref(const void *tok, size_t n, unsigned tok_bytes, uint32_t eos,
                         uint64_t *count, size_t n_bin, uint64_t *far,
                         struct slu_eos_block *b);

/* The next block's part of a document that began before it: *open_tok are the ids of
 * the document so far. Returns the length of the document that ended, 0 for none. */
static inline uint64_t slu_eos_join(uint64_t *open_tok, const struct slu_eos_block *b)
{
    uint64_t len = b->head_tok ? *open_tok + b->head_tok : 0;
    *open_tok = b->head_tok ? b->tail_tok : *open_tok + b->tail_tok;
    return len;
}

/* ---- the processor ---- */

/* One SIMD level. */
struct slu_eos_kernel;
/* "portable", "avx2", "avx512" or "neon"; NULL: the best one. NULL where this processor
 * does not have it. */
const struct slu_eos_kernel *slu_eos_kernel(const char *level);
const char *slu_eos_kernel_name(const struct slu_eos_kernel *k);

void slu_eos_lengths(const struct slu_eos_kernel *k, const void *tok, size_t n,
                     unsigned tok_bytes, uint32_t eos, uint64_t *count, size_t n_bin,
                     uint64_t *far, struct slu_eos_block *b);

/* Places of the first EOS, at most `most` (> 0) of them: at[i] is the index of the
 * i-th. Returns how many; *n_seen: how many ids they were found in, n where there were
 * not more than `most`, else at[most - 1] + 1. n < 2^32. */
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
