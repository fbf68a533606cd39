/* phase_gather.c - a range of bins from all scatter files. */
#include <stdlib.h>
#include <string.h>

#include "lib/pack/phase_private.h"
#include "lib/order/sorter.h"
#include "lib/stream/stream_private.h"

#define RUN_BYTE (UINT64_C(256) << 10) /* records that go to the sorter at once */

/* ---- a scatter file ---- */

struct source {
    struct slu_packing *p;
    struct slu_workfile *file;
    struct slu_workfile_stream stream;
    struct slu_buf run;
};

/* The record is one of an item of this range. What is wrong here is a bug or forged:
 * checksums are looked at too. */
static bool is_item(const struct source *s, const struct slu_rec *rec,
                    const struct slu_pack_wait *it)
{
    const struct slu_packing *p = s->p;
    const struct slu_pack_parts *q = p->ext->parts;
    uint64_t bin = slu_pack_bin_of(p->n_bin, rec->key);

    if (bin < q->first_bin || bin >= q->end_bin || it->slot >= p->n_slot ||
        slu_u128_cmp(rec->key, slu_pack_key(p->n_bin, bin, rec->key.lo)))
        return false;
    uint64_t first = p->ext->site[it->slot].first_bin;
    return bin >= first && bin - first < p->slot[it->slot].sum.bins &&
           it->len_tok <= p->cfg.capacity &&
           rec->n_byte == sizeof *it + slu_pack_pad8(it->id_len) +
                              slu_pack_pad8(it->len_tok * p->cfg.tok_bytes);
}

/* The next record to the end of run, with the domain's number here. */
static int take_record(struct source *s, struct slu_err *err)
{
    struct slu_pack_parts *q = s->p->ext->parts;
    struct slu_rec rec;
    uint64_t head[sizeof rec / 8];
    int rc = slu_workfile_get(s->file, sizeof rec / 8, head, err);

    if (rc)
        return rc;
    memcpy(&rec, head, sizeof rec);
    if (rec.n_byte < sizeof(struct slu_pack_wait) || rec.n_byte % 8 ||
        rec.n_byte / 8 > slu_workfile_left(s->file))
        return slu_workfile_damaged(s->file, err);
    rc = slu_buf_reserve(&s->run, slu_rec_size(rec.n_byte), err);
    if (rc)
        return rc;
    uint64_t *at = (uint64_t *)(void *)(s->run.data + s->run.len);
    memcpy(at, &rec, sizeof rec);
    rc = slu_workfile_get(s->file, rec.n_byte / 8, at + sizeof rec / 8, err);
    if (rc)
        return rc;
    struct slu_pack_wait *it = (struct slu_pack_wait *)(void *)(at + sizeof rec / 8);
    if (!is_item(s, &rec, it))
        return slu_workfile_damaged(s->file, err);
    rc = slu_workfile_domain(s->file, &s->stream, it->domain, &it->domain, err);
    s->run.len += slu_rec_size(rec.n_byte);
    slu_count_add(&q->work, (struct slu_count){it->offset == 0, 1, it->len_tok});
    return rc;
}

static int take_section(struct source *s, struct slu_err *err)
{
    struct slu_sorter *to = s->p->ext->sorter;
    int rc =
        slu_workfile_begin(s->file, SCATTER_RANGES + s->p->ext->parts->ph.part, err);

    slu_buf_clear(&s->run);
    while (!rc && slu_workfile_left(s->file)) {
        rc = take_record(s, err);
        if (!rc && s->run.len >= RUN_BYTE) {
            rc = slu_sorter_add_run(to, s->run.data, s->run.len, err);
            slu_buf_clear(&s->run);
        }
    }
    if (!rc && s->run.len)
        rc = slu_sorter_add_run(to, s->run.data, s->run.len, err);
    return rc ? rc : slu_workfile_end(s->file, err);
}

/* It has the ranges that are gathered, and a stream like the first part's. */
static int check_file(struct source *s, uint64_t part, struct slu_header *first,
                      struct slu_err *err)
{
    const struct slu_pack_phase *ph = &s->p->ext->parts->ph;
    uint64_t n_range = slu_workfile_head(s->file)->count[N_RANGE];

