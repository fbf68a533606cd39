/* tokenize.c - tokenize: turns files of text into a stream of documents. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/parquet/parquet.h"
#include "formats/text/ingest.h"
#include "lib/base/json_write.h"
#include "lib/base/number.h"
#include "tools/cli/cli.h"
#include "tools/cli/cli_inputs.h"
#include "tools/tokenize/tokenize.h"

static const char *const specials[] = {"ordinary", "parse", NULL};
static const char *const on_errors[] = {"fail", "skip", "replace", NULL};
static const char *const on_missings[] = {"fail", "skip", NULL};
enum { ON_FAIL, ON_SKIP, ON_REPLACE, ON_NONE = -1 };

static int parse_tokenizer(void *opts, const char *value, struct slu_err *err)
{
    struct tokenize_opts *o = opts;
    (void)err;
    o->tokenizer = value;
    o->tokenizer_name = tokenize_from_file(o) ? NULL : value;
    return SLU_OK;
}

/* N[:NAME] */
static int parse_source(void *opts, const char *value, struct slu_err *err)
{
    struct tokenize_opts *o = opts;
    const char *colon = strchrnul(value, ':');
    uint64_t n;
    if (!slu_number(value, (size_t)(colon - value), 1000, &n) || n > UINT32_MAX ||
        (*colon && !colon[1]))
        return slu_fail(err, SLU_E_USAGE, "--source %s: expected N or N:NAME", value);
    o->source = value;
    o->source_base = n;
    o->source_name = *colon ? colon + 1 : "-";
    return SLU_OK;
}

