/* tekken.h - Mistral's tekken.json, which tok_load_hf recognizes. */
#ifndef SLU_TOK_TEKKEN_H
#define SLU_TOK_TEKKEN_H

#include "lib/base/json.h"
#include "lib/token/tok.h"

bool tok_is_tekken(struct slu_json_value root);
/* Loads everything but the model, which the caller builds from ranks, with whole_first.
 * SLU_E_FORMAT; SLU_E_UNSUPPORTED for a pattern without a scanner. */
SLU_MUST_USE int tok_load_tekken(struct slu_tokenizer *t, struct slu_json_value root,
                                 struct slu_err *err);

#endif
