#include "lib/flow/workfile_stage.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int slu_work_path(const char *folder, const char *name, uint64_t part, uint64_t of,
                  char **path, struct slu_err *err)
{
    int n = of ? asprintf(path, "%s/%s.%llu-of-%llu", folder, name,
                          (unsigned long long)part, (unsigned long long)of)
               : asprintf(path, "%s/%s", folder, name);
    if (n >= 0)
        return SLU_OK;
    *path = NULL;
    return slu_fail_nomem(err, strlen(folder) + strlen(name) + 64);
}

bool slu_work_is(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    unsigned long long i, n;
    int end = 0;

    return slu_workfile_is(path, SLU_WORKFILE_FLOW) ||
           (sscanf(name, "%*[a-z].%19llu-of-%19llu%n", &i, &n, &end) == 2 &&
            (!name[end] || name[end] == '.'));
}

int slu_work_damaged(const char *path, struct slu_err *err)
{
    return slu_fail(err, SLU_E_CHECKSUM,
                    "%s: damaged; remove it and run its stage again", path);
}

static int missing(const char *path, const char *name,
                   const struct slu_workfile_head *want, struct slu_err *err)
{
    if (!want->of)
        return slu_fail(err, SLU_E_MISMATCH, "%s is missing; run stage %s", path, name);
    return slu_fail(err, SLU_E_MISMATCH,
                    "%s is missing; run stage %s for part %llu/%llu", path, name,
                    (unsigned long long)want->part, (unsigned long long)want->of);
}

int slu_work_open(const char *folder, const char *name,
                  const struct slu_workfile_head *want, struct slu_workfile **f,
                  struct slu_err *err)
{
    struct slu_err why = SLU_ERR_INIT;
    char *path;
    int rc = slu_work_path(folder, name, want->part, want->of, &path, err);

    *f = NULL;
    if (rc)
        return rc;
    rc = slu_workfile_open(f, path, want->kind, &why);
    if (rc == SLU_E_IO && why.sys_errno == ENOENT)
        rc = missing(path, name, want, err);
    else if (rc && err)
        *err = why;
    if (!rc)
        rc = slu_workfile_match(*f, want, err);
    if (rc) {
        slu_workfile_free(*f);
        *f = NULL;
    }
    free(path);
    return rc;
}

/* N if the file's name is NAME.I-of-N, else 0. */
static uint64_t parts_of(const char *file, const char *name)
{
    unsigned long long i, n;
    size_t len = strlen(name);
    int end = 0;

    if (strncmp(file, name, len) ||
        sscanf(file + len, ".%19llu-of-%19llu%n", &i, &n, &end) != 2 ||
        file[len + (size_t)end])
        return 0;
    return n;
}

int slu_work_parts(const char *folder, const char *name, uint64_t *of,
                   struct slu_err *err)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    int rc = SLU_OK;

    *of = 0;
    if (!dir)
        return slu_fail_errno(err, "%s", folder);
    while (!rc && (e = readdir(dir))) {
        uint64_t n = parts_of(e->d_name, name);
        if (!n)
            continue;
        if (*of && *of != n)
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s: has %s files of %llu part%s and of %llu parts; remove "
                          "those that do not belong",
                          folder, name, (unsigned long long)(*of < n ? *of : n),
                          slu_plural(*of < n ? *of : n),
                          (unsigned long long)(*of < n ? n : *of));
        *of = n;
    }
    closedir(dir);
    if (!rc && *of == 0)
        rc = slu_fail(err, SLU_E_MISMATCH, "%s: no %s files; run stage %s first",
                      folder, name, name);
    if (!rc && *of > SLU_WORKFILE_MAX_PARTS)
        rc = slu_fail(err, SLU_E_LIMIT, "%s: more than %d parts", folder,
                      SLU_WORKFILE_MAX_PARTS);
    return rc;
}
