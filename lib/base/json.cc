/* json.cc - simdjson behind json.h; no exception and no C++ type leaves this file. */
#include "json.h"

#include <fcntl.h>
#include <simdjson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <new>
#include <type_traits>

extern "C" {
#include "buf.h"
#include "io.h"
#include "json_flat.h"
#include "json_scan.h"
#include "json_write.h"
#include "simd.h"
}

namespace dom = simdjson::dom;

static_assert(SLU_JSON_PADDING >= simdjson::SIMDJSON_PADDING, "padding of records");

/* ---- the tree ---- */

struct slu_json {
    dom::document doc;
};

/* A C value has the bytes of simdjson's: a document's address, a place on its tape. */
template <typename T> static T unwrap(const void *opaque)
{
    static_assert(std::is_trivially_copyable<T>::value, "copied as bytes");
    static_assert(sizeof(T) == sizeof(struct slu_json_value), "copied as bytes");
    T t;
    memcpy(static_cast<void *>(&t), opaque, sizeof t);
    return t;
}

static dom::element element_of(struct slu_json_value v)
{
    return unwrap<dom::element>(v.opaque);
}

template <typename T> static void wrap(uint64_t *opaque, const T &t)
{
    static_assert(sizeof(T) == sizeof(struct slu_json_value), "copied as bytes");
    memcpy(opaque, static_cast<const void *>(&t), sizeof t);
}

static struct slu_json_value value_of(dom::element e)
{
    struct slu_json_value v;
    wrap(v.opaque, e);
    return v;
}

/* simdjson chooses its code at first use, and ends the process if that fails for lack
 * of memory. So it chooses here, before main. */
[[maybe_unused]] static const bool simdjson_chosen =
    !simdjson::get_active_implementation()->name().empty();

/* Says where and why the n bytes at p are not acceptable JSON. */
static int fail_json(const uint8_t *p, size_t n, simdjson::error_code code,
                     struct slu_err *err)
{
    if (code == simdjson::MEMALLOC)
        return slu_fail_nomem(err, n);
    size_t utf8 = slu_utf8_valid_prefix(p, n);
    if (utf8 < n)
        return slu_fail_at(err, SLU_E_FORMAT, utf8, "byte %zu: not valid UTF-8", utf8);
    struct slu_json_scanned scan;
    slu_json_scan(p, n, nullptr, 0, &scan);
    if (scan.reject == SLU_REJECT_NONE)
        return slu_fail(err, SLU_E_LIMIT, "JSON past this reader's limits: %s",
                        simdjson::error_message(code));
    return slu_fail_at(err, SLU_E_FORMAT, scan.off, "byte %zu: %s", scan.off,
                       scan.off >= n ? "JSON ends early"
                       : scan.reject == SLU_REJECT_LONE_SURROGATE
                           ? "lone surrogate in JSON"
                           : "not valid JSON");
}

/* Parses n bytes at buf, where SLU_JSON_PADDING more can be read. */
static int parse_padded(struct slu_json **j, const uint8_t *buf, size_t n,
                        struct slu_err *err)
{
    struct slu_json *s = new (std::nothrow) struct slu_json;
    if (s == nullptr)
        return slu_fail_nomem(err, sizeof *s);
    dom::parser parser;
    simdjson::error_code code =
        parser.parse_into_document(s->doc, buf, n, false).error();
    if (code != simdjson::SUCCESS) {
        delete s;
        return fail_json(buf, n, code, err);
    }
    *j = s;
    return SLU_OK;
}

int slu_json_parse(struct slu_json **j, const void *p, size_t n, struct slu_err *err)
{
    uint8_t *copy = n > SIZE_MAX - SLU_JSON_PADDING
                        ? nullptr
                        : static_cast<uint8_t *>(malloc(n + SLU_JSON_PADDING));
    if (copy == nullptr)
        return slu_fail_nomem(err, n);
    if (n > 0)
        memcpy(copy, p, n);
    memset(copy + n, ' ', SLU_JSON_PADDING);
    int rc = parse_padded(j, copy, n, err);
    free(copy);
    return rc;
}

int slu_json_load(struct slu_json **j, const char *path, struct slu_err *err)
{
    struct stat st;
    uint8_t *buf = nullptr;
    size_t got = 0;
    int rc;

    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        rc = slu_fail_errno(err, "%s", path);
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        rc = slu_fail(err, SLU_E_IO, "%s: not a regular file", path);
        goto out;
    }
    buf = static_cast<uint8_t *>(malloc((size_t)st.st_size + SLU_JSON_PADDING));
    if (buf == nullptr) {
        rc = slu_fail_nomem(err, (uint64_t)st.st_size);
        goto out;
    }
    rc = slu_read_full(fd, buf, (size_t)st.st_size, &got, err);
    if (!rc) {
        memset(buf + got, ' ', SLU_JSON_PADDING);
        rc = parse_padded(j, buf, got, err);
    }
    if (rc)
        rc = slu_err_at(err, "%s", path);
