#include "lib/dedup/substring/substring_cut.h"

#include <stdlib.h>
#include <string.h>

void slu_gaps_release(struct slu_gaps *c)
{
    free(c->gap);
    free(c->seg);
    memset(c, 0, sizeof *c);
}

/* Adds [from, to) to the gaps; extends the last gap if it ends at `from`. */
static int add_gap(struct slu_gaps *c, uint64_t from, uint64_t to, struct slu_err *err)
{
    if (from == to)
        return SLU_OK;
    if (c->n_gap && c->gap[c->n_gap - 1].to == from) {
        c->gap[c->n_gap - 1].to = to;
        return SLU_OK;
    }
    int rc = slu_grow(&c->gap, &c->cap_gap, c->n_gap + 1, sizeof *c->gap, err);
    if (!rc)
        c->gap[c->n_gap++] = (struct slu_gap){from, to};
    return rc;
}

/* Decides a piece [from, to) between ranges of a stretch: keep it, or drop it as too
 * short. */
static int keep_or_drop(struct slu_gaps *c, uint64_t from, uint64_t to, uint64_t *kept,
                        struct slu_gaps_did *r, struct slu_err *err)
{
    if (to - from >= c->min_keep_tok) {
        *kept += to - from;
        return SLU_OK;
    }
    r->short_tok += to - from;
    return add_gap(c, from, to, err);
}

static int astray(struct slu_err *err)
{
    return slu_fail(err, SLU_E_CONSERVATION,
                    "internal error: a repeated passage crosses documents; please "
                    "report it");
}

/* The part of a document in a sequence: adjacent runs, with the missing parts between
 * them. Counts are ids of the sequence. */
struct document {
    uint64_t source, number, first, end;
    uint64_t kept, text; /* ids that are not special: the kept ones, and all */
    size_t n_gap;        /* gaps before it */
    bool cut;
};

/* If only special ids of the document are kept, drops them too. */
static int end_document(struct slu_gaps *c, const struct document *d,
                        struct slu_gaps_did *r, struct slu_err *err)
{
    if (!d->cut)
        return SLU_OK;
    r->documents_cut++;
    if (d->kept)
        return SLU_OK;
    r->documents_gone++;
    r->special_tok += d->end - d->first - d->text;
    c->n_gap = d->n_gap;
    if (c->n_gap && c->gap[c->n_gap - 1].to > d->first)
        c->gap[c->n_gap - 1].to = d->first;
    return add_gap(c, d->first, d->end, err);
}

/* Adds the current run of `w` to *d; ends *d when another document begins. */
static int next_run(struct slu_gaps *c, const struct slu_walk *w, struct document *d,
                    struct slu_gaps_did *r, struct slu_err *err)
{
    const struct slu_seg *s = &w->run.seg;
    uint64_t first = w->run.tok_off - w->q->tok_off;
    int rc = SLU_OK;

    if (!first || s->source != d->source || s->document != d->number) {
        rc = end_document(c, d, r, err);
        *d = (struct document){.source = s->source,
                               .number = s->document,
                               .first = first,
                               .n_gap = c->n_gap};
    }
    d->end = first + s->len_tok;
    return rc;
}

/* Makes the gaps of the current run of `w`, of document d; *next is the next range. */
static int run_gaps(struct slu_gaps *c, struct slu_walk *w, struct document *d,
                    const struct slu_range **next, const struct slu_range *end,
                    struct slu_gaps_did *r, struct slu_err *err)
{
    uint64_t run_end = w->run_place + w->run.seg.len_tok;
    const struct slu_range *p = *next;
    struct slu_stretch s;
    int rc = SLU_OK;

    if (p == end || p->from >= run_end) {
        d->kept += slu_walk_stretch(w, &s);
        return SLU_OK;
    }
    while (!rc && slu_walk_stretch(w, &s)) {
        /* `shift` converts a place of the run to an id of the sequence. */
        uint64_t shift = w->run_place - (w->run.tok_off - w->q->tok_off);
        uint64_t at = s.place, stop = s.place + s.len_tok;
        d->text += s.len_tok;
        if (p == end || p->from >= stop) {
            d->kept += s.len_tok;
            continue;
        }
        for (; !rc && p < end && p->from < stop; p++) {
            if (p->from < at || p->to > stop)
                return astray(err);
            rc = keep_or_drop(c, at - shift, p->from - shift, &d->kept, r, err);
            if (!rc)
                rc = add_gap(c, p->from - shift, p->to - shift, err);
            r->passage_tok += p->to - p->from;
            at = p->to;
        }
        if (!rc)
            rc = keep_or_drop(c, at - shift, stop - shift, &d->kept, r, err);
    }
    *next = p;
    d->cut = true;
    return rc;
}

/* Overwrites the sequence with the ids between the gaps; segments go to c->seg. */
static int rewrite(struct slu_gaps *c, struct slu_batch *b, struct slu_seq *q,
                   struct slu_err *err)
{
    uint8_t *tok = (uint8_t *)b->own.data + q->tok_off * b->tok_bytes;
    uint64_t to = 0, n_seg = 0, end = 0;
    size_t g = 0;

    for (uint64_t i = 0; i < q->n_seg; i++) {
        struct slu_seg s = b->seg[q->seg_off + i];
        uint64_t at = end, start = end;
        end += s.len_tok;
        while (at < end) {
            while (g < c->n_gap && c->gap[g].to <= at)
                g++;
            uint64_t stop = g < c->n_gap && c->gap[g].from < end ? c->gap[g].from : end;
            if (stop > at) {
                int rc = slu_grow(&c->seg, &c->cap_seg, n_seg + 1, sizeof *c->seg, err);
                if (rc)
                    return rc;
                memmove(tok + to * b->tok_bytes, tok + at * b->tok_bytes,
                        (stop - at) * b->tok_bytes);
                c->seg[n_seg] = s;
                c->seg[n_seg].offset += at - start;
                c->seg[n_seg++].len_tok = stop - at;
                to += stop - at;
            }
            at = stop < end ? c->gap[g].to : end;
        }
    }
    int rc = slu_grow(&b->seg, &b->cap_seg, q->seg_off + n_seg, sizeof *b->seg, err);
    if (rc)
        return rc;
    if (n_seg)
        memcpy(b->seg + q->seg_off, c->seg, n_seg * sizeof *b->seg);
    b->n_seg = q->seg_off + n_seg;
    q->n_seg = n_seg;
    q->len_tok = to;
    q->hash = (struct slu_u128){0, 0};
    b->n_tok = q->tok_off + to;
    b->own.len = b->n_tok * b->tok_bytes;
    if (n_seg == 0)
        b->n_seq--;
    return SLU_OK;
}

int slu_gaps_cut(struct slu_gaps *c, struct slu_batch *b, uint64_t place,
                 const struct slu_range *range, size_t n_range, struct slu_gaps_did *r,
                 struct slu_err *err)
{
    struct slu_seq *q = &b->seq[b->n_seq - 1];
    const struct slu_range *end = range + n_range;
    struct document d = {.cut = false};
    struct slu_walk w;
    int rc = SLU_OK;

    c->n_gap = 0;
    slu_walk_init(&w, b, q, &c->special, place);
    while (!rc && slu_walk_run(&w)) {
        rc = next_run(c, &w, &d, r, err);
        if (!rc)
            rc = run_gaps(c, &w, &d, &range, end, r, err);
    }
    if (!rc)
        rc = end_document(c, &d, r, err);
    if (!rc && range != end)
        rc = astray(err);
    return rc ? rc : rewrite(c, b, q, err);
}
