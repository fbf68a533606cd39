/* One PTX statement to an instruction: those that nvcc makes of kernels/ and of CUB's.
 */
#include "ptx.h"

#include <stdlib.h>
#include <string.h>

/* Without the brackets or braces around it. */
static char *inner(char *s)
{
    s[strlen(s) - 1] = 0;
    return ptx_trimmed(s + 1);
}

static bool has(const struct ptx_statement *s, const char *word)
{
    for (unsigned i = 1; i < s->n_word; i++)
        if (!strcmp(s->word[i], word))
            return true;
    return false;
}

/* The number in `list` of the first of its words that the opcode has. */
static uint8_t which(const struct ptx *p, const struct ptx_statement *s,
                     const char *const *list)
{
    for (uint8_t i = 0; list[i]; i++)
        if (has(s, list[i]))
            return i;
    ptx_bad(p, "variant", s->word[0]);
    return 0;
}

static int destination(struct ptx *p, const char *s)
{
    if (!strcmp(s, "_"))
        return -1;
    int reg = ptx_register(p, s);
    if (reg < 0)
        ptx_bad(p, "destination", s);
    return reg;
}

static void destinations(struct ptx *p, struct emu_ins *i, char *s)
{
    char *part[4];
    if (*s == '{') {
        unsigned n = ptx_cut(p, inner(s), ',', part, 4);
        for (unsigned k = 0; k < n; k++)
            i->dst[k] = destination(p, part[k]);
        return;
    }
    unsigned n = ptx_cut(p, s, '|', part, 2);
    i->dst[0] = destination(p, part[0]);
    if (n > 1)
        i->dst2 = destination(p, part[1]);
}

/* Registers of the operands from number `from` on. They may add instructions, so they
 * are taken before the statement's own is added. */
static void sources(struct ptx *p, const struct ptx_statement *s, unsigned from,
                    struct emu_ins *to)
{
    char *part[4];
    for (unsigned k = from; k < s->n_arg; k++) {
        unsigned n = 1;
        part[0] = s->arg[k];
        if (*part[0] == '{')
            n = ptx_cut(p, inner(part[0]), ',', part, 4);
        for (unsigned j = 0; j < n; j++) {
            if (to->n_src == 5)
                ptx_bad(p, "too many operands", s->word[0]);
            to->src[to->n_src++] = ptx_operand(p, part[j]);
        }
    }
}

/* "[%rd4+8]", "[name+16]" */
static void address(struct ptx *p, struct emu_ins *i, char *s)
{
    if (*s != '[')
        ptx_bad(p, "address", s);
    s = inner(s);
    char *plus = strchr(s + 1, '+');
    if (plus) {
        i->off = strtoll(plus + 1, NULL, 0);
        *plus = 0;
        s = ptx_trimmed(s);
    }
    if (i->space != EMU_PARAM) {
        i->base = ptx_operand(p, s);
        return;
    }
    for (uint32_t k = 0; k < p->k->n_param; k++)
        if (!strcmp(p->k->param[k].name, s)) {
            i->off += p->k->param[k].off;
            return;
        }
    ptx_bad(p, "parameter", s);
}

static void memory(struct ptx *p, const struct ptx_statement *s, struct emu_ins *i)
{
    static const char *const ATOM[] = {"add", "max",  "min", "or", "and",
                                       "xor", "exch", "cas", NULL};
    i->space = has(s, "shared") ? EMU_SHARED : has(s, "param") ? EMU_PARAM : EMU_GLOBAL;
    i->vec = has(s, "v2") ? 2 : has(s, "v4") ? 4 : 1;
    i->strong = i->op == EMU_ATOM || has(s, "volatile") || has(s, "relaxed") ||
                has(s, "acquire") || has(s, "release");
    i->unchanging = has(s, "nc");
    if (has(s, "local"))
        ptx_bad(p, "local memory", s->word[0]);
    unsigned n = 0;
    if (i->op == EMU_ATOM)
        i->mode = which(p, s, ATOM);
    if (i->op == EMU_LD || !strcmp(s->word[0], "atom"))
        destinations(p, i, s->arg[n++]);
    address(p, i, s->arg[n++]);
    sources(p, s, n, i);
}

