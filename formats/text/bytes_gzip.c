/* bytes_gzip.c - gzip (RFC 1952) by zlib, which checks length and CRC-32 of every
 * member. */
#include "bytes_private.h"

#include <stdlib.h>
#include <zlib.h>

struct gzip {
    struct slu_stored_bytes *raw;
    z_stream z;
    bool between; /* after a member's end, before the next one */
    bool ended;
};

static bool matches(const uint8_t *p, size_t n)
{
    return n >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8;
}

static int gzip_open(void **state, struct slu_stored_bytes *r, uint64_t mem_byte,
                     struct slu_err *err)
{
    (void)mem_byte;
    struct gzip *g = calloc(1, sizeof *g);
    if (!g)
        return slu_fail_nomem(err, sizeof *g);
    g->raw = r;
    if (inflateInit2(&g->z, 15 + 16) != Z_OK) { /* + 16: gzip framing only */
        free(g);
        return slu_fail_nomem(err, 1 << 16);
    }
    *state = g;
    return SLU_OK;
}

/* Continues after a member. Accepts another member, the end, or zero bytes (a tape's
 * padding, which gzip ignores too) and then the end. */
static int next_member(struct gzip *g, struct slu_err *err)
{
    struct slu_stored_bytes *r = g->raw;
    bool padding = false;
    for (;;) {
        if (r->end - r->pos < 3 && !r->eof) {
            int rc = slu_stored_fill(r, err);
            if (rc)
                return rc;
        }
        if (r->pos == r->end) {
            g->ended = true;
            return SLU_OK;
        }
        if (r->buf[r->pos] != 0)
            break;
        padding = true;
        r->pos++;
    }
    if (padding || !matches(r->buf + r->pos, r->end - r->pos))
        return slu_fail_at(err, SLU_E_FORMAT, slu_stored_tell(r),
                           "stored byte %llu: something other than gzip data after the "
                           "end of the gzip data",
                           (unsigned long long)slu_stored_tell(r));
    g->between = false;
    return inflateReset(&g->z) == Z_OK ? SLU_OK : slu_fail_nomem(err, 1 << 16);
}

static int gzip_read(void *state, uint8_t *p, size_t n, size_t *got,
                     struct slu_err *err)
{
    struct gzip *g = state;
    struct slu_stored_bytes *r = g->raw;
    uInt room = n > (1u << 30) ? 1u << 30 : (uInt)n;

    *got = 0;
    while (!g->ended && *got == 0) {
        int rc = g->between ? next_member(g, err) : SLU_OK;
        if (!rc && !g->ended && r->pos == r->end && !r->eof)
            rc = slu_stored_fill(r, err);
        if (rc || g->ended)
            return rc;
        uint64_t at = slu_stored_tell(r);
        if (r->pos == r->end)
            return slu_fail_at(err, SLU_E_TRUNCATED, at,
                               "stored byte %llu: the gzip data ends early",
                               (unsigned long long)at);
        g->z.next_in = r->buf + r->pos;
        g->z.avail_in = (uInt)(r->end - r->pos);
        g->z.next_out = p;
        g->z.avail_out = room;
        int z = inflate(&g->z, Z_NO_FLUSH);
        r->pos = r->end - g->z.avail_in;
        *got = room - g->z.avail_out;
        at = slu_stored_tell(r);
        if (z == Z_STREAM_END)
            g->between = true;
        else if (z == Z_MEM_ERROR)
            return slu_fail_nomem(err, 1 << 16);
        else if (z != Z_OK && z != Z_BUF_ERROR)
            return slu_fail_at(
                err, SLU_E_FORMAT, at, "stored byte %llu: damaged gzip data (%s)",
                (unsigned long long)at, g->z.msg ? g->z.msg : "no reason");
    }
    return SLU_OK;
}

static void gzip_close(void *state)
{
    struct gzip *g = state;
    inflateEnd(&g->z);
    free(g);
}

static const char *const suffix[] = {".gz", NULL};
static const char *const tar_suffix[] = {".tgz", NULL};

const struct slu_codec slu_codec_gzip = {
    .name = "gzip",
    .suffix = suffix,
    .tar_suffix = tar_suffix,
    .matches = matches,
    .open = gzip_open,
    .read = gzip_read,
    .close = gzip_close,
};
