/* bpe_merge.h - plain BPE of many short pretokens at once; the body of bpe_merge_*.c, each
 * of which is this header compiled for another SIMD level. All levels give equal ids.
 *
 * A pretoken is a *lane*: for each of its places the tok that begins there, and the tok
 * that it makes with the next one. One step of a lane merges its best pair, which is a
 * chain of some hundred cycles: a minimum, two neighbours, two pairs to look up. In a
 * round every lane that still has a pair makes one step. Lanes do not depend on each
 * other, and only the branch at the end of the round depends on the text. So the chains
 * and cache misses of many lanes overlap, and hardly a branch is mispredicted.
 *
 * Place 0 and the place after the last byte are sentinels, which merge with nothing.
 */
#include "lib/token/bpe.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define NOTHING  INT32_MAX
#define SENTINEL (BPE_MAX_ID - 1)
#define NO_KEY   UINT64_MAX
#define INLINE   static inline __attribute__((always_inline))

/* A lane of W places, in words; W is a constant wherever this is used. It begins with
 * made[]: the tok that a place and the next make, in the bits above the place. The
 * least is the pair that is merged first. */
#define LANE_SYM(W)   (W)
#define LANE_ALIVE(W) (2 * (W) + 2) /* a bit per place: a tok begins there */
#define LANE_ASKED(W) (2 * (W) + 4)
#define LANE_WORDS(W) ((3 * (W) + 11) / (W) * (W)) /* more than 2 * W + 11 */

/* Two pairs that are being looked up, and their places. */
struct asked {
    uint64_t key[2];
    uint32_t bucket[2], at[2];
};

/* Lanes of a group: each size takes about the same memory. */
#define LANES(W)   (BPE_LANES * 16 / (W))
#define LANE_SPACE ((LANES(16) + 4) * LANE_WORDS(16))

INLINE uint64_t alive_of(const uint32_t *x, unsigned W)
{
    uint64_t v;

    memcpy(&v, x + LANE_ALIVE(W), 8);
    return v;
}

INLINE void set_alive(uint32_t *x, unsigned W, uint64_t v)
{
    memcpy(x + LANE_ALIVE(W), &v, 8);
}

INLINE struct asked *asked_of(uint32_t *x, unsigned W)
{
    return (struct asked *)(void *)(x + LANE_ASKED(W));
}

/* A pair is looked up in two halves, a round apart: ask() computes its bucket and
 * prefetches it, answer() reads it. Most pairs make nothing, and for most of these only
 * the filter is read: their bucket is then the first of the table, which does not have
 * them either. */
INLINE uint64_t key_of(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 21 | right;
}

INLINE uint32_t ask(const struct tok_model *m, uint64_t key)
{
    uint64_t h = bpe_pair_hash(key), might = m->might[h >> m->might_shift];
    uint32_t yes = (uint32_t)(might >> (h >> 32 & 63) & might >> (h >> 38 & 63) & 1);
    uint32_t i =
        (uint32_t)(h >> 32) & m->pair_mask & ~(uint32_t)(BPE_BUCKET - 1) & -yes;

    __builtin_prefetch(&m->pair[i]);
    return i | yes;
}

/* Returns the tok that a pair makes, or 0. */
INLINE uint32_t answer(const struct tok_model *m, uint64_t key, uint32_t asked)
{
    const uint64_t *s = &m->pair[asked & ~UINT32_C(1)];
    uint64_t found;

#if defined(__AVX2__)
    __m256i slot = _mm256_loadu_si256((const __m256i *)s);
    __m256i is = _mm256_cmpeq_epi64(_mm256_srli_epi64(slot, 21),
                                    _mm256_set1_epi64x((long long)key));
    slot = _mm256_and_si256(slot, is);
    __m128i half =
        _mm_or_si128(_mm256_castsi256_si128(slot), _mm256_extracti128_si256(slot, 1));
    half = _mm_or_si128(half, _mm_unpackhi_epi64(half, half));
    found = (uint64_t)_mm_cvtsi128_si64(half);
#else
    found = 0;
    for (unsigned k = 0; k < BPE_BUCKET; k++)
        found |= s[k] >> 21 == key ? s[k] : 0;
#endif
    found &= (UINT64_C(1) << 21) - 1;
    /* One branch, which is hardly ever taken. */
    if (__builtin_expect(asked & (found == 0) & (s[BPE_BUCKET - 1] != 0), 0))
        found = bpe_find(m->pair, m->pair_mask, key, 21);
    return (uint32_t)found;
}

