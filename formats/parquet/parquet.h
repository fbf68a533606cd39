/* parquet.h - Parquet files through Apache Arrow's library.
 *
 * Only the C++ files arrow_*.cc use the library. They become a shared object of their
 * own, libsluice-parquet.so, which is loaded when a file requires it (parquet.c): from
 * ../lib beside the program's folder, or from the paths of the system's loader. So
 * programs that read no Parquet do not pay for Arrow. The libraries that Arrow brings
 * (among them simdjson and OpenSSL, in other versions than ours) do not conflict with
 * ours, because names are looked up separately in each group. If the object is missing,
 * this build has no Parquet, and a message says so.
 *
 * Files are read by row group: a file is opened once (footer, columns), and each row
 * group has its own reader, so that several threads can read several row groups at
 * once. Only requested columns are read, one page at a time: a reader has memory for a
 * page, a dictionary and a batch of each column, in a pool with a limit, so that no
 * size in a file is trusted. Page checksums are verified if the file has them.
 *
 * A column is named like a field of a JSON record; "a.b" is also field b of the struct
 * a. Texts are strings (string, large_string, binary, JSON, enum, and
 * dictionaries of these: all that Parquet stores as byte arrays); ids and domains may
 * also be integers, floats, doubles or booleans, which become text as in a JSON record;
 * scores are floats, doubles or integers. Columns of any type are strings, numbers or
 * booleans. Spans are lists of lists of two integers, or of structs of the integers
 * begin and end. A null is a missing field, whether the value
 * is null or a struct around it.
 */
#ifndef SLU_PARQUET_H
#define SLU_PARQUET_H

#include "formats/text/input.h"
#include "lib/stream/metadata.h"

/* Text of a build without Arrow, after "FILE: " or "--format parquet: ". */
#define SLU_PARQUET_NONE                                                               \
    "this build has no Parquet, which takes Apache Arrow's library (make ARROW=1); "   \
    "duckdb can stand in, see sluice(7)"

struct slu_parquet_file;  /* an open file: its footer and columns */
struct slu_parquet_rows;  /* the remaining rows of a row group */
struct slu_parquet_lists; /* an open file of lists */

/* A table for the writer: columns of lists of int32, never empty, and behind them a
 * column for each field of metadata, with lists of values, or of single values. */
struct slu_parquet_table {
    const char *const *column; /* names of the columns of int32 */
    unsigned n_column;
    unsigned delta; /* one bit for each column: its lists are runs, and are written
                       as differences */
    unsigned int8;  /* likewise: its values are int8 */
    uint64_t n_row, group_rows; /* rows in total, and in a row group */
    uint64_t most;              /* largest number of values in a list */
    /* A key and its value for the footer. */
    const char *key, *value;
    void *ctx;
    /* Writes the list's values to out; returns their number. */
    uint64_t (*list)(void *ctx, unsigned column, uint64_t row, int32_t *out);
    const struct slu_meta_fields *meta; /* NULL: none */
    bool single;                        /* rows have single values */
    uint64_t most_values;               /* largest number of values in a list */
    /* Writes the row's values of the field with this key to out, p NULL for null;
     * returns their number, 1 if they are single. */
    uint64_t (*metadata)(void *ctx, uint64_t key, uint64_t row,
                         struct slu_meta_value *out);
};

/* The columns of texts that are read. */
struct slu_parquet_columns {
    const char *const *field; /* SLU_FIELDS names; NULL: not wanted */
    unsigned optional; /* bit 1 << f: the file may lack column f, whose values are then
                        * null */
    const char *const *any; /* names of n_any columns of any type; the file may lack
                             * them */
    size_t n_any;
};

/* The functions of the shared object. */
struct slu_parquet {
    /* SLU_PARQUET_ABI of its build; another version is not used. */
    char abi[64];

    /* Opens a file. `path` as in struct slu_source; name for messages. SLU_E_TRUNCATED;
     * SLU_E_FORMAT (a damaged footer; a column that is missing or of an unsupported
     * type); SLU_E_LIMIT (a footer that needs more than memory_byte); SLU_E_IO;
     * SLU_E_UNSUPPORTED (encrypted; not a regular file). Caller frees with close. */
    int (*open)(struct slu_parquet_file **f, const char *path, const char *name,
                const struct slu_parquet_columns *columns, uint64_t memory_byte,
                struct slu_err *err);
    void (*close)(struct slu_parquet_file *f);             /* NULL is legal */
    uint64_t (*size)(const struct slu_parquet_file *f);    /* size of the file */
    uint64_t (*n_group)(const struct slu_parquet_file *f); /* number of row groups */
    /* Number, in the file, of the first row of row group g; g may be n_group. */
    uint64_t (*row)(const struct slu_parquet_file *f, uint64_t g);
    /* The place of row group g in the file, for shares of its bytes: the stored bytes
     * of the row groups before it, and half of its own. It does not fall from one group
     * to the next, and is below the file's size. */
    uint64_t (*place)(const struct slu_parquet_file *f, uint64_t g);

    /* Reads row group g from its row `skip` on; memory_byte limits Arrow's allocations.
     * Any thread; borrows f. Caller frees with rows_free. */
    int (*rows_new)(struct slu_parquet_rows **r, const struct slu_parquet_file *f,
                    uint64_t g, uint64_t skip, uint64_t memory_byte,
                    struct slu_err *err);
    /* Appends rows to b (raw, rec, field; document is the row in the file, source stays
     * 0) until b has want_byte. SLU_EOF: the row group has ended. After an error, b has
     * the rows before it, and each later call returns the error again. SLU_E_LIMIT:
     * memory_byte was too little. One thread at a time on a reader. */
    int (*rows_read)(struct slu_parquet_rows *r, struct slu_block *b, size_t want_byte,
                     struct slu_err *err);
    void (*rows_free)(struct slu_parquet_rows *r); /* NULL is legal */

    /* Appends the table as a Parquet file, with this level of zstd (0: not compressed),
     * to out. */
    int (*write)(const struct slu_parquet_table *t, int level, struct slu_buf *out,
                 struct slu_err *err);

    /* Opens such a file: it must have these columns, lists of int32 without nulls, and
     * n_row rows. Other columns are not read. Caller frees with lists_close. */
    int (*lists_open)(struct slu_parquet_lists **l, const char *path,
                      const char *const *column, unsigned n_column, uint64_t n_row,
                      uint64_t memory_byte, struct slu_err *err);
    /* Replaces out[i] by the values (int32, native) of list i of the next row; SLU_EOF
     * after the last. A list longer than `most` is an error. */
    int (*lists_next)(struct slu_parquet_lists *l, uint64_t most, struct slu_buf *out,
                      struct slu_err *err);
    void (*lists_close)(struct slu_parquet_lists *l); /* NULL is legal */
};
#define SLU_PARQUET_ABI SLU_VERSION "/10"

/* Loads the shared object, unless it is already loaded; it stays loaded. NULL: it does
 * not exist, or has another version. Any thread. */
const struct slu_parquet *slu_parquet_load(void);

/* Bytes of a block of rows, whose texts may be empty or null. */
static inline size_t slu_rows_weight(const struct slu_block *b)
{
    return b->raw.len + 16 * b->n_rec;
}

#endif
