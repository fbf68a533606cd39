/* test_words.c - the word cache that threads share returns only the ids that were put
 * for a pretoken. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/simd.h"
#include "lib/token/hot.h"

enum { N_WORD = 30000, N_ROUND = 60000, N_THREAD = 4 };

/* Word i: 1 to 60 bytes and 1 to 12 ids that follow from i. */
static size_t word(uint32_t i, uint8_t p[80], uint32_t id[12], size_t *n_id)
{
    size_t n = i % 7 ? 4 + i % 12 : 16 + i % 45;

    memset(p, 0, 80);
    for (size_t k = 0; k < n; k++)
        p[k] = (uint8_t)('a' + (i >> (3 * (k % 5)) & 7) + (k > 4 ? i % 3 : 0));
    memcpy(p, &i, 3);
    *n_id = 1 + i % 12;
    for (size_t k = 0; k < *n_id; k++)
        id[k] = i * 16 + (uint32_t)k;
    return n;
}

struct thread {
    struct words w;
    uint64_t seed;
    uint64_t n_hit, n_wrong;
};

/* Looks word i up, and puts it where it is not known. */
static void look_up(struct thread *t, uint32_t i)
{
    uint8_t p[80];
    uint32_t id[12];
    size_t n_id, n;
    struct word_slot found;
    words_begin(&t->w);
    n = word(i, p, id, &n_id);
    struct word_new fresh = {.p = p, .n = n, .id = id, .n_id = n_id};
    bool is_known;
    if (n <= WORD_SHORT) {
        fresh.key = word_key(p, (uint32_t)n);
        fresh.hash = word_hash(fresh.key);
        const struct word_set *set = word_set(t->w.view, fresh.hash);
        unsigned is = word_find(set, fresh.key);
        if (!is && word_set_is_full(set)) {
            set = word_beside(set);
            is = word_find(set, fresh.key);
        }
        is_known = is != 0;
        if (is_known)
            found = word_at(&t->w, set, (unsigned)__builtin_ctz(is));
    } else {
        fresh.hash = word_hash_long(p, n);
        is_known = word_find_long(&t->w, p, n, fresh.hash, &found);
    }
    if (!is_known) {
        words_put(&t->w, &fresh, 1);
        return;
    }
    bool many = word_count(&found) >= WORD_IDS;
    const void *ids =
        many ? (const void *)(t->w.view->text + found.id[MANY_OFF]) : found.id;
    size_t n_found = many ? found.id[MANY_N] : word_count(&found) + 1;
    t->n_hit++;
    t->n_wrong += n_found != n_id || memcmp(ids, id, n_id * sizeof *id) != 0;
}

static void *look_up_many(void *arg)
{
    struct thread *t = arg;
    uint64_t x = t->seed;

    for (unsigned round = 0; round < N_ROUND; round++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
        look_up(t, (uint32_t)((x >> 33) % N_WORD));
    }
    return NULL;
}

/* How many words are found once each has been put: who finds a table growing goes on
 * without adding, so what the threads have left there depends on their turns. */
static uint64_t n_kept(struct thread *t)
{
    for (uint32_t i = 0; i < 2 * N_WORD; i++) {
        if (i == N_WORD)
            t->n_hit = 0;
        look_up(t, i % N_WORD);
    }
    return t->n_hit;
}

/* One encoder alone, whose tables grow where they are, then others too. */
static void run_alone_first(uint64_t n_byte, uint64_t least_kept)
{
    static struct thread t, other;
    struct slu_err err = SLU_ERR_INIT;

    memset(&t, 0, sizeof t);
    memset(&other, 0, sizeof other);
    assert_int_equal(words_init(&t.w, n_byte, &err), SLU_OK);
    assert_true(n_kept(&t) >= least_kept);
    assert_int_equal(words_share(&other.w, &t.w, &err), SLU_OK);
    words_release(&t.w);
    assert_true(n_kept(&other) >= least_kept);
    assert_int_equal(t.n_wrong + other.n_wrong, 0);
    words_release(&other.w);
}

