#include "lib/dedup/passages.h"

#include <stdlib.h>
#include <string.h>

#include "lib/dedup/passages_private.h"
#include "lib/stream/seqrec.h"
#include "lib/sidecar.h"

int slu_passages_new(struct slu_passages **out, const struct slu_passages_cfg *cfg,
                     struct slu_err *err)
{
    uint64_t spool_byte = 1 << 20, rest = cfg->budget_byte - spool_byte;

    *out = NULL;
    if (cfg->n_tok < SLU_PASSAGE_MIN_TOK || cfg->n_tok > SLU_PASSAGE_MAX_TOK)
        return slu_fail(err, SLU_E_USAGE,
                        "passages of %u tokens are not between %d and %d", cfg->n_tok,
                        SLU_PASSAGE_MIN_TOK, SLU_PASSAGE_MAX_TOK);
    if (cfg->budget_byte < SLU_PASSAGES_MIN_BUDGET)
        return slu_fail(err, SLU_E_LIMIT, "%u MiB is the least memory for passages",
                        (unsigned)(SLU_PASSAGES_MIN_BUDGET >> 20));
    struct slu_passages *x = calloc(1, sizeof *x);
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    /* Cells, and beside them what groups them and what is found. */
    x->cells_byte = rest / 2;
    x->work_byte = rest / 4;
    x->asked_byte = rest / 16;
    x->cut.special = cfg->special;
    x->cut.min_keep_tok = cfg->min_keep_tok;
    slu_seqrec_init(&x->rec);
    x->tmpdir = strdup(cfg->tmpdir);
    int rc = x->tmpdir ? slu_scan_init(&x->scan, cfg->n_tok, err)
                       : slu_fail_nomem(err, strlen(cfg->tmpdir));
    if (rc == SLU_OK)
        rc = slu_spool_new(&x->spool, spool_byte, x->tmpdir, err);
    if (rc == SLU_OK)
        rc = slu_cells_new(&x->blocks, x->cells_byte, x->tmpdir, err);
    if (rc == SLU_OK)
        rc = slu_ranges_new(&x->ranges, rest / 16 * 3, x->tmpdir, cfg->n_threads,
                            cfg->n_tok, cfg->passage != NULL, err);
    if (rc) {
        slu_passages_free(x);
        return rc;
    }
    *out = x;
    return SLU_OK;
}

void slu_passages_free(struct slu_passages *x)
{
    if (!x)
        return;
    slu_scan_release(&x->scan);
    slu_spool_free(x->spool);
    slu_cells_free(x->blocks);
    slu_cells_free(x->windows);
    slu_sorter_free(x->asked);
    slu_ranges_free(x->ranges);
    slu_gaps_release(&x->cut);
    slu_seqrec_release(&x->rec);
    slu_buf_release(&x->found);
    free(x->range);
    free(x->tmpdir);
    free(x);
}

const struct slu_passages_result *slu_passages_result(struct slu_passages *x)
{
    return &x->result;
}

/* ---- step 1 ---- */

int slu_passages_scan(struct slu_scan *scan, const struct slu_specials *special,
                      const struct slu_batch *b, struct slu_buf *out,
                      struct slu_err *err)
{
    uint64_t place = 0;

    slu_buf_clear(out);
    for (size_t i = 0; i < b->n_seq; i++) {
        const struct slu_seq *q = &b->seq[i];
        struct slu_walk w;
        struct slu_stretch s;
        slu_walk_init(&w, b, q, special, place);
        while (slu_walk_run(&w))
            while (slu_walk_stretch(&w, &s)) {
                int rc = slu_scan_blocks(scan, slu_batch_at(b, s.tok_off), s.len_tok,
                                         b->tok_bytes, s.place, out, err);
                if (rc)
                    return rc;
            }
        place += slu_seq_places(q->len_tok, q->n_seg);
    }
    return SLU_OK;
}

