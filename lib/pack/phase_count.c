/* phase_count.c - a part's histograms to its count file. */
#include <stdlib.h>
#include <string.h>

#include "lib/pack/phase_private.h"

/* What waits, by slot; *rows of each. */
static int put_slots(struct slu_workfile_out *o, struct slu_packing *p, size_t *n_row,
                     struct slu_length_count **row, struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < p->n_slot && !rc; i++) {
        const struct slu_pack_slot *s = &p->slot[i];
        rc = slu_pack_rows(p, i, &row[i], &n_row[i], err);
        const uint64_t v[SLOT] = {[SLOT_DOMAIN] = s->domain,
                                  [SLOT_ROWS] = n_row[i],
                                  [SLOT_ITEMS] = s->items,
                                  [SLOT_TOK] = s->tok,
                                  [SLOT_CUT] = s->cut};
        if (!rc)
            rc = slu_workfile_put(o, v, SLOT, err);
    }
    return rc;
}

static int put_rows(struct slu_workfile_out *o, const struct slu_length_count *row,
                    size_t n, uint64_t *pieces, struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < n && !rc; i++) {
        const uint64_t v[2] = {row[i].len_tok, row[i].count};
        *pieces += row[i].count;
        rc = slu_workfile_put(o, v, 2, err);
    }
    return rc;
}

int slu_pack_count_write(struct slu_packing *p, const struct slu_pack_phase *ph,
                         const struct slu_header *h, struct slu_u128 stream,
                         struct slu_err *err)
{
    struct slu_workfile_head head = {.kind = SLU_WORKFILE_PACK_COUNT,
                                     .part = ph->part,
                                     .of = ph->of,
                                     .inputs = stream,
                                     .param = ph->param};
    struct slu_workfile_out *o = NULL;
    struct slu_length_count **row = calloc(p->n_slot + 1, sizeof *row);
    size_t *n_row = calloc(p->n_slot + 1, sizeof *n_row);
    int rc = row && n_row ? SLU_OK : slu_fail_nomem(err, p->n_slot * sizeof *row);

    memcpy(head.fingerprint, ph->fingerprint, sizeof head.fingerprint);
    if (!rc)
        rc = slu_pack_phase_create(ph, head.kind, NULL, NULL, &o, err);
    if (!rc)
        rc = slu_workfile_put_stream(o, h, p->cfg.names, false, err);
    if (!rc)
        rc = slu_workfile_section(o, COUNT_SLOTS, err);
    if (!rc)
        rc = put_slots(o, p, n_row, row, err);
    if (!rc)
        rc = slu_workfile_section(o, COUNT_ROWS, err);
    for (size_t i = 0; i < p->n_slot && !rc; i++)
        rc = put_rows(o, row[i], n_row[i], &head.count[N_PIECE], err);
    head.count[N_SLOT] = p->n_slot;
    for (size_t i = 0; row && i < p->n_slot; i++)
        free(row[i]);
    free(row);
    free(n_row);
    if (!rc)
        return slu_workfile_close(o, &head, COUNT_SECTIONS, err);
    slu_workfile_abort(o);
    return rc;
}
