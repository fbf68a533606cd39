/* encode.c - the encoder: text in, ids out. */
#include "lib/token/tok.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/json.h"
#include "lib/token/encode_private.h"

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
    e->least = TOK_NONE;
    if (with)
        rc = words_share(&e->words, &with->words, err);
    else if (!t->is_bytes)
        rc = words_init(&e->words, cache_byte, err);
    e->bpe.level = bpe_merge_level(pretokens_level());
    e->find_hot = hot_find_of_level(pretokens_level());
    if (t->pre && t->pre->n == 1 && t->pre->step[0].kind == PRE_SCAN)
        e->find = pretokens_by_scan(t->pre->step[0].scan);
    if (!rc)
        rc = norm_scratch_init(&e->norm, t->norm, err);
    if (!rc && t->pre)
        rc = pre_scratch_init(&e->pre, t->pre, err);
    if (rc) {
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
    align_release(&e->align[0]);
    align_release(&e->align[1]);
    words_release(&e->words);
    slu_ids_release(&e->apart);
    free(e);
}

/* ---- pretokens ---- */

/* Longer pretokens are cut into parts, which are then treated as pretokens: a long pretoken is
 * hardly ever in the cache, but its parts are. */
#define CUT_FROM 62

/* Encodes a part that has the bytes of a token that merges do not make, but is not a
 * pretoken. The cache must not have it. */
static int encode_part_alone(struct slu_encoder *e, const uint8_t *p, size_t n,
                             struct slu_err *err)
{
    e->bpe.is_part = true;
    int rc = bpe_encode(e->t->model, &e->bpe, p, n, e->ids, err);
    e->bpe.is_part = false;
    return rc;
}

