#include "lib/dedup/near/near.h"

#include <stdlib.h>
#include <string.h>

#include "lib/dedup/near/near_private.h"

enum {
    AHEAD = 4,          /* documents whose memory is prefetched before their turn */
    WAIT_BYTE = 2 << 20 /* for log and positions, once memory is full */
};

struct near_scratch {
    struct slu_buf plain; /* slu_batch_ids */
    struct slu_hashes hashes;
    uint32_t *sig;
};

int slu_near_new(struct slu_near **out, const struct slu_near_cfg *cfg,
                 struct slu_err *err)
{
    *out = NULL;
    if (cfg->budget_byte < SLU_NEAR_MIN_BYTE)
        return slu_fail(err, SLU_E_LIMIT,
                        "finding near duplicates takes at least %llu MiB of memory",
                        (unsigned long long)(SLU_NEAR_MIN_BYTE >> 20));
    if (cfg->n_band > SLU_NEAR_MAX_BAND || !cfg->band_cap ||
        cfg->band_cap > SLU_NEAR_MAX_CAP || !cfg->num || cfg->num > cfg->den ||
        cfg->den > 1000000000)
        return slu_fail(err, SLU_E_USAGE, "bands, cap or threshold out of range");
    struct slu_near *x = calloc(1, sizeof *x);
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    *out = x;
    return SLU_OK;
}

void slu_near_end(struct slu_near *x)
{
    for (unsigned i = 0; x->scratch && i < x->cfg.n_threads; i++) {
        slu_buf_release(&x->scratch[i].plain);
        slu_hashes_release(&x->scratch[i].hashes);
        free(x->scratch[i].sig);
    }
    free(x->scratch);
    slu_minhash_free(x->minhash);
    slu_shingler_free(x->shingler);
    x->scratch = NULL;
    x->minhash = NULL;
    x->shingler = NULL;
}

void slu_near_free(struct slu_near *x)
{
    if (!x)
        return;
    slu_near_end(x);
    slu_near_mem_free(x->mem);
    slu_near_audit_free(x->audit);
    free(x->k);
    free(x);
}

const struct slu_near_result *slu_near_result(struct slu_near *x)
{
    struct slu_near_result *r = &x->told;

    *r = x->result;
    r->verified = x->cfg.verify ? r->edges : 0;
    r->refused = r->candidates - r->edges;
    if (x->mem) {
        const struct slu_near_mem_stats *s = slu_near_mem_stats(x->mem);
        r->equal_sets += s->equal_sets;
        r->candidates += s->candidates;
        r->verified += s->verified;
        r->refused += s->refused;
        r->capped_documents += s->capped_documents;
        r->memory_byte = slu_near_mem_peak(x->mem);
    }
    return r;
}

const struct slu_near_audit *slu_near_audit(const struct slu_near *x)
{
    return x->audit;
}

/* ---- sets ---- */

int slu_near_begin(struct slu_near *x, struct slu_err *err)
{
    const struct slu_near_cfg *c = &x->cfg;
    const struct slu_header *h = x->header;
    struct slu_shingler_cfg cfg = {.unit = c->unit,
                                   .n = c->n_gram,
                                   .max_word = c->max_tok,
                                   .vocab = slu_names_vocab(x->names),
                                   .tok_bytes = h->tok_bytes,
                                   .eos = h->eos,
                                   .bos = h->bos,
                                   .pad = h->pad};

    if (c->items)
        return SLU_OK;
    if (c->unit != SLU_UNIT_TOKEN && !cfg.vocab)
        return slu_advise(err, SLU_ADVISE_WORDS,
                          slu_fail(err, SLU_E_MISMATCH,
                                   "the stream has no vocabulary to make words with"));
    int rc = slu_shingler_new(&x->shingler, &cfg, err);
    if (!rc)
        rc = slu_minhash_new(&x->minhash, c->n_band, c->n_row, c->seed, err);
    if (rc)
        return rc;
    x->scratch = calloc(c->n_threads, sizeof *x->scratch);
    if (!x->scratch)
        return slu_fail_nomem(err, c->n_threads * sizeof *x->scratch);
    for (unsigned i = 0; i < c->n_threads; i++) {
        size_t n_byte = (size_t)c->n_band * c->n_row * sizeof(uint32_t);
        x->scratch[i].sig = malloc(n_byte);
        if (!x->scratch[i].sig)
            return slu_fail_nomem(err, n_byte);
    }
    return SLU_OK;
}

