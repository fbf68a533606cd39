#include "stream_tail.h"

#include "frame.h"
#include "lib/base/io.h"
#include "lib/base/le.h"
#include "stream_reader.h"

/* Reads the frame header at off_byte. SLU_EOF if it is not one of that type. */
static int header(struct slu_frame *f, uint32_t type, int fd, uint64_t off_byte,
                  struct slu_err *err)
{
    uint8_t h[SLU_FRAME_HEADER];
    struct slu_err why = SLU_ERR_INIT; /* an error of the stream is not one here */
    int rc = slu_pread_full(fd, h, sizeof h, off_byte, err);
    if (rc)
        return rc;
    if (slu_frame_parse(f, h, slu_le64(h + 16), &why) || f->type != type)
        return SLU_EOF;
    return SLU_OK;
}

/* Hashes the headers of all frames; they must be adjacent, one of them at `ends`. A
 * sequence has one frame, or several that say that it goes on. */
static int digest(struct slu_stream_tail *t, int fd, uint64_t ends, uint64_t n_byte,
                  struct slu_err *err)
{
    struct slu_hasher *h = NULL;
    uint8_t raw[SLU_FRAME_HEADER];
    bool met = false;
    uint64_t run_byte = 0;
    int rc = slu_hasher_new(&h, err);
    for (uint64_t off = 0; off < n_byte && !rc;) {
        struct slu_frame f = {0};
        struct slu_err why = SLU_ERR_INIT;
        met = met || off == ends;
        rc = slu_pread_full(fd, raw, sizeof raw, off, err);
        if (!rc && slu_frame_parse(&f, raw, slu_le64(raw + 16), &why))
            rc = SLU_EOF;
        if (!rc)
            slu_hasher_add(h, raw, sizeof raw);
        if (!rc && f.type == SLU_DATA) {
            run_byte += f.raw_byte;
            t->longest_byte = run_byte > t->longest_byte ? run_byte : t->longest_byte;
            run_byte = f.flags & SLU_FLAG_SEQ_CONTINUES ? run_byte : 0;
        }
        off += slu_frame_span(&f);
        if (!rc && off > n_byte)
            rc = SLU_EOF;
    }
    if (!rc && !met)
        rc = SLU_EOF;
    if (!rc)
        t->digest = slu_hasher_end(h);
    slu_hasher_free(h);
    return rc;
}

int slu_stream_tail_read(struct slu_stream_tail *t, int fd, uint64_t n_byte,
                         struct slu_err *err)
{
    struct slu_frame f = {0};
    uint8_t ends[SLU_ENDS_BYTES];
    const uint64_t least = 4 * SLU_FRAME_HEADER + SLU_ENDS_BYTES;
    if (n_byte < least || n_byte % SLU_FRAME_ALIGN)
        return SLU_EOF;
    uint64_t foot = n_byte - SLU_FRAME_HEADER;
    int rc = header(&f, SLU_FOOT, fd, foot, err);
    uint64_t off = f.aux, at = off - SLU_FRAME_HEADER - SLU_ENDS_BYTES;
    if (!rc && (off % SLU_FRAME_ALIGN || off > foot || off < least - 2 * 64))
        rc = SLU_EOF;
    while (!rc && off < foot) {
        rc = header(&f, SLU_INDX, fd, off, err);
        off += slu_frame_span(&f);
    }
    if (!rc && off != foot)
        rc = SLU_EOF;
    if (!rc)
        rc = header(&f, SLU_ENDS, fd, at, err);
    if (!rc && f.stored_byte != sizeof ends)
        rc = SLU_EOF;
    if (!rc)
        rc = slu_pread_full(fd, ends, sizeof ends, at + SLU_FRAME_HEADER, err);
    if (!rc && slu_hash64(ends, sizeof ends) != f.payload_hash)
        rc = SLU_EOF;
    if (rc)
        return rc;
    t->n_seq = slu_le64(ends);
    t->n_tok = slu_le64(ends + 16);
    t->longest_byte = 0;
    t->checksum = (struct slu_u128){slu_le64(ends + 48), slu_le64(ends + 56)};
    return digest(t, fd, at, n_byte, err);
}
