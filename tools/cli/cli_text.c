/* cli_text.c - the option table as --help, as the record, and as the text of the
 * provenance chain. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/cli_flow.h"
#include "tools/cli/cli_inputs.h"
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

/* ---- the record ---- */

static const struct cli_files *files_of(const struct cli_opt *o, const void *opts)
{
    return (const void *)((const char *)opts + o->offset);
}

const char *cli_file_of(const struct cli_opt *o, const void *opts, size_t i)
{
    if (o->kind == CLI_FILES)
        return i < files_of(o, opts)->n ? files_of(o, opts)->item[i].path : NULL;
    return i                     ? NULL
           : o->kind == CLI_FILE ? cli_path(o, opts)
           : o->file             ? o->file(opts)
                                 : NULL;
}

/* Writes the value of option o to text, unless it equals `was`; *value NULL: it has
 * none. False: it is the default. */
static bool value_of(const struct cli_opt *o, const char *now, const char *was,
                     const char **value, char text[64])
{
    const char *d;
    *value = text;
    switch (o->kind) {
    case CLI_FLAG:
    case CLI_UNFLAG:
        *value = NULL;
        return *(const bool *)now != *(const bool *)was;
    case CLI_STRING:
    case CLI_INPUT:
        *value = *(const char *const *)(const void *)now;
        d = *(const char *const *)(const void *)was;
        return *value && (!d || strcmp(*value, d));
    case CLI_OUTPUT: /* where to is not recorded */
        d = *(const char *const *)(const void *)now;
        *value = NULL;
        return d;
    case CLI_FILE:
    case CLI_FILES:
        *value = ((const struct cli_file *)(const void *)now)->id;
        return ((const struct cli_file *)(const void *)now)->path;
    case CLI_MAYBE_COUNT:
        if (*(const uint64_t *)(const void *)now == UINT64_MAX) { /* without a value */
            *value = NULL;
            return memcmp(now, was, 8);
        }
        /* fall through */
    case CLI_COUNT:
    case CLI_LENGTH:
    case CLI_SIZE:
        snprintf(text, 64, "%llu", *(const unsigned long long *)(const void *)now);
        return memcmp(now, was, 8);
    case CLI_FRACTION:
        snprintf(text, 64, "%.17g", *(const double *)(const void *)now);
        return memcmp(now, was, sizeof(double));
    case CLI_LEVEL:
        snprintf(text, 64, "%d", *(const int *)(const void *)now);
        return memcmp(now, was, sizeof(int));
    case CLI_CHOICE:
    case CLI_MAYBE_CHOICE:
        if (!memcmp(now, was, sizeof(int)))
            return false;
        *value = o->choice[*(const int *)(const void *)now];
        return true;
    case CLI_CUSTOM: /* the program keeps its canonical text at offset */
        *value = *(const char *const *)(const void *)now;
        return *value;
    }
    return false;
}

/* Adds "--name=value". */
static int add_word(struct slu_made *m, int kind, unsigned from, const char *name,
                    const char *value, struct slu_err *err)
{
    char *word;
    if (asprintf(&word, "--%s%s%s", name, value ? "=" : "", value ? value : "") < 0)
        return slu_fail_nomem(err, 1);
    int rc = slu_made_add(m, (enum slu_made_kind)kind, from, word, err);
    free(word);
    return rc;
}

/* The contents of a file of option o; of a pipe, what was read of it. */
static int add_contents(struct slu_made *m, const struct cli_opt *o, unsigned from,
                        const char *path, const char *id, struct slu_err *err)
{
    struct cli_inputs in = {0};
    char hex[33];
    int rc = cli_inputs_add(&in, path, 0, UINT64_MAX, err);
    if (!rc)
        rc = cli_input_sign(in.item, err);
    if (!rc && in.item[0].regular)
        slu_u128_hex(in.item[0].sum, hex);
    if (!rc)
        rc = add_word(m, SLU_MADE_CONTENTS, from, o->name,
                      in.item[0].regular ? hex : id, err);
    cli_inputs_release(&in);
    return rc;
}

/* Adds "set N=HASH" for each input that is a set, whose report.json says what is in it. */
static int add_sets(const struct cli_ctx *ctx, struct slu_made *m, struct slu_err *err)
{
    int rc = SLU_OK;
    for (size_t i = 0; i < ctx->n_input && !rc; i++) {
        char *path = NULL, *word = NULL, hex[33];
        struct slu_u128 sum;
        struct stat st;
        if (asprintf(&path, "%s/report.json", ctx->input[i]) < 0)
            return slu_fail_nomem(err, strlen(ctx->input[i]));
        int fd = ctx->tool->reads_stream ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
            rc = slu_hash_file(&sum, fd, 0, (uint64_t)st.st_size, err);
            slu_u128_hex(sum, hex);
            if (!rc && asprintf(&word, "set %zu=%s", i + 1, hex) < 0)
                rc = slu_fail_nomem(err, 1);
            if (!rc)
                rc = slu_made_add(m, SLU_MADE_CONTENTS, 0, word, err);
        }
        if (fd >= 0)
            close(fd);
        free(word);
        free(path);
    }
    return rc;
}

