/* in_warc.c - the texts of WARC files: WET, and what a crawl has as plain text. A record
 * is a row; its document is the byte offset of its header in the decompressed file.
 *
 * Texts are the content of `conversion` and `resource` records of type text/plain, and
 * of `response` records whose HTTP content is text/plain, neither encoded nor chunked,
 * and valid UTF-8. All others are rows without bytes, left out for their reason.
 *
 * The header's fields are columns, beside the text under its own name: id, url, date,
 * type, language (a list), language_first and truncated. Without another name the id is
 * WARC-Record-ID.
 */
#include "input_private.h"

#include <stdlib.h>
#include <string.h>

#include "formats/parquet/parquet.h" /* slu_rows_weight */
#include "formats/text/warc.h"

struct warc {
    uint8_t head[SLU_WARC_HEAD + 1]; /* bytes read ahead: head[pos, end) */
    size_t pos, end;
    bool ended;            /* the source ends at `end` */
    uint64_t off;          /* of head[pos] in the source */
    struct slu_buf fields; /* of the record: its header */
};

static bool name_matches(const char *name)
{
    const char *dot = strrchr(name, '.');
    return slu_suffix_is(dot, ".warc") || slu_suffix_is(dot, ".wet");
}

static bool head_matches(const uint8_t *p, size_t n)
{
    return n >= 8 && (!memcmp(p, "WARC/1.", 7) || !memcmp(p, "WARC/0.", 7));
}

static int warc_open(struct slu_input_source *src, struct slu_err *err)
{
    src->state = calloc(1, sizeof(struct warc));
    return src->state ? SLU_OK : slu_fail_nomem(err, sizeof(struct warc));
}

/* Fills head. */
static int fill(struct slu_input_source *src, struct warc *w, struct slu_err *err)
{
    size_t got = 0;
    memmove(w->head, w->head + w->pos, w->end - w->pos);
    w->end -= w->pos;
    w->pos = 0;
    if (w->ended || w->end == sizeof w->head)
        return SLU_OK;
    int rc = slu_bytes_read(src->bytes, w->head + w->end, sizeof w->head - w->end, &got,
                            err);
    w->ended = !rc && got < sizeof w->head - w->end;
    w->end += got;
    return rc && !got ? rc : SLU_OK;
}

/* Takes up to n bytes; p NULL: passes over them. *got less than n: the source ends. */
static int take(struct slu_input_source *src, struct warc *w, uint8_t *p, uint64_t n,
                uint64_t *got, struct slu_err *err)
{
    int rc = SLU_OK;
    for (*got = 0; !rc && *got < n;) {
        if (w->pos == w->end)
            rc = fill(src, w, err);
        size_t k = w->end - w->pos;
        if (rc || !k)
            break;
        k = k < n - *got ? k : (size_t)(n - *got);
        if (p)
            memcpy(p + *got, w->head + w->pos, k);
        w->pos += k;
        w->off += k;
        *got += k;
    }
    return rc;
}

static int fail_at(const struct slu_input_source *src, uint64_t at, struct slu_err *err)
{
    return slu_err_at(err, "%s: record at byte %llu", slu_input_name(src),
                      (unsigned long long)at);
}

static int ends_early(const struct slu_input_source *src, uint64_t at,
                      struct slu_err *err)
{
    slu_fail(err, SLU_E_TRUNCATED, "the file ends in the middle of it");
    return fail_at(src, at, err);
}

/* Checks that two line breaks follow, or the end of the file: else Content-Length is
 * not the record's. */
static int check_end(struct slu_input_source *src, struct warc *w, uint64_t at,
                     struct slu_err *err)
{
    int rc = w->end - w->pos < 4 ? fill(src, w, err) : SLU_OK;
    size_t i = w->pos;
    for (int k = 0; k < 2 && !rc; k++) {
        i += i < w->end && w->head[i] == '\r';
        if (i == w->end)
            return SLU_OK;
        if (w->head[i++] != '\n') {
            slu_fail(
                err, SLU_E_FORMAT,
                "no two line breaks are where its Content-Length ends; get the file "
                "again");
            rc = fail_at(src, at, err);
        }
    }
    return rc;
}