#define AT(field) offsetof(struct tokenize_opts, field)
static const struct cli_opt options[] = {
    {"tokenizer", 't', CLI_CUSTOM, AT(tokenizer_name), "TOKENIZER",
     "tokenizer.json, tekken.json, a folder with one of them, .tiktoken\n"
     "rank file, bytes, or builtin (default)",
     .parse = parse_tokenizer, .path = true, .file = tokenize_own_file,
     .traits = CLI_OF_RUNNER},
    {"pattern", 0, CLI_STRING, AT(pattern), "NAME",
     "pattern that splits text for a rank file: gpt2, cl100k, ...;\n"
     "default: by the file's name"},
    {"field", 0, CLI_STRING, AT(field[SLU_FIELD_TEXT]), "NAME",
     "JSONL, Parquet: field with the text; default text. In names of\n"
     "fields, a.b is the field b of the object a"},
    {"format", 0, CLI_CHOICE, AT(format), NULL,
     "format of the files; auto, the default: by name, then by content",
     .choice = tokenize_formats},
    {"member", 0, CLI_STRING, AT(member), "EXT",
     "wds: extension of the member with a sample's text; default txt",
     .traits = CLI_OF_TEXT},
    {"id-field", 0, CLI_STRING, AT(field[SLU_FIELD_ID]), "NAME",
     "JSONL, Parquet: field with the record's own id, a string, a number\n"
     "or a boolean"},
    {"domain", 0, CLI_STRING, AT(domain), "NAME",
     "domain of all documents (web, code, ...)"},
    {"domain-field", 0, CLI_STRING, AT(field[SLU_FIELD_DOMAIN]), "NAME",
     "JSONL, Parquet: field that holds the record's domain"},
    {"domain-from", 0, CLI_STRING, AT(domain_from), "PATTERN",
     "domain of documents without one: what {} stands for in PATTERN,\n"
     "which matches the end of their file's path, as '{}/*.jsonl'",
     .traits = CLI_OF_TEXT},
    {"domain-default", 0, CLI_STRING, AT(domain_default), "NAME",
     "domain of documents that the two options above give none", .traits = CLI_OF_TEXT},
    {"score-field", 0, CLI_STRING, AT(field[SLU_FIELD_SCORE]), "NAME",
     "JSONL, Parquet: field with the record's score, a number, by which\n"
     "shuffle can sort; records may lack it"},
    {"metadata", 0, CLI_CUSTOM, AT(metadata_text), "FIELDS",
     "JSONL, Parquet: fields that documents keep, with commas, as\n"
     "'licence,url=text,quality=float'; of few values, unless a type is\n"
     "given: text, float, int, u8, u32, u64, f32, i64, f64",
     .parse = tokenize_parse_metadata},
    {"where", 0, CLI_STRING, AT(where), "EXPR",
     "JSONL, Parquet: use only records of which EXPR is true, as\n"
     "'lang == \"en\" and score >= 3'; tokenize(1) has the grammar",
     .traits = CLI_OF_TEXT},
    {"fasttext", 0, CLI_CUSTOM, AT(fasttext.id), "MODEL:LABEL>=P",
     "JSONL, Parquet: use only records to whose text the fastText model\n"
     "MODEL gives LABEL with a probability of at least P",
     .parse = tokenize_parse_fasttext, .path = true, .file = tokenize_fasttext_file,
     .traits = CLI_OF_TEXT},
    {"ids-keep", 0, CLI_FILE, AT(ids_keep.file), "FILE",
     "use only records whose id is in FILE, one a line", .traits = CLI_OF_TEXT},
    {"ids-drop", 0, CLI_FILE, AT(ids_drop.file), "FILE",
     "leave out records whose id is in FILE", .traits = CLI_OF_TEXT},
    {"urls-drop", 0, CLI_FILE, AT(urls_drop.file), "FILE",
     "leave out records whose URL, or its host, is in FILE", .traits = CLI_OF_TEXT},
    {"url-field", 0, CLI_STRING, AT(url_field), "NAME",
     "field with the URL for --urls-drop; default url", .traits = CLI_OF_TEXT},
    {"rules", 0, CLI_CUSTOM, AT(rules_text), "RULES",
     "leave out texts that fail gopher-quality, gopher-repetition, c4 or\n"
     "fineweb, or a FILE's thresholds; several with commas; help: list",
     .parse = tokenize_parse_rules, .path = true, .traits = CLI_OF_TEXT},
    {"c4-lines", 0, CLI_FLAG, AT(c4_lines), NULL,
     "edit texts as C4 did: leave out lines without end mark, of few words\n"
     "or about cookies; drop texts with code or few sentences",
     .traits = CLI_OF_TEXT},
    {"spans-field", 0, CLI_STRING, AT(field[SLU_FIELD_SPANS]), "NAME",
     "JSONL: field with the ranges of the text that are trained on,\n"
     "[[begin, end], ...] in characters; the stream gets masks",
     .traits = CLI_OF_TEXT},
    {"no-vocab", 0, CLI_FLAG, AT(no_vocab), NULL,
     "leave the vocabulary out of the stream; dedup --unit word and\n"
     "inspect --text need it",
     .effect = CLI_BYTES},
    {"no-cache", 0, CLI_FLAG, AT(no_cache), NULL,
     "neither read nor write compiled vocabularies in $SLUICE_CACHE_DIR\n"
     "(default: sluice in $XDG_CACHE_HOME or ~/.cache)",
     .effect = CLI_NOTHING},
    {"holdout", 0, CLI_FRACTION, AT(holdout), "FRACTION",
     "put this fraction of the documents aside, chosen by their text and\n"
     "--seed"},
    {"holdout-output", 0, CLI_OUTPUT, AT(holdout_output), "FILE",
     "stream of the documents put aside", .effect = CLI_NOTHING},
    {"sample", 0, CLI_FRACTION, AT(sample), "FRACTION",
     "use only this fraction of the documents, chosen by their text and\n"
     "--seed"},
    {"max-tokens", 0, CLI_COUNT, AT(max_tokens), "N",
     "end before the document that would make more than N tokens",
     .traits = CLI_OF_TEXT},
    {"bos", 0, CLI_FLAG, AT(bos), NULL, "begin each document with the BOS token"},
    {"no-eos", 0, CLI_FLAG, AT(no_eos), NULL,
     "do not end each document with the EOS token"},
    {"eos", 0, CLI_STRING, AT(eos), "TOKEN",
     "the EOS token by its text; default: the tokenizer's"},
    {"special", 0, CLI_CHOICE, AT(special), NULL,
     "encode text that looks like a special token as text (default), or as\n"
     "the token",
     .choice = specials},
    {"files-from", 0, CLI_INPUT, AT(files_from), "LIST",
     "also read the files named in LIST, one a line; -: standard input",
     .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},
    {"list-domains", 0, CLI_FLAG, AT(list_domains), NULL,
     "lines of LIST are a domain, which may be empty, a tab and a name"},
    {"include", 0, CLI_STRING, AT(include), "GLOBS",
     "of folders, read only files that match one of GLOBS, separated by\n"
     "commas; default: files with the names of data"},
    {"exclude", 0, CLI_STRING, AT(exclude), "GLOBS",
     "of folders, read no file that matches one of GLOBS"},
    {"source-prefix", 0, CLI_STRING, AT(source_prefix), "NAME",
     "put NAME/ before the name of each file in the stream"},
    {"source", 0, CLI_CUSTOM, AT(source), "N[:NAME]",
     "standard input is file N of all that make up the stream, from 0",
     .parse = parse_source},
    {"source-base", 0, CLI_COUNT, AT(source_base), "N",
     "number of the first file; default 0. For files that are added to N\n"
     "files of an earlier run",
     .most = UINT32_MAX},
    {"on-error", 0, CLI_CHOICE, AT(on_error), NULL,
     "at a bad record or file: stop (default), or continue without it;\n"
     "replace: U+FFFD for what is not UTF-8, and stop at anything else",
     .choice = on_errors, .lenient = "skip"},
    {"on-missing", 0, CLI_CHOICE, AT(on_missing), NULL,
     "at a record whose text is missing or null; default: --on-error",
     .choice = on_missings, .lenient = "skip"},
    {"rejects", 0, CLI_OUTPUT, AT(rejects), "FILE",
     "write bad records there, as JSON lines; implies --on-error skip", .lenient = ""},
    {0},
};

