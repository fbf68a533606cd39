#include "map.h"

#include <stdlib.h>

static size_t place(const struct slu_map *m, uint64_t key)
{
    uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(h ^ (h >> 32)) & (m->cap - 1);
    while (m->slot[i].used && m->slot[i].key != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

void slu_map_release(struct slu_map *m)
{
    free(m->slot);
    *m = (struct slu_map)SLU_MAP_INIT;
}

bool slu_map_get(const struct slu_map *m, uint64_t key, uint64_t *value)
{
    if (!m->cap)
        return false;
    const struct slu_map_slot *s = &m->slot[place(m, key)];
    if (s->used)
        *value = s->value;
    return s->used;
}

int slu_map_set(struct slu_map *m, uint64_t key, uint64_t value, struct slu_err *err)
{
    if (2 * (m->n + 1) > m->cap) {
        struct slu_map big = {NULL, m->n, m->cap ? 2 * m->cap : 64};
        big.slot = calloc(big.cap, sizeof *big.slot);
        if (!big.slot)
            return slu_fail_nomem(err, big.cap * sizeof *big.slot);
        for (size_t i = 0; i < m->cap; i++)
            if (m->slot[i].used)
                big.slot[place(&big, m->slot[i].key)] = m->slot[i];
        free(m->slot);
        *m = big;
    }
    struct slu_map_slot *s = &m->slot[place(m, key)];
    m->n += !s->used;
    *s = (struct slu_map_slot){key, value, true};
    return SLU_OK;
}
