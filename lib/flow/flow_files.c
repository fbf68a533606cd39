/* flow_files.c - the files of the work folder: checks the inputs of a job, and writes
 * its file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/flow/flow_private.h"
#include "lib/stream/stream_private.h"

/* ---- names ---- */

const struct slu_stage *slu_stage_named(const struct slu_flow_spec *spec,
                                        const char *name)
{
    for (unsigned i = 0; i < spec->n_stage; i++)
        if (!strcmp(spec->stage[i].name, name))
            return &spec->stage[i];
    return NULL;
}

/* Number of files of a stage; 0: one file without a number. */
static uint64_t files_of(const struct slu_flow *f, const struct slu_stage *s)
{
    return s->flags & SLU_STAGE_ONE      ? 0
           : s->flags & SLU_STAGE_RANGES ? f->n_range
                                         : f->n_part;
}

int slu_flow_path(const struct slu_flow *f, const struct slu_stage *s, uint64_t i,
                  char **path, struct slu_err *err)
{
    return slu_work_path(f->job->work, s->name, i, files_of(f, s), path, err);
}

int slu_flow_record(struct slu_flow *f, struct slu_err *err)
{
    const struct slu_flow_spec *spec = f->cfg->spec;
    const struct slu_made none = {.program = spec->name};
    int rc = slu_made_copy(&f->record, f->cfg->made ? f->cfg->made : &none, err);

    return rc || !spec->facts ? rc : spec->facts(f->cfg->ctx, &f->record, err);
}

/* The record of the stages up to s, as text with a NUL. */
static int put_record(const struct slu_flow *f, const struct slu_stage *s,
                      struct slu_buf *t, struct slu_err *err)
{
    struct slu_made m = f->record;
    int rc = slu_buf_append(t, "{", 1, err);

    m.stage = s->name;
    if (!rc)
        rc = slu_made_put(&m, (unsigned)slu_stage_number(f->cfg->spec, s), t, err);
    return rc ? rc : slu_buf_append(t, "}", 2, err);
}

/* Compares the file, of stage s, with the record of this run; own: it is the job's. */
static int match(const struct slu_flow *f, const struct slu_stage *s,
                 const struct slu_workfile *file, bool own, struct slu_err *err)
{
    const struct slu_workfile_head *is = slu_workfile_head(file);
    struct slu_buf now = SLU_BUF_INIT;
    char text[512];
    bool differs = false;
    int rc = put_record(f, s, &now, err);

    if (!rc)
        rc = slu_made_compare(is->param, (const char *)now.data, text, sizeof text,
                              &differs, err);
    slu_buf_release(&now);
    if (!rc && !differs &&
        memcmp(is->fingerprint, f->header.fingerprint, sizeof is->fingerprint)) {
        differs = true;
        snprintf(text, sizeof text,
                 "was made with another tokenizer, so its ids mean something else");
    }
    if (!rc && !differs && own && slu_flow_ranged(f, s) &&
        is->count[N_RANGE] != f->n_range) {
        differs = true;
        snprintf(text, sizeof text, "was made with --ranges=%llu, now --ranges=%llu",
                 (unsigned long long)is->count[N_RANGE],
                 (unsigned long long)f->n_range);
    }
    if (rc || !differs)
        return rc;
    rc = slu_fail(err, SLU_E_MISMATCH, "%s: %s; remove it%s%s%s",
                  slu_workfile_path(file), text, own ? "" : " and run stage ",
                  own ? "" : s->name, own ? "" : " again");
    return own ? slu_advise(err, SLU_ADVISE_FORCE, rc) : rc;
}

static struct slu_workfile_head head_of(const struct slu_flow *f,
                                        const struct slu_stage *s, uint64_t i)
{
    struct slu_workfile_head h = {.kind = SLU_WORKFILE_FLOW, .of = files_of(f, s)};

    h.part = h.of ? i : 0;
    memcpy(h.fingerprint, f->header.fingerprint, sizeof h.fingerprint);
    return h;
}

