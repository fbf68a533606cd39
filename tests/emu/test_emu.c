/* The emulator itself: each opcode against C, and each of its checkers on a kernel with
 * that fault and on the same without. No CUDA is needed: the kernels are PTX. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emu/emu.h"

/* ---- a kernel from text ---- */

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define REGS                                                                           \
    ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<19>; .reg .b64 %rd<19>;\n"
/* Two pointers; the thread's number among all is %r9, in the block %r10. */
#define BEGIN                                                                          \
    HEAD ".visible .entry k(.param .u64 k_0, .param .u64 k_1) { " REGS                 \
         "ld.param.u64 %rd9, [k_0]; ld.param.u64 %rd10, [k_1]; // pointers\n"          \
         "mov.u32 %r10, %tid.x; mov.u32 %r11, %ctaid.x; mov.u32 %r12, %ntid.x;\n"      \
         "mad.lo.s32 %r9, %r11, %r12, %r10;\n"

static bool launch(const char *text, uint32_t blocks, uint32_t threads, void *a,
                   void *b)
{
    struct emu_module *m = emu_module_new(text, strlen(text));
    void *const param[2] = {a, b};
    const struct emu_launch l = {.kernel = emu_module_kernel(m, "k"),
                                 .grid = {blocks, 1, 1},
                                 .block = {threads, 1, 1},
                                 .param = (const uint8_t *)param,
                                 .dynamic_byte = 64};
    assert_non_null(l.kernel);
    bool good = emu_run(&l);
    emu_module_free(m);
    return good;
}

/* Device memory with these bytes; NULL: never written. */
static void *device(const void *from, size_t n_byte)
{
    void *p = emu_alloc(n_byte);
    assert_non_null(p);
    if (from) {
        assert_true(emu_host_write(p, n_byte, "test"));
        memcpy(p, from, n_byte);
    }
    return p;
}

static uint64_t random_state = 7;

static uint64_t rnd(void)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* ---- opcodes ---- */

typedef unsigned __int128 u128;
typedef __int128 s128;

static uint64_t reversed(uint64_t v, int n)
{
    uint64_t r = 0;
    for (; n-- > 0; v >>= 1)
        r = r << 1 | (v & 1);
    return r;
}

static uint32_t zeros_before(uint64_t v, int n)
{
    uint32_t z = 0;
    while (n-- > 0 && !(v >> n & 1))
        z++;
    return z;
}

static uint32_t ones(uint64_t v)
{
    uint32_t n = 0;
    for (; v; v >>= 1)
        n += v & 1;
    return n;
}

/* Of a field, bit by bit, as the manual of PTX has it. */
static uint64_t extracted(uint64_t v, uint32_t at, uint32_t n, uint32_t bits, bool sign)
{
    uint64_t r = 0;
    at &= 255;
    n &= 255;
    uint32_t top = at + n - 1 < bits - 1 ? at + n - 1 : bits - 1;
    uint64_t fill = sign && n ? v >> top & 1 : 0;
    for (uint32_t k = 0; k < bits; k++)
        r |= (k < n && at + k < bits ? v >> (at + k) & 1 : fill) << k;
    return r;
}

static uint64_t inserted(uint64_t v, uint64_t to, uint32_t at, uint32_t n,
                         uint32_t bits)
{
    at &= 255;
    n &= 255;
    for (uint32_t k = 0; k < n && at + k < bits; k++)
        to = (to & ~(UINT64_C(1) << (at + k))) | (v >> k & 1) << (at + k);
    return to;
}

static uint32_t permuted(uint32_t a, uint32_t b, uint32_t how)
{
    uint8_t from[8], to[4];
    uint32_t r;
    memcpy(from, &a, 4);
    memcpy(from + 4, &b, 4);
    for (int k = 0; k < 4; k++, how >>= 4)
        to[k] = how & 8 ? (uint8_t)((int8_t)from[how & 7] >> 7) : from[how & 7];
    memcpy(&r, to, 4);
    return r;
}

/* Text, bits of the result (in %rs8, %r8 or %rd8), what C makes of it. a … d are the
 * operands in 64 bits, A … D in 32, H and I a and b in 16; lower case s: signed. */
