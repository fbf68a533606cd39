/* schedulefile_write.c - writes a schedule, binary or JSON, in one pass. */
#include <stdlib.h>
#include <string.h>

#include "formats/schedule/schedulefile_private.h"
#include "lib/base/io.h"
#include "lib/base/json_write.h"
#include "lib/base/le.h"

struct slu_schedulefile_writer {
    struct slu_out *out;
    bool json;
    uint64_t left;        /* steps not yet written */
    bool any;             /* JSON: at least one step was written */
    struct slu_buf block; /* binary: records of the current block; JSON: text */
    struct slu_buf hashes;
};

/* ---- the head of the JSON form ---- */

static int put_u64(struct slu_buf *t, const char *key, uint64_t v, struct slu_err *err)
{
    return slu_buf_printf(t, err, "\"%s\": %llu, ", key, (unsigned long long)v);
}

static int put_bool(struct slu_buf *t, const char *key, bool v, struct slu_err *err)
{
    return slu_buf_printf(t, err, "\"%s\": %s, ", key, v ? "true" : "false");
}

/* Pairs of how often sequences are taken, and how many they are. */
static int put_uses(struct slu_buf *t, struct slu_steps_uses u, struct slu_err *err)
{
    const uint64_t pair[][2] = {
        {0, u.never}, {u.times, u.as_many}, {u.times + 1, u.once_more}};
    int rc = slu_buf_printf(t, err, ", \"uses\": [");
    for (int i = 0, n = 0; !rc && i < 3; i++)
        if (pair[i][1])
            rc = slu_buf_printf(t, err, "%s[%llu, %llu]", n++ ? ", " : "",
                                (unsigned long long)pair[i][0],
                                (unsigned long long)pair[i][1]);
    return rc ? rc : slu_buf_printf(t, err, "]");
}

static int put_bucket(struct slu_buf *t, const struct slu_steps_info *info, size_t at,
                      struct slu_err *err)
{
    const struct slu_steps_bucket *b = &info->bucket[at];
    const struct {
        const char *key;
        uint64_t v;
    } row[] = {{"length", b->length},
               {"sequences", b->sequences},
               {"sequences_per_step", b->per_step},
               {"sequences_per_unit", b->unit},
               {"odds", b->odds},
               {"steps_per_pass", b->runs},
               {"steps", b->used_steps}};
    int rc = slu_buf_printf(t, err, "%s\n  {", at ? "," : "");
    for (size_t i = 0; !rc && i < sizeof row / sizeof *row; i++)
        rc = put_u64(t, row[i].key, row[i].v, err);
    if (!rc)
        rc = slu_buf_printf(t, err, "\"dropped\": {");
    for (int i = 0, n = 0; !rc && i < SLU_N_DROP; i++)
        if (b->dropped[i])
            rc = slu_buf_printf(t, err, "%s\"%s\": %llu", n++ ? ", " : "",
                                slu_steps_drop_name(i),
                                (unsigned long long)b->dropped[i]);
    if (!rc)
        rc = slu_buf_printf(t, err, "}");
    if (!rc && info->version == 2)
        rc = slu_buf_printf(t, err, ", \"block\": %llu", (unsigned long long)b->block);
    if (!rc)
        rc = put_uses(t, slu_steps_uses(info, at), err);
    return rc ? rc : slu_buf_printf(t, err, "}");
}

int slu_schedulefile_put_json(struct slu_buf *t, const struct slu_steps_info *info,
                              uint64_t first_step, uint64_t n_steps,
                              struct slu_err *err)
{
    char hex[33], sum[33];
    const struct {
        const char *key;
        uint64_t v;
    } row[] = {{"seed", info->seed},
               {"cycles", info->cycles},
               {"epochs", info->epochs},
               {"tokens", info->tokens},
               {"tokens_per_step", info->batch_tokens},
               {"world", info->world},
               {"steps_per_pass", info->pass_steps},
               {"total_steps", info->total_steps},
               {"first_step", first_step},
               {"n_steps", n_steps}};
    slu_u128_hex(info->shards_digest, hex);
    slu_u128_hex(info->checksum, sum);
    int rc = slu_buf_printf(t, err, "\"method\": \"%s\", \"curriculum\": \"%s\", ",
                            info->method == SLU_STEPS_OLMO ? "olmo" : "generic",
                            info->curriculum);
    for (size_t i = 0; !rc && i < sizeof row / sizeof *row; i++)
        rc = put_u64(t, row[i].key, row[i].v, err);
    if (!rc)
        rc = put_bool(t, "balanced", info->flags & SLU_STEPS_BALANCED, err);
    if (!rc)
        rc = put_bool(t, "reorder", info->flags & SLU_STEPS_REORDER, err);
    if (!rc)
        rc = put_bool(t, "bricks", info->flags & SLU_STEPS_BRICKS, err);
    if (!rc)
        rc = slu_buf_printf(t, err, "\"shards_digest\": \"%s\", \"checksum\": %s%s%s, ",
                            hex, info->has_checksum ? "\"" : "",
                            info->has_checksum ? sum : "null",
                            info->has_checksum ? "\"" : "");
    if (!rc && info->seal)
        rc = slu_buf_printf(t, err, "\"set_xxh3_64\": \"%016llx\", ",
                            (unsigned long long)info->seal);
    if (!rc)
        rc = slu_buf_printf(t, err, "\"buckets\": [");
    for (size_t i = 0; i < info->n_bucket && !rc; i++)
        rc = put_bucket(t, info, i, err);
    return rc ? rc : slu_buf_printf(t, err, "]");
}

