/* folder.h - for fuzzers of what lies in files: a folder of the process's own, and
 * inputs that are several files.
 *
 * An input of several files is, for each but the last, u16 its length, then its bytes;
 * the last has what is left. A length past the end takes what is there.
 */
#ifndef SLU_FUZZ_FOLDER_H
#define SLU_FUZZ_FOLDER_H

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void must(bool good)
{
    if (!good)
        abort();
}

static inline int remove_below(const char *path, const struct stat *st, int what,
                               struct FTW *at)
{
    (void)st;
    (void)what;
    return at->level ? remove(path) : 0;
}

static inline void remove_folder(void);

/* Made once a process, in memory where there is such a file system; removed when it
 * ends in peace. */
static inline const char *folder(void)
{
    static char path[64];
    if (!*path) {
        snprintf(path, sizeof path, "%s/sluice-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
        must(mkdtemp(path) != NULL && !atexit(remove_folder));
    }
    return path;
}

static inline void clear_folder(void)
{
    must(nftw(folder(), remove_below, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

static inline void remove_folder(void)
{
    clear_folder();
    rmdir(folder());
}

/* folder()/name, in one of a few buffers. */
static inline const char *in_folder(const char *name)
{
    static char path[8][256];
    static unsigned at;
    char *p = path[at++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", folder(), name);
    return p;
}

static inline void put_file(const char *name, const uint8_t *p, size_t n)
{
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && (!n || write(fd, p, n) == (ssize_t)n) && !close(fd));
}

/* The next file of the input. */
static inline size_t next_file(const uint8_t **p, const uint8_t **data, size_t *n,
                               bool last)
{
    size_t len = *n;
    if (!last) {
        len = *n < 2 ? 0 : (size_t)((*data)[0] | (*data)[1] << 8);
        *data += *n < 2 ? *n : 2;
        *n -= *n < 2 ? *n : 2;
        len = len < *n ? len : *n;
    }
    *p = *data;
    *data += len;
    *n -= len;
    return len;
}

#endif