/* N-grams take several times the memory of the tokens. */
static int check_length(const struct slu_near_cfg *c, const struct slu_batch *b,
                        const struct slu_seq *q, struct slu_err *err)
{
    struct slu_origin origin = slu_origin_of(b, q);

    if (!c->max_tok || q->len_tok <= c->max_tok)
        return SLU_OK;
    return slu_advise(
        err, SLU_ADVISE_MEMORY,
        slu_fail(err, SLU_E_LIMIT,
                 "source %llu, document %llu: a sequence of %llu tokens is too long to "
                 "compare in this much memory; at most %llu",
                 (unsigned long long)origin.source, (unsigned long long)origin.document,
                 (unsigned long long)q->len_tok, (unsigned long long)c->max_tok));
}

/* Makes the data of a batch: an item for each sequence, the keys of each, and the sets.
 * Items get their pointers when this data no longer moves. */
int slu_near_items(void *ctx, unsigned worker, struct slu_batch *b, void *side,
                   struct slu_err *err)
{
    struct slu_near *x = ctx;
    struct slu_buf *buf = side;
    size_t n_key = b->n_seq * x->cfg.n_band;

    slu_buf_clear(buf);
    if (x->cfg.items)
        return x->cfg.items(x->cfg.ctx, b, buf, err);
    struct near_scratch *s = &x->scratch[worker];
    int rc = slu_buf_reserve(
        buf, b->n_seq * sizeof(struct slu_near_item) + n_key * sizeof(uint64_t), err);
    if (rc)
        return rc;
    size_t key_off = b->n_seq * sizeof(struct slu_near_item);
    buf->len = key_off + n_key * sizeof(uint64_t);
    for (size_t i = 0; i < b->n_seq; i++) {
        const struct slu_seq *q = &b->seq[i];
        uint64_t n_ids;
        const void *ids;
        rc = check_length(&x->cfg, b, q, err);
        if (!rc)
            rc = slu_batch_ids(b, q->tok_off, q->len_tok, x->cfg.trained, &s->plain,
                               &ids, &n_ids, err);
        if (!rc)
            rc = slu_shingle(x->shingler, ids, n_ids, &s->hashes, err);
        if (!rc)
            rc = slu_hashes_to_set(&s->hashes, err);
        if (rc)
            return rc;
        struct slu_near_item *d = (struct slu_near_item *)(void *)buf->data + i;
        uint64_t *key = (uint64_t *)(void *)(buf->data + key_off) + i * x->cfg.n_band;
        *d = (struct slu_near_item){.n_set = s->hashes.n};
        slu_minhash_sign(x->minhash, s->hashes.hash, s->hashes.n, s->sig);
        slu_minhash_band_keys(x->minhash, s->sig, key);
        d->set_hash = slu_set_hash128(s->hashes.hash, s->hashes.n);
        if (s->hashes.n)
            rc = slu_buf_append(buf, s->hashes.hash, s->hashes.n * sizeof(uint64_t),
                                err);
        if (rc)
            return rc;
    }
    struct slu_near_item *d = (void *)buf->data;
    const uint64_t *key = (void *)(buf->data + key_off), *set = key + n_key;
    for (size_t i = 0; i < b->n_seq; i++) {
        d[i].key = key + i * x->cfg.n_band;
        d[i].set = set;
        set += d[i].n_set;
    }
    slu_buf_trim(&s->plain, SLU_KEEP_BYTE);
    slu_hashes_trim(&s->hashes);
    return SLU_OK;
}

void slu_near_items_release(void *side)
{
    slu_buf_release(side);
}

/* ---- decisions ---- */

int slu_near_drop(struct slu_near *x, const struct slu_batch *b,
                  const struct slu_seq *q, const struct slu_near_verdict *v,
                  struct slu_err *err)
{
    const struct slu_near_pair pair = {slu_origin_of(b, q), v->witness, v->inter,
                                       v->uni};

