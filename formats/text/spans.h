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
 * in, trim.h). If these are not the text, a normalizer or a prefix has changed it:
 * align.h then says which characters a token is of, where that can be said. A character
 * that is of two tokens, as the first one after a prefix, belongs to the first.
 *
 * An empty span has no token. Time is linear in the text and, but for sorting spans
 * that do not ascend, in the spans. Only texts that are changed need memory, the
 * encoder's: the spans are replaced.
 *
 * Thread safety: as the encoder's.
 */
#ifndef SLU_SPANS_H
#define SLU_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/json.h"
#include "lib/stream/stream.h"
#include "lib/token/tokenizer.h"

SLU_BEGIN_DECLS

/* Sets SLU_TRAINED in those of the n_id ids, made from text[0, n_byte), that belong to
 * a span. e, an encoder of t, made the ids. span: n_span pairs begin <= end, in any order, which are lost.
 * A text without ids is only checked. *reject: SLU_REJECT_CHANGED_TEXT if tokens have no
 * place in the text, or a span's first or last character has no token; else
 * SLU_REJECT_BAD_SPANS if a span goes beyond the text; else, see above,
 * SLU_REJECT_TRIMMED_SPAN; else SLU_REJECT_NONE. */
SLU_MUST_USE int slu_spans_mark(const struct slu_tokenizer *t, struct slu_encoder *e,
                                const char *text, size_t n_byte, uint32_t *id,
                                size_t n_id, uint64_t *span, size_t n_span,
                                enum slu_reject *reject, struct slu_err *err);

SLU_END_DECLS

#endif
