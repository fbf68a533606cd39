/* stages.c - shuffle --stage: the same work in parts, with files between stages
 * (lib/shuffle/shuffle_flow.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shuffle/shuffle.h"

static enum slu_shuffle_plan plan_of(const struct opts *o)
{
    return o->mix.mix || o->mix.schedule ? SLU_SHUFFLE_MIX
           : o->order > SLU_ORDER_KEEP || o->max_tokens != UINT64_MAX
               ? SLU_SHUFFLE_CUT
               : SLU_SHUFFLE_PLAIN;
}

int shuffle_check_stage(const struct cli_ctx *ctx, struct slu_err *err)
{
    const struct opts *o = ctx->opts;
    const bool mix = o->mix.mix || o->mix.schedule;

    if (o->order == SLU_ORDER_KEEP)
        return slu_fail(err, SLU_E_USAGE,
                        "--stage: --order %s cannot be split into parts; shuffle all "
                        "in one process",
                        o->order_text);
    if (mix && o->order != SLU_ORDER_RANDOM)
        return slu_fail(err, SLU_E_USAGE,
                        "--stage: --order %s cannot be combined with a mix",
                        o->order_text);
    if (mix && shuffle_mix_by_input(&o->mix))
        return slu_fail(err, SLU_E_USAGE,
                        "--stage: --mix-by input is about all inputs at once, and each "
                        "part has its own; mix by domain or by a field of metadata");
    if (cli_flow_is(ctx, "mix") && !mix)
        return slu_fail(err, SLU_E_USAGE,
                        "--stage mix needs a mix; add --mix, or begin with --stage "
                        "%s",
                        plan_of(o) == SLU_SHUFFLE_CUT ? "count" : "scatter");
    if (cli_flow_is(ctx, "cut") && plan_of(o) != SLU_SHUFFLE_CUT)
        return slu_fail(err, SLU_E_USAGE,
                        "--stage cut needs --order by score or --max-tokens, without "
                        "a mix; begin with --stage %s",
                        mix ? "count" : "scatter");
    if (cli_flow_is(ctx, "count") && plan_of(o) == SLU_SHUFFLE_PLAIN)
        return slu_fail(err, SLU_E_USAGE,
                        "--stage count needs --mix, --order by score or --max-tokens; "
                        "add one, or begin with --stage scatter");
    if (cli_flow_is(ctx, "finish") && o->shards.format < 0)
        return slu_fail(err, SLU_E_USAGE,
                        "--stage finish needs shards; add --format FORMAT");
    return SLU_OK;
}

/* ---- the flow ---- */

static int begin(void *flow, const struct slu_header *h, struct slu_names *names,
                 struct slu_err *err)
{
    struct slu_shuffle_flow *q = flow;
    struct job *j = q->ctx;

    j->header = h;
    j->names = names;
    slu_shuffle_begin(q, h);
    q->cfg.mix = j->mix.mix.n_source ? &j->mix.mix : NULL;
    return j->reader && q->cfg.mix ? shuffle_mix_open(&j->mix, j->reader, &q->cfg, err)
                                   : SLU_OK;
}

static int judge(void *job, const struct slu_permute_result *r, struct slu_err *err)
{
    struct job *j = job;

    cli_timing(j->ctx, "write");
    int rc = shuffle_shards_tails(j->ctx, &r->no_bucket, err);
    return rc ? rc : shuffle_shards_longest(j, r->longest, err);
}

/* ---- gather ---- */

static int produce(void *ctx, void *load, struct slu_err *err)
{
    struct job *j = ctx;

    return slu_shuffle_fetch(&j->flow, j->pipe, &((struct shuffle_load *)load)->rec,
                             JOB_TOK, err);
}

static int work(void *ctx, unsigned worker, void *load, struct slu_err *err)
{
    struct job *j = ctx;
    struct shuffle_load *l = load;
    int rc = slu_shuffle_unpack(&j->flow, &l->rec, &l->b, err);

    (void)worker;
    if (!rc)
        slu_batch_sum(&l->b);
    return rc;
}

