/* shard_mds.c - MosaicML's MDS shards as mosaicml-streaming's StreamingDataset and
 * llm-foundry's StreamingTextDataset read them (mds.h has the layout):
 *
 *   D_<i>/shard.%05d.mds[.zstd]  columns `seq_lengths` (ndarray:uint32), the lengths of
 *                                the sequence's segments, padding included, or with
 *                                max_segments an array of fixed shape: lengths up to
 *                                the padding at the end, then 0; `tokens`
 *                                (ndarray:uint16 or uint32, of fixed shape); of a stream
 *                                with masks also `loss_mask` (ndarray:uint8, of the same
 *                                shape): 1 for a token that is trained on, else 0
 *   documents/…                  whole documents: `tokens` and `loss_mask` without a
 *                                fixed shape, and no seq_lengths
 *   D_<i>/index.json             a data set of this bucket
 *   index.json                   a data set of all buckets, as merge_index makes it
 *
 * The bytes are those of streaming's own MDSWriter; compressed bytes too, with the same
 * version of zstd. A compressed file is one frame that states its size, as the reader
 * requires. Offsets have 32 bits; the largest size of a shard is checked against this
 * limit before the shard is begun.
 */
#include "formats/shards/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/mds/mds.h"
#include "formats/shards/zstd_frame.h"
#include "lib/base/hash.h"
#include "lib/base/le.h"

enum { AUTO_TOKENS = 1 << 24, MAX_CONFIG = 512, DEFAULT_LEVEL = 3 };

struct mds {
    int level;            /* level of zstd; 0: not compressed */
    char compression[16]; /* as JSON */
};

static int mds_init(void **state, const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    struct mds *m = calloc(1, sizeof *m);
    *state = m;
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    m->level = cfg->compress_set ? cfg->compress_level : DEFAULT_LEVEL;
    if (m->level)
        snprintf(m->compression, sizeof m->compression, "\"zstd:%d\"", m->level);
    else
        memcpy(m->compression, "null", 5);
    return SLU_OK;
}

static void mds_release(void *state)
{
    free(state);
}

static void mds_file_name(const void *state, uint64_t number, unsigned file, char *out,
                          size_t cap)
{
    const struct mds *m = state;
    (void)file;
    snprintf(out, cap, "shard.%05llu.mds%s", (unsigned long long)number,
             m->level ? ".zstd" : "");
}

/* Whether the name is shard.N.mds, compressed or not; streaming leaves uncompressed
 * copies beside compressed shards. */
static bool mds_owns(const char *name)
{
    return !strcmp(name, "index.json") || slu_shard_name_is(name, "shard.", ".mds") ||
           slu_shard_name_is(name, "shard.", ".mds.zstd") ||
           slu_shard_name_is(name, "shard.", ".mds.tmp");
}

/* Bytes of an array of one dimension whose shape is not fixed, before its n values. */
static unsigned shape_byte(uint64_t n)
{
    return 1 + (n < 1 << 8 ? 1 : n < 1 << 16 ? 2 : 4);
}

/* Bytes of a sample of n_id ids with n_seg segments. */
static uint64_t sample_byte(const struct slu_shard_bucket *b, uint64_t n_id,
                            uint64_t n_seg)
{
    uint64_t ids = n_id * (b->tok_bytes + b->masks);
    return b->length ? 4 + shape_byte(n_seg) + 4 * n_seg + ids
                     : (1U + b->masks) * (4 + shape_byte(n_id)) + ids;
}

/* Number of sequences that fit a shard for any segments; at worst, each segment has one
 * id. */
static uint64_t most_sequences(const struct slu_shard_bucket *b)
{
    return (UINT32_MAX - 8 - MAX_CONFIG) / (4 + sample_byte(b, b->n_id, b->n_id));
}

static uint64_t mds_shard_sequences(const struct slu_shard_bucket *b)
{
    uint64_t n = AUTO_TOKENS / b->length, most = most_sequences(b);
    n = n > most ? most : n;
    return n ? n : 1;
}

