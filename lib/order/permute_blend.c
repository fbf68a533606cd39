/* permute_blend.c - blends in parts: each part counts, one job says what is taken, and
 * each part takes it. */
#include <stdlib.h>
#include <string.h>

#include "permute_parts_private.h"
#include "permute_private.h"

/* Sections of a count file: rows of three, ROW_TOK of the last being tokens and the
 * rest the source; what was read; of each source documents, sequences and tokens.
 * Of the blend: of each part what its count file read, and a blending (blend.h). */
enum { COUNT_ROWS, COUNT_BOOKS, COUNT_SOURCES, COUNTS };
enum { ROW_WORDS = 3, ROW_SHIFT = 56 };

/* ---- count ---- */

struct count {
    const struct slu_blend *blend;
    struct slu_workfile_out *out;
    uint64_t source[SLU_BLEND_SOURCES][3];
};

static int row(void *ctx, unsigned source, struct slu_u128 line, struct slu_count n,
               struct slu_err *err)
{
    struct count *c = ctx;
    const uint64_t w[ROW_WORDS] = {line.lo, line.hi,
                                   (uint64_t)source << ROW_SHIFT | n.tokens};

    c->source[source][0] += n.documents;
    c->source[source][1] += n.sequences;
    c->source[source][2] += n.tokens;
    if (!slu_blend_weighs(c->blend, source))
        return SLU_OK;
    if (n.tokens >> ROW_SHIFT)
        return slu_fail(err, SLU_E_LIMIT, "a sequence of more than 2^56 tokens");
    return slu_workfile_put(c->out, w, ROW_WORDS, err);
}

static int write_count(struct count *c, const struct slu_parts_books *books,
                       struct slu_err *err)
{
    uint64_t w[BOOK_WORDS];
    int rc = slu_workfile_section(c->out, COUNT_BOOKS, err);

    slu_parts_put_books(books, w);
    if (rc == SLU_OK)
        rc = slu_workfile_put(c->out, w, BOOK_WORDS, err);
    if (rc == SLU_OK)
        rc = slu_workfile_section(c->out, COUNT_SOURCES, err);
    for (unsigned s = 0; s < c->blend->n_source && rc == SLU_OK; s++)
        rc = slu_workfile_put(c->out, c->source[s], 3, err);
    return rc;
}

int slu_count_write(const struct slu_parts_cfg *c, const struct slu_permute_cfg *cfg,
                    struct slu_reader *r, unsigned n_slots,
                    void (*progress)(void *ctx, uint64_t n_tok), void *ctx,
                    struct slu_parts_books *b, struct slu_err *err)
{
    struct count count = {.blend = cfg->blend};
    struct slu_workfile_head head = {
        .kind = SLU_WORKFILE_SHUFFLE_COUNT, .part = c->part, .of = c->of};
    struct slu_permute *p = NULL;
    char *path = NULL;

    *b = (struct slu_parts_books){0};
    memcpy(head.fingerprint, slu_reader_header(r)->fingerprint, 16);
    head.param = c->param;
    int rc = slu_mkdirs(c->work, err);
    if (rc == SLU_OK)
        rc = slu_work_path(c->work, "count", c->part, c->of, &path, err);
    if (rc == SLU_OK)
        rc = slu_workfile_create(&count.out, path, head.kind, err);
    if (rc == SLU_OK)
        rc = slu_permute_new(&p, cfg, err);
    if (rc == SLU_OK) {
        p->row = row;
        p->row_ctx = &count;
        rc = slu_permute_read(p, r, n_slots, &b->in, progress, ctx, err);
    }
    if (rc == SLU_OK)
        rc = slu_reader_identity(r, &b->stream, err);
    if (rc == SLU_OK)
        rc = write_count(&count, b, err);
    if (rc == SLU_OK) {
        rc = slu_workfile_close(count.out, &head, COUNTS, err);
        count.out = NULL;
    }
    slu_workfile_abort(count.out);
    slu_permute_free(p);
    free(path);
    return rc;
}

