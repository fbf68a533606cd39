/* test_workfile.c - work files: contents and names are written and read; a changed byte
 * is reported; a file that was made otherwise, or is missing, is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/io.h"
#include "lib/flow/workfile_names.h"
#include "lib/flow/workfile_stage.h"

static char folder[] = "/var/tmp/sluice-workfile-XXXXXX";
static const char param[] = "length=64 method=bfd";

#define KIND  SLU_WORKFILE_FLOW
#define N_BIG 100000 /* numbers: more than the reader's buffer */

static void head_of(struct slu_workfile_head *h)
{
    *h = (struct slu_workfile_head){
        .kind = KIND, .part = 1, .of = 3, .inputs = {7, 8}, .param = param};
    h->count[2] = 42;
}

static void write_names(struct slu_workfile_out *o)
{
    static const uint64_t off[] = {0, 1, 3};
    static const uint8_t flags[] = {0, SLU_VOCAB_SPECIAL};
    const struct slu_vocab_table v = {
        .n = 2, .off = off, .bytes = (const uint8_t *)"abc", .flags = flags};
    struct slu_header h;
    struct slu_names *names;
    uint32_t number;

    slu_header_init(&h);
    h.vocab_size = 2;
    h.bucket[0] = 64;
    h.n_bucket = 1;
    assert_int_equal(slu_header_add_step(&h, "decompose", "1", "--min 64", 5, NULL), 0);
    assert_int_equal(slu_names_new(&names, NULL), 0);
    assert_int_equal(slu_names_set_source(names, 3, "three.jsonl", NULL), 0);
    assert_int_equal(slu_names_set_source(names, 5000, "far.jsonl", NULL), 0);
    assert_int_equal(slu_names_domain_number(names, "web", 3, &number, NULL), 0);
    assert_int_equal(slu_names_domain_number(names, "code", 4, &number, NULL), 0);
    slu_names_lend_vocab(names, &v);
    assert_int_equal(slu_workfile_put_stream(o, &h, names, NULL), 0);
    assert_int_equal(slu_workfile_section(o, 1, NULL), 0);
    assert_int_equal(slu_workfile_put_vocab(o, names, NULL), 0);
    slu_names_free(names);
    slu_header_release(&h);
}

static void write_file(const char *path)
{
    struct slu_workfile_out *o;
    struct slu_workfile_head h;

    head_of(&h);
    assert_int_equal(slu_workfile_create(&o, path, KIND, NULL), 0);
    write_names(o);
    assert_int_equal(slu_workfile_section(o, 2, NULL), 0);
    for (uint64_t i = 0; i < N_BIG; i++)
        assert_int_equal(slu_workfile_put(o, &i, 1, NULL), 0);
    assert_int_equal(slu_workfile_put_raw(o, "twelve bytes", 12, NULL), 0);
    assert_int_equal(slu_workfile_tell(o), N_BIG + 2);
    assert_int_equal(slu_workfile_close(o, &h, 3, NULL), 0);
}

static char *path_of(const char *name, uint64_t part, uint64_t of)
{
    char *path;

    assert_int_equal(slu_work_path(folder, name, part, of, &path, NULL), 0);
    return path;
}

/* All of the file, as those who use it read it; the first fault. */
static int read_file(const char *path, struct slu_names *names)
{
    struct slu_workfile *f;
    struct slu_workfile_stream s = {.domain = NULL};
    static uint64_t v[N_BIG + 2];
    int rc = slu_workfile_open(&f, path, KIND, NULL);

    if (rc == SLU_OK)
        rc = slu_workfile_get_stream(f, 0, names, &s, NULL);
    if (rc == SLU_OK)
        rc = slu_workfile_get_vocab(f, 1, s.header.vocab_size, names, NULL);
    if (rc == SLU_OK) {
        assert_int_equal(s.header.bucket[0], 64);
        assert_string_equal(s.header.step[0].arguments, "--min 64");
        assert_int_equal(s.n_domain, 2);
        rc = slu_workfile_begin(f, 2, NULL);
    }
    if (rc == SLU_OK)
        rc = slu_workfile_get(f, 10, v, NULL);
    if (rc == SLU_OK)
        rc = slu_workfile_get(f, N_BIG - 8, v + 10, NULL);
    if (rc == SLU_OK) {
        assert_int_equal(slu_workfile_left(f), 0);
        assert_int_equal(slu_workfile_get(f, 1, v, NULL), SLU_E_CHECKSUM);
        rc = slu_workfile_end(f, NULL);
    }
    for (uint64_t i = 0; rc == SLU_OK && i < N_BIG; i++)
        assert_int_equal(v[i], i);
    if (rc == SLU_OK)
        assert_memory_equal(v + N_BIG, "twelve bytes\0\0\0\0", 16);
    slu_workfile_stream_release(&s);
    slu_workfile_free(f);
    return rc;
}

