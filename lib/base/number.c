#include "number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Writes the digits d[0, n), with the decimal point before digit `point`. */
static size_t put_digits(const char *d, int n, int point, char *out)
{
    if (point > 21 || point < -5)
        return (size_t)snprintf(out, SLU_NUMBER_BYTE - 1, "%.1s%s%.*se%+d", d,
                                n > 1 ? "." : "", n - 1, d + 1, point - 1);
    if (point <= 0)
        return (size_t)snprintf(out, SLU_NUMBER_BYTE - 1, "0.%.*s%.*s", -point, "00000",
                                n, d);
    if (point < n)
        return (size_t)snprintf(out, SLU_NUMBER_BYTE - 1, "%.*s.%.*s", point, d,
                                n - point, d + point);
    return (size_t)snprintf(out, SLU_NUMBER_BYTE - 1, "%.*s%.*s", n, d, point - n,
                            "00000000000000000000");
}

static bool reads_as(const char *text, double x, bool is_float)
{
    return x == (is_float ? (double)strtof(text, NULL) : strtod(text, NULL));
}

/* Tries precisions from `from` to `to`, which is always enough. */
static size_t put(double x, bool is_float, int from, int to, char *out)
{
    char text[SLU_NUMBER_BYTE];
    if (!isfinite(x))
        return (size_t)snprintf(out, SLU_NUMBER_BYTE, "%g", x);
    for (int n = from;; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, fabs(x));
        if (n == to || reads_as(text, fabs(x), is_float))
            break;
        /* More decimals above a power of two than below read as this power. So the
         * second nearest decimal may, although the nearest does not. */
        if (n > 1 && text[n]++ < '9' && reads_as(text, fabs(x), is_float))
            break;
    }
    /* D.DDDe+EE: removes the point, then zeros at the end. */
    char *e = strchr(text, 'e');
    const int point = (int)strtol(e + 1, NULL, 10) + 1;
    int n = 1;
    for (const char *p = text + 2; p < e; p++)
        text[n++] = *p;
    while (n > 1 && text[n - 1] == '0')
        n--;
    *out = '-';
    const bool is_negative = signbit(x);
    return is_negative + put_digits(text, n, point, out + is_negative);
}

/* A decimal of up to DBL_DIG digits survives a double, so if DBL_DIG digits read back
 * as x, they are the shortest decimal, but for zeros at its end. */
size_t slu_number_put(double x, char out[SLU_NUMBER_BYTE])
{
    return put(x, false, fabs(x) < DBL_MIN ? 1 : DBL_DIG, DBL_DECIMAL_DIG, out);
}

size_t slu_number_put_float(float x, char out[SLU_NUMBER_BYTE])
{
    return put((double)x, true, fabsf(x) < FLT_MIN ? 1 : FLT_DIG, FLT_DECIMAL_DIG, out);
}