#define OPCODES(X)                                                                     \
    X("add.s16 %rs8, %rs0, %rs1;", 16, (uint16_t)(H + I))                              \
    X("add.u32 %r8, %r0, %r1;", 32, A + B)                                             \
    X("add.s64 %rd8, %rd0, %rd1;", 64, a + b)                                          \
    X("add.s32 %r8, %r0, -5;", 32, A - 5)                                              \
    X("sub.s32 %r8, %r0, %r1;", 32, A - B)                                             \
    X("sub.s64 %rd8, %rd0, %rd1;", 64, a - b)                                          \
    X("mul.lo.s16 %rs8, %rs0, %rs1;", 16, (uint16_t)((uint32_t)H * I))                 \
    X("mul.lo.s32 %r8, %r0, %r1;", 32, A *B)                                           \
    X("mul.lo.s64 %rd8, %rd0, %rd1;", 64, a *b)                                        \
    X("mul.hi.u32 %r8, %r0, %r1;", 32, (uint64_t)A *B >> 32)                           \
    X("mul.hi.s32 %r8, %r0, %r1;", 32, (uint64_t)((int64_t)sA * sB) >> 32)             \
    X("mul.hi.u64 %rd8, %rd0, %rd1;", 64, (uint64_t)((u128)a * b >> 64))               \
    X("mul.hi.s64 %rd8, %rd0, %rd1;", 64, (uint64_t)((s128)sa * sb >> 64))             \
    X("mul.wide.u16 %r8, %rs0, %rs1;", 32, (uint32_t)H *I)                             \
    X("mul.wide.s16 %r8, %rs0, %rs1;", 32, (uint32_t)((int16_t)H * (int16_t)I))        \
    X("mul.wide.u32 %rd8, %r0, %r1;", 64, (uint64_t)A *B)                              \
    X("mul.wide.s32 %rd8, %r0, %r1;", 64, (uint64_t)((int64_t)sA * sB))                \
    X("mad.lo.s32 %r8, %r0, %r1, %r2;", 32, A *B + C)                                  \
    X("mad.lo.s64 %rd8, %rd0, %rd1, %rd2;", 64, a *b + c)                              \
    X("or.b32 %r1, %r1, 1; div.u32 %r8, %r0, %r1;", 32, A / (B | 1))                   \
    X("or.b64 %rd1, %rd1, 1; div.u64 %rd8, %rd0, %rd1;", 64, a / (b | 1))              \
    X("or.b32 %r1, %r1, 1; div.s32 %r8, %r0, %r1;", 32,                                \
      (uint32_t)((int64_t)sA / (int32_t)(B | 1)))                                      \
    X("or.b32 %r1, %r1, 1; rem.u32 %r8, %r0, %r1;", 32, A % (B | 1))                   \
    X("or.b32 %r1, %r1, 1; rem.s32 %r8, %r0, %r1;", 32,                                \
      (uint32_t)((int64_t)sA % (int32_t)(B | 1)))                                      \
    X("or.b64 %rd1, %rd1, 1; rem.u64 %rd8, %rd0, %rd1;", 64, a % (b | 1))              \
    X("min.u32 %r8, %r0, %r1;", 32, A < B ? A : B)                                     \
    X("min.s32 %r8, %r0, %r1;", 32, (uint32_t)(sA < sB ? sA : sB))                     \
    X("min.u64 %rd8, %rd0, %rd1;", 64, a < b ? a : b)                                  \
    X("min.s64 %rd8, %rd0, %rd1;", 64, (uint64_t)(sa < sb ? sa : sb))                  \
    X("max.u32 %r8, %r0, %r1;", 32, A > B ? A : B)                                     \
    X("max.s32 %r8, %r0, %r1;", 32, (uint32_t)(sA > sB ? sA : sB))                     \
    X("max.s64 %rd8, %rd0, %rd1;", 64, (uint64_t)(sa > sb ? sa : sb))                  \
    X("max.s16 %rs8, %rs0, %rs1;", 16, (int16_t)H > (int16_t)I ? H : I)                \
    X("and.b16 %rs8, %rs0, %rs1;", 16, (uint64_t)(H & I))                              \
    X("and.b32 %r8, %r0, %r1;", 32, A &B)                                              \
    X("or.b64 %rd8, %rd0, %rd1;", 64, a | b)                                           \
    X("xor.b32 %r8, %r0, %r1;", 32, A ^ B)                                             \
    X("not.b32 %r8, %r0;", 32, ~A)                                                     \
    X("not.b64 %rd8, %rd0;", 64, ~a)                                                   \
    X("neg.s32 %r8, %r0;", 32, 0 - A)                                                  \
    X("abs.s32 %r8, %r0;", 32, sA < 0 ? 0 - A : A)                                     \
    X("abs.s64 %rd8, %rd0;", 64, sa < 0 ? 0 - a : a)                                   \
    X("shl.b32 %r8, %r0, %r1;", 32, B < 32 ? A << (B & 31) : 0)                        \
    X("shl.b64 %rd8, %rd0, %r1;", 64, B < 64 ? a << (B & 63) : 0)                      \
    X("shr.u32 %r8, %r0, %r1;", 32, B < 32 ? A >> (B & 31) : 0)                        \
    X("shr.b32 %r8, %r0, %r1;", 32, B < 32 ? A >> (B & 31) : 0)                        \
    X("shr.s32 %r8, %r0, %r1;", 32, (uint32_t)(sA >> (B < 32 ? B : 31)))               \
    X("shr.u64 %rd8, %rd0, %r1;", 64, B < 64 ? a >> (B & 63) : 0)                      \
    X("shr.s64 %rd8, %rd0, %r1;", 64, (uint64_t)(sa >> (B < 64 ? B : 63)))             \
    X("shf.r.wrap.b32 %r8, %r0, %r1, %r2;", 32,                                        \
      C & 31 ? A >> (C & 31) | B << (32 - (C & 31)) : A)                               \
    X("shf.l.wrap.b32 %r8, %r0, %r1, %r2;", 32,                                        \
      C & 31 ? B << (C & 31) | A >> (32 - (C & 31)) : B)                               \
    X("shf.r.clamp.b32 %r8, %r0, %r1, %r2;", 32,                                       \
      C > 31 ? B                                                                       \
      : C    ? A >> C | B << (32 - C)                                                  \
             : A)                                                                         \
    X("shf.l.clamp.b32 %r8, %r0, %r1, %r2;", 32,                                       \
      C > 31 ? A                                                                       \
      : C    ? B << C | A >> (32 - C)                                                  \
             : B)                                                                         \
    X("popc.b32 %r8, %r0;", 32, ones(A))                                               \
    X("popc.b64 %r8, %rd0;", 32, ones(a))                                              \
    X("clz.b32 %r8, %r0;", 32, zeros_before(A, 32))                                    \
    X("clz.b64 %r8, %rd0;", 32, zeros_before(a, 64))                                   \
    X("brev.b32 %r8, %r0;", 32, reversed(A, 32))                                       \
    X("brev.b64 %rd8, %rd0;", 64, reversed(a, 64))                                     \
    X("bfind.u32 %r8, %r0;", 32, A ? 31 - zeros_before(A, 32) : ~0u)                   \
    X("bfind.shiftamt.u32 %r8, %r0;", 32, A ? zeros_before(A, 32) : ~0u)               \
    X("bfind.s32 %r8, %r0;", 32,                                                       \
      (sA < 0 ? ~A : A) ? 31 - zeros_before(sA < 0 ? ~A : A, 32) : ~0u)                \
    X("bfi.b32 %r8, %r0, %r1, %r2, %r3;", 32, inserted(A, B, C, D, 32))                \
    X("bfi.b64 %rd8, %rd0, %rd1, %r2, %r3;", 64, inserted(a, b, C, D, 64))             \
    X("bfe.u32 %r8, %r0, %r1, %r2;", 32, extracted(A, B, C, 32, false))                \
    X("bfe.s32 %r8, %r0, %r1, %r2;", 32, extracted(A, B, C, 32, true))                 \
    X("bfe.u64 %rd8, %rd0, %r1, %r2;", 64, extracted(a, B, C, 64, false))              \
    X("prmt.b32 %r8, %r0, %r1, %r2;", 32, permuted(A, B, C))                           \
    X("bmsk.clamp.b32 %r8, %r0, %r1;", 32,                                             \
      A > 31 ? 0 : inserted(UINT64_MAX, 0, A, B > 32 ? 32 : B, 32))                    \
    X("bmsk.wrap.b32 %r8, %r0, %r1;", 32, inserted(UINT64_MAX, 0, A & 31, B & 31, 32)) \
    X("lop3.b32 %r8, %r0, %r1, %r2, 0xCA;", 32, (A & B) | (~A & C))                    \
    X("lop3.b32 %r8, %r0, %r1, %r2, 0x96;", 32, A ^ B ^ C)                             \
    X("setp.lt.s32 %p0, %r0, %r1; selp.b32 %r8, %r2, %r3, %p0;", 32, sA < sB ? C : D)  \
    X("setp.lt.u32 %p0, %r0, %r1; selp.b32 %r8, %r2, %r3, %p0;", 32, A < B ? C : D)    \
    X("setp.ge.u64 %p0, %rd0, %rd1; selp.b64 %rd8, %rd2, %rd3, %p0;", 64,              \
      a >= b ? c : d)                                                                  \
    X("setp.gt.s64 %p0, %rd0, %rd1; selp.b64 %rd8, %rd2, %rd3, %p0;", 64,              \
      sa > sb ? c : d)                                                                 \
    X("setp.le.s32 %p0, %r0, %r1; selp.u32 %r8, 1, 0, %p0;", 32, sA <= sB)             \
    X("setp.hi.u32 %p0, %r0, %r1; selp.u32 %r8, 1, 0, %p0;", 32, A > B)                \
    X("setp.eq.s16 %p0, %rs0, %rs1; selp.u32 %r8, 1, 0, %p0;", 32, H == I)             \
    X("setp.ne.b32 %p0, %r0, %r1; selp.u32 %r8, 1, 0, %p0;", 32, A != B)               \
    X("setp.eq.s32 %p1, %r2, %r3; setp.lt.and.u32 %p0, %r0, %r1, %p1;"                 \
      "selp.u32 %r8, 1, 0, %p0;",                                                      \
      32, A < B && C == D)                                                             \
    X("setp.eq.s32 %p1, %r2, %r3; setp.lt.or.u32 %p0, %r0, %r1, !%p1;"                 \
      "selp.u32 %r8, 1, 0, %p0;",                                                      \
      32, A < B || C != D)                                                             \
    X("setp.lt.s32 %p0|%p1, %r0, %r1; selp.u32 %r8, 1, 0, %p1;", 32, !(sA < sB))       \
    X("setp.lt.u32 %p0, %r0, %r1; not.pred %p1, %p0; selp.u32 %r8, 1, 0, %p1;", 32,    \
      A >= B)                                                                          \
    X("setp.lt.u32 %p0, %r0, %r1; setp.lt.u32 %p1, %r1, %r2; xor.pred %p2, %p0, %p1;"  \
      "selp.u32 %r8, 1, 0, %p2;",                                                      \
      32, (A < B) != (B < C))                                                          \
    X("setp.lt.u32 %p0, %r0, %r1; mov.b32 %r8, %r2; @%p0 add.s32 %r8, %r3, 1;", 32,    \
      A < B ? D + 1 : C)                                                               \
    X("setp.lt.u32 %p0, %r0, %r1; mov.b32 %r8, %r2; @!%p0 add.s32 %r8, %r3, 1;", 32,   \
      A < B ? C : D + 1)                                                               \
    X("cvt.s64.s32 %rd8, %r0;", 64, (uint64_t)(int64_t)sA)                             \
    X("cvt.u64.u32 %rd8, %r0;", 64, A)                                                 \
    X("cvt.u32.u64 %r8, %rd0;", 32, A)                                                 \
    X("cvt.u16.u32 %rs8, %r0;", 16, H)                                                 \
    X("cvt.s32.s16 %r8, %rs0;", 32, (uint32_t)(int16_t)H)                              \
    X("cvt.s32.s8 %r8, %r0;", 32, (uint32_t)(int8_t)a)                                 \
    X("cvt.u32.u8 %r8, %r0;", 32, (uint8_t)a)                                          \
    X("mov.b64 %rd8, {%r0, %r1};", 64, (uint64_t)B << 32 | A)                          \
    X("mov.b32 %r8, {%rs0, %rs1};", 32, (uint32_t)I << 16 | H)                         \
    X("mov.b64 {%r8, %r7}, %rd1;", 32, B)                                              \
    X("mov.b64 {%r7, %r8}, %rd1;", 32, b >> 32)                                        \
    X("mov.u32 %r8, 0x7fffffff;", 32, 0x7fffffff)                                      \
    X("{ .reg .u32 lo; .reg .pred %p; setp.eq.u32 %p, %r0, 0; selp.u32 lo, 7, %r1, "   \
      "%p;"                                                                            \
      "mov.u32 %r8, lo; }",                                                            \
      32, A == 0 ? 7 : B)

