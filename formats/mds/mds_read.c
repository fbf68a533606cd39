/* mds_read.c - reads back the MDS shards that sluice writes: the column `tokens`. */
#include <stdlib.h>
#include <string.h>

#include "formats/shards/shardset.h"
#include "lib/base/le.h"
#include "mds.h"

struct state {
    struct slu_mds_file *file;
    enum slu_mds_type want;
    uint64_t n_id;
    struct slu_buf raw;
};

static void mds_close(void *state)
{
    struct state *m = state;
    if (!m)
        return;
    slu_mds_file_free(m->file);
    slu_buf_release(&m->raw);
    free(m);
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);
    return n >= k && !strcmp(name + n - k, suffix);
}

static int mds_open(void **state, const char *const *path,
                    const struct slu_shard_bucket *b, uint64_t n_seq,
                    struct slu_err *err)
{
    struct slu_mds_file_cfg cfg = {.path = path[0],
                                   .zstd = ends_with(path[0], ".zstd"),
                                   .samples = n_seq,
                                   .raw_byte = UINT64_MAX};
    struct state *m = calloc(1, sizeof *m);
    *state = NULL;
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    m->want = b->tok_bytes == 2 ? SLU_MDS_U16 : SLU_MDS_U32;
    m->n_id = b->n_id;
    int rc = slu_mds_file_open(&m->file, &cfg, err);
    if (rc)
        mds_close(m);
    else
        *state = m;
    return rc;
}

static int mds_next(void *state, struct slu_buf *ids, struct slu_err *err)
{
    struct state *m = state;
    enum slu_mds_type type;
    uint64_t n;
    int rc = slu_mds_file_next(m->file, &type, &n, err);
    if (rc)
        return rc;
    if (type != m->want || n != m->n_id)
        return slu_fail(err, SLU_E_FORMAT,
                        "sample %llu has %llu ids of type %s; the set has %llu of %s",
                        (unsigned long long)slu_mds_file_at(m->file) - 1,
                        (unsigned long long)n, slu_mds_type_name(type),
                        (unsigned long long)m->n_id, slu_mds_type_name(m->want));
    slu_buf_clear(&m->raw);
    slu_buf_clear(ids);
    rc = slu_mds_file_ids(m->file, &m->raw, err);
    if (!rc)
        rc = slu_buf_reserve(ids, 4 * n, err);
    if (rc)
        return rc;
    uint32_t *out = (uint32_t *)(void *)ids->data;
    for (uint64_t i = 0; i < n; i++)
        out[i] = type == SLU_MDS_U16 ? slu_le16(m->raw.data + 2 * i)
                                     : slu_le32(m->raw.data + 4 * i);
    ids->len = 4 * n;
    return SLU_OK;
}

const struct slu_shard_layout slu_shard_layout_mds = {
    .format = "mds", .open = mds_open, .next = mds_next, .close = mds_close};
