/* test_shard_parts.c - a shard set in parts compared with the same set written at once,
 * byte for byte, for every format: cut at every border of shards, killed, skipped,
 * refused. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/shards/shard.h"

/* Buckets of 4 and 16, and 7 and 9 sequences a shard of any: shards of 3. */
enum { N_BUCKET = 3, SHARD = 3 };
static const uint64_t lengths[N_BUCKET] = {4, 8, 16};
static const uint64_t n_seqs[N_BUCKET] = {9, 2, 16};

static char top[64];

/* ---- input ---- */

struct source {
    struct slu_shards_span span[N_BUCKET];
    unsigned bucket;
    uint64_t at; /* in it */
    bool label;
    struct slu_names *names;
    uint64_t stop; /* sequences after which it fails; 0: never */
    bool kill;
};

/* Sequence i of bucket k: packed of two documents and padding if i is odd. */
static void sequence(const struct source *s, unsigned k, uint64_t i,
                     struct slu_batch *b)
{
    uint64_t len = lengths[k] + s->label, doc = k * 1000 + i * 2;
    uint32_t tok[64], domain = SLU_NO_DOMAIN;
    struct slu_err err = SLU_ERR_INIT;
    char name[32];

    snprintf(name, sizeof name, "domain-%llu", (unsigned long long)(i * 7 % 5));
    if (i % 5)
        assert_int_equal(
            slu_names_domain_number(s->names, name, strlen(name), &domain, &err),
            SLU_OK);
    struct slu_seg g[3] = {
        {i % 3, doc, i % 4 ? 0 : 5, len, domain, 2, 0},
        {(i + 1) % 3, doc + 1, 0, 1, SLU_NO_DOMAIN, 0, 0},
        {SLU_PADDING, 0, 0, 1, SLU_NO_DOMAIN, 0, 0},
    };
    if (i % 2)
        g[0].len_tok -= 2;
    for (uint64_t t = 0; t < len; t++)
        tok[t] = (uint32_t)((doc * 131 + t * 17) % 70000);
    assert_int_equal(
        slu_batch_add(b, tok, len, g, i % 2 ? 3 : 1, (const uint8_t *)"id", &err),
        SLU_OK);
}

static int give(void *ctx, struct slu_batch *b, struct slu_err *err)
{
    struct source *s = ctx;

    slu_batch_clear(b);
    while (b->n_seq < 2 && s->bucket < N_BUCKET) {
        const struct slu_shards_span *n = &s->span[s->bucket];
        if (s->at == n->n_seq) {
            s->bucket++;
            s->at = 0;
            continue;
        }
        if (s->stop && --s->stop == 0) {
            if (s->kill)
                _exit(9);
            return slu_fail(err, SLU_E_IO, "stopped");
        }
        sequence(s, s->bucket, n->first_shard * SHARD + s->at++, b);
    }
    return b->n_seq ? SLU_OK : SLU_EOF;
}

/* ---- sets ---- */

struct set {
    const struct slu_shard_format *format;
    char dir[128], work[128];
    bool drop, force;
    uint64_t seed, input;
    unsigned threads;
    struct slu_names *names;
    struct slu_shards *shards;
    struct slu_err err;
};

static void begin(struct set *t, const char *dir, bool parts)
{
    static const char *const sources[] = {"x.jsonl", "y.jsonl", "z.jsonl"};
    struct slu_header h;

    t->err = (struct slu_err)SLU_ERR_INIT;
    slu_header_init(&h);
    h.tok_bytes = 4;
    h.vocab_size = 70000;
    h.eos = 1;
    h.label_tokens = t->format->labels == SLU_LABELS_WANTED;
    h.n_bucket = N_BUCKET;
    for (unsigned i = 0; i < N_BUCKET; i++)
        h.bucket[i] = lengths[i];
    assert_int_equal(slu_header_add_step(&h, "shuffle", "1", "{}", t->seed, &t->err),
                     SLU_OK);
    assert_int_equal(slu_names_new(&t->names, &t->err), SLU_OK);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(slu_names_set_source(t->names, i, sources[i], &t->err),
                         SLU_OK);
    struct slu_shards_cfg cfg = {.format = t->format,
                                 .dir = dir,
                                 .header = &h,
                                 .names = t->names,
                                 .seed = t->seed,
                                 .shard_sequences = SHARD,
                                 .by_bucket = true,
                                 .drop_last = t->drop,
                                 .force = t->force,
                                 .replace = t->force,
                                 .olmo_path =
                                     strcmp(t->format->name, "olmo") ? NULL : "/data",
                                 .zstd_level = 3,
                                 .parts = parts};
    if (slu_shards_new(&t->shards, &cfg, &t->err) != SLU_OK)
        fail_msg("%s", t->err.msg);
    slu_header_release(&h);
}