enum { TUPLES = 4096 };

static const struct {
    const char *text;
    unsigned bits;
} OPCODE[] = {
#define X(text, bits, expr) {text, bits},
    OPCODES(X)
#undef X
};

static uint64_t made_by_c(unsigned which, const uint64_t *v)
{
    uint64_t a = v[0], b = v[1], c = v[2], d = v[3];
    uint32_t A = (uint32_t)a, B = (uint32_t)b, C = (uint32_t)c, D = (uint32_t)d;
    int64_t sa = (int64_t)a, sb = (int64_t)b;
    int32_t sA = (int32_t)A, sB = (int32_t)B;
    uint16_t H = (uint16_t)a, I = (uint16_t)b;
    unsigned k = 0;
#define X(text, bits, expr)                                                            \
    if (k++ == which)                                                                  \
        return (uint64_t)(expr);
    OPCODES(X)
#undef X
    return 0;
}

/* Small, at the borders of types, or anything. */
static uint64_t operand(void)
{
    uint64_t v = rnd();
    switch (rnd() % 5) {
    case 0:
        return v % 70;
    case 1:
        return (UINT64_C(1) << v % 64) - v / 64 % 3 + 1;
    case 2:
        return 0 - v % 70;
    case 3:
        return (uint32_t)v;
    default:
        return v;
    }
}

