#include "lib/pack/pack_flow.h"

#include <stdlib.h>
#include <string.h>

#include "lib/pack/packing_private.h"

enum { SLOT, ROW, RANK, PLAN, ITEM, TABLES };
enum { S_DOMAIN, S_ROWS, S_ITEMS, S_TOK, S_CUT, S_IDS, S_LONGEST_ID, SLOT_WORDS };

static const struct slu_table_spec tables[TABLES] = {
    /* Bytes of ids, all and the longest, are those of all slots, in the first. */
    [SLOT] = {"slot", SLU_LIST, SLU_CUT_NO, SLOT_WORDS, 1},
    [ROW] = {"row", SLU_LIST, SLU_CUT_NO, 2, 1},      /* length, count */
    [RANK] = {"rank", SLU_LIST, SLU_CUT_PARTS, 1, 1}, /* of each row the first */
    [PLAN] = {"plan", SLU_LIST, SLU_CUT_NO, 0, 12}, /* formats/PLAN.md; bytes of ids */
    [ITEM] = {"item", SLU_ROWS, SLU_CUT_RANGES, 0, 31}, /* slu_pack_wait, id, tokens */
};

/* The next row of a list, which must be there. */
static int next_of(struct slu_flow *f, unsigned table, uint64_t part,
                   struct slu_table *t, struct slu_row *row, struct slu_err *err)
{
    int rc = slu_table_next(t, row, err);

    return rc == SLU_EOF ? slu_flow_damaged(f, table, part, err) : rc;
}

/* And this is its end. */
static int end_of(struct slu_flow *f, unsigned table, uint64_t part,
                  struct slu_table *t, struct slu_err *err)
{
    struct slu_row row;
    int rc = slu_table_next(t, &row, err);

    if (!rc)
        return slu_flow_damaged(f, table, part, err);
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* ---- count ---- */

static int words(const void *ctx, struct slu_buf *t, struct slu_err *err)
{
    const struct slu_pack_flow *q = ctx;
    const struct slu_packing_cfg *cfg = &q->cfg;
    const bool multi = cfg->method == SLU_PACK_MULTI;
    int rc = slu_buf_printf(t, err, " pack=%s", slu_pack_method_name[cfg->method]);

    if (!multi && !rc)
        rc = slu_buf_printf(t, err, " bins=%llu", (unsigned long long)cfg->capacity);
    for (size_t i = 0; multi && i < cfg->n_bin_tok && !rc; i++)
        rc = slu_buf_printf(t, err, "%s%llu",
                            i ? "," : " bins=", (unsigned long long)cfg->bin_tok[i]);
    if (multi && !rc)
        rc = slu_buf_printf(t, err, " padding-threshold=%.17g", cfg->padding_threshold);
    return rc ? rc
              : slu_buf_printf(
                    t, err, " max-segments=%llu mix-domains=%s long=%s fill=%s",
                    (unsigned long long)cfg->max_items, cfg->mix_domains ? "yes" : "no",
                    q->too_long, cfg->drop ? "drop" : "pad");
}

static int put_slot(struct slu_packing *p, size_t i, struct slu_flow *f,
                    struct slu_err *err)
{
    const struct slu_pack_slot *s = &p->slot[i];
    struct slu_length_count *row = NULL;
    size_t n = 0;
    int rc = slu_pack_rows(p, i, &row, &n, err);
    const uint64_t v[SLOT_WORDS] = {s->domain,
                                    n,
                                    s->items,
                                    s->tok,
                                    s->cut,
                                    i ? 0 : p->id_byte,
                                    i ? 0 : p->longest_id};

    if (!rc)
        rc = slu_table_put(slu_flow_out(f, SLOT), v, err);
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

    q->cfg.plan_only = true;
    int rc = slu_packing_new(&q->packing, &q->cfg, err);
    if (!rc)
        rc = q->read(q->ctx, f, err);
    for (size_t i = 0; !rc && i < q->packing->n_slot; i++)
        rc = put_slot(q->packing, i, f, err);
    return rc;
}

/* ---- plan ---- */

/* How many there were so far: of slot and length, which are one number. */
struct plan {
    struct slu_packing *p;
    struct slu_flow *f;
    struct slu_map total;
};

#define LENGTH_BITS 27 /* SLU_MAX_CAPACITY is a length */

/* A row of a part: its ranks begin with how many there were before. */
static int add_row(struct plan *s, uint64_t slot, const uint64_t *row,
                   struct slu_err *err)
{
    const uint64_t key = slot << LENGTH_BITS | row[0];
    uint64_t first = 0, sum;

