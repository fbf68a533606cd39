/* passages_replay.c - the sequences once more: the windows that were asked about, then
 * what stays. */
#include <string.h>

#include "lib/dedup/passages_private.h"

enum { BATCH_TOK = 1 << 18 }; /* tokens of a batch that is read back */

/* The next record of the spool, borrowed until the next call. */
static int next_record(struct slu_passages *x, const uint8_t **p, size_t *n,
                       struct slu_err *err)
{
    const void *at;
    uint64_t v;
    int rc = slu_spool_get(x->spool, &at, sizeof v, err);

    *p = NULL;
    *n = 0;
    if (rc)
        return rc;
    memcpy(&v, at, sizeof v);
    if (v > x->max_record || v < 2)
        return slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged", x->tmpdir);
    *n = v;
    rc = slu_spool_get(x->spool, &at, (v + 7) & ~(size_t)7, err);
    *p = at;
    return rc == SLU_EOF ? slu_fail(err, SLU_E_TRUNCATED,
                                    "temporary file in %s: ends early", x->tmpdir)
                         : rc;
}

/* Adds the places of the record p[0, n) to *place. */
static int pass_record(const uint8_t *p, size_t n, uint64_t *place, struct slu_err *err)
{
    uint64_t n_tok, n_seg;
    int rc = slu_seqrec_peek(p, n, &n_tok, &n_seg, err);

    if (rc == SLU_OK)
        *place += slu_seq_places(n_tok, n_seg);
    return rc;
}

/* ---- step 3 ---- */

static const char astray[] =
    "internal error: a block lies outside of its text; please report it";

int slu_passages_ask(struct slu_passages *x, struct slu_err *err)
{
    struct slu_windows w = {.special = &x->cfg.special,
                            .n_tok = x->cfg.n_tok,
                            .spread = x->spread,
                            .asked = x->asked,
                            .to = x->windows,
                            .astray = astray};
    struct slu_batch b;
    uint64_t place = 0;
    const uint8_t *p;
    size_t n;

    slu_batch_init(&b, x->cfg.tok_bytes);
    int rc = slu_windows_begin(&w, err);
    if (rc == SLU_OK)
        rc = slu_spool_rewind(x->spool, x->max_record, err);
    while (rc == SLU_OK && w.has) {
        rc = next_record(x, &p, &n, err);
        uint64_t end = place;
        if (rc == SLU_OK)
            rc = pass_record(p, n, &end, err);
        if (rc)
            break;
        if (w.place < end) {
            slu_batch_clear(&b);
            rc = slu_seqrec_add(&b, p, n, err);
            if (rc == SLU_OK)
                rc = slu_windows_seq(&w, &b, b.seq, place, err);
        }
        place = end;
    }
    slu_batch_release(&b);
    return rc == SLU_EOF ? slu_fail(err, SLU_E_CONSERVATION, "%s", astray) : rc;
}

/* ---- step 4 ---- */

int slu_passages_first_range(struct slu_passages *x, struct slu_err *err)
{
    int rc = slu_grow(&x->range, &x->cap_range, 1, sizeof *x->range, err);

    x->n_range = 0;
    if (rc == SLU_OK)
        rc = slu_ranges_next(x->ranges, &x->range[0], err);
    x->more = rc == SLU_OK;
    return rc == SLU_EOF ? SLU_OK : rc;
}

int slu_passages_ranges_of(struct slu_passages *x, uint64_t end, struct slu_err *err)
{
    x->range[0] = x->range[x->n_range]; /* the one that was read ahead */
    x->n_range = 0;
    while (x->more && x->range[x->n_range].from < end) {
        int rc =
            slu_grow(&x->range, &x->cap_range, ++x->n_range + 1, sizeof *x->range, err);
        if (rc == SLU_OK)
            rc = slu_ranges_next(x->ranges, &x->range[x->n_range], err);
        if (rc && rc != SLU_EOF)
            return rc;
        x->more = rc == SLU_OK;
    }
    return SLU_OK;
}

