/* choose.h - chooses sequences of a stream: those that meet all criteria (criteria.h),
 * and of these the best, of the whole stream or of each value of a property
 * (lib/stream/property.h), up to a number or a fraction of tokens or documents. Order and
 * contents stay.
 *
 * The best have the highest value of a property that is a number, as a double; sequences
 * without one come last. Or they come first by a keyed hash. Ties are decided by the first segment (XXH3-64 of the source's name, document,
 * offset), then by a hash of the tokens; sequences that agree in these and in length too
 * are interchangeable, and the first in the stream comes first. So the choice depends
 * neither on the order of a stream or of joined streams, in which sources have other
 * numbers, nor on memory, threads or parts. Sequences are taken in this order until one
 * does not fit in what is left. A fraction is of the sequences that meet the criteria,
 * rounded down. A sequence counts as a document.
 *
 * With a best, the work is a flow (lib/flow/flow.h), in one process or in parts:
 *
 *   rank    part I of N reads its stream, and writes 64 bytes for each sequence that
 *           meets the criteria, sorted, and the sums of each group
 *   cut     one job merges the rows of all parts, and tells each part the sequences
 *           beyond the best, 8 bytes each
 *   filter  part I reads its stream again, and leaves out what fails or is beyond
 *
 * In one process an input that can be read twice is; other sequences wait in a log.
 * Values of the property that makes groups are told apart by slu_property_hash; sequences
 * without one are a group. All stages work within any budget, however many groups.
 *
 * Thread safety: one thread at a time on a handle; the calls start threads of their own.
 */
#ifndef SLU_CHOOSE_H
#define SLU_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "criteria.h"
#include "lib/flow/flow.h"

struct slu_top {
    uint64_t num, den; /* den 0: take num tokens or documents; else the fraction
                          num / den of all, num <= den < 2^60 */
    bool documents;    /* num and fraction are of documents, not of tokens */
    const char *per;   /* a property: of each value; NULL: of all */
    const char *by;    /* a property; NULL: the hash */
    uint64_t seed;     /* of the hash */
};

struct slu_choose_cfg { /* borrowed */
    const struct slu_criteria_cfg *criteria;
    const struct slu_top *top; /* NULL: all that meet the criteria */
    uint64_t budget_byte;      /* for all data but the batches in flight */
    const char *tmpdir;
    unsigned n_threads;
    /* Takes the chosen sequences, in stream order; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    /* Opens the input once more; NULL: it cannot be read twice. */
    int (*again)(void *ctx, struct slu_reader **r, struct slu_err *err);
    /* In parts: opens the output stream, before the first emit. */
    int (*open)(void *ctx, struct slu_err *err);
    void *ctx;
};

struct slu_choose_result {
    struct slu_count dropped[SLU_N_WHY]; /* by reason */
    uint64_t groups;                     /* cut: groups with a sequence */
    uint64_t spilled_byte;
};

struct slu_choose;
extern const struct slu_flow_spec slu_choose_spec;

SLU_MUST_USE int slu_choose_new(struct slu_choose **x, const struct slu_choose_cfg *cfg,
                                struct slu_err *err);
/* Passes the whole of r through x, with n_slots batches in flight; call once. */
SLU_MUST_USE int slu_choose_run(struct slu_choose *x, struct slu_reader *r,
                                unsigned n_slots, struct slu_sum *total,
                                struct slu_err *err);
/* For slu_flow_cfg.begin, and to check the stream before an output is opened. */
SLU_MUST_USE int slu_choose_begin(void *x, const struct slu_header *h,
                                  struct slu_names *names, struct slu_err *err);
const struct slu_choose_result *slu_choose_result(const struct slu_choose *x);
/* NULL is legal. */
void slu_choose_free(struct slu_choose *x);

#endif