static int mds_check(const struct slu_shard_bucket *b, struct slu_err *err)
{
    uint64_t most = most_sequences(b);
    return b->shard_sequences <= most
               ? SLU_OK
               : slu_shard_too_large(&slu_shard_mds, b, "MDS's 4 GiB a shard", most,
                                     err);
}

static uint64_t mds_build_byte(const struct slu_shard_bucket *b)
{
    const struct slu_shard_most n = slu_shard_most(b);
    uint64_t lengths = b->max_segments ? 4 * b->max_segments : b->n_id / 4,
             raw = n.n_seq * (24 + lengths) + n.n_tok * (b->tok_bytes + b->masks);
    return raw + slu_zstd_frame_bound(raw) + (4 << 20);
}

/* The beginning of the configuration: the columns of sequences of a bucket's length. */
static int put_columns(const struct slu_shard_bucket *b, struct slu_buf *out,
                       struct slu_err *err)
{
    unsigned bits = 8 * b->tok_bytes;
    const uint64_t n = b->max_segments;
    char shape[24] = "", size[24] = "null", type[48] = "", mask[24] = "";
    if (n) {
        snprintf(shape, sizeof shape, ":%llu", (unsigned long long)n);
        snprintf(size, sizeof size, "%llu", (unsigned long long)(4 * n));
    }
    if (b->masks) {
        snprintf(type, sizeof type, "\"ndarray:uint8:%llu\", ",
                 (unsigned long long)b->n_id);
        snprintf(mask, sizeof mask, "%llu, ", (unsigned long long)b->n_id);
    }
    return slu_buf_printf(
        out, err,
        "{\"column_encodings\": [%s\"ndarray:uint32%s\", \"ndarray:uint%u:%llu\"], "
        "\"column_names\": [%s\"seq_lengths\", \"tokens\"], "
        "\"column_sizes\": [%s%s, %llu], ",
        type, shape, bits, (unsigned long long)b->n_id,
        b->masks ? "\"loss_mask\", " : "", mask, size,
        (unsigned long long)(b->n_id * b->tok_bytes));
}

/* The same of whole documents. */
static int put_document_columns(const struct slu_shard_bucket *b, struct slu_buf *out,
                                struct slu_err *err)
{
    return slu_buf_printf(out, err,
                          "{\"column_encodings\": [%s\"ndarray:uint%u\"], "
                          "\"column_names\": [%s\"tokens\"], "
                          "\"column_sizes\": [%snull], ",
                          b->masks ? "\"ndarray:uint8\", " : "", 8 * b->tok_bytes,
                          b->masks ? "\"loss_mask\", " : "", b->masks ? "null, " : "");
}

/* Writes the result of json.dumps(…, sort_keys=True) for the writer's configuration, in
 * two parts: up to "mds" and after it, because the index inserts members between. */
static int put_config(const struct mds *m, const struct slu_shard_bucket *b,
                      bool in_shard, struct slu_buf *out, struct slu_err *err)
{
    int rc = b->length ? put_columns(b, out, err) : put_document_columns(b, out, err);
    return rc ? rc
              : slu_buf_printf(out, err,
                               "\"compression\": %s, \"format\": \"mds\", "
                               "\"hashes\": [\"xxh3_64\"], %s",
                               m->compression,
                               in_shard ? "\"size_limit\": null, \"version\": 2}" : "");
}

/* Writes the column loss_mask, if there are masks. */
static uint8_t *put_mask(uint8_t *p, const struct slu_batch *from,
                         const struct slu_seq *q)
{
    for (uint64_t i = 0; from->masks && i < q->len_tok; i++)
        *p++ = slu_batch_trained(from, q->tok_off + i);
    return p;
}

static uint8_t *put_ids(uint8_t *p, const struct slu_batch *from,
                        const struct slu_seq *q, unsigned tok_bytes)
{
    const void *tok = slu_batch_at(from, q->tok_off);
    const uint64_t n = q->len_tok;
    if (from->masks)
        slu_mask_split(tok, n, p, tok_bytes, NULL);
    else if (tok_bytes == 2)
        for (uint64_t i = 0; i < n; i++)
            slu_put_le16(p + 2 * i, ((const uint16_t *)tok)[i]);
    else
        for (uint64_t i = 0; i < n; i++)
            slu_put_le32(p + 4 * i, ((const uint32_t *)tok)[i]);
    return p + n * tok_bytes;
}