/* Opens file i of a stage, without checking how the file was made. */
int slu_flow_open(const struct slu_flow *f, const struct slu_stage *s, uint64_t i,
                  struct slu_workfile **file, struct slu_err *err)
{
    const struct slu_workfile_head h = head_of(f, s, i);

    return slu_work_open(f->job->work, s->name, &h, file, err);
}

int slu_flow_reopen(const struct slu_flow *f, const struct slu_stage *s, uint64_t i,
                    struct slu_workfile **file, struct slu_err *err)
{
    const struct slu_flow_from *from = &f->from[slu_stage_number(f->cfg->spec, s)];
    const uint64_t number = from->first + i;
    int rc = slu_flow_open(f, s, number, file, err);

    if (!rc && slu_u128_cmp(slu_workfile_id(*file), from->file[i].id)) {
        rc = slu_fail(err, SLU_E_MISMATCH, "%s: changed while it was read",
                      slu_workfile_path(*file));
        slu_workfile_free(*file);
        *file = NULL;
    }
    return rc;
}

/* ---- inputs of files ---- */

static int other_files(const struct slu_workfile *file, struct slu_err *err)
{
    return slu_fail(err, SLU_E_MISMATCH,
                    "%s: was made from other files than the ones here now; remove it "
                    "and run its stage again",
                    slu_workfile_path(file));
}

/* Records that the files of stage i have this mix; if a mix is already known, both must
 * agree. */
static int learn(struct slu_flow *f, size_t i, struct slu_u128 mix,
                 const struct slu_workfile *file, struct slu_err *err)
{
    const struct slu_u128 none = {0, 0};

    if (!slu_u128_cmp(mix, none))
        return SLU_OK;
    if (!slu_u128_cmp(f->made[i], none))
        f->made[i] = mix;
    return slu_u128_cmp(f->made[i], mix) ? other_files(file, err) : SLU_OK;
}

/* Number of stages that may have left files: up to the last stage that writes
 * tables. */
static unsigned made_stages(const struct slu_flow_spec *spec)
{
    unsigned n = spec->n_stage;

    while (!spec->stage[n - 1].n_out || spec->stage[n - 1].flags & SLU_STAGE_HERE)
        n--;
    return n;
}

static int read_made(struct slu_flow *f, struct slu_workfile *file, struct slu_err *err)
{
    const unsigned n = made_stages(f->cfg->spec);
    uint64_t v[2];
    int rc = slu_workfile_len(file, SEC_MADE) == 2 * (uint64_t)n
                 ? slu_workfile_begin(file, SEC_MADE, err)
                 : slu_workfile_damaged(file, err);

    for (unsigned i = 0; i < n && !rc; i++) {
        rc = slu_workfile_get(file, 2, v, err);
        if (!rc)
            rc = learn(f, i, (struct slu_u128){v[0], v[1]}, file, err);
    }
    return rc ? rc : slu_workfile_end(file, err);
}

/* Reads the row of a part. */
static int read_part(const struct slu_flow *f, const struct slu_stage *of,
                     uint64_t part, uint64_t v[PART], struct slu_err *err)
{
    struct slu_workfile *file = NULL;
    int rc = slu_flow_open(f, of, 0, &file, err);

    if (!rc)
        rc = slu_workfile_read(file, SEC_PARTS, part * PART, PART, v, err);
    if (!rc && v[PART_HASH] != slu_hash64(v, PART_HASH * 8))
        rc = slu_workfile_damaged(file, err);
    slu_workfile_free(file);
    return rc;
}

/* Checks that the part's file of the first stage is the file that all later files were
 * made from. */
