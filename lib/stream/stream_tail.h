/* stream_tail.h - checksum and digest of a stream's file, without its sequences.
 *
 * STREAM.md sections 2 and 7 to 9: the last 64 bytes are a FOOT, which leads to the
 * index and to the end frame before it; each frame's header has its length and the hash
 * of its payload. `digest` covers all headers, so any change of the file changes it.
 * The checksum in the end frame does not depend on order, domains and ids. About one
 * header is read for each MiB of tokens.
 */
#ifndef SLU_STREAM_TAIL_H
#define SLU_STREAM_TAIL_H

#include "lib/base/err.h"
#include "lib/base/hash.h"

struct slu_stream_tail {
    uint64_t n_seq, n_tok;    /* from the end frame, as */
    struct slu_u128 checksum; /* that of the sequences */
    uint64_t longest_byte;    /* no sequence has more bytes of ids */
    struct slu_u128 digest;   /* XXH3-128 of all frames' headers */
};

/* Reads the end of fd, a regular file of n_byte bytes. SLU_EOF if it is not one
 * complete member: it is truncated, has several members, or is not a stream. SLU_E_IO.
 */
SLU_MUST_USE int slu_stream_tail_read(struct slu_stream_tail *t, int fd,
                                      uint64_t n_byte, struct slu_err *err);

#endif
