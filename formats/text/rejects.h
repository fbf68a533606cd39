/* rejects.h - reports on records that are not accepted: an error's message, or a JSON
 * line of a --rejects file, from which the record can be restored exactly (DESIGN.md,
 * Text):
 *
 *   {"source":NAME,"document":N,"byte":N|null,"reason":NAME,"raw":BASE64}
 *
 * "byte" is the error's offset in the record, or null if it has no place.
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
    bool json, row;     /* as in the record's block */
    enum slu_reject reason;
    uint64_t off_byte;    /* of the error in the record; UINT64_MAX: none */
    enum slu_field which; /* the field that is wrong, if one is */
    const char *field;    /* its name, or NULL */
};

/* Appends the JSON line. */
SLU_MUST_USE int slu_reject_write(struct slu_buf *out, const struct slu_rejected *r,
                                  struct slu_err *err);
/* Append the JSON line in pieces, for large records: the line up to the raw bytes
 * (r->raw is not read); the raw bytes, in pieces whose lengths, except the last's, are
 * multiples of 3; and the rest of the line. */
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
