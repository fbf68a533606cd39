/* row_file.c - reads rows from files: lists one file after another; other rows merged
 * by a tree of losers, or poured into the sorter. All values in files are checked. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/le.h"
#include "lib/flow/table_private.h"
#include "lib/flow/workfile_stage.h"

enum { LEAST_BUF = 16 << 10, MOST_BUF = 1 << 20, ALONE_BUF = 256 << 10 };

struct slu_row_file {
    const struct slu_table_cfg *cfg;
    char *path;
    int fd;                       /* -1: not open */
    uint64_t part, longest, most; /* bytes of the part, longest row, and most bytes
                                     of an extent */
    uint64_t off_byte; /* offset of the next read; extents follow one another */
    struct extent {
        uint64_t n_byte;
        struct slu_u128 hash;
    } * extent;
    uint64_t n_extent, at_extent;
    uint64_t left_byte; /* bytes of the current extent that were not yet read */
    struct slu_hasher *hash;
    uint8_t *buf; /* whole rows, at most cap bytes */
    size_t pos, len, cap;
    size_t size; /* of the current row, at pos */
    bool ended;
    struct slu_row row;
};

/* ---- the files ---- */

int slu_table_add(struct slu_table *t, struct slu_workfile *f, uint64_t part,
                  uint64_t first, uint64_t n, uint64_t longest, struct slu_err *err)
{
    if (t->spec->kind == SLU_STORE)
        return slu_store_add(t, f, first, err);
    struct slu_row_file *s = calloc(1, sizeof *s);
    uint64_t off;
    int rc = s ? slu_grow(&t->file, &t->cap_file, t->n_file + 1, sizeof s, err)
               : slu_fail_nomem(err, sizeof *s);

    if (rc) {
        free(s);
        return rc;
    }
    t->file[t->n_file++] = s;
    s->cfg = &t->cfg;
    s->fd = -1;
    s->part = part;
    s->n_extent = n;
    s->path = strdup(slu_workfile_path(f));
    s->extent = malloc((n + 1) * sizeof *s->extent);
    if (!s->path || !s->extent)
        return slu_fail_nomem(err, n * sizeof *s->extent);
    for (uint64_t i = 0; i < n; i++) {
        struct extent *e = &s->extent[i];
        slu_workfile_extent(f, first + i, &off, &e->n_byte, &e->hash);
        s->off_byte = i ? s->off_byte : off;
        s->most = e->n_byte > s->most ? e->n_byte : s->most;
    }
    if (t->spec->n_word)
        longest = 8 * (uint64_t)t->spec->n_word;
    s->longest = longest < s->most ? longest : s->most;
    t->longest = s->longest > t->longest ? s->longest : t->longest;
    if (t->n_open < t->cfg.max_file) {
        s->fd = slu_workfile_take(f);
        t->n_open++;
    }
    return SLU_OK;
}

static void close_file(struct slu_table *t, struct slu_row_file *s)
{
    if (s->fd >= 0) {
        close(s->fd);
        t->n_open--;
    }
    s->fd = -1;
    slu_hasher_free(s->hash);
    s->hash = NULL;
    free(s->buf);
    s->buf = NULL;
}

void slu_table_free_files(struct slu_table *t)
{
    for (size_t i = 0; i < t->n_file; i++) {
        close_file(t, t->file[i]);
        free(t->file[i]->extent);
        free(t->file[i]->path);
        free(t->file[i]);
    }
    free(t->file);
    free(t->tree);
}

static void begin_extent(struct slu_row_file *s)
{
    s->left_byte = s->at_extent < s->n_extent ? s->extent[s->at_extent].n_byte : 0;
    slu_hasher_clear(s->hash);
}

static int open_file(struct slu_table *t, struct slu_row_file *s, size_t cap,
                     struct slu_err *err)
{
    s->cap = cap < s->most ? cap : s->most;
    s->cap = s->cap > s->longest ? s->cap : s->longest;
    if (s->fd < 0) {
        s->fd = open(s->path, O_RDONLY | O_CLOEXEC);
        if (s->fd < 0)
            return slu_fail_errno(err, "%s", s->path);
        t->n_open++;
    }
    s->buf = malloc(s->cap + 1);
    if (!s->buf)
        return slu_fail_nomem(err, s->cap);
    int rc = slu_hasher_new(&s->hash, err);
    if (!rc)
        begin_extent(s);
    return rc;
}

/* ---- rows of one file ---- */

