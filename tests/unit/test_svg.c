/* test_svg.c - pictures: well-formed and small for any data and any heading. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/stream/svg.h"

static uint64_t state = 1;
static uint64_t rnd(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

/* Checks that tags nest, attributes are quoted, each & begins an entity, and that there
 * are no NaN, no infinity, no script and no control character. */
static void check_xml(const struct slu_buf *b)
{
    const char *p = (const char *)b->data, *end = p + b->len;
    char *stack[32];
    int depth = 0;
    assert_true(b->len < SLU_SVG_MOST);
    assert_null(memmem(p, b->len, "nan", 3) ? "nan" : NULL);
    assert_null(memmem(p, b->len, "inf", 3) ? "inf" : NULL);
    assert_null(memmem(p, b->len, "<script", 7) ? "script" : NULL);
    for (; p < end; p++) {
        assert_true((unsigned char)*p >= 0x20 || *p == '\n');
        if (*p == '&') {
            const char *semicolon = memchr(p, ';', 8);
            assert_non_null(semicolon);
        }
        if (*p != '<')
            continue;
        bool close = p[1] == '/';
        const char *name = p + 1 + close;
        size_t n = strcspn(name, " >/");
        for (bool quoted = false; *p != '>' || quoted; p++) {
            assert_true(p < end);
            quoted ^= *p == '"';
            assert_true(*p != '<' || p + 1 + close == name);
        }
        if (close) {
            assert_true(depth-- > 0);
            assert_memory_equal(stack[depth], name, n + 1);
            free(stack[depth]);
        } else if (p[-1] != '/') {
            char tag[32];
            assert_true(depth < 32 && n < sizeof tag - 1);
            memcpy(tag, name, n);
            tag[n] = '>';
            stack[depth++] = strndup(tag, n + 1);
        }
    }
    assert_int_equal(depth, 0);
}

static const char *const names[] = {
    NULL,
    "",
    "plain",
    "<b>&\"'</b> ]]> <script>",
    "\x01\x7f\xff\xc3 \xed\xa0\x80 \xef\xbf\xbf\ttab\nline",
    "a very long heading that goes on and on and on and on, past what fits in the "
    "width "
    "of the picture, and on, and still on, <so that it is cut> somewhere: 日本語 "
    "日本語",
};

static void draw(const struct slu_svg_lengths *p)
{
    struct slu_buf a = SLU_BUF_INIT, b = SLU_BUF_INIT;
    assert_int_equal(slu_svg_lengths(p, &a, NULL), SLU_OK);
    assert_int_equal(slu_svg_lengths(p, &b, NULL), SLU_OK);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    check_xml(&a);
    slu_buf_release(&a);
    slu_buf_release(&b);
}

static void lengths(void **unused)
{
    (void)unused;
    struct slu_length_count row[600];
    uint64_t bucket[64];
    for (int trial = 0; trial < 300; trial++) {
        struct slu_svg_lengths p = {.title = names[rnd(6)],
                                    .note = names[rnd(6)],
                                    .row = row,
                                    .bucket = bucket,
                                    .n_bucket = (unsigned)rnd(trial % 3 ? 12 : 65),
                                    .label_tokens = rnd(2),
                                    .padding_tok = rnd(2)};
        uint64_t at = rnd(3), step = 1 + rnd(trial % 5 ? 40 : 3);
        for (unsigned i = 0; i < p.n_bucket; i++)
            bucket[i] = p.n_bucket > 36 ? 3 + 17 * i : UINT64_C(1) << (i + 4);
        p.n_row = rnd(4) ? rnd(600) : rnd(3);
        for (size_t i = 0; i < p.n_row; i++) {
            row[i] = (struct slu_length_count){at, 1 + rnd(trial % 2 ? 5 : 1 << 20)};
            at += 1 + at / step;
            at = at > UINT64_C(1) << 40 ? at + 1 : at;
            p.documents += row[i].count;
        }
        draw(&p);
    }
}

