/* groups.c - inspect --groups: counts, and quantiles of length and score, of each
 * domain; as a table, JSON or a picture. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/json_write.h"
#include "lib/base/number.h"
#include "lib/stream/groups.h"
#include "lib/stream/svg.h"
#include "tools/inspect/inspect.h"

typedef unsigned long long ull; /* for printf */

enum { ROWS = 40 }; /* of the table; JSON has all groups */

static const char *const names[SLU_N_QUANTILE] = {"min", "p5",  "p25", "p50",
                                                  "p75", "p95", "max"};

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

static int put_group(const struct slu_group *g, struct slu_buf *b, struct slu_err *err)
{
    const struct slu_domain_row *s = &g->sums;
    int rc = slu_buf_printf(b, err, "{\"domain\": ");

    if (!rc)
        rc = s->name ? slu_json_put_string(b, s->name, strlen(s->name), err)
                     : slu_buf_printf(b, err, "null");
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

static int print_json(const struct slu_group *g, size_t n, struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_buf_printf(&b, err, "{\"groups\": [");

    for (size_t i = 0; i < n && !rc; i++) {
        rc = slu_buf_printf(&b, err, "%s", i ? ",\n  " : "\n  ");
        if (!rc)
            rc = put_group(&g[i], &b, err);
    }
    if (!rc)
        rc = slu_buf_printf(&b, err, "\n]}\n");
    if (!rc)
        fwrite(b.data, 1, b.len, stdout);
    slu_buf_release(&b);
    return rc;
}

static int print_group(const struct slu_group *g, struct slu_buf *b,
                       struct slu_err *err)
{
    const struct slu_domain_row *s = &g->sums;
    int rc = inspect_put_name(b, s->name, err);
    if (rc)
        return rc;
    printf("%19s %12llu %14llu", (const char *)b->data, (ull)s->documents,
           (ull)s->tokens);
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

static int print_table(const struct slu_group *g, size_t n, struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    bool scores = false;
    int rc = SLU_OK;

    for (size_t i = 0; i < n; i++)
        scores |= g[i].n_score > 0;
    printf("%19s %12s %14s %6s %26s%s\n", "", "", "", "bytes/", "length",
           scores ? "                      score" : "");
    printf("%19s %12s %14s %6s %8s %8s %8s%s\n", "domain", "documents", "tokens",
           "token", "5 %", "50 %", "95 %", scores ? "      5 %     50 %     95 %" : "");
    for (size_t i = 0; i < n && i < ROWS && !rc; i++)
        rc = print_group(&g[i], &b, err);
    if (!rc && n > ROWS)
        printf("%19s %zu more; --json has all\n", "", n - ROWS);
    slu_buf_release(&b);
    return rc;
}

static int draw(const struct slu_group *g, size_t n, const struct inspect_opts *o,
                struct slu_err *err)
{
    struct slu_buf out = SLU_BUF_INIT;
    int rc = slu_svg_groups(g, n, o->title, &out, err);

    if (!rc)
        rc = slu_out_whole(o->svg, out.data, out.len, err);
    slu_buf_release(&out);
    return rc;
}

int inspect_groups(struct slu_groups *groups, struct slu_names *of,
                   const struct inspect_opts *o, struct slu_err *err)
{
    struct slu_group *g;
    size_t n;
    int rc = slu_groups_list(groups, of, &g, &n, err);

    if (!rc && o->svg)
        rc = draw(g, n, o, err);
    if (!rc && o->json)
        rc = print_json(g, n, err);
    else if (!rc && !o->svg)
        rc = print_table(g, n, err);
    free(g);
    return rc;
}
