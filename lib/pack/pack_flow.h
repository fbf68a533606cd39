/* pack_flow.h - packing as a flow (lib/flow/flow.h): in one process with data beyond
 * memory, or in parts, each in a process of its own, on any machine that sees the same
 * work folder.
 *
 *   count    part I of N reads its stream and counts the waiting items: for each
 *            domain, in order of first appearance, a histogram of lengths
 *   plan     one job adds up the histograms in the order of the parts, makes one plan
 *            per domain (planfile.h), and tells each part the rank at which its items
 *            of each length begin
 *   scatter  part I reads its stream again, cuts waiting items into pieces, and puts
 *            each piece, under the key of its bin and its place there, into one of R
 *            ranges of bins
 *   gather   range J of R: the bins [n_bin J / R, n_bin (J + 1) / R)
 *
 * The sequences that pass, of parts 0 … N-1, and then the bins of ranges 0 … R-1 are
 * equal to the result of packing.h for the parts' streams read as one: a rank numbers
 * the items of a length in the order of their arrival, which is the order of the parts.
 *
 * In one process, count keeps waiting items in memory (packing.h) as long as they fit;
 * plan then writes the bins. Otherwise count writes items to a table as they come,
 * scatter reads that table instead of the stream, and lanes and plans stay in memory.
 *
 * Sizes: count's files grow with the number of distinct lengths, the plan with all of
 * these and the groups, scatter's files with the items that wait in its part. Scatter
 * and gather hold the plan and sort within their share of memory. Reading and writing
 * is linear in all of these sizes.
 *
 * Thread safety: one thread at a time on a handle, except as packing.h allows.
 */
#ifndef SLU_PACK_FLOW_H
#define SLU_PACK_FLOW_H

#include "lib/flow/flow.h"
#include "lib/pack/packing.h"

extern const struct slu_flow_spec slu_pack_flow_spec;

/* The flow's ctx. */
struct slu_pack_flow {
    struct slu_packing_cfg cfg; /* set from slu_flow_cfg.begin on */
    void *ctx;                  /* argument of open, read and write */
    /* Opens the output stream of the current stages, before read and write are called;
     * the caller ends the stream. */
    int (*open)(void *ctx, struct slu_err *err);
    /* Reads the stream by slu_flow_read: writes sequences that pass, and gives waiting
     * ones to slu_packing_add. */
    int (*read)(void *ctx, struct slu_flow *f, struct slu_err *err);
    /* Writes all bins that slu_packing_take gives. */
    int (*write)(void *ctx, struct slu_err *err);

    struct slu_packing *packing; /* made by the stage; caller frees */
    struct slu_count work;       /* items written to the work folder, or read from it */
    struct slu_flow *flow;       /* private: the running stage */
};

#endif
