/* phase_sign.c - a part's stream to its sign file: sets as they come, entries beside
 * them in a spool, band records through a sorter. */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/minhash.h"
#include "lib/dedup/phases_private.h"
#include "lib/io.h"
#include "lib/sidecar.h"
#include "lib/order/sorter.h"
#include "lib/order/spool.h"

struct scratch {
    struct slu_hashes hashes;
    uint32_t *sig;
};

/* What goes with a batch: an item for each sequence, then its keys, then the sets. */
struct item {
    struct slu_u128 hash;
    uint64_t prio, n_set;
};

struct sign {
    const struct slu_phase_cfg *cfg;
    struct slu_shingler *shingler;
    struct slu_minhash *minhash;
    struct scratch *scratch; /* one a thread */
    struct slu_sidecar items;
    struct slu_workfile_out *out;
    struct slu_spool *entries;
    struct slu_sorter *records;
    uint64_t n_doc;
};

static unsigned n_band_of(const struct slu_phase_cfg *c)
{
    return c->exact ? 0 : c->n_band;
}

/* ---- workers ---- */

static int sign_one(struct sign *s, struct scratch *w, const struct slu_batch *b,
                    const struct slu_seq *q, struct item *it, uint64_t *key,
                    struct slu_err *err)
{
    const void *tok = slu_batch_at(b, q->tok_off);

    it->prio = s->cfg->prio ? s->cfg->prio(s->cfg->ctx, b, q) : 0;
    if (s->cfg->exact) {
        it->hash = slu_hash_tokens(tok, q->len_tok, b->tok_bytes);
        it->n_set = 1;
        return SLU_OK;
    }
    int rc = slu_shingle(s->shingler, tok, q->len_tok, &w->hashes, err);
    if (rc == SLU_OK)
        rc = slu_hashes_to_set(&w->hashes, err);
    if (rc)
        return rc;
    it->n_set = w->hashes.n;
    it->hash = slu_set_hash128(w->hashes.hash, w->hashes.n);
    slu_minhash_sign(s->minhash, w->hashes.hash, w->hashes.n, w->sig);
    slu_minhash_band_keys(s->minhash, w->sig, key);
    return SLU_OK;
}

static int work(void *ctx, unsigned worker, struct slu_batch *b, struct slu_err *err)
{
    struct sign *s = ctx;
    struct scratch *w = &s->scratch[worker];
    unsigned n_band = n_band_of(s->cfg);
    size_t head = b->n_seq * (sizeof(struct item) + n_band * sizeof(uint64_t));
    struct slu_buf *buf;
    int rc = slu_sidecar_of(&s->items, b, &buf, err);

    if (rc)
        return rc;
    slu_buf_clear(buf);
    rc = slu_buf_reserve(buf, head, err);
    if (rc)
        return rc;
    buf->len = head;
    for (size_t i = 0; rc == SLU_OK && i < b->n_seq; i++) {
        struct item *it = (struct item *)(void *)buf->data + i;
        uint64_t *key =
            (uint64_t *)(void *)((struct item *)(void *)buf->data + b->n_seq) +
            i * n_band;
        rc = sign_one(s, w, b, &b->seq[i], it, key, err);
        if (rc == SLU_OK && !s->cfg->exact && w->hashes.n)
            rc = slu_buf_append(buf, w->hashes.hash, w->hashes.n * 8, err);
    }
    return rc;
}

/* ---- in stream order ---- */

static int put_record(struct sign *s, uint64_t key, uint64_t tag, uint64_t prio,
                      unsigned band, struct slu_err *err)
{
    const struct slu_u128 k = {0, key};
    const uint64_t row[3] = {tag, (uint64_t)band << BAND_SHIFT | s->n_doc, prio};
    const struct slu_piece piece = {row, slu_phase_by_prio(s->cfg) ? 24 : 16};

    return slu_sorter_add(s->records, k, &piece, 1, err);
}

