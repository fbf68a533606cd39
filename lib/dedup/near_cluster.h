/* near_cluster.h - who is dropped, from edges and twins (point 4 of near_ext.h).
 *
 * Edges sorted by (d, k) in order decide in one pass: when d's come, whether each k is
 * kept is known, one bit a document. The result is the lexicographically first maximal
 * independent set, as a serial greedy pass has it.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_DEDUP_NEAR_CLUSTER_H
#define SLU_DEDUP_NEAR_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/dedup/near_ext.h"
#include "lib/dedup/near_verify.h"
#include "lib/err.h"

struct slu_near_cluster;

struct slu_near_cluster_cfg {
    uint64_t budget_byte; /* at least 256 KiB; n_doc bits are taken of it */
    const char *tmpdir;   /* copied */
    unsigned n_threads;
    uint64_t n_doc; /* ordinals are below it */
    bool by_prio;   /* false: order is that of ordinals, ranks are not looked at */
};

SLU_MUST_USE int slu_near_cluster_new(struct slu_near_cluster **c,
                                      const struct slu_near_cluster_cfg *cfg,
                                      struct slu_err *err);
/* In any order; e->d must not be fixed. */
SLU_MUST_USE int slu_near_cluster_edge(struct slu_near_cluster *c,
                                       const struct slu_near_edge *e,
                                       struct slu_err *err);
SLU_MUST_USE int slu_near_cluster_twin(struct slu_near_cluster *c, uint64_t first,
                                       uint64_t twin, uint64_t n_set,
                                       struct slu_err *err);
/* No more of both. */
SLU_MUST_USE int slu_near_cluster_run(struct slu_near_cluster *c, struct slu_err *err);
/* After run: the next document that is dropped, ascending ordinals; or SLU_EOF. */
SLU_MUST_USE int slu_near_cluster_next(struct slu_near_cluster *c,
                                       struct slu_near_drop *drop, struct slu_err *err);
uint64_t slu_near_cluster_spilled(const struct slu_near_cluster *c);
/* NULL is legal. */
void slu_near_cluster_free(struct slu_near_cluster *c);

#endif
