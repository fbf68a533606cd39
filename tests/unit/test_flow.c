/* test_flow.c - flows as data: each flow of the programs is consistent, inconsistent
 * flows are refused, and the printed stages are those that sluice-batch reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/dedup/exact/exact_flow.h"
#include "lib/dedup/near/near_private.h"
#include "lib/dedup/substring/substring_flow.h"
#include "lib/flow/flow_private.h"
#include "lib/pack/pack_flow.h"
#include "lib/shuffle/shuffle_flow.h"

/* ---- whether it fits together ---- */

static int wrong(const struct slu_flow_spec *spec, const char *name, const char *what,
                 struct slu_err *err)
{
    return slu_fail(err, SLU_E_USAGE, "flow %s: %s: %s", spec->name, name, what);
}

static unsigned writers(const struct slu_flow_spec *spec, unsigned table)
{
    unsigned n = 0;

    for (unsigned i = 0; i < spec->n_stage; i++)
        for (unsigned k = 0; k < spec->stage[i].n_out; k++)
            n += spec->stage[i].out[k] == table;
    return n;
}

/* Whether a job has one cell of its own in a table that is divided like this. */
static bool has_own(const struct slu_stage *s, enum slu_table_cut cut)
{
    return s->flags & SLU_STAGE_RANGES ? cut == SLU_CUT_RANGES || cut == SLU_CUT_BUCKETS
                                       : cut == SLU_CUT_PARTS || cut == SLU_CUT_HERE;
}

static int check_input(const struct slu_flow_spec *spec, const struct slu_stage *s,
                       const struct slu_stage_input *in, struct slu_err *err)
{
    const struct slu_stage *of = slu_stage_of(spec, in->table);
    const unsigned many = SLU_STAGE_ONE | SLU_STAGE_RANGES;

    if (!of || of >= s)
        return wrong(spec, s->name, "reads what no stage before it writes", err);
    if (in->reach == SLU_READ_RANGE &&
        (s->flags & SLU_STAGE_ONE || !has_own(s, spec->table[in->table].cut)))
        return wrong(spec, s->name, "reads its cell of a table that is cut otherwise",
                     err);
    if (in->reach == SLU_READ_PART && (s->flags & many || of->flags & many))
        return wrong(spec, s->name, "reads the file of its part, of no stage of parts",
                     err);
    return SLU_OK;
}

/* Shares of the budget in use at once: the stage's own, and those of the tables that it
 * and earlier stages have written and that this or a later stage reads. */
static unsigned share_at(const struct slu_flow_spec *spec, const struct slu_stage *s)
{
    unsigned all = s->share;

    for (unsigned t = 0; t < spec->n_table; t++) {
        const struct slu_stage *of = slu_stage_of(spec, t);
        bool lives = of == s;
        for (const struct slu_stage *r = s; r < spec->stage + spec->n_stage; r++)
            for (unsigned k = 0; k < r->n_in; k++)
                lives |= r->in[k].table == t && of && of < s;
        all += lives ? spec->table[t].share : 0;
    }
    return all;
}

/* SLU_E_USAGE unless each table is written once, before it is read, and is divided as its
 * readers expect, and unless all shares that are used at once fit the budget. */
static int check(const struct slu_flow_spec *spec, struct slu_err *err)
{
    int rc = SLU_OK;

    for (unsigned t = 0; t < spec->n_table; t++)
        if (spec->table[t].name && writers(spec, t) > 1)
            return wrong(spec, spec->table[t].name, "more than one stage writes it",
                         err);
    for (const struct slu_stage *s = spec->stage; s < spec->stage + spec->n_stage;
         s++) {
        for (unsigned k = 0; k < s->n_in && !rc; k++)
            rc = check_input(spec, s, &s->in[k], err);
        for (unsigned k = 0; k < s->n_out && !rc; k++)
            if (spec->table[s->out[k]].cut == SLU_CUT_PARTS && s == spec->stage)
                rc = wrong(spec, s->name, "does not know the parts yet", err);
        if (!rc && slu_stage_named(spec, s->name) != s)
            rc = wrong(spec, s->name, "is there twice", err);
        if (!rc && share_at(spec, s) > 64)
            rc = wrong(spec, s->name, "shares of more than all memory", err);
    }
    return rc;
}