static void run(uint64_t n_byte, uint64_t least_kept, bool anew)
{
    static struct thread t[N_THREAD];
    pthread_t thread[N_THREAD];
    struct slu_err err = SLU_ERR_INIT;
    uint64_t n_hit = 0, generation;

    memset(t, 0, sizeof t);
    assert_int_equal(words_init(&t[0].w, n_byte, &err), SLU_OK);
    assert_non_null(t[0].w.hot);
    for (unsigned i = 1; i < N_THREAD; i++)
        assert_int_equal(words_share(&t[i].w, &t[0].w, &err), SLU_OK);
    for (unsigned i = 0; i < N_THREAD; i++) {
        t[i].seed = i + 1;
        assert_int_equal(pthread_create(&thread[i], NULL, look_up_many, &t[i]), 0);
    }
    for (unsigned i = 0; i < N_THREAD; i++) {
        pthread_join(thread[i], NULL);
        n_hit += t[i].n_hit;
        assert_int_equal(t[i].n_wrong, 0);
    }
    assert_true(n_hit > 0);
    n_hit = n_kept(&t[1]);
    assert_int_equal(t[1].n_wrong, 0);
    words_renew(&t[2].w);
    generation = t[2].w.generation;
    for (unsigned i = 0; i < N_THREAD; i++) /* the first goes first */
        words_release(&t[i].w);
    assert_true(n_hit >= least_kept);
    assert_int_equal(generation > 0, anew);
}

static void test_small_cache_starts_anew(void **st)
{
    (void)st;
    run((UINT64_C(1) << 20) + (UINT64_C(9) << 13), 0, true);
}

static void test_large_cache_grows_and_keeps(void **st)
{
    (void)st;
    /* Two of a hundred find no place. */
    run(UINT64_C(64) << 20, N_WORD / 100 * 97, false);
    run_alone_first(UINT64_C(64) << 20, N_WORD / 100 * 97);
    run_alone_first((UINT64_C(1) << 20) + (UINT64_C(9) << 13), 0);
}

/* At their largest size, tables take only pretokens that come again. */
static void test_large_tables_take_repeats(void **st)
{
    enum { N = 100 };
    static struct thread t;
    struct slu_err err = SLU_ERR_INIT;

    (void)st;
    memset(&t, 0, sizeof t);
    assert_int_equal(words_init(&t.w, (UINT64_C(1) << 20) + (UINT64_C(9) << 13), &err),
                     SLU_OK);
    for (unsigned turn = 0; turn < 3; turn++) {
        assert_int_equal(t.n_hit, 0);
        for (uint32_t i = 0; i < N; i++)
            look_up(&t, i);
    }
    assert_int_equal(t.n_hit, N);
    assert_int_equal(t.n_wrong, 0);
    words_release(&t.w);
}

static void test_too_small(void **st)
{
    struct words w, v;
    struct slu_err err = SLU_ERR_INIT;

    (void)st;
    assert_int_equal(words_init(&w, 100000, &err), SLU_OK);
    assert_null(w.hot);
    assert_int_equal(words_share(&v, &w, &err), SLU_OK);
    assert_null(v.hot);
    words_release(&v);
    words_release(&w);
}

static uint64_t draw(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *x >> 33;
}

/* Makes k pretokens. Most are short and of the same few bytes, zeros among them, so that
 * they repeat; one of 30 is long. */
static size_t random_pretokens(uint64_t *x, struct hot_batch *b, uint8_t **text,
                               size_t k)
{
    for (size_t i = 0; i < k; i++) {
        uint64_t len = 1 + draw(x) % (draw(x) % 3 ? 5 : 17);
        b->at[i + 1] = b->at[i] + (uint32_t)(draw(x) % 30 ? len : 1 + draw(x) % 300);
    }
    *text = malloc(b->at[k]); /* not a byte more */
    assert_non_null(*text);
    for (size_t i = 0; i < b->at[k]; i++)
        (*text)[i] = draw(x) % 4 ? 'a' : draw(x) % 2 ? 0 : 0xFF;
    return b->at[k];
}

/* Keeps half of the pretokens, some with several ids. */
static void keep_some(uint64_t *x, struct words *w, const struct hot_batch *b,
                      const uint8_t *text, size_t k)
{
    for (size_t i = 0; i < k; i++) {
        const uint32_t n = b->at[i + 1] - b->at[i];
        if (n > HOT_BYTES || draw(x) % 2)
            continue;
        struct word_key key = word_key_at_end(text + b->at[i], n);
        struct word_slot s = {key, {(uint32_t)draw(x) % (1 << 21), 2, 0, 4}};
        const uint64_t count = draw(x) % 4 ? 0 : draw(x) % 2 ? 2 : WORD_MANY;
        s.key.b |= count << WORD_COUNT_SHIFT;
        word_hot_put(w, word_hash(key), &s);
    }
}

