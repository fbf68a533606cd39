/* ngrams.c - dedup --ngrams: drops paragraphs and documents whose n-grams occurred
 * before.
 *
 * The stream is read twice: regular files twice from the start, any other input from a
 * temporary copy that pass 1 makes.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/dedup/ngrams/ngrams.h"
#include "tools/dedup/dedup.h"

enum { FLUSH_BYTE = 64 << 10, DEFAULT_N = 13 };

struct job {
    struct dedup_io io; /* io.reader is the reader of pass 1 */
    struct slu_ngrams *g;
    struct slu_sum in;
    /* The sum that pass 2 must read: `in`, or the sum of the copy, in which sources may
     * have other numbers than in the input streams. */
    struct slu_sum again_in;

    /* The copy of pass 1, if the input cannot be read twice. */
    int fd;
    struct slu_writer *copy;

    struct slu_reader *again; /* reader of pass 2 */
    uint32_t *domain;         /* maps a number in `again` to the number in io.reader
                                 plus 1 */
    size_t cap_domain;

    struct slu_out *report; /* NULL: not written */
    struct slu_buf text;
};

/* ---- pass 1 ---- */

static int open_copy(struct job *j, struct slu_err *err)
{
    struct slu_writer_cfg cfg = {.names = slu_reader_names(j->io.reader)};
    struct slu_out *out;
    char path[64];
    int rc = slu_tmpfile(&j->fd, j->io.ctx->common.tmpdir, err);

    if (rc)
        return rc;
    snprintf(path, sizeof path, "/dev/fd/%d", j->fd);
    rc = slu_out_open(&out, path, err);
    return rc ? rc
              : slu_writer_open(&j->copy, out, slu_reader_header(j->io.reader), &cfg,
                                err);
}

static int put_copy(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct job *j = ctx;

    cli_progress(j->io.ctx, slu_reader_bytes(j->io.reader), 0);
    if (!j->copy || slu_writer_put(j->copy, b, err) == SLU_OK)
        return SLU_OK;
    return slu_err_at(err, "%s: no room to wait for the second pass",
                      j->io.ctx->common.tmpdir);
}

static int count(struct job *j, unsigned n_slots, struct slu_err *err)
{
    struct cli_ctx *ctx = j->io.ctx;
    struct stat st;
    int rc = cli_reads_twice(ctx) ? SLU_OK : open_copy(j, err);

    cli_timing(ctx, "count");
    if (!rc)
        rc = slu_ngrams_count(j->g, j->io.reader, n_slots, put_copy, j, &j->in, err);
    j->again_in = j->copy ? *slu_writer_sum(j->copy) : j->in;
    if (rc || !j->copy)
        return rc;
    struct slu_writer *w = j->copy;
    j->copy = NULL;
    rc = slu_writer_close(w, err);
    if (!rc && !fstat(j->fd, &st))
        ctx->spill_bytes += (uint64_t)st.st_size;
    return rc;
}

/* ---- the filter ---- */

static int check_budget(struct job *j, uint64_t share, struct slu_err *err)
{
    const struct cli_common *c = &j->io.ctx->common;
    const struct dedup_opts *o = j->io.ctx->opts;
    uint64_t need, left = c->memory - share;
    int rc = slu_ngrams_size(j->g, &need, err);

    if (rc || need <= left)
        return rc;
    return slu_fail(
        err, SLU_E_LIMIT,
        "%.4g different n-grams at --fp-rate %g need a filter of %lluM, and "
        "-M %lluM leaves %lluM for it; give -M %lluM, a larger --fp-rate, or "
        "fewer documents at a time",
        slu_ngrams_result(j->g)->distinct, o->fp_rate,
        (unsigned long long)((need + 0xfffff) >> 20),
        (unsigned long long)(c->memory >> 20), (unsigned long long)(left >> 20),
        (unsigned long long)((need / 3 * 4 >> 20) + 2));
}

/* ---- pass 2 ---- */

static int open_again(struct job *j, struct slu_err *err)
{
    char path[64];
    const char *one = path;
    struct slu_reader_cfg cfg = {&one, 1, cli_max_seq_tok(j->io.ctx), .masks = true};

    if (j->fd < 0)
        return cli_reopen_reader(j->io.ctx, &j->again, err);
    snprintf(path, sizeof path, "/proc/self/fd/%d", j->fd);
    int rc = slu_reader_open(&j->again, &cfg, err);
    if (!rc)
        rc = cli_drop_metadata(j->io.ctx, j->again, false, err);
    if (!rc)
        cli_expect(j->io.ctx, j->again);
    return rc;
}

