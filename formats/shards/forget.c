#include "formats/shards/forget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/shards/manifests.h"
#include "formats/shards/shardset.h"
#include "formats/shards/shard_private.h"
#include "lib/base/map.h"
#include "lib/stream/stream_private.h"

struct bucket {
    struct slu_shard_facts *facts;
    bool *changed;
    size_t n, cap_facts, cap_changed;
};

struct slu_forget {
    const char *dir;
    const struct slu_idset *drop;
    const struct slu_expr *expr; /* or NULL */
    struct slu_where *where;     /* of the bucket that is read */
    struct slu_names *names_of;  /* of its segment rows */
    struct slu_shardset *set;
    const struct slu_shard_format *format;
    struct bucket bucket[SLU_MAX_BUCKETS];
    struct slu_forget_result result;
    struct slu_names *names; /* of all buckets */
    struct slu_shards_given given;
    char *olmo_tokenizer;
    uint64_t pad;
    bool to_masks; /* the set has none, and gets some */
    bool begun;    /* slu_forget_source has opened the set */
    struct slu_u128 changed_checksum, changed_masks; /* before, of the changed shards */
};

/* ---- reading the segment rows ---- */

enum why { STAYS, BY_ID, BY_WHERE };

/* Prepares the expression for the bucket that the set is at, which has names of its own. */
static int use_bucket(struct slu_forget *f, struct slu_shardset *set,
                      struct slu_err *err)
{
    struct slu_names *names = slu_shardset_names(set);

    if (!f->expr || (f->where && f->names_of == names))
        return SLU_OK;
    slu_where_free(f->where);
    f->where = NULL;
    f->names_of = names;
    return slu_where_new(&f->where, f->expr, slu_shardset_header(set), names, err)
               ? slu_err_at(err, "--where")
               : SLU_OK;
}

/* Reads the next batch of the set. */
static int next_batch(struct slu_forget *f, struct slu_shardset *set,
                      struct slu_batch *b, struct slu_err *err)
{
    int rc = slu_shardset_next(set, b, err);

    return rc ? rc : use_bucket(f, set, err);
}

/* Tells whether segment `at` of the batch goes, of which the expression is asked alone:
 * the other documents of its sequence are others. */
static int ask(const struct slu_forget *f, const struct slu_batch *b, uint64_t at,
               enum why *why, struct slu_err *err)
{
    const struct slu_seg *g = &b->seg[at];
    const struct slu_seq one = {.len_tok = g->len_tok, .seg_off = at, .n_seg = 1};
    bool holds = false;

    *why = STAYS;
    if (g->source == SLU_PADDING)
        return SLU_OK;
    if (f->drop && g->id_len &&
        slu_idset_has(f->drop, b->str.data + g->id_off, g->id_len))
        *why = BY_ID;
    else if (f->where && slu_where_ask_segment(f->where, b, &one, g, &holds, err))
        return slu_err_at(err, "--where");
    else if (holds)
        *why = BY_WHERE;
    return SLU_OK;
}

static bool skip_all(void *ctx, unsigned bucket, uint64_t shard)
{
    (void)ctx;
    (void)bucket;
    (void)shard;
    return true;
}

/* Calls `each` for every batch of segment rows; first: the number of its first sequence
 * in its bucket. */
typedef int each_rows(void *ctx, struct slu_shardset *set, struct slu_batch *b,
                      uint64_t first, struct slu_err *err);
static int read_rows(struct slu_forget *f, each_rows *each, void *ctx,
                     struct slu_err *err)
{
    struct slu_shardset *set;
    struct slu_batch b;
    uint64_t first = 0;
    unsigned at = 0;
    int rc = slu_shardset_open(&set, f->dir, err);

