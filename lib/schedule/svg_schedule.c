/* Draws a schedule: slu_svg_schedule. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stream/svg_private.h"

enum { GROUPS = 16, ROW = 20, STOPS = 5, LEGEND = 8 /* entries per row */ };

/* A bucket, or a group of neighbours if there are more than GROUPS buckets. */
struct group {
    uint64_t low, high; /* lengths */
    uint64_t steps;
    double seq;
};

struct picture {
    struct slu_svg s;
    const struct slu_svg_schedule *p;
    struct group group[GROUPS];
    unsigned n_group;
    uint64_t steps;
    double width;
};

static unsigned group_of(const struct picture *g, size_t bucket)
{
    return (unsigned)(bucket * g->n_group / g->p->n_bucket);
}

static uint64_t count(const struct picture *g, size_t bin, size_t bucket)
{
    return g->p->count[bin * g->p->n_bucket + bucket];
}

static void fill(struct picture *g)
{
    const struct slu_svg_schedule *p = g->p;
    g->n_group = p->n_bucket < GROUPS ? (unsigned)p->n_bucket : GROUPS;
    g->width = SLU_SVG_WIDTH - SLU_SVG_LEFT - SLU_SVG_RIGHT;
    for (size_t b = 0; b < p->n_bucket; b++) {
        struct group *k = &g->group[group_of(g, b)];
        k->low = k->low ? k->low : p->length[b];
        k->high = p->length[b];
        for (size_t i = 0; i < p->n_bin; i++) {
            uint64_t n = count(g, i, b);
            k->steps += n;
            k->seq += (double)n * (double)p->batch_tok / (double)p->length[b];
            g->steps += n;
        }
    }
}

/* Appends the groups' colours, short ones warm, long ones cold, along `stop`. */
static int palette(const struct picture *g, const char *const stop[STOPS],
                   struct slu_buf *css)
{
    int rc = SLU_OK;
    for (unsigned i = 0; i < g->n_group && !rc; i++) {
        unsigned most = g->n_group > 1 ? g->n_group - 1 : 1, rgb[3];
        unsigned at = i * (STOPS - 1) * 256 / most, k = at / 256, f = at % 256;
        for (int c = 0; c < 3; c++) {
            char a[3] = {stop[k][2 * c], stop[k][2 * c + 1], 0}, b[3] = {0};
            if (f)
                memcpy(b, &stop[k + 1][2 * c], 2);
            unsigned x = (unsigned)strtoul(a, NULL, 16),
                     y = (unsigned)strtoul(b, NULL, 16);
            rgb[c] = (x * (256 - f) + y * f + 128) / 256;
        }
        rc = slu_buf_printf(css, g->s.err, ".sluice .p%u{fill:#%02x%02x%02x}%s", i,
                            rgb[0], rgb[1], rgb[2], i % 4 == 3 ? "\n" : "");
    }
    return rc ? rc : slu_buf_append(css, "\n", 2, g->s.err);
}

static void name_of(const struct group *k, char *out, size_t n)
{
    char a[32], b[32];
    if (k->low == k->high)
        snprintf(out, n, "%s", slu_svg_length(k->low, a));
    else
        snprintf(out, n, "%s–%s", slu_svg_length(k->low, a),
                 slu_svg_length(k->high, b));
}

static double x_of(const struct picture *g, double bin)
{
    return SLU_SVG_LEFT + g->width * bin / (double)g->p->n_bin;
}

static double share(const struct picture *g, uint64_t steps)
{
    return g->steps ? 100 * (double)steps / (double)g->steps : 0;
}

/* ---- the sequence length ---- */

struct scale {
    double y, h, low, high; /* log2 of the lengths at the frame's edges */
};

static double y_of(const struct scale *a, double length)
{
    return a->y + a->h - a->h * (log2(length) - a->low) / (a->high - a->low);
}

