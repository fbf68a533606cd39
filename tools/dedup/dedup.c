/* dedup.c - dedup: drops sequences that duplicate earlier ones. Each mode defines
 * duplicates differently.
 *
 * This file has the option table, the choice of the mode, and the stream that every
 * mode reads and writes. The modes are tools/dedup/MODE.c; dedup.h says how to add one.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/against/index.h"
#include "lib/dedup/exact/exact_flow.h"
#include "lib/dedup/near/near_private.h"
#include "lib/dedup/ngrams/ngrams.h"
#include "lib/dedup/substring/substring_flow.h"
#include "tools/cli/cli_inputs.h"
#include "tools/dedup/dedup.h"

static const char *const unit_names[] = {"word", "token", "char", NULL};
static const char *const on_names[] = {"all", "trained", NULL};
static const char *const keep_names[] = {"first", "longest", "domain-order", NULL};
static const char *const ngrams_names[] = {"both", "paragraph", "document", NULL};

#define AT(field) offsetof(struct dedup_opts, field)
static const struct cli_opt options[] = {
    {"exact", 0, CLI_FLAG, AT(exact), NULL,
     "drop sequences with the same tokens as an earlier one; the default",
     .effect = CLI_NOTHING},
    {"near", 0, CLI_FLAG, AT(near), NULL,
     "drop sequences that are similar to a kept one (MinHash, then\n"
     "checked)"},
    {"ngrams", 0, CLI_MAYBE_CHOICE, AT(ngrams), NULL,
     "drop paragraphs, then documents (both, the default), whose n-grams\n"
     "occurred before, by a Bloom filter",
     .choice = ngrams_names},
    {"bands", 0, CLI_COUNT, AT(bands), "N", "near: bands of a signature; default 14"},
    {"rows", 0, CLI_COUNT, AT(rows), "N", "near: values in a band; default 8"},
    {"ngram", 0, CLI_COUNT, AT(ngram), "N",
     "near, ngrams: words of an n-gram; default 5; ngrams: default 13, and\n"
     "0 compares all words at once"},
    {"threshold", 0, CLI_CUSTOM, AT(threshold), "J",
     "near: least Jaccard similarity of n-grams; default 0.8",
     .parse = dedup_parse_threshold, .from = "verify"},
    {"unit", 0, CLI_CHOICE, AT(unit), NULL,
     "near, ngrams: units of an n-gram; default word", .choice = unit_names},
    {"on", 0, CLI_CHOICE, AT(trained), NULL,
     "exact, near, ngrams: compare all tokens (default), or those that are\n"
     "trained on",
     .choice = on_names, .traits = CLI_OF_TEXT},
    {"keep", 0, CLI_CHOICE, AT(keep), NULL,
     "near: document that is kept of similar ones; default first",
     .choice = keep_names},
    {"domains", 0, CLI_STRING, AT(domains), "A,B,...",
     "near: for --keep domain-order, the domains; the first is kept first"},
    {"no-verify", 0, CLI_UNFLAG, AT(verify), NULL,
     "near: drop all documents that share a band, similar or not", .from = "verify"},
    {"band-cap", 0, CLI_COUNT, AT(band_cap), "N",
     "near: compare only with the first N documents of a band; default 256",
     .from = "group"},
    {"audit", 0, CLI_MAYBE_COUNT, AT(audit), "N",
     "near: report the pairs that the bands missed, by an exact join with\n"
     "N documents (default 1000), and how similar dropped documents are",
     .effect = CLI_NOTHING, .traits = CLI_WHOLE},
    {"overlap", 0, CLI_CUSTOM, AT(overlap), "FRACTION",
     "ngrams: drop a text if this fraction of its n-grams occurred before;\n"
     "default 0.8",
     .parse = dedup_parse_overlap},
    {"fp-rate", 0, CLI_FRACTION, AT(fp_rate), "FRACTION",
     "ngrams: fraction of new n-grams that the filter may take for known\n"
     "ones; default 0.01"},
    {"min-words", 0, CLI_COUNT, AT(min_words), "N",
     "ngrams: keep each text of fewer words; default: as --ngram"},
    {"report", 0, CLI_OUTPUT, AT(report), "FILE",
     "ngrams: write the dropped texts to FILE, as JSON lines; against:\n"
     "write the items that were found",
     .effect = CLI_NOTHING},
    {"save-index", 0, CLI_OUTPUT, AT(save_index), "INDEX",
     "exact, near: write an index of the kept documents, for --against;\n"
     "ngrams: write an index of all n-grams, and drop nothing",
     .from = "index"},
    {"against", 0, CLI_FILES, AT(against), "INDEX",
     "exact, near: also drop documents that repeat one of INDEX; may be\n"
     "repeated. Alone: drop documents that share an n-gram with INDEX"},
    {"cut", 0, CLI_FLAG, AT(cut), NULL,
     "against: drop only the paragraphs that share an n-gram; substring:\n"
     "cut passages out, the default"},
    {"window", 0, CLI_COUNT, AT(window), "N",
     "cut: also drop paragraphs within N words of such an n-gram"},
    CLI_FLOW_ROWS(AT(flow), "sign|group|verify|cluster|index|ask|match|filter"),
    {"pairs", 0, CLI_OUTPUT, AT(pairs), "FILE",
     "write the dropped texts, each with the one kept for it, as JSON\n"
     "lines",
     .effect = CLI_NOTHING, .traits = CLI_WHOLE},
    {"substring", 0, CLI_COUNT, AT(substring), "N",
     "cut out passages of N or more tokens that occurred before; 50 is\n"
     "usual"},
    {"annotate", 0, CLI_FLAG, AT(annotate), NULL,
     "substring: keep the tokens, and write the passages to --pairs",
     .traits = CLI_WHOLE},
    {"min-keep", 0, CLI_COUNT, AT(min_keep), "N",
     "substring: also drop pieces of fewer than N tokens around a cut",
     .from = "filter"},
    {0},
};
_Static_assert(sizeof options / sizeof *options <= 64, "a bit each in cli_ctx.given");

/* The option that selects a mode has the name of the mode. */
static const struct {
    enum dedup_mode mode;
    const char *name;
    int (*run)(struct cli_ctx *ctx, struct slu_err *err);
    /* NULL: the mode has no stages */
    int (*stage)(struct cli_ctx *ctx, struct slu_err *err);
} modes[] = {
    {DEDUP_EXACT, "exact", dedup_exact, dedup_exact_stage},
    {DEDUP_NEAR, "near", dedup_near, dedup_near_stage},
    {DEDUP_NGRAMS, "ngrams", dedup_ngrams, NULL},
    {DEDUP_AGAINST, "against", dedup_against, NULL},
    {DEDUP_SUBSTRING, "substring", dedup_substring, dedup_substring_stage},
};
enum { N_MODE = sizeof modes / sizeof *modes };

