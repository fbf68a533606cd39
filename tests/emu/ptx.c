/* PTX text to kernels: modules, declarations, operands. */
#include "ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void ptx_bad(const struct ptx *p, const char *what, const char *text)
{
    emu_stop("PTX line %u: %s: %s", p->line, what, text);
}

void *ptx_grown(void *p, size_t n, size_t size) /* by one; in powers of two */
{
    if (n & (n - 1))
        return p;
    p = realloc(p, (n ? 2 * n : 1) * size);
    if (!p)
        emu_stop("out of memory");
    return p;
}

/* ---- words ---- */

char *ptx_trimmed(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    char *end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1]))
        *--end = 0;
    return s;
}

/* Cuts `s` at each `at` outside of brackets and braces; returns how many parts. */
unsigned ptx_cut(const struct ptx *p, char *s, char at, char **part, unsigned most)
{
    unsigned n = 0;
    int depth = 0;
    s = ptx_trimmed(s);
    if (!*s)
        return 0;
    for (char *begin = s;; s++) {
        depth += *s == '{' || *s == '[';
        depth -= *s == '}' || *s == ']';
        if (*s && (*s != at || depth))
            continue;
        bool last = !*s;
        *s = 0;
        if (n == most)
            ptx_bad(p, "too many parts", begin);
        part[n++] = ptx_trimmed(begin);
        if (last)
            return n;
        begin = s + 1;
    }
}

bool ptx_type(const char *t, uint8_t *bits, bool *is_signed)
{
    char *end;
    if (!strcmp(t, "pred")) {
        *bits = 1;
        *is_signed = false;
        return true;
    }
    if (!strchr("usb", *t) || !isdigit((unsigned char)t[1]))
        return false;
    unsigned long n = strtoul(t + 1, &end, 10);
    if (*end || (n != 8 && n != 16 && n != 32 && n != 64))
        return false;
    *bits = (uint8_t)n;
    *is_signed = *t == 's';
    return true;
}

/* ---- registers ---- */

int ptx_register(const struct ptx *p, const char *name)
{
    for (unsigned i = p->n_names; i-- > 0;) {
        const struct ptx_names *n = &p->names[i];
        size_t len = strlen(n->name);
        if (!n->numbered && !strcmp(n->name, name))
            return n->first;
        if (!n->numbered || strncmp(n->name, name, len) != 0 ||
            !isdigit((unsigned char)name[len]))
            continue;
        char *end;
        unsigned long k = strtoul(name + len, &end, 10);
        if (!*end && k < n->n)
            return n->first + (int)k;
    }
    return -1;
}

static int constant(struct ptx *p, uint64_t v)
{
    struct emu_kernel *k = p->k;
    for (uint32_t i = 0; i < k->n_constant; i++)
        if (k->constant[i] == v)
            return k->constant_reg[i];
    k->constant = ptx_grown(k->constant, k->n_constant, sizeof *k->constant);
    k->constant_reg =
        ptx_grown(k->constant_reg, k->n_constant, sizeof *k->constant_reg);
    k->constant[k->n_constant] = v;
    k->constant_reg[k->n_constant++] = (int)k->n_reg;
    return (int)k->n_reg++;
}

static int special(struct ptx *p, const char *name)
{
    static const char *const NAME[EMU_SPECIALS] = {
        "%tid.x",       "%tid.y",       "%tid.z",       "%ntid.x",      "%ntid.y",
        "%ntid.z",      "%ctaid.x",     "%ctaid.y",     "%ctaid.z",     "%nctaid.x",
        "%nctaid.y",    "%nctaid.z",    "%laneid",      "%warpid",      "%lanemask_eq",
        "%lanemask_lt", "%lanemask_le", "%lanemask_ge", "%lanemask_gt",
    };
    for (int i = 0; i < EMU_SPECIALS; i++)
        if (!strcmp(name, NAME[i])) {
            int *reg = &p->k->special_reg[i];
            if (*reg < 0)
                *reg = (int)p->k->n_reg++;
            return *reg;
        }
    return -1;
}

