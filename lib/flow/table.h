/* table.h - rows between the stages of a flow (flow.h): put by one stage, read by a
 * later one, in one process or over files, and the reader cannot tell which.
 *
 * Four kinds. ROWS leave in order: by their words, or by (key, bytes) with bytes
 * compared by memcmp, then length: a total order, so that what is read depends on
 * neither memory nor threads nor how many wrote it. LIST leaves as it was put, part
 * after part. Of MEET only groups of rows with equal top bits of word 0 are of
 * interest, and most rows that are alone in theirs never leave: neither writing nor
 * reading sorts all of them. STORE has of each ordinal some numbers, as many as it
 * likes, and a few words, and both are read anywhere; words 0 and 1 are XXH3-128 (low,
 * high) of the numbers, and what is read is checked by it.
 *
 * A row is n_word numbers, or, where n_word is 0, a 128-bit key and bytes. Bytes of
 * rows with equal keys must tell by themselves where they end, as all that can be
 * parsed does: none may begin with all of another's.
 *
 * In one process ROWS are sorter.h, MEET is cells.h, LIST is spool.h, STORE is two
 * temporary files. Over files
 * (workfile.h) a writer of ROWS sorts within its share and writes cell after cell; a
 * reader merges its cells of all files, or, where there are more files than it may
 * open, or their buffers would outgrow its share, pours them into a sorter. A writer of
 * MEET parts rows by ranges, and a reader pours one range of all files into cells.
 *
 * Ordinals: a part numbers its sequences, or what slu_flow_span says, from 0. Word 0 of
 * ROWS that are cut by parts is an ordinal of all parts where it is put, and counts
 * from the beginning of its part in the file.
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
#include "lib/flow/cells.h"
#include "sorter.h"

#define SLU_TABLE_WORDS 8 /* of a row, at most */

#define SLU_STORE_WORDS 3 /* of an ordinal, at most */

enum slu_table_kind { SLU_ROWS, SLU_LIST, SLU_MEET, SLU_STORE };
/* How many cells a file has of a table: one, one for each part, for each range, for
 * each range of each bucket of the stream, bucket by bucket; none, as there is such a
 * table in one process only. */
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
    unsigned n_word; /* 0: a key and bytes. MEET: 3 to 6 */
    uint8_t share;   /* of the flow's budget, in 64ths, while it is written or read */
    /* MEET: rows whose word 0 agrees in so many bits, from the top, are a group; and
     * bit i: word i has an ordinal in its lower 48 bits, of the writer's part where it
     * is put, of all parts where it is read. */
    uint8_t group_bits, local;
    uint8_t low; /* below a word's ordinal are so many bits more, 16 at most */
    /* ROWS cut by parts, as they go to a file, with the flow's ctx: true: `next` is in
     * `row` now and does not go there. NULL: all go. */
    bool (*join)(const void *ctx, uint64_t *row, const uint64_t *next);
    bool dense; /* ROWS of no cut: word 0 is an ordinal of all parts */
};

struct slu_table;

struct slu_row {
    struct slu_u128 key; /* n_word 0; else the first two words */
    const void *p;       /* the words, or the bytes; aligned to 8 */
    size_t n_byte;
    uint64_t part; /* of whoever wrote it; 0 in one process */
};

/* LIST: what is put from now on goes to that cell. They ascend; those left out are
 * empty. */
SLU_MUST_USE int slu_table_section(struct slu_table *t, uint64_t cell,
                                   struct slu_err *err);
/* Appends a row of n_word numbers, or n of them, one after another; copies. */
SLU_MUST_USE int slu_table_put(struct slu_table *t, const uint64_t *row,
                               struct slu_err *err);
SLU_MUST_USE int slu_table_put_rows(struct slu_table *t, const uint64_t *row, size_t n,
                                    struct slu_err *err);
/* The same of a table without words: the bytes are the pieces one after another. */
SLU_MUST_USE int slu_table_put_bytes(struct slu_table *t, struct slu_u128 key,
                                     const struct slu_piece *piece, unsigned n_piece,
                                     struct slu_err *err);
/* ROWS that are put: the sorter that they go to, for who has records ready. */
struct slu_sorter *slu_table_sorter(struct slu_table *t);
/* The next row, borrowed until the next call. SLU_EOF behind the last, once all
 * checksums were right; SLU_E_CHECKSUM names the file where they, or the order of keys,
 * are not. */
SLU_MUST_USE int slu_table_next(struct slu_table *t, struct slu_row *row,
                                struct slu_err *err);
/* STORE. put: of the next ordinal of the part; n numbers, and n_word words. look: what
 * there is of ordinals from … from + n - 1 of all parts. read: numbers from … from + n
 * - 1 of an ordinal, of which e tells; the first of them before others. Both check what
 * files say. */
struct slu_stored {
    uint64_t off,
        n; /* where they are: whoever reads elsewhere may change it; numbers */
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
/* MEET, once, instead of slu_table_next: feeds all groups. SLU_E_CHECKSUM as there. */
SLU_MUST_USE int slu_table_meet(struct slu_table *t, const struct slu_meet_ops *ops,
                                struct slu_err *err);

#endif
