/* store.c - for each ordinal some numbers and a few words, which can be read in any
 * order. One process keeps them in two temporary files, each with a buffer. With files
 * they are in two sections: the numbers, written as they come; and for each ordinal the
 * position and count of its numbers, its words, and XXH3-64 of these. All values in
 * files are checked. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/le.h"
#include "lib/flow/table_private.h"
#include "lib/flow/workfile_stage.h"

enum { MOST_BUF = 1 << 20, WINDOW = 1 << 13 };
enum { ENTRY = sizeof(struct slu_stored) / 8 };

/* Numbers that are appended and can be read anywhere; the last of them are in
 * memory. */
struct tail {
    int fd;
    uint64_t *buf;
    size_t n, cap;
    uint64_t n_file; /* numbers in the file */
};

/* The file of a part. */
struct part {
    char *path;
    int fd;             /* -1: not open */
    uint64_t off[2];    /* offsets of its two sections, in bytes */
    uint64_t n_word[2]; /* length of each section, in numbers */
};

struct slu_store {
    struct tail number, entry;
    uint64_t n; /* number of ordinals */
    struct part *part;
    uint64_t n_part;
    size_t cap_part;
    struct part *open; /* if more files are needed than may be open: the last one */
};

/* ---- temporary files ---- */

static int flush(const struct slu_table *t, struct tail *x, struct slu_err *err)
{
    int rc = x->n && x->fd < 0 ? slu_tmpfile(&x->fd, t->cfg.tmpdir, err) : SLU_OK;

    if (!rc && slu_write_full(x->fd, x->buf, 8 * x->n, err))
        rc = slu_err_at(err, "%s: cannot hold the data that exceeds memory",
                        t->cfg.tmpdir);
    x->n_file += x->n;
    x->n = 0;
    return rc;
}

static int append(const struct slu_table *t, struct tail *x, const uint64_t *v,
                  uint64_t n, struct slu_err *err)
{
    int rc = SLU_OK;

    if (!x->buf && !(x->buf = malloc(8 * x->cap)))
        return slu_fail_nomem(err, 8 * x->cap);
    while (n && !rc) {
        size_t some = x->cap - x->n < n ? x->cap - x->n : (size_t)n;
        memcpy(x->buf + x->n, v, 8 * some);
        x->n += some;
        v += some;
        n -= some;
        if (x->n == x->cap)
            rc = flush(t, x, err);
    }
    return rc;
}

static int get(const struct slu_table *t, const struct tail *x, uint64_t from, size_t n,
               uint64_t *v, struct slu_err *err)
{
    if (from > x->n_file + x->n || n > x->n_file + x->n - from)
        return slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged",
                        t->cfg.tmpdir);
    size_t some = from >= x->n_file      ? 0
                  : n < x->n_file - from ? n
                                         : (size_t)(x->n_file - from);
    if (some && slu_pread_full(x->fd, v, 8 * some, 8 * from, err))
        return slu_err_at(err, "temporary file in %s", t->cfg.tmpdir);
    if (n > some)
        memcpy(v + some, x->buf + (from + some - x->n_file), 8 * (n - some));
    return SLU_OK;
}

/* ---- making ---- */

int slu_store_new(struct slu_table *t, struct slu_err *err)
{
    struct slu_store *s = calloc(1, sizeof *s);
    uint64_t cap = t->cfg.budget_byte / 2;

    t->store = s;
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    /* While a file is written, all memory is for the entries, because the numbers are
     * in the file already. */
    cap = t->cfg.out ? t->cfg.budget_byte : cap < MOST_BUF ? cap : MOST_BUF;
    s->number.fd = s->entry.fd = -1;
    s->number.cap = s->entry.cap = cap / 8;
    return SLU_OK;
}

void slu_store_free(struct slu_store *s)
{
    if (!s)
        return;
    for (uint64_t i = 0; i < s->n_part; i++) {
        if (s->part[i].fd >= 0)
            close(s->part[i].fd);
        free(s->part[i].path);
    }
    for (struct tail *x = &s->number; x <= &s->entry; x++) {
        if (x->fd >= 0)
            close(x->fd);
        free(x->buf);
    }
    free(s->part);
    free(s);
}

uint64_t slu_store_spilled(const struct slu_store *s)
{
    return 8 * (s->number.n_file + s->entry.n_file);
}

int slu_store_put(struct slu_table *t, const uint64_t *word, const uint64_t *v,
                  uint64_t n, struct slu_err *err)
{
    struct slu_store *s = t->store;
    struct slu_workfile_out *o = t->cfg.out;
    struct slu_stored e = {
        o ? slu_workfile_tell(o) : s->number.n_file + s->number.n, n, {0}, 0};

    memcpy(e.word, word, t->spec->n_word * sizeof *word);
    e.check = o ? slu_hash64(&e, offsetof(struct slu_stored, check)) : 0;
    s->n++;
    int rc = o ? slu_workfile_put(o, v, n, err) : append(t, &s->number, v, n, err);
    return rc ? rc : append(t, &s->entry, &e.off, ENTRY, err);
}

int slu_store_write(struct slu_table *t, struct slu_workfile_out *o, uint64_t first,
                    struct slu_err *err)
{
    const struct tail *x = &t->store->entry;
    uint64_t v[512], all = x->n_file + x->n;
    int rc = slu_workfile_section(o, first + 1, err);

