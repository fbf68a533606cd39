/* olmo_read.c - reads back the files of ids for OLMo-core that sluice writes: the ids,
 * and rows that cover all ids but padding. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/shardset.h"
#include "lib/base/io.h"
#include "lib/base/le.h"
#include "olmo_rows.h"

struct olmo {
    int fd;
    const char *path;         /* of the ids, for messages; borrowed */
    uint64_t n_id, n_seq, at; /* ids of a sequence; number of sequences; the next one */
    unsigned tok_bytes;
    struct slu_olmo_rows *rows;
    struct slu_olmo_row row; /* the next row, if have_row */
    bool have_row;
};

static void olmo_close(void *state)
{
    struct olmo *o = state;
    if (!o)
        return;
    if (o->fd >= 0)
        close(o->fd);
    slu_olmo_rows_close(o->rows);
    free(o);
}

static int next_row(struct olmo *o, struct slu_err *err)
{
    int rc = slu_olmo_rows_next(o->rows, &o->row, err);
    o->have_row = !rc;
    return rc == SLU_EOF ? SLU_OK : rc;
}

static int olmo_open(void **state, const char *const *path,
                     const struct slu_shard_bucket *b, uint64_t n_seq,
                     struct slu_err *err)
{
    struct olmo *o = calloc(1, sizeof *o);
    struct stat st;
    *state = NULL;
    if (!o)
        return slu_fail_nomem(err, sizeof *o);
    *o = (struct olmo){.fd = open(path[0], O_RDONLY | O_CLOEXEC),
                       .path = path[0],
                       .n_id = b->n_id,
                       .n_seq = n_seq,
                       .tok_bytes = b->tok_bytes};
    int rc = SLU_OK;
    uint64_t want;
    if (o->fd < 0 || fstat(o->fd, &st))
        rc = slu_fail_errno(err, "%s: cannot be opened", path[0]);
    else if (__builtin_mul_overflow(n_seq, b->n_id * b->tok_bytes, &want) ||
             (uint64_t)st.st_size != want)
        rc =
            slu_fail(err, SLU_E_TRUNCATED,
                     "%s: has %llu bytes; %llu sequences of %llu ids take %llu",
                     path[0], (unsigned long long)st.st_size, (unsigned long long)n_seq,
                     (unsigned long long)b->n_id, (unsigned long long)want);
    if (!rc)
        rc = slu_olmo_rows_open(&o->rows, path[1], n_seq * b->n_id, err);
    if (!rc)
        rc = next_row(o, err);
    if (rc)
        olmo_close(o);
    else
        *state = o;
    return rc;
}

/* Checks the rows of the current sequence: they begin with its first id, have no gaps,
 * and reach its end or its padding. */
static int check_rows(struct olmo *o, struct slu_err *err)
{
    uint64_t begin = o->at * o->n_id, end = begin + o->n_id, at = begin;
    int rc = SLU_OK;
    while (!rc && o->have_row && o->row.start < end) {
        if (o->row.start != at || o->row.end > end)
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: the rows beside it are wrong in sequence %llu: a row "
                            "has ids %llu to %llu, and the sequence ids %llu to %llu",
                            o->path, (unsigned long long)o->at,
                            (unsigned long long)o->row.start,
                            (unsigned long long)o->row.end, (unsigned long long)begin,
                            (unsigned long long)end);
        at = o->row.end;
        rc = next_row(o, err);
    }
    if (!rc && at == begin)
        rc = slu_fail(err, SLU_E_FORMAT, "%s: sequence %llu has no row beside it",
                      o->path, (unsigned long long)o->at);
    return rc;
}

static int olmo_next(void *state, struct slu_buf *ids, struct slu_err *err)
{
    struct olmo *o = state;
    size_t n_byte = o->n_id * o->tok_bytes;
    /* A further row would exceed the ids, which slu_olmo_rows reports. */
    if (o->at == o->n_seq)
        return SLU_EOF;
    slu_buf_clear(ids);
    int rc = slu_buf_reserve(ids, o->n_id * 4, err);
    if (!rc)
        rc = slu_pread_full(o->fd, ids->data, n_byte, o->at * n_byte, err);
    if (!rc)
        rc = check_rows(o, err);
    if (rc)
        return rc;
    uint32_t *to = (uint32_t *)(void *)ids->data;
    for (size_t i = o->n_id; i-- > 0;) /* from the end, because ids widen in place */
        to[i] = o->tok_bytes == 2 ? slu_le16(ids->data + 2 * i)
                                  : slu_le32(ids->data + 4 * i);
    ids->len = o->n_id * 4;
    o->at++;
    return SLU_OK;
}

const struct slu_shard_layout slu_shard_layout_olmo = {
    .format = "olmo",
    .open = olmo_open,
    .next = olmo_next,
    .close = olmo_close,
};