/* Encodes a long pretoken of n bytes, where n_read can be read. */
static int encode_parts(struct slu_encoder *e, const uint8_t *p, size_t n,
                        size_t n_read, struct slu_err *err)
{
    const struct tok_model *m = e->t->model;
    uint32_t *at = e->batch.at;
    int rc = SLU_OK;

    if (bpe_is_whole(m, p, n))
        return bpe_encode(m, &e->bpe, p, n, e->ids, err);
    while (n && !rc) {
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

/* Adds the k pretokens of p, some of them long, to the waiting pretokens. Their ends, as
 * offsets from p, are in e->batch.at after those of the waiting pretokens. */
static int wait_long(struct slu_encoder *e, const uint8_t *p, size_t k,
                     struct slu_err *err)
{
    const struct tok_model *m = e->t->model;
    uint32_t *at = e->batch.at, end[HOT_MOST], from = 0;
    int rc = SLU_OK;

    memcpy(end, at + 1 + e->n_wait, k * sizeof *end);
    for (size_t i = 0; i < k && !rc;) {
        uint32_t base = (uint32_t)(p - e->wait);
        if (end[i] - from <= CUT_FROM) {
            from = end[i];
            at[++e->n_wait] = base + from;
        } else if (m->n_whole) { /* it may be a whole token, too */
            if (!(rc = encode_flush(e, err)))
                rc = encode_parts(e, p + from, end[i] - from, e->wait_byte, err);
            e->wait += end[i] - from;
            e->wait_byte -= end[i] - from;
            from = end[i];
        } else {
            e->n_wait += bpe_cuts(m, p + from, end[i] - from, base + from,
                                  at + 1 + e->n_wait, HOT_MOST - e->n_wait);
            from = at[e->n_wait] - base;
        }
        i += from == end[i];
        if (e->n_wait >= HOT_BATCH && !rc)
            rc = encode_flush(e, err);
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

/* Whether a pretoken is long. Without a branch, and signed, as SSE2 compares; no pretoken has
 * 2 GiB. */
static bool any_long(const uint32_t *end, size_t k)
{
    int found = end[0] > CUT_FROM;

    for (size_t i = 1; i < k; i++)
        found |= (int32_t)(end[i] - end[i - 1]) > CUT_FROM;
    return found;
}

/* Makes the n bytes at p the continuation of the waiting text; encodes the waiting
 * pretokens if they are not. */
static int wait_with(struct slu_encoder *e, const uint8_t *p, size_t n,
                     struct slu_err *err)
{
    enum { FAR = 1 << 30 }; /* offsets have 32 bits, and one call finds 2 GiB */
    const uint32_t to = e->batch.at[e->n_wait];
    int rc = SLU_OK;

    if (e->n_wait && (p != e->wait + to || to > FAR))
        rc = encode_flush(e, err);
    if (!e->n_wait)
        e->wait = p;
    e->wait_byte = (size_t)(p - e->wait) + n;
    return rc;
}

/* Encodes text that a known split cuts, or that is cut where no token crosses (sp.h);
 * its last pretokens may wait. */
static int encode_split(struct slu_encoder *e, const uint8_t *p, size_t n,
                        struct slu_err *err)
{
    const struct tok_sp *sp = e->t->sp;
    pre_scan_fn *scan = sp ? NULL : e->t->pre->step[0].scan;
    int rc = SLU_OK;

    while (n && !(rc = wait_with(e, p, n, err))) {
        uint32_t *end = e->batch.at + 1 + e->n_wait;
        const size_t room = HOT_BATCH - e->n_wait;
        const uint32_t base = (uint32_t)(p - e->wait);
        size_t k =
            sp ? sp_pretokens(sp, p, n, end, room) : e->find(p, n, end, room, scan);
        size_t len;
        if (k) {
            len = end[k - 1];
            if (e->words.hot && any_long(end, k)) {
                rc = wait_long(e, p, k, err);
            } else {
                for (size_t i = 0; base && i < k; i++)
                    end[i] += base;
                e->n_wait += k;
            }
            if (e->n_wait >= HOT_BATCH && !rc)
                rc = encode_flush(e, err);
        } else {
            len = sp ? sp_pretoken(sp, p, n) : scan(p, n, 0);
            if (!(rc = encode_flush(e, err)))
                rc = bpe_encode(e->t->model, &e->bpe, p, len, e->ids, err);
        }
        if (rc)
            break;
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
    if ((rc = slu_grow(&ids->id, &ids->cap, need, sizeof *ids->id, err)))
        return rc;
    for (size_t i = 0; i < n; i++)
        ids->id[ids->n + i] = p[i];
    ids->n = need;
    return SLU_OK;
}

/* Encodes normalized text without added tokens. first: it begins the document. */
static int encode_text(struct slu_encoder *e, const uint8_t *p, size_t n, bool first,
                       struct slu_err *err)
{
    int rc;

    if (!n)
        return SLU_OK;
    if (e->t->is_bytes)
        return encode_bytes(p, n, e->ids, err);
    if (e->t->sp)
        return (rc = sp_prepare(e->t->sp, &e->folded, first, &p, &n, err))
                   ? rc
                   : encode_split(e, p, n, err);
    if (e->find)
        return encode_split(e, p, n, err);
    return pre_run(e->t->pre, &e->pre, p, n, emit, e, err);
}

static int put_id(struct slu_encoder *e, uint32_t id, struct slu_err *err)
{
    struct slu_ids *ids = e->ids;
    int rc = encode_flush(e, err);

    if (!rc)
        rc = slu_grow(&ids->id, &ids->cap, ids->n + 1, sizeof *ids->id, err);
    if (!rc)
        ids->id[ids->n++] = id;
    return rc;
}

/* Adds up the special tokens that are ordinary text. */
static void count_left(struct slu_encoder *e, const struct added_iter *it)
{
    e->left += it->left;
    e->least = it->least < e->least ? it->least : e->least;
}

uint64_t slu_encoder_ordinary(const struct slu_encoder *e, uint64_t *id)
{
    *id = e->left ? e->least : SLU_NO_TOKEN;
    return e->left;
}

/* Encodes text without raw added tokens. */
static int encode_part(struct slu_encoder *e, const uint8_t *p, size_t n, bool first,
                       struct slu_err *err)
{
    const struct slu_tokenizer *t = e->t;
    const uint8_t *own = p;
    struct added_iter it;
    struct added_part part;
    int rc = SLU_OK;

    if ((rc = norm_run(t->norm, &e->norm, p, n, &p, &n, err)))
        return rc;
    added_iter_init(&it, t->added, true, t->special_parse, p, n);
    while (!rc && added_next(&it, &part))
        rc = part.id == TOK_NONE
                 ? encode_text(e, p + part.off, part.len, first && part.off == 0, err)
                 : put_id(e, part.id, err);
    count_left(e, &it);
    /* Text in memory of the encoder does not last until the next call. */
    return rc || (p == own && !t->sp) ? rc : encode_flush(e, err);
}

/* Encodes a text, whose last pretokens may wait. */
static int encode_whole(struct slu_encoder *e, const uint8_t *p, size_t n,
                        struct slu_err *err)
{
    const struct slu_tokenizer *t = e->t;
    const size_t first = e->ids->n;
    struct added_iter it;
    struct added_part part;
    int rc = SLU_OK;

    added_iter_init(&it, t->added, false, t->special_parse, p, n);
    while (!rc && added_next(&it, &part))
        rc = part.id == TOK_NONE
                 ? encode_part(e, p + part.off, part.len, part.off == 0, err)
                 : put_id(e, part.id, err);
    count_left(e, &it);
    return rc || !t->sp ? rc : sp_expand(t->sp, t, e->ids, first, err);
}

/* Ends a call with the result rc. *ids had n ids before it. */
static int encode_end(struct slu_encoder *e, int rc, size_t n, struct slu_err *err)
{
    if (!rc)
        rc = encode_flush(e, err);
    if (rc)
        e->ids->n = n;
    e->n_wait = e->n_end = 0;
    e->ids = NULL;
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
    const size_t n = ids->n;

    e->ids = ids;
    return encode_end(e, encode_whole(e, (const uint8_t *)utf8, n_byte, err), n, err);
}

int slu_encode_texts(struct slu_encoder *e, const struct slu_texts *t,
                     struct slu_ids *ids, size_t *end, struct slu_err *err)
{
    const size_t n = ids->n;
    int rc = slu_grow(&ids->id, &ids->cap, n + 1, sizeof *ids->id, err);

    if (rc)
        return rc;
    e->ids = ids;
    e->bos = t->bos == SLU_NO_TOKEN ? TOK_NONE : (uint32_t)t->bos;
    e->eos = t->eos == SLU_NO_TOKEN ? TOK_NONE : (uint32_t)t->eos;
    e->text_from = n;
    e->text_end = end;
    if (e->bos != TOK_NONE)
        ids->id[ids->n++] = e->bos;
    for (size_t i = 0, from = 0; i < t->n && !rc; from = t->end[i++]) {
        rc = encode_whole(e, (const uint8_t *)t->utf8 + from, t->end[i] - from, err);
        if (!rc)
            rc = encode_end_text(e, err);
    }
    rc = encode_end(e, rc, n, err);
    if (!rc)
        ids->n = e->text_from;
    return rc;
}
