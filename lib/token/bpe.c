/* bpe.c - from a pretoken to ids; bpe.h says why this is BPE. */
#include "lib/token/bpe.h"

#include <stdlib.h>
#include <string.h>

/* Returns the longest tok that p starts with, and its length in bytes. */
static inline uint32_t longest(const struct tok_model *m, const uint8_t *p, size_t n,
                               size_t *len)
{
    size_t i = 2;

    *len = 1;
    if (n < 2)
        return p[0];
    uint32_t ref = m->two[bpe_load16(p)], next;
    if (ref == TOK_NONE)
        return p[0];
    while (ref & BPE_EVEN && i + 2 <= n) {
        uint64_t key = bpe_key(ref >> 2, false, bpe_load16(p + i));
        next = bpe_step(m->child, m->child_mask, key);
        if (!next)
            break;
        ref = next;
        i += 2;
    }
    if (ref & BPE_ODD && i < n) {
        uint64_t key = bpe_key(ref >> 2, true, p[i]);
        next = bpe_step(m->child, m->child_mask, key);
        if (next) {
            *len = i + 1;
            return next >> 2;
        }
    }
    uint32_t t = ref >> 2;
    if (t < m->n_tok) {
        *len = i;
        return t;
    }
    t = m->best[t - m->n_tok];
    *len = m->token[t].len;
    return t;
}

/* Returns the tok that left and right merge into, or TOK_NONE. */
static inline uint32_t pair_of(const struct tok_model *m, uint32_t left, uint32_t right)
{
    uint64_t key = (uint64_t)left << 21 | right;

    /* Most pairs do not merge, and most of those are found without the table. */
    if (!(m->token[left].behind >> (right & 31) &
          m->token[right].before >> (left & 31) & 1))
        return TOK_NONE;
    uint32_t c = (uint32_t)bpe_find(m->pair, m->pair_mask, key, 21);
    return c ? c : TOK_NONE;
}

/* Whether the two bytes at the seam of a and b, neither of them odd, merge before their
 * tokens are made. This finds most pairs that are not valid. */
static inline bool seam_fails(const struct tok_model *m, uint32_t a, uint32_t b,
                              const uint8_t *seam)
{
    uint32_t c = m->two[bpe_load16(seam)] >> 2;

    return c < m->n_tok && c < m->token[a].last && c <= m->token[b].first;
}

/* Whether BPE of the bytes of a and b, neither of them odd, gives a then b. Undoes
 * merges along the seam, the latest first, and tests whether the seam would have merged
 * before the merge that was undone last. At equal priority the leftmost pair merges
 * first, hence the asymmetry. */
static inline bool valid_monotone(const struct tok_model *m, uint32_t a, uint32_t b,
                                  const uint8_t *seam)
{
    const struct bpe_token *tok = m->token;
    uint32_t limit = TOK_NONE;     /* toks below it are merged before */
    if (seam_fails(m, a, b, seam)) /* tested first, though undone last */
        return false;
    while ((a | b) >= 256) {
        if (pair_of(m, a, b) < limit)
            return false;
        /* No branch, as it could not be predicted. */
        bool is_a = a > b;
        const uint32_t *half = is_a ? &tok[a].right : &tok[b].left;
        limit = is_a ? a : b + 1;
        a = is_a ? *half : a;
        b = is_a ? b : *half;
    }
    return true;
}

static unsigned put_bytes(const struct tok_model *m, uint32_t t, uint32_t *sym)
{
    const uint8_t *p = m->table->bytes + m->table->off[m->token[t].id];

    for (unsigned i = 0; i < m->token[t].len; i++)
        sym[i] = p[i];
    return m->token[t].len;
}

