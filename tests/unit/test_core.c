/* test_core.c - buffers, files that appear when complete, the ordered pipeline, the
 * account, hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/cgroup.h"
#include "kernels/hash.h"
#include "lib/base/hash.h"
#include "lib/base/io.h"
#include "lib/base/json_write.h"
#include "lib/base/map.h"
#include "lib/base/number.h"
#include "lib/base/pages.h"
#include "lib/base/pipe.h"
#include "lib/stream/account.h"
#include "lib/stream/batch.h"
#include "lib/stream/token_hash.h"

static struct slu_err err;

/* ---- pipe: order, the earliest fault, bounded slots, for many threads ---- */

struct job {
    uint64_t number;
};

struct run {
    uint64_t n, bad_work, bad_produce; /* UINT64_MAX: none */
    uint64_t made, emitted;
    atomic_int in_work;
    atomic_flag producing, emitting;
};

static int produce(void *ctx, void *job, struct slu_err *e)
{
    struct run *r = ctx;
    assert_false(atomic_flag_test_and_set(&r->producing));
    int rc = SLU_OK;
    if (r->made == r->n)
        rc = SLU_EOF;
    else if (r->made == r->bad_produce)
        rc = slu_fail(e, SLU_E_IO, "produce %llu", (unsigned long long)r->made);
    else
        ((struct job *)job)->number = r->made++;
    atomic_flag_clear(&r->producing);
    return rc;
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *e)
{
    struct run *r = ctx;
    uint64_t n = ((struct job *)job)->number;
    struct timespec t = {0, (long)(slu_draw(1, n, worker, 0, 0) % 200000)};
    nanosleep(&t, NULL);
    if (n >= r->bad_work && n % 2 == r->bad_work % 2)
        return slu_fail(e, SLU_E_FORMAT, "work %llu", (unsigned long long)n);
    return SLU_OK;
}

static int emit(void *ctx, void *job, struct slu_err *e)
{
    struct run *r = ctx;
    (void)e;
    assert_false(atomic_flag_test_and_set(&r->emitting));
    assert_int_equal(((struct job *)job)->number, r->emitted);
    r->emitted++;
    atomic_flag_clear(&r->emitting);
    return SLU_OK;
}

static int go(struct run *r, unsigned n_jobs, unsigned n_threads)
{
    static const struct slu_pipe_ops ops = {produce, work, emit};
    struct job job[16];
    void *jobs[16];
    for (int i = 0; i < 16; i++)
        jobs[i] = &job[i];
    atomic_flag_clear(&r->producing);
    atomic_flag_clear(&r->emitting);
    memset(&err, 0, sizeof err);
    return slu_pipe_run(&ops, r, jobs, n_jobs, n_threads, &err);
}

static void pipe_keeps_order(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 7; threads += 2)
        for (unsigned jobs = 1; jobs <= 9; jobs += 4) {
            struct run r = {
                .n = 300, .bad_work = UINT64_MAX, .bad_produce = UINT64_MAX};
            assert_int_equal(go(&r, jobs, threads), SLU_OK);
            assert_int_equal(r.emitted, 300);
        }
}

static void pipe_reports_the_earliest_fault(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 7; threads++) {
        struct run r = {.n = 300, .bad_work = 77, .bad_produce = UINT64_MAX};
        assert_int_equal(go(&r, 9, threads), SLU_E_FORMAT);
        assert_string_equal(err.msg, "work 77");
        assert_int_equal(r.emitted, 77);
        r = (struct run){.n = 300, .bad_work = UINT64_MAX, .bad_produce = 41};
        assert_int_equal(go(&r, 9, threads), SLU_E_IO);
        assert_string_equal(err.msg, "produce 41");
        assert_int_equal(r.emitted, 41);
    }
}

/* ---- io ---- */

