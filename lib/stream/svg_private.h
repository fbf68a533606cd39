/* svg_private.h - what the pictures share: pens, numbers, frames. Private to
 * lib/svg*.c.
 */
#ifndef SLU_SVG_PRIVATE_H
#define SLU_SVG_PRIVATE_H

#include "svg.h"

/* Text into out; the first fault stays in rc, and nothing is put after it. */
struct slu_svg {
    struct slu_buf *out;
    struct slu_err *err;
    int rc;
};

void slu_svg_put(struct slu_svg *s, const char *fmt, ...) SLU_PRINTF(2, 3);
/* The text as it is. */
void slu_svg_raw(struct slu_svg *s, const char *text);
/* Text of others: escaped, in one line, cut to `most` characters; what is not valid
 * UTF-8, or no character of XML, becomes U+FFFD. */
void slu_svg_text(struct slu_svg *s, const char *text, size_t most);

enum { SLU_SVG_WIDTH = 880, SLU_SVG_LEFT = 76, SLU_SVG_RIGHT = 24 };

/* <svg> with title, description, style and background, then the heading; `extra` and
 * dark_extra are more style, or NULL. The caller puts the description's text between
 * begin and end_desc. */
void slu_svg_begin(struct slu_svg *s, const char *id, unsigned height,
                   const char *title);
void slu_svg_end_desc(struct slu_svg *s, const char *extra, const char *dark_extra,
                      const char *title, const char *note);

/* "1,234,567", and "1.23 M" with at most 3 digits; out has 32 bytes. */
const char *slu_svg_whole(uint64_t v, char *out);
const char *slu_svg_short(double v, char *out);
/* Whole below a million, short from there on. */
const char *slu_svg_about(uint64_t v, char *out);
/* A length: "512", "8K" where it is whole (K = 1024), else with commas. */
const char *slu_svg_length(uint64_t v, char *out);

/* The least of 1, 2, 2.5 (from 25 on), 5 times a power of ten that is >= v. */
double slu_svg_nice(double v);
/* A linear axis on the left from 0 to at least `most`, with lines across: y is the
 * frame's top, h its height. Returns the value at the top. */
double slu_svg_axis(struct slu_svg *s, double y, double h, double most,
                    const char *name);

#endif
