#include "lib/pack/pack_flow.h"

#include <stdlib.h>
#include <string.h>

#include "lib/pack/packing_private.h"

enum { LANE, ROW, RANK, PLAN, ITEM, WAIT, TABLES };
enum { S_DOMAIN, S_ROWS, S_ITEMS, S_CUT, S_IDS, S_LONGEST_ID, LANE_WORDS };

static const struct slu_table_spec tables[TABLES] = {
    /* S_IDS and S_LONGEST_ID are of all lanes, in the first lane's row. */
    [LANE] = {"lane", SLU_LIST, SLU_CUT_NO, LANE_WORDS, 1},
    [ROW] = {"row", SLU_LIST, SLU_CUT_NO, 2, 1},      /* length, count; ascending */
    [RANK] = {"rank", SLU_LIST, SLU_CUT_PARTS, 1, 1}, /* first rank of each row */
    /* Key: bytes of ids, and of the longest id; row: formats/PLAN.md. */
    [PLAN] = {"plan", SLU_LIST, SLU_CUT_NO, 0, 9},
    [ITEM] = {"item", SLU_ROWS, SLU_CUT_RANGES, 0, 24}, /* slu_pack_wait, id, tokens */
    /* The same rows by arrival; key: position in the domain's concatenation. */
    [WAIT] = {"wait", SLU_LIST, SLU_CUT_HERE, 0, 4},
};

static int new_packing(struct slu_pack_flow *q, struct slu_flow *f, struct slu_err *err)
{
    int rc = slu_packing_new(&q->packing, &q->cfg, err);

    q->flow = f;
    if (!rc)
        q->packing->flow = q;
    return rc;
}

/* ---- count ---- */

/* The lengths of the bins, which may be those of the stream. */
static int facts(const void *ctx, struct slu_made *m, struct slu_err *err)
{
    const struct slu_packing_cfg *cfg = &((const struct slu_pack_flow *)ctx)->cfg;
    struct slu_buf t = SLU_BUF_INIT;
    int rc = SLU_OK;

    for (size_t i = 0; i < cfg->n_bin_tok && !rc; i++)
        rc = slu_buf_printf(&t, err, "%s%llu",
                            i ? "," : "bins=", (unsigned long long)cfg->bin_tok[i]);
    if (!rc && t.len)
        rc = slu_made_fact(m, err, "%.*s", (int)t.len, (const char *)t.data);
    slu_buf_release(&t);
    return rc;
}

static int put_lane(struct slu_packing *p, size_t i, struct slu_flow *f,
                    struct slu_err *err)
{
    const struct slu_pack_lane *s = &p->lane[i];
    struct slu_length_count *row = NULL;
    size_t n = 0;
    int rc = slu_pack_rows(p, i, &row, &n, err);
    const uint64_t v[LANE_WORDS] = {
        s->domain, n, s->items, s->cut, i ? 0 : p->id_byte, i ? 0 : p->longest_id};

    if (!rc)
        rc = slu_table_put(slu_flow_out(f, LANE), v, err);
    for (size_t k = 0; k < n && !rc; k++) {
        const uint64_t w[] = {row[k].len_tok, row[k].count};
        rc = slu_table_put(slu_flow_out(f, ROW), w, err);
    }
    free(row);
    return rc;
}

static int count(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_pack_flow *q = ctx;

    q->cfg.plan_only |= !slu_flow_here(f);
    int rc = new_packing(q, f, err);
    if (!rc && slu_flow_here(f))
        rc = q->open(q->ctx, err);
    if (!rc)
        rc = q->read(q->ctx, f, err);
    if (slu_flow_here(f))
        return rc;
    for (size_t i = 0; !rc && i < q->packing->n_lane; i++)
        rc = put_lane(q->packing, i, f, err);
    return rc;
}

/* ---- reading a part's counts ---- */

