/* Device memory and shared memory: what is there, what was written, who raced. */
#include "emu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, UNIT = 2 /* bytes of global memory with a shadow of their own */ };

/* ---- races ---- */

/* An access, or all reads since the last write. Two accesses race if at least one of
 * them writes, at least one is not strong, and neither is ordered before the other: by
 * another launch, by a barrier of the block, or in a warp by __syncwarp. */
struct access {
    uint32_t launch, block, epoch, warp_epoch;
    uint16_t thread;
    bool strong;
    bool blocks, warps, lanes; /* reads: of several, in this epoch */
};
struct emu_shadow {
    struct access write, read;
};

struct who {
    uint32_t block, epoch, warp_epoch;
    uint16_t thread;
};

/* Shadows that were freed. What is in them is of launches before, and so is none. */
static struct pool {
    struct emu_shadow *s;
    size_t n_unit;
} pool[256];
static size_t n_pool;

struct emu_shadow *emu_shadow_new(size_t *n_unit)
{
    size_t best = n_pool;
    for (size_t k = 0; k < n_pool; k++)
        if (pool[k].n_unit >= *n_unit &&
            (best == n_pool || pool[k].n_unit < pool[best].n_unit))
            best = k;
    if (best < n_pool) {
        struct pool it = pool[best];
        pool[best] = pool[--n_pool];
        *n_unit = it.n_unit;
        return it.s;
    }
    struct emu_shadow *s = mmap(NULL, (*n_unit + 1) * sizeof *s, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s == MAP_FAILED)
        emu_stop("out of memory");
    return s;
}

void emu_shadow_free(struct emu_shadow *s, size_t n_unit)
{
    if (n_pool < sizeof pool / sizeof *pool)
        pool[n_pool++] = (struct pool){s, n_unit};
    else
        munmap(s, (n_unit + 1) * sizeof *s);
}

static bool write_ordered(const struct access *a, const struct who *w)
{
    if (a->launch != emu_launch_number)
        return true;
    if (a->block != w->block)
        return false;
    return a->thread == w->thread || a->epoch < w->epoch ||
           (a->thread / EMU_LANES == w->thread / EMU_LANES &&
            a->warp_epoch < w->warp_epoch);
}

static bool reads_ordered(const struct access *a, const struct who *w)
{
    if (a->launch != emu_launch_number)
        return true;
    if (a->blocks || a->block != w->block)
        return false;
    if (a->epoch < w->epoch)
        return true;
    if (a->warps || a->thread / EMU_LANES != w->thread / EMU_LANES)
        return false;
    return a->warp_epoch < w->warp_epoch || (!a->lanes && a->thread == w->thread);
}

static void add_read(struct access *a, const struct who *w, bool strong)
{
    bool launch = a->launch == emu_launch_number;
    bool block = launch && !a->blocks && a->block == w->block;
    bool epoch = block && a->epoch == w->epoch;
    bool warp = epoch && a->thread / EMU_LANES == w->thread / EMU_LANES;
    *a = (struct access){
        .launch = emu_launch_number,
        .block = w->block,
        .epoch = w->epoch,
        .warp_epoch = w->warp_epoch,
        .thread = w->thread,
        .strong = strong && (!launch || a->strong),
        .blocks = launch && !block,
        .warps = epoch && (a->warps || !warp),
        .lanes = warp && a->warp_epoch == w->warp_epoch &&
                 (a->lanes || a->thread != w->thread),
    };
}

/* One unit; true: a race. */
static bool touch(struct emu_shadow *s, const struct who *w, bool write, bool strong)
{
    bool race = !(strong && s->write.strong) && !write_ordered(&s->write, w);
    if (!write) {
        add_read(&s->read, w, strong);
        return race;
    }
    race |= !(strong && s->read.strong) && !reads_ordered(&s->read, w);
    s->write = (struct access){.launch = emu_launch_number,
                               .block = w->block,
                               .epoch = w->epoch,
                               .warp_epoch = w->warp_epoch,
                               .thread = w->thread,
                               .strong = strong};
    return race;
}

/* ---- device memory ---- */

/* Pages that no access may touch lie on both sides. Few are there at a time. */
static struct area {
    uint8_t *p;
    size_t n_byte, n_mapped, n_unit;
    bool *written;
    struct emu_shadow *shadow;
} area[4096];
static size_t n_area, last_area;

