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
    uint64_t n, at;
    struct slu_buf table; /* where the items begin, as stored */
    struct slu_buf text;
};

static void litdata_close(void *state)
{
    struct state *l = state;
    if (!l)
        return;
    slu_raw_free(l->raw);
    slu_buf_release(&l->table);
    slu_buf_release(&l->text);
    free(l);
}

/* Bytes of an item of n_id ids. */
static uint64_t item_byte(const struct state *l, uint64_t n_id)
{
    return n_id * l->tok_bytes + (l->masks ? 8 + n_id : 0);
}

static uint64_t begin_of(const struct state *l, uint64_t i)
{
    return slu_le32(l->table.data + 4 * i);
}

/* Item i must begin at byte `at`. */
static int check_begin(const struct state *l, uint64_t i, uint64_t at,
                       struct slu_err *err)
{
    return begin_of(l, i) == at
               ? SLU_OK
               : slu_fail(err, SLU_E_FORMAT,
                          "item %llu begins at byte %llu; expected byte %llu",
                          (unsigned long long)i, (unsigned long long)begin_of(l, i),
                          (unsigned long long)at);
}

/* The lengths of items are known, so the table is redundant, but it must be right. */
static int read_table(struct state *l, uint64_t n_seq, struct slu_err *err)
{
    uint8_t word[4];
    int rc = slu_raw_take(l->raw, word, 4, err);
    l->n = rc ? 0 : slu_le32(word);
    if (!rc && l->n != n_seq)
        rc = slu_fail(err, SLU_E_FORMAT, "has %llu items, and its manifest says %llu",
                      (unsigned long long)l->n, (unsigned long long)n_seq);
    if (!rc)
        rc = slu_raw_append(l->raw, &l->table, 4 * (l->n + 1), err);
    return rc ? rc : check_begin(l, 0, 4 * (l->n + 2), err);
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
    l->masks = b->masks;
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
static int read_mask(const struct state *l, uint32_t *id, uint64_t n_id,
                     struct slu_err *err)
{
    const uint64_t n_id_byte = n_id * l->tok_bytes;
    const uint8_t *mask = l->text.data + 8 + n_id_byte;
    if (slu_le32(l->text.data) != n_id_byte || slu_le32(l->text.data + 4) != n_id)
        return slu_fail(
            err, SLU_E_FORMAT,
            "item %llu has %u bytes of ids and %u of its mask; expected %llu "
            "and %llu",
            (unsigned long long)l->at - 1, slu_le32(l->text.data),
            slu_le32(l->text.data + 4), (unsigned long long)n_id_byte,
            (unsigned long long)n_id);
    int rc = slu_mask_check_plain(id, n_id, err);
    uint64_t i = rc ? n_id : slu_mask_mark_bytes(id, mask, n_id);
    if (i < n_id)
        return slu_fail(err, SLU_E_FORMAT,
                        "item %llu: its mask has a %u at %llu; expected 0 or 1",
                        (unsigned long long)l->at - 1, mask[i], (unsigned long long)i);
    return rc;
}

static int litdata_next(void *state, uint64_t n_id, struct slu_buf *ids,
                        struct slu_err *err)
{
    struct state *l = state;
    if (l->at == l->n) {
        int rc = slu_raw_end(l->raw, err);
        return rc ? rc : SLU_EOF;
    }
    l->at++;
    slu_buf_clear(&l->text);
    slu_buf_clear(ids);
    int rc = check_begin(l, l->at, begin_of(l, l->at - 1) + item_byte(l, n_id), err);
    if (!rc)
        rc = slu_raw_append(l->raw, &l->text, item_byte(l, n_id), err);
    if (!rc)
        rc = slu_buf_reserve(ids, 4 * n_id, err);
    if (rc)
        return rc;
    uint32_t *out = (uint32_t *)(void *)ids->data;
    const uint8_t *id = l->text.data + (l->masks ? 8 : 0);
    for (uint64_t i = 0; i < n_id; i++)
        out[i] = l->tok_bytes == 2 ? slu_le16(id + 2 * i) : slu_le32(id + 4 * i);
    ids->len = 4 * n_id;
    return l->masks ? read_mask(l, out, n_id, err) : SLU_OK;
}

const struct slu_shard_layout slu_shard_layout_litdata = {.format = "litdata",
                                                          .masks = true,
                                                          .open = litdata_open,
                                                          .next = litdata_next,
                                                          .close = litdata_close};
