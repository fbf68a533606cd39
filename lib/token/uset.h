/* uset.h - sets of characters of regular expressions: properties of our Unicode
 * version, and set algebra. A set takes 136 KiB; it is for loading, not for encoding.
 */
#ifndef SLU_TOK_USET_H
#define SLU_TOK_USET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct uset {
    uint64_t word[0x110000 / 64];
};

/* Returns an empty set; caller frees with free(). NULL: out of memory. */
struct uset *uset_new(void);
/* Adds the characters first to last; first <= last < 0x110000. */
void uset_add(struct uset *s, uint32_t first, uint32_t last);
void uset_or(struct uset *s, const struct uset *other);
void uset_and(struct uset *s, const struct uset *other);
void uset_not(struct uset *s);
bool uset_has(const struct uset *s, uint32_t c);

/* Adds the characters of \s, \d or \w (c is 's', 'd' or 'w') in a class of Oniguruma:
 * White_Space, Nd, and Alphabetic with M, Nd, Pc. */
void uset_add_escape(struct uset *s, char c);
/* Adds a property by its name: a general category, short or long, a script, or
 * Alphabetic, Alpha, Alnum, Digit, Space, White_Space, Any, ASCII. Case, spaces, - and
 * _ in names are ignored. False: no such name. */
bool uset_add_property(struct uset *s, const char *name, size_t n);

/* Appends the set as a class of PCRE2, without the surrogates. */
SLU_MUST_USE int uset_put(const struct uset *s, struct slu_buf *out,
                          struct slu_err *err);

#endif
