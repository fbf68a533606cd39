/* test_planfile.c - plans in files: a plan that was written can be read; damaged and
 * forged files are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"
#include "lib/base/io.h"
#include "lib/base/le.h"
#include "lib/pack/planfile.h"

static char path[] = "/var/tmp/sluice-planfile-XXXXXX";

static struct slu_pack_plan *make_plan(enum slu_pack_method method, uint64_t capacity,
                                       uint64_t max_items, uint64_t seed,
                                       struct slu_length_count *hist, size_t *n)
{
    const uint64_t bin_tok[] = {capacity / 3, capacity};
    struct slu_pack_cfg cfg = {.capacity = capacity,
                               .max_items = max_items,
                               .bin_tok = bin_tok,
                               .n_bin_tok = 2,
                               .padding_threshold = 0.25};
    struct slu_pack_plan *plan;
    *n = 0;
    for (uint64_t len = 1; len <= capacity && *n < 64; len++) {
        uint64_t x = slu_draw(seed, len, 0, 0, 0);
        if (x % 3)
            hist[(*n)++] = (struct slu_length_count){len, 1 + (x >> 8) % 1000};
    }
    assert_int_equal(slu_pack_solve(&plan, method, hist, *n, &cfg, NULL), SLU_OK);
    return plan;
}

static void same_plan(const struct slu_pack_plan *a, const struct slu_pack_plan *b)
{
    assert_int_equal(a->capacity, b->capacity);
    assert_int_equal(a->n_bin, b->n_bin);
    assert_int_equal(a->n_item, b->n_item);
    assert_int_equal(a->n_tok, b->n_tok);
    assert_int_equal(a->n_group, b->n_group);
    assert_int_equal(a->n_length, b->n_length);
    for (size_t i = 0; i < a->n_length; i++) {
        assert_int_equal(a->length[i].len_tok, b->length[i].len_tok);
        assert_int_equal(a->length[i].first_group, b->length[i].first_group);
    }
    for (size_t i = 0; i < a->n_group; i++) {
        const struct slu_pack_group *g = &a->group[i], *h = &b->group[i];
        assert_int_equal(g->count, h->count);
        assert_int_equal(g->len_tok, h->len_tok);
        assert_int_equal(g->repeat, h->repeat);
        assert_int_equal(g->first_bin, h->first_bin);
        assert_int_equal(g->first_rank, h->first_rank);
        assert_int_equal(g->room, h->room);
        assert_int_equal(g->slot, h->slot);
        assert_int_equal(g->taken, h->taken);
        assert_int_equal(g->capacity, h->capacity);
        assert_int_equal(g->parent, h->parent);
    }
}

/* A file of two domains. */
static void write_file(enum slu_pack_method method, uint64_t capacity,
                       uint64_t max_items, struct slu_buf *bytes)
{
    struct slu_plan_head head = {
        .method = method, .capacity = capacity, .max_items = max_items};
    struct slu_length_count hist[64];
    struct slu_planfile *f;
    size_t n;
    if (method == SLU_PACK_MULTI) {
        head.n_bin = 2;
        head.bin[0] = (struct slu_plan_bin){capacity / 3, capacity / 12};
        head.bin[1] = (struct slu_plan_bin){capacity, capacity / 4};
    }
    assert_int_equal(slu_planfile_new(&f, &head, NULL), SLU_OK);
    for (unsigned i = 0; i < 2; i++) {
        struct slu_pack_plan *plan =
            make_plan(method, capacity, max_items, i, hist, &n);
        assert_int_equal(slu_planfile_add(f, i ? "code" : NULL, plan, NULL), SLU_OK);
        slu_pack_plan_free(plan);
    }
    struct slu_out *out;
    assert_int_equal(slu_out_open(&out, path, NULL), SLU_OK);
    assert_int_equal(slu_planfile_write(f, out, NULL), SLU_OK);
    assert_int_equal(slu_out_close(out, NULL), SLU_OK);
    slu_planfile_free(f);
    slu_buf_clear(bytes);
    assert_int_equal(slu_read_whole(bytes, path, 1 << 20, NULL), SLU_OK);
}

