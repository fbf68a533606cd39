#include "module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* NODELETE, because such libraries may have threads and exit handlers of their own.
 * DEEPBIND keeps their names apart from ours; the sanitizers do not support it. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define HOW (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)
#else
#define HOW (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | RTLD_DEEPBIND)
#endif

#ifdef SLU_STATIC
/* A program without shared libraries cannot load one that needs the C library. */
const void *slu_module_symbol(const char *object, const char *symbol)
{
    (void)object;
    (void)symbol;
    return NULL;
}
#else
const void *slu_module_symbol(const char *object, const char *symbol)
{
    char path[PATH_MAX], beside[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    void *library = NULL;

    if (n > 0) {
        path[n] = 0;
        char *slash = strrchr(path, '/');
        snprintf(beside, sizeof beside, "%.*s/../lib/%s",
                 slash ? (int)(slash - path) : 0, path, object);
        library = dlopen(beside, HOW);
    }
    if (!library)
        library = dlopen(object, HOW);
    return library ? dlsym(library, symbol) : NULL;
}
#endif
