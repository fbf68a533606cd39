/* added.h - added tokens: cut out of the text before anything else looks at it.
 *
 * As in Hugging Face's AddedVocabulary: leftmost-longest, first the tokens that are not
 * normalized on the raw text, then the normalized ones on what is between, normalised.
 * A special token that is not to match (the ordinary mode) still takes its place in the
 * search, so that no other token matches inside it.
 *
 * Thread safety: read-only once made.
 */
#ifndef SLU_TOK_ADDED_H
#define SLU_TOK_ADDED_H

#include "lib/token/tok.h"

struct added_token {
    uint64_t text_off; /* in bytes, in tok_added.text */
    uint32_t text_len, id;
    bool special, lstrip, rstrip, single_word, normalized;
};

struct added_node; /* of a trie */

struct tok_added {
    struct added_token *token;
    size_t n, cap;
    struct slu_buf text;
    struct added_trie {
        struct added_node *node;
        size_t n, cap;
        uint32_t root[256]; /* node by first byte, TOK_NONE */
        unsigned n_first;   /* different first bytes */
        uint8_t first;      /* the only one if n_first is 1 */
        bool only_special;
    } raw, normalized;
};

SLU_MUST_USE int added_new(struct tok_added **a, struct slu_err *err);
void added_free(struct tok_added *a);
/* text: as it is to be found (in normal form if `normalized`). text_off is ignored. */
SLU_MUST_USE int added_put(struct tok_added *a, struct added_token token,
                           const void *text, size_t len, struct slu_err *err);

/* One stretch of text: a token (id != TOK_NONE) or text between tokens. */
struct added_part {
    uint32_t id;
    size_t off, len; /* bytes */
};

struct added_iter {
    const struct tok_added *added;
    const struct added_trie *trie;
    bool parse_special;
    const uint8_t *p;
    size_t n, search, done;
    struct added_part pending;
    bool has_pending;
};
void added_iter_init(struct added_iter *it, const struct tok_added *a, bool normalized,
                     bool parse_special, const uint8_t *p, size_t n);
bool added_next(struct added_iter *it, struct added_part *part);

#endif
