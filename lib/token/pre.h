/* pre.h - cutting text into the pieces that BPE works on.
 *
 * A pre-tokenizer is a row of steps, each of which cuts what the one before it made.
 * Splits that are known have hand-written scanners (scan.c); any other regular
 * expression goes to PCRE2 (regex.c), with its character classes replaced by those of
 * our Unicode version.
 *
 * Thread safety: a tok_pre is read-only once made; a pre_scratch belongs to one thread.
 */
#ifndef SLU_TOK_PRE_H
#define SLU_TOK_PRE_H

#include "lib/token/tok.h"

/* The end of the piece that starts at pos < n; p is valid UTF-8. Every byte is in a
 * piece. */
typedef size_t pre_scan_fn(const uint8_t *p, size_t n, size_t pos);

/* A split by its name (gpt2, r50k, p50k, cl100k, llama3, qwen2, qwen35, o200k, tekken,
 * kimi; deepseek3 and digits-gpt2, which are several in a row), or NULL. */
pre_scan_fn *pre_scan_by_name(const char *name);
/* The scanner that does what a regular expression says, or NULL. */
pre_scan_fn *pre_scan_by_regex(const char *regex, size_t len);
/* The scanner that does what n steps in a row do, or NULL; a step is an expression
 * whose matches are isolated, or "=" and a scanner's name. */
pre_scan_fn *pre_scan_by_row(const char *const *step, size_t n);
#define PRE_ROW_MAX 3
/* What the pre-tokenizer Digits takes for one: that the reference does it in Rust,
 * whose Unicode is 17, where its expressions have 16. */
#define PRE_DIGIT "[\\p{N}\\x{11de0}-\\x{11de9}\\x{16ff4}-\\x{16ff6}]"
/* The scanner's canonical name, whatever it was found by. */
const char *pre_scan_name(pre_scan_fn *scan);
/* The regular expression of a scanner as its reference writes it, for tests. */
const char *pre_regex_by_name(const char *name);

struct pre_regex; /* regex.c */
/* SLU_E_UNSUPPORTED where PCRE2 might see something else in it than the reference does.
 */
SLU_MUST_USE int pre_regex_new(struct pre_regex **r, const char *pattern, size_t len,
                               struct slu_err *err);
void pre_regex_free(struct pre_regex *r);

enum pre_kind {
    PRE_SCAN,   /* pieces by a scanner */
    PRE_REGEX,  /* matches, and what is between them */
    PRE_KEEP,   /* matches only: what is between them is no text (behavior Removed,
                   invert) */
    PRE_PREFIX, /* a space in front where there is none (add_prefix_space) */
    PRE_DROP,   /* what is between matches (Removed) */
    PRE_LEFT,   /* a match with what is before it (MergedWithPrevious) */
    PRE_RIGHT,  /* a match with what is behind it (MergedWithNext) */
    PRE_RUNS,   /* matches that follow each other are one piece (Contiguous) */
};

struct pre_step {
    enum pre_kind kind;
    pre_scan_fn *scan;
    struct pre_regex *regex; /* owned; made by pre_finish */
    char *pattern;           /* owned; of regex */
    bool invert;             /* matches and what is between them change places */
};

struct tok_pre {
    struct pre_step *step;
    size_t n, cap;
    struct slu_buf spec; /* what the steps are, canonically, for the fingerprint */
};

SLU_MUST_USE int pre_new(struct tok_pre **pre, struct slu_err *err);
void pre_free(struct tok_pre *pre);
SLU_MUST_USE int pre_add_prefix(struct tok_pre *pre, struct slu_err *err);
SLU_MUST_USE int pre_add_scan(struct tok_pre *pre, pre_scan_fn *scan,
                              struct slu_err *err);
/* By a scanner where the expression is known, else by PCRE2. */
SLU_MUST_USE int pre_add_regex(struct tok_pre *pre, const char *pattern, size_t len,
                               enum pre_kind kind, bool invert, struct slu_err *err);
/* After the last step: steps in a row that one scanner does become one, the expressions
 * of the others are compiled. Errors: those of pre_regex_new. */
SLU_MUST_USE int pre_finish(struct tok_pre *pre, struct slu_err *err);
/* All the steps of another one's spec, into an empty one, and pre_finish.
 * SLU_E_UNSUPPORTED where that does not give the same spec again: then the vocabulary
 * is not kept compiled. */
SLU_MUST_USE int pre_add_spec(struct tok_pre *pre, const void *spec, size_t n,
                              struct slu_err *err);

struct pre_scratch {
    struct pre_work *step; /* one a step */
    size_t n;
};
SLU_MUST_USE int pre_scratch_init(struct pre_scratch *s, const struct tok_pre *pre,
                                  struct slu_err *err);
void pre_scratch_release(struct pre_scratch *s);

typedef int pre_emit_fn(void *ctx, const uint8_t *p, size_t n, struct slu_err *err);

/* Calls emit for every piece in order; n >= 1 bytes of valid UTF-8. */
SLU_MUST_USE int pre_run(const struct tok_pre *pre, struct pre_scratch *s,
                         const uint8_t *p, size_t n, pre_emit_fn *emit, void *ctx,
                         struct slu_err *err);

/* ---- regex.c, for pre.c ---- */
struct pre_match; /* PCRE2's scratch, one a thread */
SLU_MUST_USE int pre_match_new(struct pre_match **m, const struct pre_regex *r,
                               struct slu_err *err);
void pre_match_free(struct pre_match *m);
/* The next match at or behind pos that is not empty: SLU_OK and its span, or SLU_EOF.
 */
SLU_MUST_USE int pre_match_next(const struct pre_regex *r, struct pre_match *m,
                                const uint8_t *p, size_t n, size_t pos, size_t *start,
                                size_t *end, struct slu_err *err);

#endif
