#include "permute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/le.h"
#include "lib/base/number.h"
#include "lib/flow/flow.h"
#include "permute_private.h"

struct slu_u128 slu_permute_hash(const char what[8], uint64_t seed, uint64_t repeat,
                                 const struct slu_seg *seg, uint64_t n_seg)
{
    uint8_t k[24];

    memcpy(k, what, 8);
    slu_put_le64(k + 8, seed);
    slu_put_le64(k + 16, repeat);
    return slu_hash_segments(k, sizeof k, seg, n_seg);
}

struct slu_u128 slu_permute_key(uint64_t seed, uint64_t repeat,
                                const struct slu_seg *seg, uint64_t n_seg)
{
    return slu_permute_hash("sluperm1", seed, repeat, seg, n_seg);
}

static bool sampled(const struct slu_permute_cfg *cfg, const struct slu_seg *seg,
                    uint64_t n_seg)
{
    if (cfg->sample >= 1)
        return true;
    uint64_t draw = slu_permute_hash("slusmpl1", cfg->seed, 0, seg, n_seg).hi;
    return (double)(draw >> 11) < ldexp(cfg->sample, 53);
}

/* ---- keys ---- */

struct slu_u128 slu_permute_in_group(struct slu_u128 key, unsigned i, unsigned n)
{
    unsigned __int128 hi = (unsigned __int128)i << 64 | key.hi;
    unsigned __int128 lo = (hi % n) << 64 | key.lo;
    return n < 2 ? key : (struct slu_u128){(uint64_t)(lo / n), (uint64_t)(hi / n)};
}

/* Returns ascending keys for 0, 1, 2, … up to 2^60, for any count: by magnitude, then
 * within it, so that no cell of the sorter has much more than others. */
static struct slu_u128 ordinal_key(uint64_t i)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(i + 1);
    uint64_t rest = (i + 1) << (64 - bits) << 1; /* without the leading 1 bit */
    return slu_permute_in_group((struct slu_u128){0, rest}, bits, 61);
}

struct slu_u128 slu_permute_score_key(double score, struct slu_u128 key,
                                      bool descending)
{
    uint64_t v = slu_double_key(score);

    if (descending)
        v = ~v;
    if (score != score)
        v = UINT64_MAX;
    return (struct slu_u128){key.hi, v};
}

/* Returns the number of groups: one bucket after another, with all periods in each. */
static unsigned n_group(const struct slu_permute *p)
{
    unsigned n = p->cfg.by_bucket && p->header->n_bucket ? p->header->n_bucket : 1;
    return n * slu_permute_n_period(p);
}

static struct slu_u128 place_in_group(const struct slu_permute *p, struct slu_u128 key,
                                      unsigned bucket, unsigned period)
{
    unsigned group = p->cfg.by_bucket ? bucket * slu_permute_n_period(p) : 0;
    return slu_permute_in_group(key, group + period, n_group(p));
}

struct slu_u128 slu_permute_order_key(const struct slu_permute *p,
                                      const struct slu_batch *b,
                                      const struct slu_seq *q, uint64_t repeat)
{
    struct slu_u128 key =
        slu_permute_key(p->cfg.seed, repeat, &b->seg[q->seg_off], q->n_seg);

    if (p->cfg.order != SLU_ORDER_ASCENDING && p->cfg.order != SLU_ORDER_DESCENDING)
        return key;
    return slu_permute_score_key(slu_seq_score(b, q), key,
                                 p->cfg.order == SLU_ORDER_DESCENDING);
}

/* ---- making ---- */

static int make(struct slu_permute *p, struct slu_err *err)
{
    const struct slu_permute_cfg *cfg = &p->cfg;
    bool select = cfg->by_bucket && cfg->max_tokens != UINT64_MAX &&
                  cfg->order != SLU_ORDER_KEEP; /* KEEP knows the first ones */
    /* A row takes 24 bytes, its sequence hundreds. */
    uint64_t rows_byte = select ? cfg->budget_byte / 16 : 0;
    int rc = slu_permute_wait_new(p, err);

    if (rc || slu_permute_waits(p) || cfg->pass)
        return rc;
    p->sorter = cfg->sorter;
    if (p->sorter)
        return SLU_OK;
    struct slu_sorter_cfg s = {cfg->budget_byte - rows_byte, p->tmpdir, cfg->n_threads};
    rc = slu_sorter_new(&p->sorter, &s, err);
    if (!rc && select)
        rc = slu_select_new(&p->select, rows_byte, p->tmpdir, err);
    return rc;
}

