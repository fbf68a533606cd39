/* bpe_merge_avx512.c - merging short pieces, see bpe_merge.h: sixteen lanes per step.
 *
 * A lane is a row of memory: the toks that its pairs make, and those that begin at its
 * places. Values that a step needs of many lanes are in arrays of their own, one word
 * per lane, so that sixteen lanes are one register; finished lanes leave these arrays.
 * The filter refuses most new pairs. The others are listed and prefetched, and looked
 * up one by one when the next round begins. */
#define BPE_MERGE_WIDE 1
#include "lib/token/bpe_merge.h"

#define WIDE 16 /* lanes per step */

/* Pairs that the filter does not refuse, and the places of the toks they make. */
struct asked_list {
    uint64_t key[2 * BPE_LANES + WIDE];
    uint32_t bucket[2 * BPE_LANES + WIDE], at[2 * BPE_LANES + WIDE];
    size_t n;
};

/* Unfinished lanes: where their rows begin, their places in use, and the next merge. */
struct lanes {
    uint32_t row[BPE_LANES + WIDE], alive[BPE_LANES + WIDE];
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
                  __m256i right, __m256i at, __mmask8 is)
{
    __m512i key = _mm512_or_si512(_mm512_slli_epi64(_mm512_cvtepu32_epi64(left), 21),
                                  _mm512_cvtepu32_epi64(right));
    __m512i h = _mm512_mullo_epi64(
        key, _mm512_set1_epi64((long long)UINT64_C(0x9E3779B97F4A7C15)));
    __m512i word = _mm512_i64gather_epi64(
        _mm512_srl_epi64(h, _mm_cvtsi32_si128((int)m->might_shift)), m->might, 8);
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
    q->n += (unsigned)__builtin_popcount(is);
}

INLINE void ask_16(const struct tok_model *m, struct asked_list *q, __m512i left,
                   __m512i right, __m512i at, __mmask16 is)
{
    ask_8(m, q, _mm512_castsi512_si256(left), _mm512_castsi512_si256(right),
          _mm512_castsi512_si256(at), (__mmask8)is);
    ask_8(m, q, _mm512_extracti64x4_epi64(left, 1), _mm512_extracti64x4_epi64(right, 1),
          _mm512_extracti64x4_epi64(at, 1), (__mmask8)(is >> 8));
}

/* Makes one merge in each of up to sixteen lanes, which all have one. */
INLINE void step_16(const struct tok_model *m, uint32_t *lane, struct lanes *l,
                    size_t i, __mmask16 is, struct asked_list *q, unsigned W,
                    unsigned bits)
{
    const __m512i row = _mm512_loadu_si512(l->row + i),
                  best = _mm512_loadu_si512(l->best + i), one = _mm512_set1_epi32(1),
                  nothing = _mm512_set1_epi32(NOTHING);
    __m512i alive = _mm512_loadu_si512(l->alive + i);
    __m512i t = _mm512_srli_epi32(best, bits),
            at = _mm512_and_si512(best, _mm512_set1_epi32((int)W - 1));
    __m512i behind =
        _mm512_and_si512(alive, _mm512_sllv_epi32(_mm512_set1_epi32(-2), at));
    __m512i gone = lowest_bit(behind), rest = _mm512_xor_si512(behind, gone);
    __m512i before =
        _mm512_and_si512(alive, _mm512_sub_epi32(_mm512_sllv_epi32(one, at), one));
    __m512i next = _mm512_add_epi32(row, highest(lowest_bit(rest))),
            last = _mm512_add_epi32(row, highest(before)),
            gone_at = _mm512_add_epi32(row, highest(gone));
    int *sym = (int *)lane + LANE_SYM(W);

    at = _mm512_add_epi32(row, at);
    _mm512_storeu_si512(l->alive + i, _mm512_xor_si512(alive, gone));
    __m512i right = _mm512_mask_i32gather_epi32(t, is, next, sym, 4),
            left = _mm512_mask_i32gather_epi32(t, is, last, sym, 4);
    _mm512_mask_i32scatter_epi32(sym, is, at, t, 4);
    _mm512_mask_i32scatter_epi32(lane, is, gone_at, nothing, 4);
    _mm512_mask_i32scatter_epi32(lane, is, at, nothing, 4);
    _mm512_mask_i32scatter_epi32(lane, is, last, nothing, 4);
    ask_16(m, q, t, right, at, is);
    ask_16(m, q, left, t, last, is);
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
            v[k] = _mm512_load_si512(x);
            if (W == 32)
                v[k] = _mm512_min_epi32(v[k], _mm512_load_si512(x + 16));
        }
        __m512i best = least_of_each(v), row = _mm512_loadu_si512(l->row + i),
                alive = _mm512_loadu_si512(l->alive + i);
        __mmask16 more = _mm512_mask_cmplt_epi32_mask(is, best, nothing);
        _mm512_mask_i32scatter_epi32(lane + LANE_ALIVE(W), is & (__mmask16)~more, row,
                                     alive, 4);
        _mm512_storeu_si512(l->row + left, _mm512_maskz_compress_epi32(more, row));
        _mm512_storeu_si512(l->alive + left, _mm512_maskz_compress_epi32(more, alive));
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
        __m512i c = _mm512_mask_i32gather_epi32(nothing, is,
                                                _mm512_cvtepu16_epi32(pair), m->two, 4);
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

INLINE size_t merge_wide(const struct tok_model *m, struct bpe_piece *const *piece,
                         size_t n, uint32_t *id, unsigned W, unsigned bits)
{
    _Alignas(64) uint32_t lane[LANE_SPACE];
    struct asked_list q;
    struct lanes l;
    size_t n_id = 0, n_lane = n;

    memset(l.row + n, 0, WIDE * sizeof *l.row);
    for (size_t i = 0; i < n; i++) {
        l.row[i] = (uint32_t)(i * LANE_WORDS(W));
        l.alive[i] = (UINT32_C(4) << piece[i]->n) - 1;
        begin_wide(m, lane + l.row[i], piece[i]->p, piece[i]->n, W, bits);
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
        for (size_t i = 0; i < q.n; i++)
            lane[q.at[i]] = (uint32_t)made_at(answer(m, q.key[i], q.bucket[i] | 1),
                                              q.at[i] & (W - 1), bits);
    }
    for (size_t i = 0; i < n; i++) {
        unsigned k = finish(m, lane + i * LANE_WORDS(W), piece[i]->n, id + n_id, W);
        piece[i]->at = n_id;
        piece[i]->n_id = k;
        n_id += k;
    }
    return n_id;
}

static size_t merge_16(const struct tok_model *m, struct bpe_piece *const *piece,
                       size_t n, uint32_t *id)
{
    return merge_wide(m, piece, n, id, 16, 4);
}

static size_t merge_32(const struct tok_model *m, struct bpe_piece *const *piece,
                       size_t n, uint32_t *id)
{
    return merge_wide(m, piece, n, id, 32, 5);
}

const struct bpe_merge_table bpe_merge_avx512 = BPE_MERGE_TABLE("avx512");
