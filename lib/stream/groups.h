/* groups.h - documents, tokens, bytes of text, and quantiles of length and score for
 * each domain of a stream: what one looks at before choosing (lib/choose/choose.h).
 *
 * Lengths and scores are those of sequences. A sequence whose documents have several
 * domains is SLU_E_MISMATCH. Quantiles are exact: lengths and scores are sorted, 40 bytes
 * each, beyond memory in a temporary folder. The quantile q of n values is value number
 * floor(q * (n - 1)) of them in ascending order, counted from 0.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_STREAM_GROUPS_H
#define SLU_STREAM_GROUPS_H

#include "domains.h"

SLU_BEGIN_DECLS

#define SLU_N_QUANTILE 7
/* In thousandths: the least, 5 %, 25 %, 50 %, 75 %, 95 %, the greatest. */
extern const unsigned slu_quantile[SLU_N_QUANTILE];

struct slu_group {
    struct slu_domain_row sums;      /* with the name */
    uint64_t n_length, n_score;      /* sequences; those with a score */
    uint64_t length[SLU_N_QUANTILE]; /* 0 if n_length is 0 */
    double score[SLU_N_QUANTILE];    /* 0 if n_score is 0 */
};

struct slu_groups;
/* budget_byte: of the sort. tmpdir is copied. */
SLU_MUST_USE int slu_groups_new(struct slu_groups **g, uint64_t budget_byte,
                                const char *tmpdir, unsigned n_threads,
                                struct slu_err *err);
/* v: as in slu_domains_add_batch. */
SLU_MUST_USE int slu_groups_add(struct slu_groups *g, const struct slu_batch *b,
                                const struct slu_vocab_table *v, struct slu_err *err);
/* Ends the adding, and lists the groups in the order of slu_domains_list, with names
 * borrowed from `names`. Caller frees *list with free(). Call once. */
SLU_MUST_USE int slu_groups_list(struct slu_groups *g, struct slu_names *names,
                                 struct slu_group **list, size_t *n,
                                 struct slu_err *err);
/* Bytes written to temporary files so far. */
uint64_t slu_groups_spilled(const struct slu_groups *g);
/* NULL is legal. */
void slu_groups_free(struct slu_groups *g);

SLU_END_DECLS

#endif