    if (rc)
        return rc;
    rc = use_bucket(f, set, err);
    slu_shardset_skip(set, skip_all, NULL);
    slu_batch_init(&b, slu_shardset_header(set)->tok_bytes);
    while (!rc && (rc = next_batch(f, set, &b, err)) == SLU_OK) {
        unsigned k;
        (void)slu_shardset_shard(set, &k);
        first = k == at ? first : 0;
        at = k;
        rc = each(ctx, set, &b, first, err);
        first += b.n_seq;
    }
    slu_batch_release(&b);
    slu_shardset_free(set);
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* The bucket's current shard, in which the batch is. */
static int shard_of(const char *dir, struct bucket *k, const struct slu_shard_facts *s,
                    struct slu_err *err)
{
    if (k->n > s->number)
        return SLU_OK;
    if (k->n < s->number)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s/manifest.jsonl: shard %zu of a bucket has no sequences; "
                        "sets have none such",
                        dir, k->n);
    int rc = slu_grow(&k->facts, &k->cap_facts, k->n + 1, sizeof *k->facts, err);

    if (!rc)
        rc = slu_grow(&k->changed, &k->cap_changed, k->n + 1, sizeof *k->changed, err);
    if (rc)
        return rc;
    k->facts[k->n] = *s;
    k->changed[k->n++] = false;
    return SLU_OK;
}

/* Finds what goes of a sequence. */
static int find(struct slu_forget *f, const struct slu_batch *b,
                const struct slu_seq *q, struct slu_map *found, bool *any,
                struct slu_err *err)
{
    struct slu_forget_result *r = &f->result;
    uint64_t left = 0, tok = q->tok_off;
    int rc = SLU_OK;

    *any = false;
    for (uint64_t i = 0; i < q->n_seg && !rc; tok += b->seg[q->seg_off + i++].len_tok) {
        const struct slu_seg *g = &b->seg[q->seg_off + i];
        enum why why;
        rc = ask(f, b, q->seg_off + i, &why, err);
        if (rc || !why) {
            left += g->source != SLU_PADDING;
            continue;
        }
        const struct slu_count n = {g->offset == 0, 0, g->len_tok,
                                    b->masks      ? slu_batch_loss(b, tok, g->len_tok)
                                    : f->to_masks ? g->len_tok
                                                  : 0};
        *any = true;
        r->segments++;
        slu_count_add(&r->gone, n);
        if (why == BY_WHERE)
            slu_count_add(&r->gone_where, n);
        else
            rc = slu_map_set(found, slu_hash128(b->str.data + g->id_off, g->id_len).lo,
                             1, err);
    }
    r->sequences += *any;
    r->emptied += *any && !left;
    return rc;
}

struct finding {
    struct slu_forget *f;
    struct slu_map found;
};

static int find_all(void *ctx, struct slu_shardset *set, struct slu_batch *b,
                    uint64_t first, struct slu_err *err)
{
    struct finding *x = ctx;
    struct slu_forget *f = x->f;
    unsigned at;
    const struct slu_shard_facts *s = slu_shardset_shard(set, &at);
    struct bucket *k = &f->bucket[at];
    int rc = shard_of(f->dir, k, s, err);

    (void)first;
    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        const struct slu_seq *q = &b->seq[i];
        bool any;
        struct slu_count n = slu_seq_count(b, q);
        rc = find(f, b, q, &x->found, &any, err);
        for (uint64_t j = 0; j < q->n_seg && f->to_masks; j++)
            if (b->seg[q->seg_off + j].source != SLU_PADDING)
                n.loss_tokens += b->seg[q->seg_off + j].len_tok;
        slu_count_add(&f->result.in.n, n);
        k->facts[s->number].n_tok += q->len_tok;
        k->changed[s->number] |= any;
    }
    return rc;
}

struct visit {
    struct slu_forget *f;
    int (*each)(void *ctx, const struct slu_forget_segment *s, struct slu_err *err);
    void *ctx;
};

