#include "text.h"

#include <string.h>

#define S SLU_CHAR_SPACE
#define M SLU_CHAR_MARK
#define I (SLU_CHAR_MARK | SLU_CHAR_INNER)
#define L (SLU_CHAR_ALPHA | SLU_CHAR_SOLID)
#define D SLU_CHAR_SOLID
const uint8_t slu_char_ascii[128] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, S, S, S, S, S, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, S, S, S, S, S, I, I, I, M, I, I, I, M, M, I, M, I, I, I, I, D, D, D, D,
    D, D, D, D, D, D, I, I, M, M, M, I, I, L, L, L, L, L, L, L, L, L, L, L, L, L,
    L, L, L, L, L, L, L, L, L, L, L, L, L, M, I, M, M, I, M, L, L, L, L, L, L, L,
    L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, M, M, M, M, 0,
};
#undef S
#undef M
#undef I
#undef L
#undef D

/* Beyond ASCII. */
static const struct range {
    uint32_t first, last;
} terminal[] = {
    {0x589, 0x589},     {0x61D, 0x61F},     {0x6D4, 0x6D4},     {0x700, 0x702},
    {0x7F9, 0x7F9},     {0x837, 0x837},     {0x839, 0x839},     {0x83D, 0x83E},
    {0x964, 0x965},     {0x104A, 0x104B},   {0x1362, 0x1362},   {0x1367, 0x1368},
    {0x166E, 0x166E},   {0x1735, 0x1736},   {0x17D4, 0x17D6},   {0x17D9, 0x17DA},
    {0x1803, 0x1803},   {0x1809, 0x1809},   {0x1944, 0x1945},   {0x1AA8, 0x1AAB},
    {0x1B5A, 0x1B5B},   {0x1B5E, 0x1B5F},   {0x1B7D, 0x1B7E},   {0x1C3B, 0x1C3C},
    {0x1C7E, 0x1C7F},   {0x203C, 0x203D},   {0x2047, 0x2049},   {0x2E2E, 0x2E2E},
    {0x2E3C, 0x2E3C},   {0x2E53, 0x2E54},   {0x3002, 0x3002},   {0xA4FF, 0xA4FF},
    {0xA60E, 0xA60F},   {0xA6F3, 0xA6F3},   {0xA6F7, 0xA6F7},   {0xA876, 0xA877},
    {0xA8CE, 0xA8CF},   {0xA92F, 0xA92F},   {0xA9C8, 0xA9C9},   {0xAA5D, 0xAA5F},
    {0xAAF0, 0xAAF1},   {0xABEB, 0xABEB},   {0xFE52, 0xFE52},   {0xFE56, 0xFE57},
    {0xFF01, 0xFF01},   {0xFF0E, 0xFF0E},   {0xFF1F, 0xFF1F},   {0xFF61, 0xFF61},
    {0x10A56, 0x10A57}, {0x10F55, 0x10F59}, {0x10F86, 0x10F89}, {0x11047, 0x11048},
    {0x110BE, 0x110C1}, {0x11141, 0x11143}, {0x111C5, 0x111C6}, {0x111CD, 0x111CD},
    {0x111DE, 0x111DF}, {0x11238, 0x11239}, {0x1123B, 0x1123C}, {0x112A9, 0x112A9},
    {0x1144B, 0x1144C}, {0x115C2, 0x115C3}, {0x115C9, 0x115D7}, {0x11641, 0x11642},
    {0x1173C, 0x1173E}, {0x11944, 0x11944}, {0x11946, 0x11946}, {0x11A42, 0x11A43},
    {0x11A9B, 0x11A9C}, {0x11C41, 0x11C42}, {0x11EF7, 0x11EF8}, {0x11F43, 0x11F44},
    {0x16A6E, 0x16A6F}, {0x16AF5, 0x16AF5}, {0x16B37, 0x16B38}, {0x16B44, 0x16B44},
    {0x16E98, 0x16E98}, {0x1BC9F, 0x1BC9F}, {0x1DA88, 0x1DA88},
};
static const uint16_t symbols[] = {
    0xAB,   0xB4,   0xBB,   0x2013, 0x2014, 0x2019, 0x201C, 0x201D, 0x201E, 0x2026,
    0x2236, 0x2501, 0x25BA, 0x3001, 0x3008, 0x3009, 0x300A, 0x300B, 0x300C, 0x300D,
    0x3010, 0x3011, 0xFF05, 0xFF08, 0xFF09, 0xFF0C, 0xFF11, 0xFF1A, 0xFF1B, 0xFF5E,
};

