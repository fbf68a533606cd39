/* pack.c - pack: joins sequences that do not have a bucket's length into sequences that
 * do. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"
#include "tools/pack/pack.h"

const char *const pack_longs[] = {"split", "drop", "error", NULL};
static const char *const orders[] = {"plan", "related", NULL};
static const char *const fills[] = {"pad", "drop", NULL};

static int parse_cost(void *opts, const char *value, struct slu_err *err)
{
    return pack_balance_parse_cost(&((struct pack_opts *)opts)->balance, value, err);
}

#define AT(field) offsetof(struct pack_opts, field)
static const struct cli_opt options[] = {
    {"length", 0, CLI_LENGTH, AT(length), "L",
     "length of the bins; default: the smallest bucket of the stream", .least = 1,
     .most = SLU_MAX_CAPACITY - 1},
    {"method", 0, CLI_CHOICE, AT(method), NULL,
     "method that fills bins; default: bfd, best-fit decreasing",
     .choice = slu_pack_method_name},
    {"buckets", 0, CLI_STRING, AT(multi.buckets), "LIST",
     "multi: lengths of the bins; default: the buckets of the stream"},
    {"padding-threshold", 0, CLI_FRACTION, AT(multi.threshold), "FRACTION",
     "multi: fraction of a bin that may be padding; default: 0.05"},
    {"long", 0, CLI_CHOICE, AT(too_long), NULL,
     "split sequences longer than L (default; with masks there is none),\n"
     "drop them, or stop",
     .choice = pack_longs},
    {"fill", 0, CLI_CHOICE, AT(fill), NULL,
     "pad bins that are not full (default), or drop them", .choice = fills},
    {"order", 0, CLI_CHOICE, AT(order), NULL,
     "put sequences into a bin as the plan says (default), or related\n"
     "documents if possible",
     .choice = orders},
    {"max-segments", 0, CLI_COUNT, AT(max_segments), "N",
     "at most N pieces of documents in a bin; default: no limit"},
    {"mix-domains", 0, CLI_FLAG, AT(mix_domains), NULL,
     "let documents of different domains share a bin"},
    {"plan", 0, CLI_FLAG, AT(plan), NULL,
     "print the results of each method as a table; write no stream"},
    {"save-plan", 0, CLI_OUTPUT, AT(save_plan), "FILE",
     "write the plan to FILE, for --apply-plan", .effect = CLI_NOTHING},
    {"apply-plan", 0, CLI_INPUT, AT(apply_plan), "FILE",
     "use the plan in FILE, which was made of the same lengths with the\n"
     "same options",
     .effect = CLI_NOTHING},
    CLI_FLOW_ROWS(AT(flow), "count|plan|scatter|gather"),
    {"balance", 0, CLI_COUNT, AT(balance.ranks), "N",
     "order sequences in steps in which N ranks have equal work", .least = 1},
    {"balance-sequences", 0, CLI_COUNT, AT(balance.sequences), "M",
     "sequences of a rank in a step; default: 1", .least = 1},
    {"balance-tokens", 0, CLI_LENGTH, AT(balance.tokens), "N",
     "instead: tokens of a step, all ranks together", .least = 1},
    {"balance-cost", 0, CLI_CUSTOM, AT(balance.cost), "A,B",
     "cost of a segment of l tokens, A x l + B x l^2;\n"
     "default: 0,1",
     .parse = parse_cost},
    {"balance-window", 0, CLI_COUNT, AT(balance.window), "N",
     "steps that are rearranged together; default: as many as have 64\n"
     "sequences of each rank, at least 8",
     .least = 1},
    {0},
};

static void defaults(void *p)
{
    struct pack_opts *o = p;
    o->multi.threshold = PACK_MULTI_THRESHOLD;
}

struct runs {
    struct slu_run *run;
    size_t n, cap;
};

/* Data beside a batch that is read. Sequences that pass stay in the batch; this lists
 * the runs of sequences that wait. */
