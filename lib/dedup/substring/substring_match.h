/* substring_match.h - what follows from blocks, and then from windows, that meet
 * (steps 2 and 3 of substring.h). Private to lib/dedup/substring.
 */
#ifndef SLU_SUBSTRING_MATCH_H
#define SLU_SUBSTRING_MATCH_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/dedup/substring/substring_scan.h"
#include "lib/flow/cells.h"

enum slu_found_kind {
    SLU_FOUND_REPEAT, /* count windows from `place` on are those from `first` on */
    SLU_FOUND_ASK,    /* count windows from `place` on must be looked at */
    SLU_FOUND_ALIAS,  /* the window is that at `first`, which it overlaps */
};

struct slu_found {
    uint64_t place, first;
    uint32_t count, kind;
};

/* Set what slu_cells_groups needs but for n_tok, take and ctx. */
void slu_match_blocks(struct slu_meet_ops *ops);
void slu_match_windows(struct slu_meet_ops *ops);

#endif
