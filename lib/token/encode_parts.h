/* encode_parts.h - encoding of one text by all threads of a pipe, with the ids that one
 * thread gives. */
#ifndef SLU_ENCODE_PARTS_H
#define SLU_ENCODE_PARTS_H

#include "lib/base/pipe.h"
#include "tokenizer.h"

/* All pointers are borrowed. */
struct slu_encode_workers {
    const struct slu_tokenizer *tokenizer;
    struct slu_encoder **encoder; /* one per worker */
    unsigned n_worker;
    struct slu_pipe *pipe;
    size_t part_byte; /* texts of less than two parts of this size are not cut */
};

/* As slu_encode_valid; called by the work of that worker. At most about 1.5 parts per
 * worker wait in memory of their own before they are appended to *ids. */
SLU_MUST_USE int slu_encode_parts(const struct slu_encode_workers *workers,
                                  unsigned worker, const char *utf8, size_t n_byte,
                                  struct slu_ids *ids, struct slu_err *err);

/* Whether texts can be cut for the tokenizer at all. */
bool slu_encode_cuts(const struct slu_tokenizer *t);
/* Returns where to cut a text whose first n bytes are known, so that the parts have the
 * ids of the whole, and are valid UTF-8 if the whole is; the bytes need not be valid.
 * The place is one of the last from `from` on; 0: none. Linear in n - from, and faster
 * if there are many places. More text does not change places before n - 3, so a range
 * need not be searched again. */
size_t slu_encode_cut(const struct slu_tokenizer *t, const void *text, size_t n,
                      size_t from);

#endif
