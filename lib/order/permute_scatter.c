/* permute_scatter.c - one part's sequences, in order, into cells of a file. */
#include <stdlib.h>
#include <string.h>

#include "permute_parts_private.h"
#include "permute_private.h"
#include "lib/pipe.h"

enum { JOB_BYTE = 1 << 20 };

/* ---- which range ---- */

/* A bucket's keys are those of `n_phase` groups side by side (permute.c), and what
 * comes before each group is known: so ranges are about equal whatever the phases are.
 */
struct ranges {
    uint64_t n_range, n_group;
    unsigned n_phase;
    uint64_t before[SLU_BLEND_PHASES + 1]; /* below 2^40 */
};

static void init_ranges(struct ranges *g, const struct slu_parts_cfg *c,
                        const struct slu_permute *p)
{
    const struct slu_blend_plan *plan =
        p->blending ? slu_blending_planned(p->blending) : NULL;

    *g = (struct ranges){.n_range = c->ranges, .n_phase = slu_permute_n_phase(p)};
    g->n_group = (uint64_t)slu_parts_buckets(c, p->header) * g->n_phase;
    unsigned shift = 0;
    while (plan && plan->tok >> shift >> 36)
        shift++;
    for (unsigned i = 0; i < g->n_phase; i++) {
        uint64_t n_tok = 0;
        for (unsigned s = 0; plan && s < p->cfg.blend->n_source; s++)
            n_tok += plan->target[s][i];
        /* So that no phase is without any. */
        g->before[i + 1] = g->before[i] + (n_tok >> shift) + 1;
    }
}

/* Never descends as keys ascend in a bucket. */
static uint64_t range_of(const struct ranges *g, unsigned bucket, struct slu_u128 key)
{
    unsigned __int128 lo = (unsigned __int128)key.lo * g->n_group;
    unsigned __int128 v = (unsigned __int128)key.hi * g->n_group + (uint64_t)(lo >> 64);
    uint64_t group = (uint64_t)(v >> 64), place = (uint64_t)v;
    uint64_t first = (uint64_t)bucket * g->n_phase, last = first + g->n_phase - 1;

    /* in_group of permute.c rounds: a group's first keys may be the last ones of the
     * group before. */
    if (group < first || group > last) {
        place = group < first ? 0 : UINT64_MAX;
        group = group < first ? first : last;
    }
    const uint64_t *b = &g->before[group - first];
    v = ((unsigned __int128)b[0] << 64) + (unsigned __int128)(b[1] - b[0]) * place;
    return (uint64_t)(v / g->before[g->n_phase] * g->n_range >> 64);
}

/* ---- the pipeline: from the sorter to the file ---- */

struct piece { /* of a load: records of one cell */
    uint64_t cell, n_word;
    struct slu_parts_cell what;
};
struct load {
    struct slu_buf rec; /* as in the file */
    struct slu_batch b;
    struct piece *piece;
    size_t n_piece, cap_piece;
};
struct scatter {
    const struct slu_parts_cfg *cfg;
    struct slu_permute *p;
    struct ranges ranges;
    struct slu_workfile_out *out;
    struct slu_parts_cell *cell;
    uint64_t n_cell;
    struct slu_parts_books *books;
};

static int produce(void *ctx, void *load, struct slu_err *err)
{
    struct scatter *s = ctx;
    struct slu_buf *rec = &((struct load *)load)->rec;
    int rc = SLU_OK;

    slu_buf_clear(rec);
    while (rc == SLU_OK && rec->len < JOB_BYTE) {
        struct slu_rec h;
        const void *at;
        size_t n;
        rc = slu_sorter_next(s->p->sorter, &h.key, &at, &n, err);
        h.n_byte = n;
        if (rc == SLU_OK)
            rc = slu_buf_append(rec, &h, sizeof h, err);
        if (rc == SLU_OK)
            rc = slu_buf_append(rec, at, n, err);
        if (rc == SLU_OK)
            rc = slu_buf_align(rec, 8, err);
    }
    return rc == SLU_EOF && rec->len ? SLU_OK : rc;
}

/* Adds the batch's last sequence, whose record is r, to the load's pieces. */
static int note(const struct scatter *s, struct load *l, const struct slu_rec *r,
                struct slu_err *err)
{
    const struct slu_seq *q = &l->b.seq[l->b.n_seq - 1];
    int bucket = s->cfg->by_bucket ? slu_header_bucket_of(s->p->header, q->len_tok) : 0;
    uint64_t cell = (uint64_t)(bucket < 0 ? 0 : bucket) * s->ranges.n_range;
    struct piece *last = l->n_piece ? &l->piece[l->n_piece - 1] : NULL;