    slu_count_add(&x->result.dropped, slu_seq_count(b, q));
    if (x->audit)
        slu_near_audit_drop(x->audit, v->inter, v->uni);
    if (!x->cfg.pair)
        return SLU_OK;
    /* If an earlier pair waits, this one waits too. */
    return x->noting ? slu_flow_note(x->flow, &pair, sizeof pair, err)
                     : x->cfg.pair(x->cfg.ctx, &pair, err);
}

static int tell_note(void *ctx, const void *p, size_t n, struct slu_err *err)
{
    struct slu_near *x = ctx;

    (void)n;
    return x->cfg.pair(x->cfg.ctx, p, err);
}

/* ---- hand-over from memory to the flow ---- */

/* Passes over the sets of earlier ordinals, which no stage needs. */
static int skip_to(struct slu_near *x, uint64_t ordinal, struct slu_err *err)
{
    static const uint64_t none[SLU_STORE_WORDS];
    int rc = SLU_OK;

    for (; x->n_stored < ordinal && !rc; x->n_stored++)
        rc = slu_store_put(x->set, none, NULL, 0, err);
    return rc;
}

static int on_kept(void *ctx, uint64_t ordinal, const uint64_t *set, uint64_t n_set,
                   struct slu_err *err)
{
    static const uint64_t fixed[SLU_STORE_WORDS];
    struct slu_near *x = ctx;
    int rc = skip_to(x, ordinal, err);

    x->n_stored++;
    return rc ? rc : slu_store_put(x->set, fixed, set, n_set, err);
}

static int on_group(void *ctx, unsigned band, uint64_t key, uint64_t n_doc,
                    const uint64_t *kept, size_t n_kept, struct slu_err *err)
{
    return slu_near_put_group(ctx, band, key, n_doc, kept, n_kept, err);
}

/* Sets up waiting; all later sequences wait. */
static int begin_wait(struct slu_near *x, struct slu_err *err)
{
    const struct slu_near_mem_sink sink = {on_kept, on_group, x};
    int rc = x->mem ? slu_near_mem_hand_over(x->mem, &sink, err) : SLU_OK;

    x->waits = true;
    return rc ? rc : skip_to(x, x->ordinal, err);
}

int slu_near_front(struct slu_near *x, struct slu_err *err)
{
    const struct slu_near_cfg *c = &x->cfg;
    const struct slu_near_mem_cfg mem = {slu_flow_own_byte(x->flow) - WAIT_BYTE,
                                         c->n_band,
                                         c->num,
                                         c->den,
                                         c->band_cap,
                                         c->verify,
                                         slu_near_details(x)};
    int rc = c->prio ? begin_wait(x, err) : slu_near_mem_new(&x->mem, &mem, err);

    return rc || !c->known ? rc : c->known(c->ctx, x, err);
}

/* Stores a document that memory cannot decide. */
static int decide_later(struct slu_near *x, const struct slu_near_item *d,
                        uint64_t rank, struct slu_err *err)
{
    const uint64_t row[] = {x->ordinal, d->origin.source, d->origin.document,
                            d->origin.offset};
    int rc = slu_near_details(x) ? slu_table_put(x->where, row, err) : SLU_OK;

    return rc ? rc : slu_near_put_doc(x, d, rank, err);
}

/* Lets memory decide the document; FULL if it cannot. */
static int ask(struct slu_near *x, struct slu_near_item *d, struct slu_near_verdict *v,
               struct slu_err *err)
{
    const uint64_t most = x->cfg.most_in_memory;
    int rc = SLU_OK;

    *v = (struct slu_near_verdict){.answer = SLU_NEAR_FULL};
    d->ordinal = x->ordinal;
    if (most && !x->waits && x->n_come >= most)
        rc = begin_wait(x, err);
    x->n_come++;
    if (!rc && x->mem)
        rc = slu_near_mem_put(x->mem, d, v, err);
    if (!rc && v->answer == SLU_NEAR_FULL && !x->waits)
        rc = begin_wait(x, err);
    x->ordinal += !x->waits && v->answer == SLU_NEAR_KEPT && d->n_set;
    return rc;
}

