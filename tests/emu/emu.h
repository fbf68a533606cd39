/* emu.h - runs the kernels on the processor, and checks every access that they make.
 *
 * nvcc leaves PTX, the text of a virtual machine, in the objects it makes. This reads
 * the PTX and interprets it: warps of 32 lanes, several blocks side by side. cudart.c
 * has the CUDA runtime's functions, so that programs linked with it in the runtime's
 * place launch kernels as ever, CUB's among them.
 *
 *   ptx.c      PTX text to instructions
 *   alu.c      arithmetic
 *   memory.c   device memory; which accesses are faults
 *   lanes.c    what lanes of a warp and warps of a block do together
 *   run.c      a launch: blocks, warps, one instruction after the other
 *   cudart.c   the runtime's functions
 *   trace.c    what launches and copies did, written to files
 *
 * Seen are: accesses out of bounds or misaligned, reads of what was never written,
 * races (shared memory by the byte, global memory by two bytes, ordered by barriers and
 * __syncwarp), barriers and masks that lanes do not meet, deadlocks. Not seen: faults
 * of the assembler behind PTX, weak memory order, asynchrony (tests/fake is for that),
 * time.
 *
 * One launch at a time; nothing here is safe for threads but cudart.c, which locks.
 */
#ifndef SLU_EMU_H
#define SLU_EMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_LANES 32

enum emu_op {
    EMU_ABS,
    EMU_ACTIVE, /* activemask */
    EMU_ADD,
    EMU_AND,
    EMU_ATOM, /* and red */
    EMU_BAR,
    EMU_BARRED, /* bar.red */
    EMU_BFE,
    EMU_BFI,
    EMU_BFIND,
    EMU_BMSK,
    EMU_BRA,
    EMU_BREV,
    EMU_CLZ,
    EMU_CVT,
    EMU_DIV,
    EMU_FENCE,
    EMU_LD,
    EMU_LOP3,
    EMU_MAD,
    EMU_MATCH,
    EMU_MAX,
    EMU_MIN,
    EMU_MOV,
    EMU_MUL,
    EMU_MULHI,
    EMU_MULWIDE,
    EMU_NANOSLEEP,
    EMU_NEG,
    EMU_NOT,
    EMU_OR,
    EMU_PACK, /* mov of a vector to one register */
    EMU_POPC,
    EMU_PRMT,
    EMU_REM,
    EMU_RET,
    EMU_SELP,
    EMU_SETP,
    EMU_SHF,
    EMU_SHFL,
    EMU_SHL,
    EMU_SHR,
    EMU_ST,
    EMU_SUB,
    EMU_TRAP,
    EMU_UNPACK, /* mov of one register to a vector */
    EMU_VOTE,
    EMU_WSYNC, /* bar.warp.sync */
    EMU_XOR,
};
enum emu_space { EMU_GLOBAL, EMU_SHARED, EMU_PARAM };

/* Values of emu_ins.mode, by instruction. */
enum { EMU_EQ, EMU_NE, EMU_LT, EMU_LE, EMU_GT, EMU_GE };            /* setp */
enum { EMU_SHF_LEFT = 1, EMU_SHF_CLAMP = 2 };                       /* shf */
enum { EMU_SHFL_UP, EMU_SHFL_DOWN, EMU_SHFL_BFLY, EMU_SHFL_IDX };   /* shfl */
enum { EMU_VOTE_BALLOT, EMU_VOTE_ANY, EMU_VOTE_ALL, EMU_VOTE_UNI }; /* vote */
enum { EMU_RED_OR, EMU_RED_AND, EMU_RED_POPC };                     /* bar.red */
enum {
    EMU_ATOM_ADD,
    EMU_ATOM_MAX,
    EMU_ATOM_MIN,
    EMU_ATOM_OR,
    EMU_ATOM_AND,
    EMU_ATOM_XOR,
    EMU_ATOM_EXCH,
    EMU_ATOM_CAS
}; /* atom */

/* Every operand is a register: a constant and a special register (%tid.x) have one of
 * their own, too. A register has 32 values of 64 bits, one a lane. */
