/* olmo.c - schedule --olmo-cache: writes the order of our schedule to the files in
 * which OLMo-core's loader looks for its own order. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/olmo/olmo_cache.h"
#include "formats/shards/shardset.h"
#include "lib/schedule/schedule_steps.h"
#include "tools/schedule/schedule.h"

struct order {
    struct slu_steps *steps;
    uint64_t *base; /* number of each bucket's first batch */
};

/* Converts steps to the loader's numbers of batches. */
static int next_batches(void *arg, uint32_t *batch, size_t cap, size_t *n,
                        struct slu_err *err)
{
    struct order *o = arg;
    const struct slu_steps_info *info = slu_steps_info(o->steps);
    struct slu_train_step step[256];
    int rc = slu_steps_next(o->steps, step, cap < 256 ? cap : 256, n, err);
    for (size_t i = 0; !rc && i < *n; i++) {
        const struct slu_steps_bucket *b = &info->bucket[step[i].bucket];
        batch[i] = (uint32_t)(o->base[step[i].bucket] + step[i].first / b->per_step);
    }
    return rc;
}

/* Checks that all buckets take part, because the loader counts every batch of every
 * bucket. */
static int check_steps(const struct slu_steps_info *info, struct slu_err *err)
{
    for (size_t i = 0; i < info->n_bucket; i++)
        if (info->bucket[i].dropped[SLU_DROP_ODDS])
            return slu_fail(err, SLU_E_MISMATCH,
                            "--olmo-cache: OLMo-core's loader counts the batches of "
                            "every bucket, and the odds of the bucket of %llu are 0; "
                            "give it odds, or make a set without it",
                            (unsigned long long)info->bucket[i].length);
    return info->pass_steps <= UINT32_MAX
               ? SLU_OK
               : slu_fail(err, SLU_E_LIMIT,
                          "--olmo-cache: %llu steps in a pass are more than "
                          "OLMo-core can number",
                          (unsigned long long)info->pass_steps);
}

static int write_orders(const struct slu_bucket_counts *s,
                        const struct slu_steps_cfg *cfg, const char *work,
                        const struct slu_olmo_set *set,
                        const struct slu_olmo_curriculum *c, struct slu_err *err)
{
    struct order o = {0};
    struct slu_steps_cfg whole = *cfg;
    int rc = slu_steps_new(&o.steps, s, cfg, err);
    if (rc)
        return rc;
    whole.epochs = slu_steps_info(o.steps)->epochs;
    /* The loader requires whole passes; the trainer knows where to stop. */
    if (cfg->tokens) {
        slu_steps_free(o.steps);
        whole.tokens = 0;
        rc = slu_steps_new(&o.steps, s, &whole, err);
    }
    const struct slu_steps_info *info = rc ? NULL : slu_steps_info(o.steps);
    if (!rc)
        rc = check_steps(info, err);
    if (!rc && !(o.base = calloc(info->n_bucket, sizeof *o.base)))
        rc = slu_fail_nomem(err, info->n_bucket * sizeof *o.base);
    for (size_t i = 1; !rc && i < info->n_bucket; i++)
        o.base[i] = o.base[i - 1] + info->bucket[i - 1].runs;
    for (uint64_t e = 0; !rc && e < whole.epochs; e++) {
        struct slu_olmo_order order = {.batch_tokens = cfg->batch_tokens,
                                       .epoch = e + 1,
                                       .seed = cfg->seed,
                                       .n_batch = info->pass_steps,
                                       .next = next_batches,
                                       .arg = &o};
        rc = slu_olmo_write_order(work, set, c, &order, err);
    }
    free(o.base);
    slu_steps_free(o.steps);
    return rc;
}

