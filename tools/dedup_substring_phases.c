/* dedup --substring --phase: one step of many, with files between
 * (lib/dedup/passages_phases.h). */
#include "lib/dedup/passages_phases.h"

#include "tools/dedup_private.h"

static void report(struct cli_ctx *ctx, int phase,
                   const struct slu_passages_phase_result *r)
{
    ctx->spill_bytes = r->spilled_byte;
    cli_stat_json(ctx, "skipped", r->skipped ? "true" : "false");
    if (phase == DEDUP_SIGN) {
        cli_stat_u64(ctx, "signed_sequences", r->sequences);
        cli_stat_u64(ctx, "blocks", r->blocks);
    } else if (phase == DEDUP_MERGE) {
        cli_stat_u64(ctx, "repeated_blocks", r->repeated_blocks);
        cli_stat_u64(ctx, "asked_blocks", r->asked_blocks);
    } else if (phase == DEDUP_ASK) {
        cli_stat_u64(ctx, "asked_windows", r->asked_windows);
    } else {
        cli_stat_u64(ctx, "repeated_windows", r->repeated_windows);
    }
    if (r->skipped)
        cli_note(ctx, "%s: was there already", dedup_phase_names[phase]);
}

/* sign and ask */
static int read_part(struct cli_ctx *ctx, struct slu_phase_cfg *c, bool ask,
                     struct slu_passages_phase_result *result, struct slu_err *err)
{
    struct slu_reader *r;
    struct slu_sum in = {0};
    uint64_t in_flight = ctx->common.memory / 4; /* batches and their blocks */
    unsigned n_slots = cli_slots(ctx, in_flight / 4 * 3);
    int rc = cli_open_reader(ctx, &r, err);

    if (rc)
        return rc;
    if (slu_reader_header(r)->no_tokens)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "the stream has segment rows only, and no tokens to compare");
    c->budget_byte = ctx->common.memory - in_flight;
    if (rc == SLU_OK)
        rc = ask ? slu_passages_phase_ask(c, r, n_slots, &in, result, err)
                 : slu_passages_phase_sign(c, r, n_slots, &in, result, err);
    slu_reader_free(r);
    return rc;
}

struct filter {
    struct dedup_io io;
    struct slu_passages_filter *filter;
};

static int take(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct filter *f = ctx;

    return slu_passages_filter_batch(f->filter, b, err);
}

static int filter(struct cli_ctx *ctx, struct slu_phase_cfg *c, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {NULL, take};
    const struct dedup_opts *o = ctx->opts;
    const struct slu_passages_result *result = NULL;
    struct filter f = {.filter = NULL};
    struct slu_sum in = {0};
    int rc = dedup_open(&f.io, ctx, err);

    /* Batches in flight, one that is cut, and a row and a copy of it in the writer. */
    c->budget_byte = ctx->common.memory / 2;
    if (rc == SLU_OK)
        slu_reader_track(f.io.reader);
    if (rc == SLU_OK)
        rc = slu_passages_filter_open(&f.filter, c, slu_reader_header(f.io.reader),
                                      o->min_keep, dedup_emit, &f.io, err);
    if (rc == SLU_OK)
        rc = slu_stream_run(f.io.reader, &ops, &f, c->n_threads,
                            cli_slots(ctx, ctx->common.memory / 4), &in, err);
    if (rc == SLU_OK)
        rc = slu_passages_filter_end(f.filter, f.io.reader, &in, &result, err);
    if (rc == SLU_OK) {
        struct slu_writer *w = f.io.writer;
        f.io.writer = NULL;
        ctx->spill_bytes = result->spilled_byte;
        dedup_substring_book(ctx, result, &in);
        rc = cli_close_writer(ctx, w, err);
    }
    slu_passages_filter_free(f.filter);
    dedup_abort(&f.io);
    return rc;
}

int dedup_substring_phase(struct cli_ctx *ctx, struct slu_phase_cfg *c,
                          struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    struct slu_passages_phase_result result = {0};
    int rc;

    switch (o->phase) {
    case DEDUP_SIGN:
    case DEDUP_ASK:
        rc = read_part(ctx, c, o->phase == DEDUP_ASK, &result, err);
        break;
    case DEDUP_MERGE:
        rc = slu_passages_phase_merge(c, &result, err);
        break;
    case DEDUP_MATCH:
        rc = slu_passages_phase_match(c, &result, err);
        break;
    default:
        return filter(ctx, c, err);
    }
    if (rc == SLU_OK)
        report(ctx, o->phase, &result);
    return rc;
}
