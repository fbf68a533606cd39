#include "formats/olmo/olmo_rows.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/text/bytes.h"
#include "lib/base/io.h"
#include "lib/base/json_write.h"

enum { CHUNK = 64 << 10, MAX_ROW = 1 << 20 };

struct slu_olmo_rows {
    struct slu_bytes *file;
    char *path; /* for messages */
    uint64_t n_tok, number, last_end;
    struct slu_buf text; /* bytes read and not yet used: text.data[at … text.len) */
    size_t at;
    bool ended;
    struct slu_buf id; /* id of the current row, without quotes */
};

int slu_olmo_rows_name(char **name, const char *npy, struct slu_err *err)
{
    size_t n = strlen(npy);
    struct slu_buf t = SLU_BUF_INIT;
    *name = NULL;
    if (n < 5 || strcmp(npy + n - 4, ".npy"))
        return SLU_OK;
    int rc = slu_buf_printf(&t, err, "%.*s.csv.gz", (int)(n - 4), npy);
    if (!rc && !(*name = strdup((const char *)t.data)))
        rc = slu_fail_nomem(err, n);
    slu_buf_release(&t);
    return rc;
}

int slu_olmo_rows_open(struct slu_olmo_rows **out, const char *path, uint64_t n_tok,
                       struct slu_err *err)
{
    struct slu_olmo_rows *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return slu_fail_nomem(err, sizeof *r);
    r->n_tok = n_tok;
    r->path = strdup(path);
    int rc = r->path ? slu_check_regular(path, err) : slu_fail_nomem(err, strlen(path));
    if (!rc)
        rc = slu_bytes_open(&r->file, path, 0, -1, err);
    if (rc)
        slu_olmo_rows_close(r);
    else
        *out = r;
    return rc;
}

void slu_olmo_rows_close(struct slu_olmo_rows *r)
{
    if (!r)
        return;
    if (r->file)
        slu_bytes_close(r->file);
    slu_buf_release(&r->text);
    slu_buf_release(&r->id);
    free(r->path);
    free(r);
}

/* ---- one row's text ---- */

static int more(struct slu_olmo_rows *r, struct slu_err *err)
{
    size_t got;
    if (r->at) /* at first there is no buffer to move bytes in */
        memmove(r->text.data, r->text.data + r->at, r->text.len - r->at);
    r->text.len -= r->at;
    r->at = 0;
    int rc = slu_buf_reserve(&r->text, CHUNK, err);
    if (!rc)
        rc = slu_bytes_read(r->file, r->text.data + r->text.len, CHUNK, &got, err);
    if (rc)
        return rc;
    r->text.len += got;
    r->ended = got == 0;
    return SLU_OK;
}

/* *n: length of the next row, with its line end. A quoted field may have line ends. */
static int find_row(struct slu_olmo_rows *r, size_t *n, struct slu_err *err)
{
    bool quoted = false;
    for (size_t i = 0;; i++) {
        if (r->at + i == r->text.len) {
            if (i > MAX_ROW)
                return slu_fail(err, SLU_E_LIMIT, "%s: row %llu is longer than 1 MiB",
                                r->path, (unsigned long long)(r->number + 1));
            int rc = r->ended ? SLU_OK : more(r, err);
            if (rc)
                return rc;
            if (r->ended && i == 0)
                return SLU_EOF;
            if (r->ended)
                return slu_fail(
                    err, SLU_E_TRUNCATED,
                    "%s: the last row, %llu, has no end of line: the file was cut",
                    r->path, (unsigned long long)(r->number + 1));
        }
        uint8_t c = r->text.data[r->at + i];
        quoted ^= c == '"';
        if (c == '\n' && !quoted) {
            *n = i + 1;
            return SLU_OK;
        }
    }
}

static const uint8_t *number(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    const uint8_t *digits = p;
    *v = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(*v, (uint64_t)10, v) ||
            __builtin_add_overflow(*v, (uint64_t)(*p - '0'), v))
            return NULL;
    return p == digits ? NULL : p;
}

