/* shard_end.c - journals of parts: their first and last lines, and the files that they
 * list.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/shards/filelist.h"
#include "formats/shards/shard_part.h"
#include "lib/base/hash.h"
#include "lib/base/json.h"

enum { TRAILER = 31 }; /* ,"xxh3_64":"…"} and a line's end */

int slu_shards_part_path(const char *work, uint64_t index, uint64_t of,
                         const char *suffix, struct slu_buf *path, struct slu_err *err)
{
    int rc = slu_buf_printf(path, err, "%s/shards.%llu-of-%llu.%s", work,
                            (unsigned long long)index, (unsigned long long)of, suffix);

    return rc ? rc : slu_buf_append(path, "", 1, err);
}

/* ---- first lines ---- */

int slu_shards_part_mark(const struct slu_shards *s, uint64_t of,
                         const struct slu_sum *input, struct slu_buf *t,
                         struct slu_err *err)
{
    char more[40];

    snprintf(more, sizeof more, ",\"parts\":%llu", (unsigned long long)of);
    return slu_shards_head(s, input, more, t, err);
}

int slu_shards_part_head(const struct slu_shards *s, const struct slu_shards_part *part,
                         const struct slu_sum *input, struct slu_buf *t,
                         struct slu_err *err)
{
    struct slu_buf more = SLU_BUF_INIT;
    int rc =
        slu_buf_printf(&more, err, ",\"part\":%llu,\"of\":%llu,\"spans\":[",
                       (unsigned long long)part->index, (unsigned long long)part->of);

    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        rc = slu_buf_printf(
            &more, err, "%s[%llu,%llu,%d]", i ? "," : "",
            (unsigned long long)(part->span[i].n_seq ? part->span[i].first_shard : 0),
            (unsigned long long)part->span[i].n_seq, part->span[i].last);
    if (!rc)
        rc = slu_buf_append(&more, "]", 2, err);
    if (!rc)
        rc = slu_shards_head(s, input, (const char *)more.data, t, err);
    slu_buf_release(&more);
    return rc;
}

/* ---- last lines ---- */

static int put_dropped(const struct slu_shards *s, const struct slu_sum *d,
                       struct slu_buf *t, struct slu_err *err)
{
    char sum[33], trace[33];

    slu_u128_hex(d->checksum, sum);
    slu_u128_hex(d->trace_checksum, trace);
    int rc = slu_buf_printf(
        t, err,
        "{\"documents\":%llu,\"sequences\":%llu,\"tokens\":%llu,\"segments\":%llu,"
        "\"padding\":%llu,\"checksum\":\"%s\",\"trace_checksum\":\"%s\"",
        (unsigned long long)d->n.documents, (unsigned long long)d->n.sequences,
        (unsigned long long)d->n.tokens, (unsigned long long)d->segments,
        (unsigned long long)d->padding, sum, trace);
    if (!rc)
        rc = slu_shards_put_masks(s, d->n.loss_tokens, d->mask_checksum, t, err);
    return rc ? rc : slu_buf_append(t, "}", 1, err);
}

int slu_shards_put_end(const struct slu_shards *s, const struct slu_shards_end *e,
                       struct slu_buf *t, struct slu_err *err)
{
    const char *comma = "";
    int rc = slu_buf_printf(t, err, "{\"end\":{\"shards\":%llu,\"dropped\":",
                            (unsigned long long)e->n_shard);

    if (!rc)
        rc = put_dropped(s, &e->dropped, t, err);
    if (!rc)
        rc = slu_buf_printf(t, err, ",\"rows\":[");
    for (unsigned i = 0; i < s->n_bucket && !rc; i++) {
        if (e->rows[i].n_byte == 0)
            continue;
        rc = slu_buf_printf(
            t, err, "%s{\"bucket\":\"%s\",\"bytes\":%llu,\"xxh3_64\":\"%016llx\"}",
            comma, s->bucket[i].pub.name, (unsigned long long)e->rows[i].n_byte,
            (unsigned long long)e->rows[i].xxh3);
        comma = ",";
    }
    if (!rc)
        rc = slu_buf_printf(t, err, "]}");
    return rc ? rc
              : slu_buf_printf(t, err, ",\"xxh3_64\":\"%016llx\"}\n",
                               (unsigned long long)slu_hash64(t->data, t->len));
}

