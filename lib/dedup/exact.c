#include "lib/dedup/exact.h"

#include <stdlib.h>
#include <string.h>

#include "lib/le.h"
#include "lib/dedup/seen.h"
#include "lib/dedup/waitlist.h"
#include "lib/sidecar.h"
#include "lib/order/sorter.h"

enum { BATCH_TOK = 1 << 18 }; /* tokens of a batch that is read back */

struct slu_exact {
    struct slu_exact_cfg cfg;
    char *tmpdir;
    struct slu_seen seen;
    uint64_t seen_byte, sorter_byte;

    /* What waits: in the spool, in stream order, sequences that are undecided and, if
     * pairs are wanted, pairs that were decided behind one that is not. */
    struct slu_waitlist *list;
    struct slu_sorter *by_hash; /* key: hash; bytes: place in order, place */
    struct slu_sorter *to_drop; /* key: ordinal; bytes: the kept one's place */
    uint64_t n_wait, n_known;   /* in by_hash: of the stream, and of an index */
    struct slu_exact_result result;
    bool finished;
};

int slu_exact_new(struct slu_exact **out, const struct slu_exact_cfg *cfg,
                  struct slu_err *err)
{
    uint64_t budget = cfg->budget_byte;

    *out = NULL;
    if (budget < 1 << 20)
        return slu_fail(err, SLU_E_LIMIT, "1 MiB is the least memory for duplicates");
    struct slu_exact *x = calloc(1, sizeof *x);
    if (!x)
        return slu_fail_nomem(err, sizeof *x);
    x->cfg = *cfg;
    x->cfg.tmpdir = x->tmpdir = strdup(cfg->tmpdir);
    if (!x->tmpdir) {
        free(x);
        return slu_fail_nomem(err, strlen(cfg->tmpdir));
    }
    uint64_t spool_byte = budget / 16 < 1 << 20 ? budget / 16 : 1 << 20;
    budget -= spool_byte;
    x->seen_byte =
        budget / 8 * 5; /* 1.5 times that while it grows, without the sorter */
    x->sorter_byte = budget - x->seen_byte;
    slu_seen_init(&x->seen, x->seen_byte, cfg->pair != NULL);
    int rc = slu_waitlist_new(&x->list, spool_byte, x->tmpdir, err);
    if (rc) {
        slu_exact_free(x);
        return rc;
    }
    *out = x;
    return SLU_OK;
}

void slu_exact_free(struct slu_exact *x)
{
    if (!x)
        return;
    slu_seen_release(&x->seen);
    slu_waitlist_free(x->list);
    slu_sorter_free(x->by_hash);
    slu_sorter_free(x->to_drop);
    free(x->tmpdir);
    free(x);
}

const struct slu_exact_result *slu_exact_result(struct slu_exact *x)
{
    return &x->result;
}

/* Big-endian, as memcmp orders, and back. */
static uint64_t ordered(uint64_t v)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(v) : v;
}

/* order: 0 for what an index has, above that for what waits. */
static int sort_in(struct slu_exact *x, struct slu_u128 hash, uint64_t order,
                   const struct slu_place *place, struct slu_err *err)
{
    const uint64_t key = ordered(order);
    const struct slu_piece row[2] = {{&key, sizeof key},
                                     {place, x->cfg.pair ? sizeof *place : 0}};
    int rc = SLU_OK;

    if (!x->by_hash) {
        struct slu_sorter_cfg cfg = {x->sorter_byte, x->tmpdir, x->cfg.n_threads};
        rc = slu_sorter_new(&x->by_hash, &cfg, err);
    }
    return rc ? rc : slu_sorter_add(x->by_hash, hash, row, 2, err);
}

int slu_exact_known(struct slu_exact *x, struct slu_u128 hash, uint64_t number,
                    struct slu_err *err)
{
    const struct slu_place place = slu_place_of_index(number);
    struct slu_place first = place;
    enum slu_seen_answer answer;
    int rc = slu_seen_check(&x->seen, hash, &first, &answer, err);

    if (rc || answer != SLU_SEEN_FULL)
        return rc;
    x->n_known++;
    return sort_in(x, hash, 0, &place, err);
}

/* Puts a sequence that the table cannot decide aside. */
static int wait(struct slu_exact *x, const struct slu_batch *b, const struct slu_seq *q,
                struct slu_u128 hash, struct slu_err *err)
{
    struct slu_place place = slu_place_of(b, q);
    int rc = slu_waitlist_put(x->list, b, q, x->n_wait, err);

