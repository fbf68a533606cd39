/* shuffle: puts sequences in a random order, as a stream or as shards. */
#include <stdlib.h>
#include <string.h>

#include "formats/shard.h"
#include "lib/permute.h"
#include "lib/pipe.h"
#include "tools/cli.h"

static const char *const lasts[] = {"keep", "drop", NULL};
static const char *const tails[] = {"error", "drop", NULL};
static const char *const orders[] = {"random", "keep", NULL};

enum { JOB_TOK = 1 << 17, JOB_BYTE = 3 << 20 };

struct opts {
    int format; /* index in slu_shard_format_names, -1: a stream */
    const char *format_name;
    const char *shard_sequences;
    uint64_t n_shard_seq; /* 0: auto */
    int last, tails;
    int order; /* enum slu_order */
    uint64_t max_tokens;
    double sample;
};

static int parse_shard_sequences(void *opts, const char *value, struct slu_err *err)
{
    struct opts *o = opts;
    char *end;
    unsigned long long v = strtoull(value, &end, 10);
    unsigned shift = *end == 'K' || *end == 'k'   ? 10
                     : *end == 'M' || *end == 'm' ? 20
                                                  : 0;

    o->shard_sequences = value;
    o->n_shard_seq = 0;
    if (!strcmp(value, "auto")) {
        o->shard_sequences = NULL;
        return SLU_OK;
    }
    end += shift != 0;
    if (*value < '1' || *value > '9' || *end || v > UINT32_MAX)
        return slu_fail(err, SLU_E_USAGE,
                        "--shard-sequences: '%s' is neither auto nor a number of "
                        "sequences above 0",
                        value);
    o->n_shard_seq = (uint64_t)v << shift;
    return SLU_OK;
}

#define AT(field) offsetof(struct opts, field)
static const struct cli_opt options[] = {
    {"format", 0, CLI_CHOICE, AT(format), "wds|olmo|ds|megatron|mds|litdata|parquet",
     "write shards that trainers read in the folder -o DIR;\n"
     "wds: WebDataset, for OpenLM; the others are not built yet",
     slu_shard_format_names, true, NULL},
    {"shard-sequences", 0, CLI_CUSTOM, AT(shard_sequences), "auto|N",
     "sequences of a shard; auto, the default: 2^20 tokens,\nat most 65536", NULL, true,
     parse_shard_sequences},
    {"last", 0, CLI_CHOICE, AT(last), "keep|drop",
     "a bucket's last shard, where it is short: keep it\n(default), or drop it", lasts,
     true, NULL},
    {"tails", 0, CLI_CHOICE, AT(tails), "error|drop",
     "for shards, sequences that have no bucket's length:\n"
     "refuse the stream (default), or drop them",
     tails, true, NULL},
    {"max-tokens", 0, CLI_COUNT, AT(max_tokens), "N",
     "stop before the sequence that makes it more than N", NULL, true, NULL},
    {"sample", 0, CLI_FRACTION, AT(sample), "FRACTION",
     "keep this fraction of the sequences, chosen by hash", NULL, true, NULL},
    {"order", 0, CLI_CHOICE, AT(order), "random|keep",
     "random (default), or the order of the stream", orders, true, NULL},
    {0},
};

static void defaults(void *p)
{
    struct opts *o = p;

    o->format = -1;
    o->max_tokens = UINT64_MAX;
    o->sample = 1;
}

struct job {
    struct cli_ctx *ctx;
    struct slu_reader *reader;
    struct slu_permute *permute;
    struct slu_writer *writer; /* a stream: */
    struct slu_shards *shards; /* or shards */
    struct slu_sum in;
};

static void progress(void *ctx, uint64_t n_tok)
{
    struct job *j = ctx;

    cli_progress(j->ctx, slu_reader_bytes(j->reader), n_tok);
}

/* ---- a stream ---- */

static int produce(void *ctx, void *batch, struct slu_err *err)
{
    struct job *j = ctx;

    return slu_permute_next(j->permute, batch, JOB_TOK, err);
}

static int work(void *ctx, unsigned worker, void *batch, struct slu_err *err)
{
    (void)ctx;
    (void)worker;
    (void)err;
    slu_batch_sum(batch);
    return SLU_OK;
}

static int emit(void *ctx, void *batch, struct slu_err *err)
{
    struct job *j = ctx;

    return slu_writer_put(j->writer, batch, err);
}

