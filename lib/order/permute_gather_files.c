/* permute_gather_files.c - what the scatter files say of themselves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "permute_gather_private.h"
#include "lib/stream/stream_private.h"

/* ---- one file ---- */

static int open_file(const struct slu_gather *g, uint64_t part, struct slu_workfile **f,
                     struct slu_err *err)
{
    struct slu_workfile_head want = {
        .kind = SLU_WORKFILE_SHUFFLE_SCATTER, .part = part, .of = g->n_file};
    char *param = NULL;

    *f = NULL;
    if (part)
        memcpy(want.fingerprint, g->header->fingerprint, sizeof want.fingerprint);
    int rc = slu_parts_param(&g->cfg, g->n_range, &param, err);
    want.param = param;
    if (rc == SLU_OK)
        rc = slu_work_open(g->cfg.work, "scatter", &want, part == 0, NULL, f, err);
    free(param);
    return rc;
}

static void extent_of(const struct slu_workfile *f, uint64_t cell, uint64_t n_seq,
                      struct slu_gather_extent *e)
{
    slu_workfile_extent(f, cell, &e->off_byte, &e->n_byte, &e->hash);
    e->n_seq = n_seq;
}

int slu_gather_extent(const struct slu_gather *g, uint64_t file, unsigned bucket,
                      uint64_t range, struct slu_gather_extent *e, struct slu_err *err)
{
    uint64_t cell = bucket * g->n_range + range, w[CELL_WORDS];
    struct slu_parts_cell c = {0};
    struct slu_workfile *f;
    int rc = open_file(g, file, &f, err);

    if (rc)
        return rc;
    if (slu_u128_cmp(slu_workfile_id(f), g->file[file].id))
        rc = slu_fail(err, SLU_E_MISMATCH, "%s: has changed while it was read",
                      slu_workfile_path(f));
    if (rc == SLU_OK)
        rc = slu_workfile_read(f, g->n_bucket * g->n_range + PART_CELLS,
                               cell * CELL_WORDS, CELL_WORDS, w, err);
    if (rc == SLU_OK) {
        slu_parts_get_cell(w, &c);
        extent_of(f, cell, c.n.sequences, e);
    }
    slu_workfile_free(f);
    return rc;
}

/* The counts of all cells; they add up to what the books say. */
static int read_cells(struct slu_gather *g, struct slu_workfile *f,
                      struct slu_gather_file *at, struct slu_err *err)
{
    uint64_t n_cell = g->n_bucket * g->n_range, w[BOOK_WORDS];
    struct slu_parts_books books;
    struct slu_count sum = {0};
    struct slu_u128 checksum = {0, 0};
    const uint64_t *v;
    int rc = slu_parts_get_words(f, n_cell + PART_BOOKS, w, BOOK_WORDS, err);

    slu_parts_get_books(w, &books);
    if (rc == SLU_OK && slu_workfile_len(f, n_cell + PART_CELLS) != n_cell * CELL_WORDS)
        rc = slu_workfile_damaged(f, err);
    if (rc == SLU_OK)
        rc = slu_workfile_begin(f, n_cell + PART_CELLS, err);
    for (uint64_t i = 0; i < n_cell && rc == SLU_OK; i++) {
        struct slu_parts_cell c;
        rc = slu_workfile_next(f, CELL_WORDS, &v, err);
        if (rc)
            break;
        slu_parts_get_cell(v, &c);
        slu_count_add(&g->cell[i].n, c.n);
        g->cell[i].checksum = slu_u128_add(g->cell[i].checksum, c.checksum);
        slu_count_add(&sum, c.n);
        checksum = slu_u128_add(checksum, c.checksum);
        uint64_t near = i % g->n_range - g->cfg.part;
        if (g->cfg.of && near < NEAR)
            extent_of(f, i, c.n.sequences, &at->extent[i / g->n_range * NEAR + near]);
    }
    if (rc == SLU_OK)
        rc = slu_workfile_end(f, err);
    if (rc)
        return rc;
    if (memcmp(&sum, &books.result.out, sizeof sum) ||
        slu_u128_cmp(checksum, books.checksum))
        return slu_workfile_damaged(f, err);
    slu_parts_add_books(&g->books, &books);
    rc = slu_parts_books_check(&books, err);
    return rc ? slu_err_at(err, "%s", slu_workfile_path(f)) : SLU_OK;
}

