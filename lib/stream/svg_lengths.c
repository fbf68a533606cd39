/* svg_lengths.c - the picture of a length histogram: slu_svg_lengths. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "svg_private.h"

enum { COLUMNS = 4 * 64 + 1, TIPS = 84 /* most columns for which there are tips */ };
enum { BUCKET, TAIL, OTHER, CLASSES = 3 };
#define CLASS(c) ((c)-BUCKET)

static const char *const class_letter[] = {"k", "t", "o"};

/* Column c has the lengths nearest to 2^(c/4) on a logarithmic axis. */
struct column {
    uint64_t seq[CLASSES];
    double tok[CLASSES];
};

struct picture {
    struct slu_svg s;
    const struct slu_svg_lengths *p;
    struct column col[COLUMNS];
    unsigned first, last; /* columns that are drawn */
    double x0, step;      /* x of the first column's middle; distance of columns */
    uint64_t n_seq, n_tok;
    uint64_t class_seq[CLASSES], class_tok[CLASSES];
    uint64_t bucket_seq[64];
    const char *what; /* "sequences", or "documents" */
};

/* Returns the column of a length. Its edges 2^(1/8), 2^(3/8), … are in units of 2^-63:
 * integers, which are the same on every host. */
static unsigned column_of(uint64_t length)
{
    static const uint64_t edge[] = {0x8b95c1e3ea8bd6e6, 0xa5fed6a9b15138ea,
                                    0xc5672a115506dadd, 0xeac0c6e7dd24392e};
    unsigned k = length ? 63 - (unsigned)__builtin_clzll(length) : 0, c = 4 * k;
    uint64_t m = length << (63 - k);
    for (unsigned i = 0; i < 4; i++)
        c += m >= edge[i];
    return c;
}

static int bucket_of(const struct slu_svg_lengths *p, uint64_t ids)
{
    for (unsigned i = 0; i < p->n_bucket; i++)
        if (p->bucket[i] + p->label_tokens == ids)
            return (int)i;
    return -1;
}

static void fill(struct picture *g)
{
    const struct slu_svg_lengths *p = g->p;
    for (size_t i = 0; i < p->n_row; i++) {
        uint64_t ids = p->row[i].len_tok, n = p->row[i].count;
        int b = bucket_of(p, ids);
        int c = CLASS(b >= 0                               ? BUCKET
                      : p->n_bucket && ids <= p->bucket[0] ? TAIL
                      : p->n_bucket                        ? OTHER
                                                           : BUCKET);
        unsigned at = column_of(b >= 0 ? p->bucket[b] : ids);
        /* A tail is left of the shortest bucket, also if it is nearly as long. */
        if (c == CLASS(TAIL) && at && at == column_of(p->bucket[0]))
            at--;
        struct column *col = &g->col[at];
        col->seq[c] += n;
        col->tok[c] += (double)n * (double)ids;
        g->class_seq[c] += n;
        g->class_tok[c] += n * ids;
        g->n_seq += n;
        g->n_tok += n * ids;
        if (b >= 0)
            g->bucket_seq[b] += n;
    }
}

/* Chooses whole octaves around all lengths, at least six. */
static void choose_columns(struct picture *g)
{
    const struct slu_svg_lengths *p = g->p;
    unsigned low = COLUMNS, high = 0;
    for (unsigned c = 0; c < COLUMNS; c++)
        if (g->col[c].seq[0] + g->col[c].seq[1] + g->col[c].seq[2]) {
            low = c < low ? c : low;
            high = c;
        }
    for (unsigned i = 0; i < p->n_bucket; i++) {
        unsigned c = column_of(p->bucket[i]);
        low = c < low ? c : low;
        high = c > high ? c : high;
    }
    low = low == COLUMNS ? 0 : low / 4 * 4;
    high = (high + 3) / 4 * 4;
    while (high - low < 24)
        if (low)
            low -= 4;
        else
            high += 4;
    g->first = low;
    g->last = high;
    g->step = (double)(SLU_SVG_WIDTH - SLU_SVG_LEFT - SLU_SVG_RIGHT) / (high - low + 2);
    g->x0 = SLU_SVG_LEFT + g->step;
}

static double x_of(const struct picture *g, unsigned column)
{
    return g->x0 + g->step * (column - g->first);
}

static double percent(double a, double b)
{
    return b > 0 ? 100 * a / b : 0;
}

/* ---- the parts ---- */

