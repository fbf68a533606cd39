/* test_json.c - lib/base/json.h: the tree, the record parser, and both compared with
 * each other. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"

/* ---- the tree ---- */

static void tree(void **state)
{
    static const char doc[] =
        "{\"model\":{\"vocab\":{\"a\":0,\"b\\u0000c\":1},\"merges\":[\"a "
        "b\",[\"c\",\"d\"]]},"
        "\"x\":null,\"f\":1.5,\"t\":true,\"n\":-3,\"x\":7,\"e\":[]}";
    struct slu_err err = SLU_ERR_INIT;
    struct slu_json *j;
    struct slu_json_value root, v, w;
    struct slu_json_iter it;
    const char *s;
    size_t len;
    uint64_t u = 0;
    double d = 0;
    bool b = false;
    (void)state;

    assert_int_equal(slu_json_parse(&j, doc, strlen(doc), &err), SLU_OK);
    root = slu_json_root(j);
    assert_int_equal(slu_json_type(root), SLU_JSON_OBJECT);
    assert_int_equal(slu_json_count(root), 7);
    assert_true(slu_json_get(root, "x", &v)); /* the last wins */
    assert_true(slu_json_u64(v, &u) && u == 7);
    assert_true(slu_json_get(root, "f", &v) && slu_json_double(v, &d) && d == 1.5);
    assert_true(slu_json_get(root, "t", &v) && slu_json_bool(v, &b) && b);
    assert_true(slu_json_get(root, "n", &v) && !slu_json_u64(v, &u) && u == 7);
    assert_false(slu_json_get(root, "absent", &v));
    assert_false(slu_json_get(v, "x", &w)); /* no object */
    assert_true(slu_json_get(root, "model", &v) && slu_json_get(v, "vocab", &w));
    slu_json_iter_init(&it, w);
    assert_true(slu_json_next(&it) && it.key_len == 1 && it.key[0] == 'a');
    assert_true(slu_json_next(&it) && it.key_len == 3 &&
                memcmp(it.key, "b\0c", 3) == 0);
    assert_true(slu_json_u64(it.value, &u) && u == 1);
    assert_false(slu_json_next(&it));
    assert_false(slu_json_next(&it));
    assert_true(slu_json_get(v, "merges", &w) && slu_json_count(w) == 2);
    slu_json_iter_init(&it, w);
    assert_true(slu_json_next(&it) && slu_json_string(it.value, &s, &len));
    assert_true(len == 3 && strcmp(s, "a b") == 0 && slu_json_is(it.value, "a b"));
    assert_true(slu_json_next(&it) && slu_json_type(it.value) == SLU_JSON_ARRAY);
    assert_true(slu_json_get(root, "e", &v) && slu_json_count(v) == 0);
    slu_json_free(j);
    slu_json_free(NULL);
}