/* The tables of part `number`; row is called for each row, with its lane in p. */
struct part {
    struct slu_packing *p;
    struct slu_flow *f;
    uint64_t number, last_tok;
    int (*row)(struct part *s, size_t lane, const uint64_t *row, struct slu_err *err);
    struct slu_table *lanes, *rows, *ranks;
    size_t at, end; /* plan: the lane's rows from earlier parts */
};

static int by_length(const void *a, const void *b)
{
    const struct slu_length_count *x = a, *y = b;

    return (x->len_tok > y->len_tok) - (x->len_tok < y->len_tok);
}

static int read_lane(struct part *s, const uint64_t *v, struct slu_err *err)
{
    struct slu_packing *p = s->p;
    struct slu_row r;
    uint32_t domain, i;
    int rc = slu_flow_domain(s->f, LANE, s->number, v[S_DOMAIN], &domain, err);

    if (!rc)
        rc = slu_pack_find_lane(p, domain, &i, err);
    if (rc)
        return rc;
    s->at = s->last_tok = 0;
    s->end = p->lane[i].n_row;
    for (uint64_t k = 0; k < v[S_ROWS] && !rc; k++) {
        rc = slu_flow_next(s->f, ROW, s->number, s->rows, &r, err);
        const uint64_t *w = r.p;
        if (!rc)
            rc = w[0] > s->last_tok && w[0] <= p->cfg.capacity && w[1]
                     ? s->row(s, i, w, err)
                     : slu_flow_damaged(s->f, ROW, s->number, err);
        s->last_tok = rc ? 0 : w[0];
    }
    p->lane[i].items += v[S_ITEMS];
    p->lane[i].cut += v[S_CUT];
    p->id_byte += v[S_IDS];
    p->longest_id = v[S_LONGEST_ID] > p->longest_id ? v[S_LONGEST_ID] : p->longest_id;
    if (s->end && p->lane[i].n_row > s->end)
        qsort(p->lane[i].row, p->lane[i].n_row, sizeof *p->lane[i].row, by_length);
    return rc;
}

static int read_part(struct part *s, struct slu_err *err)
{
    struct slu_row r;
    int rc = slu_flow_of_part(s->f, LANE, s->number, &s->lanes, err);

    if (!rc)
        rc = slu_flow_of_part(s->f, ROW, s->number, &s->rows, err);
    while (!rc) {
        rc = slu_table_next(s->lanes, &r, err);
        if (!rc)
            rc = read_lane(s, r.p, err);
    }
    return rc == SLU_EOF ? slu_flow_end(s->f, ROW, s->number, s->rows, err) : rc;
}

/* ---- plan ---- */

/* Adds a row to the lane's histogram; its ranks begin with the count before. */
static int add_row(struct part *s, size_t lane, const uint64_t *w, struct slu_err *err)
{
    struct slu_pack_lane *to = &s->p->lane[lane];
    uint64_t first = 0;
    int rc = SLU_OK;

    while (s->at < s->end && to->row[s->at].len_tok < w[0])
        s->at++;
    if (s->at < s->end && to->row[s->at].len_tok == w[0]) {
        first = to->row[s->at].count;
        if (__builtin_add_overflow(first, w[1], &to->row[s->at].count))
            rc = slu_fail(err, SLU_E_LIMIT, "more than 2^64 documents");
    } else if (s->p->lengths_byte < 2 * sizeof *to->row) {
        rc = slu_advise(
            err, SLU_ADVISE_MEMORY_OR_MIX,
            slu_fail(
                err, SLU_E_LIMIT,
                "the length histograms of %zu domains outgrow their share of memory",
                s->p->n_lane));
    } else {
        s->p->lengths_byte -= 2 * sizeof *to->row;
        rc = slu_grow(&to->row, &to->cap_row, to->n_row + 1, sizeof *to->row, err);
        if (!rc)
            to->row[to->n_row++] = (struct slu_length_count){w[0], w[1]};
    }
    return rc ? rc : slu_table_put(slu_flow_out(s->f, RANK), &first, err);
}

