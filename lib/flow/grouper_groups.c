/* grouper_groups.c - finds the rows of cells whose key another row shares. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/pipe.h"
#include "lib/flow/grouper_private.h"
#include "radix.h"
#include "sorter.h"

enum {
    BATCH_ROW = 1 << 15,  /* rows that are grouped together; they fit the
                             second-level cache */
    TABLE_BIT = 16,       /* bits for a row in each table, at least */
    STREAM_ROW = 1 << 12, /* rows of a large cell that are read at a time */
    LEAST_SORT = 64 << 10 /* least memory for sorting a large cell */
};

struct job {
    size_t from, to; /* range of cells */
    bool large;      /* a cell that does not fit the memory */
    uint64_t *row;
    struct slu_entry *entry;
    uint64_t *once, *twice;
    size_t n_row;
    struct slu_buf out;
};

struct groups {
    struct slu_grouper *c;
    const struct slu_group_ops *ops;
    size_t next, cap_row;
    unsigned n_threads;
    uint64_t sorter_byte;
    void **state; /* one for each worker, and one for large cells */
};

/* A row needs its own bytes, both tables (twice TABLE_BIT, rounded up) and its
 * entry. */
static size_t row_byte(const struct slu_grouper *c)
{
    return 8 * (size_t)c->n_word + TABLE_BIT / 2 + sizeof(struct slu_entry);
}

/* ---- one batch ---- */

/* Keeps, in their order, the rows whose group may have a second row. Inlined for the
 * usual number of words. */
static inline size_t drop(struct job *j, unsigned group_bits, const unsigned n_word)
{
    unsigned bits = 10, shift = 64 - group_bits;
    size_t n = 0;

    while ((UINT64_C(1) << bits) < TABLE_BIT * j->n_row)
        bits++;
    size_t words = (size_t)1 << (bits - 6);
    memset(j->once, 0, words * 8);
    memset(j->twice, 0, words * 8);
    for (size_t i = 0; i < j->n_row; i++) {
        uint64_t x = (j->row[i * n_word] >> shift) * 0x9e3779b97f4a7c15u >> (64 - bits);
        uint64_t bit = UINT64_C(1) << (x & 63), *w = &j->once[x >> 6];
        j->twice[x >> 6] |= *w & bit;
        *w |= bit;
    }
    for (size_t i = 0; i < j->n_row; i++) {
        uint64_t r[SLU_GROUPER_MOST_WORDS];
        memcpy(r, j->row + i * n_word, n_word * sizeof *r);
        uint64_t x = (r[0] >> shift) * 0x9e3779b97f4a7c15u >> (64 - bits);
        memcpy(j->row + n * n_word, r, n_word * sizeof *r);
        n += j->twice[x >> 6] >> (x & 63) & 1;
    }
    return n;
}

/* Sorts e[0, n) by the rows' words from `word` on; the prefixes are word `word`. */
static void sort_entries(const uint64_t *row, unsigned n_word, struct slu_entry *e,
                         size_t n, unsigned word)
{
    slu_entry_sort(e, n);
    for (size_t i = 0, j; word + 1 < n_word && i < n; i = j) {
        for (j = i + 1; j < n && e[j].prefix == e[i].prefix; j++)
            ;
        if (j - i == 1)
            continue;
        for (size_t k = i; k < j; k++)
            e[k].prefix = row[e[k].ref * n_word + word + 1];
        sort_entries(row, n_word, e + i, j - i, word + 1);
    }
}

static int take(struct groups *g, struct slu_buf *out, struct slu_err *err)
{
    int rc = out->len ? g->ops->take(g->ops->ctx, out, err) : SLU_OK;

    slu_buf_clear(out);
    return rc;
}

/* Passes a row to feed, or ends a group if row is NULL; repeats the call while it
 * returns SLU_EOF. For a large cell, `out` is taken between calls. */
