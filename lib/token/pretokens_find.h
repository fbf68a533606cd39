/* pretokens_find.h - the masks' algebra; a template that each SIMD level includes.
 *
 * The including file defines `struct block` and, as static inline functions,
 *
 *   struct block load(const uint8_t *p, unsigned n)      n <= 64 bytes at p, then zeros
 *   uint64_t between(struct block x, uint8_t from, uint8_t to)     a bit for each byte
 *   void put_ends(uint64_t starts, uint32_t base, uint32_t *end)   base + each bit
 *
 * then includes this file and ends with PRETOKENS_TABLE(level). Bit i of a mask is byte i
 * of the block; a character's class stands at each of its bytes. X << 1 therefore reads
 * "the byte before is in X".
 */
#include <string.h>

#include "lib/token/pretokens.h"
#include "lib/token/unicode.h"

#define INLINE static inline __attribute__((always_inline))

struct masks {
    uint64_t upper, lower, number;
    uint64_t blank; /* white space except CR and LF */
    uint64_t line;  /* CR LF */
    uint64_t space, quote;
    uint64_t high;    /* bytes from 0x80 on */
    uint64_t lead;    /* bytes from 0xC0 on whose characters are not classified yet */
    uint64_t cont;    /* bytes 0x80 to 0xBF */
    uint64_t control; /* neither white space nor visible */
    uint64_t caseless, mark, han; /* not in ASCII */
    uint64_t letter; /* letters of either case, for splits that ignore case */
};

/* The differences between splits. */
struct rule {
    bool gpt2;           /* words begin with a space, not any character; no \r\n */
    unsigned digits;     /* of a number, at most; 0: no limit */
    bool mark_is_letter; /* [\p{L}\p{M}] */
    bool by_case;        /* o200k's words */
    bool slash;          /* [\r\n/]* after symbols */
    bool tail;           /* \s+$ first */
    bool parts;          /* numbers and Han are cut out first: text ends before them */
    bool ascii_front;    /* only ASCII symbols begin words, and only ASCII words */
    enum { QUOTE_NONE, QUOTE_FRONT, QUOTE_BACK } quote; /* where contractions stand */
    enum { HAN_NONE, HAN_SCRIPT, HAN_DEEPSEEK } han;    /* runs that are pretokens */
};

#define BIT(i)   (UINT64_C(1) << (i))
#define BELOW(i) ((i) >= 64 ? UINT64_MAX : BIT(i) - 1)

/* Finds the ASCII bytes of each class, and the other bytes. */
INLINE void classify(const struct block x, struct masks *m)
{
    m->upper = between(x, 'A', 'Z');
    m->lower = between(x, 'a', 'z');
    m->number = between(x, '0', '9');
    m->space = between(x, ' ', ' ');
    m->line = between(x, '\n', '\n') | between(x, '\r', '\r');
    m->blank = (between(x, '\t', '\r') & ~m->line) | m->space;
    m->quote = between(x, '\'', '\'');
    m->control = (between(x, 0, 31) & ~(m->blank | m->line)) | between(x, 127, 127);
    m->high = between(x, 0x80, 0xFF);
    m->lead = m->cont = m->caseless = m->mark = m->han = m->letter = 0;
}

/* Classifies characters that their first one or two bytes decide: letters of Latin and
 * Cyrillic, Han and Hangul. */
INLINE void classify_leads(const struct block x, struct masks *m, const struct rule r)
{
    const uint64_t lead = between(x, 0xC0, 0xFF), cont = m->high & ~lead;
    const uint64_t latin = between(x, 0xC3, 0xC3) &
                           ~((between(x, 0x97, 0x97) | between(x, 0xB7, 0xB7)) >> 1);
    const uint64_t d0 = between(x, 0xD0, 0xD0), d1 = between(x, 0xD1, 0xD1);
    const uint64_t latin_up = latin & between(x, 0x80, 0x9E) >> 1;
    const uint64_t up = latin_up | (d0 & between(x, 0x80, 0xAF) >> 1);
    const uint64_t low = (latin & ~latin_up) | (d0 & between(x, 0xB0, 0xBF) >> 1) |
                         (d1 & between(x, 0x80, 0x9F) >> 1);
    const uint64_t han = between(x, 0xE5, 0xE8), hangul = between(x, 0xEB, 0xEC);
    /* If case does not matter: U+0100 to U+02BF, U+0440 to U+047F, U+04C0 to U+04FF. */
    const uint64_t more =
        r.by_case ? 0 : between(x, 0xC4, 0xCA) | d1 | between(x, 0xD3, 0xD3);
    uint64_t *ideograph = r.han == HAN_NONE ? &m->caseless : &m->han;

    m->cont = cont;
    m->upper |= up | up << 1;
    m->lower |= low | low << 1;
    m->letter = more | more << 1;
    m->caseless = hangul | hangul << 1 | hangul << 2;
    *ideograph |= han | han << 1 | han << 2;
    m->lead = lead & ~(up | low | more | han | hangul);
}

