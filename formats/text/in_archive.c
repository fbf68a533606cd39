/* in_archive.c - tar and zip archives: each member that is read (members.h) is what a
 * file of its name would be, decompressed too. */
#include "archive.h"

#include <stdlib.h>
#include <string.h>

#include "formats/text/members.h"

struct reader {
    struct slu_arc *arc;
    struct slu_bytes *bytes; /* of the member; opened anew for each */
    struct slu_members_state state;
    struct slu_buf label, path;
    uint64_t next; /* the least place of the next member */
};

static int open_as(struct slu_input_source *src, bool tar, struct slu_err *err)
{
    struct reader *r = calloc(1, sizeof *r);
    if (!r)
        return slu_fail_nomem(err, sizeof *r);
    src->state = r;
    return slu_arc_new(&r->arc, src, tar, err);
}

static int tar_open(struct slu_input_source *src, struct slu_err *err)
{
    return open_as(src, true, err);
}

static int zip_open(struct slu_input_source *src, struct slu_err *err)
{
    return open_as(src, false, err);
}

/* After the last member. Something of the archive must have been read. */
static int at_end(struct slu_input_source *src, const struct reader *r,
                  struct slu_err *err)
{
    if (r->state.n_read || !r->state.n_left || r->state.n_not_chosen)
        return SLU_EOF;
    src->reject = SLU_REJECT_OTHER_KIND;
    return slu_advise(err, SLU_ADVISE_MEMBERS,
                      slu_fail(err, SLU_E_FORMAT,
                               "%s: none of its %llu files is read; they are hidden, "
                               "links, or of kinds that are no text",
                               slu_input_name(src),
                               (unsigned long long)r->state.n_left));
}

static int next(struct slu_input_source *src, struct slu_input_source *m,
                struct slu_err *err)
{
    struct reader *r = src->state;
    const char *archive = slu_input_name(src);
    struct slu_arc_member at;
    int rc;
    do {
        rc = slu_arc_next(r->arc, &at, err);
        if (rc == SLU_EOF)
            return at_end(src, r, err);
        src->document = at.place > r->next ? at.place : r->next;
        if (rc)
            return rc;
    } while (!slu_members_take(src->cfg->members, &r->state, src->src->name, &at));
    slu_buf_clear(&r->label);
    slu_buf_clear(&r->path);
    rc = slu_buf_append(&r->path, at.path, strlen(at.path) + 1, err);
    if (!rc)
        rc = slu_buf_append(&r->label, archive, strlen(archive), err);
    if (!rc)
        rc = slu_buf_append(&r->label, ": ", 2, err);
    if (!rc)
        rc = slu_buf_append(&r->label, at.path, strlen(at.path) + 1, err);
    if (rc)
        return rc;
    m->member = (const char *)r->path.data;
    m->label = (const char *)r->label.data;
    m->size_byte = at.size_byte;
    m->base = src->document;
    rc = slu_bytes_open_over(&r->bytes, m->label, slu_arc_read, r->arc,
                             src->cfg->window_byte, err);
    m->bytes = rc ? NULL : r->bytes;
    return rc;
}

static int accept(struct slu_input_source *src, struct slu_input_source *m, bool *leave,
                  struct slu_err *err)
{
    struct reader *r = src->state;
    *leave = false;
    m->reject = SLU_REJECT_OTHER_KIND; /* if it is refused */
    if (m->format->next)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: is an archive in an archive; unpack the outer one",
                        slu_input_name(m));
    int rc = slu_members_note(src->cfg->members, &r->state, m->member,
                              m->format->json || m->format->rows, err);
    if (rc)
        return slu_err_at(err, "%s", slu_input_name(src));
    m->reject = SLU_REJECT_NONE;
    return SLU_OK;
}

static void done(struct slu_input_source *src, struct slu_input_source *m, uint64_t n)
{
    struct reader *r = src->state;
    r->next = m->base + n;
}

static bool resume(struct slu_input_source *src)
{
    const struct reader *r = src->state;
    return r && r->arc && !slu_arc_failed(r->arc);
}

static void close_archive(struct slu_input_source *src)
{
    struct reader *r = src->state;
    if (!r)
        return;
    slu_arc_free(r->arc);
    slu_bytes_close(r->bytes);
    slu_buf_release(&r->label);
    slu_buf_release(&r->path);
    free(r);
}

const struct slu_input_format slu_in_tar = {
    .name = "tar",
    .name_matches = slu_arc_tar_name,
    .head_matches = slu_arc_tar_head,
    .open = tar_open,
    .next = next,
    .accept = accept,
    .done = done,
    .resume = resume,
    .close = close_archive,
};

const struct slu_input_format slu_in_zip = {
    .name = "zip",
    .name_matches = slu_arc_zip_name,
    .head_matches = slu_arc_zip_head,
    .open = zip_open,
    .next = next,
    .accept = accept,
    .done = done,
    .resume = resume,
    .close = close_archive,
};
