/* inspect.c - inspect: shows header, provenance, counts, histogram, records and text of
 * a stream or a shard set, and verifies everything that it reads. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/schedule/schedulefile.h"
#include "tools/inspect/inspect.h"

#define AT(field) offsetof(struct inspect_opts, field)

static const struct cli_opt opts[] = {
    {"json", 0, CLI_FLAG, AT(json), NULL, "print one JSON object"},
    {"records", 0, CLI_MAYBE_COUNT, AT(records), "N",
     "print sequences as JSON lines, all or the first N"},
    {"text", 0, CLI_FLAG, AT(text), NULL, "with --records: print the text too"},
    {"jsonl", 0, CLI_FLAG, AT(jsonl), NULL,
     "print the text of each segment, as JSON lines"},
    {"histogram", 0, CLI_FLAG, AT(histogram), NULL, "draw the lengths and the buckets"},
    {"groups", 0, CLI_STRING, AT(groups), "domain|FIELD",
     "of each domain, or value of a field of the metadata: documents,\n"
     "tokens, quantiles of length and score; with --json or --svg too"},
    {"svg", 0, CLI_OUTPUT, AT(svg), "FILE",
     "write a picture of the lengths and the buckets to FILE"},
    {"title", 0, CLI_STRING, AT(title), "TEXT", "with --svg: heading of the picture"},
    {"verify", 0, CLI_FLAG, AT(verify), NULL,
     "check everything; exit status 1 if anything is wrong"},
    {"merge-stats", 0, CLI_FLAG, AT(merge_stats), NULL,
     "add up the reports (--stats) and manifests of a job's parts, and\n"
     "check that none is missing and no token is lost"},
    {"table", 0, CLI_FLAG, AT(table), NULL,
     "with --merge-stats: print a table, not a JSON object"},
    {0},
};

static void defaults(void *p)
{
    struct inspect_opts *o = p;
    o->records = NO_RECORDS;
}

struct look {
    struct cli_ctx *ctx;
    const struct inspect_opts *o;
    struct slu_reader *r;
    const struct slu_vocab_table *text; /* NULL: --text is not given */
    struct inspect_seen seen;
    struct inspect_groups groups; /* if --groups is given */
    struct slu_buf line;
    uint64_t left; /* records still to print */
};

static int print_batch(struct look *k, struct slu_batch *b, struct slu_err *err)
{
    const struct inspect_names names = {slu_reader_names(k->r),
                                        &slu_reader_header(k->r)->meta, k->text};
    for (size_t i = 0; i < b->n_seq; i++) {
        if (k->left == 0)
            return SLU_OK;
        int rc = k->o->jsonl
                     ? inspect_print_text(b, &b->seq[i], &names, &k->line, err)
                     : inspect_print_record(b, &b->seq[i], &names, &k->line, err);
        if (rc)
            return rc;
        k->left -= k->left != UINT64_MAX;
    }
    return SLU_OK;
}

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct look *k = ctx;
    if (k->o->records != NO_RECORDS || k->o->jsonl)
        return print_batch(k, b, err);
    for (size_t i = 0; i < b->n_seq && !k->o->groups; i++) {
        uint64_t n = 0, l = b->seq[i].len_tok;
        slu_map_get(&k->seen.lengths, l, &n);
        int rc = slu_map_set(&k->seen.lengths, l, n + 1, err);
        if (rc)
            return rc;
    }
    if (k->o->groups) {
        int rc = inspect_groups_add(&k->groups, b, err);
        if (rc)
            return rc;
    } else if (inspect_wants_domains(k->o)) {
        int rc = slu_domains_add_batch(&k->seen.domains, b,
                                       slu_names_vocab(k->seen.names), err);
        if (rc)
            return rc;
    }
    slu_count_add(&k->ctx->account.in, b->sum.n);
    cli_progress(k->ctx, slu_reader_bytes(k->r), k->ctx->account.in.tokens);
    return SLU_OK;
}

/* Reads the first N records, and no more input than they need. */
static int first_records(struct look *k, struct slu_err *err)
{
    struct slu_batch b;
    slu_batch_init(&b, slu_reader_header(k->r)->tok_bytes);
    int rc = SLU_OK;
    while (!rc && k->left) {
        rc = slu_reader_next(k->r, &b, err);
        if (!rc)
            rc = print_batch(k, &b, err);
    }
    if (rc == SLU_EOF)
        rc = slu_reader_finish(k->r, NULL, err);
    slu_batch_release(&b);
    return rc;
}

/* The histogram of files of ids needs only the lengths of their documents. *done: the
 * scan replaced the pass. */
