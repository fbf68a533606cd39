/* pcg64.h - numpy's Generator(PCG64(seed)): the same 32-bit draws, bounded integers and
 * shuffles, to compute in advance an order that OLMo-core's loader will draw.
 *
 * Sources: M. O'Neill, PCG (HMC-CS-2014-0905), XSL-RR 128/64; numpy's SeedSequence (a
 * pool of four words mixed as in O'Neill's seed_seq_fe) and D. Lemire's bounded
 * integers (ACM TOMACS 29, 2019). This is sluice's only generator with a state; its own
 * draws use slu_draw.
 *
 * Thread safety: one thread at a time on a state.
 */
#ifndef SLU_PCG64_H
#define SLU_PCG64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slu_pcg64 {
    unsigned __int128 state, inc;
    uint32_t high; /* unused half of the last 64 bits */
    bool has_high;
};

void slu_pcg64_seed(struct slu_pcg64 *g, uint64_t seed);
uint64_t slu_pcg64_next(struct slu_pcg64 *g);
/* Returns a uniform number in [0, last]. Draws nothing for last = 0. */
uint32_t slu_pcg64_upto(struct slu_pcg64 *g, uint32_t last);
/* Shuffles as Generator.shuffle of a one-dimensional array; n < 2^32. */
void slu_pcg64_shuffle(struct slu_pcg64 *g, uint32_t *a, size_t n);

#endif
