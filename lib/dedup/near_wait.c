#include "lib/dedup/near_wait.h"

#include <stdlib.h>
#include <string.h>

#include "lib/dedup/near_ext.h"
#include "lib/dedup/waitlist.h"
#include "lib/order/sorter.h"
#include "lib/order/spool.h"

enum {
    BATCH_TOK = 1 << 18,  /* tokens of a batch that is read back */
    SPOOL_BYTE = 1 << 20, /* of each spool */
    LEAST_BYTE = 2 << 20  /* of the external engine and of each sorter */
};

struct where { /* a document, in the spool of places */
    uint64_t ordinal;
    struct slu_place place;
};

/* What is dropped, in the sorters. */
struct lost {
    uint64_t ordinal, inter, uni;
    struct slu_place witness;
};

struct slu_near_wait {
    struct slu_near_wait_cfg cfg;
    struct slu_near_ext *ext;
    struct slu_waitlist *list;
    struct slu_spool *places; /* struct where of what is in ext; with details */
    struct slu_sorter *by_witness, *by_ordinal;
    uint64_t sorter_byte;
    uint64_t n_ordinal; /* above all */
    uint64_t spilled_byte;
};

/* ---- hand-over ---- */

static int on_kept(void *ctx, uint64_t ordinal, const uint64_t *set, uint64_t n_set,
                   struct slu_err *err)
{
    return slu_near_ext_kept(ctx, ordinal, set, n_set, err);
}

static int on_group(void *ctx, unsigned band, uint64_t key, uint64_t n_doc,
                    const uint64_t *kept, size_t n_kept, struct slu_err *err)
{
    return slu_near_ext_group(ctx, band, key, n_doc, kept, n_kept, err);
}

/* What is left of the budget once documents have come: not what memory keeps for the
 * places of pairs, nor the spools; an eighth each for the sorters of pairs. */
static uint64_t budget_at_end(struct slu_near_wait *w)
{
    uint64_t left = w->cfg.budget_byte, taken = 2 * SPOOL_BYTE;

    if (w->cfg.details) {
        w->sorter_byte = left / 8 < LEAST_BYTE ? LEAST_BYTE : left / 8;
        taken += 2 * w->sorter_byte + slu_near_mem_left(w->cfg.mem);
    }
    return left > taken + LEAST_BYTE ? left - taken : LEAST_BYTE;
}

int slu_near_wait_new(struct slu_near_wait **out, const struct slu_near_wait_cfg *cfg,
                      struct slu_err *err)
{
    struct slu_near_wait *w = calloc(1, sizeof *w);

    *out = NULL;
    if (!w)
        return slu_fail_nomem(err, sizeof *w);
    w->cfg = *cfg;
    uint64_t end = budget_at_end(w), collect = cfg->collect_byte;
    struct slu_near_ext_cfg ext = {.collect_byte =
                                       collect < end / 2 ? collect : end / 2,
                                   .budget_byte = end,
                                   .tmpdir = cfg->tmpdir,
                                   .n_threads = cfg->n_threads,
                                   .n_band = cfg->n_band,
                                   .num = cfg->num,
                                   .den = cfg->den,
                                   .band_cap = cfg->band_cap,
                                   .verify = cfg->verify,
                                   .by_prio = cfg->by_prio};
    int rc = slu_near_ext_new(&w->ext, &ext, err);
    if (rc == SLU_OK)
        rc = slu_waitlist_new(&w->list, SPOOL_BYTE, cfg->tmpdir, err);
    if (rc == SLU_OK && cfg->details)
        rc = slu_spool_new(&w->places, SPOOL_BYTE, cfg->tmpdir, err);
    const struct slu_near_mem_sink sink = {on_kept, on_group, w->ext};
    if (rc == SLU_OK)
        rc = slu_near_mem_hand_over(cfg->mem, &sink, err);
    if (rc) {
        slu_near_wait_free(w);
        return rc;
    }
    *out = w;
    return SLU_OK;
}

void slu_near_wait_free(struct slu_near_wait *w)
{
    if (!w)
        return;
    slu_near_ext_free(w->ext);
    slu_waitlist_free(w->list);
    slu_spool_free(w->places);
    slu_sorter_free(w->by_witness);
    slu_sorter_free(w->by_ordinal);
    free(w);
}

/* ---- what comes ---- */