/* Returns -1 if x < 0, else 0, by arithmetic: a condition would become a branch. */
INLINE int32_t sign_of(int32_t x)
{
    x = -(int32_t)((uint32_t)x >> 31);
    __asm__("" : "+r"(x));
    return x;
}

INLINE int32_t less_of(int32_t a, int32_t b) /* neither is negative */
{
    return b + ((a - b) & sign_of(a - b));
}

INLINE int32_t made_at(uint32_t t, unsigned at, unsigned bits)
{
    return (int32_t)(t << bits | at) | (sign_of((int32_t)t - 1) & NOTHING);
}

#if defined(__AVX2__)
INLINE int32_t least(const int32_t *made, unsigned W)
{
    const __m256i *v = (const __m256i *)(const void *)made;
    __m256i a = _mm256_load_si256(v), b = _mm256_load_si256(v + 1);

    for (unsigned i = 2; i < W / 8; i += 2) {
        a = _mm256_min_epi32(a, _mm256_load_si256(v + i));
        b = _mm256_min_epi32(b, _mm256_load_si256(v + i + 1));
    }
    a = _mm256_min_epi32(a, b);
    __m128i c =
        _mm_min_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    c = _mm_min_epi32(c, _mm_unpackhi_epi64(c, c));
    c = _mm_min_epi32(c, _mm_shuffle_epi32(c, 1));
    return _mm_cvtsi128_si32(c);
}
#else
INLINE int32_t least(const int32_t *made, unsigned W)
{
    int32_t best = made[0];

    for (unsigned i = 1; i < W; i++)
        best = made[i] < best ? made[i] : best;
    return best;
}
#endif

/* Makes one merge in a lane. If there is nothing to merge, makes it in the lane `none`
 * and returns 0. */
INLINE unsigned step(const struct tok_model *m, uint32_t *x, uint32_t *none, unsigned W,
                     unsigned bits)
{
    struct asked *q = asked_of(x, W);
    int32_t best = least((const int32_t *)x, W);
    /* The pairs of the last round, which `least` has not read. */
    int32_t c = made_at(answer(m, q->key[0], q->bucket[0]), q->at[0], bits);
    int32_t d = made_at(answer(m, q->key[1], q->bucket[1]), q->at[1], bits);
    ((int32_t *)x)[q->at[0]] = c;
    ((int32_t *)x)[q->at[1]] = d;
    best = less_of(less_of(c, d), best);
    int32_t more = sign_of(best - NOTHING), done = ~more;

    x += (none - x) & (ptrdiff_t)done;
    best = (best & more) | (1 & done);
    int32_t *made = (int32_t *)x;
    uint32_t *sym = x + LANE_SYM(W), t = (uint32_t)best >> bits;
    unsigned at = (unsigned)best & (W - 1);
    uint64_t alive = alive_of(x, W), behind = alive & ~UINT64_C(1) << at;
    uint64_t gone = behind & -behind;
    unsigned last = 63 - (unsigned)__builtin_clzll(alive & ((UINT64_C(1) << at) - 1));
    unsigned next = (unsigned)__builtin_ctzll(behind ^ gone);
    set_alive(x, W, alive ^ (gone & (uint64_t)(int64_t)more));
    q = asked_of(x, W);
    q->key[0] = key_of(t, sym[next]);
    q->key[1] = key_of(sym[last], t);
    q->bucket[0] = ask(m, q->key[0]);
    q->bucket[1] = ask(m, q->key[1]);
    q->at[0] = at;
    q->at[1] = last;
    sym[at] = t;
    made[__builtin_ctzll(gone)] = NOTHING;
    made[at] = NOTHING;
    made[last] = NOTHING;
    return (unsigned)more & 1;
}

