/* bpe_merge_avx512.c - merging short pretokens, see bpe_merge.h: sixteen lanes per step.
 *
 * A lane is a row of memory: the toks that its pairs make, and those that begin at its
 * places. Values that a step needs of many lanes are in arrays of their own, one word
 * per lane, so that sixteen lanes are one register; finished lanes leave these arrays.
 * The filter refuses most new pairs. The others are listed and prefetched, and looked
 * up one by one when the next round begins. */
#define BPE_MERGE_WIDE 1
#include "lib/token/bpe_merge.h"

#define WIDE 16 /* lanes per step */

/* Pairs that the filter does not refuse, the places of the toks they make, and their
 * lanes. */
struct asked_list {
    uint64_t key[2 * BPE_LANES + WIDE];
    uint32_t bucket[2 * BPE_LANES + WIDE], at[2 * BPE_LANES + WIDE],
        lane[2 * BPE_LANES + WIDE];
    size_t n;
};

/* Unfinished lanes: where their rows begin, their places in use, those of them that
 * make a tok with the next one, and the next merge. Bits forget a pair, so that its
 * place in the row need not be written. */
struct lanes {
    uint32_t row[BPE_LANES + WIDE], alive[BPE_LANES + WIDE], makes[BPE_LANES + WIDE];
    int32_t best[BPE_LANES + WIDE];
};

/* Returns the least element of each of sixteen vectors, in their order. */
INLINE __m512i least_of_each(__m512i v[WIDE])
{
    for (unsigned i = 0; i < 8; i++)
        v[i] = _mm512_min_epi32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    for (unsigned i = 0; i < 4; i++)
        v[i] = _mm512_min_epi32(_mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]),
                                _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]));
    for (unsigned i = 0; i < 2; i++)
        v[i] = _mm512_min_epi32(_mm512_shuffle_i32x4(v[2 * i], v[2 * i + 1], 0x44),
                                _mm512_shuffle_i32x4(v[2 * i], v[2 * i + 1], 0xEE));
    return _mm512_min_epi32(_mm512_shuffle_i32x4(v[0], v[1], 0x88),
                            _mm512_shuffle_i32x4(v[0], v[1], 0xDD));
}

/* Returns the words of x at eight places, and at sixteen. Single loads take less time
 * than gathers on Zen 4, and where microcode makes gathers safe. */
INLINE __m512i words_8(const uint64_t *x, __m512i at)
{
    uint64_t i[8];

    _mm512_storeu_si512(i, at);
#define TWO(a, b)                                                                      \
    _mm_castps_si128(_mm_loadh_pi(                                                     \
        _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)&x[i[a]])),    \
        (const __m64 *)(const void *)&x[i[b]]))
#define FOUR(a) _mm256_set_m128i(TWO((a) + 2, (a) + 3), TWO(a, (a) + 1))
    return _mm512_inserti64x4(_mm512_castsi256_si512(FOUR(0)), FOUR(4), 1);
#undef FOUR
#undef TWO
}

INLINE __m512i words_16(const int *x, __m512i at)
{
    int32_t i[16];

    _mm512_storeu_si512(i, at);
#define FOUR(a)                                                                        \
    _mm_insert_epi32(_mm_insert_epi32(_mm_insert_epi32(_mm_cvtsi32_si128(x[i[a]]),     \
                                                       x[i[(a) + 1]], 1),              \
                                      x[i[(a) + 2]], 2),                               \
                     x[i[(a) + 3]], 3)
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_set_m128i(FOUR(4), FOUR(0))),
        _mm256_set_m128i(FOUR(12), FOUR(8)), 1);
#undef FOUR
}

/* Returns the number of the highest bit of each word, which is not 0. */
INLINE __m512i highest(__m512i x)
{
    return _mm512_sub_epi32(_mm512_set1_epi32(31), _mm512_lzcnt_epi32(x));
}

INLINE __m512i lowest_bit(__m512i x)
{
    return _mm512_and_si512(x, _mm512_sub_epi32(_mm512_setzero_si512(), x));
}

