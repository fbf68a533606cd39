/* json.cc - the tree of json.h, by simdjson; no exception and no C++ type leaves this
 * file. */
#include "json.h"

#include <fcntl.h>
#include <simdjson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>
#include <type_traits>

extern "C" {
#include "buf.h"
#include "io.h"
#include "json_scan.h"
#include "json_write.h"
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
 * of memory. This makes the choice before main. */
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
    uint64_t n_byte;
    uint8_t *buf = nullptr;
    size_t got = 0;
    int fd, rc = slu_open_regular(&fd, path, &n_byte, err);

    if (rc)
        return slu_err_at(err, "%s", path);
    buf = static_cast<uint8_t *>(malloc((size_t)n_byte + SLU_JSON_PADDING));
    rc = buf == nullptr ? slu_fail_nomem(err, n_byte)
                        : slu_read_full(fd, buf, (size_t)n_byte, &got, err);
    if (!rc) {
        memset(buf + got, ' ', SLU_JSON_PADDING);
        rc = parse_padded(j, buf, got, err);
    }
    if (rc)
        rc = slu_err_at(err, "%s", path);
    free(buf);
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
