/* svg_groups.c - the groups of a stream: for each a line and a box of its lengths, and of
 * its scores. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "groups.h"
#include "svg_private.h"

enum { MOST = 24, ROW = 24, LENGTH_X = 330, SCORE_X = 620, WIDE = 230 };

struct scale {
    double least, most;
    bool log;
    int x;
};

static double place(const struct scale *c, double v)
{
    const double a = c->log ? log2(c->least) : c->least,
                 b = c->log ? log2(c->most) : c->most, at = c->log ? log2(v) : v;

    return c->x + (b > a ? WIDE * (at - a) / (b - a) : WIDE / 2.0);
}

/* A thin line from 5 to 95 %, a box from 25 to 75 %, a mark at 50 %. */
static void box(struct slu_svg *s, const struct scale *c, const double *q, double y,
                const char *what)
{
    double at[SLU_N_QUANTILE];

    for (unsigned k = 0; k < SLU_N_QUANTILE; k++)
        at[k] = place(c, q[k]);
    slu_svg_put(s,
                "<g><title>%s: 5 %% %.6g, 25 %% %.6g, 50 %% %.6g, 75 %% %.6g, 95 %% "
                "%.6g</title><path class=\"e\" d=\"M%.1f %.1fH%.1f\"/><rect "
                "class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"10\"/>"
                "<path class=\"g\" d=\"M%.1f %.1fv14\"/></g>\n",
                what, q[1], q[2], q[3], q[4], q[5], at[1], y, at[5], c->log ? "k" : "t",
                at[2], y - 5, at[4] - at[2] > 1 ? at[4] - at[2] : 1, at[3], y - 7);
}

static void axis(struct slu_svg *s, const struct scale *c, double y, double bottom,
                 const char *name)
{
    slu_svg_put(s,
                "<text class=\"b\" x=\"%d\" y=\"%.0f\">%s</text><path class=\"g\" "
                "d=\"M%d %.0fV%.0fM%d %.0fV%.0f\"/><text class=\"m\" x=\"%d\" "
                "y=\"%.0f\">%.6g</text><text class=\"m r\" x=\"%d\" "
                "y=\"%.0f\">%.6g</text>\n",
                c->x, y - 8, name, c->x, y, bottom, c->x + WIDE, y, bottom, c->x,
                bottom + 16, c->least, c->x + WIDE, bottom + 16, c->most);
}

/* The scales of the groups that are drawn, from their 5 % to their 95 %. */
static void fit(const struct slu_group *g, size_t n, struct scale *length,
                struct scale *score)
{
    *length = (struct scale){INFINITY, -INFINITY, true, LENGTH_X};
    *score = (struct scale){INFINITY, -INFINITY, false, SCORE_X};
    for (size_t i = 0; i < n; i++) {
        const unsigned low = 1, high = SLU_N_QUANTILE - 2;
        length->least = fmin(length->least, fmax(1, (double)g[i].length[low]));
        length->most = fmax(length->most, fmax(1, (double)g[i].length[high]));
        if (!g[i].n_score)
            continue;
        score->least = fmin(score->least, g[i].score[low]);
        score->most = fmax(score->most, g[i].score[high]);
    }
}

static void row(struct slu_svg *s, const struct slu_group *g, const char *what,
                double y, const struct scale *length, const struct scale *score)
{
    char none[64];
    double q[SLU_N_QUANTILE];
    char a[32], b[32];

    slu_svg_put(s, "<text x=\"24\" y=\"%.0f\">", y + 4);
    snprintf(none, sizeof none, "(no %.50s)", what);
    slu_svg_text(s, g->sums.name ? g->sums.name : none, 18);
    slu_svg_put(s,
                "</text><text class=\"m r\" y=\"%.0f\"><tspan x=\"230\">%s</tspan>"
                "<tspan x=\"310\">%s</tspan></text>\n",
                y + 4, slu_svg_about(g->sums.documents, a),
                slu_svg_about(g->sums.tokens, b));
    for (unsigned k = 0; k < SLU_N_QUANTILE; k++)
        q[k] = fmin(fmax((double)g->length[k], length->least), length->most);
    if (g->n_length)
        box(s, length, q, y, "length");
    for (unsigned k = 0; k < SLU_N_QUANTILE; k++)
        q[k] = fmin(fmax(g->score[k], score->least), score->most);
    if (g->n_score)
        box(s, score, q, y, "score");
}

int slu_svg_groups(const struct slu_group *g, size_t n, const char *what,
                   const char *title, struct slu_buf *out, struct slu_err *err)
{
    const bool domains = !strcmp(what, "domain");
    struct slu_svg s = {out, err, SLU_OK};
    const size_t shown = n < MOST ? n : MOST;
    const double top = 104, bottom = top + ROW * (double)shown;
    struct scale length, score;
    char plain[512];

    snprintf(plain, sizeof plain, "%zu %s%s%s%s", n, domains ? "domain" : "value",
             slu_plural(n), domains ? "" : " of ", domains ? "" : what);
    title = title && *title ? title : plain;
    fit(g, shown, &length, &score);
    slu_svg_begin(&s, "slu-groups", (unsigned)bottom + 56, title);
    slu_svg_put(&s,
                "Lengths and scores of the %zu %s with the most tokens, of %zu. "
                "Lines go from 5 to 95 %% of the sequences, boxes from 25 to 75 %%, "
                "with a mark at 50 %%.",
                shown, domains ? "domains" : "values", n);
    slu_svg_end_desc(&s, NULL, NULL, title,
                     "line: 5 to 95 % of the sequences; box: 25 to 75 %; mark: 50 %");
    slu_svg_put(&s, "<text class=\"b\" x=\"24\" y=\"%.0f\">", top - 8);
    slu_svg_text(&s, what, 18);
    slu_svg_put(&s,
                "</text><text class=\"b r\" y=\"%.0f\"><tspan x=\"230\">documents"
                "</tspan><tspan x=\"310\">tokens</tspan></text>\n",
                top - 8);
    if (shown)
        axis(&s, &length, top, bottom, "length in tokens, logarithmic");
    if (shown && score.least <= score.most)
        axis(&s, &score, top, bottom, "score");
    for (size_t i = 0; i < shown; i++)
        row(&s, &g[i], what, top + ROW * ((double)i + .5), &length, &score);
    if (n > shown)
        slu_svg_put(&s, "<text class=\"m\" x=\"24\" y=\"%.0f\">and %zu more</text>\n",
                    bottom + 40, n - shown);
    slu_svg_put(&s, "</svg>\n");
    return s.rc;
}