static void test_there_and_back(void **state)
{
    static const enum slu_pack_method method[] = {
        SLU_PACK_BFD, SLU_PACK_FFD, SLU_PACK_SPFHP, SLU_PACK_LPFHP, SLU_PACK_MULTI};
    struct slu_buf bytes = SLU_BUF_INIT;
    (void)state;
    for (size_t m = 0; m < 5; m++)
        for (uint64_t capacity = m < 4 ? 1 : 4; capacity < 3000;
             capacity = capacity * 3 + 1)
            for (uint64_t max_items = 0; max_items < 4; max_items += 3) {
                struct slu_length_count hist[64];
                struct slu_planfile *f;
                size_t n;
                write_file(method[m], capacity, max_items, &bytes);
                assert_int_equal(slu_planfile_open(&f, path, 1 << 20, NULL), SLU_OK);
                assert_int_equal(slu_planfile_domains(f), 2);
                assert_null(slu_planfile_name(f, 0));
                assert_string_equal(slu_planfile_name(f, 1), "code");
                struct slu_plan_head h = slu_planfile_head(f);
                assert_int_equal(h.method, method[m]);
                assert_int_equal(h.capacity, capacity);
                assert_int_equal(h.max_items, max_items);
                assert_false(h.mix_domains);
                assert_int_equal(h.n_bin, m < 4 ? 0 : 2);
                if (h.n_bin) {
                    assert_int_equal(h.bin[0].tok, capacity / 3);
                    assert_int_equal(h.bin[0].lack_tok, capacity / 12);
                    assert_int_equal(h.bin[1].tok, capacity);
                    assert_int_equal(h.bin[1].lack_tok, capacity / 4);
                }
                for (unsigned i = 0; i < 2; i++) {
                    struct slu_pack_plan *want =
                        make_plan(method[m], capacity, max_items, i, hist, &n);
                    struct slu_pack_plan *got;
                    assert_int_equal(slu_planfile_plan(f, i, &got, NULL), SLU_OK);
                    same_plan(want, got);
                    slu_pack_plan_free(want);
                    slu_pack_plan_free(got);
                }
                slu_planfile_free(f);
            }
    slu_buf_release(&bytes);
}

/* The bytes are refused as a plan, in a message of one line. */
static void refused(const uint8_t *p, size_t n)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_planfile *f = (void *)&err;
    int rc = slu_planfile_parse(&f, p, n, &err);
    assert_true(rc == SLU_E_FORMAT || rc == SLU_E_TRUNCATED);
    assert_null(f);
    assert_true(*err.msg && !strchr(err.msg, '\n'));
}

static void test_damaged(void **state)
{
    struct slu_buf b = SLU_BUF_INIT;
    struct slu_planfile *f;
    (void)state;
    write_file(SLU_PACK_BFD, 121, 0, &b);
    assert_int_equal(slu_planfile_parse(&f, b.data, b.len, NULL), SLU_OK);
    slu_planfile_free(f);
    for (size_t i = 0; i < b.len; i++) {
        refused(b.data, i);
        for (unsigned bit = 1; bit < 256; bit *= 2) {
            b.data[i] ^= (uint8_t)bit;
            refused(b.data, b.len);
            b.data[i] ^= (uint8_t)bit;
        }
    }
    assert_int_equal(slu_buf_append(&b, "", 1, NULL), SLU_OK);
    refused(b.data, b.len);
    slu_buf_release(&b);
}

static void mend(struct slu_buf *b)
{
    slu_put_le64(b->data + 56, b->len);
    slu_put_le64(b->data + b->len - 8, slu_hash64(b->data, b->len - 8));
}

/* The plan is as packer.h demands. */
static void check_plan(const struct slu_pack_plan *plan)
{
    struct slu_pack_interval *v;
    size_t n;
    uint64_t items = 0;
    for (size_t i = 0; i < plan->n_group; i++) {
        const struct slu_pack_group *g = &plan->group[i];
        items += g->count * g->repeat;
        assert_true(g->taken <= g->count);
        assert_true(g->room + g->repeat * g->len_tok <= g->capacity);
        assert_true(g->parent == SLU_PACK_OPENED || g->parent < i);
    }
    assert_int_equal(items, plan->n_item);
    int rc = slu_pack_intervals(plan, &v, &n, NULL);
    assert_true(rc == SLU_OK || rc == SLU_E_LIMIT);
    if (!rc && n)
        assert_int_equal(v[n - 1].first_bin + v[n - 1].count, plan->n_bin);
    free(v);
}

