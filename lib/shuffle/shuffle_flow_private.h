/* shuffle_flow_private.h - shared by shuffle_flow.c, shuffle_account.c and
 * shuffle_gather.c, and private to them. */
#ifndef SLU_SHUFFLE_FLOW_PRIVATE_H
#define SLU_SHUFFLE_FLOW_PRIVATE_H

#include "lib/shuffle/shuffle_flow.h"

/* The flow's tables. */
enum { LINE, SOURCE, STATE, SEQ, ACCOUNT, CELL, KEY, TABLES };
enum { COUNT_WORDS = 3 }; /* documents, sequences, tokens */
enum { KEY_WORDS = 4 };   /* shuffle_cut.c */

/* Returns the number of words for what a part took by the mix; 0 without a mix. */
size_t slu_shuffle_took_words(const struct slu_shuffle_flow *q);
/* Writes the part's account, and what it took, to the table of accounts. */
SLU_MUST_USE int slu_shuffle_put_account(const struct slu_shuffle_flow *q,
                                         const struct slu_permute *p,
                                         struct slu_err *err);
/* Adds a part's account, and what it took, from its table t. */
SLU_MUST_USE int slu_shuffle_add_account(struct slu_shuffle_flow *q, uint64_t part,
                                         struct slu_table *t, struct slu_err *err);
/* Makes q->cell for n_range ranges. */
SLU_MUST_USE int slu_shuffle_new_cells(struct slu_shuffle_flow *q, uint64_t n_range,
                                       struct slu_err *err);
/* Reads the next row of a part's table; SLU_E_CHECKSUM unless it has n_byte bytes. */
SLU_MUST_USE int slu_shuffle_next_bytes(struct slu_shuffle_flow *q, unsigned table,
                                        uint64_t part, struct slu_table *t,
                                        size_t n_byte, struct slu_row *row,
                                        struct slu_err *err);
/* Puts COUNT_WORDS words at w; returns the end of them. */
uint64_t *slu_shuffle_put_count(uint64_t *w, struct slu_count n);
/* Return a count of sequences and tokens, a cell, from the words of a table. They have no
 * loss_tokens: only the account of a part does. */
struct slu_count slu_shuffle_get_count(const uint64_t *w);
struct slu_shuffle_cell slu_shuffle_get_cell(const uint64_t *w);
void slu_shuffle_add_cell(struct slu_shuffle_cell *a, const struct slu_shuffle_cell *b);
/* Makes *x, the mixer in the state with which a part begins, from table t. */
SLU_MUST_USE int slu_shuffle_load_state(struct slu_shuffle_flow *q, struct slu_table *t,
                                        struct slu_mixer **x, struct slu_err *err);
/* Scatter, of an order that stage cut has planned: reads the part's ends. */
SLU_MUST_USE int slu_shuffle_load_ends(struct slu_shuffle_flow *q,
                                       struct slu_permute *p, struct slu_err *err);
/* The range of a place in a bucket's order that stage cut has divided. */
uint64_t slu_shuffle_range_of(const struct slu_shuffle_flow *q, unsigned bucket,
                              struct slu_u128 key);
/* Run the stages. */
SLU_MUST_USE int slu_shuffle_count_keys(void *ctx, struct slu_flow *f,
                                        struct slu_err *err);
SLU_MUST_USE int slu_shuffle_cut(void *ctx, struct slu_flow *f, struct slu_err *err);
SLU_MUST_USE int slu_shuffle_gather(void *ctx, struct slu_flow *f, struct slu_err *err);
SLU_MUST_USE int slu_shuffle_finish(void *ctx, struct slu_flow *f, struct slu_err *err);

#endif
