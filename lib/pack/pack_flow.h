/* pack_flow.h - packing as a flow (lib/flow/flow.h): in one process, past memory, or in
 * parts, each in a process of its own, on any machine that sees the same work folder,
 * and no process holds everything.
 *
 *   count    part I of N reads its stream: of each domain, in the order in which they
 *            first appear, the histogram of what waits
 *   plan     one job: histograms are added up in the order of the parts, one plan is
 *            made a domain (planfile.h), and each part is told with which rank of each
 *            length its items begin
 *   scatter  part I reads its stream again: what waits, cut to pieces, goes under the
 *            key of its bin and its place there to one of R ranges of bins
 *   gather   range J of R: the bins [n_bin J / R, n_bin (J + 1) / R)
 *
 * What passes, of parts 0 … N-1, and then the bins of ranges 0 … R-1 are what packing.h
 * gives for the parts' streams as one: a rank counts the items of a length in the order
 * of their arrival, and that is the order of the parts.
 *
 * In one process count holds what waits in memory (packing.h) as long as it fits; the
 * bins are made there then. Past that it goes to a table as it comes, scatter takes it
 * from there instead of reading again, and slots and plans stay where they are.
 *
 * Sizes: what count leaves is in proportion to the lengths that differ, the plan to all
 * of that and the groups, what scatter leaves to what waits in its part. Scatter and
 * gather hold the plan and sort within their share; reading and writing is linear in
 * all of them.
 *
 * Thread safety: one thread at a time on a handle, but what packing.h allows.
 */
#ifndef SLU_PACK_FLOW_H
#define SLU_PACK_FLOW_H

#include "lib/flow/flow.h"
#include "lib/pack/packing.h"

extern const struct slu_flow_spec slu_pack_flow_spec;

/* The flow's ctx. */
struct slu_pack_flow {
    struct slu_packing_cfg cfg; /* from slu_flow_cfg.begin on */
    const char *too_long;       /* what --long says */
    void *ctx;                  /* of the three */
    /* Opens the stream that the stages at hand write, before read and write; the caller
     * ends it. */
    int (*open)(void *ctx, struct slu_err *err);
    /* Reads the stream by slu_flow_read: what passes is written, what waits goes to
     * slu_packing_add. */
    int (*read)(void *ctx, struct slu_flow *f, struct slu_err *err);
    /* Writes all bins, of slu_packing_take. */
    int (*write)(void *ctx, struct slu_err *err);

    struct slu_packing *packing; /* made by the stage; caller frees */
    struct slu_count work;       /* what went to the work folder, or came from it */
    struct slu_flow *flow;       /* private: the stage that runs */
};

#endif
