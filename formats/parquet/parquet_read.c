/* parquet_read.c - reads back the Parquet shards that sluice writes, of both formats
 * (shard_parquet.c, shard_sft.c); checks that the columns agree. */
#include <stdlib.h>
#include <string.h>

#include "formats/shards/shardset.h"
#include "lib/stream/mask.h"
#include "parquet.h"

#define MEMORY_BYTE ((uint64_t)256 << 20)

/* Of parquet; the last column is only in sets with masks. */
enum { INPUT_IDS, LABELS, SEQ_LENGTHS, POSITION_IDS, MASKS, N_COLUMN };
static const char *const columns[N_COLUMN] = {"input_ids", "labels", "seq_lengths",
                                              "position_ids", "assistant_masks"};
/* Of whole documents. */
enum { DOCUMENT_MASKS = 1, N_DOCUMENT_COLUMN };
static const char *const document_columns[] = {"input_ids", "assistant_masks"};
/* Of megatron-sft, behind INPUT_IDS. */
enum { LOSS_MASK = 1, SEQ_START_ID, N_SFT_COLUMN };
static const char *const sft_columns[N_SFT_COLUMN] = {"input_ids", "loss_mask",
                                                      "seq_start_id"};

struct state {
    const struct slu_parquet *lib;
    struct slu_parquet_lists *lists;
    struct slu_buf list[N_COLUMN];
    unsigned n_column;
    bool masks, documents;
    uint64_t row;
    uint64_t n_id; /* of the current sequence */
};

static void close_lists(void *state)
{
    struct state *p = state;
    if (!p)
        return;
    p->lib->lists_close(p->lists);
    for (int i = 0; i < N_COLUMN; i++)
        slu_buf_release(&p->list[i]);
    free(p);
}

static int open_lists(void **state, const char *path, const char *const *column,
                      unsigned n_column, const struct slu_shard_bucket *b,
                      uint64_t n_seq, struct slu_err *err)
{
    const struct slu_parquet *lib = slu_parquet_load();
    struct state *p;
    *state = NULL;
    if (!lib)
        return slu_fail(err, SLU_E_UNSUPPORTED, "%s", SLU_PARQUET_NONE);
    p = calloc(1, sizeof *p);
    if (!p)
        return slu_fail_nomem(err, sizeof *p);
    p->lib = lib;
    p->documents = !b->length;
    p->masks = b->masks;
    p->n_column = n_column;
    int rc =
        lib->lists_open(&p->lists, path, column, n_column, n_seq, MEMORY_BYTE, err);
    if (rc)
        close_lists(p);
    else
        *state = p;
    return rc;
}

static int wrong(const struct state *p, const char *what, uint64_t at,
                 struct slu_err *err)
{
    return slu_fail(err, SLU_E_FORMAT, "row %llu: %s at %llu",
                    (unsigned long long)p->row, what, (unsigned long long)at);
}

/* Reads the next row's lists. All but that of column `apart` have n_id values. */
static int next_lists(struct state *p, uint64_t n_id, unsigned apart,
                      struct slu_err *err)
{
    p->n_id = n_id;
    int rc = p->lib->lists_next(p->lists, p->n_id, p->list, err);
    for (unsigned i = 0; i < p->n_column && !rc; i++)
        if (i != apart && p->list[i].len != 4 * p->n_id)
            rc = wrong(p, "a list is shorter than the row's ids; it ends",
                       p->list[i].len / 4, err);
    return rc;
}

/* ---- parquet ---- */

static int parquet_open(void **state, const char *const *path,
                        const struct slu_shard_bucket *b, uint64_t n_seq,
                        struct slu_err *err)
{
    if (!b->length)
        return open_lists(state, path[0], document_columns,
                          N_DOCUMENT_COLUMN - !b->masks, b, n_seq, err);
    return open_lists(state, path[0], columns, b->masks ? N_COLUMN : MASKS, b, n_seq,
                      err);
}

/* Checks a segment: positions count from 0; labels are the ids except for the first and
 * for those that are not trained on, or padding has no labels. */
static int check_segment(const struct state *p, uint64_t at, uint64_t len,
                         struct slu_err *err)
{
    const int32_t *id = (const int32_t *)(const void *)p->list[INPUT_IDS].data + at;
    const int32_t *label = (const int32_t *)(const void *)p->list[LABELS].data + at;
    const int32_t *pos = (const int32_t *)(const void *)p->list[POSITION_IDS].data + at;
    const int32_t *mask = (const int32_t *)(const void *)p->list[MASKS].data;
    const bool masks = p->masks;
    bool padding = !masks && len > 1 && label[1] == -100;
    mask += masks ? at : 0;
    for (uint64_t i = 0; i < len; i++) {
        if (pos[i] != (int64_t)i)
            return wrong(p, "position_ids and seq_lengths differ", at + i, err);
        if (label[i] != (i == 0 || padding || (masks && !mask[i]) ? -100 : id[i]))
            return wrong(p, "labels and input_ids differ", at + i, err);
    }
    return SLU_OK;
}