int slu_count_done(const struct slu_parts_cfg *c, const struct slu_header *h,
                   bool *done, struct slu_parts_books *b, struct slu_err *err)
{
    struct slu_workfile_head want = {.kind = SLU_WORKFILE_SHUFFLE_COUNT,
                                     .part = c->part,
                                     .of = c->of,
                                     .param = c->param};

    memcpy(want.fingerprint, h->fingerprint, 16);
    return slu_parts_done(c, "count", &want, COUNT_BOOKS, done, b, err);
}

/* ---- blend ---- */

struct blend {
    const struct slu_parts_cfg *cfg;
    const struct slu_blend *blend;
    uint64_t of;
    uint8_t fingerprint[16];
    struct slu_blending *x;
    struct slu_blending *state; /* of the part at hand */
    struct slu_workfile_out *out;
    struct slu_count available[SLU_BLEND_SOURCES];
};

static int open_count(const struct blend *b, uint64_t part, struct slu_workfile **f,
                      struct slu_err *err)
{
    struct slu_workfile_head want = {.kind = SLU_WORKFILE_SHUFFLE_COUNT,
                                     .part = part,
                                     .of = b->of,
                                     .param = b->cfg->param};

    memcpy(want.fingerprint, b->fingerprint, 16);
    int rc = slu_work_open(b->cfg->work, "count", &want, part == 0, NULL, f, err);
    if (rc == SLU_OK && slu_workfile_n_section(*f) != COUNTS) {
        rc = slu_workfile_damaged(*f, err);
        slu_workfile_free(*f);
        *f = NULL;
    }
    return rc;
}

/* Calls each for all rows of a count file. */
static int each_row(struct blend *b, struct slu_workfile *f,
                    int (*each)(struct blend *b, unsigned source, struct slu_u128 line,
                                uint64_t n_tok, struct slu_err *err),
                    struct slu_err *err)
{
    const uint64_t *w;
    int rc = slu_workfile_begin(f, COUNT_ROWS, err);

    while (rc == SLU_OK && slu_workfile_left(f)) {
        rc = slu_workfile_next(f, ROW_WORDS, &w, err);
        if (rc)
            break;
        if (w[2] >> ROW_SHIFT >= b->blend->n_source)
            return slu_workfile_damaged(f, err);
        rc = each(b, (unsigned)(w[2] >> ROW_SHIFT), (struct slu_u128){w[0], w[1]},
                  w[2] & ((UINT64_C(1) << ROW_SHIFT) - 1), err);
    }
    if (rc == SLU_EOF)
        return slu_workfile_damaged(f, err);
    return rc ? rc : slu_workfile_end(f, err);
}

static int add_row(struct blend *b, unsigned source, struct slu_u128 line,
                   uint64_t n_tok, struct slu_err *err)
{
    struct slu_count n = {0, 1, n_tok};

    return slu_blending_add(b->x, source, line, n, err);
}

static int pass_row(struct blend *b, unsigned source, struct slu_u128 line,
                    uint64_t n_tok, struct slu_err *err)
{
    (void)err;
    slu_blending_pass(b->state, source, line, n_tok);
    return SLU_OK;
}

/* All rows of part i into the selection. */
static int add_part(struct blend *b, struct slu_workfile *f, struct slu_err *err)
{
    uint64_t w[SLU_BLEND_SOURCES * 3];
    unsigned n = b->blend->n_source;
    int rc = slu_parts_get_words(f, COUNT_SOURCES, w, n * 3, err);

    for (unsigned s = 0; s < n && rc == SLU_OK; s++)
        slu_count_add(&b->available[s],
                      (struct slu_count){w[3 * s], w[3 * s + 1], w[3 * s + 2]});
    return rc ? rc : each_row(b, f, add_row, err);
}

