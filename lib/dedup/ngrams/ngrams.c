#include "ngrams.h"

#include <stdlib.h>
#include <string.h>

#include "hll.h"
#include "ngrams_cut.h"
#include "ngrams_set.h"

/* A worker's result: for each sequence of a batch a doc, for each doc its units, for
 * each unit its n-grams; each kind in one array. */
struct doc {
    uint64_t n_unit, n_gram;
    bool repeats; /* two of its paragraphs share an n-gram */
};
struct unit {
    uint64_t tok, n_tok, n_word, n_gram;
};

struct worker {
    struct slu_paras paras;
    struct slu_gram_set set;
    struct slu_hll hll;
    struct slu_buf gram; /* counting: n-grams of one sequence */
    uint64_t n_gram, n_paragraph, n_empty;
};

struct slu_ngrams {
    struct slu_ngrams_cfg cfg;
    struct slu_ngram_maker maker;
    struct slu_paras_finder *finder;
    struct worker *worker; /* n_threads */
    struct slu_bloom *bloom;
    struct slu_ngrams_result result;
    bool counted;

    /* for pass 1 */
    int (*copy)(void *ctx, struct slu_batch *b, struct slu_err *err);
    void *copy_ctx;

    /* for pass 2 */
    struct slu_buf hit;          /* of one document, a byte for each n-gram */
    struct slu_buf drop;         /* of one document, struct slu_gram_run */
    struct slu_buf dropped_unit; /* of one document, indexes of units, u64 */
    struct slu_gram_set own;     /* n-grams of the kept paragraphs */
    struct slu_gram_cut cut;
};

/* ---- one sequence ---- */

static int reserve_grams(struct slu_buf *gram, size_t n, struct slu_err *err)
{
    size_t n_byte;

    return slu_mul_overflow(n, sizeof(uint64_t), &n_byte)
               ? slu_fail_nomem(err, SIZE_MAX)
               : slu_buf_reserve(gram, n_byte, err);
}

/* Appends the n-grams of n_word words. */
static int put_grams(const struct slu_ngrams *g, const uint64_t *word, uint64_t n_word,
                     struct slu_buf *gram, uint64_t *n, struct slu_err *err)
{
    *n = 0;
    if (n_word < g->cfg.min_words)
        return SLU_OK;
    int rc = reserve_grams(gram, n_word, err);
    if (rc)
        return rc;
    *n = slu_ngrams_of(&g->maker, word, n_word, (void *)(gram->data + gram->len));
    gram->len += *n * sizeof(uint64_t);
    return SLU_OK;
}

static int put_unit(struct slu_buf *units, const struct unit *u, struct slu_err *err)
{
    return units ? slu_buf_append(units, u, sizeof *u, err) : SLU_OK;
}

/* Appends the units of sequence q, if `units` is set, and their n-grams. */
static int take_apart(struct slu_ngrams *g, struct worker *w, const struct slu_batch *b,
                      const struct slu_seq *q, struct slu_buf *units,
                      struct slu_buf *gram, struct doc *d, struct slu_err *err)
{
    struct slu_paras *p = &w->paras;

    *d = (struct doc){0, 0, false};
    int rc = slu_paras_find(g->finder, b, q, p, err);
    for (size_t i = 0; !rc && i < p->n; i++) {
        const struct slu_para *a = &p->para[i];
        struct unit u = {a->tok, a->n_tok, a->n_word, 0};
        rc = put_grams(g, p->words.hash + a->word, a->n_word, gram, &u.n_gram, err);
        if (!rc)
            rc = put_unit(units, &u, err);
        d->n_unit++;
        d->n_gram += u.n_gram;
    }
    w->n_paragraph += p->n;
    w->n_empty += !p->words.n;
    return rc;
}

/* Whether two units of d share an n-gram. Of many units this is assumed: a set of their
 * n-grams would take more memory than the n-grams. */
static int find_repeats(struct worker *w, struct doc *d, const struct unit *u,
                        const uint64_t *gram, struct slu_err *err)
{
    if (d->n_unit < 2 || d->n_gram < 2)
        return SLU_OK;
    if (d->n_gram > SLU_GRAM_SET_LARGE) {
        d->repeats = true;
        return SLU_OK;
    }
    int rc = slu_gram_set_begin(&w->set, d->n_gram, err);
    for (uint64_t i = 0; !rc && i < d->n_unit; gram += u[i++].n_gram)
        for (uint64_t k = 0; k < u[i].n_gram; k++) {
            uint32_t at = (uint32_t)i;
            if (slu_gram_add(&w->set, gram[k], &at) || at == (uint32_t)i)
                continue;
            d->repeats = true;
            return SLU_OK;
        }
    return rc;
}

/* ---- pass 1 ---- */