static void comparison(struct ptx *p, const struct ptx_statement *s, struct emu_ins *i)
{
    static const struct {
        const char *word;
        uint8_t mode;
    } CMP[] = {{"eq", EMU_EQ}, {"ne", EMU_NE}, {"lt", EMU_LT}, {"le", EMU_LE},
               {"gt", EMU_GT}, {"ge", EMU_GE}, {"lo", EMU_LT}, {"ls", EMU_LE},
               {"hi", EMU_GT}, {"hs", EMU_GE}};
    unsigned k = 0;
    while (k < 10 && strcmp(s->word[1], CMP[k].word) != 0)
        k++;
    if (k == 10)
        ptx_bad(p, "comparison", s->word[1]);
    i->mode = CMP[k].mode;
    i->join = has(s, "and")   ? EMU_AND
              : has(s, "or")  ? EMU_OR
              : has(s, "xor") ? EMU_XOR
                              : 0;
}

/* Reads the words of the opcode, but not the type. */
static void variant(struct ptx *p, const struct ptx_statement *s, struct emu_ins *i)
{
    static const char *const SHFL[] = {"up", "down", "bfly", "idx", NULL};
    static const char *const VOTE[] = {"ballot", "any", "all", "uni", NULL};
    static const char *const RED[] = {"or", "and", "popc", NULL};
    switch (i->op) {
    case EMU_MUL:
        i->op = has(s, "wide") ? EMU_MULWIDE : has(s, "hi") ? EMU_MULHI : EMU_MUL;
        break;
    case EMU_MAD:
        if (!has(s, "lo"))
            ptx_bad(p, "variant", s->word[0]);
        break;
    case EMU_SETP:
        comparison(p, s, i);
        break;
    case EMU_CVT:
        if (s->n_word != 3 || !ptx_type(s->word[1], &i->bits, &i->is_signed) ||
            !ptx_type(s->word[2], &i->from_bits, &i->from_signed))
            ptx_bad(p, "conversion", s->word[0]);
        break;
    case EMU_SHF:
        i->mode = (uint8_t)((has(s, "l") ? EMU_SHF_LEFT : 0) |
                            (has(s, "clamp") ? EMU_SHF_CLAMP : 0));
        break;
    case EMU_BFIND:
        i->mode = has(s, "shiftamt");
        break;
    case EMU_BMSK:
        i->mode = has(s, "clamp");
        break;
    case EMU_PRMT:
        if (s->n_word != 2)
            ptx_bad(p, "variant", s->word[0]);
        break;
    case EMU_SHFL:
        i->mode = which(p, s, SHFL);
        break;
    case EMU_VOTE:
        i->mode = which(p, s, VOTE);
        break;
    case EMU_MATCH:
        if (!has(s, "any"))
            ptx_bad(p, "variant", s->word[0]);
        break;
    case EMU_MOV:
        if (*s->arg[0] == '{')
            i->op = EMU_UNPACK;
        else if (*s->arg[1] == '{')
            i->op = EMU_PACK;
        break;
    case EMU_BAR:
        if (has(s, "warp"))
            i->op = EMU_WSYNC;
        else if (has(s, "red"))
            i->op = EMU_BARRED;
        if (i->op == EMU_BARRED)
            i->mode = which(p, s, RED);
        if (s->n_arg != (i->op == EMU_BARRED ? 3 : 1))
            ptx_bad(p, "barrier of some threads", s->word[0]);
        break;
    default:
        break;
    }
}