static void defaults(void *p)
{
    struct tokenize_opts *o = p;
    o->field[SLU_FIELD_TEXT] = "text";
    o->sample = 1;
    /* Not given; 0 is a valid fraction, for scripts that try several. */
    o->holdout = -1;
    o->max_tokens = UINT64_MAX;
    o->on_missing = ON_NONE;
}

/* ---- options that need a second look ---- */

static int check(struct cli_ctx *ctx, struct slu_err *err)
{
    struct tokenize_opts *o = ctx->opts;
    if (o->format == TOKENIZE_PARQUET && !slu_parquet_load())
        return slu_fail(err, SLU_E_UNSUPPORTED, "--format parquet: " SLU_PARQUET_NONE);
    if (o->member && o->format != TOKENIZE_WDS)
        return slu_fail(
            err, SLU_E_USAGE,
            "--member %s: is about samples of WebDataset; give --format wds",
            o->member);
    if (o->member && (*o->member == '.' || !*o->member || strchr(o->member, '/')))
        return slu_fail(err, SLU_E_USAGE,
                        "--member '%s': expected an extension without its dot, as txt",
                        o->member);
    if ((o->holdout >= 0) != (o->holdout_output != NULL))
        return slu_fail(err, SLU_E_USAGE,
                        "--holdout needs --holdout-output, and the other way round");
    if (o->rejects && o->on_error != ON_REPLACE)
        o->on_error = ON_SKIP;
    if (ctx->n_input == 0 && !o->files_from && isatty(STDIN_FILENO) &&
        !ctx->common.force)
        return slu_fail(err, SLU_E_USAGE,
                        "standard input is a terminal; name files, or pipe text in");
    return SLU_OK;
}

static int check_part(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct tokenize_opts *o = ctx->opts;
    if (ctx->common.part.n > 1 && o->max_tokens != UINT64_MAX)
        return slu_fail(err, SLU_E_USAGE,
                        "--max-tokens counts from the first document on, which a part "
                        "does not know; use --sample, or shuffle --max-tokens on the "
                        "parts' streams");
    return SLU_OK;
}