/* Finds a bin's lengths: the mean of its steps, the bounds of the middle 8 of 10. */
static bool bin_lengths(const struct picture *g, size_t bin, double *mean, double *low,
                        double *high)
{
    uint64_t all = 0, seen = 0;
    double sum = 0;
    for (size_t b = 0; b < g->p->n_bucket; b++) {
        all += count(g, bin, b);
        sum += (double)count(g, bin, b) * (double)g->p->length[b];
    }
    if (!all)
        return false;
    *mean = sum / (double)all;
    *low = 0;
    for (size_t b = 0; b < g->p->n_bucket; b++) {
        uint64_t n = count(g, bin, b);
        if (n && *low == 0 && (double)(seen + n) > 0.1 * (double)all)
            *low = (double)g->p->length[b];
        if (n && (double)seen < 0.9 * (double)all)
            *high = (double)g->p->length[b];
        seen += n;
    }
    return true;
}

static void length_panel(struct picture *g, double y, double h)
{
    const struct slu_svg_schedule *p = g->p;
    struct scale a = {y, h, floor(log2((double)p->length[0])),
                      ceil(log2((double)p->length[p->n_bucket - 1]))};
    double mean, low, high;
    char text[32];
    a.high += a.high <= a.low;
    unsigned every = a.high - a.low > 9 ? (unsigned)((a.high - a.low) / 8) + 1 : 1;
    for (unsigned k = (unsigned)a.low; k <= (unsigned)a.high && k < 64; k += every)
        slu_svg_put(&g->s,
                    "<path class=\"g\" d=\"M%d %.1fH%d\"/><text class=\"m r\" x=\"%d\" "
                    "y=\"%.1f\">%s</text>\n",
                    SLU_SVG_LEFT, y_of(&a, exp2(k)), SLU_SVG_WIDTH - SLU_SVG_RIGHT,
                    SLU_SVG_LEFT - 8, y_of(&a, exp2(k)) + 4,
                    slu_svg_length(UINT64_C(1) << k, text));
    slu_svg_put(&g->s,
                "<text class=\"b\" x=\"24\" y=\"%.0f\">sequence length<tspan "
                "class=\"m\" dx=\"10\">tokens; line: mean of the steps, band: 8 of 10 "
                "of them</tspan></text>\n<path class=\"k\" fill-opacity=\".2\" d=\"",
                y - 12);
    for (size_t i = 0; i < p->n_bin; i++) {
        if (!bin_lengths(g, i, &mean, &low, &high))
            continue;
        double top = y_of(&a, high), tall = y_of(&a, low) - top;
        if (tall > 0)
            slu_svg_put(&g->s, "M%.1f %.1fH%.1fv%.1fH%.1fz", x_of(g, (double)i), top,
                        x_of(g, (double)i + 1), tall, x_of(g, (double)i));
    }
    slu_svg_put(&g->s, "\"/>\n<path class=\"l\" d=\"");
    for (size_t i = 0, any = 0; i < p->n_bin; i++)
        if (bin_lengths(g, i, &mean, &low, &high))
            slu_svg_put(&g->s, "%c%.1f %.1f", any++ ? 'L' : 'M',
                        x_of(g, (double)i + .5), y_of(&a, mean));
    slu_svg_put(&g->s, "\"/>\n");
}

/* ---- shares ---- */

/* Draws the share of steps up to group k. Areas are drawn from the longest group down,
 * each over those before, so each needs only one boundary. */
static void area(struct picture *g, unsigned k, double y, double h)
{
    const struct slu_svg_schedule *p = g->p;
    char name[72];
    double before = -1;
    name_of(&g->group[k], name, sizeof name);
    slu_svg_put(&g->s, "<path class=\"p%u\" d=\"M%d %.0f", k, SLU_SVG_LEFT, y + h);
    for (size_t i = 0; i < p->n_bin; i++) {
        uint64_t all = 0, below = 0;
        for (size_t b = 0; b < p->n_bucket; b++) {
            all += count(g, i, b);
            below += group_of(g, b) <= k ? count(g, i, b) : 0;
        }
        double at = y + h - (all ? h * (double)below / (double)all : 0);
        if (fabs(at - before) > 0.04)
            slu_svg_put(&g->s, "H%.1fV%.1f", x_of(g, (double)i), at);
        before = at;
    }
    slu_svg_put(
        &g->s, "H%.1fV%.0fz\"><title>length %s: %.1f %% of the tokens</title></path>\n",
        x_of(g, (double)p->n_bin), y + h, name, share(g, g->group[k].steps));
}

