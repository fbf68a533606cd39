/* tekken.h - Mistral's tekken.json, which comes in by the door of tokenizer.json. */
#ifndef SLU_TOK_TEKKEN_H
#define SLU_TOK_TEKKEN_H

#include "lib/base/json.h"
#include "lib/token/tok.h"

bool tok_is_tekken(struct slu_json_value root);
/* Everything but the model: that is made of ranks, with whole pieces first.
 * SLU_E_FORMAT, SLU_E_UNSUPPORTED: a pattern without a scanner. */
SLU_MUST_USE int tok_load_tekken(struct slu_tokenizer *t, struct slu_json_value root,
                                 struct slu_err *err);

#endif