static int put_one(struct sign *s, const struct item *it, const uint64_t *key,
                   const uint64_t *set, struct slu_err *err)
{
    unsigned n_band = n_band_of(s->cfg);
    uint64_t e[ENTRY] = {
        it->prio, slu_workfile_tell(s->out), it->n_set, it->hash.lo, it->hash.hi, 0};
    int rc = SLU_OK;

    if (!s->cfg->exact) {
        e[5] = slu_hash64(e, 40);
        rc = slu_workfile_put(s->out, set, it->n_set, err);
        if (rc == SLU_OK)
            rc = slu_spool_put(s->entries, e, sizeof e, err);
    }
    if (rc == SLU_OK && it->n_set)
        rc = put_record(s, it->hash.hi, it->hash.lo, it->prio, n_band, err);
    for (unsigned i = 0; rc == SLU_OK && it->n_set && i < n_band; i++)
        rc = put_record(s, key[i], it->hash.lo, it->prio, i, err);
    s->n_doc++;
    return rc;
}

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct sign *s = ctx;
    unsigned n_band = n_band_of(s->cfg);
    struct slu_buf *buf;
    int rc = slu_sidecar_of(&s->items, b, &buf, err);

    if (rc)
        return rc;
    const struct item *it = (const void *)buf->data;
    const uint64_t *key = (const void *)(it + b->n_seq), *set = key + b->n_seq * n_band;
    for (size_t i = 0; rc == SLU_OK && i < b->n_seq; i++) {
        rc = put_one(s, &it[i], key + i * n_band, set, err);
        set += s->cfg->exact ? 0 : it[i].n_set;
    }
    return rc;
}

/* ---- the end of the file ---- */

