/* hot_avx2.c - the hot table by AVX2, see hot.h: four pretokens at a time. */
#include "lib/token/hot.h"

#define WIDE 4

struct wide_key {
    __m256i a, b;
};

/* Loads 16 bytes at base + of[i], for four i; a: the first halves, b: the others. */
static inline struct wide_key load_4(const uint8_t *base, const uint32_t *of)
{
    __m256i even = hot_load_two(base, of[0], of[2]),
            odd = hot_load_two(base, of[1], of[3]);

    return (struct wide_key){_mm256_unpacklo_epi64(even, odd),
                             _mm256_unpackhi_epi64(even, odd)};
}

/* Computes word_key of four pretokens. len: at most 16. */
static inline struct wide_key keys(const uint8_t *p, const uint32_t *at, __m128i len)
{
    const __m256i ones = _mm256_set1_epi64x(-1);
    const __m128i bits = _mm_slli_epi32(len, 3);
    const __m128i rest_a =
        _mm_max_epi32(_mm_sub_epi32(_mm_set1_epi32(64), bits), _mm_setzero_si128());
    const __m128i rest_b = _mm_sub_epi32(_mm_set1_epi32(128), bits);
    struct wide_key k = load_4(p, at);

    k.a = _mm256_and_si256(k.a, _mm256_srlv_epi64(ones, _mm256_cvtepu32_epi64(rest_a)));
    k.b = _mm256_and_si256(k.b, _mm256_srlv_epi64(ones, _mm256_cvtepu32_epi64(rest_b)));
    k.b = _mm256_or_si256(
        k.b, _mm256_slli_epi64(_mm256_cvtepu32_epi64(len), WORD_LEN_SHIFT));
    return k;
}

/* Returns x * c without the product of the lower halves, as 32 bits to add to the upper
 * half of that product. */
static inline __m256i cross(__m256i x, uint64_t c)
{
    const __m256i swapped = _mm256_set1_epi64x((long long)(c << 32 | c >> 32));
    __m256i t = _mm256_mullo_epi32(x, swapped);

    return _mm256_add_epi32(t, _mm256_srli_epi64(t, 32));
}

static inline __m128i places(struct wide_key k, __m128i shift)
{
    const __m256i a = _mm256_set1_epi64x((long long)WORD_HASH_A),
                  b = _mm256_set1_epi64x((long long)WORD_HASH_B);
    __m256i upper = _mm256_add_epi32(cross(k.a, WORD_HASH_A), cross(k.b, WORD_HASH_B));
    __m256i hash = _mm256_add_epi64(_mm256_mul_epu32(k.a, a), _mm256_mul_epu32(k.b, b));

    hash = _mm256_add_epi64(hash, _mm256_slli_epi64(upper, 32));
    hash = _mm256_and_si256(_mm256_srl_epi64(hash, shift),
                            _mm256_set1_epi64x(-(long long)sizeof(struct word_key)));
    hash = _mm256_permutevar8x32_epi32(hash, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    return _mm256_castsi256_si128(hash);
}

/* Returns a bit for each 64-bit lane. */
static inline unsigned bits_64(__m256i x)
{
    return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(x));
}

static inline unsigned bits_32(__m128i x)
{
    return (unsigned)_mm_movemask_ps(_mm_castsi128_ps(x));
}

/* Appends the words of v that have a bit in m. */
static inline size_t put(uint32_t *list, size_t n, unsigned m, __m128i v)
{
#define W(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3
#define ROW(a, b, c, d)                                                                \
    {                                                                                  \
        W(a), W(b), W(c), W(d)                                                         \
    }
    static const uint8_t order[16][16] __attribute__((aligned(16))) = {
        ROW(0, 0, 0, 0), ROW(0, 0, 0, 0), ROW(1, 0, 0, 0), ROW(0, 1, 0, 0),
        ROW(2, 0, 0, 0), ROW(0, 2, 0, 0), ROW(1, 2, 0, 0), ROW(0, 1, 2, 0),
        ROW(3, 0, 0, 0), ROW(0, 3, 0, 0), ROW(1, 3, 0, 0), ROW(0, 1, 3, 0),
        ROW(2, 3, 0, 0), ROW(0, 2, 3, 0), ROW(1, 2, 3, 0), ROW(0, 1, 2, 3)};
#undef ROW
#undef W

    _mm_storeu_si128((__m128i *)(void *)(list + n),
                     _mm_shuffle_epi8(v, hot_load(order[m])));
    return n + (unsigned)__builtin_popcount(m);
}

