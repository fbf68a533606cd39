/* cli_inputs.c - see cli_inputs.h. */
#include "tools/cli/cli_inputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/shards/shard_dir.h"
#include "formats/text/sources.h"
#include "lib/base/io.h"
#include "lib/base/json_write.h"
#include "lib/base/le.h"
#include "lib/flow/workfile_stage.h"
#include "lib/stream/stream_tail.h"
#include "tools/cli/cli_private.h"

static const char *const kinds[] = {"unknown", "stream", "work", "file"};
typedef unsigned long long ull; /* for printf */

static uint64_t mtime(const struct stat *st)
{
    return (uint64_t)st->st_mtim.tv_sec * 1000000000U + (uint64_t)st->st_mtim.tv_nsec;
}

/* With targets: checks that no output would replace the file. */
static int spare(const struct cli_inputs *in, const char *path, struct slu_err *err)
{
    struct stat st;
    if (strcmp(path, "-") ? stat(path, &st) : fstat(STDIN_FILENO, &st))
        return SLU_OK;
    return cli_targets_spare(in->targets, path, &st, err);
}

/* A set is known by its report.json, which covers its files by checksums. */
static int add_report(struct cli_inputs *in, const char *dir, struct slu_err *err)
{
    char *path = NULL;

    if (asprintf(&path, "%s/report.json", dir) < 0)
        return slu_fail_nomem(err, strlen(dir));
    int rc = cli_inputs_add(in, path, 0, UINT64_MAX, err);
    free(path);
    return rc;
}

int cli_inputs_add(struct cli_inputs *in, const char *path, uint64_t from, uint64_t to,
                   struct slu_err *err)
{
    struct cli_input i = {.from = from, .to = to};
    struct stat st;
    if (in->targets)
        return spare(in, path, err);
    if (strcmp(path, "-")) {
        if (stat(path, &st))
            return slu_fail_errno(err, "%s", path);
        if (S_ISDIR(st.st_mode) && slu_exists_in(path, "report.json"))
            return add_report(in, path, err);
        i.regular = S_ISREG(st.st_mode);
    }
    if (i.regular) {
        i.n_byte = (uint64_t)st.st_size;
        i.mtime_ns = mtime(&st);
    }
    int rc = slu_grow(&in->item, &in->cap, in->n + 1, sizeof i, err);
    if (!rc && !(i.name = strdup(path)))
        rc = slu_fail_nomem(err, strlen(path));
    if (!rc)
        in->item[in->n++] = i;
    return rc;
}

int cli_inputs_add_known(struct cli_inputs *in, const char *path, struct slu_err *err)
{
    int rc = cli_inputs_add(in, path, 0, UINT64_MAX, err);

    if (!rc && !in->targets)
        in->item[in->n - 1].in_record = true;
    return rc;
}

int cli_inputs_add_source(struct cli_inputs *in, const struct slu_source *src,
                          uint64_t number, struct slu_err *err)
{
    int rc = cli_inputs_add(in, src->path, src->from, src->to, err);
    if (rc || in->targets)
        return rc;
    struct cli_input *i = &in->item[in->n - 1];
    i->number = number;
    i->source = strdup(src->name);
    if (src->domain)
        i->domain = strdup(src->domain);
    return i->source && (i->domain || !src->domain)
               ? SLU_OK
               : slu_fail_nomem(err, strlen(src->name));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct cli_input *)a)->name,
                  ((const struct cli_input *)b)->name);
}

int cli_inputs_add_work(struct cli_inputs *in, const char *dir, const char *prefix,
                        struct slu_err *err)
{
    size_t begin = in->n;
    const struct dirent *e;
    DIR *d = opendir(dir);
    int rc = d || errno == ENOENT ? SLU_OK : slu_fail_errno(err, "%s", dir);
    while (d && !rc && (e = readdir(d))) {
        char *path = NULL;
        if (!in->targets && strncmp(e->d_name, prefix, strlen(prefix)))
            continue;
        if (asprintf(&path, "%s/%s", dir, e->d_name) < 0)
            rc = slu_fail_nomem(err, strlen(dir));
        else if (!in->targets || slu_work_is(path))
            rc = cli_inputs_add(in, path, 0, UINT64_MAX, err);
        free(path);
    }
    if (d)
        closedir(d);
    if (in->n > begin)
        qsort(in->item + begin, in->n - begin, sizeof *in->item, by_name);
    return rc;
}

