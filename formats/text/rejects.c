#include "rejects.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/json_write.h"

int slu_reject_raw(struct slu_buf *out, const uint8_t *p, size_t n, struct slu_err *err)
{
    static const char digit[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t need;
    if (slu_mul_overflow(n / 3 + 1, 4, &need))
        return slu_fail_nomem(err, n);
    int rc = slu_buf_reserve(out, need, err);
    if (rc)
        return rc;
    uint8_t *q = out->data + out->len;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t left = n - i < 3 ? (uint32_t)(n - i) : 3;
        uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                     (left > 2 ? p[i + 2] : 0);
        *q++ = (uint8_t)digit[v >> 18];
        *q++ = (uint8_t)digit[v >> 12 & 63];
        *q++ = left > 1 ? (uint8_t)digit[v >> 6 & 63] : '=';
        *q++ = left > 2 ? (uint8_t)digit[v & 63] : '=';
    }
    out->len = (size_t)(q - out->data);
    return SLU_OK;
}

static int put_number(struct slu_buf *out, const char *key, uint64_t n, bool is_known,
                      struct slu_err *err)
{
    return is_known
               ? slu_buf_printf(out, err, ",\"%s\":%llu", key, (unsigned long long)n)
               : slu_buf_printf(out, err, ",\"%s\":null", key);
}

int slu_reject_begin(struct slu_buf *out, const struct slu_rejected *r,
                     struct slu_err *err)
{
    int rc = slu_buf_printf(out, err, "{\"source\":");
    if (!rc)
        rc = slu_json_put_string(out, r->source->name, strlen(r->source->name), err);
    if (!rc)
        rc = slu_buf_printf(out, err, ",\"document\":%llu",
                            (unsigned long long)r->ref->document);
    if (!rc)
        rc = put_number(out, "line", r->ref->line, r->ref->line > 0, err);
    if (!rc)
        rc = put_number(out, "byte", r->off_byte, r->off_byte != UINT64_MAX, err);
    return rc ? rc
              : slu_buf_printf(out, err, ",\"reason\":\"%s\",\"raw\":\"",
                               r->rule ? r->rule : slu_reject_name(r->reason));
}

int slu_reject_end(struct slu_buf *out, struct slu_err *err)
{
    return slu_buf_printf(out, err, "\"}\n");
}

/* Whether the line has the record as text. */
static bool has_text(const struct slu_rejected *r)
{
    const size_t n = r->ref->len;
    return (r->json || r->row) && !r->ref->reject && n > 0 &&
           n <= SLU_REJECT_TEXT_BYTE && slu_utf8_valid_prefix(r->raw, n) == n;
}

int slu_reject_write(struct slu_buf *out, const struct slu_rejected *r,
                     struct slu_err *err)
{
    int rc = slu_reject_begin(out, r, err);
    if (!rc)
        rc = slu_reject_raw(out, r->raw, r->ref->len, err);
    if (rc || !has_text(r))
        return rc ? rc : slu_reject_end(out, err);
    rc = slu_buf_printf(out, err, "\",\"text\":");
    if (!rc)
        rc = slu_json_put_string(out, (const char *)r->raw, r->ref->len, err);
    return rc ? rc : slu_buf_printf(out, err, "}\n");
}

/* What a record that is no JSON has instead, where its error is. */
static const char *what_else(const struct slu_rejected *r)
{
    static const struct {
        const char *has, *is;
    } known[] = {
        {"NaN", ": NaN, which JSON does not have; write null"},
        {"-Infinity", ": -Infinity, which JSON does not have; write null"},
        {"nan", ": nan, which JSON does not have; write null"},
        {"Infinity", ": Infinity, which JSON does not have; write null"},
        {"\xEF\xBB\xBF", ": a byte order mark (BOM) in the middle of a file, as where "
                         "files were joined; remove it"},
        {"'", ": a single quote, as Python prints; write it with json.dumps"},
        {"True", ": True, as Python prints; write it with json.dumps"},
        {"False", ": False, as Python prints; write it with json.dumps"},
        {"None", ": None, as Python prints; write it with json.dumps"},
    };
    const size_t len = r->ref->len;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t n = strlen(known[i].has), sign = *known[i].has == '-';
        if (r->off_byte < len && r->off_byte >= sign && n <= len - r->off_byte + sign &&
            !memcmp(r->raw + (r->off_byte - sign), known[i].has, n))
            return known[i].is;
    }
    return "";
}