static int first_file(struct slu_gather *g, const struct slu_workfile *f,
                      struct slu_err *err)
{
    const struct slu_workfile_head *h = slu_workfile_head(f);

    g->n_bucket = (unsigned)h->count[COUNT_BUCKETS];
    if (h->count[COUNT_BUCKETS] > SLU_MAX_BUCKETS || g->n_bucket == 0 ||
        g->n_range > SLU_PARTS_RANGES)
        return slu_workfile_damaged(f, err);
    uint64_t n = g->n_bucket * g->n_range;
    g->cell = calloc(n, sizeof *g->cell);
    return g->cell ? SLU_OK : slu_fail_nomem(err, n * sizeof *g->cell);
}

static int read_took(struct slu_gather *g, uint64_t part, struct slu_workfile *f,
                     struct slu_err *err)
{
    uint64_t section = g->n_bucket * g->n_range + PART_BLEND;
    size_t n = (size_t)slu_workfile_len(f, section);
    uint64_t *w = calloc(n + 1, sizeof *w);
    int rc = w ? slu_parts_get_words(f, section, w, n, err)
               : slu_fail_nomem(err, (n + 1) * sizeof *w);

    if (rc == SLU_OK && part == 0) {
        g->blend = slu_workfile_head(f)->inputs;
        g->n_took = n;
        g->took = w;
        return SLU_OK;
    }
    if (rc == SLU_OK && slu_u128_cmp(g->blend, slu_workfile_head(f)->inputs))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: was scattered by another blend than the parts before it; "
                      "remove it and run its phase again",
                      slu_workfile_path(f));
    if (rc == SLU_OK && n != g->n_took)
        rc = slu_workfile_damaged(f, err);
    for (size_t i = 0; i < n && rc == SLU_OK; i++)
        g->took[i] += w[i];
    free(w);
    return rc;
}

static int read_file(struct slu_gather *g, uint64_t part, struct slu_err *err)
{
    struct slu_gather_file *at = &g->file[part];
    struct slu_workfile *f;
    int rc = open_file(g, part, &f, err);

    if (rc == SLU_OK && part == 0)
        rc = first_file(g, f, err);
    if (rc == SLU_OK && (slu_workfile_n_section(f) != g->n_bucket * g->n_range + PARTS))
        rc = slu_workfile_damaged(f, err);
    if (rc == SLU_OK) {
        at->id = slu_workfile_id(f);
        at->path = strdup(slu_workfile_path(f));
        at->extent = calloc((size_t)g->n_bucket * NEAR, sizeof *at->extent);
        if (!at->path || !at->extent)
            rc = slu_fail_nomem(err, g->n_bucket * NEAR * sizeof *at->extent);
    }
    if (rc == SLU_OK)
        rc =
            slu_workfile_get_stream(f, g->n_bucket * g->n_range + PART_STREAM, g->names,
                                    !slu_names_vocab(g->names), &at->stream, err);
    if (rc == SLU_OK && part == 0)
        g->header = &at->stream.header;
    if (rc == SLU_OK && g->n_bucket != slu_parts_buckets(&g->cfg, g->header))
        rc = slu_workfile_damaged(f, err);
    if (rc == SLU_OK) {
        rc = slu_header_compatible(g->header, &at->stream.header, err);
        if (rc)
            slu_err_at(err, "%s", slu_workfile_path(f));
    }
    if (rc == SLU_OK)
        rc = read_cells(g, f, at, err);
    if (rc == SLU_OK)
        rc = read_took(g, part, f, err);
    slu_workfile_free(f);
    return rc;
}

/* ---- all of them ---- */

/* Into how many ranges the first part was scattered. */
static int find_ranges(struct slu_gather *g, struct slu_err *err)
{
    struct slu_workfile_head want = {.kind = SLU_WORKFILE_SHUFFLE_SCATTER,
                                     .of = g->n_file};
    struct slu_workfile *f;
    int rc = slu_work_open(g->cfg.work, "scatter", &want, true, NULL, &f, err);

    if (rc)
        return rc;
    g->n_range = slu_workfile_head(f)->count[COUNT_RANGES];
    if (g->cfg.of && g->cfg.of != g->n_range)
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: was scattered to %llu ranges, and this is one of %llu; use "
                      "--part J/%llu",
                      slu_workfile_path(f), (unsigned long long)g->n_range,
                      (unsigned long long)g->cfg.of, (unsigned long long)g->n_range);
    slu_workfile_free(f);
    return rc;
}