/* Options that only some modes have. */
static const struct {
    const char *name;
    unsigned modes; /* bits of enum dedup_mode */
} belongs[] = {
    {"pairs", DEDUP_EXACT | DEDUP_NEAR | DEDUP_SUBSTRING},
    {"bands", DEDUP_NEAR},
    {"rows", DEDUP_NEAR},
    {"ngram", DEDUP_NEAR | DEDUP_NGRAMS},
    {"threshold", DEDUP_NEAR},
    {"on", DEDUP_EXACT | DEDUP_NEAR | DEDUP_NGRAMS},
    {"unit", DEDUP_NEAR | DEDUP_NGRAMS},
    {"no-verify", DEDUP_NEAR},
    {"band-cap", DEDUP_NEAR},
    {"audit", DEDUP_NEAR},
    {"keep", DEDUP_NEAR},
    {"domains", DEDUP_NEAR},
    {"overlap", DEDUP_NGRAMS},
    {"fp-rate", DEDUP_NGRAMS},
    {"min-words", DEDUP_NGRAMS},
    {"report", DEDUP_NGRAMS | DEDUP_AGAINST},
    {"save-index", DEDUP_EXACT | DEDUP_NEAR | DEDUP_NGRAMS},
    {"cut", DEDUP_AGAINST | DEDUP_SUBSTRING},
    {"window", DEDUP_AGAINST},
    {"stage", DEDUP_EXACT | DEDUP_NEAR | DEDUP_SUBSTRING},
    {"phase", DEDUP_EXACT | DEDUP_NEAR | DEDUP_SUBSTRING},
    {"stages", DEDUP_EXACT | DEDUP_NEAR | DEDUP_SUBSTRING},
    {"annotate", DEDUP_SUBSTRING},
    {"min-keep", DEDUP_SUBSTRING},
};

