/* passages_private.h - what passages.c (finding) and passages_replay.c (what reads the
 * sequences back) share. Private to them.
 */
#ifndef SLU_PASSAGES_PRIVATE_H
#define SLU_PASSAGES_PRIVATE_H

#include "lib/dedup/passages.h"
#include "lib/dedup/passages_cells.h"
#include "lib/dedup/passages_cut.h"
#include "lib/dedup/passages_match.h"
#include "lib/dedup/passages_ranges.h"
#include "lib/dedup/passages_scan.h"
#include "lib/seqrec.h"
#include "lib/sorter.h"
#include "lib/spool.h"

struct slu_passages {
    struct slu_passages_cfg cfg;
    char *tmpdir;
    uint64_t cells_byte, work_byte, asked_byte;
    struct slu_scan scan; /* of slu_passages_put */
    struct slu_buf found;
    struct slu_spool *spool; /* the sequences */
    size_t max_record;
    uint64_t n_seq, n_place;
    unsigned spread; /* places << spread use all of 64 bits */
    struct slu_cells *blocks, *windows;
    struct slu_sorter *asked; /* key: place; bytes: count of windows */
    struct slu_ranges *ranges;
    struct slu_seqrec rec;

    struct slu_gaps cut;
    struct slu_range *range; /* those of a sequence, and the next */
    size_t n_range, cap_range;
    struct slu_passages_result result;
};

/* Step 3: the windows of the blocks in `asked` to `windows`. */
SLU_MUST_USE int slu_passages_ask(struct slu_passages *x, struct slu_err *err);
/* Step 4: the sequences, cut or not, and the passages. */
SLU_MUST_USE int slu_passages_emit(struct slu_passages *x, struct slu_err *err);

#endif