static void end(struct set *t)
{
    slu_shards_free(t->shards);
    slu_names_free(t->names);
    t->shards = NULL;
}

static struct source source_of(struct set *t, const struct slu_shards_span *span)
{
    struct source s = {.label = t->format->labels == SLU_LABELS_WANTED,
                       .names = t->names};
    memcpy(s.span, span, sizeof s.span);
    return s;
}

static int finish(struct set *t)
{
    struct slu_ledger l = {0};

    l.out = slu_shards_sum(t->shards)->n;
    if (slu_shards_dropped(t->shards)->n.sequences)
        slu_ledger_drop(&l, "short", slu_shards_dropped(t->shards)->n);
    return slu_shards_finish(t->shards, "test", &l, &t->err);
}

/* Sequences of several documents in the set: those of odd numbers. */
static uint64_t n_packed(bool drop)
{
    uint64_t n = 0;

    for (unsigned k = 0; k < N_BUCKET; k++)
        n += (drop ? n_seqs[k] - n_seqs[k] % SHARD : n_seqs[k]) / 2;
    return n;
}

static void write_at_once(struct set *t, const char *dir)
{
    struct slu_shards_span all[N_BUCKET];
    struct slu_sum in = {.n.sequences = t->input};

    for (unsigned i = 0; i < N_BUCKET; i++)
        all[i] = (struct slu_shards_span){0, n_seqs[i], true};
    begin(t, dir, false);
    struct source s = source_of(t, all);
    if (slu_shards_write(t->shards, give, &s, &in, t->threads, t->threads + 1,
                         &t->err) ||
        finish(t))
        fail_msg("%s", t->err.msg);
    assert_int_equal(slu_shards_packed(t->shards), n_packed(t->drop));
    end(t);
}

static uint64_t n_shards(unsigned k)
{
    return (n_seqs[k] + SHARD - 1) / SHARD;
}

/* Part j of r: shards cut evenly, which leaves parts without any of short buckets. */
static void cut(uint64_t j, uint64_t r, struct slu_shards_span *span)
{
    for (unsigned k = 0; k < N_BUCKET; k++) {
        uint64_t from = n_shards(k) * j / r, to = n_shards(k) * (j + 1) / r;
        uint64_t end_seq = to * SHARD < n_seqs[k] ? to * SHARD : n_seqs[k];
        span[k] =
            (struct slu_shards_span){from, end_seq - from * SHARD, to == n_shards(k)};
    }
}

/* Writes a part; *skipped is set if not NULL. */
static int part_of(struct set *t, uint64_t j, uint64_t r, uint64_t stop, bool kill,
                   bool *skipped)
{
    struct slu_shards_span span[N_BUCKET];
    struct slu_shards_part p = {t->work, j, r, span};
    struct slu_sum in = {.n.sequences = t->input};

    cut(j, r, span);
    begin(t, t->dir, true);
    struct source s = source_of(t, span);
    s.stop = stop;
    s.kill = kill;
    int rc = slu_shards_write_part(t->shards, &p, give, &s, &in, t->threads,
                                   t->threads + 1, &t->err);
    if (skipped)
        *skipped = slu_shards_skipped(t->shards);
    end(t);
    return rc;
}

static int join(struct set *t, uint64_t r)
{
    struct slu_sum in = {.n.sequences = t->input};

    begin(t, t->dir, true);
    int rc = slu_shards_join(t->shards, t->work, r, &in, &t->err);
    if (rc == SLU_OK)
        rc = finish(t);
    end(t);
    return rc;
}

static void shell(const char *fmt, const char *a, const char *b)
{
    char cmd[512];

    snprintf(cmd, sizeof cmd, fmt, a, b);
    assert_int_equal(system(cmd), 0);
}

static void fresh(struct set *t, const struct slu_shard_format *f)
{
    *t = (struct set){.format = f, .seed = 7, .input = 27, .threads = 1};
    snprintf(t->dir, sizeof t->dir, "%s/dir", top);
    snprintf(t->work, sizeof t->work, "%s/work", top);
    shell("rm -rf %s %s", t->dir, t->work);
    mkdir(t->work, 0777);
}

static void same(const struct set *t, const char *want)
{
    shell("diff -r %s %s >&2", want, t->dir);
}

