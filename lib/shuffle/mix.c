/* Mixes: the sequences taken, and their periods. mix_plan.c has the request and the
 * amounts. */
#include "mix.h"

#include <stdlib.h>
#include <string.h>

/* The ends of periods on a source's line: all epochs before `round`, and of that epoch
 * the sequences within the cut. */
struct line {
    struct slu_cut end[SLU_MIX_PERIODS];
    uint64_t n_epoch; /* epochs taken, the last one perhaps in part */
};

struct slu_mixer {
    const struct slu_mix *mix;
    struct slu_select *select;
    struct slu_mix_plan plan;
    struct line line[SLU_MIX_SOURCES];
    struct slu_mix_gave gave[SLU_MIX_SOURCES];
    bool weighs[SLU_MIX_SOURCES];
    uint64_t spilled;
};

/* ---- the source of a sequence ---- */

static int of_number(const struct slu_mix_by *by, uint64_t number)
{
    return number < by->n ? by->source[number] : -1;
}

uint64_t slu_mix_value(const struct slu_meta_value *v)
{
    return v->n ? slu_hash64(v->p, v->n) : 0;
}

/* What tells the segment's source: its domain, or its value. */
static uint64_t key_of(const struct slu_mix_by *by, const struct slu_batch *b,
                       const struct slu_seq *q, const struct slu_seg *s)
{
    uint8_t number[8];
    struct slu_meta_value v;
    if (by->by == SLU_BY_DOMAIN)
        return s->domain;
    return slu_property_get(by->property, by->names, b, q, s, number, &v)
               ? slu_mix_value(&v)
               : 0;
}

static int of_key(const struct slu_mix_by *by, uint64_t key)
{
    if (key == (by->by == SLU_BY_DOMAIN ? SLU_NO_DOMAIN : 0))
        return by->none;
    if (by->by == SLU_BY_DOMAIN)
        return of_number(by, key);
    for (size_t i = 0; i < by->n; i++)
        if (by->value[i] == key)
            return (int)i;
    return -1;
}

static int of_most(const struct slu_mix_by *by, const struct slu_batch *b,
                   const struct slu_seq *q)
{
    const struct slu_seg *seg = &b->seg[q->seg_off];
    enum { MOST = 64 };
    uint64_t key[MOST], tok[MOST], best = 0;
    unsigned n = 0;
    for (uint64_t i = 0; i < q->n_seg; i++) {
        unsigned k = 0;
        if (seg[i].source == SLU_PADDING)
            continue;
        const uint64_t is = key_of(by, b, q, &seg[i]);
        while (k < n && key[k] != is)
            k++;
        if (k == MOST)
            continue;
        if (k == n) {
            key[n] = is;
            tok[n++] = 0;
        }
        tok[k] += seg[i].len_tok;
    }
    for (unsigned k = 1; k < n; k++)
        if (tok[k] > tok[best])
            best = k;
    return n ? of_key(by, key[best]) : by->none;
}

static int band_of(const struct slu_mix *m, double score)
{
    unsigned s = 0;

    while (s + 1 < m->n_source && !slu_compare_holds(&m->source[s].score, score))
        s++;
    return (int)s;
}

int slu_mix_source_of(const struct slu_mix_by *by, const struct slu_batch *b,
                      const struct slu_seq *q)
{
    const struct slu_seg *seg = &b->seg[q->seg_off];
    if (by->by == SLU_BY_INPUT)
        return of_number(by, b->input);
    if (by->by == SLU_BY_SCORE)
        return band_of(by->bands, slu_seq_score(b, q));
    if (by->by == SLU_BY_WHERE)
        return 0;
    if (by->by == SLU_BY_FILE)
        return q->n_seg ? of_number(by, seg->source) : -1;
    if (q->n_seg == 1 && seg->source != SLU_PADDING)
        return of_key(by, key_of(by, b, q, seg));
    return of_most(by, b, q);
}

/* The band of a segment's document. */
static int band_of_segment(const struct slu_mix_by *by, const struct slu_batch *b,
                           const struct slu_seq *q, const struct slu_seg *seg,
                           unsigned *band, struct slu_err *err)
{
    const struct slu_mix *m = by->bands;
    bool holds = false;
    int rc = SLU_OK;
    for (*band = 0; *band + 1 < m->n_source && !rc; ++*band) {
        if (!by->where[*band])
            holds = slu_compare_holds(&m->source[*band].score, slu_seq_score(b, q));
        else if ((rc = slu_where_ask_segment(by->where[*band], b, q, seg, &holds, err)))
            rc = slu_err_at(err, "mix: '%.200s'", m->source[*band].name);
        if (holds)
            break;
    }
    return rc;
}

