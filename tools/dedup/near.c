/* near.c - dedup --near: drops sequences that are similar to a kept one. With --stage:
 * one stage of the work, with files between stages. */
#include "lib/dedup/near/near.h"

#include <string.h>

#include "lib/base/io.h"
#include "lib/dedup/against/index.h"
#include "lib/dedup/near/near_private.h"
#include "tools/dedup/dedup.h"

#define FLOOR_BYTE (UINT64_C(64) << 20) /* least -M */

/* ---- options ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

int dedup_parse_threshold(void *opts, const char *value, struct slu_err *err)
{
    struct dedup_opts *o = opts;
    uint64_t num = 0, den = 1;
    unsigned n_digit = 0;
    const char *s = value;

    for (; *s >= '0' && *s <= '9' && n_digit < 9; s++, n_digit++)
        num = num * 10 + (uint64_t)(*s - '0');
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9' && n_digit < 9; s++, n_digit++) {
            num = num * 10 + (uint64_t)(*s - '0');
            den *= 10;
        }
    if (*s == '%' && den <= 10000000) {
        s++;
        den *= 100;
    }
    if (*s || num == 0 || num > den)
        return slu_fail(err, SLU_E_USAGE,
                        "--threshold: '%s' is not a fraction above 0 and up to 1, of "
                        "at most nine digits",
                        value);
    uint64_t g = common_divisor(num, den);
    o->threshold_num = num / g;
    o->threshold_den = den / g;
    o->threshold = NULL;
    if (o->threshold_num == 4 && o->threshold_den == 5)
        return SLU_OK;
    /* The shortest decimal form; den divides 10^9. */
    snprintf(o->threshold_text, sizeof o->threshold_text, "%llu.%09llu",
             (unsigned long long)(o->threshold_num / o->threshold_den),
             (unsigned long long)(1000000000 / o->threshold_den *
                                  (o->threshold_num % o->threshold_den)));
    size_t n = strlen(o->threshold_text);
    while (o->threshold_text[n - 1] == '0')
        n--;
    n -= o->threshold_text[n - 1] == '.';
    o->threshold_text[n] = 0;
    o->threshold = o->threshold_text;
    return SLU_OK;
}

int dedup_check_keep(const struct dedup_opts *o, struct slu_err *err)
{
    if (o->keep == DEDUP_KEEP_DOMAIN && (!o->domains || !*o->domains))
        return slu_fail(
            err, SLU_E_USAGE,
            "--keep domain-order needs --domains A,B,..., the first to be kept first");
    if (o->keep != DEDUP_KEEP_DOMAIN && o->domains)
        return slu_fail(err, SLU_E_USAGE, "--domains needs --keep domain-order");
    return SLU_OK;
}

/* The position of a name in the list; if it is not in the list, the number of names. */
static uint64_t rank_of(const char *list, const char *name)
{
    uint64_t rank = 0;

    for (;; list++, rank++) {
        size_t n = strcspn(list, ",");
        if (name && n == strlen(name) && !memcmp(list, name, n))
            return rank;
        list += n;
        if (!*list)
            return rank + 1;
    }
}

uint64_t dedup_prio(const struct dedup_opts *o, struct slu_names *names,
                    const struct slu_batch *b, const struct slu_seq *q)
{
    uint32_t domain = q->n_seg ? b->seg[q->seg_off].domain : SLU_NO_DOMAIN;

    if (o->keep == DEDUP_KEEP_LONGEST)
        return UINT64_MAX - 1 -
               (o->trained && b->masks ? slu_batch_loss(b, q->tok_off, q->len_tok)
                                       : q->len_tok);
    if (o->keep == DEDUP_KEEP_DOMAIN)
        return rank_of(o->domains, domain == SLU_NO_DOMAIN
                                       ? NULL
                                       : slu_names_domain(names, domain));
    return 0;
}

/* The largest memory of a batch and the data derived from it: n-grams as large as the
 * batch, and an item with its keys for each sequence of a frame. */
static uint64_t slot_byte(const struct dedup_opts *o)
{
    return (UINT64_C(16) << 20) +
           SLU_FRAME_SEQS * (sizeof(struct slu_near_item) + 8 * o->bands);
}

/* Number of batches in flight. The largest possible batches must fit a quarter of -M
 * plus most of the memory by which a process may exceed -M. */