/* ---- outputs ---- */

struct outputs {
    struct slu_writer *main, *holdout;
    struct slu_out *rejects;
    struct slu_step_list origins, holdout_origins;
};

static int open_outputs(struct cli_ctx *ctx, struct outputs *out,
                        const struct slu_header *h, struct slu_names *names,
                        struct slu_err *err)
{
    const struct tokenize_opts *o = ctx->opts;
    const char *output = ctx->common.output;
    int rc = SLU_OK;
    if (o->rejects)
        rc = slu_out_open(&out->rejects, o->rejects, err);
    if (!rc && o->holdout_output) {
        ctx->common.output = o->holdout_output;
        rc = cli_open_writer(ctx, &out->holdout, h, names, o->no_vocab, err);
        ctx->common.output = output;
    }
    ctx->counts_sources = true;
    return rc ? rc : cli_open_writer(ctx, &out->main, h, names, o->no_vocab, err);
}

/* Gives the sources that were counted their names and sizes. */
static int name_sources(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct tokenize_opts *o = ctx->opts;
    int rc = SLU_OK;

    for (size_t i = 0; i < ctx->sources.n && !rc; i++) {
        const struct slu_source *src =
            slu_source_at(&o->sources, ctx->sources.row[i].number);
        rc = slu_source_rows_name(&ctx->sources, i, src->name, src->size_byte, err);
    }
    return rc;
}

/* Closes the stream of the documents put aside, whose account has the others as left
 * out. */
static int close_holdout(struct cli_ctx *ctx, struct slu_writer *w,
                         const struct slu_step_list *origins, struct slu_count kept,
                         struct slu_err *err)
{
    struct slu_account held = ctx->account;
    int rc = slu_steps_join(&ctx->steps, origins, err);

    held.out = slu_writer_sum(w)->n;
    for (unsigned i = 0; i < held.n_dropped; i++)
        if (strcmp(held.dropped[i].reason, "holdout") == 0) {
            held.dropped[i].reason = "kept";
            held.dropped[i].n = kept;
        }
    if (!rc)
        rc = cli_end_writer(ctx, w, &held, err);
    else
        slu_writer_abort(w);
    slu_steps_release(&ctx->steps);
    return rc;
}

/* Checks that the documents counted as put aside are those in their stream. */
static int check_holdout(const struct cli_ctx *ctx, const struct slu_writer *w,
                         struct slu_err *err)
{
    struct slu_count counted = {0}, n = slu_writer_sum(w)->n;
    for (unsigned i = 0; i < ctx->account.n_dropped; i++)
        if (strcmp(ctx->account.dropped[i].reason, "holdout") == 0)
            counted = ctx->account.dropped[i].n;
    if (counted.documents == n.documents && counted.sequences == n.sequences &&
        counted.tokens == n.tokens && counted.loss_tokens == n.loss_tokens)
        return SLU_OK;
    return slu_fail(
        err, SLU_E_CONSERVATION,
        "holdout: %llu tokens were put aside and %llu written; please report it",
        (unsigned long long)counted.tokens, (unsigned long long)n.tokens);
}

static int close_outputs(struct cli_ctx *ctx, struct outputs *out, struct slu_err *err)
{
    struct outputs o = *out;
    int rc = SLU_OK;
    out->main = out->holdout = NULL;
    out->rejects = NULL;
    if (o.rejects)
        rc = slu_out_close(o.rejects, err);
    if (!rc && o.holdout)
        rc = check_holdout(ctx, o.holdout, err);
    if (!rc && o.holdout) {
        rc = close_holdout(ctx, o.holdout, &o.holdout_origins,
                           slu_writer_sum(o.main)->n, err);
        o.holdout = NULL;
    }
    if (!rc)
        rc = name_sources(ctx, err);
    if (!rc)
        rc = slu_steps_join(&ctx->steps, &o.origins, err);
    if (!rc) {
        rc = cli_close_writer(ctx, o.main, err);
        o.main = NULL;
    }
    slu_writer_abort(o.holdout);
    slu_writer_abort(o.main);
    return rc;
}