static int decide_later(struct slu_near_wait *w, const struct slu_near_item *d,
                        uint64_t prio, struct slu_err *err)
{
    const struct where at = {d->ordinal, d->place};
    const struct slu_near_doc doc = {.ordinal = d->ordinal,
                                     .prio = prio,
                                     .fixed = d->fixed,
                                     .set_hash = d->set_hash,
                                     .key = d->key,
                                     .set = d->set,
                                     .n_set = d->n_set};
    w->n_ordinal = d->ordinal + 1;
    if (!d->n_set)
        return SLU_OK;
    int rc = slu_near_ext_add(w->ext, &doc, err);
    if (rc == SLU_OK && w->places)
        rc = slu_spool_put(w->places, &at, sizeof at, err);
    return rc;
}

int slu_near_wait_add(struct slu_near_wait *w, const struct slu_batch *b,
                      const struct slu_seq *q, const struct slu_near_item *d,
                      uint64_t prio, struct slu_err *err)
{
    int rc = slu_waitlist_put(w->list, b, q, d->ordinal, err);

    return rc ? rc : decide_later(w, d, prio, err);
}

int slu_near_wait_known(struct slu_near_wait *w, const struct slu_near_item *d,
                        struct slu_err *err)
{
    return decide_later(w, d, 0, err);
}

int slu_near_wait_note(struct slu_near_wait *w, const void *p, size_t n,
                       struct slu_err *err)
{
    return slu_waitlist_note(w->list, p, n, err);
}

/* ---- pairs: from the witness's ordinal to its place ---- */

static struct slu_u128 key_of(const struct slu_near_wait *w, uint64_t ordinal)
{
    return (struct slu_u128){0, ordinal << __builtin_clzll(w->n_ordinal | 1)};
}

static uint64_t ordinal_of(const struct slu_near_wait *w, struct slu_u128 key)
{
    return key.hi >> __builtin_clzll(w->n_ordinal | 1);
}

/* The places of documents in ascending order of ordinals: those that memory kept, then
 * those in the spool. */
struct walk {
    struct slu_near_wait *w;
    uint64_t i;
    struct where now;
};

static int walk_to(struct walk *k, uint64_t ordinal, struct slu_err *err)
{
    const struct slu_near_mem *mem = k->w->cfg.mem;

    while (k->now.ordinal != ordinal) {
        const void *p;
        if (k->i < slu_near_mem_n_kept(mem)) {
            slu_near_mem_kept(mem, k->i++, &k->now.ordinal, &k->now.place);
            continue;
        }
        int rc = slu_spool_get(k->w->places, &p, sizeof k->now, err);
        if (rc == SLU_EOF)
            return slu_fail(
                err, SLU_E_CONSERVATION,
                "internal error: document %llu was kept for another and has "
                "no place; please report it",
                (unsigned long long)ordinal);
        if (rc)
            return rc;
        memcpy(&k->now, p, sizeof k->now);
    }
    return SLU_OK;
}

static int sort_by_witness(struct slu_near_wait *w, struct slu_err *err)
{
    const struct slu_sorter_cfg cfg = {w->sorter_byte, w->cfg.tmpdir, w->cfg.n_threads};
    struct slu_near_drop drop;
    int rc = slu_sorter_new(&w->by_witness, &cfg, err);

    while (rc == SLU_OK) {
        rc = slu_near_ext_next(w->ext, &drop, err);
        if (rc)
            break;
        const struct lost lost = {
            .ordinal = drop.ordinal, .inter = drop.inter, .uni = drop.uni};
        const struct slu_piece piece = {&lost, sizeof lost};
        rc = slu_sorter_add(w->by_witness, key_of(w, drop.witness), &piece, 1, err);
    }
    return rc == SLU_EOF ? slu_sorter_seal(w->by_witness, err) : rc;
}

static int place_witnesses(struct slu_near_wait *w, struct slu_err *err)
{
    const struct slu_sorter_cfg cfg = {w->sorter_byte, w->cfg.tmpdir, w->cfg.n_threads};
    struct walk walk = {.w = w, .now = {.ordinal = UINT64_MAX}};
    struct slu_u128 key;
    struct lost lost;
    const void *p;
    size_t n;

    int rc = slu_spool_rewind(w->places, sizeof(struct where), err);
    if (rc == SLU_OK)
        rc = slu_sorter_new(&w->by_ordinal, &cfg, err);
    while (rc == SLU_OK) {
        rc = slu_sorter_next(w->by_witness, &key, &p, &n, err);
        if (rc)
            break;
        memcpy(&lost, p, sizeof lost);
        rc = walk_to(&walk, ordinal_of(w, key), err);
        if (rc)
            return rc;
        lost.witness = walk.now.place;
        const struct slu_piece piece = {&lost, sizeof lost};
        rc = slu_sorter_add(w->by_ordinal, key_of(w, lost.ordinal), &piece, 1, err);
    }
    if (rc != SLU_EOF)
        return rc;
    w->spilled_byte += slu_sorter_spilled(w->by_witness);
    slu_sorter_free(w->by_witness);
    w->by_witness = NULL;
    return slu_sorter_seal(w->by_ordinal, err);
}