/* Writes [loss_mask][seq_lengths][tokens], all of fixed shape. */
static int put_fixed(uint8_t **at, const struct slu_shard_bucket *b,
                     const struct slu_batch *from, const struct slu_seq *q,
                     struct slu_err *err)
{
    const uint64_t n_length = b->max_segments;
    const struct slu_seg *seg = &from->seg[q->seg_off];
    uint8_t *p = *at;
    uint64_t n_seg = q->n_seg;
    while (n_seg && seg[n_seg - 1].source == SLU_PADDING)
        n_seg--;
    if (n_seg > n_length)
        return slu_advise(err, SLU_ADVISE_MAX_SEGMENTS,
                          slu_fail(err, SLU_E_MISMATCH,
                                   "a sequence in %s has %llu segments, and the array "
                                   "of lengths has room for %llu",
                                   b->name, (unsigned long long)n_seg,
                                   (unsigned long long)n_length));
    p = put_mask(p, from, q);
    for (uint64_t i = 0; i < n_length; i++, p += 4)
        slu_put_le32(p, i < n_seg ? (uint32_t)seg[i].len_tok : 0);
    *at = put_ids(p, from, q, b->tok_bytes);
    return SLU_OK;
}

/* Writes the shape of n values: their number, the only dimension. */
static uint8_t *put_shape(uint8_t *p, uint64_t n)
{
    const unsigned dim = shape_byte(n) - 1;
    uint8_t le[4];
    slu_put_le32(le, (uint32_t)n);
    *p++ = (uint8_t)(1 << 2 | dim >> 1);
    memcpy(p, le, dim);
    return p + dim;
}

/* Writes [sizes of both columns][loss_mask][tokens] of a document. */
static uint8_t *put_document(uint8_t *p, const struct slu_shard_bucket *b,
                             const struct slu_batch *from, const struct slu_seq *q)
{
    const uint64_t n = q->len_tok, shape = shape_byte(n);
    if (b->masks) {
        slu_put_le32(p, (uint32_t)(shape + n));
        p += 4;
    }
    slu_put_le32(p, (uint32_t)(shape + n * b->tok_bytes));
    p += 4;
    if (b->masks)
        p = put_mask(put_shape(p, n), from, q);
    return put_ids(put_shape(p, n), from, q, b->tok_bytes);
}

/* Writes [size of seq_lengths, the only column without a fixed
 * size][loss_mask][seq_lengths][tokens]. */
static uint8_t *put_sample(uint8_t *p, const struct slu_shard_bucket *b,
                           const struct slu_batch *from, const struct slu_seq *q)
{
    slu_put_le32(p, (uint32_t)(shape_byte(q->n_seg) + 4 * q->n_seg));
    p = put_shape(put_mask(p + 4, from, q), q->n_seg);
    for (uint64_t i = 0; i < q->n_seg; i++, p += 4)
        slu_put_le32(p, (uint32_t)from->seg[q->seg_off + i].len_tok);
    return put_ids(p, from, q, b->tok_bytes);
}

static int put_raw(const struct mds *m, const struct slu_shard *s,
                   const struct slu_batch *b, struct slu_buf *raw, struct slu_err *err)
{
    uint64_t table = 4 * (s->n_seq + 2), byte = table, fixed = s->bucket->max_segments;
    for (size_t i = 0; i < b->n_seq; i++)
        byte +=
            sample_byte(s->bucket, b->seq[i].len_tok, fixed ? fixed : b->seq[i].n_seg);
    int rc = slu_buf_reserve(raw, byte + MAX_CONFIG, err);
    if (rc)
        return rc;
    raw->len = table;
    rc = put_config(m, s->bucket, true, raw, err);
    if (rc)
        return rc;
    uint8_t *p = raw->data + raw->len;
    slu_put_le32(raw->data, (uint32_t)s->n_seq);
    for (size_t i = 0; i < b->n_seq; i++) {
        slu_put_le32(raw->data + 4 * (i + 1), (uint32_t)(p - raw->data));
        if (!s->bucket->length)
            p = put_document(p, s->bucket, b, &b->seq[i]);
        else if (!fixed)
            p = put_sample(p, s->bucket, b, &b->seq[i]);
        else if ((rc = put_fixed(&p, s->bucket, b, &b->seq[i], err)))
            return rc;
    }
    raw->len = (size_t)(p - raw->data);
    slu_put_le32(raw->data + table - 4, (uint32_t)raw->len);
    return raw->len <= UINT32_MAX
               ? SLU_OK
               : slu_fail(err, SLU_E_LIMIT, "internal error: an MDS shard of %zu bytes",
                          raw->len);
}

