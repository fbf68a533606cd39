/* substring.h - repeated passages: the same n ids in a row at two places of the stream
 * (ExactSubstr: Lee et al., "Deduplicating Training Data Makes Language Models Better",
 * ACL 2022, arXiv 2107.06499), in bounded memory and linear time.
 *
 * Definition. A window is n neighbouring ids of one document in one sequence, none of
 * which is special (eos, bos, pad): windows cross neither documents nor padding nor
 * gaps of an earlier cut. A window is *repeated* if another window has the same ids and
 * ends before the first one begins: in an earlier sequence, or earlier in the same one.
 * (So windows that overlap their first occurrence do not count as its repeats, and of a
 * run of one id the first n stay.) A *passage* is a maximal stretch of ids that repeated
 * windows cover. Each id of a passage also occurs at an earlier place with the same ids
 * around it; by induction on the place, one of these occurrences stays.
 *
 * Cutting removes the passages: a sequence becomes several segments of its documents.
 * In a document that is cut, stretches of fewer than min_keep_tok ids between passages
 * are dropped too, and so are its special ids if no other id stays; a sequence without
 * ids is dropped. Cutting twice changes nothing: no window of the kept text is repeated,
 * and windows do not cross gaps.
 *
 * The steps, for n = 50 (figures in tests/bench/NOTES-dedup.md):
 * 1. substring_scan: each window belongs to a block, by its anchor; there is about one
 *    block for 18 ids. Each block has a record of 24 bytes: (anchor, span, place). The
 *    ids wait in a log.
 * 2. substring_match: records are grouped by anchor. Equal windows have equal anchors at
 *    the same offset, so all windows that equal one of a block are in blocks of its
 *    group; a block that is alone has no repeated window. Blocks with equal spans have
 *    the same windows: all but the first of them are repeated. If a group has several
 *    spans, the first block of each span is asked about, and so are the blocks that
 *    overlap it. No repeat is missed: the first occurrence of a window is in the first
 *    block with its span, or in a block that overlaps that one.
 * 3. The log is read, and each window of the blocks asked about is hashed. Records
 *    (window, place) are grouped as in step 2; all but the first of a group are repeated.
 * 4. Repeated windows, sorted by place, are merged into passages, and the log is read
 *    again and cut.
 * No step looks at pairs: a passage with a million copies costs a million records.
 *
 * Ids are compared by hashes. Two blocks whose anchors differ are confused with
 * probability 2^-128, two blocks with equal anchors with 2^-84 (the rest of the hash of
 * the span), and two windows in step 3 with (n / 2^61)^2 (two polynomials mod 2^61 - 1).
 * For 10^12 ids and 10^6 different spans around each of 10^3 anchors, the probability of
 * any confusion in the whole run is below 10^-9.
 *
 * The order of records, and so the result, depends on neither threads nor budget. In
 * parts, this is a flow over files, substring_flow.h. Thread safety: runs are
 * independent of each other.
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

/* Ids that are not text; the unused elements repeat id[0]. */
struct slu_specials {
    unsigned n;
    uint32_t id[3];
};

/* Adds an id; SLU_NO_TOKEN and repeated ids change nothing. */
void slu_specials_add(struct slu_specials *s, uint64_t id);

/* A passage, and the first position in the stream of its first n ids. */
struct slu_passage {
    struct slu_origin at, first;
    uint64_t len_tok;
};

struct slu_substring_cfg {
    uint64_t budget_byte;        /* for all data but the batches in flight */
    const char *tmpdir;          /* borrowed */
    unsigned n_threads, n_slots; /* batches in flight */
    unsigned n_tok;              /* SLU_PASSAGE_MIN_TOK … SLU_PASSAGE_MAX_TOK */
    uint64_t min_keep_tok;
    bool cut; /* false: sequences stay unchanged */
    /* Takes the sequences that stay, in stream order; may edit the batch. */
    int (*emit)(void *ctx, struct slu_batch *b, struct slu_err *err);
    /* Called with each batch before anything is dropped of it; may be NULL. In one
     * process only. */
    int (*seen)(void *ctx, const struct slu_batch *b, struct slu_err *err);
    /* Takes the passages, in stream order; NULL: not wanted. */
    int (*passage)(void *ctx, const struct slu_passage *p, struct slu_err *err);
    /* Called when a step begins: "scan", "match", "ask", "sort", "write"; may be
     * NULL. */
    void (*timing)(void *ctx, const char *name);
    void *ctx;
};

struct slu_substring_result {
    struct slu_count dropped; /* ids of passages, and whole sequences */
    uint64_t short_tok;       /* ids of stretches shorter than min_keep_tok */
    uint64_t passages, passage_tok;
    uint64_t documents_cut;  /* documents that have a passage */
    uint64_t documents_gone; /* documents of which nothing is left */
    uint64_t blocks, repeated_blocks, asked_blocks;
    uint64_t spilled_byte;
};

/* Reads the whole of r, then reports its passages and emits its sequences. */
SLU_MUST_USE int slu_substring_run(const struct slu_substring_cfg *cfg,
                                   struct slu_reader *r, struct slu_sum *total,
                                   struct slu_substring_result *result,
                                   struct slu_err *err);

SLU_END_DECLS

#endif
