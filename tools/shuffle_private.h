/* shuffle_private.h - the parts of shuffle: tools/shuffle.c has the option table, the
 * pass, streams and the books; tools/shuffle_shards.c the shard sets. */
#ifndef SLU_SHUFFLE_PRIVATE_H
#define SLU_SHUFFLE_PRIVATE_H

#include "formats/shard.h"
#include "lib/permute.h"
#include "tools/cli.h"
#include "tools/shuffle_mix.h"

enum { JOB_TOK = 1 << 17, JOB_BYTE = 3 << 20 };

/* What only shards have (tools/shuffle_shards.c). */
struct shuffle_shards_opts {
    int format;                  /* index in slu_shard_format_names, -1: a stream */
    const char *shard_sequences; /* as given; NULL: auto */
    uint64_t n_shard_seq;        /* 0: auto */
    int last, tails;
    const char *compress; /* as given; NULL: the format's default */
    int compress_level;   /* zstd's, 0: none */
    int member;           /* enum slu_shard_member */
    const char *olmo_path, *olmo_tokenizer;
    const char *license;
};

struct opts {
    struct shuffle_shards_opts shards;
    const char *order_text; /* as given; NULL: random */
    int order;              /* enum slu_order */
    unsigned long n_band;
    uint64_t max_tokens;
    double sample;
    struct shuffle_mix_opts mix;
};

struct job {
    struct cli_ctx *ctx;
    struct slu_reader *reader;
    struct slu_permute *permute;
    struct slu_writer *writer; /* a stream: */
    struct slu_shards *shards; /* or shards */
    struct shuffle_mix mix;
    struct slu_sum in;
};

extern const char *const shuffle_members[], *const shuffle_lasts[],
                                                *const shuffle_tails[];
/* Parsers of struct opts. */
SLU_MUST_USE int shuffle_parse_shard_sequences(void *opts, const char *value,
                                               struct slu_err *err);
SLU_MUST_USE int shuffle_parse_compress(void *opts, const char *value,
                                        struct slu_err *err);
/* Usage errors. */
SLU_MUST_USE int shuffle_shards_check(const struct cli_ctx *ctx, struct slu_err *err);
/* What of -M is for batches and shards in the making; the sorter has the rest. */
uint64_t shuffle_shards_share(const struct cli_ctx *ctx);
/* j->shards from the reader's header; says no before anything is read. memory_byte: for
 * shards in the making. */
SLU_MUST_USE int shuffle_shards_open(struct job *j, uint64_t memory_byte,
                                     struct slu_err *err);
SLU_MUST_USE int shuffle_shards_write(struct job *j, unsigned n_slots,
                                      struct slu_err *err);
/* Behind the books: warnings, the ledger's `out`, report.json. */
SLU_MUST_USE int shuffle_shards_finish(struct job *j, struct slu_err *err);

/* tools/shuffle.c: what went in, less what was left out, is what came out. */
SLU_MUST_USE int shuffle_book(struct job *j, const struct slu_sum *out,
                              struct slu_err *err);

#endif
