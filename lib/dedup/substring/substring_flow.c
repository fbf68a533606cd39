#include "lib/dedup/substring/substring_flow.h"

#include <stdlib.h>

#include "lib/dedup/substring/substring_cut.h"
#include "lib/dedup/substring/substring_match.h"
#include "lib/dedup/substring/substring_ranges.h"
#include "lib/dedup/substring/substring_scan.h"
#include "lib/dedup/substring/substring_windows.h"

/* The last word of a row of hashes, and a row of one word, is a "run": place << 16 |
 * windows, for the windows from that place on. */
enum { BLOCK, ASK, HIT, WINDOW, FIND, TABLES };
enum { WORDS = 3, RUN = 2, RUN_BITS = 64 - SLU_PLACE_BITS, MOST_RUN = UINT16_MAX };
#define NONE UINT64_MAX

static bool touch(const void *ctx, uint64_t *row, const uint64_t *next);

static const struct slu_table_spec tables[TABLES] = {
    [BLOCK] = {"block", SLU_GROUPS, SLU_CUT_RANGES, WORDS, 42, SLU_ANCHOR_BITS,
               1 << RUN, RUN_BITS, NULL},
    [ASK] = {"ask", SLU_ROWS, SLU_CUT_PARTS, 1, 5, 0, 0, RUN_BITS, NULL},
    [HIT] = {"hit", SLU_ROWS, SLU_CUT_PARTS, 1, 5, 0, 0, RUN_BITS, touch},
    [WINDOW] = {"window", SLU_GROUPS, SLU_CUT_RANGES, WORDS, 42, 64, 1 << RUN, RUN_BITS,
                NULL},
    [FIND] = {"find", SLU_ROWS, SLU_CUT_PARTS, 1, 5, 0, 0, RUN_BITS, touch},
};
/* If first occurrences are wanted, ranges take the shares that hits and finds do not
 * need, and a little more. */
enum { RANGES_SHARE = 12, SHARES = 64 };

static void tell_timing(const struct slu_substring_flow *q, const char *name)
{
    if (q->cfg.timing)
        q->cfg.timing(q->cfg.ctx, name);
}

/* ---- sign ---- */

struct sign {
    struct slu_substring_flow *q;
    struct slu_flow *flow;
    struct slu_table *block;
    struct slu_scan *scan; /* one for each worker */
    uint64_t n_place;
};

/* Finds the blocks of a batch; places count from its first sequence. */
static int scan(void *ctx, unsigned worker, struct slu_batch *b, void *side,
                struct slu_err *err)
{
    const struct sign *t = ctx;
    uint64_t place = 0;

    slu_buf_clear(side);
    for (size_t i = 0; i < b->n_seq; i++) {
        const struct slu_seq *q = &b->seq[i];
        struct slu_walk w;
        struct slu_stretch s;
        slu_walk_init(&w, b, q, &t->q->special, place);
        while (slu_walk_run(&w))
            while (slu_walk_stretch(&w, &s)) {
                struct slu_scan *scan = &t->scan[worker];
                const void *ids;
                int rc = slu_batch_ids(b, s.tok_off, s.len_tok, false, &scan->plain,
                                       &ids, NULL, err);
                if (!rc)
                    rc = slu_scan_blocks(scan, ids, s.len_tok, b->tok_bytes, s.place,
                                         side, err);
                if (rc)
                    return rc;
            }
        place += slu_seq_places(q->len_tok, q->n_seg);
    }
    slu_buf_trim(&t->scan[worker].plain, SLU_KEEP_BYTE);
    return SLU_OK;
}

/* One process: stores the data of a sequence that later stages need. */
static int keep(struct sign *t, const struct slu_batch *b, const struct slu_seq *q,
                struct slu_err *err)
{
    struct slu_walk w;
    int rc = slu_flow_log(t->flow, b, q, err);

    slu_walk_init(&w, b, q, &t->q->special, t->n_place);
    while (t->q->ranges && !rc && slu_walk_run(&w))
        rc = slu_ranges_run(t->q->ranges, &w.run, w.run_place, err);
    return rc;
}

static int put_blocks(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct sign *t = ctx;
    struct slu_buf *buf = side;
    struct slu_keyed *r = (void *)buf->data;
    const size_t n = buf->len / sizeof *r;
    const uint64_t base = t->n_place;
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        if (slu_flow_here(t->flow))
            rc = keep(t, b, &b->seq[i], err);
        t->n_place += slu_seq_places(b->seq[i].len_tok, b->seq[i].n_seg);
    }
    if (!rc && t->n_place >> SLU_PLACE_BITS)
        rc = slu_fail(err, SLU_E_LIMIT,
                      "more than 2^%d tokens to find repeated passages in",
                      SLU_PLACE_BITS);
    for (size_t i = 0; i < n; i++)
        r[i].val += base << RUN_BITS;
    if (!rc)
        rc = slu_table_put_rows(t->block, (const void *)r, n, err);
    t->q->result.blocks += n;
    slu_buf_trim(buf, SLU_KEEP_BATCH_BYTE);
    return rc;
}