static int visit_rows(void *ctx, struct slu_shardset *set, struct slu_batch *b,
                      uint64_t first, struct slu_err *err)
{
    const struct visit *v = ctx;
    unsigned at;
    const struct slu_shard_facts *s = slu_shardset_shard(set, &at);
    const struct slu_shard_bucket *k = slu_shardset_bucket(set, at);
    int rc = SLU_OK;

    for (size_t i = 0; i < b->n_seq && !rc; i++)
        for (uint64_t j = 0; j < b->seq[i].n_seg && !rc; j++) {
            const struct slu_seg *g = &b->seg[b->seq[i].seg_off + j];
            struct slu_forget_segment x = {k->name,
                                           at,
                                           k->length,
                                           first + i,
                                           s->number,
                                           g,
                                           b->str.data + g->id_off,
                                           NULL};
            enum why why;
            rc = ask(v->f, b, b->seq[i].seg_off + j, &why, err);
            if (rc || !why)
                continue;
            x.source = slu_names_source(slu_shardset_names(set), g->source);
            rc = v->each(v->ctx, &x, err);
        }
    return rc;
}

int slu_forget_each(struct slu_forget *f,
                    int (*each)(void *ctx, const struct slu_forget_segment *s,
                                struct slu_err *err),
                    void *ctx, struct slu_err *err)
{
    struct visit v = {f, each, ctx};

    return read_rows(f, visit_rows, &v, err);
}

/* ---- opening ---- */

/* All shards change if the set gets masks. */
static void count_shards(struct slu_forget *f)
{
    const bool all = f->to_masks && f->result.segments;

    for (unsigned i = 0; i < slu_shardset_n_bucket(f->set); i++)
        for (size_t k = 0; k < f->bucket[i].n; k++) {
            f->bucket[i].changed[k] |= all;
            f->result.shards += f->bucket[i].changed[k];
            f->result.of_shards++;
        }
}

/* SLU_E_USAGE if the expression names what no segment has. */
static int check_expr(const struct slu_expr *e, struct slu_err *err)
{
    for (size_t i = 0; e && i < slu_expr_n_field(e); i++)
        if (!strcmp(slu_expr_field(e, i), "length"))
            return slu_fail(err, SLU_E_USAGE,
                            "--where: a set does not have the length of a document, "
                            "parts of which stand in several sequences; the other "
                            "fields are those of choose --where");
    return SLU_OK;
}

int slu_forget_open(struct slu_forget **out, const char *dir,
                    const struct slu_idset *drop, const struct slu_expr *where,
                    struct slu_err *err)
{
    struct slu_forget *f = calloc(1, sizeof *f);
    struct finding x = {f, SLU_MAP_INIT};

    *out = f;
    if (!f)
        return slu_fail_nomem(err, sizeof *f);
    f->dir = dir;
    f->drop = drop;
    f->expr = where;
    int rc = check_expr(where, err);
    if (!rc)
        rc = slu_shardset_open(&f->set, dir, err);
    if (!rc)
        rc = slu_shard_format_find(&f->format, slu_shardset_format(f->set), err);
    if (!rc)
        rc = slu_names_new(&f->names, err);
    f->to_masks = !rc && f->format->n_mask_file && !slu_shardset_header(f->set)->masks;
    if (!rc)
        rc = read_rows(f, find_all, &x, err);
    f->result.ids = x.found.n;
    if (!rc)
        count_shards(f);
    slu_map_release(&x.found);
    return rc;
}

const struct slu_forget_result *slu_forget_result(const struct slu_forget *f)
{
    return &f->result;
}

int slu_forget_steps(const struct slu_forget *f, struct slu_step_list *steps,
                     struct slu_err *err)
{
    return slu_shardset_steps(f->set, steps, err);
}

int slu_forget_put_places(const struct slu_forget *f, struct slu_buf *out,
                          struct slu_err *err)
{
    return slu_manifests_put_places(slu_shardset_report(f->set), out, err);
}

/* ---- how the set was made ---- */

