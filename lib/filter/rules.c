/* rules.c - rules.h: thresholds, their files, and what the families share. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/number.h"
#include "lib/filter/rules_private.h"

enum { FILE_BYTE = 1 << 20, WORD_BYTE = 63 };
enum kind { NUMBER, FLAG };

static const struct {
    const char *name;
    enum rule_family family;
    enum kind kind;
    double value;
} table[SLU_RULE_N] = {
    [SLU_RULE_MIN_DOC_WORDS] = {"gopher-quality.min_doc_words", GOPHER_QUALITY, 0, 50},
    [SLU_RULE_MAX_DOC_WORDS] = {"gopher-quality.max_doc_words", GOPHER_QUALITY, 0,
                                100000},
    [SLU_RULE_MIN_AVG_WORD_LENGTH] = {"gopher-quality.min_avg_word_length",
                                      GOPHER_QUALITY, 0, 3},
    [SLU_RULE_MAX_AVG_WORD_LENGTH] = {"gopher-quality.max_avg_word_length",
                                      GOPHER_QUALITY, 0, 10},
    [SLU_RULE_MAX_HASH_WORD_RATIO] = {"gopher-quality.max_hash_word_ratio",
                                      GOPHER_QUALITY, 0, 0.1},
    [SLU_RULE_MAX_ELLIPSIS_WORD_RATIO] = {"gopher-quality.max_ellipsis_word_ratio",
                                          GOPHER_QUALITY, 0, 0.1},
    [SLU_RULE_MAX_BULLET_LINES_RATIO] = {"gopher-quality.max_bullet_lines_ratio",
                                         GOPHER_QUALITY, 0, 0.9},
    [SLU_RULE_MAX_ELLIPSIS_LINES_RATIO] = {"gopher-quality.max_ellipsis_lines_ratio",
                                           GOPHER_QUALITY, 0, 0.3},
    [SLU_RULE_MIN_ALPHA_WORDS_RATIO] = {"gopher-quality.min_alpha_words_ratio",
                                        GOPHER_QUALITY, 0, 0.8},
    [SLU_RULE_MIN_STOP_WORDS] = {"gopher-quality.min_stop_words", GOPHER_QUALITY, 0, 2},
    [SLU_RULE_DUP_PARA_FRAC] = {"gopher-repetition.dup_para_frac", GOPHER_REPETITION, 0,
                                0.3},
    [SLU_RULE_DUP_PARA_CHAR_FRAC] = {"gopher-repetition.dup_para_char_frac",
                                     GOPHER_REPETITION, 0, 0.2},
    [SLU_RULE_DUP_LINE_FRAC] = {"gopher-repetition.dup_line_frac", GOPHER_REPETITION, 0,
                                0.3},
    [SLU_RULE_DUP_LINE_CHAR_FRAC] = {"gopher-repetition.dup_line_char_frac",
                                     GOPHER_REPETITION, 0, 0.2},
    [SLU_RULE_TOP_2_GRAM] = {"gopher-repetition.top_2_gram", GOPHER_REPETITION, 0, 0.2},
    [SLU_RULE_TOP_3_GRAM] = {"gopher-repetition.top_3_gram", GOPHER_REPETITION, 0,
                             0.18},
    [SLU_RULE_TOP_4_GRAM] = {"gopher-repetition.top_4_gram", GOPHER_REPETITION, 0,
                             0.16},
    [SLU_RULE_DUP_5_GRAM] = {"gopher-repetition.dup_5_gram", GOPHER_REPETITION, 0,
                             0.15},
    [SLU_RULE_DUP_6_GRAM] = {"gopher-repetition.dup_6_gram", GOPHER_REPETITION, 0,
                             0.14},
    [SLU_RULE_DUP_7_GRAM] = {"gopher-repetition.dup_7_gram", GOPHER_REPETITION, 0,
                             0.13},
    [SLU_RULE_DUP_8_GRAM] = {"gopher-repetition.dup_8_gram", GOPHER_REPETITION, 0,
                             0.12},
    [SLU_RULE_DUP_9_GRAM] = {"gopher-repetition.dup_9_gram", GOPHER_REPETITION, 0,
                             0.11},
    [SLU_RULE_DUP_10_GRAM] = {"gopher-repetition.dup_10_gram", GOPHER_REPETITION, 0,
                              0.10},
    [SLU_RULE_C4_MAX_WORD_LENGTH] = {"c4.max_word_length", C4, 0, 1000},
    [SLU_RULE_C4_CITATIONS] = {"c4.remove_citations", C4, FLAG, 1},
    [SLU_RULE_C4_TERMINAL_PUNCT] = {"c4.no_terminal_punct", C4, FLAG, 1},
    [SLU_RULE_C4_MIN_WORDS_PER_LINE] = {"c4.min_words_per_line", C4, 0, 3},
    [SLU_RULE_C4_LOREM_IPSUM] = {"c4.lorem_ipsum", C4, FLAG, 1},
    [SLU_RULE_C4_JAVASCRIPT] = {"c4.javascript", C4, FLAG, 1},
    [SLU_RULE_C4_CURLY_BRACKET] = {"c4.curly_bracket", C4, FLAG, 1},
    [SLU_RULE_C4_POLICY] = {"c4.policy", C4, FLAG, 1},
    [SLU_RULE_C4_MIN_NUM_SENTENCES] = {"c4.min_num_sentences", C4, 0, 5},
    [SLU_RULE_LINE_PUNCT_RATIO] = {"fineweb.line_punct_ratio", FINEWEB, 0, 0.12},
    [SLU_RULE_LINE_PUNCT_EXCLUDE_ZERO] = {"fineweb.line_punct_exclude_zero", FINEWEB,
                                          FLAG, NAN},
    [SLU_RULE_SHORT_LINE_RATIO] = {"fineweb.short_line_ratio", FINEWEB, 0, 0.67},
    [SLU_RULE_SHORT_LINE_LENGTH] = {"fineweb.short_line_length", FINEWEB, 0, 30},
    [SLU_RULE_CHAR_DUPLICATES_RATIO] = {"fineweb.char_duplicates_ratio", FINEWEB, 0,
                                        0.01},
    [SLU_RULE_NEW_LINE_RATIO] = {"fineweb.new_line_ratio", FINEWEB, 0, 0.3},
};

static const char *const families[FAMILIES] = {
    [GOPHER_QUALITY] = "gopher-quality",
    [GOPHER_REPETITION] = "gopher-repetition",
    [C4] = "c4",
    [FINEWEB] = "fineweb",
};

static const char stop_name[] = "gopher-quality.stop_words",
                  stop_words[] = "the be to of and that have with";

const char *slu_rule_name(enum slu_rule r)
{
    return (unsigned)r < SLU_RULE_N ? table[r].name : "unknown";
}

/* ---- stop words ---- */

