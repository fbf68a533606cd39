/* test_store.c - numbers by ordinal (lib/flow/table.h, STORE), in one process and over
 * the files of some parts, of which few may be open; every bit of the files flipped. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/flow/table_private.h"

enum { MOST = 40, MANY = 3000, PARTS = 5 };

static char folder[] = "/var/tmp/storeXXXXXX";
static const struct slu_table_spec spec = {
    .name = "store", .kind = SLU_STORE, .n_word = SLU_STORE_WORDS};
static const struct slu_workfile_head head = {.kind = SLU_WORKFILE_FLOW, .param = "x"};

/* Number k of ordinal i, and how many it has. */
static uint64_t number(uint64_t i, uint64_t k)
{
    return slu_draw(1, i, k, 0, 0);
}
static size_t size_of(uint64_t i)
{
    return (size_t)(i % 97 == 50 ? 30000 : slu_draw(2, i, 0, 0, 0) % MOST);
}

static void put(struct slu_table *t, uint64_t i)
{
    struct slu_err err = SLU_ERR_INIT;
    size_t n = size_of(i);
    uint64_t *v = malloc(8 * n + 8);

    for (size_t k = 0; k < n; k++)
        v[k] = number(i, k);
    const struct slu_u128 h = slu_hash128(v, 8 * n);
    const uint64_t word[] = {h.lo, h.hi, i};
    assert_int_equal(slu_store_put(t, word, v, n, &err), SLU_OK);
    free(v);
}

/* Here and there: what is read is right, or it is an error. */
static int look(struct slu_table *t, uint64_t n, struct slu_err *err)
{
    struct slu_stored e[200];
    uint64_t *v = malloc(8 * 30000);
    int rc = SLU_OK;

    for (uint64_t j = 0; j < 60 && !rc; j++) {
        uint64_t from = slu_draw(3, j, 0, 0, 0) % n;
        size_t some = n - from < 200 ? (size_t)(n - from) : 200;
        rc = slu_store_look(t, from, some, e, err);
        for (size_t i = 0; i < some && !rc; i += 1 + j) {
            assert_int_equal(e[i].n, size_of(from + i));
            assert_int_equal(e[i].word[2], from + i);
            uint64_t a = j % 2 && e[i].n > 3 ? e[i].n / 3 : 0;
            rc = a ? slu_store_read(t, from + i, &e[i], 0, (size_t)a, v, err) : SLU_OK;
            for (uint64_t k = 0; k < a && !rc; k++)
                assert_int_equal(v[k], number(from + i, k));
            if (!rc)
                rc =
                    slu_store_read(t, from + i, &e[i], a, (size_t)(e[i].n - a), v, err);
            for (uint64_t k = a; k < e[i].n && !rc; k++)
                assert_int_equal(v[k - a], number(from + i, k));
        }
    }
    free(v);
    return rc;
}

static void test_here(void **state)
{
    (void)state;
    for (uint64_t budget = 64 << 10; budget <= 16 << 20; budget *= 16) {
        struct slu_err err = SLU_ERR_INIT;
        const struct slu_table_cfg cfg = {.budget_byte = budget, .tmpdir = "/var/tmp"};
        struct slu_table *t;
        struct slu_stored e;
        assert_int_equal(slu_table_new(&t, &spec, &cfg, &err), SLU_OK);
        for (uint64_t i = 0; i < MANY; i++)
            put(t, i);
        assert_int_equal(look(t, MANY, &err), SLU_OK);
        assert_int_equal(slu_store_look(t, MANY, 1, &e, &err), SLU_E_FORMAT);
        assert_true(slu_table_spilled(t) > 0);
        slu_table_free(t);
    }
}

/* ---- files ---- */

static void path_of(char *path, size_t cap, uint64_t part)
{
    snprintf(path, cap, "%s/%llu", folder, (unsigned long long)part);
}