/* What the part begins with; then its rows, for the next one. */
static int put_part(struct blend *b, uint64_t part, struct slu_workfile *f,
                    struct slu_err *err)
{
    size_t n = slu_blending_words(b->blend);
    uint64_t books[BOOK_WORDS], *w = malloc(n * sizeof *w);
    int rc = w ? slu_parts_get_words(f, COUNT_BOOKS, books, BOOK_WORDS, err)
               : slu_fail_nomem(err, n * sizeof *w);

    if (rc == SLU_OK)
        rc = slu_workfile_section(b->out, part, err);
    if (rc == SLU_OK)
        rc = slu_workfile_put(b->out, books, BOOK_WORDS, err);
    if (rc == SLU_OK) {
        slu_blending_save(b->state, w);
        rc = slu_workfile_put(b->out, w, n, err);
    }
    free(w);
    return rc ? rc : each_row(b, f, pass_row, err);
}

/* Mixes in the ids of all count files. */
static int ids(struct blend *b, struct slu_u128 *id, struct slu_err *err)
{
    int rc = slu_work_parts(b->cfg->work, "count", &b->of, err);

    *id = (struct slu_u128){0, 0};
    for (uint64_t i = 0; i < b->of && rc == SLU_OK; i++) {
        struct slu_workfile *f;
        rc = open_count(b, i, &f, err);
        if (rc)
            break;
        if (i == 0)
            memcpy(b->fingerprint, slu_workfile_head(f)->fingerprint, 16);
        *id = slu_workfile_mix(*id, slu_workfile_id(f));
        slu_workfile_free(f);
    }
    return rc;
}

static int each_part(struct blend *b, bool put, struct slu_err *err)
{
    int rc = SLU_OK;

    for (uint64_t i = 0; i < b->of && rc == SLU_OK; i++) {
        struct slu_workfile *f;
        rc = open_count(b, i, &f, err);
        if (rc)
            break;
        rc = put ? put_part(b, i, f, err) : add_part(b, f, err);
        slu_workfile_free(f);
    }
    return rc;
}

static int make(struct blend *b, const struct slu_permute_cfg *cfg, const char *path,
                struct slu_err *err)
{
    size_t n = slu_blending_words(b->blend);
    uint64_t *w = malloc(n * sizeof *w);
    int rc = w ? slu_blending_new(&b->x, b->blend, cfg->budget_byte, cfg->tmpdir, err)
               : slu_fail_nomem(err, n * sizeof *w);

    if (rc == SLU_OK)
        rc = each_part(b, false, err);
    for (unsigned s = 0; s < b->blend->n_source && rc == SLU_OK; s++)
        slu_blending_books(b->x, s)->available = b->available[s];
    if (rc == SLU_OK)
        rc = slu_blending_plan(b->x, cfg->max_tokens, err);
    if (rc == SLU_OK) {
        slu_blending_save(b->x, w);
        rc = slu_blending_load(&b->state, b->blend, w, err);
    }
    free(w);
    if (rc == SLU_OK)
        rc = slu_workfile_create(&b->out, path, SLU_WORKFILE_SHUFFLE_BLEND, err);
    return rc ? rc : each_part(b, true, err);
}

int slu_blend_write(const struct slu_parts_cfg *c, const struct slu_permute_cfg *cfg,
                    bool *done, uint64_t *spilled_byte, struct slu_err *err)
{
    struct blend b = {.cfg = c, .blend = cfg->blend};
    struct slu_workfile_head head = {.kind = SLU_WORKFILE_SHUFFLE_BLEND}, is;
    char *path = NULL;
    int rc = slu_work_path(c->work, "blend", 0, 0, &path, err);

    *done = false;
    *spilled_byte = 0;
    if (rc == SLU_OK)
        rc = ids(&b, &head.inputs, err);
    memcpy(head.fingerprint, b.fingerprint, 16);
    head.param = c->param;
    if (rc == SLU_OK && !c->force)
        rc = slu_work_done(path, &head, &head.inputs, false, done, &is, err);
    if (rc == SLU_OK && !*done) {
        rc = make(&b, cfg, path, err);
        if (rc == SLU_OK) {
            rc = slu_workfile_close(b.out, &head, b.of, err);
            b.out = NULL;
        }
        *spilled_byte = b.x ? slu_blending_spilled(b.x) : 0;
    }
    slu_workfile_abort(b.out);
    slu_blending_free(b.x);
    slu_blending_free(b.state);
    free(path);
    return rc;
}

