/* sluice.c - main(): all programs are one executable, `sluice`. A link to it by the name
 * of a program is that program, as is `sluice PROGRAM`. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "tools/sluice/sluice.h"

/* The programs in the order of the data's way, and the scripts. */
static const struct program programs[] = {
    {"tokenize", &tokenize_tool, NULL},
    {"dedup", &dedup_tool, NULL},
    {"choose", &choose_tool, NULL},
    {"decompose", &decompose_tool, NULL},
    {"pack", &pack_tool, NULL},
    {"shuffle", &shuffle_tool, NULL},
    {"forget", &forget_tool, NULL},
    {"schedule", &schedule_tool, NULL},
    {"inspect", &inspect_tool, NULL},
    {"sluice-batch", NULL,
     "Runs the whole line as jobs of a cluster or of this machine."},
    {"sluice-chat", NULL,
     "Turns dialogues into text by a chat template, with the spans of it that are "
     "trained on."},
};
enum { N_PROGRAM = sizeof programs / sizeof *programs };

int usage_error(const char *fmt, ...)
{
    char line[PATH_MAX + 256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    slu_printable(line);
    fprintf(stderr, "sluice: %s\n", line);
    return EXIT_USAGE;
}

const struct program *program_find(const char *name)
{
    for (int i = 0; i < N_PROGRAM; i++) {
        const char *known = programs[i].name;
        const bool script = !programs[i].tool; /* `sluice batch` is sluice-batch */
        if (!strcmp(name, known) ||
            (script && !strcmp(name, known + strlen("sluice-"))))
            return &programs[i];
    }
    return NULL;
}

int usage_unknown(const char *name)
{
    char list[256] = "";
    for (int i = 0; i < N_PROGRAM; i++) {
        const size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i ? " " : "", programs[i].name);
    }
    return usage_error("'%s' is not a program of sluice; the programs are: %s", name,
                       list);
}

/* Whether the name is `tail`, behind the prefix that an installation may have. */
static bool ends_with(const char *name, const char *tail)
{
    const size_t n = strlen(name), m = strlen(tail);

    return n >= m && !strcmp(name + n - m, tail);
}

/* Sets path to the executable's own; returns where its name begins. NULL: too long. */
static char *own_path(char path[PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

    if (n <= 0)
        return NULL;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    return slash ? slash + 1 : NULL;
}

bool script_path(const char *name, char path[PATH_MAX])
{
    char *at = own_path(path);
    const struct dirent *e;

    if (!at)
        return false;
    *at = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    while ((e = readdir(dir)) && !ends_with(e->d_name, name))
        ;
    const size_t room = PATH_MAX - (size_t)(at - path);
    const int len = e ? snprintf(at, room, "%s", e->d_name) : -1;
    closedir(dir);
    return len >= 0 && (size_t)len < room;
}

static void print_help(void)
{
    printf("usage: sluice PROGRAM [OPTION ...] [FILE ...]\n"
           "       sluice run [OPTION ...] PROGRAM ... ! PROGRAM ... ! ...\n"
           "       sluice help [PROGRAM]\n"
           "       sluice --link DIR\n\n"
           "Runs a program of sluice, or a line of programs in one process.\n\n");
    for (int i = 0; i < N_PROGRAM; i++) {
        const struct program *p = &programs[i];
        printf("  %-14s ", p->name);
        const char *s = p->tool ? p->tool->summary : p->summary, *bracket;
        for (; (bracket = strstr(s, " (")); s = strchr(bracket, ')') + 1)
            printf("%.*s", (int)(bracket - s), s); /* the rest is for its own --help */
        puts(s);
    }
    printf("\nSee sluice(7).\n");
}

static int make_links(const char *dir)
{
    char target[PATH_MAX], link[PATH_MAX], real_target[PATH_MAX], real_link[PATH_MAX];
    struct stat st;
    if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
        return usage_error("--link: %s is not a folder", dir);
    for (int make = 0; make < 2; make++) /* all or none */
        for (int i = 0; i < N_PROGRAM; i++) {
            const char *name = programs[i].name;
            const bool there =
                programs[i].tool ? own_path(target) != NULL : script_path(name, target);
            if (!there ||
                snprintf(link, sizeof link, "%s/%s", dir, name) >= (int)sizeof link)
                return usage_error("--link: %s/%s: the path is too long, or there is "
                                   "no %s beside sluice",
                                   dir, name, name);
            if (!make) {
                if (access(link, F_OK) < 0)
                    continue;
                if (!realpath(link, real_link) || !realpath(target, real_target) ||
                    strcmp(real_link, real_target))
                    return usage_error("--link: %s exists and is not sluice's; "
                                       "nothing was linked",
                                       link);
            } else if ((unlink(link) < 0 && errno != ENOENT) ||
                       symlink(target, link) < 0) {
                usage_error("--link: %s: %s", link, strerror(errno));
                return EXIT_FAILURE;
            }
        }
    return EXIT_SUCCESS;
}

static int run(const struct program *p, int argc, char **argv)
{
    if (p->tool)
        return cli_main(p->tool, argc, argv);
    char path[PATH_MAX];
    if (!script_path(p->name, path))
        return usage_error("%s: there is none beside sluice", p->name);
    argv[0] = path;
    execv(path, argv);
    usage_error("%s: %s", path, strerror(errno));
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    const char *name = argc ? argv[0] : "sluice", *slash = strrchr(name, '/');
    const struct program *p;
    for (int i = 0; i < N_PROGRAM; i++)
        if (programs[i].tool && ends_with(slash ? slash + 1 : name, programs[i].name))
            return cli_main(programs[i].tool, argc, argv);

    const char *command = argc > 1 ? argv[1] : "help";
    if (!strcmp(command, "--version") || !strcmp(command, "-V"))
        return printf("sluice %s\n", SLU_VERSION) < 0 || fflush(stdout) ? EXIT_FAILURE
                                                                        : EXIT_SUCCESS;
    if (!strcmp(command, "run"))
        return line_main(argc - 1, argv + 1);
    if (!strcmp(command, "--link")) {
        if (argc != 3)
            return usage_error("--link wants a folder for the links, one that $PATH "
                               "has");
        return make_links(argv[2]);
    }
    if (!strcmp(command, "help") || !strcmp(command, "--help") ||
        !strcmp(command, "-h")) {
        if (argc > 2) {
            char *help[] = {argv[2], (char[]){"--help"}, NULL};
            p = program_find(argv[2]);
            return p ? run(p, 2, help) : usage_unknown(argv[2]);
        }
        print_help();
        return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    p = program_find(command);
    return p ? run(p, argc - 1, argv + 1) : usage_unknown(command);
}