/* ---- the files that a run reads ---- */

static int add_file(void *in, const char *path, struct slu_err *err)
{
    return cli_inputs_add(in, path, 0, UINT64_MAX, err);
}

enum { SET_DEPTH = 4 }; /* depth of folders in a set, with those that a format adds */

/* With targets: adds all files of a set of shards in this folder and in the folders
 * below. */
static int add_set(struct cli_inputs *in, const char *dir, unsigned depth,
                   struct slu_err *err)
{
    const struct dirent *e;
    DIR *d = opendir(dir);
    int rc = d ? SLU_OK : slu_fail_errno(err, "%s", dir);
    while (!rc && (e = readdir(d))) {
        char *path = NULL;
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
            (!depth && !slu_shard_dir_has_name(e->d_name)))
            continue;
        if (asprintf(&path, "%s/%s", dir, e->d_name) < 0)
            rc = slu_fail_nomem(err, strlen(dir));
        else if (!stat(path, &st) && S_ISDIR(st.st_mode))
            rc = depth < SET_DEPTH ? add_set(in, path, depth + 1, err) : SLU_OK;
        else
            rc = cli_inputs_add(in, path, 0, UINT64_MAX, err);
        free(path);
    }
    if (d)
        closedir(d);
    return rc;
}

/* Adds the files that an argument names: a file and the files that belong to it, or a
 * folder. */
static int add_named(const struct cli_ctx *ctx, struct cli_inputs *in, const char *name,
                     struct slu_err *err)
{
    char beside[PATH_MAX];
    struct stat st;
    int rc = SLU_OK;
    /* A name without a file may be the common beginning of two files' names. */
    if (!access(name, F_OK) || !strcmp(name, "-") ||
        !slu_tokens_beside(name, 0, beside, sizeof beside) || access(beside, F_OK))
        rc = cli_inputs_add(in, name, 0, UINT64_MAX, err);
    for (unsigned k = 0; !rc && slu_tokens_beside(name, k, beside, sizeof beside); k++)
        if (strcmp(beside, name) && !access(beside, F_OK))
            rc = cli_inputs_add(in, beside, 0, UINT64_MAX, err);
    if (rc || !in->targets || stat(name, &st) || !S_ISDIR(st.st_mode))
        return rc;
    const struct cli_common *c = &ctx->common;
    const struct slu_tokens_cfg cfg = {
        .column = c->column, .tok_bytes = c->token_bytes ? 1U << c->token_bytes : 0};
    rc = slu_tokens_each_file(&cfg, name, add_file, in, err);
    return rc ? rc : add_set(in, name, 0, err);
}

/* With targets: adds the files that the argument names in the other parts of the
 * job. */
static int add_parts(struct cli_ctx *ctx, struct cli_inputs *in, const char *given,
                     struct slu_err *err)
{
    struct slu_buf name = SLU_BUF_INIT;
    int rc = SLU_OK;
    for (uint64_t i = 0; !rc && i < ctx->common.part.n; i++) {
        slu_buf_clear(&name);
        rc = cli_part_name(&ctx->common.part, given, i, &name, err);
        if (!rc)
            rc = add_named(ctx, in, (char *)name.data, err);
    }
    slu_buf_release(&name);
    return rc;
}