static void outputs_appear_whole(void **state)
{
    char dir[] = "/tmp/sluice-core-XXXXXX", path[256], line[64];
    struct slu_out *o;
    struct stat st;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
    assert_int_equal(slu_out_open(&o, path, &err), SLU_OK);
    assert_int_equal(slu_out_write(o, "first", 5, &err), SLU_OK);
    assert_int_not_equal(stat(path, &st), 0);
    assert_int_equal(slu_out_close(o, &err), SLU_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 5);

    assert_int_equal(slu_out_open(&o, path, &err), SLU_OK);
    assert_int_equal(slu_out_write(o, "second try", 10, &err), SLU_OK);
    slu_out_abort(o);
    FILE *f = fopen(path, "r");
    assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    assert_string_equal(line, "first"); /* an aborted output leaves what was there */

    assert_int_equal(slu_out_open(&o, path, &err), SLU_OK);
    assert_int_equal(slu_out_write(o, "third", 5, &err), SLU_OK);
    assert_int_equal(slu_out_close(o, &err), SLU_OK);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0); /* nothing else was left in the folder */

    assert_int_equal(slu_out_open(&o, "/nonexistent/x", &err), SLU_E_IO);
    assert_null(o);
    assert_int_equal(slu_out_open(&o, "/tmp", &err), SLU_E_IO);
    assert_int_equal(slu_out_open(&o, "/dev/full", &err), SLU_OK);
    assert_int_equal(slu_out_write(o, "x", 1, &err), SLU_E_IO);
    assert_non_null(strstr(err.msg, "/dev/full"));
    slu_out_abort(o);
}

/* ---- account ---- */

static void accounts_that_do_not_balance_are_refused(void **state)
{
    struct slu_account l = {.in = {3, 3, 100}, .created = {0, 2, 3}, .padding = 7};
    (void)state;
    l.out = (struct slu_count){2, 4, 60};
    slu_account_drop(&l, "tail", (struct slu_count){1, 1, 25});
    slu_account_drop(&l, "tail", (struct slu_count){0, 0, 25});
    assert_int_equal(l.n_dropped, 1);
    assert_int_equal(slu_account_check(&l, &err), SLU_OK);
    l.out.tokens++;
    assert_int_equal(slu_account_check(&l, &err), SLU_E_CONSERVATION);
    assert_non_null(strstr(err.msg, "tokens"));
    l.out.tokens--;
    l.out.documents--;
    assert_int_equal(slu_account_check(&l, &err), SLU_E_CONSERVATION);
    assert_non_null(strstr(err.msg, "documents"));
    l.out.documents++;
    l.in.loss_tokens += 2;
    l.out.loss_tokens++;
    assert_int_equal(slu_account_check(&l, &err), SLU_E_CONSERVATION);
    assert_non_null(strstr(err.msg, "trained on"));
    slu_account_drop(&l, "tail", (struct slu_count){0, 0, 0, 1});
    assert_int_equal(slu_account_check(&l, &err), SLU_OK);
    l.in.sequences++;
    assert_int_equal(slu_account_check(&l, &err), SLU_E_CONSERVATION);
}

/* The equation includes the records that a stage reads from a work folder and writes to
 * it. */
static void accounts_of_stages_balance(void **state)
{
    struct slu_account l = {.in = {3, 3, 100}, .to_work = {3, 3, 90}};
    (void)state;
    l.out.tokens = 10;
    assert_int_equal(slu_account_check(&l, &err), SLU_OK);
    l.to_work.documents--;
    assert_int_equal(slu_account_check(&l, &err), SLU_E_CONSERVATION);
    l = (struct slu_account){.from_work = {3, 3, 90}, .padding = 6, .out = {3, 1, 96}};
    slu_account_drop(&l, "joined", (struct slu_count){0, 2, 0});
    assert_int_equal(slu_account_check(&l, &err), SLU_OK);
    l.from_work.tokens--;
    assert_int_equal(slu_account_check(&l, &err), SLU_E_CONSERVATION);
    assert_non_null(strstr(err.msg, "from_work 89"));
    assert_null(strstr(err.msg, "to_work"));
}

/* ---- hash ---- */

