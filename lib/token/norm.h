/* norm.h - the normalizer, which rewrites text before it is split.
 *
 * A normalizer is a row of steps. Each rewrites the whole text, as in the `tokenizers`
 * library (norm_data.h has its versions of Unicode). A step that changes nothing costs
 * no copy.
 *
 * Thread safety: a tok_norm is read-only once made; a norm_scratch belongs to one
 * thread.
 */
#ifndef SLU_TOK_NORM_H
#define SLU_TOK_NORM_H

#include "lib/base/buf.h"
#include "lib/token/pre.h"

/* Written to compiled vocabularies and fingerprints: the numbers must not change. */
enum norm_kind {
    NORM_NFC = 1,
    NORM_NFD,
    NORM_NFKC,
    NORM_NFKD,
    NORM_LOWERCASE,     /* each character by itself: no rule for a final sigma */
    NORM_STRIP_ACCENTS, /* drops combining marks */
    NORM_NMT,
    NORM_STRIP,         /* removes white space; a is "l" (left), "r" (right) or "lr" */
    NORM_PREPEND,       /* puts a before text that is not empty */
    NORM_REPLACE,       /* replaces the string a by b */
    NORM_REPLACE_REGEX, /* replaces matches of the regular expression a by b */
    NORM_N_KIND
};

struct norm_step {
    enum norm_kind kind;
    size_t a, n_a, b, n_b;  /* offsets in spec, and bytes */
    struct slu_pcre *regex; /* owned */
};

struct tok_norm {
    struct norm_step *step;
    size_t n, cap;
    /* The steps as bytes, from which norm_from_spec makes them again. For each step its
     * kind (u8), then a and b, each as a length (u32, little-endian) and bytes. */
    struct slu_buf spec;
};

SLU_MUST_USE int norm_new(struct tok_norm **norm, struct slu_err *err);
/* NULL is legal. */
void norm_free(struct tok_norm *norm);
/* Adds a step. SLU_E_UNSUPPORTED for a regular expression that is not supported, and
 * for a NORM_REPLACE of the empty string. */
SLU_MUST_USE int norm_add(struct tok_norm *norm, enum norm_kind kind, const void *a,
                          size_t n_a, const void *b, size_t n_b, struct slu_err *err);
/* Makes a normalizer from a spec. SLU_E_FORMAT if the bytes are not one. */
SLU_MUST_USE int norm_from_spec(struct tok_norm **norm, const void *spec, size_t n,
                                struct slu_err *err);

struct norm_align; /* align.h */

/* Zero before init. */
struct norm_scratch {
    struct slu_buf buf[2];
    struct norm_align *align; /* borrowed; told of what steps change. NULL: nobody is */
    size_t at;                /* while told: the waiting code points begin here */
    uint32_t *cp, *sorted;    /* waiting code points; the top byte is their class */
    size_t n_cp, cap_cp, cap_sorted;
    struct slu_pcre_run **match; /* one per step */
    size_t n_match;
};
/* Prepares s for norm, which may be NULL. */
SLU_MUST_USE int norm_scratch_init(struct norm_scratch *s, const struct tok_norm *norm,
                                   struct slu_err *err);
void norm_scratch_release(struct norm_scratch *s);

/* Applies all steps to the n bytes at p (valid UTF-8). *out is p if they change
 * nothing, else memory of s, borrowed until the next call. norm may be NULL. Time is
 * linear in n. */
SLU_MUST_USE int norm_run(const struct tok_norm *norm, struct norm_scratch *s,
                          const uint8_t *p, size_t n, const uint8_t **out,
                          size_t *n_out, struct slu_err *err);

/* ---- norm_form.c, for norm.c ---- */

/* Applies one of the four normal forms. *out is p or the bytes of buf. */
SLU_MUST_USE int norm_form(struct norm_scratch *s, enum norm_kind kind,
                           const uint8_t *p, size_t n, struct slu_buf *buf,
                           const uint8_t **out, size_t *n_out, struct slu_err *err);
/* Appends a code point. */
SLU_MUST_USE int norm_put(struct slu_buf *buf, uint32_t c, struct slu_err *err);
/* Returns the entry of c in a table of norm_data.h, or NULL. */
struct norm_map;
const struct norm_map *norm_find(const struct norm_map *table, unsigned n, uint32_t c);
/* Returns the end of the bytes below 0x80 that begin at pos. */
size_t norm_skip_ascii(const uint8_t *p, size_t n, size_t pos);

#endif
