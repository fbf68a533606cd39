/* shard_parquet.c - Parquet as TRL's collator and Hugging Face's datasets read it:
 *
 *   D_<i>/shard-%07d.parquet  a row for each sequence, with lists of int32:
 *     input_ids     the ids
 *     labels        the same ids, but -100, which the loss ignores, at padding and at
 *                   the first token of each segment, which no token of its document
 *                   precedes
 *     seq_lengths   lengths of the segments, padding included
 *     position_ids  positions from 0 in each segment
 *     assistant_masks  of a stream with masks: 1 at a token that is trained on, else 0;
 *                   labels then are -100 at each other token, too
 *   documents/…               of whole documents input_ids and assistant_masks alone
 *
 * A column for each field of metadata follows: a list with a value for each of
 * seq_lengths; of whole documents, the document's value. They are for those who read the
 * set; sluice takes metadata from the segments.
 *
 * TRL's DataCollatorForLanguageModeling with padding_free (trl/trainer/sft_trainer.py)
 * makes positions from seq_lengths, and the same labels from input_ids, except at
 * padding. Models shift the labels themselves, so there are no label tokens. Files are
 * compressed with zstd; row groups have about 2^20 ids, which a streaming reader holds
 * at a time. The bytes depend on Arrow's version, which the footer states.
 */
#include "shard_parquet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/json_write.h"
#include "lib/stream/property.h"

enum { AUTO_TOKENS = 1 << 23, GROUP_TOKENS = 1 << 20, LEVEL = 3 };
enum { INPUT_IDS, LABELS, SEQ_LENGTHS, POSITION_IDS, N_COLUMN, MASKS = N_COLUMN };
enum { DOCUMENT_IDS, N_DOCUMENT_COLUMN };
#define NO_LABEL (-100)

/* The last one is only in sets with masks. */
static const char *const columns[N_COLUMN + 1] = {"input_ids", "labels", "seq_lengths",
                                                  "position_ids", "assistant_masks"},
                                            *const document_columns[] = {
                                                "input_ids", "assistant_masks"};

/* ---- state ---- */

/* Refuses a field with the name of a column. */
static int check_names(const struct slu_shards_cfg *cfg, const char *const *column,
                       unsigned n_column, struct slu_err *err)
{
    for (unsigned i = 0; i < n_column; i++)
        if (slu_meta_find(&cfg->header->meta, column[i], strlen(column[i])) >= 0)
            return slu_advise(
                err, SLU_ADVISE_DROP_FIELD,
                slu_fail(err, SLU_E_UNSUPPORTED,
                         "format %s has a column '%s' of its own, and the stream a "
                         "metadata field of this name",
                         cfg->format->name, column[i]));
    return SLU_OK;
}

int slu_parquet_shards_new(void **state, const struct slu_shards_cfg *cfg,
                           const char *const *column, unsigned n_column,
                           struct slu_err *err)
{
    const struct slu_parquet *lib = slu_parquet_load();
    struct slu_parquet_shards *p;
    *state = NULL;
    if (!lib)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "format %s is not built in: it takes Apache Arrow's library "
                        "(make ARROW=1); mds keeps as much",
                        cfg->format->name);
    if (cfg->header && cfg->header->vocab_size > INT32_MAX)
        return slu_fail(err, SLU_E_USAGE,
                        "format %s has ids of int32, for a vocabulary size of at most "
                        "2147483647; the stream's is %llu",
                        cfg->format->name, (unsigned long long)cfg->header->vocab_size);
    int rc = cfg->header ? check_names(cfg, column, n_column, err) : SLU_OK;
    if (rc)
        return rc;
    *state = p = calloc(1, sizeof *p);
    if (!p)
        return slu_fail_nomem(err, sizeof *p);
    p->lib = lib;
    p->level = cfg->compress_set ? cfg->compress_level : LEVEL;
    if (cfg->header)
        p->meta = cfg->header->meta;
    return SLU_OK;
}

