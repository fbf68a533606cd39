/* shard_journal.c - DIR/.partial/journal lists the complete shards while a set is
 * written, so that a shuffle that was killed can continue.
 *
 * The first line has the facts that must agree: the format and all arguments that
 * decide the bytes of a shard, and the sum of the input. Then follows a line for each
 * complete shard: its files' bytes and hashes, and a hash of its sequences in order. A
 * run that finds a journal with the same first line takes over each shard whose files
 * exist with these bytes and hashes. When the sequences of such a shard come, their
 * hash is compared and nothing is written. A line that is cut, or damaged by an outage,
 * is ignored: its shard is written again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/shards/shard_private.h"
#include "lib/base/json.h"
#include "lib/base/pipe.h"

/* ---- the first line ---- */

static int put_hash(struct slu_buf *t, const char *key, const struct slu_buf *of,
                    struct slu_err *err)
{
    char hex[33];

    slu_u128_hex(slu_hash128(of->data, of->len), hex);
    return slu_buf_printf(t, err, ",\"%s\":\"%s\"", key, hex);
}

/* Appends all arguments that decide the bytes of a shard, except the input. */
static int put_arguments(const struct slu_shards *s, struct slu_buf *t,
                         struct slu_err *err)
{
    const struct slu_shards_cfg *c = &s->cfg;
    const struct slu_header *h = &s->header;
    char hex[33];
    struct slu_u128 print;

    memcpy(&print, h->fingerprint, sizeof print);
    slu_u128_hex(print, hex);
    int rc = slu_buf_printf(
        t, err, "%d %d %d %d %s %llu %u %d %llu %llu %llu %llu %s\n", c->drop_last,
        c->compress_set, c->compress_level, (int)c->member,
        c->olmo_path ? c->olmo_path : "", (unsigned long long)c->seed, h->tok_bytes,
        h->label_tokens, (unsigned long long)h->vocab_size, (unsigned long long)h->eos,
        (unsigned long long)h->bos, (unsigned long long)h->pad, hex);

    if (!rc && s->masks)
        rc = slu_buf_printf(t, err, "masks\n");
    if (!rc && c->max_segments)
        rc = slu_buf_printf(t, err, "segments %llu\n",
                            (unsigned long long)c->max_segments);
    if (!rc) /* which may lack its provenance */
        rc = slu_buf_printf(t, err, "%s\n%s\n", c->license ? c->license : "",
                            c->olmo_tokenizer ? c->olmo_tokenizer : "");
    if (!rc && c->documents)
        rc = slu_buf_printf(t, err, "documents %llu %llu %llu\n",
                            (unsigned long long)s->bucket[0].pub.rule.per_tok,
                            (unsigned long long)s->bucket[0].pub.rule.per_seq,
                            (unsigned long long)s->bucket[0].pub.rule.size);
    for (unsigned i = 0; i < s->n_bucket && !rc && !c->documents; i++)
        rc = slu_buf_printf(t, err, "%llu %llu\n",
                            (unsigned long long)s->bucket[i].pub.length,
                            (unsigned long long)s->bucket[i].pub.shard_sequences);
    if (!rc && c->documents && c->accept_mismatch) /* none of them was checked */
        rc = slu_buf_printf(t, err, "mismatch\n");
    for (size_t i = 0; i < h->n_step && !rc; i++)
        rc = slu_step_put_json(&h->step[i], t, err);
    return rc;
}

static int put_input(const struct slu_sum *in, struct slu_u128 id, struct slu_buf *t,
                     struct slu_err *err)
{
    char sum[33], trace[33], hex[33];

    if (!in)
        return SLU_OK;
    slu_u128_hex(in->checksum, sum);
    slu_u128_hex(in->trace_checksum, trace);
    slu_u128_hex(id, hex);
    return slu_buf_printf(t, err, "%llu %llu %s %s %s",
                          (unsigned long long)in->n.sequences,
                          (unsigned long long)in->n.tokens, sum, trace, hex);
}

