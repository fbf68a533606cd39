/* regex_translate.c - regular expressions of a tokenizer.json, for PCRE2.
 *
 * Hugging Face's library passes them to Oniguruma, with its Ruby syntax. On accepted
 * expressions PCRE2 does the same: alternatives in order, the leftmost match, greedy,
 * lazy and possessive repetition, look-around, atomic groups. Classes and properties
 * become lists of code points from our own Unicode version. These are rewritten:
 *   X{1,3}+  is possessive in PCRE2: (?:X{1,3})+, as in Oniguruma
 *   X{2}?    is lazy in PCRE2: (?:X{2})?, as in Oniguruma
 *   X{,3}    is text in older PCRE2: X{0,3}, as in Oniguruma
 *   \w \b    outside of classes Oniguruma's \w has the numbers of Latin-1; \b becomes
 *            look-around
 * ^ and $ always match at lines in Oniguruma, hence MULTILINE. All else that the two
 * might read differently is refused by name.
 */
#include "lib/token/regex.h"

#include <stdlib.h>
#include <string.h>

#include "lib/token/unicode.h"
#include "lib/token/uset.h"

#define MAX_DEPTH 32

struct translate {
    const char *p, *end, *start;
    struct slu_buf *out;
    size_t atom;             /* where in out the atom of a quantifier begins */
    bool has_atom;           /* there is an atom */
    size_t group[MAX_DEPTH]; /* where in out the open groups begin */
    bool look[MAX_DEPTH];    /* whether the open groups are look-around */
    unsigned depth;
    unsigned fold_depth; /* depth of the outermost open (?i:, 0: none */
    struct slu_err *err;
};

static int refuse(struct translate *t, const char *what, const char *at, size_t n)
{
    size_t left = (size_t)(t->end - at);

    return slu_fail_at(t->err, SLU_E_UNSUPPORTED, (uint64_t)(at - t->start),
                       "pre-tokenizer: %s \"%.*s\" in a regular expression cannot be "
                       "reproduced",
                       what, (int)(n < left ? n : left), at);
}

static int put(struct translate *t, const char *p, size_t n)
{
    return slu_buf_append(t->out, p, n, t->err);
}

static int put_str(struct translate *t, const char *s)
{
    return put(t, s, strlen(s));
}

/* Begins an atom, which is put next. */
static void begin_atom(struct translate *t)
{
    t->atom = t->out->len;
    t->has_atom = true;
}

/* ---- classes ---- */