/* A shared variable's address; "name" or "name+12". False: none is called so. */
static bool shared_address(struct ptx *p, const char *s, uint64_t *v)
{
    size_t len = strcspn(s, "+");
    uint64_t off = s[len] ? strtoull(s + len + 1, NULL, 0) : 0;
    for (unsigned i = 0; i < p->n_shared; i++)
        if (strlen(p->shared[i].name) == len && !strncmp(p->shared[i].name, s, len)) {
            *v = p->shared[i].off + off;
            return true;
        }
    if (!p->dynamic || strlen(p->dynamic) != len || strncmp(p->dynamic, s, len) != 0)
        return false;
    p->k->has_dynamic = true; /* it begins behind what is declared */
    p->k->shared_byte = (p->k->shared_byte + 15) / 16 * 16;
    *v = p->k->shared_byte + off;
    return true;
}

struct emu_ins *ptx_add(struct ptx *p)
{
    struct emu_kernel *k = p->k;
    k->code = ptx_grown(k->code, k->n_code, sizeof *k->code);
    p->label_of = ptx_grown(p->label_of, k->n_code, sizeof *p->label_of);
    p->label_of[k->n_code] = NULL;
    struct emu_ins *i = &k->code[k->n_code++];
    *i = (struct emu_ins){.guard = -1,
                          .dst = {-1, -1, -1, -1},
                          .dst2 = -1,
                          .base = -1,
                          .bits = 32,
                          .vec = 1,
                          .line = p->line};
    return i;
}

int ptx_operand(struct ptx *p, char *s)
{
    uint64_t v;
    if (*s == '!') { /* an instruction of its own makes the other of it */
        int from = ptx_operand(p, ptx_trimmed(s + 1)), to = (int)p->k->n_reg++;
        struct emu_ins *i = ptx_add(p);
        i->op = EMU_NOT;
        i->bits = 1;
        i->dst[0] = to;
        i->src[i->n_src++] = from;
        return to;
    }
    int reg = ptx_register(p, s);
    if (reg < 0)
        reg = special(p, s);
    if (reg >= 0)
        return reg;
    if (shared_address(p, s, &v))
        return constant(p, v);
    if (isdigit((unsigned char)*s) || *s == '-') {
        char *end;
        v = *s == '-' ? (uint64_t)strtoll(s, &end, 0) : strtoull(s, &end, 0);
        if (!*end || !strcmp(end, "U"))
            return constant(p, v);
    }
    ptx_bad(p, "operand", s);
    return -1;
}

/* ---- declarations ---- */

/* ".align 8 .b8 name[12]", ".u64 .ptr .align 1 name": the name, cut out. */
static char *variable(const struct ptx *p, char *s, uint32_t *align, uint32_t *size,
                      bool *open)
{
    char *word[10], *name = NULL;
    unsigned n = ptx_cut(p, s, ' ', word, 10);
    uint8_t bits = 0;
    bool is_signed;
    *align = 0;
    *open = false;
    for (unsigned i = 0; i < n; i++) {
        if (!strcmp(word[i], ".align") && i + 1 < n)
            *align = (uint32_t)strtoul(word[++i], NULL, 10);
        else if (*word[i] == '.')
            (void)ptx_type(word[i] + 1, &bits, &is_signed);
        else if (*word[i])
            name = word[i];
    }
    if (!name || !bits)
        ptx_bad(p, "declaration", s);
    *size = bits / 8;
    char *bracket = strchr(name, '[');
    if (bracket) {
        *bracket = 0;
        *open = bracket[1] == ']';
        *size *= (uint32_t)strtoul(bracket + 1, NULL, 0);
    }
    if (!*align)
        *align = bits / 8;
    return name;
}

