/* permute_gather.c - a range of the order of all parts: the same cells of all scatter
 * files, merged. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "permute_gather_private.h"

enum { LEAST_BUFFER = 16 << 10, MOST_BUFFER = 1 << 20, HEAD = sizeof(struct slu_rec) };

/* ---- a cell of one file ---- */

static int damaged(const struct slu_gather *g, const struct slu_gather_run *r,
                   struct slu_err *err)
{
    return slu_fail(err, SLU_E_CHECKSUM,
                    "%s: damaged; remove it and run its phase again",
                    g->file[r - g->run].path);
}

/* At least n <= g->buffer_byte bytes at r->pos, if there are so many. */
static int fill(struct slu_gather *g, struct slu_gather_run *r, size_t n,
                struct slu_err *err)
{
    if (r->len - r->pos >= n || !r->left)
        return SLU_OK;
    memmove(r->buf, r->buf + r->pos, r->len - r->pos);
    r->len -= r->pos;
    r->pos = 0;
    size_t some = g->buffer_byte - r->len;
    some = some < r->left ? some : (size_t)r->left;
    const struct slu_gather_file *f = &g->file[r - g->run];
    int rc = slu_pread_full(f->fd, r->buf + r->len, some, r->off, err);
    if (rc)
        return slu_err_at(err, "%s", f->path);
    slu_hash_parts_add(r->hash, r->buf + r->len, some);
    r->len += some;
    r->off += some;
    r->left -= some;
    return SLU_OK;
}

/* The run's next record's key; SLU_EOF at its end, once it was found right. */
static int head(struct slu_gather *g, struct slu_gather_run *r, struct slu_err *err)
{
    struct slu_u128 before = r->rec.key;
    int rc = fill(g, r, HEAD, err);

    if (rc)
        return rc;
    if (r->pos == r->len) {
        struct slu_u128 got = slu_hash_parts_end(r->hash);
        const struct slu_gather_file *f = &g->file[r - g->run];
        if (slu_u128_cmp(got, r->want))
            return damaged(g, r, err);
        if (r->n_rec == r->n_want)
            return SLU_EOF;
        return slu_fail(err, SLU_E_CONSERVATION,
                        "%s: has %llu sequences where it says that there are %llu; "
                        "remove it and run its phase again",
                        f->path, (unsigned long long)r->n_rec,
                        (unsigned long long)r->n_want);
    }
    if (r->len - r->pos < HEAD)
        return damaged(g, r, err);
    memcpy(&r->rec, r->buf + r->pos, HEAD);
    uint64_t there = r->len - r->pos + r->left;
    if (r->rec.n_byte > there || slu_rec_size(r->rec.n_byte) > there ||
        (r->n_rec && slu_u128_cmp(r->rec.key, before) < 0))
        return damaged(g, r, err);
    r->n_rec++;
    return SLU_OK;
}

/* Appends the record at hand to out: its number of bytes, its file, the bytes, zeros up
 * to a multiple of 8. */
static int take(struct slu_gather *g, struct slu_gather_run *r, struct slu_buf *out,
                struct slu_err *err)
{
    uint64_t h[2] = {r->rec.n_byte, (uint64_t)(r - g->run)};
    size_t left = slu_rec_size(r->rec.n_byte) - HEAD;
    int rc = slu_buf_reserve(out, sizeof h + left, err);

    r->pos += HEAD;
    if (rc == SLU_OK)
        rc = slu_buf_append(out, h, sizeof h, err);
    while (rc == SLU_OK && left) {
        size_t n = r->len - r->pos < left ? r->len - r->pos : left;
        if (n)
            rc = slu_buf_append(out, r->buf + r->pos, n, err);
        r->pos += n;
        left -= n;
        if (rc == SLU_OK && left)
            rc = fill(g, r, 1, err);
    }
    return rc;
}

/* ---- the heap of runs ---- */

static bool before(const struct slu_gather *g, uint32_t a, uint32_t b)
{
    int c = slu_u128_cmp(g->run[a].rec.key, g->run[b].rec.key);
    return c ? c < 0 : a < b;
}

static void sift(struct slu_gather *g, size_t i)
{
    uint32_t v = g->heap[i];

    for (size_t k; (k = 2 * i + 1) < g->n_heap; i = k) {
        if (k + 1 < g->n_heap && before(g, g->heap[k + 1], g->heap[k]))
            k++;
        if (!before(g, g->heap[k], v))
            break;
        g->heap[i] = g->heap[k];
    }
    g->heap[i] = v;
}

/* The first run goes on, or leaves the heap. */
static int advance(struct slu_gather *g, struct slu_err *err)
{
    int rc = head(g, &g->run[g->heap[0]], err);

    if (rc == SLU_EOF)
        g->heap[0] = g->heap[--g->n_heap];
    else if (rc)
        return rc;
    if (g->n_heap)
        sift(g, 0);
    return SLU_OK;
}

