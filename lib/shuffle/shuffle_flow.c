/* shuffle_flow.c - the stages count, mix and scatter. */
#include <stdlib.h>
#include <string.h>

#include "lib/flow/workfile.h"
#include "lib/shuffle/permute_private.h"
#include "lib/shuffle/shuffle_flow_private.h"

enum {
    LINE_WORDS = 3,
    LINE_SHIFT = 56,
    CELL_WORDS = COUNT_WORDS + 2,
};
#define LINE_TOK ((UINT64_C(1) << LINE_SHIFT) - 1)

/* line: (low, high) of a place, source << LINE_SHIFT | tokens; source: the counts of
 * one; state: slu_mixer_save; seq: seqrec.h; book: shuffle_account.c; cell: counts and
 * checksum. */
#define ALL_TABLES(cut)                                                                \
    {                                                                                  \
        [LINE] = {"line", SLU_LIST, SLU_CUT_NO, LINE_WORDS, 1},                        \
        [SOURCE] = {"source", SLU_LIST, SLU_CUT_NO, COUNT_WORDS, 1},                   \
        [STATE] = {"state", SLU_LIST, SLU_CUT_PARTS, 0, 1},                            \
        [SEQ] = {"seq", SLU_ROWS, cut, 0, 60},                                         \
        [ACCOUNT] = {"book", SLU_LIST, SLU_CUT_NO, 0, 1},                              \
        [CELL] = {"cell", SLU_LIST, SLU_CUT_NO, CELL_WORDS, 1},                        \
        [KEY] = {"key", SLU_ROWS, SLU_CUT_NO, KEY_WORDS, 56},                          \
    }

static const struct slu_table_spec of_stream[TABLES] = ALL_TABLES(SLU_CUT_RANGES);
static const struct slu_table_spec of_shards[TABLES] = ALL_TABLES(SLU_CUT_BUCKETS);

static const struct slu_u128 none;

void slu_shuffle_begin(struct slu_shuffle_flow *q, const struct slu_header *h)
{
    q->header = h;
    q->n_bucket = q->cfg.by_bucket && h->n_bucket ? h->n_bucket : 1;
}

void slu_shuffle_release(struct slu_shuffle_flow *q)
{
    free(q->cell);
    free(q->took);
    free(q->quantile);
    slu_buf_release(&q->fetched);
    slu_steps_release(&q->steps);
}

/* ---- count ---- */

struct count {
    const struct slu_mix *mix;
    struct slu_table *line;
    struct slu_count source[SLU_MIX_SOURCES];
};

static int put_line(void *ctx, unsigned source, struct slu_u128 line,
                    struct slu_count n, struct slu_err *err)
{
    struct count *c = ctx;
    const uint64_t w[] = {line.lo, line.hi, (uint64_t)source << LINE_SHIFT | n.tokens};

    slu_count_add(&c->source[source], n);
    if (!slu_mix_weighs(c->mix, source))
        return SLU_OK;
    if (n.tokens > LINE_TOK)
        return slu_fail(err, SLU_E_LIMIT, "a sequence has more than 2^56 tokens");
    return slu_table_put(c->line, w, err);
}

static int count(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_shuffle_flow *q = ctx;
    struct count c = {.mix = q->cfg.mix, .line = slu_flow_out(f, LINE)};
    struct slu_permute *p = NULL;

    q->cfg.flow = f;
    int rc = slu_permute_new(&p, &q->cfg, err);
    if (!rc) {
        p->row = put_line;
        p->row_ctx = &c;
        rc = slu_permute_read(p, q->reader, 0, NULL, q->progress, q->ctx, err);
    }
    for (unsigned s = 0; !rc && s < c.mix->n_source; s++) {
        uint64_t w[COUNT_WORDS];
        (void)slu_shuffle_put_count(w, c.source[s]);
        rc = slu_table_put(slu_flow_out(f, SOURCE), w, err);
    }
    slu_permute_free(p);
    return rc;
}

/* ---- mix ---- */

struct mix {
    struct slu_shuffle_flow *q;
    const struct slu_mix *mix;
    struct slu_mixer *x, *state; /* of all parts; of the current part */
    uint64_t *words;             /* slu_mixer_words */
    size_t n_word;
    struct slu_count available[SLU_MIX_SOURCES];
};

