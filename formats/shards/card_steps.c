/* card_steps.c - the card's section of what was read at first, and what each step added
 * and left out, up to the set; and the table of the sources. */
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

static int put_steps(const struct slu_step_list *s, const struct slu_sum *sum,
                     struct slu_buf *out, struct slu_err *err)
{
    struct slu_count read;
    uint64_t added = 0, left = 0;
    int rc = slu_buf_printf(
        out, err,
        "| step | documents read | written | tokens read | added | left out | written "
        "| sequences written |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");

    for (size_t i = 0; i < s->n && !rc; i++) {
        const struct slu_step_row *row = &s->row[i];
        const struct slu_account *l = &row->account;
        added += added_tok(l);
        left += left_out(l).tokens;
        if (row->counted && i < ROWS)
            rc = put_row(out, i + 1, row->step.program, l->in, added_tok(l),
                         left_out(l).tokens, l->out, err);
    }
    if (!rc && slu_steps_read(s, &sum->n, &read))
        rc = put_row(out, 0, "all", read, added, left, sum->n, err);
    if (!rc && s->n > ROWS)
        rc = slu_buf_printf(out, err, "\nThe first %d of %zu; `report.json` has all.\n",
                            ROWS, s->n);
    return rc ? rc
              : slu_buf_printf(out, err,
                               "\nAdded are tokens of EOS and BOS, padding, and "
                               "repeats of a mix.\n");
}

static int put_reasons(const struct slu_step_list *s, struct slu_buf *out,
                       struct slu_err *err)
{
    char a[32], b[32], d[32];
    unsigned n = 0;
    int rc = SLU_OK;

    for (size_t i = 0; i < s->n && i < ROWS && !rc; i++)
        for (unsigned k = 0; k < s->row[i].account.n_dropped && !rc; k++) {
            const struct slu_count c = s->row[i].account.dropped[k].n;
            if (n++ == 0)
                rc = slu_buf_printf(out, err,
                                    "\n| step | left out because | documents | "
                                    "sequences | tokens |\n|---|---|---:|---:|---:|\n");
            if (!rc)
                rc = slu_buf_printf(out, err, "| %zu. ", i + 1);
            if (!rc)
                rc = slu_card_text(out, s->row[i].step.program, err);
            if (!rc)
                rc = slu_buf_printf(out, err, " | ");
            if (!rc)
                rc = slu_card_text(out, s->row[i].account.dropped[k].reason, err);
            if (!rc)
                rc = slu_buf_printf(
                    out, err, " | %s | %s | %s |\n", slu_card_grouped(c.documents, a),
                    slu_card_grouped(c.sequences, b), slu_card_grouped(c.tokens, d));
        }
    return rc || n ? rc : slu_buf_printf(out, err, "\nNothing was left out.\n");
}

/* Names the steps whose counts are not known. */
static int put_unknown(const struct slu_step_list *s, struct slu_buf *out,
                       struct slu_err *err)
{
    const char *before = "\nNo counts are recorded of: ";
    int rc = SLU_OK;

    for (size_t i = 0; i < s->n && i < ROWS && !rc; i++) {
        if (s->row[i].counted)
            continue;
        rc = slu_buf_printf(out, err, "%s%zu. ", before, i + 1);
        if (!rc)
            rc = slu_card_text(out, s->row[i].step.program, err);
        if (!rc)
            rc = slu_buf_printf(out, err, " ");
        if (!rc)
            rc = slu_card_text(out, s->row[i].step.version, err);
        before = ", ";
    }
    return rc || *before == ',' ? (rc ? rc : slu_buf_printf(out, err, ".\n")) : SLU_OK;
}

int slu_card_steps(const struct slu_card *c, struct slu_buf *out, struct slu_err *err)
{
    static const struct slu_step last = {(char *)"the last step", (char *)"",
                                         (char *)"", 0};
    struct slu_step_list alone = SLU_STEPS_INIT;
    const struct slu_step_list *s = c->steps;
    struct slu_count read;
    int rc = slu_buf_printf(out, err, "## From the text to this set\n\n");

    if (!rc && !slu_steps_read(s, &c->sum->n, &read)) { /* with --no-provenance */
        rc = slu_steps_add(&alone, &last, c->account, err);
        s = &alone;
    }
    if (!rc)
        rc = put_steps(s, c->sum, out, err);
    if (!rc)
        rc = put_reasons(s, out, err);
    if (!rc)
        rc = put_unknown(s, out, err);
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
