/* tables.h - shared by the tests of tables: failing calls, files in their own folder,
 * changed bytes. */
#ifndef SLU_TESTS_TABLES_H
#define SLU_TESTS_TABLES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/io.h"
#include "lib/flow/table_private.h"

static char folder[64];

/* ---- calls that fail ---- */

enum { NONE, IO, MEMORY };
static int fail_kind;
static unsigned long fail_at, n_call;

static bool fails(int kind)
{
    return kind == fail_kind && ++n_call == fail_at;
}

ssize_t pread(int fd, void *p, size_t n, off_t off)
{
    return fails(IO) ? -1 : (ssize_t)syscall(SYS_pread64, fd, p, n, off);
}
ssize_t write(int fd, const void *p, size_t n)
{
    return fails(IO) ? -1 : (ssize_t)syscall(SYS_write, fd, p, n);
}
ssize_t writev(int fd, const struct iovec *v, int n)
{
    return fails(IO) ? -1 : (ssize_t)syscall(SYS_writev, fd, v, n);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
    return fails(MEMORY) ? NULL : __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    return fails(MEMORY) ? NULL : __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    return fails(MEMORY) ? NULL : __libc_realloc(p, n);
}
#endif

/* Whether calls of a kind come here: sanitizers and valgrind have their own malloc. */
static bool comes_here(int kind)
{
    void *(*volatile make)(size_t) = malloc;

    n_call = 0;
    fail_at = 0;
    fail_kind = kind;
    if (kind == MEMORY)
        free(make(1));
    fail_kind = NONE;
    return kind == IO || n_call;
}

/* Each call of a kind fails, one after another: run (of ctx) works, or says why not. In
 * more than `least` of the calls it does not; in all that fail, where `strict`. */
static void each_call_fails(int (*run)(const void *ctx, struct slu_err *err),
                            const void *ctx, unsigned long least, bool strict)
{
    struct slu_err err;

    for (int kind = IO; kind <= MEMORY; kind++) {
        unsigned long n = 1, n_failed = 0;
        if (!comes_here(kind)) {
            print_message("skip calls that fail: not under sanitizers or valgrind\n");
            continue;
        }
        for (bool fired = true; fired; n++) {
            err = (struct slu_err)SLU_ERR_INIT;
            n_call = 0;
            fail_at = n;
            fail_kind = kind;
            int rc = run(ctx, &err);
            fail_kind = NONE;
            fired = n_call >= n;
            assert_true(rc == 0 || (rc < 0 && err.msg[0]));
            assert_true(rc == 0 || fired || !strict);
            n_failed += rc < 0;
        }
        assert_true(n_failed > least);
    }
}

/* ---- what is put, and where ---- */

static uint64_t rnd_state = 1;

static uint64_t rnd(void)
{
    uint64_t z = (rnd_state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static struct slu_table_cfg cfg_of(uint64_t budget, unsigned max_file)
{
    return (struct slu_table_cfg){.budget_byte = budget,
                                  .tmpdir = "/var/tmp",
                                  .n_threads = 1 + (unsigned)(rnd() % 3),
                                  .max_file = max_file};
}

static uint64_t any_budget(void)
{
    return (64 << 10) << rnd() % 6;
}

static void path_of(char *path, size_t cap, uint64_t part)
{
    snprintf(path, cap, "%s/%llu", folder, (unsigned long long)part);
}

static const struct slu_workfile_head head = {.kind = SLU_WORKFILE_FLOW, .param = "x"};

/* The same sections of n_part files. */
static int open_table(uint64_t n_part, const struct slu_table_spec *spec,
                      const struct slu_table_cfg *cfg, uint64_t first, uint64_t n,
                      uint64_t longest, struct slu_table **t, struct slu_err *err)
{
    int rc = slu_table_over(t, spec, cfg, err);

    for (uint64_t i = 0; i < n_part && !rc; i++) {
        struct slu_workfile *f;
        char path[100];
        path_of(path, sizeof path, i);
        rc = slu_workfile_open(&f, path, head.kind, err);
        if (!rc)
            rc = slu_table_add(*t, f, i, first, n, longest, err);
        slu_workfile_free(f);
    }
    return rc ? rc : slu_table_begin(*t, err);
}

static void remove_parts(uint64_t n_part)
{
    for (uint64_t i = 0; i < n_part; i++) {
        char path[100];
        path_of(path, sizeof path, i);
        unlink(path);
    }
}

/* Each byte of part 1's file is another one: run (of ctx) works, or there is an error
 * that names the file; of more than half of them. */
static void each_byte_differs(int (*run)(const void *ctx, struct slu_err *err),
                              const void *ctx)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_buf whole = SLU_BUF_INIT;
    uint64_t n_bad = 0;
    char path[100];

    path_of(path, sizeof path, 1);
    assert_int_equal(slu_read_whole(&whole, path, 1 << 24, &err), 0);
    for (size_t i = 0; i < whole.len; i++) {
        const uint8_t bit = (uint8_t)(1 << rnd() % 8);
        whole.data[i] ^= bit;
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(whole.data, 1, whole.len, f), whole.len);
        assert_int_equal(fclose(f), 0);
        whole.data[i] ^= bit;
        int rc = run(ctx, &err);
        assert_true(rc == 0 || (rc < 0 && strstr(err.msg, path)));
        n_bad += rc < 0;
    }
    assert_true(n_bad * 2 > whole.len);
    slu_buf_release(&whole);
}

static int make_folder(void **state)
{
    (void)state;
    /* In memory where that can be: there are many files, and each is synced. */
    snprintf(folder, sizeof folder, "%s/sluice-table-XXXXXX",
             access("/dev/shm", W_OK) ? "/var/tmp" : "/dev/shm");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

#endif
