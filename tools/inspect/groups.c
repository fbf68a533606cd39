/* groups.c - inspect --groups: counts, and quantiles of length and score, of each value
 * of a property; as a table, JSON or a picture.
 *
 * Values that are no domains are numbered, and take the place of the segments' domains, by
 * which lib/stream/groups.h adds up. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/json_write.h"
#include "lib/base/number.h"
#include "lib/stream/svg.h"
#include "tools/inspect/inspect.h"

typedef unsigned long long ull; /* for printf */

enum { ROWS = 40 };        /* of the table; JSON has all groups */
enum { VALUE_BYTE = 512 }; /* memory that a value takes, beside its text */

static const char *const names[SLU_N_QUANTILE] = {"min", "p5",  "p25", "p50",
                                                  "p75", "p95", "max"};

/* ---- adding ---- */

int inspect_groups_init(struct inspect_groups *g, const char *name,
                        struct slu_reader *r, struct cli_ctx *ctx, struct slu_err *err)
{
    const uint64_t quarter = ctx->common.memory / 4;

    *g = (struct inspect_groups){.from = slu_reader_names(r), .room_byte = quarter};
    int rc = slu_property_find(&g->by, name, slu_reader_header(r), err);
    if (rc)
        return slu_err_at(err, "--groups");
    rc = slu_names_new(&g->values, err);
    return rc ? rc
              : slu_groups_new(&g->sums, quarter, ctx->common.tmpdir,
                               (unsigned)ctx->common.threads, err);
}

void inspect_groups_release(struct inspect_groups *g)
{
    slu_groups_free(g->sums);
    slu_names_free(g->values);
    slu_map_release(&g->number);
    slu_buf_release(&g->text);
}

/* Domains have numbers already. */
static bool by_domain(const struct inspect_groups *by)
{
    return by->by.at == SLU_PROPERTY_DOMAIN;
}

static bool is_string(const struct inspect_groups *g)
{
    return !slu_meta_width(g->by.type);
}

/* Gives the value of a sequence, which has one, a number. */
static int new_value(struct inspect_groups *g, const struct slu_batch *b,
                     const struct slu_seq *q, uint32_t *n, struct slu_err *err)
{
    struct slu_meta_value v = {0};
    uint8_t number[8];

    slu_buf_clear(&g->text);
    (void)slu_property_get(&g->by, g->from, b, q, slu_seq_first(b, q), number, &v);
    int rc = slu_meta_put_json(&g->text, g->by.type, &v, err);
    if (rc)
        return rc;
    const size_t quotes = is_string(g), len = g->text.len - 2 * quotes;
    if (g->room_byte < VALUE_BYTE + len)
        return slu_advise(err, SLU_ADVISE_MEMORY,
                          slu_fail(err, SLU_E_NOMEM,
                                   "more than %zu values of '%s' do not fit in memory",
                                   g->number.n, g->by.name));
    g->room_byte -= VALUE_BYTE + len;
    return slu_names_domain_number(g->values, (const char *)g->text.data + quotes, len,
                                   n, err);
}

/* Finds the number of the sequence's value; SLU_NO_DOMAIN: null. */
static int number_of(struct inspect_groups *g, const struct slu_batch *b,
                     const struct slu_seq *q, uint32_t *n, struct slu_err *err)
{
    uint64_t hash, known = SLU_NO_DOMAIN;
    int rc = slu_property_hash(&g->by, g->from, b, q, &g->memo, &hash, err);

    if (!rc && hash && !slu_map_get(&g->number, hash, &known)) {
        rc = new_value(g, b, q, n, err);
        known = *n;
        if (!rc)
            rc = slu_map_set(&g->number, hash, known, err);
    }
    *n = (uint32_t)known;
    return rc;
}

int inspect_groups_add(struct inspect_groups *g, struct slu_batch *b,
                       struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq && !rc && !by_domain(g); i++) {
        const struct slu_seq *q = &b->seq[i];
        uint32_t n = SLU_NO_DOMAIN;
        rc = number_of(g, b, q, &n, err);
        for (uint64_t k = 0; k < q->n_seg && !rc; k++)
            b->seg[q->seg_off + k].domain = n;
    }
    return rc ? rc : slu_groups_add(g->sums, b, slu_names_vocab(g->from), err);
}

/* ---- showing ---- */

static const char *number(double v, char out[SLU_NUMBER_BYTE])
{
    (void)slu_number_put(v, out);
    return out;
}

static int put_quantiles(const struct slu_group *g, bool scores, struct slu_buf *b,
                         struct slu_err *err)
{
    char text[SLU_NUMBER_BYTE];
    int rc = SLU_OK;

    for (unsigned k = 0; k < SLU_N_QUANTILE && !rc; k++)
        rc = slu_buf_printf(b, err, "%s\"%s\": %s", k ? ", " : "{", names[k],
                            number(scores ? g->score[k] : (double)g->length[k], text));
    return rc ? rc : slu_buf_printf(b, err, "}");
}

/* Appends the value as JSON, or `none`. */
static int put_value(const struct inspect_groups *by, const char *value,
                     const char *none, struct slu_buf *b, struct slu_err *err)
{
    const char *quote = value && is_string(by) ? "\"" : "";

    if (value && by_domain(by))
        return slu_json_put_string(b, value, strlen(value), err);
    return slu_buf_printf(b, err, "%s%s%s", quote, value ? value : none, quote);
}

