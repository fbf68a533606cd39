#include "metadata.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json_write.h"
#include "lib/base/le.h"
#include "lib/base/number.h"

enum { ENTRY = 12 }; /* bytes before those of the value */

static const struct {
    const char *name;
    unsigned width;
    uint64_t none; /* the element that means null */
} kind[SLU_META_N_TYPE] = {
    [SLU_META_IS_NAME] = {"name", 0, UINT32_MAX},
    [SLU_META_IS_TEXT] = {"text", 0, UINT32_MAX},
    [SLU_META_IS_U8] = {"u8", 1, UINT8_MAX},
    [SLU_META_IS_U32] = {"u32", 4, UINT32_MAX},
    [SLU_META_IS_U64] = {"u64", 8, UINT64_MAX},
    [SLU_META_IS_F32] = {"f32", 4, 0x7fc00000},
    [SLU_META_IS_I64] = {"i64", 8, UINT64_C(1) << 63},
    [SLU_META_IS_F64] = {"f64", 8, UINT64_C(0x7ff8000000000000)},
};

/* ---- fields ---- */

const char *slu_meta_type_name(enum slu_meta_type type)
{
    return kind[type].name;
}

enum slu_meta_type slu_meta_type_of(const char *name, size_t len)
{
    for (unsigned i = 1; i < SLU_META_N_TYPE; i++)
        if (strlen(kind[i].name) == len && !memcmp(kind[i].name, name, len))
            return i;
    return len == 5 && !memcmp(name, "float", 5) ? SLU_META_IS_F64
           : len == 3 && !memcmp(name, "int", 3) ? SLU_META_IS_I64
                                                 : 0;
}

unsigned slu_meta_width(enum slu_meta_type type)
{
    return kind[type].width;
}

static bool is_string(enum slu_meta_type type)
{
    return !kind[type].width;
}

static int compare(const struct slu_meta_field *f, const char *name, size_t len)
{
    const size_t n = strlen(f->name);
    const int c = memcmp(f->name, name, n < len ? n : len);

    return c ? c : (n > len) - (n < len);
}

int slu_meta_find(const struct slu_meta_fields *t, const char *name, size_t len)
{
    for (unsigned i = 0; i < t->n; i++)
        if (!compare(&t->field[i], name, len))
            return (int)i;
    return -1;
}

static int check_name(const char *name, size_t len, struct slu_err *err)
{
    if (!len || len > SLU_META_NAME)
        return slu_fail(err, SLU_E_FORMAT,
                        "the name of a metadata field has %zu bytes; expected 1 to %d",
                        len, SLU_META_NAME);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 127)
            return slu_fail(err, SLU_E_FORMAT,
                            "the name of a metadata field has the control character "
                            "%#x; expected a text",
                            (unsigned char)name[i]);
    return SLU_OK;
}

int slu_meta_add(struct slu_meta_fields *t, const char *name, size_t len,
                 enum slu_meta_type type, struct slu_err *err)
{
    unsigned at = 0;
    int rc = check_name(name, len, err);

    if (rc)
        return rc;
    while (at < t->n && compare(&t->field[at], name, len) < 0)
        at++;
    struct slu_meta_field *f = &t->field[at];
    if (at < t->n && !compare(f, name, len))
        return f->type == type
                   ? SLU_OK
                   : slu_advise(err, SLU_ADVISE_DROP_FIELD,
                                slu_fail(err, SLU_E_MISMATCH,
                                         "the metadata field '%s' has the type %s here "
                                         "and %s before",
                                         f->name, kind[type].name, kind[f->type].name));
    if (t->n == SLU_META_FIELDS)
        return slu_advise(err, SLU_ADVISE_DROP_FIELDS,
                          slu_fail(err, SLU_E_LIMIT,
                                   "the metadata field '%.*s' is one more than the %d "
                                   "that a stream can have",
                                   (int)len, name, SLU_META_FIELDS));
    memmove(f + 1, f, (t->n++ - at) * sizeof *f);
    *f = (struct slu_meta_field){.type = type, .key = slu_hash64(name, len)};
    memcpy(f->name, name, len);
    return SLU_OK;
}

int slu_meta_too_many(const char *name, struct slu_err *err)
{
    return slu_fail(err, SLU_E_LIMIT,
                    "metadata%s%s%s: fields of type name have more than %d values, or "
                    "%d MiB of them; give a field with many values as a text, as by "
                    "'tokenize --metadata %s=text'",
                    name ? " '" : "", name ? name : "", name ? "'" : "",
                    SLU_META_VALUES, (int)(SLU_META_VALUES_BYTE >> 20),
                    name ? name : "FIELD");
}