/* Writes to `why` what is wrong with a record, or with its field `field`. */
static void explain(char *why, size_t size, const struct slu_rejected *r,
                    const char *field)
{
    switch (r->reason) {
    case SLU_REJECT_INVALID_UTF8:
        snprintf(why, size, "not valid UTF-8");
        break;
    case SLU_REJECT_INVALID_JSON:
        snprintf(why, size, "not valid JSON%s", what_else(r));
        break;
    case SLU_REJECT_TOO_DEEP:
        snprintf(why, size, "JSON nested too deeply");
        break;
    case SLU_REJECT_LONE_SURROGATE:
        snprintf(why, size, "half a surrogate pair, which is not a character");
        break;
    case SLU_REJECT_NOT_AN_OBJECT:
        snprintf(why, size, "JSON, but not an object");
        break;
    case SLU_REJECT_MISSING_FIELD:
        snprintf(why, size,
                 r->off_byte != UINT64_MAX ? "field \"%.80s\" is null"
                                           : "no field \"%.80s\"",
                 field);
        break;
    case SLU_REJECT_NOT_A_STRING:
        snprintf(why, size, "field \"%.80s\" is not a string%s", field,
                 r->which == SLU_FIELD_TEXT ? "" : ", a number or a boolean");
        break;
    case SLU_REJECT_NOT_A_NUMBER:
        snprintf(why, size, "field \"%.80s\" is not a number", field);
        break;
    case SLU_REJECT_BAD_SPANS:
        snprintf(why, size,
                 "field \"%.80s\" is not [[begin, end], ...] in characters of the text",
                 field);
        break;
    case SLU_REJECT_CHANGED_TEXT:
        snprintf(why, size,
                 "the tokenizer changes the text (a normalizer, or a prefix), so its "
                 "tokens have no place for \"%.80s\"",
                 field);
        break;
    case SLU_REJECT_TRIMMED_SPAN:
        snprintf(
            why, size,
            "a range of \"%.80s\" begins or ends with a space that the tokenizer's "
            "trim_offsets takes off its token; leave the space out",
            field);
        break;
    case SLU_REJECT_UNFIT_FIELD:
        snprintf(why, size, "%s", r->why);
        break;
    case SLU_REJECT_NUL_FIELD:
        snprintf(why, size, "field \"%.80s\" has a NUL in it, which no domain may have",
                 field);
        break;
    default:
        snprintf(why, size, "field \"%.80s\" is longer than 65535 bytes", field);
    }
}

/* As explain, for a row: names the field, and the place in it. */
static void explain_row(char *why, size_t size, const struct slu_rejected *r,
                        const char *field)
{
    if (r->reason == SLU_REJECT_UNFIT_FIELD || r->reason == SLU_REJECT_CHANGED_TEXT ||
        r->reason == SLU_REJECT_TRIMMED_SPAN)
        explain(why, size, r, field);
    else if (r->reason == SLU_REJECT_MISSING_FIELD)
        snprintf(why, size, "\"%.80s\" is null", field);
    else if (r->reason == SLU_REJECT_INVALID_UTF8 && r->off_byte != UINT64_MAX)
        snprintf(why, size, "byte %llu of \"%.80s\": not valid UTF-8",
                 (unsigned long long)r->off_byte, field);
    else
        snprintf(why, size, "\"%.80s\" is %s", field,
                 r->reason == SLU_REJECT_INVALID_UTF8   ? "not valid UTF-8"
                 : r->reason == SLU_REJECT_NOT_A_NUMBER ? "not a number"
                 : r->reason == SLU_REJECT_BAD_SPANS
                     ? "not [[begin, end], ...] in characters of the text"
                 : r->reason == SLU_REJECT_NUL_FIELD ? "a domain with a NUL in it"
                                                     : "longer than 65535 bytes");
}

