/* bytes_xz.c - xz by liblzma, which tells the size of a stream's dictionary before it
 * allocates it; accepts several streams, and padding between them. */
#include "bytes_private.h"

#include <lzma.h>
#include <stdlib.h>
#include <string.h>

/* Always allowed, whatever -M: xz's own default of 8 MiB, and tables in addition. */
#define LEAST_BYTE  (UINT64_C(8) << 20)
#define TABLES_BYTE (UINT64_C(1) << 20)

struct xz {
    struct slu_stored_bytes *raw;
    lzma_stream z;
    bool ended;
};

static bool matches(const uint8_t *p, size_t n)
{
    static const uint8_t magic[6] = {0xfd, '7', 'z', 'X', 'Z', 0};
    return n >= sizeof magic && memcmp(p, magic, sizeof magic) == 0;
}

static int xz_open(void **state, struct slu_stored_bytes *r, uint64_t mem_byte,
                   struct slu_err *err)
{
    struct xz *s = calloc(1, sizeof *s);
    uint64_t most = mem_byte > LEAST_BYTE ? mem_byte : LEAST_BYTE;
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    s->raw = r;
    if (lzma_stream_decoder(&s->z, most + TABLES_BYTE, LZMA_CONCATENATED) != LZMA_OK) {
        free(s);
        return slu_fail_nomem(err, 1 << 16);
    }
    *state = s;
    return SLU_OK;
}

static int xz_fail(const struct xz *s, lzma_ret z, bool dry, struct slu_err *err)
{
    uint64_t at = slu_stored_tell(s->raw);
    switch (z) {
    case LZMA_MEM_ERROR:
        return slu_fail_nomem(err, lzma_memusage(&s->z));
    case LZMA_MEMLIMIT_ERROR:
        return slu_advise(
            err, SLU_ADVISE_MEMORY,
            slu_fail_at(err, SLU_E_LIMIT, at,
                        "stored byte %llu: this xz data needs a dictionary of %llu "
                        "MiB, more than memory allows",
                        (unsigned long long)at,
                        (unsigned long long)(lzma_memusage(&s->z) >> 20)));
    case LZMA_FORMAT_ERROR:
        return slu_fail_at(err, SLU_E_FORMAT, at,
                           "stored byte %llu: something other than xz data after the "
                           "end of the xz data",
                           (unsigned long long)at);
    case LZMA_OPTIONS_ERROR:
        return slu_fail_at(err, SLU_E_UNSUPPORTED, at,
                           "stored byte %llu: xz data of a kind that this liblzma does "
                           "not know",
                           (unsigned long long)at);
    default:
        if (dry)
            return slu_fail_at(err, SLU_E_TRUNCATED, at,
                               "stored byte %llu: the xz data ends early",
                               (unsigned long long)at);
        return slu_fail_at(err, SLU_E_FORMAT, at, "stored byte %llu: damaged xz data",
                           (unsigned long long)at);
    }
}

static int xz_read(void *state, uint8_t *p, size_t n, size_t *got, struct slu_err *err)
{
    struct xz *s = state;
    struct slu_stored_bytes *r = s->raw;

    *got = 0;
    while (!s->ended && *got == 0) {
        if (r->pos == r->end && !r->eof) {
            int rc = slu_stored_fill(r, err);
            if (rc)
                return rc;
        }
        bool dry = r->pos == r->end;
        s->z.next_in = r->buf + r->pos;
        s->z.avail_in = r->end - r->pos;
        s->z.next_out = p;
        s->z.avail_out = n;
        lzma_ret z = lzma_code(&s->z, dry ? LZMA_FINISH : LZMA_RUN);
        r->pos = r->end - s->z.avail_in;
        *got = n - s->z.avail_out;
        s->ended = z == LZMA_STREAM_END;
        if (!s->ended && z != LZMA_OK && !(z == LZMA_BUF_ERROR && !dry))
            return xz_fail(s, z, dry, err);
        if (!s->ended && dry && *got == 0)
            return xz_fail(s, LZMA_BUF_ERROR, dry, err);
    }
    return SLU_OK;
}

static void xz_close(void *state)
{
    struct xz *s = state;
    lzma_end(&s->z);
    free(s);
}

static const char *const suffix[] = {".xz", NULL};
static const char *const tar_suffix[] = {".txz", NULL};

const struct slu_codec slu_codec_xz = {
    .name = "xz",
    .suffix = suffix,
    .tar_suffix = tar_suffix,
    .matches = matches,
    .open = xz_open,
    .read = xz_read,
    .close = xz_close,
};
