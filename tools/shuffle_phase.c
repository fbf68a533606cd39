/* shuffle_phase.c - shuffle --phase: the same work in parts, with files between them
 * (lib/order/permute_parts.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tools/shuffle_private.h"

enum { COUNT, BLEND, SCATTER, GATHER, FINISH };

const char *const shuffle_phases[] = {"count",  "blend",  "scatter",
                                      "gather", "finish", NULL};
const struct cli_phase_kind shuffle_phase_kinds[] = {
    {.name = "count", .stream = true},
    {.name = "blend", .one = true},
    {.name = "scatter", .stream = true, .ranges = true},
    {.name = "gather", .output = true},
    {.name = "finish", .one = true, .output = true},
    {0},
};

static int check(const struct opts *o, struct slu_err *err)
{
    const char *name = shuffle_phases[o->phase.phase];
    bool mix = o->mix.mix || o->mix.schedule, shards = o->shards.format >= 0;

    if (o->order != SLU_ORDER_RANDOM)
        return slu_fail(err, SLU_E_USAGE,
                        "--phase: --order %s cannot be split into parts; shuffle all "
                        "in one process",
                        o->order_text);
    if (o->max_tokens != UINT64_MAX && !mix)
        return slu_fail(err, SLU_E_USAGE,
                        "--phase: --max-tokens without --mix cannot be split into "
                        "parts; use --sample, or shuffle all in one process");
    if (mix && o->mix.by)
        return slu_fail(err, SLU_E_USAGE,
                        "--phase: --mix-by input is about all inputs at once, and each "
                        "part has its own; blend by domain");
    if (o->phase.phase <= BLEND && !mix)
        return slu_fail(err, SLU_E_USAGE,
                        "--phase %s is about blends; add --mix, or begin with --phase "
                        "scatter",
                        name);
    if (o->phase.phase == FINISH && !shards)
        return slu_fail(err, SLU_E_USAGE,
                        "--phase finish is about shards: add --format FORMAT");
    return SLU_OK;
}

/* ---- what must agree ---- */

/* value as one word of the parameters that files are compared by. */
static int put_word(struct slu_buf *t, const char *key, const char *value,
                    struct slu_err *err)
{
    char hex[33];

    if (!value)
        return SLU_OK;
    slu_u128_hex(slu_hash128(value, strlen(value)), hex);
    if (strlen(value) > 512 || strpbrk(value, " \t\n"))
        value = hex;
    return slu_buf_printf(t, err, " %s=%s", key, value);
}

static int put_param(const struct cli_ctx *ctx, struct slu_buf *t, struct slu_err *err)
{
    const struct opts *o = ctx->opts;
    int rc = slu_buf_printf(t, err, "order=%s seed=%llu",
                            o->shards.format >= 0 ? "buckets" : "all",
                            (unsigned long long)ctx->common.seed);

    if (rc == SLU_OK && o->sample < 1)
        rc = slu_buf_printf(t, err, " sample=%.17g", o->sample);
    if (rc == SLU_OK && o->shards.tails)
        rc = put_word(t, "tails", shuffle_tails[o->shards.tails], err);
    if (rc == SLU_OK)
        rc = put_word(t, "mix", o->mix.mix, err);
    if (rc == SLU_OK)
        rc = put_word(t, "mix-schedule", o->mix.schedule, err);
    if (rc == SLU_OK)
        rc = put_word(t, "max-epochs", o->mix.max_epochs, err);
    if (rc == SLU_OK && o->mix.batch_tokens)
        rc = slu_buf_printf(t, err, " batch-tokens=%llu",
                            (unsigned long long)o->mix.batch_tokens);
    if (rc == SLU_OK && o->max_tokens != UINT64_MAX)
        rc = slu_buf_printf(t, err, " max-tokens=%llu",
                            (unsigned long long)o->max_tokens);
    return rc;
}

/* ---- count, blend, scatter ---- */

static int pass(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    (void)ctx, (void)b, (void)err;
    return SLU_OK;
}

