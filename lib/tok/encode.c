/* encode.c - the encoder: text in, ids out. */
#include "lib/tok/tok.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "lib/le.h"
#include "lib/tok/added.h"
#include "lib/tok/bpe.h"
#include "lib/tok/norm.h"
#include "lib/tok/pre.h"

/* A piece of at most 15 bytes that became at most 4 ids. The key is the piece, zeros,
 * and in its last byte the length; in memory that byte also has the number of ids less
 * 1 above it. */
#define KEY_MAX 15
#define ID_MAX  4
struct slot {
    uint64_t key[2];
    uint32_t id[ID_MAX];
};
#define WAYS 2 /* slots a set: one cache line */

struct slu_encoder {
    const struct slu_tokenizer *t;
    struct pre_scratch pre;
    struct bpe_scratch bpe;
    struct norm_scratch norm;
    struct slot *cache;
    unsigned cache_shift; /* hash >> shift is the set */
    struct slu_ids *ids;  /* of the call that runs */
};

int slu_encoder_new(struct slu_encoder **out, const struct slu_tokenizer *t,
                    uint64_t cache_byte, struct slu_err *err)
{
    struct slu_encoder *e = calloc(1, sizeof *e);
    unsigned bits = 0;
    int rc = SLU_OK;

    *out = NULL;
    if (!e)
        return slu_fail_nomem(err, sizeof *e);
    e->t = t;
    while (bits < 24 && (WAYS * sizeof(struct slot)) << (bits + 1) <= cache_byte)
        bits++;
    if (bits && !t->is_bytes) {
        size_t n_byte = (WAYS * sizeof(struct slot)) << bits;
        e->cache = aligned_alloc(64, n_byte);
        e->cache_shift = 64 - bits;
        if (e->cache)
            memset(e->cache, 0, n_byte);
        else
            rc = slu_fail_nomem(err, n_byte);
    }
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
    free(e->cache);
    free(e);
}

/* ---- one piece ---- */

static inline uint64_t hash_key(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)(a ^ UINT64_C(0x9E3779B97F4A7C15)) *
                          (b ^ UINT64_C(0xD1B54A32D192ED03));
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

#define LEN_SHIFT   56
#define COUNT_SHIFT 60
#define COUNT_MASK  (UINT64_C(15) << COUNT_SHIFT)

static int encode_miss(struct slu_encoder *e, const uint8_t *p, size_t n, uint64_t k0,
                       uint64_t k1, struct slot *set, struct slu_err *err)
{
    struct slu_ids *ids = e->ids;
    size_t first = ids->n;
    int rc = bpe_encode(e->t->model, &e->bpe, p, n, ids, err);

    if (rc < 0 || !set || ids->n - first > ID_MAX)
        return rc;
    set[1] = set[0];
    set[0].key[0] = k0;
    set[0].key[1] = k1 | (uint64_t)(ids->n - first - 1) << COUNT_SHIFT;
    memcpy(set[0].id, ids->id + first, (ids->n - first) * sizeof *ids->id);
    return rc;
}

/* slack: bytes that can be read from p on. */
static inline int encode_piece(struct slu_encoder *e, const uint8_t *p, size_t n,
                               size_t slack, struct slu_err *err)
{
    struct slu_ids *ids = e->ids;
    uint64_t k0, k1;
    int rc;

    if (n > KEY_MAX || !e->cache)
        return encode_miss(e, p, n, 0, 0, NULL, err);
    if (slack >= 16) {
        k0 = slu_le64(p);
        k1 = slu_le64(p + 8);
        uint64_t mask = n & 7 ? (UINT64_C(1) << 8 * (n & 7)) - 1 : 0;
        k1 &= n >= 8 ? mask : 0;
        k0 &= n >= 8 ? UINT64_MAX : mask;
    } else {
        uint8_t key[16] = {0};
        memcpy(key, p, n);
        k0 = slu_le64(key);
        k1 = slu_le64(key + 8);
    }
    k1 |= (uint64_t)n << LEN_SHIFT;
    struct slot *s = e->cache + WAYS * (hash_key(k0, k1) >> e->cache_shift), *set = s;
    if (s->key[0] != k0 || (s->key[1] & ~COUNT_MASK) != k1) {
        s++;
        if (s->key[0] != k0 || (s->key[1] & ~COUNT_MASK) != k1)
            return encode_miss(e, p, n, k0, k1, set, err);
    }
    if (ids->n + ID_MAX > ids->cap &&
        (rc = slu_grow(&ids->id, &ids->cap, ids->n + ID_MAX, sizeof *ids->id, err)) < 0)
        return rc;
    memcpy(ids->id + ids->n, s->id, sizeof s->id);
    ids->n += (s->key[1] >> COUNT_SHIFT) + 1;
    return SLU_OK;
}

static int emit(void *ctx, const uint8_t *p, size_t n, struct slu_err *err)
{
    return encode_piece(ctx, p, n, n, err);
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

/* Text without added tokens, normalized. */
static int encode_text(struct slu_encoder *e, const uint8_t *p, size_t n,
                       struct slu_err *err)
{
    const struct tok_pre *pre = e->t->pre;
    int rc = SLU_OK;

    if (!n)
        return SLU_OK;
    if (e->t->is_bytes)
        return encode_bytes(p, n, e->ids, err);
    if (pre->n != 1 || pre->step[0].kind != PRE_SCAN)
        return pre_run(pre, &e->pre, p, n, emit, e, err);
    pre_scan_fn *scan = pre->step[0].scan;
    for (size_t pos = 0; pos < n && rc >= 0;) {
        size_t end = scan(p, n, pos);
        rc = encode_piece(e, p + pos, end - pos, n - pos, err);
        pos = end;
    }
    return rc;
}

static int put_id(struct slu_ids *ids, uint32_t id, struct slu_err *err)
{
    int rc = slu_grow(&ids->id, &ids->cap, ids->n + 1, sizeof *ids->id, err);

    if (rc >= 0)
        ids->id[ids->n++] = id;
    return rc;
}

/* Text without raw added tokens. */
static int encode_part(struct slu_encoder *e, const uint8_t *p, size_t n,
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
        rc = part.id == TOK_NONE ? encode_text(e, p + part.off, part.len, err)
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
        rc = part.id == TOK_NONE ? encode_part(e, p + part.off, part.len, err)
                                 : put_id(ids, part.id, err);
    if (rc < 0)
        ids->n = first;
    e->ids = NULL;
    return rc;
}
