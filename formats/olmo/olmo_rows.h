/* olmo_rows.h - the .csv.gz beside a file of ids, which lists the ids of each document.
 *
 * A row is `start,end`, possibly with more fields. The dolma toolkit writes
 * `start,end,id,src,loc` (as Python's csv: fields with a comma, a quote or a line end
 * are quoted, and quotes are doubled); OLMo-core's write_document_indices writes only
 * the first two. Document i of the file is its ids [start, end). Rows ascend and do not
 * overlap; ids between two rows belong to no document. There is no header row.
 *
 * Memory: 64 KiB, and the longest row (SLU_E_LIMIT from 1 MiB on). Thread safety: one
 * thread at a time on a handle.
 */
#ifndef SLU_OLMO_ROWS_H
#define SLU_OLMO_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct slu_olmo_row {
    uint64_t start, end; /* start <= end */
    const uint8_t *id;   /* borrowed until the next call; n_id 0: no id */
    size_t n_id;
};

struct slu_olmo_rows;

/* *name: X.csv.gz, the name of the rows for X.npy; caller frees. NULL if the path does
 * not end in .npy. */
SLU_MUST_USE int slu_olmo_rows_name(char **name, const char *npy, struct slu_err *err);
/* n_tok: number of ids in the .npy file, which rows must not exceed. Messages name the
 * rows' file. */
SLU_MUST_USE int slu_olmo_rows_open(struct slu_olmo_rows **r, const char *path,
                                    uint64_t n_tok, struct slu_err *err);
/* Returns the next row; SLU_EOF after the last, when all checksums agree. */
SLU_MUST_USE int slu_olmo_rows_next(struct slu_olmo_rows *r, struct slu_olmo_row *row,
                                    struct slu_err *err);
/* NULL is legal. */
void slu_olmo_rows_close(struct slu_olmo_rows *r);

/* Appends a row in the format above; name and id may be NULL (n_id 0). Characters that
 * readers of lines do not accept become spaces, and bytes that are not UTF-8 become
 * U+FFFD. */
SLU_MUST_USE int slu_olmo_row_put(struct slu_buf *out, uint64_t start, uint64_t end,
                                  const uint8_t *id, size_t n_id, const char *name,
                                  uint64_t place, struct slu_err *err);

#endif
