/* tok.h - struct slu_tokenizer, and what the files of lib/token share. Private to
 * lib/token.
 *
 * Loading: a loader (tiktoken.c, hf.c, builtin.c) fills the vocabulary builder, the
 * merges, the splits and the added tokens; tok_finish (finish.c) makes the fingerprint.
 * compiled.c stores the result, so that the next process need not build it (load.c).
 * Encoding: added.c cuts added tokens out of the text, norm.c normalizes the text
 * between them, pre.c cuts it into pretokens, bpe.c turns pretokens into ids.
 */
#ifndef SLU_TOK_TOK_H
#define SLU_TOK_TOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "tokenizer.h"

#define TOK_NONE UINT32_MAX /* no such id */

/* id -> bytes while it is being built. Ids may come in any order, and with holes. */
struct tok_vocab {
    struct slu_buf bytes;
    uint64_t *off; /* of an id's bytes */
    uint32_t *len; /* UINT32_MAX: a hole */
    uint8_t *flag; /* SLU_VOCAB_* */
    size_t n, cap_off, cap_len, cap_flag;
};

/* Sets the bytes of an id, which may have others already. */
SLU_MUST_USE int tok_vocab_set(struct tok_vocab *v, uint64_t id, const void *p,
                               size_t n, uint8_t flag, struct slu_err *err);
void tok_vocab_release(struct tok_vocab *v);

/* Besides SLU_VOCAB_*, while building: the token is one of the BPE model's own. */
#define TOK_IN_MODEL 0x80

/* A compiled vocabulary; p is NULL if there is none. */
struct tok_image {
    void *p; /* at a multiple of 64 bytes; read only */
    size_t n_byte;
    bool is_mapped;
};

struct tok_model; /* bpe.c */
struct tok_norm;  /* norm.c */
struct tok_sp;    /* sp.c */
struct tok_pre;   /* pre.c */
struct tok_added; /* added.c */

struct slu_tokenizer {
    bool is_bytes;
    bool special_parse;
    uint8_t cut_kinds;            /* cut.h; made at each load */
    uint8_t trims;                /* trim.h */
    struct tok_vocab vocab;       /* until tok_make_table */
    struct slu_vocab_table table; /* arrays owned, or in `compiled` */
    /* The model's table: the same arrays, with more ids after the n of table (sp.h). */
    struct slu_vocab_table model_table;
    uint8_t *in_model; /* a bool per id; until tok_finish */
    struct tok_model *model;
    struct tok_norm *norm; /* NULL: text is not changed */
    struct tok_sp *sp;     /* NULL: a byte-level model */
    struct tok_pre *pre;
    struct tok_added *added;
    uint64_t eos, bos, pad;
    uint64_t leak; /* set by tok_find_leak; unused if is_bytes */
    uint8_t fingerprint[16];
    struct tok_image compiled; /* memory of table and model if they were not built */
    char note[256];            /* slu_tokenizer_note */
};

/* finish.c: makes the table id -> bytes. Call it once all ids are defined. */
SLU_MUST_USE int tok_make_table(struct slu_tokenizer *t, struct slu_err *err);
/* finish.c: makes the fingerprint. Call it once all parts are made. */
SLU_MUST_USE int tok_finish(struct slu_tokenizer *t, struct slu_err *err);
/* finish.c: finds eos, bos and pad in the table; eos NULL: by the usual names.
 * SLU_E_USAGE: there is no such eos. */
SLU_MUST_USE int tok_find_ids(struct slu_tokenizer *t, const char *eos,
                              struct slu_err *err);
/* ordinary.c: sets t->leak to the least special id that ordinary text can become, or
 * SLU_NO_TOKEN. Call it last, before special_parse is set. */
SLU_MUST_USE int tok_find_leak(struct slu_tokenizer *t, struct slu_err *err);

/* vocab.c: ids by their bytes. */
struct tok_index {
    const struct slu_vocab_table *table; /* borrowed */
    uint32_t *slot;                      /* open addressing, TOK_NONE is empty */
    uint32_t mask;
};
/* Makes an empty index for n ids. Of ids with equal bytes the last one put counts. */
SLU_MUST_USE int tok_index_init(struct tok_index *x,
                                const struct slu_vocab_table *table, size_t n,
                                struct slu_err *err);
void tok_index_put(struct tok_index *x, uint32_t id);
/* Returns the id with these bytes, or TOK_NONE. */
uint32_t tok_index_find(const struct tok_index *x, const void *p, size_t n);
void tok_index_release(struct tok_index *x);

/* The loaders: tiktoken.c, hf.c, builtin.c. Each fills t up to tok_finish. */
/* Loads a rank file. pattern: from tok_tiktoken_pattern. */
SLU_MUST_USE int tok_load_tiktoken(struct slu_tokenizer *t, const struct slu_buf *file,
                                   const char *pattern, struct slu_err *err);
/* Decodes n base64 characters; out has room for n. Returns the bytes, or -1. */
long tok_base64(const uint8_t *p, size_t n, uint8_t *out);
/* Finds the pattern called name, or if that is NULL, by the file's name; static.
 * SLU_E_USAGE: unknown. */
SLU_MUST_USE int tok_tiktoken_pattern(const char **pattern, const char *path,
                                      const char *name, struct slu_err *err);
/* Releases the file once it is parsed. */
SLU_MUST_USE int tok_load_hf(struct slu_tokenizer *t, struct slu_buf *file,
                             struct slu_err *err);
SLU_MUST_USE int tok_load_builtin(struct slu_tokenizer *t, struct slu_err *err);
/* Returns the bytes that the built-in tokenizer is made from; static. */
const uint8_t *tok_builtin_bytes(size_t *n);
/* The largest tokenizer file that is read, in bytes. */
#define TOK_MAX_FILE (UINT64_C(1) << 30)
/* load.c: adds a special token to the vocabulary and to the added tokens. */
SLU_MUST_USE int tok_add_special(struct slu_tokenizer *t, uint64_t id, const char *text,
                                 struct slu_err *err);

#endif
