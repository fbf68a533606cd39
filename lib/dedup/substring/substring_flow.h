/* substring_flow.h - repeated passages as a flow (lib/flow/flow.h): in one process
 * (substring.h, slu_substring_run), or in parts, each in a process of its own, on any
 * machine that sees the same work folder.
 *
 *   sign    part I of N reads its stream: its blocks
 *   group   range J of R of the blocks, of all parts: which are repeated, and which
 *           must be asked about
 *   ask     part I reads its stream again: windows of the blocks asked about
 *   match   range J of the windows, of all parts: which are repeated
 *   filter  part I reads its stream once more, and cuts what the two found
 *
 * The filtered parts, one after another, are what one pass over all of them leaves,
 * because
 *  - places add up: a sequence takes as many wherever it is. Blocks and windows lie in
 * a sequence, so each is in one part;
 *  - what of a group of blocks, or of equal windows, is repeated follows from that
 * group alone in the order of places (substring_match.h). All of a group is in one
 * range;
 *  - the same blocks are asked about, and so the same windows hashed;
 *  - passages are the maximal stretches that repeated windows cover, whoever found them
 *    and in whatever order. None crosses a sequence.
 * No job sees all keys or all tokens; sign, ask and filter are a pass over one part
 * each, group and match one over 1/R of the rows.
 *
 * Bytes for a token, with n = 50 and 1/18 block a token, a = blocks asked about and
 * r = repeated ones (0.05 to 0.15 of all, figures in tests/bench/NOTES.md): sign leaves
 * 24/18 = 1.3, group 8 (a + r) / 18 = 0.1, ask 24 a = 1.2 to 3.6, match 8 for each
 * stretch of repeated windows.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_SUBSTRING_FLOW_H
#define SLU_SUBSTRING_FLOW_H

#include "lib/dedup/substring/substring.h"
#include "lib/dedup/substring/substring_walk.h"
#include "lib/flow/flow.h"

extern const struct slu_flow_spec slu_substring_flow_spec;

/* The flow's ctx. */
struct slu_substring_flow {
    struct slu_substring_cfg cfg; /* budgets and slots apart: they are the flow's */
    /* Filter, in parts: opens the stream that is written, with cfg.ctx; the caller ends
     * it. */
    int (*open)(void *ctx, struct slu_err *err);

    struct slu_substring_result result;
    uint64_t asked_windows, repeated_windows;

    struct slu_specials special; /* private, of the stream, as its width is */
    unsigned tok_bytes;
    struct slu_ranges *ranges; /* private; NULL: first occurrences are not wanted */
};

/* The flow's begin. */
SLU_MUST_USE int slu_substring_begin(void *q, const struct slu_header *h,
                                     struct slu_names *names, struct slu_err *err);

#endif