int slu_permute_new(struct slu_permute **out, const struct slu_permute_cfg *cfg,
                    struct slu_err *err)
{
    struct slu_permute *p = calloc(1, sizeof *p);

    *out = NULL;
    if (!p)
        return slu_fail_nomem(err, sizeof *p);
    p->cfg = *cfg;
    p->room = cfg->max_tokens;
    slu_seqrec_init(&p->rec);
    p->tmpdir = strdup(cfg->tmpdir);
    int rc = p->tmpdir ? make(p, err) : slu_fail_nomem(err, 1);
    if (rc)
        slu_permute_free(p);
    else
        *out = p;
    return rc;
}

void slu_permute_free(struct slu_permute *p)
{
    if (!p)
        return;
    if (p->sorter != p->cfg.sorter)
        slu_sorter_free(p->sorter);
    slu_select_free(p->select);
    slu_permute_wait_release(p);
    free(p->tmpdir);
    slu_seqrec_release(&p->rec);
    slu_buf_release(&p->fetched);
    free(p);
}

const struct slu_permute_result *slu_permute_result(struct slu_permute *p)
{
    p->result.spilled_byte = p->waited_byte;
    if (p->sorter && !p->cfg.sorter)
        p->result.spilled_byte += slu_sorter_spilled(p->sorter);
    if (p->select)
        p->result.spilled_byte += slu_select_spilled(p->select);
    if (p->mixer)
        p->result.spilled_byte += slu_mixer_spilled(p->mixer);
    return &p->result;
}

/* ---- reading ---- */

void slu_permute_judge(struct slu_permute *p, const struct slu_batch *b,
                       const struct slu_seq *q, struct slu_judged *j,
                       struct slu_mark *m)
{
    const struct slu_seg *seg = &b->seg[q->seg_off];
    int bucket = slu_header_bucket_of(p->header, q->len_tok);

    j->verdict = TAKE;
    j->bucket = bucket < 0 ? 0 : (uint16_t)bucket;
    if (p->cfg.buckets_only && bucket < 0)
        j->verdict = NO_BUCKET;
    else if (!sampled(&p->cfg, seg, q->n_seg))
        j->verdict = NOT_SAMPLED;
    if (j->verdict == TAKE && m)
        slu_permute_mark(p, b, q, j, m);
    if (j->verdict == TAKE && p->cfg.order == SLU_ORDER_KEEP)
        j->key = (struct slu_u128){0, 0}; /* slu_permute_put counts instead */
    else if (j->verdict == TAKE)
        j->key = slu_permute_order_key(p, b, q, 0);
    else
        j->key = slu_batch_content(b, q->tok_off, q->len_tok);
}

/* Whether a worker makes the sequence's record. Not worth one more copy are large
 * records (with one thread, all but small ones), and batches with many bytes of ids.
 * (packed_byte is 0 if keys depend on earlier sequences, or if sequences need rows of
 * their own.) */
static bool is_packed(const struct slu_permute *p, const struct slu_batch *b,
                      const struct slu_seq *q)
{
    return b->str.len <= b->n_tok * b->tok_bytes &&
           q->len_tok * b->tok_bytes + 64 * q->n_seg < p->packed_byte;
}

/* Appends the sequence to out as a record of the sorter. */
static int pack(struct slu_buf *out, struct slu_u128 key, const struct slu_batch *b,
                const struct slu_seq *q, struct slu_err *err)
{
    size_t at = out->len;
    int rc = slu_buf_reserve(out, sizeof(struct slu_rec), err);

    if (rc)
        return rc;
    out->len += sizeof(struct slu_rec);
    rc = slu_seqrec_append(out, b, q, err);
    if (rc)
        return rc;
    /* Fields are set in place (`at` is a multiple of 8), because copying fields that
     * were just stored is slow. */
    struct slu_rec *r = (void *)(out->data + at);
    r->key = key;
    r->n_byte = out->len - at - sizeof *r;
    return slu_buf_align(out, 8, err);
}

