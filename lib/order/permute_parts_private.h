/* permute_parts_private.h - what scatter and gather know of the files between them.
 * Private to lib/permute_*.c.
 */
#ifndef SLU_PERMUTE_PARTS_PRIVATE_H
#define SLU_PERMUTE_PARTS_PRIVATE_H

#include "permute_parts.h"
#include "lib/workfile_names.h"
#include "lib/workfile_phase.h"

/* Sections behind the cells. */
enum { PART_BOOKS, PART_CELLS, PART_STREAM, PART_BLEND, PARTS };
/* Counts of a file's head. */
enum { COUNT_RANGES, COUNT_BUCKETS };

/* What is in a cell: CELL_WORDS in the file. */
struct slu_parts_cell {
    struct slu_count n;
    struct slu_u128 checksum;
};
enum { CELL_WORDS = 5, BOOK_WORDS = 32 };

/* How many buckets have cells of their own. */
static inline unsigned slu_parts_buckets(const struct slu_parts_cfg *c,
                                         const struct slu_header *h)
{
    return c->by_bucket && h->n_bucket ? h->n_bucket : 1;
}

/* The parameters' text; caller frees with free(). */
SLU_MUST_USE int slu_parts_param(const struct slu_parts_cfg *c, uint64_t ranges,
                                 char **text, struct slu_err *err);
void slu_parts_put_books(const struct slu_parts_books *b, uint64_t w[BOOK_WORDS]);
void slu_parts_get_books(const uint64_t w[BOOK_WORDS], struct slu_parts_books *b);
void slu_parts_put_cell(const struct slu_parts_cell *c, uint64_t w[CELL_WORDS]);
void slu_parts_get_cell(const uint64_t w[CELL_WORDS], struct slu_parts_cell *c);
void slu_parts_add_books(struct slu_parts_books *a, const struct slu_parts_books *b);

/* Whether the phase's own file is there, whole and as `want` says; then *b are the
 * books of its section `books`. */
SLU_MUST_USE int slu_parts_done(const struct slu_parts_cfg *c, const char *name,
                                const struct slu_workfile_head *want, uint64_t books,
                                bool *done, struct slu_parts_books *b,
                                struct slu_err *err);

/* What a part took by a blend: counts, of which those of several parts add up. */
size_t slu_parts_took_words(const struct slu_blend *b, const struct slu_header *h);
void slu_parts_took_save(const struct slu_permute *p, uint64_t *w);
void slu_parts_took_add(const uint64_t *w, const struct slu_blend *b,
                        const struct slu_header *h, struct slu_blending *x,
                        struct slu_count *phase);

/* All n numbers of a section; an error where it has not n of them. */
SLU_MUST_USE int slu_parts_get_words(struct slu_workfile *f, uint64_t section,
                                     uint64_t *w, size_t n, struct slu_err *err);

#endif
