/* minhash_neon.c - the minima by NEON, which every 64-bit ARM processor has. */
#if defined(__aarch64__)
#include <arm_neon.h>

#include "lib/dedup/near/minhash_level.h"

void slu_minhash_neon(const uint32_t *flip, const uint32_t *factor, size_t n_fn,
                      const uint64_t *hash, size_t n, uint32_t *min)
{
    for (size_t k = 0; k < n_fn; k += SLU_MINHASH_BLOCK) {
        uint32x4_t x[4], m[4], least[4];
        for (int v = 0; v < 4; v++) {
            x[v] = vld1q_u32(flip + k + 4 * v);
            m[v] = vld1q_u32(factor + k + 4 * v);
            least[v] = vld1q_u32(min + k + 4 * v);
        }
        for (size_t i = 0; i < n; i++) {
            const uint32x4_t h = vdupq_n_u32((uint32_t)(hash[i] >> 32));
            for (int v = 0; v < 4; v++)
                least[v] = vminq_u32(least[v], vmulq_u32(veorq_u32(h, x[v]), m[v]));
        }
        for (int v = 0; v < 4; v++)
            vst1q_u32(min + k + 4 * v, least[v]);
    }
}
#else
typedef int slu_minhash_no_neon; /* because a C file must not be empty */
#endif
