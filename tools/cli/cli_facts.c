/* cli_facts.c - --facts: the option table, the files that the options name, and the
 * stages, for sluice-batch. Each option and file is on a line of its own, so that awk
 * can read them. */
#include "lib/base/json_write.h"
#include "tools/cli/cli_flow.h"
#include "tools/cli/cli_inputs.h"
#include "tools/cli/cli_private.h"

static const char *value_of(const struct cli_opt *o)
{
    return o->kind == CLI_FLAG || o->kind == CLI_UNFLAG ? "none"
           : cli_is_maybe(o)                            ? "maybe"
                                                        : "one";
}

static int put_option(struct slu_buf *b, const struct slu_tool *t,
                      const struct cli_opt *o, struct slu_err *err)
{
    const char letter[2] = {o->letter};

    return slu_buf_printf(
        b, err,
        "%s\n    {\"option\": \"%s\", \"letter\": \"%s\", \"value\": \"%s\", "
        "\"traits\": \"%s%s%s%s%s%s\"}",
        o == t->opt ? "" : ",", o->name, letter, value_of(o),
        o->kind == CLI_OUTPUT ? "output " : "",
        o->kind == CLI_FILE || o->kind == CLI_FILES ? "file " : "",
        o->from ? "staged " : "", o->traits & CLI_OF_TEXT ? "of-text " : "",
        o->traits & CLI_OF_RUNNER ? "of-runner " : "",
        o->traits & CLI_WHOLE ? "whole " : "");
}

static int put_files(struct cli_ctx *ctx, struct slu_buf *b, struct slu_err *err)
{
    struct cli_inputs in = {0};
    const char *before = "";
    int rc = cli_inputs_of_run(ctx, &in, err);

    for (size_t i = 0; i < in.n && !rc; i++) {
        if (!in.item[i].regular)
            continue; /* standard input */
        rc = cli_input_sign(&in.item[i], err);
        if (!rc)
            rc = slu_buf_printf(b, err, "%s\n    ", before);
        if (!rc)
            rc = cli_input_put(b, &in.item[i], CLI_PUT_PLACE, err);
        before = ",";
    }
    cli_inputs_release(&in);
    return rc;
}

static int put_stages(const struct cli_ctx *ctx, struct slu_buf *b, struct slu_err *err)
{
    const struct slu_flow_spec *spec = ctx->tool->flow ? ctx->tool->flow(ctx) : NULL;
    int rc = SLU_OK;

    for (unsigned i = 0; spec && i < spec->n_stage && !rc; i++)
        rc = slu_buf_printf(b, err, "%s\"%s\"", i ? ", " : "", spec->stage[i].name);
    return rc;
}

int cli_print_facts(struct cli_ctx *ctx, struct slu_err *err)
{
    const struct slu_tool *t = ctx->tool;
    struct slu_buf b = SLU_BUF_INIT;
    int rc = slu_buf_printf(&b, err,
                            "{\n  \"program\": \"%s\",\n  \"version\": \"%s\",\n  "
                            "\"bytes\": %d,\n  \"options\": [",
                            t->name, SLU_VERSION, SLU_BYTES);

    for (const struct cli_opt *o = t->opt; o && o->name && !rc; o++)
        rc = put_option(&b, t, o, err);
    for (const struct cli_opt *o = cli_common_opt; o->name && !rc; o++)
        if (!cli_hidden(t, o))
            rc = put_option(&b, t, o, err);
    if (!rc)
        rc = slu_buf_printf(&b, err, "],\n  \"files\": [");
    if (!rc)
        rc = put_files(ctx, &b, err);
    if (!rc)
        rc = slu_buf_printf(&b, err, "],\n  \"stages\": [");
    if (!rc)
        rc = put_stages(ctx, &b, err);
    if (!rc)
        rc = slu_buf_printf(&b, err, "]\n}\n");
    if (!rc)
        fwrite(b.data, 1, b.len, stdout); /* main checks the flush of stdout */
    slu_buf_release(&b);
    return rc;
}
