/* index.c - --save-index and --against of dedup --exact and --near: writes the kept
 * documents to an index, with which a later run compares. */
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

int dedup_index_name(struct dedup_opts *o, struct slu_err *err)
{
    struct slu_workfile *f;

    if (!o->against.path)
        return SLU_OK;
    int rc = slu_workfile_open(&f, o->against.path, SLU_WORKFILE_INDEX, err);
    if (rc)
        return rc;
    slu_u128_hex(slu_workfile_id(f), o->against_hex);
    o->against.id = o->against_hex;
    if (slu_against_is(f))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: is an index of n-grams, as for test items; leave --near and "
                      "--exact out",
                      o->against.path);
    slu_workfile_free(f);
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

int dedup_index_read(struct dedup_io *io, enum dedup_mode mode,
                     int (*known)(void *ctx, const struct slu_index_doc *d,
                                  uint64_t number, struct slu_err *err),
                     void *ctx, struct slu_err *err)
{
    const struct dedup_opts *o = io->ctx->opts;
    const struct slu_index_cfg cfg = config(io->ctx, mode);
    struct slu_index_doc d;
    struct slu_index *x;
    uint64_t n = 0;

    if (!o->against.path)
        return SLU_OK;
    int rc =
        slu_index_open(&x, o->against.path, &cfg, slu_reader_header(io->reader), err);
    if (!rc) {
        char id[33];
        slu_u128_hex(slu_index_id(x), id);
        if (strcmp(id, o->against_hex))
            rc = slu_fail(err, SLU_E_MISMATCH, "%s: changed while it was read",
                          o->against.path);
    }
    while (!rc) {
        rc = slu_index_next(x, &d, err);
        if (!rc)
            rc = known(ctx, &d, n++, err);
    }
    if (rc == SLU_EOF)
        rc = SLU_OK;
    slu_index_free(x);
    cli_stat_u64(io->ctx, "index_documents", n);
    return rc;
}
