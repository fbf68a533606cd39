/* pack.h - shared by the files of pack: tools/pack/pack.c has the option table and the
 * passes; each other file tools/pack/PART.c has one option and the options that belong
 * to it.
 *
 * Such a part has a struct of options, which is a field of pack's own struct, and
 * functions that take this struct; they are called after the options are parsed.
 */
#ifndef SLU_PACK_PRIVATE_H
#define SLU_PACK_PRIVATE_H

#include "lib/decompose/decompose.h"
#include "lib/pack/balance.h"
#include "lib/pack/pack_flow.h"
#include "lib/pack/related.h"
#include "tools/cli/cli.h"
#include "tools/cli/cli_flow.h"

/* --balance and its options (tools/pack/balance.c). */
struct pack_balance_opts {
    uint64_t ranks; /* 0: sequences are not balanced */
    uint64_t sequences, tokens, window;
    const char *cost; /* canonical text, in cost_text; NULL: the default */
    char cost_text[48];
    uint64_t cost_tok, cost_square;
};

/* Parses --balance-cost A,B. */
SLU_MUST_USE int pack_balance_parse_cost(struct pack_balance_opts *o, const char *value,
                                         struct slu_err *err);
/* Reports usage errors, even if the stream has nothing to balance. */
SLU_MUST_USE int pack_balance_check(const struct pack_balance_opts *o, bool plan_only,
                                    struct slu_err *err);
/* The share of -M that windows may hold; 0 without --balance. */
uint64_t pack_balance_share(const struct cli_ctx *ctx,
                            const struct pack_balance_opts *o);
/* *b stays NULL without --balance. h: header of the stream that is written. */
SLU_MUST_USE int pack_balance_open(const struct cli_ctx *ctx,
                                   const struct pack_balance_opts *o,
                                   const struct slu_header *h, struct slu_balance **b,
                                   struct slu_err *err);
/* Writes "balance" to --stats. */
void pack_balance_report(struct cli_ctx *ctx, const struct slu_balance *b);

/* --order related (tools/pack/related.c). */
struct pack_related_slot { /* data for one batch in flight; zeroed before use */
    struct slu_relater_scratch scratch;
    struct slu_buf plain; /* slu_batch_ids */
    uint32_t *key;        /* keys of its runs */
    size_t cap_key;
};
void pack_related_release(struct pack_related_slot *s);
/* Fills s->key. Any thread may call. */
SLU_MUST_USE int pack_related_sign(const struct slu_relater *r,
                                   struct pack_related_slot *s, struct slu_names *names,
                                   const struct slu_batch *b, const struct slu_run *run,
                                   size_t n_run, struct slu_err *err);

/* Adds length to the header's buckets, unless it is one of them
 * (tools/pack/multi.c). */
SLU_MUST_USE int pack_add_bucket(struct slu_header *h, uint64_t length,
                                 struct slu_err *err);
/* --method multi (tools/pack/multi.c). */
struct pack_multi_opts {
    const char *buckets; /* NULL: the buckets of the stream */
    double threshold;
};
#define PACK_MULTI_THRESHOLD 0.05

SLU_MUST_USE int pack_multi_check(const struct pack_multi_opts *o, bool multi,
                                  uint64_t length, struct slu_err *err);
/* The bins' nominal lengths, ascending; at most SLU_MAX_BUCKETS. */
SLU_MUST_USE int pack_multi_lengths(const struct pack_multi_opts *o,
                                    const struct slu_header *h, uint64_t *length,
                                    size_t *n, struct slu_err *err);

/* ---- the program itself ---- */

struct pack_opts {
    uint64_t length, max_segments;
    int method, too_long, fill, order;
    bool mix_domains, plan;
    struct pack_multi_opts multi;
    struct pack_balance_opts balance;
    struct slu_device device; /* kept here, so that the report can name it */
    const char *save_plan, *apply_plan;
    struct cli_flow_opts flow;
};

static inline enum slu_pack_method pack_method(const struct pack_opts *o)
{
    return (enum slu_pack_method)o->method;
}

/* Reports usage errors of --order related. */
SLU_MUST_USE int pack_related_check(const struct pack_opts *o, struct slu_err *err);

struct pack_job {
    struct cli_ctx *ctx;
    struct slu_reader *reader; /* NULL: the stage reads no stream */
    struct slu_names *names;   /* those of the reader, or the stage's own */
    struct slu_header in, out; /* headers of the streams that are read and written */
    struct slu_pack_flow flow;
    struct slu_writer *writer;         /* NULL: plan only */
    struct slu_balance *balance;       /* takes sequences before the writer; NULL: no
                                          --balance */
    struct slu_packing *packing;       /* owned by the flow */
    struct slu_relater *relater;       /* NULL: plan order */
    struct slu_planfile *save, *apply; /* NULL: not given */
    struct slu_out *plan_out;          /* file of --save-plan; opened at the start */
    uint64_t capacity;                 /* ids in the longest bin */
    uint64_t bin_tok[SLU_MAX_BUCKETS]; /* ids in a bin of each length, ascending */
    size_t n_bin_tok;
    uint64_t waiting, pieces, tok, written_tok; /* written_tok: of bins */
    struct slu_count passed, too_long, padding;
};

/* Writes the file of --save-plan, if given. */
SLU_MUST_USE int pack_write_planfile(struct pack_job *j, struct slu_err *err);

/* --stage (tools/pack/stages.c). */
SLU_MUST_USE int pack_check_part(struct cli_ctx *ctx, struct slu_err *err);
SLU_MUST_USE int pack_check_stage(const struct cli_ctx *ctx, struct slu_err *err);
/* After the work: prints, counts and writes all results. */
SLU_MUST_USE int pack_end(struct pack_job *j, const struct slu_flow_report *r,
                          struct slu_err *err);

extern const char *const pack_longs[]; /* choices of --long */

/* Writes the table of --plan; the figures also go to --stats. */
SLU_MUST_USE int pack_write_table(struct pack_job *j, struct slu_err *err);
void pack_report(struct pack_job *j);
/* Writes the figures of --stats that a plan gives. */
void pack_report_plan(struct pack_job *j);
/* Counts created and dropped tokens; the reader and the writer count the rest. */
void pack_account(struct pack_job *j);

#endif