/* Options that no stage has. */
static const char *const whole[] = {"pairs", "annotate", "audit"};

static void defaults(void *opts)
{
    struct dedup_opts *o = opts;

    o->bands = 14;
    o->rows = 8;
    o->threshold_num = 4;
    o->threshold_den = 5;
    o->band_cap = 256;
    o->verify = true;
    o->ngrams = -1;
    o->ngram = o->min_words = UINT64_MAX;
    o->overlap_num = 4;
    o->overlap_den = 5;
    o->fp_rate = DEDUP_FP_RATE;
}

/* ---- the mode ---- */

/* Options of other modes are refused, because they would silently do nothing. */
static int check_belongs(const struct cli_ctx *ctx, unsigned mode, struct slu_err *err)
{
    for (size_t i = 0; i < sizeof belongs / sizeof *belongs; i++) {
        if ((belongs[i].modes & mode) || !cli_given(ctx, belongs[i].name))
            continue;
        char list[256] = "";
        for (size_t k = 0, n = 0; k < N_MODE; k++)
            if (belongs[i].modes & modes[k].mode && n < sizeof list)
                n += (size_t)snprintf(list + n, sizeof list - n, "%s--%s",
                                      n ? " or " : "", modes[k].name);
        return slu_fail(err, SLU_E_USAGE, "--%s needs %s; see --help", belongs[i].name,
                        list);
    }
    return SLU_OK;
}

static int check_stage(const struct cli_ctx *ctx, enum dedup_mode mode,
                       struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;

    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (cli_given(ctx, whole[i]))
            return slu_fail(err, SLU_E_USAGE,
                            "--%s needs all documents in one process; leave it out, or "
                            "run dedup without --stage",
                            whole[i]);
    return mode == DEDUP_NEAR        ? dedup_near_check(ctx, o, err)
           : mode == DEDUP_SUBSTRING ? dedup_substring_check(o, err)
                                     : SLU_OK;
}

static const struct slu_flow_spec *flow(const struct cli_ctx *ctx)
{
    const struct dedup_opts *o = ctx->opts;

    return o->near                       ? slu_near_spec(o->keep != DEDUP_KEEP_FIRST,
                                                         cli_given(ctx, "save-index"))
           : cli_given(ctx, "substring") ? &slu_substring_flow_spec
           : cli_given(ctx, "exact") || (o->ngrams < 0 && !o->against.n)
               ? slu_exact_spec(o->pairs != NULL, cli_given(ctx, "save-index"))
               : NULL;
}

/* The version of the rule by which words are cut; and with an index, stage sign of --exact
 * writes more, so whoever adds --save-index begins with it. */
static int facts(const struct cli_ctx *ctx, struct slu_made *m, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;

    if (o->near)
        return slu_made_fact(m, err, "unit=%s", slu_unit_param((enum slu_unit)o->unit));
    return flow(ctx) == slu_exact_spec(false, true)
               ? slu_made_fact(m, err, "--save-index")
               : SLU_OK;
}

static const char *mode_of(const struct cli_ctx *ctx)
{
    for (size_t i = 0; i < N_MODE; i++)
        if (cli_given(ctx, modes[i].name))
            return modes[i].name;
    return modes[0].name;
}

static int check_part(struct cli_ctx *ctx, struct slu_err *err)
{
    struct dedup_opts *o = ctx->opts;
    if (cli_flow_asked(ctx)) {
        o->save_index = NULL; /* the stage index writes it; that stage has no parts */
        return SLU_OK;
    }
    if (o->ngrams >= 0)
        return slu_fail(err, SLU_E_USAGE,
                        "--part: --ngrams asks what came before in the whole stream, "
                        "which cannot be split; run it as one");
    return slu_fail(err, SLU_E_USAGE,
                    "--part: duplicates across parts would stay; use --stage");
}

