#include "lib/pack/packing_table.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/json_write.h"
#include "lib/pack/packing_private.h"

/* Least squares takes time proportional to the cube of the bin's length, for each
 * domain. Above this product (about two seconds) the method is left out of the table,
 * unless it was chosen. */
#define MUCH 2e9

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double ratio(double a, double b)
{
    return b != 0 ? a / b : 0;
}

/* Returns the sum of l^2 over the pieces, for methods with a plan. */
static unsigned __int128 squares(const struct slu_packing *p)
{
    unsigned __int128 sum = 0;
    for (size_t i = 0; i < p->n_lane; i++)
        for (size_t k = 0; k < p->lane[i].n_row; k++) {
            const struct slu_length_count *r = &p->lane[i].row[k];
            sum += (unsigned __int128)r->len_tok * r->len_tok * r->count;
        }
    return sum;
}

static unsigned __int128 concat_squares(const struct slu_packing *p)
{
    unsigned __int128 sum = 0;
    for (size_t i = 0; i < p->n_lane; i++)
        sum += p->lane[i].concat_squares;
    return sum;
}

static bool too_much(const struct slu_packing *p, enum slu_pack_method m)
{
    const struct slu_pack_kind *kind = &slu_pack_kind[m];
    double L = (double)p->cfg.capacity;
    return kind->cubic && m != p->cfg.method && !kind->check(p->cfg.capacity, NULL) &&
           (double)p->n_lane * L * L * L > MUCH;
}

/* Solves each domain; adds to *sum. */
static int solve(const struct slu_packing *p, enum slu_pack_method m,
                 struct slu_pack_sum *sum, struct slu_err *err)
{
    const struct slu_pack_cfg cfg = slu_pack_solver_cfg(p);
    for (size_t i = 0; i < p->n_lane; i++) {
        const struct slu_pack_lane *s = &p->lane[i];
        struct slu_pack_plan *plan;
        int rc = slu_pack_solve(&plan, m, s->row, s->n_row, &cfg, err);
        if (rc)
            return rc;
        struct slu_pack_sum one = slu_pack_plan_sum(plan);
        slu_pack_plan_free(plan);
        one.items = s->items;
        one.cut = s->cut;
        slu_pack_sum_add(sum, &one);
    }
    return SLU_OK;
}

static void figures(struct slu_packing_row *r, unsigned __int128 sq,
                    unsigned __int128 concat_sq)
{
    const struct slu_pack_sum *s = &r->sum;
    double tok = (double)s->tok;
    r->lost = s->tok - s->full_tok;
    r->padding = ratio((double)(s->ids - s->tok), tok);
    r->truncation = ratio((double)s->cut, (double)s->items);
    r->concatenation = ratio((double)s->items, (double)s->bins);
    r->mean_context = ratio((double)(sq - s->tok) / 2, tok);
    r->attention = ratio((double)sq, (double)concat_sq);
}

int slu_packing_compare(const struct slu_packing *p,
                        struct slu_packing_row row[SLU_PACK_METHODS],
                        struct slu_err *err)
{
    unsigned __int128 sq = squares(p), concat_sq = concat_squares(p);
    memset(row, 0, SLU_PACK_METHODS * sizeof *row);
    for (int m = 0; m < SLU_PACK_METHODS; m++) {
        struct slu_packing_row *r = &row[m];
        const struct slu_pack_kind *kind = &slu_pack_kind[m];
        double begin = now();
        int rc = SLU_OK;
        struct slu_err why = SLU_ERR_INIT;
        if (!kind->solve && p->cfg.max_items)
            rc = slu_fail(&why, SLU_E_USAGE, "does not limit the segments in a bin");
        else if (kind->several && m != (int)p->cfg.method)
            rc = slu_fail(&why, SLU_E_USAGE,
                          "needs several bucket lengths and method %s",
                          slu_pack_method_name[m]);
        else if (!kind->solve)
            r->sum = slu_packing_baseline(p);
        else if (m == (int)p->cfg.method && p->cfg.apply)
            r->sum = slu_packing_sum(p); /* the method might not make this plan */
        else if (too_much(p, (enum slu_pack_method)m))
            rc = slu_fail(&why, SLU_E_USAGE,
                          "takes long for such bins; choose method %s to run it",
                          slu_pack_method_name[m]);
        else
            rc = solve(p, (enum slu_pack_method)m, &r->sum, &why);
        if (rc == SLU_E_USAGE || rc == SLU_E_LIMIT) {
            (void)snprintf(r->why, sizeof r->why, "%.127s", why.msg);
            continue;
        }
        if (rc) {
            if (err)
                *err = why;
            return rc;
        }
        r->seconds = now() - begin;
        figures(r, kind->solve ? sq : concat_sq, concat_sq);
    }
    return SLU_OK;
}

