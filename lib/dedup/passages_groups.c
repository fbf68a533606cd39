/* passages_groups.c - the records of cells that are not alone with their key. */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/passages_cells_private.h"
#include "lib/pipe.h"
#include "lib/order/radix.h"
#include "lib/order/sorter.h"

enum {
    BATCH_REC = 1 << 15, /* records that are grouped together: second-level cache */
    TABLE_BIT = 16,      /* bits of each table for a record, at least */
    STREAM_REC = 1 << 12 /* records of a large cell on their way to the sorter */
};

/* A record takes itself, both tables (twice that, rounded up) and its entry. */
#define REC_BYTE (sizeof(struct slu_keyed) + TABLE_BIT / 2 + sizeof(struct slu_entry))

struct job {
    size_t from, to; /* cells */
    bool large;      /* one that does not fit */
    struct slu_keyed *rec;
    struct slu_entry *entry;
    uint64_t *once, *twice;
    size_t n_rec;
    struct slu_buf out;
};

struct groups {
    struct slu_cells *c;
    const struct slu_cells_ops *ops;
    size_t next, cap_rec;
    unsigned n_threads;
    uint64_t sorter_byte;
    void **state; /* a worker each, and one for large cells */
};

/* ---- one batch ---- */

/* Leaves the records whose group may have another, in their order. */
static size_t drop_lonely(struct job *j, unsigned group_bits)
{
    unsigned bits = 10, shift = 64 - group_bits;
    size_t n = 0;

    while ((UINT64_C(1) << bits) < TABLE_BIT * j->n_rec)
        bits++;
    size_t words = (size_t)1 << (bits - 6);
    memset(j->once, 0, words * 8);
    memset(j->twice, 0, words * 8);
    for (size_t i = 0; i < j->n_rec; i++) {
        uint64_t x = (j->rec[i].hi >> shift) * 0x9e3779b97f4a7c15u >> (64 - bits);
        uint64_t bit = UINT64_C(1) << (x & 63), *w = &j->once[x >> 6];
        j->twice[x >> 6] |= *w & bit;
        *w |= bit;
    }
    for (size_t i = 0; i < j->n_rec; i++) {
        struct slu_keyed r = j->rec[i];
        uint64_t x = (r.hi >> shift) * 0x9e3779b97f4a7c15u >> (64 - bits);
        j->rec[n] = r;
        n += j->twice[x >> 6] >> (x & 63) & 1;
    }
    return n;
}

/* Sorts e[0, n) by the records' hi, lo and place: prefixes are hi, then lo, then ref.
 */
static void sort_entries(const struct slu_keyed *rec, struct slu_entry *e, size_t n,
                         unsigned stage)
{
    slu_entry_sort(e, n);
    for (size_t i = 0, j; stage < 2 && i < n; i = j) {
        for (j = i + 1; j < n && e[j].prefix == e[i].prefix; j++)
            ;
        if (j - i == 1)
            continue;
        for (size_t k = i; k < j; k++)
            e[k].prefix = stage ? e[k].ref : rec[e[k].ref].lo;
        sort_entries(rec, e + i, j - i, stage + 1);
    }
}

static int group_batch(struct groups *g, struct job *j, void *state,
                       struct slu_err *err)
{
    size_t n = drop_lonely(j, g->ops->group_bits);
    int rc = SLU_OK;

    for (size_t i = 0; i < n; i++)
        j->entry[i] = (struct slu_entry){j->rec[i].hi, i};
    sort_entries(j->rec, j->entry, n, 0);
    for (size_t i = 0; rc == SLU_OK && i < n; i++)
        rc = g->ops->feed(state, g->ops->n_tok, &j->rec[j->entry[i].ref], &j->out, err);
    return rc ? rc : g->ops->end(state, &j->out, err);
}

/* ---- one cell that does not fit ---- */

static int take(struct groups *g, struct slu_buf *out, struct slu_err *err)
{
    int rc = out->len ? g->ops->take(g->ops->ctx, out, err) : SLU_OK;

    slu_buf_clear(out);
    return rc;
}

static int to_sorter(struct groups *g, struct slu_sorter *s, size_t cell,
                     struct slu_keyed *buf, struct slu_err *err)
{
    struct slu_cells_cursor at = {.cell = cell};
    size_t n;

    for (;;) {
        int rc = slu_cells_read(g->c, &at, buf, STREAM_REC, &n, err);
        if (rc || n == 0)
            return rc ? rc : slu_sorter_seal(s, err);
        for (size_t i = 0; i < n; i++) {
            uint64_t val = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
                               ? __builtin_bswap64(buf[i].val)
                               : buf[i].val;
            const struct slu_piece piece = {&val, sizeof val};
            rc = slu_sorter_add(s, (struct slu_u128){buf[i].lo, buf[i].hi}, &piece, 1,
                                err);
            if (rc)
                return rc;
        }
    }
}

static int group_large(struct groups *g, struct job *j, struct slu_err *err)
{
    struct slu_sorter_cfg cfg = {g->sorter_byte, g->c->tmpdir, g->n_threads};
    void *state = g->state[g->n_threads];
    struct slu_keyed *buf = malloc(STREAM_REC * sizeof *buf);
    struct slu_sorter *s = NULL;
    struct slu_u128 key;
    const void *p;
    size_t n;
    int rc = buf ? slu_sorter_new(&s, &cfg, err)
                 : slu_fail_nomem(err, STREAM_REC * sizeof *buf);

    if (rc == SLU_OK)
        rc = to_sorter(g, s, j->from, buf, err);
    while (rc == SLU_OK) {
        rc = slu_sorter_next(s, &key, &p, &n, err);
        if (rc)
            break;
        struct slu_keyed r = {key.hi, key.lo, 0};
        memcpy(&r.val, p, sizeof r.val);
        if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
            r.val = __builtin_bswap64(r.val);
        rc = g->ops->feed(state, g->ops->n_tok, &r, &j->out, err);
        if (rc == SLU_OK && j->out.len >= 1 << 20)
            rc = take(g, &j->out, err);
    }
    if (rc == SLU_EOF)
        rc = g->ops->end(state, &j->out, err);
    g->c->file_byte += s ? slu_sorter_spilled(s) : 0;
    slu_sorter_free(s);
    free(buf);
    return rc;
}

