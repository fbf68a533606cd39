/* test_expr.c - lib/filter/expr.h: the grammar, the types, and the messages. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/filter/expr.h"

/* The record: fields by name. */
static const struct {
    const char *name;
    struct slu_value v;
} record[] = {
    {"lang", {.type = SLU_VALUE_STRING, .string = "en", .len = 2}},
    {"text",
     {.type = SLU_VALUE_STRING, .string = "na\xc3\xafve caf\xc3\xa9", .len = 12}},
    {"empty", {.type = SLU_VALUE_STRING}},
    {"score", {.type = SLU_VALUE_NUMBER, .number = 2.5}},
    {"n.a-b", {.type = SLU_VALUE_NUMBER, .number = -3}},
    {"huge", {.type = SLU_VALUE_NUMBER, .number = 1e308 * 10}},
    {"yes", {.type = SLU_VALUE_BOOL, .boolean = true}},
    {"no", {.type = SLU_VALUE_BOOL}},
    {"list", {.type = SLU_VALUE_LIST}},
    {"a b", {.type = SLU_VALUE_NUMBER, .number = 1}},
    {"aaaa",
     {.type = SLU_VALUE_STRING,
      .string = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
      .len = 33}},
};

static void get(void *ctx, size_t i, struct slu_value *out)
{
    const char *name = slu_expr_field(ctx, i);
    *out = (struct slu_value){.type = SLU_VALUE_NULL};
    for (size_t k = 0; k < sizeof record / sizeof *record; k++)
        if (!strcmp(record[k].name, name))
            *out = record[k].v;
}

/* Evaluates an expression: '1', '0', or the message of the error. */
static const char *result(const char *text, struct slu_err *err)
{
    struct slu_expr *e;
    struct slu_expr_run *r;
    bool yes = false;
    *err = (struct slu_err)SLU_ERR_INIT;
    if (slu_expr_new(&e, text, err)) {
        assert_null(e);
        assert_int_equal(err->code, SLU_E_USAGE);
        return err->msg;
    }
    assert_int_equal(slu_expr_run_new(&r, e, err), SLU_OK);
    int rc = slu_expr_eval(r, get, e, &yes, err);
    slu_expr_run_free(r);
    slu_expr_free(e);
    if (!rc)
        return yes ? "1" : "0";
    assert_int_equal(rc, SLU_E_FORMAT);
    assert_false(yes);
    return err->msg;
}

static void values(void **state)
{
    static const char *const yes[] = {
        "true",
        "yes",
        "not no",
        "(yes)",
        "not not yes",
        "yes and yes and not no",
        "no or no or yes",
        "no and no or yes",
        "yes or no and no",
        "not no and yes",
        "not (no or no)",
        "lang == \"en\"",
        "lang == 'en'",
        "'en' == lang",
        "lang != 'de'",
        "lang < 'eo'",
        "lang <= 'en'",
        "lang > 'em'",
        "lang > 'e'",
        "'' < lang",
        "empty == ''",
        "score == 2.5",
        "score == 25e-1",
        "2 < score",
        "score >= 2.5",
        "score<=2.5",
        "score!=-2.5",
        "n.a-b == -3",
        "n.a-b<-2",
        "huge > 1.7e308",
        "huge > 18446744073709551615",
        "9007199254740993 > 9007199254740992",
        "9007199254740993 == 9007199254740993",
        "9007199254740993 != 9007199254740992",
        "9007199254740993 < 9007199254740994.0",
        "-9007199254740993 < -9007199254740992",
        "9223372036854775807 < 9223372036854775808",
        "18446744073709551615 < 18446744073709551616.0",
        "18446744073709551615 > 18446744073709551614",
        "-18446744073709551615 > -18446744073709551616.0",
        "9007199254740993 not in [9007199254740992]",
        "lang in ['de', 'en']",
        "lang not in ['de', null]",
        "score in [1, 2.5]",
        "missing in ['x', null]",
        "not missing in ['x']",
        "missing not in ['x']",
        "yes in [true, 'a']",
        "missing == null",
        "score != null",
        "list != null",
        "null == null",
        "missing != 'x'",
        "len(text) == 10",
        "len(empty) == 0",
        "len(lang) < len(text)",
        "startswith(text, 'na\u00efve')",
        "startswith(text, '')",
        "startswith(text, lang) == false",
        "`a b` == 1",
        "`lang` == 'en'",
        "text matches 'caf.$'",
        "text matches \"^na\\u00efve\\\\s\"",
        "text matches '(?i)NA\u00cfVE'",
        "not empty matches '.'",
        "empty matches '^$'",
        "'a\\b' == \"a\\\\b\"",
        "'\"' == \"\\\"\"",
        "lang == 'en' and score > 2",
        "missing != null and missing > 3 or true",
        "yes == true",
        "yes == (lang == 'en')",
        "yes or missing > 3",
        "not (no and missing > 3)",
        "lang\t==\n'en'",
        "missing.deep == null",
        "1 == 1.0",
        "0.1 != 0.2",
        "\xc3\xa9 == null",
    };
    static const char *const no[] = {
        "false",
        "no",
        "not yes",
        "lang == 'de'",
        "lang == 'en ' or lang == 'e'",
        "lang in ['d']",
        "lang not in ['en']",
        "missing == 'x'",
        "missing in ['x']",
        "list == null",
        "score > 2.5",
        "score < 2.5",
        "text matches 'b'",
        "yes and no",
        "yes and yes and no",
        "no or no",
        "startswith(lang, 'eng')",
        "score != null and score > 3",
        "missing != null and missing > 3",
    };
    struct slu_err err;
    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (strcmp(result(yes[i], &err), "1") != 0)
            fail_msg("%s: %s", yes[i], err.msg);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (strcmp(result(no[i], &err), "0") != 0)
            fail_msg("%s: %s", no[i], err.msg);
}

