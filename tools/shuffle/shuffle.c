/* shuffle.c - shuffle: puts sequences in random order, as a stream or as shards. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/pipe.h"
#include "tools/shuffle/shuffle.h"

static const char *const orders[] = {"random",     "keep",  "ascending",
                                     "descending", "bands", NULL};
enum { BANDS = 10 };

static int parse_order(void *opts, const char *value, struct slu_err *err)
{
    struct opts *o = opts;
    const char *colon = strchr(value, ':');
    size_t n = colon ? (size_t)(colon - value) : strlen(value);
    char *end = NULL;

    o->order_text = value;
    o->n_band = BANDS;
    for (o->order = 0; orders[o->order]; o->order++)
        if (strlen(orders[o->order]) == n && !memcmp(orders[o->order], value, n))
            break;
    if (colon && colon[1] >= '1' && colon[1] <= '9')
        o->n_band = strtoul(colon + 1, &end, 10);
    if (!orders[o->order] || (colon && (o->order != SLU_ORDER_BANDS || !end || *end)) ||
        o->n_band > SLU_MAX_BANDS)
        return slu_fail(err, SLU_E_USAGE,
                        "--order: '%s' is not one of random, keep, ascending, "
                        "descending, bands and bands:N, with N from 1 to %d",
                        value, SLU_MAX_BANDS);
    if (o->order == SLU_ORDER_RANDOM)
        o->order_text = NULL;
    return SLU_OK;
}

#define AT(field) offsetof(struct opts, field)
static const struct cli_opt options[] = {
    {"format", 0, CLI_CHOICE, AT(shards.format), NULL,
     "write shards in the folder -o DIR: WebDataset for OpenLM,\n"
     "OLMo-core, datatrove, Megatron, MosaicML, LitData, Parquet,\n"
     "Megatron-Bridge",
     .choice = slu_shard_format_names, .from = "gather"},
    {"shard-sequences", 0, CLI_CUSTOM, AT(shards.shard_sequences), "auto|N",
     "sequences of a shard; auto, the default: 2^20 tokens, at most 65536\n"
     "(mds, litdata: 2^24 tokens; megatron, olmo, ds: see --shard-size)",
     .parse = shuffle_parse_shard_sequences, .from = "gather"},
    {"documents", 0, CLI_FLAG, AT(shards.documents), NULL,
     "write whole documents, each a sequence, of a stream that was not\n"
     "decomposed or packed; not for wds and megatron-sft"},
    {"shard-size", 0, CLI_SIZE, AT(shards.shard_byte), "SIZE",
     "bytes of ids in a shard: for megatron, olmo and ds 4G by default;\n"
     "documents of mds, litdata and parquet: 8M, each 128 bytes more",
     .from = "gather"},
    {"last", 0, CLI_CHOICE, AT(shards.last), NULL,
     "keep a bucket's last shard if it is not full (default), or drop it",
     .choice = shuffle_lasts, .from = "gather"},
    {"tails", 0, CLI_CHOICE, AT(shards.tails), NULL,
     "for shards, sequences without a bucket's length: refuse the stream\n"
     "(default), or drop them",
     .choice = shuffle_tails},
    {"compress", 0, CLI_CUSTOM, AT(shards.compress), "zstd[:LEVEL]|none",
     "for mds, litdata, parquet and megatron-sft: compression of shards",
     .parse = shuffle_parse_compress, .from = "gather"},
    {"member", 0, CLI_CHOICE, AT(shards.member), NULL,
     "for wds: format of the members; default txt", .choice = slu_shard_member_names,
     .from = "gather"},
    {"max-segments", 0, CLI_COUNT, AT(shards.max_segments), "N",
     "for mds: an array of N lengths of segments, filled with 0 from the\n"
     "padding on, so that all samples of a bucket have one shape",
     .least = 1, .most = UINT32_MAX, .from = "gather"},
    {"olmo-path", 0, CLI_STRING, AT(shards.olmo_path), "PATH",
     "for olmo: folder or URL under which the trainer reads -o DIR; names\n"
     "in the trainer's cache are a hash of it",
     .effect = CLI_BYTES, .from = "gather"},
    {"olmo-tokenizer", 0, CLI_STRING, AT(shards.olmo_tokenizer), "NAME|V,E,P",
     "for olmo: the trainer's vocabulary size, EOS and padding, if the\n"
     "stream has others; or dolma2, gpt-neox-olmo-dolma-v1_5",
     .effect = CLI_BYTES, .from = "gather"},
    {"license", 0, CLI_STRING, AT(shards.license), "TEXT",
     "licence of the data, for the data card: an SPDX identifier, or a\n"
     "text",
     .from = "gather"},
    {"max-tokens", 0, CLI_COUNT, AT(max_tokens), "N",
     "stop before the sequence that would make more than N tokens",
     .traits = CLI_OF_TEXT},
    {"sample", 0, CLI_FRACTION, AT(sample), "FRACTION",
     "keep this fraction of the sequences, chosen by hash"},
    {"order", 0, CLI_CUSTOM, AT(order_text),
     "random|keep|ascending|descending|bands[:N]",
     "random (default); keep: the input's order; by score: ascending,\n"
     "descending, or bands[:N], random in each of N bands",
     .parse = parse_order},
    {"mix", 0, CLI_STRING, AT(mix.mix), "NAME=WEIGHT,...|EXPR:N,...",
     "take the sources in this ratio of tokens; a source is repeated only\n"
     "if --max-tokens asks for more than it has; or bands with the times\n"
     "that each is taken: 'score>=4:2, lang == \"zh\":3, score<2:0'",
     .traits = CLI_OF_TEXT},
    {"mix-by", 0, CLI_CUSTOM, AT(mix.by), "domain|input|FIELD",
     "sources are domains (default), the inputs, by path or number from 0,\n"
     "or the values of a field of metadata, source, id, length or score",
     .parse = shuffle_parse_mix_by, .traits = CLI_OF_TEXT},
    {"max-epochs", 0, CLI_STRING, AT(mix.max_epochs), "N|NAME=N,...",
     "use each source at most N times; default 4 if an amount is given,\n"
     "else 1: as much as the scarcest source allows",
     .traits = CLI_OF_TEXT},
    {"mix-schedule", 0, CLI_STRING, AT(mix.schedule), "MIX:LENGTH;...",
     "mixes one after another; lengths are 80%, 20G (tokens) or 1000steps",
     .traits = CLI_OF_TEXT},
    {"batch-tokens", 0, CLI_LENGTH, AT(mix.batch_tokens), "N",
     "tokens of a step, for --mix-schedule", .traits = CLI_OF_TEXT},
    {"replace-set", 0, CLI_FLAG, AT(shards.replace_set), NULL,
     "replace the set of shards in -o DIR, finished or not", .effect = CLI_NOTHING},
    {"accept-mismatch", 0, CLI_FLAG, AT(shards.accept_mismatch), NULL,
     "write sequences with or without label tokens, and\n"
     "documents without EOS or BOS, whatever the format requires",
     .effect = CLI_NOTHING},
    CLI_FLOW_ROWS(AT(flow), "count|mix|cut|scatter|gather|finish"),
    {0},
};

static void defaults(void *p)
{
    struct opts *o = p;

    o->shards.format = -1;
    o->max_tokens = UINT64_MAX;
    o->sample = 1;
}

void shuffle_progress(void *job, uint64_t n_tok)
{
    struct job *j = job;

    cli_progress(j->ctx, slu_reader_bytes(j->reader), n_tok);
}

static void begin_writing(struct job *j)
{
    const struct slu_permute_result *r = slu_permute_result(j->permute);
    const struct opts *o = j->ctx->opts;
    uint64_t n = r->taken.tokens + r->repeated.tokens - r->not_mixed.tokens;

    cli_pass(j->ctx, "writing", 0, n < o->max_tokens ? n : o->max_tokens);
}

/* ---- a stream ---- */

