#include "permute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "le.h"
#include "select.h"
#include "seqrec.h"
#include "sidecar.h"
#include "sorter.h"

struct slu_permute {
    struct slu_permute_cfg cfg;
    struct slu_sorter *sorter;
    struct slu_seqrec rec;
    struct slu_permute_result result;
    bool stopped; /* max_tokens was reached */

    /* SLU_ORDER_KEEP: */
    uint64_t ordinal; /* of the next sequence */
    uint64_t room;    /* tokens that still fit; */
    bool full;        /* the one that did not was met */

    /* by_bucket and max_tokens: which of them are within, bucket or not. */
    struct slu_select *select;
    struct slu_cut cut;

    /* While reading: */
    const struct slu_header *header;
    struct slu_sidecar verdicts;
    void (*progress)(void *ctx, uint64_t n_tok);
    void *progress_ctx;
    uint64_t n_tok;
};

enum verdict { TAKE, NOT_SAMPLED, NO_BUCKET };

/* What a worker finds out about a sequence. */
struct judged {
    struct slu_u128 key; /* TAKE: its place in the order; else: the tokens' hash */
    uint32_t verdict, bucket;
};

static struct slu_u128 keyed_hash(const char what[8], uint64_t seed, uint64_t repeat,
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
    return keyed_hash("sluperm1", seed, repeat, seg, n_seg);
}

static bool sampled(const struct slu_permute_cfg *cfg, const struct slu_seg *seg,
                    uint64_t n_seg)
{
    if (cfg->sample >= 1)
        return true;
    uint64_t draw = keyed_hash("slusmpl1", cfg->seed, 0, seg, n_seg).hi;
    return (double)(draw >> 11) < ldexp(cfg->sample, 53);
}

/* ---- keys ---- */

/* The keys of group `i` of n, in their order and behind those of the group before,
 * spread over the whole range: the sorter wants that. Up to n keys that are neighbours
 * become one. */
static struct slu_u128 in_group(struct slu_u128 key, unsigned i, unsigned n)
{
    unsigned __int128 hi = (unsigned __int128)i << 64 | key.hi;
    unsigned __int128 lo = (hi % n) << 64 | key.lo;
    return n < 2 ? key : (struct slu_u128){(uint64_t)(lo / n), (uint64_t)(hi / n)};
}

/* Ascending keys for 0, 1, 2, … up to 2^60, however many will come: by magnitude, then
 * within it, so that no cell of the sorter has much more than others. */
static struct slu_u128 ordinal_key(uint64_t i)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(i + 1);
    uint64_t rest = (i + 1) << (64 - bits) << 1; /* without the leading one */
    return in_group((struct slu_u128){0, rest}, bits, 61);
}

static unsigned n_group(const struct slu_permute *p)
{
    return p->cfg.by_bucket && p->header->n_bucket ? p->header->n_bucket : 1;
}

/* ---- making ---- */

int slu_permute_new(struct slu_permute **out, const struct slu_permute_cfg *cfg,
                    struct slu_err *err)
{
    bool select = cfg->by_bucket && cfg->max_tokens != UINT64_MAX &&
                  cfg->order != SLU_ORDER_KEEP; /* there the first ones are known */
    /* Rows of 24 bytes, beside hundreds of the sequence itself. */
    uint64_t rows_byte = select ? cfg->budget_byte / 16 : 0;
    struct slu_sorter_cfg s = {cfg->budget_byte - rows_byte, cfg->tmpdir,
                               cfg->n_threads};
    struct slu_permute *p = calloc(1, sizeof *p);

    *out = NULL;
    if (!p)
        return slu_fail_nomem(err, sizeof *p);
    p->cfg = *cfg;
    p->cfg.tmpdir = NULL;
    p->room = cfg->max_tokens;
    slu_seqrec_init(&p->rec);
    int rc = slu_sorter_new(&p->sorter, &s, err);
    if (!rc && select)
        rc = slu_select_new(&p->select, rows_byte, cfg->tmpdir, err);
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
    slu_sorter_free(p->sorter);
    slu_select_free(p->select);
    slu_seqrec_release(&p->rec);
    free(p);
}

const struct slu_permute_result *slu_permute_result(struct slu_permute *p)
{
    p->result.spilled_byte = slu_sorter_spilled(p->sorter);
    if (p->select)
        p->result.spilled_byte += slu_select_spilled(p->select);
    return &p->result;
}

/* ---- in ---- */

static int work(void *ctx, unsigned worker, struct slu_batch *b, struct slu_err *err)
{
    struct slu_permute *p = ctx;
    struct slu_buf *buf;
    int rc = slu_sidecar_of(&p->verdicts, b, &buf, err);

    (void)worker;
    if (rc)
        return rc;
    slu_buf_clear(buf);
    rc = slu_buf_reserve(buf, b->n_seq * sizeof(struct judged), err);
    if (rc)
        return rc;
    struct judged *j = (void *)buf->data;
    for (size_t i = 0; i < b->n_seq; i++) {
        const struct slu_seq *q = &b->seq[i];
        const struct slu_seg *seg = &b->seg[q->seg_off];
        int bucket = slu_header_bucket_of(p->header, q->len_tok);
        j[i].verdict = TAKE;
        j[i].bucket = bucket < 0 ? 0 : (uint32_t)bucket;
        if (p->cfg.buckets_only && bucket < 0)
            j[i].verdict = NO_BUCKET;
        else if (!sampled(&p->cfg, seg, q->n_seg))
            j[i].verdict = NOT_SAMPLED;
        if (j[i].verdict == TAKE)
            j[i].key = slu_permute_key(p->cfg.seed, 0, seg, q->n_seg);
        else
            j[i].key =
                slu_hash_tokens(slu_batch_at(b, q->tok_off), q->len_tok, b->tok_bytes);
    }
    return SLU_OK;
}