/* Adds the pairs of eight lanes that the filter does not refuse to the list. */
INLINE void ask_8(const struct tok_model *m, struct asked_list *q, __m256i left,
                  __m256i right, __m256i at, __m256i lane, __mmask8 is)
{
    __m512i key = _mm512_or_si512(_mm512_slli_epi64(_mm512_cvtepu32_epi64(left), 21),
                                  _mm512_cvtepu32_epi64(right));
    __m512i h = _mm512_mullo_epi64(
        key, _mm512_set1_epi64((long long)UINT64_C(0x9E3779B97F4A7C15)));
    __m512i word =
        words_8(m->might, _mm512_srl_epi64(h, _mm_cvtsi32_si128((int)m->might_shift)));
    const __m512i low = _mm512_set1_epi64(63);
    __m512i a =
        _mm512_srlv_epi64(word, _mm512_and_si512(_mm512_srli_epi64(h, 32), low));
    __m512i b =
        _mm512_srlv_epi64(word, _mm512_and_si512(_mm512_srli_epi64(h, 38), low));
    is = _mm512_mask_test_epi64_mask(is, _mm512_and_si512(a, b), _mm512_set1_epi64(1));
    __m256i bucket = _mm256_and_si256(
        _mm512_cvtepi64_epi32(_mm512_srli_epi64(h, 32)),
        _mm256_set1_epi32((int)(m->pair_mask & ~(uint32_t)(BPE_BUCKET - 1))));

    _mm512_storeu_si512(q->key + q->n, _mm512_maskz_compress_epi64(is, key));
    _mm256_storeu_si256((__m256i *)(void *)(q->bucket + q->n),
                        _mm256_maskz_compress_epi32(is, bucket));
    _mm256_storeu_si256((__m256i *)(void *)(q->at + q->n),
                        _mm256_maskz_compress_epi32(is, at));
    _mm256_storeu_si256((__m256i *)(void *)(q->lane + q->n),
                        _mm256_maskz_compress_epi32(is, lane));
    q->n += (unsigned)__builtin_popcount(is);
}

INLINE void ask_16(const struct tok_model *m, struct asked_list *q, __m512i left,
                   __m512i right, __m512i at, size_t lane, __mmask16 is)
{
    const __m256i eight = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);

    ask_8(m, q, _mm512_castsi512_si256(left), _mm512_castsi512_si256(right),
          _mm512_castsi512_si256(at),
          _mm256_add_epi32(_mm256_set1_epi32((int)lane), eight), (__mmask8)is);
    ask_8(m, q, _mm512_extracti64x4_epi64(left, 1), _mm512_extracti64x4_epi64(right, 1),
          _mm512_extracti64x4_epi64(at, 1),
          _mm256_add_epi32(_mm256_set1_epi32((int)lane + 8), eight),
          (__mmask8)(is >> 8));
}

/* Makes one merge in each of up to sixteen lanes, which all have one. */
INLINE void step_16(const struct tok_model *m, uint32_t *lane, struct lanes *l,
                    size_t i, __mmask16 is, struct asked_list *q, unsigned W,
                    unsigned bits)
{
    const __m512i row = _mm512_loadu_si512(l->row + i),
                  best = _mm512_loadu_si512(l->best + i), one = _mm512_set1_epi32(1);
    __m512i alive = _mm512_loadu_si512(l->alive + i),
            makes = _mm512_loadu_si512(l->makes + i);
    __m512i t = _mm512_srli_epi32(best, bits),
            at = _mm512_and_si512(best, _mm512_set1_epi32((int)W - 1));
    __m512i behind =
        _mm512_and_si512(alive, _mm512_sllv_epi32(_mm512_set1_epi32(-2), at));
    __m512i gone = lowest_bit(behind), rest = _mm512_xor_si512(behind, gone);
    __m512i here = _mm512_sllv_epi32(one, at),
            before = _mm512_and_si512(alive, _mm512_sub_epi32(here, one)),
            last_at = highest(before);
    __m512i next = _mm512_add_epi32(row, highest(lowest_bit(rest))),
            last = _mm512_add_epi32(row, last_at);
    int *sym = (int *)lane + LANE_SYM(W);

    at = _mm512_add_epi32(row, at);
    here =
        _mm512_or_si512(_mm512_or_si512(here, gone), _mm512_sllv_epi32(one, last_at));
    _mm512_storeu_si512(l->alive + i, _mm512_xor_si512(alive, gone));
    _mm512_storeu_si512(l->makes + i, _mm512_andnot_si512(here, makes));
    __m512i right = words_16(sym, next), left = words_16(sym, last);
    _mm512_mask_i32scatter_epi32(sym, is, at, t, 4);
    ask_16(m, q, t, right, at, i, is);
    ask_16(m, q, left, t, last, i, is);
}

/* Finds the next merge of n lanes; lanes without one leave. Returns how many stay. */
INLINE size_t choose(uint32_t *lane, struct lanes *l, size_t n, unsigned W)
{
    const __m512i nothing = _mm512_set1_epi32(NOTHING);
    size_t left = 0;

    for (size_t i = 0; i < n; i += WIDE) {
        __m512i v[WIDE];
        __mmask16 is = n - i < WIDE ? (__mmask16)((1u << (n - i)) - 1) : (__mmask16)-1;
        for (unsigned k = 0; k < WIDE; k++) {
            const uint32_t *x = lane + l->row[i + k];
            const uint32_t makes = l->makes[i + k];
            v[k] = _mm512_mask_load_epi32(nothing, (__mmask16)makes, x);
            if (W == 32)
                v[k] = _mm512_mask_min_epi32(v[k], (__mmask16)(makes >> 16), v[k],
                                             _mm512_load_si512(x + 16));
        }
        __m512i best = least_of_each(v), row = _mm512_loadu_si512(l->row + i),
                alive = _mm512_loadu_si512(l->alive + i),
                makes = _mm512_loadu_si512(l->makes + i);
        __mmask16 more = _mm512_mask_cmplt_epi32_mask(is, best, nothing);
        _mm512_mask_i32scatter_epi32(lane + LANE_ALIVE(W), is & (__mmask16)~more, row,
                                     alive, 4);
        _mm512_storeu_si512(l->row + left, _mm512_maskz_compress_epi32(more, row));
        _mm512_storeu_si512(l->alive + left, _mm512_maskz_compress_epi32(more, alive));
        _mm512_storeu_si512(l->makes + left, _mm512_maskz_compress_epi32(more, makes));
        _mm512_storeu_si512(l->best + left, _mm512_maskz_compress_epi32(more, best));
        left += (unsigned)__builtin_popcount(more);
    }
    return left;
}