/* As valid_monotone, for any two tokens: runs BPE on the bytes of both. */
static bool valid_any(const struct tok_model *m, uint32_t a, uint32_t b)
{
    uint32_t sym[2 * BPE_MAX_LEN];
    unsigned n = put_bytes(m, a, sym);

    n += put_bytes(m, b, sym + n);
    while (n > 1) {
        uint32_t best = TOK_NONE;
        unsigned at = 0;
        for (unsigned i = 0; i + 1 < n; i++) {
            uint32_t c = pair_of(m, sym[i], sym[i + 1]);
            if (c < best) {
                best = c;
                at = i;
            }
        }
        if (best == TOK_NONE)
            break;
        sym[at] = best;
        memmove(sym + at + 1, sym + at + 2, (n - at - 2) * sizeof *sym);
        n--;
    }
    return n == 2 && sym[0] == a && sym[1] == b;
}

/* Whether a and b are a valid pair. seam: the last byte of a and the first of b. */
static inline bool valid(const struct tok_model *m, uint32_t a, uint32_t b,
                         const uint8_t *seam)
{
    if (m->token[a].odd | m->token[b].odd)
        return valid_any(m, a, b);
    return valid_monotone(m, a, b, seam);
}

/* Changes toks to ids, in place. False if a byte has no id; as a tok it is like any
 * other. */
static inline bool to_ids(const struct tok_model *m, uint32_t *tok, size_t n)
{
    bool good = true;

    for (size_t i = 0; i < n; i++) {
        tok[i] = bpe_id_of(m, tok[i]);
        good &= tok[i] != BPE_NONE;
    }
    return good;
}

/* ---- short pretokens ---- */

/* Finds the toks of a pretoken of 1 to SHORT_MOST bytes; id has room for n toks. Returns
 * how many, or 0 if the vocabulary cannot express it. */
#define SHORT_MOST 63
static unsigned search_short(const struct tok_model *m, const uint8_t *p, size_t n,
                             uint32_t *id)
{
    const struct bpe_token *tok = m->token;
    uint64_t dead = 0; /* places after which no token fits */
    size_t pos = 0, len;
    unsigned k = 0;

    uint32_t t = longest(m, p, n, &len);
    for (;;) {
        size_t end = pos + len;
        if (!(dead >> end & 1) && (!k || valid(m, id[k - 1], t, p + pos - 1))) {
            id[k++] = t;
            if (end == n)
                break;
            pos = end;
            t = longest(m, p + pos, n - pos, &len);
            continue;
        }
        while ((t = tok[t].shorter) == BPE_NONE) {
            if (!k)
                return 0;
            dead |= UINT64_C(1) << pos;
            t = id[--k];
            pos -= tok[t].len;
        }
        len = tok[t].len;
    }
    return k;
}

/* ---- any pretoken ---- */

/* As valid, and remembers its results. */
static bool valid_memo(const struct tok_model *m, struct bpe_scratch *s, uint32_t a,
                       uint32_t b, const uint8_t *seam)
{
    uint64_t key = ((uint64_t)a << 21 | b) + 1;
    uint64_t *e = &s->memo[bpe_mix(key) & (BPE_MEMO - 1)];

    if (*e >> 1 != key)
        *e = key << 1 | valid(m, a, b, seam);
    return *e & 1;
}

static int make_room(struct bpe_scratch *s, size_t n, struct slu_ids *ids,
                     struct slu_err *err)
{
    size_t need, words = n / 64 + 1;
    int rc;

    if (slu_add_overflow(ids->n, n, &need))
        return slu_fail_nomem(err, SIZE_MAX);
    /* There is at most one id per byte; for long pretokens the array grows later. */
    if (n > 4096)
        need = ids->n + 4096;
    if (need > ids->cap &&
        (rc = slu_grow(&ids->id, &ids->cap, need, sizeof *ids->id, err)))
        return rc;
    if (n <= SHORT_MOST)
        return SLU_OK;
    if (words > s->cap_dead &&
        (rc = slu_grow(&s->dead, &s->cap_dead, words, sizeof *s->dead, err)))
        return rc;
    memset(s->dead, 0, words * sizeof *s->dead);
    return SLU_OK;
}

