/* joint.h - a stream between two programs of one process: frames pass by pointer.
 *
 * The writer (slu_writer_cfg.joint) puts its frames in, and the reader
 * (slu_reader_cfg.joint) takes them out, in order. They are the frames of a pipe, but
 * for what carrying costs: the kernel's copies, the hashes of stored bytes, padding. With
 * a data frame go the hashes of its sequences, so that its reader need not make them.
 * Sums are compared at the end, as in a pipe.
 *
 * A joint holds a few frames; their memory goes round between both sides.
 * Thread safety: one thread at a time writes, and one reads.
 */
#ifndef SLU_JOINT_H
#define SLU_JOINT_H

#include <stdbool.h>

#include "lib/base/err.h"

SLU_BEGIN_DECLS

struct slu_joint;
struct slu_frame;

SLU_MUST_USE int slu_joint_new(struct slu_joint **j, struct slu_err *err);
/* Neither side may use it any more. NULL is legal. */
void slu_joint_free(struct slu_joint *j);

/* Waits for room, and exchanges *f with an empty frame, whose buffers have memory to use
 * again. SLU_E_IO: the reader has closed. */
SLU_MUST_USE int slu_joint_put(struct slu_joint *j, struct slu_frame *f,
                               struct slu_err *err);
/* Waits for the next frame, and exchanges it with *f. False: there are no more. */
bool slu_joint_take(struct slu_joint *j, struct slu_frame *f);
/* The writer will put no more, the reader take no more. Any side may call both, more
 * than once. */
void slu_joint_end(struct slu_joint *j);
void slu_joint_close(struct slu_joint *j);
/* Whether a frame was refused because the reader had closed. */
bool slu_joint_refused(struct slu_joint *j);

SLU_END_DECLS

#endif
