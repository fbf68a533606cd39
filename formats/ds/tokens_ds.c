/* tokens_ds.c - datatrove's .ds, as its TokenizedFile writes it and nanotron reads it
 * (datatrove/pipeline/tokens/tokenizer.py).
 *
 *   X.ds           ids of two or four bytes
 *   X.ds.index     u64 for each document: its end, as a number of ids (optional)
 *   X.ds.metadata  lines "TOKENIZER|WIDTH", the number of ids, the same number for
 *                  people (optional)
 *   X.ds.loss      a byte for each id, if losses are masked (optional)
 *
 * A document's number is its position in the index. Without an index, documents are cut
 * at --eos-id and numbered like those of .npy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/ids/tokens_docs.h"
#include "lib/base/io.h"
#include "lib/base/le.h"

enum { MAX_METADATA = 1 << 16 };

struct ds {
    char *name; /* of the index file */
    int fd;
    struct slu_column end;
    uint64_t last, docs; /* last: end of the last document; docs: documents returned */
};

static char *with_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix) + 1;
    char *s = malloc(n + m);
    if (s) {
        memcpy(s, path, n);
        memcpy(s + n, suffix, m);
    }
    return s;
}

static int exists(const char *path, const char *suffix, bool *is, struct slu_err *err)
{
    struct stat st;
    char *name = with_suffix(path, suffix);
    if (!name)
        return slu_fail_nomem(err, strlen(path));
    *is = !stat(name, &st);
    free(name);
    return SLU_OK;
}

static const char *const beside[] = {".index", ".metadata", ".loss"};

static bool probe(const struct slu_tokens_cfg *cfg, const struct slu_tokens_look *at)
{
    (void)cfg;
    return slu_tokens_suffix(at->path, ".ds") ||
           slu_tokens_suffix(at->path, ".ds.index") ||
           slu_tokens_suffix(at->path, ".ds.metadata") ||
           slu_tokens_suffix(at->path, ".ds.loss");
}

/* Refuses metadata and other files that "*.ds*" matches besides inputs. */
static int check_name(const char *path, struct slu_err *err)
{
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (slu_tokens_suffix(path, beside[i]))
            return slu_fail(
                err, SLU_E_USAGE,
                "%s: this file describes the ids of %.*s; name that file alone", path,
                (int)(strlen(path) - strlen(beside[i])), path);
    if (!strcmp(path, "-"))
        return slu_advise(
            err, SLU_ADVISE_DS_STDIN,
            slu_fail(
                err, SLU_E_USAGE,
                "standard input cannot carry datatrove's files; name the .ds file"));
    return SLU_OK;
}

/* ---- metadata ---- */

struct metadata {
    bool there;
    unsigned bytes;
    uint64_t n_tok;
};

/* Parses "gpt2|2\n1234\n1.23 kT"; the last line is for people. */
static int parse_metadata(const char *text, struct metadata *m)
{
    const char *line = strchr(text, '\n'), *bar = NULL;
    char *end;
    for (const char *p = text; line && p < line; p++)
        if (*p == '|')
            bar = p;
    if (!bar || bar + 2 != line || (bar[1] != '2' && bar[1] != '4'))
        return -1;
    m->bytes = (unsigned)(bar[1] - '0');
    if (line[1] < '0' || line[1] > '9')
        return -1;
    errno = 0;
    m->n_tok = strtoull(line + 1, &end, 10);
    return errno || *end != '\n' ? -1 : 0;
}

static int read_metadata(const char *path, struct metadata *m, struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    *m = (struct metadata){0};
    int rc = exists(path, ".metadata", &m->there, err);
    if (rc || !m->there)
        return rc;
    char *name = with_suffix(path, ".metadata");
    rc = name ? slu_read_regular(&text, name, MAX_METADATA, err)
              : slu_fail_nomem(err, strlen(path));
    if (!rc)
        rc = slu_buf_append(&text, "", 1, err);
    if (!rc && parse_metadata((const char *)text.data, m))
        rc = slu_fail(
            err, SLU_E_FORMAT,
            "%s: expected the tokenizer and the width of an id, and the number of ids "
            "on the next line; the file was cut; remove it to read without it",
            name);
    free(name);
    slu_buf_release(&text);
    return rc;
}

/* ---- the index ---- */

/* The last end gives the number of ids; from this number and the file's size follows
 * their width. */
static int check_size(struct slu_docs_file *f, struct ds *x, uint64_t n_byte,
                      const struct metadata *m, struct slu_err *err)
{
    uint8_t last[8] = {0};
    int rc =
        f->n_doc ? slu_pread_full(x->fd, last, 8, 8 * (f->n_doc - 1), err) : SLU_OK;
    if (rc)
        return slu_err_at(err, "%s", x->name);
    f->n_tok = slu_le64(last);
    unsigned bytes = m->there ? m->bytes : f->n_tok && n_byte / 4 >= f->n_tok ? 4 : 2;
    if (f->n_tok > INT64_MAX / bytes || f->n_tok * bytes != n_byte)
        return slu_fail(
            err, SLU_E_TRUNCATED,
            "%s: its last document ends at id %llu, and %s has %llu "
            "bytes, not %s for each: one of them was cut, or belongs to another file",
            x->name, (unsigned long long)f->n_tok, f->ids, (unsigned long long)n_byte,
            !m->there    ? "two or four"
            : bytes == 2 ? "two"
                         : "four");
    if (m->there && m->n_tok != f->n_tok)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: ends at id %llu, %s.metadata says %llu ids: one of them "
                        "was cut, or belongs to another file",
                        x->name, (unsigned long long)f->n_tok, f->ids,
                        (unsigned long long)m->n_tok);
    f->type = bytes == 2 ? SLU_ID_U16 : SLU_ID_U32;
    return SLU_OK;
}

