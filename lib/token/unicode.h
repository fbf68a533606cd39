/* unicode.h - general categories and scripts, Unicode 16.0.0, and decoding of UTF-8
 * known to be valid. The tables are made by mkunicode.py. */
#ifndef SLU_TOK_UNICODE_H
#define SLU_TOK_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNI_VERSION "16.0.0"

/* In mkunicode.py's order. */
enum uni_category {
    UNI_CN,
    UNI_LU,
    UNI_LL,
    UNI_LT,
    UNI_LM,
    UNI_LO,
    UNI_MN,
    UNI_MC,
    UNI_ME,
    UNI_ND,
    UNI_NL,
    UNI_NO,
    UNI_PC,
    UNI_PD,
    UNI_PS,
    UNI_PE,
    UNI_PI,
    UNI_PF,
    UNI_PO,
    UNI_SM,
    UNI_SC,
    UNI_SK,
    UNI_SO,
    UNI_ZS,
    UNI_ZL,
    UNI_ZP,
    UNI_CC,
    UNI_CF,
    UNI_CS,
    UNI_CO,
    UNI_CW, /* control characters that are White_Space: U+0009 to U+000D, U+0085 */
    UNI_N
};

extern const uint16_t uni_index[8704];
extern const uint8_t uni_block[263][128];

static inline enum uni_category uni_category(uint32_t c)
{
    return (enum uni_category)uni_block[uni_index[c >> 7]][c & 127];
}

/* Code points first to last; ranges are sorted and disjoint. `script` is an index of
 * uni_script_name; characters in no range have none (Unknown). */
struct uni_range {
    uint32_t first, last, script;
};
extern const struct uni_range uni_script[979];
extern const struct uni_range uni_alphabetic[757];
extern const char *const uni_script_name[170]; /* lower case, without "_" */
#define UNI_HAN 49                             /* uni_script_name[49] is "han" */

static inline const struct uni_range *uni_find(const struct uni_range *r, size_t n,
                                               uint32_t c)
{
    while (n > 1) {
        size_t half = n / 2;
        if (r[half].first <= c)
            r += half;
        n -= half;
    }
    return c >= r->first && c <= r->last ? r : NULL;
}

static inline bool uni_is_han(uint32_t c)
{
    if (c - 0x4E00 <= 0x9FFF - 0x4E00)
        return true;
    if (c < 0x2E80)
        return false;
    const struct uni_range *r =
        uni_find(uni_script, sizeof uni_script / sizeof *uni_script, c);
    return r && r->script == UNI_HAN;
}

/* Role of a character when text is cut into words (lib/dedup/near/shingle.h), by Unicode
 * 18 and UAX #29. In mkunicode.py's order. */
enum uni_role {
    UNI_RUN,       /* part of a word between spaces */
    UNI_TAIL,      /* the same, but joins UNI_LINKS before it (InCB=Consonant) */
    UNI_SIGN,      /* begins a grapheme of a script that is written without spaces */
    UNI_CONSONANT, /* the same, but joins UNI_LINKS before it (InCB=Consonant) */
    UNI_PREPENDS,  /* joins the next character: GCB=Prepend */
    UNI_JOINS,     /* joins the one before: GCB=Extend, SpacingMark, ZWJ */
    UNI_EXTENDS,   /* the same, and passes on a link before it (InCB=Extend) */
    UNI_LINKS      /* the same, and links a consonant after it (InCB=Linker) */
};
#define UNI_N_ROLE 821
extern const struct uni_range uni_role_of[UNI_N_ROLE]; /* script: the role */

static inline enum uni_role uni_role(uint32_t c)
{
    if (c < 0x2EA)
        return UNI_RUN;
    if (c - 0x4E00 <= 0x9FFF - 0x4E00)
        return UNI_SIGN;
    const struct uni_range *r = uni_find(uni_role_of, UNI_N_ROLE, c);
    return r ? (enum uni_role)r->script : UNI_RUN;
}

/* Whether c is punctuation (general category P), and not also Extended_Pictographic. */
static inline bool uni_is_mark(uint32_t c)
{
    return uni_category(c) - UNI_PC <= UNI_PO - UNI_PC && c != 0x203C && c != 0x2049 &&
           c != 0x3030 && c != 0x303D;
}

/* Whether c is one of the numbers that came with Unicode 17. */
static inline bool uni_is_new_number(uint32_t c)
{
    return c - 0x11DE0 < 10 || c - 0x16FF4 < 3;
}

/* Returns the code point at p and its length in bytes. */
static inline uint32_t uni_decode(const uint8_t *p, unsigned *len)
{
    uint32_t c = p[0];

    if (c < 0x80) {
        *len = 1;
        return c;
    }
    if (c < 0xE0) {
        *len = 2;
        return (c & 0x1F) << 6 | (p[1] & 0x3F);
    }
    if (c < 0xF0) {
        *len = 3;
        return (c & 0x0F) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3F);
    }
    *len = 4;
    return (c & 7) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3F);
}

#endif