static void hashes_are_the_published_ones(void **state)
{
    char hex[33];
    (void)state;
    /* XXH3 of the empty input, seed 0: from the algorithm's reference implementation.
     */
    assert_true(slu_hash64("", 0) == UINT64_C(0x2d06800538d394c2));
    slu_u128_hex(slu_hash128("", 0), hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
}

static void token_hash_ignores_the_width(void **state)
{
    static uint16_t a[20000];
    static uint32_t b[20000];
    (void)state;
    for (uint32_t i = 0; i < 20000; i++)
        b[i] = a[i] = (uint16_t)(i * 7);
    const size_t n[] = {0, 1, 255, 4093, 4094, 4095, 8188, 8190, 20000};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        assert_int_equal(
            slu_u128_cmp(slu_hash_tokens(a, n[i], 2), slu_hash_tokens(b, n[i], 4)), 0);
}

/* Short ones are hashed by other rules than long ones, of which 16 KiB are at a time. */
static void oracle_of_the_kernel_is_the_token_hash(void **state)
{
    static uint32_t id[20000];
    struct slu_u128 hash[2000];
    uint64_t want[2 * 2000], first[2000];
    uint32_t len[2000];
    (void)state;
    for (uint32_t i = 0; i < 20000; i++)
        id[i] = i * 2654435761u;
    for (unsigned width = 2; width <= 4; width += 2) {
        for (uint32_t i = 0; i < 2000; i++) {
            len[i] = i < 1100 ? i + 1 : i * 9;
            first[i] = i % 5;
            hash[i] =
                slu_hash_tokens((const uint8_t *)id + first[i] * width, len[i], width);
        }
        const struct slu_hash_seqs s = {id, width, first, len, 2000};
        slu_hash_ref(&s, want);
        assert_memory_equal(hash, want, sizeof want);
    }
}

/* n ids in parts of up to `part`; returns whether their sums went to a file. */
static bool check_parts(const void *id, size_t n, unsigned width, size_t part)
{
    struct slu_token_hash *h;
    struct slu_u128 hash, whole = slu_hash_tokens(id, n, width);
    uint64_t x = n;
    assert_int_equal(slu_token_hash_new(&h, 0, "/tmp", &err), SLU_OK);
    for (size_t at = 0; at < n;) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
        size_t k = (x >> 33) % part + 1;
        k = k < n - at ? k : n - at;
        assert_int_equal(
            slu_token_hash_add(h, (const uint8_t *)id + at * width, k, width, &err),
            SLU_OK);
        at += k;
    }
    assert_int_equal(slu_token_hash_end(h, &hash, &err), SLU_OK);
    assert_int_equal(slu_u128_cmp(hash, whole), 0);
    bool spilled = slu_token_hash_spilled(h) > 0;
    slu_token_hash_free(h);
    return spilled;
}

static void token_hash_in_parts(void **state)
{
    enum { MOST = 70000, MANY = 17 << 20 };
    uint32_t *b = malloc(MOST * sizeof *b);
    uint16_t *a = malloc(MANY * sizeof *a);
    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    for (uint32_t i = 0; i < MANY; i++)
        a[i] = (uint16_t)(i * 2654435761u >> 9);
    for (uint32_t i = 0; i < MOST; i++)
        b[i] = a[i] * 5u;
    for (size_t n = 0; n < 700; n++) /* around 240 bytes, a stripe, a block */
        assert_false(check_parts(b, n, 4, 9));
    /* Around what is hashed at a time, 16 KiB, and blocks behind it. */
    for (size_t n = 4060; n < 4700; n++)
        assert_false(check_parts(a, n, 2, n % 7 ? 1000 : 5000));
    for (size_t n = 5000; n <= MOST; n += n / 50)
        assert_false(check_parts(b, n, 4, n % 3 ? 20000 : 100));
    assert_true(check_parts(a, MANY, 2, 1 << 18));
    free(a);
    free(b);
}