static int check_part(const struct slu_flow *f, const struct slu_stage *one,
                      const struct slu_workfile *file, struct slu_err *err)
{
    struct slu_u128 id = slu_workfile_id(file);
    uint64_t v[PART] = {0};
    int rc = read_part(f, one, f->job->part, v, err);

    if (!rc && (v[PART_ID] != id.lo || v[PART_ID + 1] != id.hi))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: differs from the file that the %s was made from; remove the "
                      "%s and run stage %s again",
                      slu_workfile_path(file), one->name, one->name, one->name);
    return rc;
}

static int note_part(struct slu_flow *f, uint64_t i, const struct slu_workfile *file,
                     struct slu_err *err)
{
    const struct slu_workfile_head *h = slu_workfile_head(file);
    const struct slu_u128 id = slu_workfile_id(file);
    uint64_t *v = f->part + i * PART;

    v[PART_ID] = id.lo;
    v[PART_ID + 1] = id.hi;
    v[PART_SEQUENCES] = h->count[N_SEQUENCE];
    v[PART_TOKENS] = h->count[N_TOKEN];
    v[PART_STREAM] = h->inputs.lo;
    v[PART_STREAM + 1] = h->inputs.hi;
    v[PART_SPAN] = h->count[N_SPAN];
    v[PART_HASH] = slu_hash64(v, PART_HASH * 8);
    f->base[i + 1] = f->base[i] + v[PART_SPAN];
    return v[PART_SPAN] < SLU_LOCAL && f->base[i + 1] < SLU_LOCAL
               ? SLU_OK
               : slu_workfile_damaged(file, err);
}

/* ---- all files of a stage ---- */

/* Whether a stage without an input stream writes a stream, or a set, from the files of
 * this stage. */
static bool gives_vocab(const struct slu_flow *f, const struct slu_stage *s)
{
    const struct slu_flow_spec *spec = f->cfg->spec;

    for (const struct slu_stage *p = spec->stage; p < spec->stage + spec->n_stage; p++)
        for (unsigned k = 0; k < p->n_in; k++)
            if (slu_stage_of(spec, p->in[k].table) == s &&
                !(p->flags & SLU_STAGE_READS) &&
                p->flags & (SLU_STAGE_WRITES | SLU_STAGE_SET))
                return true;
    return false;
}

static int read_names(struct slu_flow *f, const struct slu_stage *s,
                      struct slu_flow_file *to, bool first, struct slu_workfile *file,
                      struct slu_err *err)
{
    bool vocab = first && !f->cfg->reader && gives_vocab(f, s);
    int rc = slu_workfile_get_stream(file, SEC_STREAM, f->names, &to->names, err);

    if (!rc && vocab)
        rc = slu_workfile_get_vocab(file, SEC_VOCAB, to->names.header.vocab_size,
                                    f->names, err);
    if (!rc && slu_header_compatible(&f->header, &to->names.header, err))
        rc = slu_err_at(err, "%s", slu_workfile_path(file));
    return rc;
}

static int check_ranges(const struct slu_flow *f, const struct slu_workfile *file,
                        struct slu_err *err)
{
    uint64_t is = slu_workfile_head(file)->count[N_RANGE];

    if (is == f->n_range)
        return SLU_OK;
    return slu_fail(err, SLU_E_MISMATCH,
                    "%s: has %llu ranges, so part %llu/%llu does not exist",
                    slu_workfile_path(file), (unsigned long long)is,
                    (unsigned long long)f->job->part, (unsigned long long)f->job->of);
}

/* Checks that ids mean the same in all parts, beyond the tokenizer's fingerprint, and
 * that all were made by the same programs with the same options. */
static int check_alike(struct slu_flow *f, const struct slu_workfile *file,
                       struct slu_err *err)
{
    const uint64_t *is = slu_workfile_head(file)->count;