static void tree_faults(void **state)
{
    static const struct {
        const char *doc;
        uint64_t off;
        int code;
    } t[] = {
        {"", 0, SLU_E_FORMAT},
        {"{\"a\":1", 6, SLU_E_FORMAT},
        {"{\"a\":01}", 6, SLU_E_FORMAT},
        {"[\"\xff\"]", 2, SLU_E_FORMAT},
        {"[1e999]", UINT64_MAX, SLU_E_LIMIT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct slu_err err = SLU_ERR_INIT;
        struct slu_json *j;
        assert_int_equal(slu_json_parse(&j, t[i].doc, strlen(t[i].doc), &err),
                         t[i].code);
        assert_int_equal(err.off_byte, t[i].off);
    }
}

/* A value that a failed look-up did not set reads as null. */
static void no_place(void **state)
{
    struct slu_json_value v = SLU_JSON_NONE, w;
    struct slu_json_iter it;
    const char *p;
    size_t n;
    uint64_t u;
    (void)state;
    assert_int_equal(slu_json_type(v), SLU_JSON_NULL);
    assert_false(slu_json_get(v, "a", &w));
    assert_false(slu_json_is(v, "a"));
    assert_false(slu_json_string(v, &p, &n));
    assert_false(slu_json_u64(v, &u));
    assert_int_equal(slu_json_count(v), 0);
    slu_json_iter_init(&it, v);
    assert_false(slu_json_next(&it));
}

/* ---- records ---- */

static struct slu_record_parser *parser(size_t dom_byte, const char *simd)
{
    struct slu_record_cfg cfg = {.name = {"text", "id", "domain", "score"},
                                 .optional = 1U << SLU_FIELD_SCORE,
                                 .dom_byte = dom_byte,
                                 .simd = simd};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_record_parser *p = NULL;
    assert_int_equal(slu_record_parser_new(&p, &cfg, &err), SLU_OK);
    return p;
}

static void parse(struct slu_record_parser *p, const char *rec, size_t n,
                  struct slu_record *out)
{
    static uint8_t buf[1 << 16]; /* the results point into it */
    struct slu_err err = SLU_ERR_INIT;
    assert_true(n + SLU_JSON_PADDING <= sizeof buf);
    memcpy(buf, rec, n);
    memset(buf + n, '"', SLU_JSON_PADDING); /* what follows must not matter */
    assert_int_equal(slu_record_parse(p, buf, n, out, &err), SLU_OK);
}

#define T       "\"text\":\"t\""
#define I       "\"id\":\"i\""
#define D       "\"domain\":\"d\""
#define NOWHERE UINT64_MAX

static void rejects(void **state)
{
    static const struct {
        const char *rec;
        enum slu_reject reject;
        uint64_t off;
    } t[] = {
        {"{" T "," I "," D "}", SLU_REJECT_NONE, NOWHERE},
        {" \t{" T "," I "," D "} \r", SLU_REJECT_NONE, NOWHERE},
        {"{" T "," I "," D ",\"big\":123456789012345678901234567890}", SLU_REJECT_NONE,
         NOWHERE},
        {"{" T "," I "," D ",\"big\":-1.5e+999}", SLU_REJECT_NONE, NOWHERE},
        {"", SLU_REJECT_INVALID_JSON, 0},
        {"  ", SLU_REJECT_INVALID_JSON, 2},
        {"nul", SLU_REJECT_INVALID_JSON, 3},
        {"{" T, SLU_REJECT_INVALID_JSON, 11},
        {"{" T ",}", SLU_REJECT_INVALID_JSON, 12},
        {"{" T "}x", SLU_REJECT_INVALID_JSON, 12},
        {"{" T "}{" T "}", SLU_REJECT_INVALID_JSON, 12},
        {"{\"text\":\"a\nb\"}", SLU_REJECT_INVALID_JSON, 10},
        {"{\"text\":\"a\\x\"}", SLU_REJECT_INVALID_JSON, 10},
        {"{\"text\":\"a\\u12\"}", SLU_REJECT_INVALID_JSON, 10},
        {"{\"text\":\"a\\", SLU_REJECT_INVALID_JSON, 11},
        {"{\"text\":1.}", SLU_REJECT_INVALID_JSON, 10},
        {"{\"text\":+1}", SLU_REJECT_INVALID_JSON, 8},
        {"{\"text\" \"t\"}", SLU_REJECT_INVALID_JSON, 8},
        {"{1:2}", SLU_REJECT_INVALID_JSON, 1},
        {"[1 2]", SLU_REJECT_INVALID_JSON, 3},
        {"\xef\xbb\xbf{}", SLU_REJECT_INVALID_JSON, 0},
        {"{\"text\":\"\xc3\x28\"}", SLU_REJECT_INVALID_UTF8, 9},
        {"{\"text\":\"\xed\xa0\x80\"}", SLU_REJECT_INVALID_UTF8, 9},
        {"{\"text\":\"\xc0\x80\"}", SLU_REJECT_INVALID_UTF8, 9},
        {"{\"text\":\"\xf4\x90\x80\x80\"}", SLU_REJECT_INVALID_UTF8, 9},
        {"{]\xff", SLU_REJECT_INVALID_UTF8, 2}, /* before everything else */
        {"{\"m\":\"\\ud800\"," T "," I "," D "}", SLU_REJECT_LONE_SURROGATE, 6},
        {"{\"text\":\"\\udc00\\ud800\"}", SLU_REJECT_LONE_SURROGATE, 9},
        {"{\"text\":\"\\ud83d\\ud83d\\ude00\"}", SLU_REJECT_LONE_SURROGATE, 9},
        {"{\"\\udfff\":0}", SLU_REJECT_LONE_SURROGATE, 2},
        {"[\"text\"]", SLU_REJECT_NOT_AN_OBJECT, 0},
        {" 12", SLU_REJECT_NOT_AN_OBJECT, 1},
        {"\"text\"", SLU_REJECT_NOT_AN_OBJECT, 0},
        {"{}", SLU_REJECT_MISSING_FIELD, NOWHERE},
        {"{\"a\":{" T "}," I "," D "}", SLU_REJECT_MISSING_FIELD, NOWHERE},
        {"{" T "," D "}", SLU_REJECT_MISSING_FIELD, NOWHERE},
        {"{\"text\":null," I "," D "}", SLU_REJECT_NOT_A_STRING, 8},
        {"{\"text\":[\"t\"]," I "," D "}", SLU_REJECT_NOT_A_STRING, 8},
        {"{" T ",\"id\":[1]," D "}", SLU_REJECT_NOT_A_STRING, 17},
        {"{" T ",\"id\":1e999," D "}", SLU_REJECT_NOT_A_STRING, 17},
        {"{" T "," I ",\"domain\":null}", SLU_REJECT_NOT_A_STRING, 30},
        {"{" T "," I "," D ",\"score\":\"1\"}", SLU_REJECT_NOT_A_NUMBER, 43},
        {"{" T "," I "," D ",\"score\":1e999}", SLU_REJECT_NOT_A_NUMBER, 42},
        {"{" T "," I "," D ",\"text\":0}", SLU_REJECT_NOT_A_STRING, 41},
    };
    (void)state;
    for (size_t dom = 0; dom < 2; dom++) {
        struct slu_record_parser *p =
            parser(dom == 0 ? 0 : 1, NULL); /* simdjson first; scalar only */
        for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
            struct slu_record r;
            parse(p, t[i].rec, strlen(t[i].rec), &r);
            if (r.reject != t[i].reject || r.off_byte != t[i].off)
                fail_msg("%s: %s at %lld", t[i].rec, slu_reject_name(r.reject),
                         (long long)r.off_byte);
        }
        slu_record_parser_free(p);
    }
}

