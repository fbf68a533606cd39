#include "bytes_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/text/kinds.h"
#include "lib/base/io.h"

static const struct slu_codec *const codecs[] = {
    &slu_codec_gzip, &slu_codec_zstd, &slu_codec_bzip2, &slu_codec_xz, &slu_codec_lz4,
};
#define N_CODEC (sizeof codecs / sizeof *codecs)

struct slu_bytes {
    char *path; /* for messages */
    struct slu_stored_bytes raw;
    bool regular, waits; /* can be seeked; its bytes may have to be waited for */
    const struct slu_codec *codec; /* NULL: plain */
    void *state;
    uint8_t peek[SLU_BYTES_PEEK]; /* peek[peek_pos … peek_end) is handed out first */
    size_t peek_pos, peek_end;
    uint64_t off;         /* of the next byte to hand out */
    struct slu_err fault; /* the first error */
};

/* Bytes before an error are given first; the next call meets it again. */
static int fill_over(struct slu_stored_bytes *r, struct slu_err *err)
{
    const size_t left = r->end;
    int rc = SLU_OK;
    while (!rc && !r->eof && r->end < SLU_STORED_BYTES) {
        size_t got;
        rc = r->read(r->ctx, r->buf + r->end, SLU_STORED_BYTES - r->end, &got, err);
        r->end += got;
        r->off += got;
        r->eof = !rc && !got;
    }
    return r->end > left ? SLU_OK : rc;
}

int slu_stored_fill(struct slu_stored_bytes *r, struct slu_err *err)
{
    size_t left = r->end - r->pos, got;
    memmove(r->buf, r->buf + r->pos, left);
    r->pos = 0;
    r->end = left;
    if (r->read)
        return fill_over(r, err);
    int rc = slu_read_or_quit(r->fd, r->quit_fd, r->buf + left, SLU_STORED_BYTES - left,
                              &got, err);
    if (rc)
        return rc;
    r->end += got;
    r->off += got;
    r->eof = r->end < SLU_STORED_BYTES;
    return SLU_OK;
}

static bool is_one_of(const char *dot, const char *const *suffix)
{
    while (*suffix && !slu_suffix_is(dot, *suffix))
        suffix++;
    return *suffix;
}

/* Returns the codec that the name promises, or NULL. *len: of the removable suffix. */
static const struct slu_codec *promised(const char *name, size_t *len)
{
    const char *dot = strrchr(name, '.');
    *len = 0;
    for (size_t i = 0; i < N_CODEC && dot && dot != name; i++) {
        const bool whole = is_one_of(dot, codecs[i]->suffix);
        if (whole)
            *len = strlen(dot);
        if (whole || is_one_of(dot, codecs[i]->tar_suffix))
            return codecs[i];
    }
    return NULL;
}

size_t slu_bytes_suffix(const char *name)
{
    size_t len;
    promised(name, &len);
    return len;
}

bool slu_bytes_promised(const char *name)
{
    size_t len;
    return promised(name, &len) != NULL;
}

static int choose_codec(struct slu_bytes *b, uint64_t mem_byte, struct slu_err *err)
{
    size_t len;
    const struct slu_codec *want = promised(b->path, &len);

    int rc = slu_stored_fill(&b->raw, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < N_CODEC && !b->codec; i++)
        if (codecs[i]->matches(b->raw.buf, b->raw.end))
            b->codec = codecs[i];
    if (want && !b->codec) {
        if (b->raw.end == 0)
            return slu_fail_at(err, SLU_E_TRUNCATED, 0, "no bytes; expected %s data",
                               want->name);
        return slu_fail_at(err, SLU_E_FORMAT, 0,
                           "not %s data, though its name says so; rename it",
                           want->name);
    }
    return b->codec ? b->codec->open(&b->state, &b->raw, mem_byte, err) : SLU_OK;
}

void slu_bytes_quit(struct slu_bytes *b, int quit_fd)
{
    b->raw.quit_fd = b->waits ? quit_fd : -1;
}

int slu_bytes_open(struct slu_bytes **out, const char *path, uint64_t mem_byte,
                   int quit_fd, struct slu_err *err)
{
    struct stat st;
    int rc;
    struct slu_bytes *b = calloc(1, sizeof *b);
    if (!b)
        return slu_fail_nomem(err, sizeof *b);
    b->raw.fd = -1;
    b->path = strdup(strcmp(path, "-") == 0 ? "standard input" : path);
    b->raw.buf = malloc(SLU_STORED_BYTES);
    if (!b->path || !b->raw.buf) {
        rc = slu_fail_nomem(err, SLU_STORED_BYTES);
        goto out;
    }
    b->raw.fd = strcmp(path, "-") == 0 ? fcntl(0, F_DUPFD_CLOEXEC, 3)
                                       : open(path, O_RDONLY | O_CLOEXEC);
    if (b->raw.fd < 0 || fstat(b->raw.fd, &st) != 0) {
        rc = slu_fail_errno(err, "%s", b->path);
        goto out;
    }
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        rc = slu_fail_errno(err, "%s", b->path);
        goto out;
    }
    b->waits = !S_ISREG(st.st_mode);
    slu_bytes_quit(b, quit_fd);
    b->regular = S_ISREG(st.st_mode) && strcmp(path, "-") != 0;
    (void)posix_fadvise(b->raw.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    rc = choose_codec(b, mem_byte ? mem_byte : UINT64_C(128) << 20, err);
    if (rc)
        rc = slu_err_at(err, "%s", b->path);
out:
    if (rc)
        slu_bytes_close(b);
    else
        *out = b;
    return rc;
}