static int mds_build(const void *state, const struct slu_shard *s,
                     const struct slu_batch *b, struct slu_buf *out,
                     struct slu_shard_facts *f, struct slu_err *err)
{
    const struct mds *m = state;
    struct slu_buf raw = SLU_BUF_INIT;
    if (!m->level)
        return put_raw(m, s, b, out, err);
    int rc = put_raw(m, s, b, &raw, err);
    if (!rc)
        rc = slu_zstd_frame(out, raw.data, raw.len, m->level, err);
    f->raw_byte = raw.len;
    f->raw_xxh3 = rc ? 0 : slu_hash64(raw.data, raw.len);
    slu_buf_release(&raw);
    return rc;
}

/* ---- index.json ---- */

/* Whether all shards of the index have the columns that we write. */
static int check_columns(const struct mds *m, const struct slu_shard_bucket *b,
                         const char *dir, const struct slu_mds_index *x,
                         struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    struct slu_mds_columns ours;
    struct slu_json *j = NULL;
    int rc = put_config(m, b, true, &t, err);

    if (!rc)
        rc = slu_json_parse(&j, t.data, t.len, err);
    slu_buf_release(&t);
    if (!rc)
        rc = slu_mds_columns_parse(&ours, slu_json_root(j), NULL, 0, err);
    slu_json_free(j);
    if (rc)
        return rc;
    for (size_t i = 0; i < x->n_shard && !rc; i++)
        if (!slu_mds_columns_equal(&ours, x->shard[i].columns))
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s/index.json: shard %zu has other columns than the shuffle "
                          "in the set's provenance writes (--no-provenance); write the "
                          "set again with shuffle",
                          dir, i);
    slu_mds_columns_release(&ours);
    return rc;
}

/* Sizes and hashes of what the shards are uncompressed. */
static int mds_facts(const void *state, const struct slu_shard_bucket *b,
                     const char *dir, struct slu_shard_facts *shard, uint64_t n,
                     struct slu_err *err)
{
    const struct mds *m = state;
    struct slu_mds_index x = {0};
    int rc = slu_mds_index_load(&x, dir, NULL, 0, err);

    if (!rc && x.n_shard != n)
        rc = slu_fail(err, SLU_E_FORMAT,
                      "%s/index.json: lists %zu shards; its set has %llu", dir,
                      x.n_shard, (unsigned long long)n);
    if (!rc)
        rc = check_columns(m, b, dir, &x, err);
    for (uint64_t i = 0; i < n && !rc && m->level; i++) {
        const char *hex = x.shard[i].raw_hex;
        shard[i].raw_byte = x.shard[i].raw_byte;
        shard[i].raw_xxh3 = hex ? strtoull(hex, NULL, 16) : 0;
        if (!hex || strspn(hex, "0123456789abcdef") != 16 || hex[16])
            rc = slu_fail(err, SLU_E_FORMAT,
                          "%s/index.json: shard %llu has no xxh3_64 of its "
                          "uncompressed bytes",
                          dir, (unsigned long long)i);
    }
    slu_mds_index_release(&x);
    return rc;
}

