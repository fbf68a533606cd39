#include "buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pages.h"

/* From this size on buffers grow by moving pages (realloc's mremap), not bytes:
 * touching fresh memory takes longer than all other work on it. */
#define LARGE_BYTE ((size_t)1 << 20)

/* Allocates n bytes. What is large gets huge pages, as far as it fills them. */
static uint8_t *allocate(size_t n)
{
    void *p = NULL;

    if (posix_memalign(&p, n < SLU_HUGE_PAGE ? 64 : SLU_HUGE_PAGE, n))
        return NULL;
    if (n >= SLU_HUGE_PAGE)
        (void)madvise(p, n / SLU_HUGE_PAGE * SLU_HUGE_PAGE, MADV_HUGEPAGE);
    return p;
}

void slu_buf_release(struct slu_buf *b)
{
    free(b->data);
    *b = (struct slu_buf)SLU_BUF_INIT;
}

int slu_buf_reserve(struct slu_buf *b, size_t n, struct slu_err *err)
{
    size_t need;
    if (slu_add_overflow(b->len, n, &need) || need > SIZE_MAX / 2)
        return slu_fail_nomem(err, UINT64_MAX);
    if (need <= b->cap)
        return SLU_OK;
    size_t cap = b->cap + b->cap / 2;
    if (!b->len && need >= LARGE_BYTE) { /* nothing is kept; the next need is similar */
        slu_buf_release(b);
        cap = need + need / 16;
    }
    if (cap < need)
        cap = need;
    cap = (cap + 63) & ~(size_t)63;
    if (b->cap >= LARGE_BYTE) {
        uint8_t *q = realloc(b->data, cap);
        if (!q)
            return slu_fail_nomem(err, cap);
        b->data = q;
        b->cap = cap;
        if ((uintptr_t)q % 64 == 0)
            return SLU_OK;
    }
    uint8_t *p = allocate(cap);
    if (!p)
        return slu_fail_nomem(err, cap);
    if (b->len)
        memcpy(p, b->data, b->len);
    free(b->data);
    b->data = p;
    b->cap = cap;
    return SLU_OK;
}

int slu_buf_append(struct slu_buf *b, const void *p, size_t n, struct slu_err *err)
{
    int rc = slu_buf_reserve(b, n, err);
    if (rc)
        return rc;
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    return SLU_OK;
}

int slu_buf_align(struct slu_buf *b, size_t align, struct slu_err *err)
{
    size_t n = (align - b->len % align) % align;
    int rc = slu_buf_reserve(b, n, err);
    if (rc)
        return rc;
    if (n)
        memset(b->data + b->len, 0, n);
    b->len += n;
    return SLU_OK;
}

int slu_buf_printf(struct slu_buf *b, struct slu_err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return slu_fail(err, SLU_E_FORMAT, "text cannot be formatted");
    int rc = slu_buf_reserve(b, (size_t)n + 1, err);
    if (rc)
        return rc;
    va_start(ap, fmt);
    vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return SLU_OK;
}

int slu_grow(void *pp, size_t *cap, size_t need, size_t elem_size, struct slu_err *err)
{
    if (need <= *cap)
        return SLU_OK;
    size_t n = *cap ? *cap : 16, bytes;
    while (n < need)
        if (slu_mul_overflow(n, 2, &n))
            return slu_fail_nomem(err, UINT64_MAX);
    if (slu_mul_overflow(n, elem_size, &bytes))
        return slu_fail_nomem(err, UINT64_MAX);
    void *old;
    memcpy(&old, pp, sizeof old);
    void *p = realloc(old, bytes);
    if (!p)
        return slu_fail_nomem(err, bytes);
    memcpy(pp, &p, sizeof p);
    *cap = n;
    return SLU_OK;
}
