/* pack.h - the parts of pack: tools/pack/pack.c has the option table and the passes,
 * tools/pack/PART.c what belongs to one option and its relatives.
 *
 * A part has a struct of options that is a field of pack's own, and functions that take
 * it; they are called with ctx->opts parsed.
 */
#ifndef SLU_PACK_PRIVATE_H
#define SLU_PACK_PRIVATE_H

#include "lib/decompose/decompose.h"
#include "lib/pack/balance.h"
#include "lib/pack/pack_flow.h"
#include "lib/pack/related.h"
#include "tools/cli/cli.h"
#include "tools/cli/cli_flow.h"

/* --balance and its relatives (pack_balance.c). */
struct pack_balance_opts {
    uint64_t ranks; /* 0: not balanced */
    uint64_t sequences, tokens, window;
    const char *cost; /* canonical, in cost_text; NULL: the default */
    char cost_text[48];
    uint64_t cost_tok, cost_square;
};

/* Parses --balance-cost A,B. */
SLU_MUST_USE int pack_balance_parse_cost(struct pack_balance_opts *o, const char *value,
                                         struct slu_err *err);
/* Usage errors, whether or not there is something to balance. */
SLU_MUST_USE int pack_balance_check(const struct pack_balance_opts *o, bool plan_only,
                                    struct slu_err *err);
/* The share of -M that windows may hold; 0 where nothing is balanced. */
uint64_t pack_balance_share(const struct cli_ctx *ctx,
                            const struct pack_balance_opts *o);
/* *b stays NULL where nothing is balanced. h: of the stream that is written. */
SLU_MUST_USE int pack_balance_open(const struct cli_ctx *ctx,
                                   const struct pack_balance_opts *o,
                                   const struct slu_header *h, struct slu_balance **b,
                                   struct slu_err *err);
/* "balance" in --stats. */
void pack_balance_report(struct cli_ctx *ctx, const struct slu_balance *b);

/* --order related (pack_related.c). */
struct pack_related_slot { /* of a batch on its way; zero before use */
    struct slu_relater_scratch scratch;
    uint32_t *key; /* of its runs */
    size_t cap_key;
};
void pack_related_release(struct pack_related_slot *s);
/* Fills s->key; any thread. */
SLU_MUST_USE int pack_related_sign(const struct slu_relater *r,
                                   struct pack_related_slot *s, struct slu_names *names,
                                   const struct slu_batch *b, const struct slu_run *run,
                                   size_t n_run, struct slu_err *err);
/* Usage errors. */
SLU_MUST_USE int pack_related_check(bool related, bool concat, bool plan_only,
                                    bool plan_file, uint64_t max_segments,
                                    struct slu_err *err);

/* Makes length one of the header's buckets, if it is none (pack_multi.c). */
SLU_MUST_USE int pack_add_bucket(struct slu_header *h, uint64_t length,
                                 struct slu_err *err);
/* --method multi (pack_multi.c). */
struct pack_multi_opts {
    const char *buckets; /* NULL: those of the stream */
    double threshold;
};
#define PACK_MULTI_THRESHOLD 0.05

SLU_MUST_USE int pack_multi_check(const struct pack_multi_opts *o, bool multi,
                                  uint64_t length, struct slu_err *err);
/* The bins' nominal lengths, ascending: SLU_MAX_BUCKETS at most. */
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
    struct slu_device device; /* here, so that the report can name it */
    const char *save_plan, *apply_plan;
    struct cli_flow_opts flow;
};

struct pack_job {
    struct cli_ctx *ctx;
    struct slu_reader *reader; /* NULL: a stage that reads none */
    struct slu_names *names;   /* the reader's, or the stage's own */
    struct slu_header in, out; /* of the streams that are read and written */
    struct slu_pack_flow flow;
    struct slu_writer *writer;         /* NULL: plan only */
    struct slu_balance *balance;       /* before the writer; NULL: none */
    struct slu_packing *packing;       /* the flow's */
    struct slu_relater *relater;       /* NULL: plan order */
    struct slu_planfile *save, *apply; /* NULL: none */
    struct slu_out *plan_out;          /* where save goes; opened at the start */
    uint64_t capacity;                 /* ids a bin, the longest */
    uint64_t bin_tok[SLU_MAX_BUCKETS]; /* ids of the bins there are, ascending */
    size_t n_bin_tok;
    uint64_t waiting, pieces, tok;
    struct slu_count passed, too_long, padding;
};

/* Writes --save-plan, if it was asked for. */
SLU_MUST_USE int pack_write_planfile(struct pack_job *j, struct slu_err *err);

/* --stage (pack_stages.c). */
SLU_MUST_USE int pack_check_part(struct cli_ctx *ctx, struct slu_err *err);
SLU_MUST_USE int pack_check_stage(const struct cli_ctx *ctx, struct slu_err *err);
/* What there is to say, to book and to write, once all is done. */
SLU_MUST_USE int pack_end(struct pack_job *j, const struct slu_flow_report *r,
                          struct slu_err *err);

extern const char *const pack_longs[]; /* of --long */

/* The table of --plan, and the same for --stats. */
SLU_MUST_USE int pack_write_table(struct pack_job *j, struct slu_err *err);
void pack_report(struct pack_job *j);
/* The part of it that a plan tells. */
void pack_report_plan(struct pack_job *j);
/* Books what was created and dropped; the reader and the writer book the rest. */
void pack_book(struct pack_job *j);

#endif