static inline int feed(struct groups *g, struct job *j, void *state,
                       const uint64_t *row, struct slu_err *err)
{
    int rc;

    do {
        rc = row ? g->ops->feed(state, g->ops->arg, row, &j->out, err)
                 : g->ops->end(state, &j->out, err);
        if (j->large && (rc == SLU_EOF || (!rc && j->out.len >= 1 << 20))) {
            int bad = take(g, &j->out, err);
            rc = bad ? bad : rc;
        }
    } while (rc == SLU_EOF);
    return rc;
}

static int group_batch(struct groups *g, struct job *j, void *state,
                       struct slu_err *err)
{
    const unsigned n_word = g->c->n_word, group_bits = g->c->group_bits;
    size_t n = n_word == 3 ? drop(j, group_bits, 3) : drop(j, group_bits, n_word);
    int rc = SLU_OK;

    for (size_t i = 0; i < n; i++)
        j->entry[i] = (struct slu_entry){j->row[i * n_word], i};
    sort_entries(j->row, n_word, j->entry, n, 0);
    for (size_t i = 0; !rc && i < n; i++)
        rc = feed(g, j, state, j->row + j->entry[i].ref * n_word, err);
    return rc ? rc : feed(g, j, state, NULL, err);
}

/* ---- one cell that does not fit ---- */

/* Words after the first two are stored as bytes; their order as bytes is their order as
 * numbers. */
static uint64_t ordered(uint64_t v)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(v) : v;
}

static int to_sorter(struct groups *g, struct slu_sorter *s, size_t cell, uint64_t *buf,
                     struct slu_err *err)
{
    const unsigned n_word = g->c->n_word;
    struct slu_grouper_cursor at = {.cell = cell};
    size_t n;

    for (;;) {
        int rc = slu_grouper_read(g->c, &at, buf, STREAM_ROW, &n, err);
        if (rc || n == 0)
            return rc ? rc : slu_sorter_seal(s, err);
        for (uint64_t *r = buf; r < buf + n * n_word; r += n_word) {
            const struct slu_slice piece = {r + 2, (n_word - 2) * sizeof *r};
            for (unsigned i = 2; i < n_word; i++)
                r[i] = ordered(r[i]);
            rc = slu_sorter_add(s, (struct slu_u128){r[1], r[0]}, &piece, 1, err);
            if (rc)
                return rc;
        }
    }
}

static int group_large(struct groups *g, struct job *j, struct slu_err *err)
{
    struct slu_sorter_cfg cfg = {g->sorter_byte, g->c->tmpdir, g->n_threads};
    void *state = g->state[g->n_threads];
    const size_t n_byte = STREAM_ROW * g->c->n_word * sizeof(uint64_t);
    uint64_t *buf = malloc(n_byte), r[SLU_GROUPER_MOST_WORDS];
    struct slu_sorter *s = NULL;
    struct slu_u128 key;
    const void *p;
    size_t n;
    int rc = buf ? slu_sorter_new(&s, &cfg, err) : slu_fail_nomem(err, n_byte);

    if (!rc)
        rc = to_sorter(g, s, j->from, buf, err);
    while (!rc) {
        rc = slu_sorter_next(s, &key, &p, &n, err);
        if (rc)
            break;
        r[0] = key.hi;
        r[1] = key.lo;
        memcpy(r + 2, p, n);
        for (unsigned i = 2; i < g->c->n_word; i++)
            r[i] = ordered(r[i]);
        rc = feed(g, j, state, r, err);
    }
    if (rc == SLU_EOF)
        rc = feed(g, j, state, NULL, err);
    g->c->file_byte += s ? slu_sorter_spilled(s) : 0;
    slu_sorter_free(s);
    free(buf);
    return rc;
}

