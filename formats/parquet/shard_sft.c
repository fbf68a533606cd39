/* shard_sft.c - packed Parquet as Megatron-Bridge's GPTSFTPackedParquetDataset reads it
 * (megatron/bridge/data/packing/parquet.py and gpt_sft.py):
 *
 *   D_<i>/shard-%07d.idx.parquet  a row for each sequence, with lists:
 *     input_ids     the ids, int32
 *     loss_mask     int8, 1 where the next token of the segment is trained on: the mask
 *                   of the labels, which the reader does not shift. 0 at the last token
 *                   of each segment, and at padding
 *     seq_start_id  where the segments begin, padding at the end included, int32.
 *                   Padding between segments belongs to the segment before it
 *
 * The trainer makes inputs of all tokens of a segment but the last, and labels of all
 * but the first, so a first token is never trained on. Without masks all labels are.
 *
 * A column for each field of metadata follows, which the trainer does not read: a list
 * with a value for each of seq_start_id (shard_parquet.c).
 */
#include "shard_parquet.h"

#include <stdio.h>

enum { INPUT_IDS, LOSS_MASK, SEQ_START_ID, N_COLUMN };

static const char *const columns[N_COLUMN] = {"input_ids", "loss_mask", "seq_start_id"};

static int sft_init(void **state, const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    return slu_parquet_shards_new(state, cfg, columns, N_COLUMN, err);
}

static void sft_file_name(const void *state, uint64_t number, unsigned file, char *out,
                          size_t cap)
{
    (void)state;
    (void)file;
    snprintf(out, cap, "shard-%07llu.idx.parquet", (unsigned long long)number);
}

static bool sft_owns(const char *name)
{
    return slu_shard_name_is(name, "shard-", ".idx.parquet");
}

static uint64_t sft_build_byte(const struct slu_shard_bucket *b)
{
    return slu_parquet_shards_byte(b, N_COLUMN);
}

static int sft_check(const struct slu_shard_bucket *b, struct slu_err *err)
{
    return slu_parquet_shards_check(&slu_shard_megatron_sft, b, err);
}

static void put_mask(const struct slu_batch *b, const struct slu_seq *q,
                     const struct slu_seg *seg, uint64_t at, int32_t *out)
{
    const bool padding = seg->source == SLU_PADDING;
    for (uint64_t i = 0; i < seg->len_tok; i++)
        out[at + i] = !padding && i + 1 < seg->len_tok &&
                      slu_batch_trained(b, q->tok_off + at + i + 1);
}

/* Whether segment k begins an element of seq_start_id. */
static bool begins(const struct slu_seq *q, const struct slu_seg *seg, uint64_t k)
{
    return k == 0 || k + 1 == q->n_seg || seg[k].source != SLU_PADDING;
}

static uint64_t put_values(void *ctx, uint64_t key, uint64_t row,
                           struct slu_meta_value *out)
{
    const struct slu_batch *b = ctx;
    const struct slu_seq *q = &b->seq[row];
    const struct slu_seg *seg = &b->seg[q->seg_off];
    uint64_t n = 0;
    for (uint64_t k = 0; k < q->n_seg; k++)
        if (begins(q, seg, k))
            out[n++] = slu_parquet_shards_value(b, &seg[k], key);
    return n;
}

static uint64_t put_list(void *ctx, unsigned column, uint64_t row, int32_t *out)
{
    const struct slu_batch *b = ctx;
    const struct slu_seq *q = &b->seq[row];
    const struct slu_seg *seg = &b->seg[q->seg_off];
    uint64_t at = 0, n = 0;
    if (column == INPUT_IDS)
        return slu_parquet_shards_ids(b, q, out);
    for (uint64_t k = 0; k < q->n_seg; at += seg[k++].len_tok) {
        if (column == LOSS_MASK)
            put_mask(b, q, &seg[k], at, out);
        else if (begins(q, seg, k))
            out[n++] = (int32_t)at;
    }
    return column == SEQ_START_ID ? n : q->len_tok;
}

static int sft_build(const void *state, const struct slu_shard *s,
                     const struct slu_batch *b, struct slu_buf *out,
                     struct slu_shard_facts *f, struct slu_err *err)
{
    struct slu_parquet_table table = {
        .column = columns,
        .n_column = N_COLUMN,
        .int8 = 1U << LOSS_MASK,
        .ctx = (void *)(uintptr_t)b,
        .list = put_list,
        .metadata = put_values,
    };
    (void)f;
    return slu_parquet_shards_write(state, &table, s, b, out, err);
}

const struct slu_shard_format slu_shard_megatron_sft = {
    .name = "megatron-sft",
    .labels = SLU_LABELS_UNWANTED,
    .masks = true,
    .inner_padding = SLU_INNER_LABELS,
    .shard_sequences = slu_parquet_shards_auto,
    .check = sft_check,
    .init = sft_init,
    .release = slu_parquet_shards_release,
    .n_file = 1,
    .file_name = sft_file_name,
    .owns = sft_owns,
    .build = sft_build,
    .build_byte = sft_build_byte,
    .options = SLU_SHARD_COMPRESS,
};
