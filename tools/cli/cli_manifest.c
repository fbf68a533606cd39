/* cli_manifest.c - see cli_manifest.h. */
#include "tools/cli/cli_manifest.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/json_write.h"
#include "lib/stream/account_json.h"
#include "tools/cli/cli_flow.h"
#include "tools/cli/cli_inputs.h"
#include "tools/cli/cli_private.h"

struct cli_manifest {
    char *path;
    struct cli_inputs in;
    struct slu_buf made; /* the record, as an object */
    bool lenient;
    struct slu_json *old; /* owns the strings of the account's reasons */
};

typedef unsigned long long ull; /* for printf */
typedef struct slu_json_value value;

/* ---- differences ---- */

static uint64_t number_of(value root, const char *key)
{
    value v;
    uint64_t n = UINT64_MAX;
    if (slu_json_get(root, key, &v))
        (void)slu_json_u64(v, &n);
    return n;
}

/* ---- outputs other than -o ---- */

/* Whether this run writes the file that option o names: of stages, one does. */
static bool writes(const struct cli_ctx *ctx, const struct cli_opt *o)
{
    const char *stage = cli_stage_of(ctx);
    return o->kind == CLI_OUTPUT && cli_path(o, ctx->opts) &&
           (!stage || !o->from || !strcmp(stage, o->from));
}

/* Whether it gives the set -o its name. */
static bool publishes(const struct cli_ctx *ctx)
{
    const struct slu_stage *s = cli_flow_stage(ctx);
    return ctx->common.output && s && s->flags & SLU_STAGE_SET &&
           s->flags & SLU_STAGE_ONE;
}

bool cli_outputs_any(const struct cli_ctx *ctx)
{
    bool any = publishes(ctx);
    for (const struct cli_opt *o = ctx->tool->opt; o && o->name; o++)
        any |= writes(ctx, o);
    return any;
}

struct output {
    const char *option;
    struct slu_buf path;
};

/* The next output after *o, from NULL on. False: there are no more, or *rc. */
static bool next_output(const struct cli_ctx *ctx, bool set, const struct cli_opt **o,
                        struct output *out, int *rc, struct slu_err *err)
{
    const struct cli_opt *row = *o ? *o + 1 : ctx->tool->opt;
    slu_buf_clear(&out->path);
    if (*o && !(*o)->name)
        return false;
    while (row->name && !writes(ctx, row))
        row++;
    *o = row;
    out->option = row->name ? row->name : "output";
    if (row->name && ctx->common.compare) /* of the part that is compared */
        *rc = cli_part_name(&ctx->common.part, cli_path(row, ctx->opts),
                            ctx->common.part.i, &out->path, err);
    else if (row->name)
        *rc = slu_buf_printf(&out->path, err, "%s", cli_path(row, ctx->opts));
    else if (set && publishes(ctx))
        *rc = slu_buf_printf(&out->path, err, "%s/report.json", ctx->common.output);
    else
        return false;
    if (!*rc)
        *rc = slu_buf_append(&out->path, "", 1, err);
    return !*rc;
}

int cli_outputs_put(const struct cli_ctx *ctx, bool set, struct slu_buf *b,
                    struct slu_err *err)
{
    const struct cli_opt *o = NULL;
    struct output out = {.path = SLU_BUF_INIT};
    struct stat st;
    int rc = SLU_OK, n = 0;
    while (next_output(ctx, set, &o, &out, &rc, err)) {
        struct cli_inputs file = {0};
        const char *path = (const char *)out.path.data;
        if (stat(path, &st) || !S_ISREG(st.st_mode))
            continue;
        rc = cli_inputs_add(&file, path, 0, UINT64_MAX, err);
        if (!rc)
            rc = cli_input_sign(file.item, err);
        if (!rc)
            rc = slu_buf_printf(
                b, err, "%s\"%s\": ", n++ ? ", " : ",\n  \"outputs\": {", out.option);
        if (!rc)
            rc = cli_input_put(b, file.item, CLI_PUT_TIME, err);
        cli_inputs_release(&file);
        if (rc)
            break;
    }
    slu_buf_release(&out.path);
    return rc || !n ? rc : slu_buf_append(b, "}", 1, err);
}

