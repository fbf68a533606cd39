/* test_merge.c - merging in lanes (bpe_merge.h): each SIMD level of this processor
 * compared with plain BPE, for every length of a pretoken and every number of pretokens in a
 * call, with many repeats, so that the leftmost of equal pairs counts. test_tokenizer.c
 * has the rest of BPE.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/hash.h"
#include "lib/base/simd.h"
#include "lib/token/bpe.h"

#define N_LETTER 4
#define N_ID     400
#define NO_BYTE  0xFF /* has no id */
#define UNKNOWN  UINT16_MAX
#define N_KIND   8
#define N_POOL   (BPE_MERGED * N_KIND)
#define MOST     200 /* pretokens of a call of bpe_encode_many */

static uint64_t draws;

/* A number below n, the same in every run. */
static unsigned below(unsigned n)
{
    return (unsigned)slu_draw_below(slu_draw(5, 6, 7, 8, draws++), n);
}

/* A vocabulary whose ids are ranks, and pretokens with what plain BPE makes of them. */
struct toy {
    struct slu_vocab_table table;
    uint64_t off[N_ID + 1];
    uint8_t bytes[1 << 16], flags[N_ID], in_model[N_ID];
    uint16_t made[N_ID][N_ID]; /* by two ids: UNKNOWN, or 1 + the id, or 0 */
    struct sample {
        uint8_t *p; /* its own memory, of no more than may be read */
        uint32_t n, n_want, want[BPE_MERGED];
    } pool[N_POOL];
};

static size_t len_of(const struct toy *y, uint32_t id)
{
    return y->off[id + 1] - y->off[id];
}

static uint32_t find(const struct toy *y, const uint8_t *p, size_t n)
{
    for (uint32_t i = 0; i < y->table.n; i++) {
        if (len_of(y, i) == n && !memcmp(y->bytes + y->off[i], p, n))
            return i;
    }
    return TOK_NONE;
}

static void put(struct toy *y, const uint8_t *p, size_t n)
{
    memcpy(y->bytes + y->off[y->table.n], p, n);
    y->off[y->table.n + 1] = y->off[y->table.n] + n;
    y->table.n++;
}

/* Tokens of two others, mostly young ones, so that merges follow each other; some of
 * letters that nothing leads to, which are holes in the ids. */
static void make_vocabulary(struct toy *y)
{
    y->table =
        (struct slu_vocab_table){.off = y->off, .bytes = y->bytes, .flags = y->flags};
    for (unsigned i = 0; i < 256; i++)
        put(y, &(uint8_t){(uint8_t)i}, 1);
    while (y->table.n < N_ID) {
        uint8_t p[64];
        size_t n = 0, most = below(8) ? 2 : 3 + below(3);
        for (size_t k = 0; k < most; k++) {
            unsigned some = (unsigned)y->table.n - 256;
            uint32_t id = most > 2 || below(2) || !some
                              ? 'a' + below(N_LETTER)
                              : 256 + some - 1 - below(some < 40 ? some : 40);
            memcpy(p + n, y->bytes + y->off[id], len_of(y, id));
            n += len_of(y, id);
        }
        if (n <= 20 && find(y, p, n) == TOK_NONE)
            put(y, p, n);
    }
    memset(y->in_model, 1, sizeof y->in_model);
    y->in_model[NO_BYTE] = 0;
    memset(y->made, 0xFF, sizeof y->made);
}

static uint32_t made_of(struct toy *y, uint32_t left, uint32_t right)
{
    uint16_t *m = &y->made[left][right];

    if (*m == UNKNOWN) {
        uint8_t both[64];
        size_t a = len_of(y, left), b = len_of(y, right);
        memcpy(both, y->bytes + y->off[left], a);
        memcpy(both + a, y->bytes + y->off[right], b);
        *m = (uint16_t)(find(y, both, a + b) + 1);
    }
    return *m ? *m - UINT32_C(1) : TOK_NONE;
}

/* The pair of the lowest rank, of equal ones the leftmost, until none is left. */
static void plain_bpe(struct toy *y, struct sample *s)
{
    uint32_t n = s->n;
    for (uint32_t i = 0; i < n; i++)
        s->want[i] = s->p[i];
    for (;;) {
        uint32_t best = TOK_NONE, at = 0;
        for (uint32_t i = 0; i + 1 < n; i++) {
            uint32_t c = made_of(y, s->want[i], s->want[i + 1]);
            if (c < best) {
                best = c;
                at = i;
            }
        }
        if (best == TOK_NONE)
            break;
        s->want[at] = best;
        memmove(s->want + at + 1, s->want + at + 2, (n - at - 2) * sizeof *s->want);
        n--;
    }
    s->n_want = memchr(s->p, NO_BYTE, s->n) ? 0 : n;
}

static uint8_t letter(unsigned of)
{
    return (uint8_t)('a' + below(of));
}

/* A pretoken of n bytes that repeats itself after 1, 2, 3 or as many as a token has, or of
 * letters drawn from 2 or all, or of any bytes, or with one that has no id. */
static void make_pretoken(struct toy *y, struct sample *s, uint32_t n, unsigned kind)
{
    uint32_t room = n > BPE_PADDED ? n : BPE_PADDED + 1;
    uint32_t id = 256 + below(N_ID - 256);

    s->n = n;
    s->p = malloc(room);
    assert_non_null(s->p);
    for (uint32_t i = 0; i < room; i++) {
        bool again = kind < 3 && i > kind && i < n;
        s->p[i] = again ? s->p[i - kind - 1] : letter(kind == 4 ? 2 : N_LETTER);
        if (kind == 3 && i < n)
            s->p[i] = y->bytes[y->off[id] + i % len_of(y, id)];
        if (kind == 6)
            s->p[i] = (uint8_t)below(NO_BYTE);
    }
    if (kind == 7 && below(2))
        s->p[below(n)] = NO_BYTE;
    plain_bpe(y, s);
}

