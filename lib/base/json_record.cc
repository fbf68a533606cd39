/* json_record.cc - records of JSONL files: simdjson and the parsers of our own behind
 * json.h; no exception and no C++ type leaves this file. */
#include "json.h"

#include <simdjson.h>
#include <stdlib.h>
#include <string.h>

#include <cmath>
#include <new>

extern "C" {
#include "buf.h"
#include "json_flat.h"
#include "json_scan.h"
#include "json_spans.h"
#include "number.h"
#include "simd.h"
}

namespace dom = simdjson::dom;

enum {
    N_STRING = SLU_FIELD_SCORE, /* the fields before are strings */
    N_FIELD = SLU_FIELDS + SLU_RECORD_ANY
};

struct slu_record_parser {
    dom::parser parser;
    /* Those of enum slu_field, then n_any of any type. */
    struct slu_scan_field field[N_FIELD];
    /* Of parse_dom, which would have to clear arrays of its own. */
    dom::element found[N_FIELD];
    bool has[N_FIELD];
    struct slu_value any[SLU_RECORD_ANY];
    size_t n_any;
    bool dotted; /* a name has a dot */
    unsigned optional;
    bool null_is_missing;
    size_t dom_byte;
    slu_json_flat_fn *flat;   /* NULL: none */
    struct slu_buf unescaped; /* strings of our own parsers */
    struct slu_buf any_text;  /* those of fields of any type */
    struct slu_buf spans;
    char scalar[N_STRING][SLU_NUMBER_BYTE]; /* numbers and booleans as text */
};

/* Returns the flat parser of a level, or the best one if level is NULL. NULL: none. */
static slu_json_flat_fn *flat_of_level(const char *level)
{
#if defined(__x86_64__)
    if ((level == nullptr || strcmp(level, "avx512") == 0) && slu_has_simd("avx512"))
        return slu_json_flat_avx512;
    if ((level == nullptr || strcmp(level, "avx2") == 0) && slu_has_simd("avx2"))
        return slu_json_flat_avx2;
#endif
    (void)level;
    return nullptr;
}

int slu_record_parser_new(struct slu_record_parser **out,
                          const struct slu_record_cfg *cfg, struct slu_err *err)
{
    struct slu_record_parser *p = new (std::nothrow) struct slu_record_parser();
    if (p == nullptr)
        return slu_fail_nomem(err, sizeof *p);
    p->n_any = cfg->n_any;
    for (size_t i = 0; i < SLU_FIELDS + p->n_any; i++) {
        const char *name = i < SLU_FIELDS ? cfg->name[i] : cfg->any[i - SLU_FIELDS];
        p->field[i].name = name;
        p->field[i].name_len = name == nullptr ? 0 : strlen(name);
        p->dotted |= name != nullptr && strchr(name, '.') != nullptr;
    }
    p->optional = cfg->optional;
    p->null_is_missing = cfg->null_is_missing;
    p->dom_byte = cfg->dom_byte == 0 ? (size_t)1 << 20 : cfg->dom_byte;
    /* Records whose fields are in objects are not flat. */
    p->flat = p->dotted ? nullptr : flat_of_level(cfg->simd);
    if (cfg->name[SLU_FIELD_SPANS] !=
        nullptr) { /* only the scalar parser reads spans */
        p->dom_byte = 0;
        p->flat = nullptr;
    }
    *out = p;
    return SLU_OK;
}

void slu_record_parser_free(struct slu_record_parser *p)
{
    if (p != nullptr) {
        slu_buf_release(&p->unescaped);
        slu_buf_release(&p->any_text);
        slu_buf_release(&p->spans);
    }
    delete p;
}

static void set_field(struct slu_record *out, int i, const char *s, size_t len)
{
    const char **dst[N_STRING] = {&out->text, &out->id, &out->domain};
    size_t *dst_len[N_STRING] = {&out->text_len, &out->id_len, &out->domain_len};
    *dst[i] = s;
    *dst_len[i] = len;
}

#define NUMBER_BYTE 64

/* Sets *v to the value of a scalar that is no string, of n bytes at s. */
static int scalar_value(const char *s, size_t n, struct slu_value *v,
                        struct slu_err *err)
{
    char few[NUMBER_BYTE];

