#include "place.h"

/* The last interval that begins at or before `bin`. */
static const struct slu_place_interval *interval_of(const struct slu_place *p,
                                                    uint64_t bin)
{
    size_t lo = 0, hi = p->n_interval - 1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo + 1) / 2;
        if (p->interval[mid].first_bin <= bin)
            lo = mid;
        else
            hi = mid - 1;
    }
    return &p->interval[lo];
}

void slu_place_ref(const struct slu_place *p, uint32_t *run_item, uint64_t *run_dst)
{
    const struct slu_place_step *s = p->step;
    for (size_t i = 0; i < p->n; i++) {
        while (s + 1 < p->step + p->n_step && s[1].first <= i)
            s++;
        uint64_t k = i - s->first, j = k % s->repeat;
        uint64_t bin = s->first_bin + k / s->repeat;
        const struct slu_place_interval *v = interval_of(p, bin);
        uint64_t b = bin - v->first_bin,
                 at = v->first_item + b * v->items + s->slot + j;
        run_item[at] = p->order[i];
        run_dst[at] = v->first_tok + b * v->capacity + s->used + j * s->len_tok;
    }
}
