/* json_flat_avx2.c - json_flat.h, 32 bytes of a string at a time. */
#include <immintrin.h>

#include "lib/base/json_scan.h"

#define BLOCK     32
#define JSON_FLAT slu_json_flat_avx2

struct block {
    __m256i v;
};

static inline struct block load(const uint8_t *p)
{
    return (struct block){_mm256_loadu_si256((const void *)p)};
}

static inline uint64_t is(struct block x, char c)
{
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(x.v, _mm256_set1_epi8(c)));
}

static inline uint64_t is_control(struct block x)
{
    const __m256i most = _mm256_set1_epi8(31);

    return (uint32_t)_mm256_movemask_epi8(
        _mm256_cmpeq_epi8(_mm256_max_epu8(x.v, most), most));
}

/* By a mask of 8 bytes: the places of the bytes to keep. */
#define ROW(...)                                                                       \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }
#define ROW1(...) ROW(__VA_ARGS__), ROW(0, ##__VA_ARGS__)
#define ROW2(...) ROW1(__VA_ARGS__), ROW1(1, ##__VA_ARGS__)
#define ROW3(...) ROW2(__VA_ARGS__), ROW2(2, ##__VA_ARGS__)
#define ROW4(...) ROW3(__VA_ARGS__), ROW3(3, ##__VA_ARGS__)
#define ROW5(...) ROW4(__VA_ARGS__), ROW4(4, ##__VA_ARGS__)
#define ROW6(...) ROW5(__VA_ARGS__), ROW5(5, ##__VA_ARGS__)
#define ROW7(...) ROW6(__VA_ARGS__), ROW6(6, ##__VA_ARGS__)
#define ROW8(...) ROW7(__VA_ARGS__), ROW7(7, ##__VA_ARGS__)
static const uint8_t order[256][8] = {ROW8()};

/* Writes those of the first 8 bytes of x that have a bit in `keep` to `to`; returns the
 * place after them. */
static inline uint8_t *put_8(uint8_t *to, __m128i x, unsigned keep)
{
    x = _mm_shuffle_epi8(x, _mm_loadl_epi64((const void *)order[keep]));
    _mm_storel_epi64((void *)to, x);
    return to + __builtin_popcount(keep);
}

/* Sets all bits of the bytes that have a bit in m. */
static inline __m256i bytes(uint32_t m)
{
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201),
                  which = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                             0x0303030303030303);

    return _mm256_cmpeq_epi8(
        _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)m), which), bit),
        bit);
}

/* A table by the last four bits of the byte after a backslash; except for '"' and 'b'
 * these identify the byte. */
#define BY_BITS(r, t, f, back, n, slash)                                               \
    _mm256_broadcastsi128_si256(                                                       \
        _mm_setr_epi8(-1, 0, r, 0, t, 0, f, 0, 0, 0, 0, 0, back, 0, n, slash))

/* Returns the characters that the bytes of x stand for after a backslash; *is_escape:
 * the bytes that may follow one. */
static inline __m256i meaning(__m256i x, __m256i *is_escape)
{
    const __m256i byte = BY_BITS('r', 't', 'f', '\\', 'n', '/'),
                  meant = BY_BITS('\r', '\t', '\f', '\\', '\n', '/');
    const __m256i quote = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('"')),
                  b = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('b')),
                  other = _mm256_cmpeq_epi8(x, _mm256_shuffle_epi8(byte, x));
    const __m256i what = _mm256_blendv_epi8(_mm256_shuffle_epi8(meant, x), x, quote);

    *is_escape = _mm256_or_si256(other, _mm256_or_si256(quote, b));
    return _mm256_blendv_epi8(what, _mm256_set1_epi8('\b'), b);
}

static inline bool unescape(struct block x, uint64_t begins, unsigned n, uint8_t **out)
{
    const uint32_t keep = (uint32_t)_bzhi_u64(~begins, n);
    uint8_t *to = *out;
    __m256i is_escape;

    if (!begins) {
        _mm256_storeu_si256((void *)to, x.v);
        *out = to + n;
        return true;
    }
    const __m256i escaped = bytes((uint32_t)(begins << 1)),
                  v = _mm256_blendv_epi8(x.v, meaning(x.v, &is_escape), escaped);
    const __m128i low = _mm256_castsi256_si128(v),
                  high = _mm256_extracti128_si256(v, 1);
    to = put_8(to, low, keep & 255);
    to = put_8(to, _mm_srli_si128(low, 8), keep >> 8 & 255);
    to = put_8(to, high, keep >> 16 & 255);
    *out = put_8(to, _mm_srli_si128(high, 8), keep >> 24);
    return _mm256_testc_si256(is_escape, escaped);
}

#include "lib/base/json_flat_read.h"
