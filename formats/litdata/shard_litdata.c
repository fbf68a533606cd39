/* shard_litdata.c - chunks as LitData's StreamingDataset reads them with TokensLoader:
 *
 *   D_<i>/chunk-0-%d[.zstd].bin  u32 n, u32 off[n + 1] from the file's beginning, the
 *                                ids
 *   D_<i>/index.json             {"chunks": […], "config": {…}}
 *
 * Of a stream with masks, the items are those that LitData's default loader,
 * PyTreeLoader, reads: dictionaries of input_ids and loss_mask, which is 1 for a token
 * that is trained on, else 0. An item has the sizes of both (u32), then both.
 *
 * TokensLoader divides the ids of a chunk by its block_size and never reads the
 * offsets. Each item has as many ids as a sequence, so this number is the exact
 * block_size; of whole documents, any number is. The format does not record where the
 * documents of a packed sequence begin. Offsets have 32 bits. A compressed chunk is one
 * frame that states its size, as the reader requires; chunk_bytes is the uncompressed
 * size, as from LitData's own writer.
 */
#include "formats/shards/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/shards/zstd_frame.h"
#include "lib/base/hash.h"
#include "lib/base/le.h"

enum { AUTO_TOKENS = 1 << 24 };

/* Positions in LitData's list of NumPy types. */
enum { TYPE_U8 = 4, TYPE_U16 = 5, TYPE_U32 = 6 };

struct litdata {
    int level; /* level of zstd; 0: not compressed */
};

static int litdata_init(void **state, const struct slu_shards_cfg *cfg,
                        struct slu_err *err)
{
    struct litdata *l = calloc(1, sizeof *l);
    *state = l;
    if (!l)
        return slu_fail_nomem(err, sizeof *l);
    l->level = cfg->compress_set ? cfg->compress_level : 0;
    return SLU_OK;
}

static void litdata_release(void *state)
{
    free(state);
}

static void litdata_file_name(const void *state, uint64_t number, unsigned file,
                              char *out, size_t cap)
{
    const struct litdata *l = state;
    (void)file;
    snprintf(out, cap, "chunk-0-%llu%s.bin", (unsigned long long)number,
             l->level ? ".zstd" : "");
}

static bool litdata_owns(const char *name)
{
    return !strcmp(name, "index.json") || slu_shard_name_is(name, "chunk-0-", ".bin") ||
           slu_shard_name_is(name, "chunk-0-", ".zstd.bin");
}

/* Bytes of n_seq items of n_tok ids in all. */
static uint64_t items_byte(const struct slu_shard_bucket *b, uint64_t n_seq,
                           uint64_t n_tok)
{
    return n_tok * (b->tok_bytes + b->masks) + (b->masks ? 8 * n_seq : 0);
}

static uint64_t raw_byte(const struct slu_shard_bucket *b, uint64_t n_seq,
                         uint64_t n_tok)
{
    return 4 * (n_seq + 2) + items_byte(b, n_seq, n_tok);
}

static uint64_t most_sequences(const struct slu_shard_bucket *b)
{
    return (UINT32_MAX - 8) / (4 + items_byte(b, 1, b->n_id));
}

static uint64_t litdata_shard_sequences(const struct slu_shard_bucket *b)
{
    uint64_t n = AUTO_TOKENS / b->length, most = most_sequences(b);
    n = n > most ? most : n;
    return n ? n : 1;
}

static int litdata_check(const struct slu_shard_bucket *b, struct slu_err *err)
{
    uint64_t most = most_sequences(b);
    return b->shard_sequences <= most
               ? SLU_OK
               : slu_shard_too_large(&slu_shard_litdata, b, "LitData's 4 GiB a chunk",
                                     most, err);
}

static uint64_t litdata_build_byte(const struct slu_shard_bucket *b)
{
    const struct slu_shard_most n = slu_shard_most(b);
    uint64_t raw = raw_byte(b, n.n_seq, n.n_tok);
    return raw + slu_zstd_frame_bound(raw) + (4 << 20);
}

/* Puts [size of ids][size of mask][ids][mask]. */
static uint8_t *put_item(uint8_t *p, const struct slu_shard_bucket *b,
                         const uint32_t *marked, uint64_t n_id)
{
    const uint64_t n_id_byte = n_id * b->tok_bytes;
    slu_put_le32(p, (uint32_t)n_id_byte);
    slu_put_le32(p + 4, (uint32_t)n_id);
    slu_mask_split(marked, n_id, p + 8, b->tok_bytes, NULL);
    p += 8 + n_id_byte;
    for (uint64_t i = 0; i < n_id; i++)
        *p++ = (uint8_t)(marked[i] >> 31);
    return p;
}

