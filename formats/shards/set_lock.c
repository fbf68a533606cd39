/* set_lock.c - locks by link(2): a file that only one process can make, with its host
 * and number in it. flock() fails on many NFS mounts. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/shards/set_out.h"

enum { NOTE = 128, PAUSE_US = 20000 };

/* Whether the note is "HOST PID" of a living process; of another host: not known. */
static bool is_living(const char *note, bool remote)
{
    char host[65] = "";
    gethostname(host, sizeof host - 1);
    size_t n = strlen(host);

    if (strncmp(note, host, n) || note[n] != ' ')
        return *note && remote;
    long pid = strtol(note + n, NULL, 10);
    return pid > 0 && pid != (long)getpid() && (!kill((pid_t)pid, 0) || errno == EPERM);
}

/* Reads the owner's note; false: there is no such file. */
static bool read_note(const char *path, char note[NOTE])
{
    FILE *f = fopen(path, "re");
    const bool there = f != NULL;
    size_t n = there ? fread(note, 1, NOTE - 1, f) : 0;

    note[n] = 0;
    note[strcspn(note, "\n")] = 0;
    if (there)
        (void)fclose(f);
    return there;
}

/* Removes the lock of a dead process, unless another process does or did. */
static void break_lock(const char *path, const char *mine, const char *owner)
{
    char guard[4096], note[NOTE];

    if (snprintf(guard, sizeof guard, "%s.stale", path) >= (int)sizeof guard)
        return;
    if (link(mine, guard)) {
        if (read_note(guard, note) && !is_living(note, false))
            unlink(guard); /* of a process that was killed here */
        return;
    }
    if (read_note(path, note) && !strcmp(note, owner))
        unlink(path);
    unlink(guard);
}

static int try_lock(const char *path, const char *mine, unsigned patience, bool remote,
                    struct slu_err *err)
{
    char owner[NOTE] = "";

    for (unsigned i = 0;; i++) {
        if (!link(mine, path))
            return SLU_OK;
        if (errno == ENOENT)
            return SLU_EOF; /* the folder went while we waited */
        if (errno != EEXIST)
            return slu_fail_errno(err, "%s: cannot be made", path);
        if (!read_note(path, owner))
            continue;
        if (!is_living(owner, !remote)) {
            break_lock(path, mine, owner);
            if (i < patience + 1000)
                continue;
        }
        if (i >= patience)
            break;
        usleep(PAUSE_US);
    }
    const char *pid = strchr(owner, ' ');
    return slu_fail(err, SLU_E_MISMATCH,
                    "%.*s: another shuffle is writing here (process %s on %.*s); wait "
                    "for it, or, if it is gone, remove %s",
                    (int)(strrchr(path, '/') - path), path, pid ? pid + 1 : "?",
                    (int)(pid ? pid - owner : 1), pid ? owner : "?", path);
}

int slu_set_lock(const char *path, unsigned patience, bool remote, struct slu_err *err)
{
    char host[65] = "", note[NOTE], mine[4096];
    gethostname(host, sizeof host - 1);
    int n = snprintf(note, sizeof note, "%s %ld\n", host, (long)getpid());
    const char *slash = strrchr(path, '/');

    if (snprintf(mine, sizeof mine, "%.*s/locking-%s-%ld", (int)(slash - path), path,
                 host, (long)getpid()) >= (int)sizeof mine)
        return slu_fail(err, SLU_E_IO, "%s: name too long", path);
    FILE *f = fopen(mine, "we");
    if (!f)
        return errno == ENOENT ? SLU_EOF
                               : slu_fail_errno(err, "%s: cannot be made", mine);
    bool ok = fwrite(note, 1, (size_t)n, f) == (size_t)n;
    ok = !fclose(f) && ok;
    int rc = ok ? try_lock(path, mine, patience, remote, err)
                : slu_fail_errno(err, "%s: cannot be written", mine);
    int why = errno;
    unlink(mine);
    errno = why;
    return rc;
}

int slu_set_no_parts(const char *at, bool remote, struct slu_err *err)
{
    DIR *d = opendir(at);
    const struct dirent *e;
    char path[4096], note[NOTE];
    int rc = SLU_OK;

    while (d && !rc && (e = readdir(d)))
        if (!strncmp(e->d_name, "lock.", 5) && !strstr(e->d_name, ".stale") &&
            snprintf(path, sizeof path, "%s/%s", at, e->d_name) < (int)sizeof path &&
            read_note(path, note) && is_living(note, remote))
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s: other processes are writing here (host and process %s); "
                          "wait for them, or, if that is gone, remove %s",
                          at, note, path);
    if (d)
        closedir(d);
    return rc;
}
