#include "archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"

#define TAR_BLOCK 512
#define ZIP_END   22

struct slu_arc {
    struct slu_input_source *src;
    struct archive *a;
    bool tar;
    bool opened;
    uint64_t member;      /* number of the next member */
    uint64_t given;       /* bytes read; 0: libarchive opened the file itself */
    uint64_t end_byte;    /* end of the last member */
    bool dry;             /* libarchive asked for more than the source has */
    struct slu_err io;    /* an error of the bytes read */
    struct slu_err fault; /* the first error of the archive */
    /* Of the member: bytes that libarchive gave and nobody took, where they begin in
     * it, and the next byte to take. Between both are zeros. */
    const uint8_t *part;
    size_t n_part;
    uint64_t part_off, off;
    bool member_ended;
    uint8_t before[1 << 17],
        chunk[1 << 17]; /* chunk: the last bytes; before: earlier */
    size_t n_before, n_chunk;
    bool ended; /* the source ends with chunk */
};

bool slu_arc_tar_name(const char *name)
{
    static const char *const suffix[] = {".tar",  ".tgz", ".tbz2", ".tbz",
                                         ".tzst", ".txz", ".tlz4", NULL};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && suffix[i]; i++)
        if (slu_suffix_is(dot, suffix[i]))
            return true;
    return false;
}

bool slu_arc_tar_head(const uint8_t *p, size_t n)
{
    return n >= 262 && memcmp(p + 257, "ustar", 5) == 0;
}

bool slu_arc_zip_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return slu_suffix_is(dot, ".zip");
}

bool slu_arc_zip_head(const uint8_t *p, size_t n)
{
    return n >= 4 && (memcmp(p, "PK\3\4", 4) == 0 || memcmp(p, "PK\5\6", 4) == 0);
}

/* Reads the next bytes; *got 0: the end. Keeps at least the last 128 KiB of a zip,
 * where its directory ends. */
static int read_chunk(struct slu_arc *s, size_t *got, struct slu_err *err)
{
    *got = 0;
    if (s->ended)
        return SLU_OK;
    if (!s->tar) {
        memcpy(s->before, s->chunk, s->n_chunk);
        s->n_before = s->n_chunk;
    }
    int rc = slu_bytes_read(s->src->bytes, s->chunk, sizeof s->chunk, got, err);
    s->n_chunk = *got;
    s->given += *got;
    if (rc) /* first the bytes before the error; the next call reports it */
        return *got ? SLU_OK : rc;
    s->ended = *got < sizeof s->chunk;
    return SLU_OK;
}

static la_ssize_t give(struct archive *a, void *ctx, const void **p)
{
    struct slu_arc *s = ctx;
    size_t got;
    if (read_chunk(s, &got, &s->io) != SLU_OK) {
        const char *name = slu_input_name(s->src);
        const size_t n = strlen(name);
        if (!strncmp(s->io.msg, name, n) && !strncmp(s->io.msg + n, ": ", 2))
            memmove(s->io.msg, s->io.msg + n + 2, strlen(s->io.msg + n + 2) + 1);
        archive_set_error(a, s->io.sys_errno, "%s", s->io.msg);
        return ARCHIVE_FATAL;
    }
    s->dry |= got == 0;
    *p = s->chunk;
    return (la_ssize_t)got;
}

static int arc_fail(struct slu_arc *s)
{
    struct slu_err *err = &s->fault;
    if (s->io.code) {
        *err = s->io;
        return err->code;
    }
    const char *why = archive_error_string(s->a);
    int code = s->dry ? SLU_E_TRUNCATED : SLU_E_FORMAT;
    if (!s->tar)
        return slu_fail(err, code, "member %llu: damaged or truncated zip (%s)",
                        (unsigned long long)s->member, why ? why : "no reason");
    uint64_t at = (uint64_t)archive_filter_bytes(s->a, 0);
    return slu_fail_at(err, code, at, "byte %llu: damaged or truncated tar (%s)",
                       (unsigned long long)at, why ? why : "no reason");
}

/* Passes the archive's fault on, with the archive's name. */
static int arc_named(const struct slu_arc *s, struct slu_err *err)
{
    if (err)
        *err = s->fault;
    (void)slu_err_at(err, "%s", slu_input_name(s->src));
    return s->fault.code;
}

