/* seen.h - a set of 128-bit hashes in bounded memory, each with the origin of its
 * first occurrence.
 *
 * Open addressing with linear probing. The table doubles until max_byte is reached, and
 * is then full at 7/8. While the table grows, it takes 1.5 times its size. Its memory
 * is mapped, so that freed memory returns to the system. Thread safety: one thread at a
 * time.
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
    struct slu_u128 *hash;     /* n_slot; {0, 0}: empty */
    struct slu_origin *origin; /* n_slot; NULL: they are not stored */
    size_t n, n_slot, max_slot;
    bool origins;
};

enum slu_seen_answer { SLU_SEEN_NEW, SLU_SEEN_KNOWN, SLU_SEEN_FULL };

void slu_seen_init(struct slu_seen *s, uint64_t max_byte, bool origins);
void slu_seen_release(struct slu_seen *s);
/* NEW: the hash was not in the set and now is, with *origin. KNOWN: *origin becomes the
 * first position (if positions are stored). FULL: the hash is not in the set and does
 * not fit. */
SLU_MUST_USE int slu_seen_check(struct slu_seen *s, struct slu_u128 hash,
                                struct slu_origin *origin, enum slu_seen_answer *answer,
                                struct slu_err *err);

#endif