static void declare_registers(struct ptx *p, char *s)
{
    char *part[32];
    s = ptx_trimmed(s);
    s += strcspn(s, " "); /* the type */
    unsigned n = ptx_cut(p, s, ',', part, 32);
    for (unsigned i = 0; i < n; i++) {
        char *angle = strchr(part[i], '<');
        if (p->n_names == MOST_NAMES)
            ptx_bad(p, "too many names", part[i]);
        uint32_t many = 1;
        if (angle) {
            many = (uint32_t)strtoul(angle + 1, NULL, 10);
            *angle = 0;
        }
        p->names[p->n_names++] =
            (struct ptx_names){part[i], angle != NULL, many, (int)p->k->n_reg};
        p->k->n_reg += many;
    }
}

static void declare_shared(struct ptx *p, char *s)
{
    uint32_t align, size;
    bool open;
    char *name = variable(p, s, &align, &size, &open);
    if (p->n_shared == MOST_NAMES || p->k->has_dynamic || open)
        ptx_bad(p, "shared memory", name);
    uint32_t off = (p->k->shared_byte + align - 1) / align * align;
    p->shared[p->n_shared++] = (struct ptx_shared){name, off};
    p->k->shared_byte = off + size;
}

static void statement(struct ptx *p, char *s)
{
    struct ptx_statement t = {.n_word = 0};
    for (char *c = s; *c; c++)
        if (isspace((unsigned char)*c))
            *c = ' ';
    s = ptx_trimmed(s);
    if (!*s || !strncmp(s, ".pragma", 7))
        return;
    if (!strncmp(s, ".reg ", 5)) {
        declare_registers(p, s + 5);
        return;
    }
    if (!strncmp(s, ".shared ", 8)) {
        declare_shared(p, s + 8);
        return;
    }
    if (*s == '.')
        ptx_bad(p, "directive", s);
    if (*s == '@') {
        t.guard = s;
        s += strcspn(s, " ");
        *s++ = 0;
        s = ptx_trimmed(s);
    }
    size_t len = strcspn(s, " ");
    if (s[len])
        t.n_arg = ptx_cut(p, s + len + 1, ',', t.arg, MOST_OPERANDS);
    s[len] = 0;
    t.n_word = ptx_cut(p, s, '.', t.word, MOST_WORDS);
    ptx_instruction(p, &t);
}

/* ---- kernels ---- */

static void skip(struct ptx *p)
{
    for (; isspace((unsigned char)*p->at); p->at++)
        p->line += *p->at == '\n';
}

/* The text up to the next `end`, cut off and behind us. */
static char *up_to(struct ptx *p, char end)
{
    char *s = p->at, *e = strchr(s, end);
    if (!e)
        ptx_bad(p, "end of text", s);
    *e = 0;
    p->at = e + 1;
    return s;
}

static void count_lines(struct ptx *p, const char *s)
{
    for (; *s; s++)
        p->line += *s == '\n';
}

static void params(struct ptx *p, char *s)
{
    char *part[32];
    unsigned n = ptx_cut(p, s, ',', part, 32);
    struct emu_kernel *k = p->k;
    k->param = calloc(n + 1, sizeof *k->param);
    if (!k->param)
        emu_stop("out of memory");
    for (unsigned i = 0; i < n; i++) {
        uint32_t align, size;
        bool open;
        char *name = variable(p, part[i] + strlen(".param"), &align, &size, &open);
        uint32_t off = (k->param_byte + align - 1) / align * align;
        k->param[k->n_param++] = (struct emu_param){name, off, size};
        k->param_byte = off + size;
    }
}

