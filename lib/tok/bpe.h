/* bpe.h - byte-level BPE as a search for the longest tokens that can stand side by
 * side.
 *
 * BPE of a text is decided by its pairs of neighbours. Two facts carry everything here;
 * they hold for any merge list or ranks, ties going to the leftmost pair:
 *
 *  1. What happens inside a span of text until something crosses its edges does not
 * depend on what is outside. So a token is always made by one and the same last merge,
 * the one that BPE of its own bytes ends with: of all merges in a file only these are
 * ever used, and a token that BPE of its own bytes does not arrive at is never made
 * (*unreachable*).
 *  2. A row of reachable tokens is the BPE of its bytes if and only if every two
 * neighbours are the BPE of their own bytes (*valid* pairs). So the BPE of a prefix of
 * the text that can be continued is unique, and trying the longest token first, going
 * back where nothing fits and never trying a place twice is exact and takes linear
 * time.
 *
 * (The second is the idea of GitHub's bpe crate, "So many tokens, so little time",
 * 2024.)
 *
 * A pair is checked by undoing merges from the later to the earlier one. That needs
 * tokens in which every merge comes after those that made its halves, as trained
 * vocabularies have them; for a pair with another token (*odd*; Llama-3's
 * tokenizer.json has some) its BPE is run.
 *
 * Thread safety: a model is read-only once built.
 */
#ifndef SLU_TOK_BPE_H
#define SLU_TOK_BPE_H

#include "lib/hash.h"
#include "lib/tok/tok.h"

#define BPE_MAX_ID  (UINT32_C(1) << 21) /* ids and trie nodes fit 21 and 24 bits */
#define BPE_MAX_LEN 4096                /* bytes a token of a model may have */

/* One reachable token; 16 bytes. */
struct bpe_token {
    uint32_t left, right; /* of its last merge; TOK_NONE for a byte */
    uint32_t prio;        /* of that merge, less is sooner; 0 for a byte */
    uint32_t shorter; /* the longest reachable token that it starts with, or TOK_NONE */
};

/* What a model's image begins with; the tables follow in the order of bpe_section, each
 * at a multiple of 64 bytes. Numbers are the host's: an image is a cache, not a format.
 */
#define BPE_MAGIC   UINT64_C(0x6567616d49455042) /* "BPEImage" */
#define BPE_VERSION 1                            /* changes with any table */
struct bpe_head {
    uint64_t magic, n_byte;
    uint32_t version, n_id;
    uint32_t child_mask, pair_mask, whole_mask;
    uint32_t n_whole;      /* unreachable tokens that a whole piece still becomes
                              (`ignore_merges`, tiktoken) */
    uint32_t byte_id[256]; /* TOK_NONE: the vocabulary cannot express this byte */
};

enum bpe_section {
    BPE_TOKEN,
    BPE_LEN,
    BPE_ODD,
    BPE_TWO,
    BPE_CHILD,
    BPE_PAIR,
    BPE_WHOLE,
    BPE_N_SECTION
};

struct tok_model {
    uint32_t n_id;
    uint32_t child_mask, pair_mask;
    uint32_t n_whole;
    const uint32_t *byte_id;
    const struct bpe_token *token;
    const uint16_t *len; /* bytes; 0: not reachable */
    const uint8_t *odd;  /* a bool an id: somewhere in it a merge comes before one of
                            its halves */
    const uint32_t *two; /* 65,536: trie node of the first two bytes */
    const uint64_t
        *child; /* open addressing: node << 32 | byte << 24 | child, 0 empty */
    const uint64_t
        *pair; /* open addressing: left << 42 | right << 21 | result; 0 empty */
    struct tok_index whole; /* ids of n_whole tokens */
    const struct slu_vocab_table *table;
    const struct bpe_head *image;
    void *own; /* the image, where bpe_build made it */
};

struct bpe_merge {
    uint32_t left, right, result;
};

struct bpe_cfg {
    const struct slu_vocab_table *table; /* borrowed for the model's life */
    const uint8_t *in_model;             /* a bool an id */
    const struct bpe_merge *merge;       /* in order of priority; NULL: ids are ranks */
    size_t n_merge;
    bool whole_first; /* a piece that is a token as it stands becomes that token */
};

SLU_MUST_USE int bpe_build(struct tok_model **m, const struct bpe_cfg *cfg,
                           struct slu_err *err);
void bpe_free(struct tok_model *m);

/* The model as one block without pointers, borrowed from it: all that encoding needs
 * besides the vocabulary. What it holds depends on the bpe_cfg only. */
const void *bpe_image(const struct tok_model *m, size_t *n_byte);
/* A model on such a block, which is at a multiple of 64 bytes and, like the vocabulary
 * it was made for, borrowed for the model's life and never written. Checks sizes, not
 * contents: whoever keeps an image in a file has its checksum. SLU_E_FORMAT where it is
 * no image, or another version's or vocabulary's. */
SLU_MUST_USE int bpe_attach(struct tok_model **m, const void *image, size_t n_byte,
                            const struct slu_vocab_table *table, struct slu_err *err);
/* Memory for an image, huge pages where they pay; NULL where there is none. Caller
 * frees with free(). */
void *bpe_image_alloc(size_t n_byte);

/* Scratch of one thread. Zero before use. */
struct bpe_scratch {
    uint64_t *dead; /* a bit a byte of the piece */
    size_t cap_dead;
    uint64_t *memo; /* BPE_MEMO slots: (pair + 1) << 1 | valid; made when needed */
};
#define BPE_MEMO (1 << 14)
void bpe_scratch_release(struct bpe_scratch *s);

/* Appends the ids of one piece (n >= 1 bytes). */
SLU_MUST_USE int bpe_encode(const struct tok_model *m, struct bpe_scratch *s,
                            const uint8_t *p, size_t n, struct slu_ids *ids,
                            struct slu_err *err);

/* ---- shared by the files of bpe ---- */

struct bpe_span {
    size_t off, n_byte;
};
/* Where the tables are in an image with the counts and masks of h. Returns the bytes of
 * all, or 0 where the counts make no sense. */
size_t bpe_layout(const struct bpe_head *h, struct bpe_span span[BPE_N_SECTION]);

static inline uint32_t bpe_mix(uint64_t key)
{
    key *= UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(key >> 32);
}

/* The token that left and right merge into, or TOK_NONE. */
static inline uint32_t bpe_pair(const struct tok_model *m, uint32_t left,
                                uint32_t right)
{
    uint64_t key = (uint64_t)left << 21 | right;

    for (uint32_t i = bpe_mix(key) & m->pair_mask;; i = (i + 1) & m->pair_mask) {
        uint64_t e = m->pair[i];
        if (e >> 21 == key && e)
            return (uint32_t)(e & (BPE_MAX_ID - 1));
        if (!e)
            return TOK_NONE;
    }
}

/* Child of a trie node by a byte, or TOK_NONE. Nodes below n_id are tokens. */
static inline uint32_t bpe_child(const uint64_t *child, uint32_t mask, uint32_t node,
                                 uint8_t byte)
{
    uint64_t key = (uint64_t)node << 8 | byte;

    for (uint32_t i = bpe_mix(key) & mask;; i = (i + 1) & mask) {
        uint64_t e = child[i];
        if (e >> 24 == key && e)
            return (uint32_t)(e & 0xFFFFFF);
        if (!e)
            return TOK_NONE;
    }
}

#endif
