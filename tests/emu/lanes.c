/* lanes.c - operations of several lanes: votes and shuffles within a warp, barriers of
 * a block. */
#include "emu.h"

#include <string.h>

/* ---- a warp ---- */

static void put(const struct emu_warp *w, int reg, uint32_t lane, uint64_t v)
{
    if (reg >= 0)
        emu_reg(w, reg)[lane] = v;
}

static void vote(const struct emu_warp *w, const struct emu_ins *i, uint32_t set)
{
    const uint64_t *x = emu_reg(w, i->src[0]);
    uint32_t yes = 0;
    EMU_EACH(l, set)
    yes |= (uint32_t)(x[l] & 1) << l;
    uint64_t r = i->mode == EMU_VOTE_BALLOT ? yes
                 : i->mode == EMU_VOTE_ANY  ? yes != 0
                 : i->mode == EMU_VOTE_ALL  ? yes == set
                                            : yes == set || yes == 0;
    EMU_EACH(l, set)
    put(w, i->dst[0], l, r);
}

static void match(const struct emu_warp *w, const struct emu_ins *i, uint32_t set)
{
    uint64_t x[EMU_LANES];
    memcpy(x, emu_reg(w, i->src[0]), sizeof x);
    EMU_EACH(l, set)
    {
        uint32_t same = 0;
        for (uint32_t k = 0; k < EMU_LANES; k++)
            if (set >> k & 1 && emu_low(x[k], i->bits) == emu_low(x[l], i->bits))
                same |= 1u << k;
        put(w, i->dst[0], l, same);
    }
}

static void shuffle(const struct emu_warp *w, const struct emu_ins *i, uint32_t set)
{
    uint64_t x[EMU_LANES];
    memcpy(x, emu_reg(w, i->src[0]), sizeof x);
    EMU_EACH(l, set)
    {
        int b = (int)(emu_reg(w, i->src[1])[l] & 31);
        uint32_t clamp = (uint32_t)emu_reg(w, i->src[2])[l];
        int segment = (int)(clamp >> 8 & 31), lane = (int)l;
        int most = (lane & segment) | ((int)(clamp & 31) & ~segment);
        int from = i->mode == EMU_SHFL_UP     ? lane - b
                   : i->mode == EMU_SHFL_DOWN ? lane + b
                   : i->mode == EMU_SHFL_BFLY ? lane ^ b
                                              : (lane & segment) | (b & ~segment);
        bool in = i->mode == EMU_SHFL_UP ? from >= most : from <= most;
        from = in ? from : lane;
        bool there = set >> from & 1;
        if (!there)
            emu_report(EMU_SYNC, "shfl reads a lane that takes no part: %s",
                       emu_where(i));
        put(w, i->dst[0], l, there ? (uint32_t)x[from] : 0xdbdbdbdb);
        put(w, i->dst2, l, in);
    }
}

static void together(struct emu_warp *w, const struct emu_ins *i, uint32_t set)
{
    uint32_t epoch = 0;
    switch (i->op) {
    case EMU_VOTE:
        vote(w, i, set);
        break;
    case EMU_MATCH:
        match(w, i, set);
        break;
    case EMU_SHFL:
        shuffle(w, i, set);
        break;
    default: /* what each did before, all others see from now on */
        EMU_EACH(l, set)
        epoch = w->epoch[l] > epoch ? w->epoch[l] : epoch;
        EMU_EACH(l, set)
        w->epoch[l] = epoch + 1;
    }
    EMU_EACH(l, set)
    {
        w->state[l] = EMU_RUNS;
        w->pc[l]++;
    }
}

/* The lanes of `waiting` that wait for the same as lane `one` does. __syncwarp may
 * stand in several places, all others must be one instruction. */
static uint32_t same_meeting(const struct emu_warp *w, uint32_t waiting, uint32_t one)
{
    const struct emu_ins *code = emu_now->kernel->code;
    uint32_t same = 0;
    EMU_EACH(l, waiting)
    if (w->mask[l] == w->mask[one] &&
        (w->pc[l] == w->pc[one] ||
         (code[w->pc[l]].op == EMU_WSYNC && code[w->pc[one]].op == EMU_WSYNC)))
        same |= 1u << l;
    return same;
}