/* A search for the toks of one pretoken. It is hard when most steps are taken back. */
#define HARD_BACK 64
struct search {
    const struct tok_model *m;
    struct bpe_scratch *s;
    const uint8_t *p;
    size_t n, pos;
    uint32_t last; /* the tok before pos, TOK_NONE at the start */
    size_t n_put, n_back;
    bool is_hard; /* remember pairs, try repetition first */
};

/* Whether t may follow at q->pos; *end is then its end. */
static inline bool may_follow(const struct search *q, uint32_t t, size_t *end)
{
    const uint8_t *seam = q->p + q->pos - 1;

    *end = q->pos + q->m->token[t].len;
    if (q->s->dead[*end / 64] >> (*end % 64) & 1)
        return false;
    if (q->last == TOK_NONE)
        return true;
    return q->is_hard ? valid_memo(q->m, q->s, q->last, t, seam)
                      : valid(q->m, q->last, t, seam);
}

/* Returns the first of t and its shorter toks that may follow, or BPE_NONE. */
static inline uint32_t choose(const struct search *q, uint32_t t, size_t *end)
{
    while (t != BPE_NONE && !may_follow(q, t, end))
        t = q->m->token[t].shorter;
    return t;
}

/* Whether the token before pos may repeat. In long runs of one character the longest
 * token is often wrong, again and again. The order of trials does not change ids. */
static inline bool repeats(const struct search *q)
{
    size_t len = q->last == TOK_NONE ? 0 : q->m->token[q->last].len;

    return len && q->n - q->pos >= len &&
           !memcmp(q->p + q->pos, q->p + q->pos - len, len);
}

/* Steps back from q->pos, where nothing fits. *next: the token to try next. */
static int step_back(struct search *q, struct slu_ids *ids, size_t first,
                     uint32_t *next, struct slu_err *err)
{
    uint32_t t = ids->id[--ids->n];
    size_t len;

    q->s->dead[q->pos / 64] |= UINT64_C(1) << (q->pos % 64);
    q->pos -= q->m->token[t].len;
    q->last = ids->n > first ? ids->id[ids->n - 1] : TOK_NONE;
    *next = q->is_hard && t == q->last
                ? longest(q->m, q->p + q->pos, q->n - q->pos, &len)
                : q->m->token[t].shorter;
    if (++q->n_back > HARD_BACK && !q->is_hard && q->n_back > q->n_put / 2) {
        q->is_hard = true;
        if (!q->s->memo && !(q->s->memo = calloc(BPE_MEMO, sizeof *q->s->memo)))
            return slu_fail_nomem(err, BPE_MEMO * sizeof *q->s->memo);
    }
    return SLU_OK;
}

static int not_expressible(const struct tok_model *m, const uint8_t *p, size_t n,
                           struct slu_err *err)
{
    size_t i = 0;

    while (i + 1 < n && m->token[p[i]].id != BPE_NONE)
        i++;
    return slu_fail(err, SLU_E_UNSUPPORTED,
                    "the vocabulary has no token for byte 0x%02x", p[i]);
}

int bpe_encode(const struct tok_model *m, struct bpe_scratch *s, const uint8_t *p,
               size_t n, struct slu_ids *ids, struct slu_err *err)
{
    struct search q = {.m = m, .s = s, .p = p, .n = n, .last = TOK_NONE};
    size_t first = ids->n, end = 0, len;
    int rc = make_room(s, n, ids, err);

    if (rc)
        return rc;
    if (m->n_whole && !s->is_part &&
        (q.last = tok_index_find(&m->whole, p, n)) != TOK_NONE) {
        ids->id[ids->n++] = q.last;
        return SLU_OK;
    }
    if (n <= SHORT_MOST) {
        uint32_t *id = ids->id + first;
        unsigned k = search_short(m, p, n, id);
        if (!k || !to_ids(m, id, k))
            return not_expressible(m, p, n, err);
        ids->n += k;
        return SLU_OK;
    }
    for (uint32_t t = longest(m, p, n, &len);;) {
        t = choose(&q, t, &end);
        if (t != BPE_NONE) {
            if (ids->n == ids->cap &&
                (rc = slu_grow(&ids->id, &ids->cap, ids->n + 1, sizeof *ids->id, err)))
                break;
            ids->id[ids->n++] = t;
            q.n_put++;
            if (end == n)
                break;
            q.last = t;
            q.pos = end;
            if (!q.is_hard || !repeats(&q) || !may_follow(&q, t, &end))
                t = longest(m, p + q.pos, n - q.pos, &len);
        } else if (ids->n > first) {
            if ((rc = step_back(&q, ids, first, &t, err)))
                break;
        } else {
            rc = not_expressible(m, p, n, err);
            break;
        }
    }
    if (!rc && !to_ids(m, ids->id + first, ids->n - first))
        rc = not_expressible(m, p, n, err);
    if (rc)
        ids->n = first;
    return rc;
}

