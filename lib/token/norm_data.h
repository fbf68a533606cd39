/* norm_data.h - tables of the normal forms, lower case and accents, as the `tokenizers`
 * library has them: Unicode 9.0 for the forms and accents, 17.0 for lower case. Made by
 * mknorm.py. */
#ifndef SLU_TOK_NORM_DATA_H
#define SLU_TOK_NORM_DATA_H

#include <stdint.h>

/* A character without its bit is one the text can be cut in front of: the form leaves
 * it as it is and joins nothing before it with it. */
#define NORM_BIT_NFC    1
#define NORM_BIT_NFD    2
#define NORM_BIT_NFKC   4
#define NORM_BIT_NFKD   8
#define NORM_BIT_LOWER  16 /* is not lower case */
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

/* What code points become, all the way down, Hangul apart; by code point. `to` is a
 * place in norm_pool, or, of lower case that is one code point, that. compat has what
 * differs from canon. */
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