static bool read_end(const struct slu_shards *s, struct slu_json_value v,
                     struct slu_shards_end *e)
{
    struct slu_sum *d = &e->dropped;
    struct slu_json_value end, dropped, rows, name;
    struct slu_json_iter it;
    uint64_t sum[2], trace[2];
    unsigned k = 0;
    bool ok = slu_json_get(v, "end", &end) &&
              slu_shards_u64(end, "shards", &e->n_shard) &&
              slu_json_get(end, "dropped", &dropped) &&
              slu_shards_u64(dropped, "documents", &d->n.documents) &&
              slu_shards_u64(dropped, "sequences", &d->n.sequences) &&
              slu_shards_u64(dropped, "tokens", &d->n.tokens) &&
              slu_shards_u64(dropped, "segments", &d->segments) &&
              slu_shards_u64(dropped, "padding", &d->padding) &&
              slu_shards_hex(dropped, "checksum", sum, 2) &&
              slu_shards_hex(dropped, "trace_checksum", trace, 2) &&
              slu_shards_get_masks(s, dropped, &d->n.loss_tokens, &d->mask_checksum) &&
              slu_json_get(end, "rows", &rows);

    if (!ok)
        return false;
    d->checksum = (struct slu_u128){sum[0], sum[1]};
    d->trace_checksum = (struct slu_u128){trace[0], trace[1]};
    for (slu_json_iter_init(&it, rows); ok && slu_json_next(&it); k++) {
        ok = slu_json_get(it.value, "bucket", &name);
        while (ok && k < s->n_bucket && !slu_json_is(name, s->bucket[k].pub.name))
            k++;
        ok = ok && k < s->n_bucket &&
             slu_shards_u64(it.value, "bytes", &e->rows[k].n_byte) &&
             slu_shards_hex(it.value, "xxh3_64", &e->rows[k].xxh3, 1);
    }
    return ok;
}

bool slu_shards_get_end(const struct slu_shards *s, const struct slu_buf *text,
                        struct slu_shards_end *e, size_t *at, bool *damaged)
{
    struct slu_json *j = NULL;
    char want[TRAILER + 1];
    size_t n = text->len;

    *e = (struct slu_shards_end){0};
    *damaged = false;
    if (n < TRAILER || memcmp(text->data + n - TRAILER, ",\"xxh3_64\":\"", 12) ||
        memcmp(text->data + n - TRAILER - 2, "]}", 2))
        return false;
    snprintf(want, sizeof want, ",\"xxh3_64\":\"%016llx\"}\n",
             (unsigned long long)slu_hash64(text->data, n - TRAILER));
    const uint8_t *p = memrchr(text->data, '\n', n - 1);
    *at = p ? (size_t)(p + 1 - text->data) : 0;
    *damaged = memcmp(text->data + n - TRAILER, want, TRAILER) ||
               slu_json_parse(&j, text->data + *at, n - *at, NULL) ||
               !read_end(s, slu_json_root(j), e);
    slu_json_free(j);
    return !*damaged;
}

/* ---- taking over shards ---- */

int slu_shards_adopt(struct slu_shards_bucket *b, const struct slu_shards_done *d,
                     struct slu_err *err)
{
    struct slu_sum sum = {
        .n = d->n, .checksum = d->checksum, .mask_checksum = d->mask_checksum};
    int rc =
        slu_grow(&b->facts, &b->cap_facts, b->pub.n_shard + 1, sizeof *b->facts, err);

    if (rc)
        return rc;
    b->facts[b->pub.n_shard++] = d->facts;
    b->pub.n_seq += d->facts.n_seq;
    if (!b->pub.rule.per_tok && d->facts.n_seq < b->pub.shard_sequences)
        b->n_short = d->facts.n_seq;
    slu_sum_add(&b->sum, &sum);
    return SLU_OK;
}

static int check_size(const char *path, uint64_t n_byte, struct slu_err *err)
{
    struct stat st;

    if (stat(path, &st))
        return slu_fail(err, SLU_E_TRUNCATED, "%s is missing", path);
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == n_byte)
        return SLU_OK;
    return slu_fail(err, SLU_E_TRUNCATED, "%s has %llu bytes, and %llu were written",
                    path, (unsigned long long)st.st_size, (unsigned long long)n_byte);
}

/* Whether the file of a finished set has this hash: by the set's list, or by reading. */
static int check_hash(const struct slu_filelist *set, const char *name,
                      const char *path, uint64_t xxh3, struct slu_err *err)
{
    const struct slu_file *listed = slu_filelist_find(set, name);
    struct slu_digest is = listed ? listed->digest : (struct slu_digest){0, 0};
    struct slu_buf scratch = SLU_BUF_INIT;
    int rc = listed ? SLU_OK : slu_file_digest(path, &scratch, &is, err);

    slu_buf_release(&scratch);
    return rc || is.xxh3 == xxh3
               ? rc
               : slu_fail(
                     err, SLU_E_MISMATCH,
                     "%s is not the file that was written, but that of another set",
                     path);
}

