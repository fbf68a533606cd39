/* mix.h - the mix of shuffle's command line: --mix, --mix-schedule, --mix-by and
 * --max-epochs. Private to shuffle.
 */
#ifndef SLU_SHUFFLE_MIX_H
#define SLU_SHUFFLE_MIX_H

#include "lib/shuffle/permute.h"
#include "tools/cli/cli.h"

struct shuffle_mix_opts {
    const char *mix, *schedule, *max_epochs;
    const char *by; /* input, or what documents have; NULL: domain */
    uint64_t batch_tokens;
};

/* Parser of struct opts, of --mix-by. */
SLU_MUST_USE int shuffle_parse_mix_by(void *opts, const char *value,
                                      struct slu_err *err);
bool shuffle_mix_by_input(const struct shuffle_mix_opts *o);

struct shuffle_mix {
    struct cli_ctx *ctx;
    const struct shuffle_mix_opts *opts;
    struct slu_mix mix; /* without sources: no mix is asked for */
    int *source;        /* n_source numbers of domains or inputs; owned */
    size_t n_source;
    struct slu_property property; /* whose values sources are */
    uint64_t *value;              /* by source; owned */
    struct slu_where **where;     /* by band, NULL for scores; owned */
};

/* Parses the options, before anything is opened. The caller releases m, also after a
 * fault. */
SLU_MUST_USE int shuffle_mix_parse(struct shuffle_mix *m, struct cli_ctx *ctx,
                                   const struct shuffle_mix_opts *o,
                                   struct slu_err *err);
/* Sets cfg's mix, if one is asked for. m must not move while cfg is in use. */
SLU_MUST_USE int shuffle_mix_open(struct shuffle_mix *m, struct slu_reader *r,
                                  struct slu_permute_cfg *cfg, struct slu_err *err);
/* Call after a fault of slu_permute_read. */
void shuffle_mix_explain(const struct shuffle_mix *m, const struct slu_permute *p,
                         struct slu_reader *r, struct slu_err *err);
/* Writes to the report how much each source gave and where periods begin, and warns of
 * sources and periods that fall short; with `shards`, also into its report.json and
 * card. period: the counts of each period in each bucket, all periods of a bucket side
 * by side (slu_permute_period). */
struct slu_shards;
SLU_MUST_USE int shuffle_mix_report(struct shuffle_mix *m, const struct slu_mixer *x,
                                    const struct slu_count *period,
                                    const struct slu_header *h,
                                    struct slu_shards *shards, struct slu_err *err);
/* Appends the section of the card (mix_card.c). */
SLU_MUST_USE int shuffle_mix_card(const struct shuffle_mix *m,
                                  const struct slu_mixer *x, struct slu_buf *t,
                                  struct slu_err *err);
void shuffle_mix_release(struct shuffle_mix *m);

#endif
