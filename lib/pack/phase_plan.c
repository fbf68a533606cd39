/* phase_plan.c - all count files to one plan, and where each part's ranks begin. */
#include <stdlib.h>
#include <string.h>

#include "lib/pack/phase_private.h"

/* A domain's histogram so far. */
struct total {
    struct slu_length_count *row;
    size_t n;
};

struct plan {
    struct slu_packing *p;
    const struct slu_pack_phase *ph;
    struct slu_workfile_out *out;
    struct total *total; /* of each slot of p */
    size_t cap_total;
    uint64_t n_row;
    struct slu_u128 *id; /* of the count files */
    struct slu_u128 ids;
};

/* ---- a count file ---- */

static int too_many(const struct plan *s, struct slu_err *err)
{
    return s->n_row * sizeof(struct slu_length_count) <= s->p->cfg.budget_byte / 8
               ? SLU_OK
               : slu_fail(err, SLU_E_LIMIT,
                          "the length histograms of %zu domains outgrow their share of "
                          "memory; give -M more, or --mix-domains",
                          s->p->n_slot);
}

/* Adds n ascending rows to *t; base[i]: how many there were of row[i]'s length. */
static int add_rows(struct plan *s, struct total *t, const struct slu_length_count *row,
                    size_t n, uint64_t *base, struct slu_err *err)
{
    struct slu_length_count *sum = malloc((t->n + n + 1) * sizeof *sum);
    size_t a = 0, k = 0;

    if (!sum)
        return slu_fail_nomem(err, (t->n + n) * sizeof *sum);
    for (size_t b = 0; a < t->n || b < n;) {
        if (b == n || (a < t->n && t->row[a].len_tok < row[b].len_tok)) {
            sum[k++] = t->row[a++];
            continue;
        }
        bool both = a < t->n && t->row[a].len_tok == row[b].len_tok;
        base[b] = both ? t->row[a++].count : 0;
        sum[k] = row[b];
        if (__builtin_add_overflow(row[b].count, base[b], &sum[k].count)) {
            free(sum);
            return slu_fail(err, SLU_E_LIMIT, "more than 2^64 documents");
        }
        k++;
        b++;
    }
    s->n_row += k - t->n;
    free(t->row);
    t->row = sum;
    t->n = k;
    return too_many(s, err);
}

/* The slot of a domain, made where there is none. */
static int slot_of(struct plan *s, uint32_t domain, size_t *slot, struct slu_err *err)
{
    uint64_t i;
    int rc = SLU_OK;

    if (!slu_map_get(&s->p->slot_of, domain, &i)) {
        i = s->p->n_slot;
        rc = slu_grow(&s->total, &s->cap_total, i + 1, sizeof *s->total, err);
        if (!rc)
            s->total[i] = (struct total){NULL, 0};
        if (!rc)
            rc = slu_pack_new_slot(s->p, domain, err);
    }
    *slot = i;
    return rc;
}

static int add_slot(struct plan *s, struct slu_workfile *f,
                    const struct slu_workfile_stream *names, const uint64_t *v,
                    struct slu_err *err)
{
    uint64_t n = v[SLOT_ROWS];
    uint32_t domain;
    size_t slot = 0;

    if (n > slu_workfile_left(f) / 2)
        return slu_workfile_damaged(f, err);
    int rc = s->p->cfg.mix_domains && v[SLOT_DOMAIN] != SLU_NO_DOMAIN
                 ? slu_workfile_damaged(f, err)
                 : slu_workfile_domain(f, names, v[SLOT_DOMAIN], &domain, err);
    struct slu_length_count *row = rc ? NULL : malloc((n + 1) * sizeof *row);
    uint64_t *base = rc ? NULL : malloc((n + 1) * sizeof *base);
    if (!rc && (!row || !base))
        rc = slu_fail_nomem(err, n * sizeof *row);
    for (uint64_t i = 0; i < n && !rc; i++) {
        uint64_t w[2];
        rc = slu_workfile_get(f, 2, w, err);
        row[i] = (struct slu_length_count){w[0], w[1]};
        if (!rc && (w[0] <= (i ? row[i - 1].len_tok : 0) || !w[1] ||
                    w[0] > s->p->cfg.capacity))
            rc = slu_workfile_damaged(f, err);
    }
    if (!rc)
        rc = slot_of(s, domain, &slot, err);
    if (!rc)
        rc = add_rows(s, &s->total[slot], row, n, base, err);
    if (!rc)
        rc = slu_workfile_put(s->out, base, n, err);
    if (!rc) {
        s->p->slot[slot].items += v[SLOT_ITEMS];
        s->p->slot[slot].tok += v[SLOT_TOK];
        s->p->slot[slot].cut += v[SLOT_CUT];
    }
    free(row);
    free(base);
    return rc;
}

/* The slots of count file f: a section's numbers, of which there are few. */
static int read_slots(struct slu_workfile *f, uint64_t **v, uint64_t *n,
                      struct slu_err *err)
{
    uint64_t len = slu_workfile_len(f, COUNT_SLOTS);

