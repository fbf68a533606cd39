/* simd.h - which SIMD levels this processor has.
 *
 * What is compiled for a level (files *_avx2.c, *_avx512.c, *_neon.c; the Makefile has
 * their flags) may run only where slu_has_simd says so. Each level has a portable twin
 * that gives the same results. Any thread.
 */
#ifndef SLU_SIMD_H
#define SLU_SIMD_H

#include <stdbool.h>

/* "portable", "avx2", "avx512" or "neon"; false for any other name. */
bool slu_has_simd(const char *level);

#endif
