/* flow.c - a job from its beginning to its end, and what stages call. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/flow/flow_private.h"

enum { SHARES = 64, SPARE_FILES = 64 };

/* ---- what a stage knows ---- */

uint64_t slu_flow_part(const struct slu_flow *f)
{
    return f->job->part;
}

uint64_t slu_flow_parts(const struct slu_flow *f)
{
    return f->n_part;
}

uint64_t slu_flow_ranges(const struct slu_flow *f)
{
    return f->n_range;
}

void slu_flow_cut(struct slu_flow *f, unsigned table, slu_table_cell *cell)
{
    f->cell[table] = cell;
}

static struct slu_flow_from *from_of(const struct slu_flow *f, unsigned table)
{
    const struct slu_flow_spec *spec = f->cfg->spec;

    return &f->from[slu_stage_number(spec, slu_stage_of(spec, table))];
}

int slu_flow_damaged(const struct slu_flow *f, unsigned table, uint64_t part,
                     struct slu_err *err)
{
    const struct slu_stage *s = slu_stage_of(f->cfg->spec, table);
    char *path;
    int rc = slu_flow_path(f, s, part, &path, err);

    if (!rc)
        rc = slu_fail(err, SLU_E_CHECKSUM,
                      "%s: damaged; remove it and run its phase again", path);
    free(path);
    return rc;
}

int slu_flow_domain(const struct slu_flow *f, unsigned table, uint64_t part,
                    uint64_t number, uint32_t *here, struct slu_err *err)
{
    const struct slu_flow_from *from = from_of(f, table);
    const struct slu_workfile_stream *names = &from->file[part - from->first].names;

    *here = SLU_NO_DOMAIN;
    if (number == SLU_NO_DOMAIN)
        return SLU_OK;
    if (number >= names->n_domain)
        return slu_flow_damaged(f, table, part, err);
    *here = names->domain[number];
    return SLU_OK;
}

int slu_flow_other_stream(const struct slu_flow *f, struct slu_err *err)
{
    char *path;
    int rc = slu_flow_path(f, f->want_of, f->job->part, &path, err);

    if (!rc)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "the stream is not the one that %s was made from; remove that, "
                      "and begin with --phase %s again",
                      path, f->want_of->name);
    free(path);
    return rc;
}

/* ---- tables ---- */

static struct slu_table_cfg table_cfg(const struct slu_flow *f, unsigned table)
{
    const long most = sysconf(_SC_OPEN_MAX);

    return (struct slu_table_cfg){
        .budget_byte =
            f->cfg->budget_byte * f->cfg->spec->table[table].share / f->share,
        .tmpdir = f->cfg->tmpdir,
        .n_threads = f->cfg->n_threads,
        .max_file =
            most > 2 * SPARE_FILES ? (unsigned)(most - SPARE_FILES) : SPARE_FILES,
    };
}

/* Over files a job has what it reads and writes, and the budget is theirs. */
static void share_memory(struct slu_flow *f)
{
    const struct slu_table_spec *table = f->cfg->spec->table;

    f->share = f->stage->share;
    for (unsigned k = 0; k < f->stage->n_in; k++)
        f->share += table[f->stage->in[k].table].share;
    for (unsigned k = 0; k < f->stage->n_out; k++)
        f->share += table[f->stage->out[k]].share;
    f->share = f->share ? f->share : SHARES;
}

struct slu_table *slu_flow_out(struct slu_flow *f, unsigned table)
{
    return f->table[table];
}

static void close_table(struct slu_flow *f, unsigned table)
{
    if (f->table[table])
        f->report->spilled_byte += slu_table_spilled(f->table[table]);
    slu_table_free(f->table[table]);
    f->table[table] = NULL;
}

static int add_file(struct slu_flow *f, unsigned table, uint64_t i, uint64_t first,
                    uint64_t n, struct slu_err *err)
{
    struct slu_workfile *file = NULL;
    int rc = slu_flow_reopen(f, slu_stage_of(f->cfg->spec, table), i, &file, err);

    if (!rc)
        rc = slu_table_add(f->table[table], file, from_of(f, table)->first + i, first,
                           n, slu_workfile_head(file)->count[N_LONGEST], err);
    slu_workfile_free(file);
    return rc;
}

/* Files [a, b) of the table's stage, of each the sections [first, first + n). */
static int over_files(struct slu_flow *f, unsigned table, uint64_t a, uint64_t b,
                      uint64_t first, uint64_t n, struct slu_err *err)
{
    const struct slu_table_cfg cfg = table_cfg(f, table);
    int rc;

    close_table(f, table);
    rc = slu_table_over(&f->table[table], &f->cfg->spec->table[table], &cfg, err);
    for (uint64_t i = a; i < b && !rc; i++)
        rc = add_file(f, table, i, first, n, err);
    return rc ? rc : slu_table_begin(f->table[table], err);
}

int slu_flow_in(struct slu_flow *f, unsigned table, struct slu_table **t,
                struct slu_err *err)
{
    enum slu_reach reach = SLU_ALL;
    uint64_t first, n;

    for (unsigned k = 0; k < f->stage->n_in; k++)
        if (f->stage->in[k].table == table)
            reach = f->stage->in[k].reach;
    slu_flow_sections(f, table, &first, &n);
    if (reach == SLU_MINE) {
        first += f->job->part;
        n = 1;
    }
    int rc = over_files(f, table, 0, from_of(f, table)->n, first, n, err);
    *t = f->table[table];
    return rc;
}

