/* line.c - `sluice run`: the programs of a line as threads of one process.
 *
 * Each program is what it is in a pipe, with its own options, threads and messages. In
 * place of a pipe is a joint (lib/stream/joint.h), which passes frames by pointer. All
 * command lines are read before any program starts.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/number.h"
#include "lib/base/thread.h"
#include "lib/stream/joint.h"
#include "tools/sluice/sluice.h"

#define TEXT_BYTE  (UINT64_C(1) << 20)  /* of -f FILE */
#define LEAST_BYTE (UINT64_C(32) << 20) /* of a program */

/* A program of the line, and its thread. */
struct stage {
    struct cli_ctx ctx;
    struct slu_err err;
    struct slu_thread_time time;
    char **argv;
    int argc, rc;
    pthread_t thread;
    bool started;
    bool late; /* it failed because sluice-chat had */
};

struct line {
    struct cli_common common;      /* what `run` was given */
    struct line_words words, logs; /* logs: names of files, one for each program */
    struct stage *stage;
    size_t n;
    struct cli_line shown;
    struct chat {
        char **argv; /* NULL: there is none */
        pid_t pid;
        int fd; /* the end of the pipe into which it writes */
        pthread_t thread;
        bool started;
        _Atomic bool failed;
        int status; /* once the thread has ended */
    } chat;         /* sluice-chat, which may come first: a process of its own */
};

static const struct option options[] = {
    {"threads", 1, NULL, 'T'},  {"memory", 1, NULL, 'M'}, {"tmpdir", 1, NULL, 't'},
    {"progress", 1, NULL, 'p'}, {"file", 1, NULL, 'f'},   {"quiet", 0, NULL, 'q'},
    {"log", 1, NULL, 'l'},      {"help", 0, NULL, 'h'},   {NULL, 0, NULL, 0},
};

