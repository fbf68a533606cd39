/* bpe_build.c - from a vocabulary with merges or ranks to the tables of bpe.h. */
#include "lib/tok/bpe.h"

#include <stdlib.h>
#include <string.h>

/* What is needed while building only. */
struct build {
    const struct bpe_cfg *cfg;
    struct tok_model *m;
    struct tok_index by_bytes; /* ids of the model */
    struct merge_slot {
        uint64_t key; /* left << 32 | right */
        uint32_t prio, result;
    } * merge; /* open addressing; prio 0 empty */
    uint32_t merge_mask;
    uint32_t n_node; /* next free trie node */
    uint32_t n_edge;
};

static uint32_t table_size(size_t n)
{
    uint32_t size = 16;

    while (size < n + n / 2)
        size *= 2;
    return size;
}

static const uint8_t *bytes_of(const struct build *b, uint32_t id, size_t *n)
{
    const struct slu_vocab_table *v = b->cfg->table;

    *n = v->off[id + 1] - v->off[id];
    return v->bytes + v->off[id];
}

static int index_bytes(struct build *b, struct slu_err *err)
{
    const struct slu_vocab_table *v = b->cfg->table;
    int rc = tok_index_init(&b->by_bytes, v, v->n, err);

    if (rc < 0)
        return rc;
    for (uint32_t id = 0; id < v->n; id++) {
        size_t n;
        bytes_of(b, id, &n);
        if (!b->cfg->in_model[id] || !n)
            continue;
        if (n > BPE_MAX_LEN)
            return slu_fail(err, SLU_E_UNSUPPORTED,
                            "token %u has %zu bytes; more than %d are not supported",
                            id, n, BPE_MAX_LEN);
        tok_index_put(&b->by_bytes, id);
    }
    for (unsigned i = 0; i < 256; i++) {
        uint8_t c = (uint8_t)i;
        b->m->byte_id[i] = tok_index_find(&b->by_bytes, &c, 1);
        /* Bytes that valid UTF-8 never has may be missing. */
        if (b->m->byte_id[i] == TOK_NONE && i != 0xC0 && i != 0xC1 && i < 0xF5)
            return slu_fail(err, SLU_E_UNSUPPORTED,
                            "the vocabulary has no token for byte 0x%02x", i);
    }
    return SLU_OK;
}

static int index_merges(struct build *b, struct slu_err *err)
{
    const struct bpe_cfg *cfg = b->cfg;
    uint32_t size = table_size(cfg->n_merge);

    b->merge = calloc(size, sizeof *b->merge);
    if (!b->merge)
        return slu_fail_nomem(err, size * sizeof *b->merge);
    b->merge_mask = size - 1;
    for (size_t k = 0; k < cfg->n_merge; k++) {
        uint64_t key = (uint64_t)cfg->merge[k].left << 32 | cfg->merge[k].right;
        uint32_t i = bpe_mix(key) & b->merge_mask;
        while (b->merge[i].prio && b->merge[i].key != key)
            i = (i + 1) & b->merge_mask;
        /* Of equal pairs the last one counts, as in the reference. */
        b->merge[i] = (struct merge_slot){key, (uint32_t)k + 1, cfg->merge[k].result};
    }
    return SLU_OK;
}

/* What two neighbours merge into, p being their n bytes. */
static uint32_t merge_of(const struct build *b, uint32_t left, uint32_t right,
                         const uint8_t *p, size_t n, uint32_t *prio)
{
    if (!b->merge) {
        uint32_t id = tok_index_find(&b->by_bytes, p, n);
        *prio = id + 1;
        return id;
    }
    uint64_t key = (uint64_t)left << 32 | right;
    for (uint32_t i = bpe_mix(key) & b->merge_mask; b->merge[i].prio;
         i = (i + 1) & b->merge_mask) {
        if (b->merge[i].key == key) {
            *prio = b->merge[i].prio;
            return b->merge[i].result;
        }
    }
    return TOK_NONE;
}

struct symbol {
    uint32_t id, off;    /* off: byte in the token */
    uint32_t made, prio; /* what it and the next merge into */
};

static void look(const struct build *b, struct symbol *s, unsigned i, unsigned n,
                 const uint8_t *p)
{
    s[i].made = TOK_NONE;
    if (i + 1 < n)
        s[i].made = merge_of(b, s[i].id, s[i + 1].id, p + s[i].off,
                             s[i + 2].off - s[i].off, &s[i].prio);
}

/* Plain BPE of one token's bytes; its last merge goes to *out. False where BPE does not
 * arrive at the token. */