    for (uint64_t at = 0; at < all && !rc; at += sizeof v / 8) {
        size_t n = all - at < sizeof v / 8 ? (size_t)(all - at) : sizeof v / 8;
        rc = get(t, x, at, n, v, err);
        if (!rc)
            rc = slu_workfile_put(o, v, n, err);
    }
    return rc;
}

/* ---- files ---- */

int slu_store_add(struct slu_table *t, struct slu_workfile *f, uint64_t first,
                  struct slu_err *err)
{
    struct slu_store *s = t->store;
    struct slu_u128 hash;
    int rc = slu_grow(&s->part, &s->cap_part, s->n_part + 1, sizeof *s->part, err);

    if (rc)
        return rc;
    struct part *p = &s->part[s->n_part];
    *p = (struct part){.fd = -1};
    for (unsigned i = 0; i < 2; i++) {
        slu_workfile_extent(f, first + i, &p->off[i], &p->n_word[i], &hash);
        p->n_word[i] /= 8;
    }
    p->path = strdup(slu_workfile_path(f));
    if (!p->path)
        return slu_fail_nomem(err, 1);
    s->n_part++;
    if (s->n_part < t->cfg.max_file)
        p->fd = slu_workfile_take(f);
    s->n += p->n_word[1] / ENTRY;
    return p->n_word[1] % ENTRY || s->n != t->cfg.base[s->n_part]
               ? slu_work_damaged(p->path, err)
               : SLU_OK;
}

static struct part *part_of(const struct slu_table *t, uint64_t ordinal)
{
    const uint64_t *base = t->cfg.base;
    uint64_t lo = 0, hi = t->store->n_part;

    while (hi - lo > 1) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (base[mid] <= ordinal)
            lo = mid;
        else
            hi = mid;
    }
    return &t->store->part[lo];
}

/* Reads n numbers of a section of the part's file. */
static int read_part(struct slu_store *s, struct part *p, unsigned section,
                     uint64_t from, size_t n, uint64_t *v, struct slu_err *err)
{
    if (from > p->n_word[section] || n > p->n_word[section] - from)
        return slu_work_damaged(p->path, err);
    if (p->fd < 0) {
        if (s->open) {
            close(s->open->fd);
            s->open->fd = -1;
        }
        s->open = p;
        p->fd = open(p->path, O_RDONLY | O_CLOEXEC);
        if (p->fd < 0) {
            s->open = NULL;
            return slu_fail_errno(err, "%s", p->path);
        }
    }
    if (slu_pread_full(p->fd, v, 8 * n, p->off[section] + 8 * from, err))
        return slu_err_at(err, "%s", p->path);
    for (size_t i = 0; __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ && i < n; i++)
        v[i] = slu_le64(&v[i]);
    return SLU_OK;
}

/* ---- reading ---- */

int slu_store_look(struct slu_table *t, uint64_t from, size_t n, struct slu_stored *to,
                   struct slu_err *err)
{
    struct slu_store *s = t->store;

    if (from > s->n || n > s->n - from)
        return slu_fail(err, SLU_E_FORMAT, "%s: no such ordinal", t->spec->name);
    if (!t->files)
        return get(t, &s->entry, from * ENTRY, n * ENTRY, &to->off, err);
    while (n) {
        struct part *p = part_of(t, from);
        const uint64_t k = (uint64_t)(p - s->part), left = t->cfg.base[k + 1] - from;
        size_t some = n < left ? n : (size_t)left;
        int rc = read_part(s, p, 1, (from - t->cfg.base[k]) * ENTRY, some * ENTRY,
                           &to->off, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < some; i++)
            if (slu_hash64(&to[i], offsetof(struct slu_stored, check)) != to[i].check ||
                to[i].off > p->n_word[0] || to[i].n > p->n_word[0] - to[i].off)
                return slu_work_damaged(p->path, err);
        from += some;
        to += some;
        n -= some;
    }
    return SLU_OK;
}

/* Checks all numbers of an ordinal, one window after another. */
static int check(struct slu_store *s, struct part *p, const struct slu_stored *e,
                 struct slu_err *err)
{
    struct slu_hasher *h = NULL;
    uint64_t *v = malloc(8 * WINDOW);
    int rc = v ? slu_hasher_new(&h, err) : slu_fail_nomem(err, 8 * WINDOW);

    for (uint64_t at = 0; at < e->n && !rc; at += WINDOW) {
        size_t n = e->n - at < WINDOW ? (size_t)(e->n - at) : WINDOW;
        rc = read_part(s, p, 0, e->off + at, n, v, err);
        if (!rc)
            slu_hasher_add(h, v, 8 * n);
    }
    const struct slu_u128 is = {e->word[0], e->word[1]};
    if (!rc && slu_u128_cmp(slu_hasher_end(h), is))
        rc = slu_work_damaged(p->path, err);
    slu_hasher_free(h);
    free(v);
    return rc;
}

int slu_store_read(struct slu_table *t, uint64_t ordinal, const struct slu_stored *e,
                   uint64_t from, size_t n, uint64_t *v, struct slu_err *err)
{
    struct slu_store *s = t->store;

    if (!t->files)
        return get(t, &s->number, e->off + from, n, v, err);
    struct part *p = part_of(t, ordinal);
    int rc = !from && n < e->n ? check(s, p, e, err) : SLU_OK;
    if (!rc)
        rc = read_part(s, p, 0, e->off + from, n, v, err);
    const struct slu_u128 is = {e->word[0], e->word[1]};
    if (!rc && n == e->n && slu_u128_cmp(slu_hash128(v, 8 * n), is))
        rc = slu_work_damaged(p->path, err);
    return rc;
}