static int write_entries(struct sign *s, struct slu_err *err)
{
    int rc = slu_workfile_section(s->out, ENTRIES, err);

    if (rc == SLU_OK)
        rc = slu_spool_rewind(s->entries, ENTRY * 8, err);
    while (rc == SLU_OK) {
        const void *p;
        rc = slu_spool_get(s->entries, &p, ENTRY * 8, err);
        if (rc == SLU_OK)
            rc = slu_workfile_put(s->out, p, ENTRY, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int write_records(struct sign *s, struct slu_err *err)
{
    uint64_t n_range = s->cfg->ranges;
    int rc = slu_sorter_seal(s->records, err);

    while (rc == SLU_OK) {
        struct slu_u128 key;
        const void *p;
        size_t n;
        rc = slu_sorter_next(s->records, &key, &p, &n, err);
        if (rc)
            break;
        uint64_t range = (uint64_t)(((unsigned __int128)key.hi * n_range) >> 64);
        const uint64_t *row = p;
        const uint64_t out[4] = {key.hi, row[0], n == 24 ? row[2] : row[1], row[1]};
        rc = slu_workfile_section(s->out, RECORDS + range, err);
        if (rc == SLU_OK)
            rc = slu_workfile_put(s->out, out, slu_phase_record(s->cfg), err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* ---- the phase ---- */

static int begin(struct sign *s, struct slu_reader *r, const char *path,
                 struct slu_err *err)
{
    const struct slu_phase_cfg *c = s->cfg;
    const struct slu_header *h = slu_reader_header(r);
    struct slu_shingler_cfg sh = {
        c->unit, c->n_gram, slu_names_vocab(slu_reader_names(r)), h->tok_bytes, h->eos,
        h->bos,  h->pad};
    struct slu_sorter_cfg sc = {c->budget_byte / 8 * 7 - (1 << 20), c->tmpdir,
                                c->n_threads};
    int rc = slu_workfile_create(&s->out, path, SLU_WORKFILE_SIGN, err);

    if (rc == SLU_OK)
        rc = slu_sorter_new(&s->records, &sc, err);
    if (rc == SLU_OK)
        rc = slu_spool_new(&s->entries, c->budget_byte / 8, c->tmpdir, err);
    if (rc == SLU_OK && !c->exact)
        rc = slu_shingler_new(&s->shingler, &sh, err);
    if (rc == SLU_OK && !c->exact)
        rc = slu_minhash_new(&s->minhash, c->n_band, c->n_row, c->seed, err);
    if (rc)
        return rc;
    s->scratch = calloc(c->n_threads, sizeof *s->scratch);
    if (!s->scratch)
        return slu_fail_nomem(err, c->n_threads * sizeof *s->scratch);
    size_t n_byte = c->exact ? 8 : (size_t)c->n_band * c->n_row * sizeof(uint32_t);
    for (unsigned i = 0; i < c->n_threads; i++)
        if (!(s->scratch[i].sig = malloc(n_byte)))
            return slu_fail_nomem(err, n_byte);
    return SLU_OK;
}

static void release(struct sign *s)
{
    for (unsigned i = 0; s->scratch && i < s->cfg->n_threads; i++) {
        slu_hashes_release(&s->scratch[i].hashes);
        free(s->scratch[i].sig);
    }
    free(s->scratch);
    slu_minhash_free(s->minhash);
    slu_shingler_free(s->shingler);
    slu_sidecar_release(&s->items);
    slu_workfile_abort(s->out);
    slu_spool_free(s->entries);
    slu_sorter_free(s->records);
}

static int make(struct sign *s, struct slu_reader *r, unsigned n_slots,
                struct slu_workfile_head *head, const char *path, struct slu_sum *total,
                struct slu_phase_result *result, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {work, emit};
    int rc = begin(s, r, path, err);

    if (rc == SLU_OK)
        rc = slu_stream_run(r, &ops, s, s->cfg->n_threads, n_slots, total, err);
    if (rc == SLU_OK)
        rc = write_entries(s, err);
    if (rc == SLU_OK)
        rc = write_records(s, err);
    if (rc)
        return rc;
    result->spilled_byte =
        slu_spool_spilled(s->entries) + slu_sorter_spilled(s->records);
    rc = slu_phase_note_stream(head->count, r, total, err);
    if (rc)
        return rc;
    head->count[N_RANGE] = s->cfg->ranges;
    if (s->n_doc != total->n.sequences)
        return slu_fail(err, SLU_E_CONSERVATION,
                        "internal error: %llu sequences were read and %llu signed; "
                        "please report it",
                        (unsigned long long)total->n.sequences,
                        (unsigned long long)s->n_doc);
    struct slu_workfile_out *out = s->out;
    s->out = NULL;
    return slu_workfile_close(out, head, RECORDS + s->cfg->ranges, err);
}

int slu_phase_note_stream(uint64_t count[SLU_WORKFILE_COUNTS], struct slu_reader *r,
                          const struct slu_sum *total, struct slu_err *err)
{
    struct slu_u128 id;
    int rc = slu_reader_identity(r, &id, err);

    if (rc)
        return rc;
    count[N_DOC] = total->n.sequences;
    count[N_TOK] = total->n.tokens;
    count[STREAM_LO] = id.lo;
    count[STREAM_HI] = id.hi;
    return SLU_OK;
}

int slu_phase_same_stream(bool *same, const uint64_t count[SLU_WORKFILE_COUNTS],
                          struct slu_reader *r, const struct slu_sum *total,
                          struct slu_err *err)
{
    uint64_t is[SLU_WORKFILE_COUNTS] = {0};
    int rc = slu_phase_note_stream(is, r, total, err);

    *same = !rc && is[N_DOC] == count[N_DOC] && is[N_TOK] == count[N_TOK] &&
            is[STREAM_LO] == count[STREAM_LO] && is[STREAM_HI] == count[STREAM_HI];
    return rc;
}

static int pass(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    (void)ctx, (void)b, (void)err;
    return SLU_OK;
}

int slu_phase_compare(const struct slu_phase_cfg *c, struct slu_reader *r,
                      unsigned n_slots, const struct slu_workfile_head *is,
                      const char *path, struct slu_sum *total, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {NULL, pass};
    bool same = false;
    int rc = slu_stream_run(r, &ops, NULL, c->n_threads, n_slots, total, err);

    if (rc == SLU_OK)
        rc = slu_phase_same_stream(&same, is->count, r, total, err);
    if (rc == SLU_OK && !same)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: was made from another stream; remove it, or use -f to make "
                      "it again",
                      path);
    return rc;
}

int slu_phase_sign(const struct slu_phase_cfg *c, struct slu_reader *r,
                   unsigned n_slots, struct slu_sum *total,
                   struct slu_phase_result *result, struct slu_err *err)
{
    struct slu_workfile_head want = {.kind = SLU_WORKFILE_SIGN,
                                     .part = c->part,
                                     .of = c->of},
                             is;
    struct sign s = {.cfg = c};
    char *path = NULL, *param = NULL;

    *result = (struct slu_phase_result){0};
    slu_sidecar_init(&s.items);
    slu_reader_track(r);
    memcpy(want.fingerprint, slu_reader_header(r)->fingerprint, 16);
    int rc = slu_mkdirs(c->work, err);
    if (rc == SLU_OK)
        rc = slu_phase_path(c, want.kind, c->part, c->of, &path, err);
    if (rc == SLU_OK)
        rc = slu_phase_param(c, want.kind, c->ranges, &param, err);
    want.param = param;
    if (rc == SLU_OK)
        rc = slu_phase_done(c, &want, path, &result->skipped, &is, err);
    if (rc == SLU_OK && result->skipped)
        rc = slu_phase_compare(c, r, n_slots, &is, path, total, err);
    else if (rc == SLU_OK)
        rc = make(&s, r, n_slots, &want, path, total, result, err);
    result->documents = total->n.sequences;
    result->tokens = total->n.tokens;
    release(&s);
    free(param);
    free(path);
    return rc;
}
