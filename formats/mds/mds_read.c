/* mds_read.c - reads back the MDS shards that sluice writes: the column `tokens`, and with
 * masks `loss_mask`, for which the shard is opened a second time. */
#include <stdlib.h>
#include <string.h>

#include "formats/shards/shardset.h"
#include "lib/base/le.h"
#include "lib/stream/mask.h"
#include "mds.h"

struct state {
    struct slu_mds_file *file, *masks; /* masks: NULL if the set has none */
    enum slu_mds_type want;
    struct slu_buf raw;
};

static void mds_close(void *state)
{
    struct state *m = state;
    if (!m)
        return;
    slu_mds_file_free(m->file);
    slu_mds_file_free(m->masks);
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
    int rc = slu_mds_file_open(&m->file, &cfg, err);
    cfg.column = "loss_mask";
    if (!rc && b->masks)
        rc = slu_mds_file_open(&m->masks, &cfg, err);
    if (rc)
        mds_close(m);
    else
        *state = m;
    return rc;
}

/* Reads the next sample's column, n_id values of this type, to m->raw. */
static int next_column(struct state *m, struct slu_mds_file *f, enum slu_mds_type want,
                       uint64_t n_id, struct slu_err *err)
{
    enum slu_mds_type type;
    uint64_t n;
    int rc = slu_mds_file_next(f, &type, &n, err);
    if (rc)
        return rc;
    if (type != want || n != n_id)
        return slu_fail(err, SLU_E_FORMAT,
                        "sample %llu has %llu ids of type %s; the set has %llu of %s",
                        (unsigned long long)slu_mds_file_at(f) - 1,
                        (unsigned long long)n, slu_mds_type_name(type),
                        (unsigned long long)n_id, slu_mds_type_name(want));
    slu_buf_clear(&m->raw);
    return slu_mds_file_ids(f, &m->raw, err);
}

/* Marks the ids of the current sample that are trained on. */
static int read_mask(struct state *m, uint32_t *id, uint64_t n_id, struct slu_err *err)
{
    int rc = next_column(m, m->masks, SLU_MDS_U8, n_id, err);
    if (!rc)
        rc = slu_mask_check_plain(id, n_id, err);
    uint64_t i = rc ? n_id : slu_mask_mark_bytes(id, m->raw.data, n_id);
    if (i < n_id)
        return slu_fail(err, SLU_E_FORMAT,
                        "sample %llu: loss_mask is %u at %llu; expected 0 or 1",
                        (unsigned long long)slu_mds_file_at(m->file) - 1,
                        m->raw.data[i], (unsigned long long)i);
    return rc;
}

static int mds_next(void *state, uint64_t n_id, struct slu_buf *ids,
                    struct slu_err *err)
{
    struct state *m = state;
    int rc = next_column(m, m->file, m->want, n_id, err);
    if (rc == SLU_EOF && m->masks) { /* reads to its end, which checks the file */
        int end = next_column(m, m->masks, SLU_MDS_U8, n_id, err);
        return end < 0 ? end : rc;
    }
    slu_buf_clear(ids);
    if (!rc)
        rc = slu_buf_reserve(ids, 4 * n_id, err);
    if (rc)
        return rc;
    uint32_t *out = (uint32_t *)(void *)ids->data;
    for (uint64_t i = 0; i < n_id; i++)
        out[i] = m->want == SLU_MDS_U16 ? slu_le16(m->raw.data + 2 * i)
                                        : slu_le32(m->raw.data + 4 * i);
    ids->len = 4 * n_id;
    return m->masks ? read_mask(m, out, n_id, err) : SLU_OK;
}

const struct slu_shard_layout slu_shard_layout_mds = {.format = "mds",
                                                      .masks = true,
                                                      .open = mds_open,
                                                      .next = mds_next,
                                                      .close = mds_close};