    *v = {};
    if (*s == 't' || *s == 'f') {
        v->type = SLU_VALUE_BOOL;
        v->boolean = *s == 't';
        return SLU_OK;
    }
    if (*s == 'n')
        return SLU_OK;
    char *digits = n < sizeof few ? few : static_cast<char *>(malloc(n + 1));
    if (digits == nullptr)
        return slu_fail_nomem(err, n + 1);
    memcpy(digits, s, n);
    digits[n] = 0;
    *v = slu_value_of_number(digits);
    if (digits != few)
        free(digits);
    return SLU_OK;
}

static struct slu_value string_value(const char *s, size_t n)
{
    struct slu_value v = {};
    v.type = SLU_VALUE_STRING;
    v.string = s;
    v.len = n;
    return v;
}

/* Parses a flat record, as most records are. False: another parser must try. */
static bool parse_flat(struct slu_record_parser *p, const uint8_t *rec, size_t n,
                       struct slu_record *out)
{
    struct slu_flat_field field[N_FIELD];
    const size_t n_field = SLU_FIELDS + p->n_any;
    struct slu_err err = SLU_ERR_INIT;
    unsigned lacks = 0;

    for (size_t i = 0; i < n_field; i++)
        field[i] = {
            p->field[i].name, p->field[i].name_len, i >= SLU_FIELDS, false, nullptr, 0};
    slu_buf_clear(&p->unescaped);
    if (slu_buf_reserve(&p->unescaped, n + SLU_JSON_PADDING, &err) != SLU_OK ||
        !simdjson::validate_utf8(reinterpret_cast<const char *>(rec), n) ||
        !p->flat(rec, n, field, n_field, p->unescaped.data) ||
        field[SLU_FIELD_SCORE].p != nullptr)
        return false;
    for (int i = 0; i < SLU_FIELDS; i++) {
        if (field[i].name == nullptr)
            continue;
        if (field[i].p != nullptr)
            set_field(out, i, reinterpret_cast<const char *>(field[i].p), field[i].len);
        else if ((p->optional >> i & 1) != 0)
            lacks |= 1U << i;
        else
            return false;
    }
    for (size_t i = 0; i < p->n_any; i++) {
        const struct slu_flat_field *f = &field[SLU_FIELDS + i];
        const char *s = reinterpret_cast<const char *>(f->p);
        p->any[i] = {};
        if (s == nullptr)
            continue;
        if (!f->scalar)
            p->any[i] = string_value(s, f->len);
        else if (scalar_value(s, f->len, &p->any[i], nullptr))
            return false;
    }
    out->lacks = lacks;
    return true;
}

/* Finds a field whose name has a dot: see struct slu_record_cfg. */
static bool find_dotted(dom::object o, std::string_view name, dom::element *out)
{
    const size_t dot = name.find('.');
    dom::element outer;
    bool has = false, leads = false;

    for (auto it = o.begin(); it != o.end(); ++it) {
        if (it.key() == name) {
            *out = it.value();
            has = true;
        } else if (dot != std::string_view::npos && it.key() == name.substr(0, dot)) {
            outer = it.value();
            leads = true;
        }
    }
    return has || (leads && outer.get(o) == simdjson::SUCCESS &&
                   find_dotted(o, name.substr(dot + 1), out));
}

/* Finds the fields; found[i] is one that has[i]. */
static void find_fields(const struct slu_record_parser *p, dom::object o,
                        dom::element *found, bool *has)
{
    const size_t n_field = SLU_FIELDS + p->n_any;
    if (p->dotted) {
        for (size_t i = 0; i < n_field; i++)
            has[i] =
                p->field[i].name != nullptr &&
                find_dotted(o, {p->field[i].name, p->field[i].name_len}, &found[i]);
        return;
    }
    for (auto it = o.begin(); it != o.end(); ++it) {
        std::string_view k = it.key();
        for (size_t i = 0; i < n_field; i++) {
            const struct slu_scan_field *f = &p->field[i];
            if (f->name != nullptr && k.size() == f->name_len &&
                memcmp(k.data(), f->name, f->name_len) == 0) {
                found[i] = it.value();
                has[i] = true;
            }
        }
    }
}

