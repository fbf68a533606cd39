/* sidecar.h - data of a batch that a worker computes for the writer.
 *
 * slu_stream_run recycles a few batches. A worker's results for a batch (hashes, sort
 * keys) are kept here, under the batch's address, until the batch is emitted.
 *
 * Thread safety: slu_sidecar_of may be called from any thread; the returned buffer may
 * be used only by the thread that has the batch.
 */
#ifndef SLU_SIDECAR_H
#define SLU_SIDECAR_H

#include <pthread.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct slu_sidecar {
    pthread_mutex_t mu;
    struct slu_sidecar_slot {
        const void *batch;
        struct slu_buf *buf; /* owned; stays where it is when slots grow */
    } * slot;
    size_t n, cap;
};

void slu_sidecar_init(struct slu_sidecar *s);
void slu_sidecar_release(struct slu_sidecar *s);
/* Finds the buffer of `batch`, as its last user left it; empty at first. */
SLU_MUST_USE int slu_sidecar_of(struct slu_sidecar *s, const void *batch,
                                struct slu_buf **buf, struct slu_err *err);

#endif
