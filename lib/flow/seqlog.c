#include "lib/flow/seqlog.h"

#include <stdlib.h>
#include <string.h>

#include "lib/stream/seqrec.h"
#include "bytelog.h"

enum { BATCH_TOK = 1 << 18 }; /* tokens of a batch that is read */

/* A record: a word, its bytes, zeros to a multiple of 8. The word has the number of
 * bytes, and whether the record is a note. */
#define IS_NOTE (UINT64_C(1) << 63)

struct slu_seqlog {
    struct slu_bytelog *log;
    const char *tmpdir;
    struct slu_seqrec rec;
    size_t most; /* bytes of a record, with its word */
    uint64_t n_seq;
    struct slu_batch b; /* for reading */
};

int slu_seqlog_new(struct slu_seqlog **out, unsigned tok_bytes, bool masks,
                   uint64_t budget_byte, const char *tmpdir, struct slu_err *err)
{
    struct slu_seqlog *t = calloc(1, sizeof *t);

    *out = t;
    if (!t)
        return slu_fail_nomem(err, sizeof *t);
    t->tmpdir = tmpdir;
    slu_seqrec_init(&t->rec);
    slu_batch_init(&t->b, tok_bytes);
    t->b.masks = masks;
    int rc = slu_bytelog_new(&t->log, budget_byte, tmpdir, err);
    if (rc) {
        slu_seqlog_free(t);
        *out = NULL;
    }
    return rc;
}

void slu_seqlog_free(struct slu_seqlog *t)
{
    if (!t)
        return;
    slu_bytelog_free(t->log);
    slu_seqrec_release(&t->rec);
    slu_batch_release(&t->b);
    free(t);
}

uint64_t slu_seqlog_spilled(const struct slu_seqlog *t)
{
    return slu_bytelog_spilled(t->log);
}

/* ---- putting ---- */

static int put(struct slu_seqlog *t, uint64_t flags, const struct slu_slice *piece,
               unsigned n_piece, struct slu_err *err)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < n_piece; i++)
        n += piece[i].n;
    const uint64_t word = n | flags;
    t->most = n + 8 > t->most ? n + 8 : t->most;
    return slu_bytelog_put_rec(t->log, &word, sizeof word, piece, n_piece, err);
}

int slu_seqlog_put(struct slu_seqlog *t, const struct slu_batch *b,
                   const struct slu_seq *q, struct slu_err *err)
{
    int rc = slu_seqrec_pack(&t->rec, b, q, err);

    t->n_seq++;
    return rc ? rc : put(t, 0, t->rec.piece, SLU_SEQREC_PIECES, err);
}

int slu_seqlog_note(struct slu_seqlog *t, const void *p, size_t n, struct slu_err *err)
{
    return put(t, IS_NOTE, &(struct slu_slice){p, n}, 1, err);
}

/* ---- reading ---- */

static int emit(struct slu_seqlog *t, const struct slu_seqlog_ops *ops, void *ctx,
                struct slu_err *err)
{
    int rc = t->b.n_seq ? ops->emit(ctx, &t->b, err) : SLU_OK;

    slu_batch_trim(&t->b);
    return rc;
}

/* Returns the next record, borrowed until the next call. */
static int next_record(struct slu_seqlog *t, uint64_t *word, const void **p, size_t *n,
                       struct slu_err *err)
{
    int rc = slu_bytelog_get(t->log, p, sizeof *word, err);

    if (rc)
        return rc;
    memcpy(word, *p, sizeof *word);
    *n = (size_t)(*word & ~IS_NOTE);
    if (*n + 8 > t->most)
        return slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged", t->tmpdir);
    return slu_bytelog_get_rest(t->log, p, *n, err);
}

int slu_seqlog_read(struct slu_seqlog *t, const struct slu_seqlog_ops *ops, void *ctx,
                    struct slu_err *err)
{
    uint64_t word, n_seq = 0;
    const void *p;
    size_t n;
    int rc = slu_bytelog_rewind(t->log, t->most, err);

    while (!rc) {
        rc = next_record(t, &word, &p, &n, err);
        if (rc)
            break;
        if (word & IS_NOTE) {
            rc = emit(t, ops, ctx, err);
            if (!rc)
                rc = ops->note(ctx, p, n, err);
        } else {
            n_seq++;
            rc = slu_seqrec_add(&t->b, p, n, err);
            if (!rc && slu_batch_weight(&t->b) >= BATCH_TOK)
                rc = emit(t, ops, ctx, err);
        }
    }
    if (rc == SLU_EOF)
        rc = emit(t, ops, ctx, err);
    if (rc || n_seq == t->n_seq)
        return rc;
    return slu_fail(err, SLU_E_CONSERVATION,
                    "internal error: %llu sequences waited and %llu came back; please "
                    "report it",
                    (unsigned long long)t->n_seq, (unsigned long long)n_seq);
}