int slu_shards_head(const struct slu_shards *s, const struct slu_sum *in,
                    const char *more, struct slu_buf *t, struct slu_err *err)
{
    struct slu_buf of = SLU_BUF_INIT;
    int rc = put_arguments(s, &of, err);

    if (!rc)
        rc = slu_buf_printf(t, err, "{\"version\":\"%s\",\"format\":\"%s\"",
                            SLU_VERSION, s->cfg.format->name);
    if (!rc)
        rc = put_hash(t, "arguments", &of, err);
    slu_buf_clear(&of);
    if (!rc)
        rc = put_input(in, s->cfg.input_id, &of, err);
    if (!rc)
        rc = put_hash(t, "input", &of, err);
    slu_buf_release(&of);
    return rc ? rc : slu_buf_printf(t, err, "%s}\n", more);
}

bool slu_shards_is_head(const struct slu_buf *text)
{
    const uint8_t *nl = text->len ? memchr(text->data, '\n', text->len) : NULL;
    struct slu_json *j = NULL;
    bool is = nl && !slu_json_parse(&j, text->data, (size_t)(nl - text->data), NULL) &&
              slu_json_get_string(slu_json_root(j), "arguments", NULL) &&
              slu_json_get_string(slu_json_root(j), "format", NULL);

    slu_json_free(j);
    return is;
}

/* ---- lines ---- */

int slu_shards_put_masks(const struct slu_shards *s, uint64_t n_loss,
                         struct slu_u128 checksum, struct slu_buf *t,
                         struct slu_err *err)
{
    char hex[33];

    slu_u128_hex(checksum, hex);
    return s->masks ? slu_buf_printf(t, err,
                                     ",\"loss_tokens\":%llu,\"mask_checksum\":\"%s\"",
                                     (unsigned long long)n_loss, hex)
                    : SLU_OK;
}

bool slu_shards_get_masks(const struct slu_shards *s, struct slu_json_value v,
                          uint64_t *n_loss, struct slu_u128 *checksum)
{
    uint64_t sum[2] = {0, 0};
    bool ok = !s->masks || (slu_shards_u64(v, "loss_tokens", n_loss) &&
                            slu_shards_hex(v, "mask_checksum", sum, 2));

    *checksum = (struct slu_u128){sum[0], sum[1]};
    return ok;
}

int slu_shards_line(const struct slu_shards *s, const struct slu_shards_bucket *b,
                    const struct slu_shards_done *d, struct slu_buf *t,
                    struct slu_err *err)
{
    const struct slu_shard_facts *f = &d->facts;
    char hex[33], sum[33];

    slu_u128_hex(d->content, hex);
    slu_u128_hex(d->checksum, sum);
    int rc = slu_buf_printf(
        t, err,
        "{\"bucket\":\"%s\",\"shard\":%llu,\"sequences\":%llu,\"documents\":%llu,"
        "\"tokens\":%llu,\"checksum\":\"%s\",\"raw_bytes\":%llu,"
        "\"raw_xxh3_64\":\"%016llx\",\"content\":\"%s\",\"files\":[",
        b->pub.name, (unsigned long long)f->number, (unsigned long long)f->n_seq,
        (unsigned long long)d->n.documents, (unsigned long long)d->n.tokens, sum,
        (unsigned long long)f->raw_byte, (unsigned long long)f->raw_xxh3, hex);
    for (unsigned i = 0; i < slu_shards_n_file(s) && !rc; i++)
        rc = slu_buf_printf(t, err, "%s{\"bytes\":%llu,\"xxh3_64\":\"%016llx\"}",
                            i ? "," : "", (unsigned long long)f->n_byte[i],
                            (unsigned long long)f->xxh3[i]);
    if (!rc)
        rc = slu_buf_append(t, "]", 1, err);
    if (!rc)
        rc = slu_shards_put_masks(s, d->n.loss_tokens, d->mask_checksum, t, err);
    return rc ? rc : slu_buf_append(t, "}\n", 2, err);
}

bool slu_shards_u64(struct slu_json_value v, const char *key, uint64_t *out)
{
    struct slu_json_value x;
    return slu_json_get(v, key, &x) && slu_json_u64(x, out);
}

