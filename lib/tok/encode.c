/* encode.c - the encoder: text in, ids out. */
#include "lib/tok/tok.h"

#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/json.h"
#include "lib/tok/added.h"
#include "lib/tok/bpe.h"
#include "lib/tok/norm.h"
#include "lib/tok/pieces.h"
#include "lib/tok/pre.h"
#include "lib/tok/sp.h"
#include "lib/tok/words.h"

/* Pieces that are looked up together: the lines of their cache slots are under way
 * while the keys of the others are made. */
#define BATCH 256
#define MOST  (BATCH + PIECES_SLACK)

struct slu_encoder {
    const struct slu_tokenizer *t;
    struct pre_scratch pre;
    struct bpe_scratch bpe;
    struct norm_scratch norm;
    struct slu_buf folded; /* sp_prepare's */
    struct words words;
    struct slu_ids *ids; /* of the call that runs */
    pieces_fn *find;     /* where the only step is a known split */
    /* Of one batch: the ends of its pieces and the slots with their ids; the pieces
     * that are not in the hot table, and slots for them; of those with too many ids for
     * a slot, the places in `apart`. */
    uint32_t end[MOST];
    const struct word_slot *slot[MOST];
    uint32_t miss[MOST + 1];
    struct word_slot found[MOST];
    struct apart {
        uint32_t piece;
        size_t off, n;
    } long_piece[MOST];
    struct slu_ids apart;
};

int slu_encoder_new(struct slu_encoder **out, const struct slu_tokenizer *t,
                    uint64_t cache_byte, struct slu_err *err)
{
    struct slu_encoder *e = calloc(1, sizeof *e);
    int rc = SLU_OK;

    *out = NULL;
    if (!e)
        return slu_fail_nomem(err, sizeof *e);
    e->t = t;
    if (!t->is_bytes)
        rc = words_init(&e->words, cache_byte, err);
    if (t->pre && t->pre->n == 1 && t->pre->step[0].kind == PRE_SCAN)
        e->find = pieces_by_scan(t->pre->step[0].scan);
    if (rc >= 0)
        rc = norm_scratch_init(&e->norm, t->norm, err);
    if (rc >= 0 && t->pre)
        rc = pre_scratch_init(&e->pre, t->pre, err);
    if (rc < 0) {
        slu_encoder_free(e);
        return rc;
    }
    *out = e;
    return SLU_OK;
}

void slu_encoder_free(struct slu_encoder *e)
{
    if (!e)
        return;
    pre_scratch_release(&e->pre);
    bpe_scratch_release(&e->bpe);
    norm_scratch_release(&e->norm);
    slu_buf_release(&e->folded);
    words_release(&e->words);
    slu_ids_release(&e->apart);
    free(e);
}

/* ---- pieces ---- */

/* Appends n ids. */
static int put_ids(struct slu_ids *ids, const uint32_t *id, size_t n,
                   struct slu_err *err)
{
    int rc = slu_grow(&ids->id, &ids->cap, ids->n + n, sizeof *ids->id, err);

    if (rc < 0)
        return rc;
    memcpy(ids->id + ids->n, id, n * sizeof *id);
    ids->n += n;
    return SLU_OK;
}

/* The slot of a piece of at most 15 bytes that is not in the hot table; or, where it
 * has many ids, these behind e->apart. */
static int find_short(struct slu_encoder *e, const uint8_t *p, size_t n,
                      struct word_key key, struct word_slot *found, struct slu_err *err)
{
    struct words *w = &e->words;
    struct slu_ids *ids = &e->apart;
    uint64_t hash = word_hash(key);
    const struct word_slot *s = word_find(w, key, hash);
    const uint32_t *many;
    size_t first = ids->n, n_id;
    int rc;

    if (s && word_n_id(s) <= WORD_IDS) {
        *found = *s;
        return SLU_OK;
    }
    if (s && (many = word_many(w, s, &n_id)))
        return put_ids(ids, many, n_id, err);
    if ((rc = bpe_encode(e->t->model, &e->bpe, p, n, ids, err)) < 0)
        return rc;
    s = word_put(w, key, hash, ids->id + first, ids->n - first);
    if (ids->n - first <= WORD_IDS) {
        *found = *s;
        ids->n = first;
    }
    return SLU_OK;
}

/* The ids of a longer piece, behind e->apart. */
static int find_long(struct slu_encoder *e, const uint8_t *p, size_t n,
                     struct slu_err *err)
{
    struct slu_ids *ids = &e->apart;
    size_t first = ids->n, n_id;
    const uint32_t *known;
    int rc;

    if (n > WORD_LONG)
        return bpe_encode(e->t->model, &e->bpe, p, n, ids, err);
    uint64_t hash = slu_hash64(p, n);
    if ((known = word_find_far(&e->words, p, n, hash, &n_id)))
        return put_ids(ids, known, n_id, err);
    if ((rc = bpe_encode(e->t->model, &e->bpe, p, n, ids, err)) >= 0)
        word_put_far(&e->words, p, n, hash, ids->id + first, ids->n - first);
    return rc;
}

