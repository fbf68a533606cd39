/* choose.c - chooses sequences of a stream by domain, source, id, length, score and
 * metadata, and the best of them. With --stage: one stage of the work, with files between
 * stages (lib/choose/choose.h). */
#include "tools/choose/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "tools/cli/cli_inputs.h"

static const char *const units[] = {"tokens", "documents", NULL};

#define AT(field) offsetof(struct choose_opts, field)
static const struct cli_opt options[] = {
    {"domain", 0, CLI_CUSTOM, AT(domain), "NAME[,NAME...]",
     "keep documents of these domains; an empty name: without a domain",
     .parse = choose_parse_domain},
    {"source", 0, CLI_CUSTOM, AT(source), "NAME[,NAME...]",
     "keep documents of these sources; names may have *, ? and [ ]",
     .parse = choose_parse_source},
    {"ids-keep", 0, CLI_FILE, AT(ids_keep.file), "FILE",
     "keep documents with the records' ids in FILE, one a line"},
    {"ids-drop", 0, CLI_FILE, AT(ids_drop.file), "FILE",
     "drop documents with the ids in FILE"},
    {"length", 0, CLI_CUSTOM, AT(length), "MIN..MAX",
     "keep documents of MIN to MAX tokens; MIN.. and ..MAX leave one end\nopen",
     .parse = choose_parse_length},
    {"score", 0, CLI_CUSTOM, AT(score), "COMPARISON[,...]",
     "keep documents whose score is as '>=3' or '>=3,<4.5' says; those\n"
     "without a score are dropped",
     .parse = choose_parse_score},
    {"where", 0, CLI_STRING, AT(where), "EXPR",
     "keep documents of which EXPR is true, over their metadata, domain,\n"
     "source, id, length and score: 'lang == \"en\" and quality >= 3'"},
    {"top", 0, CLI_CUSTOM, AT(top), "P%|N",
     "of these, keep the best P percent, or N tokens", .parse = choose_parse_top},
    {"by", 0, CLI_STRING, AT(by), "score|length|hash|FIELD",
     "with --top: the best have the highest score (default), are the\n"
     "longest, are drawn by a hash of --seed, or have the highest number\n"
     "in a field of their metadata"},
    {"unit", 0, CLI_CHOICE, AT(unit), NULL,
     "with --top: P and N count tokens (default) or documents", .choice = units},
    {"per", 0, CLI_STRING, AT(per), "domain|FIELD",
     "with --top: of each domain, or of each value of a field of the\n"
     "metadata; with --partition: a stream for each"},
    {"partition", 0, CLI_STRING, AT(partition), "DIR",
     "write a stream for each domain into the new folder DIR", .path = true,
     .effect = CLI_NOTHING},
    CLI_FLOW_ROWS(AT(flow), "rank|cut|filter"),
    {0},
};

static void defaults(void *opts)
{
    ((struct choose_opts *)opts)->by = "score";
}

struct job {
    struct cli_ctx *ctx;
    struct choose_wanted wanted;
    struct slu_reader *reader;
    struct slu_writer *writer;
    struct choose_partition *partition; /* in place of writer */
    struct slu_choose *choose;
    uint64_t tok;
};

/* ---- options ---- */

static int check(const struct cli_ctx *ctx, struct slu_err *err)
{
    static const char *const top_only[] = {"by", "unit", NULL};
    static const char *const criteria[] = {
        "domain", "source", "ids-keep", "ids-drop",  "length",
        "score",  "where",  "top",      "partition", NULL};
    const struct choose_opts *o = ctx->opts;
    bool any = false;

    for (unsigned i = 0; !o->top && top_only[i]; i++)
        if (cli_given(ctx, top_only[i]))
            return slu_fail(err, SLU_E_USAGE, "--%s needs --top", top_only[i]);
    if (o->per && !o->top && !o->partition)
        return slu_fail(err, SLU_E_USAGE, "--per needs --top or --partition");
    for (unsigned i = 0; criteria[i]; i++)
        any |= cli_given(ctx, criteria[i]);
    if (!any)
        return slu_fail(err, SLU_E_USAGE,
                        "nothing to choose by; give --domain, --source, --ids-keep, "
                        "--ids-drop, --length, --score, --where, --top or "
                        "--partition");
    if (o->partition && (ctx->common.output || ctx->common.manifest))
        return slu_fail(err, SLU_E_USAGE,
                        "--partition cannot be combined with -o or --manifest; it "
                        "writes to its folder");
    if (o->partition && cli_flow_asked(ctx))
        return slu_fail(err, SLU_E_USAGE,
                        "--partition cannot be combined with --stage; divide the "
                        "streams of all parts: choose --partition DIR STREAM ...");
    if (o->flow.stage && !o->top)
        return slu_fail(err, SLU_E_USAGE,
                        "--stage needs --top; each part can be chosen from by itself, "
                        "with --part I/N");
    return SLU_OK;
}

