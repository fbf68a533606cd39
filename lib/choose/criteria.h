/* criteria.h - what a sequence must be to be chosen, whatever else is in the stream: its
 * domain, source, id, length, score and metadata.
 *
 * All criteria must hold. A sequence that fails is counted under the first that it
 * fails, in the order of enum slu_why. Domain, source and id are those of the sequence's
 * documents; a sequence with documents that differ in one that is asked for is
 * SLU_E_MISMATCH. The score is slu_seq_score; a sequence without a score fails every
 * comparison.
 *
 * `where` is an expression over what a sequence has (lib/filter/where.h).
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_CHOOSE_CRITERIA_H
#define SLU_CHOOSE_CRITERIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/filter/idset.h"
#include "lib/filter/where.h"
#include "lib/base/err.h"
#include "lib/stream/batch.h"
#include "lib/stream/compare.h"
#include "lib/stream/property.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

enum slu_why {
    SLU_WHY_NOT, /* the sequence is chosen */
    SLU_WHY_DOMAIN,
    SLU_WHY_SOURCE,
    SLU_WHY_IDS_KEEP,
    SLU_WHY_IDS_DROP,
    SLU_WHY_LENGTH,
    SLU_WHY_SCORE,
    SLU_WHY_WHERE,
    SLU_WHY_TOP, /* it is not among the top (choose.h) */
    SLU_N_WHY
};
/* Reasons in the account; that of SLU_WHY_NOT is NULL. */
extern const char *const slu_why_name[SLU_N_WHY];

#define SLU_MOST_COMPARES 8

struct slu_criteria_cfg {      /* everything is borrowed */
    const char *const *domain; /* names; "": no domain */
    size_t n_domain;           /* 0: any */
    const char *const *source; /* patterns of fnmatch(3) */
    size_t n_source;           /* 0: any */
    uint64_t least_tok, most_tok;
    struct slu_compare score[SLU_MOST_COMPARES];
    unsigned n_score;
    const struct slu_idset *keep, *drop; /* NULL: none */
    const struct slu_expr *where;        /* NULL: none */
};

struct slu_criteria;
/* h: of the stream, whose metadata `where` may name; SLU_E_MISMATCH if it has no such
 * field. It is borrowed. */
SLU_MUST_USE int slu_criteria_new(struct slu_criteria **c,
                                  const struct slu_criteria_cfg *cfg,
                                  const struct slu_header *h, struct slu_names *names,
                                  struct slu_err *err);
SLU_MUST_USE int slu_criteria_ask(struct slu_criteria *c, const struct slu_batch *b,
                                  const struct slu_seq *q, enum slu_why *why,
                                  struct slu_err *err);
/* NULL is legal. */
void slu_criteria_free(struct slu_criteria *c);

SLU_END_DECLS

#endif