static int parquet_init(void **state, const struct slu_shards_cfg *cfg,
                        struct slu_err *err)
{
    return cfg->documents
               ? slu_parquet_shards_new(state, cfg, document_columns,
                                        N_DOCUMENT_COLUMN + 1, err)
               : slu_parquet_shards_new(state, cfg, columns, N_COLUMN + 1, err);
}

void slu_parquet_shards_release(void *state)
{
    free(state);
}

static void parquet_file_name(const void *state, uint64_t number, unsigned file,
                              char *out, size_t cap)
{
    (void)state;
    (void)file;
    snprintf(out, cap, "shard-%07llu.parquet", (unsigned long long)number);
}

static bool parquet_owns(const char *name)
{
    return slu_shard_name_is(name, "shard-", ".parquet");
}

uint64_t slu_parquet_shards_auto(const struct slu_shard_bucket *b)
{
    uint64_t n = AUTO_TOKENS / b->length;
    return n ? n : 1;
}

/* Rows of a row group, of n_seq rows with n_tok ids. */
static uint64_t group_rows(uint64_t n_seq, uint64_t n_tok)
{
    uint64_t n = n_tok ? GROUP_TOKENS * n_seq / n_tok : 0;
    return n ? n : 1;
}

/* The columns; one of them for a row group a second time while it is written, of
 * documents perhaps with most of the ids; a list with its levels. */
uint64_t slu_parquet_shards_byte(const struct slu_shard_bucket *b, unsigned n_column)
{
    const struct slu_shard_most n = slu_shard_most(b);
    uint64_t group = group_rows(n.n_seq, n.n_tok) * b->n_id;
    if (!b->length || group > n.n_tok)
        group = n.n_tok;
    return n.n_tok * 4 * n_column + 64 * n.n_seq + 12 * group + 8 * n.longest +
           (4 << 20);
}

/* Parquet's strings are UTF-8, which a stream of others need not have. */
static int check_texts(const struct slu_parquet_shards *p, const struct slu_batch *b,
                       const struct slu_seg *seg, struct slu_err *err)
{
    for (unsigned i = 0; i < p->meta.n && seg->meta_len; i++) {
        const struct slu_meta_field *f = &p->meta.field[i];
        const struct slu_meta_value v = slu_parquet_shards_value(b, seg, f->key);
        if (v.p && !slu_meta_width(f->type) && slu_utf8_valid_prefix(v.p, v.n) != v.n)
            return slu_fail(
                err, SLU_E_FORMAT,
                "source %llu, document %llu: the metadata field '%s' is not "
                "UTF-8, as strings of Parquet are",
                (unsigned long long)seg->source, (unsigned long long)seg->document,
                f->name);
    }
    return SLU_OK;
}

int slu_parquet_shards_write(const struct slu_parquet_shards *p,
                             struct slu_parquet_table *t, const struct slu_shard *s,
                             const struct slu_batch *b, struct slu_buf *out,
                             struct slu_err *err)
{
    int rc = SLU_OK;

    t->meta = &p->meta;
    for (size_t i = 0; i < b->n_seg && !rc; i++)
        rc = check_texts(p, b, &b->seg[i], err);
    for (size_t i = 0; i < b->n_seq; i++)
        if (b->seq[i].n_seg > t->most_values)
            t->most_values = b->seq[i].n_seg;
    if (rc)
        return rc;
    t->n_row = s->n_seq;
    t->group_rows = group_rows(s->n_seq, s->n_tok);
    for (size_t i = 0; i < b->n_seq; i++)
        t->most = b->seq[i].len_tok > t->most ? b->seq[i].len_tok : t->most;
    return p->lib->write(t, p->level, out, err);
}

static uint64_t parquet_build_byte(const struct slu_shard_bucket *b)
{
    return slu_parquet_shards_byte(b, (b->length ? N_COLUMN : N_DOCUMENT_COLUMN) +
                                          b->masks);
}

/* ---- a table of the shard's sequences ---- */

uint64_t slu_parquet_shards_ids(const struct slu_batch *b, const struct slu_seq *q,
                                int32_t *out)
{
    for (uint64_t i = 0; i < q->len_tok; i++)
        out[i] = (int32_t)slu_batch_id(b, q->tok_off + i);
    return q->len_tok;
}