/* Whether the stream that was read is the one that these books are of; *id is its. */
static int is_input(struct job *j, const struct slu_parts_books *b, bool *is,
                    struct slu_u128 *id, struct slu_err *err)
{
    int rc = slu_reader_identity(j->reader, id, err);

    *is = !rc && !memcmp(&j->in.n, &b->in.n, sizeof j->in.n) &&
          !slu_u128_cmp(*id, b->stream);
    return rc;
}

/* The phase's file is there: is it this input's? */
static int compare(struct job *j, const struct slu_parts_cfg *c,
                   const struct slu_parts_books *b, uint64_t share, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {NULL, pass};
    int phase = ((const struct opts *)j->ctx->opts)->phase.phase;
    struct slu_u128 id;
    bool is;
    int rc = slu_stream_run(j->reader, &ops, NULL, (unsigned)j->ctx->common.threads,
                            cli_slots(j->ctx, share), &j->in, err);

    if (rc == SLU_OK)
        rc = is_input(j, b, &is, &id, err);
    if (rc == SLU_OK && !is)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s/%s.%llu-of-%llu: was made from another stream; remove it, or "
                      "use -f to make it again",
                      c->work, shuffle_phases[phase], (unsigned long long)c->part,
                      (unsigned long long)c->of);
    return rc;
}

static void say_skipped(struct cli_ctx *ctx, bool done)
{
    cli_stat_json(ctx, "skipped", done ? "true" : "false");
    if (done)
        cli_note(ctx, "%s: was there already",
                 shuffle_phases[((const struct opts *)ctx->opts)->phase.phase]);
}

static int count(struct job *j, struct slu_parts_cfg *c, struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    uint64_t share = ctx->common.memory / 2;
    struct slu_permute_cfg cfg = shuffle_permute_cfg(ctx);
    struct slu_parts_books books = {0};
    bool done = false;
    int rc = shuffle_open(j, err);

    cfg.budget_byte = ctx->common.memory - share;
    if (!rc)
        slu_reader_track(j->reader);
    if (!rc)
        rc = shuffle_mix_open(&j->mix, j->reader, &cfg, err);
    if (!rc)
        rc = slu_count_done(c, j->header, &done, &books, err);
    if (!rc)
        rc = done ? compare(j, c, &books, share, err)
                  : slu_count_write(c, &cfg, j->reader, cli_slots(ctx, share),
                                    shuffle_progress, j, &books, err);
    if (rc)
        return rc;
    say_skipped(ctx, done);
    cli_stat_u64(ctx, "counted_sequences", books.in.n.sequences);
    return SLU_OK;
}

static int blend(struct job *j, struct slu_parts_cfg *c, struct slu_err *err)
{
    struct slu_permute_cfg cfg = shuffle_permute_cfg(j->ctx);
    bool done;

    cfg.blend = &j->mix.blend;
    cfg.budget_byte = j->ctx->common.memory / 4 * 3;
    int rc = slu_blend_write(c, &cfg, &done, &j->ctx->spill_bytes, err);
    if (rc)
        return rc;
    say_skipped(j->ctx, done);
    return SLU_OK;
}

/* What of the blend is this part's, and whether the input is the one that it counted.
 */
static int use_blend(struct job *j, const struct slu_parts_cfg *c,
                     struct slu_parts_blend *pb, struct slu_permute_cfg *cfg,
                     struct slu_err *err)
{
    if (!j->mix.blend.n_source)
        return SLU_OK;
    int rc = shuffle_mix_open(&j->mix, j->reader, cfg, err);
    return rc ? rc : slu_blend_open(pb, c, cfg->blend, c->part, c->of, err);
}

static int read_part(struct job *j, const struct slu_permute_cfg *cfg, uint64_t share,
                     struct slu_parts_blend *pb, const struct slu_parts_cfg *c,
                     struct slu_u128 *id, struct slu_err *err)
{
    bool mix = pb->blending != NULL, is = true;
    int rc = slu_permute_new(&j->permute, cfg, err);

