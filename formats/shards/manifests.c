#include "formats/shards/manifests.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/set_out.h"
#include "formats/shards/shard_dir.h"
#include "formats/shards/shard_private.h"
#include "lib/base/io.h"
#include "lib/base/json.h"

#define MAX_MANIFEST (UINT64_C(1) << 30) /* bytes; a million shards take 60 MB */
/* of a set; so that products of counts fit u64 */
#define MAX_TOKENS (UINT64_C(1) << 62)

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* {"shard": "shard-0000000", "num_sequences": N}; *shard is borrowed from j. */
static int read_line(const uint8_t *p, size_t n, struct slu_json **j, uint64_t *num,
                     struct slu_err *err)
{
    int rc = slu_json_parse(j, p, n, err);
    if (rc)
        return rc;
    struct slu_json_value v;
    const char *shard;
    size_t len;
    if (!slu_json_get(slu_json_root(*j), "shard", &v) ||
        !slu_json_string(v, &shard, &len) ||
        !slu_json_get(slu_json_root(*j), "num_sequences", &v) || !slu_json_u64(v, num))
        return slu_fail(err, SLU_E_FORMAT,
                        "expected {\"shard\": …, \"num_sequences\": …}");
    return SLU_OK;
}

static int count_shards(struct slu_bucket_count *b, const struct slu_buf *text,
                        struct slu_err *err)
{
    const uint8_t *p = text->data, *end = p + text->len;
    uint64_t seqs = 0;
    for (uint64_t line = 1; p < end; line++) {
        const uint8_t *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            return slu_fail(err, SLU_E_TRUNCATED,
                            "%s:%llu: the last line has no end; the shard set is not "
                            "complete",
                            b->manifest, (unsigned long long)line);
        struct slu_json *j = NULL;
        uint64_t num;
        int rc = read_line(p, (size_t)(nl - p), &j, &num, err);
        slu_json_free(j);
        if (rc)
            return slu_err_at(err, "%s:%llu", b->manifest, (unsigned long long)line);
        if (num > (UINT64_C(1) << 40))
            return slu_fail(err, SLU_E_FORMAT,
                            "%s:%llu: %llu sequences in one shard, more than 2^40",
                            b->manifest, (unsigned long long)line,
                            (unsigned long long)num);
        if (num > b->seq_per_shard) {
            b->short_shards += b->shards;
            b->shards = 0;
            b->seq_per_shard = num;
        }
        if (num == b->seq_per_shard)
            b->shards++;
        else
            b->short_shards++;
        seqs += num;
        if (seqs > MAX_TOKENS / b->length)
            return slu_fail(
                err, SLU_E_LIMIT,
                "%s:%llu: more than 2^62 tokens in a bucket; such shards cannot exist",
                b->manifest, (unsigned long long)line);
        p = nl + 1;
    }
    b->short_seq = seqs - b->shards * b->seq_per_shard;
    return SLU_OK;
}

/* The length in the name of a bucket's folder: 2^i for D_<i>, n for L_<n>; 0: not a
 * bucket's name. */
static uint64_t folder_length(const char *name)
{
    char *end;
    if ((strncmp(name, "D_", 2) && strncmp(name, "L_", 2)) || name[2] < '0' ||
        name[2] > '9')
        return 0;
    errno = 0;
    unsigned long long n = strtoull(name + 2, &end, 10);
    if (*end || errno || n > (*name == 'D' ? 40 : UINT64_C(1) << 40))
        return 0;
    return *name == 'D' ? UINT64_C(1) << n : n;
}

/* The bucket's length from the name of the folder that the manifest is in. */
static int bucket_length(const char *manifest, uint64_t *length, struct slu_err *err)
{
    char *full = realpath(manifest, NULL), *dir = NULL;
    if (!full)
        return slu_fail_errno(err, "%s", manifest);
    char *slash = strrchr(full, '/');
    if (slash) {
        *slash = '\0';
        dir = strrchr(full, '/');
    }
    *length = dir ? folder_length(dir + 1) : 0;
    free(full);
    if (!*length)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: expected the folder of a shard set, or a bucket's "
                        "manifest in a folder D_<i> or L_<n>",
                        manifest);
    return SLU_OK;
}

/* Tokens of all shards, short ones included. */
static uint64_t all_tokens(const struct slu_bucket_counts *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->n_bucket; i++)
        n += slu_bucket_sequences(&s->bucket[i]) * s->bucket[i].length;
    return n;
}

