/* test_sources.c - formats/text/sources.h: order, names, and shares that together are
 * the whole. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/text/input.h"
#include "formats/text/sources.h"

static char top[64], before[4096];

static int set_up(void **state)
{
    (void)state;
    strcpy(top, "/tmp/sluice-sources-XXXXXX");
    return getcwd(before, sizeof before) && mkdtemp(top) ? chdir(top) : -1;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", top);
    return chdir(before) || system(command);
}

static void make(const char *path, size_t n_byte)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    while (n_byte--)
        fputc('x', f);
    assert_int_equal(fclose(f), 0);
}

static void resolve(struct slu_sources *s, const char *const *path, size_t n,
                    const char *list)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_sources_cfg cfg = {.path = path, .n_path = n, .list = list};
    if (slu_sources_resolve(s, &cfg, &err) != SLU_OK)
        fail_msg("%s", err.msg);
}

static void expect_names(const struct slu_sources *s, const char *names)
{
    char all[1024] = "";
    for (size_t i = 0; i < s->n; i++) {
        strcat(all, i ? " " : "");
        strcat(all, s->item[i].name);
    }
    assert_string_equal(all, names);
}

static void order_and_names(void **state)
{
    static const char *const folder[] = {"d"}, *const dotted[] = {"./d/../d//"},
                             *const two[] = {"d/b", "e.txt"},
                             *const one[] = {"d/b/z.txt"},
                             *const mixed[] = {"d/b.txt", "-"},
                             *const missing[] = {"no"};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_sources s;
    char absolute[128];
    (void)state;

    assert_int_equal(mkdir("d", 0700) | mkdir("d/b", 0700) | mkdir("d/.h", 0700), 0);
    make("d/b/z.txt", 3);
    make("d/b.txt", 2);
    make("d/B.txt", 1);
    make("d/\xc3\xa9", 1);
    make("d/.h/x", 1);
    make("d/.x", 1);
    make("e.txt", 1);
    assert_int_equal(symlink("../e.txt", "d/link"), 0);
    assert_int_equal(mkfifo("d/z", 0600) | mkfifo("d/b/p", 0600), 0);
    assert_int_equal(mkfifo("d/.p", 0600) | symlink("/dev/zero", "d/q"), 0);

    resolve(&s, folder, 1, NULL); /* '.' < '/' in bytes */
    expect_names(&s, "B.txt b.txt b/z.txt link \xc3\xa9");
    assert_int_equal(s.n_hidden, 3);
    assert_int_equal(s.n_special, 3);
    assert_string_equal(s.special, "d/b/p");
    assert_int_equal(s.item[2].size_byte, 3);
    slu_sources_release(&s);

    resolve(&s, dotted, 1, NULL);
    expect_names(&s, "B.txt b.txt b/z.txt link \xc3\xa9");
    slu_sources_release(&s);

    snprintf(absolute, sizeof absolute, "%s/d", top);
    const char *const abs_path[] = {absolute};
    resolve(&s, abs_path, 1, NULL);
    expect_names(&s, "B.txt b.txt b/z.txt link \xc3\xa9");
    slu_sources_release(&s);

    resolve(&s, two, 2, NULL);
    expect_names(&s, "d/b/z.txt e.txt");
    slu_sources_release(&s);

    resolve(&s, one, 1, NULL);
    expect_names(&s, "z.txt");
    slu_sources_release(&s);

    resolve(&s, mixed, 2, NULL);
    expect_names(&s, "b.txt -");
    slu_sources_release(&s);

    FILE *list = fopen("list", "w");
    fputs("e.txt\n\nd/b.txt\nd/b", list);
    fclose(list);
    resolve(&s, NULL, 0, "list");
    expect_names(&s, "e.txt d/b.txt d/b/z.txt");
    slu_sources_release(&s);

    struct slu_sources_cfg cfg = {.path = missing, .n_path = 1};
    assert_int_equal(slu_sources_resolve(&s, &cfg, &err), SLU_E_IO);
    assert_non_null(strstr(err.msg, "no: "));
    slu_sources_release(&s);
}

static void refused(void **state)
{
    static const char *const empty[] = {"empty"}, *const twice[] = {"-", "-"},
                             *const loop[] = {"loop"};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_sources s;
    struct slu_sources_cfg cfg = {empty, 1, NULL};
    (void)state;

    assert_int_equal(mkdir("empty", 0700) | mkdir("loop", 0700), 0);
    make("empty/.hidden", 1);
    assert_int_equal(slu_sources_resolve(&s, &cfg, &err), SLU_E_USAGE);
    slu_sources_release(&s);

    cfg = (struct slu_sources_cfg){twice, 2, NULL};
    assert_int_equal(slu_sources_resolve(&s, &cfg, &err), SLU_E_USAGE);
    slu_sources_release(&s);

    make("loop/f", 1);
    assert_int_equal(symlink("..", "loop/up"), 0);
    cfg = (struct slu_sources_cfg){loop, 1, NULL};
    assert_int_equal(slu_sources_resolve(&s, &cfg, &err), SLU_E_IO);
    slu_sources_release(&s);

    cfg = (struct slu_sources_cfg){NULL, 0, NULL};
    assert_int_equal(slu_sources_resolve(&s, &cfg, &err), SLU_OK);
    expect_names(&s, "-");
    assert_int_equal(slu_sources_share(&s, 0, 1, slu_input_splittable, NULL, &err),
                     SLU_OK);
    assert_int_equal(slu_sources_share(&s, 0, 2, slu_input_splittable, NULL, &err),
                     SLU_E_USAGE);
    assert_int_equal(slu_sources_share(&s, 2, 2, slu_input_splittable, NULL, &err),
                     SLU_E_USAGE);
    slu_sources_release(&s);
}