static int add_parts(struct slu_packing *p, struct slu_flow *f, struct slu_err *err)
{
    struct part s = {.p = p, .f = f, .row = add_row};
    int rc = SLU_OK;

    for (; s.number < slu_flow_parts(f) && !rc; s.number++) {
        rc = slu_table_section(slu_flow_out(f, RANK), s.number, err);
        if (!rc)
            rc = read_part(&s, err);
    }
    return rc;
}

static int put_plan(const struct slu_packing *p, struct slu_flow *f,
                    struct slu_err *err)
{
    const struct slu_u128 ids = {p->id_byte, p->longest_id};
    struct slu_slice piece;
    int rc = slu_planfile_bytes(p->cfg.save, &piece.p, &piece.n, err);

    return rc ? rc : slu_table_put_bytes(slu_flow_out(f, PLAN), ids, &piece, 1, err);
}

static int plan(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_pack_flow *q = ctx;
    const struct slu_plan_head head = slu_packing_head(&q->cfg);
    struct slu_planfile *own = NULL;
    int rc = SLU_OK;

    if (slu_flow_here(f)) {
        rc = slu_packing_plan(q->packing, err);
        if (!rc && q->cfg.reader)
            rc = slu_flow_read_late(f, err);
        if (rc || q->packing->ext)
            return rc;
        /* all items are in memory, or only a plan was requested */
        slu_flow_finished(f);
        return q->write(q->ctx, err);
    }
    if (!q->cfg.save)
        rc = slu_planfile_new(&own, &head, err);
    q->cfg.save = own ? own : q->cfg.save;
    q->cfg.plan_only = true;
    if (!rc)
        rc = new_packing(q, f, err);
    if (!rc)
        rc = add_parts(q->packing, f, err);
    if (!rc)
        rc = slu_packing_plan(q->packing, err);
    if (!rc)
        rc = put_plan(q->packing, f, err);
    slu_planfile_free(own);
    return rc;
}

/* ---- the beginning of scatter and gather ---- */

/* Adds a lane with its plan for each domain of the file. */
static int add_lanes(struct slu_packing *p, const struct slu_planfile *f,
                     struct slu_err *err)
{
    uint64_t plan_byte = 0;
    int rc = SLU_OK;

    for (size_t i = 0; i < slu_planfile_domains(f) && !rc; i++) {
        const char *name = slu_planfile_name(f, i);
        uint32_t number = SLU_NO_DOMAIN;
        if (name)
            rc =
                slu_names_domain_number(p->cfg.names, name, strlen(name), &number, err);
        if (!rc)
            rc = slu_pack_new_lane(p, number, err);
        if (!rc)
            rc = slu_planfile_plan(f, i, &p->lane[i].plan, err);
        if (rc)
            return rc;
        p->lane[i].sum = slu_pack_plan_sum(p->lane[i].plan);
        p->n_bin += p->lane[i].sum.bins;
        plan_byte += p->lane[i].sum.groups * sizeof(struct slu_pack_group);
        rc = slu_pack_check_plan(p, plan_byte, err);
    }
    return rc;
}

static int read_plan(struct slu_packing *p, struct slu_flow *f, struct slu_err *err)
{
    struct slu_planfile *plan = NULL;
    struct slu_table *t;
    struct slu_row r = {0};
    int rc = slu_flow_in(f, PLAN, &t, err);

    if (!rc)
        rc = slu_flow_next(f, PLAN, 0, t, &r, err);
    if (!rc)
        rc = slu_planfile_parse(&plan, r.p, r.n_byte, err);
    if (!rc)
        rc = add_lanes(p, plan, err);
    slu_planfile_free(plan);
    p->id_byte = r.key.lo;
    p->longest_id = r.key.hi;
    return rc ? rc : slu_flow_end(f, PLAN, 0, t, err);
}

