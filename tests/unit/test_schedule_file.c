/* test_schedule_file.c - the file of a schedule: a file that was written can be read;
 * every flipped bit, every truncation, and forged numbers with valid hashes are
 * refused; a step is found without reading the steps before. numpy's generator, by
 * numpy's own values.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/schedule/schedulefile_private.h"
#include "lib/base/io.h"
#include "lib/base/le.h"
#include "lib/schedule/epoch_order.h"
#include "lib/schedule/pcg64.h"

static char path[64];

static int setup(void **unused)
{
    (void)unused;
    snprintf(path, sizeof path, "/var/tmp/sluice-schedfile-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **unused)
{
    (void)unused;
    return unlink(path);
}

static struct slu_steps_cfg generic(void)
{
    return (struct slu_steps_cfg){.method = SLU_STEPS_GENERIC,
                                  .curriculum = "grow-p2",
                                  .seed = 7,
                                  .cycles = 2,
                                  .epochs = 2,
                                  .batch_tokens = 64,
                                  .world = 2,
                                  .fixed = true};
}

static struct slu_steps *steps_of(const struct slu_steps_cfg *cfg, uint64_t scale)
{
    struct slu_bucket_count b[3] = {{.length = 8, .seq_per_shard = 10, .shards = 5},
                                    {.length = 16, .seq_per_shard = 9, .shards = 3},
                                    {.length = 32, .seq_per_shard = 4, .shards = 3}};
    struct slu_bucket_counts s = {.bucket = b, .n_bucket = 3};
    struct slu_steps *steps;
    struct slu_err err = SLU_ERR_INIT;
    for (int i = 0; i < 3; i++)
        b[i].shards *= scale;
    assert_int_equal(slu_steps_new(&steps, &s, cfg, &err), SLU_OK);
    return steps;
}

/* Writes the steps from `from` on; returns how many there are in all. */
static uint64_t write_file(const struct slu_steps_cfg *cfg, uint64_t scale,
                           uint64_t from)
{
    struct slu_steps *steps = steps_of(cfg, scale);
    struct slu_schedulefile_writer *w;
    struct slu_train_step step[100];
    struct slu_err err = SLU_ERR_INIT;
    size_t n = 1;
    uint64_t total = slu_steps_info(steps)->total_steps;
    assert_int_equal(slu_steps_seek(steps, from, &err), SLU_OK);
    assert_int_equal(slu_schedulefile_create(&w, path, false, false,
                                             slu_steps_info(steps), from, &err),
                     SLU_OK);
    while (n) {
        assert_int_equal(slu_steps_next(steps, step, 100, &n, &err), SLU_OK);
        assert_int_equal(slu_schedulefile_put(w, step, n, &err), SLU_OK);
    }
    assert_int_equal(slu_schedulefile_close(w, &err), SLU_OK);
    slu_steps_free(steps);
    return total;
}

static int read_all(uint64_t *seen)
{
    struct slu_schedulefile *f;
    struct slu_train_step step[64];
    struct slu_err err = SLU_ERR_INIT;
    size_t n = 1;
    *seen = 0;
    int rc = slu_schedulefile_open(&f, path, &err);
    while (!rc && n) {
        rc = slu_schedulefile_next(f, step, 64, &n, &err);
        *seen += n;
    }
    if (rc)
        assert_true(err.msg[0] && strstr(err.msg, path));
    slu_schedulefile_free(f);
    return rc;
}

static void put_bytes(const struct slu_buf *b, size_t n)
{
    int fd = open(path, O_WRONLY | O_TRUNC);
    struct slu_err err = SLU_ERR_INIT;
    assert_true(fd >= 0);
    assert_int_equal(slu_write_full(fd, b->data, n, &err), SLU_OK);
    close(fd);
}

static void damage(void **unused)
{
    (void)unused;
    struct slu_steps_cfg cfg = generic();
    struct slu_buf b = SLU_BUF_INIT;
    struct slu_err err = SLU_ERR_INIT;
    uint64_t seen, total = write_file(&cfg, 1, 0);
    assert_int_equal(read_all(&seen), SLU_OK);
    assert_int_equal(seen, total);
    assert_int_equal(slu_read_whole(&b, path, 1 << 20, &err), SLU_OK);
    assert_int_equal(b.len, slu_schedulefile_bytes(3, total));
    for (size_t i = 0; i < b.len; i++)
        for (int bit = 0; bit < 8; bit += 3) {
            b.data[i] ^= (uint8_t)(1 << bit);
            put_bytes(&b, b.len);
            assert_true(read_all(&seen) < 0);
            b.data[i] ^= (uint8_t)(1 << bit);
        }
    for (size_t n = 0; n < b.len; n++) {
        put_bytes(&b, n);
        assert_int_equal(read_all(&seen), SLU_E_TRUNCATED);
    }
    assert_int_equal(slu_buf_append(&b, "", 1, &err), SLU_OK);
    put_bytes(&b, b.len);
    assert_int_equal(read_all(&seen), SLU_E_FORMAT);
    slu_buf_release(&b);
}

