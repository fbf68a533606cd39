/* test_shard_parts_faults.c - parts of a shard set that are damaged, forged, or of other
 * sets; folders in which others write. */
#include "tests/unit/shard_parts.h"

static void spoil(const char *path, long at)
{
    FILE *f = fopen(path, "r+");

    assert_non_null(f);
    assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    fputc(c ^ 1, f);
    fclose(f);
}

/* A journal without its spans: one bit in their name is enough. */
static void test_no_spans(void **state)
{
    struct set t;
    char path[256];

    (void)state;
    fresh(&t, &slu_shard_wds);
    write_all(&t, 2);
    path_in(&t, "work", "shards.1-of-2.jsonl", path);
    shell("sed -i '1s/\"spans\"/\"spanr\"/' %s%s", path, "");
    assert_int_equal(join(&t, 2), SLU_E_MISMATCH);
    says(&t, "is of another part; run part 1/2 again");
}

/* Each fault is one line that names the part; the part, run again, mends it. */
static void test_faults(void **state)
{
    static const struct fault {
        const char *folder, *name, *what;
        enum { REMOVE, CUT, SPOIL_END, SPOIL_LINE, SPOIL_HEAD } how;
        uint64_t part;
    } faults[] = {
        {"work", "shards.1-of-3.jsonl", "is missing", REMOVE, 1},
        {"work", "shards.1-of-3.jsonl", "has no end", CUT, 1},
        {"work", "shards.0-of-3.jsonl", "damaged", SPOIL_END, 0},
        {"work", "shards.2-of-3.jsonl", "damaged", SPOIL_LINE, 2},
        {"work", "rows.1-of-3.D_2.tks", "is missing", REMOVE, 1},
        {"work", "rows.2-of-3.D_4.tks", "bytes", CUT, 2},
        {"dir", ".partial/D_4/shard-0000002.tar", "is missing", REMOVE, 1},
        {"dir", ".partial/D_4/shard-0000005.tar", "bytes", CUT, 2},
    };
    char want[128], path[256];
    struct set t;

    (void)state;
    snprintf(want, sizeof want, "%s/want", top);
    shell("rm -rf %s%s", want, "");
    fresh(&t, &slu_shard_wds);
    write_at_once(&t, want);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const struct fault *f = &faults[i];
        struct stat st;
        bool skipped;
        char name[32];
        fresh(&t, &slu_shard_wds);
        write_all(&t, 3);
        path_in(&t, f->folder, f->name, path);
        assert_int_equal(stat(path, &st), 0);
        if (f->how == REMOVE)
            assert_int_equal(unlink(path), 0);
        else if (f->how == CUT)
            assert_int_equal(truncate(path, st.st_size - 20), 0);
        else
            spoil(path, f->how == SPOIL_END ? -5 : 400);
        assert_true(join(&t, 3) < 0);
        says(&t, f->what);
        snprintf(name, sizeof name, "run part %d/3 again", (int)f->part);
        says(&t, name);
        for (uint64_t j = 0; j < 3; j++) {
            if (part_of(&t, j, 3, 0, false, &skipped))
                fail_msg("%s", t.err.msg);
            assert_int_equal(skipped, j != f->part);
        }
        if (join(&t, 3))
            fail_msg("%s", t.err.msg);
        same(&t, want);
        /* Finished: all is skipped, and the join says so. */
        assert_int_equal(part_of(&t, 1, 3, 0, false, &skipped), SLU_OK);
        assert_true(skipped);
        assert_int_equal(join(&t, 3), SLU_EOF);
        same(&t, want);
    }
}

