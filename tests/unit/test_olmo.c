/* test_olmo.c - OLMo-core's files byte by byte: ids and rows of a small set; the index,
 * with names that Python's hashlib made of the text that OLMo-core hashes; an order;
 * limits. SHA-256 by the examples of FIPS 180-4. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/olmo/olmo_cache.h"
#include "formats/olmo/olmo_rows.h"
#include "formats/shards/shard.h"
#include "lib/base/sha256.h"

static char dir[64];

static int setup(void **unused)
{
    (void)unused;
    snprintf(dir, sizeof dir, "/var/tmp/sluice-olmo-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **unused)
{
    char cmd[128];
    (void)unused;
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    return system(cmd);
}

/* Three sequences of 4 ids, one of 8 with two segments and padding. */
static int give(void *ctx, struct slu_pipe *pipe, struct slu_batch *b,
                struct slu_err *err)
{
    static const uint16_t tok[] = {5, 6, 7, 0, 8, 9, 10, 11, 12, 13, 14, 0};
    static const uint16_t packed[] = {20, 0, 21, 22, 23, 0, 1, 1};
    static const uint8_t ids[] = "a,1b\"2c\n3";
    unsigned *at = ctx;
    (void)pipe;
    slu_batch_clear(b);
    for (unsigned i = 0; i < 3 && *at == 0; i++) {
        struct slu_seg g = {0, 10 + i, 0, 4, SLU_NO_DOMAIN, 3, 3 * i};
        assert_int_equal(slu_batch_add(b, tok + 4 * i, 4, &g, 1, ids, err), SLU_OK);
    }
    if (*at == 1) {
        struct slu_seg g[3] = {{0, 7, 0, 2, SLU_NO_DOMAIN, 0, 0},
                               {1, 8, 3, 4, SLU_NO_DOMAIN, 0, 0},
                               {SLU_PADDING, 0, 0, 2, SLU_NO_DOMAIN, 0, 0}};
        assert_int_equal(slu_batch_add(b, packed, 8, g, 3, NULL, err), SLU_OK);
    }
    return (*at)++ < 2 ? SLU_OK : SLU_EOF;
}

static void header(struct slu_header *h)
{
    slu_header_init(h);
    h->tok_bytes = 2;
    h->vocab_size = 100;
    h->eos = 0;
    h->pad = 1;
    h->n_bucket = 2;
    h->bucket[0] = 4;
    h->bucket[1] = 8;
}

static void write_set(void)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_header h;
    struct slu_names *names;
    struct slu_shards *s;
    struct slu_account l = {0};
    unsigned at = 0;
    header(&h);
    assert_int_equal(slu_names_new(&names, &err), SLU_OK);
    assert_int_equal(slu_names_set_source(names, 0, "x.jsonl", &err), SLU_OK);
    assert_int_equal(slu_names_set_source(names, 1, "bad\xff", &err), SLU_OK);
    struct slu_shards_cfg cfg = {.format = &slu_shard_olmo,
                                 .dir = dir,
                                 .header = &h,
                                 .names = names,
                                 .shard_sequences = 2,
                                 .replace = true,
                                 .olmo_path = "/data/set/"};
    if (slu_shards_new(&s, &cfg, &err) != SLU_OK)
        fail_msg("%s", err.msg);
    if (slu_shards_write(s, give, &at, NULL, 2, 3, &err) != SLU_OK)
        fail_msg("%s", err.msg);
    if (slu_shards_finish(s, "test", &l, &err) != SLU_OK)
        fail_msg("%s", err.msg);
    slu_shards_free(s);
    slu_names_free(names);
    slu_header_release(&h);
}