static void stopped(void *job)
{
    slu_permute_stop(((struct job *)job)->permute);
}

static int produce(void *ctx, void *load, struct slu_err *err)
{
    struct job *j = ctx;
    struct shuffle_load *l = load;

    /* Must be set before the pipe waits: a single thread releases pins by doing
     * the work before it produces more.
     */
    slu_pipe_on_stop(j->pipe, stopped);
    int rc = slu_permute_borrow(j->permute, &l->rec, &l->pin, JOB_TOK, err);
    uint64_t n_byte = slu_permute_borrowed(j->permute);
    if (!rc && n_byte > SLU_PIPE_SLOT_BYTE)
        slu_pipe_take(j->pipe, n_byte, 0);
    return rc;
}

static int work(void *ctx, unsigned worker, void *load, struct slu_err *err)
{
    struct job *j = ctx;
    struct shuffle_load *l = load;
    int rc = slu_permute_open_pinned(j->permute, &l->rec, l->pin, &l->b, err);

    (void)worker;
    slu_buf_trim(&l->rec, SLU_KEEP_BATCH_BYTE);
    if (!rc)
        slu_batch_sum(&l->b);
    return rc;
}

int shuffle_emit(void *job, void *load, struct slu_err *err)
{
    struct job *j = job;
    struct shuffle_load *l = load;
    int rc = slu_writer_pass(j->writer, &l->b, err);

    j->written_tok += l->b.n_tok;
    cli_progress(j->ctx, 0, j->written_tok);
    slu_batch_trim(&l->b);
    return rc;
}