static int check_part(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct choose_opts *o = ctx->opts;

    if (o->partition)
        return slu_fail(err, SLU_E_USAGE,
                        "--part: --partition writes one folder; divide the streams of "
                        "all parts in one run");
    if (cli_flow_asked(ctx) || !o->top)
        return SLU_OK;
    return slu_fail(err, SLU_E_USAGE,
                    "--part: the best of all parts are not the best of each; use "
                    "--stage");
}

static const struct slu_flow_spec *flow(const struct cli_ctx *ctx)
{
    (void)ctx;
    return &slu_choose_spec;
}

/* ---- a stream in, a stream out ---- */

static int open_output(void *ctx, struct slu_err *err)
{
    struct job *j = ctx;

    if (((const struct choose_opts *)j->ctx->opts)->partition)
        return choose_partition_open(
            &j->partition, j->ctx, slu_reader_header(j->reader),
            slu_reader_names(j->reader), j->ctx->common.memory / 4, err);
    return cli_open_writer(j->ctx, &j->writer, slu_reader_header(j->reader),
                           slu_reader_names(j->reader), false, err);
}

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct job *j = ctx;

    j->tok += b->n_tok;
    cli_progress(j->ctx, slu_reader_bytes(j->reader), j->tok);
    return j->partition ? choose_partition_put(j->partition, b, err)
                        : slu_writer_pass(j->writer, b, err);
}

static int again(void *ctx, struct slu_reader **r, struct slu_err *err)
{
    return cli_reopen_reader(((struct job *)ctx)->ctx, r, err);
}

/* Whether no sequence is chosen of n_seq, and *why: the criterion that dropped them all;
 * SLU_WHY_NOT: several did. */
static bool all_dropped(const struct slu_choose_result *r, uint64_t n_seq,
                        enum slu_why *why)
{
    uint64_t dropped = 0;

    *why = SLU_WHY_NOT;
    for (int i = SLU_WHY_DOMAIN; i < SLU_N_WHY; i++) {
        dropped += r->dropped[i].sequences;
        if (r->dropped[i].sequences == n_seq)
            *why = (enum slu_why)i;
    }
    return n_seq && dropped == n_seq;
}

/* Warns if no sequence is chosen: most likely a name is mistyped. Other parts of a job
 * may have some. */
static void warn_of_none(const struct job *j, const struct slu_choose_result *r,
                         uint64_t n_seq)
{
    static const char *const look[SLU_N_WHY] = {
        [SLU_WHY_DOMAIN] = "; inspect lists the stream's domains",
        [SLU_WHY_SOURCE] = "; 'inspect --records' shows its sources",
        [SLU_WHY_IDS_KEEP] = "; 'inspect --records' shows its ids",
        [SLU_WHY_WHERE] = "; 'inspect --records' shows its values",
    };
    enum slu_why why;

    if (j->ctx->common.part.n || !all_dropped(r, n_seq, &why))
        return;
    if (why == SLU_WHY_NOT)
        cli_warn(j->ctx, "nothing is left: each sequence fails one of the criteria");
    else
        cli_warn(j->ctx, "nothing is left: all is dropped by --%s%s", slu_why_name[why],
                 look[why] ? look[why] : "");
}

static int report(struct job *j, const struct slu_sum *in, struct slu_err *err)
{
    const struct slu_choose_result *r = slu_choose_result(j->choose);
    struct slu_writer *w = j->writer;

    if (r->groups)
        cli_stat_u64(j->ctx, "groups", r->groups);
    if (!w && !j->partition)
        return SLU_OK;
    cli_account_in(j->ctx, in);
    for (int why = SLU_WHY_DOMAIN; why < SLU_N_WHY; why++)
        if (r->dropped[why].sequences)
            slu_account_drop(&j->ctx->account, slu_why_name[why], r->dropped[why]);
    warn_of_none(j, r, in->n.sequences);
    j->writer = NULL;
    return w ? cli_close_writer(j->ctx, w, err)
             : choose_partition_close(j->partition, err);
}

