/* near_wait.h - near duplicates past memory: sequences wait, near_ext.h decides.
 *
 * What memory has decided is handed over; every further document that memory has no
 * twin of goes to the external engine, its sequence to a waitlist, with what was
 * decided between. At the end the waitlist is read back in stream order, and what the
 * engine names is left out. Where pairs are wanted, the place of a witness is found by
 * sorting what is dropped by witness, beside the places of all documents in order.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_DEDUP_NEAR_WAIT_H
#define SLU_DEDUP_NEAR_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/stream/batch.h"
#include "lib/dedup/near_mem.h"
#include "lib/err.h"

struct slu_near_wait;

struct slu_near_wait_cfg {
    struct slu_near_mem *mem; /* borrowed; is told to hand over */
    uint64_t budget_byte;     /* all memory, that of mem included */
    uint64_t collect_byte;    /* of it, beside mem, while sequences come */
    const char *tmpdir;       /* borrowed */
    unsigned n_threads;
    unsigned tok_bytes;
    unsigned n_band;
    uint64_t num, den, band_cap;
    bool verify, details;
    bool by_prio; /* documents have priorities; memory must not have decided any */
    /* In stream order, from slu_near_wait_finish: a sequence was dropped, the last of
     * the batch; v as from slu_near_mem_put. */
    int (*drop)(void *ctx, const struct slu_batch *b, const struct slu_seq *q,
                const struct slu_near_verdict *v, struct slu_err *err);
    /* A note. */
    int (*note)(void *ctx, const void *p, size_t n, struct slu_err *err);
    /* Sequences that stay. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    void *ctx;
};

struct slu_near_wait_stats {
    uint64_t waited, spilled_byte;
    uint64_t twins, candidates, verified, refused, capped_documents;
};

SLU_MUST_USE int slu_near_wait_new(struct slu_near_wait **w,
                                   const struct slu_near_wait_cfg *cfg,
                                   struct slu_err *err);
/* NULL is legal. */
void slu_near_wait_free(struct slu_near_wait *w);

/* A document that memory has no answer for (prio: below UINT64_MAX, 0 unless by_prio),
 * or that is kept for certain because its set is empty. */
SLU_MUST_USE int slu_near_wait_add(struct slu_near_wait *w, const struct slu_batch *b,
                                   const struct slu_seq *q,
                                   const struct slu_near_item *d, uint64_t prio,
                                   struct slu_err *err);
/* A document that is kept, and waits nowhere; before all others. */
SLU_MUST_USE int slu_near_wait_known(struct slu_near_wait *w,
                                     const struct slu_near_item *d,
                                     struct slu_err *err);
SLU_MUST_USE int slu_near_wait_note(struct slu_near_wait *w, const void *p, size_t n,
                                    struct slu_err *err);
SLU_MUST_USE int slu_near_wait_finish(struct slu_near_wait *w, struct slu_err *err);
void slu_near_wait_stats(const struct slu_near_wait *w, struct slu_near_wait_stats *s);

#endif