/* ---- for people ---- */

static int put_row(const struct slu_packing *p, int m, const struct slu_packing_row *r,
                   struct slu_buf *text, struct slu_err *err)
{
    char mark = (int)p->cfg.method == m ? '*' : ' ';
    const struct slu_pack_sum *s = &r->sum;
    if (r->why[0])
        return slu_buf_printf(text, err, "%c %-7s %.88s\n", mark,
                              slu_pack_method_name[m], r->why);
    double lost = p->cfg.drop ? ratio((double)r->lost, (double)s->tok) : r->padding;
    return slu_buf_printf(
        text, err,
        "%c %-7s %12llu %10llu %9.4f%% %7.3f%% %8.3f%% %8.2f %8.1f %9.4f %8.3f\n", mark,
        slu_pack_method_name[m], (unsigned long long)(p->cfg.drop ? s->full : s->bins),
        (unsigned long long)(s->bins - s->bound), 100 * slu_pack_fill(s), 100 * lost,
        100 * r->truncation, r->concatenation, r->mean_context, r->attention,
        r->seconds);
}

int slu_packing_table(const struct slu_packing *p, const struct slu_packing_row *row,
                      const struct slu_count *passed, struct slu_buf *text,
                      struct slu_err *err)
{
    struct slu_pack_sum sum = slu_packing_sum(p);
    int rc = slu_buf_printf(
        text, err,
        "%llu sequence%s (%llu token%s) with a bucket's length to pass\n"
        "%llu sequence%s (%llu token%s) to go into bins of %llu token%s%s\n\n  %-7s "
        "%12s "
        "%10s %10s %8s %9s %8s %8s %9s %8s\n",
        (unsigned long long)passed->sequences, slu_plural(passed->sequences),
        (unsigned long long)passed->tokens, slu_plural(passed->tokens),
        (unsigned long long)sum.items, slu_plural(sum.items),
        (unsigned long long)sum.tok, slu_plural(sum.tok),
        (unsigned long long)p->cfg.capacity, slu_plural(p->cfg.capacity),
        p->n_lane > 1 ? ", each of one domain" : "", "method", "bins", "over bound",
        "fill", p->cfg.drop ? "dropped" : "padding", "cut", "per bin", "context",
        "attention", "seconds");
    for (int m = 0; m < SLU_PACK_METHODS && !rc; m++)
        rc = put_row(p, m, &row[m], text, err);
    return rc;
}

/* ---- for programs ---- */

static int put_json(const struct slu_packing *p, int m, const struct slu_packing_row *r,
                    struct slu_buf *text, struct slu_err *err)
{
    const struct slu_pack_sum *s = &r->sum;
    int rc = slu_buf_printf(text, err, "%s{\"method\": \"%s\", \"chosen\": %s",
                            m ? ", " : "", slu_pack_method_name[m],
                            (int)p->cfg.method == m ? "true" : "false");
    if (!rc && r->why[0]) {
        rc = slu_buf_printf(text, err, ", \"unsuitable\": ");
        if (!rc)
            rc = slu_json_put_string(text, r->why, strlen(r->why), err);
    } else if (!rc) {
        rc = slu_buf_printf(
            text, err,
            ", \"bins\": %llu, \"full_bins\": %llu, \"certificate\": %llu, \"groups\": "
            "%llu, \"lost\": %llu, \"fill\": %.9g, \"padding_ratio\": %.9g, "
            "\"truncation_ratio\": %.9g, \"concatenation_ratio\": %.9g, "
            "\"mean_context\": %.9g, \"attention_cost\": %.9g, \"seconds\": %.6f",
            (unsigned long long)s->bins, (unsigned long long)s->full,
            (unsigned long long)(s->bins - s->bound), (unsigned long long)s->groups,
            (unsigned long long)r->lost, slu_pack_fill(s), r->padding, r->truncation,
            r->concatenation, r->mean_context, r->attention, r->seconds);
    }
    return rc ? rc : slu_buf_printf(text, err, "}");
}

int slu_packing_table_json(const struct slu_packing *p,
                           const struct slu_packing_row *row, struct slu_buf *text,
                           struct slu_err *err)
{
    int rc = slu_buf_printf(text, err, "[");
    for (int m = 0; m < SLU_PACK_METHODS && !rc; m++)
        rc = put_json(p, m, &row[m], text, err);
    return rc ? rc : slu_buf_printf(text, err, "]");
}
