/* spend FILE COMMAND...: what a command takes, seen from a parent that is small, as the
 * resident set of whoever forks is counted too: a line of processor seconds, resident
 * KiB and user instructions (-1 where they cannot be counted). */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Opens a counter of children's instructions from their exec on; -1 if the machine or
 * its settings do not allow it. */
static int counter(void)
{
    struct perf_event_attr a = {.type = PERF_TYPE_HARDWARE,
                                .size = sizeof a,
                                .config = PERF_COUNT_HW_INSTRUCTIONS,
                                .inherit = 1,
                                .disabled = 1,
                                .enable_on_exec = 1,
                                .exclude_kernel = 1,
                                .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    struct rusage use;
    int64_t n = -1;
    int status;
    FILE *f = argc > 2 ? fopen(argv[1], "we") : NULL;

    if (!f) {
        fprintf(stderr, "spend FILE COMMAND...: cannot write FILE\n");
        return 2;
    }
    int fd = counter();
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        fprintf(stderr, "spend: %s: %s\n", argv[2], strerror(errno));
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &use) != child)
        return 1;
    if (fd < 0 || read(fd, &n, sizeof n) != sizeof n)
        n = -1;
    fprintf(f, "%.6f %ld %lld\n", seconds(use.ru_utime) + seconds(use.ru_stime),
            use.ru_maxrss, (long long)n);
    if (fclose(f))
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
