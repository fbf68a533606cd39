/* shuffle.h - shared by the files of shuffle: tools/shuffle/shuffle.c has the option
 * table, the pass, streams and the account; tools/shuffle/shards.c the shard sets;
 * tools/shuffle/stages.c the same work in parts. */
#ifndef SLU_SHUFFLE_PRIVATE_H
#define SLU_SHUFFLE_PRIVATE_H

#include "formats/shards/shard.h"
#include "lib/base/pipe.h"
#include "lib/shuffle/shuffle_flow.h"
#include "lib/stream/stream_summary.h"
#include "tools/cli/cli.h"
#include "tools/cli/cli_flow.h"
#include "tools/shuffle/mix.h"

enum {
    JOB_TOK = 1 << 15,
    SHUFFLE_SLACK_BYTE = 24 << 20, /* of the 64 MiB by which a process may exceed -M */
};

/* Options that only apply to shards (tools/shuffle/shards.c). */
struct shuffle_shards_opts {
    int format;                  /* index in slu_shard_format_names, -1: a stream */
    const char *shard_sequences; /* as given; NULL: auto */
    uint64_t n_shard_seq;        /* 0: auto */
    uint64_t shard_byte;         /* 0: not given */
    bool documents;
    int last, tails;
    const char *compress;  /* as given; NULL: the format's default */
    int compress_level;    /* level of zstd; 0: not compressed */
    int member;            /* enum slu_shard_member */
    uint64_t max_segments; /* 0: not given */
    const char *olmo_path, *olmo_tokenizer;
    const char *license;
    bool replace_set, accept_mismatch;
};

struct opts {
    struct shuffle_shards_opts shards;
    const char *order_text; /* as given; NULL: random */
    int order;              /* enum slu_order */
    unsigned long n_band;
    uint64_t max_tokens;
    double sample;
    struct shuffle_mix_opts mix;
    struct cli_flow_opts flow;
};

struct job {
    struct cli_ctx *ctx;
    struct slu_reader *reader;
    const struct slu_header *header; /* of the reader or the flow */
    struct slu_names *names;         /* of the reader or the flow */
    struct slu_permute *permute;
    struct slu_shuffle_flow flow; /* with --stage */
    struct slu_count gathered;    /* the count of gather's sequences */
    struct slu_writer *writer;    /* for a stream */
    struct slu_pipe *pipe;        /* while the stream is written */
    struct slu_shards *shards;    /* for shards */
    struct shuffle_mix mix;
    struct slu_sum in;
    bool pass;                  /* shards take the sequences as they come; then */
    struct slu_summary summary; /* what the input says before */
    uint64_t written_tok;       /* of a stream, for progress */
    struct slu_u128 input_id;   /* for shards: see struct slu_shards_cfg */
};

extern const char *const shuffle_lasts[], *const shuffle_tails[];
/* Parsers of struct opts. */
SLU_MUST_USE int shuffle_parse_shard_sequences(void *opts, const char *value,
                                               struct slu_err *err);
SLU_MUST_USE int shuffle_parse_compress(void *opts, const char *value,
                                        struct slu_err *err);
/* Reports usage errors. */
SLU_MUST_USE int shuffle_shards_check(const struct cli_ctx *ctx, struct slu_err *err);
/* The part of -M for batches and for shards in memory; the sorter has the rest. */
uint64_t shuffle_shards_share(const struct cli_ctx *ctx);
/* Sets j->pass if the input's order needs no sorter: the shards take buckets as they
 * come, and what must be known before the first is written (shard_journal.c, and the
 * longest document) the input says itself. Depends on the input and on options that
 * affect results, so that a run that was stopped goes on the same way. */
SLU_MUST_USE int shuffle_shards_passes(struct job *j, struct slu_err *err);
/* Opens j->shards for j->header; refuses unsuitable input before anything is read.
 * memory_byte: for shards in memory. parts: for slu_shards_write_part and _join. */
SLU_MUST_USE int shuffle_shards_open(struct job *j, uint64_t memory_byte, bool parts,
                                     struct slu_err *err);
/* SLU_E_MISMATCH if n counts sequences without a bucket's length and --tails drop is
 * not given. */
SLU_MUST_USE int shuffle_shards_tails(const struct cli_ctx *ctx,
                                      const struct slu_count *n, struct slu_err *err);
/* SLU_E_USAGE if the longest document, of n_tok ids, does not fit the shards; nothing
 * to check for buckets. */
SLU_MUST_USE int shuffle_shards_longest(const struct job *j, uint64_t n_tok,
                                        struct slu_err *err);
SLU_MUST_USE int shuffle_shards_write(struct job *j, unsigned n_slots,
                                      struct slu_err *err);
/* Call after the account is filled: checks `out`, prints warnings, writes
 * report.json. */
SLU_MUST_USE int shuffle_shards_finish(struct job *j, struct slu_account *account,
                                       struct slu_err *err);

/* ---- tools/shuffle/shuffle.c ---- */

/* All fields but the budget and the mix. */
struct slu_permute_cfg shuffle_permute_cfg(const struct cli_ctx *ctx);
/* Opens the input, and sets header and names; refuses streams without tokens. */
SLU_MUST_USE int shuffle_open(struct job *j, struct slu_err *err);
void shuffle_progress(void *job, uint64_t n_tok);
/* Records in flight from the sorter, or the work files, to the writer. */
struct shuffle_load {
    struct slu_buf rec;
    struct slu_arena *pin; /* rec has the addresses of the records; NULL: rec has
                               the records */
    struct slu_batch b;
};
/* Runs ops; their context is j, and their jobs are struct shuffle_load. */
SLU_MUST_USE int shuffle_run(struct job *j, const struct slu_pipe_ops *ops,
                             unsigned n_slots, struct slu_err *err);
/* `emit` of such ops: appends to j->writer. */
SLU_MUST_USE int shuffle_emit(void *job, void *load, struct slu_err *err);
/* Number of jobs in flight that fit share_byte of -M. */
unsigned shuffle_slots(const struct cli_ctx *ctx, uint64_t share_byte);
/* Counts sequences that were left out, by a mix or by --max-tokens, or repeated. */
void shuffle_account_left(struct slu_account *l, const struct slu_permute_result *r,
                          bool mix);

/* ---- tools/shuffle/stages.c ---- */

const struct slu_flow_spec *shuffle_flow(const struct cli_ctx *ctx);
/* slu_tool.facts. */
SLU_MUST_USE int shuffle_facts(const struct cli_ctx *ctx, struct slu_made *m,
                               struct slu_err *err);
/* Refuses options that contradict --stage. */
SLU_MUST_USE int shuffle_check_stage(const struct cli_ctx *ctx, struct slu_err *err);
SLU_MUST_USE int shuffle_stage(struct cli_ctx *ctx, struct slu_err *err);

#endif
