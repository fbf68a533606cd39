/* test_related.c - chains of related items compared with a plain program that compares
 * all pairs; the keys. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/pack/related.h"

static uint64_t state = 3;
static uint64_t rnd(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

enum { MOST = 60 }; /* below the cap: every list is whole */
static uint32_t key[3000][SLU_RELATED_KEYS], len[3000];

static unsigned share(size_t a, size_t b)
{
    unsigned sum = 0;
    for (unsigned k = 0; k < SLU_RELATED_KEYS; k++)
        if (key[a][k] && key[a][k] == key[b][k])
            sum += k < SLU_RELATED_BANDS ? 1 : k == SLU_RELATED_BANDS ? 4 : 2;
    return sum;
}

static size_t plain(size_t n, uint64_t capacity, uint32_t *item, uint32_t *first)
{
    static uint8_t placed[MOST];
    size_t at = 0, chains = 0;
    memset(placed, 0, sizeof placed);
    for (size_t i = 0; i < n; i++) {
        if (placed[i])
            continue;
        uint64_t room = capacity;
        size_t begin = at, next = i;
        first[chains++] = (uint32_t)at;
        for (unsigned best = 1; best;) {
            placed[next] = 1;
            room -= len[next];
            item[at++] = (uint32_t)next;
            best = 0;
            for (size_t y = 0; y < n; y++) {
                unsigned sum = 0;
                for (size_t k = begin; k < at; k++)
                    sum += share(item[k], y);
                if (!placed[y] && len[y] <= room && sum > best) {
                    best = sum;
                    next = y;
                }
            }
        }
    }
    first[chains] = (uint32_t)at;
    return chains;
}

/* Every item once, chains no longer than a bin and in the order of their first items.
 */
static void check_whole(const struct slu_chains *c, size_t n, uint64_t capacity)
{
    static uint8_t seen[3000];
    uint64_t related = 0;
    memset(seen, 0, sizeof seen);
    assert_int_equal(c->first[0], 0);
    assert_int_equal(c->first[c->n], n);
    for (size_t k = 0; k < c->n; k++) {
        uint64_t sum = 0;
        assert_true(c->first[k + 1] > c->first[k]);
        for (size_t i = c->first[k]; i < c->first[k + 1]; i++) {
            assert_true(c->item[i] < n);
            assert_false(seen[c->item[i]]++);
            sum += len[c->item[i]];
        }
        assert_int_equal(sum, c->len[k]);
        assert_true(sum <= capacity);
        assert_true(!k || c->item[c->first[k]] > c->item[c->first[k - 1]]);
        related +=
            c->first[k + 1] - c->first[k] > 1 ? c->first[k + 1] - c->first[k] : 0;
    }
    assert_int_equal(related, c->related);
}

static void make_items(size_t n, unsigned topics, uint64_t longest)
{
    memset(key, 0, sizeof key);
    for (size_t i = 0; i < n; i++) {
        len[i] = (uint32_t)(1 + rnd(longest));
        for (unsigned k = 0; k < SLU_RELATED_KEYS; k++)
            key[i][k] = rnd(3) ? 0 : (uint32_t)(1 + rnd(topics));
    }
}

static void test_plain(void **arg)
{
    (void)arg;
    int exact = 0;
    for (int t = 0; t < 400; t++) {
        size_t n = 1 + rnd(MOST);
        uint64_t capacity = 20 + rnd(200);
        uint32_t item[MOST], first[MOST + 1];
        struct slu_chains c;
        make_items(n, 2 + (unsigned)rnd(30), 1 + rnd(20));
        assert_int_equal(
            slu_related_chains(&c, key[0], len, n, capacity, 1 << 20, NULL), SLU_OK);
        check_whole(&c, n, capacity);
        if (!c.loosened) {
            size_t chains = plain(n, capacity, item, first);
            exact++;
            assert_int_equal(c.n, chains);
            assert_memory_equal(c.item, item, n * sizeof *item);
            assert_memory_equal(c.first, first, (chains + 1) * sizeof *first);
        }
        slu_chains_release(&c);
    }
    assert_true(exact > 100);
}

