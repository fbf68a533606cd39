/* schedule_steps.h - the bucket and the sequences of each step of a training.
 *
 * All steps have the same number of tokens: a step takes batch_tokens / length
 * sequences of one bucket, a multiple of the world (ranks). A bucket's sequences are
 * taken in *runs* of that many: run r is places [r x per_step, (r + 1) x per_step).
 * Rank k of W takes the k-th of W equal parts of a run. There are two versions:
 *
 * 1: places are those of the bucket's shards, in each pass (epoch). So runs have the
 *    same members in all passes, and sequences after the last whole run are never taken
 *    and are counted under a reason. For one pass, OLMO, and `fixed`. `shuffle` has
 *    already put the sequences into random order, so consecutive ones are a random draw
 *    without replacement.
 * 2: places are those of all passes, one after another, each in its own order
 *    (lib/schedule/epoch_order.h). Pass e of a bucket of N sequences has the runs
 *    [floor(e N / per_step), floor((e + 1) N / per_step)), so the remainder of a pass
 *    begins the next one, and only that of the last pass is left out.
 *
 * GENERIC is Algorithm 1 of arXiv 2405.13226. A pass (epoch) has c cycles. Cycle j of a
 * bucket with R runs has the runs [floor(j R / c), floor((j + 1) R / c)): the
 * algorithm's subset s_ij in whole steps. Within a cycle each step draws a bucket with
 * probability in proportion to its odds (0 once its subset is used up) and takes the
 * bucket's next run. The curriculum `natural` draws in proportion to the runs left
 * instead, so every order of a cycle's steps is equally likely. Step t of cycle j of
 * epoch e draws x = slu_draw_below(slu_draw(seed, e, j, SLU_STEPS_DRAW, t), sum of the
 * live odds) and takes the bucket, shortest first, in whose share of the sum x falls.
 * So a draw depends only on the seed and the step's place (DESIGN.md, Identity and
 * order).
 *
 * OLMO is the order of OLMo-core's NumpyVSLDataLoader with VSLNaturalCurriculum,
 * VSLGrowP2Curriculum or VSLGrowLinearCurriculum, batch for batch
 * (lib/schedule/schedule_olmo.c).
 *
 * Memory: a few hundred bytes per bucket; OLMO also 4 bytes per step of a pass. Thread
 * safety: one thread at a time on a handle.
 */
#ifndef SLU_SCHEDULE_STEPS_H
#define SLU_SCHEDULE_STEPS_H

#include "lib/base/hash.h"
#include "lib/schedule/schedule.h"

SLU_BEGIN_DECLS

/* Keys of draws: bucket of a step, order of runs in later epochs. */
#define SLU_STEPS_DRAW  UINT64_C(0x7363686564756c65)
#define SLU_STEPS_ORDER UINT64_C(0x72756e6f72646572)

enum slu_steps_method { SLU_STEPS_GENERIC = 1, SLU_STEPS_OLMO = 2 };

/* The reasons why sequences are never taken. */
enum slu_steps_drop {
    SLU_DROP_REMAINDER, /* after the last whole run */
    SLU_DROP_ODDS,      /* their bucket's odds are 0 */
    SLU_DROP_CYCLES,    /* OLMO: runs beyond a multiple of the cycles */
    SLU_DROP_BALANCE,   /* OLMO: runs beyond those of the scarcest bucket */
    SLU_DROP_TOKENS,    /* the schedule ends before the first pass */
    SLU_N_DROP
};
/* Returns "remainder", …: static. */
const char *slu_steps_drop_name(enum slu_steps_drop d);

enum {
    SLU_STEPS_MAX_BUCKETS = 4096,
    SLU_STEPS_NATURAL = 1, /* flags: odds are the runs left */
    SLU_STEPS_BALANCED = 2,
    SLU_STEPS_REORDER = 4,
    SLU_STEPS_BRICKS = 8,
};

struct slu_steps_cfg {
    enum slu_steps_method method;
    const char *curriculum; /* as for slu_curriculum_odds; borrowed for new */
    uint64_t seed;
    uint64_t cycles;       /* of a pass; >= 1 */
    uint64_t epochs;       /* passes; 0: 1, or as many as `tokens` need */
    uint64_t tokens;       /* stop before the step that would exceed it; 0: never */
    uint64_t batch_tokens; /* per step */
    uint64_t world;        /* ranks; >= 1 */
    bool balanced;         /* OLMO: equally many runs of each bucket */
    bool fixed;            /* GENERIC: all epochs have the same runs (version 1) */
    bool reorder; /* GENERIC, fixed: later epochs take the runs in another order */
    bool bricks;  /* `first` counts bricks, of the longest bucket's length */
    uint64_t memory_byte; /* OLMO: limit for the order; 0: unlimited */
};

