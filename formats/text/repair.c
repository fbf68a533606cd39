#include "repair.h"

#include <string.h>

#include "lib/base/json.h"

static bool between(const uint8_t *p, size_t n, size_t i, uint8_t least, uint8_t most)
{
    return i < n && p[i] >= least && p[i] <= most;
}

/* Returns how many of the n bytes at p, which are no character, become one U+FFFD. */
static size_t subpart(const uint8_t *p, size_t n)
{
    const uint8_t b = p[0];
    const bool three = b >= 0xE0 && b <= 0xEF, four = b >= 0xF0 && b <= 0xF4;
    const uint8_t least = b == 0xE0   ? 0xA0
                          : b == 0xF0 ? 0x90
                                      : 0x80,
                  most = b == 0xED   ? 0x9F
                         : b == 0xF4 ? 0x8F
                                     : 0xBF;
    if (!(three || four) || !between(p, n, 1, least, most))
        return 1;
    return four && between(p, n, 2, 0x80, 0xBF) ? 3 : 2;
}

static int repair_utf8(struct slu_buf *out, const uint8_t *p, size_t n,
                       struct slu_repaired *r, struct slu_err *err)
{
    enum { STEP = 256 }; /* so that the time is linear where much is bad */
    int rc = SLU_OK;
    while (n && !rc) {
        size_t k = slu_utf8_valid_prefix(p, n < STEP ? n : STEP);
        if (k) {
            rc = slu_buf_append(out, p, k, err);
        } else {
            rc = slu_buf_append(out, "\xEF\xBF\xBD", 3, err);
            k = subpart(p, n);
            r->utf8++;
        }
        p += k;
        n -= k;
    }
    return rc;
}

/* The code unit of an escape "\uXXXX" at p; 0: there is none. */
static unsigned unit(const uint8_t *p, size_t n)
{
    unsigned u = 0;
    if (n < 6 || p[0] != '\\' || p[1] != 'u')
        return 0;
    for (size_t i = 2; i < 6; i++) {
        const uint8_t c = p[i] | 0x20;
        if (p[i] >= '0' && p[i] <= '9')
            u = u << 4 | (p[i] - '0');
        else if (c >= 'a' && c <= 'f')
            u = u << 4 | (unsigned)(c - 'a' + 10);
        else
            return 0;
    }
    return u;
}

/* Replaces lone surrogates in place: both escapes have six bytes. */
static void repair_escapes(uint8_t *p, size_t n, struct slu_repaired *r)
{
    for (size_t i = 0; i < n;) {
        const uint8_t *at = memchr(p + i, '\\', n - i);
        if (!at)
            return;
        i = (size_t)(at - p);
        const unsigned u = unit(p + i, n - i),
                       next = u ? unit(p + i + 6, n - i - 6) : 0;
        if (u < 0xD800 || u > 0xDFFF) {
            i += 2;
        } else if (u <= 0xDBFF && next >= 0xDC00 && next <= 0xDFFF) {
            i += 12;
        } else {
            memcpy(p + i, "\\ufffd", 6);
            r->surrogates++;
            i += 6;
        }
    }
}

int slu_repair(struct slu_buf *out, const uint8_t *p, size_t n, bool json,
               struct slu_repaired *r, struct slu_err *err)
{
    const size_t begin = out->len;
    int rc = repair_utf8(out, p, n, r, err);
    if (!rc && json && out->len > begin)
        repair_escapes(out->data + begin, out->len - begin, r);
    return rc;
}
