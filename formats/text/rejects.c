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

int slu_reject_begin(struct slu_buf *out, const struct slu_rejected *r,
                     struct slu_err *err)
{
    int rc = slu_buf_printf(out, err, "{\"source\":");
    if (!rc)
        rc = slu_json_put_string(out, r->source->name, strlen(r->source->name), err);
    if (!rc)
        rc = slu_buf_printf(out, err, ",\"document\":%llu,\"byte\":",
                            (unsigned long long)r->ref->document);
    if (!rc && r->off_byte == UINT64_MAX)
        rc = slu_buf_printf(out, err, "null");
    else if (!rc)
        rc = slu_buf_printf(out, err, "%llu", (unsigned long long)r->off_byte);
    return rc ? rc
              : slu_buf_printf(out, err, ",\"reason\":\"%s\",\"raw\":\"",
                               slu_reject_name(r->reason));
}

int slu_reject_end(struct slu_buf *out, struct slu_err *err)
{
    return slu_buf_printf(out, err, "\"}\n");
}

int slu_reject_write(struct slu_buf *out, const struct slu_rejected *r,
                     struct slu_err *err)
{
    int rc = slu_reject_begin(out, r, err);
    if (!rc)
        rc = slu_reject_raw(out, r->raw, r->ref->len, err);
    return rc ? rc : slu_reject_end(out, err);
}

/* "no field "text"; --field names …": printf formats with the field's name. */
static const char *explain(enum slu_reject r)
{
    switch (r) {
    case SLU_REJECT_INVALID_UTF8:
        return "not valid UTF-8; --on-error skip goes on without such records";
    case SLU_REJECT_INVALID_JSON:
        return "not valid JSON; --on-error skip goes on without such records";
    case SLU_REJECT_TOO_DEEP:
        return "JSON nested too deeply; --on-error skip goes on without such records";
    case SLU_REJECT_LONE_SURROGATE:
        return "half a surrogate pair, which is no character; --on-error skip goes on "
               "without such records";
    case SLU_REJECT_NOT_AN_OBJECT:
        return "JSON, but no object; --on-error skip goes on without such records";
    case SLU_REJECT_MISSING_FIELD:
        return "no field \"%s\"; --field, --id-field and --domain-field name fields, "
               "--on-error skip goes on without such records";
    case SLU_REJECT_NOT_A_STRING:
        return "field \"%s\" is not a string; --on-error skip goes on without such "
               "records";
    case SLU_REJECT_NOT_A_NUMBER:
        return "field \"%s\" is not a number; --on-error skip goes on without such "
               "records";
    case SLU_REJECT_NUL_FIELD:
        return "field \"%s\" has a NUL in it, which no domain may have; --on-error "
               "skip "
               "goes on without such records";
    default:
        return "field \"%s\" is longer than 65535 bytes; --on-error skip goes on "
               "without "
               "such records";
    }
}

/* The place is the field's. */
static int fail_row(const struct slu_rejected *r, const char *path, struct slu_err *err)
{
    unsigned long long row = r->ref->document;
    const char *field = r->field ? r->field : "?";
    if (r->reason == SLU_REJECT_MISSING_FIELD)
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: row %llu: \"%.80s\" is null; --on-error skip goes on "
                        "without such rows",
                        path, row, field);
    if (r->reason == SLU_REJECT_INVALID_UTF8 && r->off_byte != UINT64_MAX)
        return slu_fail_at(err, SLU_E_FORMAT, r->off_byte,
                           "%s: row %llu: byte %llu of \"%.80s\": not valid UTF-8; "
                           "--on-error skip goes on without such rows",
                           path, row, (unsigned long long)r->off_byte, field);
    return slu_fail(err, SLU_E_FORMAT,
                    "%s: row %llu: \"%.80s\" is %s; --on-error skip goes on without "
                    "such rows",
                    path, row, field,
                    r->reason == SLU_REJECT_INVALID_UTF8   ? "not valid UTF-8"
                    : r->reason == SLU_REJECT_NOT_A_NUMBER ? "not a number"
                    : r->reason == SLU_REJECT_NUL_FIELD    ? "a domain with a NUL in it"
                                                           : "longer than 65535 bytes");
}

int slu_reject_fail(const struct slu_rejected *r, struct slu_err *err)
{
    const char *path =
        strcmp(r->source->path, "-") == 0 ? "standard input" : r->source->path;
    char why[512];
    if (r->row)
        return fail_row(r, path, err);
    uint64_t at = r->off_byte == UINT64_MAX ? 0 : r->off_byte;
    const char *percent = strchr(explain(r->reason), '%');
    if (percent) /* the only conversion is %s */
        snprintf(why, sizeof why, "%.*s%.80s%s", (int)(percent - explain(r->reason)),
                 explain(r->reason), r->field ? r->field : "?", percent + 2);
    else
        snprintf(why, sizeof why, "%s", explain(r->reason));
    if (r->json && r->ref->line)
        return slu_fail_at(err, SLU_E_FORMAT, at, "%s:%llu: byte %llu: %s", path,
                           (unsigned long long)r->ref->line, (unsigned long long)at,
                           why);
    if (r->json ||
        r->ref->document == 0) /* cut at a share's border: lines are unknown */
        return slu_fail_at(err, SLU_E_FORMAT, at, "%s: byte %llu: %s", path,
                           (unsigned long long)(r->ref->document + at), why);
    return slu_fail_at(err, SLU_E_FORMAT, at, "%s: member %llu: byte %llu: %s", path,
                       (unsigned long long)r->ref->document, (unsigned long long)at,
                       why);
}
