/* phase_scatter.c - a part's items under their bins' keys to its scatter file. */
#include <stdlib.h>
#include <string.h>

#include "lib/pack/phase_private.h"
#include "lib/order/sorter.h"

/* ---- the ranks that this part may give ---- */

static int set_ranks(struct slu_packing *p, size_t slot, struct slu_workfile *count,
                     uint64_t n, struct slu_workfile *plan, struct slu_err *err)
{
    const struct slu_pack_plan *of = p->slot[slot].plan;
    struct slu_pack_site *site = &p->ext->site[slot];
    int rc = SLU_OK;

    for (uint64_t i = 0; i < n && !rc; i++) {
        uint64_t row[2], base;
        rc = slu_workfile_get(count, 2, row, err);
        if (!rc)
            rc = slu_workfile_get(plan, 1, &base, err);
        if (rc)
            break;
        size_t k = of->n_length ? slu_pack_find(of, row[0]) : 0;
        if (k >= of->n_length || of->length[k].len_tok != row[0] ||
            __builtin_add_overflow(base, row[1], &site->end[k]))
            return slu_workfile_damaged(plan, err);
        site->rank[k] = base;
    }
    return rc;
}

/* Of the slot of a domain of the count file. */
static int slot_ranks(struct slu_packing *p, struct slu_workfile *count,
                      const struct slu_workfile_stream *names, const uint64_t *v,
                      struct slu_workfile *plan, struct slu_err *err)
{
    uint32_t domain;
    uint64_t slot = 0;
    int rc = slu_workfile_domain(count, names, v[SLOT_DOMAIN], &domain, err);

    if (!rc && !slu_map_get(&p->slot_of, domain, &slot))
        rc = slu_workfile_damaged(plan, err);
    return rc ? rc : set_ranks(p, slot, count, v[SLOT_ROWS], plan, err);
}

static int read_slots(struct slu_packing *p, struct slu_workfile *count, uint64_t **v,
                      struct slu_err *err)
{
    uint64_t n = slu_workfile_len(count, COUNT_SLOTS);
    int rc = slu_workfile_begin(count, COUNT_SLOTS, err);

    if (!rc && (n % SLOT || n / SLOT != slu_workfile_head(count)->count[N_SLOT] ||
                n / SLOT > p->n_slot))
        rc = slu_workfile_damaged(count, err);
    if (rc)
        return rc;
    *v = malloc(n * 8 + 8);
    if (!*v)
        return slu_fail_nomem(err, n * 8);
    rc = slu_workfile_get(count, n, *v, err);
    return rc ? rc : slu_workfile_end(count, err);
}

/* The count file is the one that the plan was made of. */
static int check_count(const struct slu_packing *p, struct slu_workfile *count,
                       struct slu_workfile *plan, struct slu_err *err)
{
    const struct slu_pack_parts *q = p->ext->parts;
    const struct slu_u128 id = slu_workfile_id(count);
    uint64_t v[2];
    int rc = slu_workfile_read(plan, q->n_part, 2 * q->ph.part, 2, v, err);

    if (!rc && (v[0] != id.lo || v[1] != id.hi))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: is not what the plan was made of; remove the plan and run "
                      "--phase plan again",
                      slu_workfile_path(count));
    return rc;
}

static int all_ranks(struct slu_packing *p, struct slu_workfile *plan,
                     struct slu_err *err)
{
    struct slu_pack_parts *q = p->ext->parts;
    struct slu_workfile_stream names = {.domain = NULL};
    struct slu_workfile *count = NULL;
    uint64_t *v = NULL;
    int rc = slu_pack_phase_open(&q->ph, SLU_WORKFILE_PACK_COUNT, q->ph.part, q->n_part,
                                 NULL, &count, err);

