/* workfile.c - writes work files; workfile_read.c reads them. */
#include "lib/flow/workfile_private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"
#include "lib/base/io.h"
#include "lib/base/le.h"

struct slu_workfile_out {
    struct slu_out *out;
    uint8_t head[HEAD];
    struct slu_hasher *hash; /* hash of the current section */
    uint64_t section, n_word;
    uint64_t off_byte; /* bytes written so far */
    uint8_t *buf;      /* a buffer of STEP bytes */
    size_t n_buf;
    struct slu_buf rows; /* rows of the finished sections */
};

/* Users do not choose the names in a work folder: an existing file of this name is
 * replaced only if a stage made it. */
static int check_target(const char *path, struct slu_err *err)
{
    char is[sizeof MAGIC] = MAGIC;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : read(fd, is, 7); /* the version follows these bytes */

    if (fd >= 0)
        close(fd);
    return n >= 0 && !memcmp(is, MAGIC, (size_t)n)
               ? SLU_OK
               : slu_fail(err, SLU_E_MISMATCH,
                          "%s: this name is needed for a stage's file, and another "
                          "file has it; move that file away, or name another folder",
                          path);
}

int slu_workfile_create(struct slu_workfile_out **out, const char *path, uint64_t kind,
                        struct slu_err *err)
{
    struct slu_workfile_out *o = calloc(1, sizeof *o);

    *out = NULL;
    if (!o)
        return slu_fail_nomem(err, sizeof *o);
    int rc = kind == SLU_WORKFILE_INDEX ? SLU_OK : check_target(path, err);
    if (!rc)
        rc = slu_hasher_new(&o->hash, err);
    o->buf = malloc(STEP);
    if (!rc && !o->buf)
        rc = slu_fail_nomem(err, STEP);
    if (!rc)
        rc = slu_out_open(&o->out, path, err);
    if (!rc) {
        memcpy(o->head, MAGIC, 8);
        slu_put_le64(o->head + 8, kind);
        memcpy(o->buf, o->head, HEAD);
        o->n_buf = o->off_byte = HEAD;
        *out = o;
    } else {
        slu_workfile_abort(o);
    }
    return rc;
}

void slu_workfile_abort(struct slu_workfile_out *o)
{
    if (!o)
        return;
    slu_out_abort(o->out);
    slu_hasher_free(o->hash);
    slu_buf_release(&o->rows);
    free(o->buf);
    free(o);
}

static int flush(struct slu_workfile_out *o, struct slu_err *err)
{
    int rc = slu_out_write(o->out, o->buf, o->n_buf, err);

    o->n_buf = 0;
    return rc;
}

static int put_bytes(struct slu_workfile_out *o, const void *p, size_t n,
                     struct slu_err *err)
{
    const uint8_t *from = p;
    int rc = SLU_OK;

    o->off_byte += n;
    while (!rc && n > 0) {
        size_t some = STEP - o->n_buf < n ? STEP - o->n_buf : n;
        memcpy(o->buf + o->n_buf, from, some);
        o->n_buf += some;
        from += some;
        n -= some;
        if (o->n_buf == STEP)
            rc = flush(o, err);
    }
    return rc;
}

int slu_workfile_section(struct slu_workfile_out *o, uint64_t n, struct slu_err *err)
{
    int rc = SLU_OK;

    if (n < o->section)
        return slu_fail(err, SLU_E_USAGE, "sections are written in order");
    for (; !rc && o->section < n; o->section++) {
        struct slu_u128 h = slu_hasher_end(o->hash);
        uint8_t row[ROW];
        slu_put_le64(row, o->n_word * 8);
        slu_put_le64(row + 8, h.lo);
        slu_put_le64(row + 16, h.hi);
        rc = slu_buf_append(&o->rows, row, ROW, err);
        slu_hasher_clear(o->hash);
        o->n_word = 0;
    }
    return rc;
}

int slu_workfile_put(struct slu_workfile_out *o, const uint64_t *v, size_t n,
                     struct slu_err *err)
{
    int rc = SLU_OK;

    o->n_word += n;
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        slu_hasher_add(o->hash, v, n * 8);
        return put_bytes(o, v, n * 8, err);
    }
    for (size_t i = 0; !rc && i < n; i++) {
        uint8_t b[8];
        slu_put_le64(b, v[i]);
        slu_hasher_add(o->hash, b, 8);
        rc = put_bytes(o, b, 8, err);
    }
    return rc;
}

int slu_workfile_put_raw(struct slu_workfile_out *o, const void *p, size_t n,
                         struct slu_err *err)
{
    static const uint8_t zero[8];
    size_t pad = (8 - n % 8) % 8;

    o->n_word += (n + pad) / 8;
    slu_hasher_add(o->hash, p, n);
    slu_hasher_add(o->hash, zero, pad);
    int rc = put_bytes(o, p, n, err);
    return rc ? rc : put_bytes(o, zero, pad, err);
}

int slu_workfile_put_bytes(struct slu_workfile_out *o, const void *p, size_t n,
                           struct slu_err *err)
{
    const uint64_t len = n;
    int rc = slu_workfile_put(o, &len, 1, err);

    return rc || !n ? rc : slu_workfile_put_raw(o, p, n, err);
}

uint64_t slu_workfile_tell(const struct slu_workfile_out *o)
{
    return o->n_word;
}

static int put_tail(struct slu_workfile_out *o, const struct slu_workfile_head *h,
                    uint64_t n_section, struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    uint8_t fixed[TAIL], foot[FOOT];
    size_t n_param = strlen(h->param);

    slu_put_le64(fixed, h->part);
    slu_put_le64(fixed + 8, h->of);
    memcpy(fixed + 16, h->fingerprint, 16);
    slu_put_le64(fixed + 32, h->inputs.lo);
    slu_put_le64(fixed + 40, h->inputs.hi);
    for (unsigned i = 0; i < SLU_WORKFILE_COUNTS; i++)
        slu_put_le64(fixed + 48 + 8 * i, h->count[i]);
    slu_put_le64(fixed + 112, n_param);
    slu_put_le64(fixed + 120, n_section);
    int rc = slu_buf_append(&t, fixed, TAIL, err);
    if (!rc)
        rc = slu_buf_append(&t, h->param, n_param, err);
    if (!rc)
        rc = slu_buf_align(&t, 8, err);
    if (!rc)
        rc = slu_buf_append(&t, o->rows.data, o->rows.len, err);
    struct slu_u128 id = slu_workfile_foot_hash(o->head, t.data, t.len);
    slu_put_le64(foot, o->off_byte);
    slu_put_le64(foot + 8, id.lo);
    slu_put_le64(foot + 16, id.hi);
    memcpy(foot + 24, MAGIC_END, 8);
    if (!rc)
        rc = put_bytes(o, t.data, t.len, err);
    if (!rc)
        rc = put_bytes(o, foot, FOOT, err);
    slu_buf_release(&t);
    return rc;
}

int slu_workfile_close(struct slu_workfile_out *o, const struct slu_workfile_head *head,
                       uint64_t n_section, struct slu_err *err)
{
    int rc = slu_workfile_section(o, n_section, err);

    if (!rc && strlen(head->param) > SLU_WORKFILE_MAX_PARAM)
        rc = slu_fail(err, SLU_E_LIMIT, "parameters are too long");
    if (!rc)
        rc = put_tail(o, head, n_section, err);
    if (!rc)
        rc = flush(o, err);
    if (!rc) {
        struct slu_out *out = o->out;
        o->out = NULL;
        rc = slu_out_close(out, err);
    }
    slu_workfile_abort(o);
    return rc;
}