struct slu_meta_value slu_parquet_shards_value(const struct slu_batch *b,
                                               const struct slu_seg *seg, uint64_t key)
{
    struct slu_meta_value v = {0};

    return slu_seg_meta(b, seg, key, &v) ? v : (struct slu_meta_value){0};
}

/* The values of all segments. */
static uint64_t put_values(void *ctx, uint64_t key, uint64_t row,
                           struct slu_meta_value *out)
{
    const struct slu_batch *b = ctx;
    const struct slu_seq *q = &b->seq[row];
    const struct slu_seg *seg = &b->seg[q->seg_off];
    uint64_t n = 0;
    for (uint64_t k = 0; k < q->n_seg; k++)
        if (seg[k].len_tok)
            out[n++] = slu_parquet_shards_value(b, &seg[k], key);
    return n;
}

/* The value of a whole document, whose segments have the same. */
static uint64_t put_value(void *ctx, uint64_t key, uint64_t row,
                          struct slu_meta_value *out)
{
    const struct slu_batch *b = ctx;
    *out = slu_parquet_shards_value(b, &b->seg[b->seq[row].seg_off], key);
    return 1;
}

static uint64_t put_mask(const struct slu_batch *b, const struct slu_seq *q,
                         int32_t *out)
{
    for (uint64_t i = 0; i < q->len_tok; i++)
        out[i] = slu_batch_trained(b, q->tok_off + i);
    return q->len_tok;
}

static uint64_t put_document(void *ctx, unsigned column, uint64_t row, int32_t *out)
{
    const struct slu_batch *b = ctx;
    return column == DOCUMENT_IDS ? slu_parquet_shards_ids(b, &b->seq[row], out)
                                  : put_mask(b, &b->seq[row], out);
}

static uint64_t put_list(void *ctx, unsigned column, uint64_t row, int32_t *out)
{
    const struct slu_batch *b = ctx;
    const struct slu_seq *q = &b->seq[row];
    const struct slu_seg *seg = &b->seg[q->seg_off];
    uint64_t at = 0, n = 0;
    if (column == INPUT_IDS)
        return slu_parquet_shards_ids(b, q, out);
    if (column == MASKS)
        return put_mask(b, q, out);
    if (column == LABELS)
        slu_parquet_shards_ids(b, q, out);
    for (uint64_t k = 0; k < q->n_seg; at += seg[k++].len_tok) {
        uint64_t len = seg[k].len_tok;
        if (len == 0)
            continue;
        if (column == SEQ_LENGTHS)
            out[n++] = (int32_t)len;
        for (uint64_t i = 0; column == POSITION_IDS && i < len; i++)
            out[at + i] = (int32_t)i;
        if (column == LABELS) {
            uint64_t masked = seg[k].source == SLU_PADDING ? len : 1;
            for (uint64_t i = 0; i < len; i++)
                if (i < masked || !slu_batch_trained(b, q->tok_off + at + i))
                    out[at + i] = NO_LABEL;
        }
    }
    return column == SEQ_LENGTHS ? n : q->len_tok;
}

/* Appends `{"info": {"features": …}}`, in the form from which every version of datasets
 * takes its features. */
static int put_features(const struct slu_parquet_table *t,
                        const struct slu_meta_fields *meta, struct slu_buf *out,
                        struct slu_err *err)
{
    static const char *const dtype[SLU_META_N_TYPE] = {
        [SLU_META_IS_NAME] = "string", [SLU_META_IS_TEXT] = "string",
        [SLU_META_IS_U8] = "uint8",    [SLU_META_IS_U32] = "uint32",
        [SLU_META_IS_U64] = "uint64",  [SLU_META_IS_F32] = "float32",
        [SLU_META_IS_I64] = "int64",   [SLU_META_IS_F64] = "float64",
    };
    int rc = slu_buf_printf(out, err, "{\"info\": {\"features\": {");