/* Takes the options of the format by which the set was written, and its licence. */
static int read_options(const struct slu_forget *f, struct slu_shards_cfg *cfg,
                        struct slu_err *err)
{
    struct slu_json_value root = slu_shardset_report(f->set), of;
    const char *member;
    uint64_t level = 0;
    int at = 0;

    if (!slu_json_get(root, "format_options", &of))
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s/report.json: has no format_options, which say how the set "
                        "was written; an earlier version wrote it; write it again with "
                        "shuffle, in the same order",
                        f->dir);
    member = slu_json_get_string(of, "member", slu_shard_member_names[0]);
    cfg->compress_set = slu_shards_u64(of, "compress_level", &level);
    cfg->compress_level = (int)level;
    while (slu_shard_member_names[at] &&
           strcmp(member, slu_shard_member_names[at]) != 0)
        at++;
    if (!slu_shard_member_names[at] || level > SLU_SHARD_MOST_LEVEL)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "%s/report.json: has format_options that this version does not "
                        "know",
                        f->dir);
    cfg->member = (enum slu_shard_member)at;
    (void)slu_shards_u64(of, "max_segments", &cfg->max_segments);
    cfg->olmo_path = slu_json_get_string(of, "olmo_path", NULL);
    cfg->olmo_tokenizer = slu_json_get_string(of, "olmo_tokenizer", NULL);
    cfg->license = slu_json_get_string(root, "license", NULL);
    return SLU_OK;
}

/* OLMo-core finds its index by the numbers of its tokenizer, of which the padding is the
 * same as before. */
static int keep_tokenizer(struct slu_forget *f, struct slu_shards_cfg *cfg,
                          const struct slu_header *h, struct slu_err *err)
{
    const uint64_t was = slu_shardset_header(f->set)->pad;

    if (cfg->olmo_tokenizer || !(f->format->options & SLU_SHARD_OLMO_PATH) ||
        h->pad == was || h->eos == SLU_NO_TOKEN)
        return SLU_OK;
    if (asprintf(&f->olmo_tokenizer, "%llu,%llu,%llu",
                 (unsigned long long)h->vocab_size, (unsigned long long)h->eos,
                 (unsigned long long)(was == SLU_NO_TOKEN ? h->eos : was)) < 0) {
        f->olmo_tokenizer = NULL;
        return slu_fail_nomem(err, 1);
    }
    cfg->olmo_tokenizer = f->olmo_tokenizer;
    return SLU_OK;
}

/* The rule by which a set of whole documents has its shards. */
static int documents_rule(const struct slu_forget *f, struct slu_shards_cfg *cfg,
                          struct slu_err *err)
{
    struct slu_json_value v;

    cfg->documents = slu_json_get(slu_shardset_report(f->set), "whole_documents", &v);
    if (cfg->documents && !slu_shards_u64(v, "shard_bytes", &cfg->shard_byte) &&
        !slu_shards_u64(v, "shard_sequences", &cfg->shard_sequences))
        return slu_fail(err, SLU_E_FORMAT,
                        "%s/report.json: whole_documents has neither shard_bytes nor "
                        "shard_sequences",
                        f->dir);
    return SLU_OK;
}

static int set_header(struct slu_forget *f, uint64_t pad, struct slu_header *h,
                      struct slu_err *err)
{
    int rc = slu_header_copy(h, slu_shardset_header(f->set), err);

