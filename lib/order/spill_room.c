/* How much of a temporary file may stay in the page cache: slu_spill_cache_room. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spill_io.h"

/* UINT64_MAX: there is no such file, or no number in it ("max"). */
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

static uint64_t available(void)
{
    char line[256];
    uint64_t kib = 0;
    FILE *f = fopen("/proc/meminfo", "re");

    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "MemAvailable:", 13))
            kib = strtoull(line + 13, NULL, 10);
    if (f)
        fclose(f);
    return kib << 10;
}

/* The least limit of the control group `at` and of those above it. */
static uint64_t group_limit(const char *mount, char *at, const char *name)
{
    uint64_t least = UINT64_MAX;
    char path[4400];

    for (;;) {
        snprintf(path, sizeof path, "%s%s/%s", mount, at, name);
        uint64_t v = read_number(path);
        least = v < least ? v : least;
        char *slash = strrchr(at, '/');
        if (!slash || !*at)
            return least;
        *slash = 0;
    }
}

static uint64_t limit(void)
{
    uint64_t least = UINT64_MAX, v = UINT64_MAX;
    char line[4096];
    FILE *f = fopen("/proc/self/cgroup", "re");

    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *kind = strchr(line, ':'), *at = kind ? strchr(kind + 1, ':') : NULL;
        if (!at)
            continue;
        *at++ = 0;
        if (!kind[1])
            v = group_limit("/sys/fs/cgroup", at, "memory.max");
        else if (!strcmp(kind + 1, "memory"))
            v = group_limit("/sys/fs/cgroup/memory", at, "memory.limit_in_bytes");
        least = v < least ? v : least;
    }
    if (f)
        fclose(f);
    return least;
}

uint64_t slu_spill_cache_room(void)
{
    uint64_t room = available() / 2, group = limit() / 4;

    return group < room ? group : room;
}
