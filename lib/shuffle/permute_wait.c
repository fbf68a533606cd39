/* permute_wait.c - orders that need all sequences first: mixes and bands.
 *
 * Pass 1 counts, and notes 24 bytes of each sequence. From these follow how often and
 * when each sequence is taken, and pass 2 puts it into the sorter that often. Sequences
 * of an input that cannot be read twice wait in a log in between.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/pipe.h"
#include "permute_private.h"

enum { JOB_TOK = 1 << 17 };

/* Precedes a waiting sequence's record (seqrec.h), padded to a multiple of 8. */
struct head {
    uint64_t n_byte; /* of the record */
    uint32_t input, unused;
};

int slu_permute_wait_new(struct slu_permute *p, struct slu_err *err)
{
    if (p->cfg.mix && p->cfg.order == SLU_ORDER_BANDS)
        return slu_fail(err, SLU_E_USAGE, "bands and a mix cannot be combined");
    if (p->cfg.order == SLU_ORDER_BANDS && !p->cfg.flow)
        return slu_select_new(&p->select, p->cfg.budget_byte / 16, p->tmpdir, err);
    if (!p->cfg.mix)
        return SLU_OK;
    return slu_mixer_new(&p->mixer, p->cfg.mix, p->cfg.budget_byte / 16, p->tmpdir,
                         err);
}

void slu_permute_wait_release(struct slu_permute *p)
{
    slu_mixer_free(p->mixer);
    slu_bytelog_free(p->wait);
    free(p->period);
    free(p->band_end);
}

void slu_permute_mark(struct slu_permute *p, const struct slu_batch *b,
                      const struct slu_seq *q, struct slu_judged *j, struct slu_mark *m)
{
    m->hash = slu_batch_content(b, q->tok_off, q->len_tok);
    m->source = p->mixer ? slu_mix_source_of(&p->cfg.by, b, q) : 0;
    /* Not the hash of the order, or what is chosen would be together in it. */
    const struct slu_u128 choice =
        slu_permute_hash("slublnd1", p->cfg.seed, 0, &b->seg[q->seg_off], q->n_seg);
    if (m->source < 0)
        j->verdict = NO_SOURCE;
    else if (p->mixer)
        m->line = choice;
    else if (slu_permute_waits(p))
        m->line = p->cfg.order == SLU_ORDER_BANDS
                      ? slu_permute_score_key(slu_seq_score(b, q), choice, false)
                      : slu_permute_order_key(p, b, q, 0);
}

/* ---- pass 1 ---- */

static int log_sequence(struct slu_permute *p, const struct slu_batch *b,
                        const struct slu_seq *q, struct slu_err *err)
{
    int rc = p->wait
                 ? SLU_OK
                 : slu_bytelog_new(&p->wait, p->cfg.budget_byte / 2, p->tmpdir, err);
    if (!rc)
        rc = slu_seqrec_pack(&p->rec, b, q, err);
    if (rc)
        return rc;
    struct head h = {slu_seqrec_size(&p->rec), b->input, 0};
    p->max_rec = h.n_byte > p->max_rec ? h.n_byte : p->max_rec;
    p->wait_byte += sizeof h + h.n_byte + (-h.n_byte & 7);
    return slu_bytelog_put_rec(p->wait, &h, sizeof h, p->rec.piece, SLU_SEQREC_PIECES,
                               err);
}

int slu_permute_await(struct slu_permute *p, const struct slu_batch *b,
                      const struct slu_seq *q, const struct slu_mark *m,
                      struct slu_err *err)
{
    struct slu_count n = slu_seq_count(b, q);
    slu_count_add(&p->result.taken, n);
    if (p->row)
        return p->row(p->row_ctx, (unsigned)m->source, m->line, n, err);
    int rc = p->mixer ? slu_mixer_add(p->mixer, (unsigned)m->source, m->line, n, err)
                      : slu_select_add(p->select, m->line, 0, n.tokens, err);
    return rc || p->cfg.again ? rc : log_sequence(p, b, q, err);
}

/* ---- pass 2 ---- */

static void leave(struct slu_permute *p, const struct slu_mark *m, struct slu_count n)
{
    slu_count_add(&p->result.not_mixed, n);
    p->result.left_checksum = slu_u128_add(p->result.left_checksum, m->hash);
}