int slu_mix_band(const struct slu_mix_by *by, const struct slu_batch *b,
                 const struct slu_seq *q, int *source, struct slu_err *err)
{
    const struct slu_seg *seg = &b->seg[q->seg_off];
    const unsigned others = by->bands->n_source - 1;
    uint64_t tok[SLU_MIX_SOURCES] = {0};
    unsigned band, best = others;
    for (uint64_t i = 0; i < q->n_seg; i++) {
        if (seg[i].source == SLU_PADDING)
            continue;
        int rc = band_of_segment(by, b, q, &seg[i], &band, err);
        if (rc)
            return rc;
        tok[band] += seg[i].len_tok;
    }
    for (unsigned s = others + 1; s-- > 0;)
        if (tok[s] && tok[s] >= tok[best])
            best = s;
    *source = (int)best;
    return SLU_OK;
}

/* ---- reading ---- */

int slu_mixer_new(struct slu_mixer **out, const struct slu_mix *b, uint64_t budget_byte,
                  const char *tmpdir, struct slu_err *err)
{
    struct slu_mixer *x = calloc(1, sizeof *x);
    *out = x;
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->mix = b;
    for (unsigned s = 0; s < b->n_source; s++)
        x->weighs[s] = slu_mix_weighs(b, s);
    int rc = slu_select_new(&x->select, budget_byte, tmpdir, err);
    if (!rc)
        return SLU_OK;
    slu_mixer_free(x);
    *out = NULL;
    return rc;
}

int slu_mixer_add(struct slu_mixer *x, unsigned source, struct slu_u128 hash,
                  struct slu_count n, struct slu_err *err)
{
    slu_count_add(&x->gave[source].available, n);
    if (!x->weighs[source])
        return SLU_OK;
    return slu_select_add(x->select, hash, source, n.tokens, err);
}

/* ---- the cuts ---- */

static bool whole(const struct slu_cut *c)
{
    return c->tok == 0;
}

/* Sets the end of each period on the line of source s. */
static void place_ends(struct slu_mixer *x, unsigned s)
{
    uint64_t sum = 0, has = x->gave[s].available.tokens;
    struct line *l = &x->line[s];
    for (unsigned p = 0; p < x->mix->n_period; p++) {
        sum += x->plan.target[s][p];
        l->end[p] = (struct slu_cut){
            .group = s, .round = has ? sum / has : 0, .tok = has ? sum % has : 0};
        l->n_epoch = l->end[p].round + !whole(&l->end[p]);
    }
}

int slu_mixer_plan(struct slu_mixer *x, uint64_t max_tok, struct slu_err *err)
{
    const struct slu_mix *b = x->mix;
    uint64_t n_tok[SLU_MIX_SOURCES];
    unsigned n = 0;
    for (unsigned s = 0; s < b->n_source; s++)
        n_tok[s] = x->gave[s].available.tokens;
    struct slu_cut *cut = malloc(sizeof *cut * b->n_source * b->n_period);
    int rc = cut ? slu_mix_plan(b, n_tok, max_tok, &x->plan, err)
                 : slu_fail_nomem(err, sizeof *cut * b->n_source * b->n_period);
    for (unsigned s = 0; !rc && s < b->n_source; s++) {
        place_ends(x, s);
        for (unsigned p = 0; p < b->n_period; p++)
            if (!whole(&x->line[s].end[p]))
                cut[n++] = x->line[s].end[p];
    }
    if (!rc && n)
        rc = slu_select_cut(x->select, cut, n, err);
    n = 0;
    for (unsigned s = 0; !rc && s < b->n_source; s++)
        for (unsigned p = 0; p < b->n_period; p++)
            if (!whole(&x->line[s].end[p]))
                x->line[s].end[p] = cut[n++];
    free(cut);
    x->spilled = slu_select_spilled(x->select);
    slu_select_free(x->select); /* the next steps need its memory */
    x->select = NULL;
    return rc;
}

/* ---- taking ---- */

uint64_t slu_mixer_epochs(const struct slu_mixer *x, unsigned source)
{
    return x->line[source].n_epoch;
}

