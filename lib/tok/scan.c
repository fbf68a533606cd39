/* scan.c - hand-written scanners for the splits that nearly every model of today uses.
 *
 * Each returns the end of the piece at pos, by the alternatives of its regular
 * expression in their order (the expressions are in the table at the end;
 * tests/unit/test_tokenizer.c runs both on the same text). Every call reads a run of
 * characters a bounded number of times, and what it reads behind the piece's end is
 * read by at most two further calls, so a scan is linear.
 */
#include "lib/tok/pre.h"

#include <string.h>

#include "lib/tok/unicode.h"

/* What splits distinguish, a bit each. */
enum {
    C_OTHER = 1 << 0,
    C_UPPER = 1 << 1,    /* Lu Lt */
    C_LOWER = 1 << 2,    /* Ll */
    C_CASELESS = 1 << 3, /* Lm Lo */
    C_MARK = 1 << 4,
    C_NUMBER = 1 << 5,
    C_SPACE = 1 << 6, /* White_Space but CR and LF */
    C_LINE = 1 << 7,  /* CR LF */
    C_LETTER = C_UPPER | C_LOWER | C_CASELESS,
    C_WHITE = C_SPACE | C_LINE,
    C_SYMBOL = C_OTHER | C_MARK, /* [^\s\p{L}\p{N}] */
};

static const uint8_t class_of_category[UNI_N] = {
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
static const uint8_t class_of_ascii[128] = {
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
        return class_of_ascii[p[pos]];
    }
    return class_of_category[uni_category(uni_decode(p + pos, len))];
}

