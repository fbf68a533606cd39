/* Mixtures: selects the given number of sequences of each bucket. */
#include <stdlib.h>
#include <string.h>

#include "lib/flow/bytelog.h"
#include "lib/stream/seqrec.h"
#include "mixture.h"

/* What waits of a sequence: this head, the sequence's record (seqrec.h), and zeros up
 * to a multiple of 8 bytes. */
struct head {
    uint64_t n_byte; /* of the record */
    uint64_t key; /* upper HASH_BITS bits: keyed hash; lower BUCKET_BITS bits: bucket */
    uint32_t documents;
    uint32_t no_bucket; /* 1: not of a bucket's length, kept */
};
#define BUCKET_BITS 6
#define HASH_BITS   (64 - BUCKET_BITS)
#define DIGIT_BITS  12
#define DIGITS      (1 << DIGIT_BITS)

_Static_assert(SLU_MAX_BUCKETS <= 1 << BUCKET_BITS, "a bucket's number fits its bits");

/* The selection in one bucket: takes the `left` smallest of the hashes whose digits so
 * far are `prefix`. Smaller hashes are already kept. */
struct digits {
    uint64_t prefix, left;
    bool done; /* hashes below prefix are kept, and `left` equal ones */
};

struct slu_mixing {
    struct slu_mixing_cfg cfg;
    struct slu_seqrec rec;
    struct slu_bytelog *data, *keys;
    size_t max_rec;
    uint64_t n_key[SLU_MAX_BUCKETS];
    uint64_t *count; /* SLU_MAX_BUCKETS x DIGITS: hashes by the current digit */
    struct digits at[SLU_MAX_BUCKETS];
    struct slu_count dropped[SLU_MAX_BUCKETS];
    struct slu_batch
        one; /* with masks: a dropped sequence, to count its trained tokens */
};

int slu_mixing_new(struct slu_mixing **out, const struct slu_mixing_cfg *cfg,
                   struct slu_err *err)
{
    struct slu_mixing *x = calloc(1, sizeof *x);
    size_t n_byte = sizeof *x->count * SLU_MAX_BUCKETS * DIGITS;
    *out = x;
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    slu_seqrec_init(&x->rec);
    slu_batch_init(&x->one, cfg->header->tok_bytes);
    x->one.masks = cfg->header->masks;
    x->count = calloc(1, n_byte);
    int rc = x->count ? SLU_OK : slu_fail_nomem(err, n_byte);
    if (!rc) /* a key takes 8 bytes, its sequence hundreds */
        rc = slu_bytelog_new(&x->keys, cfg->budget_byte / 16, cfg->tmpdir, err);
    if (!rc)
        rc = slu_bytelog_new(&x->data, cfg->budget_byte / 16 * 15, cfg->tmpdir, err);
    if (!rc)
        return SLU_OK;
    slu_mixing_free(x);
    *out = NULL;
    return rc;
}

static inline unsigned bucket_of(uint64_t key)
{
    return (unsigned)(key & (SLU_MAX_BUCKETS - 1));
}

static int add(struct slu_mixing *x, const struct slu_batch *b, const struct slu_seq *q,
               struct slu_err *err)
{
    const struct slu_seg *s = &b->seg[q->seg_off];
    int bucket = slu_header_bucket_of(x->cfg.header, q->len_tok);
    int rc = slu_seqrec_pack(&x->rec, b, q, err);
    if (rc)
        return rc;
    size_t n = slu_seqrec_size(&x->rec);
    struct head h = {n, 0, (uint32_t)slu_seq_count(b, q).documents, bucket < 0};
    x->max_rec = n > x->max_rec ? n : x->max_rec;
    if (bucket >= 0) {
        /* Draw 0 belongs to the random cut at the same place. */
        h.key = slu_draw(x->cfg.seed, s->source, s->document, s->offset, 1);
        h.key = h.key >> BUCKET_BITS << BUCKET_BITS | (unsigned)bucket;
        x->n_key[bucket]++;
        rc = slu_bytelog_put(x->keys, &h.key, sizeof h.key, err);
    }
    return rc ? rc
              : slu_bytelog_put_rec(x->data, &h, sizeof h, x->rec.piece,
                                    SLU_SEQREC_PIECES, err);
}

int slu_mixing_add(struct slu_mixing *x, const struct slu_batch *b, struct slu_err *err)
{
    int rc = SLU_OK;
    for (size_t i = 0; i < b->n_seq && !rc; i++)
        rc = add(x, b, &b->seq[i], err);
    return rc;
}

/* ---- the selection ---- */

