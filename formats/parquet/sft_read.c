/* sft_read.c - reads back the packed Parquet for Megatron-Bridge that sluice writes
 * (shard_sft.c); checks that the columns agree. */
#include <stdlib.h>

#include "formats/shards/shardset.h"
#include "parquet.h"

#define MEMORY_BYTE ((uint64_t)256 << 20)

enum { INPUT_IDS, LOSS_MASK, SEQ_START_ID, N_COLUMN };
static const char *const columns[N_COLUMN] = {"input_ids", "loss_mask", "seq_start_id"};

struct state {
    const struct slu_parquet *lib;
    struct slu_parquet_lists *lists;
    struct slu_buf list[N_COLUMN];
    uint64_t n_id, row;
    bool masks;
};

static void sft_close(void *state)
{
    struct state *p = state;
    if (!p)
        return;
    p->lib->lists_close(p->lists);
    for (int i = 0; i < N_COLUMN; i++)
        slu_buf_release(&p->list[i]);
    free(p);
}

static int sft_open(void **state, const char *const *path,
                    const struct slu_shard_bucket *b, uint64_t n_seq,
                    struct slu_err *err)
{
    const struct slu_parquet *lib = slu_parquet_load();
    struct state *p;
    *state = NULL;
    if (!lib)
        return slu_fail(err, SLU_E_UNSUPPORTED, "%s", SLU_PARQUET_NONE);
    p = calloc(1, sizeof *p);
    if (!p)
        return slu_fail_nomem(err, sizeof *p);
    *p = (struct state){.lib = lib, .n_id = b->n_id, .masks = b->masks};
    int rc =
        lib->lists_open(&p->lists, path[0], columns, N_COLUMN, n_seq, MEMORY_BYTE, err);
    if (rc)
        sft_close(p);
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

/* Checks the mask of the labels of ids `at` … end - 1, a segment, and marks the labels.
 * Without masks all are trained on, or padding none. */
static int mark_segment(const struct state *p, uint64_t at, uint64_t end, uint32_t *id,
                        struct slu_err *err)
{
    const int32_t *mask = (const int32_t *)(const void *)p->list[LOSS_MASK].data;
    for (uint64_t i = at; i < end; i++) {
        if (mask[i] & ~1)
            return wrong(p, "loss_mask is neither 0 nor 1", i, err);
        if (i + 1 == end && mask[i])
            return wrong(p, "loss_mask is 1 at the last token of a segment,", i, err);
        if (i + 1 < end && !p->masks && mask[i] != mask[at])
            return wrong(p, "loss_mask changes within a segment, without masks,", i,
                         err);
        if (i + 1 < end && p->masks)
            id[i + 1] |= (uint32_t)mask[i] << 31;
    }
    return SLU_OK;
}

static int sft_next(void *state, struct slu_buf *ids, struct slu_err *err)
{
    struct state *p = state;
    int rc = p->lib->lists_next(p->lists, p->n_id, p->list, err);
    if (rc)
        return rc;
    for (unsigned i = INPUT_IDS; i <= LOSS_MASK; i++)
        if (p->list[i].len != 4 * p->n_id)
            return wrong(p, "a list is shorter than the row's ids; it ends",
                         p->list[i].len / 4, err);
    slu_buf_clear(ids);
    rc = slu_buf_append(ids, p->list[INPUT_IDS].data, p->list[INPUT_IDS].len, err);
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
                                                               .close = sft_close};