static void expect(struct slu_record_parser *p, const char *rec, const char *text,
                   size_t text_len, const char *id)
{
    struct slu_record r;
    parse(p, rec, strlen(rec), &r);
    assert_int_equal(r.reject, SLU_REJECT_NONE);
    assert_int_equal(r.text_len, text_len);
    assert_memory_equal(r.text, text, text_len);
    assert_int_equal(r.id_len, strlen(id));
    assert_memory_equal(r.id, id, strlen(id));
    assert_true(r.domain_len == 1 && r.domain[0] == 'd');
}

static void values(void **state)
{
    (void)state;
    for (size_t dom = 0; dom < 2; dom++) {
        struct slu_record_parser *p = parser(dom, NULL);
        expect(p, "{" T "," I "," D "}", "t", 1, "i");
        expect(p, "{\"text\":\"\"," I "," D "}", "", 0, "i");
        expect(p, "{\"text\":\"a\\u0000b\"," I "," D "}", "a\0b", 3, "i");
        expect(p, "{\"text\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"," I "," D "}",
               "\"\\/\b\f\n\r\t", 8, "i");
        expect(p, "{\"text\":\"\\u00e9\\u4e2d\\uD83D\\uDE00z\"," I "," D "}",
               "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80z", 10, "i");
        expect(p, "{" T "," I "," D ",\"text\":\"second\"}", "second", 6, "i");
        expect(p, "{\"te\\u0078t\":\"k\"," I "," D "}", "k", 1, "i");
        expect(p, "{\"text\":0," I "," D "," T "}", "t", 1, "i");
        expect(p, "{" T ",\"id\":17," D "}", "t", 1, "17");
        expect(p, "{" T ",\"id\":-0," D "}", "t", 1, "0");
        expect(p, "{" T ",\"id\":-9223372036854775808," D "}", "t", 1,
               "-9223372036854775808");
        expect(p, "{" T ",\"id\":18446744073709551616," D "}", "t", 1,
               "18446744073709551616");
        expect(p, "{" T ",\"id\":\"\\u00e9\"," D "}", "t", 1, "\xc3\xa9");
        expect(p, "{" T ",\"id\":true," D "}", "t", 1, "true");
        expect(p, "{" T ",\"id\":2.50," D "}", "t", 1, "2.5");
        expect(p, "{" T ",\"id\":1e3," D "}", "t", 1, "1000");
        expect(p, "{" T ",\"id\":-0.0," D "}", "t", 1, "-0");
        expect(p, "{" T ",\"id\":1E-7," D "}", "t", 1, "1e-7");
        slu_record_parser_free(p);
    }
}

