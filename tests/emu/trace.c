/* What launches and copies did, for SLU_EMU_LOG and SLU_EMU_TRACE (cudart.c). */
#include "emu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    uint64_t n_byte[EMU_WAYS][2]; /* pageable, pinned */
    uint64_t copies, waits, launches;
} sum;
static FILE *trace;

void emu_trace_begin(void)
{
    const char *path = getenv("SLU_EMU_TRACE");
    if (path && !(trace = fopen(path, "w")))
        emu_stop("%s: cannot be written", path);
}

void emu_trace_copy(enum emu_way way, uint64_t n_byte, bool pinned)
{
    sum.copies++;
    sum.n_byte[way][pinned] += n_byte;
    if (trace && way != EMU_WITHIN)
        fprintf(trace, "%s %" PRIu64 " %s\n", way == EMU_UP ? "up" : "down", n_byte,
                pinned ? "pinned" : "pageable");
}

void emu_trace_wait(void)
{
    sum.waits++;
    if (trace)
        fprintf(trace, "wait\n");
}

void emu_trace_launch(const struct emu_launch *l, const struct emu_counts *before)
{
    const struct emu_counts *c = &emu_count;
    sum.launches++;
    if (c->bus > before->bus)
        emu_trace_copy(EMU_UP, c->bus - before->bus, true);
    if (trace)
        fprintf(trace,
                "launch %s %" PRIu64 " blocks %" PRIu64 " lanes %" PRIu64
                " warps %" PRIu64 " touched %" PRIu64 " needed %" PRIu64 " atomics\n",
                l->kernel->name, (uint64_t)l->grid[0] * l->grid[1] * l->grid[2],
                c->lane_ins - before->lane_ins, c->warp_ins - before->warp_ins,
                c->sectors - before->sectors, c->needed - before->needed,
                c->atomics - before->atomics);
}

uint64_t emu_trace_end(const char *device)
{
    const char *path = getenv("SLU_EMU_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    uint64_t n = 0;
    for (int k = 0; k < EMU_FINDINGS; k++)
        n += emu_found((enum emu_finding)k);
    if (f) {
        fprintf(f,
                "%s: launches %" PRIu64 ", instructions %" PRIu64 ", up %" PRIu64
                " pinned %" PRIu64 " pageable, down %" PRIu64 " pinned %" PRIu64
                " pageable, copies %" PRIu64 ", waits %" PRIu64 "; found",
                device, sum.launches, emu_count.lane_ins, sum.n_byte[EMU_UP][1],
                sum.n_byte[EMU_UP][0], sum.n_byte[EMU_DOWN][1], sum.n_byte[EMU_DOWN][0],
                sum.copies, sum.waits);
        for (int k = 0; k < EMU_FINDINGS; k++)
            fprintf(f, " %s %" PRIu64, emu_finding_name[k],
                    emu_found((enum emu_finding)k));
        fprintf(f, "\n");
        fclose(f);
    }
    if (trace && fclose(trace))
        emu_stop("the trace: cannot be written");
    return n;
}
