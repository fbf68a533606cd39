#include "lib/schedule/schedule_steps.h"

#include <stdlib.h>
#include <string.h>

#include "lib/schedule/epoch_order.h"
#include "lib/schedule/schedule_private.h"

#define MAX_STEPS_PASS (UINT64_C(1) << 40)

typedef unsigned __int128 u128;

struct slu_steps {
    struct slu_steps_info info;
    uint64_t at; /* number of the next step */
    uint64_t epoch, cycle;
    /* GENERIC: of the current cycle */
    uint64_t t;     /* steps already drawn */
    uint64_t *left; /* by bucket: runs left */
    uint64_t *pos;  /* by bucket: the next run, counted from the first pass */
    uint64_t total; /* sum of the live odds */
    /* OLMO */
    uint32_t *order; /* of epoch order_epoch; pass_steps elements */
    bool have_order;
    uint64_t order_epoch, faults;
};

/* ---- a new schedule ---- */

/* Adds empty buckets: OLMo-core counts all powers of two in the buckets' range. */
static int fill_gaps(struct slu_steps_info *info, struct slu_err *err)
{
    uint64_t low = info->bucket[0].length,
             high = info->bucket[info->n_bucket - 1].length;
    struct slu_steps_bucket *all;
    size_t n = 0, from = 0;
    for (size_t i = 0; i < info->n_bucket; i++)
        if (info->bucket[i].length & (info->bucket[i].length - 1))
            return slu_fail(
                err, SLU_E_MISMATCH,
                "OLMo-core reads buckets whose lengths are powers of two; %llu is not",
                (unsigned long long)info->bucket[i].length);
    for (uint64_t l = low; l <= high; l *= 2)
        n++;
    all = calloc(n, sizeof *all);
    if (!all)
        return slu_fail_nomem(err, n * sizeof *all);
    for (size_t i = 0; i < n; i++) {
        all[i].length = low << i;
        if (all[i].length == info->bucket[from].length)
            all[i] = info->bucket[from++];
    }
    free(info->bucket);
    info->bucket = all;
    info->n_bucket = n;
    return SLU_OK;
}

static int check_batch(const struct slu_steps_info *info, struct slu_err *err)
{
    for (size_t i = info->n_bucket; i-- > 0;) {
        uint64_t length = info->bucket[i].length;
        u128 unit = (u128)length * info->world;
        if (info->batch_tokens % unit || info->batch_tokens < unit)
            return slu_fail(
                err, SLU_E_USAGE,
                "a step of %llu tokens is not a multiple of the %llu tokens that one "
                "sequence of %llu takes on each of %llu rank%s; steps of all buckets "
                "and ranks would differ in tokens",
                (unsigned long long)info->batch_tokens,
                (unsigned long long)(unit > UINT64_MAX ? UINT64_MAX : (uint64_t)unit),
                (unsigned long long)length, (unsigned long long)info->world,
                slu_plural(info->world));
    }
    return SLU_OK;
}

static int check_cfg(const struct slu_steps_cfg *cfg, const struct slu_bucket_counts *s,
                     struct slu_err *err)
{
    bool natural = strcmp(cfg->curriculum, "natural") == 0;
    if (s->n_bucket == 0)
        return slu_fail(err, SLU_E_MISMATCH, "no manifest names any shard");
    if (s->n_bucket > SLU_STEPS_MAX_BUCKETS)
        return slu_fail(err, SLU_E_LIMIT, "%zu buckets; a schedule has at most %d",
                        s->n_bucket, SLU_STEPS_MAX_BUCKETS);
    if (!cfg->batch_tokens)
        return slu_advise(
            err, SLU_ADVISE_BATCH_TOKENS,
            slu_fail(err, SLU_E_USAGE, "the number of tokens in a step is not given"));
    if (!cfg->world || !cfg->cycles)
        return slu_fail(err, SLU_E_USAGE, "world and cycles must be at least 1");
    if (cfg->world > UINT32_MAX || cfg->epochs > UINT32_MAX || cfg->cycles > UINT32_MAX)
        return slu_fail(err, SLU_E_USAGE, "epochs, cycles or world are too many");
    if (cfg->method != SLU_STEPS_OLMO)
        return SLU_OK;
    if (!natural && strcmp(cfg->curriculum, "grow-p2") &&
        strcmp(cfg->curriculum, "grow-linear"))
        return slu_fail(err, SLU_E_USAGE,
                        "OLMo-core has the curricula natural, grow-p2 and grow-linear, "
                        "not %s",
                        cfg->curriculum);
    if (natural && (cfg->cycles != 1 || cfg->balanced))
        return slu_fail(err, SLU_E_USAGE,
                        "OLMo-core's natural curriculum has no cycles and no balance");
    if (cfg->reorder)
        return slu_fail(err, SLU_E_USAGE,
                        "OLMo-core draws its own order in every epoch");
    return SLU_OK;
}

