/* json_write.h - JSON text out of C values, into a slu_buf (RFC 8259). */
#ifndef SLU_JSON_WRITE_H
#define SLU_JSON_WRITE_H

#include "buf.h"

/* Appends the bytes as a JSON string with its quotes. Each byte that is not part of
 * valid UTF-8 becomes U+FFFD, so the output is always valid JSON. */
SLU_MUST_USE int slu_json_put_string(struct slu_buf *out, const void *p, size_t n_byte,
                                     struct slu_err *err);
/* As slu_json_put_string, without quotes, for a string in parts. Parts must not cut a
 * character. */
SLU_MUST_USE int slu_json_put_part(struct slu_buf *out, const void *p, size_t n_byte,
                                   struct slu_err *err);
/* Returns the bytes of the valid UTF-8 sequence at p (1 … 4), 0 if there is none
 * (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF). */
unsigned slu_utf8_valid_at(const uint8_t *p, size_t n_byte);

#endif
