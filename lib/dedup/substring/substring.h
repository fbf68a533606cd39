/* substring.h - repeated passages: the same n ids in a row at two places of the stream
 * (ExactSubstr: Lee et al., "Deduplicating Training Data Makes Language Models Better",
 * ACL 2022, arXiv 2107.06499), in bounded memory and linear time.
 *
 * Definition. A window is n neighbouring ids of one document in one sequence, none of
 * which is special (eos, bos, pad): windows cross neither documents nor padding nor
 * gaps of an earlier cut. A window is *repeated* if the same ids are a window that ends
 * before it begins: in an earlier sequence, or earlier in the same one. (So windows
 * that overlap their first occurrence do not count as its repeats, and of a run of one
 * id the first n stay.) A *passage* is a maximal stretch of ids that repeated windows
 * cover. Each id of a passage is at an earlier place with the same ids around it; by
 * induction on the place, an equal one stays.
 *
 * Cutting takes the passages out: a sequence becomes one of several segments of its
 * documents. Of a document that is cut, stretches of fewer than min_keep_tok ids
 * between passages go too, and its special ids where nothing else stays; a sequence
 * without ids goes whole. Cutting twice changes nothing: a window of what stays was no
 * repeat, and gaps are not crossed.
 *
 * How, for n = 50 (figures in tests/bench/NOTES.md):
 * 1. substring_scan: each window belongs to a block, by its anchor; about one block for
 *    18 ids. A record of 24 bytes a block: (anchor, span, place). The ids wait on a
 *    tape.
 * 2. substring_match: records meet by anchor. Equal windows have equal anchors at the
 *    same offset, so all windows equal to one of a block are in blocks of its group;
 *    blocks that are alone are done with. Blocks with equal spans have the same
 *    windows: all but the first of them are repeated. Where a group has several spans,
 *    the first block of each span is asked about again, and so are those that overlap
 *    it. Nothing is missed: the first occurrence of a window is in the first block with
 *    its span, or in one that overlaps that.
 * 3. The tape is read; of blocks that were asked about each window is hashed: records
 *    (window, place) meet as in 2. A later one is repeated.
 * 4. What is repeated, sorted by place, is merged into passages, and the tape is read
 *    again and cut.
 * No step looks at pairs: a passage with a million copies costs a million records.
 *
 * Equality is that of hashes: blocks whose anchors differ are confused with chance
 * 2^-128 a pair, those with equal anchors with 2^-84 a pair (the rest of the hash of
 * the span), windows in step 3 with (n / 2^61)^2 a pair (two polynomials mod 2^61 - 1).
 * For 10^12 ids and 10^6 different spans around each of 10^3 anchors that is below
 * 10^-9 for the whole run.
 *
 * The order of records, and so the result, depends on neither threads nor budget.
 * In parts it is a flow over files, substring_flow.h. Thread safety: a run is on its
 * own.
 */
#ifndef SLU_SUBSTRING_H
#define SLU_SUBSTRING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/dedup/origin.h"
#include "lib/stream/account.h"
#include "lib/stream/batch.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

#define SLU_SUBSTRING_MIN_BUDGET (UINT64_C(8) << 20)

/* Ids that are not text; id[n] and further repeat id[0]. */
struct slu_specials {
    unsigned n;
    uint32_t id[3];
};

/* Adds an id; SLU_NO_TOKEN and what is there already change nothing. */
void slu_specials_add(struct slu_specials *s, uint64_t id);

/* A passage, and where the first n ids of it come first in the stream. */
struct slu_passage {
    struct slu_origin at, first;
    uint64_t len_tok;
};

struct slu_substring_cfg {
    uint64_t budget_byte;        /* for everything but the batches in flight */
    const char *tmpdir;          /* borrowed */
    unsigned n_threads, n_slots; /* batches in flight */
    unsigned n_tok;              /* SLU_PASSAGE_MIN_TOK … SLU_PASSAGE_MAX_TOK */
    uint64_t min_keep_tok;
    bool cut; /* else sequences stay as they are */
    /* Takes the sequences that stay, in stream order; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    /* Takes the passages, in stream order; NULL: not wanted. */
    int (*passage)(void *ctx, const struct slu_passage *p, struct slu_err *err);
    /* Told what begins: "scan", "match", "ask", "sort", "write"; may be NULL. */
    void (*timing)(void *ctx, const char *name);
    void *ctx;
};

struct slu_substring_result {
    struct slu_count dropped; /* with the passages: their ids, whole sequences */
    uint64_t short_tok;       /* ids of stretches below min_keep_tok */
    uint64_t passages, passage_tok;
    uint64_t documents_cut;  /* that have a passage, and of these */
    uint64_t documents_gone; /* those of which nothing stays */
    uint64_t blocks, repeated_blocks, asked_blocks;
    uint64_t spilled_byte;
};

/* Reads the whole of r, then tells its passages and emits its sequences. */
SLU_MUST_USE int slu_substring_run(const struct slu_substring_cfg *cfg,
                                   struct slu_reader *r, struct slu_sum *total,
                                   struct slu_substring_result *result,
                                   struct slu_err *err);

SLU_END_DECLS

#endif
