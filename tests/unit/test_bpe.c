/* test_bpe.c - BPE compared with the plain algorithm, and the image of a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/token/bpe.h"
#include "lib/token/pretokens.h"
#include "lib/token/pre.h"
#include "tests/unit/below.h"

#define N_BYTE  6 /* letters; the other bytes are tokens too, but not used */
#define FIRST   0 /* the first of them: a byte and a tok of 0 are the hard ones */
#define N_MERGE 60
#define N_ID    (256 + N_MERGE)

struct toy {
    struct slu_vocab_table table;
    uint64_t off[N_ID + 1];
    uint8_t bytes[1 << 16], flags[N_ID], in_model[N_ID];
    struct bpe_merge merge[2 * N_MERGE];
    size_t n_merge;
    bool by_rank, whole_first;
};

static void toy_put(struct toy *y, const void *p, size_t n)
{
    memcpy(y->bytes + y->off[y->table.n], p, n);
    y->off[y->table.n + 1] = y->off[y->table.n] + n;
    y->table.n++;
}

static uint32_t toy_find(const struct toy *y, const uint8_t *p, size_t n)
{
    for (uint32_t i = 0; i < y->table.n; i++) {
        if (y->off[i + 1] - y->off[i] == n && !memcmp(y->bytes + y->off[i], p, n))
            return i;
    }
    return TOK_NONE;
}

/* Tokens made of two others, or of nothing that can be merged; merges of every split
 * that exists, in an order that has nothing to do with how they were made. */
static void toy_make(struct toy *y)
{
    memset(y, 0, sizeof *y);
    y->by_rank = below(2);
    y->whole_first = y->by_rank || below(2);
    y->table =
        (struct slu_vocab_table){.off = y->off, .bytes = y->bytes, .flags = y->flags};
    for (unsigned i = 0; i < 256; i++)
        toy_put(y, &(uint8_t){(uint8_t)i}, 1);
    memset(y->in_model, 1, sizeof y->in_model);
    while (y->table.n < N_ID) {
        uint8_t p[64];
        size_t n = 0, l, r = 2 + below(3);
        if (below(8)) {
            for (unsigned k = 0; k < 2; k++) {
                uint32_t id =
                    (uint32_t)(below(3) ? FIRST + below(N_BYTE)
                                        : 256 + below(1 + (unsigned)y->table.n - 256));
                id = id < y->table.n ? id : FIRST;
                l = y->off[id + 1] - y->off[id];
                if (n + l > sizeof p)
                    break;
                memcpy(p + n, y->bytes + y->off[id], l);
                n += l;
            }
        } else {
            while (n < r)
                p[n++] = (uint8_t)(FIRST + below(N_BYTE));
        }
        if (n > 1 && n <= 24 && toy_find(y, p, n) == TOK_NONE)
            toy_put(y, p, n);
    }
    for (uint32_t id = 256; id < N_ID; id++) {
        size_t len = y->off[id + 1] - y->off[id];
        const uint8_t *p = y->bytes + y->off[id];
        for (size_t k = 1; k < len && y->n_merge < 2 * N_MERGE; k++) {
            uint32_t l = toy_find(y, p, k), r = toy_find(y, p + k, len - k);
            if (l != TOK_NONE && r != TOK_NONE && below(4))
                y->merge[y->n_merge++] = (struct bpe_merge){l, r, id};
        }
    }
    for (size_t k = y->n_merge; k > 1 && below(3); k--) {
        size_t j = below((unsigned)k);
        struct bpe_merge m = y->merge[j];
        y->merge[j] = y->merge[k - 1];
        y->merge[k - 1] = m;
    }
}

static uint32_t toy_merge(const struct toy *y, uint32_t l, uint32_t r, uint32_t *prio)
{
    uint8_t both[128];
    size_t a = y->off[l + 1] - y->off[l], b = y->off[r + 1] - y->off[r];

    memcpy(both, y->bytes + y->off[l], a);
    memcpy(both + a, y->bytes + y->off[r], b);
    if (y->by_rank)
        return *prio = toy_find(y, both, a + b);
    for (size_t k = 0; k < y->n_merge; k++) {
        if (y->merge[k].left == l && y->merge[k].right == r) {
            *prio = (uint32_t)k;
            return y->merge[k].result;
        }
    }
    return TOK_NONE;
}