/* Takes ownership of b's name, also on failure. */
static int add_bucket(struct slu_bucket_counts *s, const struct slu_bucket_count *b,
                      struct slu_err *err)
{
    size_t i = 0;
    unsigned __int128 tokens =
        (unsigned __int128)slu_bucket_sequences(b) * b->length + all_tokens(s);
    int rc =
        slu_grow(&s->bucket, &s->cap_bucket, s->n_bucket + 1, sizeof *s->bucket, err);
    while (!rc && i < s->n_bucket && s->bucket[i].length < b->length)
        i++;
    if (!rc && i < s->n_bucket && s->bucket[i].length == b->length)
        rc = slu_fail(err, SLU_E_MISMATCH, "%s and %s belong to the same bucket",
                      s->bucket[i].manifest, b->manifest);
    if (!rc && tokens > MAX_TOKENS)
        rc = slu_fail(err, SLU_E_LIMIT,
                      "%s: more than 2^62 tokens in all; such shards cannot exist",
                      b->manifest);
    if (rc || b->seq_per_shard == 0) { /* a bucket without sequences is left out */
        s->n_empty += !rc;
        free(b->manifest);
        return rc;
    }
    memmove(&s->bucket[i + 1], &s->bucket[i], (s->n_bucket - i) * sizeof *b);
    s->bucket[i] = *b;
    s->n_bucket++;
    return SLU_OK;
}

static int add_manifest(struct slu_bucket_counts *s, const char *path,
                        struct slu_err *err)
{
    struct slu_bucket_count b = {.manifest = strdup(path)};
    struct slu_buf text = SLU_BUF_INIT;
    int rc = SLU_OK;
    if (!b.manifest)
        return slu_fail_nomem(err, strlen(path) + 1);
    rc = bucket_length(path, &b.length, err);
    if (!rc)
        rc = slu_read_regular(&text, path, MAX_MANIFEST, err);
    if (!rc)
        rc = count_shards(&b, &text, err);
    if (!rc)
        b.digest = slu_hash128(text.data, text.len);
    slu_buf_release(&text);
    if (rc) {
        free(b.manifest);
        return rc;
    }
    return add_bucket(s, &b, err);
}

/* ---- report.json ---- */

static bool get_u64(struct slu_json_value v, const char *key, uint64_t *out)
{
    struct slu_json_value x;
    return slu_json_get(v, key, &x) && slu_json_u64(x, out);
}

static bool get_checksum(struct slu_json_value v, struct slu_u128 *out)
{
    struct slu_json_value x;
    const char *p;
    size_t n;
    if (!slu_json_get(v, "checksum", &x) || !slu_json_string(x, &p, &n) || n != 32 ||
        strspn(p, "0123456789abcdef") != 32)
        return false;
    char half[17] = {0};
    memcpy(half, p, 16);
    out->hi = strtoull(half, NULL, 16);
    memcpy(half, p + 16, 16);
    out->lo = strtoull(half, NULL, 16);
    return true;
}

/* Reads one bucket of the report. */
static int read_bucket(struct slu_bucket_count *b, struct slu_json_value v,
                       const char *path, struct slu_err *err)
{
    uint64_t n;
    *b = (struct slu_bucket_count){0};
    if (!get_u64(v, "length", &b->length) || !get_u64(v, "sequences", &n) ||
        !get_u64(v, "shard_sequences", &b->seq_per_shard) || !b->length ||
        b->length > UINT64_C(1) << 40 || !b->seq_per_shard || n > UINT64_C(1) << 48 ||
        b->seq_per_shard > UINT64_C(1) << 40)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: a bucket without a sound length, sequences and "
                        "shard_sequences",
                        path);
    b->shards = n / b->seq_per_shard;
    b->short_seq = n % b->seq_per_shard;
    b->short_shards = b->short_seq != 0;
    return SLU_OK;
}

/* Checks that the set has exactly the report's buckets, with equal counts. */
static int compare_buckets(const struct slu_bucket_counts *set,
                           const struct slu_bucket_counts *said, const char *dir,
                           struct slu_err *err)
{
    for (size_t i = 0; i < set->n_bucket || i < said->n_bucket; i++) {
        const struct slu_bucket_count *a = i < set->n_bucket ? &set->bucket[i] : NULL,
                                      *b = i < said->n_bucket ? &said->bucket[i] : NULL;
        if (!a || (b && b->length < a->length))
            return slu_fail(err, SLU_E_TRUNCATED,
                            "%s: the set is incomplete: the bucket of %llu that "
                            "report.json names has no manifest",
                            dir, (unsigned long long)b->length);
        if (!b || a->length < b->length)
            return slu_fail(
                err, SLU_E_MISMATCH,
                "%s: report.json names no such bucket; it belongs to another set",
                a->manifest);
        uint64_t n = slu_bucket_sequences(a), want = slu_bucket_sequences(b);
        if (n != want)
            return slu_fail(
                err, n < want ? SLU_E_TRUNCATED : SLU_E_MISMATCH,
                "%s: %llu sequences, and report.json says %llu; the set was changed",
                a->manifest, (unsigned long long)n, (unsigned long long)want);
    }
    return SLU_OK;
}