int shuffle_run(struct job *j, const struct slu_pipe_ops *ops, unsigned n_slots,
                struct slu_err *err)
{
    struct shuffle_load *l = calloc(n_slots, sizeof *l);
    void **slot = calloc(n_slots, sizeof *slot);
    int rc = l && slot ? SLU_OK : slu_fail_nomem(err, n_slots * sizeof *l);

    for (unsigned i = 0; i < n_slots && !rc; i++) {
        slu_batch_init(&l[i].b, j->header->tok_bytes);
        l[i].b.masks = j->header->masks;
        slot[i] = &l[i];
    }
    if (!rc)
        rc = slu_pipe_run_parts(ops, j, slot, n_slots, (unsigned)j->ctx->common.threads,
                                &j->pipe, err);
    for (unsigned i = 0; l && i < n_slots; i++) {
        slu_batch_release(&l[i].b);
        slu_buf_release(&l[i].rec);
    }
    free(l);
    free(slot);
    return rc;
}

/* ---- the account ---- */

static void drop(struct slu_account *l, const char *reason, struct slu_count n)
{
    if (n.sequences)
        slu_account_drop(l, reason, n);
}

void shuffle_account_left(struct slu_account *l, const struct slu_permute_result *r,
                          bool mix)
{
    slu_count_add(&l->repeated, r->repeated);
    if (mix)
        drop(l, "mix", r->not_mixed);
    drop(l, "tail", r->no_bucket);
    drop(l, "sample", r->not_sampled);
    if (!mix) /* of a cut in stages; in the order of one process */
        drop(l, "max-tokens", r->not_mixed);
}

/* Checks that the output equals the input minus the sequences left out: counts by the
 * account, contents by the checksum (unless the input was not read to its end). */
