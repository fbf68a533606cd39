/* grouper.c - stores rows in cells; grouper_groups.c finds the groups in the cells. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/pages.h"
#include "lib/flow/grouper_private.h"

/* Chunks are small, because the last chunk of each cell is not full. */
enum { LEAST_CELL_BYTE = 32 << 10, CHUNK_BYTE = 4 << 10, WRITE_BYTE = 256 << 10 };
enum { LEAST_CHUNK_ROW = 10 };
enum { MANY_BITS = 11, MOST_BITS = 14, MANY_CELL_BYTE = 256 << 10 };

static void chunks_clear(struct slu_grouper *c)
{
    c->n_chunk = 0;
    for (size_t i = 0; i < c->n_cell; i++) {
        c->cell[i].at = c->cell[i].end = NULL;
        c->cell[i].first = c->cell[i].last = UINT32_MAX;
    }
}

/* Number of cells if the cells are not ranges. */
static size_t usual_cells(uint64_t budget_byte)
{
    unsigned bits = 4;

    /* Only a budget of terabytes has more cells than the caches hold. */
    while (bits < MOST_BITS &&
           budget_byte >> (bits + 1) >=
               (bits < MANY_BITS ? LEAST_CELL_BYTE : MANY_CELL_BYTE))
        bits++;
    return (size_t)1 << bits;
}

int slu_grouper_new(struct slu_grouper **out, const struct slu_grouper_cfg *cfg,
                    struct slu_err *err)
{
    uint64_t budget_byte = cfg->budget_byte;
    struct slu_grouper *c = calloc(1, sizeof *c);

    *out = c;
    if (!c)
        return slu_fail_nomem(err, sizeof *c);
    c->fd = -1;
    c->tmpdir = cfg->tmpdir;
    c->n_cell = cfg->partition ? cfg->n_range : usual_cells(budget_byte);
    c->mask = UINT64_MAX << (64 - cfg->group_bits);
    c->scale = cfg->partition ? 1 : cfg->n_range;
    c->n_word = cfg->n_word;
    c->group_bits = cfg->group_bits;
    size_t row = 8 * (size_t)cfg->n_word, rows = CHUNK_BYTE / row;
    while (rows > LEAST_CHUNK_ROW && c->n_cell * rows * row > budget_byte / 2)
        rows /= 2;
    c->per_chunk = rows * cfg->n_word;
    c->max_chunk = budget_byte / (rows * row + sizeof *c->next);
    if (c->max_chunk < c->n_cell)
        c->max_chunk = c->n_cell;
    c->pool_byte = c->max_chunk * rows * row;
    c->cell = calloc(c->n_cell, sizeof *c->cell);
    c->next = malloc(c->max_chunk * sizeof *c->next);
    c->pool = slu_pages_new(c->pool_byte,
                            budget_byte >= 64 << 20 ? SLU_PAGES_HUGE : SLU_PAGES_SMALL);
    if (!c->cell || !c->next || !c->pool) {
        slu_grouper_free(c);
        *out = NULL;
        return slu_fail_nomem(err, budget_byte);
    }
    chunks_clear(c);
    return SLU_OK;
}

void slu_grouper_free(struct slu_grouper *c)
{
    if (!c)
        return;
    slu_pages_free(c->pool, c->pool_byte);
    if (c->fd >= 0)
        close(c->fd);
    free(c->cell);
    free(c->next);
    free(c->extent);
    free(c);
}

uint64_t slu_grouper_spilled(const struct slu_grouper *c)
{
    return c->file_byte;
}

/* Number of words in chunk i of the cell. */
static size_t chunk_len(const struct slu_grouper *c, const struct slu_cell *cell,
                        uint32_t i)
{
    return i == cell->last ? c->per_chunk - (size_t)(cell->end - cell->at)
                           : c->per_chunk;
}

static int write_out(struct slu_grouper *c, struct slu_buf *buf, struct slu_err *err)
{
    if (slu_write_full(c->fd, buf->data, buf->len, err))
        return slu_err_at(err, "%s: cannot hold the data that exceeds memory",
                          c->tmpdir);
    slu_buf_clear(buf);
    return SLU_OK;
}