static int count_work(void *ctx, unsigned worker, struct slu_batch *b,
                      struct slu_err *err)
{
    struct slu_ngrams *g = ctx;
    struct worker *w = &g->worker[worker];
    struct doc d;
    int rc = SLU_OK;

    for (size_t i = 0; !rc && i < b->n_seq; i++) {
        slu_buf_clear(&w->gram);
        rc = take_apart(g, w, b, &b->seq[i], NULL, &w->gram, &d, err);
        if (!rc)
            slu_hll_add(&w->hll, (const void *)w->gram.data, d.n_gram);
        w->n_gram += d.n_gram;
    }
    slu_buf_trim(&w->gram, SLU_KEEP_BYTE);
    slu_paras_trim(&w->paras);
    return rc;
}

static int count_emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct slu_ngrams *g = ctx;

    return g->copy ? g->copy(g->copy_ctx, b, err) : SLU_OK;
}

int slu_ngrams_count(struct slu_ngrams *g, struct slu_reader *r, unsigned n_slots,
                     int (*copy)(void *ctx, struct slu_batch *b, struct slu_err *err),
                     void *copy_ctx, struct slu_sum *total, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {count_work, count_emit};

    g->copy = copy;
    g->copy_ctx = copy_ctx;
    int rc = slu_stream_run(r, &ops, g, g->cfg.n_threads, n_slots, total, err);
    for (unsigned i = 0; i < g->cfg.n_threads; i++) {
        g->result.n_gram += g->worker[i].n_gram;
        g->result.n_paragraph += g->worker[i].n_paragraph;
        g->result.empty += g->worker[i].n_empty;
        if (i)
            slu_hll_merge(&g->worker[0].hll, &g->worker[i].hll);
    }
    g->result.distinct = slu_hll_estimate(&g->worker[0].hll);
    g->counted = !rc;
    return rc;
}

/* Rounds up to 10 significant bits, so that libraries whose results differ in the last
 * digit give the same filter. */
static uint64_t round_up(double x)
{
    uint64_t n = x < 1 ? 1 : x > 1e18 ? UINT64_MAX / 2 : (uint64_t)x + 1;
    unsigned shift = 64 - (unsigned)__builtin_clzll(n);

    shift = shift > 10 ? shift - 10 : 0;
    return ((n >> shift) + 1) << shift;
}

int slu_ngrams_size(struct slu_ngrams *g, uint64_t *n_byte, struct slu_err *err)
{
    uint64_t n = round_up(g->result.distinct * (1 + 4 * SLU_HLL_ERROR));
    int rc = slu_bloom_blocks(n, g->cfg.fp_rate, &g->result.n_block, err);

    *n_byte = rc ? 0 : g->result.n_block * SLU_BLOOM_BLOCK_BYTE;
    return rc;
}

/* ---- pass 2: n-grams in parallel ---- */

/* Of a batch: struct doc of each sequence, and the units and n-grams of all. */
struct side {
    struct slu_buf docs, units, grams;
};

static int filter_work(void *ctx, unsigned worker, struct slu_batch *b, void *side,
                       struct slu_err *err)
{
    struct slu_ngrams *g = ctx;
    struct side *s = side;
    struct slu_buf *docs = &s->docs, *units = &s->units, *gram = &s->grams;
    int rc = SLU_OK;

    slu_buf_clear(docs);
    slu_buf_clear(units);
    slu_buf_clear(gram);
    for (size_t i = 0; !rc && i < b->n_seq; i++) {
        struct worker *w = &g->worker[worker];
        size_t u = units->len, n = gram->len;
        struct doc d;
        rc = take_apart(g, w, b, &b->seq[i], units, gram, &d, err);
        if (!rc)
            rc = find_repeats(w, &d, (const void *)(units->data + u),
                              (const void *)(gram->data + n), err);
        if (!rc)
            rc = slu_buf_append(docs, &d, sizeof d, err);
    }
    slu_paras_trim(&g->worker[worker].paras);
    return rc;
}

/* ---- pass 2: decisions in order ---- */

/* A document with its units and n-grams; n_ahead: n-grams of the batch from its first
 * on. */
struct view {
    const struct slu_batch *b;
    const struct slu_seq *q;
    const struct doc *d;
    const struct unit *unit;
    const uint64_t *gram;
    uint64_t n_ahead;
};

static bool enough(const struct slu_ngrams *g, uint64_t seen, uint64_t n)
{
    return n &&
           (unsigned __int128)seen * g->cfg.den >= (unsigned __int128)n * g->cfg.num;
}

/* The position of token tok of q; if q has several segments, in the segment that has
 * the token. */
static struct slu_origin origin_at(const struct slu_batch *b, const struct slu_seq *q,
                                   uint64_t tok)
{
    const struct slu_seg *s = &b->seg[q->seg_off];

    for (uint64_t i = 1; i < q->n_seg && tok >= s->len_tok; i++)
        tok -= s++->len_tok;
    return (struct slu_origin){s->source, s->document, s->offset + tok};
}

