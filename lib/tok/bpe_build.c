/* bpe_build.c - from a vocabulary with merges or ranks to the tables of bpe.h. */
#include "lib/tok/bpe.h"

#include <stdlib.h>
#include <string.h>

/* The tables while they are made, and what is needed for that only. */
struct build {
    const struct bpe_cfg *cfg;
    struct bpe_head h;
    struct bpe_token *token;
    uint16_t *len;
    uint8_t *odd;
    uint32_t *two;
    uint64_t *child, *pair;
    struct tok_index whole;
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
        b->h.byte_id[i] = tok_index_find(&b->by_bytes, &c, 1);
        /* Bytes that valid UTF-8 never has may be missing. */
        if (b->h.byte_id[i] == TOK_NONE && i != 0xC0 && i != 0xC1 && i < 0xF5)
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
        s[i].id = i < n ? b->h.byte_id[p[i]] : TOK_NONE;
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

static void put_pair(struct build *b, uint32_t left, uint32_t right, uint32_t id)
{
    uint64_t key = (uint64_t)left << 21 | right;
    uint32_t i = bpe_mix(key) & b->h.pair_mask;

    while (b->pair[i])
        i = (i + 1) & b->h.pair_mask;
    b->pair[i] = key << 21 | id;
}

/* Marks tokens in whose making a merge comes before one of its halves'. The halves of a
 * token may have higher ids, so it takes passes until nothing changes. */
static void find_odd(struct build *b)
{
    bool again = true;

    while (again) {
        again = false;
        for (uint32_t id = 0; id < b->h.n_id; id++) {
            const struct bpe_token *t = &b->token[id];
            if (b->len[id] < 2 || b->odd[id])
                continue;
            const struct bpe_token *l = &b->token[t->left], *r = &b->token[t->right];
            if (l->prio >= t->prio || r->prio >= t->prio || b->odd[t->left] ||
                b->odd[t->right])
                b->odd[id] = again = true;
        }
    }
}

/* Splits of all tokens, the pair table and which tokens are odd. */
static int find_splits(struct build *b, struct slu_err *err)
{
    uint32_t size = table_size(b->h.n_id);

    b->token = calloc(b->h.n_id, sizeof *b->token);
    b->len = calloc(b->h.n_id, sizeof *b->len);
    b->odd = calloc(b->h.n_id, 1);
    b->pair = calloc(size, sizeof *b->pair);
    if (!b->token || !b->len || !b->odd || !b->pair)
        return slu_fail_nomem(err, (size_t)b->h.n_id * 19 + size * sizeof *b->pair);
    b->h.pair_mask = size - 1;
    for (uint32_t id = 0; id < b->h.n_id; id++) {
        size_t n;
        bytes_of(b, id, &n);
        if (!b->cfg->in_model[id] || !n)
            continue;
        if (!isolate(b, id, &b->token[id])) {
            b->h.n_whole += b->cfg->whole_first;
            continue;
        }
        b->len[id] = (uint16_t)n;
        if (n > 1)
            put_pair(b, b->token[id].left, b->token[id].right, id);
    }
    find_odd(b);
    return SLU_OK;
}

static void put_edge(struct build *b, uint64_t edge)
{
    uint32_t i = bpe_mix(edge >> 24) & b->h.child_mask;

    while (b->child[i])
        i = (i + 1) & b->h.child_mask;
    b->child[i] = edge;
}

static int add_edge(struct build *b, uint32_t node, uint8_t byte, uint32_t child,
                    struct slu_err *err)
{