bool slu_char_ends(uint32_t c)
{
    if (c < 0x80)
        return c == '.' || c == '?' || c == '!';
    size_t from = 0, n = sizeof terminal / sizeof *terminal;
    while (n > 1) {
        const size_t half = n / 2;
        from += terminal[from + half].first <= c ? half : 0;
        n -= half;
    }
    return c >= terminal[from].first && c <= terminal[from].last;
}

static bool is_symbol(uint32_t c)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (symbols[i] >= c)
            return symbols[i] == c;
    return false;
}

static bool is_sign(uint32_t c)
{
    /* No such script has letters below Thai, but for two of Bopomofo. */
    if (c < 0xE00 && c - 0x2EA > 1)
        return false;
    const enum uni_role role = uni_role(c);
    return role == UNI_SIGN || role == UNI_CONSONANT;
}

unsigned slu_char_wide(uint32_t c)
{
    const enum uni_category cat = uni_category(c);
    if (cat == UNI_ZS || cat == UNI_ZL || cat == UNI_ZP || cat == UNI_CW)
        return SLU_CHAR_SPACE;
    if (cat >= UNI_PC && cat <= UNI_SO)
        return SLU_CHAR_MARK |
               (c < 0x3000 &&
                        (cat == UNI_PC || cat == UNI_PD || cat == UNI_PO || c == 0x2019)
                    ? SLU_CHAR_INNER
                    : 0U) |
               (is_symbol(c) || slu_char_ends(c) ? 0U : SLU_CHAR_SOLID);
    return (cat >= UNI_LU && cat <= UNI_LO ? SLU_CHAR_ALPHA : 0U) |
           (c < 0xA0 || is_symbol(c) ? 0U : SLU_CHAR_SOLID) |
           (is_sign(c) ? SLU_CHAR_SIGN : 0U);
}

/* ---- pieces of a text ---- */

/* The first byte of the last character. */
static size_t last_at(const uint8_t *p, size_t n)
{
    for (n--; n && (p[n] & 0xC0) == 0x80;)
        n--;
    return n;
}

uint32_t slu_text_last(const uint8_t *p, size_t n)
{
    unsigned len;
    return uni_decode(p + last_at(p, n), &len);
}

const uint8_t *slu_text_strip(const uint8_t *p, size_t *n)
{
    unsigned len;
    while (*n && slu_char_at(p, &len) & SLU_CHAR_SPACE) {
        p += len;
        *n -= len;
    }
    while (*n) {
        const size_t at = last_at(p, *n);
        if (!(slu_char_at(p + at, &len) & SLU_CHAR_SPACE))
            break;
        *n = at;
    }
    return p;
}

size_t slu_text_chars(const uint8_t *p, size_t n)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += (p[i] & 0xC0) != 0x80;
    return all;
}

/* Bytes that a line break begins with, or may begin with. */
static const bool breaks[256] = {
    ['\n'] = true, ['\v'] = true, ['\f'] = true, ['\r'] = true, [0x1C] = true,
    [0x1D] = true, [0x1E] = true, [0xC2] = true, [0xE2] = true,
};

size_t slu_text_line(const uint8_t *p, size_t n, size_t *skip)
{
    for (size_t i = 0;; i++) {
        while (i < n && !breaks[p[i]])
            i++;
        *skip = 0;
        if (i == n)
            return n;
        if (p[i] == '\r')
            *skip = i + 1 < n && p[i + 1] == '\n' ? 2 : 1;
        else if (p[i] < 0x80)
            *skip = 1;
        else if (p[i] == 0xC2 && p[i + 1] == 0x85)
            *skip = 2;
        else if (p[i] == 0xE2 && p[i + 1] == 0x80 && (p[i + 2] & 0xFE) == 0xA8)
            *skip = 3;
        if (*skip)
            return i;
    }
}

