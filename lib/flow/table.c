/* table.c - tables in one process, and writing tables to files; row_file.c reads
 * files. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"
#include "lib/flow/grouper_private.h"
#include "lib/flow/table_private.h"
#include "bytelog.h"

#define COPY       (256 << 10) /* bytes written to a file at once */
#define NO_SECTION UINT64_MAX  /* no row is held */

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

    if (rc)
        return rc;
    (*t)->files = true;
    rc = spec->kind == SLU_STORE ? slu_store_new(*t, err) : SLU_OK;
    if (rc) {
        slu_table_free(*t);
        *t = NULL;
    }
    return rc;
}

int slu_table_new_grouper(struct slu_table *t, uint64_t budget_byte,
                          struct slu_err *err)
{
    const struct slu_grouper_cfg cfg = {t->spec->n_word,
                                        t->spec->group_bits,
                                        budget_byte,
                                        t->cfg.tmpdir,
                                        t->cfg.n_cell ? t->cfg.n_cell : 1,
                                        t->cfg.n_cell && !t->files};

    return slu_grouper_new(&t->grouper, &cfg, err);
}

/* GROUPS: the part of the budget for groups, in addition to the grouper; 0 if the table
 * is written to a file. */
static uint64_t groups_byte(const struct slu_table *t)
{
    return t->cfg.n_cell && !t->files ? 0 : t->cfg.budget_byte / 3;
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
    if (spec->kind == SLU_STORE)
        rc = slu_store_new(*t, err);
    else if (spec->kind == SLU_ROWS && !cfg->unsorted)
        rc = slu_sorter_new(&(*t)->sorter, &sorting, err);
    else if (spec->kind != SLU_GROUPS && !cfg->out)
        rc = slu_bytelog_new(&(*t)->log, cfg->budget_byte, cfg->tmpdir, err);
    else if (spec->kind == SLU_GROUPS)
        rc = slu_table_new_grouper(*t, cfg->budget_byte - groups_byte(*t), err);
    if (spec->kind == SLU_GROUPS)
        (*t)->longest = 8 * (uint64_t)spec->n_word;
    if (spec->kind == SLU_ROWS && (spec->cut == SLU_CUT_PARTS || spec->dense) &&
        cfg->base)
        (*t)->shift =
            (unsigned)__builtin_clzll(cfg->base[cfg->n_part] << spec->low | 1);
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
    slu_bytelog_free(t->log);
    slu_grouper_free(t->grouper);
    slu_store_free(t->store);
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
    return t->sorter    ? slu_sorter_spilled(t->sorter)
           : t->log     ? slu_bytelog_spilled(t->log)
           : t->grouper ? slu_grouper_spilled(t->grouper)
           : t->store   ? slu_store_spilled(t->store)
                        : 0;
}

/* ---- rows in a sorter ---- */

struct slu_sorter *slu_table_sorter(struct slu_table *t)
{
    return t->sorter;
}

static void put_be64(uint8_t *p, uint64_t v)
{
    slu_put_le64(p, __builtin_bswap64(v));
}
static uint64_t be64(const void *p)
{
    return __builtin_bswap64(slu_le64(p));
}

/* Words after the first two, and the part after all words, are stored as bytes; their
 * order as bytes is their order as numbers. */
int slu_table_add_row(struct slu_table *t, const struct slu_row *row, bool with_part,
                      struct slu_err *err)
{
    uint8_t rest[8 * SLU_TABLE_WORDS], part[8];
    const uint64_t *w = row->p;
    unsigned n = t->spec->n_word;
    struct slu_slice piece[2] = {{row->p, row->n_byte}, {part, with_part ? 8 : 0}};

    if (n) {
        for (unsigned i = 2; i < n; i++)
            put_be64(rest + 8 * (i - 2), w[i]);
        piece[0] = (struct slu_slice){rest, n > 2 ? 8 * (n - 2) : 0};
    }
    put_be64(part, row->part);
    const struct slu_u128 key = {row->key.lo, row->key.hi << t->shift};
    return slu_sorter_add(t->sorter, key, piece, 1 + with_part, err);
}

int slu_table_sorted(struct slu_table *t, struct slu_row *row, bool with_part,
                     struct slu_err *err)
{
    unsigned n = t->spec->n_word;
    int rc = slu_sorter_next(t->sorter, &row->key, &row->p, &row->n_byte, err);

