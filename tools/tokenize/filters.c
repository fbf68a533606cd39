/* filters.c - the filters of `tokenize`, and its reports on records that are not in the
 * stream. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json_write.h"
#include "lib/filter/urlset.h"
#include "tools/tokenize/tokenize.h"

/* Splits MODEL:LABEL>=P at the last colon. */
int tokenize_parse_fasttext(void *opts, const char *value, struct slu_err *err)
{
    struct tokenize_fasttext *f = &((struct tokenize_opts *)opts)->fasttext;
    const char *colon = strrchr(value, ':'), *at = colon ? strstr(colon, ">=") : NULL;
    char *end = NULL;

    if (at && at > colon + 1 && colon > value &&
        (size_t)(colon - value) < sizeof f->file &&
        strlen(colon) < sizeof f->text / 2) {
        f->label = colon + 1;
        f->label_len = (size_t)(at - f->label);
        f->least = strtod(at + 2, &end);
    }
    if (!end || end == at + 2 || *end || !(f->least > 0 && f->least <= 1))
        return slu_fail(
            err, SLU_E_USAGE,
            "--fasttext: '%s' is not MODEL:LABEL>=P with a P above 0 and up "
            "to 1, as lid.176.bin:en>=0.65",
            value);
    memcpy(f->file, value, (size_t)(colon - value));
    f->file[colon - value] = 0;
    f->id = f->label; /* with the probability, until the model is read */
    return SLU_OK;
}

const char *tokenize_fasttext_file(const void *opts)
{
    const struct tokenize_fasttext *f = &((const struct tokenize_opts *)opts)->fasttext;
    return *f->file ? f->file : NULL;
}

/* Loads the model. The provenance has its hash, and the condition. */
static int open_fasttext(struct tokenize_fasttext *f, struct slu_err *err)
{
    struct cli_inputs in = {0};
    char *label = strndup(f->label, f->label_len), hex[33];
    int rc = label ? cli_inputs_add(&in, f->file, 0, UINT64_MAX, err)
                   : slu_fail_nomem(err, f->label_len);

    if (!rc)
        rc = slu_fasttext_open(&f->model, f->file, label, f->least, err);
    if (!rc)
        rc = cli_input_sign(&in.item[0], err);
    if (!rc) {
        slu_u128_hex(in.item[0].sum, hex);
        snprintf(f->text, sizeof f->text, "%s:%s>=%.17g", hex, label, f->least);
        f->id = f->text;
    }
    cli_inputs_release(&in);
    free(label);
    return rc ? slu_err_at(err, "--fasttext") : SLU_OK;
}

/* The part of -M that lists may take; what they leave is for the rest, which works with
 * little less than the least -M. */
static uint64_t share_of_lists(uint64_t memory_byte)
{
    return memory_byte < UINT64_C(64) << 20 ? memory_byte / 16 : memory_byte / 2;
}

/* Takes a quarter of the memory for `matches`, at least that of one thread. */
static void share_of_where(struct tokenize_opts *o, uint64_t *memory_byte)
{
    const uint64_t one = o->where_expr ? slu_expr_run_byte(o->where_expr) : 0;
    const uint64_t share = *memory_byte / 4 > one ? *memory_byte / 4 : one;

    if (!one)
        return;
    o->where_threads = (unsigned)(share / one < UINT_MAX ? share / one : UINT_MAX);
    *memory_byte -= share;
}

