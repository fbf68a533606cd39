#include "lib/workfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "lib/buf.h"
#include "lib/io.h"
#include "lib/le.h"

static const char magic[8] = {'S', 'L', 'U', 'N', 'E', 'A', 'R', '1'};
static const char magic_end[8] = {'S', 'L', 'U', 'N', 'E', 'N', 'D', '1'};

enum { HEAD = 16, FOOT = 32, TAIL = 128, ROW = 24, STEP = 1 << 18 };

/* ---- writing ---- */

struct slu_workfile_out {
    struct slu_out *out;
    uint8_t head[HEAD];
    XXH3_state_t *hash; /* of the section at hand */
    uint64_t section, n_word;
    uint64_t off_byte; /* bytes so far */
    uint8_t *buf;      /* STEP bytes */
    size_t n_buf;
    struct slu_buf rows; /* of the sections that are done */
};

int slu_workfile_create(struct slu_workfile_out **out, const char *path, uint64_t kind,
                        struct slu_err *err)
{
    struct slu_workfile_out *o = calloc(1, sizeof *o);

    *out = NULL;
    if (!o)
        return slu_fail_nomem(err, sizeof *o);
    o->hash = XXH3_createState();
    o->buf = malloc(STEP);
    int rc = o->hash && o->buf ? SLU_OK : slu_fail_nomem(err, STEP);
    if (rc == SLU_OK)
        rc = slu_out_open(&o->out, path, err);
    if (rc == SLU_OK) {
        memcpy(o->head, magic, 8);
        slu_put_le64(o->head + 8, kind);
        memcpy(o->buf, o->head, HEAD);
        o->n_buf = o->off_byte = HEAD;
        XXH3_128bits_reset(o->hash);
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
    XXH3_freeState(o->hash);
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
    while (rc == SLU_OK && n > 0) {
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
    for (; rc == SLU_OK && o->section < n; o->section++) {
        XXH128_hash_t h = XXH3_128bits_digest(o->hash);
        uint8_t row[ROW];
        slu_put_le64(row, o->n_word * 8);
        slu_put_le64(row + 8, h.low64);
        slu_put_le64(row + 16, h.high64);
        rc = slu_buf_append(&o->rows, row, ROW, err);
        XXH3_128bits_reset(o->hash);
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
        XXH3_128bits_update(o->hash, v, n * 8);
        return put_bytes(o, v, n * 8, err);
    }
    for (size_t i = 0; rc == SLU_OK && i < n; i++) {
        uint8_t b[8];
        slu_put_le64(b, v[i]);
        XXH3_128bits_update(o->hash, b, 8);
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
    XXH3_128bits_update(o->hash, p, n);
    XXH3_128bits_update(o->hash, zero, pad);
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

static struct slu_u128 foot_hash(const uint8_t head[HEAD], const void *tail, size_t n)
{
    return slu_workfile_mix(slu_hash128(head, HEAD), slu_hash128(tail, n));
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
    if (rc == SLU_OK)
        rc = slu_buf_append(&t, h->param, n_param, err);
    if (rc == SLU_OK)
        rc = slu_buf_align(&t, 8, err);
    if (rc == SLU_OK)
        rc = slu_buf_append(&t, o->rows.data, o->rows.len, err);
    struct slu_u128 id = foot_hash(o->head, t.data, t.len);
    slu_put_le64(foot, o->off_byte);
    slu_put_le64(foot + 8, id.lo);
    slu_put_le64(foot + 16, id.hi);
    memcpy(foot + 24, magic_end, 8);
    if (rc == SLU_OK)
        rc = put_bytes(o, t.data, t.len, err);
    if (rc == SLU_OK)
        rc = put_bytes(o, foot, FOOT, err);
    slu_buf_release(&t);
    return rc;
}

int slu_workfile_close(struct slu_workfile_out *o, const struct slu_workfile_head *head,
                       uint64_t n_section, struct slu_err *err)
{
    int rc = slu_workfile_section(o, n_section, err);

    if (rc == SLU_OK && strlen(head->param) > SLU_WORKFILE_MAX_PARAM)
        rc = slu_fail(err, SLU_E_LIMIT, "parameters are too long");
    if (rc == SLU_OK)
        rc = put_tail(o, head, n_section, err);
    if (rc == SLU_OK)
        rc = flush(o, err);
    if (rc == SLU_OK) {
        struct slu_out *out = o->out;
        o->out = NULL;
        rc = slu_out_close(out, err);
    }
    slu_workfile_abort(o);
    return rc;
}

/* ---- reading ---- */

struct slu_workfile {
    char *path;
    int fd;
    bool index; /* what it was opened as; else a phase's file */
    struct slu_workfile_head head;
    struct slu_u128 id;
    char *param;
    uint64_t n_section;
    struct section {
        uint64_t off_byte, n_byte;
        struct slu_u128 hash;
    } * section;
    /* The stream. */
    XXH3_state_t *hash;
    uint64_t at, left; /* section; bytes that were not read yet */
    uint64_t *buf;     /* STEP bytes */
    size_t pos, len;   /* numbers */
};

/* What to do about a file that cannot be used. */
static const char *remedy(const struct slu_workfile *f)
{
    return f->index ? "make it again with --save-index"
                    : "remove it and run its phase again";
}

int slu_workfile_damaged(const struct slu_workfile *f, struct slu_err *err)
{
    return slu_fail(err, SLU_E_CHECKSUM, "%s: damaged; %s", f->path, remedy(f));
}

static int foreign(const struct slu_workfile *f, struct slu_err *err)
{
    return slu_fail(err, SLU_E_FORMAT,
                    f->index ? "%s: is no index of dedup --save-index"
                             : "%s: no file of a phase",
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
    if (memcmp(head, magic, 7))
        return foreign(f, err);
    if (head[7] != magic[7])
        return slu_fail(err, SLU_E_FORMAT, "%s: of another version of sluice", f->path);
    if (n >= HEAD + TAIL + FOOT)
        rc = slu_pread_full(f->fd, foot, FOOT, n - FOOT, err);
    if (rc)
        return slu_err_at(err, "%s", f->path);
    if (n < HEAD + TAIL + FOOT || memcmp(foot + 24, magic_end, 8))
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
    else if (slu_u128_cmp(foot_hash(head, tail, n_tail), f->id))
        rc = slu_workfile_damaged(f, err);
    else
        rc = parse_tail(f, tail, n_tail, tail_off, err);
    free(tail);
    f->head.kind = slu_le64(head + 8);
    if (rc == SLU_OK && f->head.kind != kind && f->index)
        rc = foreign(f, err);
    else if (rc == SLU_OK && f->head.kind != kind)
        rc = slu_fail(err, SLU_E_MISMATCH, "%s: of another phase, or another program's",
                      f->path);
    return rc;
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
    XXH3_freeState(f->hash);
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

struct slu_u128 slu_workfile_mix(struct slu_u128 ids, struct slu_u128 id)
{
    uint8_t b[32];

    slu_put_le64(b, ids.lo);
    slu_put_le64(b + 8, ids.hi);
    slu_put_le64(b + 16, id.lo);
    slu_put_le64(b + 24, id.hi);
    return slu_hash128(b, sizeof b);
}

/* The first key=value in which two texts differ. */
static int param_differs(const struct slu_workfile *f, const char *want,
                         struct slu_err *err)
{
    const char *a = f->param, *b = want;

    for (;;) {
        size_t n = strcspn(a, " "), m = strcspn(b, " ");
        if (n != m || memcmp(a, b, n))
            return slu_fail(err, SLU_E_MISMATCH,
                            "%s: was made with %.*s, and this is %.*s", f->path,
                            (int)(n ? n : 6), n ? a : "others", (int)(m ? m : 6),
                            m ? b : "others");
        if (!a[n] && !b[m])
            return SLU_OK;
        a += n + (a[n] != 0);
        b += m + (b[m] != 0);
    }
}

int slu_workfile_match(const struct slu_workfile *f,
                       const struct slu_workfile_head *want,
                       const struct slu_u128 *inputs, struct slu_err *err)
{
    const struct slu_workfile_head *h = &f->head;

    if (h->part != want->part || h->of != want->of)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: is part %llu/%llu, and this %llu/%llu", f->path,
                        (unsigned long long)h->part, (unsigned long long)h->of,
                        (unsigned long long)want->part, (unsigned long long)want->of);
    int rc = param_differs(f, want->param, err);
    if (rc)
        return rc;
    if (memcmp(h->fingerprint, want->fingerprint, 16))
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: was made with another tokenizer; its ids mean something "
                        "else",
                        f->path);
    if (inputs && slu_u128_cmp(h->inputs, *inputs))
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: was made from other files than those that are there now; "
                        "remove it and run its phase again",
                        f->path);
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
    if (!f->hash)
        f->hash = XXH3_createState();
    if (!f->buf)
        f->buf = malloc(STEP);
    if (!f->hash || !f->buf)
        return slu_fail_nomem(err, STEP);
    XXH3_128bits_reset(f->hash);
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
    XXH3_128bits_update(f->hash, f->buf + keep, n * 8);
    to_host(f->buf + keep, n);
    f->left -= n * 8;
    f->len += n;
    return SLU_OK;
}

int slu_workfile_next(struct slu_workfile *f, size_t n, const uint64_t **v,
                      struct slu_err *err)
{
    if (f->len - f->pos < n) {
        int rc = refill(f, err);
        if (rc)
            return rc;
    }
    if (f->len - f->pos >= n && n) {
        *v = f->buf + f->pos;
        f->pos += n;
        return SLU_OK;
    }
    XXH128_hash_t h = XXH3_128bits_digest(f->hash);
    const struct slu_u128 got = {h.low64, h.high64};
    if (f->len != f->pos || slu_u128_cmp(got, f->section[f->at].hash))
        return slu_workfile_damaged(f, err);
    return SLU_EOF;
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
    uint64_t n;
    int rc = slu_workfile_get(f, 1, &n, err);

    slu_buf_clear(out);
    if (rc == SLU_OK && n > slu_workfile_left(f) * 8)
        rc = slu_workfile_damaged(f, err);
    if (rc == SLU_OK)
        rc = slu_buf_reserve(out, (n + 7) & ~UINT64_C(7), err);
    if (rc == SLU_OK)
        rc = slu_workfile_get(f, (n + 7) / 8, (uint64_t *)(void *)out->data, err);
    if (rc == SLU_OK)
        out->len = n;
    return rc;
}

uint64_t slu_workfile_left(const struct slu_workfile *f)
{
    return f->left / 8 + f->len - f->pos;
}

int slu_workfile_end(struct slu_workfile *f, struct slu_err *err)
{
    const uint64_t *v;
    int rc = slu_workfile_left(f) ? slu_workfile_damaged(f, err)
                                  : slu_workfile_next(f, 1, &v, err);

    return rc == SLU_EOF ? SLU_OK : rc;
}