struct waits {
    struct runs waits, too_long; /* too_long: runs that are not split */
    uint64_t held;               /* position of the tokens of waits */
    bool whole,
        late; /* each sequence that waits is one run; is hashed where it waits */
    uint64_t waiting;    /* number of sequences that the runs come from */
    struct slu_seq *seq; /* the sequences that wait */
    size_t n_seq, cap_seq;
    struct slu_count padding; /* dropped padding of waiting sequences */
    struct pack_related_slot related;
};

/* ---- reading: what passes is written, what waits goes to lib/pack/packing.h ---- */

static int list_runs(const struct pack_job *j, struct waits *s,
                     const struct slu_batch *b, const struct slu_seq *q,
                     struct slu_err *err)
{
    const struct pack_opts *o = j->ctx->opts;
    struct slu_run run;
    uint64_t i = 0, tok_off = q->tok_off;
    size_t before = s->waits.n + s->too_long.n;
    while (slu_run_next(b, q, &i, &tok_off, &run)) {
        if (run.seg.source == SLU_PADDING) {
            s->padding.tokens += run.seg.len_tok;
            continue;
        }
        bool split = o->too_long == 0 || run.seg.len_tok <= j->capacity;
        struct runs *to = split ? &s->waits : &s->too_long;
        int rc = slu_grow(&to->run, &to->cap, to->n + 1, sizeof *to->run, err);
        if (rc)
            return rc;
        to->run[to->n++] = run;
    }
    bool any = s->waits.n + s->too_long.n > before;
    s->whole &=
        q->n_seg == 1 && q->len_tok <= SLU_FRAME_TOKENS && s->waits.n == s->n_seq;
    s->waiting += any;
    s->padding.sequences += !any; /* the sequence had only padding */
    return SLU_OK;
}

/* Sums the n sequences that pass, whose hashes are known if they were summed when they
 * were read. */
static void sum_passed(struct waits *s, struct slu_batch *b, size_t n)
{
    b->n_seq = n;
    if (b->unsummed) {
        slu_batch_sum_parts(b, s->seq, s->n_seq, s->late);
    } else if (s->n_seq) {
        b->sum_valid = false;
        slu_batch_sum(b);
    }
}

static int split(void *ctx, unsigned worker, struct slu_batch *b, void *side,
                 struct slu_err *err)
{
    const struct pack_job *j = ctx;
    struct waits *s = side;
    size_t n = 0;
    int rc = SLU_OK;
    s->waits.n = s->too_long.n = s->n_seq = 0;
    s->waiting = 0;
    s->padding = (struct slu_count){0};
    s->whole = true;
    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        const struct slu_seq q = b->seq[i];
        if (slu_header_bucket_of(&j->in, q.len_tok) >= 0) {
            b->seq[n++] = q;
            continue;
        }
        rc = slu_grow(&s->seq, &s->cap_seq, s->n_seq + 1, sizeof *s->seq, err);
        if (!rc)
            s->seq[s->n_seq++] = q;
        if (!rc)
            rc = list_runs(j, s, b, &q, err);
    }
    if (rc)
        return rc;
    s->held = slu_packing_hold(j->packing, b, s->waits.run, s->waits.n);
    s->late = b->unsummed && s->held != SLU_NOT_HELD && s->whole &&
              slu_packing_hashes(j->packing);
    sum_passed(s, b, n);
    (void)worker;
    return j->relater ? pack_related_sign(j->relater, &s->related, j->names, b,
                                          s->waits.run, s->waits.n, err)
                      : SLU_OK;
}

/* Writes sequences that pass, and packed sequences. */
static int put(struct pack_job *j, struct slu_batch *b, struct slu_err *err)
{
    if (!j->writer)
        return SLU_OK;
    return j->balance ? slu_balance_put(j->balance, b, j->writer, err)
                      : slu_writer_pass(j->writer, b, err);
}

static int take_long(struct pack_job *j, const struct slu_batch *b,
                     const struct slu_run *run, struct slu_err *err)
{
    const struct pack_opts *o = j->ctx->opts;
    if (o->too_long == 2) {
        const char *name = slu_names_source(j->names, run->seg.source);
        return slu_fail(
            err, SLU_E_LIMIT,
            "%s: document %llu has a sequence of %llu tokens, more than a bin's "
            "%llu; use --long split or drop",
            name ? name : "input", (unsigned long long)run->seg.document,
            (unsigned long long)run->seg.len_tok, (unsigned long long)j->capacity);
    }
    j->pieces++;
    slu_count_add(&j->too_long, (struct slu_count){
                                    run->seg.offset == 0, 1, run->seg.len_tok,
                                    slu_batch_loss(b, run->tok_off, run->seg.len_tok)});
    return SLU_OK;
}

