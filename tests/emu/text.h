/* text.h - kernels from PTX in a string, for test_emu.c and test_opcodes.c. */
#ifndef SLU_TESTS_EMU_TEXT_H
#define SLU_TESTS_EMU_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/emu/emu.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define REGS                                                                           \
    ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<19>; .reg .b64 %rd<19>;\n"
/* Two pointers; the thread's number among all is %r9, in the block %r10. */
#define BEGIN                                                                          \
    HEAD ".visible .entry k(.param .u64 k_0, .param .u64 k_1) { " REGS                 \
         "ld.param.u64 %rd9, [k_0]; ld.param.u64 %rd10, [k_1]; // pointers\n"          \
         "mov.u32 %r10, %tid.x; mov.u32 %r11, %ctaid.x; mov.u32 %r12, %ntid.x;\n"      \
         "mad.lo.s32 %r9, %r11, %r12, %r10;\n"

static inline bool launch(const char *text, uint32_t blocks, uint32_t threads, void *a,
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
static inline void *device(const void *from, size_t n_byte)
{
    void *p = emu_alloc(n_byte);
    assert_non_null(p);
    if (from) {
        assert_true(emu_host_write(p, n_byte, "test"));
        memcpy(p, from, n_byte);
    }
    return p;
}

#endif
