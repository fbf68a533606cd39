/* cli_input.c - opens the input of programs: streams, or files of ids. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/stream/stream_summary.h"
#include "tools/cli/cli_private.h"

void cli_widen_pipe(int fd)
{
    struct stat st;
    if (!fstat(fd, &st) && S_ISFIFO(st.st_mode))
        (void)fcntl(fd, F_SETPIPE_SZ, 1 << 20);
}

bool cli_reads_twice(const struct cli_ctx *ctx)
{
    struct stat st;
    for (size_t i = 0; i < ctx->n_input; i++)
        if (!strcmp(ctx->input[i], "-") || stat(ctx->input[i], &st) ||
            !S_ISREG(st.st_mode))
            return false;
    return ctx->n_input != 0;
}

/* Batches in flight may take a quarter of -M, and a part of the memory by which a
 * process may exceed -M. So documents of useful length fit even a small -M. */
#define SLACK_BYTE (UINT64_C(24) << 20)
static uint64_t in_flight(const struct cli_ctx *ctx)
{
    return ctx->common.memory / 4 + SLACK_BYTE;
}

static uint64_t tok_byte(const struct cli_ctx *ctx)
{
    return ctx->tool->tok_byte ? ctx->tool->tok_byte(ctx) : 4;
}

uint64_t cli_max_seq_tok(const struct cli_ctx *ctx)
{
    uint64_t most = ctx->common.memory / 16, n = in_flight(ctx) / tok_byte(ctx);
    return n < most ? n : most; /* so 4 bytes a token never exceed a quarter of -M */
}

void cli_expect(const struct cli_ctx *ctx, struct slu_reader *r)
{
    /* slu_batch_ids may copy the ids of a sequence with masks. */
    const uint64_t copy = slu_reader_header(r)->masks ? sizeof(uint32_t) : 0;
    slu_reader_expect(r, tok_byte(ctx) + copy, in_flight(ctx));
}

int cli_drop_metadata(struct cli_ctx *ctx, struct slu_reader *r, bool counts,
                      struct slu_err *err)
{
    uint64_t *n = counts ? &ctx->n_meta_dropped : NULL;
    const char *names = ctx->common.drop_metadata;
    int rc = names ? slu_reader_drop(r, names, n, err) : SLU_OK;

    return rc ? slu_err_at(err, "--drop-metadata %s", names) : rc;
}

static struct slu_tokens_cfg tokens_cfg(struct cli_ctx *ctx)
{
    const struct cli_common *c = &ctx->common;
    return (struct slu_tokens_cfg){.path = ctx->input,
                                   .n_path = ctx->n_input,
                                   .format = c->input_format,
                                   .eos = c->eos_id,
                                   .tok_bytes =
                                       c->token_bytes ? 1U << c->token_bytes : 0,
                                   .vocab_size = c->vocab_size,
                                   .column = c->column,
                                   .any_id = ctx->looks,
                                   .max_seq_tok = cli_max_seq_tok(ctx),
                                   .inner_padding = ctx->tool->inner_padding,
                                   .seen = &ctx->seen};
}

/* cli_pass over the input streams, whose sizes it finds. */
static void pass_over(struct cli_ctx *ctx, const char *what, const struct slu_reader *r)
{
    struct slu_summary all;
    struct stat st;
    uint64_t n_byte = 0;
    bool files = ctx->n_input > 0;

    if (!cli_draws(ctx))
        return;
    for (size_t i = 0; i < ctx->n_input && files; i++) {
        files = !stat(ctx->input[i], &st) && S_ISREG(st.st_mode);
        n_byte += files ? (uint64_t)st.st_size : 0;
    }
    if (files)
        cli_pass(ctx, what, n_byte, 0);
    else if (!slu_reader_summary(r, false, &all, NULL))
        cli_pass(ctx, what, 0, all.sum.n.tokens);
    else
        cli_pass(ctx, what, 0, 0);
}

static int open_inputs(struct cli_ctx *ctx, struct slu_tokens_cfg *t,
                       struct slu_reader **r, struct slu_err *err)
{
    bool scans;
    int rc = slu_tokens_are(t, &ctx->tokens, &scans, err);
    if (rc)
        return rc;
    if (ctx->tokens)
        rc = slu_tokens_open(r, t, err);
    struct slu_reader_cfg cfg = {ctx->input,
                                 ctx->n_input,
                                 cli_max_seq_tok(ctx),
                                 ctx->tool->masks,
                                 ctx->tool->inner_padding,
                                 ctx->in,
                                 ctx->common.drop_metadata};
    if (!ctx->tokens)
        rc = slu_reader_open(r, &cfg, err);
    if (!rc)
        rc = cli_drop_metadata(ctx, *r, t->seen, err);
    if (!rc && !ctx->tokens && t->seen)
        slu_reader_find_duplicates(*r, &ctx->duplicates);
    if (!rc && t->seen)
        rc = slu_reader_collect(*r, &ctx->steps, err);
    if (!rc) {
        pass_over(ctx, t->seen ? NULL : "again,", *r);
        cli_expect(ctx, *r);
        ctx->account.masks = slu_reader_header(*r)->masks;
    }
    return rc;
}