void emu_warp_meet(struct emu_warp *w, const struct emu_ins *i, uint32_t arrived)
{
    EMU_EACH(l, arrived)
    {
        w->mask[l] = (uint32_t)emu_reg(w, i->src[i->n_src - 1])[l];
        w->state[l] = EMU_WAITS_WARP;
        if (!(w->mask[l] >> l & 1))
            emu_report(EMU_SYNC, "a lane that is not in its own mask: %s",
                       emu_where(i));
    }
    uint32_t waiting = 0;
    for (uint32_t l = 0; l < EMU_LANES; l++)
        waiting |= (uint32_t)(w->state[l] == EMU_WAITS_WARP) << l;
    while (waiting) {
        uint32_t one = (uint32_t)__builtin_ctz(waiting);
        uint32_t same = same_meeting(w, waiting, one), mask = w->mask[one];
        waiting &= ~same;
        if ((same & mask & w->live) != (mask & w->live))
            continue; /* others are still to come */
        const struct emu_ins *at = &emu_now->kernel->code[w->pc[one]];
        if (mask & ~w->live && at->op != EMU_WSYNC)
            emu_report(EMU_SYNC, "a mask that names lanes which have ended: %s",
                       emu_where(at));
        together(w, at, same);
    }
}

/* ---- a block ---- */

static const struct emu_ins *first_waiting(const struct emu_block *b)
{
    for (uint32_t k = 0; k < b->n_warp; k++)
        for (uint32_t l = 0; l < EMU_LANES; l++)
            if (b->warp[k].state[l] == EMU_WAITS_BLOCK)
                return &emu_now->kernel->code[b->warp[k].pc[l]];
    return NULL;
}

/* Whether a warp's lanes are where they should be at a barrier. */
static void check_barrier(const struct emu_warp *w, const struct emu_ins *first)
{
    const struct emu_ins *code = emu_now->kernel->code, *own = NULL;
    for (uint32_t l = 0; l < EMU_LANES; l++) {
        if (w->state[l] != EMU_WAITS_BLOCK)
            continue;
        const struct emu_ins *i = &code[w->pc[l]];
        if (own && own != i)
            emu_report(EMU_SYNC, "lanes of a warp at different barriers: %s",
                       emu_where(i));
        if (i->op != first->op)
            emu_report(EMU_SYNC, "barriers of different kinds: %s", emu_where(i));
        own = own ? own : i;
    }
}

void emu_block_meet(struct emu_block *b)
{
    const struct emu_ins *first, *code = emu_now->kernel->code;
    uint32_t yes = 0;
    if (b->n_waiting == 0 || b->n_waiting + b->n_ended < b->n_thread)
        return;
    first = first_waiting(b);
    if (b->n_ended)
        emu_report(EMU_SYNC, "a barrier, and threads of the block have ended: %s",
                   emu_where(first));
    for (uint32_t k = 0; k < b->n_warp; k++) {
        const struct emu_warp *w = &b->warp[k];
        check_barrier(w, first);
        for (uint32_t l = 0; l < EMU_LANES && first->op == EMU_BARRED; l++)
            if (w->state[l] == EMU_WAITS_BLOCK)
                yes += emu_reg(w, code[w->pc[l]].src[1])[l] & 1;
    }
    for (uint32_t k = 0; k < b->n_warp; k++) {
        struct emu_warp *w = &b->warp[k];
        for (uint32_t l = 0; l < EMU_LANES; l++) {
            if (w->state[l] != EMU_WAITS_BLOCK)
                continue;
            const struct emu_ins *i = &code[w->pc[l]];
            if (i->op == EMU_BARRED)
                put(w, i->dst[0], l,
                    i->mode == EMU_RED_OR    ? yes != 0
                    : i->mode == EMU_RED_AND ? yes == b->n_waiting
                                             : yes);
            w->state[l] = EMU_RUNS;
            w->pc[l]++;
        }
    }
    b->n_waiting = 0;
    b->epoch++;
}
