/* json_flat_avx512.c - json_flat.h, 64 bytes of a string at a time. */
#include <immintrin.h>

#include "lib/base/json_scan.h"

#define BLOCK     64
#define JSON_FLAT slu_json_flat_avx512

struct block {
    __m512i v;
};

static inline struct block load(const uint8_t *p)
{
    return (struct block){_mm512_loadu_si512(p)};
}

static inline uint64_t is(struct block x, char c)
{
    return _mm512_cmpeq_epi8_mask(x.v, _mm512_set1_epi8(c));
}

static inline uint64_t is_control(struct block x)
{
    return _mm512_cmplt_epu8_mask(x.v, _mm512_set1_epi8(32));
}

static inline bool unescape(struct block x, uint64_t begins, unsigned n, uint8_t **out)
{
    const __m512i low = _mm512_loadu_si512(slu_json_escape),
                  high = _mm512_loadu_si512(slu_json_escape + 64),
                  what = _mm512_permutex2var_epi8(low, x.v, high);
    const uint64_t escaped = begins << 1, keep = _bzhi_u64(~begins, n),
                   bad = _mm512_testn_epi8_mask(what, what) | _mm512_movepi8_mask(x.v);

    x.v = _mm512_mask_mov_epi8(x.v, escaped, what);
    _mm512_storeu_si512(*out, _mm512_maskz_compress_epi8(keep, x.v));
    *out += __builtin_popcountll(keep);
    return !(bad & escaped);
}

#include "lib/base/json_flat_read.h"
