/* forget.c - forget: takes documents out of a finished set of shards. The work is in
 * formats/shards/forget.h; here are the options, the list of what goes, and the steps of
 * a schedule that had it. */
#include <stdlib.h>
#include <string.h>

#include "formats/schedule/schedulefile.h"
#include "formats/shards/forget.h"
#include "lib/base/io.h"
#include "lib/base/json_write.h"
#include "tools/cli/cli.h"
#include "tools/cli/cli_list.h"

struct opts {
    struct cli_list ids_drop;
    uint64_t pad;
    const char *where, *list, *schedule;
    bool accept_mismatch;
};

#define AT(field) offsetof(struct opts, field)
static const struct cli_opt options[] = {
    {"ids-drop", 0, CLI_FILE, AT(ids_drop.file), "FILE",
     "take out documents with the records' ids in FILE, one a line"},
    {"where", 0, CLI_STRING, AT(where), "EXPR",
     "take out documents of which EXPR is true, over their metadata,\n"
     "domain, source, id and score: 'licence == \"gpl-3.0\"'"},
    {
        "pad-id",
        0,
        CLI_COUNT,
        AT(pad),
        "N",
        "id in the place of their tokens; default: the tokenizer's padding",
    },
    {"list", 0, CLI_OUTPUT, AT(list), "FILE",
     "write a line of JSON to FILE for each run of tokens that goes",
     .effect = CLI_NOTHING},
    {"schedule", 0, CLI_INPUT, AT(schedule), "FILE",
     "with --list: name the steps of this schedule that have them",
     .effect = CLI_BYTES},
    {"accept-mismatch", 0, CLI_FLAG, AT(accept_mismatch), NULL,
     "write padding that the trainer finds by its id alone"},
    {0},
};

static void defaults(void *opts)
{
    ((struct opts *)opts)->pad = SLU_NO_TOKEN;
}

/* ---- the steps that have a sequence ---- */

/* A sequence that changes, and a step that takes it. */
struct use {
    uint64_t length, sequence, step;
};
struct uses {
    struct use *use;
    size_t n, cap, at;                 /* at: the first one that is not listed yet */
    uint8_t *changes[SLU_MAX_BUCKETS]; /* of each bucket of the schedule, a bit for each
                                          sequence */
    const struct slu_steps_info *info;
};