static void share_panel(struct picture *g, double y, double h)
{
    char name[72];
    double top = y - (g->n_group > LEGEND ? 44 : 24);
    for (unsigned k = 0; k < g->n_group; k++) {
        double x = SLU_SVG_LEFT + g->width / LEGEND * (k % LEGEND);
        double at = top + 20 * (k / LEGEND);
        name_of(&g->group[k], name, sizeof name);
        slu_svg_put(&g->s,
                    "<rect class=\"p%u\" x=\"%.0f\" y=\"%.0f\" width=\"12\" "
                    "height=\"12\" rx=\"2\"/><text class=\"m\" x=\"%.0f\" "
                    "y=\"%.0f\">%s</text>\n",
                    k, x, at, x + 16, at + 10, name);
    }
    slu_svg_put(&g->s,
                "<text class=\"b\" x=\"24\" y=\"%.0f\">share of tokens by "
                "sequence length</text>\n",
                top - 14);
    for (unsigned k = g->n_group; k-- > 0;)
        area(g, k, y, h);
    for (int v = 0; v <= 100; v += 25)
        slu_svg_put(&g->s,
                    "<path class=\"%s\" d=\"M%d %.1fh-4\"/><text class=\"m r\" "
                    "x=\"%d\" y=\"%.1f\">%d %%</text>\n",
                    "e", SLU_SVG_LEFT, y + h - h * v / 100, SLU_SVG_LEFT - 8,
                    y + h - h * v / 100 + 4, v);
}

/* ---- steps, and the table ---- */

static void step_axis(struct picture *g, double y, bool name)
{
    const struct slu_svg_schedule *p = g->p;
    char a[32], b[32];
    double nice = slu_svg_nice((double)p->n_step / 8);
    /* Whole numbers, because doubles cannot count beyond 2^53. */
    const uint64_t step = nice < 1 ? 1 : (uint64_t)nice, first = p->first_step;
    const uint64_t behind = first % step ? step - first % step : 0;
    /* Far from step 0 three digits do not distinguish the ticks. */
    const bool far = first / step >= 900;
    slu_svg_put(&g->s, "<path class=\"e\" d=\"M%d %.0fh%.0f\"/>\n", SLU_SVG_LEFT, y,
                g->width);
    const uint64_t at = far ? 0 : behind; /* the first tick, counted from `first` */
    for (uint64_t k = 0; at <= p->n_step && k <= (p->n_step - at) / step; k++) {
        uint64_t v = at + k * step;
        double x = SLU_SVG_LEFT + g->width * (double)v / (double)p->n_step;
        slu_svg_put(&g->s,
                    "<path class=\"e\" d=\"M%.1f %.0fv5\"/><text class=\"m c\" "
                    "x=\"%.1f\" y=\"%.0f\">%s%s</text>\n",
                    x, y, x, y + 19, far ? "+" : "",
                    slu_svg_short((double)v + (far ? 0 : (double)first), a));
    }
    if (name)
        slu_svg_put(&g->s,
                    "<text class=\"m c\" x=\"%d\" y=\"%.0f\">step%s%s, each of %s "
                    "tokens</text>\n",
                    (SLU_SVG_LEFT + SLU_SVG_WIDTH - SLU_SVG_RIGHT) / 2, y + 40,
                    far ? ", counted from " : "", far ? slu_svg_whole(first, b) : "",
                    slu_svg_whole(p->batch_tok, a));
}

static void row(struct picture *g, double y, bool stripe, const char *class,
                const char *const cell[5])
{
    static const int at[5] = {150, 260, 410, 570, 660};
    if (stripe)
        slu_svg_put(&g->s,
                    "<rect class=\"z\" x=\"%d\" y=\"%.0f\" width=\"670\" "
                    "height=\"%d\"/>",
                    SLU_SVG_LEFT, y - 14, ROW);
    slu_svg_put(&g->s, "<text class=\"%s\" y=\"%.0f\">", class, y);
    for (int i = 0; i < 5; i++)
        slu_svg_put(&g->s, "<tspan x=\"%d\">%s</tspan>", SLU_SVG_LEFT + at[i], cell[i]);
    slu_svg_put(&g->s, "</text>\n");
}