/* Computes sequences per step, runs, and those left out by odds 0 or as remainder. */
static int count_runs(struct slu_steps_info *info, const uint64_t *odds,
                      struct slu_err *err)
{
    uint64_t longest = info->bucket[info->n_bucket - 1].length;
    bool zero = info->method == SLU_STEPS_GENERIC, any = false;
    for (size_t i = 0; i < info->n_bucket; i++)
        any = any || odds[i];
    if (!any)
        return slu_fail(
            err, SLU_E_USAGE,
            "curriculum: the odds of all buckets are 0, so no step can be drawn");
    for (size_t i = 0; i < info->n_bucket; i++) {
        struct slu_steps_bucket *b = &info->bucket[i];
        b->per_step = info->batch_tokens / b->length;
        b->runs = b->sequences / b->per_step;
        b->unit = 1;
        if (info->flags & SLU_STEPS_BRICKS) {
            if (longest % b->length)
                return slu_fail(
                    err, SLU_E_MISMATCH,
                    "bricks: no whole number of sequences of %llu makes one of %llu",
                    (unsigned long long)b->length, (unsigned long long)longest);
            b->unit = longest / b->length;
        }
        b->odds = odds[i];
        b->dropped[SLU_DROP_REMAINDER] = b->sequences % b->per_step;
        if (zero && !b->odds) {
            b->dropped[SLU_DROP_REMAINDER] = 0;
            b->dropped[SLU_DROP_ODDS] = b->sequences;
            b->runs = 0;
        }
    }
    return info->method == SLU_STEPS_OLMO ? slu_olmo_runs(info, err) : SLU_OK;
}

static int count_passes(struct slu_steps_info *info, struct slu_err *err)
{
    for (size_t i = 0; i < info->n_bucket; i++) {
        if (info->bucket[i].runs > MAX_STEPS_PASS)
            return slu_fail(err, SLU_E_LIMIT, "more than 2^40 steps in a pass");
        info->pass_steps += info->bucket[i].runs;
    }
    if (info->pass_steps > MAX_STEPS_PASS)
        return slu_fail(err, SLU_E_LIMIT, "more than 2^40 steps in a pass");
    if (info->pass_steps == 0)
        return slu_fail(err, SLU_E_MISMATCH,
                        "no bucket has enough sequences for a step of %llu tokens; "
                        "make smaller steps",
                        (unsigned long long)info->batch_tokens);
    if (info->cycles > info->pass_steps)
        return slu_fail(
            err, SLU_E_USAGE, "%llu cycles are more than the %llu steps of a pass",
            (unsigned long long)info->cycles, (unsigned long long)info->pass_steps);
    uint64_t wanted = info->tokens ? info->tokens / info->batch_tokens : UINT64_MAX;
    if (wanted == 0)
        return slu_fail(
            err, SLU_E_USAGE,
            "%llu tokens to train on are less than a step, which takes %llu",
            (unsigned long long)info->tokens, (unsigned long long)info->batch_tokens);
    u128 all = 0;
    if (!info->epochs) {
        info->epochs = info->tokens ? (wanted - 1) / info->pass_steps + 1 : 1;
        if (info->tokens && wanted >> 62 == 0) /* more are refused below */
            info->epochs = slu_pass_of(info, wanted - 1) + 1;
    }
    if (info->epochs == 1)
        info->version = 1;
    for (size_t i = 0; i < info->n_bucket && info->version == 2; i++)
        info->bucket[i].block = slu_epoch_block(info->bucket[i].length);
    for (size_t i = 0; i < info->n_bucket; i++)
        all += slu_passes_runs(info, &info->bucket[i], info->epochs);
    if ((u128)info->epochs * info->cycles > UINT32_MAX)
        return slu_fail(err, SLU_E_USAGE,
                        "epochs x cycles are more than 2^32 - 1; take fewer");
    if (all > wanted)
        all = wanted;
    /* so that all counts fit 64 bits */
    if (all > (UINT64_C(1) << 62) / info->batch_tokens)
        return slu_fail(err, SLU_E_LIMIT, "more than 2^62 tokens in all; take fewer");
    info->total_steps = (uint64_t)all;
    return SLU_OK;
}