out:
    free(buf);
    if (fd >= 0)
        close(fd);
    return rc;
}

void slu_json_free(struct slu_json *j)
{
    delete j;
}

struct slu_json_value slu_json_root(const struct slu_json *j)
{
    return value_of(j->doc.root());
}

/* Whether v is SLU_JSON_NONE, which has no document. */
static bool none(struct slu_json_value v)
{
    return v.opaque[0] == 0 && v.opaque[1] == 0;
}

enum slu_json_type slu_json_type(struct slu_json_value v)
{
    if (none(v))
        return SLU_JSON_NULL;
    switch (element_of(v).type()) {
    case dom::element_type::ARRAY:
        return SLU_JSON_ARRAY;
    case dom::element_type::OBJECT:
        return SLU_JSON_OBJECT;
    case dom::element_type::STRING:
        return SLU_JSON_STRING;
    case dom::element_type::BOOL:
        return SLU_JSON_BOOL;
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE:
        return SLU_JSON_NUMBER;
    case dom::element_type::NULL_VALUE:
        break;
    }
    return SLU_JSON_NULL;
}

bool slu_json_bool(struct slu_json_value v, bool *out)
{
    return !none(v) && element_of(v).get(*out) == simdjson::SUCCESS;
}

bool slu_json_u64(struct slu_json_value v, uint64_t *out)
{
    return !none(v) && element_of(v).get(*out) == simdjson::SUCCESS;
}

bool slu_json_double(struct slu_json_value v, double *out)
{
    return !none(v) && element_of(v).get(*out) == simdjson::SUCCESS;
}

bool slu_json_string(struct slu_json_value v, const char **p, size_t *len)
{
    std::string_view s;
    if (none(v) || element_of(v).get(s) != simdjson::SUCCESS)
        return false;
    *p = s.data();
    *len = s.size();
    return true;
}

bool slu_json_is(struct slu_json_value v, const char *s)
{
    std::string_view w;
    return !none(v) && element_of(v).get(w) == simdjson::SUCCESS && w == s;
}

bool slu_json_get(struct slu_json_value v, const char *key, struct slu_json_value *out)
{
    struct slu_json_iter it;
    size_t len = strlen(key);
    bool found = false;

    if (slu_json_type(v) != SLU_JSON_OBJECT)
        return false;
    for (slu_json_iter_init(&it, v); slu_json_next(&it);) {
        if (it.key_len == len && memcmp(it.key, key, len) == 0) {
            *out = it.value;
            found = true;
        }
    }
    return found;
}

bool slu_json_get_set(struct slu_json_value v, const char *key,
                      struct slu_json_value *out)
{
    struct slu_json_value w;
    if (!slu_json_get(v, key, &w) || slu_json_type(w) == SLU_JSON_NULL)
        return false;
    *out = w;
    return true;
}

const char *slu_json_get_string(struct slu_json_value v, const char *key,
                                const char *without)
{
    struct slu_json_value w;
    size_t n;
    if (slu_json_get(v, key, &w))
        (void)slu_json_string(w, &without, &n);
    return without;
}

size_t slu_json_count(struct slu_json_value v)
{
    struct slu_json_iter it;
    size_t n = 0;
    for (slu_json_iter_init(&it, v); slu_json_next(&it);)
        n++;
    return n;
}

/* opaque: the current place, the end, and the type: 0 neither, 1 array, 2 object. */
void slu_json_iter_init(struct slu_json_iter *it, struct slu_json_value v)
{
    dom::element e = element_of(v);
    dom::array a;
    dom::object o;

    memset(it, 0, sizeof *it);
    if (none(v))
        return;
    if (e.get(a) == simdjson::SUCCESS) {
        wrap(it->opaque, a.begin());
        wrap(it->opaque + 2, a.end());
        it->opaque[4] = 1;
    } else if (e.get(o) == simdjson::SUCCESS) {
        wrap(it->opaque, o.begin());
        wrap(it->opaque + 2, o.end());
        it->opaque[4] = 2;
    }
}

