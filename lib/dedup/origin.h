/* origin.h - the position by which all modes that drop sequences name them.
 *
 * A value; it outlives its batch.
 */
#ifndef SLU_DEDUP_ORIGIN_H
#define SLU_DEDUP_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/stream/batch.h"

SLU_BEGIN_DECLS

/* Source, document and offset of the sequence's first segment. */
struct slu_origin {
    uint64_t source, document, offset;
};

/* The origin of item `number` of an index, which is not part of the stream: like
 * padding it has no source, but padding's offset is always 0 (formats/STREAM.md). */
static inline struct slu_origin slu_origin_of_index(uint64_t number)
{
    struct slu_origin p = {SLU_PADDING, number, 1};
    return p;
}

static inline bool slu_origin_is_index(const struct slu_origin *p)
{
    return p->source == SLU_PADDING && p->offset == 1;
}

static inline struct slu_origin slu_origin_of(const struct slu_batch *b,
                                              const struct slu_seq *q)
{
    const struct slu_seg *s = &b->seg[q->seg_off];
    struct slu_origin p = {s->source, s->document, s->offset};

    return p;
}

/* The tokens that count, in the parameters of work files: all if they do not say. */
static inline const char *slu_on_param(bool trained)
{
    return trained ? " on=trained" : "";
}

SLU_END_DECLS

#endif
