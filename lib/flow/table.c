/* table.c - rows of one process, and how they get into a file; source.c reads files. */
#include <stdlib.h>
#include <string.h>

#include "lib/flow/table_private.h"
#include "lib/le.h"
#include "lib/order/spool.h"

#define COPY (256 << 10) /* bytes of a list that go to a file at once */

static int make(struct slu_table **out, const struct slu_table_spec *spec,
                const struct slu_table_cfg *cfg, struct slu_err *err)
{
    struct slu_table *t = calloc(1, sizeof *t);

    *out = t;
    if (!t)
        return slu_fail_nomem(err, sizeof *t);
    t->spec = spec;
    t->cfg = *cfg;
    return SLU_OK;
}

int slu_table_over(struct slu_table **t, const struct slu_table_spec *spec,
                   const struct slu_table_cfg *cfg, struct slu_err *err)
{
    int rc = make(t, spec, cfg, err);

    if (!rc)
        (*t)->files = true;
    return rc;
}

int slu_table_new(struct slu_table **t, const struct slu_table_spec *spec,
                  const struct slu_table_cfg *cfg, struct slu_err *err)
{
    const struct slu_sorter_cfg sorting = {.budget_byte = cfg->budget_byte,
                                           .tmpdir = cfg->tmpdir,
                                           .n_threads = cfg->n_threads};
    int rc = make(t, spec, cfg, err);

    if (rc)
        return rc;
    rc = spec->kind == SLU_ROWS
             ? slu_sorter_new(&(*t)->sorter, &sorting, err)
             : slu_spool_new(&(*t)->spool, cfg->budget_byte, cfg->tmpdir, err);
    if (rc) {
        slu_table_free(*t);
        *t = NULL;
    }
    return rc;
}

void slu_table_free(struct slu_table *t)
{
    if (!t)
        return;
    slu_sorter_free(t->sorter);
    slu_spool_free(t->spool);
    slu_table_free_files(t);
    free(t->end_byte);
    free(t);
}

uint64_t slu_table_longest(const struct slu_table *t)
{
    return t->longest;
}

bool slu_table_poured(const struct slu_table *t)
{
    return t->files && t->sorter;
}

uint64_t slu_table_spilled(const struct slu_table *t)
{
    return t->sorter  ? slu_sorter_spilled(t->sorter)
           : t->spool ? slu_spool_spilled(t->spool)
                      : 0;
}

/* ---- rows in a sorter ---- */

static void put_be64(uint8_t *p, uint64_t v)
{
    slu_put_le64(p, __builtin_bswap64(v));
}
static uint64_t be64(const void *p)
{
    return __builtin_bswap64(slu_le64(p));
}

/* Words behind the first two, and the part behind everything, are bytes that order as
 * the numbers do. */
int slu_table_add_row(struct slu_table *t, const struct slu_row *row, bool with_part,
                      struct slu_err *err)
{
    uint8_t rest[8 * SLU_TABLE_WORDS], part[8];
    const uint64_t *w = row->p;
    unsigned n = t->spec->n_word;
    struct slu_piece piece[2] = {{row->p, row->n_byte}, {part, with_part ? 8 : 0}};

    if (n) {
        for (unsigned i = 2; i < n; i++)
            put_be64(rest + 8 * (i - 2), w[i]);
        piece[0] = (struct slu_piece){rest, n > 2 ? 8 * (n - 2) : 0};
    }
    put_be64(part, row->part);
    return slu_sorter_add(t->sorter, row->key, piece, 1 + with_part, err);
}

int slu_table_sorted(struct slu_table *t, struct slu_row *row, bool with_part,
                     struct slu_err *err)
{
    unsigned n = t->spec->n_word;
    int rc = slu_sorter_next(t->sorter, &row->key, &row->p, &row->n_byte, err);

    if (rc)
        return rc;
    row->part = 0;
    if (with_part) {
        row->n_byte -= 8;
        row->part = be64((const uint8_t *)row->p + row->n_byte);
    }
    if (!n)
        return SLU_OK;
    t->word[0] = row->key.hi;
    t->word[1] = row->key.lo;
    for (unsigned i = 2; i < n; i++)
        t->word[i] = be64((const uint8_t *)row->p + 8 * (i - 2));
    row->p = t->word;
    row->n_byte = 8 * n;
    return SLU_OK;
}

/* ---- putting ---- */

int slu_table_section(struct slu_table *t, uint64_t cell, struct slu_err *err)
{
    if (t->spec->kind != SLU_LIST || cell < t->n_end)
        return slu_fail(err, SLU_E_USAGE, "%s: cells are written in order",
                        t->spec->name);
    int rc = slu_grow(&t->end_byte, &t->cap_end, cell + 1, sizeof *t->end_byte, err);
    while (!rc && t->n_end < cell)
        t->end_byte[t->n_end++] = t->n_byte;
    return rc;
}

static void put_size(struct slu_table *t, uint64_t n)
{
    t->n_byte += n;
    if (n > t->longest)
        t->longest = n;
}

int slu_table_put(struct slu_table *t, const uint64_t *w, struct slu_err *err)
{
    const unsigned n = t->spec->n_word;
    const struct slu_row row = {
        .key = {n > 1 ? w[1] : 0, w[0]}, .p = w, .n_byte = 8 * (size_t)n};

    put_size(t, 8 * (uint64_t)n);
    return t->sorter ? slu_table_add_row(t, &row, false, err)
                     : slu_spool_put(t->spool, w, 8 * (size_t)n, err);
}

