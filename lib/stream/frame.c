#include "frame.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "joint.h"
#include "lib/base/hash.h"
#include "lib/base/le.h"
#include "lib/base/xxh3.h"

static const uint8_t magic[4] = {0xF5, 'T', 'K', 'S'};
static const uint8_t zeros[SLU_FRAME_ALIGN];

void slu_frame_release(struct slu_frame *f)
{
    slu_buf_release(&f->stored);
    slu_buf_release(&f->raw);
    slu_buf_release(&f->early);
    slu_buf_release(&f->tok);
}

void slu_frames_free(struct slu_frames *fs)
{
    if (!fs)
        return;
    for (size_t i = 0; i < fs->cap; i++)
        slu_frame_release(&fs->f[i]);
    free(fs->f);
    free(fs);
}

static uint64_t padded(uint64_t n)
{
    return (n + SLU_FRAME_ALIGN - 1) & ~(uint64_t)(SLU_FRAME_ALIGN - 1);
}

uint64_t slu_frame_span(const struct slu_frame *f)
{
    return SLU_FRAME_HEADER + padded(f->stored_byte);
}

/* What files begin with that are no streams, and what to do with them. */
static const struct {
    const char *first;
    const char *is;
} others[] = {
    {"\xF5SLSCHD\n", /* formats/SCHEDULE.md */
     "this is a schedule, not a token stream; 'inspect FILE' reads it, from a file and "
     "not from a pipe"},
    {"SLUPLAN\n", /* formats/PLAN.md */
     "this is a plan of pack, not a token stream; give it to pack, beside the stream "
     "that it was made for"},
    {"SLUNEAR", /* lib/flow/workfile.h */
     "this is an index or a work file, not a token stream; name the stream"},
    {"{\n  \"program\": \"shuffle\",\n  \"format\": ",
     "this is the report of a set, not a token stream; 'inspect FOLDER' reads the set"},
    {"{\n  \"program\": ", /* tools/cli/report.c, cli_manifest.c */
     "this is a report, not a token stream; 'inspect --merge-stats FILE' reads it"},
    {"{\"programs\": [", "this is a merged report, not a token stream; 'inspect "
                         "--merge-stats --table FILE' "
                         "reads it"},
    {"PAR1", "this is a Parquet file, not a token stream; tokenize makes one of it"},
    {"\x28\xB5\x2F\xFD",
     "this is compressed with zstd, and a stream is not compressed as a file; if it is "
     "one, use 'zstd -dc FILE | …', and if it is text, tokenize makes one of it"},
    {"\x1F\x8B",
     "this is compressed with gzip, and a stream is not compressed as a file; if it is "
     "one, use 'gzip -dc FILE | …', and if it is text, tokenize makes one of it"},
};

/* Whether p[0, n) has no byte that texts do not have. */
static bool is_text(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p[i] < ' ' && !memchr("\t\n\f\r", p[i], 4)) || p[i] == 0x7f ||
            p[i] >= 0xf5)
            return false;
    return n;
}

int slu_frame_begins(const uint8_t *p, size_t n, struct slu_err *err)
{
    if (!memcmp(p, magic, n < 4 ? n : 4))
        return SLU_OK;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t k = strlen(others[i].first);
        if (n >= k && !memcmp(p, others[i].first, k))
            return slu_fail(err, SLU_E_FORMAT, "%s", others[i].is);
    }
    if (is_text(p, n))
        return slu_fail(err, SLU_E_FORMAT,
                        "this is text, not a token stream; tokenize makes one of it");
    return slu_advise(
        err, SLU_ADVISE_INPUT_FORMAT,
        slu_fail(err, SLU_E_FORMAT, "not a token stream; make one with tokenize"));
}

int slu_frame_parse(struct slu_frame *f, const uint8_t h[SLU_FRAME_HEADER],
                    uint64_t number, struct slu_err *err)
{
    if (memcmp(h, magic, 4))
        return number ? slu_fail(err, SLU_E_FORMAT,
                                 "no frame begins here; the stream is damaged")
                      : slu_frame_begins(h, SLU_FRAME_HEADER, err);
    if (slu_le64(h + 56) != slu_hash64(h, 56))
        return slu_fail(
            err, SLU_E_CHECKSUM,
            "frame %llu: its header's checksum is wrong; the stream is damaged",
            (unsigned long long)number);
    f->type = slu_le32(h + 4);
    f->flags = slu_le32(h + 8);
    f->number = slu_le64(h + 16);
    f->raw_byte = slu_le64(h + 24);
    f->stored_byte = slu_le64(h + 32);
    f->aux = slu_le64(h + 40);
    f->payload_hash = slu_le64(h + 48);
    if (f->number != number)
        return slu_fail(err, SLU_E_FORMAT,
                        "frame %llu stands where frame %llu should; frames are missing",
                        (unsigned long long)f->number, (unsigned long long)number);
    bool skippable = h[4] >= 'a' && h[4] <= 'z';
    uint32_t known = SLU_FLAG_ZSTD;
    if (f->type == SLU_DATA)
        known |= SLU_FLAG_SEQ_CONTINUES | SLU_FLAG_SEG_CONTINUES;
    if ((f->flags & SLU_FLAG_SEG_CONTINUES) && !(f->flags & SLU_FLAG_SEQ_CONTINUES))
        known &= ~SLU_FLAG_SEG_CONTINUES;
    if (((f->flags & ~known) && !skippable) || slu_le32(h + 12))
        return slu_fail(
            err, SLU_E_UNSUPPORTED,
            "frame %llu has flags that this version does not know; use a newer one",
            (unsigned long long)number);
    if (f->raw_byte > SLU_FRAME_PAYLOAD || f->stored_byte > SLU_FRAME_PAYLOAD)
        return slu_fail(
            err, SLU_E_LIMIT, "frame %llu claims %llu bytes; the limit is %llu",
            (unsigned long long)number,
            (unsigned long long)(f->raw_byte > f->stored_byte ? f->raw_byte
                                                              : f->stored_byte),
            (unsigned long long)SLU_FRAME_PAYLOAD);
    if (!(f->flags & SLU_FLAG_ZSTD) && f->raw_byte != f->stored_byte)
        return slu_fail(err, SLU_E_FORMAT, "frame %llu: stored and raw lengths differ",
                        (unsigned long long)number);
    return SLU_OK;
}

