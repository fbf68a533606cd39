/* phase_files.c - names, parameters, and how scatter and gather begin. */
#include <stdlib.h>
#include <string.h>

#include "lib/pack/phase_private.h"

const char *slu_pack_phase_name(uint64_t kind)
{
    return kind == SLU_WORKFILE_PACK_COUNT  ? "count"
           : kind == SLU_WORKFILE_PACK_PLAN ? "plan"
                                            : "scatter";
}

int slu_pack_phase_param(const struct slu_packing_cfg *cfg, const char *too_long,
                         char **text, struct slu_err *err)
{
    const bool multi = cfg->method == SLU_PACK_MULTI;
    struct slu_buf t = SLU_BUF_INIT;
    int rc = slu_buf_printf(&t, err, "pack=%s", slu_pack_method_name[cfg->method]);

    *text = NULL;
    if (!multi && !rc)
        rc = slu_buf_printf(&t, err, " bins=%llu", (unsigned long long)cfg->capacity);
    for (size_t i = 0; multi && i < cfg->n_bin_tok && !rc; i++)
        rc = slu_buf_printf(&t, err, "%s%llu",
                            i ? "," : " bins=", (unsigned long long)cfg->bin_tok[i]);
    if (multi && !rc)
        rc =
            slu_buf_printf(&t, err, " padding-threshold=%.17g", cfg->padding_threshold);
    if (!rc)
        rc = slu_buf_printf(
            &t, err, " max-segments=%llu mix-domains=%s long=%s fill=%s",
            (unsigned long long)cfg->max_items, cfg->mix_domains ? "yes" : "no",
            too_long, cfg->drop ? "drop" : "pad");
    if (!rc)
        *text = strdup((const char *)t.data);
    if (!rc && !*text)
        rc = slu_fail_nomem(err, t.len);
    slu_buf_release(&t);
    return rc;
}

static struct slu_workfile_head head_of(const struct slu_pack_phase *ph, uint64_t kind)
{
    struct slu_workfile_head h = {
        .kind = kind, .part = ph->part, .of = ph->of, .param = ph->param};
    memcpy(h.fingerprint, ph->fingerprint, sizeof h.fingerprint);
    return h;
}

int slu_pack_phase_open(const struct slu_pack_phase *ph, uint64_t kind, uint64_t part,
                        uint64_t of, const struct slu_u128 *inputs,
                        struct slu_workfile **f, struct slu_err *err)
{
    struct slu_workfile_head h = head_of(ph, kind);

    h.part = part;
    h.of = of;
    return slu_work_open(ph->work, slu_pack_phase_name(kind), &h, !ph->param, inputs, f,
                         err);
}

int slu_pack_count_done(const struct slu_pack_phase *ph, bool *done,
                        struct slu_u128 *stream, struct slu_err *err)
{
    const struct slu_workfile_head want = head_of(ph, SLU_WORKFILE_PACK_COUNT);
    struct slu_workfile_head is = {.inputs = {0, 0}};
    char *path;
    int rc = slu_work_path(ph->work, slu_pack_phase_name(want.kind), ph->part, ph->of,
                           &path, err);

    *done = false;
    if (!rc)
        rc = slu_work_done(path, &want, NULL, ph->force, done, &is, err);
    free(path);
    *done = *done && !ph->force;
    if (!rc && *done)
        *stream = is.inputs;
    return rc;
}

int slu_pack_count_compare(const struct slu_pack_phase *ph, struct slu_u128 stream,
                           struct slu_u128 is, struct slu_err *err)
{
    if (!slu_u128_cmp(stream, is))
        return SLU_OK;
    return slu_fail(err, SLU_E_MISMATCH,
                    "%s/count.%llu-of-%llu: was made from another stream; remove it, "
                    "or use -f to make it again",
                    ph->work, (unsigned long long)ph->part, (unsigned long long)ph->of);
}

int slu_pack_phase_create(const struct slu_pack_phase *ph, uint64_t kind,
                          const struct slu_u128 *inputs, bool *done,
                          struct slu_workfile_out **o, struct slu_err *err)
{
    const struct slu_workfile_head want = head_of(ph, kind);
    struct slu_workfile_head is;
    char *path;
    bool same;
    int rc = slu_work_path(ph->work, slu_pack_phase_name(kind), ph->part, ph->of, &path,
                           err);

    *o = NULL;
    if (!rc)
        rc = slu_work_done(path, &want, inputs, ph->force, &same, &is, err);
    if (done)
        *done = !rc && same && !ph->force;
    if (!rc && !(done && *done))
        rc = slu_workfile_create(o, path, kind, err);
    free(path);
    return rc;
}

int slu_pack_phase_header(const struct slu_pack_phase *ph, uint64_t kind,
                          struct slu_header *h, struct slu_err *err)
{
    const struct slu_pack_phase any = {.work = ph->work};
    struct slu_workfile_stream s = {.domain = NULL};
    struct slu_names *names = NULL;
    struct slu_workfile *f = NULL, *plan = NULL;
    uint64_t of = 0;
    int rc = slu_names_new(&names, err);

