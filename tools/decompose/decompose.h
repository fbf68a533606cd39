/* decompose.h - what the files of decompose share. */
#ifndef SLU_TOOLS_DECOMPOSE_H
#define SLU_TOOLS_DECOMPOSE_H

#include "lib/decompose/mixture.h"
#include "tools/cli/cli.h"

/* A mixture that was asked for: everything waits until it is known what is kept. */
struct decompose_mix {
    struct slu_mixture ask;
    struct slu_mixing *mixing; /* NULL: everything is kept, or nothing is written */
    struct slu_mixture_quota quota;
    uint64_t dropped_seq[SLU_MAX_BUCKETS], dropped_tok[SLU_MAX_BUCKETS];
    struct slu_count dropped;
    bool settled; /* quota is set */
};

/* text NULL: natural. max_tok as --mixture-tokens says. */
SLU_MUST_USE int decompose_mix_init(struct decompose_mix *m, const char *text,
                                    uint64_t max_tok, const struct slu_decompose *cut,
                                    struct slu_err *err);
/* Whether sequences have to wait. */
bool decompose_mix_waits(const struct decompose_mix *m);
/* After all of the input: what is kept of what s counted, which becomes what is left.
 * Where something waits it is written to w, a second pass. */
SLU_MUST_USE int decompose_mix_finish(struct decompose_mix *m, struct cli_ctx *ctx,
                                      const struct slu_decompose *cut,
                                      struct slu_decompose_stat *s,
                                      struct slu_writer *w, unsigned tok_bytes,
                                      struct slu_err *err);

#endif
