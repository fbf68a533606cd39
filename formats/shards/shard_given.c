/* shard_given.c - takes shards of another set as they are (struct slu_shards_given). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/shard_private.h"

const struct slu_shards_given_bucket *
slu_shards_given_bucket(const struct slu_shards *s, uint64_t length)
{
    const struct slu_shards_given *g = s->cfg.given;

    for (unsigned i = 0; g && i < g->n_bucket; i++)
        if (g->bucket[i].length == length)
            return &g->bucket[i];
    return NULL;
}

/* Copies a file whose bytes are known. */
static int copy(const char *from, const char *to, uint64_t xxh3, struct slu_err *err)
{
    enum { PIECE = 1 << 18 };
    struct slu_buf piece = SLU_BUF_INIT;
    struct slu_digest d = {0};
    struct slu_out *out = NULL;
    size_t got = PIECE;
    int fd = -1, rc = slu_open_regular(&fd, from, NULL, err);

    if (!rc)
        rc = slu_out_open(&out, to, err);
    if (!rc)
        rc = slu_out_digest(out, &d, err);
    if (!rc)
        rc = slu_buf_reserve(&piece, PIECE, err);
    while (!rc && got == PIECE) {
        rc = slu_read_full(fd, piece.data, PIECE, &got, err);
        if (rc)
            slu_err_at(err, "%s", from);
        else
            rc = slu_out_write(out, piece.data, got, err);
    }
    if (!rc) {
        rc = slu_out_close(out, err);
        out = NULL;
    }
    if (!rc && d.xxh3 != xxh3)
        rc = slu_fail(err, SLU_E_CHECKSUM,
                      "%s: is not the file that its set's manifest.jsonl lists", from);
    slu_out_abort(out);
    slu_buf_release(&piece);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int take_file(const struct slu_shards *s, const char *folder, const char *name,
                     uint64_t n_byte, uint64_t xxh3, struct slu_err *err)
{
    struct slu_buf from = SLU_BUF_INIT, to = SLU_BUF_INIT;
    struct stat st;
    int rc = slu_buf_printf(&from, err, "%s/%s/%s", s->cfg.given->dir, folder, name);

    if (!rc)
        rc = slu_buf_printf(&to, err, "%s/%s/%s", s->dir, folder, name);
    const char *was = (const char *)from.data, *is = (const char *)to.data;
    if (!rc && stat(was, &st))
        rc = slu_fail_errno(err, "%s", was);
    if (!rc && (uint64_t)st.st_size != n_byte)
        rc = slu_fail(err, SLU_E_TRUNCATED,
                      "%s: has %llu bytes; its set's manifest.jsonl says %llu", was,
                      (unsigned long long)st.st_size, (unsigned long long)n_byte);
    if (!rc && unlink(is) && errno != ENOENT)
        rc = slu_fail_errno(err, "%s", is);
    if (!rc && link(was, is)) /* another file system, or one without links */
        rc = copy(was, is, xxh3, err);
    slu_buf_release(&from);
    slu_buf_release(&to);
    return rc;
}

static int take_shard(struct slu_shards *s, struct slu_shards_bucket *b,
                      const struct slu_shard_facts *f, struct slu_err *err)
{
    int rc = slu_grow(&b->done, &b->cap_done, f->number + 1, sizeof *b->done, err);

    if (rc)
        return rc;
    for (; b->n_done <= f->number; b->n_done++)
        b->done[b->n_done] = (struct slu_shards_done){.gone = true};
    b->done[f->number] = (struct slu_shards_done){.facts = *f, .given = true};
    for (unsigned i = 0; i < slu_shards_n_file(s) && !rc; i++) {
        char name[256];
        s->cfg.format->file_name(s->state, f->number, i, name, sizeof name);
        rc = take_file(s, b->pub.name, name, f->n_byte[i], f->xxh3[i], err);
    }
    return rc;
}

static int take_bucket(struct slu_shards *s, struct slu_shards_bucket *b,
                       const struct slu_shards_given_bucket *g, struct slu_err *err)
{
    const size_t n_byte = g->n_shard * sizeof *g->facts;
    struct slu_shard_facts *f = malloc(n_byte ? n_byte : 1);
    struct slu_buf path = SLU_BUF_INIT;
    int rc = f ? SLU_OK : slu_fail_nomem(err, n_byte);

    if (!rc)
        memcpy(f, g->facts, n_byte);
    if (!rc)
        rc = slu_buf_printf(&path, err, "%s/%s", s->cfg.given->dir, b->pub.name);
    if (!rc && s->cfg.format->facts)
        rc =
            s->cfg.format->facts(s->state, (const char *)path.data, f, g->n_shard, err);
    slu_buf_clear(&path);
    if (!rc)
        rc = slu_buf_printf(&path, err, "%s/%s", s->dir, b->pub.name);
    if (!rc)
        rc = slu_mkdirs((const char *)path.data, err);
    for (uint64_t k = 0; k < g->n_shard && !rc; k++)
        if (!g->changed[k])
            rc = take_shard(s, b, &f[k], err);
    slu_buf_release(&path);
    free(f);
    return rc;
}

int slu_shards_take_given(struct slu_shards *s, struct slu_err *err)
{
    int rc = SLU_OK;

    for (unsigned i = 0; i < s->n_bucket && !rc; i++) {
        const struct slu_shards_given_bucket *g =
            slu_shards_given_bucket(s, s->bucket[i].pub.length);
        if (g)
            rc = take_bucket(s, &s->bucket[i], g, err);
    }
    return rc;
}