static void test_opcodes(void **state)
{
    (void)state;
    uint64_t *v = malloc(TUPLES * 4 * sizeof *v);
    for (size_t i = 0; i < TUPLES * 4; i++)
        v[i] = i % 8 == 5 ? v[i - 1] : operand(); /* some are equal */
    void *in = device(v, TUPLES * 4 * sizeof *v);
    uint64_t *out = device(NULL, TUPLES * sizeof *out);
    for (unsigned k = 0; k < sizeof OPCODE / sizeof *OPCODE; k++) {
        char text[3000];
        const char *reg = OPCODE[k].bits == 16   ? "rs"
                          : OPCODE[k].bits == 32 ? "r"
                                                 : "rd";
        snprintf(text, sizeof text, "%s%s%s st.global.u%u [%%rd12], %%%s8; ret; }",
                 BEGIN,
                 "mul.wide.u32 %rd11, %r9, 32; add.s64 %rd11, %rd11, %rd9;\n"
                 "mul.wide.u32 %rd12, %r9, 8; add.s64 %rd12, %rd12, %rd10;\n"
                 "ld.global.v2.u64 {%rd0, %rd1}, [%rd11];\n"
                 "ld.global.nc.v2.u64 {%rd2, %rd3}, [%rd11+16];\n"
                 "cvt.u32.u64 %r0, %rd0; cvt.u32.u64 %r1, %rd1;\n"
                 "cvt.u32.u64 %r2, %rd2; cvt.u32.u64 %r3, %rd3;\n"
                 "cvt.u16.u64 %rs0, %rd0; cvt.u16.u64 %rs1, %rd1;\n",
                 OPCODE[k].text, OPCODE[k].bits, reg);
        assert_true(launch(text, TUPLES / 64, 64, in, out));
        for (size_t i = 0; i < TUPLES; i++) {
            uint64_t low = UINT64_MAX >> (64 - OPCODE[k].bits);
            uint64_t want = made_by_c(k, v + 4 * i) & low, got = out[i] & low;
            if (want != got)
                fail_msg("%s of %llx %llx %llx %llx: %llx, not %llx", OPCODE[k].text,
                         (unsigned long long)v[4 * i], (unsigned long long)v[4 * i + 1],
                         (unsigned long long)v[4 * i + 2],
                         (unsigned long long)v[4 * i + 3], (unsigned long long)got,
                         (unsigned long long)want);
        }
    }
    assert_true(emu_free(in) && emu_free(out));
    free(v);
}