    if (rc)
        return rc;
    if (pad != SLU_NO_TOKEN && pad >= h->vocab_size)
        return slu_fail(err, SLU_E_USAGE,
                        "the padding id %llu is not below the vocabulary size, %llu",
                        (unsigned long long)pad, (unsigned long long)h->vocab_size);
    struct slu_header more = *h;
    uint64_t n_pad = 0;
    f->pad = more.pad = pad != SLU_NO_TOKEN ? pad : h->pad;
    more.inner_padding = true;
    more.masks |= f->to_masks;
    /* Padding that is there keeps its id. */
    if (slu_shards_u64(slu_shardset_report(f->set), "padding", &n_pad) && !n_pad)
        h->pad = f->pad;
    slu_header_join(h, &more);
    return f->pad != SLU_NO_TOKEN
               ? SLU_OK
               : slu_advise(err, SLU_ADVISE_PAD_ID,
                            slu_fail(err, SLU_E_USAGE,
                                     "%s: has %s padding id, with which tokens are "
                                     "replaced",
                                     f->dir, n_pad ? "more than one" : "no"));
}

static void set_given(struct slu_forget *f, const struct slu_shards_cfg *cfg)
{
    struct slu_shards_given *g = &f->given;

    g->dir = f->dir;
    g->input = &f->result.in;
    g->n_bucket = slu_shardset_n_bucket(f->set);
    for (unsigned i = 0; i < g->n_bucket; i++) {
        const struct slu_shard_bucket *b = slu_shardset_bucket(f->set, i);
        uint64_t n = cfg->shard_sequences ? cfg->shard_sequences : UINT64_MAX;
        g->bucket[i] = (struct slu_shards_given_bucket){
            b->length, b->length ? b->shard_sequences : n, f->bucket[i].facts,
            f->bucket[i].changed, f->bucket[i].n};
    }
}

int slu_forget_cfg(struct slu_forget *f, uint64_t pad, struct slu_shards_cfg *cfg,
                   struct slu_header *h, struct slu_err *err)
{
    int rc = read_options(f, cfg, err);

    if (!rc)
        rc = documents_rule(f, cfg, err);
    if (!rc)
        rc = set_header(f, pad, h, err);
    if (!rc)
        rc = keep_tokenizer(f, cfg, h, err);
    if (!rc)
        rc = slu_names_read_vocab(slu_shardset_names(f->set), err);
    const struct slu_vocab_table *v =
        rc ? NULL : slu_names_vocab(slu_shardset_names(f->set));
    if (v)
        rc = slu_names_set_vocab(f->names, v, err);
    if (!rc && v && pad < v->n && !v->flags[pad] && !cfg->accept_mismatch)
        rc = slu_advise(err, SLU_ADVISE_PAD_ID,
                        slu_fail(err, SLU_E_USAGE,
                                 "the padding id %llu is a token of texts, which would "
                                 "be left out with it",
                                 (unsigned long long)pad));
    if (rc)
        return rc;
    const char *seal = slu_json_get_string(slu_shardset_report(f->set), "xxh3_64", "");
    cfg->input_id = slu_hash128(seal, strlen(seal)); /* of all files of the set */
    cfg->format = f->format;
    cfg->header = h;
    cfg->names = f->names;
    cfg->by_bucket = true;
    set_given(f, cfg);
    cfg->given = &f->given;
    return SLU_OK;
}

/* ---- the new sequences ---- */

/* Makes padding of the segments that go, and joins padding that is adjacent. */
static int make_padding(const struct slu_forget *f, struct slu_batch *b,
                        struct slu_seq *q, struct slu_err *err)
{
    struct slu_seg *seg = &b->seg[q->seg_off];
    uint64_t n = 0, tok = q->tok_off;

    for (uint64_t i = 0; i < q->n_seg; i++) {
        struct slu_seg g = seg[i];
        const uint64_t len = g.len_tok;
        enum why why;
        int rc = ask(f, b, q->seg_off + i, &why, err);
        if (rc)
            return rc;
        if (why) {
            for (uint64_t t = 0; t < len && b->tok_bytes == 2; t++)
                ((uint16_t *)(void *)b->own.data)[tok + t] = (uint16_t)f->pad;
            for (uint64_t t = 0; t < len && b->tok_bytes == 4; t++)
                ((uint32_t *)(void *)b->own.data)[tok + t] = (uint32_t)f->pad;
            g = (struct slu_seg){
                .source = SLU_PADDING, .len_tok = len, .domain = SLU_NO_DOMAIN};
        }
        tok += len;
        if (n && g.source == SLU_PADDING && seg[n - 1].source == SLU_PADDING)
            seg[n - 1].len_tok += len;
        else
            seg[n++] = g;
    }
    q->n_seg = n;
    q->hash = (struct slu_u128){0, 0};
    b->sum_valid = false;
    return SLU_OK;
}