static int compare_uses(const void *a, const void *b)
{
    const struct use *x = a, *y = b;

    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

/* Notes that the sequence changes. */
static int note(void *ctx, const struct slu_forget_segment *s, struct slu_err *err)
{
    struct uses *u = ctx;

    (void)err;
    for (size_t b = 0; b < u->info->n_bucket; b++)
        if (u->info->bucket[b].length == s->length &&
            s->sequence < u->info->bucket[b].sequences)
            u->changes[b][s->sequence / 8] |= (uint8_t)(1U << s->sequence % 8);
    return SLU_OK;
}

static int note_step(struct uses *u, const struct slu_train_step *t, uint64_t k,
                     struct slu_err *err)
{
    const struct slu_steps_bucket *b = &u->info->bucket[t->bucket];
    int rc = SLU_OK;

    for (uint64_t i = 0; i < b->per_step && !rc; i++) {
        uint64_t n = slu_steps_sequence(u->info, t->bucket, t->first * b->unit + i);
        if (!(u->changes[t->bucket][n / 8] >> n % 8 & 1))
            continue;
        rc = slu_grow(&u->use, &u->cap, u->n + 1, sizeof *u->use, err);
        if (!rc)
            u->use[u->n++] = (struct use){b->length, n, k};
    }
    return rc;
}

static int read_schedule(struct cli_ctx *ctx, struct slu_forget *f,
                         struct slu_schedulefile *file, struct uses *u,
                         struct slu_err *err)
{
    enum { STEPS = 1024 };
    struct slu_train_step step[STEPS];
    const struct opts *o = ctx->opts;
    struct slu_buf places = SLU_BUF_INIT;
    uint64_t k = slu_schedulefile_first(file);
    size_t n = 1;
    bool sure = true;
    int rc = slu_forget_put_places(f, &places, err);

    u->info = slu_schedulefile_info(file);
    if (!rc)
        rc = slu_buf_append(&places, "", 1, err);
    if (!rc)
        rc = slu_schedulefile_of(u->info, o->schedule, (const char *)places.data,
                                 ctx->input[0], &sure, err);
    slu_buf_release(&places);
    if (!rc && u->info->n_bucket > SLU_MAX_BUCKETS)
        rc = slu_fail(err, SLU_E_MISMATCH, "%s: has more buckets than %s", o->schedule,
                      ctx->input[0]);
    if (!rc && !sure)
        cli_warn(ctx,
                 "%s: %s; if its order is not that of %s, the steps in --list are "
                 "those of other sequences",
                 o->schedule,
                 u->info->seal
                     ? "was made for a set of the same contents in other files"
                     : "was made by an earlier version, and does not say in "
                       "which order its set is",
                 ctx->input[0]);
    for (size_t b = 0; b < u->info->n_bucket && !rc; b++) {
        u->changes[b] = calloc(u->info->bucket[b].sequences / 8 + 1, 1);
        if (!u->changes[b])
            rc = slu_fail_nomem(err, u->info->bucket[b].sequences / 8 + 1);
    }
    if (!rc)
        rc = slu_forget_each(f, note, u, err);
    while (!rc && n) {
        rc = slu_schedulefile_next(file, step, STEPS, &n, err);
        for (size_t i = 0; i < n && !rc; i++)
            rc = note_step(u, &step[i], k++, err);
    }
    if (u->n)
        qsort(u->use, u->n, sizeof *u->use, compare_uses);
    return rc;
}

/* ---- the list ---- */

struct list {
    struct slu_out *out;
    struct slu_buf line;
    const struct uses *uses; /* NULL: no schedule */
};

static int put_steps(struct slu_buf *t, const struct uses *u,
                     const struct slu_forget_segment *s, struct slu_err *err)
{
    const struct use first = {s->length, s->sequence, 0};
    size_t lo = 0, hi = u->n;
    int rc = slu_buf_printf(t, err, ", \"steps\": [");

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_uses(&u->use[mid], &first) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t i = lo; i < u->n && u->use[i].length == s->length &&
                        u->use[i].sequence == s->sequence && !rc;
         i++)
        rc = slu_buf_printf(t, err, "%s%llu", i > lo ? ", " : "",
                            (unsigned long long)u->use[i].step);
    return rc ? rc : slu_buf_append(t, "]", 1, err);
}

static int list_segment(void *ctx, const struct slu_forget_segment *s,
                        struct slu_err *err)
{
    struct list *l = ctx;
    struct slu_buf *t = &l->line;
    int rc;

    slu_buf_clear(t);
    rc = slu_buf_printf(t, err, "{\"id\": ");
    if (!rc)
        rc = slu_json_put_string(t, (const char *)s->id, s->seg->id_len, err);
    if (!rc)
        rc = slu_buf_printf(t, err, ", \"source\": ");
    if (!rc)
        rc = slu_json_put_string(t, s->source ? s->source : "",
                                 s->source ? strlen(s->source) : 0, err);
    if (!rc)
        rc = slu_buf_printf(
            t, err,
            ", \"document\": %llu, \"offset\": %llu, \"tokens\": %llu, \"bucket\": "
            "\"%s\", \"sequence\": %llu, \"shard\": %llu",
            (unsigned long long)s->seg->document, (unsigned long long)s->seg->offset,
            (unsigned long long)s->seg->len_tok, s->bucket,
            (unsigned long long)s->sequence, (unsigned long long)s->shard);
    if (!rc && l->uses)
        rc = put_steps(t, l->uses, s, err);
    if (!rc)
        rc = slu_buf_append(t, "}\n", 2, err);
    return rc ? rc : slu_out_write(l->out, t->data, t->len, err);
}

