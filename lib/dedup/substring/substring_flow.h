/* substring_flow.h - repeated passages as a flow (lib/flow/flow.h): in one process
 * (substring.h, slu_substring_run), or in parts, each in a process of its own, on any
 * machine that sees the same work folder.
 *
 *   sign    part I of N reads its stream, and writes its blocks
 *   group   range J of R of the blocks, of all parts: finds blocks that are repeated,
 *           and blocks that must be asked about
 *   ask     part I reads its stream again, and writes the windows of the blocks asked
 *           about
 *   match   range J of the windows, of all parts: finds windows that are repeated
 *   filter  part I reads its stream once more, and cuts the blocks and windows that
 *           group and match found
 *
 * The filtered parts, one after another, equal the result of one pass over all parts,
 * because
 *  - a sequence takes the same number of places in any part, so places of parts add up.
 *    Blocks and windows lie in one sequence, so each is in one part;
 *  - which blocks of a group, or which equal windows, are repeated follows from this
 *    group alone, in the order of places (substring_match.h). A whole group is in one
 *    range;
 *  - the same blocks are asked about, and so the same windows are hashed;
 *  - passages are the maximal stretches that repeated windows cover, whichever stage
 *    found the windows, in any order. No passage crosses a sequence.
 * No job sees all keys or all tokens: sign, ask and filter are each a pass over one
 * part, group and match a pass over 1/R of the rows.
 *
 * Bytes for each token, with n = 50 and 1/18 block a token, a = blocks asked about and
 * r = repeated blocks (0.05 to 0.15 of all; tests/bench/NOTES-dedup.md has figures):
 * sign writes 24/18 = 1.3, group 8 (a + r) / 18 = 0.1, ask 24 a = 1.2 to 3.6, match 8
 * for each stretch of repeated windows.
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
    struct slu_substring_cfg cfg; /* without the budgets and slots, which are the
                                     flow's */
    /* Filter, in parts: opens the output stream, with cfg.ctx; the caller closes it. */
    int (*open)(void *ctx, struct slu_err *err);

    struct slu_substring_result result;
    uint64_t asked_windows, repeated_windows;

    struct slu_specials special; /* private; special ids and their width, of the
                                    stream */
    unsigned tok_bytes;
    struct slu_ranges *ranges; /* private; NULL: first occurrences are not wanted */
};

/* For slu_flow_cfg.begin. */
SLU_MUST_USE int slu_substring_begin(void *q, const struct slu_header *h,
                                     struct slu_names *names, struct slu_err *err);

#endif