/* Of a batch: a worker's findings, and the records that it made, as the sorter takes
 * them. */
struct side {
    struct slu_buf judged, records;
};

static void release_side(void *side)
{
    struct side *s = side;

    slu_buf_release(&s->judged);
    slu_buf_release(&s->records);
}

static int work(void *ctx, unsigned worker, struct slu_batch *b, void *side,
                struct slu_err *err)
{
    struct slu_permute *p = ctx;
    struct side *s = side;
    struct slu_buf *rec = &s->records;
    size_t marks = slu_permute_marked(p) ? sizeof(struct slu_mark) : 0;

    (void)worker;
    slu_buf_clear(&s->judged);
    slu_buf_clear(rec);
    int rc = slu_buf_reserve(&s->judged, b->n_seq * (sizeof(struct slu_judged) + marks),
                             err);
    /* At once, so that large pages are touched, not small ones as it grows. */
    const uint64_t all = b->n_tok * b->tok_bytes + 64 * (b->n_seq + b->n_seg);
    if (!rc && p->packed_byte && p->cfg.n_threads > 1)
        rc = slu_buf_reserve(rec, all < p->packed_most ? all : p->packed_most, err);
    if (rc)
        return rc;
    struct slu_judged *j = (void *)s->judged.data;
    struct slu_mark *m = slu_permute_marks(j, b->n_seq);
    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        const struct slu_seq *q = &b->seq[i];
        slu_permute_judge(p, b, q, &j[i], marks ? &m[i] : NULL);
        j[i].packed =
            j[i].verdict == TAKE && rec->len < p->packed_most && is_packed(p, b, q);
        if (j[i].packed)
            rc = pack(rec, place_in_group(p, j[i].key, j[i].bucket, 0), b, q, err);
    }
    return rc;
}

int slu_permute_put(struct slu_permute *p, const struct slu_batch *b,
                    const struct slu_seq *q, const struct slu_judged *j,
                    const struct slu_mark *m, uint64_t repeat, unsigned period,
                    struct slu_err *err)
{
    const struct slu_seg *seg = &b->seg[q->seg_off];
    struct slu_u128 key = j->key;
    int rc = slu_seqrec_pack(&p->rec, b, q, err);

    if (p->cfg.order == SLU_ORDER_KEEP)
        key = ordinal_key(repeat << 40 | p->ordinal);
    else if (repeat)
        key = slu_permute_order_key(p, b, q, repeat);
    key = place_in_group(p, key, j->bucket, period);
    if (!rc)
        rc = slu_sorter_add(p->sorter, key, p->rec.piece, SLU_SEQREC_PIECES, err);
    if (!rc && p->put)
        p->put(p->put_ctx, j->bucket, key, slu_seq_count(b, q), m->hash);
    if (rc == SLU_E_LIMIT)
        rc = slu_err_at(err,
                        "the sequence of %llu tokens that begins at offset %llu of "
                        "document %llu of source %llu",
                        (unsigned long long)q->len_tok, (unsigned long long)seg->offset,
                        (unsigned long long)seg->document,
                        (unsigned long long)seg->source);
    return rc;
}

static int take(struct slu_permute *p, const struct slu_batch *b,
                const struct slu_seq *q, const struct slu_judged *j,
                const struct slu_mark *m, struct slu_err *err)
{
    int rc = SLU_OK;

    slu_count_add(&p->result.taken, slu_seq_count(b, q));
    if (p->cfg.order == SLU_ORDER_KEEP) {
        p->full = p->full || q->len_tok > p->room;
        if (p->full)
            return SLU_OK;
        p->room -= q->len_tok;
    }
    if (p->select)
        rc = slu_select_add(p->select, j->key, 0, q->len_tok, err);
    if (!rc)
        rc = slu_permute_put(p, b, q, j, m, 0, 0, err);
    p->ordinal++;
    return rc;
}

