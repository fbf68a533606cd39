/* decompose.c - cuts documents into sequences of the buckets' lengths. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/decompose/decompose.h"
#include "lib/pack/packer.h"
#include "tools/cli/cli_lengths.h"
#include "tools/decompose/decompose.h"

static const char *const splits[] = {"greedy", "random", NULL};
static const char *const tails[] = {"keep", "drop", NULL};

struct opts {
    uint64_t min, max;
    const char *buckets; /* checked when it was parsed */
    int split, tail;
    bool label_token, plan, accept_mismatch;
    uint64_t min_length, max_length;
    const char *histogram, *mixture;
    uint64_t mixture_tokens;
    struct slu_device device; /* kept here, so that the report can name it */
};

/* The longest bucket; a bin of pack can be as long. */
#define MOST_TOK SLU_MAX_CAPACITY

static int parse_buckets(void *opts, const char *value, struct slu_err *err)
{
    uint64_t length[SLU_MAX_BUCKETS];
    unsigned n;

    ((struct opts *)opts)->buckets = value;
    return cli_parse_buckets(value, MOST_TOK, length, &n, err);
}

#define AT(field) offsetof(struct opts, field)
static const struct cli_opt options[] = {
    {"min", 0, CLI_LENGTH, AT(min), "N", "smallest bucket, a power of two; default 256",
     .least = 1, .most = MOST_TOK},
    {"max", 0, CLI_LENGTH, AT(max), "N", "largest bucket, a power of two; default 8192",
     .least = 1, .most = MOST_TOK},
    {"buckets", 0, CLI_CUSTOM, AT(buckets), "L,L,...",
     "these bucket lengths, instead of --min and --max", .parse = parse_buckets},
    {"split", 0, CLI_CHOICE, AT(split), NULL,
     "cut the longest piece that fits (default), or draw the bucket while\n"
     "twice the largest is left; shorter buckets are drawn more often",
     .choice = splits},
    {"label-token", 0, CLI_FLAG, AT(label_token), NULL,
     "make each sequence one token longer, for the last label, as OpenLM\n"
     "requires"},
    {"tail", 0, CLI_CHOICE, AT(tail), NULL,
     "keep the rest of a document that is shorter than each bucket, for\n"
     "pack (default), or drop it",
     .choice = tails},
    {"min-length", 0, CLI_LENGTH, AT(min_length), "N",
     "drop documents shorter than N tokens"},
    {"max-length", 0, CLI_LENGTH, AT(max_length), "N",
     "drop documents longer than N tokens"},
    {"mixture", 0, CLI_STRING, AT(mixture), "natural|equal|W,W,...",
     "keep the tokens of the buckets in this ratio, shortest bucket first,\n"
     "as many as the scarcest bucket allows; drop the others"},
    {"mixture-tokens", 0, CLI_COUNT, AT(mixture_tokens), "N",
     "with --mixture: keep at most N tokens", .least = 1},
    {"plan", 0, CLI_FLAG, AT(plan), NULL,
     "print the results of this and other choices as a table; write no\n"
     "stream"},
    {"histogram", 0, CLI_OUTPUT, AT(histogram), "FILE",
     "write the lengths of the documents to FILE, as CSV: length,documents",
     .effect = CLI_NOTHING},
    {"accept-mismatch", 0, CLI_FLAG, AT(accept_mismatch), NULL,
     "cut pieces again that were cut for other buckets", .effect = CLI_NOTHING},
    {0},
};

static void defaults(void *p)
{
    struct opts *o = p;
    o->min = 256;
    o->max = 8192;
}

/* The memory for cutting one batch; one for each batch in flight. */
struct desk {
    struct slu_decompose_scratch scratch;
    struct slu_decompose_stat stat;
    uint64_t *len; /* lengths of the batch's documents */
    size_t cap_len;
};

struct job {
    struct cli_ctx *ctx;
    struct slu_reader *reader;
    struct slu_decompose cut;
    struct slu_writer *writer; /* NULL: plan only */
    struct decompose_mix mix;
    unsigned n_desk;
    struct desk *desk;
    struct desk **free_desk; /* the first n_free are free */
    unsigned n_free;
    struct slu_lengths *lengths;       /* NULL: not counted */
    struct slu_tokens_lengths scanned; /* result of a scan that replaces the pass;
                                          row NULL: no scan was made */
    pthread_mutex_t lock;              /* guards free_desk and lengths */
    uint64_t tok;
};

