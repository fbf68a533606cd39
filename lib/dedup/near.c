#include "lib/dedup/near.h"

#include <stdlib.h>
#include <string.h>

#include "lib/dedup/minhash.h"
#include "lib/dedup/near_wait.h"
#include "lib/sidecar.h"

enum {
    AHEAD = 4,          /* documents whose memory is asked for before their turn */
    WAIT_BYTE = 2 << 20 /* spools, once memory is full */
};

struct slu_near {
    struct slu_near_cfg cfg;
    struct slu_near_mem *mem;
    struct slu_near_wait *wait; /* NULL: memory decides all */
    struct slu_near_audit *audit;
    uint64_t budget_byte, collect_byte; /* without the audit; of it, past memory */
    uint64_t ordinal;                   /* of the next document */
    struct slu_near_result result;
};

int slu_near_new(struct slu_near **out, const struct slu_near_cfg *cfg,
                 struct slu_err *err)
{
    uint64_t budget = cfg->budget_byte;
    int rc = SLU_OK;

    *out = NULL;
    if (budget < SLU_NEAR_MIN_BYTE)
        return slu_fail(err, SLU_E_LIMIT,
                        "%llu MiB is the least memory for near duplicates",
                        (unsigned long long)(SLU_NEAR_MIN_BYTE >> 20));
    struct slu_near *x = calloc(1, sizeof *x);
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    if (cfg->audit) {
        struct slu_near_audit_cfg audit = {
            cfg->audit, cfg->seed, cfg->n_band,
            cfg->num,   cfg->den,  budget / 4 / SLU_NEAR_AUDIT_BYTE};
        budget -= budget / 4;
        rc = slu_near_audit_new(&x->audit, &audit, err);
    }
    x->budget_byte = budget;
    x->collect_byte = cfg->prio ? budget / 2 : budget / 8;
    budget -= x->collect_byte + WAIT_BYTE;
    struct slu_near_mem_cfg mem = {budget,
                                   cfg->n_band,
                                   cfg->num,
                                   cfg->den,
                                   cfg->band_cap,
                                   cfg->verify,
                                   cfg->pair || cfg->audit};
    if (rc == SLU_OK)
        rc = slu_near_mem_new(&x->mem, &mem, err);
    if (rc) {
        slu_near_free(x);
        return rc;
    }
    *out = x;
    return SLU_OK;
}

void slu_near_free(struct slu_near *x)
{
    if (!x)
        return;
    slu_near_wait_free(x->wait);
    slu_near_mem_free(x->mem);
    slu_near_audit_free(x->audit);
    free(x);
}

const struct slu_near_result *slu_near_result(struct slu_near *x)
{
    const struct slu_near_mem_stats *s = slu_near_mem_stats(x->mem);

    x->result.twins = s->twins;
    x->result.candidates = s->candidates;
    x->result.verified = s->verified;
    x->result.refused = s->refused;
    x->result.capped_documents = s->capped_documents;
    x->result.memory_byte = slu_near_mem_peak(x->mem);
    if (x->wait) {
        struct slu_near_wait_stats w;
        slu_near_wait_stats(x->wait, &w);
        x->result.twins += w.twins;
        x->result.candidates += w.candidates;
        x->result.verified += w.verified;
        x->result.refused += w.refused;
        x->result.capped_documents += w.capped_documents;
        x->result.waited = w.waited;
        x->result.spilled_byte = w.spilled_byte;
    }
    return &x->result;
}

const struct slu_near_audit *slu_near_audit(const struct slu_near *x)
{
    return x->audit;
}

/* ---- decisions ---- */

/* Books a dropped sequence. */
static void book(struct slu_near *x, const struct slu_batch *b, const struct slu_seq *q,
                 const struct slu_near_verdict *v)
{
    slu_count_add(&x->result.dropped, slu_seq_count(b, q));
    if (x->audit)
        slu_near_audit_drop(x->audit, v->inter, v->uni);
}

/* Drops a sequence when it comes; its pair waits where a sequence before it does. */
static int drop_now(struct slu_near *x, const struct slu_batch *b,
                    const struct slu_seq *q, const struct slu_near_verdict *v,
                    struct slu_err *err)
{
    const struct slu_near_pair pair = {slu_place_of(b, q), v->witness, v->inter,
                                       v->uni};

    book(x, b, q, v);
    if (!x->cfg.pair)
        return SLU_OK;
    return x->wait ? slu_near_wait_note(x->wait, &pair, sizeof pair, err)
                   : x->cfg.pair(x->cfg.ctx, &pair, err);
}

static int drop_later(void *ctx, const struct slu_batch *b, const struct slu_seq *q,
                      const struct slu_near_verdict *v, struct slu_err *err)
{
    struct slu_near *x = ctx;
    const struct slu_near_pair pair = {slu_place_of(b, q), v->witness, v->inter,
                                       v->uni};

    book(x, b, q, v);
    return x->cfg.pair ? x->cfg.pair(x->cfg.ctx, &pair, err) : SLU_OK;
}