bool slu_arc_failed(const struct slu_arc *s)
{
    return s->fault.code != SLU_OK;
}

int slu_arc_new(struct slu_arc **out, struct slu_input_source *src, bool tar,
                struct slu_err *err)
{
    struct slu_arc *s = calloc(1, sizeof *s);
    if (!s || !(s->a = archive_read_new())) {
        free(s);
        return slu_fail_nomem(err, sizeof *s);
    }
    s->src = src;
    s->tar = tar;
    *out = s;
    return SLU_OK;
}

/* Finds a zip's end-of-central-directory record, whose comment must end with p. */
static bool zip_end(const uint8_t *p, size_t n)
{
    for (size_t i = n; i >= ZIP_END; i--) {
        const uint8_t *q = p + i - ZIP_END;
        if (memcmp(q, "PK\5\6", 4) == 0 && slu_le16(q + 20) == n - i)
            return true;
    }
    return false;
}

/* Whether a zip file ends with its directory; if not, it is read from the start. */
static int has_directory(struct slu_arc *s, bool *has, struct slu_err *err)
{
    struct slu_bytes *bytes = s->src->bytes;
    uint64_t size = s->src->src->size_byte;
    size_t got = 0;
    *has = false;
    if (!slu_bytes_seekable(bytes))
        return SLU_OK;
    int rc =
        slu_bytes_seek(bytes, size > sizeof s->chunk ? size - sizeof s->chunk : 0, err);
    if (!rc)
        rc = slu_bytes_read(bytes, s->chunk, sizeof s->chunk, &got, err);
    if (!rc)
        rc = slu_bytes_seek(bytes, 0, err);
    *has = !rc && zip_end(s->chunk, got);
    return rc;
}

static int start(struct slu_arc *s, struct slu_err *err)
{
    const uint8_t *head;
    size_t n;
    bool directory = false;
    int rc = slu_bytes_peek(s->src->bytes, &head, &n, err);
    if (!rc && n == 0)
        return slu_input_empty(s->src, err);
    if (!rc && !s->tar)
        rc = has_directory(s, &directory, err);
    if (rc)
        return rc;
    s->opened = true;
    int a;
    if (s->tar) {
        archive_read_support_format_tar(s->a);
        a = archive_read_set_option(s->a, "tar", "read_concatenated_archives", "1");
        if (a == ARCHIVE_OK)
            a = archive_read_open(s->a, s, NULL, give, NULL);
    } else if (directory) {
        archive_read_support_format_zip_seekable(s->a);
        a = archive_read_open_filename(s->a, s->src->src->path, sizeof s->chunk);
    } else {
        archive_read_support_format_zip_streamable(s->a);
        a = archive_read_open(s->a, s, NULL, give, NULL);
    }
    if (a == ARCHIVE_OK)
        return SLU_OK;
    arc_fail(s);
    return arc_named(s, err);
}

/* Checks that a zip from a pipe ends with its directory. */
static int finish_zip(struct slu_arc *s, struct slu_err *err)
{
    uint8_t *tail = malloc(sizeof s->before + sizeof s->chunk);
    int rc = tail ? SLU_OK : slu_fail_nomem(err, sizeof s->before + sizeof s->chunk);
    size_t got = 1, n;
    while (!rc && got)
        rc = read_chunk(s, &got, err);
    if (!rc) {
        n = s->n_before;
        memcpy(tail, s->before, n);
        memcpy(tail + n, s->chunk, s->n_chunk);
        n += s->n_chunk;
        rc = zip_end(tail, n)
                 ? SLU_EOF
                 : slu_fail_at(err, SLU_E_TRUNCATED, s->given,
                               "%s: byte %llu: the zip archive ends without its "
                               "directory; it was cut short",
                               slu_input_name(s->src), (unsigned long long)s->given);
    }
    free(tail);
    return rc;
}

/* After the last member: checks that the archive has its end marker. */
static int finish(struct slu_arc *s, struct slu_err *err)
{
    if (!s->tar && s->given)
        return finish_zip(s, err);
    if (!s->tar) /* libarchive read the file itself */
        s->src->own_byte = s->src->own_stored_byte = s->src->src->size_byte;
    if (s->tar && s->given - s->end_byte < TAR_BLOCK)
        return slu_fail_at(
            err, SLU_E_TRUNCATED, s->given,
            "%s: byte %llu: the tar archive ends without its end marker; it "
            "was cut short",
            slu_input_name(s->src), (unsigned long long)s->given);
    return SLU_EOF;
}

