/* compiled.c - a tokenizer to bytes and back.
 *
 * 64 bytes of header, a table of sections (offset and length, u64, from the start of
 * the file), then the sections, each at a multiple of 64 bytes. What encoding reads comes
 * first, so that the rest can stay out of memory. Numbers are the host's.
 */
#include "lib/token/compiled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "lib/stream/stream_private.h"
#include "lib/token/added.h"
#include "lib/token/bpe.h"
#include "lib/token/norm.h"
#include "lib/token/pre.h"
#include "lib/token/sp.h"

#define MAGIC "sluicevc"
#define ORDER UINT32_C(0x01020304)

struct head {
    char magic[8];
    uint32_t order, version;
    uint64_t n_byte; /* of the file */
    uint64_t zero;
    struct slu_u128 key, sum; /* sum: XXH3-128 of all bytes after the header */
};
_Static_assert(sizeof(struct head) == COMPILED_HEAD, "the header has no holes");

enum section {
    META,
    OFF, /* OFF, BYTES, FLAGS: the vocabulary's arrays */
    BYTES,
    FLAGS,
    VOCB, /* the vocabulary's frame in a stream, compressed */
    MODEL,
    NORM,  /* its spec */
    PRE,   /* its spec */
    ADDED, /* added_rows, then their texts */
    N_SECTION
};

struct span {
    uint64_t off, len;
};

struct meta {
    uint64_t n_id, n_model_id, n_added;
    uint8_t fingerprint[16];
    uint8_t has_model, has_pre, has_added, has_norm, has_sp;
    struct sp_cfg sp;
    uint64_t leak;
    uint8_t trims, zero[7];
};

struct added_row {
    uint32_t id, len;
    uint8_t special, lstrip, rstrip, single_word, normalized, zero[3];
};

/* If a new field affects ids, put it into the sections first, and then the new size
 * here. */
_Static_assert(sizeof(void *) != 8 || sizeof(struct slu_tokenizer) == 560,
               "a new field of slu_tokenizer: is it in the compiled form?");
_Static_assert(sizeof(struct added_token) == 24,
               "a new field of added_token: is it in the compiled form?");

struct slu_u128 compiled_key(const char *kind, struct slu_u128 content, uint64_t n_byte)
{
    char s[512], hex[33];

    slu_u128_hex(content, hex);
    int n =
        snprintf(s, sizeof s, "%s %s zstd %u order %u %s %llu %s", MAGIC, SLU_SOURCE_ID,
                 ZSTD_versionNumber(), *(const uint8_t *)&(const uint32_t){ORDER}, hex,
                 (unsigned long long)n_byte, kind);
    return slu_hash128(s, (size_t)n < sizeof s ? (size_t)n : sizeof s - 1);
}

/* ---- to bytes ---- */

static int put(struct slu_buf *out, enum section k, const void *p, size_t n,
               struct slu_err *err)
{
    int rc = slu_buf_align(out, 64, err);

    if (rc)
        return rc;
    struct span *span = (struct span *)(void *)(out->data + COMPILED_HEAD) + k;
    *span = (struct span){out->len, n};
    return n ? slu_buf_append(out, p, n, err) : SLU_OK;
}

static int put_added(struct slu_buf *out, const struct tok_added *a,
                     struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = SLU_OK;

    for (size_t i = 0; i < a->n && !rc; i++) {
        const struct added_token *k = &a->token[i];
        struct added_row row = {.id = k->id,
                                .len = k->text_len,
                                .special = k->special,
                                .lstrip = k->lstrip,
                                .rstrip = k->rstrip,
                                .single_word = k->single_word,
                                .normalized = k->normalized};
        rc = slu_buf_append(&b, &row, sizeof row, err);
    }
    /* Texts follow each other in the order of their tokens: see added_put. */
    if (!rc)
        rc = slu_buf_append(&b, a->text.data, a->text.len, err);
    if (!rc)
        rc = put(out, ADDED, b.data, b.len, err);
    slu_buf_release(&b);
    return rc;
}

/* Tests that the spec makes the same pre-tokenizer again; only then it can be kept. */
static int try_spec(const struct tok_pre *pre, struct slu_err *err)
{
    struct tok_pre *again;
    int rc = pre_new(&again, err);

    if (!rc)
        rc = pre_add_spec(again, pre->spec.data, pre->spec.len, err);
    pre_free(again);
    return rc;
}

