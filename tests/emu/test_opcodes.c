/* test_opcodes.c - the emulator computes each instruction as C does. No CUDA is needed:
 * the kernels are PTX. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/emu/text.h"

static uint64_t random_state = 7;

static uint64_t rnd(void)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

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

/* Extract and insert a field bit by bit, as the manual of PTX describes bfe and bfi. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opcodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
