/* kinds.h - files that are no text and no format of records, by name and by first bytes:
 * what each kind is called, and how texts are made of it.
 *
 * One table serves files that are named, files of folders and members of archives. A
 * name tells before a byte is read; first bytes also tell in a file of another name, or
 * of none. Whoever states the format of a file asks neither.
 *
 * Thread safety: read-only.
 */
#ifndef SLU_KINDS_H
#define SLU_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

SLU_BEGIN_DECLS

struct slu_kind {
    const char *name; /* "a CSV table" */
    const char *way;  /* how texts are made of it; one clause */
};

/* Whether `dot`, the last dot of a name and what follows it, is this suffix, as ".txt",
 * in any case. dot may be NULL. (An archive has many names, and strcasecmp is slow.) */
static inline bool slu_suffix_is(const char *dot, const char *suffix)
{
    if (!dot || (dot[1] | 32) != suffix[1])
        return false;
    for (; *suffix; dot++, suffix++)
        if (*dot != *suffix && (*dot < 'A' || *dot > 'Z' || *dot + 32 != *suffix))
            return false;
    return !*dot;
}
/* Returns the kind of files of this name, which has no compression suffix; NULL: the
 * name tells nothing. */
const struct slu_kind *slu_kind_named(const char *name);
/* Returns the kind of a file that begins with p[0, n): at least SLU_KIND_BYTE bytes, or
 * the whole file. NULL: it may be text. */
#define SLU_KIND_BYTE 512
const struct slu_kind *slu_kind_headed(const uint8_t *p, size_t n);
/* Returns a kind if the bytes, of which no format knows the first, have a NUL. */
const struct slu_kind *slu_kind_binary(const uint8_t *p, size_t n);
/* Returns the kind of token streams, which no format of texts can read, if the file
 * begins as one; else NULL. */
const struct slu_kind *slu_kind_stream(const uint8_t *p, size_t n);

SLU_END_DECLS

#endif
