/* trim.h - the offsets of a text's tokens, as Hugging Face's tokenizers have them.
 *
 * A token's part of the text is its bytes; an added token with "lstrip" or "rstrip" has
 * the white space before or after it, too.
 *
 * With "trim_offsets" Hugging Face's ByteLevel and RobertaProcessing take white space off
 * both ends of a token's offsets: of " the" the offsets are those of "the". Ids stay. A
 * character that is left out belongs to no token in char_to_token. With "add_prefix_space"
 * the text's first token keeps the white space before it.
 *
 * Thread safety: read-only.
 */
#ifndef SLU_TOK_TRIM_H
#define SLU_TOK_TRIM_H

#include "lib/base/json.h"
#include "lib/token/tok.h"

enum { TOK_TRIMS = 1, TOK_KEEPS_FIRST = 2 }; /* bits of slu_tokenizer.trims */

/* Returns the bits of a post_processor. */
uint8_t tok_trims_of(struct slu_json_value post);
/* Gets token i, whose part is bytes begin to end of the text; it may change id[i]. */
typedef void tok_part_fn(void *ctx, size_t i, size_t begin, size_t end);
/* Calls each for the tokens of a text, which ids were made of, in order. False: the
 * tokens are not the text, as a normalizer or a prefix has changed it. */
bool tok_each_part(const struct slu_tokenizer *t, const char *text, size_t n_byte,
                   const uint32_t *id, size_t n_id, tok_part_fn *each, void *ctx);
/* Whether the character at byte `at` of the text is left out of token id, whose part is
 * text[begin, end). */
bool tok_is_trimmed(const struct slu_tokenizer *t, uint32_t id, const char *text,
                    size_t begin, size_t end, size_t at);

#endif
