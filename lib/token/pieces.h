/* pieces.h - the known splits, 64 bytes at a time.
 *
 * A finder does what a scanner of scan.c does, for many pieces a call: it classifies a
 * block of 64 bytes that begins where a piece begins, and finds the starts of the
 * pieces in it by shifts and additions of 64-bit masks (pieces_find.h). What a split
 * does from a piece's start on depends on nothing before it, so the next block simply
 * begins at the last start that is certain, and nothing is carried from block to block.
 * What the masks cannot decide (numbers and spaces outside ASCII, case beside scripts
 * without case, pieces longer than a block) is left to the scanner, one piece at a
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

/* The ends of the first pieces of p, n >= 1 bytes of valid UTF-8 that begin where a
 * piece begins and go on to the end of the text: about `max` of them, and at most
 * PIECES_SLACK more. Returns how many, or 0 where the first piece ends behind 2 GiB.
 * `scan` is the split's scanner. Reads no byte behind n. */
typedef size_t pieces_fn(const uint8_t *p, size_t n, uint32_t *end, size_t max,
                         pre_scan_fn *scan);
#define PIECES_SLACK 96

/* The finder that cuts as `scan` does, or NULL. */
pieces_fn *pieces_by_scan(pre_scan_fn *scan);

/* The level in use, for what else has levels. */
const char *pieces_level(void);

/* The finder of one level, for tests; NULL where there is none or the processor cannot.
 */
pieces_fn *pieces_of_level(const char *level, pre_scan_fn *scan);

/* ---- between the files ---- */

#define PIECES_N 10 /* splits */

struct pieces_table {
    const char *level;
    pieces_fn *find[PIECES_N];
};
extern const struct pieces_table pieces_portable, pieces_avx2, pieces_avx512,
    pieces_neon;

/* By enum uni_category. */
enum pieces_class {
    PC_SYMBOL,
    PC_UPPER,
    PC_LOWER,
    PC_CASELESS,
    PC_MARK,
    PC_NUMBER,
    PC_WHITE,
    PC_CONTROL, /* no P and no S */
    PC_HAN,
    PC_N
};
extern const uint8_t pieces_class[];

#endif
