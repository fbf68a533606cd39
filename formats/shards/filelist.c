#include "formats/shards/filelist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/base/json.h"
#include "lib/base/json_write.h"

#define MAX_BYTE (UINT64_C(1) << 30)

/* ---- seals ---- */

enum { DIGITS = 16 };

static void digits(const void *p, size_t n, char out[DIGITS + 1])
{
    snprintf(out, DIGITS + 1, "%016llx", (unsigned long long)slu_hash64(p, n));
}

int slu_seal_put(struct slu_buf *t, const char *before, const char *behind,
                 struct slu_err *err)
{
    char hex[DIGITS + 1];

    digits(t->data, t->len, hex);
    return slu_buf_printf(t, err, "%s%s%s", before, hex, behind);
}

bool slu_seal_is(const void *text, size_t n, const char *before, const char *behind)
{
    const char *p = text;
    size_t a = strlen(before), b = strlen(behind);
    char hex[DIGITS + 1];

    if (n < a + DIGITS + b)
        return false;
    size_t body = n - a - DIGITS - b;
    digits(p, body, hex);
    return !memcmp(p + body, before, a) && !memcmp(p + body + a, hex, DIGITS) &&
           !memcmp(p + n - b, behind, b);
}

/* ---- the list ---- */

void slu_filelist_release(struct slu_filelist *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->file[i].name);
    free(l->file);
    *l = (struct slu_filelist){0};
}

bool slu_filelist_name_is_sound(const char *name, size_t n)
{
    return n && strlen(name) == n && *name != '/' && !strstr(name, "..");
}

int slu_filelist_add(struct slu_filelist *l, const char *name,
                     const struct slu_digest *d, struct slu_err *err)
{
    int rc = slu_grow(&l->file, &l->cap, l->n + 1, sizeof *l->file, err);

    if (rc)
        return rc;
    struct slu_file *f = &l->file[l->n];
    f->name = strdup(name);
    if (!f->name)
        return slu_fail_nomem(err, strlen(name));
    f->digest = *d;
    f->nth = l->n++;
    return SLU_OK;
}

static int add_line(struct slu_filelist *l, const char *p, size_t n,
                    struct slu_err *err)
{
    struct slu_json *j = NULL;
    struct slu_json_value root, v;
    struct slu_digest d;
    const char *name = NULL, *hex;
    size_t k, n_hex;
    int rc = slu_json_parse(&j, p, n, err);

    if (rc)
        return rc;
    root = slu_json_root(j);
    if (slu_json_get(root, "file", &v) && slu_json_string(v, &name, &k) &&
        slu_filelist_name_is_sound(name, k) && slu_json_get(root, "bytes", &v) &&
        slu_json_u64(v, &d.n_byte) && slu_json_get(root, "xxh3_64", &v) &&
        slu_json_string(v, &hex, &n_hex) && n_hex == DIGITS &&
        strspn(hex, "0123456789abcdef") == DIGITS) {
        d.xxh3 = strtoull(hex, NULL, 16);
        rc = slu_filelist_add(l, name, &d, err);
    } else {
        rc = slu_fail(err, SLU_E_FORMAT, "a line has no sound file, bytes or xxh3_64");
    }
    slu_json_free(j);
    return rc;
}

static int parse(struct slu_filelist *l, const struct slu_buf *t, struct slu_err *err)
{
    const char *p = (const char *)t->data, *end = p + t->len;
    int rc = SLU_OK;

    if (!slu_seal_is(p, t->len, SLU_FILELIST_SEAL))
        return slu_fail(
            err, SLU_E_CHECKSUM,
            "was changed: the xxh3_64 in its last line differs from that of its bytes");
    while (!rc) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl || nl + 1 == end) /* the seal */
            break;
        rc = add_line(l, p, (size_t)(nl - p), err);
        p = nl + 1;
    }
    return rc;
}