    if (n_range != ph->of)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: has %llu ranges, and this is --part %llu/%llu",
                        slu_workfile_path(s->file), (unsigned long long)n_range,
                        (unsigned long long)ph->part, (unsigned long long)ph->of);
    if (slu_workfile_n_section(s->file) != SCATTER_RANGES + n_range)
        return slu_workfile_damaged(s->file, err);
    int rc = slu_workfile_get_stream(s->file, SCATTER_STREAM, s->p->cfg.names,
                                     part == 0, &s->stream, err);
    if (!rc && part == 0)
        return slu_header_copy(first, &s->stream.header, err);
    if (!rc && slu_header_compatible(first, &s->stream.header, err))
        rc = slu_err_at(err, "%s", slu_workfile_path(s->file));
    return rc;
}

static int take_file(struct slu_packing *p, uint64_t part, struct slu_header *first,
                     struct slu_buf *run, struct slu_err *err)
{
    const struct slu_pack_parts *q = p->ext->parts;
    struct source s = {.p = p, .run = *run};
    int rc = slu_pack_phase_open(&q->ph, SLU_WORKFILE_PACK_SCATTER, part, q->n_part,
                                 &q->plan, &s.file, err);

    slu_header_init(&s.stream.header);
    if (!rc)
        rc = check_file(&s, part, first, err);
    if (!rc) {
        const uint64_t *count = slu_workfile_head(s.file)->count;
        p->id_byte += count[N_ID_BYTE];
        if (count[LONGEST_ID] > p->longest_id)
            p->longest_id = count[LONGEST_ID];
        rc = take_section(&s, err);
    }
    slu_workfile_stream_release(&s.stream);
    slu_workfile_free(s.file);
    *run = s.run;
    return rc;
}

/* ---- all of them ---- */

int slu_pack_gather_new(struct slu_packing **out, const struct slu_packing_cfg *cfg,
                        const struct slu_pack_phase *ph, struct slu_count *work,
                        struct slu_err *err)
{
    struct slu_workfile *plan = NULL;
    struct slu_packing *p = NULL;
    struct slu_header first;
    struct slu_buf run = SLU_BUF_INIT;
    int rc = slu_pack_phase_begin(&p, cfg, ph, &plan, err);

    slu_header_init(&first);
    *out = NULL;
    slu_workfile_free(plan);
    if (rc)
        return rc;
    struct slu_pack_parts *q = p->ext->parts;
    q->first_bin = q->next_bin = slu_pack_range_bin(p->n_bin, ph->part, ph->of);
    q->end_bin = slu_pack_range_bin(p->n_bin, ph->part + 1, ph->of);
    for (uint64_t i = 0; i < q->n_part && !rc; i++)
        rc = take_file(p, i, &first, &run, err);
    slu_buf_release(&run);
    slu_header_release(&first);
    if (!rc)
        rc = slu_pack_ext_seal(p->ext, err);
    slu_pack_phase(p, "write", NULL);
    *work = q->work;
    if (rc)
        slu_packing_free(p);
    else
        *out = p;
    return rc;
}

static int lacks(const struct slu_packing *p, struct slu_err *err)
{
    return slu_fail(err, SLU_E_MISMATCH,
                    "%s: the scatter files lack pieces that the plan has; remove them "
                    "and run --phase scatter again",
                    p->ext->parts->ph.work);
}

int slu_pack_gather_check(struct slu_packing *p, struct slu_u128 key, uint64_t n,
                          struct slu_err *err)
{
    const struct slu_pack_ext *x = p->ext;
    uint64_t bin = slu_pack_bin_of(p->n_bin, key);
    bool whole = bin == x->parts->next_bin++ && n == x->interval[x->at_interval].items;

    return whole ? SLU_OK : lacks(p, err);
}

int slu_pack_gather_end(const struct slu_packing *p, struct slu_err *err)
{
    const struct slu_pack_parts *q = p->ext->parts;

    return q->next_bin == q->end_bin ? SLU_OK : lacks(p, err);
}