int slu_shards_check_files(const struct slu_shards *s, const char *dir,
                           const struct slu_filelist *set,
                           const struct slu_shards_bucket *b,
                           const struct slu_shard_facts *f, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    char name[SLU_SHARD_NAME];
    int rc = SLU_OK;

    for (unsigned i = 0; i < slu_shards_n_file(s) && !rc; i++) {
        slu_shards_file_name(s, b, f->number, i, name);
        slu_buf_clear(&path);
        rc = slu_buf_printf(&path, err, "%s/%s", dir, name);
        if (!rc)
            rc = check_size((const char *)path.data, f->n_byte[i], err);
        if (!rc && set)
            rc = check_hash(set, name, (const char *)path.data, f->xxh3[i], err);
    }
    slu_buf_release(&path);
    return rc;
}

int slu_shards_check_rows(const struct slu_shards *s, const char *work, uint64_t index,
                          uint64_t of, const struct slu_shards_end *e,
                          struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    char name[128];
    int rc = SLU_OK;

    for (unsigned i = 0; i < s->n_bucket && !rc; i++) {
        if (e->rows[i].n_byte == 0)
            continue;
        slu_shards_rows_name(&s->bucket[i], index, of, name);
        slu_buf_clear(&path);
        rc = slu_buf_printf(&path, err, "%s/%s", work, name);
        if (!rc)
            rc = check_size((const char *)path.data, e->rows[i].n_byte, err);
    }
    slu_buf_release(&path);
    return rc;
}

/* ---- a set that is finished ---- */

static int set_path(const struct slu_shards *s, const char *name, char out[4096])
{
    int n = snprintf(out, 4096, "%s/%s", s->dir, name);

    return n > 0 && n < 4096 ? SLU_OK : SLU_E_IO;
}

/* Checks report.json: its own bytes, and the hash of manifest.jsonl. */
static bool report_is_there(const struct slu_shards *s)
{
    struct slu_buf text = SLU_BUF_INIT, scratch = SLU_BUF_INIT;
    struct slu_json *j = NULL;
    struct slu_json_value v;
    struct slu_digest d = {0, 0};
    char path[4096];
    bool ok = !set_path(s, "report.json", path) &&
              !slu_read_regular(&text, path, SLU_SHARDS_MAX_JOURNAL, NULL) &&
              slu_seal_is(text.data, text.len, SLU_REPORT_SEAL) &&
              !slu_json_parse(&j, text.data, text.len, NULL) &&
              slu_json_get(slu_json_root(j), "manifest", &v) &&
              slu_shards_u64(v, "bytes", &d.n_byte) &&
              slu_shards_hex(v, "xxh3_64", &d.xxh3, 1) &&
              slu_file_is(s->dir, "manifest.jsonl", &d, &scratch);

    slu_json_free(j);
    slu_buf_release(&text);
    slu_buf_release(&scratch);
    return ok;
}

/* Whether all files of a list in the set's folder, or in the one of this name there, have
 * its sizes. */
static bool sizes_are(const struct slu_shards *s, const char *folder,
                      const struct slu_filelist *l)
{
    char path[4096], name[1024];
    bool ok = true;

    for (size_t i = 0; i < l->n && ok; i++) {
        int n = snprintf(name, sizeof name, "%s%s%s", folder, *folder ? "/" : "",
                         l->file[i].name);
        ok = n > 0 && n < (int)sizeof name && !set_path(s, name, path) &&
             !check_size(path, l->file[i].digest.n_byte, NULL);
    }
    return ok;
}

/* Checks the format's folder beside the buckets by its own list. */
static bool set_folder_is_there(const struct slu_shards *s)
{
    const char *folder = s->cfg.format->set_folder;
    struct slu_filelist l = SLU_FILELIST_INIT;
    char path[4096];
    bool ok = !folder || set_path(s, folder, path) ||
              (slu_filelist_load(&l, path, NULL) >= 0 && sizes_are(s, folder, &l));

    slu_filelist_release(&l);
    return ok;
}

bool slu_shards_set_is_there(const struct slu_shards *s, const struct slu_filelist *l)
{
    return report_is_there(s) && set_folder_is_there(s) && sizes_are(s, "", l);
}
