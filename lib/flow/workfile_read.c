/* workfile_read.c - reads work files, and checks all of their contents. */
#include "lib/flow/workfile_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"
#include "lib/base/io.h"
#include "lib/base/le.h"

struct slu_workfile {
    char *path;
    int fd;
    bool index; /* opened as an index; else as a stage's file */
    struct slu_workfile_head head;
    struct slu_u128 id;
    char *param;
    uint64_t n_section;
    struct section {
        uint64_t off_byte, n_byte;
        struct slu_u128 hash;
    } * section;
    /* The section that is read. */
    struct slu_hasher *hash;
    uint64_t at, left; /* number of the section; bytes that were not yet read */
    uint64_t *buf;     /* a buffer of STEP bytes */
    size_t pos, len;   /* in numbers */
};

/* How to replace a file that cannot be used. */
static const char *remedy(const struct slu_workfile *f)
{
    return f->index ? "make the index again" : "remove it and run its stage again";
}

int slu_workfile_damaged(const struct slu_workfile *f, struct slu_err *err)
{
    return slu_fail(err, SLU_E_CHECKSUM, "%s: damaged; %s", f->path, remedy(f));
}

static int foreign(const struct slu_workfile *f, struct slu_err *err)
{
    if (f->index)
        return slu_advise(
            err, SLU_ADVISE_INDEX,
            slu_fail(err, SLU_E_FORMAT, "%s: not an index of duplicates", f->path));
    return slu_fail(err, SLU_E_FORMAT,
                    "%s: not a work file of sluice; remove it and run its stage again, "
                    "or name another work folder",
                    f->path);
}

static int parse_tail(struct slu_workfile *f, const uint8_t *t, uint64_t n,
                      uint64_t tail_off, struct slu_err *err)
{
    struct slu_workfile_head *h = &f->head;
    uint64_t n_param = slu_le64(t + 112), at = HEAD;

    h->part = slu_le64(t);
    h->of = slu_le64(t + 8);
    memcpy(h->fingerprint, t + 16, 16);
    h->inputs = (struct slu_u128){slu_le64(t + 32), slu_le64(t + 40)};
    for (unsigned i = 0; i < SLU_WORKFILE_COUNTS; i++)
        h->count[i] = slu_le64(t + 48 + 8 * i);
    f->n_section = slu_le64(t + 120);
    if (n_param > SLU_WORKFILE_MAX_PARAM || f->n_section > 2 * SLU_WORKFILE_MAX_PARTS ||
        n != TAIL + ((n_param + 7) & ~UINT64_C(7)) + ROW * f->n_section)
        return slu_workfile_damaged(f, err);
    f->param = calloc(1, n_param + 1);
    f->section = calloc(f->n_section + 1, sizeof *f->section);
    if (!f->param || !f->section)
        return slu_fail_nomem(err, n);
    memcpy(f->param, t + TAIL, n_param);
    h->param = f->param;
    t += TAIL + ((n_param + 7) & ~UINT64_C(7));
    for (uint64_t i = 0; i < f->n_section; i++, t += ROW) {
        struct section *s = &f->section[i];
        *s = (struct section){at, slu_le64(t), {slu_le64(t + 8), slu_le64(t + 16)}};
        if (s->n_byte % 8 || s->n_byte > tail_off - at)
            return slu_workfile_damaged(f, err);
        at += s->n_byte;
    }
    return at == tail_off ? SLU_OK : slu_workfile_damaged(f, err);
}