static const struct opcode {
    const char *word;
    uint8_t op;
    bool writes; /* its first operand */
} OPCODE[] = {
    {"abs", EMU_ABS, true},       {"activemask", EMU_ACTIVE, true},
    {"add", EMU_ADD, true},       {"and", EMU_AND, true},
    {"atom", EMU_ATOM, true},     {"bar", EMU_BAR, false},
    {"barrier", EMU_BAR, false},  {"bfe", EMU_BFE, true},
    {"bfi", EMU_BFI, true},       {"bfind", EMU_BFIND, true},
    {"bmsk", EMU_BMSK, true},     {"bra", EMU_BRA, false},
    {"brev", EMU_BREV, true},     {"clz", EMU_CLZ, true},
    {"cvt", EMU_CVT, true},       {"cvta", EMU_MOV, true},
    {"div", EMU_DIV, true},       {"exit", EMU_RET, false},
    {"fence", EMU_FENCE, false},  {"ld", EMU_LD, true},
    {"lop3", EMU_LOP3, true},     {"mad", EMU_MAD, true},
    {"match", EMU_MATCH, true},   {"max", EMU_MAX, true},
    {"membar", EMU_FENCE, false}, {"min", EMU_MIN, true},
    {"mov", EMU_MOV, true},       {"mul", EMU_MUL, true},
    {"neg", EMU_NEG, true},       {"nanosleep", EMU_NANOSLEEP, false},
    {"not", EMU_NOT, true},       {"or", EMU_OR, true},
    {"popc", EMU_POPC, true},     {"prmt", EMU_PRMT, true},
    {"red", EMU_ATOM, false},     {"rem", EMU_REM, true},
    {"ret", EMU_RET, false},      {"selp", EMU_SELP, true},
    {"setp", EMU_SETP, true},     {"shf", EMU_SHF, true},
    {"shfl", EMU_SHFL, true},     {"shl", EMU_SHL, true},
    {"shr", EMU_SHR, true},       {"st", EMU_ST, false},
    {"sub", EMU_SUB, true},       {"trap", EMU_TRAP, false},
    {"vote", EMU_VOTE, true},     {"xor", EMU_XOR, true},
};

static void operands(struct ptx *p, const struct ptx_statement *s,
                     const struct opcode *o, struct emu_ins *i)
{
    switch (i->op) {
    case EMU_LD:
    case EMU_ST:
    case EMU_ATOM:
        memory(p, s, i);
        break;
    case EMU_BRA:
    case EMU_FENCE:
    case EMU_NANOSLEEP:
    case EMU_RET:
    case EMU_TRAP:
        break;
    default:
        if (o->writes || i->op == EMU_BARRED)
            destinations(p, i, s->arg[0]);
        sources(p, s, o->writes || i->op == EMU_BARRED, i);
    }
}

void ptx_instruction(struct ptx *p, const struct ptx_statement *s)
{
    const struct opcode *o = OPCODE, *end = OPCODE + sizeof OPCODE / sizeof *OPCODE;
    while (o < end && strcmp(o->word, s->word[0]) != 0)
        o++;
    if (o == end)
        ptx_bad(p, "unknown instruction", s->word[0]);
    struct emu_ins i = {.op = o->op,
                        .bits = 32,
                        .vec = 1,
                        .guard = -1,
                        .dst = {-1, -1, -1, -1},
                        .dst2 = -1,
                        .base = -1,
                        .line = p->line};
    (void)ptx_type(s->word[s->n_word - 1], &i.bits, &i.is_signed);
    if (!strcmp(s->word[0], "cvta") && !has(s, "global"))
        ptx_bad(p, "address of another space", s->word[s->n_word - 1]);
    variant(p, s, &i);
    operands(p, s, o, &i);
    if (s->guard) {
        i.guard_not = s->guard[1] == '!';
        i.guard = ptx_register(p, s->guard + 1 + i.guard_not);
        if (i.guard < 0)
            ptx_bad(p, "guard", s->guard);
    }
    *ptx_add(p) = i;
    if (i.op == EMU_BRA)
        p->label_of[p->k->n_code - 1] = s->arg[0];
}
