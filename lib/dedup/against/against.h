/* against.h - decontamination: an index of evaluation items' n-grams, and documents that
 * share one with an item.
 *
 * An item is a sequence of the streams that an index is made from. It has the distinct
 * n-grams of its words (ngrams_text.h, the whole sequence as one text); an item of
 * fewer than n words has one, of all its words; one of fewer than min_words has none.
 * A document matches an item if n-grams of its words in a row are among the item's: of
 * n words, and of as many words as the index's shorter items have. The table is exact,
 * but for 64-bit hashes that collide: m different n-grams of training text against an
 * index of k make m k / 2^64 false matches on average (10^12 against 10^7: one in two).
 *
 * With words as units an index serves streams of any tokenizer; with tokens only those
 * of its own.
 *
 * Memory: while an index is made 16 bytes for each (item, n-gram), twice over as the
 * array grows; in use 19 bytes for each n-gram, with a Bloom filter that answers for
 * most of what is not there, 8 for each (item, n-gram) and 104 for each item. What does
 * not fit is SLU_E_LIMIT.
 *
 * Thread safety: one thread at a time on a handle, but slu_against_find, which is safe
 * from any thread with a scratch of its own.
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
    uint64_t n, min_words; /* n from 1; min_words 0 is 1 */
    uint64_t budget_byte;
};

struct slu_against_out;

SLU_MUST_USE int slu_against_create(struct slu_against_out **o,
                                    const struct slu_against_cfg *cfg,
                                    struct slu_err *err);
/* The next item, sequence q of b, and its words. names: where its source and domain
 * are. */
SLU_MUST_USE int slu_against_add(struct slu_against_out *o, const struct slu_batch *b,
                                 const struct slu_seq *q, const uint64_t *word,
                                 size_t n_word, struct slu_names *names,
                                 struct slu_err *err);
/* Items so far, and those that have n-grams. */
uint64_t slu_against_items(const struct slu_against_out *o, uint64_t *with_ngrams);
/* Writes the file, whole or not at all; fingerprint: of the stream's tokenizer. Frees o
 * even when it fails. */
SLU_MUST_USE int slu_against_close(struct slu_against_out *o, const char *path,
                                   const uint8_t fingerprint[16], struct slu_err *err);
/* NULL is legal. */
void slu_against_abort(struct slu_against_out *o);

/* ---- using one ---- */

struct slu_against;

/* Whether an index file is one of n-grams: its parameters say so. */
bool slu_against_is(const struct slu_workfile *f);
/* Reads all of f, which stays the caller's. fingerprint: of the stream that will be
 * compared; SLU_E_MISMATCH where tokens are the units and it is another. */
SLU_MUST_USE int slu_against_open(struct slu_against **c, struct slu_workfile *f,
                                  const uint8_t fingerprint[16], uint64_t budget_byte,
                                  struct slu_err *err);
void slu_against_free(struct slu_against *c);
enum slu_unit slu_against_unit(const struct slu_against *c);
uint64_t slu_against_n_gram(const struct slu_against *c);
uint64_t slu_against_n_item(const struct slu_against *c);

/* An n-gram of a text that the index has. */
struct slu_against_match {
    uint64_t gram;         /* its number in the index */
    uint64_t word, n_word; /* where in the text */
};
/* Zero before use; release frees. */
struct slu_against_scratch {
    struct slu_buf gram, hit;
};
void slu_against_scratch_release(struct slu_against_scratch *s);
/* Appends what matches of word[0 … n_word) to `match`, struct slu_against_match each. */
SLU_MUST_USE int slu_against_find(const struct slu_against *c, const uint64_t *word,
                                  size_t n_word, struct slu_against_scratch *s,
                                  struct slu_buf *match, struct slu_err *err);
/* Books a document's n matches: which items it touched. */
void slu_against_book(struct slu_against *c, const struct slu_against_match *m,
                      size_t n);

struct slu_against_item {
    struct slu_origin place;
    const char *source, *domain,
        *id;                         /* borrowed, not terminated; domain, id may be 0 */
    size_t n_source, n_domain, n_id; /* bytes */
    uint64_t n_gram;                 /* distinct */
    uint64_t n_matched;              /* of them, by what was booked */
    uint64_t n_document;             /* that matched one or more */
};
/* Item i < slu_against_n_item, in the order of the index's stream. */
struct slu_against_item slu_against_item(const struct slu_against *c, uint64_t i);
/* Adds up what was booked, for slu_against_item: different n-grams, and items. Once. */
uint64_t slu_against_matched(struct slu_against *c, uint64_t *n_item);

/* ---- whole streams (against_run.c) ---- */

/* All of r into o, unchanged to emit. text: as for slu_ngrams_cfg. */
SLU_MUST_USE int
slu_against_build(struct slu_against_out *o, struct slu_reader *r,
                  const struct slu_shingler_cfg *text, unsigned n_threads,
                  unsigned n_slots,
                  int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err),
                  void *ctx, struct slu_sum *total, struct slu_err *err);

struct slu_against_run {
    struct slu_shingler_cfg text; /* n is ignored, unit must be the index's */
    /* false: documents that match go. true: of them the paragraphs (ngrams_text.h) that
     * have a word of a match, or one within `window` words of it; of a document of
     * which nothing stays that has a word, all. */
    bool cut;
    uint64_t window;
    unsigned n_threads, n_slots;
    /* As in slu_ngrams_cfg. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    void *ctx;

    /* Results. */
    struct slu_count documents, paragraphs; /* dropped whole; out of others */
    uint64_t n_match;                       /* documents that matched */
    uint64_t n_paragraph;                   /* dropped out of others */
};
/* All of r through c. */
SLU_MUST_USE int slu_against_filter(struct slu_against *c, struct slu_reader *r,
                                    struct slu_against_run *run, struct slu_sum *total,
                                    struct slu_err *err);

SLU_END_DECLS

#endif
