/* json_flat_avx512.c - json_flat.h, 64 bytes of a string at a time. */
#include "json_flat.h"

#include <immintrin.h>
#include <string.h>

#define BELOW(i) ((i) >= 64 ? UINT64_MAX : (UINT64_C(1) << (i)) - 1)

/* By the byte behind a backslash: what the two are; 0: no escape, or \u. */
static const uint8_t escapes[128] __attribute__((aligned(64))) = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};

static inline uint64_t is(__m512i v, char c)
{
    return _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(c));
}

/* The backslashes that begin an escape: every second one of a run. */
static inline uint64_t begins_escape(uint64_t back)
{
    const uint64_t even = UINT64_C(0x5555555555555555);
    const uint64_t first = back & ~(back << 1);
    const uint64_t runs =
        back & ~(back + (first & even)); /* those from an even place */

    return (runs & even) | (back & ~runs & ~even);
}

/* The character of four hexadecimal digits at p as UTF-8, to *out; false where they are
 * none, or half of a pair. */
static bool put_unicode(const uint8_t *p, uint8_t **out)
{
    unsigned c = 0;

    for (int i = 0; i < 4; i++) {
        const unsigned digit = p[i] - (unsigned)'0', letter = (p[i] | 32u) - 'a';
        if (digit > 9 && letter > 5)
            return false;
        c = c * 16 + (digit <= 9 ? digit : letter + 10);
    }
    if (c >= 0xD800 && c <= 0xDFFF)
        return false;
    if (c < 0x80) {
        *(*out)++ = (uint8_t)c;
        return true;
    }
    if (c < 0x800) {
        *(*out)++ = (uint8_t)(0xC0 | c >> 6);
    } else {
        *(*out)++ = (uint8_t)(0xE0 | c >> 12);
        *(*out)++ = (uint8_t)(0x80 | (c >> 6 & 63));
    }
    *(*out)++ = (uint8_t)(0x80 | (c & 63));
    return true;
}

/* A string's content from p on, unescaped to *out, which is moved. Returns what is
 * behind its quote, which may be behind `end`; NULL: this is none. */
static const uint8_t *take_string(const uint8_t *p, const uint8_t *end, uint8_t **out)
{
    const __m512i low = _mm512_load_si512(escapes),
                  high = _mm512_load_si512(escapes + 64);

    while (p < end) {
        __m512i v = _mm512_loadu_si512(p);
        const uint64_t back = is(v, '\\'), begins = begins_escape(back),
                       escaped = begins << 1,
                       control = _mm512_cmplt_epu8_mask(v, _mm512_set1_epi8(32)),
                       /* Stops: the quote, what no string has, \u, and a backslash
                        * whose other half is not here. */
            stop = (is(v, '"') & ~escaped) | control | (is(v, 'u') & escaped) >> 1 |
                   (begins & UINT64_C(1) << 63);
        const unsigned n = stop ? (unsigned)__builtin_ctzll(stop) : 64;
        const uint64_t here = BELOW(n), keep = here & ~begins;
        const __m512i is_what = _mm512_permutex2var_epi8(low, v, high);
        const uint64_t bad =
            _mm512_testn_epi8_mask(is_what, is_what) | _mm512_movepi8_mask(v);

        if (bad & escaped & here)
            return NULL;
        v = _mm512_mask_mov_epi8(v, escaped, is_what);
        _mm512_storeu_si512(*out, _mm512_maskz_compress_epi8(keep, v));
        *out += __builtin_popcountll(keep);
        p += n;
        if (!stop || (n == 63 && begins >> 63))
            continue;
        if (*p == '"')
            return p + 1;
        if (*p != '\\' || end - p < 6 || !put_unicode(p + 2, out))
            return NULL;
        p += 6;
    }
    return NULL;
}

static inline const uint8_t *skip_space(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* true, false, null or an integer at p; NULL: something else. */
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
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p == first || (*first == '0' && p - first > 1) ? NULL : p;
}

/* A key from p on, up to the value behind it; NULL: this is none. */
static const uint8_t *take_key(const uint8_t *p, const uint8_t *end, size_t *n)
{
    const __m512i v = _mm512_loadu_si512(p);
    const uint64_t stop =
        is(v, '"') | is(v, '\\') | _mm512_cmplt_epu8_mask(v, _mm512_set1_epi8(32));

    if (!stop)
        return NULL;
    *n = (size_t)__builtin_ctzll(stop);
    p += *n;
    if (p >= end || *p != '"')
        return NULL;
    p = skip_space(p + 1, end);
    return p < end && *p == ':' ? skip_space(p + 1, end) : NULL;
}

bool slu_json_flat_avx512(const uint8_t *rec, size_t n, struct slu_flat_field *field,
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
        bool is_wanted = false, is_string;
        if (!(p = take_key(key, end, &n_key)) || p >= end)
            return false;
        is_string = *p == '"';
        p = is_string ? take_string(p + 1, end, &to) : skip_scalar(p, end);
        if (!p)
            return false;
        for (size_t i = 0; i < n_field; i++) {
            struct slu_flat_field *f = &field[i];
            if (!f->name || f->name_len != n_key || memcmp(f->name, key, n_key) != 0)
                continue;
            f->p = out;
            f->len = (size_t)(to - out);
            is_wanted = true;
        }
        if (is_wanted && !is_string)
            return false;
        if (is_wanted)
            out = to;
        p = skip_space(p, end);
    } while (p < end && *p == ',');
    return p < end && *p == '}' && skip_space(p + 1, end) == end;
}
