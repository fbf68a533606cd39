/* json_scan.h - the scalar JSON parser of json.h, without a tree. Private to lib.
 *
 * It checks the grammar of RFC 8259 byte by byte (not UTF-8), in constant memory (8 KiB
 * of nesting bits), and finds the values of wanted fields of the outermost object.
 */
#ifndef SLU_JSON_SCAN_H
#define SLU_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "buf.h"
#include "json.h"

enum slu_scan_type {
    SLU_SCAN_ABSENT,
    SLU_SCAN_STRING,
    SLU_SCAN_INTEGER, /* no fraction, no exponent */
    SLU_SCAN_NUMBER,  /* any other number */
    SLU_SCAN_BOOL,
    SLU_SCAN_NULL,
    SLU_SCAN_CONTAINER, /* an object or array */
};

struct slu_scan_field {
    /* As in struct slu_record_cfg; NULL: unused. */
    const char *name;
    size_t name_len;
    /* private: the level of nesting whose keys are compared (1: the outermost object),
     * with the name from byte `from` on; the level at which the value was found */
    size_t level, from, found;
    /* out: of equal keys the last */
    enum slu_scan_type type;
    bool escaped; /* a string with backslashes */
    size_t off;   /* of the value's first byte; strings: after the quote */
    size_t len;   /* bytes; strings: without quotes */
};

struct slu_json_scanned {
    enum slu_reject reject; /* NONE, INVALID_JSON, TOO_DEEP or LONE_SURROGATE */
    size_t off;             /* of the error */
    bool object;            /* the value is an object */
};

/* Scans the n bytes at p as one JSON value. Pure. */
void slu_json_scan(const uint8_t *p, size_t n, struct slu_scan_field *field,
                   size_t n_field, struct slu_json_scanned *out);

/* Appends the unescaped form of string content that slu_json_scan has accepted. */
SLU_MUST_USE int slu_json_unescape(struct slu_buf *out, const uint8_t *p, size_t n,
                                   struct slu_err *err);

/* The character that a backslash and this byte stand for; 0: not an escape, or \u. */
extern const uint8_t slu_json_escape[256];

/* Decodes the escape \uXXXX at p, or a pair of them, to *out_len bytes of UTF-8; there
 * are n bytes at p. Returns the bytes read; 0: not hexadecimal, or half of a pair. */
size_t slu_json_unescape_u(const uint8_t *p, size_t n, uint8_t out[4], size_t *out_len);

#ifdef __cplusplus
}
#endif

#endif
