/* Arithmetic of lanes. Registers are wider than types: every operand is cut to its type
 * before it counts, and so is every result. */
#include "emu.h"

#include <stdlib.h>

typedef uint64_t (*one_lane)(const struct emu_ins *i, const uint64_t *v);

/* ---- bits ---- */

static uint64_t shifted(const struct emu_ins *i, const uint64_t *v)
{
    unsigned n = i->bits, by = (uint32_t)v[1] < n ? (unsigned)v[1] : n;
    if (i->op == EMU_SHL)
        return by == n ? 0 : v[0] << by;
    if (i->is_signed)
        return (uint64_t)(emu_sign(v[0], n) >> (by == n ? n - 1 : by));
    return by == n ? 0 : emu_low(v[0], n) >> by;
}

static uint64_t funnel(const struct emu_ins *i, const uint64_t *v)
{
    uint32_t by = (uint32_t)v[2];
    by = !(i->mode & EMU_SHF_CLAMP) ? by & 31 : by < 32 ? by : 32;
    uint64_t both = v[1] << 32 | (uint32_t)v[0];
    return i->mode & EMU_SHF_LEFT ? (both << by) >> 32 : both >> by;
}

static uint64_t popc(const struct emu_ins *i, const uint64_t *v)
{
    return (uint64_t)__builtin_popcountll(emu_low(v[0], i->bits));
}

static uint64_t clz(const struct emu_ins *i, const uint64_t *v)
{
    uint64_t x = emu_low(v[0], i->bits);
    return x ? (uint64_t)__builtin_clzll(x) - (64 - i->bits) : i->bits;
}

static uint64_t brev(const struct emu_ins *i, const uint64_t *v)
{
    uint64_t r = 0;
    for (unsigned k = 0; k < i->bits; k++)
        r |= (v[0] >> k & 1) << (i->bits - 1 - k);
    return r;
}

/* The place of the highest bit that is not the sign's; mode: from above. */
static uint64_t bfind(const struct emu_ins *i, const uint64_t *v)
{
    uint64_t x = i->is_signed && emu_sign(v[0], i->bits) < 0 ? ~v[0] : v[0];
    x = emu_low(x, i->bits);
    if (!x)
        return UINT32_MAX;
    unsigned at = 63 - (unsigned)__builtin_clzll(x);
    return i->mode ? i->bits - 1 - at : at;
}

/* Bits [at, at + n) of a word of `bits`. */
static uint64_t field(unsigned at, unsigned n, unsigned bits)
{
    uint64_t m = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
    return at >= 64 ? 0 : emu_low(m << at, bits);
}

static uint64_t bfi(const struct emu_ins *i, const uint64_t *v)
{
    unsigned at = v[2] & 255, n = v[3] & 255;
    uint64_t m = field(at, n, i->bits);
    return (v[1] & ~m) | (at < i->bits ? v[0] << at & m : 0);
}

static uint64_t bfe(const struct emu_ins *i, const uint64_t *v)
{
    unsigned at = v[1] & 255, n = v[2] & 255, bits = i->bits;
    unsigned there = at >= bits ? 0 : at + n < bits ? n : bits - at;
    uint64_t x = emu_low(v[0], bits), r = there ? x >> at & field(0, there, bits) : 0;
    if (!i->is_signed || n == 0)
        return r;
    unsigned top = at + n - 1 < bits ? at + n - 1 : bits - 1;
    return x >> top & 1 ? r | ~field(0, there, bits) : r;
}

/* Four bytes of eight, by four selectors; bit 3 of one: its sign everywhere. */
static uint64_t prmt(const struct emu_ins *i, const uint64_t *v)
{
    uint64_t from = v[1] << 32 | (uint32_t)v[0], r = 0;
    (void)i;
    for (unsigned k = 0; k < 4; k++) {
        unsigned by = v[2] >> 4 * k & 15;
        uint64_t byte = from >> 8 * (by & 7) & 255;
        if (by & 8)
            byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * k;
    }
    return r;
}

static uint64_t bmsk(const struct emu_ins *i, const uint64_t *v)
{
    uint32_t at = (uint32_t)v[0], n = (uint32_t)v[1];
    if (!i->mode)
        return field(at & 31, n & 31, 32);
    return at > 31 ? 0 : field(at, n < 32 ? n : 32, 32);
}