void *emu_alloc(size_t n_byte)
{
    size_t n_mapped = (n_byte + PAGE - 1) / PAGE * PAGE + 2 * PAGE;
    if (n_area == sizeof area / sizeof *area)
        return NULL;
    uint8_t *m = mmap(NULL, n_mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        return NULL;
    struct area *a = &area[n_area];
    *a = (struct area){.p = m + PAGE,
                       .n_byte = n_byte,
                       .n_mapped = n_mapped,
                       .n_unit = n_byte / UNIT + 1,
                       .written = calloc(n_byte + 1, 1)};
    a->shadow = emu_shadow_new(&a->n_unit);
    if (!a->written || mprotect(a->p, n_mapped - 2 * PAGE, PROT_READ | PROT_WRITE) != 0)
        emu_stop("out of memory");
    memset(a->p, 0xdb, n_byte);
    n_area++;
    return a->p;
}

static struct area *area_of(const void *p)
{
    for (size_t k = 0; k < n_area; k++) {
        struct area *a = &area[(last_area + k) % n_area];
        if ((const uint8_t *)p >= a->p && (const uint8_t *)p < a->p + a->n_byte) {
            last_area = (size_t)(a - area);
            return a;
        }
    }
    return NULL;
}

bool emu_free(void *p)
{
    for (size_t k = 0; k < n_area; k++) {
        struct area *a = &area[k];
        if (a->p != p)
            continue;
        emu_shadow_free(a->shadow, a->n_unit);
        munmap(a->p - PAGE, a->n_mapped);
        free(a->written);
        *a = area[--n_area];
        last_area = 0;
        return true;
    }
    emu_report(EMU_MEMORY, "cudaFree of what was not allocated");
    return false;
}

bool emu_is_device(const void *p)
{
    return area_of(p) != NULL;
}

size_t emu_size(const void *p)
{
    const struct area *a = area_of(p);
    return a && a->p == p ? a->n_byte : 0;
}

static struct area *host_area(const void *p, size_t n_byte, const char *what)
{
    struct area *a = area_of(p);
    if (a && n_byte <= a->n_byte - (size_t)((const uint8_t *)p - a->p))
        return a;
    emu_report(EMU_MEMORY, "%s of %zu bytes: %s", what, n_byte,
               a ? "past the end" : "not on the device");
    return NULL;
}

bool emu_host_write(const void *p, size_t n_byte, const char *what)
{
    struct area *a = n_byte ? host_area(p, n_byte, what) : NULL;
    if (a)
        memset(a->written + ((const uint8_t *)p - a->p), true, n_byte);
    return a || !n_byte;
}

bool emu_host_read(const void *p, size_t n_byte, const char *what)
{
    struct area *a = n_byte ? host_area(p, n_byte, what) : NULL;
    if (a && !emu_config.trusting &&
        memchr(a->written + ((const uint8_t *)p - a->p), false, n_byte))
        emu_report(EMU_UNINIT, "%s of %zu bytes, not all of them written", what,
                   n_byte);
    return a || !n_byte;
}

bool emu_device_copy(const void *to, const void *from, size_t n_byte)
{
    struct area *a = n_byte ? host_area(to, n_byte, "copy within the device") : NULL;
    struct area *b = n_byte ? host_area(from, n_byte, "copy within the device") : NULL;
    if (a && b)
        memmove(a->written + ((const uint8_t *)to - a->p),
                b->written + ((const uint8_t *)from - b->p), n_byte);
    return (a && b) || !n_byte;
}

/* ---- page-locked memory of the host ---- */

static struct pinned {
    const char *p;
    size_t n_byte;
    bool own;   /* the program's, and not the runtime's */
    bool shown; /* to kernels */
} pinned[1024];
static unsigned n_pinned;

static const struct pinned *pinned_of(const void *p)
{
    for (unsigned k = 0; k < n_pinned; k++)
        if ((const char *)p >= pinned[k].p &&
            (const char *)p < pinned[k].p + pinned[k].n_byte)
            return &pinned[k];
    return NULL;
}

bool emu_is_pinned(const void *p)
{
    return pinned_of(p) != NULL;
}

bool emu_is_shown(const void *p)
{
    const struct pinned *at = pinned_of(p);
    return at && at->shown;
}

bool emu_pin(const void *p, size_t n_byte, bool own, bool shown)
{
    if (emu_is_pinned(p) || n_pinned == sizeof pinned / sizeof *pinned)
        return false;
    pinned[n_pinned++] = (struct pinned){p, n_byte, own, shown};
    return true;
}

bool emu_unpin(const void *p, bool own)
{
    for (unsigned k = 0; k < n_pinned; k++)
        if (pinned[k].p == p && pinned[k].own == own) {
            pinned[k] = pinned[--n_pinned];
            return true;
        }
    emu_report(EMU_MEMORY, "page-locked memory is freed that is not there");
    return false;
}

/* ---- accesses ---- */

static const char *kind_of(const struct emu_ins *i)
{
    return i->op == EMU_LD ? "read" : i->op == EMU_ST ? "write" : "atomic";
}

/* The part of an access that is the same for all lanes. */
struct request {
    const struct emu_ins *i;
    unsigned n_byte;
    bool reads, writes;
};

static void check(const struct request *r, bool *written, struct emu_shadow *shadow,
                  size_t n_unit, const struct who *who)
{
    bool race = false;
    if (emu_config.trusting)
        return;
    if (r->reads && memchr(written, false, r->n_byte))
        emu_report(EMU_UNINIT, "%s: %s",
                   r->i->space == EMU_SHARED ? "shared" : "global", emu_where(r->i));
    if (r->writes)
        memset(written, true, r->n_byte);
    for (size_t k = 0; k < n_unit; k++) {
        if (r->i->unchanging && shadow[k].write.launch == emu_launch_number)
            race = true; /* ld.nc of what this launch wrote, whoever did */
        race |= touch(&shadow[k], who, r->writes, r->i->strong);
    }
    if (race)
        emu_report(EMU_RACE, "%s %s: %s",
                   r->i->space == EMU_SHARED ? "shared" : "global", kind_of(r->i),
                   emu_where(r->i));
}

static void count_bus(uint64_t at)
{
    enum { SECTOR = 32, SECTORS = (128 << 10) / SECTOR };
    static struct {
        uint64_t sector;
        uint32_t launch;
    } cache[SECTORS];
    const uint64_t sector = at / SECTOR, k = sector % SECTORS;
    if (cache[k].sector == sector && cache[k].launch == emu_launch_number)
        return;
    cache[k].sector = sector;
    cache[k].launch = emu_launch_number;
    emu_count.bus += SECTOR;
}

/* Where the bytes of one lane are; NULL: it may not, and that was reported. */
static uint8_t *reach(const struct emu_warp *w, uint32_t lane, const struct request *r,
                      uint64_t at)
{
    struct emu_block *b = w->block;
    struct who who = {r->i->space == EMU_SHARED ? 0 : b->id, b->epoch, w->epoch[lane],
                      (uint16_t)(w->id * EMU_LANES + lane)};
    if (at % r->n_byte) {
        emu_report(EMU_MEMORY, "misaligned %s of %u bytes: %s", kind_of(r->i),
                   r->n_byte, emu_where(r->i));
        return NULL;
    }
    if (r->i->space == EMU_SHARED) {
        if (at + r->n_byte > b->shared_byte) {
            emu_report(EMU_MEMORY, "shared %s past the end: %s", kind_of(r->i),
                       emu_where(r->i));
            return NULL;
        }
        check(r, b->written + at, b->shadow + at, r->n_byte, &who);
        return b->shared + at;
    }
    struct area *a = area_of((const void *)(uintptr_t)at);
    const struct pinned *h = a ? NULL : pinned_of((const void *)(uintptr_t)at);
    if (h && h->shown && !r->writes &&
        r->n_byte <= h->n_byte - (at - (uintptr_t)h->p)) {
        count_bus(at);
        return (uint8_t *)(uintptr_t)at;
    }
    if (!a || r->n_byte > a->n_byte - (at - (uintptr_t)a->p)) {
        emu_report(EMU_MEMORY, "global %s %s: %s", kind_of(r->i),
                   a ? "past the end" : "of what is not allocated", emu_where(r->i));
        return NULL;
    }
    size_t off = at - (uintptr_t)a->p;
    check(r, a->written + off, a->shadow + off / UNIT, (r->n_byte + UNIT - 1) / UNIT,
          &who);
    return a->p + off;
}

static uint64_t combined(const struct emu_ins *i, uint64_t old, uint64_t x, uint64_t y)
{
    unsigned n = i->bits;
    bool less = i->is_signed ? emu_sign(old, n) < emu_sign(x, n) : old < emu_low(x, n);
    switch (i->mode) {
    case EMU_ATOM_ADD:
        return old + x;
    case EMU_ATOM_MAX:
        return less ? x : old;
    case EMU_ATOM_MIN:
        return less ? old : x;
    case EMU_ATOM_OR:
        return old | x;
    case EMU_ATOM_AND:
        return old & x;
    case EMU_ATOM_XOR:
        return old ^ x;
    case EMU_ATOM_EXCH:
        return x;
    default:
        return old == emu_low(x, n) ? y : old;
    }
}

static void one_atomic(const struct emu_warp *w, const struct emu_ins *i, uint32_t l,
                       uint8_t *p)
{
    uint64_t old = 0, x = emu_reg(w, i->src[0])[l];
    memcpy(&old, p, i->bits / 8);
    x = combined(i, old, x, i->n_src > 1 ? emu_reg(w, i->src[1])[l] : 0);
    memcpy(p, &x, i->bits / 8);
    if (i->dst[0] >= 0)
        emu_reg(w, i->dst[0])[l] = old;
}

static void load(const struct emu_warp *w, const struct emu_ins *i, uint32_t l,
                 const uint8_t *p)
{
    unsigned size = i->bits / 8;
    for (unsigned k = 0; k < i->vec; k++) {
        uint64_t x = 0xdbdbdbdbdbdbdbdb; /* of a read that may not be */
        if (p)
            memcpy(&x, p + k * size, size);
        if (i->dst[k] >= 0)
            emu_reg(w, i->dst[k])[l] =
                i->is_signed ? (uint64_t)emu_sign(x, i->bits) : emu_low(x, i->bits);
    }
}

static void store(const struct emu_warp *w, const struct emu_ins *i, uint32_t l,
                  uint8_t *p)
{
    unsigned size = i->bits / 8;
    for (unsigned k = 0; k < i->vec; k++)
        memcpy(p + k * size, &emu_reg(w, i->src[k])[l], size);
}

/* Counts sectors. Accesses are aligned, so that each is within one. */
static void count_sectors(const struct emu_warp *w, const struct emu_ins *i,
                          uint32_t set)
{
    enum { SECTOR = 32 };
    uint64_t sector[EMU_LANES], at[EMU_LANES];
    uint32_t n_sector = 0, n_at = 0;
    EMU_EACH(l, set)
    {
        uint64_t a = emu_reg(w, i->base)[l] + (uint64_t)i->off;
        uint32_t k = n_sector, j = n_at;
        while (k > 0 && sector[k - 1] != a / SECTOR)
            k--;
        while (j > 0 && at[j - 1] != a)
            j--;
        if (!k)
            sector[n_sector++] = a / SECTOR;
        if (!j)
            at[n_at++] = a;
    }
    emu_count.sectors += n_sector;
    emu_count.needed += (n_at * (i->bits / 8u) * i->vec + SECTOR - 1) / SECTOR;
}

void emu_access(struct emu_warp *w, const struct emu_ins *i, uint32_t set)
{
    struct request r = {i, i->bits / 8u * i->vec, i->op != EMU_ST, i->op != EMU_LD};
    if (i->space == EMU_GLOBAL && i->op == EMU_ATOM)
        emu_count.atomics += (uint32_t)__builtin_popcount(set);
    else if (i->space == EMU_GLOBAL)
        count_sectors(w, i, set);
    EMU_EACH(l, set)
    {
        uint64_t at = (uint64_t)i->off;
        if (i->space == EMU_PARAM) {
            load(w, i, l, emu_now->param + at);
            continue;
        }
        at += emu_reg(w, i->base)[l];
        uint8_t *p = reach(w, l, &r, i->space == EMU_SHARED ? (uint32_t)at : at);
        if (i->op == EMU_LD)
            load(w, i, l, p);
        else if (p && i->op == EMU_ST)
            store(w, i, l, p);
        else if (p)
            one_atomic(w, i, l, p);
    }
}