static int tell(struct slu_ngrams *g, const struct view *v, const struct unit *u,
                uint64_t n_gram, uint64_t n_seen, struct slu_err *err)
{
    struct slu_ngrams_dropped t = {
        .document = u == NULL,
        .origin = origin_at(v->b, v->q, u ? u->tok : 0),
        .n_tok = u ? u->n_tok : v->q->len_tok,
        .n_gram = n_gram,
        .n_seen = n_seen,
    };

    return g->cfg.dropped ? g->cfg.dropped(g->cfg.ctx, &t, err) : SLU_OK;
}

static uint64_t seen_in(const uint8_t *hit, uint64_t n)
{
    uint64_t t = 0;

    for (uint64_t i = 0; i < n; i++)
        t += hit[i];
    return t;
}

/* The decision on a document. */
struct verdict {
    bool whole; /* whole: drop it; seen: of its n-grams */
    uint64_t seen;
    bool left; /* a remaining paragraph has a word */
};

/* Chooses the paragraphs to drop: indexes to dropped_unit, runs to drop. Also sets
 * hit[] to 1 for n-grams that kept paragraphs of this document have. */
static int choose(struct slu_ngrams *g, const struct view *v, uint8_t *hit,
                  struct verdict *t, struct slu_err *err)
{
    const uint64_t *gram = v->gram;
    int rc = v->d->repeats ? slu_gram_set_begin(&g->own, v->d->n_gram, err) : SLU_OK;

    for (uint64_t i = 0; !rc && i < v->d->n_unit; i++) {
        const struct unit *u = &v->unit[i];
        if (v->d->repeats)
            for (uint64_t k = 0; k < u->n_gram; k++)
                hit[k] |= slu_gram_has(&g->own, gram[k]);
        if (enough(g, seen_in(hit, u->n_gram), u->n_gram)) {
            struct slu_gram_run r = {u->tok, u->n_tok};
            rc = slu_buf_append(&g->dropped_unit, &i, sizeof i, err);
            if (!rc)
                rc = slu_buf_append(&g->drop, &r, sizeof r, err);
        } else {
            uint32_t none = 0;
            for (uint64_t k = 0; v->d->repeats && k < u->n_gram; k++)
                (void)slu_gram_add(&g->own, gram[k], &none);
            t->left |= u->n_word != 0;
        }
        gram += u->n_gram;
        hit += u->n_gram;
    }
    return rc;
}

/* Adds the n-grams of kept text to the filter, and reports dropped text. */
static int settle(struct slu_ngrams *g, const struct view *v, const struct verdict *t,
                  struct slu_err *err)
{
    const uint64_t *gone = (const void *)g->dropped_unit.data, *gram = v->gram;
    size_t n_gone = g->dropped_unit.len / sizeof *gone, k = 0;
    const uint8_t *hit = g->hit.data;
    int rc = SLU_OK;

    if (t->whole)
        return tell(g, v, NULL, v->d->n_gram, t->seen, err);
    if (n_gone && !t->left)
        return tell(g, v, NULL, 0, 0, err);
    for (uint64_t i = 0; !rc && i < v->d->n_unit; i++) {
        const struct unit *u = &v->unit[i];
        if (k < n_gone && gone[k] == i) {
            rc = tell(g, v, u, u->n_gram, seen_in(hit, u->n_gram), err);
            k++;
        } else {
            slu_bloom_add(g->bloom, gram, u->n_gram);
        }
        gram += u->n_gram;
        hit += u->n_gram;
    }
    return rc;
}

/* Decides on one document. *n_run of its paragraphs are to be cut, in g->drop; *whole:
 * the document is dropped. */
static int decide(struct slu_ngrams *g, const struct view *v, bool *whole,
                  size_t *n_run, struct slu_err *err)
{
    struct verdict t = {0};

    slu_buf_clear(&g->hit);
    slu_buf_clear(&g->drop);
    slu_buf_clear(&g->dropped_unit);
    int rc = slu_buf_reserve(&g->hit, v->d->n_gram, err);
    if (rc)
        return rc;
    t.seen = slu_bloom_test(g->bloom, v->gram, v->d->n_gram, v->n_ahead, g->hit.data);
    t.whole = g->cfg.by != SLU_BY_PARAGRAPH && enough(g, t.seen, v->d->n_gram);
    if (!t.whole && g->cfg.by != SLU_BY_DOCUMENT)
        rc = choose(g, v, g->hit.data, &t, err);
    if (!rc)
        rc = settle(g, v, &t, err);
    *n_run = g->drop.len / sizeof(struct slu_gram_run);
    *whole = t.whole || (*n_run && !t.left);
    return rc;
}

