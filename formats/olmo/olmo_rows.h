/* olmo_rows.h - the .csv.gz beside a file of ids: which of its ids are which document.
 *
 * A row is `start,end` and what may follow: the dolma toolkit writes
 * `start,end,id,src,loc` (Python's csv: fields with a comma, a quote or a line's end
 * between quotes, quotes doubled), OLMo-core's write_document_indices the first two
 * alone. Document i of the file is its ids [start, end). Rows ascend and do not
 * overlap; what is between two is in no document. There is no row of names.
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
    const uint8_t *id;   /* borrowed until the next call; n_id 0: none */
    size_t n_id;
};

struct slu_olmo_rows;

/* The name of the file that lies beside X.npy, X.csv.gz; caller frees. NULL in *name
 * where the path does not end in .npy. */
SLU_MUST_USE int slu_olmo_rows_name(char **name, const char *npy, struct slu_err *err);
/* n_tok: ids in the .npy file, which no row passes. Messages name the file. */
SLU_MUST_USE int slu_olmo_rows_open(struct slu_olmo_rows **r, const char *path,
                                    uint64_t n_tok, struct slu_err *err);
/* SLU_EOF behind the last row, when all checksums agree. */
SLU_MUST_USE int slu_olmo_rows_next(struct slu_olmo_rows *r, struct slu_olmo_row *row,
                                    struct slu_err *err);
/* NULL is legal. */
void slu_olmo_rows_close(struct slu_olmo_rows *r);

/* Appends a row, as read above; name and id may be NULL (n_id 0). What no reader of
 * lines or of UTF-8 takes is put as a space or as U+FFFD. */
SLU_MUST_USE int slu_olmo_row_put(struct slu_buf *out, uint64_t start, uint64_t end,
                                  const uint8_t *id, size_t n_id, const char *name,
                                  uint64_t place, struct slu_err *err);

#endif