/* ---- buckets ---- */

static bool power_of_two(uint64_t v)
{
    return v && (v & (v - 1)) == 0;
}

static int configure(struct cli_ctx *ctx, struct slu_decompose *d, struct slu_err *err)
{
    const struct opts *o = ctx->opts;
    int rc = SLU_OK;
    *d = (struct slu_decompose){.random = o->split == 1,
                                .label_tokens = o->label_token,
                                .drop_tails = o->tail == 1,
                                .min_len_tok = o->min_length,
                                .max_len_tok = o->max_length,
                                .seed = ctx->common.seed};
    if (o->buckets) {
        if (o->min != 256 || o->max != 8192)
            return slu_fail(err, SLU_E_USAGE,
                            "--buckets cannot be combined with --min or --max");
        rc = cli_parse_buckets(o->buckets, MOST_TOK, d->bucket, &d->n_bucket, err);
    } else {
        if (!power_of_two(o->min) || !power_of_two(o->max) || o->min > o->max)
            return slu_fail(err, SLU_E_USAGE,
                            "--min %llu --max %llu: expected powers of two, the "
                            "smaller one first; give other lengths with --buckets",
                            (unsigned long long)o->min, (unsigned long long)o->max);
        for (uint64_t l = o->min; l <= o->max; l *= 2)
            d->bucket[d->n_bucket++] = l;
    }
    if (!rc && o->max_length && o->min_length > o->max_length)
        return slu_fail(err, SLU_E_USAGE, "--min-length is greater than --max-length");
    return rc ? rc : slu_decompose_init(d, err);
}

/* Sets our buckets in the stream's header, or fails if the stream was cut for
 * others. */
static int check_header(const struct cli_ctx *ctx, const struct slu_decompose *d,
                        struct slu_header *h, struct slu_err *err)
{
    if (h->no_tokens)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has segment rows only, and no tokens to cut");
    bool same = h->n_bucket == d->n_bucket && h->label_tokens == d->label_tokens &&
                memcmp(h->bucket, d->bucket, d->n_bucket * sizeof *d->bucket) == 0;
    if (h->n_bucket && !same && !((const struct opts *)ctx->opts)->accept_mismatch)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "the stream is already cut for buckets %llu to %llu%s; cut the "
            "documents that it was made from, or use --accept-mismatch to cut its "
            "pieces",
            (unsigned long long)h->bucket[0],
            (unsigned long long)h->bucket[h->n_bucket - 1],
            h->label_tokens ? " with label tokens" : "");
    h->n_bucket = d->n_bucket;
    memcpy(h->bucket, d->bucket, d->n_bucket * sizeof *d->bucket);
    h->label_tokens = d->label_tokens;
    return SLU_OK;
}

/* ---- the pass ---- */

static int count_lengths(struct job *j, struct desk *w, const struct slu_batch *b,
                         struct slu_err *err)
{
    size_t n = 0;
    int rc = slu_grow(&w->len, &w->cap_len, b->n_seg, sizeof *w->len, err);
    if (rc)
        return rc;
    for (size_t k = 0; k < b->n_seq; k++) {
        uint64_t i = 0, tok_off = b->seq[k].tok_off;
        struct slu_run run;
        while (slu_run_next(b, &b->seq[k], &i, &tok_off, &run))
            if (run.seg.source != SLU_PADDING)
                w->len[n++] = run.seg.len_tok;
    }
    pthread_mutex_lock(&j->lock);
    rc = slu_lengths_add(j->lengths, w->len, n, err);
    pthread_mutex_unlock(&j->lock);
    return rc;
}