    slu_header_init(&names.header);
    for (size_t i = 0; i < p->n_slot && !rc; i++) {
        size_t n = p->slot[i].plan->n_length;
        p->ext->site[i].end = calloc(n ? n : 1, sizeof *p->ext->site[i].end);
        if (!p->ext->site[i].end)
            rc = slu_fail_nomem(err, n * sizeof *p->ext->site[i].end);
    }
    if (!rc)
        rc = check_count(p, count, plan, err);
    if (!rc)
        rc = slu_workfile_get_stream(count, COUNT_STREAM, p->cfg.names, false, &names,
                                     err);
    if (!rc)
        rc = read_slots(p, count, &v, err);
    if (!rc)
        rc = slu_workfile_begin(count, COUNT_ROWS, err);
    if (!rc)
        rc = slu_workfile_begin(plan, q->ph.part, err);
    for (uint64_t i = 0; !rc && i < slu_workfile_head(count)->count[N_SLOT]; i++)
        rc = slot_ranks(p, count, &names, v + i * SLOT, plan, err);
    if (!rc)
        rc = slu_workfile_end(count, err);
    if (!rc)
        rc = slu_workfile_end(plan, err);
    if (!rc) {
        q->counted = slu_workfile_head(count)->inputs;
        q->n_counted = slu_workfile_head(count)->count[N_PIECE];
    }
    free(v);
    slu_workfile_stream_release(&names);
    slu_workfile_free(count);
    return rc;
}

int slu_pack_scatter_there(const struct slu_pack_phase *ph, bool *there,
                           struct slu_err *err)
{
    uint64_t kind = SLU_WORKFILE_PACK_SCATTER, want = ph->ranges ? ph->ranges : ph->of;
    struct slu_err why = SLU_ERR_INIT;
    struct slu_workfile *f = NULL;
    char *path;
    int rc = slu_work_path(ph->work, slu_pack_phase_name(kind), ph->part, ph->of, &path,
                           err);

    *there = false;
    if (rc)
        return rc;
    /* One that is damaged is named where it is made again. */
    *there = !slu_workfile_open(&f, path, kind, &why);
    uint64_t is = *there ? slu_workfile_head(f)->count[N_RANGE] : want;
    if (is != want)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: was made with ranges=%llu, and this is ranges=%llu; remove "
                      "it, or use -f to make it again",
                      path, (unsigned long long)is, (unsigned long long)want);
    slu_workfile_free(f);
    free(path);
    return rc;
}

int slu_pack_scatter_new(struct slu_packing **p, const struct slu_packing_cfg *cfg,
                         const struct slu_pack_phase *ph, struct slu_err *err)
{
    struct slu_workfile *plan = NULL;
    bool there;
    int rc = ph->force ? SLU_OK : slu_pack_scatter_there(ph, &there, err);

    *p = NULL;
    if (!rc)
        rc = slu_pack_phase_begin(p, cfg, ph, &plan, err);
    if (!rc && (*p)->ext->parts->n_part != ph->of)
        rc = slu_fail(
            err, SLU_E_MISMATCH, "%s: is of %llu parts, and this is part %llu/%llu",
            slu_workfile_path(plan), (unsigned long long)(*p)->ext->parts->n_part,
            (unsigned long long)ph->part, (unsigned long long)ph->of);
    if (!rc)
        rc = all_ranks(*p, plan, err);
    slu_workfile_free(plan);
    if (rc) {
        slu_packing_free(*p);
        *p = NULL;
    }
    return rc;
}

/* ---- items ---- */

static int other_stream(const struct slu_packing *p, struct slu_err *err)
{
    const struct slu_pack_phase *ph = &p->ext->parts->ph;

    return slu_fail(err, SLU_E_MISMATCH,
                    "the stream is not the one that was counted; remove "
                    "%s/count.%llu-of-%llu and begin with --phase count again",
                    ph->work, (unsigned long long)ph->part, (unsigned long long)ph->of);
}

