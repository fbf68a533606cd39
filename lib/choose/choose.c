#include "choose.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/number.h"

typedef unsigned __int128 u128;

enum { ROW, TOTAL, DROP, TABLES };
/* Words of ROW, which are sorted by them: the group and the key, or the key and 0 if
 * there is one group, so that the first word tells many rows apart. */
enum { GROUP, KEY, SOURCE, DOCUMENT, OFFSET, CONTENT, TOKENS, ORDINAL, ROW_WORDS };
/* ORDINAL has the part above the ordinal in the part, so that the order does not depend
 * on how many parts there are. */
enum { PART_SHIFT = 48 };
/* Words of TOTAL: the sums of one part. */
enum { T_GROUP, T_DOCUMENTS, T_TOKENS, TOTAL_WORDS };

/* Groups whose sums wait in memory. Those of others are rows of TOTAL at once, several
 * for a group. */
enum { SUMS = 8192 };

struct sums {
    uint64_t group, documents, tokens;
};

struct slu_choose {
    struct slu_choose_cfg cfg;
    struct slu_criteria *criteria;
    struct slu_names *names;
    struct slu_property per, by; /* of the best, if it has them */
    struct slu_property_memo memo;
    struct slu_choose_result result;
    struct slu_flow *flow; /* the current stage, and the table that it puts or reads */
    struct slu_table *table;
    bool log;         /* one process: sequences wait in the log */
    uint64_t ordinal; /* of the next sequence */
    struct sums *sum; /* rank: SUMS groups, each at a place that its hash tells */
    uint64_t drop;    /* filter: the next ordinal beyond the best; UINT64_MAX: none */
    uint64_t drop_part;
};

int slu_choose_new(struct slu_choose **out, const struct slu_choose_cfg *cfg,
                   struct slu_err *err)
{
    struct slu_choose *x = calloc(1, sizeof *x);

    *out = x;
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    return SLU_OK;
}

void slu_choose_free(struct slu_choose *x)
{
    if (!x)
        return;
    slu_criteria_free(x->criteria);
    free(x->sum);
    free(x);
}

const struct slu_choose_result *slu_choose_result(const struct slu_choose *x)
{
    return &x->result;
}

static bool needs_scores(const struct slu_choose *x)
{
    return x->cfg.criteria->n_score || x->by.at == SLU_PROPERTY_SCORE;
}

/* Finds the properties by which the best are chosen. */
static int find_properties(struct slu_choose *x, const struct slu_header *h,
                           struct slu_err *err)
{
    const struct slu_top *top = x->cfg.top;

    if (top && top->per && slu_property_find(&x->per, top->per, h, err))
        return slu_err_at(err, "--per");
    if (top && top->by && slu_property_find(&x->by, top->by, h, err))
        return slu_err_at(err, "--by");
    return !top || !top->by || slu_meta_width(x->by.type)
               ? SLU_OK
               : slu_fail(err, SLU_E_MISMATCH,
                          "--by %s: has the type %s; the best are told by numbers",
                          top->by, slu_meta_type_name(x->by.type));
}

int slu_choose_begin(void *ctx, const struct slu_header *h, struct slu_names *names,
                     struct slu_err *err)
{
    struct slu_choose *x = ctx;

    x->names = names;
    x->memo = (struct slu_property_memo){0};
    slu_criteria_free(x->criteria);
    x->criteria = NULL;
    if (h->no_tokens)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has segment rows only, and no tokens to choose");
    if (!h->vocab_size) /* a stage that reads no stream */
        return slu_criteria_new(&x->criteria, x->cfg.criteria, h, names, err);
    int rc = find_properties(x, h, err);
    if (rc)
        return rc;
    if (needs_scores(x) && !h->has[SLU_SCORE])
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has no scores to choose by; tokenize takes them "
                        "from a field of the records");
    return slu_criteria_new(&x->criteria, x->cfg.criteria, h, names, err);
}

/* ---- sequences ---- */

/* Takes the sequence, or counts it under the reason. */
static void account(struct slu_choose *x, const struct slu_batch *b,
                    const struct slu_seq *q, enum slu_why why)
{
    slu_count_add(&x->result.dropped[why], slu_seq_count(b, q));
}

static int next_drop(struct slu_choose *x, uint64_t least, struct slu_err *err)
{
    struct slu_row row;
    int rc = slu_table_next(x->table, &row, err);

    x->drop = UINT64_MAX;
    if (rc)
        return rc == SLU_EOF ? SLU_OK : rc;
    x->drop = *(const uint64_t *)row.p;
    x->drop_part = row.part;
    return x->drop < least ? slu_flow_damaged(x->flow, DROP, row.part, err) : SLU_OK;
}

