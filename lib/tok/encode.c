/* encode.c - the encoder: text in, ids out. */
#include "lib/tok/tok.h"

#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/json.h"
#include "lib/tok/added.h"
#include "lib/tok/bpe.h"
#include "lib/tok/hot.h"
#include "lib/tok/norm.h"
#include "lib/tok/pre.h"
#include "lib/tok/sp.h"

struct slu_encoder {
    const struct slu_tokenizer *t;
    struct pre_scratch pre;
    struct bpe_scratch bpe;
    struct norm_scratch norm;
    struct slu_buf folded; /* sp_prepare's */
    struct words words;
    struct slu_ids *ids; /* of the call that runs */
    pieces_fn *find;     /* where the only step is a known split */
    hot_find_fn *find_hot;
    /* Of one batch: the pieces that are not in the hot table, behind them those that
     * are not looked for, and slots for both; numbers of those in the wide table, and
     * of those that the cache does not know; ids that have no other place. */
    struct hot_batch batch;
    struct miss {
        struct word_key key; /* of a short piece */
        uint64_t hash;
        uint32_t piece, from, n; /* from, n: its bytes */
        uint32_t place;          /* in its set of the wide table, if it is there */
    } miss[HOT_MOST + 1];
    struct word_slot found[HOT_MOST];
    uint32_t known_miss[HOT_MOST + 1], fresh_miss[HOT_MOST + 1];
    struct word_new fresh[HOT_MOST];
    struct bpe_piece fresh_piece[HOT_MOST];
    struct slu_ids apart;
};

static int encoder_new(struct slu_encoder **out, const struct slu_tokenizer *t,
                       uint64_t cache_byte, struct slu_encoder *with,
                       struct slu_err *err)
{
    struct slu_encoder *e = calloc(1, sizeof *e);
    int rc = SLU_OK;

    *out = NULL;
    if (!e)
        return slu_fail_nomem(err, sizeof *e);
    e->t = t;
    if (with)
        rc = words_share(&e->words, &with->words, err);
    else if (!t->is_bytes)
        rc = words_init(&e->words, cache_byte, err);
    e->bpe.level = bpe_merge_level(pieces_level());
    e->find_hot = hot_find_of_level(pieces_level());
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

int slu_encoder_new(struct slu_encoder **out, const struct slu_tokenizer *t,
                    uint64_t cache_byte, struct slu_err *err)
{
    return encoder_new(out, t, cache_byte, NULL, err);
}

int slu_encoder_new_sharing(struct slu_encoder **out, struct slu_encoder *with,
                            struct slu_err *err)
{
    return encoder_new(out, with->t, 0, with, err);
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

/* Without a cache. */
static int encode_plainly(struct slu_encoder *e, const uint8_t *p, size_t k,
                          struct slu_err *err)
{
    const uint32_t *at = e->batch.at;
    int rc = SLU_OK;

    for (size_t i = 0; i < k && rc >= 0; i++)
        rc =
            bpe_encode(e->t->model, &e->bpe, p + at[i], at[i + 1] - at[i], e->ids, err);
    return rc;
}

/* What the cache knows of the pieces that are not in the hot table, to e->found; lists
 * those that are new. Returns how many. */
static size_t find_known(struct slu_encoder *e, const uint8_t *p)
{
    struct words *w = &e->words;
    size_t n_new = 0, n_known = 0;

    for (size_t j = 0; j < e->batch.n_miss; j++) {
        struct miss *m = &e->miss[j];
        bool is_new;
        if (m->n <= WORD_SHORT) {
            const struct word_set *set = word_set(w->view, m->hash);
            const unsigned is = word_find(set, m->key);
            is_new = !is;
            m->place = (uint32_t)__builtin_ctz(is | 1 << (WORD_SET - 1));
            __builtin_prefetch(word_ids(w, set, m->place));
            e->known_miss[n_known] = (uint32_t)j;
            n_known += !is_new;
        } else {
            is_new = m->n > WORD_LONG ||
                     !word_find_long(w, p + m->from, m->n, m->hash, &e->found[j]);
        }
        e->fresh_miss[n_new] = (uint32_t)j;
        word_looked(w, m->n, is_new);
        n_new += is_new;
    }
    for (size_t i = 0; i < n_known; i++) {
        const uint32_t j = e->known_miss[i];
        const struct miss *m = &e->miss[j];
        e->found[j] = word_at(w, word_set(w->view, m->hash), m->place);
    }
    return n_new;
}

/* The slot of a piece whose n ids are at e->apart.id + first, with others or room for
 * them behind. How many there are cannot be predicted, so there is no branch. */
static inline struct word_slot slot_apart(const struct slu_encoder *e,
                                          struct word_key key, size_t first, size_t n)
{
    struct word_slot s = {key, {0}};
    uint32_t many = -(uint32_t)(n > WORD_IDS);
    uint64_t count = ((n - 1) & ~(uint64_t)many) | (WORD_MANY & many);
    const uint32_t apart[WORD_IDS] = {
        [MANY_OFF] = (uint32_t)first, [MANY_N] = (uint32_t)n, [MANY_APART] = 1};