/* All columns of all classes and 64 buckets at once: the largest picture. */
static void largest(void **unused)
{
    (void)unused;
    static struct slu_length_count row[4000];
    uint64_t bucket[64];
    struct slu_svg_lengths p = {.row = row, .bucket = bucket, .n_bucket = 64};
    uint64_t at = 1;
    for (unsigned i = 0; i < 64; i++)
        bucket[i] = (uint64_t)(UINT64_C(1) << (i * 40 / 64)) + i;
    for (; p.n_row < 4000 && at < UINT64_C(1) << 40; at += 1 + at / 64)
        row[p.n_row++] = (struct slu_length_count){at, 1 + rnd(UINT64_C(1) << 23)};
    for (unsigned i = 0; i < 64; i++)
        row[p.n_row++] = (struct slu_length_count){bucket[i], UINT64_C(1) << 23};
    p.title = p.note = names[5];
    draw(&p);
}

static void schedules(void **unused)
{
    (void)unused;
    uint64_t length[100], *count = malloc(SLU_SVG_BINS * 100 * sizeof *count);
    for (int trial = 0; trial < 200; trial++) {
        struct slu_svg_schedule p = {.title = names[rnd(6)],
                                     .note = names[rnd(6)],
                                     .length = length,
                                     .n_bucket = 1 + rnd(trial % 4 ? 8 : 100),
                                     .count = count,
                                     .n_bin = trial % 3 ? SLU_SVG_BINS : 1 + rnd(160),
                                     .first_step = rnd(2) * rnd(1 << 30),
                                     .batch_tok = 1 + rnd(1 << 24)};
        for (size_t i = 0; i < p.n_bucket; i++)
            length[i] = p.n_bucket < 30 ? UINT64_C(16) << i : 10 + 333333 * i;
        for (size_t i = 0; i < p.n_bin * p.n_bucket; i++)
            p.n_step += count[i] = rnd(3) ? rnd(100000) : 0;
        p.n_step += !p.n_step;
        struct slu_buf a = SLU_BUF_INIT;
        assert_int_equal(slu_svg_schedule(&p, &a, NULL), SLU_OK);
        check_xml(&a);
        slu_buf_release(&a);
    }
    free(count);
}

/* Steps where a double no longer counts by one, and the longest lengths there are. */
static void far_steps_and_lengths(void **unused)
{
    static const uint64_t length[] = {1,
                                      1000,
                                      UINT64_C(1) << 62,
                                      (UINT64_C(1) << 63) - 1,
                                      (UINT64_C(1) << 63) + 1,
                                      UINT64_MAX};
    static const uint64_t first[] = {0, 5000, UINT64_C(1) << 53, UINT64_C(1) << 59,
                                     UINT64_MAX - 8};
    static const uint64_t n_step[] = {1, 5, 1000, UINT64_C(1) << 60, UINT64_MAX};
    uint64_t count[5] = {1, 1, 1, 1, 1};
    (void)unused;
    for (unsigned l = 0; l < 6; l++)
        for (unsigned f = 0; f < 5; f++)
            for (unsigned n = 0; n < 5; n++) {
                struct slu_svg_schedule p = {.length = &length[l],
                                             .n_bucket = 1,
                                             .count = count,
                                             .n_bin = 5,
                                             .first_step = first[f],
                                             .n_step = n_step[n],
                                             .batch_tok = UINT64_C(1) << 50};
                struct slu_buf a = SLU_BUF_INIT;
                assert_int_equal(slu_svg_schedule(&p, &a, NULL), SLU_OK);
                check_xml(&a);
                if (first[f] == UINT64_C(1) << 59 && n_step[n] == 5) {
                    assert_non_null(memmem(a.data, a.len, ">+0<", 4));
                    assert_non_null(memmem(a.data, a.len, ">+5<", 4));
                    assert_null(memmem(a.data, a.len, ">+6<", 4));
                }
                slu_buf_release(&a);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths),
        cmocka_unit_test(largest),
        cmocka_unit_test(schedules),
        cmocka_unit_test(far_steps_and_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
