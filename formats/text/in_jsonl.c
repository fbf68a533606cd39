/* in_jsonl.c - one JSON object per line (JSON Lines, NDJSON). */
#include "input_private.h"

#include <stdlib.h>
#include <string.h>

struct jsonl {
    struct slu_buf carry; /* start of a record, read with the previous block */
    uint64_t first;       /* offset in the source of the share's first record */
    uint64_t off;         /* offset of the next block's first byte */
    uint64_t line;        /* number of the line at `off`; 0: unknown */
    bool begun;
    bool ended;
};

static bool name_matches(const char *name)
{
    const char *dot = strrchr(name, '.');
    return slu_suffix_is(dot, ".jsonl") || slu_suffix_is(dot, ".ndjson") ||
           slu_suffix_is(dot, ".json");
}

/* "{", then a key or "}": no programming language begins so. After "[" too: an array is
 * refused as JSON, and is not one text. */
static bool head_matches(const uint8_t *p, size_t n)
{
    size_t i = 0;
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        i = 3;
    while (i < n && memchr(" \t\r\n", p[i], 4))
        i++;
    if (i < n && p[i] == '[')
        i++;
    while (i < n && memchr(" \t\r\n", p[i], 4))
        i++;
    if (i >= n || p[i++] != '{')
        return false;
    while (i < n && memchr(" \t", p[i], 2))
        i++;
    return i < n && (p[i] == '"' || p[i] == '}');
}

/* Returns the place of the next byte that is not white space, from i on; or n. */
static size_t skip_blank(const uint8_t *p, size_t n, size_t i)
{
    while (i < n && memchr(" \t\r\n", p[i], 4))
        i++;
    return i;
}

bool slu_jsonl_lines(const uint8_t *p, size_t n)
{
    const size_t bom = n >= 3 && !memcmp(p, "\xef\xbb\xbf", 3) ? 3 : 0,
                 at = skip_blank(p, n, bom);
    if (!head_matches(p, n) || p[at] != '{')
        return false;
    const uint8_t *nl = memchr(p + at, '\n', n - at);
    size_t end = nl ? (size_t)(nl - p) : n;
    const size_t next = skip_blank(p, n, end);
    while (memchr(" \t\r", p[end - 1], 3))
        end--;
    /* a line longer than what is known of it need not end yet */
    return (p[end - 1] == '}' || (!nl && n == SLU_BYTES_PEEK)) &&
           (next == n || p[next] == '{');
}

static int jsonl_open(struct slu_input_source *src, struct slu_err *err)
{
    struct jsonl *j = calloc(1, sizeof *j);
    if (!j)
        return slu_fail_nomem(err, sizeof *j);
    src->state = j;
    return SLU_OK;
}

/* Goes to the first record that begins at or after src->from, but not beyond src->to,
 * so that a record over many shares is not read to its end by each. */
static int skip_to_share(struct slu_input_source *src, struct jsonl *j,
                         struct slu_err *err)
{
    char chunk[4096];
    size_t got;
    uint64_t at = src->from - 1; /* a newline here: a record begins at `from` */
    int rc = slu_bytes_seek(src->bytes, at, err);
    while (!rc && at < src->to) {
        rc = slu_bytes_read(src->bytes, chunk, sizeof chunk, &got, err);
        if (rc)
            break;
        const char *nl = memchr(chunk, '\n', got);
        at += nl ? (uint64_t)(nl - chunk) + 1 : got;
        if (nl)
            rc = slu_bytes_seek(src->bytes, at, err);
        if (nl || got < sizeof chunk)
            break;
    }
    j->first = j->off = at;
    return rc;
}

static int begin(struct slu_input_source *src, struct jsonl *j, struct slu_err *err)
{
    const uint8_t *head;
    size_t n;
    j->begun = true;
    if (src->from > 0) {
        int skip = src->from < src->to ? skip_to_share(src, j, err) : SLU_OK;
        j->ended = src->from >= src->to || j->off >= src->to;
        return skip;
    }
    j->line = 1;
    int rc = slu_bytes_peek(src->bytes, &head, &n, err);
    if (!rc && n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
        uint8_t bom[3];
        rc = slu_bytes_read(src->bytes, bom, 3, &n, err);
        j->off = 3;
    }
    return rc;
}

