/* pcg64.h - numpy's Generator(PCG64(seed)): the same 32-bit draws, bounded integers and
 * shuffles, so that an order which OLMo-core's loader draws can be told beforehand.
 *
 * Sources: M. O'Neill, PCG (HMC-CS-2014-0905), XSL-RR 128/64; numpy's SeedSequence (a
 * pool of four words mixed as in O'Neill's seed_seq_fe) and D. Lemire's bounded
 * integers (ACM TOMACS 29, 2019). This is the one generator of sluice with a state;
 * choices of its own are slu_draw's.
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
    uint32_t high; /* the half of the last 64 bits that is not yet used */
    bool has_high;
};

void slu_pcg64_seed(struct slu_pcg64 *g, uint64_t seed);
uint64_t slu_pcg64_next(struct slu_pcg64 *g);
/* Uniform in [0, last]; last < 2^32. Draws nothing for last = 0. */
uint32_t slu_pcg64_upto(struct slu_pcg64 *g, uint32_t last);
/* Generator.shuffle of an array of one dimension; n < 2^32. */
void slu_pcg64_shuffle(struct slu_pcg64 *g, uint32_t *a, size_t n);

#endif