/* The record's fields, as "text|id|domain|score", or the reason and field of its
 * rejection. */
static const char *fields_of(struct slu_record_parser *p, const char *rec)
{
    static char out[200];
    struct slu_record r;
    parse(p, rec, strlen(rec), &r);
    if (r.reject)
        snprintf(out, sizeof out, "%s %d", slu_reject_name(r.reject), (int)r.which);
    else
        snprintf(out, sizeof out, "%.*s|%.*s|%.*s|%g %x", (int)r.text_len, r.text,
                 (int)r.id_len, r.id ? r.id : "", (int)r.domain_len,
                 r.domain ? r.domain : "", isnan(r.score) ? 0 : r.score, r.lacks);
    return out;
}

static void dotted(void **state)
{
    static const struct {
        const char *rec, *want;
    } t[] = {
        {"{\"t\":\"x\",\"m\":{\"id\":7,\"d\":{\"n\":\"web\"},\"s\":0.5}}",
         "x|7|web|0.5 0"},
        {"{\"m\":{\"d\":{\"z\":[{\"n\":1}],\"n\":true},\"id\":\"\"},\"t\":\"x\"}",
         "x||true|0 8"},
        /* a key with dots wins, wherever it is */
        {"{\"t\":\"x\",\"m.id\":1,\"m\":{\"id\":2,\"d.n\":\"a\",\"d\":{\"n\":\"b\"}}}",
         "x|1|a|0 8"},
        {"{\"t\":\"x\",\"m\":{\"id\":2,\"d\":{\"n\":\"b\"},\"d.n\":\"a\"},\"m.id\":1}",
         "x|1|a|0 8"},
        {"{\"t\":\"x\",\"m.d.n\":\"c\",\"m\":{\"id\":2,\"d.n\":\"a\"},\"m.s\":3}",
         "x|2|c|3 0"},
        /* of equal keys the last */
        {"{\"t\":\"x\",\"m\":{\"id\":1,\"d\":{\"n\":\"b\"}},\"m\":{\"id\":2}}",
         "x|2||0 c"},
        {"{\"t\":\"x\",\"m\":{\"id\":1},\"m\":5}", "missing-field 1"},
        {"{\"t\":\"x\",\"m\":{\"id\":1,\"id\":3}}", "x|3||0 c"},
        {"{\"t\":\"x\",\"m\":{\"d\":{\"n\":1},\"id\":3,\"d\":{\"n\":null}}}",
         "x|3||0 c"},
        {"{\"t\":\"x\",\"m\":{\"d\":{\"n\":1},\"id\":3,\"d\":{}}}", "x|3||0 c"},
        /* no objects on the way */
        {"{\"t\":\"x\",\"m\":[{\"id\":1}]}", "missing-field 1"},
        {"{\"t\":\"x\",\"q\":{\"m\":{\"id\":1}}}", "missing-field 1"},
        {"{\"t\":\"x\",\"m\":\"id\",\"id\":1}", "missing-field 1"},
        {"[{\"t\":\"x\",\"m\":{\"id\":1}}]", "not-an-object 0"},
        {"{\"t\":null,\"m\":{\"id\":1}}", "missing-field 0"},
        {"{\"t\":1,\"m\":{\"id\":1}}", "not-a-string 0"},
        {"{\"t\":\"x\",\"m\":{\"id\":{}}}", "not-a-string 1"},
        {"{\"t\":\"x\",\"m\":{\"id\":1,\"d\":{\"n\":{}}}}", "not-a-string 2"},
        {"{\"t\":\"x\",\"\\u006d\":{\"i\\u0064\":1}}", "x|1||0 c"},
    };
    struct slu_record_cfg cfg = {.name = {"t", "m.id", "m.d.n", "m.s"},
                                 .optional =
                                     1U << SLU_FIELD_SCORE | 1U << SLU_FIELD_DOMAIN,
                                 .null_is_missing = true};
    (void)state;
    for (size_t dom = 0; dom < 2; dom++) {
        struct slu_err err = SLU_ERR_INIT;
        struct slu_record_parser *p;
        cfg.dom_byte = dom;
        assert_int_equal(slu_record_parser_new(&p, &cfg, &err), SLU_OK);
        for (size_t i = 0; i < sizeof t / sizeof *t; i++)
            if (strcmp(fields_of(p, t[i].rec), t[i].want))
                fail_msg("%zu: %s: %s", dom, t[i].rec, fields_of(p, t[i].rec));
        slu_record_parser_free(p);
    }
}