/* The key of n bytes at p, where n_read can be read. */
static struct word_key key_of(const uint8_t *p, size_t n, size_t n_read)
{
    return n_read >= 16 ? word_key(p, (uint32_t)n) : word_key_at_end(p, (uint32_t)n);
}

/* Looks the k pieces of p up in the hot table. Returns how many are not there; their
 * lines in the wide table are then under way. */
static size_t find_hot(struct slu_encoder *e, const uint8_t *p, size_t n, size_t k)
{
    const struct words *w = &e->words;
    uint32_t from = 0;
    size_t i = 0, n_miss = 0;

    for (; i < k && (size_t)from + 16 <= n; i++) {
        struct word_key key = word_key(p + from, e->end[i] - from);
        const struct word_slot *s = word_hot(w, word_hash(key));
        e->slot[i] = s;
        e->miss[n_miss] = (uint32_t)i;
        n_miss += !word_is(s, key);
        from = e->end[i];
    }
    for (; i < k; i++) {
        struct word_key key = word_key_at_end(p + from, e->end[i] - from);
        const struct word_slot *s = word_hot(w, word_hash(key));
        e->slot[i] = s;
        e->miss[n_miss] = (uint32_t)i;
        n_miss += !word_is(s, key);
        from = e->end[i];
    }
    for (size_t j = 0; j < n_miss; j++) {
        size_t at = e->miss[j];
        from = at ? e->end[at - 1] : 0;
        struct word_key key = key_of(p + from, e->end[at] - from, n - from);
        __builtin_prefetch(word_set(w, word_hash(key)));
    }
    return n_miss;
}

/* The ids of pieces [i, k), all of which have a slot. */
static uint32_t *put_slots(const struct slu_encoder *e, size_t i, size_t k,
                           uint32_t *out)
{
    for (; i < k; i++) {
        const struct word_slot *s = e->slot[i];
        memcpy(out, s->id, sizeof s->id);
        out += word_n_id(s);
    }
    return out;
}

/* The first k pieces of p (n bytes can be read), whose ends are in e->end. */
static int encode_batch(struct slu_encoder *e, const uint8_t *p, size_t n, size_t k,
                        struct slu_err *err)
{
    struct slu_ids *ids = e->ids;
    size_t n_apart = 0, n_miss = find_hot(e, p, n, k), i = 0, need;
    int rc;

    e->apart.n = 0;
    for (size_t j = 0; j < n_miss; j++) {
        size_t at = e->miss[j], from = at ? e->end[at - 1] : 0, len = e->end[at] - from;
        struct apart *a = &e->long_piece[n_apart];
        *a = (struct apart){(uint32_t)at, e->apart.n, 0};
        if (len > WORD_SHORT)
            rc = find_long(e, p + from, len, err);
        else
            rc = find_short(e, p + from, len, key_of(p + from, len, n - from),
                            &e->found[j], err);
        if (rc < 0)
            return rc;
        a->n = e->apart.n - a->off;
        n_apart += a->n > 0;
    }
    need = ids->n + (k + 1) * WORD_IDS + e->apart.n;
    if (need > ids->cap &&
        (rc = slu_grow(&ids->id, &ids->cap, need, sizeof *ids->id, err)) < 0)
        return rc;
    uint32_t *out = ids->id + ids->n;
    for (size_t j = 0, a = 0; j < n_miss; j++) {
        bool is_apart = a < n_apart && e->long_piece[a].piece == e->miss[j];
        if (!is_apart) {
            /* The hot slot is written when nothing points to it any more. */
            e->slot[e->miss[j]] = &e->found[j];
            continue;
        }
        const struct apart *x = &e->long_piece[a++];
        out = put_slots(e, i, x->piece, out);
        memcpy(out, e->apart.id + x->off, x->n * sizeof *out);
        out += x->n;
        i = x->piece + 1;
        e->found[j].key.b = 0;
    }
    out = put_slots(e, i, k, out);
    ids->n = (size_t)(out - ids->id);
    for (size_t j = 0; j < n_miss; j++) {
        const struct word_slot *s = &e->found[j];
        if (s->key.b) {
            struct word_key key = {s->key.a, s->key.b & ~WORD_COUNT_MASK};
            *word_hot(&e->words, word_hash(key)) = *s;
        }
    }
    return SLU_OK;
}

/* Without a cache. */
static int encode_plainly(struct slu_encoder *e, const uint8_t *p, size_t k,
                          struct slu_err *err)
{
    uint32_t from = 0;
    int rc = SLU_OK;

