/* schedule.h - computes the trainer's arguments from the counts of a shard set, which
 * formats/shards/manifests.h reads.
 *
 * OpenLM with dataset decomposition (the reference implementation of arXiv 2405.13226)
 * draws a bucket for each step with fixed weights. An epoch has a fixed number of
 * sequences of each bucket, as whole shards for every worker. slu_openlm_plan computes
 * in whole numbers what OpenLM's parameter script computes:
 *
 *   unit[b]   = sequences per shard x world x workers: an epoch has multiples of it
 *   factor[b] = shards[b] x tokens / (tokens of the set x epochs x world x workers),
 *               rounded to the nearest, ties to even
 *
 * Then, until an epoch has exactly tokens / epochs: change the last bucket's factor by
 * 1 towards it; if the factors were those before an earlier change, change the next
 * bucket to the left from that change on. A change left of the first bucket falls on
 * the last bucket instead and ends the search; the epoch is then the nearest one found.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_SCHEDULE_H
#define SLU_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"

SLU_BEGIN_DECLS

/* One bucket as its manifest describes it. */
struct slu_bucket_count {
    uint64_t length;        /* nominal, in tokens: 2^i of D_<i> */
    uint64_t seq_per_shard; /* the largest of the manifest */
    uint64_t shards;        /* with exactly seq_per_shard; the trainer drops others */
    uint64_t short_shards, short_seq; /* the other shards */
    char *manifest;                   /* path; owned */
    struct slu_u128 digest; /* XXH3-128 of the manifest; 0 if a report was read */
};

struct slu_bucket_counts {
    struct slu_bucket_count *bucket; /* ascending lengths; owned */
    size_t n_bucket, cap_bucket;
    size_t n_empty;           /* manifests without sequences; not in `bucket` */
    bool from_report;         /* the set's format has no manifests */
    bool has_checksum;        /* the set has a report */
    struct slu_u128 checksum; /* of the set's tokens (DESIGN.md, Conservation) */
    uint64_t seal;            /* of the set's files, so of its order; 0: not known */
    char *places; /* of the set with a report: slu_manifests_put_places; owned */
};

void slu_bucket_counts_init(struct slu_bucket_counts *s);
void slu_bucket_counts_release(struct slu_bucket_counts *s);
/* Returns sequences x length, of the shards that the trainer uses. */
uint64_t slu_bucket_counts_tokens(const struct slu_bucket_counts *s);

/* Returns the sequences of a bucket, short shards included. */
uint64_t slu_bucket_sequences(const struct slu_bucket_count *b);
/* Returns the set's identity for schedules: from 0, bucket by bucket, XXH3-128 of the
 * value so far, the bucket's length, sequences and manifest digest, all u64
 * little-endian, digests low half first. */
struct slu_u128 slu_bucket_counts_digest(const struct slu_bucket_counts *s);

/* Computes the odds of n buckets, shortest first, from a curriculum's name (natural,
 * uniform, grow-linear, grow-p2, grow-p100, shrink-…) or n numbers with commas. */
SLU_MUST_USE int slu_curriculum_odds(const char *curriculum, uint64_t *odds, size_t n,
                                     struct slu_err *err);

/* SLU_E_USAGE for a name that is no curriculum's. Of numbers only the buckets' count can
 * tell whether they are odds. */
SLU_MUST_USE int slu_curriculum_check(const char *curriculum, struct slu_err *err);

struct slu_openlm_cfg {
    uint64_t tokens;       /* of the whole training; 0: those of whole shards */
    uint64_t epochs;       /* checkpoints, each with the whole curriculum; >= 1 */
    uint64_t world;        /* GPUs; >= 1 */
    uint64_t workers;      /* loader processes per GPU; >= 1 */
    uint64_t batch_tokens; /* per step, over all GPUs; 0: not checked */
    const char *curriculum;
};

struct slu_openlm_bucket {
    uint64_t factor;        /* shards per epoch, for each worker of each GPU */
    uint64_t seq_per_epoch; /* factor x unit */
    uint64_t mult;          /* sequences per step, as a multiple of the last bucket's */
    uint64_t odds;
    uint64_t weight; /* in draws: factor x odds (x tokens of unit / first bucket's) */
};

struct slu_openlm {
    struct slu_openlm_bucket *bucket; /* as many as the set has; owned */
    size_t n_bucket;
    uint64_t tokens;           /* requested */
    uint64_t tokens_per_epoch; /* found */
    uint64_t epochs;
    uint64_t global_batch; /* sequences of the last bucket per step; 0: not requested */
    bool exact;            /* tokens_per_epoch x epochs == tokens */
};

/* Computes the plan. SLU_E_MISMATCH, with what to change, if the set cannot serve the
 * configuration. Release with slu_openlm_release, also after an error. */
SLU_MUST_USE int slu_openlm_plan(struct slu_openlm *o,
                                 const struct slu_bucket_counts *s,
                                 const struct slu_openlm_cfg *cfg, struct slu_err *err);
void slu_openlm_release(struct slu_openlm *o);
/* Appends the trainer's arguments, one option per line, ready for a shell. */
SLU_MUST_USE int slu_openlm_text(const struct slu_openlm *o,
                                 const struct slu_bucket_counts *s,
                                 struct slu_buf *text, struct slu_err *err);

SLU_END_DECLS

#endif
