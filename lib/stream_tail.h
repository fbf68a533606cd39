/* stream_tail.h - what the end of a stream's file says of it, without reading the rest.
 *
 * STREAM.md sections 7 to 9: the last 64 bytes are a FOOT, which leads to the index and
 * to the end frame before it. `digest` covers all of these, so it differs where frames
 * were cut otherwise or hold other counts, also where the sequences are the same ones.
 */
#ifndef SLU_STREAM_TAIL_H
#define SLU_STREAM_TAIL_H

#include "err.h"
#include "hash.h"

struct slu_stream_tail {
    struct slu_u128 checksum; /* of the sequences, as the end frame says */
    struct slu_u128 digest;   /* XXH3-128 of the bytes from the end frame to the end */
};

/* fd: of a regular file of n_byte bytes. SLU_EOF where it is no whole stream of one
 * member: cut, of several members, or of another kind. SLU_E_IO. */
SLU_MUST_USE int slu_stream_tail_read(struct slu_stream_tail *t, int fd,
                                      uint64_t n_byte, struct slu_err *err);

#endif