static int check_ngrams(const struct cli_ctx *ctx, struct slu_err *err)
{
    if (!cli_flow_asked(ctx))
        return SLU_OK;
    return slu_fail(err, SLU_E_USAGE,
                    "--ngrams has no stages: what its filter has seen depends on the "
                    "order of the whole stream");
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    size_t mode = 0;
    bool chosen = false;

    for (size_t i = 0; i < N_MODE; i++) {
        if (!cli_given(ctx, modes[i].name))
            continue;
        if (chosen && modes[i].mode == DEDUP_AGAINST &&
            (modes[mode].mode == DEDUP_EXACT || modes[mode].mode == DEDUP_NEAR))
            continue; /* --exact or --near says what --against compares */
        if (chosen)
            return slu_fail(err, SLU_E_USAGE,
                            "--%s and --%s are two passes; run them one after another "
                            "in a pipe: dedup --%s | dedup --%s",
                            modes[mode].name, modes[i].name, modes[mode].name,
                            modes[i].name);
        mode = i;
        chosen = true;
    }
    int rc = modes[mode].mode == DEDUP_NGRAMS ? check_ngrams(ctx, err) : SLU_OK;
    if (!rc)
        rc = check_belongs(ctx, modes[mode].mode, err);
    if (!rc && cli_flow_asked(ctx))
        rc = check_stage(ctx, modes[mode].mode, err);
    if (!rc)
        rc = cli_flow_begin(ctx, err);
    if (rc)
        return rc == SLU_EOF ? SLU_OK : rc;
    return cli_flow_stage(ctx) ? modes[mode].stage(ctx, err)
                               : modes[mode].run(ctx, err);
}

/* ---- a stream in, a stream out ---- */

int dedup_open_output(void *ctx, struct slu_err *err)
{
    struct dedup_io *io = ctx;

    return cli_open_writer(io->ctx, &io->writer, slu_reader_header(io->reader),
                           slu_reader_names(io->reader), false, err);
}

static void warn_prompts(struct cli_ctx *ctx)
{
    const struct dedup_opts *o = ctx->opts;

    if (cli_given(ctx, "on") || (cli_flow_stage(ctx) && !cli_flow_is(ctx, "sign")))
        return;
    if (o->near || (o->ngrams >= 0 && !o->save_index))
        cli_warn(ctx, "the stream has masks, as dialogues have, and prompts count too: "
                      "of different dialogues under one long prompt only one may be "
                      "left; --on trained compares what is trained on, --on all is "
                      "as now");
    else if (cli_given(ctx, "substring") && !o->annotate)
        cli_warn(ctx,
                 "the stream has masks, as dialogues have, and what repeats is cut "
                 "out of prompts too");
}

int dedup_open_reader(struct dedup_io *io, struct slu_err *err)
{
    const struct dedup_opts *o = io->ctx->opts;
    int rc = cli_open_reader(io->ctx, &io->reader, err);

    if (rc)
        return rc;
    if (slu_reader_header(io->reader)->masks)
        warn_prompts(io->ctx);
    else if (o->trained)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "--on trained: the stream has no masks, which tell what is "
            "trained on (tokenize --spans-field); leave --on out to compare "
            "all tokens");
    return SLU_OK;
}

int dedup_open(struct dedup_io *io, struct cli_ctx *ctx, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;

    *io = (struct dedup_io){.ctx = ctx};
    int rc = dedup_open_reader(io, err);
    if (rc)
        return rc;
    const struct slu_header *h = slu_reader_header(io->reader);
    if (h->no_tokens)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has segment rows only, and no tokens to compare");
    rc = dedup_open_output(io, err);
    return rc ? rc
              : dedup_pairs_open(&io->pairs, o->pairs, slu_reader_names(io->reader),
                                 ctx, err);
}

int dedup_emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct dedup_io *io = ctx;

    io->tok += b->n_tok;
    cli_progress(io->ctx, slu_reader_bytes(io->reader), io->tok);
    int rc = io->index ? slu_index_put(io->index, b, err) : SLU_OK;
    return rc ? rc : slu_writer_pass(io->writer, b, err);
}

