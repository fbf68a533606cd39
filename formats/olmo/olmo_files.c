#include "formats/olmo/olmo_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int by_name(const void *name, const void *file)
{
    return strcmp(name, ((const struct slu_file *)file)->name);
}

static bool is_listed(const struct slu_olmo_files *w, const char *name)
{
    return w->n_listed &&
           bsearch(name, w->list.file, w->n_listed, sizeof *w->list.file, by_name);
}

int slu_olmo_open(struct slu_olmo_sink *k, const struct slu_olmo_files *w,
                  struct slu_buf *path, struct slu_err *err)
{
    *k = (struct slu_olmo_sink){.was = -1};
    char *slash = strrchr((char *)path->data, '/');
    *slash = '\0';
    int rc = slu_mkdirs((const char *)path->data, err);
    *slash = '/';
    if (!rc)
        rc = slu_buf_reserve(&k->wait, SLU_OLMO_WAIT, err);
    if (!rc)
        rc = slu_out_open(&k->out, (const char *)path->data, err);
    if (!rc && !is_listed(w, (const char *)path->data + strlen(w->work) + 1))
        k->was = open((const char *)path->data, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return rc ? rc : slu_out_digest(k->out, &k->digest, err);
}

/* Writes bytes, and compares them with an existing file that is not listed: a killed
 * run has left the same bytes. */
int slu_olmo_write(struct slu_olmo_sink *k, const void *p, size_t n,
                   struct slu_err *err)
{
    uint8_t was[SLU_OLMO_WAIT];
    for (size_t at = 0; k->was >= 0 && !k->differs && at < n; at += sizeof was) {
        size_t part = n - at < sizeof was ? n - at : sizeof was, got = 0;
        k->differs = slu_read_full(k->was, was, part, &got, NULL) || got != part ||
                     memcmp(was, (const uint8_t *)p + at, part);
    }
    return slu_out_write(k->out, p, n, err);
}

/* An existing file that is not ours is not replaced. */
static int sink_check(struct slu_olmo_sink *k, const struct slu_buf *path,
                      struct slu_err *err)
{
    char more;
    if (k->was < 0)
        return SLU_OK;
    bool same = !k->differs && read(k->was, &more, 1) == 0;
    close(k->was);
    k->was = -1;
    return same ? SLU_OK
                : slu_fail(err, SLU_E_MISMATCH,
                           "%s: exists, and was not written by this program; move it "
                           "away, or name another folder",
                           (const char *)path->data);
}

int slu_olmo_end(struct slu_olmo_sink *k, struct slu_olmo_files *w,
                 const struct slu_buf *path, int rc, struct slu_err *err)
{
    if (!rc && k->out)
        rc = slu_olmo_write(k, k->wait.data, k->wait.len, err);
    if (!rc)
        rc = sink_check(k, path, err);
    if (k->was >= 0)
        close(k->was);
    if (rc)
        slu_out_abort(k->out);
    else if (k->out)
        rc = slu_out_close(k->out, err);
    k->out = NULL;
    slu_buf_release(&k->wait);
    return rc ? rc
              : slu_filelist_add(&w->list,
                                 (const char *)path->data + strlen(w->work) + 1,
                                 &k->digest, err);
}

int slu_olmo_finish(struct slu_olmo_files *w, int rc, struct slu_err *err)
{
    if (!rc)
        rc = slu_filelist_write(&w->list, w->work, err);
    slu_filelist_release(&w->list);
    return rc;
}

int slu_olmo_begin(struct slu_olmo_files *w, const char *work, struct slu_err *err)
{
    *w = (struct slu_olmo_files){.work = work};
    int rc = slu_filelist_load(&w->list, work, err);
    w->n_listed = w->list.n;
    return rc == SLU_EOF ? SLU_OK : rc;
}