/* Ensures n bytes at pos; all bytes of a row are in one extent. */
static int need(struct slu_row_file *s, uint64_t n, struct slu_err *err)
{
    size_t have = s->len - s->pos;

    if (have >= n)
        return SLU_OK;
    if (n > s->cap || n - have > s->left_byte)
        return slu_work_damaged(s->path, err);
    memmove(s->buf, s->buf + s->pos, have);
    s->pos = 0;
    s->len = have;
    size_t room = s->cap - have, some = s->left_byte < room ? s->left_byte : room;
    if (slu_pread_full(s->fd, s->buf + have, some, s->off_byte, err))
        return slu_err_at(err, "%s", s->path);
    slu_hasher_add(s->hash, s->buf + have, some);
    s->off_byte += some;
    s->left_byte -= some;
    s->len += some;
    if (s->cfg->read)
        s->cfg->read(s->cfg->read_ctx, some);
    return SLU_OK;
}

/* Checks the checksum of each extent that ends here and goes to the next. SLU_EOF: no
 * extent is left. */
static int turn(struct slu_row_file *s, struct slu_err *err)
{
    while (s->pos == s->len && !s->left_byte) {
        if (s->at_extent == s->n_extent)
            return SLU_EOF;
        if (slu_u128_cmp(slu_hasher_end(s->hash), s->extent[s->at_extent].hash))
            return slu_work_damaged(s->path, err);
        s->at_extent++;
        begin_extent(s);
    }
    return SLU_OK;
}

static int take_words(struct slu_row_file *s, unsigned n, struct slu_err *err)
{
    int rc = need(s, 8 * (uint64_t)n, err);

    if (rc)
        return rc;
    uint64_t *w = (uint64_t *)(void *)(s->buf + s->pos);
    for (unsigned i = 0; i < n; i++)
        w[i] = slu_le64(&w[i]);
    s->size = 8 * (size_t)n;
    s->row = (struct slu_row){{n > 1 ? w[1] : 0, w[0]}, w, s->size, s->part};
    return SLU_OK;
}

static int take_bytes(struct slu_row_file *s, struct slu_err *err)
{
    int rc = need(s, SLU_ROW_HEAD, err);

    if (rc)
        return rc;
    const uint8_t *p = s->buf + s->pos;
    uint64_t n = slu_le64(p + 16);
    if (n > s->cap)
        return slu_work_damaged(s->path, err);
    s->size = SLU_ROW_HEAD + slu_row_pad8(n);
    s->row.key = (struct slu_u128){slu_le64(p), slu_le64(p + 8)};
    rc = need(s, s->size, err);
    s->row.p = s->buf + s->pos + SLU_ROW_HEAD;
    s->row.n_byte = n;
    s->row.part = s->part;
    return rc;
}

/* Reads the next row of a file to s->row. */
static int advance(const struct slu_table *t, struct slu_row_file *s,
                   struct slu_err *err)
{
    const struct slu_u128 before = s->row.key;
    const bool first = !s->size;

    s->pos += s->size;
    int rc = turn(s, err);
    if (!rc)
        rc = t->spec->n_word ? take_words(s, t->spec->n_word, err) : take_bytes(s, err);
    if (!rc && !first && t->spec->kind == SLU_ROWS &&
        slu_u128_cmp(before, s->row.key) > 0)
        rc = slu_work_damaged(s->path, err);
    return rc;
}

/* ---- merging ---- */

static int cmp_rows(unsigned n_word, const struct slu_row *a, const struct slu_row *b)
{
    int c = slu_u128_cmp(a->key, b->key);

    if (c)
        return c;
    if (!n_word) {
        c = memcmp(a->p, b->p, a->n_byte < b->n_byte ? a->n_byte : b->n_byte);
        return c ? c : (a->n_byte > b->n_byte) - (a->n_byte < b->n_byte);
    }
    const uint64_t *v = a->p, *w = b->p;
    for (unsigned i = 2; i < n_word; i++)
        if (v[i] != w[i])
            return v[i] < w[i] ? -1 : 1;
    return 0;
}

/* Whether file a comes before b; number n_file comes before all, while the tree is
 * built. */
static bool before(const struct slu_table *t, size_t a, size_t b)
{
    if (a == t->n_file || b == t->n_file)
        return a == t->n_file;
    const struct slu_row_file *s = t->file[a], *u = t->file[b];
    if (s->ended || u->ended)
        return !s->ended;
    int c = cmp_rows(t->spec->n_word, &s->row, &u->row);
    return c < 0 || (c == 0 && a < b);
}