int slu_near_known(struct slu_near *x, struct slu_near_item *d, uint64_t number,
                   struct slu_err *err)
{
    struct slu_near_verdict v;

    d->origin = slu_origin_of_index(number);
    d->fixed = true;
    if (!slu_flow_here(x->flow))
        return slu_near_put_doc(x, d, slu_near_rank(true, 0), err);
    int rc = d->n_set ? ask(x, d, &v, err) : SLU_OK;
    return rc || !d->n_set || v.answer != SLU_NEAR_FULL
               ? rc
               : decide_later(x, d, slu_near_rank(true, 0), err);
}

/* Decides sequence q; *keep: the sequence stays in the batch. */
static int decide(struct slu_near *x, const struct slu_batch *b,
                  const struct slu_seq *q, struct slu_near_item *d, bool *keep,
                  struct slu_err *err)
{
    struct slu_near_verdict v;
    int rc = ask(x, d, &v, err);

    *keep = !x->waits;
    if (rc)
        return rc;
    x->noting = x->result.waited > 0;
    if (v.answer == SLU_NEAR_DROPPED) {
        *keep = false;
        return slu_near_drop(x, b, q, &v, err);
    }
    if (*keep)
        return SLU_OK;
    if (!x->result.waited++)
        x->n_fixed = x->ordinal;
    rc = slu_flow_log(x->flow, b, q, err);
    uint64_t prio = x->cfg.prio ? x->cfg.prio(x->cfg.ctx, b, q) : 0;
    return rc ? rc : decide_later(x, d, slu_near_rank(false, prio), err);
}

int slu_near_arrive(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct slu_near *x = ctx;
    struct slu_buf *buf = side;
    struct slu_near_item *d = (void *)buf->data;
    size_t n = 0, n_in = b->n_seq;
    int rc = x->cfg.seen ? x->cfg.seen(x->cfg.ctx, b, err) : SLU_OK;

    if (rc)
        return rc;
    for (size_t i = 0; x->mem && i < AHEAD && i < n_in; i++)
        slu_near_mem_prefetch(x->mem, &d[i]);
    for (size_t i = 0; i < n_in; i++) {
        struct slu_seq q = b->seq[i];
        bool keep;
        if (x->mem && i + AHEAD < n_in)
            slu_near_mem_prefetch(x->mem, &d[i + AHEAD]);
        d[i].origin = slu_origin_of(b, &q);
        x->result.documents++;
        x->result.empty += d[i].n_set == 0;
        rc = x->audit ? slu_near_audit_add(x->audit, &d[i], err) : SLU_OK;
        if (!rc)
            rc = decide(x, b, &q, &d[i], &keep, err);
        if (rc)
            return rc;
        if (keep)
            b->seq[n++] = q;
    }
    slu_buf_trim(buf, SLU_KEEP_BATCH_BYTE);
    slu_batch_keep(b, n);
    return n ? x->cfg.emit(x->cfg.ctx, b, err) : SLU_OK;
}

int slu_near_run(struct slu_near *x, struct slu_reader *r, unsigned n_slots,
                 struct slu_sum *total, struct slu_err *err)
{
    const struct slu_near_cfg *c = &x->cfg;
    struct slu_flow_cfg cfg = {.spec = slu_near_spec(x->cfg.prio, false),
                               .reader = r,
                               .ctx = x,
                               .begin = slu_near_see,
                               .note = tell_note,
                               .budget_byte = c->budget_byte,
                               .tmpdir = c->tmpdir,
                               .n_threads = c->n_threads,
                               .n_slots = n_slots};
    struct slu_flow_report report = {.skipped = false};
    int rc = SLU_OK;

    if (c->audit) {
        const struct slu_near_audit_cfg audit = {
            c->audit, c->seed, c->n_band,
            c->num,   c->den,  c->budget_byte / 4 / SLU_NEAR_AUDIT_BYTE};
        cfg.budget_byte -= c->budget_byte / 4;
        rc = slu_near_audit_new(&x->audit, &audit, err);
    }
    if (!rc)
        rc = slu_flow_run(&cfg, &report, err);
    *total = report.in;
    x->result.spilled_byte = report.spilled_byte;
    return rc;
}