int cli_outputs_compare(const struct cli_ctx *ctx, bool set, value root, char *text,
                        size_t cap, const char **what, struct slu_err *err)
{
    const struct cli_opt *o = NULL;
    struct output out = {.path = SLU_BUF_INIT};
    struct stat st;
    value list = SLU_JSON_NONE, was;
    int rc = SLU_OK;
    *what = NULL;
    (void)slu_json_get(root, "outputs", &list);
    while (!*what && next_output(ctx, set, &o, &out, &rc, err)) {
        struct cli_inputs file = {0};
        const char *path = (const char *)out.path.data;
        if (stat(path, &st)) {
            snprintf(text, cap, "%s, which it writes, is not there", path);
            *what = text;
            continue;
        }
        if (S_ISCHR(st.st_mode))
            continue; /* a device such as /dev/null keeps no file */
        bool same = S_ISREG(st.st_mode) && slu_json_get(list, out.option, &was);
        if (same) {
            rc = cli_inputs_add(&file, path, 0, UINT64_MAX, err);
            if (!rc)
                rc = cli_input_compare(file.item, was, text, cap, what, err);
            cli_inputs_release(&file);
            if (rc)
                break;
        }
        if (!same || *what) {
            snprintf(text, cap, "%s is not the file that it wrote for --%s", path,
                     out.option);
            *what = text;
        }
    }
    slu_buf_release(&out.path);
    return rc;
}

/* What can be done about a set that differs. */
static const char *instead(const struct cli_ctx *ctx, bool folder)
{
    return !folder ? " or use -f" : ctx->tool->replaces ? " or use --replace-set" : "";
}

/* ---- before the run ---- */

enum verdict { MAKE, DONE };

/* Adds the file that identifies the output: the output itself, or for a set of shards
 * report.json, which is written last and covers all files by checksums. */
static int add_output(const struct cli_ctx *ctx, bool folder, struct cli_inputs *file,
                      struct slu_err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s%s", ctx->common.output,
                     folder ? "/report.json" : "");
    if (n < 0 || (size_t)n >= sizeof path)
        return slu_fail(err, SLU_E_IO, "%s: name too long", ctx->common.output);
    return cli_inputs_add(file, path, 0, UINT64_MAX, err);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Compares FILE with its manifest; both exist. */
static int output_there(struct cli_ctx *ctx, value root, enum verdict *v,
                        struct slu_err *err)
{
    struct cli_inputs file = {0};
    const char *what = NULL;
    char text[PATH_MAX + 200];
    value was = SLU_JSON_NONE;
    (void)slu_json_get(root, "output", &was);
    bool folder = is_folder(ctx->common.output);
    int rc = add_output(ctx, folder, &file, err);
    if (rc && folder && err->sys_errno == ENOENT) {
        *err = (struct slu_err)SLU_ERR_INIT;
        *v = MAKE; /* the set is unfinished: the run continues it */
        return SLU_OK;
    }
    if (!rc)
        rc = cli_input_compare(&file.item[0], was, text, sizeof text, &what, err);
    /* A file that was cut, or is of another kind, differs from the output that was
     * made. */
    if (!rc && what)
        rc = cli_input_sign(file.item, err);
    bool whole = !rc && what && (folder || file.item[0].kind == CLI_IN_STREAM);
    cli_inputs_release(&file);
    if (rc)
        return rc;
    if (whole)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: this %s differs from the one in its manifest; remove one "
                        "of them%s",
                        ctx->common.output, folder ? "set" : "stream",
                        instead(ctx, folder));
    if (what)
        cli_note(ctx, "%s: is not complete, and is made again", ctx->common.output);
    *v = MAKE;
    if (what)
        return SLU_OK;
    rc = cli_outputs_compare(ctx, false, root, text, sizeof text, &what, err);
    if (!rc && !what && (!ctx->tool->beside || ctx->tool->beside(ctx)))
        *v = DONE;
    return rc;
}

/* Takes the counts of the earlier run. If they are missing or do not balance, the work
 * is done again. */
static enum verdict take_accounts(struct cli_ctx *ctx, value root)
{
    struct slu_account l;
    struct slu_err why = SLU_ERR_INIT;
    if (slu_account_get_json(&l, root, &why) || slu_account_check(&l, &why)) {
        cli_note(ctx, "%s: %s", ctx->manifest->path, why.msg);
        return MAKE;
    }
    ctx->account = l;
    const uint64_t rejected = number_of(root, "rejected");
    ctx->rejected = rejected == UINT64_MAX ? 0 : rejected;
    return DONE;
}