/* Returns the last cycle of a pass that begins at or before step k. */
static uint64_t cycle_of(const struct slu_steps_info *info, uint64_t pass, uint64_t k)
{
    uint64_t low = 0, high = info->cycles;
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        if (slu_steps_before_cycle(info, pass, mid) <= k)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* Version 2: sequences that no pass takes. */
static void count_never(const struct slu_steps_info *info, struct slu_steps_bucket *b)
{
    uint64_t taken = b->used_steps * b->per_step;
    if (b->dropped[SLU_DROP_ODDS])
        return;
    bool any = slu_passes_runs(info, b, info->epochs) != 0;
    b->dropped[SLU_DROP_REMAINDER] = any ? 0 : b->sequences;
    b->dropped[SLU_DROP_TOKENS] =
        any && taken < b->sequences ? b->sequences - taken : 0;
}

/* Computes used_steps, and the sequences that the first pass does not reach. */
static int count_used(struct slu_steps *p, struct slu_err *err)
{
    struct slu_steps_info *info = &p->info;
    uint64_t pass = slu_pass_of(info, info->total_steps), cycle = 0;
    if (info->method == SLU_STEPS_GENERIC) /* counting whole cycles needs no draws */
        cycle = cycle_of(info, pass, info->total_steps);
    for (size_t i = 0; i < info->n_bucket; i++)
        info->bucket[i].used_steps = slu_steps_runs_before(info, i, pass, cycle);
    uint64_t at = slu_steps_before_cycle(info, pass, cycle);
    int rc = SLU_OK;
    if (at < info->total_steps)
        rc = slu_steps_seek(p, at, err);
    while (!rc && at < info->total_steps) {
        struct slu_train_step step[256];
        size_t n;
        rc = slu_steps_next(p, step, 256, &n, err);
        for (size_t i = 0; i < n; i++)
            info->bucket[step[i].bucket].used_steps++;
        at += n;
    }
    for (size_t i = 0; i < info->n_bucket; i++) {
        struct slu_steps_bucket *b = &info->bucket[i];
        if (info->version == 2)
            count_never(info, b);
        else if (!pass)
            b->dropped[SLU_DROP_TOKENS] = (b->runs - b->used_steps) * b->per_step;
    }
    return rc;
}

static int fill_info(struct slu_steps_info *info, const struct slu_bucket_counts *s,
                     const struct slu_steps_cfg *cfg, struct slu_err *err)
{
    bool natural = strcmp(cfg->curriculum, "natural") == 0;
    info->version = 1;
    if (cfg->method == SLU_STEPS_GENERIC && !cfg->fixed && !cfg->reorder &&
        !cfg->bricks)
        info->version = 2;
    info->method = cfg->method;
    info->flags =
        (natural ? SLU_STEPS_NATURAL : 0u) | (cfg->balanced ? SLU_STEPS_BALANCED : 0u) |
        (cfg->reorder ? SLU_STEPS_REORDER : 0u) | (cfg->bricks ? SLU_STEPS_BRICKS : 0u);
    const char *name =
        strchr("0123456789", cfg->curriculum[0]) ? "odds" : cfg->curriculum;
    size_t len = strlen(name);
    memcpy(info->curriculum, name, len < 15 ? len : 15);
    info->seed = cfg->seed;
    info->cycles = cfg->cycles;
    info->epochs = cfg->epochs;
    info->tokens = cfg->tokens;
    info->batch_tokens = cfg->batch_tokens;
    info->world = cfg->world;
    info->shards_digest = slu_bucket_counts_digest(s);
    info->has_checksum = s->has_checksum;
    info->checksum = s->checksum;
    info->seal = s->has_checksum ? s->seal : 0;
    info->bucket = calloc(s->n_bucket, sizeof *info->bucket);
    if (!info->bucket)
        return slu_fail_nomem(err, s->n_bucket * sizeof *info->bucket);
    info->n_bucket = s->n_bucket;
    for (size_t i = 0; i < s->n_bucket; i++) {
        info->bucket[i].length = s->bucket[i].length;
        info->bucket[i].sequences = slu_bucket_sequences(&s->bucket[i]);
    }
    return cfg->method == SLU_STEPS_OLMO ? fill_gaps(info, err) : SLU_OK;
}

static int make_room(struct slu_steps *p, uint64_t memory_byte, struct slu_err *err)
{
    const struct slu_steps_info *info = &p->info;
    if (info->method == SLU_STEPS_OLMO) {
        uint64_t need = info->pass_steps * sizeof *p->order;
        if (info->pass_steps > UINT32_MAX)
            return slu_fail(err, SLU_E_LIMIT,
                            "%llu steps in an epoch are more than OLMo-core can number",
                            (unsigned long long)info->pass_steps);
        if (memory_byte && need > memory_byte)
            return slu_advise(err, SLU_ADVISE_MEMORY,
                              slu_fail(err, SLU_E_LIMIT,
                                       "OLMo-core's order of %llu steps takes %llu MiB",
                                       (unsigned long long)info->pass_steps,
                                       (unsigned long long)(need >> 20) + 1));
        p->order = malloc(need);
        return p->order ? SLU_OK : slu_fail_nomem(err, need);
    }
    p->left = calloc(info->n_bucket, sizeof *p->left);
    p->pos = calloc(info->n_bucket, sizeof *p->pos);
    return p->left && p->pos ? SLU_OK
                             : slu_fail_nomem(err, info->n_bucket * sizeof *p->pos);
}

int slu_steps_new(struct slu_steps **steps, const struct slu_bucket_counts *s,
                  const struct slu_steps_cfg *cfg, struct slu_err *err)
{
    *steps = NULL;
    int rc = check_cfg(cfg, s, err);
    if (rc)
        return rc;
    struct slu_steps *p = calloc(1, sizeof *p);
    if (!p)
        return slu_fail_nomem(err, sizeof *p);
    uint64_t *odds = NULL;
    rc = fill_info(&p->info, s, cfg, err);
    if (!rc) {
        odds = calloc(p->info.n_bucket, sizeof *odds);
        rc = odds ? slu_curriculum_odds(cfg->curriculum, odds, p->info.n_bucket, err)
                  : slu_fail_nomem(err, p->info.n_bucket * sizeof *odds);
    }
    if (!rc)
        rc = check_batch(&p->info, err);
    if (!rc)
        rc = count_runs(&p->info, odds, err);
    if (!rc)
        rc = count_passes(&p->info, err);
    if (!rc)
        rc = make_room(p, cfg->memory_byte, err);
    if (!rc)
        rc = count_used(p, err);
    if (!rc)
        rc = slu_steps_seek(p, 0, err);
    free(odds);
    if (rc) {
        slu_steps_free(p);
        return rc;
    }
    *steps = p;
    return SLU_OK;
}

void slu_steps_free(struct slu_steps *p)
{
    if (!p)
        return;
    slu_steps_info_release(&p->info);
    free(p->left);
    free(p->pos);
    free(p->order);
    free(p);
}

const struct slu_steps_info *slu_steps_info(const struct slu_steps *p)
{
    return &p->info;
}

uint64_t slu_steps_olmo_faults(const struct slu_steps *p)
{
    return p->faults;
}

/* ---- steps ---- */

/* Permutes 0 … n - 1 by a key: a balanced Feistel network of four rounds, repeated
 * until the result is below n. */
static uint64_t reordered(const struct slu_steps_info *info, uint64_t epoch, size_t b,
                          uint64_t run)
{
    uint64_t n = info->bucket[b].runs;
    unsigned half = n > 1 ? (unsigned)(64 - __builtin_clzll(n - 1) + 1) / 2 : 1;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t l = run >> half, r = run & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t f = slu_draw(info->seed, SLU_STEPS_ORDER, epoch,
                                  (uint64_t)b << 2 | round, r);
            uint64_t t = l ^ (f & mask);
            l = r;
            r = t;
        }
        run = l << half | r;
    } while (run >= n);
    return run;
}