/* The end of the run of characters of `mask` at pos. */
static inline size_t run(const uint8_t *p, size_t n, size_t pos, unsigned mask)
{
    while (pos < n) {
        unsigned len;
        if (p[pos] < 0x80) {
            if (!(class_of_ascii[p[pos]] & mask))
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

/* At an apostrophe: the bytes of (?i:'s|'t|'re|'ve|'m|'ll|'d), 0: none. Without case,
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

/* How a run of white space ends. */
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

/* '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static size_t scan_gpt2(const uint8_t *p, size_t n, size_t pos)
{
    size_t k = contraction(p, n, pos, false), at = pos;
    unsigned len;

    if (k)
        return pos + k;
    unsigned c = class_at(p, pos, &len);
    if (p[pos] == ' ' && pos + 1 < n) {
        unsigned next = class_at(p, pos + 1, &len);
        if (!(next & C_WHITE)) {
            c = next;
            at = pos + 1;
        }
    }
    if (c & C_LETTER)
        return run(p, n, at, C_LETTER);
    if (c & C_NUMBER)
        return run(p, n, at, C_NUMBER);
    if (c & C_SYMBOL)
        return run(p, n, at, C_SYMBOL);
    return white_space(p, n, pos, WHITE_PLAIN);
}

/* The family of cl100k:
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?WORD+|\p{N}{1,digits}|
 * ?SYMBOL+[\r\n]*|white `word` is \p{L}, in newer models with \p{M}; symbols are what
 * is no space, word or number. */
static inline __attribute__((always_inline)) size_t
scan_cl100k_like(const uint8_t *p, size_t n, size_t pos, unsigned digits, unsigned word,
                 enum white how)
{
    unsigned len, symbol = C_SYMBOL & ~word;
    size_t k = contraction(p, n, pos, true);

    if (k)
        return pos + k;
    unsigned c = class_at(p, pos, &len);
    if (c & word)
        return run(p, n, pos + len, word);
    if (c & C_NUMBER) {
        size_t end = pos + len;
        while (--digits && end < n && (class_at(p, end, &len) & C_NUMBER))
            end += len;
        return end;
    }
    if (c & C_LINE)
        return white_space(p, n, pos, how);
    size_t next = pos + len;
    unsigned d = next < n ? class_at(p, next, &len) : 0;
    if (d & word)
        return run(p, n, next + len, word);
    if ((c & symbol) || (p[pos] == ' ' && (d & symbol)))
        return run(p, n, run(p, n, next, symbol), C_LINE);
    return white_space(p, n, pos, how);
}

static size_t scan_cl100k(const uint8_t *p, size_t n, size_t pos)
{
    return scan_cl100k_like(p, n, pos, 3, C_LETTER, WHITE_TAIL);
}

static size_t scan_llama3(const uint8_t *p, size_t n, size_t pos)
{
    return scan_cl100k_like(p, n, pos, 3, C_LETTER, WHITE_LINES);
}

static size_t scan_qwen2(const uint8_t *p, size_t n, size_t pos)
{
    return scan_cl100k_like(p, n, pos, 1, C_LETTER, WHITE_LINES);
}

static size_t scan_qwen35(const uint8_t *p, size_t n, size_t pos)
{
    return scan_cl100k_like(p, n, pos, 1, C_LETTER | C_MARK, WHITE_LINES);
}

#define O_HEAD (C_UPPER | C_CASELESS | C_MARK) /* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] */
#define O_BODY (C_LOWER | C_CASELESS | C_MARK) /* [\p{Ll}\p{Lm}\p{Lo}\p{M}] */

/* HEAD*BODY+ at pos, or 0. Where no lower-case letter follows the heads, the last of
 * them that can be a body is given back to BODY+; those behind it are upper case, so it
 * ends there. */
static size_t o200k_word(const uint8_t *p, size_t n, size_t pos)
{
    size_t body = 0;
    unsigned len;

    while (pos < n) {
        unsigned c = class_at(p, pos, &len);
        if (c & C_LOWER)
            return run(p, n, pos + len, O_BODY);
        if (!(c & O_HEAD))
            break;
        pos += len;
        if (c & O_BODY)
            body = pos;
    }
    return body;
}

static size_t scan_o200k(const uint8_t *p, size_t n, size_t pos)
{
    unsigned len;
    unsigned c = class_at(p, pos, &len);
    size_t next = pos + len, end = 0;

    if (c & C_NUMBER) {
        for (unsigned i = 1; i < 3 && next < n && (class_at(p, next, &len) & C_NUMBER);
             i++)
            next += len;
        return next;
    }
    unsigned d = next < n ? class_at(p, next, &len) : 0;
    if (c & (C_LETTER | C_MARK)) {
        if ((c & C_MARK) && (d & (O_HEAD | O_BODY)))
            end = o200k_word(p, n, next);
        if (!end)
            end = o200k_word(p, n, pos);
        if (!end)
            end = run(p, n, pos, O_HEAD);
    } else if (!(c & C_LINE) && (d & (O_HEAD | O_BODY))) {
        end = o200k_word(p, n, next);
        if (!end)
            end = run(p, n, next, O_HEAD);
    }
    if (end)
        return end < n ? end + contraction(p, n, end, true) : end;
    if ((c & C_SYMBOL) || (p[pos] == ' ' && (d & C_SYMBOL))) {
        end = run(p, n, next, C_SYMBOL);
        while (end < n && (p[end] == '\r' || p[end] == '\n' || p[end] == '/'))
            end++;
        return end;
    }
    return white_space(p, n, pos, WHITE_LINES);
}

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define O_HEADS     "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define O_BODIES    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define LINES       "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Spellings of one split follow each other; the first is what is called by the name. */
static const struct {
    const char *name, *regex;
    pre_scan_fn *scan;
} known[] = {
    {"gpt2",
     "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| "
     "?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s",
     scan_gpt2},
    {"r50k",
     "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| "
     "?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     scan_gpt2},
    {"p50k",
     "'s|'t|'re|'ve|'m|'ll|'d| ?[\\p{L}]+| ?[\\p{N}]+| "
     "?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     scan_gpt2},
    {"cl100k",
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| "
     "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
     scan_cl100k},
    {"llama3",
     CONTRACTION
     "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES,
     scan_llama3},
    {"builtin",
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| "
     "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
     scan_llama3},
    {"qwen2",
     CONTRACTION
     "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES,
     scan_qwen2},
    {"qwen35",
     CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
                 "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES,
     scan_qwen35},
    {"o200k",
     "[^\\r\\n\\p{L}\\p{N}]?" O_HEADS "*" O_BODIES "+" CONTRACTION "?|"
     "[^\\r\\n\\p{L}\\p{N}]?" O_HEADS "+" O_BODIES "*" CONTRACTION "?|"
     "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES,
     scan_o200k},
};

pre_scan_fn *pre_scan_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strcmp(known[i].name, name))
            return known[i].scan;
    }
    return NULL;
}

pre_scan_fn *pre_scan_by_regex(const char *regex, size_t len)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].regex) == len && !memcmp(known[i].regex, regex, len))
            return known[i].scan;
    }
    return NULL;
}

const char *pre_scan_name(pre_scan_fn *scan)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].scan == scan)
            return known[i].name;
    }
    return "";
}

const char *pre_regex_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strcmp(known[i].name, name))
            return known[i].regex;
    }
    return NULL;
}
