/* shardset_manifest.c - reads a set's manifest.jsonl, line by line. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/shards/filelist.h"
#include "formats/shards/shardset_private.h"
#include "lib/base/io.h"

int slu_shardset_open_manifest(struct slu_shardset *s, struct slu_err *err)
{
    char path[PATH_MAX];
    int rc = slu_shardset_path(s, path, err, "", "manifest.jsonl", "");
    if (rc)
        return rc;
    if (access(path, F_OK))
        return slu_shardset_incomplete(s, "there is no manifest.jsonl", err);
    rc = slu_check_regular(path, err);
    if (!rc && !(s->manifest = fopen(path, "re")))
        rc = slu_fail_errno(err, "%s", path);
    return rc;
}

bool slu_shardset_get_hash(struct slu_json_value v, uint64_t *out)
{
    struct slu_json_value x;
    const char *hash;
    size_t n;
    if (!slu_json_get(v, "xxh3_64", &x) || !slu_json_string(x, &hash, &n) || n != 16 ||
        strspn(hash, "0123456789abcdef") != 16)
        return false;
    *out = strtoull(hash, NULL, 16);
    return true;
}

bool slu_shardset_get_entry(struct slu_shardset_entry *e, struct slu_json_value v)
{
    struct slu_json_value x;
    const char *name;
    size_t n;
    *e = (struct slu_shardset_entry){0};
    if (!slu_json_get(v, "file", &x) || !slu_json_string(x, &name, &n) ||
        n >= sizeof e->file || !slu_filelist_name_is_sound(name, n) ||
        !slu_shardset_get_u64(v, "bytes", &e->n_byte) ||
        !slu_shardset_get_hash(v, &e->xxh3))
        return false;
    memcpy(e->file, name, strlen(name) + 1);
    e->is_shard = slu_shardset_get_u64(v, "shard", &e->shard);
    return !e->is_shard || (slu_shardset_get_u64(v, "part", &e->part) &&
                            slu_shardset_get_u64(v, "sequences", &e->n_seq));
}

int slu_shardset_peek(struct slu_shardset *s, struct slu_err *err)
{
    char line[1024];
    struct slu_json *j = NULL;
    if (s->have_next)
        return SLU_OK;
    if (!fgets(line, sizeof line, s->manifest))
        return SLU_EOF;
    s->n_line++;
    if (!strchr(line, '\n'))
        return slu_shardset_incomplete(s, "manifest.jsonl ends within a line", err);
    int rc = slu_json_parse(&j, line, strlen(line), err);
    if (rc)
        return slu_err_at(err, "%s/manifest.jsonl:%llu", s->dir,
                          (unsigned long long)s->n_line);
    s->have_next = slu_shardset_get_entry(&s->next, slu_json_root(j));
    slu_json_free(j);
    s->listed_byte += s->next.n_byte;
    return s->have_next
               ? SLU_OK
               : slu_fail(err, SLU_E_FORMAT,
                          "%s/manifest.jsonl:%llu: the line does not describe a shard",
                          s->dir, (unsigned long long)s->n_line);
}
