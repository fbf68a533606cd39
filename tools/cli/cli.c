#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cgroup.h"
#include "lib/base/number.h"
#include "tools/cli/cli_lengths.h"
#include "tools/cli/cli_private.h"

#define AT(field) offsetof(struct cli_common, field)

static const char *const progress_names[] = {"auto", "always", "never", NULL};
/* The index is the base-2 logarithm of the bytes. "auto": NumPy's header states the
 * bytes. */
static const char *const token_bytes_names[] = {"auto", "2", "4", "8", NULL};
const char *const cli_device_names[] = {"auto", "cpu", "cuda", NULL};

static int parse_device(void *common, const char *value, struct slu_err *err)
{
    struct cli_common *c = common;
    char *end;
    c->device_ordinal = 0;
    if (!strncmp(value, "cuda:", 5) && value[5] >= '0' && value[5] <= '9') {
        errno = 0;
        c->device_ordinal = strtoull(value + 5, &end, 10);
        if (!*end && !errno) {
            c->device = 2;
            return SLU_OK;
        }
    }
    for (int i = 0; cli_device_names[i]; i++)
        if (!strcmp(value, cli_device_names[i])) {
            c->device = i;
            return SLU_OK;
        }
    return slu_fail(err, SLU_E_USAGE,
                    "'%s' is not a device; use auto, cpu, cuda or cuda:N", value);
}

static int parse_part(void *common, const char *value, struct slu_err *err)
{
    return cli_part_parse(&((struct cli_common *)common)->part, value, err);
}

