/* test_pre.c - pre-tokenizers: scanners compared with their expressions, and
 * expressions with results of Oniguruma (tests/judges compares with the library
 * itself). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/token/pre.h"
#include "lib/token/unicode.h"

static uint32_t seed = 1;

static unsigned below(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed % n;
}

static const char *const CHARS[] = {
    "a",          "B",          "s",          "S",          "t",      "r",
    "e",          "v",          "l",          "m",          "d",      "'",
    " ",          " ",          "\n",         "\r",         "\t",     "1",
    "2",          "!",          "/",          "_",          "\x0b",   "\x1c",
    "\u017f",     "\u212a",     "\u0301",     "\u4e2d",     "\u01c5", "\u02b0",
    "\u00e9",     "\u00c9",     "\u0661",     "\u00bd",     "\u2167", "\u00a0",
    "\u3000",     "\xc2\x85",   "\u180e",     "\u2028",     "\u200b", "\U0001f600",
    "\U00010d50", "\U0001e5d0", "\u3007",     "\u2e80",     "\u3005", "\U00016ff0",
    "\U00016fe2", "\u3042",     "\u3099",     "\u30fb",     "\u9fa5", "\u9fa6",
    "\u3400",     "\x01",       "\u0378",     "\U00020000", "\u3008", "+",
    "\ue000",     "\ufdd0",     "\U00011de0", "\U00031350", "\u1e9e"};
#define N_CHAR (sizeof CHARS / sizeof *CHARS)

static size_t make_text(char text[256])
{
    unsigned n = 1 + below(14), from = below(N_CHAR), width = 1 + below(N_CHAR);

    *text = '\0';
    for (unsigned i = 0; i < n; i++)
        strcat(text, CHARS[(from + below(width)) % N_CHAR]);
    return strlen(text);
}

struct ends {
    size_t end[256], n, at;
    const uint8_t *text;
};

static int note(void *ctx, const uint8_t *p, size_t n, struct slu_err *err)
{
    struct ends *e = ctx;

    (void)err;
    assert_true(n && e->n < 256);
    assert_ptr_equal(p, e->text + e->at);
    e->end[e->n++] = e->at += n;
    return SLU_OK;
}

/* Both cut random texts alike; the second has steps that no scanner is known for. */
static void compare(struct tok_pre *a, struct tok_pre *b)
{
    struct slu_err err = SLU_ERR_INIT;
    struct pre_scratch sa, sb;

    assert_int_equal(pre_finish(a, &err), SLU_OK);
    assert_int_equal(pre_finish(b, &err), SLU_OK);
    assert_int_equal(a->n, 1);
    assert_non_null(a->step[0].scan);
    for (size_t i = 0; i < b->n; i++)
        assert_null(b->step[i].scan);
    assert_int_equal(pre_scratch_init(&sa, a, &err), SLU_OK);
    assert_int_equal(pre_scratch_init(&sb, b, &err), SLU_OK);
    for (unsigned round = 0; round < 6000; round++) {
        char text[256];
        size_t n = make_text(text);
        struct ends ea = {.text = (const uint8_t *)text}, eb = ea;
        assert_int_equal(pre_run(a, &sa, ea.text, n, note, &ea, &err), SLU_OK);
        assert_int_equal(pre_run(b, &sb, eb.text, n, note, &eb, &err), SLU_OK);
        if (ea.n != eb.n || memcmp(ea.end, eb.end, ea.n * sizeof *ea.end))
            print_error("%s: \"%s\"\n", pre_scan_name(a->step[0].scan), text);
        assert_int_equal(ea.n, eb.n);
        assert_memory_equal(ea.end, eb.end, ea.n * sizeof *ea.end);
    }
    pre_scratch_release(&sa);
    pre_scratch_release(&sb);
    pre_free(a);
    pre_free(b);
}

static void add(struct tok_pre *pre, const char *pattern, enum pre_kind kind,
                bool invert)
{
    struct slu_err err = SLU_ERR_INIT;

    assert_int_equal(pre_add_regex(pre, pattern, strlen(pattern), kind, invert, &err),
                     SLU_OK);
}

static void scanners_do_what_their_expressions_say(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"r50k",   "p50k",  "llama3", "qwen2",
                                        "qwen35", "o200k", "tekken", "kimi"};

    for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++) {
        const char *pattern = pre_regex_by_name(NAMES[k]);
        struct slu_err err = SLU_ERR_INIT;
        struct tok_pre *scan, *regex;
        char group[2000];
        assert_int_equal(pre_new(&scan, &err), SLU_OK);
        assert_int_equal(pre_new(&regex, &err), SLU_OK);
        add(scan, pattern, PRE_REGEX, false);
        assert_ptr_equal(scan->step[0].scan, pre_scan_by_name(NAMES[k]));
        snprintf(group, sizeof group, "(?:%s)", pattern);
        add(regex, group, PRE_REGEX, false);
        compare(scan, regex);
    }
}

