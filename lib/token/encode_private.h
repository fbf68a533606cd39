/* encode_private.h - the encoder, between encode.c (texts to pieces) and encode_batch.c
 * (pieces to ids).
 *
 * Pieces wait until they fill a batch, those of several texts together: merging and the
 * look-ups of a batch go side by side, so the more there are in it, the better.
 */
#ifndef SLU_TOK_ENCODE_PRIVATE_H
#define SLU_TOK_ENCODE_PRIVATE_H

#include "lib/token/added.h"
#include "lib/token/bpe.h"
#include "lib/token/hot.h"
#include "lib/token/norm.h"
#include "lib/token/pre.h"
#include "lib/token/sp.h"

#define FRESH_BITS 12

struct slu_encoder {
    const struct slu_tokenizer *t;
    struct pre_scratch pre;
    struct bpe_scratch bpe;
    struct norm_scratch norm;
    struct slu_buf folded; /* sp_prepare's */
    struct words words;
    struct slu_ids *ids; /* of the call that runs */
    /* Of slu_encode_texts: what is around the ids of a text (TOK_NONE: nothing), where
     * those of the text begin that is encoded, and where to put their end. */
    uint32_t bos, eos;
    size_t text_from;
    size_t *text_end;
    /* The first n_wait pieces of `batch` wait: of the text at wait, of which wait_byte
     * bytes can be read. Behind piece end_mark[i] - 1 a text ends. */
    const uint8_t *wait;
    size_t wait_byte, n_wait, n_end;
    uint32_t end_mark[HOT_MOST + 1];
    pieces_fn *find; /* where the only step is a known split */
    hot_find_fn *find_hot;
    /* Of one batch: the pieces that are not in the hot table, behind them those that
     * are not looked for, and slots for both; numbers of those in the wide table, of
     * those that the cache does not know, and of those to be looked for in a second
     * set; ids that have no other place. */
    struct hot_batch batch;
    struct miss {
        struct word_key key; /* of a short piece */
        uint64_t hash;
        uint32_t piece, from, n; /* from, n: its bytes */
        uint32_t place;          /* in a set of the wide table, if it is there */
        const struct word_set *set;
    } miss[HOT_MOST + 1];
    struct word_slot found[HOT_MOST];
    uint32_t known_miss[HOT_MOST + 1], fresh_miss[HOT_MOST + 1],
        beside_miss[HOT_MOST + 1];
    /* The new ones, each once; which of them each new miss is; and by a hash, the last
     * of them. */
    struct word_new fresh[HOT_MOST];
    struct bpe_piece fresh_piece[HOT_MOST];
    uint16_t fresh_of[HOT_MOST], fresh_at[1 << FRESH_BITS];
    struct slu_ids apart;
};

/* The ids of the first k pieces of p (n bytes can be read), whose places are in
 * e->batch. */
int encode_batch(struct slu_encoder *e, const uint8_t *p, size_t n, size_t k,
                 struct slu_err *err);
/* Those of the pieces that wait; then none does. */
int encode_flush(struct slu_encoder *e, struct slu_err *err);
/* The text ends behind the ids, or behind the pieces that wait for theirs. */
int encode_end_text(struct slu_encoder *e, struct slu_err *err);

#endif
