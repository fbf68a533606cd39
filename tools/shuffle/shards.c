/* shards.c - shuffle --format: writes the sequences as shards of a trainer's format.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/json_write.h"
#include "lib/base/number.h"
#include "lib/flow/made.h"
#include "tools/shuffle/shuffle.h"

const char *const shuffle_lasts[] = {"keep", "drop", NULL};
const char *const shuffle_tails[] = {"error", "drop", NULL};

int shuffle_parse_shard_sequences(void *opts, const char *value, struct slu_err *err)
{
    struct shuffle_shards_opts *o = &((struct opts *)opts)->shards;

    o->shard_sequences = value;
    o->n_shard_seq = 0;
    if (!strcmp(value, "auto")) {
        o->shard_sequences = NULL;
        return SLU_OK;
    }
    if (!slu_number(value, strlen(value), 1000, &o->n_shard_seq) || !o->n_shard_seq ||
        o->n_shard_seq >> 52)
        return slu_fail(err, SLU_E_USAGE,
                        "--shard-sequences: '%s' is neither auto nor a number of "
                        "sequences above 0",
                        value);
    return SLU_OK;
}

int shuffle_parse_compress(void *opts, const char *value, struct slu_err *err)
{
    struct shuffle_shards_opts *o = &((struct opts *)opts)->shards;

    o->compress = strcmp(value, "zstd:3") ? value : "zstd"; /* the same level */
    return slu_shard_compress_level(value, &o->compress_level)
               ? SLU_OK
               : slu_fail(err, SLU_E_USAGE,
                          "--compress: '%s' is neither zstd, zstd:LEVEL with a level "
                          "of 1 to 19, nor none",
                          value);
}

