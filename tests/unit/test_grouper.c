/* test_grouper.c - tables of kind GROUPS: all rows with a common key are found, in one
 * process and over files, in any memory, also in groups larger than the memory. Changed
 * bytes and failing calls are reported, and impossible rows refused. */
#include "lib/flow/grouper_private.h"
#include "tables.h"

/* A row as its part puts it, and as it is read: with the ordinals of all parts. */
struct row {
    uint64_t put[SLU_GROUPER_MOST_WORDS], word[SLU_GROUPER_MOST_WORDS];
    uint64_t part, cell;
    bool alone;
};

struct grouped {
    struct slu_table_spec spec;
    uint64_t n_part, n_cell, base[41];
    struct row *row; /* as they are put */
    size_t n_row;
};

static unsigned met_words;

static int cmp_met(const void *va, const void *vb)
{
    const struct row *a = va, *b = vb;

    for (unsigned i = 0; i < met_words; i++)
        if (a->word[i] != b->word[i])
            return a->word[i] < b->word[i] ? -1 : 1;
    return 0;
}

static bool one_group(const struct grouped *m, uint64_t a, uint64_t b)
{
    return (a ^ b) >> (64 - m->spec.group_bits) == 0;
}

/* The last word has an ordinal in its lower 48 bits, or above 16. heavy: most rows have
 * one key. */
static void make_rows(struct grouped *m, uint64_t n_part, size_t n, bool heavy)
{
    const unsigned n_word = 3 + (unsigned)(rnd() % 4);

    *m = (struct grouped){
        .spec = {"grouped", SLU_GROUPS, SLU_CUT_RANGES, n_word, 32,
                 rnd() % 2 ? 64 : (uint8_t)(20 + rnd() % 30),
                 (uint8_t)(1 << (n_word - 1)), rnd() % 2 ? 16 : 0, NULL},
        .n_part = n_part,
        .n_cell = 1 + rnd() % 5,
        .row = calloc(n + 1, sizeof(struct row)),
        .n_row = n,
    };
    for (uint64_t i = 0; i < n_part; i++)
        m->base[i + 1] = m->base[i] + 1 + rnd() % 1000;
    met_words = n_word;
    for (size_t i = 0; i < n; i++) {
        struct row *x = &m->row[i];
        const uint64_t key = rnd() % (n < 100 ? 20 : n);
        x->part = i * n_part / n;
        x->word[0] = heavy && key % 8 ? UINT64_MAX : key * UINT64_C(0x9e3779b97f4a7c15);
        x->word[0] ^= rnd() % 4;
        for (unsigned k = 1; k < n_word; k++)
            x->word[k] = rnd() % 3;
        memcpy(x->put, x->word, sizeof x->put);
        const unsigned low = m->spec.low;
        x->put[n_word - 1] = (rnd() % 3) << (low ? 0 : 48) |
                             (rnd() % (m->base[x->part + 1] - m->base[x->part])) << low;
        x->word[n_word - 1] = x->put[n_word - 1] + (m->base[x->part] << low);
        x->cell = slu_grouper_range(x->word[0], m->n_cell, m->spec.group_bits);
    }
}

/* The oracle: all rows in order, and which have nobody. */
static struct row *sorted_rows(const struct grouped *m, bool in_process)
{
    struct row *s = malloc((m->n_row + 1) * sizeof *s);

    memcpy(s, m->row, m->n_row * sizeof *s);
    for (size_t i = 0; in_process && i < m->n_row; i++)
        memcpy(s[i].word, s[i].put, sizeof s->word);
    qsort(s, m->n_row, sizeof *s, cmp_met);
    for (size_t i = 0; i < m->n_row; i++)
        s[i].alone =
            !(i && one_group(m, s[i - 1].word[0], s[i].word[0])) &&
            !(i + 1 < m->n_row && one_group(m, s[i + 1].word[0], s[i].word[0]));
    return s;
}

struct feeding {
    bool any;
    uint64_t last[SLU_GROUPER_MOST_WORDS];
};

static int on_feed(void *state, const void *arg, const uint64_t *row,
                   struct slu_buf *out, struct slu_err *err)
{
    const struct grouped *m = arg;
    struct feeding *s = state;
    struct row before, now;

    memcpy(before.word, s->last, m->spec.n_word * sizeof *row);
    memcpy(now.word, row, m->spec.n_word * sizeof *row);
    if (s->any && one_group(m, before.word[0], row[0]) && cmp_met(&before, &now) > 0)
        return slu_fail(err, SLU_E_USAGE, "rows of a group do not ascend");
    s->any = true;
    memcpy(s->last, row, m->spec.n_word * sizeof *row);
    return slu_buf_append(out, row, m->spec.n_word * sizeof *row, err);
}

static int on_end(void *state, struct slu_buf *out, struct slu_err *err)
{
    (void)out, (void)err;
    ((struct feeding *)state)->any = false;
    return SLU_OK;
}

static int on_take(void *ctx, struct slu_buf *out, struct slu_err *err)
{
    return slu_buf_append(ctx, out->data, out->len, err);
}

