/* hf_norm.c - the normalizer of a tokenizer.json. */
#include "lib/token/hf.h"

#include <string.h>

#include "lib/token/norm.h"

struct read {
    struct tok_norm *norm;
    /* The normalizer ByteLevel was read; it must be the last one, since a later one
     * would see its alphabet. */
    bool *byte_level;
    unsigned depth;
};

/* Reads the string under key; the error names the normalizer that lacks it. */
static int string_of(struct slu_json_value v, const char *type, const char *key,
                     const char **s, size_t *n, struct slu_err *err)
{
    struct slu_json_value x = SLU_JSON_NONE;

    if (slu_json_get(v, key, &x) && slu_json_string(x, s, n))
        return SLU_OK;
    return slu_fail(err, SLU_E_FORMAT, "the normalizer \"%s\" has no \"%s\"", type,
                    key);
}

static int read_replace(struct read *r, struct slu_json_value v, struct slu_err *err)
{
    struct slu_json_value x = SLU_JSON_NONE;
    enum norm_kind kind = NORM_REPLACE;
    const char *a, *b;
    size_t n_a, n_b;
    int rc;

    if (!slu_json_get(v, "pattern", &x))
        return slu_fail(err, SLU_E_FORMAT,
                        "the normalizer \"Replace\" has no \"pattern\"");
    struct slu_json_value regex = SLU_JSON_NONE;
    if (slu_json_get(x, "Regex", &regex))
        kind = NORM_REPLACE_REGEX;
    if ((rc = string_of(x, "Replace", kind == NORM_REPLACE ? "String" : "Regex", &a,
                        &n_a, err)) ||
        (rc = string_of(v, "Replace", "content", &b, &n_b, err)))
        return rc;
    return norm_add(r->norm, kind, a, n_a, b, n_b, err);
}

static int read_strip(struct read *r, struct slu_json_value v, struct slu_err *err)
{
    static const char *const KEY[] = {"strip_left", "strip_right"};
    char sides[2];
    size_t n = 0;

    for (int k = 0; k < 2; k++) {
        struct slu_json_value x = SLU_JSON_NONE;
        bool b;
        if (!slu_json_get(v, KEY[k], &x) || !slu_json_bool(x, &b))
            return slu_fail(err, SLU_E_FORMAT, "the normalizer \"Strip\" has no \"%s\"",
                            KEY[k]);
        if (b)
            sides[n++] = KEY[k][6];
    }
    return n ? norm_add(r->norm, NORM_STRIP, sides, n, "", 0, err) : SLU_OK;
}

static int read_one(struct read *r, struct slu_json_value v, struct slu_err *err)
{
    static const struct {
        const char *name;
        enum norm_kind kind;
    } PLAIN[] = {
        {"NFC", NORM_NFC},
        {"NFD", NORM_NFD},
        {"NFKC", NORM_NFKC},
        {"NFKD", NORM_NFKD},
        {"Lowercase", NORM_LOWERCASE},
        {"StripAccents", NORM_STRIP_ACCENTS},
        {"Nmt", NORM_NMT},
    };
    struct slu_json_value type = SLU_JSON_NONE, x = SLU_JSON_NONE;
    struct slu_json_iter it;
    const char *s = "?";
    size_t n = 1;
    int rc = SLU_OK;

    if (!slu_json_get(v, "type", &type) || !slu_json_string(type, &s, &n))
        return slu_fail(err, SLU_E_FORMAT, "a normalizer without type");
    if (slu_json_is(type, "Sequence") && slu_json_get(v, "normalizers", &x) &&
        r->depth < 8) {
        r->depth++;
        for (slu_json_iter_init(&it, x); !rc && slu_json_next(&it);)
            rc = read_one(r, it.value, err);
        r->depth--;
        return rc;
    }
    if (*r->byte_level)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the normalizer \"%.*s\" after ByteLevel is not supported",
                        (int)n, s);
    for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++) {
        if (slu_json_is(type, PLAIN[i].name))
            return norm_add(r->norm, PLAIN[i].kind, "", 0, "", 0, err);
    }
    if (slu_json_is(type, "ByteLevel")) {
        *r->byte_level = true;
        return SLU_OK;
    }
    if (slu_json_is(type, "Prepend"))
        return (rc = string_of(v, "Prepend", "prepend", &s, &n, err))
                   ? rc
                   : norm_add(r->norm, NORM_PREPEND, s, n, "", 0, err);
    if (slu_json_is(type, "Replace"))
        return read_replace(r, v, err);
    if (slu_json_is(type, "Strip"))
        return read_strip(r, v, err);
    return slu_fail(err, SLU_E_UNSUPPORTED, "the normalizer \"%.*s\" is not supported",
                    (int)n, s);
}

int hf_read_norm(struct tok_norm *norm, struct slu_json_value v, bool *byte_level,
                 struct slu_err *err)
{
    struct read r = {.norm = norm, .byte_level = byte_level};

    return read_one(&r, v, err);
}
