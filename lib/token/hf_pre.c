/* hf_pre.c - the pre_tokenizer of a tokenizer.json. */
#include "lib/token/hf.h"

#include <string.h>

/* \w+|[^\w\s]+ in Rust, where the joiners belong to words and Latin-1's numbers do not,
 * as in Oniguruma's classes. */
#define RUST_WORDS "[\\w\\u200c\\u200d]+|[^\\w\\u200c\\u200d\\s]+"

struct read {
    struct tok_pre *pre;
    bool byte_level; /* was read; must be the last, as a later one sees its alphabet */
    unsigned depth;
};

static bool flag_or(struct slu_json_value v, const char *key, bool otherwise)
{
    struct slu_json_value x = SLU_JSON_NONE;
    bool b = otherwise;

    if (slu_json_get(v, key, &x))
        slu_json_bool(x, &b);
    return b;
}

static int read_byte_level(struct read *r, struct slu_json_value v, struct slu_err *err)
{
    int rc;

    r->byte_level = true;
    if (flag_or(v, "add_prefix_space", true) && (rc = pre_add_prefix(r->pre, err)))
        return rc;
    if (!flag_or(v, "use_regex", true))
        return SLU_OK;
    return pre_add_scan(r->pre, pre_scan_by_name("gpt2"), err);
}

/* Adds a split at a plain string, as a regular expression. */
static int add_string(struct read *r, const char *s, size_t n, enum pre_kind kind,
                      bool invert, struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = SLU_OK;

    for (size_t i = 0; i < n && !rc; i++) {
        bool special = strchr("\\^$.[]|()?*+{}-/#&~!<>=:,'\"", s[i]) && s[i];
        if (special)
            rc = slu_buf_append(&b, "\\", 1, err);
        if (!rc)
            rc = slu_buf_append(&b, s + i, 1, err);
    }
    if (!rc)
        rc = pre_add_regex(r->pre, (const char *)b.data, b.len, kind, invert, err);
    slu_buf_release(&b);
    return rc;
}

/* Reads the behavior of a Split; clears *invert if it has no effect. */
static int read_behavior(struct slu_json_value v, const char *otherwise,
                         enum pre_kind *kind, bool *invert, struct slu_err *err)
{
    static const struct {
        const char *name;
        enum pre_kind kind;
    } KINDS[] = {{"Isolated", PRE_REGEX},
                 {"Removed", PRE_DROP},
                 {"MergedWithPrevious", PRE_LEFT},
                 {"MergedWithNext", PRE_RIGHT},
                 {"Contiguous", PRE_RUNS}};
    struct slu_json_value x = SLU_JSON_NONE;
    const char *s = otherwise;
    size_t n = s ? strlen(s) : 0;

    if (slu_json_get(v, "behavior", &x))
        slu_json_string(x, &s, &n);
    for (size_t i = 0; s && i < sizeof KINDS / sizeof *KINDS; i++) {
        if (strlen(KINDS[i].name) != n || memcmp(KINDS[i].name, s, n))
            continue;
        *kind = KINDS[i].kind;
        if (*kind == PRE_DROP && *invert)
            *kind = PRE_KEEP;
        if (*kind == PRE_REGEX || *kind == PRE_KEEP)
            *invert = false;
        return SLU_OK;
    }
    return slu_fail(err, SLU_E_UNSUPPORTED,
                    "a Split with behavior \"%.*s\" is not supported", (int)n,
                    s ? s : "");
}

static int read_split(struct read *r, struct slu_json_value v, struct slu_err *err)
{
    struct slu_json_value pattern = SLU_JSON_NONE, x = SLU_JSON_NONE;
    const char *s = "?";
    size_t n = 1;
    bool invert = flag_or(v, "invert", false);
    enum pre_kind kind;
    int rc;

    if (!slu_json_get(v, "pattern", &pattern) || !slu_json_get(v, "behavior", &x))
        return slu_fail(err, SLU_E_FORMAT, "a Split without pattern or behavior");
    if ((rc = read_behavior(v, NULL, &kind, &invert, err)))
        return rc;
    if (slu_json_get(pattern, "Regex", &x) && slu_json_string(x, &s, &n))
        return pre_add_regex(r->pre, s, n, kind, invert, err);
    if (slu_json_get(pattern, "String", &x) && slu_json_string(x, &s, &n))
        return add_string(r, s, n, kind, invert, err);
    return slu_fail(err, SLU_E_FORMAT, "a Split without Regex or String");
}

static int read_one(struct read *r, struct slu_json_value v, struct slu_err *err)
{
    struct slu_json_value type = SLU_JSON_NONE, x = SLU_JSON_NONE;
    struct slu_json_iter it;
    const char *s = "?";
    size_t n = 1;
    int rc = SLU_OK;

    if (!slu_json_get(v, "type", &type))
        return slu_fail(err, SLU_E_FORMAT, "a pre-tokenizer without type");
    slu_json_string(type, &s, &n);
    if (r->byte_level)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "the pre-tokenizer \"%.*s\" after ByteLevel is not supported",
                        (int)n, s);
    if (slu_json_is(type, "ByteLevel"))
        return read_byte_level(r, v, err);
    if (slu_json_is(type, "Split"))
        return read_split(r, v, err);
    if (slu_json_is(type, "Digits")) {
        const char *regex =
            flag_or(v, "individual_digits", false) ? PRE_DIGIT : PRE_DIGIT "+";
        return pre_add_regex(r->pre, regex, strlen(regex), PRE_REGEX, false, err);
    }
    if (slu_json_is(type, "WhitespaceSplit"))
        return pre_add_regex(r->pre, "\\s", 2, PRE_DROP, false, err);
    if (slu_json_is(type, "Whitespace"))
        return pre_add_regex(r->pre, RUST_WORDS, strlen(RUST_WORDS), PRE_KEEP, false,
                             err);
    if (slu_json_is(type, "Sequence") && slu_json_get(v, "pretokenizers", &x) &&
        r->depth < 8) {
        r->depth++;
        for (slu_json_iter_init(&it, x); !rc && slu_json_next(&it);)
            rc = read_one(r, it.value, err);
        r->depth--;
        return rc;
    }
    return slu_fail(err, SLU_E_UNSUPPORTED,
                    "the pre-tokenizer \"%.*s\" is not supported", (int)n, s);
}

int hf_read_pre(struct tok_pre *pre, struct slu_json_value v, struct slu_err *err)
{
    struct read r = {.pre = pre};
    int rc = read_one(&r, v, err);

    if (!rc && !r.byte_level)
        return slu_fail(
            err, SLU_E_UNSUPPORTED,
            "the pre-tokenizer ByteLevel is missing, so this is not byte-level BPE");
    return rc ? rc : pre_finish(r.pre, err);
}
