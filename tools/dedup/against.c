/* against.c - dedup --ngrams --save-index: writes an index of the n-grams of evaluation
 * items; dedup --against such an index: drops documents, or paragraphs, that share an
 * n-gram. */
#include <stdlib.h>
#include <string.h>

#include "lib/dedup/against/against.h"
#include "lib/base/json_write.h"
#include "lib/flow/workfile.h"
#include "tools/dedup/dedup.h"

enum { FLUSH_BYTE = 64 << 10, DEFAULT_N = 13, MAX_WINDOW = 1 << 30 };

static struct slu_shingler_cfg text_of(const struct dedup_io *io, enum slu_unit unit)
{
    const struct slu_header *h = slu_reader_header(io->reader);

    return (struct slu_shingler_cfg){.unit = unit,
                                     .n = 1,
                                     .max_word = io->ctx->common.memory / 64,
                                     .vocab =
                                         slu_names_vocab(slu_reader_names(io->reader)),
                                     .tok_bytes = h->tok_bytes,
                                     .eos = h->eos,
                                     .bos = h->bos,
                                     .pad = h->pad};
}

/* ---- writing an index ---- */

static int check_save(const struct dedup_opts *o, struct slu_err *err)
{
    if (o->report)
        return slu_fail(err, SLU_E_USAGE,
                        "--report: nothing is dropped where --ngrams saves an index");
    /* An option whose value equals its default has no effect, and is accepted. */
    const char *vain = o->ngrams != 0 ? "--ngrams=paragraph and =document"
                       : o->overlap   ? "--overlap"
                       : o->fp_rate != DEDUP_FP_RATE ? "--fp-rate"
                       : o->trained                  ? "--on trained"
                                                     : NULL;
    if (vain)
        return slu_fail(err, SLU_E_USAGE,
                        "%s: nothing is dropped where --ngrams saves an index", vain);
    if (!o->ngram || dedup_ngram(o, DEFAULT_N) > SLU_SHINGLE_MAX_N)
        return slu_fail(err, SLU_E_USAGE, "--ngram N: for an index N is 1 to %d",
                        SLU_SHINGLE_MAX_N);
    return SLU_OK;
}

int dedup_against_save(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    uint64_t share = ctx->common.memory / 4, n = dedup_ngram(o, DEFAULT_N), with = 0;
    struct dedup_io io = {0};
    struct slu_against_cfg cfg = {
        .unit = (enum slu_unit)o->unit,
        .n = n,
        .min_words = o->min_words == UINT64_MAX ? n : o->min_words,
        .budget_byte = ctx->common.memory - share,
    };
    struct slu_against_out *out = NULL;
    struct slu_sum in;

    int rc = check_save(o, err);
    if (!rc)
        rc = dedup_open(&io, ctx, err);
    if (!rc)
        rc = slu_against_create(&out, &cfg, err);
    if (!rc) {
        struct slu_shingler_cfg text = text_of(&io, cfg.unit);
        rc = slu_against_build(out, io.reader, &text, (unsigned)ctx->common.threads,
                               cli_slots(ctx, share / 2), dedup_emit, &io, &in, err);
    }
    if (!rc) {
        uint64_t items = slu_against_items(out, &with);
        cli_stat_u64(ctx, "items", items);
        cli_stat_u64(ctx, "items_with_ngrams", with);
        if (with < items)
            cli_warn(
                ctx,
                "items with fewer than %llu words, and so no n-gram: %llu of %llu; "
                "see --min-words",
                (unsigned long long)cfg.min_words, (unsigned long long)(items - with),
                (unsigned long long)items);
        rc = slu_against_close(out, o->save_index,
                               slu_reader_header(io.reader)->fingerprint, err);
        out = NULL;
    }
    if (!rc)
        rc = dedup_close(&io, &in, "contaminated", (struct slu_count){0, 0, 0}, err);
    slu_against_abort(out);
    dedup_abort(&io);
    return rc;
}

/* ---- comparing with an index ---- */

static int put_string(struct slu_buf *text, const char *key, const char *s, size_t n,
                      struct slu_err *err)
{
    int rc = slu_buf_printf(text, err, "\"%s\":", key);

    return rc ? rc : slu_json_put_string(text, s, n, err);
}

static int put_item(struct slu_buf *text, const struct slu_against_item *t,
                    struct slu_err *err)
{
    int rc = slu_buf_printf(text, err, "{\"item\":{");