/* File i has a new row: finds the new winner. */
static void replay(struct slu_table *t, size_t i)
{
    for (size_t at = (i + t->n_file) / 2; at > 0; at /= 2)
        if (before(t, t->tree[at], i)) {
            size_t loser = i;
            i = t->tree[at];
            t->tree[at] = loser;
        }
    t->tree[0] = i;
}

static int advance_or_end(struct slu_table *t, struct slu_row_file *s,
                          struct slu_err *err)
{
    int rc = advance(t, s, err);

    s->ended = rc == SLU_EOF;
    if (s->ended)
        close_file(t, s);
    return s->ended ? SLU_OK : rc;
}

static int begin_merge(struct slu_table *t, size_t cap, struct slu_err *err)
{
    int rc = SLU_OK;

    t->tree = malloc((t->n_file + 1) * sizeof *t->tree);
    if (!t->tree)
        return slu_fail_nomem(err, t->n_file * sizeof *t->tree);
    for (size_t i = 0; i < t->n_file && !rc; i++) {
        t->tree[i] = t->n_file;
        rc = open_file(t, t->file[i], cap, err);
        if (!rc)
            rc = advance_or_end(t, t->file[i], err);
    }
    for (size_t i = t->n_file; i-- > 0 && !rc;)
        replay(t, i);
    return rc;
}

static int next_merged(struct slu_table *t, struct slu_row *row, struct slu_err *err)
{
    if (!t->n_file)
        return SLU_EOF;
    struct slu_row_file *s = t->file[t->tree[0]];
    if (t->begun && !s->ended) {
        int rc = advance_or_end(t, s, err);
        if (rc)
            return rc;
        replay(t, t->tree[0]);
        s = t->file[t->tree[0]];
    }
    t->begun = true;
    *row = s->row;
    return s->ended ? SLU_EOF : SLU_OK;
}

/* ---- pouring ---- */

static int pour_file(struct slu_table *t, struct slu_row_file *s, size_t cap,
                     struct slu_err *err)
{
    int rc = open_file(t, s, cap, err);

    while (!rc) {
        rc = advance(t, s, err);
        if (!rc)
            rc = slu_table_add_row(t, &s->row, true, err);
    }
    close_file(t, s);
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int pour(struct slu_table *t, struct slu_err *err)
{
    uint64_t budget = t->cfg.budget_byte, share = budget / 8;
    size_t cap = share < LEAST_BUF   ? LEAST_BUF
                 : share > ALONE_BUF ? ALONE_BUF
                                     : (size_t)share;
    struct slu_sorter_cfg cfg = {.budget_byte =
                                     budget > (512 << 10) ? budget - cap : budget,
                                 .tmpdir = t->cfg.tmpdir,
                                 .n_threads = t->cfg.n_threads};
    int rc = slu_sorter_new(&t->sorter, &cfg, err);

    for (size_t i = 0; i < t->n_file && !rc; i++)
        rc = pour_file(t, t->file[i], cap, err);
    return rc ? rc : slu_sorter_seal(t->sorter, err);
}

/* ---- grouping ---- */

/* For n rows of a part: checks that they belong to the cell, and converts ordinals of
 * the part to ordinals of all parts. */
static bool take_local(const struct slu_table *t, uint64_t part, uint64_t *w, size_t n)
{
    const struct slu_table_cfg *c = &t->cfg;
    const unsigned n_word = t->spec->n_word, low = t->spec->low;
    const uint64_t base = c->base[part], n_ordinal = c->base[part + 1] - base;

    for (uint64_t *end = w + n * n_word; w < end; w += n_word) {
        for (unsigned m = t->spec->local; m; m &= m - 1) {
            uint64_t *v = &w[__builtin_ctz(m)];
            if ((*v >> low) % SLU_LOCAL >= n_ordinal)
                return false;
            *v += base << low;
        }
        if (slu_grouper_range(w[0], c->n_cell, t->spec->group_bits) != c->cell)
            return false;
    }
    return true;
}

/* Pours all whole rows in the buffer, at least one. */
static int pour_some(struct slu_table *t, struct slu_row_file *s, struct slu_err *err)
{
    const size_t size = 8 * (size_t)t->spec->n_word;
    int rc = turn(s, err);

    if (!rc)
        rc = need(s, size, err);
    if (rc)
        return rc;
    const size_t n = (s->len - s->pos) / size;
    uint64_t *w = (uint64_t *)(void *)(s->buf + s->pos);
    for (size_t i = 0; i < n * t->spec->n_word; i++)
        w[i] = slu_le64(&w[i]);
    s->pos += n * size;
    return take_local(t, s->part, w, n) ? slu_grouper_put(t->grouper, w, n, err)
                                        : slu_work_damaged(s->path, err);
}

/* Limits the number of cells so that the chunks of the existing rows are full. */
static uint64_t for_cells(const struct slu_table *t, uint64_t most)
{
    uint64_t n_byte = 64 << 10;

    for (size_t i = 0; i < t->n_file; i++)
        for (uint64_t k = 0; k < t->file[i]->n_extent; k++)
            n_byte += t->file[i]->extent[k].n_byte / 4 * 5;
    return n_byte < most ? n_byte : most;
}

int slu_table_pour_groups(struct slu_table *t, uint64_t grouper_byte, uint64_t buf_byte,
                          struct slu_err *err)
{
    const size_t cap = buf_byte < LEAST_BUF   ? LEAST_BUF
                       : buf_byte > ALONE_BUF ? ALONE_BUF
                                              : (size_t)buf_byte;
    int rc = slu_table_new_grouper(t, for_cells(t, grouper_byte), err);

