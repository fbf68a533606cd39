/* substring_walk.h - places in a stream, and the stretches of text in its sequences.
 *
 * A *place* numbers the ids of a stream: that of a sequence's first id is the sum over
 * the sequences before it of ids and segments; within it, id i of segment j is i + (the
 * first segment of j's run) further. A *run* is what decompose.h calls one:
 * neighbouring segments that continue one another in a document. So the places of a run
 * are neighbours, and between runs there is at least one place that no id has.
 *
 * A *stretch* is a maximal part of a run, not padding, without special ids.
 *
 * Pure functions on the caller's state; safe from any thread.
 */
#ifndef SLU_SUBSTRING_WALK_H
#define SLU_SUBSTRING_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/decompose/decompose.h"
#include "lib/dedup/substring/substring.h"
#include "lib/stream/batch.h"

/* Places that a sequence takes. */
static inline uint64_t slu_seq_places(uint64_t len_tok, uint64_t n_seg)
{
    return len_tok + n_seg;
}

struct slu_walk {
    const struct slu_batch *b;
    const struct slu_seq *q;
    const struct slu_specials *special;
    uint64_t place;     /* of the sequence */
    uint64_t seg, next; /* of the run's successor: segment, id in the batch */
    struct slu_run run; /* the run at hand; */
    uint64_t run_place; /* its place, */
    uint64_t at;        /* and what of it has been walked */
    bool has_run;
};

struct slu_stretch {
    uint64_t tok_off; /* in the batch's tok */
    uint64_t len_tok;
    uint64_t place;
};

static inline void slu_walk_init(struct slu_walk *w, const struct slu_batch *b,
                                 const struct slu_seq *q,
                                 const struct slu_specials *special, uint64_t place)
{
    *w = (struct slu_walk){
        .b = b, .q = q, .special = special, .place = place, .next = q->tok_off};
}

/* The next run into w->run and w->run_place, padding included; false at the end. */
bool slu_walk_run(struct slu_walk *w);
/* The next stretch of the run; false at its end. */
bool slu_walk_stretch(struct slu_walk *w, struct slu_stretch *s);

#endif
