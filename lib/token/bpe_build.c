/* bpe_build.c - from a vocabulary with merges or ranks to the tables of bpe.h. */
#include "lib/token/bpe.h"

#include <stdlib.h>
#include <string.h>

/* The last merge of a token of the file, by the token's id. */
struct split {
    uint32_t left, right, prio; /* ids; lower priorities are merged first */
    uint16_t len;               /* 0: not reachable */
};

/* The tables while they are made, and temporary data. */
struct build {
    const struct bpe_cfg *cfg;
    struct bpe_head h;
    struct bpe_token *token;
    struct bpe_trie trie;
    uint64_t *pair, *might;
    uint32_t *id_of, *seam, *seam4;
    struct tok_index whole;
    uint32_t byte_id[256];
    struct split *split;
    struct tok_index by_bytes; /* ids of the model */
    struct merge_slot {
        uint64_t key; /* left << 32 | right */
        uint32_t prio, result;
    } * merge; /* open addressing; prio 0 empty */
    uint32_t merge_mask;
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

    if (rc)
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
        b->byte_id[i] = tok_index_find(&b->by_bytes, &c, 1);
        /* Bytes that valid UTF-8 never has may be missing. */
        if (b->byte_id[i] == TOK_NONE && i != 0xC0 && i != 0xC1 && i < 0xF5)
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

/* Returns the id that two neighbours merge into, or TOK_NONE. p: their n bytes. */
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
    uint32_t made, prio; /* the id that it and the next merge into */
};

static void look(const struct build *b, struct symbol *s, unsigned i, unsigned n,
                 const uint8_t *p)
{
    s[i].made = TOK_NONE;
    if (i + 1 < n)
        s[i].made = merge_of(b, s[i].id, s[i + 1].id, p + s[i].off,
                             s[i + 2].off - s[i].off, &s[i].prio);
}

/* Runs plain BPE on a token's bytes; its last merge goes to *out. False if BPE does not
 * make the token. */
static bool isolate(const struct build *b, uint32_t id, struct split *out)
{
    struct symbol s[BPE_MAX_LEN + 2];
    size_t len;
    const uint8_t *p = bytes_of(b, id, &len);
    unsigned n = (unsigned)len;

    for (unsigned i = 0; i <= n + 1; i++) {
        s[i].off = i < n ? i : n;
        s[i].id = i < n ? b->byte_id[p[i]] : TOK_NONE;
        if (i < n && s[i].id == TOK_NONE)
            return false;
    }
    *out = (struct split){TOK_NONE, TOK_NONE, 0, 0};
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
        *out = (struct split){s[at].id, s[at + 1].id, s[at].prio, 0};
        s[at].id = s[at].made;
        memmove(s + at + 1, s + at + 2, (n - at) * sizeof *s);
        n--;
        look(b, s, at, n, p);
        if (at > 0)
            look(b, s, at - 1, n, p);
    }
    return s[0].id == id;
}

static int find_splits(struct build *b, struct slu_err *err)
{
    b->split = calloc((size_t)b->h.n_id + 1, sizeof *b->split);
    if (!b->split)
        return slu_fail_nomem(err, (size_t)b->h.n_id * sizeof *b->split);
    for (uint32_t id = 0; id < b->h.n_id; id++) {
        size_t n;
        bytes_of(b, id, &n);
        if (!b->cfg->in_model[id] || !n)
            continue;
        if (isolate(b, id, &b->split[id]))
            b->split[id].len = (uint16_t)n;
        else
            b->h.n_whole += b->cfg->whole_first;
    }
    return SLU_OK;
}

static int put_bytes(struct build *b, struct slu_err *err)
{
    b->token = calloc(b->h.n_tok, sizeof *b->token);
    if (!b->token)
        return slu_fail_nomem(err, b->h.n_tok * sizeof *b->token);
    for (uint32_t i = 0; i < 256; i++)
        b->token[i] = (struct bpe_token){.left = i,
                                         .right = i,
                                         .first = TOK_NONE,
                                         .last = TOK_NONE,
                                         .shorter = BPE_NONE,
                                         .id = b->byte_id[i] & BPE_NONE,
                                         .len = 1};
    return SLU_OK;
}