/* ---- all of them ---- */

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct groups *g = ctx;
    struct job *j = job;
    const struct slu_cells *c = g->c;

    j->n_rec = 0;
    j->large = false;
    while (g->next < c->n_cell && c->cell[g->next].n_rec == 0)
        g->next++;
    if (g->next == c->n_cell)
        return SLU_EOF;
    j->from = j->to = g->next;
    if (c->cell[j->from].n_rec > g->cap_rec) {
        j->large = true;
        j->to = ++g->next;
        return SLU_OK;
    }
    while (j->to < c->n_cell && j->n_rec + c->cell[j->to].n_rec <= g->cap_rec &&
           (j->n_rec == 0 || j->n_rec + c->cell[j->to].n_rec <= BATCH_REC)) {
        struct slu_cells_cursor at = {.cell = j->to};
        size_t n;
        int rc =
            slu_cells_read(c, &at, j->rec + j->n_rec, c->cell[j->to].n_rec, &n, err);
        if (rc == SLU_OK && n != c->cell[j->to].n_rec)
            rc = slu_fail(err, SLU_E_TRUNCATED, "%s: the temporary file ends early",
                          c->tmpdir);
        if (rc)
            return rc;
        j->n_rec += n;
        j->to++;
    }
    g->next = j->to;
    return SLU_OK;
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct groups *g = ctx;
    struct job *j = job;

    return j->large ? SLU_OK : group_batch(g, j, g->state[worker], err);
}

static int emit(void *ctx, void *job, struct slu_err *err)
{
    struct groups *g = ctx;
    struct job *j = job;
    int rc = j->large ? group_large(g, j, err) : SLU_OK;

    return rc ? rc : take(g, &j->out, err);
}

static void job_release(struct job *j)
{
    free(j->rec);
    free(j->entry);
    free(j->once);
    slu_buf_release(&j->out);
}

static int job_init(struct job *j, size_t cap_rec, struct slu_err *err)
{
    size_t words = 16;

    while (words * 64 < TABLE_BIT * cap_rec)
        words *= 2;
    j->rec = malloc(cap_rec * sizeof *j->rec);
    j->entry = malloc(cap_rec * sizeof *j->entry);
    j->once = malloc(2 * words * sizeof *j->once);
    j->twice = j->once + words;
    return j->rec && j->entry && j->once ? SLU_OK
                                         : slu_fail_nomem(err, cap_rec * REC_BYTE);
}

int slu_cells_groups(struct slu_cells *c, const struct slu_cells_ops *ops,
                     uint64_t work_byte, unsigned n_threads, struct slu_err *err)
{
    static const struct slu_pipe_ops pipe = {produce, work, emit};
    struct groups g = {c, ops, 0, 0, n_threads, work_byte / 2, NULL};
    size_t per_rec = REC_BYTE + ops->out_byte, n_slots = n_threads + 1, largest = 0;
    int rc = slu_cells_seal(c, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < c->n_cell; i++)
        if (c->cell[i].n_rec > largest)
            largest = c->cell[i].n_rec;
    if (n_threads == 1)
        n_slots = 1;
    /* A slot for each thread where batches are still of a useful size, and hold a cell
     * of usual size. */
    size_t usual = c->n_rec / c->n_cell / 4 * 5;
    usual = usual > BATCH_REC ? usual : BATCH_REC;
    while (n_slots > 1 && work_byte / 2 / per_rec / n_slots < usual)
        n_slots--;
    g.cap_rec = work_byte / 2 / per_rec / n_slots;
    if (g.cap_rec > BATCH_REC && g.cap_rec > largest)
        g.cap_rec = largest > BATCH_REC ? largest : BATCH_REC;
    struct job *job = calloc(n_slots, sizeof *job);
    void **jobs = calloc(n_slots, sizeof *jobs);
    g.state = calloc(n_threads + 1, sizeof *g.state);
    if (!job || !jobs || !g.state)
        rc = slu_fail_nomem(err, n_slots * sizeof *job);
    for (size_t i = 0; rc == SLU_OK && i < n_slots; i++) {
        jobs[i] = &job[i];
        rc = job_init(&job[i], g.cap_rec, err);
    }
    for (size_t i = 0; rc == SLU_OK && i <= n_threads; i++) {
        g.state[i] = calloc(1, ops->state_byte);
        if (!g.state[i])
            rc = slu_fail_nomem(err, ops->state_byte);
    }
    if (rc == SLU_OK)
        rc = slu_pipe_run(&pipe, &g, jobs, (unsigned)n_slots, n_threads, err);
    for (size_t i = 0; job && i < n_slots; i++)
        job_release(&job[i]);
    for (size_t i = 0; g.state && i <= n_threads; i++)
        if (g.state[i]) {
            ops->release(g.state[i]);
            free(g.state[i]);
        }
    free(g.state);
    free(job);
    free(jobs);
    return rc;
}
