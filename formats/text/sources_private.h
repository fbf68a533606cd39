/* formats/text/sources_private.h - shared by sources.c, which finds the files, and
 * sources_name.c, which names them.
 */
#ifndef SLU_SOURCES_PRIVATE_H
#define SLU_SOURCES_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sources.h"

/* path and name are offsets in s->bytes, which moves as the list grows. */
struct entry {
    size_t path, name;
    size_t domain; /* 0: none */
    uint64_t size_byte;
    bool regular;
    int rank;
};

struct resolver {
    struct slu_sources *s;
    struct entry *e;
    size_t n, cap;
    bool has_stdin;
    char *special; /* see struct slu_sources */
    const struct slu_sources_cfg *cfg;
    size_t lower, other;         /* paths of s->lower and s->other */
    size_t domain;               /* of the paths that are added; 0: none */
    uint64_t included, excluded; /* globs that matched a file: bit i for the i-th */
};

/* Appends n bytes, which are not in s->bytes, and a NUL; *at: their place. */
int slu_sources_keep(struct resolver *r, const char *p, size_t n, size_t *at,
                     struct slu_err *err);

/* Sets the entries' names, and the missing domains, as struct slu_sources_cfg says. */
int slu_sources_name(struct resolver *r, struct slu_err *err);

#endif
