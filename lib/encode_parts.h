/* encode_parts.h - one text encoded by all threads of a pipe, with the ids it has when
 * one thread encodes it. */
#ifndef SLU_ENCODE_PARTS_H
#define SLU_ENCODE_PARTS_H

#include "pipe.h"
#include "tokenizer.h"

/* All borrowed. */
struct slu_encode_crew {
    const struct slu_tokenizer *tokenizer;
    struct slu_encoder **encoder; /* one a worker */
    unsigned n_worker;
    struct slu_pipe *pipe;
    size_t part_byte; /* texts of less than two parts of this size are not cut */
};

/* As slu_encode; called by the work of that worker. Between the parts' memory and *ids
 * there are at most about 1.5 parts a worker. */
SLU_MUST_USE int slu_encode_parts(const struct slu_encode_crew *crew, unsigned worker,
                                  const char *utf8, size_t n_byte, struct slu_ids *ids,
                                  struct slu_err *err);

#endif
