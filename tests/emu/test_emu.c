/* test_emu.c - the emulator runs lanes, warps and blocks together, and each of its
 * checkers sees a kernel with its fault and passes the same kernel without. No CUDA is
 * needed: the kernels are PTX. test_opcodes.c has single instructions. */
#include <stdio.h>

#include "tests/emu/text.h"

/* ---- lanes together ---- */

/* Runs the statement in each lane of a warp, where %r0 is the square of the lane's
 * number. Puts %r8 of each lane at out[lane]. */
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
    char locked[64];
    assert_true(emu_pin(locked, 32, true, false) &&
                !emu_pin(locked + 31, 1, true, false));
    assert_true(emu_is_pinned(locked + 31) && !emu_is_pinned(locked + 32));
    assert_false(emu_unpin(locked, false)); /* cudaFreeHost of it */
    assert_int_equal(emu_found(EMU_MEMORY), 5);
    assert_true(emu_unpin(locked, true) && !emu_is_pinned(locked));
    emu_forget(false);
}

/* Kernels read locked memory of the host if it is shown to them, and never write it. */
static void test_bus(void **state)
{
    static const struct {
        const char *access;
        bool shown;
        uint64_t found, bus;
    } CASE[] = {{"ld.global.u32 %r8, [%rd0];", true, 0, 128},
                {"ld.global.u32 %r8, [%rd0]; ld.global.u32 %r8, [%rd0];", true, 0, 128},
                {"ld.global.u32 %r8, [%rd0+4];", true, 1, 128},
                {"ld.global.u32 %r8, [%rd0];", false, 32, 0},
                {"st.global.u32 [%rd0], %r9;", true, 32, 0}};
    _Alignas(32) static uint8_t host[128];
    (void)state;
    for (size_t k = 0; k < sizeof CASE / sizeof *CASE; k++) {
        char text[2000];
        uint64_t before = emu_count.bus;
        snprintf(text, sizeof text, "%s%s%s%s", BEGIN,
                 "mul.wide.u32 %rd0, %r9, 4; add.s64 %rd0, %rd0, %rd9;\n",
                 CASE[k].access, "ret; }");
        emu_forget(true);
        assert_true(emu_pin(host, sizeof host, true, CASE[k].shown));
        assert_true(launch(text, 1, 32, host, NULL));
        assert_int_equal(emu_found(EMU_MEMORY), CASE[k].found);
        assert_int_equal(emu_count.bus - before, CASE[k].bus);
        assert_true(emu_unpin(host, true));
    }
    emu_forget(false);
}

/* Sectors of 32 bytes that a warp touches, and would if its bytes were neighbours. */
static void test_sectors(void **state)
{
    static const struct {
        const char *address;
        uint32_t touched, needed;
    } CASE[] = {{"mul.wide.u32 %rd0, %r9, 4;", 4, 4},
                {"mul.wide.u32 %rd0, %r9, 4; add.s64 %rd0, %rd0, 4;", 5, 4},
                {"mul.wide.u32 %rd0, %r9, 8;", 8, 4},
                {"mul.wide.u32 %rd0, %r9, 32;", 32, 4},
                {"mov.u64 %rd0, 64;", 1, 1},
                {"and.b32 %r1, %r9, 1; mul.wide.u32 %rd0, %r1, 128;", 2, 1}};
    (void)state;
    uint8_t *a = device(NULL, 4096);
    memset(a, 0, 4096);
    assert_true(emu_host_write(a, 4096, "test"));
    for (size_t k = 0; k < sizeof CASE / sizeof *CASE; k++) {
        char text[2000];
        struct emu_counts before = emu_count;
        snprintf(text, sizeof text, "%s%s%s", BEGIN, CASE[k].address,
                 "add.s64 %rd0, %rd0, %rd9; ld.global.u32 %r8, [%rd0];\n"
                 "atom.global.add.u32 %r8, [%rd9], 0; ret; }");
        assert_true(launch(text, 1, 32, a, NULL));
        assert_int_equal(emu_count.sectors - before.sectors, CASE[k].touched);
        assert_int_equal(emu_count.needed - before.needed, CASE[k].needed);
        assert_int_equal(emu_count.atomics - before.atomics, 32);
        assert_int_equal(emu_count.lane_ins - before.lane_ins,
                         32 * (emu_count.warp_ins - before.warp_ins));
    }
    assert_true(emu_free(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes),  cmocka_unit_test(test_branches),
        cmocka_unit_test(test_launch), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_host),   cmocka_unit_test(test_sectors),
        cmocka_unit_test(test_bus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
