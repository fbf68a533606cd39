/* zstd_frame.h - bytes as one zstd frame that says its size: what the Python readers of
 * shards take (they refuse frames of unknown size, and several one after another).
 *
 * The same bytes for the same input, level and libzstd, whatever the threads: one
 * context a frame, no workers. */
#ifndef SLU_ZSTD_FRAME_H
#define SLU_ZSTD_FRAME_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Appends the frame. Any thread. */
SLU_MUST_USE int slu_zstd_frame(struct slu_buf *out, const void *p, size_t n, int level,
                                struct slu_err *err);
/* Most bytes it can have. */
size_t slu_zstd_frame_bound(size_t n);

#endif