/* ---- the writer ---- */

int slu_schedulefile_create(struct slu_schedulefile_writer **out, const char *path,
                            bool json, bool force, const struct slu_steps_info *info,
                            uint64_t first_step, struct slu_err *err)
{
    struct slu_schedulefile_writer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return slu_fail_nomem(err, sizeof *w);
    w->json = json;
    w->left = info->total_steps - first_step;
    int rc = slu_out_open(&w->out, path, err);
    if (!rc && !json && !force && slu_out_is_terminal(w->out))
        rc = slu_advise(err, SLU_ADVISE_TERMINAL,
                        slu_fail(err, SLU_E_USAGE,
                                 "a schedule is binary, and the output is a terminal"));
    if (!rc && json) {
        rc =
            slu_buf_printf(&w->block, err, "{\"kind\": \"schedule\", \"version\": %u, ",
                           info->version);
        if (!rc)
            rc = slu_schedulefile_put_json(&w->block, info, first_step, w->left, err);
        if (!rc)
            rc = slu_buf_printf(&w->block, err, ", \"steps\": [");
    } else if (!rc) {
        rc = slu_sf_put_header(&w->block, info, first_step, w->left, err);
    }
    if (!rc)
        rc = slu_out_write(w->out, w->block.data, w->block.len, err);
    slu_buf_clear(&w->block);
    if (rc) {
        slu_schedulefile_abort(w);
        return rc;
    }
    *out = w;
    return SLU_OK;
}

static int flush_block(struct slu_schedulefile_writer *w, struct slu_err *err)
{
    uint8_t hash[8];
    int rc = SLU_OK;
    if (!w->json) {
        slu_put_le64(hash, slu_hash64(w->block.data, w->block.len));
        rc = slu_buf_append(&w->hashes, hash, sizeof hash, err);
    }
    if (!rc)
        rc = slu_out_write(w->out, w->block.data, w->block.len, err);
    slu_buf_clear(&w->block);
    return rc;
}

/* Writes v in digits at p; returns their number. Fast, because schedules can have a
 * billion steps. */
static size_t digits(char *p, uint64_t v)
{
    char rev[20];
    size_t n = 0;
    do
        rev[n++] = (char)('0' + v % 10);
    while (v /= 10);
    for (size_t i = 0; i < n; i++)
        p[i] = rev[n - 1 - i];
    return n;
}

static int put_json(struct slu_schedulefile_writer *w, const struct slu_train_step *s,
                    struct slu_err *err)
{
    int rc = slu_buf_reserve(&w->block, 80, err);
    if (rc)
        return rc;
    char *p = (char *)w->block.data + w->block.len, *begin = p;
    if (w->any)
        *p++ = ',';
    *p++ = '\n';
    *p++ = '[';
    p += digits(p, s->bucket);
    *p++ = ',';
    p += digits(p, s->first);
    *p++ = ',';
    p += digits(p, s->cycle);
    *p++ = ']';
    w->any = true;
    w->block.len += (size_t)(p - begin);
    return w->block.len >= (1 << 20) ? flush_block(w, err) : SLU_OK;
}

int slu_schedulefile_put(struct slu_schedulefile_writer *w,
                         const struct slu_train_step *step, size_t n,
                         struct slu_err *err)
{
    if (n > w->left)
        return slu_fail(err, SLU_E_CONSERVATION,
                        "internal error: more steps were written than announced");
    w->left -= n;
    int rc = SLU_OK;
    for (size_t i = 0; i < n && !rc; i++) {
        if (w->json) {
            rc = put_json(w, &step[i], err);
            continue;
        }
        rc = slu_buf_reserve(&w->block, SLU_SF_RECORD, err);
        if (rc)
            break;
        uint8_t *p = w->block.data + w->block.len;
        slu_put_le64(p, step[i].first);
        slu_put_le32(p + 8, step[i].cycle);
        slu_put_le32(p + 12, step[i].bucket);
        w->block.len += SLU_SF_RECORD;
        if (w->block.len == SLU_SF_RECORD * SLU_SF_BLOCK)
            rc = flush_block(w, err);
    }
    return rc;
}

int slu_schedulefile_close(struct slu_schedulefile_writer *w, struct slu_err *err)
{
    int rc = SLU_OK;
    if (w->left)
        rc = slu_fail(err, SLU_E_CONSERVATION, "internal error: %llu steps are missing",
                      (unsigned long long)w->left);
    if (!rc && w->json) {
        rc = slu_buf_printf(&w->block, err, "]}\n");
    } else if (!rc) {
        uint8_t end[SLU_SF_FOOTER];
        if (w->block.len)
            rc = flush_block(w, err);
        slu_put_le64(end, slu_hash64(w->hashes.data, w->hashes.len));
        memcpy(end + 8, SLU_SF_END, 8);
        if (!rc)
            rc = slu_buf_append(&w->block, w->hashes.data, w->hashes.len, err);
        if (!rc)
            rc = slu_buf_append(&w->block, end, sizeof end, err);
    }
    if (!rc)
        rc = slu_out_write(w->out, w->block.data, w->block.len, err);
    if (!rc) {
        rc = slu_out_close(w->out, err);
        w->out = NULL;
    }
    slu_schedulefile_abort(w);
    return rc;
}

void slu_schedulefile_abort(struct slu_schedulefile_writer *w)
{
    if (!w)
        return;
    slu_out_abort(w->out);
    slu_buf_release(&w->block);
    slu_buf_release(&w->hashes);
    free(w);
}
