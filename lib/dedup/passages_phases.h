/* passages_phases.h - repeated passages in phases, with plain files between: for job
 * arrays. What passages.h does, over N parts of a stream and R ranges of keys.
 *
 *   sign I/N      part I of the stream            -> WORK/sign.I-of-N: its blocks
 *   merge J/R     blocks of range J, of all parts -> WORK/merge.J-of-R: what of each
 *                                          part is repeated, and what is asked about
 *   ask I/N       part I once more, questions of all ranges -> WORK/ask.I-of-N: the
 *                                          windows asked about
 *   match J/R     windows of range J, of all parts -> WORK/match.J-of-R: those of each
 *                                          part that are repeated
 *   filter I/N    part I once more, repeats of all ranges -> the part without passages
 *
 * The filtered parts, one after another, are what one pass over the parts' streams, one
 * after another, makes; because
 *  - places add up: a sequence takes as many wherever it is, so a place in all parts is
 *    that in its own part plus the places of the parts before it (in the sign files).
 *    Blocks and windows lie in a sequence, so each is found in one part whole;
 *  - what of a group of blocks, or of equal windows, is repeated follows from that
 * group alone in the order of places (passages_match.h). Ranges are of the bits that
 * groups are made of, so all of a group is in one range and one job; records come to it
 *    part by part, in each by place, so in the order of places;
 *  - one pass asks about the same blocks, and so hashes the same windows;
 *  - passages are the maximal stretches that repeated windows cover, whoever found them
 *    and in whatever order. None crosses a sequence, so none a part's border.
 * No phase sees all keys or all tokens; sign, ask and filter are a pass over one part
 * each, merge and match one over 1/R of the records.
 *
 * Bytes, for a token, with n = 50 and 1/18 block a token, a = blocks asked about and
 * r = repeated ones (0.05 to 0.15 of all, figures in tests/bench/NOTES.md): sign 24/18
 * = 1.3 written, which merge reads, and writes 8 (a + r) / 18 = 0.1, which ask and
 * filter read; ask writes 24 a = 1.2 to 3.6, which match reads, and writes 8 for each
 * stretch of repeated windows. The stream itself is read three times and written once.
 *
 * Sections, in u64; a place is in its own part; a "run" is place << 16 | windows: the
 * windows from that place on.
 *   sign      J: blocks of range J by place: hi, lo (passages_scan.h), run.
 *   merge     I: questions about part I, runs by place; N+I: repeats in part I, runs by
 *             place; what lies between repeats that touch or overlap is in them.
 *   ask       J: windows of range J by place: hi, lo, run of one.
 *   match     I: repeats in part I, as in merge.
 * Counts: those of phases.h in sign and ask; 4 ranges; 5 places (sign, ask), repeated
 * blocks or windows (merge, match); 6 blocks (sign), questions (merge), windows (ask);
 * 7 hash of the special ids (sign, ask). match: 6 and 7: what the ask files were made
 * from. So filter, which opens its part's ask file and those of merge and match, sees
 * whether they belong together.
 *
 * A phase whose file is there, whole and made from the same things is skipped; what is
 * there and differs is SLU_E_MISMATCH that names the difference, unless `force`. Files
 * do not depend on budget and threads.
 *
 * Thread safety: one phase at a time on a cfg; different processes at will.
 */
#ifndef SLU_PASSAGES_PHASES_H
#define SLU_PASSAGES_PHASES_H

#include <stdint.h>

#include "lib/stream/batch.h"
#include "lib/dedup/passages.h"
#include "lib/dedup/phases.h"
#include "lib/err.h"
#include "lib/stream/stream.h"

/* Of cfg n_passage_tok is set, the length of a window, and what is not of near and
 * exact duplicates. */

struct slu_passages_phase_result {
    bool skipped; /* was there already */
    uint64_t sequences, tokens;
    uint64_t blocks, repeated_blocks, asked_blocks, asked_windows, repeated_windows;
    uint64_t spilled_byte;
};

/* Read the whole of r. */
SLU_MUST_USE int slu_passages_phase_sign(const struct slu_phase_cfg *cfg,
                                         struct slu_reader *r, unsigned n_slots,
                                         struct slu_sum *total,
                                         struct slu_passages_phase_result *result,
                                         struct slu_err *err);
SLU_MUST_USE int slu_passages_phase_ask(const struct slu_phase_cfg *cfg,
                                        struct slu_reader *r, unsigned n_slots,
                                        struct slu_sum *total,
                                        struct slu_passages_phase_result *result,
                                        struct slu_err *err);
SLU_MUST_USE int slu_passages_phase_merge(const struct slu_phase_cfg *cfg,
                                          struct slu_passages_phase_result *result,
                                          struct slu_err *err);
SLU_MUST_USE int slu_passages_phase_match(const struct slu_phase_cfg *cfg,
                                          struct slu_passages_phase_result *result,
                                          struct slu_err *err);

struct slu_passages_filter;
/* h: the stream's header. Each sequence of the stream, in order, comes to emit, cut or
 * as it was, those of which nothing stays left out; emit may edit the batch. */
SLU_MUST_USE int slu_passages_filter_open(
    struct slu_passages_filter **f, const struct slu_phase_cfg *cfg,
    const struct slu_header *h, uint64_t min_keep_tok,
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err), void *ctx,
    struct slu_err *err);
SLU_MUST_USE int slu_passages_filter_batch(struct slu_passages_filter *f,
                                           struct slu_batch *b, struct slu_err *err);
/* As slu_phase_filter_end. The result is borrowed. */
SLU_MUST_USE int slu_passages_filter_end(struct slu_passages_filter *f,
                                         struct slu_reader *r,
                                         const struct slu_sum *total,
                                         const struct slu_passages_result **result,
                                         struct slu_err *err);
/* NULL is legal. */
void slu_passages_filter_free(struct slu_passages_filter *f);

/* The special ids of a stream. */
void slu_passages_specials(struct slu_specials *s, const struct slu_header *h);

#endif