static int write_list(struct cli_ctx *ctx, struct slu_forget *f, struct slu_err *err)
{
    const struct opts *o = ctx->opts;
    struct slu_schedulefile *file = NULL;
    struct uses u = {0};
    struct list l = {.line = SLU_BUF_INIT, .uses = o->schedule ? &u : NULL};
    int rc = o->schedule ? slu_schedulefile_open(&file, o->schedule, err) : SLU_OK;

    if (!rc && file)
        rc = read_schedule(ctx, f, file, &u, err);
    if (!rc)
        rc = slu_out_open(&l.out, o->list, err);
    if (!rc)
        rc = slu_forget_each(f, list_segment, &l, err);
    if (!rc)
        rc = slu_out_close(l.out, err);
    else
        slu_out_abort(l.out);
    for (size_t b = 0; b < SLU_MAX_BUCKETS; b++)
        free(u.changes[b]);
    free(u.use);
    slu_buf_release(&l.line);
    slu_schedulefile_free(file);
    return rc;
}

/* ---- the set ---- */

struct job {
    struct cli_ctx *ctx;
    struct slu_forget *forget;
    struct slu_shards *shards;
    uint64_t tok;
};

static int source(void *ctx, struct slu_pipe *pipe, struct slu_batch *b,
                  struct slu_err *err)
{
    struct job *j = ctx;
    int rc = slu_forget_source(j->forget, pipe, b, err);

    j->tok += rc ? 0 : b->n_tok;
    cli_progress(j->ctx, 0, j->tok);
    return rc;
}

static int open_shards(struct job *j, struct slu_err *err)
{
    struct cli_ctx *ctx = j->ctx;
    const struct opts *o = ctx->opts;
    struct slu_header h, mine;
    struct slu_shards_cfg cfg = {.dir = ctx->common.output,
                                 .tmpdir = ctx->common.tmpdir,
                                 .accept_mismatch = o->accept_mismatch,
                                 .zstd_level = ctx->common.zstd_level,
                                 .memory_byte = ctx->common.memory / 2 + (24 << 20)};

    struct slu_made made;
    slu_header_init(&h);
    slu_header_init(&mine);
    int rc = slu_forget_cfg(j->forget, o->pad, &cfg, &h, err);
    if (!rc)
        rc = cli_stream_header(ctx, &h, &mine, err);
    cfg.header = &mine;
    if (!rc) {
        rc = cli_made(ctx, &made, CLI_OF_STAGES, err);
        cfg.made = &made;
        if (!rc)
            rc = slu_shards_new(&j->shards, &cfg, err);
        slu_made_release(&made);
    }
    slu_header_release(&h);
    slu_header_release(&mine);
    return rc;
}

/* Notes in report.json what was taken out. */
static int report(struct job *j, struct slu_err *err)
{
    const struct opts *o = j->ctx->opts;
    const struct slu_forget_result *r = slu_forget_result(j->forget);
    const struct slu_idset *ids = o->ids_drop.set;
    const struct {
        const char *name;
        uint64_t n;
    } of[] = {{"documents", r->gone.documents},
              {"segments", r->segments},
              {"tokens", r->gone.tokens},
              {"sequences", r->sequences},
              {"emptied_sequences", r->emptied},
              {"shards", r->shards},
              {"of_shards", r->of_shards},
              {"ids", ids ? slu_idset_count(ids) : 0},
              {"ids_found", r->ids}};
    struct slu_buf t = SLU_BUF_INIT;
    int rc = slu_buf_append(&t, "{", 1, err);

    for (size_t i = 0; i < sizeof of / sizeof *of && !rc; i++) {
        cli_stat_u64(j->ctx, of[i].name, of[i].n);
        rc = slu_buf_printf(&t, err, "\"%s\": %llu, ", of[i].name,
                            (unsigned long long)of[i].n);
    }
    if (!rc)
        rc = slu_buf_printf(&t, err, "\"same_places\": ");
    if (!rc)
        rc = slu_forget_put_places(j->forget, &t, err);
    if (!rc)
        rc = slu_buf_append(&t, "}", 2, err);
    if (!rc)
        rc = slu_shards_report_add(j->shards, "forgotten", (const char *)t.data, err);
    slu_buf_release(&t);
    return rc;
}