int tokenize_make_filters(struct cli_ctx *ctx, uint64_t *memory_byte,
                          struct slu_err *err)
{
    struct tokenize_opts *o = ctx->opts;
    const uint64_t lists = share_of_lists(ctx->common.memory);
    uint64_t left = lists;
    if ((o->ids_keep.file.path || o->ids_drop.file.path) && !o->field[SLU_FIELD_ID] &&
        o->format != TOKENIZE_WARC) /* which have ids of their own */
        return slu_fail(err, SLU_E_USAGE,
                        "--%s: needs --id-field, the field with the records' ids",
                        o->ids_keep.file.path ? "ids-keep" : "ids-drop");
    if (o->url_field && !o->urls_drop.file.path)
        return slu_fail(err, SLU_E_USAGE, "--url-field is for --urls-drop");
    int rc = o->where ? slu_expr_new(&o->where_expr, o->where, err) : SLU_OK;
    if (rc)
        return slu_err_at(err, "--where");
    rc = cli_list_read(&o->ids_keep, slu_idset_read, &left, err);
    if (!rc)
        rc = cli_list_read(&o->ids_drop, slu_idset_read, &left, err);
    if (!rc)
        rc = cli_list_read(&o->urls_drop, slu_urlset_read, &left, err);
    if (!rc && *o->fasttext.file)
        rc = open_fasttext(&o->fasttext, err);
    *memory_byte = ctx->common.memory - (lists - left);
    share_of_where(o, memory_byte);
    if (!rc)
        rc = tokenize_make_rules(o, memory_byte, err);
    return rc;
}

void tokenize_release_filters(struct tokenize_opts *o)
{
    slu_expr_free(o->where_expr);
    slu_fasttext_free(o->fasttext.model);
    cli_list_release(&o->ids_keep);
    cli_list_release(&o->ids_drop);
    cli_list_release(&o->urls_drop);
    slu_rules_free(o->rule_set);
}

/* ---- reports ---- */

#define EXTRACT                                                                        \
    "extract the text of HTML first, as with trafilatura or resiliparse, or take WET " \
    "files"

/* "invalid-utf8 2, missing-field 1": of records that were rejected, or not read. */
static int list_rejects(const struct slu_ingest_stat *s, bool unread, struct slu_buf *b)
{
    int rc = SLU_OK;
    for (int i = 0; i < SLU_REJECT_N && !rc; i++)
        if (s->rejected_by[i] && (unread ? slu_reject_is_unread((enum slu_reject)i)
                                         : !slu_reject_is_filter((enum slu_reject)i)))
            rc = slu_buf_printf(b, NULL, "%s%s %llu", b->len ? ", " : "",
                                slu_reject_name((enum slu_reject)i),
                                (unsigned long long)s->rejected_by[i]);
    return rc ? rc : slu_buf_append(b, "", 1, NULL);
}

int tokenize_check_taken(const struct cli_ctx *ctx, const struct slu_ingest_stat *s,
                         struct slu_err *err)
{
    const struct tokenize_opts *o = ctx->opts;
    struct slu_buf b = SLU_BUF_INIT;
    int rc = SLU_OK;
    /* An empty file has no record, and no record is no fault. */
    const bool bad = s->rejected > s->rejected_by[SLU_REJECT_EMPTY_SOURCE];
    if (bad && !s->accepted && !ctx->common.part.n &&
        list_rejects(s, false, &b) == SLU_OK)
        rc = slu_fail(err, SLU_E_FORMAT, "no record can be taken (%s); %s%s",
                      (const char *)b.data,
                      o->rejects ? "see "
                                 : "a run without --on-error skip and --rejects says "
                                   "what is wrong with the first one",
                      o->rejects ? o->rejects : "");
    else if (s->unread && !s->accepted && !bad && !ctx->common.part.n &&
             list_rejects(s, true, &b) == SLU_OK)
        rc = slu_fail(err, SLU_E_FORMAT, "no record of WARC has a plain text (%s)%s",
                      (const char *)b.data,
                      s->rejected_by[SLU_REJECT_WARC_HTML] ? "; " EXTRACT : "");
    slu_buf_release(&b);
    return rc;
}

bool tokenize_filter_field(const struct tokenize_opts *o, size_t i,
                           struct tokenize_filter_field *f)
{
    const size_t n = o->where_expr ? slu_expr_n_field(o->where_expr) : 0;
    if (i < n)
        *f = (struct tokenize_filter_field){"--where", slu_expr_field(o->where_expr, i),
                                            slu_expr_expects_null(o->where_expr, i)};
    else if (i == n && o->urls_drop.set)
        *f =
            (struct tokenize_filter_field){o->url_field ? "--url-field" : "--urls-drop",
                                           o->url_field ? o->url_field : "url", false};
    else
        return false;
    return true;
}