void slu_meta_remove(struct slu_meta_fields *t, unsigned i)
{
    memmove(&t->field[i], &t->field[i + 1], (--t->n - i) * sizeof *t->field);
}

/* ---- entries ---- */

size_t slu_meta_next(const uint8_t *p, size_t n, struct slu_meta_value *v)
{
    if (n < ENTRY || slu_le32(p + 8) > n - ENTRY)
        return 0;
    *v = (struct slu_meta_value){slu_le64(p), p + ENTRY, slu_le32(p + 8)};
    return ENTRY + (size_t)v->n;
}

bool slu_meta_get(const uint8_t *p, size_t n, uint64_t key, struct slu_meta_value *v)
{
    for (size_t took; (took = slu_meta_next(p, n, v)); p += took, n -= took)
        if (v->key == key)
            return true;
    return false;
}

int slu_meta_put(struct slu_buf *out, uint64_t key, const void *p, size_t n,
                 struct slu_err *err)
{
    int rc = slu_buf_reserve(out, ENTRY + n, err);

    if (rc)
        return rc;
    slu_put_le64(out->data + out->len, key);
    slu_put_le32(out->data + out->len + 8, (uint32_t)n);
    if (n)
        memcpy(out->data + out->len + ENTRY, p, n);
    out->len += ENTRY + n;
    return SLU_OK;
}

static uint64_t load(const uint8_t *p, unsigned width)
{
    return width == 1 ? *p : width == 4 ? slu_le32(p) : slu_le64(p);
}

static void store(uint8_t p[8], unsigned width, uint64_t v)
{
    if (width == 1)
        *p = (uint8_t)v;
    else if (width == 4)
        slu_put_le32(p, (uint32_t)v);
    else
        slu_put_le64(p, v);
}

int slu_meta_put_element(struct slu_buf *column, enum slu_meta_type type,
                         const struct slu_meta_value *v, struct slu_err *err)
{
    uint8_t none[8];

    store(none, kind[type].width, kind[type].none);
    return slu_buf_append(column, v ? v->p : none, kind[type].width, err);
}

bool slu_meta_is_null(enum slu_meta_type type, const uint8_t *element)
{
    const unsigned width = kind[type].width;

    return load(element, width ? width : 4) == kind[type].none;
}

bool slu_meta_is_finite(enum slu_meta_type type, const uint8_t *element)
{
    return type == SLU_META_IS_F32   ? (slu_le32(element) >> 23 & 0xff) != 0xff
           : type == SLU_META_IS_F64 ? (slu_le64(element) >> 52 & 0x7ff) != 0x7ff
                                     : true;
}

/* ---- values ---- */

static float as_float(uint64_t bits)
{
    const uint32_t b = (uint32_t)bits;
    float x;

    memcpy(&x, &b, sizeof x);
    return x;
}

