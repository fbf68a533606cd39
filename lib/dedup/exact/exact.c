#include "lib/dedup/exact/exact.h"

#include <stdlib.h>

#include "lib/dedup/exact/exact_flow.h"

enum { TAPE_BYTE = 1 << 20 };

int slu_exact_new(struct slu_exact **out, const struct slu_exact_cfg *cfg,
                  struct slu_err *err)
{
    *out = NULL;
    if (cfg->budget_byte < 1 << 20)
        return slu_fail(err, SLU_E_LIMIT,
                        "finding duplicates takes at least 1 MiB of memory");
    struct slu_exact *x = calloc(1, sizeof *x);
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    *out = x;
    return SLU_OK;
}

void slu_exact_free(struct slu_exact *x)
{
    if (!x)
        return;
    slu_seen_release(&x->seen);
    free(x);
}

const struct slu_exact_result *slu_exact_result(struct slu_exact *x)
{
    return &x->result;
}

int slu_exact_front(struct slu_exact *x, struct slu_err *err)
{
    /* While the table grows it takes 1.5 times this size, not counting waiting
     * sequences. */
    slu_seen_init(&x->seen, slu_flow_own_byte(x->flow), x->cfg.pair != NULL);
    int rc = x->cfg.known ? x->cfg.known(x->cfg.ctx, x, err) : SLU_OK;
    x->n_fixed = x->ordinal;
    return rc;
}

int slu_exact_known(struct slu_exact *x, struct slu_u128 hash, uint64_t number,
                    struct slu_err *err)
{
    const struct slu_origin place = slu_origin_of_index(number);
    struct slu_origin first = place;
    enum slu_seen_answer answer;
    int rc = slu_seen_check(&x->seen, hash, &first, &answer, err);

    return rc || answer != SLU_SEEN_FULL ? rc : slu_exact_wait(x, hash, &place, err);
}

int slu_exact_drop(struct slu_exact *x, const struct slu_batch *b,
                   const struct slu_seq *q, const struct slu_origin *kept,
                   struct slu_err *err)
{
    const struct slu_exact_pair pair = {slu_origin_of(b, q), *kept};

    slu_count_add(&x->result.dropped, slu_seq_count(b, q));
    if (!x->cfg.pair)
        return SLU_OK;
    return x->noting ? slu_flow_note(x->flow, &pair, sizeof pair, err)
                     : x->cfg.pair(x->cfg.ctx, &pair, err);
}

int slu_exact_arrive(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct slu_exact *x = ctx;
    const struct slu_buf *buf = side;
    const struct slu_u128 *hash = (const void *)buf->data;
    size_t n = 0;

    for (size_t i = 0; i < b->n_seq; i++) {
        struct slu_seq q = b->seq[i];
        struct slu_origin place = slu_origin_of(b, &q), kept = place;
        enum slu_seen_answer answer;
        int rc = slu_seen_check(&x->seen, hash[i], &kept, &answer, err);
        if (!rc && answer == SLU_SEEN_KNOWN) {
            rc = slu_exact_drop(x, b, &q, &kept, err);
        } else if (!rc && (answer == SLU_SEEN_FULL || x->noting)) {
            /* The pair that just fitted waits as well, because an earlier one waits. */
            x->noting = true;
            x->result.waited++;
            rc = slu_flow_tape(x->flow, b, &q, err);
            if (!rc)
                rc = slu_exact_wait(x, hash[i], &place, err);
        } else if (!rc) {
            b->seq[n++] = q;
        }
        if (rc)
            return rc;
    }
    slu_batch_keep(b, n);
    return n ? x->cfg.emit(x->cfg.ctx, b, err) : SLU_OK;
}

static int see(void *ctx, const struct slu_header *h, struct slu_names *names,
               struct slu_err *err)
{
    (void)ctx, (void)h, (void)names, (void)err;
    return SLU_OK;
}

static int tell_note(void *ctx, const void *p, size_t n, struct slu_err *err)
{
    struct slu_exact *x = ctx;

    (void)n;
    return x->cfg.pair(x->cfg.ctx, p, err);
}

int slu_exact_run(struct slu_exact *x, struct slu_reader *r, unsigned n_slots,
                  struct slu_sum *total, struct slu_err *err)
{
    const uint64_t budget = x->cfg.budget_byte,
                   tape = budget / 16 < TAPE_BYTE ? budget / 16 : TAPE_BYTE;
    const struct slu_flow_cfg cfg = {.spec = slu_exact_spec(x->cfg.pair),
                                     .reader = r,
                                     .ctx = x,
                                     .begin = see,
                                     .note = tell_note,
                                     .budget_byte = budget - tape,
                                     .tmpdir = x->cfg.tmpdir,
                                     .n_threads = x->cfg.n_threads,
                                     .n_slots = n_slots};
    struct slu_flow_report report;
    int rc = slu_flow_run(&cfg, &report, err);

    *total = report.in;
    x->result.spilled_byte = report.spilled_byte;
    return rc;
}
