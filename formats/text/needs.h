/* needs.h - the field `needs` of a record, which says how its text must be encoded.
 *
 * sluice-chat writes it in each of its records, because records are cut, joined and
 * shuffled before they are encoded:
 *
 *   chat1 HASH BOS EOS [TOKEN ...]
 *
 * chat1: the text has the special tokens that it needs, which are to be parsed; no BOS
 * or EOS is to be added; the field `spans` has what is trained on. HASH: 8 hex digits of
 * the chat template's hash. BOS, EOS, TOKEN: texts of special tokens, "-" for none,
 * which the tokenizer must have; TOKENs, which the template has itself, only where the
 * text has them, and unless the options are given, too. Fields of that name with another value are others'.
 *
 * Two more fields say where such a record is from: `by`, "sluice-chat VERSION OPTIONS",
 * and `from`, "FILE:LINE". A stream's provenance begins with these steps and files.
 *
 * Thread safety: any thread.
 */
#ifndef SLU_NEEDS_H
#define SLU_NEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLU_NEEDS_FIELD "needs"
#define SLU_NEEDS_BY    "by"
#define SLU_NEEDS_FROM  "from"
#define SLU_NEEDS_SPANS "spans" /* the field with the spans */
#define SLU_NEEDS_TEXT  "text"  /* the field with the text that is meant */

/* What a run does about the field. */
struct slu_needs_cfg {
    bool read; /* looks at it; else the texts are of another field */
    bool met;  /* encodes texts as it says */
    bool all;  /* for that reason alone: then all records must have it */
    bool ids;  /* gives documents the id FILE:LINE, where they have it */
};

/* Whether a value is of this kind. */
bool slu_needs_is(const char *s, size_t n);
/* Finds the field's value in the first record of p[0, n), the beginning of a file of
 * records. Returns its length, 0 if it is not found; *s points into p. An escape in it
 * stays one. */
size_t slu_needs_peek(const uint8_t *p, size_t n, const char **s);
/* Whether the record has a field `spans` that begins as spans do. */
bool slu_needs_peek_spans(const uint8_t *p, size_t n);

#endif
