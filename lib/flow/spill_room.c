/* spill_room.c - slu_spill_cache_room: how many bytes of a temporary file may stay in
 * the page cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cgroup.h"
#include "spill_io.h"

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

uint64_t slu_spill_cache_room(void)
{
    uint64_t room = available() / 2, group = slu_cgroup_memory("") / 4;

    return group < room ? group : room;
}