static int read_tail(struct slu_workfile *f, uint64_t kind, struct slu_err *err)
{
    uint8_t head[HEAD], foot[FOOT];
    struct stat st;

    if (fstat(f->fd, &st))
        return slu_fail_errno(err, "%s", f->path);
    uint64_t n = (uint64_t)st.st_size;
    if (!S_ISREG(st.st_mode) || n < HEAD)
        return foreign(f, err);
    int rc = slu_pread_full(f->fd, head, HEAD, 0, err);
    if (rc)
        return slu_err_at(err, "%s", f->path);
    if (memcmp(head, MAGIC, 7))
        return foreign(f, err);
    if (head[7] != MAGIC[7])
        return slu_fail(err, SLU_E_FORMAT, "%s: written by another version of sluice",
                        f->path);
    if (n >= HEAD + TAIL + FOOT)
        rc = slu_pread_full(f->fd, foot, FOOT, n - FOOT, err);
    if (rc)
        return slu_err_at(err, "%s", f->path);
    if (n < HEAD + TAIL + FOOT || memcmp(foot + 24, MAGIC_END, 8))
        return slu_fail(err, SLU_E_TRUNCATED, "%s: truncated or damaged at its end; %s",
                        f->path, remedy(f));
    uint64_t tail_off = slu_le64(foot);
    if (tail_off < HEAD || tail_off > n - FOOT - TAIL || tail_off % 8 ||
        n - FOOT - tail_off > UINT32_MAX)
        return slu_workfile_damaged(f, err);
    size_t n_tail = (size_t)(n - FOOT - tail_off);
    uint8_t *tail = malloc(n_tail);
    if (!tail)
        return slu_fail_nomem(err, n_tail);
    f->id = (struct slu_u128){slu_le64(foot + 8), slu_le64(foot + 16)};
    rc = slu_pread_full(f->fd, tail, n_tail, tail_off, err);
    if (rc)
        rc = slu_err_at(err, "%s", f->path);
    else if (slu_u128_cmp(slu_workfile_foot_hash(head, tail, n_tail), f->id))
        rc = slu_workfile_damaged(f, err);
    else
        rc = parse_tail(f, tail, n_tail, tail_off, err);
    free(tail);
    f->head.kind = slu_le64(head + 8);
    if (!rc && f->head.kind != kind && f->index)
        rc = foreign(f, err);
    else if (!rc && f->head.kind != kind)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: written by another stage, program or version of sluice; %s",
                      f->path, remedy(f));
    return rc;
}

bool slu_workfile_is(const char *path, uint64_t kind)
{
    uint8_t head[HEAD];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = fd >= 0 && read(fd, head, HEAD) == HEAD && !memcmp(head, MAGIC, 8) &&
              slu_le64(head + 8) == kind;

    if (fd >= 0)
        close(fd);
    return is;
}

int slu_workfile_open(struct slu_workfile **out, const char *path, uint64_t kind,
                      struct slu_err *err)
{
    struct slu_workfile *f = calloc(1, sizeof *f);

    *out = NULL;
    if (!f)
        return slu_fail_nomem(err, sizeof *f);
    f->index = kind == SLU_WORKFILE_INDEX;
    f->path = strdup(path);
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = !f->path    ? slu_fail_nomem(err, strlen(path))
             : f->fd < 0 ? slu_fail_errno(err, "%s", path)
                         : read_tail(f, kind, err);
    if (rc)
        slu_workfile_free(f);
    else
        *out = f;
    return rc;
}

void slu_workfile_free(struct slu_workfile *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    slu_hasher_free(f->hash);
    free(f->buf);
    free(f->section);
    free(f->param);
    free(f->path);
    free(f);
}

const struct slu_workfile_head *slu_workfile_head(const struct slu_workfile *f)
{
    return &f->head;
}

const char *slu_workfile_path(const struct slu_workfile *f)
{
    return f->path;
}

struct slu_u128 slu_workfile_id(const struct slu_workfile *f)
{
    return f->id;
}

uint64_t slu_workfile_n_section(const struct slu_workfile *f)
{
    return f->n_section;
}

uint64_t slu_workfile_len(const struct slu_workfile *f, uint64_t section)
{
    return section < f->n_section ? f->section[section].n_byte / 8 : 0;
}

void slu_workfile_extent(const struct slu_workfile *f, uint64_t section,
                         uint64_t *off_byte, uint64_t *n_byte, struct slu_u128 *hash)
{
    const struct section *s = &f->section[section];

    *off_byte = s->off_byte;
    *n_byte = s->n_byte;
    *hash = s->hash;
}

int slu_workfile_take(struct slu_workfile *f)
{
    int fd = f->fd;

    f->fd = -1;
    return fd;
}

struct slu_u128 slu_workfile_mix(struct slu_u128 ids, struct slu_u128 id)
{
    uint8_t b[32];

    slu_put_le64(b, ids.lo);
    slu_put_le64(b + 8, ids.hi);
    slu_put_le64(b + 16, id.lo);
    slu_put_le64(b + 24, id.hi);
    return slu_hash128(b, sizeof b);
}

