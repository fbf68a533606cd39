/* card_steps.c - the card's section of what was read at first, and what each step added
 * and left out, up to the set; and the table of the sources. */
#include <string.h>

#include "formats/shards/card.h"

enum { ROWS = 50 }; /* of a table for people */

static struct slu_count left_out(const struct slu_account *l)
{
    struct slu_count n = {0};

    for (unsigned i = 0; i < l->n_dropped; i++)
        slu_count_add(&n, l->dropped[i].n);
    return n;
}

static uint64_t added_tok(const struct slu_account *l)
{
    return l->created.tokens + l->repeated.tokens + l->padding;
}

/* One row: the step's number, 0 for all of them, and its name. */
static int put_row(struct slu_buf *out, size_t number, const char *name,
                   struct slu_count in, uint64_t added, uint64_t left,
                   struct slu_count wrote, struct slu_err *err)
{
    const uint64_t v[] = {in.documents, wrote.documents, in.tokens,      added,
                          left,         wrote.tokens,    wrote.sequences};
    char n[32];
    int rc = number ? slu_buf_printf(out, err, "| %zu. ", number)
                    : slu_buf_printf(out, err, "| ");

    if (!rc)
        rc = slu_card_text(out, name, err);
    for (size_t i = 0; i < sizeof v / sizeof *v && !rc; i++)
        rc = slu_buf_printf(out, err, " | %s", slu_card_grouped(v[i], n));
    return rc ? rc : slu_buf_printf(out, err, " |\n");
}

static int put_steps(const struct slu_step_list *s, const struct slu_account *total,
                     struct slu_buf *out, struct slu_err *err)
{
    int rc = slu_buf_printf(
        out, err,
        "| step | documents read | written | tokens read | added | left out | written "
        "| sequences written |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");

    for (size_t i = 0; i < s->n && !rc; i++) {
        const struct slu_step_row *row = &s->row[i];
        const struct slu_account *l = &row->account;
        if (row->counted && i < ROWS)
            rc = put_row(out, i + 1, row->step.program, l->in, added_tok(l),
                         left_out(l).tokens, l->out, err);
    }
    if (!rc)
        rc = put_row(out, 0, "all", total->in, added_tok(total), left_out(total).tokens,
                     total->out, err);
    if (!rc && s->n > ROWS)
        rc = slu_buf_printf(out, err, "\nThe first %d of %zu; `report.json` has all.\n",
                            ROWS, s->n);
    if (!rc)
        rc = slu_buf_printf(out, err,
                            "\nAdded are tokens of EOS and BOS, padding, and "
                            "repeats of a mix.\n");
    const struct slu_replaced *r = &total->replaced;
    char n[3][32];
    return rc || !r->records
               ? rc
               : slu_buf_printf(out, err,
                                "\nIn %s of the texts read U+FFFD stands for what is "
                                "no text: invalid UTF-8 %s times, lone surrogates %s "
                                "times.\n",
                                slu_card_grouped(r->records, n[0]),
                                slu_card_grouped(r->utf8, n[1]),
                                slu_card_grouped(r->surrogates, n[2]));
}

/* The rows of what one step left out, or all of them, whose number is 0. */
static int put_left(struct slu_buf *out, size_t number, const char *name,
                    const struct slu_account *l, struct slu_err *err)
{
    char a[32], b[32], d[32];
    int rc = SLU_OK;

    for (unsigned k = 0; k < l->n_dropped && !rc; k++) {
        const struct slu_count c = l->dropped[k].n;
        rc = number ? slu_buf_printf(out, err, "| %zu. ", number)
                    : slu_buf_printf(out, err, "| ");
        if (!rc)
            rc = slu_card_text(out, name, err);
        if (!rc)
            rc = slu_buf_printf(out, err, " | ");
        if (!rc)
            rc = slu_card_text(out, l->dropped[k].reason, err);
        if (!rc)
            rc = slu_buf_printf(
                out, err, " | %s | %s | %s |\n", slu_card_grouped(c.documents, a),
                slu_card_grouped(c.sequences, b), slu_card_grouped(c.tokens, d));
    }
    return rc;
}

static int put_reasons(const struct slu_step_list *s, const struct slu_account *total,
                       struct slu_buf *out, struct slu_err *err)
{
    unsigned n = 0;
    int rc = SLU_OK;

    if (!total->n_dropped)
        return slu_steps_complete(s)
                   ? slu_buf_printf(out, err, "\nNothing was left out.\n")
                   : SLU_OK;
    rc = slu_buf_printf(out, err,
                        "\n| step | left out because | documents | sequences | tokens "
                        "|\n|---|---|---:|---:|---:|\n");
    for (size_t i = 0; i < s->n && !rc; i++) {
        n += s->row[i].account.n_dropped;
        if (i < ROWS)
            rc = put_left(out, i + 1, s->row[i].step.program, &s->row[i].account, err);
    }
    return rc || (s->n <= ROWS && n == total->n_dropped)
               ? rc
               : put_left(out, 0, "all", total, err);
}