/* A list of bins that ascends to the capacity, and bins of these lengths only. */
static void test_bins(void **state)
{
    static const struct {
        size_t at;
        uint32_t to;
    } wrong[] = {
        {20, 0},  {20, 1},   {20, 3},   {20, 65},  {20, UINT32_MAX},
        {16, 0},  {64, 0},   {64, 39},  {64, 120}, {64, 121},
        {68, 41}, {72, 119}, {72, 121}, {76, 121},
    };
    struct slu_buf b = SLU_BUF_INIT;
    struct slu_planfile *f;
    (void)state;
    write_file(SLU_PACK_MULTI, 120, 0, &b);
    mend(&b);
    assert_int_equal(slu_planfile_parse(&f, b.data, b.len, NULL), SLU_OK);
    slu_planfile_free(f);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint32_t was = slu_le32(b.data + wrong[i].at);
        assert_true(was != wrong[i].to);
        slu_put_le32(b.data + wrong[i].at, wrong[i].to);
        mend(&b);
        refused(b.data, b.len);
        slu_put_le32(b.data + wrong[i].at, was);
    }
    write_file(SLU_PACK_BFD, 120, 0, &b);
    slu_put_le32(b.data + 20, 1); /* a list where there is none */
    mend(&b);
    refused(b.data, b.len);
    slu_buf_release(&b);
}

/* Bytes are changed and the checksum is made to match: refused, or a plan. */
static void forge(enum slu_pack_method method)
{
    static const uint8_t to[] = {0, 1, 2, 0x7f, 0x80, 0xff};
    struct slu_buf b = SLU_BUF_INIT;
    unsigned n_refused = 0, n_taken = 0;
    write_file(method, 121, 4, &b);
    for (size_t i = 0; i < b.len - 8; i++)
        for (size_t k = 0; k < sizeof to; k++) {
            struct slu_planfile *f;
            struct slu_err err = SLU_ERR_INIT;
            uint8_t was = b.data[i];
            b.data[i] = to[k];
            mend(&b);
            int rc = slu_planfile_parse(&f, b.data, b.len, &err);
            for (size_t d = 0; !rc && d < slu_planfile_domains(f); d++) {
                struct slu_pack_plan *plan;
                assert_int_equal(slu_planfile_plan(f, d, &plan, NULL), SLU_OK);
                check_plan(plan);
                slu_pack_plan_free(plan);
            }
            if (rc)
                assert_true(rc == SLU_E_FORMAT || rc == SLU_E_TRUNCATED);
            n_refused += rc != SLU_OK;
            n_taken += rc == SLU_OK;
            slu_planfile_free(f);
            b.data[i] = was;
        }
    assert_true(n_refused > 1000 && n_taken > 100);
    for (size_t len = b.len - 1; len >= 72; len--) { /* cut, and made to match */
        b.len = len;
        mend(&b);
        refused(b.data, b.len);
    }
    slu_buf_release(&b);
}

static void test_forged(void **state)
{
    (void)state;
    forge(SLU_PACK_BFD);
    forge(SLU_PACK_MULTI);
}

static void test_histogram(void **state)
{
    struct slu_length_count hist[64], other[65];
    struct slu_err err = SLU_ERR_INIT;
    size_t n;
    (void)state;
    struct slu_pack_plan *plan = make_plan(SLU_PACK_BFD, 100, 0, 5, hist, &n);
    assert_int_equal(slu_plan_check(plan, hist, n, "web", NULL), SLU_OK);
    for (size_t i = 0; i < n; i++) {
        memcpy(other, hist, sizeof hist);
        other[i].count++;
        assert_int_equal(slu_plan_check(plan, other, n, "web", &err), SLU_E_MISMATCH);
        assert_non_null(strstr(err.msg, "web"));
        memmove(&other[i], &other[i + 1], (n - i - 1) * sizeof *other);
        assert_int_equal(slu_plan_check(plan, other, n - 1, "web", &err),
                         SLU_E_MISMATCH);
    }
    memcpy(other, hist, sizeof hist);
    other[n] = (struct slu_length_count){200, 1};
    assert_int_equal(slu_plan_check(plan, other, n + 1, "web", &err), SLU_E_MISMATCH);
    slu_pack_plan_free(plan);
}

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_bins),           cmocka_unit_test(test_forged),
        cmocka_unit_test(test_histogram),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
