/* zstd_frame.h - compresses bytes to one zstd frame that states its size, as the Python
 * readers of shards require (they refuse frames of unknown size, and several frames).
 *
 * The same input, level and libzstd give the same bytes with any number of threads:
 * each frame has its own context and no workers. */
#ifndef SLU_ZSTD_FRAME_H
#define SLU_ZSTD_FRAME_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Appends the frame. Any thread. */
SLU_MUST_USE int slu_zstd_frame(struct slu_buf *out, const void *p, size_t n, int level,
                                struct slu_err *err);
/* Largest possible size of the frame. */
size_t slu_zstd_frame_bound(size_t n);

#endif