/* Gives the toks their numbers, in the order of their merges. */
static int number(struct build *b, struct slu_err *err)
{
    uint32_t top = 0, n = 256;
    int rc;

    for (uint32_t id = 0; id < b->h.n_id; id++) {
        n += b->split[id].len > 1;
        top = b->split[id].prio > top ? b->split[id].prio : top;
    }
    b->h.n_tok = n;
    if (n >= BPE_MAX_ID)
        return slu_fail(err, SLU_E_LIMIT, "the vocabulary has too many tokens");
    uint32_t *by_prio = malloc(((size_t)top + 1) * sizeof *by_prio);
    uint32_t *tok = malloc(((size_t)b->h.n_id + 1) * sizeof *tok);
    if (!by_prio || !tok) {
        rc = slu_fail_nomem(err, ((size_t)top + b->h.n_id) * sizeof *tok);
        goto out;
    }
    if ((rc = put_bytes(b, err)))
        goto out;
    memset(by_prio, 0xff, ((size_t)top + 1) * sizeof *by_prio);
    for (uint32_t id = 0; id < b->h.n_id; id++) {
        if (b->split[id].len > 1)
            by_prio[b->split[id].prio] = id;
    }
    for (uint32_t i = 0; i < 256; i++) {
        if (b->byte_id[i] != TOK_NONE)
            tok[b->byte_id[i]] = i;
    }
    n = 256;
    for (uint32_t k = 0; k <= top; k++) {
        if (by_prio[k] != TOK_NONE)
            tok[by_prio[k]] = n++;
    }
    for (uint32_t id = 0; id < b->h.n_id; id++) {
        const struct split *s = &b->split[id];
        if (s->len > 1)
            b->token[tok[id]] = (struct bpe_token){
                .left = tok[s->left], .right = tok[s->right], .id = id, .len = s->len};
    }
out:
    free(by_prio);
    free(tok);
    return rc;
}

/* Derives from the merges which tokens are odd, which merges take the bytes at their
 * edges, and the pair table. */
static int link_tokens(struct build *b, struct slu_err *err)
{
    uint32_t size = table_size(b->h.n_tok);

    b->pair = calloc(size, sizeof *b->pair);
    if (!b->pair)
        return slu_fail_nomem(err, size * sizeof *b->pair);
    b->h.pair_mask = size - 1;
    for (uint32_t k = 256; k < b->h.n_tok; k++) {
        struct bpe_token *t = &b->token[k];
        uint64_t key = (uint64_t)t->left << 21 | t->right;
        bpe_put(b->pair, size - 1, key, 21, k);
        b->token[t->left].behind |= UINT32_C(1) << (t->right & 31);
        b->token[t->right].before |= UINT32_C(1) << (t->left & 31);
        t->odd = t->left >= k || t->right >= k || b->token[t->left].odd ||
                 b->token[t->right].odd;
        if (t->odd)
            continue;
        t->first = t->left < 256 ? k : b->token[t->left].first;
        t->last = t->right < 256 ? k : b->token[t->right].last;
    }
    return SLU_OK;
}

/* Makes the filter of pairs, with about ten bits per pair, and the table of ids. */
static int make_filter(struct build *b, struct slu_err *err)
{
    uint32_t n = 16;

    while (n < b->h.n_tok / 8)
        n *= 2;
    b->h.might_mask = n - 1;
    b->might = calloc(n, sizeof *b->might);
    b->id_of = malloc(b->h.n_tok * sizeof *b->id_of);
    if (!b->might || !b->id_of)
        return slu_fail_nomem(err, n * sizeof *b->might);
    for (uint32_t k = 0; k < b->h.n_tok; k++) {
        const struct bpe_token *t = &b->token[k];
        uint64_t h = bpe_pair_hash((uint64_t)t->left << 21 | t->right);
        b->id_of[k] = t->id;
        if (k >= 256)
            b->might[h >> (__builtin_clz(n - 1) + 32)] |= bpe_might(h);
        if (k < 256 || b->id_of[k] != b->id_of[k - 1] + 1)
            b->h.regular = k;
    }
    return SLU_OK;
}

