/* test_shard.c - a shard set byte by byte: the tar headers and texts of WebDataset
 * shards compared with POSIX and shard_wds.c, manifests, the short last shard, refused
 * input. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/shard.h"

static char dir[64];

struct source {
    uint64_t at, n;
    uint64_t bucket[2];
};

/* Tokens of sequence i: numbers of every length. */
static uint32_t token(uint64_t i, uint64_t k)
{
    static const uint32_t some[] = {
        0,     9,     10,    99,     100,     999,      1000,      9999,
        10000, 10001, 99999, 100000, 1000000, 99999999, 100000000, 4294967294u};
    return k < 16 && i % 2 ? some[(i + k) % 16] : (uint32_t)(i * 1000 + k);
}

static int give(void *ctx, struct slu_pipe *pipe, struct slu_batch *b,
                struct slu_err *err)
{
    struct source *s = ctx;

    (void)pipe;
    slu_batch_clear(b);
    for (size_t n = 0; n < 3 && s->at < s->n; n++, s->at++) {
        uint64_t len = s->bucket[s->at % 2] + 1;
        uint32_t tok[64];
        struct slu_seg g = {0, s->at * 10, 0, len, SLU_NO_DOMAIN, 0, 0};
        for (uint64_t k = 0; k < len; k++)
            tok[k] = token(s->at, k);
        assert_int_equal(slu_batch_add(b, tok, len, &g, 1, NULL, err), SLU_OK);
    }
    return b->n_seq ? SLU_OK : SLU_EOF;
}

static char *slurp(const char *name, size_t *n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (access(path, F_OK)) /* not published yet */
        snprintf(path, sizeof path, "%s/.partial/%s", dir, name);
    FILE *f = fopen(path, "rb");
    char *p = calloc(1, 1 << 20);

    *n = f ? fread(p, 1, 1 << 20, f) : 0;
    if (f)
        fclose(f);
    return p;
}

static void header(struct slu_header *h)
{
    slu_header_init(h);
    h->tok_bytes = 4;
    h->vocab_size = 4294967295u;
    h->label_tokens = true;
    h->n_bucket = 2;
    h->bucket[0] = 4;
    h->bucket[1] = 16;
}

/* One member, made without any of the code under test. */
static size_t member(char *out, uint64_t index, uint64_t i, uint64_t len)
{
    char text[1024];
    size_t n = 0;
    unsigned sum = 0;

    n += (size_t)sprintf(text + n, "[");
    for (uint64_t k = 0; k < len; k++)
        n += (size_t)sprintf(text + n, k ? ", %u" : "%u", token(i, k));
    n += (size_t)sprintf(text + n, "]");
    memset(out, 0, 2048);
    sprintf(out, "%012llu.txt", (unsigned long long)index);
    strcpy(out + 100, "0000644");
    strcpy(out + 108, "0000000");
    strcpy(out + 116, "0000000");
    sprintf(out + 124, "%011llo", (unsigned long long)n);
    strcpy(out + 136, "00000000000");
    memset(out + 148, ' ', 8);
    out[156] = '0';
    strcpy(out + 257, "ustar");
    memcpy(out + 263, "00", 2);
    strcpy(out + 329, "0000000");
    strcpy(out + 337, "0000000");
    for (int k = 0; k < 512; k++)
        sum += (unsigned char)out[k];
    sprintf(out + 148, "%06o", sum);
    memcpy(out + 512, text, n);
    return 512 + (n + 511) / 512 * 512;
}

static void write_set_in(uint64_t memory_byte, bool drop_last, bool force,
                         unsigned threads, uint64_t n)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_header h;
    struct slu_names *names;
    struct slu_shards *s;
    struct slu_account l = {0};
    struct source src = {0, n, {4, 16}};

    header(&h);
    assert_int_equal(slu_names_new(&names, &err), SLU_OK);
    assert_int_equal(slu_names_set_source(names, 0, "x", &err), SLU_OK);
    struct slu_shards_cfg cfg = {.format = &slu_shard_wds,
                                 .dir = dir,
                                 .header = &h,
                                 .names = names,
                                 .shard_sequences = 4,
                                 .memory_byte = memory_byte,
                                 .drop_last = drop_last,
                                 .replace = force};
    if (slu_shards_new(&s, &cfg, &err) != SLU_OK)
        fail_msg("%s", err.msg);
    if (slu_shards_write(s, give, &src, NULL, threads, threads + 1, &err) != SLU_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(slu_shards_finish(s, "test", &l, &err), SLU_OK);
    assert_int_equal(
        slu_shards_sum(s)->n.sequences + slu_shards_dropped(s)->n.sequences, n);
    slu_shards_free(s);
    slu_names_free(names);
    slu_header_release(&h);
}

