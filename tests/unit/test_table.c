/* test_table.c - tables: rows put by any number of writers, in any memory, come back in
 * the order of an oracle that sorts them in memory, in one process, merged or poured;
 * lists come back in the order of their puts. Changed bytes and failing calls are
 * reported, and impossible rows refused. */
#include "tables.h"

/* ---- rows ---- */

struct item {
    struct slu_u128 key;
    uint64_t part, cell, number;
    uint64_t word[SLU_TABLE_WORDS];
    uint8_t *p; /* bytes of rows without words; the first two say how many */
    size_t n;
};

struct job {
    struct slu_table_spec rows, list;
    uint64_t n_part, n_cell;
    struct item *item; /* as they are put */
    size_t n_item;
    uint64_t wide; /* of the keys: few different ones, or many */
};

static unsigned cmp_words;

static int cmp_item(const void *va, const void *vb)
{
    const struct item *a = va, *b = vb;
    int c = slu_u128_cmp(a->key, b->key);

    for (unsigned i = 2; !c && i < cmp_words; i++)
        c = (a->word[i] > b->word[i]) - (a->word[i] < b->word[i]);
    if (!c && !cmp_words)
        c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);
    return c ? c : (a->part > b->part) - (a->part < b->part);
}

static int by_part(const void *va, const void *vb)
{
    const struct item *a = va, *b = vb;

    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    if (a->cell != b->cell)
        return a->cell < b->cell ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static void make_item(const struct job *j, struct item *x, size_t longest)
{
    x->part = rnd() % j->n_part;
    for (unsigned i = 0; i < SLU_TABLE_WORDS; i++)
        x->word[i] = i == 0 ? rnd() % j->wide << 40 | rnd() % 3 : rnd() % 5;
    x->key = (struct slu_u128){j->rows.n_word == 1 ? 0 : x->word[1], x->word[0]};
    x->n = 2 + rnd() % (rnd() % 20 ? 30 : longest);
    x->cell = slu_draw_below(x->key.hi, j->n_cell);
    if (j->rows.n_word)
        return;
    x->p = malloc(x->n);
    memset(x->p, (int)(rnd() % 2), x->n);
    x->p[0] = (uint8_t)(x->n >> 8);
    x->p[1] = (uint8_t)x->n;
    x->p[x->n - 1] ^= (uint8_t)(x->n > 2 && rnd() % 2);
}

static void make_job(struct job *j, unsigned n_word, uint64_t n_part, size_t n,
                     size_t longest)
{
    *j = (struct job){
        .rows = {"rows", SLU_ROWS, SLU_CUT_RANGES, n_word, 32},
        .list = {"list", SLU_LIST, SLU_CUT_RANGES, n_word, 32},
        .n_part = n_part,
        .n_cell = 1 + rnd() % 5,
        .n_item = n,
        .wide = rnd() % 2 ? 3 : UINT64_C(1) << 24,
    };
    cmp_words = n_word;
    j->item = calloc(n + 1, sizeof *j->item);
    for (size_t i = 0; i < n; i++)
        make_item(j, &j->item[i], longest);
    qsort(j->item, n, sizeof *j->item, by_part);
    for (size_t i = 0; i < n; i++)
        j->item[i].number = i;
}

static void end_job(struct job *j)
{
    for (size_t i = 0; i < j->n_item; i++)
        free(j->item[i].p);
    free(j->item);
}

static int put(struct slu_table *t, unsigned n_word, const struct item *x,
               struct slu_err *err)
{
    const size_t half = x->n / 2;
    const struct slu_slice piece[] = {{x->p, half}, {x->p + half, x->n - half}};

    return n_word ? slu_table_put(t, x->word, err)
                  : slu_table_put_bytes(t, x->key, piece, 2, err);
}

static bool is(const struct job *j, const struct slu_row *row, const struct item *x,
               bool part)
{
    assert_int_equal((uintptr_t)row->p % 8, 0);
    if (part && row->part != x->part)
        return false;
    if (j->rows.n_word)
        return row->n_byte == 8 * j->rows.n_word &&
               !memcmp(row->p, x->word, row->n_byte);
    return !slu_u128_cmp(row->key, x->key) && row->n_byte == x->n &&
           !memcmp(row->p, x->p, x->n);
}

/* ---- one process ---- */

/* The rows are those that are wanted, or there is an error: at the end at the latest.
 */
static int read_all(const struct job *j, struct slu_table *t, const struct item *want,
                    size_t n, bool part, struct slu_err *err)
{
    struct slu_row row;
    size_t i = 0, bad = 0;
    int rc;

    while (!(rc = slu_table_next(t, &row, err))) {
        bad += i >= n || !is(j, &row, &want[i], part);
        i++;
    }
    if (rc != SLU_EOF)
        return rc;
    assert_int_equal(bad, 0);
    assert_int_equal(i, n);
    return SLU_OK;
}

static int in_process(struct job *j, const struct slu_table_spec *spec, uint64_t budget,
                      struct item *want, struct slu_err *err)
{
    const struct slu_table_cfg cfg = cfg_of(budget, 10);
    struct slu_table *t = NULL;
    int rc = slu_table_new(&t, spec, &cfg, err);

    for (size_t i = 0; i < j->n_item && !rc; i++)
        rc = put(t, spec->n_word, &j->item[i], err);
    for (int k = 0; k < (spec->kind == SLU_LIST ? 2 : 1) && !rc; k++) {
        rc = slu_table_begin(t, err);
        if (!rc)
            rc = read_all(j, t, want, j->n_item, false, err);
    }
    slu_table_free(t);
    return rc;
}

/* ---- files ---- */

static int put_part(const struct job *j, uint64_t part, struct slu_table *rows,
                    struct slu_table *list, struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < j->n_item && !rc; i++) {
        const struct item *x = &j->item[i];
        if (x->part != part)
            continue;
        rc = put(rows, j->rows.n_word, x, err);
        if (!rc)
            rc = slu_table_section(list, x->cell, err);
        if (!rc)
            rc = put(list, j->list.n_word, x, err);
    }
    return rc;
}

