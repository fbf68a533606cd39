/* bpe.c - one piece to ids; see bpe.h for why this is BPE. */
#include "lib/tok/bpe.h"

#include <stdlib.h>
#include <string.h>

/* The longest reachable token that p starts with; TOK_NONE where even the byte is
 * unknown. */
static uint32_t longest(const struct tok_model *m, const uint8_t *p, size_t n)
{
    uint32_t best = m->byte_id[p[0]];

    if (n < 2)
        return best;
    uint32_t node = m->two[(uint32_t)p[0] << 8 | p[1]];
    for (size_t i = 2; node != TOK_NONE; i++) {
        if (node < m->n_id)
            best = node;
        if (i >= n)
            break;
        node = bpe_child(m->child, m->child_mask, node, p[i]);
    }
    return best;
}

/* Whether a then b, in a monotone vocabulary, is what BPE makes of their bytes: undoes
 * merges along the seam, the latest first, and looks whether the seam would have been
 * merged before the merge that was undone last. On equal priority the leftmost goes
 * first, hence the asymmetry. */
static bool valid_monotone(const struct tok_model *m, uint32_t a, uint32_t b)
{
    const struct bpe_token *tok = m->token;
    uint32_t limit = UINT32_MAX; /* merges with prio < limit come before */

    for (;;) {
        uint32_t c = bpe_pair(m, a, b);
        if (c != TOK_NONE && tok[c].prio < limit)
            return false;
        uint32_t pa = tok[a].prio, pb = tok[b].prio;
        if (pa > pb) {
            limit = pa;
            a = tok[a].right;
        } else if (pb) {
            limit = pb + 1;
            b = tok[b].left;
        } else {
            return true;
        }
    }
}

static unsigned put_bytes(const struct tok_model *m, uint32_t id, uint32_t *sym)
{
    const uint8_t *p = m->table->bytes + m->table->off[id];

    for (unsigned i = 0; i < m->len[id]; i++)
        sym[i] = m->byte_id[p[i]];
    return m->len[id];
}

/* The same for any two tokens: runs BPE on the bytes of both. */
static bool valid_any(const struct tok_model *m, uint32_t a, uint32_t b)
{
    uint32_t sym[2 * BPE_MAX_LEN];
    unsigned n = put_bytes(m, a, sym);

    n += put_bytes(m, b, sym + n);
    while (n > 1) {
        uint32_t best = UINT32_MAX, made = 0;
        unsigned at = 0;
        for (unsigned i = 0; i + 1 < n; i++) {
            uint32_t c = bpe_pair(m, sym[i], sym[i + 1]);
            if (c != TOK_NONE && m->token[c].prio < best) {
                best = m->token[c].prio;
                made = c;
                at = i;
            }
        }
        if (best == UINT32_MAX)
            break;
        sym[at] = made;
        memmove(sym + at + 1, sym + at + 2, (n - at - 2) * sizeof *sym);
        n--;
    }
    return n == 2 && sym[0] == a && sym[1] == b;
}

static inline bool valid(const struct tok_model *m, uint32_t a, uint32_t b)
{
    return m->odd[a] | m->odd[b] ? valid_any(m, a, b) : valid_monotone(m, a, b);
}

/* The same with a memory of what it found. */
static bool valid_memo(const struct tok_model *m, struct bpe_scratch *s, uint32_t a,
                       uint32_t b)
{
    uint64_t key = ((uint64_t)a << 21 | b) + 1;
    uint64_t *e = &s->memo[bpe_mix(key) & (BPE_MEMO - 1)];

    if (*e >> 1 != key)
        *e = key << 1 | valid(m, a, b);
    return *e & 1;
}

static int make_room(struct bpe_scratch *s, size_t n, struct slu_ids *ids,
                     struct slu_err *err)
{
    size_t need, words = n / 64 + 1;
    int rc;

    if (slu_add_overflow(ids->n, n, &need))
        return slu_fail_nomem(err, SIZE_MAX);
    /* An id a byte is the most there can be; long pieces grow as they go. */
    if (n > 4096)
        need = ids->n + 4096;
    if (need > ids->cap &&
        (rc = slu_grow(&ids->id, &ids->cap, need, sizeof *ids->id, err)) < 0)
        return rc;
    if (words > s->cap_dead &&
        (rc = slu_grow(&s->dead, &s->cap_dead, words, sizeof *s->dead, err)) < 0)
        return rc;
    memset(s->dead, 0, words * sizeof *s->dead);
    return SLU_OK;
}