int slu_table_put_bytes(struct slu_table *t, struct slu_u128 key,
                        const struct slu_piece *piece, unsigned n_piece,
                        struct slu_err *err)
{
    static const uint8_t zero[8];
    uint8_t head[SLU_ROW_HEAD];
    uint64_t n = 0;
    int rc;

    for (unsigned i = 0; i < n_piece; i++)
        n += piece[i].n;
    put_size(t, SLU_ROW_HEAD + slu_row_pad8(n));
    if (t->sorter)
        return slu_sorter_add(t->sorter, key, piece, n_piece, err);
    slu_put_le64(head, key.lo);
    slu_put_le64(head + 8, key.hi);
    slu_put_le64(head + 16, n);
    rc = slu_spool_put(t->spool, head, sizeof head, err);
    for (unsigned i = 0; i < n_piece && !rc; i++)
        if (piece[i].n)
            rc = slu_spool_put(t->spool, piece[i].p, piece[i].n, err);
    return rc || slu_row_pad8(n) == n
               ? rc
               : slu_spool_put(t->spool, zero, slu_row_pad8(n) - n, err);
}

/* ---- reading in this process ---- */

int slu_table_begin(struct slu_table *t, struct slu_err *err)
{
    if (t->files)
        return slu_table_begin_files(t, err);
    return t->sorter ? slu_sorter_seal(t->sorter, err)
                     : slu_spool_rewind(t->spool, t->longest, err);
}

static int next_listed(struct slu_table *t, struct slu_row *row, struct slu_err *err)
{
    const unsigned n = t->spec->n_word;
    int rc = slu_spool_get(t->spool, &row->p, n ? 8 * (size_t)n : SLU_ROW_HEAD, err);

    if (rc)
        return rc;
    const uint8_t *head = row->p;
    row->part = 0;
    row->n_byte = n ? 8 * (size_t)n : slu_le64(head + 16);
    if (n)
        return SLU_OK;
    row->key = (struct slu_u128){slu_le64(head), slu_le64(head + 8)};
    rc = slu_spool_get(t->spool, &row->p, slu_row_pad8(row->n_byte), err);
    return rc == SLU_EOF ? slu_fail(err, SLU_E_TRUNCATED,
                                    "%s: the temporary file ends early", t->cfg.tmpdir)
                         : rc;
}

int slu_table_next(struct slu_table *t, struct slu_row *row, struct slu_err *err)
{
    if (t->files)
        return slu_table_next_file(t, row, err);
    return t->sorter ? slu_table_sorted(t, row, false, err) : next_listed(t, row, err);
}

/* ---- to a file ---- */

static int put_row(const struct slu_table *t, struct slu_workfile_out *o,
                   const struct slu_row *row, struct slu_err *err)
{
    const uint64_t head[] = {row->key.lo, row->key.hi, row->n_byte};

    if (t->spec->n_word)
        return slu_workfile_put(o, row->p, t->spec->n_word, err);
    int rc = slu_workfile_put(o, head, sizeof head / 8, err);
    return rc ? rc : slu_workfile_put_raw(o, row->p, row->n_byte, err);
}

static uint64_t top_bits(const void *n_cell, struct slu_u128 key, const void *p,
                         size_t n)
{
    (void)p, (void)n;
    return slu_draw_below(key.hi, *(const uint64_t *)n_cell);
}

static int write_rows(struct slu_table *t, struct slu_workfile_out *o, uint64_t first,
                      uint64_t n_cell, slu_table_cell *cell, const void *ctx,
                      struct slu_err *err)
{
    struct slu_row row;
    int rc = slu_sorter_seal(t->sorter, err);

    while (!rc) {
        rc = slu_table_sorted(t, &row, false, err);
        if (rc)
            break;
        uint64_t at = cell(ctx, row.key, row.p, row.n_byte);
        rc = at < n_cell
                 ? slu_workfile_section(o, first + at, err)
                 : slu_fail(err, SLU_E_USAGE, "%s: a row of no cell", t->spec->name);
        if (!rc)
            rc = put_row(t, o, &row, err);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int write_list(struct slu_table *t, struct slu_workfile_out *o, uint64_t first,
                      uint64_t n_cell, struct slu_err *err)
{
    uint64_t at = 0;
    int rc = slu_spool_rewind(t->spool, COPY, err);

    for (uint64_t c = 0; c < n_cell && !rc; c++) {
        uint64_t end = c < t->n_end ? t->end_byte[c] : t->n_byte;
        rc = slu_workfile_section(o, first + c, err);
        while (!rc && at < end) {
            size_t some = end - at < COPY ? (size_t)(end - at) : COPY;
            const void *p;
            rc = slu_spool_get(t->spool, &p, some, err);
            if (!rc)
                rc = t->spec->n_word ? slu_workfile_put(o, p, some / 8, err)
                                     : slu_workfile_put_raw(o, p, some, err);
            at += some;
        }
    }
    return rc;
}

int slu_table_write(struct slu_table *t, struct slu_workfile_out *o, uint64_t first,
                    uint64_t n_cell, slu_table_cell *cell, const void *ctx,
                    struct slu_err *err)
{
    if (t->spec->kind == SLU_LIST)
        return write_list(t, o, first, n_cell, err);
    return write_rows(t, o, first, n_cell, cell ? cell : top_bits, cell ? ctx : &n_cell,
                      err);
}