static int histogram_by_scan(struct cli_ctx *ctx, bool *done, struct slu_err *err)
{
    struct inspect_opts *o = ctx->opts;
    struct slu_tokens_lengths l = {0};
    struct slu_header h;
    struct inspect_seen seen = {.kind = "tokens", .header = &h};
    *done = false;
    if (!(o->histogram || o->svg) || o->groups || o->verify || o->json ||
        o->records != NO_RECORDS || o->jsonl)
        return SLU_OK;
    int rc = slu_device_choose(&o->device, (enum slu_device_kind)ctx->common.device,
                               ctx->common.device_ordinal, err);
    o->device.warn = cli_warn_text;
    o->device.warn_arg = ctx;
    o->device.n_threads = (unsigned)ctx->common.threads;
    ctx->device = &o->device;
    if (!rc)
        rc = cli_scan_lengths(ctx, &o->device, done, &l, err);
    slu_header_init(&h);
    for (size_t i = 0; !rc && i < l.n_row; i++)
        rc = slu_map_set(&seen.lengths, l.row[i].len_tok, l.row[i].count, err);
    seen.sum.n = (struct slu_count){l.documents, l.documents, l.tokens};
    seen.sum.segments = l.documents;
    if (!rc && *done && o->svg)
        rc = inspect_svg(&seen, o, err);
    if (!rc && *done && o->histogram)
        rc = inspect_print_histogram(&seen, err);
    ctx->account.in = ctx->account.out = seen.sum.n;
    slu_map_release(&seen.lengths);
    slu_header_release(&h);
    free(l.row);
    return rc;
}

/* The steps of a stream; where none has counts, those of its header alone. */
static int steps_of(struct inspect_seen *seen, const struct slu_step_list *read,
                    struct slu_err *err)
{
    static const struct slu_step_list none = SLU_STEPS_INIT;
    size_t i = 0;

    while (i < read->n && !read->row[i].counted)
        i++;
    return slu_steps_of(&seen->steps, seen->header, i < read->n ? read : &none, err);
}

static int inspect_stream(struct cli_ctx *ctx, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {NULL, emit};
    const struct inspect_opts *o = ctx->opts;
    struct look k = {.ctx = ctx, .o = o, .left = o->jsonl ? UINT64_MAX : o->records};
    bool done;
    ctx->looks = true;
    int rc = histogram_by_scan(ctx, &done, err);
    if (rc || done)
        return rc;
    rc = cli_open_reader(ctx, &k.r, err);
    if (rc)
        return rc;
    k.seen.kind = ctx->tokens ? "tokens" : "stream";
    k.seen.format = ctx->tokens;
    k.seen.header = slu_reader_header(k.r);
    k.seen.names = slu_reader_names(k.r);
    rc = slu_reader_read_vocab(k.r, err);
    if (!rc && (o->text || o->jsonl)) {
        k.text = slu_names_vocab(k.seen.names);
        if (!k.text)
            rc = slu_fail(
                err, SLU_E_MISMATCH,
                "the stream has no vocabulary frame, so there is no text; tokenize "
                "without --no-vocab");
    }
    if (!rc && o->groups)
        rc = inspect_groups_init(&k.groups, o->groups, k.r, ctx, err);
    if (!rc && o->records < NO_RECORDS)
        rc = first_records(&k, err);
    else if (!rc)
        rc = slu_stream_run(k.r, &ops, &k, (unsigned)ctx->common.threads,
                            cli_slots(ctx, ctx->common.memory / 2), &k.seen.sum, err);
    cli_erase(ctx);
    if (!rc)
        rc = steps_of(&k.seen, &ctx->steps, err);
    if (!rc && o->groups) {
        rc = inspect_groups_show(&k.groups, o, err);
        ctx->spill_bytes = slu_groups_spilled(k.groups.sums);
    } else if (!rc && o->records == NO_RECORDS && !o->jsonl)
        rc = inspect_show(&k.seen, o, err);
    ctx->account.in = ctx->account.out = k.seen.sum.n;
    slu_buf_release(&k.line);
    slu_map_release(&k.seen.lengths);
    slu_domains_release(&k.seen.domains);
    slu_steps_release(&k.seen.steps);
    inspect_groups_release(&k.groups);
    slu_reader_free(k.r);
    return rc;
}

/* Whether dir is a shard set of ours. Such a set is read as a set even if another
 * reader accepts its folder, because this gives more information. */
static bool is_set(const char *dir)
{
    char path[PATH_MAX];
    struct stat st;
    return snprintf(path, sizeof path, "%s/report.json", dir) < PATH_MAX &&
           !stat(path, &st);
}