/* Several steps that one scanner does. */
static void scanners_do_what_rows_say(void **state)
{
    (void)state;
    static const char *const DEEPSEEK[] = {
        "\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
        "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
        "\\s*[\r\n]+|\\s+(?!\\S)|\\s+"};
    struct slu_err err = SLU_ERR_INIT;
    struct tok_pre *scan, *regex;
    char group[1000];

    assert_int_equal(pre_new(&scan, &err), SLU_OK);
    assert_int_equal(pre_new(&regex, &err), SLU_OK);
    for (int i = 0; i < 3; i++) {
        add(scan, DEEPSEEK[i], PRE_REGEX, false);
        snprintf(group, sizeof group, "(?:%s)", DEEPSEEK[i]);
        add(regex, group, PRE_REGEX, false);
    }
    compare(scan, regex);

    assert_int_equal(pre_new(&scan, &err), SLU_OK);
    assert_int_equal(pre_new(&regex, &err), SLU_OK);
    add(scan, PRE_DIGIT, PRE_REGEX, false);
    assert_int_equal(pre_add_scan(scan, pre_scan_by_name("gpt2"), &err), SLU_OK);
    add(regex, "(?:" PRE_DIGIT ")", PRE_REGEX, false);
    snprintf(group, sizeof group, "(?:%s)", pre_regex_by_name("r50k"));
    add(regex, group, PRE_REGEX, false);
    compare(scan, regex);
}

static void cl100k_takes_white_space_at_the_end(void **state)
{
    (void)state;
    pre_scan_fn *ours = pre_scan_by_name("cl100k"), *llama = pre_scan_by_name("llama3");
    const uint8_t *text = (const uint8_t *)"a\n  b \n ";

    assert_int_equal(ours(text, 8, 1), 2);
    assert_int_equal(ours(text, 8, 5), 8);
    assert_int_equal(llama(text, 8, 5), 7);
}

static int join(void *ctx, const uint8_t *p, size_t n, struct slu_err *err)
{
    char *out = ctx;

    (void)err;
    if (*out)
        strcat(out, "_");
    strncat(out, (const char *)p, n);
    return SLU_OK;
}

/* The pretokens, with "_" between. */
static void pretokens(const char *pattern, enum pre_kind kind, bool invert,
                      const char *text, const char *want)
{
    struct slu_err err = SLU_ERR_INIT;
    struct pre_scratch s;
    struct tok_pre *pre;
    char out[256] = "";

    assert_int_equal(pre_new(&pre, &err), SLU_OK);
    add(pre, pattern, kind, invert);
    if (pre_finish(pre, &err) < 0)
        fail_msg("%s: %s", pattern, err.msg);
    assert_int_equal(pre_scratch_init(&s, pre, &err), SLU_OK);
    assert_int_equal(
        pre_run(pre, &s, (const uint8_t *)text, strlen(text), join, out, &err), SLU_OK);
    if (strcmp(out, want))
        print_error("%s: \"%s\"\n", pattern, text);
    assert_string_equal(out, want);
    pre_scratch_release(&s);
    pre_free(pre);
}

static void expressions_cut_as_oniguruma_does(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text, *want;
    } CASES[] = {
        {"\\w+", "ab-c\u0301d\u00bd\u24b6", "ab_-_c\u0301d\u00bd\u24b6"},
        {"\\W", "a-b", "a_-_b"},
        {"[\\w]+", "a\u00bdb\u0bf0", "a_\u00bd_b_\u0bf0"},
        {"\\p{N}{1,2}+", "12345", "12345"},
        {"\\b\\w", "ab cd", "a_b _c_d"},
        {"\\Bb", "bb b", "b_b_ b"},
        {"^a", "aa\na", "a_a\n_a"},
        {"a$", "aa\na", "a_a_\n_a"},
        {"a\\z", "aa\na", "aa\n_a"},
        {"\\Aa", "aa", "a_a"},
        {"a{1,2}+b", "aaaab", "aaaab"},
        {"a{2}?b", "aab b", "aab_ _b"},
        {"a{,2}b", "aaab", "a_aab"},
        {"a{1,2}?", "aa", "a_a"},
        {"a{,}", "aa{,}", "a_a{,}"},
        {"a++b|a", "aab aa", "aab_ _a_a"},
        {"a*?b", "aab", "aab"},
        {"(?<=a)b", "ab b", "a_b_ b"},
        {"(?<!a)b", "ab b", "ab _b"},
        {"(?>a+)b", "aab", "aab"},
        {"\\p{Han}+", "a\u4e2d\u3007\u3042", "a_\u4e2d\u3007_\u3042"},
        {"\\p{hira gana}", "a\u3042", "a_\u3042"},
        {"[\\p{L}&&[^\\p{Han}]]+", "ab\u4e2dc", "ab_\u4e2d_c"},
        {"[a-z&&[^aeiou]&&\\w]+", "bcad", "bc_a_d"},
        {"[[a-c][x]]+", "abxd", "abx_d"},
        {"[^\\W\\d]+", "ab1", "ab_1"},
        {"[[:alpha:]-]+", "a-1", "a-_1"},
        {"[\\]\\-a]+", "]-ab", "]-a_b"},
        {"[a&&b]|c", "abc", "ab_c"},
        {"\\p{Uppercase_Letter}\\P{Lu}", "Ab", "Ab"},
        {"\\p{^L}", "a1", "a_1"},
        {"(?i:'[sk])", "'\u017f'\u212a'x", "'\u017f_'\u212a_'x"},
        {"\\u0041\\x42\\x{43}", "ABC", "ABC"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        pretokens(CASES[i].pattern, PRE_REGEX, false, CASES[i].text, CASES[i].want);
    }
}

