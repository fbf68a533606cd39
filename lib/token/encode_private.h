/* encode_private.h - struct slu_encoder, shared by encode.c (texts to pretokens) and
 * encode_batch.c (pretokens to ids).
 *
 * Pretokens, also of several texts, wait until they fill a batch. The merges and look-ups
 * of a batch overlap, so a full batch takes less time per pretoken.
 */
#ifndef SLU_TOK_ENCODE_PRIVATE_H
#define SLU_TOK_ENCODE_PRIVATE_H

#include "lib/token/added.h"
#include "lib/token/align.h"
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
    struct slu_buf folded;      /* the text that sp_prepare makes */
    struct norm_align align[2]; /* of align.c: of a text between added tokens, and of a
                                   part of it that sp_prepare changes */
    struct words words;
    struct slu_ids *ids; /* of the current call */
    uint32_t bos, eos;   /* slu_encode_texts: ids around those of a text, or TOK_NONE */
    size_t text_from;    /* where the ids of the current text begin in *ids */
    size_t *text_end;    /* where to write their end */
    /* The first n_wait pretokens of `batch` wait. They are of the text at `wait`, of which
     * wait_byte bytes can be read. A text ends after pretoken end_mark[i] - 1. */
    const uint8_t *wait;
    size_t wait_byte, n_wait, n_end;
    uint32_t end_mark[HOT_MOST + 1];
    pretokens_fn *find; /* NULL: a known split is not the only step */
    hot_find_fn *find_hot;
    /* One batch. miss: the pretokens that are not in the hot table, then those that are
     * skipped; found: slots of both. known_miss, fresh_miss, beside_miss: indices in
     * miss of pretokens in the wide table, of new pretokens, and of pretokens to look up in a
     * second set. apart: ids that are in no table. */
    struct hot_batch batch;
    struct miss {
        struct word_key key; /* of a short pretoken */
        uint64_t hash;
        uint32_t pretoken, from, n; /* from, n: its bytes */
        uint32_t place;             /* in a set of the wide table, if it is there */
        const struct word_set *set;
    } miss[HOT_MOST + 1];
    struct word_slot found[HOT_MOST];
    uint32_t known_miss[HOT_MOST + 1], fresh_miss[HOT_MOST + 1],
        beside_miss[HOT_MOST + 1];
    /* fresh, fresh_pretoken: the new pretokens, each once. fresh_of: the index in them of
     * each new miss. fresh_at: by a hash, the last such index. */
    struct word_new fresh[HOT_MOST];
    struct bpe_pretoken fresh_pretoken[HOT_MOST];
    uint16_t fresh_of[HOT_MOST], fresh_at[1 << FRESH_BITS];
    struct slu_ids apart;
    uint64_t left; /* as in struct added_iter, of all calls */
    uint32_t least;
};

/* Appends the ids of the first k pretokens of p (n bytes can be read), whose places are in
 * e->batch. */
int encode_batch(struct slu_encoder *e, const uint8_t *p, size_t n, size_t k,
                 struct slu_err *err);
/* Appends the ids of the waiting pretokens. */
int encode_flush(struct slu_encoder *e, struct slu_err *err);
/* Ends the current text after its ids, or after its waiting pretokens. */
int encode_end_text(struct slu_encoder *e, struct slu_err *err);

#endif