INLINE void begin_wide(const struct tok_model *m, uint32_t *x, const uint8_t *p,
                       unsigned n, unsigned W, unsigned bits)
{
    uint32_t *sym = x + LANE_SYM(W);

    if (W == 16) {
        const __m128i first = _mm_loadu_si128((const __m128i *)(const void *)p);
        const __m128i second = _mm_srli_si128(first, 1);
        const __m512i at = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                             14, 15, 16),
                      nothing = _mm512_set1_epi32(NOTHING);
        __m256i pair = _mm256_set_m128i(_mm_unpackhi_epi8(first, second),
                                        _mm_unpacklo_epi8(first, second));
        __mmask16 is = (__mmask16)((1u << (n - 1)) - 1);
        __m512i c = words_16((const int *)m->two, _mm512_cvtepu16_epi32(pair));
        c = _mm512_srli_epi32(c, 2);
        is = _mm512_mask_cmplt_epu32_mask(is, c, _mm512_set1_epi32((int)m->n_tok));
        c = _mm512_mask_or_epi32(nothing, is, _mm512_slli_epi32(c, bits), at);
        _mm512_storeu_si512(x + 1, c);
        _mm512_storeu_si512(sym + 1, _mm512_cvtepu8_epi32(first));
    } else {
        begin_long(m, (int32_t *)x, sym, p, n, W, bits);
    }
    x[0] = NOTHING;
    sym[0] = sym[n + 1] = SENTINEL;
    set_alive(x, W, 0);
}

INLINE size_t merge_wide(const struct tok_model *m,
                         struct bpe_pretoken *const *pretoken, size_t n, uint32_t *id,
                         unsigned W, unsigned bits)
{
    _Alignas(64) uint32_t lane[LANE_SPACE];
    struct asked_list q;
    struct lanes l;
    size_t n_id = 0, n_lane = n;

    memset(l.row + n, 0, WIDE * sizeof *l.row);
    memset(l.makes + n, 0, WIDE * sizeof *l.makes);
    for (size_t i = 0; i < n; i++) {
        l.row[i] = (uint32_t)(i * LANE_WORDS(W));
        l.alive[i] = l.makes[i] = (UINT32_C(4) << pretoken[i]->n) - 1;
        begin_wide(m, lane + l.row[i], pretoken[i]->p, pretoken[i]->n, W, bits);
    }
    for (q.n = 0; (n_lane = choose(lane, &l, n_lane, W));) {
        q.n = 0;
        memset(l.row + n_lane, 0, WIDE * sizeof *l.row);
        for (size_t i = 0; i < n_lane; i += WIDE) {
            size_t from = q.n;
            step_16(m, lane, &l, i,
                    n_lane - i < WIDE ? (__mmask16)((1u << (n_lane - i)) - 1)
                                      : (__mmask16)-1,
                    &q, W, bits);
            for (; from < q.n; from++)
                __builtin_prefetch(&m->pair[q.bucket[from]]);
        }
        for (size_t i = 0; i < q.n; i++) {
            const uint32_t t = answer(m, q.key[i], q.bucket[i] | 1),
                           place = q.at[i] & (W - 1);
            lane[q.at[i]] = t << bits | place;
            l.makes[q.lane[i]] |= (uint32_t)(t != 0) << place;
        }
    }
    for (size_t i = 0; i < n; i++) {
        unsigned k = finish(m, lane + i * LANE_WORDS(W), pretoken[i]->n, id + n_id, W);
        pretoken[i]->at = n_id;
        pretoken[i]->n_id = k;
        n_id += k;
    }
    return n_id;
}

static size_t merge_16(const struct tok_model *m, struct bpe_pretoken *const *pretoken,
                       size_t n, uint32_t *id)
{
    return merge_wide(m, pretoken, n, id, 16, 4);
}

static size_t merge_32(const struct tok_model *m, struct bpe_pretoken *const *pretoken,
                       size_t n, uint32_t *id)
{
    return merge_wide(m, pretoken, n, id, 32, 5);
}

const struct bpe_merge_table bpe_merge_avx512 = BPE_MERGE_TABLE("avx512");