/* Makes a packing with the plan's lanes and sites, and opens the output. */
static int load_plan(struct slu_pack_flow *q, struct slu_flow *f, struct slu_err *err)
{
    q->cfg.plan_only = true;
    int rc = new_packing(q, f, err);

    if (!rc)
        rc = slu_pack_ext_new(q->packing, err);
    if (!rc)
        rc = read_plan(q->packing, f, err);
    if (!rc)
        rc = slu_pack_ext_sites(q->packing, err);
    return rc ? rc : q->open(q->ctx, err);
}

/* ---- scatter ---- */

/* Sets the ranks that this part gives for a length of a lane. */
static int set_ranks(struct part *s, size_t lane, const uint64_t *w,
                     struct slu_err *err)
{
    const struct slu_pack_ext *x = s->p->ext;
    const struct slu_pack_plan *plan = lane < x->n_site ? s->p->lane[lane].plan : NULL;
    const size_t k = plan ? slu_pack_find(plan, w[0]) : 0;
    struct slu_row rank;
    int rc = slu_flow_next(s->f, RANK, 0, s->ranks, &rank, err);

    if (rc)
        return rc;
    const uint64_t first = *(const uint64_t *)rank.p;
    if (!plan || k == plan->n_length ||
        __builtin_add_overflow(first, w[1], &x->site[lane].end[k]))
        return slu_flow_damaged(s->f, PLAN, 0, err);
    x->site[lane].rank[k] = first;
    s->p->lane[lane].n_item += w[1];
    return SLU_OK;
}

static int load_ranks(struct slu_packing *p, struct slu_flow *f, struct slu_err *err)
{
    struct part s = {.p = p, .f = f, .number = slu_flow_part(f), .row = set_ranks};
    int rc = slu_flow_in(f, RANK, &s.ranks, err);

    if (!rc)
        rc = read_part(&s, err);
    return rc ? rc : slu_flow_end(f, RANK, 0, s.ranks, err);
}

/* Counts an item whose ids are at tok. */
static void account_item(struct slu_packing *p, const struct slu_pack_wait *it,
                         const void *tok)
{
    const struct slu_seg *g = &it->seg;

    slu_count_add(
        &p->flow->work,
        (struct slu_count){g->offset == 0, 1, g->len_tok,
                           p->cfg.masks ? slu_mask_count(tok, g->len_tok) : 0});
}

enum { TOK_PIECE = 3 }; /* of the pieces of an item, if it is not in one piece */

/* Writes an item, made of all the pieces, under the key of its place in the plan. */
static int place(struct slu_packing *p, const struct slu_pack_wait *it,
                 uint64_t position, const struct slu_slice *piece, unsigned n_piece,
                 struct slu_err *err)
{
    struct slu_pack_flow *q = p->flow;
    const struct slu_pack_ext *x = p->ext;
    uint64_t bin, at;

    if (it->lane >= x->n_site)
        return slu_flow_other_stream(q->flow, err);
    const struct slu_pack_plan *plan = p->lane[it->lane].plan;
    struct slu_pack_site *site = &x->site[it->lane];
    if (plan) {
        size_t i = slu_pack_find(plan, it->seg.len_tok);
        if (i == plan->n_length || site->rank[i] >= site->end[i])
            return slu_flow_other_stream(q->flow, err);
        slu_pack_place(plan, i, site->rank[i]++, &bin, &at);
    } else {
        (void)slu_pack_chunk(position, it->seg.len_tok, p->cfg.capacity, &bin, &at);
    }
    bin += site->first_bin;
    account_item(p, it, n_piece > 1 ? piece[TOK_PIECE].p : slu_pack_wait_tok(it));
    return slu_table_put_bytes(slu_flow_out(q->flow, ITEM),
                               slu_pack_key(p->n_bin, bin, at), piece, n_piece, err);
}