/* Names the steps whose counts are not known. */
static int put_unknown(const struct slu_step_list *s, struct slu_buf *out,
                       struct slu_err *err)
{
    const char *before = "\nWhat these steps left out is not known, as no counts are "
                         "recorded of them: ";
    int rc = SLU_OK;

    if (slu_steps_complete(s))
        return SLU_OK;
    for (size_t i = 0; i < s->n && i < ROWS && !rc; i++) {
        if (slu_step_known(&s->row[i]))
            continue;
        rc = slu_buf_printf(out, err, "%s%zu. ", before, i + 1);
        if (!rc)
            rc = slu_card_text(out, s->row[i].step.program, err);
        if (!rc && *s->row[i].step.version)
            rc = slu_buf_printf(out, err, " ");
        if (!rc)
            rc = slu_card_text(out, s->row[i].step.version, err);
        if (!rc && s->row[i].counted)
            rc = slu_buf_printf(out, err, " (in some of the joined streams)");
        before = ", ";
    }
    if (!rc)
        rc = slu_buf_printf(out, err, *before == ',' ? ".\n" : "%ssteps from %d on.\n",
                            before, ROWS + 1);
    return rc;
}

/* Says that the text may be counted several times. */
static int put_twice(const struct slu_account *total, struct slu_buf *out,
                     struct slu_err *err)
{
    bool kept = false, held = false, other = false;

    for (unsigned i = 0; i < total->n_dropped; i++) {
        kept |= !strcmp(total->dropped[i].reason, "kept");
        held |= !strcmp(total->dropped[i].reason, "holdout");
        other |= !strncmp(total->dropped[i].reason, "other-", 6);
    }
    return other || (kept && held)
               ? slu_buf_printf(out, err,
                                "\nEach stream of `choose --partition`, and both a "
                                "holdout and the "
                                "rest, count the whole text\nthat they were taken "
                                "from; where such "
                                "streams were joined, it is counted several times.\n")
               : SLU_OK;
}

/* Makes a list in which only the last step has counts. */
static int last_alone(const struct slu_card *c, struct slu_step_list *s,
                      struct slu_err *err)
{
    static const struct slu_step last = {(char *)"the last step", (char *)"",
                                         (char *)"", 0};
    int rc = c->steps->n ? SLU_OK : slu_steps_add_unknown(s, err);

    for (size_t i = 0; i < c->steps->n && !rc; i++)
        rc = slu_steps_add(s, &c->steps->row[i].step, NULL, err);
    return rc ? rc : slu_steps_add(s, &last, c->account, err);
}

int slu_card_steps(const struct slu_card *c, struct slu_buf *out, struct slu_err *err)
{
    struct slu_step_list alone = SLU_STEPS_INIT;
    const struct slu_step_list *s = c->steps;
    struct slu_account total = {0};
    int rc = slu_buf_printf(out, err, "## From the text to this set\n\n");

    if (!rc && !slu_steps_total(s, &c->sum->n, &total)) { /* with --no-provenance */
        rc = last_alone(c, &alone, err);
        s = &alone;
        slu_steps_total(s, &c->sum->n, &total);
    }
    if (!rc)
        rc = put_steps(s, &total, out, err);
    if (!rc)
        rc = put_reasons(s, &total, out, err);
    if (!rc)
        rc = put_unknown(s, out, err);
    if (!rc)
        rc = put_twice(&total, out, err);
    slu_steps_release(&alone);
    return rc ? rc : slu_buf_printf(out, err, "\n");
}

int slu_card_source_rows(const struct slu_source_rows *r, size_t most,
                         struct slu_buf *out, struct slu_err *err)
{
    char n[3][32], hex[33];
    int rc = slu_buf_printf(out, err,
                            "| file | bytes | documents | tokens | checksum "
                            "|\n|---|---:|---:|---:|---|\n");
    for (size_t i = 0; i < r->n && i < most && !rc; i++) {
        const struct slu_source_row *row = &r->row[i];
        slu_u128_hex(row->checksum, hex);
        rc = slu_buf_printf(out, err, "| ");
        if (!rc)
            rc = slu_card_text(out, row->name ? row->name : "", err);
        if (!rc)
            rc = slu_buf_printf(out, err, " | %s | %s | %s | `%s` |\n",
                                row->bytes ? slu_card_grouped(row->bytes, n[0])
                                           : "not known",
                                slu_card_grouped(row->documents, n[1]),
                                slu_card_grouped(row->tokens, n[2]), hex);
    }
    return rc;
}