/* ---- the end ---- */

/* The next ordinal that is dropped, UINT64_MAX if there is none. */
static int next_lost(struct slu_near_wait *w, uint64_t *ordinal,
                     struct slu_near_verdict *v, struct slu_err *err)
{
    struct slu_near_drop drop;
    struct slu_u128 key;
    struct lost lost;
    const void *p;
    size_t n;
    int rc;

    *ordinal = UINT64_MAX;
    *v = (struct slu_near_verdict){.answer = SLU_NEAR_DROPPED};
    if (!w->by_ordinal) {
        rc = slu_near_ext_next(w->ext, &drop, err);
        if (rc == SLU_OK)
            *ordinal = drop.ordinal;
        return rc == SLU_EOF ? SLU_OK : rc;
    }
    rc = slu_sorter_next(w->by_ordinal, &key, &p, &n, err);
    if (rc == SLU_OK) {
        memcpy(&lost, p, sizeof lost);
        *ordinal = lost.ordinal;
        v->witness = lost.witness;
        v->inter = lost.inter;
        v->uni = lost.uni;
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int emit_batch(struct slu_near_wait *w, struct slu_batch *b, struct slu_err *err)
{
    int rc = b->n_seq ? w->cfg.emit(w->cfg.ctx, b, err) : SLU_OK;

    slu_batch_clear(b);
    return rc;
}

/* Stream order: reads the list back and leaves out what is dropped. */
static int replay(struct slu_near_wait *w, struct slu_batch *b, struct slu_err *err)
{
    struct slu_near_verdict v;
    uint64_t lost, n = 0;

    int rc = slu_waitlist_rewind(w->list, err);
    if (rc == SLU_OK)
        rc = next_lost(w, &lost, &v, err);
    while (rc == SLU_OK) {
        struct slu_waiting item;
        rc = slu_waitlist_next(w->list, b, &item, err);
        if (rc)
            break;
        if (item.note) {
            rc = w->cfg.note(w->cfg.ctx, item.note, item.n_byte, err);
            continue;
        }
        n++;
        if (item.tag == lost) {
            rc = w->cfg.drop(w->cfg.ctx, b, &b->seq[b->n_seq - 1], &v, err);
            b->n_seq--;
            if (rc == SLU_OK)
                rc = next_lost(w, &lost, &v, err);
        }
        if (rc == SLU_OK && slu_batch_weight(b) >= BATCH_TOK)
            rc = emit_batch(w, b, err);
    }
    if (rc != SLU_EOF)
        return rc;
    if (n != slu_waitlist_n(w->list) || lost != UINT64_MAX)
        return slu_fail(err, SLU_E_CONSERVATION,
                        "internal error: %llu sequences waited and %llu came back; "
                        "please report it",
                        (unsigned long long)slu_waitlist_n(w->list),
                        (unsigned long long)n);
    return emit_batch(w, b, err);
}

int slu_near_wait_finish(struct slu_near_wait *w, struct slu_err *err)
{
    struct slu_batch b;

    slu_batch_init(&b, w->cfg.tok_bytes);
    slu_near_mem_forget_twins(w->cfg.mem);
    int rc = slu_near_ext_finish(w->ext, err);
    if (rc == SLU_OK && w->cfg.details) {
        rc = sort_by_witness(w, err);
        if (rc == SLU_OK)
            rc = place_witnesses(w, err);
    }
    if (rc == SLU_OK)
        rc = replay(w, &b, err);
    slu_batch_release(&b);
    w->spilled_byte += slu_waitlist_spilled(w->list);
    w->spilled_byte += w->places ? slu_spool_spilled(w->places) : 0;
    w->spilled_byte += w->by_ordinal ? slu_sorter_spilled(w->by_ordinal) : 0;
    w->spilled_byte += slu_near_ext_result(w->ext)->spilled_byte;
    return rc;
}

void slu_near_wait_stats(const struct slu_near_wait *w, struct slu_near_wait_stats *s)
{
    const struct slu_near_ext_result *r = slu_near_ext_result(w->ext);

    *s = (struct slu_near_wait_stats){.waited = slu_waitlist_n(w->list),
                                      .spilled_byte = w->spilled_byte,
                                      .twins = r->twins,
                                      .candidates = r->candidates,
                                      .verified = w->cfg.verify ? r->edges : 0,
                                      .refused = r->candidates - r->edges,
                                      .capped_documents = r->capped_documents};
}
