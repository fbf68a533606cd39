/* stream_early.c - for one thread: what is computed of a frame while it is read.
 *
 * A frame has 4 MiB, more than the second-level cache. So the hash of the frame, the
 * range of the ids and the hashes of the sequences are computed from each piece at
 * once. The rows are not checked yet: what does not look right here is left to the
 * checks that follow (stream_decode.c), which name the fault. Several threads would
 * share this work; they do it frame by frame.
 */
#include "stream_reader.h"

#include "lib/base/le.h"
#include "lib/base/xxh3.h"

/* Bytes that are read at a time. */
#define PIECE_BYTE ((size_t)256 << 10)

struct early {
    struct slu_reader *r;
    struct slu_frame *f;
    struct slu_columns k;
    bool begun, off; /* the columns are known; the sequences are left to others */
    uint64_t seg, tok;
    size_t n_seq; /* sequences that are hashed, and their segments and tokens */
};

/* Finds the columns once all before the tokens are read. */
static bool begin(struct early *e, size_t got)
{
    struct slu_frame *f = e->f;
    const unsigned width = slu_header_stored(&e->r->header);
    const uint64_t n_tok = got >= 24 ? slu_le64(f->stored.data + 16) : UINT64_MAX;

    if (e->begun)
        return true;
    if (n_tok > f->stored_byte / width) {
        e->off = true;
        return false;
    }
    if (got < f->stored_byte - n_tok * width)
        return false;
    e->off = slu_columns_split(f, f->stored.data, f->stored_byte, &e->r->header, false,
                               e->r->member[e->r->n_member - 1].meta, &e->k, NULL) ||
             slu_buf_reserve(&f->early, e->k.n_seq * sizeof(struct slu_u128), NULL);
    e->begun = !e->off;
    return e->begun;
}

/* Hashes the sequences that have been read. */
static void take(struct early *e, size_t got)
{
    const struct slu_columns *k = &e->k;
    const unsigned width = slu_header_stored(&e->r->header);
    struct slu_u128 *hash = (void *)e->f->early.data;

    for (; e->n_seq < k->n_seq; e->n_seq++) {
        const uint32_t n_seg = slu_le32(k->seq_segs + 4 * e->n_seq);
        uint64_t n = 0;
        e->off = n_seg > k->n_seg - e->seg;
        for (uint32_t i = 0; i < n_seg && !e->off; i++) {
            const uint64_t len = slu_le64(k->length + 8 * (e->seg + i));
            e->off = len > k->n_tok - e->tok - n;
            n += e->off ? 0 : len;
        }
        const uint8_t *tok = k->tok + e->tok * width;
        if (e->off || tok + n * width > e->f->stored.data + got)
            return;
        if (!slu_ids_in_range(tok, n, width, e->r->header.vocab_size)) {
            e->off = true;
            return;
        }
        hash[e->n_seq] = slu_hash_tokens(tok, n, width);
        e->seg += n_seg;
        e->tok += n;
    }
    if (e->seg == k->n_seg && e->tok == k->n_tok)
        e->f->early.len = k->n_seq * sizeof *hash;
    e->off = true;
}

int slu_early_read(struct slu_reader *r, struct slu_frame *f, size_t n, bool sequences,
                   size_t *got, struct slu_err *err)
{
    struct early e = {.r = r, .f = f};
    XXH3_state_t st;
    int rc = SLU_OK;

    e.off = !sequences || f->flags & SLU_FLAG_ZSTD || r->header.masks ||
            r->header.no_tokens || r->defers;
    XXH3_64bits_reset(&st);
    *got = 0;
    for (size_t want = 0, k = 0; k == want && *got < n && !rc; *got += k) {
        uint8_t *to = f->stored.data + *got;
        want = n - *got < PIECE_BYTE ? n - *got : PIECE_BYTE;
        rc = slu_read_full(r->fd, to, want, &k, err);
        slu_xxh3_64_update(&st, to, rc ? 0 : k);
        if (!rc && !e.off && begin(&e, *got + k))
            take(&e, *got + k);
    }
    f->stored_hash = slu_xxh3_64_digest(&st);
    f->hashed = true;
    return rc;
}
