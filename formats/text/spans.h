/* spans.h - which tokens of a text are trained on, by spans of its characters.
 *
 * A span is [begin, end), counted in characters (code points). A token belongs to a
 * span as in Hugging Face's char_to_token, by which transformers makes the mask of a
 * chat template: from the first token that has a part of the span's first character to
 * the first token that has a part of its last one. So of a last character that is cut
 * into several tokens only the first is trained on. (There, a span that ends within the
 * first token of the text goes on to its end; here it does not.)
 *
 * With trim_offsets (lib/token/trim.h) a span's first or last character may belong to no
 * token: transformers then leaves out the rest of the text, or takes all of it. Here such
 * a text is rejected.
 *
 * Tokens stand for the bytes that the vocabulary says (added tokens may take white space
 * in, trim.h); if these are not the text, a normalizer or a prefix has changed it, and
 * spans have no place.
 *
 * An empty span has no token. Time is linear in the text and, but for a search in it, in
 * the spans.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_SPANS_H
#define SLU_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/json.h"
#include "lib/stream/stream.h"
#include "lib/token/tokenizer.h"

SLU_BEGIN_DECLS

/* Memory for any number of texts; zero at first. */
struct slu_spans {
    size_t *end;     /* byte offset in the text of the end of each token */
    size_t *to;      /* the token at which the longest span from here ends, 0: none */
    uint64_t *count; /* characters before each run of bytes of the text */
    size_t cap_end, cap_to, cap_count, n_run;
};
void slu_spans_release(struct slu_spans *s);

/* Sets SLU_TRAINED in those of the n_id ids, made from text[0, n_byte), that belong to a
 * span. span: n_span pairs begin <= end, in any order. A text without ids is only checked.
 * *reject: SLU_REJECT_BAD_SPANS if a span goes beyond the text, SLU_REJECT_CHANGED_TEXT
 * if the tokens are not the text, SLU_REJECT_TRIMMED_SPAN: see above; else
 * SLU_REJECT_NONE. */
SLU_MUST_USE int slu_spans_mark(struct slu_spans *s, const struct slu_tokenizer *t,
                                const char *text, size_t n_byte, uint32_t *id,
                                size_t n_id, const uint64_t *span, size_t n_span,
                                enum slu_reject *reject, struct slu_err *err);

SLU_END_DECLS

#endif