/* Goes to the next record, whose header is in w->fields. SLU_EOF: there is none. */
static int next_record(struct slu_input_source *src, struct warc *w, struct slu_warc *r,
                       struct slu_err *err)
{
    size_t used = 0;
    int rc = SLU_OK;
    for (;;) { /* records end with two line breaks */
        if (w->pos == w->end)
            rc = fill(src, w, err);
        if (rc)
            return rc;
        if (w->pos == w->end)
            return w->off ? SLU_EOF : slu_input_empty(src, err);
        if (w->head[w->pos] != '\r' && w->head[w->pos] != '\n')
            break;
        w->pos++;
        w->off++;
    }
    const uint64_t at = w->off;
    src->document = src->base + at;
    if (w->end - w->pos <= SLU_WARC_HEAD)
        rc = fill(src, w, err);
    if (rc)
        return rc;
    rc = slu_warc_parse(w->head + w->pos, w->end - w->pos, r, &used, err);
    if (rc)
        return fail_at(src, at, err);
    if (!used)
        return w->ended ? ends_early(src, at, err) : slu_fail_nomem(err, 1);
    slu_buf_clear(&w->fields);
    rc = slu_buf_append(&w->fields, w->head + w->pos, used, err);
    if (!rc) /* its values now lie there */
        rc = slu_warc_parse(w->fields.data, used, r, &used, err);
    w->pos += used;
    w->off += used;
    return rc;
}

static struct slu_warc_value first_of(struct slu_warc_value v)
{
    const char *comma = v.p ? memchr(v.p, ',', v.n) : NULL;
    if (comma)
        v.n = (size_t)(comma - v.p);
    return v;
}

/* Returns the field of this name. */
static struct slu_warc_value field(const struct slu_warc *r, const char *name)
{
    const struct {
        const char *name;
        struct slu_warc_value v;
    } fields[] = {
        {"id", r->id},
        {"url", r->url},
        {"date", r->date},
        {"type", r->type_name},
        {"language", r->language},
        {"truncated", r->truncated},
        {"language_first", first_of(r->language)},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!strcmp(fields[i].name, name))
            return fields[i].v;
    return (struct slu_warc_value){NULL, 0};
}

static int put(struct slu_buf *b, struct slu_warc_value v, struct slu_err *err)
{
    return v.n ? slu_buf_append(b, v.p, v.n, err) : SLU_OK;
}

/* Adds the row of a text, the last n bytes of b. */
static int add_text(struct slu_input_source *src, const struct slu_warc *r,
                    uint64_t document, size_t n, struct slu_block *b,
                    struct slu_err *err)
{
    const struct slu_input_cfg *cfg = src->cfg;
    const char *id_name = cfg->field[SLU_FIELD_ID],
               *domain_name = cfg->field[SLU_FIELD_DOMAIN];
    const struct slu_warc_value id = id_name ? field(r, id_name) : r->id,
                                domain = domain_name ? field(r, domain_name)
                                                     : (struct slu_warc_value){NULL, 0};
    struct slu_row_fields f = {.id_len = id.n, .domain_len = domain.n};
    struct slu_record_ref rec = {
        .source = src->ordinal, .document = document, .off = b->raw.len - n, .len = n};
    f.null = (unsigned)(id_name && !id.p) << SLU_FIELD_ID |
             (unsigned)(domain_name && !domain.p) << SLU_FIELD_DOMAIN |
             (unsigned)(cfg->field[SLU_FIELD_SCORE] != NULL) << SLU_FIELD_SCORE |
             (unsigned)(cfg->field[SLU_FIELD_SPANS] != NULL) << SLU_FIELD_SPANS;
    int rc = put(&b->raw, id, err);
    if (!rc)
        rc = put(&b->raw, domain, err);
    const size_t any = b->raw.len;
    for (size_t i = 0; i < cfg->n_any && !rc; i++) {
        const char *name = cfg->any[i];
        struct slu_warc_value v = field(r, name);
        rc = slu_buf_reserve(&b->raw, n + 16, err); /* for a copy of the text */
        if (!rc && !strcmp(name, cfg->field[SLU_FIELD_TEXT]))
            v = (struct slu_warc_value){(const char *)b->raw.data + rec.off, n};
        const struct slu_value value = {.type = !v.p ? SLU_VALUE_NULL
                                                : !strcmp(name, "language")
                                                    ? SLU_VALUE_LIST
                                                    : SLU_VALUE_STRING,
                                        .string = v.p,
                                        .len = v.n};
        if (!rc)
            rc = slu_row_put_any(&b->raw, &value, err);
    }
    f.any_len = b->raw.len - any;
    src->n_truncated += r->truncated.p != NULL;
    return rc ? rc : slu_block_add_row(b, rec, f, err);
}

