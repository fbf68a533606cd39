#include "json_write.h"

unsigned slu_utf8_valid_at(const uint8_t *p, size_t n)
{
    if (!n)
        return 0;
    uint8_t c = p[0];
    if (c < 0x80)
        return 1;
    unsigned len = c >= 0xc2 && c <= 0xdf   ? 2
                   : (c & 0xf0) == 0xe0     ? 3
                   : c >= 0xf0 && c <= 0xf4 ? 4
                                            : 0;
    if (!len || n < len)
        return 0;
    uint8_t low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    uint8_t high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high)
        return 0;
    for (unsigned i = 2; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

static int put_escape(struct slu_buf *out, uint8_t c, struct slu_err *err)
{
    switch (c) {
    case '"':
        return slu_buf_append(out, "\\\"", 2, err);
    case '\\':
        return slu_buf_append(out, "\\\\", 2, err);
    case '\n':
        return slu_buf_append(out, "\\n", 2, err);
    case '\r':
        return slu_buf_append(out, "\\r", 2, err);
    case '\t':
        return slu_buf_append(out, "\\t", 2, err);
    default:
        return slu_buf_printf(out, err, "\\u%04x", c);
    }
}

int slu_json_put_part(struct slu_buf *out, const void *bytes, size_t n,
                      struct slu_err *err)
{
    const uint8_t *p = bytes;
    int rc = SLU_OK;
    size_t plain = 0; /* bytes before i that need no change and are not yet in out */
    for (size_t i = 0; !rc && i < n;) {
        uint8_t c = p[i];
        bool escape = c < 0x20 || c == '"' || c == '\\';
        unsigned len = escape ? 1 : slu_utf8_valid_at(p + i, n - i);
        if (!escape && len) {
            i += len;
            plain += len;
            continue;
        }
        rc = slu_buf_append(out, p + i - plain, plain, err);
        plain = 0;
        if (!rc)
            rc = escape ? put_escape(out, c, err)
                        : slu_buf_append(out, "\xef\xbf\xbd", 3, err);
        i++;
    }
    return rc ? rc : slu_buf_append(out, p + n - plain, plain, err);
}

int slu_json_put_string(struct slu_buf *out, const void *bytes, size_t n,
                        struct slu_err *err)
{
    int rc = slu_buf_append(out, "\"", 1, err);
    if (!rc)
        rc = slu_json_put_part(out, bytes, n, err);
    return rc ? rc : slu_buf_append(out, "\"", 1, err);
}
