/* schedule: from a shard set's counts to the trainer's arguments. */
#include <string.h>

#include "formats/manifests.h"
#include "tools/cli.h"

static const char *const trainers[] = {"openlm", NULL};

struct opts {
    const char *curriculum;
    uint64_t tokens, epochs, batch_tokens, world, workers;
    int trainer;
};

#define AT(field) offsetof(struct opts, field)
static const struct cli_opt options[] = {
    {"curriculum", 0, CLI_STRING, AT(curriculum), "NAME|ODDS",
     "natural, uniform, grow-linear, grow-p2, grow-p100, shrink-linear,\n"
     "shrink-p2, shrink-p100, or odds with commas between, shortest bucket\n"
     "first; default grow-p2",
     NULL, true, NULL},
    {"tokens", 0, CLI_COUNT, AT(tokens), "N",
     "tokens of the whole training; default: what the shards have", NULL, true, NULL},
    {"epochs", 0, CLI_COUNT, AT(epochs), "N",
     "checkpoints, each after a whole curriculum; default 1", NULL, true, NULL},
    {"batch-tokens", 0, CLI_COUNT, AT(batch_tokens), "N",
     "tokens of a step over all GPUs; checked, and written for the trainer", NULL, true,
     NULL},
    {"world", 0, CLI_COUNT, AT(world), "N", "GPUs; default 1", NULL, true, NULL},
    {"workers", 0, CLI_COUNT, AT(workers), "N",
     "loader processes of each GPU; default 1", NULL, true, NULL},
    {"trainer", 0, CLI_CHOICE, AT(trainer), "openlm",
     "whose arguments to write; default openlm", trainers, true, NULL},
    {0},
};

static void defaults(void *p)
{
    struct opts *o = p;
    o->curriculum = "grow-p2";
    o->epochs = o->world = o->workers = 1;
}

/* What was rounded and what stays out, for --stats and, with -v, for people. */
static void report(struct cli_ctx *ctx, const struct slu_bucket_counts *s,
                   const struct slu_openlm *o)
{
    const struct opts *opts = ctx->opts;
    struct slu_buf b = SLU_BUF_INIT;
    if (s->n_empty)
        cli_warn(ctx,
                 "manifests that name no sequences, whose buckets are left out: %zu",
                 s->n_empty);
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
        cli_note(ctx,
                 "%llu tokens cannot be had in whole shards; an epoch has %llu, the "
                 "training %llu",
                 (unsigned long long)o->tokens, (unsigned long long)o->tokens_per_epoch,
                 (unsigned long long)(o->tokens_per_epoch * o->epochs));
}

static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct opts *o = ctx->opts;
    struct slu_bucket_counts set;
    struct slu_openlm plan = {0};
    struct slu_buf text = SLU_BUF_INIT;
    int rc = SLU_OK;

    if (!ctx->n_input)
        return slu_fail(err, SLU_E_USAGE,
                        "name a shard set, or the manifests of its buckets");
    slu_bucket_counts_init(&set);
    for (size_t i = 0; i < ctx->n_input && !rc; i++)
        rc = slu_manifests_add(&set, ctx->input[i], err);
    struct slu_openlm_cfg cfg = {o->tokens,  o->epochs,       o->world,
                                 o->workers, o->batch_tokens, o->curriculum};
    if (!rc)
        rc = slu_openlm_plan(&plan, &set, &cfg, err);
    if (!rc)
        rc = slu_openlm_text(&plan, &set, &text, err);
    if (!rc)
        rc = slu_out_whole(ctx->common.output, text.data, text.len, err);
    if (!rc)
        report(ctx, &set, &plan);
    slu_buf_release(&text);
    slu_openlm_release(&plan);
    slu_bucket_counts_release(&set);
    return rc;
}

const struct slu_tool slu_tool = {
    .name = "schedule",
    .synopsis =
        "[--curriculum NAME|ODDS] [--tokens N] [--epochs N] [--batch-tokens N]\n"
        "[--world N] [--workers N] [--trainer openlm] [-o FILE] DIR|MANIFEST ...",
    .summary = "Says how a trainer is to draw from the buckets of a shard set.",
    .opt = options,
    .opts_size = sizeof(struct opts),
    .defaults = defaults,
    .plain_output = true,
    .examples =
        "  schedule --tokens 28795904000 --epochs 8 --world 8 -o args.txt shards\n"
        "  xargs torchrun -m open_lm.main <args.txt",
    .run = run,
};