    s.key.b |= count << WORD_COUNT_SHIFT;
    memcpy(s.id, e->apart.id + first, sizeof s.id);
    for (unsigned i = 0; i < WORD_IDS; i++)
        s.id[i] = (s.id[i] & ~many) | (apart[i] & many);
    return s;
}

/* Pieces that the cache does not know, by BPE: n_new of the misses, and those behind
 * them, which nobody has looked for. n bytes of p can be read. */
static int encode_new(struct slu_encoder *e, const uint8_t *p, size_t n, size_t n_new,
                      struct slu_err *err)
{
    struct slu_ids *ids = &e->apart;
    struct bpe_piece *piece = e->fresh_piece;
    const uint32_t *fresh = e->fresh_miss;
    const size_t n_look = e->batch.n_miss, n_skip = e->batch.n_skipped;
    const struct word_key none = {0, 0};
    int rc;

    ids->n = 0;
    for (size_t i = 0; i < n_new; i++) {
        const struct miss *m = &e->miss[fresh[i]];
        const uint8_t *at = m->n <= WORD_SHORT ? (const uint8_t *)&m->key : p + m->from;
        piece[i] = (struct bpe_piece){.p = at, .n = m->n};
    }
    for (size_t j = 0; j < n_skip; j++) {
        struct miss *m = &e->miss[n_look + j];
        const uint8_t *at = p + m->from;
        if (n - m->from < 16 && m->n <= WORD_SHORT) {
            m->key = word_key_at_end(at, m->n);
            at = (const uint8_t *)&m->key;
        }
        piece[n_new + j] = (struct bpe_piece){.p = at, .n = m->n};
    }
    if ((rc = bpe_encode_many(e->t->model, &e->bpe, piece, n_new + n_skip, ids, err)) <
            0 ||
        (rc = slu_grow(&ids->id, &ids->cap, ids->n + WORD_MANY, sizeof *ids->id, err)) <
            0)
        return rc;
    for (size_t i = 0; i < n_new; i++) {
        const struct miss *m = &e->miss[fresh[i]];
        struct word_key key = m->n <= WORD_SHORT ? m->key : none;
        e->fresh[i] = (struct word_new){.p = piece[i].p,
                                        .n = m->n,
                                        .key = m->key,
                                        .hash = m->hash,
                                        .id = ids->id + piece[i].at,
                                        .n_id = piece[i].n_id};
        e->found[fresh[i]] = slot_apart(e, key, piece[i].at, piece[i].n_id);
    }
    for (size_t j = 0; j < n_skip; j++)
        e->found[n_look + j] =
            slot_apart(e, none, piece[n_new + j].at, piece[n_new + j].n_id);
    return SLU_OK;
}

/* The key of n bytes at p, where n_read can be read. */
static struct word_key key_of(const uint8_t *p, size_t n, size_t n_read)
{
    return n_read >= 16 ? word_key(p, (uint32_t)n) : word_key_at_end(p, (uint32_t)n);
}

static inline void set_place(struct miss *m, uint32_t piece, const uint32_t *at)
{
    m->piece = piece;
    m->from = at[piece];
    m->n = at[piece + 1] - m->from;
}

/* Keys and hashes of the pieces that are not in the hot table; what they will be looked
 * for in is then under way. Those that are skipped have places only, behind the others.
 */
static void prepare(struct slu_encoder *e, const uint8_t *p, size_t n)
{
    const struct words *w = &e->words;
    const struct hot_batch *b = &e->batch;
    size_t n_long = 0;

    for (size_t j = 0; j < b->n_miss; j++) {
        struct miss *m = &e->miss[j];
        set_place(m, b->miss[j], b->at);
        if (m->n <= WORD_SHORT) {
            m->key = key_of(p + m->from, m->n, n - m->from);
            m->hash = word_hash(m->key);
            __builtin_prefetch(word_set(w->view, m->hash));
        } else if (m->n <= WORD_LONG) {
            m->hash = word_hash_long(p + m->from, m->n);
            __builtin_prefetch(word_far_set(w, m->hash));
            n_long++;
        }
    }
    for (size_t j = 0; n_long && j < b->n_miss; j++) {
        const struct miss *m = &e->miss[j];
        if (m->n <= WORD_SHORT || m->n > WORD_LONG)
            continue;
        const struct word_far *f = word_far_set(w, m->hash);
        if (word_far_is(f, m->hash) || word_far_is(++f, m->hash))
            __builtin_prefetch(w->view->text + f->off);
        n_long--;
    }
    for (size_t j = 0; j < b->n_skipped; j++)
        set_place(&e->miss[b->n_miss + j], b->skipped[j], b->at);
}

static inline bool is_apart(const struct word_slot *s)
{
    return (word_count(s) == WORD_MANY) & (s->id[MANY_APART] != 0);
}

/* A piece that was not in the hot table has, for its id, the number of its slot in
 * e->found with this bit. */
#define IS_FOUND (UINT32_C(1) << 24)

/* The ids of the k pieces; out has room for them, WORD_MANY more each and a RUN. Ids of
 * pieces that are one stand together. Of others it cannot be predicted where they are
 * and whether they are many: 8 are copied without a branch, whatever there is. */
static uint32_t *put_ids(const struct slu_encoder *e, size_t k, uint32_t *out)
{
    enum { RUN = 8, FIRST = 8 };
    const struct hot_batch *b = &e->batch;
    const uintptr_t text = (uintptr_t)e->words.view->text,
                    apart = (uintptr_t)e->apart.id;
    size_t done = 0;

    for (size_t j = 0;; j++) {
        const size_t piece = j < b->n_slow ? b->slow[j] : k;
        for (size_t i = done; i < piece; i += RUN)
            memcpy(out + (i - done), b->id + i, RUN * sizeof *out);
        out += piece - done;
        done = piece + 1;
        if (piece == k)
            return out;
        const uint32_t value = b->id[piece];
        const uintptr_t is_found = -(uintptr_t)(value / IS_FOUND & 1);
        const struct word_slot *s = &e->found[value & (IS_FOUND - 1) & is_found];
        uintptr_t from = ((uintptr_t)s->id & is_found) |
                         ((uintptr_t)e->words.hot_ids[b->place[j]] & ~is_found);
        const uint32_t count = (word_count(s) & (uint32_t)is_found) |
                               (value >> HOT_COUNT_SHIFT & ~(uint32_t)is_found);
        const uint32_t *id = (const uint32_t *)from;
        const uintptr_t many = -(uintptr_t)(count == WORD_MANY), off = id[MANY_OFF],
                        is_apart = -(uintptr_t)(id[MANY_APART] != 0);
        from = (from & ~many) | ((apart + off * sizeof *out) & is_apart & many) |
               ((text + off) & ~is_apart & many);
        const size_t n = (id[MANY_N] & many) | ((count + 1) & ~many);
        memcpy(out, (const void *)from, FIRST * sizeof *out);
        if (n > FIRST)
            memcpy(out + FIRST, (const uint32_t *)from + FIRST,
                   (n - FIRST) * sizeof *out);
        out += n;
    }
}

/* The first k pieces of p (n bytes can be read), whose places are in e->batch. */
static int encode_batch(struct slu_encoder *e, const uint8_t *p, size_t n, size_t k,
                        struct slu_err *err)
{
    struct words *w = &e->words;
    struct hot_batch *b = &e->batch;
    struct slu_ids *ids = e->ids;
    size_t n_new, need = ids->n + k * WORD_MANY + 2 * WORD_MANY;
    int rc;