bool slu_shards_hex(struct slu_json_value v, const char *key, uint64_t *out,
                    unsigned n_half)
{
    struct slu_json_value x;
    const char *p;
    size_t n;
    char half[17] = {0};

    if (!slu_json_get(v, key, &x) || !slu_json_string(x, &p, &n) || n != 16 * n_half ||
        strspn(p, "0123456789abcdef") != n)
        return false;
    for (unsigned i = n_half; i-- > 0; p += 16) {
        memcpy(half, p, 16);
        out[i] = strtoull(half, NULL, 16);
    }
    return true;
}

static bool read_shard(const struct slu_shards *s, struct slu_json_value v,
                       struct slu_shards_done *d, unsigned *bucket)
{
    struct slu_json_value x;
    struct slu_json_iter it;
    uint64_t content[2], checksum[2];
    unsigned i = 0;
    bool ok = slu_json_get(v, "bucket", &x) &&
              slu_shards_u64(v, "shard", &d->facts.number) &&
              slu_shards_u64(v, "sequences", &d->facts.n_seq) &&
              slu_shards_u64(v, "documents", &d->n.documents) &&
              slu_shards_u64(v, "tokens", &d->n.tokens) &&
              slu_shards_hex(v, "checksum", checksum, 2) &&
              slu_shards_u64(v, "raw_bytes", &d->facts.raw_byte) &&
              slu_shards_hex(v, "raw_xxh3_64", &d->facts.raw_xxh3, 1) &&
              slu_shards_hex(v, "content", content, 2) &&
              slu_shards_get_masks(s, v, &d->n.loss_tokens, &d->mask_checksum);

    for (*bucket = 0; ok && *bucket < s->n_bucket; ++*bucket)
        if (slu_json_is(x, s->bucket[*bucket].pub.name))
            break;
    if (!ok || *bucket == s->n_bucket || d->facts.n_seq == 0 ||
        d->facts.n_seq > s->bucket[*bucket].pub.shard_sequences ||
        d->facts.number > UINT32_MAX || !slu_json_get(v, "files", &x))
        return false;
    d->content = (struct slu_u128){content[0], content[1]};
    d->checksum = (struct slu_u128){checksum[0], checksum[1]};
    d->n.sequences = d->facts.n_seq;
    d->facts.n_tok =
        s->cfg.documents ? d->n.tokens : d->facts.n_seq * s->bucket[*bucket].pub.n_id;
    for (slu_json_iter_init(&it, x); ok && slu_json_next(&it); i++)
        ok = i < SLU_SHARD_FILES &&
             slu_shards_u64(it.value, "bytes", &d->facts.n_byte[i]) &&
             slu_shards_hex(it.value, "xxh3_64", &d->facts.xxh3[i], 1);
    return ok && i == slu_shards_n_file(s);
}

bool slu_shards_read_line(const struct slu_shards *s, const uint8_t *p, size_t n,
                          struct slu_shards_done *d, unsigned *bucket)
{
    struct slu_json *j = NULL;

    *d = (struct slu_shards_done){0};
    bool ok =
        !slu_json_parse(&j, p, n, NULL) && read_shard(s, slu_json_root(j), d, bucket);
    slu_json_free(j);
    return ok;
}

/* Notes the shard, in order of number, which is also the journal's order, except after
 * outages. */
static int note(struct slu_shards_bucket *b, const struct slu_shards_done *d,
                struct slu_err *err)
{
    if (d->facts.number != b->first + b->n_done)
        return SLU_OK; /* a gap: the later shards are written again */
    int rc = slu_grow(&b->done, &b->cap_done, b->n_done + 1, sizeof *d, err);
    if (!rc)
        b->done[b->n_done++] = *d;
    return rc;
}

int slu_shards_read_lines(struct slu_shards *s, const uint8_t *p, const uint8_t *end,
                          struct slu_err *err)
{
    const uint8_t *nl;
    int rc = SLU_OK;