/* out: what was written; NULL: the set is there already. */
static void count(struct job *j, const struct slu_sum *out)
{
    struct slu_account *l = &j->ctx->account;
    const struct slu_forget_result *r = slu_forget_result(j->forget);

    l->masks = slu_shards_bucket(j->shards, 0)->masks;
    l->padding = r->gone.tokens;
    slu_count_add(&l->in, r->in.n);
    struct slu_count by_id = r->gone;
    slu_count_sub(&by_id, r->gone_where);
    if (by_id.tokens)
        slu_account_drop(l, "ids-drop", by_id);
    if (r->gone_where.tokens)
        slu_account_drop(l, "where", r->gone_where);
    l->out = out ? out->n : r->in.n;
    l->out.documents -= out ? 0 : r->gone.documents;
    l->out.loss_tokens -= out ? 0 : r->gone.loss_tokens;
}

static int finish(struct job *j, struct slu_err *err)
{
    struct slu_account *l = &j->ctx->account;
    struct slu_step_list steps = SLU_STEPS_INIT;

    count(j, slu_shards_sum(j->shards));
    int rc = slu_account_check(l, err);
    if (!rc)
        rc = slu_forget_steps(j->forget, &j->ctx->steps, err);
    if (!rc)
        rc = cli_steps(j->ctx, l, &steps, err);
    if (!rc)
        rc = slu_shards_set_steps(j->shards, &steps, err);
    slu_steps_release(&steps);
    if (!rc)
        rc = report(j, err);
    return rc ? rc : slu_shards_finish(j->shards, j->ctx->tool->name, l, err);
}

static void say(struct job *j)
{
    struct cli_ctx *ctx = j->ctx;
    const struct opts *o = ctx->opts;
    const struct slu_forget_result *r = slu_forget_result(j->forget);
    const uint64_t n = o->ids_drop.set ? slu_idset_count(o->ids_drop.set) : 0;
    struct slu_buf note = SLU_BUF_INIT;

    cli_warn(
        ctx,
        "%llu document%s and %llu token%s are out of %llu sequence%s, in %llu of %llu "
        "shard%s",
        (unsigned long long)r->gone.documents, slu_plural(r->gone.documents),
        (unsigned long long)r->gone.tokens, slu_plural(r->gone.tokens),
        (unsigned long long)r->sequences, slu_plural(r->sequences),
        (unsigned long long)r->shards, (unsigned long long)r->of_shards,
        slu_plural(r->of_shards));
    if (r->ids < n)
        cli_warn(ctx, "%llu of %llu id%s in %s %s of no document in %s",
                 (unsigned long long)(n - r->ids), (unsigned long long)n, slu_plural(n),
                 o->ids_drop.file.path, n - r->ids == 1 ? "is" : "are", ctx->input[0]);
    cli_warn(
        ctx,
        "%s still has them, and so have the streams, work files, indexes and lists "
        "of rejects that it was made with",
        ctx->input[0]);
    if (!slu_shards_inner_note(j->shards, &note, NULL) && note.len)
        cli_warn(ctx, "%.*s", (int)note.len, (const char *)note.data);
    if (slu_shards_remark(j->shards))
        cli_warn(ctx, "%s", slu_shards_remark(j->shards));
    slu_buf_release(&note);
}

static int check(const struct cli_ctx *ctx, struct slu_err *err)
{
    const struct opts *o = ctx->opts;

    if (ctx->n_input != 1)
        return slu_fail(err, SLU_E_USAGE, "name one set of shards; %zu were named",
                        ctx->n_input);
    if (!o->ids_drop.file.path && !o->where)
        return slu_fail(err, SLU_E_USAGE,
                        "--ids-drop FILE or --where EXPR is needed: the ids of the "
                        "documents to take out, or what they are");
    if (!ctx->common.output || !strcmp(ctx->common.output, "-"))
        return slu_fail(err, SLU_E_USAGE, "the new set needs a folder: -o DIR");
    if (o->schedule && !o->list)
        return slu_fail(err, SLU_E_USAGE, "--schedule needs --list FILE");
    return cli_not_below_inputs(ctx, ctx->common.output, err);
}