static void test_there_and_back(void **state)
{
    char *path = path_of("scatter", 1, 3);
    struct slu_names *names;
    uint32_t number;
    const struct slu_vocab_table *v;

    write_file(path);
    assert_int_equal(slu_names_new(&names, NULL), 0);
    assert_int_equal(slu_names_domain_number(names, "code", 4, &number, NULL), 0);
    assert_int_equal(read_file(path, names), 0);
    assert_string_equal(slu_names_source(names, 3), "three.jsonl");
    assert_string_equal(slu_names_source(names, 5000), "far.jsonl");
    assert_null(slu_names_source(names, 4));
    assert_string_equal(slu_names_domain(names, 0), "code");
    assert_string_equal(slu_names_domain(names, 1), "web");
    v = slu_names_vocab(names);
    assert_int_equal(v->off[2], 3);
    assert_int_equal(v->flags[1], SLU_VOCAB_SPECIAL);
    slu_names_free(names);
    free(path);
    (void)state;
}

static void write_bytes(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb"); /* not synced, unlike the real ones: there are many */

    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Every byte of what is before the numbers and behind them, and some of these. */
static void test_damaged(void **state)
{
    char *path = path_of("scatter", 1, 3), *bad = path_of("bad", 0, 0);
    struct slu_buf whole = SLU_BUF_INIT;

    assert_int_equal(slu_read_whole(&whole, path, 1 << 24, NULL), 0);
    for (size_t i = 0; i<whole.len; i += i> 600 && i + 700 < whole.len ? 997 : 1) {
        struct slu_names *names;
        whole.data[i] ^= 1;
        write_bytes(bad, whole.data, whole.len);
        whole.data[i] ^= 1;
        assert_int_equal(slu_names_new(&names, NULL), 0);
        assert_true(read_file(bad, names) < 0);
        slu_names_free(names);
    }
    for (size_t n = 0; n < whole.len; n += n + 300 < whole.len && n > 300 ? 9973 : 1) {
        struct slu_names *names;
        write_bytes(bad, whole.data, n);
        assert_int_equal(slu_names_new(&names, NULL), 0);
        assert_true(read_file(bad, names) < 0);
        slu_names_free(names);
    }
    unlink(bad);
    slu_buf_release(&whole);
    free(path);
    free(bad);
    (void)state;
}

static void test_of_a_stage(void **state)
{
    char *path = path_of("scatter", 1, 3), *other;
    struct slu_workfile_head h;
    struct slu_workfile *f;
    struct slu_err err = SLU_ERR_INIT;
    uint64_t of;

    head_of(&h);
    assert_int_equal(slu_work_open(folder, "scatter", &h, &f, &err), 0);
    assert_int_equal(slu_workfile_head(f)->count[2], 42);
    slu_workfile_free(f);
    h.part = 2;
    assert_int_equal(slu_work_open(folder, "scatter", &h, &f, &err), SLU_E_MISMATCH);
    assert_non_null(strstr(err.msg, "is missing; run stage scatter for part 2/3"));
    assert_int_equal(slu_work_parts(folder, "count", &of, &err), SLU_E_MISMATCH);
    assert_int_equal(slu_work_parts(folder, "scatter", &of, &err), 0);
    assert_int_equal(of, 3);
    other = path_of("scatter", 0, 4);
    write_bytes(other, "", 0);
    assert_int_equal(slu_work_parts(folder, "scatter", &of, &err), SLU_E_MISMATCH);
    unlink(other);
    unlink(path);
    free(other);
    free(path);
    (void)state;
}

/* Files that stages left in a work folder are known under any name; other files are not
 * taken for such. */
static void test_left_by_stages(void **state)
{
    static const char *const beside[] = {"count.0-of-3", "shards.2-of-3.A_0.tks"};
    char *path = path_of("census", 0, 0);
    struct slu_workfile_out *o;
    const struct slu_workfile_head h = {.kind = SLU_WORKFILE_FLOW, .param = ""};

    assert_false(slu_work_is(path));
    assert_int_equal(slu_workfile_create(&o, path, h.kind, NULL), 0);
    assert_int_equal(slu_workfile_close(o, &h, 0, NULL), 0);
    assert_true(slu_work_is(path));
    unlink(path);
    write_bytes(path, "SLUNEAR", 7);
    assert_false(slu_work_is(path));
    unlink(path);
    free(path);
    for (unsigned i = 0; i < 2; i++) {
        path = path_of(beside[i], 0, 0);
        assert_true(slu_work_is(path));
        free(path);
    }
    path = path_of("plan", 0, 0);
    assert_int_equal(slu_workfile_create(&o, path, SLU_WORKFILE_INDEX, NULL), 0);
    assert_int_equal(slu_workfile_close(o, &h, 0, NULL), 0);
    assert_false(slu_work_is(path));
    unlink(path);
    free(path);
    (void)state;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_of_a_stage),
        cmocka_unit_test(test_left_by_stages),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