static uint64_t lop3(const struct emu_ins *i, const uint64_t *v)
{
    uint64_t r = 0;
    for (unsigned k = 0; k < i->bits; k++) {
        unsigned at = (v[0] >> k & 1) * 4 + (v[1] >> k & 1) * 2 + (v[2] >> k & 1);
        r |= (v[3] >> at & 1) << k;
    }
    return r;
}

/* ---- numbers ---- */

static uint64_t mulhi(const struct emu_ins *i, const uint64_t *v)
{
    if (i->is_signed)
        return (
            uint64_t)(((__int128)emu_sign(v[0], i->bits) * emu_sign(v[1], i->bits)) >>
                      i->bits);
    return (uint64_t)(((unsigned __int128)emu_low(v[0], i->bits) *
                       emu_low(v[1], i->bits)) >>
                      i->bits);
}

static uint64_t mulwide(const struct emu_ins *i, const uint64_t *v)
{
    unsigned n = i->bits;
    return i->is_signed ? (uint64_t)(emu_sign(v[0], n) * emu_sign(v[1], n))
                        : emu_low(v[0], n) * emu_low(v[1], n);
}

static uint64_t divided(const struct emu_ins *i, const uint64_t *v)
{
    unsigned n = i->bits;
    uint64_t a = emu_low(v[0], n), b = emu_low(v[1], n);
    bool rest = i->op == EMU_REM;
    if (!b) {
        emu_report(EMU_LAUNCH, "division by zero: %s", emu_where(i));
        return UINT64_MAX;
    }
    if (!i->is_signed)
        return rest ? a % b : a / b;
    int64_t x = emu_sign(a, n), y = emu_sign(b, n);
    if (y == -1) /* INT64_MIN / -1 is none in C */
        return rest ? 0 : 0 - (uint64_t)x;
    return (uint64_t)(rest ? x % y : x / y);
}

static uint64_t least_most(const struct emu_ins *i, const uint64_t *v)
{
    unsigned n = i->bits;
    bool less = i->is_signed ? emu_sign(v[0], n) < emu_sign(v[1], n)
                             : emu_low(v[0], n) < emu_low(v[1], n);
    return less == (i->op == EMU_MIN) ? v[0] : v[1];
}

