/* uset.c - sets of characters. */
#include "lib/token/uset.h"

#include <stdlib.h>
#include <string.h>

#include "lib/token/unicode.h"

#define N_WORD (0x110000 / 64)
#define BIT(k) (UINT64_C(1) << (k))

struct uset *uset_new(void)
{
    return calloc(1, sizeof(struct uset));
}

void uset_add(struct uset *s, uint32_t first, uint32_t last)
{
    for (uint32_t c = first; c <= last; c++)
        s->word[c / 64] |= BIT(c % 64);
}

void uset_or(struct uset *s, const struct uset *other)
{
    for (size_t i = 0; i < N_WORD; i++)
        s->word[i] |= other->word[i];
}

void uset_and(struct uset *s, const struct uset *other)
{
    for (size_t i = 0; i < N_WORD; i++)
        s->word[i] &= other->word[i];
}

void uset_not(struct uset *s)
{
    for (size_t i = 0; i < N_WORD; i++)
        s->word[i] = ~s->word[i];
}

bool uset_has(const struct uset *s, uint32_t c)
{
    return s->word[c / 64] >> (c % 64) & 1;
}

/* ---- properties ---- */

#define SPACES   (BIT(UNI_ZS) | BIT(UNI_ZL) | BIT(UNI_ZP) | BIT(UNI_CW))
#define DIGITS   BIT(UNI_ND)
#define MARKS    (BIT(UNI_MN) | BIT(UNI_MC) | BIT(UNI_ME))
#define CONTROLS (BIT(UNI_CC) | BIT(UNI_CW))

/* Adds the characters whose category is in a set of bits. */
static void add_categories(struct uset *s, uint64_t categories)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (categories >> uni_category(c) & 1)
            s->word[c / 64] |= BIT(c % 64);
    }
}

static void add_alphabetic(struct uset *s)
{
    size_t n = sizeof uni_alphabetic / sizeof *uni_alphabetic;

    for (size_t i = 0; i < n; i++)
        uset_add(s, uni_alphabetic[i].first, uni_alphabetic[i].last);
}

void uset_add_escape(struct uset *s, char c)
{
    if (c == 'w')
        add_alphabetic(s);
    add_categories(s, c == 's'   ? SPACES
                      : c == 'd' ? DIGITS
                                 : MARKS | DIGITS | BIT(UNI_PC));
}

#define LETTERS (BIT(UNI_LU) | BIT(UNI_LL) | BIT(UNI_LT) | BIT(UNI_LM) | BIT(UNI_LO))
#define NUMBERS (BIT(UNI_ND) | BIT(UNI_NL) | BIT(UNI_NO))
#define PUNCTUATION                                                                    \
    (BIT(UNI_PC) | BIT(UNI_PD) | BIT(UNI_PS) | BIT(UNI_PE) | BIT(UNI_PI) |             \
     BIT(UNI_PF) | BIT(UNI_PO))
#define SYMBOLS    (BIT(UNI_SM) | BIT(UNI_SC) | BIT(UNI_SK) | BIT(UNI_SO))
#define SEPARATORS (BIT(UNI_ZS) | BIT(UNI_ZL) | BIT(UNI_ZP))
#define OTHERS     (CONTROLS | BIT(UNI_CF) | BIT(UNI_CS) | BIT(UNI_CO) | BIT(UNI_CN))