static void order_is_in_a_digest_of_a_list(void **state)
{
    struct slu_u128 v[9], all = {0, 0}, swapped = {0, 0};
    (void)state;
    for (uint64_t i = 0; i < 9; i++) {
        v[i] = slu_hash128(&i, sizeof i);
        all = slu_order_add(all, 1, v[i]);
    }
    for (unsigned cut = 0; cut <= 9; cut++) { /* wherever it is cut */
        struct slu_u128 a = {0, 0}, b = {0, 0};
        for (unsigned i = 0; i < 9; i++)
            *(i < cut ? &a : &b) = slu_order_add(i < cut ? a : b, 1, v[i]);
        assert_int_equal(slu_u128_cmp(slu_order_add(a, 9 - cut, b), all), 0);
    }
    for (unsigned i = 0; i < 9; i++)
        swapped = slu_order_add(swapped, 1, v[i == 3 ? 4 : i == 4 ? 3 : i]);
    assert_int_not_equal(slu_u128_cmp(swapped, all), 0);
}

static void draws_are_uniform_and_keyed(void **state)
{
    enum { N = 160000, CELLS = 16 };
    uint64_t cell[CELLS] = {0};
    double chi = 0;
    (void)state;
    for (uint64_t i = 0; i < N; i++)
        cell[slu_draw_below(slu_draw(5, i, 2, 3, 4), CELLS)]++;
    for (int i = 0; i < CELLS; i++) {
        double d = (double)cell[i] - (double)N / CELLS;
        chi += d * d / ((double)N / CELLS);
    }
    assert_true(chi < 44.3); /* p = 0.0001 with 15 degrees of freedom */
    assert_true(slu_draw(1, 2, 3, 4, 5) != slu_draw(2, 2, 3, 4, 5));
    assert_true(slu_draw(1, 2, 3, 4, 5) != slu_draw(1, 2, 3, 4, 6));
}

/* ---- containers ---- */

static void map_holds_what_it_was_given(void **state)
{
    struct slu_map m = SLU_MAP_INIT;
    uint64_t v;
    (void)state;
    for (uint64_t i = 0; i < 100000; i++)
        assert_int_equal(slu_map_set(&m, i * i * 0x10001, i, &err), SLU_OK);
    assert_int_equal(m.n, 100000);
    for (uint64_t i = 0; i < 100000; i++) {
        assert_true(slu_map_get(&m, i * i * 0x10001, &v));
        assert_int_equal(v, i);
    }
    assert_false(slu_map_get(&m, 3, &v));
    slu_map_release(&m);
}

static void buffers_refuse_sizes_that_overflow(void **state)
{
    struct slu_buf b = SLU_BUF_INIT;
    void *p = NULL;
    size_t cap = 0;
    (void)state;
    assert_int_equal(slu_buf_append(&b, "x", 1, &err), SLU_OK);
    assert_int_equal(slu_buf_reserve(&b, SIZE_MAX, &err), SLU_E_NOMEM);
    assert_int_equal(slu_grow(&p, &cap, SIZE_MAX / 2, 16, &err), SLU_E_NOMEM);
    assert_int_equal(slu_buf_align(&b, 64, &err), SLU_OK);
    assert_int_equal(b.len, 64);
    slu_buf_release(&b);
}