static int help(void)
{
    printf("usage: sluice run [-M SIZE] [-T N] [--tmpdir DIR] [--progress WHEN] [-q]\n"
           "                  PROGRAM [OPTION ...] ! PROGRAM [OPTION ...] ! ...\n"
           "       sluice run [OPTION ...] 'PROGRAM ... | PROGRAM ...'\n"
           "       sluice run [OPTION ...] -f FILE\n\n"
           "Runs the programs of a line in one process.\n\n"
           "  -M, --memory=SIZE    of all programs together\n"
           "  -T, --threads=N      of each program\n"
           "  --tmpdir=DIR         for temporary files\n"
           "  --progress=WHEN      auto, always or never\n"
           "  -q, --quiet          no messages but errors\n"
           "  -f, --file=FILE      has the line; # begins a comment\n"
           "  --log=FILE           gets the messages of the first program and its "
           "status;\n"
           "                       given again, of the next one\n\n"
           "Options of a program come before these. See sluice(7).\n");
    return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Says why no program starts; returns the exit status. */
static int not_begun(int rc, const struct slu_err *err)
{
    usage_error("run: %s", err->msg);
    return rc == SLU_E_USAGE ? EXIT_USAGE : EXIT_FAILURE;
}

/* Whether one text is a line, not the name of a program. */
static bool is_text(const char *word)
{
    return strpbrk(word, " \t\n|");
}

static bool progress_of(const char *when, int *progress)
{
    static const char *const names[] = {"auto", "always", "never"};

    for (*progress = 0; *progress < 3; ++*progress)
        if (!strcmp(when, names[*progress]))
            return true;
    return false;
}

/* Reads the options of `run`, and then the words of the line. -1: go on; else the exit
 * status. */
static int read_words(struct line *l, int argc, char **argv, struct slu_err *err)
{
    const char *file = NULL;
    struct slu_buf text = SLU_BUF_INIT;
    int c, rc = SLU_OK;

    opterr = optind = 0;
    while (!rc && (c = getopt_long(argc, argv, "+:T:M:f:qh", options, NULL)) != -1) {
        bool good = true;
        if (c == 'h')
            return help();
        else if (c == 'T')
            good = slu_number(optarg, strlen(optarg), 1000, &l->common.threads);
        else if (c == 'M')
            good = slu_number(optarg, strlen(optarg), 1024, &l->common.memory) &&
                   l->common.memory;
        else if (c == 't')
            l->common.tmpdir = optarg;
        else if (c == 'l')
            rc = line_add(&l->logs, optarg, strlen(optarg), err);
        else if (c == 'f')
            file = optarg;
        else if (c == 'q')
            l->common.quiet = true;
        else if (c == 'p')
            good = progress_of(optarg, &l->common.progress);
        else
            return usage_error("run: %s is not an option of run, or needs a value; see "
                               "'sluice run --help'",
                               argv[optind - 1]);
        if (!good)
            return usage_error("run: %s: '%s' is no value of this option; see 'sluice "
                               "run --help'",
                               argv[optind - 1], optarg);
    }
    argc -= optind;
    argv += optind;
    if (file && argc)
        return usage_error("run: -f %s has the line, and '%s' is given too", file,
                           argv[0]);
    if (file) {
        rc = slu_read_whole(&text, file, TEXT_BYTE, err);
        if (!rc)
            rc = slu_buf_append(&text, "", 1, err);
        if (!rc && strlen((char *)text.data) + 1 < text.len)
            rc = slu_fail(err, SLU_E_USAGE, "it is not text");
        if (!rc)
            rc = line_split(&l->words, (char *)text.data, true, err);
        if (rc == SLU_E_USAGE)
            slu_err_at(err, "%s", file);
    } else if (argc == 1 && is_text(argv[0])) {
        rc = line_split(&l->words, argv[0], false, err);
    } else {
        for (int i = 0; i < argc && !rc; i++)
            rc = line_add(&l->words, argv[i], strlen(argv[i]), err);
    }
    slu_buf_release(&text);
    return rc ? not_begun(rc, err) : -1;
}

/* ---- command lines ---- */

/* Whether the program reads the joint: it has no operand, or "-". */
static bool reads_joint(const struct cli_ctx *ctx)
{
    for (size_t i = 0; i < ctx->n_input; i++)
        if (!strcmp(ctx->input[i], "-"))
            return true;
    return !ctx->n_input;
}

/* Why a program cannot have its place in the line; NULL: it can. */
static const char *misplaced(const struct line *l, size_t i)
{
    const struct cli_ctx *ctx = &l->stage[i].ctx;
    const bool first = i == 0, last = i + 1 == l->n;

    if (ctx->outcome != CLI_RUN || ctx->common.facts || ctx->common.compare)
        return "--help, --version, --facts and --compare are for a program alone";
    if (!first && !ctx->tool->reads_stream)
        return "it reads no stream, so it can only be the first";
    if (!first && !reads_joint(ctx))
        return "it has inputs of its own and does not read the program before it; "
               "leave them out, or add - to them";
    if (!last && ctx->common.output)
        return "it has -o, and a program follows it; leave -o out, or end the line "
               "there";
    if (!last && (ctx->tool->plain_output || !cli_writes(ctx)))
        return "it writes no stream, so it can only be the last";
    return NULL;
}

/* Begins the stages from the words between "!". */
static int split_stages(struct line *l, struct slu_err *err)
{
    size_t n = 1, at = 0;

    for (size_t i = 0; i < l->words.n; i++)
        n += !strcmp(l->words.word[i], "!");
    l->stage = calloc(n, sizeof *l->stage);
    if (!l->stage)
        return slu_fail_nomem(err, n * sizeof *l->stage);
    for (size_t i = 0; i <= l->words.n; i++) {
        if (i < l->words.n && strcmp(l->words.word[i], "!") != 0)
            continue;
        if (i == at)
            return slu_fail(err, SLU_E_USAGE,
                            l->words.n ? "a program is missing beside a ! or |"
                                       : "name the programs, with ! between them");
        struct stage *s = &l->stage[l->n++];
        s->argv = &l->words.word[at];
        s->argc = (int)(i - at);
        if (i < l->words.n) {
            free(l->words.word[i]);
            l->words.word[i] = NULL; /* argv ends so */
        }
        at = i + 1;
    }
    return SLU_OK;
}

/* Gives each program without -M an equal share of what is left of run's. */
static int share_memory(struct line *l, struct slu_err *err)
{
    uint64_t left = l->common.memory, n = 0;

    if (!left)
        return SLU_OK;
    for (size_t i = 0; i < l->n; i++) {
        const struct cli_ctx *ctx = &l->stage[i].ctx;
        if (!ctx->memory_given)
            n++;
        else
            left = ctx->common.memory < left ? left - ctx->common.memory : 0;
    }
    for (size_t i = 0; i < l->n; i++) {
        struct cli_ctx *ctx = &l->stage[i].ctx;
        const uint64_t floor = ctx->tool->memory_floor, mine = n ? left / n : 0;
        if (ctx->memory_given)
            continue;
        if (mine < LEAST_BYTE || mine < floor)
            return slu_fail(
                err, SLU_E_USAGE,
                "-M: %lluM of it are left for %s, which needs %lluM; give "
                "more, or another program less",
                (unsigned long long)(mine >> 20), ctx->tool->name,
                (unsigned long long)((floor > LEAST_BYTE ? floor : LEAST_BYTE) >> 20));
        ctx->common.memory = mine;
    }
    return SLU_OK;
}

/* Opens the files of --log, which append. */
static int open_logs(struct line *l, struct slu_err *err)
{
    if (l->logs.n && (l->logs.n != l->n || l->chat.argv))
        return slu_fail(err, SLU_E_USAGE,
                        "--log: given %zu times; expected once for each of the "
                        "programs, without sluice-chat",
                        l->logs.n);
    for (size_t i = 0; i < l->logs.n; i++) {
        FILE *f = fopen(l->logs.word[i], "ae");
        if (!f)
            return slu_fail_errno(err, "--log: %s", l->logs.word[i]);
        setvbuf(f, NULL, _IOLBF, 0);
        l->stage[i].ctx.messages = f;
    }
    return SLU_OK;
}

/* Reads all command lines. -1: go on; else the exit status, and a line was printed. */
static int read_lines(struct line *l, struct slu_err *err)
{
    int rc = split_stages(l, err);

    if (rc)
        return not_begun(rc, err);
    cli_process("sluice", (unsigned)l->n);
    const struct program *first = program_find(l->stage[0].argv[0]);
    if (l->n > 1 && first && !strcmp(first->name, "sluice-chat")) {
        l->chat.argv = l->stage[0].argv;
        memmove(l->stage, l->stage + 1, --l->n * sizeof *l->stage);
    }
    for (size_t i = 0; i < l->n; i++) {
        struct stage *s = &l->stage[i];
        const struct program *p = program_find(s->argv[0]);
        if (!p)
            return usage_unknown(s->argv[0]);
        if (!p->tool)
            return usage_error("run: %s cannot be here; a line may begin with "
                               "sluice-chat",
                               p->name);
        s->ctx.tool = p->tool;
        s->ctx.common = l->common;
        s->ctx.common.memory = 0;
        s->ctx.line = &l->shown;
        rc = cli_begin(&s->ctx, s->argc, s->argv, &s->err);
        if (rc)
            return cli_finish(&s->ctx, rc, &s->err);
    }
    for (size_t i = 0; i < l->n; i++) {
        const char *why = misplaced(l, i);
        if (why)
            return usage_error("run: %s: %s", l->stage[i].ctx.tool->name, why);
    }
    rc = open_logs(l, err);
    if (!rc)
        rc = share_memory(l, err);
    struct cli_ctx **all = calloc(l->n, sizeof *all);
    if (!rc && !all)
        rc = slu_fail_nomem(err, l->n * sizeof *all);
    for (size_t i = 0; i < l->n && all; i++)
        all[i] = &l->stage[i].ctx;
    if (!rc)
        rc = cli_outputs_apart(all, l->n, err);
    free(all);
    return rc ? not_begun(rc, err) : -1;
}

/* ---- sluice-chat ---- */

/* Waits for it. Only then the pipe ends, so that what reads it cannot take the text of one
 * that failed for all of it. */
static void *wait_chat(void *arg)
{
    struct chat *c = arg;
    int status = 0;

    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    c->status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
    c->failed = c->status != 0;
    close(c->fd);
    return NULL;
}

/* Starts it; its output becomes the standard input of this process. */
static int start_chat(struct chat *c, struct slu_err *err)
{
    char path[PATH_MAX];
    int fd[2];

    if (!script_path("sluice-chat", path))
        return slu_fail(err, SLU_E_IO, "there is no sluice-chat beside sluice");
    if (pipe2(fd, O_CLOEXEC) < 0)
        return slu_fail_errno(err, "a pipe");
    posix_spawn_file_actions_t does;
    posix_spawn_file_actions_init(&does);
    posix_spawn_file_actions_adddup2(&does, fd[1], STDOUT_FILENO);
    errno = posix_spawn(&c->pid, path, &does, NULL, c->argv, environ);
    posix_spawn_file_actions_destroy(&does);
    int rc = errno ? slu_fail_errno(err, "%s", path) : SLU_OK;
    if (!rc && dup2(fd[0], STDIN_FILENO) < 0)
        rc = slu_fail_errno(err, "standard input");
    close(fd[0]);
    c->fd = fd[1];
    errno = rc ? 0 : pthread_create(&c->thread, NULL, wait_chat, c);
    c->started = !rc && !errno;
    return errno ? slu_fail_errno(err, "a thread for sluice-chat") : rc;
}

/* Ends its pipe, for the program that read it has ended. */
static void leave_chat(void)
{
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        dup2(fd, STDIN_FILENO);
        close(fd);
    }
}

