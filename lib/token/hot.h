/* hot.h - look-up of many pretokens at a time in the hot table of words.h.
 *
 * A batch of pretokens is looked up in groups: first the keys of a group, whose slots are
 * prefetched, then the slots. Most pretokens are one id, which the slot has. All other
 * pretokens go to lists, in the order of the text; no branch depends on a single pretoken.
 *
 * There is a finder for each SIMD level that gains by it; all give the same results
 * (tests/unit/test_words.c).
 *
 * Thread safety: a struct hot_batch belongs to one thread.
 */
#ifndef SLU_TOK_HOT_H
#define SLU_TOK_HOT_H

#include "lib/token/pretokens.h"
#include "lib/token/words.h"

/* Pretokens of a batch. Many, so that enough of them are new for merging to have full
 * registers (bpe_merge.h). */
#define HOT_BATCH 4096
#define HOT_MOST  (HOT_BATCH + PRETOKENS_SLACK)
#define HOT_GROUP 256 /* so many that a slot is near when it is read */
#define HOT_SLACK 16  /* places after a list that may be written */

struct hot_batch {
    /* Pretoken i begins at byte at[i] and ends at at[i + 1]; at[0] is 0. */
    uint32_t at[HOT_MOST + 1];
    /* The id of a pretoken that is one id. For other pretokens that were found: the number of
     * ids less 1, or WORD_MANY, from bit HOT_COUNT_SHIFT on. */
    uint32_t id[HOT_MOST + HOT_SLACK];
    /* slow: pretokens that are not one id; place: by word_hot_place. miss: those
     * of them that are not in the table. skipped: those of a length that is skipped. */
    uint32_t slow[HOT_MOST + HOT_SLACK], place[HOT_MOST + HOT_SLACK];
    uint32_t miss[HOT_MOST + HOT_SLACK], skipped[HOT_MOST + HOT_SLACK];
    size_t n_slow, n_miss, n_skipped;
};
#define HOT_COUNT_SHIFT 28

#define HOT_VALUE UINT32_C(0xF0FFFFFF) /* an id and its count */

/* Looks up pretokens from .. to - 1, of each of which 16 bytes can be read. May leave out
 * the last few: returns the first one that was not looked up. skip: a bit for each
 * length that is not looked up. */
typedef size_t hot_find_fn(struct hot_batch *b, const struct words *w, const uint8_t *p,
                           size_t from, size_t to, uint32_t skip);
hot_find_fn hot_find_portable, hot_find_avx2, hot_find_avx512;

/* Returns the finder of a level that pretokens_level() names. */
hot_find_fn *hot_find_of_level(const char *level);

/* Looks up the k pretokens of p, of which n bytes can be read. */
void hot_look(struct hot_batch *b, const struct words *w, hot_find_fn *find,
              const uint8_t *p, size_t n, size_t k);

/* ---- shared by the files of the levels ---- */

#if defined(__AVX2__)
#include <immintrin.h>

static inline __m128i hot_load(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

/* By how many bits hashes are shifted to get word_hot_place, before its lowest four bits
 * are cleared. */
static inline __m128i hot_place_shift(const struct words *w)
{
    return _mm_cvtsi32_si128((int)(64 - w->hot_bits - 4));
}

/* Loads 16 bytes at base + i, and 16 at base + k. */
static inline __m256i hot_load_two(const uint8_t *base, uint32_t i, uint32_t k)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(hot_load(base + i)),
                                   hot_load(base + k), 1);
}
#endif

#endif
