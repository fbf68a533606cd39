/* bpe_trie.c - the trie by which the longest token is found. */
#include "lib/token/bpe.h"

#include <stdlib.h>

static int grow_child(struct bpe_trie *x, struct slu_err *err)
{
    uint32_t old = x->child ? x->child_mask + 1 : 0, size = old ? old * 2 : 4096;
    uint64_t *was = x->child;

    x->child = calloc(size, sizeof *x->child);
    if (!x->child) {
        x->child = was;
        return slu_fail_nomem(err, size * sizeof *x->child);
    }
    x->child_mask = size - 1;
    for (uint32_t i = 0; i < old; i++) {
        if (was[i])
            bpe_put(x->child, x->child_mask, was[i] >> 24, 24, was[i] & 0xFFFFFF);
    }
    free(was);
    return SLU_OK;
}

static int put_step(struct bpe_trie *x, uint64_t key, uint32_t node,
                    struct slu_err *err)
{
    int rc = x->n_child > x->child_mask / 8 * 5 ? grow_child(x, err) : SLU_OK;

    if (rc)
        return rc;
    bpe_put(x->child, x->child_mask, key, 24, node << 2);
    x->n_child++;
    return SLU_OK;
}

/* Adds a node whose bytes are no token. */
static int new_node(struct bpe_trie *x, uint32_t best, uint32_t *node,
                    struct slu_err *err)
{
    size_t k = x->n_node - x->n_tok;
    int rc;

    if (x->n_node >= BPE_MAX_NODE)
        return slu_fail(err, SLU_E_LIMIT, "the vocabulary has too many prefixes");
    if ((rc = slu_grow(&x->best, &x->cap_best, k + 1, sizeof *x->best, err)) ||
        (rc = slu_grow(&x->flags, &x->cap_flags, x->n_node + 1, 1, err)))
        return rc;
    x->best[k] = best;
    x->flags[x->n_node] = 0;
    *node = x->n_node++;
    return SLU_OK;
}

/* Puts one token in the trie, which has all shorter ones. */
static int put_token(struct bpe_trie *x, uint32_t t, const uint8_t *p, size_t n,
                     uint32_t *shorter, struct slu_err *err)
{
    uint32_t *two = &x->two[bpe_load16(p)], best = p[0], node, next;
    int rc;

    if (*two == TOK_NONE) {
        node = t;
        if (n > 2 && (rc = new_node(x, best, &node, err)))
            return rc;
        *two = node << 2;
    }
    node = *two >> 2;
    for (size_t i = 2; i < n; i += 2) {
        if (node < x->n_tok)
            best = node;
        bool odd = i + 1 == n;
        uint64_t key = bpe_key(node, odd, odd ? p[i] : bpe_load16(p + i));
        x->flags[node] |= odd ? BPE_ODD : BPE_EVEN;
        if (!odd) {
            next = bpe_step(x->child, x->child_mask, bpe_key(node, true, p[i]));
            best = next ? next >> 2 : best;
        }
        next = bpe_step(x->child, x->child_mask, key);
        if (!next) {
            next = t;
            if (i + 2 < n && (rc = new_node(x, best, &next, err)))
                return rc;
            if ((rc = put_step(x, key, next, err)))
                return rc;
        } else {
            next >>= 2;
        }
        node = next;
    }
    *shorter = best;
    return SLU_OK;
}

/* Returns the toks that are longer than a byte, sorted by length (counting sort). */
static uint32_t *by_length(const struct bpe_token *token, uint32_t n_tok)
{
    uint32_t *start = calloc(BPE_MAX_LEN + 2, sizeof *start);
    uint32_t *order = malloc(((size_t)n_tok + 1) * sizeof *order);

    if (start && order) {
        for (uint32_t t = 256; t < n_tok; t++)
            start[token[t].len + 1]++;
        for (unsigned i = 1; i < BPE_MAX_LEN + 2; i++)
            start[i] += start[i - 1];
        for (uint32_t t = 256; t < n_tok; t++)
            order[start[token[t].len]++] = t;
    } else {
        free(order);
        order = NULL;
    }
    free(start);
    return order;
}

int bpe_trie_make(struct bpe_trie *x, const struct slu_vocab_table *table,
                  struct bpe_token *token, uint32_t n_tok, struct slu_err *err)
{
    uint32_t *order = by_length(token, n_tok), shorter = 0;
    int rc = slu_grow(&x->flags, &x->cap_flags, n_tok, 1, err);

    x->n_tok = x->n_node = n_tok;
    x->two = malloc(65536 * sizeof *x->two);
    if (!rc && (!order || !x->two))
        rc = slu_fail_nomem(err, (65536 + (size_t)n_tok) * sizeof *x->two);
    if (rc || (rc = grow_child(x, err)))
        goto out;
    memset(x->two, 0xff, 65536 * sizeof *x->two);
    memset(x->flags, 0, n_tok);
    for (uint32_t k = 0; k < n_tok - 256 && !rc; k++) {
        struct bpe_token *t = &token[order[k]];
        rc = put_token(x, order[k], table->bytes + table->off[t->id], t->len, &shorter,
                       err);
        t->shorter = shorter;
    }
    for (uint32_t i = 0; i < 65536 && !rc; i++) {
        if (x->two[i] != TOK_NONE)
            x->two[i] |= x->flags[x->two[i] >> 2];
    }
    for (uint32_t i = 0; i <= x->child_mask && !rc; i++) {
        if (x->child[i])
            x->child[i] |= x->flags[(x->child[i] & 0xFFFFFF) >> 2];
    }
out:
    free(order);
    return rc;
}

void bpe_trie_release(struct bpe_trie *x)
{
    free(x->two);
    free(x->best);
    free(x->child);
    free(x->flags);
    memset(x, 0, sizeof *x);
}
