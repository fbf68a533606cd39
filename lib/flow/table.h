/* table.h - rows between the stages of a flow (flow.h): one stage puts them, a later
 * one reads them, in one process or through files. The reader need not know which.
 *
 * There are four kinds of tables. ROWS are read in order: of their words, or of (key,
 * bytes), with bytes compared by memcmp, then length. This is a total order, so the
 * rows read do not depend on memory, threads or the number of writers. LIST is read as
 * it was put, part after part. GROUPS gives only groups of rows with equal top bits of
 * word 0, and omits most rows that are alone in their group; so neither writing nor
 * reading sorts all rows. STORE has for each ordinal any number of numbers, and a few
 * words; both can be read in any order. Words 0 and 1 are XXH3-128 (low, high) of the
 * numbers, which is checked when they are read.
 *
 * A row is n_word numbers or, if n_word is 0, a 128-bit key and bytes. The bytes of
 * rows with equal keys must be prefix-free, as all bytes that can be parsed are: no
 * row's bytes may begin with all bytes of another row.
 *
 * In one process ROWS use sorter.h, GROUPS grouper.h, LIST bytelog.h, and STORE two
 * temporary files. With files (workfile.h) a writer of ROWS sorts within its share and
 * writes cell after cell. A reader merges its cells of all files; if these are more
 * files than it may open, or if their buffers would exceed its share, it pours the rows
 * into a sorter. A writer of GROUPS divides rows by ranges, and a reader pours one
 * range of all files into a grouper.
 *
 * Ordinals: a part numbers its sequences, or the units of slu_flow_span, from 0. If
 * ROWS are divided by parts, word 0 is an ordinal of all parts when it is put, and
 * counts from the beginning of its part in the file.
 *
 * Thread safety: one thread at a time on a table.
 */
#ifndef SLU_TABLE_H
#define SLU_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/flow/grouper.h"
#include "sorter.h"

#define SLU_TABLE_WORDS 8 /* of a row */

#define SLU_STORE_WORDS 3 /* of an ordinal */

enum slu_table_kind { SLU_ROWS, SLU_LIST, SLU_GROUPS, SLU_STORE };
/* How many cells a table has in a file: one; one for each part; one for each range; one
 * for each range of each bucket of the stream, bucket by bucket; or none, for a table
 * of one process only. */
enum slu_table_cut {
    SLU_CUT_NO,
    SLU_CUT_PARTS,
    SLU_CUT_RANGES,
    SLU_CUT_BUCKETS,
    SLU_CUT_HERE
};

struct slu_table_spec {
    const char *name;
    enum slu_table_kind kind;
    enum slu_table_cut cut;
    unsigned n_word; /* 0: a key and bytes. GROUPS: 3 to 6 */
    uint8_t share;   /* of the flow's budget, in 64ths, while the table is written or
                        read */
    /* group_bits, for GROUPS: rows whose word 0 agrees in this many top bits are a
     * group. local, bit i: word i has an ordinal in its lower 48 bits: of the writer's
     * part when it is put, of all parts when it is read. */
    uint8_t group_bits, local;
    uint8_t low; /* number of bits below a word's ordinal, at most 16 */
    /* For ROWS divided by parts, when they are written to a file; ctx is the flow's.
     * Returns true if it has merged `next` into `row`, so that `next` is not written.
     * NULL: all rows are written. */
    bool (*join)(const void *ctx, uint64_t *row, const uint64_t *next);
    bool dense; /* ROWS that are not divided: word 0 is an ordinal of all parts */
};

struct slu_table;

struct slu_row {
    struct slu_u128 key; /* n_word 0: the key; else the first two words */
    const void *p;       /* the words, or the bytes; aligned to 8 */
    size_t n_byte;
    uint64_t part; /* the part that wrote the row; 0 in one process */
};

/* LIST: rows that are put from now on go to this cell. Cells must ascend; cells that
 * are left out are empty. */
SLU_MUST_USE int slu_table_section(struct slu_table *t, uint64_t cell,
                                   struct slu_err *err);
/* Appends a row of n_word numbers, or n rows, one after another; copies. */
SLU_MUST_USE int slu_table_put(struct slu_table *t, const uint64_t *row,
                               struct slu_err *err);
SLU_MUST_USE int slu_table_put_rows(struct slu_table *t, const uint64_t *row, size_t n,
                                    struct slu_err *err);
/* For a table without words: appends a row whose bytes are the concatenated pieces. */
SLU_MUST_USE int slu_table_put_bytes(struct slu_table *t, struct slu_u128 key,
                                     const struct slu_slice *piece, unsigned n_piece,
                                     struct slu_err *err);
/* ROWS: the sorter that receives the rows, for callers that have complete records. */
struct slu_sorter *slu_table_sorter(struct slu_table *t);
/* Returns the next row, borrowed until the next call. SLU_EOF after the last, when all
 * checksums were right; SLU_E_CHECKSUM names the file in which a checksum, or the order
 * of keys, is wrong. */
SLU_MUST_USE int slu_table_next(struct slu_table *t, struct slu_row *row,
                                struct slu_err *err);
/* STORE. put: the next ordinal of the part, with n numbers and n_word words. look:
 * entries of ordinals from … from + n - 1 of all parts. read: numbers from … from + n -
 * 1 of the ordinal with entry e; the first number must be read before the others. look
 * and read check the contents of files. */
struct slu_stored {
    /* The n numbers are at position off. A caller that has copied them elsewhere may set
     * off to their position there. */
    uint64_t off, n;
    uint64_t word[SLU_STORE_WORDS];
    uint64_t check;
};
SLU_MUST_USE int slu_store_put(struct slu_table *t, const uint64_t *word,
                               const uint64_t *v, uint64_t n, struct slu_err *err);
SLU_MUST_USE int slu_store_look(struct slu_table *t, uint64_t from, size_t n,
                                struct slu_stored *e, struct slu_err *err);
SLU_MUST_USE int slu_store_read(struct slu_table *t, uint64_t ordinal,
                                const struct slu_stored *e, uint64_t from, size_t n,
                                uint64_t *v, struct slu_err *err);
/* GROUPS: feeds all groups; called once, in place of slu_table_next. SLU_E_CHECKSUM as
 * for slu_table_next. */
SLU_MUST_USE int slu_table_group(struct slu_table *t, const struct slu_group_ops *ops,
                                 struct slu_err *err);

#endif