/* A pretoken of least to most bytes. */
static const struct sample *draw_pretoken(const struct toy *y, uint32_t least,
                                          uint32_t most, bool all_have_ids)
{
    for (;;) {
        const struct sample *s =
            &y->pool[(least - 1 + below(most - least + 1)) * N_KIND + below(N_KIND)];
        if (s->n_want || !all_have_ids)
            return s;
    }
}

static void check_ids(const struct sample *s, const struct bpe_pretoken *x,
                      const uint32_t *id)
{
    assert_int_equal(x->n_id, s->n_want);
    if (s->n_want)
        assert_memory_equal(id + x->at, s->want, s->n_want * sizeof *id);
}

/* The pretokens of one size by themselves: all numbers of them, of one length or of many;
 * nothing is written where there is no room. */
static void check_size(const struct toy *y, const struct tok_model *m,
                       const struct bpe_merge_table *t, unsigned size)
{
    static const uint32_t ends[] = {0, BPE_PADDED, 30, BPE_MERGED};
    enum { ROOM = BPE_LANES * BPE_MERGED + 16, BEHIND = 16 };
    uint32_t *id = malloc((ROOM + BEHIND) * sizeof *id);

    assert_non_null(id);
    for (size_t n = 1; n <= (size_t)BPE_LANES >> size; n++) {
        const struct sample *from[BPE_LANES];
        struct bpe_pretoken x[BPE_LANES], *pretoken[BPE_LANES];
        uint32_t least = ends[size] + 1, most = ends[size + 1];
        size_t n_byte = 0, sum = 0;
        if (n % 2)
            least = most = least + (uint32_t)(n / 2) % (most - least + 1);
        for (size_t i = 0; i < n; i++) {
            from[i] = draw_pretoken(y, least, most, false);
            x[i] = (struct bpe_pretoken){.p = from[i]->p, .n = from[i]->n};
            pretoken[i] = &x[i];
            n_byte += x[i].n;
        }
        memset(id, 0xA5, (n_byte + 16 + BEHIND) * sizeof *id);
        size_t n_id = t->merge[size](m, pretoken, n, id);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(x[i].at, sum);
            check_ids(from[i], &x[i], id);
            sum += x[i].n_id;
        }
        assert_int_equal(n_id, sum);
        for (size_t i = 0; i < BEHIND; i++)
            assert_int_equal(id[n_byte + 16 + i], 0xA5A5A5A5);
    }
    free(id);
}

/* Pretokens of all sizes in one call, every other one about where the size changes. */
static void check_many(const struct toy *y, const struct tok_model *m,
                       const struct bpe_merge_table *t)
{
    struct bpe_scratch scratch = {.level = t};
    struct slu_err err = SLU_ERR_INIT;
    struct slu_ids ids = {0};

    for (size_t n = 1; n <= MOST; n++) {
        const struct sample *from[MOST];
        struct bpe_pretoken x[MOST];
        for (size_t i = 0; i < n; i++) {
            uint32_t least = i % 2 ? 1 : below(2) ? 14 : 29;
            from[i] = draw_pretoken(y, least, i % 2 ? BPE_MERGED : least + 4, true);
            x[i] = (struct bpe_pretoken){.p = from[i]->p, .n = from[i]->n};
        }
        ids.n = below(3);
        assert_int_equal(bpe_encode_many(m, &scratch, x, n, &ids, &err), SLU_OK);
        for (size_t i = 0; i < n; i++)
            check_ids(from[i], &x[i], ids.id);
    }
    slu_ids_release(&ids);
    bpe_scratch_release(&scratch);
}

static void check_level(const char *level)
{
    struct toy *y = malloc(sizeof *y);
    struct slu_err err = SLU_ERR_INIT;
    size_t n_merged = 0, n_byte = 0, n_hole = 0;
    const struct bpe_merge_table *t = bpe_merge_level(level);

    if (!slu_has_simd(level)) {
        free(y);
        skip();
    }
    assert_string_equal(t->level, level);
    draws = 0;
    for (unsigned round = 0; round < 8; round++) {
        struct tok_model *m;
        memset(y, 0, sizeof *y);
        make_vocabulary(y);
        for (unsigned i = 0; i < N_POOL; i++) {
            make_pretoken(y, &y->pool[i], 1 + i / N_KIND, i % N_KIND);
            n_byte += y->pool[i].n;
            n_merged += y->pool[i].n_want;
        }
        struct bpe_cfg cfg = {.table = &y->table, .in_model = y->in_model};
        assert_int_equal(bpe_build(&m, &cfg, &err), SLU_OK);
        n_hole += N_ID - m->n_tok;
        for (unsigned size = 0; size < BPE_N_MERGE; size++)
            check_size(y, m, t, size);
        check_many(y, m, t);
        bpe_free(m);
        for (unsigned i = 0; i < N_POOL; i++)
            free(y->pool[i].p);
    }
    /* Or little would have been merged, or ids had followed each other. */
    assert_true(n_merged < n_byte / 5 * 3 && n_hole > 100);
    free(y);
}

static void portable(void **state)
{
    (void)state;
    check_level("portable");
}

static void avx2(void **state)
{
    (void)state;
    check_level("avx2");
}

static void avx512(void **state)
{
    (void)state;
    check_level("avx512");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable),
        cmocka_unit_test(avx2),
        cmocka_unit_test(avx512),
    };

    /* A lane that never ends is a failure, not a long wait. */
    alarm(120);
    return cmocka_run_group_tests_name("merging in lanes", tests, NULL, NULL);
}
