#include "value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALL 0x1p64 /* the number of integers of 64 bits */

struct slu_value slu_value_of_integer(uint64_t magnitude, bool negative)
{
    const double near = (double)magnitude;
    const uint64_t back = near < ALL ? (uint64_t)near : 0;
    const int rest = (int)(int64_t)(magnitude - back);

    return (struct slu_value){.type = SLU_VALUE_NUMBER,
                              .rest = (int16_t)(negative ? -rest : rest),
                              .number = negative ? -near : near};
}

struct slu_value slu_value_of_number(const char *s)
{
    const bool negative = *s == '-';
    const size_t n = strspn(s + negative, "0123456789");

    errno = 0;
    const uint64_t magnitude =
        n && !s[negative + n] ? strtoull(s + negative, NULL, 10) : (errno = ERANGE);
    return errno
               ? (struct slu_value){.type = SLU_VALUE_NUMBER, .number = strtod(s, NULL)}
               : slu_value_of_integer(magnitude, negative);
}

bool slu_value_integer(const struct slu_value *v, uint64_t *magnitude)
{
    const double near = fabs(v->number);
    const int rest = v->number < 0 ? -v->rest : v->rest;

    if (near != floor(near) || near > ALL || (near == ALL && rest >= 0))
        return false;
    *magnitude = (near < ALL ? (uint64_t)near : 0) + (uint64_t)rest;
    return true;
}
