/* against.h - decontamination: an index of the n-grams of evaluation items, and the
 * search for documents that share an n-gram with an item.
 *
 * An item is a sequence of the streams that an index is made from. It has the distinct
 * n-grams of its words (ngrams_text.h, the whole sequence as one text). An item of
 * fewer than n words has one n-gram, of all its words; an item of fewer than min_words
 * words has none. If more than half of an item's words are graphemes of scripts that
 * are written without spaces (shingle.h), min_words counts a thirteenth less, 12 for 13;
 * and if such an item has less than n words without the punctuation at its ends (words of
 * one character of it), these are its n-gram, or as many as min_words around them: texts
 * that quote it go on with other stops, or in other quotes.
 * A document matches an item if the item has one of the document's
 * n-grams: those of n consecutive words, and those of as many words as shorter items of
 * the index have. The table is exact, except for collisions of 64-bit hashes: m
 * different n-grams of training text against an index of k make m k / 2^64 false
 * matches on average (10^12 against 10^7: 0.5).
 *
 * With words as units an index serves streams of any tokenizer; with tokens only
 * streams of its own tokenizer.
 *
 * Memory: while an index is made, 16 bytes for each (item, n-gram), and twice as many
 * while the array grows. In use, 19 bytes for each n-gram, including a Bloom filter
 * that answers most lookups of other n-grams; 8 bytes for each (item, n-gram) and 104
 * for each item. An index that does not fit is SLU_E_LIMIT.
 *
 * Thread safety: one thread at a time on a handle, except for slu_against_find, which
 * any thread may call with its own scratch.
 */
#ifndef SLU_AGAINST_H
#define SLU_AGAINST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/dedup/near/shingle.h"
#include "lib/dedup/origin.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

struct slu_workfile;

/* ---- making an index ---- */

struct slu_against_cfg {
    enum slu_unit unit;
    uint64_t n, min_words; /* n at least 1; min_words 0 means 1 */
    uint64_t budget_byte;
};

struct slu_against_out;

SLU_MUST_USE int slu_against_create(struct slu_against_out **o,
                                    const struct slu_against_cfg *cfg,
                                    struct slu_err *err);
/* The words of an item, as slu_shingle finds them. */
struct slu_against_text {
    const uint64_t *word;
    size_t n_word, n_sign;
};
/* Adds an item, sequence q of b, with its words. names: the names of sources and
 * domains. */
SLU_MUST_USE int slu_against_add(struct slu_against_out *o, const struct slu_batch *b,
                                 const struct slu_seq *q,
                                 const struct slu_against_text *t,
                                 struct slu_names *names, struct slu_err *err);
/* Number of items so far, and of those that have n-grams. */
uint64_t slu_against_items(const struct slu_against_out *o, uint64_t *with_ngrams);
/* Writes the complete file; fingerprint: of the stream's tokenizer. Frees o even on
 * failure. */
SLU_MUST_USE int slu_against_close(struct slu_against_out *o, const char *path,
                                   const uint8_t fingerprint[16], struct slu_err *err);
/* NULL is legal. */
void slu_against_abort(struct slu_against_out *o);

/* ---- using one ---- */

struct slu_against;

/* Whether the parameters of an index file say that it is an index of n-grams. */
bool slu_against_is(const struct slu_workfile *f);
/* Reads all of f, which the caller still owns. fingerprint: of the stream to compare;
 * SLU_E_MISMATCH if tokens are the units and the fingerprint differs from the
 * index's. */
SLU_MUST_USE int slu_against_open(struct slu_against **c, struct slu_workfile *f,
                                  const uint8_t fingerprint[16], uint64_t budget_byte,
                                  struct slu_err *err);
void slu_against_free(struct slu_against *c);
enum slu_unit slu_against_unit(const struct slu_against *c);
uint64_t slu_against_n_gram(const struct slu_against *c);
uint64_t slu_against_n_item(const struct slu_against *c);

/* An n-gram of a text that is in the index. */
struct slu_against_match {
    uint64_t gram;         /* its number in the index */
    uint64_t word, n_word; /* position in the text */
};
/* Zero before use; release frees its memory. */
struct slu_against_scratch {
    struct slu_buf gram, hit;
};
void slu_against_scratch_release(struct slu_against_scratch *s);
/* Appends the matches in word[0 … n_word) to `match`, a struct slu_against_match for
 * each. */
SLU_MUST_USE int slu_against_find(const struct slu_against *c, const uint64_t *word,
                                  size_t n_word, struct slu_against_scratch *s,
                                  struct slu_buf *match, struct slu_err *err);
/* Counts a document's n matches for the items that they belong to. */
void slu_against_account(struct slu_against *c, const struct slu_against_match *m,
                         size_t n);

struct slu_against_item {
    struct slu_origin origin;
    const char *source, *domain, *id; /* borrowed, not terminated; domain and id may
                                        be empty */
    size_t n_source, n_domain, n_id;  /* in bytes */
    uint64_t n_gram;                  /* number of distinct n-grams */
    uint64_t n_matched;               /* n-grams that documents matched */
    uint64_t n_document;              /* documents that matched one or more n-grams */
};
/* Item i < slu_against_n_item, in the order of the index's stream. */
struct slu_against_item slu_against_item(const struct slu_against *c, uint64_t i);
/* Sums the counts for slu_against_item; returns the number of matched n-grams, and sets
 * the number of matched items. Call once. */
uint64_t slu_against_matched(struct slu_against *c, uint64_t *n_item);

/* ---- whole streams (against_run.c) ---- */

/* Adds all of r to o, and passes the unchanged stream to emit. text: as for
 * slu_ngrams_cfg. */
SLU_MUST_USE int
slu_against_build(struct slu_against_out *o, struct slu_reader *r,
                  const struct slu_shingler_cfg *text, unsigned n_threads,
                  unsigned n_slots,
                  int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err),
                  void *ctx, struct slu_sum *total, struct slu_err *err);

struct slu_against_run {
    struct slu_shingler_cfg text; /* n is ignored; unit must be that of the index */
    /* false: drops documents that match. true: drops paragraphs (ngrams_text.h) of such
     * documents that have a word of a match, or a word within `window` words of one;
     * drops the whole document if no remaining paragraph has a word. */
    bool cut;
    uint64_t window;
    unsigned n_threads, n_slots;
    /* As in slu_ngrams_cfg. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    void *ctx;

    /* Results. */
    struct slu_count documents, paragraphs; /* dropped whole documents; tokens
                                               dropped from the others */
    uint64_t n_match;                       /* documents that matched */
    uint64_t n_paragraph;                   /* paragraphs dropped from other
                                               documents */
};
/* Compares all of r with c. */
SLU_MUST_USE int slu_against_filter(struct slu_against *c, struct slu_reader *r,
                                    struct slu_against_run *run, struct slu_sum *total,
                                    struct slu_err *err);

SLU_END_DECLS

#endif
