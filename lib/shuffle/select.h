/* select.h - finds the key at which a given number of tokens is reached, in the order
 * of keys, without sorting.
 *
 * For a group of (key, tokens) rows, in the order of keys, a cut says how far a number
 * of tokens reaches: all rows below its key are within, and of the rows with an equal
 * key as many as fit in the rest. The search goes digit by digit (a radix selection
 * with weights): the sums of tokens by the keys' leading bits tell the cell that holds
 * the cut, and only rows of that cell are read again. So a billion rows take two passes
 * over 24 bytes each, in a log (bytelog.h), and a few MiB.
 *
 * A group may be taken in several rounds, each in another order: the key in round r > 0
 * is a hash of the key and r.
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
    uint64_t round;      /* in: the round whose keys count */
    uint64_t tok;        /* in: tokens to take */
    struct slu_u128 key; /* out: rows below this key are within */
    uint64_t left;       /* out: tokens to take of rows with an equal key */
    bool all;            /* out: all rows are within; key and left are unused */
};

/* budget_byte: limits the rows in memory; more go to tmpdir, which is copied. */
SLU_MUST_USE int slu_select_new(struct slu_select **s, uint64_t budget_byte,
                                const char *tmpdir, struct slu_err *err);
/* Adds a row; n_tok below 2^56. */
SLU_MUST_USE int slu_select_add(struct slu_select *s, struct slu_u128 key,
                                unsigned group, uint64_t n_tok, struct slu_err *err);
/* Finds n cuts, which are in the order of their groups; otherwise SLU_E_USAGE. Call
 * once per handle. */
SLU_MUST_USE int slu_select_cut(struct slu_select *s, struct slu_cut *cut, unsigned n,
                                struct slu_err *err);
/* Bytes written to temporary files so far. */
uint64_t slu_select_spilled(const struct slu_select *s);
/* NULL is legal. */
void slu_select_free(struct slu_select *s);

/* Returns the key in a round; in round 0 the key itself. */
struct slu_u128 slu_select_turn(struct slu_u128 key, uint64_t round);

/* Whether the cut takes a row of its group and round. Rows with the cut's key share
 * cut->left in the order of calls: after the first that does not fit, no more are taken. */
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