    words_begin(w);
    hot_look(b, w, e->find_hot, p, n, k);
    prepare(e, p, n);
    n_new = find_known(e, p);
    if (n_new + b->n_skipped && (rc = encode_new(e, p, n, n_new, err)) < 0)
        return rc;
    if (words_judge(w, k, b->n_miss + b->n_skipped, n_new + b->n_skipped) && n_new)
        words_put(w, e->fresh, n_new);
    for (size_t j = 0; j < b->n_miss + b->n_skipped; j++) {
        const struct word_slot *s = &e->found[j];
        b->id[e->miss[j].piece] = IS_FOUND | (uint32_t)j;
        need += s->id[MANY_N] & -(uint32_t)(word_count(s) == WORD_MANY);
    }
    if (need > ids->cap &&
        (rc = slu_grow(&ids->id, &ids->cap, need, sizeof *ids->id, err)) < 0)
        return rc;
    ids->n = (size_t)(put_ids(e, k, ids->id + ids->n) - ids->id);
    /* The hot slots are written when nothing points to them any more. */
    for (size_t j = 0; j < b->n_miss; j++) {
        const struct miss *m = &e->miss[j];
        if ((m->n <= HOT_BYTES) & !is_apart(&e->found[j]))
            word_hot_put(w, m->hash, &e->found[j]);
    }
    return SLU_OK;
}

/* Pieces of more bytes are cut in parts, which then are like pieces: what a cache would
 * hardly know twice is so made of what it does know. */
#define CUT_FROM 96

/* One that has the bytes of a token that merges do not arrive at, but is no piece: the
 * cache must not know it. */
static int encode_part_alone(struct slu_encoder *e, const uint8_t *p, size_t n,
                             struct slu_err *err)
{
    e->bpe.is_part = true;
    int rc = bpe_encode(e->t->model, &e->bpe, p, n, e->ids, err);
    e->bpe.is_part = false;
    return rc;
}

/* A long piece of n bytes, of which n_read can be read. */
static int encode_parts(struct slu_encoder *e, const uint8_t *p, size_t n,
                        size_t n_read, struct slu_err *err)
{
    const struct tok_model *m = e->t->model;
    uint32_t *at = e->batch.at;
    int rc = SLU_OK;

    if (bpe_is_whole(m, p, n))
        return bpe_encode(m, &e->bpe, p, n, e->ids, err);
    while (n && rc >= 0) {
        size_t k = bpe_cuts(m, p, n, 0, at + 1, HOT_BATCH), len, good = k;
        if (m->n_whole) {
            for (good = 0; good < k; good++) {
                if (bpe_is_whole(m, p + at[good], at[good + 1] - at[good]))
                    break;
            }
        }
        if (good) {
            len = at[good];
            rc = encode_batch(e, p, n_read, good, err);
        } else {
            len = at[1];
            rc = encode_part_alone(e, p, len, err);
        }
        p += len;
        n -= len;
        n_read -= len;
    }
    return rc;
}

/* The first k pieces of p (n bytes can be read), whose places are in e->batch, where
 * some are long. */
static int encode_long(struct slu_encoder *e, const uint8_t *p, size_t n, size_t k,
                       struct slu_err *err)
{
    uint32_t end[HOT_MOST], at = 0;
    int rc = SLU_OK;

