/* tokenizer.h - UTF-8 text to token ids, identical to the reference implementations.
 *
 * Kinds of tokenizer:
 *
 *   "bytes"           one id per byte; 256 is <|endoftext|>
 *   "builtin"         the project's own 32 Ki byte-level BPE with the llama3 split
 *   tokenizer.json    byte-level BPE, and SentencePiece's BPE with byte fallback;
 *                     reference: Hugging Face's `tokenizers`, add_special_tokens=False
 *   *.tiktoken        ranks, with the name of a split; reference: `tiktoken`
 *   tekken.json       Mistral's ranks; reference: `tiktoken` with the split it names
 *
 * The caller adds BOS and EOS; truncation, padding and post-processor of a
 * tokenizer.json are not applied. A tokenizer that cannot be reproduced exactly is
 * refused when it is loaded (SLU_E_UNSUPPORTED), with the name of the component.
 *
 * Special tokens (DESIGN.md, Text): by default, text that looks like one is ordinary
 * text (`encode_special_tokens=True`, `encode_ordinary`), but added tokens that are not
 * special match, as in the reference. With special_parse all of them match.
 *
 * Unicode: classes of characters follow the version that slu_tokenizer_unicode() names,
 * the version that the references follow; normalizers have the versions of the
 * `tokenizers` library (9.0 for the normal forms, 17.0 for lower case).
 *
 * Thread safety: a slu_tokenizer is read-only once loaded and shared by all threads; a
 * slu_encoder has scratch memory, one per thread; encoders can share a word cache. Ids
 * do not depend on the cache.
 */
#ifndef SLU_TOKENIZER_H
#define SLU_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

struct slu_tokenizer;
struct slu_encoder;

struct slu_tokenizer_cfg {
    /* "builtin" (NULL is the same), "bytes", or a path to a tokenizer.json or to a rank
     * file whose name ends in .tiktoken. Write ./bytes for a file called bytes. */
    const char *spec;
    /* For rank files only: gpt2, r50k, p50k, cl100k, o200k, llama3, qwen2, qwen35 or
     * kimi. NULL: the one that the file's name contains (r50k_base.tiktoken). It
     * decides the split and the special tokens. */
    const char *pattern;
    /* Special tokens in the text are matched. */
    bool special_parse;
    /* The token that ends a document, by its text (a special one before any other);
     * SLU_E_USAGE if the vocabulary has none. NULL: the first of these that is a
     * special token: <|endoftext|> <|end_of_text|> </s> <｜end▁of▁sentence｜> <eos> [EOS]
     * <|eos|> <|im_end|>. BOS likewise: <|begin_of_text|> <s> <｜begin▁of▁sentence｜>
     * <bos> [BOS] <|startoftext|>; padding: <|pad|> <pad> [PAD] <|padding|>
     * <|finetune_right_pad_id|>, else EOS. */
    const char *eos;
    /* A folder of compiled vocabularies (token/compiled.h), which need not be built
     * each time; it and at most one folder above it are made if missing. NULL: none.
     * Results never depend on it, and problems with it are not errors:
     * slu_tokenizer_note has them. */
    const char *cache_dir;
};

/* Loads a tokenizer. Caller frees with slu_tokenizer_free. Errors: SLU_E_IO,
 * SLU_E_FORMAT, SLU_E_UNSUPPORTED, SLU_E_USAGE (unknown spec, pattern or eos),
 * SLU_E_NOMEM. */
SLU_MUST_USE int slu_tokenizer_load(struct slu_tokenizer **t,
                                    const struct slu_tokenizer_cfg *cfg,
                                    struct slu_err *err);
/* NULL is legal. Free all encoders of the tokenizer first. */
void slu_tokenizer_free(struct slu_tokenizer *t);

/* Returns the table id -> bytes, borrowed until free. Its n is
 * slu_tokenizer_vocab_size(). */
const struct slu_vocab_table *slu_tokenizer_vocab(const struct slu_tokenizer *t);
/* Returns the largest id + 1. */
uint64_t slu_tokenizer_vocab_size(const struct slu_tokenizer *t);
/* Return the id; SLU_NO_TOKEN: there is none. Without a padding token, pad is eos. */
uint64_t slu_tokenizer_eos(const struct slu_tokenizer *t);
uint64_t slu_tokenizer_bos(const struct slu_tokenizer *t);
uint64_t slu_tokenizer_pad(const struct slu_tokenizer *t);
/* Finds the least id of a special token, or of EOS, that ordinary text can become
 * although special tokens are not matched (special_parse): by merges that make it, by
 * "ignore_merges", or as an added token that is not special, as in the reference.
 * SLU_NO_TOKEN if their own texts, alone or between letters, spaces, line ends or
 * points, become other ids. */
SLU_MUST_USE int slu_tokenizer_leak(const struct slu_tokenizer *t, uint64_t *id,
                                    struct slu_err *err);
