/* schedule.c - inspect on a schedule's file: prints the header and the buckets, and
 * draws the lengths over the steps. Each mode checks every block's hash, and that no
 * pass takes a run twice.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/schedule/schedulefile.h"
#include "formats/shards/manifests.h"
#include "tools/inspect/inspect.h"

typedef unsigned long long ull; /* for printf */

enum { STEPS = 4096 }; /* read at a time */

struct seen {
    struct slu_schedulefile *f;
    const struct slu_steps_info *info;
    uint64_t first, n; /* steps in the file */
    uint64_t *steps;   /* steps of each bucket in the file */
    uint64_t *base;    /* number of each bucket's first run among those of the pass */
    uint8_t *taken;    /* one bit for each run: used in the current pass */
    uint64_t *place;   /* of each bucket's first step in the file */
    uint32_t *uses;    /* of each run in the file; only of a part of several passes,
                          in version 1 */
    uint64_t *bin;     /* n_bin x n_bucket counts */
    size_t n_bin;
    uint64_t pass, cycle, cycle_begin, cycle_end; /* current cycle; its first step, and
                                                     the next cycle's */
};

static int fault(const struct cli_ctx *ctx, uint64_t k, const char *what,
                 struct slu_err *err)
{
    return slu_fail(err, SLU_E_FORMAT, "%s: step %llu %s", ctx->input[0], (ull)k, what);
}

/* ---- all steps, once ---- */

/* Bytes of `taken`; a later pass of version 2 can have a run more of each bucket. */
static size_t taken_bytes(const struct slu_steps_info *i)
{
    return (i->pass_steps + i->n_bucket) / 8 + 1;
}

/* Whether the file begins after the first step of the training. */
static bool is_part(const struct seen *s)
{
    return s->n != s->info->total_steps;
}

static void enter_cycle(struct seen *s, uint64_t cycle)
{
    const struct slu_steps_info *i = s->info;
    uint64_t pass = cycle / i->cycles, of_pass = cycle % i->cycles;
    if (pass != s->pass)
        memset(s->taken, 0, taken_bytes(i));
    s->cycle = cycle;
    s->pass = pass;
    if (i->method == SLU_STEPS_OLMO) {
        s->cycle_begin = cycle * (i->pass_steps / i->cycles);
        s->cycle_end = s->cycle_begin + i->pass_steps / i->cycles;
    } else {
        s->cycle_begin = slu_steps_before_cycle(i, pass, of_pass);
        s->cycle_end = slu_steps_before_cycle(i, pass, of_pass + 1);
    }
}

static int see(struct cli_ctx *ctx, struct seen *s, const struct slu_train_step *step,
               uint64_t k, struct slu_err *err)
{
    const struct slu_steps_info *i = s->info;
    const struct slu_steps_bucket *b = &i->bucket[step->bucket];
    if (step->cycle != s->cycle)
        enter_cycle(s, step->cycle);
    if (k < s->cycle_begin || k >= s->cycle_end)
        return fault(ctx, k, "is not in the cycle that it names", err);
    uint64_t run = s->base[step->bucket] + step->first / (b->per_step / b->unit);
    if (i->version == 2)
        run -= slu_steps_runs_before(i, step->bucket, s->pass, 0);
    if (s->taken[run / 8] >> run % 8 & 1)
        return fault(ctx, k, "takes sequences that this pass has had", err);
    s->taken[run / 8] |= (uint8_t)(1u << run % 8);
    if (s->uses)
        s->uses[run]++;
    if (!s->steps[step->bucket]++)
        s->place[step->bucket] = step->first * b->unit;
    if (s->n_bin) {
        size_t bin = (size_t)((unsigned __int128)(k - s->first) * s->n_bin / s->n);
        s->bin[bin * i->n_bucket + step->bucket]++;
    }
    return SLU_OK;
}

static int see_all(struct cli_ctx *ctx, struct seen *s, struct slu_err *err)
{
    const struct slu_steps_info *i = s->info;
    struct slu_train_step *step = malloc(STEPS * sizeof *step);
    size_t n = 1;
    uint64_t k = s->first;
    int rc = step ? SLU_OK : slu_fail_nomem(err, STEPS * sizeof *step);
    cli_pass(ctx, NULL, 0, s->n * i->batch_tokens);
    while (!rc && n) {
        rc = slu_schedulefile_next(s->f, step, STEPS, &n, err);
        for (size_t j = 0; j < n && !rc; j++)
            rc = see(ctx, s, &step[j], k++, err);
        cli_progress(ctx, (k - s->first) * 16, (k - s->first) * i->batch_tokens);
    }
    free(step);
    for (size_t b = 0; b < i->n_bucket && !rc && s->n == i->total_steps; b++)
        if (s->steps[b] != i->bucket[b].used_steps)
            rc =
                slu_fail(err, SLU_E_FORMAT,
                         "%s: the bucket of %llu has %llu steps and %llu by the header",
                         ctx->input[0], (ull)i->bucket[b].length, (ull)s->steps[b],
                         (ull)i->bucket[b].used_steps);
    return rc;
}

