#include "formats/olmo/olmo_cache.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/olmo/olmo_files.h"
#include "formats/shards/shard_dir.h"
#include "lib/base/buf.h"
#include "lib/base/io.h"
#include "lib/base/json_write.h"
#include "lib/base/sha256.h"

enum { MAX_BUCKETS = 64 };

/* ---- facts of the set ---- */

static uint64_t n_instance(const struct slu_olmo_set *set)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < set->n_bucket; i++)
        n += set->bucket[i].n_seq;
    return n;
}

static uint64_t n_shard(const struct slu_olmo_bucket *b)
{
    return (b->n_seq - 1) / b->shard_sequences + 1;
}

/* Sequences of shard i. */
static uint64_t shard_seq(const struct slu_olmo_bucket *b, uint64_t i)
{
    uint64_t left = b->n_seq - i * b->shard_sequences;
    return left < b->shard_sequences ? left : b->shard_sequences;
}

static uint64_t shard_byte(const struct slu_olmo_set *set,
                           const struct slu_olmo_bucket *b, uint64_t i)
{
    return shard_seq(b, i) * b->length * set->tok_bytes;
}

int slu_olmo_check(const struct slu_olmo_set *set, struct slu_err *err)
{
    const struct slu_olmo_bucket *b = set->bucket;
    if (set->n_bucket < 2)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "OLMo-core's data set of variable lengths takes two lengths or more, and "
            "there is one; its NumpyFSLDataset reads the files as they are");
    for (unsigned i = 0; i < set->n_bucket; i++) {
        if (b[i].length & (b[i].length - 1))
            return slu_fail(
                err, SLU_E_MISMATCH,
                "OLMo-core reads lengths that are powers of two; %llu is not",
                (unsigned long long)b[i].length);
        if (b[i].shard_sequences > UINT32_MAX / b[i].length)
            return slu_fail(err, SLU_E_LIMIT,
                            "OLMo-core's indices end at 2^32 tokens a file; write "
                            "shards of at most %llu sequences of %llu",
                            (unsigned long long)(UINT32_MAX / b[i].length),
                            (unsigned long long)b[i].length);
        if (n_shard(&b[i]) > 10000000)
            return slu_fail(err, SLU_E_LIMIT,
                            "more than 10,000,000 shards of %llu tokens, and their "
                            "names have seven digits; write larger shards",
                            (unsigned long long)b[i].length);
    }
    if (n_instance(set) > UINT32_MAX)
        return slu_fail(err, SLU_E_LIMIT,
                        "%llu sequences are more than OLMo-core's indices can "
                        "number, 4294967295; write several sets",
                        (unsigned long long)n_instance(set));
    if (set->eos > UINT32_MAX || set->pad > UINT32_MAX)
        return slu_advise(err, SLU_ADVISE_OLMO_TOKENIZER,
                          slu_fail(err, SLU_E_MISMATCH,
                                   "OLMo-core's tokenizer has ids for EOS and padding, "
                                   "and the stream has none"));
    return SLU_OK;
}

int slu_olmo_tokenizer(struct slu_olmo_set *set, const char *text, struct slu_err *err)
{
    uint64_t v[3];
    const char *p = !strcmp(text, "dolma2")                     ? "100278,100257,100277"
                    : !strcmp(text, "gpt-neox-olmo-dolma-v1_5") ? "50280,50279,1"
                                                                : text;
    for (unsigned i = 0; i < 3; i++) {
        char *end;
        errno = 0;
        v[i] = *p >= '0' && *p <= '9' ? strtoull(p, &end, 10) : UINT64_MAX;
        if (v[i] > UINT64_C(1) << 32 || errno || *end != (i < 2 ? ',' : '\0'))
            return slu_fail(err, SLU_E_USAGE,
                            "OLMo tokenizer %s: expected vocabulary size, EOS and "
                            "padding separated by commas, as in 50280,50279,1, or "
                            "dolma2 or gpt-neox-olmo-dolma-v1_5",
                            text);
        p = end + 1;
    }
    if (v[1] >= v[0] || v[2] >= v[0])
        return slu_fail(
            err, SLU_E_USAGE,
            "OLMo tokenizer %s: EOS and padding must be below the vocabulary size",
            text);
    set->vocab_size = v[0];
    set->eos = v[1];
    set->pad = v[2];
    return SLU_OK;
}

