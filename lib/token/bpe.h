/* bpe.h - byte-level BPE as a search for the longest tokens that can stand side by
 * side.
 *
 * BPE of a text is decided by its pairs of neighbours. Two facts carry everything here;
 * they hold for any merge list or ranks, ties going to the leftmost pair:
 *
 *  1. Until a merge crosses the edges of a span of text, the merges inside do not
 *     depend on the text outside. So a token is always made by the same last merge, the
 *     one that BPE of its own bytes ends with. Of all merges in a file only these are
 *     ever used, and a token that BPE of its own bytes does not make is never made
 *     (*unreachable*).
 *  2. A row of reachable tokens is the BPE of its bytes if and only if every two
 *     neighbours are the BPE of their own bytes (*valid* pairs). So the BPE of a prefix
 *     of the text that can be continued is unique. To try the longest token first, to
 *     go back where nothing fits and never to try a place twice is exact and takes
 *     linear time.
 *
 * (The second is the idea of GitHub's bpe crate, "So many tokens, so little time",
 * 2024.)
 *
 * A pair is checked by undoing merges from the later to the earlier one. That needs
 * tokens in which every merge comes after those that made its halves, as trained
 * vocabularies have them; for a pair with another token (*odd*; Llama-3's
 * tokenizer.json has some) its BPE is run.
 *
 * A model numbers reachable tokens anew (*tok*): 0 to 255 are the bytes, then come the
 * others in the order of their merges. So a tok is a priority too, and frequent tokens
 * lie close together.
 *
 * Thread safety: a model is read-only once built.
 */
#ifndef SLU_TOK_BPE_H
#define SLU_TOK_BPE_H

#include <string.h>

#include "lib/token/tok.h"

#define BPE_MAX_ID   (UINT32_C(1) << 21)
#define BPE_MAX_NODE (UINT32_C(1) << 22)
#define BPE_MAX_LEN  4096 /* bytes of a model's token, at most */

/* One reachable token; 32 bytes, so that it is in one cache line. */
struct bpe_token {
    uint32_t left, right; /* toks of its merge; a byte: itself */
    /* The merges that take its first and its last byte, as toks. TOK_NONE for a byte,
     * not set if odd. */
    uint32_t first, last;
    /* Bits (tok & 31) of the toks that merge with it, before it and after it. */
    uint32_t before, behind;
    uint64_t shorter : 22; /* the longest tok that it starts with, or BPE_NONE */
    uint64_t id : 22;      /* BPE_NONE: the vocabulary cannot express this byte */
    uint64_t len : 13;     /* bytes */
    uint64_t odd : 1;      /* some merge in it comes before that of one of its halves */
};
#define BPE_NONE (BPE_MAX_NODE - 1)

/* The beginning of a model's image; the tables follow in the order of bpe_section, each
 * at a multiple of 64 bytes. Numbers are the host's: an image is a cache, not a format.
 */
#define BPE_MAGIC   UINT64_C(0x6567616d49455042) /* "BPEImage" */
#define BPE_VERSION 7                            /* changes with any table */
struct bpe_head {
    uint64_t magic, n_byte;
    uint32_t version, n_id, n_tok, n_node;
    uint32_t child_mask, pair_mask, whole_mask, might_mask, seam4_mask;
    uint32_t regular; /* from this tok on ids are consecutive */
    /* Unreachable tokens that a whole pretoken can become (`ignore_merges`, tiktoken). */
    uint32_t n_whole;
};

enum bpe_section {
    BPE_PAIR,
    BPE_TWO,
    BPE_MIGHT,
    BPE_ID_OF,
    BPE_SEAM,
    BPE_SEAM4,
    BPE_WHOLE,
    /* Two thirds of the bytes; only a search reads these, so they stay together. */
    BPE_TOKEN,
    BPE_CHILD,
    BPE_BEST,
    BPE_N_SECTION
};

/* The trie has a node for every second byte of a token. A node below n_tok is the tok
 * that ends there. A reference is node << 2, with BPE_EVEN if two more bytes lead to
 * another node, and BPE_ODD if one more byte makes a token. */
#define BPE_EVEN 1
#define BPE_ODD  2

struct tok_model {
    uint32_t n_id, n_tok;
    uint32_t child_mask, pair_mask;
    uint32_t n_whole;
    const struct bpe_token *token;
    const uint32_t *two; /* by two bytes, bpe_load16: reference or TOK_NONE */
    /* Open addressing: bpe_key() << 24 | reference; 0 is empty. */
    const uint64_t *child;
    const uint32_t *best; /* by node - n_tok: the longest tok that it starts with */
    /* Open addressing: left << 42 | right << 21 | result; 0 is empty. */
    const uint64_t *pair;
    /* A filter: two bits of a word for each pair of the table (bpe_might). */
    const uint64_t *might;
    unsigned might_shift; /* hash >> shift is the word */
    /* Ids by tok up to `regular`, from which on they are consecutive. */
    const uint32_t *id_of;
    uint32_t regular;
    /* Places that merges cross (bpe_cuts): by two bytes; bits by the hash of four. */
    const uint32_t *seam, *seam4;
    unsigned seam4_shift;   /* hash >> shift is the bit */
    struct tok_index whole; /* ids of n_whole tokens */
    const struct slu_vocab_table *table;
    const struct bpe_head *image;
    void *own; /* the image if bpe_build made it, else NULL */
};

