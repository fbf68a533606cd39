/* shard_ds.c - shards as datatrove's DatatroveFileDataset and nanotron read them
 * (datatrove/utils/dataset.py and pipeline/tokens/tokenizer.py).
 *
 *   shard-%07d.ds           ids of two or four bytes, one sequence after the other
 *   shard-%07d.ds.index     u64 for each segment: its end, as a number of ids from the
 *                           beginning of the shard; padding is a segment too
 *   shard-%07d.ds.metadata  "TOKENIZER|WIDTH", the number of ids, the same number for
 *                           people: three lines, without a line end after the last
 *
 * A reader takes windows of seq_len + 1 ids that do not overlap. So sequences with a
 * label token, which have 2^i + 1 ids, are exactly the windows for seq_len = 2^i. The
 * reader makes positions from the ends in the index; they begin at 0 in each segment.
 *
 * Of whole documents the index has the end of each, and the files have the bytes of
 * datatrove's DocumentTokenizer, except for the tokenizer's name.
 *
 * The tokenizer is named by its fingerprint, in two parts with "|" between them,
 * because datatrove's own DocumentTokenizerMerger splits names there.
 */
#include "formats/shards/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/shards/shard_ids.h"

enum { IDS, INDEX, METADATA, N_FILE };
static const char *const suffix[N_FILE] = {".ds", ".ds.index", ".ds.metadata"};

struct ds {
    char tokenizer[48];
};

static int ds_init(void **state, const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    static const uint8_t none[16];
    const uint8_t *f = cfg->header->fingerprint;
    struct ds *d = calloc(1, sizeof *d);
    size_t n;

    *state = d;
    if (!d)
        return slu_fail_nomem(err, sizeof *d);
    n = (size_t)snprintf(d->tokenizer, sizeof d->tokenizer, "%s",
                         memcmp(f, none, sizeof none) ? "sluice:" : "unknown");
    for (size_t i = 0; i < sizeof none && memcmp(f, none, sizeof none); i++)
        n += (size_t)snprintf(d->tokenizer + n, sizeof d->tokenizer - n, "%02x", f[i]);
    return SLU_OK;
}

static void ds_release(void *state)
{
    free(state);
}

static void ds_file_name(const void *state, uint64_t number, unsigned file, char *out,
                         size_t cap)
{
    (void)state;
    snprintf(out, cap, "shard-%07llu%s", (unsigned long long)number, suffix[file]);
}

static bool ds_owns(const char *name)
{
    for (unsigned i = 0; i < N_FILE; i++)
        if (slu_shard_name_is(name, "shard-", suffix[i]))
            return true;
    return false;
}

static uint64_t ds_shard_sequences(const struct slu_shard_bucket *b)
{
    return slu_shard_ids_sequences(b);
}

static int ds_encode(const void *state, const struct slu_shard_bucket *b,
                     uint64_t index, const struct slu_shard_seq *q, struct slu_buf *out,
                     struct slu_err *err)
{
    struct slu_buf *ends = &out[INDEX];
    const uint64_t n_end = b->length ? q->n_seg : 1;
    uint64_t end = q->at;
    int rc = slu_buf_reserve(ends, 8 * n_end, err);

    (void)state;
    (void)index;
    for (uint64_t i = 0; i < n_end && !rc; i++, ends->len += 8) {
        end += b->length ? q->seg[i].len_tok : q->n_id;
        slu_put_le64(ends->data + ends->len, end);
    }
    return rc;
}

/* As humanize.metric(n, unit="T") of Python: three digits and a prefix. */
static void put_metric(uint64_t n, char *out, size_t cap)
{
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P", "E"};
    static const double unit[] = {1, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18};
    unsigned exponent = 0;

    for (uint64_t v = n; v >= 10; v /= 10)
        exponent++;
    for (;;) {
        char text[32];
        double v = (double)n / unit[exponent / 3];
        snprintf(text, sizeof text, "%.*f", 2 - (int)(exponent % 3), v);
        /* 9.996 becomes 10.0, and 999.6 becomes 1.00 of the next prefix. */
        if (strcspn(text, ".") > exponent % 3 + 1 && exponent < 20) {
            exponent++;
            continue;
        }
        snprintf(out, cap, "%s %sT", text, prefix[exponent / 3]);
        return;
    }
}

static int ds_end(void *state, const struct slu_shard *s, unsigned file,
                  struct slu_out *out, struct slu_err *err)
{
    const struct ds *d = state;
    char metric[48], text[160];

    if (file != METADATA)
        return SLU_OK;
    put_metric(s->n_tok, metric, sizeof metric);
    int n = snprintf(text, sizeof text, "%s|%u\n%llu\n%s", d->tokenizer,
                     s->bucket->tok_bytes, (unsigned long long)s->n_tok, metric);
    return slu_out_write(out, text, (size_t)n, err);
}

const struct slu_shard_format slu_shard_ds = {
    .name = "ds",
    .labels = SLU_LABELS_WANTED,
    .documents = true,
    .shard_byte = SLU_SHARD_IDS_BYTE,
    .shard_sequences = ds_shard_sequences,
    .init = ds_init,
    .release = ds_release,
    .n_file = N_FILE,
    .file_name = ds_file_name,
    .owns = ds_owns,
    .raw_ids = true,
    .encode = ds_encode,
    .end = ds_end,
};
