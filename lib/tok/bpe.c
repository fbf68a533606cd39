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
        node = bpe_child(m, node, p[i]);
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

/* The same for any priorities: runs BPE on the bytes of both. */
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

/* valid_any with a memory of what it found. */
static bool valid_memo(const struct tok_model *m, struct bpe_scratch *s, uint32_t a,
                       uint32_t b)
{
    uint64_t key = ((uint64_t)a << 21 | b) + 1;
    uint64_t *e = &s->memo[bpe_mix(key) & (BPE_MEMO - 1)];

    if (*e >> 1 != key)
        *e = key << 1 | valid_any(m, a, b);
    return *e & 1;
}

static bool valid(const struct tok_model *m, struct bpe_scratch *s, uint32_t a,
                  uint32_t b)
{
    return m->monotone ? valid_monotone(m, a, b) : valid_memo(m, s, a, b);
}

static int make_room(const struct tok_model *m, struct bpe_scratch *s, size_t n,
                     struct slu_ids *ids, struct slu_err *err)
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
    if (!m->monotone && !s->memo) {
        s->memo = calloc(BPE_MEMO, sizeof *s->memo);
        if (!s->memo)
            return slu_fail_nomem(err, BPE_MEMO * sizeof *s->memo);
    }
    return SLU_OK;
}

int bpe_encode(const struct tok_model *m, struct bpe_scratch *s, const uint8_t *p,
               size_t n, struct slu_ids *ids, struct slu_err *err)
{
    size_t first = ids->n, pos = 0;
    uint32_t last = TOK_NONE;
    int rc = make_room(m, s, n, ids, err);

    if (rc < 0)
        return rc;
    if (m->n_whole && (last = tok_index_find(&m->whole, p, n)) != TOK_NONE) {
        ids->id[ids->n++] = last;
        return SLU_OK;
    }
    uint32_t t = longest(m, p, n);
    for (;;) {
        size_t end = 0;
        while (t != TOK_NONE) {
            end = pos + m->len[t];
            if (!(s->dead[end / 64] >> (end % 64) & 1) &&
                (last == TOK_NONE || valid(m, s, last, t)))
                break;
            t = m->token[t].shorter;
        }
        if (t != TOK_NONE) {
            if (ids->n == ids->cap && (rc = slu_grow(&ids->id, &ids->cap, ids->n + 1,
                                                     sizeof *ids->id, err)) < 0)
                break;
            ids->id[ids->n++] = t;
            if (end == n)
                return SLU_OK;
            last = t;
            pos = end;
            t = longest(m, p + pos, n - pos);
        } else if (ids->n > first) {
            s->dead[pos / 64] |= UINT64_C(1) << (pos % 64);
            t = ids->id[--ids->n];
            pos -= m->len[t];
            t = m->token[t].shorter;
            last = ids->n > first ? ids->id[ids->n - 1] : TOK_NONE;
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
