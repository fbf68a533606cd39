/* permute.h - the global shuffle: every sequence of a stream in the order of a keyed
 * hash.
 *
 * The key of a sequence is XXH3-128 of (a constant, seed, repeat number, source,
 * document, offset and length of each segment); ties are decided by the segment list,
 * then by the tokens (DESIGN.md, Identity and order). So the order depends only on the
 * seed and the sequences, not on the input's order, threads, memory or parts.
 * lib/flow/sorter.h sorts the sequences.
 *
 * A sample keeps the sequences whose second keyed hash is below the fraction. So it
 * keeps the same sequences whatever else is in the stream, and a smaller fraction's
 * sequences are among a larger one's.
 *
 * The order may also be the stream's own (SLU_ORDER_KEEP). For shards, which need one
 * bucket after another, by_bucket separates the buckets' sequences and keeps the order
 * within each bucket; with max_tokens it takes the same sequences as the order without
 * by_bucket (select.h).
 *
 * That order needs no sorter where the caller takes buckets as they come
 * (slu_permute_pass).
 *
 * The order may also be by score (slu_seq_score), ties by the hash; or in bands: N
 * bands of equal tokens, from low to high scores, each in the order of the hash. Which
 * of equal scores are in a band is another hash's choice, as in a mix.
 * select.h finds where bands end, so bands need all sequences before the first is
 * placed.
 *
 * A mix (mix.h) takes sequences by source, some several times, in periods that follow
 * one another in the stream, or in each bucket. It also needs all sequences first: an
 * input that can be read twice is, sequences of others wait in a log.
 *
 * Thread safety: one thread at a time on a handle, besides slu_permute_read's own
 * threads.
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
    SLU_ORDER_ASCENDING, /* by score; sequences without a score last */
    SLU_ORDER_DESCENDING,
    SLU_ORDER_BANDS,
};

struct slu_permute_cfg {
    uint64_t budget_byte; /* for sorting; batches in flight need more */
    const char *tmpdir;   /* borrowed for slu_permute_new */
    unsigned n_threads;
    uint64_t seed;
    double sample;       /* in [0, 1]: keep this fraction of the sequences; 1: all */
    uint64_t max_tokens; /* stop before exceeding it; UINT64_MAX: never */
    bool buckets_only;   /* take only sequences with a bucket's length */
    bool by_bucket;      /* shortest bucket first; requires buckets_only */
    bool pass;           /* see slu_permute_pass */
    enum slu_order order;
    unsigned n_band; /* SLU_ORDER_BANDS: at most SLU_MAX_BANDS */

    const struct slu_mix *mix; /* borrowed; NULL: none. max_tokens: of its output */
    struct slu_mix_by by;
    /* Opens the input once more; NULL: the input cannot be read twice. */
    int (*again)(void *ctx, struct slu_reader **r, struct slu_err *err);
    void *again_ctx;

    /* For a stage (shuffle_flow.h): the flow that reads, and the sorter of the table
     * that sorts; otherwise NULL. */
    struct slu_flow *flow;
    struct slu_sorter *sorter; /* borrowed */
};

struct slu_permute_result {
    struct slu_count taken;       /* input sequences that reach the order or the mix */
    struct slu_count out;         /* sequences handed out so far */
    struct slu_count not_sampled; /* left out by `sample` */
    struct slu_count no_bucket;   /* left out by buckets_only */
    /* among `taken`: left out by the mix; in parts also by max_tokens without one */
    struct slu_count not_mixed;
    struct slu_count repeated; /* taken once more by the mix */
    uint64_t longest;          /* tokens of the longest sequence among `taken` */
    /* of the sequences left out for any of these reasons */
    struct slu_u128 left_checksum;
    struct slu_u128 repeated_checksum;
    uint64_t spilled_byte;
};

struct slu_permute;
struct slu_arena; /* sorter.h */

SLU_MUST_USE int slu_permute_new(struct slu_permute **p,
                                 const struct slu_permute_cfg *cfg,
                                 struct slu_err *err);
/* Reads all of r, n_slots batches in flight, and seals. `progress` may be NULL. */
SLU_MUST_USE int slu_permute_read(struct slu_permute *p, struct slu_reader *r,
                                  unsigned n_slots, struct slu_sum *total,
                                  void (*progress)(void *ctx, uint64_t n_tok),
                                  void *ctx, struct slu_err *err);
/* Instead of slu_permute_read, with cfg.pass and SLU_ORDER_KEEP: slu_permute_next reads
 * r as it goes, and no sorter holds the sequences. Buckets come in the input's order,
 * with by_bucket too. When it returns SLU_EOF, r has been read to its end and *total is
 * set. The pointers are borrowed until then. */
void slu_permute_pass(struct slu_permute *p, struct slu_reader *r,
                      struct slu_sum *total,
                      void (*progress)(void *ctx, uint64_t n_tok), void *ctx);
/* Replaces b's contents by the next sequences, about n_tok tokens and at least one
 * sequence. SLU_EOF at the end. pipe: NULL, or that of the caller's `produce`, in which
 * room is taken for a long sequence and for what is made of it (slu_pipe_take). */
SLU_MUST_USE int slu_permute_next(struct slu_permute *p, struct slu_pipe *pipe,
                                  struct slu_batch *b, uint64_t n_tok,
                                  struct slu_err *err);
/* slu_permute_next in two halves, for pipelines: borrow (serial) puts the records of
 * the next sequences into `rec`; open_pinned (any thread) makes the batch of these. If
 * the sorter can pin them, rec has the records' addresses instead of copies, and *pin
 * is not NULL. The next call may wait for pins: each must be opened before, or by
 * another thread, or slu_permute_stop must be called. */
SLU_MUST_USE int slu_permute_borrow(struct slu_permute *p, struct slu_buf *rec,
                                    struct slu_arena **pin, uint64_t n_tok,
                                    struct slu_err *err);
/* Returns the bytes of the last call's batch: copied records, and tokens. */
uint64_t slu_permute_borrowed(const struct slu_permute *p);
SLU_MUST_USE int slu_permute_open_pinned(struct slu_permute *p,
                                         const struct slu_buf *rec,
                                         struct slu_arena *pin, struct slu_batch *b,
                                         struct slu_err *err);
/* Ends waits for pins: no pin will be opened any more. Any thread. */
void slu_permute_stop(struct slu_permute *p);
/* Returns the counts of all batches opened. */
const struct slu_permute_result *slu_permute_result(struct slu_permute *p);
/* After slu_permute_read with a mix: the mixer, and the counts of each bucket (without
 * buckets: of all) in a period. Borrowed. */
const struct slu_mixer *slu_permute_mixer(const struct slu_permute *p);
const struct slu_count *slu_permute_period(const struct slu_permute *p, unsigned bucket,
                                           unsigned period);
/* NULL is legal. */
void slu_permute_free(struct slu_permute *p);

/* Returns the sort key of a sequence. */
struct slu_u128 slu_permute_key(uint64_t seed, uint64_t repeat,
                                const struct slu_seg *seg, uint64_t n_seg);

SLU_END_DECLS

#endif