/* Sections: 0 empty, n_cell of rows, n_cell of the list. */
static int write_part(const struct job *j, uint64_t part, uint64_t budget,
                      uint64_t *longest, struct slu_err *err)
{
    const struct slu_table_cfg cfg = cfg_of(budget, 10);
    struct slu_workfile_out *o = NULL;
    struct slu_table *rows = NULL, *list = NULL;
    char path[100];

    path_of(path, sizeof path, part);
    int rc = slu_table_new(&rows, &j->rows, &cfg, err);
    if (!rc)
        rc = slu_table_new(&list, &j->list, &cfg, err);
    if (!rc)
        rc = put_part(j, part, rows, list, err);
    if (!rc)
        rc = slu_workfile_create(&o, path, head.kind, err);
    if (!rc)
        rc = slu_table_write(rows, o, 1, j->n_cell, NULL, NULL, err);
    if (!rc)
        rc = slu_table_write(list, o, 1 + j->n_cell, j->n_cell, NULL, NULL, err);
    if (!rc) {
        assert_int_equal(slu_table_longest(rows), slu_table_longest(list));
        if (slu_table_longest(rows) > *longest)
            *longest = slu_table_longest(rows);
        rc = slu_workfile_close(o, &head, 1 + 2 * j->n_cell, err);
        o = NULL;
    }
    slu_workfile_abort(o);
    slu_table_free(rows);
    slu_table_free(list);
    return rc;
}

/* Reads cells [from, from + n) of the rows. poured: whether the table must pour its
 * files (1) or merge them (0); -1: either. */
static int read_rows(const struct job *j, const struct slu_table_cfg *cfg,
                     uint64_t from, uint64_t n, uint64_t longest,
                     const struct item *sorted, int poured, struct slu_err *err)
{
    struct slu_table *t = NULL;
    size_t a = 0, b;

    while (a < j->n_item && sorted[a].cell < from)
        a++;
    for (b = a; b < j->n_item && sorted[b].cell < from + n; b++)
        ;
    int rc = open_table(j->n_part, &j->rows, cfg, 1 + from, n, longest, &t, err);
    if (!rc && poured >= 0)
        assert_int_equal(slu_table_poured(t), poured);
    if (!rc)
        rc = read_all(j, t, sorted + a, b - a, true, err);
    slu_table_free(t);
    return rc;
}

