/* svg.c - text, numbers, style and axes of pictures. */
#include "svg.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json_write.h"
#include "svg_private.h"

void slu_svg_put(struct slu_svg *s, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    if (s->rc)
        return;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof line)
        s->rc = slu_fail(s->err, SLU_E_LIMIT, "a line of a picture is too long");
    else
        s->rc = slu_buf_append(s->out, line, (size_t)n, s->err);
}

/* Appends text unchanged. */
static void put_raw(struct slu_svg *s, const char *text)
{
    if (!s->rc)
        s->rc = slu_buf_append(s->out, text, strlen(text), s->err);
}

void slu_svg_text(struct slu_svg *s, const char *text, size_t most)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + strlen(text);
    for (size_t i = 0; p < end; i++) {
        unsigned n = slu_utf8_valid_at(p, (size_t)(end - p));
        if (i == most) {
            slu_svg_put(s, "…");
            return;
        }
        /* U+FFFE and U+FFFF are valid UTF-8, but not characters of XML. */
        bool none = n == 3 && p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe;
        if (*p == '&')
            slu_svg_put(s, "&amp;");
        else if (*p == '<')
            slu_svg_put(s, "&lt;");
        else if (*p == '>')
            slu_svg_put(s, "&gt;");
        else if (*p == '"')
            slu_svg_put(s, "&quot;");
        else if (*p == '\t' || *p == '\n' || *p == '\r')
            slu_svg_put(s, " ");
        else if (!n || *p < 0x20 || *p == 0x7f || none)
            slu_svg_put(s, "\xef\xbf\xbd");
        else
            slu_svg_put(s, "%.*s", (int)n, (const char *)p);
        p += n ? n : 1;
    }
}

void slu_svg_begin(struct slu_svg *s, const char *id, unsigned height,
                   const char *title)
{
    slu_svg_put(s,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sluice\" "
                "role=\"img\" width=\"%d\" height=\"%u\" viewBox=\"0 0 %d %u\" "
                "aria-labelledby=\"%s-title %s-desc\">\n<title id=\"%s-title\">",
                SLU_SVG_WIDTH, height, SLU_SVG_WIDTH, height, id, id, id);
    slu_svg_text(s, title, 200);
    slu_svg_put(s, "</title>\n<desc id=\"%s-desc\">", id);
}

/* For a light scheme; dark_style is for a dark one. Contrast to the background: text at
 * least 12 to 1, muted text above 4.5, marks above 3. */
static const char style[] =
    ".sluice{font:13px system-ui,-apple-system,'Segoe UI',"
    "Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif}\n"
    ".sluice .bg{fill:#fff}.sluice text{fill:#1c2128}\n"
    ".sluice .h{font-size:18px;font-weight:600}.sluice "
    ".m{fill:#57606a;font-size:12px;font-weight:400}\n"
    ".sluice .r{text-anchor:end;font-variant-numeric:tabular-nums}\n"
    ".sluice .c{text-anchor:middle}.sluice .b{font-weight:600}\n"
    ".sluice .g{stroke:#d8dee4;stroke-width:1;fill:none}\n"
    ".sluice .e{stroke:#8b949e;stroke-width:1;fill:none}\n"
    ".sluice .k{fill:#2a6fb0}.sluice .t{fill:#c4721c}.sluice .o{fill:#8a939d}\n"
    ".sluice .z{fill:#f4f6f8}\n";
static const char dark_style[] =
    ".sluice .bg{fill:#15181c}.sluice text{fill:#e6e9ec}.sluice .m{fill:#9ea7b1}\n"
    ".sluice .g{stroke:#31373e}.sluice .e{stroke:#6e7781}\n"
    ".sluice .k{fill:#62a3e0}.sluice .t{fill:#e2994f}.sluice .o{fill:#7d8791}\n"
    ".sluice .z{fill:#1d2126}\n";

