/* pieces.h - the known splits, 64 bytes at a time.
 *
 * A finder does what a scanner of scan.c does, for many pieces per call: it classifies
 * a block of 64 bytes that begins where a piece begins, and finds the starts of the
 * pieces in it by shifts and additions of 64-bit masks (pieces_find.h). From the start
 * of a piece on, a split does not depend on the text before. So the next block begins
 * at the last start that is certain, and nothing is carried from block to block. Cases
 * that the masks cannot decide (numbers and spaces outside ASCII, case beside scripts
 * without case, pieces longer than a block) are left to the scanner, one piece at a
 * time.
 *
 * There is a table of finders for each SIMD level; all give the same pieces
 * (tests/unit/test_pieces.c). The level is the best that the processor has, or the one
 * that slu_tokenizer_simd() named.
 *
 * Thread safety: all functions may be called from any thread.
 */
#ifndef SLU_TOK_PIECES_H
#define SLU_TOK_PIECES_H

#include "lib/token/pre.h"

/* Finds the ends of the first pieces of p: about `max` of them, and at most
 * PIECES_SLACK more. p has n >= 1 bytes of valid UTF-8, begins where a piece begins and
 * ends with the text. Returns their number, or 0 if the first piece ends after 2 GiB.
 * scan: the split's scanner. Reads no byte after n. */
typedef size_t pieces_fn(const uint8_t *p, size_t n, uint32_t *end, size_t max,
                         pre_scan_fn *scan);
#define PIECES_SLACK 96

/* Returns the finder that cuts as `scan` does, or NULL. */
pieces_fn *pieces_by_scan(pre_scan_fn *scan);

/* Returns the level in use, also for other functions with levels. */
const char *pieces_level(void);

/* Returns the finder of one level, for tests; NULL if there is none or the processor
 * does not have the level. */
pieces_fn *pieces_of_level(const char *level, pre_scan_fn *scan);

/* ---- between the files ---- */

#define PIECES_N 10 /* splits */

struct pieces_table {
    const char *level;
    pieces_fn *find[PIECES_N];
};
extern const struct pieces_table pieces_portable, pieces_avx2, pieces_avx512,
    pieces_neon;

/* Classes of characters; pieces_class has them by enum uni_category. */
enum pieces_class {
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
extern const uint8_t pieces_class[];

#endif