/* Describes the set: its buckets, and the tokenizer in its header. */
static int describe(struct cli_ctx *ctx, const struct slu_bucket_counts *s,
                    struct slu_olmo_set *set, struct slu_olmo_bucket *bucket,
                    struct slu_err *err)
{
    const struct schedule_opts *o = ctx->opts;
    struct slu_shardset *shards = NULL;
    struct stat in, out;
    if (ctx->n_input != 1 || !s->from_report)
        return slu_fail(err, SLU_E_USAGE,
                        "--olmo-cache takes one set, the folder that shuffle --format "
                        "olmo wrote");
    if (!stat(ctx->input[0], &in) && !stat(o->olmo_cache, &out) &&
        in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return slu_fail(err, SLU_E_USAGE,
                        "--olmo-cache %s: this is the set itself; name a folder of its "
                        "own, as %s/olmo-cache",
                        o->olmo_cache, ctx->input[0]);
    int rc = slu_shardset_open(&shards, ctx->input[0], err);
    if (rc)
        return rc;
    const struct slu_header *h = slu_shardset_header(shards);
    set->tok_bytes = h->tok_bytes;
    set->vocab_size = h->vocab_size;
    set->eos = h->eos;
    set->pad = h->pad != SLU_NO_TOKEN || h->inner_padding ? h->pad : h->eos;
    if (strcmp(slu_shardset_format(shards), "olmo") || h->label_tokens)
        rc = slu_fail(err, SLU_E_MISMATCH, "%s: %s; --olmo-cache is for sets of %s",
                      ctx->input[0],
                      h->label_tokens ? "its sequences have label tokens"
                                      : slu_shardset_format(shards),
                      "shuffle --format olmo");
    slu_shardset_free(shards);
    for (size_t i = 0; i < s->n_bucket && i < SLU_MAX_BUCKETS; i++)
        bucket[set->n_bucket++] = (struct slu_olmo_bucket){
            s->bucket[i].length, slu_bucket_sequences(&s->bucket[i]),
            s->bucket[i].seq_per_shard};
    if (!rc && o->olmo_tokenizer)
        rc = slu_olmo_tokenizer(set, o->olmo_tokenizer, err);
    return rc;
}

int schedule_olmo_cache(struct cli_ctx *ctx, const struct slu_bucket_counts *s,
                        const struct slu_steps_cfg *cfg, struct slu_err *err)
{
    const struct schedule_opts *o = ctx->opts;
    struct slu_olmo_bucket bucket[SLU_MAX_BUCKETS];
    struct slu_olmo_set set = {.bucket = bucket};
    struct slu_olmo_curriculum c = {SLU_OLMO_NATURAL, cfg->cycles, cfg->balanced};
    char *prefix = NULL, name[SLU_OLMO_NAME];
    if (cfg->bricks)
        return slu_fail(err, SLU_E_USAGE,
                        "--bricks and --olmo-cache cannot be combined: bricks are for "
                        "loaders of samples of one size, and OLMo-core's loader takes "
                        "sequences of several lengths");
    if (cfg->method == SLU_STEPS_OLMO && strcmp(cfg->curriculum, "natural"))
        c.kind = strcmp(cfg->curriculum, "grow-p2") ? SLU_OLMO_LINEAR : SLU_OLMO_P2;
    int rc = describe(ctx, s, &set, bucket, err);
    if (!rc && o->olmo_path) {
        size_t n = strlen(o->olmo_path);
        while (n > 1 && o->olmo_path[n - 1] == '/')
            n--;
        prefix = strndup(o->olmo_path, n);
        rc = prefix ? SLU_OK : slu_fail_nomem(err, n);
    } else if (!rc)
        rc = slu_olmo_prefix(&prefix, ctx->input[0], err);
    set.prefix = prefix;
    if (!rc)
        rc = slu_olmo_write_index(o->olmo_cache, &set, &c, err);
    if (!rc)
        rc = write_orders(s, cfg, o->olmo_cache, &set, &c, err);
    slu_olmo_curriculum_name(&c, name);
    if (!rc)
        cli_note(
            ctx,
            "%s/%s.json has what the training's configuration must say: files, "
            "tokenizer, lengths, curriculum; and its batches have %llu tokens, its "
            "seed is %llu",
            o->olmo_cache, name, (unsigned long long)cfg->batch_tokens,
            (unsigned long long)cfg->seed);
    free(prefix);
    return rc;
}