static bool skip_given(void *ctx, unsigned bucket, uint64_t shard)
{
    const struct slu_forget *f = ctx;

    return shard < f->bucket[bucket].n && !f->bucket[bucket].changed[shard];
}

/* Gives domains their numbers in f->names; sources keep theirs. */
static int rename_all(struct slu_forget *f, struct slu_batch *b, struct slu_err *err)
{
    struct slu_names *from = slu_shardset_names(f->set);
    uint64_t source = SLU_PADDING;
    int rc = slu_shardset_domains(b, from, f->names, err);

    for (size_t i = 0; i < b->n_seg && !rc; i++) {
        const struct slu_seg *g = &b->seg[i];
        if (g->source != SLU_PADDING && g->source != source) {
            const char *name = slu_names_source(from, g->source);
            source = g->source;
            rc = slu_names_set_source(f->names, source, name ? name : "", err);
        }
    }
    return rc;
}

/* Sets the sums of what stays as it is: those of the set less those that were read. The
 * files that are linked are of the same set. */
static int end(struct slu_forget *f, struct slu_err *err)
{
    struct slu_json_value root = slu_shardset_report(f->set);
    uint64_t sum[2], mask[2] = {0, 0};
    int rc = slu_shardset_same(f->set, err);

    if (rc)
        return rc;

    if (!slu_shards_hex(root, "checksum", sum, 2) ||
        (slu_shardset_header(f->set)->masks &&
         !slu_shards_hex(root, "mask_checksum", mask, 2)))
        return slu_fail(err, SLU_E_FORMAT, "%s/report.json: no checksum", f->dir);
    if (f->to_masks)
        return SLU_EOF;
    f->given.checksum =
        slu_u128_sub((struct slu_u128){sum[0], sum[1]}, f->changed_checksum);
    f->given.mask_checksum =
        slu_u128_sub((struct slu_u128){mask[0], mask[1]}, f->changed_masks);
    return SLU_EOF;
}

int slu_forget_source(void *forget, struct slu_pipe *pipe, struct slu_batch *b,
                      struct slu_err *err)
{
    struct slu_forget *f = forget;

    (void)pipe;
    if (!f->begun)
        slu_shardset_skip(f->set, skip_given, f);
    f->begun = true;
    int rc = next_batch(f, f->set, b, err);
    if (rc)
        return rc == SLU_EOF ? end(f, err) : rc;
    if (slu_batch_has_ids(b)) {
        slu_batch_sum(b);
        f->changed_checksum = slu_u128_add(f->changed_checksum, b->sum.checksum);
        f->changed_masks = slu_u128_add(f->changed_masks, b->sum.mask_checksum);
    }
    if (f->to_masks)
        rc = slu_batch_mark_all(b, err);
    for (size_t i = 0; i < b->n_seq && slu_batch_has_ids(b) && !rc; i++)
        rc = make_padding(f, b, &b->seq[i], err);
    return rc ? rc : rename_all(f, b, err);
}

void slu_forget_free(struct slu_forget *f)
{
    if (!f)
        return;
    for (unsigned i = 0; i < SLU_MAX_BUCKETS; i++) {
        free(f->bucket[i].facts);
        free(f->bucket[i].changed);
    }
    slu_where_free(f->where);
    slu_shardset_free(f->set);
    slu_names_free(f->names);
    free(f->olmo_tokenizer);
    free(f);
}