static int add_sources(struct mix *m, uint64_t part, struct slu_err *err)
{
    struct slu_flow *f = m->q->flow;
    struct slu_table *t;
    struct slu_row row;
    int rc = slu_flow_of_part(f, SOURCE, part, &t, err);

    for (unsigned s = 0; s < m->mix->n_source && !rc; s++) {
        rc = slu_flow_next(f, SOURCE, part, t, &row, err);
        if (!rc)
            slu_count_add(&m->available[s], slu_shuffle_get_count(row.p));
    }
    return rc ? rc : slu_flow_end(f, SOURCE, part, t, err);
}

/* Adds all lines of a part to the selection, or passes over them. */
static int add_lines(struct mix *m, uint64_t part, bool pass, struct slu_err *err)
{
    struct slu_flow *f = m->q->flow;
    struct slu_table *t;
    struct slu_row row;
    int rc = slu_flow_of_part(f, LINE, part, &t, err);

    while (!rc) {
        rc = slu_table_next(t, &row, err);
        if (rc)
            break;
        const uint64_t *w = row.p;
        const uint64_t source = w[2] >> LINE_SHIFT, n_tok = w[2] & LINE_TOK;
        const struct slu_u128 line = {w[0], w[1]};
        if (source >= m->mix->n_source)
            rc = slu_flow_damaged(f, LINE, part, err);
        else if (pass)
            slu_mixer_pass(m->state, (unsigned)source, line, n_tok);
        else
            rc = slu_mixer_add(m->x, (unsigned)source, line,
                               (struct slu_count){0, 1, n_tok, 0}, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int plan(struct mix *m, struct slu_err *err)
{
    int rc = SLU_OK;

    for (uint64_t i = 0; i < slu_flow_parts(m->q->flow) && !rc; i++) {
        rc = add_sources(m, i, err);
        if (!rc)
            rc = add_lines(m, i, false, err);
    }
    for (unsigned s = 0; s < m->mix->n_source && !rc; s++)
        slu_mixer_account(m->x, s)->available = m->available[s];
    if (!rc)
        rc = slu_mixer_plan(m->x, m->q->cfg.max_tokens, err);
    if (rc)
        return rc;
    slu_mixer_save(m->x, m->words);
    return slu_mixer_load(&m->state, m->mix, m->words, err);
}

/* Writes each part's first state, then passes over its lines, for the next part. */
static int put_states(struct mix *m, struct slu_err *err)
{
    struct slu_flow *f = m->q->flow;
    struct slu_table *t = slu_flow_out(f, STATE);
    const struct slu_slice piece = {m->words, m->n_word * sizeof *m->words};
    int rc = SLU_OK;

    for (uint64_t i = 0; i < slu_flow_parts(f) && !rc; i++) {
        slu_mixer_save(m->state, m->words);
        rc = slu_table_section(t, i, err);
        if (!rc)
            rc = slu_table_put_bytes(t, none, &piece, 1, err);
        if (!rc)
            rc = add_lines(m, i, true, err);
    }
    return rc;
}

static int mix(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_shuffle_flow *q = ctx;
    const struct slu_mix *b = q->cfg.mix;
    struct mix m = {.q = q, .mix = b, .n_word = slu_mixer_words(b)};

    q->flow = f;
    m.words = malloc(m.n_word * sizeof *m.words);
    int rc = m.words ? slu_mixer_new(&m.x, b, slu_flow_own_byte(f), q->cfg.tmpdir, err)
                     : slu_fail_nomem(err, m.n_word * sizeof *m.words);
    if (!rc)
        rc = plan(&m, err);
    if (!rc)
        rc = put_states(&m, err);
    if (m.x)
        q->spilled_byte = slu_mixer_spilled(m.x);
    slu_mixer_free(m.x);
    slu_mixer_free(m.state);
    free(m.words);
    return rc;
}

int slu_shuffle_load_state(struct slu_shuffle_flow *q, struct slu_table *t,
                           struct slu_mixer **x, struct slu_err *err)
{
    struct slu_row row;
    int rc = slu_shuffle_next_bytes(q, STATE, 0, t, slu_mixer_words(q->cfg.mix) * 8,
                                    &row, err);

    if (!rc)
        rc = slu_mixer_load(x, q->cfg.mix, row.p, err);
    return rc ? rc : slu_flow_end(q->flow, STATE, 0, t, err);
}

/* ---- scatter: the range of a key ---- */

/* Finds what comes before each group of a bucket's keys, `n_period` groups side by side
 * (permute.c), so that ranges are about equal for any periods. */
static void init_ranges(struct slu_shuffle_flow *q, const struct slu_permute *p)
{
    const struct slu_mix_plan *plan = p->mixer ? slu_mixer_planned(p->mixer) : NULL;
    struct slu_shuffle_ranges *g = &q->ranges;
    unsigned shift = 0;

    g->n_period = slu_permute_n_period(p);
    while (plan && plan->tok >> shift >> 36)
        shift++;
    for (unsigned i = 0; i < g->n_period; i++) {
        uint64_t n_tok = 0;
        for (unsigned s = 0; plan && s < p->cfg.mix->n_source; s++)
            n_tok += plan->target[s][i];
        /* + 1: no period is empty. */
        g->before[i + 1] = g->before[i] + (n_tok >> shift) + 1;
    }
}

/* Returns the cell of a key; ascends with the keys of a bucket. */
static uint64_t cell_of(const struct slu_shuffle_flow *q, unsigned bucket,
                        struct slu_u128 key)
{
    const struct slu_shuffle_ranges *g = &q->ranges;
    const uint64_t n_range = slu_flow_ranges(q->flow),
                   n_group = (uint64_t)q->n_bucket * g->n_period;
    unsigned __int128 lo = (unsigned __int128)key.lo * n_group;
    unsigned __int128 v = (unsigned __int128)key.hi * n_group + (uint64_t)(lo >> 64);
    uint64_t group = (uint64_t)(v >> 64), place = (uint64_t)v;

    bucket = q->cfg.by_bucket ? bucket : 0;
    if (q->quantile)
        return bucket * n_range + slu_shuffle_range_of(q, bucket, key);
    uint64_t first = (uint64_t)bucket * g->n_period, last = first + g->n_period - 1;

    /* slu_permute_in_group rounds: a group's first keys may equal the last ones of the
     * group before. */
    if (group < first || group > last) {
        place = group < first ? 0 : UINT64_MAX;
        group = group < first ? first : last;
    }
    const uint64_t *b = &g->before[group - first];
    v = ((unsigned __int128)b[0] << 64) + (unsigned __int128)(b[1] - b[0]) * place;
    return bucket * n_range + (uint64_t)(v / g->before[g->n_period] * n_range >> 64);
}

static uint64_t cell_of_row(const void *ctx, struct slu_u128 key, const void *p,
                            size_t n)
{
    const struct slu_shuffle_flow *q = ctx;
    uint64_t n_tok = 0, n_seg;

    if (q->n_bucket > 1 && slu_seqrec_peek(p, n, &n_tok, &n_seg, NULL))
        return UINT64_MAX;
    const int bucket = q->n_bucket > 1 ? slu_header_bucket_of(q->header, n_tok) : 0;
    return cell_of(q, bucket < 0 ? 0 : (unsigned)bucket, key);
}

static void account_cell(void *ctx, unsigned bucket, struct slu_u128 key,
                         struct slu_count n, struct slu_u128 hash)
{
    struct slu_shuffle_flow *q = ctx;

    slu_shuffle_add_cell(&q->cell[cell_of(q, bucket, key)],
                         &(struct slu_shuffle_cell){n, hash});
}

/* ---- scatter ---- */

int slu_shuffle_new_cells(struct slu_shuffle_flow *q, uint64_t n_range,
                          struct slu_err *err)
{
    if (n_range > SLU_WORKFILE_MAX_PARTS / q->n_bucket)
        return slu_fail(
            err, SLU_E_LIMIT,
            "%llu ranges of each of %u buckets are too many; take %llu ranges or fewer",
            (unsigned long long)n_range, q->n_bucket,
            (unsigned long long)SLU_WORKFILE_MAX_PARTS / q->n_bucket);
    q->cell = calloc(q->n_bucket * n_range, sizeof *q->cell);
    return q->cell ? SLU_OK
                   : slu_fail_nomem(err, q->n_bucket * n_range * sizeof *q->cell);
}

static int read_part(struct slu_shuffle_flow *q, struct slu_permute *p,
                     struct slu_err *err)
{
    struct slu_table *t;
    int rc = SLU_OK;

    if (q->cfg.mix) {
        slu_mixer_free(p->mixer);
        p->mixer = NULL;
        p->planned = true;
        rc = slu_flow_in(q->flow, STATE, &t, err);
        if (!rc)
            rc = slu_shuffle_load_state(q, t, &p->mixer, err);
    }
    if (slu_permute_counted(&q->cfg)) {
        p->planned = true;
        rc = slu_shuffle_load_ends(q, p, err);
    }
    if (rc)
        return rc;
    init_ranges(q, p);
    p->put = account_cell;
    p->put_ctx = q;
    rc = slu_permute_read(p, q->reader, 0, NULL, q->progress, q->ctx, err);
    return rc ? rc : q->judge(q->ctx, slu_permute_result(p), err);
}

static int put_cells(struct slu_shuffle_flow *q, struct slu_permute *p,
                     struct slu_err *err)
{
    struct slu_shuffle_account *b = &q->account;
    const uint64_t n = q->n_bucket * slu_flow_ranges(q->flow);
    int rc = slu_reader_identity(q->reader, &b->stream, err);

    b->in = *slu_flow_sum(q->flow);
    b->result = *slu_permute_result(p);
    b->result.out = (struct slu_count){0};
    for (uint64_t i = 0; i < n && !rc; i++) {
        uint64_t w[CELL_WORDS];
        uint64_t *sum = slu_shuffle_put_count(w, q->cell[i].n);
        sum[0] = q->cell[i].checksum.lo;
        sum[1] = q->cell[i].checksum.hi;
        rc = slu_table_put(slu_flow_out(q->flow, CELL), w, err);
        slu_count_add(&b->result.out, q->cell[i].n);
        b->checksum = slu_u128_add(b->checksum, q->cell[i].checksum);
    }
    if (!rc)
        rc = slu_shuffle_check(b, err);
    return rc ? rc : slu_shuffle_put_account(q, p, err);
}

static int scatter(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_shuffle_flow *q = ctx;
    struct slu_permute *p = NULL;

    q->flow = q->cfg.flow = f;
    q->cfg.sorter = slu_table_sorter(slu_flow_out(f, SEQ));
    slu_flow_cut(f, SEQ, cell_of_row);
    int rc = slu_shuffle_new_cells(q, slu_flow_ranges(f), err);
    if (!rc)
        rc = slu_permute_new(&p, &q->cfg, err);
    if (!rc)
        rc = read_part(q, p, err);
    if (!rc)
        rc = put_cells(q, p, err);
    slu_permute_free(p);
    return rc;
}

/* Reads the counts of a part whose file exists. */
static int scattered(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_shuffle_flow *q = ctx;
    struct slu_table *t;
    int rc = slu_flow_mine(f, ACCOUNT, &t, err);

    q->flow = f;
    q->took = calloc(slu_shuffle_took_words(q) + 1, sizeof *q->took);
    if (!rc && !q->took)
        rc = slu_fail_nomem(err, slu_shuffle_took_words(q) * sizeof *q->took);
    return rc ? rc : slu_shuffle_add_account(q, slu_flow_part(f), t, err);
}

/* ---- the stages ---- */

static const struct slu_stage_input lines[] = {{LINE, SLU_READ_ALL},
                                               {SOURCE, SLU_READ_ALL}};
static const struct slu_stage_input keys[] = {{KEY, SLU_READ_ALL},
                                              {SOURCE, SLU_READ_ALL}};
static const struct slu_stage_input own_state[] = {{STATE, SLU_READ_RANGE}};
static const struct slu_stage_input range[] = {
    {ACCOUNT, SLU_READ_ALL}, {CELL, SLU_READ_ALL}, {SEQ, SLU_READ_RANGE}};
static const struct slu_stage_input accounts[] = {{STATE, SLU_READ_ALL},
                                                  {ACCOUNT, SLU_READ_ALL}};
static const unsigned counted[] = {LINE, SOURCE}, keyed[] = {KEY, SOURCE},
                      mixed[] = {STATE}, sequences[] = {SEQ, ACCOUNT, CELL};

enum { PART = SLU_STAGE_READS | SLU_STAGE_NAMES };
enum { STREAM = SLU_STAGE_RANGES | SLU_STAGE_WRITES };
enum { SHARDS = SLU_STAGE_RANGES | SLU_STAGE_SET, SET = SLU_STAGE_ONE | SLU_STAGE_SET };

static const struct slu_stage plain_stream[] = {
    {"scatter", PART, NULL, 0, sequences, 3, 0, scatter, scattered},
    {"gather", STREAM, range, 3, NULL, 0, 0, slu_shuffle_gather, NULL},
};
static const struct slu_stage plain_shards[] = {
    {"scatter", PART, NULL, 0, sequences, 3, 0, scatter, scattered},
    {"gather", SHARDS, range, 3, NULL, 0, 0, slu_shuffle_gather, NULL},
    {"finish", SET, accounts + 1, 1, NULL, 0, 0, slu_shuffle_finish, NULL},
};
static const struct slu_stage mixed_stream[] = {
    {"count", SLU_STAGE_READS, NULL, 0, counted, 2, 4, count, NULL},
    {"mix", SLU_STAGE_ONE, lines, 2, mixed, 1, 56, mix, NULL},
    {"scatter", PART, own_state, 1, sequences, 3, 0, scatter, scattered},
    {"gather", STREAM, range, 3, NULL, 0, 0, slu_shuffle_gather, NULL},
};
static const struct slu_stage cut_stream[] = {
    {"count", SLU_STAGE_READS, NULL, 0, keyed, 2, 0, slu_shuffle_count_keys, NULL},
    {"cut", SLU_STAGE_ONE, keys, 2, mixed, 1, 0, slu_shuffle_cut, NULL},
    {"scatter", PART, own_state, 1, sequences, 3, 0, scatter, scattered},
    {"gather", STREAM, range, 3, NULL, 0, 0, slu_shuffle_gather, NULL},
};
static const struct slu_stage cut_shards[] = {
    {"count", SLU_STAGE_READS, NULL, 0, keyed, 2, 0, slu_shuffle_count_keys, NULL},
    {"cut", SLU_STAGE_ONE, keys, 2, mixed, 1, 0, slu_shuffle_cut, NULL},
    {"scatter", PART, own_state, 1, sequences, 3, 0, scatter, scattered},
    {"gather", SHARDS, range, 3, NULL, 0, 0, slu_shuffle_gather, NULL},
    {"finish", SET, accounts + 1, 1, NULL, 0, 0, slu_shuffle_finish, NULL},
};
static const struct slu_stage mixed_shards[] = {
    {"count", SLU_STAGE_READS, NULL, 0, counted, 2, 4, count, NULL},
    {"mix", SLU_STAGE_ONE, lines, 2, mixed, 1, 56, mix, NULL},
    {"scatter", PART, own_state, 1, sequences, 3, 0, scatter, scattered},
    {"gather", SHARDS, range, 3, NULL, 0, 0, slu_shuffle_gather, NULL},
    {"finish", SET, accounts, 2, NULL, 0, 0, slu_shuffle_finish, NULL},
};

#define SPEC(tables, stages)                                                           \
    {                                                                                  \
        "shuffle", tables, stages, TABLES, sizeof(stages) / sizeof *(stages), NULL     \
    }
static const struct slu_flow_spec specs[3][2] = {
    [SLU_SHUFFLE_PLAIN] = {SPEC(of_stream, plain_stream),
                           SPEC(of_shards, plain_shards)},
    [SLU_SHUFFLE_MIX] = {SPEC(of_stream, mixed_stream), SPEC(of_shards, mixed_shards)},
    [SLU_SHUFFLE_CUT] = {SPEC(of_stream, cut_stream), SPEC(of_shards, cut_shards)},
};

const struct slu_flow_spec *slu_shuffle_flow_spec(enum slu_shuffle_plan plan, bool set)
{
    return &specs[plan][set];
}