/* All hashes made right again, as a forger would. */
static void rehash(struct slu_buf *b, uint64_t n)
{
    size_t head = slu_le32(b->data + 12), end = head + SLU_SF_RECORD * n;
    if (head > b->len || end + 8 * slu_sf_blocks(n) + SLU_SF_FOOTER > b->len)
        return;
    slu_put_le64(b->data + SLU_SF_HASH_AT, 0);
    slu_put_le64(b->data + SLU_SF_HASH_AT, slu_hash64(b->data, head));
    slu_put_le64(b->data + end, slu_hash64(b->data + head, SLU_SF_RECORD * n));
    slu_put_le64(b->data + end + 8, slu_hash64(b->data + end, 8));
}

static void forged(void **unused)
{
    (void)unused;
    struct slu_steps_cfg cfg = generic();
    struct slu_buf b = SLU_BUF_INIT, sound = SLU_BUF_INIT;
    struct slu_err err = SLU_ERR_INIT;
    uint64_t seen, total = write_file(&cfg, 1, 0);
    assert_int_equal(slu_read_whole(&sound, path, 1 << 20, &err), SLU_OK);
    /* Fields that nothing contradicts: flags, seed, tokens, the shards' digest, the
     * odds, and epochs, world 1, and cycles that only widen what is allowed. Any other
     * value of any other byte is refused, hashes right or not. */
    size_t taken = 0, tried = 0;
    for (size_t i = 8; i < sound.len - 24; i++)
        for (int v = 0; v < 256; v += v < 2 ? 1 : 126) {
            slu_buf_clear(&b);
            assert_int_equal(slu_buf_append(&b, sound.data, sound.len, &err), SLU_OK);
            if (b.data[i] == (uint8_t)v)
                continue;
            b.data[i] = (uint8_t)v;
            rehash(&b, total);
            put_bytes(&b, b.len);
            tried++;
            bool in_head = i < SLU_SF_FIXED,
                 free_field =
                     (in_head && ((i >= 24 && i < 32) || (i >= 48 && i < 80) ||
                                  (i >= 88 && i < 96) || (i >= 136 && i < 152) ||
                                  i >= SLU_SF_HASH_AT)) ||
                     (!in_head && i < 640 && (i - 256) % 128 >= 32 &&
                      (i - 256) % 128 < 40) ||
                     i >= 640;
            int rc = read_all(&seen);
            if (rc == SLU_OK && !free_field)
                fail_msg("byte %zu as %d is taken", i, v);
            taken += rc == SLU_OK;
        }
    assert_true(taken && taken < tried / 3);
    /* Steps out of range. */
    static const struct {
        unsigned off, bytes;
        uint64_t v;
    } bad[] = {
        {0, 8, 1}, {0, 8, UINT64_MAX}, {8, 4, 2}, {8, 4, UINT32_MAX}, {12, 4, 3}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        slu_buf_clear(&b);
        assert_int_equal(slu_buf_append(&b, sound.data, sound.len, &err), SLU_OK);
        uint8_t *p = b.data + 640 + bad[i].off;
        if (bad[i].bytes == 8)
            slu_put_le64(p, bad[i].v);
        else
            slu_put_le32(p, (uint32_t)bad[i].v);
        rehash(&b, total);
        put_bytes(&b, b.len);
        assert_int_equal(read_all(&seen), SLU_E_FORMAT);
    }
    slu_buf_release(&b);
    slu_buf_release(&sound);
}

