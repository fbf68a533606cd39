/* test_rules.c - lib/filter/rules.h and text.h: words, sentences, each threshold on both
 * of its sides, files of thresholds, and texts that C4's lines leave. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/filter/rules.h"
#include "lib/filter/text.h"

/* ---- words and sentences ---- */

static void words(void **state)
{
    static const char *const t[][2] = {
        {"", ""},
        {" \t\n\v\f\r\x1c\x1d\x1e\x1f\xC2\x85\xC2\xA0\xE3\x80\x80", ""},
        {"one two", "one|two"},
        {"don't stop-gap 3.14, and/or a_b.", "don't|stop-gap|3.14|,|and/or|a_b|."},
        {"it’s ’tis’", "it’s|’|tis|’"},
        {"wait... no--yes -- a..b", "wait|...|no|--|yes|--|a|..|b"},
        {"(a)[b]{c}", "(|a|)|[|b|]|{|c|}"},
        {"$5 5% a+b ~~~", "$|5|5|%|a|+|b|~~~"},
        {"...!!!", "...|!!!"},
        {"中文 ab中", "中|文|ab|中"},
        {"中。文", "中|。|文"},
        {"นี้ a", "นี้|a"},
        {"e\xCC\x81t\xCC\x81", "e\xCC\x81t\xCC\x81"},
        {"héllo wörld·x", "héllo|wörld·x"},
        {"\x01\x02 a\x7F", "\x01\x02|a\x7F"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const uint8_t *p = (const void *)t[i][0], *end = p + strlen(t[i][0]);
        char got[256] = "";
        struct slu_word w;
        while (slu_word_next(&p, end, &w)) {
            size_t n = strlen(got);
            snprintf(got + n, sizeof got - n, "%s%.*s", n ? "|" : "", (int)w.n_byte,
                     (const char *)w.p);
            assert_int_equal(w.n_char, slu_text_chars(w.p, w.n_byte));
        }
        assert_string_equal(got, t[i][1]);
        assert_ptr_equal(p, end);
    }
}

static void sentences(void **state)
{
    static const char *const t[][2] = {
        {"One. Two! Three? Four", "One. |Two! |Three? |Four"},
        {"e.g. this. That.", "e.g. this. |That."},
        {"He said \"no.\" Then (yes!) 'So?' end",
         "He said \"no.\" |Then (yes!) |'So?' |end"},
        {"3.14 is pi. ", "3.14 is pi. "},
        {"What?! no", "What?! |no"},
        {"中文。中文！中", "中文。|中文！|中"},
        {"नमस्ते। दुनिया", "नमस्ते। |दुनिया"},
        {"...", "..."},
    };
    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const uint8_t *p = (const void *)t[i][0];
        char got[256] = "";
        for (size_t at = 0, len, n = strlen(t[i][0]); at < n; at += len) {
            len = slu_sentence(p + at, n - at);
            size_t k = strlen(got);
            snprintf(got + k, sizeof got - k, "%s%.*s", at ? "|" : "", (int)len,
                     (const char *)p + at);
        }
        assert_string_equal(got, t[i][1]);
    }
}

/* ---- thresholds ---- */

static void put_file(char *path, const char *text)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* Rules with all thresholds of the family off but those of `lines`. */
static struct slu_rules *only(const char *family, const char *lines)
{
    char path[] = "/tmp/sluice-rules-XXXXXX", *text = calloc(1, 8192);
    struct slu_rules *r;
    assert_non_null(text);
    for (unsigned i = 0; i < SLU_RULE_N; i++)
        if (!strncmp(slu_rule_name((enum slu_rule)i), family, strlen(family)) &&
            i != SLU_RULE_SHORT_LINE_LENGTH) {
            strcat(text, slu_rule_name((enum slu_rule)i));
            strcat(text, "=off\n");
        }
    strcat(text, lines);
    put_file(path, text);
    assert_int_equal(slu_rules_new(&r, NULL), SLU_OK);
    assert_int_equal(slu_rules_add(r, path, NULL), SLU_OK);
    unlink(path);
    free(text);
    return r;
}

static enum slu_rule ask(const struct slu_rules *r, const char *text)
{
    struct slu_rules_run *run;
    enum slu_rule failed;
    assert_int_equal(slu_rules_run_new(&run, r, UINT64_C(1) << 24, NULL), SLU_OK);
    assert_int_equal(slu_rules_ask(run, text, strlen(text), &failed, NULL), SLU_OK);
    slu_rules_run_free(run);
    return failed;
}

/* "a " n times, and so on. */
static const char *times(const char *s, unsigned n, const char *rest)
{
    static char text[4][1 << 16];
    static unsigned next;
    char *p = text[next++ % 4];
    *p = 0;
    for (unsigned i = 0; i < n; i++)
        strcat(p, s);
    return strcat(p, rest);
}

