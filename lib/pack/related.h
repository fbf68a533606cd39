/* related.h - chains of related documents; each chain goes into one bin as a whole.
 *
 * Structured packing (SPLiCe, arXiv 2312.17296) and in-context pretraining (arXiv
 * 2310.10638) put related documents into one context, found by BM25, by embeddings, or
 * by their repository. Here two documents are related if
 *   - they share minima of their n-grams (MinHash, lib/dedup/near/minhash.h, bands of
 *     one row), SLU_RELATED_BANDS per document. A minimum of more than SLU_RELATED_CAP
 *     items says nothing about their topic (licences, boilerplate) and does not count.
 *     What remains are rare n-grams of both, which BM25 weighs most.
 *   - or their names are in one folder. The name is the record's id if it has a slash,
 *     otherwise, for the first record of a source, the source's name. Items of a
 *     folder, in order of arrival, are neighbours in runs of SLU_RELATED_CAP.
 *
 * A shared minimum counts 1, the folder above 2, the folder itself 4.
 *
 * Chains: the first item, in order of arrival, that is in no chain begins one. The
 * chain then takes, one after another, the free item that fits and shares most with the
 * chain's items (summed; ties by arrival), until no item that fits shares anything. A
 * chain is at most as long as a bin. Chains are then packed as if they were items, by
 * any method but concatenation, so that all of a chain is in one bin.
 *
 * Long chains leave gaps that nothing fills. So as long as best fit of the chains needs
 * more than 1 / SLU_RELATED_LOSS bins more than their tokens, the chains of its
 * emptiest bins, four bins for each bin too many, are taken apart again; four times at
 * most.
 *
 * Takes at most O(items x keys x cap) steps. The result depends only on the items and
 * their order. Thread safety: a slu_relater is read-only once made; a
 * slu_relater_scratch belongs to one thread. Units: lengths in tokens.
 */
#ifndef SLU_RELATED_H
#define SLU_RELATED_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/dedup/near/shingle.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

/* Chosen so that files of one real folder come together without their names:
 * tests/bench/NOTES.md. */
#define SLU_RELATED_BANDS 32
#define SLU_RELATED_KEYS  (SLU_RELATED_BANDS + 2) /* per item; two folders last */
#define SLU_RELATED_CAP   64
#define SLU_RELATED_LOSS  1000

/* ---- keys of an item: related_keys.c ---- */

struct slu_relater;
struct slu_relater_scratch { /* zero before use */
    struct slu_hashes hashes;
};
void slu_relater_scratch_release(struct slu_relater_scratch *x);

/* With a vocabulary the n-grams are of words, without of ids. vocab is borrowed until
 * slu_relater_new returns. */
SLU_MUST_USE int slu_relater_new(struct slu_relater **r, const struct slu_header *h,
                                 const struct slu_vocab_table *vocab,
                                 struct slu_err *err);
/* NULL is legal. */
void slu_relater_free(struct slu_relater *r);
/* Fills key[0 … SLU_RELATED_KEYS) of a document. 0: no key. name: see above; n_name is
 * 0 if there is none. */
SLU_MUST_USE int slu_relater_keys(const struct slu_relater *r,
                                  struct slu_relater_scratch *x, const void *tok,
                                  uint64_t n_tok, const char *name, size_t n_name,
                                  uint32_t *key, struct slu_err *err);

/* ---- chains: related.c ---- */

struct slu_chains {
    uint32_t *item;  /* all items, chain by chain */
    uint32_t *first; /* n + 1: index in item where a chain begins */
    uint32_t *len;   /* n: tokens */
    size_t n;
    uint64_t related;  /* items in chains of several */
    uint64_t loosened; /* chains that were taken apart */
    uint64_t capped;   /* minima of more than SLU_RELATED_CAP items, ignored */
};

/* Makes the chains of n items, fewer than 2^32, of 1 … capacity tokens each; key[i *
 * SLU_RELATED_KEYS] begins the keys of item i. SLU_E_LIMIT if this takes more than
 * budget_byte. Release with slu_chains_release, also after an error. */
SLU_MUST_USE int slu_related_chains(struct slu_chains *c, const uint32_t *key,
                                    const uint32_t *len, size_t n, uint64_t capacity,
                                    uint64_t budget_byte, struct slu_err *err);
void slu_chains_release(struct slu_chains *c);

SLU_END_DECLS

#endif
