/* sources.c - the files that `tokenize` reads: its share of them, and what was left out of
 * folders. */
#include <string.h>

#include "tools/tokenize/tokenize.h"

const char *const tokenize_formats[] = {"auto",
                                        "jsonl",
                                        "text",
                                        "tar",
                                        "zip",
                                        [TOKENIZE_PARQUET] = "parquet",
                                        [TOKENIZE_WDS] = "wds",
                                        [TOKENIZE_WARC] = "warc",
                                        NULL};

const struct slu_input_format *tokenize_format(const struct tokenize_opts *o)
{
    return slu_input_format_named(tokenize_formats[o->format]);
}

/* Refuses folders of tokens, whose manifests and indexes would be taken for text. With
 * --format or --include the user says what is to be read. */
static int refuse_sets(const struct cli_ctx *ctx, struct slu_err *err)
{
    const struct tokenize_opts *o = ctx->opts;
    for (size_t i = 0; i < ctx->n_input && !o->format && !o->include; i++)
        if (slu_tokens_takes_folder(ctx->input[i]))
            return slu_fail(err, SLU_E_USAGE,
                            "%s: is a set of shards, which has tokens already; give it "
                            "to inspect, dedup, decompose, pack or shuffle, and only "
                            "texts to tokenize",
                            ctx->input[i]);
    return SLU_OK;
}

/* Takes the share of --part. With --source, standard input is the share. */
static int share(struct cli_ctx *ctx, struct slu_err *err)
{
    struct tokenize_opts *o = ctx->opts;
    struct slu_sources *s = &o->sources;
    const struct cli_part *part = &ctx->common.part;

    if (part->n && !o->source)
        return slu_sources_share(s, part->i, part->n, slu_input_splittable,
                                 (void *)tokenize_format(o), err);
    s->first = s->base;
    s->end = s->base + s->n;
    return SLU_OK;
}

int tokenize_find_sources(struct cli_ctx *ctx, struct slu_err *err)
{
    struct tokenize_opts *o = ctx->opts;
    struct slu_sources *s = &o->sources;
    /* With --format, the names of files in folders do not matter. */
    struct slu_sources_cfg cfg = {.path = ctx->input,
                                  .n_path = ctx->n_input,
                                  .list = o->files_from,
                                  .list_domains = o->list_domains,
                                  .include = o->include,
                                  .exclude = o->exclude,
                                  .rank = o->format ? NULL : slu_input_rank,
                                  .prefix = o->source_prefix,
                                  .domain_from = o->domain_from,
                                  .stdin_name = o->source_name,
                                  .base = o->source_base};
    if (o->found)
        return share(ctx, err);
    o->found = true;
    o->members.include = o->include;
    o->members.exclude = o->exclude;
    int rc = refuse_sets(ctx, err);
    if (rc)
        return rc;
    if (o->source && (o->files_from || ctx->n_input > 1 ||
                      (ctx->n_input && strcmp(ctx->input[0], "-"))))
        return slu_fail(err, SLU_E_USAGE,
                        "--source %s: is the place of standard input; name no files",
                        o->source);
    if (o->source && cli_given(ctx, "source-base"))
        return slu_fail(err, SLU_E_USAGE,
                        "--source-base: --source %s says the number of standard input",
                        o->source);
    rc = tokenize_check_domains(o, err);
    if (!rc)
        rc = slu_sources_resolve(s, &cfg, err);
    return rc ? rc : share(ctx, err);
}

int tokenize_inputs(struct cli_ctx *ctx, struct cli_inputs *in, struct slu_err *err)
{
    struct tokenize_opts *o = ctx->opts;
    const struct slu_sources *s = &o->sources;
    const bool none = ctx->common.compare && !ctx->n_input && !o->files_from;
    int rc = tokenize_find_file(o, err);
    if (!rc && !none)
        rc = tokenize_find_sources(ctx, err);
    size_t first = in->targets ? s->base : s->first,
           end = in->targets ? s->base + s->n : s->end;
    for (size_t i = first; i < end && !rc; i++)
        rc = cli_inputs_add_source(in, slu_source_at(s, i), i, err);
    return rc ? rc : tokenize_rule_inputs(o, in, err);
}

