/* substring_windows.h - hashes the windows of the blocks that are asked about (step 3
 * of substring.h). Private to lib/dedup/substring.
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
    struct slu_table *asked; /* borrowed, at its first row; rows: place << 16 | count */
    struct slu_table *to;    /* borrowed; receives (hash, place << 16 | 1) */
    uint64_t n;              /* number of rows that `to` received */

    uint64_t place, count; /* the next windows to hash, if `has` is set */
    bool has;
    uint64_t h[2];   /* two polynomials of a window */
    uint64_t out[2]; /* the factors of the id that leaves the window */
    uint64_t at;     /* position of the window's first id, if there is a window */
    bool rolling;
};

/* Reads the first row. The caller sets the fields above `n`. */
SLU_MUST_USE int slu_windows_begin(struct slu_windows *w, struct slu_err *err);
/* Hashes the windows asked for in sequence q of b, at `place`; sequences come in order.
 * SLU_E_CONSERVATION, with an empty err, if a window is not in the stream. */
SLU_MUST_USE int slu_windows_seq(struct slu_windows *w, const struct slu_batch *b,
                                 const struct slu_seq *q, uint64_t place,
                                 struct slu_err *err);

#endif
