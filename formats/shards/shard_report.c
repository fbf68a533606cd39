/* shard_report.c - writes manifest.jsonl and report.json of a shard set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/shards/filelist.h"
#include "formats/shards/shard_private.h"
#include "lib/base/json_write.h"
#include "lib/stream/account_json.h"

/* ---- manifest.jsonl ---- */

static int line(struct slu_buf *t, const char *folder, const char *name,
                struct slu_digest d, uint64_t n_seq, uint64_t n_tok,
                struct slu_err *err)
{
    int rc = slu_buf_printf(
        t, err, "{\"file\":\"%s%s%s\",\"bytes\":%llu,\"xxh3_64\":\"%016llx\"", folder,
        *folder ? "/" : "", name, (unsigned long long)d.n_byte,
        (unsigned long long)d.xxh3);

    if (!rc && n_seq)
        rc = slu_buf_printf(t, err, ",\"sequences\":%llu,\"tokens\":%llu",
                            (unsigned long long)n_seq, (unsigned long long)n_tok);
    return rc;
}

static int shard_lines(const struct slu_shards *s, const struct slu_shards_bucket *b,
                       const struct slu_shard_facts *f, struct slu_buf *t,
                       struct slu_err *err)
{
    const struct slu_shard_format *format = s->cfg.format;
    int rc = SLU_OK;

    for (unsigned i = 0; i < slu_shards_n_file(s) && !rc; i++) {
        char name[256];
        format->file_name(s->state, f->number, i, name, sizeof name);
        rc = line(t, b->pub.name, name, (struct slu_digest){f->n_byte[i], f->xxh3[i]},
                  f->n_seq, f->n_tok, err);
        if (!rc)
            rc = slu_buf_printf(t, err, ",\"shard\":%llu,\"part\":%u}\n",
                                (unsigned long long)f->number, i);
    }
    return rc;
}

static int extra_lines(const struct slu_shards *s, struct slu_buf *t,
                       struct slu_err *err)
{
    int rc = SLU_OK;

    for (const struct slu_shard_extra *e = s->extra; e && !rc; e = e->next) {
        rc = line(t, "", e->name, e->digest, e->n_seq, e->n_tok, err);
        if (!rc)
            rc = slu_buf_printf(t, err, "}\n");
    }
    return rc;
}

static int flush(struct slu_buf *t, struct slu_out *out, struct slu_err *err)
{
    int rc = slu_out_write(out, t->data, t->len, err);

    slu_buf_clear(t);
    return rc;
}

int slu_shards_manifest(struct slu_shards *s, struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    struct slu_out *out;
    int rc = slu_set_create(&s->out, "manifest.jsonl", &out, err);

    if (rc)
        return rc;
    rc = slu_out_digest(out, &s->manifest, err);
    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        for (uint64_t k = 0; k < s->bucket[i].pub.n_shard && !rc; k++) {
            rc = shard_lines(s, &s->bucket[i], &s->bucket[i].facts[k], &t, err);
            if (!rc && t.len >= 1 << 16)
                rc = flush(&t, out, err);
        }
    if (!rc)
        rc = extra_lines(s, &t, err);
    if (!rc && t.len)
        rc = flush(&t, out, err);
    slu_buf_release(&t);
    if (!rc)
        return slu_out_close(out, err);
    slu_out_abort(out);
    return rc;
}

/* ---- report.json ---- */