static int put_packed(struct slu_buf *out, const struct slu_vocab_table *v,
                      struct slu_err *err)
{
    struct slu_buf packed = SLU_BUF_INIT;
    int rc = v->packed ? SLU_OK : slu_vocab_pack(v, &packed, err);

    if (!rc)
        rc = v->packed ? put(out, VOCB, v->packed, v->packed_byte, err)
                       : put(out, VOCB, packed.data, packed.len, err);
    slu_buf_release(&packed);
    return rc;
}

/* Puts the arrays of a vocabulary. */
static int put_vocab(struct slu_buf *out, const struct slu_vocab_table *v,
                     struct slu_err *err)
{
    int rc = put(out, OFF, v->off, (v->n + 1) * sizeof *v->off, err);

    if (!rc)
        rc = put(out, BYTES, v->bytes, v->off[v->n], err);
    return rc ? rc : put(out, FLAGS, v->flags, v->n, err);
}

int compiled_encode(const struct slu_tokenizer *t, struct slu_u128 key,
                    struct slu_buf *out, struct slu_err *err)
{
    struct head head = {.magic = MAGIC, .order = ORDER, .version = 1, .key = key};
    struct meta meta = {.n_id = t->table.n,
                        .leak = t->leak,
                        .trims = t->trims,
                        .n_added = t->added ? t->added->n : 0,
                        .has_model = t->model != NULL,
                        .has_pre = t->pre != NULL,
                        .has_added = t->added != NULL,
                        .n_model_id = t->model_table.n,
                        .has_norm = t->norm != NULL,
                        .has_sp = t->sp != NULL};
    static const struct span none[N_SECTION];
    size_t n_model = 0;
    const void *model = t->model ? bpe_image(t->model, &n_model) : NULL;
    int rc;

    if (t->sp)
        meta.sp = t->sp->cfg;
    memcpy(meta.fingerprint, t->fingerprint, sizeof meta.fingerprint);
    slu_buf_clear(out);
    if ((rc = slu_buf_reserve(out, n_model + 24 * t->table.n + (1 << 20), err)) ||
        (rc = slu_buf_append(out, &head, sizeof head, err)) ||
        (rc = slu_buf_append(out, none, sizeof none, err)) ||
        (rc = put(out, META, &meta, sizeof meta, err)) ||
        (rc = put_packed(out, &t->table, err)) ||
        (rc = put(out, MODEL, model, n_model, err)) ||
        /* The arrays of t->table continue in these. */
        (rc = put_vocab(out, &t->model_table, err)))
        return rc;
    if (t->norm && (rc = put(out, NORM, t->norm->spec.data, t->norm->spec.len, err)))
        return rc;
    if (t->pre && ((rc = try_spec(t->pre, err)) ||
                   (rc = put(out, PRE, t->pre->spec.data, t->pre->spec.len, err))))
        return rc;
    if ((t->added && (rc = put_added(out, t->added, err))) ||
        (rc = slu_buf_align(out, 64, err)))
        return rc;
    head.n_byte = out->len;
    head.sum = slu_hash128(out->data + COMPILED_HEAD, out->len - COMPILED_HEAD);
    memcpy(out->data, &head, sizeof head);
    return SLU_OK;
}

/* ---- from bytes ---- */

int compiled_check_head(const void *p, uint64_t n_byte, struct slu_u128 key,
                        struct slu_err *err)
{
    const struct head *h = p;

    if (n_byte < COMPILED_HEAD + N_SECTION * sizeof(struct span) ||
        n_byte > COMPILED_MAX || memcmp(h->magic, MAGIC, 8) || h->order != ORDER ||
        h->version != 1 || h->zero || h->n_byte != n_byte)
        return slu_fail(err, SLU_E_FORMAT, "not a compiled vocabulary");
    if (slu_u128_cmp(h->key, key))
        return slu_fail(err, SLU_E_MISMATCH, "compiled from another vocabulary");
    return SLU_OK;
}

/* Returns a section's bytes, or NULL if they are not in the file. */
static const void *section(const uint8_t *image, size_t n_byte, enum section k,
                           uint64_t *len)
{
    const struct span *span =
        (const struct span *)(const void *)(image + COMPILED_HEAD);

    *len = span[k].len;
    if (span[k].off % 64 || span[k].off > n_byte || *len > n_byte - span[k].off)
        return NULL;
    return image + span[k].off;
}