/* Groups a cell (UINT64_MAX: all cells); the rows must be those of the oracle, but rows
 * that are alone may be missing. */
static int group_all(const struct grouped *m, struct slu_table *t,
                     const struct row *sorted, uint64_t cell, struct slu_err *err)
{
    struct slu_buf fed = SLU_BUF_INIT;
    const struct slu_group_ops ops = {.state_byte = sizeof(struct feeding),
                                      .arg = m,
                                      .feed = on_feed,
                                      .end = on_end,
                                      .take = on_take,
                                      .out_byte = 8 * m->spec.n_word,
                                      .ctx = &fed};
    const unsigned n_word = m->spec.n_word;
    int rc = slu_table_group(t, &ops, err);
    size_t n = fed.len / (8 * n_word), at = 0, bad = 0;
    struct row *got = calloc(n + 1, sizeof *got);

    for (size_t i = 0; got && i < n && !rc; i++)
        memcpy(got[i].word, fed.data + 8 * n_word * i, 8 * n_word);
    if (got && !rc)
        qsort(got, n, sizeof *got, cmp_met);
    for (size_t i = 0; got && i < m->n_row && !rc; i++) {
        if (cell != UINT64_MAX && sorted[i].cell != cell)
            continue;
        if (at < n && !cmp_met(&got[at], &sorted[i]))
            at++;
        else
            bad += !sorted[i].alone;
    }
    if (got && !rc) {
        assert_int_equal(bad, 0);
        assert_int_equal(at, n);
    }
    free(got);
    slu_buf_release(&fed);
    return rc;
}

static int group_in_process(const struct grouped *m, uint64_t budget,
                            const struct row *sorted, struct slu_err *err)
{
    const struct slu_table_cfg cfg = cfg_of(budget, 10);
    struct slu_table *t = NULL;
    int rc = slu_table_new(&t, &m->spec, &cfg, err);

    for (size_t i = 0; i < m->n_row && !rc; i++)
        rc = slu_table_put(t, m->row[i].put, err);
    if (!rc)
        rc = slu_table_begin(t, err);
    if (!rc)
        rc = group_all(m, t, sorted, UINT64_MAX, err);
    slu_table_free(t);
    return rc;
}

static int write_rows(const struct grouped *m, uint64_t part, uint64_t budget,
                      struct slu_err *err)
{
    struct slu_table_cfg cfg = cfg_of(budget, 10);
    struct slu_workfile_out *o = NULL;
    struct slu_table *t = NULL;
    char path[100];

    cfg.n_cell = m->n_cell;
    path_of(path, sizeof path, part);
    int rc = slu_table_new(&t, &m->spec, &cfg, err);
    for (size_t i = 0; i < m->n_row && !rc; i++)
        if (m->row[i].part == part)
            rc = slu_table_put(t, m->row[i].put, err);
    if (!rc)
        rc = slu_workfile_create(&o, path, head.kind, err);
    if (!rc)
        rc = slu_table_write(t, o, 1, m->n_cell, NULL, NULL, err);
    if (!rc) {
        rc = slu_workfile_close(o, &head, 1 + m->n_cell, err);
        o = NULL;
    }
    slu_workfile_abort(o);
    slu_table_free(t);
    return rc;
}

static int read_rows(const struct grouped *m, uint64_t budget, unsigned max_file,
                     uint64_t cell, const struct row *sorted, struct slu_err *err)
{
    struct slu_table_cfg cfg = cfg_of(budget, max_file);
    struct slu_table *t = NULL;

    cfg.n_cell = m->n_cell;
    cfg.cell = cell;
    cfg.base = m->base;
    cfg.n_part = m->n_part;
    int rc =
        open_table(m->n_part, &m->spec, &cfg, 1 + cell, 1, 8 * m->spec.n_word, &t, err);
    if (!rc)
        rc = group_all(m, t, sorted, cell, err);
    slu_table_free(t);
    return rc;
}

static void end_rows(struct grouped *m)
{
    remove_parts(m->n_part);
    free(m->row);
}

static void one_table(uint64_t n_part, size_t n, bool heavy)
{
    struct slu_err err = SLU_ERR_INIT;
    struct grouped m;

    make_rows(&m, n_part, n, heavy);
    struct row *here = sorted_rows(&m, true), *sorted = sorted_rows(&m, false);
    assert_int_equal(group_in_process(&m, any_budget(), here, &err), 0);
    for (uint64_t i = 0; i < n_part; i++)
        assert_int_equal(write_rows(&m, i, any_budget(), &err), 0);
    for (uint64_t c = 0; c < m.n_cell; c++) {
        assert_int_equal(read_rows(&m, any_budget(), 100, c, sorted, &err), 0);
        assert_int_equal(read_rows(&m, any_budget(), 3, c, sorted, &err), 0);
    }
    end_rows(&m);
    free(here);
    free(sorted);
}