/* Adds the report's buckets if the format has no manifests; else compares them with
 * those of the manifests. */
static int report_buckets(struct slu_bucket_counts *s, struct slu_json_value root,
                          const char *dir, const char *path, struct slu_err *err)
{
    struct slu_bucket_counts said;
    struct slu_json_value list, format;
    struct slu_json_iter it;
    int rc = SLU_OK;
    bool manifests = s->n_bucket || s->n_empty;
    if (!slu_json_get(root, "buckets", &list))
        return SLU_OK; /* not a report of ours; nothing to compare */
    if (slu_json_get(root, "whole_documents", &format))
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: a set of whole documents, which have no bucket lengths; "
                        "give a set of sequences that were decomposed or packed",
                        path);
    slu_bucket_counts_init(&said);
    for (slu_json_iter_init(&it, list); !rc && slu_json_next(&it);) {
        struct slu_bucket_count b;
        rc = read_bucket(&b, it.value, path, err);
        if (!rc && slu_bucket_sequences(&b) == 0)
            continue;
        if (!rc && !(b.manifest = strdup(path)))
            rc = slu_fail_nomem(err, strlen(path));
        if (!rc)
            rc = add_bucket(&said, &b, err);
    }
    if (!rc && (manifests ||
                (slu_json_get(root, "format", &format) && slu_json_is(format, "wds"))))
        rc = compare_buckets(s, &said, dir, err);
    else if (!rc) {
        struct slu_bucket_counts none = *s;
        *s = said;
        said = none;
        s->from_report = s->n_bucket != 0;
    }
    slu_bucket_counts_release(&said);
    return rc;
}

int slu_manifests_put_places(struct slu_json_value report, struct slu_buf *out,
                             struct slu_err *err)
{
    struct slu_json_value v = SLU_JSON_NONE;
    struct slu_json_iter it;
    const char *s = "", *before = "[";
    size_t n;
    int rc = SLU_OK;

    if (slu_json_get(report, "forgotten", &v))
        (void)slu_json_get(v, "same_places", &v);
    for (slu_json_iter_init(&it, v); !rc && slu_json_next(&it); before = ", ")
        if (slu_json_string(it.value, &s, &n))
            rc = slu_buf_printf(out, err, "%s\"%s\"", before, s);
    return rc ? rc
              : slu_buf_printf(out, err, "%s\"%s\", \"%s\"]", before,
                               slu_json_get_string(report, "checksum", ""),
                               slu_json_get_string(report, "xxh3_64", ""));
}

/* Reads DIR/report.json, which the sets of the reference trainer lack: its buckets, and
 * the checksum. */
static int add_report(struct slu_bucket_counts *s, const char *dir, bool *found,
                      struct slu_err *err)
{
    struct slu_json *j = NULL;
    char *path = NULL;
    if (asprintf(&path, "%s/report.json", dir) < 0)
        return slu_fail_nomem(err, strlen(dir));
    int rc = SLU_OK;
    *found = exists(path);
    if (*found)
        rc = slu_json_load(&j, path, err);
    if (!rc && *found) {
        struct slu_json_value root = slu_json_root(j);
        uint64_t said = 0, seen = 0;
        rc = report_buckets(s, root, dir, path, err);
        for (size_t i = 0; i < s->n_bucket; i++)
            seen += slu_bucket_sequences(&s->bucket[i]);
        bool sum = get_u64(root, "sequences", &said);
        if (!rc && sum && said != seen)
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s: says %llu sequences, and the buckets have %llu", path,
                          (unsigned long long)said, (unsigned long long)seen);
        s->has_checksum = sum && get_checksum(root, &s->checksum);
        (void)slu_shards_hex(root, "xxh3_64", &s->seal, 1);
        struct slu_buf places = SLU_BUF_INIT;
        if (!rc && s->has_checksum)
            rc = slu_manifests_put_places(root, &places, err);
        free(s->places);
        s->places =
            !rc && places.len ? strndup((const char *)places.data, places.len) : NULL;
        slu_buf_release(&places);
        if (!rc && s->has_checksum && !s->places)
            rc = slu_fail_nomem(err, 64);
    }
    slu_json_free(j);
    free(path);
    return rc;
}

/* ---- a set ---- */