int cli_inputs_add_streams(struct cli_ctx *ctx, struct cli_inputs *in,
                           struct slu_err *err)
{
    int rc = SLU_OK;
    if (!ctx->n_input &&
        (in->targets || (ctx->tool->reads_stream && !cli_stage_of(ctx))))
        rc = cli_inputs_add(in, "-", 0, UINT64_MAX, err);
    for (size_t i = 0; i < ctx->n_input && !rc; i++) {
        const char *given = ctx->expanded.given ? ctx->expanded.given[i] : NULL;
        if (in->targets && given && given != ctx->input[i])
            rc = add_parts(ctx, in, given, err);
        else
            rc = add_named(ctx, in, ctx->input[i], err);
    }
    return rc;
}

int cli_inputs_of_run(struct cli_ctx *ctx, struct cli_inputs *in, struct slu_err *err)
{
    int rc = ctx->tool->inputs ? ctx->tool->inputs(ctx, in, err)
                               : cli_inputs_add_streams(ctx, in, err);

    return rc ? rc : cli_inputs_of_options(ctx, in, err);
}

int cli_inputs_of_options(struct cli_ctx *ctx, struct cli_inputs *in,
                          struct slu_err *err)
{
    int rc = SLU_OK;

    for (const struct cli_opt *o = ctx->tool->opt; o && o->name && !rc; o++) {
        const char *path = o->kind == CLI_INPUT ? cli_path(o, ctx->opts) : NULL;
        if (path && (in->targets || o->effect != CLI_NOTHING))
            rc = cli_inputs_add(in, path, 0, UINT64_MAX, err);
        for (size_t i = 0; !rc && (path = cli_file_of(o, ctx->opts, i)); i++)
            rc = cli_inputs_add_known(in, path, err);
    }
    return rc;
}

void cli_inputs_release(struct cli_inputs *in)
{
    for (size_t i = 0; i < in->n; i++) {
        free(in->item[i].name);
        free(in->item[i].source);
        free(in->item[i].domain);
    }
    free(in->item);
    *in = (struct cli_inputs){0};
}

/* ---- by contents ---- */

/* Reads the checksum in a work file's foot. */
static int work_foot(struct slu_u128 *sum, int fd, uint64_t n_byte, struct slu_err *err)
{
    uint8_t foot[24];
    if (n_byte < 128)
        return SLU_EOF;
    int rc = slu_pread_full(fd, foot, sizeof foot, n_byte - sizeof foot, err);
    if (!rc && memcmp(foot + 16, "SLUNEND1", 8))
        rc = SLU_EOF;
    if (!rc)
        *sum = (struct slu_u128){slu_le64(foot), slu_le64(foot + 8)};
    return rc;
}

int cli_input_sign(struct cli_input *i, struct slu_err *err)
{
    struct slu_stream_tail tail = {0};
    if (!i->regular || i->kind)
        return SLU_OK;
    uint64_t to = i->to < i->n_byte ? i->to : i->n_byte;
    int fd = open(i->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return slu_fail_errno(err, "%s", i->name);
    bool whole = i->from == 0 && to == i->n_byte;
    int kind = CLI_IN_STREAM;
    int rc = whole ? slu_stream_tail_read(&tail, fd, i->n_byte, err) : SLU_EOF;
    if (!rc) {
        i->sum = tail.checksum;
        i->digest = tail.digest;
    } else if (rc == SLU_EOF) {
        kind = CLI_IN_WORK;
        rc = whole ? work_foot(&i->sum, fd, i->n_byte, err) : SLU_EOF;
    }
    if (rc == SLU_EOF) {
        kind = CLI_IN_FILE;
        rc = slu_hash_file(&i->sum, fd, i->from, to, err);
    }
    close(fd);
    if (rc)
        return slu_err_at(err, "%s", i->name);
    i->kind = kind;
    return SLU_OK;
}

int cli_input_check(const struct cli_input *i, struct slu_err *err)
{
    struct stat st;
    if (!i->regular)
        return SLU_OK;
    if (stat(i->name, &st))
        return slu_fail_errno(err, "%s", i->name);
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != i->n_byte ||
        mtime(&st) != i->mtime_ns)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: was changed while it was read; run the program again",
                        i->name);
    return SLU_OK;
}

