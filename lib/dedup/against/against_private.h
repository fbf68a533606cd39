/* against_private.h - the index's file, which against_make.c writes and against.c reads. */
#ifndef SLU_AGAINST_PRIVATE_H
#define SLU_AGAINST_PRIVATE_H

#include "against.h"

/* Sections of the file. */
enum {
    GRAMS,   /* ascending */
    STARTS,  /* where each gram's items begin in ITEMS, and the end of the last */
    ITEMS,   /* numbers of items, ascending for each gram */
    ROWS,    /* a struct row for each item */
    LENGTHS, /* numbers of words that the index's n-grams have, ascending */
    TEXT,    /* names: bytes, eight in a number, padded with zeros */
    SECTIONS,
};
/* Counts in the head. */
enum { N_GRAM, N_ITEM, N_POSTING, N_TEXT, NGRAM };

struct row {
    uint64_t source, document, offset, n_gram;
    /* positions in TEXT */
    uint64_t at_source, n_source, at_domain, n_domain, at_id, n_id;
};
enum { ROW_WORDS = sizeof(struct row) / sizeof(uint64_t) };
#define KIND "index=ngrams"

#endif