static int check_terminal(const struct cli_ctx *ctx, struct slu_err *err)
{
    bool from_stdin = !ctx->n_input;
    for (size_t i = 0; i < ctx->n_input; i++)
        from_stdin |= !strcmp(ctx->input[i], "-");
    if (ctx->in)
        return SLU_OK;
    if (from_stdin && isatty(STDIN_FILENO) && !ctx->common.force)
        return slu_fail(err, SLU_E_USAGE,
                        "standard input is a terminal; name a stream, or pipe one in");
    if (from_stdin)
        cli_widen_pipe(STDIN_FILENO);
    return SLU_OK;
}

int cli_open_reader(struct cli_ctx *ctx, struct slu_reader **r, struct slu_err *err)
{
    struct slu_tokens_cfg t = tokens_cfg(ctx);
    *r = NULL;
    int rc = check_terminal(ctx, err);
    return rc ? rc : open_inputs(ctx, &t, r, err);
}

int cli_reopen_reader(struct cli_ctx *ctx, struct slu_reader **r, struct slu_err *err)
{
    struct slu_tokens_cfg t = tokens_cfg(ctx);
    t.seen = NULL; /* already counted */
    *r = NULL;
    return open_inputs(ctx, &t, r, err);
}

static void progress(void *ctx, uint64_t n_byte, uint64_t n_tok)
{
    cli_progress(ctx, n_byte, n_tok);
}

int cli_scan_lengths(struct cli_ctx *ctx, struct slu_device *device, bool *scanned,
                     struct slu_tokens_lengths *l, struct slu_err *err)
{
    struct slu_tokens_cfg t = tokens_cfg(ctx);
    struct slu_tokens_lengths_cfg how = {.n_threads = (unsigned)ctx->common.threads,
                                         .memory = ctx->common.memory,
                                         .device = device,
                                         .progress = progress,
                                         .progress_arg = ctx};
    bool scans = false;
    *scanned = false;
    int rc = check_terminal(ctx, err);
    if (!rc)
        rc = slu_tokens_are(&t, &ctx->tokens, &scans, err);
    if (rc || !scans)
        return rc;
    cli_timing(ctx, "scan");
    rc = slu_tokens_lengths(&t, &how, l, err);
    *scanned = !rc;
    return rc;
}

/* "a.npy", or "a.npy and 2 more". */
static const char *some(const char *name, uint64_t n, char *text, size_t cap)
{
    if (n == 1)
        snprintf(text, cap, "%s", name);
    else
        snprintf(text, cap, "%s and %llu more", name, (unsigned long long)n - 1);
    return text;
}

static void warn_of_duplicates(struct cli_ctx *ctx)
{
    const struct slu_reader_duplicates *t = &ctx->duplicates;
    if (t->one && t->other && t->source)
        cli_warn(
            ctx,
            "%s and %s begin with the same document, of source %s; if they are two "
            "corpora, whose files have equal names, tokenize one of them with "
            "--source-prefix NAME",
            t->one, t->other, t->source);
}

void cli_input_free(struct cli_ctx *ctx)
{
    free(ctx->duplicates.one);
    free(ctx->duplicates.other);
    free(ctx->duplicates.source);
    slu_steps_release(&ctx->steps);
    slu_source_rows_release(&ctx->sources);
}

void cli_report_input(struct cli_ctx *ctx)
{
    const struct slu_tokens_seen *s = &ctx->seen;
    char text[600];
    warn_of_duplicates(ctx);
    if (ctx->common.drop_metadata)
        cli_stat_u64(ctx, "metadata_dropped", ctx->n_meta_dropped);
    if (!ctx->tokens)
        return;
    cli_stat_u64(ctx, "documents_without_eos", s->open_ended + s->no_eos);
    if (s->empty)
        cli_stat_u64(ctx, "empty_documents", s->empty);
    if (s->no_eos)
        cli_warn(ctx, "documents that do not end with id %llu: %llu",
                 (unsigned long long)ctx->common.eos_id, (unsigned long long)s->no_eos);
    if (s->masks)
        cli_warn(ctx, "%s: the losses that are masked beside it are not carried on",
                 some(s->masks_name, s->masks, text, sizeof text));
    if (s->gap_tok)
        cli_warn(ctx,
                 "%s: left out as padding, because no row of the .csv.gz beside it has "
                 "them: %llu id%s, all equal",
                 s->gap_name, (unsigned long long)s->gap_tok, slu_plural(s->gap_tok));
    if (s->without)
        cli_warn(ctx, "%s: no id %llu anywhere, so the whole file is one document",
                 some(s->without_name, s->without, text, sizeof text),
                 (unsigned long long)ctx->common.eos_id);
    else if (s->open_ended)
        cli_warn(ctx, "%s: the last document does not end with id %llu",
                 some(s->open_ended_name, s->open_ended, text, sizeof text),
                 (unsigned long long)ctx->common.eos_id);
}