static int arrive(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct pack_job *j = ctx;
    struct waits *s = side;
    slu_count_add(&j->passed, b->sum.n);
    slu_count_add(&j->padding, s->padding);
    j->waiting += s->waiting;
    int rc = SLU_OK;
    for (size_t i = 0; i < s->too_long.n && !rc; i++)
        rc = take_long(j, b, &s->too_long.run[i], err);
    if (!rc && j->relater)
        slu_packing_relate(j->packing, s->related.key);
    if (!rc)
        rc = slu_packing_add(j->packing, b, s->waits.run, s->waits.n, s->held, s->late,
                             &j->pieces, err);
    if (!rc)
        rc = put(j, b, err);
    j->tok += b->n_tok;
    slu_buf_trim(&s->related.plain, SLU_KEEP_BYTE);
    slu_hashes_trim(&s->related.scratch.hashes);
    cli_progress(j->ctx, slu_reader_bytes(j->reader), j->tok);
    return rc;
}

static void release_waits(void *side)
{
    struct waits *s = side;
    pack_related_release(&s->related);
    free(s->waits.run);
    free(s->too_long.run);
    free(s->seq);
}

static const struct slu_side_ops reading = {sizeof(struct waits), split, arrive,
                                            release_waits};

/* ---- writing the bins ---- */

/* A batch of bins in flight. */
struct slot {
    struct slu_batch b;
    struct slu_packing_window window; /* the bins that b is filled with */
};

#define BATCH_TOK (UINT64_C(1) << 18) /* tokens of the bins in one batch */

static int produce_bins(void *ctx, void *job, struct slu_err *err)
{
    struct pack_job *j = ctx;
    struct slot *s = job;
    return slu_packing_take(j->packing, &s->window, &s->b, BATCH_TOK, err);
}

static int fill_bins(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    const struct pack_job *j = ctx;
    struct slot *s = job;
    int rc = slu_packing_fill(j->packing, &s->window, &s->b, err);
    if (!rc)
        slu_batch_sum(&s->b);
    (void)worker;
    return rc;
}

static int emit_bins(void *ctx, void *job, struct slu_err *err)
{
    struct pack_job *j = ctx;
    struct slot *s = job;
    slu_packing_settle(j->packing, &s->window);
    j->written_tok += s->b.n_tok;
    cli_progress(j->ctx, 0, j->written_tok);
    return put(j, &s->b, err);
}

/* ---- setting up ---- */

/* Sets the lengths of the bins, and adds them to the buckets of the header. */
static int set_length(struct pack_job *j, struct slu_header *h, struct slu_err *err)
{
    const struct pack_opts *o = j->ctx->opts;
    const bool several = slu_pack_kind[o->method].several;
    int rc = pack_multi_check(&o->multi, several, o->length, err);
    if (rc)
        return rc;
    if (h->no_tokens)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the stream has segment rows only, and no tokens to pack");
    j->bin_tok[0] = o->length ? o->length : h->bucket[0];
    j->n_bin_tok = 1;
    if (several)
        rc = pack_multi_lengths(&o->multi, h, j->bin_tok, &j->n_bin_tok, err);
    else if (!o->length && !h->n_bucket)
        rc = slu_fail(err, SLU_E_USAGE,
                      "the stream has no bucket lengths (decompose has not run); give "
                      "--length L to pack whole documents");
    for (size_t i = 0; i < j->n_bin_tok && !rc; i++) {
        rc = pack_add_bucket(h, j->bin_tok[i], err);
        j->bin_tok[i] = slu_header_ids(h, j->bin_tok[i]);
    }
    if (!rc)
        j->capacity = j->bin_tok[j->n_bin_tok - 1];
    return rc;
}