    if (!rc)
        rc = put_string(text, "source", t->source, t->n_source, err);
    if (!rc)
        rc = slu_buf_printf(text, err,
                            ",\"source_number\":%llu,\"document\":%llu,\"offset\":%llu",
                            (unsigned long long)t->origin.source,
                            (unsigned long long)t->origin.document,
                            (unsigned long long)t->origin.offset);
    if (!rc && t->n_id) {
        rc = slu_buf_printf(text, err, ",");
        rc = rc ? rc : put_string(text, "id", t->id, t->n_id, err);
    }
    if (!rc && t->n_domain) {
        rc = slu_buf_printf(text, err, ",");
        rc = rc ? rc : put_string(text, "domain", t->domain, t->n_domain, err);
    }
    /* Six digits, rounded half up, computed in integers. */
    unsigned long long m =
        t->n_gram ? (unsigned long long)(((unsigned __int128)t->n_matched * 2000000 +
                                          t->n_gram) /
                                         ((unsigned __int128)t->n_gram * 2))
                  : 0;
    return rc ? rc
              : slu_buf_printf(text, err,
                               "},\"ngrams\":%llu,\"matched\":%llu,\"covered\":%llu."
                               "%06llu,\"documents\":%llu}\n",
                               (unsigned long long)t->n_gram,
                               (unsigned long long)t->n_matched, m / 1000000,
                               m % 1000000, (unsigned long long)t->n_document);
}

/* Writes a line for each item, in the index's order. */
static int write_report(const struct slu_against *c, struct slu_out **report,
                        struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    struct slu_out *out = *report;
    uint64_t n = slu_against_n_item(c);
    int rc = SLU_OK;

    for (uint64_t i = 0; !rc && i < n; i++) {
        struct slu_against_item item = slu_against_item(c, i);
        rc = put_item(&text, &item, err);
        if (!rc && (text.len >= FLUSH_BYTE || i + 1 == n)) {
            rc = slu_out_write(out, text.data, text.len, err);
            slu_buf_clear(&text);
        }
    }
    slu_buf_release(&text);
    if (rc)
        return rc;
    *report = NULL;
    return slu_out_close(out, err);
}

static int finish(struct dedup_io *io, struct slu_against *c,
                  const struct slu_against_run *run, struct slu_out **report,
                  const struct slu_sum *in, struct slu_err *err)
{
    struct cli_ctx *ctx = io->ctx;
    uint64_t n_item, n_gram = slu_against_matched(c, &n_item);

    cli_stat_u64(ctx, "items", slu_against_n_item(c));
    cli_stat_u64(ctx, "items_matched", n_item);
    cli_stat_u64(ctx, "index_ngrams", slu_against_n_gram(c));
    cli_stat_u64(ctx, "ngrams_matched", n_gram);
    cli_stat_u64(ctx, "documents_matched", run->n_match);
    if (run->cut)
        cli_stat_u64(ctx, "paragraphs_cut", run->n_paragraph);
    if (run->n_paragraph)
        slu_account_drop(&ctx->account, "contaminated-paragraph", run->paragraphs);
    int rc = *report ? write_report(c, report, err) : SLU_OK;
    return rc ? rc : dedup_close(io, in, "contaminated", run->documents, err);
}

int dedup_decontaminate(struct cli_ctx *ctx, struct slu_workfile *index,
                        struct slu_err *err)
{
    const struct dedup_opts *o = ctx->opts;
    uint64_t share = ctx->common.memory / 4;
    struct dedup_io io = {0};
    struct slu_against *c = NULL;
    struct slu_out *report = NULL;
    struct slu_sum in;

    if (o->window > MAX_WINDOW || (o->window && !o->cut))
        return slu_fail(err, SLU_E_USAGE,
                        o->cut ? "--window: at most 2^30 words"
                               : "--window needs --cut");
    int rc = dedup_open(&io, ctx, err);
    if (!rc && o->report)
        rc = slu_out_open(&report, o->report, err);
    if (!rc)
        rc = slu_against_open(&c, index, slu_reader_header(io.reader)->fingerprint,
                              ctx->common.memory - share, err);
    if (!rc) {
        struct slu_against_run run = {.text = text_of(&io, slu_against_unit(c)),
                                      .cut = o->cut,
                                      .window = o->window,
                                      .n_threads = (unsigned)ctx->common.threads,
                                      .n_slots = cli_slots(ctx, share / 2),
                                      .emit = dedup_emit,
                                      .ctx = &io};
        rc = slu_against_filter(c, io.reader, &run, &in, err);
        if (!rc)
            rc = finish(&io, c, &run, &report, &in, err);
    }
    slu_against_free(c);
    slu_out_abort(report);
    dedup_abort(&io);
    return rc;
}

int dedup_against(struct cli_ctx *ctx, struct slu_err *err)
{
    struct dedup_opts *o = ctx->opts;
    struct cli_file *file = o->against.item;
    struct slu_workfile *f = NULL;
    int rc = slu_workfile_open(&f, file->path, SLU_WORKFILE_INDEX, err);

    if (rc)
        return rc;
    slu_u128_hex(slu_workfile_id(f), file->id);
    if (!slu_against_is(f))
        rc = slu_fail(err, SLU_E_MISMATCH,
                      "%s: not an index of n-grams; with an index of --near or --exact "
                      "name that mode too",
                      file->path);
    else if (o->against.n > 1)
        rc = slu_fail(err, SLU_E_USAGE,
                      "--against: several indexes of n-grams are several passes; run "
                      "them one after another in a pipe");
    else
        rc = dedup_decontaminate(ctx, f, err);
    slu_workfile_free(f);
    return rc;
}