/* Counts each bucket's hashes with the known digits, by their digit at `shift`. */
static int count_digit(struct slu_mixing *x, unsigned shift, unsigned bits,
                       struct slu_err *err)
{
    const void *p;
    memset(x->count, 0, sizeof *x->count * SLU_MAX_BUCKETS * DIGITS);
    int rc = slu_bytelog_rewind(x->keys, sizeof(uint64_t), err);
    while (!rc && !(rc = slu_bytelog_get(x->keys, &p, sizeof(uint64_t), err))) {
        uint64_t key, hash;
        memcpy(&key, p, sizeof key);
        hash = key >> BUCKET_BITS;
        unsigned b = bucket_of(key);
        if (!x->at[b].done && hash >> (shift + bits) == x->at[b].prefix)
            x->count[b * DIGITS + (hash >> shift & ((UINT64_C(1) << bits) - 1))]++;
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* Finds the digit's value that holds the last hash to keep. */
static void settle_digit(struct digits *at, const uint64_t *count, unsigned shift,
                         unsigned bits)
{
    uint64_t c = 0;
    while (c < (UINT64_C(1) << bits) && count[c] <= at->left)
        at->left -= count[c++];
    at->prefix = (at->prefix << bits) + c; /* c may be one past the last value */
    if (at->left == 0 || shift == 0) {
        at->prefix <<= shift;
        at->done = true;
    }
}

int slu_mixing_plan(struct slu_mixing *x, const uint64_t *keep, struct slu_err *err)
{
    unsigned shift = HASH_BITS;
    bool all = true;
    for (unsigned i = 0; i < x->cfg.header->n_bucket; i++) {
        x->at[i] = (struct digits){0, keep[i], false};
        if (keep[i] >= x->n_key[i]) /* a prefix above every hash */
            x->at[i] = (struct digits){UINT64_C(1) << HASH_BITS, 0, true};
        else if (!keep[i])
            x->at[i].done = true;
        all = all && x->at[i].done;
    }
    while (!all) {
        unsigned bits = shift < DIGIT_BITS ? shift : DIGIT_BITS;
        shift -= bits;
        int rc = count_digit(x, shift, bits, err);
        if (rc)
            return rc;
        all = true;
        for (unsigned i = 0; i < x->cfg.header->n_bucket; i++) {
            if (!x->at[i].done)
                settle_digit(&x->at[i], x->count + (size_t)i * DIGITS, shift, bits);
            all = all && x->at[i].done;
        }
    }
    size_t most = x->max_rec + 7;
    return slu_bytelog_rewind(
        x->data, most > sizeof(struct head) ? most : sizeof(struct head), err);
}

static bool keep(struct slu_mixing *x, const struct head *h)
{
    struct digits *at = &x->at[bucket_of(h->key)];
    uint64_t hash = h->key >> BUCKET_BITS;
    if (h->no_bucket || hash < at->prefix)
        return true;
    if (hash > at->prefix || !at->left)
        return false;
    at->left--;
    return true;
}

/* Counts a dropped sequence, the record p[0, h->n_byte). */
static int drop(struct slu_mixing *x, const struct head *h, const void *p,
                struct slu_err *err)
{
    struct slu_count n = {h->documents, 1, 0, 0};
    uint64_t n_seg;
    int rc = slu_seqrec_peek(p, h->n_byte, &n.tokens, &n_seg, err);
    if (!rc && x->one.masks) {
        slu_batch_clear(&x->one);
        rc = slu_seqrec_add(&x->one, p, h->n_byte, err);
        n.loss_tokens = rc ? 0 : slu_batch_loss(&x->one, 0, n.tokens);
    }
    if (!rc)
        slu_count_add(&x->dropped[bucket_of(h->key)], n);
    return rc;
}

int slu_mixing_next(struct slu_mixing *x, struct slu_batch *out, uint64_t tok,
                    struct slu_err *err)
{
    slu_batch_clear(out);
    while (out->n_tok < tok && out->n_seq < SLU_FRAME_SEQS) {
        struct head h;
        const void *p;
        int rc = slu_bytelog_get(x->data, &p, sizeof h, err);
        if (rc)
            return rc == SLU_EOF && out->n_seq ? SLU_OK : rc;
        memcpy(&h, p, sizeof h);
        rc = slu_bytelog_get_rest(x->data, &p, h.n_byte, err);
        if (rc)
            return rc;
        rc = keep(x, &h) ? slu_seqrec_add(out, p, h.n_byte, err) : drop(x, &h, p, err);
        if (rc)
            return rc;
    }
    return SLU_OK;
}

const struct slu_count *slu_mixing_dropped(const struct slu_mixing *x)
{
    return x->dropped;
}

uint64_t slu_mixing_spilled(const struct slu_mixing *x)
{
    return slu_bytelog_spilled(x->data) + slu_bytelog_spilled(x->keys);
}

void slu_mixing_free(struct slu_mixing *x)
{
    if (!x)
        return;
    slu_seqrec_release(&x->rec);
    slu_batch_release(&x->one);
    slu_bytelog_free(x->data);
    slu_bytelog_free(x->keys);
    free(x->count);
    free(x);
}
