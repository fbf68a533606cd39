/* svg.h - pictures for reports, as SVG 1.1 text: the lengths of a stream or a shard
 * set, and a schedule.
 *
 * A picture stands alone: no script, no link, no font but the reader's own; colours
 * follow the reader's light or dark scheme. It has a title, a description in words and
 * a table of its figures; text from outside is escaped. Its bytes depend on its
 * arguments alone, and are fewer than SLU_SVG_MOST.
 *
 * Pure functions of their arguments; safe from any thread.
 */
#ifndef SLU_SVG_H
#define SLU_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lengths.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#define SLU_SVG_MOST (50 * 1000) /* bytes of a picture */

/* Sequences by length on a logarithmic axis, four columns per octave: tokens above,
 * sequences below. Bucket lengths, tails and other lengths have colours of their own; a
 * table lists the buckets. */
struct slu_svg_lengths {
    const char *title;                  /* heading, UTF-8; NULL: made from the counts */
    const char *note;                   /* line below the heading, UTF-8; NULL: none */
    const struct slu_length_count *row; /* sequences by length in ids, ascending */
    size_t n_row;
    const uint64_t *bucket; /* nominal lengths, ascending; at most SLU_MAX_BUCKETS */
    unsigned n_bucket;      /* 0: no buckets */
    bool label_tokens;      /* a bucket's sequences have one id more */
    /* If there are as many sequences, and no buckets, they are called documents. */
    uint64_t documents;
    uint64_t padding_tok;
};
SLU_MUST_USE int slu_svg_lengths(const struct slu_svg_lengths *p, struct slu_buf *out,
                                 struct slu_err *err);

/* The lengths and scores of the first groups of a list (groups.h), a line and a box for
 * each. what: the name of what groups have, UTF-8, as "domain". */
struct slu_group;
SLU_MUST_USE int slu_svg_groups(const struct slu_group *g, size_t n, const char *what,
                                const char *title, struct slu_buf *out,
                                struct slu_err *err);

/* The sequence length over the steps of a training, and the share of each bucket in the
 * tokens. All steps have the same number of tokens; they lie in n_bin equal bins. */
struct slu_svg_schedule {
    const char *title, *note; /* as above */
    const uint64_t *length;   /* of n_bucket buckets, ascending */
    size_t n_bucket;
    const uint64_t *count; /* [bin x n_bucket + bucket]: steps */
    size_t n_bin;          /* at most SLU_SVG_BINS, for SLU_SVG_MOST to hold */
    uint64_t first_step, n_step;
    uint64_t batch_tok; /* tokens per step */
};
#define SLU_SVG_BINS 160
SLU_MUST_USE int slu_svg_schedule(const struct slu_svg_schedule *p, struct slu_buf *out,
                                  struct slu_err *err);

#endif
