/* table_private.h - how the engine makes tables. Shared by table.c (one process, and
 * writing to files) and row_file.c (reading files). Private to lib/flow and its test.
 * The order of calls:
 *
 *   new, put …, begin, next …             in one process; a LIST may begin again
 *   new, put …, write                     to a file
 *   over, add a file …, begin, next …     from files
 */
#ifndef SLU_TABLE_PRIVATE_H
#define SLU_TABLE_PRIVATE_H

#include <stdbool.h>

#include "lib/flow/table.h"
#include "workfile.h"

struct slu_table_cfg {
    uint64_t budget_byte; /* all memory of the table, at least 64 KiB */
    const char *tmpdir;   /* borrowed, like the spec */
    unsigned n_threads;
    unsigned max_file; /* files that may be open at once */
    uint64_t n_cell;   /* cells of the whole table, in files; 0: a table of one
                          process */
    uint64_t cell;     /* GROUPS over files: the cell that is read */
    /* Ordinals: part i has [base[i], base[i + 1]), and there are n_part parts; NULL:
     * not known. */
    const uint64_t *base;
    uint64_t n_part;
    bool unsorted; /* ROWS that may be read in any order */
    /* Receives the number of bytes of each read from a file; NULL is legal. */
    void (*read)(void *ctx, uint64_t n_byte);
    void *read_ctx;
    struct slu_workfile_out
        *out; /* STORE, LIST: the file, at the section that rows go to as they are put;
                 or NULL */
};

/* Makes a table of this process. */
SLU_MUST_USE int slu_table_new(struct slu_table **t, const struct slu_table_spec *spec,
                               const struct slu_table_cfg *cfg, struct slu_err *err);
/* Makes a table over files. */
SLU_MUST_USE int slu_table_over(struct slu_table **t, const struct slu_table_spec *spec,
                                const struct slu_table_cfg *cfg, struct slu_err *err);
/* Adds the cells in sections [first, first + n) of a file of this part, whose rows have
 * at most `longest` bytes. The caller may free f afterwards: the table may take its
 * descriptor. */
SLU_MUST_USE int slu_table_add(struct slu_table *t, struct slu_workfile *f,
                               uint64_t part, uint64_t first, uint64_t n,
                               uint64_t longest, struct slu_err *err);
/* Ends the puts and the adding of files: slu_table_next begins at the first row. */
SLU_MUST_USE int slu_table_begin(struct slu_table *t, struct slu_err *err);

/* Chooses the cell of a row of ROWS; never descends as rows ascend. */
typedef uint64_t slu_table_cell(const void *ctx, struct slu_u128 key, const void *p,
                                size_t n_byte);
/* Ends the puts and writes the rows to sections first … first + n_cell - 1 of o. cell
 * NULL: by the key's top bits, or by part. ctx: argument of cell and of the spec's
 * join. */
SLU_MUST_USE int slu_table_write(struct slu_table *t, struct slu_workfile_out *o,
                                 uint64_t first, uint64_t n_cell, slu_table_cell *cell,
                                 const void *ctx, struct slu_err *err);
/* Bytes of the longest row in files. */
uint64_t slu_table_longest(const struct slu_table *t);
/* Whether rows of files were sorted again instead of merged. */
bool slu_table_poured(const struct slu_table *t);
/* Bytes written to temporary files so far. */
uint64_t slu_table_spilled(const struct slu_table *t);
/* NULL is legal. */
void slu_table_free(struct slu_table *t);

/* ---- private to the engine ---- */

/* An ordinal of a part is below this. */
#define SLU_LOCAL (UINT64_C(1) << 48)

/* The head of a row of bytes in files and logs: the key (low, high) and the number of
 * bytes. */
enum { SLU_ROW_HEAD = 24 };

static inline uint64_t slu_row_pad8(uint64_t n)
{
    return (n + 7) & ~UINT64_C(7);
}

/* A file that is read through its own buffer. */
struct slu_row_file;

struct slu_table {
    const struct slu_table_spec *spec;
    struct slu_table_cfg cfg;
    bool files;                  /* a table over files */
    struct slu_sorter *sorter;   /* ROWS, except for files that are merged */
    struct slu_bytelog *log;     /* LIST in this process */
    struct slu_grouper *grouper; /* GROUPS */
    struct slu_store *store;     /* STORE */
    unsigned shift;              /* shifts word 0 to spread its ordinals over a key */
    uint64_t longest;
    uint64_t n_byte;    /* LIST: bytes put so far */
    uint64_t *end_byte; /* LIST: end of each cell but the last */
    size_t n_end, cap_end;
    uint64_t word[SLU_TABLE_WORDS]; /* the current row, if a sorter returned it */
    /* For a table over files. */
    struct slu_row_file **file;
    size_t n_file, cap_file, at_file;
    unsigned n_open;
    size_t *tree;             /* tree of losers; element 0 is the winner */
    bool begun;               /* merging: a row was returned */
    uint8_t *rows, *end_rows; /* LIST of words: the unread part of the buffer */
    uint64_t part;            /* the part of these rows */
};

/* Adds a row to the sorter; with_part: stores its part in the record. */
SLU_MUST_USE int slu_table_add_row(struct slu_table *t, const struct slu_row *row,
                                   bool with_part, struct slu_err *err);
SLU_MUST_USE int slu_table_sorted(struct slu_table *t, struct slu_row *row,
                                  bool with_part, struct slu_err *err);
/* GROUPS: makes the grouper for budget_byte; or for at most this many bytes, and for
 * the number of rows in all files. */
SLU_MUST_USE int slu_table_new_grouper(struct slu_table *t, uint64_t budget_byte,
                                       struct slu_err *err);
SLU_MUST_USE int slu_table_pour_groups(struct slu_table *t, uint64_t grouper_byte,
                                       uint64_t buf_byte, struct slu_err *err);
SLU_MUST_USE int slu_table_begin_files(struct slu_table *t, struct slu_err *err);
SLU_MUST_USE int slu_table_next_file(struct slu_table *t, struct slu_row *row,
                                     struct slu_err *err);
void slu_table_free_files(struct slu_table *t);
/* STORE. first: the number of its first section of two. */
SLU_MUST_USE int slu_store_new(struct slu_table *t, struct slu_err *err);
SLU_MUST_USE int slu_store_add(struct slu_table *t, struct slu_workfile *f,
                               uint64_t first, struct slu_err *err);
SLU_MUST_USE int slu_store_write(struct slu_table *t, struct slu_workfile_out *o,
                                 uint64_t first, struct slu_err *err);
uint64_t slu_store_spilled(const struct slu_store *s);
void slu_store_free(struct slu_store *s);

#endif