/* Dialogues are cut only if somebody has said so. */
static int check_masks(const struct pack_job *j, struct slu_err *err)
{
    const struct pack_opts *o = j->ctx->opts;
    if (!j->in.masks || o->plan)
        return SLU_OK;
    if (slu_pack_cuts(pack_method(o)))
        cli_warn(j->ctx,
                 "the stream has masks, as dialogues have, and --method %s cuts "
                 "documents: the rest of one lacks the text before the cut; another "
                 "method with --long drop keeps documents whole",
                 slu_pack_method_name[o->method]);
    else if (!cli_given(j->ctx, "long"))
        return slu_fail(
            err, SLU_E_USAGE,
            "the stream has masks, as dialogues have; say what becomes of documents "
            "longer than a bin's %llu tokens: --long drop leaves them out, --long "
            "split cuts them, and the rest lacks the text before the cut, --long "
            "error stops at the first",
            (unsigned long long)j->capacity);
    return SLU_OK;
}

/* Opens the files of --save-plan and --apply-plan; sets cfg's save and apply. */
static int open_plans(struct pack_job *j, struct slu_packing_cfg *cfg,
                      struct slu_err *err)
{
    const struct pack_opts *o = j->ctx->opts;
    const struct slu_plan_head head = slu_packing_head(cfg);
    if (!o->save_plan && !o->apply_plan)
        return SLU_OK;
    if (o->save_plan && o->apply_plan)
        return slu_fail(err, SLU_E_USAGE,
                        "--save-plan and --apply-plan cannot be combined");
    if (slu_pack_cuts(pack_method(o)))
        return slu_fail(err, SLU_E_USAGE, "--method %s has no plan to %s",
                        slu_pack_method_name[o->method],
                        o->save_plan ? "save" : "apply");
    int rc = o->save_plan ? slu_planfile_new(&j->save, &head, err)
                          : slu_planfile_open(&j->apply, o->apply_plan,
                                              j->ctx->common.memory / 8, err);
    cfg->save = j->save;
    cfg->apply = j->apply;
    return rc || !j->save ? rc : slu_out_open(&j->plan_out, o->save_plan, err);
}

static void timing(void *ctx, const char *name, const char *device)
{
    cli_timing_on(ctx, name, device);
}

/* Fills cfg from the options, the header and the lengths; chooses the device. */
static int config(struct pack_job *j, const struct slu_header *h,
                  struct slu_packing_cfg *cfg, struct slu_err *err)
{
    struct pack_opts *o = j->ctx->opts;
    const struct cli_common *c = &j->ctx->common;
    if (o->fill == 0 && h->pad == SLU_NO_TOKEN && !o->plan)
        return slu_fail(
            err, SLU_E_MISMATCH,
            "the stream's tokenizer has no token to pad with; use --fill drop, "
            "or --method concat --fill drop to lose less than a bin");
    if (slu_pack_cuts(pack_method(o)) && o->max_segments)
        return slu_fail(err, SLU_E_USAGE,
                        "--max-segments cannot be combined with --method %s",
                        slu_pack_method_name[o->method]);
    int rc = slu_device_choose(&o->device, (enum slu_device_kind)c->device,
                               c->device_ordinal, err);
    if (rc)
        return rc;
    o->device.warn = cli_warn_text;
    o->device.warn_arg = j->ctx;
    o->device.n_threads = (unsigned)c->threads;
    j->ctx->device = &o->device;
    *cfg = (struct slu_packing_cfg){
        .method = pack_method(o),
        .capacity = j->capacity,
        .max_items = o->max_segments,
        .bin_tok = j->bin_tok,
        .n_bin_tok = j->n_bin_tok,
        .padding_threshold = o->multi.threshold,
        .related = o->order == 1,
        .mix_domains = o->mix_domains,
        .drop = o->fill == 1,
        .pad = h->pad,
        .tok_bytes = h->tok_bytes,
        .masks = h->masks,
        .plan_only = o->plan,
        .budget_byte = c->memory - pack_balance_share(j->ctx, &o->balance),
        .tmpdir = c->tmpdir,
        .n_threads = (unsigned)c->threads,
        .device = &o->device,
        .timing = timing,
        .timing_ctx = j->ctx,
        .names = j->names,
    };
    if (!cli_flow_asked(j->ctx)) {
        cfg->reader = j->reader;
        slu_reader_defer(j->reader);
    }
    return open_plans(j, cfg, err);
}

