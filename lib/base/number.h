/* number.h - numbers as users write them (20000000, 20M, 1.5G, 1e9, 64Ki), and as
 * programs write doubles.
 *
 * K, M, G and T are powers of `k`: 1000 for counts, 1024 for bytes. Ki, Mi, Gi and Ti
 * are powers of 1024. Lower case is accepted. Pure functions.
 */
#ifndef SLU_NUMBER_H
#define SLU_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads p[0, n) into *v. False if it is not a number, not whole, or above 2^64 - 1. */
bool slu_number(const char *p, size_t n, uint64_t k, uint64_t *v);

#define SLU_NUMBER_BYTE 32
/* Writes the shortest decimal that reads back as x, and a NUL; returns its length. The
 * form is JavaScript's, which JSON accepts: 0.1, 100000, 1e+21, 1e-7; but -0 stays -0.
 * Infinities and NaN, which JSON does not have, are as in C. */
size_t slu_number_put(double x, char out[SLU_NUMBER_BYTE]);
/* As slu_number_put, but for the shortest decimal that reads back as a float. */
size_t slu_number_put_float(float x, char out[SLU_NUMBER_BYTE]);

/* A number that ascends as doubles do; -0 is 0. NaN has no place among them. */
static inline uint64_t slu_double_key(double x)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits;

    x += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits & sign ? ~bits : bits | sign; /* those of negative ones descend */
}

#ifdef __cplusplus
}
#endif

#endif