    cell += range_of(&s->ranges, bucket < 0 ? 0 : (unsigned)bucket, r->key);
    if (!last || last->cell != cell) {
        int rc =
            slu_grow(&l->piece, &l->cap_piece, l->n_piece + 1, sizeof *l->piece, err);
        if (rc)
            return rc;
        last = &l->piece[l->n_piece++];
        *last = (struct piece){.cell = cell};
    }
    last->n_word += slu_rec_size(r->n_byte) / 8;
    slu_count_add(&last->what.n, slu_seq_count(&l->b, q));
    last->what.checksum = slu_u128_add(
        last->what.checksum,
        slu_hash_tokens(slu_batch_at(&l->b, q->tok_off), q->len_tok, l->b.tok_bytes));
    return SLU_OK;
}

static int work(void *ctx, unsigned worker, void *load, struct slu_err *err)
{
    struct load *l = load;
    int rc = SLU_OK;

    (void)worker;
    slu_batch_clear(&l->b);
    l->n_piece = 0;
    for (size_t at = 0; rc == SLU_OK && at < l->rec.len;) {
        const struct slu_rec *r = (const void *)(l->rec.data + at);
        rc = slu_seqrec_add(&l->b, slu_rec_bytes(r), r->n_byte, err);
        if (rc == SLU_OK)
            rc = note(ctx, l, r, err);
        at += slu_rec_size(r->n_byte);
    }
    return rc;
}

static int emit(void *ctx, void *load, struct slu_err *err)
{
    struct scatter *s = ctx;
    const struct load *l = load;
    const uint64_t *w = (const void *)l->rec.data;
    int rc = SLU_OK;

    for (size_t i = 0; i < l->n_piece && rc == SLU_OK; i++) {
        const struct piece *p = &l->piece[i];
        struct slu_parts_cell *cell = &s->cell[p->cell];
        rc = slu_workfile_section(s->out, p->cell, err);
        if (rc == SLU_OK)
            rc = slu_workfile_put(s->out, w, p->n_word, err);
        w += p->n_word;
        slu_count_add(&cell->n, p->what.n);
        cell->checksum = slu_u128_add(cell->checksum, p->what.checksum);
    }
    return rc;
}

static int write_cells(struct scatter *s, unsigned n_slots, struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, work, emit};
    struct load *l = calloc(n_slots, sizeof *l);
    void **slot = calloc(n_slots, sizeof *slot);
    int rc = l && slot ? SLU_OK : slu_fail_nomem(err, n_slots * sizeof *l);

    for (unsigned i = 0; i < n_slots && rc == SLU_OK; i++) {
        slu_batch_init(&l[i].b, s->p->header->tok_bytes);
        slot[i] = &l[i];
    }
    if (rc == SLU_OK)
        rc = slu_pipe_run(&ops, s, slot, n_slots, s->p->cfg.n_threads, err);
    for (unsigned i = 0; l && i < n_slots; i++) {
        slu_batch_release(&l[i].b);
        slu_buf_release(&l[i].rec);
        free(l[i].piece);
    }
    free(l);
    free(slot);
    return rc;
}

/* ---- the rest of the file ---- */

static int write_books(struct scatter *s, struct slu_err *err)
{
    uint64_t w[BOOK_WORDS], c[CELL_WORDS];
    int rc = slu_workfile_section(s->out, s->n_cell + PART_BOOKS, err);

    for (uint64_t i = 0; i < s->n_cell; i++) {
        slu_count_add(&s->books->result.out, s->cell[i].n);
        s->books->checksum = slu_u128_add(s->books->checksum, s->cell[i].checksum);
    }
    slu_parts_put_books(s->books, w);
    if (rc == SLU_OK)
        rc = slu_parts_books_check(s->books, err);
    if (rc == SLU_OK)
        rc = slu_workfile_put(s->out, w, BOOK_WORDS, err);
    if (rc == SLU_OK)
        rc = slu_workfile_section(s->out, s->n_cell + PART_CELLS, err);
    for (uint64_t i = 0; i < s->n_cell && rc == SLU_OK; i++) {
        slu_parts_put_cell(&s->cell[i], c);
        rc = slu_workfile_put(s->out, c, CELL_WORDS, err);
    }
    return rc;
}