static void nesting(void **state)
{
    size_t cap = 2 * SLU_JSON_MAX_DEPTH + 200;
    uint8_t *rec = malloc(cap);
    (void)state;
    assert_non_null(rec);
    for (size_t extra = 0; extra < 2; extra++) {
        static const char head[] = "{" T "," I "," D ",\"m\":";
        size_t n = strlen(head), depth = SLU_JSON_MAX_DEPTH - 1 + extra;
        struct slu_record_parser *p = parser(cap, NULL);
        struct slu_err err = SLU_ERR_INIT;
        struct slu_record r;
        memset(rec, 0, cap);
        memcpy(rec, head, n);
        memset(rec + n, '[', depth);
        memset(rec + n + depth, ']', depth);
        rec[n + 2 * depth] = '}';
        assert_int_equal(slu_record_parse(p, rec, n + 2 * depth + 1, &r, &err), SLU_OK);
        assert_int_equal(r.reject, extra ? SLU_REJECT_TOO_DEEP : SLU_REJECT_NONE);
        slu_record_parser_free(p);
    }
    free(rec);
}

static uint64_t draw(uint64_t *x)
{
    *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
    return *x;
}

/* Writes a record whose text spans several blocks of 64 bytes, with escapes anywhere.
 * */
static size_t long_record(char *out, uint64_t *x)
{
    static const char *const part[] = {
        "\\\\",    "\\n",    "\\\"", "\\u00e9", "\\/", "\\ud83d\\ude00", "\xc3\xa9",
        "\\u4E2d", "\\b\\f", "\\r",  "\\t",     " ",   "abcdef"};
    enum { PARTS = sizeof part / sizeof *part };
    const size_t kinds = 1 + draw(x) % 90; /* of which some are parts */
    size_t n = (size_t)sprintf(out, "{" I ", \"n\" : -17,\"m\":%s,\"text\": \"",
                               draw(x) % 2 ? "true" : "[1.5]");

    for (size_t i = draw(x) % 90; i > 0; i--) {
        const size_t which = draw(x) % kinds;
        n += (size_t)sprintf(out + n, "%s", which < PARTS ? part[which] : "x");
    }
    return n + (size_t)sprintf(out + n, "\"," D "}");
}

/* Random edits of sound records: with and without the quick parsers, the answer is the
 * same. */