#define SLACK_BYTE (UINT64_C(48) << 20)
static unsigned slots(const struct cli_ctx *ctx, const struct dedup_opts *o)
{
    uint64_t n = (ctx->common.memory / 4 + SLACK_BYTE) / slot_byte(o);
    unsigned most = cli_slots(ctx, ctx->common.memory / 8);

    return n < 1 ? 1 : n < most ? (unsigned)n : most;
}

int dedup_near_check(const struct cli_ctx *ctx, const struct dedup_opts *o,
                     struct slu_err *err)
{
    if (ctx->common.memory < FLOOR_BYTE)
        return slu_fail(err, SLU_E_USAGE, "-M: --near needs at least %lluM",
                        (unsigned long long)(FLOOR_BYTE >> 20));
    if (!o->bands || !o->rows || o->bands > SLU_NEAR_MAX_BAND ||
        o->rows > SLU_MINHASH_MAX_K || o->bands * o->rows > SLU_MINHASH_MAX_K)
        return slu_fail(err, SLU_E_USAGE,
                        "--bands must be from 1 to %d, --rows 1 or more, and their "
                        "product %d or less",
                        SLU_NEAR_MAX_BAND, SLU_MINHASH_MAX_K);
    if (slot_byte(o) > ctx->common.memory / 4 + SLACK_BYTE)
        return slu_fail(
            err, SLU_E_USAGE, "-M: %llu bands need at least %lluM",
            (unsigned long long)o->bands,
            (unsigned long long)((4 * (slot_byte(o) - SLACK_BYTE) >> 20) + 1));
    if (!o->ngram || dedup_ngram(o, DEDUP_NEAR_NGRAM) > SLU_SHINGLE_MAX_N)
        return slu_fail(err, SLU_E_USAGE, "--ngram must be from 1 to %d",
                        SLU_SHINGLE_MAX_N);
    if (!o->band_cap || o->band_cap > SLU_NEAR_MAX_CAP)
        return slu_fail(err, SLU_E_USAGE, "--band-cap must be from 1 to %d",
                        SLU_NEAR_MAX_CAP);
    return dedup_check_keep(o, err);
}

/* ---- the report ---- */

static int put_bins(struct slu_buf *text, const uint64_t *bin, struct slu_err *err)
{
    int rc = slu_buf_append(text, "[", 1, err);

    for (unsigned i = 0; !rc && i < SLU_NEAR_BINS; i++)
        rc = slu_buf_printf(text, err, "%s%llu", i ? "," : "",
                            (unsigned long long)bin[i]);
    return rc ? rc : slu_buf_append(text, "]", 1, err);
}

static int audit_stats(struct cli_ctx *ctx, const struct slu_near_audit_result *r,
                       struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    int rc = slu_buf_printf(
        &t, err,
        "{\"sampled\":%llu,\"pairs\":%llu,\"found\":%llu,\"dropped\":%llu,"
        "\"below_threshold\":%llu,\"dropped_by_similarity\":",
        (unsigned long long)r->sampled, (unsigned long long)r->pairs,
        (unsigned long long)r->found, (unsigned long long)r->dropped,
        (unsigned long long)r->below);

    if (!rc)
        rc = put_bins(&t, r->bin, err);
    if (!rc)
        rc = slu_buf_printf(&t, err, ",\"pairs_by_similarity\":");
    if (!rc)
        rc = put_bins(&t, r->pair_bin, err);
    if (!rc)
        rc = slu_buf_printf(&t, err, ",\"found_by_similarity\":");
    if (!rc)
        rc = put_bins(&t, r->found_bin, err);
    if (!rc)
        rc = slu_buf_append(&t, "}", 2, err); /* with the NUL */
    if (!rc)
        cli_stat_json(ctx, "audit", (const char *)t.data);
    slu_buf_release(&t);
    return rc;
}

static double share(uint64_t part, uint64_t all)
{
    return all ? 100.0 * (double)part / (double)all : 0;
}