/* If the record is the first line of a file that is one JSON value over many lines: what
 * that value is, and how to make lines of it; else NULL. */
static const char *one_value(const struct slu_rejected *r)
{
    size_t i = 0, n = r->ref->len;
    if (!r->json || r->ref->line != 1 ||
        (r->reason != SLU_REJECT_INVALID_JSON && r->reason != SLU_REJECT_NOT_AN_OBJECT))
        return NULL;
    if (n >= 3 && !memcmp(r->raw, "\xef\xbb\xbf", 3))
        i = 3;
    while (n > i && memchr(" \t\r", r->raw[n - 1], 3))
        n--;
    while (i < n && memchr(" \t\r", r->raw[i], 3))
        i++;
    if (i < n && r->raw[i] == '[')
        return "is a JSON array, not one object a line; make lines of it with jq -c "
               "'.[]'";
    if (i + 1 == n && r->raw[i] == '{')
        return "is JSON over several lines, not one object a line; make lines of it "
               "with "
               "jq -c .";
    return NULL;
}

/* What to do about a record without the field `which`; one may lack a score. */
static enum slu_advice missing_advice(unsigned which)
{
    return which == SLU_FIELD_TEXT     ? SLU_ADVISE_FIELD_TEXT
           : which == SLU_FIELD_ID     ? SLU_ADVISE_FIELD_ID
           : which == SLU_FIELD_DOMAIN ? SLU_ADVISE_FIELD_DOMAIN
                                       : SLU_ADVISE_FIELD_SPANS;
}

int slu_reject_fail(const struct slu_rejected *r, struct slu_err *err)
{
    const char *path =
        strcmp(r->source->path, "-") == 0 ? "standard input" : r->source->path;
    const char *field = r->field ? r->field : "?";
    uint64_t at = r->off_byte == UINT64_MAX ? 0 : r->off_byte;
    uint64_t document = r->ref->document;
    char place[64], why[256];
    const char *member = r->member ? r->member : "", *of = r->member ? ": " : "";

    if (r->row)
        explain_row(why, sizeof why, r, field);
    else
        explain(why, sizeof why, r, field);
    if (r->row && r->member)
        snprintf(place, sizeof place, ": document %llu", (unsigned long long)document);
    else if (r->row && r->at_byte)
        snprintf(place, sizeof place, ": record at byte %llu",
                 (unsigned long long)document);
    else if (r->row)
        snprintf(place, sizeof place, ": row %llu", (unsigned long long)document);
    else if (r->json && r->ref->line)
        snprintf(place, sizeof place, ":%llu: byte %llu",
                 (unsigned long long)r->ref->line, (unsigned long long)at);
    else /* lines are unknown after a share's border */
        snprintf(place, sizeof place, ": byte %llu",
                 (unsigned long long)(r->member ? at : document + at));
    int rc = slu_fail_at(err, SLU_E_FORMAT, r->row ? r->off_byte : at, "%s%s%s%s: %s",
                         path, of, member, place, why);
    if (one_value(r))
        return slu_fail(err, SLU_E_FORMAT, "%s%s%s: %s", path, of, member,
                        one_value(r));
    return slu_advise(err,
                      r->reason == SLU_REJECT_MISSING_FIELD ? missing_advice(r->which)
                      : r->reason == SLU_REJECT_INVALID_UTF8 ||
                              r->reason == SLU_REJECT_LONE_SURROGATE
                          ? SLU_ADVISE_ON_ERROR_REPLACE
                          : SLU_ADVISE_ON_ERROR,
                      rc);
}