static void behaviors(void **state)
{
    (void)state;
    static const struct {
        enum pre_kind kind;
        const char *want;
    } CASES[] = {
        {PRE_REGEX, "-_a_-_-_bc_-"}, {PRE_DROP, "a_bc"},
        {PRE_KEEP, "-_-_-_-"},       {PRE_LEFT, "-_a-_-_bc-"},
        {PRE_RIGHT, "-a_-_-bc_-"},   {PRE_RUNS, "-_a_--_bc_-"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        pretokens("-", CASES[i].kind, false, "-a--bc-", CASES[i].want);
    /* Inverted, matches are what is between. */
    pretokens("[a-z]", PRE_LEFT, true, "ab-c-", "a_b-_c-");
    pretokens("[a-z]", PRE_RIGHT, true, "-ab-c-", "-a_b_-c_-");
    pretokens("[a-z]", PRE_RUNS, true, "ab-c", "ab_-_c");
}

static void doubtful_expressions_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "[[:punct:]]", "\\p{Word}",   "\\p{Klingon}", "(?<n>a)",
        "\\1",         "(?i:\\p{L})", "(?i:ss)",      "(?i:é)",
        "x*",          "(?i)abc",     "\\R",          "[a",
        "(a",          "\\h",         "\\K",          "(*F)",
        "a+*",         "a{2}{3}",     "+a",           "(?=a)+",
        "[a-b-c]",     "[]a]",        "[a&&]",        "\\pL",
        "\\x80",       "[\\h]",       "a)",           "^*",
        "(?#x)a",      "[z-a]",       "\\G",          "(?i:[\u00e9])",
        "\\",          "[\\w-&&a]x*", "a**",          "a?{2}",
    };

    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct slu_err err = SLU_ERR_INIT;
        struct slu_pcre *r = NULL;
        int rc = pre_regex_new(&r, BAD[i], strlen(BAD[i]), &err);
        if (rc != SLU_E_UNSUPPORTED)
            print_error("%s\n", BAD[i]);
        assert_int_equal(rc, SLU_E_UNSUPPORTED);
        assert_null(r);
        assert_non_null(strstr(err.msg, "pre-tokenizer"));
    }
}

static void scripts_are_found(void **state)
{
    (void)state;
    static const uint32_t RANGES[] = {0x4e00, 0x9fff, 0x3007, 0x2e80, 0x16ff1, 0x323af};
    static const uint32_t NOT[] = {0,      0x2e7f,  0x2e9a,  0x3042,
                                   0xa000, 0x323b0, 0x10ffff};

    assert_string_equal(uni_script_name[UNI_HAN], "han");
    for (size_t i = 0; i < sizeof RANGES / sizeof *RANGES; i++)
        assert_true(uni_is_han(RANGES[i]));
    for (size_t i = 0; i < sizeof NOT / sizeof *NOT; i++)
        assert_false(uni_is_han(NOT[i]));
}

/* The steps come back from the text that a compiled vocabulary keeps of them;
 * SentencePiece's vocabularies keep none. */
static void steps_come_back(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    struct tok_pre *from, *to;

    (void)state;
    for (unsigned n = 0; n < 3; n++) {
        assert_int_equal(pre_new(&from, &err), SLU_OK);
        assert_int_equal(pre_new(&to, &err), SLU_OK);
        if (n > 0)
            assert_int_equal(pre_add_prefix(from, &err), SLU_OK);
        if (n > 1)
            assert_int_equal(pre_add_scan(from, pre_scan_by_name("gpt2"), &err),
                             SLU_OK);
        assert_int_equal(pre_add_spec(to, from->spec.data, from->spec.len, &err),
                         SLU_OK);
        assert_int_equal(to->n, n);
        pre_free(from);
        pre_free(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scanners_do_what_their_expressions_say),
        cmocka_unit_test(scanners_do_what_rows_say),
        cmocka_unit_test(cl100k_takes_white_space_at_the_end),
        cmocka_unit_test(expressions_cut_as_oniguruma_does),
        cmocka_unit_test(behaviors),
        cmocka_unit_test(doubtful_expressions_are_refused),
        cmocka_unit_test(scripts_are_found),
        cmocka_unit_test(steps_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