/* The report of --audit in words; printed without -v, because --audit asks for it. */
static void audit_lines(struct cli_ctx *ctx, const struct slu_near_audit_result *r)
{
    cli_warn(ctx,
             "audit: %llu documents sampled; of %llu pairs at or above the threshold "
             "%llu share a band (%.1f %%)",
             (unsigned long long)r->sampled, (unsigned long long)r->pairs,
             (unsigned long long)r->found, share(r->found, r->pairs));
    cli_warn(ctx,
             "audit: of %llu dropped documents, %llu have a similarity to the "
             "kept document below the threshold (%.1f %%)",
             (unsigned long long)r->dropped, (unsigned long long)r->below,
             share(r->below, r->dropped));
    for (unsigned i = 0; i < SLU_NEAR_BINS; i++)
        if (r->bin[i] || r->found_bin[i])
            cli_warn(ctx,
                     "audit: similarity %.2f to %.2f: %llu dropped; of %llu pairs %llu "
                     "share a band",
                     i / (double)SLU_NEAR_BINS, (i + 1) / (double)SLU_NEAR_BINS,
                     (unsigned long long)r->bin[i], (unsigned long long)r->pair_bin[i],
                     (unsigned long long)r->found_bin[i]);
}

static void warn_capped(struct cli_ctx *ctx, const struct dedup_opts *o,
                        const struct slu_near_result *r)
{
    if (r->capped_documents)
        cli_warn(
            ctx,
            "%llu document%s came after the first %llu of a band, and %s not compared "
            "with other documents of that band; raise --band-cap",
            (unsigned long long)r->capped_documents, slu_plural(r->capped_documents),
            (unsigned long long)o->band_cap, r->capped_documents == 1 ? "was" : "were");
}

static int report(struct cli_ctx *ctx, const struct dedup_opts *o, struct slu_near *x,
                  struct slu_err *err)
{
    const struct slu_near_result *r = slu_near_result(x);

    ctx->spill_bytes = r->spilled_byte;
    cli_stat_u64(ctx, "kept", r->documents - r->dropped.sequences);
    cli_stat_u64(ctx, "twins", r->equal_sets);
    cli_stat_u64(ctx, "without_words", r->empty);
    cli_stat_u64(ctx, "candidates", r->candidates);
    cli_stat_u64(ctx, "verified", r->verified);
    cli_stat_u64(ctx, "refused", r->refused);
    cli_stat_u64(ctx, "capped_documents", r->capped_documents);
    cli_stat_u64(ctx, "waited_sequences", r->waited);
    cli_stat_u64(ctx, "table_bytes", r->memory_byte);
    warn_capped(ctx, o, r);
    if (!slu_near_audit(x))
        return SLU_OK;
    struct slu_near_audit_result a;
    slu_near_audit_result(slu_near_audit(x), &a);
    audit_lines(ctx, &a);
    return audit_stats(ctx, &a, err);
}

static int put_pair(void *ctx, const struct slu_near_pair *p, struct slu_err *err)
{
    struct dedup_io *io = ctx;

    return dedup_pairs_put(&io->pairs, &p->dropped, &p->kept, p->inter, p->uni, err);
}

static uint64_t prio(void *ctx, const struct slu_batch *b, const struct slu_seq *q)
{
    struct dedup_io *io = ctx;

    return dedup_prio(io->ctx->opts, slu_reader_names(io->reader), b, q);
}

static int known_doc(void *ctx, const struct slu_index_doc *d, uint64_t number,
                     struct slu_err *err)
{
    struct slu_near_item item = {
        .set_hash = d->hash, .key = d->key, .set = d->set, .n_set = d->n_set};

    return slu_near_known(ctx, &item, number, err);
}

static int known(void *ctx, struct slu_near *x, struct slu_err *err)
{
    return dedup_index_read(ctx, DEDUP_NEAR, known_doc, x, err);
}

static int count_known(void *ctx, const struct slu_header *h, uint64_t *n,
                       struct slu_err *err)
{
    return dedup_index_count(((struct dedup_io *)ctx)->ctx, DEDUP_NEAR, h, n, err);
}

static struct slu_near_cfg config(struct dedup_io *io)
{
    const struct cli_ctx *ctx = io->ctx;
    const struct dedup_opts *o = ctx->opts;

    return (struct slu_near_cfg){
        .n_band = (unsigned)o->bands,
        .n_row = (unsigned)o->rows,
        .n_gram = (unsigned)dedup_ngram(o, DEDUP_NEAR_NGRAM),
        .unit = (enum slu_unit)o->unit,
        .seed = ctx->common.seed,
        .num = o->threshold_num,
        .den = o->threshold_den,
        .band_cap = o->band_cap,
        .verify = o->verify,
        .trained = o->trained,
        .budget_byte =
            ctx->common.memory - ctx->common.memory / 4 - dedup_pairs_byte(ctx),
        .tmpdir = ctx->common.tmpdir,
        .n_threads = (unsigned)ctx->common.threads,
        .prio = o->keep == DEDUP_KEEP_FIRST ? NULL : prio,
        .emit = dedup_emit,
        .known = known,
        .open = dedup_open_output,
        .ctx = io,
    };
}