static int bad(struct slu_err *err)
{
    return slu_fail(err, SLU_E_FORMAT, "its sections do not fit in the file");
}

static int get_vocab(struct slu_vocab_table *v, uint64_t n_id, uint64_t n_all,
                     const uint8_t *image, size_t n_byte, struct slu_err *err)
{
    uint64_t n_off, n_text, n_flag;

    v->n = n_id;
    v->off = section(image, n_byte, OFF, &n_off);
    v->bytes = section(image, n_byte, BYTES, &n_text);
    v->flags = section(image, n_byte, FLAGS, &n_flag);
    v->packed = section(image, n_byte, VOCB, &v->packed_byte);
    if (!v->off || !v->bytes || !v->flags || !v->packed || n_id > n_all ||
        n_all >= n_off || n_off != (n_all + 1) * sizeof *v->off || n_flag != n_all ||
        v->off[0] != 0 || v->off[n_all] != n_text)
        return bad(err);
    for (uint64_t i = 0; i < n_all; i++) {
        if (v->off[i] > v->off[i + 1])
            return bad(err);
    }
    return SLU_OK;
}

static int get_added(struct tok_added *a, uint64_t n, const uint8_t *p, uint64_t len,
                     struct slu_err *err)
{
    const struct added_row *row = (const void *)p;
    uint64_t at = n * sizeof *row;
    int rc = SLU_OK;

    if (!p || n > len / sizeof *row)
        return bad(err);
    for (uint64_t i = 0; i < n && !rc; at += row[i++].len) {
        struct added_token token = {.id = row[i].id,
                                    .special = row[i].special,
                                    .lstrip = row[i].lstrip,
                                    .rstrip = row[i].rstrip,
                                    .single_word = row[i].single_word,
                                    .normalized = row[i].normalized};
        if (row[i].len > len - at)
            return bad(err);
        rc = added_put(a, token, p + at, row[i].len, err);
    }
    return rc;
}

int compiled_decode(struct slu_tokenizer *t, const void *image, size_t n_byte,
                    struct slu_u128 key, struct slu_err *err)
{
    const struct head *h = image;
    const uint8_t *p = image;
    uint64_t len;
    int rc = compiled_check_head(image, n_byte, key, err);

    if (rc)
        return rc;
    if (slu_u128_cmp(slu_hash128(p + COMPILED_HEAD, n_byte - COMPILED_HEAD), h->sum))
        return slu_fail(err, SLU_E_CHECKSUM, "damaged");
    const struct meta *meta = section(p, n_byte, META, &len);
    if (!meta || len != sizeof *meta)
        return bad(err);
    if ((rc = get_vocab(&t->table, meta->n_id, meta->n_model_id, p, n_byte, err)))
        return rc;
    t->model_table = t->table;
    t->model_table.n = meta->n_model_id;
    memcpy(t->fingerprint, meta->fingerprint, sizeof t->fingerprint);
    t->leak = meta->leak;
    t->trims = meta->trims;
    if (meta->has_model) {
        const void *model = section(p, n_byte, MODEL, &len);
        if (!model)
            return bad(err);
        if ((rc = bpe_attach(&t->model, model, len, &t->model_table, err)))
            return rc;
    }
    if (meta->has_sp &&
        (!t->model || (rc = sp_new(&t->sp, &meta->sp, t->model, &t->model_table,
                                   (uint32_t)meta->n_id, err))))
        return t->model ? rc : bad(err);
    if (meta->has_norm) {
        const void *spec = section(p, n_byte, NORM, &len);
        if (!spec)
            return bad(err);
        if ((rc = norm_from_spec(&t->norm, spec, len, err)))
            return rc;
    }
    if (meta->has_pre) {
        const void *spec = section(p, n_byte, PRE, &len);
        if (!spec)
            return bad(err);
        if ((rc = pre_new(&t->pre, err)) || (rc = pre_add_spec(t->pre, spec, len, err)))
            return rc;
    }
    if (meta->has_added) {
        const void *added = section(p, n_byte, ADDED, &len);
        if ((rc = added_new(&t->added, err)) ||
            (rc = get_added(t->added, meta->n_added, added, len, err)))
            return rc;
    }
    return SLU_OK;
}