static int put_raw(const struct slu_shard *s, const struct slu_batch *b,
                   struct slu_buf *raw, struct slu_err *err)
{
    const unsigned w = s->bucket->tok_bytes;
    const uint64_t table = 4 * (s->n_seq + 2);
    int rc = slu_buf_reserve(raw, raw_byte(s->bucket, s->n_seq, s->n_tok), err);
    if (rc)
        return rc;
    slu_put_le32(raw->data, (uint32_t)s->n_seq);
    uint8_t *p = raw->data + table;
    slu_put_le32(raw->data + 4, (uint32_t)table);
    for (size_t k = 0; k < b->n_seq; k++) {
        const void *tok = slu_batch_at(b, b->seq[k].tok_off);
        const uint64_t n_id = b->seq[k].len_tok;
        slu_put_le32(
            raw->data + 4 * (k + 2),
            (uint32_t)((uint64_t)(p - raw->data) + items_byte(s->bucket, 1, n_id)));
        if (b->masks) {
            p = put_item(p, s->bucket, tok, n_id);
            continue;
        }
        for (uint64_t i = 0; i < n_id && w == 2; i++)
            slu_put_le16(p + 2 * i, ((const uint16_t *)tok)[i]);
        for (uint64_t i = 0; i < n_id && w == 4; i++)
            slu_put_le32(p + 4 * i, ((const uint32_t *)tok)[i]);
        p += n_id * w;
    }
    raw->len = (size_t)(p - raw->data);
    return SLU_OK;
}

static int litdata_build(const void *state, const struct slu_shard *s,
                         const struct slu_batch *b, struct slu_buf *out,
                         struct slu_shard_facts *f, struct slu_err *err)
{
    const struct litdata *l = state;
    struct slu_buf raw = SLU_BUF_INIT;
    if (!l->level)
        return put_raw(s, b, out, err);
    int rc = put_raw(s, b, &raw, err);
    if (!rc)
        rc = slu_zstd_frame(out, raw.data, raw.len, l->level, err);
    f->raw_byte = raw.len;
    f->raw_xxh3 = rc ? 0 : slu_hash64(raw.data, raw.len);
    slu_buf_release(&raw);
    return rc;
}

#define LEAF "{\\\"type\\\": null, \\\"context\\\": null, \\\"children_spec\\\": []}"

static int put_config(const struct litdata *l, const struct slu_shard_bucket *b,
                      struct slu_buf *text, struct slu_err *err)
{
    static const char
        plain[] = LEAF,
        item[] = "{\\\"type\\\": \\\"builtins.dict\\\", \\\"context\\\": "
                 "\\\"[\\\\\\\"input_ids\\\\\\\", \\\\\\\"loss_mask\\\\\\\"]\\\", "
                 "\\\"children_spec\\\": [" LEAF ", " LEAF "]}";
    char mask[32] = "", size[64];
    snprintf(size, sizeof size,
             b->length ? "\"chunk_bytes\": null, \"chunk_size\": %llu"
                       : "\"chunk_bytes\": %llu, \"chunk_size\": null",
             (unsigned long long)(b->length ? b->shard_sequences : b->rule.size));
    if (b->masks)
        snprintf(mask, sizeof mask, ", \"no_header_numpy:%d\"", TYPE_U8);
    return slu_buf_printf(
        text, err,
        "], \"config\": {%s, "
        "\"compression\": %s, \"data_format\": [\"no_header_numpy:%d\"%s], "
        "\"data_spec\": \"[1, %s]\", \"encryption\": null, \"item_loader\": "
        "\"%s\"}}",
        size, l->level ? "\"zstd\"" : "null", b->tok_bytes == 2 ? TYPE_U16 : TYPE_U32,
        mask, b->masks ? item : plain, b->masks ? "PyTreeLoader" : "TokensLoader");
}

/* Writes {"chunks": […], "config": …}, without "updated_at", because no output has
 * times. */
static int litdata_bucket(void *state, const struct slu_shard_bucket *b,
                          const struct slu_shard_facts *shard, struct slu_out *out,
                          struct slu_err *err)
{
    const struct litdata *l = state;
    struct slu_buf text = SLU_BUF_INIT;
    int rc = slu_buf_printf(&text, err, "{\"chunks\": [");
    for (uint64_t i = 0; i < b->n_shard && !rc; i++) {
        char name[64];
        litdata_file_name(l, shard[i].number, 0, name, sizeof name);
        char dim[24] = "null";
        if (!b->masks)
            snprintf(dim, sizeof dim, "%llu", (unsigned long long)shard[i].n_tok);
        rc = slu_buf_printf(
            &text, err,
            "%s{\"chunk_bytes\": %llu, \"chunk_size\": %llu, \"dim\": "
            "%s, \"filename\": \"%s\"}",
            i ? ", " : "",
            (unsigned long long)raw_byte(b, shard[i].n_seq, shard[i].n_tok),
            (unsigned long long)shard[i].n_seq, dim, name);
    }
    if (!rc)
        rc = put_config(l, b, &text, err);
    if (!rc)
        rc = slu_out_write(out, text.data, text.len, err);
    slu_buf_release(&text);
    return rc;
}

const struct slu_shard_format slu_shard_litdata = {
    .name = "litdata",
    .labels = SLU_LABELS_ANY,
    .masks = true,
    .documents = true,
    .inner_padding = SLU_INNER_MASKS,
    .shard_byte = SLU_SHARD_BUILT_BYTE,
    .shard_sequences = litdata_shard_sequences,
    .check = litdata_check,
    .init = litdata_init,
    .release = litdata_release,
    .n_file = 1,
    .file_name = litdata_file_name,
    .owns = litdata_owns,
    .boundaries = "LitData's TokensLoader cannot say where the documents of a packed "
                  "sequence begin: EOS alone tells; use mds, ds or olmo to keep them",
    .build = litdata_build,
    .build_byte = litdata_build_byte,
    .bucket_file = "index.json",
    .bucket = litdata_bucket,
    .options = SLU_SHARD_COMPRESS,
};