static void halves_agree(void **state)
{
    static const char *const seed[] = {
        "{" T "," I "," D "}",
        "{\"text\":\"a\\ud83d\\ude00b\\u0000\",\"id\":12," D
        ",\"m\":{\"k\":[1,2.5e3,true]}}",
        "{\"m\":[[],{},[{\"text\":null}]]," T ",\"id\":-3," D
        ",\"text\":\"\xc3\xa9\xe4\xb8\xad\"}",
    };
    static const char edit[] = "{}[]\",:\\u0d8cDtfn-1.e \n\x80\xc3\xf0\x01/";
    static const char *const level[] = {NULL, "avx512", "avx2", "portable"};
    struct slu_record_parser *quicks[4], *scalar = parser(1, NULL);
    uint64_t x = 88172645463325252;
    (void)state;
    for (int i = 0; i < 4; i++)
        quicks[i] = parser(0, level[i]);
    for (int round = 0; round < 120000; round++) {
        char a[1024], text[1024], id[1024];
        struct slu_record_parser *quick = quicks[round / 8 % 4];
        struct slu_record r, q;
        const char *s = seed[round % 3];
        size_t n = strlen(s);
        memcpy(a, s, n);
        if (round % 8 > 3)
            n = long_record(a, &x);
        for (int e = round % 4 - (round % 8 > 5); e >= 0; e--) {
            size_t at = draw(&x) % n;
            if ((x >> 32) % 8 == 0)
                n = at > 1 ? at : n; /* cut */
            else
                a[at] = edit[(x >> 40) % (sizeof edit - 1)];
        }
        parse(quick, a, n, &q);
        if (q.reject == SLU_REJECT_NONE) {
            memcpy(text, q.text, q.text_len);
            memcpy(id, q.id, q.id_len);
        }
        parse(scalar, a, n, &r);
        assert_int_equal(q.reject, r.reject);
        assert_int_equal(q.off_byte, r.off_byte);
        if (q.reject == SLU_REJECT_NONE) {
            assert_int_equal(q.text_len, r.text_len);
            assert_memory_equal(text, r.text, r.text_len);
            assert_int_equal(q.id_len, r.id_len);
            assert_memory_equal(id, r.id, r.id_len);
        }
    }
    for (int i = 0; i < 4; i++)
        slu_record_parser_free(quicks[i]);
    slu_record_parser_free(scalar);
}

/* Random nested records: simdjson and the scalar parser find the same fields. */
static void dotted_halves_agree(void **state)
{
    static const char *const key[] = {"m", "id", "d", "n", "m.id", "d.n", "s"};
    static const char *const value[] = {"1", "2.5", "null", "\"y\"", "[1]", "{}"};
    struct slu_record_cfg cfg = {.name = {"t", "m.id", "m.d.n", "m.s"},
                                 .optional =
                                     1U << SLU_FIELD_SCORE | 1U << SLU_FIELD_DOMAIN};
    struct slu_record_parser *p[2];
    struct slu_err err = SLU_ERR_INIT;
    uint64_t x = 7;
    int n_good = 0;
    (void)state;
    for (size_t dom = 0; dom < 2; dom++) {
        cfg.dom_byte = dom;
        assert_int_equal(slu_record_parser_new(&p[dom], &cfg, &err), SLU_OK);
    }
    for (int round = 0; round < 20000; round++) {
        char rec[2000], got[200];
        size_t n = (size_t)sprintf(rec, "{\"t\":\"x\"");
        int open = 1;
        for (uint64_t k = draw(&x) % 12; k > 0; k--) {
            const bool deeper = draw(&x) % 2;
            n += (size_t)sprintf(rec + n, "%s\"%s\":%s", rec[n - 1] == '{' ? "" : ",",
                                 key[draw(&x) % 7], deeper ? "{" : value[draw(&x) % 6]);
            open += deeper;
            for (; open > 1 && draw(&x) % 3 == 0; open--)
                n += (size_t)sprintf(rec + n, "}");
        }
        for (; open > 0; open--)
            n += (size_t)sprintf(rec + n, "}");
        strcpy(got, fields_of(p[0], rec));
        n_good += strchr(got, '|') != NULL;
        if (strcmp(got, fields_of(p[1], rec)))
            fail_msg("%s: %s, %s", rec, got, fields_of(p[1], rec));
    }
    assert_true(n_good > 1000);
    slu_record_parser_free(p[0]);
    slu_record_parser_free(p[1]);
}