/* Classifies the characters that begin at `lead`, into *m. Returns how many bytes of
 * the block can be used: less than n if a character is cut off or is left to the
 * scanner. */
typedef unsigned rest_fn(const uint8_t *p, unsigned n, bool is_end, uint64_t lead,
                         struct masks *m);
INLINE unsigned classify_rest(const uint8_t *p, unsigned n, bool is_end, uint64_t lead,
                              struct masks *m, const struct rule r)
{
    uint64_t of[PC_N] = {0};

    if (!is_end) { /* a character that the block's end cuts */
        uint8_t a = p[n - 1], b = p[n - 2], c = p[n - 3];
        n -= a >= 0xC0 ? 1 : b >= 0xE0 ? 2 : c >= 0xF0 ? 3 : 0;
    }
    for (lead &= BELOW(n); lead; lead &= lead - 1) {
        unsigned i = (unsigned)__builtin_ctzll(lead), len;
        uint32_t code = uni_decode(p + i, &len);
        enum pretokens_class c = pretokens_class[uni_category(code)];
        bool lost = c == PC_WHITE || (c == PC_NUMBER && (!r.gpt2 || r.digits));
        if (r.gpt2 && r.digits) /* to Digits these are numbers too (PRE_DIGIT) */
            lost = lost || uni_is_new_number(code);
        if (r.han == HAN_DEEPSEEK) {
            if ((code >= 0x4E00 && code <= 0x9FA5) ||
                (code >= 0x3040 && code <= 0x30FF))
                c = PC_HAN, lost = false;
            else
                lost = lost || c == PC_CONTROL;
        }
        if (r.han == HAN_SCRIPT && code >= 0x2E80 && uni_is_han(code)) {
            lost = c != PC_CASELESS; /* may be in words, symbols and numbers too */
            c = PC_HAN;
        }
        if (lost) {
            n = i;
            break;
        }
        of[c] |= (BIT(len) - 1) << i;
    }
    m->upper = of[PC_UPPER];
    m->lower = of[PC_LOWER];
    m->caseless = of[PC_CASELESS];
    m->mark = of[PC_MARK];
    m->number = of[PC_NUMBER];
    m->han = of[PC_HAN];
    return n;
}

/* Returns those runs of bits of `runs` that begin at a bit of `first`. */
INLINE uint64_t runs_from(uint64_t runs, uint64_t first)
{
    return runs & ~(runs + first);
}

/* Returns the bytes of 's 't 'm 'd 're 've 'll at p, which is the quote; 0: not a
 * contraction. There are n bytes at p. */
