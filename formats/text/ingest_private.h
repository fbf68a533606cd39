/* ingest_private.h - between ingest.c, ingest_book.c and ingest_long.c: what becomes of
 * a document, how that is booked, and texts that come in parts, put together again in
 * order.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_INGEST_PRIVATE_H
#define SLU_INGEST_PRIVATE_H

#include "formats/text/ingest.h"

/* What became of a record; from FATE_REJECTED on a slu_reject is added. */
enum slu_fate {
    FATE_PART, /* of a text that comes in parts: booked with its last */
    FATE_KEPT,
    FATE_HELD,
    FATE_EMPTY,
    FATE_NOT_SAMPLED,
    FATE_REJECTED,
};

/* One record's, in the order of its block. */
struct slu_fate_row {
    uint64_t what : 8;
    uint64_t value : 56; /* KEPT, HELD: bytes of text; REJECTED: bytes that were in the
                            job's rejects before it */
};

/* What becomes of a document with this text (slu_hash128), if there are ids in it:
 * KEPT, HELD or NOT_SAMPLED. Any thread. */
enum slu_fate slu_ingest_choose(const struct slu_ingest_cfg *cfg, struct slu_u128 text);
/* Whether a choice needs the text's hash. */
bool slu_ingest_chooses(const struct slu_ingest_cfg *cfg);

/* The books of a run. Serial. */
struct slu_ingest_books {
    const struct slu_ingest_cfg *cfg;
    struct slu_ledger *ledger;
    struct slu_ingest_stat *stat;
};
/* A document: n_tok ids, BOS and EOS among them (KEPT and HELD). */
SLU_MUST_USE int slu_ingest_book(struct slu_ingest_books *b, unsigned fate,
                                 uint32_t domain, uint64_t n_tok, uint64_t text_byte,
                                 struct slu_err *err);
/* Those of a block, in order, whose documents are in the two batches, as many as there
 * is room for: *n_done. The batches lose what is behind. */
SLU_MUST_USE int slu_ingest_book_rows(struct slu_ingest_books *b,
                                      const struct slu_fate_row *row, size_t n,
                                      struct slu_batch *kept, struct slu_batch *held,
                                      size_t *n_done, struct slu_err *err);
/* Whether max_tok leaves room for a document of n_tok ids behind n_before that wait; if
 * not, the run ends there. */
bool slu_ingest_fits(struct slu_ingest_books *b, uint64_t n_before, uint64_t n_tok,
                     uint64_t source, uint64_t document);

/* A part of a text. */
struct slu_text_part {
    const struct slu_record_ref *ref; /* as in its block */
    const uint8_t *raw;               /* ref->len bytes */
    const void *tok;                  /* its ids, in the stream's width */
    uint64_t n_tok;
    uint64_t bad_off; /* of its first byte that is no UTF-8, in the text; UINT64_MAX:
                         there is none */
};

struct slu_long_text;

/* Borrows everything; memory_byte bounds what is kept of one text in memory. Caller
 * frees with slu_long_text_free. */
SLU_MUST_USE int slu_long_text_new(struct slu_long_text **t,
                                   const struct slu_ingest_cfg *cfg,
                                   struct slu_ingest_books *books, uint32_t domain,
                                   uint64_t memory_byte, struct slu_err *err);
/* The next part: the text ends with the one that does not go on, and is written,
 * rejected (only with skip_bad), not chosen, or dropped as empty. SLU_EOF: it is past
 * max_tok, which ends the run. */
SLU_MUST_USE int slu_long_text_put(struct slu_long_text *t,
                                   const struct slu_text_part *part,
                                   struct slu_err *err);
/* NULL is legal. */
void slu_long_text_free(struct slu_long_text *t);

#endif