/* ---- lanes together ---- */

/* What each lane of a warp makes of its number's square; out[lane]. */
static void lanes(const char *statement, uint32_t *out)
{
    char text[2000];
    uint32_t *d = device(NULL, 32 * sizeof *d);
    snprintf(text, sizeof text, "%s%s%s%s", BEGIN,
             "mul.lo.s32 %r0, %r9, %r9; setp.eq.u32 %p0, %r9, 31;\n", statement,
             "mul.wide.u32 %rd0, %r9, 4; add.s64 %rd0, %rd0, %rd10;\n"
             "st.global.u32 [%rd0], %r8; }");
    assert_true(launch(text, 1, 32, NULL, d));
    memcpy(out, d, 32 * sizeof *d);
    assert_true(emu_free(d));
}

static void test_lanes(void **state)
{
    (void)state;
    uint32_t out[32];
    lanes("shfl.sync.up.b32 %r8, %r0, 3, 0, -1;", out);
    for (uint32_t l = 0; l < 32; l++)
        assert_int_equal(out[l], l < 3 ? l * l : (l - 3) * (l - 3));
    lanes("shfl.sync.down.b32 %r8|%p1, %r0, 5, 31, -1; @!%p1 mov.u32 %r8, 7;", out);
    for (uint32_t l = 0; l < 32; l++)
        assert_int_equal(out[l], l + 5 > 31 ? 7 : (l + 5) * (l + 5));
    lanes("shfl.sync.bfly.b32 %r8, %r0, 6, 31, -1;", out);
    for (uint32_t l = 0; l < 32; l++)
        assert_int_equal(out[l], (l ^ 6) * (l ^ 6));
    lanes("shfl.sync.idx.b32 %r8, %r0, 2, 6175, -1;", out); /* in eights: 0x181f */
    for (uint32_t l = 0; l < 32; l++)
        assert_int_equal(out[l], ((l & 24) + 2) * ((l & 24) + 2));
    lanes("and.b32 %r1, %r9, 3; setp.eq.u32 %p1, %r1, 0;"
          "vote.sync.ballot.b32 %r8, %p1, -1;",
          out);
    assert_int_equal(out[17], 0x11111111);
    lanes("vote.sync.any.pred %p1, %p0, -1; vote.sync.all.pred %p2, %p0, -1;"
          "selp.u32 %r8, 1, 0, %p1; @%p2 mov.u32 %r8, 2;",
          out);
    assert_int_equal(out[4], 1);
    lanes("and.b32 %r1, %r9, 3; match.any.sync.b32 %r8, %r1, -1;", out);
    for (uint32_t l = 0; l < 32; l++)
        assert_int_equal(out[l], 0x11111111u << l % 4);
    lanes("bar.red.popc.u32 %r8, 0, %p0; bar.red.or.pred %p1, 0, %p0;"
          "bar.red.and.pred %p2, 0, %p0; @%p1 add.s32 %r8, %r8, 10;"
          "@%p2 add.s32 %r8, %r8, 100;",
          out);
    assert_int_equal(out[9], 11);
    lanes("mov.u32 %r8, %lanemask_lt; mov.u32 %r1, %laneid; add.s32 %r8, %r8, %r1;",
          out);
    assert_int_equal(out[5], 31 + 5);
}

