/* hf.h - a tokenizer.json while it is read. Private to hf*.c. */
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
    int16_t byte_of[0x144]; /* bytes by character of GPT-2's alphabet; -1: none */
    struct slu_buf bytes;   /* the result of hf_text */
    struct norm_scratch norm;
    bool byte_norm;         /* the normalizer ends in ByteLevel */
    struct tok_index index; /* the model's ids, once hf_add_merges has begun */
    struct bpe_merge *merge;
    size_t n_merge, cap_merge;
    bool is_sp; /* SentencePiece's BPE: tokens are text. The fields below are for it. */
    bool fold;  /* U+2581 stands for a space, and tokens have spaces instead */
    struct sp_cfg sp;
    uint32_t byte_id[256]; /* ids of <0x00> to <0xFF>; TOK_NONE: none */
    uint32_t *part; /* hf_sp.c: two or three bytes, the first one highest; sorted */
    size_t n_part, cap_part;
};

/* Whether v has a member `key` that is true. */
bool hf_flag(struct slu_json_value v, const char *key);

/* Adds the steps that a pre_tokenizer object describes. SLU_E_UNSUPPORTED names a
 * component that cannot be reproduced. */
SLU_MUST_USE int hf_read_pre(struct tok_pre *pre, struct slu_json_value v,
                             struct slu_err *err);
/* Adds the steps that a normalizer object describes; sets *byte_level if it ends in
 * ByteLevel. SLU_E_UNSUPPORTED names the component. */
SLU_MUST_USE int hf_read_norm(struct tok_norm *norm, struct slu_json_value v,
                              bool *byte_level, struct slu_err *err);

/* ---- hf_sp.c ---- */

/* Whether a component, or one in its Sequence, has that type. */
bool hf_has_type(struct slu_json_value v, const char *type);
/* Sets l->fold, l->sp and l->t->norm from the normalizer (in l->t->norm) and the
 * pre_tokenizer (may be null) of a SentencePiece BPE. */
SLU_MUST_USE int hf_read_sp(struct hf_load *l, struct slu_json_value pre,
                            struct slu_err *err);
/* Makes l->t->sp. Call it after the model is built. */
SLU_MUST_USE int hf_make_sp(struct hf_load *l, uint64_t n_vocab, struct slu_err *err);
/* Decides which bytes are symbols of the model, and adds the parts to the vocabulary.
 * Call it after the vocabulary is read. */
SLU_MUST_USE int hf_add_parts(struct hf_load *l, struct slu_err *err);
/* Adds the merges that make characters. Call it after tok_make_table. */
SLU_MUST_USE int hf_add_part_merges(struct hf_load *l, struct slu_err *err);

/* ---- hf_model.c ---- */

void hf_make_alphabet(int16_t byte_of[0x144]);
/* Sets l->bytes to the bytes that a token of the model stands for; *ok is false if its
 * spelling is outside the alphabet. */
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