static inline __attribute__((always_inline)) size_t find(struct hot_batch *b,
                                                         const struct words *w,
                                                         const uint8_t *p, size_t from,
                                                         size_t to, uint32_t skip)
{
    const uint8_t *hot = (const uint8_t *)w->hot;
    const __m128i shift = hot_place_shift(w);
    const __m128i most = _mm_set1_epi32(16), four = _mm_setr_epi32(0, 1, 2, 3),
                  skips = _mm_set1_epi32((int)skip),
                  value_bits = _mm_set1_epi32((int)HOT_VALUE),
                  one_id = _mm_set1_epi32((1 << HOT_COUNT_SHIFT) - 1);
    const __m256i key_bits = _mm256_set1_epi64x((long long)HOT_KEY),
                  upper = _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7);
    struct wide_key key[HOT_GROUP / WIDE];
    uint32_t place[HOT_GROUP];
    __m128i skipped[HOT_GROUP / WIDE];
    size_t n_slow = b->n_slow, n_miss = b->n_miss, n_skipped = b->n_skipped;

    to -= (to - from) % WIDE;
    for (; from < to; from += HOT_GROUP) {
        const size_t n = to - from < HOT_GROUP ? to - from : HOT_GROUP;
        for (size_t i = 0; i < n; i += WIDE) {
            const uint32_t *at = b->at + from + i;
            __m128i begin = hot_load(at), end = hot_load(at + 1),
                    len = _mm_min_epu32(_mm_sub_epi32(end, begin), most);
            key[i / WIDE] = keys(p, at, len);
            /* Moves the bit of the length to the sign, then to all bits. */
            skipped[i / WIDE] = _mm_srai_epi32(
                _mm_sllv_epi32(skips, _mm_sub_epi32(_mm_set1_epi32(31), len)), 31);
            _mm_storeu_si128(
                (void *)(place + i),
                _mm_andnot_si128(skipped[i / WIDE], places(key[i / WIDE], shift)));
            for (unsigned k = 0; k < WIDE; k++)
                __builtin_prefetch(hot + place[i + k]);
        }
        for (size_t i = 0; i < n; i += WIDE) {
            struct wide_key s = load_4(hot, place + i);
            const struct wide_key k = key[i / WIDE];
            const unsigned is_skipped = bits_32(skipped[i / WIDE]);
            const __m128i pretoken =
                _mm_add_epi32(four, _mm_set1_epi32((int)(from + i)));
            __m128i value = _mm_and_si128(
                _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(s.b, upper)),
                value_bits);
            unsigned same = bits_64(_mm256_and_si256(
                _mm256_cmpeq_epi64(s.a, k.a),
                _mm256_cmpeq_epi64(_mm256_and_si256(s.b, key_bits), k.b)));
            unsigned other = ~same & 15;
            unsigned many =
                bits_32(_mm_or_si128(value, _mm_cmpgt_epi32(value, one_id)));
            unsigned slow = other | is_skipped | many;
            _mm_storeu_si128((void *)(b->id + from + i), value);
            (void)put(b->place, n_slow, slow, hot_load(place + i));
            n_slow = put(b->slow, n_slow, slow, pretoken);
            n_miss = put(b->miss, n_miss, other & ~is_skipped, pretoken);
            n_skipped = put(b->skipped, n_skipped, is_skipped, pretoken);
        }
    }
    b->n_slow = n_slow;
    b->n_miss = n_miss;
    b->n_skipped = n_skipped;
    return to;
}

size_t hot_find_avx2(struct hot_batch *b, const struct words *w, const uint8_t *p,
                     size_t from, size_t to, uint32_t skip)
{
    return skip ? find(b, w, p, from, to, skip) : find(b, w, p, from, to, 0);
}
