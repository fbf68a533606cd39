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

#define MERSENNE61 ((UINT64_C(1) << 61) - 1)

static inline uint64_t mod61(unsigned __int128 v)
{
    uint64_t x = (uint64_t)(v & MERSENNE61) + (uint64_t)(v >> 61);

    x = (x & MERSENNE61) + (x >> 61);
    return x == MERSENNE61 ? 0 : x;
}

/* Two polynomials of the ids of a window, in base[] mod 2^61 - 1 (Karp and Rabin). */
static const uint64_t base[2] = {0x0d9aa1f2ca3a3d39, 0x171f6a6cbb1eae15};

struct roll {
    uint64_t h[2];
    uint64_t out[2]; /* what an id that leaves is multiplied by */
    uint64_t at;     /* the window's first id */
    bool has;
};

static void roll_init(struct roll *r, unsigned n_tok)
{
    memset(r, 0, sizeof *r);
    for (unsigned k = 0; k < 2; k++) {
        uint64_t p = 1;
        for (unsigned i = 0; i < n_tok; i++)
            p = mod61((unsigned __int128)p * base[k]);
        r->out[k] = MERSENNE61 - p;
    }
}

/* Bijective, so that no two hashes become one (David Stafford's variant 13). */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Moves to the window at id `at` of b, from a window before it where that is shorter.
 */
static void roll_to(struct roll *r, const struct slu_batch *b, uint64_t at,
                    unsigned n_tok)
{
    if (!r->has || at - r->at >= n_tok || at < r->at) {
        r->h[0] = r->h[1] = 0;
        for (uint64_t i = at; i < at + n_tok; i++) {
            uint64_t in = slu_batch_id(b, i) + UINT64_C(1);
            for (unsigned k = 0; k < 2; k++)
                r->h[k] = mod61((unsigned __int128)r->h[k] * base[k] + in);
        }
        r->at = at;
        r->has = true;
        return;
    }
    for (; r->at < at; r->at++) {
        uint64_t in = slu_batch_id(b, r->at + n_tok) + UINT64_C(1);
        uint64_t gone = slu_batch_id(b, r->at) + UINT64_C(1);
        for (unsigned k = 0; k < 2; k++)
            r->h[k] = mod61((unsigned __int128)r->h[k] * base[k] + in +
                            (unsigned __int128)gone * r->out[k]);
    }
}

struct asked {
    uint64_t place, count;
    bool has;
};

