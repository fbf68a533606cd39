/* set_files.c - the files below DIR/.partial: new ones, and those that another set has
 * already (set_out.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/set_out.h"

/* Makes the folders of DIR/.partial/NAME, but not .partial itself: a part that is late,
 * whose set is published, does not make it again. */
static int make_folders(const struct slu_set_out *o, char *path, struct slu_err *err)
{
    for (char *slash = path + strlen(o->at) + 1; (slash = strchr(slash, '/'));
         slash++) {
        *slash = 0;
        int failed = mkdir(path, 0777) && errno != EEXIST;
        int rc = failed ? slu_fail_errno(err, "%s: cannot be made", path) : SLU_OK;
        *slash = '/';
        if (rc)
            return rc;
    }
    return SLU_OK;
}

int slu_set_create(const struct slu_set_out *o, const char *name, struct slu_out **out,
                   struct slu_err *err)
{
    char *path = NULL;
    int rc = slu_set_path(&path, o->at, name, err);

    *out = NULL;
    if (!rc)
        rc = make_folders(o, path, err);
    if (!rc)
        rc = slu_out_open(out, path, err);
    free(path);
    return rc;
}

/* Copies a file whose bytes are known. */
static int copy(const char *from, const char *to, uint64_t xxh3, struct slu_err *err)
{
    enum { PIECE = 1 << 18 };
    struct slu_buf piece = SLU_BUF_INIT;
    struct slu_digest d = {0};
    struct slu_out *out = NULL;
    size_t got = PIECE;
    int fd = -1, rc = slu_open_regular(&fd, from, NULL, err);

    if (!rc)
        rc = slu_out_open(&out, to, err);
    if (!rc)
        rc = slu_out_digest(out, &d, err);
    if (!rc)
        rc = slu_buf_reserve(&piece, PIECE, err);
    while (!rc && got == PIECE) {
        rc = slu_read_full(fd, piece.data, PIECE, &got, err);
        if (rc)
            slu_err_at(err, "%s", from);
        else
            rc = slu_out_write(out, piece.data, got, err);
    }
    if (!rc) {
        rc = slu_out_close(out, err);
        out = NULL;
    }
    if (!rc && d.xxh3 != xxh3)
        rc = slu_fail(err, SLU_E_CHECKSUM,
                      "%s: is not the file that its set's manifest.jsonl lists", from);
    slu_out_abort(out);
    slu_buf_release(&piece);
    if (fd >= 0)
        close(fd);
    return rc;
}

int slu_set_link(const struct slu_set_out *o, const char *dir, const char *name,
                 const struct slu_digest *d, struct slu_err *err)
{
    char *from = NULL, *to = NULL;
    struct stat st;
    int rc = slu_set_path(&from, dir, name, err);

    if (!rc)
        rc = slu_set_path(&to, o->at, name, err);
    if (!rc && stat(from, &st))
        rc = slu_fail_errno(err, "%s", from);
    if (!rc && (uint64_t)st.st_size != d->n_byte)
        rc = slu_fail(err, SLU_E_TRUNCATED,
                      "%s: has %llu bytes; its set's manifest.jsonl says %llu", from,
                      (unsigned long long)st.st_size, (unsigned long long)d->n_byte);
    if (!rc)
        rc = make_folders(o, to, err);
    if (!rc && unlink(to) && errno != ENOENT)
        rc = slu_fail_errno(err, "%s", to);
    if (!rc && link(from, to)) /* another file system, or one without links */
        rc = copy(from, to, d->xxh3, err);
    free(from);
    free(to);
    return rc;
}