/* Writes a number or boolean to `to`; returns its length, 0 for other values. */
static size_t put_scalar(dom::element e, char to[SLU_NUMBER_BYTE])
{
    int64_t i;
    uint64_t u;
    double x;
    bool b;
    if (e.get(i) == simdjson::SUCCESS)
        return (size_t)snprintf(to, SLU_NUMBER_BYTE, "%lld", (long long)i);
    if (e.get(u) == simdjson::SUCCESS)
        return (size_t)snprintf(to, SLU_NUMBER_BYTE, "%llu", (unsigned long long)u);
    if (e.get(b) == simdjson::SUCCESS)
        return (size_t)snprintf(to, SLU_NUMBER_BYTE, "%s", b ? "true" : "false");
    return e.get(x) == simdjson::SUCCESS ? slu_number_put(x, to) : 0;
}

static struct slu_value element_value(dom::element e)
{
    struct slu_value v = {};
    std::string_view s;
    int64_t i;
    uint64_t u;
    if (e.get(s) == simdjson::SUCCESS)
        return string_value(s.data(), s.size());
    if (e.get(i) == simdjson::SUCCESS)
        return slu_value_of_integer(i < 0 ? 0 - (uint64_t)i : (uint64_t)i, i < 0);
    if (e.get(u) == simdjson::SUCCESS)
        return slu_value_of_integer(u, false);
    if (e.get(v.boolean) == simdjson::SUCCESS)
        v.type = SLU_VALUE_BOOL;
    else if (e.get(v.number) == simdjson::SUCCESS)
        v.type = SLU_VALUE_NUMBER;
    else if (!e.is_null())
        v.type = SLU_VALUE_LIST;
    return v;
}

/* Parses a record with simdjson. False: the scalar parser decides. */
static bool parse_dom(struct slu_record_parser *p, const uint8_t *rec, size_t n,
                      struct slu_record *out)
{
    dom::element *found = p->found;
    bool *has = p->has;
    dom::object o;

    simdjson::error_code code = p->parser.parse(rec, n, false).get(o);
    if (code == simdjson::MEMALLOC)
        p->parser = dom::parser(); /* the old one would use the tape it did not get */
    if (code != simdjson::SUCCESS)
        return false;
    memset(has, 0, SLU_FIELDS + p->n_any);
    find_fields(p, o, found, has);
    for (int i = 0; i < SLU_FIELDS; i++) {
        std::string_view s;
        if (p->field[i].name == nullptr)
            continue;
        if (!has[i] || ((p->optional >> i & 1) != 0 && found[i].is_null())) {
            if ((p->optional >> i & 1) == 0)
                return false;
            out->lacks |= 1U << i;
            continue;
        }
        if (i == SLU_FIELD_SCORE) {
            if (found[i].get(out->score) != simdjson::SUCCESS)
                return false;
            continue;
        }
        if (found[i].get(s) == simdjson::SUCCESS) {
            set_field(out, i, s.data(), s.size());
            continue;
        }
        size_t len = i == SLU_FIELD_TEXT ? 0 : put_scalar(found[i], p->scalar[i]);
        if (len == 0)
            return false;
        set_field(out, i, p->scalar[i], len);
    }
    for (size_t i = 0; i < p->n_any; i++)
        p->any[i] =
            has[SLU_FIELDS + i] ? element_value(found[SLU_FIELDS + i]) : slu_value{};
    return true;
}

/* Takes a field that the scalar parser found: a score goes to the record, other numbers
 * to p->scalar; strings are left to take_strings. */
static int take_scalar(struct slu_record_parser *p, const uint8_t *rec, int i,
                       struct slu_record *out, struct slu_err *err)
{
    const struct slu_scan_field *f = &p->field[i];
    const char *s = reinterpret_cast<const char *>(rec) + f->off;
    const bool is_score = i == SLU_FIELD_SCORE, is_text = i == SLU_FIELD_TEXT;

