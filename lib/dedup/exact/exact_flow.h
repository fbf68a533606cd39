/* exact_flow.h - exact duplicates as a flow (lib/flow/flow.h), past memory in one
 * process and in parts, each in a process of its own, on any machine that sees the same
 * work folder:
 *
 *   sign    part I of N reads its stream: of each sequence the hash of its tokens. In
 *           one process this is what a table in memory decides (seen.h), and from where
 *           it is full on, what it does not.
 *   group   range J of R of the hashes, of all parts: of sequences with one hash all
 *           but the first go, and each part is told which of its own
 *   filter  part I reads its stream again, or what waited, and leaves them out
 *
 * What is left, part after part, is what exact.h leaves of the parts' streams as one.
 * Sign leaves 24 bytes a sequence, group 8 for each that goes. All work within any
 * budget, linear in what they read.
 *
 * Private to exact.c, exact_flow.c and who does one stage.
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
    uint64_t n_twin; /* group: sequences that go */

    struct slu_flow *flow;   /* the stage at hand */
    struct slu_table *table; /* that it puts, or reads */
    uint64_t ordinal;        /* sign: the next sequence's */
    /* In one process: */
    struct slu_seen seen;
    bool noting;      /* pairs wait, as something before them does */
    uint64_t n_fixed; /* ordinals below are of an index; others are on the tape */
};

const struct slu_flow_spec *slu_exact_spec(bool pairs);
/* A sequence's hash; of one of an index too. */
SLU_MUST_USE int slu_exact_wait(struct slu_exact *x, struct slu_u128 hash,
                                const struct slu_origin *place, struct slu_err *err);
/* One process: the documents of an index, then batches, with a buffer of hashes. */
SLU_MUST_USE int slu_exact_front(struct slu_exact *x, struct slu_err *err);
SLU_MUST_USE int slu_exact_arrive(void *x, struct slu_batch *b, void *side,
                                  struct slu_err *err);
/* Books a sequence that is dropped, and tells its pair. */
SLU_MUST_USE int slu_exact_drop(struct slu_exact *x, const struct slu_batch *b,
                                const struct slu_seq *q, const struct slu_origin *kept,
                                struct slu_err *err);

#endif
