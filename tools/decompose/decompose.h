/* decompose.h - shared by the files of decompose. */
#ifndef SLU_TOOLS_DECOMPOSE_H
#define SLU_TOOLS_DECOMPOSE_H

#include "lib/decompose/mixture.h"
#include "tools/cli/cli.h"

/* The state of --mixture: all pieces wait until it is known which are kept. */
struct decompose_mix {
    struct slu_mixture ask;
    struct slu_mixing *mixing; /* NULL: all pieces are kept, or no stream is written */
    struct slu_mixture_quota quota;
    uint64_t dropped_seq[SLU_MAX_BUCKETS], dropped_tok[SLU_MAX_BUCKETS];
    struct slu_count dropped;
    bool settled; /* quota is set */
};

/* text NULL: natural. max_tok: the value of --mixture-tokens. */
SLU_MUST_USE int decompose_mix_init(struct decompose_mix *m, const char *text,
                                    uint64_t max_tok, const struct slu_decompose *cut,
                                    struct slu_err *err);
/* Whether sequences have to wait. */
bool decompose_mix_waits(const struct decompose_mix *m);
/* Call after the end of the input. Determines how much of the sequences that s counted
 * is kept, and reduces s to that. Writes waiting sequences to w, in a second pass. */
SLU_MUST_USE int decompose_mix_finish(struct decompose_mix *m, struct cli_ctx *ctx,
                                      const struct slu_decompose *cut,
                                      struct slu_decompose_stat *s,
                                      struct slu_writer *w, const struct slu_header *h,
                                      struct slu_err *err);

#endif