struct slu_count *slu_permute_left(struct slu_permute_result *r, uint32_t verdict)
{
    return verdict == NO_BUCKET     ? &r->no_bucket
           : verdict == NOT_SAMPLED ? &r->not_sampled
                                    : &r->not_mixed;
}

/* Updates p->dense: the most weight that segments add per byte of a record. */
static inline void note_dense(struct slu_permute *p, const struct slu_batch *b,
                              const struct slu_seq *q)
{
    if (q->n_seg < 2)
        return;
    double n_byte = (double)(sizeof(struct slu_rec) + q->len_tok * b->tok_bytes) +
                    3.0 * (double)q->n_seg; /* a lower bound */
    double weight = 16.0 * (double)(q->n_seg - 1);

    if (weight > p->dense * n_byte)
        p->dense = weight / n_byte;
}

static int emit(void *ctx, struct slu_batch *b, void *side, struct slu_err *err)
{
    struct slu_permute *p = ctx;
    struct slu_permute_result *r = &p->result;
    const struct side *s = side;
    struct slu_judged *j = (void *)s->judged.data;
    int rc = SLU_OK;
    struct slu_mark *m = slu_permute_marks(j, b->n_seq);
    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        const struct slu_seq *q = &b->seq[i];
        if (j[i].verdict == TAKE && p->mixer && p->cfg.by.by == SLU_BY_WHERE)
            rc = slu_mix_band(&p->cfg.by, b, q, &m[i].source, err);
        if (rc)
            return rc;
        if (j[i].verdict == TAKE) {
            note_dense(p, b, q);
            r->longest = q->len_tok > r->longest ? q->len_tok : r->longest;
        }
        if (j[i].packed) {
            const struct slu_count n = slu_seq_count(b, q);
            slu_count_add(&r->taken, n);
            if (p->put)
                p->put(p->put_ctx, j[i].bucket,
                       place_in_group(p, j[i].key, j[i].bucket, 0), n, m[i].hash);
        } else if (j[i].verdict == TAKE) {
            rc = p->second              ? slu_permute_place(p, b, q, &j[i], &m[i], err)
                 : slu_permute_waits(p) ? slu_permute_await(p, b, q, &m[i], err)
                                        : take(p, b, q, &j[i], &m[i], err);
        } else if (!p->second || p->planned) {
            struct slu_count n = slu_seq_count(b, q);
            slu_count_add(slu_permute_left(r, j[i].verdict), n);
            if (j[i].verdict == NO_SOURCE)
                slu_count_add(&r->taken, n);
            r->left_checksum = slu_u128_add(r->left_checksum, j[i].key);
        }
    }
    if (!rc && s->records.len)
        rc = slu_sorter_add_run(p->sorter, s->records.data, s->records.len, err);
    p->n_tok += b->n_tok;
    if (p->progress)
        p->progress(p->progress_ctx, p->n_tok);
    return rc;
}

int slu_permute_read(struct slu_permute *p, struct slu_reader *r, unsigned n_slots,
                     struct slu_sum *total, void (*progress)(void *ctx, uint64_t n_tok),
                     void *ctx, struct slu_err *err)
{
    static const struct slu_side_ops ops = {sizeof(struct side), work, emit,
                                            release_side};

    p->header = slu_reader_header(r);
    p->progress = progress;
    p->progress_ctx = ctx;
    if (p->cfg.order != SLU_ORDER_KEEP && !p->select && !slu_permute_waits(p))
        p->packed_byte = p->cfg.n_threads == 1              ? 1 << 10
                         : p->cfg.budget_byte / 4 < 1 << 20 ? p->cfg.budget_byte / 4
                                                            : 1 << 20;
    p->packed_most = p->cfg.budget_byte / 16;
    int rc = p->planned ? slu_permute_begin_planned(p, err) : SLU_OK;
    if (!rc && p->cfg.flow)
        rc = slu_flow_read(p->cfg.flow, &ops, p, err);
    else if (!rc)
        rc = slu_stream_run_side(r, &ops, p, p->cfg.n_threads, n_slots, total, err);
    if (!rc && slu_permute_waits(p) && !p->planned && !p->row)
        rc = slu_permute_again(p, &ops, n_slots, total, err);
    if (!rc && p->select) {
        p->cut.tok = p->cfg.max_tokens;
        rc = slu_select_cut(p->select, &p->cut, 1, err);
    }
    if (!rc && p->sorter && !p->cfg.sorter)
        rc = slu_sorter_seal(p->sorter, err);
    return rc;
}

