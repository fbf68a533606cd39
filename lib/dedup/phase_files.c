/* phase_files.c - names, parameters, and who made what from what. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/dedup/phases_private.h"
#include "lib/io.h"

static const char *const kind_name[] = {
    [SLU_WORKFILE_SIGN] = "sign",        [SLU_WORKFILE_MERGE] = "merge",
    [SLU_WORKFILE_VERIFY] = "verify",    [SLU_WORKFILE_CLUSTER] = "cluster",
    [SLU_WORKFILE_PASSAGES_ASK] = "ask", [SLU_WORKFILE_PASSAGES_MATCH] = "match"};

int slu_phase_param(const struct slu_phase_cfg *c, uint64_t kind, uint64_t n_range,
                    char **text, struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    bool near = !c->exact && !c->n_passage_tok;
    int rc;

    *text = NULL;
    if (c->n_passage_tok)
        rc = slu_buf_printf(&t, err, "dedup=substring tokens=%u ranges=%llu",
                            c->n_passage_tok, (unsigned long long)n_range);
    else if (c->exact)
        rc = slu_buf_printf(&t, err, "dedup=exact ranges=%llu",
                            (unsigned long long)n_range);
    else
        rc = slu_buf_printf(
            &t, err,
            "dedup=near bands=%u rows=%u ngram=%u unit=%s seed=%llu keep=%s "
            "ranges=%llu",
            c->n_band, c->n_row, c->n_gram, c->unit == SLU_UNIT_WORD ? "word" : "token",
            (unsigned long long)c->seed, c->keep, (unsigned long long)n_range);
    if (rc == SLU_OK && near && kind >= SLU_WORKFILE_MERGE)
        rc = slu_buf_printf(&t, err, " band-cap=%llu", (unsigned long long)c->band_cap);
    if (rc == SLU_OK && near && kind >= SLU_WORKFILE_VERIFY)
        rc = slu_buf_printf(&t, err, " threshold=%llu/%llu verify=%s",
                            (unsigned long long)c->num, (unsigned long long)c->den,
                            c->verify ? "yes" : "no");
    if (rc == SLU_OK)
        *text = strdup((const char *)t.data);
    if (rc == SLU_OK && !*text)
        rc = slu_fail_nomem(err, t.len);
    slu_buf_release(&t);
    return rc;
}

int slu_phase_path(const struct slu_phase_cfg *c, uint64_t kind, uint64_t part,
                   uint64_t of, char **path, struct slu_err *err)
{
    if (asprintf(path, "%s/%s.%llu-of-%llu", c->work, kind_name[kind],
                 (unsigned long long)part, (unsigned long long)of) >= 0)
        return SLU_OK;
    *path = NULL;
    return slu_fail_nomem(err, strlen(c->work) + 64);
}

int slu_phase_open(const struct slu_phase_cfg *c, uint64_t kind, uint64_t part,
                   uint64_t of, uint64_t n_range, const uint8_t *fingerprint,
                   const struct slu_u128 *inputs, struct slu_workfile **f,
                   struct slu_err *err)
{
    struct slu_workfile_head want = {.kind = kind, .part = part, .of = of};
    struct slu_err why = SLU_ERR_INIT;
    char *param = NULL, *path = NULL;

    *f = NULL;
    int rc = slu_phase_path(c, kind, part, of, &path, err);
    if (rc == SLU_OK) {
        rc = slu_workfile_open(f, path, kind, &why);
        if (rc == SLU_E_IO && why.sys_errno == ENOENT)
            rc = slu_fail(err, rc, "%s is missing; run --phase %s --part %llu/%llu",
                          path, kind_name[kind], (unsigned long long)part,
                          (unsigned long long)of);
        else if (rc && err)
            *err = why;
    }
    if (rc == SLU_OK && n_range == 0)
        n_range = slu_workfile_head(*f)->count[N_RANGE];
    if (rc == SLU_OK)
        rc = slu_phase_param(c, kind, n_range, &param, err);
    if (rc == SLU_OK) {
        want.param = param;
        memcpy(want.fingerprint,
               fingerprint ? fingerprint : slu_workfile_head(*f)->fingerprint, 16);
        rc = slu_workfile_match(*f, &want, inputs, err);
    }
    if (rc) {
        slu_workfile_free(*f);
        *f = NULL;
    }
    free(param);
    free(path);
    return rc;
}

int slu_phase_done(const struct slu_phase_cfg *c, const struct slu_workfile_head *want,
                   const char *path, bool *done, struct slu_workfile_head *is,
                   struct slu_err *err)
{
    struct slu_err why = SLU_ERR_INIT;
    struct slu_workfile *f;

    *done = false;
    if (c->force) /* whatever is there, this phase's or not */
        return SLU_OK;
    int rc = slu_workfile_open(&f, path, want->kind, &why);
    if (rc == SLU_E_IO && why.sys_errno == ENOENT)
        return SLU_OK;
    if (rc == SLU_OK) {
        rc = slu_workfile_match(
            f, want, want->kind == SLU_WORKFILE_SIGN ? NULL : &want->inputs, &why);
        *is = *slu_workfile_head(f);
        is->param = NULL;
    }
    slu_workfile_free(f);
    if (rc && err)
        *err = why;
    *done = rc == SLU_OK;
    return rc;
}

/* ---- the sign files ---- */