static int work(void *ctx, unsigned worker, struct slu_batch *b, struct slu_err *err)
{
    struct job *j = ctx;
    pthread_mutex_lock(&j->lock);
    struct desk *w = j->free_desk[--j->n_free];
    pthread_mutex_unlock(&j->lock);
    int rc = j->lengths ? count_lengths(j, w, b, err) : SLU_OK;
    if (!rc)
        rc = slu_decompose_batch(&j->cut, b, &w->scratch, &w->stat, err);
    if (rc == SLU_E_LIMIT && w->scratch.too_many) {
        const char *name =
            slu_names_source(slu_reader_names(j->reader), w->scratch.source);
        rc = slu_err_at(err, "%s", name ? name : "a source without a name");
    }
    pthread_mutex_lock(&j->lock);
    j->free_desk[j->n_free++] = w;
    pthread_mutex_unlock(&j->lock);
    (void)worker;
    return rc;
}

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct job *j = ctx;
    j->tok += b->n_tok;
    cli_progress(j->ctx, slu_reader_bytes(j->reader), j->tok);
    if (j->mix.mixing)
        return slu_mixing_add(j->mix.mixing, b, err);
    return j->writer ? slu_writer_pass(j->writer, b, err) : SLU_OK;
}

/* ---- reports ---- */

static int write_plan(struct job *j, const struct slu_decompose_stat *s,
                      const struct slu_length_count *row, size_t n, struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    int rc = slu_decompose_table(&j->cut, s, row, n, &text, err);
    if (!rc)
        rc = slu_mixture_table(&j->mix.ask, &j->cut, s->piece, &text, err);
    cli_erase(j->ctx);
    if (!rc)
        rc = slu_out_whole(j->ctx->common.output, text.data, text.len, err);
    slu_buf_release(&text);
    return rc;
}

static int write_histogram(const char *path, const struct slu_length_count *row,
                           size_t n, struct slu_err *err)
{
    struct slu_buf text = SLU_BUF_INIT;
    int rc = slu_buf_printf(&text, err, "length,documents\n");
    for (size_t i = 0; i < n && !rc; i++)
        rc = slu_buf_printf(&text, err, "%llu,%llu\n",
                            (unsigned long long)row[i].len_tok,
                            (unsigned long long)row[i].count);
    if (!rc)
        rc = slu_out_whole(path, text.data, text.len, err);
    slu_buf_release(&text);
    return rc;
}

/* One bucket: the sequences written and, with a mixture, the sequences dropped. */
static int report_bucket(const struct job *j, const struct slu_decompose_stat *s,
                         unsigned i, struct slu_buf *b)
{
    int rc = slu_buf_printf(
        b, NULL, "%s{\"length\": %llu, \"sequences\": %llu, \"tokens\": %llu",
        i ? ", " : "", (unsigned long long)j->cut.bucket[i],
        (unsigned long long)s->piece[i],
        (unsigned long long)slu_decompose_tokens(&j->cut, s, i));
    if (!rc && decompose_mix_waits(&j->mix))
        rc = slu_buf_printf(b, NULL,
                            ", \"dropped\": {\"sequences\": %llu, \"tokens\": %llu}",
                            (unsigned long long)j->mix.dropped_seq[i],
                            (unsigned long long)j->mix.dropped_tok[i]);
    return rc ? rc : slu_buf_append(b, "}", 1, NULL);
}

static void report(struct job *j, const struct slu_decompose_stat *s)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_buf_printf(&b, NULL, "[");
    for (unsigned i = 0; i < j->cut.n_bucket && !rc; i++)
        rc = report_bucket(j, s, i, &b);
    if (!rc && !slu_buf_append(&b, "]", 2, NULL))
        cli_stat_json(j->ctx, "buckets", (const char *)b.data);
    slu_buf_release(&b);
    cli_stat_u64(j->ctx, "tails", s->tails);
    cli_stat_u64(j->ctx, "tail_tokens", s->tail_tok);
    if (j->mix.settled && j->mix.quota.scarcest >= 0)
        cli_stat_u64(j->ctx, "scarcest", j->cut.bucket[j->mix.quota.scarcest]);
    cli_stat_double(j->ctx, "mean_length", slu_decompose_mean_length(&j->cut, s));
    cli_stat_double(j->ctx, "mean_context", slu_decompose_mean_context(&j->cut, s));
}

static void close_desks(struct job *j)
{
    for (unsigned i = 0; j->desk && i < j->n_desk; i++) {
        slu_decompose_scratch_release(&j->desk[i].scratch);
        free(j->desk[i].len);
    }
    free(j->desk);
    free(j->free_desk);
    j->desk = NULL;
    j->free_desk = NULL;
}