    for (size_t i = 0; i < k && rc >= 0; i++) {
        rc = bpe_encode(e->t->model, &e->bpe, p + from, e->end[i] - from, e->ids, err);
        from = e->end[i];
    }
    return rc;
}

static int emit(void *ctx, const uint8_t *p, size_t n, struct slu_err *err)
{
    struct slu_encoder *e = ctx;

    if (n > UINT32_MAX || !e->words.hot)
        return bpe_encode(e->t->model, &e->bpe, p, n, e->ids, err);
    e->end[0] = (uint32_t)n;
    return encode_batch(e, p, n, 1, err);
}

/* Text that a known split cuts, or that is cut where no token reaches over (sp.h). */
static int encode_split(struct slu_encoder *e, const uint8_t *p, size_t n,
                        struct slu_err *err)
{
    const struct tok_sp *sp = e->t->sp;
    pre_scan_fn *scan = sp ? NULL : e->t->pre->step[0].scan;
    int rc = SLU_OK;

    while (n && rc >= 0) {
        size_t k = sp ? sp_pieces(sp, p, n, e->end, BATCH)
                      : e->find(p, n, e->end, BATCH, scan);
        size_t len;
        if (k) {
            len = e->end[k - 1];
            rc = e->words.hot ? encode_batch(e, p, n, k, err)
                              : encode_plainly(e, p, k, err);
        } else {
            len = sp ? sp_piece(sp, p, n) : scan(p, n, 0);
            rc = bpe_encode(e->t->model, &e->bpe, p, len, e->ids, err);
        }
        p += len;
        n -= len;
    }
    return rc;
}

/* ---- text ---- */

static int encode_bytes(const uint8_t *p, size_t n, struct slu_ids *ids,
                        struct slu_err *err)
{
    size_t need;
    int rc;

    if (slu_add_overflow(ids->n, n, &need))
        return slu_fail_nomem(err, SIZE_MAX);
    if ((rc = slu_grow(&ids->id, &ids->cap, need, sizeof *ids->id, err)) < 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        ids->id[ids->n + i] = p[i];
    ids->n = need;
    return SLU_OK;
}

/* Text without added tokens, normalized. first: with it the document begins. */
static int encode_text(struct slu_encoder *e, const uint8_t *p, size_t n, bool first,
                       struct slu_err *err)
{
    int rc;

    if (!n)
        return SLU_OK;
    if (e->t->is_bytes)
        return encode_bytes(p, n, e->ids, err);
    if (e->t->sp)
        return (rc = sp_prepare(e->t->sp, &e->folded, first, &p, &n, err)) < 0
                   ? rc
                   : encode_split(e, p, n, err);
    if (e->find)
        return encode_split(e, p, n, err);
    return pre_run(e->t->pre, &e->pre, p, n, emit, e, err);
}

static int put_id(struct slu_ids *ids, uint32_t id, struct slu_err *err)
{
    int rc = slu_grow(&ids->id, &ids->cap, ids->n + 1, sizeof *ids->id, err);

    if (rc >= 0)
        ids->id[ids->n++] = id;
    return rc;
}

/* Text without raw added tokens. */
static int encode_part(struct slu_encoder *e, const uint8_t *p, size_t n, bool first,
                       struct slu_err *err)
{
    const struct slu_tokenizer *t = e->t;
    struct added_iter it;
    struct added_part part;
    int rc = SLU_OK;

    if ((rc = norm_run(t->norm, &e->norm, p, n, &p, &n, err)) < 0)
        return rc;
    added_iter_init(&it, t->added, true, t->special_parse, p, n);
    while (rc >= 0 && added_next(&it, &part))
        rc = part.id == TOK_NONE
                 ? encode_text(e, p + part.off, part.len, first && part.off == 0, err)
                 : put_id(e->ids, part.id, err);
    return rc;
}

int slu_encode(struct slu_encoder *e, const char *utf8, size_t n_byte,
               struct slu_ids *ids, struct slu_err *err)
{
    const uint8_t *p = (const uint8_t *)utf8;
    size_t first = ids->n;
    struct added_iter it;
    struct added_part part;
    int rc = SLU_OK;

    if (!e->t->is_bytes) {
        size_t good = slu_utf8_valid_prefix(p, n_byte);
        if (good != n_byte)
            return slu_fail_at(err, SLU_E_FORMAT, good, "byte %zu: not valid UTF-8",
                               good);
    }
    e->ids = ids;
    added_iter_init(&it, e->t->added, false, e->t->special_parse, p, n_byte);
    while (rc >= 0 && added_next(&it, &part))
        rc = part.id == TOK_NONE
                 ? encode_part(e, p + part.off, part.len, part.off == 0, err)
                 : put_id(ids, part.id, err);
    if (rc >= 0 && e->t->sp)
        rc = sp_expand(e->t->sp, e->t, ids, first, err);
    if (rc < 0)
        ids->n = first;
    e->ids = NULL;
    return rc;
}