/* ---- reports ---- */

static void progress(void *ctx, uint64_t stored_byte, uint64_t n_tok)
{
    cli_progress(ctx, stored_byte, n_tok);
}

static void source_done(void *ctx, const struct slu_source *src, bool empty)
{
    if (empty)
        cli_note(ctx, "%s: is empty", src->path);
}

static void source_broken(void *ctx, uint64_t document, enum slu_reject reason,
                          const char *why)
{
    cli_warn(ctx, "%s; going on after it (%s, document %llu)", why,
             slu_reject_name(reason), (unsigned long long)document);
}

/* Adds figures to --stats; if memory runs out, a figure is missing. */
static void report_text(struct cli_ctx *ctx, const struct slu_ingest_stat *s,
                        struct slu_names *names)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_buf b = SLU_BUF_INIT;
    struct slu_domain_row *list = NULL;
    size_t n = 0;
    int rc = slu_domains_list(&s->domains, names, &list, &n, &err);
    struct slu_domain_row all = slu_domains_sum(list, 0, rc ? 0 : n);
    tokenize_report_fields(ctx, s);
    if (all.text_tok)
        cli_stat_double(ctx, "bytes_per_token",
                        (double)all.text_byte / (double)all.text_tok);
    if (!rc)
        rc = slu_domains_put_json(list, n, &b, &err);
    if (!rc)
        rc = slu_buf_append(&b, "", 1, &err);
    if (!rc)
        cli_stat_json(ctx, "domains", (const char *)b.data);
    free(list);
    slu_buf_release(&b);
}

static void report_choice(struct cli_ctx *ctx, const struct slu_ingest_stat *s,
                          const struct slu_sources *sources)
{
    const struct tokenize_opts *o = ctx->opts;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_buf b = SLU_BUF_INIT;
    if (o->holdout >= 0 &&
        !slu_buf_printf(&b, &err,
                        "{\"documents\": %llu, \"tokens\": %llu, \"text_bytes\": "
                        "%llu}",
                        (unsigned long long)s->held.documents,
                        (unsigned long long)s->held.tokens,
                        (unsigned long long)s->held.text_byte))
        cli_stat_json(ctx, "holdout", (const char *)b.data);
    slu_buf_clear(&b);
    const char *cut = s->cut ? slu_source_at(sources, s->cut_source)->name : NULL;
    if (s->cut && !slu_buf_printf(&b, &err, "{\"source\": ") &&
        !slu_json_put_string(&b, cut, strlen(cut), &err) &&
        !slu_buf_printf(&b, &err, ", \"document\": %llu}",
                        (unsigned long long)s->cut_document))
        cli_stat_json(ctx, "ended_before", (const char *)b.data);
    if (s->cut && ctx->account.out.tokens == 0)
        cli_warn(ctx, "the first document has more tokens than --max-tokens, so the "
                      "stream is empty");
    slu_buf_release(&b);
}

/* Stored bytes of the run's share of the sources; 0: not all are regular files. */
static uint64_t sources_byte(const struct slu_sources *s)
{
    uint64_t n = 0;

    for (size_t i = s->first; i < s->end; i++) {
        const struct slu_source *src = slu_source_at(s, i);
        if (!src->regular)
            return 0;
        n += (src->to < src->size_byte ? src->to : src->size_byte) - src->from;
    }
    return n;
}

static void report(struct cli_ctx *ctx, const struct slu_ingest_stat *s)
{
    cli_stat_u64(ctx, "sources", s->sources);
    cli_stat_u64(ctx, "empty_sources", s->empty_sources);
    cli_stat_u64(ctx, "next_source",
                 ((const struct tokenize_opts *)ctx->opts)->sources.base +
                     ((const struct tokenize_opts *)ctx->opts)->sources.n);
    cli_stat_u64(ctx, "input_bytes", s->input_byte);
    cli_stat_u64(ctx, "text_bytes", s->text_byte);
    tokenize_report_left_out(ctx, s);
    ctx->spill_bytes = s->spill_byte;
}

