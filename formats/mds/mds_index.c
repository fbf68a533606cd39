/* mds_index.c - reads index.json of a folder of MDS shards: the index that
 * mosaicml-streaming writes for a data set, or that its merge_index makes of several
 * (names with folders). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/ids/raw_file.h"
#include "formats/mds/mds.h"
#include "lib/base/io.h"

enum { NEAR = 64 };

static int index_path(const char *dir, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s/index.json", dir);
    return n > 0 && n < PATH_MAX ? 0 : -1;
}

bool slu_mds_index_is(const char *dir)
{
    enum { LOOK = 64 << 10 };
    char path[PATH_MAX], *text = malloc(LOOK + 1);
    bool is = false;
    size_t n = 0;
    int fd = -1;
    if (text && !index_path(dir, path) && !slu_open_regular(&fd, path, NULL, NULL) &&
        !slu_read_full(fd, text, LOOK, &n, NULL)) {
        text[n] = 0;
        for (const char *p = text; !is && (p = strstr(p, "\"format\"")); p++) {
            const char *q = p + 8;
            q += strspn(q, " \t\r\n:");
            is = !strncmp(q, "\"mds\"", 5);
        }
    }
    if (fd >= 0)
        close(fd);
    free(text);
    return is;
}

/* Whether a name stays below the folder. */
static bool below(const char *p, size_t n)
{
    if (!n || *p == '/' || strlen(p) != n)
        return false;
    for (; *p; p += strcspn(p, "/"), p += *p == '/')
        if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2]))
            return false;
    return true;
}

struct file {
    const char *name; /* borrowed from the index */
    uint64_t n_byte;
    const char *hash, *hex; /* an algorithm that can be checked, or NULL */
};

static bool parse_file(struct slu_json_value v, struct file *f)
{
    static const char *const order[] = {"xxh3_64", "xxh3_128", "xxh128", "xxh64",
                                        "xxh32"};
    struct slu_json_value k;
    size_t n;
    *f = (struct file){0};
    if (!slu_json_get(v, "basename", &k) || !slu_json_string(k, &f->name, &n) ||
        !below(f->name, n) || !slu_json_get(v, "bytes", &k) ||
        !slu_json_u64(k, &f->n_byte) || !slu_json_get(v, "hashes", &k))
        return false;
    for (size_t i = 0; !f->hash && i < sizeof order / sizeof *order; i++) {
        struct slu_json_value h;
        if (slu_json_get(k, order[i], &h) && slu_json_string(h, &f->hex, &n))
            f->hash = order[i];
    }
    return true;
}

static int copy(char **to, const char *text, struct slu_err *err)
{
    *to = text ? strdup(text) : NULL;
    return *to || !text ? SLU_OK : slu_fail_nomem(err, strlen(text) + 1);
}

static int copy_path(char **to, const char *dir, const char *name, struct slu_err *err)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    *to = malloc(n);
    if (!*to)
        return slu_fail_nomem(err, n);
    snprintf(*to, n, "%s/%s", dir, name);
    return SLU_OK;
}

/* Adds columns; if a recent shard has the same columns, shares them. */
static int add_columns(struct slu_mds_index *x, struct slu_mds_shard *s,
                       struct slu_json_value v, const char *want, unsigned bytes_width,
                       struct slu_err *err)
{
    struct slu_mds_columns c;
    int rc = slu_mds_columns_parse(&c, v, want, bytes_width, err);
    if (rc)
        return rc;
    for (size_t i = x->n_columns; i-- > 0 && !s->columns && i + NEAR >= x->n_columns;)
        if (slu_mds_columns_equal(x->columns[i], &c))
            s->columns = x->columns[i];
    if (s->columns) {
        slu_mds_columns_release(&c);
        return SLU_OK;
    }
    rc = slu_grow(&x->columns, &x->cap_columns, x->n_columns + 1, sizeof *x->columns,
                  err);
    s->columns = rc ? NULL : malloc(sizeof *s->columns);
    if (!s->columns) {
        slu_mds_columns_release(&c);
        return rc ? rc : slu_fail_nomem(err, sizeof *s->columns);
    }
    *s->columns = c;
    x->columns[x->n_columns++] = s->columns;
    return SLU_OK;
}