static void ds_close(struct slu_docs_file *f)
{
    struct ds *x = f->state;
    if (x) {
        slu_column_release(&x->end);
        if (x->fd >= 0)
            close(x->fd);
        free(x->name);
        free(x);
    }
    free(f->ids);
    *f = (struct slu_docs_file){0};
}

static int open_table(struct slu_docs_file *f, struct ds *x, struct slu_err *err)
{
    struct metadata m;
    uint64_t n_byte, n_byte_ids;
    int fd, rc = read_metadata(f->ids, &m, err);
    if (!rc)
        rc = slu_docs_open_file(&fd, &n_byte_ids, f->ids, err);
    if (rc)
        return rc;
    close(fd);
    rc = slu_docs_open_file(&x->fd, &n_byte, x->name, err);
    if (rc)
        return rc;
    if (n_byte % 8)
        return slu_fail(err, SLU_E_TRUNCATED,
                        "%s: %llu bytes are not a whole number of 8-byte document "
                        "ends: the file was cut",
                        x->name, (unsigned long long)n_byte);
    f->n_doc = n_byte / 8;
    slu_column_init(&x->end, x->fd, x->name, 0, f->n_doc, 8);
    return check_size(f, x, n_byte_ids, &m, err);
}

static int ds_open(struct slu_docs_file *f, const struct slu_tokens_cfg *cfg,
                   const char *path, struct slu_err *err)
{
    struct ds *x = calloc(1, sizeof *x);
    int rc = SLU_OK;
    *f = (struct slu_docs_file){.path = path, .state = x};
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->fd = -1;
    f->ids = strdup(path);
    x->name = with_suffix(path, ".index");
    if (!f->ids || !x->name)
        rc = slu_fail_nomem(err, strlen(path) + 8);
    if (!rc)
        rc = open_table(f, x, err);
    if (!rc)
        rc = slu_docs_check_width(cfg, path, slu_id_bytes(f->type), err);
    if (rc)
        ds_close(f);
    return rc;
}

static int ds_next(struct slu_docs_file *f, uint64_t *end, struct slu_err *err)
{
    struct ds *x = f->state;
    const uint8_t *p;
    int rc = slu_column_next(&x->end, &p, err);
    if (rc)
        return rc;
    *end = slu_le64(p);
    if (*end < x->last || *end > f->n_tok)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: document %llu ends at id %llu; expected an id after the "
                        "last end, %llu, of %llu in all",
                        x->name, (unsigned long long)x->docs, (unsigned long long)*end,
                        (unsigned long long)x->last, (unsigned long long)f->n_tok);
    x->last = *end;
    x->docs++;
    return SLU_OK;
}

const struct slu_docs_format slu_docs_ds = {
    .name = "ds", .open = ds_open, .next = ds_next, .close = ds_close};

/* ---- with an index or without ---- */

/* *indexed: all inputs have an index; *c: how inputs without an index are read. */
static int look_at_all(const struct slu_tokens_cfg *cfg, bool *indexed,
                       struct slu_tokens_cfg *c, struct slu_err *err)
{
    struct metadata m;
    *c = *cfg;
    *indexed = true;
    for (size_t i = 0; i < cfg->n_path; i++) {
        bool has = false, loss = false;
        int rc = check_name(cfg->path[i], err);
        if (!rc)
            rc = exists(cfg->path[i], ".index", &has, err);
        if (!rc)
            rc = exists(cfg->path[i], ".loss", &loss, err);
        if (!rc && i && has != *indexed)
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s has an index beside it, %s has none; give files of one "
                          "kind at a time",
                          cfg->path[has ? i : 0], cfg->path[has ? 0 : i]);
        if (!rc && !has)
            rc = read_metadata(cfg->path[i], &m, err);
        if (rc)
            return rc;
        *indexed = has;
        if (!has && m.there && !c->tok_bytes)
            c->tok_bytes = m.bytes;
        if (!has && m.there && c->tok_bytes != m.bytes)
            return slu_fail(err, SLU_E_MISMATCH,
                            "%s: its metadata says ids of %u bytes, not %u",
                            cfg->path[i], m.bytes, c->tok_bytes);
        if (loss && cfg->seen && !cfg->seen->masks++)
            cfg->seen->masks_name = cfg->path[i];
    }
    return SLU_OK;
}

static int open_reader(struct slu_reader **r, const struct slu_tokens_cfg *cfg,
                       struct slu_err *err)
{
    struct slu_tokens_cfg c;
    bool indexed;
    int rc = look_at_all(cfg, &indexed, &c, err);
    if (rc)
        return rc;
    return indexed ? slu_docs_open(r, cfg, &slu_docs_ds, err)
                   : slu_tokens_npy.open(r, &c, err);
}

static int lengths(const struct slu_tokens_cfg *cfg,
                   const struct slu_tokens_lengths_cfg *how,
                   struct slu_tokens_lengths *out, struct slu_err *err)
{
    struct slu_tokens_cfg c;
    bool indexed;
    int rc = look_at_all(cfg, &indexed, &c, err);
    if (rc)
        return rc;
    return indexed ? slu_docs_lengths(cfg, &slu_docs_ds, how, out, err)
                   : slu_tokens_npy.lengths(&c, how, out, err);
}

const struct slu_tokens_format slu_tokens_ds = {.name = "ds",
                                                .probe = probe,
                                                .open = open_reader,
                                                .lengths = lengths,
                                                .lengths_alone = true};
