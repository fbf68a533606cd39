#include "formats/shards/shard_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/shards/set_out.h"
#include "formats/shards/shard.h"
#include "lib/base/buf.h"

void slu_shard_bucket_name(uint64_t length, char out[32])
{
    if (length == 0)
        snprintf(out, 32, "documents");
    else if (length & (length - 1))
        snprintf(out, 32, "L_%llu", (unsigned long long)length);
    else
        snprintf(out, 32, "D_%d", 63 - __builtin_clzll(length));
}

static bool dot(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* A name that lib/base/io.h uses where files need a name from the start; kill -9 leaves
 * it. */
bool slu_shard_dir_unfinished(const char *name)
{
    size_t n = strlen(name);

    return n > 12 && !strncmp(name, ".sluice-", 8) && !strcmp(name + n - 4, ".tmp");
}

/* Digits only, after the first two characters. */
bool slu_shard_dir_of_bucket(const char *name)
{
    return !strcmp(name, "documents") ||
           ((!strncmp(name, "D_", 2) || !strncmp(name, "L_", 2)) && name[2] &&
            strspn(name + 2, "0123456789") == strlen(name + 2));
}

bool slu_shard_dir_at_top(const char *name)
{
    static const char *const top[] = {"report.json", "manifest.jsonl", "README.md",
                                      "lengths.svg", SLU_SET_PARTIAL};

    for (size_t i = 0; i < sizeof top / sizeof *top; i++)
        if (!strcmp(top[i], name))
            return true;
    return false;
}

/* A file beside the buckets that a format owns. */
static bool format_file(const char *name)
{
    const struct slu_shard_format *f;

    for (unsigned i = 0; (f = slu_shard_format_at(i)); i++)
        if (f->owns_in_set && !f->set_folder && f->owns_in_set(name))
            return true;
    return false;
}

/* A folder beside the buckets that a format owns. */
static bool set_folder(const char *name)
{
    const struct slu_shard_format *f;

    for (unsigned i = 0; (f = slu_shard_format_at(i)); i++)
        if (f->set_folder && !strcmp(f->set_folder, name))
            return true;
    return false;
}

bool slu_shard_dir_has_name(const char *name)
{
    return !strcmp(name, "segments") || slu_shard_dir_of_bucket(name) ||
           slu_shard_dir_at_top(name) || slu_shard_dir_unfinished(name) ||
           set_folder(name) || format_file(name);
}

bool slu_exists_in(const char *dir, const char *name)
{
    struct stat st;
    char *path = NULL;
    bool is = !slu_set_path(&path, dir, name, NULL) && !lstat(path, &st);

    free(path);
    return is;
}

int slu_shard_dir_not_of_before(const char *dir, struct slu_err *err)
{
    static const char *const name[] = {".journal.jsonl", ".parts.jsonl"};

    for (int i = 0; i < 2; i++)
        if (slu_exists_in(dir, name[i]))
            return slu_fail(err, SLU_E_MISMATCH,
                            "%s/%s: an earlier version has begun a set here, and not "
                            "finished it; remove %s, or name another folder",
                            dir, name[i], dir);
    return SLU_OK;
}

static int is_empty(const char *dir, struct slu_err *err)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    bool empty = true, begun = false;

    if (!d)
        return errno == ENOENT ? SLU_OK
                               : slu_fail_errno(err, "%s: cannot be opened", dir);
    while ((e = readdir(d))) {
        begun = begun || !strcmp(e->d_name, SLU_SET_PARTIAL);
        empty = empty && (dot(e->d_name) || !strcmp(e->d_name, SLU_SET_PARTIAL) ||
                          slu_shard_dir_unfinished(e->d_name));
    }
    closedir(d);
    if (empty)
        return SLU_OK;
    return slu_advise(
        err, SLU_ADVISE_REPLACE_SET,
        begun && !slu_exists_in(dir, "report.json")
            ? slu_fail(err, SLU_E_MISMATCH,
                       "%s: a set was begun here, and there are files that are not its "
                       "own; move them away to go on with it",
                       dir)
            : slu_fail(err, SLU_E_MISMATCH,
                       "%s: the folder is not empty; name another folder", dir));
}

int slu_shard_dir_check(const char *dir, const struct slu_shard_format *f, bool replace,
                        struct slu_err *err)
{
    struct slu_filelist old = SLU_FILELIST_INIT;
    int rc = slu_shard_dir_not_of_before(dir, err);

    if (!rc)
        rc = replace ? slu_shard_dir_old(dir, f, NULL, NULL, &old, err)
                     : is_empty(dir, err);
    slu_filelist_release(&old);
    return rc;
}

int slu_shard_dir_not_batch(const char *dir, struct slu_err *err)
{
    const bool stream = slu_exists_in(dir, "stream");
    const char *made = stream ? "stream is in the files" : "set is";
    const char *where = stream ? "stream/*.tks" : "shards";
    return slu_exists_in(dir, "state/made-by")
               ? slu_fail(err, SLU_E_FORMAT,
                          "%s: is a folder of sluice-batch; its %s %s/%s, and "
                          "'sluice-batch status %s' tells how far it is",
                          dir, made, dir, where, dir)
               : SLU_OK;
}

bool slu_shard_dir_begun(const char *dir)
{
    return slu_exists_in(dir, "segments") || slu_exists_in(dir, "manifest.jsonl") ||
           slu_exists_in(dir, SLU_SET_PARTIAL "/journal") ||
           slu_exists_in(dir, SLU_SET_PARTIAL "/mark");
}
