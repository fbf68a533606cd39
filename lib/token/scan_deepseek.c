/* scan_deepseek.c - DeepSeek V3's splits, three in a row, as one scanner.
 *
 *   \p{N}{1,3}
 *   [\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+
 *   [ASCII punctuation][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
 *     ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * Numbers and runs of CJK are cut out first. The last split sees either such a run or
 * the text between them; both end where they meet. A character that matches no
 * alternative (a control or unassigned one without a letter after it) belongs to the
 * gap before the next match, which is a pretoken too. */
#include "lib/token/scan.h"

enum {
    D_GAP = 1 << 0,    /* part of a match only if a letter follows */
    D_WORD = 1 << 1,   /* \p{L} \p{M} */
    D_SYMBOL = 1 << 2, /* \p{P} \p{S} */
    D_SPACE = 1 << 3,
    D_LINE = 1 << 4,
    D_NUMBER = 1 << 5,
    D_END = 1 << 6, /* the text, or this part of it, ends */
    D_WHITE = D_SPACE | D_LINE,
};

static const uint8_t class_of_category[UNI_N] = {
    [UNI_CN] = D_GAP,    [UNI_LU] = D_WORD,   [UNI_LL] = D_WORD,   [UNI_LT] = D_WORD,
    [UNI_LM] = D_WORD,   [UNI_LO] = D_WORD,   [UNI_MN] = D_WORD,   [UNI_MC] = D_WORD,
    [UNI_ME] = D_WORD,   [UNI_ND] = D_NUMBER, [UNI_NL] = D_NUMBER, [UNI_NO] = D_NUMBER,
    [UNI_PC] = D_SYMBOL, [UNI_PD] = D_SYMBOL, [UNI_PS] = D_SYMBOL, [UNI_PE] = D_SYMBOL,
    [UNI_PI] = D_SYMBOL, [UNI_PF] = D_SYMBOL, [UNI_PO] = D_SYMBOL, [UNI_SM] = D_SYMBOL,
    [UNI_SC] = D_SYMBOL, [UNI_SK] = D_SYMBOL, [UNI_SO] = D_SYMBOL, [UNI_ZS] = D_SPACE,
    [UNI_ZL] = D_SPACE,  [UNI_ZP] = D_SPACE,  [UNI_CC] = D_GAP,    [UNI_CF] = D_GAP,
    [UNI_CS] = D_GAP,    [UNI_CO] = D_GAP,    [UNI_CW] = D_SPACE,
};

static inline bool is_cjk(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
}

/* A part of a text: a run of CJK, or the text between such runs. */
struct part {
    const uint8_t *p;
    size_t n;
    bool cjk;
};

static inline unsigned class_here(struct part t, size_t pos, unsigned *len)
{
    *len = 0;
    if (pos >= t.n)
        return D_END;
    uint32_t c = uni_decode(t.p + pos, len);
    if (is_cjk(c) != t.cjk)
        return D_END;
    if (c == '\n' || c == '\r')
        return D_LINE;
    unsigned k = class_of_category[uni_category(c)];
    return k & D_NUMBER ? D_END : k;
}

static inline size_t run_of(struct part t, size_t pos, unsigned mask)
{
    unsigned len;

    while (class_here(t, pos, &len) & mask)
        pos += len;
    return pos;
}

static inline bool is_letter(uint8_t c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ */
static inline size_t white(struct part t, size_t pos)
{
    size_t start = pos, last = pos, line = 0;
    unsigned len, c;

    for (; (c = class_here(t, pos, &len)) & D_WHITE; pos += len) {
        last = pos;
        if (c & D_LINE)
            line = pos + len;
    }
    if (line)
        return line;
    return (c & D_END) || last == start ? pos : last;
}

/* Returns the end of a gap: from a character that no alternative matches to the next
 * match. */
static inline size_t gap(struct part t, size_t pos)
{
    size_t last = pos;
    unsigned len, c;

    for (; (c = class_here(t, pos, &len)) & D_GAP; pos += len)
        last = pos;
    return c & D_WORD ? last : pos;
}

static inline bool is_number(const uint8_t *p, size_t pos, unsigned *len)
{
    return class_of_category[uni_category(uni_decode(p + pos, len))] & D_NUMBER;
}

size_t scan_deepseek3(const uint8_t *p, size_t n, size_t pos)
{
    unsigned len, len2;
    struct part t = {p, n, is_cjk(uni_decode(p + pos, &len))};
    unsigned c = class_here(t, pos, &len), d;
    size_t next = pos + len;

    switch (c) {
    case D_END: /* a number */
        for (unsigned i = 1; i < 3 && next < n && is_number(p, next, &len); i++)
            next += len;
        return next;
    case D_WORD:
        return run_of(t, next, D_WORD);
    case D_LINE:
        return white(t, pos);
    case D_SYMBOL:
        if (p[pos] < 0x80 && next < n && is_letter(p[next])) {
            while (next < n && is_letter(p[next]))
                next++;
            return next;
        }
        return run_of(t, run_of(t, next, D_SYMBOL), D_LINE);
    default: /* D_SPACE, D_GAP */
        d = class_here(t, next, &len2);
        if (d & D_WORD)
            return run_of(t, next + len2, D_WORD);
        if (p[pos] == ' ' && (d & D_SYMBOL))
            return run_of(t, run_of(t, next, D_SYMBOL), D_LINE);
        return c == D_SPACE ? white(t, pos) : gap(t, pos);
    }
}