/* Rows are in the order of --help. --help and --version have no destination. */
const struct cli_opt cli_common_opt[] = {
    {"output", 'o', CLI_OUTPUT, AT(output), "FILE",
     "write to FILE instead of standard output; an existing file is\n"
     "replaced",
     .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},
    {"threads", 'T', CLI_COUNT, AT(threads), "N",
     "number of threads; 0, the default: one for each processor", .most = 1024,
     .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},
    {"memory", 'M', CLI_SIZE, AT(memory), "SIZE",
     "memory budget; default: an eighth of the machine's memory", .effect = CLI_NOTHING,
     .traits = CLI_OF_RUNNER},
    {"tmpdir", 0, CLI_STRING, AT(tmpdir), "DIR",
     "folder for data that exceeds memory; default $TMPDIR, else /var/tmp",
     .path = true, .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},
    {"seed", 0, CLI_COUNT, AT(seed), "N", "seed of every random choice; default 0",
     .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},
    {"device", 0, CLI_CUSTOM, 0, "auto|cpu|cuda[:N]",
     "device for kernels; default auto", .parse = parse_device, .effect = CLI_NOTHING},
    {"part", 0, CLI_CUSTOM, 0, "I/N|auto/N",
     "do part I of N, from 0; {part} and {parts} in names of files stand\n"
     "for I and N; auto: I is $SLURM_ARRAY_TASK_ID",
     .parse = parse_part, .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},
    {"part-base", 0, CLI_COUNT, AT(part.base), "N",
     "with --part auto: id of the array's first task; default 0", .effect = CLI_NOTHING,
     .traits = CLI_OF_RUNNER},
    {"input-format", 0, CLI_CHOICE, AT(input_format), NULL,
     "format of the inputs; default auto: by their contents and names",
     .choice = slu_tokens_format_names},
    {"format", 0, CLI_CHOICE, AT(input_format), NULL, "the same as --input-format",
     .choice = slu_tokens_format_names, .effect = CLI_NOTHING},
    {"eos-id", 0, CLI_COUNT, AT(eos_id), "N",
     "files of ids: the id that ends each document"},
    {"token-bytes", 0, CLI_CHOICE, AT(token_bytes), "2|4|8",
     "files of ids without a header: bytes of an id; 8: only for columns\n"
     "of bytes of MDS",
     .choice = token_bytes_names},
    {"vocab-size", 0, CLI_COUNT, AT(vocab_size), "N",
     "files of ids: all ids are below N; default 65536 for ids of two\n"
     "bytes",
     .least = 1},
    {"column", 0, CLI_STRING, AT(column), "NAME",
     "MDS: column with the ids; default: tokens, else input_ids"},
    {"drop-metadata", 0, CLI_STRING, AT(drop_metadata), "FIELDS",
     "leave these metadata fields of documents out, with commas"},
    {"zstd", 'z', CLI_LEVEL, AT(zstd_level), "LEVEL",
     "compress the stream's frames (-z, or -z1 … -z19; default 3)",
     .effect = CLI_BYTES},
    {"no-provenance", 0, CLI_FLAG, AT(no_provenance), NULL,
     "do not add this program to the stream's provenance", .effect = CLI_BYTES},
    {"manifest", 0, CLI_FLAG, AT(manifest), NULL,
     "write FILE.manifest.json beside -o FILE, as --part does; do nothing\n"
     "if the same run has made FILE already",
     .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},
    {"force", 'f', CLI_FLAG, AT(force), NULL,
     "replace an output whose manifest differs, or a stage's work file;\n"
     "allow a terminal",
     .effect = CLI_NOTHING},
    {"facts", 0, CLI_FLAG, AT(facts), NULL,
     "print the options of the program, the files that the given ones\n"
     "name, and the stages, as JSON, and do nothing else",
     .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},
    {"compare", 0, CLI_INPUT, AT(compare), "LIST",
     "print which of the reports in LIST, lines PART FILE, this command\n"
     "would make otherwise, and why, and do nothing else",
     .effect = CLI_NOTHING, .traits = CLI_OF_RUNNER},
    {"stats", 0, CLI_OUTPUT, AT(stats), "FILE",
     "write a report of the run to FILE, as JSON", .effect = CLI_NOTHING,
     .traits = CLI_OF_RUNNER},
    {"progress", 0, CLI_CHOICE, AT(progress), NULL,
     "show progress on standard error; auto, the default: on a terminal",
     .choice = progress_names, .effect = CLI_NOTHING},
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "print no warnings, and no line with the counts", .effect = CLI_NOTHING},
    {"verbose", 'v', CLI_FLAG, AT(verbose), NULL, "print more messages",
     .effect = CLI_NOTHING},
    {"version", 'V', CLI_FLAG, 0, NULL, "print the version", .effect = CLI_NOTHING,
     .traits = CLI_OF_RUNNER},
    {"help", 'h', CLI_FLAG, 0, NULL, "print this help", .effect = CLI_NOTHING,
     .traits = CLI_OF_RUNNER},
    {0},
};

/* ---- values ---- */

static int parse_number(const struct cli_opt *o, const char *s, uint64_t *v,
                        struct slu_err *err)
{
    bool size = o->kind == CLI_SIZE;
    if (o->kind == CLI_LENGTH)
        return cli_parse_length(o->name, s, strlen(s), v, err);
    return slu_number(s, strlen(s), size ? 1024 : 1000, v)
               ? SLU_OK
               : slu_fail(err, SLU_E_USAGE, "--%s: '%s' is not a %s", o->name, s,
                          size ? "size in bytes; write 67108864, 64M or 1.5G"
                               : "number; write 20000000, 20M, 1.5G, 1e9 or 64Ki");
}

static int parse_fraction(const char *s, double *out)
{
    char *end;
    if ((*s < '0' || *s > '9') && *s != '.')
        return -1;
    errno = 0;
    double v = strtod(s, &end);
    if (*end == '%') {
        v /= 100;
        end++;
    }
    if (errno || *end || !(v >= 0 && v <= 1))
        return -1;
    *out = v;
    return 0;
}

static int check_range(const struct cli_opt *o, uint64_t v, struct slu_err *err)
{
    unsigned long long u = v, least = o->least, most = o->most;
    if (u >= least && (!most || u <= most))
        return SLU_OK;
    return most ? slu_fail(err, SLU_E_USAGE, "--%s %llu: expected %llu to %llu",
                           o->name, u, least, most)
                : slu_fail(err, SLU_E_USAGE, "--%s %llu: expected at least %llu",
                           o->name, u, least);
}