/* Whether the licence has no control characters, which YAML does not allow. */
static bool is_text(const char *s)
{
    size_t left = strlen(s);

    for (unsigned n; left; s += n, left -= n) {
        const uint8_t *p = (const uint8_t *)s;
        n = slu_utf8_valid_at(p, left);
        if (n == 0 || *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
            return false;
    }
    return true;
}

int shuffle_shards_check(const struct cli_ctx *ctx, struct slu_err *err)
{
    const struct opts *all = ctx->opts;
    const struct shuffle_shards_opts *o = &all->shards;
    const struct slu_stage *stage = cli_flow_stage(ctx);
    bool output = !all->flow.stages && (!stage || stage->flags & SLU_STAGE_SET);

    if (o->format >= 0 && output &&
        (!ctx->common.output || !strcmp(ctx->common.output, "-")))
        return slu_fail(err, SLU_E_USAGE,
                        "--format needs a folder for its shards: -o DIR");
    if (o->format < 0 && (o->replace_set || o->accept_mismatch))
        return slu_fail(err, SLU_E_USAGE,
                        "--%s needs shards; add --format FORMAT -o DIR",
                        o->replace_set ? "replace-set" : "accept-mismatch");
    if (o->format < 0 && (o->n_shard_seq || o->last || o->tails))
        return slu_fail(err, SLU_E_USAGE,
                        "--shard-sequences, --last and --tails need shards; add "
                        "--format FORMAT -o DIR");
    if (o->format < 0 && (o->compress || o->member || o->max_segments || o->olmo_path ||
                          o->olmo_tokenizer || o->license))
        return slu_fail(
            err, SLU_E_USAGE,
            "--compress, --member, --max-segments, --olmo-path, "
            "--olmo-tokenizer and --license need shards; add --format FORMAT "
            "-o DIR");
    if (o->format < 0 && (o->documents || o->shard_byte))
        return slu_fail(err, SLU_E_USAGE,
                        "--documents and --shard-size need shards; add --format FORMAT "
                        "-o DIR");
    if (o->documents && (o->last || o->tails))
        return slu_fail(err, SLU_E_USAGE,
                        "--last and --tails are for sequences of bucket lengths; leave "
                        "--documents or them out");
    if (o->n_shard_seq && o->shard_byte)
        return slu_fail(err, SLU_E_USAGE,
                        "--shard-size and --shard-sequences cannot be combined");
    if (o->license && !is_text(o->license))
        return slu_fail(
            err, SLU_E_USAGE,
            "--license takes one line of UTF-8, without control characters");
    return SLU_OK;
}

uint64_t shuffle_shards_share(const struct cli_ctx *ctx)
{
    const struct slu_shard_format *f = NULL;
    int i = ((const struct opts *)ctx->opts)->shards.format;

    if (i >= 0 && slu_shard_format_find(&f, slu_shard_format_names[i], NULL))
        f = NULL; /* the error is reported when the shards are opened */
    return f && f->build ? ctx->common.memory / 2 : ctx->common.memory / 4;
}

int shuffle_shards_longest(const struct job *j, uint64_t n_tok, struct slu_err *err)
{
    const struct shuffle_shards_opts *o = &((const struct opts *)j->ctx->opts)->shards;
    struct slu_shards_cfg cfg = {.header = j->header,
                                 .documents = true,
                                 .shard_sequences = o->n_shard_seq,
                                 .shard_byte = o->shard_byte};

    if (!o->documents)
        return SLU_OK;
    int rc = slu_shard_format_find(&cfg.format, slu_shard_format_names[o->format], err);
    return rc ? rc : slu_shards_check_longest(&cfg, n_tok, err);
}

/* Whether the input's summary is enough. */
static bool is_enough(const struct job *j)
{
    const struct shuffle_shards_opts *o = &((const struct opts *)j->ctx->opts)->shards;
    const struct slu_summary *p = &j->summary;
    const struct slu_shard_format *f = NULL;

    if (o->documents)
        return !shuffle_shards_longest(j, p->longest, NULL);
    /* Shards that are built, or may be dropped, wait in memory: of one bucket. */
    return p->bucketed &&
           !slu_shard_format_find(&f, slu_shard_format_names[o->format], NULL) &&
           (p->by_bucket || (!f->build && !o->last));
}

int shuffle_shards_passes(struct job *j, struct slu_err *err)
{
    const struct opts *o = j->ctx->opts;
    int rc = SLU_OK;

    /* With --replace-set it sorts, as of a pipe. */
    if (o->shards.format < 0 || o->shards.replace_set || o->order != SLU_ORDER_KEEP ||
        o->mix.mix || o->mix.schedule)
        return SLU_OK;
    for (int close = 0; close < 2 && !rc && !j->pass; close++) {
        rc = slu_reader_summary(j->reader, close, &j->summary, err);
        j->pass = !rc && is_enough(j);
    }
    j->input_id = j->pass ? j->summary.id : j->input_id;
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* Says how much space it takes to replace the set in DIR. */
static void warn_replaced(struct cli_ctx *ctx, const char *dir)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/report.json", dir);
    if (!access(path, F_OK))
        cli_warn(ctx,
                 "%s: the set in it stays until the new one is complete, and the disk "
                 "must have space for both; to need less, remove the old set first: "
                 "rm -r %s",
                 dir, dir);
}

int shuffle_shards_open(struct job *j, uint64_t memory_byte, bool parts,
                        struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    const struct shuffle_shards_opts *o = &((const struct opts *)ctx->opts)->shards;
    struct slu_header h;
    struct slu_shards_cfg cfg = {.dir = ctx->common.output,
                                 .header = &h,
                                 .names = j->names,
                                 .documents = o->documents,
                                 .shard_sequences = o->n_shard_seq,
                                 .shard_byte = o->shard_byte,
                                 .tmpdir = ctx->common.tmpdir,
                                 .drop_last = o->last == 1,
                                 .replace = o->replace_set,
                                 .accept_mismatch = o->accept_mismatch,
                                 .force = ctx->common.force,
                                 .zstd_level = ctx->common.zstd_level,
                                 .seed = ctx->common.seed,
                                 .memory_byte = memory_byte + SHUFFLE_SLACK_BYTE,
                                 .by_bucket = !j->pass || j->summary.by_bucket,
                                 .parts = parts,
                                 .compress_set = o->compress != NULL,
                                 .compress_level = o->compress_level,
                                 .member = (enum slu_shard_member)o->member,
                                 .max_segments = o->max_segments,
                                 .olmo_path = o->olmo_path,
                                 .olmo_tokenizer = o->olmo_tokenizer,
                                 .license = o->license,
                                 .input_id = j->input_id};
    struct slu_made made;
    char *text = NULL;
    int rc = slu_shard_format_find(&cfg.format, slu_shard_format_names[o->format], err);

    if (!rc)
        rc = cli_not_below_inputs(ctx, cfg.dir, err);
    if (rc)
        return rc;
    rc = slu_header_copy(&h, j->header, err);
    if (rc)
        return rc;
    if (!ctx->common.no_provenance) {
        rc = cli_provenance(ctx, &text, err);
        if (!rc)
            rc = slu_header_add_step(&h, ctx->tool->name, SLU_VERSION, text,
                                     ctx->common.seed, err);
        free(text);
    }
    if (!rc && cfg.replace && !parts)
        warn_replaced(ctx, cfg.dir);
    if (!rc) {
        rc = cli_made(ctx, &made, CLI_OF_STAGES, err);
        cfg.made = &made;
        if (!rc)
            rc = slu_shards_new(&j->shards, &cfg, err);
        slu_made_release(&made);
    }
    slu_header_release(&h);
    return rc;
}

static int source(void *ctx, struct slu_pipe *pipe, struct slu_batch *b,
                  struct slu_err *err)
{
    struct job *j = ctx;

    if (!j->pass)
        cli_progress(j->ctx, 0, slu_permute_result(j->permute)->out.tokens);
    return slu_permute_next(j->permute, pipe, b, JOB_TOK, err);
}

int shuffle_shards_tails(const struct cli_ctx *ctx, const struct slu_count *n,
                         struct slu_err *err)
{
    const struct shuffle_shards_opts *o = &((const struct opts *)ctx->opts)->shards;

    if (n->sequences == 0 || o->tails == 1)
        return SLU_OK;
    return slu_fail(err, SLU_E_MISMATCH,
                    "%llu sequence%s of %llu tokens %s no bucket's length; put 'pack' "
                    "before shuffle, or use --tails drop to leave such sequences out",
                    (unsigned long long)n->sequences, slu_plural(n->sequences),
                    (unsigned long long)n->tokens, n->sequences == 1 ? "has" : "have");
}

int shuffle_shards_write(struct job *j, unsigned n_slots, struct slu_err *err)
{
    const struct slu_permute_result *r = slu_permute_result(j->permute);
    int rc = j->pass ? SLU_OK : shuffle_shards_tails(j->ctx, &r->no_bucket, err);

    if (!rc && !j->pass)
        rc = shuffle_shards_longest(j, r->longest, err);
    if (!rc)
        rc = slu_shards_write(j->shards, source, j, j->pass ? &j->summary.sum : &j->in,
                              (unsigned)j->ctx->common.threads, n_slots, err);
    if (rc == SLU_EOF)
        cli_warn(j->ctx,
                 "%s: the set that this command had written when it was stopped is "
                 "published now",
                 j->ctx->common.output);
    if (!rc && j->pass &&
        (j->in.n.sequences != j->summary.sum.n.sequences ||
         j->in.n.tokens != j->summary.sum.n.tokens ||
         slu_u128_cmp(j->in.checksum, j->summary.sum.checksum)))
        rc = slu_fail(err, SLU_E_MISMATCH, "the input has changed while it was read");
    return rc;
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
    const char *note = slu_shards_format(j->shards)->short_shard_note;
    if (n_bucket && note)
        cli_warn(
            j->ctx,
            "%llu short last shard%s, with %llu sequence%s of %llu tokens: %s (see "
            "report.json; --last drop leaves them out)",
            (unsigned long long)n_bucket, slu_plural(n_bucket),
            (unsigned long long)n_seq, slu_plural(n_seq), (unsigned long long)n_tok,
            note);
}

/* Warns if the format loses the borders of documents in packed sequences. */
static void warn_boundaries(struct job *j)
{
    uint64_t n = slu_shards_packed(j->shards);
    const char *why = slu_shards_format(j->shards)->boundaries;

    if (n && why)
        cli_warn(j->ctx, "%llu sequence%s of several documents: %s",
                 (unsigned long long)n, slu_plural(n), why);
}

/* Says what the trainer must be told of padding between segments. */
static int warn_inner_padding(struct job *j, struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    int rc = slu_shards_inner_note(j->shards, &text, err);

    if (!rc && text.len)
        cli_warn(j->ctx, "%.*s", (int)text.len, (const char *)text.data);
    slu_buf_release(&text);
    return rc;
}

int shuffle_shards_finish(struct job *j, struct slu_account *account,
                          struct slu_err *err)
{
    struct slu_step_list steps = SLU_STEPS_INIT;
    slu_count_add(&account->out, slu_shards_sum(j->shards)->n);
    int rc = slu_account_check(account, err);

    if (!rc)
        rc = cli_steps(j->ctx, account, &steps, err);
    if (!rc)
        rc = slu_shards_set_steps(j->shards, &steps, err);
    slu_steps_release(&steps);
    if (rc)
        return rc;
    warn_short(j);
    warn_boundaries(j);
    rc = warn_inner_padding(j, err);
    if (rc)
        return rc;
    rc = slu_shards_finish(j->shards, j->ctx->tool->name, account, err);
    if (!rc && slu_shards_remark(j->shards))
        cli_warn(j->ctx, "%s", slu_shards_remark(j->shards));
    return rc;
}
