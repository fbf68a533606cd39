/* near_flow.c - near duplicates as a flow: sign, group, verify, cluster, index, filter.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/against/index.h"
#include "lib/dedup/leave_out.h"
#include "lib/dedup/near/near_private.h"
#include "lib/dedup/near/near_verify.h"

#define LEAST_BYTE (UINT64_C(1) << 20) /* least memory of verify */
enum {
    LOOK = 512
}; /* documents that the stage index looks up at
                                          once */

/* ---- sign ---- */

int slu_near_see(void *ctx, const struct slu_header *h, struct slu_names *names,
                 struct slu_err *err)
{
    struct slu_near *x = ctx;

    x->header = h;
    x->names = names;
    if (h->no_tokens)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has segment rows only, and no tokens to compare");
    return x->cfg.count_known ? x->cfg.count_known(x->cfg.ctx, h, &x->n_fixed, err)
                              : SLU_OK;
}

static int put_band(struct slu_near *x, uint64_t key, uint64_t tag, uint64_t rank,
                    uint64_t last, struct slu_err *err)
{
    const uint64_t by_prio[] = {key, tag, rank, last}, row[] = {key, tag, last};

    return slu_table_put(x->band, x->cfg.prio ? by_prio : row, err);
}

int slu_near_put_doc(struct slu_near *x, const struct slu_near_item *d, uint64_t rank,
                     struct slu_err *err)
{
    const uint64_t n_band = x->cfg.n_band, at = x->ordinal++,
                   word[] = {d->set_hash.lo, d->set_hash.hi, rank};
    int rc = slu_store_put(x->set, word, d->set, d->n_set, err);

    if (rc || !d->n_set)
        return rc;
    for (uint64_t b = 0; b < n_band && !rc; b++) {
        uint64_t tag = slu_near_tag(d->set_hash, b);
        if (tag < NEAR_TAGS && !x->cfg.prio)
            tag += NEAR_TAGS;
        rc = put_band(x, d->key[b], tag, rank, b << NEAR_SHIFT | at, err);
    }
    return rc ? rc
              : put_band(x, d->set_hash.hi, slu_near_tag(d->set_hash, n_band), rank,
                         n_band << NEAR_SHIFT | at, err);
}

int slu_near_put_group(struct slu_near *x, unsigned band, uint64_t key, uint64_t n_doc,
                       const uint64_t *kept, size_t n_kept, struct slu_err *err)
{
    const uint64_t top = (uint64_t)band << NEAR_SHIFT, others = n_doc - n_kept;
    int rc = others ? put_band(x, key, NEAR_UNLISTED, 0, top | others, err) : SLU_OK;

    for (size_t i = 0; i < n_kept && !rc; i++)
        rc = put_band(x, key, NEAR_LISTED, 0, top | kept[i], err);
    return rc;
}

/* Puts all documents of a part. */
static int put_all(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct slu_near *x = ctx;
    const struct slu_near_cfg *c = &x->cfg;
    const struct slu_buf *buf = side;
    const struct slu_near_item *d = (const void *)buf->data;
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        uint64_t prio = c->prio ? c->prio(c->ctx, b, &b->seq[i]) : 0;
        rc = slu_near_put_doc(x, &d[i], slu_near_rank(false, prio), err);
    }
    slu_buf_trim(side, SLU_KEEP_BATCH_BYTE);
    return rc;
}

static int sign(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    static const struct slu_side_ops here = {sizeof(struct slu_buf), slu_near_items,
                                             slu_near_arrive, slu_near_items_release},
                                     files = {sizeof(struct slu_buf), slu_near_items,
                                              put_all, slu_near_items_release};
    struct slu_near *x = ctx;
    int rc = slu_near_begin(x, err);

    x->flow = f;
    x->set = slu_flow_out(f, NEAR_SET);
    x->band = slu_flow_out(f, NEAR_BAND);
    x->where = slu_flow_out(f, NEAR_WHERE);
    if (!rc && slu_flow_here(f))
        rc = slu_near_front(x, err);
    else if (!rc && x->cfg.known && !slu_flow_part(f)) /* the ordinals of the index
                                                          come first */
        rc = x->cfg.known(x->cfg.ctx, x, err);
    if (!rc)
        rc = slu_flow_read(f, slu_flow_here(f) ? &here : &files, x, err);
    slu_near_end(x);
    slu_flow_span(f, x->ordinal);
    if (!slu_flow_here(f))
        return rc;
    x->noting = false;
    if (!x->result.waited)
        slu_flow_finished(f);
    else if (x->mem)
        slu_near_mem_forget_sets(x->mem);
    return rc;
}