struct emu_ins {
    uint8_t op;
    uint8_t bits; /* of the type: 1 (a predicate), 8, 16, 32 or 64 */
    bool is_signed;
    uint8_t from_bits; /* cvt: of the source */
    bool from_signed;
    uint8_t mode;
    uint8_t join; /* setp: 0, or EMU_AND, EMU_OR, EMU_XOR with a third operand */
    uint8_t vec;  /* ld, st: registers */
    uint8_t space;
    bool strong;      /* volatile, relaxed and the like: no race with another such */
    bool unchanging;  /* ld.global.nc */
    bool guard_not;   /* the predicate `guard` must be false */
    int guard;        /* -1: none */
    int dst[4], dst2; /* -1: none; dst2: the predicate behind | */
    int src[5], n_src;
    int base; /* of an address; -1: none */
    int64_t off;
    int target;    /* bra: an instruction */
    unsigned line; /* in the PTX */
};

struct emu_param {
    const char *name;
    uint32_t off, size;
};

enum emu_special {
    EMU_TID, /* .x, .y, .z, and so the next three */
    EMU_NTID = 3,
    EMU_CTAID = 6,
    EMU_NCTAID = 9,
    EMU_LANEID = 12,
    EMU_WARPID,
    EMU_MASK_EQ,
    EMU_MASK_LT,
    EMU_MASK_LE,
    EMU_MASK_GE,
    EMU_MASK_GT,
    EMU_SPECIALS
};

struct emu_kernel {
    const char *name;
    struct emu_param *param;
    uint32_t n_param, param_byte;
    struct emu_ins *code;
    uint32_t n_code;
    uint32_t n_reg; /* of a lane */
    uint64_t *constant;
    int *constant_reg;
    uint32_t n_constant;
    int special_reg[EMU_SPECIALS]; /* -1: not used */
    uint32_t shared_byte;          /* declared */
    bool has_dynamic;              /* shared memory of a size that the launch says */
    uint32_t most_threads;         /* a block */
};

struct emu_module {
    struct emu_kernel *kernel;
    uint32_t n_kernel;
    char *text; /* names lie in it */
};

/* Parses PTX of at most n bytes; a NUL ends it earlier. An instruction that the emulator
 * does not know ends the program with a message, because it could not be tested. */
struct emu_module *emu_module_new(const char *text, size_t n);
const struct emu_kernel *emu_module_kernel(const struct emu_module *m,
                                           const char *name);
void emu_module_free(struct emu_module *m);

/* ---- findings ---- */

enum emu_finding {
    EMU_MEMORY, /* out of bounds, misaligned */
    EMU_UNINIT, /* read, never written */
    EMU_RACE,
    EMU_SYNC,   /* barriers and masks, deadlocks */
    EMU_LAUNCH, /* a launch that a device would refuse; trap; division by zero */
    EMU_FINDINGS
};
extern const char *const emu_finding_name[EMU_FINDINGS];

