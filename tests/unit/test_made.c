/* test_made.c - two records: whether they differ, and in which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/flow/made.h"

#define RUN "{\"program\":\"dedup\",\"bytes\":7,\"arguments\":"

static void differs(const char *was, const char *now, const char *how)
{
    struct slu_err err = SLU_ERR_INIT;
    char text[256];
    bool is = !how;

    assert_int_equal(slu_made_compare(was, now, text, sizeof text, &is, &err), SLU_OK);
    assert_int_equal(is, how != NULL);
    if (how)
        assert_string_equal(text, how);
}

static void test_differences(void **state)
{
    (void)state;
    differs(RUN "[\"--near\"],\"seed\":1}", RUN "[\"--near\"],\"seed\":1}", NULL);
    differs(RUN "[\"--near\"],\"seed\":1}", RUN "[\"--near\"],\"seed\":2}",
            "was made with --seed=1, now --seed=2");
    differs(RUN "[\"--a=1\",\"--b\"]}", RUN "[\"--b\",\"--a=1\"]}", NULL);
    differs(RUN "[\"--a=1\"]}", RUN "[\"--a=2\"]}", "was made with --a=1, now --a=2");
    differs(RUN "[\"--a=1\"]}", RUN "[\"--ab=1\"]}",
            "was made with --a=1, now without");
    differs(RUN "[]}", RUN "[\"--a=1\"]}", "was made without --a, now --a=1");
    differs(RUN "[],\"stage\":\"x\"}", RUN "[],\"stage\":\"y\"}",
            "was made by --stage x, now y");
    differs(RUN "[],\"part\":[1,2]}", RUN "[]}", "was made as part 1/2, now the whole");
    differs("{\"program\":\"pack\"}", "{\"program\":\"dedup\"}",
            "was made by pack, not dedup");
    differs("flow=near stage=sign", RUN "[]}",
            "was made by an earlier version of sluice");
    differs("{\"program\":\"dedup\"}", RUN "[]}",
            "was made by another version, which writes other bytes than this "
            "one, " SLU_VERSION);
    differs("{\"program\":\"dedup\",\"version\":\"0.1\"}", RUN "[]}",
            "was made by version 0.1, which writes other bytes than this "
            "one, " SLU_VERSION);
}

static void test_files_and_facts(void **state)
{
    (void)state;
    differs(RUN "[],\"contents\":[\"--ids=1\"]}", RUN "[],\"contents\":[\"--ids=2\"]}",
            "was made with other contents of the file of --ids");
    differs(RUN "[],\"contents\":[\"--ids=1\"]}", RUN "[]}",
            "was made with --ids, now without");
    differs(RUN "[]}", RUN "[],\"contents\":[\"--ids=1\"]}", "was made without --ids");
    differs(RUN "[\"--m=a\"],\"contents\":[\"--m=1\"]}",
            RUN "[\"--m=a\"],\"contents\":[\"--m=2\"]}",
            "was made with other contents of the file of --m");
    differs(RUN "[],\"contents\":[\"set 1=1\",\"set 2=2\"]}",
            RUN "[],\"contents\":[\"set 1=1\",\"set 2=1\"]}",
            "was made with other contents of set 2");
    differs(RUN "[],\"contents\":[\"--a=1\",\"--a=2\"]}",
            RUN "[],\"contents\":[\"--a=1\",\"--a=2\"]}", NULL);
    differs(RUN "[],\"contents\":[\"--a=1\",\"--a=2\"]}",
            RUN "[],\"contents\":[\"--a=2\",\"--a=1\"]}",
            "was made with other contents of the file of --a");
    differs(RUN "[],\"contents\":[\"--a=1\",\"--a=2\",\"--b=3\"]}",
            RUN "[],\"contents\":[\"--a=1\",\"--b=3\"]}",
            "was made with more files of --a");
    differs(RUN "[],\"contents\":[\"--a=1\",\"--b=3\"]}",
            RUN "[],\"contents\":[\"--a=1\",\"--a=1\",\"--b=3\"]}",
            "was made with fewer files of --a");
    differs(RUN "[],\"facts\":[\"bins=1,2\"]}", RUN "[],\"facts\":[\"bins=1\"]}",
            "was made with bins=1,2, now bins=1");
}

static void test_lenient(void **state)
{
    static const char skip[] = RUN "[],\"lenient\":[\"--on=skip\"]}";

    (void)state;
    differs(RUN "[]}", skip, NULL);
    differs(RUN "[],\"lenient\":[\"--on=skip\"],\"rejected\":0}", RUN "[]}", NULL);
    differs(RUN "[],\"lenient\":[\"--on=skip\"],\"rejected\":1}", RUN "[]}",
            "was made with --on=skip, now without");
    differs(skip, RUN "[]}", "was made with --on=skip, now without");
    differs(RUN "[\"--on=replace\"]}", skip,
            "was made with --on=replace, now --on=skip");
    differs(skip, RUN "[\"--on=replace\"]}",
            "was made with --on=skip, now --on=replace");
}

static void test_stages(void **state)
{
    struct slu_made m = {.program = "dedup", .stage = "sign"}, copy;
    struct slu_buf t = SLU_BUF_INIT;

    (void)state;
    assert_int_equal(slu_made_add(&m, SLU_MADE_OPTION, 0, "--near", NULL), 0);
    assert_int_equal(slu_made_add(&m, SLU_MADE_OPTION, 2, "--cap=\"3\"", NULL), 0);
    assert_int_equal(slu_made_fact(&m, NULL, "unit=%s", "word/2"), 0);
    assert_int_equal(slu_made_put(&m, 1, &t, NULL), 0);
    assert_int_equal(slu_buf_append(&t, "", 1, NULL), 0);
    assert_non_null(strstr((char *)t.data,
                           ", \"stage\": \"sign\", \"arguments\": "
                           "[\"--near\"], \"facts\": [\"unit=word/2\"], "
                           "\"seed\": 0"));
    assert_int_equal(slu_made_copy(&copy, &m, NULL), 0);
    slu_buf_clear(&t);
    assert_int_equal(slu_made_put(&copy, 2, &t, NULL), 0);
    assert_int_equal(slu_buf_append(&t, "", 1, NULL), 0);
    assert_non_null(strstr((char *)t.data, "[\"--near\", \"--cap=\\\"3\\\"\"]"));
    assert_null(strstr((char *)t.data, "stage"));
    slu_made_release(&m);
    slu_made_release(&copy);
    slu_buf_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences), cmocka_unit_test(test_files_and_facts),
        cmocka_unit_test(test_lenient), cmocka_unit_test(test_stages)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
