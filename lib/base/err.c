#include "err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void slu_one_line(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = '?';
}

static int fill(struct slu_err *err, int code, int sys_errno, uint64_t off_byte,
                const char *fmt, va_list ap)
{
    if (!err)
        return code;
    err->code = code;
    err->sys_errno = sys_errno;
    err->off_byte = off_byte;
    err->advice = SLU_ADVISE_NOTHING;
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    if (sys_errno) {
        size_t n = strlen(err->msg);
        snprintf(err->msg + n, sizeof err->msg - n, ": %s", strerror(sys_errno));
    }
    slu_one_line(err->msg);
    return code;
}

int slu_fail(struct slu_err *err, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(err, code, 0, UINT64_MAX, fmt, ap);
    va_end(ap);
    return code;
}

int slu_fail_at(struct slu_err *err, int code, uint64_t off_byte, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(err, code, 0, off_byte, fmt, ap);
    va_end(ap);
    return code;
}

int slu_fail_errno(struct slu_err *err, const char *fmt, ...)
{
    int e = errno ? errno : EIO;
    va_list ap;
    va_start(ap, fmt);
    fill(err, SLU_E_IO, e, UINT64_MAX, fmt, ap);
    va_end(ap);
    return SLU_E_IO;
}

int slu_fail_nomem(struct slu_err *err, uint64_t n_bytes)
{
    return slu_fail(err, SLU_E_NOMEM,
                    "out of memory: %llu bytes could not be allocated",
                    (unsigned long long)n_bytes);
}

int slu_advise(struct slu_err *err, enum slu_advice advice, int code)
{
    if (err)
        err->advice = (int)advice;
    return code;
}

const char *slu_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

int slu_err_at(struct slu_err *err, const char *fmt, ...)
{
    if (!err)
        return SLU_E_IO;
    char old[sizeof err->msg];
    memcpy(old, err->msg, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    if (n < 0)
        n = 0;
    if ((size_t)n < sizeof err->msg)
        snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %s", old);
    slu_one_line(err->msg);
    return err->code;
}
