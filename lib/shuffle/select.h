/* select.h - where a cut by tokens falls among keys in any order.
 *
 * Of a group of (key, tokens) rows, sorted by key, a cut is how far one comes with so
 * many tokens: all rows below its key are within, and of those whose key is equal as
 * many as fit in what is left. It is found without sorting, digit by digit (a radix
 * selection with weights): the sums of tokens by the keys' leading bits say in which
 * cell the cut lies; the rows of that cell alone are looked at again. So a billion rows
 * cost two passes over 24 bytes each, in a spool (spool.h), and a few MiB.
 *
 * A group may be gone through several times, in another order each time: the key in
 * round r > 0 is a hash of the key and r.
 *
 * Thread safety: one thread at a time on a handle; slu_select_turn is pure.
 */
#ifndef SLU_SELECT_H
#define SLU_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"

SLU_BEGIN_DECLS

struct slu_select;

#define SLU_SELECT_GROUPS 256

struct slu_cut {
    unsigned group;      /* in: below SLU_SELECT_GROUPS */
    uint64_t round;      /* in: whose keys */
    uint64_t tok;        /* in: how far to go */
    struct slu_u128 key; /* out: rows below it are within; */
    uint64_t left;       /* and so many tokens of those that are equal to it; */
    bool all;            /* or all rows are, and the two say nothing */
};

/* budget_byte: of the rows in memory; past it they go to tmpdir, which is copied. */
SLU_MUST_USE int slu_select_new(struct slu_select **s, uint64_t budget_byte,
                                const char *tmpdir, struct slu_err *err);
/* Adds a row; n_tok below 2^56. */
SLU_MUST_USE int slu_select_add(struct slu_select *s, struct slu_u128 key,
                                unsigned group, uint64_t n_tok, struct slu_err *err);
/* Finds n cuts; those of a group lie side by side. Once a handle. */
SLU_MUST_USE int slu_select_cut(struct slu_select *s, struct slu_cut *cut, unsigned n,
                                struct slu_err *err);
/* Bytes written to temporary files so far. */
uint64_t slu_select_spilled(const struct slu_select *s);
/* NULL is legal. */
void slu_select_free(struct slu_select *s);

/* The key in a round; in round 0 the key itself. */
struct slu_u128 slu_select_turn(struct slu_u128 key, uint64_t round);

/* Whether a row of the cut's group and round is within, where equal keys are asked
 * about in an order of the caller's: it takes from cut->left, and the first of them
 * that does not fit ends them. */
static inline bool slu_cut_take(struct slu_cut *cut, struct slu_u128 key,
                                uint64_t n_tok)
{
    int c = cut->all ? -1 : slu_u128_cmp(key, cut->key);
    if (c)
        return c < 0;
    bool fits = n_tok <= cut->left;
    cut->left = fits ? cut->left - n_tok : 0;
    return fits;
}

SLU_END_DECLS

#endif