int tokenize_check_filters(struct cli_ctx *ctx, const struct slu_ingest_stat *s,
                           struct slu_err *err)
{
    const struct tokenize_opts *o = ctx->opts;
    const unsigned long long of = s->asked;
    struct tokenize_filter_field f;
    for (size_t i = 0; of && tokenize_filter_field(o, i, &f); i++) {
        const unsigned long long have = s->seen[i];
        if (!have && !f.may_lack && !ctx->common.part.n)
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: none of %llu document%s has a field \"%s\"; %s",
                            f.option, of, slu_plural(of), f.name,
                            strcmp(f.option, "--where")
                                ? "name theirs with --url-field, or leave --urls-drop "
                                  "out"
                                : "name one that they have, or compare it with null "
                                  "too if it may be missing");
        if (!have)
            cli_warn(ctx, "%s: none of %llu document%s has a field \"%s\"", f.option,
                     of, slu_plural(of), f.name);
        else if (!f.may_lack && have < (of + 9) / 10)
            cli_warn(ctx, "%s: %llu of %llu document%s have a field \"%s\"", f.option,
                     have, of, slu_plural(of), f.name);
    }
    return SLU_OK;
}

/* Adds how many documents the filters changed and left out. */
static void report_filters(struct cli_ctx *ctx, const struct slu_ingest_stat *s)
{
    const struct tokenize_opts *o = ctx->opts;
    tokenize_report_edits(ctx, s);
    if (!o->where_expr && !o->ids_keep.set && !o->ids_drop.set && !o->urls_drop.set &&
        !o->rule_set && !o->fasttext.model)
        return;
    cli_stat_u64(ctx, "filtered", s->filtered);
    if (s->accepted && s->filtered == s->accepted)
        cli_warn(ctx, "the filters left all %llu documents out",
                 (unsigned long long)s->accepted);
}

void tokenize_report_left_out(struct cli_ctx *ctx, const struct slu_ingest_stat *s)
{
    const struct tokenize_opts *o = ctx->opts;
    struct slu_buf b = SLU_BUF_INIT;
    cli_stat_u64(ctx, "rejected", s->rejected);
    ctx->rejected = s->rejected;
    report_filters(ctx, s);
    if (s->repaired)
        cli_warn(ctx,
                 "%llu record%s U+FFFD in place of what is no text (invalid-utf8 %llu, "
                 "lone-surrogate %llu)",
                 (unsigned long long)s->repaired, s->repaired == 1 ? " has" : "s have",
                 (unsigned long long)s->repaired_by.utf8,
                 (unsigned long long)s->repaired_by.surrogates);
    if (s->unread || s->truncated) {
        cli_stat_u64(ctx, "unread", s->unread);
        cli_stat_u64(ctx, "truncated", s->truncated);
    }
    if (s->unread && list_rejects(s, true, &b) == SLU_OK)
        cli_warn(ctx, "%llu record%s of WARC without a plain text (%s)%s",
                 (unsigned long long)s->unread, slu_plural(s->unread),
                 (const char *)b.data,
                 s->rejected_by[SLU_REJECT_WARC_HTML] ? "; " EXTRACT : "");
    if (s->truncated)
        cli_warn(ctx,
                 "%llu text%s cut short by the crawler; --where 'truncated == "
                 "null' leaves such texts out",
                 (unsigned long long)s->truncated,
                 s->truncated == 1 ? " of WARC was" : "s of WARC were");
    slu_buf_clear(&b);
    if (s->rejected && list_rejects(s, false, &b) == SLU_OK)
        cli_warn(ctx, "%llu record%s not taken (%s); %s%s",
                 (unsigned long long)s->rejected, s->rejected == 1 ? " was" : "s were",
                 (const char *)b.data,
                 o->rejects ? "see " : "--rejects FILE keeps what is left out",
                 o->rejects ? o->rejects : "");
    slu_buf_release(&b);
}
