/* steps.c - schedule --trainer generic and olmo: writes a record for each step. */
#include <stdlib.h>
#include <string.h>

#include "formats/schedule/schedulefile.h"
#include "tools/schedule/schedule.h"

enum { STEPS = 4096 }; /* written at a time */

struct target {
    struct slu_schedulefile_writer *bin, *json;
    uint64_t *written; /* steps written of each bucket */
};

static int open_targets(struct cli_ctx *ctx, struct target *t,
                        const struct slu_steps_info *info, struct slu_err *err)
{
    const struct schedule_opts *o = ctx->opts;
    int rc = SLU_OK;
    t->written = calloc(info->n_bucket, sizeof *t->written);
    if (!t->written)
        return slu_fail_nomem(err, info->n_bucket * sizeof *t->written);
    if (ctx->common.output || (!o->json && !o->olmo_cache))
        rc = slu_schedulefile_create(&t->bin, ctx->common.output, false,
                                     ctx->common.force, info, o->from_step, err);
    if (!rc && o->json)
        rc = slu_schedulefile_create(&t->json, o->json, true, false, info, o->from_step,
                                     err);
    return rc;
}

static int write_steps(struct cli_ctx *ctx, struct slu_steps *steps, struct target *t,
                       struct slu_err *err)
{
    const struct slu_steps_info *info = slu_steps_info(steps);
    const struct schedule_opts *o = ctx->opts;
    struct slu_train_step *step = malloc(STEPS * sizeof *step);
    uint64_t done = 0;
    size_t n = 1;
    int rc = step ? SLU_OK : slu_fail_nomem(err, STEPS * sizeof *step);
    cli_pass(ctx, NULL, 0, (info->total_steps - o->from_step) * info->batch_tokens);
    while (!rc && n) {
        rc = slu_steps_next(steps, step, STEPS, &n, err);
        for (size_t i = 0; i < n && !rc; i++)
            t->written[step[i].bucket]++;
        if (!rc && t->bin)
            rc = slu_schedulefile_put(t->bin, step, n, err);
        if (!rc && t->json)
            rc = slu_schedulefile_put(t->json, step, n, err);
        done += n;
        cli_progress(ctx, 0, done * info->batch_tokens);
    }
    free(step);
    return rc;
}

static struct slu_count sequences(const struct slu_steps_bucket *b, uint64_t n)
{
    return (struct slu_count){.sequences = n, .tokens = n * b->length};
}

/* Fills the account. The sequences of the set are those of the first pass and the
 * dropped ones; later passes repeat them. Written sequences were counted step by
 * step. */
static void account(struct cli_ctx *ctx, const struct slu_steps_info *info,
                    const struct target *t)
{
    static const char *const reason[] = {"fewer-than-a-step", "odds-0", "beyond-cycles",
                                         "unbalanced", "beyond-tokens"};
    for (size_t i = 0; i < info->n_bucket; i++) {
        const struct slu_steps_bucket *b = &info->bucket[i];
        uint64_t first_pass = b->sequences;
        slu_count_add(&ctx->account.in, sequences(b, b->sequences));
        for (int d = 0; d < SLU_N_DROP; d++) {
            first_pass -= b->dropped[d];
            if (b->dropped[d])
                slu_account_drop(&ctx->account, reason[d], sequences(b, b->dropped[d]));
        }
        slu_count_add(&ctx->account.repeated,
                      sequences(b, b->used_steps * b->per_step - first_pass));
        slu_count_add(&ctx->account.out, sequences(b, t->written[i] * b->per_step));
        if (b->used_steps != t->written[i] &&
            ((struct schedule_opts *)ctx->opts)->from_step)
            slu_account_drop(
                &ctx->account, "before-step",
                sequences(b, (b->used_steps - t->written[i]) * b->per_step));
    }
}

/* Returns the sequences of a bucket that each pass leaves out, or in version 2 the last
 * pass, unless --tokens ends the training sooner. */
static uint64_t left_out(const struct slu_steps_info *info, size_t i)
{
    const struct slu_steps_bucket *b = &info->bucket[i];
    if (info->version == 1)
        return b->sequences - b->runs * b->per_step;
    return b->used_steps == slu_steps_runs_before(info, i, info->epochs, 0)
               ? info->epochs * b->sequences - b->used_steps * b->per_step
               : 0;
}