static void write_part(uint64_t part, const uint64_t *base)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_table_cfg cfg = {.budget_byte = 64 << 10, .tmpdir = "/var/tmp"};
    struct slu_table *t;
    char path[100];

    path_of(path, sizeof path, part);
    assert_int_equal(slu_workfile_create(&cfg.out, path, head.kind, &err), SLU_OK);
    assert_int_equal(slu_workfile_section(cfg.out, 1, &err), SLU_OK);
    assert_int_equal(slu_table_new(&t, &spec, &cfg, &err), SLU_OK);
    for (uint64_t i = base[part]; i < base[part + 1]; i++)
        put(t, i);
    assert_int_equal(slu_table_write(t, cfg.out, 1, 2, NULL, NULL, &err), SLU_OK);
    assert_int_equal(slu_workfile_close(cfg.out, &head, 3, &err), SLU_OK);
    slu_table_free(t);
}

static int read_parts(const uint64_t *base, unsigned max_file, struct slu_err *err)
{
    const struct slu_table_cfg cfg = {.budget_byte = 64 << 10,
                                      .tmpdir = "/var/tmp",
                                      .max_file = max_file,
                                      .base = base,
                                      .n_part = PARTS};
    struct slu_table *t = NULL;
    struct slu_workfile *f;
    char path[100];
    int rc = slu_table_over(&t, &spec, &cfg, err);

    for (uint64_t i = 0; i < PARTS && !rc; i++) {
        path_of(path, sizeof path, i);
        rc = slu_workfile_open(&f, path, head.kind, err);
        if (!rc)
            rc = slu_table_add(t, f, i, 1, 2, 0, err);
        slu_workfile_free(f);
    }
    if (!rc)
        rc = slu_table_begin(t, err);
    if (!rc)
        rc = look(t, base[PARTS], err);
    slu_table_free(t);
    return rc;
}

static void flip(uint64_t part, uint64_t byte, uint8_t bit)
{
    char path[100];
    uint8_t x;

    path_of(path, sizeof path, part);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &x, 1, (off_t)byte), 1);
    x ^= bit;
    assert_int_equal(pwrite(fd, &x, 1, (off_t)byte), 1);
    close(fd);
}

static void test_files(void **state)
{
    static const uint64_t base[PARTS + 1] = {0, 700, 700, 1500, 1501, MANY},
                                       other[PARTS + 1] = {0,    700,  701,
                                                           1500, 1501, MANY};
    struct slu_err err = SLU_ERR_INIT;
    char path[100];
    unsigned bad = 0;

    (void)state;
    assert_non_null(mkdtemp(folder));
    for (uint64_t i = 0; i < PARTS; i++)
        write_part(i, base);
    for (unsigned max = 1; max < 8; max += 2)
        assert_int_equal(read_parts(base, max, &err), SLU_OK);
    assert_int_equal(read_parts(other, 10, &err), SLU_E_CHECKSUM);
    /* A flipped byte is found when it is read: half of the flips are in the entries,
     * which are the last bytes. */
    path_of(path, sizeof path, 2);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const uint64_t size = (uint64_t)lseek(fd, 0, SEEK_END),
                   entries = UINT64_C(800) * 48;
    close(fd);
    for (uint64_t k = 0; k < 200; k++) {
        uint64_t at = k % 2 ? size - entries - 400 + slu_draw(4, k, 0, 0, 0) % entries
                            : 16 + slu_draw(4, k, 0, 0, 0) % (size - entries - 500);
        flip(2, at, (uint8_t)(1 << k % 8));
        int rc = read_parts(base, 10, &err);
        bad += rc != SLU_OK;
        assert_true(rc == SLU_OK || (rc < 0 && strstr(err.msg, folder)));
        flip(2, at, (uint8_t)(1 << k % 8));
    }
    assert_true(bad > 50);
    for (uint64_t i = 0; i < PARTS; i++) {
        path_of(path, sizeof path, i);
        unlink(path);
    }
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_here),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
