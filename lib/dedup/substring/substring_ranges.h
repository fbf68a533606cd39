/* substring_ranges.h - finds the passages and their first occurrences (step 4 of
 * substring.h), in one process. Private to lib/dedup/substring.
 *
 * Repeats are put as (place, count of windows, first), in any order; slu_ranges_next
 * returns the maximal ranges of places that they cover, in order. First occurrences
 * take three more sorts of ranges: the first window of a range belongs to a block that
 * may itself repeat an earlier one (a repeat or an alias that step 3 found), and the
 * place of the first occurrence becomes (source, document, offset).
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_SUBSTRING_RANGES_H
#define SLU_SUBSTRING_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/dedup/origin.h"
#include "lib/dedup/substring/substring_match.h"
#include "lib/dedup/substring/substring_walk.h"

struct slu_range {
    uint64_t from, to; /* places */
    struct slu_origin first;
};

struct slu_ranges;

/* tmpdir is borrowed. */
SLU_MUST_USE int slu_ranges_new(struct slu_ranges **r, uint64_t budget_byte,
                                const char *tmpdir, unsigned n_threads, unsigned n_tok,
                                struct slu_err *err);
void slu_ranges_free(struct slu_ranges *r);
uint64_t slu_ranges_spilled(const struct slu_ranges *r);

/* Adds the next run of the stream, by its place. */
SLU_MUST_USE int slu_ranges_run(struct slu_ranges *r, const struct slu_run *run,
                                uint64_t place, struct slu_err *err);
/* Sets the limit n_place of places; call before the first slu_ranges_put. */
void slu_ranges_places(struct slu_ranges *r, uint64_t n_place);
/* Adds a repeat or an alias; `exact`: from step 3. */
SLU_MUST_USE int slu_ranges_put(struct slu_ranges *r, const struct slu_found *f,
                                bool exact, struct slu_err *err);
/* Ends the adding. */
SLU_MUST_USE int slu_ranges_seal(struct slu_ranges *r, struct slu_err *err);
/* Returns the next range; SLU_EOF after the last. */
SLU_MUST_USE int slu_ranges_next(struct slu_ranges *r, struct slu_range *to,
                                 struct slu_err *err);

#endif