static int account(struct job *j, const struct slu_sum *out, struct slu_err *err)
{
    const struct slu_permute_result *r = slu_permute_result(j->permute);
    struct slu_u128 sum = slu_u128_add(slu_sum_content(out), r->left_checksum);
    struct slu_u128 in = slu_u128_add(slu_sum_content(&j->in), r->repeated_checksum);
    struct slu_count cut = r->taken;

    slu_count_add(&cut, r->repeated);
    slu_count_sub(&cut, r->not_mixed);
    slu_count_sub(&cut, r->out);
    cli_account_in(j->ctx, &j->in);
    shuffle_account_left(&j->ctx->account, r, true);
    if (!j->mix.mix.n_source &&
        ((const struct opts *)j->ctx->opts)->max_tokens != UINT64_MAX)
        drop(&j->ctx->account, "max-tokens", cut);
    if (j->shards) {
        drop(&j->ctx->account, "last-shard", slu_shards_dropped(j->shards)->n);
        sum = slu_u128_add(sum, slu_sum_content(slu_shards_dropped(j->shards)));
    }
    j->ctx->spill_bytes = r->spilled_byte;
    if (cut.sequences == 0 && slu_u128_cmp(sum, in))
        return slu_fail(err, SLU_E_CONSERVATION,
                        "internal error: the sequences written differ from those read "
                        "(by their checksum); please report it");
    return SLU_OK;
}

static int finish(struct job *j, struct slu_err *err)
{
    struct slu_writer *w = j->writer;
    int rc = account(j, w ? slu_writer_sum(w) : slu_shards_sum(j->shards), err);

    if (rc)
        return rc;
    if (!w)
        return shuffle_shards_finish(j, &j->ctx->account, err);
    j->writer = NULL;
    return cli_close_writer(j->ctx, w, err);
}

/* ---- the run ---- */

struct slu_permute_cfg shuffle_permute_cfg(const struct cli_ctx *ctx)
{
    const struct opts *o = ctx->opts;
    const bool buckets = o->shards.format >= 0 && !o->shards.documents;

    return (struct slu_permute_cfg){.tmpdir = ctx->common.tmpdir,
                                    .n_threads = (unsigned)ctx->common.threads,
                                    .seed = ctx->common.seed,
                                    .sample = o->sample,
                                    .max_tokens = o->max_tokens,
                                    .buckets_only = buckets,
                                    .by_bucket = buckets,
                                    .order = (enum slu_order)o->order,
                                    .n_band = (unsigned)o->n_band};
}

int shuffle_open(struct job *j, struct slu_err *err)
{
    const struct opts *o = j->ctx->opts;
    int rc = cli_open_reader(j->ctx, &j->reader, err);

    if (rc)
        return rc;
    j->header = slu_reader_header(j->reader);
    j->names = slu_reader_names(j->reader);
    if (j->header->no_tokens)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has segment rows only, and no tokens to shuffle");
    if (o->order > SLU_ORDER_KEEP && !j->header->has[SLU_SCORE])
        return slu_fail(err, SLU_E_MISMATCH,
                        "--order %s needs scores, and the stream has none; tokenize "
                        "with --score-field NAME",
                        o->order_text);
    return SLU_OK;
}

