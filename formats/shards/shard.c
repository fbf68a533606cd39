/* shard.c - the engine behind every shard format: checks, buckets and counts.
 */
#include "formats/shards/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/shards/shard_dir.h"
#include "formats/shards/shard_private.h"
#include "lib/flow/bytelog.h"

int slu_shard_too_large(const struct slu_shard_format *f,
                        const struct slu_shard_bucket *b, const char *what,
                        uint64_t largest, struct slu_err *err)
{
    if (largest == 0)
        return slu_fail(err, SLU_E_USAGE,
                        "format %s: a single sequence of %s exceeds %s", f->name,
                        b->name, what);
    return slu_advise(
        err, SLU_ADVISE_SHARD_SEQUENCES,
        slu_fail(err, SLU_E_USAGE,
                 "format %s: %llu sequences a shard in %s exceed %s; at most %llu fit",
                 f->name, (unsigned long long)b->shard_sequences, b->name, what,
                 (unsigned long long)largest));
}

/* ---- whole documents ---- */

struct slu_shard_rule slu_shards_documents_rule(const struct slu_shards_cfg *cfg)
{
    const struct slu_shard_format *f = cfg->format;

    if (cfg->shard_sequences)
        return (struct slu_shard_rule){0, 1, cfg->shard_sequences};
    return (struct slu_shard_rule){slu_shards_id_bytes(cfg, cfg->header),
                                   f->build ? SLU_SHARD_DOCUMENT_BYTE : 0,
                                   cfg->shard_byte ? cfg->shard_byte : f->shard_byte};
}

int slu_shards_check_longest(const struct slu_shards_cfg *cfg, uint64_t n_tok,
                             struct slu_err *err)
{
    const struct slu_shard_format *f = cfg->format;
    const struct slu_shard_rule r = slu_shards_documents_rule(cfg);
    uint64_t most;

    if (!r.per_tok || !n_tok)
        return SLU_OK;
    if (slu_shard_place(&r, (struct slu_count){.tokens = n_tok, .sequences = 1}) >
        r.size)
        return slu_advise(err, SLU_ADVISE_SHARD_BYTES,
                          slu_fail(err, SLU_E_USAGE,
                                   "format %s: a document of %llu ids takes more than "
                                   "the %llu bytes of a shard",
                                   f->name, (unsigned long long)n_tok,
                                   (unsigned long long)r.size));
    if (!f->most_id ||
        (n_tok <= f->most_id && (r.size - 1) / r.per_tok <= f->most_id - n_tok))
        return SLU_OK;
    most = n_tok < f->most_id ? (f->most_id - n_tok) * r.per_tok : 0;
    return slu_advise(
        err, SLU_ADVISE_SHARD_BYTES,
        slu_fail(
            err, SLU_E_USAGE,
            "format %s: shards of %llu bytes and a document of %llu ids can exceed "
            "the %llu ids of a file; at most %llu bytes fit",
            f->name, (unsigned long long)r.size, (unsigned long long)n_tok,
            (unsigned long long)f->most_id, (unsigned long long)most));
}

static bool takes_documents(const struct slu_shard_format *f)
{
    return f->documents;
}

static bool carries_masks(const struct slu_shard_format *f)
{
    return f->masks;
}

static bool has_segments(const struct slu_shard_format *f)
{
    return f->options & SLU_SHARD_SEGMENTS;
}

/* Checks the options of documents whose shards are built in memory. */
static int check_built(const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    if (cfg->shard_sequences)
        return slu_advise(err, SLU_ADVISE_SHARD_BYTES,
                          slu_fail(err, SLU_E_USAGE,
                                   "format %s makes a shard in memory, and a number of "
                                   "documents does not limit its bytes",
                                   cfg->format->name));
    if (cfg->shard_byte > SLU_SHARD_BUILD_BYTE)
        return slu_advise(
            err, SLU_ADVISE_SHARD_BYTES,
            slu_fail(err, SLU_E_USAGE,
                     "format %s: shards of %llu bytes; at most %llu bytes fit",
                     cfg->format->name, (unsigned long long)cfg->shard_byte,
                     (unsigned long long)SLU_SHARD_BUILD_BYTE));
    return SLU_OK;
}

