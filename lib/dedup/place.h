/* place.h - where a sequence begins: how everything that drops sequences names them.
 *
 * A value; it outlives the batch it was taken from.
 */
#ifndef SLU_DEDUP_PLACE_H
#define SLU_DEDUP_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/stream/batch.h"

/* Source, document and offset of the sequence's first segment. */
struct slu_place {
    uint64_t source, document, offset;
};

/* The place of item `number` of an index, which is in no stream: only padding has its
 * source, and padding's offset is 0 (formats/STREAM.md). */
static inline struct slu_place slu_place_of_index(uint64_t number)
{
    return (struct slu_place){SLU_PADDING, number, 1};
}

static inline bool slu_place_is_index(const struct slu_place *p)
{
    return p->source == SLU_PADDING && p->offset == 1;
}

static inline struct slu_place slu_place_of(const struct slu_batch *b,
                                            const struct slu_seq *q)
{
    const struct slu_seg *s = &b->seg[q->seg_off];

    return (struct slu_place){s->source, s->document, s->offset};
}

#endif
