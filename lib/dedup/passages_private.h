/* passages_private.h - what passages.c (finding) and passages_replay.c (what reads the
 * sequences back) share; passages_phase_*.c use the functions. Private to them.
 */
#ifndef SLU_PASSAGES_PRIVATE_H
#define SLU_PASSAGES_PRIVATE_H

#include "lib/dedup/passages.h"
#include "lib/dedup/passages_cells.h"
#include "lib/dedup/passages_cut.h"
#include "lib/dedup/passages_match.h"
#include "lib/dedup/passages_ranges.h"
#include "lib/dedup/passages_scan.h"
#include "lib/dedup/passages_windows.h"
#include "lib/stream/seqrec.h"
#include "lib/order/sorter.h"
#include "lib/order/spool.h"

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
    bool more; /* there is a next one */
    struct slu_passages_result result;
};

/* The blocks of a batch, places counted from its first sequence on: a struct slu_keyed
 * each. */
SLU_MUST_USE int slu_passages_scan(struct slu_scan *scan,
                                   const struct slu_specials *special,
                                   const struct slu_batch *b, struct slu_buf *out,
                                   struct slu_err *err);
/* Step 3: the windows of the blocks in `asked` to `windows`. */
SLU_MUST_USE int slu_passages_ask(struct slu_passages *x, struct slu_err *err);
/* Step 4: the sequences, cut or not, and the passages. */
SLU_MUST_USE int slu_passages_emit(struct slu_passages *x, struct slu_err *err);

/* Of step 4. Before the first sequence: reads a range ahead. */
SLU_MUST_USE int slu_passages_first_range(struct slu_passages *x, struct slu_err *err);
/* The ranges of the next sequence, whose places end at `end`: x->range[0 … n_range),
 * and behind them the next one, if there is one. */
SLU_MUST_USE int slu_passages_ranges_of(struct slu_passages *x, uint64_t end,
                                        struct slu_err *err);
/* Tells and cuts the last sequence of b, which has ranges. */
SLU_MUST_USE int slu_passages_apply(struct slu_passages *x, struct slu_batch *b,
                                    uint64_t place, struct slu_err *err);

#endif