static const struct {
    const char *brief, *name;
    uint64_t set;
} CATEGORIES[] = {
    {"l", "letter", LETTERS},
    {"lu", "uppercaseletter", BIT(UNI_LU)},
    {"ll", "lowercaseletter", BIT(UNI_LL)},
    {"lt", "titlecaseletter", BIT(UNI_LT)},
    {"lm", "modifierletter", BIT(UNI_LM)},
    {"lo", "otherletter", BIT(UNI_LO)},
    {"m", "mark", MARKS},
    {"mn", "nonspacingmark", BIT(UNI_MN)},
    {"mc", "spacingmark", BIT(UNI_MC)},
    {"me", "enclosingmark", BIT(UNI_ME)},
    {"n", "number", NUMBERS},
    {"nd", "decimalnumber", BIT(UNI_ND)},
    {"nl", "letternumber", BIT(UNI_NL)},
    {"no", "othernumber", BIT(UNI_NO)},
    {"p", "punctuation", PUNCTUATION},
    {"pc", "connectorpunctuation", BIT(UNI_PC)},
    {"pd", "dashpunctuation", BIT(UNI_PD)},
    {"ps", "openpunctuation", BIT(UNI_PS)},
    {"pe", "closepunctuation", BIT(UNI_PE)},
    {"pi", "initialpunctuation", BIT(UNI_PI)},
    {"pf", "finalpunctuation", BIT(UNI_PF)},
    {"po", "otherpunctuation", BIT(UNI_PO)},
    {"s", "symbol", SYMBOLS},
    {"sm", "mathsymbol", BIT(UNI_SM)},
    {"sc", "currencysymbol", BIT(UNI_SC)},
    {"sk", "modifiersymbol", BIT(UNI_SK)},
    {"so", "othersymbol", BIT(UNI_SO)},
    {"z", "separator", SEPARATORS},
    {"zs", "spaceseparator", BIT(UNI_ZS)},
    {"zl", "lineseparator", BIT(UNI_ZL)},
    {"zp", "paragraphseparator", BIT(UNI_ZP)},
    {"c", "other", OTHERS},
    {"cc", "control", CONTROLS},
    {"cf", "format", BIT(UNI_CF)},
    {"co", "privateuse", BIT(UNI_CO)},
    {"cn", "unassigned", BIT(UNI_CN)},
    {"digit", "digit", DIGITS},
    {"space", "whitespace", SPACES},
};

static bool add_script(struct uset *s, const char *name)
{
    for (uint32_t k = 0; k < sizeof uni_script_name / sizeof *uni_script_name; k++) {
        if (strcmp(uni_script_name[k], name))
            continue;
        for (size_t i = 0; i < sizeof uni_script / sizeof *uni_script; i++) {
            if (uni_script[i].script == k)
                uset_add(s, uni_script[i].first, uni_script[i].last);
        }
        return true;
    }
    return false;
}

bool uset_add_property(struct uset *s, const char *p, size_t n)
{
    char name[40];
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (p[i] == ' ' || p[i] == '-' || p[i] == '_')
            continue;
        if (len + 1 == sizeof name)
            return false;
        name[len++] = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] | 32) : p[i];
    }
    name[len] = '\0';
    for (size_t i = 0; i < sizeof CATEGORIES / sizeof *CATEGORIES; i++) {
        if (!strcmp(CATEGORIES[i].brief, name) || !strcmp(CATEGORIES[i].name, name)) {
            add_categories(s, CATEGORIES[i].set);
            return true;
        }
    }
    if (!strcmp(name, "any")) {
        uset_add(s, 0, 0x10FFFF);
    } else if (!strcmp(name, "ascii")) {
        uset_add(s, 0, 0x7F);
    } else if (!strcmp(name, "alpha") || !strcmp(name, "alphabetic")) {
        add_alphabetic(s);
    } else if (!strcmp(name, "alnum")) {
        add_alphabetic(s);
        add_categories(s, DIGITS);
    } else {
        return add_script(s, name);
    }
    return true;
}

int uset_put(const struct uset *s, struct slu_buf *out, struct slu_err *err)
{
    size_t start = out->len;
    int rc = slu_buf_append(out, "[", 1, err);

    for (uint32_t c = 0; c < 0x110000 && !rc;) {
        if (c >= 0xD800 && c < 0xE000) {
            c = 0xE000;
            continue;
        }
        if (!uset_has(s, c)) {
            c++;
            continue;
        }
        uint32_t first = c;
        while (c < 0x110000 && c != 0xD800 && uset_has(s, c))
            c++;
        rc = slu_buf_printf(out, err, "\\x{%x}-\\x{%x}", first, c - 1);
    }
    if (!rc && out->len == start + 1) { /* a class cannot be empty */
        out->len = start;
        return slu_buf_printf(out, err, "[^\\x{0}-\\x{10ffff}]");
    }
    return rc ? rc : slu_buf_append(out, "]", 1, err);
}