/* Reads the field at p, which ends before a comma or at `end`, without its quotes. */
static int take_id(struct slu_olmo_rows *r, const uint8_t *p, const uint8_t *end,
                   struct slu_err *err)
{
    slu_buf_clear(&r->id);
    int rc = slu_buf_reserve(&r->id, (size_t)(end - p) + 1, err);
    bool quoted = p < end && *p == '"';
    for (p += quoted; !rc && p < end; p++) {
        if (quoted && *p == '"' && (p + 1 == end || p[1] != '"'))
            break;
        if (!quoted && *p == ',')
            break;
        p += quoted && *p == '"'; /* skips the second of two quotes */
        r->id.data[r->id.len++] = *p;
    }
    return rc;
}

int slu_olmo_rows_next(struct slu_olmo_rows *r, struct slu_olmo_row *row,
                       struct slu_err *err)
{
    size_t n = 0;
    int rc = find_row(r, &n, err);
    if (rc)
        return rc;
    r->number++;
    const uint8_t *p = r->text.data + r->at, *end = p + n - 1;
    r->at += n;
    if (end > p && end[-1] == '\r')
        end--;
    p = number(p, end, &row->start);
    if (p && p < end && *p == ',')
        p = number(p + 1, end, &row->end);
    else
        p = NULL;
    if (!p || (p < end && *p != ','))
        return slu_fail(
            err, SLU_E_FORMAT,
            "%s: row %llu does not begin with two numbers, where a document begins and "
            "ends: these are not rows of a file of ids",
            r->path, (unsigned long long)r->number);
    const char *what = row->start > row->end      ? "end before they begin"
                       : row->start < r->last_end ? "begin before the last row's end"
                       : row->end > r->n_tok      ? "end after the file's last id"
                                                  : NULL;
    if (what)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: row %llu: ids %llu to %llu %s; the rows belong to another "
                        "file, or are damaged",
                        r->path, (unsigned long long)r->number,
                        (unsigned long long)row->start, (unsigned long long)row->end,
                        what);
    r->last_end = row->end;
    rc = take_id(r, p < end ? p + 1 : end, end, err);
    row->id = r->id.data;
    row->n_id = r->id.len;
    return rc;
}

/* ---- writing ---- */

static bool wants_quotes(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] == ',' || p[i] == '"')
            return true;
    return false;
}

/* Writes a field of n bytes; 3 n + 2 bytes are reserved. */
static void put_field(struct slu_buf *out, const uint8_t *p, size_t n)
{
    bool quotes = wants_quotes(p, n);
    uint8_t *to = out->data + out->len;
    if (quotes)
        *to++ = '"';
    for (size_t i = 0; i < n;) {
        unsigned k = slu_utf8_valid_at(p + i, n - i);
        if (k == 0) {
            memcpy(to, "\xEF\xBF\xBD", 3);
            to += 3;
            i++;
        } else if (k == 1) {
            if (p[i] == '"')
                *to++ = '"';
            *to++ = p[i] < ' ' || p[i] == 0x7f ? ' ' : p[i];
            i++;
        } else {
            memcpy(to, p + i, k);
            to += k;
            i += k;
        }
    }
    if (quotes)
        *to++ = '"';
    out->len = (size_t)(to - out->data);
}

static void put_number(struct slu_buf *out, uint64_t v)
{
    uint8_t digit[20];
    unsigned n = 0;
    do
        digit[n++] = (uint8_t)('0' + v % 10);
    while (v /= 10);
    while (n)
        out->data[out->len++] = digit[--n];
}

int slu_olmo_row_put(struct slu_buf *out, uint64_t start, uint64_t end,
                     const uint8_t *id, size_t n_id, const char *name, uint64_t place,
                     struct slu_err *err)
{
    size_t n_name = name ? strlen(name) : 0;
    int rc = slu_buf_reserve(out, 3 * (n_id + n_name) + 80, err);
    if (rc)
        return rc;
    put_number(out, start);
    out->data[out->len++] = ',';
    put_number(out, end);
    out->data[out->len++] = ',';
    put_field(out, id, n_id);
    out->data[out->len++] = ',';
    put_field(out, (const uint8_t *)name, n_name);
    out->data[out->len++] = ',';
    put_number(out, place);
    out->data[out->len++] = '\n';
    return SLU_OK;
}
