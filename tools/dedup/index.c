/* index.c - --save-index and --against of dedup --exact and --near: writes the kept
 * documents to an index, with which later runs compare. */
#include "lib/dedup/against/index.h"

#include <string.h>

#include "lib/dedup/against/against.h"
#include "lib/flow/workfile.h"
#include "tools/dedup/dedup.h"

static struct slu_index_cfg config(const struct cli_ctx *ctx, enum dedup_mode mode)
{
    const struct dedup_opts *o = ctx->opts;

    return (struct slu_index_cfg){.trained = o->trained,
                                  .exact = mode == DEDUP_EXACT,
                                  .n_band = (unsigned)o->bands,
                                  .n_row = (unsigned)o->rows,
                                  .n_gram = (unsigned)dedup_ngram(o, DEDUP_NEAR_NGRAM),
                                  .unit = (enum slu_unit)o->unit,
                                  .seed = ctx->common.seed};
}

/* Sets the id of index i, and refuses one that was named before: the name of another
 * one was meant. */
static int name_index(struct dedup_opts *o, size_t i, struct slu_err *err)
{
    struct cli_file *file = &o->against.item[i];
    struct slu_workfile *f;
    int rc = slu_workfile_open(&f, file->path, SLU_WORKFILE_INDEX, err);

    if (rc)
        return rc;
    slu_u128_hex(slu_workfile_id(f), file->id);
    if (slu_against_is(f))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: is an index of n-grams, as for test items; leave --near and "
                      "--exact out",
                      file->path);
    for (size_t k = 0; k < i && !rc && slu_workfile_head(f)->count[0]; k++)
        if (!strcmp(o->against.item[k].id, file->id))
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s: is the same index as %s; name each index once",
                          file->path, o->against.item[k].path);
    slu_workfile_free(f);
    return rc;
}

int dedup_index_name(struct dedup_opts *o, struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < o->against.n && !rc; i++)
        rc = name_index(o, i, err);
    return rc;
}

int dedup_index_create(struct dedup_io *io, enum dedup_mode mode, struct slu_err *err)
{
    const struct dedup_opts *o = io->ctx->opts;
    const struct slu_index_cfg cfg = config(io->ctx, mode);

    if (!o->save_index)
        return SLU_OK;
    return slu_index_create(&io->index, o->save_index, &cfg,
                            slu_reader_header(io->reader), slu_reader_names(io->reader),
                            err);
}

/* Opens index i; checks that it is the one that dedup_index_name found. */
static int open_index(const struct cli_ctx *ctx, enum dedup_mode mode,
                      const struct slu_header *h, size_t i, struct slu_index **x,
                      struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    const struct cli_file *file = &o->against.item[i];
    const struct slu_index_cfg cfg = config(ctx, mode);
    char id[33];
    int rc = slu_index_open(x, file->path, &cfg, h, err);

    if (rc)
        return rc;
    slu_u128_hex(slu_index_id(*x), id);
    if (!strcmp(id, file->id))
        return SLU_OK;
    slu_index_free(*x);
    return slu_fail(err, SLU_E_MISMATCH, "%s: changed while it was read", file->path);
}

int dedup_index_read(struct dedup_io *io, enum dedup_mode mode,
                     int (*known)(void *ctx, const struct slu_index_doc *d,
                                  uint64_t number, struct slu_err *err),
                     void *ctx, struct slu_err *err)
{
    const struct dedup_opts *o = io->ctx->opts;
    struct slu_index_doc d;
    struct slu_index *x;
    uint64_t n = 0;
    int rc = SLU_OK;

    for (size_t i = 0; i < o->against.n && !rc; i++) {
        rc = open_index(io->ctx, mode, slu_reader_header(io->reader), i, &x, err);
        if (rc)
            return rc;
        while (!rc) {
            rc = slu_index_next(x, &d, err);
            if (!rc)
                rc = known(ctx, &d, n++, err);
        }
        rc = rc == SLU_EOF ? SLU_OK : rc;
        slu_index_free(x);
    }
    if (o->against.n)
        cli_stat_u64(io->ctx, "index_documents", n);
    return rc;
}

int dedup_index_count(struct cli_ctx *ctx, enum dedup_mode mode,
                      const struct slu_header *h, uint64_t *n, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    struct slu_index *x;
    int rc = SLU_OK;

    *n = 0;
    for (size_t i = 0; i < o->against.n && !rc; i++) {
        rc = open_index(ctx, mode, h, i, &x, err);
        if (rc)
            break;
        *n += slu_index_documents(x);
        slu_index_free(x);
    }
    return rc;
}