int dedup_close(struct dedup_io *io, const struct slu_sum *in, const char *reason,
                struct slu_count dropped, struct slu_err *err)
{
    cli_account_in(io->ctx, in);
    if (dropped.sequences)
        slu_account_drop(&io->ctx->account, reason, dropped);
    if (io->pairs.out && io->pairs.n != dropped.sequences)
        return slu_fail(
            err, SLU_E_CONSERVATION,
            "internal error: %llu sequences were dropped and %llu reported; "
            "please report it",
            (unsigned long long)dropped.sequences, (unsigned long long)io->pairs.n);
    int rc = dedup_pairs_close(&io->pairs, err);
    io->ctx->spill_bytes += io->pairs.spilled_byte;
    struct slu_index_out *index = io->index;
    io->index = NULL;
    if (!rc)
        rc = slu_index_close(index, err);
    else
        slu_index_abort(index);
    if (rc)
        return rc;
    struct slu_writer *w = io->writer;
    io->writer = NULL;
    return cli_close_writer(io->ctx, w, err);
}

void dedup_abort(struct dedup_io *io)
{
    slu_writer_abort(io->writer);
    io->writer = NULL;
    dedup_pairs_abort(&io->pairs);
    slu_index_abort(io->index);
    io->index = NULL;
    slu_reader_free(io->reader);
    io->reader = NULL;
}

/* A word, and an n-gram, takes 8 bytes; an element of a set takes 16 or more. */
static uint64_t tok_byte(const struct cli_ctx *ctx)
{
    const struct dedup_opts *o = ctx->opts;

    if (cli_given(ctx, "near"))
        return 28;
    if (cli_given(ctx, "substring"))
        return 6; /* tokens and their blocks */
    if (cli_given(ctx, "exact"))
        return 4;
    if (o->ngrams < 0)
        return !o->against.n ? 4 : o->cut ? 32 : 16;
    return o->save_index ? 32 : o->ngrams == SLU_BY_DOCUMENT ? 24 : 40;
}

static void release(void *opts)
{
    free(((struct dedup_opts *)opts)->against.item);
}

const struct slu_tool dedup_tool = {
    .name = "dedup",
    .synopsis =
        "[--exact] [--on all|trained] [--against INDEX ...] [--save-index INDEX]\n"
        "      [--pairs FILE] [-o FILE] [STREAM ...]\n"
        "--near [--bands N --rows N] [--ngram N] [--unit word|token|char]\n"
        "      [--threshold J] [--on all|trained]\n"
        "      [--keep first|longest|domain-order] [--no-verify] [--audit]\n"
        "      [--against INDEX ...] [--save-index INDEX] [--pairs FILE]\n"
        "      [-o FILE] [STREAM ...]\n"
        "--ngrams[=both|paragraph|document] [--ngram N] [--unit word|token|char]\n"
        "      [--overlap FRACTION] [--fp-rate FRACTION] [--min-words N]\n"
        "      [--on all|trained] [--report FILE] [-o FILE] [STREAM ...]\n"
        "--ngrams --save-index INDEX [--ngram N] [--min-words N] [STREAM ...]\n"
        "--against INDEX [--cut [--window N]] [--report FILE] [STREAM ...]\n"
        "--substring N [--cut [--min-keep N] | --annotate] [--pairs FILE]\n"
        "      [-o FILE] [STREAM ...]\n"
        "--exact|--near|--substring N --stage STAGE --work DIR [--part I/N] [--ranges "
        "N]\n"
        "      [-o FILE] [STREAM ...]",
    .summary = "Drops sequences that equal an earlier one, are similar to it, or "
               "repeat parts of it.",
    .opt = options,
    .opts_size = sizeof(struct dedup_opts),
    .defaults = defaults,
    .reads_stream = true,
    .masks = true,
    .memory_floor = 32 << 20,
    .spills = true,
    .tok_byte = tok_byte,
    .check_part = check_part,
    .flow = flow,
    .flow_at = AT(flow),
    .facts = facts,
    .mode = mode_of,
    .inputs = cli_flow_inputs,
    .examples = "  tokenize corpus.jsonl | dedup -o unique.tks\n"
                "  dedup --pairs dropped.jsonl web.tks books.tks -o unique.tks\n"
                "  tokenize corpus.jsonl | dedup --near --threshold 0.7 -o fresh.tks\n"
                "  tokenize corpus.jsonl | dedup --ngrams -M 8G -o fresh.tks\n"
                "  dedup --substring 50 --pairs passages.jsonl docs.tks -o cut.tks",
    .run = run,
    .release = release,
};