static int make_room(const struct cli_ctx *ctx, struct seen *s, struct slu_err *err)
{
    const struct slu_steps_info *i = s->info;
    const uint64_t bits = taken_bytes(i);
    const bool counts = is_part(s) && i->version == 1 && i->epochs > 1;
    const uint64_t n_use = counts ? 8 * bits : 0;
    const uint64_t need = bits + n_use * sizeof *s->uses;
    if (need > ctx->common.memory / 2)
        return slu_fail(err, SLU_E_LIMIT,
                        "%s: to see that no sequence comes twice, %llu MiB are needed; "
                        "give twice that with -M",
                        ctx->input[0], (ull)(need >> 20) + 1);
    s->steps = calloc(i->n_bucket, sizeof *s->steps);
    s->place = calloc(i->n_bucket, sizeof *s->place);
    s->base = calloc(i->n_bucket, sizeof *s->base);
    s->bin = calloc((s->n_bin + 1) * i->n_bucket, sizeof *s->bin);
    s->taken = calloc(bits, 1);
    if (n_use)
        s->uses = calloc(n_use, sizeof *s->uses);
    if (!s->steps || !s->place || !s->base || !s->bin || !s->taken ||
        (n_use && !s->uses))
        return slu_fail_nomem(err, need);
    for (size_t b = 1; b < i->n_bucket; b++)
        s->base[b] = s->base[b - 1] + i->bucket[b - 1].runs + 1;
    return SLU_OK;
}

/* ---- how often the steps of a part take each sequence ---- */

/* n[k] sequences are taken times + k times: a part has whole passes, the end of the pass
 * that it begins in, and the beginning of its last one. */
struct uses {
    uint64_t times, n[3], never;
};

static int uses_of_runs(const struct cli_ctx *ctx, const struct seen *s, size_t b,
                        struct uses *u, struct slu_err *err)
{
    const struct slu_steps_bucket *k = &s->info->bucket[b];
    const uint32_t *of = &s->uses[s->base[b]];

    u->times = k->runs ? of[0] : 0;
    for (uint64_t r = 0; r < k->runs; r++)
        u->times = of[r] < u->times ? of[r] : u->times;
    for (uint64_t r = 0; r < k->runs; r++) {
        if (of[r] - u->times > 2)
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: the bucket of %llu has sequences that are taken %llu "
                            "times, and others %u times",
                            ctx->input[0], (ull)k->length, (ull)u->times, of[r]);
        u->n[of[r] - u->times] += k->per_step;
    }
    u->never = k->sequences - k->runs * k->per_step;
    return SLU_OK;
}

/* Counts the sequences that two ranges of places both have, each within a pass. */
static int in_both(const struct cli_ctx *ctx, const struct seen *s, size_t b,
                   uint64_t one, uint64_t n_one, uint64_t other, uint64_t n_other,
                   uint64_t *both, struct slu_err *err)
{
    const uint64_t n_byte = s->info->bucket[b].sequences / 8 + 1;
    uint8_t *in = NULL;

    *both = 0;
    if (!n_one || !n_other)
        return SLU_OK;
    if (n_byte > ctx->common.memory / 2)
        return slu_fail(err, SLU_E_LIMIT,
                        "%s: to see how often sequences are taken, %llu MiB are "
                        "needed; give twice that with -M",
                        ctx->input[0], (ull)(n_byte >> 20) + 1);
    in = calloc(n_byte, 1);
    if (!in)
        return slu_fail_nomem(err, n_byte);
    for (uint64_t i = 0; i < n_one; i++) {
        uint64_t q = slu_steps_sequence(s->info, b, one + i);
        in[q / 8] |= (uint8_t)(1u << q % 8);
    }
    for (uint64_t i = 0; i < n_other; i++) {
        uint64_t q = slu_steps_sequence(s->info, b, other + i);
        *both += in[q / 8] >> q % 8 & 1;
    }
    free(in);
    return SLU_OK;
}