/* Returns the length L for which half of the tokens are in sequences of L or more. */
static uint64_t half_of_tokens(const struct picture *g)
{
    uint64_t tok = 0;
    size_t i = g->p->n_row;
    while (i && tok < g->n_tok - g->n_tok / 2) {
        i--;
        tok += g->p->row[i].len_tok * g->p->row[i].count;
    }
    return g->p->n_row ? g->p->row[i].len_tok : 0;
}

static void describe(struct picture *g)
{
    const struct slu_svg_lengths *p = g->p;
    char a[32], b[32], c[32];
    slu_svg_put(&g->s, "Histogram of %s %s with %s tokens, by length. ",
                slu_svg_whole(g->n_seq, a), g->what, slu_svg_whole(g->n_tok, b));
    if (p->n_row)
        slu_svg_put(&g->s, "The shortest has %s tokens, the longest %s. ",
                    slu_svg_whole(p->row[0].len_tok, a),
                    slu_svg_whole(p->row[p->n_row - 1].len_tok, b));
    if (!p->n_bucket)
        return;
    slu_svg_put(&g->s, "%.1f %% of the tokens are in sequences of %u bucket lengths:",
                percent((double)g->class_tok[CLASS(BUCKET)], (double)g->n_tok),
                p->n_bucket);
    for (unsigned i = 0; i < p->n_bucket; i++)
        slu_svg_put(&g->s, "%s %s: %s", i ? "," : "", slu_svg_whole(p->bucket[i], a),
                    slu_svg_whole(g->bucket_seq[i], b));
    slu_svg_put(&g->s, ". Tails shorter than every bucket: %s with %s tokens.",
                slu_svg_whole(g->class_seq[CLASS(TAIL)], a),
                slu_svg_whole(g->class_tok[CLASS(TAIL)], c));
}

static void legend(struct picture *g, double y)
{
    static const char *const name[] = {
        "a bucket's length", "tails, shorter than every bucket", "other lengths"};
    static const int width[] = {156, 236, 0};
    double x = SLU_SVG_LEFT;
    if (!g->p->n_bucket)
        return;
    for (int c = 0; c < CLASSES; c++) {
        if (!g->class_seq[c] && c != CLASS(BUCKET))
            continue;
        slu_svg_put(&g->s,
                    "<rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"12\" "
                    "height=\"12\" rx=\"2\"/><text class=\"m\" x=\"%.0f\" "
                    "y=\"%.0f\">%s</text>\n",
                    class_letter[c], x, y - 10, x + 18, y, name[c]);
        x += width[c];
    }
}

/* Draws the bars of a class, each on those of the classes before it. */
static void bars(struct picture *g, int class, bool tokens, double y, double h,
                 double top)
{
    double w = g->step * 0.82;
    slu_svg_put(&g->s, "<path class=\"%s\" d=\"", class_letter[class]);
    for (unsigned c = g->first; c <= g->last; c++) {
        const struct column *col = &g->col[c];
        double at = y + h, tall = 0;
        for (int i = 0; i <= class; i++) {
            double v = tokens ? col->tok[i] : (double)col->seq[i];
            tall = v > 0 && h * v < 0.75 * top ? 0.75 : h * v / top; /* seen if > 0 */
            at -= tall;
        }
        if (tall > 0)
            slu_svg_put(&g->s, "M%.1f %.1fh%.1fv%.1fh-%.1fz", x_of(g, c) - w / 2, at, w,
                        tall, w);
    }
    slu_svg_put(&g->s, "\"/>\n");
}

/* Counts the buckets of a column. */
static unsigned buckets_in(const struct picture *g, unsigned column)
{
    unsigned n = 0;
    for (unsigned i = 0; i < g->p->n_bucket; i++)
        n += column_of(g->p->bucket[i]) == column;
    return n;
}

/* Writes the shares of the buckets above their bars, if there is room for all of them
 * and each has a bar of its own. The table below has them anyway. */
static void shares(struct picture *g, double y, double h, double top)
{
    double before = -1000;
    for (unsigned c = g->first; c <= g->last; c++)
        if (g->col[c].tok[0] > 0) {
            if (buckets_in(g, c) > 1 || x_of(g, c) - before < 38)
                return;
            before = x_of(g, c);
        }
    for (unsigned c = g->first; c <= g->last; c++) {
        const struct column *col = &g->col[c];
        double all = col->tok[0] + col->tok[1] + col->tok[2];
        if (col->tok[0] > 0)
            slu_svg_put(&g->s,
                        "<text class=\"m c\" x=\"%.1f\" y=\"%.1f\">%.*f %%</text>\n",
                        x_of(g, c), y + h - h * all / top - 5,
                        col->tok[0] >= 0.0995 * (double)g->n_tok ? 0 : 1,
                        percent(col->tok[0], (double)g->n_tok));
    }
}