/* A search for the ids of one piece. It is hard when most steps are taken back. */
#define HARD_BACK 64
struct search {
    const struct tok_model *m;
    struct bpe_scratch *s;
    const uint8_t *p;
    size_t n, pos;
    uint32_t last; /* the id before pos, TOK_NONE at the start */
    size_t n_put, n_back;
    bool is_hard; /* remember pairs, try repetition first */
};

/* Whether t may follow; *end is where it then ends. */
static inline bool may_follow(const struct search *q, uint32_t t, size_t *end)
{
    *end = q->pos + q->m->len[t];
    if (q->s->dead[*end / 64] >> (*end % 64) & 1)
        return false;
    if (q->last == TOK_NONE)
        return true;
    return q->is_hard ? valid_memo(q->m, q->s, q->last, t) : valid(q->m, q->last, t);
}

/* The first of t and the tokens shorter than it that may follow, or TOK_NONE. */
static inline uint32_t choose(const struct search *q, uint32_t t, size_t *end)
{
    while (t != TOK_NONE && !may_follow(q, t, end))
        t = q->m->token[t].shorter;
    return t;
}

/* The token before pos once more? In long runs of one character the longest token is
 * often a wrong turn, again and again; in what order tokens are tried does not matter.
 */
static inline bool repeats(const struct search *q)
{
    size_t len = q->last == TOK_NONE ? 0 : q->m->len[q->last];

    return len && q->n - q->pos >= len &&
           !memcmp(q->p + q->pos, q->p + q->pos - len, len);
}

/* Steps back from q->pos, where nothing fits. Returns the token to try next. */
static int step_back(struct search *q, struct slu_ids *ids, size_t first,
                     uint32_t *next, struct slu_err *err)
{
    uint32_t t = ids->id[--ids->n];

    q->s->dead[q->pos / 64] |= UINT64_C(1) << (q->pos % 64);
    q->pos -= q->m->len[t];
    q->last = ids->n > first ? ids->id[ids->n - 1] : TOK_NONE;
    *next = q->is_hard && t == q->last ? longest(q->m, q->p + q->pos, q->n - q->pos)
                                       : q->m->token[t].shorter;
    if (++q->n_back > HARD_BACK && !q->is_hard && q->n_back > q->n_put / 2) {
        q->is_hard = true;
        if (!q->s->memo && !(q->s->memo = calloc(BPE_MEMO, sizeof *q->s->memo)))
            return slu_fail_nomem(err, BPE_MEMO * sizeof *q->s->memo);
    }
    return SLU_OK;
}

int bpe_encode(const struct tok_model *m, struct bpe_scratch *s, const uint8_t *p,
               size_t n, struct slu_ids *ids, struct slu_err *err)
{
    struct search q = {.m = m, .s = s, .p = p, .n = n, .last = TOK_NONE};
    size_t first = ids->n, end = 0;
    int rc = make_room(s, n, ids, err);

    if (rc < 0)
        return rc;
    if (m->n_whole && (q.last = tok_index_find(&m->whole, p, n)) != TOK_NONE) {
        ids->id[ids->n++] = q.last;
        return SLU_OK;
    }
    for (uint32_t t = longest(m, p, n);;) {
        t = choose(&q, t, &end);
        if (t != TOK_NONE) {
            if (ids->n == ids->cap && (rc = slu_grow(&ids->id, &ids->cap, ids->n + 1,
                                                     sizeof *ids->id, err)) < 0)
                break;
            ids->id[ids->n++] = t;
            q.n_put++;
            if (end == n)
                return SLU_OK;
            q.last = t;
            q.pos = end;
            if (!q.is_hard || !repeats(&q) || !may_follow(&q, t, &end))
                t = longest(m, p + q.pos, n - q.pos);
        } else if (ids->n > first) {
            if ((rc = step_back(&q, ids, first, &t, err)) < 0)
                break;
        } else {
            rc = slu_fail(err, SLU_E_UNSUPPORTED,
                          "the vocabulary has no token for byte 0x%02x", p[0]);
            break;
        }
    }
    ids->n = first;
    return rc;
}

void bpe_scratch_release(struct bpe_scratch *s)
{
    free(s->dead);
    free(s->memo);
    memset(s, 0, sizeof *s);
}
