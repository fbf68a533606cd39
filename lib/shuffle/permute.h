/* permute.h - the global shuffle: every sequence of a stream in the order of a keyed
 * hash.
 *
 * The key of a sequence is XXH3-128 of (a constant, seed, repeat number, source,
 * document, offset and length of each segment); ties go by the segment list, then by
 * the tokens (DESIGN.md, Identity and order). So the order is a function of the seed
 * and of what the sequences are: not of the input's order, of threads, memory or parts.
 * Sequences are sorted by lib/sorter.
 *
 * A sample keeps the sequences whose second keyed hash is below the fraction: the same
 * ones whatever else is in the stream, and those of a smaller fraction are among those
 * of a larger one.
 *
 * The order may also be the stream's own (SLU_ORDER_KEEP). For shards, which want one
 * bucket after another, by_bucket puts the buckets' sequences apart, the order within
 * each being what it is otherwise; with max_tokens the sequences are those that the one
 * order of all would have taken (select.h).
 *
 * By score (slu_seq_score), equal ones in the order of the hash; or in bands: N bands
 * of equal tokens, from low to high scores, the order within each that of the hash.
 * Where bands end is found by select.h, so they too must know all sequences first.
 *
 * A mix (mix.h) takes sequences by source, some of them several times, in periods
 * that come one after another in the stream, or in each bucket. It must know all
 * sequences first: what can be read twice is, the rest waits in a spool.
 *
 * Thread safety: one thread at a time on a handle, slu_permute_read's own threads
 * apart.
 */
#ifndef SLU_PERMUTE_H
#define SLU_PERMUTE_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/stream/batch.h"
#include "lib/stream/stream.h"
#include "mix.h"

SLU_BEGIN_DECLS

#define SLU_MAX_BANDS 4096

enum slu_order {
    SLU_ORDER_RANDOM,
    SLU_ORDER_KEEP,
    SLU_ORDER_ASCENDING, /* by score, those without one last */
    SLU_ORDER_DESCENDING,
    SLU_ORDER_BANDS,
};

struct slu_permute_cfg {
    uint64_t budget_byte; /* of the sorter; the batches in flight come on top */
    const char *tmpdir;   /* borrowed for slu_permute_new */
    unsigned n_threads;
    uint64_t seed;
    double sample; /* in [0, 1]: keep this fraction of the sequences; 1: all */
    uint64_t
        max_tokens; /* stop before the sequence that would pass it; UINT64_MAX: never */
    bool buckets_only; /* take only sequences of a bucket's length */
    bool by_bucket;    /* the shortest bucket's first; wants buckets_only */
    enum slu_order order;
    unsigned n_band; /* SLU_ORDER_BANDS: at most SLU_MAX_BANDS */

    const struct slu_mix *mix; /* borrowed; NULL: none. max_tokens is its amount */
    struct slu_mix_by by;
    /* Opens the input once more; NULL: it cannot be read twice. */
    int (*again)(void *ctx, struct slu_reader **r, struct slu_err *err);
    void *again_ctx;

    /* Of a stage (shuffle_flow.h), which is read by its flow and whose table sorts;
     * NULL: neither. */
    struct slu_flow *flow;
    struct slu_sorter *sorter; /* borrowed */
};

struct slu_permute_result {
    struct slu_count taken;        /* of the input, by the sorter */
    struct slu_count out;          /* handed out so far */
    struct slu_count not_sampled;  /* left out by sample */
    struct slu_count no_bucket;    /* left out by buckets_only */
    struct slu_count not_mixed;    /* of taken: left out by the mix */
    struct slu_count repeated;     /* taken again by the mix */
    struct slu_u128 left_checksum; /* of the sequences left out by any of them */
    struct slu_u128 repeated_checksum;
    uint64_t spilled_byte;
};

struct slu_permute;
struct slu_arena; /* sorter.h */

SLU_MUST_USE int slu_permute_new(struct slu_permute **p,
                                 const struct slu_permute_cfg *cfg,
                                 struct slu_err *err);
/* Takes the whole of r, n_slots batches in flight, and seals. `progress` may be NULL.
 */
SLU_MUST_USE int slu_permute_read(struct slu_permute *p, struct slu_reader *r,
                                  unsigned n_slots, struct slu_sum *total,
                                  void (*progress)(void *ctx, uint64_t n_tok),
                                  void *ctx, struct slu_err *err);
/* Clears b and fills it with the next sequences, about n_tok tokens of them and at
 * least one; SLU_EOF at the end. */
SLU_MUST_USE int slu_permute_next(struct slu_permute *p, struct slu_batch *b,
                                  uint64_t n_tok, struct slu_err *err);
/* The same in two halves, for pipelines: fetch, serial, makes `rec` the records of the
 * next sequences; open, any thread, makes the batch of them. */
SLU_MUST_USE int slu_permute_fetch(struct slu_permute *p, struct slu_buf *rec,
                                   uint64_t n_tok, struct slu_err *err);
SLU_MUST_USE int slu_permute_open(struct slu_permute *p, const struct slu_buf *rec,
                                  struct slu_batch *b, struct slu_err *err);
/* The same without a copy, where the sorter can lend: rec says where the records are,
 * and *loan is not NULL. The next call may wait for loans: each must have been opened
 * before, or be opened by another thread, or slu_permute_stop called. */
SLU_MUST_USE int slu_permute_borrow(struct slu_permute *p, struct slu_buf *rec,
                                    struct slu_arena **loan, uint64_t n_tok,
                                    struct slu_err *err);
/* What the last call's batch takes, in bytes: records that were copied, and tokens. */
uint64_t slu_permute_borrowed(const struct slu_permute *p);
SLU_MUST_USE int slu_permute_open_loan(struct slu_permute *p, const struct slu_buf *rec,
                                       struct slu_arena *loan, struct slu_batch *b,
                                       struct slu_err *err);
/* No loan will be opened any more. Any thread. */
void slu_permute_stop(struct slu_permute *p);
/* Of all that was fetched and opened. */
const struct slu_permute_result *slu_permute_result(struct slu_permute *p);
/* After slu_permute_read with a mix: what it took, and what each bucket (all is one
 * where there are none) got in a period. Borrowed. */
const struct slu_mixer *slu_permute_mixer(const struct slu_permute *p);
const struct slu_count *slu_permute_period(const struct slu_permute *p, unsigned bucket,
                                           unsigned period);
/* NULL is legal. */
void slu_permute_free(struct slu_permute *p);

/* The sort key of a sequence. */
struct slu_u128 slu_permute_key(uint64_t seed, uint64_t repeat,
                                const struct slu_seg *seg, uint64_t n_seg);

SLU_END_DECLS

#endif
