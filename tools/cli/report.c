#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/thread.h"
#include "lib/stream/account_json.h"
#include "tools/cli/cli_private.h"
#include "tools/cli/cli_record.h"

enum { MAX_TIMINGS = 16 };

struct cli_report {
    double began, ended;   /* ended 0: not yet */
    struct slu_out *stats; /* opened at the start, so that a bad name fails at once */
    struct {
        const char *name;
        double seconds;
        char device[64]; /* "": the program named no device */
    } timing[MAX_TIMINGS];
    unsigned n_timing;
    int timing_now; /* index of the running clock; -1: no clock runs */
    double timing_began;
    struct slu_buf extra; /* `, "key": json` … */
    bool draw;
    _Atomic bool drawn;
    atomic_flag drawing;
    _Atomic double next_draw;
    _Atomic uint64_t bytes, tokens;
    /* cli_pass */
    const char *_Atomic pass;
    _Atomic double pass_began;
    _Atomic uint64_t pass_byte, pass_tok;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Where messages go. */
static FILE *said(const struct cli_ctx *ctx)
{
    return ctx->messages ? ctx->messages : stderr;
}

int cli_report_open(struct cli_ctx *ctx, struct slu_err *err)
{
    struct cli_report *r = calloc(1, sizeof *r);
    struct stat st;
    if (!r)
        return slu_fail_nomem(err, sizeof *r);
    r->began = now();
    r->timing_now = -1;
    atomic_flag_clear(&r->drawing);
    /* In a pipe of programs only the last draws progress, for all of them. */
    bool last = (ctx->line || !ctx->out) &&
                (fstat(STDOUT_FILENO, &st) || !S_ISFIFO(st.st_mode));
    r->draw = ctx->common.progress == 1 ||
              (ctx->common.progress == 0 && isatty(fileno(said(ctx))) && last &&
               !ctx->common.quiet);
    ctx->report = r;
    if (!ctx->common.stats)
        return SLU_OK;
    int rc = slu_out_open(&r->stats, ctx->common.stats, err);
    return rc ? rc : cli_record_begin(ctx, err);
}

void cli_report_free(struct cli_ctx *ctx)
{
    if (ctx->report) {
        slu_buf_release(&ctx->report->extra);
        slu_out_abort(ctx->report->stats);
    }
    free(ctx->report);
    ctx->report = NULL;
    cli_record_free(ctx);
}

/* ---- stages and figures ---- */

static void end_timing(struct cli_report *r)
{
    if (r->timing_now >= 0)
        r->timing[r->timing_now].seconds += now() - r->timing_began;
    r->timing_now = -1;
}

void cli_timing(struct cli_ctx *ctx, const char *name)
{
    struct cli_report *r = ctx->report;
    end_timing(r);
    unsigned i = 0;
    while (i < r->n_timing && strcmp(r->timing[i].name, name))
        i++;
    if (i == MAX_TIMINGS)
        return;
    if (i == r->n_timing)
        r->timing[r->n_timing++].name = name;
    r->timing_now = (int)i;
    r->timing_began = now();
}

void cli_timing_on(struct cli_ctx *ctx, const char *name, const char *device)
{
    struct cli_report *r = ctx->report;
    cli_timing(ctx, name);
    if (r->timing_now >= 0)
        snprintf(r->timing[r->timing_now].device, sizeof r->timing->device, "%s",
                 device);
}

void cli_stat_json(struct cli_ctx *ctx, const char *key, const char *json)
{
    /* If memory runs out, a figure is missing from the report; nothing else is lost.
     */
    (void)!slu_buf_printf(&ctx->report->extra, NULL, ",\n  \"%s\": %s", key, json);
}

void cli_stat_u64(struct cli_ctx *ctx, const char *key, uint64_t v)
{
    char s[32];
    snprintf(s, sizeof s, "%llu", (unsigned long long)v);
    cli_stat_json(ctx, key, s);
}

void cli_stat_double(struct cli_ctx *ctx, const char *key, double v)
{
    char s[64];
    snprintf(s, sizeof s, v == v && v - v == 0 ? "%.9g" : "null", v);
    cli_stat_json(ctx, key, s);
}

/* ---- progress and messages ---- */

static void scaled(double v, const char *unit, char *out, size_t n)
{
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P"};
    int i = 0;
    while (v >= 1000 && i < 5) {
        v /= 1000;
        i++;
    }
    snprintf(out, n, v >= 100 || i == 0 ? "%.0f %s%s" : "%.1f %s%s", v, prefix[i],
             unit);
}

void cli_erase(struct cli_ctx *ctx)
{
    struct cli_report *r = ctx->report;
    _Atomic bool *drawn = ctx->line ? &ctx->line->drawn : r ? &r->drawn : NULL;

    if (drawn && atomic_exchange(drawn, false))
        fputs(isatty(fileno(said(ctx))) ? "\r\033[K" : "\n", said(ctx));
}

bool cli_draws(const struct cli_ctx *ctx)
{
    return ctx->report->draw;
}

void cli_pass(struct cli_ctx *ctx, const char *what, uint64_t n_byte, uint64_t n_tok)
{
    struct cli_report *r = ctx->report;
    r->pass = what;
    r->pass_began = now();
    r->pass_byte = n_byte;
    r->pass_tok = n_tok;
    r->next_draw = 0; /* a short pass is seen, too */
}

/* The share of the pass that is done; -1: its size is not known, or what was read once is
 * read again. */
static double share_of(const struct cli_report *r)
{
    const double done = r->pass_byte ? (double)r->bytes : (double)r->tokens,
                 all = r->pass_byte ? (double)r->pass_byte : (double)r->pass_tok;

    return all > 0 && done <= all ? done / all : -1;
}

/* Writes the share, and the time that the rest takes if it is as fast: "37 %, 1:05:02
 * left, "; nothing if the share is not known. */
static void put_share(const struct cli_report *r, double share, double t, char *out,
                      size_t n)
{
    out[0] = 0;
    if (share < 0)
        return;
    int at = snprintf(out, n, "%.0f %%, ", 100 * share);
    if (share > 0 && t - r->pass_began >= 2) {
        uint64_t s = (uint64_t)((t - r->pass_began) * (1 - share) / share + 0.5);
        s < 3600 ? snprintf(out + at, n - (size_t)at, "%u:%02u left, ",
                            (unsigned)(s / 60), (unsigned)(s % 60))
                 : snprintf(out + at, n - (size_t)at, "%llu:%02u:%02u left, ",
                            (unsigned long long)(s / 3600), (unsigned)(s / 60 % 60),
                            (unsigned)(s % 60));
    }
}

void cli_progress(struct cli_ctx *ctx, uint64_t bytes, uint64_t tokens)
{
    struct cli_report *r = ctx->report;
    r->bytes = bytes;
    r->tokens = tokens;
    const double done = share_of(r);
    struct cli_line *l = ctx->line;
    if (l && !ctx->in)
        l->read = done;
    double t;
    if (!r->draw || (t = now()) < r->next_draw ||
        (l && l->drew > ctx && t < l->when + 1) ||
        atomic_flag_test_and_set(&r->drawing))
        return;
    char share[64], a[32], b[32], c[32];
    const double began = r->pass ? r->pass_began : r->began;
    put_share(r, done, t, share, sizeof share);
    if (done < 0 && l && l->read > 0 && l->read < 1)
        snprintf(share, sizeof share, "%.0f %% read, ", 100 * l->read);
    /* Tokens, if there are any: of bytes alone the speed is that of bytes. */
    const bool of_bytes = bytes && !tokens;
    const double n = of_bytes ? (double)bytes : (double)tokens;
    scaled((double)bytes, "B, ", a, sizeof a);
    scaled(n, of_bytes ? "B" : "tok", b, sizeof b);
    scaled(t > began ? n / (t - began) : 0, of_bytes ? "B/s" : "tok/s", c, sizeof c);
    fprintf(said(ctx), "\r%s: %s%s%s%s%s, %s, %.0f s\033[K", ctx->tool->name,
            r->pass ? r->pass : "", r->pass ? " " : "", share, bytes && tokens ? a : "",
            b, c, t - r->began);
    fflush(said(ctx));
    r->drawn = true;
    if (l) {
        l->drew = ctx;
        l->when = t;
        l->drawn = true;
    }
    r->next_draw = t + 0.2;
    atomic_flag_clear(&r->drawing);
}

void cli_progress_of(void *ctx, uint64_t n_byte, uint64_t of_byte)
{
    struct cli_ctx *c = ctx;

    if (c->report->pass_byte != of_byte)
        cli_pass(c, c->report->pass, of_byte, 0);
    cli_progress(c, n_byte, 0);
}

static void say(struct cli_ctx *ctx, const char *fmt, va_list ap)
{
    char line[2048];
    vsnprintf(line, sizeof line, fmt, ap);
    slu_printable(line);
    cli_erase(ctx);
    fprintf(said(ctx), "%s: %s\n", ctx->tool->name, line);
}

/* What the programs' options can do about an error of the library. A text that begins
 * with "or" goes on with the message's own advice. */
static const char *const ADVICE[SLU_N_ADVICE] = {
    [SLU_ADVISE_MEMORY] = "give more memory with -M",
    [SLU_ADVISE_MEMORY_OR_MIX] = "give more memory with -M, or use --mix-domains",
    [SLU_ADVISE_MEMORY_OR_ORDER] = "give more memory with -M, or use --order plan",
    [SLU_ADVISE_MEMORY_OR_SEGMENTS] = "give more memory with -M, or use --max-segments",
    [SLU_ADVISE_MEMORY_OR_SHARD_BYTES] =
        "use a smaller --shard-size, or give more memory with -M",
    [SLU_ADVISE_MEMORY_OR_SHARDS] =
        "use a smaller --shard-sequences or --shard-size, or give more memory with -M",
    [SLU_ADVISE_ACCEPT_MISMATCH] = "then use --accept-mismatch",
    [SLU_ADVISE_BALANCE] =
        "give more memory with -M, or fewer steps with --balance-window",
    [SLU_ADVISE_BATCH_TOKENS] = "give --batch-tokens N",
    [SLU_ADVISE_BUCKETS] = "choose others with 'decompose --buckets'",
    [SLU_ADVISE_COLUMN] = "name one with --column",
    [SLU_ADVISE_COLUMNS] =
        "name columns with --field, --id-field, --domain-field, --score-field and "
        "--spans-field",
    [SLU_ADVISE_DEVICE] = "use --device cpu",
    [SLU_ADVISE_DS_STDIN] = "or pipe its ids with --input-format npy",
    [SLU_ADVISE_EOS_ID] = "name the id that ends each document with --eos-id N",
    [SLU_ADVISE_EXCLUDE] = "give --exclude other globs, or leave it out",
    [SLU_ADVISE_FIELD_DOMAIN] =
        "name another field with --domain-field, give such records a domain with "
        "--domain-default, or go on without them with --on-error skip",
    [SLU_ADVISE_FIELD_ID] =
        "name another field with --id-field, leave that option out, or go on without "
        "such records with --on-error skip",
    [SLU_ADVISE_FIELD_SPANS] = "name another field with --spans-field, or go on "
                               "without such records with --on-error skip",
    [SLU_ADVISE_FIELD_TEXT] = "name the field with --field, or go on without such "
                              "records with --on-missing skip",
    [SLU_ADVISE_FORCE] = "or use -f to write it anew",
    [SLU_ADVISE_IDS] =
        "leave out --eos-id, --vocab-size and --column, or say what the file is with "
        "--input-format or --token-bytes",
    [SLU_ADVISE_FORMAT_TEXT] = "or read it as one text with --format text",
    [SLU_ADVISE_INCLUDE] = "give --include other globs, or leave it out",
    [SLU_ADVISE_INDEX] =
        "make one of the other texts' stream with 'dedup --save-index FILE', with "
        "--ngrams for test items, and with --near or --exact for earlier data",
    [SLU_ADVISE_INPUT_FORMAT] = "or say with --input-format which form of ids it is",
    [SLU_ADVISE_LABEL_TOKEN] = "use 'decompose --label-token', or --accept-mismatch to "
                               "write the sequences as they are",
    [SLU_ADVISE_MAX_SEGMENTS] =
        "use a larger --max-segments, or 'pack --max-segments' with the same number",
    [SLU_ADVISE_MAX_TOKENS] = "give --max-tokens N",
    [SLU_ADVISE_MEMBERS] = "choose members with --include or --exclude; samples of "
                           "WebDataset are read with "
                           "--format wds",
    [SLU_ADVISE_MIX] = "change --max-epochs, --max-tokens or a weight",
    [SLU_ADVISE_NO_LABEL_TOKEN] = "use 'decompose' without --label-token, or "
                                  "--accept-mismatch to write them as they are",
    [SLU_ADVISE_NO_PATTERN] = "leave --pattern out",
    [SLU_ADVISE_OLMO_BOS] = "use 'tokenize --bos', or --accept-mismatch and "
                            "bos_token_id=None in OLMo-core's "
                            "TokenizerConfig",
    [SLU_ADVISE_OLMO_EOS] =
        "use 'tokenize' without --no-eos, or --eos-id for files of ids; or use "
        "--accept-mismatch, and let OLMo-core read the rows of .csv.gz (shuffle(1))",
    [SLU_ADVISE_OLMO_ROWS] = "use --accept-mismatch, and let OLMo-core read the rows "
                             "of .csv.gz (shuffle(1))",
    [SLU_ADVISE_OLMO_TOKENIZER] = "give --olmo-tokenizer VOCABULARY,EOS,PAD",
    [SLU_ADVISE_ON_ERROR] = "use --on-error skip to go on without it",
    [SLU_ADVISE_ON_ERROR_REPLACE] =
        "use --on-error replace for U+FFFD in its place, or skip to go on without it",
    [SLU_ADVISE_ONE_PAD_ID] =
        "give each 'forget' the --pad-id that padding has already",
    [SLU_ADVISE_PAD_ID] = "name another id with 'forget --pad-id N'",
    [SLU_ADVISE_PARAGRAPHS] = "tokenize without --no-vocab, or compare documents",
    [SLU_ADVISE_PATTERN] = "name the split with --pattern",
    [SLU_ADVISE_REPLACE_SET] =
        "or use --replace-set to replace the set in it (its other files stay)",
    [SLU_ADVISE_SHARD_SEQUENCES] = "use a smaller --shard-sequences or --shard-size",
    [SLU_ADVISE_SHARD_BYTES] = "give another --shard-size",
    [SLU_ADVISE_DOCUMENTS] = "or write whole documents with --documents",
    [SLU_ADVISE_TERMINAL] =
        "give -o FILE or --json FILE, or -f to write it all the same",
    [SLU_ADVISE_TMPDIR] =
        "free some, choose another folder with --tmpdir, or give more "
        "memory with -M",
    [SLU_ADVISE_TOKEN_BYTES] = "use --token-bytes N to set the width",
    [SLU_ADVISE_VOCAB_SIZE] = "use --vocab-size N to set the size",
    [SLU_ADVISE_WIDTH_IN_HEADER] = "leave --token-bytes out",
    [SLU_ADVISE_WORDS] = "use --unit token, or tokenize without --no-vocab",
    [SLU_ADVISE_DROP_FIELD] = "leave it out with --drop-metadata",
    [SLU_ADVISE_DROP_FIELDS] = "leave some out with --drop-metadata",
};

/* Advice on an option, and what a program says that does not have it; NULL: nothing. */
static const struct {
    const char *option, *without;
} NEEDS[SLU_N_ADVICE] = {
    [SLU_ADVISE_REPLACE_SET] = {"replace-set", "or remove the folder"},
    [SLU_ADVISE_DROP_FIELD] = {"drop-metadata", NULL},
    [SLU_ADVISE_DROP_FIELDS] = {"drop-metadata", "name fewer with --metadata"},
};

static bool has_option(const struct slu_tool *t, const char *name)
{
    for (const struct cli_opt *o = t->opt; o && o->name; o++)
        if (!strcmp(o->name, name))
            return true;
    for (const struct cli_opt *o = cli_common_opt; o->name; o++)
        if (!strcmp(o->name, name))
            return !cli_hidden(t, o);
    return false;
}

static const char *advice_of(const struct slu_tool *t, enum slu_advice a)
{
    return !NEEDS[a].option || has_option(t, NEEDS[a].option) ? ADVICE[a]
                                                              : NEEDS[a].without;
}

void cli_error(struct cli_ctx *ctx, const struct slu_err *err)
{
    char msg[sizeof err->msg];

    memcpy(msg, err->msg, sizeof msg);
    slu_printable(msg); /* callers may have added names to it */
    cli_erase(ctx);
    const char *advice = advice_of(ctx->tool, err->advice);
    bool more = advice && !strncmp(advice, "or ", 3);
    fprintf(said(ctx), "%s: %s%s%s\n", ctx->tool->name, msg,
            more     ? ", "
            : advice ? "; "
                     : "",
            advice ? advice : "");
}

void cli_warn(struct cli_ctx *ctx, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (!ctx->common.quiet)
        say(ctx, fmt, ap);
    va_end(ap);
}

void cli_warn_text(void *ctx, const char *text)
{
    cli_warn(ctx, "%s", text);
}

void cli_note(struct cli_ctx *ctx, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (ctx->common.verbose)
        say(ctx, fmt, ap);
    va_end(ap);
}

/* ---- the report ---- */

/* The largest resident set, in bytes, since this program began. getrusage() would also
 * count the memory before exec. */
static uint64_t peak_rss(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    if (!kib) {
        struct rusage ru;
        getrusage(RUSAGE_SELF, &ru);
        kib = (unsigned long long)ru.ru_maxrss;
    }
    return kib * 1024;
}

static double cpu_seconds(const struct cli_ctx *ctx)
{
    struct rusage ru;

    if (ctx->time)
        return slu_thread_seconds(ctx->time);
    getrusage(RUSAGE_SELF, &ru);
    return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
           1e-6 * (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
}

/* Appends the devices of timings, if the program named them. */
static int put_devices(const struct cli_report *r, struct slu_buf *b,
                       struct slu_err *err)
{
    bool any = false;
    int rc = SLU_OK;
    for (unsigned i = 0; !rc && i < r->n_timing; i++)
        if (*r->timing[i].device) {
            rc = slu_buf_printf(b, err, "%s\"%s\": \"%s\"",
                                any ? ", " : ",\n  \"timing_devices\": {",
                                r->timing[i].name, r->timing[i].device);
            any = true;
        }
    return rc || !any ? rc : slu_buf_printf(b, err, "}");
}

static int write_stats(struct cli_ctx *ctx, struct slu_err *err)
{
    struct cli_report *r = ctx->report;
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_buf_append(&b, "{\n  ", 4, err);
    if (!rc)
        rc = cli_record_put(ctx, &b, err);
    if (!rc)
        rc = slu_account_put_json(&b, &ctx->account, err);
    if (!rc)
        rc = slu_buf_printf(
            &b, err,
            ",\n  \"seconds\": %.6f,\n  \"cpu_seconds\": %.6f,\n  \"peak_rss_bytes\": "
            "%llu,\n  "
            "\"spill_bytes\": %llu,\n  \"device\": \"%s\",\n  \"threads\": %llu,\n  "
            "\"memory_bytes\": %llu,\n  \"timings\": {",
            r->ended - r->began, cpu_seconds(ctx), (unsigned long long)peak_rss(),
            (unsigned long long)ctx->spill_bytes,
            ctx->device ? ctx->device->name : "cpu",
            (unsigned long long)ctx->common.threads,
            (unsigned long long)ctx->common.memory);
    for (unsigned i = 0; !rc && i < r->n_timing; i++)
        rc = slu_buf_printf(&b, err, "%s\"%s\": %.6f", i ? ", " : "", r->timing[i].name,
                            r->timing[i].seconds);
    if (!rc)
        rc = slu_buf_printf(&b, err, "}");
    if (!rc)
        rc = put_devices(r, &b, err);
    if (!rc)
        rc = slu_buf_printf(&b, err, "%.*s\n}\n", (int)r->extra.len,
                            (char *)r->extra.data);
    if (!rc)
        rc = slu_out_write(r->stats, b.data, b.len, err);
    struct slu_out *out = r->stats;
    r->stats = NULL;
    if (!rc)
        rc = slu_out_close(out, err);
    else
        slu_out_abort(out);
    slu_buf_release(&b);
    return rc;
}

/* Appends "1 document", "2 documents". */
static int put_count(struct slu_buf *b, const char *before, uint64_t n,
                     const char *what)
{
    return slu_buf_printf(b, NULL, "%s%llu %s%s", before, (unsigned long long)n, what,
                          slu_plural(n));
}

/* Appends what was dropped, by reason, and the part that it is of what came; a reason
 * without tokens and documents is none that loses text. */
static int put_dropped(struct slu_buf *b, const struct slu_account *l)
{
    const double all = (double)(l->in.tokens + l->from_work.tokens + l->created.tokens +
                                l->repeated.tokens);
    const char *before = "; dropped: ";
    int rc = SLU_OK;
    for (unsigned i = 0; i < l->n_dropped && !rc; i++) {
        const struct slu_count n = l->dropped[i].n;
        if (!n.tokens && !n.documents)
            continue;
        rc = slu_buf_printf(b, NULL, "%s%s", before, l->dropped[i].reason);
        if (!rc && n.documents)
            rc = put_count(b, " ", n.documents, "document");
        if (!rc && n.tokens)
            rc = put_count(b, n.documents ? " with " : " ", n.tokens, "token");
        if (!rc && n.tokens)
            rc = slu_buf_printf(b, NULL, " (%.1f %%)", 100 * (double)n.tokens / all);
        before = ", ";
    }
    return rc;
}

int cli_put_account(struct slu_buf *b, const struct slu_account *l)
{
    /* A program that reads sets does not count documents. */
    const bool documents = l->in.documents || l->out.documents;
    int rc = documents ? put_count(b, "", l->in.documents, "document") : SLU_OK;
    if (!rc)
        rc = put_count(b, documents ? ", " : "", l->in.tokens, "token");
    if (!rc && documents)
        rc = put_count(b, " in; ", l->out.documents, "document");
    if (!rc)
        rc = put_count(b, documents ? ", " : " in; ", l->out.tokens, "token");
    if (!rc)
        rc = put_count(b, " in ", l->out.sequences, "sequence");
    if (!rc)
        rc = slu_buf_printf(b, NULL, " out");
    if (!rc)
        rc = put_dropped(b, l);
    return rc ? rc : slu_buf_append(b, "", 1, NULL);
}

/* Prints one line: what went in and out, and what was dropped. */
static void say_summary(struct cli_ctx *ctx)
{
    struct slu_buf b = SLU_BUF_INIT;
    if (!cli_put_account(&b, &ctx->account)) {
        slu_printable((char *)b.data);
        fprintf(said(ctx), "%s: %s; %.1f s\n", ctx->tool->name, (const char *)b.data,
                ctx->report->ended - ctx->report->began);
    }
    slu_buf_release(&b);
}

/* Whether the run moved tokens from a stream to another one. */
static bool moved(const struct cli_ctx *ctx)
{
    const struct slu_account *l = &ctx->account;
    return !ctx->tool->plain_output &&
           !(l->n_dropped && !strcmp(l->dropped[0].reason, "plan-only"));
}

int cli_report_write(struct cli_ctx *ctx, struct slu_err *err)
{
    struct cli_report *r = ctx->report;
    end_timing(r);
    cli_erase(ctx);
    r->ended = now();
    return ctx->common.stats ? write_stats(ctx, err) : SLU_OK;
}

void cli_summary(struct cli_ctx *ctx)
{
    const struct slu_account *l = &ctx->account;
    const struct cli_common *c = &ctx->common;
    if (ctx->report && (l->in.documents || l->in.tokens || l->out.tokens) &&
        (ctx->report->draw || c->verbose || (!c->quiet && moved(ctx))))
        say_summary(ctx);
}
