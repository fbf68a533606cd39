/* schedule.h - from the counts of a shard set to the arguments of the trainer that
 * reads it. Counts alone are needed; formats/shards/manifests.h reads them.
 *
 * OpenLM with dataset decomposition (the reference implementation of arXiv 2405.13226)
 * draws a bucket for each step with fixed weights and takes a fixed number of sequences
 * of each bucket in an epoch, whole shards for every worker. slu_openlm_plan computes
 * what its parameter script computes, in whole numbers:
 *
 *   unit[b]   = sequences a shard x world x workers: what an epoch can be made of
 *   factor[b] = shards[b] x tokens / (tokens there are x epochs x world x workers),
 *               rounded to the nearest, ties to even
 *
 * then, until an epoch has exactly tokens / epochs: a step of 1 towards it in the last
 * bucket; where the factors are the ones before an earlier step, one bucket to the left
 * from that step on. The step that would come left of the first bucket falls on the
 * last one and ends the search: the epoch is then the nearest that was settled on.
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
    uint64_t shards; /* that have exactly so many; the trainer drops the others */
    uint64_t short_shards, short_seq; /* which are these */
    char *manifest;                   /* path; owned */
    struct slu_u128 digest; /* XXH3-128 of its bytes; 0 where a report was read */
};

struct slu_bucket_counts {
    struct slu_bucket_count *bucket; /* ascending lengths; owned */
    size_t n_bucket, cap_bucket;
    size_t n_empty;    /* manifests without a sequence, which are no buckets here */
    bool from_report;  /* of a set in a format that has no manifests */
    bool has_checksum; /* a set's report was there */
    struct slu_u128 checksum; /* of the set's tokens (DESIGN.md, Conservation) */
};

void slu_bucket_counts_init(struct slu_bucket_counts *s);
void slu_bucket_counts_release(struct slu_bucket_counts *s);
/* Sequences x length of the shards that the trainer uses. */
uint64_t slu_bucket_counts_tokens(const struct slu_bucket_counts *s);

/* Sequences of a bucket, short shards included. */
uint64_t slu_bucket_sequences(const struct slu_bucket_count *b);
/* Identity of the set as a schedule means it: from 0, bucket by bucket, XXH3-128 of
 * what it was so far, the bucket's length, its sequences and its manifest's digest, all
 * u64 little-endian, digests low half first. */
struct slu_u128 slu_bucket_counts_digest(const struct slu_bucket_counts *s);

/* The odds of n buckets, shortest first: a curriculum's name (natural, uniform,
 * grow-linear, grow-p2, grow-p100, shrink-…) or n numbers with commas between. */
SLU_MUST_USE int slu_curriculum_odds(const char *curriculum, uint64_t *odds, size_t n,
                                     struct slu_err *err);

struct slu_openlm_cfg {
    uint64_t tokens;       /* of the whole training; 0: what whole shards have */
    uint64_t epochs;       /* checkpoints, each with the whole curriculum; >= 1 */
    uint64_t world;        /* GPUs; >= 1 */
    uint64_t workers;      /* loader processes a GPU; >= 1 */
    uint64_t batch_tokens; /* of a step, over all GPUs; 0: not checked */
    const char *curriculum;
};

struct slu_openlm_bucket {
    uint64_t factor;        /* shards an epoch for each worker of each GPU */
    uint64_t seq_per_epoch; /* factor x unit */
    uint64_t mult;          /* sequences a step, as a multiple of the last bucket's */
    uint64_t odds;
    uint64_t
        weight; /* of the draw: factor x odds (x tokens of a unit / of the first) */
};

struct slu_openlm {
    struct slu_openlm_bucket *bucket; /* as many as the set has; owned */
    size_t n_bucket;
    uint64_t tokens;           /* asked for */
    uint64_t tokens_per_epoch; /* settled on */
    uint64_t epochs;
    uint64_t global_batch; /* sequences of the last bucket a step; 0: not asked */
    bool exact;            /* tokens_per_epoch x epochs == tokens */
};

/* SLU_E_MISMATCH where the set cannot serve the configuration, with what to change.
 * Released with slu_openlm_release, also after a fault. */
SLU_MUST_USE int slu_openlm_plan(struct slu_openlm *o,
                                 const struct slu_bucket_counts *s,
                                 const struct slu_openlm_cfg *cfg, struct slu_err *err);
void slu_openlm_release(struct slu_openlm *o);
/* Appends the trainer's arguments, one option a line, ready for a shell. */
SLU_MUST_USE int slu_openlm_text(const struct slu_openlm *o,
                                 const struct slu_bucket_counts *s,
                                 struct slu_buf *text, struct slu_err *err);

SLU_END_DECLS

#endif
