/* scan.h - classes of characters, and alternatives of several splits. Private to
 * scan*.c. */
#ifndef SLU_TOK_SCAN_H
#define SLU_TOK_SCAN_H

#include "lib/token/pre.h"
#include "lib/token/unicode.h"

/* The classes that splits distinguish, one bit each. */
enum {
    C_OTHER = 1 << 0,
    C_UPPER = 1 << 1,    /* Lu Lt */
    C_LOWER = 1 << 2,    /* Ll */
    C_CASELESS = 1 << 3, /* Lm Lo */
    C_MARK = 1 << 4,
    C_NUMBER = 1 << 5,
    C_SPACE = 1 << 6, /* White_Space except CR and LF */
    C_LINE = 1 << 7,  /* CR LF */
    C_LETTER = C_UPPER | C_LOWER | C_CASELESS,
    C_WHITE = C_SPACE | C_LINE,
    C_SYMBOL = C_OTHER | C_MARK, /* [^\s\p{L}\p{N}] */
};

static const uint8_t scan_class[UNI_N] = {
    [UNI_CN] = C_OTHER,  [UNI_LU] = C_UPPER,    [UNI_LL] = C_LOWER,
    [UNI_LT] = C_UPPER,  [UNI_LM] = C_CASELESS, [UNI_LO] = C_CASELESS,
    [UNI_MN] = C_MARK,   [UNI_MC] = C_MARK,     [UNI_ME] = C_MARK,
    [UNI_ND] = C_NUMBER, [UNI_NL] = C_NUMBER,   [UNI_NO] = C_NUMBER,
    [UNI_PC] = C_OTHER,  [UNI_PD] = C_OTHER,    [UNI_PS] = C_OTHER,
    [UNI_PE] = C_OTHER,  [UNI_PI] = C_OTHER,    [UNI_PF] = C_OTHER,
    [UNI_PO] = C_OTHER,  [UNI_SM] = C_OTHER,    [UNI_SC] = C_OTHER,
    [UNI_SK] = C_OTHER,  [UNI_SO] = C_OTHER,    [UNI_ZS] = C_SPACE,
    [UNI_ZL] = C_SPACE,  [UNI_ZP] = C_SPACE,    [UNI_CC] = C_OTHER,
    [UNI_CF] = C_OTHER,  [UNI_CS] = C_OTHER,    [UNI_CO] = C_OTHER,
    [UNI_CW] = C_SPACE,
};

#define R2(x)  x, x
#define R4(x)  R2(x), R2(x)
#define R5(x)  R4(x), x
#define R7(x)  R4(x), R2(x), x
#define R10(x) R5(x), R5(x)
#define R16(x) R4(x), R4(x), R4(x), R4(x)
#define R26(x) R10(x), R16(x)
static const uint8_t scan_ascii[128] = {
    R7(C_OTHER),  R2(C_OTHER),  C_SPACE,
    C_LINE,       R2(C_SPACE),  C_LINE,        /* NUL to CR */
    R16(C_OTHER), R2(C_OTHER),  C_SPACE,       /* SO to space */
    R10(C_OTHER), R5(C_OTHER),  R10(C_NUMBER), /* ! to 9 */
    R7(C_OTHER),  R26(C_UPPER), R5(C_OTHER),
    C_OTHER,      R26(C_LOWER), R5(C_OTHER),
};

static inline unsigned class_at(const uint8_t *p, size_t pos, unsigned *len)
{
    if (p[pos] < 0x80) {
        *len = 1;
        return scan_ascii[p[pos]];
    }
    return scan_class[uni_category(uni_decode(p + pos, len))];
}

/* Returns the end of the characters of `mask` that begin at pos. */
static inline size_t run(const uint8_t *p, size_t n, size_t pos, unsigned mask)
{
    while (pos < n) {
        unsigned len;
        if (p[pos] < 0x80) {
            if (!(scan_ascii[p[pos]] & mask))
                break;
            pos++;
        } else if (class_at(p, pos, &len) & mask) {
            pos += len;
        } else {
            break;
        }
    }
    return pos;
}

/* Returns the bytes of (?i:'s|'t|'re|'ve|'m|'ll|'d) at pos; 0: none. In any case,
 * U+017F is an s too. */
static inline size_t contraction(const uint8_t *p, size_t n, size_t pos, bool any_case)
{
    size_t left = n - pos;

    if (left < 2 || p[pos] != '\'')
        return 0;
    uint8_t fold = any_case ? 0x20 : 0, a = p[pos + 1] | fold;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    if (left < 3)
        return 0;
    if (any_case && p[pos + 1] == 0xC5 && p[pos + 2] == 0xBF)
        return 3;
    uint8_t b = p[pos + 2] | fold;
    return ((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* The alternatives for white space. */
enum white {
    WHITE_PLAIN, /* \s+(?!\S)|\s+ */
    WHITE_LINES, /* \s*[\r\n]+|\s+(?!\S)|\s+ */
    WHITE_TAIL,  /* \s+$|\s*[\r\n]|\s+(?!\S)|\s */
};

static inline size_t white_space(const uint8_t *p, size_t n, size_t pos, enum white how)
{
    size_t start = pos, last = pos, line = 0;
    unsigned len;

    while (pos < n) {
        unsigned c = class_at(p, pos, &len);
        if (!(c & C_WHITE))
            break;
        last = pos;
        pos += len;
        if (c & C_LINE)
            line = pos;
    }
    if (how == WHITE_TAIL && pos == n)
        return n;
    if (how != WHITE_PLAIN && line)
        return line;
    return pos == n || last == start ? pos : last;
}

/* Scans DeepSeek V3's three splits in a row (scan_deepseek.c). */
size_t scan_deepseek3(const uint8_t *p, size_t n, size_t pos);

#endif
