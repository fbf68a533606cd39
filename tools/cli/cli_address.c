/* cli_address.c - refuses addresses, such as s3://bucket/set, where a file or folder is
 * to be named, and says how the bytes get there by a pipe. */
#include <string.h>

#include "lib/base/io.h"
#include "tools/cli/cli_private.h"

/* The commands that copy an address to standard output and from standard input; "%s" is
 * the address. */
static const struct store {
    const char *scheme, *get, *put;
} stores[] = {
    {"s3://", "aws s3 cp %s -", "aws s3 cp - %s"},
    {"gs://", "gcloud storage cat %s", "gcloud storage cp - %s"},
    {"http://", "curl -fsSL %s", NULL},
    {"https://", "curl -fsSL %s", NULL},
    {"ftp://", "curl -fsSL %s", NULL},
    {"hdfs://", "hdfs dfs -cat %s", "hdfs dfs -put - %s"},
};

static const struct store *store_of(const char *address)
{
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        if (!strncmp(address, stores[i].scheme, strlen(stores[i].scheme)))
            return &stores[i];
    return NULL;
}

/* Writes what to do with the address to `way`. */
static void find_way(const struct cli_ctx *ctx, const struct cli_opt *o,
                     const char *address, char *way, size_t size)
{
    const struct store *s = store_of(address);
    char command[512] = "COMMAND";
    const bool input = !o, output = o && o->letter == 'o';

    if (!strncmp(address, "file://", 7)) {
        snprintf(way, size, "write %s",
                 strcspn(address + 7, "/") ? "its path" : address + 7);
        return;
    }
    if (!input && !output) {
        snprintf(way, size, "%s",
                 o->kind == CLI_OUTPUT
                     ? "write a local file, and copy it there"
                     : "name a local file or folder, and copy it from "
                       "or to the address");
        return;
    }
    if (s && (input ? s->get : s->put)) {
        const char *form = input ? s->get : s->put, *hole = strstr(form, "%s");
        snprintf(command, sizeof command, "%.*s%s%s", (int)(hole - form), form, address,
                 hole + 2);
    }
    if (input)
        snprintf(way, size, "pipe it in, %s | %s; copy a folder first", command,
                 ctx->tool->name);
    else
        snprintf(way, size,
                 "leave -o out and pipe the stream, %s | %s; a folder is written "
                 "locally, and copied",
                 ctx->tool->name, command);
}

int cli_check_address(const struct cli_ctx *ctx, const struct cli_opt *o,
                      const char *value, struct slu_err *err)
{
    char way[768];

    if (o && o->kind != CLI_INPUT && o->kind != CLI_FILE && o->kind != CLI_FILES &&
        o->kind != CLI_OUTPUT && !o->path)
        return SLU_OK;
    /* Some options take several names, with commas. */
    for (const char *p = value; p; p = strchr(p, ','), p = p ? p + 1 : p) {
        if (!slu_is_address(p))
            continue;
        find_way(ctx, o, p, way, sizeof way);
        return slu_fail(err, SLU_E_USAGE,
                        "%s%s%s%s: is an address, and only local files can be %s; %s",
                        o ? "--" : "", o ? o->name : "", o ? " " : "", value,
                        o && o->kind == CLI_OUTPUT ? "written" : "read", way);
    }
    return SLU_OK;
}