/* Version 2: a bucket's steps take places one after another. */
static int uses_of_places(const struct cli_ctx *ctx, const struct seen *s, size_t b,
                          struct uses *u, struct slu_err *err)
{
    const struct slu_steps_bucket *k = &s->info->bucket[b];
    const uint64_t n = k->sequences, from = s->place[b],
                   to = from + s->steps[b] * k->per_step;
    uint64_t both = 0;

    const uint64_t head = (n - from % n) % n, tail = to % n;
    int rc = in_both(ctx, s, b, from, head, to - tail, tail, &both, err);
    u->times = (to - tail - from - head) / n;
    u->n[2] = both;
    u->n[1] = head + tail - 2 * both;
    u->n[0] = n - u->n[1] - u->n[2];
    return rc;
}

static int uses_here(const struct cli_ctx *ctx, const struct seen *s, size_t b,
                     struct uses *u, struct slu_err *err)
{
    int rc = SLU_OK;

    const struct slu_steps_bucket *k = &s->info->bucket[b];
    const uint64_t n = s->steps[b] * k->per_step, first = s->place[b];

    *u = (struct uses){0};
    if (s->info->epochs == 1 || !n ||
        (s->info->version == 2 &&
         first / k->sequences == (first + n - 1) / k->sequences)) {
        u->n[1] = n;
        u->n[0] = k->sequences - n;
    } else {
        rc = s->uses ? uses_of_runs(ctx, s, b, u, err)
                     : uses_of_places(ctx, s, b, u, err);
    }
    if (!u->times) {
        u->never += u->n[0];
        u->n[0] = 0;
    }
    return rc;
}

/* ---- printing ---- */

/* Width of the column of lengths; the last bucket has the longest. */
static int length_width(const struct slu_steps_info *i)
{
    int n = snprintf(NULL, 0, "%llu", (ull)i->bucket[i->n_bucket - 1].length);
    return n > 10 ? n : 10;
}

static void print_head(const struct seen *s)
{
    const struct slu_steps_info *i = s->info;
    char digest[33], sum[33];
    slu_u128_hex(i->shards_digest, digest);
    slu_u128_hex(i->checksum, sum);
    printf("schedule, %s, curriculum %s%s%s%s%s\n",
           i->method == SLU_STEPS_OLMO ? "olmo" : "generic", i->curriculum,
           i->flags & SLU_STEPS_BALANCED ? ", balanced" : "",
           i->version == 2 ? ", each epoch in its own order" : "",
           i->flags & SLU_STEPS_REORDER ? ", later epochs reordered" : "",
           i->flags & SLU_STEPS_BRICKS ? ", in bricks" : "");
    printf("  steps       %llu of %llu token%s each, %llu %s in %llu cycle%s\n",
           (ull)i->total_steps, (ull)i->batch_tokens, slu_plural(i->batch_tokens),
           (ull)i->pass_steps, i->version == 2 ? "in the first pass" : "a pass",
           (ull)i->cycles, slu_plural(i->cycles));
    if (s->n != i->total_steps)
        printf("  here        %llu, from step %llu\n", (ull)s->n, (ull)s->first);
    printf("  tokens      %llu\n", (ull)(i->total_steps * i->batch_tokens));
    printf("  ranks       %llu\n", (ull)i->world);
    printf("  seed        %llu\n", (ull)i->seed);
    printf("  shards      %s\n", digest);
    if (i->has_checksum)
        printf("  checksum    %s\n", sum);
}

/* The whole training's, with the reasons why sequences are never taken. */
static void print_uses(const struct slu_steps_info *i, size_t b)
{
    const struct slu_steps_bucket *r = &i->bucket[b];
    struct slu_steps_uses u = slu_steps_uses(i, b);
    const char *comma = "";
    if (u.once_more) {
        printf("%llu x %llu", (ull)u.once_more, (ull)u.times + 1);
        comma = ", ";
    }
    if (u.as_many) {
        printf("%s%llu x %llu", comma, (ull)u.as_many, (ull)u.times);
        comma = ", ";
    }
    for (int d = 0; d < SLU_N_DROP; d++)
        if (r->dropped[d]) {
            printf("%s%llu never (%s)", comma, (ull)r->dropped[d],
                   slu_steps_drop_name(d));
            comma = ", ";
        }
    printf("%s\n", *comma ? "" : "none");
}

static int print_uses_here(const struct cli_ctx *ctx, const struct seen *s, size_t b,
                           struct slu_err *err)
{
    struct uses u;
    const char *comma = "";
    int rc = uses_here(ctx, s, b, &u, err);

