#include "lib/dedup/leave_out.h"

#define NONE UINT64_MAX

struct filter {
    const struct slu_leave_out *how;
    struct slu_flow *flow;
    struct slu_table *table;
    struct slu_row row;
    uint64_t at, next; /* ordinals: of the next sequence, of the next one to drop */
};

/* Rows ascend: the next row must name at least ordinal `least`. */
static int next_row(struct filter *x, uint64_t least, struct slu_err *err)
{
    int rc = slu_table_next(x->table, &x->row, err);

    x->next = NONE;
    if (rc)
        return rc == SLU_EOF ? SLU_OK : rc;
    x->next = *(const uint64_t *)x->row.p;
    return x->next < least ? slu_flow_damaged(x->flow, x->how->table, x->row.part, err)
                           : SLU_OK;
}

static int emit(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct filter *x = ctx;
    const struct slu_leave_out *how = x->how;
    uint64_t next = x->next - x->at;
    size_t n = 0;

    (void)side;
    for (size_t i = 0; i < b->n_seq; i++) {
        const struct slu_seq s = b->seq[i];
        if (i != next) {
            b->seq[n++] = s;
            continue;
        }
        int rc = how->drop(how->ctx, b, &s, x->row.p, err);
        if (!rc)
            rc = next_row(x, x->at + i + 1, err);
        if (rc)
            return rc;
        next = x->next - x->at;
    }
    x->at += b->n_seq;
    slu_batch_keep(b, n);
    return n ? how->emit(how->emit_ctx, b, err) : SLU_OK;
}

int slu_leave_out(struct slu_flow *f, const struct slu_leave_out *how,
                  struct slu_err *err)
{
    static const struct slu_side_ops ops = {.emit = emit};
    struct filter x = {.how = how, .flow = f, .at = how->from};
    int rc = slu_flow_in(f, how->table, &x.table, err);

    if (!rc)
        rc = next_row(&x, x.at, err);
    if (!rc)
        rc = slu_flow_read(f, &ops, &x, err);
    return rc || x.next == NONE ? rc : slu_flow_damaged(f, how->table, x.row.part, err);
}
