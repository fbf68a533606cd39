#include "err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json_write.h"

unsigned slu_unprintable(const char *text, size_t n, uint32_t *ch)
{
    const uint8_t *p = (const uint8_t *)text;
    unsigned k = slu_utf8_valid_at(p, n);
    uint32_t c = k == 2   ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
                 : k == 3 ? (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu)
                          : p[0];

    *ch = c;
    if (k == 0)
        return 1;
    return c < 0x20 || (c >= 0x7f && c < 0xa0 && k < 4) || c == 0x61c || c == 0x200e ||
                   c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
                   (c >= 0x2066 && c <= 0x2069)
               ? k
               : 0;
}

void slu_printable(char *s)
{
    size_t left = strlen(s);
    uint32_t ch;
    char *out = s;

    while (left) {
        unsigned n = slu_unprintable(s, left, &ch);
        if (n) {
            *out++ = '?';
        } else {
            n = slu_utf8_valid_at((const uint8_t *)s, left);
            memmove(out, s, n);
            out += n;
        }
        s += n;
        left -= n;
    }
    *out = '\0';
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
    slu_printable(err->msg);
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
    slu_printable(err->msg);
    return err->code;
}