/* Adds the text that is shown while a pointer rests on a column. */
static void tip(struct picture *g, unsigned c, double y, double h)
{
    const struct column *col = &g->col[c];
    uint64_t n = col->seq[0] + col->seq[1] + col->seq[2];
    double tok = col->tok[0] + col->tok[1] + col->tok[2];
    char a[32], b[32], l[32];
    if (!n)
        return;
    slu_svg_put(&g->s,
                "<path d=\"M%.1f %.0fh%.1fv%.0fh%.1fz\" "
                "fill-opacity=\"0\"><title>about %s: %s, %s "
                "tokens (%.1f %%)</title></path>\n",
                x_of(g, c) - g->step / 2, y, g->step, h, -g->step,
                slu_svg_whole((uint64_t)(exp2(c / 4.0) + .5), l), slu_svg_whole(n, a),
                slu_svg_short(tok, b), percent(tok, (double)g->n_tok));
}

static void panel(struct picture *g, bool tokens, double y, double h)
{
    bool labels = tokens && g->p->n_bucket;
    double most = 0;
    for (unsigned c = g->first; c <= g->last; c++) {
        double v = 0;
        for (int i = 0; i < CLASSES; i++)
            v += tokens ? g->col[c].tok[i] : (double)g->col[c].seq[i];
        most = v > most ? v : most;
    }
    double top = slu_svg_axis(&g->s, y, h, labels ? most * 1.08 : most,
                              tokens ? "tokens" : g->what);
    slu_svg_put(&g->s, "<path class=\"g\" stroke-dasharray=\"2 3\" d=\"");
    for (unsigned i = 0; i < g->p->n_bucket; i++)
        slu_svg_put(&g->s, "M%.1f %.0fv%.0f",
                    g->x0 + g->step * (4 * log2((double)g->p->bucket[i]) - g->first), y,
                    h);
    slu_svg_put(&g->s, "\"/>\n");
    for (int i = 0; i < CLASSES; i++)
        if (g->class_seq[i])
            bars(g, i, tokens, y, h, top);
    if (labels)
        shares(g, y, h, top);
}

static void length_axis(struct picture *g, double y, bool name)
{
    char text[32];
    unsigned every = 4;
    while (g->step * every < 34)
        every += 4;
    for (unsigned c = g->first; c <= g->last && c < 4 * 64; c += 4) {
        double x = x_of(g, c);
        slu_svg_put(&g->s, "<path class=\"e\" d=\"M%.1f %.0fv5\"/>\n", x, y);
        if ((c - g->first) % every == 0)
            slu_svg_put(&g->s, "<text class=\"m c\" x=\"%.1f\" y=\"%.0f\">%s</text>\n",
                        x, y + 19, slu_svg_length(UINT64_C(1) << c / 4, text));
    }
    if (name)
        slu_svg_put(&g->s,
                    "<text class=\"m c\" x=\"%d\" y=\"%.0f\">length in tokens, "
                    "logarithmic (K = 1024)%s</text>\n",
                    (SLU_SVG_LEFT + SLU_SVG_WIDTH - SLU_SVG_RIGHT) / 2, y + 40,
                    g->p->label_tokens ? "; buckets without their label token" : "");
}

/* ---- the table ---- */

enum { ROW = 20 };

static void table_row(struct picture *g, double y, bool stripe, const char *name,
                      uint64_t n, uint64_t tok, const char *bold)
{
    char a[32], b[32];
    if (stripe)
        slu_svg_put(&g->s,
                    "<rect class=\"z\" x=\"%d\" y=\"%.0f\" width=\"560\" "
                    "height=\"%d\"/>",
                    SLU_SVG_LEFT, y - 14, ROW);
    slu_svg_put(&g->s, "<text class=\"r%s\" y=\"%.0f\"><tspan x=\"%d\">%s</tspan>",
                bold, y, SLU_SVG_LEFT + 150, name);
    slu_svg_put(&g->s,
                "<tspan x=\"%d\">%s</tspan><tspan x=\"%d\">%s</tspan><tspan "
                "x=\"%d\">%.2f %%</tspan></text>\n",
                SLU_SVG_LEFT + 290, slu_svg_whole(n, a), SLU_SVG_LEFT + 450,
                slu_svg_whole(tok, b), SLU_SVG_LEFT + 550,
                percent((double)tok, (double)g->n_tok));
}