/* The same of the list, which is in the order of parts. */
static int read_list(const struct job *j, const struct slu_table_cfg *cfg,
                     uint64_t from, uint64_t n, uint64_t longest, struct slu_err *err)
{
    struct item *want = calloc(j->n_item + 1, sizeof *want);
    struct slu_table *t = NULL;
    size_t n_want = 0;
    int rc = want ? SLU_OK : slu_fail_nomem(err, j->n_item * sizeof *want);

    for (size_t i = 0; i < j->n_item && !rc; i++)
        if (j->item[i].cell >= from && j->item[i].cell < from + n)
            want[n_want++] = j->item[i];
    if (!rc)
        rc = open_table(j->n_part, &j->list, cfg, 1 + j->n_cell + from, n, longest, &t,
                        err);
    if (!rc)
        rc = read_all(j, t, want, n_want, true, err);
    slu_table_free(t);
    free(want);
    return rc;
}

static struct item *sorted_items(const struct job *j)
{
    struct item *s = malloc((j->n_item + 1) * sizeof *s);

    memcpy(s, j->item, j->n_item * sizeof *s);
    qsort(s, j->n_item, sizeof *s, cmp_item);
    return s;
}

static void one_job(unsigned n_word, uint64_t n_part, size_t n, size_t longest)
{
    struct slu_err err = SLU_ERR_INIT;
    struct job j;
    uint64_t most = 0;

    make_job(&j, n_word, n_part, n, longest);
    struct item *sorted = sorted_items(&j);
    const struct slu_table_cfg merges = cfg_of((uint64_t)64 << 20, 200),
                               few_files = cfg_of(16 << 20, 16),
                               few_bytes = cfg_of(n_part << 10, 200);
    assert_int_equal(in_process(&j, &j.rows, any_budget(), sorted, &err), 0);
    assert_int_equal(in_process(&j, &j.list, any_budget(), j.item, &err), 0);
    for (uint64_t i = 0; i < n_part; i++)
        assert_int_equal(write_part(&j, i, any_budget(), &most, &err), 0);
    for (uint64_t c = 0; c < j.n_cell; c++) {
        assert_int_equal(read_list(&j, &merges, c, 1, most, &err), 0);
        assert_int_equal(read_rows(&j, &merges, c, 1, most, sorted, 0, &err), 0);
        assert_int_equal(
            read_rows(&j, &few_files, c, 1, most, sorted, n_part > 16, &err), 0);
    }
    assert_int_equal(read_rows(&j, &merges, 0, j.n_cell, most, sorted, 0, &err), 0);
    if (n_part >= 64 * 2 && longest < 1000)
        assert_int_equal(read_rows(&j, &few_bytes, 0, j.n_cell, most, sorted, 1, &err),
                         0);
    assert_int_equal(read_list(&j, &few_files, 0, j.n_cell, most, &err), 0);
    remove_parts(j.n_part);
    free(sorted);
    end_job(&j);
}

static void test_orders(void **state)
{
    for (unsigned i = 0; i < 60; i++) {
        unsigned n_word = i % 3 ? 1 + (unsigned)(rnd() % SLU_TABLE_WORDS) : 0;
        uint64_t n_part = i % 10 == 9 ? 40 : 1 + rnd() % 12;
        one_job(n_word, n_part, rnd() % (i % 4 ? 3000 : 5), i % 6 ? 200 : 20000);
    }
    one_job(0, 130, 2000, 100);
    one_job(3, 130, 2000, 100);
    one_job(0, 8, 40000, 500); /* sorters spill */
    (void)state;
}

/* ---- what is wrong ---- */

static void small_job(struct job *j, unsigned n_word, uint64_t *most)
{
    struct slu_err err = SLU_ERR_INIT;

    *most = 0;
    make_job(j, n_word, 3, 60, 40);
    for (uint64_t i = 0; i < j->n_part; i++)
        assert_int_equal(write_part(j, i, 1 << 20, most, &err), 0);
}