/* The number of the stage that the option decides first; more than all: none of them. */
static unsigned from_of(const struct slu_flow_spec *spec, const struct cli_opt *o)
{
    unsigned i = 0;
    while (spec && o->from && i < spec->n_stage && strcmp(spec->stage[i].name, o->from))
        i++;
    return i;
}

/* path: the file whose contents the record has; NULL: none. */
static int add_value(struct slu_made *m, const struct cli_opt *o, unsigned from,
                     const void *now, const void *was, const char *path,
                     enum cli_scope scope, struct slu_err *err)
{
    const char *value;
    char text[64];
    const bool given = value_of(o, now, was, &value, text);
    if (!given && !path)
        return SLU_OK;
    const bool lenient =
        o->lenient && (!*o->lenient || (value && !strcmp(value, o->lenient)));
    if (lenient && scope != CLI_OF_OUTPUT)
        return SLU_OK;
    int rc = !given || ((o->kind == CLI_FILE || o->kind == CLI_FILES) && path)
                 ? SLU_OK
                 : add_word(m, lenient ? SLU_MADE_LENIENT : SLU_MADE_OPTION, from,
                            o->name, value, err);
    return rc || !path ? rc : add_contents(m, o, from, path, value, err);
}

static int add_option(struct slu_made *m, const struct cli_opt *o, unsigned from,
                      const void *base, const void *plain, enum cli_scope scope,
                      struct slu_err *err)
{
    const size_t n = o->kind == CLI_FILES ? files_of(o, base)->n : 1;
    int rc = SLU_OK;
    if (o->effect == CLI_NOTHING || (o->effect == CLI_BYTES && scope == CLI_OF_STREAM))
        return SLU_OK;
    for (size_t i = 0; i < n && !rc; i++)
        rc = add_value(m, o, from,
                       o->kind == CLI_FILES ? (const void *)&files_of(o, base)->item[i]
                                            : (const char *)base + o->offset,
                       (const char *)plain + o->offset,
                       scope == CLI_OF_STREAM ? NULL : cli_file_of(o, base, i), scope,
                       err);
    return rc;
}

int cli_made(const struct cli_ctx *ctx, struct slu_made *m, enum cli_scope scope,
             struct slu_err *err)
{
    const struct slu_tool *t = ctx->tool;
    const struct cli_common common = {.eos_id = SLU_NO_TOKEN};
    const struct slu_flow_spec *spec = t->flow ? t->flow(ctx) : NULL;
    void *plain = calloc(1, t->opts_size ? t->opts_size : 1);
    int rc = plain ? SLU_OK : slu_fail_nomem(err, t->opts_size);
    *m = (struct slu_made){.program = t->name, .seed = ctx->common.seed};
    if (scope == CLI_OF_OUTPUT) {
        m->stage = cli_stage_of(ctx);
        m->part = ctx->common.part.i;
        m->of = ctx->common.part.n;
    }
    if (!rc && t->defaults)
        t->defaults(plain);
    for (const struct cli_opt *o = t->opt; !rc && o && o->name; o++)
        rc = add_option(m, o, from_of(spec, o), ctx->opts, plain, scope, err);
    for (const struct cli_opt *o = cli_common_opt; !rc && o->name; o++)
        if (scope != CLI_OF_STAGES && !cli_hidden(t, o))
            rc = add_option(m, o, 0, &ctx->common, &common, scope, err);
    free(plain);
    if (!rc && scope != CLI_OF_STREAM && t->facts && cli_stage_of(ctx))
        rc = t->facts(ctx, m, err);
    return rc || scope != CLI_OF_OUTPUT ? rc : add_sets(ctx, m, err);
}

/* The last stage that writes a stream or a set: the options of later ones do not decide
 * either. */
static unsigned writing(const struct slu_flow_spec *spec)
{
    unsigned n = spec ? spec->n_stage : 0;
    while (n && !(spec->stage[n - 1].flags & (SLU_STAGE_WRITES | SLU_STAGE_SET)))
        n--;
    return n ? n - 1 : 0;
}

int cli_provenance(const struct cli_ctx *ctx, char **text, struct slu_err *err)
{
    const unsigned upto = writing(ctx->tool->flow ? ctx->tool->flow(ctx) : NULL);
    struct slu_buf b = SLU_BUF_INIT;
    struct slu_made m;
    int rc = cli_made(ctx, &m, CLI_OF_STREAM, err);
    for (size_t i = 0; i < m.n && !rc; i++)
        if (m.word[i].from <= upto)
            rc = slu_buf_printf(&b, err, "%s%s", b.len ? " " : "",
                                (const char *)m.text.data + m.word[i].at);
    if (!rc)
        rc = slu_buf_append(&b, "", 1, err);
    *text = rc ? NULL : strdup((char *)b.data);
    slu_buf_release(&b);
    slu_made_release(&m);
    return rc || *text ? rc : slu_fail_nomem(err, 1);
}