static int take(struct slu_permute *p, const struct slu_batch *b,
                const struct slu_seq *q, const struct judged *j, struct slu_err *err)
{
    const struct slu_seg *seg = &b->seg[q->seg_off];
    bool keep = p->cfg.order == SLU_ORDER_KEEP;
    struct slu_u128 key = keep ? ordinal_key(p->ordinal++) : j->key;
    int rc = SLU_OK;

    slu_count_add(&p->result.taken, slu_seq_count(b, q));
    if (keep) {
        p->full = p->full || q->len_tok > p->room;
        if (p->full)
            return SLU_OK;
        p->room -= q->len_tok;
    }
    if (p->select)
        rc = slu_select_add(p->select, key, 0, q->len_tok, err);
    if (rc == SLU_OK)
        rc = slu_seqrec_pack(&p->rec, b, q, err);
    if (rc == SLU_OK)
        rc = slu_sorter_add(p->sorter, in_group(key, j->bucket, n_group(p)),
                            p->rec.piece, SLU_SEQREC_PIECES, err);
    if (rc == SLU_E_LIMIT)
        rc = slu_err_at(err,
                        "the sequence of %llu tokens that begins at offset %llu of "
                        "document %llu of source %llu",
                        (unsigned long long)q->len_tok, (unsigned long long)seg->offset,
                        (unsigned long long)seg->document,
                        (unsigned long long)seg->source);
    return rc;
}

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct slu_permute *p = ctx;
    struct slu_permute_result *r = &p->result;
    struct slu_buf *buf;
    int rc = slu_sidecar_of(&p->verdicts, b, &buf, err);

    if (rc)
        return rc;
    const struct judged *j = (const void *)buf->data;
    for (size_t i = 0; i < b->n_seq && rc == SLU_OK; i++) {
        const struct slu_seq *q = &b->seq[i];
        struct slu_count n = slu_seq_count(b, q);
        if (j[i].verdict == TAKE) {
            rc = take(p, b, q, &j[i], err);
            continue;
        }
        slu_count_add(j[i].verdict == NO_BUCKET ? &r->no_bucket : &r->not_sampled, n);
        r->left_checksum = slu_u128_add(r->left_checksum, j[i].key);
    }
    p->n_tok += b->n_tok;
    if (p->progress)
        p->progress(p->progress_ctx, p->n_tok);
    return rc;
}

int slu_permute_read(struct slu_permute *p, struct slu_reader *r, unsigned n_slots,
                     struct slu_sum *total, void (*progress)(void *ctx, uint64_t n_tok),
                     void *ctx, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {work, emit};

    p->header = slu_reader_header(r);
    p->progress = progress;
    p->progress_ctx = ctx;
    slu_sidecar_init(&p->verdicts);
    int rc = slu_stream_run(r, &ops, p, p->cfg.n_threads, n_slots, total, err);
    slu_sidecar_release(&p->verdicts);
    if (!rc && p->select) {
        p->cut.tok = p->cfg.max_tokens;
        rc = slu_select_cut(p->select, &p->cut, 1, err);
    }
    return rc ? rc : slu_sorter_seal(p->sorter, err);
}

/* ---- out ---- */

/* Whether the next record is within max_tokens. */
static bool within(struct slu_permute *p, struct slu_u128 key, uint64_t n_tok)
{
    uint64_t max = p->cfg.max_tokens;
    if (p->select) {
        /* Equal keys are sequences of the same segments, so of one bucket. */
        int bucket = slu_header_bucket_of(p->header, n_tok);
        struct slu_cut cut = p->cut;
        cut.key = in_group(cut.key, bucket < 0 ? 0 : (unsigned)bucket, n_group(p));
        bool take = slu_cut_take(&cut, key, n_tok);
        p->cut.left = cut.left;
        return take;
    }
    if (max != UINT64_MAX && n_tok > max - p->result.out.tokens)
        p->stopped = true;
    return !p->stopped;
}

int slu_permute_next(struct slu_permute *p, struct slu_batch *b, uint64_t n_tok,
                     struct slu_err *err)
{
    struct slu_permute_result *r = &p->result;
    int rc = SLU_OK;

    slu_batch_clear(b);
    while (slu_batch_weight(b) < n_tok && !p->stopped) {
        struct slu_u128 key;
        const void *rec;
        size_t n;
        rc = slu_sorter_next(p->sorter, &key, &rec, &n, err);
        if (rc)
            break;
        uint64_t n_tok_of, n_seg;
        rc = slu_seqrec_peek(rec, n, &n_tok_of, &n_seg, err);
        if (rc)
            break;
        if (!within(p, key, n_tok_of))
            continue;
        rc = slu_seqrec_add(&p->rec, b, rec, n, err);
        if (rc)
            break;
        slu_count_add(&r->out, slu_seq_count(b, &b->seq[b->n_seq - 1]));
    }
    if (rc < 0)
        return rc;
    return b->n_seq ? SLU_OK : SLU_EOF;
}
