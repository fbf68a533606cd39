/* cli_text.c - prints the option table as --help and as the text of the provenance
 * chain. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli_flow.h"
#include "tools/cli/cli_private.h"

const char *cli_stage_of(const struct cli_ctx *ctx)
{
    return ctx->tool->flow ? cli_flow_opts_of(ctx)->stage : NULL;
}

/* ---- help ---- */

const char *cli_choices(const struct cli_opt *o, char text[CLI_CHOICES])
{
    size_t n = 0;
    for (const char *const *c = o->choice; *c && n < CLI_CHOICES; c++)
        n += (size_t)snprintf(text + n, CLI_CHOICES - n, "%s%s", n ? "|" : "", *c);
    return text;
}

static void print_opt(const struct cli_opt *o, FILE *f)
{
    char left[128], names[CLI_CHOICES], letter[8] = "    ";
    const char *arg = o->choice && !o->arg ? cli_choices(o, names) : o->arg;
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    bool maybe = cli_is_maybe(o);
    if (!o->help)
        return;
    snprintf(left, sizeof left, "%s--%s%s%s%s%s", letter, o->name,
             arg && maybe ? "[" : "", arg ? "=" : "", arg ? arg : "",
             arg && maybe ? "]" : "");
    fprintf(f, "  %-30s", left);
    if (strlen(left) > 29)
        fprintf(f, "\n  %-30s", "");
    for (const char *s = o->help; *s; s++) {
        fputc(*s, f);
        if (*s == '\n')
            fprintf(f, "  %-30s", "");
    }
    fputc('\n', f);
}

void cli_print_help(const struct slu_tool *t, FILE *f)
{
    fprintf(f, "usage: %s ", t->name);
    for (const char *s = t->synopsis; *s; s++) {
        fputc(*s, f);
        if (*s == '\n')
            fprintf(f, "       %*s ", (int)strlen(t->name), "");
    }
    fprintf(f, "\n\n%s\n\n", t->summary);
    for (const struct cli_opt *o = t->opt; o && o->name; o++)
        print_opt(o, f);
    fputc('\n', f);
    for (const struct cli_opt *o = cli_common_opt; o->name; o++)
        if (!cli_hidden(t, o))
            print_opt(o, f);
    if (t->examples)
        fprintf(f, "\nExamples:\n%s\n", t->examples);
    fprintf(f,
            "\nExit status: 0 fine, 1 bad data or a failure, 2 usage, 75 stopped by a "
            "signal.\nSee %s(1), sluice(7).\n",
            t->name);
}

/* ---- provenance ---- */

static int add_text(struct slu_buf *b, const struct cli_opt *o, const char *value,
                    struct slu_err *err)
{
    int rc = slu_buf_printf(b, err, "--%s%s%s", o->name, value ? "=" : "",
                            value ? value : "");
    return rc ? rc : slu_buf_append(b, "", 1, err);
}

/* Appends option o with its value, unless the value equals `was`. */
static int add_option(struct slu_buf *b, const struct cli_opt *o, const char *now,
                      const char *was, struct slu_err *err)
{
    char number[64];
    const char *s, *d;
    switch (o->kind) {
    case CLI_FLAG:
    case CLI_UNFLAG:
        if (*(const bool *)now != *(const bool *)was)
            return add_text(b, o, NULL, err);
        break;
    case CLI_STRING:
    case CLI_INPUT:
        s = *(const char *const *)(const void *)now;
        d = *(const char *const *)(const void *)was;
        if (s && (!d || strcmp(s, d)))
            return add_text(b, o, s, err);
        break;
    case CLI_MAYBE_COUNT:
        if (*(const uint64_t *)(const void *)now == UINT64_MAX) /* without a value */
            return memcmp(now, was, 8) ? add_text(b, o, NULL, err) : SLU_OK;
        /* fall through */
    case CLI_COUNT:
    case CLI_LENGTH:
    case CLI_SIZE:
        snprintf(number, sizeof number, "%llu",
                 *(const unsigned long long *)(const void *)now);
        if (memcmp(now, was, 8))
            return add_text(b, o, number, err);
        break;
    case CLI_FRACTION:
        snprintf(number, sizeof number, "%.17g", *(const double *)(const void *)now);
        if (memcmp(now, was, sizeof(double)))
            return add_text(b, o, number, err);
        break;
    case CLI_LEVEL:
        snprintf(number, sizeof number, "%d", *(const int *)(const void *)now);
        if (memcmp(now, was, sizeof(int)))
            return add_text(b, o, number, err);
        break;
    case CLI_OUTPUT:
        break;
    case CLI_CHOICE:
    case CLI_MAYBE_CHOICE:
        if (memcmp(now, was, sizeof(int)))
            return add_text(b, o, o->choice[*(const int *)(const void *)now], err);
        break;
    case CLI_CUSTOM: /* the program keeps its canonical text at offset */
        s = *(const char *const *)(const void *)now;
        if (s)
            return add_text(b, o, s, err);
        break;
    }
    return SLU_OK;
}

int cli_arguments(const struct cli_ctx *ctx, struct slu_buf *out, bool bytes,
                  struct slu_err *err)
{
    const struct slu_tool *t = ctx->tool;
    const struct cli_common common = {.eos_id = SLU_NO_TOKEN};
    const char *now = ctx->opts, *now_common = (const char *)&ctx->common;
    char *plain = calloc(1, t->opts_size ? t->opts_size : 1);
    int rc = plain ? SLU_OK : slu_fail_nomem(err, t->opts_size);
    if (!rc && t->defaults)
        t->defaults(plain);
    for (const struct cli_opt *o = t->opt; !rc && o && o->name; o++)
        if (o->result == CLI_RESULT || (bytes && o->result == CLI_BYTES))
            rc = add_option(out, o, now + o->offset, plain + o->offset, err);
    for (const struct cli_opt *o = cli_common_opt; !rc && o->name; o++)
        if ((o->result == CLI_RESULT || (bytes && o->result == CLI_BYTES)) &&
            !cli_hidden(t, o))
            rc = add_option(out, o, now_common + o->offset,
                            (const char *)&common + o->offset, err);
    free(plain);
    return rc;
}

int cli_provenance(const struct cli_ctx *ctx, char **text, struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    int rc = cli_arguments(ctx, &b, false, err);
    for (size_t i = 0; i + 1 < b.len && !rc; i++)
        if (!b.data[i])
            b.data[i] = ' ';
    if (!rc)
        rc = slu_buf_append(&b, "", 1, err);
    *text = rc ? NULL : strdup((char *)b.data);
    slu_buf_release(&b);
    return rc || *text ? rc : slu_fail_nomem(err, 1);
}
