/* test_norm.c - the normalizers, compared with the results of the `tokenizers` library
 * (0.23.3).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/token/norm.h"

struct step {
    enum norm_kind kind;
    const char *a, *b;
};

static struct tok_norm *make(const struct step *step, size_t n)
{
    struct tok_norm *norm, *again;
    struct slu_err err = SLU_ERR_INIT;

    assert_int_equal(norm_new(&norm, &err), SLU_OK);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(norm_add(norm, step[i].kind, step[i].a, strlen(step[i].a),
                                  step[i].b, strlen(step[i].b), &err),
                         SLU_OK);
    /* Every test runs on the copy that comes out of the spec. */
    assert_int_equal(norm_from_spec(&again, norm->spec.data, norm->spec.len, &err),
                     SLU_OK);
    assert_int_equal(again->spec.len, norm->spec.len);
    if (n)
        assert_memory_equal(again->spec.data, norm->spec.data, norm->spec.len);
    norm_free(norm);
    return again;
}

static void check(const struct step *step, size_t n, const char *in, const char *want)
{
    struct tok_norm *norm = make(step, n);
    struct norm_scratch s = {0};
    struct slu_err err = SLU_ERR_INIT;
    const uint8_t *out;
    size_t len;

    assert_int_equal(norm_scratch_init(&s, norm, &err), SLU_OK);
    for (int k = 0; k < 2; k++) { /* scratch can be used again */
        assert_int_equal(
            norm_run(norm, &s, (const uint8_t *)in, strlen(in), &out, &len, &err),
            SLU_OK);
        assert_int_equal(len, strlen(want));
        if (len)
            assert_memory_equal(out, want, len);
    }
    norm_scratch_release(&s);
    norm_free(norm);
}

static void steps(void **state)
{
    (void)state;
    static const struct {
        struct step step;
        const char *in, *want;
    } CASE[] = {
        {{NORM_NFC, "", ""}, "plain", "plain"},
        {{NORM_NFC, "", ""}, "e\u0301", "\u00e9"},
        {{NORM_NFC, "", ""}, "\u00e9\u0323x", "\u1eb9\u0301x"},
        {{NORM_NFC, "", ""}, "\u1100\u1161\u11a8", "\uac01"},
        {{NORM_NFC, "", ""}, "\uac00\u11a8\u11a7", "\uac01\u11a7"},
        {{NORM_NFC, "", ""}, "\u212b\u2126", "\u00c5\u03a9"},
        {{NORM_NFC, "", ""}, "\u0915\u093c\u0958", "\u0915\u093c\u0915\u093c"},
        {{NORM_NFC, "", ""}, "\u0301\u0300", "\u0301\u0300"},
        {{NORM_NFC, "", ""}, "a\u0323\u0307\u4e2d\u3099", "\u1ea1\u0307\u4e2d\u3099"},
        {{NORM_NFC, "", ""}, "\u304b\u3099", "\u304c"},
        /* U+0898, combining class 220, is newer than Unicode 9. */
        {{NORM_NFC, "", ""}, "a\u0301\u0898\u0323", "\u00e1\u0898\u0323"},
        {{NORM_NFD, "", ""},
         "\u00e9\uac01\u1eb9\u0301",
         "e\u0301\u1100\u1161\u11a8e\u0323\u0301"},
        {{NORM_NFD, "", ""}, "\ufb01\u00bd \U00011938", "\ufb01\u00bd \U00011938"},
        {{NORM_NFKC, "", ""},
         "\ufb01\u00bd\uff21\u0301 \u32ff",
         "fi1\u20442\u00c1 \u32ff"},
        {{NORM_NFKC, "", ""}, "\u1e9b\u0323", "\u1e69"},
        {{NORM_NFKD, "", ""}, "\u1e9b\u0323\u3392", "s\u0323\u0307MHz"},
        {{NORM_LOWERCASE, "", ""},
         "\u039f\u0394\u039f\u03a3 ABZ[",
         "\u03bf\u03b4\u03bf\u03c3 abz["},
        {{NORM_LOWERCASE, "", ""}, "\u0130x\u1c89", "i\u0307x\u1c8a"},
        {{NORM_STRIP_ACCENTS, "", ""}, "e\u0301\u00e9 \u0939\u093f", "e\u00e9 \u0939"},
        {{NORM_NMT, "", ""}, "a\tb\u200b\x01\u2581\x7f.", "a b  ."},
        {{NORM_STRIP, "l", ""}, " \u3000\ta ", "a "},
        {{NORM_STRIP, "r", ""}, " a\xc2\x85 \n", " a"},
        {{NORM_STRIP, "lr", ""}, " \u2028 ", ""},
        {{NORM_PREPEND, "\u2581", ""}, "a", "\u2581a"},
        {{NORM_PREPEND, "\u2581", ""}, "", ""},
        {{NORM_REPLACE, " ", "\u2581"}, " a  b", "\u2581a\u2581\u2581b"},
        {{NORM_REPLACE, "aa", "a"}, "aaaaa", "aaa"},
        {{NORM_REPLACE, "abcde", ""}, "abcdabcdeabcde", "abcd"},
        {{NORM_REPLACE, "x", ""}, "xx", ""},
        {{NORM_REPLACE_REGEX, " {2,}", "_"}, "a b   c  ", "a b_c_"},
    };

    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++)
        check(&CASE[i].step, 1, CASE[i].in, CASE[i].want);
}