int slu_workfile_match(const struct slu_workfile *f,
                       const struct slu_workfile_head *want, struct slu_err *err)
{
    const struct slu_workfile_head *h = &f->head;

    if (h->of && !want->of)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "%s: is part %llu/%llu of a stage; expected the file of all parts", f->path,
            (unsigned long long)h->part, (unsigned long long)h->of);
    if (h->part != want->part || h->of != want->of)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: is part %llu/%llu; expected part %llu/%llu", f->path,
                        (unsigned long long)h->part, (unsigned long long)h->of,
                        (unsigned long long)want->part, (unsigned long long)want->of);
    return SLU_OK;
}

static void to_host(uint64_t *v, size_t n)
{
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        for (size_t i = 0; i < n; i++)
            v[i] = slu_le64(&v[i]);
}

int slu_workfile_read(struct slu_workfile *f, uint64_t section, uint64_t from, size_t n,
                      uint64_t *v, struct slu_err *err)
{
    uint64_t len = slu_workfile_len(f, section);

    if (from > len || n > len - from)
        return slu_workfile_damaged(f, err);
    if (n == 0)
        return SLU_OK;
    int rc =
        slu_pread_full(f->fd, v, n * 8, f->section[section].off_byte + from * 8, err);
    if (rc)
        return slu_err_at(err, "%s", f->path);
    to_host(v, n);
    return SLU_OK;
}

int slu_workfile_begin(struct slu_workfile *f, uint64_t section, struct slu_err *err)
{
    if (section >= f->n_section)
        return slu_workfile_damaged(f, err);
    int rc = f->hash ? SLU_OK : slu_hasher_new(&f->hash, err);
    if (!f->buf)
        f->buf = malloc(STEP);
    if (!rc && !f->buf)
        rc = slu_fail_nomem(err, STEP);
    if (rc)
        return rc;
    slu_hasher_clear(f->hash);
    f->at = section;
    f->left = f->section[section].n_byte;
    f->pos = f->len = 0;
    return SLU_OK;
}

static int refill(struct slu_workfile *f, struct slu_err *err)
{
    const struct section *s = &f->section[f->at];
    size_t keep = f->len - f->pos, room = STEP / 8 - keep;

    memmove(f->buf, f->buf + f->pos, keep * 8);
    f->pos = 0;
    f->len = keep;
    size_t n = f->left / 8 < room ? (size_t)(f->left / 8) : room;
    if (n == 0)
        return SLU_OK;
    int rc = slu_pread_full(f->fd, f->buf + keep, n * 8,
                            s->off_byte + s->n_byte - f->left, err);
    if (rc)
        return slu_err_at(err, "%s", f->path);
    slu_hasher_add(f->hash, f->buf + keep, n * 8);
    to_host(f->buf + keep, n);
    f->left -= n * 8;
    f->len += n;
    return SLU_OK;
}

int slu_workfile_get(struct slu_workfile *f, size_t n, uint64_t *v, struct slu_err *err)
{
    if (n > slu_workfile_left(f))
        return slu_workfile_damaged(f, err);
    while (n) {
        size_t have = f->len - f->pos, some = n < have ? n : have;
        if (!have) {
            int rc = refill(f, err);
            if (rc)
                return rc;
            continue;
        }
        memcpy(v, f->buf + f->pos, some * 8);
        f->pos += some;
        v += some;
        n -= some;
    }
    return SLU_OK;
}

int slu_workfile_get_bytes(struct slu_workfile *f, struct slu_buf *out,
                           struct slu_err *err)
{
    uint64_t n = 0;
    int rc = slu_workfile_get(f, 1, &n, err);

    slu_buf_clear(out);
    if (!rc && n > slu_workfile_left(f) * 8)
        rc = slu_workfile_damaged(f, err);
    if (!rc)
        rc = slu_buf_reserve(out, (n + 7) & ~UINT64_C(7), err);
    if (!rc)
        rc = slu_workfile_get(f, (n + 7) / 8, (uint64_t *)(void *)out->data, err);
    if (!rc)
        out->len = n;
    return rc;
}

uint64_t slu_workfile_left(const struct slu_workfile *f)
{
    return f->left / 8 + f->len - f->pos;
}

int slu_workfile_end(struct slu_workfile *f, struct slu_err *err)
{
    return slu_workfile_left(f) ||
                   slu_u128_cmp(slu_hasher_end(f->hash), f->section[f->at].hash)
               ? slu_workfile_damaged(f, err)
               : SLU_OK;
}