static void test_fits(void **state)
{
    const struct slu_flow_spec *const all[] = {
        &slu_pack_flow_spec,
        slu_exact_spec(false, false),
        slu_exact_spec(false, true),
        slu_exact_spec(true, false),
        slu_near_spec(false, false),
        slu_near_spec(false, true),
        slu_near_spec(true, false),
        slu_near_spec(true, true),
        &slu_substring_flow_spec,
        slu_shuffle_flow_spec(SLU_SHUFFLE_PLAIN, false),
        slu_shuffle_flow_spec(SLU_SHUFFLE_PLAIN, true),
        slu_shuffle_flow_spec(SLU_SHUFFLE_MIX, false),
        slu_shuffle_flow_spec(SLU_SHUFFLE_MIX, true),
        slu_shuffle_flow_spec(SLU_SHUFFLE_CUT, false),
        slu_shuffle_flow_spec(SLU_SHUFFLE_CUT, true),
    };
    struct slu_err err = SLU_ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (check(all[i], &err))
            fail_msg("%s", err.msg);
    }
}

enum { A, B, TABLES };

static void refused(const struct slu_table_spec *table, const struct slu_stage *stage,
                    unsigned n_stage, const char *why)
{
    const struct slu_flow_spec spec = {"x", table, stage, TABLES, n_stage, NULL};
    struct slu_err err = SLU_ERR_INIT;

    assert_int_equal(check(&spec, &err), SLU_E_USAGE);
    if (!strstr(err.msg, why))
        fail_msg("%s", err.msg);
}

static void test_does_not_fit(void **state)
{
    const struct slu_table_spec table[TABLES] = {
        [A] = {"a", SLU_ROWS, SLU_CUT_RANGES, 1, 40},
        [B] = {"b", SLU_ROWS, SLU_CUT_PARTS, 1, 20},
    };
    const struct slu_stage
        first = {"first", SLU_STAGE_READS, NULL, 0, SLU_STAGE_OUT(A), 1, 4, NULL, NULL},
        range = {"range",
                 SLU_STAGE_RANGES,
                 SLU_STAGE_IN({A, SLU_READ_RANGE}),
                 1,
                 SLU_STAGE_OUT(B),
                 1,
                 4,
                 NULL,
                 NULL};
    struct slu_stage s[3] = {first, range};

    (void)state;
    const struct slu_flow_spec good = {"x", table, s, TABLES, 2, NULL};
    assert_int_equal(check(&good, NULL), SLU_OK);
    s[1].share = 5;
    refused(table, s, 2, "more than all memory");
    s[1] = range;
    s[1].flags = 0;
    refused(table, s, 2, "cut otherwise");
    s[1].in = SLU_STAGE_IN({A, SLU_READ_PART});
    s[1].flags = SLU_STAGE_RANGES;
    refused(table, s, 2, "of no stage of parts");
    s[1] = first;
    refused(table, s, 2, "more than one");
    s[0] = range;
    refused(table, s, 2, "no stage before it");
    s[0] = first;
    s[1] = range;
    s[1].name = "first";
    refused(table, s, 2, "there twice");
    s[0].out = SLU_STAGE_OUT(B);
    refused(table, s, 1, "does not know the parts");
}

static void test_words(void **state)
{
    struct slu_buf t = SLU_BUF_INIT;

    (void)state;
    assert_int_equal(
        slu_flow_print(slu_shuffle_flow_spec(SLU_SHUFFLE_MIX, true), &t, NULL), SLU_OK);
    assert_string_equal((const char *)t.data, "count parts reads - -\n"
                                              "mix one - - count\n"
                                              "scatter parts reads - mix\n"
                                              "gather ranges - set scatter\n"
                                              "finish one - set mix,scatter\n");
    slu_buf_clear(&t);
    assert_int_equal(slu_flow_print(&slu_pack_flow_spec, &t, NULL), SLU_OK);
    assert_string_equal((const char *)t.data, "count parts reads - -\n"
                                              "plan one - - count\n"
                                              "scatter parts reads writes count,plan\n"
                                              "gather ranges - writes plan,scatter\n");
    slu_buf_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fits),
                                       cmocka_unit_test(test_does_not_fit),
                                       cmocka_unit_test(test_words)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