static int add_left_out(struct slu_input_source *src, uint64_t document,
                        enum slu_reject why, struct slu_block *b, struct slu_err *err)
{
    struct slu_record_ref rec = {
        .source = src->ordinal, .document = document, .off = b->raw.len, .reject = why};
    return slu_block_add_row(b, rec, (struct slu_row_fields){.id_len = 0}, err);
}

static enum slu_reject reason(enum slu_warc_text t)
{
    return t == SLU_WARC_TEXT      ? SLU_REJECT_NONE
           : t == SLU_WARC_HTML    ? SLU_REJECT_WARC_HTML
           : t == SLU_WARC_ENCODED ? SLU_REJECT_WARC_ENCODED
                                   : SLU_REJECT_WARC_NO_TEXT;
}

/* Why a response is left out, by the HTTP header that its content begins with; *n: the
 * bytes of that, which are in head. */
static enum slu_reject look_at_http(const struct warc *w, const struct slu_warc *r,
                                    size_t *n)
{
    struct slu_http h;
    const uint64_t known = w->end - w->pos;
    *n = 0;
    if (!slu_warc_is(r->content_type, "application/http") ||
        !slu_http_parse(w->head + w->pos,
                        (size_t)(known < r->content_byte ? known : r->content_byte), &h,
                        n))
        return SLU_REJECT_WARC_NO_TEXT;
    const enum slu_warc_text t = slu_warc_text_of(h.content_type);
    return t == SLU_WARC_TEXT && h.encoded ? SLU_REJECT_WARC_ENCODED : reason(t);
}

/* Takes the content of a record that begins at `at`. */
static int take_content(struct slu_input_source *src, struct warc *w,
                        const struct slu_warc *r, uint64_t at, struct slu_block *b,
                        struct slu_err *err)
{
    const uint64_t document = src->base + at;
    uint64_t n = r->content_byte, got = 0;
    enum slu_reject why = SLU_REJECT_WARC_RECORD;
    size_t http = 0;
    int rc = SLU_OK;
    if (r->type == SLU_WARC_CONVERSION || r->type == SLU_WARC_RESOURCE)
        why = reason(slu_warc_text_of(r->content_type));
    if (r->type == SLU_WARC_RESPONSE) {
        rc = fill(src, w, err);
        why = look_at_http(w, r, &http);
    }
    if (!rc && (why || http))
        rc = take(src, w, NULL, why ? n : http, &got, err);
    if (!rc && why && got < n)
        return ends_early(src, at, err);
    if (!rc && why)
        rc = check_end(src, w, at, err);
    if (!rc && why)
        return add_left_out(src, document, why, b, err);
    n -= http;
    const size_t begin = b->raw.len;
    for (uint64_t left = n; !rc && left;) {
        const uint64_t step = left < src->cfg->block_byte ? left : src->cfg->block_byte;
        rc = slu_block_room(src, b, (size_t)step, begin, at, err);
        if (rc)
            break;
        rc = take(src, w, b->raw.data + b->raw.len, step, &got, err);
        b->raw.len += (size_t)got;
        left -= got;
        if (!rc && got < step)
            return ends_early(src, at, err);
    }
    if (!rc)
        rc = check_end(src, w, at, err);
    if (rc)
        return rc;
    if (r->type == SLU_WARC_RESPONSE && n &&
        slu_utf8_valid_prefix(b->raw.data + begin, (size_t)n) < n) {
        b->raw.len = begin;
        return add_left_out(src, document, SLU_REJECT_WARC_ENCODED, b, err);
    }
    return add_text(src, r, document, (size_t)n, b, err);
}

static int warc_fetch(struct slu_input_source *src, struct slu_block *b,
                      struct slu_err *err)
{
    struct warc *w = src->state;
    int rc = SLU_OK;
    b->at_byte = true;
    while (!rc && slu_rows_weight(b) < src->cfg->block_byte) {
        struct slu_warc r;
        src->begin = b->raw.len;
        rc = next_record(src, w, &r, err);
        if (!rc)
            rc = take_content(src, w, &r, src->document - src->base, b, err);
    }
    return rc;
}

static void warc_close(struct slu_input_source *src)
{
    struct warc *w = src->state;
    if (w)
        slu_buf_release(&w->fields);
    free(w);
}

const struct slu_input_format slu_in_warc = {
    .name = "warc",
    .rows = true,
    .name_matches = name_matches,
    .head_matches = head_matches,
    .open = warc_open,
    .fetch = warc_fetch,
    .close = warc_close,
};