/* A journal that says other things, with a last line that is right. */
static void forge(const struct set *t, const char *name, const char *from,
                  const char *to)
{
    char path[256], *p = calloc(1, 1 << 16), *q = calloc(1, 1 << 16), *at;

    path_in(t, "work", name, path);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(p, 1, 1 << 16, f) > 0);
    fclose(f);
    at = strstr(p, from);
    assert_non_null(at);
    int n = snprintf(q, 1 << 16, "%.*s%s%s", (int)(at - p), p, to, at + strlen(from));
    n -= 31;
    snprintf(q + n, 32, ",\"xxh3_64\":\"%016llx\"}\n",
             (unsigned long long)slu_hash64(q, (size_t)n));
    f = fopen(path, "w");
    fputs(q, f);
    fclose(f);
    free(p);
    free(q);
}

/* Numbers that overlap or are missing, parts of other sets. */
static void test_disagree(void **state)
{
    static const struct {
        const char *name, *from, *to, *what;
    } lies[] = {
        {"shards.1-of-3.jsonl", "[[1,3,0]", "[[0,3,0]", "earlier parts have"},
        {"shards.1-of-3.jsonl", "[[1,3,0]", "[[2,3,0]", "the next shard"},
        {"shards.1-of-3.jsonl", "[[1,3,0]", "[[1,6,0]", "lacks shards"},
        {"shards.1-of-3.jsonl", "[[1,3,0]", "[[1,0,0]", "out of order"},
        {"shards.1-of-3.jsonl", "[[1,3,0]", "[[1,2,0]", "in the middle"},
        {"shards.1-of-3.jsonl", "[[1,3,0]", "[[1,3,1]", "after the last"},
        {"shards.1-of-3.jsonl", "\"shard\":1,", "\"shard\":2,", "out of order"},
        {"shards.1-of-3.jsonl", "\"sequences\":3,", "\"sequences\":2,", "wrong size"},
        {"shards.1-of-3.jsonl", "\"shard\":1,", "\"shard\":-1,",
         "does not describe a shard"},
        {"shards.1-of-3.jsonl", "\"part\":1,", "\"part\":2,", "another part"},
        {"shards.1-of-3.jsonl", "\"spans\":[[1,3,0]", "\"spans\":[[1,3]", "another"},
        {"shards.1-of-3.jsonl", "\"input\":\"", "\"input\":\"0", "other input"},
        {"shards.1-of-3.jsonl", "\"seed\": ", "\"seed\": 1", "was made with --seed=1"},
        {"shards.1-of-3.jsonl", "\"rows\":[{\"bucket\":\"D_2\"",
         "\"rows\":[{\"bucket\":\"D_9\"", "damaged"},
    };
    struct set t;

    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        fresh(&t, &slu_shard_wds);
        write_all(&t, 3);
        forge(&t, lies[i].name, lies[i].from, lies[i].to);
        assert_true(join(&t, 3) < 0);
        says(&t, lies[i].what);
        says(&t, strstr(lies[i].what, "after") ? "run part 2/3 again"
                                               : "run part 1/3 again");
    }
    /* Another seed, input, number of parts: of the parts, and of the join. */
    static const char *const how[] = {"made with --seed=", "made from other input",
                                      "made in other parts"};
    for (int k = 0; k < 3; k++) {
        fresh(&t, &slu_shard_wds);
        write_all(&t, 3);
        t.seed += k == 0;
        t.input += k == 1;
        uint64_t r = k == 2 ? 2 : 3;
        assert_int_equal(join(&t, r), SLU_E_MISMATCH);
        says(&t, how[k]);
        assert_int_equal(part_of(&t, 0, r, 0, false, NULL), SLU_E_MISMATCH);
        says(&t, how[k]);
    }
}

static void put_lock(const char *path, const char *host, long pid)
{
    char own[65] = "";
    FILE *f = fopen(path, "w");

    gethostname(own, sizeof own - 1);
    assert_non_null(f);
    fprintf(f, "%s %ld\n", host ? host : own, pid);
    fclose(f);
}

