/* table.h - rows between the stages of a flow (flow.h): put by one stage, read by a
 * later one, in one process or over files, and the reader cannot tell which.
 *
 * Two kinds. ROWS leave in order: by their words, or by (key, bytes) with bytes
 * compared by memcmp, then length: a total order, so that what is read depends on
 * neither memory nor threads nor how many wrote it. LIST leaves as it was put, part
 * after part.
 *
 * A row is n_word numbers, or, where n_word is 0, a 128-bit key and bytes. Bytes of
 * rows with equal keys must tell by themselves where they end, as all that can be
 * parsed does: none may begin with all of another's.
 *
 * In one process ROWS are sorter.h, LIST is spool.h. Over files (workfile.h) a writer
 * of ROWS sorts within its share and writes cell after cell; a reader merges its cells
 * of all files, or, where there are more files than it may open, or their buffers would
 * outgrow its share, pours them into a sorter.
 *
 * Thread safety: one thread at a time on a table.
 */
#ifndef SLU_TABLE_H
#define SLU_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/hash.h"
#include "lib/order/sorter.h"

#define SLU_TABLE_WORDS 8 /* of a row, at most */

enum slu_table_kind { SLU_ROWS, SLU_LIST };
/* How many cells a file has of a table: one, one for each part, for each range. */
enum slu_table_cut { SLU_CUT_NO, SLU_CUT_PARTS, SLU_CUT_RANGES };

struct slu_table_spec {
    const char *name;
    enum slu_table_kind kind;
    enum slu_table_cut cut;
    unsigned n_word; /* 0: a key and bytes */
    uint8_t share;   /* of the flow's budget, in 64ths, while it is written or read */
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
/* Appends a row of n_word numbers; copies. */
SLU_MUST_USE int slu_table_put(struct slu_table *t, const uint64_t *row,
                               struct slu_err *err);
/* The same of a table without words: the bytes are the pieces one after another. */
SLU_MUST_USE int slu_table_put_bytes(struct slu_table *t, struct slu_u128 key,
                                     const struct slu_piece *piece, unsigned n_piece,
                                     struct slu_err *err);
/* The next row, borrowed until the next call. SLU_EOF behind the last, once all
 * checksums were right; SLU_E_CHECKSUM names the file where they, or the order of keys,
 * are not. */
SLU_MUST_USE int slu_table_next(struct slu_table *t, struct slu_row *row,
                                struct slu_err *err);

#endif
