/* near_groups.h - band groups and twins: from (document, band) records to candidate
 * pairs (points 1 and 2 of near_ext.h), by one external sort.
 *
 * Twins share every band, so a group tells twins by a tag, 64 bits of their set hash:
 * only the first of each tag counts. Who is a twin of whom comes from the set hashes
 * themselves, which are sorted along with the bands.
 *
 * Memory: sort_byte of the sorter, and while groups are read member_byte, of which half
 * holds a group; a larger one is sorted on its own in the other half.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_DEDUP_NEAR_GROUPS_H
#define SLU_DEDUP_NEAR_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/hash.h"

struct slu_near_groups;

struct slu_near_groups_cfg {
    uint64_t sort_byte, member_byte; /* at least 64 KiB and 256 KiB */
    const char *tmpdir;              /* copied */
    unsigned n_threads;
    unsigned n_band;
    uint64_t band_cap; /* at most member_byte / 32 */
    /* k before d, both in a group; a pair comes as often as groups have both. k == d: d
     * is not among the first band_cap of a group. */
    int (*pair)(void *ctx, uint64_t k, uint64_t d, struct slu_err *err);
    /* twin has the set of n_set hashes that `first` has, and comes later. */
    int (*twin)(void *ctx, uint64_t first, uint64_t twin, uint64_t n_set,
                struct slu_err *err);
    void *ctx;
};

SLU_MUST_USE int slu_near_groups_new(struct slu_near_groups **g,
                                     const struct slu_near_groups_cfg *cfg,
                                     struct slu_err *err);
/* A document in one band; rank as slu_near_rank, ordinal below UINT64_MAX. */
SLU_MUST_USE int slu_near_groups_band(struct slu_near_groups *g, unsigned band,
                                      uint64_t key, struct slu_u128 set_hash,
                                      uint64_t rank, uint64_t ordinal,
                                      struct slu_err *err);
/* A document's set. */
SLU_MUST_USE int slu_near_groups_set(struct slu_near_groups *g,
                                     struct slu_u128 set_hash, uint64_t n_set,
                                     uint64_t rank, uint64_t ordinal,
                                     struct slu_err *err);
/* slu_near_ext_group. */
SLU_MUST_USE int slu_near_groups_known(struct slu_near_groups *g, unsigned band,
                                       uint64_t key, uint64_t n_doc,
                                       const uint64_t *kept, size_t n_kept,
                                       struct slu_err *err);
/* No more records: calls pair and twin. */
SLU_MUST_USE int slu_near_groups_run(struct slu_near_groups *g, struct slu_err *err);
uint64_t slu_near_groups_spilled(const struct slu_near_groups *g);
/* NULL is legal. */
void slu_near_groups_free(struct slu_near_groups *g);

#endif