/* Begins to merge a cell. */
static int begin_cell(struct slu_gather *g, unsigned bucket, uint64_t range,
                      struct slu_err *err)
{
    uint64_t near = range - g->cfg.part;
    int rc = SLU_OK;

    g->n_heap = 0;
    for (uint64_t i = 0; i < g->n_file && rc == SLU_OK; i++) {
        struct slu_gather_run *r = &g->run[i];
        struct slu_gather_extent e, *at = &e;
        if (near < NEAR)
            at = &g->file[i].extent[bucket * NEAR + near];
        else
            rc = slu_gather_extent(g, i, bucket, range, &e, err);
        if (rc)
            break;
        if (at->n_byte == 0 && at->n_seq == 0)
            continue;
        r->off = at->off_byte;
        r->left = at->n_byte;
        r->want = at->hash;
        r->n_want = at->n_seq;
        r->n_rec = 0;
        r->pos = r->len = 0;
        slu_hash_parts_clear(r->hash);
        rc = head(g, r, err);
        if (rc == SLU_OK)
            g->heap[g->n_heap++] = (uint32_t)i;
        else if (rc == SLU_EOF)
            rc = SLU_OK;
    }
    for (size_t i = g->n_heap / 2; i-- > 0 && rc == SLU_OK;)
        sift(g, i);
    return rc;
}

/* ---- what comes next ---- */

int slu_gather_begin(struct slu_gather *g, const uint64_t *first, const uint64_t *n_seq,
                     struct slu_err *err)
{
    g->buffer_byte = (size_t)(g->budget_byte / (g->n_file ? g->n_file : 1));
    g->buffer_byte &= ~(size_t)4095;
    if (g->buffer_byte > MOST_BUFFER)
        g->buffer_byte = MOST_BUFFER;
    if (g->buffer_byte < LEAST_BUFFER)
        return slu_fail(
            err, SLU_E_LIMIT,
            "merging %llu files takes %llu MiB of memory; give more with -M",
            (unsigned long long)g->n_file,
            (unsigned long long)((g->n_file * LEAST_BUFFER * 4 >> 20) + 1));
    g->run = calloc(g->n_file, sizeof *g->run);
    g->heap = calloc(g->n_file, sizeof *g->heap);
    if (!g->run || !g->heap)
        return slu_fail_nomem(err, g->n_file * sizeof *g->run);
    for (uint64_t i = 0; i < g->n_file; i++) {
        struct slu_gather_file *f = &g->file[i];
        int rc = slu_hash_parts_new(&g->run[i].hash, err);
        if (rc)
            return rc;
        g->run[i].buf = malloc(g->buffer_byte);
        if (!g->run[i].buf)
            return slu_fail_nomem(err, g->buffer_byte);
        f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
        if (f->fd < 0)
            return slu_fail_errno(err, "%s", f->path);
    }
    for (unsigned b = 0; b < g->n_bucket; b++) {
        uint64_t from = slu_gather_before(g, b, g->cfg.part);
        g->skip[b] = first ? first[b] - from : 0;
        g->want[b] = n_seq ? n_seq[b] : slu_gather_before(g, b, g->cfg.part + 1) - from;
    }
    g->bucket = 0;
    g->in_cell = false;
    return SLU_OK;
}

/* Until the heap has a record of a bucket of which some are wanted; SLU_EOF at the end.
 */
static int to_wanted(struct slu_gather *g, struct slu_err *err)
{
    int rc = SLU_OK;

    while (rc == SLU_OK) {
        if (g->bucket == g->n_bucket)
            return SLU_EOF;
        if (g->want[g->bucket] == 0) {
            g->bucket++;
            g->in_cell = false;
            g->n_heap = 0;
        } else if (!g->in_cell) {
            g->in_cell = true;
            g->range = g->cfg.part;
            rc = begin_cell(g, g->bucket, g->range, err);
        } else if (g->n_heap) {
            return SLU_OK;
        } else if (++g->range < g->n_range) {
            rc = begin_cell(g, g->bucket, g->range, err);
        } else {
            rc = slu_fail(err, SLU_E_CONSERVATION,
                          "%s: the scatter files have fewer sequences than they say; "
                          "run --phase scatter again",
                          g->cfg.work);
        }
    }
    return rc;
}

