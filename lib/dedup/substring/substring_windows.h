/* substring_windows.h - the windows of blocks that are asked about, hashed (step 3 of
 * substring.h). Private to lib/dedup/substring.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_SUBSTRING_WINDOWS_H
#define SLU_SUBSTRING_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/dedup/substring/substring_walk.h"
#include "lib/flow/table.h"
#include "lib/stream/batch.h"

struct slu_windows {
    const struct slu_specials *special;
    unsigned n_tok;
    struct slu_table *asked; /* borrowed, at its beginning; rows: place << 16 | count */
    struct slu_table *to;    /* borrowed; takes (hash, place << 16 | 1) */
    uint64_t n;              /* that it took */

    uint64_t place, count; /* the next that is asked about, if has */
    bool has;
    uint64_t h[2];   /* two polynomials of a window, */
    uint64_t out[2]; /* what an id that leaves is multiplied by, */
    uint64_t at;     /* and the window's first id, if there is one */
    bool rolling;
};

/* Reads the first. The fields above `n` are the caller's. */
SLU_MUST_USE int slu_windows_begin(struct slu_windows *w, struct slu_err *err);
/* The windows asked for of sequence q of b, at `place`; sequences come in order.
 * SLU_E_CONSERVATION, and nothing in err: one is none of the stream. */
SLU_MUST_USE int slu_windows_seq(struct slu_windows *w, const struct slu_batch *b,
                                 const struct slu_seq *q, uint64_t place,
                                 struct slu_err *err);

#endif