    if (!rc && mix)
        slu_permute_set_blend(j->permute, pb);
    if (!rc)
        rc = slu_permute_read(j->permute, j->reader, cli_slots(j->ctx, share), &j->in,
                              shuffle_progress, j, err);
    if (!rc)
        rc = is_input(j, &pb->counted, &is, id, err);
    if (!rc && mix && !is)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s/blend: another stream was counted as part %llu; run --phase "
                      "count and --phase blend again",
                      c->work, (unsigned long long)c->part);
    return rc ? rc
              : shuffle_shards_tails(j->ctx, &slu_permute_result(j->permute)->no_bucket,
                                     err);
}

static int scatter(struct job *j, struct slu_parts_cfg *c, struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    uint64_t share = ctx->common.memory / 4;
    struct slu_permute_cfg cfg = shuffle_permute_cfg(ctx);
    struct slu_parts_books books = {0};
    struct slu_parts_blend pb = {0};
    struct slu_u128 id = {0, 0};
    bool done = false;
    int rc = shuffle_open(j, err);

    cfg.budget_byte = ctx->common.memory - share;
    if (!rc)
        slu_reader_track(j->reader);
    if (!rc)
        rc = use_blend(j, c, &pb, &cfg, err);
    if (!rc)
        rc = slu_scatter_done(c, j->header, pb.id, &done, &books, err);
    cli_phase(ctx, "read");
    if (!rc)
        rc = done ? compare(j, c, &books, share, err)
                  : read_part(j, &cfg, share, &pb, c, &id, err);
    cli_phase(ctx, "write");
    if (!rc && !done)
        rc = slu_scatter_write(c, j->permute, j->names, &j->in, id, pb.id,
                               shuffle_slots(ctx, share), &books, err);
    slu_blending_free(pb.blending);
    if (rc)
        return rc;
    say_skipped(ctx, done);
    cli_book_in(ctx, &j->in);
    shuffle_book_left(&ctx->ledger, &books.result);
    slu_count_add(&ctx->ledger.to_work, books.result.out);
    ctx->spill_bytes = books.result.spilled_byte;
    return SLU_OK;
}

/* ---- gather ---- */