/* The header's texts and the checksum are as SCHEDULE.md defines them. */
static void header_words(void **unused)
{
    (void)unused;
    static const struct {
        const char name[17];
        bool sound;
    } word[] = {{"grow-p2", true},
                {"natural", true},
                {"shrink-linear", true},
                {"odds", true},
                {"grow-p2\0junk", false},
                {"grow-up", false},
                {"grow-p", false},
                {"odds\0\0\0\0x", false},
                {"", false},
                {"shrink-linearxyz", false}};
    struct slu_steps_cfg cfg = generic();
    struct slu_buf b = SLU_BUF_INIT;
    struct slu_err err = SLU_ERR_INIT;
    uint64_t seen, total = write_file(&cfg, 1, 0);
    assert_int_equal(slu_read_whole(&b, path, 1 << 20, &err), SLU_OK);
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        memcpy(b.data + 32, word[i].name, 16);
        rehash(&b, total);
        put_bytes(&b, b.len);
        assert_int_equal(read_all(&seen), word[i].sound ? SLU_OK : SLU_E_FORMAT);
    }
    memcpy(b.data + 32, word[0].name, 16);
    for (int known = 0; known < 2; known++) {
        slu_put_le32(b.data + 28, known ? SLU_SF_HAS_CHECKSUM : 0);
        slu_put_le64(b.data + 160, 1);
        rehash(&b, total);
        put_bytes(&b, b.len);
        assert_int_equal(read_all(&seen), known ? SLU_OK : SLU_E_FORMAT);
    }
    slu_buf_release(&b);
}