static int check_documents(const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    char can[128];

    slu_shard_formats_with(takes_documents, can, sizeof can);
    if (!cfg->format->documents)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "format %s cannot take whole documents; %s can",
                        cfg->format->name, can);
    if (cfg->max_segments)
        return slu_fail(err, SLU_E_USAGE,
                        "a whole document is one run of ids, which has no array of "
                        "segments' lengths");
    if (cfg->header->n_bucket)
        return slu_fail(err, SLU_E_MISMATCH,
                        "whole documents are asked for, and the stream was decomposed "
                        "or packed; give the stream that it was made from");
    return cfg->format->build ? check_built(cfg, err) : SLU_OK;
}

static int check_buckets(const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    const struct slu_header *h = cfg->header;
    const struct slu_shard_format *f = cfg->format;

    if (h->n_bucket == 0)
        return slu_advise(
            err, SLU_ADVISE_DOCUMENTS,
            slu_fail(err, SLU_E_MISMATCH,
                     "the stream has no bucket lengths, which shards need; put "
                     "'decompose', and 'pack' for what it leaves, before shuffle"));
    if (f->labels == SLU_LABELS_WANTED && !h->label_tokens && !cfg->accept_mismatch)
        return slu_advise(
            err, SLU_ADVISE_LABEL_TOKEN,
            slu_fail(err, SLU_E_MISMATCH,
                     "format %s needs one more token in each sequence, the last label",
                     f->name));
    if (f->labels == SLU_LABELS_UNWANTED && h->label_tokens && !cfg->accept_mismatch)
        return slu_advise(err, SLU_ADVISE_NO_LABEL_TOKEN,
                          slu_fail(err, SLU_E_MISMATCH,
                                   "format %s needs sequences without a label token",
                                   f->name));
    for (unsigned i = 0; i < h->n_bucket && f->powers_of_two; i++)
        if (h->bucket[i] & (h->bucket[i] - 1))
            return slu_advise(err, SLU_ADVISE_BUCKETS,
                              slu_fail(err, SLU_E_MISMATCH,
                                       "format %s has names for powers of two only, "
                                       "and there is a bucket of %llu",
                                       f->name, (unsigned long long)h->bucket[i]));
    return SLU_OK;
}

/* ---- padding between segments ---- */

/* Whether only the id of padding says that it is not trained on. */
static bool by_id(const struct slu_shard_format *f, const struct slu_header *h,
                  bool documents)
{
    return h->inner_padding && !h->masks &&
           (f->inner_padding != SLU_INNER_LABELS || documents);
}

static bool keeps_inner_padding(const struct slu_shard_format *f)
{
    return f->inner_padding == SLU_INNER_LABELS;
}

static int check_inner_padding(const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    const struct slu_shard_format *f = cfg->format;
    const struct slu_header *h = cfg->header;
    char can[128];

    slu_shard_formats_with(keeps_inner_padding, can, sizeof can);
    if (h->inner_padding && f->inner_padding == SLU_INNER_NONE)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "format %s: the stream has padding between segments, on which "
                        "its trainers would train; %s mark it",
                        f->name, can);
    if (!by_id(f, h, cfg->documents))
        return SLU_OK;
    const bool several = h->pad == SLU_NO_TOKEN;
    if (several || h->pad == h->eos || h->pad == h->bos)
        return slu_advise(
            err, several ? SLU_ADVISE_ONE_PAD_ID : SLU_ADVISE_PAD_ID,
            slu_fail(err, SLU_E_MISMATCH,
                     "format %s: its trainer can leave out padding between segments by "
                     "its id alone, and %s (%s mark it)",
                     f->name, several ? "there are several ids" : "that is EOS or BOS",
                     can));
    if (f->inner_padding == SLU_INNER_PAD || cfg->accept_mismatch)
        return SLU_OK;
    return slu_advise(err, SLU_ADVISE_ACCEPT_MISMATCH,
                      slu_fail(err, SLU_E_MISMATCH,
                               "format %s marks padding between segments by masks, and "
                               "the stream has none; its trainer would have to leave "
                               "out id %llu",
                               f->name, (unsigned long long)h->pad));
}

