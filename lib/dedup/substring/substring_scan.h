/* substring_scan.h - cuts the windows of a text into blocks that equal texts share.
 *
 * A window is n_tok neighbouring ids. Its *anchor* is the k-gram of least hash in it,
 * the leftmost of several (winnowing: Schleimer, Wilkerson, Aiken, SIGMOD 2003;
 * minimizers: Roberts et al. 2004). A *block* is a maximal run of neighbouring windows
 * with one anchor, its *span* the ids that these windows cover: count + n_tok - 1 of
 * them. With w = n_tok - k + 1 k-grams in a window, a text of random order has
 * 2 / (w + 1) blocks an id; a run of one id has one block an id.
 *
 * The anchor depends only on the ids of the window, so
 *  - equal windows have anchors at the same offset and with the same ids;
 *  - equal spans have the same windows and the same anchor, and each is one block.
 * The key of a block is
 *  hi = the top SLU_ANCHOR_BITS of XXH3-64 of the anchor, then bits of XXH3-128 of the
 *       span
 *  lo = the other half of XXH3-128 of the span
 * So, except by chance, blocks with different anchors differ in the top SLU_ANCHOR_BITS,
 * and blocks with different spans differ in the key.
 *
 * All loops over ids are steps over arrays of a few thousand words in the first-level
 * cache (hashes of 1, 2, 4, … ids, minimum of 1, 2, 4, … hashes), so that compilers
 * vectorise them; log2(k) + log2(w) + 4 such steps for each id.
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

/* A block, or a window: `val` is the place of its first window << 16 | number of its
 * windows. */
struct slu_keyed {
    uint64_t hi, lo, val;
};
#define SLU_PLACE_BITS 48

struct slu_scan {
    unsigned n_tok, k, w;
    unsigned place_bits; /* low bits of a hash that hold its position in the piece */
    size_t max_start;    /* windows that are scanned at once */
    uint32_t *mem, *hash, *begin; /* mem is owned; the other pointers point into it */
    struct slu_buf plain;         /* for the caller: slu_batch_ids */
};

/* n_tok is from SLU_PASSAGE_MIN_TOK to SLU_PASSAGE_MAX_TOK. */
SLU_MUST_USE int slu_scan_init(struct slu_scan *s, unsigned n_tok, struct slu_err *err);
void slu_scan_release(struct slu_scan *s);

/* Appends to `out` a struct slu_keyed for each block of tok[0, len_tok), ids of
 * tok_bytes each; `place` is the place of the first id. Appends nothing if len_tok <
 * n_tok. Neighbouring blocks with one key that begin at least n_tok ids after the first
 * of them become one record with the sum of their windows. */
SLU_MUST_USE int slu_scan_blocks(struct slu_scan *s, const void *tok, size_t len_tok,
                                 unsigned tok_bytes, uint64_t place,
                                 struct slu_buf *out, struct slu_err *err);

/* Chooses a SIMD level by name, for tests: "avx512", "avx2", "portable"; NULL: the
 * best. False if the processor lacks the level. */
bool slu_scan_simd(const char *level);

/* A level. begin[] lists the windows among the first n_start whose anchor is not that
 * of the window before (0 always is one); hash[begin[i]] has the anchor's position in
 * its low place_bits. tok has n_start + n_tok - 1 ids of tok_bytes, and hash as many
 * words. */
typedef size_t slu_scan_fn(const struct slu_scan *s, const void *tok,
                           unsigned tok_bytes, size_t n_start, uint32_t *hash,
                           uint32_t *begin);
slu_scan_fn slu_scan_portable, slu_scan_avx2, slu_scan_avx512;

#endif