static void release_blocks(void *side)
{
    slu_buf_release(side);
}

static int sign(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    static const struct slu_side_ops ops = {sizeof(struct slu_buf), scan, put_blocks,
                                            release_blocks};
    struct slu_substring_flow *q = ctx;
    const unsigned n = q->cfg.n_threads;
    struct sign t = {q, f, slu_flow_out(f, BLOCK), calloc(n, sizeof *t.scan), 0};
    int rc = t.scan ? SLU_OK : slu_fail_nomem(err, n * sizeof *t.scan);

    tell_timing(q, "scan");
    for (unsigned i = 0; !rc && i < n; i++)
        rc = slu_scan_init(&t.scan[i], q->cfg.n_tok, err);
    if (!rc)
        rc = slu_flow_read(f, &ops, &t, err);
    for (unsigned i = 0; t.scan && i < n; i++)
        slu_scan_release(&t.scan[i]);
    free(t.scan);
    slu_flow_span(f, t.n_place);
    if (q->ranges)
        slu_ranges_places(q->ranges, t.n_place);
    return rc;
}

/* ---- group, and match ---- */

/* Runs whose ids touch or overlap are merged, as long as the number of windows fits. */
static bool touch(const void *ctx, uint64_t *row, const uint64_t *next)
{
    const struct slu_substring_flow *q = ctx;
    const uint64_t place = *row >> RUN_BITS, end = place + (*row & MOST_RUN);
    const uint64_t at = *next >> RUN_BITS, stop = at + (*next & MOST_RUN);
    const uint64_t n = (stop > end ? stop : end) - place;

    if (at > end - 1 + q->cfg.n_tok || n > MOST_RUN)
        return false;
    *row = place << RUN_BITS | n;
    return true;
}

struct grouping {
    struct slu_substring_flow *q;
    bool exact;                 /* true: match */
    struct slu_table *ask, *to; /* ask: of group; to: hits or finds */
    uint64_t n_asked, n_repeat;
};

static int take(void *ctx, struct slu_buf *out, struct slu_err *err)
{
    struct grouping *m = ctx;
    const struct slu_found *f = (const void *)out->data, *end;
    int rc = SLU_OK;

    for (end = f + out->len / sizeof *f; f < end && !rc; f++) {
        const uint64_t run = f->place << RUN_BITS | f->count;
        m->n_asked += f->kind == SLU_FOUND_ASK;
        m->n_repeat += f->kind == SLU_FOUND_REPEAT;
        if (f->kind == SLU_FOUND_ASK)
            rc = slu_table_put(m->ask, &run, err);
        else if (m->q->ranges)
            rc = slu_ranges_put(m->q->ranges, f, m->exact, err);
        else if (f->kind == SLU_FOUND_REPEAT)
            rc = slu_table_put(m->to, &run, err);
    }
    return rc;
}

static int group_rows(struct grouping *m, struct slu_flow *f, unsigned in,
                      struct slu_err *err)
{
    struct slu_group_ops ops = {.arg = &m->q->cfg.n_tok, .ctx = m, .take = take};
    struct slu_table *t;
    int rc = slu_flow_in(f, in, &t, err);

    if (m->exact)
        slu_match_windows(&ops);
    else
        slu_match_blocks(&ops);
    return rc ? rc : slu_table_group(t, &ops, err);
}

static int group(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_substring_flow *q = ctx;
    struct grouping m = {q, false, slu_flow_out(f, ASK), slu_flow_out(f, HIT), 0, 0};

    tell_timing(q, "match");
    int rc = group_rows(&m, f, BLOCK, err);
    q->result.asked_blocks = m.n_asked;
    q->result.repeated_blocks = m.n_repeat;
    return rc;
}

static int match(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct slu_substring_flow *q = ctx;
    struct grouping m = {q, true, NULL, slu_flow_out(f, FIND), 0, 0};
    int rc = group_rows(&m, f, WINDOW, err);

    q->repeated_windows = m.n_repeat;
    return rc;
}

/* ---- ask ---- */

/* A row that is not in this stream was made from another stream, unless tables are
 * damaged; their checksums show this at the end. NULL: a table that has ended. */
