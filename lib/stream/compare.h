/* compare.h - comparisons of a number as users write them: ">=3", "< 4.5", "=1".
 *
 * Pure functions.
 */
#ifndef SLU_STREAM_COMPARE_H
#define SLU_STREAM_COMPARE_H

#include <stdbool.h>

#include "lib/base/err.h"

SLU_BEGIN_DECLS

enum slu_compare_op {
    SLU_LESS,
    SLU_AT_MOST,
    SLU_EQUAL,
    SLU_AT_LEAST,
    SLU_MORE,
    SLU_NOT
};

struct slu_compare {
    enum slu_compare_op op;
    double v;
};

/* Reads an operator, <, <=, =, ==, !=, >= or >, and a finite decimal, with spaces before,
 * between and behind. Returns the address behind them; NULL: text does not begin so. */
const char *slu_compare_parse(const char *text, struct slu_compare *c);
/* A NaN, no score, fails every comparison. */
bool slu_compare_holds(const struct slu_compare *c, double v);

SLU_END_DECLS

#endif