static void test_caps(void **arg)
{
    (void)arg;
    struct slu_chains c;
    const size_t n = 3 * SLU_RELATED_CAP;
    memset(key, 0, sizeof key);
    for (size_t i = 0; i < n; i++) {
        len[i] = 1;
        key[i][0] = 7; /* a minimum that all have says nothing */
    }
    assert_int_equal(slu_related_chains(&c, key[0], len, n, 1000, 1 << 20, NULL),
                     SLU_OK);
    check_whole(&c, n, 1000);
    assert_int_equal(c.n, n);
    assert_int_equal(c.capped, 1);
    slu_chains_release(&c);
    for (size_t i = 0; i < n; i++)
        key[i][SLU_RELATED_BANDS] = 9; /* a folder does, in neighbourhoods */
    assert_int_equal(slu_related_chains(&c, key[0], len, n, 1000, 1 << 20, NULL),
                     SLU_OK);
    check_whole(&c, n, 1000);
    assert_int_equal(c.n, 3);
    slu_chains_release(&c);
    assert_int_equal(slu_related_chains(&c, key[0], len, 0, 1000, 1 << 20, NULL),
                     SLU_OK);
    assert_int_equal(c.n, 0);
    slu_chains_release(&c);
    make_items(3000, 10, 10);
    assert_int_equal(slu_related_chains(&c, key[0], len, 3000, 1000, 1000, NULL),
                     SLU_E_LIMIT);
    slu_chains_release(&c);
}

static void test_loosened(void **arg)
{
    (void)arg;
    /* Pairs of two thirds of a bin: apart they fill bins, together they do not. */
    struct slu_chains c;
    memset(key, 0, sizeof key);
    for (uint32_t i = 0; i < 3000; i++) {
        len[i] = 200;
        key[i][0] = 1 + i / 2;
    }
    assert_int_equal(slu_related_chains(&c, key[0], len, 3000, 600, 1 << 24, NULL),
                     SLU_OK);
    check_whole(&c, 3000, 600);
    assert_true(c.loosened > 100);
    slu_chains_release(&c);
}

static void test_keys(void **arg)
{
    (void)arg;
    struct slu_header h;
    struct slu_relater *r;
    struct slu_relater_scratch x = {{0}};
    uint16_t a[400], b[400], none = 9;
    uint32_t ka[SLU_RELATED_KEYS], kb[SLU_RELATED_KEYS];
    unsigned same = 0;
    slu_header_init(&h);
    h.tok_bytes = 2;
    h.eos = 9;
    for (uint16_t i = 0; i < 400; i++) {
        a[i] = (uint16_t)(100 + i);
        b[i] = (uint16_t)(300 + i); /* half of it is in both */
    }
    assert_int_equal(slu_relater_new(&r, &h, NULL, NULL), SLU_OK);
    assert_int_equal(slu_relater_keys(r, &x, a, 400, "p/src/a.c", 9, ka, NULL), SLU_OK);
    assert_int_equal(slu_relater_keys(r, &x, b, 400, "p/lib/b.c", 9, kb, NULL), SLU_OK);
    for (unsigned k = 0; k < SLU_RELATED_BANDS; k++)
        same += ka[k] == kb[k];
    assert_true(same > 2 && same < 24); /* a third, give or take */
    assert_true(ka[SLU_RELATED_BANDS] != kb[SLU_RELATED_BANDS]);
    assert_int_equal(ka[SLU_RELATED_BANDS + 1], kb[SLU_RELATED_BANDS + 1]);
    assert_int_equal(slu_relater_keys(r, &x, &none, 1, "x", 1, ka, NULL), SLU_OK);
    for (unsigned k = 0; k < SLU_RELATED_KEYS; k++)
        assert_int_equal(ka[k], 0);
    slu_relater_scratch_release(&x);
    slu_relater_free(r);
    slu_header_release(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_caps),
        cmocka_unit_test(test_loosened),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