/* Lanes that go through a loop as often as their number says, and a branch in it. */
static void test_branches(void **state)
{
    (void)state;
    uint32_t out[32];
    for (int apart = 0; apart < 2; apart++) {
        emu_config.diverge = apart;
        lanes("mov.u32 %r8, 0; mov.u32 %r1, 0;\n"
              "$L1: setp.ge.u32 %p1, %r1, %r9; @%p1 bra $L3;\n"
              "and.b32 %r2, %r1, 1; setp.eq.u32 %p2, %r2, 0; @%p2 bra.uni $L2;\n"
              "add.s32 %r8, %r8, 100;\n"
              "$L2: add.s32 %r8, %r8, 1; add.s32 %r1, %r1, 1; bra $L1;\n"
              "$L3: bar.warp.sync -1;",
              out);
        for (uint32_t l = 0; l < 32; l++)
            assert_int_equal(out[l], l + l / 2 * 100);
        bool full = true;
        for (int i = 0; i < 20; i++) {
            lanes("activemask.b32 %r8;", out);
            for (uint32_t l = 0; l < 32; l++)
                full &= out[l] == UINT32_MAX;
        }
        assert_true(full == !apart);
    }
    emu_config.diverge = false;
}

/* A parameter behind one of another size, three dimensions, atomics of all kinds. */
static void test_launch(void **state)
{
    (void)state;
    static const char text[] = HEAD
        ".extern .shared .align 16 .b8 room[];\n"
        ".entry k(.param .u32 k_0, .param .align 8 .b8 k_1[16]) { " REGS
        "ld.param.u32 %r0, [k_0]; ld.param.v2.u64 {%rd0, %rd1}, [k_1];\n"
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.y;\n"
        "mov.u32 %r4, %ntid.x; mov.u32 %r5, %nctaid.x; mov.u32 %r6, %ctaid.x;\n"
        "mad.lo.s32 %r7, %r3, %r5, %r6; mad.lo.s32 %r8, %r2, %r4, %r1;\n"
        "setp.ne.u32 %p0, %r8, 0; mov.u32 %r9, room; @!%p0 st.shared.u32 [%r9], 0;\n"
        "bar.sync 0; atom.shared.add.u32 %r10, [room], %r0; bar.sync 0;\n"
        "@%p0 bra $E; ld.shared.u32 %r11, [room]; cvt.u64.u32 %rd2, %r11;\n"
        "add.s32 %r12, %r7, 3; cvt.u64.u32 %rd3, %r12;\n"
        "red.global.add.u64 [%rd0], %rd2; red.global.max.u64 [%rd0+8], %rd3;\n"
        "atom.global.min.u64 %rd4, [%rd0+16], %rd3;\n"
        "atom.global.or.b32 %r13, [%rd0+24], %r12;\n"
        "atom.global.and.b32 %r13, [%rd0+28], %r12;\n"
        "atom.global.xor.b32 %r13, [%rd0+32], %r12;\n"
        "atom.global.exch.b32 %r13, [%rd0+36], %r0;\n"
        "atom.global.cas.b32 %r13, [%rd0+40], 77, %r0; st.global.u32 [%rd1], 5;\n"
        "$E: ret; }";
    const uint32_t begin[11] = {0, 0, 0, 0, 99, 0, 0, 0xff, 0, 0, 77};
    uint32_t *out = device(begin, sizeof begin), *one = device(NULL, 4);
    struct emu_module *m = emu_module_new(text, sizeof text);
    struct {
        uint32_t a, gap;
        void *p[2];
    } param = {3, 0, {out, one}};
    const struct emu_launch l = {.kernel = emu_module_kernel(m, "k"),
                                 .grid = {2, 3, 1},
                                 .block = {5, 7, 1},
                                 .param = (const uint8_t *)&param,
                                 .dynamic_byte = 4};
    emu_forget(true);
    assert_true(emu_run(&l));
    const uint32_t want[11] = {6 * 35 * 3, 0, 8, 0, 3, 0, 15, 0, 3 ^ 4 ^ 5 ^ 6 ^ 7 ^ 8,
                               3,          3};
    assert_memory_equal(out, want, sizeof want);
    assert_int_equal(*one, 5);
    assert_int_equal(emu_found(EMU_RACE), 5); /* six blocks store to the same place */
    emu_forget(false);
    emu_module_free(m);
    assert_true(emu_free(out) && emu_free(one));
}