    return rc ? rc : sort_in(x, hash, ++x->n_wait, &place, err);
}

/* Reports a pair, or puts it aside where something before it waits. */
static int tell(struct slu_exact *x, const struct slu_exact_pair *p,
                struct slu_err *err)
{
    if (!x->cfg.pair)
        return SLU_OK;
    return x->n_wait ? slu_waitlist_note(x->list, p, sizeof *p, err)
                     : x->cfg.pair(x->cfg.ctx, p, err);
}

int slu_exact_put(struct slu_exact *x, struct slu_batch *b, const struct slu_u128 *hash,
                  struct slu_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n_seq; i++) {
        struct slu_seq q = b->seq[i];
        struct slu_exact_pair pair = {slu_place_of(b, &q), slu_place_of(b, &q)};
        enum slu_seen_answer answer;
        int rc = slu_seen_check(&x->seen, hash[i], &pair.kept, &answer, err);
        if (rc == SLU_OK && answer == SLU_SEEN_KNOWN) {
            slu_count_add(&x->result.dropped, slu_seq_count(b, &q));
            rc = tell(x, &pair, err);
        } else if (rc == SLU_OK && (answer == SLU_SEEN_FULL || x->n_wait)) {
            /* Also what just fitted: something before it waits. */
            rc = wait(x, b, &q, hash[i], err);
        } else if (rc == SLU_OK) {
            b->seq[n++] = q;
        }
        if (rc)
            return rc;
    }
    if (n < b->n_seq)
        b->sum_valid = false;
    b->n_seq = n;
    return n ? x->cfg.emit(x->cfg.ctx, b, err) : SLU_OK;
}

/* ---- what waited ---- */

/* Hash order: the first of each hash stays, the others' ordinals go to to_drop. */
static int choose(struct slu_exact *x, struct slu_err *err)
{
    struct slu_sorter_cfg cfg = {x->seen_byte, x->tmpdir, x->cfg.n_threads};
    struct slu_u128 first = {0, 0}, hash;
    struct slu_place kept = {0, 0, 0};
    uint64_t n_read = 0;
    unsigned spread = (unsigned)__builtin_clzll(x->n_wait | 1);
    const void *p;
    size_t n;

    int rc = slu_sorter_new(&x->to_drop, &cfg, err);
    if (rc == SLU_OK)
        rc = slu_sorter_seal(x->by_hash, err);
    while (rc == SLU_OK) {
        rc = slu_sorter_next(x->by_hash, &hash, &p, &n, err);
        if (rc)
            break;
        if (n_read++ == 0 || slu_u128_cmp(hash, first)) {
            first = hash;
            if (x->cfg.pair)
                memcpy(&kept, (const uint8_t *)p + 8, sizeof kept);
            continue;
        }
        uint64_t order;
        memcpy(&order, p, sizeof order);
        order = ordered(order);
        if (order == 0)
            continue; /* twice in the index */
        const struct slu_u128 key = {0, (order - 1) << spread};
        const struct slu_piece piece = {&kept, x->cfg.pair ? sizeof kept : 0};
        rc = slu_sorter_add(x->to_drop, key, &piece, 1, err);
    }
    if (rc == SLU_EOF)
        rc = SLU_OK;
    n_read -= x->n_known;
    if (rc == SLU_OK && n_read != x->n_wait)
        rc =
            slu_fail(err, SLU_E_CONSERVATION,
                     "internal error: %llu sequences waited and %llu came back; please "
                     "report it",
                     (unsigned long long)x->n_wait, (unsigned long long)n_read);
    return rc ? rc : slu_sorter_seal(x->to_drop, err);
}

static int emit_batch(struct slu_exact *x, struct slu_batch *b, struct slu_err *err)
{
    int rc = b->n_seq ? x->cfg.emit(x->cfg.ctx, b, err) : SLU_OK;

    slu_batch_clear(b);
    return rc;
}

/* The next ordinal to drop, UINT64_MAX if there is none, and the kept one's place. */
static int next_drop(struct slu_exact *x, uint64_t *ordinal, struct slu_place *kept,
                     struct slu_err *err)
{
    struct slu_u128 key;
    const void *p;
    size_t n;
    int rc = slu_sorter_next(x->to_drop, &key, &p, &n, err);