void slu_svg_end_desc(struct slu_svg *s, const char *extra, const char *dark_extra,
                      const char *title, const char *note)
{
    slu_svg_put(s, "</desc>\n<style>\n");
    put_raw(s, style);
    put_raw(s, extra ? extra : "");
    slu_svg_put(s, "@media (prefers-color-scheme:dark){\n");
    put_raw(s, dark_style);
    put_raw(s, dark_extra ? dark_extra : "");
    slu_svg_put(s, "}\n");
    slu_svg_put(s, "</style>\n<rect class=\"bg\" width=\"100%%\" height=\"100%%\"/>\n"
                   "<text class=\"h\" x=\"24\" y=\"36\">");
    slu_svg_text(s, title, 80);
    slu_svg_put(s, "</text>\n");
    if (note && *note) {
        /* At 12 px a character of a wide font takes 7 px: more would pass the edge. */
        slu_svg_put(s, "<text class=\"m\" x=\"24\" y=\"56\">");
        slu_svg_text(s, note, (SLU_SVG_WIDTH - 2 * 24) / 7);
        slu_svg_put(s, "</text>\n");
    }
}

const char *slu_svg_whole(uint64_t v, char *out)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)v), k = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            out[k++] = ',';
        out[k++] = digits[i];
    }
    out[k] = 0;
    return out;
}

const char *slu_svg_short(double v, char *out)
{
    static const char *const unit[] = {"", " k", " M", " G", " T", " P", " E"};
    unsigned u = 0;
    while (v >= 999.5 && u < 6) {
        v /= 1000;
        u++;
    }
    int digits = u == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
    int n = snprintf(out, 32, "%.*f", digits, v);
    if (digits) /* 1.50 -> 1.5, 2.00 -> 2 */
        while (out[n - 1] == '0' || out[n - 1] == '.') {
            bool point = out[n - 1] == '.';
            out[--n] = 0;
            if (point)
                break;
        }
    snprintf(out + n, 32 - (size_t)n, "%s", unit[u]);
    return out;
}

const char *slu_svg_about(uint64_t v, char *out)
{
    return v < 1000000 ? slu_svg_whole(v, out) : slu_svg_short((double)v, out);
}

const char *slu_svg_length(uint64_t v, char *out)
{
    static const char unit[] = "KMGT";
    unsigned u = 0;
    if (v < 1024 || v % 1024)
        return slu_svg_whole(v, out);
    for (v /= 1024; v >= 1024 && v % 1024 == 0 && u < 3; u++)
        v /= 1024;
    snprintf(out, 32, "%llu%c", (unsigned long long)v, unit[u]);
    return out;
}

double slu_svg_nice(double v)
{
    static const double step[] = {1, 2, 2.5, 5};
    double ten = 1;
    while (ten * 10 <= v)
        ten *= 10;
    for (unsigned i = 0; i < 4; i++)
        if (step[i] * ten >= v && (ten > 1 || step[i] != 2.5))
            return step[i] * ten;
    return 10 * ten;
}

double slu_svg_axis(struct slu_svg *s, double y, double h, double most,
                    const char *name)
{
    int parts = h > 150 ? 4 : 3;
    double step = slu_svg_nice(most > parts ? most / parts : 1), top = 0;
    char text[32];
    while (top < most || top == 0)
        top += step;
    for (double v = 0; v <= top; v += step) {
        double at = y + h - h * v / top;
        slu_svg_put(s,
                    "<path class=\"%s\" d=\"M%d %.1fH%d\"/><text class=\"m r\" "
                    "x=\"%d\" y=\"%.1f\">%s</text>\n",
                    v > 0 ? "g" : "e", SLU_SVG_LEFT, at, SLU_SVG_WIDTH - SLU_SVG_RIGHT,
                    SLU_SVG_LEFT - 8, at + 4, slu_svg_short(v, text));
    }
    slu_svg_put(s, "<text class=\"b\" x=\"24\" y=\"%.1f\">%s</text>\n", y - 12, name);
    return top;
}
