#include "lib/dedup/exact/exact_flow.h"

#include <stdlib.h>
#include <string.h>

#include "lib/dedup/against/index.h"
#include "lib/dedup/leave_out.h"

enum { LOG_BYTE = 1 << 20 };
enum { HASH, DROP, LIST, TABLES };
/* Words of a row of HASH; if pairs are wanted, its origin follows. A row of DROP has a
 * sequence's number, and then the origin of the one that is kept. LIST has the hash of
 * each sequence of a part (low, high). */
enum { HI, LO, NUMBER, HASH_WORDS, ORIGIN = HASH_WORDS, ORIGIN_WORDS = 3 };

int slu_exact_new(struct slu_exact **out, const struct slu_exact_cfg *cfg,
                  struct slu_err *err)
{
    *out = NULL;
    if (cfg->budget_byte < 1 << 20)
        return slu_fail(err, SLU_E_LIMIT,
                        "finding duplicates takes at least 1 MiB of memory");
    struct slu_exact *x = calloc(1, sizeof *x);
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    x->nothing = slu_hash_tokens("", 0, sizeof(uint32_t));
    *out = x;
    return SLU_OK;
}

void slu_exact_free(struct slu_exact *x)
{
    if (!x)
        return;
    slu_seen_release(&x->seen);
    free(x);
}

const struct slu_exact_result *slu_exact_result(struct slu_exact *x)
{
    return &x->result;
}

/* ---- decisions in memory, in one process ---- */

static bool is_nothing(const struct slu_exact *x, struct slu_u128 h)
{
    return !slu_u128_cmp(h, x->nothing);
}

/* Puts the hash of a sequence, or of a document of an index, unless it equals none. */
static int decide_later(struct slu_exact *x, struct slu_u128 h,
                        const struct slu_origin *origin, struct slu_err *err)
{
    const uint64_t row[] =
        {h.hi, h.lo, x->ordinal++, origin->source, origin->document, origin->offset},
                   listed[] = {h.lo, h.hi};
    int rc = x->list ? slu_table_put(x->list, listed, err) : SLU_OK;

    return rc || is_nothing(x, h) ? rc : slu_table_put(x->table, row, err);
}

static int front(struct slu_exact *x, struct slu_err *err)
{
    /* While the table grows it takes 1.5 times this size, not counting waiting
     * sequences. */
    slu_seen_init(&x->seen, slu_flow_own_byte(x->flow), x->cfg.pair != NULL);
    int rc = x->cfg.known ? x->cfg.known(x->cfg.ctx, x, err) : SLU_OK;
    x->n_fixed = x->ordinal;
    return rc;
}

int slu_exact_known(struct slu_exact *x, struct slu_u128 hash, uint64_t number,
                    struct slu_err *err)
{
    const struct slu_origin origin = slu_origin_of_index(number);
    struct slu_origin first = origin;
    enum slu_seen_answer answer;
    if (!slu_flow_here(x->flow))
        return decide_later(x, hash, &origin, err);
    if (is_nothing(x, hash))
        return SLU_OK;
    int rc = slu_seen_check(&x->seen, hash, &first, &answer, err);

    return rc || answer != SLU_SEEN_FULL ? rc : decide_later(x, hash, &origin, err);
}

/* Counts a sequence that is dropped, and reports its pair. */
static int drop(struct slu_exact *x, const struct slu_batch *b, const struct slu_seq *q,
                const struct slu_origin *kept, struct slu_err *err)
{
    const struct slu_exact_pair pair = {slu_origin_of(b, q), *kept};

    slu_count_add(&x->result.dropped, slu_seq_count(b, q));
    if (!x->cfg.pair)
        return SLU_OK;
    return x->noting ? slu_flow_note(x->flow, &pair, sizeof pair, err)
                     : x->cfg.pair(x->cfg.ctx, &pair, err);
}

