/* schedule.c - schedule: from the counts of a shard set to the trainer's arguments, or
 * to steps. */
#include <string.h>

#include "formats/shards/manifests.h"
#include "tools/schedule/schedule.h"

static const char *const trainers[] = {"openlm", "olmo", "generic", NULL};

#define AT(field) offsetof(struct schedule_opts, field)
/* Rows that only some trainers use; `given` has a bit for each row. */
enum { ROW_CYCLES = 3, ROW_WORKERS = 6, ROW_STEPS_ONLY = 8 };
static const struct cli_opt options[] = {
    {"curriculum", 0, CLI_STRING, AT(curriculum), "NAME|ODDS",
     "natural, uniform, grow-linear, grow-p2, grow-p100, shrink-linear,\n"
     "shrink-p2, shrink-p100, or odds with commas between, shortest bucket\n"
     "first; default grow-p2"},
    {"tokens", 0, CLI_COUNT, AT(tokens), "N",
     "tokens of the whole training; default: the tokens of the shards"},
    {"epochs", 0, CLI_COUNT, AT(epochs), "N",
     "openlm: checkpoints, each after a whole curriculum; else passes\n"
     "over the shards; default 1, or as many as --tokens need"},
    [ROW_CYCLES] = {"cycles", 0, CLI_COUNT, AT(cycles), "N",
                    "curricula in a pass, one after another; default 1, of olmo 8"},
    {"batch-tokens", 0, CLI_LENGTH, AT(batch_tokens), "N",
     "tokens of a step over all GPUs; generic and olmo require it"},
    {"world", 0, CLI_COUNT, AT(world), "N", "GPUs; default 1"},
    [ROW_WORKERS] = {"workers", 0, CLI_COUNT, AT(workers), "N",
                     "openlm: loader processes of each GPU; default 1"},
    {"trainer", 0, CLI_CHOICE, AT(trainer), "openlm|olmo|generic",
     "openlm (the default): its arguments; generic: the steps of the\n"
     "paper's algorithm; olmo: the steps that OLMo-core's loader takes",
     .choice = trainers},
    [ROW_STEPS_ONLY] = {"from-step", 0, CLI_COUNT, AT(from_step), "K",
                        "write only the steps of the whole schedule from K on"},
    {"json", 0, CLI_OUTPUT, AT(json), "FILE",
     "write the schedule to FILE, as JSON; the binary form only with -o",
     .effect = CLI_NOTHING},
    {"bricks", 0, CLI_FLAG, AT(bricks), NULL,
     "count in bricks: as many sequences as make one of the longest"},
    {"reorder", 0, CLI_FLAG, AT(reorder), NULL,
     "generic: each epoch has the same steps, in another order"},
    {"balanced", 0, CLI_FLAG, AT(balanced), NULL,
     "olmo: as many steps of each bucket as the smallest bucket has"},
    {"olmo-cache", 0, CLI_STRING, AT(olmo_cache), "W",
     "write OLMo-core's index of the set and each pass's order below the\n"
     "work folder W, and the schedule itself only with -o or --json",
     .path = true, .effect = CLI_BYTES},
    {"olmo-path", 0, CLI_STRING, AT(olmo_path), "PREFIX",
     "folder or URL of the set, as the trainer names it; default: DIR,\n"
     "made absolute",
     .effect = CLI_BYTES},
    {"olmo-tokenizer", 0, CLI_STRING, AT(olmo_tokenizer), "NAME|V,E,P",
     "the trainer's vocabulary size, EOS and padding; or dolma2,\n"
     "gpt-neox-olmo-dolma-v1_5; default: the set's own",
     .effect = CLI_BYTES},
    {0},
};

static void defaults(void *p)
{
    struct schedule_opts *o = p;
    o->curriculum = "grow-p2";
    o->epochs = o->cycles = UINT64_MAX; /* the trainer's own defaults */
    o->world = o->workers = 1;
}

/* Whole shards always differ a little from --tokens; more than 1 % is probably
 * unintended. */
