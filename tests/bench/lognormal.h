/* lognormal.h - the synthetic lengths of the packing figures: counts of documents by
 * length, floor(n_doc * p(l)) for l = 1 … capacity, where p is the density of a
 * lognormal distribution with median 400 and sigma 1.2. Longer documents are left out,
 * so that there are somewhat fewer than n_doc. */
#ifndef LOGNORMAL_H
#define LOGNORMAL_H

#include <math.h>
#include <stdlib.h>

#include "lib/pack/packer.h"

/* n rows; caller frees. */
static struct slu_length_count *lognormal(uint64_t capacity, double n_doc, size_t *n)
{
    struct slu_length_count *row = malloc(capacity * sizeof *row);
    *n = 0;
    for (uint64_t l = 1; l <= capacity && row; l++) {
        double x = (double)l, z = (log(x) - log(400)) / 1.2;
        double p = exp(-z * z / 2) / (x * 1.2 * sqrt(2 * 3.14159265358979));
        uint64_t count = (uint64_t)(p * n_doc);
        if (count)
            row[(*n)++] = (struct slu_length_count){l, count};
    }
    return row;
}

#endif