    if (f->type == SLU_SCAN_STRING && !is_score)
        return SLU_OK;
    if (!is_text && !is_score &&
        (f->type == SLU_SCAN_INTEGER || f->type == SLU_SCAN_BOOL)) {
        const bool is_zero = f->len == 2 && memcmp(s, "-0", 2) == 0;
        set_field(out, i, is_zero ? "0" : s, is_zero ? 1 : f->len); /* as simdjson */
        return SLU_OK;
    }
    if (!is_text && (f->type == SLU_SCAN_INTEGER || f->type == SLU_SCAN_NUMBER)) {
        slu_buf_clear(&p->unescaped);
        int rc = slu_buf_append(&p->unescaped, s, f->len, err);
        if (!rc)
            rc = slu_buf_append(&p->unescaped, "", 1, err);
        if (rc)
            return rc;
        double x = strtod(reinterpret_cast<const char *>(p->unescaped.data), nullptr);
        if (std::isfinite(x) && is_score)
            out->score = x;
        else if (std::isfinite(x))
            set_field(out, i, p->scalar[i], slu_number_put(x, p->scalar[i]));
        if (std::isfinite(x))
            return SLU_OK;
    }
    out->reject = is_score ? SLU_REJECT_NOT_A_NUMBER : SLU_REJECT_NOT_A_STRING;
    out->off_byte = f->off;
    out->which = static_cast<enum slu_field>(i);
    return SLU_OK;
}

static int take_spans(struct slu_record_parser *p, const uint8_t *rec,
                      struct slu_record *out, struct slu_err *err)
{
    const struct slu_scan_field *f = &p->field[SLU_FIELD_SPANS];
    bool good = false;

    slu_buf_clear(&p->spans);
    int rc = f->type == SLU_SCAN_CONTAINER
                 ? slu_json_spans(&p->spans, rec + f->off, &good, err)
                 : SLU_OK;
    if (rc)
        return rc;
    out->span = reinterpret_cast<uint64_t *>(p->spans.data);
    out->n_span = p->spans.len / (2 * sizeof(uint64_t));
    if (!good) {
        out->reject = SLU_REJECT_BAD_SPANS;
        out->off_byte = f->off;
        out->which = SLU_FIELD_SPANS;
    }
    return SLU_OK;
}

/* Takes the strings that the scalar parser found; those with escapes are unescaped to
 * p->unescaped. */
static int take_strings(struct slu_record_parser *p, const uint8_t *rec,
                        struct slu_record *out, struct slu_err *err)
{
    size_t at[N_STRING] = {0, 0, 0}, len[N_STRING] = {0, 0, 0};

    slu_buf_clear(&p->unescaped);
    for (int i = 0; i < N_STRING; i++) {
        struct slu_scan_field *f = &p->field[i];
        if (f->name == nullptr || !f->escaped || f->type != SLU_SCAN_STRING)
            continue;
        at[i] = p->unescaped.len;
        int rc = slu_json_unescape(&p->unescaped, rec + f->off, f->len, err);
        if (rc)
            return rc;
        len[i] = p->unescaped.len - at[i];
    }
    for (int i = 0; i < N_STRING; i++) {
        const struct slu_scan_field *f = &p->field[i];
        if (f->name == nullptr || f->type != SLU_SCAN_STRING)
            continue;
        if (f->escaped)
            set_field(out, i, reinterpret_cast<const char *>(p->unescaped.data) + at[i],
                      len[i]);
        else
            set_field(out, i, reinterpret_cast<const char *>(rec) + f->off, f->len);
    }
    return SLU_OK;
}

/* Takes the fields of any type that the scalar parser found. */
static int take_any(struct slu_record_parser *p, const uint8_t *rec,
                    struct slu_err *err)
{
    size_t at[SLU_RECORD_ANY] = {0};
    int rc = SLU_OK;

    slu_buf_clear(&p->any_text);
    for (size_t i = 0; i < p->n_any; i++) {
        const struct slu_scan_field *f = &p->field[SLU_FIELDS + i];
        const char *s = reinterpret_cast<const char *>(rec) + f->off;
        at[i] = SIZE_MAX;
        p->any[i] = {};
        if (f->type == SLU_SCAN_CONTAINER)
            p->any[i].type = SLU_VALUE_LIST;
        else if (f->type == SLU_SCAN_STRING)
            p->any[i] = string_value(s, f->len);
        else if (f->type != SLU_SCAN_ABSENT &&
                 (rc = scalar_value(s, f->len, &p->any[i], err)))
            return rc;
        if (f->type != SLU_SCAN_STRING || !f->escaped)
            continue;
        at[i] = p->any_text.len;
        rc = slu_json_unescape(&p->any_text, rec + f->off, f->len, err);
        if (rc)
            return rc;
        p->any[i].len = p->any_text.len - at[i];
    }
    for (size_t i = 0; i < p->n_any;
         i++) /* the buffer stays where it is from here on */
        if (at[i] != SIZE_MAX)
            p->any[i].string = reinterpret_cast<const char *>(p->any_text.data) + at[i];
    return SLU_OK;
}

