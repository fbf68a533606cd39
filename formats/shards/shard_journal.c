/* shard_journal.c - DIR/.partial/journal lists the complete shards while a set is
 * written, so that a shuffle that was killed can continue.
 *
 * The first line is the record: {"made":{…},"input":HASH}, by which options the shards
 * are made (lib/flow/made.h) and from what. Then follows a line for each
 * complete shard: its files' bytes and hashes, and a hash of its sequences in order. A
 * run that finds a journal with the same first line takes over each shard whose files
 * exist with these bytes and hashes. When the sequences of such a shard come, their
 * hash is compared and nothing is written. A line that is cut, or damaged by an outage,
 * is ignored: its shard is written again.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/shards/shard_private.h"
#include "lib/base/json.h"
#include "lib/base/pipe.h"
#include "lib/flow/made.h"

/* ---- the first line ---- */

int slu_shards_record(struct slu_shards *s, struct slu_err *err)
{
    const struct slu_made none = {.program = "shuffle", .seed = s->cfg.seed};
    struct slu_made m;
    int rc = slu_made_copy(&m, s->cfg.made ? s->cfg.made : &none, err);

    s->cfg.made = NULL;
    if (!rc && s->cfg.documents && s->cfg.accept_mismatch)
        rc = slu_made_fact(&m, err, "documents=unchecked");
    if (!rc)
        rc = slu_buf_printf(&s->record, err, "{\"made\":{");
    if (!rc)
        rc = slu_made_put(&m, UINT_MAX, &s->record, err);
    slu_made_release(&m);
    return rc;
}

/* Appends all that decides a shard and is no option: the header, and what the input
 * says of its sequences. */
static int put_input(const struct slu_shards *s, const struct slu_sum *in,
                     struct slu_buf *t, struct slu_err *err)
{
    static const struct slu_sum none;
    const struct slu_header *h = &s->header;
    const uint64_t now[] = {h->tok_bytes,
                            h->label_tokens,
                            h->inner_padding,
                            s->masks,
                            h->vocab_size,
                            h->eos,
                            h->bos,
                            h->pad,
                            s->cfg.input_id.lo,
                            s->cfg.input_id.hi};

    in = in ? in : &none;
    const struct {
        const void *p;
        size_t n;
    } of[] = {{now, sizeof now},
              {h->fingerprint, sizeof h->fingerprint},
              {&in->n.sequences, sizeof in->n.sequences},
              {&in->n.tokens, sizeof in->n.tokens},
              {&in->checksum, sizeof in->checksum},
              {&in->trace_checksum, sizeof in->trace_checksum}};
    int rc = SLU_OK;
    for (size_t i = 0; i < sizeof of / sizeof *of && !rc; i++)
        rc = slu_buf_append(t, of[i].p, of[i].n, err);
    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        rc = slu_buf_append(t, &s->bucket[i].pub.length, sizeof(uint64_t), err);
    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        rc = slu_buf_append(t, &s->bucket[i].pub.rule, sizeof s->bucket[i].pub.rule,
                            err);
    for (size_t i = 0; i < h->n_step && !rc; i++)
        rc = slu_step_put_json(&h->step[i], t, err);
    if (h->meta.n && !rc)
        rc = slu_buf_append(t, &in->meta_checksum, sizeof in->meta_checksum, err);
    for (unsigned i = 0; i < h->meta.n && !rc; i++)
        rc = slu_buf_printf(t, err, "%s=%s\n", h->meta.field[i].name,
                            slu_meta_type_name(h->meta.field[i].type));
    return rc;
}

int slu_shards_head(const struct slu_shards *s, const struct slu_sum *in,
                    const char *more, struct slu_buf *t, struct slu_err *err)
{
    struct slu_buf of = SLU_BUF_INIT;
    char hex[33];
    int rc = put_input(s, in, &of, err);

    if (!rc) {
        slu_u128_hex(slu_hash128(of.data, of.len), hex);
        rc = slu_buf_append(t, s->record.data, s->record.len, err);
    }
    slu_buf_release(&of);
    return rc ? rc : slu_buf_printf(t, err, "},\"input\":\"%s\"%s}\n", hex, more);
}

bool slu_shards_is_head(const struct slu_buf *text)
{
    const uint8_t *nl = text->len ? memchr(text->data, '\n', text->len) : NULL;
    struct slu_json *j = NULL;
    bool is = nl && !slu_json_parse(&j, text->data, (size_t)(nl - text->data), NULL) &&
              slu_json_get_string(slu_json_root(j), "input", NULL);

    slu_json_free(j);
    return is;
}

/* Whether the heads differ, of which neither is the other's bytes. */
static bool differ(struct slu_json_value was, struct slu_json_value now, bool parts,
                   char *text, size_t cap)
{
    struct slu_json_value a, b;

    if (!slu_json_get(was, "made", &a) || !slu_json_get(now, "made", &b))
        snprintf(text, cap, "was made by an earlier version of sluice");
    else if (slu_made_differs(a, b, text, cap))
        return true;
    else if (strcmp(slu_json_get_string(was, "input", ""),
                    slu_json_get_string(now, "input", "")) != 0)
        snprintf(text, cap, "was made from other input");
    else if (parts)
        snprintf(text, cap, "was made in other parts");
    else
        return false;
    return true;
}

bool slu_shards_head_differs(const struct slu_buf *was, const struct slu_buf *now,
                             bool parts, char *text, size_t cap)
{
    const uint8_t *nl = was->len ? memchr(was->data, '\n', was->len) : NULL;
    struct slu_json *a = NULL, *b = NULL;
    bool differs = true;

    if (nl && (size_t)(nl - was->data) + 1 == now->len &&
        !memcmp(was->data, now->data, now->len))
        return false;
    snprintf(text, cap, "begins with a line that is no record");
    if (nl && !slu_json_parse(&a, was->data, (size_t)(nl - was->data), NULL) &&
        !slu_json_parse(&b, now->data, now->len, NULL))
        differs = differ(slu_json_root(a), slu_json_root(b), parts, text, cap);
    slu_json_free(a);
    slu_json_free(b);
    return differs;
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
            !slu_file_is(s->out.at, name,
                         &(struct slu_digest){f->n_byte[i], f->xxh3[i]}, &j->scratch);
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

/* Reads the journal, whose first line slu_set_begin has written, or a stopped run. */
static int load(struct slu_shards *s, const struct slu_buf *head, struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    const char *path = (const char *)s->journal_path.data;
    char what[512];
    int rc = slu_read_regular(&text, path, SLU_SHARDS_MAX_JOURNAL, err);

    if (!rc && slu_shards_head_differs(&text, head, true, what, sizeof what))
        rc = slu_advise(err, SLU_ADVISE_REPLACE_SET,
                        slu_fail(err, SLU_E_MISMATCH,
                                 "%s: the set that a stopped run has begun here %s; "
                                 "run that command again",
                                 s->dir, what));
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
    char text[512];
    int rc = slu_shards_head(s, input, "", &head, err);

    if (!rc && s->published.len &&
        !slu_shards_head_differs(&s->published, &head, true, text, sizeof text))
        rc = SLU_EOF;
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