unsigned shuffle_slots(const struct cli_ctx *ctx, uint64_t share_byte)
{
    uint64_t most = ctx->common.threads + 2;
    uint64_t n = (share_byte + SHUFFLE_SLACK_BYTE) / SLU_PIPE_SLOT_BYTE;

    return (unsigned)(n > most ? most : n < 2 ? 2 : n);
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, work, shuffle_emit};
    const struct opts *o = ctx->opts;
    struct job j = {.ctx = ctx};
    uint64_t share = shuffle_shards_share(ctx);
    struct slu_permute_cfg cfg = shuffle_permute_cfg(ctx);
    const struct slu_mixer *x = NULL;
    int rc = shuffle_shards_check(ctx, err);

    if (!rc && cli_flow_asked(ctx))
        rc = shuffle_check_stage(ctx, err);
    if (!rc)
        rc = cli_flow_begin(ctx, err);
    if (!rc && o->flow.stage)
        return shuffle_stage(ctx, err);
    if (rc == SLU_EOF)
        return SLU_OK;
    cfg.budget_byte = ctx->common.memory - share;
    if (!rc)
        rc = shuffle_mix_parse(&j.mix, ctx, &o->mix, err);
    if (!rc)
        rc = shuffle_open(&j, err);
    if (!rc)
        rc = shuffle_shards_passes(&j, err);
    cfg.pass = j.pass;
    if (!rc && o->shards.format >= 0)
        rc = shuffle_shards_open(&j, share, false, err);
    if (!rc && o->shards.format < 0)
        rc = cli_open_writer(ctx, &j.writer, j.header, j.names, false, err);
    if (!rc)
        rc = shuffle_mix_open(&j.mix, j.reader, &cfg, err);
    if (!rc)
        rc = slu_permute_new(&j.permute, &cfg, err);
    cli_timing(ctx, "read");
    if (!rc && j.pass)
        slu_permute_pass(j.permute, j.reader, &j.in, shuffle_progress, &j);
    else if (!rc)
        rc = slu_permute_read(j.permute, j.reader, cli_slots(ctx, share), &j.in,
                              shuffle_progress, &j, err);
    if (rc)
        shuffle_mix_explain(&j.mix, j.permute, j.reader, err);
    cli_timing(ctx, "write");
    if (!rc && !j.pass)
        begin_writing(&j);
    x = j.permute ? slu_permute_mixer(j.permute) : NULL;
    if (!rc && x)
        rc = shuffle_mix_report(&j.mix, x, slu_permute_period(j.permute, 0, 0),
                                j.header, j.shards, err);
    if (!rc && j.shards)
        rc = shuffle_shards_write(
            &j, j.pass ? cli_slots(ctx, cfg.budget_byte) : shuffle_slots(ctx, share),
            err);
    if (!rc && j.writer)
        rc = shuffle_run(&j, &ops, shuffle_slots(ctx, share), err);
    if (!rc)
        rc = finish(&j, err);
    slu_permute_free(j.permute);
    shuffle_mix_release(&j.mix);
    slu_writer_abort(j.writer);
    slu_shards_free(j.shards);
    slu_reader_free(j.reader);
    return rc == SLU_EOF ? SLU_OK : rc; /* published what was ready */
}

static int check_part(struct cli_ctx *ctx, struct slu_err *err)
{
    if (cli_flow_asked(ctx))
        return SLU_OK;
    return slu_fail(err, SLU_E_USAGE,
                    "--part: the order is one of all parts' sequences; use --stage");
}

static bool replaces(const void *opts)
{
    return ((const struct opts *)opts)->shards.replace_set;
}

static bool prints(const void *opts)
{
    return ((const struct opts *)opts)->shards.format < 0;
}

/* A token, and the token in the sorter's record. */
static uint64_t tok_byte(const struct cli_ctx *ctx)
{
    (void)ctx;
    return 8;
}

const struct slu_tool shuffle_tool = {
    .name = "shuffle",
    .synopsis = "[--mix NAME=WEIGHT,...] [--order ORDER] [--max-tokens N]\n"
                "[--sample FRACTION] [-o FILE] [STREAM ...]\n"
                "--format FORMAT -o DIR [--documents] [--shard-size SIZE]\n"
                "[--shard-sequences auto|N] [--last keep|drop] [--tails error|drop]\n"
                "[--order ORDER] [--max-tokens N]\n"
                "[--sample FRACTION] [--mix NAME=WEIGHT,...] [STREAM ...]\n"
                "--stage STAGE --work DIR [--part I/N] [--ranges R] [OPTION ...]\n"
                "[-o FILE|DIR] [STREAM ...]",
    .summary = "Puts the sequences of a stream in random order, and writes shards.",
    .opt = options,
    .opts_size = sizeof(struct opts),
    .defaults = defaults,
    .reads_stream = true,
    .masks = true,
    .inner_padding = true,
    .tok_byte = tok_byte,
    .memory_floor = 32 << 20,
    .check_part = check_part,
    .flow = shuffle_flow,
    .flow_at = AT(flow),
    .facts = shuffle_facts,
    .inputs = cli_flow_inputs,
    .prints = prints,
    .replaces = replaces,
    .spills = true,
    .examples = "  shuffle --seed 1 packed.tks -o shuffled.tks\n"
                "  pack pieces.tks | shuffle --format wds -o shards",
    .run = run,
};
