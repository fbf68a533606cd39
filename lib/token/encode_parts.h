/* encode_parts.h - encodes one text by all threads of a pipe, with the same ids as by
 * one thread. */
#ifndef SLU_ENCODE_PARTS_H
#define SLU_ENCODE_PARTS_H

#include "lib/base/pipe.h"
#include "tokenizer.h"

/* All borrowed. */
struct slu_encode_crew {
    const struct slu_tokenizer *tokenizer;
    struct slu_encoder **encoder; /* one a worker */
    unsigned n_worker;
    struct slu_pipe *pipe;
    size_t part_byte; /* texts of less than two parts of this size are not cut */
};

/* As slu_encode_valid; called by the work of that worker. Between the parts' memory and
 * *ids there are at most about 1.5 parts a worker. */
SLU_MUST_USE int slu_encode_parts(const struct slu_encode_crew *crew, unsigned worker,
                                  const char *utf8, size_t n_byte, struct slu_ids *ids,
                                  struct slu_err *err);

/* Whether texts can be cut for the tokenizer at all. */
bool slu_encode_cuts(const struct slu_tokenizer *t);
/* Where to cut a text of which the first n bytes are at hand, which need not be valid
 * UTF-8, so that the parts have the ids of the whole, and are valid if the whole is:
 * one of the last places at `from` or behind it; 0: there is none. Linear in n - from,
 * and in less where there are many. A place before n - 3 that is there stays there, so
 * what was searched once need not be again. */
size_t slu_encode_cut(const struct slu_tokenizer *t, const void *text, size_t n,
                      size_t from);

#endif