    for (; !rc && p < end && (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1) {
        struct slu_shards_done d;
        unsigned k;
        if (slu_shards_read_line(s, p, (size_t)(nl - p), &d, &k))
            rc = note(&s->bucket[k], &d, err);
    }
    return rc;
}

/* ---- existing files ---- */

struct look {
    struct slu_shards *s;
    unsigned bucket;
    uint64_t number;
};
struct look_job {
    struct slu_shards_bucket *b;
    struct slu_shards_done *d;
    struct slu_buf scratch;
};

static int look_produce(void *ctx, void *job, struct slu_err *err)
{
    struct look *l = ctx;
    struct look_job *j = job;

    (void)err;
    while (l->bucket < l->s->n_bucket && l->number == l->s->bucket[l->bucket].n_done) {
        l->bucket++;
        l->number = 0;
    }
    if (l->bucket == l->s->n_bucket)
        return SLU_EOF;
    j->b = &l->s->bucket[l->bucket];
    j->d = &j->b->done[l->number++];
    return SLU_OK;
}

static int look_work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct slu_shards *s = ((struct look *)ctx)->s;
    struct look_job *j = job;
    char name[SLU_SHARD_NAME];

    (void)worker;
    (void)err;
    for (unsigned i = 0; i < slu_shards_n_file(s); i++) {
        const struct slu_shard_facts *f = &j->d->facts;
        slu_shards_file_name(s, j->b, f->number, i, name);
        j->d->gone =
            j->d->gone ||
            !slu_set_have(&s->out, name, &(struct slu_digest){f->n_byte[i], f->xxh3[i]},
                          &j->scratch);
    }
    return SLU_OK;
}

static int look_emit(void *ctx, void *job, struct slu_err *err)
{
    (void)ctx;
    (void)job;
    (void)err;
    return SLU_OK;
}

int slu_shards_look(struct slu_shards *s, unsigned n_threads, struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {look_produce, look_work, look_emit};
    struct look l = {s, 0, 0};
    struct look_job job[8] = {{0}};
    void *slot[8];

    for (unsigned i = 0; i < 8; i++)
        slot[i] = &job[i];
    int rc = slu_pipe_run(&ops, &l, slot, 8, n_threads, err);
    for (unsigned i = 0; i < 8; i++)
        slu_buf_release(&job[i].scratch);
    return rc;
}

/* ---- the beginning of a run ---- */

/* Whether a member is a string and equal in both. */
static bool same(struct slu_json_value a, struct slu_json_value b, const char *key)
{
    struct slu_json_value x, y;
    const char *p;
    size_t n;

    return slu_json_get(a, key, &x) && slu_json_get(b, key, &y) &&
           slu_json_string(x, &p, &n) && slu_json_is(y, p);
}

const char *slu_shards_head_differs(const struct slu_buf *head,
                                    const struct slu_buf *text)
{
    struct slu_json *ours = NULL, *theirs = NULL;
    const uint8_t *nl = memchr(text->data, '\n', text->len);
    const char *what = "arguments";

    if (nl && (size_t)(nl - text->data) + 1 == head->len &&
        !memcmp(head->data, text->data, head->len))
        return "";
    if (nl && !slu_json_parse(&ours, head->data, head->len, NULL) &&
        !slu_json_parse(&theirs, text->data, (size_t)(nl - text->data), NULL)) {
        struct slu_json_value a = slu_json_root(ours), b = slu_json_root(theirs);
        if (same(a, b, "version") && same(a, b, "format") && same(a, b, "arguments"))
            what = same(a, b, "input") ? "parts" : "input";
    }
    slu_json_free(ours);
    slu_json_free(theirs);
    return what;
}

/* Compares the journal's head with ours. SLU_E_MISMATCH names the difference. */
static int compare(const struct slu_shards *s, const struct slu_buf *head,
                   const struct slu_buf *text, struct slu_err *err)
{
    const char *other = slu_shards_head_differs(head, text);

    if (!*other)
        return SLU_OK;
    return slu_advise(
        err, SLU_ADVISE_REPLACE_SET,
        slu_fail(err, SLU_E_MISMATCH,
                 "%s: holds the beginning of a shard set that a shuffle of other %s "
                 "was writing when it was stopped; run that shuffle again",
                 s->dir, other));
}

