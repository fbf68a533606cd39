/* permute_parts.c - the files between scatter and gather: parameters and books. */
#include "permute_parts_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int slu_parts_param(const struct slu_parts_cfg *c, uint64_t ranges, char **text,
                    struct slu_err *err)
{
    if (asprintf(text, "%s ranges=%llu", c->param, (unsigned long long)ranges) >= 0)
        return SLU_OK;
    *text = NULL;
    return slu_fail_nomem(err, strlen(c->param) + 64);
}

/* ---- books ---- */

int slu_parts_books_check(const struct slu_parts_books *b, struct slu_err *err)
{
    const struct slu_permute_result *r = &b->result;
    struct slu_count in = b->in.n, out = r->out;

    slu_count_add(&in, r->repeated);
    slu_count_add(&out, r->no_bucket);
    slu_count_add(&out, r->not_sampled);
    slu_count_add(&out, r->not_mixed);
    if (!memcmp(&in, &out, sizeof in) &&
        !slu_u128_cmp(slu_u128_add(b->in.checksum, r->repeated_checksum),
                      slu_u128_add(b->checksum, r->left_checksum)))
        return SLU_OK;
    return slu_fail(
        err, SLU_E_CONSERVATION,
        "the sequences that came out are not those that went in (%llu of %llu, %llu "
        "of %llu tokens, or their checksum differs)",
        (unsigned long long)out.sequences, (unsigned long long)in.sequences,
        (unsigned long long)out.tokens, (unsigned long long)in.tokens);
}

static uint64_t *put_count(uint64_t *w, const struct slu_count *n)
{
    *w++ = n->documents;
    *w++ = n->sequences;
    *w++ = n->tokens;
    return w;
}
static const uint64_t *get_count(const uint64_t *w, struct slu_count *n)
{
    n->documents = *w++;
    n->sequences = *w++;
    n->tokens = *w++;
    return w;
}
static uint64_t *put_sum(uint64_t *w, struct slu_u128 v)
{
    *w++ = v.lo;
    *w++ = v.hi;
    return w;
}
static const uint64_t *get_sum(const uint64_t *w, struct slu_u128 *v)
{
    v->lo = *w++;
    v->hi = *w++;
    return w;
}

void slu_parts_put_books(const struct slu_parts_books *b, uint64_t w[BOOK_WORDS])
{
    const struct slu_permute_result *r = &b->result;

    memset(w, 0, BOOK_WORDS * sizeof *w);
    w = put_count(w, &b->in.n);
    *w++ = b->in.segments;
    *w++ = b->in.padding;
    w = put_sum(w, b->in.checksum);
    w = put_sum(w, b->in.trace_checksum);
    w = put_count(w, &r->out);
    w = put_count(w, &r->not_sampled);
    w = put_count(w, &r->no_bucket);
    w = put_count(w, &r->not_mixed);
    w = put_count(w, &r->repeated);
    w = put_sum(w, r->left_checksum);
    w = put_sum(w, r->repeated_checksum);
    w = put_sum(w, b->checksum);
    put_sum(w, b->stream);
}

void slu_parts_get_books(const uint64_t w[BOOK_WORDS], struct slu_parts_books *b)
{
    struct slu_permute_result *r = &b->result;

    memset(b, 0, sizeof *b);
    w = get_count(w, &b->in.n);
    b->in.segments = *w++;
    b->in.padding = *w++;
    w = get_sum(w, &b->in.checksum);
    w = get_sum(w, &b->in.trace_checksum);
    w = get_count(w, &r->out);
    w = get_count(w, &r->not_sampled);
    w = get_count(w, &r->no_bucket);
    w = get_count(w, &r->not_mixed);
    w = get_count(w, &r->repeated);
    w = get_sum(w, &r->left_checksum);
    w = get_sum(w, &r->repeated_checksum);
    w = get_sum(w, &b->checksum);
    get_sum(w, &b->stream);
}

void slu_parts_add_books(struct slu_parts_books *a, const struct slu_parts_books *b)
{
    struct slu_permute_result *r = &a->result;
    const struct slu_permute_result *s = &b->result;

    slu_sum_add(&a->in, &b->in);
    a->stream = slu_workfile_mix(a->stream, b->stream);
    slu_count_add(&r->out, s->out);
    slu_count_add(&r->not_sampled, s->not_sampled);
    slu_count_add(&r->no_bucket, s->no_bucket);
    slu_count_add(&r->not_mixed, s->not_mixed);
    slu_count_add(&r->repeated, s->repeated);
    r->left_checksum = slu_u128_add(r->left_checksum, s->left_checksum);
    r->repeated_checksum = slu_u128_add(r->repeated_checksum, s->repeated_checksum);
    a->checksum = slu_u128_add(a->checksum, b->checksum);
}

void slu_parts_put_cell(const struct slu_parts_cell *c, uint64_t w[CELL_WORDS])
{
    put_sum(put_count(w, &c->n), c->checksum);
}

void slu_parts_get_cell(const uint64_t w[CELL_WORDS], struct slu_parts_cell *c)
{
    get_sum(get_count(w, &c->n), &c->checksum);
}

int slu_parts_get_words(struct slu_workfile *f, uint64_t section, uint64_t *w, size_t n,
                        struct slu_err *err)
{
    int rc = slu_workfile_begin(f, section, err);

    if (rc == SLU_OK)
        rc = slu_workfile_get(f, n, w, err);
    return rc ? rc : slu_workfile_end(f, err);
}

int slu_parts_done(const struct slu_parts_cfg *c, const char *name,
                   const struct slu_workfile_head *want, uint64_t books, bool *done,
                   struct slu_parts_books *b, struct slu_err *err)
{
    struct slu_workfile_head is;
    struct slu_workfile *f = NULL;
    uint64_t w[BOOK_WORDS];
    char *path = NULL;

    *done = false;
    if (c->force)
        return SLU_OK;
    int rc = slu_work_path(c->work, name, want->part, want->of, &path, err);
    if (rc == SLU_OK)
        rc = slu_work_done(path, want, &want->inputs, false, done, &is, err);
    if (rc == SLU_OK && *done)
        rc = slu_workfile_open(&f, path, want->kind, err);
    if (rc == SLU_OK && *done)
        rc = slu_parts_get_words(f, books, w, BOOK_WORDS, err);
    if (rc == SLU_OK && *done)
        slu_parts_get_books(w, b);
    slu_workfile_free(f);
    free(path);
    return rc;
}
