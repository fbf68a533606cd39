#include "lib/dedup/exact/exact_flow.h"

#include <stdlib.h>
#include <string.h>

#include "lib/dedup/leave_out.h"

enum { LOG_BYTE = 1 << 20 };
enum { HASH, DROP, TABLES };
/* Words of a row of HASH; if pairs are wanted, its origin follows. A row of DROP has a
 * sequence's number, and then the origin of the one that is kept. */
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
    const uint64_t row[] = {
        h.hi, h.lo, x->ordinal++, origin->source, origin->document, origin->offset};

    return is_nothing(x, h) ? SLU_OK : slu_table_put(x->table, row, err);
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
    if (slu_flow_here(f))
        rc = front(x, err);
    if (!rc)
        rc = slu_flow_read(f, slu_flow_here(f) ? &here : &files, x, err);
    if (!slu_flow_here(f))
        return rc;
    slu_seen_release(&x->seen);
    x->noting = false;
    slu_flow_span(f, x->ordinal);
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
                                      .from = x->n_fixed,
                                      .ctx = x,
                                      .drop = drop_row,
                                      .emit = x->cfg.emit,
                                      .emit_ctx = x->cfg.ctx};
    int rc = slu_flow_here(f) ? SLU_OK : x->cfg.open(x->cfg.ctx, err);

    x->flow = f;
    return rc ? rc : slu_leave_out(f, &how, err);
}

/* ---- the flow ---- */

#define IN(t, reach) (const struct slu_stage_input[]){{t, reach}}, 1
#define OUT(t)       (const unsigned[]){t}, 1
#define TABLE(origin)                                                                  \
    {                                                                                  \
        [HASH] = {"hash", SLU_GROUPS, SLU_CUT_RANGES, HASH_WORDS + origin,             \
                  24,     64,         1 << NUMBER},                                    \
        [DROP] = {"drop", SLU_ROWS, SLU_CUT_PARTS, 1 + origin, 14},                    \
    }

static const struct slu_table_spec tables[TABLES] = TABLE(0),
                                   with_origins[TABLES] = TABLE(ORIGIN_WORDS);

static const struct slu_stage stages[] = {
    {"sign", SLU_STAGE_READS, NULL, 0, OUT(HASH), 3, sign},
    {"group", SLU_STAGE_RANGES, IN(HASH, SLU_READ_RANGE), OUT(DROP), 0, group},
    {"filter", SLU_STAGE_READS | SLU_STAGE_WRITES, IN(DROP, SLU_READ_RANGE), NULL, 0, 0,
     filter},
};
#define STAGES (sizeof stages / sizeof *stages)

static const struct slu_flow_spec spec = {"exact", tables, stages,
                                          TABLES,  STAGES, NULL},
                                  spec_of_pairs = {"exact", with_origins, stages,
                                                   TABLES,  STAGES,       NULL};

const struct slu_flow_spec *slu_exact_spec(bool pairs)
{
    return pairs ? &spec_of_pairs : &spec;
}

/* ---- one process ---- */

int slu_exact_begin(void *ctx, const struct slu_header *h, struct slu_names *names,
                    struct slu_err *err)
{
    (void)ctx, (void)names;
    return h->no_tokens ? slu_fail(err, SLU_E_MISMATCH,
                                   "the stream has segment rows only, and no tokens to "
                                   "compare")
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
    const struct slu_flow_cfg cfg = {.spec = slu_exact_spec(x->cfg.pair),
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
