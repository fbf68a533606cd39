#include "lib/flow/workfile_names.h"

#include <stdlib.h>
#include <string.h>

#include "lib/stream/stream_private.h"

/* ---- writing ---- */

static int put_number(struct slu_workfile_out *o, uint64_t v, struct slu_err *err)
{
    return slu_workfile_put(o, &v, 1, err);
}

static int put_source(void *ctx, uint64_t ordinal, const char *name,
                      struct slu_err *err)
{
    int rc = put_number(ctx, ordinal, err);

    return rc ? rc : slu_workfile_put_bytes(ctx, name, strlen(name), err);
}

int slu_workfile_put_stream(struct slu_workfile_out *o, const struct slu_header *h,
                            struct slu_names *names, struct slu_err *err)
{
    uint32_t n_domain = slu_names_n_domain(names);
    struct slu_buf b = SLU_BUF_INIT;
    uint64_t n_source;
    int rc = slu_header_encode(h, &b, err);

    if (!rc)
        rc = slu_workfile_put_bytes(o, b.data, b.len, err);
    slu_buf_release(&b);
    if (!rc)
        rc = slu_names_sources(names, NULL, 0, &n_source, err);
    if (!rc)
        rc = put_number(o, n_source, err);
    if (!rc)
        rc = slu_names_each_source(names, put_source, o, err);
    if (!rc)
        rc = put_number(o, n_domain, err);
    for (uint32_t i = 0; !rc && i < n_domain; i++) {
        const char *name = slu_names_domain(names, i);
        rc = slu_workfile_put_bytes(o, name, strlen(name), err);
    }
    return rc;
}

int slu_workfile_put_vocab(struct slu_workfile_out *o, struct slu_names *names,
                           struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_names_read_vocab(names, err);
    const struct slu_vocab_table *v = slu_names_vocab(names);

    if (!rc && v)
        rc = slu_vocab_encode(v, &b, err);
    if (!rc && v)
        rc = slu_workfile_put_bytes(o, b.data, b.len, err);
    slu_buf_release(&b);
    return rc;
}

/* ---- reading ---- */

/* Reads a name and appends a NUL, which the file does not have. */
static int get_name(struct slu_workfile *f, struct slu_buf *b, struct slu_err *err)
{
    int rc = slu_workfile_get_bytes(f, b, err);

    if (!rc && b->len && memchr(b->data, 0, b->len))
        rc = slu_workfile_damaged(f, err);
    return rc ? rc : slu_buf_append(b, "", 1, err);
}

static int get_sources(struct slu_workfile *f, struct slu_names *names,
                       struct slu_buf *b, struct slu_err *err)
{
    uint64_t n, ordinal;
    int rc = slu_workfile_get(f, 1, &n, err);

    for (uint64_t i = 0; !rc && i < n; i++) {
        rc = slu_workfile_get(f, 1, &ordinal, err);
        if (!rc)
            rc = get_name(f, b, err);
        if (!rc)
            rc = slu_names_set_source(names, ordinal, (const char *)b->data, err);
        /* One process that reads several such streams gives sources new numbers; parts
         * that do not know each other cannot do this. */
        const char *is = rc ? NULL : slu_names_source(names, ordinal);
        if (is && strcmp(is, (const char *)b->data))
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s: calls source %llu '%s', and the parts before it call it "
                          "'%s'; tokenize all parts from one list of files",
                          slu_workfile_path(f), (unsigned long long)ordinal,
                          (const char *)b->data, is);
    }
    return rc;
}

static int get_domains(struct slu_workfile *f, struct slu_names *names,
                       struct slu_workfile_stream *s, struct slu_buf *b,
                       struct slu_err *err)
{
    uint64_t n;
    int rc = slu_workfile_get(f, 1, &n, err);

    if (!rc && n > slu_workfile_left(f))
        rc = slu_workfile_damaged(f, err);
    if (rc)
        return rc;
    s->domain = calloc(n + 1, sizeof *s->domain);
    if (!s->domain)
        return slu_fail_nomem(err, (n + 1) * sizeof *s->domain);
    s->n_domain = n;
    for (uint64_t i = 0; !rc && i < n; i++) {
        rc = get_name(f, b, err);
        if (!rc)
            rc = slu_names_domain_number(names, (const char *)b->data, b->len - 1,
                                         &s->domain[i], err);
    }
    return rc;
}

int slu_workfile_get_stream(struct slu_workfile *f, uint64_t section,
                            struct slu_names *names, struct slu_workfile_stream *s,
                            struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;

    *s = (struct slu_workfile_stream){.domain = NULL};
    slu_header_init(&s->header);
    int rc = slu_workfile_begin(f, section, err);
    if (!rc)
        rc = slu_workfile_get_bytes(f, &b, err);
    if (!rc && slu_header_decode(&s->header, b.data, b.len, NULL))
        rc = slu_workfile_damaged(f, err);
    if (!rc)
        rc = get_sources(f, names, &b, err);
    if (!rc)
        rc = get_domains(f, names, s, &b, err);
    if (!rc)
        rc = slu_workfile_end(f, err);
    slu_buf_release(&b);
    return rc;
}

int slu_workfile_get_vocab(struct slu_workfile *f, uint64_t section,
                           uint64_t vocab_size, struct slu_names *names,
                           struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;

    if (!slu_workfile_len(f, section))
        return SLU_OK;
    int rc = slu_workfile_begin(f, section, err);
    if (!rc)
        rc = slu_workfile_get_bytes(f, &b, err);
    if (!rc)
        rc = slu_workfile_end(f, err);
    if (!rc && slu_vocab_decode(names, vocab_size, b.data, b.len, NULL))
        rc = slu_workfile_damaged(f, err);
    slu_buf_release(&b);
    return rc;
}

void slu_workfile_stream_release(struct slu_workfile_stream *s)
{
    slu_header_release(&s->header);
    free(s->domain);
    *s = (struct slu_workfile_stream){.domain = NULL};
}