static int write_stream(struct job *j, unsigned n_slots, struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, work, emit};
    struct slu_batch *b = calloc(n_slots, sizeof *b);
    void **slot = calloc(n_slots, sizeof *slot);
    int rc = b && slot ? SLU_OK : slu_fail_nomem(err, n_slots * sizeof *b);

    for (unsigned i = 0; i < n_slots && rc == SLU_OK; i++) {
        slu_batch_init(&b[i], slu_reader_header(j->reader)->tok_bytes);
        slot[i] = &b[i];
    }
    if (rc == SLU_OK)
        rc =
            slu_pipe_run(&ops, j, slot, n_slots, (unsigned)j->ctx->common.threads, err);
    for (unsigned i = 0; b && i < n_slots; i++)
        slu_batch_release(&b[i]);
    free(b);
    free(slot);
    return rc;
}

/* ---- shards ---- */

static int open_shards(struct job *j, struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    const struct opts *o = ctx->opts;
    struct slu_header h;
    struct slu_shards_cfg cfg = {.dir = ctx->common.output,
                                 .header = &h,
                                 .names = slu_reader_names(j->reader),
                                 .shard_sequences = o->n_shard_seq,
                                 .drop_last = o->last == 1,
                                 .force = ctx->common.force,
                                 .zstd_level = ctx->common.zstd_level};
    char *text = NULL;
    int rc = slu_shard_format_find(&cfg.format, slu_shard_format_names[o->format], err);

    if (rc)
        return rc;
    rc = slu_header_copy(&h, slu_reader_header(j->reader), err);
    if (rc)
        return rc;
    if (!ctx->common.no_provenance) {
        rc = cli_provenance(ctx, &text, err);
        if (rc == SLU_OK)
            rc = slu_header_add_step(&h, ctx->tool->name, SLU_VERSION, text,
                                     ctx->common.seed, err);
        free(text);
    }
    if (rc == SLU_OK)
        rc = slu_shards_new(&j->shards, &cfg, err);
    slu_header_release(&h);
    return rc;
}

static int source(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct job *j = ctx;

    return slu_permute_next(j->permute, b, JOB_TOK, err);
}

static int tails_left(struct job *j, struct slu_err *err)
{
    const struct opts *o = j->ctx->opts;
    const struct slu_count *n = &slu_permute_result(j->permute)->no_bucket;

    if (n->sequences == 0 || o->tails == 1)
        return SLU_OK;
    return slu_fail(err, SLU_E_MISMATCH,
                    "%llu sequences of %llu tokens have no bucket's length; put 'pack' "
                    "before shuffle, or leave them out with --tails drop",
                    (unsigned long long)n->sequences, (unsigned long long)n->tokens);
}

static void warn_short(struct job *j)
{
    uint64_t n_bucket = 0, n_seq = 0, n_tok = 0;

    for (unsigned i = 0; i < slu_shards_n_bucket(j->shards); i++) {
        const struct slu_shard_bucket *b = slu_shards_bucket(j->shards, i);
        uint64_t n = slu_shards_short(j->shards, i);
        if (n == 0 || b->n_shard < 2)
            continue;
        n_bucket++;
        n_seq += n;
        n_tok += n * b->n_id;
    }
    if (n_bucket)
        cli_warn(
            j->ctx,
            "the last shards of %llu buckets are short; OpenLM's trainer skips them: "
            "%llu sequences, %llu tokens (see report.json; --last drop leaves them "
            "out)",
            (unsigned long long)n_bucket, (unsigned long long)n_seq,
            (unsigned long long)n_tok);
}

/* ---- the books ---- */

static void drop(struct job *j, const char *reason, struct slu_count n)
{
    if (n.sequences)
        slu_ledger_drop(&j->ctx->ledger, reason, n);
}

/* What went in, less what was left out, is what came out: counts by the ledger,
 * contents by the checksum (where nothing was cut off unread). */
static int book(struct job *j, const struct slu_sum *out, struct slu_err *err)
{
    const struct slu_permute_result *r = slu_permute_result(j->permute);
    struct slu_u128 sum = slu_u128_add(out->checksum, r->left_checksum);
    struct slu_count cut = {r->taken.documents - r->out.documents,
                            r->taken.sequences - r->out.sequences,
                            r->taken.tokens - r->out.tokens};

    cli_book_in(j->ctx, &j->in);
    drop(j, "tail", r->no_bucket);
    drop(j, "sample", r->not_sampled);
    if (((const struct opts *)j->ctx->opts)->max_tokens != UINT64_MAX)
        drop(j, "max-tokens", cut);
    if (j->shards) {
        drop(j, "last-shard", slu_shards_dropped(j->shards)->n);
        sum = slu_u128_add(sum, slu_shards_dropped(j->shards)->checksum);
    }
    j->ctx->spill_bytes = r->spilled_byte;
    if (cut.sequences == 0 && slu_u128_cmp(sum, j->in.checksum))
        return slu_fail(
            err, SLU_E_CONSERVATION,
            "internal error: the sequences that came out are not those that "
            "went in (their checksum differs); please report it");
    return SLU_OK;
}

