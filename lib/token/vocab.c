/* vocab.c - the vocabulary builder, and ids by their bytes. */
#include "lib/token/tok.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"

#define MAX_ID (UINT64_C(1) << 24) /* a file with more ids is damaged */

int tok_vocab_set(struct tok_vocab *v, uint64_t id, const void *p, size_t n,
                  uint8_t flag, struct slu_err *err)
{
    int rc;

    if (id >= MAX_ID)
        return slu_fail(err, SLU_E_LIMIT, "token id %llu is above the limit of %llu",
                        (unsigned long long)id, (unsigned long long)MAX_ID);
    if (n >= UINT32_MAX)
        return slu_fail(err, SLU_E_LIMIT, "token %llu is longer than 4 GiB",
                        (unsigned long long)id);
    if (id >= v->n) {
        size_t need = (size_t)id + 1;
        if ((rc = slu_grow(&v->off, &v->cap_off, need, sizeof *v->off, err)) ||
            (rc = slu_grow(&v->len, &v->cap_len, need, sizeof *v->len, err)) ||
            (rc = slu_grow(&v->flag, &v->cap_flag, need, 1, err)))
            return rc;
        for (size_t i = v->n; i < need; i++) {
            v->off[i] = 0;
            v->len[i] = UINT32_MAX;
            v->flag[i] = SLU_VOCAB_HOLE;
        }
        v->n = need;
    }
    v->off[id] = v->bytes.len;
    v->len[id] = (uint32_t)n;
    v->flag[id] = flag;
    return slu_buf_append(&v->bytes, p, n, err);
}

void tok_vocab_release(struct tok_vocab *v)
{
    slu_buf_release(&v->bytes);
    free(v->off);
    free(v->len);
    free(v->flag);
    memset(v, 0, sizeof *v);
}

int tok_index_init(struct tok_index *x, const struct slu_vocab_table *table, size_t n,
                   struct slu_err *err)
{
    size_t size = 16;

    while (size < n + n / 2)
        size *= 2;
    x->table = table;
    x->mask = (uint32_t)(size - 1);
    x->slot = malloc(size * sizeof *x->slot);
    if (!x->slot)
        return slu_fail_nomem(err, size * sizeof *x->slot);
    memset(x->slot, 0xff, size * sizeof *x->slot);
    return SLU_OK;
}

/* Returns the slot of the id with these bytes, or the empty slot for it. */
static uint32_t *find_slot(const struct tok_index *x, const uint8_t *p, size_t n)
{
    const struct slu_vocab_table *v = x->table;
    uint32_t i = (uint32_t)slu_hash64(p, n) & x->mask;

    for (; x->slot[i] != TOK_NONE; i = (i + 1) & x->mask) {
        uint32_t id = x->slot[i];
        if (v->off[id + 1] - v->off[id] == n && !memcmp(p, v->bytes + v->off[id], n))
            break;
    }
    return &x->slot[i];
}

void tok_index_put(struct tok_index *x, uint32_t id)
{
    const struct slu_vocab_table *v = x->table;

    *find_slot(x, v->bytes + v->off[id], v->off[id + 1] - v->off[id]) = id;
}

uint32_t tok_index_find(const struct tok_index *x, const void *p, size_t n)
{
    return *find_slot(x, p, n);
}

void tok_index_release(struct tok_index *x)
{
    free(x->slot);
    x->slot = NULL;
}
