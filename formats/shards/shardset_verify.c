#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/shards/filelist.h"
#include "formats/shards/shard_dir.h"
#include "formats/shards/shardset_private.h"
#include "lib/base/pipe.h"

/* ---- the bytes of files ---- */

struct look_job {
    struct slu_shardset_entry e;
    struct slu_buf scratch;
};

static int look_produce(void *ctx, void *job, struct slu_err *err)
{
    struct slu_shardset *s = ctx;
    struct look_job *j = job;
    int rc = slu_shardset_peek(s, err);
    if (rc)
        return rc;
    j->e = s->next;
    s->have_next = false;
    return SLU_OK;
}

static int check_file(struct slu_shardset *s, const char *name, uint64_t n_byte,
                      uint64_t xxh3, struct slu_buf *scratch, struct slu_err *err)
{
    char path[PATH_MAX];
    struct slu_digest d;
    int rc = slu_shardset_path(s, path, err, "", name, "");
    if (!rc && access(path, F_OK))
        return slu_shardset_incomplete(s, name, err);
    if (!rc)
        rc = slu_file_digest(path, scratch, &d, err);
    if (rc)
        return rc;
    if (d.n_byte != n_byte)
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s/%s: has %llu bytes, and %llu were written", s->dir, name,
                        (unsigned long long)d.n_byte, (unsigned long long)n_byte);
    if (d.xxh3 != xxh3)
        return slu_fail(err, SLU_E_CHECKSUM,
                        "%s/%s: was changed (its XXH3-64 is %016llx, and was %016llx)",
                        s->dir, name, (unsigned long long)d.xxh3,
                        (unsigned long long)xxh3);
    return SLU_OK;
}

static int look_work(void *ctx, unsigned worker, void *job, struct slu_err *err)
{
    struct look_job *j = job;
    (void)worker;
    return check_file(ctx, j->e.file, j->e.n_byte, j->e.xxh3, &j->scratch, err);
}

static int look_emit(void *ctx, void *job, struct slu_err *err)
{
    struct slu_shardset *s = ctx;
    const struct look_job *j = job;
    (void)err;
    s->verified_byte += j->e.n_byte;
    if (s->progress)
        s->progress(s->progress_ctx, s->verified_byte, s->verify_byte);
    return SLU_OK;
}

/* The number in shard-0000012.tar, shard.00012.mds or chunk-0-12.bin. */
static uint64_t shard_number(const char *name)
{
    const char *p = strrchr(name, '-');
    p = p ? p : name;
    return strtoull(p + strcspn(p, "0123456789"), NULL, 10);
}

/* Finds further shards: trainers read every file in a bucket's folder whose name is
 * that of a shard. */
static int check_strays(const struct slu_shardset *s, const struct slu_shard_bucket *b,
                        struct slu_err *err)
{
    char path[PATH_MAX];
    int rc = slu_shardset_path(s, path, err, "", b->name, "");
    if (rc)
        return rc;
    DIR *d = opendir(path);
    if (!d)
        return SLU_OK; /* a bucket without sequences */
    for (const struct dirent *e; !rc && (e = readdir(d));)
        if (s->format->owns(e->d_name) && strpbrk(e->d_name, "0123456789") &&
            shard_number(e->d_name) >= b->n_shard)
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s/%s/%s: is not one of the set's %llu shards there, and a "
                          "trainer may read it; remove it",
                          s->dir, b->name, e->d_name, (unsigned long long)b->n_shard);
    closedir(d);
    return rc;
}

/* Finds further buckets' folders: trainers also read a D_9 that is not the set's. */
static int check_folders(const struct slu_shardset *s, struct slu_err *err)
{
    DIR *d = opendir(s->dir);
    int rc = d ? SLU_OK : slu_fail_errno(err, "%s: cannot be opened", s->dir);
    for (const struct dirent *e; !rc && (e = readdir(d));) {
        bool known = !slu_shard_dir_of_bucket(e->d_name);
        for (unsigned i = 0; i < s->n_bucket && !known; i++)
            known = !strcmp(e->d_name, s->bucket[i].pub.name);
        if (!known)
            rc = slu_fail(err, SLU_E_MISMATCH,
                          "%s/%s: is not one of the set's buckets, and a trainer may "
                          "read it; remove it",
                          s->dir, e->d_name);
    }
    if (d)
        closedir(d);
    return rc;
}