/* ---- parts of pretokens ---- */

/* Whether a merge may cross the place before p[0]. */
static inline bool may_cross(const struct tok_model *m, const uint8_t *p)
{
    uint32_t bit = bpe_seam4(p - 2, m->seam4_shift);
    uint32_t word = m->seam[bpe_load16(p - 1)];

    word &= 1 | bpe_seam_left(p[-2]) | bpe_seam_right(p[1]);
    return (word | (m->seam4[bit / 32] >> bit % 32 & 1)) != 0;
}

size_t bpe_cuts(const struct tok_model *m, const uint8_t *p, size_t n, uint32_t add,
                uint32_t *end, size_t max)
{
    size_t k = 0, i = 2;

    /* There are no cuts near the edges: a cut needs two bytes on either side. */
    for (; i + 2 <= n && k + 1 < max; i++) {
        end[k] = add + (uint32_t)i;
        k += !may_cross(m, p + i);
    }
    if (i + 2 > n)
        end[k++] = add + (uint32_t)n;
    return k;
}

bool bpe_is_whole(const struct tok_model *m, const uint8_t *p, size_t n)
{
    return m->n_whole && tok_index_find(&m->whole, p, n) != TOK_NONE;
}

/* ---- long pretokens, one by one ---- */

/* Returns the tok that a pair makes, or TOK_NONE. Reads only what bpe_merge.h reads. */
static uint32_t made_by(const struct tok_model *m, uint32_t left, uint32_t right)
{
    const uint64_t key = (uint64_t)left << 21 | right, h = bpe_pair_hash(key);
    const uint64_t both = bpe_might(h);
    uint32_t c = 0;

    if ((m->might[h >> m->might_shift] & both) == both)
        c = (uint32_t)bpe_find(m->pair, m->pair_mask, key, 21);
    return c ? c : TOK_NONE;
}

/* Merges a pretoken of up to ALONE_MOST bytes pair by pair, the least tok first. Takes
 * quadratic time, but reads none of the tables that only a search reads. */
#define ALONE_MOST 1023
static int merge_alone(const struct tok_model *m, struct bpe_pretoken *x,
                       struct slu_ids *ids, struct slu_err *err)
{
    uint32_t sym[ALONE_MOST], made[ALONE_MOST];
    size_t n = x->n, at;
    int rc = slu_grow(&ids->id, &ids->cap, ids->n + n, sizeof *ids->id, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++) {
        sym[i] = x->p[i];
        made[i] = i + 1 < n ? made_by(m, x->p[i], x->p[i + 1]) : TOK_NONE;
    }
    for (;; n--) {
        uint32_t best = TOK_NONE;
        for (size_t i = 0; i < n; i++)
            best = made[i] < best ? made[i] : best;
        if (best == TOK_NONE)
            break;
        for (at = 0; made[at] != best;)
            at++;
        memmove(sym + at + 1, sym + at + 2, (n - at - 2) * sizeof *sym);
        memmove(made + at + 1, made + at + 2, (n - at - 2) * sizeof *made);
        sym[at] = best;
        made[at] = at + 2 < n ? made_by(m, best, sym[at + 1]) : TOK_NONE;
        if (at)
            made[at - 1] = made_by(m, sym[at - 1], best);
    }
    if (!to_ids(m, sym, n))
        return not_expressible(m, x->p, x->n, err);
    memcpy(ids->id + ids->n, sym, n * sizeof *sym);
    x->at = ids->n;
    x->n_id = (uint32_t)n;
    ids->n += n;
    return SLU_OK;
}