/* After a scan: finds the fields that the record lacks. True: it needs one of them. */
static bool find_missing(const struct slu_record_parser *p, struct slu_record *out)
{
    for (int i = 0; i < SLU_FIELDS; i++) {
        const struct slu_scan_field *f = &p->field[i];
        const bool is_optional = (p->optional >> i & 1) != 0;
        const bool is_null =
            f->type == SLU_SCAN_NULL &&
            (is_optional || (i == SLU_FIELD_TEXT && p->null_is_missing));
        if (f->name == nullptr || (f->type != SLU_SCAN_ABSENT && !is_null))
            continue;
        if (!is_optional) {
            out->reject = SLU_REJECT_MISSING_FIELD;
            out->which = static_cast<enum slu_field>(i);
            out->lacks = 1U << i;
            out->off_byte = is_null ? f->off : UINT64_MAX;
            return true;
        }
        out->lacks |= 1U << i;
    }
    return false;
}

static int parse_scan(struct slu_record_parser *p, const uint8_t *rec, size_t n,
                      struct slu_record *out, struct slu_err *err)
{
    size_t utf8 = slu_utf8_valid_prefix(rec, n);
    if (utf8 < n) {
        out->reject = SLU_REJECT_INVALID_UTF8;
        out->off_byte = utf8;
        return SLU_OK;
    }
    struct slu_json_scanned scan;
    slu_json_scan(rec, n, p->field, SLU_FIELDS + p->n_any, &scan);
    if (scan.reject != SLU_REJECT_NONE || !scan.object) {
        out->reject = scan.reject ? scan.reject : SLU_REJECT_NOT_AN_OBJECT;
        out->off_byte = scan.off;
        return SLU_OK;
    }
    if (find_missing(p, out))
        return SLU_OK;
    struct slu_record taken = *out;
    int rc = SLU_OK;
    for (int i = 0; i < SLU_FIELDS && taken.reject == SLU_REJECT_NONE; i++) {
        if (p->field[i].name != nullptr && (taken.lacks >> i & 1) == 0)
            rc = i == SLU_FIELD_SPANS ? take_spans(p, rec, &taken, err)
                                      : take_scalar(p, rec, i, &taken, err);
        if (rc)
            return rc;
    }
    if (taken.reject == SLU_REJECT_NONE) {
        *out = taken;
        rc = take_strings(p, rec, out, err);
        return rc ? rc : take_any(p, rec, err);
    }
    out->reject = taken.reject;
    out->off_byte = taken.off_byte;
    out->which = taken.which;
    return SLU_OK;
}

static void clear_record(struct slu_record *out)
{
    memset(out, 0, sizeof *out);
    out->off_byte = UINT64_MAX;
    out->score = NAN;
}

int slu_record_parse(struct slu_record_parser *p, const uint8_t *rec, size_t n,
                     struct slu_record *out, struct slu_err *err)
{
    clear_record(out);
    out->any = p->any;
    if (n <= p->dom_byte && ((p->flat != nullptr && parse_flat(p, rec, n, out)) ||
                             parse_dom(p, rec, n, out)))
        return SLU_OK;
    clear_record(out);
    out->any = p->any;
    return parse_scan(p, rec, n, out, err);
}

const char *slu_reject_name(enum slu_reject r)
{
    static const char *const name[SLU_REJECT_N] = {
        "none",           "invalid-utf8",  "invalid-json",  "too-deep",
        "lone-surrogate", "not-an-object", "missing-field", "not-a-string",
        "not-a-number",   "bad-spans",     "long-field",    "nul-in-domain",
        "changed-text",   "trimmed-span",  "unfit-field",   "truncated-source",
        "damaged-source", "empty-source",  "other-kind",    "where",
        "ids-keep",       "ids-drop",      "urls-drop",     "rules",
        "fasttext",       "warc-record",   "warc-html",     "warc-no-text",
        "warc-encoded"};
    return (unsigned)r < SLU_REJECT_N ? name[r] : "unknown";
}