/* ---- all cells ---- */

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct groups *g = ctx;
    struct job *j = job;
    const struct slu_grouper *c = g->c;

    j->n_row = 0;
    j->large = false;
    while (g->next < c->n_cell && c->cell[g->next].n_row == 0)
        g->next++;
    if (g->next == c->n_cell)
        return SLU_EOF;
    j->from = j->to = g->next;
    if (c->cell[j->from].n_row > g->cap_row) {
        j->large = true;
        j->to = ++g->next;
        return SLU_OK;
    }
    while (j->to < c->n_cell && j->n_row + c->cell[j->to].n_row <= g->cap_row &&
           (j->n_row == 0 || j->n_row + c->cell[j->to].n_row <= BATCH_ROW)) {
        struct slu_grouper_cursor at = {.cell = j->to};
        size_t n;
        int rc = slu_grouper_read(c, &at, j->row + j->n_row * c->n_word,
                                  c->cell[j->to].n_row, &n, err);
        if (!rc && n != c->cell[j->to].n_row)
            rc = slu_fail(err, SLU_E_TRUNCATED, "%s: the temporary file ends early",
                          c->tmpdir);
        if (rc)
            return rc;
        j->n_row += n;
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
    free(j->row);
    free(j->entry);
    free(j->once);
    slu_buf_release(&j->out);
}

static int job_init(struct job *j, const struct slu_grouper *c, size_t cap_row,
                    struct slu_err *err)
{
    size_t words = 16;

    while (words * 64 < TABLE_BIT * cap_row)
        words *= 2;
    j->row = malloc(cap_row * c->n_word * sizeof *j->row);
    j->entry = malloc(cap_row * sizeof *j->entry);
    j->once = malloc(2 * words * sizeof *j->once);
    j->twice = j->once + words;
    return j->row && j->entry && j->once ? SLU_OK
                                         : slu_fail_nomem(err, cap_row * row_byte(c));
}

int slu_grouper_run(struct slu_grouper *c, const struct slu_group_ops *ops,
                    uint64_t work_byte, unsigned n_threads, struct slu_err *err)
{
    static const struct slu_pipe_ops pipe = {produce, work, emit};
    const uint64_t half = work_byte / 2;
    struct groups g = {c,   ops, 0, 0, n_threads, half > LEAST_SORT ? half : LEAST_SORT,
                       NULL};
    size_t per_row = row_byte(c) + ops->out_byte, n_slots = n_threads + 1, largest = 0;
    int rc = slu_grouper_seal(c, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < c->n_cell; i++)
        if (c->cell[i].n_row > largest)
            largest = c->cell[i].n_row;
    if (n_threads == 1)
        n_slots = 1;
    /* A slot for each thread, unless batches would become too small to be useful, or
     * smaller than a cell of usual size. */
    size_t usual = c->n_row / c->n_cell / 4 * 5;
    usual = usual > BATCH_ROW ? usual : BATCH_ROW;
    while (n_slots > 1 && half / per_row / n_slots < usual)
        n_slots--;
    g.cap_row = half / per_row / n_slots;
    if (g.cap_row > BATCH_ROW && g.cap_row > largest)
        g.cap_row = largest > BATCH_ROW ? largest : BATCH_ROW;
    struct job *job = calloc(n_slots, sizeof *job);
    void **jobs = calloc(n_slots, sizeof *jobs);
    g.state = calloc(n_threads + 1, sizeof *g.state);
    if (!job || !jobs || !g.state)
        rc = slu_fail_nomem(err, n_slots * sizeof *job);
    for (size_t i = 0; !rc && i < n_slots; i++) {
        jobs[i] = &job[i];
        rc = job_init(&job[i], c, g.cap_row, err);
    }
    for (size_t i = 0; !rc && i <= n_threads; i++) {
        g.state[i] = calloc(1, ops->state_byte);
        if (!g.state[i])
            rc = slu_fail_nomem(err, ops->state_byte);
    }
    if (!rc)
        rc = slu_pipe_run(&pipe, &g, jobs, (unsigned)n_slots, n_threads, err);
    for (size_t i = 0; job && i < n_slots; i++)
        job_release(&job[i]);
    for (size_t i = 0; g.state && i <= n_threads; i++)
        if (g.state[i]) {
            if (ops->release)
                ops->release(g.state[i]);
            free(g.state[i]);
        }
    free(g.state);
    free(job);
    free(jobs);
    return rc;
}