static uint64_t absolute(const struct emu_ins *i, const uint64_t *v)
{
    int64_t x = emu_sign(v[0], i->bits);
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

static uint64_t converted(const struct emu_ins *i, const uint64_t *v)
{
    return i->from_signed ? (uint64_t)emu_sign(v[0], i->from_bits)
                          : emu_low(v[0], i->from_bits);
}

static uint64_t selected(const struct emu_ins *i, const uint64_t *v)
{
    (void)i;
    return v[2] & 1 ? v[0] : v[1];
}

/* ---- comparisons and vectors: more than one result ---- */

static bool compare(const struct emu_ins *i, uint64_t a, uint64_t b)
{
    unsigned n = i->bits;
    bool same = emu_low(a, n) == emu_low(b, n);
    bool less =
        i->is_signed ? emu_sign(a, n) < emu_sign(b, n) : emu_low(a, n) < emu_low(b, n);
    switch (i->mode) {
    case EMU_EQ:
        return same;
    case EMU_NE:
        return !same;
    case EMU_LT:
        return less;
    case EMU_LE:
        return less || same;
    case EMU_GT:
        return !less && !same;
    default:
        return !less;
    }
}

static bool joined(const struct emu_ins *i, bool x, bool with)
{
    switch (i->join) {
    case EMU_AND:
        return x && with;
    case EMU_OR:
        return x || with;
    case EMU_XOR:
        return x != with;
    default:
        return x;
    }
}

static void setp(const struct emu_warp *w, const struct emu_ins *i, uint32_t set)
{
    const uint64_t *a = emu_reg(w, i->src[0]), *b = emu_reg(w, i->src[1]);
    const uint64_t *c = i->join ? emu_reg(w, i->src[2]) : a;
    EMU_EACH(l, set)
    {
        bool x = compare(i, a[l], b[l]), with = c[l] & 1;
        if (i->dst2 >= 0)
            emu_reg(w, i->dst2)[l] = joined(i, !x, with);
        if (i->dst[0] >= 0)
            emu_reg(w, i->dst[0])[l] = joined(i, x, with);
    }
}

static void unpack(const struct emu_warp *w, const struct emu_ins *i, uint32_t set)
{
    unsigned n = i->dst[2] >= 0 ? 4 : 2, part = i->bits / n;
    EMU_EACH(l, set)
    {
        uint64_t v = emu_reg(w, i->src[0])[l];
        for (unsigned k = 0; k < n; k++)
            if (i->dst[k] >= 0)
                emu_reg(w, i->dst[k])[l] = emu_low(v >> k * part, part);
    }
}

static void pack(const struct emu_warp *w, const struct emu_ins *i, uint32_t set)
{
    unsigned n = (unsigned)i->n_src, part = i->bits / n;
    EMU_EACH(l, set)
    {
        uint64_t v = 0;
        for (unsigned k = 0; k < n; k++)
            v |= emu_low(emu_reg(w, i->src[k])[l], part) << k * part;
        emu_reg(w, i->dst[0])[l] = v;
    }
}

/* ---- which ---- */

static const one_lane BY_LANE[] = {
    [EMU_ABS] = absolute, [EMU_BFE] = bfe,         [EMU_BFI] = bfi,
    [EMU_BFIND] = bfind,  [EMU_BMSK] = bmsk,       [EMU_BREV] = brev,
    [EMU_CLZ] = clz,      [EMU_CVT] = converted,   [EMU_DIV] = divided,
    [EMU_LOP3] = lop3,    [EMU_MAX] = least_most,  [EMU_MIN] = least_most,
    [EMU_MULHI] = mulhi,  [EMU_MULWIDE] = mulwide, [EMU_POPC] = popc,
    [EMU_PRMT] = prmt,    [EMU_REM] = divided,     [EMU_SELP] = selected,
    [EMU_SHF] = funnel,   [EMU_SHL] = shifted,     [EMU_SHR] = shifted,
    [EMU_XOR] = NULL,
};

/* Bits of the result: not the type's where the instruction says so. */
static unsigned result_bits(const struct emu_ins *i)
{
    switch (i->op) {
    case EMU_MULWIDE:
        return 2 * i->bits;
    case EMU_POPC:
    case EMU_CLZ:
    case EMU_BFIND:
        return 32;
    default:
        return i->bits;
    }
}

void emu_alu(const struct emu_warp *w, const struct emu_ins *i, uint32_t set)
{
    switch (i->op) {
    case EMU_SETP:
        setp(w, i, set);
        return;
    case EMU_PACK:
        pack(w, i, set);
        return;
    case EMU_UNPACK:
        unpack(w, i, set);
        return;
    default:
        break;
    }
    const uint64_t *v[5];
    for (int k = 0; k < 5; k++) /* any will do where there is none */
        v[k] = emu_reg(w, i->src[k < i->n_src ? k : 0]);
    const uint64_t *a = v[0], *b = v[1], *c = v[2];
    uint64_t *d = emu_reg(w, i->dst[0]), all[EMU_LANES];
    uint64_t low = emu_low(UINT64_MAX, result_bits(i));
    uint64_t *to = set == UINT32_MAX ? d : all;
/* The frequent ones: all lanes in a loop that compilers turn into vectors. */
#define ALL(expr)                                                                      \
    for (int l = 0; l < EMU_LANES; l++)                                                \
    to[l] = (expr)&low
    switch (i->op) {
    case EMU_ADD:
        ALL(a[l] + b[l]);
        break;
    case EMU_SUB:
        ALL(a[l] - b[l]);
        break;
    case EMU_MUL:
        ALL(a[l] * b[l]);
        break;
    case EMU_MAD:
        ALL(a[l] * b[l] + c[l]);
        break;
    case EMU_AND:
        ALL(a[l] & b[l]);
        break;
    case EMU_OR:
        ALL(a[l] | b[l]);
        break;
    case EMU_XOR:
        ALL(a[l] ^ b[l]);
        break;
    case EMU_NOT:
        ALL(~a[l]);
        break;
    case EMU_NEG:
        ALL(0 - a[l]);
        break;
    case EMU_MOV:
        ALL(a[l]);
        break;
    default:
        EMU_EACH(l, set)
        {
            uint64_t x[5] = {v[0][l], v[1][l], v[2][l], v[3][l], v[4][l]};
            d[l] = BY_LANE[i->op](i, x) & low;
        }
        return;
    }
#undef ALL
    if (to == all)
        EMU_EACH(l, set)
    d[l] = all[l];
}