    slu_header_init(&s.header);
    if (!rc && kind == SLU_WORKFILE_PACK_COUNT)
        rc = slu_work_parts(ph->work, slu_pack_phase_name(kind), &of, err);
    else if (!rc) {
        rc = slu_pack_phase_open(&any, SLU_WORKFILE_PACK_PLAN, 0, 0, NULL, &plan, err);
        of = rc ? 0 : slu_workfile_head(plan)->count[PLAN_PARTS];
    }
    if (!rc)
        rc = slu_pack_phase_open(&any, kind, 0, of, NULL, &f, err);
    if (!rc)
        rc = slu_workfile_get_stream(f, 0, names, false, &s, err);
    if (!rc)
        rc = slu_header_copy(h, &s.header, err);
    slu_workfile_stream_release(&s);
    slu_workfile_free(f);
    slu_workfile_free(plan);
    slu_names_free(names);
    return rc;
}

/* ---- how scatter and gather begin ---- */

/* A slot for each domain of the plan, with its plan. */
static int add_slots(struct slu_packing *p, const struct slu_planfile *f,
                     struct slu_err *err)
{
    uint64_t plan_byte = 0;
    int rc = SLU_OK;

    for (size_t i = 0; i < slu_planfile_domains(f) && !rc; i++) {
        const char *name = slu_planfile_name(f, i);
        uint32_t number = SLU_NO_DOMAIN;
        if (name)
            rc =
                slu_names_domain_number(p->cfg.names, name, strlen(name), &number, err);
        if (!rc)
            rc = slu_pack_new_slot(p, number, err);
        if (!rc)
            rc = slu_planfile_plan(f, i, &p->slot[i].plan, err);
        if (rc)
            return rc;
        p->slot[i].sum = slu_pack_plan_sum(p->slot[i].plan);
        p->n_bin += p->slot[i].sum.bins;
        plan_byte += p->slot[i].sum.groups * sizeof(struct slu_pack_group);
        rc = slu_pack_check_plan(p, plan_byte, err);
    }
    return rc;
}

static int read_plan(struct slu_packing *p, struct slu_workfile *f, struct slu_err *err)
{
    uint64_t n_part = slu_workfile_head(f)->count[PLAN_PARTS];
    struct slu_planfile *plan = NULL;
    struct slu_buf b = SLU_BUF_INIT;

    if (slu_workfile_n_section(f) != n_part + 2 ||
        slu_workfile_len(f, n_part) != 2 * n_part)
        return slu_workfile_damaged(f, err);
    if (slu_workfile_len(f, n_part + 1) >
        p->cfg.budget_byte / 64) /* u64 of an eighth */
        return slu_fail(err, SLU_E_LIMIT,
                        "%s: the plan outgrows its share of memory; give -M more",
                        slu_workfile_path(f));
    int rc = slu_workfile_begin(f, n_part + 1, err);
    if (!rc)
        rc = slu_workfile_get_bytes(f, &b, err);
    if (!rc)
        rc = slu_workfile_end(f, err);
    if (!rc && slu_planfile_parse(&plan, b.data, b.len, err))
        rc = slu_err_at(err, "%s", slu_workfile_path(f));
    slu_buf_release(&b);
    if (!rc)
        rc = add_slots(p, plan, err);
    if (!rc && p->n_bin != slu_workfile_head(f)->count[PLAN_BINS])
        rc = slu_workfile_damaged(f, err);
    slu_planfile_free(plan);
    return rc;
}

static int new_parts(struct slu_pack_parts **out, const struct slu_pack_phase *ph,
                     const struct slu_workfile *plan, struct slu_err *err)
{
    struct slu_pack_parts *q = calloc(1, sizeof *q);

    *out = q;
    if (!q)
        return slu_fail_nomem(err, sizeof *q);
    q->ph = *ph;
    q->ph.param = q->param = strdup(ph->param);
    q->n_part = slu_workfile_head(plan)->count[PLAN_PARTS];
    q->plan = slu_workfile_id(plan);
    return q->param ? SLU_OK : slu_fail_nomem(err, strlen(ph->param));
}

void slu_pack_parts_free(struct slu_pack_parts *q)
{
    if (!q)
        return;
    free(q->param);
    free(q);
}

int slu_pack_phase_begin(struct slu_packing **out, const struct slu_packing_cfg *cfg,
                         const struct slu_pack_phase *ph, struct slu_workfile **plan,
                         struct slu_err *err)
{
    struct slu_packing_cfg c = *cfg;
    struct slu_packing *p = NULL;

    c.plan_only = true; /* nothing waits in memory */
    *out = NULL;
    int rc = slu_pack_phase_open(ph, SLU_WORKFILE_PACK_PLAN, 0, 0, NULL, plan, err);
    if (!rc)
        rc = slu_packing_new(&p, &c, err);
    if (!rc) {
        p->cfg.plan_only = false;
        rc = slu_pack_ext_new(&p->ext, cfg, false, err);
    }
    if (!rc)
        rc = new_parts(&p->ext->parts, ph, *plan, err);
    if (!rc)
        rc = read_plan(p, *plan, err);
    if (!rc)
        rc = slu_pack_ext_sites(p, err);
    if (!rc) {
        p->ext->parts->n_planned = p->n_slot;
        rc = slu_pack_ext_sorter(p, err);
    }
    if (rc)
        slu_packing_free(p);
    else
        *out = p;
    return rc;
}
