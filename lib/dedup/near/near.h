/* near.h - near duplicates in one pass: MinHash, bands, and every removal checked.
 *
 * A document here is a sequence; its set has the hashes of its n-grams (shingle.h); J
 * is the Jaccard similarity of two sets. The order of documents is their order in the
 * stream (`prio` may define another). The decisions (DESIGN.md, Deduplication):
 *  1. Of documents with equal sets the first represents all. A later one is
 *     dropped; its witness is the first if the first is kept, else the first's witness.
 *  2. A group is all first documents that share one (band, key), in order. k and d, k
 *     before d, are candidates if they are in one group and k is among its first
 *     band_cap documents; kept and dropped documents count. A document that comes
 *     after the first band_cap of a group is counted in capped_documents.
 *  3. A candidate pair with J >= threshold is an edge (without verification, each
 *     candidate pair is). J is compared in integers, the threshold is an exact
 *     fraction.
 *  4. In order: d is dropped if a kept k has an edge to d; the smallest such k is its
 *     witness.
 * So the kept documents depend only on the order, not on threads, memory or temporary
 * files. A document without words has an empty set and is always kept: also
 * one of which no token is trained on, if only these count. Sets are
 * compared by 128-bit hashes, bands and n-grams by 64-bit hashes.
 *
 * MinHash and banding: Broder 1997; Leskovec, Rajaraman and Ullman, "Mining of Massive
 * Datasets", 3.3-3.4. The check of each candidate makes the bands a filter only.
 *
 * Workers make sets, signatures and keys in parallel. Decisions are serial, in order;
 * they are made in memory (near_mem.h) as long as the budget suffices. Beyond the
 * budget the work is a flow (lib/flow/flow.h): in one process, or in parts, each of
 * which may be a process on any machine that sees the same work folder:
 *   sign     part I of N reads its stream, and writes the set and the bands of each
 *            sequence. In one process, memory decides here until a sequence does not
 *            fit; the stages below decide this sequence and all later ones, and
 *            receive the documents kept before as fixed
 *   group    range J of R of the bands, of all parts: finds candidate pairs
 *   verify   part I: compares the sets of its documents' candidate pairs
 *   cluster  one job: decides which documents are dropped, and their witnesses
 *   index    one job, if asked for: writes the kept documents, for later runs (index.h)
 *   filter   part I reads its stream again, or the waiting sequences, and leaves
 *            dropped documents out
 * Documents of indexes come first, with part 0's.
 *
 * The result is the same for all parts, ranges and memory. The work is linear in sets,
 * bands and pairs; the sets of the candidates' k are read once for each run of d whose
 * sets fill a share of the budget. Cluster takes one bit for each document.
 *
 * Thread safety: one thread at a time on a handle; slu_near_run starts threads of its
 * own.
 */
#ifndef SLU_DEDUP_NEAR_H
#define SLU_DEDUP_NEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/dedup/near/near_audit.h"
#include "lib/dedup/near/near_mem.h"
#include "lib/dedup/near/shingle.h"
#include "lib/dedup/origin.h"
#include "lib/stream/account.h"
#include "lib/stream/batch.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

#define SLU_NEAR_MAX_BAND 16384
#define SLU_NEAR_MAX_CAP  (1 << 20)
#define SLU_NEAR_MIN_BYTE (UINT64_C(16) << 20) /* least budget_byte */

struct slu_near_pair {
    struct slu_origin dropped, kept;
    uint64_t inter, uni; /* similarity inter / uni; uni > 0 */
};

struct slu_near;

struct slu_near_cfg {
    unsigned n_band, n_row;
    unsigned n_gram;
    enum slu_unit unit;
    uint64_t seed;
    uint64_t num, den; /* threshold, 0 < num <= den <= 10^9 */
    uint64_t band_cap; /* at least 1 */
    bool verify;
    bool trained;   /* only the tokens that are trained on count */
    uint64_t audit; /* documents to sample, 0: no audit */

