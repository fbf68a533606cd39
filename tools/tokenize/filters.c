/* filters.c - the filters of `tokenize`, and its reports on records that are not in the
 * stream. */
#include "lib/filter/urlset.h"
#include "tools/tokenize/tokenize.h"

/* The provenance has the hash of a list's set, which is known later, not its name. */
static int parse_list(const char **file, const char **id, const char *value)
{
    *file = value;
    *id = "";
    return SLU_OK;
}

int tokenize_parse_ids_keep(void *opts, const char *value, struct slu_err *err)
{
    struct tokenize_opts *o = opts;
    (void)err;
    return parse_list(&o->ids_keep, &o->ids_keep_id, value);
}

int tokenize_parse_ids_drop(void *opts, const char *value, struct slu_err *err)
{
    struct tokenize_opts *o = opts;
    (void)err;
    return parse_list(&o->ids_drop, &o->ids_drop_id, value);
}

int tokenize_parse_urls_drop(void *opts, const char *value, struct slu_err *err)
{
    struct tokenize_opts *o = opts;
    (void)err;
    return parse_list(&o->urls_drop, &o->urls_drop_id, value);
}

int tokenize_filter_inputs(const struct tokenize_opts *o, struct cli_inputs *in,
                           struct slu_err *err)
{
    const char *const file[] = {o->ids_keep, o->ids_drop, o->urls_drop};
    int rc = SLU_OK;
    for (unsigned i = 0; i < 3 && !rc; i++)
        if (file[i])
            rc = cli_inputs_add(in, file[i], 0, UINT64_MAX, err);
    return rc;
}

typedef int read_fn(struct slu_idset **s, const char *path, uint64_t most_byte,
                    struct slu_err *err);

/* Reads a list, if there is one, into the memory that is left. */
static int read_list(read_fn *read, struct slu_idset **s, const char *path,
                     uint64_t *left_byte, char hex[33], const char **id,
                     struct slu_err *err)
{
    if (!path)
        return SLU_OK;
    int rc = read(s, path, *left_byte, err);
    if (rc)
        return rc;
    *left_byte -= slu_idset_byte(*s);
    slu_u128_hex(slu_idset_sum(*s), hex);
    *id = hex;
    return SLU_OK;
}

int tokenize_make_filters(struct cli_ctx *ctx, uint64_t *memory_byte,
                          struct slu_err *err)
{
    struct tokenize_opts *o = ctx->opts;
    const uint64_t all = ctx->common.memory, least = UINT64_C(32) << 20,
                   lists = all / 2;
    uint64_t left = lists;
    if ((o->ids_keep || o->ids_drop) && !o->field[SLU_FIELD_ID])
        return slu_fail(err, SLU_E_USAGE,
                        "--%s: needs --id-field, the field with the records' ids",
                        o->ids_keep ? "ids-keep" : "ids-drop");
    if (o->url_field && !o->urls_drop)
        return slu_fail(err, SLU_E_USAGE, "--url-field is for --urls-drop");
    int rc = o->where ? slu_expr_new(&o->where_expr, o->where, err) : SLU_OK;
    if (rc)
        return slu_err_at(err, "--where");
    rc = read_list(slu_idset_read, &o->keep, o->ids_keep, &left, o->ids_keep_hex,
                   &o->ids_keep_id, err);
    if (!rc)
        rc = read_list(slu_idset_read, &o->drop, o->ids_drop, &left, o->ids_drop_hex,
                       &o->ids_drop_id, err);
    if (!rc)
        rc = read_list(slu_urlset_read, &o->urls, o->urls_drop, &left, o->urls_drop_hex,
                       &o->urls_drop_id, err);
    *memory_byte = all - (lists - left);
    if (*memory_byte < least)
        *memory_byte = least;
    return rc;
}

void tokenize_release_filters(struct tokenize_opts *o)
{
    slu_expr_free(o->where_expr);
    slu_idset_free(o->keep);
    slu_idset_free(o->drop);
    slu_idset_free(o->urls);
}

/* ---- reports ---- */

/* "invalid-utf8 2, missing-field 1", or the same as the members of a JSON object. */
static int list_rejects(const struct slu_ingest_stat *s, bool json, struct slu_buf *b)
{
    int rc = SLU_OK;
    for (int i = 0; i < SLU_REJECT_N && !rc; i++)
        if (s->rejected_by[i] && !slu_reject_is_filter((enum slu_reject)i))
            rc = slu_buf_printf(b, NULL, json ? "%s\"%s\": %llu" : "%s%s %llu",
                                b->len ? ", " : "", slu_reject_name((enum slu_reject)i),
                                (unsigned long long)s->rejected_by[i]);
    return rc ? rc : slu_buf_append(b, "", 1, NULL);
}

int tokenize_check_taken(const struct cli_ctx *ctx, const struct slu_ingest_stat *s,
                         struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = SLU_OK;
    /* An empty file has no record, and no record is no fault. */
    const bool bad = s->rejected > s->rejected_by[SLU_REJECT_EMPTY_SOURCE];
    if (bad && !s->accepted && !ctx->common.part.n &&
        list_rejects(s, false, &b) == SLU_OK)
        rc = slu_fail(err, SLU_E_FORMAT,
                      "no record can be taken (%s); a run without --on-error skip and "
                      "--rejects says what is wrong with the first one",
                      (const char *)b.data);
    slu_buf_release(&b);
    return rc;
}

static void report_filters(struct cli_ctx *ctx, const struct slu_ingest_stat *s)
{
    const struct tokenize_opts *o = ctx->opts;
    const size_t n = o->where_expr ? slu_expr_n_field(o->where_expr) : 0;
    if (!o->where_expr && !o->keep && !o->drop && !o->urls)
        return;
    cli_stat_u64(ctx, "filtered", s->filtered);
    if (!s->accepted)
        return;
    for (size_t i = 0; i < n; i++)
        if (!(s->seen_any >> i & 1))
            cli_warn(ctx, "--where: no record has a field \"%s\"",
                     slu_expr_field(o->where_expr, i));
    if (o->urls && !(s->seen_any >> n & 1))
        cli_warn(ctx, "--urls-drop: no record has a field \"%s\"",
                 o->url_field ? o->url_field : "url");
    if (s->filtered == s->accepted)
        cli_warn(ctx, "the filters left all %llu documents out",
                 (unsigned long long)s->accepted);
}

void tokenize_report_left_out(struct cli_ctx *ctx, const struct slu_ingest_stat *s)
{
    const struct tokenize_opts *o = ctx->opts;
    struct slu_buf b = SLU_BUF_INIT;
    cli_stat_u64(ctx, "rejected", s->rejected);
    report_filters(ctx, s);
    if (s->rejected && list_rejects(s, false, &b) == SLU_OK)
        cli_warn(ctx, "%llu record%s not taken (%s); %s%s",
                 (unsigned long long)s->rejected, s->rejected == 1 ? " was" : "s were",
                 (const char *)b.data,
                 o->rejects ? "see " : "--rejects FILE keeps what is left out",
                 o->rejects ? o->rejects : "");
    slu_buf_release(&b);
}