static int finish(struct job *j, const struct slu_sum *in, struct slu_err *err)
{
    const struct opts *o = j->ctx->opts;
    struct slu_decompose_stat s = {0};
    struct slu_length_count *row = NULL;
    size_t n = 0;
    for (unsigned i = 0; i < j->n_desk; i++)
        slu_decompose_stat_add(&s, &j->desk[i].stat);
    close_desks(j);
    for (size_t i = 0; i < j->scanned.n_row; i++)
        slu_decompose_count(&j->cut, j->scanned.row[i].len_tok, j->scanned.row[i].count,
                            &s);
    int rc = SLU_OK;
    if (j->scanned.row) {
        row = j->scanned.row;
        n = j->scanned.n_row;
        j->scanned.row = NULL;
    } else if (j->lengths) {
        rc = slu_lengths_rows(j->lengths, &row, &n, err);
    }
    if (!rc && o->plan)
        rc = write_plan(j, &s, row, n, err);
    if (!rc && j->reader)
        rc = decompose_mix_finish(&j->mix, j->ctx, &j->cut, &s, j->writer,
                                  slu_reader_header(j->reader), err);
    if (!rc && o->histogram) /* if the mixture failed, no histogram is written */
        rc = write_histogram(o->histogram, row, n, err);
    free(row);
    if (rc)
        return rc;
    report(j, &s);
    cli_account_in(j->ctx, in);
    if (o->plan) {
        slu_account_drop(&j->ctx->account, "plan-only", in->n);
        return SLU_OK;
    }
    slu_decompose_account(&s, &j->ctx->account);
    if (j->mix.dropped.sequences)
        slu_account_drop(&j->ctx->account, "mixture", j->mix.dropped);
    struct slu_writer *w = j->writer;
    j->writer = NULL;
    return cli_close_writer(j->ctx, w, err);
}

static int choose_device(struct cli_ctx *ctx, bool wanted, struct slu_err *err)
{
    struct opts *o = ctx->opts;
    enum slu_device_kind kind = (enum slu_device_kind)ctx->common.device;
    if (kind == SLU_DEVICE_AUTO && !wanted)
        kind = SLU_DEVICE_CPU; /* starting a device would take longer than the work */
    int rc = slu_device_choose(&o->device, kind, ctx->common.device_ordinal, err);
    o->device.warn = cli_warn_text;
    o->device.warn_arg = ctx;
    o->device.n_threads = (unsigned)ctx->common.threads;
    ctx->device = &o->device;
    return rc;
}

/* Opens as many desks as memory allows batches in flight. A batch becomes rows of
 * pieces, in two copies while it is cut, so short buckets allow only few batches, and
 * very short ones only one. */
static int open_desks(struct job *j, struct slu_err *err)
{
    /* Sequences that wait for a mixture may take a quarter of -M, measured by their
     * rows. */
    bool waits = decompose_mix_waits(&j->mix) && j->writer;
    uint64_t memory = j->ctx->common.memory, min = j->cut.bucket[0];
    uint64_t row_byte = 2 * (sizeof(struct slu_seq) + sizeof(struct slu_seg));
    uint64_t rows_byte = memory / 4 * (waits ? 2 : 3) + (32 << 20);
    uint64_t most = SLU_FRAME_TOKENS / min + SLU_FRAME_SEGS;
    j->n_desk = cli_slots(j->ctx, memory / 4);
    while (j->n_desk > 1 && rows_byte / row_byte / j->n_desk < most)
        j->n_desk--;
    j->cut.max_rows = rows_byte / row_byte / j->n_desk;
    j->desk = calloc(j->n_desk, sizeof *j->desk);
    j->free_desk = calloc(j->n_desk, sizeof *j->free_desk);
    if (!j->desk || !j->free_desk)
        return slu_fail_nomem(err, j->n_desk * sizeof *j->desk);
    while (j->n_free < j->n_desk) {
        j->free_desk[j->n_free] = &j->desk[j->n_free];
        j->n_free++;
    }
    return SLU_OK;
}

/* For files of ids, a plan needs only the lengths of the documents, if these alone
 * determine the cuts. *done: the scan replaced the pass. */