/* ---- as JSON, and back ---- */

int cli_input_put(struct slu_buf *b, const struct cli_input *i, enum cli_put what,
                  struct slu_err *err)
{
    const bool with_place = what == CLI_PUT_PLACE;
    char sum[33], digest[33];
    int rc = slu_buf_append(b, "{", 1, err);
    if (!rc && with_place) {
        rc = slu_buf_printf(b, err, "\"name\": ");
        if (!rc)
            rc = slu_json_put_string(b, i->name, strlen(i->name), err);
        if (!rc && i->source)
            rc = slu_buf_printf(b, err,
                                ", \"number\": %llu, \"source\": ", (ull)i->number);
        if (!rc && i->source)
            rc = slu_json_put_string(b, i->source, strlen(i->source), err);
        if (!rc && i->domain)
            rc = slu_buf_printf(b, err, ", \"domain\": ");
        if (!rc && i->domain)
            rc = slu_json_put_string(b, i->domain, strlen(i->domain), err);
        if (!rc && i->regular)
            rc = slu_buf_append(b, ", ", 2, err);
    }
    if (rc || !i->regular)
        return rc ? rc : slu_buf_append(b, "}", 1, err);
    slu_u128_hex(i->sum, sum);
    slu_u128_hex(i->digest, digest);
    rc = slu_buf_printf(b, err, "\"bytes\": %llu", (ull)i->n_byte);
    if (!rc && what != CLI_PUT_CONTENTS)
        rc = slu_buf_printf(b, err, ", \"mtime_ns\": %llu", (ull)i->mtime_ns);
    if (!rc && (i->from || i->to < i->n_byte))
        rc = slu_buf_printf(b, err, ", \"from\": %llu, \"to\": %llu", (ull)i->from,
                            (ull)(i->to < i->n_byte ? i->to : i->n_byte));
    if (!rc)
        rc = slu_buf_printf(b, err, ", \"kind\": \"%s\", \"checksum\": \"%s\"",
                            kinds[i->kind], sum);
    if (!rc && i->kind == CLI_IN_STREAM)
        rc = slu_buf_printf(b, err, ", \"end\": \"%s\"", digest);
    return rc ? rc : slu_buf_append(b, "}", 1, err);
}