static void begin_cycle(struct slu_steps *p)
{
    const struct slu_steps_info *info = &p->info;
    p->t = 0;
    p->total = 0;
    for (size_t b = 0; b < info->n_bucket; b++) {
        p->pos[b] = slu_steps_runs_before(info, b, p->epoch, p->cycle);
        p->left[b] = slu_steps_runs_before(info, b, p->epoch, p->cycle + 1) - p->pos[b];
        if (info->flags & SLU_STEPS_NATURAL)
            p->total += p->left[b];
        else if (p->left[b])
            p->total += info->bucket[b].odds;
    }
}

static void end_cycle(struct slu_steps *p)
{
    if (++p->cycle == p->info.cycles) {
        p->cycle = 0;
        p->epoch++;
    }
}

/* Draws a bucket as in Algorithm 1. */
static size_t draw_bucket(const struct slu_steps *p)
{
    const struct slu_steps_info *info = &p->info;
    bool natural = info->flags & SLU_STEPS_NATURAL;
    uint64_t bits = slu_draw(info->seed, p->epoch, p->cycle, SLU_STEPS_DRAW, p->t),
             x = slu_draw_below(bits, p->total);
    size_t b = 0;
    for (;; b++) {
        uint64_t w = p->left[b] && !natural ? info->bucket[b].odds : p->left[b];
        if (x < w)
            return b;
        x -= w;
    }
}

