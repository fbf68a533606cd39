/* trim.h - which characters of a token the post-processor leaves out of its offsets.
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
/* Whether the character at byte `at` of token id is left out. first: the token is the
 * text's first one. */
bool tok_is_trimmed(const struct slu_tokenizer *t, uint32_t id, size_t at, bool first);

#endif
