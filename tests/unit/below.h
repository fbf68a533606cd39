/* below.h - random numbers that are the same in every run. */
#ifndef SLU_TESTS_BELOW_H
#define SLU_TESTS_BELOW_H

#include <stdint.h>

#include "lib/base/hash.h"

static uint64_t draws;

/* A number below n, the same in every run. */
static unsigned below(unsigned n)
{
    return (unsigned)slu_draw_below(slu_draw(1, 2, 3, 4, draws++), n);
}

#endif