struct reading {
    const struct job *j;
    uint64_t most;
    const struct item *sorted;
};

static int read_both(const void *ctx, struct slu_err *err)
{
    const struct reading *r = ctx;
    const struct slu_table_cfg merge = cfg_of(1 << 20, 100), few = cfg_of(1 << 20, 2);
    int rc =
        read_rows(r->j, rnd() % 2 ? &merge : &few, 0, 1, r->most, r->sorted, -1, err);

    return rc ? rc : read_list(r->j, &merge, 0, r->j->n_cell, r->most, err);
}

static void damage(unsigned n_word)
{
    struct job j;
    uint64_t most;

    small_job(&j, n_word, &most);
    struct item *sorted = sorted_items(&j);
    const struct reading r = {&j, most, sorted};
    each_byte_differs(read_both, &r);
    remove_parts(j.n_part);
    free(sorted);
    end_job(&j);
}

static void test_damaged(void **state)
{
    damage(0);
    damage(3);
    (void)state;
}

/* Sections that say anything, their checksums right. */
static void test_forged(void **state)
{
    const struct slu_table_cfg cfg[] = {cfg_of(1 << 20, 100), cfg_of(64 << 10, 0)};
    struct slu_err err = SLU_ERR_INIT;
    struct job j = {.n_part = 1};
    unsigned n_good = 0, n_bad = 0;
    char path[100];

    path_of(path, sizeof path, 0);
    for (unsigned k = 0; k < 2000; k++) {
        struct slu_table_spec spec = {"x", k % 3 ? SLU_ROWS : SLU_LIST, SLU_CUT_NO,
                                      k % 5 ? 0 : 1 + k % 7, 1};
        struct slu_workfile_out *o;
        struct slu_table *t = NULL;
        struct slu_row row;
        assert_int_equal(slu_workfile_create(&o, path, head.kind, &err), 0);
        for (uint64_t i = rnd() % 12; i > 0; i--) {
            uint64_t v = rnd() % 4 ? rnd() % 30 : rnd() >> rnd() % 64;
            assert_int_equal(slu_workfile_put(o, &v, 1, &err), 0);
        }
        assert_int_equal(slu_workfile_close(o, &head, 1, &err), 0);
        int rc = open_table(j.n_part, &spec, &cfg[k % 2], 0, 1, rnd() >> rnd() % 64, &t,
                            &err);
        struct slu_u128 before = {0, 0};
        while (!rc && !(rc = slu_table_next(t, &row, &err))) {
            assert_true(spec.kind == SLU_LIST || slu_u128_cmp(before, row.key) <= 0);
            before = row.key;
        }
        assert_true(rc == SLU_EOF || strstr(err.msg, path));
        n_good += rc == SLU_EOF;
        n_bad += rc != SLU_EOF;
        slu_table_free(t);
    }
    assert_true(n_good > 100 && n_bad > 1000);
    unlink(path);
    (void)state;
}

static void test_too_large(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    struct job j;
    uint64_t most = 0;

    make_job(&j, 0, 1, 200, 60000);
    struct item *sorted = sorted_items(&j);
    const struct slu_table_cfg cfg = cfg_of(64 << 10, 100);
    assert_int_equal(write_part(&j, 0, 1 << 20, &most, &err), 0);
    assert_true(most > 32 << 10);
    assert_int_equal(read_rows(&j, &cfg, 0, j.n_cell, most, sorted, -1, &err),
                     SLU_E_LIMIT);
    assert_int_equal(err.advice, SLU_ADVISE_MEMORY);
    remove_parts(j.n_part);
    free(sorted);
    end_job(&j);
    (void)state;
}

/* ---- parts ---- */

/* Joins rows of one ordinal. */
static bool add_up(const void *ctx, uint64_t *row, const uint64_t *next)
{
    assert_ptr_equal(ctx, folder);
    if (row[0] != next[0])
        return false;
    row[1] += next[1];
    return true;
}

/* Rows cut by parts: a part's file section has its ordinals, from its beginning on;
 * with `times` rows for each, one of them. */
