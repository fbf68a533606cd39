/* svg.h - pictures for reports, as SVG 1.1 text: the lengths of a stream or a shard
 * set, and a schedule.
 *
 * A picture stands alone: no script, no link, no font but the reader's own; colours
 * follow the reader's light or dark scheme. It carries a title and a description in
 * words, its figures are in a table below, and the text of others is escaped. Its bytes
 * depend on its arguments alone, and are fewer than SLU_SVG_MOST.
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

/* Sequences by length on a logarithmic axis, four columns an octave: tokens above,
 * sequences below; those that have a bucket's length apart from tails and others; a
 * table of the buckets. */
struct slu_svg_lengths {
    const char *title; /* heading; UTF-8, escaped here; NULL: a plain one */
    const char *note;  /* a line below it; the same; NULL: none */
    const struct slu_length_count *row; /* length in ids: sequences; ascending */
    size_t n_row;
    const uint64_t *bucket; /* nominal lengths, ascending; at most SLU_MAX_BUCKETS */
    unsigned n_bucket;      /* 0: no buckets */
    bool label_tokens;      /* a bucket's sequences have one id more */
    uint64_t documents;     /* == sequences: they are called documents */
    uint64_t padding_tok;
};
SLU_MUST_USE int slu_svg_lengths(const struct slu_svg_lengths *p, struct slu_buf *out,
                                 struct slu_err *err);

/* The sequence length over the steps of a training, and the share of each bucket in the
 * tokens. Steps have equally many tokens and lie in n_bin equal stretches. */
struct slu_svg_schedule {
    const char *title, *note; /* as above */
    const uint64_t *length;   /* of n_bucket buckets, ascending */
    size_t n_bucket;
    const uint64_t *count; /* [bin x n_bucket + bucket]: steps */
    size_t n_bin;          /* at most SLU_SVG_BINS are wanted */
    uint64_t first_step, n_step;
    uint64_t batch_tok; /* of a step */
};
#define SLU_SVG_BINS 160
SLU_MUST_USE int slu_svg_schedule(const struct slu_svg_schedule *p, struct slu_buf *out,
                                  struct slu_err *err);

#endif