/* Writes the bytes of a pretoken of at most 15 bytes, and the pairs of two bytes. */
INLINE void begin_16(const struct tok_model *m, int32_t *made, uint32_t *sym,
                     const uint8_t *p, unsigned n, unsigned bits)
{
#if defined(__AVX2__)
    const __m128i first = _mm_loadu_si128((const __m128i *)p);
    const __m128i second = _mm_srli_si128(first, 1);
    const __m256i n_tok = _mm256_set1_epi32((int)m->n_tok),
                  end = _mm256_set1_epi32((int)n), nothing = _mm256_set1_epi32(NOTHING);
    __m256i at = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8);

    for (unsigned i = 0; i < 16; i += 8) {
        __m128i pair =
            i ? _mm_unpackhi_epi8(first, second) : _mm_unpacklo_epi8(first, second);
        __m256i is = _mm256_cmpgt_epi32(end, at);
        __m256i c = _mm256_mask_i32gather_epi32(nothing, (const int *)m->two,
                                                _mm256_cvtepu16_epi32(pair), is, 4);
        c = _mm256_srli_epi32(c, 2);
        is = _mm256_and_si256(is, _mm256_cmpgt_epi32(n_tok, c));
        c = _mm256_or_si256(_mm256_slli_epi32(c, (int)bits), at);
        _mm256_storeu_si256((__m256i *)(made + 1 + i),
                            _mm256_blendv_epi8(nothing, c, is));
        at = _mm256_add_epi32(at, _mm256_set1_epi32(8));
    }
    /* After the pairs, whose last one is written to sym[0]; the caller sets that. */
    _mm256_storeu_si256((__m256i *)(sym + 1), _mm256_cvtepu8_epi32(first));
    _mm256_storeu_si256((__m256i *)(sym + 9),
                        _mm256_cvtepu8_epi32(_mm_srli_si128(first, 8)));
#else
    for (unsigned i = 0; i < 15; i++) {
        uint32_t c = m->two[bpe_load16(p + i)] >> 2;
        uint32_t is = -(uint32_t)((i + 1 < n) & (c < m->n_tok));
        sym[i + 1] = p[i];
        made[i + 1] = (int32_t)(((c << bits | (i + 1)) & is) | (NOTHING & ~is));
    }
#endif
}

#if defined(__AVX2__)
/* Writes eight pairs, of the nine bytes at p, from place `at` on, and the first eight
 * bytes. */
INLINE void begin_8(const struct tok_model *m, int32_t *made, uint32_t *sym,
                    const uint8_t *p, unsigned at, unsigned bits)
{
    const __m128i first = _mm_loadl_epi64((const __m128i *)(const void *)p),
                  second = _mm_loadl_epi64((const __m128i *)(const void *)(p + 1));
    const __m256i pair = _mm256_cvtepu16_epi32(_mm_unpacklo_epi8(first, second)),
                  place = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                           _mm256_set1_epi32((int)at));
    __m256i c =
        _mm256_srli_epi32(_mm256_i32gather_epi32((const int *)m->two, pair, 4), 2);
    __m256i is = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)m->n_tok), c);

    c = _mm256_or_si256(_mm256_slli_epi32(c, (int)bits), place);
    _mm256_storeu_si256((__m256i *)(void *)(made + at),
                        _mm256_blendv_epi8(_mm256_set1_epi32(NOTHING), c, is));
    _mm256_storeu_si256((__m256i *)(void *)(sym + at), _mm256_cvtepu8_epi32(first));
}
#endif

/* As begin_16, for a pretoken of 9 bytes or more. */
INLINE void begin_long(const struct tok_model *m, int32_t *made, uint32_t *sym,
                       const uint8_t *p, unsigned n, unsigned W, unsigned bits)
{
    for (unsigned i = 0; i < W; i++)
        made[i] = NOTHING;
#if defined(__AVX2__)
    for (unsigned i = 0; i + 9 < n; i += 8)
        begin_8(m, made, sym, p + i, i + 1, bits);
    begin_8(m, made, sym, p + n - 9, n - 8, bits); /* writes some of them again */
    sym[n] = p[n - 1];
#else
    for (unsigned i = 0; i < n; i++)
        sym[i + 1] = p[i];
    for (unsigned i = 0; i + 1 < n; i++) {
        uint32_t c = m->two[bpe_load16(p + i)] >> 2;
        made[i + 1] = c < m->n_tok ? (int32_t)(c << bits | (i + 1)) : NOTHING;
    }
#endif
}

/* Begins a lane: writes its bytes, and the pairs of two bytes. */
INLINE void begin(const struct tok_model *m, uint32_t *x, const uint8_t *p, unsigned n,
                  unsigned W, unsigned bits)
{
    int32_t *made = (int32_t *)x;
    uint32_t *sym = x + LANE_SYM(W);

    if (W == 16)
        begin_16(m, made, sym, p, n, bits);
    else
        begin_long(m, made, sym, p, n, W, bits);
    made[0] = NOTHING;
    *asked_of(x, W) = (struct asked){.key = {NO_KEY, NO_KEY}};
    sym[0] = sym[n + 1] = SENTINEL;
    set_alive(x, W, (UINT64_C(2) << n << (n < 63)) - 1);
}