static int compare(struct cli_ctx *ctx, struct cli_manifest *m, enum verdict *v,
                   struct slu_err *err)
{
    value root = slu_json_root(m->old);
    struct slu_json *now = NULL;
    char text[2 * PATH_MAX + 200];
    const char *what = text;
    int rc = slu_json_parse(&now, m->made.data, m->made.len, err);
    if (!rc && !slu_made_differs(root, slu_json_root(now), text, sizeof text))
        rc = cli_inputs_compare(&m->in, root, text, sizeof text, &what, err);
    slu_json_free(now);
    if (rc)
        return rc;
    if (what)
        return slu_fail(err, SLU_E_MISMATCH, "%s: %s; remove it%s", ctx->common.output,
                        what, instead(ctx, is_folder(ctx->common.output)));
    for (size_t i = 0; i < m->in.n; i++)
        if (!m->in.item[i].regular)
            return SLU_OK; /* a pipe's contents cannot be compared */
    rc = output_there(ctx, root, v, err);
    if (!rc && *v == DONE)
        *v = take_accounts(ctx, root);
    return rc ? slu_err_at(err, "%s", m->path) : rc;
}

/* A manifest that cannot be read counts as missing. */
static int load(struct cli_ctx *ctx, struct cli_manifest *m, struct slu_err *err)
{
    struct slu_err why = SLU_ERR_INIT;
    if (ctx->common.force || (ctx->tool->replaces && ctx->tool->replaces(ctx->opts)) ||
        access(m->path, F_OK) || access(ctx->common.output, F_OK) ||
        !slu_json_load(&m->old, m->path, &why))
        return SLU_OK;
    if (why.sys_errno == ENOENT)
        return SLU_OK; /* another run of the same job has just removed it */
    if (why.code == SLU_E_NOMEM || why.code == SLU_E_IO) {
        *err = why;
        return why.code;
    }
    cli_note(ctx, "%s", why.msg);
    return SLU_OK;
}

/* The record, as an object. */
static int put_made(const struct cli_ctx *ctx, struct cli_manifest *m,
                    struct slu_err *err)
{
    struct slu_made made;
    int rc = cli_made(ctx, &made, CLI_OF_OUTPUT, err);
    for (size_t i = 0; i < made.n; i++)
        m->lenient |= made.word[i].kind == SLU_MADE_LENIENT;
    if (!rc)
        rc = slu_buf_append(&m->made, "{", 1, err);
    if (!rc)
        rc = slu_made_put(&made, UINT_MAX, &m->made, err);
    slu_made_release(&made);
    return rc ? rc : slu_buf_append(&m->made, "}", 1, err);
}

int cli_manifest_name(const struct cli_ctx *ctx, char **path, struct slu_err *err)
{
    static const char suffix[] = ".manifest.json";
    const struct cli_common *c = &ctx->common;
    const char *output = c->output;
    bool file = output && strcmp(output, "-");
    struct stat st;
    *path = NULL;
    if (c->manifest && !file)
        return slu_fail(err, SLU_E_USAGE, "--manifest needs -o FILE");
    if (!file || !(c->part.n || c->manifest))
        return SLU_OK;
    if (!stat(output, &st) &&
        !(S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && !cli_stage_of(ctx))))
        return SLU_OK;
    size_t n = strlen(output);
    while (n > 1 && output[n - 1] == '/')
        n--; /* the manifest of a folder is beside the folder, too */
    size_t name = n;
    while (name && output[name - 1] != '/')
        name--;
    if (n - name <= 2 && !strncmp(output + name, "..", n - name))
        return slu_fail(err, SLU_E_USAGE,
                        "-o %s: the manifest is named after the folder; give the "
                        "folder by its name",
                        output);
    if (n - name + sizeof suffix - 1 > NAME_MAX)
        return slu_fail(err, SLU_E_USAGE,
                        "-o %s: too long a name: %s of it would be longer than a name "
                        "may be",
                        output, suffix);
    return asprintf(path, "%.*s%s", (int)n, output, suffix) < 0 ? slu_fail_nomem(err, 1)
                                                                : SLU_OK;
}

