#include "lib/dedup/substring/substring_walk.h"

#include "lib/stream/stream.h"

void slu_specials_add(struct slu_specials *s, uint64_t id)
{
    if (id >= UINT32_MAX)
        return;
    for (unsigned i = 0; i < s->n; i++)
        if (s->id[i] == id)
            return;
    for (unsigned i = s->n++; i < 3; i++)
        s->id[i] = (uint32_t)id;
}

bool slu_walk_run(struct slu_walk *w)
{
    uint64_t first = w->seg;

    w->has_run = slu_run_next(w->b, w->q, &w->seg, &w->next, &w->run);
    w->run_place = w->place + (w->run.tok_off - w->q->tok_off) + first;
    w->at = 0;
    return w->has_run;
}

/* The first special id of p[from, to), or `to`: 64 at a time without a branch. `bits`
 * of a token are its id. */
#define NEXT_SPECIAL(name, type, bits)                                                 \
    static uint64_t name(const type *p, uint64_t from, uint64_t to,                    \
                         const struct slu_specials *s)                                 \
    {                                                                                  \
        const type a = (type)s->id[0], b = (type)s->id[1], c = (type)s->id[2];         \
        for (; from + 64 <= to; from += 64) {                                          \
            type hit = 0;                                                              \
            for (unsigned i = 0; i < 64; i++)                                          \
                hit |= (type)(((p[from + i] & (bits)) == a) |                          \
                              ((p[from + i] & (bits)) == b) |                          \
                              ((p[from + i] & (bits)) == c));                          \
            if (hit)                                                                   \
                break;                                                                 \
        }                                                                              \
        while (from < to && (p[from] & (bits)) != a && (p[from] & (bits)) != b &&      \
               (p[from] & (bits)) != c)                                                \
            from++;                                                                    \
        return from;                                                                   \
    }
NEXT_SPECIAL(next_special_16, uint16_t, UINT16_MAX)
NEXT_SPECIAL(next_special_32, uint32_t, UINT32_MAX)
NEXT_SPECIAL(next_special_marked, uint32_t, ~SLU_TRAINED)

static bool is_special(const struct slu_specials *s, uint32_t id)
{
    return s->n && (id == s->id[0] || id == s->id[1] || id == s->id[2]);
}

bool slu_walk_stretch(struct slu_walk *w, struct slu_stretch *s)
{
    uint64_t from = w->at, to = w->run.seg.len_tok, off = w->run.tok_off, end = to;

    if (w->run.seg.source == SLU_PADDING)
        return false;
    while (from < to && is_special(w->special, slu_batch_id(w->b, off + from)))
        from++;
    if (from == to)
        return false;
    if (w->special->n)
        end = w->b->tok_bytes == 2
                  ? next_special_16(slu_batch_at(w->b, off), from, to, w->special)
              : w->b->masks
                  ? next_special_marked(slu_batch_at(w->b, off), from, to, w->special)
                  : next_special_32(slu_batch_at(w->b, off), from, to, w->special);
    *s = (struct slu_stretch){off + from, end - from, w->run_place + from};
    w->at = end;
    return true;
}
