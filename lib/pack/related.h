/* related.h - documents that belong together, in chains that go into bins whole.
 *
 * Structured packing (SPLiCe, arXiv 2312.17296) and in-context pretraining (arXiv
 * 2310.10638) put related documents into one context, found by BM25, by embeddings, or
 * by the repository that they are of. Here two documents are related where
 *   - they share minima of their n-grams (MinHash, dedup/minhash.h, bands of one row),
 *     SLU_RELATED_BANDS of them. A minimum that more than SLU_RELATED_CAP items have
 * says nothing of what they are about (licences, boilerplate) and does not count: what
 *     remains are rare n-grams that both have, which is what BM25 weighs most.
 *   - or their names are in one folder: the name is the record's id where it has a
 * slash, else, for the first record of a source, the source's. Items of a folder, in
 * order of arrival, are neighbours in runs of SLU_RELATED_CAP. A shared minimum counts
 * 1, the folder above 2, the folder itself 4.
 *
 * Chains: items in order of arrival; the next that is in no chain begins one, and
 * takes, one after another, the item in no chain that still fits and shares most with
 * those that the chain has (added up, ties by arrival), until none that fits shares
 * anything. A chain has the length of a bin at most. Chains are then packed as if they
 * were items, by any method but concatenation, so that all of a chain is in one bin.
 *
 * Long chains leave gaps that nothing fills. So while best fit of the chains needs more
 * than 1 / SLU_RELATED_LOSS bins more than their tokens, the chains of its emptiest
 * bins, four for each bin too many, are taken apart again; four times at most.
 *
 * O(items x keys x cap) steps at most. The result depends on items and their order
 * alone. Thread safety: a slu_relater is read-only once made; a slu_relater_scratch
 * belongs to one thread. Units: lengths in tokens.
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

/* Chosen by the folders of real files that come together where names are not known:
 * tests/bench/NOTES.md. */
#define SLU_RELATED_BANDS 32
#define SLU_RELATED_KEYS  (SLU_RELATED_BANDS + 2) /* of an item; the folders behind */
#define SLU_RELATED_CAP   64
#define SLU_RELATED_LOSS  1000

/* ---- what an item shares with others: related_keys.c ---- */

struct slu_relater;
struct slu_relater_scratch { /* zero before use */
    struct slu_hashes hashes;
};
void slu_relater_scratch_release(struct slu_relater_scratch *x);

/* n-grams of words where there is a vocabulary, of ids where there is none; it is
 * borrowed until slu_relater_new returns. */
SLU_MUST_USE int slu_relater_new(struct slu_relater **r, const struct slu_header *h,
                                 const struct slu_vocab_table *vocab,
                                 struct slu_err *err);
/* NULL is legal. */
void slu_relater_free(struct slu_relater *r);
/* key[0 … SLU_RELATED_KEYS) of a document; 0 is none. name: as above, n_name 0 without
 * one. */
SLU_MUST_USE int slu_relater_keys(const struct slu_relater *r,
                                  struct slu_relater_scratch *x, const void *tok,
                                  uint64_t n_tok, const char *name, size_t n_name,
                                  uint32_t *key, struct slu_err *err);

/* ---- chains: related.c ---- */

struct slu_chains {
    uint32_t *item;  /* all of them, chain by chain */
    uint32_t *first; /* n + 1: where in item a chain begins */
    uint32_t *len;   /* n: tokens */
    size_t n;
    uint64_t related;  /* items in chains of more than one */
    uint64_t loosened; /* chains that were taken apart */
    uint64_t capped;   /* minima that more than the cap share, not counted */
};

/* n items, less than 2^32, of len tokens each, 1 … capacity; key[i * SLU_RELATED_KEYS]
 * are those of item i. SLU_E_LIMIT where it takes more than budget_byte. Released with
 * slu_chains_release, also after a fault. */
SLU_MUST_USE int slu_related_chains(struct slu_chains *c, const uint32_t *key,
                                    const uint32_t *len, size_t n, uint64_t capacity,
                                    uint64_t budget_byte, struct slu_err *err);
void slu_chains_release(struct slu_chains *c);

SLU_END_DECLS

#endif
