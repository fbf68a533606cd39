/* fields.c - the fields of records that `tokenize` reads: how many documents have them,
 * in reports, and the errors and warnings about those that none or few have. */
#include <string.h>

#include "lib/base/json_write.h"
#include "tools/tokenize/tokenize.h"

static const struct {
    const char *option, *has; /* in messages and reports */
} kinds[SLU_FIELDS] = {
    [SLU_FIELD_TEXT] = {"--field", "a text"},
    [SLU_FIELD_ID] = {"--id-field", "an id"},
    [SLU_FIELD_DOMAIN] = {"--domain-field", "a domain"},
    [SLU_FIELD_SCORE] = {"--score-field", "a score"},
    [SLU_FIELD_SPANS] = {"--spans-field", "spans"},
};

int tokenize_parse_metadata(void *opts, const char *value, struct slu_err *err)
{
    struct tokenize_opts *o = opts;
    int rc = SLU_OK;

    o->metadata_text = value;
    o->metadata.n = 0;
    for (const char *p = value, *end; !rc; p = end + 1) {
        end = strchrnul(p, ',');
        const char *is = memchr(p, '=', (size_t)(end - p));
        const size_t n = (size_t)((is ? is : end) - p);
        const enum slu_meta_type type =
            is ? slu_meta_type_of(is + 1, (size_t)(end - is - 1)) : SLU_META_IS_NAME;
        if (!n || !type)
            return slu_fail(err, SLU_E_USAGE,
                            "--metadata %s: expected fields, with commas, each NAME or "
                            "NAME=TYPE of name, text, float, int, u8, u32, u64, f32, "
                            "i64, f64",
                            value);
        if (slu_meta_find(&o->metadata, p, n) >= 0)
            return slu_fail(err, SLU_E_USAGE, "--metadata %s: names '%.*s' twice",
                            value, (int)n, p);
        rc = slu_meta_add(&o->metadata, p, n, type, err);
        if (rc) {
            err->code = SLU_E_USAGE;
            rc = slu_err_at(err, "--metadata %s", value);
        }
        if (!*end)
            break;
    }
    return rc;
}

int tokenize_check_domains(const struct tokenize_opts *o, struct slu_err *err)
{
    const bool found = o->field[SLU_FIELD_DOMAIN] || o->domain_from || o->list_domains;
    const char *hole = o->domain_from ? strstr(o->domain_from, "{}") : NULL;
    if (o->domain && (found || o->domain_default))
        return slu_fail(err, SLU_E_USAGE,
                        "--domain names the domain of all documents; it cannot be "
                        "combined with %s",
                        o->field[SLU_FIELD_DOMAIN] ? "--domain-field"
                        : o->domain_from           ? "--domain-from"
                        : o->list_domains          ? "--list-domains"
                                                   : "--domain-default");
    if (o->domain_default && !found)
        return slu_fail(err, SLU_E_USAGE,
                        "--domain-default is for documents without a domain; give "
                        "--domain-field or --domain-from, or use --domain");
    if (o->list_domains && !o->files_from)
        return slu_fail(err, SLU_E_USAGE,
                        "--list-domains: is about the lines of a list; give "
                        "--files-from");
    if (o->domain_from && (!hole || strstr(hole + 1, "{}")))
        return slu_fail(
            err, SLU_E_USAGE,
            "--domain-from %s: expected one {} in place of the domain, as in "
            "'{}/*.jsonl'",
            o->domain_from);
    return SLU_OK;
}

int tokenize_check_paths(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct tokenize_opts *o = ctx->opts;
    const struct slu_sources *s = &o->sources;
    if (!o->domain_from || s->n_domain == s->n)
        return SLU_OK;
    if (!s->n_domain)
        return slu_fail(err, SLU_E_USAGE,
                        "--domain-from %s: matches the end of no path, such as %s",
                        o->domain_from, s->item[0].path);
    if (!o->domain_default && !o->field[SLU_FIELD_DOMAIN])
        cli_warn(ctx,
                 "--domain-from %s: %zu of %zu files have no domain, as their paths "
                 "do not match",
                 o->domain_from, s->n - s->n_domain, s->n);
    return SLU_OK;
}