/* Emits the sequences that meet the criteria and are not beyond the best. */
static int pass(struct slu_choose *x, struct slu_batch *b, struct slu_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n_seq; i++, x->ordinal++) {
        const struct slu_seq q = b->seq[i];
        enum slu_why why;
        int rc = slu_criteria_ask(x->criteria, b, &q, &why, err);
        if (!rc && x->table && x->ordinal == x->drop) {
            if (why)
                return slu_flow_damaged(x->flow, DROP, x->drop_part, err);
            why = SLU_WHY_TOP;
            rc = next_drop(x, x->ordinal + 1, err);
        }
        if (rc)
            return rc;
        if (why)
            account(x, b, &q, why);
        else
            b->seq[n++] = q;
    }
    slu_batch_keep(b, n);
    return n ? x->cfg.emit(x->cfg.ctx, b, err) : SLU_OK;
}

/* ---- rank ---- */

/* The longest first. The place of the top bit, then the bits below it: lengths differ in
 * the first bits of the key, by which rows are divided. Lengths are below 2^57. */
static uint64_t length_key(uint64_t n_tok)
{
    const unsigned top = n_tok ? 63 - (unsigned)__builtin_clzll(n_tok) : 0;

    return ~((uint64_t)top << 58 | (n_tok << (63 - top) << 1) >> 6);
}

struct marks { /* of one sequence */
    uint64_t key, source, content;
};

struct side { /* of a batch */
    struct slu_buf marks;
    struct slu_buf seg;   /* the segments of a sequence, with hashes for sources */
    uint64_t source, sum; /* a source, and the hash of its name */
};

/* XXH3-64 of the source's name: its number depends on the order of joined streams. */
static uint64_t source_sum(struct slu_choose *x, struct side *s, uint64_t source)
{
    if (source == SLU_PADDING)
        return source;
    if (source != s->source) {
        const char *name = slu_names_source(x->names, source);
        s->source = source;
        s->sum = name ? slu_hash64(name, strlen(name)) : source;
    }
    return s->sum;
}

static int hash_key(struct slu_choose *x, struct side *s, const struct slu_batch *b,
                    const struct slu_seq *q, uint64_t *key, struct slu_err *err)
{
    static const char what[16] = "sluice choose";
    const uint64_t seed = x->cfg.top->seed;
    uint8_t prefix[24];

    slu_buf_clear(&s->seg);
    int rc = slu_buf_append(&s->seg, &b->seg[q->seg_off],
                            q->n_seg * sizeof(struct slu_seg), err);
    if (rc)
        return rc;
    struct slu_seg *seg = (void *)s->seg.data;
    for (uint64_t i = 0; i < q->n_seg; i++)
        seg[i].source = source_sum(x, s, seg[i].source);
    memcpy(prefix, what, sizeof what);
    memcpy(prefix + sizeof what, &seed, sizeof seed);
    *key = slu_hash_segments(prefix, sizeof prefix, seg, q->n_seg).hi;
    return SLU_OK;
}

static int mark_one(struct slu_choose *x, struct side *s, const struct slu_batch *b,
                    const struct slu_seq *q, struct marks *m, struct slu_err *err)
{
    const struct slu_top *top = x->cfg.top;

    const struct slu_seg *first = slu_seq_first(b, q);
    struct slu_meta_value v;
    uint8_t number[8];

    m->source = source_sum(x, s, b->seg[q->seg_off].source);
    m->content = slu_batch_hash(b, q->tok_off, q->len_tok).lo;
    if (!top->by)
        return hash_key(x, s, b, q, &m->key, err);
    m->key = UINT64_MAX;
    if (x->by.at == SLU_PROPERTY_LENGTH)
        m->key = length_key(q->len_tok);
    else if (first && slu_property_get(&x->by, x->names, b, q, first, number, &v))
        m->key = ~slu_double_key(slu_meta_to_value(x->by.type, &v).number);
    return SLU_OK;
}

static int mark(void *ctx, unsigned worker, struct slu_batch *b, void *side,
                struct slu_err *err)
{
    struct side *s = side;

    (void)worker;
    s->source = SLU_PADDING;
    slu_buf_clear(&s->marks);
    int rc = slu_buf_reserve(&s->marks, b->n_seq * sizeof(struct marks), err);
    struct marks *m = rc ? NULL : (void *)s->marks.data;
    for (size_t i = 0; i < b->n_seq && !rc; i++)
        rc = mark_one(ctx, s, b, &b->seq[i], &m[i], err);
    return rc;
}

static void release_side(void *side)
{
    struct side *s = side;

    slu_buf_release(&s->marks);
    slu_buf_release(&s->seg);
}

