/* choose.h - shared by choose.c (the options and the runs), parse.c (their values) and
 * partition.c (a stream for each domain or value). */
#ifndef TOOLS_CHOOSE_H
#define TOOLS_CHOOSE_H

#include "lib/choose/choose.h"
#include "tools/cli/cli.h"
#include "tools/cli/cli_flow.h"
#include "tools/cli/cli_list.h"

/* Names in a list of an option, all in one block of memory. */
struct choose_names {
    char *text, **name;
    size_t n, cap;
};

struct choose_opts {
    /* Values as they are given, which were checked when they were parsed. */
    const char *domain, *source, *length, *score, *where, *top;
    char top_text[32]; /* one spelling of it, for the record */
    struct cli_list ids_keep, ids_drop;
    const char *partition; /* a folder; NULL: one stream */
    const char *by, *per;  /* per NULL: of all; a stream for each domain */
    int unit;
    struct cli_flow_opts flow;
};

/* The criteria and the best that the options ask for. */
struct choose_wanted {
    struct choose_names domain, source;
    struct slu_criteria_cfg criteria;
    struct slu_expr *where; /* owned */
    struct slu_top top;
};

/* Parsers of option values (cli_opt.parse). */
int choose_parse_domain(void *opts, const char *value, struct slu_err *err);
int choose_parse_source(void *opts, const char *value, struct slu_err *err);
int choose_parse_length(void *opts, const char *value, struct slu_err *err);
int choose_parse_score(void *opts, const char *value, struct slu_err *err);
int choose_parse_top(void *opts, const char *value, struct slu_err *err);

/* Reads the lists of ids into the options, and fills w. choose_wanted_release() frees
 * both; the caller calls it also after a failure. */
SLU_MUST_USE int choose_want(struct choose_wanted *w, struct cli_ctx *ctx,
                             struct slu_err *err);
void choose_wanted_release(struct choose_wanted *w, struct cli_ctx *ctx);

/* open: SLU_E_USAGE if the folder has files. h: of the input; the caller frees *p, also
 * after a failure. close: writes all files, and counts them in the account. */
struct choose_partition;
SLU_MUST_USE int choose_partition_open(struct choose_partition **p, struct cli_ctx *ctx,
                                       const struct slu_header *h,
                                       struct slu_names *names, uint64_t budget_byte,
                                       struct slu_err *err);
SLU_MUST_USE int choose_partition_put(struct choose_partition *p,
                                      const struct slu_batch *b, struct slu_err *err);
SLU_MUST_USE int choose_partition_close(struct choose_partition *p,
                                        struct slu_err *err);
void choose_partition_free(struct choose_partition *p);

#endif
