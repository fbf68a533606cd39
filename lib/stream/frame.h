/* frame.h - frames, as in STREAM.md sections 1 and 2. Private to lib/stream. */
#ifndef SLU_FRAME_H
#define SLU_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"

#define SLU_FRAME_HEADER  64
#define SLU_FRAME_ALIGN   64
#define SLU_FRAME_PAYLOAD (UINT64_C(1) << 26) /* bytes of the largest payload */

#define SLU_FOURCC(a, b, c, d)                                                         \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#define SLU_HEAD SLU_FOURCC('H', 'E', 'A', 'D')
#define SLU_VOCB SLU_FOURCC('v', 'o', 'c', 'b')
#define SLU_ACCT SLU_FOURCC('a', 'c', 'c', 't')
#define SLU_SRCS SLU_FOURCC('S', 'R', 'C', 'S')
#define SLU_DOMS SLU_FOURCC('D', 'O', 'M', 'S')
#define SLU_VALS SLU_FOURCC('V', 'A', 'L', 'S')
#define SLU_DATA SLU_FOURCC('D', 'A', 'T', 'A')
#define SLU_ENDS SLU_FOURCC('E', 'N', 'D', 'S')
#define SLU_INDX SLU_FOURCC('I', 'N', 'D', 'X')
#define SLU_FOOT SLU_FOURCC('F', 'O', 'O', 'T')

#define SLU_FLAG_ZSTD          1u
#define SLU_FLAG_SEQ_CONTINUES 2u
#define SLU_FLAG_SEG_CONTINUES 4u

struct slu_frame {
    uint32_t type, flags;
    uint64_t number, raw_byte, stored_byte, aux, payload_hash;
    bool hashed; /* stored_hash, of stored, is known */
    uint64_t stored_hash;
    uint64_t n_tok;        /* tokens of a data frame, once it is decoded */
    struct slu_buf stored; /* payload as stored, with its zero padding */
    struct slu_buf raw;    /* decompressed payload; empty if it is not compressed */
    struct slu_buf early;  /* hashes of its sequences, whose ids are in the vocabulary;
                              empty: not known (stream_early.c, joint.h) */
    /* It came by a joint: it was never stored, so nothing has to be checked. The tokens
     * of a data frame are in `tok`, and the rest of its payload in `stored`. */
    bool passed;
    struct slu_buf tok;
};

void slu_frame_release(struct slu_frame *f);
/* Returns the frame's bytes in the file, with header and padding. */
uint64_t slu_frame_span(const struct slu_frame *f);
/* Whether a stream can begin with p[0, n); if not, the message names what it is. */
SLU_MUST_USE int slu_frame_begins(const uint8_t *p, size_t n, struct slu_err *err);
/* Checks and decodes a header. number: the number that the frame must have. */
SLU_MUST_USE int slu_frame_parse(struct slu_frame *f, const uint8_t h[SLU_FRAME_HEADER],
                                 uint64_t number, struct slu_err *err);
/* Checks the hash of the stored payload, and that its padding is zero. */
SLU_MUST_USE int slu_frame_check(const struct slu_frame *f, struct slu_err *err);
/* Sets *p and *n to the payload, decompressed if needed; borrowed from f. Call
 * slu_frame_check first. */
SLU_MUST_USE int slu_frame_payload(struct slu_frame *f, const uint8_t **p, size_t *n,
                                   struct slu_err *err);

/* The frames of one batch, as read. */
struct slu_frames {
    struct slu_frame *f;
    size_t n, cap; /* f[n … cap-1] keep their buffers for the next batch */
};
void slu_frames_free(struct slu_frames *fs);

/* State of a writer of frames. */
struct slu_framer {
    struct slu_out *out;
    struct slu_joint *joint; /* instead of out, borrowed; or NULL */
    struct slu_frame pass;   /* memory of the frame that goes there next */
    uint64_t number;         /* of the next frame */
    uint64_t off_byte;       /* of the next frame in the member */
    void *zstd;              /* ZSTD_CCtx, made when first needed */
    struct slu_buf packed;
};

void slu_framer_release(struct slu_framer *w);
/* Bytes of a payload, which may lie in several places. */
struct slu_span {
    const void *p;
    size_t n_byte;
};
/* Writes one frame whose payload is p[0, n), one behind another. zstd_level 0: not
 * compressed. Otherwise it is compressed if that is smaller, or if `must`. */
SLU_MUST_USE int slu_framer_put(struct slu_framer *w, uint32_t type, uint32_t flags,
                                uint64_t aux, const struct slu_span *p, unsigned n,
                                int zstd_level, bool must, struct slu_err *err);
/* Gives a frame to the joint, not compressed: w->pass, of which stored, tok and early are
 * set. */
SLU_MUST_USE int slu_framer_pass(struct slu_framer *w, uint32_t type, uint32_t flags,
                                 uint64_t aux, struct slu_err *err);
/* Compresses them into w->packed as slu_framer_put does. */
SLU_MUST_USE int slu_framer_pack(struct slu_framer *w, const struct slu_span *p,
                                 unsigned n, int zstd_level, struct slu_err *err);
/* Writes a frame whose payload of raw_byte bytes is packed already. */
SLU_MUST_USE int slu_framer_put_packed(struct slu_framer *w, uint32_t type,
                                       size_t raw_byte, const void *packed, size_t n,
                                       struct slu_err *err);

#endif
