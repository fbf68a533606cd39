/* over.h - a reader of documents 0 … n - 1 that a test makes, a few in each batch. */
#ifndef SLU_TESTS_OVER_H
#define SLU_TESTS_OVER_H

#include "lib/stream/stream.h"

struct over {
    uint64_t n, at;
    /* Appends document i to the batch. */
    int (*add)(void *ctx, struct slu_batch *b, uint64_t i, struct slu_err *err);
    void *ctx;
};

static inline int over_fetch(void *input, struct slu_batch *b, struct slu_err *err)
{
    struct over *o = input;
    uint64_t end = o->at + 1 + o->at % 256;
    int rc = o->at < o->n ? SLU_OK : SLU_EOF;

    for (; o->at < end && o->at < o->n && !rc; o->at++)
        rc = o->add(o->ctx, b, o->at, err);
    return rc;
}

static inline int over_open(const void *input, struct slu_batch *b, struct slu_err *err)
{
    (void)input, (void)b, (void)err;
    return SLU_OK;
}

static inline int over_finish(void *input, const struct slu_sum *seen,
                              struct slu_err *err)
{
    const struct over *o = input;

    return seen->n.sequences == o->n ? SLU_OK : slu_fail(err, SLU_E_USAGE, "lost");
}

static inline uint64_t over_bytes(const void *input)
{
    (void)input;
    return 0;
}

static inline void over_free(void *input)
{
    (void)input;
}

/* Borrow o until the reader is freed. */
static inline int over_of(struct slu_reader **r, struct over *o,
                          const struct slu_header *h, struct slu_err *err)
{
    static const struct slu_input_ops ops = {over_fetch, over_open, over_finish,
                                             over_bytes, over_free};

    return slu_reader_over(r, &ops, o, h, err);
}

static inline int over_new(struct slu_reader **r, struct over *o, unsigned tok_bytes,
                           struct slu_err *err)
{
    struct slu_header h;

    slu_header_init(&h);
    h.tok_bytes = tok_bytes;
    h.vocab_size = 1 << 16;
    h.eos = h.bos = h.pad = SLU_NO_TOKEN;
    return over_of(r, o, &h, err);
}

#endif