    if (rc)
        return rc;
    for (int k = 2; k >= 0; k--)
        if (u.n[k]) {
            printf("%s%llu x %llu", comma, (ull)u.n[k], (ull)u.times + (unsigned)k);
            comma = ", ";
        }
    if (u.never)
        printf("%s%llu never", comma, (ull)u.never);
    printf("%s\n", u.never || *comma ? "" : "none");
    return SLU_OK;
}

static int print_buckets(const struct cli_ctx *ctx, const struct seen *s,
                         struct slu_err *err)
{
    const struct slu_steps_info *i = s->info;
    const bool part = is_part(s);
    int width = length_width(i), rc = SLU_OK;
    printf("\n%*s %16s %14s %12s %6s  %s\n", width, "length", "odds", "sequences",
           part ? "steps here" : "steps", "share",
           part ? "sequences by times taken here" : "sequences by times taken");
    for (size_t b = 0; b < i->n_bucket && !rc; b++) {
        const struct slu_steps_bucket *r = &i->bucket[b];
        printf("%*llu ", width, (ull)r->length);
        if (i->flags & SLU_STEPS_NATURAL)
            printf("%16s", "steps left");
        else
            printf("%16llu", (ull)r->odds);
        printf(" %14llu %12llu %5.1f%%  ", (ull)r->sequences, (ull)s->steps[b],
               s->n ? 100.0 * (double)s->steps[b] / (double)s->n : 0);
        if (part)
            rc = print_uses_here(ctx, s, b, err);
        else
            print_uses(i, b);
    }
    return rc;
}

/* Draws each bucket's share of the steps in each interval of steps, longest bucket on
 * top. */
static void print_drawing(const struct seen *s)
{
    static const char *const level[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const struct slu_steps_info *i = s->info;
    int label = length_width(i);
    for (size_t b = i->n_bucket; b-- > 0;) {
        printf("%*llu ", label, (ull)i->bucket[b].length);
        for (size_t k = 0; k < s->n_bin; k++) {
            const uint64_t *bin = &s->bin[k * i->n_bucket];
            uint64_t all = 0;
            for (size_t c = 0; c < i->n_bucket; c++)
                all += bin[c];
            fputs(level[all ? (bin[b] * 8 + all - 1) / all : 0], stdout);
        }
        printf("\n");
    }
    char last[24];
    int n = snprintf(last, sizeof last, "%llu", (ull)(s->first + s->n - (s->n != 0)));
    int width = (int)s->n_bin - n;
    printf("%*s %-*llu%s\n", label, "step", width > 1 ? width : 1, (ull)s->first,
           width > 1 ? last : "");
}

static int put_here(const struct cli_ctx *ctx, const struct seen *s, size_t b,
                    struct slu_buf *t, struct slu_err *err)
{
    struct uses u;
    int rc = uses_here(ctx, s, b, &u, err), n = 0;

    if (!rc)
        rc = slu_buf_printf(
            t, err, "%s\n  {\"length\": %llu, \"steps\": %llu, \"uses\": [",
            b ? "," : "", (ull)s->info->bucket[b].length, (ull)s->steps[b]);
    if (!rc && u.never)
        rc = slu_buf_printf(t, err, "%s[0, %llu]", n++ ? ", " : "", (ull)u.never);
    for (unsigned k = 0; k < 3 && !rc; k++)
        if (u.n[k])
            rc = slu_buf_printf(t, err, "%s[%llu, %llu]", n++ ? ", " : "",
                                (ull)u.times + k, (ull)u.n[k]);
    return rc ? rc : slu_buf_printf(t, err, "]}");
}

static int print_json(const struct cli_ctx *ctx, const struct seen *s,
                      struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_buf_printf(&b, err, "{\"kind\": \"schedule\", ");
    if (!rc)
        rc = slu_schedulefile_put_json(&b, s->info, s->first, s->n, err);
    if (!rc && is_part(s)) {
        rc = slu_buf_printf(&b, err, ", \"here\": [");
        for (size_t k = 0; k < s->info->n_bucket && !rc; k++)
            rc = put_here(ctx, s, k, &b, err);
        if (!rc)
            rc = slu_buf_printf(&b, err, "]");
    }
    if (!rc)
        printf("%.*s}\n", (int)b.len, (char *)b.data);
    slu_buf_release(&b);
    return rc;
}

/* Of version 2, in which the sequences of a step need not follow one another. */
static void print_numbers(const struct slu_steps_info *i,
                          const struct slu_train_step *s)
{
    for (uint64_t k = 0; k < i->bucket[s->bucket].per_step; k++)
        printf("%s%llu", k ? "," : ",\"numbers\":[",
               (ull)slu_steps_sequence(i, s->bucket, s->first + k));
    printf("]");
}

static int print_steps(const struct seen *s, uint64_t most, struct slu_err *err)
{
    const struct slu_steps_info *i = s->info;
    struct slu_train_step step[64];
    size_t n = 1;
    uint64_t k = s->first;
    int rc = SLU_OK;
    while (!rc && n && most) {
        rc = slu_schedulefile_next(s->f, step, most < 64 ? (size_t)most : 64, &n, err);
        for (size_t j = 0; j < n; j++, k++) {
            printf("{\"step\":%llu,\"length\":%llu,\"bucket\":%u,\"first\":%llu,"
                   "\"sequences\":%llu,\"epoch\":%llu,\"cycle\":%llu",
                   (ull)k, (ull)i->bucket[step[j].bucket].length, step[j].bucket,
                   (ull)(step[j].first * i->bucket[step[j].bucket].unit),
                   (ull)i->bucket[step[j].bucket].per_step,
                   (ull)(step[j].cycle / i->cycles), (ull)(step[j].cycle % i->cycles));
            if (i->version == 2)
                print_numbers(i, &step[j]);
            printf("}\n");
        }
        most -= n;
    }
    return rc;
}

/* ---- the mode ---- */

/* Checks that the shard set named after the schedule is the set that the schedule was
 * made for. */
static int check_shards(struct cli_ctx *ctx, const struct slu_steps_info *info,
                        struct slu_err *err)
{
    struct slu_bucket_counts set;
    bool sure = true;
    int rc = SLU_OK;
    if (ctx->n_input == 1)
        return SLU_OK;
    slu_bucket_counts_init(&set);
    for (size_t i = 1; i < ctx->n_input && !rc; i++)
        rc = slu_manifests_add(&set, ctx->input[i], err);
    if (!rc) {
        struct slu_u128 d = slu_bucket_counts_digest(&set);
        if (slu_u128_cmp(d, info->shards_digest))
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s: made for other shards than those of %s", ctx->input[0],
                          ctx->input[1]);
    }
    if (!rc && set.has_checksum && info->has_checksum)
        rc = slu_schedulefile_of(info, ctx->input[0], set.places, ctx->input[1], &sure,
                                 err);
    if (!rc && !sure && info->seal)
        cli_warn(ctx,
                 "%s: was made for a set of the same contents as %s in other files; if "
                 "their order is another, its steps have other sequences",
                 ctx->input[0], ctx->input[1]);
    slu_bucket_counts_release(&set);
    return rc;
}