static int by_bytes(const void *a, const void *b)
{
    const uint64_t *x = *(const uint64_t *const *)a, *y = *(const uint64_t *const *)b;
    uint64_t n = x[0] < y[0] ? x[0] : y[0];
    int c = memcmp(x + 2, y + 2, n);

    c = c ? c : (x[0] > y[0]) - (x[0] < y[0]);
    return c ? c : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Orders the n records of equal keys in rec from `from` on by their bytes, as the
 * sorter does. */
static int order_equals(struct slu_buf *rec, size_t from, size_t n, struct slu_err *err)
{
    size_t n_byte = rec->len - from;
    uint8_t *copy = malloc(n_byte);
    const uint64_t **at = malloc(n * sizeof *at);

    if (!copy || !at) {
        free(copy);
        free(at);
        return slu_fail_nomem(err, n_byte);
    }
    memcpy(copy, rec->data + from, n_byte);
    const uint8_t *p = copy;
    for (size_t i = 0; i < n; i++) {
        at[i] = (const uint64_t *)(const void *)p;
        p += 16 + ((at[i][0] + 7) & ~UINT64_C(7));
    }
    qsort(at, n, sizeof *at, by_bytes);
    uint8_t *to = rec->data + from;
    for (size_t i = 0; i < n; i++) {
        size_t size = 16 + ((at[i][0] + 7) & ~UINT64_C(7));
        memcpy(to, at[i], size);
        to += size;
    }
    free(copy);
    free(at);
    return SLU_OK;
}

/* Of the n records in rec from `from` on, leaves those that are wanted. */
static int keep(struct slu_gather *g, struct slu_buf *rec, size_t from, size_t n,
                uint64_t *weight, struct slu_err *err)
{
    size_t at = from, begin = from;

    for (size_t i = 0; i < n && g->want[g->bucket]; i++) {
        uint64_t n_byte, len_tok, n_seg;
        memcpy(&n_byte, rec->data + at, sizeof n_byte);
        const uint8_t *p = rec->data + at + 16;
        at += 16 + ((n_byte + 7) & ~UINT64_C(7));
        if (g->skip[g->bucket]) {
            g->skip[g->bucket]--;
            begin = at;
            continue;
        }
        int rc = slu_seqrec_peek(p, n_byte, &len_tok, &n_seg, err);
        if (rc)
            return rc;
        uint64_t n_tok_byte = len_tok * g->header->tok_bytes;
        *weight += len_tok + 64 + 16 * n_seg +
                   (n_byte > n_tok_byte ? n_byte - n_tok_byte : 0) / 4;
        g->want[g->bucket]--;
    }
    if (begin > from)
        memmove(rec->data + from, rec->data + begin, at - begin);
    rec->len = from + (at - begin);
    return SLU_OK;
}

int slu_gather_fetch(struct slu_gather *g, struct slu_buf *rec, uint64_t n_tok,
                     struct slu_err *err)
{
    uint64_t weight = 0;
    int rc = SLU_OK;

    slu_buf_clear(rec);
    while (rc == SLU_OK && weight < n_tok) {
        rc = to_wanted(g, err);
        if (rc)
            break;
        const struct slu_u128 key = g->run[g->heap[0]].rec.key;
        size_t n = 0, from = rec->len;
        for (; rc == SLU_OK && g->n_heap &&
               !slu_u128_cmp(key, g->run[g->heap[0]].rec.key);
             n++) {
            rc = take(g, &g->run[g->heap[0]], rec, err);
            if (rc == SLU_OK)
                rc = advance(g, err);
        }
        if (rc == SLU_OK && n > 1)
            rc = order_equals(rec, from, n, err);
        if (rc == SLU_OK)
            rc = keep(g, rec, from, n, &weight, err);
    }
    if (rc < 0)
        return rc;
    return rec->len ? SLU_OK : SLU_EOF;
}

int slu_gather_unpack(const struct slu_gather *g, const struct slu_buf *rec,
                      struct slu_batch *b, struct slu_err *err)
{
    slu_batch_clear(b);
    for (size_t at = 0; at < rec->len;) {
        uint64_t h[2];
        size_t seg = b->n_seg;
        memcpy(h, rec->data + at, sizeof h);
        at += sizeof h;
        int rc = slu_seqrec_add(b, rec->data + at, h[0], err);
        if (rc)
            return rc;
        at += (h[0] + 7) & ~UINT64_C(7);
        const struct slu_gather_file *f = &g->file[h[1]];
        for (; seg < b->n_seg; seg++) {
            uint32_t *d = &b->seg[seg].domain;
            if (*d == SLU_NO_DOMAIN)
                continue;
            if (*d >= f->stream.n_domain)
                return slu_fail(err, SLU_E_FORMAT, "%s: a domain has no name", f->path);
            *d = f->stream.domain[*d];
        }
    }
    return SLU_OK;
}

int slu_gather_next(struct slu_gather *g, struct slu_batch *b, uint64_t n_tok,
                    struct slu_err *err)
{
    int rc = slu_gather_fetch(g, &g->fetched, n_tok, err);

    slu_batch_clear(b);
    return rc ? rc : slu_gather_unpack(g, &g->fetched, b, err);
}
