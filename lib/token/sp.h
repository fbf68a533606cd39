/* sp.h - SentencePiece's BPE: symbols are characters; characters without a token fall
 * back to bytes.
 *
 * Reference: the `tokenizers` library's BPE with byte_fallback, after a normalizer or a
 * pre-tokenizer that writes U+2581 for a space. It runs on the unchanged model of
 * bpe.h, by three devices:
 *
 *  - Characters are made by merges that come before all others, byte by byte: "e2 96"
 *    and "e2 96 81". None of these merges crosses the end of a character, so all
 *    characters of the vocabulary are made before the first merge of the file. Other
 *    characters remain as bytes and *parts*. A part is a token that exists only here:
 *    an id from n_vocab on, which becomes the ids of its bytes when a document is done.
 *    No merge of the file takes bytes or parts, as in the reference.
 *  - If U+2581 stands for a space everywhere, the opposite is done here: U+2581 in the
 *    vocabulary and in texts become spaces (*fold*). A word is as short as in other
 *    vocabularies, and most texts need no rewriting.
 *  - Nothing cuts the text, so it is cut where no merge can cross: between two bytes,
 *    or two characters outside ASCII, that are neighbours in no token (not *joined*).
 *    This is exact for any text, and gives words short enough for the cache: without
 *    the rule for characters, a line of Chinese would be one word.
 *
 * Thread safety: read-only once made.
 */
#ifndef SLU_TOK_SP_H
#define SLU_TOK_SP_H

#include "lib/token/tok.h"

#define SP_SPACE "\xe2\x96\x81" /* U+2581 */

#define SP_PAIRS (1u << 20)

enum { SP_NEVER, SP_FIRST, SP_ALWAYS }; /* when a space is put before a text */

/* Part of a compiled vocabulary. */
struct sp_cfg {
    uint8_t fold;    /* the pre-tokenizer is Metaspace: U+2581 become spaces */
    uint8_t prepend; /* SP_*: when a space is put before text without one */
    uint8_t split;   /* a pretoken begins at each space */
};

struct tok_sp {
    struct sp_cfg cfg;
    uint32_t n_vocab;
    /* A bit per byte that may follow without a cut between; likewise for pairs of
     * characters, by a hash of their bytes. */
    uint64_t joined[256][4];
    uint64_t pair[SP_PAIRS / 64];
};

/* Makes a tok_sp. table: the model's, in which the parts follow the n_vocab ids of the
 * vocabulary. Caller frees with free(). */
SLU_MUST_USE int sp_new(struct tok_sp **sp, const struct sp_cfg *cfg,
                        const struct tok_model *model,
                        const struct slu_vocab_table *table, uint32_t n_vocab,
                        struct slu_err *err);

/* Changes *p and *n to the text as the model sees it: unchanged, or the bytes of buf.
 * first: the text begins the document. */
SLU_MUST_USE int sp_prepare(const struct tok_sp *sp, struct slu_buf *buf, bool first,
                            const uint8_t **p, size_t *n, struct slu_err *err);

/* Finds the ends of the first pretokens of p (n >= 1 bytes), at most `max`. Returns how
 * many; 0 if the first pretoken ends after 2 GiB. */
size_t sp_pretokens(const struct tok_sp *sp, const uint8_t *p, size_t n, uint32_t *end,
                    size_t max);
/* Returns the end of the first pretoken. */
size_t sp_pretoken(const struct tok_sp *sp, const uint8_t *p, size_t n);

/* Replaces the parts among the ids from `first` on by ids of bytes. */
SLU_MUST_USE int sp_expand(const struct tok_sp *sp, const struct slu_tokenizer *t,
                           struct slu_ids *ids, size_t first, struct slu_err *err);

#endif