static const char *base(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* *out is the text as JSON returns it, with each invalid UTF-8 byte replaced. Caller
 * frees. */
static int as_written(char **out, const char *text, struct slu_err *err)
{
    struct slu_buf b = SLU_BUF_INIT;
    struct slu_json *j = NULL;
    const char *s = "";
    size_t n;
    int rc = slu_json_put_string(&b, text, strlen(text), err);
    if (!rc)
        rc = slu_json_parse(&j, b.data, b.len, err);
    if (!rc)
        (void)slu_json_string(slu_json_root(j), &s, &n);
    if (!rc && !(*out = strdup(s)))
        rc = slu_fail_nomem(err, strlen(s));
    slu_json_free(j);
    slu_buf_release(&b);
    return rc;
}

/* Whether `key` exists and its value differs from the text, or with base_name from the
 * last part of the text; *had is set to the value. */
static int text_differs(struct slu_json_value was, const char *key, const char *text,
                        bool base_name, const char **had, struct slu_err *err)
{
    struct slu_json_value v;
    const char *s;
    size_t len;
    char *now = NULL;
    *had = NULL;
    if (!slu_json_get(was, key, &v) || !slu_json_string(v, &s, &len))
        return SLU_OK;
    int rc = as_written(&now, text, err);
    if (!rc && strcmp(base_name ? base(s) : s, base_name ? base(now) : now))
        *had = s;
    free(now);
    return rc;
}

static bool is(struct slu_json_value v, const char *key, const char *text)
{
    struct slu_json_value at;
    return slu_json_get(v, key, &at) && slu_json_is(at, text);
}

static uint64_t number(struct slu_json_value v, const char *key, uint64_t without)
{
    struct slu_json_value at;
    uint64_t n = without;
    if (slu_json_get(v, key, &at))
        (void)slu_json_u64(at, &n);
    return n;
}

static bool same_contents(const struct cli_input *i, struct slu_json_value was)
{
    char hex[33];
    slu_u128_hex(i->sum, hex);
    if (!is(was, "kind", kinds[i->kind]) || !is(was, "checksum", hex))
        return false;
    slu_u128_hex(i->digest, hex);
    return i->kind != CLI_IN_STREAM || is(was, "end", hex);
}

int cli_input_compare(struct cli_input *i, struct slu_json_value was, char *text,
                      size_t cap, const char **what, struct slu_err *err)
{
    const char *name, *source = NULL, *domain = NULL, *now = i->domain ? i->domain : "";
    struct slu_json_value v;
    uint64_t n_byte = number(was, "bytes", UINT64_MAX);
    *what = text;
    int rc = text_differs(was, "name", i->name, true, &name, err);
    if (!rc && i->source)
        rc = text_differs(was, "source", i->source, false, &source, err);
    if (!rc && i->source && slu_json_get(was, "domain", &v))
        rc = text_differs(was, "domain", now, false, &domain, err);
    else if (*now)
        domain = "";
    if (rc)
        return rc;
    if (name)
        snprintf(text, cap, "was made from %s, now %s", name, i->name);
    else if (i->source && number(was, "number", i->number) != i->number)
        snprintf(text, cap, "was made from %s as source %llu, now %llu", i->name,
                 (ull)number(was, "number", 0), (ull)i->number);
    else if (source)
        snprintf(text, cap, "was made from %s by the name of %s, now %s", i->name,
                 source, i->source);
    else if (domain)
        snprintf(text, cap, "was made from %s with the domain \"%s\", now \"%s\"",
                 i->name, domain, now);
    else if (n_byte != i->n_byte)
        snprintf(text, cap, "was made from %s of %llu bytes, which now has %llu",
                 i->name, (ull)n_byte, (ull)i->n_byte);
    else if (number(was, "from", 0) != i->from ||
             number(was, "to", i->n_byte) != (i->to < i->n_byte ? i->to : i->n_byte))
        snprintf(text, cap, "was made from another share of %s", i->name);
    else
        *what = NULL;
    /* A plain file of the same size and time is not read again. */
    if (*what || ((is(was, "kind", kinds[CLI_IN_FILE]) ||
                   is(was, "kind", kinds[CLI_IN_UNKNOWN])) &&
                  number(was, "mtime_ns", 0) == i->mtime_ns))
        return SLU_OK;
    if (is(was, "kind", kinds[CLI_IN_UNKNOWN])) {
        snprintf(text, cap, "was made from %s of another time", i->name);
        *what = text;
        return SLU_OK;
    }
    rc = cli_input_sign(i, err);
    if (!rc && !same_contents(i, was)) {
        snprintf(text, cap, "was made from other contents of %s", i->name);
        *what = text;
    }
    return rc;
}

int cli_inputs_compare(struct cli_inputs *in, struct slu_json_value root, char *text,
                       size_t cap, const char **what, struct slu_err *err)
{
    struct slu_json_iter it;
    struct slu_json_value list = SLU_JSON_NONE;
    int rc = SLU_OK;
    *what = NULL;
    (void)slu_json_get(root, "inputs", &list);
    slu_json_iter_init(&it, list);
    for (size_t i = 0; i < in->n && !rc && !*what; i++) {
        if (in->item[i].in_record)
            continue;
        if (!slu_json_next(&it)) {
            snprintf(text, cap, "was made without %s", in->item[i].name);
            *what = text;
        } else if (in->item[i].regular) {
            rc = cli_input_compare(&in->item[i], it.value, text, cap, what, err);
        }
    }
    if (rc || *what || !slu_json_next(&it))
        return rc;
    snprintf(text, cap, "was made from %s too",
             slu_json_get_string(it.value, "name", "?"));
    *what = text;
    return SLU_OK;
}
