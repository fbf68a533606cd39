/* in_archive.c - members of tar and zip archives, each one text, through libarchive.
 *
 * tar is read as a stream, so it may be compressed or come through a pipe. Archives one
 * after another are one; each must end with its two blocks of zeros. A zip file is read
 * by its central directory, which must therefore be whole; a zip through a pipe, by its
 * local headers. Members that are not regular files are skipped.
 */
#include "input_private.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"

#define TAR_BLOCK 512
#define ZIP_END   22

struct arc {
    struct slu_input_source *src;
    struct archive *a;
    bool tar;
    bool opened;
    uint64_t member;   /* number of the next member */
    uint64_t given;    /* bytes read; 0: libarchive opened the file itself */
    uint64_t end_byte; /* end of the last member */
    bool dry;          /* libarchive asked for more than the source has */
    struct slu_err io; /* an error of the bytes read */
    uint8_t before[1 << 17],
        chunk[1 << 17]; /* chunk: the last bytes; before: earlier */
    size_t n_before, n_chunk;
    bool ended; /* the source ends with chunk */
};

static bool tar_name(const char *name)
{
    static const char *const suffix[] = {".tar",  ".tgz", ".tbz2", ".tbz",
                                         ".tzst", ".txz", ".tlz4", NULL};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && suffix[i]; i++)
        if (strcasecmp(dot, suffix[i]) == 0)
            return true;
    return false;
}

static bool tar_head(const uint8_t *p, size_t n)
{
    return n >= 262 && memcmp(p + 257, "ustar", 5) == 0;
}

static bool zip_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && strcasecmp(dot, ".zip") == 0;
}

static bool zip_head(const uint8_t *p, size_t n)
{
    return n >= 4 && (memcmp(p, "PK\3\4", 4) == 0 || memcmp(p, "PK\5\6", 4) == 0);
}

/* Reads the next bytes; *got 0: the end. Keeps at least the last 128 KiB of a zip,
 * where its directory ends. */
static int read_chunk(struct arc *s, size_t *got, struct slu_err *err)
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
    struct arc *s = ctx;
    size_t got;
    if (read_chunk(s, &got, &s->io) != SLU_OK) {
        archive_set_error(a, s->io.sys_errno, "%s", s->io.msg);
        return ARCHIVE_FATAL;
    }
    s->dry |= got == 0;
    *p = s->chunk;
    return (la_ssize_t)got;
}

static int arc_fail(struct arc *s, struct slu_err *err)
{
    if (s->io.code) {
        if (err)
            *err = s->io;
        return s->io.code;
    }
    const char *why = archive_error_string(s->a);
    int code = s->dry ? SLU_E_TRUNCATED : SLU_E_FORMAT;
    if (!s->tar)
        return slu_fail(err, code, "%s: member %llu: damaged or truncated zip (%s)",
                        slu_input_name(s->src), (unsigned long long)s->member,
                        why ? why : "no reason");
    uint64_t at = (uint64_t)archive_filter_bytes(s->a, 0);
    return slu_fail_at(err, code, at, "%s: byte %llu: damaged or truncated tar (%s)",
                       slu_input_name(s->src), (unsigned long long)at,
                       why ? why : "no reason");
}

static int arc_open(struct slu_input_source *src, bool tar, struct slu_err *err)
{
    struct arc *s = calloc(1, sizeof *s);
    if (!s || !(s->a = archive_read_new())) {
        free(s);
        return slu_fail_nomem(err, sizeof *s);
    }
    src->state = s;
    s->src = src;
    s->tar = tar;
    return SLU_OK;
}

static int tar_open(struct slu_input_source *src, struct slu_err *err)
{
    return arc_open(src, true, err);
}

static int zip_open(struct slu_input_source *src, struct slu_err *err)
{
    return arc_open(src, false, err);
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
static int has_directory(struct arc *s, bool *has, struct slu_err *err)
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

static int start(struct arc *s, struct slu_err *err)
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
    return a == ARCHIVE_OK ? SLU_OK : arc_fail(s, err);
}

