/* account.h - the account of a run, whose counts must satisfy
 * in + from_work + created + repeated + padding = out + to_work + dropped
 * (DESIGN.md, Conservation).
 *
 * Each program has one account. The reader counts `in`, the program's decisions count
 * created, repeated, padding and dropped, the writer counts `out`: three independent
 * counts, so that the equation can fail. It is checked before the end frame is written.
 *
 * A *document* is counted where its first token is: a segment with offset 0 that is not
 * padding. So documents are counted exactly in any order, packed or shuffled, and cut
 * documents are counted once.
 *
 * A *sequence* cut into k is k - 1 sequences created; k sequences joined into one are k
 * - 1 sequences dropped under the reason "joined", without tokens or documents.
 *
 * to_work counts what a stage writes to the files of a work folder, from_work what it
 * reads from them. Over all parts and stages of a program both are equal. A stage that
 * only reads a stream (count, sign) counts nothing; the later stage that moves the
 * sequences counts them.
 */
#ifndef SLU_ACCOUNT_H
#define SLU_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

SLU_BEGIN_DECLS

struct slu_count {
    uint64_t documents;
    uint64_t sequences;
    uint64_t tokens;
    uint64_t loss_tokens; /* trained on; 0 in streams without masks */
};

static inline void slu_count_add(struct slu_count *a, struct slu_count b)
{
    a->documents += b.documents;
    a->sequences += b.sequences;
    a->tokens += b.tokens;
    a->loss_tokens += b.loss_tokens;
}
/* Subtracts b, which is part of *a. */
static inline void slu_count_sub(struct slu_count *a, struct slu_count b)
{
    a->documents -= b.documents;
    a->sequences -= b.sequences;
    a->tokens -= b.tokens;
    a->loss_tokens -= b.loss_tokens;
}

/* Texts in which U+FFFD took the place of what is no text, and how often. */
struct slu_replaced {
    uint64_t records, utf8, surrogates;
};

static inline void slu_replaced_add(struct slu_replaced *a, struct slu_replaced b)
{
    a->records += b.records;
    a->utf8 += b.utf8;
    a->surrogates += b.surrogates;
}

#define SLU_MAX_REASONS 64

struct slu_account {
    struct slu_count in, from_work, created, repeated, out, to_work;
    uint64_t padding; /* tokens; padding has no documents and no sequences of its own */
    bool masks;       /* the stream has masks: reports have loss_tokens */
    struct slu_replaced replaced; /* no part of the equation */
    struct {
        const char *reason; /* static string, e.g. "exact-duplicate" */
        struct slu_count n;
    } dropped[SLU_MAX_REASONS];
    unsigned n_dropped;
};

/* Adds n to the row of `reason` (a static string); makes the row if it is missing. */
void slu_account_drop(struct slu_account *l, const char *reason, struct slu_count n);

/* Checks the equation for tokens, sequences, documents and loss_tokens. SLU_E_CONSERVATION, with the
 * counts, if it does not hold. */
SLU_MUST_USE int slu_account_check(const struct slu_account *l, struct slu_err *err);

SLU_END_DECLS

#endif