    (void)slu_map_get(&s->total, key, &first);
    if (__builtin_add_overflow(first, row[1], &sum))
        return slu_fail(err, SLU_E_LIMIT, "more than 2^64 documents");
    int rc = slu_map_set(&s->total, key, sum, err);
    if (!rc && s->total.cap * sizeof *s->total.slot > s->p->cfg.budget_byte / 4)
        rc = slu_fail(err, SLU_E_LIMIT,
                      "the length histograms of %zu domains outgrow their share of "
                      "memory; give -M more, or --mix-domains",
                      s->p->n_slot);
    return rc ? rc : slu_table_put(slu_flow_out(s->f, RANK), &first, err);
}

static int add_slot(struct plan *s, uint64_t part, const uint64_t *v,
                    struct slu_table *rows, struct slu_err *err)
{
    struct slu_packing *p = s->p;
    struct slu_row r;
    uint32_t domain, i;
    int rc = slu_flow_domain(s->f, SLOT, part, v[S_DOMAIN], &domain, err);

    if (!rc)
        rc = slu_pack_find_slot(p, domain, &i, err);
    for (uint64_t k = 0; k < v[S_ROWS] && !rc; k++) {
        rc = next_of(s->f, ROW, part, rows, &r, err);
        const uint64_t *w = r.p;
        if (!rc)
            rc = w[0] && w[0] <= p->cfg.capacity && w[1]
                     ? add_row(s, i, w, err)
                     : slu_flow_damaged(s->f, ROW, part, err);
    }
    if (rc)
        return rc;
    p->slot[i].items += v[S_ITEMS];
    p->slot[i].tok += v[S_TOK];
    p->slot[i].cut += v[S_CUT];
    p->id_byte += v[S_IDS];
    if (v[S_LONGEST_ID] > p->longest_id)
        p->longest_id = v[S_LONGEST_ID];
    return SLU_OK;
}

static int add_part(struct plan *s, uint64_t part, struct slu_err *err)
{
    struct slu_table *slots, *rows = NULL;
    struct slu_row r;
    int rc = slu_flow_of_part(s->f, SLOT, part, &slots, err);

    if (!rc)
        rc = slu_flow_of_part(s->f, ROW, part, &rows, err);
    if (!rc)
        rc = slu_table_section(slu_flow_out(s->f, RANK), part, err);
    while (!rc) {
        rc = slu_table_next(slots, &r, err);
        if (!rc)
            rc = add_slot(s, part, r.p, rows, err);
    }
    return rc == SLU_EOF ? end_of(s->f, ROW, part, rows, err) : rc;
}

static int by_key(const void *a, const void *b)
{
    const struct slu_map_slot *x = a, *y = b;

    if (x->used != y->used)
        return x->used ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* The totals to the slots: their order is that of slots, then lengths. */
static int give_rows(struct plan *s, struct slu_err *err)
{
    struct slu_map *m = &s->total;
    size_t at = 0;

    if (m->cap)
        qsort(m->slot, m->cap, sizeof *m->slot, by_key);
    for (size_t i = 0; i < s->p->n_slot; i++) {
        struct slu_pack_slot *to = &s->p->slot[i];
        const size_t first = at;
        while (at < m->n && m->slot[at].key >> LENGTH_BITS == i)
            at++;
        to->row = malloc((at - first + 1) * sizeof *to->row);
        if (!to->row)
            return slu_fail_nomem(err, (at - first) * sizeof *to->row);
        for (; to->n_row < at - first; to->n_row++) {
            const struct slu_map_slot *of = &m->slot[first + to->n_row];
            to->row[to->n_row] = (struct slu_length_count){
                of->key & ((UINT64_C(1) << LENGTH_BITS) - 1), of->value};
        }
    }
    slu_map_release(m);
    return SLU_OK;
}

static int put_plan(const struct plan *s, struct slu_err *err)
{
    static const struct slu_u128 none;
    struct slu_table *t = slu_flow_out(s->f, PLAN);
    const uint64_t ids[] = {s->p->id_byte, s->p->longest_id};
    struct slu_piece piece = {NULL, 0}, last = {ids, sizeof ids};
    int rc = slu_planfile_bytes(s->p->cfg.save, &piece.p, &piece.n, err);

    if (!rc)
        rc = slu_table_put_bytes(t, none, &piece, 1, err);
    return rc ? rc : slu_table_put_bytes(t, none, &last, 1, err);
}

static int plan(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_pack_flow *q = ctx;
    struct plan s = {.f = f};

    q->cfg.plan_only = true;
    int rc = slu_packing_new(&q->packing, &q->cfg, err);
    s.p = q->packing;
    for (uint64_t i = 0; i < slu_flow_parts(f) && !rc; i++)
        rc = add_part(&s, i, err);
    if (!rc)
        rc = give_rows(&s, err);
    if (!rc)
        rc = slu_packing_plan(q->packing, err);
    slu_map_release(&s.total);
    return rc ? rc : put_plan(&s, err);
}

/* ---- how scatter and gather begin ---- */

/* A slot for each domain of the plan, with its plan. */
static int add_slots(struct slu_packing *p, const struct slu_planfile *f,
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
            rc = slu_pack_new_slot(p, number, err);
        if (!rc)
            rc = slu_planfile_plan(f, i, &p->slot[i].plan, err);
        if (rc)
            return rc;
        p->slot[i].sum = slu_pack_plan_sum(p->slot[i].plan);
        p->n_bin += p->slot[i].sum.bins;
        plan_byte += p->slot[i].sum.groups * sizeof(struct slu_pack_group);
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
        rc = next_of(f, PLAN, 0, t, &r, err);
    if (!rc)
        rc = slu_planfile_parse(&plan, r.p, r.n_byte, err);
    if (!rc)
        rc = add_slots(p, plan, err);
    slu_planfile_free(plan);
    if (!rc)
        rc = next_of(f, PLAN, 0, t, &r, err);
    if (!rc && r.n_byte != 16)
        rc = slu_flow_damaged(f, PLAN, 0, err);
    if (rc)
        return rc;
    const uint64_t *ids = r.p;
    p->id_byte = ids[0];
    p->longest_id = ids[1];
    return end_of(f, PLAN, 0, t, err);
}

/* A packing without items that has the plan's slots, their plans and sites. */
static int load_plan(struct slu_pack_flow *q, struct slu_flow *f, struct slu_err *err)
{
    q->cfg.plan_only = true; /* nothing waits in memory */
    int rc = slu_packing_new(&q->packing, &q->cfg, err);
    if (rc)
        return rc;
    struct slu_packing *p = q->packing;
    p->cfg.plan_only = false;
    q->n_range = slu_flow_ranges(f);
    rc = slu_pack_ext_new(&p->ext, &p->cfg, false, err);
    if (rc)
        return rc;
    p->ext->flow = f;
    p->ext->work = &q->work;
    rc = read_plan(p, f, err);
    return rc ? rc : slu_pack_ext_sites(p, err);
}

/* ---- scatter ---- */

static bool has_length(const struct slu_pack_plan *plan, uint64_t len_tok, size_t *k)
{
    *k = plan->n_length ? slu_pack_find(plan, len_tok) : 0;
    return *k < plan->n_length && plan->length[*k].len_tok == len_tok;
}

/* The ranks that this part may give of a slot's lengths. */
static int set_ranks(struct slu_packing *p, const uint64_t *v, struct slu_table *rows,
                     struct slu_table *ranks, struct slu_err *err)
{
    struct slu_flow *f = p->ext->flow;
    const uint64_t part = slu_flow_part(f);
    struct slu_row row, rank;
    uint64_t slot = 0;
    uint32_t domain;
    size_t k;
    int rc = slu_flow_domain(f, SLOT, part, v[S_DOMAIN], &domain, err);

    if (!rc && !slu_map_get(&p->slot_of, domain, &slot))
        rc = slu_flow_damaged(f, PLAN, 0, err);
    for (uint64_t i = 0; i < v[S_ROWS] && !rc; i++) {
        struct slu_pack_site *site = &p->ext->site[slot];
        rc = next_of(f, ROW, part, rows, &row, err);
        if (!rc)
            rc = next_of(f, RANK, 0, ranks, &rank, err);
        if (rc)
            break;
        const uint64_t *w = row.p, first = *(const uint64_t *)rank.p;
        if (!has_length(p->slot[slot].plan, w[0], &k) ||
            __builtin_add_overflow(first, w[1], &site->end[k]))
            return slu_flow_damaged(f, PLAN, 0, err);
        site->rank[k] = first;
        p->ext->n_counted += w[1];
    }
    return rc;
}

static int load_ranks(struct slu_packing *p, struct slu_err *err)
{
    struct slu_flow *f = p->ext->flow;
    struct slu_table *slots, *rows = NULL, *ranks = NULL;
    struct slu_row r;
    int rc = slu_flow_in(f, SLOT, &slots, err);

    if (!rc)
        rc = slu_flow_in(f, ROW, &rows, err);
    if (!rc)
        rc = slu_flow_in(f, RANK, &ranks, err);
    while (!rc) {
        rc = slu_table_next(slots, &r, err);
        if (!rc)
            rc = set_ranks(p, r.p, rows, ranks, err);
    }
    if (rc == SLU_EOF)
        rc = end_of(f, ROW, slu_flow_part(f), rows, err);
    return rc ? rc : end_of(f, RANK, 0, ranks, err);
}

int slu_pack_flow_put(struct slu_packing *p, const struct slu_pack_item *from,
                      struct slu_err *err)
{
    static const uint64_t zero;
    const struct slu_pack_ext *x = p->ext;
    const struct slu_seg *g = &from->seg;
    const struct slu_pack_wait it = {g->source, g->document, g->offset,  g->len_tok,
                                     0,         g->domain,   from->slot, g->id_len,
                                     0,         g->score};
    struct slu_pack_site *site = &x->site[from->slot];
    uint64_t bin, place;
    size_t i;
    if (from->slot >= x->n_site ||
        !has_length(p->slot[from->slot].plan, g->len_tok, &i) ||
        site->rank[i] >= site->end[i])
        return slu_flow_other_stream(x->flow, err);
    slu_pack_place(p->slot[from->slot].plan, i, site->rank[i]++, &bin, &place);
    size_t n_tok = g->len_tok * p->cfg.tok_bytes;
    const struct slu_piece piece[] = {
        {&it, sizeof it},
        {from->id, g->id_len},
        {&zero, slu_pack_pad8(g->id_len) - g->id_len},
        {from->tok, n_tok},
        {&zero, slu_pack_pad8(n_tok) - n_tok},
    };
    slu_count_add(x->work, (struct slu_count){g->offset == 0, 1, g->len_tok});
    return slu_table_put_bytes(slu_flow_out(x->flow, ITEM),
                               slu_pack_key(p->n_bin, site->first_bin + bin, place),
                               piece, 5, err);
}

/* The range of a bin: that of slu_pack_range_bin. */
static uint64_t range_of(const void *ctx, struct slu_u128 key, const void *bytes,
                         size_t n)
{
    const struct slu_pack_flow *q = ctx;
    const uint64_t n_bin = q->packing->n_bin, bin = slu_pack_bin_of(n_bin, key);

    (void)bytes, (void)n;
    return (uint64_t)((((unsigned __int128)bin + 1) * q->n_range - 1) / n_bin);
}

static int scatter(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_pack_flow *q = ctx;
    int rc = load_plan(q, f, err);

    if (!rc)
        rc = load_ranks(q->packing, err);
    slu_flow_cut(f, ITEM, range_of);
    if (!rc)
        rc = q->read(q->ctx, f, err);
    if (!rc && q->work.sequences != q->packing->ext->n_counted)
        rc = slu_flow_other_stream(f, err);
    return rc;
}

/* ---- gather ---- */

static uint64_t first_bin(uint64_t n_bin, uint64_t j, uint64_t of)
{
    return (uint64_t)((unsigned __int128)n_bin * j / of);
}

/* The row is an item of this range. What is wrong here is a bug or forged: checksums
 * are looked at too. */
static bool is_item(const struct slu_packing *p, const struct slu_row *r)
{
    const struct slu_pack_ext *x = p->ext;
    const struct slu_pack_wait *it = r->p;
    uint64_t bin = slu_pack_bin_of(p->n_bin, r->key);

    if (r->n_byte < sizeof *it || bin < x->next_bin || bin >= x->end_bin ||
        it->slot >= p->n_slot ||
        slu_u128_cmp(r->key, slu_pack_key(p->n_bin, bin, r->key.lo)))
        return false;
    uint64_t first = x->site[it->slot].first_bin;
    return bin >= first && bin - first < p->slot[it->slot].sum.bins &&
           it->len_tok <= p->cfg.capacity &&
           r->n_byte == sizeof *it + slu_pack_pad8(it->id_len) +
                            slu_pack_pad8(it->len_tok * p->cfg.tok_bytes);
}

int slu_pack_flow_next(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_ext *x = p->ext;
    struct slu_row r;
    int rc = slu_table_next(x->items, &r, err);

    x->item = NULL;
    if (rc)
        return rc == SLU_EOF ? SLU_OK : rc;
    if (!is_item(p, &r))
        return slu_flow_damaged(x->flow, ITEM, r.part, err);
    x->key = r.key;
    x->item = r.p;
    slu_count_add(x->work,
                  (struct slu_count){x->item->offset == 0, 1, x->item->len_tok});
    return slu_flow_domain(x->flow, ITEM, r.part, x->item->domain, &x->domain, err);
}

static int lacks(struct slu_err *err)
{
    return slu_fail(err, SLU_E_MISMATCH,
                    "the scatter files lack pieces that the plan has; remove them and "
                    "run --phase scatter again");
}

int slu_pack_flow_check(struct slu_packing *p, struct slu_u128 key, uint64_t n,
                        struct slu_err *err)
{
    struct slu_pack_ext *x = p->ext;
    bool whole = slu_pack_bin_of(p->n_bin, key) == x->next_bin++ &&
                 n == x->interval[x->at_interval].items;

    return whole ? SLU_OK : lacks(err);
}

static int gather(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_pack_flow *q = ctx;
    const uint64_t j = slu_flow_part(f), of = slu_flow_ranges(f);
    int rc = load_plan(q, f, err);

    if (rc)
        return rc;
    struct slu_pack_ext *x = q->packing->ext;
    x->next_bin = first_bin(q->packing->n_bin, j, of);
    x->end_bin = first_bin(q->packing->n_bin, j + 1, of);
    rc = slu_flow_in(f, ITEM, &x->items, err);
    if (!rc)
        rc = slu_pack_flow_next(q->packing, err);
    slu_pack_phase(q->packing, "write", NULL);
    if (!rc)
        rc = q->write(q->ctx, err);
    return rc || x->next_bin == x->end_bin ? rc : lacks(err);
}

/* ---- all of them ---- */

#define LIST(...)                                                                      \
    (const struct slu_stage_input[])                                                   \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }
#define OUT(...)                                                                       \
    (const unsigned[])                                                                 \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }

static const struct slu_stage stages[] = {
    {"count", SLU_STAGE_READS | SLU_STAGE_NAMES, NULL, 0, OUT(SLOT, ROW), 2, 56, words,
     count},
    {"plan", SLU_STAGE_ONE, LIST({SLOT, SLU_ALL}, {ROW, SLU_ALL}), 2, OUT(RANK, PLAN),
     2, 24, NULL, plan},
    {"scatter", SLU_STAGE_READS | SLU_STAGE_WRITES | SLU_STAGE_NAMES,
     LIST({PLAN, SLU_ALL}, {RANK, SLU_MINE}, {SLOT, SLU_OWN}, {ROW, SLU_OWN}), 4,
     OUT(ITEM), 1, 16, NULL, scatter},
    {"gather", SLU_STAGE_RANGES | SLU_STAGE_WRITES,
     LIST({PLAN, SLU_ALL}, {ITEM, SLU_MINE}), 2, NULL, 0, 16, NULL, gather},
};

const struct slu_flow_spec slu_pack_flow_spec = {"pack", tables, stages, TABLES,
                                                 sizeof stages / sizeof *stages};
