/* main.c - a run of a program: everything around slu_tool.run. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "tools/cli/cli_manifest.h"
#include "tools/cli/cli_private.h"

enum { EXIT_STOPPED = 75 };

/* Opens closed standard descriptors, so that no file that we open becomes standard
 * input, output or error by accident. Reads and writes on them then fail with EBADF
 * instead of losing data silently. */
static void open_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static const char *running; /* for `stopped` */

/* An output gets its final name only when it is complete (lib/base/io.h), so an
 * unfinished output leaves no file. Complete shards of a set stay, and the next run of
 * shuffle continues the set. */
static void stopped(int signo)
{
    static const char line[] =
        "stopped by a signal; what was not finished left no file\n";
    const char *name = running;
    (void)!write(STDERR_FILENO, name, strlen(name));
    (void)!write(STDERR_FILENO, ": ", 2);
    (void)!write(STDERR_FILENO, line, sizeof line - 1);
    (void)signo;
    slu_out_unlink_temps();
    _exit(EXIT_STOPPED);
}

/* For a signal from the keyboard, or from a terminal that is gone: ends the process by
 * the same signal, so that the shell sees the cause.
 */
static void interrupted(int signo)
{
    slu_out_unlink_temps();
    signal(signo, SIG_DFL);
    raise(signo);
}

static void set_signals(void)
{
    static const int from_user[] = {SIGINT, SIGHUP};
    struct sigaction sa = {.sa_handler = stopped};
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN); /* a write past ulimit -f then fails with EFBIG */
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGUSR1, &sa, NULL);
    sa.sa_handler = interrupted;
    for (size_t i = 0; i < sizeof from_user / sizeof *from_user; i++) {
        struct sigaction was;
        if (!sigaction(from_user[i], NULL, &was) && was.sa_handler == SIG_DFL)
            sigaction(from_user[i], &sa, NULL); /* keeps the signals ignored that
                                                   nohup ignores */
    }
}

/* Flushes stdout, so that a full disk or /dev/full is an error. */
static int flush_stdout(struct slu_err *err)
{
    if (fflush(stdout) || ferror(stdout))
        return slu_fail_errno(err, "standard output: cannot be written");
    return SLU_OK;
}

/* If a device was asked for by name, warns that no kernel ran there. */
static void warn_of_idle_device(struct cli_ctx *ctx)
{
    if (ctx->tool->uses_device && ctx->common.device == SLU_DEVICE_CUDA &&
        !(ctx->device && ctx->device->taken))
        cli_warn(ctx, "--device cuda: no kernel had work to do, the CPU did all of it");
}

void cli_process(const char *name, unsigned n_program)
{
    running = name;
    open_standard_fds();
    set_signals();
    /* Large blocks return to the system when they are freed, because -M limits the
     * memory in use. */
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    mallopt(M_ARENA_MAX, 4 * (int)n_program);
}

int cli_begin(struct cli_ctx *ctx, int argc, char **argv, struct slu_err *err)
{
    const struct slu_tool *tool = ctx->tool;

    ctx->opts = calloc(1, tool->opts_size ? tool->opts_size : 1);
    if (!ctx->opts)
        return slu_fail_nomem(err, tool->opts_size);
    if (tool->defaults)
        tool->defaults(ctx->opts);
    return cli_parse(ctx, argc, argv, err);
}

/* Runs the program, with what comes before and behind it. */
static int run(struct cli_ctx *ctx, struct slu_err *err)
{
    bool skip = false;
    int rc = cli_outputs_check(ctx, err);

    if (!rc)
        rc = cli_report_open(ctx, err);
    if (!rc)
        rc = cli_manifest_begin(ctx, &skip, err);
    if (!rc && !skip) {
        rc = ctx->tool->run(ctx, err);
        if (!rc) {
            cli_report_input(ctx);
            warn_of_idle_device(ctx);
        }
        if (!rc)
            rc = cli_manifest_end(ctx, err);
    }
    return rc ? rc : cli_report_write(ctx, err);
}

int cli_carry_out(struct cli_ctx *ctx, struct slu_err *err)
{
    int rc = SLU_OK;

    if (ctx->outcome == CLI_HELP)
        cli_print_help(ctx->tool, stdout);
    else if (ctx->outcome == CLI_VERSION)
        printf("%s (sluice) %s\n", ctx->tool->name, SLU_VERSION);
    else if (ctx->common.facts)
        rc = cli_print_facts(ctx, err);
    else if (ctx->common.compare)
        rc = cli_compare(ctx, err);
    else
        rc = run(ctx, err);
    return rc ? rc : flush_stdout(err);
}

int cli_finish(struct cli_ctx *ctx, int rc, const struct slu_err *err)
{
    const bool asked = ctx->common.facts || ctx->common.compare;

    if (rc)
        cli_error(ctx, err);
    else if (!asked)
        cli_summary(ctx);
    return !rc ? EXIT_SUCCESS : rc == SLU_E_USAGE ? EXIT_USAGE : EXIT_FAILURE;
}

void cli_release(struct cli_ctx *ctx)
{
    cli_input_free(ctx);
    cli_report_free(ctx);
    cli_manifest_free(ctx);
    cli_outputs_free(ctx);
    cli_names_release(&ctx->expanded);
    if (ctx->tool->release && ctx->opts)
        ctx->tool->release(ctx->opts);
    free(ctx->opts);
}

int cli_main(const struct slu_tool *tool, int argc, char **argv)
{
    struct slu_err err = SLU_ERR_INIT;
    struct cli_ctx ctx = {.tool = tool};

    cli_process(tool->name, 1);
    int rc = cli_begin(&ctx, argc, argv, &err);
    if (!rc)
        rc = cli_carry_out(&ctx, &err);
    const int status = cli_finish(&ctx, rc, &err);
    cli_release(&ctx);
    return status;
}