int slu_shards_inner_note(const struct slu_shards *s, struct slu_buf *out,
                          struct slu_err *err)
{
    const struct slu_shard_format *f = s->cfg.format;

    if (!by_id(f, &s->header, s->cfg.documents))
        return SLU_OK;
    return slu_buf_printf(out, err,
                          "padding between segments is told by its id alone: give the "
                          "trainer %s %llu, or it trains on it",
                          f->ignore_id ? f->ignore_id : "a loss that ignores id",
                          (unsigned long long)s->header.pad);
}

/* ---- checks ---- */

static int check(const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    const struct slu_header *h = cfg->header;
    const struct slu_shard_format *f = cfg->format;
    char can[128];

    if (cfg->compress_set && !(f->options & SLU_SHARD_COMPRESS))
        return slu_fail(err, SLU_E_USAGE, "format %s cannot be compressed", f->name);
    slu_shard_formats_with(has_segments, can, sizeof can);
    if (cfg->max_segments && !has_segments(f))
        return slu_fail(err, SLU_E_USAGE,
                        "format %s has no array of segments' lengths; %s has", f->name,
                        can);
    if (cfg->member != SLU_MEMBER_TXT && !(f->options & SLU_SHARD_MEMBER))
        return slu_fail(err, SLU_E_USAGE, "format %s has no members", f->name);
    if ((cfg->olmo_path || cfg->olmo_tokenizer) && !(f->options & SLU_SHARD_OLMO_PATH))
        return slu_fail(err, SLU_E_USAGE, "format %s has no OLMo %s", f->name,
                        cfg->olmo_path ? "path" : "tokenizer");
    if (h->no_tokens)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has segment rows only, and no tokens for shards");
    int rc = cfg->documents ? check_documents(cfg, err) : check_buckets(cfg, err);
    if (rc)
        return rc;
    slu_shard_formats_with(carries_masks, can, sizeof can);
    if (h->masks && !f->masks)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "format %s cannot carry masks, which tell the tokens that are "
                        "trained on; %s can",
                        f->name, can);
    return check_inner_padding(cfg, err);
}

/* Sequences of a full shard of a bucket. */
static uint64_t shard_sequences(const struct slu_shards *s,
                                const struct slu_shard_bucket *b)
{
    const struct slu_shards_cfg *cfg = &s->cfg;
    const struct slu_shards_given_bucket *g = slu_shards_given_bucket(s, b->length);

    if (g)
        return g->shard_sequences;
    if (cfg->shard_sequences)
        return cfg->shard_sequences;
    if (cfg->documents)
        return UINT64_MAX;
    if (!cfg->shard_byte)
        return slu_shards_auto(cfg->format, b);
    uint64_t n = cfg->shard_byte / b->id_bytes / b->n_id;
    return n ? n : 1;
}

static void init_bucket(struct slu_shards *s, struct slu_shards_bucket *k,
                        uint64_t length)
{
    struct slu_shard_bucket *b = &k->pub;

    b->length = length;
    b->n_id = length ? slu_header_ids(&s->header, length) : 0;
    b->max_segments = s->cfg.max_segments < b->n_id ? s->cfg.max_segments : b->n_id;
    b->tok_bytes = slu_header_stored(&s->header);
    b->id_bytes = slu_shards_id_bytes(&s->cfg, &s->header);
    b->masks = s->masks;
    b->inner_padding = s->header.inner_padding;
    slu_shard_bucket_name(length, b->name);
    slu_shards_batch(s, &k->batch);
    b->shard_sequences = shard_sequences(s, b);
    b->rule = s->cfg.documents ? slu_shards_documents_rule(&s->cfg)
                               : (struct slu_shard_rule){0, 1, b->shard_sequences};
}

