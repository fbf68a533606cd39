#include "place.h"

#include "parallel.h"

#define STREAMS     64    /* steps of a bin that are written at once */
#define LEAST_SHARE 65536 /* items for which a thread is worth starting */

struct place {
    const struct slu_place *p;
    uint32_t *run_item;
    uint64_t *run_dst;
    unsigned n_threads;
};

/* The items that a step puts into the bins of an interval; they are adjacent in
 * `order`. */
struct stream {
    const uint32_t *item; /* the next item */
    uint64_t repeat, len_tok, slot, used;
};

/* Writes the items of these streams (last step first) into bins from … to-1 of an
 * interval. */
static void write_bins(const struct place *c, const struct slu_place_interval *v,
                       uint64_t from, uint64_t to, struct stream *stream, unsigned n)
{
    uint32_t *run_item = c->run_item + v->first_item + from * v->items;
    uint64_t *run_dst = c->run_dst + v->first_item + from * v->items;
    uint64_t bin_dst = v->first_tok + from * v->capacity;
    for (uint64_t b = from; b < to; b++) {
        for (unsigned i = n; i-- > 0;) {
            struct stream *s = &stream[i];
            uint64_t dst = bin_dst + s->used;
            const uint32_t *item = s->item;
            for (uint64_t j = s->slot; j < s->slot + s->repeat;
                 j++, dst += s->len_tok) {
                run_item[j] = *item++;
                run_dst[j] = dst;
            }
            s->item = item;
        }
        run_item += v->items;
        run_dst += v->items;
        bin_dst += v->capacity;
    }
}

static void place_bins(const struct place *c, const struct slu_place_interval *v,
                       uint64_t from, uint64_t to)
{
    struct stream stream[STREAMS];
    unsigned n = 0;
    for (uint32_t i = v->last; from < to && i != SLU_PLACE_OPENED;) {
        const struct slu_place_step *s = &c->p->step[i];
        uint64_t k = (v->first_bin + from - s->first_bin) * s->repeat;
        stream[n++] = (struct stream){c->p->order + s->first + k, s->repeat, s->len_tok,
                                      s->slot, s->used};
        i = s->parent;
        if (n == STREAMS || i == SLU_PLACE_OPENED) {
            write_bins(c, v, from, to, stream, n);
            n = 0;
        }
    }
}

/* The first bin of v whose items all come at or after run `at`. */
static uint64_t bin_at(const struct slu_place_interval *v, uint64_t at)
{
    return at <= v->first_item ? 0 : (at - v->first_item + v->items - 1) / v->items;
}

static void place_part(void *arg, unsigned thread)
{
    const struct place *c = arg;
    const struct slu_place *p = c->p;
    const struct slu_place_interval *v = p->interval, *end = v + p->n_interval;
    uint64_t base = v->first_item;
    uint64_t from = base + slu_kernel_share(p->n, thread, c->n_threads);
    uint64_t to = base + slu_kernel_share(p->n, thread + 1, c->n_threads);
    size_t lo = 0, hi = p->n_interval - 1;
    while (lo < hi) { /* finds the last interval that begins at or before `from` */
        size_t mid = lo + (hi - lo + 1) / 2;
        if (v[mid].first_item <= from)
            lo = mid;
        else
            hi = mid - 1;
    }
    for (v += lo; v < end && v->first_item < to; v++) {
        uint64_t stop = v + 1 < end ? v[1].first_item : base + p->n;
        place_bins(c, v, bin_at(v, from), bin_at(v, to < stop ? to : stop));
    }
}

void slu_place_cpu(const struct slu_place *p, uint32_t *run_item, uint64_t *run_dst,
                   unsigned n_threads)
{
    struct place c = {p, run_item, run_dst, n_threads ? n_threads : 1};
    if (c.n_threads > p->n / LEAST_SHARE + 1)
        c.n_threads = (unsigned)(p->n / LEAST_SHARE + 1);
    if (p->n && p->n_interval)
        slu_kernel_parallel(c.n_threads, place_part, &c);
}
