#include "bytelog.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/pages.h"

#define LEAST (UINT64_C(1) << 20)

struct slu_bytelog {
    uint8_t *mem; /* cap bytes of address space, from the first put on; pages count once
                     they are used */
    size_t cap, len;
    size_t pos; /* reading: position of the next byte in mem */
    int fd;     /* -1: all bytes are in mem */
    bool reading;
    uint64_t file_byte, file_pos;
    char *tmpdir;
};

int slu_bytelog_new(struct slu_bytelog **out, uint64_t budget_byte, const char *tmpdir,
                    struct slu_err *err)
{
    struct slu_bytelog *s = calloc(1, sizeof *s);
    *out = s;
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    s->fd = -1;
    s->cap = (budget_byte < LEAST ? LEAST : budget_byte) & ~UINT64_C(4095);
    s->tmpdir = strdup(tmpdir);
    if (s->tmpdir)
        return SLU_OK;
    slu_bytelog_free(s);
    *out = NULL;
    return slu_fail_nomem(err, strlen(tmpdir));
}

static int map(struct slu_bytelog *s, struct slu_err *err)
{
    s->mem = slu_pages_new(s->cap, SLU_PAGES_SMALL);
    if (!s->mem)
        return slu_fail_nomem(err, s->cap);
    slu_pages_huge(s->mem, s->cap);
    return SLU_OK;
}

static int write_file(struct slu_bytelog *s, const void *p, size_t n,
                      struct slu_err *err)
{
    int rc = s->fd < 0 ? slu_tmpfile(&s->fd, s->tmpdir, err) : SLU_OK;
    if (!rc && slu_write_full(s->fd, p, n, err))
        rc = slu_err_at(err, "%s: cannot hold the data that exceeds memory", s->tmpdir);
    if (!rc)
        s->file_byte += n;
    return rc;
}

int slu_bytelog_put(struct slu_bytelog *s, const void *p, size_t n, struct slu_err *err)
{
    int rc = s->mem || !n ? SLU_OK : map(s, err);
    if (rc || !n)
        return rc;
    if (n > s->cap - s->len) {
        rc = write_file(s, s->mem, s->len, err);
        s->len = 0;
        if (!rc && n > s->cap)
            return write_file(s, p, n, err);
        if (rc)
            return rc;
    }
    memcpy(s->mem + s->len, p, n);
    s->len += n;
    return SLU_OK;
}

int slu_bytelog_put_rec(struct slu_bytelog *s, const void *head, size_t n_head,
                        const struct slu_slice *piece, unsigned n_piece,
                        struct slu_err *err)
{
    static const uint8_t zero[8];
    size_t n = 0;
    int rc = slu_bytelog_put(s, head, n_head, err);
    for (unsigned i = 0; i < n_piece && !rc; i++) {
        rc = slu_bytelog_put(s, piece[i].p, piece[i].n, err);
        n += piece[i].n;
    }
    return rc ? rc : slu_bytelog_put(s, zero, -n & 7, err);
}

int slu_bytelog_rewind(struct slu_bytelog *s, size_t max_get, struct slu_err *err)
{
    s->pos = 0;
    if (s->fd < 0)
        return SLU_OK;
    if (s->reading) {
        s->file_pos = s->len = 0;
        return SLU_OK;
    }
    s->reading = true;
    int rc = write_file(s, s->mem, s->len, err);
    s->len = 0;
    slu_pages_free(s->mem, s->cap);
    s->cap = max_get < LEAST / 2 ? LEAST : (2 * max_get + 4095) & ~(size_t)4095;
    s->mem = slu_pages_new(s->cap, SLU_PAGES_SMALL);
    return s->mem ? rc : slu_fail_nomem(err, s->cap);
}

/* Moves the unread bytes to the front and reads more. */
static int refill(struct slu_bytelog *s, struct slu_err *err)
{
    size_t left = s->len - s->pos, room = s->cap - left;
    uint64_t rest = s->file_byte - s->file_pos;
    memmove(s->mem, s->mem + s->pos, left);
    s->pos = 0;
    s->len = left;
    size_t want = rest < room ? (size_t)rest : room;
    int rc = slu_pread_full(s->fd, s->mem + left, want, s->file_pos, err);
    if (rc)
        return rc;
    s->file_pos += want;
    s->len += want;
    return SLU_OK;
}

static int ends_early(const struct slu_bytelog *s, struct slu_err *err)
{
    return slu_fail(err, SLU_E_TRUNCATED, "%s: the temporary file ends early",
                    s->tmpdir);
}

int slu_bytelog_get(struct slu_bytelog *s, const void **p, size_t n,
                    struct slu_err *err)
{
    if (s->len - s->pos < n && s->fd >= 0) {
        int rc = refill(s, err);
        if (rc)
            return rc;
    }
    if (s->len - s->pos < n)
        return s->len == s->pos ? SLU_EOF : ends_early(s, err);
    *p = s->mem + s->pos;
    s->pos += n;
    return SLU_OK;
}

int slu_bytelog_get_rest(struct slu_bytelog *s, const void **p, size_t n,
                         struct slu_err *err)
{
    int rc = slu_bytelog_get(s, p, (n + 7) & ~(size_t)7, err);
    return rc == SLU_EOF ? ends_early(s, err) : rc;
}

uint64_t slu_bytelog_spilled(const struct slu_bytelog *s)
{
    return s->file_byte;
}

void slu_bytelog_free(struct slu_bytelog *s)
{
    if (!s)
        return;
    slu_pages_free(s->mem, s->cap);
    if (s->fd >= 0)
        close(s->fd);
    free(s->tmpdir);
    free(s);
}
