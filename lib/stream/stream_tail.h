/* stream_tail.h - what a stream's file says of itself, without reading its sequences.
 *
 * STREAM.md sections 2 and 7 to 9: the last 64 bytes are a FOOT, which leads to the
 * index and to the end frame before it; each frame begins with a header that has its
 * length and the hash of its payload. `digest` is of all headers, so it differs where
 * anything in the file does: sums in the end frame tell neither of order nor of domains
 * and ids. A header is read for each MiB of tokens or so.
 */
#ifndef SLU_STREAM_TAIL_H
#define SLU_STREAM_TAIL_H

#include "lib/err.h"
#include "lib/hash.h"

struct slu_stream_tail {
    struct slu_u128 checksum; /* of the sequences, as the end frame says */
    struct slu_u128 digest;   /* XXH3-128 of all frames' headers */
};

/* fd: of a regular file of n_byte bytes. SLU_EOF where it is no whole stream of one
 * member: cut, of several members, or of another kind. SLU_E_IO. */
SLU_MUST_USE int slu_stream_tail_read(struct slu_stream_tail *t, int fd,
                                      uint64_t n_byte, struct slu_err *err);

#endif
