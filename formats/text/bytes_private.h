/* bytes_private.h - shared by bytes.c and the codecs, one file each. */
#ifndef SLU_BYTES_PRIVATE_H
#define SLU_BYTES_PRIVATE_H

#include "bytes.h"

#define SLU_STORED_BYTES ((size_t)1 << 18)

/* The stored bytes: buf[pos … end) are read and not yet taken. */
struct slu_stored_bytes {
    int fd;
    int quit_fd;  /* see slu_bytes_open; -1 for regular files, which never wait */
    uint8_t *buf; /* SLU_STORED_BYTES, owned */
    size_t pos, end;
    uint64_t off; /* offset in the file of buf[end] */
    bool eof;     /* the file ends at buf[end] */
    /* instead of fd, see slu_bytes_open_over; or NULL */
    int (*read)(void *ctx, void *p, size_t n, size_t *got, struct slu_err *err);
    void *ctx;
};

/* Moves the bytes left to the front and fills the rest of the buffer. Fills less only
 * at the end of the file, and then sets eof. */
SLU_MUST_USE int slu_stored_fill(struct slu_stored_bytes *r, struct slu_err *err);
/* Returns the offset in the file of the next byte to take. */
static inline uint64_t slu_stored_tell(const struct slu_stored_bytes *r)
{
    return r->off - (r->end - r->pos);
}

struct slu_codec {
    const char *name;
    const char *const *suffix;                   /* ".gz", …; NULL at the end */
    const char *const *tar_suffix;               /* ".tgz", … */
    bool (*matches)(const uint8_t *p, size_t n); /* the file's first bytes */
    int (*open)(void **state, struct slu_stored_bytes *r, uint64_t mem_byte,
                struct slu_err *err);
    /* Gives 1 to n bytes; *got 0: a clean end. With an error *got (0 at the call) may
     * be set too; no call follows. All bytes before an error must be the same for any
     * n. Messages continue the file's name. */
    int (*read)(void *state, uint8_t *p, size_t n, size_t *got, struct slu_err *err);
    void (*close)(void *state);
};

extern const struct slu_codec slu_codec_gzip, slu_codec_zstd, slu_codec_bzip2,
    slu_codec_xz, slu_codec_lz4;

#endif
