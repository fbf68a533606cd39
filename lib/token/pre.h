/* pre.h - the pre-tokenizer, which cuts text into the pretokens that BPE works on.
 *
 * A pre-tokenizer is a row of steps; each cuts the pretokens of the step before it. Known
 * splits have hand-written scanners (scan.c); any other regular expression goes to
 * PCRE2 (regex.c), with its character classes replaced by those of our Unicode version.
 *
 * Thread safety: a tok_pre is read-only once made; a pre_scratch belongs to one thread.
 */
#ifndef SLU_TOK_PRE_H
#define SLU_TOK_PRE_H

#include "lib/base/pcre.h"
#include "lib/token/tok.h"

/* Returns the end of the pretoken that starts at pos < n; p is valid UTF-8. Every byte is
 * in a pretoken. */
typedef size_t pre_scan_fn(const uint8_t *p, size_t n, size_t pos);

/* Returns the scanner of a split by its name (gpt2, r50k, p50k, cl100k, builtin,
 * llama3, qwen2, qwen35, o200k, tekken, kimi; deepseek3 and digits-gpt2, which are
 * several splits in a row), or NULL. */
pre_scan_fn *pre_scan_by_name(const char *name);
/* Returns the scanner that splits as a regular expression does, or NULL. */
pre_scan_fn *pre_scan_by_regex(const char *regex, size_t len);
/* Returns the scanner that splits as n steps in a row do, or NULL. A step is an
 * expression whose matches are isolated, or "=" and a scanner's name. */
pre_scan_fn *pre_scan_by_row(const char *const *step, size_t n);
#define PRE_ROW_MAX 3
/* The digits of the pre-tokenizer Digits. The reference tests for them in Rust, whose
 * Unicode is 17; its regular expressions have 16. */
#define PRE_DIGIT "[\\p{N}\\x{11de0}-\\x{11de9}\\x{16ff4}-\\x{16ff6}]"
/* Returns the scanner's canonical name. */
const char *pre_scan_name(pre_scan_fn *scan);
/* Returns the regular expression of a scanner as its reference writes it, for tests. */
const char *pre_regex_by_name(const char *name);

/* Compiles an expression. SLU_E_UNSUPPORTED if PCRE2 might read it differently from the
 * reference. Caller frees with slu_pcre_free. */
SLU_MUST_USE int pre_regex_new(struct slu_pcre **r, const char *pattern, size_t len,
                               struct slu_err *err);

enum pre_kind {
    PRE_SCAN,   /* pretokens by a scanner */
    PRE_REGEX,  /* matches, and the text between them */
    PRE_KEEP,   /* matches only (behavior Removed, invert) */
    PRE_PREFIX, /* a space is put before text without one (add_prefix_space) */
    PRE_DROP,   /* the text between matches only (Removed) */
    PRE_LEFT,   /* a match with the text before it (MergedWithPrevious) */
    PRE_RIGHT,  /* a match with the text after it (MergedWithNext) */
    PRE_RUNS,   /* matches that follow each other are one pretoken (Contiguous) */
};

struct pre_step {
    enum pre_kind kind;
    pre_scan_fn *scan;
    struct slu_pcre *regex; /* owned; made by pre_finish */
    char *pattern;          /* owned; the source of regex */
    bool invert;            /* matches and the text between them change places */
};

struct tok_pre {
    struct pre_step *step;
    size_t n, cap;
    struct slu_buf spec; /* the steps in canonical form, for the fingerprint */
};

SLU_MUST_USE int pre_new(struct tok_pre **pre, struct slu_err *err);
void pre_free(struct tok_pre *pre);
SLU_MUST_USE int pre_add_prefix(struct tok_pre *pre, struct slu_err *err);
SLU_MUST_USE int pre_add_scan(struct tok_pre *pre, pre_scan_fn *scan,
                              struct slu_err *err);
/* Adds a split by a regular expression: with a scanner if it is known, else PCRE2. */
SLU_MUST_USE int pre_add_regex(struct tok_pre *pre, const char *pattern, size_t len,
                               enum pre_kind kind, bool invert, struct slu_err *err);
/* Call after the last step. Joins steps in a row that one scanner does, and compiles
 * the expressions of the others. Errors: those of pre_regex_new. */
SLU_MUST_USE int pre_finish(struct tok_pre *pre, struct slu_err *err);
/* Adds the steps of a spec to an empty pre-tokenizer, and calls pre_finish.
 * SLU_E_UNSUPPORTED if that does not give the same spec again; the vocabulary is then
 * not kept compiled. */
SLU_MUST_USE int pre_add_spec(struct tok_pre *pre, const void *spec, size_t n,
                              struct slu_err *err);

struct pre_scratch {
    struct pre_work *step; /* one per step */
    size_t n;
};
SLU_MUST_USE int pre_scratch_init(struct pre_scratch *s, const struct tok_pre *pre,
                                  struct slu_err *err);
void pre_scratch_release(struct pre_scratch *s);

typedef int pre_emit_fn(void *ctx, const uint8_t *p, size_t n, struct slu_err *err);

/* Calls emit for every pretoken in order; n >= 1 bytes of valid UTF-8. */
SLU_MUST_USE int pre_run(const struct tok_pre *pre, struct pre_scratch *s,
                         const uint8_t *p, size_t n, pre_emit_fn *emit, void *ctx,
                         struct slu_err *err);

/* ---- regex.c, for pre.c ---- */
/* Finds the next match from pos on that is not empty. SLU_EOF: there is none. */
SLU_MUST_USE int pre_regex_next(const struct slu_pcre *r, struct slu_pcre_run *m,
                                const uint8_t *p, size_t n, size_t pos, size_t *start,
                                size_t *end, struct slu_err *err);

#endif