/* Checks that the output equals the contents of the range. */
static int account_stream(struct job *j, struct slu_err *err)
{
    const struct slu_sum *out = slu_writer_sum(j->writer);
    struct slu_u128 checksum;
    struct slu_count n;

    slu_shuffle_range(&j->flow, &n, &checksum);
    n.loss_tokens = out->n.loss_tokens; /* which the tables have in their checksum */
    slu_count_add(&j->ctx->account.from_work, n);
    if (!memcmp(&n, &out->n, sizeof n) && !slu_u128_cmp(checksum, slu_sum_content(out)))
        return SLU_OK;
    return slu_fail(err, SLU_E_CONSERVATION,
                    "%s: the scatter files hold other sequences than their tables say "
                    "(by their checksum); remove them and run --stage scatter again",
                    ((const struct opts *)j->ctx->opts)->flow.work);
}

/* Gives the stream of the first range the steps that made the input, and what scatter
 * read and left out. */
static int take_steps(struct job *j, struct slu_err *err)
{
    const struct slu_shuffle_account *b = &j->flow.account;
    struct slu_account *l = &j->ctx->earlier;

    if (slu_flow_part(j->flow.flow))
        return SLU_OK;
    slu_count_add(&l->in, b->in.n);
    slu_count_add(&l->to_work, b->result.out);
    shuffle_account_left(l, &b->result, j->mix.mix.n_source);
    return slu_steps_join(&j->ctx->steps, &j->flow.steps, err);
}

static int gather_stream(struct job *j, struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, work, shuffle_emit};
    struct cli_ctx *ctx = j->ctx;
    int rc = cli_open_writer(ctx, &j->writer, j->header, j->names, false, err);

    slu_shuffle_read(&j->flow, NULL, NULL);
    if (!rc)
        rc = take_steps(j, err);
    if (!rc)
        rc = shuffle_run(j, &ops, shuffle_slots(ctx, ctx->common.memory / 4), err);
    return rc ? rc : account_stream(j, err);
}

static int source(void *ctx, struct slu_pipe *pipe, struct slu_batch *b,
                  struct slu_err *err)
{
    struct job *j = ctx;
    int rc = slu_shuffle_next(&j->flow, pipe, b, JOB_TOK, err);

    for (size_t i = 0; i < b->n_seq && !rc; i++)
        slu_count_add(&j->gathered, slu_seq_count(b, &b->seq[i]));
    return rc;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* A shard belongs to the range that has its first sequence. */
static void place(const struct job *j, const struct cli_part *part,
                  struct slu_shards_span *span, uint64_t *first, uint64_t *n_seq)
{
    for (unsigned i = 0; i < slu_shards_n_bucket(j->shards); i++) {
        uint64_t size = slu_shards_bucket(j->shards, i)->rule.size;
        uint64_t all = slu_shuffle_before(&j->flow, i, part->n);
        uint64_t from = ceil_div(slu_shuffle_before(&j->flow, i, part->i), size);
        uint64_t to = ceil_div(slu_shuffle_before(&j->flow, i, part->i + 1), size);
        uint64_t end = to * size < all ? to * size : all;
        span[i].first_shard = from;
        first[i] = from * size;
        n_seq[i] = from < to ? end - first[i] : 0;
        span[i].n_seq = n_seq[i];
        span[i].last = end == all;
    }
}

/* The shard of whole documents at each place (struct slu_shard_rule) belongs to the
 * range that has its first place; its documents may begin in later ranges. */
static void place_documents(struct job *j, const struct cli_part *part,
                            struct slu_shards_span *span)
{
    const struct slu_shard_rule *r = &slu_shards_bucket(j->shards, 0)->rule;
    uint64_t shard[3]; /* of the range's first place, of the next range's, of the end */

