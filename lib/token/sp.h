/* sp.h - SentencePiece's BPE: symbols are characters, what has none falls back to
 * bytes.
 *
 * Reference: the `tokenizers` library's BPE with byte_fallback, behind a normalizer or
 * a pre-tokenizer that writes U+2581 for a space. It runs on the model of bpe.h as it
 * is, by three devices:
 *
 *  - Characters are made by merges that come before all others, byte by byte: "e2 96"
 *    and "e2 96 81". None of them reaches over the end of a character, so all
 *    characters that the vocabulary has are there before the first merge of the file.
 *    What is left of others is a byte, or a *part*, a token that only exists here: an
 * id from n_vocab on, whose bytes become the ids of the bytes when a document is done.
 *    No merge of the file takes either, as in the reference.
 *  - Where U+2581 stands for a space everywhere, it is the other way round here: the
 *    vocabulary's U+2581 are spaces, and those of a text become spaces (*fold*). A word
 *    is as short as in other vocabularies, and most texts need no rewriting.
 *  - Nothing cuts the text, so it is cut where no merge can reach over: between two
 *    bytes, or two characters outside ASCII, that stand side by side in no token
 *    (*joined*). This is exact whatever the text, and gives words short enough for the
 *    cache: without the characters, a line of Chinese would be one.
 *
 * Thread safety: read-only once made.
 */
#ifndef SLU_TOK_SP_H
#define SLU_TOK_SP_H

#include "lib/token/tok.h"

#define SP_SPACE "\xe2\x96\x81" /* U+2581 */

#define SP_PAIRS (1u << 20)

enum { SP_NEVER, SP_FIRST, SP_ALWAYS }; /* when a space is put in front */

/* Part of a compiled vocabulary. */
struct sp_cfg {
    uint8_t fold;    /* the pre-tokenizer Metaspace: U+2581 become spaces */
    uint8_t prepend; /* and a space comes in front of text without one: SP_* */
    uint8_t split;   /* a piece begins at each space */
};

struct tok_sp {
    struct sp_cfg cfg;
    uint32_t n_vocab;
    uint64_t joined[256][4]; /* a bit a byte that may follow without a cut between */
    uint64_t
        pair[SP_PAIRS / 64]; /* likewise two characters, by a hash of their bytes */
};

/* table: the model's, with the parts behind the n_vocab ids of the vocabulary. Caller
 * frees with free(). */
SLU_MUST_USE int sp_new(struct tok_sp **sp, const struct sp_cfg *cfg,
                        const struct tok_model *model,
                        const struct slu_vocab_table *table, uint32_t n_vocab,
                        struct slu_err *err);

/* *p and *n become the text as the model sees it: themselves or the bytes of buf.
 * first: the text stands at the start of the document. */
SLU_MUST_USE int sp_prepare(const struct tok_sp *sp, struct slu_buf *buf, bool first,
                            const uint8_t **p, size_t *n, struct slu_err *err);

/* The ends of the first pieces of p (n >= 1 bytes), at most `max`; returns how many, 0
 * where the first piece ends behind 2 GiB. */
size_t sp_pieces(const struct tok_sp *sp, const uint8_t *p, size_t n, uint32_t *end,
                 size_t max);
/* The end of the first piece. */
size_t sp_piece(const struct tok_sp *sp, const uint8_t *p, size_t n);

/* Replaces the parts among the ids from `first` on by ids of bytes. */
SLU_MUST_USE int sp_expand(const struct tok_sp *sp, const struct slu_tokenizer *t,
                           struct slu_ids *ids, size_t first, struct slu_err *err);

#endif