int slu_pack_flow_put(struct slu_packing *p, const struct slu_pack_item *from,
                      struct slu_err *err)
{
    static const uint64_t zero;
    const struct slu_seg *g = &from->seg;
    struct slu_pack_wait it = {*g, from->lane};
    const size_t n_tok = g->len_tok * p->cfg.tok_bytes;
    const struct slu_slice piece[] = {
        {&it, sizeof it},
        {from->id, slu_seg_str(g)},
        {&zero, slu_pack_pad8(slu_seg_str(g)) - slu_seg_str(g)},
        {from->tok, n_tok},
        {&zero, slu_pack_pad8(n_tok) - n_tok},
    };

    it.seg.id_off = 0;
    if (!p->flow)
        return slu_advise(
            err, SLU_ADVISE_MEMORY,
            slu_fail(
                err, SLU_E_LIMIT,
                "the sequences that wait for a bin take more than half of memory"));
    if (p->ext->site)
        return place(p, &it, from->position, piece, 5, err);
    return slu_table_put_bytes(slu_flow_out(p->flow->flow, WAIT),
                               (struct slu_u128){from->position, 0}, piece, 5, err);
}

/* Returns the range of a bin: the last one whose first_bin is not after it. */
static uint64_t range_of(const void *ctx, struct slu_u128 key, const void *bytes,
                         size_t n)
{
    const struct slu_pack_flow *q = ctx;
    const uint64_t n_bin = q->packing->n_bin, bin = slu_pack_bin_of(n_bin, key);

    (void)bytes, (void)n;
    return (uint64_t)((((unsigned __int128)bin + 1) * slu_flow_ranges(q->flow) - 1) /
                      n_bin);
}

