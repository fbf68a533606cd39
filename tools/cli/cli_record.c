/* cli_record.c - see cli_record.h. */
#include "tools/cli/cli_record.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "tools/cli/cli_flow.h"
#include "tools/cli/cli_inputs.h"
#include "tools/cli/cli_manifest.h"
#include "tools/cli/cli_private.h"

typedef unsigned long long ull; /* for printf */

struct cli_record {
    struct slu_made made;
    struct slu_buf sources;       /* `, "all_inputs": HASH`, or empty */
    struct cli_inputs in, option; /* of the part; those that options name */
};

/* The number of the stage of --stage. */
static unsigned upto(const struct cli_ctx *ctx)
{
    const struct slu_stage *s = cli_flow_stage(ctx);

    return s ? (unsigned)(s - ctx->tool->flow(ctx)->stage) : UINT_MAX;
}

/* Whether inputs decide more than the record of the program before says. */
static bool has_inputs(const struct cli_ctx *ctx)
{
    return ctx->tool->inputs && !ctx->tool->reads_stream;
}

static int put_sources(struct cli_ctx *ctx, struct slu_buf *b, struct slu_err *err)
{
    const struct cli_part part = ctx->common.part;
    struct cli_inputs all = {0};
    struct slu_buf text = SLU_BUF_INIT;
    char hex[33];

    ctx->common.part.n = 0;
    int rc = ctx->tool->inputs(ctx, &all, err);
    ctx->common.part = part;
    for (size_t i = 0; i < all.n && !rc; i++)
        if (all.item[i].regular && !all.item[i].in_record)
            rc = slu_buf_printf(&text, err, "%llu %llu %s %s\n",
                                (ull)all.item[i].n_byte, (ull)all.item[i].mtime_ns,
                                all.item[i].domain ? all.item[i].domain : "",
                                all.item[i].name);
    if (!rc) {
        slu_u128_hex(slu_hash128(text.data, text.len), hex);
        rc = slu_buf_printf(b, err, ", \"all_inputs\": \"%s\"", hex);
    }
    cli_inputs_release(&all);
    slu_buf_release(&text);
    return rc;
}

static int make(struct cli_ctx *ctx, struct cli_record *r, struct slu_err *err)
{
    const uint64_t ranges = cli_flow_ranges(ctx);
    /* The program finds its files first. */
    int rc = has_inputs(ctx) ? put_sources(ctx, &r->sources, err) : SLU_OK;

    if (!rc)
        rc = cli_made(ctx, &r->made, CLI_OF_OUTPUT, err);
    if (!rc && ranges) /* a number of its own in the work file */
        rc = slu_made_fact(&r->made, err, "--ranges=%llu", (ull)ranges);
    return rc;
}

static void release(struct cli_record *r)
{
    slu_made_release(&r->made);
    slu_buf_release(&r->sources);
    cli_inputs_release(&r->in);
    cli_inputs_release(&r->option);
}

/* ---- of this run ---- */

int cli_record_begin(struct cli_ctx *ctx, struct slu_err *err)
{
    struct cli_record *r = calloc(1, sizeof *r);

    if (!r)
        return slu_fail_nomem(err, sizeof *r);
    ctx->record = r;
    int rc = make(ctx, r, err);
    if (!rc && has_inputs(ctx))
        rc = ctx->tool->inputs(ctx, &r->in, err);
    return rc ? rc : cli_inputs_of_options(ctx, &r->option, err);
}

static int check(const struct cli_inputs *in, struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i < in->n && !rc; i++)
        rc = cli_input_check(&in->item[i], err);
    return rc;
}

static int put_inputs(struct cli_ctx *ctx, struct cli_record *r, struct slu_buf *b,
                      struct slu_err *err)
{
    int rc = slu_buf_printf(b, err, ",\n  \"inputs\": ["), n = 0;

    for (size_t i = 0; i < r->in.n && !rc; i++) {
        const struct cli_input *signed_ = cli_manifest_input(ctx, i);
        if (r->in.item[i].in_record)
            continue;
        rc = slu_buf_printf(b, err, "%s\n    ", n++ ? "," : "");
        if (!rc)
            rc = cli_input_put(b, signed_ ? signed_ : &r->in.item[i], CLI_PUT_PLACE,
                               err);
    }
    return rc ? rc : slu_buf_append(b, "]", 1, err);
}

int cli_record_put(struct cli_ctx *ctx, struct slu_buf *b, struct slu_err *err)
{
    struct cli_record *r = ctx->record;
    int rc = check(&r->in, err);

    if (!rc)
        rc = check(&r->option, err);
    if (!rc)
        rc = slu_made_put(&r->made, upto(ctx), b, err);
    if (!rc && r->sources.len)
        rc = slu_buf_append(b, r->sources.data, r->sources.len, err);
    if (!rc)
        rc = slu_buf_printf(b, err, ",\n  \"version\": \"%s\"", SLU_VERSION);
    if (!rc && ctx->tool->mode)
        rc = slu_buf_printf(b, err, ",\n  \"mode\": \"%s\"", ctx->tool->mode(ctx));
    if (!rc)
        rc = slu_buf_printf(b, err, ",\n  \"rejected\": %llu", (ull)ctx->rejected);
    if (!rc)
        rc = cli_outputs_put(ctx, true, b, err);
    return rc || !has_inputs(ctx) ? rc : put_inputs(ctx, r, b, err);
}

