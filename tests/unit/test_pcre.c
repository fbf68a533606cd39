/* lib/base/pcre.h: what matches, and the limits of the interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/pcre.h"

#define PLAIN "(*NO_START_OPT)(*NO_AUTO_POSSESS)" /* steps can be counted by hand */

static int find(const char *pattern, bool jit, const char *text, size_t n,
                size_t *start, size_t *end, struct slu_err *err)
{
    const struct slu_pcre_cfg cfg = {.jit = jit, .refused = SLU_E_USAGE};
    struct slu_pcre *r;
    struct slu_pcre_run *m;
    size_t at;

    *err = (struct slu_err)SLU_ERR_INIT;
    assert_int_equal(slu_pcre_new(&r, pattern, strlen(pattern), &cfg, &at, err),
                     SLU_OK);
    assert_int_equal(slu_pcre_run_new(&m, jit, err), SLU_OK);
    int rc = slu_pcre_find(r, m, text, n, 0, start, end, err);
    slu_pcre_run_free(m);
    slu_pcre_free(r);
    return rc;
}

static void matches(void **state)
{
    struct slu_err err;
    size_t start = 0, end = 0;

    (void)state;
    for (int jit = 0; jit < 2; jit++) {
        assert_int_equal(find("b+", jit, "abbc", 4, &start, &end, &err), SLU_OK);
        assert_int_equal(start, 1);
        assert_int_equal(end, 3);
        assert_int_equal(find("x", jit, "abbc", 4, &start, &end, &err), SLU_EOF);
        assert_int_equal(find("^$", jit, NULL, 0, &start, &end, &err), SLU_OK);
        assert_int_equal(find("b$", jit, "ab\nc", 4, &start, &end, &err), SLU_EOF);
        assert_int_equal(find("a.", jit, "a\r\n", 3, &start, &end, &err), SLU_OK);
    }
}

/* The interpreter has a limit of its own, below PCRE2's for short texts and above it for
 * long ones; with a JIT there is none. */
static void limits(void **state)
{
    enum { LONG = 12000000 };
    char *text = malloc(LONG);
    struct slu_err err;
    size_t start, end;

    (void)state;
    assert_non_null(text);
    memset(text, 'a', LONG);
    /* 57,314 steps, and with each byte 1.6 times as many: 2.7 * 10^6. */
    assert_int_equal(find(PLAIN "(?:a|aa)*b", false, text, 20, &start, &end, &err),
                     SLU_EOF);
    assert_int_equal(find(PLAIN "(?:a|aa)*b", false, text, 28, &start, &end, &err),
                     SLU_E_LIMIT);
    assert_string_equal(err.msg, "match limit exceeded");
    assert_int_equal(find(PLAIN "(?:a|aa)*b", true, text, 28, &start, &end, &err),
                     SLU_EOF);
    /* One limit for all places at which a match may begin, and for what a step passes:
     * of `a*[bc]`, n places with 3 steps and half as many bytes each on average. */
    assert_int_equal(find("a*[bc]", false, text, 1400, &start, &end, &err), SLU_EOF);
    assert_int_equal(find("a*[bc]", false, text, 1500, &start, &end, &err),
                     SLU_E_LIMIT);
    assert_int_equal(find("^(?:a(?=a*)|b)+$", false, text, 1400, &start, &end, &err),
                     SLU_OK);
    assert_int_equal(find("^(?:a(?=a*)|b)+$", false, text, 1500, &start, &end, &err),
                     SLU_E_LIMIT);
    /* A reference compares all of a group, and fails at its end. */
    text[8000] = 'd';
    assert_int_equal(find("^(a*d)(?:\\1|a)*$", false, text, 16000, &start, &end, &err),
                     SLU_E_LIMIT);
    text[8000] = 'a';
    /* A step for each byte. */
    assert_int_equal(find(PLAIN "^a*b", false, text, LONG, &start, &end, &err),
                     SLU_EOF);
    free(text);
}

static void refused(void **state)
{
    const struct slu_pcre_cfg cfg = {.refused = SLU_E_UNSUPPORTED};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_pcre *r;
    size_t at = 0;
    static const struct {
        const char *pattern;
        int at; /* of a repeat that is refused, or -1 */
    } repeat[] = {{"a{1000}b{3,1000}", -1},
                  {"[]{1001}]", -1},
                  {"\\x{1001}\\Qa{1001}\\E", -1},
                  {"\\{1001}", -1},
                  {"[^]\\]{1001}]a", -1},
                  {"a{1001", -1},
                  {"a{5,1001}", 1},
                  {"(?:ab){1001,}", 6},
                  {"[a]{99999}", 3},
                  {"\\p{Lu}{1001}", 6}};

    (void)state;
    assert_int_equal(slu_pcre_new(&r, "ab(", 3, &cfg, &at, &err), SLU_E_UNSUPPORTED);
    assert_null(r);
    assert_int_equal(at, 3);
    assert_string_equal(err.msg,
                        "PCRE2 refuses the pattern: missing closing parenthesis");
    for (unsigned i = 0; i < sizeof repeat / sizeof *repeat; i++) {
        const char *p = repeat[i].pattern;
        int rc = slu_pcre_new(&r, p, strlen(p), &cfg, &at, &err);
        slu_pcre_free(r);
        assert_int_equal(rc, repeat[i].at < 0 ? SLU_OK : SLU_E_UNSUPPORTED);
        assert_int_equal(at, repeat[i].at < 0 ? 0 : repeat[i].at);
    }
    assert_string_equal(err.msg,
                        "a repeat of more than 1000 times; expected at most 1000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches),
        cmocka_unit_test(limits),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