/* Every byte of every file is in exactly one share, and shares follow one another. */
static void shares(void **state)
{
    static const size_t size[] = {0, 1, 500, 0, 30000, 7, 7, 1, 0};
    static const char *const suffix[] = {"jsonl", "txt", "jsonl.gz"};
    static const char *const folder[] = {"s"};
    struct slu_err err = SLU_ERR_INIT;
    (void)state;

    assert_int_equal(mkdir("s", 0700), 0);
    for (size_t i = 0; i < 27; i++) {
        char path[64];
        snprintf(path, sizeof path, "s/%02zu.%s", i, suffix[i % 3]);
        make(path, size[i / 3]);
    }
    for (uint64_t n = 1; n < 70; n += n < 8 ? 1 : 13) {
        size_t at = 0;    /* the source … */
        uint64_t off = 0; /* … and the byte in it where the next share begins */
        uint64_t most = 0, sum = 0;
        for (uint64_t part = 0; part < n; part++) {
            struct slu_sources s;
            uint64_t got = 0;
            resolve(&s, folder, 1, NULL);
            assert_int_equal(
                slu_sources_share(&s, part, n, slu_input_splittable, NULL, &err),
                SLU_OK);
            for (size_t i = s.first; i < s.end; i++) {
                if (off == UINT64_MAX) {
                    at++;
                    off = 0;
                }
                assert_int_equal(i, at);
                assert_int_equal(s.item[i].from, off);
                assert_true(s.item[i].from < s.item[i].to);
                off = s.item[i].to;
                uint64_t to = off < s.item[i].size_byte ? off : s.item[i].size_byte;
                if (to > s.item[i].from)
                    got += (to - s.item[i].from) * (i % 3 == 2 ? 4 : 1);
            }
            most = got > most ? got : most;
            sum += got;
            slu_sources_release(&s);
        }
        assert_int_equal(at, 26);
        assert_true(off == UINT64_MAX);
        assert_true(most <= sum / n + 4 * 30000 + 1);
    }
}

/* Compressed files of about one size, as many as shares: one each. */
static void one_each(void **state)
{
    static const char *const folder[] = {"e"};
    struct slu_err err = SLU_ERR_INIT;
    (void)state;

    assert_int_equal(mkdir("e", 0700), 0);
    for (size_t i = 0; i < 16; i++) {
        char path[64];
        snprintf(path, sizeof path, "e/%02zu.jsonl.gz", i);
        make(path, 1000 + i * 7 % 16);
    }
    for (uint64_t part = 0; part < 16; part++) {
        struct slu_sources s;
        resolve(&s, folder, 1, NULL);
        assert_int_equal(
            slu_sources_share(&s, part, 16, slu_input_splittable, NULL, &err), SLU_OK);
        assert_int_equal(s.first, part);
        assert_int_equal(s.end, part + 1);
        slu_sources_release(&s);
    }
}

/* Expects these names of folder c for the globs, and n_lower files of a lower rank. */
static void expect_of_folder(const char *include, const char *exclude,
                             const char *names, uint64_t n_lower)
{
    static const char *const path[] = {"c/"};
    struct slu_sources_cfg cfg = {.path = path,
                                  .n_path = 1,
                                  .include = include,
                                  .exclude = exclude,
                                  .rank = slu_input_rank};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_sources s;
    int rc = slu_sources_resolve(&s, &cfg, &err);
    assert_int_equal(rc, names ? SLU_OK : SLU_E_USAGE);
    if (names)
        expect_names(&s, names);
    assert_int_equal(s.n_lower, n_lower);
    assert_int_equal(s.lower != NULL, n_lower != 0);
    slu_sources_release(&s);
}

static void files_beside_the_data_are_left_out(void **state)
{
    (void)state;
    assert_int_equal(mkdir("c", 0700) | mkdir("c/x", 0700), 0);
    make("c/README.md", 1);
    make("c/SHA256SUMS", 1);
    expect_of_folder(NULL, NULL, "README.md SHA256SUMS", 0);
    make("c/a.json.gz", 1);
    make("c/x/b.json", 1);
    expect_of_folder(NULL, NULL, "a.json.gz x/b.json", 2);
    make("c/d.JSONL.zst", 1);
    make("c/x/e.txt", 1);
    make("c/x/e.tgz", 1);
    make("c/f.pq", 1);
    make("c/x/jsonl", 1);
    expect_of_folder(NULL, NULL, "d.JSONL.zst f.pq x/e.tgz x/e.txt", 5);
    expect_of_folder("*", NULL,
                     "README.md SHA256SUMS a.json.gz d.JSONL.zst f.pq "
                     "x/b.json x/e.tgz x/e.txt x/jsonl",
                     0);
    expect_of_folder("*.md,x/*", "*.txt,x/b*", "README.md x/e.tgz x/jsonl", 0);
    expect_of_folder(NULL, "*.pq,e.*,d.*", "a.json.gz x/b.json", 3);
    expect_of_folder(NULL, "", "d.JSONL.zst f.pq x/e.tgz x/e.txt", 5);
    expect_of_folder("nothing", NULL, NULL, 0);
    expect_of_folder(NULL, "*", NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(order_and_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_beside_the_data_are_left_out, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shares, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_each, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