static int add_shard(struct slu_mds_index *x, const char *dir, struct slu_json_value v,
                     const char *want, unsigned bytes_width, struct slu_err *err)
{
    struct slu_json_value k, zip = SLU_JSON_NONE;
    struct file raw, stored;
    uint64_t version = 0, samples;
    const char *compression = NULL;
    size_t n;
    if (slu_json_type(v) != SLU_JSON_OBJECT || !slu_json_get(v, "version", &k) ||
        !slu_json_u64(k, &version) || !slu_json_get(v, "format", &k))
        return slu_fail(err, SLU_E_FORMAT,
                        "expected a JSON object with version and format");
    if (version != 2 || !slu_json_is(k, "mds"))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "is not of format mds, version 2, the only one that is read");
    if (!slu_json_get(v, "samples", &k) || !slu_json_u64(k, &samples) ||
        samples > UINT32_MAX || !slu_json_get(v, "raw_data", &k) ||
        !parse_file(k, &raw))
        return slu_fail(err, SLU_E_FORMAT,
                        "expected samples below 2^32, and raw_data with basename, "
                        "bytes and hashes");
    bool zipped = slu_json_get_set(v, "zip_data", &zip);
    if (zipped && (!parse_file(zip, &stored) || !slu_json_get(v, "compression", &k) ||
                   !slu_json_string(k, &compression, &n)))
        return slu_fail(err, SLU_E_FORMAT,
                        "zip_data or compression is not as MDS writes it");
    int rc = slu_grow(&x->shard, &x->cap_shard, x->n_shard + 1, sizeof *x->shard, err);
    if (rc)
        return rc;
    struct slu_mds_shard *s = &x->shard[x->n_shard++];
    *s = (struct slu_mds_shard){.samples = samples, .raw_byte = raw.n_byte};
    s->zstd =
        zipped && (!strcmp(compression, "zstd") || !strncmp(compression, "zstd:", 5));
    if (zipped && !s->zstd)
        rc = copy(&s->compression, compression, err);
    if (!rc)
        rc = copy_path(&s->path, dir, zipped ? stored.name : raw.name, err);
    if (!rc && zipped)
        rc = copy_path(&s->raw_path, dir, raw.name, err);
    if (!rc && raw.hash)
        rc = copy(&s->raw_hash, raw.hash, err);
    if (!rc && raw.hash)
        rc = copy(&s->raw_hex, raw.hex, err);
    if (!rc && zipped && stored.hash)
        rc = copy(&s->stored_hash, stored.hash, err);
    if (!rc && zipped && stored.hash)
        rc = copy(&s->stored_hex, stored.hex, err);
    return rc ? rc : add_columns(x, s, v, want, bytes_width, err);
}

int slu_mds_index_load(struct slu_mds_index *x, const char *dir, const char *want,
                       unsigned bytes_width, struct slu_err *err)
{
    char path[PATH_MAX];
    struct slu_json *j;
    struct slu_json_value shards = SLU_JSON_NONE, v;
    struct slu_json_iter it;
    uint64_t version = 0;
    *x = (struct slu_mds_index){0};
    if (index_path(dir, path))
        return slu_fail(err, SLU_E_IO, "%s: name too long", dir);
    int rc = slu_json_load(&j, path, err);
    if (rc)
        return rc;
    struct slu_json_value root = slu_json_root(j);
    if (!slu_json_get(root, "version", &v) || !slu_json_u64(v, &version) ||
        version != 2 || !slu_json_get(root, "shards", &shards) ||
        slu_json_type(shards) != SLU_JSON_ARRAY)
        rc = slu_fail(err, SLU_E_FORMAT, "%s: not an index of MDS shards, version 2",
                      path);
    slu_json_iter_init(&it, shards);
    for (size_t i = 0; !rc && slu_json_next(&it); i++)
        if ((rc = add_shard(x, dir, it.value, want, bytes_width, err)))
            slu_err_at(err, "%s: shard %zu", path, i);
    slu_json_free(j);
    return rc;
}

void slu_mds_index_release(struct slu_mds_index *x)
{
    for (size_t i = 0; i < x->n_shard; i++) {
        struct slu_mds_shard *s = &x->shard[i];
        free(s->path);
        free(s->compression);
        free(s->raw_path);
        free(s->raw_hash);
        free(s->raw_hex);
        free(s->stored_hash);
        free(s->stored_hex);
    }
    for (size_t i = 0; i < x->n_columns; i++) {
        slu_mds_columns_release(x->columns[i]);
        free(x->columns[i]);
    }
    free(x->shard);
    free(x->columns);
    *x = (struct slu_mds_index){0};
}