static int finish_shards(struct job *j, struct slu_err *err)
{
    const struct slu_sum *out = slu_shards_sum(j->shards);
    int rc = book(j, out, err);

    if (rc)
        return rc;
    slu_count_add(&j->ctx->ledger.out, out->n);
    rc = slu_ledger_check(&j->ctx->ledger, err);
    if (rc)
        return rc;
    warn_short(j);
    return slu_shards_finish(j->shards, j->ctx->tool->name, &j->ctx->ledger, err);
}

static int finish_stream(struct job *j, struct slu_err *err)
{
    struct slu_writer *w = j->writer;
    int rc = book(j, slu_writer_sum(w), err);

    if (rc)
        return rc;
    j->writer = NULL;
    return cli_close_writer(j->ctx, w, err);
}

static int check_options(const struct cli_ctx *ctx, struct slu_err *err)
{
    const struct opts *o = ctx->opts;

    if (o->format >= 0 && (!ctx->common.output || !strcmp(ctx->common.output, "-")))
        return slu_fail(err, SLU_E_USAGE,
                        "--format wants a folder for its shards: -o DIR");
    if (o->format < 0 && (o->n_shard_seq || o->last || o->tails))
        return slu_fail(err, SLU_E_USAGE,
                        "--shard-sequences, --last and --tails are about shards; add "
                        "--format FORMAT -o DIR");
    return SLU_OK;
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct opts *o = ctx->opts;
    struct job j = {.ctx = ctx};
    uint64_t share =
        ctx->common.memory / 4; /* batches in flight; the rest: the sorter */
    uint64_t n_slots = share / JOB_BYTE, most = ctx->common.threads + 2;
    struct slu_permute_cfg cfg = {.budget_byte = ctx->common.memory - share,
                                  .tmpdir = ctx->common.tmpdir,
                                  .n_threads = (unsigned)ctx->common.threads,
                                  .seed = ctx->common.seed,
                                  .sample = o->sample,
                                  .max_tokens = o->max_tokens,
                                  .buckets_only = o->format >= 0,
                                  .by_bucket = o->format >= 0,
                                  .order = (enum slu_order)o->order};
    int rc = check_options(ctx, err);

    if (!rc)
        rc = cli_open_reader(ctx, &j.reader, err);
    if (!rc && slu_reader_header(j.reader)->no_tokens)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "the stream has segment rows only, and no tokens to shuffle");
    if (!rc && o->format >= 0)
        rc = open_shards(&j, err);
    if (!rc && o->format < 0)
        rc = cli_open_writer(ctx, &j.writer, slu_reader_header(j.reader),
                             slu_reader_names(j.reader), false, err);
    if (!rc)
        rc = slu_permute_new(&j.permute, &cfg, err);
    cli_phase(ctx, "read");
    if (!rc)
        rc = slu_permute_read(j.permute, j.reader, cli_slots(ctx, share), &j.in,
                              progress, &j, err);
    cli_phase(ctx, "write");
    n_slots = n_slots > most ? most : n_slots < 2 ? 2 : n_slots;
    if (!rc && j.shards)
        rc = tails_left(&j, err);
    if (!rc && j.shards)
        rc = slu_shards_write(j.shards, source, &j, (unsigned)ctx->common.threads,
                              (unsigned)n_slots, err);
    if (!rc && j.writer)
        rc = write_stream(&j, (unsigned)n_slots, err);
    if (!rc)
        rc = j.shards ? finish_shards(&j, err) : finish_stream(&j, err);
    slu_permute_free(j.permute);
    slu_writer_abort(j.writer);
    slu_shards_free(j.shards);
    slu_reader_free(j.reader);
    return rc;
}

const struct slu_tool slu_tool = {
    .name = "shuffle",
    .synopsis = "[--order random|keep] [--max-tokens N] [--sample FRACTION] [-o FILE]\n"
                "[STREAM ...]\n"
                "--format FORMAT -o DIR [--shard-sequences auto|N] [--last keep|drop]\n"
                "[--tails error|drop] [--order random|keep] [--max-tokens N]\n"
                "[--sample FRACTION] [STREAM ...]",
    .summary = "Puts the sequences of a stream in random order, and writes shards.",
    .opt = options,
    .opts_size = sizeof(struct opts),
    .defaults = defaults,
    .reads_stream = true,
    .memory_floor = 32 << 20,
    .spills = true,
    .examples = "  shuffle --seed 1 packed.tks -o shuffled.tks\n"
                "  pack pieces.tks | shuffle --format wds -o shards",
    .run = run,
};
