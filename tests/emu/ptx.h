/* ptx.h - what the two halves of the PTX reader share: ptx.c knows modules, kernels and
 * declarations, ptx_ins.c one instruction. The text is cut up where it lies.
 */
#ifndef SLU_EMU_PTX_H
#define SLU_EMU_PTX_H

#include "emu.h"

enum { MOST_SCOPES = 8, MOST_NAMES = 64, MOST_WORDS = 8, MOST_OPERANDS = 8 };

/* Registers that a .reg declares: one by its name, or `n` by a prefix and a number. */
struct ptx_names {
    const char *name;
    bool numbered;
    uint32_t n;
    int first;
};

struct ptx {
    char *at;
    unsigned line;
    const char *dynamic; /* the module's shared array without a size; NULL: none */
    struct emu_kernel *k;
    struct ptx_names names[MOST_NAMES];
    unsigned n_names, scope[MOST_SCOPES], n_scope; /* scope: names before it */
    struct ptx_shared {
        const char *name;
        uint32_t off;
    } shared[MOST_NAMES];
    unsigned n_shared;
    const char **label_of; /* by instruction: where a branch goes */
    struct ptx_label {
        const char *name;
        int at;
    } * label;
    unsigned n_label;
};

/* One statement: its opcode's words, its operands. */
struct ptx_statement {
    char *word[MOST_WORDS], *arg[MOST_OPERANDS];
    unsigned n_word, n_arg;
    char *guard;
};

/* Ends the program with the line and `text`. */
void ptx_bad(const struct ptx *p, const char *what, const char *text)
    __attribute__((noreturn));
/* Room for one more of n things; it grows in powers of two. */
void *ptx_grown(void *p, size_t n, size_t size);

/* Without spaces around it. */
char *ptx_trimmed(char *s);
/* Cuts `s` at each `at` outside of brackets and braces; returns how many parts. */
unsigned ptx_cut(const struct ptx *p, char *s, char at, char **part, unsigned most);
/* "u32", "s64", "b16", "pred"; false: no type. */
bool ptx_type(const char *t, uint8_t *bits, bool *is_signed);

/* -1: none is called so. */
int ptx_register(const struct ptx *p, const char *name);
/* An operand's register; a constant gets one. */
int ptx_operand(struct ptx *p, char *s);
/* An instruction without operands, to be filled. */
struct emu_ins *ptx_add(struct ptx *p);

/* ptx_ins.c: one statement to an instruction of p->k. */
void ptx_instruction(struct ptx *p, const struct ptx_statement *s);

#endif