/* Writes the ids of a lane. Returns how many, or 0 if a byte has no id. */
INLINE unsigned finish(const struct tok_model *m, const uint32_t *x, unsigned n,
                       uint32_t *id, unsigned W)
{
    const uint32_t *sym = x + LANE_SYM(W) + 1;
    uint64_t alive = alive_of(x, W) >> 1 & ((UINT64_C(1) << n) - 1);
    unsigned k = 0;
    bool good = true;

#if defined(__AVX512F__)
    for (unsigned i = 0; i < W; i += 16, alive >>= 16) {
        const __mmask16 here = (__mmask16)alive;
        const unsigned some = (unsigned)__builtin_popcount(here);
        const __mmask16 is = (__mmask16)((1u << some) - 1);
        __m512i tok = _mm512_maskz_compress_epi32(here, _mm512_loadu_si512(sym + i)),
                least = _mm512_min_epu32(tok, _mm512_set1_epi32((int)m->regular)),
                base = _mm512_mask_i32gather_epi32(tok, is, least, m->id_of, 4);
        base = _mm512_add_epi32(base, _mm512_sub_epi32(tok, least));
        _mm512_storeu_si512(id + k, base);
        good &= !_mm512_mask_cmpeq_epi32_mask(is, base, _mm512_set1_epi32(BPE_NONE));
        k += some;
    }
#else
    for (; alive; alive &= alive - 1) {
        uint32_t i = bpe_id_of(m, sym[__builtin_ctzll(alive)]);
        good &= i != BPE_NONE;
        id[k++] = i;
    }
#endif
    return good ? k : 0;
}

INLINE size_t merge_group(const struct tok_model *m,
                          struct bpe_pretoken *const *pretoken, size_t n, uint32_t *id,
                          unsigned W, unsigned bits)
{
    _Alignas(64) uint32_t lane[LANE_SPACE];
    uint16_t active[BPE_LANES];
    size_t n_id = 0, n_active = n;
    _Static_assert((LANES(32) + 1) * LANE_WORDS(32) <= LANE_SPACE &&
                       (LANES(64) + 1) * LANE_WORDS(64) <= LANE_SPACE,
                   "room");
    uint32_t *none = lane + n * LANE_WORDS(W);

    begin(m, none, (const uint8_t *)"0123456789abcdef", 15, W, bits);
    for (size_t i = 0; i < n; i++) {
        begin(m, lane + i * LANE_WORDS(W), pretoken[i]->p, pretoken[i]->n, W, bits);
        active[i] = (uint16_t)i;
    }
    while (n_active) {
        size_t left = 0;
        for (size_t i = 0; i < n_active; i++) {
            unsigned k = active[i];
            active[left] = (uint16_t)k;
            left += step(m, lane + k * LANE_WORDS(W), none, W, bits);
        }
        n_active = left;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned k = finish(m, lane + i * LANE_WORDS(W), pretoken[i]->n, id + n_id, W);
        pretoken[i]->at = n_id;
        pretoken[i]->n_id = k;
        n_id += k;
    }
    return n_id;
}

#if !defined(BPE_MERGE_WIDE) /* bpe_merge_avx512.c has its own */
static size_t merge_16(const struct tok_model *m, struct bpe_pretoken *const *pretoken,
                       size_t n, uint32_t *id)
{
    return merge_group(m, pretoken, n, id, 16, 4);
}

static size_t merge_32(const struct tok_model *m, struct bpe_pretoken *const *pretoken,
                       size_t n, uint32_t *id)
{
    return merge_group(m, pretoken, n, id, 32, 5);
}

#endif

static size_t merge_64(const struct tok_model *m, struct bpe_pretoken *const *pretoken,
                       size_t n, uint32_t *id)
{
    return merge_group(m, pretoken, n, id, 64, 6);
}

#define BPE_MERGE_TABLE(LEVEL)                                                         \
    {                                                                                  \
        LEVEL,                                                                         \
        {                                                                              \
            merge_16, merge_32, merge_64                                               \
        }                                                                              \
    }
