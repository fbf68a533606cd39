#include "parquet.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libsluice-parquet.so"

/* NODELETE, because Arrow has threads and exit handlers of its own. DEEPBIND keeps its
 * names apart from ours; the sanitizers do not support it. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define HOW (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)
#else
#define HOW (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | RTLD_DEEPBIND)
#endif

#ifdef SLU_STATIC
/* A program without shared libraries cannot load one that needs the C library. */
const struct slu_parquet *slu_parquet_load(void)
{
    return NULL;
}
#else
const struct slu_parquet *slu_parquet_load(void)
{
    char path[PATH_MAX + sizeof "/../lib/" LIBRARY];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    void *library = NULL;
    if (n > 0) {
        path[n] = 0;
        char *slash = strrchr(path, '/');
        snprintf(slash ? slash : path, sizeof "/../lib/" LIBRARY, "/../lib/" LIBRARY);
        library = dlopen(path, HOW);
    }
    if (!library)
        library = dlopen(LIBRARY, HOW);
    const struct slu_parquet *p = library ? dlsym(library, "slu_parquet") : NULL;
    return p && strncmp(p->abi, SLU_PARQUET_ABI, sizeof p->abi) == 0 ? p : NULL;
}
#endif
