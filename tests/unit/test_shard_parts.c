/* test_shard_parts.c - a shard set in parts compared with the same set written at once,
 * byte for byte, for every format: cut at every border of shards, stopped, killed, all
 * at once (test_shard_parts_faults.c: damage and other sets). */
#include "tests/unit/shard_parts.h"

static const struct slu_shard_format *format_at(unsigned i)
{
    const struct slu_shard_format *f = slu_shard_format_at(i);
    struct slu_shards_cfg cfg = {.dir = "x"};
    struct slu_header h;
    void *state = NULL;

    if (!f)
        return NULL;
    slu_header_init(&h); /* not all are built: parquet */
    h.tok_bytes = 4;
    h.vocab_size = 70000;
    cfg.header = &h;
    cfg.format = f;
    struct slu_err err = SLU_ERR_INIT;
    int rc = f->init(&state, &cfg, &err);
    if (f->release)
        f->release(state);
    slu_header_release(&h);
    if (rc == SLU_E_UNSUPPORTED)
        print_message("skip %s: %s\n", f->name, err.msg);
    return rc == SLU_E_UNSUPPORTED ? NULL : f;
}

static void test_formats(void **state)
{
    char want[128];

    (void)state;
    snprintf(want, sizeof want, "%s/want", top);
    for (unsigned i = 0; slu_shard_format_at(i); i++)
        for (int drop = 0; drop < 2 && format_at(i); drop++) {
            struct set t;
            shell("rm -rf %s%s", want, "");
            fresh(&t, format_at(i));
            t.drop = drop;
            write_at_once(&t, want);
            for (uint64_t r = 1; r <= 9; r++) {
                fresh(&t, format_at(i));
                t.drop = drop;
                t.threads = 1 + r % 3;
                write_all(&t, r);
                if (join(&t, r))
                    fail_msg("%s: %s", t.format->name, t.err.msg);
                same(&t, want);
            }
        }
}

/* Every part is stopped behind every sequence, by an error or a kill, and goes on. */
static void test_stopped(void **state)
{
    static const struct slu_shard_format *const formats[] = {&slu_shard_wds,
                                                             &slu_shard_mds};
    char want[128];

    (void)state;
    snprintf(want, sizeof want, "%s/want", top);
    for (unsigned i = 0; i < 2; i++) {
        struct set t;
        shell("rm -rf %s%s", want, "");
        fresh(&t, formats[i]);
        write_at_once(&t, want);
        for (uint64_t stop = 1; stop <= 12; stop += 2) {
            fresh(&t, formats[i]);
            for (uint64_t j = 0; j < 2; j++) {
                assert_int_equal(part_of(&t, j, 2, stop, false, NULL), SLU_E_IO);
                pid_t pid = fork();
                if (pid == 0)
                    _exit(part_of(&t, j, 2, stop, true, NULL) ? 1 : 0);
                int status;
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_int_equal(WEXITSTATUS(status), 9);
            }
            assert_int_equal(join(&t, 2), SLU_E_TRUNCATED);
            says(&t, "run part 0/2 again");
            write_all(&t, 2);
            if (join(&t, 2))
                fail_msg("%s", t.err.msg);
            same(&t, want);
        }
    }
}

/* All parts begin at once, in a folder that holds another set; one was killed where
 * files need names before they are whole. */
static void test_together(void **state)
{
    char want[128], path[256];
    struct set t;

    (void)state;
    snprintf(want, sizeof want, "%s/want", top);
    shell("rm -rf %s%s", want, "");
    fresh(&t, &slu_shard_mds);
    write_at_once(&t, want);
    for (int round = 0; round < 8; round++) {
        pid_t pid[4];
        fresh(&t, &slu_shard_wds);
        t.drop = round & 1;
        write_at_once(&t, t.dir);
        t.format = &slu_shard_mds;
        t.drop = false;
        t.force = true;
        for (unsigned j = 0; j < 4; j++)
            if ((pid[j] = fork()) == 0) {
                int rc = part_of(&t, j, 4, 0, false, NULL);
                if (rc)
                    print_error("%s\n", t.err.msg);
                _exit(rc != 0);
            }
        for (unsigned j = 0; j < 4; j++) {
            int status = -1;
            assert_int_equal(waitpid(pid[j], &status, 0), pid[j]);
            assert_int_equal(status, 0);
        }
        t.force = false;
        static const char *const names[] = {".partial/.sluice-a.tmp",
                                            ".partial/D_4/.sluice-b.tmp"};
        for (unsigned i = 0; i < 2; i++) {
            path_in(&t, "dir", names[i], path);
            close(open(path, O_CREAT | O_WRONLY, 0666));
        }
        if (join(&t, 4))
            fail_msg("%s", t.err.msg);
        same(&t, want);
    }
}

/* A source that gives too little or too much, or ends in the middle of a shard. */
static void test_spans(void **state)
{
    struct set t;

    (void)state;
    for (int k = 0; k < 4; k++) {
        struct slu_shards_span span[N_BUCKET], given[N_BUCKET];
        struct slu_shards_part p = {NULL, 0, 2, span};
        struct slu_sum in = {.n.sequences = 27};
        fresh(&t, k & 1 ? &slu_shard_wds : &slu_shard_mds);
        p.work = t.work;
        cut(0, 2, span);
        memcpy(given, span, sizeof span);
        given[0].n_seq += k < 2 ? 1 : -1;
        begin(&t, t.dir, true);
        struct source s = source_of(&t, given);
        assert_int_equal(
            slu_shards_write_part(t.shards, &p, give, &s, &in, 1, 2, &t.err),
            SLU_E_CONSERVATION);
        says(&t, "sequences of D_2, and was to have 3");
        end(&t);
        assert_true(join(&t, 2) < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_spans),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
