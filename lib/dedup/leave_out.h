/* leave_out.h - the stage filter of a flow (lib/flow/flow.h): reads the stream again
 * and drops the sequences whose ordinals a table names.
 *
 * Private to exact_flow.c and near_flow.c.
 */
#ifndef SLU_DEDUP_LEAVE_OUT_H
#define SLU_DEDUP_LEAVE_OUT_H

#include "lib/flow/flow.h"

struct slu_leave_out {
    unsigned table; /* each row begins with an ordinal; no ordinal occurs twice */
    uint64_t from;  /* ordinal of the stream's first sequence */
    void *ctx;
    /* Called for each dropped sequence, one call at a time, in order. w: the row that
     * names it. */
    int (*drop)(void *ctx, const struct slu_batch *b, const struct slu_seq *q,
                const uint64_t *w, struct slu_err *err);
    /* Takes the sequences that stay; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    void *emit_ctx;
};

/* SLU_E_CHECKSUM if a row names no sequence of the stream, or if rows do not ascend. */
SLU_MUST_USE int slu_leave_out(struct slu_flow *f, const struct slu_leave_out *how,
                               struct slu_err *err);

#endif
