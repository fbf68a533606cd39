/* phases.h - packing in parts: each part in a process of its own, on any machine that
 * sees the same work folder, and no process holds everything.
 *
 *   count    part I of N reads its stream: of each domain, in the order in which they
 *            first appear, the histogram of what waits       -> count.I-of-N
 *   plan     one job: histograms are added up in the order of the parts, one plan is
 * made a domain (planfile.h), and each part is told with which rank of each length its
 * items begin                                          -> plan scatter  part I reads
 * its stream again: what waits, cut to pieces, goes under the key of its bin and its
 * place there to one of R ranges of bins -> scatter.I-of-N gather   range J of R: reads
 * its section of all N files, sorts it, and gives the bins [n_bin J / R, n_bin (J + 1)
 * / R)
 *
 * What passes, of parts 0 … N-1, and then the bins of ranges 0 … R-1 are what packing.h
 * gives for the parts' streams as one: a rank counts the items of a length in the order
 * of their arrival, and that is the order of the parts.
 *
 * Sizes: a count file is in proportion to the lengths that differ, the plan to all
 * count files and the groups, a scatter file to what waits in its part. Scatter and
 * gather hold the plan and sort within their budget; reading and writing is linear in
 * all of them.
 *
 * Files are those of workfile.h; what is made from what is checked: the plan knows its
 * count files, a scatter file its plan and that its stream is the one that was counted.
 *
 * Sections. count: 0 stream (workfile_names.h), 1 of each slot SLOT numbers, 2 (length,
 * count) of each slot's histogram. plan: 0 … N-1 of each row of count.I the first rank,
 * N the ids of the count files, N+1 bytes of a plan (formats/PLAN.md). scatter: 0
 * stream, 1+J records of sorter.h, in order.
 *
 * Thread safety: one thread at a time on a handle, but what packing.h allows.
 */
#ifndef SLU_PACK_PHASES_H
#define SLU_PACK_PHASES_H

#include "lib/pack/packing.h"
#include "lib/stream/stream.h"
#include "lib/workfile.h"

struct slu_pack_phase {
    const char *work;        /* folder */
    uint64_t part, of;       /* of the phase at hand; plan: 0, 0 */
    uint64_t ranges;         /* scatter: 0: as many as parts */
    const char *param;       /* slu_pack_phase_param: the same in all phases */
    uint8_t fingerprint[16]; /* of the tokenizer */
    bool force;              /* do it again; replace what is made otherwise */
};

/* What of the options decides results, for the files. too_long: --long. Caller frees
 * *text with free(). */
SLU_MUST_USE int slu_pack_phase_param(const struct slu_packing_cfg *cfg,
                                      const char *too_long, char **text,
                                      struct slu_err *err);
/* The header that streams had, for phases that read none: of count files for the plan
 * (of 0), of scatter files for gather. */
SLU_MUST_USE int slu_pack_phase_header(const struct slu_pack_phase *ph, uint64_t kind,
                                       struct slu_header *h, struct slu_err *err);
/* Whether count's own file is there, as it would be made; and then the identity
 * (slu_reader_identity) of the stream that it was made of. */
SLU_MUST_USE int slu_pack_count_done(const struct slu_pack_phase *ph, bool *done,
                                     struct slu_u128 *stream, struct slu_err *err);
/* SLU_E_MISMATCH: that of what was read, `is`, is another. */
SLU_MUST_USE int slu_pack_count_compare(const struct slu_pack_phase *ph,
                                        struct slu_u128 stream, struct slu_u128 is,
                                        struct slu_err *err);

/* count: behind the last slu_packing_add of a packing with plan_only. */
SLU_MUST_USE int slu_pack_count_write(struct slu_packing *p,
                                      const struct slu_pack_phase *ph,
                                      const struct slu_header *h,
                                      struct slu_u128 stream, struct slu_err *err);

/* plan: of a packing with plan_only and cfg.save that has taken nothing;
 * slu_packing_sum is what it comes to then. *done: the file was there, and nothing is
 * done; done NULL: it is made again. */
SLU_MUST_USE int slu_pack_plan_write(struct slu_packing *p,
                                     const struct slu_pack_phase *ph, bool *done,
                                     struct slu_err *err);

/* Whether the part's scatter file is there. SLU_E_MISMATCH: it has other ranges. */
SLU_MUST_USE int slu_pack_scatter_there(const struct slu_pack_phase *ph, bool *there,
                                        struct slu_err *err);
/* scatter: a packing to which items are added; end writes the file, and *work is what
 * went into it. cfg.names are the reader's. */
SLU_MUST_USE int slu_pack_scatter_new(struct slu_packing **p,
                                      const struct slu_packing_cfg *cfg,
                                      const struct slu_pack_phase *ph,
                                      struct slu_err *err);
SLU_MUST_USE int slu_pack_scatter_end(struct slu_packing *p, const struct slu_header *h,
                                      struct slu_u128 stream, struct slu_count *work,
                                      struct slu_err *err);

/* gather: a packing that slu_packing_take and fill give the range's bins of; *work is
 * what came out of the files. Sources, domains and the vocabulary go to cfg.names. */
SLU_MUST_USE int slu_pack_gather_new(struct slu_packing **p,
                                     const struct slu_packing_cfg *cfg,
                                     const struct slu_pack_phase *ph,
                                     struct slu_count *work, struct slu_err *err);
/* Behind SLU_EOF: the bins were all there. */
SLU_MUST_USE int slu_pack_gather_end(const struct slu_packing *p, struct slu_err *err);

#endif