/* ---- handing out ---- */

/* Whether the next record is within max_tokens. */
static bool within(struct slu_permute *p, struct slu_u128 key, uint64_t n_tok)
{
    uint64_t max = p->cfg.max_tokens;
    if (p->select) {
        /* Sequences with equal keys have equal segments, so the same bucket. */
        int bucket = slu_header_bucket_of(p->header, n_tok);
        struct slu_cut cut = p->cut;
        cut.key = place_in_group(p, cut.key, bucket < 0 ? 0 : (unsigned)bucket, 0);
        bool take = slu_cut_take(&cut, key, n_tok);
        p->cut.left = cut.left;
        return take;
    }
    if (!slu_permute_waits(p) && max != UINT64_MAX && n_tok > max - p->out_tok)
        p->stopped = true;
    return !p->stopped;
}

/* Appends a record: its bytes, or its address if it is pinned. */
static int append(struct slu_buf *rec, const void *at, uint64_t n, bool pinned,
                  struct slu_err *err)
{
    const struct slu_rec *r = (const struct slu_rec *)at - 1;

    if (pinned)
        return slu_buf_append(rec, &r, sizeof r, err);
    int rc = slu_buf_append(rec, &n, sizeof n, err);
    return rc ? rc : slu_buf_append(rec, at, n, err);
}

/* Appends more of the sorter's records until *weight is n_tok or the sorter turns; only
 * if all records are wanted. The records are not read, so each counts with an upper
 * bound of its weight. */
static int append_pinned(struct slu_permute *p, struct slu_buf *rec, uint64_t n_tok,
                         uint64_t *weight, struct slu_err *err)
{
    const double a_byte = 1.0 / p->header->tok_bytes + p->dense;
    const struct slu_rec *r;
    uint64_t size;

    while (*weight < n_tok && (r = slu_sorter_next_pinned(p->sorter, &size))) {
        int rc = slu_buf_append(rec, &r, sizeof r, err);
        if (rc)
            return rc;
        *weight += 64 + 16 + (uint64_t)((double)size * a_byte);
    }
    return SLU_OK;
}

/* Appends the sequence of a record to b, and counts it. */
static int open_one(struct slu_batch *b, const void *at, uint64_t n_byte,
                    struct slu_count *n, struct slu_err *err)
{
    int rc = slu_seqrec_add(b, at, n_byte, err);

    if (!rc)
        slu_count_add(n, slu_seq_count(b, &b->seq[b->n_seq - 1]));
    return rc;
}

void slu_permute_take_room(struct slu_pipe *pipe, uint64_t n_byte)
{
    if (pipe && n_byte > SLU_PIPE_SLOT_BYTE / 4)
        slu_pipe_take(pipe, 4 * n_byte, 0);
}

/* slu_permute_borrow; but records that the sorter cannot pin go to b at once, unless b
 * is NULL. pipe: see slu_permute_next. */
static int borrow(struct slu_permute *p, struct slu_buf *rec, struct slu_arena **pin,
                  struct slu_pipe *pipe, struct slu_batch *b, uint64_t n_tok,
                  struct slu_err *err)
{
    uint64_t weight = 0; /* as slu_batch_weight */
    int rc = SLU_OK;

