/* Fuzzes FILE.manifest.json (tools/cli/cli_manifest.h) of a run that is started again, with
 * two files that are read, one of them in part: any bytes are refused in one line, or
 * the run begins, or it has been done, which needs a manifest that says all of it.
 * Where the work is done the manifest is written, and the next run must skip.
 *
 * Input: a byte of options, FILE (folder.h), the manifest. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "lib/base/io.h"
#include "tools/cli/cli_inputs.h"
#include "tools/cli/cli_manifest.h"
#include "tools/cli/cli_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct opts {
    uint64_t min;
    const char *rejects;
};

static const struct cli_opt options[] = {
    {"min", 0, CLI_COUNT, offsetof(struct opts, min), "N", "", NULL},
    {"rejects", 0, CLI_OUTPUT, offsetof(struct opts, rejects), "FILE", "",
     .effect = CLI_NOTHING},
    {NULL}};

static int inputs(struct cli_ctx *ctx, struct cli_inputs *in, struct slu_err *err)
{
    int rc = cli_inputs_add(in, ctx->input[0], 0, UINT64_MAX, err);
    return rc ? rc : cli_inputs_add(in, ctx->input[1], 3, 9, err);
}

/* A program without run. */
static const struct slu_tool fuzz_tool = {.name = "fuzz",
                                          .synopsis = "",
                                          .summary = "",
                                          .opt = options,
                                          .opts_size = sizeof(struct opts),
                                          .inputs = inputs};

static int begin(struct cli_ctx *ctx, bool *skip)
{
    struct slu_err err = SLU_ERR_INIT;
    int rc = cli_manifest_begin(ctx, skip, &err);
    must(!rc || (err.msg[0] && !strchr(err.msg, '\n') && !*skip));
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char text[] = "sixteen bytes or so";
    struct slu_err err = SLU_ERR_INIT;
    struct opts o = {.min = 7};
    const char *input[2] = {in_folder("a"), in_folder("b")};
    const uint8_t *p;
    if (!n)
        return 0;
    unsigned option = data[0];
    data++;
    n--;
    char output[256];
    snprintf(output, sizeof output, "%s", in_folder("out"));
    struct cli_ctx ctx = {.tool = &fuzz_tool, .opts = &o, .input = input, .n_input = 2};
    ctx.common = (struct cli_common){.output = output,
                                     .manifest = true,
                                     .threads = 1,
                                     .memory = 1 << 20,
                                     .seed = option >> 4,
                                     .quiet = true};
    if (option & 1)
        ctx.common.part = (struct cli_part){.i = 1, .n = 3};
    if (option & 2)
        o.rejects = "/dev/null";
    put_file("a", (const uint8_t *)text, sizeof text);
    put_file("b", (const uint8_t *)text, sizeof text);
    size_t len = next_file(&p, &data, &n, false);
    put_file("out", p, len);
    put_file("out.manifest.json", data, n);
    bool skip = false;
    must(cli_report_open(&ctx, &err) == SLU_OK);
    int rc = begin(&ctx, &skip);
    if (!rc && !skip)
        rc = cli_manifest_end(&ctx, &err);
    must(!rc || !skip);
    cli_manifest_free(&ctx);
    ctx.account = (struct slu_account){0};
    if (!rc)
        must(begin(&ctx, &skip) == SLU_OK && skip);
    cli_manifest_free(&ctx);
    cli_report_free(&ctx);
    return 0;
}