static int astray(struct slu_flow *f, struct slu_table *a, struct slu_table *b,
                  struct slu_err *err)
{
    struct slu_row r;
    int rc = SLU_OK;

    while (a && !rc)
        rc = slu_table_next(a, &r, err);
    for (rc = rc == SLU_EOF ? SLU_OK : rc; b && !rc;)
        rc = slu_table_next(b, &r, err);
    return rc && rc != SLU_EOF ? rc : slu_flow_other_stream(f, err);
}

struct ask {
    struct slu_flow *flow;
    struct slu_windows windows;
    uint64_t n_place;
};

static int put_windows(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct ask *t = ctx;
    int rc = SLU_OK;

    (void)side;
    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        rc = slu_windows_seq(&t->windows, b, &b->seq[i], t->n_place, err);
        t->n_place += slu_seq_places(b->seq[i].len_tok, b->seq[i].n_seg);
    }
    return rc == SLU_E_CONSERVATION ? astray(t->flow, t->windows.asked, NULL, err) : rc;
}

static int ask(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    static const struct slu_side_ops ops = {.emit = put_windows};
    struct slu_substring_flow *q = ctx;
    struct ask t = {
        f,
        {.special = &q->special, .n_tok = q->cfg.n_tok, .to = slu_flow_out(f, WINDOW)},
        0};

    tell_timing(q, "ask");
    int rc = slu_flow_in(f, ASK, &t.windows.asked, err);
    if (!rc)
        rc = slu_windows_begin(&t.windows, err);
    if (!rc && (t.windows.has || !slu_flow_here(f)))
        rc = slu_flow_read(f, &ops, &t, err);
    slu_flow_span(f, t.n_place);
    q->asked_windows = t.windows.n;
    return rc || !t.windows.has ? rc : astray(f, t.windows.asked, NULL, err);
}

/* ---- filter ---- */

struct filter {
    struct slu_substring_flow *q;
    struct slu_flow *flow;
    struct {
        struct slu_table *table;
        uint64_t from, to; /* range of its next run; NONE: no run is left */
    } of[2];               /* 0: hits, 1: finds */
    struct slu_gaps cut;
    struct slu_range *range; /* ranges of a sequence, and the next one */
    size_t n_range, cap_range;
    bool more; /* there is a next range */
    struct slu_batch out;
    uint64_t n_place;
};

static int next_run(struct filter *t, unsigned i, struct slu_err *err)
{
    struct slu_row r;
    int rc = slu_table_next(t->of[i].table, &r, err);

    t->of[i].from = NONE;
    if (rc)
        return rc == SLU_EOF ? SLU_OK : rc;
    const uint64_t run = *(const uint64_t *)r.p;
    t->of[i].from = run >> RUN_BITS;
    t->of[i].to = t->of[i].from + (run & MOST_RUN) - 1 + t->q->cfg.n_tok;
    return run & MOST_RUN ? SLU_OK
                          : slu_flow_damaged(t->flow, i ? FIND : HIT, r.part, err);
}

static int astray_run(const struct filter *t, struct slu_err *err)
{
    return astray(t->flow, t->of[0].from == NONE ? NULL : t->of[0].table,
                  t->of[1].from == NONE ? NULL : t->of[1].table, err);
}

/* Returns the next passage. */
static int next_range(struct filter *t, struct slu_range *r, struct slu_err *err)
{
    unsigned i = t->of[1].from < t->of[0].from;
    int rc = SLU_OK;

    if (t->q->ranges)
        return slu_ranges_next(t->q->ranges, r, err);
    if (t->of[i].from == NONE)
        return SLU_EOF;
    *r = (struct slu_range){.from = t->of[i].from};
    for (r->to = r->from; !rc && t->of[i].from != NONE && t->of[i].from <= r->to;
         i = t->of[1].from < t->of[0].from) {
        r->to = t->of[i].to > r->to ? t->of[i].to : r->to;
        rc = next_run(t, i, err);
    }
    return rc;
}