static void free_stop(struct rules_stop *s)
{
    for (unsigned i = 0; i < s->n; i++)
        free(s->word[i]);
    *s = (struct rules_stop){.n = 0};
}

static int set_stop(struct rules_stop *s, const char *p, size_t n, struct slu_err *err)
{
    free_stop(s);
    for (size_t i = 0, len; i < n; i += len) {
        while (i < n && (p[i] == ' ' || p[i] == '\t'))
            i++;
        for (len = 0; i + len < n && p[i + len] != ' ' && p[i + len] != '\t';)
            len++;
        if (!len)
            break;
        if (s->n == STOP_WORDS || len > WORD_BYTE)
            return slu_fail(err, SLU_E_FORMAT,
                            "expected at most %d words of at most %d bytes", STOP_WORDS,
                            WORD_BYTE);
        bool again = false;
        for (unsigned k = 0; k < s->n; k++)
            again |= s->n_byte[k] == len && !memcmp(s->word[k], p + i, len);
        if (again)
            continue;
        s->word[s->n] = strndup(p + i, len);
        if (!s->word[s->n])
            return slu_fail_nomem(err, len);
        s->n_byte[s->n++] = (uint8_t)len;
        s->first[(uint8_t)p[i]] |= UINT64_C(1) << len;
    }
    return SLU_OK;
}

/* ---- making ---- */

int slu_rules_new(struct slu_rules **out, struct slu_err *err)
{
    struct slu_rules *r = *out = calloc(1, sizeof *r);
    if (!r)
        return slu_fail_nomem(err, sizeof *r);
    for (unsigned i = 0; i < SLU_RULE_N; i++)
        r->value[i] = table[i].value;
    int rc = set_stop(&r->stop, stop_words, strlen(stop_words), err);
    return rc ? rc : slu_buf_append(&r->text, "", 1, err);
}

void slu_rules_free(struct slu_rules *r)
{
    if (!r)
        return;
    free_stop(&r->stop);
    slu_buf_release(&r->text);
    free(r);
}

static enum rule_family family_named(const char *p, size_t n)
{
    unsigned f = 0;
    while (f < FAMILIES && (strlen(families[f]) != n || memcmp(families[f], p, n) != 0))
        f++;
    return (enum rule_family)f;
}

