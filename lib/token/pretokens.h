/* pretokens.h - the known splits, 64 bytes at a time.
 *
 * A finder does what a scanner of scan.c does, for many pretokens per call: it classifies
 * a block of 64 bytes that begins where a pretoken begins, and finds the starts of the
 * pretokens in it by shifts and additions of 64-bit masks (pretokens_find.h). From the start
 * of a pretoken on, a split does not depend on the text before. So the next block begins
 * at the last start that is certain, and nothing is carried from block to block. Cases
 * that the masks cannot decide (numbers and spaces outside ASCII, case beside scripts
 * without case, pretokens longer than a block) are left to the scanner, one pretoken at a
 * time.
 *
 * There is a table of finders for each SIMD level; all give the same pretokens
 * (tests/unit/test_pretokens.c). The level is the best that the processor has, or the one
 * that slu_tokenizer_simd() named.
 *
 * Thread safety: all functions may be called from any thread.
 */
#ifndef SLU_TOK_PRETOKENS_H
#define SLU_TOK_PRETOKENS_H

#include "lib/token/pre.h"

/* Finds the ends of the first pretokens of p: about `max` of them, and at most
 * PRETOKENS_SLACK more. p has n >= 1 bytes of valid UTF-8, begins where a pretoken begins and
 * ends with the text. Returns their number, or 0 if the first pretoken ends after 2 GiB.
 * scan: the split's scanner. Reads no byte after n. */
typedef size_t pretokens_fn(const uint8_t *p, size_t n, uint32_t *end, size_t max,
                            pre_scan_fn *scan);
#define PRETOKENS_SLACK 96

/* Returns the finder that cuts as `scan` does, or NULL. */
pretokens_fn *pretokens_by_scan(pre_scan_fn *scan);

/* Returns the level in use, also for other functions with levels. */
const char *pretokens_level(void);

/* Returns the finder of one level, for tests; NULL if there is none or the processor
 * does not have the level. */
pretokens_fn *pretokens_of_level(const char *level, pre_scan_fn *scan);

/* ---- between the files ---- */

#define PRETOKENS_N 10 /* splits */

struct pretokens_table {
    const char *level;
    pretokens_fn *find[PRETOKENS_N];
};
extern const struct pretokens_table pretokens_portable, pretokens_avx2,
    pretokens_avx512, pretokens_neon;

/* Classes of characters; pretokens_class has them by enum uni_category. */
enum pretokens_class {
    PC_SYMBOL,
    PC_UPPER,
    PC_LOWER,
    PC_CASELESS,
    PC_MARK,
    PC_NUMBER,
    PC_WHITE,
    PC_CONTROL, /* category C, which is neither P nor S */
    PC_HAN,
    PC_N
};
extern const uint8_t pretokens_class[];

#endif
