/* rules_private.h - shared by rules.c and the families of rules.h. */
#ifndef SLU_FILTER_RULES_PRIVATE_H
#define SLU_FILTER_RULES_PRIVATE_H

#include "lib/filter/rules.h"
#include "lib/filter/text.h"

enum rule_family { GOPHER_QUALITY, GOPHER_REPETITION, C4, FINEWEB, FAMILIES };

#define STOP_WORDS 63
struct rules_stop {
    char *word[STOP_WORDS]; /* owned */
    uint8_t n_byte[STOP_WORDS];
    unsigned n;
    uint64_t first[256]; /* by first byte: a bit for each length */
};

struct slu_rules {
    /* NaN: off, as no comparison with it is true; a flag is on if it is above 0. */
    double value[SLU_RULE_N];
    enum rule_family family[FAMILIES]; /* in order */
    unsigned n_family;
    struct rules_stop stop;
    struct slu_buf text;
};

struct slu_rules_run {
    const struct slu_rules *rules;
    uint64_t most_byte;
    /* The text that is asked about. */
    const uint8_t *p;
    size_t n, n_char, n_newline;
    struct slu_buf table;     /* of what occurred already */
    struct slu_buf words;     /* rules_repeat.c: arrays by word */
    struct slu_buf joined;    /*   words without what is between them */
    struct slu_buf kept;      /* rules_c4.c: lines that are left */
    struct slu_buf line, low; /*   a line without citations; in lower case */
};

static inline bool rules_on(const struct slu_rules_run *run, enum slu_rule r)
{
    return run->rules->value[r] > 0;
}
/* Whether x is above, or below, the threshold. */
static inline bool rules_above(const struct slu_rules_run *run, enum slu_rule r,
                               double x)
{
    return x > run->rules->value[r];
}
static inline bool rules_below(const struct slu_rules_run *run, enum slu_rule r,
                               double x)
{
    return x < run->rules->value[r];
}

/* Zeroes the table, with at least 2 n slots of slot_byte bytes, their number a power of
 * two; *mask: one less. SLU_E_LIMIT as slu_rules_ask. */
SLU_MUST_USE int rules_table(struct slu_rules_run *run, size_t n, size_t slot_byte,
                             size_t *mask, struct slu_err *err);
/* Makes room in a buffer of the run, whose contents are lost. */
SLU_MUST_USE int rules_room(struct slu_rules_run *run, struct slu_buf *b, size_t n,
                            struct slu_err *err);

/* Pieces of a text that occur again. */
struct rules_twice {
    size_t mask;
    uint64_t n_again, n_char; /* pieces that occurred before; their characters */
};
/* Begins with at most n pieces. */
SLU_MUST_USE int rules_twice_begin(struct slu_rules_run *run, struct rules_twice *t,
                                   size_t n, struct slu_err *err);
void rules_twice_add(struct slu_rules_run *run, struct rules_twice *t, const uint8_t *p,
                     size_t n);

/* The families: as slu_rules_ask, of run->p. */
typedef int rules_family_ask(struct slu_rules_run *run, enum slu_rule *failed,
                             struct slu_err *err);
rules_family_ask rules_gopher_quality, rules_gopher_repetition, rules_c4, rules_fineweb;
/* As slu_rules_c4_lines. */
SLU_MUST_USE int rules_c4_cut(struct slu_rules_run *run, struct slu_c4_cut *cut,
                              enum slu_rule *failed, struct slu_err *err);

#endif