/* Warns of the buckets that are not used, and of remainders, in one line. */
static void tell_left_out(struct cli_ctx *ctx, const struct slu_steps_info *info)
{
    struct slu_buf text = SLU_BUF_INIT;
    int rc = SLU_OK;
    for (size_t i = 0; i < info->n_bucket && !rc; i++) {
        const struct slu_steps_bucket *b = &info->bucket[i];
        if (b->sequences && !b->used_steps && !b->dropped[SLU_DROP_TOKENS])
            cli_warn(ctx, "the bucket of %llu is not used: %s",
                     (unsigned long long)b->length,
                     b->dropped[SLU_DROP_ODDS]      ? "its odds are 0"
                     : b->dropped[SLU_DROP_BALANCE] ? "another bucket has no step"
                     : b->dropped[SLU_DROP_CYCLES]
                         ? "it has less than one step for each cycle"
                         : "it has fewer sequences than a step takes");
        else if (b->sequences && left_out(info, i))
            rc = slu_buf_printf(
                &text, NULL, "%s%llu of %llu of %llu tokens", text.len ? ", " : "",
                (unsigned long long)left_out(info, i), (unsigned long long)b->sequences,
                (unsigned long long)b->length);
    }
    if (!rc && text.len)
        cli_warn(ctx,
                 "%s leaves out sequences, because whole steps do not take them: %s; "
                 "smaller steps (--batch-tokens) leave out fewer",
                 info->version == 2  ? "the last epoch"
                 : info->epochs == 1 ? "the epoch"
                                     : "each epoch",
                 (char *)text.data);
    slu_buf_release(&text);
}

static void tell(struct cli_ctx *ctx, const struct slu_steps_info *info,
                 const struct slu_steps *steps)
{
    for (size_t i = 0; i < info->n_bucket; i++) {
        const struct slu_steps_bucket *b = &info->bucket[i];
        if (b->sequences && b->runs)
            cli_note(ctx, "%llu tokens: %llu sequence%s to a step, %llu step%s %s",
                     (unsigned long long)b->length, (unsigned long long)b->per_step,
                     slu_plural(b->per_step), (unsigned long long)b->runs,
                     slu_plural(b->runs),
                     info->version == 2 ? "in the first pass" : "a pass");
    }
    tell_left_out(ctx, info);
    if (slu_steps_olmo_faults(steps))
        cli_warn(ctx,
                 "OLMo-core's rounding deals out more steps than there are in %llu of "
                 "the buckets; OLMo-core's loader then stops with an assertion, and "
                 "this schedule has fewer steps in the last sub-cycles instead",
                 (unsigned long long)slu_steps_olmo_faults(steps));
    cli_note(ctx, "%llu step%s of %llu token%s", (unsigned long long)info->total_steps,
             slu_plural(info->total_steps), (unsigned long long)info->batch_tokens,
             slu_plural(info->batch_tokens));
}

static void stats(struct cli_ctx *ctx, const struct slu_steps_info *info)
{
    const struct schedule_opts *o = ctx->opts;
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_buf_append(&b, "{", 1, NULL);
    if (!rc)
        rc = slu_schedulefile_put_json(&b, info, o->from_step,
                                       info->total_steps - o->from_step, NULL);
    if (!rc && !slu_buf_append(&b, "}", 2, NULL))
        cli_stat_json(ctx, "schedule", (const char *)b.data);
    slu_buf_release(&b);
}

int schedule_steps(struct cli_ctx *ctx, const struct slu_bucket_counts *s,
                   struct slu_err *err)
{
    const struct schedule_opts *o = ctx->opts;
    bool olmo = o->trainer == TRAINER_OLMO,
         eight = olmo && strcmp(o->curriculum, "natural") != 0;
    struct slu_steps_cfg cfg = {
        .method = olmo ? SLU_STEPS_OLMO : SLU_STEPS_GENERIC,
        .curriculum = o->curriculum,
        .seed = ctx->common.seed,
        .cycles = o->cycles != UINT64_MAX ? o->cycles
                  : eight                 ? 8
                                          : 1,
        .epochs = o->epochs == UINT64_MAX ? 0 : o->epochs,
        .tokens = o->tokens,
        .batch_tokens = o->batch_tokens,
        .world = o->world,
        .balanced = o->balanced,
        .reorder = o->reorder,
        .bricks = o->bricks,
        .fixed = o->olmo_cache != NULL, /* that loader permutes the batches itself */
        .memory_byte = ctx->common.memory,
    };
    struct slu_steps *steps = NULL;
    struct target t = {0};
    int rc = o->olmo_cache ? schedule_olmo_cache(ctx, s, &cfg, err) : SLU_OK;
    if (!rc)
        rc = slu_steps_new(&steps, s, &cfg, err);
    if (!rc)
        rc = slu_steps_seek(steps, o->from_step, err);
    if (!rc)
        rc = open_targets(ctx, &t, slu_steps_info(steps), err);
    if (!rc)
        rc = write_steps(ctx, steps, &t, err);
    if (!rc) {
        account(ctx, slu_steps_info(steps), &t);
        rc = slu_account_check(&ctx->account, err);
    }
    if (!rc && t.bin) {
        rc = slu_schedulefile_close(t.bin, err);
        t.bin = NULL;
    }
    if (!rc && t.json) {
        rc = slu_schedulefile_close(t.json, err);
        t.json = NULL;
    }
    if (!rc) {
        tell(ctx, slu_steps_info(steps), steps);
        stats(ctx, slu_steps_info(steps));
    }
    slu_schedulefile_abort(t.bin);
    slu_schedulefile_abort(t.json);
    free(t.written);
    slu_steps_free(steps);
    return rc;
}