int slu_mixer_take(struct slu_mixer *x, unsigned source, struct slu_u128 hash,
                   struct slu_count n, uint64_t epoch)
{
    struct line *l = &x->line[source];
    bool turned = false;
    int period = -1;
    for (unsigned p = 0; p < x->mix->n_period; p++) {
        struct slu_cut *end = &l->end[p];
        bool within = epoch < end->round;
        if (epoch == end->round && !whole(end)) {
            if (!turned)
                hash = slu_select_turn(hash, epoch);
            turned = true;
            /* If an earlier period took the sequence, it still counts for this end. */
            within = slu_cut_take(end, hash, n.tokens);
        }
        if (within && period < 0)
            period = (int)p;
    }
    if (period >= 0)
        slu_count_add(&x->gave[source].taken[period], n);
    x->gave[source].sequences_used += period >= 0 && epoch == 0;
    return period;
}

const struct slu_mix_gave *slu_mixer_gave(const struct slu_mixer *x, unsigned source)
{
    return &x->gave[source];
}

const struct slu_mix_plan *slu_mixer_planned(const struct slu_mixer *x)
{
    return &x->plan;
}

uint64_t slu_mixer_spilled(const struct slu_mixer *x)
{
    return x->select ? slu_select_spilled(x->select) : x->spilled;
}

void slu_mixer_free(struct slu_mixer *x)
{
    if (!x)
        return;
    slu_select_free(x->select);
    free(x);
}

/* ---- in parts ---- */

enum { CUT_WORDS = 7, LINE_WORDS = 6 };

bool slu_mix_weighs(const struct slu_mix *b, unsigned source)
{
    bool any = false;
    for (unsigned p = 0; p < b->n_period; p++)
        any |= b->source[source].weight[p] > 0;
    return any;
}

size_t slu_mixer_words(const struct slu_mix *b)
{
    return 1 + b->n_source * (LINE_WORDS + b->n_period * (size_t)CUT_WORDS);
}

void slu_mixer_save(const struct slu_mixer *x, uint64_t *w)
{
    *w++ = x->plan.tok;
    for (unsigned s = 0; s < x->mix->n_source; s++) {
        const struct slu_count *n = &x->gave[s].available;
        const uint64_t line[LINE_WORDS] = {n->documents, n->sequences, n->tokens,
                                           x->plan.max_epochs[s], x->line[s].n_epoch};
        memcpy(w, line, sizeof line);
        w += LINE_WORDS;
        for (unsigned p = 0; p < x->mix->n_period; p++, w += CUT_WORDS) {
            const struct slu_cut *c = &x->line[s].end[p];
            const uint64_t cut[CUT_WORDS] = {x->plan.target[s][p],
                                             c->round,
                                             c->tok,
                                             c->key.lo,
                                             c->key.hi,
                                             c->left,
                                             c->all};
            memcpy(w, cut, sizeof cut);
        }
    }
}

int slu_mixer_load(struct slu_mixer **out, const struct slu_mix *b, const uint64_t *w,
                   struct slu_err *err)
{
    struct slu_mixer *x = calloc(1, sizeof *x);
    *out = x;
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->mix = b;
    x->plan.tok = *w++;
    for (unsigned s = 0; s < b->n_source; s++) {
        x->weighs[s] = slu_mix_weighs(b, s);
        x->gave[s].available = (struct slu_count){w[0], w[1], w[2], 0};
        x->plan.max_epochs[s] = w[3];
        x->line[s].n_epoch = w[4];
        w += LINE_WORDS;
        for (unsigned p = 0; p < b->n_period; p++, w += CUT_WORDS) {
            x->plan.target[s][p] = w[0];
            x->line[s].end[p] = (struct slu_cut){.group = s,
                                                 .round = w[1],
                                                 .tok = w[2],
                                                 .key = {w[3], w[4]},
                                                 .left = w[5],
                                                 .all = w[6] != 0};
        }
    }
    return SLU_OK;
}

void slu_mixer_pass(struct slu_mixer *x, unsigned source, struct slu_u128 hash,
                    uint64_t n_tok)
{
    for (unsigned p = 0; p < x->mix->n_period; p++) {
        struct slu_cut *end = &x->line[source].end[p];
        if (!whole(end))
            (void)slu_cut_take(end, slu_select_turn(hash, end->round), n_tok);
    }
}

struct slu_mix_gave *slu_mixer_account(struct slu_mixer *x, unsigned source)
{
    return &x->gave[source];
}