/* ---- what was decided ---- */

int slu_blend_open(struct slu_parts_blend *pb, const struct slu_parts_cfg *c,
                   const struct slu_blend *blend, uint64_t part, uint64_t of,
                   struct slu_err *err)
{
    struct slu_workfile_head want = {.kind = SLU_WORKFILE_SHUFFLE_BLEND,
                                     .param = c->param};
    size_t n = BOOK_WORDS + slu_blending_words(blend);
    uint64_t *w = malloc(n * sizeof *w);
    struct slu_workfile *f = NULL;

    *pb = (struct slu_parts_blend){0};
    int rc = w ? slu_work_open(c->work, "blend", &want, true, NULL, &f, err)
               : slu_fail_nomem(err, n * sizeof *w);
    if (rc == SLU_OK && slu_workfile_n_section(f) != of)
        rc = slu_fail(
            err, SLU_E_MISMATCH, "%s: was made of %llu parts, and this is one of %llu",
            slu_workfile_path(f), (unsigned long long)slu_workfile_n_section(f),
            (unsigned long long)of);
    if (rc == SLU_OK)
        rc = slu_parts_get_words(f, part, w, n, err);
    if (rc == SLU_OK) {
        slu_parts_get_books(w, &pb->counted);
        pb->id = slu_workfile_id(f);
        rc = slu_blending_load(&pb->blending, blend, w + BOOK_WORDS, err);
    }
    slu_workfile_free(f);
    free(w);
    return rc;
}

void slu_permute_set_blend(struct slu_permute *p, struct slu_parts_blend *pb)
{
    slu_blending_free(p->blending);
    p->blending = pb->blending;
    p->planned = true;
    pb->blending = NULL;
}

/* ---- what parts took ---- */

size_t slu_parts_took_words(const struct slu_blend *b, const struct slu_header *h)
{
    unsigned n_bucket = h->n_bucket ? h->n_bucket : 1;

    return b->n_source * (1 + 3 * (size_t)b->n_phase) +
           (size_t)n_bucket * b->n_phase * 3;
}

static uint64_t *put_count(uint64_t *w, struct slu_count n)
{
    *w++ = n.documents;
    *w++ = n.sequences;
    *w++ = n.tokens;
    return w;
}

void slu_parts_took_save(const struct slu_permute *p, uint64_t *w)
{
    const struct slu_blend *b = p->cfg.blend;
    size_t n = (p->header->n_bucket ? p->header->n_bucket : 1) * (size_t)b->n_phase;

    for (unsigned s = 0; s < b->n_source; s++) {
        const struct slu_blend_gave *g = slu_blending_gave(p->blending, s);
        *w++ = g->sequences_used;
        for (unsigned k = 0; k < b->n_phase; k++)
            w = put_count(w, g->taken[k]);
    }
    for (size_t i = 0; i < n; i++)
        w = put_count(w, p->phase[i]);
}

void slu_parts_took_add(const uint64_t *w, const struct slu_blend *b,
                        const struct slu_header *h, struct slu_blending *x,
                        struct slu_count *phase)
{
    size_t n = (h->n_bucket ? h->n_bucket : 1) * (size_t)b->n_phase;

    for (unsigned s = 0; s < b->n_source; s++) {
        struct slu_blend_gave *g = slu_blending_books(x, s);
        g->sequences_used += *w++;
        for (unsigned k = 0; k < b->n_phase; k++, w += 3)
            slu_count_add(&g->taken[k], (struct slu_count){w[0], w[1], w[2]});
    }
    for (size_t i = 0; i < n; i++, w += 3)
        slu_count_add(&phase[i], (struct slu_count){w[0], w[1], w[2]});
}
