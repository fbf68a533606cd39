/* hot_avx512.c - the hot table by AVX-512, see hot.h: eight pretokens at a time. */
#include "lib/token/hot.h"

#define WIDE 8

struct wide_key {
    __m512i a, b;
};

/* Loads 16 bytes at base + of[i], for eight i; a: the first halves, b: the others. */
static inline struct wide_key load_8(const uint8_t *base, const uint32_t *of)
{
#define FOUR(a, b, c, d)                                                               \
    _mm512_inserti64x4(_mm512_castsi256_si512(hot_load_two(base, of[a], of[b])),       \
                       hot_load_two(base, of[c], of[d]), 1)
    __m512i even = FOUR(0, 2, 4, 6), odd = FOUR(1, 3, 5, 7);
#undef FOUR

    return (struct wide_key){_mm512_unpacklo_epi64(even, odd),
                             _mm512_unpackhi_epi64(even, odd)};
}

/* Computes word_key of eight pretokens. len: at most 16. */
static inline struct wide_key keys(const uint8_t *p, const uint32_t *at, __m256i len)
{
    const __m512i ones = _mm512_set1_epi64(-1);
    const __m256i bits = _mm256_slli_epi32(len, 3);
    const __m256i rest_a = _mm256_max_epi32(
        _mm256_sub_epi32(_mm256_set1_epi32(64), bits), _mm256_setzero_si256());
    const __m256i rest_b = _mm256_sub_epi32(_mm256_set1_epi32(128), bits);
    struct wide_key k = load_8(p, at);

    k.a = _mm512_and_si512(k.a, _mm512_srlv_epi64(ones, _mm512_cvtepu32_epi64(rest_a)));
    k.b = _mm512_and_si512(k.b, _mm512_srlv_epi64(ones, _mm512_cvtepu32_epi64(rest_b)));
    k.b = _mm512_or_si512(
        k.b, _mm512_slli_epi64(_mm512_cvtepu32_epi64(len), WORD_LEN_SHIFT));
    return k;
}

static inline __m256i places(struct wide_key k, __m128i shift)
{
    const __m512i x = _mm512_set1_epi64((long long)WORD_HASH_A),
                  y = _mm512_set1_epi64((long long)WORD_HASH_B);
    const __m512i hash =
        _mm512_add_epi64(_mm512_mullo_epi64(k.a, x), _mm512_mullo_epi64(k.b, y));

    return _mm512_cvtepi64_epi32(
        _mm512_and_si512(_mm512_srl_epi64(hash, shift),
                         _mm512_set1_epi64(-(long long)sizeof(struct word_key))));
}

/* Appends the words of v that have a bit in m. */
static inline size_t put(uint32_t *list, size_t n, __mmask8 m, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)(list + n),
                        _mm256_maskz_compress_epi32(m, v));
    return n + (unsigned)__builtin_popcount(m);
}

static inline __attribute__((always_inline)) size_t find(struct hot_batch *b,
                                                         const struct words *w,
                                                         const uint8_t *p, size_t from,
                                                         size_t to, uint32_t skip)
{
    const uint8_t *hot = (const uint8_t *)w->hot;
    const __m128i shift = hot_place_shift(w);
    const __m256i most = _mm256_set1_epi32(16), one = _mm256_set1_epi32(1),
                  eight = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                  skips = _mm256_set1_epi32((int)skip),
                  value_bits = _mm256_set1_epi32((int)HOT_VALUE);
    const __m512i key_bits = _mm512_set1_epi64((long long)HOT_KEY);
    struct wide_key key[HOT_GROUP / WIDE];
    uint32_t place[HOT_GROUP];
    __mmask8 skipped[HOT_GROUP / WIDE];
    size_t n_slow = b->n_slow, n_miss = b->n_miss, n_skipped = b->n_skipped;

    to -= (to - from) % WIDE;
    for (; from < to; from += HOT_GROUP) {
        const size_t n = to - from < HOT_GROUP ? to - from : HOT_GROUP;
        for (size_t i = 0; i < n; i += WIDE) {
            const uint32_t *at = b->at + from + i;
            __m256i begin = _mm256_loadu_si256((const void *)at),
                    end = _mm256_loadu_si256((const void *)(at + 1)),
                    len = _mm256_min_epu32(_mm256_sub_epi32(end, begin), most);
            key[i / WIDE] = keys(p, at, len);
            skipped[i / WIDE] =
                _mm256_test_epi32_mask(_mm256_srlv_epi32(skips, len), one);
            _mm256_storeu_si256((void *)(place + i),
                                _mm256_maskz_mov_epi32((__mmask8)~skipped[i / WIDE],
                                                       places(key[i / WIDE], shift)));
            for (unsigned k = 0; k < WIDE; k++)
                __builtin_prefetch(hot + place[i + k]);
        }
        for (size_t i = 0; i < n; i += WIDE) {
            struct wide_key s = load_8(hot, place + i);
            const struct wide_key k = key[i / WIDE];
            const __mmask8 is_skipped = skipped[i / WIDE];
            const __m256i pretoken =
                _mm256_add_epi32(eight, _mm256_set1_epi32((int)(from + i)));
            __m256i value = _mm256_and_si256(
                _mm512_cvtepi64_epi32(_mm512_srli_epi64(s.b, 32)), value_bits);
            __mmask8 other =
                _mm512_cmpneq_epi64_mask(s.a, k.a) |
                _mm512_cmpneq_epi64_mask(_mm512_and_si512(s.b, key_bits), k.b);
            __mmask8 slow =
                other | is_skipped |
                _mm256_test_epi32_mask(
                    value, _mm256_set1_epi32((int)(~0u << HOT_COUNT_SHIFT)));
            _mm256_storeu_si256((void *)(b->id + from + i), value);
            (void)put(b->place, n_slow, slow, _mm256_loadu_si256((void *)(place + i)));
            n_slow = put(b->slow, n_slow, slow, pretoken);
            n_miss = put(b->miss, n_miss, other & (__mmask8)~is_skipped, pretoken);
            n_skipped = put(b->skipped, n_skipped, is_skipped, pretoken);
        }
    }
    b->n_slow = n_slow;
    b->n_miss = n_miss;
    b->n_skipped = n_skipped;
    return to;
}

size_t hot_find_avx512(struct hot_batch *b, const struct words *w, const uint8_t *p,
                       size_t from, size_t to, uint32_t skip)
{
    return skip ? find(b, w, p, from, to, skip) : find(b, w, p, from, to, 0);
}