/* Returns 16 bytes: XXH3-128 (low half first, little-endian) of all that decides the
 * ids: id -> bytes, the merges that are used, normalizer, pre-tokenizer and added
 * tokens. Whether special tokens match is not part of it: streams made either way can
 * be joined. */
const uint8_t *slu_tokenizer_fingerprint(const struct slu_tokenizer *t);
/* Returns the family that the tokenizer's split is known by: gpt2, o200k, llama3/cl100k,
 * qwen2, tekken, ... (pre.h); "sentencepiece"; "bytes"; "other" if the split is not a
 * known one. Static. */
const char *slu_tokenizer_family(const struct slu_tokenizer *t);
/* Whether the vocabulary was read from cfg.cache_dir, compiled. */
bool slu_tokenizer_was_compiled(const struct slu_tokenizer *t);
/* Returns what was wrong with cfg.cache_dir, one line, or "". Borrowed until free. */
const char *slu_tokenizer_note(const struct slu_tokenizer *t);
/* Sets the SIMD level of encoders that are made from now on: portable, avx2, avx512 or
 * neon; NULL: the best. If the processor does not have it, returns false and sets the
 * best. Ids do not depend on it. For tests; call it before there are other threads. */
bool slu_tokenizer_simd(const char *level);
/* Returns the version of the character classes, "16.0.0"; static. */
const char *slu_tokenizer_unicode(void);

/* A growable array of ids. Zero it before use; release frees. */
struct slu_ids {
    uint32_t *id;
    size_t n, cap;
};
void slu_ids_release(struct slu_ids *ids);

/* Makes an encoder. cache_byte limits the memory of the word cache, which grows with
 * the text; text in many languages uses about 160 MiB. 0, or too little for the
 * smallest tables (a little over 1 MiB): no cache. The tokenizer must outlive the
 * encoder. Caller frees with slu_encoder_free. */
SLU_MUST_USE int slu_encoder_new(struct slu_encoder **e, const struct slu_tokenizer *t,
                                 uint64_t cache_byte, struct slu_err *err);
/* Makes an encoder for another thread with the tokenizer and the word cache of `with`,
 * to which all of them add. Caller frees with slu_encoder_free, in any order. */
SLU_MUST_USE int slu_encoder_new_sharing(struct slu_encoder **e,
                                         struct slu_encoder *with, struct slu_err *err);
void slu_encoder_free(struct slu_encoder *e);
/* Returns how often, in all texts so far, text was that of a special token and was
 * encoded as ordinary text (not special_parse); *id: the least of these tokens, or
 * SLU_NO_TOKEN. */
uint64_t slu_encoder_ordinary(const struct slu_encoder *e, uint64_t *id);

/* Appends the ids of one whole document to *ids; no BOS, no EOS. The text need not end
 * in a NUL. Text that is not valid UTF-8 is SLU_E_FORMAT with the byte's offset, except
 * with "bytes", which accepts any bytes. After an error *ids is unchanged. Time is
 * linear in n_byte for any text. */
SLU_MUST_USE int slu_encode(struct slu_encoder *e, const char *utf8, size_t n_byte,
                            struct slu_ids *ids, struct slu_err *err);
/* As slu_encode, for text that is known to be valid UTF-8 and is not checked again. */
SLU_MUST_USE int slu_encode_valid(struct slu_encoder *e, const char *utf8,
                                  size_t n_byte, struct slu_ids *ids,
                                  struct slu_err *err);

/* Texts, one after another. bos and eos are put before and after the ids of each text
 * (SLU_NO_TOKEN: none), unless it has no ids. */
struct slu_texts {
    const char *utf8;
    const size_t *end; /* of each text */
    size_t n;
    uint64_t bos, eos;
};
/* As slu_encode_valid for each, but short texts are encoded together, which is faster.
 * end[i]: where the ids of text i end in *ids. After an error *ids is unchanged. */
SLU_MUST_USE int slu_encode_texts(struct slu_encoder *e, const struct slu_texts *t,
                                  struct slu_ids *ids, size_t *end,
                                  struct slu_err *err);

/* Returns the first place in [from, to) at which the text (n_byte bytes of valid UTF-8;
 * with "bytes", any) can be cut so that the ids of the parts, one after another, are
 * those of the whole; SIZE_MAX: none. A text can be cut at several such places at once,
 * and each part again. More text may follow the n_byte bytes if `to` is at most n_byte
 * - 3. Some tokenizers have no such places in any text, others none in texts without
 * white space. Linear in to - from. In invalid text the place cannot be relied on; at
 * most 3 bytes after it are read. */
size_t slu_tokenizer_cut(const struct slu_tokenizer *t, const char *utf8, size_t n_byte,
                         size_t from, size_t to);

SLU_END_DECLS

#endif