static int put_group(const struct inspect_groups *by, const struct slu_group *g,
                     struct slu_buf *b, struct slu_err *err)
{
    const struct slu_domain_row *s = &g->sums;
    int rc = slu_buf_printf(b, err, "{\"%s\": ", by_domain(by) ? "domain" : "value");

    if (!rc)
        rc = put_value(by, s->name, "null", b, err);
    if (!rc)
        rc = slu_buf_printf(
            b, err, ", \"documents\": %llu, \"sequences\": %llu, \"tokens\": %llu",
            (ull)s->documents, (ull)g->n_length, (ull)s->tokens);
    if (!rc && s->text_tok)
        rc = slu_buf_printf(b, err, ", \"bytes_per_token\": %.4f",
                            (double)s->text_byte / (double)s->text_tok);
    if (!rc)
        rc = slu_buf_printf(b, err, ", \"length\": ");
    if (!rc)
        rc = put_quantiles(g, false, b, err);
    if (!rc && g->n_score)
        rc = slu_buf_printf(b, err, ", \"scored\": %llu, \"score\": ", (ull)g->n_score);
    if (!rc && g->n_score)
        rc = put_quantiles(g, true, b, err);
    return rc ? rc : slu_buf_printf(b, err, "}");
}

static int print_json(const struct inspect_groups *by, const struct slu_group *g,
                      size_t n, struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_buf_printf(&b, err, "{%s", by_domain(by) ? "" : "\"field\": ");

    if (!rc && !by_domain(by))
        rc = slu_json_put_string(&b, by->by.name, strlen(by->by.name), err);
    if (!rc)
        rc = slu_buf_printf(&b, err, "%s\"groups\": [", by_domain(by) ? "" : ", ");
    for (size_t i = 0; i < n && !rc; i++) {
        rc = slu_buf_printf(&b, err, "%s", i ? ",\n  " : "\n  ");
        if (!rc)
            rc = put_group(by, &g[i], &b, err);
    }
    if (!rc)
        rc = slu_buf_printf(&b, err, "\n]}\n");
    if (!rc)
        fwrite(b.data, 1, b.len, stdout);
    slu_buf_release(&b);
    return rc;
}

/* Replaces b by the text as a terminal shows it, with a NUL. */
static int put_printable(struct slu_buf *b, const char *text, size_t n,
                         struct slu_err *err)
{
    slu_buf_clear(b);
    int rc = inspect_escape(b, text, n, err);
    return rc ? rc : slu_buf_append(b, "", 1, err);
}

static int print_group(const struct inspect_groups *by, const struct slu_group *g,
                       struct slu_err *err)
{
    const struct slu_domain_row *s = &g->sums;
    struct slu_buf json = SLU_BUF_INIT, plain = SLU_BUF_INIT;
    int rc = put_value(by, s->name, "(none)", &json, err);

    if (!rc)
        rc = put_printable(&plain, (const char *)json.data, json.len, err);
    if (!rc)
        printf("%19s %12llu %14llu", (const char *)plain.data, (ull)s->documents,
               (ull)s->tokens);
    slu_buf_release(&json);
    slu_buf_release(&plain);
    if (rc)
        return rc;
    if (s->text_tok)
        printf(" %6.3f", (double)s->text_byte / (double)s->text_tok);
    else
        printf(" %6s", "-");
    for (unsigned k = 1; k < SLU_N_QUANTILE - 1; k += 2)
        printf(" %8llu", (ull)g->length[k]);
    for (unsigned k = 1; k < SLU_N_QUANTILE - 1 && g->n_score; k += 2)
        printf(" %8.4g", g->score[k]);
    printf("\n");
    return SLU_OK;
}

static int print_table(const struct inspect_groups *by, const struct slu_group *g,
                       size_t n, struct slu_err *err)
{
    struct slu_buf name = SLU_BUF_INIT;
    bool scores = false;
    int rc = put_printable(&name, by->by.name, strlen(by->by.name), err);

    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        scores |= g[i].n_score > 0;
    printf("%19s %12s %14s %6s %26s%s\n", "", "", "", "bytes/", "length",
           scores ? "                      score" : "");
    printf("%19s %12s %14s %6s %8s %8s %8s%s\n", (const char *)name.data, "documents",
           "tokens", "token", "5 %", "50 %", "95 %",
           scores ? "      5 %     50 %     95 %" : "");
    for (size_t i = 0; i < n && i < ROWS && !rc; i++)
        rc = print_group(by, &g[i], err);
    if (!rc && n > ROWS)
        printf("%19s %zu more; --json has all\n", "", n - ROWS);
    slu_buf_release(&name);
    return rc;
}

static int draw(const struct inspect_groups *by, const struct slu_group *g, size_t n,
                const struct inspect_opts *o, struct slu_err *err)
{
    struct slu_buf out = SLU_BUF_INIT;
    int rc = slu_svg_groups(g, n, by->by.name, o->title, &out, err);

    if (!rc)
        rc = slu_out_whole(o->svg, out.data, out.len, err);
    slu_buf_release(&out);
    return rc;
}

int inspect_groups_show(struct inspect_groups *by, const struct inspect_opts *o,
                        struct slu_err *err)
{
    struct slu_group *g;
    size_t n;
    int rc =
        slu_groups_list(by->sums, by_domain(by) ? by->from : by->values, &g, &n, err);

    if (!rc && o->svg)
        rc = draw(by, g, n, o, err);
    if (!rc && o->json)
        rc = print_json(by, g, n, err);
    else if (!rc && !o->svg)
        rc = print_table(by, g, n, err);
    free(g);
    return rc;
}
