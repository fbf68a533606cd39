/* mix.h - how much of each source goes into a mix, and which sequences those are.
 *
 * A source is a domain or an input. A mix gives each a share of the tokens by
 * weights; a schedule is several mixes one after another (periods). Amounts are exact:
 * source s gets floor(n_p w_s / W) tokens in period p of n_p tokens, whole sequences of
 * them, short of it by less than one sequence over all periods.
 *
 * Think of the sequences of a source as a line: all of them in the order of a keyed
 * hash of (seed, segments), then all of them once more in another order, and so on.
 * That is epoch 0, 1, … Periods take from it one after another, so nothing is taken
 * twice before all has been taken once, in a period or before it. Where on the line
 * periods end is found by select.h, without sorting it; the place of a sequence in the
 * output has nothing to do with its place on the line. Sequences of equal segments
 * share one, and there the order of the input decides.
 *
 * Thread safety: one thread at a time on a handle; the rest are pure functions.
 */
#ifndef SLU_MIX_H
#define SLU_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/stream/batch.h"
#include "select.h"

SLU_BEGIN_DECLS

#define SLU_MIX_SOURCES SLU_SELECT_GROUPS
#define SLU_MIX_PERIODS 16
#define SLU_MIX_ONE     1000000 /* of weights and epochs, which have six decimals */

/* ---- what is asked for ---- */

enum slu_mix_length { SLU_MIX_ALL, SLU_MIX_SHARES, SLU_MIX_TOKENS };

struct slu_mix {
    unsigned n_source, n_period;
    struct slu_mix_source {
        char *name;                       /* owned; "": what has no domain */
        uint64_t weight[SLU_MIX_PERIODS]; /* in units of 1 / SLU_MIX_ONE */
        uint64_t max_epochs;              /* the same; 0: the mix's */
    } * source;                           /* owned */
    /* What `length` is: parts of all tokens, or tokens; the last may be 0 with
     * SLU_MIX_TOKENS: what is left of the tokens asked for. */
    enum slu_mix_length kind;
    uint64_t length[SLU_MIX_PERIODS];
    uint64_t max_epochs; /* 0: not given */
};

/* "web=0.7,code=0.3": weights, in any unit; an empty name is what has no domain.
 * As a schedule, periods with ";" between, each with its length behind ":": "80%",
 * tokens ("20G"), or steps of batch_tok tokens ("1000steps"); the last may lack it.
 * SLU_E_USAGE. *b is released by the caller, also after a fault. */
SLU_MUST_USE int slu_mix_parse(struct slu_mix *b, const char *text, bool schedule,
                               uint64_t batch_tok, struct slu_err *err);
/* "4", or "web=1,code=2.5", or both: how often a source is gone through at most. */
SLU_MUST_USE int slu_mix_parse_epochs(struct slu_mix *b, const char *text,
                                      struct slu_err *err);
void slu_mix_release(struct slu_mix *b);

/* ---- how much ---- */

struct slu_mix_plan {
    uint64_t tok;                                      /* of the output, at most */
    uint64_t target[SLU_MIX_SOURCES][SLU_MIX_PERIODS]; /* tokens */
    uint64_t max_epochs[SLU_MIX_SOURCES];              /* in 1 / SLU_MIX_ONE */
};

/* max_tok UINT64_MAX: as many as the scarcest source allows. SLU_E_MISMATCH where a
 * source that has a weight has nothing, or would have to be gone through more often
 * than it may; says what would do. */
SLU_MUST_USE int slu_mix_plan(const struct slu_mix *b, const uint64_t *n_tok,
                              uint64_t max_tok, struct slu_mix_plan *plan,
                              struct slu_err *err);

/* ---- whose ---- */

/* From domains' or inputs' numbers to sources. */
struct slu_mix_by {
    enum { SLU_BY_DOMAIN, SLU_BY_INPUT, SLU_BY_FILE } by; /* FILE: seg[0].source */
    const int *source; /* borrowed: number -> source, -1: none of them */
    size_t n;
    int none; /* of what has no domain */
};
/* The source of a sequence, or -1. A packed one is of the domain that most of its
 * tokens have (of the first 64 that occur; the first of equals). */
int slu_mix_source_of(const struct slu_mix_by *by, const struct slu_batch *b,
                      const struct slu_seq *q);

/* ---- which ---- */

struct slu_mixer;

SLU_MUST_USE int slu_mixer_new(struct slu_mixer **x, const struct slu_mix *b,
                               uint64_t budget_byte, const char *tmpdir,
                               struct slu_err *err);
/* A sequence of a source, by its keyed hash. */
SLU_MUST_USE int slu_mixer_add(struct slu_mixer *x, unsigned source,
                               struct slu_u128 hash, struct slu_count n,
                               struct slu_err *err);
/* No more of them. */
SLU_MUST_USE int slu_mixer_plan(struct slu_mixer *x, uint64_t max_tok,
                                struct slu_err *err);
/* After it, for each sequence once, for epoch 0, 1, … below slu_mixer_epochs: the
 * period that takes it in that epoch, or -1. */
uint64_t slu_mixer_epochs(const struct slu_mixer *x, unsigned source);
int slu_mixer_take(struct slu_mixer *x, unsigned source, struct slu_u128 hash,
                   struct slu_count n, uint64_t epoch);

/* What came of it. */
struct slu_mix_gave {
    struct slu_count available;
    struct slu_count taken[SLU_MIX_PERIODS]; /* repeats included */
    uint64_t sequences_used;                 /* at least once */
};
const struct slu_mix_gave *slu_mixer_gave(const struct slu_mixer *x, unsigned source);
const struct slu_mix_plan *slu_mixer_planned(const struct slu_mixer *x);
/* Bytes written to temporary files so far. */
uint64_t slu_mixer_spilled(const struct slu_mixer *x);
/* NULL is legal. */
void slu_mixer_free(struct slu_mixer *x);

/* ---- in parts ---- */

/* What is known after slu_mixer_plan, as numbers, and a handle made of them, which
 * takes and gave nothing yet. Equal hashes are taken in the order of the input, so each
 * part's handle is that which was passed over what the parts before it have. */
size_t slu_mixer_words(const struct slu_mix *b);
void slu_mixer_save(const struct slu_mixer *x, uint64_t *w);
SLU_MUST_USE int slu_mixer_load(struct slu_mixer **x, const struct slu_mix *b,
                                const uint64_t *w, struct slu_err *err);
/* As slu_mixer_take in all epochs, but that nothing is booked. */
void slu_mixer_pass(struct slu_mixer *x, unsigned source, struct slu_u128 hash,
                    uint64_t n_tok);
/* For who adds up what parts gave. */
struct slu_mix_gave *slu_mixer_books(struct slu_mixer *x, unsigned source);
/* Whether any period wants some of a source. */
bool slu_mix_weighs(const struct slu_mix *b, unsigned source);

SLU_END_DECLS

#endif
