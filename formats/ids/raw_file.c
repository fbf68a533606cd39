#include "formats/ids/raw_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "lib/base/io.h"
#include "lib/base/xxh3.h"

enum { BLOCK = 256 << 10, MAX_HEX = 32 };

enum algorithm { NONE, XXH3_64, XXH3_128, XXH_64, XXH_32 };

struct hash {
    enum algorithm algorithm;
    char want[MAX_HEX + 1];
    XXH3_state_t *xxh3; /* the state of `algorithm`; the others are NULL */
    XXH64_state_t *xxh64;
    XXH32_state_t *xxh32;
};

struct slu_raw {
    int fd;
    uint64_t n_byte, at_stored; /* size of the file; bytes read */
    _Atomic uint64_t *counter;
    ZSTD_DCtx *zstd;     /* NULL: no compression */
    bool open_frame;     /* inside a frame */
    uint8_t *in;         /* BLOCK stored bytes */
    size_t in_at, in_n;  /* the part that zstd has not had: [in_at, in_n) */
    uint8_t *raw;        /* BLOCK raw bytes; `in` without zstd */
    size_t at, n;        /* bytes taken of raw; bytes in raw */
    uint64_t begin;      /* raw bytes before raw[0] */
    struct hash hash[2]; /* raw, stored */
};

static enum algorithm algorithm_of(const char *name)
{
    static const struct {
        const char *name;
        enum algorithm is;
    } known[] = {{"xxh3_64", XXH3_64},
                 {"xxh3_128", XXH3_128},
                 {"xxh128", XXH3_128},
                 {"xxh64", XXH_64},
                 {"xxh32", XXH_32}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name))
            return known[i].is;
    return NONE;
}

static int hash_begin(struct hash *h, struct slu_err *err)
{
    bool ok = true;
    if (h->algorithm == XXH3_64)
        ok = (h->xxh3 = XXH3_createState()) && !XXH3_64bits_reset(h->xxh3);
    else if (h->algorithm == XXH3_128)
        ok = (h->xxh3 = XXH3_createState()) && !XXH3_128bits_reset(h->xxh3);
    else if (h->algorithm == XXH_64)
        ok = (h->xxh64 = XXH64_createState()) && !XXH64_reset(h->xxh64, 0);
    else if (h->algorithm == XXH_32)
        ok = (h->xxh32 = XXH32_createState()) && !XXH32_reset(h->xxh32, 0);
    return ok ? SLU_OK : slu_fail_nomem(err, sizeof(XXH3_state_t *));
}

static void hash_free(struct hash *h)
{
    XXH3_freeState(h->xxh3);
    XXH64_freeState(h->xxh64);
    XXH32_freeState(h->xxh32);
    *h = (struct hash){0};
}

static void hash_add(struct hash *h, const void *p, size_t n)
{
    if (h->algorithm == XXH3_64)
        slu_xxh3_64_update(h->xxh3, p, n);
    else if (h->algorithm == XXH3_128)
        slu_xxh3_128_update(h->xxh3, p, n);
    else if (h->algorithm == XXH_64)
        XXH64_update(h->xxh64, p, n);
    else if (h->algorithm == XXH_32)
        XXH32_update(h->xxh32, p, n);
}

static int hash_check(const struct hash *h, const char *what, struct slu_err *err)
{
    char got[MAX_HEX + 1] = "";
    if (h->algorithm == NONE)
        return SLU_OK;
    if (h->algorithm == XXH3_64)
        snprintf(got, sizeof got, "%016llx",
                 (unsigned long long)slu_xxh3_64_digest(h->xxh3));
    else if (h->algorithm == XXH_64)
        snprintf(got, sizeof got, "%016llx",
                 (unsigned long long)XXH64_digest(h->xxh64));
    else if (h->algorithm == XXH_32)
        snprintf(got, sizeof got, "%08x", XXH32_digest(h->xxh32));
    else {
        struct slu_u128 v = slu_xxh3_128_digest(h->xxh3);
        snprintf(got, sizeof got, "%016llx%016llx", (unsigned long long)v.hi,
                 (unsigned long long)v.lo);
    }
    if (!strcmp(got, h->want))
        return SLU_OK;
    return slu_fail(
        err, SLU_E_CHECKSUM,
        "its %s bytes hash to %s, and its index says %s: the file is damaged", what,
        got, h->want);
}

int slu_raw_open(struct slu_raw **out, const char *path, bool zstd,
                 _Atomic uint64_t *n_byte, struct slu_err *err)
{
    struct slu_raw *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return slu_fail_nomem(err, sizeof *r);
    r->counter = n_byte;
    int rc = slu_open_regular(&r->fd, path, &r->n_byte, err);
    if (rc) {
        slu_raw_free(r);
        return rc;
    }
    posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    r->in = malloc(BLOCK);
    r->raw = zstd ? malloc(BLOCK) : r->in;
    r->zstd = zstd ? ZSTD_createDCtx() : NULL;
    if (!r->in || !r->raw || (zstd && !r->zstd)) {
        slu_raw_free(r);
        return slu_fail_nomem(err, 2 * BLOCK);
    }
    *out = r;
    return SLU_OK;
}