/* Says that nothing goes. */
static int none_goes(const struct cli_ctx *ctx, struct slu_err *err)
{
    const struct opts *o = ctx->opts;
    const uint64_t n = o->ids_drop.set ? slu_idset_count(o->ids_drop.set) : 0;

    if (!o->ids_drop.set)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: --where is true of none of its documents; nothing is "
                        "written ('inspect --records' shows their values)",
                        ctx->input[0]);
    return slu_fail(
        err, SLU_E_MISMATCH,
        "%s: none of its documents has one of the %llu id%s in %s%s; nothing "
        "is written ('inspect --records' shows ids)",
        ctx->input[0], (unsigned long long)n, slu_plural(n), o->ids_drop.file.path,
        o->where ? ", and --where is true of none" : "");
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    struct opts *o = ctx->opts;
    struct slu_expr *where = NULL;
    struct job j = {.ctx = ctx};
    uint64_t left_byte = ctx->common.memory / 4;
    int rc = check(ctx, err);

    if (!rc)
        rc = cli_list_read(&o->ids_drop, slu_idset_read, &left_byte, err);
    if (!rc && o->where && (rc = slu_expr_new(&where, o->where, err)))
        slu_err_at(err, "--where");
    cli_timing(ctx, "find");
    if (!rc)
        rc = slu_forget_open(&j.forget, ctx->input[0], o->ids_drop.set, where, err);
    if (!rc && !slu_forget_result(j.forget)->segments)
        rc = none_goes(ctx, err);
    if (!rc)
        rc = open_shards(&j, err);
    if (!rc && o->list)
        rc = write_list(ctx, j.forget, err);
    if (!rc)
        cli_pass(ctx, NULL, 0, slu_forget_result(j.forget)->in.n.tokens);
    cli_timing(ctx, "write");
    if (!rc)
        rc = slu_shards_write(j.shards, source, &j, &slu_forget_result(j.forget)->in,
                              (unsigned)ctx->common.threads,
                              cli_slots(ctx, ctx->common.memory / 4), err);
    if (rc == SLU_EOF) {
        count(&j, NULL);
        rc = slu_account_check(&ctx->account, err);
        if (!rc)
            cli_warn(ctx, "%s: the set that this command makes is there already",
                     ctx->common.output);
    } else if (!rc) {
        rc = finish(&j, err);
        if (!rc)
            say(&j);
    }
    slu_shards_free(j.shards);
    slu_forget_free(j.forget);
    slu_expr_free(where);
    cli_list_release(&o->ids_drop);
    return rc;
}

static int check_part(struct cli_ctx *ctx, struct slu_err *err)
{
    (void)ctx;
    return slu_fail(err, SLU_E_USAGE, "--part: a set is read in one run");
}

static bool prints(const void *opts)
{
    (void)opts;
    return false;
}

const struct slu_tool forget_tool = {
    .name = "forget",
    .synopsis = "[--ids-drop FILE] [--where EXPR] [--pad-id N]\n"
                "[--list FILE [--schedule FILE]] [--accept-mismatch] -o DIR SET",
    .summary = "Takes documents out of a finished set of shards: a takedown.",
    .opt = options,
    .opts_size = sizeof(struct opts),
    .defaults = defaults,
    .masks = true,
    .inner_padding = true,
    .memory_floor = 32 << 20,
    .spills = true,
    .check_part = check_part,
    .prints = prints,
    .examples =
        "  forget --ids-drop takedown.txt --list gone.jsonl -o shards-2 shards\n"
        "  forget --where 'licence == \"gpl-3.0\"' -o shards-2 shards",
    .run = run,
};