/* Makes the tables of bpe_cuts; the one by four bytes has eight bits per token. */
static int find_seams(struct build *b, struct slu_err *err)
{
    const struct slu_vocab_table *v = b->cfg->table;
    uint32_t n = 16;

    while (n < b->h.n_tok / 4)
        n *= 2;
    b->h.seam4_mask = n - 1;
    b->seam = calloc(65536, sizeof *b->seam);
    b->seam4 = calloc(n, sizeof *b->seam4);
    if (!b->seam || !b->seam4)
        return slu_fail_nomem(err, (65536 + (size_t)n) * sizeof *b->seam);
    for (uint32_t k = 256; k < b->h.n_tok; k++) {
        const struct bpe_token *t = &b->token[k];
        unsigned left = b->token[t->left].len, right = b->token[t->right].len;
        const uint8_t *at = v->bytes + v->off[t->id] + left;
        uint32_t *word = &b->seam[bpe_load16(at - 1)];
        if (left > 1 && right > 1) {
            uint32_t bit = bpe_seam4(at - 2, (unsigned)__builtin_clz(n - 1) - 5);
            b->seam4[bit / 32] |= UINT32_C(1) << bit % 32;
        } else {
            *word |= left > 1    ? bpe_seam_left(at[-2])
                     : right > 1 ? bpe_seam_right(at[1])
                                 : 1;
        }
    }
    return SLU_OK;
}

static int index_whole(struct build *b, struct slu_err *err)
{
    int rc;

    if (!b->h.n_whole)
        return SLU_OK;
    if ((rc = tok_index_init(&b->whole, b->cfg->table, b->h.n_whole, err)))
        return rc;
    for (uint32_t id = 0; id < b->h.n_id; id++) {
        size_t n;
        const uint8_t *p = bytes_of(b, id, &n);
        if (b->cfg->in_model[id] && n && !b->split[id].len &&
            tok_index_find(&b->by_bytes, p, n) == id)
            tok_index_put(&b->whole, id);
    }
    return SLU_OK;
}

/* Puts the tables in one block, and makes a model on it. */
static int make_image(struct build *b, struct tok_model **out, struct slu_err *err)
{
    const void *const part[BPE_N_SECTION] = {
        [BPE_TOKEN] = b->token,    [BPE_TWO] = b->trie.two, [BPE_CHILD] = b->trie.child,
        [BPE_BEST] = b->trie.best, [BPE_PAIR] = b->pair,    [BPE_WHOLE] = b->whole.slot,
        [BPE_MIGHT] = b->might,    [BPE_ID_OF] = b->id_of,  [BPE_SEAM] = b->seam,
        [BPE_SEAM4] = b->seam4,
    };
    struct bpe_span span[BPE_N_SECTION];
    struct bpe_head *h = &b->h;
    int rc;

    h->magic = BPE_MAGIC;
    h->version = BPE_VERSION;
    h->n_node = b->trie.n_node;
    h->child_mask = b->trie.child_mask;
    h->whole_mask = b->whole.mask;
    h->n_byte = bpe_layout(h, span);
    uint8_t *image = bpe_image_alloc(h->n_byte);
    if (!image)
        return slu_fail_nomem(err, h->n_byte);
    memset(image, 0, h->n_byte); /* also the gaps between tables */
    memcpy(image, h, sizeof *h);
    for (unsigned k = 0; k < BPE_N_SECTION; k++) {
        if (span[k].n_byte)
            memcpy(image + span[k].off, part[k], span[k].n_byte);
    }
    if ((rc = bpe_attach(out, image, h->n_byte, b->cfg->table, err)))
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
    if ((rc = index_bytes(&b, err)) || (cfg->merge && (rc = index_merges(&b, err))) ||
        (rc = find_splits(&b, err)) || (rc = number(&b, err)) ||
        (rc = link_tokens(&b, err)) || (rc = make_filter(&b, err)) ||
        (rc = find_seams(&b, err)) ||
        (rc = bpe_trie_make(&b.trie, cfg->table, b.token, b.h.n_tok, err)) ||
        (rc = index_whole(&b, err)))
        goto out;
    rc = make_image(&b, out, err);
out:
    tok_index_release(&b.by_bytes);
    tok_index_release(&b.whole);
    free(b.merge);
    free(b.split);
    free(b.token);
    free(b.pair);
    free(b.might);
    free(b.id_of);
    free(b.seam);
    free(b.seam4);
    bpe_trie_release(&b.trie);
    return rc;
}