/* The definition of BPE: merge the pair of the lowest rank, the leftmost first. */
static size_t plain_bpe(const struct toy *y, const uint8_t *p, size_t n, uint32_t *id)
{
    for (size_t i = 0; i < n; i++)
        id[i] = p[i];
    if (y->whole_first && (id[0] = toy_find(y, p, n)) != TOK_NONE)
        return 1;
    id[0] = p[0];
    for (;;) {
        uint32_t best = TOK_NONE, made = 0, prio = 0;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            uint32_t c = toy_merge(y, id[i], id[i + 1], &prio);
            if (c != TOK_NONE && prio < best) {
                best = prio;
                made = c;
                at = i;
            }
        }
        if (best == TOK_NONE)
            return n;
        id[at] = made;
        memmove(id + at + 1, id + at + 2, (n - at - 2) * sizeof *id);
        n--;
    }
}

/* The same model on a copy of its image; frees m. *copy is to be freed after it. */
static struct tok_model *moved(struct tok_model *m, void **copy)
{
    struct slu_err err = SLU_ERR_INIT;
    const struct slu_vocab_table *table = m->table;
    struct tok_model *to;
    size_t n;
    const void *image = bpe_image(m, &n);

    *copy = bpe_image_alloc(n);
    memcpy(*copy, image, n);
    bpe_free(m);
    assert_int_equal(bpe_attach(&to, *copy, n, table, &err), SLU_OK);
    return to;
}

static void bpe_is_plain_bpe(void **state)
{
    (void)state;
    struct toy *y = malloc(sizeof *y);
    struct bpe_scratch scratch = {0};
    struct slu_ids ids = {0};
    struct slu_err err = SLU_ERR_INIT;
    unsigned odd = 0, whole = 0;

    for (unsigned round = 0, n_round = getenv("CHECK_MORE") ? 300 : 100;
         round < n_round; round++) {
        struct tok_model *m;
        void *copy = NULL;
        toy_make(y);
        struct bpe_cfg cfg = {.table = &y->table,
                              .in_model = y->in_model,
                              .merge = y->by_rank ? NULL : y->merge,
                              .n_merge = y->by_rank ? 0 : y->n_merge,
                              .whole_first = y->whole_first};
        assert_int_equal(bpe_build(&m, &cfg, &err), SLU_OK);
        if (round % 2)
            m = moved(m, &copy);
        whole += m->n_whole;
        for (uint32_t i = 0; i < m->n_tok; i++)
            odd += m->token[i].odd;
        for (unsigned k = 0; k < 60; k++) {
            uint8_t p[200];
            uint32_t want[200];
            size_t n = 1 + below(k % 10 ? 12 : 200);
            unsigned letters = 1 + below(N_BYTE);
            for (size_t i = 0; i < n; i++)
                p[i] = (uint8_t)(FIRST + below(letters));
            size_t n_want = plain_bpe(y, p, n, want);
            ids.n = 0;
            assert_int_equal(bpe_encode(m, &scratch, p, n, &ids, &err), SLU_OK);
            assert_int_equal(ids.n, n_want);
            assert_memory_equal(ids.id, want, n_want * sizeof *want);
        }
        bpe_free(m);
        free(copy);
    }
    /* Or the test would not have tested what is hard. */
    assert_true(odd > 100 && whole > 100);
    slu_ids_release(&ids);
    bpe_scratch_release(&scratch);
    free(y);
}

/* The SIMD levels of this processor, by what pretokens.h has. */
static const struct bpe_merge_table *merge_level(unsigned i)
{
    static const char *const name[] = {"portable", "avx2", "avx512"};
    pre_scan_fn *scan = pre_scan_by_name("gpt2");

    return i && !pretokens_of_level(name[i], scan) ? NULL : bpe_merge_level(name[i]);
}
#define N_LEVEL 3