/* ---- checkers ---- */

/* Threads at + 4 * their number, in global memory at %rd0, in shared memory at %r0. */
#define PLACES                                                                         \
    ".shared .align 4 .b8 near[256]; mul.wide.u32 %rd0, %r9, 4;\n"                     \
    "add.s64 %rd0, %rd0, %rd9; mov.u32 %r0, near; mad.lo.s32 %r0, %r10, 4, %r0;\n"     \
    "setp.eq.u32 %p0, %r10, 0; setp.eq.u32 %p1, %r10, 1; setp.lt.u32 %p2, %r10, 16;\n" \
    "mov.b64 %rd18, 64;\n"

static const struct fault {
    const char *what;
    int finding; /* -1: none */
    uint32_t blocks, threads;
    const char *text;
} FAULT[] = {
    {"in bounds", -1, 2, 32, "st.global.u32 [%rd0], 1;"},
    {"past the end", EMU_MEMORY, 2, 33, "st.global.u32 [%rd0], 1;"},
    {"before the begin", EMU_MEMORY, 1, 32, "ld.global.u32 %r1, [%rd0+-4];"},
    {"misaligned", EMU_MEMORY, 1, 32, "st.global.u32 [%rd0+2], 1;"},
    {"a vector, misaligned", EMU_MEMORY, 1, 1,
     "ld.global.v2.u32 {%r1, %r2}, [%rd0+4];"},
    {"no memory", EMU_MEMORY, 1, 1, "st.global.u32 [%rd18], 1;"},
    {"past shared memory", EMU_MEMORY, 1, 64, "st.shared.u32 [%r0+4], 1;"},
    {"shared memory's last", -1, 1, 64, "st.shared.u32 [%r0], 1;"},
    {"read and never written", EMU_UNINIT, 1, 1, "ld.global.u32 %r1, [%rd10];"},
    {"shared, never written", EMU_UNINIT, 1, 32, "ld.shared.u32 %r1, [%r0];"},
    {"half of it written", EMU_UNINIT, 1, 32,
     "st.shared.u16 [%r0], %rs0; ld.shared.u32 %r1, [%r0];"},
    {"all of it written", -1, 1, 32,
     "st.shared.u16 [%r0], %rs0; st.shared.u16 [%r0+2], %rs0; ld.shared.u32 %r1, "
     "[%r0];"},
    {"no barrier", EMU_RACE, 1, 64,
     "st.shared.u32 [%r0], 0; bar.sync 0;st.shared.u32 [%r0], 1; @%p0 ld.shared.u32 "
     "%r1, [near+252];"},
    {"a barrier", -1, 1, 64,
     "st.shared.u32 [%r0], 1; bar.sync 0; @%p0 ld.shared.u32 %r1, [near+252];"},
    {"no barrier before the next write", EMU_RACE, 1, 64,
     "st.shared.u32 [%r0], 1; bar.sync 0; ld.shared.u32 %r1, [near+8];"
     "@%p1 st.shared.u32 [near+8], 1;"},
    {"no __syncwarp", EMU_RACE, 1, 32,
     "st.shared.u32 [%r0], 0; bar.sync 0;st.shared.u32 [%r0], 1; @%p0 ld.shared.u32 "
     "%r1, [near+4];"},
    {"__syncwarp", -1, 1, 32,
     "st.shared.u32 [%r0], 1; bar.warp.sync -1; @%p0 ld.shared.u32 %r1, [near+4];"},
    {"__syncwarp orders no other warp", EMU_RACE, 1, 64,
     "st.shared.u32 [%r0], 0; bar.sync 0;st.shared.u32 [%r0], 1; bar.warp.sync -1; "
     "@%p0 ld.shared.u32 %r1, [near+252];"},
    {"neighbours in a word", -1, 1, 64,
     "mul.lo.s32 %r1, %r10, 3; sub.s32 %r1, %r0, %r1; st.shared.u8 [%r1], %rs0;"},
    {"two blocks write", EMU_RACE, 2, 1, "st.global.u32 [%rd9], 1;"},
    {"two blocks, halves of a word", -1, 2, 1,
     "mul.wide.u32 %rd1, %r9, 2; add.s64 %rd1, %rd1, %rd9; st.global.u16 [%rd1], "
     "%rs0;"},
    {"a block reads what another writes", EMU_RACE, 2, 1,
     "setp.eq.u32 %p3, %r9, 0; @%p3 ld.global.u32 %r1, [%rd9];"
     "@!%p3 st.global.u32 [%rd9], 1;"},
    {"atomics", -1, 4, 64, "red.global.add.u32 [%rd9], 1;"},
    {"atomics and a read", EMU_RACE, 4, 64,
     "red.global.add.u32 [%rd9], 1; ld.global.u32 %r1, [%rd9];"},
    {"a flag", -1, 4, 64,
     "st.volatile.global.u32 [%rd9], 1; ld.relaxed.gpu.global.u32 %r1, [%rd9];"},
    {"the constant cache", EMU_RACE, 1, 1,
     "st.global.u32 [%rd9], 1; ld.global.nc.u32 %r1, [%rd9];"},
    {"not in its own mask", EMU_SYNC, 1, 32, "shfl.sync.idx.b32 %r1, %r0, 0, 31, -2;"},
    {"a mask of ended lanes", EMU_SYNC, 1, 32,
     "@%p0 ret; vote.sync.ballot.b32 %r1, %p0, -1;"},
    {"a lane that takes no part", EMU_SYNC, 1, 32,
     "@!%p2 bra $E; shfl.sync.idx.b32 %r1, %r0, 20, 31, 65535; $E: mov.u32 %r2, 0;"},
    {"a barrier in a branch", EMU_SYNC, 1, 64,
     "@%p2 bra $A; bar.sync 0; bra $E; $A: bar.sync 0; $E: mov.u32 %r2, 0;"},
    {"a barrier of some", EMU_SYNC, 1, 64, "@%p2 bar.sync 0;"},
    {"barriers of two kinds", EMU_SYNC, 1, 64,
     "setp.lt.u32 %p3, %r10, 32; @%p3 bra $A; bar.sync 0; bra $E;"
     "$A: bar.red.or.pred %p4, 0, %p3; $E: mov.u32 %r2, 0;"},
    {"lanes wait for each other", EMU_SYNC, 1, 32,
     "@%p2 bra $A; bar.warp.sync -1; bra $E; $A: vote.sync.any.pred %p3, %p2, -1;"
     "$E: mov.u32 %r2, 0;"},
    {"trap", EMU_LAUNCH, 1, 32, "@%p1 trap;"},
    {"no trap", -1, 1, 1, "@%p1 trap;"},
    {"division by zero", EMU_LAUNCH, 1, 32, "mov.u32 %r1, 0; div.u32 %r2, %r0, %r1;"},
};