    f->ids = f->ids ? f->ids : is[N_IDS];
    f->way = f->way ? f->way : is[N_WAY];
    if (f->ids == is[N_IDS] && f->way == is[N_WAY])
        return SLU_OK;
    if (f->ids == is[N_IDS])
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: its stream was made with other options than that of "
                        "another part, as inspect shows of both; make all parts in "
                        "one way",
                        slu_workfile_path(file));
    return slu_fail(
        err, SLU_E_MISMATCH,
        "%s: its stream has other special ids or ids of another width than "
        "the streams of the other parts, or has masks where they have none; "
        "make all parts in one way",
        slu_workfile_path(file));
}

/* Bytes in a file of stage s that the job reads. */
static uint64_t in_reach(const struct slu_flow *f, const struct slu_stage *s,
                         const struct slu_workfile *file)
{
    uint64_t sum = 0, first, n, off_byte, n_byte;
    struct slu_u128 hash;

    for (unsigned k = 0; k < f->stage->n_in; k++) {
        const struct slu_stage_input *in = &f->stage->in[k];
        if (slu_stage_of(f->cfg->spec, in->table) != s || !slu_flow_has(f, in->table))
            continue;
        slu_flow_sections(f, in->table, &first, &n);
        for (uint64_t i = 0; i < n; i++) {
            slu_workfile_extent(file, first + i, &off_byte, &n_byte, &hash);
            if (in->reach != SLU_READ_RANGE || i == f->job->part)
                sum += n_byte;
        }
    }
    return sum;
}

static int look_at(struct slu_flow *f, const struct slu_stage *s, uint64_t i,
                   struct slu_err *err)
{
    struct slu_flow_from *from = &f->from[slu_stage_number(f->cfg->spec, s)];
    const struct slu_stage *of = slu_flow_parts_of(f);
    struct slu_workfile *file = NULL;
    int rc = slu_flow_open(f, s, from->first + i, &file, err);

    if (!rc)
        rc = match(f, s, file, false, err);
    if (!rc && slu_flow_ranged(f, s))
        rc = check_ranges(f, file, err);
    if (!rc)
        rc = check_alike(f, file, err);
    if (!rc)
        rc = read_made(f, file, err);
    if (!rc && slu_workfile_n_section(file) != slu_flow_sections_of(f, s))
        rc = slu_workfile_damaged(file, err);
    if (!rc) {
        from->file[i].id = slu_workfile_id(file);
        f->reach_byte += in_reach(f, s, file);
        if (s->flags & SLU_STAGE_NAMES)
            rc = read_names(f, s, &from->file[i], i == 0, file, err);
    }
    if (!rc && f->part && s == slu_stage_sees(f->cfg->spec, f->stage))
        rc = note_part(f, i, file, err);
    if (!rc && f->cfg->reader && s == f->cfg->spec->stage) {
        f->want = slu_workfile_head(file)->inputs;
        f->want_of = s;
        rc = of && s == slu_stage_parts(f->cfg->spec, of) ? check_part(f, of, file, err)
                                                          : SLU_OK;
    }
    slu_workfile_free(file);
    return rc;
}

static int look_at_all(struct slu_flow *f, const struct slu_stage *s, bool own,
                       struct slu_err *err)
{
    size_t number = slu_stage_number(f->cfg->spec, s);
    struct slu_flow_from *from = &f->from[number];
    uint64_t n = files_of(f, s);
    struct slu_u128 mix = {0, 0}, none = {0, 0};
    int rc = SLU_OK;

    from->first = own ? f->job->part : 0;
    from->n = own || !n ? 1 : n;
    from->file = calloc(from->n, sizeof *from->file);
    if (!from->file)
        rc = slu_fail_nomem(err, from->n * sizeof *from->file);
    for (uint64_t i = 0; i < from->n && from->file; i++)
        slu_header_init(&from->file[i].names.header);
    for (uint64_t i = 0; i < from->n && !rc; i++) {
        rc = look_at(f, s, i, err);
        mix = slu_workfile_mix(mix, from->file[i].id);
    }
    if (rc || own)
        return rc;
    if (slu_u128_cmp(f->made[number], none) && slu_u128_cmp(f->made[number], mix))
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: later files were made from other %s files; remove those "
                        "later files and run their stages again",
                        f->job->work, s->name);
    f->made[number] = mix;
    return SLU_OK;
}

