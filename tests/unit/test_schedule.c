/* test_schedule.c - schedules: the reference implementation's worked example, digit for
 * digit; odds; manifests.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/manifests.h"

static char root[64];

static void manifest(const char *dir, unsigned i, unsigned shards, unsigned seqs,
                     unsigned last)
{
    char path[256];
    snprintf(path, sizeof path, "%s/D_%u", dir, i);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/D_%u/manifest.jsonl", dir, i);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (unsigned k = 0; k < shards; k++)
        fprintf(f, "{\"shard\":\"shard-%07u\",\"num_sequences\":%u}\n", k, seqs);
    if (last)
        fprintf(f, "{\"shard\":\"shard-%07u\",\"num_sequences\":%u}\n", shards, last);
    fclose(f);
}

static int setup(void **unused)
{
    (void)unused;
    snprintf(root, sizeof root, "/var/tmp/sluice-schedule-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **unused)
{
    (void)unused;
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf %s", root);
    return system(cmd) ? -1 : 0;
}

static void worked_example(void **unused)
{
    (void)unused;
    static const unsigned shards[] = {3560, 5996, 7410, 6309, 5157, 4513};
    for (unsigned i = 0; i < 6; i++)
        manifest(root, 8 + i, shards[i], 1u << (12 - i), i % 2 ? 7 : 0);
    struct slu_bucket_counts s;
    struct slu_openlm o;
    struct slu_err err = SLU_ERR_INIT;
    slu_bucket_counts_init(&s);
    assert_int_equal(slu_manifests_add(&s, root, &err), SLU_OK);
    assert_int_equal(s.n_bucket, 6);
    assert_int_equal(s.bucket[1].short_shards, 1);
    assert_int_equal(s.bucket[1].short_seq, 7);
    struct slu_openlm_cfg cfg = {.tokens = 28795904000,
                                 .epochs = 8,
                                 .world = 8,
                                 .workers = 1,
                                 .batch_tokens = 524288,
                                 .curriculum = "grow-p2"};
    assert_int_equal(slu_openlm_plan(&o, &s, &cfg, &err), SLU_OK);
    struct slu_buf text = SLU_BUF_INIT;
    assert_int_equal(slu_openlm_text(&o, &s, &text, &err), SLU_OK);
    assert_int_equal(slu_buf_append(&text, "", 1, &err), SLU_OK);
    char *rest = strchr((char *)text.data, '\n');
    assert_non_null(rest);
    assert_string_equal(
        rest, "\n--epochs 8\n--train-num-samples 3607101440\n"
              "--dataset-batch-mult 32 16 8 4 2 1\n"
              "--source-num-seq-per-epoch 1507328 1277952 794624 335872 137216 61440\n"
              "--train-data-mix-weights 1472 1248 776 328 134 60\n"
              "--global-batch-size 64\n");
    assert_false(o.exact);
    slu_openlm_release(&o);
    /* A number of tokens that whole shards can make is met. */
    cfg.tokens = UINT64_C(430) * 8388608 * 8;
    assert_int_equal(slu_openlm_plan(&o, &s, &cfg, &err), SLU_OK);
    assert_true(o.exact);
    slu_openlm_release(&o);
    /* A step must not need more than the shards of all GPUs have. */
    cfg.batch_tokens = 8388608;
    assert_int_equal(slu_openlm_plan(&o, &s, &cfg, &err), SLU_E_MISMATCH);
    slu_openlm_release(&o);
    cfg.batch_tokens = 8192;
    assert_int_equal(slu_openlm_plan(&o, &s, &cfg, &err), SLU_E_USAGE);
    slu_openlm_release(&o);
    slu_bucket_counts_release(&s);
    slu_buf_release(&text);
}

static void odds(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        uint64_t odds[4];
    } good[] = {{"natural", {1, 1, 1, 1}},     {"uniform", {1, 1, 1, 1}},
                {"grow-linear", {4, 3, 2, 1}}, {"grow-p2", {8, 4, 2, 1}},
                {"shrink-p2", {1, 2, 4, 8}},   {"grow-p100", {1000000, 10000, 100, 1}},
                {"9,0,1,5", {9, 0, 1, 5}},     {"shrink-linear", {1, 2, 3, 4}}};
    static const char *const bad[] = {"",          "grow",   "grow-p3", "1,2,3",
                                      "1,2,3,4,5", "1,2,3,", "1 2 3 4", "-1,2,3,4"};
    uint64_t got[64];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(slu_curriculum_odds(good[i].name, got, 4, NULL), SLU_OK);
        assert_memory_equal(got, good[i].odds, sizeof good[i].odds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(slu_curriculum_odds(bad[i], got, 4, NULL), SLU_E_USAGE);
    assert_int_equal(slu_curriculum_odds("grow-p100", got, 20, NULL), SLU_E_USAGE);
}

static void faults(void **unused)
{
    (void)unused;
    struct slu_bucket_counts s;
    struct slu_err err = SLU_ERR_INIT;
    char path[128];
    snprintf(path, sizeof path, "%s/faults", root);
    mkdir(path, 0777);
    slu_bucket_counts_init(&s);
    assert_int_equal(slu_manifests_add(&s, path, &err), SLU_E_FORMAT);
    assert_int_equal(slu_manifests_add(&s, "/nonexistent", &err), SLU_E_IO);
    manifest(path, 3, 2, 4, 0);
    static const char *const text[] = {"{\"shard\":\"a\"}\n", "{\"shard\":\"a\",\n",
                                       "{\"shard\":\"a\",\"num_sequences\":1}",
                                       "{\"shard\":\"a\",\"num_sequences\":-1}\n"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        snprintf(path, sizeof path, "%s/faults/D_3/manifest.jsonl", root);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(text[i], f);
        fclose(f);
        assert_true(slu_manifests_add(&s, path, &err) < 0);
        assert_int_equal(s.n_bucket, 0);
    }
    struct slu_openlm_cfg cfg = {
        .epochs = 1, .world = 1, .workers = 1, .curriculum = "natural"};
    struct slu_openlm o;
    assert_int_equal(slu_openlm_plan(&o, &s, &cfg, &err), SLU_E_MISMATCH);
    slu_openlm_release(&o);
    slu_bucket_counts_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_example),
        cmocka_unit_test(odds),
        cmocka_unit_test(faults),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