/* ---- words ---- */

/* Adds the characters that join a sign in front of p. */
static const uint8_t *join(const uint8_t *p, const uint8_t *end, struct slu_word *w)
{
    bool links = false;
    unsigned len;
    for (; p < end && *p >= 0x80; p += len) {
        const uint32_t c = uni_decode(p, &len);
        const enum uni_role role = uni_role(c);
        if (role < UNI_JOINS && !(links && (role == UNI_TAIL || role == UNI_CONSONANT)))
            break;
        links = role == UNI_LINKS || (role == UNI_EXTENDS && links);
        w->is |= slu_char_wide(c) & (SLU_CHAR_ALPHA | SLU_CHAR_SOLID);
        w->n_char++;
    }
    return p;
}

/* Adds the characters that go on with a word in front of p. */
static const uint8_t *go_on(const uint8_t *p, const uint8_t *end, struct slu_word *w)
{
    unsigned is = w->is, len;
    size_t n_joint = 0; /* bytes that begin no character */
    const uint8_t *const from = p;
    for (;;) {
        while (p < end && *p < 0x80 && !(slu_char_ascii[*p] & SLU_CHAR_CUTS))
            is |= slu_char_ascii[*p++];
        if (p == end)
            break;
        const unsigned next = slu_char_at(p, &len);
        if (next & (SLU_CHAR_SPACE | SLU_CHAR_SIGN))
            break;
        if (next & SLU_CHAR_MARK) {
            unsigned behind;
            if (!(next & SLU_CHAR_INNER) || p + len == end ||
                slu_char_at(p + len, &behind) & SLU_CHAR_CUTS)
                break;
        }
        is |= next;
        n_joint += len - 1;
        p += len;
    }
    w->is = is & (SLU_CHAR_ALPHA | SLU_CHAR_SOLID);
    w->n_char += (size_t)(p - from) - n_joint;
    return p;
}

bool slu_word_next(const uint8_t **at, const uint8_t *end, struct slu_word *w)
{
    const uint8_t *p = *at;
    unsigned first = 0, len = 0;
    for (; p < end && (first = slu_char_at(p, &len)) & SLU_CHAR_SPACE; p += len)
        ;
    *at = p;
    if (p == end)
        return false;
    *w = (struct slu_word){
        .p = p, .n_char = 1, .is = first & (SLU_CHAR_ALPHA | SLU_CHAR_SOLID)};
    p += len;
    if (first & SLU_CHAR_MARK)
        for (; (size_t)(end - p) >= len && !memcmp(p, w->p, len); p += len)
            w->n_char++;
    else
        p = first & SLU_CHAR_SIGN ? join(p, end, w) : go_on(p, end, w);
    w->n_byte = (size_t)(p - w->p);
    *at = p;
    return true;
}

/* ---- sentences ---- */

static bool closes(uint32_t c)
{
    const enum uni_category cat = uni_category(c);
    return c == '"' || c == '\'' || cat == UNI_PE || cat == UNI_PF || cat == UNI_PI;
}

/* Whether a sentence ends at i, behind terminal marks of which `last` is the last;
 * *next: where the next one begins. */
static bool ends_at(const uint8_t *p, size_t n, size_t i, uint32_t last, bool dot,
                    size_t *next)
{
    unsigned len;
    while (i < n && closes(uni_decode(p + i, &len)))
        i += len;
    const size_t from = i;
    while (i < n && slu_char_at(p + i, &len) & SLU_CHAR_SPACE)
        i += len;
    *next = i;
    if (i == n)
        return true;
    if (i == from)
        return last >= 0x3000;
    return !dot || uni_category(uni_decode(p + i, &len)) != UNI_LL;
}

size_t slu_sentence(const uint8_t *p, size_t n)
{
    size_t i = 0, next;
    unsigned len;
    while (i < n) {
        const size_t from = i;
        uint32_t c = uni_decode(p + i, &len), last = 0;
        for (; slu_char_ends(c); c = i < n ? uni_decode(p + i, &len) : 0) {
            last = c;
            i += len;
        }
        if (i == from)
            i += len;
        else if (ends_at(p, n, i, last, i - from == 1 && last == '.', &next))
            return next;
    }
    return n;
}