static void table(struct picture *g, double y)
{
    static const char *const head[5] = {"length", "steps", "sequences", "tokens",
                                        "share"};
    char name[72], steps[32], seq[32], tok[32], part[32];
    const char *const cell[5] = {name, steps, seq, tok, part};
    double all = 0;
    row(g, y, false, "m r", head);
    for (unsigned k = 0; k <= g->n_group; k++) {
        bool sum = k == g->n_group;
        uint64_t n = sum ? g->steps : g->group[k].steps;
        if (sum)
            snprintf(name, sizeof name, "all");
        else
            name_of(&g->group[k], name, sizeof name);
        all += sum ? 0 : g->group[k].seq;
        slu_svg_whole(n, steps);
        double n_seq = (sum ? all : g->group[k].seq) + .5;
        slu_svg_whole(n_seq < 0x1p64 ? (uint64_t)n_seq : UINT64_MAX, seq);
        slu_svg_whole(n * g->p->batch_tok, tok);
        snprintf(part, sizeof part, "%.2f %%", share(g, n));
        row(g, y += ROW, k % 2 == 0, sum ? "r b" : "r", cell);
    }
}

static void describe(struct picture *g)
{
    char a[32], b[72];
    slu_svg_put(&g->s, "Sequence length over %s steps of a training, from step ",
                slu_svg_whole(g->p->n_step, a));
    slu_svg_put(&g->s, "%s on, each of ", slu_svg_whole(g->p->first_step, a));
    slu_svg_put(&g->s, "%s tokens. Share of the tokens by sequence length:",
                slu_svg_whole(g->p->batch_tok, a));
    for (unsigned k = 0; k < g->n_group; k++) {
        name_of(&g->group[k], b, sizeof b);
        slu_svg_put(&g->s, "%s %s: %.1f %%", k ? "," : "", b,
                    share(g, g->group[k].steps));
    }
    slu_svg_put(&g->s, ".");
}

static const char line_style[] =
    ".sluice .l{fill:none;stroke:#2a6fb0;stroke-width:2;stroke-linejoin:round}\n";
static const char dark_line_style[] = ".sluice .l{stroke:#62a3e0}\n";

int slu_svg_schedule(const struct slu_svg_schedule *p, struct slu_buf *out,
                     struct slu_err *err)
{
    static const char *const light[STOPS] = {"e9c46a", "8fbf6f", "3fa08f", "2f6fb0",
                                             "4b3a8c"};
    static const char *const dark[STOPS] = {"f0d080", "9fd07f", "4fb8a5", "5a9be0",
                                            "9b86e8"};
    static const double tall = 200;
    struct picture g = {.s = {out, err, SLU_OK}, .p = p};
    struct slu_buf css = SLU_BUF_INIT, dark_css = SLU_BUF_INIT;
    char plain[80], a[32], b[32];
    if (!p->n_bucket || !p->n_bin || !p->n_step || !p->length[0])
        return slu_fail(err, SLU_E_MISMATCH,
                        "a schedule without steps has nothing to draw");
    fill(&g);
    snprintf(plain, sizeof plain, "Schedule of %s steps, %s tokens",
             slu_svg_about(p->n_step, a), slu_svg_about(p->n_step * p->batch_tok, b));
    const char *title = p->title && *p->title ? p->title : plain;
    double first = 100, second = first + tall + (g.n_group > LEGEND ? 116 : 96),
           rows = second + tall + 76;
    g.s.rc = slu_buf_printf(&css, err, "%s", line_style);
    if (!g.s.rc)
        g.s.rc = slu_buf_printf(&dark_css, err, "%s", dark_line_style);
    if (!g.s.rc)
        g.s.rc = palette(&g, light, &css);
    if (!g.s.rc)
        g.s.rc = palette(&g, dark, &dark_css);
    slu_svg_begin(&g.s, "slu-schedule", (unsigned)(rows + ROW * (g.n_group + 2)),
                  title);
    describe(&g);
    slu_svg_end_desc(&g.s, (const char *)css.data, (const char *)dark_css.data, title,
                     p->note);
    length_panel(&g, first, tall);
    step_axis(&g, first + tall, false);
    share_panel(&g, second, tall);
    step_axis(&g, second + tall, true);
    table(&g, rows);
    slu_svg_put(&g.s, "</svg>\n");
    slu_buf_release(&css);
    slu_buf_release(&dark_css);
    return g.s.rc;
}