static void write_all(struct set *t, uint64_t r)
{
    for (uint64_t j = r; j-- > 0;)
        if (part_of(t, j, r, 0, false, NULL))
            fail_msg("%s", t->err.msg);
}

static void says(const struct set *t, const char *what)
{
    if (!strstr(t->err.msg, what) || strchr(t->err.msg, '\n'))
        fail_msg("'%s' is not in: %s", what, t->err.msg);
}

/* ---- tests ---- */

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

/* The files of parts, for damage. */
static void path_in(const struct set *t, const char *folder, const char *name,
                    char out[256])
{
    snprintf(out, 256, "%s/%s", strcmp(folder, "work") ? t->dir : t->work, name);
}

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
        {"dir", "D_4/shard-0000002.tar", "is missing", REMOVE, 1},
        {"dir", "D_4/shard-0000005.tar", "bytes", CUT, 2},
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
        {"shards.1-of-3.jsonl", "\"arguments\":\"", "\"arguments\":\"0",
         "other arguments"},
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
    for (int k = 0; k < 3; k++) {
        fresh(&t, &slu_shard_wds);
        write_all(&t, 3);
        t.seed += k == 0;
        t.input += k == 1;
        uint64_t r = k == 2 ? 2 : 3;
        assert_int_equal(join(&t, r), SLU_E_MISMATCH);
        says(&t, k == 0 ? "other arguments" : k == 1 ? "other input" : "other parts");
        assert_int_equal(part_of(&t, 0, r, 0, false, NULL), SLU_E_MISMATCH);
        says(&t, k == 0 ? "other arguments" : k == 1 ? "other input" : "other parts");
    }
}

/* Who may write where. */
static void test_folder(void **state)
{
    char want[128], path[256];
    struct set t;
    bool skipped;

    (void)state;
    snprintf(want, sizeof want, "%s/want", top);
    shell("rm -rf %s%s", want, "");
    fresh(&t, &slu_shard_wds);
    write_at_once(&t, want);
    fresh(&t, &slu_shard_wds);
    /* The same part twice at once. */
    path_in(&t, "work", "shards.1-of-3.lock", path);
    int fd = open(path, O_RDWR | O_CREAT, 0666);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(part_of(&t, 1, 3, 0, false, NULL), SLU_E_MISMATCH);
    says(&t, "part 1/3 is being written by another process");
    assert_int_equal(part_of(&t, 0, 3, 0, false, NULL), SLU_OK);
    close(fd);
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
    fd = open(t.dir, O_RDONLY);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    cfg.replace = true;
    assert_int_equal(slu_shards_new(&s, &cfg, &t.err), SLU_OK);
    struct source none = {.bucket = N_BUCKET};
    t.err = (struct slu_err)SLU_ERR_INIT;
    assert_int_equal(slu_shards_write(s, give, &none, NULL, 1, 2, &t.err),
                     SLU_E_MISMATCH);
    says(&t, "another shuffle is writing here");
    slu_shards_free(s);
    slu_header_release(&h);
    if (part_of(&t, 1, 3, 0, false, NULL)) /* beside others */
        fail_msg("%s", t.err.msg);
    assert_int_equal(part_of(&t, 2, 3, 0, false, NULL), SLU_OK);
    assert_int_equal(join(&t, 3), SLU_E_MISMATCH);
    says(&t, "other processes are writing here");
    assert_int_equal(flock(fd, LOCK_EX), 0);
    t.force = true;
    assert_int_equal(part_of(&t, 1, 3, 0, false, NULL), SLU_E_MISMATCH);
    says(&t, "another shuffle is writing here");
    close(fd);
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
    path_in(&t, "dir", "report.json", path);
    assert_int_not_equal(access(path, F_OK), 0);
    path_in(&t, "dir", "D_4/shard-0000005.tar", path);
    assert_int_not_equal(access(path, F_OK), 0);
    t.force = false;
    write_all(&t, 3);
    assert_int_equal(join(&t, 3), SLU_OK);
    same(&t, want);
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
        static const char *const names[] = {".sluice-a.tmp", "D_4/.sluice-b.tmp"};
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

static int teardown(void **state)
{
    (void)state;
    shell("rm -rf %s%s", top, "");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),  cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_no_spans), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_disagree), cmocka_unit_test(test_folder),
        cmocka_unit_test(test_together), cmocka_unit_test(test_spans),
    };
    /* In memory, where that is: some thousands of files are synced. */
    snprintf(top, sizeof top, "%s/sluice-parts.XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(top))
        return 1;
    return cmocka_run_group_tests(tests, NULL, teardown);
}