int slu_pack_scatter_put(struct slu_packing *p, const struct slu_pack_item *from,
                         struct slu_err *err)
{
    static const uint64_t zero;
    struct slu_pack_parts *q = p->ext->parts;
    const struct slu_seg *g = &from->seg;
    const struct slu_pack_wait it = {g->source, g->document, g->offset,  g->len_tok,
                                     0,         g->domain,   from->slot, g->id_len,
                                     0,         g->score};
    if (from->slot >= q->n_planned)
        return other_stream(p, err);
    const struct slu_pack_plan *plan = p->slot[from->slot].plan;
    struct slu_pack_site *site = &p->ext->site[from->slot];
    size_t i = plan->n_length ? slu_pack_find(plan, g->len_tok) : 0;
    if (i >= plan->n_length || plan->length[i].len_tok != g->len_tok ||
        site->rank[i] >= site->end[i])
        return other_stream(p, err);
    uint64_t bin, place;
    slu_pack_place(plan, i, site->rank[i]++, &bin, &place);
    size_t n_tok = g->len_tok * p->cfg.tok_bytes;
    const struct slu_piece piece[] = {
        {&it, sizeof it},
        {from->id, g->id_len},
        {&zero, slu_pack_pad8(g->id_len) - g->id_len},
        {from->tok, n_tok},
        {&zero, slu_pack_pad8(n_tok) - n_tok},
    };
    slu_count_add(&q->work, (struct slu_count){g->offset == 0, 1, g->len_tok});
    return slu_sorter_add(p->ext->sorter,
                          slu_pack_key(p->n_bin, site->first_bin + bin, place), piece,
                          5, err);
}

/* ---- the file ---- */

/* All records in order, each in its range's section. */
static int put_records(struct slu_packing *p, struct slu_workfile_out *o,
                       uint64_t n_range, struct slu_err *err)
{
    uint64_t range = 0, end = slu_pack_range_bin(p->n_bin, 1, n_range);
    struct slu_rec rec;
    const void *bytes;
    size_t n;
    int rc = slu_sorter_seal(p->ext->sorter, err);

    if (!rc)
        rc = slu_workfile_section(o, SCATTER_RANGES, err);
    while (!rc) {
        rc = slu_sorter_next(p->ext->sorter, &rec.key, &bytes, &n, err);
        if (rc)
            break;
        uint64_t bin = slu_pack_bin_of(p->n_bin, rec.key);
        while (bin >= end)
            end = slu_pack_range_bin(p->n_bin, ++range + 1, n_range);
        rec.n_byte = n;
        rc = slu_workfile_section(o, SCATTER_RANGES + range, err);
        if (!rc)
            rc = slu_workfile_put_raw(o, &rec, sizeof rec, err);
        if (!rc)
            rc = slu_workfile_put_raw(o, bytes, n, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

int slu_pack_scatter_end(struct slu_packing *p, const struct slu_header *h,
                         struct slu_u128 stream, struct slu_count *work,
                         struct slu_err *err)
{
    const struct slu_pack_parts *q = p->ext->parts;
    struct slu_workfile_head head = {.kind = SLU_WORKFILE_PACK_SCATTER,
                                     .part = q->ph.part,
                                     .of = q->ph.of,
                                     .inputs = q->plan,
                                     .param = q->ph.param};
    uint64_t n_range = q->ph.ranges ? q->ph.ranges : q->ph.of;
    struct slu_workfile_out *o = NULL;

    memcpy(head.fingerprint, q->ph.fingerprint, sizeof head.fingerprint);
    head.count[N_RANGE] = n_range;
    head.count[N_RECORD] = q->work.sequences;
    head.count[N_ID_BYTE] = p->id_byte;
    head.count[LONGEST_ID] = p->longest_id;
    if (q->work.sequences != q->n_counted || slu_u128_cmp(stream, q->counted))
        return other_stream(p, err);
    int rc = slu_pack_phase_create(&q->ph, head.kind, &head.inputs, NULL, &o, err);
    if (!rc)
        rc = slu_workfile_put_stream(o, h, p->cfg.names, true, err);
    if (!rc)
        rc = put_records(p, o, n_range, err);
    *work = q->work;
    if (!rc)
        return slu_workfile_close(o, &head, SCATTER_RANGES + n_range, err);
    slu_workfile_abort(o);
    return rc;
}
