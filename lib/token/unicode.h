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