static void table(struct picture *g, double y)
{
    const struct slu_svg_lengths *p = g->p;
    char name[40], text[32];
    unsigned row = 0;
    slu_svg_put(&g->s,
                "<text class=\"m r\" y=\"%.0f\"><tspan x=\"%d\">length</tspan><tspan "
                "x=\"%d\">%s</tspan><tspan x=\"%d\">tokens</tspan><tspan "
                "x=\"%d\">share</tspan></text>\n",
                y, SLU_SVG_LEFT + 150, SLU_SVG_LEFT + 290, g->what, SLU_SVG_LEFT + 450,
                SLU_SVG_LEFT + 550);
    if (g->class_seq[CLASS(TAIL)])
        table_row(g, y += ROW, row++ % 2 == 0, "tails", g->class_seq[CLASS(TAIL)],
                  g->class_tok[CLASS(TAIL)], "");
    for (unsigned i = 0; i < p->n_bucket; i++) {
        snprintf(name, sizeof name, "bucket %s", slu_svg_whole(p->bucket[i], text));
        table_row(g, y += ROW, row++ % 2 == 0, name, g->bucket_seq[i],
                  g->bucket_seq[i] * (p->bucket[i] + p->label_tokens), "");
    }
    if (g->class_seq[CLASS(OTHER)])
        table_row(g, y += ROW, row++ % 2 == 0, "other lengths",
                  g->class_seq[CLASS(OTHER)], g->class_tok[CLASS(OTHER)], "");
    table_row(g, y += ROW, row++ % 2 == 0, "all", g->n_seq, g->n_tok, " b");
    if (g->n_seq)
        slu_svg_put(
            &g->s,
            "<text class=\"m\" x=\"%d\" y=\"%.0f\">mean length %.1f tokens; half of "
            "the tokens are in %s of %s or more</text>\n",
            SLU_SVG_LEFT, y += ROW + 6, (double)g->n_tok / (double)g->n_seq, g->what,
            slu_svg_whole(half_of_tokens(g), text));
    if (p->padding_tok)
        slu_svg_put(&g->s,
                    "<text class=\"m\" x=\"%d\" y=\"%.0f\">of which padding: %s "
                    "tokens</text>\n",
                    SLU_SVG_LEFT, y + ROW + 4, slu_svg_whole(p->padding_tok, text));
}

static unsigned table_rows(const struct picture *g)
{
    return 3 + g->p->n_bucket + (g->class_seq[CLASS(TAIL)] != 0) +
           (g->class_seq[CLASS(OTHER)] != 0) + (g->p->padding_tok != 0);
}

int slu_svg_lengths(const struct slu_svg_lengths *p, struct slu_buf *out,
                    struct slu_err *err)
{
    static const double head = 64, tall = 200, low = 130;
    struct picture g = {.s = {out, err, SLU_OK}, .p = p};
    char plain[80], a[32], b[32];
    if (p->n_bucket > 64)
        return slu_fail(err, SLU_E_LIMIT, "more than 64 buckets");
    fill(&g);
    choose_columns(&g);
    g.what = p->documents == g.n_seq && !p->n_bucket ? "documents" : "sequences";
    snprintf(plain, sizeof plain, "Lengths of %s %s, %s tokens",
             slu_svg_about(g.n_seq, a), g.what, slu_svg_about(g.n_tok, b));
    const char *title = p->title && *p->title ? p->title : plain;
    double y = head + (p->note && *p->note ? 16 : 0);
    double legend_y = y, first = y + (p->n_bucket ? 44 : 26);
    double second = first + tall + 58, rows = second + low + 76;
    slu_svg_begin(&g.s, "slu-lengths", (unsigned)(rows + ROW * table_rows(&g) + 4),
                  title);
    describe(&g);
    slu_svg_end_desc(&g.s, NULL, NULL, title, p->note);
    legend(&g, legend_y + 4);
    panel(&g, true, first, tall);
    length_axis(&g, first + tall, false);
    panel(&g, false, second, low);
    length_axis(&g, second + low, true);
    for (unsigned c = g.first; c <= g.last && g.last - g.first < TIPS; c++)
        tip(&g, c, first, second + low - first);
    table(&g, rows);
    slu_svg_put(&g.s, "</svg>\n");
    return g.s.rc;
}
