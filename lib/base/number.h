/* number.h - numbers as users write them: 20000000, 20M, 1.5G, 1e9, 64Ki.
 *
 * K, M, G and T are powers of `k`: 1000 for counts, 1024 for bytes. Ki, Mi, Gi and Ti
 * are powers of 1024. Letters may be small. A pure function.
 */
#ifndef SLU_NUMBER_H
#define SLU_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* p[0, n) into *v. False where it is no such number, no whole one, or above 2^64 - 1.
 */
bool slu_number(const char *p, size_t n, uint64_t k, uint64_t *v);

#endif
