/* rejects.h - reports on records that are not accepted: an error's message, or a JSON
 * line of a --rejects file, from which the record can be restored exactly (DESIGN.md,
 * Text):
 *
 *   {"source":NAME,"document":N,"line":N|null,"byte":N|null,"reason":NAME,
 *    "raw":BASE64,"text":STRING}
 *
 * "line" counts from 1, and is null in files without lines, and behind the border of a
 * share in a file. "byte" is the error's offset in the record, or null if it has no
 * place. "text" is the raw bytes again, for people: only of lines and rows that are
 * UTF-8 and neither empty nor longer than SLU_REJECT_TEXT_BYTE, and not of the bytes
 * that were read of a damaged source.
 *
 * All functions are safe from any thread.
 */
#ifndef SLU_REJECTS_H
#define SLU_REJECTS_H

#include "formats/text/input.h"
#include "lib/base/json.h"

/* A longer record can be larger than a block, whose memory has no room for its text. */
#define SLU_REJECT_TEXT_BYTE ((size_t)64 << 10)

struct slu_rejected {
    const struct slu_source *source;
    const struct slu_record_ref *ref;
    const char *member;      /* of an archive: its path; or NULL */
    const uint8_t *raw;      /* ref->len bytes */
    bool json, row, at_byte; /* as in the record's block */
    enum slu_reject reason;
    uint64_t off_byte;    /* of the error in the record; UINT64_MAX: none */
    enum slu_field which; /* the field that is wrong, if one is */
    const char *field;    /* its name, or NULL */
    const char *why;      /* SLU_REJECT_UNFIT_FIELD: what does not fit; else NULL */
    const char *rule; /* SLU_REJECT_RULES: its name, which is the reason; else NULL */
};

/* Appends the JSON line. */
SLU_MUST_USE int slu_reject_write(struct slu_buf *out, const struct slu_rejected *r,
                                  struct slu_err *err);
/* Append the JSON line in pieces, for large texts: the line up to the raw bytes (r->raw
 * is not read); the raw bytes, in pieces whose lengths, except the last's, are multiples
 * of 3; and the rest of the line. */
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
