/* exact_flow.h - exact duplicates as a flow (lib/flow/flow.h): beyond memory in one
 * process, or in parts, each of which may be a process on any machine that sees the
 * same work folder:
 *
 *   sign    part I of N reads its stream, and writes the hash of each sequence's
 *           tokens. In one process, a table in memory (seen.h) decides sequences until
 *           it is full; only hashes that are then not in the table are written.
 *   group   range J of R of the hashes, of all parts: of sequences with one hash drops
 *           all but the first, and tells each part its dropped sequences
 *   filter  part I reads its stream again, or the waiting sequences, and leaves the
 *           dropped ones out
 *   index   one job, if asked for: writes the hashes of the kept sequences, for later
 *           runs (lib/dedup/against/index.h)
 * Documents of indexes come first, with part 0's.
 *
 * The filtered parts, one after another, equal the result of exact.h for the parts'
 * streams as one. Sign writes 24 bytes for each sequence, with an index 40; group 8 for
 * each dropped one.
 * All stages work within any budget; their time is linear in their input.
 *
 * Private to exact_flow.c and callers that do one stage.
 */
#ifndef SLU_DEDUP_EXACT_FLOW_H
#define SLU_DEDUP_EXACT_FLOW_H

#include "lib/dedup/exact/exact.h"
#include "lib/dedup/exact/seen.h"
#include "lib/flow/flow.h"

/* The flow's ctx. */
struct slu_exact {
    struct slu_exact_cfg cfg;
    struct slu_exact_result result;
    uint64_t n_duplicate; /* group: number of sequences to drop */

    const struct slu_header *header; /* of the stream; borrowed */

    struct slu_flow *flow;   /* the current stage */
    struct slu_table *table; /* the table that the stage puts or reads */
    struct slu_table *list;  /* sign: all hashes, for the index; NULL: not wanted */
    uint64_t ordinal;        /* sign: ordinal of the next sequence */
    struct slu_u128 nothing; /* the hash of no tokens, which only a sequence of which
                                none is trained on has */
    /* In one process: */
    struct slu_seen seen;
    bool noting; /* pairs wait, because an earlier one waits */

    uint64_t n_fixed; /* smaller ordinals belong to indexes; in one process the others
                         are on the log */
};

/* index: with the stage index, in parts. */
const struct slu_flow_spec *slu_exact_spec(bool pairs, bool index);
/* For slu_flow_cfg.begin. */
SLU_MUST_USE int slu_exact_begin(void *x, const struct slu_header *h,
                                 struct slu_names *names, struct slu_err *err);

#endif