static void refused(void **state)
{
    static const char *const cases[][2] = {
        /* the text of the expression */
        {"", "column 1: a field or a value is missing at the end"},
        {"lang =", "column 6: = is written =="},
        {"lang ==", "column 8: a field or a value is missing at the end"},
        {"lang = 'en'", "column 6: = is written =="},
        {"lang",
         "column 1: \"lang\" is a string, and the expression must be true or false"},
        {"score",
         "column 1: \"score\" is a number, and the expression must be true or false"},
        {"missing", "column 1: \"missing\" is null or missing, and the expression must "
                    "be true or false"},
        {"3", "column 1: is neither true nor false; compare it with something"},
        {"len(text)", "column 1: is neither true nor false; compare it with something"},
        {"yes and 3", "column 9: is neither true nor false; compare it with something"},
        {"3 or yes", "column 1: is neither true nor false; compare it with something"},
        {"not 'a'", "column 5: is neither true nor false; compare it with something"},
        {"1 < score < 3", "column 11: a comparison of a comparison; join two with and"},
        {"lang == 'en", "column 9: the quote has no other"},
        {"lang == \"e\\n", "column 9: the quote has no other"},
        {"lang == \"\\d\"", "column 9: not a string as JSON has it; a backslash is "
                            "written \\\\, or the string in 'single quotes'"},
        {"`lang == 'en'", "column 1: the backquote has no other"},
        {"`` == 1", "column 1: a field without a name"},
        {"lang == en 'x'",
         "column 12: expected and, or (in small letters), or the end, found 'x'"},
        {"\xc3\xa9 == 'x' )",
         "column 10: expected and, or (in small letters), or the end, found )"},
        {"(lang == 'en'", "column 14: ) is missing at the end"},
        {"lang in 'en'", "column 9: expected [, found 'en'"},
        {"lang in []",
         "column 10: expected a string, a number, true, false or null, found ]"},
        {"lang in ['en' 'de']", "column 15: expected ], found 'de'"},
        {"lang in [en]",
         "column 10: expected a string, a number, true, false or null, found en"},
        {"lang not 'en'", "column 10: expected in, found 'en'"},
        {"lang matches x", "column 14: expected a pattern in quotes, found x"},
        {"lang matches '('", "column 14: character 2 of the pattern: PCRE2 refuses the "
                             "pattern: missing closing parenthesis"},
        {"lang matches 'a\\C'", NULL},
        {"upper(lang) == 'x'",
         "column 1: expected len or startswith before a parenthesis, found upper"},
        {"startswith(lang)", "column 16: expected ,, found )"},
        {"and yes", "column 1: expected a field or a value, found and"},
        {"yes and", "column 8: a field or a value is missing at the end"},
        {"x == 1.", "column 6: not a number"},
        {"x == -.5", "column 6: not a number"},
        {"x == 1e", "column 6: not a number"},
        {"x == 12ab", "column 6: not a number"},
        {"x == 1e999", "column 6: a number beyond all doubles"},
        {"x == 18446744073709551616",
         "column 6: an integer of 2^64 or more; compare such ids as strings"},
        {"x == -18446744073709551616", NULL},
        {"x == #", "column 6: expected a field or a value, found #"},
        {"\xff", "column 1: not valid UTF-8"},
        /* the types of a record */
        {"lang == 3",
         "column 1: \"lang\" is a string, and == and != compare it with a number"},
        {"3 == lang",
         "column 6: \"lang\" is a string, and == and != compare it with a number"},
        {"list == 'a'", "column 1: \"list\" is an array or an object, and == and != "
                        "compare it with a string"},
        {"list == list", NULL},
        {"lang > 3", NULL},
        {"yes < true", NULL},
        {"yes and missing > 3", "column 9: \"missing\" is null or missing, and < <= > "
                                ">= compare it with a number; they "
                                "order two numbers or two strings"},
        {"score > missing",
         "column 9: \"missing\" is null or missing, and < <= > >= compare it "
         "with a number; they order two numbers or two strings"},
        {"score in ['a', null]",
         "column 1: \"score\" is a number, and the list has none"},
        {"len(score) > 3", "column 5: \"score\" is a number, and len takes a string"},
        {"len(missing) > 3",
         "column 5: \"missing\" is null or missing, and len takes a string"},
        {"startswith(lang, score)",
         "column 18: \"score\" is a number, and startswith takes two strings"},
        {"score matches 'x'",
         "column 1: \"score\" is a number, and matches looks at strings"},
        {"not lang", "column 5: \"lang\" is a string, and not takes a boolean"},
        {"yes and lang",
         "column 9: \"lang\" is a string, and and and or join booleans"},
        {"aaaa matches '(a+)+(a+)+$'",
         "column 6: matches gave up: match limit exceeded"},
    };
    struct slu_err err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = result(cases[i][0], &err);
        if (cases[i][1] ? strcmp(got, cases[i][1]) != 0
                        : strncmp(got, "column ", 7) != 0)
            fail_msg("%s: %s", cases[i][0], got);
    }
}

