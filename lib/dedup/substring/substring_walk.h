/* substring_walk.h - places in a stream, and the stretches of text in its sequences.
 *
 * A *place* numbers the ids of a stream. The place of a sequence's first id is the sum
 * of ids and segments of all sequences before it. In a sequence, id i of segment j has
 * the place of the sequence plus i plus the number of the first segment in j's run. A
 * *run* is defined in decompose.h: neighbouring segments that are adjacent in one
 * document. So the places of a run are consecutive, and between two runs at least one
 * place is unused.
 *
 * A *stretch* is a maximal part of a run without special ids; padding has no stretches.
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

/* Number of places that a sequence takes. */
static inline uint64_t slu_seq_places(uint64_t len_tok, uint64_t n_seg)
{
    return len_tok + n_seg;
}

struct slu_walk {
    const struct slu_batch *b;
    const struct slu_seq *q;
    const struct slu_specials *special;
    uint64_t place;     /* place of the sequence */
    uint64_t seg, next; /* segment, and id in the batch, after the run */
    struct slu_run run; /* the current run */
    uint64_t run_place; /* place of the current run */
    uint64_t at;        /* the position reached in it */
    bool has_run;
};

struct slu_stretch {
    uint64_t tok_off; /* position in the batch's tok */
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

/* Sets w->run and w->run_place to the next run, padding included; false at the end. */
bool slu_walk_run(struct slu_walk *w);
/* Returns the next stretch of the run; false at its end. */
bool slu_walk_stretch(struct slu_walk *w, struct slu_stretch *s);

#endif
