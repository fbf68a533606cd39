/* svg_private.h - text, numbers and axes of pictures. Private to the files svg*.c. */
#ifndef SLU_SVG_PRIVATE_H
#define SLU_SVG_PRIVATE_H

#include "svg.h"

/* A writer of text to out. rc keeps the first error; nothing is written after it. */
struct slu_svg {
    struct slu_buf *out;
    struct slu_err *err;
    int rc;
};

void slu_svg_put(struct slu_svg *s, const char *fmt, ...) SLU_PRINTF(2, 3);

/* Appends text from outside: escaped, in one line, cut to `most` characters. Invalid
 * UTF-8 and characters that XML forbids become U+FFFD. */
void slu_svg_text(struct slu_svg *s, const char *text, size_t most);

enum { SLU_SVG_WIDTH = 880, SLU_SVG_LEFT = 76, SLU_SVG_RIGHT = 24 };

/* Write <svg> with title, description, style and background, then the heading. The
 * caller puts the description's text between the two calls. extra, dark_extra: more
 * style, or NULL. */
void slu_svg_begin(struct slu_svg *s, const char *id, unsigned height,
                   const char *title);
void slu_svg_end_desc(struct slu_svg *s, const char *extra, const char *dark_extra,
                      const char *title, const char *note);

/* Format v as "1,234,567", and as "1.23 M" with at most 3 digits; out has 32 bytes. */
const char *slu_svg_whole(uint64_t v, char *out);
const char *slu_svg_short(double v, char *out);
/* Formats v as whole below a million, as short from there on. */
const char *slu_svg_about(uint64_t v, char *out);
/* Formats a length: "512", "8K" for a multiple of 1024, else with commas. */
const char *slu_svg_length(uint64_t v, char *out);

/* Returns the least of 1, 2, 2.5 (from 25 on), 5 times a power of ten that is >= v. */
double slu_svg_nice(double v);
/* Draws a linear axis on the left from 0 to at least `most`, with lines across. y: top
 * of the frame, h: its height. Returns the value at the top. */
double slu_svg_axis(struct slu_svg *s, double y, double h, double most,
                    const char *name);

#endif
