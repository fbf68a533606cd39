/* A launch: blocks side by side, their warps in turn, one instruction after the other.
 */
#include "emu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_STEPS = 1 << 14, /* of a warp before it is another's turn */
    FEW_STEPS = 300,      /* the same, in a random order */
    MOST_RESIDENT = 64,
    PATIENCE = 1000 /* rounds without a step before it is a deadlock */
};

struct emu_config emu_config = {.resident = 8};
const struct emu_launch *emu_now;
uint32_t emu_launch_number;
struct emu_counts emu_count;
static bool trapped;

/* ---- findings ---- */

const char *const emu_finding_name[EMU_FINDINGS] = {"memory", "uninitialised", "race",
                                                    "synchronisation", "launch"};
static uint64_t found[EMU_FINDINGS];
static bool quiet;
static char said[60][400];
static unsigned n_said;

const char *emu_where(const struct emu_ins *i)
{
    static char s[200];
    snprintf(s, sizeof s, "%.100s, PTX line %u", emu_now ? emu_now->kernel->name : "",
             i->line);
    return s;
}

void emu_report(enum emu_finding what, const char *format, ...)
{
    char text[sizeof *said];
    va_list ap;
    if (found[what]++ >= 1000 || quiet)
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    for (unsigned k = 0; k < n_said; k++)
        if (!strcmp(said[k], text))
            return;
    if (n_said == sizeof said / sizeof *said)
        return;
    memcpy(said[n_said++], text, sizeof text);
    fprintf(stderr, "emu: %s: %s\n", emu_finding_name[what], text);
}

uint64_t emu_found(enum emu_finding what)
{
    return found[what];
}

void emu_forget(bool be_quiet)
{
    memset(found, 0, sizeof found);
    quiet = be_quiet;
}

void emu_stop(const char *format, ...)
{
    va_list ap;
    fprintf(stderr, "emu: ");
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    abort();
}

/* ---- chance ---- */

static uint64_t chance;

static uint32_t drawn(uint32_t n) /* 0 … n-1 */
{
    uint64_t z = chance += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ z >> 31) % n);
}

/* ---- a warp ---- */

/* The lanes that go next: those at one instruction, the first of all that run, so that
 * who is behind catches up. Apart: any. *until: the next where others stand. */
static uint32_t next_lanes(const struct emu_warp *w, uint32_t *pc, uint32_t *until)
{
    uint32_t runs = 0, at = UINT32_MAX, set = 0;
    *until = UINT32_MAX;
    for (uint32_t l = 0; l < EMU_LANES; l++) {
        if (w->state[l] != EMU_RUNS)
            continue;
        runs |= 1u << l;
        at = w->pc[l] < at ? w->pc[l] : at;
    }
    if (!runs)
        return 0;
    if (emu_config.diverge) {
        uint32_t one = drawn(EMU_LANES);
        while (!(runs >> one & 1))
            one = (one + 1) % EMU_LANES;
        at = w->pc[one];
        *until = 0;
    }
    EMU_EACH(l, runs)
    {
        if (w->pc[l] == at)
            set |= 1u << l;
        else if (w->pc[l] < *until)
            *until = w->pc[l];
    }
    if (emu_config.diverge && drawn(4) == 0) {
        uint32_t some = set & drawn(UINT32_MAX);
        set = some ? some : set;
    }
    *pc = at;
    return set;
}

static void set_pc(struct emu_warp *w, uint32_t set, uint32_t pc)
{
    EMU_EACH(l, set)
    w->pc[l] = pc;
}

static void end_lanes(struct emu_warp *w, const struct emu_ins *i, uint32_t set)
{
    EMU_EACH(l, set)
    w->state[l] = EMU_ENDED;
    w->live &= ~set;
    w->block->n_ended += (uint32_t)__builtin_popcount(set);
    emu_block_meet(w->block);
    emu_warp_meet(w, i, 0);
}

static uint32_t guarded(const struct emu_warp *w, const struct emu_ins *i, uint32_t set)
{
    if (i->guard < 0)
        return set;
    const uint64_t *p = emu_reg(w, i->guard);
    uint32_t yes = 0;
    EMU_EACH(l, set)
    yes |= (uint32_t)((p[l] & 1) != i->guard_not) << l;
    return yes;
}

/* Instruction *pc by the lanes `set`, whose places are in *pc alone. True: they are
 * together still, at the new *pc; false: their places have been written. */
