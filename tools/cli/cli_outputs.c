/* cli_outputs.c - no output replaces a file that the run reads, or another output.
 *
 * Before anything is opened, the files that the outputs would replace are known by
 * device and inode, so that no link and no other path hides one of them. Each file that
 * the run reads is compared with them (cli_inputs_of_run). If no output would replace a
 * file, the inputs are not looked at. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/shard_dir.h"
#include "tools/cli/cli_flow.h"
#include "tools/cli/cli_inputs.h"
#include "tools/cli/cli_manifest.h"
#include "tools/cli/cli_private.h"

struct target {
    const char *option;
    char *path;     /* "-": standard output, which may also be a file */
    struct stat st; /* of the existing file, or of the folder of a set */
};

struct cli_targets {
    struct target *item;
    size_t n, cap;
};

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Writes the path without links to out (PATH_MAX bytes). If the file does not exist:
 * the path of its folder, with the file's name. */
static bool resolve(const char *path, char *out)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char dir[PATH_MAX];
    if (realpath(path, out))
        return true;
    int n = snprintf(dir, sizeof dir, "%.*s.", (int)(name - path), path);
    if (n < 0 || (size_t)n >= sizeof dir || !realpath(dir, out))
        return false;
    size_t at = strlen(out);
    n = snprintf(out + at, PATH_MAX - at, "/%s", name);
    return n > 0 && (size_t)n < PATH_MAX - at;
}

/* Whether `path` has a name that a set of shards uses in this folder. All other files
 * in the folder belong to the user and stay. */
static bool lies_in_set(const char *path, const struct stat *folder)
{
    char at[PATH_MAX], *slash;
    struct stat st;
    if (!S_ISDIR(folder->st_mode) || !resolve(path, at))
        return false;
    while ((slash = strrchr(at, '/'))) {
        *slash = 0;
        if (!stat(*at ? at : "/", &st) && same_file(&st, folder))
            return slu_shard_dir_has_name(slash + 1);
    }
    return false;
}

static int add(struct cli_targets *t, const char *option, const char *path,
               struct slu_err *err)
{
    struct target is = {.option = option};
    bool printed = !strcmp(path, "-");
    if ((printed ? fstat(STDOUT_FILENO, &is.st) : stat(path, &is.st)) ||
        !(S_ISREG(is.st.st_mode) || S_ISDIR(is.st.st_mode)))
        return SLU_OK;
    int rc = slu_grow(&t->item, &t->cap, t->n + 1, sizeof is, err);
    if (!rc && !(is.path = strdup(path)))
        rc = slu_fail_nomem(err, strlen(path));
    if (!rc)
        t->item[t->n++] = is;
    return rc;
}

int cli_targets_spare(const struct cli_targets *t, const char *input,
                      const struct stat *st, struct slu_err *err)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct target *o = &t->item[i];
        const char *what = strcmp(input, "-") ? input : "standard input";
        if (!same_file(&o->st, st) && !lies_in_set(input, &o->st))
            continue;
        if (!strcmp(o->path, "-"))
            return slu_fail(err, SLU_E_USAGE,
                            "standard output goes to the file that is read (%s); "
                            "redirect it to another file",
                            what);
        return slu_fail(err, SLU_E_USAGE,
                        "--%s %s would replace the input (%s); name another file",
                        o->option, o->path, what);
    }
    return SLU_OK;
}

int cli_spare(struct cli_ctx *ctx, const char *path, struct slu_err *err)
{
    struct stat st;
    return !ctx->targets || stat(path, &st)
               ? SLU_OK
               : cli_targets_spare(ctx->targets, path, &st, err);
}

/* Whether a folder lies in another one, at any depth. */
static bool lies_below(const char *dir, const struct stat *folder)
{
    char at[PATH_MAX], real[PATH_MAX], *slash;
    struct stat st;
    bool same = false; /* `real` is a folder above dir */
    int n = snprintf(at, sizeof at, "%s", dir);

    if (n < 0 || (size_t)n >= sizeof at)
        return false;
    for (; !realpath(at, real); same = true) { /* what is not there yet */
        slash = strrchr(at, '/');
        if (!strcmp(at, ".") || !strcmp(at, "/"))
            return false;
        if (slash)
            slash[slash == at] = 0;
        else
            memcpy(at, ".", 2);
    }
    for (;; same = true) {
        if (same && !stat(*real ? real : "/", &st) && same_file(&st, folder))
            return true;
        if (!(slash = strrchr(real, '/')))
            return false;
        *slash = 0;
    }
}

int cli_not_below_inputs(const struct cli_ctx *ctx, const char *dir,
                         struct slu_err *err)
{
    struct stat st;

    for (size_t i = 0; i < ctx->n_input; i++)
        if (!stat(ctx->input[i], &st) && S_ISDIR(st.st_mode) && lies_below(dir, &st))
            return slu_fail(err, SLU_E_USAGE,
                            "%s: lies in the input %s; name another folder", dir,
                            ctx->input[i]);
    return SLU_OK;
}

/* Whether both names lead to one file, so that one output would replace the other or
 * mix with it. Devices such as /dev/null accept any number of outputs. */
