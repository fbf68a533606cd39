/* number.h - numbers as users write them: 20000000, 20M, 1.5G, 1e9, 64Ki.
 *
 * K, M, G and T are powers of `k`: 1000 for counts, 1024 for bytes. Ki, Mi, Gi and Ti
 * are powers of 1024. Lower case is accepted. A pure function.
 */
#ifndef SLU_NUMBER_H
#define SLU_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads p[0, n) into *v. False if it is not a number, not whole, or above 2^64 - 1. */
bool slu_number(const char *p, size_t n, uint64_t k, uint64_t *v);

#endif
