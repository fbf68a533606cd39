/* substring_scan.h - cuts the windows of a text into blocks that equal texts share.
 *
 * A window is n_tok neighbouring ids. Its *anchor* is the k-gram of least hash in it,
 * the leftmost of several (winnowing: Schleimer, Wilkerson, Aiken, SIGMOD 2003;
 * minimizers: Roberts et al. 2004). A *block* is a maximal run of neighbouring windows
 * with one anchor, its *span* the ids that these windows cover: count + n_tok - 1 of
 * them. With w = n_tok - k + 1 k-grams in a window, a text of random order has
 * 2 / (w + 1) blocks an id; a run of one id has one block an id.
 *
 * A window's ids alone decide which of its k-grams is the anchor, so
 *  - equal windows have anchors at the same offset and with the same ids;
 *  - equal spans have the same windows, the same anchor in it, and are one block each.
 * A block's key is made so that blocks whose anchors differ in ids differ in the top
 * SLU_ANCHOR_BITS (but for chance), and blocks whose spans differ differ in the key:
 *  hi = the top SLU_ANCHOR_BITS of XXH3-64 of the anchor, the rest of XXH3-128 of the
 *  span, lo = the other half of it.
 *
 * All loops over ids are steps over arrays of a few thousand words in the first-level
 * cache (hashes of 1, 2, 4, … ids, least of 1, 2, 4, … hashes), so that compilers
 * vectorise them; log2(k) + log2(w) + 4 such steps an id.
 *
 * Thread safety: a slu_scan belongs to one thread; the functions are otherwise pure.
 */
#ifndef SLU_SUBSTRING_SCAN_H
#define SLU_SUBSTRING_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define SLU_PASSAGE_MIN_TOK 2
#define SLU_PASSAGE_MAX_TOK 4096
#define SLU_ANCHOR_BITS     44

/* A block, or a window: `val` is the place of its first window << 16 | its windows. */
struct slu_keyed {
    uint64_t hi, lo, val;
};
#define SLU_PLACE_BITS 48

struct slu_scan {
    unsigned n_tok, k, w;
    unsigned place_bits; /* low bits of a hash that hold its place in the piece */
    size_t max_start;    /* windows that are looked at in one go */
    uint32_t *mem, *hash, *begin; /* mem owned; the others in it */
};

/* n_tok is from SLU_PASSAGE_MIN_TOK to SLU_PASSAGE_MAX_TOK. */
SLU_MUST_USE int slu_scan_init(struct slu_scan *s, unsigned n_tok, struct slu_err *err);
void slu_scan_release(struct slu_scan *s);

/* Appends to `out` a struct slu_keyed for each block of tok[0, len_tok), ids of
 * tok_bytes each; `place` is that of the first id. Nothing if len_tok < n_tok.
 * Neighbouring blocks with one key that begin at least n_tok behind the first of them
 * come as one record, with the sum of their windows. */
SLU_MUST_USE int slu_scan_blocks(struct slu_scan *s, const void *tok, size_t len_tok,
                                 unsigned tok_bytes, uint64_t place,
                                 struct slu_buf *out, struct slu_err *err);

/* Chooses a SIMD level by name, for tests: "avx512", "avx2", "portable"; NULL: the best
 * there is. False where the processor has none such. */
bool slu_scan_simd(const char *level);

/* The levels: begin[] = the windows among the first n_start whose anchor is not that of
 * the window before (0 is always one); hash[begin[i]] holds the anchor's place in its
 * low place_bits. tok has n_start + n_tok - 1 ids of tok_bytes, hash as many words. */
typedef size_t slu_scan_fn(const struct slu_scan *s, const void *tok,
                           unsigned tok_bytes, size_t n_start, uint32_t *hash,
                           uint32_t *begin);
slu_scan_fn slu_scan_portable, slu_scan_avx2, slu_scan_avx512;

#endif
