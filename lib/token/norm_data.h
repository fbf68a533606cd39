/* norm_data.h - tables of the normal forms, lower case and accents, as the `tokenizers`
 * library has them: Unicode 9.0 for the forms and accents, 17.0 for lower case. Made by
 * mknorm.py. */
#ifndef SLU_TOK_NORM_DATA_H
#define SLU_TOK_NORM_DATA_H

#include <stdint.h>

/* If a character lacks the bit of a form, the text can be cut before it: the form does
 * not change it, and joins it to nothing before it. */
#define NORM_BIT_NFC    1
#define NORM_BIT_NFD    2
#define NORM_BIT_NFKC   4
#define NORM_BIT_NFKD   8
#define NORM_BIT_LOWER  16 /* lower case differs */
#define NORM_BIT_ACCENT 32 /* is a combining mark */

extern const uint8_t norm_index[8704];
extern const uint8_t norm_block[][128];

static inline uint8_t norm_bits(uint32_t c)
{
    return norm_block[norm_index[c >> 7]][c & 127];
}

/* Combining classes that are not 0, by code point. */
struct norm_class {
    uint32_t from, to;
    uint8_t ccc;
};
extern const struct norm_class norm_class[];
extern const unsigned norm_n_class;

/* Full decompositions (without Hangul) and lower case, by code point. `to`: the index
 * in norm_pool; for a lower case of one code point, that code point. norm_compat has
 * only entries that differ from norm_canon. */
struct norm_map {
    uint32_t from;
    uint16_t len; /* code points */
    uint32_t to;
};
extern const struct norm_map norm_canon[], norm_compat[], norm_lower[];
extern const unsigned norm_n_canon, norm_n_compat, norm_n_lower;
extern const uint32_t norm_pool[];

/* Pairs that compose; sorted. */
struct norm_pair {
    uint32_t first, second, both;
};
extern const struct norm_pair norm_pair[];
extern const unsigned norm_n_pair;

#endif