static enum slu_arc_type type_of(struct archive_entry *e)
{
    const bool has_bytes = archive_entry_size_is_set(e) && archive_entry_size(e) > 0;
    if (archive_entry_hardlink(e) && !has_bytes)
        return SLU_ARC_LINK;
    switch (archive_entry_filetype(e)) {
    case AE_IFREG:
        return SLU_ARC_FILE;
    case AE_IFLNK:
        return SLU_ARC_LINK;
    case AE_IFDIR:
        return SLU_ARC_FOLDER;
    default:
        return SLU_ARC_SPECIAL;
    }
}

int slu_arc_next(struct slu_arc *s, struct slu_arc_member *m, struct slu_err *err)
{
    struct archive_entry *e;
    *m = (struct slu_arc_member){.size_byte = UINT64_MAX};
    if (slu_arc_failed(s))
        return arc_named(s, err);
    int rc = s->opened ? SLU_OK : start(s, err);
    if (rc)
        return rc;
    s->part = NULL;
    s->n_part = 0;
    s->part_off = s->off = 0;
    s->member_ended = false;
    /* the bytes of the last member that nobody read */
    if (s->member && archive_read_data_skip(s->a) < ARCHIVE_WARN) {
        arc_fail(s);
        return arc_named(s, err);
    }
    if (s->member)
        s->end_byte = (uint64_t)archive_filter_bytes(s->a, 0);
    m->place = s->tar ? s->end_byte : s->member;
    int a = archive_read_next_header(s->a, &e);
    if (a == ARCHIVE_EOF)
        return finish(s, err);
    if (a != ARCHIVE_OK && a != ARCHIVE_WARN) { /* warnings are about names or times */
        arc_fail(s);
        return arc_named(s, err);
    }
    if (s->tar)
        m->place = (uint64_t)archive_read_header_position(s->a);
    m->path = archive_entry_pathname(e);
    if (!m->path)
        m->path = "?";
    m->type = type_of(e);
    if (archive_entry_size_is_set(e) && archive_entry_size(e) >= 0)
        m->size_byte = (uint64_t)archive_entry_size(e);
    s->member++;
    return SLU_OK;
}

/* Gets the next bytes from libarchive. Not by archive_read_data, which drops its bytes
 * on an error. */
static int next_part(struct slu_arc *s)
{
    const void *p;
    size_t n;
    la_int64_t off;
    int a = archive_read_data_block(s->a, &p, &n, &off);
    s->n_part = 0;
    if (a == ARCHIVE_EOF) {
        s->member_ended = true;
        s->part_off = off > 0 ? (uint64_t)off : s->off; /* a hole may end it */
        return SLU_OK;
    }
    if (a != ARCHIVE_OK && a != ARCHIVE_WARN) {
        s->member--; /* the messages count it from 0 */
        return arc_fail(s);
    }
    s->part = p;
    s->n_part = n;
    s->part_off = (uint64_t)off;
    return SLU_OK;
}

int slu_arc_read(void *ctx, void *out, size_t n, size_t *got, struct slu_err *err)
{
    struct slu_arc *s = ctx;
    uint8_t *p = out;
    *got = 0;
    while (*got < n) {
        size_t k = n - *got;
        if (s->off < s->part_off) { /* a hole of a sparse file */
            k = s->part_off - s->off < k ? (size_t)(s->part_off - s->off) : k;
            memset(p + *got, 0, k);
        } else if (s->n_part) {
            k = s->n_part < k ? s->n_part : k;
            memcpy(p + *got, s->part, k);
            s->part += k;
            s->n_part -= k;
            s->part_off += k;
        } else if (s->member_ended || *got) {
            break;
        } else {
            if (!slu_arc_failed(s))
                next_part(s);
            if (slu_arc_failed(s)) {
                if (err)
                    *err = s->fault;
                return s->fault.code;
            }
            continue;
        }
        *got += k;
        s->off += k;
    }
    return SLU_OK;
}

void slu_arc_free(struct slu_arc *s)
{
    if (s)
        archive_read_free(s->a);
    free(s);
}