    if (child >= (1 << 24))
        return slu_fail(err, SLU_E_LIMIT, "the vocabulary has more than 2^24 prefixes");
    if (!b->child || b->n_edge > b->h.child_mask / 2) {
        uint32_t old = b->child ? b->h.child_mask + 1 : 0, size = old ? old * 2 : 4096;
        uint64_t *was = b->child;
        b->child = calloc(size, sizeof *b->child);
        if (!b->child) {
            b->child = was;
            return slu_fail_nomem(err, size * sizeof *b->child);
        }
        b->h.child_mask = size - 1;
        for (uint32_t i = 0; i < old; i++) {
            if (was[i])
                put_edge(b, was[i]);
        }
        free(was);
    }
    put_edge(b, (uint64_t)node << 32 | (uint64_t)byte << 24 | child);
    b->n_edge++;
    return SLU_OK;
}

/* Puts one token in the trie; all shorter ones are there. */
static int add_to_trie(struct build *b, uint32_t id, struct slu_err *err)
{
    size_t n;
    const uint8_t *p = bytes_of(b, id, &n);
    int rc;

    if (n < 2)
        return SLU_OK;
    uint32_t shorter = b->h.byte_id[p[0]];
    uint32_t *two = &b->two[(uint32_t)p[0] << 8 | p[1]];
    if (*two == TOK_NONE)
        *two = n == 2 ? id : b->n_node++;
    uint32_t node = *two;
    for (size_t i = 2; i < n; i++) {
        if (node < b->h.n_id)
            shorter = node;
        uint32_t next =
            b->child ? bpe_child(b->child, b->h.child_mask, node, p[i]) : TOK_NONE;
        if (next == TOK_NONE) {
            next = i + 1 == n ? id : b->n_node++;
            if ((rc = add_edge(b, node, p[i], next, err)) < 0)
                return rc;
        }
        node = next;
    }
    b->token[id].shorter = shorter;
    return SLU_OK;
}

static int make_trie(struct build *b, struct slu_err *err)
{
    uint32_t *start = calloc(BPE_MAX_LEN + 2, sizeof *start);
    uint32_t *order = malloc(((size_t)b->h.n_id + 1) * sizeof *order);
    int rc = SLU_OK;

    b->two = malloc(65536 * sizeof *b->two);
    if (!start || !order || !b->two) {
        rc = slu_fail_nomem(err, 65536 * sizeof *b->two);
        goto out;
    }
    memset(b->two, 0xff, 65536 * sizeof *b->two);
    b->n_node = b->h.n_id;
    /* Counting sort by length. */
    for (uint32_t id = 0; id < b->h.n_id; id++)
        start[b->len[id] + 1]++;
    for (unsigned i = 1; i < BPE_MAX_LEN + 2; i++)
        start[i] += start[i - 1];
    for (uint32_t id = 0; id < b->h.n_id; id++)
        order[start[b->len[id]]++] = id;
    for (uint32_t k = 0; k < b->h.n_id && rc >= 0; k++) {
        if (b->len[order[k]])
            rc = add_to_trie(b, order[k], err);
    }
    if (rc >= 0 && !b->child) /* so that bpe_child has a table to look into */
        rc = add_edge(b, b->n_node, 0, b->n_node, err);
out:
    free(start);
    free(order);
    return rc;
}

static int index_whole(struct build *b, struct slu_err *err)
{
    int rc;

    if (!b->h.n_whole)
        return SLU_OK;
    if ((rc = tok_index_init(&b->whole, b->cfg->table, b->h.n_whole, err)) < 0)
        return rc;
    for (uint32_t id = 0; id < b->h.n_id; id++) {
        size_t n;
        const uint8_t *p = bytes_of(b, id, &n);
        if (b->cfg->in_model[id] && n && !b->len[id] &&
            tok_index_find(&b->by_bytes, p, n) == id)
            tok_index_put(&b->whole, id);
    }
    return SLU_OK;
}

/* Puts the tables in one block, and a model on it. */
static int make_image(struct build *b, struct tok_model **out, struct slu_err *err)
{
    const void *const part[BPE_N_SECTION] = {
        [BPE_TOKEN] = b->token,      [BPE_LEN] = b->len,     [BPE_ODD] = b->odd,
        [BPE_TWO] = b->two,          [BPE_CHILD] = b->child, [BPE_PAIR] = b->pair,
        [BPE_WHOLE] = b->whole.slot,
    };
    struct bpe_span span[BPE_N_SECTION];
    struct bpe_head *h = &b->h;
    int rc;

    h->magic = BPE_MAGIC;
    h->version = BPE_VERSION;
    h->whole_mask = b->whole.mask;
    h->n_byte = bpe_layout(h, span);
    uint8_t *image = bpe_image_alloc(h->n_byte);
    if (!image)
        return slu_fail_nomem(err, h->n_byte);
    memset(image, 0, h->n_byte); /* also what is between the tables */
    memcpy(image, h, sizeof *h);
    for (unsigned k = 0; k < BPE_N_SECTION; k++) {
        if (span[k].n_byte)
            memcpy(image + span[k].off, part[k], span[k].n_byte);
    }
    if ((rc = bpe_attach(out, image, h->n_byte, b->cfg->table, err)) < 0)
        free(image);
    else
        (*out)->own = image;
    return rc;
}

int bpe_build(struct tok_model **out, const struct bpe_cfg *cfg, struct slu_err *err)
{
    struct build b = {.cfg = cfg, .h.n_id = (uint32_t)cfg->table->n};
    int rc;

    *out = NULL;
    if (cfg->table->n >= BPE_MAX_ID || cfg->n_merge >= UINT32_MAX / 2)
        return slu_fail(err, SLU_E_LIMIT,
                        "the vocabulary has %llu ids; at most %u are supported",
                        (unsigned long long)cfg->table->n, BPE_MAX_ID - 1);
    if ((rc = index_bytes(&b, err)) < 0 ||
        (cfg->merge && (rc = index_merges(&b, err)) < 0) ||
        (rc = find_splits(&b, err)) < 0 || (rc = make_trie(&b, err)) < 0 ||
        (rc = index_whole(&b, err)) < 0)
        goto out;
    rc = make_image(&b, out, err);
out:
    tok_index_release(&b.by_bytes);
    tok_index_release(&b.whole);
    free(b.merge);
    free(b.token);
    free(b.len);
    free(b.odd);
    free(b.two);
    free(b.child);
    free(b.pair);
    return rc;
}
