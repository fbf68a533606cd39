/* parquet_read.c - reads back the Parquet shards that sluice writes (shard_parquet.c);
 * checks that the columns agree. */
#include <stdlib.h>
#include <string.h>

#include "formats/shards/shardset.h"
#include "parquet.h"

#define MEMORY_BYTE ((uint64_t)256 << 20)

/* The last column is only in sets with masks. */
enum { INPUT_IDS, LABELS, SEQ_LENGTHS, POSITION_IDS, MASKS, N_COLUMN };
static const char *const columns[N_COLUMN] = {"input_ids", "labels", "seq_lengths",
                                              "position_ids", "assistant_masks"};

struct state {
    const struct slu_parquet *lib;
    struct slu_parquet_lists *lists;
    struct slu_buf list[N_COLUMN];
    unsigned n_column;
    uint64_t n_id, row;
};

static void parquet_close(void *state)
{
    struct state *p = state;
    if (!p)
        return;
    p->lib->lists_close(p->lists);
    for (int i = 0; i < N_COLUMN; i++)
        slu_buf_release(&p->list[i]);
    free(p);
}

static int parquet_open(void **state, const char *const *path,
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
    p->lib = lib;
    p->n_id = b->n_id;
    p->n_column = b->masks ? N_COLUMN : MASKS;
    int rc = lib->lists_open(&p->lists, path[0], columns, p->n_column, n_seq,
                             MEMORY_BYTE, err);
    if (rc)
        parquet_close(p);
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

/* Checks a segment: positions count from 0; labels are the ids except for the first and
 * for those that are not trained on, or padding has no labels. */
static int check_segment(const struct state *p, uint64_t at, uint64_t len,
                         struct slu_err *err)
{
    const int32_t *id = (const int32_t *)(const void *)p->list[INPUT_IDS].data + at;
    const int32_t *label = (const int32_t *)(const void *)p->list[LABELS].data + at;
    const int32_t *pos = (const int32_t *)(const void *)p->list[POSITION_IDS].data + at;
    const int32_t *mask = (const int32_t *)(const void *)p->list[MASKS].data;
    const bool masks = p->n_column == N_COLUMN;
    bool padding = !masks && len > 1 && label[1] == -100;
    mask += masks ? at : 0;
    for (uint64_t i = 0; i < len; i++) {
        if (pos[i] != (int64_t)i)
            return wrong(p, "position_ids and seq_lengths differ", at + i, err);
        if (masks && (mask[i] & ~1))
            return wrong(p, "assistant_masks is neither 0 nor 1", at + i, err);
        if (label[i] != (i == 0 || padding || (masks && !mask[i]) ? -100 : id[i]))
            return wrong(p, "labels and input_ids differ", at + i, err);
    }
    return SLU_OK;
}

static int parquet_next(void *state, struct slu_buf *ids, struct slu_err *err)
{
    struct state *p = state;
    uint64_t at = 0;
    int rc = p->lib->lists_next(p->lists, p->n_id, p->list, err);
    if (rc)
        return rc;
    for (unsigned i = 0; i < p->n_column; i++)
        if (i != SEQ_LENGTHS && p->list[i].len != 4 * p->n_id)
            return wrong(p, "a list is shorter than the row's ids; it ends",
                         p->list[i].len / 4, err);
    const int32_t *len = (const int32_t *)(const void *)p->list[SEQ_LENGTHS].data;
    for (size_t k = 0; k < p->list[SEQ_LENGTHS].len / 4 && !rc; k++) {
        if (len[k] <= 0 || (uint64_t)len[k] > p->n_id - at)
            return wrong(p,
                         "a length in seq_lengths is below 1, or passes the row's end,",
                         k, err);
        rc = check_segment(p, at, (uint64_t)len[k], err);
        at += (uint64_t)len[k];
    }
    if (!rc && at != p->n_id)
        return wrong(p, "seq_lengths end before the row does,", at, err);
    p->row++;
    slu_buf_clear(ids);
    if (!rc)
        rc = slu_buf_append(ids, p->list[INPUT_IDS].data, p->list[INPUT_IDS].len, err);
    uint32_t *marked = (void *)ids->data;
    const int32_t *mask = (const void *)p->list[MASKS].data;
    for (uint64_t i = 0; p->n_column == N_COLUMN && !rc && i < p->n_id; i++)
        marked[i] |= (uint32_t)mask[i] << 31;
    return rc;
}

const struct slu_shard_layout slu_shard_layout_parquet = {.format = "parquet",
                                                          .masks = true,
                                                          .open = parquet_open,
                                                          .next = parquet_next,
                                                          .close = parquet_close};