static int set(const struct cli_opt *o, void *base, void *opts, const char *v,
               struct slu_err *err)
{
    char *at = (char *)base + o->offset, names[CLI_CHOICES];
    struct cli_files *files;
    uint64_t u;
    int rc;
    switch (o->kind) {
    case CLI_FLAG:
    case CLI_UNFLAG:
        *(bool *)(void *)at = o->kind == CLI_FLAG;
        return SLU_OK;
    case CLI_STRING:
    case CLI_INPUT:
    case CLI_OUTPUT:
        *(const char **)(void *)at = v;
        return SLU_OK;
    case CLI_FILE:
        *(struct cli_file *)(void *)at = (struct cli_file){v, ""};
        return SLU_OK;
    case CLI_FILES:
        files = (struct cli_files *)(void *)at;
        rc =
            slu_grow(&files->item, &files->cap, files->n + 1, sizeof *files->item, err);
        if (!rc)
            files->item[files->n++] = (struct cli_file){v, ""};
        return rc;
    case CLI_MAYBE_COUNT:
        if (!v) {
            *(uint64_t *)(void *)at = UINT64_MAX;
            return SLU_OK;
        }
        /* fall through */
    case CLI_COUNT:
    case CLI_LENGTH:
    case CLI_SIZE:
        rc = parse_number(o, v, &u, err);
        memcpy(at, &u, sizeof u);
        return rc ? rc : check_range(o, u, err);
    case CLI_FRACTION:
        if (parse_fraction(v, (double *)(void *)at))
            return slu_fail(err, SLU_E_USAGE,
                            "--%s: '%s' is not a fraction (write 0.001 or 0.1%%)",
                            o->name, v);
        return SLU_OK;
    case CLI_LEVEL:
        if (v && (!slu_number(v, strlen(v), 1, &u) || u < 1 || u > 19))
            return slu_fail(err, SLU_E_USAGE, "--%s: '%s' is not a level from 1 to 19",
                            o->name, v);
        *(int *)(void *)at = v ? (int)u : 3;
        return SLU_OK;
    case CLI_MAYBE_CHOICE:
        if (!v) {
            *(int *)(void *)at = 0;
            return SLU_OK;
        }
        /* fall through */
    case CLI_CHOICE:
        for (int i = 0; o->choice[i]; i++)
            if (!strcmp(v, o->choice[i])) {
                *(int *)(void *)at = i;
                return SLU_OK;
            }
        return slu_fail(err, SLU_E_USAGE, "--%s: '%s' is not one of %s", o->name, v,
                        cli_choices(o, names));
    case CLI_CUSTOM:
        return o->parse(opts, v, err);
    }
    return SLU_OK;
}

/* ---- the command line ---- */

bool cli_hidden(const struct slu_tool *t, const struct cli_opt *o)
{
    static const char *const of_ids[] = {"input-format", "format",     "eos-id",
                                         "token-bytes",  "vocab-size", "column",
                                         "drop-metadata"};
    if (!strcmp(o->name, "device"))
        return !t->uses_device;
    /* The program has its own option of this name, as shuffle has --format. */
    for (const struct cli_opt *own = t->opt; own && own->name; own++)
        if (!strcmp(own->name, o->name))
            return true;
    for (size_t i = 0; i < sizeof of_ids / sizeof *of_ids && !t->reads_stream; i++)
        if (!strcmp(o->name, of_ids[i]))
            return true;
    return false;
}

bool cli_is_maybe(const struct cli_opt *o)
{
    return o->kind == CLI_LEVEL || o->kind == CLI_MAYBE_COUNT ||
           o->kind == CLI_MAYBE_CHOICE;
}

enum { MAX_OPT = 96 };