static int write_took(struct scatter *s, struct slu_err *err)
{
    const struct slu_permute *p = s->p;
    int rc = slu_workfile_section(s->out, s->n_cell + PART_BLEND, err);

    if (rc || !p->blending)
        return rc;
    size_t n = slu_parts_took_words(p->cfg.blend, p->header);
    uint64_t *w = malloc(n * sizeof *w);
    if (!w)
        return slu_fail_nomem(err, n * sizeof *w);
    slu_parts_took_save(p, w);
    rc = slu_workfile_put(s->out, w, n, err);
    free(w);
    return rc;
}

int slu_scatter_write(const struct slu_parts_cfg *c, struct slu_permute *p,
                      struct slu_names *names, const struct slu_sum *in,
                      struct slu_u128 stream, struct slu_u128 blend, unsigned n_slots,
                      struct slu_parts_books *b, struct slu_err *err)
{
    struct scatter s = {.cfg = c, .p = p, .books = b};
    struct slu_workfile_head head = {.kind = SLU_WORKFILE_SHUFFLE_SCATTER,
                                     .part = c->part,
                                     .of = c->of,
                                     .inputs = blend};
    char *path = NULL, *param = NULL;

    *b = (struct slu_parts_books){
        .in = *in, .stream = stream, .result = *slu_permute_result(p)};
    b->result.out = (struct slu_count){0};
    init_ranges(&s.ranges, c, p);
    s.n_cell = slu_parts_buckets(c, p->header) * c->ranges;
    if (s.n_cell > SLU_WORKFILE_MAX_PARTS)
        return slu_fail(err, SLU_E_LIMIT,
                        "%llu ranges of each of %u buckets are too many; use --ranges "
                        "%llu or less",
                        (unsigned long long)c->ranges, slu_parts_buckets(c, p->header),
                        (unsigned long long)SLU_WORKFILE_MAX_PARTS /
                            slu_parts_buckets(c, p->header));
    s.cell = calloc(s.n_cell, sizeof *s.cell);
    int rc = s.cell ? SLU_OK : slu_fail_nomem(err, s.n_cell * sizeof *s.cell);
    if (rc == SLU_OK)
        rc = slu_mkdirs(c->work, err);
    if (rc == SLU_OK)
        rc = slu_work_path(c->work, "scatter", c->part, c->of, &path, err);
    if (rc == SLU_OK)
        rc = slu_parts_param(c, c->ranges, &param, err);
    if (rc == SLU_OK)
        rc = slu_workfile_create(&s.out, path, head.kind, err);
    if (rc == SLU_OK)
        rc = write_cells(&s, n_slots, err);
    if (rc == SLU_OK)
        rc = write_books(&s, err);
    if (rc == SLU_OK)
        rc = slu_workfile_section(s.out, s.n_cell + PART_STREAM, err);
    if (rc == SLU_OK)
        rc = slu_workfile_put_stream(s.out, p->header, names, true, err);
    if (rc == SLU_OK)
        rc = write_took(&s, err);
    if (rc == SLU_OK) {
        memcpy(head.fingerprint, p->header->fingerprint, 16);
        head.count[COUNT_RANGES] = c->ranges;
        head.count[COUNT_BUCKETS] = slu_parts_buckets(c, p->header);
        head.param = param;
        rc = slu_workfile_close(s.out, &head, s.n_cell + PARTS, err);
        s.out = NULL;
    }
    slu_workfile_abort(s.out);
    free(s.cell);
    free(param);
    free(path);
    return rc;
}

/* ---- again ---- */

int slu_scatter_done(const struct slu_parts_cfg *c, const struct slu_header *h,
                     struct slu_u128 blend, bool *done, struct slu_parts_books *b,
                     struct slu_err *err)
{
    struct slu_workfile_head want = {.kind = SLU_WORKFILE_SHUFFLE_SCATTER,
                                     .part = c->part,
                                     .of = c->of,
                                     .inputs = blend};
    char *param = NULL;
    int rc = slu_parts_param(c, c->ranges, &param, err);

    memcpy(want.fingerprint, h->fingerprint, 16);
    want.param = param;
    if (rc == SLU_OK)
        rc = slu_parts_done(c, "scatter", &want,
                            slu_parts_buckets(c, h) * c->ranges + PART_BOOKS, done, b,
                            err);
    free(param);
    return rc;
}