/* A record in the spool: its length, its bytes, zeros up to a multiple of 8. */
static int spool_seq(struct slu_passages *x, const struct slu_batch *b,
                     const struct slu_seq *q, struct slu_err *err)
{
    static const uint8_t zero[8];
    int rc = slu_seqrec_pack(&x->rec, b, q, err);
    uint64_t n = slu_seqrec_size(&x->rec);

    if (rc == SLU_OK)
        rc = slu_spool_put(x->spool, &n, sizeof n, err);
    for (unsigned i = 0; rc == SLU_OK && i < SLU_SEQREC_PIECES; i++)
        if (x->rec.piece[i].n)
            rc = slu_spool_put(x->spool, x->rec.piece[i].p, x->rec.piece[i].n, err);
    if (rc == SLU_OK)
        rc = slu_spool_put(x->spool, zero, (size_t)-n & 7, err);
    if (n + 8 > x->max_record)
        x->max_record = n + 8;
    x->n_seq++;
    return rc;
}

/* A batch and its blocks, in stream order. */
static int take_batch(struct slu_passages *x, const struct slu_batch *b,
                      struct slu_buf *blocks, struct slu_err *err)
{
    struct slu_keyed *r = (void *)blocks->data;
    size_t n = blocks->len / sizeof *r;
    uint64_t base = x->n_place;
    int rc = SLU_OK;

    for (size_t i = 0; rc == SLU_OK && i < b->n_seq; i++) {
        const struct slu_seq *q = &b->seq[i];
        if (x->cfg.passage) {
            struct slu_walk w;
            slu_walk_init(&w, b, q, &x->cfg.special, x->n_place);
            while (rc == SLU_OK && slu_walk_run(&w))
                rc = slu_ranges_run(x->ranges, &w.run, w.run_place, err);
        }
        x->n_place += slu_seq_places(q->len_tok, q->n_seg);
        if (rc == SLU_OK)
            rc = spool_seq(x, b, q, err);
    }
    if (rc == SLU_OK && x->n_place >> SLU_PLACE_BITS)
        rc = slu_fail(err, SLU_E_LIMIT, "passages of more than 2^%d tokens",
                      SLU_PLACE_BITS);
    for (size_t i = 0; i < n; i++)
        r[i].val += base << 16;
    x->result.blocks += n;
    return rc ? rc : slu_cells_put(x->blocks, r, n, err);
}

int slu_passages_put(struct slu_passages *x, const struct slu_batch *b,
                     struct slu_err *err)
{
    int rc = slu_passages_scan(&x->scan, &x->cfg.special, b, &x->found, err);

    return rc ? rc : take_batch(x, b, &x->found, err);
}

/* ---- steps 2 and 3: what is found ---- */

static int take_block_finds(void *ctx, struct slu_buf *out, struct slu_err *err)
{
    struct slu_passages *x = ctx;
    const struct slu_found *f = (const void *)out->data, *end;
    int rc = SLU_OK;

    for (end = f + out->len / sizeof *f; rc == SLU_OK && f < end; f++) {
        if (f->kind != SLU_FOUND_ASK) {
            x->result.repeated_blocks++;
            rc = slu_ranges_put(x->ranges, f, false, err);
            continue;
        }
        struct slu_sorter_cfg cfg = {x->asked_byte, x->tmpdir, x->cfg.n_threads};
        const uint64_t count = f->count;
        const struct slu_piece piece = {&count, sizeof count};
        x->result.asked_blocks++;
        if (!x->asked)
            rc = slu_sorter_new(&x->asked, &cfg, err);
        if (rc == SLU_OK)
            rc = slu_sorter_add(x->asked, (struct slu_u128){0, f->place << x->spread},
                                &piece, 1, err);
    }
    return rc;
}

static int take_window_finds(void *ctx, struct slu_buf *out, struct slu_err *err)
{
    struct slu_passages *x = ctx;
    const struct slu_found *f = (const void *)out->data, *end;
    int rc = SLU_OK;

    for (end = f + out->len / sizeof *f; rc == SLU_OK && f < end; f++)
        rc = slu_ranges_put(x->ranges, f, true, err);
    return rc;
}