static bool has_family(const struct slu_rules *r, enum rule_family f)
{
    for (unsigned i = 0; i < r->n_family; i++)
        if (r->family[i] == f)
            return true;
    return false;
}

static void add_family(struct slu_rules *r, enum rule_family f)
{
    if (!has_family(r, f))
        r->family[r->n_family++] = f;
}

/* ---- files ---- */

/* Reads "on", "off" or a number that is at least 0. */
static int read_value(enum kind kind, const char *p, size_t n, double *v,
                      struct slu_err *err)
{
    char copy[32] = "", *end = copy;
    if (n == 3 && !memcmp(p, "off", 3)) {
        *v = NAN;
        return SLU_OK;
    }
    if (kind == FLAG && n == 2 && !memcmp(p, "on", 2)) {
        *v = 1;
        return SLU_OK;
    }
    if (kind == NUMBER && n && n < sizeof copy && strchr("0123456789.", *p)) {
        memcpy(copy, p, n);
        *v = strtod(copy, &end);
    }
    if (end == copy || *end || !isfinite(*v) || strpbrk(copy, "xX"))
        return slu_fail(err, SLU_E_FORMAT, "'%.*s' is not %s", (int)(n < 40 ? n : 40),
                        p, kind == FLAG ? "on or off" : "a number from 0 on, or off");
    return SLU_OK;
}

/* Cuts white space off both ends. */
static const char *trim(const char *p, size_t *n)
{
    while (*n && memchr(" \t\r", *p, 3)) {
        p++;
        --*n;
    }
    while (*n && memchr(" \t\r", p[*n - 1], 3))
        --*n;
    return p;
}

static bool is(const char *p, size_t n, const char *name)
{
    return strlen(name) == n && !memcmp(p, name, n);
}

/* Takes "NAME = VALUE". */
static int take_value(struct slu_rules *r, const char *name, size_t n_name,
                      const char *value, size_t n_value, struct slu_err *err)
{
    unsigned i = 0;
    while (i < SLU_RULE_N && !is(name, n_name, table[i].name))
        i++;
    const bool stop = is(name, n_name, stop_name);
    if (i == SLU_RULE_N && !stop)
        return slu_fail(err, SLU_E_FORMAT, "'%.*s' is no threshold",
                        (int)(n_name < 60 ? n_name : 60), name);
    add_family(r, stop ? GOPHER_QUALITY : table[i].family);
    int rc = stop ? set_stop(&r->stop, value, n_value, err)
                  : read_value(table[i].kind, value, n_value, &r->value[i], err);
    return rc ? slu_err_at(err, "%s", stop ? stop_name : table[i].name) : SLU_OK;
}

/* Takes a line of a file. */
static int take_line(struct slu_rules *r, const char *p, size_t n, struct slu_err *err)
{
    const char *equals = memchr(p, '=', n);
    p = trim(p, &n);
    if (!n || *p == '#')
        return SLU_OK;
    if (equals) {
        const char *value = equals + 1;
        size_t n_name = (size_t)(equals - p), n_value = n - n_name - 1;
        p = trim(p, &n_name);
        value = trim(value, &n_value);
        return take_value(r, p, n_name, value, n_value, err);
    }
    const enum rule_family f = family_named(p, n);
    if (f == FAMILIES)
        return slu_fail(err, SLU_E_FORMAT,
                        "'%.*s' is neither a family nor FAMILY.NAME = VALUE",
                        (int)(n < 60 ? n : 60), p);
    add_family(r, f);
    return SLU_OK;
}

static int take_file(struct slu_rules *r, int fd, struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    uint64_t line = 0;
    int rc = slu_buf_reserve(&b, FILE_BYTE, err);
    if (!rc)
        rc = slu_read_full(fd, b.data, FILE_BYTE, &b.len, err);
    if (!rc && b.len == FILE_BYTE)
        rc = slu_fail(err, SLU_E_FORMAT, "has more than %d bytes; expected a few lines",
                      FILE_BYTE - 1);
    for (size_t i = 0; i < b.len && !rc;) {
        const char *p = (const char *)b.data + i;
        const char *nl = memchr(p, '\n', b.len - i);
        const size_t n = nl ? (size_t)(nl - p) : b.len - i;
        i += n + 1;
        line++;
        rc = memchr(p, 0, n) ? slu_fail(err, SLU_E_FORMAT, "has a NUL in it")
                             : take_line(r, p, n, err);
        if (rc)
            rc = slu_err_at(err, "line %llu", (unsigned long long)line);
    }
    slu_buf_release(&b);
    return rc;
}