struct bpe_merge {
    uint32_t left, right, result;
};

struct bpe_cfg {
    const struct slu_vocab_table *table; /* borrowed for the model's life */
    const uint8_t *in_model;             /* a bool per id */
    const struct bpe_merge *merge;       /* in order of priority; NULL: ids are ranks */
    size_t n_merge;
    bool whole_first; /* a pretoken with the bytes of a token becomes that token */
};

SLU_MUST_USE int bpe_build(struct tok_model **m, const struct bpe_cfg *cfg,
                           struct slu_err *err);
void bpe_free(struct tok_model *m);

/* Returns the model as one block without pointers, borrowed from it: all that encoding
 * needs besides the vocabulary. Its bytes depend on the bpe_cfg only. */
const void *bpe_image(const struct tok_model *m, size_t *n_byte);
/* Makes a model on such a block, which is at a multiple of 64 bytes. The block and its
 * vocabulary are borrowed for the model's life and never written. Checks sizes, not
 * contents: a file with an image needs a checksum. SLU_E_FORMAT if it is not an image,
 * or of another version or vocabulary. */
SLU_MUST_USE int bpe_attach(struct tok_model **m, const void *image, size_t n_byte,
                            const struct slu_vocab_table *table, struct slu_err *err);
/* Allocates memory for an image, in huge pages if they pay; NULL: out of memory. Caller
 * frees with free(). */
void *bpe_image_alloc(size_t n_byte);

/* Scratch of one thread. Zero before use. */
struct bpe_scratch {
    const struct bpe_merge_table *level; /* NULL: the portable one */
    bool is_part;   /* bpe_encode gets a part of a pretoken, not a whole one */
    size_t owed;    /* short pretokens that must pass until long ones can be merged */
    uint64_t *dead; /* a bit per place of the pretoken: no token fits there */
    size_t cap_dead;
    uint64_t *memo; /* BPE_MEMO slots: (pair + 1) << 1 | valid; made when needed */
};
#define BPE_MEMO (1 << 14)
void bpe_scratch_release(struct bpe_scratch *s);

/* Appends the ids of one pretoken (n >= 1 bytes). */
SLU_MUST_USE int bpe_encode(const struct tok_model *m, struct bpe_scratch *s,
                            const uint8_t *p, size_t n, struct slu_ids *ids,
                            struct slu_err *err);

/* A pretoken of n >= 1 bytes, and its n_id ids from ids->id[at] on. If n <= BPE_PADDED, 16
 * bytes can be read at p. */
struct bpe_pretoken {
    const uint8_t *p;
    uint32_t n, n_id;
    size_t at;
};
#define BPE_PADDED 15
#define BPE_MERGED 62 /* bytes of the longest pretoken that merge functions encode */
/* Appends the ids of many pretokens, in any order. */
SLU_MUST_USE int bpe_encode_many(const struct tok_model *m, struct bpe_scratch *s,
                                 struct bpe_pretoken *pretoken, size_t n,
                                 struct slu_ids *ids, struct slu_err *err);

/* Cuts a long pretoken where no merge ever crosses: its ids are those of the parts, each
 * by itself and not as a whole pretoken (bpe_is_whole). Writes the ends of the first
 * parts, counted from p, plus `add`; returns how many, 1 to max, max > 1. If the last
 * one is not n + add, there are more parts. add + n <= UINT32_MAX. */
size_t bpe_cuts(const struct tok_model *m, const uint8_t *p, size_t n, uint32_t add,
                uint32_t *end, size_t max);

/* Whether a pretoken becomes a token that merges do not make. */
bool bpe_is_whole(const struct tok_model *m, const uint8_t *p, size_t n);

/* Returns the merge functions of a SIMD level: "portable", "avx2", "avx512". Any
 * other name, and NULL, mean portable. */
const struct bpe_merge_table *bpe_merge_level(const char *level);

/* ---- shared by the files of bpe ---- */

/* Merges n pretokens of 1 to 15, 30 or 62 bytes and writes their ids to id, which has room
 * for 16 ids more than the pretokens have bytes. A pretoken's n_id is 0 if one of its bytes
 * has no id. Returns the number of ids. */
typedef size_t bpe_merge_fn(const struct tok_model *m,
                            struct bpe_pretoken *const *pretoken, size_t n,
                            uint32_t *id);