static int meet(struct slu_passages *x, struct slu_cells **c, bool windows,
                struct slu_err *err)
{
    struct slu_cells_ops ops = {.n_tok = x->cfg.n_tok, .ctx = x};

    if (windows)
        slu_match_windows(&ops);
    else
        slu_match_blocks(&ops);
    ops.take = windows ? take_window_finds : take_block_finds;
    int rc = slu_cells_groups(*c, &ops, x->work_byte, x->cfg.n_threads, err);
    x->result.spilled_byte += slu_cells_spilled(*c);
    slu_cells_free(*c);
    *c = NULL;
    return rc;
}

static void phase(struct slu_passages *x, const char *name)
{
    if (x->cfg.phase)
        x->cfg.phase(x->cfg.ctx, name);
}

int slu_passages_finish(struct slu_passages *x, struct slu_err *err)
{
    x->spread = (unsigned)__builtin_clzll(x->n_place | 1);
    slu_ranges_places(x->ranges, x->n_place);
    phase(x, "match");
    int rc = meet(x, &x->blocks, false, err);

    if (rc == SLU_OK && x->asked) {
        phase(x, "ask");
        rc = slu_cells_new(&x->windows, x->cells_byte, x->tmpdir, err);
        if (rc == SLU_OK)
            rc = slu_passages_ask(x, err);
        x->result.spilled_byte += slu_sorter_spilled(x->asked);
        slu_sorter_free(x->asked);
        x->asked = NULL;
        if (rc == SLU_OK)
            rc = meet(x, &x->windows, true, err);
    }
    phase(x, "sort");
    if (rc == SLU_OK)
        rc = slu_ranges_seal(x->ranges, err);
    phase(x, "write");
    if (rc == SLU_OK)
        rc = slu_passages_emit(x, err);
    x->result.spilled_byte += slu_ranges_spilled(x->ranges);
    x->result.spilled_byte += slu_spool_spilled(x->spool);
    return rc;
}

/* ---- a whole stream ---- */

struct run {
    struct slu_passages *x;
    struct slu_sidecar blocks;
    struct slu_scan *scan; /* a worker each */
};

static int work(void *ctx, unsigned worker, struct slu_batch *b, struct slu_err *err)
{
    struct run *t = ctx;
    struct slu_buf *buf;
    int rc = slu_sidecar_of(&t->blocks, b, &buf, err);

    return rc ? rc
              : slu_passages_scan(&t->scan[worker], &t->x->cfg.special, b, buf, err);
}

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct run *t = ctx;
    struct slu_buf *buf;
    int rc = slu_sidecar_of(&t->blocks, b, &buf, err);

    if (rc)
        return rc;
    rc = take_batch(t->x, b, buf, err);
    slu_buf_trim(buf, SLU_KEEP_BATCH_BYTE);
    return rc;
}

int slu_passages_run(struct slu_passages *x, struct slu_reader *r,
                     struct slu_sum *total, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {work, emit};
    unsigned n = x->cfg.n_threads;
    struct run t = {.x = x, .scan = calloc(n, sizeof *t.scan)};
    int rc = t.scan ? SLU_OK : slu_fail_nomem(err, n * sizeof *t.scan);

    phase(x, "scan");
    slu_sidecar_init(&t.blocks);
    for (unsigned i = 0; rc == SLU_OK && i < n; i++)
        rc = slu_scan_init(&t.scan[i], x->cfg.n_tok, err);
    if (rc == SLU_OK)
        rc = slu_stream_run(r, &ops, &t, n, x->cfg.n_slots, total, err);
    for (unsigned i = 0; t.scan && i < n; i++)
        slu_scan_release(&t.scan[i]);
    free(t.scan);
    slu_sidecar_release(&t.blocks);
    return rc ? rc : slu_passages_finish(x, err);
}
