/* compiled_dir.c - the folder of compiled vocabularies: read, written, kept small. */
#include "lib/token/compiled.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/token/bpe.h"

#define NAME_LEN 39 /* 32 digits and SUFFIX */
#define SUFFIX   ".sluice"
#define TEMP     ".tmp-"
#define TEMP_AGE 3600 /* s after which an unfinished file has been left behind */

static void name_of(struct slu_u128 key, char name[NAME_LEN + 1])
{
    slu_u128_hex(key, name);
    memcpy(name + 32, SUFFIX, sizeof SUFFIX);
}

#define NOT_TRUSTED "another user owns it, or its group or all users may write to it"
/* Whether only the user and root can have written the file or folder. */
static bool is_trusted(const struct stat *st)
{
    return (st->st_uid == geteuid() || st->st_uid == 0) &&
           !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static int open_dir(int *fd, const char *dir, struct slu_err *err)
{
    struct stat st;

    *fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return errno == ENOENT ? SLU_EOF : slu_fail_errno(err, "%s", dir);
    if (!fstat(*fd, &st) && is_trusted(&st))
        return SLU_OK;
    close(*fd);
    *fd = -1;
    return slu_fail(err, SLU_E_MISMATCH, "%s: " NOT_TRUSTED, dir);
}

/* ---- reading ---- */

/* Renews the file's time: sweep removes the files with the oldest times. */
static void note_use(int fd, const struct stat *st)
{
    if (st->st_uid == geteuid() && time(NULL) - st->st_mtime > (time_t)COMPILED_AGE)
        (void)!futimens(fd, NULL);
}

/* Whether the file system keeps a mapped file whole after its name is removed. */
static bool is_local(int fd)
{
    static const uint32_t LOCAL[] = {
        0xEF53,     /* ext4 */
        0x58465342, /* XFS */
        0x9123683E, /* btrfs */
        0xF2F52010, /* F2FS */
        0x2FC12FC1, /* ZFS */
        0x01021994, /* tmpfs */
        0x794C7630, /* overlayfs: written files lie on one of the others */
    };
    struct statfs fs;

    for (size_t i = 0; !fstatfs(fd, &fs) && i < sizeof LOCAL / sizeof *LOCAL; i++) {
        if ((uint32_t)fs.f_type == LOCAL[i])
            return true;
    }
    return false;
}

static int fill(struct tok_image *image, int fd, size_t n_byte, struct slu_err *err)
{
    void *p = is_local(fd)
                  ? mmap(NULL, n_byte, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0)
                  : MAP_FAILED;

    if (p != MAP_FAILED) {
        *image = (struct tok_image){p, n_byte, true};
        return SLU_OK;
    }
    *image = (struct tok_image){bpe_image_alloc(n_byte), n_byte, false};
    return image->p ? slu_pread_full(fd, image->p, n_byte, 0, err)
                    : slu_fail_nomem(err, n_byte);
}

void compiled_unload(const struct tok_image *image)
{
    if (image->is_mapped)
        (void)madvise(image->p, image->n_byte, MADV_DONTNEED); /* may fail: advice */
}

void compiled_free(struct tok_image *image)
{
    if (image->is_mapped)
        munmap(image->p, image->n_byte);
    else
        free(image->p);
    *image = (struct tok_image){0};
}

static int read_file(int fd, struct slu_u128 key, struct tok_image *image,
                     struct slu_err *err)
{
    uint64_t head[COMPILED_HEAD / 8];
    struct stat st;
    int rc;

    if (fstat(fd, &st))
        return slu_fail_errno(err, "cannot be read");
    if (!S_ISREG(st.st_mode) || !is_trusted(&st))
        return slu_fail(err, SLU_E_MISMATCH, NOT_TRUSTED);
    /* Before memory is allocated for a size that was not checked. */
    if ((rc = slu_pread_full(fd, head, sizeof head, 0, err)) ||
        (rc = compiled_check_head(head, (uint64_t)st.st_size, key, err)))
        return rc;
    if ((rc = fill(image, fd, (size_t)st.st_size, err)))
        compiled_free(image);
    else
        note_use(fd, &st);
    return rc;
}

int compiled_read(const char *dir, struct slu_u128 key, struct tok_image *image,
                  struct slu_err *err)
{
    char name[NAME_LEN + 1];
    int at, fd, rc = open_dir(&at, dir, err);

    *image = (struct tok_image){0};
    if (rc)
        return rc;
    name_of(key, name);
    fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        rc = errno == ENOENT ? SLU_EOF : slu_fail_errno(err, "%s/%s", dir, name);
    } else {
        rc = read_file(fd, key, image, err);
        if (rc)
            slu_err_at(err, "%s/%s", dir, name);
        close(fd);
    }
    close(at);
    return rc;
}

