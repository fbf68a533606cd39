/* passages_phase_filter.c - a part's stream without what all ranges found repeated. */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/passages_phase_private.h"

struct slu_passages_filter {
    struct slu_passages *x; /* of which only what cuts is there */
    uint64_t part, of, n_place;
    uint64_t count[SLU_WORKFILE_COUNTS]; /* of the part's ask file */
    struct slu_batch out;
};

/* The repeats of this part in the section of a file. */
static int take_section(struct slu_passages_filter *f, struct slu_workfile *w,
                        uint64_t section, struct slu_err *err)
{
    uint64_t place, count;
    int rc = slu_workfile_begin(w, section, err);

    while (rc == SLU_OK) {
        rc = slu_passages_next_run(w, f->count[N_PLACE], &place, &count, err);
        if (rc)
            break;
        const struct slu_found x = {place, 0, (uint32_t)count, SLU_FOUND_REPEAT};
        rc = slu_ranges_put(f->x->ranges, &x, false, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* All files of a kind. *inputs: what they were made from, *ids those mixed with their
 * own ids; chain: what a match file must say, NULL: merge files. */
static int take_files(struct slu_passages_filter *f, const struct slu_phase_cfg *c,
                      const uint8_t *fingerprint, const struct slu_u128 *chain,
                      struct slu_u128 *ids, struct slu_err *err)
{
    uint64_t kind = chain ? SLU_WORKFILE_PASSAGES_MATCH : SLU_WORKFILE_MERGE;
    uint64_t n_range = f->count[N_RANGE];
    struct slu_u128 inputs = {0, 0};
    int rc = SLU_OK;

    *ids = inputs;
    for (uint64_t j = 0; rc == SLU_OK && j < n_range; j++) {
        struct slu_workfile *w;
        rc = slu_phase_open(c, kind, j, n_range, n_range, fingerprint,
                            j ? &inputs : NULL, &w, err);
        if (rc)
            return rc;
        const struct slu_workfile_head *h = slu_workfile_head(w);
        if (j == 0)
            *ids = inputs = h->inputs;
        *ids = slu_workfile_mix(*ids, slu_workfile_id(w));
        if (chain &&
            (h->count[CHAIN_LO] != chain->lo || h->count[CHAIN_HI] != chain->hi))
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s: was made from other files than those that are there "
                          "now; remove it and run its phase again",
                          slu_workfile_path(w));
        if (rc == SLU_OK)
            rc = take_section(f, w, (chain ? 0 : f->of) + f->part, err);
        slu_workfile_free(w);
    }
    return rc;
}

static int take_all(struct slu_passages_filter *f, const struct slu_phase_cfg *c,
                    const uint8_t *fingerprint, struct slu_err *err)
{
    const uint64_t kind = SLU_WORKFILE_PASSAGES_ASK;
    struct slu_u128 merged, matched;
    struct slu_workfile *ask;
    int rc = slu_phase_open(c, kind, f->part, f->of, c->ranges, fingerprint, NULL, &ask,
                            err);

    if (rc)
        return rc;
    memcpy(f->count, slu_workfile_head(ask)->count, sizeof f->count);
    slu_workfile_free(ask);
    slu_ranges_places(f->x->ranges, f->count[N_PLACE]);
    rc = take_files(f, c, fingerprint, NULL, &merged, err);
    if (rc == SLU_OK) /* was it made from these? */
        rc = slu_phase_open(c, kind, f->part, f->of, c->ranges, fingerprint, &merged,
                            &ask, err);
    if (rc)
        return rc;
    slu_workfile_free(ask);
    return take_files(f, c, fingerprint, &merged, &matched, err);
}

int slu_passages_filter_open(struct slu_passages_filter **out,
                             const struct slu_phase_cfg *c, const struct slu_header *h,
                             uint64_t min_keep_tok,
                             int (*emit)(void *ctx, struct slu_batch *b,
                                         struct slu_err *err),
                             void *ctx, struct slu_err *err)
{
    struct slu_passages_filter *f = calloc(1, sizeof *f);
    struct slu_passages *x = calloc(1, sizeof *x);

    *out = NULL;
    if (!f || !x) {
        free(f);
        free(x);
        return slu_fail_nomem(err, sizeof *x);
    }
    f->x = x;
    f->part = c->part;
    f->of = c->of;
    slu_batch_init(&f->out, h->tok_bytes);
    slu_seqrec_init(&x->rec);
    x->cfg = (struct slu_passages_cfg){.cut = true, .emit = emit, .ctx = ctx};
    slu_passages_specials(&x->cfg.special, h);
    x->cut.special = x->cfg.special;
    x->cut.min_keep_tok = min_keep_tok;
    /* Of the three sorters that the budget is for, there is one. */
    int rc = slu_ranges_new(&x->ranges, 3 * c->budget_byte, c->tmpdir, c->n_threads,
                            c->n_passage_tok, false, err);
    if (rc == SLU_OK)
        rc = take_all(f, c, h->fingerprint, err);
    if (rc == SLU_OK)
        rc = slu_ranges_seal(x->ranges, err);
    if (rc == SLU_OK)
        rc = slu_passages_first_range(x, err);
    if (rc == SLU_OK && f->count[SPECIALS] != slu_passages_special_hash(h))
        rc = slu_passages_other_stream(f->part, f->of, err);
    if (rc)
        slu_passages_filter_free(f);
    else
        *out = f;
    return rc;
}

/* Copies sequence i of b, cut. */
static int take_seq(struct slu_passages_filter *f, const struct slu_batch *b, size_t i,
                    struct slu_err *err)
{
    const struct slu_seq *q = &b->seq[i];
    uint64_t end = f->n_place + slu_seq_places(q->len_tok, q->n_seg);
    int rc = slu_batch_add(&f->out, slu_batch_at(b, q->tok_off), q->len_tok,
                           b->seg + q->seg_off, q->n_seg, b->str.data, err);

    if (rc == SLU_OK)
        rc = slu_passages_ranges_of(f->x, end, err);
    if (rc == SLU_OK && f->x->n_range)
        rc = slu_passages_apply(f->x, &f->out, f->n_place, err);
    f->n_place = end;
    /* Only in another stream does a passage lie outside of its texts. */
    return rc == SLU_E_CONSERVATION ? slu_passages_other_stream(f->part, f->of, err)
                                    : rc;
}

int slu_passages_filter_batch(struct slu_passages_filter *f, struct slu_batch *b,
                              struct slu_err *err)
{
    struct slu_passages *x = f->x;
    uint64_t end = f->n_place;
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq; i++)
        end += slu_seq_places(b->seq[i].len_tok, b->seq[i].n_seg);
    if (!x->more || x->range[x->n_range].from >= end) {
        f->n_place = end;
        return x->cfg.emit(x->cfg.ctx, b, err);
    }
    slu_batch_clear(&f->out);
    for (size_t i = 0; rc == SLU_OK && i < b->n_seq; i++)
        rc = take_seq(f, b, i, err);
    return rc == SLU_OK && f->out.n_seq ? x->cfg.emit(x->cfg.ctx, &f->out, err) : rc;
}

int slu_passages_filter_end(struct slu_passages_filter *f, struct slu_reader *r,
                            const struct slu_sum *total,
                            const struct slu_passages_result **result,
                            struct slu_err *err)
{
    bool same;
    int rc = slu_phase_same_stream(&same, f->count, r, total, err);

    if (rc)
        return rc;
    if (!same || f->count[N_PLACE] != f->n_place || f->x->more)
        return slu_passages_other_stream(f->part, f->of, err);
    f->x->result.spilled_byte = slu_ranges_spilled(f->x->ranges);
    *result = &f->x->result;
    return SLU_OK;
}

void slu_passages_filter_free(struct slu_passages_filter *f)
{
    if (!f)
        return;
    slu_passages_free(f->x);
    slu_batch_release(&f->out);
    free(f);
}
