/* place.h - where a sequence begins: how everything that drops sequences names them.
 *
 * A value; it outlives the batch it was taken from.
 */
#ifndef SLU_DEDUP_PLACE_H
#define SLU_DEDUP_PLACE_H

#include <stdint.h>

#include "lib/stream/batch.h"

/* Source, document and offset of the sequence's first segment. */
struct slu_place {
    uint64_t source, document, offset;
};

/* The source of what is not in the stream: document is a number in an index. */
#define SLU_PLACE_INDEX (UINT64_MAX - 1)

static inline struct slu_place slu_place_of(const struct slu_batch *b,
                                            const struct slu_seq *q)
{
    const struct slu_seg *s = &b->seg[q->seg_off];

    return (struct slu_place){s->source, s->document, s->offset};
}

#endif