/* Places a sequence once, in the first band that ends after it. */
static int place_in_band(struct slu_permute *p, const struct slu_batch *b,
                         const struct slu_seq *q, const struct slu_judged *j,
                         const struct slu_mark *m, struct slu_err *err)
{
    struct slu_count n = slu_seq_count(b, q);
    const unsigned n_band = slu_permute_n_period(p);
    unsigned band = n_band - 1;
    if (p->planned)
        slu_count_add(&p->result.taken, n);
    /* Each end takes its share of equal keys, as the ends of periods do. */
    for (unsigned i = n_band - 1; i-- > 0;)
        if (slu_cut_take(&p->band_end[i], m->line, n.tokens))
            band = i;
    p->ordinal++;
    if (!slu_cut_take(&p->fits, m->line, n.tokens)) { /* left out by max_tokens */
        if (p->planned)
            leave(p, m, n);
        return SLU_OK;
    }
    slu_count_add(&p->period[j->bucket * n_band + band], n);
    return slu_permute_put(p, b, q, j, m, 0, band, err);
}

int slu_permute_place(struct slu_permute *p, const struct slu_batch *b,
                      const struct slu_seq *q, const struct slu_judged *j,
                      const struct slu_mark *m, struct slu_err *err)
{
    struct slu_permute_result *r = &p->result;
    struct slu_count n = slu_seq_count(b, q);
    unsigned source = (unsigned)m->source;
    int rc = SLU_OK;
    if (!p->mixer)
        return place_in_band(p, b, q, j, m, err);
    uint64_t epochs = slu_mixer_epochs(p->mixer, source), times = 0;
    if (p->planned)
        slu_count_add(&r->taken, n);
    for (uint64_t e = 0; e < epochs && !rc; e++) {
        int period = slu_mixer_take(p->mixer, source, m->line, n, e);
        if (period < 0)
            break; /* no later epoch takes it either */
        if (times++) {
            slu_count_add(&r->repeated, n);
            r->repeated_checksum = slu_u128_add(r->repeated_checksum, m->hash);
        }
        slu_count_add(
            &p->period[j->bucket * slu_permute_n_period(p) + (unsigned)period], n);
        rc = slu_permute_put(p, b, q, j, m, e, (unsigned)period, err);
    }
    if (!times)
        leave(p, m, n);
    p->ordinal++;
    return rc;
}

/* Pass 2 over the log, in batches of one input each. */
struct second {
    struct slu_permute *p;
    const struct slu_side_ops *ops;
    struct slu_pipe *pipe;
    struct head next;
    bool have_next;
};

struct slot {
    struct slu_batch b;
    void *side;
};

static int produce(void *ctx, void *job, struct slu_err *err)
{
    struct second *t = ctx;
    struct slu_batch *b = &((struct slot *)job)->b;
    const void *r;
    int rc = SLU_OK;
    slu_batch_clear(b);
    while (slu_batch_weight(b) < JOB_TOK && b->n_seq < SLU_FRAME_SEQS) {
        if (!t->have_next)
            rc = slu_bytelog_get(t->p->wait, &r, sizeof t->next, err);
        if (rc)
            return rc == SLU_EOF && b->n_seq ? SLU_OK : rc;
        if (!t->have_next)
            memcpy(&t->next, r, sizeof t->next);
        t->have_next = true;
        if (b->n_seq && b->input != t->next.input)
            break;
        b->input = t->next.input;
        if (t->next.n_byte > SLU_PIPE_SLOT_BYTE)
            slu_pipe_take(t->pipe, t->next.n_byte, 0);
        rc = slu_bytelog_get_rest(t->p->wait, &r, t->next.n_byte, err);
        if (!rc)
            rc = slu_seqrec_add(b, r, t->next.n_byte, err);
        if (rc)
            return rc;
        t->have_next = false;
    }
    return SLU_OK;
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct second *t = ctx;
    struct slot *s = job;
    return t->ops->work(t->p, worker, &s->b, s->side, err);
}

static int emit(void *ctx, void *job, struct slu_err *err)
{
    struct second *t = ctx;
    struct slot *s = job;
    int rc = t->ops->emit(t->p, &s->b, s->side, err);
    slu_batch_trim(&s->b);
    return rc;
}

static int from_log(struct slu_permute *p, const struct slu_side_ops *ops,
                    unsigned n_slots, struct slu_err *err)
{
    static const struct slu_pipe_ops pipe = {produce, work, emit};
    struct second t = {.p = p, .ops = ops};
    struct slot *s = calloc(n_slots, sizeof *s);
    void **job = calloc(n_slots, sizeof *job);
    int rc = s && job ? SLU_OK : slu_fail_nomem(err, n_slots * sizeof *s);
    for (unsigned i = 0; !rc && i < n_slots; i++) {
        slu_batch_init(&s[i].b, p->header->tok_bytes);
        s[i].b.masks = p->header->masks;
        s[i].side = calloc(1, ops->side_byte);
        if (!s[i].side)
            rc = slu_fail_nomem(err, ops->side_byte);
        job[i] = &s[i];
    }
    if (!rc)
        rc =
            slu_pipe_run_parts(&pipe, &t, job, n_slots, p->cfg.n_threads, &t.pipe, err);
    for (unsigned i = 0; s && i < n_slots && s[i].side; i++) {
        slu_batch_release(&s[i].b);
        ops->release(s[i].side);
        free(s[i].side);
    }
    free(s);
    free(job);
    slu_bytelog_free(p->wait);
    p->wait = NULL;
    return rc;
}