static int show(struct cli_ctx *ctx, struct seen *s, struct slu_err *err)
{
    const struct inspect_opts *o = ctx->opts;
    int rc = see_all(ctx, s, err);
    if (!rc && o->svg) {
        rc = inspect_svg_schedule(s->f, o, err);
        if (!(o->json || o->verify || o->histogram))
            return rc;
    }
    if (rc)
        return rc;
    cli_erase(ctx);
    if (o->json)
        return print_json(ctx, s, err);
    if (o->verify) {
        printf("ok: schedule of %llu step%s, %llu tokens\n", (ull)s->n,
               slu_plural(s->n), (ull)(s->n * s->info->batch_tokens));
        return SLU_OK;
    }
    if (!o->histogram) {
        print_head(s);
        rc = print_buckets(ctx, s, err);
        printf("\n");
    }
    if (!rc)
        print_drawing(s);
    return rc;
}

int inspect_schedule(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct inspect_opts *o = ctx->opts;
    struct seen s = {.pass = UINT64_MAX, .cycle = UINT64_MAX};
    if (o->jsonl || o->text)
        return slu_fail(err, SLU_E_USAGE, "%s: a schedule has no text", ctx->input[0]);
    int rc = slu_schedulefile_open(&s.f, ctx->input[0], err);
    if (rc)
        return rc;
    s.info = slu_schedulefile_info(s.f);
    s.first = slu_schedulefile_first(s.f);
    s.n = slu_schedulefile_count(s.f);
    s.n_bin = s.n < 66 ? (size_t)s.n : 66;
    rc = check_shards(ctx, s.info, err); /* before anything is printed */
    if (!rc && o->records != NO_RECORDS) {
        rc = print_steps(&s, o->records, err);
    } else if (!rc) {
        rc = make_room(ctx, &s, err);
        if (!rc)
            rc = show(ctx, &s, err);
    }
    free(s.steps);
    free(s.place);
    free(s.uses);
    free(s.base);
    free(s.bin);
    free(s.taken);
    slu_schedulefile_free(s.f);
    return rc;
}
