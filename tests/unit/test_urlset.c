/* test_urlset.c - lib/filter/urlset.h: which URLs a list of hosts and URLs has. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/filter/urlset.h"

/* Reads a list of this text. */
static int read_text(struct slu_idset **s, const char *text, uint64_t most_byte,
                     struct slu_err *err)
{
    char path[] = "/tmp/sluice-urls-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    int rc = slu_urlset_read(s, path, most_byte, err);
    unlink(path);
    return rc;
}

static bool has(const struct slu_idset *s, const char *url)
{
    struct slu_buf scratch = SLU_BUF_INIT;
    bool yes;
    assert_int_equal(slu_urlset_has(s, url, strlen(url), &scratch, &yes, NULL), SLU_OK);
    slu_buf_release(&scratch);
    return yes;
}

static void members(void **state)
{
    static const char list[] = "\xef\xbb\xbf# hosts\n"
                               ".dot.example\n"
                               "*.star.example\n"
                               "frag.example#x\n"
                               "bad.example\r\n"
                               "\n"
                               "  UPPER.Example.  \n"
                               "com\n"
                               "10.0.0.1\n"
                               "[::1]\n"
                               "host.example:8080\n"
                               "http://one.example\n"
                               "two.example/a/b?c=d\n"
                               "HTTPS://me:pw@Three.Example:443/Path#part\n"
                               "//four.example/x";
    static const char *const in[] = {
        "http://bad.example",
        "http://dot.example/",
        "http://www.dot.example/x",
        "http://star.example/",
        "http://a.b.star.example/x",
        "http://frag.example/other",
        "http://www.frag.example/",
        "https://bad.example/",
        "HTTP://WWW.BAD.EXAMPLE./x",
        "bad.example",
        "a.b.c.bad.example:80/y?z",
        "upper.example/q",
        "http://x.com/",
        "http://10.0.0.1/x",
        "http://[::1]:80/x",
        "http://host.example/x",
        "http://one.example/",
        "one.example",

        "ftp://two.example/a/b?c=d",
        "http://u@two.example/a/b?c=d#frag",
        "three.example/Path",
        "  http://three.example/Path  ",
        "http://four.example/x",
    };
    static const char *const out[] = {
        "",
        "http://",
        "/",
        "#",
        "http:///x",
        "http://bad.example.org/",
        "http://notbad.example/",
        "http://example/",
        "http://www.one.example/",
        "http://one.example/x",
        "http://two.example/a/b",
        "http://two.example/A/b?c=d",
        "http://two.example/a/b?c=d&e",
        "http://two.example/",
        "http://three.example/path",
        "http://x.com.org/bad.example",
        "http://x.org/?u=bad.example",
        "# hosts",
        "http://bad.example@ok.example/",
        "http://ok.example#bad.example",
        "mailto:me",
        "http://0.0.0.1/",
    };
    struct slu_err err = SLU_ERR_INIT;
    struct slu_idset *s;
    (void)state;
    if (read_text(&s, list, 1 << 20, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(slu_idset_count(s), 13);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        if (!has(s, in[i]))
            fail_msg("%s is not in it", in[i]);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        if (has(s, out[i]))
            fail_msg("%s is in it", out[i]);
    slu_idset_free(s);
}

static void refused(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_idset *s;
    char many[64000];
    size_t n = 0;
    (void)state;
    assert_int_equal(read_text(&s, "a.example\n\nhttp:///x\n", 1 << 20, &err),
                     SLU_E_FORMAT);
    assert_non_null(strstr(err.msg, ": line 3: 'http:///x' has no host"));
    assert_null(s);
    for (unsigned i = 0; i < 4000; i++)
        n += (size_t)snprintf(many + n, sizeof many - n, "h%u.example\n", i);
    assert_int_equal(read_text(&s, many, 64 << 10, &err), SLU_E_LIMIT);
    assert_int_equal(read_text(&s, many, 1 << 20, &err), SLU_OK);
    assert_int_equal(slu_idset_count(s), 4000);
    assert_true(slu_idset_byte(s) >= 64000 && slu_idset_byte(s) <= 1 << 20);
    assert_true(has(s, "http://h3999.example/") && !has(s, "http://h4000.example/"));
    slu_idset_free(s);
    assert_int_equal(read_text(&s, "\n# none\n\n", 1 << 20, &err), SLU_OK);
    assert_int_equal(slu_idset_count(s), 0);
    assert_false(has(s, "http://a.example/"));
    slu_idset_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