    uint64_t budget_byte;    /* for all data but the batches in flight */
    uint64_t max_tok;        /* longer sequences are SLU_E_LIMIT; 0: no limit */
    uint64_t most_in_memory; /* for tests: hand over after this many documents; 0:
                                when full */
    const char *tmpdir;      /* borrowed */
    unsigned n_threads;
    /* NULL: of similar documents the first in the stream is kept. Else returns a
     * document's priority, below UINT64_MAX: lower ones come first, and of equal ones
     * the earlier. Then nothing is decided before the end of the stream. One call at a
     * time. */
    uint64_t (*prio)(void *ctx, const struct slu_batch *b, const struct slu_seq *q);
    /* Takes the sequences that stay, in stream order; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    /* Called with each batch before anything is dropped of it; may be NULL. In one
     * process only. */
    int (*seen)(void *ctx, const struct slu_batch *b, struct slu_err *err);
    /* Takes each dropped sequence with the kept one, in stream order; NULL: not
     * wanted. */
    int (*pair)(void *ctx, const struct slu_near_pair *p, struct slu_err *err);
    /* Called before the stream is read; calls slu_near_known for the documents of
     * indexes. May be NULL. */
    int (*known)(void *ctx, struct slu_near *x, struct slu_err *err);
    /* For tests: appends a struct slu_near_item for each sequence to `out`; replaces
     * the items that would be made from the tokens. */
    int (*items)(void *ctx, const struct slu_batch *b, struct slu_buf *out,
                 struct slu_err *err);
    void *ctx;
    /* In parts, instead of `known` but in the stage sign: counts the documents of the
     * indexes, of which each stage has to know. May be NULL. */
    int (*count_known)(void *ctx, const struct slu_header *h, uint64_t *n,
                       struct slu_err *err);
    /* In parts: the index that the stage index writes, or NULL; borrowed. open: called
     * before the first emit. */
    const char *save_index;
    int (*open)(void *ctx, struct slu_err *err);
};

struct slu_near_result {
    struct slu_count dropped;
    uint64_t documents;        /* documents read */
    uint64_t empty;            /* without words: kept, and compared with no document */
    uint64_t equal_sets;       /* dropped for an equal set */
    uint64_t candidates;       /* pairs considered, each once */
    uint64_t verified;         /* candidates that were checked and similar enough */
    uint64_t refused;          /* candidates that were checked and not similar enough */
    uint64_t capped_documents; /* see point 2 above */
    uint64_t waited;           /* sequences that memory could not decide */
    uint64_t edges, to_drop;   /* beyond memory: pairs, and documents to drop */
    uint64_t spilled_byte;
    uint64_t memory_byte; /* largest memory of tables and sets */
    uint64_t indexed;     /* documents that the stage index wrote */
};

SLU_MUST_USE int slu_near_new(struct slu_near **x, const struct slu_near_cfg *cfg,
                              struct slu_err *err);
/* Adds a document of an index; it is kept, and all documents are compared with it.
 * Pairs name it by `number` (slu_origin_of_index). Fills in d's ordinal and
 * position. */
SLU_MUST_USE int slu_near_known(struct slu_near *x, struct slu_near_item *d,
                                uint64_t number, struct slu_err *err);
const struct slu_near_result *slu_near_result(struct slu_near *x);
/* NULL if no audit was asked for. */
const struct slu_near_audit *slu_near_audit(const struct slu_near *x);
void slu_near_free(struct slu_near *x);

/* Passes the whole of r through x, with n_slots batches in flight; call once.
 * SLU_E_MISMATCH if words are the units and the stream has no vocabulary. */
SLU_MUST_USE int slu_near_run(struct slu_near *x, struct slu_reader *r,
                              unsigned n_slots, struct slu_sum *total,
                              struct slu_err *err);

SLU_END_DECLS

#endif