/* Moves all rows from memory to the file, cell by cell. */
static int flush(struct slu_grouper *c, struct slu_err *err)
{
    struct slu_buf buf = SLU_BUF_INIT;
    int rc = c->fd < 0 ? slu_tmpfile(&c->fd, c->tmpdir, err) : SLU_OK;

    if (!rc)
        rc = slu_grow(&c->extent, &c->cap_extent, (c->n_flush + 1) * (c->n_cell + 1),
                      sizeof *c->extent, err);
    if (!rc)
        rc = slu_buf_reserve(&buf, WRITE_BYTE, err);
    uint64_t *extent = c->extent + c->n_flush * (c->n_cell + 1);
    for (size_t i = 0; !rc && i < c->n_cell; i++) {
        const struct slu_cell *cell = &c->cell[i];
        extent[i] = c->file_byte;
        for (uint32_t k = cell->first; !rc && k != UINT32_MAX; k = c->next[k]) {
            size_t n = chunk_len(c, cell, k) * sizeof *c->pool;
            if (buf.len + n > WRITE_BYTE)
                rc = write_out(c, &buf, err);
            if (!rc)
                rc = slu_buf_append(&buf, c->pool + k * c->per_chunk, n, err);
            c->file_byte += n;
        }
    }
    if (!rc)
        rc = write_out(c, &buf, err);
    slu_buf_release(&buf);
    if (rc)
        return rc;
    extent[c->n_cell] = c->file_byte;
    c->n_flush++;
    chunks_clear(c);
    return SLU_OK;
}

/* Adds a chunk to a cell whose last chunk is full. */
static int add_chunk(struct slu_grouper *c, struct slu_cell *cell, struct slu_err *err)
{
    if (c->n_chunk == c->max_chunk) {
        int rc = flush(c, err);
        if (rc)
            return rc;
    }
    uint32_t k = (uint32_t)c->n_chunk++;
    c->next[k] = UINT32_MAX;
    if (cell->first == UINT32_MAX)
        cell->first = k;
    else
        c->next[cell->last] = k;
    cell->last = k;
    cell->at = c->pool + k * c->per_chunk;
    cell->end = cell->at + c->per_chunk;
    return SLU_OK;
}

/* Inlined for the usual number of words. */
static inline int put(struct slu_grouper *c, const uint64_t *row, size_t n,
                      const unsigned n_word, struct slu_err *err)
{
    for (; n > 0; n--, row += n_word) {
        uint64_t w = (row[0] & c->mask) * c->scale;
        struct slu_cell *cell =
            &c->cell[(size_t)(((unsigned __int128)w * c->n_cell) >> 64)];
        if (cell->at == cell->end) {
            int rc = add_chunk(c, cell, err);
            if (rc)
                return rc;
        }
        memcpy(cell->at, row, n_word * sizeof *row);
        cell->at += n_word;
        cell->n_row++;
    }
    return SLU_OK;
}

int slu_grouper_put(struct slu_grouper *c, const uint64_t *row, size_t n,
                    struct slu_err *err)
{
    c->n_row += n;
    return c->n_word == 3 ? put(c, row, n, 3, err) : put(c, row, n, c->n_word, err);
}

/* ---- reading ---- */

int slu_grouper_seal(struct slu_grouper *c, struct slu_err *err)
{
    if (c->n_flush == 0)
        return SLU_OK;
    int rc = flush(c, err);
    slu_pages_free(c->pool, c->pool_byte);
    c->pool = NULL;
    return rc;
}

int slu_grouper_read(const struct slu_grouper *c, struct slu_grouper_cursor *at,
                     uint64_t *to, size_t max, size_t *n_read, struct slu_err *err)
{
    const struct slu_cell *cell = &c->cell[at->cell];
    size_t want = max * c->n_word, n_word = 0;

    while (n_word < want && at->flush < c->n_flush) {
        const uint64_t *extent = c->extent + at->flush * (c->n_cell + 1) + at->cell;
        uint64_t from = extent[0] + at->byte, left = extent[1] - from;
        size_t n = (want - n_word) * sizeof *to;
        n = left < n ? (size_t)left : n;
        int rc = n ? slu_pread_full(c->fd, to + n_word, n, from, err) : SLU_OK;
        if (rc)
            return slu_err_at(err, "%s", c->tmpdir);
        n_word += n / sizeof *to;
        at->byte += n;
        if (at->byte == extent[1] - extent[0]) {
            at->flush++;
            at->byte = 0;
        }
    }
    *n_read = n_word / c->n_word;
    if (c->n_flush)
        return SLU_OK;
    /* Rows in memory: flush counts chunks, and byte counts words. */
    if (at->flush == 0) {
        at->chunk = cell->first;
        at->flush = 1;
    }
    while (n_word < want && at->chunk != UINT32_MAX) {
        size_t have = chunk_len(c, cell, (uint32_t)at->chunk) - at->byte;
        size_t n = want - n_word < have ? want - n_word : have;
        memcpy(to + n_word, c->pool + at->chunk * c->per_chunk + at->byte,
               n * sizeof *to);
        n_word += n;
        at->byte += n;
        if (n == have) {
            at->chunk = c->next[at->chunk];
            at->byte = 0;
        }
    }
    *n_read = n_word / c->n_word;
    return SLU_OK;
}