static int plan_by_scan(struct job *j, bool *done, struct slu_err *err)
{
    struct opts *o = j->ctx->opts;
    *done = false;
    if (!o->plan || j->cut.random || decompose_mix_waits(&j->mix))
        return SLU_OK;
    int rc = cli_scan_lengths(j->ctx, &o->device, done, &j->scanned, err);
    if (rc || !*done)
        return rc;
    const struct slu_tokens_lengths *l = &j->scanned;
    struct slu_sum in = {.n = {l->documents, l->documents, l->tokens}};
    cli_timing(j->ctx, "plan");
    rc = finish(j, &in, err);
    free(j->scanned.row);
    return rc;
}

static int check_part(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct opts *o = ctx->opts;
    if (o->mixture || o->mixture_tokens)
        return slu_fail(err, SLU_E_USAGE,
                        "--part: --mixture asks for the scarcest bucket of all parts; "
                        "run it as one, on the parts' streams");
    return SLU_OK;
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {work, emit};
    struct opts *o = ctx->opts;
    struct job j = {.ctx = ctx, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct slu_reader *r = NULL;
    struct slu_header h;
    struct slu_sum in = {0};
    struct slu_mixing_cfg mixing = {ctx->common.seed, &h, ctx->common.memory / 4,
                                    ctx->common.tmpdir};
    bool lengths = o->plan || o->histogram;
    uint64_t left_byte = ctx->common.memory / 8;

    slu_header_init(&h);
    int rc = configure(ctx, &j.cut, err);
    if (!rc)
        rc = decompose_mix_init(&j.mix, o->mixture, o->mixture_tokens, &j.cut, err);
    if (!rc)
        rc = choose_device(ctx, lengths, err);
    ctx->looks = o->plan;
    bool done = false;
    if (!rc)
        rc = plan_by_scan(&j, &done, err);
    if (rc || done) {
        slu_header_release(&h);
        return rc;
    }
    if (lengths)
        rc = slu_lengths_new(&j.lengths, &o->device, &left_byte, err);
    if (!rc)
        rc = cli_open_reader(ctx, &r, err);
    if (!rc)
        rc = slu_header_copy(&h, slu_reader_header(r), err);
    if (!rc)
        rc = check_header(ctx, &j.cut, &h, err);
    h.inner_padding = false; /* none is left */
    if (!rc && h.masks && !o->plan)
        cli_warn(ctx, "the stream has masks, as dialogues have, and decompose cuts "
                      "documents: a piece lacks the text before it; pack --long drop "
                      "alone keeps documents whole");
    if (!rc && !o->plan)
        rc = cli_open_writer(ctx, &j.writer, &h, slu_reader_names(r), false, err);
    if (!rc)
        rc = open_desks(&j, err);
    if (!rc && j.writer && decompose_mix_waits(&j.mix))
        rc = slu_mixing_new(&j.mix.mixing, &mixing, err);
    j.reader = r;
    if (!rc)
        rc = slu_stream_run(r, &ops, &j, (unsigned)ctx->common.threads, j.n_desk, &in,
                            err);
    if (!rc)
        rc = finish(&j, &in, err);
    slu_writer_abort(j.writer);
    slu_mixing_free(j.mix.mixing);
    slu_reader_free(r);
    slu_header_release(&h);
    slu_lengths_free(j.lengths);
    close_desks(&j);
    return rc;
}

const struct slu_tool decompose_tool = {
    .name = "decompose",
    .synopsis = "[--min N] [--max N | --buckets L,L,...] [--split greedy|random]\n"
                "[--label-token] [--tail keep|drop] [--min-length N] [--max-length N]\n"
                "[--mixture natural|equal|W,W,...] [--mixture-tokens N]\n"
                "[--plan] [--histogram FILE] [-o FILE] [STREAM ...]",
    .summary = "Cuts documents into sequences of power-of-two lengths, each from one "
               "document.",
    .opt = options,
    .opts_size = sizeof(struct opts),
    .defaults = defaults,
    .reads_stream = true,
    .masks = true,
    .inner_padding = true,
    .memory_floor = 32 << 20,
    .check_part = check_part,
    .uses_device = true,
    .examples = "  tokenize corpus.jsonl | decompose --plan\n"
                "  decompose --min 128 --max 2048 --label-token docs.tks -o pieces.tks",
    .run = run,
};