static bool step(struct emu_warp *w, uint32_t set, uint32_t *pc)
{
    const struct emu_ins *i = &emu_now->kernel->code[*pc];
    uint32_t act = guarded(w, i, set);
    emu_count.lane_ins += (uint32_t)__builtin_popcount(set);
    emu_count.warp_ins++;
    switch (i->op) {
    case EMU_BRA:
        if (act == set || !act) {
            *pc = act ? (uint32_t)i->target : *pc + 1;
            return true;
        }
        set_pc(w, act, (uint32_t)i->target);
        set_pc(w, set & ~act, *pc + 1);
        return false;
    case EMU_RET:
    case EMU_BAR:
    case EMU_BARRED:
    case EMU_WSYNC:
    case EMU_SHFL:
    case EMU_VOTE:
    case EMU_MATCH:
        set_pc(w, set & ~act, *pc + 1);
        set_pc(w, act, *pc);
        if (i->op == EMU_RET) {
            end_lanes(w, i, act);
        } else if (i->op == EMU_BAR || i->op == EMU_BARRED) {
            EMU_EACH(l, act)
            w->state[l] = EMU_WAITS_BLOCK;
            w->block->n_waiting += (uint32_t)__builtin_popcount(act);
            emu_block_meet(w->block);
        } else {
            emu_warp_meet(w, i, act);
        }
        return false;
    case EMU_LD:
    case EMU_ST:
    case EMU_ATOM:
        emu_access(w, i, act);
        break;
    case EMU_ACTIVE:
        EMU_EACH(l, act)
        emu_reg(w, i->dst[0])[l] = act;
        break;
    case EMU_TRAP:
        if (act)
            emu_report(EMU_LAUNCH, "trap: %s", emu_where(i));
        trapped |= act != 0;
        break;
    case EMU_FENCE:
    case EMU_NANOSLEEP:
        break;
    default:
        if (act)
            emu_alu(w, i, act);
    }
    ++*pc;
    return true;
}

/* Up to n steps; false: none of its lanes can go on. */
static bool run_warp(struct emu_warp *w, uint32_t n)
{
    uint32_t pc, until, done = 0;
    while (done < n) {
        uint32_t set = next_lanes(w, &pc, &until);
        if (!set)
            return done > 0;
        bool together = true;
        while (together && !trapped && done++ < n) {
            uint32_t from = pc;
            bool sleeps = emu_now->kernel->code[pc].op == EMU_NANOSLEEP;
            together = step(w, set, &pc);
            if (sleeps) /* it waits for others: their turn */
                done = n;
            /* Whoever stands elsewhere may be met, or be behind after a jump. */
            if (until != UINT32_MAX && (pc >= until || pc <= from))
                break;
        }
        if (together)
            set_pc(w, set, pc);
        if (trapped)
            return true;
    }
    return true;
}

/* ---- a block ---- */

static void special_registers(struct emu_warp *w)
{
    const struct emu_launch *n = emu_now;
    const int *reg = n->kernel->special_reg;
    for (int s = 0; s < EMU_SPECIALS; s++)
        for (uint32_t l = 0; l < EMU_LANES && reg[s] >= 0; l++) {
            uint32_t t = w->id * EMU_LANES + l, v;
            uint32_t tid[3] = {t % n->block[0], t / n->block[0] % n->block[1],
                               t / n->block[0] / n->block[1]};
            uint64_t bit = UINT64_C(1) << l;
            switch (s) {
            case EMU_LANEID:
                v = l;
                break;
            case EMU_WARPID:
                v = w->id;
                break;
            case EMU_MASK_EQ:
                v = (uint32_t)bit;
                break;
            case EMU_MASK_LT:
                v = (uint32_t)(bit - 1);
                break;
            case EMU_MASK_LE:
                v = (uint32_t)(2 * bit - 1);
                break;
            case EMU_MASK_GE:
                v = ~(uint32_t)(bit - 1);
                break;
            case EMU_MASK_GT:
                v = ~(uint32_t)(2 * bit - 1);
                break;
            default:
                v = s < EMU_NTID     ? tid[s]
                    : s < EMU_CTAID  ? n->block[s - EMU_NTID]
                    : s < EMU_NCTAID ? w->block->at[s - EMU_CTAID]
                                     : n->grid[s - EMU_NCTAID];
            }
            emu_reg(w, reg[s])[l] = v;
        }
}

static void start_warp(struct emu_block *b, uint32_t id)
{
    const struct emu_kernel *k = emu_now->kernel;
    struct emu_warp *w = &b->warp[id];
    memset(w, 0, sizeof *w);
    w->block = b;
    w->id = id;
    w->reg = b->reg + (size_t)id * k->n_reg * EMU_LANES;
    for (uint32_t l = 0; l < EMU_LANES; l++) {
        bool is = id * EMU_LANES + l < b->n_thread;
        w->state[l] = is ? EMU_RUNS : EMU_ENDED;
        w->live |= (uint32_t)is << l;
        w->epoch[l] = 1;
    }
    special_registers(w);
}

/* Registers keep their memory from launch to launch: it is much, and the system's to
 * clear. */