/* Requires the stream that the first stage read; the files of the first stage need not
 * exist. */
static int want_stream(struct slu_flow *f, const struct slu_stage *of,
                       struct slu_err *err)
{
    uint64_t v[PART] = {0};
    int rc = read_part(f, of, f->job->part, v, err);

    f->want = (struct slu_u128){v[PART_STREAM], v[PART_STREAM + 1]};
    f->want_of = f->cfg->spec->stage;
    return rc;
}

/* Copies the rows of all parts from an input. */
static int copy_parts(struct slu_flow *f, const struct slu_stage *of,
                      struct slu_err *err)
{
    int rc = SLU_OK;

    for (uint64_t i = 0; i < f->n_part && !rc; i++) {
        uint64_t *v = f->part + i * PART;
        rc = read_part(f, of, i, v, err);
        f->base[i + 1] = f->base[i] + v[PART_SPAN];
    }
    return rc;
}

int slu_flow_look(struct slu_flow *f, struct slu_err *err)
{
    const struct slu_flow_spec *spec = f->cfg->spec;
    const struct slu_stage *of = slu_flow_parts_of(f);
    int rc = SLU_OK;

    const struct slu_stage *sees = slu_stage_sees(spec, f->stage);

    if (sees || slu_stage_parts(spec, f->stage)) {
        f->part = calloc(f->n_part, PART * sizeof *f->part);
        f->base = calloc(f->n_part + 1, sizeof *f->base);
        if (!f->part || !f->base)
            return slu_fail_nomem(err, f->n_part * PART * sizeof *f->part);
    }
    for (unsigned k = 0; k < f->stage->n_in && !rc; k++) {
        const struct slu_stage *s = slu_stage_of(spec, f->stage->in[k].table);
        if (slu_flow_has(f, f->stage->in[k].table) &&
            !f->from[slu_stage_number(spec, s)].file)
            rc = look_at_all(f, s, f->stage->in[k].reach == SLU_READ_PART, err);
    }
    if (!rc && f->part && !sees)
        rc = copy_parts(f, of, err);
    return !rc && of && f->cfg->reader && !f->want_of ? want_stream(f, of, err) : rc;
}

/* ---- the job's own file ---- */

static int match_own(struct slu_flow *f, struct slu_workfile *file, struct slu_err *err)
{
    const struct slu_workfile_head want = head_of(f, f->stage, f->job->part);
    int rc = slu_workfile_match(file, &want, err);

    if (!rc)
        rc = match(f, f->stage, file, true, err);
    return rc ? rc : read_made(f, file, err);
}

int slu_flow_done(struct slu_flow *f, bool *done, struct slu_u128 *stream,
                  struct slu_err *err)
{
    struct slu_err why = SLU_ERR_INIT;
    struct slu_workfile *file;
    int rc = slu_flow_path(f, f->stage, f->job->part, &f->path, err);

    *done = false;
    if (rc || f->job->force)
        return rc;
    rc = slu_workfile_open(&file, f->path, SLU_WORKFILE_FLOW, &why);
    if (rc == SLU_E_IO && why.sys_errno == ENOENT)
        return SLU_OK;
    if (!rc)
        rc = match_own(f, file, &why);
    if (rc && err)
        *err = why;
    *done = !rc && !f->job->again;
    if (!rc)
        *stream = slu_workfile_head(file)->inputs;
    slu_workfile_free(file);
    return rc;
}

static int put_tables(struct slu_flow *f, struct slu_workfile_out *o, uint64_t *longest,
                      struct slu_err *err)
{
    int rc = SLU_OK;