static void body(struct ptx *p)
{
    p->n_names = p->n_shared = p->n_label = 0;
    p->n_scope = 1;
    p->scope[0] = 0;
    while (p->n_scope) {
        skip(p);
        size_t len = strspn(p->at, "$_0123456789abcdefghijklmnopqrstuvwxyz"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (*p->at == '{') {
            if (p->n_scope == MOST_SCOPES)
                ptx_bad(p, "too deep", p->k->name);
            p->scope[p->n_scope++] = p->n_names;
            p->at++;
        } else if (*p->at == '}') {
            p->n_names = p->scope[--p->n_scope];
            p->at++;
        } else if (len && p->at[len] == ':') {
            p->label = ptx_grown(p->label, p->n_label, sizeof *p->label);
            p->label[p->n_label++] = (struct ptx_label){p->at, (int)p->k->n_code};
            p->at[len] = 0;
            p->at += len + 1;
        } else {
            char *s = up_to(p, ';');
            unsigned line = p->line;
            count_lines(p, s);
            unsigned behind = p->line;
            p->line = line; /* a message names where it begins */
            statement(p, s);
            p->line = behind;
        }
    }
    ptx_add(p)->op = EMU_RET;
    for (uint32_t i = 0; i < p->k->n_code; i++) {
        if (!p->label_of[i])
            continue;
        unsigned k = 0;
        while (k < p->n_label && strcmp(p->label[k].name, p->label_of[i]) != 0)
            k++;
        if (k == p->n_label)
            ptx_bad(p, "label", p->label_of[i]);
        p->k->code[i].target = p->label[k].at;
    }
}

/* p->at is behind ".entry". */
static void entry(struct ptx *p, struct emu_kernel *k)
{
    *k = (struct emu_kernel){.most_threads = 1024};
    memset(k->special_reg, -1, sizeof k->special_reg);
    p->k = k;
    k->name = ptx_trimmed(up_to(p, '('));
    char *s = up_to(p, ')');
    count_lines(p, s);
    for (char *c = s; *c; c++)
        if (isspace((unsigned char)*c))
            *c = ' ';
    params(p, s);
    s = up_to(p, '{');
    count_lines(p, s);
    char *most = strstr(s, ".maxntid");
    if (most)
        k->most_threads = (uint32_t)strtoul(most + strlen(".maxntid"), NULL, 10);
    body(p);
}

/* Comments become spaces; lines stay. */
static void without_comments(char *s)
{
    for (; *s; s++) {
        if (s[0] == '/' && s[1] == '/')
            while (*s && *s != '\n')
                *s++ = ' ';
        if (!*s)
            return;
    }
}

struct emu_module *emu_module_new(const char *text, size_t n)
{
    struct emu_module *m = calloc(1, sizeof *m);
    struct ptx *p = calloc(1, sizeof *p);
    if (!m || !p || !(m->text = strndup(text, n)))
        emu_stop("out of memory");
    without_comments(m->text);
    p->at = m->text;
    p->line = 1;
    for (skip(p); *p->at; skip(p)) {
        size_t line = strcspn(p->at, "\n"), len = strcspn(p->at, "{;(\n");
        char *word = memmem(p->at, len, ".entry ", 7);
        if (word) {
            p->at = word + 7;
            m->kernel = ptx_grown(m->kernel, m->n_kernel, sizeof *m->kernel);
            entry(p, &m->kernel[m->n_kernel++]);
        } else if (memmem(p->at, len, ".func", 5)) {
            ptx_bad(p, "functions are not known", p->at);
        } else if (p->at[len] != ';') { /* .version, .target, .address_size */
            p->at += line;
        } else if ((word = memmem(p->at, len, ".shared ", 8))) {
            uint32_t align, size;
            bool open;
            p->at = word + 8;
            p->dynamic = variable(p, up_to(p, ';'), &align, &size, &open);
            if (!open)
                ptx_bad(p, "shared memory of the module", p->dynamic);
        } else {
            count_lines(p, up_to(p, ';'));
        }
    }
    free(p->label);
    free(p->label_of);
    free(p);
    return m;
}

const struct emu_kernel *emu_module_kernel(const struct emu_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->n_kernel; i++)
        if (!strcmp(m->kernel[i].name, name))
            return &m->kernel[i];
    return NULL;
}

void emu_module_free(struct emu_module *m)
{
    for (uint32_t i = 0; i < m->n_kernel; i++) {
        free(m->kernel[i].param);
        free(m->kernel[i].code);
        free(m->kernel[i].constant);
        free(m->kernel[i].constant_reg);
    }
    free(m->kernel);
    free(m->text);
    free(m);
}