static void lend_registers(struct emu_block *b)
{
    const struct emu_kernel *k = emu_now->kernel;
    size_t n = (size_t)b->n_warp * k->n_reg * EMU_LANES;
    if (n > b->most_reg) {
        free(b->reg);
        b->reg = malloc(n * sizeof *b->reg);
        if (!b->reg)
            emu_stop("out of memory");
        memset(b->reg, 0xdb, n * sizeof *b->reg);
        b->most_reg = n;
    }
    for (uint32_t w = 0; w < b->n_warp; w++)
        for (uint32_t c = 0; c < k->n_constant; c++) {
            size_t reg = (size_t)w * k->n_reg + (size_t)k->constant_reg[c];
            for (int l = 0; l < EMU_LANES; l++)
                b->reg[reg * EMU_LANES + (size_t)l] = k->constant[c];
        }
}

/* A block that is over lends its memory to the next of the launch. */
static void lend_block(struct emu_block *b)
{
    const struct emu_kernel *k = emu_now->kernel;
    const uint32_t *n = emu_now->block;
    b->n_thread = n[0] * n[1] * n[2];
    b->n_warp = (b->n_thread + EMU_LANES - 1) / EMU_LANES;
    b->shared_byte = k->shared_byte + (k->has_dynamic ? emu_now->dynamic_byte : 0);
    b->warp = calloc(b->n_warp, sizeof *b->warp);
    b->shared = malloc(b->shared_byte + 1);
    b->written = malloc(b->shared_byte + 1);
    b->n_shadow = b->shared_byte;
    b->shadow = emu_shadow_new(&b->n_shadow);
    if (!b->warp || !b->shared || !b->written)
        emu_stop("out of memory");
    lend_registers(b);
}

static void take_back(struct emu_block *b)
{
    if (!b->shadow)
        return;
    emu_shadow_free(b->shadow, b->n_shadow);
    b->shadow = NULL;
    free(b->warp);
    free(b->shared);
    free(b->written);
}

static void start_block(struct emu_block *b, uint64_t id)
{
    const uint32_t *g = emu_now->grid;
    b->id = (uint32_t)id;
    b->at[0] = (uint32_t)(id % g[0]);
    b->at[1] = (uint32_t)(id / g[0] % g[1]);
    b->at[2] = (uint32_t)(id / g[0] / g[1]);
    b->n_ended = b->n_waiting = 0;
    b->epoch++; /* shared memory is another's: nothing before races with it */
    memset(b->shared, 0xdb, b->shared_byte);
    memset(b->written, false, b->shared_byte);
    for (uint32_t w = 0; w < b->n_warp; w++)
        start_warp(b, w);
}

/* ---- all blocks ---- */

static void report_deadlock(const struct emu_block *b)
{
    const struct emu_ins *code = emu_now->kernel->code;
    for (uint32_t k = 0; k < b->n_warp; k++)
        for (uint32_t l = 0; l < EMU_LANES; l++)
            if (b->warp[k].state[l] == EMU_WAITS_WARP ||
                b->warp[k].state[l] == EMU_WAITS_BLOCK) {
                emu_report(EMU_SYNC, "deadlock: %s",
                           emu_where(&code[b->warp[k].pc[l]]));
                return;
            }
}

static bool run_block(struct emu_block *b)
{
    bool moved = false, by_chance = emu_config.seed != 0;
    uint32_t first = by_chance ? drawn(b->n_warp) : 0;
    for (uint32_t k = 0; k < b->n_warp && !trapped; k++)
        moved |= run_warp(&b->warp[(first + k) % b->n_warp],
                          by_chance ? 1 + drawn(FEW_STEPS) : MOST_STEPS);
    return moved;
}

bool emu_run(const struct emu_launch *l)
{
    uint64_t n = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2], next = 0;
    static struct emu_block room_for[MOST_RESIDENT];
    struct emu_block *block[MOST_RESIDENT];
    uint32_t n_here = 0, turn = 0, idle = 0;
    uint32_t room =
        emu_config.resident < MOST_RESIDENT ? emu_config.resident : MOST_RESIDENT;
    for (uint32_t k = 0; k < MOST_RESIDENT; k++)
        block[k] = &room_for[k];
    emu_now = l;
    emu_launch_number++;
    trapped = false;
    chance = emu_config.seed + emu_launch_number;
    while ((next < n || n_here) && !trapped && idle <= PATIENCE * (n_here + 1)) {
        while (next < n && n_here < room) {
            if (!block[n_here]->shadow)
                lend_block(block[n_here]);
            start_block(block[n_here++], next++);
        }
        uint32_t at = emu_config.seed ? drawn(n_here) : turn++ % n_here;
        struct emu_block *b = block[at];
        idle = run_block(b) ? 0 : idle + 1;
        if (b->n_ended == b->n_thread) {
            block[at] = block[--n_here];
            block[n_here] = b;
            idle = 0;
        }
    }
    bool good = n_here == 0 && !trapped;
    if (!good && !trapped)
        for (uint32_t k = 0; k < n_here; k++)
            report_deadlock(block[k]);
    for (uint32_t k = 0; k < MOST_RESIDENT; k++)
        take_back(block[k]);
    emu_now = NULL;
    return good;
}