/* Sorts buckets by the names of their folders. */
static void by_name(const struct slu_olmo_set *set, unsigned order[MAX_BUCKETS])
{
    for (unsigned i = 0; i < set->n_bucket; i++) {
        char name[32], before[32];
        unsigned at = i;
        slu_shard_bucket_name(set->bucket[i].length, name);
        for (; at > 0; at--) {
            slu_shard_bucket_name(set->bucket[order[at - 1]].length, before);
            if (strcmp(before, name) < 0)
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

/* ---- names ---- */

void slu_olmo_curriculum_name(const struct slu_olmo_curriculum *c,
                              char out[SLU_OLMO_NAME])
{
    if (c->kind == SLU_OLMO_NATURAL)
        snprintf(out, SLU_OLMO_NAME, "vsl-natural");
    else
        snprintf(out, SLU_OLMO_NAME, "vsl-grow-%s-%llu-cycle%s",
                 c->kind == SLU_OLMO_P2 ? "p2" : "linear",
                 (unsigned long long)c->cycles, c->balanced ? "-balanced" : "");
}

static int hash_text(struct slu_sha256 *s, struct slu_buf *text)
{
    slu_sha256_update(s, text->data, text->len);
    slu_buf_clear(text);
    return SLU_OK;
}

/* Computes F over all files in order. */
static int fingerprint(const struct slu_olmo_set *set,
                       const struct slu_olmo_curriculum *c, char hex[65],
                       struct slu_err *err)
{
    unsigned order[MAX_BUCKETS];
    struct slu_buf t = SLU_BUF_INIT;
    struct slu_sha256 s;
    slu_sha256_init(&s);
    int rc = slu_buf_printf(
        &t, err,
        "class=NumpyVSLDatasetvocab_size=%llu,pad_token_id=%llu,eos_token_id=%llu,"
        "dtype=<class "
        "'numpy.uint%u'>,min_sequence_length=%llu,max_sequence_length=%llu,curriculum=",
        (unsigned long long)set->vocab_size, (unsigned long long)set->pad,
        (unsigned long long)set->eos, 8 * set->tok_bytes,
        (unsigned long long)set->bucket[0].length,
        (unsigned long long)(set->bucket[set->n_bucket - 1].length));
    if (!rc && c->kind == SLU_OLMO_NATURAL)
        rc = slu_buf_printf(&t, err, "VSLNaturalCurriculum(),");
    else if (!rc)
        rc = slu_buf_printf(
            &t, err, "VSLGrow%sCurriculum(num_cycles=%llu, balanced=%s),",
            c->kind == SLU_OLMO_P2 ? "P2" : "Linear", (unsigned long long)c->cycles,
            c->balanced ? "True" : "False");
    by_name(set, order);
    for (unsigned k = 0; !rc && k < set->n_bucket; k++) {
        const struct slu_olmo_bucket *b = &set->bucket[order[k]];
        for (uint64_t i = 0; !rc && i < n_shard(b); i++) {
            rc = slu_buf_printf(&t, err, "path=shard-%07llu.npy,size=%llu,",
                                (unsigned long long)i,
                                (unsigned long long)shard_byte(set, b, i));
            if (!rc)
                rc = hash_text(&s, &t);
        }
    }
    slu_buf_release(&t);
    slu_sha256_hex(&s, hex);
    return rc;
}

/* Appends the path of shard i as the trainer names it. */
static int put_path(struct slu_buf *t, const struct slu_olmo_set *set,
                    const struct slu_olmo_bucket *b, uint64_t i, struct slu_err *err)
{
    char name[32];
    slu_shard_bucket_name(b->length, name);
    return slu_buf_printf(t, err, "%s/%s/shard-%07llu.npy", set->prefix, name,
                          (unsigned long long)i);
}

/* Computes H of one file. */
static int path_hash(const struct slu_olmo_set *set, const struct slu_olmo_bucket *b,
                     uint64_t i, char hex[65], struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    struct slu_sha256 s;
    slu_sha256_init(&s);
    int rc = put_path(&t, set, b, i, err);
    if (!rc)
        rc = slu_buf_printf(&t, err, "%llu", (unsigned long long)shard_byte(set, b, i));
    uint64_t last = set->bucket[set->n_bucket - 1].length;
    for (uint64_t l = set->bucket[0].length; !rc && l <= last; l *= 2)
        rc = slu_buf_printf(&t, err, "%llu", (unsigned long long)l);
    if (!rc)
        rc = hash_text(&s, &t);
    slu_buf_release(&t);
    slu_sha256_hex(&s, hex);
    return rc;
}

int slu_olmo_prefix(char **prefix, const char *dir, struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    int rc = SLU_OK;
    *prefix = NULL;
    if (*dir != '/') {
        char *here = getcwd(NULL, 0);
        if (!here)
            return slu_fail_errno(err, "%s: the working folder has no name", dir);
        rc = slu_buf_printf(&t, err, "%s", here);
        free(here);
    }
    while (!rc && *dir) {
        size_t n = strcspn(dir, "/");
        if (n && !(n == 1 && *dir == '.'))
            rc = slu_buf_printf(&t, err, "%s%.*s",
                                t.len && t.data[t.len - 1] == '/' ? "" : "/", (int)n,
                                dir);
        dir += n + (dir[n] == '/');
    }
    if (!rc && (*prefix = strndup((const char *)t.data, t.len)) == NULL)
        rc = slu_fail_nomem(err, t.len);
    slu_buf_release(&t);
    return rc;
}

/* ---- files of numbers ---- */

/* Writes n numbers first, first + 1, … as u32. */
static int write_run(struct slu_olmo_files *w, struct slu_buf *path, uint64_t first,
                     uint64_t n, struct slu_err *err)
{
    struct slu_olmo_sink k;
    int rc = slu_olmo_open(&k, w, path, err);
    for (uint64_t i = 0; !rc && i < n; i++)
        rc = slu_olmo_put(&k, first + i, 4, err);
    return slu_olmo_end(&k, w, path, rc, err);
}

/* ---- the index ---- */

static int write_sequences(struct slu_olmo_files *w, const struct slu_olmo_set *set,
                           const struct slu_olmo_bucket *b, uint64_t shard,
                           struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    struct slu_olmo_sink k = {.was = -1};
    char hex[65];
    int rc = path_hash(set, b, shard, hex, err);
    if (!rc)
        rc = slu_buf_printf(&path, err, "%s/dataset-common/bucketed-doc-indices-%s.npy",
                            w->work, hex);
    if (!rc)
        rc = slu_olmo_open(&k, w, &path, err);
    for (uint64_t i = 0, n = shard_seq(b, shard); !rc && i < n; i++) {
        rc = slu_olmo_put(&k, i * b->length, 4, err);
        if (!rc)
            rc = slu_olmo_put(&k, (i + 1) * b->length, 4, err);
    }
    rc = slu_olmo_end(&k, w, &path, rc, err);
    slu_buf_release(&path);
    return rc;
}

static int write_lengths(struct slu_olmo_files *w, const char *folder,
                         const struct slu_olmo_set *set, struct slu_err *err)
{
    uint64_t last = set->bucket[set->n_bucket - 1].length - 1;
    unsigned n_byte = last <= UINT8_MAX ? 1 : last <= UINT16_MAX ? 2 : 4;
    unsigned order[MAX_BUCKETS];
    struct slu_buf path = SLU_BUF_INIT;
    struct slu_olmo_sink k = {.was = -1};
    by_name(set, order);
    int rc = slu_buf_printf(&path, err, "%s/instance-lengths.npy", folder);
    if (!rc)
        rc = slu_olmo_open(&k, w, &path, err);
    for (unsigned j = 0; !rc && j < set->n_bucket; j++) {
        const struct slu_olmo_bucket *b = &set->bucket[order[j]];
        for (uint64_t i = 0; !rc && i < b->n_seq; i++)
            rc = slu_olmo_put(&k, b->length, n_byte, err);
    }
    rc = slu_olmo_end(&k, w, &path, rc, err);
    slu_buf_release(&path);
    return rc;
}

/* The first instance of the bucket of this length, and the number of its instances;
 * none if no bucket of the set has this length. */
static void instances_of(const struct slu_olmo_set *set, uint64_t length,
                         uint64_t *first, uint64_t *n)
{
    unsigned order[MAX_BUCKETS];
    uint64_t before = 0;
    by_name(set, order);
    *first = *n = 0;
    for (unsigned j = 0; j < set->n_bucket; j++) {
        const struct slu_olmo_bucket *b = &set->bucket[order[j]];
        if (b->length == length) {
            *first = before;
            *n = b->n_seq;
        }
        before += b->n_seq;
    }
}

/* Writes FOLDER/bucketL-indices.npy or, with `order`, its instances in the order of an
 * epoch. Both have the same numbers, because `shuffle` has already put the sequences
 * into random order. */
static int write_buckets(struct slu_olmo_files *w, const char *folder,
                         const struct slu_olmo_set *set,
                         const struct slu_olmo_order *order, struct slu_err *err)
{
    struct slu_buf path = SLU_BUF_INIT;
    uint64_t last = set->bucket[set->n_bucket - 1].length, first, n;
    int rc = SLU_OK;
    for (uint64_t l = set->bucket[0].length; !rc && l <= last; l *= 2) {
        slu_buf_clear(&path);
        if (order)
            rc = slu_buf_printf(
                &path, err, "%s/instance_indices_bucket%llu_epoch%llu_seed%llu.npy",
                folder, (unsigned long long)l, (unsigned long long)order->epoch,
                (unsigned long long)order->seed);
        else
            rc = slu_buf_printf(&path, err, "%s/bucket%llu-indices.npy", folder,
                                (unsigned long long)l);
        instances_of(set, l, &first, &n);
        if (!rc)
            rc = write_run(w, &path, first, n, err);
    }
    slu_buf_release(&path);
    return rc;
}

static int put_config(struct slu_buf *t, const struct slu_olmo_set *set,
                      const struct slu_olmo_curriculum *c, const char *hex,
                      struct slu_err *err)
{
    unsigned order[MAX_BUCKETS];
    struct slu_buf path = SLU_BUF_INIT;
    bool first = true;
    int rc =
        slu_buf_printf(t, err,
                       "{\n  \"tokenizer\": {\"vocab_size\": %llu, \"eos_token_id\": "
                       "%llu, \"pad_token_id\": %llu},\n  \"dtype\": \"uint%u\",\n"
                       "  \"min_sequence_length\": %llu,\n  \"max_sequence_length\": "
                       "%llu,\n  \"vsl_curriculum\": {\"name\": \"%s\"",
                       (unsigned long long)set->vocab_size,
                       (unsigned long long)set->eos, (unsigned long long)set->pad,
                       8 * set->tok_bytes, (unsigned long long)set->bucket[0].length,
                       (unsigned long long)(set->bucket[set->n_bucket - 1].length),
                       c->kind == SLU_OLMO_NATURAL ? "natural"
                       : c->kind == SLU_OLMO_P2    ? "grow_p2"
                                                   : "grow_linear");
    if (!rc && c->kind != SLU_OLMO_NATURAL)
        rc = slu_buf_printf(t, err, ", \"num_cycles\": %llu, \"balanced\": %s",
                            (unsigned long long)c->cycles,
                            c->balanced ? "true" : "false");
    if (!rc)
        rc = slu_buf_printf(t, err, "},\n  \"fingerprint\": \"%s\",\n  \"paths\": [",
                            hex);
    by_name(set, order);
    for (unsigned k = 0; !rc && k < set->n_bucket; k++)
        for (uint64_t i = 0; !rc && i < n_shard(&set->bucket[order[k]]); i++) {
            slu_buf_clear(&path);
            rc = put_path(&path, set, &set->bucket[order[k]], i, err);
            if (!rc)
                rc = slu_buf_printf(t, err, first ? "\n    " : ",\n    ");
            if (!rc)
                rc = slu_json_put_string(t, path.data, path.len, err);
            first = false;
        }
    slu_buf_release(&path);
    return rc ? rc : slu_buf_printf(t, err, "\n  ]\n}\n");
}

static int write_config(struct slu_olmo_files *w, const struct slu_olmo_set *set,
                        const struct slu_olmo_curriculum *c, const char *hex,
                        struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT, path = SLU_BUF_INIT;
    struct slu_olmo_sink k = {.was = -1};
    char name[SLU_OLMO_NAME];
    slu_olmo_curriculum_name(c, name);
    int rc = put_config(&t, set, c, hex, err);
    if (!rc)
        rc = slu_buf_printf(&path, err, "%s/%s.json", w->work, name);
    if (!rc)
        rc = slu_olmo_open(&k, w, &path, err);
    if (!rc)
        rc = slu_olmo_write(&k, t.data, t.len, err);
    rc = slu_olmo_end(&k, w, &path, rc, err);
    slu_buf_release(&path);
    slu_buf_release(&t);
    return rc;
}

int slu_olmo_write_index(const char *work, const struct slu_olmo_set *set,
                         const struct slu_olmo_curriculum *c, struct slu_err *err)
{
    struct slu_buf folder = SLU_BUF_INIT;
    struct slu_olmo_files w = {0};
    char hex[65];
    int rc = slu_olmo_check(set, err);
    if (!rc)
        rc = slu_olmo_begin(&w, work, err);
    if (!rc)
        rc = fingerprint(set, c, hex, err);
    if (!rc)
        rc = slu_buf_printf(&folder, err, "%s/dataset-%s", work, hex);
    for (unsigned k = 0; !rc && k < set->n_bucket; k++)
        for (uint64_t i = 0; !rc && i < n_shard(&set->bucket[k]); i++)
            rc = write_sequences(&w, set, &set->bucket[k], i, err);
    if (!rc)
        rc = write_lengths(&w, (const char *)folder.data, set, err);
    if (!rc)
        rc = write_buckets(&w, (const char *)folder.data, set, NULL, err);
    if (!rc)
        rc = write_config(&w, set, c, hex, err);
    slu_buf_release(&folder);
    return slu_olmo_finish(&w, rc, err);
}

/* ---- an order ---- */

static int write_batches(struct slu_olmo_files *w, struct slu_buf *path,
                         const struct slu_olmo_order *order, struct slu_err *err)
{
    uint32_t batch[4096];
    uint64_t done = 0;
    size_t n = 1;
    struct slu_olmo_sink k;
    int rc = slu_olmo_open(&k, w, path, err);
    while (!rc && n && done < order->n_batch) {
        uint64_t left = order->n_batch - done;
        rc = order->next(order->arg, batch, left < 4096 ? (size_t)left : 4096, &n, err);
        for (size_t i = 0; !rc && i < n; i++)
            rc = slu_olmo_put(&k, batch[i], 4, err);
        done += n;
    }
    if (!rc && done != order->n_batch)
        rc = slu_fail(err, SLU_E_CONSERVATION,
                      "internal error: %llu of %llu batches were ordered",
                      (unsigned long long)done, (unsigned long long)order->n_batch);
    return slu_olmo_end(&k, w, path, rc, err);
}

int slu_olmo_write_order(const char *work, const struct slu_olmo_set *set,
                         const struct slu_olmo_curriculum *c,
                         const struct slu_olmo_order *order, struct slu_err *err)
{
    struct slu_buf folder = SLU_BUF_INIT, path = SLU_BUF_INIT;
    struct slu_olmo_files w;
    char hex[65], name[SLU_OLMO_NAME];
    slu_olmo_curriculum_name(c, name);
    int rc = slu_olmo_begin(&w, work, err);
    if (!rc)
        rc = fingerprint(set, c, hex, err);
    if (!rc)
        rc = slu_buf_printf(&folder, err, "%s/dataset-%s/%s", work, hex, name);
    if (!rc)
        rc = write_buckets(&w, (const char *)folder.data, set, order, err);
    if (!rc)
        rc = slu_buf_printf(
            &path, err, "%s/global_batch_indices_bz%llu_epoch%llu_seed%llu.npy",
            (const char *)folder.data, (unsigned long long)order->batch_tokens,
            (unsigned long long)order->epoch, (unsigned long long)order->seed);
    if (!rc)
        rc = write_batches(&w, &path, order, err);
    slu_buf_release(&path);
    slu_buf_release(&folder);
    return slu_olmo_finish(&w, rc, err);
}