/* `seg`: what documents have whose record and source say nothing else. */
static int ingest(struct cli_ctx *ctx, struct slu_tokenizer *tokenizer,
                  struct slu_names *names, const struct slu_seg *seg,
                  uint64_t memory_byte, struct outputs *out,
                  struct slu_ingest_stat *stat, struct slu_err *err)
{
    const struct tokenize_opts *o = ctx->opts;
    const bool skip = o->on_error == ON_SKIP || o->rejects;
    struct slu_ingest_cfg cfg = {
        .tokenizer = tokenizer,
        .sources = &o->sources,
        .format = tokenize_format(o),
        .member = o->member ? o->member : "txt",
        .members = &((struct tokenize_opts *)ctx->opts)->members,
        .names = names,
        .optional = 1U << SLU_FIELD_SCORE |
                    (unsigned)(o->domain_from || o->list_domains ||
                               seg->domain != SLU_NO_DOMAIN)
                        << SLU_FIELD_DOMAIN |
                    (unsigned)o->needs.ids << SLU_FIELD_ID,
        .metadata = o->metadata,
        .filter = {.ids_keep = o->ids_keep.set,
                   .ids_drop = o->ids_drop.set,
                   .urls_drop = o->urls_drop.set,
                   .url_field = o->url_field ? o->url_field : "url",
                   .where = o->where_expr,
                   .fasttext = o->fasttext.model,
                   .rules = o->n_rules ? o->rule_set : NULL,
                   .c4_lines = o->c4_lines ? o->rule_set : NULL,
                   .rules_byte = o->rules_byte,
                   .most_threads = o->where_threads},
        .needs = o->needs,
        .origins = o->needs.read && o->needs.met ? &out->origins : NULL,
        .holdout_origins = &out->holdout_origins,
        .seg = *seg,
        .bos = o->bos,
        .eos = !o->no_eos,
        .sample = o->sample,
        .holdout = o->holdout > 0 ? o->holdout : 0,
        .max_tok = o->max_tokens,
        .seed = ctx->common.seed,
        .skip_bad = skip,
        .replace = o->on_error == ON_REPLACE,
        .skip_missing = o->on_missing == ON_NONE ? skip : o->on_missing == ON_SKIP,
        .null_is_missing = o->on_missing != ON_NONE,
        .out = out->main,
        .holdout_out = out->holdout,
        .rejects = out->rejects,
        .memory_byte = memory_byte,
        .tmpdir = ctx->common.tmpdir,
        .n_threads = (unsigned)ctx->common.threads,
        .ctx = ctx,
        .progress = progress,
        .source_done = source_done,
        .source_broken = source_broken,
    };
    memcpy(cfg.field, o->field, sizeof cfg.field);
    int rc = slu_ingest(&cfg, &ctx->account, stat, err);
    ctx->account.replaced = (struct slu_replaced){
        stat->repaired, stat->repaired_by.utf8, stat->repaired_by.surrogates};
    return rc;
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct tokenize_opts *o = ctx->opts;
    struct slu_tokenizer *tokenizer = NULL;
    struct slu_names *names = NULL;
    struct slu_header h;
    struct outputs out = {.origins = SLU_STEPS_INIT, .holdout_origins = SLU_STEPS_INIT};
    struct slu_ingest_stat stat = {0};
    uint64_t memory_byte = 0;
    struct slu_seg seg = {.domain = SLU_NO_DOMAIN};
    const char *domain = o->domain ? o->domain : o->domain_default;