static bool same_target(const char *a, const char *b)
{
    char x[PATH_MAX], y[PATH_MAX];
    struct stat s, t;
    if (!strcmp(a, "-") || !strcmp(b, "-"))
        return !strcmp(a, b);
    bool a_there = !stat(a, &s), b_there = !stat(b, &t);
    if (a_there && b_there && same_file(&s, &t))
        return !S_ISCHR(s.st_mode);
    return (b_there && lies_in_set(a, &t)) || (a_there && lies_in_set(b, &s)) ||
           (!a_there && !b_there && resolve(a, x) && resolve(b, y) && !strcmp(x, y));
}

/* Each output must be a file of its own: the second would silently replace the
 * first. */
static int check_pair(const struct cli_opt *a, const char *x, const struct cli_opt *b,
                      const char *y, struct slu_err *err)
{
    return same_target(x, y)
               ? slu_fail(err, SLU_E_USAGE,
                          "--%s and --%s: both would go to %s; name another file",
                          b->name, a->name, strcmp(y, "-") ? y : "standard output")
               : SLU_OK;
}

bool cli_writes(const struct cli_ctx *ctx)
{
    const struct slu_stage *stage = cli_flow_stage(ctx);

    return (!stage || stage->flags & SLU_STAGE_WRITES) &&
           (!ctx->tool->prints || ctx->tool->prints(ctx->opts));
}

/* The i-th of all options, with its value; NULL after the last. */
static const struct cli_opt *option_at(const struct cli_ctx *ctx, size_t i,
                                       const char **path)
{
    const struct cli_opt *own = ctx->tool->opt;
    const void *base = ctx->opts;
    size_t n = 0;
    while (own && own[n].name)
        n++;
    const struct cli_opt *o = i < n ? &own[i] : &cli_common_opt[i - n];
    if (i >= n)
        base = &ctx->common;
    *path = o->name && o->kind == CLI_OUTPUT ? cli_path(o, base) : NULL;
    /* Standard output is an output too. */
    if (i >= n && o->letter == 'o' && !*path && !ctx->out && cli_writes(ctx))
        *path = "-";
    return o->name ? o : NULL;
}

/* The manifest is written beside -o, and must also be a file of its own. */
static int add_manifest(struct cli_ctx *ctx, struct cli_targets *t, struct slu_err *err)
{
    const struct cli_opt *o;
    const char *other;
    char *path = NULL;
    int rc = cli_manifest_name(ctx, &path, err);
    if (!rc && path)
        rc = add(t, "output", path, err);
    for (size_t i = 0; !rc && path && (o = option_at(ctx, i, &other)); i++)
        if (other && same_target(path, other))
            rc = slu_fail(err, SLU_E_USAGE,
                          "--%s %s: the manifest of -o goes there; name another file",
                          o->name, other);
    free(path);
    return rc;
}

int cli_outputs_check(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct cli_opt *a, *b;
    const char *x, *y;
    struct cli_targets *t = ctx->targets = calloc(1, sizeof *t);
    int rc = t ? SLU_OK : slu_fail_nomem(err, sizeof *t);
    for (size_t i = 0; !rc && (a = option_at(ctx, i, &x)); i++)
        if (x)
            rc = add(t, a->name, x, err);
    if (!rc)
        rc = add_manifest(ctx, t, err);
    struct cli_inputs in = {.targets = t};
    if (!rc && t->n)
        rc = cli_inputs_of_run(ctx, &in, err);
    for (size_t i = 0; !rc && (a = option_at(ctx, i, &x)); i++)
        for (size_t k = 0; !rc && k < i && (b = option_at(ctx, k, &y)); k++)
            if (x && y)
                rc = check_pair(b, y, a, x, err);
    return rc;
}

/* Adds the files that a writes, none of which may be one of b. */
static int add_apart(struct cli_targets *t, const struct cli_ctx *a,
                     const struct cli_ctx *b, struct slu_err *err)
{
    const struct cli_opt *o, *p;
    const char *x, *y;
    int rc = SLU_OK;

    for (size_t i = 0; !rc && (o = option_at(a, i, &x)); i++) {
        if (!x || !strcmp(x, "-")) /* a joint, or standard output */
            continue;
        rc = add(t, o->name, x, err);
        for (size_t k = 0; !rc && (p = option_at(b, k, &y)); k++)
            if (y)
                rc = check_pair(p, y, o, x, err);
    }
    return rc;
}

int cli_outputs_apart(struct cli_ctx *const *line, size_t n, struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < n && !rc; i++) {
        struct cli_targets *t = calloc(1, sizeof *t);
        struct cli_ctx others = {.targets = t};
        struct cli_inputs in = {.targets = t};
        if (!t)
            return slu_fail_nomem(err, sizeof *t);
        for (size_t k = 0; k < n && !rc; k++)
            if (k != i)
                rc = add_apart(t, line[k], line[i], err);
        if (!rc && t->n)
            rc = cli_inputs_of_run(line[i], &in, err);
        cli_outputs_free(&others);
    }
    return rc;
}

void cli_outputs_free(struct cli_ctx *ctx)
{
    for (size_t i = 0; ctx->targets && i < ctx->targets->n; i++)
        free(ctx->targets->item[i].path);
    if (ctx->targets)
        free(ctx->targets->item);
    free(ctx->targets);
    ctx->targets = NULL;
}