bool compiled_exists(const char *dir, struct slu_u128 key)
{
    char path[PATH_MAX], name[NAME_LEN + 1];

    name_of(key, name);
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof path && !access(path, F_OK);
}

/* ---- writing ---- */

/* Makes the folder and the one above: ~/.cache may be missing, but not a home. */
static int make_dir(const char *dir, struct slu_err *err)
{
    const char *slash = strrchr(dir, '/');

    if (!mkdir(dir, 0700) || errno == EEXIST)
        return SLU_OK;
    if (errno == ENOENT && slash && slash != dir) {
        char *above = strndup(dir, (size_t)(slash - dir));
        if (!above)
            return slu_fail_nomem(err, strlen(dir));
        (void)!mkdir(above, 0700);
        free(above);
        if (!mkdir(dir, 0700) || errno == EEXIST)
            return SLU_OK;
    }
    return slu_fail_errno(err, "%s: cannot be made", dir);
}

static int write_temp(int at, const char *temp, const void *image, size_t n_byte,
                      struct slu_err *err)
{
    int fd =
        openat(at, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    int rc;

    if (fd < 0)
        return slu_fail_errno(err, "cannot be written");
    rc = slu_write_full(fd, image, n_byte, err);
    /* Not synced: after a crash the checksum shows damage. Some file systems report a
     * full disk at close. */
    if (close(fd) && !rc)
        rc = slu_fail_errno(err, "cannot be written");
    if (rc)
        (void)!unlinkat(at, temp, 0);
    return rc;
}

struct entry {
    char name[NAME_LEN + 1];
    struct timespec used;
};

static int by_use(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec > y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec > y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool is_ours(const char *name)
{
    return strlen(name) == NAME_LEN && !strcmp(name + 32, SUFFIX) &&
           strspn(name, "0123456789abcdef") == 32;
}

/* Removes the files that were not used for longest, and those of writers that died.
 * Files with other names are not ours. Errors do not matter here. */
static void sweep(int at)
{
    int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct entry *e = NULL;
    size_t n = 0, cap = 0;
    const struct dirent *f;
    struct stat st;

    while (d && (f = readdir(d))) {
        bool temp = !strncmp(f->d_name, TEMP, strlen(TEMP));
        if ((!temp && !is_ours(f->d_name)) ||
            fstatat(at, f->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
            continue;
        if (temp && time(NULL) - st.st_mtime > TEMP_AGE)
            (void)!unlinkat(at, f->d_name, 0);
        if (temp || slu_grow(&e, &cap, n + 1, sizeof *e, NULL))
            continue;
        memcpy(e[n].name, f->d_name, sizeof e->name);
        e[n++].used = st.st_mtim;
    }
    if (n > COMPILED_KEEP) {
        qsort(e, n, sizeof *e, by_use);
        for (size_t i = COMPILED_KEEP; i < n; i++)
            (void)!unlinkat(at, e[i].name, 0);
    }
    free(e);
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

int compiled_write(const char *dir, struct slu_u128 key, const void *image,
                   size_t n_byte, struct slu_err *err)
{
    char name[NAME_LEN + 1], temp[sizeof TEMP + 16 + 16];
    uint64_t r = 0;
    int at, rc = make_dir(dir, err);

    if (rc)
        return rc;
    if ((rc = open_dir(&at, dir, err)))
        return rc < 0 ? rc : slu_fail(err, SLU_E_IO, "%s: is gone", dir);
    name_of(key, name);
    if (getrandom(&r, sizeof r, GRND_NONBLOCK) != sizeof r)
        r = (uint64_t)time(NULL) << 24;
    /* With the process id, as two clones of a machine can have equal random numbers. */
    snprintf(temp, sizeof temp, TEMP "%016llx",
             (unsigned long long)(r ^ (uint64_t)getpid()));
    rc = write_temp(at, temp, image, n_byte, err);
    if (!rc && renameat(at, temp, at, name)) {
        rc = slu_fail_errno(err, "cannot be renamed");
        (void)!unlinkat(at, temp, 0);
    }
    if (!rc)
        sweep(at);
    close(at);
    return rc ? slu_err_at(err, "%s/%s", dir, temp) : SLU_OK;
}