/* The part of -M for batches in flight; lists, the best and --partition have as much. */
static uint64_t in_flight(const struct cli_ctx *ctx)
{
    return ctx->common.memory / 4;
}

static int run_all(struct job *j, struct slu_err *err)
{
    struct slu_sum in = {0};
    int rc = slu_choose_begin(j->choose, slu_reader_header(j->reader),
                              slu_reader_names(j->reader), err);

    if (!rc)
        rc = open_output(j, err);
    if (!rc)
        rc = slu_choose_run(j->choose, j->reader, cli_slots(j->ctx, in_flight(j->ctx)),
                            &in, err);
    j->ctx->spill_bytes = slu_choose_result(j->choose)->spilled_byte;
    return rc ? rc : report(j, &in, err);
}

static int run_stage(struct job *j, uint64_t budget, struct slu_err *err)
{
    const struct slu_flow_cfg cfg = {.reader = j->reader,
                                     .ctx = j->choose,
                                     .begin = slu_choose_begin,
                                     .budget_byte = budget,
                                     .n_slots =
                                         cli_slots(j->ctx, in_flight(j->ctx) / 2)};
    struct slu_flow_report r;
    int rc = cli_flow_run(j->ctx, cfg, false, &r, err);

    return rc ? rc : report(j, &r.in, err);
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct choose_opts *o = ctx->opts;
    const uint64_t budget = ctx->common.memory / 4;
    struct job j = {.ctx = ctx};
    const struct slu_choose_cfg cfg = {.criteria = &j.wanted.criteria,
                                       .top = o->top ? &j.wanted.top : NULL,
                                       .budget_byte = budget,
                                       .tmpdir = ctx->common.tmpdir,
                                       .n_threads = (unsigned)ctx->common.threads,
                                       .emit = emit,
                                       .again = cli_reads_twice(ctx) ? again : NULL,
                                       .open = open_output,
                                       .ctx = &j};
    int rc = check(ctx, err);

    if (rc)
        return rc;
    if (o->flow.stages && !o->top) { /* one step, each part by itself */
        puts("- parts reads writes -");
        return SLU_OK;
    }
    rc = cli_flow_begin(ctx, err);
    if (rc)
        return rc == SLU_EOF ? SLU_OK : rc;
    rc = choose_want(&j.wanted, ctx, err);
    if (!rc && (!o->flow.stage || cli_flow_stage(ctx)->flags & SLU_STAGE_READS))
        rc = cli_open_reader(ctx, &j.reader, err);
    if (!rc)
        rc = slu_choose_new(&j.choose, &cfg, err);
    if (!rc)
        rc = o->flow.stage ? run_stage(&j, budget, err) : run_all(&j, err);
    slu_choose_free(j.choose);
    slu_writer_abort(j.writer);
    choose_partition_free(j.partition);
    slu_reader_free(j.reader);
    choose_wanted_release(&j.wanted, ctx);
    return rc;
}

static bool prints(const void *opts)
{
    return !((const struct choose_opts *)opts)->partition;
}

const struct slu_tool choose_tool = {
    .name = "choose",
    .synopsis = "[--domain NAME,...] [--source NAME,...] [--length MIN..MAX]\n"
                "[--score COMPARISON,...] [--where EXPR]\n"
                "[--ids-keep FILE] [--ids-drop FILE]\n"
                "[--top P%|N [--by score|length|hash|FIELD]\n"
                " [--unit tokens|documents]] [--per domain|FIELD]\n"
                "[-o FILE | --partition DIR] [STREAM ...]\n"
                "--top P%|N --stage rank|cut|filter --work DIR [--part I/N]\n"
                "[OPTION ...] [-o FILE] [STREAM ...]",
    .summary =
        "Chooses documents by domain, source, id, length, score and metadata, and the "
        "best of them.",
    .opt = options,
    .opts_size = sizeof(struct choose_opts),
    .defaults = defaults,
    .reads_stream = true,
    .masks = true,
    .inner_padding = true,
    .memory_floor = 32 << 20,
    .spills = true,
    .prints = prints,
    .check_part = check_part,
    .flow = flow,
    .flow_at = AT(flow),
    .inputs = cli_flow_inputs,
    .examples = "  choose --score '>=3' --length 100.. docs.tks -o good.tks\n"
                "  choose --top 10% --by score --per domain docs.tks -o best.tks\n"
                "  tokenize corpus.jsonl | choose --domain web,code | decompose\n"
                "  choose --partition domains docs.tks\n"
                "  choose --partition langs --per lang docs.tks",
    .run = run,
};
