/* mix.h - the amount of each source in a mix, and the sequences taken.
 *
 * A source is a domain, an input, or a value of a field of metadata. A mix gives each
 * source a share of the tokens by weights; a schedule is several mixes one after another
 * (periods). Or a source is a band, of which scores or an expression tell the sequences,
 * and the mix says how often these are repeated. Amounts are exact:
 * source s gets floor(n_p w_s / W) tokens in period p of n_p tokens, as whole
 * sequences, so over all periods it is short by less than one sequence.
 *
 * Think of the sequences of a source as a line: all of them in the order of a keyed
 * hash of (seed, segments), then all of them once more in another order, and so on.
 * These are epochs 0, 1, … Periods take from the line one after another, so no sequence
 * is taken twice before all have been taken once, in the same period or an earlier one.
 * select.h finds where on the line each period ends, without sorting. A sequence's
 * place in the output does not depend on its place on the line. Sequences of equal
 * segments share a place on the line; among these the order of the input decides.
 *
 * Thread safety: one thread at a time on a handle; the rest are pure functions.
 */
#ifndef SLU_MIX_H
#define SLU_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/filter/where.h"
#include "lib/stream/batch.h"
#include "lib/stream/compare.h"
#include "lib/stream/property.h"
#include "select.h"

SLU_BEGIN_DECLS

#define SLU_MIX_SOURCES SLU_SELECT_GROUPS
#define SLU_MIX_PERIODS 16
#define SLU_MIX_ONE     1000000 /* unit of weights and epochs: six decimals */

/* ---- the request ---- */

enum slu_mix_length { SLU_MIX_ALL, SLU_MIX_SHARES, SLU_MIX_TOKENS };

struct slu_mix {
    unsigned n_source, n_period;
    struct slu_mix_source {
        char *name; /* owned; "": sequences without a domain or value */
        uint64_t weight[SLU_MIX_PERIODS]; /* in units of 1 / SLU_MIX_ONE */
        uint64_t max_epochs;      /* in units of 1 / SLU_MIX_ONE; 0: the mix's */
        struct slu_compare score; /* of a band */
        struct slu_expr *where;   /* of a band, instead of the score; or NULL; owned */
    } * source;                   /* owned */
    /* The sources are bands: weight[0] is how many times each is taken. The last one has
     * the sequences of no other band, such as those without a score. */
    bool bands;
    /* The unit of `length` is tokens with SLU_MIX_TOKENS; a 0 in the last period stands
     * for the rest of max_tok. With SLU_MIX_SHARES the unit is 1 / SLU_MIX_ONE percent
     * of all tokens. */
    enum slu_mix_length kind;
    uint64_t length[SLU_MIX_PERIODS];
    uint64_t max_epochs; /* default of the sources; 0: not given */
};

/* Parses weights, in any unit, as in "web=0.7,code=0.3"; an empty name stands for
 * sequences without a domain. With `schedule`, parses periods, separated by ";". Each
 * period is weights, ":" and a length: "80%", tokens ("20G"), or steps of batch_tok
 * tokens ("1000steps"). The last period may end before ":". SLU_E_USAGE for any other
 * text. Caller releases *b, also after an error. */
SLU_MUST_USE int slu_mix_parse(struct slu_mix *b, const char *text, bool schedule,
                               uint64_t batch_tok, struct slu_err *err);
/* Whether text begins as bands do: "score>=4", but for "=" only with a colon behind, as
 * "score=4" is the domain score and its weight; or with anything that ends in a colon
 * and a number. */
bool slu_mix_has_bands(const char *text);
/* Parses bands with the times that each is taken: "score>=4:2, score<2:0"; in place of
 * the comparison any expression of lib/filter/where.h, 'lang == "zh" and len(id) > 2:2'.
 * Of several bands that a sequence is in, the first counts, and sequences in none are
 * taken once. SLU_E_USAGE for any other text. Caller releases *b, also after an error. */
SLU_MUST_USE int slu_mix_parse_bands(struct slu_mix *b, const char *text,
                                     struct slu_err *err);
/* Parses the most epochs of the sources: "4", or "web=1,code=2.5", or both. */
SLU_MUST_USE int slu_mix_parse_epochs(struct slu_mix *b, const char *text,
                                      struct slu_err *err);
void slu_mix_release(struct slu_mix *b);

/* ---- amounts ---- */

struct slu_mix_plan {
    uint64_t tok;                                      /* upper bound for the output */
    uint64_t target[SLU_MIX_SOURCES][SLU_MIX_PERIODS]; /* tokens */
    uint64_t max_epochs[SLU_MIX_SOURCES];              /* in 1 / SLU_MIX_ONE */
};

/* Computes the targets. n_tok: tokens by source. max_tok UINT64_MAX: as many as the
 * scarcest source allows. SLU_E_MISMATCH if a source with a weight is empty or would
 * need more epochs than allowed; the message says what would do. */