#define BPE_N_MERGE 3
#define BPE_LANES   128 /* most pretokens of the first size; then half and a quarter */
struct bpe_merge_table {
    const char *level;
    bpe_merge_fn *merge[BPE_N_MERGE];
};
extern const struct bpe_merge_table bpe_merge_portable, bpe_merge_avx2,
    bpe_merge_avx512;

struct bpe_span {
    size_t off, n_byte;
};
/* Computes where the tables are in an image with the counts and masks of h. Returns the
 * bytes of the image, or 0 if the counts are inconsistent. */
size_t bpe_layout(const struct bpe_head *h, struct bpe_span span[BPE_N_SECTION]);

struct bpe_trie {
    uint32_t *two, *best;
    uint64_t *child;
    uint32_t n_tok, n_node, child_mask, n_child;
    uint8_t *flags; /* by node: BPE_EVEN | BPE_ODD, while the trie is made */
    size_t cap_best, cap_flags;
};
/* Makes the trie of all toks, whose bytes are those of their ids; sets `shorter`. */
SLU_MUST_USE int bpe_trie_make(struct bpe_trie *x, const struct slu_vocab_table *table,
                               struct bpe_token *token, uint32_t n_tok,
                               struct slu_err *err);
void bpe_trie_release(struct bpe_trie *x);

static inline uint32_t bpe_mix(uint64_t key)
{
    key *= UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(key >> 32);
}

/* The filter of pairs: the hash of a pair's key, and from it the pair's bits in its
 * word. */
static inline uint64_t bpe_pair_hash(uint64_t key)
{
    return key * UINT64_C(0x9E3779B97F4A7C15);
}

static inline uint64_t bpe_might(uint64_t hash)
{
    return UINT64_C(1) << (hash >> 32 & 63) | UINT64_C(1) << (hash >> 38 & 63);
}

static inline uint32_t bpe_load16(const uint8_t *p)
{
    uint16_t v;

    memcpy(&v, p, 2);
    return v;
}

/* Returns the key of the step from a node by two bytes, or by one (odd). 40 bits. */
static inline uint64_t bpe_key(uint32_t node, bool odd, uint32_t bytes)
{
    return (uint64_t)node << 17 | (uint64_t)odd << 16 | bytes;
}

/* The tables of merges that cross a place. The bytes before it are .., a, b, those
 * after it c, d, ..; the first merge across it joins a token L that ends there and a
 * token R that begins there. The word of (b, c) has a bit if some L and R are both one
 * byte, a bit by a if L is longer and R one byte, and a bit by d if R is longer and L
 * one byte. If both are longer, the second table has a bit by all four bytes. */
static inline uint32_t bpe_seam_left(uint32_t a)
{
    return UINT32_C(1) << (16 + (a & 15));
}

static inline uint32_t bpe_seam_right(uint32_t d)
{
    return UINT32_C(1) << (8 + (d & 7));
}

static inline uint32_t bpe_seam4(const uint8_t *p, unsigned shift)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return v * UINT32_C(0x9E3779B1) >> shift;
}

/* Returns the id of a tok. Nearly all toks are above `regular` and read its entry. */
static inline uint32_t bpe_id_of(const struct tok_model *m, uint32_t tok)
{
    uint32_t i = tok < m->regular ? tok : m->regular;

    return m->id_of[i] + (tok - i);
}

/* Tables are in buckets. A slot is the key above value_bits bits of value, which is not
 * 0. An entry is in the bucket of its hash or, if that is full, in the next one. All
 * slots of a bucket are compared without a branch, as the right one cannot be
 * predicted. */
#define BPE_BUCKET 4
static inline uint64_t bpe_find(const uint64_t *table, uint32_t mask, uint64_t key,
                                unsigned value_bits)
{
    uint32_t i = bpe_mix(key) & mask & ~(uint32_t)(BPE_BUCKET - 1);

    for (;; i = (i + BPE_BUCKET) & mask) {
        const uint64_t *s = &table[i];
        uint64_t found = 0;
        for (unsigned k = 0; k < BPE_BUCKET; k++)
            found |= s[k] >> value_bits == key ? s[k] : 0;
        if (__builtin_expect(found || !s[BPE_BUCKET - 1], 1))
            return found & ((UINT64_C(1) << value_bits) - 1);
    }
}

static inline void bpe_put(uint64_t *table, uint32_t mask, uint64_t key,
                           unsigned value_bits, uint64_t value)
{
    uint32_t i = bpe_mix(key) & mask & ~(uint32_t)(BPE_BUCKET - 1);

    while (table[i])
        i = (i + 1) & mask;
    table[i] = key << value_bits | value;
}

/* Returns the reference that a step leads to, or 0. */
static inline uint32_t bpe_step(const uint64_t *child, uint32_t mask, uint64_t key)
{
    return (uint32_t)bpe_find(child, mask, key, 24);
}

#endif