static void parts(uint8_t low, unsigned times)
{
    const struct slu_table_spec spec = {
        "rows", SLU_ROWS, SLU_CUT_PARTS, 2, 32, 0, 0, low, times > 1 ? add_up : NULL};
    const uint64_t base[] = {0, 3, 3, 1000, 1001}, n_part = 4;
    struct slu_table_cfg cfg = cfg_of(64 << 10, 10);
    struct slu_err err = SLU_ERR_INIT;
    struct slu_workfile_out *o;
    struct slu_table *t;
    struct slu_row row;
    char path[100];

    cfg.base = base;
    cfg.n_part = cfg.n_cell = n_part;
    path_of(path, sizeof path, 0);
    assert_int_equal(slu_table_new(&t, &spec, &cfg, &err), 0);
    for (uint64_t i = 0; i < times * base[n_part]; i++) {
        const uint64_t at = i * 10 % base[n_part],
                       w[] = {at << low | (low ? at : 0), i};
        assert_int_equal(slu_table_put(t, w, &err), 0);
    }
    assert_int_equal(slu_workfile_create(&o, path, head.kind, &err), 0);
    assert_int_equal(slu_table_write(t, o, 0, n_part, NULL, folder, &err), 0);
    assert_int_equal(slu_workfile_close(o, &head, n_part, &err), 0);
    slu_table_free(t);
    for (uint64_t k = 0; k < n_part; k++) {
        assert_int_equal(open_table(1, &spec, &cfg, k, 1, 16, &t, &err), 0);
        for (uint64_t i = base[k]; i < base[k + 1]; i++) {
            assert_int_equal(slu_table_next(t, &row, &err), 0);
            const uint64_t *w = row.p;
            assert_int_equal(w[0], (i - base[k]) << low | (low ? i : 0));
            /* i + i + n + i + 2n … of the rows that were put for it */
            const uint64_t n = base[n_part] * (times * (times - 1) / 2);
            assert_int_equal((w[1] - n) / times * 10 % base[n_part], i);
        }
        assert_int_equal(slu_table_next(t, &row, &err), SLU_EOF);
        slu_table_free(t);
    }
    /* An ordinal of no part. */
    const uint64_t none[] = {base[n_part] << low, 0};
    assert_int_equal(slu_table_new(&t, &spec, &cfg, &err), 0);
    assert_int_equal(slu_table_put(t, none, &err), 0);
    assert_int_equal(slu_workfile_create(&o, path, head.kind, &err), 0);
    assert_int_equal(slu_table_write(t, o, 0, n_part, NULL, NULL, &err), SLU_E_USAGE);
    slu_workfile_abort(o);
    slu_table_free(t);
    unlink(path);
}

static void test_parts(void **state)
{
    parts(0, 1);
    parts(0, 3);
    parts(16, 1);
    parts(16, 2);
    (void)state;
}

/* ---- calls that fail ---- */

static int everything(const void *ctx, struct slu_err *err)
{
    const struct reading *r = ctx;
    const struct job *j = r->j;
    const struct slu_table_cfg merge = {1 << 20, "/var/tmp", 1, 100},
                               pour = {64 << 10, "/var/tmp", 1, 2};
    uint64_t longest = 0;
    int rc = write_part(j, 1, 64 << 10, &longest, err);

    if (!rc)
        rc = read_rows(j, &merge, 0, j->n_cell, r->most, r->sorted, 0, err);
    if (!rc)
        rc = read_rows(j, &pour, 0, j->n_cell, r->most, r->sorted, 1, err);
    return rc ? rc : read_list(j, &pour, 0, j->n_cell, r->most, err);
}

static void test_failing(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    struct job j;
    uint64_t most = 0;

    make_job(&j, 0, 3, 3000, 100);
    struct item *sorted = sorted_items(&j);
    for (uint64_t i = 0; i < j.n_part; i++)
        assert_int_equal(write_part(&j, i, 1 << 20, &most, &err), 0);
    const struct reading r = {&j, most, sorted};
    each_call_fails(everything, &r, 20, true);
    assert_int_equal(everything(&r, &err), 0);
    remove_parts(j.n_part);
    free(sorted);
    end_job(&j);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_forged), cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_parts),  cmocka_unit_test(test_failing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