struct table {
    const struct cli_opt *opt[MAX_OPT];
    bool common[MAX_OPT];
    struct option lopt[MAX_OPT];
    char sopt[3 * MAX_OPT + 2];
    int n;
};

static void add(struct table *t, const struct cli_opt *o, bool common)
{
    int arg = o->kind == CLI_FLAG || o->kind == CLI_UNFLAG ? no_argument
              : cli_is_maybe(o)                            ? optional_argument
                                                           : required_argument;
    t->opt[t->n] = o;
    t->common[t->n] = common;
    t->lopt[t->n] = (struct option){o->name, arg, NULL, 256 + t->n};
    if (o->letter) {
        size_t k = strlen(t->sopt);
        t->sopt[k++] = o->letter;
        for (int i = 0; i < arg; i++) /* one colon: required, two: optional */
            t->sopt[k++] = ':';
        t->sopt[k] = 0;
    }
    t->n++;
}

static int find(const struct table *t, int c)
{
    for (int i = 0; i < t->n; i++)
        if (c == 256 + i || (t->opt[i]->letter && c == t->opt[i]->letter))
            return i;
    return -1;
}

/* An eighth of the memory that this process may use (DESIGN.md, Memory). */
static uint64_t default_memory(void)
{
    uint64_t m = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t group = slu_cgroup_memory("");
    return (group < m ? group : m) / 8;
}

static uint64_t default_threads(void)
{
    cpu_set_t set_of;
    if (!sched_getaffinity(0, sizeof set_of, &set_of))
        return (uint64_t)CPU_COUNT(&set_of);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint64_t)n : 1;
}

static int finish(struct cli_ctx *ctx, struct slu_err *err)
{
    struct cli_common *c = &ctx->common;
    if (!c->threads)
        c->threads = default_threads();
    bool asked = ctx->memory_given = c->memory != 0;
    if (!asked)
        c->memory = default_memory();
    if (asked && c->memory < ctx->tool->memory_floor)
        return slu_fail(
            err, SLU_E_USAGE, "-M: %s needs at least %lluM", ctx->tool->name,
            (unsigned long long)((ctx->tool->memory_floor + 0xfffff) >> 20));
    if (c->memory < ctx->tool->memory_floor)
        c->memory = ctx->tool->memory_floor;
    if (!c->tmpdir)
        c->tmpdir = getenv("TMPDIR");
    if (!c->tmpdir || !*c->tmpdir)
        c->tmpdir = "/var/tmp";
    if (ctx->tool->spills && access(c->tmpdir, W_OK | X_OK))
        return slu_fail_errno(err, "--tmpdir: %s: no temporary files can be made there",
                              c->tmpdir);
    return SLU_OK;
}

/* The option whose name differs from word[0, n) in one place, by at most two letters in
 * each; NULL: none. */
static const char *nearest(const struct table *t, const char *word, size_t n)
{
    for (int i = 0; i < t->n; i++) {
        const char *name = t->opt[i]->name;
        size_t k = strlen(name), least = n < k ? n : k, most = n < k ? k : n, a = 0,
               b = 0;
        while (a < least && word[a] == name[a])
            a++;
        while (b < least - a && word[n - 1 - b] == name[k - 1 - b])
            b++;
        if (most > 3 && most - a - b <= 2 && t->opt[i]->help)
            return name;
    }
    return NULL;
}

/* Reports the word that getopt_long refused with the return value c. */
static int bad_option(const struct table *t, int c, const char *word,
                      struct slu_err *err)
{
    int i = find(t, optopt);
    if (c == ':')
        return slu_fail(err, SLU_E_USAGE, "%s needs a value; see --help", word);
    if (optopt && i >= 0)
        return slu_fail(err, SLU_E_USAGE, "%s: --%s takes no value; see --help", word,
                        t->opt[i]->name);
    if (optopt)
        return slu_fail(err, SLU_E_USAGE, "-%c is not an option; see --help", optopt);
    size_t n = strcspn(word, "=");
    for (i = 0; i < t->n; i++)
        if (!strncmp(t->opt[i]->name, word + 2, n - 2))
            return slu_fail(err, SLU_E_USAGE,
                            "%.*s stands for more than one option; see --help", (int)n,
                            word);
    const char *near = nearest(t, word + 2, n - 2);
    return slu_fail(err, SLU_E_USAGE, "%.*s is not an option; %s%s", (int)n, word,
                    near ? "use --" : "see --help", near ? near : "");
}

