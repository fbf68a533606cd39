/* simd.c - see simd.h. The features are those of SIMD_FLAGS in the Makefile. */
#include <string.h>

#include "lib/base/simd.h"

bool slu_has_simd(const char *level)
{
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");

    if (strcmp(level, "avx2") == 0) /* first: hash.c asks for each sequence */
        return avx2;
    if (strcmp(level, "avx512") == 0)
        return avx2 && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512cd") &&
               __builtin_cpu_supports("avx512vbmi") &&
               __builtin_cpu_supports("avx512vbmi2");
#elif defined(__aarch64__)
    if (strcmp(level, "neon") == 0)
        return true;
#endif
    return strcmp(level, "portable") == 0;
}