static void test_faults(void **state)
{
    (void)state;
    const uint8_t bytes[256] = {0};
    for (size_t k = 0; k < sizeof FAULT / sizeof *FAULT; k++)
        for (int way = 0; way < 3; way++) { /* in order, at random, lanes apart */
            const struct fault *f = &FAULT[k];
            char text[2000];
            void *a = device(bytes, sizeof bytes), *b = device(NULL, 64);
            emu_config.seed = way ? 5 + (uint64_t)way : 0;
            emu_config.diverge = way == 2;
            snprintf(text, sizeof text, "%s%s%s ret; }", BEGIN, PLACES, f->text);
            emu_forget(true);
            bool good = launch(text, f->blocks, f->threads, a, b);
            for (int w = 0; w < EMU_FINDINGS; w++)
                if ((emu_found((enum emu_finding)w) != 0) != (w == f->finding))
                    fail_msg("%s (way %d): %llu findings of kind %d", f->what, way,
                             (unsigned long long)emu_found((enum emu_finding)w), w);
            assert_true(good || f->finding == EMU_SYNC || f->finding == EMU_LAUNCH);
            emu_config.seed = 0;
            emu_config.diverge = false;
            assert_true(emu_free(a) && emu_free(b));
        }
    emu_forget(false);
}

static void test_host(void **state)
{
    (void)state;
    void *a = device(NULL, 64), *b = device(NULL, 64);
    emu_forget(true);
    assert_false(emu_host_write(a, 65, "a copy"));
    assert_false(emu_host_read((char *)a + 60, 5, "a copy"));
    assert_false(emu_device_copy(a, (char *)b + 1, 64));
    assert_int_equal(emu_found(EMU_MEMORY), 3);
    assert_true(emu_host_write(a, 32, "a copy") && emu_device_copy(b, a, 64));
    assert_true(emu_host_read(b, 32, "a copy"));
    assert_int_equal(emu_found(EMU_UNINIT), 0);
    assert_true(emu_host_read(b, 33, "a copy"));
    assert_int_equal(emu_found(EMU_UNINIT), 1);
    assert_true(emu_free(a) && emu_free(b) && !emu_is_device(a));
    assert_false(emu_free(a));
    assert_int_equal(emu_found(EMU_MEMORY), 4);
    emu_forget(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opcodes),  cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_branches), cmocka_unit_test(test_launch),
        cmocka_unit_test(test_faults),   cmocka_unit_test(test_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