    *ordinal = UINT64_MAX;
    if (rc == SLU_OK) {
        *ordinal = key.hi >> __builtin_clzll(x->n_wait | 1);
        memcpy(kept, p, n);
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

/* Stream order: reads the spool back and leaves out what is in to_drop. */
static int replay(struct slu_exact *x, struct slu_batch *b, struct slu_err *err)
{
    uint64_t ordinal = 0, drop = UINT64_MAX;
    struct slu_exact_pair pair;

    int rc = slu_waitlist_rewind(x->list, err);
    if (rc == SLU_OK)
        rc = next_drop(x, &drop, &pair.kept, err);
    while (rc == SLU_OK) {
        struct slu_waiting item;
        rc = slu_waitlist_next(x->list, b, &item, err);
        if (rc)
            break;
        if (item.note) {
            rc = x->cfg.pair(x->cfg.ctx, item.note, err);
            continue;
        }
        if (ordinal++ == drop) {
            const struct slu_seq *q = &b->seq[b->n_seq - 1];
            pair.dropped = slu_place_of(b, q);
            slu_count_add(&x->result.dropped, slu_seq_count(b, q));
            b->n_seq--;
            if (x->cfg.pair)
                rc = x->cfg.pair(x->cfg.ctx, &pair, err);
            if (rc == SLU_OK)
                rc = next_drop(x, &drop, &pair.kept, err);
        }
        if (rc == SLU_OK && slu_batch_weight(b) >= BATCH_TOK)
            rc = emit_batch(x, b, err);
    }
    if (rc != SLU_EOF)
        return rc;
    if (ordinal != x->n_wait || drop != UINT64_MAX)
        return slu_fail(
            err, SLU_E_CONSERVATION,
            "internal error: %llu sequences waited and %llu came back; please "
            "report it",
            (unsigned long long)x->n_wait, (unsigned long long)ordinal);
    return emit_batch(x, b, err);
}

int slu_exact_finish(struct slu_exact *x, struct slu_err *err)
{
    struct slu_batch b;
    int rc;

    slu_seen_release(&x->seen);
    if (x->n_wait == 0)
        return SLU_OK;
    slu_batch_init(&b, x->cfg.tok_bytes);
    rc = choose(x, err);
    x->result.waited = x->n_wait;
    x->result.spilled_byte = slu_sorter_spilled(x->by_hash);
    slu_sorter_free(x->by_hash);
    x->by_hash = NULL;
    if (rc == SLU_OK)
        rc = replay(x, &b, err);
    x->result.spilled_byte += slu_waitlist_spilled(x->list);
    if (x->to_drop)
        x->result.spilled_byte += slu_sorter_spilled(x->to_drop);
    slu_batch_release(&b);
    return rc;
}

/* ---- a whole stream ---- */

struct run {
    struct slu_exact *x;
    struct slu_sidecar hashes;
};

static int work(void *ctx, unsigned worker, struct slu_batch *b, struct slu_err *err)
{
    struct run *t = ctx;
    struct slu_buf *buf;
    int rc = slu_sidecar_of(&t->hashes, b, &buf, err);

    (void)worker;
    if (rc)
        return rc;
    slu_buf_clear(buf);
    rc = slu_buf_reserve(buf, b->n_seq * sizeof(struct slu_u128), err);
    if (rc)
        return rc;
    struct slu_u128 *h = (void *)buf->data;
    for (size_t i = 0; i < b->n_seq; i++)
        h[i] = slu_hash_tokens(slu_batch_at(b, b->seq[i].tok_off), b->seq[i].len_tok,
                               b->tok_bytes);
    return SLU_OK;
}

static int emit(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct run *t = ctx;
    struct slu_buf *buf;
    int rc = slu_sidecar_of(&t->hashes, b, &buf, err);

    return rc ? rc : slu_exact_put(t->x, b, (const void *)buf->data, err);
}

int slu_exact_run(struct slu_exact *x, struct slu_reader *r, unsigned n_slots,
                  struct slu_sum *total, struct slu_err *err)
{
    static const struct slu_stream_ops ops = {work, emit};
    struct run t = {.x = x};

    slu_sidecar_init(&t.hashes);
    int rc = slu_stream_run(r, &ops, &t, x->cfg.n_threads, n_slots, total, err);
    slu_sidecar_release(&t.hashes);
    return rc ? rc : slu_exact_finish(x, err);
}