bool slu_json_next(struct slu_json_iter *it)
{
    if (it->opaque[4] == 1) {
        auto cur = unwrap<dom::array::iterator>(it->opaque);
        if (!(cur != unwrap<dom::array::iterator>(it->opaque + 2)))
            return false;
        it->value = value_of(*cur);
        ++cur;
        wrap(it->opaque, cur);
        return true;
    }
    if (it->opaque[4] == 2) {
        auto cur = unwrap<dom::object::iterator>(it->opaque);
        if (!(cur != unwrap<dom::object::iterator>(it->opaque + 2)))
            return false;
        std::string_view k = cur.key();
        it->key = k.data();
        it->key_len = k.size();
        it->value = value_of(cur.value());
        ++cur;
        wrap(it->opaque, cur);
        return true;
    }
    return false;
}

/* ---- records ---- */

enum { TEXT, ID, DOMAIN, SCORE, N_FIELD, N_STRING = SCORE };

struct slu_record_parser {
    dom::parser parser;
    struct slu_scan_field field[N_FIELD];
    size_t dom_byte;
    slu_json_flat_fn *flat;   /* NULL: none */
    struct slu_buf unescaped; /* strings of our own parsers */
    char number[24];          /* an integer id as text */
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
    const char *name[N_FIELD] = {cfg->text_field, cfg->id_field, cfg->domain_field,
                                 cfg->score_field};
    for (int i = 0; i < N_FIELD; i++) {
        p->field[i].name = name[i];
        p->field[i].name_len = name[i] == nullptr ? 0 : strlen(name[i]);
    }
    p->dom_byte = cfg->dom_byte == 0 ? (size_t)1 << 20 : cfg->dom_byte;
    p->flat = flat_of_level(cfg->simd);
    *out = p;
    return SLU_OK;
}

void slu_record_parser_free(struct slu_record_parser *p)
{
    if (p != nullptr)
        slu_buf_release(&p->unescaped);
    delete p;
}

static void set_field(struct slu_record *out, int i, const char *s, size_t len)
{
    const char **dst[N_STRING] = {&out->text, &out->id, &out->domain};
    size_t *dst_len[N_STRING] = {&out->text_len, &out->id_len, &out->domain_len};
    *dst[i] = s;
    *dst_len[i] = len;
}

/* Parses a flat record, as most records are. False: another parser must try. */
static bool parse_flat(struct slu_record_parser *p, const uint8_t *rec, size_t n,
                       struct slu_record *out)
{
    struct slu_flat_field field[N_FIELD];
    struct slu_err err = SLU_ERR_INIT;

    for (int i = 0; i < N_FIELD; i++)
        field[i] = {p->field[i].name, p->field[i].name_len, nullptr, 0};
    slu_buf_clear(&p->unescaped);
    if (slu_buf_reserve(&p->unescaped, n + SLU_JSON_PADDING, &err) != SLU_OK ||
        !simdjson::validate_utf8(reinterpret_cast<const char *>(rec), n) ||
        !p->flat(rec, n, field, N_FIELD, p->unescaped.data) ||
        field[SCORE].p != nullptr)
        return false;
    for (int i = 0; i < N_STRING; i++) {
        if (field[i].name != nullptr && field[i].p == nullptr)
            return false;
        if (field[i].name != nullptr)
            set_field(out, i, reinterpret_cast<const char *>(field[i].p), field[i].len);
    }
    return true;
}

/* Parses a record with simdjson. False: the scalar parser decides. */
static bool parse_dom(struct slu_record_parser *p, const uint8_t *rec, size_t n,
                      struct slu_record *out)
{
    dom::element found[N_FIELD];
    bool has[N_FIELD] = {false, false, false, false};
    dom::object o;

    simdjson::error_code code = p->parser.parse(rec, n, false).get(o);
    if (code == simdjson::MEMALLOC)
        p->parser = dom::parser(); /* the old one would use the tape it did not get */
    if (code != simdjson::SUCCESS)
        return false;
    for (auto it = o.begin(); it != o.end(); ++it) {
        std::string_view k = it.key();
        for (int i = 0; i < N_FIELD; i++) {
            const struct slu_scan_field *f = &p->field[i];
            if (f->name != nullptr && k.size() == f->name_len &&
                memcmp(k.data(), f->name, f->name_len) == 0) {
                found[i] = it.value();
                has[i] = true;
            }
        }
    }
    if (has[SCORE] && !found[SCORE].is_null() &&
        found[SCORE].get(out->score) != simdjson::SUCCESS)
        return false;
    for (int i = 0; i < N_STRING; i++) {
        std::string_view s;
        if (p->field[i].name == nullptr)
            continue;
        if (!has[i])
            return false;
        if (found[i].get(s) == simdjson::SUCCESS) {
            set_field(out, i, s.data(), s.size());
            continue;
        }
        int64_t num;
        if (i != ID || found[i].get(num) != simdjson::SUCCESS)
            return false;
        int len = snprintf(p->number, sizeof p->number, "%lld", (long long)num);
        set_field(out, i, p->number, (size_t)len);
    }
    return true;
}

