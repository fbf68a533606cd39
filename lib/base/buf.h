/* buf.h - a growable byte buffer, and size arithmetic that cannot overflow.
 *
 * Ownership: a slu_buf owns `data`; the pointer is valid until the next call that may
 * grow it. init makes it empty, release frees and makes it empty again, clear keeps the
 * memory.
 */
#ifndef SLU_BUF_H
#define SLU_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

SLU_BEGIN_DECLS

struct slu_buf {
    uint8_t *data; /* 64-byte aligned */
    size_t len;    /* bytes in use */
    size_t cap;    /* bytes allocated */
};

#define SLU_BUF_INIT                                                                   \
    {                                                                                  \
        NULL, 0, 0                                                                     \
    }

void slu_buf_release(struct slu_buf *b);
static inline void slu_buf_clear(struct slu_buf *b)
{
    b->len = 0;
}

static inline void slu_buf_swap(struct slu_buf *a, struct slu_buf *b)
{
    const struct slu_buf t = *a;
    *a = *b;
    *b = t;
}

/* Bytes that slu_buf_trim keeps. */
#define SLU_KEEP_BYTE       ((size_t)4 << 20)  /* of a worker's buffer for a document */
#define SLU_KEEP_BATCH_BYTE ((size_t)12 << 20) /* of a buffer for a batch's data */
/* Frees the memory, and its contents, if it is more than `most` bytes. So memory grown
 * for a long document is returned, while buffers of usual documents are kept. */
static inline void slu_buf_trim(struct slu_buf *b, size_t most)
{
    if (b->cap > most)
        slu_buf_release(b);
}

/* Makes room for n more bytes after len. */
SLU_MUST_USE int slu_buf_reserve(struct slu_buf *b, size_t n, struct slu_err *err);
SLU_MUST_USE int slu_buf_append(struct slu_buf *b, const void *p, size_t n,
                                struct slu_err *err);
/* Appends zero bytes until len is a multiple of `align`. */
SLU_MUST_USE int slu_buf_align(struct slu_buf *b, size_t align, struct slu_err *err);
SLU_MUST_USE int slu_buf_printf(struct slu_buf *b, struct slu_err *err, const char *fmt,
                                ...) SLU_PRINTF(3, 4);

/* True if the result does not fit. */
static inline bool slu_mul_overflow(size_t a, size_t b, size_t *out)
{
    return __builtin_mul_overflow(a, b, out);
}
static inline bool slu_add_overflow(size_t a, size_t b, size_t *out)
{
    return __builtin_add_overflow(a, b, out);
}

/* Grows *pp, an array of *cap elements of elem_size bytes, to at least `need` elements,
 * by doubling. *pp is a malloc'd array that the caller frees with free(). */
SLU_MUST_USE int slu_grow(void *pp, size_t *cap, size_t need, size_t elem_size,
                          struct slu_err *err);

SLU_END_DECLS

#endif