/* Whether to merge a long pretoken alone. Few of the new pretokens of most text are long: the
 * tables of the search, two thirds of a vocabulary, then stay out of memory. In other
 * text a search takes less time: merging alone may take about as long as merging short
 * pretokens does, and at first somewhat longer. */
#define OWED_MOST (1 << 18)
static bool is_rare(struct bpe_scratch *s, size_t n)
{
    const size_t price = n * n / 256; /* in short pretokens, by time */

    if (n <= BPE_MERGED || n > ALONE_MOST || s->owed + price > OWED_MOST)
        return false;
    s->owed += price;
    return true;
}

/* ---- many pretokens ---- */

const struct bpe_merge_table *bpe_merge_level(const char *level)
{
#if defined(__x86_64__)
    if (level && !strcmp(level, "avx512"))
        return &bpe_merge_avx512;
    if (level && !strcmp(level, "avx2"))
        return &bpe_merge_avx2;
#endif
    (void)level;
    return &bpe_merge_portable;
}

/* Pretokens of one size that wait to be merged. */
struct group {
    struct bpe_pretoken *pretoken[BPE_LANES];
    size_t n, n_byte;
};

/* Merges the pretokens of a group and empties it. */
static int merge_group(const struct tok_model *m, struct bpe_scratch *s,
                       struct group *g, unsigned size, struct slu_ids *ids,
                       struct slu_err *err)
{
    const struct bpe_merge_table *t = s->level ? s->level : &bpe_merge_portable;
    int rc =
        slu_grow(&ids->id, &ids->cap, ids->n + g->n_byte + 16, sizeof *ids->id, err);

    if (rc)
        return rc;
    size_t n = t->merge[size](m, g->pretoken, g->n, ids->id + ids->n);
    for (size_t i = 0; i < g->n; i++) {
        struct bpe_pretoken *x = g->pretoken[i];
        if (!x->n_id)
            return not_expressible(m, x->p, x->n, err);
        x->at += ids->n;
    }
    ids->n += n;
    g->n = g->n_byte = 0;
    return SLU_OK;
}

int bpe_encode_many(const struct tok_model *m, struct bpe_scratch *s,
                    struct bpe_pretoken *pretoken, size_t n, struct slu_ids *ids,
                    struct slu_err *err)
{
    struct group group[BPE_N_MERGE];
    size_t first = ids->n;
    int rc = SLU_OK;

    s->owed -= s->owed < n ? s->owed : n;
    for (size_t i = 0; i < BPE_N_MERGE; i++)
        group[i].n = group[i].n_byte = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        struct bpe_pretoken *x = &pretoken[i];
        const bool is_whole = bpe_is_whole(m, x->p, x->n);
        if (!is_whole && is_rare(s, x->n)) {
            rc = merge_alone(m, x, ids, err);
            continue;
        }
        if (x->n > BPE_MERGED || is_whole) {
            x->at = ids->n;
            rc = bpe_encode(m, s, x->p, x->n, ids, err);
            x->n_id = (uint32_t)(ids->n - x->at);
            continue;
        }
        unsigned size = (x->n > BPE_PADDED) + (x->n > 30);
        struct group *g = &group[size];
        g->pretoken[g->n++] = x;
        g->n_byte += x->n;
        if (g->n == (size_t)BPE_LANES >> size)
            rc = merge_group(m, s, g, size, ids, err);
    }
    for (unsigned i = 0; i < BPE_N_MERGE && !rc; i++) {
        if (group[i].n)
            rc = merge_group(m, s, &group[i], i, ids, err);
    }
    if (rc)
        ids->n = first;
    return rc;
}

void bpe_scratch_release(struct bpe_scratch *s)
{
    free(s->dead);
    free(s->memo);
    memset(s, 0, sizeof *s);
}