static int read_ahead(struct filter *t, struct slu_err *err)
{
    int rc = slu_grow(&t->range, &t->cap_range, t->n_range + 1, sizeof *t->range, err);

    if (!rc)
        rc = next_range(t, &t->range[t->n_range], err);
    t->more = !rc;
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int begin_filter(struct filter *t, struct slu_err *err)
{
    static const unsigned table[] = {HIT, FIND};
    int rc = SLU_OK;

    for (unsigned i = 0; !t->q->ranges && i < 2 && !rc; i++) {
        rc = slu_flow_in(t->flow, table[i], &t->of[i].table, err);
        if (!rc)
            rc = next_run(t, i, err);
    }
    if (t->q->ranges)
        rc = slu_ranges_seal(t->q->ranges, err);
    return rc ? rc : read_ahead(t, err);
}

/* Finds the ranges of the next sequence, whose places end at `end`: t->range[0 …
 * n_range), followed by the next range of the stream. */
static int ranges_of(struct filter *t, uint64_t end, struct slu_err *err)
{
    int rc = SLU_OK;

    t->range[0] = t->range[t->n_range]; /* the range that was read ahead */
    for (t->n_range = 0; !rc && t->more && t->range[t->n_range].from < end;) {
        t->n_range++;
        rc = read_ahead(t, err);
    }
    return rc;
}

static int tell(struct filter *t, const struct slu_batch *b, struct slu_err *err)
{
    const struct slu_range *r = t->range, *end = r + t->n_range;
    struct slu_walk w;
    int rc = SLU_OK;

    slu_walk_init(&w, b, &b->seq[b->n_seq - 1], &t->q->special, t->n_place);
    while (r < end && !rc && slu_walk_run(&w)) {
        uint64_t stop = w.run_place + w.run.seg.len_tok;
        for (; r < end && r->from < stop && !rc; r++) {
            const struct slu_seg *s = &w.run.seg;
            const struct slu_passage p = {
                {s->source, s->document, s->offset + (r->from - w.run_place)},
                r->first,
                r->to - r->from};
            rc = t->q->cfg.passage(t->q->cfg.ctx, &p, err);
        }
    }
    return rc;
}

/* Reports and cuts the last sequence of t->out, which has ranges. */
static int apply(struct filter *t, struct slu_err *err)
{
    struct slu_substring_result *r = &t->q->result;
    struct slu_batch *b = &t->out;
    struct slu_count before = slu_seq_count(b, &b->seq[b->n_seq - 1]);
    struct slu_count after = {0};
    struct slu_gaps_did did = {0};
    size_t n_seq = b->n_seq;
    int rc = t->q->cfg.passage ? tell(t, b, err) : SLU_OK;

    r->passages += t->n_range;
    if (rc || !t->q->cfg.cut) {
        for (size_t i = 0; i < t->n_range; i++)
            r->passage_tok += t->range[i].to - t->range[i].from;
        return rc;
    }
    rc = slu_gaps_cut(&t->cut, b, t->n_place, t->range, t->n_range, &did, err);
    if (rc)
        return rc;
    if (b->n_seq == n_seq)
        after = slu_seq_count(b, &b->seq[b->n_seq - 1]);
    r->passage_tok += did.passage_tok;
    r->short_tok += did.short_tok;
    r->documents_cut += did.documents_cut;
    r->documents_gone += did.documents_gone;
    slu_count_add(&r->dropped,
                  (struct slu_count){before.documents - after.documents,
                                     before.sequences - after.sequences,
                                     did.passage_tok + did.special_tok,
                                     before.loss_tokens - after.loss_tokens});
    return SLU_OK;
}

/* Copies sequence i of b, cut. */
static int take_seq(struct filter *t, const struct slu_batch *b, size_t i,
                    struct slu_err *err)
{
    const struct slu_seq *q = &b->seq[i];
    t->out.masks = b->masks;
    const uint64_t end = t->n_place + slu_seq_places(q->len_tok, q->n_seg);
    int rc = slu_batch_add(&t->out, slu_batch_at(b, q->tok_off), q->len_tok,
                           b->seg + q->seg_off, q->n_seg, b->str.data, err);

    if (!rc)
        rc = ranges_of(t, end, err);
    if (!rc && t->n_range)
        rc = apply(t, err);
    t->n_place = end;
    return rc == SLU_E_CONSERVATION ? astray_run(t, err) : rc;
}

static int take_batch(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct filter *t = ctx;
    const struct slu_substring_cfg *cfg = &t->q->cfg;
    uint64_t end = t->n_place;
    int rc = cfg->seen ? cfg->seen(cfg->ctx, b, err) : SLU_OK;

    (void)side;
    if (rc)
        return rc;
    for (size_t i = 0; i < b->n_seq; i++)
        end += slu_seq_places(b->seq[i].len_tok, b->seq[i].n_seg);
    if (!t->more || t->range[t->n_range].from >= end) {
        t->n_place = end;
        return cfg->emit(cfg->ctx, b, err);
    }
    slu_batch_trim(&t->out);
    for (size_t i = 0; i < b->n_seq && !rc; i++)
        rc = take_seq(t, b, i, err);
    return rc || !t->out.n_seq ? rc : cfg->emit(cfg->ctx, &t->out, err);
}

static int filter(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    static const struct slu_side_ops ops = {.emit = take_batch};
    struct slu_substring_flow *q = ctx;
    struct filter t = {.q = q, .flow = f, .of = {{.from = NONE}, {.from = NONE}}};
    int rc = q->open ? q->open(q->cfg.ctx, err) : SLU_OK;

    t.cut.special = q->special;
    t.cut.min_keep_tok = q->cfg.min_keep_tok;
    slu_batch_init(&t.out, q->tok_bytes);
    tell_timing(q, "sort");
    if (!rc)
        rc = begin_filter(&t, err);
    tell_timing(q, "write");
    if (!rc)
        rc = slu_flow_read(f, &ops, &t, err);
    slu_gaps_release(&t.cut);
    slu_batch_release(&t.out);
    free(t.range);
    return rc || !t.more ? rc : astray_run(&t, err);
}

/* ---- the flow ---- */

static const struct slu_stage stages[] = {
    {"sign", SLU_STAGE_READS, NULL, 0, SLU_STAGE_OUT(BLOCK), 1, 0, sign},
    {"group", SLU_STAGE_RANGES, SLU_STAGE_IN({BLOCK, SLU_READ_RANGE}), 1,
     SLU_STAGE_OUT(ASK, HIT), 2, 0, group},
    {"ask", SLU_STAGE_READS, SLU_STAGE_IN({ASK, SLU_READ_RANGE}), 1,
     SLU_STAGE_OUT(WINDOW), 1, 0, ask},
    {"match", SLU_STAGE_RANGES, SLU_STAGE_IN({WINDOW, SLU_READ_RANGE}), 1,
     SLU_STAGE_OUT(FIND), 1, 0, match},
    {"filter", SLU_STAGE_READS | SLU_STAGE_WRITES,
     SLU_STAGE_IN({HIT, SLU_READ_RANGE}, {FIND, SLU_READ_RANGE}), 2, NULL, 0, 0,
     filter},
};

const struct slu_flow_spec slu_substring_flow_spec = {
    "substring", tables, stages, TABLES, sizeof stages / sizeof *stages, NULL};

int slu_substring_begin(void *ctx, const struct slu_header *h, struct slu_names *names,
                        struct slu_err *err)
{
    struct slu_substring_flow *q = ctx;

    (void)names;
    q->tok_bytes = h->tok_bytes;
    slu_specials_add(&q->special, h->eos);
    slu_specials_add(&q->special, h->bos);
    slu_specials_add(&q->special, h->pad);
    return h->no_tokens ? slu_fail(err, SLU_E_MISMATCH,
                                   "the stream has segment rows only, and no tokens to "
                                   "compare")
                        : SLU_OK;
}

int slu_substring_run(const struct slu_substring_cfg *cfg, struct slu_reader *r,
                      struct slu_sum *total, struct slu_substring_result *result,
                      struct slu_err *err)
{
    struct slu_substring_flow q = {.cfg = *cfg};
    const struct slu_flow_cfg flow = {.spec = &slu_substring_flow_spec,
                                      .reader = r,
                                      .ctx = &q,
                                      .begin = slu_substring_begin,
                                      .budget_byte = cfg->budget_byte,
                                      .tmpdir = cfg->tmpdir,
                                      .n_threads = cfg->n_threads,
                                      .n_slots = cfg->n_slots};
    struct slu_flow_report report = {.skipped = false};
    int rc = SLU_OK;

    if (cfg->n_tok < SLU_PASSAGE_MIN_TOK || cfg->n_tok > SLU_PASSAGE_MAX_TOK)
        return slu_fail(err, SLU_E_USAGE,
                        "a repeated passage of %u tokens; %d to %d are possible",
                        cfg->n_tok, SLU_PASSAGE_MIN_TOK, SLU_PASSAGE_MAX_TOK);
    if (cfg->budget_byte < SLU_SUBSTRING_MIN_BUDGET)
        return slu_fail(err, SLU_E_LIMIT,
                        "finding repeated passages takes at least %u MiB of memory",
                        (unsigned)(SLU_SUBSTRING_MIN_BUDGET >> 20));
    if (cfg->passage)
        rc = slu_ranges_new(&q.ranges, cfg->budget_byte / SHARES * RANGES_SHARE,
                            cfg->tmpdir, cfg->n_threads, cfg->n_tok, err);
    if (!rc)
        rc = slu_flow_run(&flow, &report, err);
    *total = report.in;
    *result = q.result;
    result->spilled_byte = report.spilled_byte;
    if (q.ranges)
        result->spilled_byte += slu_ranges_spilled(q.ranges);
    slu_ranges_free(q.ranges);
    return rc;
}
