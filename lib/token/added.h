/* added.h - added tokens, which are cut out of the text before all other steps.
 *
 * As in Hugging Face's AddedVocabulary: leftmost-longest; first the tokens that are not
 * normalized, on the raw text, then the normalized ones, on the normalized text between
 * those. A special token that must not match (the ordinary mode) still takes its place
 * in the search, so that no other token matches inside it.
 *
 * Thread safety: read-only once made.
 */
#ifndef SLU_TOK_ADDED_H
#define SLU_TOK_ADDED_H

#include "lib/token/tok.h"

struct added_token {
    uint64_t text_off; /* byte offset in tok_added.text */
    uint32_t text_len, id;
    bool special, lstrip, rstrip, single_word, normalized;
};

struct added_node; /* of a trie */

/* Up to so many different first bytes are searched for each by itself, with SIMD. */
enum { ADDED_FIRST = 2 };

struct tok_added {
    struct added_token *token;
    size_t n, cap;
    struct slu_buf text;
    struct added_trie {
        struct added_node *node;
        size_t n, cap;
        uint32_t root[256];         /* node by first byte; TOK_NONE: none */
        unsigned n_first;           /* different first bytes */
        uint8_t first[ADDED_FIRST]; /* the first of these */
    } raw, normalized;
};

SLU_MUST_USE int added_new(struct tok_added **a, struct slu_err *err);
void added_free(struct tok_added *a);
/* Adds a token. text: as it must match (in normal form if `normalized`); token's
 * text_off and text_len are ignored. */
SLU_MUST_USE int added_put(struct tok_added *a, struct added_token token,
                           const void *text, size_t len, struct slu_err *err);

/* A part of a text: a token (id != TOK_NONE), or text between tokens. */
struct added_part {
    uint32_t id;
    size_t off, len; /* bytes */
};

/* `left` and `least`: special tokens that were found and must not match, so that their
 * text is ordinary text: their number, and the least id, TOK_NONE if there is none. */
struct added_iter {
    const struct tok_added *added;
    const struct added_trie *trie;
    bool parse_special;
    const uint8_t *p;
    size_t n, search, done;
    size_t next[ADDED_FIRST]; /* the next place of each first byte, unless it is before
                               * `search` */
    struct added_part pending;
    bool has_pending;
    uint64_t left;
    uint32_t least;
};
void added_iter_init(struct added_iter *it, const struct tok_added *a, bool normalized,
                     bool parse_special, const uint8_t *p, size_t n);
bool added_next(struct added_iter *it, struct added_part *part);

#endif
