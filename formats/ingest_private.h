/* ingest_private.h - between ingest.c and ingest_long.c: texts that come in parts, put
 * together again in order, and what is said about them in the ledger.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_INGEST_PRIVATE_H
#define SLU_INGEST_PRIVATE_H

#include "formats/ingest.h"

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
                                   const struct slu_ingest_cfg *cfg, uint32_t domain,
                                   uint64_t memory_byte, struct slu_ledger *ledger,
                                   struct slu_ingest_stat *stat, struct slu_err *err);
/* The next part: the text ends with the one that does not go on, and is written,
 * rejected (only with skip_bad) or dropped as empty. */
SLU_MUST_USE int slu_long_text_put(struct slu_long_text *t,
                                   const struct slu_text_part *part,
                                   struct slu_err *err);
/* NULL is legal. */
void slu_long_text_free(struct slu_long_text *t);

/* Whether the document goes to holdout_out. */
bool slu_ingest_is_held(const struct slu_ingest_cfg *cfg,
                        const struct slu_record_ref *ref);

#endif
