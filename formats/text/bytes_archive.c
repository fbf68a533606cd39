/* bytes_archive.c - bzip2 and lz4 through libarchive's filters, which take at most 4
 * and 8 MiB for any file. */
#include "bytes_private.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

struct filter {
    struct slu_stored_bytes *raw;
    struct archive *a;
    const char *name;
    struct slu_err io; /* an error of the file */
    bool ended;
    bool dry;           /* libarchive asked for more than the file has */
    const uint8_t *out; /* n_out decompressed bytes, not yet taken */
    size_t n_out;
};

/* Gives libarchive the buffered bytes, or else the next ones. */
static la_ssize_t give(struct archive *a, void *ctx, const void **p)
{
    struct filter *f = ctx;
    struct slu_stored_bytes *r = f->raw;
    if (r->pos == r->end && !r->eof && slu_stored_fill(r, &f->io) != SLU_OK) {
        archive_set_error(a, f->io.sys_errno, "%s", f->io.msg);
        return ARCHIVE_FATAL;
    }
    size_t n = r->end - r->pos;
    f->dry |= n == 0;
    *p = r->buf + r->pos;
    r->pos = r->end;
    return (la_ssize_t)n;
}

static int filter_fail(struct filter *f, struct slu_err *err)
{
    if (f->io.code) {
        if (err)
            *err = f->io;
        return f->io.code;
    }
    int64_t taken = archive_filter_bytes(f->a, -1); /* -1 before the first byte */
    uint64_t at = taken < 0 ? slu_stored_tell(f->raw) : (uint64_t)taken;
    const char *why = archive_error_string(f->a);
    if (f->dry)
        return slu_fail_at(err, SLU_E_TRUNCATED, at,
                           "stored byte %llu: the %s data ends early (%s)",
                           (unsigned long long)at, f->name, why ? why : "no reason");
    return slu_fail_at(err, SLU_E_FORMAT, at, "stored byte %llu: damaged %s data (%s)",
                       (unsigned long long)at, f->name, why ? why : "no reason");
}

static void filter_close(void *state)
{
    struct filter *f = state;
    archive_read_free(f->a);
    free(f);
}

static int filter_open(void **state, struct slu_stored_bytes *r, const char *name,
                       int (*support)(struct archive *), struct slu_err *err)
{
    struct archive_entry *e;
    struct filter *f = calloc(1, sizeof *f);
    if (!f || !(f->a = archive_read_new())) {
        free(f);
        return slu_fail_nomem(err, sizeof *f);
    }
    f->raw = r;
    f->name = name;
    int rc = SLU_OK, a = support(f->a);
    if (a != ARCHIVE_OK && a != ARCHIVE_WARN) {
        rc = slu_fail(err, SLU_E_UNSUPPORTED, "this libarchive cannot read %s", name);
        goto out;
    }
    archive_read_support_format_raw(f->a);
    archive_read_support_format_empty(f->a);
    a = archive_read_open(f->a, f, NULL, give, NULL);
    if (a == ARCHIVE_OK)
        a = archive_read_next_header(f->a, &e);
    if (a == ARCHIVE_EOF)
        f->ended = true; /* an empty file, compressed */
    else if (a != ARCHIVE_OK && a != ARCHIVE_WARN)
        rc = filter_fail(f, err);
out:
    if (rc)
        filter_close(f);
    else
        *state = f;
    return rc;
}

/* Checks that the file ends: filters stop silently at data that is not a stream. */
static int check_end(struct filter *f, struct slu_err *err)
{
    uint64_t at = (uint64_t)archive_filter_bytes(f->a, -1);
    if (at < f->raw->off || !f->raw->eof)
        return slu_fail_at(err, SLU_E_FORMAT, at,
                           "stored byte %llu: something other than %s data after the "
                           "end of the %s data",
                           (unsigned long long)at, f->name, f->name);
    return SLU_OK;
}

static int filter_read(void *state, uint8_t *p, size_t n, size_t *got,
                       struct slu_err *err)
{
    struct filter *f = state;
    while (f->n_out == 0 && !f->ended) {
        const void *out = NULL;
        la_int64_t off;
        /* not archive_read_data, which drops its bytes on an error */
        int a = archive_read_data_block(f->a, &out, &f->n_out, &off);
        f->out = out;
        if (a == ARCHIVE_EOF) {
            f->n_out = 0;
            f->ended = true;
        } else if (a != ARCHIVE_OK && a != ARCHIVE_WARN) {
            f->n_out = 0;
            return filter_fail(f, err);
        }
    }
    *got = f->n_out < n ? f->n_out : n;
    if (*got > 0) {
        memcpy(p, f->out, *got);
        f->out += *got;
        f->n_out -= *got;
        return SLU_OK;
    }
    if (f->raw->pos == f->raw->end && !f->raw->eof) {
        int rc = slu_stored_fill(f->raw, err); /* the file may end here */
        if (rc)
            return rc;
    }
    return check_end(f, err);
}

static bool bzip2_matches(const uint8_t *p, size_t n)
{
    return n >= 4 && memcmp(p, "BZh", 3) == 0 && p[3] >= '1' && p[3] <= '9';
}

static bool lz4_matches(const uint8_t *p, size_t n)
{
    return n >= 4 && memcmp(p, "\x04\x22\x4d\x18", 4) == 0;
}

static int bzip2_open(void **state, struct slu_stored_bytes *r, uint64_t mem_byte,
                      struct slu_err *err)
{
    (void)mem_byte;
    return filter_open(state, r, "bzip2", archive_read_support_filter_bzip2, err);
}

static int lz4_open(void **state, struct slu_stored_bytes *r, uint64_t mem_byte,
                    struct slu_err *err)
{
    (void)mem_byte;
    return filter_open(state, r, "lz4", archive_read_support_filter_lz4, err);
}

static const char *const bzip2_suffix[] = {".bz2", NULL};
static const char *const bzip2_tar[] = {".tbz2", ".tbz", NULL};
static const char *const lz4_suffix[] = {".lz4", NULL};
static const char *const lz4_tar[] = {".tlz4", NULL};

const struct slu_codec slu_codec_bzip2 = {
    .name = "bzip2",
    .suffix = bzip2_suffix,
    .tar_suffix = bzip2_tar,
    .matches = bzip2_matches,
    .open = bzip2_open,
    .read = filter_read,
    .close = filter_close,
};

const struct slu_codec slu_codec_lz4 = {
    .name = "lz4",
    .suffix = lz4_suffix,
    .tar_suffix = lz4_tar,
    .matches = lz4_matches,
    .open = lz4_open,
    .read = filter_read,
    .close = filter_close,
};
