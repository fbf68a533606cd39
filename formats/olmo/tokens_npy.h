/* tokens_npy.h - shared by formats/olmo/tokens_npy*.c: the reader of documents.
 */
#ifndef SLU_TOKENS_NPY_H
#define SLU_TOKENS_NPY_H

#include <stdatomic.h>

#include "formats/ids/tokens_private.h"
#include "formats/olmo/olmo_rows.h"
#include "kernels/scan.h"

struct slu_npy {
    struct slu_tokens_cfg cfg;
    uint64_t vocab_size;
    uint8_t *width;      /* width of each file's ids, in bytes */
    unsigned want_width; /* width of the ids that the reader returns */
    const struct slu_eos_kernel *kernel;
    uint32_t *at; /* positions of EOS in a batch, SLU_FRAME_SEQS of them */

    size_t at_path;
    struct slu_npy_file file;
    bool open, ended, any_eos;
    uint64_t first;       /* index, in the file, of the next batch's first id */
    struct slu_buf carry; /* ids from `first` on that were already read */
    size_t clean;         /* number of these that are known not to be EOS */

    struct slu_olmo_rows *rows; /* of the current file; NULL: documents end with EOS */
    struct slu_olmo_row row;    /* the next row, if have_row */
    bool have_row;
    uint64_t gap_id; /* the one id between rows; SLU_NO_TOKEN: none so far */

    struct slu_count given; /* count of the documents that fetch has put into batches */
    _Atomic uint64_t n_byte;
};

/* Appends up to n more ids of the current file to *buf. */
SLU_MUST_USE int slu_npy_read_more(struct slu_npy *x, struct slu_buf *buf, size_t n,
                                   struct slu_err *err);
/* Sets and returns SLU_E_LIMIT: the document that begins at id `first` is too
 * long. */
int slu_npy_too_long(const struct slu_npy *x, uint64_t first, struct slu_err *err);

/* Opens the rows beside the current file, if there are any. */
SLU_MUST_USE int slu_npy_open_rows(struct slu_npy *x, struct slu_err *err);
/* Reads the next documents by their rows; none at the end, where the rows are
 * closed. */
SLU_MUST_USE int slu_npy_fill_rows(struct slu_npy *x, struct slu_batch *b,
                                   struct slu_err *err);

#endif