static int tell_note(void *ctx, const void *p, size_t n, struct slu_err *err)
{
    struct slu_near *x = ctx;

    (void)n;
    return x->cfg.pair(x->cfg.ctx, p, err);
}

static int emit_later(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct slu_near *x = ctx;

    return x->cfg.emit(x->cfg.ctx, b, err);
}

/* From here on sequences wait. */
static int begin_wait(struct slu_near *x, struct slu_err *err)
{
    const struct slu_near_cfg *c = &x->cfg;
    struct slu_near_wait_cfg cfg = {.mem = x->mem,
                                    .budget_byte = x->budget_byte,
                                    .collect_byte = x->collect_byte,
                                    .tmpdir = c->tmpdir,
                                    .n_threads = c->n_threads,
                                    .tok_bytes = c->tok_bytes,
                                    .n_band = c->n_band,
                                    .num = c->num,
                                    .den = c->den,
                                    .band_cap = c->band_cap,
                                    .verify = c->verify,
                                    .details = c->pair || c->audit,
                                    .by_prio = c->prio != NULL,
                                    .drop = drop_later,
                                    .note = tell_note,
                                    .emit = emit_later,
                                    .ctx = x};

    return slu_near_wait_new(&x->wait, &cfg, err);
}

/* Decides sequence q; *keep: it stays in the batch. */
static int decide(struct slu_near *x, const struct slu_batch *b,
                  const struct slu_seq *q, const struct slu_near_item *d, bool *keep,
                  struct slu_err *err)
{
    struct slu_near_verdict v = {.answer = SLU_NEAR_FULL};
    uint64_t most = x->cfg.most_in_memory;
    int rc = SLU_OK;

    *keep = false;
    if (most && !x->wait && d->ordinal >= most)
        rc = begin_wait(x, err);
    if (rc == SLU_OK && !x->cfg.prio)
        rc = slu_near_mem_put(x->mem, d, &v, err);
    if (rc)
        return rc;
    if (v.answer == SLU_NEAR_DROPPED)
        return drop_now(x, b, q, &v, err);
    if (v.answer == SLU_NEAR_FULL && !x->wait)
        rc = begin_wait(x, err);
    *keep = !x->wait;
    if (rc || !x->wait)
        return rc;
    return slu_near_wait_add(x->wait, b, q, d,
                             x->cfg.prio ? x->cfg.prio(x->cfg.ctx, b, q) : 0, err);
}

int slu_near_known(struct slu_near *x, struct slu_near_item *d, uint64_t number,
                   struct slu_err *err)
{
    struct slu_near_verdict v = {.answer = SLU_NEAR_FULL};
    uint64_t most = x->cfg.most_in_memory;
    int rc = SLU_OK;

    d->ordinal = x->ordinal++;
    d->place = slu_place_of_index(number);
    d->fixed = true;
    if (!d->n_set)
        return SLU_OK;
    if (most && !x->wait && d->ordinal >= most)
        rc = begin_wait(x, err);
    if (rc == SLU_OK && !x->cfg.prio)
        rc = slu_near_mem_put(x->mem, d, &v, err);
    if (rc || v.answer != SLU_NEAR_FULL)
        return rc;
    if (!x->wait)
        rc = begin_wait(x, err);
    return rc ? rc : slu_near_wait_known(x->wait, d, err);
}

int slu_near_put(struct slu_near *x, struct slu_batch *b, struct slu_near_item *d,
                 struct slu_err *err)
{
    size_t n = 0, n_in = b->n_seq;

    for (size_t i = 0; i < AHEAD && i < n_in; i++)
        slu_near_mem_prefetch(x->mem, &d[i]);
    for (size_t i = 0; i < n_in; i++) {
        struct slu_seq q = b->seq[i];
        bool keep;
        if (i + AHEAD < n_in)
            slu_near_mem_prefetch(x->mem, &d[i + AHEAD]);
        d[i].ordinal = x->ordinal++;
        d[i].place = slu_place_of(b, &q);
        x->result.documents++;
        x->result.empty += d[i].n_set == 0;
        int rc = x->audit ? slu_near_audit_add(x->audit, &d[i], err) : SLU_OK;
        if (rc == SLU_OK)
            rc = decide(x, b, &q, &d[i], &keep, err);
        if (rc)
            return rc;
        if (keep)
            b->seq[n++] = q;
    }
    if (n < n_in)
        b->sum_valid = false;
    b->n_seq = n;
    return n ? x->cfg.emit(x->cfg.ctx, b, err) : SLU_OK;
}

int slu_near_finish(struct slu_near *x, struct slu_err *err)
{
    return x->wait ? slu_near_wait_finish(x->wait, err) : SLU_OK;
}

/* ---- a whole stream ---- */

struct scratch {
    struct slu_hashes hashes;
    uint32_t *sig;
};

struct run {
    struct slu_near *x;
    struct slu_shingler *shingler;
    struct slu_minhash *minhash;
    struct scratch *scratch; /* one a thread */
    struct slu_sidecar items;
};