/* The longest bucket first: a number that fits there fits all buckets. */
static int check_limits(const struct slu_shards *s, struct slu_err *err)
{
    const struct slu_shard_format *f = s->cfg.format;
    int rc = SLU_OK;

    for (unsigned i = s->n_bucket; i-- > 0 && !rc && f->check && !s->cfg.documents;)
        rc = f->check(&s->bucket[i].pub, err);
    return rc || !f->build ? rc : slu_shards_check_memory(s, err);
}

/* With cfg.given, whether the folder has this set: report.json then has the hash of its
 * record. Takes the record for published. */
static int has_given(struct slu_shards *s, struct slu_err *err)
{
    struct slu_buf *head = &s->published;
    struct slu_json *report = NULL;
    char hex[33], *path = NULL;
    int rc = slu_shards_head(s, s->cfg.given->input, "", head, err);

    if (!rc)
        rc = slu_set_path(&path, s->dir, "report.json", err);
    slu_u128_hex(slu_hash128(head->data, head->len), hex);
    const bool is =
        !rc && !access(path, F_OK) && !slu_json_load(&report, path, NULL) &&
        !strcmp(slu_json_get_string(slu_json_root(report), "made", ""), hex);
    if (is && slu_exists_in(s->dir, SLU_SET_PARTIAL)) { /* of the run that made it */
        rc = slu_set_begin(&s->out, s->dir, s->cfg.format, head, true, err);
        s->out.keep = rc;
        slu_set_abandon(&s->out, rc);
    }
    if (!is)
        slu_buf_clear(head);
    slu_json_free(report);
    free(path);
    return rc;
}

/* Publishes what a killed run had written. Checks the folder, unless that is a set of
 * this record: then slu_shards_begin, which knows the input, decides. */
static int check_folder(struct slu_shards *s, struct slu_err *err)
{
    struct slu_buf *was = &s->published;
    int rc = slu_set_recover(s->dir, was, err);

    if (rc ||
        (was->len > s->record.len && !memcmp(was->data, s->record.data, s->record.len)))
        return rc;
    slu_buf_clear(was);
    if (s->cfg.given && ((rc = has_given(s, err)) || was->len))
        return rc;
    return slu_set_check(s->dir, s->cfg.format, s->cfg.replace, err);
}

int slu_shards_new(struct slu_shards **out, const struct slu_shards_cfg *cfg,
                   struct slu_err *err)
{
    *out = NULL;
    int rc = check(cfg, err);
    if (rc)
        return rc;
    struct slu_shards *s = calloc(1, sizeof *s);
    if (!s)
        return slu_fail_nomem(err, sizeof *s);
    s->cfg = *cfg;
    s->journal = -1;
    s->extra_end = &s->extra;
    s->cfg.header = &s->header;
    slu_header_init(&s->header);
    s->cfg.dir = s->dir = strdup(cfg->dir);
    rc =
        s->dir ? slu_header_copy(&s->header, cfg->header, err) : slu_fail_nomem(err, 1);
    if (!rc)
        rc = cfg->format->init(&s->state, cfg, err);
    if (!rc)
        rc = slu_shards_record(s, err);
    s->masks = s->header.masks;
    s->header.no_tokens = true;
    if (!rc && cfg->documents) {
        init_bucket(s, &s->bucket[s->n_bucket++], 0);
        rc = slu_lengths_new(&s->lengths, NULL, NULL, err);
    }
    for (; s->n_bucket < s->header.n_bucket && !rc; s->n_bucket++)
        init_bucket(s, &s->bucket[s->n_bucket], s->header.bucket[s->n_bucket]);
    if (!rc)
        rc = check_limits(s, err);
    if (!rc && !cfg->parts)
        rc = check_folder(s, err);
    if (rc)
        slu_shards_free(s);
    else
        *out = s;
    return rc;
}

int slu_shards_plan(struct slu_shards *s, struct slu_shards_bucket *b, uint64_t n_tok,
                    struct slu_shards_place *p, struct slu_err *err)
{
    const struct slu_shard_rule *r = &b->pub.rule;