static int report_bucket(const struct slu_shards *s, const struct slu_shards_bucket *b,
                         bool first, struct slu_buf *t, struct slu_err *err)
{
    const struct slu_shard_bucket *p = &b->pub;
    int rc = slu_buf_printf(
        t, err,
        "%s\n    {\"name\": \"%s\", \"length\": %llu, \"ids\": %llu, \"sequences\": "
        "%llu, "
        "\"tokens\": %llu, \"documents\": %llu, \"shards\": %llu, "
        "\"shard_sequences\": %llu",
        first ? "" : ",", p->name, (unsigned long long)p->length,
        (unsigned long long)p->n_id, (unsigned long long)p->n_seq,
        (unsigned long long)b->sum.n.tokens, (unsigned long long)b->sum.n.documents,
        (unsigned long long)p->n_shard, (unsigned long long)p->shard_sequences);

    if (!rc && b->n_short)
        rc = slu_buf_printf(t, err, ", \"short_shard\": {\"sequences\": %llu",
                            (unsigned long long)b->n_short);
    if (!rc && b->n_short && p->n_shard > 1 && s->cfg.format->short_shard_note) {
        rc = slu_buf_printf(t, err, ", \"note\": ");
        if (!rc)
            rc = slu_json_put_string(t, s->cfg.format->short_shard_note,
                                     strlen(s->cfg.format->short_shard_note), err);
    }
    if (!rc)
        rc = slu_buf_printf(t, err, b->n_short ? "}}" : "}");
    return rc;
}

static int report_documents(const struct slu_shards *s, struct slu_buf *t,
                            struct slu_err *err)
{
    const struct slu_shard_bucket *b = &s->bucket[0].pub;

    return slu_buf_printf(t, err,
                          "],\n  \"whole_documents\": {\"shards\": %llu, "
                          "\"%s\": %llu, \"id_bytes\": %u}",
                          (unsigned long long)b->n_shard,
                          b->rule.per_tok ? "shard_bytes" : "shard_sequences",
                          (unsigned long long)b->rule.size, b->id_bytes);
}

static int put_text(struct slu_buf *t, const char *key, const char *text,
                    struct slu_err *err)
{
    int rc = text ? slu_buf_printf(t, err, ", \"%s\": ", key) : SLU_OK;

    return rc || !text ? rc : slu_json_put_string(t, text, strlen(text), err);
}

/* The options of the format, by which another set is written like this one
 * (formats/shards/forget.c). */
static int report_options(const struct slu_shards *s, struct slu_buf *t,
                          struct slu_err *err)
{
    const struct slu_shards_cfg *c = &s->cfg;
    int rc = slu_buf_printf(t, err, "  \"format_options\": {\"max_segments\": %llu",
                            (unsigned long long)c->max_segments);

    if (!rc && c->compress_set)
        rc = slu_buf_printf(t, err, ", \"compress_level\": %d", c->compress_level);
    if (!rc)
        rc = put_text(t, "member", slu_shard_member_names[c->member], err);
    if (!rc)
        rc = put_text(t, "olmo_path", c->olmo_path, err);
    if (!rc)
        rc = put_text(t, "olmo_tokenizer", c->olmo_tokenizer, err);
    return rc ? rc : slu_buf_append(t, "},\n", 3, err);
}

/* By which the same command knows that its set is there (formats/shards/shard.c). */
static int report_made(const struct slu_shards *s, struct slu_buf *t,
                       struct slu_err *err)
{
    struct slu_buf head = SLU_BUF_INIT;
    char hex[33];
    int rc = slu_shards_head(s, s->cfg.given->input, "", &head, err);

    slu_u128_hex(slu_hash128(head.data, head.len), hex);
    slu_buf_release(&head);
    return rc ? rc : slu_buf_printf(t, err, "  \"made\": \"%s\",\n", hex);
}

static int report_provenance(const struct slu_card *c, struct slu_buf *t,
                             struct slu_err *err)
{
    struct slu_account total;
    int rc = SLU_OK;

    if (slu_steps_total(c->steps, &c->sum->n, &total)) {
        rc = slu_buf_printf(t, err, "  \"all_steps\": {\n  \"complete\": %s",
                            slu_steps_complete(c->steps) ? "true" : "false");
        if (!rc)
            rc = slu_account_put_json(t, &total, err);
        if (!rc)
            rc = slu_buf_printf(t, err, "},\n");
    }
    if (!rc)
        rc = slu_buf_printf(t, err, "  \"provenance\": ");
    if (!rc)
        rc = slu_steps_put_json(c->steps, t, err);
    return rc ? rc : slu_seal_put(t, SLU_REPORT_SEAL, err);
}