static void json_strings(void **state)
{
    static const struct {
        const char *in;
        size_t n;
        const char *out;
    } t[] = {
        {"plain", 5, "\"plain\""},
        {"a\"b\\c\n\t\x01\0", 9, "\"a\\\"b\\\\c\\n\\t\\u0001\\u0000\""},
        {"\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\""},
        {"x\xff\xc3", 3, "\"x\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80", 3,
         "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* a surrogate */
        {"", 0, "\"\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct slu_buf b = SLU_BUF_INIT;
        assert_int_equal(slu_json_put_string(&b, t[i].in, t[i].n, &err), SLU_OK);
        assert_int_equal(b.len, strlen(t[i].out));
        assert_memory_equal(b.data, t[i].out, b.len);
        slu_buf_release(&b);
    }
}

static unsigned put_utf8(char *p, uint32_t c)
{
    unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (unsigned k = n; k-- > 1; c >>= 6)
        p[k] = (char)(0x80 | (c & 0x3f));
    *p = (char)(first[n] | c);
    return n;
}

static void messages_are_one_line(void **state)
{
    struct slu_err e = SLU_ERR_INIT;
    (void)state;
    assert_int_equal(slu_fail(&e, SLU_E_FORMAT, "a\nb\x1b[31m"), SLU_E_FORMAT);
    assert_string_equal(e.msg, "a?b?[31m");
    assert_int_equal(slu_err_at(&e, "%s:%d", "file", 3), SLU_E_FORMAT);
    assert_string_equal(e.msg, "file:3: a?b?[31m");
    assert_int_equal(slu_fail(NULL, SLU_E_IO, "x"), SLU_E_IO);
}

/* The same characters as python/tests/test_forged.py; other scripts stay as they are. */
static void what_controls_a_terminal(void **state)
{
    static const uint32_t bad[] = {0x80,   0x9f,   0x61c,  0x200e, 0x200f,
                                   0x2028, 0x2029, 0x202a, 0x202e, 0x2066,
                                   0x2069, 0x7f,   0x1b,   1},
                          good[] = {0xa0,   0x61b,  0x61d,  0x200d, 0x2010, 0x2027,
                                    0x202f, 0x2065, 0x206a, 0x6587, 0x1f642};
    char text[64];
    uint32_t ch;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned n = put_utf8(text, bad[i]);
        assert_int_equal(slu_unprintable(text, n, &ch), n);
        assert_int_equal(ch, bad[i]);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(slu_unprintable(text, put_utf8(text, good[i]), &ch), 0);
    /* The last four: U+009B, and three bytes that are not UTF-8. */
    snprintf(text, sizeof text, "%s", "文\u202eé\xc2\x9b\xff\xe6\x96");
    slu_printable(text);
    assert_string_equal(text, "文?é????");
}

/* ---- control groups ---- */

/* Makes ROOT/`path` with `text` in it, and the folders it lies in. */
static void put_file(const char *root, const char *path, const char *text)
{
    char name[512];
    int n = snprintf(name, sizeof name, "%s/%s", root, path);
    assert_true(n > 0 && (size_t)n < sizeof name);
    for (char *p = name + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        (void)mkdir(name, 0700);
        *p = '/';
    }
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void memory_of_control_groups(void **state)
{
    static const struct group {
        const char *group;      /* /proc/self/cgroup */
        const char *file[3][2]; /* name and contents */
        uint64_t limit;
    } t[] = {
        {"0::/a/job/step\n",
         {{"sys/fs/cgroup/a/job/step/memory.max", "max\n"},
          {"sys/fs/cgroup/a/job/memory.max", "1000000\n"},
          {"sys/fs/cgroup/a/memory.max", "2000000\n"}},
         1000000},
        {"0::/\n", {{"sys/fs/cgroup/memory.max", "3000000\n"}}, 3000000},
        /* Slurm on version 1: the step is not limited, the job is, the root is not. */
        {"5:cpuset:/slurm\n4:memory:/slurm/uid_1/job_7/step_0\n0::/x\n",
         {{"sys/fs/cgroup/memory/slurm/uid_1/job_7/memory.limit_in_bytes", "4000000\n"},
          {"sys/fs/cgroup/memory/slurm/uid_1/job_7/step_0/memory.limit_in_bytes",
           "9223372036854771712\n"},
          {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}},
         4000000},
        /* In a container the group's path is the host's: the mount's root has it. */
        {"9:hugetlb,memory:/docker/0123\n",
         {{"sys/fs/cgroup/memory/memory.limit_in_bytes", "5000000\n"}},
         5000000},
        {"4:memory_x,xmemory:/a\n1:name=systemd:/a\n",
         {{"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "6000000\n"}},
         UINT64_MAX},
        {"", {{"sys/fs/cgroup/memory.max", "7000000\n"}}, UINT64_MAX},
    };
    char root[] = "/tmp/test_core.XXXXXX", one[64];
    (void)state;

    assert_non_null(mkdtemp(root));
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        snprintf(one, sizeof one, "%s/%zu", root, i);
        assert_int_equal(mkdir(one, 0700), 0);
        put_file(one, "proc/self/cgroup", t[i].group);
        for (size_t k = 0; k < 3 && t[i].file[k][0]; k++)
            put_file(one, t[i].file[k][0], t[i].file[k][1]);
        assert_int_equal(slu_cgroup_memory(one), t[i].limit);
    }
    assert_int_equal(slu_cgroup_memory("/no/such/root"), UINT64_MAX);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

/* ---- numbers of options ---- */

static void numbers_are_exact_or_refused(void **state)
{
    static const struct {
        const char *text;
        uint64_t k, value;
    } good[] = {{"0", 1000, 0},
                {"20M", 1000, 20000000},
                {"20M", 1024, UINT64_C(20) << 20},
                {"20Mi", 1000, UINT64_C(20) << 20},
                {"1.5g", 1000, 1500000000},
                {"0.5Ki", 1000, 512},
                {"1.25K", 1024, 1280},
                {"2e7", 1000, 20000000},
                {"1.50e1", 1000, 15},
                {"1.5e3K", 1000, 1500000},
                {"0e99", 1000, 0},
                {"18446744073709551615", 1000, UINT64_MAX},
                {"16777215Ti", 1000, (UINT64_MAX >> 40) << 40}};
    static const char *const bad[] = {"",
                                      "K",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1KB",
                                      "1.",
                                      "1.2.3",
                                      ".5",
                                      "1.23",
                                      "1e",
                                      "e3",
                                      "1e99",
                                      "1e-1",
                                      "0x10",
                                      "16777216Ti",
                                      "1iK",
                                      "1Kii",
                                      "1,5",
                                      "1E+",
                                      "1P",
                                      "18446744073709551616"};
    uint64_t v;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(slu_number(good[i].text, strlen(good[i].text), good[i].k, &v));
        assert_int_equal(v, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(slu_number(bad[i], strlen(bad[i]), 1000, &v));
    assert_true(slu_number("12,K", 2, 1000, &v)); /* what follows is not looked at */
    assert_int_equal(v, 12);
}

static void pages_are_zeroed_and_aligned(void **state)
{
    (void)state;
    for (size_t n = 1; n < 3 * SLU_HUGE_PAGE; n = 3 * n + 1)
        for (int kind = SLU_PAGES_SMALL; kind <= SLU_PAGES_ALIGNED; kind++) {
            uint8_t *p = slu_pages_new(n, (enum slu_pages)kind);
            assert_non_null(p);
            if (kind == SLU_PAGES_ALIGNED)
                assert_int_equal((uintptr_t)p % SLU_HUGE_PAGE, 0);
            for (size_t i = 0; i < n; i += 4096)
                assert_int_equal(p[i], 0);
            memset(p, 1, n);
            slu_pages_free(p, n);
        }
    assert_null(slu_pages_new((size_t)1 << 62, SLU_PAGES_ALIGNED));
    slu_pages_free(NULL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipe_keeps_order),
        cmocka_unit_test(pipe_reports_the_earliest_fault),
        cmocka_unit_test(outputs_appear_whole),
        cmocka_unit_test(accounts_that_do_not_balance_are_refused),
        cmocka_unit_test(accounts_of_stages_balance),
        cmocka_unit_test(pages_are_zeroed_and_aligned),
        cmocka_unit_test(hashes_are_the_published_ones),
        cmocka_unit_test(token_hash_ignores_the_width),
        cmocka_unit_test(oracle_of_the_kernel_is_the_token_hash),
        cmocka_unit_test(token_hash_in_parts),
        cmocka_unit_test(order_is_in_a_digest_of_a_list),
        cmocka_unit_test(draws_are_uniform_and_keyed),
        cmocka_unit_test(map_holds_what_it_was_given),
        cmocka_unit_test(buffers_refuse_sizes_that_overflow),
        cmocka_unit_test(json_strings),
        cmocka_unit_test(messages_are_one_line),
        cmocka_unit_test(what_controls_a_terminal),
        cmocka_unit_test(numbers_are_exact_or_refused),
        cmocka_unit_test(memory_of_control_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