    for (size_t i = 0; i < t->n_file && !rc; i++) {
        struct slu_row_file *s = t->file[i];
        rc = open_file(t, s, cap, err);
        while (!rc)
            rc = pour_some(t, s, err);
        close_file(t, s);
        rc = rc == SLU_EOF ? SLU_OK : rc;
    }
    return rc;
}

/* ---- all files ---- */

int slu_table_begin_files(struct slu_table *t, struct slu_err *err)
{
    uint64_t n = t->n_file ? t->n_file : 1, each = t->cfg.budget_byte / n,
             most = t->cfg.budget_byte / (t->spec->kind == SLU_LIST ? 1 : 2);

    t->at_file = 0;
    for (size_t i = 0; i < t->n_file; i++)
        if (t->file[i]->longest > most)
            return slu_advise(
                err, SLU_ADVISE_MEMORY,
                slu_fail(err, SLU_E_LIMIT,
                         "%s: has a row of %llu KiB; memory leaves %llu KiB for one",
                         t->file[i]->path,
                         (unsigned long long)(t->file[i]->longest >> 10),
                         (unsigned long long)(most >> 10)));
    if (t->spec->kind != SLU_ROWS || t->cfg.unsorted)
        return SLU_OK;
    const uint64_t most_buf = t->longest > MOST_BUF ? t->longest : MOST_BUF;
    each = (each < most_buf ? each : most_buf) & ~UINT64_C(7);
    if (n > t->cfg.max_file || each < LEAST_BUF || each < t->longest)
        return pour(t, err);
    return begin_merge(t, (size_t)each, err);
}

/* Leaves the rows of words that follow in the buffer to slu_table_next; the next
 * advance continues after the rows that slu_table_next has taken. */
static void leave_rows(struct slu_table *t, struct slu_row_file *s)
{
    t->rows = s->buf + s->pos + s->size;
    t->end_rows = t->spec->n_word ? s->buf + s->len : t->rows;
    t->part = s->part;
}

static void take_rows(struct slu_table *t, struct slu_row_file *s)
{
    if (!t->rows)
        return;
    s->pos = (size_t)(t->rows - s->buf);
    s->size = 0;
    t->rows = t->end_rows = NULL;
}

static int next_listed(struct slu_table *t, struct slu_row *row, struct slu_err *err)
{
    const size_t cap = t->cfg.budget_byte < ALONE_BUF ? LEAST_BUF : ALONE_BUF;
    int rc = SLU_EOF;

    for (; rc == SLU_EOF && t->at_file < t->n_file; t->at_file += rc == SLU_EOF) {
        struct slu_row_file *s = t->file[t->at_file];
        rc = s->buf ? SLU_OK : open_file(t, s, cap, err);
        take_rows(t, s);
        if (!rc)
            rc = advance(t, s, err);
        if (!rc) {
            *row = s->row;
            leave_rows(t, s);
        }
        if (rc == SLU_EOF)
            close_file(t, s);
    }
    return rc;
}

int slu_table_next_file(struct slu_table *t, struct slu_row *row, struct slu_err *err)
{
    if (t->spec->kind == SLU_LIST || t->cfg.unsorted)
        return next_listed(t, row, err);
    return t->sorter ? slu_table_sorted(t, row, true, err) : next_merged(t, row, err);
}
