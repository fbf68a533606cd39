/* leave_out.h - the filter of a flow (lib/flow/flow.h): the sequences whose ordinals a
 * table names leave the stream, which the stage reads again.
 *
 * Private to exact_flow.c and near_flow.c.
 */
#ifndef SLU_DEDUP_LEAVE_OUT_H
#define SLU_DEDUP_LEAVE_OUT_H

#include "lib/flow/flow.h"

struct slu_leave_out {
    unsigned table; /* its rows begin with an ordinal; each ordinal is there once */
    uint64_t from;  /* ordinal of the stream's first sequence */
    void *ctx;
    /* A sequence leaves; w: the row that names it. Serial, in order. */
    int (*drop)(void *ctx, const struct slu_batch *b, const struct slu_seq *q,
                const uint64_t *w, struct slu_err *err);
    /* Takes the sequences that stay; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    void *emit_ctx;
};

/* SLU_E_CHECKSUM where a row names no sequence of the stream, or rows do not ascend. */
SLU_MUST_USE int slu_leave_out(struct slu_flow *f, const struct slu_leave_out *how,
                               struct slu_err *err);

#endif
