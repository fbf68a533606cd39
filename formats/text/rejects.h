/* rejects.h - what is said about a record that is not taken: the line of an error, or
 * the JSON line of a --rejects file, from which the record can be had back exactly
 * (DESIGN.md, Text):
 *   {"source":NAME,"document":N,"byte":N|null,"reason":NAME,"raw":BASE64}
 * "byte" is the fault's offset in the record, null where it has no place.
 *
 * All functions are safe from any thread.
 */
#ifndef SLU_REJECTS_H
#define SLU_REJECTS_H

#include "formats/text/input.h"
#include "lib/base/json.h"

struct slu_rejected {
    const struct slu_source *source;
    const struct slu_record_ref *ref;
    const uint8_t *raw; /* ref->len bytes */
    bool json, row;     /* as in its block */
    enum slu_reject reason;
    uint64_t off_byte; /* in the record; UINT64_MAX: none */
    const char *field; /* or NULL */
};

/* Appends the JSON line. */
SLU_MUST_USE int slu_reject_write(struct slu_buf *out, const struct slu_rejected *r,
                                  struct slu_err *err);
/* The same in pieces, for records that are too large for one: the line up to the raw
 * bytes (r->raw is not looked at), these in pieces whose lengths but for the last's are
 * multiples of 3, and what is behind them. */
SLU_MUST_USE int slu_reject_begin(struct slu_buf *out, const struct slu_rejected *r,
                                  struct slu_err *err);
SLU_MUST_USE int slu_reject_raw(struct slu_buf *out, const uint8_t *p, size_t n,
                                struct slu_err *err);
SLU_MUST_USE int slu_reject_end(struct slu_buf *out, struct slu_err *err);
/* SLU_E_FORMAT with "FILE:LINE: byte N: what is wrong; what to do", or "FILE: row N:
 * …".
 */
int slu_reject_fail(const struct slu_rejected *r, struct slu_err *err);

#endif
