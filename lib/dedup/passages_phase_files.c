/* passages_phase_files.c - what the phases of passages say of themselves and read of
 * each other. */
#include <stdlib.h>

#include "lib/dedup/passages_phase_private.h"
#include "lib/le.h"

int slu_phase_own(struct slu_phase_own *o, const struct slu_phase_cfg *c,
                  uint64_t n_range, struct slu_err *err)
{
    struct slu_workfile_head *w = &o->want;

    w->count[N_RANGE] = n_range;
    int rc = slu_phase_path(c, w->kind, w->part, w->of, &o->path, err);
    if (rc == SLU_OK)
        rc = slu_phase_param(c, w->kind, n_range, &o->param, err);
    w->param = o->param;
    return rc ? rc : slu_phase_done(c, w, o->path, &o->done, &o->is, err);
}

void slu_phase_own_release(struct slu_phase_own *o)
{
    free(o->path);
    free(o->param);
}

void slu_passages_specials(struct slu_specials *s, const struct slu_header *h)
{
    *s = (struct slu_specials){0};
    slu_specials_add(s, h->eos);
    slu_specials_add(s, h->bos);
    slu_specials_add(s, h->pad);
}

uint64_t slu_passages_special_hash(const struct slu_header *h)
{
    const uint64_t v[] = {h->eos, h->bos, h->pad, h->tok_bytes};
    uint8_t b[sizeof v];

    for (unsigned i = 0; i < sizeof v / sizeof *v; i++)
        slu_put_le64(b + 8 * i, v[i]);
    return slu_hash64(b, sizeof b);
}

int slu_passages_next_run(struct slu_workfile *f, uint64_t n_place, uint64_t *place,
                          uint64_t *count, struct slu_err *err)
{
    const uint64_t *v;
    int rc = slu_workfile_next(f, 1, &v, err);

    if (rc)
        return rc;
    *place = *v >> 16;
    *count = *v & 0xffff;
    if (*place<n_place && * count> 0 && *count <= n_place - *place)
        return SLU_OK;
    return slu_fail(err, SLU_E_CHECKSUM,
                    "%s: damaged; remove it and run its phase again",
                    slu_workfile_path(f));
}

int slu_passages_other_stream(uint64_t part, uint64_t of, struct slu_err *err)
{
    return slu_fail(err, SLU_E_MISMATCH,
                    "the stream is not the one that part %llu/%llu was signed from",
                    (unsigned long long)part, (unsigned long long)of);
}
