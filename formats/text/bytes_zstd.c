/* bytes_zstd.c - zstd (RFC 8878): frames and skippable frames, one after another. */
#include "bytes_private.h"

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "lib/base/le.h"

struct zst {
    struct slu_stored_bytes *raw;
    ZSTD_DCtx *d;
    bool inside; /* a frame has begun and not ended */
    bool full;   /* the last call filled its output: more may follow without input */
    size_t hint; /* bytes of input that the decoder asks for */
};

static bool matches(const uint8_t *p, size_t n)
{
    return n >= 4 &&
           (slu_le32(p) == ZSTD_MAGICNUMBER ||
            (slu_le32(p) & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START);
}

static int zst_open(void **state, struct slu_stored_bytes *r, uint64_t mem_byte,
                    struct slu_err *err)
{
    int window_log = 23; /* what every decoder should accept (RFC 8878, 3.1.1.1.2) */
    struct zst *s = calloc(1, sizeof *s);
    if (!s || !(s->d = ZSTD_createDCtx())) {
        free(s);
        return slu_fail_nomem(err, sizeof *s);
    }
    while (window_log < 31 && UINT64_C(2) << window_log <= mem_byte)
        window_log++;
    (void)ZSTD_DCtx_setParameter(s->d, ZSTD_d_windowLogMax, window_log);
    s->raw = r;
    s->hint = 1;
    *state = s;
    return SLU_OK;
}

static int zst_fail(const struct zst *s, size_t code, struct slu_err *err)
{
    uint64_t at = slu_stored_tell(s->raw);
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_memory_allocation:
        return slu_fail_nomem(err, 0);
    case ZSTD_error_frameParameter_windowTooLarge:
        return slu_advise(err, SLU_ADVISE_MEMORY,
                          slu_fail_at(err, SLU_E_LIMIT, at,
                                      "stored byte %llu: this zstd data needs a larger "
                                      "window than memory allows",
                                      (unsigned long long)at));
    case ZSTD_error_prefix_unknown:
        return slu_fail_at(err, SLU_E_FORMAT, at,
                           "stored byte %llu: something other than zstd data after the "
                           "end of a zstd frame",
                           (unsigned long long)at);
    default:
        return slu_fail_at(err, SLU_E_FORMAT, at,
                           "stored byte %llu: damaged zstd data (%s)",
                           (unsigned long long)at, ZSTD_getErrorName(code));
    }
}

/* Returns how many bytes to feed. A failing call of the decoder does not tell how much
 * it wrote before the error. So each call gets input that ends with one block, without
 * the three bytes of the next block's header, which the decoder also asks for; and no
 * input as long as it has output left. */
static size_t feed(const struct zst *s)
{
    size_t left = s->raw->end - s->raw->pos, want = s->hint > 3 ? s->hint - 3 : 1;
    if (s->full)
        return 0;
    return left < want ? left : want;
}

static int zst_read(void *state, uint8_t *p, size_t n, size_t *got, struct slu_err *err)
{
    struct zst *s = state;
    struct slu_stored_bytes *r = s->raw;

    *got = 0;
    while (*got == 0) {
        if (r->pos == r->end && !r->eof) {
            int rc = slu_stored_fill(r, err);
            if (rc)
                return rc;
        }
        uint64_t at = slu_stored_tell(r);
        bool dry = r->pos == r->end;
        if (dry && !s->inside)
            return SLU_OK;
        ZSTD_inBuffer in = {r->buf, r->pos + feed(s), r->pos};
        ZSTD_outBuffer out = {p, n, 0};
        size_t code = ZSTD_decompressStream(s->d, &out, &in);
        if (ZSTD_isError(code))
            return zst_fail(s, code, err);
        r->pos = in.pos;
        *got = out.pos;
        s->inside = code != 0;
        s->hint = code;
        bool was_full = s->full;
        s->full = out.pos == out.size;
        if (dry && *got == 0 && s->inside &&
            !was_full) /* no input and no output left */
            return slu_fail_at(err, SLU_E_TRUNCATED, at,
                               "stored byte %llu: the zstd data ends early",
                               (unsigned long long)at);
    }
    return SLU_OK;
}

static void zst_close(void *state)
{
    struct zst *s = state;
    ZSTD_freeDCtx(s->d);
    free(s);
}

static const char *const suffix[] = {".zst", ".zstd", NULL};
static const char *const tar_suffix[] = {".tzst", NULL};

const struct slu_codec slu_codec_zstd = {
    .name = "zstd",
    .suffix = suffix,
    .tar_suffix = tar_suffix,
    .matches = matches,
    .open = zst_open,
    .read = zst_read,
    .close = zst_close,
};