/* ---- the run ---- */

static void *run_stage(void *arg)
{
    struct stage *s = arg;

    s->ctx.time = &s->time;
    slu_thread_count(&s->time);
    s->rc = cli_carry_out(&s->ctx, &s->err);
    s->late = s->rc && s->ctx.before_failed && *s->ctx.before_failed;
    if (s->ctx.before_failed)
        leave_chat();
    /* A program that failed, or needed no more, may have left its joints open. */
    if (s->ctx.out)
        slu_joint_end(s->ctx.out);
    if (s->ctx.in)
        slu_joint_close(s->ctx.in);
    return NULL;
}

static int start(struct line *l, struct slu_err *err)
{
    int rc = SLU_OK;

    for (size_t i = 0; i + 1 < l->n && !rc; i++) {
        rc = slu_joint_new(&l->stage[i].ctx.out, err);
        l->stage[i + 1].ctx.in = l->stage[i].ctx.out;
    }
    if (!rc && l->chat.argv) {
        rc = start_chat(&l->chat, err);
        l->stage[0].ctx.before_failed = &l->chat.failed;
    }
    for (size_t i = 0; i < l->n && !rc; i++) {
        struct stage *s = &l->stage[i];
        errno = pthread_create(&s->thread, NULL, run_stage, s);
        if (errno)
            rc = slu_fail_errno(err, "a thread for %s", s->ctx.tool->name);
        else
            s->started = true;
    }
    return rc;
}

