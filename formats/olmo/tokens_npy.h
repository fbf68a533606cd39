/* tokens_npy.h - between the files of formats/olmo/tokens_npy*.c: the reader of documents.
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
    uint8_t *width;      /* of each file's ids, in bytes */
    unsigned want_width; /* of the reader's ids */
    const struct slu_eos_kernel *kernel;
    uint32_t *at; /* places of a batch's EOS, SLU_FRAME_SEQS of them */

    size_t at_path;
    struct slu_npy_file file;
    bool open, ended, any_eos;
    uint64_t first;       /* index in the file of the next batch's first id */
    struct slu_buf carry; /* ids from there on that have been read */
    size_t clean;         /* of them, those that are known to be no EOS */

    struct slu_olmo_rows *rows; /* of the file at hand; NULL: documents end with EOS */
    struct slu_olmo_row row;    /* the next one, if have_row */
    bool have_row;
    uint64_t gap_id; /* what all ids in no row are; SLU_NO_TOKEN: none so far */

    struct slu_count given; /* what fetch has put into batches */
    _Atomic uint64_t n_byte;
};

/* Appends up to n more ids of the file at hand to *buf. */
SLU_MUST_USE int slu_npy_read_more(struct slu_npy *x, struct slu_buf *buf, size_t n,
                                   struct slu_err *err);
/* SLU_E_LIMIT: the document that begins with that id. */
int slu_npy_too_long(const struct slu_npy *x, uint64_t first, struct slu_err *err);

/* The rows beside the file at hand, where there are. */
SLU_MUST_USE int slu_npy_open_rows(struct slu_npy *x, struct slu_err *err);
/* The next documents by its rows; none at its end, which closes it. */
SLU_MUST_USE int slu_npy_fill_rows(struct slu_npy *x, struct slu_batch *b,
                                   struct slu_err *err);

#endif