static int tell(struct slu_passages *x, const struct slu_batch *b, uint64_t place,
                struct slu_err *err)
{
    const struct slu_range *r = x->range, *end = r + x->n_range;
    struct slu_walk w;
    int rc = SLU_OK;

    slu_walk_init(&w, b, &b->seq[b->n_seq - 1], &x->cfg.special, place);
    while (rc == SLU_OK && r < end && slu_walk_run(&w)) {
        uint64_t stop = w.run_place + w.run.seg.len_tok;
        for (; rc == SLU_OK && r < end && r->from < stop; r++) {
            const struct slu_seg *s = &w.run.seg;
            const struct slu_passage p = {
                {s->source, s->document, s->offset + (r->from - w.run_place)},
                r->first,
                r->to - r->from};
            rc = x->cfg.passage(x->cfg.ctx, &p, err);
        }
    }
    return rc;
}

int slu_passages_apply(struct slu_passages *x, struct slu_batch *b, uint64_t place,
                       struct slu_err *err)
{
    struct slu_passages_result *r = &x->result;
    struct slu_count before = slu_seq_count(b, &b->seq[b->n_seq - 1]);
    struct slu_count after = {0, 0, 0};
    struct slu_gaps_did did = {0};
    size_t n_seq = b->n_seq;
    int rc = x->cfg.passage ? tell(x, b, place, err) : SLU_OK;

    r->passages += x->n_range;
    if (rc || !x->cfg.cut) {
        for (size_t i = 0; i < x->n_range; i++)
            r->passage_tok += x->range[i].to - x->range[i].from;
        return rc;
    }
    rc = slu_gaps_cut(&x->cut, b, place, x->range, x->n_range, &did, err);
    if (rc)
        return rc;
    if (b->n_seq == n_seq)
        after = slu_seq_count(b, &b->seq[b->n_seq - 1]);
    r->passage_tok += did.passage_tok;
    r->short_tok += did.short_tok;
    r->documents_cut += did.documents_cut;
    r->documents_gone += did.documents_gone;
    slu_count_add(&r->dropped, (struct slu_count){before.documents - after.documents,
                                                  before.sequences - after.sequences,
                                                  did.passage_tok + did.special_tok});
    return SLU_OK;
}

static int emit_batch(struct slu_passages *x, struct slu_batch *b, struct slu_err *err)
{
    int rc = b->n_seq ? x->cfg.emit(x->cfg.ctx, b, err) : SLU_OK;

    slu_batch_clear(b);
    return rc;
}

int slu_passages_emit(struct slu_passages *x, struct slu_err *err)
{
    struct slu_batch b;
    uint64_t place = 0, n_seq = 0;
    const uint8_t *p;
    size_t n;

    slu_batch_init(&b, x->cfg.tok_bytes);
    int rc = slu_spool_rewind(x->spool, x->max_record, err);
    if (rc == SLU_OK)
        rc = slu_passages_first_range(x, err);
    while (rc == SLU_OK) {
        rc = next_record(x, &p, &n, err);
        uint64_t end = place;
        if (rc == SLU_OK)
            rc = pass_record(p, n, &end, err);
        if (rc)
            break;
        n_seq++;
        rc = slu_seqrec_add(&b, p, n, err);
        if (rc == SLU_OK)
            rc = slu_passages_ranges_of(x, end, err);
        if (rc == SLU_OK && x->n_range)
            rc = slu_passages_apply(x, &b, place, err);
        place = end;
        if (rc == SLU_OK && slu_batch_weight(&b) >= BATCH_TOK)
            rc = emit_batch(x, &b, err);
    }
    if (rc == SLU_EOF)
        rc = emit_batch(x, &b, err);
    slu_batch_release(&b);
    if (rc == SLU_OK && (n_seq != x->n_seq || x->more))
        rc =
            slu_fail(err, SLU_E_CONSERVATION,
                     "internal error: %llu sequences waited and %llu came back; please "
                     "report it",
                     (unsigned long long)x->n_seq, (unsigned long long)n_seq);
    return rc;
}