    /* A part of whole documents begins where its source says. */
    if (!b->place && s->cfg.documents && s->part.of && s->part.before)
        b->place = slu_shard_place(r, *s->part.before);
    *p = (struct slu_shards_place){b->place / r->size, b->plan_index++, b->plan_tok,
                                   false};
    if (p->index == 0 && p->number != b->first + b->n_planned++)
        return slu_fail(err, SLU_E_LIMIT, /* slu_shards_check_longest was not called */
                        "a document of %s is longer than a shard: none begins in shard "
                        "%llu",
                        b->pub.name, (unsigned long long)(b->first + b->n_planned - 1));
    b->plan_tok += n_tok;
    b->place += slu_shard_place(r, (struct slu_count){.tokens = n_tok, .sequences = 1});
    p->last = b->place / r->size != p->number;
    if (p->last)
        b->plan_index = b->plan_tok = 0;
    return SLU_OK;
}

int slu_shards_check_document(const struct slu_shards *s, const struct slu_seg *seg,
                              uint64_t n_seg, uint64_t n_id, struct slu_err *err)
{
    bool is = n_seg && n_id &&
              (seg->source != SLU_PADDING || (n_seg == 1 && s->header.inner_padding));

    for (uint64_t i = 1; i < n_seg && is; i++)
        is = seg[i].source == seg->source && seg[i].document == seg->document;
    return is ? SLU_OK
              : slu_fail(err, SLU_E_MISMATCH,
                         "whole documents are asked for, and a sequence has none or "
                         "several; give a stream that was not packed");
}

/* Refuses to continue a stopped run that wrote shards for which this run has no
 * sequences. They would stay, and a reader that takes all files of a folder would read
 * them. */
static int check_surplus(struct slu_shards *s, const struct slu_shards_bucket *b,
                         struct slu_err *err)
{
    for (uint64_t k = b->first + b->pub.n_shard; k < b->first + b->n_done; k++)
        if (slu_shards_done(b, k))
            return slu_shards_differs(s, b, k, err);
    return SLU_OK;
}

int slu_shards_run(struct slu_shards *s, slu_shards_source *source, void *ctx,
                   unsigned n_threads, unsigned n_slots, struct slu_err *err)
{
    slu_shards_queue_begin(s, n_threads);
    int rc = s->cfg.format->build
                 ? slu_shards_build(s, source, ctx, n_threads, n_slots, err)
                 : slu_shards_stream(s, source, ctx, n_threads, n_slots, err);

    rc = slu_shards_queue_end(s, rc, err);
    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        rc = check_surplus(s, &s->bucket[i], err);
    return rc;
}

int slu_shards_write(struct slu_shards *s, slu_shards_source *source, void *ctx,
                     const struct slu_sum *input, unsigned n_threads, unsigned n_slots,
                     struct slu_err *err)
{
    int rc = slu_shards_begin(s, input, n_threads, err);

    if (!rc)
        rc = slu_shards_run(s, source, ctx, n_threads, n_slots, err);
    for (unsigned i = 0; i < s->n_bucket && !rc; i++)
        rc = slu_shards_end_bucket(s, &s->bucket[i], err);
    if (!rc && s->cfg.given) {
        const struct slu_shards_given *g = s->cfg.given;
        s->sum.checksum = slu_u128_add(s->sum.checksum, g->checksum);
        s->sum.mask_checksum = slu_u128_add(s->sum.mask_checksum, g->mask_checksum);
    }
    return rc;
}

/* ---- after writing ---- */

const struct slu_shard_format *slu_shards_format(const struct slu_shards *s)
{
    return s->cfg.format;
}

unsigned slu_shards_n_bucket(const struct slu_shards *s)
{
    return s->n_bucket;
}

const struct slu_shard_bucket *slu_shards_bucket(const struct slu_shards *s, unsigned i)
{
    return &s->bucket[i].pub;
}

uint64_t slu_shards_short(const struct slu_shards *s, unsigned i)
{
    return s->bucket[i].n_short;
}

const struct slu_sum *slu_shards_sum(const struct slu_shards *s)
{
    return &s->sum;
}

const struct slu_sum *slu_shards_dropped(const struct slu_shards *s)
{
    return &s->dropped;
}

