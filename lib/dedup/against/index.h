/* index.h - a file with the data by which documents are compared, to deduplicate
 * another data set against them.
 *
 * The file is a work file (workfile.h) of kind INDEX with one section. For each
 * document, in order, it has u64 n_set and the XXH3-128 of its set (low, high); then,
 * unless n_set is 0, its band keys and the n_set hashes of its set. For exact
 * duplicates n_set is 1, the hash is that of the tokens, and nothing follows. Counts: 0
 * documents, 1 hashes in all sets.
 *
 * Document i of an index is sequence i of the stream that was written with it. Sets of
 * words do not depend on the tokenizer, so an index of words serves streams of any
 * tokenizer; an index of ids or tokens serves only its own.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_DEDUP_INDEX_H
#define SLU_DEDUP_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/dedup/near/shingle.h"
#include "lib/stream/batch.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

struct slu_index_cfg {
    bool trained; /* only the tokens that are trained on count */
    bool exact;   /* all further fields are for near duplicates */
    unsigned n_band, n_row, n_gram;
    enum slu_unit unit;
    uint64_t seed;
};

/* ---- writing ---- */

struct slu_index_out;

/* h and names: of the stream that the batches belong to; names NULL: no batches are
 * put, only sets. The file gets its name when it is closed. */
SLU_MUST_USE int slu_index_create(struct slu_index_out **x, const char *path,
                                  const struct slu_index_cfg *cfg,
                                  const struct slu_header *h, struct slu_names *names,
                                  struct slu_err *err);
/* Makes the sets and keys of a batch's sequences, and adds them. */
SLU_MUST_USE int slu_index_put(struct slu_index_out *x, const struct slu_batch *b,
                               struct slu_err *err);
/* Adds a document of near duplicates by its set and the set's XXH3-128. */
SLU_MUST_USE int slu_index_put_set(struct slu_index_out *x, struct slu_u128 hash,
                                   const uint64_t *set, uint64_t n_set,
                                   struct slu_err *err);
/* Adds a document of exact duplicates by the hash of its tokens. */
SLU_MUST_USE int slu_index_put_hash(struct slu_index_out *x, struct slu_u128 hash,
                                    struct slu_err *err);
/* Frees x even on failure. NULL is legal for both functions. */
SLU_MUST_USE int slu_index_close(struct slu_index_out *x, struct slu_err *err);
void slu_index_abort(struct slu_index_out *x);

/* ---- reading ---- */

struct slu_index;

struct slu_index_doc {
    struct slu_u128 hash;
    uint64_t n_set;
    const uint64_t *key, *set; /* borrowed until the next call */
};

/* SLU_E_MISMATCH, naming the difference, if the index has other parameters; h as
 * above. */
SLU_MUST_USE int slu_index_open(struct slu_index **x, const char *path,
                                const struct slu_index_cfg *cfg,
                                const struct slu_header *h, struct slu_err *err);
uint64_t slu_index_documents(const struct slu_index *x);
/* Equal only for indexes with equal contents. */
struct slu_u128 slu_index_id(const struct slu_index *x);
/* Returns the next document; SLU_EOF after the last, when the checksum was found
 * right. */
SLU_MUST_USE int slu_index_next(struct slu_index *x, struct slu_index_doc *d,
                                struct slu_err *err);
/* NULL is legal. */
void slu_index_free(struct slu_index *x);

SLU_END_DECLS

#endif
