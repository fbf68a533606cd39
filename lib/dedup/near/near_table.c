#include "lib/dedup/near/near_table.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/pages.h"

enum { MIN_SLOT = 1024 };
static const size_t PAGE_BYTE = 4096;

/* ---- memory ---- */

/* The system maps huge pages as a whole, so they are counted as a whole. */
size_t near_map_size(size_t n)
{
    size_t unit = n >= SLU_HUGE_PAGE ? SLU_HUGE_PAGE : PAGE_BYTE;

    return (n + unit - 1) & ~(unit - 1);
}

int near_map(struct near_budget *b, size_t n_byte, void **out, struct slu_err *err)
{
    size_t n = near_map_size(n_byte);

    *out = NULL;
    if (n < n_byte || n > b->most_byte || b->used_byte > b->most_byte - n)
        return SLU_OK;
    void *p =
        slu_pages_new(n, n >= SLU_HUGE_PAGE ? SLU_PAGES_ALIGNED : SLU_PAGES_SMALL);
    if (!p)
        return slu_fail_nomem(err, n);
    b->used_byte += n;
    if (b->used_byte > b->peak_byte)
        b->peak_byte = b->used_byte;
    *out = p;
    return SLU_OK;
}

void near_unmap(struct near_budget *b, void *p, size_t n_byte)
{
    if (!p)
        return;
    slu_pages_free(p, near_map_size(n_byte));
    b->used_byte -= near_map_size(n_byte);
}

/* ---- pools ---- */

void near_pool_init(struct near_pool *p, size_t item_byte, unsigned shift)
{
    *p = (struct near_pool){.item_byte = item_byte, .shift = shift};
}

void near_pool_release(struct near_pool *p, struct near_budget *b)
{
    for (size_t i = 0; i < p->n_chunk; i++)
        near_unmap(b, p->chunk[i], p->item_byte << p->shift);
    free(p->chunk);
    near_pool_init(p, p->item_byte, p->shift);
}

int near_pool_reserve(struct near_pool *p, struct near_budget *b, uint64_t k,
                      bool *fits, struct slu_err *err)
{
    *fits = true;
    while (((uint64_t)p->n_chunk << p->shift) < p->n + k) {
        void *chunk;
        int rc =
            slu_grow(&p->chunk, &p->cap_chunk, p->n_chunk + 1, sizeof *p->chunk, err);
        if (!rc)
            rc = near_map(b, p->item_byte << p->shift, &chunk, err);
        if (rc)
            return rc;
        if (!chunk) {
            *fits = false;
            return SLU_OK;
        }
        p->chunk[p->n_chunk++] = chunk;
    }
    return SLU_OK;
}

/* ---- tables ---- */

/* Half as large again, and a multiple of whole pages. */
static size_t next_size(size_t n_slot, size_t slot_byte)
{
    size_t n = n_slot < MIN_SLOT ? MIN_SLOT : n_slot + n_slot / 2;

    return near_map_size(n * slot_byte) / slot_byte;
}

static bool has_room(size_t n, size_t n_slot)
{
    return n < n_slot - n_slot / 4;
}

void near_table_release(struct near_table *t, struct near_budget *b)
{
    near_unmap(b, t->slot, t->n_slot * sizeof *t->slot);
    *t = (struct near_table){0};
}

int near_table_reserve(struct near_table *t, struct near_budget *b, bool *fits,
                       struct slu_err *err)
{
    struct near_table big = {.n = t->n};
    void *p;

    *fits = true;
    if (has_room(t->n, t->n_slot))
        return SLU_OK;
    big.n_slot = next_size(t->n_slot, sizeof *t->slot);
    int rc = near_map(b, big.n_slot * sizeof *t->slot, &p, err);
    if (rc || !p) {
        *fits = false;
        return rc;
    }
    big.slot = p;
    for (size_t i = 0; i < t->n_slot; i++)
        if (t->slot[i].n)
            *near_table_find(&big, t->slot[i].key) = t->slot[i];
    near_table_release(t, b);
    *t = big;
    return SLU_OK;
}

void near_sets_release(struct near_sets *t, struct near_budget *b)
{
    near_unmap(b, t->hash, t->n_slot * sizeof *t->hash);
    near_unmap(b, t->value, t->n_slot * sizeof *t->value);
    *t = (struct near_sets){0};
}

int near_sets_reserve(struct near_sets *t, struct near_budget *b, bool *fits,
                      struct slu_err *err)
{
    struct near_sets big = {.n = t->n};
    void *p, *q = NULL;

    *fits = true;
    if (has_room(t->n, t->n_slot))
        return SLU_OK;
    big.n_slot = next_size(t->n_slot, sizeof *t->hash);
    int rc = near_map(b, big.n_slot * sizeof *t->hash, &p, err);
    if (!rc && p)
        rc = near_map(b, big.n_slot * sizeof *t->value, &q, err);
    if (rc || !q) {
        *fits = false;
        near_unmap(b, p, big.n_slot * sizeof *t->hash);
        return rc;
    }
    big.hash = p;
    big.value = q;
    for (size_t i = 0; i < t->n_slot; i++) {
        if (!(t->hash[i].lo | t->hash[i].hi))
            continue;
        size_t k = near_sets_find(&big, t->hash[i]);
        big.hash[k] = t->hash[i];
        big.value[k] = t->value[i];
    }
    near_sets_release(t, b);
    *t = big;
    return SLU_OK;
}