/* Checks report.json against its own last line. */
static int check_report(const struct slu_shardset *s, struct slu_err *err)
{
    struct slu_buf t = SLU_BUF_INIT;
    char path[PATH_MAX];
    int rc = slu_shardset_path(s, path, err, "", "report.json", "");
    if (!rc)
        rc = slu_read_regular(&t, path, UINT64_C(1) << 32, err);
    if (!rc && !slu_seal_is(t.data, t.len, SLU_REPORT_SEAL))
        rc = slu_fail(err, SLU_E_CHECKSUM,
                      "%s: was changed: the xxh3_64 at its end is not that of the "
                      "bytes before it",
                      path);
    slu_buf_release(&t);
    return rc;
}

/* Checks the format's folder beside the buckets. manifest.jsonl does not list its
 * files, because their names depend on the path of the set; the folder has its own
 * list. Other programs may have added files. */
static int check_set_folder(struct slu_shardset *s, struct slu_buf *scratch,
                            struct slu_err *err)
{
    const char *folder = s->format->set_folder;
    struct slu_filelist l = SLU_FILELIST_INIT;
    struct slu_json_value v;
    char path[PATH_MAX];
    if (!folder)
        return SLU_OK;
    int rc = slu_shardset_path(s, path, err, "", folder, "");
    if (!rc)
        rc = slu_filelist_load(&l, path, err);
    if (rc == SLU_EOF) {
        rc = slu_json_get(slu_json_root(s->report), "set_folder", &v)
                 ? slu_fail(
                       err, SLU_E_TRUNCATED,
                       "%s: the set is incomplete: there is no manifest.jsonl; make "
                       "the folder again",
                       path)
                 : SLU_OK;
    }
    for (size_t i = 0; !rc && i < l.n; i++) {
        char name[1024];
        int n = snprintf(name, sizeof name, "%s/%s", folder, l.file[i].name);
        rc = n < (int)sizeof name
                 ? check_file(s, name, l.file[i].digest.n_byte, l.file[i].digest.xxh3,
                              scratch, err)
                 : slu_fail(err, SLU_E_FORMAT, "%s: a name is too long", path);
    }
    slu_filelist_release(&l);
    return rc;
}

void slu_shardset_progress(struct slu_shardset *s,
                           void (*f)(void *ctx, uint64_t n_byte, uint64_t of_byte),
                           void *ctx)
{
    s->progress = f;
    s->progress_ctx = ctx;
}

int slu_shardset_verify_files(struct slu_shardset *s, unsigned n_threads,
                              struct slu_err *err)
{
    static const struct slu_pipe_ops ops = {look_produce, look_work, look_emit};
    struct look_job job[8] = {{{{0}, 0, 0, 0, 0, 0, false}, SLU_BUF_INIT}};
    struct slu_json_value root = slu_json_root(s->report), v;
    void *slot[8];
    uint64_t n_byte = 0, xxh3 = 0;
    if (!slu_json_get(root, "manifest", &v) ||
        !slu_shardset_get_u64(v, "bytes", &n_byte) || !slu_shardset_get_hash(v, &xxh3))
        return slu_fail(err, SLU_E_FORMAT, "%s/report.json: no manifest", s->dir);
    int rc = check_report(s, err);
    if (!rc)
        rc = check_file(s, "manifest.jsonl", n_byte, xxh3, &job[0].scratch, err);
    s->verify_byte = s->listed_byte;
    if (s->progress)
        s->progress(s->progress_ctx, 0, s->verify_byte);
    rewind(s->manifest);
    s->n_line = 0;
    s->have_next = false;
    for (unsigned i = 0; i < 8; i++)
        slot[i] = &job[i];
    if (!rc)
        rc = slu_pipe_run(&ops, s, slot, 8, n_threads, err);
    for (unsigned i = 0; !rc && i < s->n_bucket; i++)
        rc = check_strays(s, &s->bucket[i].pub, err);
    if (!rc)
        rc = check_folders(s, err);
    if (!rc)
        rc = check_set_folder(s, &job[0].scratch, err);
    for (unsigned i = 0; i < 8; i++)
        slu_buf_release(&job[i].scratch);
    return rc;
}