/* Each scatter file is open while a range is read. */
static void raise_files(void)
{
    struct rlimit r;

    if (!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

static int open_gather(struct job *j, const struct slu_parts_cfg *c, uint64_t budget,
                       struct slu_err *err)
{
    raise_files();
    int rc = slu_gather_open(&j->gather, c, budget, err);

    if (rc)
        return rc;
    j->header = slu_gather_header(j->gather);
    j->names = slu_gather_names(j->gather);
    j->in = slu_gather_books(j->gather)->in;
    j->input_id = slu_gather_books(j->gather)->stream;
    return SLU_OK;
}

static int produce(void *ctx, void *load, struct slu_err *err)
{
    struct job *j = ctx;

    return slu_gather_fetch(j->gather, &((struct shuffle_load *)load)->rec, JOB_TOK,
                            err);
}

static int work(void *ctx, unsigned worker, void *load, struct slu_err *err)
{
    struct job *j = ctx;
    struct shuffle_load *l = load;
    int rc = slu_gather_unpack(j->gather, &l->rec, &l->b, err);

    (void)worker;
    if (!rc)
        slu_batch_sum(&l->b);
    return rc;
}

/* What came out is what is in the range. */
static int book_stream(struct job *j, struct slu_err *err)
{
    const struct slu_sum *out = slu_writer_sum(j->writer);
    struct slu_u128 checksum;
    struct slu_count n;

    slu_gather_range(j->gather, &n, &checksum);
    slu_count_add(&j->ctx->ledger.from_work, n);
    if (!memcmp(&n, &out->n, sizeof n) && !slu_u128_cmp(checksum, out->checksum))
        return SLU_OK;
    return slu_fail(err, SLU_E_CONSERVATION,
                    "%s: the scatter files do not have the sequences that they say "
                    "(their checksum differs); remove them and run --phase scatter "
                    "again",
                    ((const struct opts *)j->ctx->opts)->phase.work);
}

static int gather_stream(struct job *j, const struct slu_parts_cfg *c,
                         struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, work, shuffle_emit};
    struct cli_ctx *ctx = j->ctx;
    uint64_t share = ctx->common.memory / 4;
    int rc = open_gather(j, c, ctx->common.memory - share, err);

    if (!rc)
        rc = cli_open_writer(ctx, &j->writer, j->header, j->names, false, err);
    if (!rc)
        rc = slu_gather_begin(j->gather, NULL, NULL, err);
    cli_phase(ctx, "write");
    if (!rc)
        rc = shuffle_run(j, &ops, shuffle_slots(ctx, share), err);
    if (!rc)
        rc = book_stream(j, err);
    if (rc)
        return rc;
    struct slu_writer *w = j->writer;
    j->writer = NULL;
    return cli_close_writer(ctx, w, err);
}

/* ---- gather: shards ---- */

static int source(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct job *j = ctx;
    int rc = slu_gather_next(j->gather, b, JOB_TOK, err);

    for (size_t i = 0; i < b->n_seq && rc == SLU_OK; i++)
        slu_count_add(&j->gathered, slu_seq_count(b, &b->seq[i]));
    return rc;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* A shard belongs to the range in which its first sequence is. */
static void place(const struct job *j, const struct slu_parts_cfg *c,
                  struct slu_shards_span *span, uint64_t *first, uint64_t *n_seq)
{
    for (unsigned i = 0; i < slu_shards_n_bucket(j->shards); i++) {
        uint64_t size = slu_shards_bucket(j->shards, i)->shard_sequences;
        uint64_t all = slu_gather_before(j->gather, i, c->of);
        uint64_t from = ceil_div(slu_gather_before(j->gather, i, c->part), size);
        uint64_t to = ceil_div(slu_gather_before(j->gather, i, c->part + 1), size);
        uint64_t end = to * size < all ? to * size : all;
        span[i].first_shard = from;
        first[i] = from * size;
        n_seq[i] = from < to ? end - first[i] : 0;
        span[i].n_seq = n_seq[i];
        span[i].last = end == all;
    }
}

static int gather_shards(struct job *j, const struct slu_parts_cfg *c,
                         struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    uint64_t share = shuffle_shards_share(ctx);
    uint64_t first[SLU_MAX_BUCKETS], n_seq[SLU_MAX_BUCKETS];
    struct slu_shards_span span[SLU_MAX_BUCKETS] = {{0}};
    struct slu_shards_part part = {c->work, c->part, c->of, span};
    int rc = open_gather(j, c, ctx->common.memory - share, err);

    if (!rc)
        rc = shuffle_shards_open(j, share, true, err);
    if (rc)
        return rc;
    place(j, c, span, first, n_seq);
    rc = slu_gather_begin(j->gather, first, n_seq, err);
    cli_phase(ctx, "write");
    if (!rc)
        rc = slu_shards_write_part(j->shards, &part, source, j, &j->in,
                                   (unsigned)ctx->common.threads,
                                   shuffle_slots(ctx, share), err);
    if (rc)
        return rc;
    const struct slu_count out = slu_shards_sum(j->shards)->n,
                           dropped = slu_shards_dropped(j->shards)->n;
    say_skipped(ctx, slu_shards_skipped(j->shards));
    if (slu_shards_skipped(j->shards)) {
        slu_count_add(&j->gathered, out);
        slu_count_add(&j->gathered, dropped);
    }
    slu_count_add(&ctx->ledger.from_work, j->gathered);
    slu_count_add(&ctx->ledger.out, out);
    if (dropped.sequences)
        slu_ledger_drop(&ctx->ledger, "last-shard", dropped);
    return SLU_OK;
}

/* ---- finish ---- */

/* "mix" of report.json. */
static int report_mix(struct job *j, const struct slu_parts_cfg *c, struct slu_err *err)
{
    const struct slu_header *h = j->header;
    const struct slu_blend *b = &j->mix.blend;
    struct slu_parts_blend pb = {0};
    size_t n = (h->n_bucket ? h->n_bucket : 1) * (size_t)b->n_phase;
    struct slu_count *phase = NULL;
    char *json = NULL;

    if (!b->n_source)
        return SLU_OK;
    phase = calloc(n, sizeof *phase);
    int rc = phase ? slu_blend_open(&pb, c, b, 0, slu_gather_parts(j->gather), err)
                   : slu_fail_nomem(err, n * sizeof *phase);
    if (!rc)
        rc = slu_gather_took(j->gather, b, pb.id, pb.blending, phase, err);
    if (!rc)
        rc = shuffle_mix_report(&j->mix, pb.blending, phase, h, &json, err);
    if (!rc)
        rc = slu_shards_report_add(j->shards, "mix", json, err);
    free(json);
    free(phase);
    slu_blending_free(pb.blending);
    return rc;
}

/* The books of all parts: what is in the shards, or was dropped with the last ones, is
 * what all parts read, less what they left out. */
static int book_set(struct job *j, struct slu_ledger *l, struct slu_err *err)
{
    const struct slu_sum *out = slu_shards_sum(j->shards),
                         *dropped = slu_shards_dropped(j->shards);
    struct slu_parts_books b = *slu_gather_books(j->gather);

    slu_count_add(&l->in, b.in.n);
    shuffle_book_left(l, &b.result);
    if (dropped->n.sequences)
        slu_ledger_drop(l, "last-shard", dropped->n);
    b.result.out = out->n;
    slu_count_add(&b.result.out, dropped->n);
    b.checksum = slu_u128_add(out->checksum, dropped->checksum);
    int rc = slu_parts_books_check(&b, err);
    return rc ? slu_err_at(err,
                           "%s: the set's shards are not what all parts read; "
                           "run all of --phase gather again with -f, and if that "
                           "does not help, scatter before it",
                           j->ctx->common.output)
              : SLU_OK;
}

static int finish(struct job *j, struct slu_parts_cfg *c, struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    struct slu_ledger ledger = {0};
    int rc = open_gather(j, c, ctx->common.memory, err);

    if (!rc)
        rc = shuffle_shards_open(j, shuffle_shards_share(ctx), true, err);
    if (!rc)
        rc = slu_shards_join(j->shards, c->work, slu_gather_ranges(j->gather), &j->in,
                             err);
    say_skipped(ctx, rc == SLU_EOF);
    if (rc)
        return rc == SLU_EOF ? SLU_OK : rc;
    rc = book_set(j, &ledger, err);
    if (!rc)
        rc = report_mix(j, c, err);
    return rc ? rc : shuffle_shards_finish(j, &ledger, err);
}

/* ---- which ---- */

static int run(struct job *j, struct slu_parts_cfg *c, struct slu_err *err)
{
    const struct opts *o = j->ctx->opts;
    bool shards = o->shards.format >= 0;
    int rc = shuffle_mix_parse(&j->mix, j->ctx, &o->mix, err);

    if (rc)
        return rc;
    switch (o->phase.phase) {
    case COUNT:
        return count(j, c, err);
    case BLEND:
        return blend(j, c, err);
    case SCATTER:
        return scatter(j, c, err);
    case GATHER:
        return shards ? gather_shards(j, c, err) : gather_stream(j, c, err);
    default:
        return finish(j, c, err);
    }
}

int shuffle_phase(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct opts *o = ctx->opts;
    struct job j = {.ctx = ctx};
    struct slu_buf param = SLU_BUF_INIT;
    const struct cli_part *part = &ctx->common.part;
    int rc = check(o, err);

    if (!rc)
        rc = put_param(ctx, &param, err);
    if (!rc) {
        struct slu_parts_cfg c = {.work = o->phase.work,
                                  .part = part->i,
                                  .of = part->n,
                                  .ranges = o->phase.ranges ? o->phase.ranges : part->n,
                                  .force = ctx->common.force,
                                  .by_bucket = o->shards.format >= 0,
                                  .param = (const char *)param.data};
        rc = run(&j, &c, err);
    }
    slu_buf_release(&param);
    shuffle_mix_release(&j.mix);
    slu_writer_abort(j.writer);
    slu_shards_free(j.shards);
    slu_gather_free(j.gather); /* names and header are its */
    slu_permute_free(j.permute);
    slu_reader_free(j.reader);
    return rc;
}
