/* scan.c - hand-written scanners for the splits that nearly every model of today uses.
 *
 * Each returns the end of the pretoken at pos, by the alternatives of its regular
 * expression in their order (the expressions are in the table at the end;
 * tests/unit/test_pre.c runs both on the same text). Every call reads a run of
 * characters a bounded number of times, and at most two further calls read characters
 * that it has read after the pretoken's end, so a scan is linear.
 */
#include "lib/token/scan.h"

#include <string.h>

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

/* As class_at, but numbers of Unicode 17 are numbers too (PRE_DIGIT), and so is the end
 * of the text. */
static inline unsigned class_digit(const uint8_t *p, size_t n, size_t pos,
                                   unsigned *len)
{
    *len = 0;
    if (pos == n)
        return C_NUMBER;
    unsigned k = class_at(p, pos, len);
    if (p[pos] < 0xF0)
        return k;
    uint32_t c = uni_decode(p + pos, len);
    return uni_is_new_number(c) ? C_NUMBER : k;
}

/* GPT-2's split after Digits, one digit at a time: StarCoder, Command R. */
static size_t scan_digits_gpt2(const uint8_t *p, size_t n, size_t pos)
{
    unsigned len, next_len;
    unsigned c = class_digit(p, n, pos, &len);
    size_t k = contraction(p, n, pos, false), end = pos + len, last = pos;

    if (k)
        return pos + k;
    if (c & C_NUMBER)
        return end;
    if (p[pos] == ' ') {
        unsigned next = class_digit(p, n, end, &next_len);
        if (next & (C_LETTER | C_SYMBOL)) {
            c = next;
            end += next_len;
        }
    }
    unsigned mask = c & C_LETTER ? C_LETTER : c & C_SYMBOL ? C_SYMBOL : C_WHITE;
    for (; (c = class_digit(p, n, end, &len)) & mask; end += len)
        last = end;
    /* \s+(?!\S)|\s+ */
    return mask != C_WHITE || (c & C_NUMBER) || last == pos ? end : last;
}

/* The family of cl100k:
 *   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?WORD+|\p{N}{1,digits}|
 *    ?SYMBOL+[\r\n]*|white
 * WORD is \p{L}, in newer models with \p{M}; SYMBOL is all but space, word, number. */
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

/* Kimi excludes Han characters from heads and bodies: Han letters are then only Han,
 * and Han marks are symbols. */
enum { C_HAN = 1 << 8 };
#define INLINE static inline __attribute__((always_inline))

INLINE unsigned class_han(const uint8_t *p, size_t pos, unsigned *len, bool han)
{
    if (!han || p[pos] < 0xE2)
        return class_at(p, pos, len);
    uint32_t c = uni_decode(p + pos, len);
    unsigned k = scan_class[uni_category(c)];
    if (!uni_is_han(c))
        return k;
    return C_HAN | (k & C_LETTER ? 0 : k & C_MARK ? C_OTHER : k);
}

INLINE size_t run_han(const uint8_t *p, size_t n, size_t pos, unsigned mask, bool han)
{
    unsigned len;

    if (!han)
        return run(p, n, pos, mask);
    while (pos < n && (class_han(p, pos, &len, han) & mask))
        pos += len;
    return pos;
}

/* Returns the end of HEAD*BODY+ at pos, or 0. If no lower-case letter follows the
 * heads, the last head that can be a body is given back to BODY+; those after it are
 * upper case, so the word ends there. */
INLINE size_t o200k_word(const uint8_t *p, size_t n, size_t pos, bool han)
{
    size_t body = 0;
    unsigned len;

    while (pos < n) {
        unsigned c = class_han(p, pos, &len, han);
        if (c & C_LOWER)
            return run_han(p, n, pos + len, O_BODY, han);
        if (!(c & O_HEAD))
            break;
        pos += len;
        if (c & O_BODY)
            body = pos;
    }
    return body;
}

/* The family of o200k. contractions: at the end of words; han: Han runs come first;
 * tail: a character that may be among the line ends after symbols. */
struct o200k {
    unsigned digits;
    bool contractions, han;
    char tail;
};