const char *slu_shards_remark(const struct slu_shards *s)
{
    return s->cfg.format->set_note ? s->cfg.format->set_note(s->state) : NULL;
}

uint64_t slu_shards_packed(const struct slu_shards *s)
{
    return s->n_packed;
}

/* Writes the format's own files beside the buckets. */
static int finish_set(struct slu_shards *s, struct slu_err *err)
{
    const struct slu_shard_bucket *bucket[SLU_MAX_BUCKETS];
    const struct slu_shard_facts *shard[SLU_MAX_BUCKETS];
    struct slu_shard_set set = {s->out.at, 0, bucket, shard, s};

    if (!s->cfg.format->set)
        return SLU_OK;
    for (unsigned i = 0; i < s->n_bucket; i++)
        if (s->bucket[i].pub.n_seq) {
            bucket[set.n_bucket] = &s->bucket[i].pub;
            shard[set.n_bucket++] = s->bucket[i].facts;
        }
    return s->cfg.format->set(s->state, &set, err);
}

int slu_shards_finish(struct slu_shards *s, const char *program,
                      const struct slu_account *account, struct slu_err *err)
{
    struct slu_shards_card card = {0};
    struct slu_filelist files = SLU_FILELIST_INIT;
    int rc = finish_set(s, err);

    if (!rc && !s->sum.n.sequences)
        rc = slu_shards_put_empty(s, err);
    if (!rc)
        rc = slu_shards_card_init(&card, s, account, err);
    if (!rc)
        rc = slu_shards_card_write(s, &card, err);
    if (!rc)
        rc = slu_shards_manifest(s, err);
    /* The files for people (README.md, pictures) are written here, because report.json
     * is the last file. */
    if (!rc)
        rc = slu_shards_report(s, &card, program, account, err);
    slu_shards_card_release(&card);
    if (!rc)
        rc = slu_shards_list(s, &files, err);
    if (!rc) {
        rc = slu_set_ready(&s->out, &files, err);
        /* The user can move a file that is in the way, and this run can continue; and
         * what is ready can be published later. */
        s->keep = s->keep || !rc || rc == SLU_E_MISMATCH;
    }
    slu_filelist_release(&files);
    return rc ? rc : slu_set_publish(&s->out, err);
}

int slu_shards_report_add(struct slu_shards *s, const char *key, const char *json,
                          struct slu_err *err)
{
    return slu_buf_printf(&s->notes, err, "  \"%s\": %s,\n", key, json);
}

int slu_shards_card_add(struct slu_shards *s, const struct slu_buf *text,
                        struct slu_err *err)
{
    return slu_buf_append(&s->sections, text->data, text->len, err);
}

int slu_shards_set_steps(struct slu_shards *s, const struct slu_step_list *steps,
                         struct slu_err *err)
{
    return slu_steps_join(&s->steps, steps, err);
}

void slu_shards_free(struct slu_shards *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < SLU_MAX_BUCKETS; i++) {
        struct slu_shards_bucket *b = &s->bucket[i];
        slu_writer_abort(b->rows);
        slu_batch_release(&b->batch);
        slu_domains_release(&b->domains);
        free(b->facts);
        free(b->done);
        free(b->noted);
        slu_shards_files_abort(b->files);
        slu_bytelog_free(b->kept);
        for (unsigned k = 0; k < SLU_SHARD_FILES; k++)
            slu_buf_release(&b->unwritten[k]);
    }
    for (struct slu_shard_extra *e = s->extra, *next; e; e = next) {
        next = e->next;
        free(e);
    }
    if (s->journal >= 0)
        close(s->journal);
    slu_set_abandon(&s->out, s->keep);
    if (s->cfg.format->release)
        s->cfg.format->release(s->state);
    slu_lengths_free(s->lengths);
    slu_buf_release(&s->record);
    slu_buf_release(&s->published);
    slu_buf_release(&s->flushed);
    slu_buf_release(&s->notes);
    slu_buf_release(&s->sections);
    slu_steps_release(&s->steps);
    slu_buf_release(&s->journal_path);
    slu_header_release(&s->header);
    free(s->dir);
    free(s);
}