struct slu_steps_bucket {
    uint64_t length;              /* nominal, tokens per sequence */
    uint64_t sequences;           /* in the shards */
    uint64_t per_step;            /* sequences per step, over all ranks */
    uint64_t unit;                /* sequences per unit of `first` */
    uint64_t odds;                /* GENERIC, natural: 1 */
    uint64_t runs;                /* per pass; version 2: in the first */
    uint64_t used_steps;          /* in the whole schedule */
    uint64_t dropped[SLU_N_DROP]; /* sequences never taken */
    uint64_t block;               /* version 2: sequences that are permuted together */
};

/* A schedule without its steps. */
struct slu_steps_info {
    unsigned version;
    enum slu_steps_method method;
    unsigned flags;
    char curriculum[16]; /* its name, or "odds"; NUL-terminated */
    uint64_t seed, cycles, epochs, tokens, batch_tokens, world;
    uint64_t pass_steps; /* version 2: of the first pass; later ones can have more */
    uint64_t total_steps;
    struct slu_u128 shards_digest; /* slu_bucket_counts_digest */
    bool has_checksum;
    struct slu_u128 checksum; /* of the shard set's tokens (DESIGN.md, Conservation) */
    uint64_t seal;            /* xxh3_64 of its report.json; 0: not known */
    struct slu_steps_bucket *bucket; /* owned */
    size_t n_bucket;
};
void slu_steps_info_release(struct slu_steps_info *info);
/* Returns the runs of bucket b before cycle `cycle` of pass `pass`, in all passes. */
uint64_t slu_steps_runs_before(const struct slu_steps_info *info, size_t b,
                               uint64_t pass, uint64_t cycle);
/* Returns the steps before cycle `cycle` of pass `pass`, in all passes. */
uint64_t slu_steps_before_cycle(const struct slu_steps_info *info, uint64_t pass,
                                uint64_t cycle);

/* How often the whole schedule takes a bucket's sequences. */
struct slu_steps_uses {
    uint64_t times;     /* >= 1 */
    uint64_t as_many;   /* sequences that are taken `times` times */
    uint64_t once_more; /* that are taken times + 1 times */
    uint64_t never;
};
struct slu_steps_uses slu_steps_uses(const struct slu_steps_info *info, size_t b);
/* Returns the sequence at a place of bucket b, counted as `first` of a step is. */
uint64_t slu_steps_sequence(const struct slu_steps_info *info, size_t b,
                            uint64_t place);

struct slu_train_step {
    uint64_t first;  /* first place, in the bucket's units */
    uint32_t cycle;  /* since the start of the training: epoch x cycles + cycle */
    uint32_t bucket; /* index */
};

struct slu_steps;

/* Makes a schedule for the set `s`, which is not needed afterwards. SLU_E_USAGE and
 * SLU_E_MISMATCH say what to change. */
SLU_MUST_USE int slu_steps_new(struct slu_steps **steps,
                               const struct slu_bucket_counts *s,
                               const struct slu_steps_cfg *cfg, struct slu_err *err);
const struct slu_steps_info *slu_steps_info(const struct slu_steps *steps);
/* Makes step k <= total_steps the next one of slu_steps_next. Costs at most the steps
 * of one cycle (OLMO: of one pass). */
SLU_MUST_USE int slu_steps_seek(struct slu_steps *steps, uint64_t k,
                                struct slu_err *err);
/* Gives up to cap steps; *n is 0 only at the end. */
SLU_MUST_USE int slu_steps_next(struct slu_steps *steps, struct slu_train_step *step,
                                size_t cap, size_t *n, struct slu_err *err);
/* OLMO: returns the number of bucket rows whose rounding gives more runs than there
 * are: the original stops with an assertion, ours takes the excess from the last
 * sub-cycles. Otherwise 0. */
uint64_t slu_steps_olmo_faults(const struct slu_steps *steps);
/* NULL is legal. */
void slu_steps_free(struct slu_steps *steps);

SLU_END_DECLS

#endif