static void same(const char *name, const void *want, size_t n)
{
    char path[512], got[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s is not there", name);
    size_t k = fread(got, 1, sizeof got, f);
    fclose(f);
    if (k != n || memcmp(got, want, n))
        fail_msg("%s: %zu bytes, not the %zu that it should have", name, k, n);
}

static void same_u32(const char *name, const uint32_t *want, size_t n)
{
    uint8_t b[256];
    for (size_t i = 0; i < 4 * n; i++)
        b[i] = (uint8_t)(want[i / 4] >> (8 * (i % 4)));
    same(name, b, 4 * n);
}

/* The rows as text again, by the reader; gzip's own bytes are zlib's affair. */
static void rows(const char *name, uint64_t n_tok, const char *want)
{
    char path[512], got[512] = "";
    struct slu_err err = SLU_ERR_INIT;
    struct slu_olmo_rows *r;
    struct slu_olmo_row row;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(slu_olmo_rows_open(&r, path, n_tok, &err), SLU_OK);
    while (!slu_olmo_rows_next(r, &row, &err))
        snprintf(got + strlen(got), sizeof got - strlen(got), "%u-%u:%.*s;",
                 (unsigned)row.start, (unsigned)row.end, (int)row.n_id, row.id);
    slu_olmo_rows_close(r);
    assert_string_equal(got, want);
}

#define COMMON "olmo-cache/dataset-common/bucketed-doc-indices-"
#define NATURAL                                                                        \
    "olmo-cache/dataset-"                                                              \
    "70de44591882527e2d7327c7bbcbdbb5113334eb9fbd75893546e88fdf8d497e"
#define P2                                                                             \
    "olmo-cache/dataset-"                                                              \
    "ea9dd416f9570450d60aad6a28dd6c75922c70e6beede0c3f55285c491cd1a40"

static void test_set(void **unused)
{
    static const uint8_t first[] = {5, 0, 6, 0, 7, 0, 0, 0, 8, 0, 9, 0, 10, 0, 11, 0},
                         last[] = {12, 0, 13, 0, 14, 0, 0, 0},
                         packed[] = {20, 0, 0, 0, 21, 0, 22, 0,
                                     23, 0, 0, 0, 1,  0, 1,  0},
                         lengths[] = {4, 4, 4, 8};
    (void)unused;
    write_set();
    same("D_2/shard-0000000.npy", first, sizeof first);
    same("D_2/shard-0000001.npy", last, sizeof last);
    same("D_3/shard-0000000.npy", packed, sizeof packed);
    rows("D_2/shard-0000000.csv.gz", 8, "0-4:a,1;4-8:b\"2;");
    /* A line's end in an id would be a row to readers of lines. */
    rows("D_2/shard-0000001.csv.gz", 4, "0-4:c 3;");
    rows("D_3/shard-0000000.csv.gz", 8, "0-2:;2-6:;");
    same_u32(COMMON
             "a832d56050dfa43b780b406befdee4c4f77a6a24c29850a2ef2e281193c1297a.npy",
             (const uint32_t[]){0, 4, 4, 8}, 4);
    same_u32(COMMON
             "fe2c218419aaabd364f172e7af119dd723647bd42b1602525dd9e18cd6e4f386.npy",
             (const uint32_t[]){0, 4}, 2);
    same_u32(COMMON
             "2c4eb93d676d1c279e50113070c0c5d84d61f328e8b3522c68ea4f99fbc03b6f.npy",
             (const uint32_t[]){0, 8}, 2);
    same(NATURAL "/instance-lengths.npy", lengths, sizeof lengths);
    same_u32(NATURAL "/bucket4-indices.npy", (const uint32_t[]){0, 1, 2}, 3);
    same_u32(NATURAL "/bucket8-indices.npy", (const uint32_t[]){3}, 1);
    write_set(); /* replaced: what was there is known as ours, and nothing else is left
                  */
}

static int next(void *arg, uint32_t *batch, size_t cap, size_t *n, struct slu_err *err)
{
    uint32_t *at = arg;
    (void)err;
    for (*n = 0; *n < cap && *at; ++*n)
        batch[*n] = --*at;
    return SLU_OK;
}

static void test_order(void **unused)
{
    static const struct slu_olmo_bucket bucket[] = {{4, 3, 2}, {8, 1, 2}};
    struct slu_olmo_set set = {.bucket = bucket,
                               .n_bucket = 2,
                               .tok_bytes = 2,
                               .vocab_size = 100,
                               .eos = 0,
                               .pad = 1,
                               .prefix = "/data/set"};
    struct slu_olmo_curriculum c = {SLU_OLMO_P2, 8, false};
    struct slu_err err = SLU_ERR_INIT;
    char work[128];
    uint32_t left = 3;
    struct slu_olmo_order order = {.batch_tokens = 8,
                                   .epoch = 2,
                                   .seed = 5,
                                   .n_batch = 3,
                                   .next = next,
                                   .arg = &left};
    (void)unused;
    snprintf(work, sizeof work, "%s/olmo-cache", dir);
    assert_int_equal(slu_olmo_write_index(work, &set, &c, &err), SLU_OK);
    assert_int_equal(slu_olmo_write_order(work, &set, &c, &order, &err), SLU_OK);
    same_u32(P2 "/vsl-grow-p2-8-cycle/global_batch_indices_bz8_epoch2_seed5.npy",
             (const uint32_t[]){2, 1, 0}, 3);
    same_u32(P2 "/vsl-grow-p2-8-cycle/instance_indices_bucket4_epoch2_seed5.npy",
             (const uint32_t[]){0, 1, 2}, 3);
    same_u32(P2 "/vsl-grow-p2-8-cycle/instance_indices_bucket8_epoch2_seed5.npy",
             (const uint32_t[]){3}, 1);
    left = 2; /* one too few: nothing is left under the name */
    order.epoch = 3;
    assert_int_equal(slu_olmo_write_order(work, &set, &c, &order, &err),
                     SLU_E_CONSERVATION);
    assert_int_equal(slu_olmo_tokenizer(&set, "dolma2", &err), SLU_OK);
    assert_int_equal(set.vocab_size, 100278);
    assert_int_equal(slu_olmo_tokenizer(&set, "10,3,4", &err), SLU_OK);
    assert_int_equal(set.pad, 4);
    for (size_t i = 0; i < 6; i++) {
        static const char *const bad[] = {
            "", "10,3", "10,3,4,", "3,3,1", "99999999999,1,1", "gpt2"};
        assert_int_equal(slu_olmo_tokenizer(&set, bad[i], &err), SLU_E_USAGE);
    }
}

/* Files in the order of strings, as what a pattern finds: D_10 before D_9. */
static void test_sorted(void **unused)
{
    static const struct slu_olmo_bucket bucket[] = {
        {256, 1, 9}, {512, 2, 9}, {1024, 1, 9}};
    struct slu_olmo_set set = {bucket, 3, 4, 100, 0, 1, "/p"};
    struct slu_olmo_curriculum c = {SLU_OLMO_NATURAL, 1, false};
    struct slu_err err = SLU_ERR_INIT;
    char cmd[512];
    (void)unused;
    assert_int_equal(slu_olmo_write_index(dir, &set, &c, &err), SLU_OK);
    snprintf(
        cmd, sizeof cmd,
        "test \"$(grep -o 'D_[0-9]*' %s/vsl-natural.json | tr '\\n' ' ')\" = "
        "'D_10 D_8 D_9 ' && test \"$(od -An -td4 %s/dataset-*/bucket512-indices.npy)\" "
        "= '           2           3'",
        dir, dir);
    assert_int_equal(system(cmd), 0);
}

static void test_limits(void **unused)
{
    struct slu_olmo_bucket b[2] = {{4, 10, 10}, {8, 10, 10}};
    struct slu_olmo_set set = {b, 2, 2, 100, 0, 1, "/p"};
    struct slu_err err = SLU_ERR_INIT;
    (void)unused;
    assert_int_equal(slu_olmo_check(&set, &err), SLU_OK);
    b[1].shard_sequences = UINT32_MAX / 8 + 1;
    assert_int_equal(slu_olmo_check(&set, &err), SLU_E_LIMIT);
    b[1].shard_sequences = UINT32_MAX / 8;
    assert_int_equal(slu_olmo_check(&set, &err), SLU_OK);
    b[1].n_seq = UINT32_MAX;
    assert_int_equal(slu_olmo_check(&set, &err), SLU_E_LIMIT);
    b[1].n_seq = 10;
    b[1].length = 12;
    assert_int_equal(slu_olmo_check(&set, &err), SLU_E_MISMATCH);
    b[1].length = 8;
    set.eos = SLU_NO_TOKEN;
    assert_int_equal(slu_olmo_check(&set, &err), SLU_E_MISMATCH);
    set.eos = 0;
    set.n_bucket = 1;
    assert_int_equal(slu_olmo_check(&set, &err), SLU_E_MISMATCH);
    /* Shards past 2^32 ids, before anything is written. */
    struct slu_shard_bucket k = {
        .name = "D_3", .length = 8, .n_id = 8, .tok_bytes = 2, .id_bytes = 2};
    k.shard_sequences = UINT32_MAX / 8 + 1;
    assert_int_equal(slu_shard_olmo.check(&k, &err), SLU_E_USAGE);
    if (!strstr(err.msg, "at most 536870911 fit"))
        fail_msg("%s", err.msg);
    k.shard_sequences = slu_shard_olmo.shard_sequences(&k);
    assert_int_equal(slu_shard_olmo.check(&k, &err), SLU_OK);
}

static void test_sha256(void **unused)
{
    static const struct {
        const char *text, *hex;
    } t[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
    struct slu_sha256 s;
    char hex[65];
    (void)unused;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        slu_sha256_init(&s);
        slu_sha256_update(&s, t[i].text, strlen(t[i].text));
        slu_sha256_hex(&s, hex);
        assert_string_equal(hex, t[i].hex);
    }
    slu_sha256_init(&s); /* a million times "a", in pieces of odd lengths */
    for (size_t left = 1000000, n = 1; left; left -= n, n = n % 977 + 1) {
        static char a[1000];
        memset(a, 'a', sizeof a);
        n = n < left ? n : left;
        slu_sha256_update(&s, a, n);
    }
    slu_sha256_hex(&s, hex);
    assert_string_equal(
        hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_set, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sorted, setup, teardown),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_sha256),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