int slu_frame_check(const struct slu_frame *f, struct slu_err *err)
{
    if (f->passed)
        return SLU_OK;
    size_t pad = f->stored.len - f->stored_byte;
    const uint64_t hash =
        f->hashed ? f->stored_hash : slu_hash64(f->stored.data, f->stored.len);
    if (hash != f->payload_hash)
        return slu_fail(err, SLU_E_CHECKSUM,
                        "frame %llu: its checksum is wrong; the stream is damaged",
                        (unsigned long long)f->number);
    if (pad && memcmp(f->stored.data + f->stored_byte, zeros, pad))
        return slu_fail(err, SLU_E_FORMAT, "frame %llu: its padding bytes are not zero",
                        (unsigned long long)f->number);
    return SLU_OK;
}

int slu_frame_payload(struct slu_frame *f, const uint8_t **p, size_t *n,
                      struct slu_err *err)
{
    if (!(f->flags & SLU_FLAG_ZSTD)) {
        *p = f->stored.data;
        *n = f->passed ? f->stored.len : f->stored_byte;
        return SLU_OK;
    }
    slu_buf_clear(&f->raw);
    int rc = slu_buf_reserve(&f->raw, f->raw_byte ? f->raw_byte : 1, err);
    if (rc)
        return rc;
    if (ZSTD_getFrameContentSize(f->stored.data, f->stored_byte) != f->raw_byte)
        return slu_fail(err, SLU_E_FORMAT,
                        "frame %llu: its compressed content has another length than "
                        "its header says",
                        (unsigned long long)f->number);
    size_t r =
        ZSTD_decompress(f->raw.data, f->raw_byte, f->stored.data, f->stored_byte);
    if (ZSTD_isError(r) || r != f->raw_byte)
        return slu_fail(err, SLU_E_FORMAT, "frame %llu: cannot be decompressed (%s)",
                        (unsigned long long)f->number,
                        ZSTD_isError(r) ? ZSTD_getErrorName(r) : "length");
    f->raw.len = r;
    *p = f->raw.data;
    *n = r;
    return SLU_OK;
}

void slu_framer_release(struct slu_framer *w)
{
    ZSTD_freeCCtx(w->zstd);
    slu_buf_release(&w->packed);
    slu_frame_release(&w->pass);
}

static size_t sum(const struct slu_span *p, unsigned n)
{
    size_t n_byte = 0;
    for (unsigned i = 0; i < n; i++)
        n_byte += p[i].n_byte;
    return n_byte;
}

