#include "formats/shards/zstd_frame.h"

#include <zstd.h>

size_t slu_zstd_frame_bound(size_t n)
{
    return ZSTD_compressBound(n);
}

int slu_zstd_frame(struct slu_buf *out, const void *p, size_t n, int level,
                   struct slu_err *err)
{
    int rc = slu_buf_reserve(out, ZSTD_compressBound(n), err);
    if (rc)
        return rc;
    ZSTD_CCtx *c = ZSTD_createCCtx();
    if (!c)
        return slu_fail_nomem(err, n);
    ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
    size_t got = ZSTD_compress2(c, out->data + out->len, out->cap - out->len, p, n);
    ZSTD_freeCCtx(c);
    if (ZSTD_isError(got))
        return slu_fail(err, SLU_E_NOMEM, "zstd: %s", ZSTD_getErrorName(got));
    out->len += got;
    return SLU_OK;
}
