/* near.h - near duplicates in one pass: MinHash, bands, and every removal checked.
 *
 * A document here is a sequence; its set is that of its n-grams' hashes (shingle.h); J
 * is the Jaccard similarity of two sets. Documents have an order: their place in the
 * stream (`keep` may put another one first). The decisions (DESIGN.md, Deduplication):
 *  1. Of documents with equal sets (twins) the first stands for all. A later one is
 *     dropped; its witness is the first if that is kept, else the first's witness.
 *  2. A group is the first twins with one (band, key), in order. k before d are
 *     candidates if they are in a group together and k is among its first band_cap,
 *     counted over kept and dropped ones. A document that is behind them in a group is
 *     counted in capped_documents.
 *  3. A candidate pair with J >= threshold is an edge (without verification: each is).
 *     J is compared in integers, the threshold is an exact fraction.
 *  4. In order: d is dropped if a kept k has an edge to d; the smallest such k is its
 *     witness.
 * So what is kept depends on the order alone, not on threads, memory or temporary
 * files. A document without words has an empty set and is always kept. Sets are told
 * apart by 128-bit hashes, bands by 64-bit ones, n-grams by 64-bit ones.
 *
 * MinHash and banding: Broder 1997; Leskovec, Rajaraman and Ullman, "Mining of Massive
 * Datasets", 3.3-3.4. The check of each candidate makes the bands a filter only.
 *
 * Workers make sets, signatures and keys in parallel; decisions are serial, in order,
 * in memory (near_mem.h) while that suffices. Past the budget the rest is a flow
 * (lib/flow/flow.h), in one process or in parts, each in a process of its own, on any
 * machine that sees the same work folder:
 *   sign     part I of N reads its stream: the set and the bands of each sequence. In
 *            one process memory decides what it can here; from the sequence on for
 *            which it has no room, the stages below decide, and what was kept before
 *            is told to them as fixed
 *   group    range J of R of the bands, of all parts: who is a pair with whom
 *   verify   part I: its documents' pairs against the sets
 *   cluster  one job: who is dropped, and for whom
 *   index    one job, if asked for: what is kept, for later runs (index.h)
 *   filter   part I reads its stream again, or what waited, and leaves them out
 * Documents of an index come first, with part 0's.
 *
 * The answer is the same, whatever the parts, ranges and memory. Work is linear in
 * sets, bands and pairs; sets of the candidates' k are read once for each run of d's
 * whose sets fill a share of the budget. Cluster takes one bit a document.
 *
 * Thread safety: one thread at a time on a handle, slu_near_run's own threads apart.
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
    uint64_t audit; /* documents to sample, 0: no audit */

    uint64_t budget_byte;    /* for everything but the batches in flight */
    uint64_t max_tok;        /* longer sequences are SLU_E_LIMIT; 0: no limit */
    uint64_t most_in_memory; /* hand over behind so many documents; 0: when full */
    const char *tmpdir;      /* borrowed */
    unsigned n_threads;
    /* NULL: the first in the stream is kept. Else a document's priority, below
     * UINT64_MAX: lower ones come first, of equal ones the earlier; then nothing is
     * decided before the end of the stream. Serial. */
    uint64_t (*prio)(void *ctx, const struct slu_batch *b, const struct slu_seq *q);
    /* Takes the sequences that stay, in stream order; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    /* Takes what was dropped and for what, in stream order; NULL: not wanted. */
    int (*pair)(void *ctx, const struct slu_near_pair *p, struct slu_err *err);
    /* Before the stream: calls slu_near_known for the documents of an index; or NULL.
     */
    int (*known)(void *ctx, struct slu_near *x, struct slu_err *err);
    /* For tests: a struct slu_near_item for each sequence to the end of `out`, in place
     * of what their tokens say. */
    int (*items)(void *ctx, const struct slu_batch *b, struct slu_buf *out,
                 struct slu_err *err);
    void *ctx;
    /* In parts: what prio is called; the index that all are compared with, and the one
     * that stage index writes, or NULL; borrowed. open: before the first emit. */
    const char *keep, *against, *save_index;
    int (*open)(void *ctx, struct slu_err *err);
};

struct slu_near_result {
    struct slu_count dropped;
    uint64_t documents;        /* that came */
    uint64_t empty;            /* without a word: kept, compared with nothing */
    uint64_t twins;            /* dropped for an equal set */
    uint64_t candidates;       /* pairs looked at, each once */
    uint64_t verified;         /* of them: checked and found similar enough */
    uint64_t refused;          /* of them: checked and not */
    uint64_t capped_documents; /* see 2. above */
    uint64_t waited;           /* sequences that memory could not decide */
    uint64_t edges, to_drop;   /* past memory: pairs, and documents that go for them */
    uint64_t spilled_byte;
    uint64_t memory_byte; /* the most that the tables and sets took */
    uint64_t indexed;     /* documents that stage index wrote */
};

SLU_MUST_USE int slu_near_new(struct slu_near **x, const struct slu_near_cfg *cfg,
                              struct slu_err *err);
/* A document of an index, with which all are compared and which is kept; `number` is
 * what pairs name it by (slu_origin_of_index). d's ordinal and place are filled in. */
SLU_MUST_USE int slu_near_known(struct slu_near *x, struct slu_near_item *d,
                                uint64_t number, struct slu_err *err);
const struct slu_near_result *slu_near_result(struct slu_near *x);
/* NULL without an audit. */
const struct slu_near_audit *slu_near_audit(const struct slu_near *x);
void slu_near_free(struct slu_near *x);

/* The whole of r through x, with n_slots batches in flight; once. Words need the
 * stream's vocabulary: SLU_E_MISMATCH where it has none. */
SLU_MUST_USE int slu_near_run(struct slu_near *x, struct slu_reader *r,
                              unsigned n_slots, struct slu_sum *total,
                              struct slu_err *err);

SLU_END_DECLS

#endif