static bool isolate(const struct build *b, uint32_t id, struct bpe_token *out)
{
    struct symbol s[BPE_MAX_LEN + 2];
    size_t len;
    const uint8_t *p = bytes_of(b, id, &len);
    unsigned n = (unsigned)len;

    for (unsigned i = 0; i <= n + 1; i++) {
        s[i].off = i < n ? i : n;
        s[i].id = i < n ? b->m->byte_id[p[i]] : TOK_NONE;
        if (i < n && s[i].id == TOK_NONE)
            return false;
    }
    *out = (struct bpe_token){TOK_NONE, TOK_NONE, 0, TOK_NONE};
    for (unsigned i = 0; i < n; i++)
        look(b, s, i, n, p);
    while (n > 1) {
        unsigned at = n;
        for (unsigned i = 0; i + 1 < n; i++) {
            if (s[i].made != TOK_NONE && (at == n || s[i].prio < s[at].prio))
                at = i;
        }
        if (at == n)
            return false;
        *out = (struct bpe_token){s[at].id, s[at + 1].id, s[at].prio, TOK_NONE};
        s[at].id = s[at].made;
        memmove(s + at + 1, s + at + 2, (n - at) * sizeof *s);
        n--;
        look(b, s, at, n, p);
        if (at > 0)
            look(b, s, at - 1, n, p);
    }
    return s[0].id == id;
}

static void put_pair(struct tok_model *m, uint32_t left, uint32_t right, uint32_t id)
{
    uint64_t key = (uint64_t)left << 21 | right;
    uint32_t i = bpe_mix(key) & m->pair_mask;

    while (m->pair[i])
        i = (i + 1) & m->pair_mask;
    m->pair[i] = key << 21 | id;
}

/* Marks tokens in whose making a merge comes before one of its halves'. The halves of a
 * token may have higher ids, so it takes passes until nothing changes. */
static void find_odd(struct tok_model *m)
{
    bool again = true;

    while (again) {
        again = false;
        for (uint32_t id = 0; id < m->n_id; id++) {
            const struct bpe_token *t = &m->token[id];
            if (m->len[id] < 2 || m->odd[id])
                continue;
            const struct bpe_token *l = &m->token[t->left], *r = &m->token[t->right];
            if (l->prio >= t->prio || r->prio >= t->prio || m->odd[t->left] ||
                m->odd[t->right])
                m->odd[id] = again = true;
        }
    }
}

/* Splits of all tokens, the pair table and which tokens are odd. */
static int find_splits(struct build *b, struct slu_err *err)
{
    struct tok_model *m = b->m;
    uint32_t size = table_size(m->n_id);

    m->token = calloc(m->n_id, sizeof *m->token);
    m->len = calloc(m->n_id, sizeof *m->len);
    m->odd = calloc(m->n_id, 1);
    m->pair = calloc(size, sizeof *m->pair);
    if (!m->token || !m->len || !m->odd || !m->pair)
        return slu_fail_nomem(err, (size_t)m->n_id * 19 + size * sizeof *m->pair);
    m->pair_mask = size - 1;
    for (uint32_t id = 0; id < m->n_id; id++) {
        size_t n;
        bytes_of(b, id, &n);
        if (!b->cfg->in_model[id] || !n)
            continue;
        if (!isolate(b, id, &m->token[id])) {
            m->n_whole += b->cfg->whole_first;
            continue;
        }
        m->len[id] = (uint16_t)n;
        if (n > 1)
            put_pair(m, m->token[id].left, m->token[id].right, id);
    }
    find_odd(m);
    return SLU_OK;
}

static void put_edge(struct tok_model *m, uint64_t edge)
{
    uint32_t i = bpe_mix(edge >> 24) & m->child_mask;

    while (m->child[i])
        i = (i + 1) & m->child_mask;
    m->child[i] = edge;
}

static int add_edge(struct build *b, uint32_t node, uint8_t byte, uint32_t child,
                    struct slu_err *err)
{
    struct tok_model *m = b->m;

    if (child >= (1 << 24))
        return slu_fail(err, SLU_E_LIMIT, "the vocabulary has more than 2^24 prefixes");
    if (!m->child || b->n_edge > m->child_mask / 2) {
        uint32_t old = m->child ? m->child_mask + 1 : 0, size = old ? old * 2 : 4096;
        uint64_t *was = m->child;
        m->child = calloc(size, sizeof *m->child);
        if (!m->child) {
            m->child = was;
            return slu_fail_nomem(err, size * sizeof *m->child);
        }
        m->child_mask = size - 1;
        for (uint32_t i = 0; i < old; i++) {
            if (was[i])
                put_edge(m, was[i]);
        }
        free(was);
    }
    put_edge(m, (uint64_t)node << 32 | (uint64_t)byte << 24 | child);
    b->n_edge++;
    return SLU_OK;
}

