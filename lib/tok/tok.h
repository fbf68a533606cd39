/* tok.h - what the files of lib/tok share; private to them.
 *
 * Loading: a loader (tiktoken.c, hf.c, load.c) fills the vocabulary builder, the
 * merges, the splits and the added tokens; tok_finish (finish.c) makes the tables that
 * encoding needs, the special ids and the fingerprint. Encoding: added.c cuts added
 * tokens out of the text, pre.c cuts what is between into pieces, bpe.c turns pieces
 * into ids.
 */
#ifndef SLU_TOK_TOK_H
#define SLU_TOK_TOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/tokenizer.h"

#define TOK_NONE UINT32_MAX /* no such id */

/* id -> bytes while it is being built. Ids may come in any order, and with holes. */
struct tok_vocab {
    struct slu_buf bytes;
    uint64_t *off; /* of id's bytes */
    uint32_t *len; /* UINT32_MAX: a hole */
    uint8_t *flag; /* SLU_VOCAB_* */
    size_t n, cap_off, cap_len, cap_flag;
};

/* Defines id's bytes, again if need be. */
SLU_MUST_USE int tok_vocab_set(struct tok_vocab *v, uint64_t id, const void *p,
                               size_t n, uint8_t flag, struct slu_err *err);
void tok_vocab_release(struct tok_vocab *v);

struct tok_model; /* bpe.c */
struct tok_pre;   /* pre.c */
struct tok_added; /* added.c */

struct slu_tokenizer {
    bool is_bytes;
    bool special_parse;
    bool nfc;                     /* Unicode normal form C before anything is split */
    struct tok_vocab vocab;       /* empty once finished */
    struct slu_vocab_table table; /* arrays owned */
    struct tok_model *model;
    struct tok_pre *pre;
    struct tok_added *added;
    uint64_t eos, bos, pad;
    uint8_t fingerprint[16];
};

/* finish.c: the table from the vocabulary, special ids, fingerprint. */
SLU_MUST_USE int tok_finish(struct slu_tokenizer *t,
                            const struct slu_tokenizer_cfg *cfg, struct slu_err *err);

#endif