    if (tokenize_lists_rules(o))
        return tokenize_list_rules(err);
    slu_header_init(&h);
    int rc = check(ctx, err);
    if (!rc)
        rc = tokenize_make_filters(ctx, &memory_byte, err);
    if (!rc)
        rc = tokenize_find_file(ctx->opts, err);
    if (!rc)
        rc = tokenize_find_sources(ctx, err);
    if (!rc)
        tokenize_warn_left_out(ctx);
    if (!rc)
        rc = tokenize_check_paths(ctx, err);
    if (!rc)
        rc = tokenize_follow_needs(ctx, memory_byte, err);
    if (!rc)
        rc = slu_names_new(&names, err);
    cli_timing(ctx, "tokenizer");
    if (!rc)
        rc = tokenize_load(ctx, &tokenizer, &h, names, err);
    if (!rc && domain)
        rc = slu_names_domain_number(names, domain, strlen(domain), &seg.domain, err);
    h.has[SLU_SCORE] = o->field[SLU_FIELD_SCORE];
    h.meta = o->metadata;
    if (o->field[SLU_FIELD_SPANS]) {
        h.masks = ctx->account.masks = true;
        h.tok_bytes = 4;
    }
    if (!rc)
        rc = open_outputs(ctx, &out, &h, names, err);
    cli_timing(ctx, "documents");
    cli_pass(ctx, NULL, sources_byte(&o->sources), 0);
    if (!rc)
        rc = ingest(ctx, tokenizer, names, &seg, memory_byte, &out, &stat, err);
    const bool is_read = !rc;
    if (!rc)
        rc = tokenize_check_members(ctx, err);
    if (!rc)
        rc = tokenize_check_fields(ctx, &stat, err);
    if (!rc)
        rc = tokenize_check_filters(ctx, &stat, err);
    if (!rc)
        rc = tokenize_check_taken(ctx, &stat, err);
    if (!rc)
        rc = close_outputs(ctx, &out, err);
    if (rc && is_read && !stat.accepted && out.rejects) {
        struct slu_out *rejects = out.rejects; /* they say why there is no stream */
        out.rejects = NULL;
        if (slu_out_close(rejects, NULL))
            cli_warn(ctx, "%s: cannot be written", o->rejects);
    }
    if (!rc) {
        tokenize_warn_ordinary(ctx, slu_tokenizer_vocab(tokenizer), &stat);
        report(ctx, &stat);
        report_text(ctx, &stat, names);
        report_choice(ctx, &stat, &o->sources);
    }
    slu_domains_release(&stat.domains);
    slu_writer_abort(out.main);
    slu_writer_abort(out.holdout);
    slu_out_abort(out.rejects);
    slu_steps_release(&out.origins);
    slu_steps_release(&out.holdout_origins);
    slu_names_free(names);
    slu_tokenizer_free(tokenizer);
    slu_header_release(&h);
    return rc;
}

static void release(void *opts)
{
    slu_sources_release(&((struct tokenize_opts *)opts)->sources);
    tokenize_release_filters(opts);
}

const struct slu_tool tokenize_tool = {
    .name = "tokenize",
    .synopsis =
        "[-t TOKENIZER] [--field NAME] [--format FORMAT] [--part I/N]\n"
        "[--domain NAME] [--holdout FRACTION --holdout-output FILE]\n"
        "[--sample FRACTION] [--max-tokens N]\n"
        "[--on-error fail|skip|replace] [--rejects FILE] [-o FILE] [FILE|DIR ...]",
    .summary = "Turns text (JSONL, Parquet, plain files, tar and zip archives; gzip, "
               "zstd, xz, "
               "bzip2,\nlz4) into a stream of tokenized documents.",
    .opt = options,
    .opts_size = sizeof(struct tokenize_opts),
    .defaults = defaults,
    .memory_floor = 32 << 20,
    .check_part = check_part,
    .inputs = tokenize_inputs,
    .examples = "  tokenize corpus.jsonl -o docs.tks\n"
                "  tokenize -t tokenizer.json --id-field id data/ | decompose --plan\n"
                "  zstdcat corpus.jsonl.zst | tokenize --rejects bad.jsonl -o docs.tks",
    .run = run,
    .release = release,
};
