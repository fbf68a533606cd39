/* shard_given.c - takes shards of another set as they are (struct slu_shards_given). */
#include <stdlib.h>
#include <string.h>

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
        char name[SLU_SHARD_NAME];
        slu_shards_file_name(s, b, f->number, i, name);
        rc = slu_set_link(&s->out, s->cfg.given->dir, name,
                          &(struct slu_digest){f->n_byte[i], f->xxh3[i]}, err);
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
        rc = s->cfg.format->facts(s->state, &b->pub, (const char *)path.data, f,
                                  g->n_shard, err);
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
