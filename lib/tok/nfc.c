/* nfc.c - normal form C of the stretches of a text that need it. */
#include "lib/tok/nfc.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "lib/tok/unicode.h"

/* Characters that are in normal form by themselves, begin a new sequence (combining
 * class 0) and never compose with what is before them: the text can be cut in front of
 * each. Only the common blocks; what is missing here is merely slower. */
static bool is_starter(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } SAFE[] = {
        {0x0000, 0x02FF}, {0x038E, 0x03CE}, {0x0400, 0x0482}, {0x048A, 0x0530},
        {0x05D0, 0x05EA}, {0x0620, 0x064A}, {0x0905, 0x0928}, {0x0E01, 0x0E30},
        {0x10A0, 0x10FF}, {0x1E00, 0x1EFF}, {0x2010, 0x205E}, {0x2070, 0x20CF},
        {0x2190, 0x22FF}, {0x2330, 0x23FF}, {0x2500, 0x27BF}, {0x3003, 0x3029},
        {0x3041, 0x3096}, {0x30A1, 0x30FA}, {0x30FC, 0x30FC}, {0x4E00, 0x9FFF},
        {0xAC00, 0xD7A3}, {0xFF01, 0xFF9D},
    };
    size_t lo = 0, hi = sizeof SAFE / sizeof *SAFE;

    if (c < 0x300)
        return true;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (SAFE[mid].from <= c)
            lo = mid;
        else
            hi = mid;
    }
    return c <= SAFE[lo].to;
}

static int append_normal(struct slu_buf *buf, const uint8_t *p, size_t n,
                         struct slu_err *err)
{
    utf8proc_uint8_t *out = NULL;
    utf8proc_ssize_t len =
        utf8proc_map(p, (utf8proc_ssize_t)n, &out, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    int rc;

    if (len < 0)
        return len == UTF8PROC_ERROR_NOMEM
                   ? slu_fail_nomem(err, n * 4)
                   : slu_fail(err, SLU_E_FORMAT, "normal form C: %s",
                              utf8proc_errmsg(len));
    rc = slu_buf_append(buf, out, (size_t)len, err);
    free(out);
    return rc;
}

int tok_nfc(const uint8_t *p, size_t n, struct slu_buf *buf, const uint8_t **out,
            size_t *out_len, struct slu_err *err)
{
    size_t done = 0, starter = 0, pos = 0;
    int rc;

    *out = p;
    *out_len = n;
    slu_buf_clear(buf);
    while (pos < n) {
        unsigned len;
        if (p[pos] < 0x80) {
            starter = pos++;
            continue;
        }
        uint32_t c = uni_decode(p + pos, &len);
        if (is_starter(c)) {
            starter = pos;
            pos += len;
            continue;
        }
        /* From the starter before it to the next one. */
        while (pos < n && !is_starter(uni_decode(p + pos, &len)))
            pos += len;
        if ((rc = slu_buf_append(buf, p + done, starter - done, err)) < 0 ||
            (rc = append_normal(buf, p + starter, pos - starter, err)) < 0)
            return rc;
        done = starter = pos;
    }
    if (!done)
        return SLU_OK;
    if ((rc = slu_buf_append(buf, p + done, n - done, err)) < 0)
        return rc;
    *out = buf->data;
    *out_len = buf->len;
    return SLU_OK;
}