static void generic_step(struct slu_steps *p, struct slu_train_step *out)
{
    const struct slu_steps_info *info = &p->info;
    while (p->total == 0) { /* a cycle may have no steps */
        end_cycle(p);
        begin_cycle(p);
    }
    size_t b = draw_bucket(p);
    const struct slu_steps_bucket *k = &info->bucket[b];
    uint64_t run = p->pos[b]++;
    if (info->version == 1)
        run -= p->epoch * k->runs;
    if (info->flags & SLU_STEPS_REORDER && p->epoch)
        run = reordered(info, p->epoch, b, run);
    out->bucket = (uint32_t)b;
    out->cycle = (uint32_t)(p->epoch * info->cycles + p->cycle);
    out->first = run * (k->per_step / k->unit);
    p->left[b]--;
    p->t++;
    if (info->flags & SLU_STEPS_NATURAL)
        p->total--;
    else if (p->left[b] == 0)
        p->total -= k->odds;
}

static int olmo_step(struct slu_steps *p, struct slu_train_step *out,
                     struct slu_err *err)
{
    const struct slu_steps_info *info = &p->info;
    uint64_t epoch = p->at / info->pass_steps, in_pass = p->at % info->pass_steps;
    if (!p->have_order || p->order_epoch != epoch) {
        p->faults = 0;
        int rc = slu_olmo_order(info, epoch, p->order, &p->faults, err);
        if (rc)
            return rc;
        p->have_order = true;
        p->order_epoch = epoch;
    }
    uint64_t batch = p->order[in_pass];
    size_t b = 0;
    for (; batch >= info->bucket[b].runs; b++)
        batch -= info->bucket[b].runs;
    const struct slu_steps_bucket *k = &info->bucket[b];
    out->bucket = (uint32_t)b;
    out->cycle =
        (uint32_t)(epoch * info->cycles + in_pass / (info->pass_steps / info->cycles));
    out->first = batch * (k->per_step / k->unit);
    return SLU_OK;
}

int slu_steps_seek(struct slu_steps *p, uint64_t k, struct slu_err *err)
{
    const struct slu_steps_info *info = &p->info;
    if (k > info->total_steps)
        return slu_fail(err, SLU_E_USAGE, "step %llu is past the last one, %llu",
                        (unsigned long long)k, (unsigned long long)info->total_steps);
    p->at = k;
    if (info->method == SLU_STEPS_OLMO)
        return SLU_OK;
    p->epoch = slu_pass_of(info, k);
    p->cycle = cycle_of(info, p->epoch, k);
    begin_cycle(p);
    struct slu_train_step skipped;
    for (uint64_t at = slu_steps_before_cycle(info, p->epoch, p->cycle); at < k; at++)
        generic_step(p, &skipped);
    return SLU_OK;
}

int slu_steps_next(struct slu_steps *p, struct slu_train_step *step, size_t cap,
                   size_t *n, struct slu_err *err)
{
    *n = 0;
    while (*n < cap && p->at < p->info.total_steps) {
        int rc = SLU_OK;
        if (p->info.method == SLU_STEPS_OLMO)
            rc = olmo_step(p, &step[*n], err);
        else
            generic_step(p, &step[*n]);
        if (rc)
            return rc;
        p->at++;
        ++*n;
    }
    return SLU_OK;
}