    slu_buf_clear(rec);
    *pin = NULL;
    while (weight < n_tok && !p->stopped) {
        struct slu_u128 key;
        const void *at;
        size_t n;
        uint64_t len_tok, n_seg;
        if (*pin && slu_sorter_turns(p->sorter)) {
            if (rec->len)
                break;
            slu_sorter_unpin(p->sorter, *pin);
            *pin = NULL;
        }
        rc = slu_sorter_next(p->sorter, &key, &at, &n, err);
        if (!rc)
            rc = slu_seqrec_peek(at, n, &len_tok, &n_seg, err);
        if (rc)
            break;
        if (!within(p, key, len_tok))
            continue;
        if (!rec->len && !*pin)
            *pin = slu_sorter_pin(p->sorter);
        if (b && !*pin)
            slu_permute_take_room(pipe, (weight + len_tok) * p->header->tok_bytes);
        rc = b && !*pin ? open_one(b, at, n, &p->result.out, err)
                        : append(rec, at, n, *pin, err);
        if (rc)
            break;
        uint64_t n_tok_byte = len_tok * p->header->tok_bytes;
        weight += len_tok + 64 + 16 * n_seg + (n > n_tok_byte ? n - n_tok_byte : 0) / 4;
        p->out_tok += len_tok;
        if (*pin && !p->select && p->cfg.max_tokens == UINT64_MAX)
            rc = append_pinned(p, rec, n_tok, &weight, err);
        if (rc)
            break;
    }
    p->borrowed_byte = weight * p->header->tok_bytes + (*pin ? 0 : rec->len);
    if (*pin && (rc < 0 || !rec->len)) {
        slu_sorter_unpin(p->sorter, *pin);
        *pin = NULL;
    }
    if (rc < 0)
        return rc;
    return rec->len || (b && b->n_seq) ? SLU_OK : SLU_EOF;
}

int slu_permute_borrow(struct slu_permute *p, struct slu_buf *rec,
                       struct slu_arena **pin, uint64_t n_tok, struct slu_err *err)
{
    return borrow(p, rec, pin, NULL, NULL, n_tok, err);
}

uint64_t slu_permute_borrowed(const struct slu_permute *p)
{
    return p->borrowed_byte;
}

enum { AHEAD = 8 }; /* records to prefetch */

static int open_pinned(const struct slu_buf *rec, struct slu_batch *b,
                       struct slu_count *n, struct slu_err *err)
{
    const struct slu_rec *const *l = (const void *)rec->data;
    size_t n_rec = rec->len / sizeof *l;
    int rc = SLU_OK;

    for (size_t i = 0; i < n_rec && !rc; i++) {
        slu_rec_prefetch(l[i + AHEAD < n_rec ? i + AHEAD : i]);
        rc = open_one(b, slu_rec_bytes(l[i]), l[i]->n_byte, n, err);
    }
    return rc;
}

int slu_permute_open_pinned(struct slu_permute *p, const struct slu_buf *rec,
                            struct slu_arena *pin, struct slu_batch *b,
                            struct slu_err *err)
{
    struct slu_count n = {0}, *out = &p->result.out;
    int rc = SLU_OK;

    slu_batch_clear(b);
    if (pin) {
        rc = open_pinned(rec, b, &n, err);
        slu_sorter_unpin(p->sorter, pin);
    }
    for (size_t at = 0; !pin && at < rec->len && !rc;) {
        uint64_t n_byte;
        memcpy(&n_byte, rec->data + at, sizeof n_byte);
        at += sizeof n_byte;
        rc = open_one(b, rec->data + at, n_byte, &n, err);
        at += n_byte;
    }
    if (rc)
        return rc;
    __atomic_fetch_add(&out->documents, n.documents, __ATOMIC_RELAXED);
    __atomic_fetch_add(&out->sequences, n.sequences, __ATOMIC_RELAXED);
    __atomic_fetch_add(&out->tokens, n.tokens, __ATOMIC_RELAXED);
    __atomic_fetch_add(&out->loss_tokens, n.loss_tokens, __ATOMIC_RELAXED);
    return SLU_OK;
}

void slu_permute_stop(struct slu_permute *p)
{
    slu_sorter_stop(p->sorter);
}

int slu_permute_next(struct slu_permute *p, struct slu_pipe *pipe, struct slu_batch *b,
                     uint64_t n_tok, struct slu_err *err)
{
    struct slu_arena *pin;

    if (p->cfg.pass)
        return slu_permute_passed(p, pipe, b, err);
    slu_batch_clear(b);
    int rc = borrow(p, &p->fetched, &pin, pipe, b, n_tok, err);
    if (rc || !pin)
        return rc;
    slu_permute_take_room(pipe, p->borrowed_byte);
    return slu_permute_open_pinned(p, &p->fetched, pin, b, err);
}