static int put_total(struct slu_choose *x, const struct sums *s, struct slu_err *err)
{
    const uint64_t w[TOTAL_WORDS] = {
        [T_GROUP] = s->group, [T_DOCUMENTS] = s->documents, [T_TOKENS] = s->tokens};

    return s->documents ? slu_table_put(slu_flow_out(x->flow, TOTAL), w, err) : SLU_OK;
}

static int add_total(struct slu_choose *x, uint64_t group, uint64_t tokens,
                     struct slu_err *err)
{
    struct sums *s = &x->sum[(group >> 1) % SUMS]; /* hashes are odd */
    int rc = SLU_OK;

    if (s->group != group) {
        rc = put_total(x, s, err);
        *s = (struct sums){.group = group};
    }
    s->documents++;
    s->tokens += tokens;
    return rc;
}

static int put_row(struct slu_choose *x, const struct slu_batch *b,
                   const struct slu_seq *q, const struct marks *m, struct slu_err *err)
{
    const struct slu_seg *s = &b->seg[q->seg_off];
    const bool per = x->cfg.top->per;
    uint64_t group = 0;
    int rc = per ? slu_property_hash(&x->per, x->names, b, q, &x->memo, &group, err)
                 : SLU_OK;

    if (!rc && x->cfg.top->by)
        rc = slu_property_same(&x->by, b, q, err);
    if (!rc)
        rc = add_total(x, group, q->len_tok, err);
    if (rc)
        return rc;
    const uint64_t w[ROW_WORDS] = {[GROUP] = per ? group : m->key,
                                   [KEY] = per ? m->key : 0,
                                   [SOURCE] = m->source,
                                   [DOCUMENT] = s->document,
                                   [OFFSET] = s->offset,
                                   [CONTENT] = m->content,
                                   [TOKENS] = q->len_tok,
                                   [ORDINAL] = slu_flow_part(x->flow) << PART_SHIFT |
                                               x->ordinal};
    return slu_table_put(x->table, w, err);
}

static int rank_batch(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct slu_choose *x = ctx;
    const struct marks *m = (const void *)((const struct side *)side)->marks.data;
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        const struct slu_seq *q = &b->seq[i];
        enum slu_why why;
        rc = slu_criteria_ask(x->criteria, b, q, &why, err);
        if (!rc && !why)
            rc = put_row(x, b, q, &m[i], err);
        if (!rc && !why && x->log)
            rc = slu_flow_log(x->flow, b, q, err);
        if (!rc && why && x->log)
            account(x, b, q, why);
        x->ordinal += !x->log || !why;
    }
    return rc;
}

static int rank(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    static const struct slu_side_ops ops = {sizeof(struct side), mark, rank_batch,
                                            release_side};
    struct slu_choose *x = ctx;

    free(x->sum);
    x->sum = calloc(SUMS, sizeof *x->sum);
    if (!x->sum)
        return slu_fail_nomem(err, SUMS * sizeof *x->sum);
    x->flow = f;
    x->table = slu_flow_out(f, ROW);
    x->log = slu_flow_here(f) && !x->cfg.again;
    x->ordinal = 0;
    int rc = slu_flow_read(f, &ops, x, err);
    if (slu_flow_here(f))
        slu_flow_span(f, x->ordinal);
    for (size_t i = 0; i < SUMS && !rc; i++)
        rc = put_total(x, &x->sum[i], err);
    return rc;
}

/* ---- cut ---- */

struct cut {
    struct slu_choose *x;
    struct slu_table *total, *out;
    struct slu_row next; /* of TOTAL */
    bool more;           /* there is a next */
    uint64_t group, left;
    bool any, full; /* any: a group has begun; full: no more of it are taken */
};