int slu_flow_of_part(struct slu_flow *f, unsigned table, uint64_t part,
                     struct slu_table **t, struct slu_err *err)
{
    const uint64_t i = part - from_of(f, table)->first;
    uint64_t first, n;

    slu_flow_sections(f, table, &first, &n);
    int rc = over_files(f, table, i, i + 1, first, n, err);
    *t = f->table[table];
    return rc;
}

/* ---- the stream ---- */

int slu_flow_read(struct slu_flow *f, const struct slu_side_ops *ops, void *ctx,
                  struct slu_err *err)
{
    int rc = slu_stream_run_side(f->cfg->reader, ops, ctx, f->cfg->n_threads,
                                 f->cfg->n_slots, &f->report->in, err);

    if (!rc)
        rc = slu_reader_identity(f->cfg->reader, &f->stream, err);
    if (!rc && f->want_of && slu_u128_cmp(f->stream, f->want))
        rc = slu_flow_other_stream(f, err);
    return rc;
}

static int pass(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    (void)ctx, (void)b, (void)err;
    return SLU_OK;
}

/* Its file is there: is it of this stream? */
static int compare(struct slu_flow *f, struct slu_u128 stream, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {NULL, pass};
    struct slu_u128 is;
    int rc = slu_stream_run(f->cfg->reader, &ops, NULL, f->cfg->n_threads,
                            f->cfg->n_slots, &f->report->in, err);

    if (!rc)
        rc = slu_reader_identity(f->cfg->reader, &is, err);
    if (!rc && slu_u128_cmp(stream, is))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: was made from another stream; remove it, or use -f to make "
                      "it again",
                      f->path);
    return rc;
}

/* ---- a job ---- */

static int get_header(struct slu_flow *f, struct slu_err *err)
{
    struct slu_reader *r = f->cfg->reader;

    f->names = r ? slu_reader_names(r) : f->cfg->names;
    if (!r)
        return slu_flow_first_header(f, err);
    slu_reader_track(r);
    return slu_header_copy(&f->header, slu_reader_header(r), err);
}

static int init(struct slu_flow *f, struct slu_err *err)
{
    const struct slu_flow_spec *spec = f->cfg->spec;
    unsigned n = spec->n_stage, n_table = spec->n_table;

    slu_header_init(&f->header);
    f->made = calloc(n, sizeof *f->made);
    f->from = calloc(n, sizeof *f->from);
    f->table = calloc(n_table, sizeof(void *));
    f->cell = calloc(n_table, sizeof *f->cell);
    f->stage = slu_stage_named(spec, f->job->stage);
    return f->made && f->from && f->table && f->cell ? SLU_OK
                                                     : slu_fail_nomem(err, n * 64);
}

static void release(struct slu_flow *f)
{
    for (unsigned i = 0; f->table && i < f->cfg->spec->n_table; i++)
        close_table(f, i);
    for (unsigned i = 0; f->from && i < f->cfg->spec->n_stage; i++) {
        struct slu_flow_from *from = &f->from[i];
        for (uint64_t k = 0; from->file && k < from->n; k++)
            slu_workfile_stream_release(&from->file[k].names);
        free(from->file);
    }
    slu_header_release(&f->header);
    free(f->made);
    free(f->from);
    free(f->table);
    free(f->cell);
    free(f->part);
    free(f->path);
    free(f->param);
}

static int run(struct slu_flow *f, struct slu_err *err)
{
    int rc = SLU_OK;

    share_memory(f);
    for (unsigned k = 0; k < f->stage->n_out && !rc; k++) {
        unsigned table = f->stage->out[k];
        const struct slu_table_cfg cfg = table_cfg(f, table);
        rc = slu_table_new(&f->table[table], &f->cfg->spec->table[table], &cfg, err);
    }
    if (!rc && f->stage->flags & SLU_STAGE_WRITES)
        rc = f->cfg->open(f->cfg->ctx, err);
    if (!rc)
        rc = f->stage->run(f->cfg->ctx, f, err);
    return rc || !f->stage->n_out ? rc : slu_flow_write(f, err);
}

int slu_flow_stage(const struct slu_flow_cfg *cfg, const struct slu_flow_job *job,
                   struct slu_flow_report *r, struct slu_err *err)
{
    struct slu_flow f = {.cfg = cfg, .job = job, .report = r};
    struct slu_u128 stream = {0, 0};
    bool done = false;
    int rc = init(&f, err);

    *r = (struct slu_flow_report){.skipped = false};
    if (!rc)
        rc = slu_flow_shape(&f, err);
    if (!rc)
        rc = get_header(&f, err);
    if (!rc)
        rc = cfg->begin(cfg->ctx, &f.header, f.names, err);
    if (!rc)
        rc = slu_flow_look(&f, err);
    if (!rc && f.stage->n_out)
        rc = slu_flow_done(&f, &done, &stream, err);
    /* The manifest beside it says whether what is written is done. */
    r->skipped = done && !(f.stage->flags & SLU_STAGE_WRITES);
    if (!rc && !r->skipped)
        rc = run(&f, err);
    else if (!rc && cfg->reader)
        rc = compare(&f, stream, err);
    release(&f);
    return rc;
}