static double as_double(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Writes an integer; returns the number of its digits. */
static size_t put_integer(char out[SLU_NUMBER_BYTE], const struct slu_value *v,
                          uint64_t magnitude)
{
    return (size_t)snprintf(out, SLU_NUMBER_BYTE, "%s%llu", v->number < 0 ? "-" : "",
                            (unsigned long long)magnitude);
}

static int unfit(const struct slu_meta_field *f, const struct slu_value *v,
                 struct slu_err *err)
{
    static const char *const expected[SLU_META_N_TYPE] = {
        [SLU_META_IS_NAME] =
            "a string of at most 65536 bytes without a NUL, or a number "
            "or boolean",
        [SLU_META_IS_TEXT] = "a string of at most 65536 bytes, or a number or boolean",
        [SLU_META_IS_U8] = "an integer of 0 to 254, or a boolean",
        [SLU_META_IS_U32] = "an integer of 0 to 4294967294",
        [SLU_META_IS_U64] = "an integer of 0 to 2^64 - 2",
        [SLU_META_IS_F32] = "a number that a float can hold",
        [SLU_META_IS_I64] = "an integer of -2^63 + 1 to 2^63 - 1",
        [SLU_META_IS_F64] = "a finite number",
    };
    static const char *const is[] = {
        [SLU_VALUE_NULL] = "null",
        [SLU_VALUE_BOOL] = "a boolean",
        [SLU_VALUE_STRING] = "a string",
        [SLU_VALUE_LIST] = "an array or object",
    };
    char found[64];
    uint64_t magnitude;

    if (v->type == SLU_VALUE_NUMBER && slu_value_integer(v, &magnitude))
        put_integer(found, v, magnitude);
    else if (v->type == SLU_VALUE_NUMBER)
        snprintf(found, sizeof found, "%.17g", v->number);
    else if (v->type == SLU_VALUE_STRING && is_string(f->type))
        snprintf(found, sizeof found, "%zu bytes%s", v->len,
                 v->len <= SLU_META_VALUE ? " with one" : "");
    else
        snprintf(found, sizeof found, "%s", is[v->type]);
    return slu_fail(err, SLU_E_FORMAT, "\"%.80s\": expected %s, found %s", f->name,
                    expected[f->type], found);
}

/* The bits of a number in the field's type; false: it does not fit. */
static bool number_bits(enum slu_meta_type type, const struct slu_value *v,
                        uint64_t *bits)
{
    const double x = v->number + 0.0; /* -0 becomes 0 */
    uint64_t magnitude;
    const bool integer = slu_value_integer(v, &magnitude);
    const float narrow = (float)x;
    uint32_t b;

    switch (type) {
    case SLU_META_IS_U8:
    case SLU_META_IS_U32:
    case SLU_META_IS_U64:
        *bits = integer && x >= 0 ? magnitude : UINT64_MAX;
        return *bits < kind[type].none;
    case SLU_META_IS_I64:
        if (!integer || magnitude > INT64_MAX)
            return false;
        *bits = x < 0 ? 0 - magnitude : magnitude;
        return true;
    case SLU_META_IS_F32:
        memcpy(&b, &narrow, sizeof b);
        *bits = b;
        return isfinite(narrow);
    default:
        memcpy(bits, &x, sizeof x);
        return isfinite(x);
    }
}

int slu_meta_put_value(struct slu_buf *out, const struct slu_meta_field *f,
                       const struct slu_value *v, struct slu_err *err)
{
    const bool number = v->type == SLU_VALUE_NUMBER, is = v->type == SLU_VALUE_BOOL;
    uint8_t bytes[8];
    uint64_t bits;
    char digits[SLU_NUMBER_BYTE];

    if (v->type == SLU_VALUE_NULL || (number && isnan(v->number)))
        return SLU_OK;
    if (is_string(f->type)) {
        if (is)
            return slu_meta_put(out, f->key, v->boolean ? "true" : "false",
                                v->boolean ? 4 : 5, err);
        if (number && slu_value_integer(v, &bits))
            return slu_meta_put(out, f->key, digits, put_integer(digits, v, bits), err);
        if (number && v->number != floor(v->number))
            return slu_meta_put(out, f->key, digits, slu_number_put(v->number, digits),
                                err);
        if (v->type != SLU_VALUE_STRING || v->len > SLU_META_VALUE ||
            (f->type == SLU_META_IS_NAME && v->len && memchr(v->string, 0, v->len)))
            return unfit(f, v, err);
        return slu_meta_put(out, f->key, v->string, v->len, err);
    }
    if (is && f->type == SLU_META_IS_U8)
        bits = v->boolean;
    else if (!number || !number_bits(f->type, v, &bits))
        return unfit(f, v, err);
    store(bytes, kind[f->type].width, bits);
    return slu_meta_put(out, f->key, bytes, kind[f->type].width, err);
}

struct slu_value slu_meta_to_value(enum slu_meta_type type,
                                   const struct slu_meta_value *v)
{
    if (!v)
        return (struct slu_value){.type = SLU_VALUE_NULL};
    if (is_string(type))
        return (struct slu_value){
            .type = SLU_VALUE_STRING, .string = (const char *)v->p, .len = v->n};
    const uint64_t bits = load(v->p, kind[type].width);
    const bool negative = type == SLU_META_IS_I64 && bits >> 63;
    if (type != SLU_META_IS_F32 && type != SLU_META_IS_F64)
        return slu_value_of_integer(negative ? 0 - bits : bits, negative);
    return (struct slu_value){.type = SLU_VALUE_NUMBER,
                              .number = type == SLU_META_IS_F32 ? (double)as_float(bits)
                                                                : as_double(bits)};
}

int slu_meta_put_json(struct slu_buf *out, enum slu_meta_type type,
                      const struct slu_meta_value *v, struct slu_err *err)
{
    char digits[SLU_NUMBER_BYTE];

    if (!v)
        return slu_buf_append(out, "null", 4, err);
    if (is_string(type))
        return slu_json_put_string(out, v->p, v->n, err);
    const uint64_t bits = load(v->p, kind[type].width);
    if (type == SLU_META_IS_F32)
        return slu_buf_append(out, digits, slu_number_put_float(as_float(bits), digits),
                              err);
    if (type == SLU_META_IS_F64)
        return slu_buf_append(out, digits, slu_number_put(as_double(bits), digits),
                              err);
    return type == SLU_META_IS_I64
               ? slu_buf_printf(out, err, "%lld", (long long)bits)
               : slu_buf_printf(out, err, "%llu", (unsigned long long)bits);
}
