#include "spill.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/io.h"

#define DISCARD_MIN (128 << 10) /* smaller extents are not worth a system call */

int slu_spill_open(struct slu_spill *sp, const char *dir, unsigned bits,
                   struct slu_spill_writer *w, struct slu_err *err)
{
    size_t n_cell = (size_t)1 << bits;

    memset(sp, 0, sizeof *sp);
    sp->bits = bits;
    sp->writer = w;
    sp->dir = dir;
    sp->file.fd = sp->file.direct_fd = -1;
    sp->cell = calloc(n_cell, sizeof *sp->cell);
    if (!sp->cell)
        return slu_fail_nomem(err, n_cell * sizeof *sp->cell);
    int rc = slu_spill_file_open(&sp->file, dir, err);
    if (rc)
        slu_spill_release(sp);
    return rc;
}

void slu_spill_release(struct slu_spill *sp)
{
    slu_spill_file_release(&sp->file);
    free(sp->cell);
    free(sp->table);
    sp->cell = NULL;
    sp->table = NULL;
}

static int append(struct slu_spill *sp, const void *p, size_t n, struct slu_err *err)
{
    sp->end_byte += n;
    return slu_spill_writer_put(sp->writer, p, n, err);
}

void slu_spill_begin_flush(struct slu_spill *sp, bool direct)
{
    if (!direct && sp->n_cached == sp->n_flush)
        sp->n_cached++;
    slu_spill_writer_begin(sp->writer, &sp->file, sp->end_byte, direct);
}

int slu_spill_put(struct slu_spill *sp, size_t c, const struct slu_rec *r,
                  struct slu_err *err)
{
    struct slu_spill_cell *cell = &sp->cell[c];
    uint64_t n = slu_rec_size(r->n_byte);

    if (cell->n_rec == 0 || slu_u128_cmp(r->key, cell->min) < 0)
        cell->min = r->key;
    if (cell->n_rec == 0 || slu_u128_cmp(r->key, cell->max) > 0)
        cell->max = r->key;
    cell->n_rec++;
    cell->n_byte += n;
    return append(sp, r, n, err);
}

int slu_spill_end_flush(struct slu_spill *sp, const uint64_t *start,
                        struct slu_err *err)
{
    int rc =
        slu_grow(&sp->table, &sp->cap_flush, sp->n_flush + 1, sizeof *sp->table, err);

    if (rc)
        return rc;
    sp->table[sp->n_flush++] = sp->end_byte;
    rc = append(sp, start, (((size_t)1 << sp->bits) + 1) * sizeof *start, err);
    sp->end_byte = (sp->end_byte + SLU_SPILL_ALIGN - 1) & -(uint64_t)SLU_SPILL_ALIGN;
    return rc ? rc : slu_spill_writer_end(sp->writer, err);
}

int slu_spill_read(const struct slu_spill *sp, void *p, size_t n, uint64_t from_byte,
                   struct slu_err *err)
{
    int rc = slu_pread_full(sp->file.fd, p, n, from_byte, err);

    return rc ? slu_err_at(err, "temporary file in %s", sp->dir) : SLU_OK;
}

int slu_spill_extent(const struct slu_spill *sp, size_t flush, size_t c0, size_t c1,
                     uint64_t *from_byte, uint64_t *to_byte, struct slu_err *err)
{
    uint64_t at = sp->table[flush];
    int rc = slu_spill_read(sp, from_byte, 8, at + c0 * 8, err);

    if (!rc)
        rc = slu_spill_read(sp, to_byte, 8, at + c1 * 8, err);
    if (!rc && (*from_byte > *to_byte || *to_byte > at))
        rc =
            slu_fail(err, SLU_E_FORMAT, "temporary file in %s: damaged table", sp->dir);
    return rc;
}

uint64_t slu_spill_disk_free(const struct slu_spill *sp)
{
    struct statvfs v;

    return fstatvfs(sp->file.fd, &v) ? 0 : (uint64_t)v.f_bavail * v.f_frsize;
}

void slu_spill_discard(const struct slu_spill *sp, uint64_t from_byte, uint64_t to_byte)
{
#ifdef FALLOC_FL_PUNCH_HOLE
    uint64_t from = (from_byte + 4095) & ~UINT64_C(4095);
    uint64_t to = to_byte & ~UINT64_C(4095);

    if (to > from && to - from >= DISCARD_MIN)
        (void)!fallocate(sp->file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         (off_t)from, (off_t)(to - from));
#else
    (void)sp, (void)from_byte, (void)to_byte;
#endif
}

/* ---- one cell, record by record ---- */

void slu_spill_cursor_init(struct slu_spill_cursor *cu, const struct slu_spill *sp,
                           size_t cell, uint8_t *buf, size_t cap)
{
    memset(cu, 0, sizeof *cu);
    cu->sp = sp;
    cu->cell = cell;
    cu->buf = buf;
    cu->cap = cap;
}

static int refill(struct slu_spill_cursor *cu, struct slu_err *err)
{
    while (cu->at_byte == cu->to_byte) {
        if (cu->flush == cu->sp->n_flush)
            return SLU_EOF;
        int rc = slu_spill_extent(cu->sp, cu->flush++, cu->cell, cu->cell + 1,
                                  &cu->at_byte, &cu->to_byte, err);
        if (rc)
            return rc;
    }
    uint64_t n = cu->to_byte - cu->at_byte;
    if (n > cu->cap)
        n = cu->cap;
    int rc = slu_spill_read(cu->sp, cu->buf, n, cu->at_byte, err);
    if (rc)
        return rc;
    if (cu->discard)
        slu_spill_discard(cu->sp, cu->at_byte, cu->at_byte + n);
    cu->at_byte += n;
    cu->pos = 0;
    cu->len = n;
    return SLU_OK;
}

int slu_spill_cursor_some(struct slu_spill_cursor *cu, uint64_t max, const uint8_t **p,
                          size_t *n, struct slu_err *err)
{
    if (cu->pos == cu->len) {
        int rc = refill(cu, err);
        if (rc)
            return rc;
    }
    *p = cu->buf + cu->pos;
    *n = cu->len - cu->pos;
    if (*n > max)
        *n = max;
    cu->pos += *n;
    return SLU_OK;
}

int slu_spill_cursor_read(struct slu_spill_cursor *cu, void *p, uint64_t n,
                          struct slu_err *err)
{
    uint8_t *dst = p;

    for (uint64_t left = n; left > 0;) {
        const uint8_t *src;
        size_t some;
        int rc = slu_spill_cursor_some(cu, left, &src, &some, err);
        if (rc == SLU_EOF && left < n)
            return slu_fail(err, SLU_E_FORMAT, "temporary file in %s: a record is cut",
                            cu->sp->dir);
        if (rc)
            return rc;
        memcpy(dst, src, some);
        dst += some;
        left -= some;
    }
    return SLU_OK;
}
