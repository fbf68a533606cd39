/* Fuzzes expressions over fields (lib/filter/expr.h): any text is refused in one line
 * that has a column of the text, or is evaluated, twice with one result, for records
 * whose fields have values of all types.
 *
 * Input: the text; its first byte also chooses the record. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/filter/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool good)
{
    if (!good)
        abort();
}

/* One line, which begins with a column of the text or that after it. */
static void faulty(const struct slu_err *err, size_t n)
{
    unsigned long column = 0;
    must(!strncmp(err->msg, "column ", 7) && !strchr(err->msg, '\n'));
    column = strtoul(err->msg + 7, NULL, 10);
    must(column >= 1 && column <= n + 1);
}

struct chosen {
    const struct slu_expr *e;
    unsigned record;
};

static void get(void *ctx, size_t i, struct slu_value *out)
{
    const struct chosen *c = ctx;
    must(i < slu_expr_n_field(c->e));
    const char *name = slu_expr_field(c->e, i);
    const size_t len = strlen(name);
    *out = (struct slu_value){.type = (enum slu_value_type)((c->record + len) % 5)};
    if (out->type == SLU_VALUE_STRING) {
        out->string = name;
        out->len = len;
    }
    out->boolean = c->record & 1;
    out->number = (double)(c->record % 7) - 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slu_err err = SLU_ERR_INIT;
    struct slu_expr *e;
    struct slu_expr_run *r;
    char *text = malloc(n + 1);
    must(text != NULL);
    if (n)
        memcpy(text, data, n);
    text[n] = 0;
    int rc = slu_expr_new(&e, text, &err);
    n = strlen(text);
    free(text);
    if (rc) {
        must(rc == SLU_E_USAGE && !e);
        faulty(&err, n);
        return 0;
    }
    must(slu_expr_run_new(&r, e, &err) == SLU_OK);
    for (unsigned k = 0; k < 5; k++) {
        struct chosen c = {e, data[0] + k};
        bool yes, again;
        rc = slu_expr_eval(r, get, &c, &yes, &err);
        must(rc == slu_expr_eval(r, get, &c, &again, &err) && yes == again);
        must(!rc || (rc == SLU_E_FORMAT && !yes));
        if (rc)
            faulty(&err, n);
    }
    slu_expr_run_free(r);
    slu_expr_free(e);
    return 0;
}
