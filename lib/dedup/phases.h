/* phases.h - duplicates in phases, with plain files between: for job arrays.
 *
 *   sign I/N      part I of the stream           -> WORK/sign.I-of-N
 *   merge J/R     all sign files, key range J    -> WORK/merge.J-of-R
 *   verify I/N    all sign and merge files       -> WORK/verify.I-of-N     (near only)
 *   cluster       all of them                    -> WORK/cluster.I-of-N for each I
 *   filter I/N    part I of the stream, cluster.I-of-N -> the stream without duplicates
 *
 * The decisions are those of near_ext.h (of exact.h: twins by the hash of the tokens)
 * over the parts' streams one after another, so the filtered parts, one after another,
 * are what one pass makes. Each phase works within a budget; files are those of
 * workfile.h.
 *
 * A document's ordinal is its place in all parts; "local" is that in its own. Sections,
 * in u64:
 *   sign      0: sets, one after another. 1: of each document six: priority, where in
 *             section 0 its set begins, its length, XXH3-128 of the set (low, high),
 *             XXH3-64 of these five. 2+J: records of key range J, ascending: key, tag,
 *             priority (with keep=first left out), band << 48 | local; band number
 *             `bands` is the set itself (near_groups.h).
 *   merge     I: pairs (local d of part I, k) ascending; N+I: twins (local, first).
 *   verify    0: edges (local d, its rank, k, its rank, intersection, union).
 *   cluster   0: dropped documents (local, witness, intersection, union), ascending.
 * Counts: 0 documents, 1 tokens, 2 and 3 the stream's checksum (low, high), 4 ranges;
 * in cluster also 5 dropped; in verify 5 candidates, 6 edges, 7 capped documents.
 *
 * A phase whose file is there, whole and made from the same things is skipped. What is
 * there and differs is SLU_E_MISMATCH that names the difference, unless `force`.
 *
 * Thread safety: one phase at a time on a cfg; different processes at will.
 */
#ifndef SLU_DEDUP_PHASES_H
#define SLU_DEDUP_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/stream/batch.h"
#include "lib/dedup/shingle.h"
#include "lib/err.h"
#include "lib/stream/stream.h"

struct slu_phase_cfg {
    const char *work; /* folder; made where it is not there */
    uint64_t part, of;
    uint64_t ranges; /* sign: how many; others: 0, or what sign must have had */
    bool force;

    unsigned n_passage_tok; /* 0: else repeated passages, see passages_phases.h */

    bool exact; /* the rest is of near duplicates alone */
    unsigned n_band, n_row, n_gram;
    enum slu_unit unit;
    uint64_t seed;
    const char *keep; /* "first", or the name of an order that prio gives */
    uint64_t num, den, band_cap;
    bool verify;
    /* Priority of a sequence; NULL: all are 0. */
    uint64_t (*prio)(void *ctx, const struct slu_batch *b, const struct slu_seq *q);
    void *ctx;

    uint64_t budget_byte; /* at least 16 MiB; the batches in flight come on top */
    const char *tmpdir;
    unsigned n_threads;
};

struct slu_phase_result {
    bool skipped; /* was there already */
    uint64_t documents, tokens, twins, candidates, edges, capped_documents, dropped;
    uint64_t written_byte; /* of the phase's files */
    uint64_t spilled_byte;
};

/* Reads the whole of r. */
SLU_MUST_USE int slu_phase_sign(const struct slu_phase_cfg *cfg, struct slu_reader *r,
                                unsigned n_slots, struct slu_sum *total,
                                struct slu_phase_result *result, struct slu_err *err);
SLU_MUST_USE int slu_phase_merge(const struct slu_phase_cfg *cfg,
                                 struct slu_phase_result *result, struct slu_err *err);
SLU_MUST_USE int slu_phase_verify(const struct slu_phase_cfg *cfg,
                                  struct slu_phase_result *result, struct slu_err *err);
/* cfg->part and of are not looked at. */
SLU_MUST_USE int slu_phase_cluster(const struct slu_phase_cfg *cfg,
                                   struct slu_phase_result *result,
                                   struct slu_err *err);

struct slu_phase_filter;
/* h: the stream's header. */
SLU_MUST_USE int slu_phase_filter_open(struct slu_phase_filter **f,
                                       const struct slu_phase_cfg *cfg,
                                       const struct slu_header *h, struct slu_err *err);
/* Takes out of b, the next of the stream, what is dropped; adds to *dropped. */
SLU_MUST_USE int slu_phase_filter_batch(struct slu_phase_filter *f, struct slu_batch *b,
                                        struct slu_count *dropped, struct slu_err *err);
/* After the whole of r, which was tracked: SLU_E_MISMATCH where the stream was not the
 * one that was signed. */
SLU_MUST_USE int slu_phase_filter_end(struct slu_phase_filter *f, struct slu_reader *r,
                                      const struct slu_sum *total, struct slu_err *err);
/* NULL is legal. */
void slu_phase_filter_free(struct slu_phase_filter *f);

#endif