static void test_groupering(void **state)
{
    for (unsigned i = 0; i < 60; i++)
        one_table(i % 10 == 9 ? 40 : 1 + rnd() % 12, rnd() % (i % 4 ? 5000 : 5),
                  i % 3 == 1);
    one_table(3, 60000, false); /* cells spill */
    one_table(3, 60000, true);  /* and one is larger than memory */
    (void)state;
}

/* Keys on both sides of each range's border, and near it; with 44 bits of them equal, a
 * group is never in two ranges. Few cells, and so many that a chunk has few records. */
static void test_ranges(void **state)
{
    static const uint64_t n_range[] = {1, 2, 5, 7, 1000, 5000};
    enum { N_REC = 20000, BITS = 44 };
    struct slu_err err = SLU_ERR_INIT;
    (void)state;

    for (size_t t = 0; t < sizeof n_range / sizeof *n_range; t++) {
        uint64_t n = n_range[t], n_seen = 0;
        const struct slu_grouper_cfg cfg = {3, BITS, 64 << 10, ".", n, true};
        struct slu_grouper *c;
        assert_int_equal(slu_grouper_new(&c, &cfg, &err), SLU_OK);
        for (uint64_t i = 0; i < N_REC; i++) {
            uint64_t border = (uint64_t)(((unsigned __int128)(rnd() % n) << 64) / n);
            uint64_t hi = border + (rnd() % (1 << 21) - (1 << 20));
            uint64_t low = UINT64_MAX >> BITS;
            const uint64_t r[] = {hi, 0, i << 16 | 1};
            assert_int_equal(slu_grouper_range(hi | low, n, BITS),
                             slu_grouper_range(hi & ~low, n, BITS));
            assert_int_equal(slu_grouper_put(c, r, 1, &err), SLU_OK);
        }
        assert_int_equal(slu_grouper_seal(c, &err), SLU_OK);
        for (uint64_t j = 0; j < n; j++) {
            struct slu_grouper_cursor at = {.cell = j};
            uint64_t got[3 * 100];
            uint64_t last = 0;
            size_t n_got = 100;
            while (n_got == 100) {
                assert_int_equal(slu_grouper_read(c, &at, got, 100, &n_got, &err),
                                 SLU_OK);
                for (size_t i = 0; i < n_got; i++) {
                    assert_int_equal(slu_grouper_range(got[3 * i], n, BITS), j);
                    assert_true(got[3 * i + 2] > last); /* as they came */
                    last = got[3 * i + 2];
                }
                n_seen += n_got;
            }
        }
        assert_int_equal(n_seen, N_REC);
        slu_grouper_free(c);
    }
}

struct looking {
    const struct grouped *m;
    const struct row *sorted;
};

static int read_cells(const void *ctx, struct slu_err *err)
{
    const struct looking *l = ctx;
    int rc = SLU_OK;

    for (uint64_t c = 0; c < l->m->n_cell && !rc; c++)
        rc = read_rows(l->m, 1 << 20, 100, c, l->sorted, err);
    return rc;
}

/* Each byte of a file; then an ordinal that its part has not, and a row of another
 * cell. */
static void test_damaged(void **state)
{
    struct slu_err err = SLU_ERR_INIT;
    struct grouped m;

    make_rows(&m, 3, 60, false);
    struct row *sorted = sorted_rows(&m, false);
    for (uint64_t i = 0; i < m.n_part; i++)
        assert_int_equal(write_rows(&m, i, 1 << 20, &err), 0);
    each_byte_differs(read_cells, &(struct looking){&m, sorted});
    for (unsigned k = 0; k < 2; k++) {
        uint64_t *w = &m.row[30].put[k ? 0 : m.spec.n_word - 1], was = *w;
        struct grouped one = m;
        int rc = SLU_OK;
        *w = k ? ~was : was + (UINT64_C(1000) << m.spec.low);
        one.n_cell = k ? 1 : m.n_cell; /* all in the first, */
        for (uint64_t i = 0; i < m.n_part; i++)
            assert_int_equal(write_rows(&one, i, 1 << 20, &err), 0);
        one.n_cell = k ? 2 : m.n_cell; /* and it is read as the first of two */
        for (uint64_t c = 0; c < (k ? 1 : m.n_cell) && !rc; c++)
            rc = read_rows(&one, 1 << 20, 100, c, sorted, &err);
        assert_int_equal(rc, SLU_E_CHECKSUM);
        *w = was;
    }
    end_rows(&m);
    free(sorted);
    (void)state;
}

static int write_and_read(const void *ctx, struct slu_err *err)
{
    const struct looking *l = ctx;
    int rc = write_rows(l->m, 0, 64 << 10, err);

    return rc ? rc : read_rows(l->m, 64 << 10, 2, 0, l->sorted, err);
}

static void test_failing(void **state)
{
    struct grouped m;

    make_rows(&m, 1, 5000, true);
    struct row *sorted = sorted_rows(&m, false);
    each_call_fails(write_and_read, &(struct looking){&m, sorted}, 10, false);
    end_rows(&m);
    free(sorted);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groupering),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_failing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