/* Places the items that wait in this process; it gives all ranks. */
static int place_waiting(struct slu_packing *p, struct slu_flow *f, struct slu_err *err)
{
    struct slu_table *t;
    struct slu_row r;
    int rc = slu_pack_ext_sites(p, err);

    for (size_t i = 0; i < p->n_lane && !rc && p->lane[i].plan; i++)
        memset(p->ext->site[i].end, 0xff, p->lane[i].plan->n_length * sizeof(uint64_t));
    slu_pack_timing(p, "sort", NULL);
    if (!rc)
        rc = slu_flow_in(f, WAIT, &t, err);
    while (!rc) {
        rc = slu_table_next(t, &r, err);
        if (!rc)
            rc = place(p, r.p, r.key.lo, &(struct slu_slice){r.p, r.n_byte}, 1, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int scatter(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_pack_flow *q = ctx;
    uint64_t items = 0;

    slu_flow_cut(f, ITEM, range_of);
    if (slu_flow_here(f))
        return place_waiting(q->packing, f, err);
    int rc = load_plan(q, f, err);
    if (!rc)
        rc = load_ranks(q->packing, f, err);
    for (size_t i = 0; !rc && i < q->packing->n_lane; i++)
        items += q->packing->lane[i].n_item;
    if (!rc)
        rc = q->read(q->ctx, f, err);
    return rc || q->work.sequences == items ? rc : slu_flow_other_stream(f, err);
}

/* ---- gather ---- */

static uint64_t first_bin(uint64_t n_bin, uint64_t j, uint64_t of)
{
    return (uint64_t)((unsigned __int128)n_bin * j / of);
}

/* Whether the row is an item of this range. Checksums are verified too, so a wrong row
 * is a bug or forged. */
static bool is_item(const struct slu_packing *p, const struct slu_row *r)
{
    const struct slu_pack_ext *x = p->ext;
    const struct slu_pack_wait *it = r->p;
    uint64_t bin = slu_pack_bin_of(p->n_bin, r->key);

    if (r->n_byte < sizeof *it || bin < x->next_bin || bin >= x->end_bin ||
        it->lane >= p->n_lane ||
        slu_u128_cmp(r->key, slu_pack_key(p->n_bin, bin, r->key.lo)))
        return false;
    uint64_t first = x->site[it->lane].first_bin;
    return bin >= first && bin - first < p->lane[it->lane].sum.bins &&
           it->seg.len_tok <= p->cfg.capacity &&
           r->n_byte == sizeof *it + slu_pack_pad8(slu_seg_str(&it->seg)) +
                            slu_pack_pad8(it->seg.len_tok * p->cfg.tok_bytes);
}

int slu_pack_flow_next(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_flow *q = p->flow;
    struct slu_pack_ext *x = p->ext;
    struct slu_row r;
    int rc = slu_table_next(x->items, &r, err);

    x->item = NULL;
    if (rc)
        return rc == SLU_EOF ? SLU_OK : rc;
    if (!slu_flow_here(q->flow) && !is_item(p, &r))
        return slu_flow_damaged(q->flow, ITEM, r.part, err);
    x->key = r.key;
    x->item = r.p;
    account_item(p, x->item, slu_pack_wait_tok(x->item));
    return slu_flow_domain(q->flow, ITEM, r.part, x->item->seg.domain, &x->domain, err);
}

static int lacks(struct slu_err *err)
{
    return slu_fail(err, SLU_E_MISMATCH,
                    "the scatter files lack sequences that the plan has; remove them "
                    "and run stage scatter again");
}

int slu_pack_flow_check(struct slu_packing *p, struct slu_u128 key, uint64_t n,
                        struct slu_err *err)
{
    struct slu_pack_ext *x = p->ext;
    bool whole = slu_pack_bin_of(p->n_bin, key) == x->next_bin++ &&
                 (p->cuts || n == x->interval[x->at_interval].items);

    return whole ? SLU_OK : lacks(err);
}

static int gather(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_pack_flow *q = ctx;
    const uint64_t j = slu_flow_part(f), of = slu_flow_ranges(f);
    int rc = slu_flow_here(f) ? SLU_OK : load_plan(q, f, err);

    if (rc)
        return rc;
    struct slu_pack_ext *x = q->packing->ext;
    x->next_bin = first_bin(q->packing->n_bin, j, of);
    x->end_bin = first_bin(q->packing->n_bin, j + 1, of);
    rc = slu_flow_in(f, ITEM, &x->items, err);
    if (!rc)
        rc = slu_pack_flow_next(q->packing, err);
    slu_pack_timing(q->packing, "write", NULL);
    if (!rc)
        rc = q->write(q->ctx, err);
    return rc || x->next_bin == x->end_bin ? rc : lacks(err);
}

/* ---- the stages ---- */

static const struct slu_stage stages[] = {
    {"count", SLU_STAGE_READS | SLU_STAGE_NAMES, NULL, 0,
     SLU_STAGE_OUT(LANE, ROW, WAIT), 3, 56, count},
    {"plan", SLU_STAGE_ONE, SLU_STAGE_IN({LANE, SLU_READ_ALL}, {ROW, SLU_READ_ALL}), 2,
     SLU_STAGE_OUT(RANK, PLAN), 2, 24, plan},
    {"scatter", SLU_STAGE_READS | SLU_STAGE_WRITES | SLU_STAGE_NAMES,
     SLU_STAGE_IN({PLAN, SLU_READ_ALL}, {RANK, SLU_READ_RANGE}, {LANE, SLU_READ_PART},
                  {ROW, SLU_READ_PART}, {WAIT, SLU_READ_PART}),
     5, SLU_STAGE_OUT(ITEM), 1, 12, scatter},
    {"gather", SLU_STAGE_RANGES | SLU_STAGE_WRITES,
     SLU_STAGE_IN({PLAN, SLU_READ_ALL}, {ITEM, SLU_READ_RANGE}), 2, NULL, 0, 13,
     gather},
};

const struct slu_flow_spec slu_pack_flow_spec = {
    "pack", tables, stages, TABLES, sizeof stages / sizeof *stages, facts};
