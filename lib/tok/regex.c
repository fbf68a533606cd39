/* regex.c - splits by regular expressions that have no scanner, through PCRE2 and its
 * JIT.
 *
 * The references use Oniguruma (Hugging Face) and Rust's regex crates (tiktoken). On
 * what the translation below lets through, they and PCRE2 agree: alternatives in order,
 * the leftmost match, greedy, lazy and possessive repetition, look-around, classes. \p,
 * \s and \d become lists of code points from our own Unicode version, as PCRE2 has
 * another one and other ideas of white space. Whatever else the three might read
 * differently is refused by name.
 */
#include "lib/tok/pre.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tok/unicode.h"

#define STACK_START (64 << 10)
#define STACK_MAX   (256 << 20) /* reserved, not used, until a match needs it */

struct pre_regex {
    pcre2_code *code;
};

struct pre_match {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

/* ---- translation ---- */

struct translate {
    const char *p, *end, *start;
    struct slu_buf out;
    unsigned depth;      /* of groups */
    unsigned fold_depth; /* of the outermost (?i: that is open, 0: none */
    struct slu_err *err;
};

static int refuse(struct translate *t, const char *what, const char *at, size_t n)
{
    return slu_fail_at(t->err, SLU_E_UNSUPPORTED, (uint64_t)(at - t->start),
                       "pre-tokenizer: %s \"%.*s\" in a regular expression cannot be "
                       "reproduced",
                       what, (int)n, at);
}

static int put(struct translate *t, const char *p, size_t n)
{
    return slu_buf_append(&t->out, p, n, t->err);
}

/* Bit set of the categories that a name stands for; 0: unknown. */
static uint64_t categories(const char *name, size_t n)
{
    static const char NAMES[] =
        "CnLuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCo";
    uint64_t set = 0;

    if (n < 1 || n > 2)
        return 0;
    for (unsigned i = 0; i < UNI_CW; i++) {
        if (NAMES[2 * i] == name[0] && (n == 1 || NAMES[2 * i + 1] == name[1]))
            set |= UINT64_C(1) << i;
    }
    if (set >> UNI_CC & 1)
        set |= UINT64_C(1) << UNI_CW;
    return set;
}

#define SPACES                                                                         \
    (UINT64_C(1) << UNI_ZS | UINT64_C(1) << UNI_ZL | UINT64_C(1) << UNI_ZP |           \
     UINT64_C(1) << UNI_CW)

/* Writes the code points of `set`, as a class of its own unless we are in one. */
static int put_set(struct translate *t, uint64_t set, bool negate, bool in_class)
{
    int rc = SLU_OK;

    if (t->fold_depth)
        return refuse(t, "a class without regard to case,", t->p - 2, 2);
    if (!in_class)
        rc = put(t, "[", 1);
    for (uint32_t c = 0; c < 0x110000 && rc >= 0;) {
        if (((set >> uni_category(c) & 1) != 0) == negate) {
            c++;
            continue;
        }
        uint32_t from = c;
        while (c < 0x110000 && ((set >> uni_category(c) & 1) != 0) != negate)
            c++;
        /* Surrogates are no characters, and PCRE2 will not have them named. */
        uint32_t to = c - 1;
        if (from >= 0xD800 && from < 0xE000)
            from = 0xE000;
        if (to >= 0xD800 && to < 0xE000)
            to = 0xD7FF;
        if (from < 0xD800 && to > 0xDFFF) {
            rc = slu_buf_printf(&t->out, t->err, "\\x{%x}-\\x{d7ff}", from);
            from = 0xE000;
        }
        if (rc >= 0 && from <= to)
            rc = slu_buf_printf(&t->out, t->err, "\\x{%x}-\\x{%x}", from, to);
    }
    if (rc >= 0 && !in_class)
        rc = put(t, "]", 1);
    return rc;
}

/* \p{Name}, \P{Name}, \p{^Name}, \pN; t->p is behind the p. */
static int property(struct translate *t, bool negate, bool in_class)
{
    const char *at = t->p - 2, *name = t->p;
    size_t n = 1;

    if (t->p < t->end && *t->p == '{') {
        const char *close = memchr(t->p, '}', (size_t)(t->end - t->p));
        if (!close)
            return refuse(t, "the property", at, 2);
        name++;
        if (name < close && *name == '^') {
            negate = !negate;
            name++;
        }
        n = (size_t)(close - name);
        t->p = close + 1;
    } else {
        t->p++;
    }
    uint64_t set = name + n <= t->end ? categories(name, n) : 0;
    if (!set)
        return refuse(t, "the property", at, (size_t)(t->p - at));
    return put_set(t, set, negate, in_class);
}

/* How many there are at t->p. */
static size_t hex_digits(const struct translate *t)
{
    size_t n = 0;

    while (t->p + n < t->end && t->p[n] && strchr("0123456789abcdefABCDEF", t->p[n]))
        n++;
    return n;
}

/* At a backslash. */
static int escape(struct translate *t, bool in_class)
{
    const char *at = t->p;

    if (t->end - t->p < 2)
        return refuse(t, "the escape", at, 1);
    char c = t->p[1];
    t->p += 2;
    switch (c) {
    case 'p':
    case 'P':
        return property(t, c == 'P', in_class);
    case 's':
    case 'S':
        return put_set(t, SPACES, c == 'S', in_class);
    case 'd':
    case 'D':
        return put_set(t, UINT64_C(1) << UNI_ND, c == 'D', in_class);
    case 'n':
    case 'r':
    case 't':
    case 'f':
        return put(t, at, 2);
    case 'v':
        return put(t, "\\x0b", 4);
    case 'u':
        if (hex_digits(t) < 4)
            break;
        t->p += 4;
        return slu_buf_printf(&t->out, t->err, "\\x{%.4s}", t->p - 4);
    case 'x': {
        const char *close = t->p < t->end && *t->p == '{'
                                ? memchr(t->p, '}', (size_t)(t->end - t->p))
                                : NULL;
        if (!close ||
            strspn(t->p + 1, "0123456789abcdefABCDEF") != (size_t)(close - t->p - 1))
            break;
        t->p = close + 1;
        return put(t, at, (size_t)(t->p - at));
    }
    case 'z':
        if (!in_class)
            return put(t, at, 2);
        break;
    default:
        if (c > ' ' && c < 0x7f && !((c | 32) >= 'a' && (c | 32) <= 'z') &&
            !(c >= '0' && c <= '9') && c != '<' && c != '>')
            return put(t, at, 2);
        if (c == ' ')
            return put(t, " ", 1);
        if (c == '<' || c == '>')
            return put(t, &t->p[-1], 1);
    }
    return refuse(t, "the escape", at, 2);
}

/* At a bracket. */
static int class(struct translate *t)
{
    const char *at = t->p++;
    bool first = true;
    int rc = put(t, "[", 1);

    if (rc >= 0 && t->p < t->end && *t->p == '^') {
        t->p++;
        rc = put(t, "^", 1);
    }
    for (; rc >= 0 && t->p < t->end; first = false) {
        if (*t->p == ']' && !first) {
            t->p++;
            return put(t, "]", 1);
        }
        if (*t->p == '[' || *t->p == ']' ||
            (t->end - t->p > 1 && t->p[0] == '&' && t->p[1] == '&'))
            return refuse(t, "the class", at, (size_t)(t->p - at) + 1);
        if (*t->p == '\\')
            rc = escape(t, true);
        else
            rc = put(t, t->p++, 1);
    }
    return rc < 0 ? rc : refuse(t, "the class", at, (size_t)(t->p - at));
}

/* At an opening parenthesis. */
static int group(struct translate *t)
{
    static const char *const OPEN[] = {
        "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    const char *open = "(";
    size_t left = (size_t)(t->end - t->p);

    t->depth++;
    if (left > 1 && t->p[1] == '?') {
        open = NULL;
        for (size_t i = 0; i < sizeof OPEN / sizeof *OPEN; i++) {
            if (left >= strlen(OPEN[i]) && !memcmp(t->p, OPEN[i], strlen(OPEN[i])))
                open = OPEN[i];
        }
        if (!open)
            return refuse(t, "the group", t->p, left < 4 ? left : 4);
        if (!strcmp(open, "(?i:") && !t->fold_depth)
            t->fold_depth = t->depth;
    }
    if (left > 1 && t->p[1] == '*')
        return refuse(t, "the group", t->p, 2);
    t->p += strlen(open);
    return put(t, open, strlen(open));
}

/* Without regard to case, Oniguruma also folds single characters to several: ss, ff,
 * fi, fl, st, and some that are not ASCII. */
static bool folds_oddly(const struct translate *t)
{
    static const char PAIRS[][3] = {"ss", "ff", "fi", "fl", "st"};

    if ((unsigned char)t->p[0] >= 0x80)
        return true;
    for (size_t i = 0; t->end - t->p > 1 && i < sizeof PAIRS / sizeof *PAIRS; i++) {
        if ((t->p[0] | 32) == PAIRS[i][0] && (t->p[1] | 32) == PAIRS[i][1])
            return true;
    }
    return false;
}

static int translate(struct translate *t)
{
    int rc = SLU_OK;

    while (rc >= 0 && t->p < t->end) {
        switch (*t->p) {
        case '\\':
            rc = escape(t, false);
            break;
        case '[':
            rc = class(t);
            break;
        case '(':
            rc = group(t);
            break;
        case ')':
            if (t->fold_depth == t->depth)
                t->fold_depth = 0;
            if (t->depth)
                t->depth--;
            rc = put(t, t->p++, 1);
            break;
        case '^':
        case '$':
            return refuse(t, "the anchor", t->p, 1);
        case '}':
            /* {1,3}+ is possessive to PCRE2 and Rust, a second repetition to Oniguruma.
             */
            if (t->end - t->p > 1 && t->p[1] == '+')
                return refuse(t, "the repetition", t->p, 2);
            rc = put(t, t->p++, 1);
            break;
        default:
            if (t->fold_depth && folds_oddly(t))
                return refuse(t, "a text without regard to case,", t->p, 2);
            rc = put(t, t->p++, 1);
        }
    }
    return rc;
}

/* ---- PCRE2 ---- */

int pre_regex_new(struct pre_regex **out, const char *pattern, size_t len,
                  struct slu_err *err)
{
    struct translate t = {
        .p = pattern, .start = pattern, .end = pattern + len, .err = err};
    struct pre_regex *r = calloc(1, sizeof *r);
    int rc = r ? translate(&t) : slu_fail_nomem(err, sizeof *r), code;
    PCRE2_SIZE at;

    *out = NULL;
    if (rc < 0)
        goto out;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context)
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    r->code = pcre2_compile(t.out.data, t.out.len, PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C,
                            &code, &at, context);
    pcre2_compile_context_free(context);
    if (!r->code) {
        unsigned char why[256] = "";
        pcre2_get_error_message(code, why, sizeof why);
        rc = slu_fail(err, SLU_E_UNSUPPORTED,
                      "pre-tokenizer: the regular expression is refused by PCRE2: %s",
                      why);
        goto out;
    }
    uint32_t empty = 0;
    pcre2_pattern_info(r->code, PCRE2_INFO_MATCHEMPTY, &empty);
    if (empty) {
        rc = slu_fail(err, SLU_E_UNSUPPORTED,
                      "pre-tokenizer: the regular expression matches the empty text");
        goto out;
    }
    /* Where there is no JIT the interpreter does the same, slower. */
    (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
    *out = r;
    r = NULL;
out:
    slu_buf_release(&t.out);
    pre_regex_free(r);
    return rc;
}

void pre_regex_free(struct pre_regex *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    free(r);
}

int pre_match_new(struct pre_match **out, const struct pre_regex *r,
                  struct slu_err *err)
{
    struct pre_match *m = calloc(1, sizeof *m);

    *out = m;
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    m->data = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);
    size_t jit = 0;
    pcre2_pattern_info(r->code, PCRE2_INFO_JITSIZE, &jit);
    if (jit)
        m->stack = pcre2_jit_stack_create(STACK_START, STACK_MAX, NULL);
    if (!m->data || !m->context || (jit && !m->stack)) {
        pre_match_free(m);
        *out = NULL;
        return slu_fail_nomem(err, STACK_START);
    }
    if (m->stack)
        pcre2_jit_stack_assign(m->context, NULL, m->stack);
    pcre2_set_match_limit(m->context, UINT32_MAX);
    pcre2_set_depth_limit(m->context, UINT32_MAX);
    return SLU_OK;
}

void pre_match_free(struct pre_match *m)
{
    if (!m)
        return;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    pcre2_jit_stack_free(m->stack);
    free(m);
}

int pre_match_next(const struct pre_regex *r, struct pre_match *m, const uint8_t *p,
                   size_t n, size_t pos, size_t *start, size_t *end,
                   struct slu_err *err)
{
    int rc = pcre2_match(r->code, p, n, pos, PCRE2_NO_UTF_CHECK, m->data, m->context);

    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(r->code, p, n, pos, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data,
                         m->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return SLU_EOF;
    if (rc < 0) {
        unsigned char why[256] = "";
        pcre2_get_error_message(rc, why, sizeof why);
        return slu_fail_at(err, SLU_E_LIMIT, pos, "pre-tokenizer: %s", why);
    }
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m->data);
    *start = span[0];
    *end = span[1];
    return SLU_OK;
}
