/* flow.c - runs a job from beginning to end, and has the functions that stages call. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/flow/flow_private.h"

enum { SHARES = 64, SPARE_FILES = 64 };

/* ---- facts for stages ---- */

bool slu_flow_here(const struct slu_flow *f)
{
    return f->here;
}

void slu_flow_finished(struct slu_flow *f)
{
    f->finished = true;
}

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

void slu_flow_span(struct slu_flow *f, uint64_t n)
{
    f->span = n;
}

uint64_t slu_flow_own_byte(const struct slu_flow *f)
{
    const struct slu_flow_spec *spec = f->cfg->spec;
    uint64_t share = f->here ? SHARES : f->stage->share;

    for (unsigned i = 0; f->here && i < spec->n_table; i++)
        share -= f->table[i] ? spec->table[i].share : 0;
    return f->cfg->budget_byte * share / f->share;
}

uint64_t slu_flow_base(const struct slu_flow *f, uint64_t part)
{
    return f->base[part];
}

uint64_t slu_flow_total(const struct slu_flow *f)
{
    return f->base[f->n_part];
}

void slu_flow_spilled(struct slu_flow *f, uint64_t n_byte)
{
    f->report->spilled_byte += n_byte;
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
    int rc;

    if (f->here)
        return slu_fail(err, SLU_E_CHECKSUM, "%s: a temporary file is damaged",
                        f->cfg->tmpdir);
    rc = slu_flow_path(f, s, part, &path, err);
    if (!rc)
        rc = slu_work_damaged(path, err);
    free(path);
    return rc;
}

int slu_flow_domain(const struct slu_flow *f, unsigned table, uint64_t part,
                    uint64_t number, uint32_t *here, struct slu_err *err)
{
    const struct slu_flow_from *from = from_of(f, table);
    const struct slu_workfile_stream *names;

    *here = (uint32_t)number;
    if (f->here || number == SLU_NO_DOMAIN)
        return SLU_OK;
    names = &from->file[part - from->first].names;
    if (number >= names->n_domain)
        return slu_flow_damaged(f, table, part, err);
    *here = names->domain[number];
    return SLU_OK;
}

int slu_flow_other_stream(const struct slu_flow *f, struct slu_err *err)
{
    char *path;
    int rc;

    if (f->here)
        return slu_fail(err, SLU_E_CONSERVATION,
                        "internal error: a sequence that the stages found is not in "
                        "the stream; please "
                        "report it");
    rc = slu_flow_path(f, f->want_of, f->job->part, &path, err);
    if (!rc)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "the stream read differs from the one that %s was made from; "
                      "remove that file and begin again with stage %s",
                      path, f->want_of->name);
    free(path);
    return rc;
}

/* ---- tables ---- */

/* Whether a table of kind ROWS has a reader, in this process or in this job, that
 * accepts any order. */
static bool is_unsorted(const struct slu_flow *f, unsigned table)
{
    const struct slu_flow_spec *spec = f->cfg->spec;
    const struct slu_stage *s = f->here ? spec->stage : f->stage,
                           *end = f->here ? s + spec->n_stage : s + 1;
    bool any = false;

    for (; s < end; s++)
        for (unsigned k = 0; k < s->n_in; k++)
            any |= s->in[k].table == table && s->in[k].any_order;
    return any;
}

/* How many files a table may have open at once, given the limits of the system. */
static long open_files(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r))
        return 0;
    if (r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
    return sysconf(_SC_OPEN_MAX);
}

/* Whether rows of the table go to the job's file as they are put: the numbers of a
 * store, and the rows of the file's first table, unless the file begins with an order
 * or with the stream's names, which are known only at the end. */
static bool goes_straight(const struct slu_flow *f, unsigned table)
{
    const struct slu_table_spec *t = &f->cfg->spec->table[table];

    return !f->here && (t->kind == SLU_STORE ||
                        (t->kind == SLU_LIST && t->cut == SLU_CUT_NO && t->n_word &&
                         f->stage->n_out && table == f->stage->out[0] &&
                         !(f->stage->flags & SLU_STAGE_NAMES)));
}

