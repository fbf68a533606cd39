/* shard_megatron.c - shards as megatron-core's IndexedDataset reads them (layout:
 * formats/megatron/tokens_megatron.c): shard-%07d.bin and shard-%07d.idx.
 *
 * Each sequence of the stream is one sequence and one document of the data set, because
 * Megatron's trainers shuffle and cut by these. Ids are u16 or i32, because Megatron
 * has no u32. The index follows from the counts of the shard, or from the lengths of
 * its documents, so it is written at the end.
 *
 * Whole documents have the bytes that Megatron's preprocess_data.py makes of them with
 * --append-eod: its builder takes i32 from 65500 ids in the vocabulary on.
 */
#include "formats/shards/shard.h"

#include <stdio.h>
#include <string.h>

#include "formats/shards/shard_ids.h"
#include "lib/flow/bytelog.h"

enum { IDS, INDEX, N_FILE };
enum { CODE_I32 = 4, CODE_U16 = 8, PIECE = 8192 /* elements written at once */ };
static const char *const suffix[N_FILE] = {".bin", ".idx"};

static int mg_init(void **state, const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    *state = NULL;
    if (cfg->header->vocab_size > UINT64_C(1) << 31)
        return slu_fail(err, SLU_E_MISMATCH,
                        "format megatron has ids below 2147483648 (signed, of four "
                        "bytes), and the vocabulary size is %llu",
                        (unsigned long long)cfg->header->vocab_size);
    return SLU_OK;
}

static void mg_release(void *state)
{
    (void)state;
}

static void mg_file_name(const void *state, uint64_t number, unsigned file, char *out,
                         size_t cap)
{
    (void)state;
    snprintf(out, cap, "shard-%07llu%s", (unsigned long long)number, suffix[file]);
}

static bool mg_owns(const char *name)
{
    return slu_shard_name_is(name, "shard-", suffix[IDS]) ||
           slu_shard_name_is(name, "shard-", suffix[INDEX]);
}

/* Megatron counts the sequences of a file, and their lengths, in 31 bits. */
static uint64_t most_sequences(const struct slu_shard_bucket *b)
{
    return b->n_id > INT32_MAX ? 0 : INT32_MAX;
}

static uint64_t mg_shard_sequences(const struct slu_shard_bucket *b)
{
    uint64_t n = slu_shard_ids_sequences(b), most = most_sequences(b);

    return n > most && most ? most : n;
}

static int mg_check(const struct slu_shard_bucket *b, struct slu_err *err)
{
    uint64_t most = most_sequences(b);

    if (b->shard_sequences <= most)
        return SLU_OK;
    return slu_shard_too_large(&slu_shard_megatron, b,
                               "2147483647, Megatron's largest length and count", most,
                               err);
}

static int mg_encode(const void *state, const struct slu_shard_bucket *b,
                     uint64_t index, const struct slu_shard_seq *q, struct slu_buf *out,
                     struct slu_err *err)
{
    (void)state;
    if (b->length)
        return SLU_OK;
    if (index >= INT32_MAX || q->n_id > INT32_MAX)
        return slu_advise(err, SLU_ADVISE_SHARD_BYTES,
                          slu_fail(err, SLU_E_LIMIT,
                                   "format megatron counts the documents of a file and "
                                   "their ids in 31 bits, and document %llu has %llu "
                                   "ids",
                                   (unsigned long long)index,
                                   (unsigned long long)q->n_id));
    int rc = slu_buf_reserve(&out[INDEX], 4, err);
    if (rc)
        return rc;
    slu_put_le32(out[INDEX].data + out[INDEX].len, (uint32_t)q->n_id);
    out[INDEX].len += 4;
    return SLU_OK;
}

static unsigned mg_id_bytes(const struct slu_header *h)
{
    return h->vocab_size < 65500 ? 2 : 4;
}

