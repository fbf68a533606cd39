/* parquet.h - Parquet files through Apache Arrow's library.
 *
 * All that knows the library is C++ in arrow_*.cc, which becomes a shared object of its
 * own, libsluice-parquet.so, and is loaded when a file asks for it (parquet.c): from
 * ../lib beside the program's folder, or from where the system's loader looks. So
 * programs that meet no Parquet do not pay for it, and the libraries that Arrow brings
 * with it (simdjson and OpenSSL among them, in other versions than ours) stay out of
 * our way, and ours out of theirs: names are looked up in each group for itself. Where
 * it is not there, it was not built, and that is said.
 *
 * Reading goes by row group: a file is opened once (footer, columns), and each row
 * group has a reader of its own, so that several can be read by several threads at
 * once. Only the columns asked for are read, a page at a time: a reader's memory is
 * that of a page, a dictionary and a batch for each column, in a pool with a limit, so
 * no size in a file is trusted. Page checksums are verified where they are there.
 *
 * A column is named as in a JSON record; "a.b" is also field b of the struct a. Texts
 * and domains are strings (string, large_string, binary, JSON, enum, dictionaries of
 * them: what Parquet stores as byte arrays), ids may be integers too; scores are
 * floats, doubles or integers. A null is a missing field, whether it is the value or a
 * struct around it that is null.
 */
#ifndef SLU_PARQUET_H
#define SLU_PARQUET_H

#include "formats/text/input.h"

/* What a build without Arrow says behind "FILE: " or "--format parquet: ". */
#define SLU_PARQUET_NONE                                                               \
    "this build has no Parquet, which takes Apache Arrow's library (make ARROW=1); "   \
    "duckdb can stand in, see sluice(7)"

/* The columns of a record. */
enum slu_parquet_column {
    SLU_PARQUET_TEXT,
    SLU_PARQUET_ID,
    SLU_PARQUET_DOMAIN,
    SLU_PARQUET_SCORE,
    SLU_PARQUET_COLUMNS
};

struct slu_parquet_file;  /* opened: footer and columns */
struct slu_parquet_rows;  /* what is left of a row group */
struct slu_parquet_lists; /* a file of lists, opened */

/* A table whose columns are lists of int32 (not empty), as a writer asks for it. */
struct slu_parquet_table {
    const char *const *column; /* names */
    unsigned n_column;
    unsigned delta; /* bits: columns that hold runs, which are written as differences */
    uint64_t n_row, group_rows; /* rows in all, and of a row group */
    uint64_t most;              /* values that a list has at most */
    /* Key and value of the footer. */
    const char *key, *value;
    void *ctx;
    /* Puts the list's values into out; returns how many. */
    uint64_t (*list)(void *ctx, unsigned column, uint64_t row, int32_t *out);
};

/* What the shared object offers. */
struct slu_parquet {
    /* SLU_PARQUET_ABI of its build, else it is not used. */
    char abi[64];

    /* `path` as in struct slu_source; name for messages. field: as above, NULL: not
     * wanted. SLU_E_TRUNCATED, SLU_E_FORMAT (a damaged footer, a column that is not
     * there or not of a type that can be read), SLU_E_LIMIT (a footer larger than
     * memory_byte allows), SLU_E_IO, SLU_E_UNSUPPORTED (encrypted, no regular file).
     * Caller frees with close. */
    int (*open)(struct slu_parquet_file **f, const char *path, const char *name,
                const char *const field[SLU_PARQUET_COLUMNS], uint64_t memory_byte,
                struct slu_err *err);
    void (*close)(struct slu_parquet_file *f);             /* NULL is legal */
    uint64_t (*size)(const struct slu_parquet_file *f);    /* bytes of the file */
    uint64_t (*n_group)(const struct slu_parquet_file *f); /* row groups */
    /* Row (in the file) with which row group g begins; g may be n_group. */
    uint64_t (*row)(const struct slu_parquet_file *f, uint64_t g);

    /* Of row group g, from row `skip` of it on; memory_byte bounds what Arrow
     * allocates. Any thread; borrows f. Caller frees with rows_free. */
    int (*rows_new)(struct slu_parquet_rows **r, const struct slu_parquet_file *f,
                    uint64_t g, uint64_t skip, uint64_t memory_byte,
                    struct slu_err *err);
    /* Appends rows to b (raw, rec, field; document is the row in the file, source is
     * left 0) until it weighs want_byte. SLU_EOF: that was the last of the group. With
     * an error b has what came before it; every later call reports it again.
     * SLU_E_LIMIT: memory_byte did not do. One thread at a time on a reader. */
    int (*rows_read)(struct slu_parquet_rows *r, struct slu_block *b, size_t want_byte,
                     struct slu_err *err);
    void (*rows_free)(struct slu_parquet_rows *r); /* NULL is legal */

    /* Appends the table as a file, zstd of that level (0: not compressed), to out. */
    int (*write)(const struct slu_parquet_table *t, int level, struct slu_buf *out,
                 struct slu_err *err);

    /* Reads it back: the file must have these columns, lists of int32 without nulls,
     * and n_row rows. Caller frees with lists_close. */
    int (*lists_open)(struct slu_parquet_lists **l, const char *path,
                      const char *const *column, unsigned n_column, uint64_t n_row,
                      uint64_t memory_byte, struct slu_err *err);
    /* Replaces out[i] by the values (int32, native) of the next row's list i; SLU_EOF.
     * A list longer than `most` is an error. */
    int (*lists_next)(struct slu_parquet_lists *l, uint64_t most, struct slu_buf *out,
                      struct slu_err *err);
    void (*lists_close)(struct slu_parquet_lists *l); /* NULL is legal */
};
#define SLU_PARQUET_ABI SLU_VERSION "/3"

/* Loads it, or finds it loaded; it stays for good. NULL: there is none, or of another
 * version. Any thread. */
const struct slu_parquet *slu_parquet_load(void);

/* Bytes of a block of rows, in which texts may be empty or null. */
static inline size_t slu_rows_weight(const struct slu_block *b)
{
    return b->raw.len + 16 * b->n_rec;
}

#endif
