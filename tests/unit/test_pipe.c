/* test_pipe.c - jobs in parts: each part is made once by any idle thread, parts are
 * joined in order and within their slots, and the earliest fault is reported.
 * test_core.c has the rest of the pipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "lib/base/hash.h"
#include "lib/base/pipe.h"

enum { N_JOB = 40, MAX_PART = 50, MAX_SLOT = 5 };

struct job {
    struct run *run;
    uint64_t number;
    size_t joined;
    atomic_flag joining;
    atomic_int slot[MAX_SLOT]; /* i + 1 of the part that is in it */
};

struct run {
    struct slu_pipe *pipe;
    uint64_t n_job, made, emitted;
    unsigned n_slot;
    size_t n_part, bad_part, bad_join; /* of the job 7; SIZE_MAX: none */
    bool wait;                         /* produce waits until the job before is done */
    bool pair;                         /* part 0 waits until part 1 has begun */
    atomic_uint workers;               /* bits of those that made a part */
    atomic_int begun;
    atomic_uint_fast64_t done;
};

static void nap(void)
{
    nanosleep(&(struct timespec){0, 20000}, NULL);
}

static bool all_done(void *arg)
{
    struct run *r = arg;
    return r->done == r->made;
}

static int produce(void *ctx, void *job, struct slu_err *e)
{
    struct run *r = ctx;
    struct job *j = job;
    (void)e;
    if (r->made == r->n_job)
        return SLU_EOF;
    if (r->wait)
        slu_pipe_wait(r->pipe, all_done, r);
    j->run = r;
    j->joined = 0;
    j->number = r->made++;
    return SLU_OK;
}

static int part(void *arg, unsigned worker, size_t i, struct slu_err *e)
{
    struct job *j = arg;
    struct run *r = j->run;
    int none = 0;
    assert_true(
        atomic_compare_exchange_strong(&j->slot[i % r->n_slot], &none, (int)i + 1));
    r->workers |= 1u << worker;
    r->begun++;
    for (int k = 0; r->pair && i == 0 && r->begun < 2; k++) {
        if (k == 100000) /* seconds */
            return slu_fail(e, SLU_E_IO, "nobody helps");
        nap();
    }
    if (slu_draw(1, j->number, i, 0, 0) % 4 == 0)
        nap();
    if (j->number == 7 && i >= r->bad_part && i % 2 == r->bad_part % 2)
        return slu_fail(e, SLU_E_FORMAT, "part %zu", i);
    return SLU_OK;
}

static int join(void *arg, size_t i, struct slu_err *e)
{
    struct job *j = arg;
    struct run *r = j->run;
    assert_false(atomic_flag_test_and_set(&j->joining));
    assert_int_equal(i, j->joined);
    assert_int_equal(j->slot[i % r->n_slot], (int)i + 1);
    j->slot[i % r->n_slot] = 0;
    j->joined++;
    atomic_flag_clear(&j->joining);
    if (j->number == 7 && i == r->bad_join)
        return slu_fail(e, SLU_E_LIMIT, "join %zu", i);
    return SLU_OK;
}

static int work(void *ctx, unsigned worker, void *job, struct slu_err *e)
{
    struct run *r = ctx;
    struct slu_pipe_parts parts = {r->n_part, r->n_slot, job, part, join};
    atomic_flag_clear(&((struct job *)job)->joining);
    for (unsigned i = 0; i < MAX_SLOT; i++)
        ((struct job *)job)->slot[i] = 0;
    int rc = slu_pipe_share(r->pipe, worker, &parts, e);
    r->done++;
    return rc;
}

static int emit(void *ctx, void *job, struct slu_err *e)
{
    struct run *r = ctx;
    struct job *j = job;
    (void)e;
    assert_int_equal(j->number, r->emitted);
    assert_int_equal(j->joined, r->n_part);
    r->emitted++;
    return SLU_OK;
}

static struct slu_err err;

static int go(struct run *r, unsigned n_threads)
{
    static const struct slu_pipe_ops ops = {produce, work, emit};
    struct job job[8];
    void *jobs[8];
    for (int i = 0; i < 8; i++)
        jobs[i] = &job[i];
    memset(&err, 0, sizeof err);
    return slu_pipe_run_parts(&ops, r, jobs, n_threads + 1, n_threads, &r->pipe, &err);
}

static void parts_are_joined_in_order(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 7; threads += 2)
        for (unsigned slots = 1; slots <= MAX_SLOT; slots += 2)
            for (size_t n = 0; n <= MAX_PART; n += 25) {
                struct run r = {.n_job = N_JOB,
                                .n_slot = slots,
                                .n_part = n,
                                .bad_part = SIZE_MAX,
                                .bad_join = SIZE_MAX};
                assert_int_equal(go(&r, threads), SLU_OK);
                assert_int_equal(r.emitted, N_JOB);
                assert_int_equal(r.begun, N_JOB * n);
            }
}

static void the_earliest_part_is_at_fault(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 7; threads++) {
        struct run r = {.n_job = N_JOB,
                        .n_slot = 4,
                        .n_part = MAX_PART,
                        .bad_part = 21,
                        .bad_join = SIZE_MAX};
        assert_int_equal(go(&r, threads), SLU_E_FORMAT);
        assert_string_equal(err.msg, "part 21");
        assert_int_equal(r.emitted, 7);
        r = (struct run){.n_job = N_JOB,
                         .n_slot = 4,
                         .n_part = MAX_PART,
                         .bad_part = 22,
                         .bad_join = 20};
        assert_int_equal(go(&r, threads), SLU_E_LIMIT);
        assert_string_equal(err.msg, "join 20");
        assert_int_equal(r.emitted, 7);
    }
}

/* The last job, and one behind which produce waits for memory. */
static void idle_threads_help(void **state)
{
    (void)state;
    for (unsigned n_job = 1; n_job <= 3; n_job++) {
        struct run r = {.n_job = n_job,
                        .n_slot = 2,
                        .n_part = MAX_PART,
                        .bad_part = SIZE_MAX,
                        .bad_join = SIZE_MAX,
                        .wait = true,
                        .pair = true};
        assert_int_equal(go(&r, 2), SLU_OK);
        assert_int_equal(r.workers, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_joined_in_order),
        cmocka_unit_test(the_earliest_part_is_at_fault),
        cmocka_unit_test(idle_threads_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