static int look(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct cli_common *c = &ctx->common;
    struct slu_device asked;
    struct stat st;
    if (((const struct inspect_opts *)ctx->opts)->merge_stats)
        return inspect_merge(ctx, err);
    /* A device that is asked for by name must exist, even if no work is done there. */
    if (c->device == SLU_DEVICE_CUDA) {
        int rc = slu_device_choose(&asked, SLU_DEVICE_CUDA, c->device_ordinal, err);
        if (rc)
            return rc;
    }
    bool schedule = ctx->n_input && slu_schedulefile_is(ctx->input[0]);
    bool dir = ctx->n_input && !stat(ctx->input[0], &st) && S_ISDIR(st.st_mode);
    dir = dir && !c->input_format &&
          (is_set(ctx->input[0]) || !slu_tokens_takes_folder(ctx->input[0]));
    if ((schedule || dir) &&
        (c->eos_id != SLU_NO_TOKEN || c->token_bytes || c->vocab_size || c->column))
        return slu_fail(err, SLU_E_USAGE,
                        "--eos-id, --token-bytes, --vocab-size and --column say how to "
                        "read files of ids, which %s is not",
                        ctx->input[0]);
    if ((schedule || dir) && ((const struct inspect_opts *)ctx->opts)->groups)
        return slu_fail(err, SLU_E_USAGE,
                        "--groups reads streams; a set of shards is read as one with "
                        "--input-format set");
    if (schedule)
        return inspect_schedule(ctx, err);
    if (dir && ctx->n_input > 1)
        return slu_fail(err, SLU_E_USAGE,
                        "%s: a set of shards is inspected alone; name no other input",
                        ctx->input[0]);
    return dir ? inspect_shards(ctx, ctx->input[0], err) : inspect_stream(ctx, err);
}

/* ---- -o: printed text goes to a file that appears when it is complete ---- */

struct target {
    struct slu_out *out;
    struct slu_err *err; /* the error of the first failed write */
};

static ssize_t target_write(void *cookie, const char *p, size_t n)
{
    struct target *t = cookie;
    if (t->err->code || slu_out_write(t->out, p, n, t->err))
        return 0;
    return (ssize_t)n;
}

static int look_into(struct cli_ctx *ctx, struct slu_err *err)
{
    struct slu_err failed = SLU_ERR_INIT;
    struct target t = {NULL, &failed};
    FILE *terminal = stdout, *file = NULL;
    int rc = slu_out_open(&t.out, ctx->common.output, err);
    if (rc)
        return rc;
    file = fopencookie(&t, "w", (cookie_io_functions_t){.write = target_write});
    if (!file)
        rc = slu_fail_nomem(err, BUFSIZ);
    if (!rc) {
        stdout = file;
        rc = look(ctx, err);
        (void)!fflush(stdout);
        stdout = terminal;
    }
    if (file)
        fclose(file);
    if (failed.code) {
        *err = failed;
        rc = failed.code;
    }
    if (!rc)
        return slu_out_close(t.out, err);
    slu_out_abort(t.out);
    return rc;
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct inspect_opts *o = ctx->opts;
    bool to_file = ctx->common.output && strcmp(ctx->common.output, "-") != 0;
    if (o->merge_stats && (o->json || o->records != NO_RECORDS || o->jsonl ||
                           o->histogram || o->svg || o->verify || o->text))
        return slu_fail(err, SLU_E_USAGE, "--merge-stats goes with --table only");
    if (o->table && !o->merge_stats)
        return slu_fail(err, SLU_E_USAGE, "--table goes with --merge-stats");
    if (o->json + (o->records != NO_RECORDS) + o->jsonl + o->histogram > 1)
        return slu_fail(
            err, SLU_E_USAGE,
            "--json, --records, --jsonl and --histogram exclude each other");
    if (o->svg && (o->records != NO_RECORDS || o->jsonl))
        return slu_fail(err, SLU_E_USAGE,
                        "--svg goes with --json, --histogram or --verify, or alone");
    if (o->groups && (o->records != NO_RECORDS || o->jsonl || o->histogram ||
                      o->verify || o->merge_stats))
        return slu_fail(err, SLU_E_USAGE, "--groups goes with --json or --svg only");
    if (o->title && !o->svg)
        return slu_fail(err, SLU_E_USAGE, "--title goes with --svg");
    if (o->text && o->records == NO_RECORDS)
        return slu_fail(err, SLU_E_USAGE, "--text goes with --records");
    return to_file ? look_into(ctx, err) : look(ctx, err);
}

static bool prints(const void *p)
{
    const struct inspect_opts *o = p;
    return !o->svg || o->json || o->histogram || o->verify;
}

const struct slu_tool inspect_tool = {
    .name = "inspect",
    .synopsis =
        "[--groups domain|FIELD] [--json] [--svg FILE [--title TEXT]] [FILE ...]\n"
        "[--json | --records[=N] [--text] | --jsonl | --histogram | --verify]\n"
        "[--svg FILE [--title TEXT]]\n"
        "[option ...] [FILE | DIR ...]\n"
        "--merge-stats [--table] [-o FILE] REPORT ...",
    .summary =
        "Shows a token stream, a shard directory or a schedule, and verifies it.",
    .opt = opts,
    .opts_size = sizeof(struct inspect_opts),
    .defaults = defaults,
    .reads_stream = true,
    .masks = true,
    .inner_padding = true,
    .memory_floor = 32 << 20,
    .plain_output = true,
    .prints = prints,
    .uses_device = true,
    .examples = "  inspect docs.tks\n  inspect --verify shards\n"
                "  tokenize corpus.jsonl | inspect --records=3 --text",
    .run = run,
};
