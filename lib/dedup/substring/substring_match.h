/* substring_match.h - finds the repeated ones among blocks, and among windows, with
 * equal keys (steps 2 and 3 of substring.h). Private to lib/dedup/substring.
 */
#ifndef SLU_SUBSTRING_MATCH_H
#define SLU_SUBSTRING_MATCH_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/dedup/substring/substring_scan.h"
#include "lib/flow/grouper.h"

enum slu_found_kind {
    SLU_FOUND_REPEAT, /* count windows from `place` on equal those from `first` on */
    SLU_FOUND_ASK,    /* count windows from `place` on must be compared one by one */
    SLU_FOUND_ALIAS,  /* the window equals the window at `first`, which it overlaps */
};

struct slu_found {
    uint64_t place, first;
    uint32_t count, kind;
};

/* Sets all fields that slu_grouper_run needs, except n_tok, take and ctx. */
void slu_match_blocks(struct slu_group_ops *ops);
void slu_match_windows(struct slu_group_ops *ops);

#endif
