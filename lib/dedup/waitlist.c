#include "lib/dedup/waitlist.h"

#include <stdlib.h>
#include <string.h>

#include "lib/stream/seqrec.h"
#include "lib/order/spool.h"

/* A record in the spool: its length, tag * 2 + whether it is a note, its bytes, zeros
 * up to a multiple of 8. */
struct slu_waitlist {
    struct slu_spool *spool;
    char *tmpdir;
    size_t max_record; /* bytes behind the length, padding included */
    uint64_t n;
    struct slu_seqrec rec;
};

int slu_waitlist_new(struct slu_waitlist **out, uint64_t budget_byte,
                     const char *tmpdir, struct slu_err *err)
{
    struct slu_waitlist *w = calloc(1, sizeof *w);
    int rc = SLU_OK;

    *out = NULL;
    if (!w)
        return slu_fail_nomem(err, sizeof *w);
    slu_seqrec_init(&w->rec);
    w->tmpdir = strdup(tmpdir);
    if (!w->tmpdir)
        rc = slu_fail_nomem(err, strlen(tmpdir));
    if (rc == SLU_OK)
        rc = slu_spool_new(&w->spool, budget_byte, tmpdir, err);
    if (rc) {
        slu_waitlist_free(w);
        return rc;
    }
    *out = w;
    return SLU_OK;
}

void slu_waitlist_free(struct slu_waitlist *w)
{
    if (!w)
        return;
    slu_spool_free(w->spool);
    slu_seqrec_release(&w->rec);
    free(w->tmpdir);
    free(w);
}

static int put(struct slu_waitlist *w, uint64_t head, const struct slu_piece *piece,
               unsigned n_piece, struct slu_err *err)
{
    static const uint8_t zero[8];
    uint64_t n = sizeof head;
    size_t pad;

    for (unsigned i = 0; i < n_piece; i++)
        n += piece[i].n;
    pad = (size_t)-n & 7;
    if (n + pad > w->max_record)
        w->max_record = n + pad;
    int rc = slu_spool_put(w->spool, &n, sizeof n, err);
    if (rc == SLU_OK)
        rc = slu_spool_put(w->spool, &head, sizeof head, err);
    for (unsigned i = 0; rc == SLU_OK && i < n_piece; i++)
        if (piece[i].n)
            rc = slu_spool_put(w->spool, piece[i].p, piece[i].n, err);
    return rc ? rc : slu_spool_put(w->spool, zero, pad, err);
}

int slu_waitlist_put(struct slu_waitlist *w, const struct slu_batch *b,
                     const struct slu_seq *q, uint64_t tag, struct slu_err *err)
{
    int rc = slu_seqrec_pack(&w->rec, b, q, err);

    w->n++;
    return rc ? rc : put(w, tag << 1, w->rec.piece, SLU_SEQREC_PIECES, err);
}

int slu_waitlist_note(struct slu_waitlist *w, const void *p, size_t n,
                      struct slu_err *err)
{
    const struct slu_piece piece = {p, n};

    return put(w, 1, &piece, 1, err);
}

uint64_t slu_waitlist_n(const struct slu_waitlist *w)
{
    return w->n;
}

int slu_waitlist_rewind(struct slu_waitlist *w, struct slu_err *err)
{
    return slu_spool_rewind(w->spool, w->max_record, err);
}

int slu_waitlist_next(struct slu_waitlist *w, struct slu_batch *b,
                      struct slu_waiting *out, struct slu_err *err)
{
    const void *p;
    uint64_t n, head;
    int rc = slu_spool_get(w->spool, &p, sizeof n, err);

    if (rc)
        return rc;
    memcpy(&n, p, sizeof n);
    if (n > w->max_record || n < sizeof head)
        return slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged", w->tmpdir);
    rc = slu_spool_get(w->spool, &p, (n + 7) & ~(size_t)7, err);
    if (rc)
        return rc == SLU_EOF ? slu_fail(err, SLU_E_TRUNCATED,
                                        "temporary file in %s: ends early", w->tmpdir)
                             : rc;
    memcpy(&head, p, sizeof head);
    *out = (struct slu_waiting){NULL, n - sizeof head, head >> 1};
    if (head & 1) {
        out->note = (const uint8_t *)p + sizeof head;
        return SLU_OK;
    }
    return slu_seqrec_add(b, (const uint8_t *)p + sizeof head, n - sizeof head, err);
}

uint64_t slu_waitlist_spilled(const struct slu_waitlist *w)
{
    return slu_spool_spilled(w->spool);
}
