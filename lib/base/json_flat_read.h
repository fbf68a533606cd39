/* json_flat_read.h - the parser of json_flat.h, which reads strings in blocks; a
 * template that each SIMD level includes.
 *
 * The including file defines BLOCK, the bytes of a block, `struct block` and, as static
 * inline functions, whose masks have a bit for each byte,
 *
 *   struct block load(const uint8_t *p)
 *   uint64_t is(struct block x, char c)
 *   uint64_t is_control(struct block x)     bytes below 32
 *   bool unescape(struct block x, uint64_t begins, unsigned n, uint8_t **out)
 *
 * unescape writes the first n bytes of x to *out and advances it. Each escape, which
 * has a bit in `begins` and ends before byte n, is replaced by its character. False if
 * an escape is invalid. Up to BLOCK bytes may be written at *out.
 */
#include "lib/base/json_flat.h"

#include <string.h>

#define BELOW(i) ((i) >= 64 ? UINT64_MAX : (UINT64_C(1) << (i)) - 1)

/* Returns the backslashes that begin an escape: every second one of a row of them. */
static inline uint64_t begins_escape(uint64_t back)
{
    const uint64_t even = UINT64_C(0x5555555555555555);
    const uint64_t first = back & ~(back << 1);
    const uint64_t runs = back & ~(back + (first & even)); /* rows from an even place */

    return (runs & even) | (back & ~runs & ~even);
}

/* Unescapes the content of a string from p on to *out, and advances *out. Returns the
 * place after the closing quote, which may be beyond `end`; NULL: invalid. */
static const uint8_t *take_string(const uint8_t *p, const uint8_t *end, uint8_t **out)
{
    const uint64_t last = UINT64_C(1) << (BLOCK - 1);

    while (p < end) {
        const struct block x = load(p);
        const uint64_t begins = begins_escape(is(x, '\\')), escaped = begins << 1,
                       /* Stops: the quote, bytes that a string cannot have, \u, and a
                        * backslash whose other half is in the next block. */
            stop = (is(x, '"') & ~escaped) | is_control(x) |
                   (is(x, 'u') & escaped) >> 1 | (begins & last);
        const unsigned n = stop ? (unsigned)__builtin_ctzll(stop) : BLOCK;
        size_t n_out;

        if (!unescape(x, begins & BELOW(n), n, out))
            return NULL;
        p += n;
        if (!stop || (n == BLOCK - 1 && begins & last))
            continue;
        if (*p == '"')
            return p + 1;
        size_t used = 0;
        if (*p == '\\' && p < end)
            used = slu_json_unescape_u(p, (size_t)(end - p), *out, &n_out);
        if (!used)
            return NULL;
        *out += n_out;
        p += used;
    }
    return NULL;
}

static inline const uint8_t *skip_space(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

static inline const uint8_t *skip_digits(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* Skips true, false, null or a number at p; NULL: something else. */
static const uint8_t *skip_scalar(const uint8_t *p, const uint8_t *end)
{
    static const char *const words[] = {"true", "null", "false"};

    for (int i = 0; i < 3; i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(end - p) >= n && !memcmp(p, words[i], n))
            return p + n;
    }
    p += *p == '-';
    const uint8_t *first = p;
    p = skip_digits(p, end);
    if (p == first || (*first == '0' && p - first > 1))
        return NULL;
    if (p < end && *p == '.') {
        p = skip_digits(first = p + 1, end);
        if (p == first)
            return NULL;
    }
    if (p < end && (*p | 32) == 'e') {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        first = p;
        p = skip_digits(p, end);
        if (p == first)
            return NULL;
    }
    return p;
}

/* Reads a key of *n bytes from p on. Returns the place of its value; NULL: there is no
 * key, or a rare one. */
static const uint8_t *take_key(const uint8_t *p, const uint8_t *end, size_t *n)
{
    const struct block x = load(p);
    const uint64_t stop = is(x, '"') | is(x, '\\') | is_control(x);

    if (!stop)
        return NULL;
    *n = (size_t)__builtin_ctzll(stop);
    p += *n;
    if (p >= end || *p != '"')
        return NULL;
    p = skip_space(p + 1, end);
    return p < end && *p == ':' ? skip_space(p + 1, end) : NULL;
}

bool JSON_FLAT(const uint8_t *rec, size_t n, struct slu_flat_field *field,
               size_t n_field, uint8_t *out)
{
    const uint8_t *end = rec + n, *p = skip_space(rec, end);

    for (size_t i = 0; i < n_field; i++)
        field[i].p = NULL;
    if (p == end || *p != '{')
        return false;
    do {
        p = skip_space(p + 1, end);
        if (p >= end || *p != '"')
            return false;
        const uint8_t *key = p + 1;
        uint8_t *to = out;
        size_t n_key;
        bool is_wanted = false, is_string, is_fit = true;
        if (!(p = take_key(key, end, &n_key)) || p >= end)
            return false;
        const uint8_t *value = p;
        is_string = *p == '"';
        p = is_string ? take_string(p + 1, end, &to) : skip_scalar(p, end);
        if (!p)
            return false;
        for (size_t i = 0; i < n_field; i++) {
            struct slu_flat_field *f = &field[i];
            if (!f->name || f->name_len != n_key || memcmp(f->name, key, n_key) != 0)
                continue;
            f->scalar = !is_string;
            f->p = is_string ? out : value;
            f->len = (size_t)(is_string ? to - out : p - value);
            is_wanted = true;
            is_fit &= is_string || f->any;
        }
        if (!is_fit)
            return false;
        if (is_wanted)
            out = to;
        p = skip_space(p, end);
    } while (p < end && *p == ',');
    return p < end && *p == '}' && skip_space(p + 1, end) == end;
}