/* Number of batches of bins in flight. These batches may be larger than others; if one
 * bin alone exceeds the share, the number is 1. */
static unsigned bin_slots(const struct pack_job *j, uint64_t share)
{
    uint64_t tok_byte = 2 * j->capacity * j->in.tok_bytes,
             bin_byte = slu_packing_bin_byte(j->packing);
    unsigned most = cli_slots(j->ctx, share), windows = slu_packing_windows(j->packing);
    most = most < windows ? most : windows;
    if (bin_byte > share)
        return 1;
    uint64_t n = share / (bin_byte > tok_byte ? bin_byte : tok_byte);
    return n >= most ? most : n > 2 ? (unsigned)n : most < 2 ? most : 2;
}

int pack_write_planfile(struct pack_job *j, struct slu_err *err)
{
    if (!j->plan_out)
        return SLU_OK;
    int rc = slu_planfile_write(j->save, j->plan_out, err);
    if (rc)
        return rc;
    rc = slu_out_close(j->plan_out, err);
    j->plan_out = NULL;
    return rc;
}

static int write_all(struct pack_job *j, struct slu_err *err)
{
    static const struct slu_pipe_ops writing = {produce_bins, fill_bins, emit_bins};
    unsigned n = bin_slots(j, j->ctx->common.memory / 4);
    struct slot *s = calloc(n, sizeof *s);
    void **job = calloc(n, sizeof *job);
    int rc = s && job ? SLU_OK : slu_fail_nomem(err, n * sizeof *s);
    for (unsigned i = 0; i < n && !rc; i++) {
        slu_batch_init(&s[i].b, j->in.tok_bytes);
        s[i].b.masks = j->in.masks;
        job[i] = &s[i];
    }
    if (!rc)
        rc = slu_pipe_run(&writing, j, job, n, (unsigned)j->ctx->common.threads, err);
    for (unsigned i = 0; s && i < n; i++)
        slu_batch_release(&s[i].b);
    free(s);
    free(job);
    return rc;
}

/* ---- the flow ---- */

/* Called when the header is known; sets up everything that depends on it. */
static int begin(void *ctx, const struct slu_header *h, struct slu_names *names,
                 struct slu_err *err)
{
    struct slu_pack_flow *q = ctx;
    struct pack_job *j = q->ctx;
    const struct pack_opts *o = j->ctx->opts;
    j->names = names;
    int rc = slu_header_copy(&j->in, h, err);
    if (!rc)
        rc = slu_header_copy(&j->out, h, err);
    if (!rc)
        rc = pack_balance_check(&o->balance, o->plan, err);
    if (!rc)
        rc = pack_related_check(o, err);
    if (!rc && o->order == 1)
        rc = slu_relater_new(&j->relater, &j->in, slu_names_vocab(names), err);
    if (!rc)
        rc = set_length(j, &j->out, err);
    if (!rc)
        rc = check_masks(j, err);
    if (!rc)
        rc = pack_balance_open(j->ctx, &o->balance, &j->out, &j->balance, err);
    if (!rc)
        rc = config(j, &j->out, &q->cfg, err);
    return rc;
}

static int open_output(void *ctx, struct slu_err *err)
{
    struct pack_job *j = ctx;
    const struct pack_opts *o = j->ctx->opts;
    return o->plan ? SLU_OK
                   : cli_open_writer(j->ctx, &j->writer, &j->out, j->names, false, err);
}

static int read_stream(void *ctx, struct slu_flow *f, struct slu_err *err)
{
    struct pack_job *j = ctx;
    j->packing = j->flow.packing;
    cli_timing_on(j->ctx, "read", "cpu");
    return slu_flow_read(f, &reading, j, err);
}

static int write_bins(void *ctx, struct slu_err *err)
{
    struct pack_job *j = ctx;
    j->packing = j->flow.packing;
    int rc = pack_write_planfile(j, err);
    if (rc || !j->writer)
        return rc;
    cli_pass(j->ctx, "writing bins,", 0, j->tok - j->passed.tokens);
    rc = write_all(j, err);
    return rc || !j->balance ? rc : slu_balance_end(j->balance, j->writer, err);
}