static void tell_rounding(struct cli_ctx *ctx, const struct slu_openlm *o)
{
    unsigned __int128 all = (unsigned __int128)o->tokens_per_epoch * o->epochs,
                      off = all > o->tokens ? all - o->tokens : o->tokens - all;
    void (*say)(struct cli_ctx *, const char *, ...) =
        off * 100 > o->tokens ? cli_warn : cli_note;
    say(ctx,
        "%llu token%s cannot be had in whole shards; an epoch has %llu, and the "
        "training %llu epoch%s",
        (unsigned long long)o->tokens, slu_plural(o->tokens),
        (unsigned long long)o->tokens_per_epoch, (unsigned long long)o->epochs,
        slu_plural(o->epochs));
}

/* Reports rounded values and unused shards, in --stats and, with -v, as messages. */
static void report(struct cli_ctx *ctx, const struct slu_bucket_counts *s,
                   const struct slu_openlm *o)
{
    const struct schedule_opts *opts = ctx->opts;
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_buf_printf(&b, NULL, "[");
    for (size_t i = 0; i < s->n_bucket && !rc; i++) {
        const struct slu_bucket_count *n = &s->bucket[i];
        uint64_t a_round = o->bucket[i].factor * opts->world * opts->workers;
        unsigned __int128 all = (unsigned __int128)a_round * o->epochs;
        rc = slu_buf_printf(
            &b, NULL,
            "%s{\"length\": %llu, \"shards\": %llu, \"sequences_per_shard\": %llu, "
            "\"short_shards\": %llu, \"short_sequences\": %llu, \"shards_per_epoch\": "
            "%llu}",
            i ? ", " : "", (unsigned long long)n->length, (unsigned long long)n->shards,
            (unsigned long long)n->seq_per_shard, (unsigned long long)n->short_shards,
            (unsigned long long)n->short_seq, (unsigned long long)a_round);
        cli_note(ctx, "%llu tokens: %llu of %llu shards an epoch",
                 (unsigned long long)n->length, (unsigned long long)a_round,
                 (unsigned long long)n->shards);
        if (n->short_shards)
            cli_note(
                ctx,
                "%s: short shards, which the trainer drops: %llu, with %llu sequences",
                n->manifest, (unsigned long long)n->short_shards,
                (unsigned long long)n->short_seq);
        if (!o->bucket[i].factor)
            cli_warn(ctx,
                     "%s: no shard is used: too few for every worker in every epoch",
                     n->manifest);
        else if (a_round > n->shards)
            cli_warn(ctx, "%s: an epoch needs %llu shards and there are %llu",
                     n->manifest, (unsigned long long)a_round,
                     (unsigned long long)n->shards);
        else if (all > n->shards)
            cli_note(ctx, "%s: shards are read more than once", n->manifest);
    }
    if (!rc && !slu_buf_append(&b, "]", 2, NULL))
        cli_stat_json(ctx, "buckets", (const char *)b.data);
    slu_buf_release(&b);
    cli_stat_u64(ctx, "tokens_asked", o->tokens);
    cli_stat_u64(ctx, "tokens_per_epoch", o->tokens_per_epoch);
    if (!o->exact)
        tell_rounding(ctx, o);
}

static int openlm(struct cli_ctx *ctx, const struct slu_bucket_counts *set,
                  struct slu_err *err)
{
    const struct schedule_opts *o = ctx->opts;
    struct slu_openlm plan = {0};
    struct slu_buf text = SLU_BUF_INIT;
    struct slu_openlm_cfg cfg = {.tokens = o->tokens,
                                 .epochs = o->epochs == UINT64_MAX ? 1 : o->epochs,
                                 .world = o->world,
                                 .workers = o->workers,
                                 .batch_tokens = o->batch_tokens,
                                 .curriculum = o->curriculum};
    int rc = slu_openlm_plan(&plan, set, &cfg, err);
    if (!rc)
        rc = slu_openlm_text(&plan, set, &text, err);
    if (!rc)
        rc = slu_out_whole(ctx->common.output, text.data, text.len, err);
    if (!rc)
        report(ctx, set, &plan);
    slu_buf_release(&text);
    slu_openlm_release(&plan);
    return rc;
}