int slu_framer_pack(struct slu_framer *w, const struct slu_span *p, unsigned n,
                    int level, struct slu_err *err)
{
    if (!w->zstd && !(w->zstd = ZSTD_createCCtx()))
        return slu_fail_nomem(err, 1 << 20);
    const size_t n_byte = sum(p, n);
    slu_buf_clear(&w->packed);
    int rc = slu_buf_reserve(&w->packed, padded(ZSTD_compressBound(n_byte)), err);
    if (rc)
        return rc;
    ZSTD_CCtx_reset(w->zstd, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setPledgedSrcSize(w->zstd, n_byte);
    ZSTD_outBuffer o = {w->packed.data, w->packed.cap, 0};
    size_t r = 0;
    for (unsigned i = 0; i < n && !ZSTD_isError(r); i++) {
        ZSTD_inBuffer in = {p[i].p, p[i].n_byte, 0};
        r = ZSTD_compressStream2(w->zstd, &o, &in,
                                 i + 1 < n ? ZSTD_e_continue : ZSTD_e_end);
    }
    if (r) /* an error, or no room although compressBound says there is */
        return slu_fail(err, SLU_E_NOMEM, "zstd: %s", ZSTD_getErrorName(r));
    w->packed.len = o.pos;
    return SLU_OK;
}

static int too_large(size_t raw, struct slu_err *err)
{
    return slu_fail(err, SLU_E_LIMIT, "a frame of %zu bytes is over the limit", raw);
}

/* Gives w->pass to the joint. raw: bytes of its payload, decompressed. */
static int pass(struct slu_framer *w, uint32_t type, uint32_t flags, uint64_t aux,
                size_t raw, struct slu_err *err)
{
    struct slu_frame *f = &w->pass;

    f->type = type;
    f->flags = flags;
    f->number = w->number++;
    f->raw_byte = raw;
    f->stored_byte = f->stored.len + f->tok.len;
    f->aux = aux;
    f->passed = true;
    w->off_byte += slu_frame_span(f);
    return slu_joint_put(w->joint, f, err);
}

int slu_framer_pass(struct slu_framer *w, uint32_t type, uint32_t flags, uint64_t aux,
                    struct slu_err *err)
{
    const size_t raw = w->pass.stored.len + w->pass.tok.len;

    return raw > SLU_FRAME_PAYLOAD ? too_large(raw, err)
                                   : pass(w, type, flags, aux, raw, err);
}

/* Gives the frame of a payload that is stored as p[0, n) to the joint. */
static int gather(struct slu_framer *w, uint32_t type, uint32_t flags, uint64_t aux,
                  size_t raw, const struct slu_span *p, unsigned n, struct slu_err *err)
{
    int rc = SLU_OK;

    slu_buf_clear(&w->pass.stored);
    slu_buf_clear(&w->pass.tok);
    slu_buf_clear(&w->pass.early);
    for (unsigned i = 0; i < n && !rc; i++)
        rc = slu_buf_append(&w->pass.stored, p[i].p, p[i].n_byte, err);
    return rc ? rc : pass(w, type, flags, aux, raw, err);
}

/* Writes the frame of a payload of `raw` bytes, which is stored as p[0, n). */
static int put_stored(struct slu_framer *w, uint32_t type, uint32_t flags, uint64_t aux,
                      size_t raw, const struct slu_span *p, unsigned n,
                      struct slu_err *err)
{
    size_t stored = sum(p, n), pad = padded(stored) - stored;
    if (raw > SLU_FRAME_PAYLOAD)
        return too_large(raw, err);
    if (w->joint)
        return gather(w, type, flags, aux, raw, p, n, err);
    XXH3_state_t st;
    XXH3_64bits_reset(&st);
    for (unsigned i = 0; i < n; i++)
        slu_xxh3_64_update(&st, p[i].p, p[i].n_byte);
    if (pad)
        slu_xxh3_64_update(&st, zeros, pad);

    uint8_t h[SLU_FRAME_HEADER] = {0};
    memcpy(h, magic, 4);
    slu_put_le32(h + 4, type);
    slu_put_le32(h + 8, flags);
    slu_put_le64(h + 16, w->number);
    slu_put_le64(h + 24, raw);
    slu_put_le64(h + 32, stored);
    slu_put_le64(h + 40, aux);
    slu_put_le64(h + 48, slu_xxh3_64_digest(&st));
    slu_put_le64(h + 56, slu_hash64(h, 56));
    struct iovec v[SLU_OUT_PIECES];
    unsigned n_v = 0;
    int rc = SLU_OK;
    v[n_v++] = (struct iovec){h, sizeof h};
    for (unsigned i = 0; i < n && !rc; i++) {
        if (n_v == SLU_OUT_PIECES - 1) {
            rc = slu_out_gather(w->out, v, n_v, err);
            n_v = 0;
        }
        v[n_v++] = (struct iovec){(void *)(uintptr_t)p[i].p, p[i].n_byte};
    }
    v[n_v++] = (struct iovec){(void *)(uintptr_t)zeros, pad};
    if (!rc)
        rc = slu_out_gather(w->out, v, n_v, err);
    w->number++;
    w->off_byte += SLU_FRAME_HEADER + stored + pad;
    return rc;
}

int slu_framer_put(struct slu_framer *w, uint32_t type, uint32_t flags, uint64_t aux,
                   const struct slu_span *p, unsigned n, int zstd_level, bool must,
                   struct slu_err *err)
{
    size_t raw = sum(p, n);
    if (zstd_level && raw <= SLU_FRAME_PAYLOAD) {
        int rc = slu_framer_pack(w, p, n, zstd_level, err);
        if (rc)
            return rc;
        const struct slu_span packed = {w->packed.data, w->packed.len};
        if (packed.n_byte < raw || must)
            return put_stored(w, type, flags | SLU_FLAG_ZSTD, aux, raw, &packed, 1,
                              err);
    }
    return put_stored(w, type, flags, aux, raw, p, n, err);
}

int slu_framer_put_packed(struct slu_framer *w, uint32_t type, size_t raw_byte,
                          const void *packed, size_t n, struct slu_err *err)
{
    const struct slu_span p = {packed, n};
    return put_stored(w, type, SLU_FLAG_ZSTD, 0, raw_byte, &p, 1, err);
}