    for (unsigned i = 0; i < 3; i++) {
        struct slu_count n =
            slu_shuffle_counts(&j->flow, 0, i < 2 ? part->i + i : part->n);
        shard[i] = ceil_div(slu_shard_place(r, n), r->size);
    }
    *span =
        (struct slu_shards_span){shard[0], shard[1] - shard[0], shard[1] == shard[2]};
    slu_shuffle_read_places(&j->flow, r->per_tok, r->per_seq, shard[0] * r->size,
                            shard[1] * r->size);
}

static int gather_shards(struct job *j, struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    const uint64_t share = shuffle_shards_share(ctx);
    uint64_t first[SLU_MAX_BUCKETS], n_seq[SLU_MAX_BUCKETS];
    struct slu_shards_span span[SLU_MAX_BUCKETS] = {{0}};
    const struct cli_part *p = &ctx->common.part;
    const struct slu_shards_part part = {((const struct opts *)ctx->opts)->flow.work,
                                         p->i, p->n, span, slu_shuffle_first(&j->flow)};
    int rc = shuffle_shards_open(j, share, true, err);

    if (rc)
        return rc;
    if (((const struct opts *)ctx->opts)->shards.documents) {
        place_documents(j, p, span);
    } else {
        place(j, p, span, first, n_seq);
        slu_shuffle_read(&j->flow, first, n_seq);
    }
    rc = slu_shards_write_part(j->shards, &part, source, j, &j->in,
                               (unsigned)ctx->common.threads, shuffle_slots(ctx, share),
                               err);
    if (rc)
        return rc;
    const struct slu_count out = slu_shards_sum(j->shards)->n,
                           dropped = slu_shards_dropped(j->shards)->n;
    cli_flow_skipped(ctx, slu_shards_skipped(j->shards));
    if (slu_shards_skipped(j->shards)) {
        slu_count_add(&j->gathered, out);
        slu_count_add(&j->gathered, dropped);
    }
    slu_count_add(&ctx->account.from_work, j->gathered);
    slu_count_add(&ctx->account.out, out);
    if (dropped.sequences)
        slu_account_drop(&ctx->account, "last-shard", dropped);
    return SLU_OK;
}

/* ---- finish ---- */

static int report_mix(struct job *j, struct slu_err *err)
{
    const struct slu_header *h = j->header;
    const size_t n = (h->n_bucket ? h->n_bucket : 1) * (size_t)j->mix.mix.n_period;
    struct slu_mixer *x = NULL;
    struct slu_count *stage;

    if (!j->mix.mix.n_source)
        return SLU_OK;
    stage = calloc(n, sizeof *stage);
    int rc = stage ? slu_shuffle_took(&j->flow, &x, stage, err)
                   : slu_fail_nomem(err, n * sizeof *stage);
    if (!rc)
        rc = shuffle_mix_report(&j->mix, x, stage, h, j->shards, err);
    free(stage);
    slu_mixer_free(x);
    return rc;
}

/* Sums the accounts of all parts, and checks them: the sequences in the shards and
 * those dropped with last shards are the sequences that all parts read, minus those
 * left out. */
static int account_set(struct job *j, struct slu_account *l, struct slu_err *err)
{
    const struct slu_sum *out = slu_shards_sum(j->shards),
                         *dropped = slu_shards_dropped(j->shards);
    struct slu_shuffle_account b = j->flow.account;

    slu_count_add(&l->in, b.in.n);
    shuffle_account_left(l, &b.result, j->mix.mix.n_source);
    if (dropped->n.sequences)
        slu_account_drop(l, "last-shard", dropped->n);
    b.result.out = out->n;
    slu_count_add(&b.result.out, dropped->n);
    b.checksum = slu_u128_add(slu_sum_content(out), slu_sum_content(dropped));
    int rc = slu_shuffle_check(&b, err);
    return rc ? slu_err_at(err,
                           "%s: the set's shards are not what all parts read; "
                           "run --stage gather of all ranges again with -f; if this "
                           "error comes again, run --stage scatter of all parts too",
                           j->ctx->common.output)
              : SLU_OK;
}

static int finish(struct job *j, struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    struct slu_account account = {.masks = j->header->masks};
    int rc = shuffle_shards_open(j, shuffle_shards_share(ctx), true, err);

    if (!rc)
        rc = slu_shards_join(j->shards, ((const struct opts *)ctx->opts)->flow.work,
                             slu_flow_ranges(j->flow.flow), &j->in, err);
    cli_flow_skipped(ctx, rc == SLU_EOF);
    if (rc)
        return rc == SLU_EOF ? SLU_OK : rc;
    rc = account_set(j, &account, err);
    if (!rc)
        rc = slu_steps_join(&ctx->steps, &j->flow.steps, err);
    if (!rc)
        rc = report_mix(j, err);
    return rc ? rc : shuffle_shards_finish(j, &account, err);
}

static int write_all(void *job, struct slu_err *err)
{
    struct job *j = job;
    const struct opts *o = j->ctx->opts;

    cli_timing(j->ctx, "write");
    j->ctx->account.masks |= j->header->masks;
    j->in = j->flow.account.in;
    j->input_id = j->flow.account.stream;
    return cli_flow_is(j->ctx, "finish") ? finish(j, err)
           : o->shards.format >= 0       ? gather_shards(j, err)
                                         : gather_stream(j, err);
}

/* ---- all of them ---- */

const struct slu_flow_spec *shuffle_flow(const struct cli_ctx *ctx)
{
    const struct opts *o = ctx->opts;

    return slu_shuffle_flow_spec(plan_of(o), o->shards.format >= 0);
}

/* What matters of the format of shards before there are any. */
int shuffle_facts(const struct cli_ctx *ctx, struct slu_made *m, struct slu_err *err)
{
    return slu_made_fact(m, err, "order=%s",
                         shuffle_permute_cfg(ctx).by_bucket ? "buckets" : "all");
}

static int report(struct job *j, const struct slu_flow_report *r, struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    struct slu_writer *w = j->writer;

    ctx->spill_bytes += j->flow.spilled_byte;
    j->writer = NULL;
    if (cli_flow_is(ctx, "count"))
        cli_stat_u64(ctx, "counted_sequences", r->in.n.sequences);
    if (cli_flow_is(ctx, "scatter")) {
        cli_account_in(ctx, &r->in);
        shuffle_account_left(&ctx->account, &j->flow.account.result,
                             j->mix.mix.n_source);
        slu_count_add(&ctx->account.to_work, j->flow.account.result.out);
    }
    return w ? cli_close_writer(ctx, w, err) : SLU_OK;
}

/* The part of -M for batches in flight and shards in memory. */
static uint64_t share_of(const struct cli_ctx *ctx)
{
    return cli_flow_is(ctx, "count")    ? ctx->common.memory / 2
           : cli_flow_is(ctx, "gather") ? shuffle_shards_share(ctx)
           : cli_flow_is(ctx, "finish") ? 0
                                        : ctx->common.memory / 4;
}

static int run(struct job *j, struct slu_names *names, struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    const uint64_t share = share_of(ctx);
    const struct slu_flow_cfg cfg = {.reader = j->reader,
                                     .names = names,
                                     .ctx = &j->flow,
                                     .begin = begin,
                                     .budget_byte = ctx->common.memory - share,
                                     .n_slots = cli_slots(ctx, share)};
    struct slu_flow_report r;

    j->flow.reader = j->reader;
    j->flow.cfg.budget_byte = cfg.budget_byte;
    cli_timing(ctx, "read");
    int rc = cli_flow_run(ctx, cfg, false, &r, err);
    return rc ? rc : report(j, &r, err);
}

int shuffle_stage(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct opts *o = ctx->opts;
    struct job j = {.ctx = ctx,
                    .flow = {.cfg = shuffle_permute_cfg(ctx),
                             .ctx = &j,
                             .progress = shuffle_progress,
                             .judge = judge,
                             .write = write_all}};
    struct slu_names *names = NULL;
    int rc = shuffle_mix_parse(&j.mix, ctx, &o->mix, err);

    if (!rc && cli_flow_stage(ctx)->flags & SLU_STAGE_READS)
        rc = shuffle_open(&j, err);
    else if (!rc)
        rc = slu_names_new(&names, err);
    if (!rc)
        rc = run(&j, names, err);
    shuffle_mix_release(&j.mix);
    slu_writer_abort(j.writer);
    slu_shards_free(j.shards);
    slu_shuffle_release(&j.flow);
    slu_reader_free(j.reader);
    slu_names_free(names);
    return rc;
}