int cli_manifest_begin(struct cli_ctx *ctx, bool *skip, struct slu_err *err)
{
    enum verdict v = MAKE;
    char *path;
    *skip = false;
    int rc = cli_manifest_name(ctx, &path, err);
    if (rc || !path)
        return rc;
    struct cli_manifest *m = calloc(1, sizeof *m);
    if (!m) {
        free(path);
        return slu_fail_nomem(err, sizeof *m);
    }
    ctx->manifest = m;
    m->path = path;
    rc = cli_inputs_of_run(ctx, &m->in, err); /* the program finds its files first */
    if (!rc)
        rc = put_made(ctx, m, err);
    if (!rc)
        rc = load(ctx, m, err);
    if (!rc && m->old)
        rc = compare(ctx, m, &v, err);
    *skip = !rc && v == DONE;
    if (*skip) {
        cli_stat_json(ctx, "skipped", "true");
        cli_note(ctx, "%s: is there already", ctx->common.output);
    } else if (!rc && !access(m->path, F_OK) && unlink(m->path) && errno != ENOENT) {
        rc = slu_fail_errno(err, "%s: cannot be removed", m->path);
    }
    return rc;
}

/* ---- after the run ---- */

static int put_inputs(struct slu_buf *b, struct cli_inputs *in, struct slu_err *err)
{
    int rc = slu_buf_printf(b, err, ",\n  \"inputs\": ["), n = 0;
    for (size_t i = 0; i < in->n && !rc; i++) {
        rc = cli_input_check(&in->item[i], err);
        if (rc || in->item[i].in_record)
            continue;
        rc = cli_input_sign(&in->item[i], err);
        if (!rc)
            rc = slu_buf_printf(b, err, "%s\n    ", n++ ? "," : "");
        if (!rc)
            rc = cli_input_put(b, &in->item[i], CLI_PUT_PLACE, err);
    }
    return rc ? rc : slu_buf_append(b, "]", 1, err);
}

int cli_manifest_end(struct cli_ctx *ctx, struct slu_err *err)
{
    struct cli_manifest *m = ctx->manifest;
    struct slu_buf b = SLU_BUF_INIT;
    struct cli_inputs file = {0};
    struct stat st;
    if (!m || stat(ctx->common.output, &st) ||
        !(S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && !cli_stage_of(ctx))))
        return SLU_OK; /* stages share the folder and record their own files */
    /* It begins with the program, by which lib/stream/frame.c knows it. */
    int rc = slu_buf_printf(&b, err, "{\n  ");
    if (!rc)
        rc = slu_buf_append(&b, m->made.data + 1, m->made.len - 2, err);
    if (!rc)
        rc = slu_buf_printf(&b, err, ",\n  \"version\": \"%s\"", SLU_VERSION);
    if (!rc && ctx->tool->mode)
        rc = slu_buf_printf(&b, err, ",\n  \"mode\": \"%s\"", ctx->tool->mode(ctx));
    if (!rc && m->lenient)
        rc = slu_buf_printf(&b, err, ",\n  \"rejected\": %llu", (ull)ctx->rejected);
    if (!rc)
        rc = put_inputs(&b, &m->in, err);
    if (!rc)
        rc = add_output(ctx, S_ISDIR(st.st_mode), &file, err);
    if (!rc)
        rc = cli_input_sign(file.item, err);
    if (!rc)
        rc = slu_buf_printf(&b, err, ",\n  \"output\": ");
    if (!rc)
        rc = cli_input_put(&b, file.item, CLI_PUT_CONTENTS, err);
    if (!rc)
        rc = cli_outputs_put(ctx, false, &b, err);
    if (!rc)
        rc = slu_account_put_json(&b, &ctx->account, err);
    if (!rc)
        rc = slu_buf_append(&b, "\n}\n", 3, err);
    if (!rc)
        rc = slu_out_whole(m->path, b.data, b.len, err);
    cli_inputs_release(&file);
    slu_buf_release(&b);
    return rc;
}

const struct cli_input *cli_manifest_input(const struct cli_ctx *ctx, size_t i)
{
    const struct cli_manifest *m = ctx->manifest;

    return m && i < m->in.n && m->in.item[i].kind ? &m->in.item[i] : NULL;
}

void cli_manifest_free(struct cli_ctx *ctx)
{
    struct cli_manifest *m = ctx->manifest;
    if (!m)
        return;
    free(m->path);
    cli_inputs_release(&m->in);
    slu_buf_release(&m->made);
    slu_json_free(m->old);
    free(m);
    ctx->manifest = NULL;
}