static int next_asked(struct slu_passages *x, struct asked *a, struct slu_err *err)
{
    struct slu_u128 key;
    const void *p;
    size_t n;
    int rc = slu_sorter_next(x->asked, &key, &p, &n, err);

    a->has = rc == SLU_OK;
    if (rc == SLU_OK) {
        a->place = key.hi >> x->spread;
        memcpy(&a->count, p, sizeof a->count);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* The windows asked for of the only sequence of b. */
static int ask_seq(struct slu_passages *x, const struct slu_batch *b, uint64_t place,
                   struct roll *roll, struct asked *a, struct slu_err *err)
{
    struct slu_walk w;
    int rc = SLU_OK;

    roll->has = false;
    slu_walk_init(&w, b, b->seq, &x->cfg.special, place);
    while (rc == SLU_OK && a->has && slu_walk_run(&w)) {
        uint64_t end = w.run_place + w.run.seg.len_tok;
        while (rc == SLU_OK && a->has && a->place < end) {
            for (uint64_t i = 0; rc == SLU_OK && i < a->count; i++) {
                uint64_t at = a->place + i;
                roll_to(roll, b, w.run.tok_off + (at - w.run_place), x->cfg.n_tok);
                const struct slu_keyed r = {mix(roll->h[0]), mix(roll->h[1]),
                                            at << 16 | 1};
                rc = slu_cells_put(x->windows, &r, 1, err);
            }
            if (rc == SLU_OK)
                rc = next_asked(x, a, err);
        }
    }
    return rc;
}

int slu_passages_ask(struct slu_passages *x, struct slu_err *err)
{
    struct asked a = {0, 0, false};
    struct slu_batch b;
    struct roll roll;
    uint64_t place = 0;
    const uint8_t *p;
    size_t n;

    roll_init(&roll, x->cfg.n_tok);
    slu_batch_init(&b, x->cfg.tok_bytes);
    int rc = slu_sorter_seal(x->asked, err);
    if (rc == SLU_OK)
        rc = slu_spool_rewind(x->spool, x->max_record, err);
    if (rc == SLU_OK)
        rc = next_asked(x, &a, err);
    while (rc == SLU_OK && a.has) {
        rc = next_record(x, &p, &n, err);
        uint64_t end = place;
        if (rc == SLU_OK)
            rc = pass_record(p, n, &end, err);
        if (rc)
            break;
        if (a.place < end) {
            slu_batch_clear(&b);
            rc = slu_seqrec_add(&b, p, n, err);
            if (rc == SLU_OK)
                rc = ask_seq(x, &b, place, &roll, &a, err);
        }
        place = end;
    }
    slu_batch_release(&b);
    return rc == SLU_EOF ? slu_fail(err, SLU_E_CONSERVATION,
                                    "internal error: a block lies behind the end of "
                                    "the stream; please report it")
                         : rc;
}

/* ---- step 4 ---- */

/* The ranges of the sequence whose places are [place, end): x->range[0 … n_range), and
 * behind them the next one, if there is one. */
static int ranges_of(struct slu_passages *x, uint64_t end, bool *more,
                     struct slu_err *err)
{
    x->range[0] = x->range[x->n_range]; /* the one that was read ahead */
    x->n_range = 0;
    while (*more && x->range[x->n_range].from < end) {
        int rc =
            slu_grow(&x->range, &x->cap_range, ++x->n_range + 1, sizeof *x->range, err);
        if (rc == SLU_OK)
            rc = slu_ranges_next(x->ranges, &x->range[x->n_range], err);
        if (rc && rc != SLU_EOF)
            return rc;
        *more = rc == SLU_OK;
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

/* Tells and cuts the last sequence of b, which has ranges. */
static int apply(struct slu_passages *x, struct slu_batch *b, uint64_t place,
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
    bool more = false;
    const uint8_t *p;
    size_t n;

    slu_batch_init(&b, x->cfg.tok_bytes);
    int rc = slu_grow(&x->range, &x->cap_range, 1, sizeof *x->range, err);
    if (rc == SLU_OK)
        rc = slu_spool_rewind(x->spool, x->max_record, err);
    if (rc == SLU_OK) {
        rc = slu_ranges_next(x->ranges, &x->range[0], err);
        more = rc == SLU_OK;
        rc = rc == SLU_EOF ? SLU_OK : rc;
    }
    while (rc == SLU_OK) {
        rc = next_record(x, &p, &n, err);
        uint64_t end = place;
        if (rc == SLU_OK)
            rc = pass_record(p, n, &end, err);
        if (rc)
            break;
        n_seq++;
        rc = slu_seqrec_add(&b, p, n, err);
        if (rc == SLU_OK && more)
            rc = ranges_of(x, end, &more, err);
        else
            x->n_range = 0;
        if (rc == SLU_OK && x->n_range)
            rc = apply(x, &b, place, err);
        place = end;
        if (rc == SLU_OK && slu_batch_weight(&b) >= BATCH_TOK)
            rc = emit_batch(x, &b, err);
    }
    if (rc == SLU_EOF)
        rc = emit_batch(x, &b, err);
    slu_batch_release(&b);
    if (rc == SLU_OK && (n_seq != x->n_seq || more))
        rc =
            slu_fail(err, SLU_E_CONSERVATION,
                     "internal error: %llu sequences waited and %llu came back; please "
                     "report it",
                     (unsigned long long)x->n_seq, (unsigned long long)n_seq);
    return rc;
}