/* N-grams take several times what the tokens do. */
static int check_length(const struct slu_near_cfg *c, const struct slu_batch *b,
                        const struct slu_seq *q, struct slu_err *err)
{
    struct slu_place place = slu_place_of(b, q);

    if (!c->max_tok || q->len_tok <= c->max_tok)
        return SLU_OK;
    return slu_fail(err, SLU_E_LIMIT,
                    "source %llu, document %llu: a sequence of %llu tokens is too long "
                    "for near duplicates within the memory budget; at most %llu, or "
                    "give more with -M",
                    (unsigned long long)place.source,
                    (unsigned long long)place.document, (unsigned long long)q->len_tok,
                    (unsigned long long)c->max_tok);
}

/* What goes with a batch: an item for each sequence, the keys of each, the sets. Items
 * point into it once it moves no more. */
static int work(void *ctx, unsigned worker, struct slu_batch *b, struct slu_err *err)
{
    struct run *t = ctx;
    struct scratch *s = &t->scratch[worker];
    size_t n_key = b->n_seq * t->x->cfg.n_band;
    struct slu_buf *buf;

    int rc = slu_sidecar_of(&t->items, b, &buf, err);
    if (rc)
        return rc;
    slu_buf_clear(buf);
    rc = slu_buf_reserve(
        buf, b->n_seq * sizeof(struct slu_near_item) + n_key * sizeof(uint64_t), err);
    if (rc)
        return rc;
    size_t key_off = b->n_seq * sizeof(struct slu_near_item);
    buf->len = key_off + n_key * sizeof(uint64_t);
    for (size_t i = 0; i < b->n_seq; i++) {
        rc = check_length(&t->x->cfg, b, &b->seq[i], err);
        if (rc == SLU_OK)
            rc = slu_shingle(t->shingler, slu_batch_at(b, b->seq[i].tok_off),
                             b->seq[i].len_tok, &s->hashes, err);
        if (rc == SLU_OK)
            rc = slu_hashes_to_set(&s->hashes, err);
        if (rc)
            return rc;
        struct slu_near_item *d = (struct slu_near_item *)(void *)buf->data + i;
        uint64_t *key =
            (uint64_t *)(void *)(buf->data + key_off) + i * t->x->cfg.n_band;
        *d = (struct slu_near_item){.n_set = s->hashes.n};
        slu_minhash_sign(t->minhash, s->hashes.hash, s->hashes.n, s->sig);
        slu_minhash_band_keys(t->minhash, s->sig, key);
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
        d[i].key = key + i * t->x->cfg.n_band;
        d[i].set = set;
        set += d[i].n_set;
    }
    slu_hashes_trim(&s->hashes);
    return SLU_OK;
}

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct run *t = ctx;
    struct slu_buf *buf;
    int rc = slu_sidecar_of(&t->items, b, &buf, err);

    if (rc)
        return rc;
    rc = slu_near_put(t->x, b, (void *)buf->data, err);
    slu_buf_trim(buf, SLU_KEEP_BATCH_BYTE);
    return rc;
}

static int begin(struct run *t, struct slu_reader *r, struct slu_err *err)
{
    const struct slu_near_cfg *c = &t->x->cfg;
    const struct slu_header *h = slu_reader_header(r);
    struct slu_shingler_cfg cfg = {
        c->unit, c->n_gram, slu_names_vocab(slu_reader_names(r)), h->tok_bytes, h->eos,
        h->bos,  h->pad};

    if (c->unit == SLU_UNIT_WORD && !cfg.vocab)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has no vocabulary to make words with; use --unit "
                        "token, or tokenize without --no-vocab");
    int rc = slu_shingler_new(&t->shingler, &cfg, err);
    if (rc == SLU_OK)
        rc = slu_minhash_new(&t->minhash, c->n_band, c->n_row, c->seed, err);
    if (rc)
        return rc;
    t->scratch = calloc(c->n_threads, sizeof *t->scratch);
    if (!t->scratch)
        return slu_fail_nomem(err, c->n_threads * sizeof *t->scratch);
    for (unsigned i = 0; i < c->n_threads; i++) {
        size_t n_byte = (size_t)c->n_band * c->n_row * sizeof(uint32_t);
        t->scratch[i].sig = malloc(n_byte);
        if (!t->scratch[i].sig)
            return slu_fail_nomem(err, n_byte);
    }
    return SLU_OK;
}

int slu_near_run(struct slu_near *x, struct slu_reader *r, unsigned n_slots,
                 struct slu_sum *total, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {work, emit};
    struct run t = {.x = x};

    slu_sidecar_init(&t.items);
    int rc = begin(&t, r, err);
    if (rc == SLU_OK)
        rc = slu_stream_run(r, &ops, &t, x->cfg.n_threads, n_slots, total, err);
    for (unsigned i = 0; t.scratch && i < x->cfg.n_threads; i++) {
        slu_hashes_release(&t.scratch[i].hashes);
        free(t.scratch[i].sig);
    }
    free(t.scratch);
    slu_minhash_free(t.minhash);
    slu_shingler_free(t.shingler);
    slu_sidecar_release(&t.items);
    return rc ? rc : slu_near_finish(x, err);
}
