/* ingest_private.h - shared by ingest.c, ingest_account.c and ingest_long.c: the
 * outcome of a document, its counts, and texts that come in parts, put together again
 * in order.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_INGEST_PRIVATE_H
#define SLU_INGEST_PRIVATE_H

#include "formats/text/ingest.h"

/* The outcome of a record. Values from OUTCOME_REJECTED to OUTCOME_RULE: plus a
 * slu_reject. */
enum slu_outcome {
    OUTCOME_PART, /* of a text in parts: counted with its last part */
    OUTCOME_KEPT,
    OUTCOME_HELD,
    OUTCOME_EMPTY,
    OUTCOME_UNTRAINED, /* no token is trained on */
    OUTCOME_NOT_SAMPLED,
    OUTCOME_REJECTED,
    OUTCOME_RULE = OUTCOME_REJECTED + SLU_REJECT_N, /* plus a slu_rule */
};

/* The outcome of one record, in the order of its block. */
#define SLU_OUTCOME_MAX ((UINT64_C(1) << 56) - 1)
struct slu_outcome_row {
    uint64_t what : 8;
    /* KEPT, HELD: bytes of text; REJECTED: offset of its line in the job's rejects. A
     * filter is a reason too (slu_reject_is_filter). */
    uint64_t value : 56;
    uint32_t lacks; /* as in struct slu_record; above these cfg->metadata */
};

/* Returns the outcome of a document with this text (slu_hash128) and at least one id:
 * KEPT, HELD or NOT_SAMPLED. Any thread. */
enum slu_outcome slu_ingest_choose(const struct slu_ingest_cfg *cfg,
                                   struct slu_u128 text);
/* Whether the outcome depends on the text's hash. */
bool slu_ingest_chooses(const struct slu_ingest_cfg *cfg);
/* Returns what the record of a text lacks that is a document of its own: all wanted
 * fields but the text. */
unsigned slu_ingest_lacks(const struct slu_ingest_cfg *cfg);

/* The counts of a run. Serial. */
struct slu_ingest_account {
    const struct slu_ingest_cfg *cfg;
    struct slu_account *account;
    struct slu_ingest_stat *stat;
};
/* Counts a document with this outcome and text. n_tok: its ids, with BOS and EOS if
 * KEPT or HELD; n_loss: those trained on. */
SLU_MUST_USE int slu_ingest_account(struct slu_ingest_account *b,
                                    struct slu_outcome_row row, uint32_t domain,
                                    uint64_t n_tok, uint64_t n_loss,
                                    struct slu_err *err);
/* Counts a block's records, in order; their documents are in the two batches. Stops
 * where max_tok ends the run: *n_done were counted, and the batches lose the rest. */
SLU_MUST_USE int slu_ingest_account_rows(struct slu_ingest_account *b,
                                         const struct slu_outcome_row *row, size_t n,
                                         struct slu_batch *kept, struct slu_batch *held,
                                         size_t *n_done, struct slu_err *err);
/* Whether max_tok leaves room for a document of n_tok ids after n_before waiting ones;
 * if not, the run ends there. */
bool slu_ingest_fits(struct slu_ingest_account *b, uint64_t n_before, uint64_t n_tok,
                     uint64_t source, uint64_t document);

/* A part of a text. */
struct slu_text_part {
    const struct slu_record_ref *ref; /* as in the record's block */
    const uint8_t *raw;               /* ref->len bytes */
    const void *tok;                  /* the part's ids, in the stream's width */
    uint64_t n_tok;
    /* offset in the text of the first byte that is not UTF-8; UINT64_MAX: none */
    uint64_t bad_off;
};

struct slu_long_text;

/* Borrows all arguments; memory_byte limits the memory for one text. Caller frees with
 * slu_long_text_free. */
SLU_MUST_USE int slu_long_text_new(struct slu_long_text **t,
                                   const struct slu_ingest_cfg *cfg,
                                   struct slu_ingest_account *account,
                                   uint64_t memory_byte, struct slu_err *err);
/* Adds the next part. The text ends with the first part that does not go on; then it is
 * written, rejected (only with skip_bad), left out of the sample, or dropped as empty.
 * SLU_EOF: it exceeds max_tok, which ends the run. */
SLU_MUST_USE int slu_long_text_put(struct slu_long_text *t,
                                   const struct slu_text_part *part,
                                   struct slu_err *err);
/* NULL is legal. */
void slu_long_text_free(struct slu_long_text *t);

#endif