/* The number of a process that has ended. */
static pid_t dead(void)
{
    pid_t pid = fork();

    if (!pid)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

/* Two processes cannot write one part at once; a plain shuffle cannot write to a folder
 * of parts, nor parts to the folder of a plain shuffle. */
static void test_folder(void **state)
{
    char want[128], lock[256];
    struct set t;
    bool skipped;

    (void)state;
    snprintf(want, sizeof want, "%s/want", top);
    shell("rm -rf %s%s", want, "");
    fresh(&t, &slu_shard_wds);
    write_at_once(&t, want);
    fresh(&t, &slu_shard_wds);
    /* The same part twice at once; the lock of a dead process, of this or another
     * machine, is none. */
    assert_int_equal(part_of(&t, 0, 3, 0, false, NULL), SLU_OK);
    path_in(&t, "dir", ".partial/lock.1-of-3", lock);
    put_lock(lock, NULL, getppid());
    assert_int_equal(part_of(&t, 1, 3, 0, false, NULL), SLU_E_MISMATCH);
    says(&t, "part 1/3 is being written by another process");
    put_lock(lock, NULL, dead());
    assert_int_equal(part_of(&t, 1, 3, 1, false, NULL), SLU_E_IO);
    put_lock(lock, "another.machine", getppid());
    assert_int_equal(part_of(&t, 1, 3, 1, false, NULL), SLU_E_IO);
    assert_int_not_equal(access(lock, F_OK), 0);
    /* A plain shuffle, while parts are written or between them, and join. */
    struct slu_shards_cfg cfg = {.format = t.format, .dir = t.dir};
    struct slu_header h;
    struct slu_shards *s;
    slu_header_init(&h);
    h.tok_bytes = 4;
    h.vocab_size = 70000;
    h.label_tokens = true;
    h.n_bucket = 1;
    h.bucket[0] = 4;
    cfg.header = &h;
    assert_int_equal(slu_shards_new(&s, &cfg, &t.err), SLU_E_MISMATCH);
    says(&t, "in parts");
    put_lock(lock, NULL, getppid());
    cfg.replace = true;
    assert_int_equal(slu_shards_new(&s, &cfg, &t.err), SLU_OK);
    struct source none = {.bucket = N_BUCKET};
    t.err = (struct slu_err)SLU_ERR_INIT;
    assert_int_equal(slu_shards_write(s, give, &none, NULL, 1, 2, &t.err),
                     SLU_E_MISMATCH);
    says(&t, "other processes are writing here");
    slu_shards_free(s);
    slu_header_release(&h);
    assert_int_equal(part_of(&t, 2, 3, 0, false, NULL), SLU_OK); /* beside others */
    assert_int_equal(join(&t, 3), SLU_E_MISMATCH);
    says(&t, "other processes are writing here");
    assert_int_equal(unlink(lock), 0);
    if (part_of(&t, 1, 3, 0, false, NULL))
        fail_msg("%s", t.err.msg);
    t.force = true;
    /* --force writes a part anew, and the others stay. */
    assert_int_equal(part_of(&t, 1, 3, 0, false, &skipped), SLU_OK);
    assert_false(skipped);
    t.force = false;
    assert_int_equal(join(&t, 3), SLU_OK);
    same(&t, want);
    /* A set that is there: of others, or what a plain shuffle left. */
    t.force = true;
    assert_int_equal(join(&t, 3), SLU_OK); /* from the same parts */
    same(&t, want);
    shell("rm -rf %s && mkdir %s", t.work, t.work);
    t.force = false;
    assert_int_equal(part_of(&t, 0, 3, 0, false, NULL), SLU_E_MISMATCH);
    says(&t, "is not empty");
    t.force = true;
    assert_int_equal(part_of(&t, 0, 3, 0, false, NULL), SLU_OK);
    shell("diff -r -x .partial %s %s >&2", want, t.dir); /* which stays until then */
    t.force = false;
    write_all(&t, 3);
    assert_int_equal(join(&t, 3), SLU_OK);
    same(&t, want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_spans),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_disagree),
        cmocka_unit_test(test_folder),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