INLINE unsigned contraction_len(const uint8_t *p, unsigned n, bool any_case)
{
    uint8_t fold = any_case ? 0x20 : 0;
    uint8_t a = n > 1 ? p[1] | fold : 0, b = n > 2 ? p[2] | fold : 0;

    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    if (((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l'))
        return 3;
    return any_case && n > 2 && p[1] == 0xC5 && p[2] == 0xBF ? 3 : 0;
}

/* Changes *start for the contractions that begin at `quote`. Returns the number of
 * bytes whose starts are certain. */
INLINE unsigned contractions(const uint8_t *p, unsigned n, bool is_end, uint64_t quote,
                             uint64_t letter, const struct rule r, uint64_t *start)
{
    unsigned done = 0; /* where the last one ended */

    for (; quote; quote &= quote - 1) {
        unsigned i = (unsigned)__builtin_ctzll(quote);
        if (r.quote == QUOTE_BACK && i == done)
            continue;
        if (!is_end && i + 3 > n && (r.gpt2 || r.quote == QUOTE_BACK))
            return r.gpt2 ? i + 1 : i;
        unsigned len = contraction_len(p + i, n - i, !r.gpt2);
        if (!len)
            continue;
        done = i + len;
        if (r.quote == QUOTE_BACK) /* belongs to the word, in any case */
            *start &= ~((BIT(len) - 1) << i);
        if (r.gpt2)
            *start &= ~BIT(i + 1);
        if (done < 64)
            *start |= letter & BIT(done);
    }
    return n;
}

/* Returns the starts of numbers of at most three digits of one byte each. */
INLINE uint64_t threes(uint64_t number)
{
    uint64_t start = number & ~(number << 1), full = number & number << 1 & number << 2;

    for (uint64_t next = start; (next = next << 3 & full & number << 3);)
        start |= next;
    return start;
}

/* Returns the blanks that begin a pretoken after a line end: those after which only blanks
 * follow to the end of the white space. */
INLINE uint64_t behind_lines(uint64_t blank, uint64_t line)
{
    uint64_t start = blank & ~(blank << 1) & line << 1;
    uint64_t lost = (start + blank) & ~blank & line;

    for (; lost; lost &= lost - 1) {
        uint64_t before = start & ((lost & -lost) - 1);
        start &= ~BIT(63 - __builtin_clzll(before));
    }
    return start;
}

/* Returns the slashes among the bytes `at`. */
INLINE uint64_t slashes(const uint8_t *p, uint64_t at)
{
    uint64_t found = 0;

    for (; at; at &= at - 1) {
        if (p[__builtin_ctzll(at)] == '/')
            found |= at & -at;
    }
    return found;
}

/* Returns the starts of pretokens in the block of n bytes at p, which begins with a pretoken.
 * is_end: the text ends with the block. Starts that these bytes do not decide are left
 * out; *is_all: there are none of those. Bit 0 is not set. */
INLINE uint64_t find_starts(const uint8_t *p, unsigned n, bool is_end,
                            const struct masks *m, const struct rule r, bool *is_all)
{
    const uint64_t all = BELOW(n), number = m->number & all, han = m->han & all;
    const uint64_t blank = m->blank & all, line = m->line & all, white = blank | line;
    uint64_t upper = m->upper & all, caseless = m->caseless & all, mark = m->mark & all;
    uint64_t letter = upper | ((m->lower | m->letter) & all) | caseless, start,
             known = all;
    uint64_t lost = 0; /* from the first bit on nothing is known */

    if (r.mark_is_letter) {
        letter |= mark;
    } else if (r.by_case) { /* a mark after a letter belongs to the word */
        lost = mark & ~runs_from(mark, mark & letter << 1);
        letter |= mark;
        caseless |= mark;
        lost |= upper & caseless << 1;
    }
    const uint64_t symbol = all & ~(letter | number | white | han);
    const uint64_t first_letter = letter & ~(letter << 1);
    const uint64_t first_symbol = symbol & ~(symbol << 1);
    const uint64_t behind_space = m->space << 1;
    uint64_t rest = white; /* white space that does not belong to symbols */
    uint64_t lines = line;

    start = han & ~(han << 1);
    start |= r.digits == 0   ? number & ~(number << 1 | behind_space)
             : r.digits == 1 ? number
                             : threes(number);
    start |= first_symbol & ~behind_space;
    if (r.gpt2) {
        start |= first_letter & ~behind_space;
    } else {
        /* A symbol or blank directly before a word belongs to the word. */
        uint64_t lone = first_symbol & ~behind_space;
        if (r.ascii_front)
            lone &= ~m->high;
        lone = ((lone << 1) + m->cont) & ~m->cont;
        if (r.ascii_front) {
            lone &= ~m->high;
            lost |= runs_from(letter, first_letter & lone) & m->high;
        }
        start |= first_letter & ~(lone | blank << 1);
        uint64_t taken = runs_from(line, line & symbol << 1);
        rest &= ~taken;
        lines &= ~taken;
        if (r.slash)
            lost |= slashes(p, symbol & taken << 1);
        if (r.by_case)
            start |= upper & m->lower << 1;
    }
    if (r.han == HAN_DEEPSEEK)
        lost |= m->control & all;
    if (lost)
        known = (lost & -lost) - 1;
    uint64_t first_white = rest & ~(rest << 1);
    uint64_t next_white = rest >> 1 | (is_end ? BIT(n - 1) : 0);
    if (r.parts)
        next_white |= (number | han) >> 1;
    uint64_t in_white = (r.gpt2 ? rest : blank) & ~next_white;
    if (!r.gpt2)
        in_white |= behind_lines(blank, lines);
    if (rest >> (n - 1) && (!is_end || r.tail)) {
        /* White space that continues after the block, or ends the text. */
        uint64_t run = ~rest & all;
        unsigned at = run ? 64 - (unsigned)__builtin_clzll(run) : 0;
        if (is_end)
            in_white &= BELOW(at);
        else
            known &= BELOW(at + 1);
    }
    start |= first_white | in_white;
    uint64_t quote = m->quote & all;
    if (r.quote != QUOTE_NONE && quote) {
        if (r.quote == QUOTE_BACK)
            quote &= letter << 1;
        else
            quote &= first_symbol & ~behind_space;
        known &= BELOW(contractions(p, n, is_end, quote, letter, r, &start));
    }
    *is_all = (known & all) == all;
    return start & known & ~UINT64_C(1);
}

/* Finds pretokens by a rule: pretokens_fn. rest: classify_rest for this rule, as a function,
 * because inside the loop it would take registers that nearly all blocks need. */
INLINE size_t find_pretokens(const uint8_t *p, size_t n, uint32_t *end, size_t max,
                             const struct rule r, pre_scan_fn *scan, rest_fn *rest)
{
    size_t pos = 0, k = 0;

    while (pos < n && k < max && pos < UINT32_C(1) << 31) {
        const size_t left = n - pos;
        bool is_end = left <= 64;
        unsigned n_byte = is_end ? (unsigned)left : 64;
        const struct block x = load(p + pos, n_byte);
        struct masks m;
        classify(x, &m);
        if (m.high) {
            classify_leads(x, &m, r);
            struct masks more; /* apart, so that m needs no address */
            unsigned whole = rest(p + pos, n_byte, is_end, m.lead, &more);
            m.upper |= more.upper;
            m.lower |= more.lower;
            m.caseless |= more.caseless;
            m.mark |= more.mark;
            m.number |= more.number;
            m.han |= more.han;
            is_end = is_end && whole == n_byte;
            n_byte = whole;
        }
        uint64_t start = 0;
        bool is_all = false;
        if (n_byte)
            start = find_starts(p + pos, n_byte, is_end, &m, r, &is_all);
        if (start) {
            put_ends(start, (uint32_t)pos, end + k);
            k += (unsigned)__builtin_popcountll(start);
            pos += 63 - (unsigned)__builtin_clzll(start); /* end[k - 1] comes late */
        }
        if (is_end && is_all) {
            end[k++] = (uint32_t)n;
            break;
        }
        if (!start) {
            size_t stop = scan(p, n, pos);
            if (stop >= UINT32_C(1) << 31)
                break;
            end[k++] = (uint32_t)stop;
            pos = stop;
        }
    }
    return k;
}

#define FINDER(name, ...)                                                              \
    static __attribute__((noinline)) unsigned rest_##name(                             \
        const uint8_t *p, unsigned n, bool is_end, uint64_t lead, struct masks *m)     \
    {                                                                                  \
        const struct rule r = {__VA_ARGS__};                                           \
        return classify_rest(p, n, is_end, lead, m, r);                                \
    }                                                                                  \
    static size_t find_##name(const uint8_t *p, size_t n, uint32_t *end, size_t max,   \
                              pre_scan_fn *scan)                                       \
    {                                                                                  \
        const struct rule r = {__VA_ARGS__};                                           \
        return find_pretokens(p, n, end, max, r, scan, rest_##name);                   \
    }

FINDER(gpt2, .gpt2 = true, .quote = QUOTE_FRONT)
FINDER(digits_gpt2, .gpt2 = true, .digits = 1, .parts = true, .quote = QUOTE_FRONT)
FINDER(cl100k, .digits = 3, .tail = true, .quote = QUOTE_FRONT)
FINDER(llama3, .digits = 3, .quote = QUOTE_FRONT)
FINDER(qwen2, .digits = 1, .quote = QUOTE_FRONT)
FINDER(qwen35, .digits = 1, .mark_is_letter = true, .quote = QUOTE_FRONT)
FINDER(o200k, .digits = 3, .by_case = true, .slash = true, .quote = QUOTE_BACK)
FINDER(tekken, .digits = 1, .by_case = true, .slash = true)
FINDER(kimi, .digits = 3, .by_case = true, .quote = QUOTE_BACK, .han = HAN_SCRIPT)
FINDER(deepseek3, .digits = 3, .mark_is_letter = true, .parts = true,
       .ascii_front = true, .han = HAN_DEEPSEEK)

/* In the order of pretokens.c's names. */
#define PRETOKENS_TABLE(level)                                                         \
    const struct pretokens_table pretokens_##level = {                                 \
        #level,                                                                        \
        {find_gpt2, find_digits_gpt2, find_cl100k, find_llama3, find_qwen2,            \
         find_qwen35, find_o200k, find_tekken, find_kimi, find_deepseek3}}