int slu_raw_expect(struct slu_raw *r, bool stored, const char *algorithm,
                   const char *hex, struct slu_err *err)
{
    struct hash *h = &r->hash[stored];
    size_t n = strlen(hex);
    hash_free(h);
    if (n > MAX_HEX)
        return slu_fail(err, SLU_E_FORMAT, "its index has no %s of this file",
                        algorithm);
    h->algorithm = algorithm_of(algorithm);
    memcpy(h->want, hex, n + 1);
    return hash_begin(h, err);
}

uint64_t slu_raw_stored(const struct slu_raw *r)
{
    return r->n_byte;
}

uint64_t slu_raw_tell(const struct slu_raw *r)
{
    return r->begin + r->at;
}

/* Reads more stored bytes into r->in, which is used up; *got 0 at the end. */
static int read_stored(struct slu_raw *r, size_t *got, struct slu_err *err)
{
    int rc = slu_read_full(r->fd, r->in, BLOCK, got, err);
    if (rc)
        return rc;
    hash_add(&r->hash[1], r->in, *got);
    r->at_stored += *got;
    if (r->counter)
        *r->counter += *got;
    r->in_at = 0;
    r->in_n = *got;
    return SLU_OK;
}

static int decompress(struct slu_raw *r, struct slu_err *err)
{
    size_t got;
    while (!r->n) {
        if (r->in_at == r->in_n) {
            int rc = read_stored(r, &got, err);
            if (rc)
                return rc;
            if (!got && r->open_frame)
                return slu_fail(err, SLU_E_TRUNCATED,
                                "ends early, in the middle of a zstd frame");
            if (!got)
                return SLU_OK;
        }
        ZSTD_inBuffer in = {r->in, r->in_n, r->in_at};
        ZSTD_outBuffer out = {r->raw, BLOCK, 0};
        size_t code = ZSTD_decompressStream(r->zstd, &out, &in);
        if (ZSTD_isError(code))
            return slu_fail_at(err, SLU_E_FORMAT, r->at_stored - r->in_n + r->in_at,
                               "is not zstd data, or is damaged, near byte %llu: %s",
                               (unsigned long long)(r->at_stored - r->in_n + r->in_at),
                               ZSTD_getErrorName(code));
        r->in_at = in.pos;
        r->open_frame = code != 0;
        r->n = out.pos;
    }
    return SLU_OK;
}

/* Reads the next raw bytes, none at the end; all before were taken. */
static int refill(struct slu_raw *r, struct slu_err *err)
{
    r->begin += r->n;
    r->at = r->n = 0;
    int rc = r->zstd ? decompress(r, err) : read_stored(r, &r->n, err);
    if (!rc)
        hash_add(&r->hash[0], r->raw, r->n);
    return rc;
}

/* Points *p to the next bytes, at least one and at most n, and takes them.
 * SLU_E_TRUNCATED at the end of the file. */
static int look(struct slu_raw *r, uint64_t n, const uint8_t **p, size_t *got,
                struct slu_err *err)
{
    *p = r->raw;
    *got = 0;
    if (r->at == r->n) {
        int rc = refill(r, err);
        if (rc)
            return rc;
        if (!r->n)
            return slu_fail_at(
                err, SLU_E_TRUNCATED, r->begin, "ends early, at byte %llu%s",
                (unsigned long long)r->begin, r->zstd ? " of what it holds" : "");
    }
    *p = r->raw + r->at;
    *got = r->n - r->at < n ? r->n - r->at : (size_t)n;
    r->at += *got;
    return SLU_OK;
}

int slu_raw_take(struct slu_raw *r, void *to, uint64_t n, struct slu_err *err)
{
    const uint8_t *p;
    for (size_t got; n; n -= got) {
        int rc = look(r, n, &p, &got, err);
        if (rc)
            return rc;
        memcpy(to, p, got);
        to = (uint8_t *)to + got;
    }
    return SLU_OK;
}

int slu_raw_append(struct slu_raw *r, struct slu_buf *out, uint64_t n,
                   struct slu_err *err)
{
    const uint8_t *p;
    for (size_t got; n; n -= got) {
        int rc = look(r, n, &p, &got, err);
        if (!rc)
            rc = slu_buf_append(out, p, got, err);
        if (rc)
            return rc;
    }
    return SLU_OK;
}

int slu_raw_skip(struct slu_raw *r, uint64_t n, struct slu_err *err)
{
    const uint8_t *p;
    for (size_t got; n; n -= got) {
        int rc = look(r, n, &p, &got, err);
        if (rc)
            return rc;
    }
    return SLU_OK;
}

int slu_raw_end(struct slu_raw *r, struct slu_err *err)
{
    int rc = r->at < r->n ? SLU_OK : refill(r, err);
    if (!rc && r->at < r->n)
        rc = slu_fail_at(err, SLU_E_FORMAT, slu_raw_tell(r),
                         "has bytes after its last sample, from byte %llu on",
                         (unsigned long long)slu_raw_tell(r));
    if (!rc)
        rc = hash_check(&r->hash[1], "stored", err);
    return rc ? rc : hash_check(&r->hash[0], "raw", err);
}

void slu_raw_free(struct slu_raw *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    hash_free(&r->hash[0]);
    hash_free(&r->hash[1]);
    ZSTD_freeDCtx(r->zstd);
    if (r->raw != r->in)
        free(r->raw);
    free(r->in);
    free(r);
}