static int from_input(struct slu_permute *p, const struct slu_side_ops *ops,
                      unsigned n_slots, const struct slu_sum *total,
                      struct slu_err *err)
{
    struct slu_sum again;
    struct slu_reader *r;
    int rc = p->cfg.again(p->cfg.again_ctx, &r, err);
    if (rc)
        return rc;
    rc = slu_stream_run_side(r, ops, p, p->cfg.n_threads, n_slots, &again, err);
    slu_reader_free(r);
    if (!rc && (memcmp(&again.n, &total->n, sizeof again.n) ||
                slu_u128_cmp(again.trace_checksum, total->trace_checksum) ||
                slu_u128_cmp(again.mask_checksum, total->mask_checksum) ||
                slu_u128_cmp(again.meta_checksum, total->meta_checksum)))
        rc = slu_fail(err, SLU_E_MISMATCH, "the input has changed while it was read");
    return rc;
}

/* Opens the sorter with the memory that the log leaves. */
static int open_sorter(struct slu_permute *p, struct slu_err *err)
{
    uint64_t kept = 0;
    if (p->wait) {
        size_t most =
            p->max_rec + 7 > sizeof(struct head) ? p->max_rec + 7 : sizeof(struct head);
        int rc = slu_bytelog_rewind(p->wait, most, err);
        if (rc)
            return rc;
        kept = slu_bytelog_spilled(p->wait) ? (1 << 20) + 2 * most : p->wait_byte;
        p->waited_byte += slu_bytelog_spilled(p->wait);
    }
    uint64_t least = p->cfg.budget_byte / 4, left = p->cfg.budget_byte - kept;
    struct slu_sorter_cfg s = {kept > p->cfg.budget_byte - least ? least : left,
                               p->tmpdir, p->cfg.n_threads};
    return slu_sorter_new(&p->sorter, &s, err);
}

/* Finds the ends of bands of equal tokens; with max_tokens, of those tokens with the
 * lowest scores. */
static int plan_bands(struct slu_permute *p, struct slu_err *err)
{
    unsigned n = p->cfg.n_band;
    uint64_t all = p->result.taken.tokens;
    all = p->cfg.max_tokens < all ? p->cfg.max_tokens : all;
    p->band_end = calloc(n, sizeof *p->band_end);
    if (!p->band_end)
        return slu_fail_nomem(err, n * sizeof *p->band_end);
    for (unsigned i = 0; i < n; i++)
        p->band_end[i].tok = (uint64_t)((unsigned __int128)all * (i + 1) / n);
    int rc = slu_select_cut(p->select, p->band_end, n, err);
    p->fits = p->band_end[n - 1];
    p->waited_byte += slu_select_spilled(p->select);
    slu_select_free(p->select); /* the next steps need its memory */
    p->select = NULL;
    return rc;
}

static int new_periods(struct slu_permute *p, struct slu_err *err)
{
    size_t n =
        (p->header->n_bucket ? p->header->n_bucket : 1) * slu_permute_n_period(p);
    p->period = calloc(n, sizeof *p->period);
    return p->period ? SLU_OK : slu_fail_nomem(err, n * sizeof *p->period);
}

int slu_permute_begin_planned(struct slu_permute *p, struct slu_err *err)
{
    int rc = new_periods(p, err);
    p->second = true;
    p->sorter = p->cfg.sorter;
    return rc || p->sorter ? rc : open_sorter(p, err);
}

int slu_permute_again(struct slu_permute *p, const struct slu_side_ops *ops,
                      unsigned n_slots, const struct slu_sum *total,
                      struct slu_err *err)
{
    int rc = new_periods(p, err);
    if (!rc)
        rc = p->mixer ? slu_mixer_plan(p->mixer, p->cfg.max_tokens, err)
                      : plan_bands(p, err);
    if (!rc)
        rc = open_sorter(p, err);
    p->second = true;
    if (!rc && p->cfg.again)
        rc = from_input(p, ops, n_slots, total, err);
    else if (!rc && p->wait)
        rc = from_log(p, ops, n_slots, err);
    return rc;
}

const struct slu_mixer *slu_permute_mixer(const struct slu_permute *p)
{
    return p->mixer;
}

const struct slu_count *slu_permute_period(const struct slu_permute *p, unsigned bucket,
                                           unsigned period)
{
    return &p->period[bucket * slu_permute_n_period(p) + period];
}