static void rows_of_steps(void **state)
{
    (void)state;
    static const struct step LLAMA[] = {{NORM_PREPEND, "\u2581", ""},
                                        {NORM_REPLACE, " ", "\u2581"}};
    static const struct step MANY[] = {
        {NORM_STRIP, "lr", ""},
        {NORM_NFD, "", ""},
        {NORM_STRIP_ACCENTS, "", ""},
        {NORM_LOWERCASE, "", ""},
        {NORM_REPLACE_REGEX, "\\s+", " "},
        {NORM_STRIP, "r", ""},
    };

    check(LLAMA, 2, " a b", "\u2581\u2581a\u2581b");
    check(MANY, 6, "  \u00c9T\u00c9 \n Gar\u00c7ON ", "ete garcon");
    check(MANY, 6, "plain", "plain");
    check(MANY, 6, "   ", "");
    check(MANY, 0, "A", "A");
}

/* Marks in the wrong order by the hundred thousand: linear, and as UAX #15 has it. */
static void normal_form_of_many_marks(void **state)
{
    enum { N = 200000 };
    static const struct step NFC = {NORM_NFC, "", ""};
    (void)state;
    struct slu_buf in = SLU_BUF_INIT, want = SLU_BUF_INIT;
    struct slu_err err = SLU_ERR_INIT;

    assert_int_equal(slu_buf_append(&in, "e", 1, &err), SLU_OK);
    for (int i = 0; i < N; i++) /* classes 230 and 220 */
        assert_int_equal(slu_buf_append(&in, "\u0301\u0323", 4, &err), SLU_OK);
    /* e with dot below, then the other dots, then the acutes. */
    assert_int_equal(slu_buf_append(&want, "\u1eb9", 3, &err), SLU_OK);
    for (int i = 0; i < 2 * N - 1; i++)
        assert_int_equal(
            slu_buf_append(&want, i < N - 1 ? "\u0323" : "\u0301", 2, &err), SLU_OK);
    assert_int_equal(slu_buf_append(&in, "", 1, &err), SLU_OK);
    assert_int_equal(slu_buf_append(&want, "", 1, &err), SLU_OK);
    check(&NFC, 1, (const char *)in.data, (const char *)want.data);
    slu_buf_release(&in);
    slu_buf_release(&want);
}

static void damaged_specs(void **state)
{
    static const struct step STEP[] = {{NORM_PREPEND, "ab", ""},
                                       {NORM_REPLACE, "a", "b"}};
    (void)state;
    struct tok_norm *norm = make(STEP, 2), *again;
    struct slu_err err = SLU_ERR_INIT;
    unsigned bad = 0;

    for (size_t n = 0; n < norm->spec.len; n++) {
        uint8_t *copy = malloc(n + 1); /* so that a sanitizer sees a byte too many */
        memcpy(copy, norm->spec.data, n);
        if (norm_from_spec(&again, copy, n, &err) < 0)
            bad++;
        else
            norm_free(again);
        free(copy);
    }
    assert_int_equal(bad, norm->spec.len - 2); /* none and the first step are specs */
    assert_int_equal(norm_from_spec(&again, "\x0c\0\0\0\0\0\0\0\0", 9, &err),
                     SLU_E_FORMAT);
    assert_int_equal(norm_add(norm, NORM_REPLACE, "", 0, "x", 1, &err),
                     SLU_E_UNSUPPORTED);
    assert_int_equal(norm_add(norm, NORM_REPLACE_REGEX, "a*", 2, "x", 1, &err),
                     SLU_E_UNSUPPORTED);
    norm_free(norm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps),
        cmocka_unit_test(rows_of_steps),
        cmocka_unit_test(normal_form_of_many_marks),
        cmocka_unit_test(damaged_specs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