static int next_total(struct cut *c, struct slu_err *err)
{
    int rc = slu_table_next(c->total, &c->next, err);

    c->more = !rc;
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* Begins a group: reads its sums, and finds how much of it is taken. */
static int begin_group(struct cut *c, uint64_t group, struct slu_err *err)
{
    const struct slu_top *top = c->x->cfg.top;
    uint64_t all = 0;
    int rc = SLU_OK;

    c->any = true;
    c->full = false;
    c->group = group;
    c->x->result.groups++;
    while (!rc && c->more) {
        const uint64_t *w = c->next.p;
        if (w[T_GROUP] != group)
            break;
        all += w[top->documents ? T_DOCUMENTS : T_TOKENS];
        rc = next_total(c, err);
    }
    c->left = top->den ? (uint64_t)((u128)all * top->num / top->den) : top->num;
    return rc;
}

static int cut_row(struct cut *c, const struct slu_row *row, struct slu_err *err)
{
    const struct slu_top *top = c->x->cfg.top;
    const uint64_t *w = row->p, group = top->per ? w[GROUP] : 0;
    const uint64_t size = top->documents ? 1 : w[TOKENS];
    int rc = c->any && group == c->group ? SLU_OK : begin_group(c, group, err);

    if (rc)
        return rc;
    c->full |= size > c->left;
    if (!c->full) {
        c->left -= size;
        return SLU_OK;
    }
    const uint64_t base = slu_flow_base(c->x->flow, row->part),
                   n = slu_flow_base(c->x->flow, row->part + 1) - base,
                   at = w[ORDINAL] & ((UINT64_C(1) << PART_SHIFT) - 1),
                   drop = base + at;
    if (at >= n || w[ORDINAL] >> PART_SHIFT != row->part)
        return slu_flow_damaged(c->x->flow, ROW, row->part, err);
    return slu_table_put(c->out, &drop, err);
}

static int cut(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_choose *x = ctx;
    struct cut c = {.x = x, .out = slu_flow_out(f, DROP)};
    struct slu_table *rows;
    struct slu_row row;
    int rc = slu_flow_in(f, TOTAL, &c.total, err);

    x->flow = f;
    if (!rc)
        rc = next_total(&c, err);
    if (!rc)
        rc = slu_flow_in(f, ROW, &rows, err);
    while (!rc) {
        rc = slu_table_next(rows, &row, err);
        if (!rc)
            rc = cut_row(&c, &row, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* ---- filter ---- */

static int filter_batch(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    (void)side;
    return pass(ctx, b, err);
}

static int filter(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    static const struct slu_side_ops ops = {.emit = filter_batch};
    struct slu_choose *x = ctx;
    int rc = slu_flow_here(f) ? SLU_OK : x->cfg.open(x->cfg.ctx, err);

    x->flow = f;
    x->ordinal = 0;
    if (!rc)
        rc = slu_flow_in(f, DROP, &x->table, err);
    if (!rc)
        rc = next_drop(x, 0, err);
    if (!rc)
        rc = slu_flow_read(f, &ops, x, err);
    return rc || x->drop == UINT64_MAX ? rc
                                       : slu_flow_damaged(f, DROP, x->drop_part, err);
}

/* ---- the flow ---- */

static const struct slu_table_spec tables[TABLES] = {
    [ROW] = {"row", SLU_ROWS, SLU_CUT_NO, ROW_WORDS, 40},
    [TOTAL] = {"total", SLU_ROWS, SLU_CUT_NO, TOTAL_WORDS, 8},
    [DROP] = {"drop", SLU_ROWS, SLU_CUT_PARTS, 1, 16},
};

static const struct slu_stage stages[] = {
    {"rank", SLU_STAGE_READS, NULL, 0, SLU_STAGE_OUT(ROW, TOTAL), 2, 0, rank, NULL},
    {"cut", SLU_STAGE_ONE, SLU_STAGE_IN({ROW, SLU_READ_ALL}, {TOTAL, SLU_READ_ALL}), 2,
     SLU_STAGE_OUT(DROP), 1, 0, cut, NULL},
    {"filter", SLU_STAGE_READS | SLU_STAGE_WRITES, SLU_STAGE_IN({DROP, SLU_READ_RANGE}),
     1, NULL, 0, 0, filter, NULL},
};

const struct slu_flow_spec slu_choose_spec = {
    "choose", tables, stages, TABLES, sizeof stages / sizeof *stages, NULL};

/* ---- one process ---- */

static int emit(void *x, struct slu_batch *b, struct slu_err *err)
{
    return pass(x, b, err);
}

int slu_choose_run(struct slu_choose *x, struct slu_reader *r, unsigned n_slots,
                   struct slu_sum *total, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {NULL, emit};
    const struct slu_flow_cfg cfg = {.spec = &slu_choose_spec,
                                     .reader = r,
                                     .ctx = x,
                                     .begin = slu_choose_begin,
                                     .again = x->cfg.again,
                                     .again_ctx = x->cfg.ctx,
                                     .budget_byte = x->cfg.budget_byte,
                                     .tmpdir = x->cfg.tmpdir,
                                     .n_threads = x->cfg.n_threads,
                                     .n_slots = n_slots};
    struct slu_flow_report report = {.skipped = false};
    int rc;

    if (x->cfg.top) {
        rc = slu_flow_run(&cfg, &report, err);
        *total = report.in;
        x->result.spilled_byte = report.spilled_byte;
        return rc;
    }
    rc = slu_choose_begin(x, slu_reader_header(r), slu_reader_names(r), err);
    return rc ? rc : slu_stream_run(r, &ops, x, x->cfg.n_threads, n_slots, total, err);
}