int slu_gather_open(struct slu_gather **out, const struct slu_parts_cfg *c,
                    uint64_t budget_byte, struct slu_err *err)
{
    struct slu_gather *g = calloc(1, sizeof *g);

    *out = NULL;
    if (!g)
        return slu_fail_nomem(err, sizeof *g);
    g->cfg = *c;
    g->budget_byte = budget_byte;
    int rc = slu_names_new(&g->names, err);
    if (rc == SLU_OK)
        rc = slu_work_parts(c->work, "scatter", &g->n_file, err);
    if (rc == SLU_OK)
        rc = find_ranges(g, err);
    if (rc == SLU_OK) {
        g->file = calloc(g->n_file, sizeof *g->file);
        if (!g->file)
            rc = slu_fail_nomem(err, g->n_file * sizeof *g->file);
    }
    for (uint64_t i = 0; g->file && i < g->n_file; i++)
        g->file[i].fd = -1;
    for (uint64_t i = 0; i < g->n_file && rc == SLU_OK; i++)
        rc = read_file(g, i, err);
    if (rc)
        slu_gather_free(g);
    else
        *out = g;
    return rc;
}

void slu_gather_free(struct slu_gather *g)
{
    if (!g)
        return;
    for (uint64_t i = 0; g->run && i < g->n_file; i++) {
        slu_hash_parts_free(g->run[i].hash);
        free(g->run[i].buf);
    }
    for (uint64_t i = 0; g->file && i < g->n_file; i++) {
        struct slu_gather_file *f = &g->file[i];
        if (f->fd >= 0)
            close(f->fd);
        slu_workfile_stream_release(&f->stream);
        free(f->extent);
        free(f->path);
    }
    free(g->run);
    free(g->heap);
    free(g->file);
    free(g->cell);
    free(g->took);
    slu_buf_release(&g->fetched);
    slu_names_free(g->names);
    free(g);
}

/* ---- what they say ---- */

const struct slu_header *slu_gather_header(const struct slu_gather *g)
{
    return g->header;
}

struct slu_names *slu_gather_names(struct slu_gather *g)
{
    return g->names;
}

const struct slu_parts_books *slu_gather_books(const struct slu_gather *g)
{
    return &g->books;
}

uint64_t slu_gather_parts(const struct slu_gather *g)
{
    return g->n_file;
}

uint64_t slu_gather_ranges(const struct slu_gather *g)
{
    return g->n_range;
}

uint64_t slu_gather_before(const struct slu_gather *g, unsigned bucket, uint64_t range)
{
    const struct slu_parts_cell *c = &g->cell[bucket * g->n_range];
    uint64_t n = 0;

    for (uint64_t i = 0; i < range && i < g->n_range; i++)
        n += c[i].n.sequences;
    return n;
}

void slu_gather_range(const struct slu_gather *g, struct slu_count *n,
                      struct slu_u128 *checksum)
{
    *n = (struct slu_count){0};
    *checksum = (struct slu_u128){0, 0};
    for (unsigned b = 0; b < g->n_bucket; b++) {
        const struct slu_parts_cell *c = &g->cell[b * g->n_range + g->cfg.part];
        slu_count_add(n, c->n);
        *checksum = slu_u128_add(*checksum, c->checksum);
    }
}

int slu_gather_took(const struct slu_gather *g, const struct slu_blend *blend,
                    struct slu_u128 id, struct slu_blending *x, struct slu_count *phase,
                    struct slu_err *err)
{
    if (slu_u128_cmp(g->blend, id) ||
        slu_parts_took_words(blend, g->header) != g->n_took)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s/blend: the parts were scattered by another one; run "
                        "--phase scatter again",
                        g->cfg.work);
    slu_parts_took_add(g->took, blend, g->header, x, phase);
    return SLU_OK;
}
