#include "cgroup.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PATH = 4096 };

/* Returns the number in a file; UINT64_MAX: no such file, or no number ("max"). */
static uint64_t read_number(const char *path)
{
    uint64_t v = UINT64_MAX;
    FILE *f = fopen(path, "re");

    if (f && fscanf(f, "%" SCNu64, &v) != 1)
        v = UINT64_MAX;
    if (f)
        fclose(f);
    return v;
}

/* Returns the least limit of the group `at` and of the groups above it, up to the
 * mount. Shortens `at`. */
static uint64_t least_above(const char *root, const char *mount, char *at,
                            const char *file)
{
    uint64_t least = UINT64_MAX;
    char path[2 * MAX_PATH + 64];

    for (;;) {
        snprintf(path, sizeof path, "%s%s%s/%s", root, mount, at, file);
        uint64_t v = read_number(path);
        least = v < least ? v : least;
        char *slash = strrchr(at, '/');
        if (!slash || !*at)
            return least;
        *slash = 0;
    }
}

/* Whether "memory" is one of the controllers in a list like "cpuset,memory". */
static bool has_memory(const char *list)
{
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == 6 && !memcmp(p, "memory", 6))
            return true;
    return false;
}

/* Returns the limit of a line of /proc/self/cgroup: ID:CONTROLLERS:GROUP, without
 * controllers for version 2. */
static uint64_t limit_of_line(const char *root, char *line)
{
    line[strcspn(line, "\n")] = 0;
    char *list = strchr(line, ':'), *at = list ? strchr(list + 1, ':') : NULL;
    if (!at)
        return UINT64_MAX;
    list++;
    *at++ = 0;
    if (!*list)
        return least_above(root, "/sys/fs/cgroup", at, "memory.max");
    return has_memory(list)
               ? least_above(root, "/sys/fs/cgroup/memory", at, "memory.limit_in_bytes")
               : UINT64_MAX;
}

uint64_t slu_cgroup_memory(const char *root)
{
    uint64_t least = UINT64_MAX;
    char line[MAX_PATH];

    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *f = fopen(line, "re");
    while (f && fgets(line, sizeof line, f)) {
        uint64_t v = limit_of_line(root, line);
        least = v < least ? v : least;
    }
    if (f)
        fclose(f);
    return least;
}
