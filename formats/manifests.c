#include "formats/manifests.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/io.h"
#include "lib/json.h"

#define MAX_MANIFEST (UINT64_C(1) << 30) /* bytes; a million shards take 60 MB */

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
                        "not a manifest's {\"shard\": …, \"num_sequences\": …}");
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
            return slu_fail(err, SLU_E_FORMAT, "%s:%llu: %llu sequences in one shard",
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
        p = nl + 1;
    }
    b->short_seq = seqs - b->shards * b->seq_per_shard;
    return SLU_OK;
}

/* The bucket's length from the name of the folder that the manifest is in. */
static int bucket_length(const char *manifest, uint64_t *length, struct slu_err *err)
{
    char *full = realpath(manifest, NULL);
    if (!full)
        return slu_fail_errno(err, "%s", manifest);
    char *slash = strrchr(full, '/'), *dir = NULL, *end = NULL;
    if (slash) {
        *slash = '\0';
        dir = strrchr(full, '/');
    }
    unsigned long i = 0;
    if (dir && strncmp(dir, "/D_", 3) == 0 && dir[3] >= '0' && dir[3] <= '9')
        i = strtoul(dir + 3, &end, 10);
    bool power = end && *end == '\0' && i <= 40,
         length_dir = dir && !strncmp(dir, "/L_", 3);
    free(full);
    if (length_dir)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "%s: OpenLM reads buckets whose lengths are powers of two (D_<i>)",
            manifest);
    if (!power)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: a bucket's manifest lies in a folder D_<i>", manifest);
    *length = UINT64_C(1) << i;
    return SLU_OK;
}

static int add_manifest(struct slu_bucket_counts *s, const char *path,
                        struct slu_err *err)
{
    struct slu_bucket_count b = {0};
    struct slu_buf text = SLU_BUF_INIT;
    int rc =
        slu_grow(&s->bucket, &s->cap_bucket, s->n_bucket + 1, sizeof *s->bucket, err);
    b.manifest = strdup(path);
    if (!rc && !b.manifest)
        rc = slu_fail_nomem(err, strlen(path) + 1);
    if (!rc)
        rc = bucket_length(path, &b.length, err);
    if (!rc)
        rc = slu_read_whole(&text, path, MAX_MANIFEST, err);
    if (!rc)
        rc = count_shards(&b, &text, err);
    slu_buf_release(&text);
    size_t i = 0;
    while (!rc && i < s->n_bucket && s->bucket[i].length < b.length)
        i++;
    if (!rc && i < s->n_bucket && s->bucket[i].length == b.length)
        rc = slu_fail(err, SLU_E_MISMATCH, "%s and %s are of the same bucket",
                      s->bucket[i].manifest, path);
    if (rc || b.seq_per_shard == 0) { /* an empty bucket is no bucket */
        s->n_empty += !rc;
        free(b.manifest);
        return rc;
    }
    memmove(&s->bucket[i + 1], &s->bucket[i], (s->n_bucket - i) * sizeof b);
    s->bucket[i] = b;
    s->n_bucket++;
    return SLU_OK;
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

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

int slu_manifests_add(struct slu_bucket_counts *s, const char *path,
                      struct slu_err *err)
{
    struct stat st;
    if (stat(path, &st))
        return slu_fail_errno(err, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return add_manifest(s, path, err);
    char *own = join(path, NULL);
    if (!own)
        return slu_fail_nomem(err, strlen(path));
    if (exists(own)) {
        int rc = add_manifest(s, own, err);
        free(own);
        return rc;
    }
    free(own);
    DIR *d = opendir(path);
    if (!d)
        return slu_fail_errno(err, "%s", path);
    int rc = SLU_OK;
    size_t found = 0;
    for (struct dirent *e; !rc && (e = readdir(d));) {
        if (strncmp(e->d_name, "D_", 2) && strncmp(e->d_name, "L_", 2))
            continue;
        char *m = join(path, e->d_name);
        if (!m)
            rc = slu_fail_nomem(err, strlen(path));
        else if (exists(m)) {
            found++;
            rc = add_manifest(s, m, err);
        }
        free(m);
    }
    closedir(d);
    if (!rc && !found)
        rc = slu_fail(
            err, SLU_E_FORMAT,
            "%s: no D_<i>/manifest.jsonl in it: no shard set, or not a complete "
            "one",
            path);
    return rc;
}