    memcpy(end, e->batch.at + 1, k * sizeof *end);
    for (size_t i = 0; i < k && rc >= 0;) {
        size_t some = 0;
        uint32_t base = at;
        for (; i < k && end[i] - at <= CUT_FROM; i++)
            e->batch.at[++some] = (at = end[i]) - base;
        if (some)
            rc = encode_batch(e, p + base, n - base, some, err);
        if (i < k && rc >= 0) {
            rc = encode_parts(e, p + at, end[i] - at, n - at, err);
            at = end[i++];
        }
    }
    return rc;
}

static int emit(void *ctx, const uint8_t *p, size_t n, struct slu_err *err)
{
    struct slu_encoder *e = ctx;

    if (n > UINT32_MAX || !e->words.hot)
        return bpe_encode(e->t->model, &e->bpe, p, n, e->ids, err);
    if (n > CUT_FROM)
        return encode_parts(e, p, n, n, err);
    e->batch.at[1] = (uint32_t)n;
    return encode_batch(e, p, n, 1, err);
}

/* Signed and without a branch, which is what SSE2 can compare; no piece has 2 GiB. */
static bool any_long(const uint32_t *end, size_t k)
{
    int found = end[0] > CUT_FROM;

    for (size_t i = 1; i < k; i++)
        found |= (int32_t)(end[i] - end[i - 1]) > CUT_FROM;
    return found;
}

/* Text that a known split cuts, or that is cut where no token reaches over (sp.h). */
static int encode_split(struct slu_encoder *e, const uint8_t *p, size_t n,
                        struct slu_err *err)
{
    const struct tok_sp *sp = e->t->sp;
    pre_scan_fn *scan = sp ? NULL : e->t->pre->step[0].scan;
    int rc = SLU_OK;

    while (n && rc >= 0) {
        uint32_t *end = e->batch.at + 1;
        size_t k = sp ? sp_pieces(sp, p, n, end, HOT_BATCH)
                      : e->find(p, n, end, HOT_BATCH, scan);
        size_t len;
        if (k) {
            len = end[k - 1];
            rc = !e->words.hot      ? encode_plainly(e, p, k, err)
                 : any_long(end, k) ? encode_long(e, p, n, k, err)
                                    : encode_batch(e, p, n, k, err);
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
    size_t good =
        e->t->is_bytes ? n_byte : slu_utf8_valid_prefix((const uint8_t *)utf8, n_byte);

    if (good != n_byte)
        return slu_fail_at(err, SLU_E_FORMAT, good, "byte %zu: not valid UTF-8", good);
    return slu_encode_valid(e, utf8, n_byte, ids, err);
}

int slu_encode_valid(struct slu_encoder *e, const char *utf8, size_t n_byte,
                     struct slu_ids *ids, struct slu_err *err)
{
    const uint8_t *p = (const uint8_t *)utf8;
    size_t first = ids->n;
    struct added_iter it;
    struct added_part part;
    int rc = SLU_OK;

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