static int path_in(struct slu_buf *path, const char *folder, struct slu_err *err)
{
    return slu_buf_printf(path, err, "%s/manifest.jsonl", folder);
}

int slu_filelist_load(struct slu_filelist *l, const char *folder, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT, t = SLU_BUF_INIT;
    int rc = path_in(&path, folder, err);

    if (!rc && access((const char *)path.data, F_OK))
        rc = SLU_EOF;
    if (!rc)
        rc = slu_read_regular(&t, (const char *)path.data, MAX_BYTE, err);
    if (!rc && (rc = parse(l, &t, err)))
        slu_err_at(err, "%s", (const char *)path.data);
    slu_buf_release(&t);
    slu_buf_release(&path);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    const struct slu_file *x = a, *y = b;
    int c = strcmp(x->name, y->name);

    return c ? c : (x->nth > y->nth) - (x->nth < y->nth);
}

void slu_filelist_settle(struct slu_filelist *l)
{
    size_t n = 0;

    if (l->n)
        qsort(l->file, l->n, sizeof *l->file, by_name);
    for (size_t i = 0; i < l->n; i++) {
        if (i + 1 < l->n && !strcmp(l->file[i].name, l->file[i + 1].name))
            free(l->file[i].name);
        else
            l->file[n++] = l->file[i];
    }
    l->n = n;
}

int slu_filelist_load_set(struct slu_filelist *l, const char *dir, struct slu_err *err)
{
    static const char begin[] = "{\"file\":\"";
    struct slu_buf path = SLU_BUF_INIT, t = SLU_BUF_INIT;
    struct stat st;
    int rc = path_in(&path, dir, err);

    if (!rc && (lstat((const char *)path.data, &st) || !S_ISREG(st.st_mode)))
        rc = SLU_EOF;
    if (!rc)
        rc = slu_read_regular(&t, (const char *)path.data, UINT64_MAX, err);
    if (!rc && !t.len)
        rc = SLU_EOF;
    const char *p = (const char *)t.data, *end = rc ? p : p + t.len;
    for (const char *nl; !rc && p < end; p = nl + 1) {
        nl = memchr(p, '\n', (size_t)(end - p));
        if (nl) {
            rc = add_line(l, p, (size_t)(nl - p), err);
        } else {
            if ((size_t)(end - p) < sizeof begin - 1 ||
                memcmp(p, begin, sizeof begin - 1) != 0)
                rc = slu_fail(err, SLU_E_FORMAT, "the last line is no file's");
            break;
        }
    }
    slu_filelist_settle(l);
    slu_buf_release(&t);
    slu_buf_release(&path);
    return rc;
}

static int of_name(const void *name, const void *file)
{
    return strcmp(name, ((const struct slu_file *)file)->name);
}

const struct slu_file *slu_filelist_find(const struct slu_filelist *l, const char *name)
{
    return l->n ? bsearch(name, l->file, l->n, sizeof *l->file, of_name) : NULL;
}

int slu_filelist_write(struct slu_filelist *l, const char *folder, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT, t = SLU_BUF_INIT;
    int rc = path_in(&path, folder, err);

    slu_filelist_settle(l);
    for (size_t i = 0; i < l->n && !rc; i++) {
        const struct slu_file *f = &l->file[i];
        rc = slu_buf_printf(&t, err, "{\"file\":");
        if (!rc)
            rc = slu_json_put_string(&t, f->name, strlen(f->name), err);
        if (!rc)
            rc = slu_buf_printf(&t, err, ",\"bytes\":%llu,\"xxh3_64\":\"%016llx\"}\n",
                                (unsigned long long)f->digest.n_byte,
                                (unsigned long long)f->digest.xxh3);
    }
    if (!rc)
        rc = slu_seal_put(&t, SLU_FILELIST_SEAL, err);
    if (!rc)
        rc = slu_out_whole((const char *)path.data, t.data, t.len, err);
    slu_buf_release(&t);
    slu_buf_release(&path);
    return rc;
}
