/* mixture.c - decompose --mixture: selects among the waiting sequences and writes
 * them. */
#include <stdlib.h>
#include <string.h>

#include "tools/decompose/decompose.h"

#define BATCH_TOK (UINT64_C(1) << 18) /* largest number of tokens in flight */

int decompose_mix_init(struct decompose_mix *m, const char *text, uint64_t max_tok,
                       const struct slu_decompose *cut, struct slu_err *err)
{
    m->ask.max_tok = max_tok;
    return slu_mixture_parse(&m->ask, text ? text : "natural", cut->n_bucket, err);
}

bool decompose_mix_waits(const struct decompose_mix *m)
{
    return m->ask.kind != SLU_MIXTURE_NATURAL || m->ask.max_tok;
}

/* ---- the second pass ---- */

struct pass {
    struct slu_mixing *mixing;
    struct slu_writer *writer;
};

static int produce(void *ctx, void *job, struct slu_err *err)
{
    return slu_mixing_next(((struct pass *)ctx)->mixing, job, BATCH_TOK, err);
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    (void)ctx, (void)worker, (void)err;
    slu_batch_sum(job);
    return SLU_OK;
}

static int emit(void *ctx, void *job, struct slu_err *err)
{
    return slu_writer_put(((struct pass *)ctx)->writer, job, err);
}

static int write_kept(struct decompose_mix *m, struct cli_ctx *ctx,
                      struct slu_writer *w, const struct slu_header *h,
                      struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {produce, work, emit};
    struct pass p = {m->mixing, w};
    unsigned n = cli_slots(ctx, ctx->common.memory / 4);
    struct slu_batch *b = calloc(n, sizeof *b);
    void **job = calloc(n, sizeof *job);
    int rc = b && job ? slu_mixing_plan(m->mixing, m->quota.seq, err)
                      : slu_fail_nomem(err, n * sizeof *b);
    for (unsigned i = 0; i < n && !rc; i++) {
        slu_batch_init(&b[i], h->tok_bytes);
        b[i].masks = h->masks;
        job[i] = &b[i];
    }
    if (!rc)
        rc = slu_pipe_run(&ops, &p, job, n, (unsigned)ctx->common.threads, err);
    for (unsigned i = 0; b && i < n; i++)
        slu_batch_release(&b[i]);
    free(b);
    free(job);
    return rc;
}

/* ---- the result ---- */

static void say_too_little(const struct decompose_mix *m, struct cli_ctx *ctx,
                           const struct slu_decompose *cut)
{
    unsigned long long tok = m->quota.tok, asked = m->ask.max_tok;
    if (m->quota.scarcest >= 0)
        cli_warn(ctx,
                 "the mixture has %llu tokens, fewer than the %llu asked for: bucket "
                 "%llu has no more",
                 tok, asked, (unsigned long long)cut->bucket[m->quota.scarcest]);
    else
        cli_warn(ctx, "the buckets have %llu tokens, fewer than the %llu asked for",
                 tok, asked);
}

int decompose_mix_finish(struct decompose_mix *m, struct cli_ctx *ctx,
                         const struct slu_decompose *cut, struct slu_decompose_stat *s,
                         struct slu_writer *w, const struct slu_header *h,
                         struct slu_err *err)
{
    uint64_t all = 0;
    int rc = slu_mixture_quota(&m->ask, cut, s->piece, &m->quota, err);
    if (rc == SLU_E_MISMATCH && !w) { /* --plan has printed its table; only warn */
        cli_warn(ctx, "%s", err->msg);
        *err = (struct slu_err)SLU_ERR_INIT;
        return SLU_OK;
    }
    if (rc)
        return rc;
    m->settled = true;
    if (m->mixing && w)
        rc = write_kept(m, ctx, w, h, err);
    for (unsigned i = 0; i < cut->n_bucket; i++) {
        all += s->piece[i] * cut->bucket[i];
        m->dropped_seq[i] = s->piece[i] - m->quota.seq[i];
        m->dropped_tok[i] =
            m->dropped_seq[i] * (cut->bucket[i] + (cut->label_tokens ? 1 : 0));
        s->piece[i] = m->quota.seq[i];
        if (m->mixing)
            slu_count_add(&m->dropped, slu_mixing_dropped(m->mixing)[i]);
    }
    if (!rc && all && !m->quota.tok)
        cli_warn(
            ctx,
            "the mixture keeps none of the buckets' %llu tokens: each bucket's share "
            "is less than one sequence",
            (unsigned long long)all);
    else if (!rc && (m->quota.scarcest >= 0 || m->quota.tok == all) &&
             m->quota.tok < m->ask.max_tok)
        say_too_little(m, ctx, cut);
    if (m->mixing)
        ctx->spill_bytes = slu_mixing_spilled(m->mixing);
    return rc;
}