/* Fields of any type, by all parsers. */
static void any_type(void **state)
{
    static const char *const names[] = {"a", "text", "b", "none", "o.x"};
    static const struct {
        const char *rec;
        struct slu_value a, b;
        enum slu_value_type x;
    } cases[] = {
        {"{\"a\":1.5,\"text\":\"t\",\"b\":true}",
         {.type = SLU_VALUE_NUMBER, .number = 1.5},
         {.type = SLU_VALUE_BOOL, .boolean = true},
         SLU_VALUE_NULL},
        {"{\"b\":null,\"a\":\"x\\u00e9\\n\",\"text\":\"t\"}",
         {.type = SLU_VALUE_STRING, .string = "x\xc3\xa9\n", .len = 4},
         {.type = SLU_VALUE_NULL},
         SLU_VALUE_NULL},
        {"{ \"a\" : -12 , \"text\":\"t\", \"b\":\"\", \"a\" : 1e3 }",
         {.type = SLU_VALUE_NUMBER, .number = 1000},
         {.type = SLU_VALUE_STRING},
         SLU_VALUE_NULL},
        {"{\"a\":[1],\"text\":\"t\",\"b\":{},\"o\":{\"x\":false}}",
         {.type = SLU_VALUE_LIST},
         {.type = SLU_VALUE_LIST},
         SLU_VALUE_BOOL},
        {"{\"a\":1e999,\"text\":\"t\",\"b\":18446744073709551616}",
         {.type = SLU_VALUE_NUMBER, .number = INFINITY},
         {.type = SLU_VALUE_NUMBER, .number = 18446744073709551616.0},
         SLU_VALUE_NULL},
        {"{\"a\":0."
         "1000000000000000055511151231257827021181583404541015625000000000000000,"
         "\"text\":\"t\",\"b\":-0.0}",
         {.type = SLU_VALUE_NUMBER, .number = 0.1},
         {.type = SLU_VALUE_NUMBER},
         SLU_VALUE_NULL},
    };
    static const char *const bad[] = {"1.", "1.e3", "01",    "1e", "1e+", "+1",
                                      ".5", "-",    "1.5.5", "1x", "tru", "nul"};
    static const char *const levels[] = {NULL, "avx2", "none"};
    (void)state;
    for (unsigned way = 0; way < 8; way++) {
        struct slu_record_cfg cfg = {.name = {"text"},
                                     .any = names,
                                     .n_any = way < 4 ? 4 : 5,
                                     .dom_byte = way % 4 == 3,
                                     .simd = levels[way % 4 % 3]};
        struct slu_record_parser *p;
        struct slu_record r;
        char rec[256 + SLU_JSON_PADDING] = "";
        assert_int_equal(slu_record_parser_new(&p, &cfg, NULL), SLU_OK);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const struct slu_value *want[] = {&cases[i].a, &cases[i].b};
            strcpy(rec, cases[i].rec);
            assert_int_equal(slu_record_parse(p, (uint8_t *)rec, strlen(rec), &r, NULL),
                             SLU_OK);
            assert_int_equal(r.reject, SLU_REJECT_NONE);
            for (unsigned k = 0; k < 2; k++) {
                const struct slu_value *v = &r.any[2 * k];
                assert_int_equal(v->type, want[k]->type);
                assert_int_equal(v->len, want[k]->len);
                assert_true(!v->len || !memcmp(v->string, want[k]->string, v->len));
                assert_true(v->number == want[k]->number);
                assert_int_equal(v->boolean, want[k]->boolean);
            }
            assert_int_equal(r.any[1].type, SLU_VALUE_STRING);
            assert_int_equal(r.any[3].type, SLU_VALUE_NULL);
            assert_true(way < 4 || r.any[4].type == cases[i].x);
        }
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            snprintf(rec, sizeof rec, "{\"a\":%s,\"text\":\"t\"}", bad[i]);
            assert_int_equal(slu_record_parse(p, (uint8_t *)rec, strlen(rec), &r, NULL),
                             SLU_OK);
            assert_int_equal(r.reject, SLU_REJECT_INVALID_JSON);
        }
        slu_record_parser_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree),         cmocka_unit_test(tree_faults),
        cmocka_unit_test(no_place),     cmocka_unit_test(rejects),
        cmocka_unit_test(values),       cmocka_unit_test(nesting),
        cmocka_unit_test(dotted),       cmocka_unit_test(dotted_halves_agree),
        cmocka_unit_test(halves_agree), cmocka_unit_test(any_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