/* Puts one token in the trie; all shorter ones are there. */
static int add_to_trie(struct build *b, uint32_t id, struct slu_err *err)
{
    struct tok_model *m = b->m;
    size_t n;
    const uint8_t *p = bytes_of(b, id, &n);
    int rc;

    if (n < 2)
        return SLU_OK;
    uint32_t shorter = m->byte_id[p[0]];
    uint32_t *two = &m->two[(uint32_t)p[0] << 8 | p[1]];
    if (*two == TOK_NONE)
        *two = n == 2 ? id : b->n_node++;
    uint32_t node = *two;
    for (size_t i = 2; i < n; i++) {
        if (node < m->n_id)
            shorter = node;
        uint32_t next = m->child ? bpe_child(m, node, p[i]) : TOK_NONE;
        if (next == TOK_NONE) {
            next = i + 1 == n ? id : b->n_node++;
            if ((rc = add_edge(b, node, p[i], next, err)) < 0)
                return rc;
        }
        node = next;
    }
    m->token[id].shorter = shorter;
    return SLU_OK;
}

static int make_trie(struct build *b, struct slu_err *err)
{
    struct tok_model *m = b->m;
    uint32_t *start = calloc(BPE_MAX_LEN + 2, sizeof *start);
    uint32_t *order = malloc(((size_t)m->n_id + 1) * sizeof *order);
    int rc = SLU_OK;

    m->two = malloc(65536 * sizeof *m->two);
    if (!start || !order || !m->two) {
        rc = slu_fail_nomem(err, 65536 * sizeof *m->two);
        goto out;
    }
    memset(m->two, 0xff, 65536 * sizeof *m->two);
    b->n_node = m->n_id;
    /* Counting sort by length. */
    for (uint32_t id = 0; id < m->n_id; id++)
        start[m->len[id] + 1]++;
    for (unsigned i = 1; i < BPE_MAX_LEN + 2; i++)
        start[i] += start[i - 1];
    for (uint32_t id = 0; id < m->n_id; id++)
        order[start[m->len[id]]++] = id;
    for (uint32_t k = 0; k < m->n_id && rc >= 0; k++) {
        if (m->len[order[k]])
            rc = add_to_trie(b, order[k], err);
    }
    if (rc >= 0 && !m->child) /* so that bpe_child has a table to look into */
        rc = add_edge(b, b->n_node, 0, b->n_node, err);
out:
    free(start);
    free(order);
    return rc;
}

static int index_whole(struct build *b, struct slu_err *err)
{
    struct tok_model *m = b->m;
    int rc;

    if (!m->n_whole)
        return SLU_OK;
    if ((rc = tok_index_init(&m->whole, m->table, m->n_whole, err)) < 0)
        return rc;
    for (uint32_t id = 0; id < m->n_id; id++) {
        size_t n;
        const uint8_t *p = bytes_of(b, id, &n);
        if (b->cfg->in_model[id] && n && !m->len[id] &&
            tok_index_find(&b->by_bytes, p, n) == id)
            tok_index_put(&m->whole, id);
    }
    return SLU_OK;
}

int bpe_build(struct tok_model **out, const struct bpe_cfg *cfg, struct slu_err *err)
{
    struct tok_model *m = calloc(1, sizeof *m);
    struct build b = {.cfg = cfg, .m = m};
    int rc;

    *out = m;
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    m->table = cfg->table;
    m->n_id = (uint32_t)cfg->table->n;
    if (cfg->table->n >= BPE_MAX_ID || cfg->n_merge >= UINT32_MAX / 2) {
        rc = slu_fail(err, SLU_E_LIMIT,
                      "the vocabulary has %llu ids; at most %u are supported",
                      (unsigned long long)cfg->table->n, BPE_MAX_ID - 1);
        goto out;
    }
    if ((rc = index_bytes(&b, err)) < 0 ||
        (cfg->merge && (rc = index_merges(&b, err)) < 0) ||
        (rc = find_splits(&b, err)) < 0 || (rc = make_trie(&b, err)) < 0 ||
        (rc = index_whole(&b, err)) < 0)
        goto out;
out:
    tok_index_release(&b.by_bytes);
    free(b.merge);
    if (rc < 0) {
        bpe_free(m);
        *out = NULL;
    }
    return rc;
}

void bpe_free(struct tok_model *m)
{
    if (!m)
        return;
    free(m->token);
    free(m->len);
    free(m->odd);
    free(m->two);
    free(m->child);
    free(m->pair);
    tok_index_release(&m->whole);
    free(m);
}
