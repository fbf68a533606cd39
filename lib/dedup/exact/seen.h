/* seen.h - a set of 128-bit hashes in bounded memory, each with the place it was first
 * seen.
 *
 * Open addressing with linear probing, doubled until max_byte is reached, then full at
 * 7/8. While it grows it takes 1.5 times its size. Memory is mapped, so that what is
 * freed goes back. Thread safety: one thread at a time.
 */
#ifndef SLU_DEDUP_SEEN_H
#define SLU_DEDUP_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/dedup/origin.h"

struct slu_seen {
    struct slu_u128 *hash;    /* n_slot; {0, 0}: empty */
    struct slu_origin *place; /* n_slot, or NULL where places are not kept */
    size_t n, n_slot, max_slot;
    bool places;
};

enum slu_seen_answer { SLU_SEEN_NEW, SLU_SEEN_KNOWN, SLU_SEEN_FULL };

void slu_seen_init(struct slu_seen *s, uint64_t max_byte, bool places);
void slu_seen_release(struct slu_seen *s);
/* NEW: was not there and now is, with *place. KNOWN: *place becomes that of the first
 * (if places are kept). FULL: is not there and does not fit. */
SLU_MUST_USE int slu_seen_check(struct slu_seen *s, struct slu_u128 hash,
                                struct slu_origin *place, enum slu_seen_answer *answer,
                                struct slu_err *err);

#endif