    for (unsigned k = 0; k < f->stage->n_out && !rc; k++) {
        unsigned number = f->stage->out[k];
        uint64_t first, n;
        if (!slu_flow_has(f, number))
            continue;
        slu_flow_sections(f, number, &first, &n);
        rc = slu_table_write(f->table[number], o, first, n, f->cell[number],
                             f->cfg->ctx, err);
        uint64_t here = slu_table_longest(f->table[number]);
        *longest = here > *longest ? here : *longest;
    }
    return rc;
}

static int put_beside(struct slu_flow *f, struct slu_workfile_out *o,
                      struct slu_err *err)
{
    int rc = SLU_OK;

    for (unsigned i = 0; i < made_stages(f->cfg->spec) && !rc; i++) {
        const uint64_t v[] = {f->made[i].lo, f->made[i].hi};
        rc = slu_workfile_put(o, v, 2, err);
    }
    if (!rc && f->part && slu_stage_parts(f->cfg->spec, f->stage)) {
        rc = slu_workfile_section(o, SEC_PARTS, err);
        if (!rc)
            rc = slu_workfile_put(o, f->part, f->n_part * PART, err);
    }
    if (!rc && f->stage->flags & SLU_STAGE_NAMES) {
        rc = slu_workfile_section(o, SEC_STREAM, err);
        if (!rc)
            rc = slu_workfile_put_stream(o, &f->header, f->names, err);
        if (!rc && gives_vocab(f, f->stage)) {
            rc = slu_workfile_section(o, SEC_VOCAB, err);
            if (!rc)
                rc = slu_workfile_put_vocab(o, f->names, err);
        }
    }
    return rc;
}

int slu_flow_begin(struct slu_flow *f, struct slu_err *err)
{
    int rc = slu_workfile_create(&f->out, f->path, SLU_WORKFILE_FLOW, err);

    if (!rc)
        rc = put_beside(f, f->out, err);
    return rc ? rc : slu_workfile_section(f->out, SEC_TABLES, err);
}

int slu_flow_write(struct slu_flow *f, struct slu_err *err)
{
    struct slu_workfile_head head = head_of(f, f->stage, f->job->part);
    struct slu_buf record = SLU_BUF_INIT;
    int rc = f->out ? SLU_OK : slu_flow_begin(f, err);

    if (!rc)
        rc = put_tables(f, f->out, &head.count[N_LONGEST], err);
    if (!rc)
        rc = put_record(f, f->stage, &record, err);
    if (rc) {
        slu_buf_release(&record);
        return rc;
    }
    head.param = (const char *)record.data;
    head.inputs = f->stream;
    head.count[N_SEQUENCE] = f->report->in.n.sequences;
    head.count[N_TOKEN] = f->report->in.n.tokens;
    head.count[N_RANGE] = slu_flow_ranged(f, f->stage) ? f->n_range : 0;
    head.count[N_SPAN] = f->span ? f->span : f->report->in.n.sequences;
    head.count[N_IDS] = f->ids;
    head.count[N_WAY] = f->way;
    struct slu_workfile_out *o = f->out;
    f->out = NULL;
    rc = slu_workfile_close(o, &head, slu_flow_sections_of(f, f->stage), err);
    slu_buf_release(&record);
    return rc;
}

/* ---- for programs ---- */

bool slu_flow_there(const struct slu_flow_spec *spec, const struct slu_flow_job *job)
{
    const struct slu_flow_cfg cfg = {.spec = spec};
    const struct slu_flow f = {.cfg = &cfg,
                               .job = job,
                               .n_part = job->of,
                               .n_range = job->ranges ? job->ranges : job->of};
    const struct slu_stage *s = slu_stage_named(spec, job->stage);
    struct slu_err err = SLU_ERR_INIT;
    struct slu_workfile *file = NULL;
    bool there = s && s->n_out && !slu_flow_open(&f, s, job->part, &file, &err) &&
                 (!slu_flow_ranged(&f, s) ||
                  slu_workfile_head(file)->count[N_RANGE] == f.n_range);

    slu_workfile_free(file);
    return there;
}
