/* simd.h - which SIMD levels this processor has.
 *
 * Code compiled for a level (files *_avx2.c, *_avx512.c, *_neon.c; the Makefile has
 * their flags) may run only if slu_has_simd is true. Each level gives the same results
 * as the portable version. Safe from any thread.
 */
#ifndef SLU_SIMD_H
#define SLU_SIMD_H

#include <stdbool.h>

/* Whether the processor has the level "portable", "avx2", "avx512" or "neon". Any other
 * name is false. */
bool slu_has_simd(const char *level);

#endif