/* DIR/NAME/manifest.jsonl, or DIR/manifest.jsonl where name is NULL. Caller frees. */
static char *join(const char *dir, const char *name)
{
    size_t n = strlen(dir);
    const char *slash = n && dir[n - 1] == '/' ? "" : "/";
    char *p = NULL;
    if (asprintf(&p, "%s%s%s%smanifest.jsonl", dir, slash, name ? name : "",
                 name ? "/" : "") < 0)
        return NULL;
    return p;
}

static int incomplete(const char *dir, const char *what, struct slu_err *err)
{
    return slu_fail(
        err, SLU_E_TRUNCATED,
        "%s: the set is incomplete: %s; its shuffle did not finish, run it again", dir,
        what);
}

/* Adds the manifests of a set's buckets; returns the name of one bucket that has
 * none. */
static int add_folders(struct slu_bucket_counts *s, const char *dir, char *lacking,
                       size_t cap, struct slu_err *err)
{
    DIR *d = opendir(dir);
    if (!d)
        return slu_fail_errno(err, "%s", dir);
    int rc = SLU_OK;
    *lacking = '\0';
    for (struct dirent *e; !rc && (e = readdir(d));) {
        if (strncmp(e->d_name, "D_", 2) && strncmp(e->d_name, "L_", 2))
            continue;
        char *m = join(dir, e->d_name);
        if (!m)
            rc = slu_fail_nomem(err, strlen(dir));
        else if (exists(m))
            rc = add_manifest(s, m, err);
        else if (folder_length(e->d_name))
            snprintf(lacking, cap, "%.32s", e->d_name);
        free(m);
    }
    closedir(d);
    return rc;
}

/* Adds a folder of buckets' folders. Sets written by shuffle also have segments/, and
 * report.json is written last; the sets of the reference trainer have only
 * manifests. */
static int add_set(struct slu_bucket_counts *s, const char *dir, struct slu_err *err)
{
    char lacking[64], what[128];
    bool report = false;
    int rc = slu_shard_dir_not_batch(dir, err);
    if (!rc)
        rc = slu_set_being_replaced(dir, err);
    if (!rc)
        rc = add_folders(s, dir, lacking, sizeof lacking, err);
    if (rc)
        return rc;
    bool manifests = s->n_bucket || s->n_empty;
    if (manifests && *lacking) {
        snprintf(what, sizeof what, "%s has no manifest.jsonl", lacking);
        return incomplete(dir, what, err);
    }
    rc = add_report(s, dir, &report, err);
    if (!rc && !report && manifests && slu_exists_in(dir, "segments"))
        return incomplete(dir, "there is no report.json", err);
    if (!rc && !report && !manifests)
        rc = slu_fail(err, SLU_E_FORMAT,
                      "%s: no D_<i>/manifest.jsonl in this folder; it is not a shard "
                      "set, or not a complete one",
                      dir);
    return rc;
}

/* Moves all buckets of `from` to `s`. */
static int merge(struct slu_bucket_counts *s, struct slu_bucket_counts *from,
                 struct slu_err *err)
{
    bool only = s->n_bucket == 0 && s->n_empty == 0;
    int rc = SLU_OK;
    for (size_t i = 0; i < from->n_bucket; i++) {
        if (!rc)
            rc = add_bucket(s, &from->bucket[i], err);
        else
            free(from->bucket[i].manifest);
        from->bucket[i].manifest = NULL;
    }
    s->n_empty += from->n_empty;
    s->from_report = s->from_report || from->from_report;
    s->has_checksum = only && from->has_checksum;
    s->checksum = from->checksum;
    s->seal = from->seal;
    if (s->has_checksum) {
        s->places = from->places;
        from->places = NULL;
    }
    slu_bucket_counts_release(from);
    return rc;
}

int slu_manifests_add(struct slu_bucket_counts *s, const char *path,
                      struct slu_err *err)
{
    struct stat st;
    s->has_checksum = false; /* the checksum is that of one complete set */
    free(s->places);
    s->places = NULL;
    if (stat(path, &st))
        return slu_fail_errno(err, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return add_manifest(s, path, err);
    char *own = join(path, NULL);
    if (!own)
        return slu_fail_nomem(err, strlen(path));
    /* A set's own manifest.jsonl lists files; those of its buckets count shards. */
    if (exists(own) && !slu_exists_in(path, "segments") &&
        !slu_exists_in(path, "report.json")) {
        int rc = add_manifest(s, own, err);
        free(own);
        return rc;
    }
    free(own);
    struct slu_bucket_counts set;
    slu_bucket_counts_init(&set);
    int rc = add_set(&set, path, err);
    if (!rc)
        return merge(s, &set, err);
    slu_bucket_counts_release(&set);
    return rc;
}