/* Texts that would cost memory, stack or time. */
static void hostile(void **state)
{
    enum { N = SLU_EXPR_BYTE };
    static const struct {
        const char *part, *end;
        bool good;
    } cases[] = {{"(", "", false},          {"not ", "yes", false},
                 {"yes and ", "yes", true}, {"no or ", "yes", true},
                 {"len(", "x", false},      {"startswith(x,", "", false}};
    char *text = malloc(2 * N);
    struct slu_err err;
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t n = strlen(cases[i].part);
        size_t at = 0;
        while (at + n < N - 8) {
            memcpy(text + at, cases[i].part, n);
            at += n;
        }
        strncpy(text + at, cases[i].end, 8);
        const char *got = result(text, &err);
        assert_true(cases[i].good ? !strcmp(got, "1") : !!strstr(got, "column "));
    }
    memset(text, ' ', N + 1);
    text[N + 1] = 0;
    assert_string_equal(result(text, &err), "column 65537: longer than 64 KiB");
    /* the most fields, and one more */
    for (unsigned more = 0; more < 2; more++) {
        size_t at = 0;
        for (unsigned k = 0; k < SLU_EXPR_FIELDS + more; k++)
            at += (size_t)snprintf(text + at, 32, "%sf%u == null", k ? " and " : "", k);
        if (more)
            assert_non_null(strstr(result(text, &err), "more fields than"));
        else
            assert_string_equal(result(text, &err), "1");
    }
    free(text);
}

static void fields(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_expr *e;
    (void)state;
    assert_int_equal(
        slu_expr_new(&e, "a.b == 'x' or c in [1] and a.b != `d e` or len(c) > 1", &err),
        SLU_OK);
    assert_int_equal(slu_expr_n_field(e), 3);
    assert_string_equal(slu_expr_field(e, 0), "a.b");
    assert_string_equal(slu_expr_field(e, 1), "c");
    assert_string_equal(slu_expr_field(e, 2), "d e");
    slu_expr_free(e);
    slu_expr_free(NULL);
    slu_expr_run_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(refused),
        cmocka_unit_test(hostile),
        cmocka_unit_test(fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
