/* added.c - the trie of added tokens and the walk over a text. */
#include "lib/token/added.h"

#include <stdlib.h>
#include <string.h>

#include "lib/token/unicode.h"

struct added_node {
    uint32_t child, next; /* first child, next sibling; TOK_NONE */
    uint32_t token;       /* index in added->token, TOK_NONE */
    uint8_t byte;
};

int added_new(struct tok_added **out, struct slu_err *err)
{
    struct tok_added *a = calloc(1, sizeof *a);

    *out = a;
    if (!a)
        return slu_fail_nomem(err, sizeof *a);
    memset(a->raw.root, 0xff, sizeof a->raw.root);
    memset(a->normalized.root, 0xff, sizeof a->normalized.root);
    return SLU_OK;
}

void added_free(struct tok_added *a)
{
    if (!a)
        return;
    free(a->token);
    free(a->raw.node);
    free(a->normalized.node);
    slu_buf_release(&a->text);
    free(a);
}

static uint32_t new_node(struct added_trie *t, uint8_t byte, struct slu_err *err)
{
    if (slu_grow(&t->node, &t->cap, t->n + 1, sizeof *t->node, err))
        return TOK_NONE;
    t->node[t->n] = (struct added_node){TOK_NONE, TOK_NONE, TOK_NONE, byte};
    return (uint32_t)t->n++;
}

static uint32_t find_child(const struct added_trie *t, uint32_t node, uint8_t byte)
{
    uint32_t c = t->node[node].child;

    while (c != TOK_NONE && t->node[c].byte != byte)
        c = t->node[c].next;
    return c;
}

int added_put(struct tok_added *a, struct added_token token, const void *text,
              size_t len, struct slu_err *err)
{
    struct added_trie *t = token.normalized ? &a->normalized : &a->raw;
    const uint8_t *p = text;
    int rc;

    if (!len)
        return SLU_OK; /* never matches, as in the reference */
    if (len >= UINT32_MAX)
        return slu_fail(err, SLU_E_LIMIT, "an added token is longer than 4 GiB");
    token.text_off = a->text.len;
    token.text_len = (uint32_t)len;
    if ((rc = slu_buf_append(&a->text, text, len, err)) ||
        (rc = slu_grow(&a->token, &a->cap, a->n + 1, sizeof *a->token, err)))
        return rc;
    uint32_t node = t->root[p[0]];
    if (node == TOK_NONE) {
        if ((node = new_node(t, p[0], err)) == TOK_NONE)
            return SLU_E_NOMEM;
        t->root[p[0]] = node;
        if (t->n_first < ADDED_FIRST)
            t->first[t->n_first] = p[0];
        t->n_first++;
    }
    for (size_t i = 1; i < len; i++) {
        uint32_t child = find_child(t, node, p[i]);
        if (child == TOK_NONE) {
            if ((child = new_node(t, p[i], err)) == TOK_NONE)
                return SLU_E_NOMEM;
            t->node[child].next = t->node[node].child;
            t->node[node].child = child;
        }
        node = child;
    }
    t->node[node].token = (uint32_t)a->n;
    a->token[a->n++] = token;
    return SLU_OK;
}

/* ---- walking ---- */

/* Finds first byte k from it->search on; n if there is none. */
static size_t find_byte(const struct added_iter *it, unsigned k)
{
    const uint8_t *from = it->p + it->search, *q = NULL;

    if (k < it->trie->n_first && it->search < it->n)
        q = memchr(from, it->trie->first[k], it->n - it->search);
    return q ? (size_t)(q - it->p) : it->n;
}

/* Finds a byte with which a token begins, from it->search on; n if there is none. */
static size_t find_first(struct added_iter *it)
{
    const struct added_trie *t = it->trie;
    size_t at = it->n;

    if (t->n_first > ADDED_FIRST) {
        for (at = it->search; at < it->n && t->root[it->p[at]] == TOK_NONE;)
            at++;
        return at;
    }
    for (unsigned k = 0; k < ADDED_FIRST; k++) {
        if (it->next[k] < it->search)
            it->next[k] = find_byte(it, k);
        at = it->next[k] < at ? it->next[k] : at;
    }
    return at;
}