/* Keeps a document without the n_run runs in g->drop, and counts these. */
static int keep(struct slu_ngrams *g, struct slu_batch *b, const struct slu_seq *q,
                size_t n_run, struct slu_err *err)
{
    struct slu_count gone;
    int rc =
        slu_gram_cut_keep(&g->cut, b, q, (const void *)g->drop.data, n_run, &gone, err);

    if (rc)
        return rc;
    slu_count_add(&g->result.paragraphs, gone);
    g->result.n_paragraph_dropped += n_run;
    g->result.n_cut += n_run != 0;
    return SLU_OK;
}

static int filter_emit(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct slu_ngrams *g = ctx;
    struct side *s = side;
    int rc = SLU_OK;
    struct view v = {b,
                     NULL,
                     (const void *)s->docs.data,
                     (const void *)s->units.data,
                     (const void *)s->grams.data,
                     s->grams.len / sizeof(uint64_t)};
    for (size_t i = 0; !rc && i < b->n_seq; i++, v.d++) {
        struct slu_seq q = b->seq[i];
        bool whole;
        size_t n_run;
        v.q = &q;
        rc = decide(g, &v, &whole, &n_run, err);
        v.unit += v.d->n_unit;
        v.gram += v.d->n_gram;
        v.n_ahead -= v.d->n_gram;
        if (!rc && whole)
            slu_count_add(&g->result.documents, slu_seq_count(b, &q));
        else if (!rc)
            rc = keep(g, b, &q, n_run, err);
    }
    if (rc)
        return rc;
    slu_buf_trim(&s->docs, SLU_KEEP_BATCH_BYTE);
    slu_buf_trim(&s->units, SLU_KEEP_BATCH_BYTE);
    slu_buf_trim(&s->grams, SLU_KEEP_BATCH_BYTE);
    slu_buf_trim(&g->hit, SLU_KEEP_BATCH_BYTE);
    slu_gram_set_trim(&g->own);
    return slu_gram_cut_end(&g->cut, b, g->cfg.emit, g->cfg.ctx, err);
}

static void release_side(void *side)
{
    struct side *s = side;

    slu_buf_release(&s->docs);
    slu_buf_release(&s->units);
    slu_buf_release(&s->grams);
}

int slu_ngrams_filter(struct slu_ngrams *g, struct slu_reader *r, unsigned n_slots,
                      struct slu_sum *total, struct slu_err *err)
{
    static const struct slu_side_ops ops = {sizeof(struct side), filter_work,
                                            filter_emit, release_side};
    int rc = slu_bloom_new(&g->bloom, g->result.n_block, err);

    return rc ? rc
              : slu_stream_run_side(r, &ops, g, g->cfg.n_threads, n_slots, total, err);
}

/* ---- the handle ---- */

int slu_ngrams_new(struct slu_ngrams **out, const struct slu_ngrams_cfg *cfg,
                   struct slu_err *err)
{
    struct slu_ngrams *g = calloc(1, sizeof *g);

    *out = NULL;
    if (!g)
        return slu_fail_nomem(err, sizeof *g);
    g->cfg = *cfg;
    g->maker = slu_ngram_maker(cfg->n);
    slu_gram_cut_init(&g->cut, cfg->text.tok_bytes);
    g->worker = calloc(cfg->n_threads, sizeof *g->worker);
    int rc =
        g->worker ? SLU_OK : slu_fail_nomem(err, cfg->n_threads * sizeof *g->worker);
    if (!rc)
        rc = slu_paras_finder_new(&g->finder, &cfg->text, cfg->by == SLU_BY_DOCUMENT,
                                  cfg->trained, err);
    if (rc) {
        slu_ngrams_free(g);
        return rc;
    }
    *out = g;
    return SLU_OK;
}

void slu_ngrams_free(struct slu_ngrams *g)
{
    if (!g)
        return;
    for (unsigned i = 0; g->worker && i < g->cfg.n_threads; i++) {
        slu_paras_release(&g->worker[i].paras);
        slu_gram_set_release(&g->worker[i].set);
        slu_buf_release(&g->worker[i].gram);
    }
    free(g->worker);
    slu_paras_finder_free(g->finder);
    slu_bloom_free(g->bloom);
    slu_buf_release(&g->hit);
    slu_buf_release(&g->drop);
    slu_buf_release(&g->dropped_unit);
    slu_gram_set_release(&g->own);
    slu_gram_cut_release(&g->cut);
    free(g);
}

const struct slu_ngrams_result *slu_ngrams_result(const struct slu_ngrams *g)
{
    return &g->result;
}

struct slu_bloom_fill slu_ngrams_fill(const struct slu_ngrams *g)
{
    return g->bloom ? slu_bloom_fill(g->bloom) : (struct slu_bloom_fill){0, 0, 0};
}
