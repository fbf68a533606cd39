/* shard_parts.h - what the tests of shard sets in parts share: a source of sequences, sets
 * that are written at once, in parts and joined, and their folder. */
#ifndef SLU_TESTS_SHARD_PARTS_H
#define SLU_TESTS_SHARD_PARTS_H

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

static int give(void *ctx, struct slu_pipe *pipe, struct slu_batch *b,
                struct slu_err *err)
{
    struct source *s = ctx;

    (void)pipe;
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
    struct slu_account l = {0};

    l.out = slu_shards_sum(t->shards)->n;
    if (slu_shards_dropped(t->shards)->n.sequences)
        slu_account_drop(&l, "short", slu_shards_dropped(t->shards)->n);
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

/* The files of parts, for damage. */
static void path_in(const struct set *t, const char *folder, const char *name,
                    char out[256])
{
    snprintf(out, 256, "%s/%s", strcmp(folder, "work") ? t->dir : t->work, name);
}

static int setup(void **state)
{
    (void)state;
    /* In memory, where that is: some thousands of files are synced. */
    snprintf(top, sizeof top, "%s/sluice-parts.XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    shell("rm -rf %s%s", top, "");
    return 0;
}

#endif
