/* cli_part.c - see cli_part.h. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli_private.h"

static bool number(const char *s, size_t len, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9' || *out > UINT32_MAX)
            return false;
        *out = *out * 10 + (uint64_t)(s[i] - '0');
    }
    return len > 0;
}

int cli_part_parse(struct cli_part *p, const char *value, struct slu_err *err)
{
    const char *slash = strchr(value, '/');
    size_t len = slash ? (size_t)(slash - value) : 0;

    p->is_auto = len == 4 && memcmp(value, "auto", 4) == 0;
    if (!slash || (!p->is_auto && !number(value, len, &p->i)) ||
        !number(slash + 1, strlen(slash + 1), &p->n) || p->n == 0)
        return slu_fail(err, SLU_E_USAGE,
                        "--part %s: expected I/N or auto/N, where I counts from 0",
                        value);
    return SLU_OK;
}

int cli_part_resolve(struct cli_part *p, struct slu_err *err)
{
    if (p->is_auto) {
        const char *task = getenv("SLURM_ARRAY_TASK_ID");
        uint64_t id;
        if (!task || !number(task, strlen(task), &id))
            return slu_fail(
                err, SLU_E_USAGE,
                "--part auto/N: $SLURM_ARRAY_TASK_ID is not set; give --part I/N");
        if (id < p->base)
            return slu_fail(
                err, SLU_E_USAGE,
                "--part-base %llu: this task of the array has number %llu; give the "
                "number of the array's first task",
                (unsigned long long)p->base, (unsigned long long)id);
        p->i = id - p->base;
    }
    if (p->i >= p->n)
        return slu_fail(err, SLU_E_USAGE,
                        "--part %llu/%llu does not exist; parts are counted from 0",
                        (unsigned long long)p->i, (unsigned long long)p->n);
    return SLU_OK;
}

/* ---- names ---- */

int cli_part_name(const struct cli_part *p, const char *name, uint64_t part,
                  struct slu_buf *b, struct slu_err *err)
{
    static const char *const holder[] = {"{part}", "{parts}"};
    const uint64_t value[] = {part, p->n};
    int rc = SLU_OK;
    for (const char *s = name; *s && !rc;) {
        size_t k = 0;
        while (k < 2 && strncmp(s, holder[k], strlen(holder[k])))
            k++;
        rc = k < 2 ? slu_buf_printf(b, err, "%llu", (unsigned long long)value[k])
                   : slu_buf_append(b, s, 1, err);
        s += k < 2 ? strlen(holder[k]) : 1;
    }
    return rc ? rc : slu_buf_append(b, "", 1, err);
}

/* Replaces {part} and {parts} in the name; a name without them keeps its pointer. */
static int expand(struct cli_ctx *ctx, const char **name, struct slu_err *err)
{
    struct cli_names *n = &ctx->expanded;
    struct slu_buf b = SLU_BUF_INIT;
    if (!*name || (!strstr(*name, "{part}") && !strstr(*name, "{parts}")))
        return SLU_OK;
    int rc = cli_part_name(&ctx->common.part, *name, ctx->common.part.i, &b, err);
    char **item = rc ? NULL : realloc(n->item, (n->n + 1) * sizeof *item);
    char *copy = item ? strdup((char *)b.data) : NULL;
    slu_buf_release(&b);
    if (item)
        n->item = item;
    if (!copy)
        return rc ? rc : slu_fail_nomem(err, 1);
    *name = n->item[n->n++] = copy;
    return SLU_OK;
}

static int expand_options(struct cli_ctx *ctx, const struct cli_opt *o, char *base,
                          struct slu_err *err)
{
    int rc = SLU_OK;
    for (; o && o->name && !rc; o++) {
        const struct cli_files *files = (const void *)(base + o->offset);
        for (size_t i = 0; o->kind == CLI_FILES && i < files->n && !rc; i++)
            rc = expand(ctx, &files->item[i].path, err);
        /* --compare looks at the outputs of many parts. */
        if (o->kind == CLI_INPUT || o->kind == CLI_FILE ||
            (o->kind == CLI_OUTPUT && !ctx->common.compare))
            rc = expand(ctx, (const char **)(void *)(base + o->offset), err);
    }
    return rc;
}

static int expand_inputs(struct cli_ctx *ctx, struct slu_err *err)
{
    bool stage = cli_stage_of(ctx) != NULL;
    const char **input = calloc(ctx->n_input + 1, sizeof *input);
    int rc = input ? SLU_OK : slu_fail_nomem(err, ctx->n_input);
    ctx->expanded.input = input;
    for (size_t i = 0; i < ctx->n_input && !rc; i++) {
        const char *name = ctx->input[i];
        input[i] = name;
        rc = expand(ctx, &input[i], err);
        if (!rc && input[i] == name && strcmp(name, "-") && ctx->common.part.n > 1 &&
            !stage)
            rc = slu_fail(err, SLU_E_USAGE,
                          "--part: %s would be read by every part; write {part} where "
                          "the part's number is in the name, or pipe the part in",
                          name);
    }
    if (!rc) {
        ctx->expanded.given = ctx->input;
        ctx->input = input;
    }
    return rc;
}

int cli_part_apply(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct slu_tool *t = ctx->tool;
    struct cli_part *p = &ctx->common.part;
    if (!p->n)
        return SLU_OK;
    int rc = cli_part_resolve(p, err);
    if (!rc && t->check_part)
        rc = t->check_part(ctx, err);
    if (!rc)
        rc = expand_options(ctx, t->opt, ctx->opts, err);
    if (!rc)
        rc = expand_options(ctx, cli_common_opt, (char *)&ctx->common, err);
    return rc || !t->reads_stream ? rc : expand_inputs(ctx, err);
}

void cli_names_release(struct cli_names *n)
{
    for (size_t i = 0; i < n->n; i++)
        free(n->item[i]);
    free(n->item);
    free(n->input);
    *n = (struct cli_names){0};
}
