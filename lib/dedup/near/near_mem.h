/* near_mem.h - near duplicates in memory: decides each document when it comes.
 *
 * The decisions are those of near.h for documents in stream order. The memory holds,
 * for the documents decided so far: the hash of each distinct set (20 to 40 bytes); for
 * each band a table from key to the number of distinct documents and the kept ones
 * among the first band_cap (16 bytes for a key, half to three quarters full); and the
 * sets of kept documents (8 bytes for a hash). Memory is mapped in pieces and counted
 * before it is mapped; if a document does not fit, the answer is FULL and nothing has
 * changed.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_DEDUP_NEAR_MEM_H
#define SLU_DEDUP_NEAR_MEM_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/dedup/origin.h"

SLU_BEGIN_DECLS

struct slu_near_mem;

struct slu_near_mem_cfg {
    uint64_t budget_byte;
    unsigned n_band;
    uint64_t num, den; /* threshold, see slu_sets_need */
    uint64_t band_cap; /* at least 1 */
    bool verify;       /* false: every candidate is an edge */
    bool details;      /* store the positions and similarities of dropped documents */
};

/* A document to decide. All pointers are borrowed. */
struct slu_near_item {
    uint64_t ordinal;
    struct slu_origin origin;
    struct slu_u128 set_hash;
    const uint64_t *key; /* n_band */
    const uint64_t *set; /* ascending, distinct */
    uint64_t n_set;      /* 0: the document is kept, and compared with no other */
    bool fixed;          /* the document is kept whatever its similarities */
};

enum slu_near_answer { SLU_NEAR_KEPT, SLU_NEAR_DROPPED, SLU_NEAR_FULL };

struct slu_near_verdict {
    enum slu_near_answer answer;
    bool equal;
    /* If dropped, and with details: */
    struct slu_origin witness;
    uint64_t inter, uni;
};

struct slu_near_mem_stats {
    uint64_t equal_sets;       /* documents dropped for an equal set */
    uint64_t candidates;       /* pairs with a kept document, each once */
    uint64_t verified;         /* candidates that were similar enough */
    uint64_t refused;          /* candidates that were not similar enough */
    uint64_t capped_documents; /* documents after the first band_cap of a group */
};

SLU_MUST_USE int slu_near_mem_new(struct slu_near_mem **m,
                                  const struct slu_near_mem_cfg *cfg,
                                  struct slu_err *err);
/* NULL is legal. */
void slu_near_mem_free(struct slu_near_mem *m);

/* Prefetches the memory that the decision reads first. */
void slu_near_mem_prefetch(const struct slu_near_mem *m, const struct slu_near_item *d);
/* Decides d. After FULL was returned once, only documents with the set of an earlier
 * one can still be decided. */
SLU_MUST_USE int slu_near_mem_put(struct slu_near_mem *m, const struct slu_near_item *d,
                                  struct slu_near_verdict *v, struct slu_err *err);
const struct slu_near_mem_stats *slu_near_mem_stats(const struct slu_near_mem *m);
/* The largest number of bytes held so far. */
uint64_t slu_near_mem_peak(const struct slu_near_mem *m);

/* ---- hand-over to an engine that goes on elsewhere ---- */

struct slu_near_mem_sink {
    /* Receives a kept document, in stream order. */
    int (*kept)(void *ctx, uint64_t ordinal, const uint64_t *set, uint64_t n_set,
                struct slu_err *err);
    /* Receives a group of n_doc distinct documents. Of its first band_cap, n_kept were
     * kept; they are named by ordinal, ascending. */
    int (*group)(void *ctx, unsigned band, uint64_t key, uint64_t n_doc,
                 const uint64_t *kept, size_t n_kept, struct slu_err *err);
    void *ctx;
};
/* Passes all data to the sink, and frees it. Afterwards slu_near_mem_put still decides
 * documents with a known set, and returns FULL for others; slu_near_mem_kept still
 * works. */
SLU_MUST_USE int slu_near_mem_hand_over(struct slu_near_mem *m,
                                        const struct slu_near_mem_sink *sink,
                                        struct slu_err *err);
/* With details: the number of kept documents (without empty ones), and the ordinal and
 * position of number i in stream order. */
uint64_t slu_near_mem_n_kept(const struct slu_near_mem *m);
void slu_near_mem_kept(const struct slu_near_mem *m, uint64_t i, uint64_t *ordinal,
                       struct slu_origin *origin);
/* Bytes that remain after slu_near_mem_forget_sets. */
uint64_t slu_near_mem_left(const struct slu_near_mem *m);
/* Frees the data that decides equal sets. */
void slu_near_mem_forget_sets(struct slu_near_mem *m);

SLU_END_DECLS

#endif