/* Maps the domain's number to the number in the writer; each reader numbers domains in
 * the order in which they come. */
static int same_domain(struct job *j, uint32_t *number, struct slu_err *err)
{
    uint32_t was = *number;

    if (was == SLU_NO_DOMAIN)
        return SLU_OK;
    size_t had = j->cap_domain;
    int rc =
        slu_grow(&j->domain, &j->cap_domain, (size_t)was + 1, sizeof *j->domain, err);
    if (rc)
        return rc;
    memset(j->domain + had, 0, (j->cap_domain - had) * sizeof *j->domain);
    if (!j->domain[was]) {
        const char *name = slu_names_domain(slu_reader_names(j->again), was);
        rc = slu_names_domain_number(slu_reader_names(j->io.reader), name, strlen(name),
                                     number, err);
        j->domain[was] = *number + 1;
    }
    *number = j->domain[was] - 1;
    return rc;
}

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct job *j = ctx;
    int rc = SLU_OK;

    for (size_t i = 0; !rc && i < b->n_seg; i++)
        rc = same_domain(j, &b->seg[i].domain, err);
    if (rc)
        return rc;
    j->io.tok += b->n_tok;
    cli_progress(j->io.ctx, slu_reader_bytes(j->again), j->io.tok);
    return slu_writer_pass(j->io.writer, b, err);
}

static int flush_report(struct job *j, struct slu_err *err)
{
    int rc = slu_out_write(j->report, j->text.data, j->text.len, err);

    slu_buf_clear(&j->text);
    return rc;
}

static int put_report(void *ctx, const struct slu_ngrams_dropped *d,
                      struct slu_err *err)
{
    struct job *j = ctx;
    int rc = slu_buf_printf(&j->text, err, "{\"dropped\":{");

    if (!rc)
        rc =
            dedup_put_origin(&j->text, slu_reader_names(j->io.reader), &d->origin, err);
    if (!rc)
        rc = slu_buf_printf(
            &j->text, err,
            "},\"what\":\"%s\",\"tokens\":%llu,\"ngrams\":%llu,\"seen\":%llu}\n",
            d->document ? "document" : "paragraph", (unsigned long long)d->n_tok,
            (unsigned long long)d->n_gram, (unsigned long long)d->n_seen);
    return !rc && j->text.len >= FLUSH_BYTE ? flush_report(j, err) : rc;
}

static int filter(struct job *j, unsigned n_slots, struct slu_err *err)
{
    struct slu_sum in;

    cli_timing(j->io.ctx, "filter");
    int rc = open_again(j, err);
    if (!rc)
        rc = slu_ngrams_filter(j->g, j->again, n_slots, &in, err);
    if (rc)
        return rc;
    if (in.n.tokens != j->again_in.n.tokens ||
        slu_u128_cmp(in.checksum, j->again_in.checksum) ||
        slu_u128_cmp(in.trace_checksum, j->again_in.trace_checksum) ||
        slu_u128_cmp(in.mask_checksum, j->again_in.mask_checksum))
        return slu_fail(err, SLU_E_MISMATCH,
                        "the input changed between the first pass and the second");
    return SLU_OK;
}

static int finish(struct job *j, struct slu_err *err)
{
    struct cli_ctx *ctx = j->io.ctx;
    const struct dedup_opts *o = ctx->opts;
    const struct slu_ngrams_result *r = slu_ngrams_result(j->g);
    struct slu_bloom_fill f = slu_ngrams_fill(j->g);

    cli_stat_u64(ctx, "without_words", r->empty);
    cli_stat_u64(ctx, "ngrams", r->n_gram);
    cli_stat_u64(ctx, "distinct_ngrams_estimate", (uint64_t)(r->distinct + 0.5));
    cli_stat_u64(ctx, "filter_bytes", r->n_block * SLU_BLOOM_BLOCK_BYTE);
    cli_stat_double(ctx, "filter_fill", (double)f.bits_set / (double)f.bits);
    cli_stat_double(ctx, "filter_fp_rate", f.rate);
    if (o->ngrams != SLU_BY_DOCUMENT) {
        cli_stat_u64(ctx, "paragraphs", r->n_paragraph);
        cli_stat_u64(ctx, "paragraphs_cut", r->n_paragraph_dropped);
        cli_stat_u64(ctx, "documents_cut", r->n_cut);
    }
    if (f.rate > o->fp_rate * 1.05)
        cli_warn(
            ctx,
            "the filter mistakes a share of %.3g of new n-grams for n-grams that it "
            "has seen, more than --fp-rate %g: the estimate of the number of "
            "n-grams was too low",
            f.rate, o->fp_rate);
    if (r->n_paragraph_dropped)
        slu_account_drop(&ctx->account, "repeated-paragraph", r->paragraphs);
    if (j->report) {
        int rc = flush_report(j, err);
        struct slu_out *out = j->report;
        if (rc)
            return rc;
        j->report = NULL;
        rc = slu_out_close(out, err);
        if (rc)
            return rc;
    }
    return dedup_close(&j->io, &j->in, "repeated-document", r->documents, err);
}

