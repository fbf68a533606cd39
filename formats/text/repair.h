/* repair.h - U+FFFD in place of what is no text: bytes that are not UTF-8, and in JSON the
 * escapes of lone surrogates.
 *
 * Of bytes that are not UTF-8, each longest run that begins a character becomes one
 * U+FFFD, and each other byte, as the Unicode Standard advises (3.9, Substitution of
 * Maximal Subparts) and Python's errors="replace" does.
 */
#ifndef SLU_REPAIR_H
#define SLU_REPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

SLU_BEGIN_DECLS

/* How many U+FFFD there are. */
struct slu_repaired {
    uint64_t utf8, surrogates;
};

/* Appends p[0, n), repaired, and adds to *r. json: escapes of JSON are looked at. */
SLU_MUST_USE int slu_repair(struct slu_buf *out, const uint8_t *p, size_t n, bool json,
                            struct slu_repaired *r, struct slu_err *err);

SLU_END_DECLS

#endif