static void one_threshold(void **state)
{
    static const struct {
        enum slu_rule rule;
        const char *value, *more; /* more thresholds */
        const char *meets, *fails;
    } t[] = {
        {SLU_RULE_MIN_DOC_WORDS, "3", "", "a b . c", "a b . !"},
        {SLU_RULE_MAX_DOC_WORDS, "3", "", "a b . c", "a b c d"},
        {SLU_RULE_MIN_AVG_WORD_LENGTH, "2.5", "", "ab . abc", "ab abc ab"},
        {SLU_RULE_MAX_AVG_WORD_LENGTH, "2.5", "", "äb . äbc", "ab abc abc"},
        {SLU_RULE_MAX_HASH_WORD_RATIO, "0.25", "", "a b c #", "a b #"},
        {SLU_RULE_MAX_ELLIPSIS_WORD_RATIO, "0.25", "", "a b c...", "a b…"},
        {SLU_RULE_MAX_BULLET_LINES_RATIO, "0.5", "", "- a\r\nb",
         "- a\x1c \xE2\x80\xA2 b\nc"},
        {SLU_RULE_MAX_BULLET_LINES_RATIO, "0.5", "", "- a\rb", "- a\r- b\rc"},
        {SLU_RULE_MAX_ELLIPSIS_LINES_RATIO, "0.5", "", "a... \nb",
         "a…\xC2\xA0\n...\nb"},
        {SLU_RULE_MIN_ALPHA_WORDS_RATIO, "0.5", "", "a 1", "a 1 2"},
        {SLU_RULE_MIN_STOP_WORDS, "2", "", "the The of", "the the The thee"},
        {SLU_RULE_DUP_PARA_FRAC, "0.25", "", "\n\na\nx\n\nb\n\nc\n\n\n\na\nx\n ",
         "a\n\nb\n\na"},
        {SLU_RULE_DUP_PARA_CHAR_FRAC, "0.25", "", "ä\n\nä", "äb\n\näb"},
        {SLU_RULE_DUP_LINE_FRAC, "0.25", "", "a\nb\n\na\n", "a\na"},
        {SLU_RULE_DUP_LINE_CHAR_FRAC, "0.25", "", "a\nbb\n\naa\na", "aa\naa"},
        {SLU_RULE_TOP_2_GRAM, "0.6", "", "a b c d", "a b a b"},
        {SLU_RULE_TOP_3_GRAM, "0.6", "", "a b c d e", "a b c a b c"},
        {SLU_RULE_TOP_4_GRAM, "0.7", "", "a b c d e f", "a b c d a b c d"},
        {SLU_RULE_DUP_5_GRAM, "0.2", "", "a b c d e f a b c d",
         "ab c d e f a bc d e f"},
        {SLU_RULE_DUP_5_GRAM, "0.2", "", "a b c d e a b c d f", "a b c d e a b c d e"},
        {SLU_RULE_DUP_6_GRAM, "0.2", "", "a b c d e f a b c d e g",
         "a b c d e f a b c d e f"},
        {SLU_RULE_DUP_7_GRAM, "0.2", "", "1 2 3 4 5 6 7 1 2 3 4 5 6",
         "1 2 3 4 5 6 7 1 2 3 4 5 6 7"},
        {SLU_RULE_DUP_8_GRAM, "0.2", "", "1 2 3 4 5 6 7 8 1 2 3 4 5 6 7",
         "1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8"},
        {SLU_RULE_DUP_9_GRAM, "0.2", "", "1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8",
         "1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9"},
        {SLU_RULE_DUP_10_GRAM, "0.2", "", "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9",
         "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0"},
        {SLU_RULE_C4_LOREM_IPSUM, "on", "", "lorem. ipsum", "x\nLorem IPSUM"},
        {SLU_RULE_C4_CURLY_BRACKET, "on", "", "}", "a\n{"},
        {SLU_RULE_C4_CURLY_BRACKET, "on", "c4.javascript=on\n", "javascript {", "{"},
        {SLU_RULE_C4_MIN_NUM_SENTENCES, "2", "", "A. B", "A.\n"},
        {SLU_RULE_C4_MIN_NUM_SENTENCES, "2", "c4.min_words_per_line=2\n", "a b\nc d",
         "a b\nc"},
        {SLU_RULE_C4_MIN_NUM_SENTENCES, "2", "c4.no_terminal_punct=on\n", "a.\nb'",
         "a.\nb..."},
        {SLU_RULE_C4_MIN_NUM_SENTENCES, "2", "c4.max_word_length=3\n", "a abc\nb",
         "a abcd\nb"},
        {SLU_RULE_C4_MIN_NUM_SENTENCES, "2", "c4.policy=on\n", "use cookie\nb",
         "use coo\xE2\x84\xAAies\nb"},
        {SLU_RULE_C4_MIN_NUM_SENTENCES, "2", "c4.javascript=on\n", "java script\nb",
         "JavaScript\nb"},
        {SLU_RULE_LINE_PUNCT_RATIO, "0.5", "", "a.\n\n \nb", "a. \nb"},
        {SLU_RULE_LINE_PUNCT_RATIO, "0.5", "fineweb.line_punct_exclude_zero=on\n",
         "a\nb", "a.\nb\nc"},
        {SLU_RULE_SHORT_LINE_RATIO, "0.5", "fineweb.short_line_length=2\n", "äb\nabc",
         "äb\na\nabc"},
        {SLU_RULE_CHAR_DUPLICATES_RATIO, "0.25", "", "a\nbbb", "a\na\nb"},
        {SLU_RULE_NEW_LINE_RATIO, "0.5", "", "a b\n", "a\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const char *name = slu_rule_name(t[i].rule);
        char family[32], lines[256];
        snprintf(family, sizeof family, "%.*s.", (int)strcspn(name, "."), name);
        snprintf(lines, sizeof lines, "%s%s = %s\n", t[i].more, name, t[i].value);
        struct slu_rules *r = only(family, lines);
        const enum slu_rule good = ask(r, t[i].meets), bad = ask(r, t[i].fails);
        if (good != SLU_RULE_N || bad != t[i].rule)
            fail_msg("row %zu: %s: %d, then %d", i, name, (int)good, (int)bad);
        slu_rules_free(r);
    }
}

static struct slu_rules *rules(const char *list)
{
    struct slu_rules *r;
    assert_int_equal(slu_rules_new(&r, NULL), SLU_OK);
    assert_int_equal(slu_rules_add(r, list, NULL), SLU_OK);
    return r;
}

static void in_order(void **state)
{
    struct slu_rules *a = rules("c4,gopher-quality"), *b = rules("gopher-quality,c4");
    (void)state;
    assert_string_equal(slu_rules_text(a), "c4,gopher-quality");
    assert_int_equal(ask(a, "a"), SLU_RULE_C4_MIN_NUM_SENTENCES);
    assert_int_equal(ask(b, "a"), SLU_RULE_MIN_DOC_WORDS);
    assert_int_equal(ask(a, ""), SLU_RULE_N);
    slu_rules_free(a);
    slu_rules_free(b);
    a = rules("fineweb");
    assert_int_equal(ask(a, " \n \n"), SLU_RULE_LINE_PUNCT_RATIO);
    slu_rules_free(a);
    /* Default thresholds at their ends. */
    a = rules("gopher-quality");
    assert_int_equal(ask(a, times("the word of ", 16, "some more.")), SLU_RULE_N);
    assert_int_equal(ask(a, times("the word of ", 16, "some.")),
                     SLU_RULE_MIN_DOC_WORDS);
    slu_rules_free(a);
}

/* ---- files ---- */

static void files(void **state)
{
    static const struct {
        const char *text, *want; /* the set's text, or the error */
    } t[] = {
        {"c4", "c4"},
        {"# x\n\n  fineweb \r\nc4.min_num_sentences = 5\n", "fineweb,c4"},
        {"c4.policy=off\nc4.min_num_sentences=2.5",
         "c4 c4.policy=off c4.min_num_sentences=2.5"},
        {"gopher-quality.stop_words = der  die der\n",
         "gopher-quality gopher-quality.stop_words=der die"},
        {"gopher-quality.stop_words =\n", "gopher-quality gopher-quality.stop_words="},
        {"c4.policy = 1", "line 1: c4.policy: '1' is not on or off"},
        {"c4\nc4.min_num_sentences = on",
         "line 2: c4.min_num_sentences: 'on' is not a number from 0 on, or off"},
        {"fineweb.new_line_ratio = -1",
         "line 1: fineweb.new_line_ratio: '-1' is not a number from 0 on, or off"},
        {"fineweb.new_line_ratio = 0x1",
         "line 1: fineweb.new_line_ratio: '0x1' is not a number from 0 on, or off"},
        {"fineweb.new_line_ratio = 1e999",
         "line 1: fineweb.new_line_ratio: '1e999' is not a number from 0 on, or off"},
        {"fineweb.new_line_ratio =",
         "line 1: fineweb.new_line_ratio: '' is not a number from 0 on, or off"},
        {"\n\nc5", "line 3: 'c5' is neither a family nor FAMILY.NAME = VALUE"},
        {"c4.x = 3", "line 1: 'c4.x' is no threshold"},
        {"= 3", "line 1: '' is no threshold"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char path[] = "/tmp/sluice-rules-XXXXXX";
        struct slu_err err = SLU_ERR_INIT;
        struct slu_rules *r;
        put_file(path, t[i].text);
        assert_int_equal(slu_rules_new(&r, NULL), SLU_OK);
        int rc = slu_rules_add(r, path, &err);
        unlink(path);
        if (rc) {
            assert_int_equal(rc, SLU_E_FORMAT);
            assert_memory_equal(err.msg, path, strlen(path));
            assert_string_equal(err.msg + strlen(path) + 2, t[i].want);
        } else {
            assert_string_equal(slu_rules_text(r), t[i].want);
        }
        slu_rules_free(r);
    }
    struct slu_rules *r = rules("c4");
    struct slu_err err = SLU_ERR_INIT;
    assert_int_equal(slu_rules_add(r, "c4", &err), SLU_E_USAGE);
    assert_string_equal(err.msg, "c4 comes twice");
    assert_int_equal(slu_rules_add(r, "/nowhere/x", &err), SLU_E_USAGE);
    assert_int_equal(slu_rules_add(r, "/tmp", &err), SLU_E_IO);
    slu_rules_free(r);
}

/* The printed defaults are a file that changes nothing. */
static void defaults(void **state)
{
    char path[] = "/tmp/sluice-rules-XXXXXX";
    struct slu_buf b = SLU_BUF_INIT;
    (void)state;
    assert_int_equal(slu_rules_defaults(&b, NULL), SLU_OK);
    assert_int_equal(slu_buf_append(&b, "", 1, NULL), SLU_OK);
    put_file(path, (const char *)b.data);
    struct slu_rules *r = rules(path);
    unlink(path);
    assert_string_equal(slu_rules_text(r),
                        "gopher-quality,gopher-repetition,c4,fineweb");
    slu_rules_free(r);
    slu_buf_release(&b);
}

/* ---- C4's lines, and memory ---- */

static void lines(void **state)
{
    static const char *const t[][2] = {
        {"  One two three. \nno mark\r\nFour five six![1][edit]\n\nuse cookies a b.\n"
         "Seven [x] eight.\n[1] a b. [2]\n",
         "One two three.\nFour five six!\nSeven [x] eight."},
        {"a b c.", "a b c."},
        {"", ""},
        {"[1] a b c.", "a b c."},
        {"[1] [2] [3].", "."},
        {"a b", ""},
    };
    static const uint64_t n_line[] = {4, 0, 0, 0, 0, 1};
    struct slu_rules *r =
        only("c4.", "c4.no_terminal_punct=on\nc4.min_words_per_line=3\n"
                    "c4.remove_citations=on\nc4.policy=on\n");
    struct slu_rules_run *run;
    (void)state;
    assert_int_equal(slu_rules_run_new(&run, r, 1 << 20, NULL), SLU_OK);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct slu_c4_cut cut;
        enum slu_rule failed;
        assert_int_equal(
            slu_rules_c4_lines(run, t[i][0], strlen(t[i][0]), &cut, &failed, NULL),
            SLU_OK);
        assert_int_equal(failed, SLU_RULE_N);
        assert_int_equal(cut.n, strlen(t[i][1]));
        assert_memory_equal(cut.text, t[i][1], cut.n);
        assert_int_equal(cut.changed, strcmp(t[i][0], t[i][1]) != 0);
        assert_int_equal(cut.n_line, n_line[i]);
    }
    slu_rules_run_free(run);
    slu_rules_free(r);
}

static void memory(void **state)
{
    struct slu_rules *r = rules("gopher-repetition");
    struct slu_err err = SLU_ERR_INIT;
    struct slu_rules_run *run;
    enum slu_rule failed;
    char text[4096];
    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 5 ? (char)('a' + (i * i + i / 7) % 26) : ' ';
    assert_int_equal(slu_rules_run_new(&run, r, 16384, NULL), SLU_OK);
    assert_int_equal(slu_rules_ask(run, text, sizeof text, &failed, &err), SLU_E_LIMIT);
    assert_int_equal(err.advice, SLU_ADVISE_MEMORY);
    slu_rules_run_free(run);
    assert_int_equal(slu_rules_run_new(&run, r, 1 << 20, NULL), SLU_OK);
    assert_int_equal(slu_rules_ask(run, text, sizeof text, &failed, &err), SLU_OK);
    slu_rules_run_free(run);
    slu_rules_run_free(NULL);
    slu_rules_free(r);
    slu_rules_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),         cmocka_unit_test(sentences),
        cmocka_unit_test(one_threshold), cmocka_unit_test(in_order),
        cmocka_unit_test(files),         cmocka_unit_test(defaults),
        cmocka_unit_test(lines),         cmocka_unit_test(memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