/* Waits for all, and prints the last line of each. Returns the exit status: that of the
 * first program in the line that failed, and only that one speaks. A log ends with the
 * status of its program, up to that one. */
static int finish(struct line *l)
{
    int status = EXIT_SUCCESS;

    for (size_t i = 0; i < l->n; i++)
        if (l->stage[i].started)
            pthread_join(l->stage[i].thread, NULL);
    if (l->chat.started) {
        if (!l->stage[0].started)
            leave_chat();
        pthread_join(l->chat.thread, NULL);
        /* It also fails if what reads it has failed before it ended. */
        status = l->stage[0].rc && !l->stage[0].late ? 0 : l->chat.status;
    }
    for (size_t i = 0; i < l->n && !status; i++) {
        struct stage *s = &l->stage[i];
        const bool stopped = s->rc && s->ctx.out && slu_joint_refused(s->ctx.out);
        if (s->started && !stopped)
            status = cli_finish(&s->ctx, s->rc, &s->err);
        if (s->ctx.messages)
            fprintf(s->ctx.messages, "sluice: run: %s: status %d\n", s->ctx.tool->name,
                    status);
    }
    return status;
}

int line_main(int argc, char **argv)
{
    struct slu_err err = SLU_ERR_INIT;
    struct line l = {.shown.read = -1};

    int status = read_words(&l, argc, argv, &err);
    if (status < 0)
        status = read_lines(&l, &err);
    if (status < 0) {
        int rc = start(&l, &err);
        if (rc) { /* those that run end by themselves */
            for (size_t i = 0; i < l.n; i++)
                if (l.stage[i].ctx.out && !l.stage[i + 1].started) {
                    slu_joint_end(l.stage[i].ctx.out);
                    slu_joint_close(l.stage[i].ctx.out);
                }
            fprintf(stderr, "sluice: run: %s\n", err.msg);
        }
        status = finish(&l);
        status = rc && !status ? EXIT_FAILURE : status;
    }
    for (size_t i = 0; i < l.n; i++) {
        struct slu_joint *out = l.stage[i].ctx.out;
        if (l.stage[i].ctx.tool)
            cli_release(&l.stage[i].ctx);
        if (l.stage[i].ctx.messages)
            fclose(l.stage[i].ctx.messages);
        slu_joint_free(out);
    }
    line_release(&l.words);
    line_release(&l.logs);
    free(l.stage);
    return status;
}
