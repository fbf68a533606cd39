/* stream_summary.h - what the inputs of a reader say of all their sequences before
 * these are read, as complete files do. slu_reader_finish compares the sums.
 *
 * Thread safety: none.
 */
#ifndef SLU_STREAM_SUMMARY_H
#define SLU_STREAM_SUMMARY_H

#include "stream.h"

SLU_BEGIN_DECLS

struct slu_summary {
    struct slu_sum sum; /* sequences, tokens and checksum; the rest is 0 */
    uint64_t longest;   /* no sequence has more tokens */
    struct slu_u128 id; /* differs if anything in the inputs does */
    bool bucketed;      /* each sequence has a bucket's length, */
    bool by_bucket;     /* and those of a bucket follow one another */
};

/* SLU_EOF: the inputs cannot say it. close: `longest` is to be close to the longest
 * sequence, for which more may have to be read; else it may be the number of all
 * tokens. */
typedef int slu_summary_fn(const void *input, bool close, struct slu_summary *p,
                           struct slu_err *err);
SLU_MUST_USE int slu_reader_summary(const struct slu_reader *r, bool close,
                                    struct slu_summary *p, struct slu_err *err);
/* Adds the summary of a further input. */
void slu_summary_add(struct slu_summary *p, const struct slu_summary *more);
/* Sets the function that summarizes the input of slu_reader_over; without one there is
 * no summary. */
void slu_reader_set_summary(struct slu_reader *r, slu_summary_fn *summary);

SLU_END_DECLS

#endif