static void write_set(bool drop_last, bool force, unsigned threads, uint64_t n)
{
    write_set_in(0, drop_last, force, threads, n);
}

static void check_shard(const char *name, uint64_t first, uint64_t n, uint64_t bucket)
{
    size_t got, at = 0;
    char *p = slurp(name, &got), want[4096];

    for (uint64_t i = 0; i < n; i++) {
        size_t k = member(want, i, first + 2 * i, bucket + 1);
        assert_true(at + k <= got);
        assert_memory_equal(p + at, want, k);
        at += k;
    }
    memset(want, 0, 1024);
    assert_int_equal(got, at + 1024);
    assert_memory_equal(p + at, want, 1024);
    free(p);
}

static void check_text(const char *name, const char *want)
{
    size_t n;
    char *p = slurp(name, &n);

    assert_string_equal(p, want);
    free(p);
}

static void test_bytes(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads < 7; threads++) {
        /* With so little memory, sequences of 17 ids are written in pieces. */
        write_set_in(threads < 4 ? 0 : 500, false, threads > 1, threads, 21);
        /* Sequences 0, 2, … 20 are of bucket 4, the others of 16; four a shard. */
        check_shard("D_2/shard-0000000.tar", 0, 4, 4);
        check_shard("D_2/shard-0000001.tar", 8, 4, 4);
        check_shard("D_2/shard-0000002.tar", 16, 3, 4);
        check_shard("D_4/shard-0000000.tar", 1, 4, 16);
        check_shard("D_4/shard-0000001.tar", 9, 4, 16);
        check_shard("D_4/shard-0000002.tar", 17, 2, 16);
        check_text("D_2/manifest.jsonl",
                   "{\"shard\":\"shard-0000000\",\"num_sequences\":4}\n"
                   "{\"shard\":\"shard-0000001\",\"num_sequences\":4}\n"
                   "{\"shard\":\"shard-0000002\",\"num_sequences\":3}\n");
    }
    write_set(true, true, 2, 21);
    check_text("D_4/manifest.jsonl",
               "{\"shard\":\"shard-0000000\",\"num_sequences\":4}\n"
               "{\"shard\":\"shard-0000001\",\"num_sequences\":4}\n");
    char path[128];
    snprintf(path, sizeof path, "%s/D_4/shard-0000002.tar", dir);
    assert_int_not_equal(access(path, F_OK), 0);
    /* All of both buckets is short: nothing is left of them. */
    write_set(true, true, 1, 6);
    snprintf(path, sizeof path, "%s/D_4", dir);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void test_refusals(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_header h;
    struct slu_shards *s;
    const struct slu_shard_format *f;
    char path[128];

    header(&h);
    struct slu_shards_cfg cfg = {.format = &slu_shard_wds, .dir = dir, .header = &h};
    snprintf(path, sizeof path, "%s/keep-me", dir);
    assert_int_equal(mkdir(dir, 0777) && access(dir, F_OK), 0);
    int fd = open(path, O_CREAT | O_WRONLY, 0666);
    close(fd);
    assert_int_equal(slu_shards_new(&s, &cfg, &err), SLU_E_MISMATCH);
    assert_int_equal(err.advice, SLU_ADVISE_REPLACE_SET);
    write_set(false, true, 1, 3);
    assert_int_equal(access(path, F_OK), 0); /* not ours: it stays */
    cfg.replace = true;
    h.bucket[1] = 17;
    assert_int_equal(slu_shards_new(&s, &cfg, &err), SLU_E_MISMATCH);
    h.bucket[1] = 16;
    h.label_tokens = false;
    cfg.replace = false;
    assert_int_equal(slu_shards_new(&s, &cfg, &err), SLU_E_MISMATCH);
    assert_int_equal(err.advice, SLU_ADVISE_LABEL_TOKEN);
    h.n_bucket = 0;
    assert_int_equal(slu_shards_new(&s, &cfg, &err), SLU_E_MISMATCH);
    assert_int_equal(slu_shard_format_find(&f, "no-such", &err), SLU_E_UNSUPPORTED);
    assert_int_equal(slu_shard_format_find(&f, "wds", &err), SLU_OK);
    assert_int_equal(f->shard_sequences(&(struct slu_shard_bucket){.length = 256}),
                     4096);
    assert_int_equal(f->shard_sequences(&(struct slu_shard_bucket){.length = 2}),
                     65536);
    assert_int_equal(f->shard_sequences(&(struct slu_shard_bucket){.length = 1 << 22}),
                     1);
    slu_header_release(&h);
}

/* ---- made-up formats: the same bytes by streaming and by building ---- */

static int toy_init(void **state, const struct slu_shards_cfg *cfg, struct slu_err *err)
{
    (void)cfg;
    (void)err;
    *state = NULL;
    return SLU_OK;
}