static bool at(const struct translate *t, const char *s)
{
    size_t n = strlen(s);

    return (size_t)(t->end - t->p) >= n && !memcmp(t->p, s, n);
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

/* Reads a number of min to max hexadecimal digits, and `close` if it is not 0. */
static bool hex(struct translate *t, unsigned min, unsigned max, char close,
                uint32_t *c)
{
    const char *p = t->p;
    unsigned n = 0;

    *c = 0;
    while (n < max && p < t->end && is_hex(*p)) {
        *c = *c << 4 | (uint32_t)(*p <= '9' ? *p - '0' : (*p | 32) - 'a' + 10);
        p++, n++;
    }
    if (n < min || *c >= 0x110000 || (*c >= 0xD800 && *c < 0xE000) ||
        (close && (p == t->end || *p++ != close)))
        return false;
    t->p = p;
    return true;
}

/* Reads one character, or the escape for one. */
static int one_char(struct translate *t, bool in_class, uint32_t *c)
{
    static const char NAMES[] = "tnrfvae", CODES[] = "\t\n\r\f\v\a\033";
    const char *from = t->p, *name;
    unsigned len;

    if (*t->p != '\\') {
        *c = uni_decode((const uint8_t *)t->p, &len);
        t->p += len;
        return SLU_OK;
    }
    if (t->end - t->p < 2)
        return refuse(t, "the escape", from, 1);
    char k = t->p[1];
    t->p += 2;
    if ((name = strchr(NAMES, k)) && k) {
        *c = (uint8_t)CODES[name - NAMES];
        return SLU_OK;
    }
    if (k == 'b' && in_class) {
        *c = '\b';
        return SLU_OK;
    }
    if (k == 'u' && hex(t, 4, 4, 0, c))
        return SLU_OK;
    if (k == 'x' && at(t, "{")) {
        t->p++;
        if (hex(t, 1, 8, '}', c))
            return SLU_OK;
    } else if (k == 'x' && hex(t, 1, 2, 0, c) && *c < 0x80) { /* else it is a byte */
        return SLU_OK;
    }
    *c = (uint8_t)k;
    bool alnum = (k >= '0' && k <= '9') || ((k | 32) >= 'a' && (k | 32) <= 'z');
    if (k >= ' ' && k < 0x7f && !alnum)
        return SLU_OK;
    t->p = from;
    return refuse(t, "the escape", from, 2);
}

/* Adds \p{Name}, \P{Name}, \p{^Name} or [:name:]; the name begins at t->p. */
static int add_property(struct translate *t, struct uset *s, const char *from,
                        const char *close)
{
    size_t n_close = strlen(close);
    const char *name = t->p;
    bool negate = at(t, "^");
    struct uset *one;

    if (negate)
        name++;
    for (t->p = name; t->p < t->end && !at(t, close); t->p++)
        ;
    if (t->p == t->end)
        return refuse(t, "the property", from, 2);
    if (!(one = uset_new()))
        return slu_fail_nomem(t->err, sizeof *one);
    bool known = uset_add_property(one, name, (size_t)(t->p - name));
    t->p += n_close;
    if (negate)
        uset_not(one);
    uset_or(s, one);
    free(one);
    return known ? SLU_OK : refuse(t, "the property", from, (size_t)(t->p - from));
}

/* At a backslash: adds \s, \p{...} and the like to *s, and sets *is_set. */
static int add_escape(struct translate *t, struct uset *s, bool *is_set)
{
    const char *from = t->p;
    char c = t->end - t->p > 1 ? t->p[1] : 0;
    bool negate = c >= 'A' && c <= 'Z';
    struct uset *one;
    int rc = SLU_OK;

    *is_set = c && strchr("sdwpSDWP", c);
    if (!*is_set)
        return SLU_OK;
    if (!(one = uset_new()))
        return slu_fail_nomem(t->err, sizeof *one);
    t->p += 2;
    if ((c | 32) != 'p') {
        uset_add_escape(one, (char)(c | 32));
    } else if (at(t, "{")) {
        t->p++;
        rc = add_property(t, one, from, "}");
    } else {
        rc = refuse(t, "the escape", from, 2);
    }
    if (negate)
        uset_not(one);
    uset_or(s, one);
    free(one);
    return rc;
}

static int class(struct translate *t, struct uset *s, unsigned depth);

/* Reads a part of a class, up to its bracket or "&&". */
static int class_part(struct translate *t, struct uset *s, unsigned depth)
{
    bool after = false; /* after a range or a set, where a "-" would be ambiguous */
    int rc = SLU_OK;

    while (!rc && t->p < t->end && *t->p != ']' && !at(t, "&&")) {
        const char *from = t->p;
        bool is_set = false;
        uint32_t first = 0, last;
        if (at(t, "[:")) {
            t->p += 2;
            rc = add_property(t, s, from, ":]");
            is_set = true;
        } else if (*t->p == '[') {
            struct uset *inner = uset_new();
            rc = inner ? class(t, inner, depth + 1)
                       : slu_fail_nomem(t->err, sizeof *inner);
            if (!rc)
                uset_or(s, inner);
            free(inner);
            is_set = true;
        } else if (*t->p == '\\') {
            rc = add_escape(t, s, &is_set);
        } else if (*t->p == '-' && after && !(t->end - t->p > 1 && t->p[1] == ']')) {
            return refuse(t, "the class", from, 4);
        }
        after = is_set;
        if (rc || is_set)
            continue;
        if ((rc = one_char(t, true, &first)))
            break;
        last = first;
        if (at(t, "-") && !at(t, "-]") && !at(t, "-&&")) {
            t->p++;
            if (t->p == t->end || *t->p == '[')
                return refuse(t, "the class", from, (size_t)(t->p - from) + 1);
            if ((rc = one_char(t, true, &last)))
                break;
            if (last < first)
                return refuse(t, "the class", from, (size_t)(t->p - from));
            after = true;
        }
        uset_add(s, first, last);
    }
    return rc;
}

/* At a bracket: adds the class to the empty set s. */
static int class(struct translate *t, struct uset *s, unsigned depth)
{
    const char *from = t->p++;
    struct uset *part = NULL;
    bool negate = at(t, "^"), first = true;
    int rc = SLU_OK;

    if (negate)
        t->p++;
    if (at(t, "]") || at(t, "&&") || depth > 8)
        return refuse(t, "the class", from, 4);
    while (!rc && t->p < t->end && *t->p != ']') {
        if (!first)
            t->p += 2; /* && */
        if (at(t, "]") || at(t, "&&"))
            return refuse(t, "the class", from, (size_t)(t->p - from) + 2);
        if (!(part = uset_new()))
            return slu_fail_nomem(t->err, sizeof *part);
        rc = class_part(t, part, depth);
        if (first)
            uset_or(s, part);
        else
            uset_and(s, part);
        free(part);
        first = false;
    }
    if (rc)
        return rc;
    if (t->p == t->end)
        return refuse(t, "the class", from, (size_t)(t->p - from));
    t->p++;
    if (negate)
        uset_not(s);
    return SLU_OK;
}

/* Appends a set as an atom. If case is ignored, a class matches more than it names; the
 * two libraries agree on ASCII only. */
static int put_set(struct translate *t, const struct uset *s, const char *from)
{
    for (size_t i = 2; t->fold_depth && i < sizeof s->word / sizeof *s->word; i++) {
        if (s->word[i])
            return refuse(t, "a class without regard to case,", from,
                          (size_t)(t->p - from));
    }
    begin_atom(t);
    return uset_put(s, t->out, t->err);
}

/* ---- outside classes ---- */

/* Adds the superscripts and fractions that \w has outside of classes only. */
static void add_latin1(struct uset *s)
{
    uset_add(s, 0xB2, 0xB3);
    uset_add(s, 0xB9, 0xB9);
    uset_add(s, 0xBC, 0xBE);
}

/* Appends \b or \B, by this \w. */
static int put_boundary(struct translate *t, bool negate)
{
    struct uset *word = uset_new();
    struct slu_buf w = SLU_BUF_INIT;
    int rc;

    if (!word)
        return slu_fail_nomem(t->err, sizeof *word);
    uset_add_escape(word, 'w');
    add_latin1(word);
    if (!(rc = uset_put(word, &w, t->err)))
        rc = slu_buf_printf(t->out, t->err,
                            "(?:(?<=%1$.*2$s)(?%3$c%1$.*2$s)|(?<!%1$.*2$s)(?%4$c%1$.*2$"
                            "s))",
                            (const char *)w.data, (int)w.len, negate ? '=' : '!',
                            negate ? '!' : '=');
    t->has_atom = false;
    slu_buf_release(&w);
    free(word);
    return rc;
}

/* Whether folding may join characters here: if case is ignored, Oniguruma also folds
 * single characters to several: ss, ff, fi, fl, st, and some that are not ASCII. */
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

static int character(struct translate *t)
{
    const char *from = t->p;
    bool odd = t->fold_depth && folds_oddly(t);
    uint32_t c;
    int rc = odd ? refuse(t, "a text without regard to case,", from, 2)
                 : one_char(t, false, &c);

    if (rc)
        return rc;
    if (t->fold_depth && c >= 0x80)
        return refuse(t, "a text without regard to case,", from, (size_t)(t->p - from));
    begin_atom(t);
    return slu_buf_printf(t->out, t->err, "\\x{%x}", c);
}

static int escape(struct translate *t)
{
    const char *from = t->p;
    char c = t->end - t->p > 1 ? t->p[1] : 0;
    struct uset *s;
    bool is_set;
    int rc;

    switch (c) {
    case 'b':
    case 'B':
        t->p += 2;
        return put_boundary(t, c == 'B');
    case 'A':
    case 'z':
    case 'Z':
        t->p += 2;
        t->has_atom = false;
        return put(t, from, 2);
    }
    if (!(s = uset_new()))
        return slu_fail_nomem(t->err, sizeof *s);
    if (c == 'w' || c == 'W') {
        uset_add_escape(s, 'w');
        add_latin1(s);
        if (c == 'W')
            uset_not(s);
        t->p += 2;
        is_set = true;
        rc = SLU_OK;
    } else {
        rc = add_escape(t, s, &is_set);
    }
    if (!rc)
        rc = is_set ? put_set(t, s, from) : character(t);
    free(s);
    return rc;
}

/* Opens a group at its parenthesis. */
static int open_group(struct translate *t)
{
    static const char *const OPEN[] = {
        "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    const char *open = "(";

    if (at(t, "(?")) {
        open = NULL;
        for (size_t i = 0; i < sizeof OPEN / sizeof *OPEN; i++) {
            if (at(t, OPEN[i]))
                open = OPEN[i];
        }
        if (!open)
            return refuse(t, "the group", t->p, 4);
    }
    if (at(t, "(*") || t->depth == MAX_DEPTH)
        return refuse(t, "the group", t->p, 2);
    t->group[t->depth] = t->out->len;
    t->look[t->depth] = strchr("=!", open[strlen(open) - 1]);
    t->depth++;
    if (!strcmp(open, "(?i:") && !t->fold_depth)
        t->fold_depth = t->depth;
    t->p += strlen(open);
    t->has_atom = false;
    return put_str(t, open);
}

static int close_group(struct translate *t)
{
    if (!t->depth)
        return refuse(t, "the group", t->p, 1);
    if (t->fold_depth == t->depth)
        t->fold_depth = 0;
    t->depth--;
    t->atom = t->group[t->depth];
    t->has_atom = !t->look[t->depth];
    return put(t, t->p++, 1);
}

/* Puts "(?:" before the atom and ")" after it. */
static int wrap_atom(struct translate *t)
{
    int rc = put_str(t, "(?:)");

    if (!rc) {
        uint8_t *p = t->out->data + t->atom;
        memmove(p + 3, p, t->out->len - t->atom - 4);
        memcpy(p, "(?:", 3);
    }
    return rc;
}

/* Returns the length of {n}, {n,}, {n,m} or {,m}; 0: it is text. */
static size_t interval(const struct translate *t, size_t *n_min, size_t *n_max,
                       bool *comma)
{
    const char *p = t->p + 1;

    for (*n_min = 0; p < t->end && *p >= '0' && *p <= '9'; p++)
        ++*n_min;
    *comma = p < t->end && *p == ',';
    p += *comma;
    for (*n_max = 0; *comma && p < t->end && *p >= '0' && *p <= '9'; p++)
        ++*n_max;
    if (p == t->end || *p != '}' || (!*n_min && !*n_max))
        return 0;
    return (size_t)(p - t->p) + 1;
}

static int quantifier(struct translate *t)
{
    const char *from = t->p;
    size_t n_min, n_max, n = 1;
    bool comma = false;
    int rc;

    if (*t->p == '{' && !(n = interval(t, &n_min, &n_max, &comma)))
        return character(t);
    if (!t->has_atom || n > 12)
        return refuse(t, "the repetition", from, n);
    t->p += n;
    if (*from != '{')
        rc = put(t, from, 1);
    else if (comma && !n_min)
        rc = slu_buf_printf(t->out, t->err, "{0%.*s", (int)(n - 1), from + 1);
    else
        rc = put(t, from, n);
    if (!rc && (at(t, "+") || at(t, "?"))) {
        bool own = *from == '{' && (*t->p == '+' || !comma);
        rc = own ? wrap_atom(t) : SLU_OK;
        if (!rc)
            rc = put(t, t->p++, 1);
    }
    t->has_atom = false; /* another quantifier would be ambiguous */
    if (!rc && t->p < t->end &&
        (strchr("?*+", *t->p) || (*t->p == '{' && interval(t, &n_min, &n_max, &comma))))
        return refuse(t, "the repetition", from, (size_t)(t->p - from) + 1);
    return rc;
}

static int class_outside(struct translate *t)
{
    const char *from = t->p;
    struct uset *s = uset_new();
    int rc = s ? class(t, s, 0) : slu_fail_nomem(t->err, sizeof *s);

    if (!rc)
        rc = put_set(t, s, from);
    free(s);
    return rc;
}

int regex_translate(const char *pattern, size_t len, struct slu_buf *out,
                    struct slu_err *err)
{
    struct translate state = {
        .p = pattern, .start = pattern, .end = pattern + len, .out = out, .err = err};
    struct translate *t = &state;
    int rc = SLU_OK;

    while (!rc && t->p < t->end) {
        switch (*t->p) {
        case '\\':
            rc = escape(t);
            break;
        case '[':
            rc = class_outside(t);
            break;
        case '(':
            rc = open_group(t);
            break;
        case ')':
            rc = close_group(t);
            break;
        case '?':
        case '*':
        case '+':
        case '{':
            rc = quantifier(t);
            break;
        case '^':
        case '$':
        case '|':
            t->has_atom = false;
            rc = put(t, t->p++, 1);
            break;
        case '.':
            begin_atom(t);
            rc = put(t, t->p++, 1);
            break;
        default:
            rc = character(t);
        }
    }
    return rc;
}