/* Compares the results, pretoken by pretoken, with the table. */
static void check_found(const struct words *w, const struct hot_batch *b,
                        const uint8_t *text, size_t k)
{
    size_t slow = 0, miss = 0, skipped = 0;
    for (size_t i = 0; i < k; i++) {
        const uint32_t n = b->at[i + 1] - b->at[i];
        const struct word_key key = word_key_at_end(text + b->at[i], n);
        const struct word_key s = *word_hot_slot(w, word_hot_place(w, word_hash(key)));
        uint32_t skip;
        words_alike(w, i, &skip);
        const bool is_skipped = skip >> (n < 16 ? n : 16) & 1;
        const bool is = hot_is(s, key), is_one = s.b >> WORD_COUNT_SHIFT == 0;
        if (is && !is_skipped && is_one) {
            assert_int_equal(b->id[i], s.b >> HOT_ID_SHIFT & 0xFFFFFF);
            continue;
        }
        assert_int_equal(b->slow[slow], i);
        if (is && !is_skipped) {
            assert_int_equal(b->place[slow], word_hot_place(w, word_hash(key)));
            assert_int_equal(b->id[i] >> HOT_COUNT_SHIFT, s.b >> WORD_COUNT_SHIFT);
        }
        slow++;
        if (is_skipped)
            assert_int_equal(b->skipped[skipped++], i);
        else if (!is)
            assert_int_equal(b->miss[miss++], i);
    }
    assert_int_equal(slow, b->n_slow);
    assert_int_equal(miss, b->n_miss);
    assert_int_equal(skipped, b->n_skipped);
}

/* All levels find the same, with the hot table that a cache of n_byte has. */
static void check_levels(uint64_t n_byte, unsigned hot_bits)
{
    static const char *const level[] = {"portable", "avx2", "avx512"};
    static struct hot_batch b;
    static struct words w;
    struct slu_err err = SLU_ERR_INIT;
    uint64_t x = 1;
    uint8_t *text;

    assert_int_equal(words_init(&w, n_byte, &err), SLU_OK);
    assert_int_equal(w.hot_bits, hot_bits);
    for (unsigned round = 0; round < 300; round++) {
        const size_t k = 1 + draw(&x) % (round % 10 ? 200 : HOT_MOST);
        const size_t n = random_pretokens(&x, &b, &text, k);
        w.hopeless = round % 3 ? 0 : (uint32_t)draw(&x) & 0x1FFFE;
        w.n_pretoken = (uint32_t)draw(&x);
        keep_some(&x, &w, &b, text, k);
        for (unsigned l = 0; l < 3; l++) {
            if (!slu_has_simd(level[l]))
                continue;
            hot_look(&b, &w, hot_find_of_level(level[l]), text, n, k);
            check_found(&w, &b, text, k);
        }
        free(text);
    }
    words_release(&w);
}

static void test_hot_levels(void **st)
{
    (void)st;
    check_levels(UINT64_C(2) << 20, 15);
    check_levels(UINT64_C(5) << 20, 16);
    check_levels(UINT64_C(64) << 20, 17);
}

/* Each member's hot table takes memory: many members have small ones. */
static void test_hot_sizes(void **st)
{
    static struct words w[5];
    struct slu_err err = SLU_ERR_INIT;

    (void)st;
    assert_int_equal(words_init(&w[0], UINT64_C(18) << 20, &err), SLU_OK);
    for (unsigned i = 1; i < 5; i++)
        assert_int_equal(words_share(&w[i], &w[0], &err), SLU_OK);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(w[i].hot_bits, i < 2 ? 17 : i < 4 ? 16 : 15);
    for (unsigned i = 0; i < 5; i++)
        words_release(&w[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_cache_starts_anew),
        cmocka_unit_test(test_large_cache_grows_and_keeps),
        cmocka_unit_test(test_large_tables_take_repeats),
        cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_hot_levels),
        cmocka_unit_test(test_hot_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
