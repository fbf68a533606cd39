/* passages_phase_private.h - what the phases of passages_phases.h share. Private to
 * lib/dedup/passages_phase_*.c.
 */
#ifndef SLU_PASSAGES_PHASE_PRIVATE_H
#define SLU_PASSAGES_PHASE_PRIVATE_H

#include "lib/dedup/passages_cells_private.h"
#include "lib/dedup/passages_phases.h"
#include "lib/dedup/passages_private.h"
#include "lib/dedup/phases_private.h"

_Static_assert(sizeof(struct slu_keyed) == 24, "three numbers of a file");
enum { KEYED = 3 };

/* A phase's own file. */
struct slu_phase_own {
    struct slu_workfile_head want, is; /* is: if done */
    char *path, *param;                /* of want */
    bool done;
};

/* Whether it is there; want has kind, part, of, fingerprint and inputs. */
SLU_MUST_USE int slu_phase_own(struct slu_phase_own *o, const struct slu_phase_cfg *c,
                               uint64_t n_range, struct slu_err *err);
void slu_phase_own_release(struct slu_phase_own *o);

/* What ids mean, and which are none: equal in all parts. */
uint64_t slu_passages_special_hash(const struct slu_header *h);

/* The next run of a section of f, streamed, whose places must be below n_place; SLU_EOF
 * at its end. */
SLU_MUST_USE int slu_passages_next_run(struct slu_workfile *f, uint64_t n_place,
                                       uint64_t *place, uint64_t *count,
                                       struct slu_err *err);

/* "the stream is not the one that part I/N was signed from". */
SLU_MUST_USE int slu_passages_other_stream(uint64_t part, uint64_t of,
                                           struct slu_err *err);

#endif