/* ---- options ---- */

int dedup_parse_overlap(void *opts, const char *value, struct slu_err *err)
{
    struct dedup_opts *o = opts, t = {0};

    /* The notation and the default are those of --threshold. */
    if (dedup_parse_threshold(&t, value, NULL))
        return slu_fail(err, SLU_E_USAGE,
                        "--overlap: '%s' is not a fraction above 0 and up to 1, of at "
                        "most nine digits",
                        value);
    o->overlap_num = t.threshold_num;
    o->overlap_den = t.threshold_den;
    memcpy(o->overlap_text, t.threshold_text, sizeof o->overlap_text);
    o->overlap = t.threshold ? o->overlap_text : NULL;
    return SLU_OK;
}

static int configure(struct job *j, struct slu_ngrams_cfg *cfg, struct slu_err *err)
{
    const struct cli_ctx *ctx = j->io.ctx;
    const struct dedup_opts *o = ctx->opts;
    const struct slu_header *h = slu_reader_header(j->io.reader);
    uint64_t n = dedup_ngram(o, DEFAULT_N);

    *cfg = (struct slu_ngrams_cfg){
        .text = {.unit = (enum slu_unit)o->unit,
                 .n = 1,
                 .max_word = ctx->common.memory / 64,
                 .vocab = slu_names_vocab(slu_reader_names(j->io.reader)),
                 .tok_bytes = h->tok_bytes,
                 .eos = h->eos,
                 .bos = h->bos,
                 .pad = h->pad},
        .by = (enum slu_ngrams_by)o->ngrams,
        .trained = o->trained,
        .n = n,
        .min_words = o->min_words == UINT64_MAX ? n : o->min_words,
        .num = o->overlap_num,
        .den = o->overlap_den,
        .fp_rate = o->fp_rate,
        .n_threads = (unsigned)ctx->common.threads,
        .emit = emit,
        .dropped = j->report ? put_report : NULL,
        .ctx = j,
    };
    if (n > SLU_SHINGLE_MAX_N)
        return slu_fail(err, SLU_E_USAGE, "--ngram: at most %d", SLU_SHINGLE_MAX_N);
    if (!(o->fp_rate >= SLU_BLOOM_MIN_RATE && o->fp_rate <= SLU_BLOOM_MAX_RATE))
        return slu_fail(err, SLU_E_USAGE, "--fp-rate: from %g to %g",
                        SLU_BLOOM_MIN_RATE, SLU_BLOOM_MAX_RATE);
    return SLU_OK;
}

int dedup_ngrams(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    struct job j = {.fd = -1};
    struct slu_ngrams_cfg cfg;
    /* For batches in flight and their n-grams; the filter has the rest. */
    uint64_t share = ctx->common.memory / 4;
    unsigned n_slots = cli_slots(ctx, share / 2);

    if (o->save_index)
        return dedup_against_save(ctx, err);
    int rc = dedup_open(&j.io, ctx, err);
    if (!rc && o->report)
        rc = slu_out_open(&j.report, o->report, err);
    if (!rc)
        rc = configure(&j, &cfg, err);
    if (!rc)
        rc = slu_ngrams_new(&j.g, &cfg, err);
    if (!rc)
        rc = count(&j, n_slots, err);
    if (!rc)
        rc = check_budget(&j, share, err);
    if (!rc)
        rc = filter(&j, n_slots, err);
    if (!rc)
        rc = finish(&j, err);
    slu_ngrams_free(j.g);
    slu_writer_abort(j.copy);
    slu_reader_free(j.again);
    slu_out_abort(j.report);
    slu_buf_release(&j.text);
    free(j.domain);
    if (j.fd >= 0)
        close(j.fd);
    dedup_abort(&j.io);
    return rc;
}