int dedup_near(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    struct dedup_io io;
    struct slu_near *x = NULL;
    struct slu_sum in = {0};

    int rc = dedup_near_check(ctx, o, err);
    if (rc)
        return rc;
    io = (struct dedup_io){0};
    rc = dedup_index_name(ctx->opts, err);
    if (!rc)
        rc = dedup_open(&io, ctx, err);
    if (!rc)
        rc = dedup_index_create(&io, DEDUP_NEAR, err);
    if (!rc) {
        struct slu_near_cfg cfg = config(&io);
        /* One such document takes half of -M: its tokens twice and its hashes three
         * times. */
        cfg.max_tok = ctx->common.memory / 64;
        cfg.audit = o->audit == UINT64_MAX ? 1000 : o->audit;
        cfg.pair = io.pairs.out ? put_pair : NULL;
        cfg.seen = io.pairs.out ? dedup_pairs_seen : NULL;
        rc = slu_near_new(&x, &cfg, err);
    }
    if (!rc)
        rc = slu_near_run(x, io.reader, slots(ctx, o), &in, err);
    if (!rc)
        rc = report(ctx, o, x, err);
    if (!rc)
        rc = dedup_close(&io, &in, "near-duplicate", slu_near_result(x)->dropped, err);
    slu_near_free(x);
    dedup_abort(&io);
    return rc;
}

/* ---- --stage ---- */

static int report_stage(struct dedup_io *io, struct slu_near *x,
                        const struct slu_flow_report *f, struct slu_err *err)
{
    const struct slu_near_result *r = slu_near_result(x);
    const bool all = cli_flow_is(io->ctx, "cluster");

    if (io->writer)
        return dedup_close(io, &f->in, "near-duplicate", r->dropped, err);
    if (cli_flow_is(io->ctx, "sign"))
        cli_stat_u64(io->ctx, "signed_sequences", f->in.n.sequences);
    if (cli_flow_is(io->ctx, "index"))
        cli_stat_u64(io->ctx, "index_documents", r->indexed);
    if (cli_flow_is(io->ctx, "group") || all)
        cli_stat_u64(io->ctx, "twins", r->equal_sets);
    if (cli_flow_is(io->ctx, "verify") || all) {
        cli_stat_u64(io->ctx, "candidates", r->candidates);
        cli_stat_u64(io->ctx, "edges", r->edges);
        cli_stat_u64(io->ctx, "capped_documents", r->capped_documents);
    }
    if (all)
        cli_stat_u64(io->ctx, "to_drop", r->to_drop);
    if (all)
        warn_capped(io->ctx, io->ctx->opts, r);
    return SLU_OK;
}

int dedup_near_stage(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    struct dedup_io io = {.ctx = ctx};
    const uint64_t in_flight = ctx->common.memory / 4; /* for batches and their sets */
    struct slu_near_cfg cfg = config(&io);
    struct slu_near *x = NULL;
    struct slu_flow_report r;

    cfg.count_known = count_known;
    cfg.save_index = o->save_index;
    int rc = dedup_index_name(ctx->opts, err);
    if (!rc && cli_flow_stage(ctx)->flags & SLU_STAGE_READS)
        rc = dedup_open_reader(&io, err);
    else
        cfg.budget_byte = ctx->common.memory / 8 * 7; /* this stage has no batches */
    if (!rc)
        rc = slu_near_new(&x, &cfg, err);
    if (!rc) {
        const struct slu_flow_cfg flow = {.reader = io.reader,
                                          .ctx = x,
                                          .begin = slu_near_see,
                                          .budget_byte = cfg.budget_byte,
                                          .n_slots = cli_slots(ctx, in_flight / 2)};
        rc = cli_flow_run(ctx, flow, false, &r, err);
    }
    if (!rc)
        rc = report_stage(&io, x, &r, err);
    slu_near_free(x);
    dedup_abort(&io);
    return rc;
}