static int report(const struct slu_shards *s, const struct slu_shards_card *card,
                  const char *program, const struct slu_account *account,
                  struct slu_buf *t, struct slu_err *err)
{
    char hex[33], masks[128] = "";
    unsigned n = 0;
    int rc = slu_buf_printf(t, err,
                            "{\n  \"program\": \"%s\",\n  \"format\": \"%s\",\n"
                            "  \"label_tokens\": %s,\n  \"buckets\": [",
                            program, s->cfg.format->name,
                            s->header.label_tokens ? "true" : "false");

    for (unsigned i = 0; i < s->n_bucket && !rc && !s->cfg.documents; i++)
        if (s->bucket[i].pub.n_seq)
            rc = report_bucket(s, &s->bucket[i], n++ == 0, t, err);
    slu_u128_hex(s->sum.mask_checksum, hex);
    if (s->masks)
        snprintf(masks, sizeof masks,
                 "  \"loss_tokens\": %llu,\n  \"mask_checksum\": \"%s\",\n",
                 (unsigned long long)s->sum.n.loss_tokens, hex);
    slu_u128_hex(s->sum.checksum, hex);
    if (!rc)
        rc = s->cfg.documents ? report_documents(s, t, err)
                              : slu_buf_append(t, "]", 1, err);
    if (!rc)
        rc = slu_buf_printf(t, err,
                            ",\n  \"documents\": %llu,\n  \"sequences\": %llu,\n"
                            "  \"segments\": %llu,\n  \"tokens\": %llu,\n"
                            "  \"padding\": %llu,\n  \"checksum\": \"%s\",\n%s"
                            "  \"dropped\": {",
                            (unsigned long long)s->sum.n.documents,
                            (unsigned long long)s->sum.n.sequences,
                            (unsigned long long)s->sum.segments,
                            (unsigned long long)s->sum.n.tokens,
                            (unsigned long long)s->sum.padding, hex, masks);
    for (unsigned i = 0; i < account->n_dropped && !rc; i++)
        rc = slu_buf_printf(t, err,
                            "%s\n    \"%s\": {\"documents\": %llu, \"sequences\": "
                            "%llu, \"tokens\": %llu}",
                            i ? "," : "", account->dropped[i].reason,
                            (unsigned long long)account->dropped[i].n.documents,
                            (unsigned long long)account->dropped[i].n.sequences,
                            (unsigned long long)account->dropped[i].n.tokens);
    if (!rc)
        rc = slu_buf_printf(
            t, err,
            "},\n  \"manifest\": {\"bytes\": %llu, \"xxh3_64\": \"%016llx\"},\n",
            (unsigned long long)s->manifest.n_byte,
            (unsigned long long)s->manifest.xxh3);
    if (!rc)
        rc = report_options(s, t, err);
    if (!rc && s->cfg.given)
        rc = report_made(s, t, err);
    if (!rc)
        rc = slu_buf_append(t, s->notes.data, s->notes.len, err);
    if (!rc)
        rc = slu_card_json(&card->card, t, err);
    return rc ? rc : report_provenance(&card->card, t, err);
}

int slu_shards_report(struct slu_shards *s, const struct slu_shards_card *card,
                      const char *program, const struct slu_account *account,
                      struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    struct slu_out *out;
    int rc = report(s, card, program, account, &t, err);

    if (!rc)
        rc = slu_set_create(&s->out, "report.json", &out, err);
    if (!rc) {
        rc = slu_out_digest(out, &s->report, err);
        if (!rc)
            rc = slu_out_write(out, t.data, t.len, err);
        if (!rc)
            rc = slu_out_close(out, err);
        else
            slu_out_abort(out);
    }
    slu_buf_release(&t);
    return rc;
}