/* Writes {"basename": …}; zip: of the compressed file. */
static int put_file(const struct mds *m, const struct slu_shard_facts *f, bool zip,
                    const char *folder, struct slu_buf *out, struct slu_err *err)
{
    struct mds plain = {0};
    char name[64];
    bool raw = m->level && !zip;
    mds_file_name(zip ? m : &plain, f->number, 0, name, sizeof name);
    return slu_buf_printf(out, err,
                          "{\"basename\": \"%s%s%s\", \"bytes\": %llu, \"hashes\": "
                          "{\"xxh3_64\": \"%016llx\"}}",
                          folder, *folder ? "/" : "", name,
                          (unsigned long long)(raw ? f->raw_byte : f->n_byte[0]),
                          (unsigned long long)(raw ? f->raw_xxh3 : f->xxh3[0]));
}

static int put_shard(const struct mds *m, const struct slu_shard_bucket *b,
                     const struct slu_shard_facts *f, const char *folder,
                     struct slu_buf *out, struct slu_err *err)
{
    int rc = put_config(m, b, false, out, err);
    if (!rc)
        rc = slu_buf_printf(out, err, "\"raw_data\": ");
    if (!rc)
        rc = put_file(m, f, false, folder, out, err);
    if (!rc)
        rc =
            slu_buf_printf(out, err,
                           ", \"samples\": %llu, \"size_limit\": null, \"version\": 2, "
                           "\"zip_data\": %s",
                           (unsigned long long)f->n_seq, m->level ? "" : "null");
    if (!rc && m->level)
        rc = put_file(m, f, true, folder, out, err);
    return rc ? rc : slu_buf_append(out, "}", 1, err);
}

static int put_bucket(const struct mds *m, const struct slu_shard_bucket *b,
                      const struct slu_shard_facts *f, const char *folder, bool first,
                      struct slu_out *out, struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    int rc = SLU_OK;
    for (uint64_t i = 0; i < b->n_shard && !rc; i++) {
        slu_buf_clear(&text);
        if (i || !first)
            rc = slu_buf_append(&text, ", ", 2, err);
        if (!rc)
            rc = put_shard(m, b, &f[i], folder, &text, err);
        if (!rc)
            rc = slu_out_write(out, text.data, text.len, err);
    }
    slu_buf_release(&text);
    return rc;
}

static int put_text(struct slu_out *out, const char *text, struct slu_err *err)
{
    return slu_out_write(out, text, strlen(text), err);
}

static const char begin[] = "{\"shards\": [", end[] = "], \"version\": 2}";

static int mds_bucket(void *state, const struct slu_shard_bucket *b,
                      const struct slu_shard_facts *shard, struct slu_out *out,
                      struct slu_err *err)
{
    int rc = put_text(out, begin, err);
    if (!rc)
        rc = put_bucket(state, b, shard, "", true, out, err);
    return rc ? rc : put_text(out, end, err);
}

static int mds_set(void *state, const struct slu_shard_set *set, struct slu_err *err)
{
    struct slu_out *out;
    int rc = slu_shard_set_open(set, "index.json", &out, err);
    if (rc)
        return rc;
    rc = put_text(out, begin, err);
    for (unsigned i = 0; i < set->n_bucket && !rc; i++)
        rc = put_bucket(state, set->bucket[i], set->shard[i], set->bucket[i]->name,
                        i == 0, out, err);
    if (!rc)
        rc = put_text(out, end, err);
    if (!rc)
        return slu_out_close(out, err);
    slu_out_abort(out);
    return rc;
}

static bool mds_owns_in_set(const char *name)
{
    return !strcmp(name, "index.json");
}

const struct slu_shard_format slu_shard_mds = {
    .name = "mds",
    .labels = SLU_LABELS_ANY,
    .masks = true,
    .documents = true,
    .inner_padding = SLU_INNER_MASKS,
    .ignore_id = "a tokenizer whose pad_token_id is",
    .shard_byte = SLU_SHARD_BUILT_BYTE,
    .shard_sequences = mds_shard_sequences,
    .check = mds_check,
    .init = mds_init,
    .release = mds_release,
    .n_file = 1,
    .file_name = mds_file_name,
    .owns = mds_owns,
    .build = mds_build,
    .build_byte = mds_build_byte,
    .facts = mds_facts,
    .bucket_file = "index.json",
    .bucket = mds_bucket,
    .set = mds_set,
    .owns_in_set = mds_owns_in_set,
    .options = SLU_SHARD_COMPRESS | SLU_SHARD_SEGMENTS,
};