/* Checks the row of a sequence of segments. */
static int check_row(struct state *p, struct slu_err *err)
{
    uint64_t at = 0;
    int rc = SLU_OK;
    const int32_t *len = (const int32_t *)(const void *)p->list[SEQ_LENGTHS].data;
    for (size_t k = 0; k < p->list[SEQ_LENGTHS].len / 4 && !rc; k++) {
        if (len[k] <= 0 || (uint64_t)len[k] > p->n_id - at)
            return wrong(p,
                         "a length in seq_lengths is below 1, or passes the row's end,",
                         k, err);
        rc = check_segment(p, at, (uint64_t)len[k], err);
        at += (uint64_t)len[k];
    }
    return !rc && at != p->n_id
               ? wrong(p, "seq_lengths end before the row does,", at, err)
               : rc;
}

static int check_mask(const struct state *p, const int32_t *mask, struct slu_err *err)
{
    for (uint64_t i = 0; i < p->n_id; i++)
        if (mask[i] & ~1)
            return wrong(p, "assistant_masks is neither 0 nor 1", i, err);
    return SLU_OK;
}

static int parquet_next(void *state, uint64_t n_id, struct slu_buf *ids,
                        struct slu_err *err)
{
    struct state *p = state;
    const unsigned masks = p->documents ? DOCUMENT_MASKS : MASKS;
    int rc = next_lists(p, n_id, p->documents ? N_COLUMN : SEQ_LENGTHS, err);
    if (rc)
        return rc;
    const int32_t *mask = (const int32_t *)(const void *)p->list[masks].data;
    if (p->masks)
        rc = check_mask(p, mask, err);
    if (!rc && !p->documents)
        rc = check_row(p, err);
    p->row++;
    slu_buf_clear(ids);
    if (!rc)
        rc = slu_buf_append(ids, p->list[INPUT_IDS].data, p->list[INPUT_IDS].len, err);
    uint32_t *marked = (void *)ids->data;
    if (!rc && p->masks)
        rc = slu_mask_check_plain(marked, p->n_id, err);
    for (uint64_t i = 0; p->masks && !rc && i < p->n_id; i++)
        marked[i] = slu_mask_mark(marked[i], (uint32_t)mask[i]);
    return rc;
}

const struct slu_shard_layout slu_shard_layout_parquet = {.format = "parquet",
                                                          .masks = true,
                                                          .open = parquet_open,
                                                          .next = parquet_next,
                                                          .close = close_lists};

/* ---- megatron-sft ---- */

static int sft_open(void **state, const char *const *path,
                    const struct slu_shard_bucket *b, uint64_t n_seq,
                    struct slu_err *err)
{
    return open_lists(state, path[0], sft_columns, N_SFT_COLUMN, b, n_seq, err);
}

/* Checks the mask of the labels of ids `at` … end - 1, a segment, and marks the labels.
 * Without masks the first ones are trained on, and padding behind them is not. */
static int mark_segment(const struct state *p, uint64_t at, uint64_t end, uint32_t *id,
                        struct slu_err *err)
{
    const int32_t *mask = (const int32_t *)(const void *)p->list[LOSS_MASK].data;
    for (uint64_t i = at; i < end; i++) {
        if (mask[i] & ~1)
            return wrong(p, "loss_mask is neither 0 nor 1", i, err);
        if (i + 1 == end && mask[i])
            return wrong(p, "loss_mask is 1 at the last token of a segment,", i, err);
        if (i > at && !p->masks && mask[i] > mask[i - 1])
            return wrong(p,
                         "loss_mask is 1 behind a 0 within a segment, without masks,",
                         i, err);
        if (i + 1 < end && p->masks)
            id[i + 1] = slu_mask_mark(id[i + 1], (uint32_t)mask[i]);
    }
    return SLU_OK;
}

static int sft_next(void *state, uint64_t n_id, struct slu_buf *ids,
                    struct slu_err *err)
{
    struct state *p = state;
    int rc = next_lists(p, n_id, SEQ_START_ID, err);
    if (rc)
        return rc;
    slu_buf_clear(ids);
    rc = slu_buf_append(ids, p->list[INPUT_IDS].data, p->list[INPUT_IDS].len, err);
    if (!rc && p->masks)
        rc = slu_mask_check_plain((const uint32_t *)(void *)ids->data, p->n_id, err);
    const int32_t *start = (const int32_t *)(const void *)p->list[SEQ_START_ID].data;
    const size_t n = p->list[SEQ_START_ID].len / 4;
    if (!rc && (n == 0 || start[0] != 0))
        rc = wrong(p, "seq_start_id does not begin with 0,", 0, err);
    for (size_t k = 0; k < n && !rc; k++) {
        const uint64_t at = (uint64_t)start[k],
                       end = k + 1 < n ? (uint64_t)start[k + 1] : p->n_id;
        rc = at < end && end <= p->n_id
                 ? mark_segment(p, at, end, (uint32_t *)(void *)ids->data, err)
                 : wrong(p, "seq_start_id does not ascend, or passes the row's end,", k,
                         err);
    }
    p->row++;
    return rc;
}

const struct slu_shard_layout slu_shard_layout_megatron_sft = {.format = "megatron-sft",
                                                               .masks = true,
                                                               .no_first = true,
                                                               .open = sft_open,
                                                               .next = sft_next,
                                                               .close = close_lists};