static void note_read(void *ctx, uint64_t n_byte)
{
    struct slu_flow *f = ctx;

    f->read_byte += n_byte;
    f->cfg->progress(f->cfg->progress_ctx, f->read_byte, f->reach_byte);
}

static struct slu_table_cfg table_cfg(struct slu_flow *f, unsigned table)
{
    const long most = open_files();

    return (struct slu_table_cfg){
        .budget_byte =
            f->cfg->budget_byte * f->cfg->spec->table[table].share / f->share,
        .tmpdir = f->cfg->tmpdir,
        .n_threads = f->cfg->n_threads,
        .max_file =
            most > 2 * SPARE_FILES ? (unsigned)(most - SPARE_FILES) : SPARE_FILES,
        .n_cell = f->here ? 0 : slu_flow_cells(f, table),
        .cell = f->job->part,
        .base = f->base,
        .n_part = f->n_part,
        .unsorted = is_unsorted(f, table),
        .read = f->cfg->progress ? note_read : NULL,
        .read_ctx = f,
        .out = goes_straight(f, table) ? f->out : NULL,
    };
}

/* With files, a job shares the budget between its stage and the tables that it reads
 * and writes. */
static void share_memory(struct slu_flow *f)
{
    const struct slu_table_spec *table = f->cfg->spec->table;

    f->share = f->stage->share;
    for (unsigned k = 0; k < f->stage->n_in; k++)
        if (slu_flow_has(f, f->stage->in[k].table))
            f->share += table[f->stage->in[k].table].share;
    for (unsigned k = 0; k < f->stage->n_out; k++)
        if (slu_flow_has(f, f->stage->out[k]))
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

static int make_tables(struct slu_flow *f, struct slu_err *err)
{
    int rc = SLU_OK;

    for (unsigned k = 0; k < f->stage->n_out && !rc; k++) {
        const unsigned table = f->stage->out[k];
        const struct slu_table_cfg cfg = table_cfg(f, table);
        if (slu_flow_has(f, table))
            rc =
                slu_table_new(&f->table[table], &f->cfg->spec->table[table], &cfg, err);
    }
    return rc;
}

/* One process: whether no stage from this one on reads the table. */
static bool is_over(const struct slu_flow *f, unsigned table)
{
    const struct slu_flow_spec *spec = f->cfg->spec;

    for (const struct slu_stage *s = f->stage + 1; s < spec->stage + spec->n_stage; s++)
        for (unsigned k = 0; k < s->n_in; k++)
            if (s->in[k].table == table)
                return false;
    return true;
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

static int open_over(struct slu_flow *f, unsigned table, struct slu_err *err)
{
    const struct slu_table_cfg cfg = table_cfg(f, table);

    close_table(f, table);
    return slu_table_over(&f->table[table], &f->cfg->spec->table[table], &cfg, err);
}

/* Opens table over files [a, b) of its stage; from each file, sections [first, first +
 * n). */
static int over_files(struct slu_flow *f, unsigned table, uint64_t a, uint64_t b,
                      uint64_t first, uint64_t n, struct slu_err *err)
{
    int rc = open_over(f, table, err);

    for (uint64_t i = a; i < b && !rc; i++)
        rc = add_file(f, table, i, first, n, err);
    return rc ? rc : slu_table_begin(f->table[table], err);
}

int slu_flow_in(struct slu_flow *f, unsigned table, struct slu_table **t,
                struct slu_err *err)
{
    enum slu_reach reach = SLU_READ_ALL;
    uint64_t first, n;

    *t = f->table[table];
    if (f->here)
        return slu_table_begin(*t, err);
    for (unsigned k = 0; k < f->stage->n_in; k++)
        if (f->stage->in[k].table == table)
            reach = f->stage->in[k].reach;
    slu_flow_sections(f, table, &first, &n);
    if (reach == SLU_READ_RANGE) {
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

    if (f->here)
        return slu_flow_in(f, table, t, err);
    slu_flow_sections(f, table, &first, &n);
    int rc = over_files(f, table, i, i + 1, first, n, err);
    *t = f->table[table];
    return rc;
}

int slu_flow_of_cells(struct slu_flow *f, unsigned table, uint64_t from, uint64_t to,
                      struct slu_table **t, struct slu_err *err)
{
    uint64_t first, n;

    slu_flow_sections(f, table, &first, &n);
    int rc =
        over_files(f, table, 0, from_of(f, table)->n, first + from, to - from, err);
    *t = f->table[table];
    return rc;
}

int slu_flow_mine(struct slu_flow *f, unsigned table, struct slu_table **t,
                  struct slu_err *err)
{
    struct slu_workfile *file = NULL;
    uint64_t first, n;
    int rc = open_over(f, table, err);

    *t = f->table[table];
    slu_flow_sections(f, table, &first, &n);
    if (!rc)
        rc = slu_workfile_open(&file, f->path, SLU_WORKFILE_FLOW, err);
    if (!rc)
        rc = slu_table_add(*t, file, f->job->part, first, n,
                           slu_workfile_head(file)->count[N_LONGEST], err);
    slu_workfile_free(file);
    return rc ? rc : slu_table_begin(*t, err);
}

int slu_flow_next(struct slu_flow *f, unsigned table, uint64_t part,
                  struct slu_table *t, struct slu_row *row, struct slu_err *err)
{
    int rc = slu_table_next(t, row, err);

    return rc == SLU_EOF ? slu_flow_damaged(f, table, part, err) : rc;
}

int slu_flow_end(struct slu_flow *f, unsigned table, uint64_t part, struct slu_table *t,
                 struct slu_err *err)
{
    struct slu_row row;
    int rc = slu_table_next(t, &row, err);

    return rc == SLU_EOF ? SLU_OK : rc ? rc : slu_flow_damaged(f, table, part, err);
}

/* ---- a job ---- */

/* Of any version of the programs. */
static int hash_steps(const struct slu_header *h, uint64_t *hash, struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    int rc = SLU_OK;

    for (size_t i = 0; i < h->n_step && !rc; i++)
        rc = slu_buf_printf(&t, err, "%s %s\n%llu\n", h->step[i].program,
                            h->step[i].arguments, (unsigned long long)h->step[i].seed);
    *hash = slu_hash64(t.data, t.len) | 1;
    slu_buf_release(&t);
    return rc;
}

static int get_header(struct slu_flow *f, struct slu_err *err)
{
    struct slu_reader *r = f->cfg->reader;

    f->names = r ? slu_reader_names(r) : f->cfg->names;
    if (!r)
        return f->here ? SLU_OK : slu_flow_first_header(f, err);
    if (!f->here || f->cfg->again)
        slu_reader_track(r);
    int rc = slu_header_copy(&f->header, slu_reader_header(r), err);
    const uint64_t ids[] = {f->header.eos, f->header.bos, f->header.pad,
                            f->header.tok_bytes, f->header.masks};
    /* Without masks it is what files had before there were masks. */
    f->ids = slu_hash64(ids, sizeof ids - (f->header.masks ? 0 : sizeof *ids)) | 1;
    return rc ? rc : hash_steps(&f->header, &f->way, err);
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
    f->stage = f->here ? spec->stage : slu_stage_named(spec, f->job->stage);
    return f->made && f->from && f->table && f->cell ? SLU_OK
                                                     : slu_fail_nomem(err, n * 64);
}

static void release(struct slu_flow *f)
{
    for (unsigned i = 0; f->table && i < f->cfg->spec->n_table; i++)
        close_table(f, i);
    if (f->log)
        f->report->spilled_byte += slu_seqlog_spilled(f->log);
    slu_seqlog_free(f->log);
    for (unsigned i = 0; f->from && i < f->cfg->spec->n_stage; i++) {
        struct slu_flow_from *from = &f->from[i];
        for (uint64_t k = 0; from->file && k < from->n; k++)
            slu_workfile_stream_release(&from->file[k].names);
        free(from->file);
    }
    slu_workfile_abort(f->out);
    slu_header_release(&f->header);
    free(f->made);
    free(f->from);
    free(f->table);
    free(f->cell);
    free(f->part);
    free(f->base);
    free(f->path);
    slu_made_release(&f->record);
}

static int run(struct slu_flow *f, struct slu_err *err)
{
    int rc = SLU_OK;

    share_memory(f);
    for (unsigned k = 0; k < f->stage->n_out && !rc; k++)
        if (goes_straight(f, f->stage->out[k]))
            rc = slu_flow_begin(f, err);
    if (!rc)
        rc = make_tables(f, err);
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
        rc = slu_flow_record(&f, err);
    if (!rc)
        rc = slu_flow_look(&f, err);
    if (!rc && f.stage->n_out)
        rc = slu_flow_done(&f, &done, &stream, err);
    /* If the stage writes a stream, the manifest beside the stream decides whether it
     * is done. */
    r->skipped = done && !(f.stage->flags & SLU_STAGE_WRITES);
    if (!rc && !r->skipped)
        rc = run(&f, err);
    else if (!rc && cfg->reader)
        rc = slu_flow_compare(&f, stream, err);
    if (!rc && r->skipped && f.stage->done) {
        share_memory(&f);
        rc = f.stage->done(cfg->ctx, &f, err);
    }
    release(&f);
    return rc;
}

int slu_flow_inputs(const struct slu_flow_spec *spec, const struct slu_flow_job *job,
                    int (*each)(void *ctx, const char *folder, const char *prefix,
                                struct slu_err *err),
                    void *ctx, struct slu_err *err)
{
    const struct slu_stage *s = slu_stage_named(spec, job->stage), *before = NULL;
    int rc = SLU_OK;

    for (unsigned k = 0; k < s->n_in && !rc; k++) {
        const struct slu_stage *of = slu_stage_of(spec, s->in[k].table);
        struct slu_buf name = SLU_BUF_INIT;
        if (of == before || spec->table[s->in[k].table].cut == SLU_CUT_HERE)
            continue;
        before = of;
        rc = s->in[k].reach == SLU_READ_PART
                 ? slu_buf_printf(&name, err, "%s.%llu-of-%llu", of->name,
                                  (unsigned long long)job->part,
                                  (unsigned long long)job->of)
                 : slu_buf_printf(&name, err, "%s%s", of->name,
                                  of->flags & SLU_STAGE_ONE ? "" : ".");
        if (!rc)
            rc = each(ctx, job->work, (const char *)name.data, err);
        slu_buf_release(&name);
    }
    return rc;
}

/* Runs the current stage, in one process. */
static int run_here(struct slu_flow *f, struct slu_err *err)
{
    int rc = make_tables(f, err);

    if (!rc)
        rc = f->stage->run(f->cfg->ctx, f, err);
    for (unsigned i = 0; i < f->cfg->spec->n_table; i++)
        if (is_over(f, i))
            close_table(f, i);
    if (f->stage == f->cfg->spec->stage)
        f->base[1] = f->span ? f->span : f->report->in.n.sequences;
    f->stage++;
    return rc;
}

int slu_flow_run(const struct slu_flow_cfg *cfg, struct slu_flow_report *r,
                 struct slu_err *err)
{
    static const struct slu_flow_job whole = {.of = 1, .ranges = 1};
    struct slu_flow f = {.cfg = cfg,
                         .job = &whole,
                         .here = true,
                         .report = r,
                         .n_part = 1,
                         .n_range = 1,
                         .share = SHARES};
    int rc = init(&f, err);

    *r = (struct slu_flow_report){.skipped = false};
    f.base = calloc(2, sizeof *f.base);
    if (!rc && !f.base)
        rc = slu_fail_nomem(err, 2 * sizeof *f.base);
    if (!rc)
        rc = get_header(&f, err);
    if (!rc)
        rc = cfg->begin(cfg->ctx, &f.header, f.names, err);
    for (unsigned i = 0; i < cfg->spec->n_stage && !rc && !f.finished; i++)
        rc = run_here(&f, err);
    release(&f);
    return rc;
}