/* Refuses options that the trainer does not use. */
static int check_given(const struct cli_ctx *ctx, struct slu_err *err)
{
    const struct schedule_opts *o = ctx->opts;
    bool steps = o->trainer != TRAINER_OPENLM;
    for (size_t i = 0; options[i].name; i++) {
        bool steps_only = i == ROW_CYCLES || i >= ROW_STEPS_ONLY,
             openlm_only = i == ROW_WORKERS;
        if (ctx->given >> i & 1 && (steps ? openlm_only : steps_only))
            return slu_fail(err, SLU_E_USAGE, "--%s needs --trainer %s",
                            options[i].name, steps ? "openlm" : "generic or olmo");
    }
    if (o->balanced && o->trainer != TRAINER_OLMO)
        return slu_fail(err, SLU_E_USAGE, "--balanced needs --trainer olmo");
    if (!o->olmo_cache && (o->olmo_path || o->olmo_tokenizer))
        return slu_fail(err, SLU_E_USAGE,
                        "--olmo-path and --olmo-tokenizer need --olmo-cache");
    if (o->epochs == 0 || o->cycles == 0)
        return slu_fail(err, SLU_E_USAGE, "--epochs and --cycles must be at least 1");
    return slu_curriculum_check(o->curriculum, err);
}

static int check_part(struct cli_ctx *ctx, struct slu_err *err)
{
    (void)ctx;
    return slu_fail(err, SLU_E_USAGE,
                    "--part: a schedule is of the whole set; run it as one");
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct schedule_opts *o = ctx->opts;
    struct slu_bucket_counts set;

    if (!ctx->n_input)
        return slu_fail(err, SLU_E_USAGE,
                        "name a shard set, or the manifests of its buckets");
    int rc = check_given(ctx, err);
    if (rc)
        return rc;
    slu_bucket_counts_init(&set);
    for (size_t i = 0; i < ctx->n_input && !rc; i++)
        rc = slu_manifests_add(&set, ctx->input[i], err);
    if (!rc && set.n_empty)
        cli_warn(ctx,
                 "manifests that name no sequences, whose buckets are left out: %zu",
                 set.n_empty);
    if (!rc)
        schedule_warn_periods(ctx, &set);
    if (!rc)
        rc = o->trainer == TRAINER_OPENLM ? openlm(ctx, &set, err)
                                          : schedule_steps(ctx, &set, err);
    slu_bucket_counts_release(&set);
    return rc;
}

static bool prints(const void *p)
{
    const struct schedule_opts *o = p;
    return !o->json && !o->olmo_cache;
}

const struct slu_tool schedule_tool = {
    .name = "schedule",
    .synopsis =
        "[--trainer openlm|olmo|generic] [--curriculum NAME|ODDS] [--cycles N]\n"
        "[--tokens N] [--epochs N] [--batch-tokens N] [--world N] [--workers N]\n"
        "[--balanced] [--reorder] [--bricks] [--from-step K] [--json FILE]\n"
        "[--olmo-cache W [--olmo-path PREFIX] [--olmo-tokenizer NAME|V,E,P]] [-o "
        "FILE]\n"
        "DIR|MANIFEST ...",
    .summary = "Chooses the bucket and the sequences of each training step.",
    .opt = options,
    .opts_size = sizeof(struct schedule_opts),
    .defaults = defaults,
    .plain_output = true,
    .prints = prints,
    .check_part = check_part,
    .examples =
        "  schedule --tokens 28795904000 --epochs 8 --world 8 -o args.txt shards\n"
        "  xargs torchrun -m open_lm.main <args.txt\n"
        "  schedule --trainer generic --batch-tokens 512K --world 8 --cycles 8 \\\n"
        "      -o steps.sched shards && inspect steps.sched",
    .run = run,
};
