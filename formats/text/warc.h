/* warc.h - headers of WARC records (ISO 28500, 1.0 and 1.1), and of the HTTP responses
 * in them.
 *
 * A header is a line with the version or the status, lines "Name: value", and an empty
 * line; lines end in LF or CR LF, and names have any case. A line that begins with white
 * space goes on with the line before; only the first line of a value is kept. Nothing is
 * searched: where a record ends follows from its Content-Length alone.
 *
 * Pure functions of the bytes.
 */
#ifndef SLU_WARC_H
#define SLU_WARC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

SLU_BEGIN_DECLS

/* The most bytes of a header. */
#define SLU_WARC_HEAD ((size_t)64 << 10)

enum slu_warc_type {
    SLU_WARC_CONVERSION,
    SLU_WARC_RESOURCE,
    SLU_WARC_RESPONSE,
    SLU_WARC_OTHER, /* warcinfo, request, metadata, revisit, … */
};

/* A value, without white space around it: part of the header's bytes. p NULL: absent. */
struct slu_warc_value {
    const char *p;
    size_t n;
};

struct slu_warc {
    enum slu_warc_type type;
    uint64_t content_byte; /* Content-Length */
    struct slu_warc_value type_name, id, url, date, content_type, language, truncated;
};

/* Parses the header that p[0, n) begins with; *used: its bytes, or 0 if its end is not
 * among them. Borrows p. SLU_E_FORMAT: it is none, or has no Content-Length, or two of
 * these, or is longer than SLU_WARC_HEAD; the message has no place. */
SLU_MUST_USE int slu_warc_parse(const uint8_t *p, size_t n, struct slu_warc *w,
                                size_t *used, struct slu_err *err);

struct slu_http {
    struct slu_warc_value content_type;
    bool encoded; /* chunked, compressed, or otherwise not the content itself */
};

/* The same of an HTTP response; false: it is none. */
bool slu_http_parse(const uint8_t *p, size_t n, struct slu_http *h, size_t *used);

/* Whether a value is this word, of lower-case letters, up to white space, ";" or ",". */
bool slu_warc_is(struct slu_warc_value v, const char *word);

/* Why the text of a record is not taken. */
enum slu_warc_text {
    SLU_WARC_TEXT, /* it is */
    SLU_WARC_HTML,
    SLU_WARC_NO_TEXT, /* another type, or none */
    SLU_WARC_ENCODED, /* or in characters that only look like UTF-8, as ISO-2022-JP */
};
/* What content of this Content-Type is. */
enum slu_warc_text slu_warc_text_of(struct slu_warc_value content_type);

SLU_END_DECLS

#endif