static void toy_name(const void *state, uint64_t number, unsigned file, char *out,
                     size_t cap)
{
    (void)state;
    snprintf(out, cap, "shard-%llu.%c", (unsigned long long)number, "abc"[file]);
}

static uint64_t toy_sequences(const struct slu_shard_bucket *b)
{
    (void)b;
    return 4;
}

static bool toy_owns(const char *name)
{
    (void)name;
    return true;
}

/* .a: the ids; .b: a line a sequence; .c: the number of both. */
static int toy_encode(const void *state, const struct slu_shard_bucket *b,
                      uint64_t index, const struct slu_shard_seq *q,
                      struct slu_buf *out, struct slu_err *err)
{
    (void)state;
    int rc = slu_buf_append(&out[0], q->tok, b->n_id * b->tok_bytes, err);
    return rc ? rc
              : slu_buf_printf(&out[1], err, "%llu of document %llu\n",
                               (unsigned long long)index,
                               (unsigned long long)q->seg->document);
}

/* Marks that the bytes went through it, once a run. */
static int toy_flush(const void *state, unsigned file, const struct slu_buf *in,
                     struct slu_buf *out, struct slu_err *err)
{
    (void)state;
    assert_int_equal(file, 1);
    int rc = slu_buf_append(out, "<", 1, err);
    return rc ? rc : slu_buf_append(out, in->data, in->len, err);
}

static int toy_end(void *state, const struct slu_shard *s, unsigned file,
                   struct slu_out *out, struct slu_err *err)
{
    uint8_t n = (uint8_t)s->n_seq;
    (void)state;
    return file == 2 ? slu_out_write(out, &n, 1, err) : SLU_OK;
}

static int toy_build(const void *state, const struct slu_shard *s,
                     const struct slu_batch *b, struct slu_buf *out,
                     struct slu_shard_facts *f, struct slu_err *err)
{
    uint8_t n = (uint8_t)b->n_seq;
    int rc = slu_buf_append(&out[1], "<", 1, err);

    assert_int_equal(b->n_seq, s->n_seq);
    assert_int_equal(f->n_tok, s->n_seq * s->bucket->n_id);
    for (size_t i = 0; i < b->n_seq && !rc; i++) {
        const struct slu_seq *k = &b->seq[i];
        struct slu_shard_seq q = {
            slu_batch_at(b, k->tok_off), k->len_tok, i * s->bucket->n_id,
            &b->seg[k->seg_off],         k->n_seg,   b->str.data};
        rc = toy_encode(state, s->bucket, i, &q, out, err);
    }
    return rc ? rc : slu_buf_append(&out[2], &n, 1, err);
}

static uint64_t toy_build_byte(const struct slu_shard_bucket *b)
{
    return b->shard_sequences * b->n_id * 8;
}

/* The hashes that the engine hands over are those of the files. */
static int toy_bucket(void *state, const struct slu_shard_bucket *b,
                      const struct slu_shard_facts *shard, struct slu_out *out,
                      struct slu_err *err)
{
    int rc = SLU_OK;

    for (uint64_t i = 0; i < b->n_shard && !rc; i++)
        for (unsigned k = 0; k < 3 && !rc; k++) {
            char name[64];
            size_t n;
            int len = snprintf(name, sizeof name, "%s/", b->name);
            toy_name(state, i, k, name + len, sizeof name - (size_t)len);
            char *p = slurp(name, &n);
            assert_int_equal(shard[i].n_byte[k], n);
            assert_true(shard[i].xxh3[k] == slu_hash64(p, n));
            rc = slu_out_write(out, p, n, err);
            free(p);
        }
    return rc;
}

static const struct slu_shard_format toys[] = {
    {.name = "wds",
     .shard_sequences = toy_sequences,
     .init = toy_init,
     .n_file = 3,
     .file_name = toy_name,
     .owns = toy_owns,
     .encode = toy_encode,
     .flush = toy_flush,
     .flush_files = 1 << 1,
     .end = toy_end,
     .bucket_file = "all",
     .bucket = toy_bucket},
    {.name = "wds",
     .shard_sequences = toy_sequences,
     .init = toy_init,
     .n_file = 3,
     .file_name = toy_name,
     .owns = toy_owns,
     .build = toy_build,
     .build_byte = toy_build_byte,
     .bucket_file = "all",
     .bucket = toy_bucket},
};