/* Refuses the word behind an option that wants a value if it is an option itself: the
 * value was forgotten. --option=VALUE takes any value. */
static int check_value(const struct table *t, const struct cli_opt *o, const char *word,
                       struct slu_err *err)
{
    if (strncmp(word, "--", 2) != 0)
        return SLU_OK;
    const size_t n = strcspn(word + 2, "=");
    for (int i = 0; i < t->n; i++)
        if (strlen(t->opt[i]->name) == n && !strncmp(t->opt[i]->name, word + 2, n))
            return slu_fail(err, SLU_E_USAGE,
                            "--%s needs a value, %s, and the option %.*s follows it",
                            o->name, o->arg ? o->arg : "VALUE", (int)n + 2, word);
    return SLU_OK;
}

int cli_parse(struct cli_ctx *ctx, int argc, char **argv, struct slu_err *err)
{
    struct table t = {.n = 0};
    int c;
    t.sopt[0] = ':';
    ctx->common.eos_id = SLU_NO_TOKEN;
    for (const struct cli_opt *o = ctx->tool->opt; o && o->name; o++)
        add(&t, o, false);
    for (const struct cli_opt *o = cli_common_opt; o->name; o++)
        if (!cli_hidden(ctx->tool, o))
            add(&t, o, true);
    opterr = optind = 0; /* another program may have been parsed */
    ctx->outcome = CLI_RUN;
    while ((c = getopt_long(argc, argv, t.sopt, t.lopt, NULL)) != -1) {
        int i = find(&t, c);
        if (i < 0 || c == ':')
            return bad_option(&t, c, argv[optind - 1], err);
        if (t.common[i] && !strcmp(t.opt[i]->name, "help")) {
            ctx->outcome = CLI_HELP;
            return SLU_OK;
        }
        if (t.common[i] && !strcmp(t.opt[i]->name, "version")) {
            ctx->outcome = CLI_VERSION;
            return SLU_OK;
        }
        void *base = t.common[i] ? (void *)&ctx->common : ctx->opts;
        int rc = optarg && optarg == argv[optind - 1]
                     ? check_value(&t, t.opt[i], optarg, err)
                     : SLU_OK;
        if (!rc && optarg)
            rc = cli_check_address(ctx, t.opt[i], optarg, err);
        if (!rc)
            rc = set(t.opt[i], base, base, optarg, err);
        if (rc)
            return rc;
        if (!t.common[i] && i < 64)
            ctx->given |= UINT64_C(1) << i;
    }
    ctx->input = (const char *const *)(argv + optind);
    ctx->n_input = (size_t)(argc - optind);
    int rc = SLU_OK;
    for (size_t i = 0; i < ctx->n_input && !rc; i++)
        rc = cli_check_address(ctx, NULL, ctx->input[i], err);
    if (!rc)
        rc = finish(ctx, err);
    return rc ? rc : cli_part_apply(ctx, err);
}

unsigned cli_slots(const struct cli_ctx *ctx, uint64_t share_byte)
{
    /* 8 MiB for each batch */
    uint64_t most = ctx->common.threads + 2, n = share_byte >> 23;
    n = n < most ? n : most;
    return n < 2 ? (ctx->common.threads == 1 ? 1 : 2) : (unsigned)n;
}

bool cli_given(const struct cli_ctx *ctx, const char *name)
{
    const struct cli_opt *o = ctx->tool->opt;

    for (size_t i = 0; o[i].name; i++)
        if (!strcmp(o[i].name, name))
            return ctx->given >> i & 1;
    return false;
}