/* Reads until b holds a whole record or more, and saves the start of the next one. */
static int fill(struct slu_input_source *src, struct jsonl *j, struct slu_block *b,
                struct slu_err *err)
{
    size_t step = src->cfg->block_byte, got;
    int rc = slu_block_room(src, b, step, 0, j->off, err);
    if (!rc && j->carry.len)
        rc = slu_buf_append(&b->raw, j->carry.data, j->carry.len, err);
    if (rc)
        return rc;
    slu_buf_clear(&j->carry);
    step -= b->raw.len < step ? b->raw.len : 0;
    for (;;) {
        rc = slu_block_room(src, b, step, 0, j->off, err);
        if (rc)
            return rc;
        uint8_t *p = b->raw.data + b->raw.len;
        rc = slu_bytes_read(src->bytes, p, step, &got, err);
        b->raw.len += got; /* also with an error */
        if (rc)
            return rc;
        const uint8_t *nl = memrchr(p, '\n', got);
        if (got < step) {
            j->ended = true;
            return SLU_OK;
        }
        if (nl) {
            size_t left = (size_t)(p + got - (nl + 1));
            b->raw.len -= left;
            return slu_buf_append(&j->carry, nl + 1, left, err);
        }
        step = src->cfg->block_byte;
    }
}

/* Removes the records that begin at or after src->to (a byte order mark belongs to the
 * record after it). */
static void cut_at_share(struct slu_input_source *src, struct jsonl *j,
                         struct slu_block *b)
{
    if (b->raw.len == 0 || j->off + b->raw.len < src->to)
        return;
    size_t at = src->to - 1 > j->off ? (size_t)(src->to - 1 - j->off) : 0;
    const uint8_t *nl = memchr(b->raw.data + at, '\n', b->raw.len - at);
    if (nl)
        b->raw.len = (size_t)(nl - b->raw.data) + 1;
    j->ended = true;
}

static uint64_t count_lines(const uint8_t *p, size_t n)
{
    uint64_t lines = 0;
    while (n > 0) {
        size_t run = n < 128 ? n : 128;
        uint8_t k = 0; /* one byte, so that the loop becomes SIMD */
        if (run == 128)
            for (size_t i = 0; i < 128; i++)
                k += p[i] == '\n';
        else
            for (size_t i = 0; i < run; i++)
                k += p[i] == '\n';
        lines += k;
        p += run;
        n -= run;
    }
    return lines;
}

static int end_share(struct slu_input_source *src, const struct jsonl *j)
{
    uint64_t at = slu_bytes_tell(src->bytes), ours = j->off - j->first;
    if (at > src->from + ours)
        src->other_byte = at - src->from - ours;
    return SLU_EOF;
}

static int jsonl_fetch(struct slu_input_source *src, struct slu_block *b,
                       struct slu_err *err)
{
    struct jsonl *j = src->state;
    int rc = j->begun ? SLU_OK : begin(src, j, err);
    if (rc)
        return rc;
    if (j->ended)
        return end_share(src, j);
    rc = fill(src, j, b, err);
    if (!rc && b->raw.len == 0 && slu_bytes_tell(src->bytes) == 0)
        return slu_input_empty(src, err);
    b->lines = b->raw.len > 0;
    b->off_byte = src->base + j->off;
    b->line = j->line;
    if (rc) { /* whole lines, and the start of the unreadable one */
        const uint8_t *nl = b->raw.len ? memrchr(b->raw.data, '\n', b->raw.len) : NULL;
        src->begin = nl ? (size_t)(nl - b->raw.data) + 1 : 0;
        src->document = src->base + j->off + src->begin;
        return rc;
    }
    cut_at_share(src, j, b);
    j->off += b->raw.len;
    if (j->line)
        j->line += count_lines(b->raw.data, b->raw.len);
    return j->ended ? end_share(src, j) : SLU_OK;
}

static void jsonl_close(struct slu_input_source *src)
{
    struct jsonl *j = src->state;
    if (j)
        slu_buf_release(&j->carry);
    free(j);
}

const struct slu_input_format slu_in_jsonl = {
    .name = "jsonl",
    .json = true,
    .lines = true,
    .name_matches = name_matches,
    .head_matches = head_matches,
    .open = jsonl_open,
    .fetch = jsonl_fetch,
    .close = jsonl_close,
};