/* A field that an option names, by its number in slu_ingest_stat. */
struct named {
    const char *option, *name, *has;
};

/* false: no option names it. */
static bool named(const struct tokenize_opts *o, unsigned f, struct named *n)
{
    if (f < SLU_FIELDS)
        *n = (struct named){kinds[f].option, o->field[f], kinds[f].has};
    else if (f < SLU_FIELDS + o->metadata.n)
        *n = (struct named){"--metadata", o->metadata.field[f - SLU_FIELDS].name,
                            "a value"};
    else
        *n = (struct named){NULL, NULL, NULL};
    return n->name;
}

/* Counts the documents that could have a field, and those that have it. */
static void count(const struct slu_ingest_stat *s, unsigned f, uint64_t *have,
                  uint64_t *of)
{
    *have = s->accepted - s->lacking[f];
    *of = s->accepted + s->missed[f];
}

int tokenize_check_fields(struct cli_ctx *ctx, const struct slu_ingest_stat *s,
                          struct slu_err *err)
{
    const struct tokenize_opts *o = ctx->opts;
    for (unsigned f = 0; f < SLU_FIELDS + SLU_META_FIELDS; f++) {
        uint64_t have, of;
        struct named is;
        count(s, f, &have, &of);
        if (!named(o, f, &is) || !of || have >= (of + 9) / 10 ||
            (f == SLU_FIELD_ID && o->needs.ids))
            continue;
        if (!have && !ctx->common.part.n)
            return slu_fail(err, SLU_E_FORMAT,
                            "%s %s: none of %llu document%s has %s there; name a field "
                            "that they have%s",
                            is.option, is.name, (unsigned long long)of, slu_plural(of),
                            is.has,
                            f == SLU_FIELD_TEXT ? "" : ", or leave the option out");
        cli_warn(ctx, "%s %s: %llu of %llu document%s have %s there", is.option,
                 is.name, (unsigned long long)have, (unsigned long long)of,
                 slu_plural(of), is.has);
    }
    return SLU_OK;
}

/* Appends a field to the report. */
static int put_field(struct slu_buf *b, const char *option, const char *field,
                     const char *has, uint64_t have, uint64_t of)
{
    int rc = slu_buf_printf(
        b, NULL, "%s{\"option\": \"%s\", \"field\": ", b->len ? ", " : "[", option);
    if (!rc)
        rc = slu_json_put_string(b, field, strlen(field), NULL);
    return rc ? rc
              : slu_buf_printf(b, NULL,
                               ", \"wanted\": \"%s\", \"have\": %llu, \"of\": %llu}",
                               has, (unsigned long long)have, (unsigned long long)of);
}

void tokenize_report_fields(struct cli_ctx *ctx, const struct slu_ingest_stat *s)
{
    const struct tokenize_opts *o = ctx->opts;
    struct slu_buf b = SLU_BUF_INIT;
    struct tokenize_filter_field filter;
    int rc = SLU_OK;
    if (o->field[SLU_FIELD_SCORE])
        cli_stat_u64(ctx, "scored", s->scored);
    for (unsigned f = 0; f < SLU_FIELDS + SLU_META_FIELDS && !rc; f++) {
        uint64_t have, of;
        struct named is;
        count(s, f, &have, &of);
        if (named(o, f, &is))
            rc = put_field(&b, is.option, is.name, is.has, have, of);
    }
    for (size_t i = 0; tokenize_filter_field(o, i, &filter) && !rc; i++)
        if (!filter.may_lack)
            rc = put_field(&b, filter.option, filter.name, "a value", s->seen[i],
                           s->asked);
    if (!rc)
        rc = slu_buf_append(&b, "]", 2, NULL);
    if (!rc)
        cli_stat_json(ctx, "fields", (const char *)b.data);
    slu_buf_release(&b);
}