static int arrive(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct slu_exact *x = ctx;
    const struct slu_buf *buf = side;
    const struct slu_u128 *hash = (const void *)buf->data;
    size_t n = 0;
    int rc = x->cfg.seen ? x->cfg.seen(x->cfg.ctx, b, err) : SLU_OK;

    if (rc)
        return rc;
    for (size_t i = 0; i < b->n_seq; i++) {
        struct slu_seq q = b->seq[i];
        struct slu_origin origin = slu_origin_of(b, &q), kept = origin;
        enum slu_seen_answer answer = SLU_SEEN_NEW;
        if (is_nothing(x, hash[i]))
            x->result.untrained++;
        else
            rc = slu_seen_check(&x->seen, hash[i], &kept, &answer, err);
        if (!rc && answer == SLU_SEEN_KNOWN) {
            rc = drop(x, b, &q, &kept, err);
        } else if (!rc && (answer == SLU_SEEN_FULL || x->noting)) {
            /* The pair that just fitted waits as well, because an earlier one waits. */
            x->noting = true;
            x->result.waited++;
            rc = slu_flow_log(x->flow, b, &q, err);
            if (!rc)
                rc = decide_later(x, hash[i], &origin, err);
        } else if (!rc) {
            b->seq[n++] = q;
        }
        if (rc)
            return rc;
    }
    slu_batch_keep(b, n);
    return n ? x->cfg.emit(x->cfg.ctx, b, err) : SLU_OK;
}

/* ---- sign ---- */

static int hash(void *ctx, unsigned worker, struct slu_batch *b, void *side,
                struct slu_err *err)
{
    const struct slu_exact *x = ctx;
    struct slu_buf *out = side, plain = SLU_BUF_INIT;

    (void)worker;
    slu_buf_clear(out);
    int rc = slu_buf_reserve(out, b->n_seq * sizeof(struct slu_u128), err);
    if (rc)
        return rc;
    struct slu_u128 *h = (void *)out->data;
    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        const void *ids;
        uint64_t n;
        if (!x->cfg.trained) {
            h[i] = slu_seq_hash(b, i);
            continue;
        }
        rc = slu_batch_ids(b, b->seq[i].tok_off, b->seq[i].len_tok, true, &plain, &ids,
                           &n, err);
        if (!rc)
            h[i] = slu_hash_tokens(ids, n, b->tok_bytes);
    }
    slu_buf_release(&plain);
    return rc;
}

static int put_hashes(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct slu_exact *x = ctx;
    const struct slu_buf *buf = side;
    const struct slu_u128 *h = (const void *)buf->data;
    const struct slu_origin none = {0, 0, 0};
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        x->result.untrained += is_nothing(x, h[i]);
        rc = decide_later(x, h[i], &none, err);
    }
    return rc;
}

static void release_hashes(void *side)
{
    slu_buf_release(side);
}

static int sign(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    static const struct slu_side_ops here = {sizeof(struct slu_buf), hash, arrive,
                                             release_hashes},
                                     files = {sizeof(struct slu_buf), hash, put_hashes,
                                              release_hashes};
    struct slu_exact *x = ctx;
    int rc = SLU_OK;

    x->flow = f;
    x->table = slu_flow_out(f, HASH);
    x->list = x->cfg.indexed ? slu_flow_out(f, LIST) : NULL;
    if (slu_flow_here(f))
        rc = front(x, err);
    else if (x->cfg.known && !slu_flow_part(f)) /* the ordinals of indexes come first */
        rc = x->cfg.known(x->cfg.ctx, x, err);
    if (!rc)
        rc = slu_flow_read(f, slu_flow_here(f) ? &here : &files, x, err);
    slu_flow_span(f, x->ordinal);
    if (!slu_flow_here(f))
        return rc;
    slu_seen_release(&x->seen);
    x->noting = false;
    if (!x->result.waited)
        slu_flow_finished(f);
    return rc;
}

/* ---- group ---- */

struct group {
    bool any;
    uint64_t first[HASH_WORDS + ORIGIN_WORDS];
};

static int feed(void *state, const void *arg, const uint64_t *row, struct slu_buf *out,
                struct slu_err *err)
{
    struct group *s = state;
    const struct slu_exact *x = arg;
    int rc = SLU_OK;

    if (!s->any || s->first[HI] != row[HI] || s->first[LO] != row[LO]) {
        s->any = true;
        s->first[HI] = row[HI];
        s->first[LO] = row[LO];
        if (x->cfg.pair)
            memcpy(&s->first[ORIGIN], &row[ORIGIN], ORIGIN_WORDS * sizeof *row);
    } else if (row[NUMBER] >= x->n_fixed) {
        rc = slu_buf_append(out, &row[NUMBER], sizeof *row, err);
        if (!rc && x->cfg.pair)
            rc =
                slu_buf_append(out, &s->first[ORIGIN], ORIGIN_WORDS * sizeof *row, err);
    }
    return rc;
}