void added_iter_init(struct added_iter *it, const struct tok_added *a, bool normalized,
                     bool parse_special, const uint8_t *p, size_t n)
{
    *it = (struct added_iter){
        .added = a, .p = p, .n = n, .parse_special = parse_special, .least = TOK_NONE};
    if (a)
        it->trie = normalized ? &a->normalized : &a->raw;
    if (it->trie && !it->trie->n)
        it->trie = NULL;
    for (unsigned k = 0; it->trie && k < ADDED_FIRST; k++)
        it->next[k] = find_byte(it, k);
}

/* Returns the longest token at pos, or NULL. */
static const struct added_token *match(const struct added_iter *it, size_t pos)
{
    const struct added_trie *t = it->trie;
    const struct added_token *best = NULL;
    uint32_t node = t->root[it->p[pos]];

    while (node != TOK_NONE) {
        if (t->node[node].token != TOK_NONE)
            best = &it->added->token[t->node[node].token];
        if (++pos == it->n)
            break;
        node = find_child(t, node, it->p[pos]);
    }
    return best;
}

static bool is_space(uint32_t c)
{
    enum uni_category k = uni_category(c);

    return k == UNI_ZS || k == UNI_ZL || k == UNI_ZP || k == UNI_CW;
}

/* \w of Rust's regex crate: Alphabetic, M, Nd, Pc, Join_Control. The Alphabetic
 * characters besides letters, marks and Nl are the circled and squared letters. */
static bool is_word(uint32_t c)
{
    enum uni_category k = uni_category(c);

    return (k >= UNI_LU && k <= UNI_NL) || k == UNI_PC || c == 0x200C || c == 0x200D ||
           (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
           (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

/* Returns the start of the character before pos > 0. */
static size_t back(const uint8_t *p, size_t pos)
{
    do
        pos--;
    while (pos && (p[pos] & 0xC0) == 0x80);
    return pos;
}

static bool alone(const struct added_iter *it, size_t start, size_t end)
{
    unsigned len;

    if (start && is_word(uni_decode(it->p + back(it->p, start), &len)))
        return false;
    return end == it->n || !is_word(uni_decode(it->p + end, &len));
}

/* Finds the next token that matches, from it->search on. Its span includes the white
 * space that it strips. */
static bool find(struct added_iter *it, struct added_part *part)
{
    unsigned len;

    while (it->trie && it->search < it->n) {
        size_t start = find_first(it);
        if (start == it->n)
            break;
        const struct added_token *t = match(it, start);
        if (!t) {
            it->search = start + 1;
            continue;
        }
        size_t end = start + t->text_len;
        it->search = end;
        if (t->single_word && !alone(it, start, end))
            continue;
        if (t->special && !it->parse_special) {
            it->left++;
            it->least = t->id < it->least ? t->id : it->least;
            continue;
        }
        if (t->lstrip) {
            while (start > it->done) {
                size_t q = back(it->p, start);
                if (!is_space(uni_decode(it->p + q, &len)))
                    break;
                start = q;
            }
            if (start < it->done)
                start = it->done;
        }
        if (t->rstrip) {
            while (end < it->n && is_space(uni_decode(it->p + end, &len)))
                end += len;
        }
        if (t->lstrip && end <= start) /* the token before it has stripped it */
            continue;
        *part = (struct added_part){t->id, start, end - start};
        return true;
    }
    it->search = it->n;
    return false;
}

bool added_next(struct added_iter *it, struct added_part *part)
{
    if (it->has_pending) {
        *part = it->pending;
        it->has_pending = false;
        return true;
    }
    if (it->done >= it->n && it->search >= it->n)
        return false;
    if (!find(it, &it->pending)) {
        *part = (struct added_part){TOK_NONE, it->done, it->n - it->done};
        it->done = it->n;
        return part->len > 0;
    }
    size_t from = it->done;
    it->done = it->pending.off + it->pending.len;
    if (it->pending.off > from) {
        *part = (struct added_part){TOK_NONE, from, it->pending.off - from};
        it->has_pending = true;
        return true;
    }
    *part = it->pending;
    return true;
}