/* ---- verify ---- */

static int put_edge(void *ctx, const struct slu_near_edge *e, struct slu_err *err)
{
    const struct slu_near *x = ctx;
    const uint64_t row[] = {e->d, e->k, e->inter, e->uni},
                   by_prio[] = {e->d_rank, e->d, e->k_rank, e->k, e->inter, e->uni};

    return slu_table_put(x->edge, x->cfg.prio ? by_prio : row, err);
}

static int add_pairs(const struct slu_near *x, struct slu_near_verify *v,
                     struct slu_flow *f, struct slu_err *err)
{
    const uint64_t part = slu_flow_part(f), base = slu_flow_base(f, part),
                   n_own = slu_flow_base(f, part + 1) - base, n_doc = slu_flow_total(f);
    struct slu_table *t;
    struct slu_row r;
    int rc = slu_flow_in(f, NEAR_PAIR, &t, err);

    while (!rc) {
        rc = slu_table_next(t, &r, err);
        const uint64_t *w = r.p;
        if (!rc)
            rc = w[0] < n_own && base + w[0] >= x->n_fixed && w[1] < n_doc
                     ? slu_near_verify_pair(v, w[1], base + w[0], err)
                     : slu_flow_damaged(f, NEAR_PAIR, r.part, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int verify(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_near *x = ctx;
    const uint64_t own = slu_flow_own_byte(f),
                   taken = x->mem ? slu_near_mem_left(x->mem) : 0,
                   first = slu_flow_base(f, slu_flow_part(f));
    struct slu_near_verify_cfg cfg = {
        .budget_byte = own > taken + LEAST_BYTE ? own - taken : LEAST_BYTE,
        .tmpdir = x->cfg.tmpdir,
        .n_threads = x->cfg.n_threads,
        .num = x->cfg.num,
        .den = x->cfg.den,
        .verify = x->cfg.verify,
        .n_doc = slu_flow_total(f),
        .d_first = first > x->n_fixed ? first : x->n_fixed,
        .d_end = slu_flow_base(f, slu_flow_part(f) + 1),
        .edge = put_edge,
        .ctx = x};
    struct slu_near_verify *v = NULL;
    int rc = slu_flow_in(f, NEAR_SET, &cfg.set, err);

    x->edge = slu_flow_out(f, NEAR_EDGE);
    if (!rc)
        rc = slu_near_verify_new(&v, &cfg, err);
    if (!rc)
        rc = add_pairs(x, v, f, err);
    if (!rc)
        rc = slu_near_verify_run(v, err);
    if (!rc) {
        const struct slu_near_verify_result *r = slu_near_verify_result(v);
        const uint64_t row[] = {r->candidates, r->edges, r->capped};
        slu_flow_spilled(f, r->spilled_byte);
        if (!slu_flow_here(f)) { /* over files, the stage cluster sums the counts */
            x->result.candidates = r->candidates;
            x->result.edges = r->edges;
            x->result.capped_documents = r->capped;
        }
        rc = slu_table_put(slu_flow_out(f, NEAR_COUNT), row, err);
    }
    slu_near_verify_free(v);
    return rc;
}

/* ---- index ---- */

struct save {
    struct slu_near *x;
    struct slu_flow *f;
    struct slu_index_out *out;
    struct slu_table *set;
    uint64_t *v; /* numbers of the current set */
    size_t cap;
};

static int save_doc(struct save *s, uint64_t at, const struct slu_stored *e,
                    struct slu_err *err)
{
    const struct slu_u128 hash = {e->word[0], e->word[1]};
    int rc = slu_grow(&s->v, &s->cap, e->n, sizeof *s->v, err);

    if (!rc)
        rc = slu_store_read(s->set, at, e, 0, e->n, s->v, err);
    s->x->result.indexed++;
    return rc ? rc : slu_index_put_set(s->out, hash, s->v, e->n, err);
}

/* Saves documents `at` to end - 1 of all parts. */
static int save_docs(struct save *s, uint64_t at, uint64_t end, struct slu_err *err)
{
    struct slu_stored e[LOOK];
    int rc = SLU_OK;

    while (at < end && !rc) {
        const size_t n = end - at < LOOK ? (size_t)(end - at) : LOOK;
        rc = slu_store_look(s->set, at, n, e, err);
        for (size_t i = 0; i < n && !rc; i++)
            rc = save_doc(s, at++, &e[i], err);
    }
    return rc;
}

/* Saves the documents between those that the rows of DROP name; these rows ascend. */
static int save_part(struct save *s, uint64_t part, struct slu_err *err)
{
    const uint64_t base = slu_flow_base(s->f, part),
                   end = slu_flow_base(s->f, part + 1);
    uint64_t at = part ? base : s->x->n_fixed;
    struct slu_table *drop;
    struct slu_row r;
    int rc = slu_flow_of_cells(s->f, NEAR_DROP, part, part + 1, &drop, err);

    while (!rc) {
        rc = slu_table_next(drop, &r, err);
        if (rc && rc != SLU_EOF)
            break;
        const bool last = rc == SLU_EOF;
        const uint64_t gone = last ? end : base + *(const uint64_t *)r.p;
        if (gone < at || gone + !last > end)
            return slu_flow_damaged(s->f, NEAR_DROP, 0, err);
        rc = save_docs(s, at, gone, err);
        if (last)
            break;
        at = gone + 1;
    }
    return rc;
}

static int save(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct save s = {.x = ctx, .f = f};
    const struct slu_near_cfg *c = &s.x->cfg;
    const struct slu_index_cfg cfg = {c->trained, false,   c->n_band, c->n_row,
                                      c->n_gram,  c->unit, c->seed};
    int rc = slu_flow_in(f, NEAR_SET, &s.set, err);

    if (!rc)
        rc =
            slu_index_create(&s.out, s.x->cfg.save_index, &cfg, s.x->header, NULL, err);
    for (uint64_t i = 0; i < slu_flow_parts(f) && !rc; i++)
        rc = save_part(&s, i, err);
    free(s.v);
    if (!rc)
        return slu_index_close(s.out, err);
    slu_index_abort(s.out);
    return rc;
}

/* ---- filter ---- */

/* In one process, if pairs are wanted: finds the position of each witness in the list
 * of all documents. */
static int name(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_near *x = ctx;
    struct slu_table *lost, *where;
    struct slu_row r, w;
    struct slu_origin origin = {0, 0, 0};
    uint64_t i = 0, n_mem = 0, now = NEAR_NONE_LEFT;
    int rc = slu_near_details(x) ? slu_flow_in(f, NEAR_LOST, &lost, err) : SLU_EOF;

    if (!rc)
        rc = slu_flow_in(f, NEAR_WHERE, &where, err);
    n_mem = !rc && x->mem ? slu_near_mem_n_kept(x->mem) : 0;
    while (!rc) {
        rc = slu_table_next(lost, &r, err);
        const uint64_t *v = r.p;
        while (!rc && now != v[0]) {
            if (i < n_mem) {
                slu_near_mem_kept(x->mem, i++, &now, &origin);
                continue;
            }
            rc = slu_flow_next(f, NEAR_WHERE, 0, where, &w, err);
            if (rc)
                return rc;
            const uint64_t *p = w.p;
            now = p[0];
            origin = (struct slu_origin){p[1], p[2], p[3]};
        }
        if (rc)
            break;
        const uint64_t row[] = {v[1],          origin.source, origin.document,
                                origin.offset, v[2],          v[3]};
        rc = slu_table_put(slu_flow_out(f, NEAR_NAMED), row, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* w: a row of NAMED, which has the pair, or of DROP, if pairs are not wanted. */
static int drop(void *ctx, const struct slu_batch *b, const struct slu_seq *q,
                const uint64_t *w, struct slu_err *err)
{
    struct slu_near *x = ctx;
    struct slu_near_verdict v = {.inter = 0};

    if (slu_flow_here(x->flow) && slu_near_details(x))
        v = (struct slu_near_verdict){
            .witness = {w[1], w[2], w[3]}, .inter = w[4], .uni = w[5]};
    return slu_near_drop(x, b, q, &v, err);
}

static int filter(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_near *x = ctx;
    const bool here = slu_flow_here(f);
    const struct slu_leave_out how = {.table = here && slu_near_details(x) ? NEAR_NAMED
                                                                           : NEAR_DROP,
                                      .from = slu_flow_part(f) ? 0 : x->n_fixed,
                                      .ctx = x,
                                      .drop = drop,
                                      .emit = x->cfg.emit,
                                      .emit_ctx = x->cfg.ctx};
    int rc = here ? SLU_OK : x->cfg.open(x->cfg.ctx, err);

    x->flow = f;
    return rc ? rc : slu_leave_out(f, &how, err);
}

/* ---- the flow ---- */

static bool same(const void *ctx, uint64_t *row, const uint64_t *next)
{
    (void)ctx;
    return row[0] == next[0] && row[1] == next[1];
}

/* With priorities, rows have a rank, and one process has no front, so bands get its
 * memory. */
#define TABLES(n_band, band_share, n_edge, edge_dense)                                 \
    {                                                                                  \
        [NEAR_SET] = {"set", SLU_STORE, SLU_CUT_NO, 3, 1},                             \
        [NEAR_BAND] = {"band",     SLU_GROUPS, SLU_CUT_RANGES,   n_band,               \
                       band_share, 64,         1 << (n_band - 1)},                     \
        [NEAR_WHERE] = {"where", SLU_LIST, SLU_CUT_HERE, 4, 0},                        \
        [NEAR_PAIR] = {"pair", SLU_ROWS, SLU_CUT_PARTS, 2, 4, .join = same},           \
        [NEAR_EQUAL] = {"twin", SLU_ROWS, SLU_CUT_NO, 2, 2, .dense = true},            \
        [NEAR_EDGE] = {"edge", SLU_ROWS, SLU_CUT_NO, n_edge, 8, .dense = edge_dense},  \
        [NEAR_COUNT] = {"count", SLU_LIST, SLU_CUT_NO, 3, 1},                          \
        [NEAR_DROP] = {"drop", SLU_ROWS, SLU_CUT_PARTS, 4, 8},                         \
        [NEAR_LOST] = {"lost", SLU_ROWS, SLU_CUT_HERE, 4, 8, .dense = true},           \
        [NEAR_NAMED] = {"named", SLU_ROWS, SLU_CUT_HERE, 6, 8, .dense = true},         \
    }

static const struct slu_table_spec tables[NEAR_TABLES] = TABLES(3, 7, 4, true),
                                   by_prio[NEAR_TABLES] = TABLES(4, 31, 6, false);

static const struct slu_stage_input bands[] = {{NEAR_BAND, SLU_READ_RANGE}};
static const struct slu_stage_input pairs[] = {{NEAR_SET, SLU_READ_ALL},
                                               {NEAR_PAIR, SLU_READ_RANGE, true}};
static const struct slu_stage_input edges[] = {
    {NEAR_EDGE, SLU_READ_ALL}, {NEAR_COUNT, SLU_READ_ALL}, {NEAR_EQUAL, SLU_READ_ALL}};
static const struct slu_stage_input kept[] = {{NEAR_DROP, SLU_READ_ALL},
                                              {NEAR_SET, SLU_READ_ALL}};
static const struct slu_stage_input lost[] = {{NEAR_LOST, SLU_READ_ALL},
                                              {NEAR_WHERE, SLU_READ_ALL}};
static const struct slu_stage_input drops[] = {{NEAR_DROP, SLU_READ_RANGE},
                                               {NEAR_NAMED, SLU_READ_RANGE}};
static const unsigned signed_to[] = {NEAR_SET, NEAR_BAND, NEAR_WHERE},
                      grouped[] = {NEAR_PAIR, NEAR_EQUAL},
                      verified[] = {NEAR_EDGE, NEAR_COUNT},
                      clustered[] = {NEAR_DROP, NEAR_LOST}, named[] = {NEAR_NAMED};

enum { FILTER = SLU_STAGE_READS | SLU_STAGE_WRITES };

static const struct slu_stage stages[] = {
    {"sign", SLU_STAGE_READS, NULL, 0, signed_to, 3, 0, sign},
    {"group", SLU_STAGE_RANGES, bands, 1, grouped, 2, 5, slu_near_group},
    {"verify", 0, pairs, 2, verified, 2, 40, verify},
    {"cluster", SLU_STAGE_ONE, edges, 3, clustered, 2, 20, slu_near_cluster},
    {"name", SLU_STAGE_HERE, lost, 2, named, 1, 0, name},
    {"filter", FILTER, drops, 2, NULL, 0, 0, filter},
    {"index", SLU_STAGE_ONE, kept, 2, NULL, 0, 20, save},
};
enum { N_STAGE = sizeof stages / sizeof *stages };

/* Without the stage index, and with it. */
static const struct slu_flow_spec specs[2][2] = {
    {{"near", tables, stages, NEAR_TABLES, N_STAGE - 1, NULL},
     {"near", tables, stages, NEAR_TABLES, N_STAGE, NULL}},
    {{"near", by_prio, stages, NEAR_TABLES, N_STAGE - 1, NULL},
     {"near", by_prio, stages, NEAR_TABLES, N_STAGE, NULL}},
};

const struct slu_flow_spec *slu_near_spec(bool prio, bool index)
{
    return &specs[prio][index];
}