/* Takes the fields that the scalar parser found; strings with escapes are unescaped to
 * p->unescaped. */
static int take_scanned(struct slu_record_parser *p, const uint8_t *rec,
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
        const char *s = reinterpret_cast<const char *>(rec) + f->off;
        if (f->name == nullptr)
            continue;
        if (f->type == SLU_SCAN_INTEGER && f->len == 2 && memcmp(s, "-0", 2) == 0)
            set_field(out, i, "0", 1); /* as simdjson reads it */
        else if (f->escaped && f->type == SLU_SCAN_STRING)
            set_field(out, i, reinterpret_cast<const char *>(p->unescaped.data) + at[i],
                      len[i]);
        else
            set_field(out, i, s, f->len);
    }
    return SLU_OK;
}

/* Takes the score. False: it is not a number, or beyond a double. */
static bool take_score(const struct slu_record_parser *p, const uint8_t *rec,
                       struct slu_record *out)
{
    const struct slu_scan_field *f = &p->field[SCORE];
    const char *s = reinterpret_cast<const char *>(rec) + f->off;
    if (f->name == nullptr || f->type == SLU_SCAN_ABSENT ||
        (f->type == SLU_SCAN_OTHER && f->len == 4 && memcmp(s, "null", 4) == 0))
        return true;
    char text[400]; /* a longer number is not a score */
    if (f->type != SLU_SCAN_STRING && (*s == '-' || (*s >= '0' && *s <= '9')) &&
        f->len < sizeof text) {
        memcpy(text, s, f->len);
        text[f->len] = 0;
        out->score = strtod(text, nullptr);
        if (std::isfinite(out->score))
            return true;
    }
    out->score = NAN;
    out->reject = SLU_REJECT_NOT_A_NUMBER;
    out->off_byte = f->off;
    out->field = f->name;
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
    slu_json_scan(rec, n, p->field, N_FIELD, &scan);
    if (scan.reject != SLU_REJECT_NONE) {
        out->reject = scan.reject;
        out->off_byte = scan.off;
        return SLU_OK;
    }
    if (!scan.object) {
        out->reject = SLU_REJECT_NOT_AN_OBJECT;
        out->off_byte = scan.off;
        return SLU_OK;
    }
    for (int i = 0; i < N_STRING; i++) {
        const struct slu_scan_field *f = &p->field[i];
        if (f->name != nullptr && f->type == SLU_SCAN_ABSENT) {
            out->reject = SLU_REJECT_MISSING_FIELD;
            out->field = f->name;
            return SLU_OK;
        }
    }
    for (int i = 0; i < N_STRING; i++) {
        const struct slu_scan_field *f = &p->field[i];
        if (f->name != nullptr && f->type != SLU_SCAN_STRING &&
            (i != ID || f->type != SLU_SCAN_INTEGER)) {
            out->reject = SLU_REJECT_NOT_A_STRING;
            out->off_byte = f->off;
            out->field = f->name;
            return SLU_OK;
        }
    }
    return take_score(p, rec, out) ? take_scanned(p, rec, out, err) : SLU_OK;
}

int slu_record_parse(struct slu_record_parser *p, const uint8_t *rec, size_t n,
                     struct slu_record *out, struct slu_err *err)
{
    memset(out, 0, sizeof *out);
    out->off_byte = UINT64_MAX;
    out->score = NAN;
    if (n <= p->dom_byte && ((p->flat != nullptr && parse_flat(p, rec, n, out)) ||
                             parse_dom(p, rec, n, out)))
        return SLU_OK;
    memset(out, 0, sizeof *out);
    out->off_byte = UINT64_MAX;
    out->score = NAN;
    return parse_scan(p, rec, n, out, err);
}

/* ---- UTF-8 ---- */

size_t slu_utf8_valid_prefix(const uint8_t *p, size_t n)
{
    if (n == 0 || simdjson::validate_utf8(reinterpret_cast<const char *>(p), n))
        return n;
    size_t i = 0;
    while (i < n) {
        size_t len = slu_utf8_valid_at(p + i, n - i);
        if (len == 0)
            return i;
        i += len;
    }
    return n;
}

const char *slu_reject_name(enum slu_reject r)
{
    static const char *const name[SLU_REJECT_N] = {
        "none",           "invalid-utf8",  "invalid-json",  "too-deep",
        "lone-surrogate", "not-an-object", "missing-field", "not-a-string",
        "not-a-number",   "long-field",    "nul-in-domain", "truncated-source",
        "damaged-source", "empty-source"};
    return (unsigned)r < SLU_REJECT_N ? name[r] : "unknown";
}