SLU_MUST_USE int slu_mix_plan(const struct slu_mix *b, const uint64_t *n_tok,
                              uint64_t max_tok, struct slu_mix_plan *plan,
                              struct slu_err *err);

/* ---- the source of a sequence ---- */

/* Maps numbers of domains, inputs or files, or values of a field, to sources. */
struct slu_mix_by {
    /* FILE: seg[0].source; FIELD: what documents have; SCORE: the band of
     * slu_seq_score; WHERE: the band, by slu_mix_band */
    enum {
        SLU_BY_DOMAIN,
        SLU_BY_INPUT,
        SLU_BY_FILE,
        SLU_BY_FIELD,
        SLU_BY_SCORE,
        SLU_BY_WHERE
    } by;
    const int *source; /* borrowed: number -> source; -1: no source */
    size_t n;          /* of FIELD: sources */
    int none;          /* source of sequences without a domain or value, or -1 */
    const struct slu_property *property; /* FIELD: borrowed, as names is */
    struct slu_names *names;
    const uint64_t *value;          /* FIELD: by source, slu_mix_value; borrowed */
    const struct slu_mix *bands;    /* SCORE, WHERE: borrowed */
    struct slu_where *const *where; /* WHERE: by band, for its expression; borrowed */
};
/* Returns the source of a sequence, or -1. A packed sequence belongs to the domain, or
 * value, of most of its tokens (among the first 64 that occur; ties: the first). Any
 * thread. WHERE: 0. */
int slu_mix_source_of(const struct slu_mix_by *by, const struct slu_batch *b,
                      const struct slu_seq *q);
/* What stands for a value; 0: none, or an empty one. */
uint64_t slu_mix_value(const struct slu_meta_value *v);
/* With WHERE, sets *source to the band of a sequence: that of most of its tokens (ties:
 * the first band). One thread at a time on by->where. Errors: those of
 * slu_where_ask_segment. */
SLU_MUST_USE int slu_mix_band(const struct slu_mix_by *by, const struct slu_batch *b,
                              const struct slu_seq *q, int *source,
                              struct slu_err *err);

/* ---- the choice of sequences ---- */

struct slu_mixer;

SLU_MUST_USE int slu_mixer_new(struct slu_mixer **x, const struct slu_mix *b,
                               uint64_t budget_byte, const char *tmpdir,
                               struct slu_err *err);
/* Adds a sequence of a source, by its keyed hash. */
SLU_MUST_USE int slu_mixer_add(struct slu_mixer *x, unsigned source,
                               struct slu_u128 hash, struct slu_count n,
                               struct slu_err *err);
/* Ends the additions and plans. Errors: those of slu_mix_plan. */
SLU_MUST_USE int slu_mixer_plan(struct slu_mixer *x, uint64_t max_tok,
                                struct slu_err *err);
/* After the plan, call slu_mixer_take for each sequence once, in the order of addition,
 * for epochs 0, 1, … below slu_mixer_epochs. It returns the period that takes the
 * sequence in that epoch, or -1. */
uint64_t slu_mixer_epochs(const struct slu_mixer *x, unsigned source);
int slu_mixer_take(struct slu_mixer *x, unsigned source, struct slu_u128 hash,
                   struct slu_count n, uint64_t epoch);

/* The result for a source. */
struct slu_mix_gave {
    struct slu_count available;
    struct slu_count taken[SLU_MIX_PERIODS]; /* repeats included */
    uint64_t sequences_used;                 /* sequences taken at least once */
};
const struct slu_mix_gave *slu_mixer_gave(const struct slu_mixer *x, unsigned source);
const struct slu_mix_plan *slu_mixer_planned(const struct slu_mixer *x);
/* Bytes written to temporary files so far. */
uint64_t slu_mixer_spilled(const struct slu_mixer *x);
/* NULL is legal. */
void slu_mixer_free(struct slu_mixer *x);

/* ---- in parts ---- */

/* Saves the state after slu_mixer_plan as numbers, and makes a handle of these that has
 * taken nothing yet. Equal hashes are taken in the order of the input, so each part's
 * handle is one that has passed over all sequences of earlier parts. */
size_t slu_mixer_words(const struct slu_mix *b);
void slu_mixer_save(const struct slu_mixer *x, uint64_t *w);
SLU_MUST_USE int slu_mixer_load(struct slu_mixer **x, const struct slu_mix *b,
                                const uint64_t *w, struct slu_err *err);
/* Passes over a sequence: as slu_mixer_take in all epochs, without counting. */
void slu_mixer_pass(struct slu_mixer *x, unsigned source, struct slu_u128 hash,
                    uint64_t n_tok);
/* Returns mutable counts, for summing the parts' results. */
struct slu_mix_gave *slu_mixer_account(struct slu_mixer *x, unsigned source);
/* Whether a source has a weight in any period. */
bool slu_mix_weighs(const struct slu_mix *b, unsigned source);

SLU_END_DECLS

#endif