void cli_record_free(struct cli_ctx *ctx)
{
    if (ctx->record)
        release(ctx->record);
    free(ctx->record);
    ctx->record = NULL;
}

/* ---- of other runs ---- */

/* Whether the command line names inputs; else those of reports are not compared. */
static bool names_inputs(const struct cli_ctx *ctx)
{
    bool any = ctx->n_input;

    for (const struct cli_opt *o = ctx->tool->opt; o && o->name; o++)
        any |= o->kind == CLI_INPUT && cli_path(o, ctx->opts);
    return any;
}

static int inputs_differ(struct cli_ctx *ctx, struct slu_json_value was, char *text,
                         size_t cap, bool *differs, struct slu_err *err)
{
    struct cli_inputs in = {0};
    const char *what = NULL;
    int rc = ctx->tool->inputs(ctx, &in, err);

    if (!rc)
        rc = cli_inputs_compare(&in, was, text, cap, &what, err);
    *differs = what;
    cli_inputs_release(&in);
    return rc;
}

/* Compares the report of this part. */
static int compare(struct cli_ctx *ctx, struct slu_made *made, const char *path,
                   char *text, size_t cap, bool *differs, struct slu_err *err)
{
    struct slu_err why = SLU_ERR_INIT;
    struct slu_json *was = NULL, *now = NULL;
    struct slu_buf b = SLU_BUF_INIT;
    struct slu_json_value bytes;
    const char *what = NULL;

    *differs = true;
    if (slu_json_load(&was, path, &why)) {
        snprintf(text, cap, "%s", why.msg);
        return SLU_OK;
    }
    made->part = ctx->common.part.i;
    int rc = slu_buf_append(&b, "{", 1, err);
    if (!rc)
        rc = slu_made_put(made, upto(ctx), &b, err);
    if (!rc)
        rc = slu_buf_append(&b, "}", 1, err);
    if (!rc)
        rc = slu_json_parse(&now, b.data, b.len, err);
    const struct slu_json_value root = slu_json_root(was);
    if (!rc && !slu_json_get(root, "bytes", &bytes))
        snprintf(text, cap,
                 "was made by an earlier version, whose reports have no "
                 "record");
    else if (!rc)
        *differs = slu_made_differs(root, slu_json_root(now), text, cap);
    if (!rc && !*differs && has_inputs(ctx) && names_inputs(ctx))
        rc = inputs_differ(ctx, root, text, cap, differs, err);
    if (!rc && !*differs) {
        rc = cli_outputs_compare(ctx, true, root, text, cap, &what, err);
        *differs = what;
    }
    slu_json_free(was);
    slu_json_free(now);
    slu_buf_release(&b);
    return rc;
}

static int compare_all(struct cli_ctx *ctx, struct slu_made *made, FILE *list,
                       struct slu_err *err)
{
    char *line = NULL, *path, text[2 * PATH_MAX + 200];
    size_t cap = 0;
    bool differs;
    int rc = SLU_OK;

    while (!rc && getline(&line, &cap, list) > 0) {
        line[strcspn(line, "\n")] = 0;
        ctx->common.part.i = strtoull(line, &path, 10);
        if (*path != ' ')
            rc = slu_fail(err, SLU_E_FORMAT, "--compare: '%s': expected PART FILE",
                          line);
        else
            rc = compare(ctx, made, path + 1, text, sizeof text, &differs, err);
        if (!rc && differs) {
            slu_printable(text);
            printf("%llu %s\n", (ull)ctx->common.part.i, text);
        }
    }
    free(line);
    return rc;
}

int cli_compare(struct cli_ctx *ctx, struct slu_err *err)
{
    struct cli_record r = {.made = {.n = 0}};
    struct slu_made whole;
    struct slu_buf b = SLU_BUF_INIT;
    FILE *list = fopen(ctx->common.compare, "re");
    int rc = list ? make(ctx, &r, err)
                  : slu_fail_errno(err, "--compare %s", ctx->common.compare);

    /* All parts have the same record but for their number. */
    whole = r.made;
    whole.of = 0;
    if (!rc)
        rc = slu_made_put(&whole, upto(ctx), &b, err);
    if (!rc && names_inputs(ctx))
        rc = slu_buf_append(&b, r.sources.data, r.sources.len, err);
    if (!rc)
        printf("%s%.*s\n", cli_outputs_any(ctx) ? "\"outputs\": true, " : "",
               (int)b.len, (const char *)b.data);
    if (!rc)
        rc = compare_all(ctx, &r.made, list, err);
    if (list)
        fclose(list);
    slu_buf_release(&b);
    release(&r);
    return rc;
}