/* Writes first, first + step, …: n numbers of `bytes` bytes each. */
static int put_row(struct slu_out *out, uint64_t n, uint64_t step, unsigned bytes,
                   uint64_t first, struct slu_err *err)
{
    uint8_t piece[PIECE * 8];
    int rc = SLU_OK;

    for (uint64_t i = 0; i < n && !rc;) {
        size_t k = n - i < PIECE ? (size_t)(n - i) : PIECE;
        for (size_t j = 0; j < k; j++, i++)
            if (bytes == 4)
                slu_put_le32(piece + 4 * j, (uint32_t)(first + step * i));
            else
                slu_put_le64(piece + 8 * j, first + step * i);
        rc = slu_out_write(out, piece, k * bytes, err);
    }
    return rc;
}

/* Writes the lengths of n documents; or, id_bytes not 0, where each begins in the file
 * of ids. */
static int put_documents(struct slu_out *out, struct slu_bytelog *lengths, uint64_t n,
                         unsigned id_bytes, struct slu_err *err)
{
    uint8_t piece[PIECE * 8];
    uint64_t at = 0;
    int rc = slu_bytelog_rewind(lengths, SLU_SHARD_KEPT, err);

    while (n && !rc) {
        const size_t k = n < PIECE ? (size_t)n : PIECE;
        const void *p = NULL;
        rc = slu_bytelog_get(lengths, &p, 4 * k, err);
        for (size_t i = 0; i < k && !rc && id_bytes; i++) {
            slu_put_le64(piece + 8 * i, at);
            at += (uint64_t)slu_le32((const uint8_t *)p + 4 * i) * id_bytes;
        }
        if (!rc)
            rc = slu_out_write(out, id_bytes ? piece : p, (id_bytes ? 8 : 4) * k, err);
        n -= k;
    }
    return rc;
}

/* Writes the lengths and the beginnings of all sequences. */
static int put_sequences(const struct slu_shard *s, struct slu_out *out,
                         struct slu_err *err)
{
    const struct slu_shard_bucket *b = s->bucket;
    int rc = b->length ? put_row(out, s->n_seq, 0, 4, b->n_id, err)
                       : put_documents(out, s->kept, s->n_seq, 0, err);

    if (rc)
        return rc;
    return b->length ? put_row(out, s->n_seq, b->n_id * b->tok_bytes, 8, 0, err)
                     : put_documents(out, s->kept, s->n_seq, b->id_bytes, err);
}

static int mg_end(void *state, const struct slu_shard *s, unsigned file,
                  struct slu_out *out, struct slu_err *err)
{
    const struct slu_shard_bucket *b = s->bucket;
    uint8_t h[34] = "MMIDIDX";

    (void)state;
    if (file != INDEX)
        return SLU_OK;
    slu_put_le64(h + 9, 1);
    h[17] = b->id_bytes == 2 ? CODE_U16 : CODE_I32;
    slu_put_le64(h + 18, s->n_seq);
    slu_put_le64(h + 26, s->n_seq + 1);
    int rc = slu_out_write(out, h, sizeof h, err);
    if (!rc)
        rc = put_sequences(s, out, err);
    return rc ? rc : put_row(out, s->n_seq + 1, 1, 8, 0, err);
}

const struct slu_shard_format slu_shard_megatron = {
    .name = "megatron",
    .labels = SLU_LABELS_ANY,
    .documents = true,
    .inner_padding = SLU_INNER_PAD,
    .ignore_id = "a tokenizer whose padding has id",
    .id_bytes = mg_id_bytes,
    .shard_byte = SLU_SHARD_IDS_BYTE,
    .shard_sequences = mg_shard_sequences,
    .check = mg_check,
    .init = mg_init,
    .release = mg_release,
    .n_file = N_FILE,
    .file_name = mg_file_name,
    .owns = mg_owns,
    .boundaries = "Megatron's documents are whole sequences, and within one EOS alone "
                  "says where the next begins (--reset-position-ids, "
                  "--reset-attention-mask); ds, olmo, mds and parquet say it",
    .raw_ids = true,
    .encode = mg_encode,
    .kept_files = 1 << INDEX,
    .end = mg_end,
};