/* Reads the journal, whose first line slu_set_begin has written, or a stopped run. */
static int load(struct slu_shards *s, const struct slu_buf *head, struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    const char *path = (const char *)s->journal_path.data;
    int rc = slu_read_regular(&text, path, SLU_SHARDS_MAX_JOURNAL, err);

    if (!rc)
        rc = compare(s, head, &text, err);
    if (!rc)
        rc = slu_shards_read_lines(s, text.data + head->len, text.data + text.len, err);
    slu_buf_release(&text);
    return rc;
}

int slu_shards_write_journal(struct slu_shards *s, struct slu_buf *t,
                             struct slu_err *err)
{
    const char *path = (const char *)s->journal_path.data;
    int rc = SLU_OK;

    for (unsigned i = 0; i < s->n_bucket; i++)
        for (uint64_t k = 0; k < s->bucket[i].n_done && !rc; k++)
            if (!s->bucket[i].done[k].gone && !s->bucket[i].done[k].given)
                rc = slu_shards_line(s, &s->bucket[i], &s->bucket[i].done[k], t, err);
    if (!rc)
        rc = slu_out_whole(path, t->data, t->len, err);
    if (!rc) {
        s->journal = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (s->journal < 0)
            rc = slu_fail_errno(err, "%s: cannot be opened", path);
    }
    return rc;
}

int slu_shards_begin(struct slu_shards *s, const struct slu_sum *input,
                     unsigned n_threads, struct slu_err *err)
{
    struct slu_buf head = SLU_BUF_INIT;
    int rc = slu_shards_head(s, input, "", &head, err);

    if (!rc)
        rc = slu_set_begin(&s->out, s->dir, s->cfg.format, &head, s->cfg.replace, err);
    if (!rc)
        rc = slu_buf_printf(&s->journal_path, err, "%s/journal", s->out.at);
    if (!rc)
        rc = slu_buf_append(&s->journal_path, "", 1, err);
    if (!rc)
        rc = load(s, &head, err);
    s->out.keep = s->out.keep && rc; /* its record is ours */
    if (!rc)
        rc = slu_shards_look(s, n_threads, err);
    if (!rc)
        rc = slu_shards_take_given(s, err);
    if (!rc)
        rc = slu_shards_write_journal(s, &head, err);
    slu_buf_release(&head);
    return rc;
}

/* ---- during a run ---- */

const struct slu_shards_done *slu_shards_done(const struct slu_shards_bucket *b,
                                              uint64_t number)
{
    uint64_t k = number - b->first;

    return k < b->n_done && !b->done[k].gone ? &b->done[k] : NULL;
}

static int append(struct slu_shards *s, const void *p, size_t n, struct slu_err *err)
{
    int rc = slu_write_full(s->journal, p, n, err);

    return rc == SLU_E_IO ? slu_err_at(err, "%s", (const char *)s->journal_path.data)
                          : rc;
}

int slu_shards_note(struct slu_shards *s, const struct slu_shards_bucket *b,
                    const struct slu_shards_done *d, struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    int rc = slu_shards_line(s, b, d, &t, err);

    if (!rc) /* in one write: only the last line can be cut */
        rc = append(s, t.data, t.len, err);
    slu_buf_release(&t);
    return rc;
}

int slu_shards_differs(struct slu_shards *s, const struct slu_shards_bucket *b,
                       uint64_t number, struct slu_err *err)
{
    s->keep = true;
    return slu_fail(
        err, SLU_E_MISMATCH,
        "%s: shard %llu of %s has other sequences now than when the shuffle was "
        "stopped: the input has changed, or its order; remove %s to begin anew",
        s->dir, (unsigned long long)number, b->pub.name, s->out.at);
}

struct slu_u128 slu_shards_content(uint64_t index, struct slu_u128 tokens,
                                   const struct slu_seg *seg, uint64_t n_seg)
{
    uint64_t k[3] = {index, tokens.lo, tokens.hi};

    return slu_hash_segments(k, sizeof k, seg, n_seg);
}