static void warn_unused(struct cli_ctx *ctx, const char *option, const char *globs,
                        uint64_t used, bool archives)
{
    size_t len;
    const char *glob = slu_globs_unused(globs, used, &len);
    if (glob)
        cli_warn(ctx,
                 "%s '%.*s': matches no file in a folder%s; for all files below a "
                 "folder write 'FOLDER/*'",
                 option, (int)len, glob, archives ? " or archive" : "");
}

/* Whether a source may be an archive, whose members globs choose too. */
static bool reads_archives(const struct tokenize_opts *o)
{
    const struct slu_sources *s = &o->sources;
    for (size_t i = s->first; i < s->end; i++) {
        const struct slu_source *src = slu_source_at(s, i);
        if (!src->regular || slu_input_is_archive(src->name))
            return true;
    }
    return false;
}

/* Warns of the first glob of each option that chose nothing, in folders or archives. */
static void warn_globs(struct cli_ctx *ctx, bool archives)
{
    const struct tokenize_opts *o = ctx->opts;
    const struct slu_sources *s = &o->sources;
    const struct slu_members *m = &o->members;
    warn_unused(ctx, "--include", o->include, s->included | m->included, archives);
    warn_unused(ctx, "--exclude", o->exclude, s->excluded | m->excluded, archives);
}

/* For files in folders. */
void tokenize_warn_left_out(struct cli_ctx *ctx)
{
    const struct slu_sources *s = &((const struct tokenize_opts *)ctx->opts)->sources;
    if (s->n_hidden)
        cli_warn(ctx, "left out of folders: %llu name%s with a dot in front",
                 (unsigned long long)s->n_hidden, slu_plural(s->n_hidden));
    if (s->n_special)
        cli_warn(ctx, "left out of folders: %llu FIFO%s, sockets or devices: %s%s",
                 (unsigned long long)s->n_special, slu_plural(s->n_special), s->special,
                 s->n_special > 1 ? ", ..." : "");
    if (s->n_other)
        cli_warn(
            ctx,
            "left out of folders: %llu file%s with names of other kinds than text: "
            "%s%s; named alone, a message says what to do with it",
            (unsigned long long)s->n_other, slu_plural(s->n_other), s->other,
            s->n_other > 1 ? ", ..." : "");
    if (s->n_lower)
        cli_warn(ctx,
                 "left out of folders: %llu file%s, as others there have the names of "
                 "data: %s%s; --include '*' takes all",
                 (unsigned long long)s->n_lower, slu_plural(s->n_lower), s->lower,
                 s->n_lower > 1 ? ", ..." : "");
    if (!reads_archives(ctx->opts))
        warn_globs(ctx, false);
}

int tokenize_check_members(struct cli_ctx *ctx, struct slu_err *err)
{
    static const struct {
        const char *noun, *what;
    } left[SLU_MEMBER_LEFT_N] = {
        [SLU_MEMBER_HIDDEN] = {"name", " with a dot in front"},
        [SLU_MEMBER_OTHER] = {"file", " with names of other kinds than text"},
        [SLU_MEMBER_LOWER] = {"file", ", as others there have the names of data"},
        [SLU_MEMBER_LINK] = {"link", ""},
        [SLU_MEMBER_SPECIAL] = {"device", " or FIFO"},
    };
    const struct tokenize_opts *o = ctx->opts;
    for (unsigned i = 0; i < SLU_MEMBER_LEFT_N; i++) {
        const uint64_t n = o->members.left[i].n;
        if (n)
            cli_warn(ctx, "left out of archives: %llu %s%s%s: %s%s",
                     (unsigned long long)n, left[i].noun, slu_plural(n), left[i].what,
                     o->members.left[i].first, n > 1 ? ", ..." : "");
    }
    if (!reads_archives(o))
        return SLU_OK;
    if (o->members.n_not_chosen && !o->members.n_read && o->include &&
        !ctx->common.part.n && !(o->sources.included | o->members.included))
        return slu_fail(err, SLU_E_USAGE,
                        "--include '%s': no file of the archives matches", o->include);
    warn_globs(ctx, true);
    return SLU_OK;
}