/* Everything of a set in one text: D_2/all and D_4/all, and the manifest. */
static char *toy_set(const struct slu_shard_format *f, unsigned threads, bool drop_last,
                     uint64_t memory, size_t *n)
{
    char cmd[128];
    struct slu_err err = SLU_ERR_INIT;
    struct slu_header h;
    struct slu_names *names;
    struct slu_shards *s;
    struct slu_account l = {0};
    struct source src = {0, 23, {4, 16}};

    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
    header(&h);
    assert_int_equal(slu_names_new(&names, &err), SLU_OK);
    assert_int_equal(slu_names_set_source(names, 0, "x", &err), SLU_OK);
    struct slu_shards_cfg cfg = {.format = f,
                                 .dir = dir,
                                 .header = &h,
                                 .names = names,
                                 .memory_byte = memory,
                                 .drop_last = drop_last};
    assert_int_equal(slu_shards_new(&s, &cfg, &err), SLU_OK);
    if (slu_shards_write(s, give, &src, NULL, threads, 4, &err) != SLU_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(slu_shards_finish(s, "test", &l, &err), SLU_OK);
    assert_int_equal(slu_shards_sum(s)->n.sequences, drop_last ? 20 : 23);
    assert_int_equal(slu_shards_dropped(s)->n.sequences, drop_last ? 3 : 0);
    assert_int_equal(slu_shards_short(s, 0), 0);
    assert_int_equal(slu_shards_short(s, 1), drop_last ? 0 : 3);
    slu_shards_free(s);
    slu_names_free(names);
    slu_header_release(&h);
    size_t at = 0, got;
    char *all = calloc(1, 1 << 20);
    static const char *const name[] = {"D_2/all", "D_4/all", "manifest.jsonl"};
    for (int i = 0; i < 3; i++) {
        char *p = slurp(name[i], &got);
        assert_true(got > 0);
        memcpy(all + at, p, got);
        at += got;
        free(p);
    }
    *n = at;
    return all;
}

static void test_ways(void **state)
{
    (void)state;
    for (int drop = 0; drop < 2; drop++) {
        size_t n, got;
        char *want = toy_set(&toys[0], 1, drop, 0, &n);
        for (unsigned threads = 1; threads < 4; threads++)
            for (int k = 0; k < 2; k++)
                for (uint64_t memory = 0; memory <= 1 << 20; memory += 1 << 19) {
                    char *p = toy_set(&toys[k], threads, drop, memory, &got);
                    assert_int_equal(got, n);
                    assert_memory_equal(p, want, n);
                    free(p);
                }
        free(want);
    }
}

/* If the memory is too small, the message names the largest shard that it allows. */
static void test_memory(void **state)
{
    (void)state;
    struct slu_err err = SLU_ERR_INIT;
    struct slu_header h;
    struct slu_shards *s;
    char *at;

    header(&h);
    struct slu_shards_cfg cfg = {.format = &toys[1],
                                 .dir = dir,
                                 .header = &h,
                                 .replace = true,
                                 .shard_sequences = 1 << 20,
                                 .memory_byte = 64 << 20};
    assert_int_equal(slu_shards_new(&s, &cfg, &err), SLU_E_USAGE);
    at = strstr(err.msg, "enough for ");
    assert_non_null(at);
    cfg.shard_sequences = strtoull(at + 11, NULL, 10);
    assert_true(cfg.shard_sequences > 0);
    err = (struct slu_err)SLU_ERR_INIT;
    assert_int_equal(slu_shards_new(&s, &cfg, &err), SLU_OK);
    slu_shards_free(s);
    cfg.shard_sequences++;
    assert_int_equal(slu_shards_new(&s, &cfg, &err), SLU_E_USAGE);
    cfg.memory_byte = 10;
    err = (struct slu_err)SLU_ERR_INIT;
    assert_int_equal(slu_shards_new(&s, &cfg, &err), SLU_E_USAGE);
    assert_int_equal(err.advice, SLU_ADVISE_MEMORY);
    slu_header_release(&h);
}

static void test_tables(void **state)
{
    (void)state;
    struct slu_shard_format f;
    struct slu_err err = SLU_ERR_INIT;

    for (unsigned i = 0; slu_shard_format_at(i); i++)
        assert_int_equal(slu_shard_format_check(slu_shard_format_at(i), &err), SLU_OK);
    f = *slu_shard_format_at(0);
    f.init = NULL;
    assert_int_equal(slu_shard_format_check(&f, &err), SLU_E_UNSUPPORTED);
    assert_string_equal(err.msg, "internal error: the table of format wds lacks init; "
                                 "please report it");
    f = *slu_shard_format_at(0);
    f.encode = NULL;
    assert_int_equal(slu_shard_format_check(&f, &err), SLU_E_UNSUPPORTED);
}

static int teardown(void **state)
{
    (void)state;
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    return system(cmd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_ways),   cmocka_unit_test(test_memory),
        cmocka_unit_test(test_tables),
    };
    snprintf(dir, sizeof dir, "/tmp/sluice-shard.XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    return cmocka_run_group_tests(tests, NULL, teardown);
}