/* A header of version 2 of which a number cannot be right. */
static void forged_passes(void **unused)
{
    (void)unused;
    struct slu_steps_cfg cfg = generic();
    struct slu_buf b = SLU_BUF_INIT, sound = SLU_BUF_INIT;
    struct slu_err err = SLU_ERR_INIT;
    cfg.fixed = false;
    uint64_t seen, total = write_file(&cfg, 1, 0);
    assert_int_equal(slu_read_whole(&sound, path, 1 << 20, &err), SLU_OK);
    assert_int_equal(slu_le32(sound.data + 8), 2);
    enum { ROW = 256, RECORD = 640 };
    /* version, epochs, flags; a row's unit, runs, steps, dropped, block; a record's
     * place and cycle: one of another pass */
    static const struct {
        unsigned at;
        uint64_t v;
    } bad[] = {{8, 1},
               {64, UINT32_MAX},
               {64, 1},
               {28, SLU_STEPS_REORDER},
               {ROW + 24, 2},
               {ROW + 40, 7},
               {ROW + 48, 100},
               {ROW + 56, 1},
               {ROW + 64, 50},
               {ROW + 96, 0},
               {ROW + 96, SLU_EPOCH_MAX_BLOCK + 1},
               {RECORD, 1},
               {RECORD, 96},
               {RECORD + 8, 2},
               {RECORD + 8, UINT32_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        slu_buf_clear(&b);
        assert_int_equal(slu_buf_append(&b, sound.data, sound.len, &err), SLU_OK);
        if (bad[i].at < 48 || bad[i].at == RECORD + 8)
            slu_put_le32(b.data + bad[i].at, (uint32_t)bad[i].v);
        else
            slu_put_le64(b.data + bad[i].at, bad[i].v);
        rehash(&b, total);
        put_bytes(&b, b.len);
        if (read_all(&seen) != SLU_E_FORMAT)
            fail_msg("%u as %llu is taken", bad[i].at, (unsigned long long)bad[i].v);
    }
    slu_buf_release(&b);
    slu_buf_release(&sound);
}

/* The vectors of SCHEDULE.md; then permutations whose batches stay in few blocks. */
static void epoch_order(void **unused)
{
    (void)unused;
    static const struct {
        struct slu_epoch_order o;
        uint64_t want[10];
    } vector[] = {{{7, 1, 2, 10, 4}, {2, 3, 1, 0, 9, 8, 4, 5, 7, 6}},
                  {{7, 2, 2, 10, 4}, {8, 9, 3, 1, 0, 2, 5, 6, 7, 4}},
                  {{UINT64_MAX, 2, 1, 5, 1}, {2, 0, 3, 1, 4}},
                  {{7, 0, 2, 4, 4}, {0, 1, 2, 3}}};
    for (size_t i = 0; i < sizeof vector / sizeof *vector; i++)
        for (uint64_t k = 0; k < vector[i].o.n; k++)
            assert_int_equal(slu_epoch_sequence(&vector[i].o, k), vector[i].want[k]);
    for (uint64_t n = 1; n < 400; n += 1 + n / 9)
        for (uint64_t block = 1; block < 500; block = 3 * block + n % 3) {
            struct slu_epoch_order o = {n, 1 + n % 4, block, n, block};
            uint8_t taken[400] = {0};
            uint64_t changes = 0, last = UINT64_MAX;
            for (uint64_t k = 0; k < n; k++) {
                uint64_t s = slu_epoch_sequence(&o, k);
                assert_true(s < n && !taken[s]);
                taken[s] = 1;
                changes += s / block != last;
                last = s / block;
            }
            assert_int_equal(changes, (n - 1) / block + 1);
        }
    assert_int_equal(slu_epoch_block(1024), 256);
    assert_int_equal(slu_epoch_block(1 << 20), 1);
}

/* More steps than a block: any step is found, and a tail is the whole's. */
static void seek(void **unused)
{
    (void)unused;
    struct slu_steps_cfg cfg = generic();
    struct slu_err err = SLU_ERR_INIT;
    struct slu_schedulefile *f;
    enum { SCALE = 7000 };
    cfg.fixed = false;
    uint64_t total = write_file(&cfg, SCALE, 0);
    assert_true(total > 2 * SLU_SF_BLOCK);
    struct slu_train_step *all = calloc(total, sizeof *all), one;
    assert_non_null(all);
    struct slu_steps *steps = steps_of(&cfg, SCALE);
    size_t n;
    assert_int_equal(slu_steps_next(steps, all, total, &n, &err), SLU_OK);
    assert_int_equal(n, total);
    slu_steps_free(steps);
    for (int tail = 0; tail < 2; tail++) {
        uint64_t from = tail ? 70001 : 0;
        if (tail)
            (void)write_file(&cfg, SCALE, from);
        assert_int_equal(slu_schedulefile_open(&f, path, &err), SLU_OK);
        assert_int_equal(slu_schedulefile_first(f), from);
        assert_int_equal(slu_schedulefile_count(f), total - from);
        for (uint64_t k = from; k < total; k += 1 + k % 4099) {
            assert_int_equal(slu_schedulefile_seek(f, k, &err), SLU_OK);
            assert_int_equal(slu_schedulefile_next(f, &one, 1, &n, &err), SLU_OK);
            assert_int_equal(n, 1);
            assert_memory_equal(&one, &all[k], sizeof one);
        }
        assert_int_equal(slu_schedulefile_seek(f, total, &err), SLU_OK);
        assert_int_equal(slu_schedulefile_next(f, &one, 1, &n, &err), SLU_OK);
        assert_int_equal(n, 0);
        assert_int_equal(slu_schedulefile_seek(f, total + 1, &err), SLU_E_USAGE);
        uint64_t bins[7 * 3], sum = 0;
        assert_int_equal(slu_schedulefile_bins(f, 7, bins, &err), SLU_OK);
        for (int i = 0; i < 7 * 3; i++)
            sum += bins[i];
        assert_int_equal(sum, total - from);
        slu_schedulefile_free(f);
    }
    free(all);
}

static void numpy(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t seed;
        uint32_t integer, order[20];
        uint64_t raw;
    } want[] = {{0,
                 850,
                 {4, 19, 6, 2, 13, 16, 3, 11, 10, 8, 0, 12, 7, 5, 18, 17, 14, 9, 1, 15},
                 UINT64_C(5528708540590789176)},
                {UINT64_C(4294967296),
                 522,
                 {13, 17, 1, 11, 4, 0, 16, 5, 10, 15, 9, 7, 14, 3, 19, 18, 6, 8, 12, 2},
                 UINT64_C(17686215415579330216)},
                {UINT64_MAX,
                 547,
                 {2, 1, 6, 19, 11, 9, 16, 12, 5, 13, 7, 4, 8, 18, 3, 14, 0, 15, 17, 10},
                 UINT64_C(14671403962472059056)}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct slu_pcg64 g;
        uint32_t a[20];
        slu_pcg64_seed(&g, want[i].seed);
        for (uint32_t k = 0; k < 20; k++)
            a[k] = k;
        assert_int_equal(slu_pcg64_upto(&g, 999), want[i].integer);
        slu_pcg64_shuffle(&g, a, 20);
        assert_memory_equal(a, want[i].order, sizeof a);
        assert_int_equal(slu_pcg64_next(&g), want[i].raw);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage),       cmocka_unit_test(forged),
        cmocka_unit_test(header_words), cmocka_unit_test(seek),
        cmocka_unit_test(numpy),        cmocka_unit_test(forged_passes),
        cmocka_unit_test(epoch_order),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
