/* hf.h - shared by the files that read a tokenizer.json. */
#ifndef SLU_TOK_HF_H
#define SLU_TOK_HF_H

#include "lib/base/json.h"
#include "lib/token/bpe.h"
#include "lib/token/norm.h"
#include "lib/token/pre.h"
#include "lib/token/sp.h"
#include "lib/token/tok.h"

/* A tokenizer while it is read. */
struct hf_load {
    struct slu_tokenizer *t;
    int16_t byte_of[0x144]; /* GPT-2's alphabet; -1 */
    struct slu_buf bytes;   /* hf_text's */
    struct norm_scratch norm;
    bool byte_norm;         /* the normalizer ends in ByteLevel */
    struct tok_index index; /* the model's ids, once hf_add_merges has begun */
    struct bpe_merge *merge;
    size_t n_merge, cap_merge;
    /* SentencePiece's BPE: the model's tokens are text. */
    bool is_sp;
    bool fold; /* U+2581 stands for a space, and tokens have spaces instead */
    struct sp_cfg sp;
    uint32_t byte_id[256]; /* of <0x00> to <0xFF>, TOK_NONE */
    uint32_t *part;        /* sp_parts.c: up to three bytes, the first on top; sorted */
    size_t n_part, cap_part;
};

/* A member that is true. */
bool hf_flag(struct slu_json_value v, const char *key);

/* Adds the steps that a pre_tokenizer object describes. SLU_E_UNSUPPORTED with the
 * component's name where one cannot be reproduced. */
SLU_MUST_USE int hf_read_pre(struct tok_pre *pre, struct slu_json_value v,
                             struct slu_err *err);
/* Adds the steps that a normalizer object describes; *byte_level becomes true where it
 * ends in ByteLevel. SLU_E_UNSUPPORTED with the component's name. */
SLU_MUST_USE int hf_read_norm(struct tok_norm *norm, struct slu_json_value v,
                              bool *byte_level, struct slu_err *err);

/* ---- hf_sp.c ---- */

/* Whether a component, or one in its Sequence, has that type. */
bool hf_has_type(struct slu_json_value v, const char *type);
/* Normalizer (in l->t->norm) and pre_tokenizer (or none) of a SentencePiece BPE:
 * l->fold, l->sp and l->t->norm as they are to be. */
SLU_MUST_USE int hf_read_sp(struct hf_load *l, struct slu_json_value pre,
                            struct slu_err *err);
/* Makes l->t->sp once the model is there. */
SLU_MUST_USE int hf_make_sp(struct hf_load *l, uint64_t n_vocab, struct slu_err *err);
/* The vocabulary is read: says which bytes are symbols, and adds the parts to it. */
SLU_MUST_USE int hf_add_parts(struct hf_load *l, struct slu_err *err);
/* The merges that make characters; l->t->table is there. */
SLU_MUST_USE int hf_add_part_merges(struct hf_load *l, struct slu_err *err);

/* ---- hf_model.c ---- */

void hf_make_alphabet(int16_t byte_of[0x144]);
/* The bytes that a token of the model stands for, in l->bytes; *ok is false where it is
 * spelled outside the alphabet. */
SLU_MUST_USE int hf_text(struct hf_load *l, const char *p, size_t n, bool *ok,
                         struct slu_err *err);
SLU_MUST_USE int hf_check_model(struct slu_json_value model, struct slu_err *err);
SLU_MUST_USE int hf_add_vocab(struct hf_load *l, struct slu_json_value vocab,
                              struct slu_err *err);
SLU_MUST_USE int hf_put_merge(struct hf_load *l, uint32_t left, uint32_t right,
                              uint32_t result, struct slu_err *err);
SLU_MUST_USE int hf_add_merges(struct hf_load *l, struct slu_json_value merges,
                               struct slu_err *err);

/* ---- hf_added.c ---- */

SLU_MUST_USE int hf_add_added(struct hf_load *l, struct slu_json_value v,
                              struct slu_err *err);
SLU_MUST_USE int hf_check_added_ids(struct hf_load *l, size_t n_vocab,
                                    struct slu_err *err);

#endif