    if (rc)
        return rc;
    row->key.hi >>= t->shift;
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

static int put_row(struct slu_table *t, const uint64_t *w, struct slu_err *err)
{
    const unsigned n = t->spec->n_word;
    const struct slu_row row = {
        .key = {n > 1 ? w[1] : 0, w[0]}, .p = w, .n_byte = 8 * (size_t)n};

    put_size(t, 8 * (uint64_t)n);
    if (t->sorter && n <= 2) { /* the key is the whole row */
        const struct slu_u128 key = {row.key.lo, w[0] << t->shift};
        return slu_sorter_add(t->sorter, key, NULL, 0, err);
    }
    return t->sorter ? slu_table_add_row(t, &row, false, err)
           : t->log  ? slu_bytelog_put(t->log, w, 8 * (size_t)n, err)
                     : slu_workfile_put(t->cfg.out, w, n, err);
}

int slu_table_put_rows(struct slu_table *t, const uint64_t *w, size_t n,
                       struct slu_err *err)
{
    int rc = SLU_OK;

    if (t->grouper)
        return slu_grouper_put(t->grouper, w, n, err);
    for (; n > 0 && !rc; n--, w += t->spec->n_word)
        rc = put_row(t, w, err);
    return rc;
}

int slu_table_put(struct slu_table *t, const uint64_t *w, struct slu_err *err)
{
    return slu_table_put_rows(t, w, 1, err);
}

int slu_table_put_bytes(struct slu_table *t, struct slu_u128 key,
                        const struct slu_slice *piece, unsigned n_piece,
                        struct slu_err *err)
{
    uint8_t head[SLU_ROW_HEAD];
    uint64_t n = 0;

    for (unsigned i = 0; i < n_piece; i++)
        n += piece[i].n;
    put_size(t, SLU_ROW_HEAD + slu_row_pad8(n));
    if (t->sorter)
        return slu_sorter_add(t->sorter, key, piece, n_piece, err);
    slu_put_le64(head, key.lo);
    slu_put_le64(head + 8, key.hi);
    slu_put_le64(head + 16, n);
    return slu_bytelog_put_rec(t->log, head, sizeof head, piece, n_piece, err);
}

/* ---- reading in this process ---- */

int slu_table_group(struct slu_table *t, const struct slu_group_ops *ops,
                    struct slu_err *err)
{
    const uint64_t work = groups_byte(t), buf = work / 4;
    int rc = SLU_OK;

