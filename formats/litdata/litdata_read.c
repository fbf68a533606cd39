/* litdata_read.c - reads back the LitData chunks that sluice writes. */
#include <stdlib.h>
#include <string.h>

#include "formats/ids/raw_file.h"
#include "formats/shards/shardset.h"
#include "lib/base/le.h"
#include "lib/stream/mask.h"

struct state {
    struct slu_raw *raw;
    unsigned tok_bytes;
    bool masks;
    uint64_t n_id, item_byte, n, at;
    struct slu_buf text;
};

static void litdata_close(void *state)
{
    struct state *l = state;
    if (!l)
        return;
    slu_raw_free(l->raw);
    slu_buf_release(&l->text);
    free(l);
}

/* All items have the same size, so the table is redundant, but it must be right. */
static int read_table(struct state *l, uint64_t n_seq, struct slu_err *err)
{
    uint8_t word[4];
    int rc = slu_raw_take(l->raw, word, 4, err);
    l->n = rc ? 0 : slu_le32(word);
    if (!rc && l->n != n_seq)
        rc = slu_fail(err, SLU_E_FORMAT, "has %llu items, and its manifest says %llu",
                      (unsigned long long)l->n, (unsigned long long)n_seq);
    for (uint64_t i = 0; !rc && i <= l->n; i++) {
        rc = slu_raw_take(l->raw, word, 4, err);
        if (!rc && slu_le32(word) != 4 * (l->n + 2) + i * l->item_byte)
            rc = slu_fail(
                err, SLU_E_FORMAT,
                "item %llu begins at byte %u; expected byte %llu, after items of %llu "
                "ids",
                (unsigned long long)i, slu_le32(word),
                (unsigned long long)(4 * (l->n + 2) + i * l->item_byte),
                (unsigned long long)l->n_id);
    }
    return rc;
}

static bool is_zstd(const char *name)
{
    size_t n = strlen(name);
    return n >= 9 && !strcmp(name + n - 9, ".zstd.bin");
}

static int litdata_open(void **state, const char *const *path,
                        const struct slu_shard_bucket *b, uint64_t n_seq,
                        struct slu_err *err)
{
    struct state *l = calloc(1, sizeof *l);
    *state = NULL;
    if (!l)
        return slu_fail_nomem(err, sizeof *l);
    l->tok_bytes = b->tok_bytes;
    l->n_id = b->n_id;
    l->masks = b->masks;
    l->item_byte = l->n_id * l->tok_bytes + (l->masks ? 8 + l->n_id : 0);
    int rc = slu_raw_open(&l->raw, path[0], is_zstd(path[0]), NULL, err);
    if (!rc)
        rc = read_table(l, n_seq, err);
    if (rc)
        litdata_close(l);
    else
        *state = l;
    return rc;
}

/* Checks the sizes of an item's ids and mask, and marks the ids that are trained on. */
static int read_mask(const struct state *l, uint32_t *id, struct slu_err *err)
{
    const uint64_t n_id_byte = l->n_id * l->tok_bytes;
    const uint8_t *mask = l->text.data + 8 + n_id_byte;
    if (slu_le32(l->text.data) != n_id_byte || slu_le32(l->text.data + 4) != l->n_id)
        return slu_fail(
            err, SLU_E_FORMAT,
            "item %llu has %u bytes of ids and %u of its mask; expected %llu "
            "and %llu",
            (unsigned long long)l->at - 1, slu_le32(l->text.data),
            slu_le32(l->text.data + 4), (unsigned long long)n_id_byte,
            (unsigned long long)l->n_id);
    uint64_t i = slu_mask_mark_bytes(id, mask, l->n_id);
    if (i < l->n_id)
        return slu_fail(err, SLU_E_FORMAT,
                        "item %llu: its mask has a %u at %llu; expected 0 or 1",
                        (unsigned long long)l->at - 1, mask[i], (unsigned long long)i);
    return SLU_OK;
}

static int litdata_next(void *state, struct slu_buf *ids, struct slu_err *err)
{
    struct state *l = state;
    if (l->at == l->n) {
        int rc = slu_raw_end(l->raw, err);
        return rc ? rc : SLU_EOF;
    }
    l->at++;
    slu_buf_clear(&l->text);
    slu_buf_clear(ids);
    int rc = slu_raw_append(l->raw, &l->text, l->item_byte, err);
    if (!rc)
        rc = slu_buf_reserve(ids, 4 * l->n_id, err);
    if (rc)
        return rc;
    uint32_t *out = (uint32_t *)(void *)ids->data;
    const uint8_t *id = l->text.data + (l->masks ? 8 : 0);
    for (uint64_t i = 0; i < l->n_id; i++)
        out[i] = l->tok_bytes == 2 ? slu_le16(id + 2 * i) : slu_le32(id + 4 * i);
    ids->len = 4 * l->n_id;
    return l->masks ? read_mask(l, out, err) : SLU_OK;
}

const struct slu_shard_layout slu_shard_layout_litdata = {.format = "litdata",
                                                          .masks = true,
                                                          .open = litdata_open,
                                                          .next = litdata_next,
                                                          .close = litdata_close};