int slu_bytes_open_over(struct slu_bytes **out, const char *name,
                        int (*read)(void *ctx, void *p, size_t n, size_t *got,
                                    struct slu_err *err),
                        void *ctx, uint64_t mem_byte, struct slu_err *err)
{
    struct slu_bytes *b = *out ? *out : calloc(1, sizeof *b);
    *out = b;
    if (!b)
        return slu_fail_nomem(err, sizeof *b);
    if (b->state)
        b->codec->close(b->state);
    free(b->path);
    uint8_t *buf = b->raw.buf ? b->raw.buf : malloc(SLU_STORED_BYTES);
    /* All fields but the bytes of peek and of the message. */
    b->codec = NULL;
    b->state = NULL;
    b->regular = b->waits = false;
    b->peek_pos = b->peek_end = 0;
    b->off = 0;
    b->fault.code = SLU_OK;
    b->fault.msg[0] = 0;
    b->raw = (struct slu_stored_bytes){
        .fd = -1, .quit_fd = -1, .buf = buf, .read = read, .ctx = ctx};
    b->path = strdup(name);
    if (!b->path || !buf)
        return slu_fail_nomem(err, SLU_STORED_BYTES);
    int rc = choose_codec(b, mem_byte ? mem_byte : UINT64_C(128) << 20, err);
    return rc ? slu_err_at(err, "%s", b->path) : SLU_OK;
}

/* Reads a file without compression. Large reads bypass the buffer. A block is a large
 * read, even without the bytes carried over from the one before (in_jsonl.c). */
static int read_plain(struct slu_stored_bytes *r, uint8_t *p, size_t n, size_t *got,
                      struct slu_err *err)
{
    int rc = SLU_OK;
    if (r->pos == r->end && !r->eof) {
        if (n >= SLU_STORED_BYTES / 4 && !r->read) {
            rc = slu_read_or_quit(r->fd, r->quit_fd, p, n, got, err);
            if (rc)
                return rc;
            r->off += *got;
            r->eof = *got < n;
            return SLU_OK;
        }
        rc = slu_stored_fill(r, err);
    }
    if (n > r->end - r->pos)
        n = r->end - r->pos;
    memcpy(p, r->buf + r->pos, n);
    r->pos += n;
    *got = n;
    return rc;
}

static int read_more(struct slu_bytes *b, uint8_t *p, size_t n, size_t *got,
                     struct slu_err *err)
{
    size_t have = 0, step = 1;
    struct slu_err *fault = &b->fault;
    while (have < n && step > 0 && !fault->code) {
        step = 0;
        int rc = b->codec ? b->codec->read(b->state, p + have, n - have, &step, fault)
                          : read_plain(&b->raw, p + have, n - have, &step, fault);
        if (rc)
            (void)slu_err_at(fault, "%s", b->path);
        have += step;
    }
    *got = have;
    if (have == n || !fault->code)
        return SLU_OK;
    if (err)
        *err = *fault;
    return fault->code;
}

int slu_bytes_read(struct slu_bytes *b, void *p, size_t n, size_t *got,
                   struct slu_err *err)
{
    size_t ahead = b->peek_end - b->peek_pos;
    if (ahead > n)
        ahead = n;
    if (ahead)
        memcpy(p, b->peek + b->peek_pos, ahead);
    b->peek_pos += ahead;
    int rc = read_more(b, (uint8_t *)p + ahead, n - ahead, got, err);
    *got += ahead;
    b->off += *got;
    return rc;
}

int slu_bytes_peek(struct slu_bytes *b, const uint8_t **p, size_t *n,
                   struct slu_err *err)
{
    size_t got, left = b->peek_end - b->peek_pos;
    memmove(b->peek, b->peek + b->peek_pos, left);
    b->peek_pos = 0;
    b->peek_end = left;
    int rc = read_more(b, b->peek + left, sizeof b->peek - left, &got, err);
    b->peek_end += got;
    if (rc && b->peek_end == 0)
        return rc;
    *p = b->peek;
    *n = b->peek_end;
    return SLU_OK;
}

uint64_t slu_bytes_tell(const struct slu_bytes *b)
{
    return b->off;
}

uint64_t slu_bytes_stored(const struct slu_bytes *b)
{
    return slu_stored_tell(&b->raw);
}

const char *slu_bytes_codec(const struct slu_bytes *b)
{
    return b->codec ? b->codec->name : "plain";
}

bool slu_bytes_seekable(const struct slu_bytes *b)
{
    return !b->codec && b->regular;
}

int slu_bytes_seek(struct slu_bytes *b, uint64_t off_byte, struct slu_err *err)
{
    if (lseek(b->raw.fd, (off_t)off_byte, SEEK_SET) < 0)
        return slu_fail_errno(err, "%s", b->path);
    b->raw.pos = b->raw.end = 0;
    b->raw.off = b->off = off_byte;
    b->raw.eof = false;
    b->peek_pos = b->peek_end = 0;
    return SLU_OK;
}

void slu_bytes_close(struct slu_bytes *b)
{
    if (!b)
        return;
    if (b->state)
        b->codec->close(b->state);
    if (b->raw.fd >= 0)
        close(b->raw.fd);
    free(b->raw.buf);
    free(b->path);
    free(b);
}