/* Many pretokens at once, of all lengths about those where the way of merging changes. */
static void many_pretokens_are_plain_bpe(void **state)
{
    (void)state;
    enum { N = 150, ROOM = 1150 };
    struct toy *y = malloc(sizeof *y);
    uint8_t(*text)[ROOM] = malloc(N * sizeof *text);
    uint32_t(*want)[ROOM] = malloc(N * sizeof *want);
    struct bpe_scratch scratch = {0};
    struct slu_ids ids = {0};
    struct slu_err err = SLU_ERR_INIT;
    unsigned whole = 0, odd = 0;

    for (unsigned round = 0, n_round = getenv("CHECK_MORE") ? 100 : 30; round < n_round;
         round++) {
        struct tok_model *m;
        struct bpe_pretoken pretoken[N];
        size_t n_want[N];
        uint32_t n_byte[N];
        toy_make(y);
        struct bpe_cfg cfg = {.table = &y->table,
                              .in_model = y->in_model,
                              .merge = y->by_rank ? NULL : y->merge,
                              .n_merge = y->by_rank ? 0 : y->n_merge,
                              .whole_first = y->whole_first};
        assert_int_equal(bpe_build(&m, &cfg, &err), SLU_OK);
        whole += m->n_whole;
        for (uint32_t i = 0; i < m->n_tok; i++)
            odd += m->token[i].odd;
        size_t n_pretoken = 1 + below(N), most = 16;
        if (round % 4 == 0)
            most = 80;
        if (round % 20 == 0) {
            n_pretoken = 1 + below(8);
            most = ROOM - 16;
        }
        for (size_t k = 0; k < n_pretoken; k++) {
            uint32_t n = n_byte[k] = 1 + below((unsigned)most);
            unsigned letters = 1 + below(N_BYTE);
            for (size_t i = 0; i < ROOM; i++) /* also what is behind the pretoken */
                text[k][i] = (uint8_t)(FIRST + below(letters));
            n_want[k] = plain_bpe(y, text[k], n, want[k]);
        }
        for (unsigned level = 0; level < N_LEVEL; level++) {
            if (!(scratch.level = merge_level(level)))
                continue;
            for (size_t k = 0; k < n_pretoken; k++)
                pretoken[k] = (struct bpe_pretoken){.p = text[k], .n = n_byte[k]};
            ids.n = below(3);
            /* Long pretokens are merged alone, or the tokens are searched. */
            scratch.owed = below(2) ? 0 : SIZE_MAX / 2;
            assert_int_equal(
                bpe_encode_many(m, &scratch, pretoken, n_pretoken, &ids, &err), SLU_OK);
            for (size_t k = 0; k < n_pretoken; k++) {
                assert_int_equal(pretoken[k].n_id, n_want[k]);
                assert_memory_equal(ids.id + pretoken[k].at, want[k], 4 * n_want[k]);
            }
        }
        bpe_free(m);
    }
    assert_true(odd > 100 && whole > 100);
    slu_ids_release(&ids);
    bpe_scratch_release(&scratch);
    free(text);
    free(want);
    free(y);
}

/* Parts of a pretoken, each by itself, are the pretoken; there are enough of them. */
static void parts_are_the_pretoken(void **state)
{
    (void)state;
    struct toy *y = malloc(sizeof *y);
    struct bpe_scratch scratch = {.is_part = true};
    struct slu_ids ids = {0};
    struct slu_err err = SLU_ERR_INIT;
    unsigned n_part = 0, whole = 0, n_round = getenv("CHECK_MORE") ? 300 : 100;

    for (unsigned round = 0; round < n_round; round++) {
        struct tok_model *m;
        toy_make(y);
        struct bpe_cfg cfg = {.table = &y->table,
                              .in_model = y->in_model,
                              .merge = y->by_rank ? NULL : y->merge,
                              .n_merge = y->by_rank ? 0 : y->n_merge,
                              .whole_first = y->whole_first};
        assert_int_equal(bpe_build(&m, &cfg, &err), SLU_OK);
        y->whole_first = false;
        for (unsigned k = 0; k < 20; k++) {
            uint8_t p[200];
            uint32_t want[200], end[40], add = below(3);
            size_t n = 1 + below(200), at = 0;
            for (size_t i = 0; i < n; i++)
                p[i] = (uint8_t)(FIRST + below(N_BYTE));
            size_t n_want = plain_bpe(y, p, n, want);
            ids.n = 0;
            while (at < n) {
                size_t some = bpe_cuts(m, p + at, n - at, add, end, 2 + below(38));
                uint32_t from = add;
                assert_true(some > 0 && end[some - 1] - add <= n - at);
                for (size_t i = 0; i < some; from = end[i++]) {
                    const uint8_t *part = p + at + (from - add);
                    size_t len = end[i] - from;
                    whole += bpe_is_whole(m, part, len);
                    assert_true(end[i] > from);
                    assert_int_equal(bpe_encode(m, &scratch, part, len, &ids, &err),
                                     SLU_OK);
                }
                at += from - add;
                n_part += (unsigned)some;
            }
            assert_int_equal(ids.n, n_want);
            assert_memory_equal(ids.id, want, n_want * sizeof *want);
        }
        bpe_free(m);
    }
    assert_true(n_part > 4 * n_round * 20 && whole > 10);
    slu_ids_release(&ids);
    bpe_scratch_release(&scratch);
    free(y);
}

