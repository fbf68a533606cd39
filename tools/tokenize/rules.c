/* rules.c - `tokenize --rules` and `--c4-lines`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tokenize/tokenize.h"

bool tokenize_lists_rules(const struct tokenize_opts *o)
{
    return o->n_rules == 1 && !strcmp(o->rules[0], "help");
}

/* Reads the files at once: a part's manifest has the thresholds. */
int tokenize_parse_rules(void *opts, const char *value, struct slu_err *err)
{
    struct tokenize_opts *o = opts;
    int rc = o->rule_set ? SLU_OK : slu_rules_new(&o->rule_set, err);
    if (o->n_rules == TOKENIZE_RULES)
        return slu_fail(err, SLU_E_USAGE,
                        "--rules comes more than %d times; separate with commas",
                        TOKENIZE_RULES);
    if (tokenize_lists_rules(o)) /* no other value may follow */
        value = o->rules[0];
    o->rules[o->n_rules++] = value;
    if (!rc && !tokenize_lists_rules(o))
        rc = slu_rules_add(o->rule_set, value, err);
    o->rules_text = rc ? "" : slu_rules_text(o->rule_set);
    return rc ? slu_err_at(err, "--rules") : SLU_OK;
}

int tokenize_list_rules(struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_rules_defaults(&b, err);
    if (!rc && (fwrite(b.data, 1, b.len, stdout) != b.len || fflush(stdout)))
        rc = slu_fail_errno(err, "standard output");
    slu_buf_release(&b);
    return rc;
}

int tokenize_rule_inputs(struct tokenize_opts *o, struct cli_inputs *in,
                         struct slu_err *err)
{
    int rc = SLU_OK;
    for (unsigned i = 0; i < o->n_rules && !tokenize_lists_rules(o) && !rc; i++)
        for (const char *p = o->rules[i], *end; !rc; p = end + 1) {
            end = strchrnul(p, ',');
            char *path = strndup(p, (size_t)(end - p));
            if (!path)
                return slu_fail_nomem(err, (size_t)(end - p));
            if (!slu_rules_is_family(path))
                rc = cli_inputs_add_known(in, path, err);
            free(path);
            if (!*end)
                break;
        }
    return rc;
}

int tokenize_make_rules(struct tokenize_opts *o, uint64_t *memory_byte,
                        struct slu_err *err)
{
    if (o->c4_lines && o->field[SLU_FIELD_SPANS])
        return slu_fail(
            err, SLU_E_USAGE,
            "--c4-lines changes texts, so the ranges of --spans-field would "
            "not be theirs; leave one of them out");
    int rc = o->c4_lines && !o->rule_set ? slu_rules_new(&o->rule_set, err) : SLU_OK;
    /* The rest works with little less than the least -M. */
    o->rules_byte = *memory_byte / (*memory_byte < UINT64_C(60) << 20 ? 16 : 4);
    if (!rc && o->n_rules && slu_rules_grow(o->rule_set))
        *memory_byte -= o->rules_byte;
    return rc;
}

void tokenize_report_edits(struct cli_ctx *ctx, const struct slu_ingest_stat *s)
{
    const struct tokenize_opts *o = ctx->opts;
    struct slu_buf b = SLU_BUF_INIT;
    if (o->c4_lines &&
        !slu_buf_printf(&b, NULL,
                        "{\"documents\": %llu, \"lines\": %llu, \"bytes\": %llu}",
                        (unsigned long long)s->edited, (unsigned long long)s->cut_line,
                        (unsigned long long)s->cut_byte))
        cli_stat_json(ctx, "edited", (const char *)b.data);
    slu_buf_release(&b);
}