INLINE size_t scan_o200k_like(const uint8_t *p, size_t n, size_t pos, struct o200k k)
{
    unsigned len;
    unsigned c = class_han(p, pos, &len, k.han);
    size_t next = pos + len, end = 0;

    if (c & C_HAN)
        return run_han(p, n, next, C_HAN, true);
    if (c & C_NUMBER) {
        for (unsigned i = 1;
             i < k.digits && next < n && (class_at(p, next, &len) & C_NUMBER); i++)
            next += len;
        return next;
    }
    unsigned d = next < n ? class_han(p, next, &len, k.han) : 0;
    if (c & (C_LETTER | C_MARK)) {
        if ((c & C_MARK) && (d & (O_HEAD | O_BODY)))
            end = o200k_word(p, n, next, k.han);
        if (!end)
            end = o200k_word(p, n, pos, k.han);
        if (!end)
            end = run_han(p, n, pos, O_HEAD, k.han);
    } else if (!(c & C_LINE) && (d & (O_HEAD | O_BODY))) {
        end = o200k_word(p, n, next, k.han);
        if (!end)
            end = run_han(p, n, next, O_HEAD, k.han);
    }
    if (end)
        return end < n && k.contractions ? end + contraction(p, n, end, true) : end;
    if ((c & C_SYMBOL) || (p[pos] == ' ' && (d & C_SYMBOL))) {
        end = run_han(p, n, next, C_SYMBOL, k.han);
        while (end < n && (p[end] == '\r' || p[end] == '\n' || p[end] == k.tail))
            end++;
        return end;
    }
    return white_space(p, n, pos, WHITE_LINES);
}

static size_t scan_o200k(const uint8_t *p, size_t n, size_t pos)
{
    return scan_o200k_like(p, n, pos, (struct o200k){3, true, false, '/'});
}

/* Mistral's Tekken and Nemotron. */
static size_t scan_tekken(const uint8_t *p, size_t n, size_t pos)
{
    return scan_o200k_like(p, n, pos, (struct o200k){1, false, false, '/'});
}

static size_t scan_kimi(const uint8_t *p, size_t n, size_t pos)
{
    return scan_o200k_like(p, n, pos, (struct o200k){3, true, true, '\n'});
}

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define O_HEADS     "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define O_BODIES    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define K_HEADS     "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define K_BODIES    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define PREFIX      "[^\\r\\n\\p{L}\\p{N}]?"
#define LINES_RAW   "\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
#define LINES       "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Spellings of one split follow each other; the first has the canonical name. */
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
    {"tekken",
     PREFIX O_HEADS "*" O_BODIES "+|" PREFIX O_HEADS "+" O_BODIES
                    "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES,
     scan_tekken},
    {"kimi",
     "[\\p{Han}]+|" PREFIX K_HEADS "*" K_BODIES "+" CONTRACTION "?|" PREFIX K_HEADS
     "+" K_BODIES "*" CONTRACTION "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES,
     scan_kimi},
};

/* Steps in a row that one scanner does. Each is an expression whose matches are
 * isolated, or "=" and the name of a scanner. Where a step cuts, the text ends for the
 * next one. */
static const struct {
    const char *name, *regex[PRE_ROW_MAX];
    pre_scan_fn *scan;
} rows[] = {
    {"deepseek3",
     {"\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
      "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|" LINES_RAW},
     scan_deepseek3},
    {"deepseek3",
     {"\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
      "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES},
     scan_deepseek3},
    {"digits-gpt2", {PRE_DIGIT, "=gpt2"}, scan_digits_gpt2},
};

pre_scan_fn *pre_scan_by_row(const char *const *step, size_t n)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t k = 0;
        while (k < n && k < PRE_ROW_MAX && rows[i].regex[k] &&
               !strcmp(rows[i].regex[k], step[k]))
            k++;
        if (k == n && (n == PRE_ROW_MAX || !rows[i].regex[n]))
            return rows[i].scan;
    }
    return NULL;
}

pre_scan_fn *pre_scan_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!strcmp(rows[i].name, name))
            return rows[i].scan;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strcmp(known[i].name, name))
            return known[i].scan;
    }
    return NULL;
}

pre_scan_fn *pre_scan_by_regex(const char *regex, size_t len)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        /* Oniguruma reads tiktoken's {1,3}+ differently. */
        if (strstr(known[i].regex, "{1,3}+"))
            continue;
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
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].scan == scan)
            return rows[i].name;
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