static int end(void *state, struct slu_buf *out, struct slu_err *err)
{
    struct group *s = state;

    (void)out, (void)err;
    s->any = false;
    return SLU_OK;
}

static int put_drops(void *ctx, struct slu_buf *out, struct slu_err *err)
{
    struct slu_exact *x = ctx;
    const size_t words = 1 + (x->cfg.pair ? ORIGIN_WORDS : 0);
    const uint64_t *w = (const void *)out->data, *to = w + out->len / sizeof *w;
    int rc = SLU_OK;

    for (; w < to && !rc; w += words, x->n_duplicate++)
        rc = slu_table_put(x->table, w, err);
    return rc;
}

static int group(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_exact *x = ctx;
    const struct slu_group_ops ops = {.state_byte = sizeof(struct group),
                                      .arg = x,
                                      .feed = feed,
                                      .end = end,
                                      .take = put_drops,
                                      .out_byte = (1 + ORIGIN_WORDS) * sizeof(uint64_t),
                                      .ctx = x,
                                      .work_byte = slu_flow_own_byte(f)};
    struct slu_table *t;
    int rc = slu_flow_in(f, HASH, &t, err);

    x->table = slu_flow_out(f, DROP);
    return rc ? rc : slu_table_group(t, &ops, err);
}

/* ---- filter ---- */

static int drop_row(void *ctx, const struct slu_batch *b, const struct slu_seq *q,
                    const uint64_t *w, struct slu_err *err)
{
    struct slu_exact *x = ctx;
    struct slu_origin kept = {0};

    if (x->cfg.pair)
        kept = (struct slu_origin){w[1], w[2], w[3]};
    return drop(x, b, q, &kept, err);
}

static int filter(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_exact *x = ctx;
    const struct slu_leave_out how = {.table = DROP,
                                      .from = slu_flow_part(f) ? 0 : x->n_fixed,
                                      .ctx = x,
                                      .drop = drop_row,
                                      .emit = x->cfg.emit,
                                      .emit_ctx = x->cfg.ctx};
    int rc = slu_flow_here(f) ? SLU_OK : x->cfg.open(x->cfg.ctx, err);

    x->flow = f;
    return rc ? rc : slu_leave_out(f, &how, err);
}

/* ---- index ---- */

/* Reads the next row of DROP, which must name an ordinal from `least` up to end - 1; *at
 * is end after the last. */
static int next_drop(struct slu_flow *f, struct slu_table *drops, uint64_t least,
                     uint64_t end, uint64_t *at, struct slu_err *err)
{
    struct slu_row row;
    int rc = slu_table_next(drops, &row, err);

    *at = rc ? end : *(const uint64_t *)row.p;
    if (rc)
        return rc == SLU_EOF ? SLU_OK : rc;
    return *at >= least && *at < end ? SLU_OK
                                     : slu_flow_damaged(f, DROP, row.part, err);
}

/* Saves the hashes of a part but those that the rows of DROP name; these rows ascend. */
static int save_part(struct slu_exact *x, struct slu_flow *f, uint64_t part,
                     struct slu_index_out *out, struct slu_err *err)
{
    const uint64_t n = slu_flow_base(f, part + 1) - slu_flow_base(f, part);
    struct slu_table *list, *drops;
    struct slu_row row;
    uint64_t gone;
    int rc = slu_flow_of_part(f, LIST, part, &list, err);

    if (!rc)
        rc = slu_flow_of_cells(f, DROP, part, part + 1, &drops, err);
    if (!rc)
        rc = next_drop(f, drops, 0, n, &gone, err);
    for (uint64_t at = 0; at < n && !rc; at++) {
        rc = slu_flow_next(f, LIST, part, list, &row, err);
        const uint64_t *w = row.p;
        if (!rc && at == gone)
            rc = next_drop(f, drops, at + 1, n, &gone, err);
        else if (!rc && (part || at >= x->n_fixed)) {
            rc = slu_index_put_hash(out, (struct slu_u128){w[0], w[1]}, err);
            x->result.indexed++;
        }
    }
    return rc ? rc : slu_flow_end(f, LIST, part, list, err);
}