    *n = slu_workfile_head(f)->count[N_SLOT];
    if (slu_workfile_n_section(f) != COUNT_SECTIONS || *n > len || len != *n * SLOT)
        return slu_workfile_damaged(f, err);
    *v = malloc(len * 8 + 8);
    if (!*v)
        return slu_fail_nomem(err, len * 8);
    int rc = slu_workfile_begin(f, COUNT_SLOTS, err);
    if (!rc)
        rc = slu_workfile_get(f, len, *v, err);
    return rc ? rc : slu_workfile_end(f, err);
}

static int add_part(struct plan *s, uint64_t part, uint64_t of, struct slu_err *err)
{
    struct slu_workfile_stream names = {.domain = NULL};
    struct slu_workfile *f = NULL;
    uint64_t *v = NULL, n = 0;
    int rc =
        slu_pack_phase_open(s->ph, SLU_WORKFILE_PACK_COUNT, part, of, NULL, &f, err);

    if (!rc && slu_u128_cmp(slu_workfile_id(f), s->id[part]))
        rc = slu_fail(err, SLU_E_MISMATCH, "%s: changed while it was read",
                      slu_workfile_path(f));
    slu_header_init(&names.header);
    if (!rc)
        rc = slu_workfile_get_stream(f, COUNT_STREAM, s->p->cfg.names, false, &names,
                                     err);
    if (!rc)
        rc = read_slots(f, &v, &n, err);
    if (!rc)
        rc = slu_workfile_section(s->out, part, err);
    if (!rc)
        rc = slu_workfile_begin(f, COUNT_ROWS, err);
    for (uint64_t i = 0; i < n && !rc; i++)
        rc = add_slot(s, f, &names, v + i * SLOT, err);
    if (!rc)
        rc = slu_workfile_end(f, err);
    free(v);
    slu_workfile_stream_release(&names);
    slu_workfile_free(f);
    return rc;
}

/* ---- all of them ---- */

/* They are all there, and made alike; what they are. */
static int look_at_parts(struct plan *s, uint64_t of, struct slu_err *err)
{
    int rc = SLU_OK;

    s->id = calloc(of, sizeof *s->id);
    if (!s->id)
        return slu_fail_nomem(err, of * sizeof *s->id);
    for (uint64_t i = 0; i < of && !rc; i++) {
        struct slu_workfile *f;
        rc = slu_pack_phase_open(s->ph, SLU_WORKFILE_PACK_COUNT, i, of, NULL, &f, err);
        if (rc)
            break;
        s->id[i] = slu_workfile_id(f);
        s->ids = slu_workfile_mix(s->ids, s->id[i]);
        slu_workfile_free(f);
    }
    return rc;
}

static int make_plans(struct plan *s, struct slu_err *err)
{
    struct slu_packing *p = s->p;
    uint64_t plan_byte = 0;
    int rc = slu_pack_check_domains(p, err);

    slu_pack_phase(p, "plan", NULL);
    for (size_t i = 0; i < p->n_slot && !rc; i++) {
        struct slu_length_count *row = s->total[i].row;
        s->total[i].row = NULL; /* which make_plan takes */
        rc = slu_pack_make_plan(p, i, row, s->total[i].n, err);
        if (rc)
            break;
        p->n_bin += p->slot[i].sum.bins;
        plan_byte += p->slot[i].sum.groups * sizeof(struct slu_pack_group);
        rc = slu_pack_check_plan(p, plan_byte, err);
    }
    return rc;
}

static int put_plan(struct plan *s, uint64_t of, struct slu_err *err)
{
    const void *bytes;
    size_t n;
    int rc = slu_workfile_section(s->out, of, err);

    for (uint64_t i = 0; i < of && !rc; i++) {
        const uint64_t v[2] = {s->id[i].lo, s->id[i].hi};
        rc = slu_workfile_put(s->out, v, 2, err);
    }
    if (!rc)
        rc = slu_workfile_section(s->out, of + 1, err);
    if (!rc)
        rc = slu_planfile_bytes(s->p->cfg.save, &bytes, &n, err);
    return rc ? rc : slu_workfile_put_bytes(s->out, bytes, n, err);
}

int slu_pack_plan_write(struct slu_packing *p, const struct slu_pack_phase *ph,
                        bool *done, struct slu_err *err)
{
    struct plan s = {.p = p, .ph = ph};
    struct slu_workfile_head head = {.kind = SLU_WORKFILE_PACK_PLAN,
                                     .param = ph->param};
    uint64_t of = 0;
    int rc = slu_work_parts(ph->work, "count", &of, err);

    memcpy(head.fingerprint, ph->fingerprint, sizeof head.fingerprint);
    if (!rc)
        rc = look_at_parts(&s, of, err);
    head.inputs = s.ids;
    if (!rc)
        rc = slu_pack_phase_create(ph, head.kind, &head.inputs, done, &s.out, err);
    for (uint64_t i = 0; i < of && !rc && s.out; i++)
        rc = add_part(&s, i, of, err);
    if (!rc && s.out)
        rc = make_plans(&s, err);
    if (!rc && s.out)
        rc = put_plan(&s, of, err);
    head.count[PLAN_PARTS] = of;
    head.count[PLAN_BINS] = p->n_bin;
    if (!rc && s.out) {
        rc = slu_workfile_close(s.out, &head, of + 2, err);
        s.out = NULL;
    }
    slu_workfile_abort(s.out);
    for (size_t i = 0; s.total && i < p->n_slot; i++)
        free(s.total[i].row);
    free(s.total);
    free(s.id);
    return rc;
}