static int add_item(struct slu_rules *r, const char *p, size_t n, struct slu_err *err)
{
    const enum rule_family f = family_named(p, n);
    if (f != FAMILIES && has_family(r, f))
        return slu_fail(err, SLU_E_USAGE, "%s comes twice", families[f]);
    if (f != FAMILIES) {
        add_family(r, f);
        return SLU_OK;
    }
    char *path = strndup(p, n);
    if (!path)
        return slu_fail_nomem(err, n);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = SLU_OK;
    if (fd < 0 && errno == ENOENT)
        rc = slu_fail(err, SLU_E_USAGE,
                      "'%s' is no file and no family of rules (gopher-quality, "
                      "gopher-repetition, c4, fineweb)",
                      path);
    else if (fd < 0)
        rc = slu_fail_errno(err, "%s", path);
    else if ((rc = take_file(r, fd, err)) != SLU_OK)
        rc = slu_err_at(err, "%s", path);
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

/* ---- the text of a set ---- */

static int put_value(struct slu_buf *b, enum slu_rule i, double v, const char *equals,
                     struct slu_err *err)
{
    char number[SLU_NUMBER_BYTE] = "on";
    if (isnan(v))
        memcpy(number, "off", 4);
    else if (table[i].kind == NUMBER)
        slu_number_put(v, number);
    return slu_buf_printf(b, err, "%s%s%s", table[i].name, equals, number);
}

static int put_stop(struct slu_buf *b, const struct rules_stop *s, const char *equals,
                    struct slu_err *err)
{
    int rc = slu_buf_printf(b, err, "%s%s", stop_name, equals);
    for (unsigned i = 0; i < s->n && !rc; i++)
        rc = slu_buf_printf(b, err, "%s%s", i ? " " : "", s->word[i]);
    return rc;
}

/* Writes the text anew. */
static int describe(struct slu_rules *r, struct slu_err *err)
{
    struct slu_buf *b = &r->text, stop = SLU_BUF_INIT;
    int rc = SLU_OK;
    slu_buf_clear(b);
    for (unsigned i = 0; i < r->n_family && !rc; i++)
        rc = slu_buf_printf(b, err, "%s%s", i ? "," : "", families[r->family[i]]);
    for (unsigned i = 0; i < SLU_RULE_N && !rc; i++) {
        const double v = r->value[i], d = table[i].value;
        if (v == d || (isnan(v) && isnan(d)))
            continue;
        rc = slu_buf_append(b, " ", 1, err);
        if (!rc)
            rc = put_value(b, (enum slu_rule)i, v, "=", err);
    }
    if (!rc)
        rc = put_stop(&stop, &r->stop, "=", err);
    if (!rc && strcmp((const char *)stop.data + strlen(stop_name) + 1, stop_words) != 0)
        rc = slu_buf_printf(b, err, " %s", (const char *)stop.data);
    slu_buf_release(&stop);
    return rc ? rc : slu_buf_append(b, "", 1, err);
}

int slu_rules_add(struct slu_rules *r, const char *list, struct slu_err *err)
{
    int rc = SLU_OK;
    for (const char *p = list, *end; !rc; p = end + 1) {
        end = p + strcspn(p, ",");
        rc = add_item(r, p, (size_t)(end - p), err);
        if (!*end)
            break;
    }
    return rc ? rc : describe(r, err);
}

bool slu_rules_is_family(const char *name)
{
    return family_named(name, strlen(name)) != FAMILIES;
}

const char *slu_rules_text(const struct slu_rules *r)
{
    return (const char *)r->text.data;
}

bool slu_rules_grow(const struct slu_rules *r)
{
    return has_family(r, GOPHER_REPETITION) || has_family(r, FINEWEB);
}

int slu_rules_defaults(struct slu_buf *out, struct slu_err *err)
{
    struct slu_rules *r;
    int rc = slu_rules_new(&r, err);
    for (unsigned f = 0; f < FAMILIES && !rc; f++) {
        rc = slu_buf_printf(out, err, "%s%s\n", f ? "\n" : "", families[f]);
        for (unsigned i = 0; i < SLU_RULE_N && !rc; i++)
            if (table[i].family == f) {
                rc = put_value(out, (enum slu_rule)i, table[i].value, " = ", err);
                if (!rc)
                    rc = slu_buf_append(out, "\n", 1, err);
            }
        if (!rc && f == GOPHER_QUALITY) {
            rc = put_stop(out, &r->stop, " = ", err);
            if (!rc)
                rc = slu_buf_append(out, "\n", 1, err);
        }
    }
    slu_rules_free(r);
    return rc;
}