/* A byte that valid UTF-8 never has may be missing; text with it is refused, whole. */
static void bytes_without_a_token(void **state)
{
    (void)state;
    struct toy *y = malloc(sizeof *y);
    struct bpe_scratch scratch = {0};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_ids ids = {0};
    struct tok_model *m;

    toy_make(y);
    y->in_model[0xFF] = 0;
    struct bpe_cfg cfg = {.table = &y->table, .in_model = y->in_model};
    assert_int_equal(bpe_build(&m, &cfg, &err), SLU_OK);
    for (size_t n = 1; n <= 130; n++) {
        uint8_t p[130];
        for (size_t at = 0; at <= n; at++) { /* nowhere at last */
            memset(p, 'a', sizeof p); /* bytes behind a pretoken are read, not used */
            if (at < n)
                p[at] = 0xFF;
            size_t before = ids.n;
            struct bpe_pretoken pretoken = {.p = p, .n = (uint32_t)n};
            scratch.level = merge_level(at % N_LEVEL);
            int rc = n % 2 && n <= 130 - 16
                         ? bpe_encode_many(m, &scratch, &pretoken, 1, &ids, &err)
                         : bpe_encode(m, &scratch, p, n, &ids, &err);
            assert_int_equal(rc, at < n ? SLU_E_UNSUPPORTED : SLU_OK);
            assert_true(at < n ? ids.n == before : ids.n > before);
            if (at < n)
                assert_non_null(strstr(err.msg, "0xff"));
        }
    }
    bpe_free(m);
    bpe_scratch_release(&scratch);
    slu_ids_release(&ids);
    free(y);
}

static void images_that_do_not_fit(void **state)
{
    (void)state;
    struct toy *y = malloc(sizeof *y);
    struct slu_err err = SLU_ERR_INIT;
    struct tok_model *m, *other;
    size_t n;

    toy_make(y);
    struct bpe_cfg cfg = {.table = &y->table, .in_model = y->in_model};
    assert_int_equal(bpe_build(&m, &cfg, &err), SLU_OK);
    const void *image = bpe_image(m, &n);
    uint8_t *copy = bpe_image_alloc(n);
    /* Whatever byte of the counts is damaged, no table is past the end. */
    for (size_t i = 0; i < sizeof(struct bpe_head); i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(copy, image, n);
            copy[i] ^= (uint8_t)(1 << bit);
            if (bpe_attach(&other, copy, n, &y->table, &err) < 0) {
                assert_null(other);
                continue;
            }
            assert_true((const uint8_t *)(other->pair + other->pair_mask + 1) <=
                        copy + n);
            bpe_free(other);
        }
    }
    memcpy(copy, image, n);
    assert_int_equal(bpe_attach(&other, copy, n - 64, &y->table, &err), SLU_E_FORMAT);
    assert_int_equal(bpe_attach(&other, copy, 8, &y->table, &err), SLU_E_FORMAT);
    y->table.n--;
    assert_int_equal(bpe_attach(&other, copy, n, &y->table, &err), SLU_E_FORMAT);
    bpe_free(m);
    free(copy);
    free(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bpe_is_plain_bpe),
        cmocka_unit_test(many_pretokens_are_plain_bpe),
        cmocka_unit_test(parts_are_the_pretoken),
        cmocka_unit_test(bytes_without_a_token),
        cmocka_unit_test(images_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