    for (unsigned i = 0; i < t->n_column + meta->n && !rc; i++) {
        const struct slu_meta_field *f =
            i < t->n_column ? NULL : &meta->field[i - t->n_column];
        const char *name = f ? f->name : t->column[i];
        const bool single = f && t->single;
        if (i)
            rc = slu_buf_printf(out, err, ", ");
        if (!rc)
            rc = slu_json_put_string(out, name, strlen(name), err);
        if (!rc)
            rc = slu_buf_printf(
                out, err, ": %s{\"dtype\": \"%s\", \"_type\": \"Value\"}%s",
                single ? "" : "{\"feature\": ", f ? dtype[f->type] : "int32",
                single ? "" : ", \"_type\": \"Sequence\"}");
    }
    return rc ? rc : slu_buf_append(out, "}}}", 4, err);
}

static int parquet_build(const void *state, const struct slu_shard *s,
                         const struct slu_batch *b, struct slu_buf *out,
                         struct slu_shard_facts *f, struct slu_err *err)
{
    const struct slu_parquet_shards *p = state;
    struct slu_buf features = SLU_BUF_INIT;
    struct slu_parquet_table table = {
        .column = columns,
        .n_column = N_COLUMN + b->masks,
        .delta = 1U << POSITION_IDS,
        .key = "huggingface",
        .ctx = (void *)(uintptr_t)b,
        .list = put_list,
        .metadata = put_values,
    };
    (void)f;
    if (!s->bucket->length) {
        table.column = document_columns;
        table.n_column = N_DOCUMENT_COLUMN + b->masks;
        table.delta = 0;
        table.list = put_document;
        table.metadata = put_value;
        table.single = true;
    }
    int rc = put_features(&table, &p->meta, &features, err);
    table.value = (const char *)features.data;
    if (!rc)
        rc = slu_parquet_shards_write(state, &table, s, b, out, err);
    slu_buf_release(&features);
    return rc;
}

int slu_parquet_shards_check(const struct slu_shard_format *f,
                             const struct slu_shard_bucket *b, struct slu_err *err)
{
    return b->n_id <= INT32_MAX
               ? SLU_OK
               : slu_fail(err, SLU_E_USAGE,
                          "format %s has lengths of int32, and there "
                          "are sequences of %llu tokens in %s",
                          f->name, (unsigned long long)b->n_id, b->name);
}

static int parquet_check(const struct slu_shard_bucket *b, struct slu_err *err)
{
    return slu_parquet_shards_check(&slu_shard_parquet, b, err);
}

static unsigned parquet_id_bytes(const struct slu_header *h)
{
    (void)h;
    return sizeof(int32_t);
}

/* What TRL does with a set by default, which is to lose most of it. */
static int parquet_card(const void *state, struct slu_buf *out, struct slu_err *err)
{
    (void)state;
    return slu_buf_printf(
        out, err,
        "TRL's `SFTConfig` cuts each row to its first `max_length` ids, 1024 by "
        "default, though they are tokenized. So\ngive it\n\n```python\n"
        "from trl import SFTConfig, SFTTrainer\n\n"
        "args = SFTConfig(max_length=None, packing=False, padding_free=True)\n"
        "SFTTrainer(\"MODEL\", args=args, train_dataset=data).train()\n```\n\nThe last "
        "option keeps the documents of a row apart, with FlashAttention; without it "
        "they "
        "attend to each other.\n\n");
}

const struct slu_shard_format slu_shard_parquet = {
    .name = "parquet",
    .labels = SLU_LABELS_UNWANTED,
    .masks = true,
    .documents = true,
    .inner_padding = SLU_INNER_LABELS,
    .id_bytes = parquet_id_bytes,
    .shard_byte = SLU_SHARD_BUILT_BYTE,
    .shard_sequences = slu_parquet_shards_auto,
    .check = parquet_check,
    .init = parquet_init,
    .release = slu_parquet_shards_release,
    .n_file = 1,
    .file_name = parquet_file_name,
    .owns = parquet_owns,
    .build = parquet_build,
    .build_byte = parquet_build_byte,
    .card = parquet_card,
    .options = SLU_SHARD_COMPRESS,
};