/* Counts it, and prints it if it is new. */
void emu_report(enum emu_finding what, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
uint64_t emu_found(enum emu_finding what);
/* Forgets all findings; quiet: later ones are not printed. */
void emu_forget(bool quiet);
/* Ends the program. */
void emu_stop(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* ---- a launch ---- */

struct emu_config {
    uint64_t seed; /* 0: blocks and warps in order; else in an order drawn from it */
    bool diverge;  /* lanes of a warp run apart, as far as masks allow */
    uint32_t resident; /* blocks side by side */
    bool trusting;     /* no record of accesses: no races and reads of nothing are seen,
                          and large inputs fit in memory */
};
extern struct emu_config emu_config;

struct emu_launch {
    const struct emu_kernel *kernel;
    uint32_t grid[3], block[3];
    const uint8_t *param;
    uint32_t dynamic_byte; /* of shared memory */
};

/* False: it deadlocked or trapped. */
bool emu_run(const struct emu_launch *l);

/* All launches together. */
struct emu_counts {
    uint64_t lane_ins, warp_ins; /* instructions; of a warp, one for lanes together */
    /* Of loads from global memory and stores to it, instruction by instruction and so
     * without caches: sectors of 32 bytes that a warp's lanes touch, and as many as
     * would hold their bytes. */
    uint64_t sectors, needed;
    uint64_t atomics; /* of lanes, in global memory */
    uint64_t bus;     /* bytes that kernels read from the host, see emu_access */
};
extern struct emu_counts emu_count;

enum emu_state { EMU_RUNS, EMU_WAITS_WARP, EMU_WAITS_BLOCK, EMU_ENDED };

struct emu_block;
struct emu_warp {
    struct emu_block *block;
    uint32_t id;   /* in the block */
    uint32_t live; /* lanes that have not ended */
    uint64_t *reg; /* n_reg times 32 */
    uint32_t pc[EMU_LANES];
    uint8_t state[EMU_LANES];
    uint32_t mask[EMU_LANES];  /* of who waits */
    uint32_t epoch[EMU_LANES]; /* __syncwarp passed */
};

struct emu_block {
    uint32_t id, at[3];
    uint32_t n_thread, n_ended, n_waiting;
    uint32_t epoch; /* barriers passed */
    struct emu_warp *warp;
    uint32_t n_warp;
    uint64_t *reg; /* of all warps */
    uint8_t *shared;
    bool *written; /* bytes of shared */
    uint32_t shared_byte;
    struct emu_shadow *shadow; /* of shared */
    size_t n_shadow, most_reg;
};

/* The launch under way. */
extern const struct emu_launch *emu_now;
extern uint32_t emu_launch_number;

static inline uint64_t *emu_reg(const struct emu_warp *w, int reg)
{
    return w->reg + (size_t)reg * EMU_LANES;
}
/* Where an instruction is, for a message; overwritten by the next call. */
const char *emu_where(const struct emu_ins *i);

/* ---- alu.c ---- */

#define EMU_EACH(l, set)                                                               \
    for (uint32_t set_ = (set), l; set_ && (l = (uint32_t)__builtin_ctz(set_), true);  \
         set_ &= set_ - 1)

/* The lanes of `set` do instruction i. */
void emu_alu(const struct emu_warp *w, const struct emu_ins *i, uint32_t set);
static inline uint64_t emu_low(uint64_t v, unsigned bits)
{
    return bits >= 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}
static inline int64_t emu_sign(uint64_t v, unsigned bits)
{
    return bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

/* ---- memory.c ---- */

/* Device memory; bytes are 0xdb and count as never written. NULL: none left. */
void *emu_alloc(size_t n_byte);
bool emu_free(void *p); /* false: not one of ours */
bool emu_is_device(const void *p);
size_t emu_size(const void *p); /* of what begins at p; 0: nothing does */
/* The host writes, reads and copies: false (and a finding) if out of bounds. */
bool emu_host_write(const void *p, size_t n_byte, const char *what);
bool emu_host_read(const void *p, size_t n_byte, const char *what);
bool emu_device_copy(const void *to, const void *from, size_t n_byte);

/* Page-locked memory of the host; own: of the program, which locks and unlocks it;
 * shown: kernels may read it. */
bool emu_pin(const void *p, size_t n_byte, bool own, bool shown);
bool emu_is_shown(const void *p);
bool emu_unpin(const void *p, bool own);
bool emu_is_pinned(const void *p);

struct emu_shadow;
/* For n_unit units at least; for how many, then. */
struct emu_shadow *emu_shadow_new(size_t *n_unit);
void emu_shadow_free(struct emu_shadow *s, size_t n_unit);
/* ld, st and atom. Of the host's memory, sectors are counted as if a cache of 128 KiB
 * were between. */
void emu_access(struct emu_warp *w, const struct emu_ins *i, uint32_t set);

/* ---- cudart.c ---- */

/* Makes the nth call of the runtime, counted from now, fail; 0: none. Returns the
 * number of calls since the last emu_fail_call. */
uint64_t emu_fail_call(uint64_t nth);

/* ---- trace.c ---- */

enum emu_way { EMU_UP, EMU_DOWN, EMU_WITHIN, EMU_WAYS };

void emu_trace_begin(void);
void emu_trace_copy(enum emu_way way, uint64_t n_byte, bool pinned);
void emu_trace_wait(void);
/* A launch that is over; `before`: emu_count when it began. */
void emu_trace_launch(const struct emu_launch *l, const struct emu_counts *before);
/* Writes the line of SLU_EMU_LOG. Returns the number of findings. */
uint64_t emu_trace_end(const char *device);

/* ---- lanes.c ---- */

/* Lanes `arrived` come to instruction i, which waits for those of its mask. All that
 * are complete by that go on. Lanes that ended are nobody's to wait for. */
void emu_warp_meet(struct emu_warp *w, const struct emu_ins *i, uint32_t arrived);
/* Lets a block's threads go on if all that have not ended are at a barrier. */
void emu_block_meet(struct emu_block *b);

#endif