static void init(struct pack_job *j, struct cli_ctx *ctx)
{
    *j = (struct pack_job){
        .ctx = ctx,
        .flow = {
            .ctx = j, .open = open_output, .read = read_stream, .write = write_bins}};
    slu_header_init(&j->in);
    slu_header_init(&j->out);
}

static void release(struct pack_job *j)
{
    slu_writer_abort(j->writer);
    slu_packing_free(j->flow.packing);
    slu_out_abort(j->plan_out);
    slu_planfile_free(j->save);
    slu_planfile_free(j->apply);
    slu_balance_free(j->balance);
    slu_relater_free(j->relater);
    slu_reader_free(j->reader);
    slu_header_release(&j->in);
    slu_header_release(&j->out);
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct pack_opts *o = ctx->opts;
    const uint64_t memory = ctx->common.memory;
    struct pack_job j;
    struct slu_flow_report r = {.skipped = false};
    struct slu_names *names = NULL;
    int rc = cli_flow_asked(ctx) ? pack_check_stage(ctx, err) : SLU_OK;
    if (!rc)
        rc = cli_flow_begin(ctx, err);
    if (rc)
        return rc == SLU_EOF ? SLU_OK : rc;
    const struct slu_stage *s = cli_flow_stage(ctx);
    init(&j, ctx);
    rc = s && !(s->flags & SLU_STAGE_READS) ? slu_names_new(&names, err)
                                            : cli_open_reader(ctx, &j.reader, err);
    if (!rc) {
        const struct slu_flow_cfg cfg = {
            .reader = j.reader,
            .names = names,
            .ctx = &j.flow,
            .begin = begin,
            .budget_byte =
                s ? memory / 4 * 3 : memory - pack_balance_share(ctx, &o->balance),
            /* The keys of short documents take more memory than their tokens. */
            .n_slots = cli_slots(ctx, memory / (o->order == 1 ? 8 : 4))};
        rc = cli_flow_run(ctx, cfg, o->save_plan, &r, err);
    }
    j.packing = j.flow.packing;
    if (!rc)
        rc = pack_end(&j, &r, err);
    release(&j);
    slu_names_free(names);
    return rc;
}

static const struct slu_flow_spec *flow(const struct cli_ctx *ctx)
{
    (void)ctx;
    return &slu_pack_flow_spec;
}

/* A token, its share of the list of waiting runs, and with --order related its keys. */
static uint64_t tok_byte(const struct cli_ctx *ctx)
{
    const struct pack_opts *o = ctx->opts;
    return o->order ? 28 : 8;
}

const struct slu_tool pack_tool = {
    .name = "pack",
    .synopsis = "[--length L] [--method METHOD] [--buckets LIST] "
                "[--padding-threshold FRACTION]\n"
                "[--long split|drop|error] [--fill pad|drop]\n"
                "[--order plan|related] [--max-segments N] [--mix-domains] [--plan]\n"
                "[--save-plan FILE | --apply-plan FILE]\n"
                "[--balance N [--balance-sequences M | --balance-tokens N]\n"
                " [--balance-cost A,B] [--balance-window N]] [-o FILE] [STREAM ...]\n"
                "--stage count|plan|scatter|gather --work DIR [--part I/N]\n"
                "[--ranges R] [OPTION ...] [-o FILE] [STREAM ...]",
    .summary =
        "Joins sequences that have no bucket's length into sequences that have one.",
    .opt = options,
    .opts_size = sizeof(struct pack_opts),
    .defaults = defaults,
    .reads_stream = true,
    .masks = true,
    .tok_byte = tok_byte,
    .memory_floor = 32 << 20,
    .check_part = pack_check_part,
    .flow = flow,
    .flow_at = AT(flow),
    .inputs = cli_flow_inputs,
    .beside = cli_flow_beside,
    .spills = true,
    .uses_device = true,
    .examples = "  decompose docs.tks | pack -o packed.tks\n"
                "  pack --length 4096 --plan docs.tks",
    .run = run,
};
