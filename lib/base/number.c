#include "number.h"

#include <string.h>

static bool is_digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

static bool times(uint64_t *v, uint64_t by)
{
    return !__builtin_mul_overflow(*v, by, v);
}

bool slu_number(const char *p, size_t n, uint64_t k, uint64_t *v)
{
    static const char units[] = "kmgt";
    const char *end = p + n, *dot = NULL, *unit;
    unsigned exponent = 0, decimals = 0, powers = 0;
    *v = 0;
    if (!is_digit(p, end))
        return false;
    for (; is_digit(p, end) || (!dot && is_digit(p + 1, end) && *p == '.'); p++) {
        decimals += dot != NULL;
        if (*p == '.')
            dot = p;
        else if (!times(v, 10) || __builtin_add_overflow(*v, (uint64_t)(*p - '0'), v))
            return false;
    }
    if (is_digit(p + 1, end) && (*p == 'e' || *p == 'E'))
        for (p++; is_digit(p, end) && exponent < 100; p++)
            exponent = exponent * 10 + (unsigned)(*p - '0');
    if (p < end && *p && (unit = strchr(units, *p | 0x20))) {
        powers = (unsigned)(unit - units) + 1;
        p++;
        if (p < end && *p == 'i') {
            k = 1024;
            p++;
        }
    }
    if (p != end)
        return false;
    for (; powers; powers--)
        if (!times(v, k))
            return false;
    for (; exponent > decimals; exponent--)
        if (*v && !times(v, 10))
            return false;
    for (; decimals > exponent; decimals--) {
        if (*v % 10)
            return false;
        *v /= 10;
    }
    return true;
}
