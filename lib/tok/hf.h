/* hf.h - shared by the files that read a tokenizer.json. */
#ifndef SLU_TOK_HF_H
#define SLU_TOK_HF_H

#include "lib/json.h"
#include "lib/tok/pre.h"
#include "lib/tok/tok.h"

/* Adds the steps that a pre_tokenizer object describes. SLU_E_UNSUPPORTED with the
 * component's name where one cannot be reproduced. */
SLU_MUST_USE int hf_read_pre(struct tok_pre *pre, struct slu_json_value v,
                             struct slu_err *err);

/* Adds the steps that a normalizer object describes; *byte_level becomes true where it
 * ends in ByteLevel. SLU_E_UNSUPPORTED with the component's name. */
struct tok_norm;
SLU_MUST_USE int hf_read_norm(struct tok_norm *norm, struct slu_json_value v,
                              bool *byte_level, struct slu_err *err);

#endif