    if (t->files)
        rc = slu_table_pour_groups(t, t->cfg.budget_byte - work - buf, buf, err);
    return rc ? rc
              : slu_grouper_run(t->grouper, ops, work + ops->work_byte,
                                t->cfg.n_threads, err);
}

int slu_table_begin(struct slu_table *t, struct slu_err *err)
{
    if (t->files)
        return slu_table_begin_files(t, err);
    if (t->grouper || t->store)
        return SLU_OK;
    return t->sorter ? slu_sorter_seal(t->sorter, err)
                     : slu_bytelog_rewind(t->log, t->longest, err);
}

static int next_listed(struct slu_table *t, struct slu_row *row, struct slu_err *err)
{
    const unsigned n = t->spec->n_word;
    int rc = slu_bytelog_get(t->log, &row->p, n ? 8 * (size_t)n : SLU_ROW_HEAD, err);

    if (rc)
        return rc;
    const uint8_t *head = row->p;
    row->part = 0;
    row->n_byte = n ? 8 * (size_t)n : slu_le64(head + 16);
    if (n)
        return SLU_OK;
    row->key = (struct slu_u128){slu_le64(head), slu_le64(head + 8)};
    return slu_bytelog_get_rest(t->log, &row->p, row->n_byte, err);
}

int slu_table_next(struct slu_table *t, struct slu_row *row, struct slu_err *err)
{
    const unsigned n = t->spec->n_word;

    if ((size_t)(t->end_rows - t->rows) >= 8 * n && t->end_rows != t->rows) {
        uint64_t *w = (uint64_t *)(void *)t->rows;
        for (unsigned i = 0; i < n; i++)
            w[i] = slu_le64(&w[i]);
        t->rows += 8 * n;
        *row = (struct slu_row){{n > 1 ? w[1] : 0, w[0]}, w, 8 * (size_t)n, t->part};
        return SLU_OK;
    }
    if (t->files)
        return slu_table_next_file(t, row, err);
    return t->sorter ? slu_table_sorted(t, row, false, err) : next_listed(t, row, err);
}

/* ---- to a file ---- */

static int write_row(const struct slu_table *t, struct slu_workfile_out *o,
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

/* Bytes of a row in a file. */
static uint64_t size_of(const struct slu_table *t, const struct slu_row *row)
{
    return t->spec->n_word ? 8 * (uint64_t)t->spec->n_word
                           : SLU_ROW_HEAD + slu_row_pad8(row->n_byte);
}

/* The part of the current row, searched from `at` on; word 0 then counts from the
 * beginning of that part. */
static uint64_t of_part(struct slu_table *t, uint64_t at)
{
    const struct slu_table_cfg *c = &t->cfg;

    while (at < c->n_part && t->word[0] >> t->spec->low >= c->base[at + 1])
        at++;
    t->word[0] -= c->base[at] << t->spec->low;
    return at;
}

/* Holds the current row for section *at: it joins the held row or takes its place. */
static int hold(struct slu_table *t, struct slu_workfile_out *o, uint64_t *held,
                uint64_t *at, uint64_t section, const void *ctx, struct slu_err *err)
{
    const unsigned n = t->spec->n_word;
    int rc = SLU_OK;

    if (section == *at && t->spec->join(ctx, held, t->word))
        return SLU_OK;
    if (*at != NO_SECTION)
        rc = slu_workfile_put(o, held, n, err);
    if (!rc)
        rc = slu_workfile_section(o, section, err);
    *at = section;
    memcpy(held, t->word, n * sizeof *held);
    return rc;
}

static int write_rows(struct slu_table *t, struct slu_workfile_out *o, uint64_t first,
                      uint64_t n_cell, slu_table_cell *cell, const void *ctx,
                      struct slu_err *err)
{
    const bool by_part = t->spec->cut == SLU_CUT_PARTS && t->cfg.base;
    uint64_t at = 0, held[SLU_TABLE_WORDS], held_at = NO_SECTION;
    const void *of_cell = cell ? ctx : &n_cell;
    struct slu_row row;
    int rc = slu_sorter_seal(t->sorter, err);

    cell = cell ? cell : top_bits;
    while (!rc) {
        rc = slu_table_sorted(t, &row, false, err);
        if (rc)
            break;
        at = by_part ? of_part(t, at) : cell(of_cell, row.key, row.p, row.n_byte);
        if (at >= n_cell)
            return slu_fail(err, SLU_E_USAGE, "%s: a row of no cell", t->spec->name);
        if (t->spec->join) {
            rc = hold(t, o, held, &held_at, first + at, ctx, err);
            continue;
        }
        rc = slu_workfile_section(o, first + at, err);
        if (!rc)
            rc = write_row(t, o, &row, err);
        if (size_of(t, &row) > t->longest)
            t->longest = size_of(t, &row);
    }
    if (rc == SLU_EOF && held_at != NO_SECTION)
        return slu_workfile_put(o, held, t->spec->n_word, err);
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int write_list(struct slu_table *t, struct slu_workfile_out *o, uint64_t first,
                      uint64_t n_cell, struct slu_err *err)
{
    uint64_t at = 0;
    int rc = slu_bytelog_rewind(t->log, COPY, err);

    for (uint64_t c = 0; c < n_cell && !rc; c++) {
        uint64_t end = c < t->n_end ? t->end_byte[c] : t->n_byte;
        rc = slu_workfile_section(o, first + c, err);
        while (!rc && at < end) {
            size_t some = end - at < COPY ? (size_t)(end - at) : COPY;
            const void *p;
            rc = slu_bytelog_get(t->log, &p, some, err);
            if (!rc)
                rc = t->spec->n_word ? slu_workfile_put(o, p, some / 8, err)
                                     : slu_workfile_put_raw(o, p, some, err);
            at += some;
        }
    }
    return rc;
}

static int write_groups(struct slu_table *t, struct slu_workfile_out *o, uint64_t first,
                        uint64_t n_cell, struct slu_err *err)
{
    const size_t most = COPY / (8 * t->spec->n_word);
    uint64_t *buf = malloc(COPY);
    int rc = buf ? slu_grouper_seal(t->grouper, err) : slu_fail_nomem(err, COPY);

    for (uint64_t j = 0; j < n_cell && !rc; j++) {
        struct slu_grouper_cursor at = {.cell = j};
        size_t n = most;
        rc = slu_workfile_section(o, first + j, err);
        while (n == most && !rc) {
            rc = slu_grouper_read(t->grouper, &at, buf, most, &n, err);
            if (n && !rc)
                rc = slu_workfile_put(o, buf, n * t->spec->n_word, err);
        }
    }
    free(buf);
    return rc;
}

int slu_table_write(struct slu_table *t, struct slu_workfile_out *o, uint64_t first,
                    uint64_t n_cell, slu_table_cell *cell, const void *ctx,
                    struct slu_err *err)
{
    if (t->spec->kind == SLU_STORE)
        return slu_store_write(t, o, first, err);
    /* Without a log the rows are already in the file. */
    if (t->spec->kind == SLU_LIST)
        return t->log ? write_list(t, o, first, n_cell, err) : SLU_OK;
    if (t->spec->kind == SLU_GROUPS)
        return write_groups(t, o, first, n_cell, err);
    return write_rows(t, o, first, n_cell, cell, ctx, err);
}