/* N of the files sign.I-of-N in the folder. */
static int count_parts(const struct slu_phase_cfg *c, uint64_t *of, struct slu_err *err)
{
    DIR *dir = opendir(c->work);
    const struct dirent *e;
    int rc = SLU_OK;

    *of = 0;
    if (!dir)
        return slu_fail_errno(err, "%s", c->work);
    while (rc == SLU_OK && (e = readdir(dir))) {
        unsigned long long i, n;
        int end = 0;
        if (sscanf(e->d_name, "sign.%19llu-of-%19llu%n", &i, &n, &end) != 2 ||
            e->d_name[end])
            continue;
        if (*of && *of != n)
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s: has sign files of %llu parts and of %llu; remove those "
                          "that do not belong",
                          c->work, (unsigned long long)(*of < n ? *of : n),
                          (unsigned long long)(*of < n ? n : *of));
        *of = n;
    }
    closedir(dir);
    if (rc == SLU_OK && *of == 0)
        rc = slu_fail(err, SLU_E_MISMATCH, "%s: no sign files; run --phase sign first",
                      c->work);
    return rc;
}

int slu_phase_parts_read(struct slu_phase_parts *p, const struct slu_phase_cfg *c,
                         uint64_t of, struct slu_err *err)
{
    *p = (struct slu_phase_parts){.of = of};
    int rc = of ? SLU_OK : count_parts(c, &p->of, err);

    if (rc == SLU_OK && p->of > SLU_WORKFILE_MAX_PARTS)
        rc = slu_fail(err, SLU_E_LIMIT, "more than %d parts", SLU_WORKFILE_MAX_PARTS);
    if (rc)
        return rc;
    p->base = calloc(p->of + 1, sizeof *p->base);
    p->id = calloc(p->of, sizeof *p->id);
    p->head = calloc(p->of, sizeof *p->head);
    if (!p->base || !p->id || !p->head)
        return slu_fail_nomem(err, p->of * sizeof *p->head);
    for (uint64_t i = 0; i < p->of; i++) {
        struct slu_workfile *f;
        rc = slu_phase_open(c, SLU_WORKFILE_SIGN, i, p->of, i ? p->n_range : c->ranges,
                            i ? p->fingerprint : NULL, NULL, &f, err);
        if (rc)
            return rc;
        p->head[i] = *slu_workfile_head(f);
        p->head[i].param = NULL;
        p->id[i] = slu_workfile_id(f);
        if (i == 0) {
            p->n_range = p->head[i].count[N_RANGE];
            memcpy(p->fingerprint, p->head[i].fingerprint, 16);
        }
        p->ids = slu_workfile_mix(p->ids, p->id[i]);
        uint64_t n = p->head[i].count[c->n_passage_tok ? N_PLACE : N_DOC];
        p->base[i + 1] = p->base[i] + n;
        bool bad = slu_workfile_n_section(f) !=
                       (c->n_passage_tok ? 0 : RECORDS) + p->n_range ||
                   n > LOCAL_MASK || p->base[i + 1] > UINT64_MAX >> 8;
        if (bad)
            rc = slu_fail(err, SLU_E_FORMAT, "%s: counts that cannot be",
                          slu_workfile_path(f));
        else if (c->n_passage_tok &&
                 p->head[i].count[SPECIALS] != p->head[0].count[SPECIALS])
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s: its stream has other special ids, or ids of another "
                          "width, than part 0",
                          slu_workfile_path(f));
        slu_workfile_free(f);
        if (rc)
            return rc;
    }
    return SLU_OK;
}

void slu_phase_parts_release(struct slu_phase_parts *p)
{
    free(p->base);
    free(p->id);
    free(p->head);
    *p = (struct slu_phase_parts){0};
}

uint64_t slu_phase_part_of(const struct slu_phase_parts *p, uint64_t ordinal)
{
    uint64_t lo = 0, hi = p->of;

    while (hi - lo > 1) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (p->base[mid] <= ordinal)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

int slu_phase_parts_open(const struct slu_phase_parts *p, const struct slu_phase_cfg *c,
                         uint64_t part, struct slu_workfile **f, struct slu_err *err)
{
    int rc = slu_phase_open(c, SLU_WORKFILE_SIGN, part, p->of, p->n_range,
                            p->fingerprint, NULL, f, err);

    if (rc == SLU_OK && slu_u128_cmp(slu_workfile_id(*f), p->id[part])) {
        rc = slu_fail(err, SLU_E_MISMATCH, "%s: changed while it was read",
                      slu_workfile_path(*f));
        slu_workfile_free(*f);
        *f = NULL;
    }
    return rc;
}

int slu_phase_mix(const struct slu_phase_parts *p, const struct slu_phase_cfg *c,
                  uint64_t kind, uint64_t of, const struct slu_u128 *inputs,
                  struct slu_u128 *ids, struct slu_err *err)
{
    int rc = SLU_OK;

    for (uint64_t i = 0; rc == SLU_OK && i < of; i++) {
        struct slu_workfile *f;
        rc =
            slu_phase_open(c, kind, i, of, p->n_range, p->fingerprint, inputs, &f, err);
        if (rc == SLU_OK)
            *ids = slu_workfile_mix(*ids, slu_workfile_id(f));
        slu_workfile_free(f);
    }
    return rc;
}