/* Checks that a zip from a pipe ends with its directory. */
static int finish_zip(struct arc *s, struct slu_err *err)
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
static int finish(struct arc *s, struct slu_err *err)
{
    if (!s->tar && s->given)
        return finish_zip(s, err);
    if (s->tar && s->given - s->end_byte < TAR_BLOCK)
        return slu_fail_at(
            err, SLU_E_TRUNCATED, s->given,
            "%s: byte %llu: the tar archive ends without its end marker; it "
            "was cut short",
            slu_input_name(s->src), (unsigned long long)s->given);
    return SLU_EOF;
}

/* Appends n bytes of the member at off; fills a gap before them with zeros. */
static int append(struct arc *s, struct slu_block *b, size_t begin, uint64_t off,
                  const void *p, size_t n, struct slu_err *err)
{
    uint64_t len = b->raw.len - begin, hole = off > len ? off - len : 0;
    size_t more;
    if (slu_add_overflow(n, hole, &more))
        more = SIZE_MAX; /* slu_block_room refuses this */
    if (len + hole > s->src->cfg->max_record_byte)
        more = SIZE_MAX;
    int rc = slu_block_room(s->src, b, more, begin, s->src->document, err);
    if (rc)
        return rc;
    memset(b->raw.data + b->raw.len, 0, hole);
    if (n)
        memcpy(b->raw.data + b->raw.len + hole, p, n);
    b->raw.len += more;
    return SLU_OK;
}

/* Appends the member's bytes to b as one record. */
static int take_member(struct arc *s, struct slu_block *b, uint64_t document,
                       struct slu_err *err)
{
    size_t begin = b->raw.len, step = sizeof s->chunk;
    int rc = slu_block_room(s->src, b, step, begin, document, err);
    s->src->begin = begin;
    s->src->document = document;
    while (!rc) {
        const void *p;
        size_t n;
        la_int64_t off;
        /* not archive_read_data, which drops its bytes on an error */
        int a = archive_read_data_block(s->a, &p, &n, &off);
        if (a == ARCHIVE_EOF)
            break;
        if (a != ARCHIVE_OK && a != ARCHIVE_WARN)
            return arc_fail(s, err);
        rc = append(s, b, begin, (uint64_t)off, p, n, err);
    }
    if (rc)
        return rc;
    struct slu_record_ref rec = {.source = s->src->ordinal,
                                 .document = document,
                                 .off = begin,
                                 .len = b->raw.len - begin};
    return slu_block_add(b, rec, err);
}

static int arc_fetch(struct slu_input_source *src, struct slu_block *b,
                     struct slu_err *err)
{
    struct arc *s = src->state;
    int rc = s->opened ? SLU_OK : start(s, err);
    if (rc)
        return rc;
    while (b->raw.len < src->cfg->block_byte) {
        struct archive_entry *e;
        src->begin = b->raw.len;
        src->document = s->tar ? s->end_byte : s->member;
        int a = archive_read_next_header(s->a, &e);
        if (a == ARCHIVE_EOF)
            return finish(s, err);
        if (a != ARCHIVE_OK &&
            a != ARCHIVE_WARN) /* warnings are about names or times */
            return arc_fail(s, err);
        uint64_t document =
            s->tar ? (uint64_t)archive_read_header_position(s->a) : s->member;
        bool regular =
            archive_entry_filetype(e) == AE_IFREG && !archive_entry_hardlink(e);
        if (regular)
            rc = take_member(s, b, document, err);
        else if (archive_read_data_skip(s->a) != ARCHIVE_OK)
            rc = arc_fail(s, err);
        if (rc)
            return rc;
        s->member++;
        s->end_byte = (uint64_t)archive_filter_bytes(s->a, 0);
    }
    return SLU_OK;
}

static void arc_close(struct slu_input_source *src)
{
    struct arc *s = src->state;
    if (s)
        archive_read_free(s->a);
    free(s);
}

const struct slu_input_format slu_in_tar = {
    .name = "tar",
    .name_matches = tar_name,
    .head_matches = tar_head,
    .open = tar_open,
    .fetch = arc_fetch,
    .close = arc_close,
};

const struct slu_input_format slu_in_zip = {
    .name = "zip",
    .name_matches = zip_name,
    .head_matches = zip_head,
    .open = zip_open,
    .fetch = arc_fetch,
    .close = arc_close,
};