static int save(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_exact *x = ctx;
    const struct slu_index_cfg cfg = {.trained = x->cfg.trained, .exact = true};
    struct slu_index_out *out;
    int rc = slu_index_create(&out, x->cfg.save_index, &cfg, x->header, NULL, err);

    for (uint64_t i = 0; i < slu_flow_parts(f) && !rc; i++)
        rc = save_part(x, f, i, out, err);
    if (!rc)
        return slu_index_close(out, err);
    slu_index_abort(out);
    return rc;
}

/* ---- the flow ---- */

#define IN(t, reach) (const struct slu_stage_input[]){{t, reach}}, 1
#define OUT(t)       (const unsigned[]){t}, 1
#define TABLE(origin)                                                                  \
    {                                                                                  \
        [HASH] = {"hash", SLU_GROUPS, SLU_CUT_RANGES, HASH_WORDS + origin,             \
                  24,     64,         1 << NUMBER},                                    \
        [DROP] = {"drop", SLU_ROWS, SLU_CUT_PARTS, 1 + origin, 14},                    \
        [LIST] = {"list", SLU_LIST, SLU_CUT_NO, 2, 1},                                 \
    }

static const struct slu_table_spec tables[TABLES] = TABLE(0),
                                   with_origins[TABLES] = TABLE(ORIGIN_WORDS);

static const unsigned listed[] = {LIST, HASH};
static const struct slu_stage_input kept[] = {{LIST, SLU_READ_ALL},
                                              {DROP, SLU_READ_ALL}};

#define GROUP                                                                          \
    {                                                                                  \
        "group", SLU_STAGE_RANGES, IN(HASH, SLU_READ_RANGE), OUT(DROP), 0, group       \
    }
#define FILTER                                                                         \
    {                                                                                  \
        "filter", SLU_STAGE_READS | SLU_STAGE_WRITES, IN(DROP, SLU_READ_RANGE), NULL,  \
            0, 0, filter                                                               \
    }
static const struct slu_stage
    stages[] = {{"sign", SLU_STAGE_READS, NULL, 0, OUT(HASH), 3, sign}, GROUP, FILTER},
    with_index[] = {{"sign", SLU_STAGE_READS, NULL, 0, listed, 2, 3, sign},
                    GROUP,
                    FILTER,
                    {"index", SLU_STAGE_ONE, kept, 2, NULL, 0, 20, save}};

static const struct slu_flow_spec spec = {"exact", tables, stages, TABLES, 3, NULL},
                                  spec_of_pairs = {"exact", with_origins,
                                                   stages,  TABLES,
                                                   3,       NULL},
                                  spec_of_index = {"exact", tables, with_index,
                                                   TABLES,  4,      NULL};

const struct slu_flow_spec *slu_exact_spec(bool pairs, bool index)
{
    return index ? &spec_of_index : pairs ? &spec_of_pairs : &spec;
}

/* ---- one process ---- */

int slu_exact_begin(void *ctx, const struct slu_header *h, struct slu_names *names,
                    struct slu_err *err)
{
    struct slu_exact *x = ctx;

    (void)names;
    x->header = h;
    if (h->no_tokens)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has segment rows only, and no tokens to compare");
    return x->cfg.count_known ? x->cfg.count_known(x->cfg.ctx, h, &x->n_fixed, err)
                              : SLU_OK;
}

static int tell_note(void *ctx, const void *p, size_t n, struct slu_err *err)
{
    struct slu_exact *x = ctx;

    (void)n;
    return x->cfg.pair(x->cfg.ctx, p, err);
}

int slu_exact_run(struct slu_exact *x, struct slu_reader *r, unsigned n_slots,
                  struct slu_sum *total, struct slu_err *err)
{
    const uint64_t budget = x->cfg.budget_byte,
                   log = budget / 16 < LOG_BYTE ? budget / 16 : LOG_BYTE;
    const struct slu_flow_cfg cfg = {.spec = slu_exact_spec(x->cfg.pair, false),
                                     .reader = r,
                                     .ctx = x,
                                     .begin = slu_exact_begin,
                                     .note = tell_note,
                                     .budget_byte = budget - log,
                                     .tmpdir = x->cfg.tmpdir,
                                     .n_threads = x->cfg.n_threads,
                                     .n_slots = n_slots};
    struct slu_flow_report report;
    int rc = slu_flow_run(&cfg, &report, err);

    *total = report.in;
    x->result.spilled_byte = report.spilled_byte;
    return rc;
}
