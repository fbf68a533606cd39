/* nfs.c - preloaded: every file system says that it is NFS, and mapping a file with its
 * pages, as compiled vocabularies are elsewhere, ends the program. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

int fstatfs(int fd, struct statfs *fs)
{
    (void)fd;
    *fs = (struct statfs){.f_type = 0x6969};
    return 0;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
    if (fd >= 0 && (flags & MAP_POPULATE))
        abort();
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}
