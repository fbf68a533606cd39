/* schedulefile.c - reads a schedule's file. */
#include "formats/schedule/schedulefile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/schedule/schedulefile_private.h"
#include "lib/base/io.h"
#include "lib/base/le.h"

struct slu_schedulefile {
    char *path;
    int fd;
    struct slu_steps_info info;
    uint64_t first, n, head_byte;
    uint64_t at;           /* the next step, counted from the file's first */
    struct slu_buf hashes; /* hashes of the blocks */
    struct slu_buf block;  /* records of block `loaded`, whose hash was checked */
    uint64_t loaded;       /* UINT64_MAX: no block */
};

bool slu_schedulefile_is(const char *path)
{
    char magic[8];
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is = fd >= 0 && pread(fd, magic, 8, 0) == 8 && !memcmp(magic, SLU_SF_MAGIC, 8);
    if (fd >= 0)
        close(fd);
    return is;
}

/* Reads the header and checks the file's size, so all later parts are at known
 * positions. */
static int read_head(struct slu_schedulefile *f, struct slu_err *err)
{
    uint8_t fixed[SLU_SF_FIXED];
    struct slu_buf head = SLU_BUF_INIT;
    struct stat st;
    if (fstat(f->fd, &st))
        return slu_fail_errno(err, "cannot be examined");
    if (!S_ISREG(st.st_mode))
        return slu_fail(err, SLU_E_USAGE, "a schedule is read from a file, not a pipe");
    uint64_t size = (uint64_t)st.st_size;
    if (size < sizeof fixed)
        return slu_fail(err, SLU_E_TRUNCATED, "too short for a schedule's header");
    int rc = slu_pread_full(f->fd, fixed, sizeof fixed, 0, err);
    if (rc)
        return rc;
    if (memcmp(fixed, SLU_SF_MAGIC, 8))
        return slu_fail(err, SLU_E_FORMAT, "not a schedule");
    if (slu_le32(fixed + 8) != 1 && slu_le32(fixed + 8) != 2)
        return slu_fail(err, SLU_E_UNSUPPORTED,
                        "a schedule of version %u; this program reads versions 1 and 2",
                        slu_le32(fixed + 8));
    uint64_t n = slu_le32(fixed + 20);
    f->head_byte = slu_le32(fixed + 12);
    if (n > SLU_STEPS_MAX_BUCKETS || f->head_byte != SLU_SF_FIXED + SLU_SF_BUCKET * n)
        return slu_fail(err, SLU_E_FORMAT, "%llu buckets in a header of %llu bytes",
                        (unsigned long long)n, (unsigned long long)f->head_byte);
    if (size < f->head_byte)
        return slu_fail(err, SLU_E_TRUNCATED, "the file ends within the header");
    rc = slu_buf_reserve(&head, f->head_byte, err);
    if (!rc)
        rc = slu_pread_full(f->fd, head.data, f->head_byte, 0, err);
    if (!rc)
        rc =
            slu_sf_get_header(&f->info, &f->first, &f->n, head.data, f->head_byte, err);
    slu_buf_release(&head);
    if (rc)
        return rc;
    if (f->n > size / SLU_SF_RECORD)
        return slu_fail(err, SLU_E_TRUNCATED, "the file ends before its %llu steps do",
                        (unsigned long long)f->n);
    uint64_t want = slu_schedulefile_bytes(f->info.n_bucket, f->n);
    if (size != want)
        return slu_fail(err, size < want ? SLU_E_TRUNCATED : SLU_E_FORMAT,
                        "the file has %llu bytes, %llu steps take %llu",
                        (unsigned long long)size, (unsigned long long)f->n,
                        (unsigned long long)want);
    return SLU_OK;
}

static int read_hashes(struct slu_schedulefile *f, struct slu_err *err)
{
    uint64_t n = 8 * slu_sf_blocks(f->n);
    uint8_t end[SLU_SF_FOOTER];
    uint64_t at = f->head_byte + SLU_SF_RECORD * f->n;
    int rc = slu_buf_reserve(&f->hashes, n + 1, err);
    if (!rc)
        rc = slu_pread_full(f->fd, f->hashes.data, n, at, err);
    if (!rc)
        rc = slu_pread_full(f->fd, end, sizeof end, at + n, err);
    if (rc)
        return rc;
    f->hashes.len = n;
    if (memcmp(end + 8, SLU_SF_END, 8))
        return slu_fail(err, SLU_E_FORMAT, "the end mark is missing");
    if (slu_hash64(f->hashes.data, n) != slu_le64(end))
        return slu_fail(err, SLU_E_CHECKSUM, "the table of hashes is damaged");
    return SLU_OK;
}

int slu_schedulefile_open(struct slu_schedulefile **out, const char *path,
                          struct slu_err *err)
{
    struct slu_schedulefile *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return slu_fail_nomem(err, sizeof *f);
    f->loaded = UINT64_MAX;
    f->path = strdup(path);
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = SLU_OK;
    if (!f->path)
        rc = slu_fail_nomem(err, strlen(path) + 1);
    else if (f->fd < 0)
        rc = slu_fail_errno(err, "%s", path);
    else {
        rc = read_head(f, err);
        if (!rc)
            rc = read_hashes(f, err);
        if (rc)
            rc = slu_err_at(err, "%s", path);
    }
    if (rc) {
        slu_schedulefile_free(f);
        return rc;
    }
    *out = f;
    return SLU_OK;
}

void slu_schedulefile_free(struct slu_schedulefile *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    slu_steps_info_release(&f->info);
    slu_buf_release(&f->hashes);
    slu_buf_release(&f->block);
    free(f->path);
    free(f);
}

const struct slu_steps_info *slu_schedulefile_info(const struct slu_schedulefile *f)
{
    return &f->info;
}

uint64_t slu_schedulefile_first(const struct slu_schedulefile *f)
{
    return f->first;
}

uint64_t slu_schedulefile_count(const struct slu_schedulefile *f)
{
    return f->n;
}

int slu_schedulefile_seek(struct slu_schedulefile *f, uint64_t k, struct slu_err *err)
{
    if (k < f->first || k - f->first > f->n)
        return slu_fail(err, SLU_E_USAGE,
                        "%s: has no step %llu; it has steps %llu to %llu", f->path,
                        (unsigned long long)k, (unsigned long long)f->first,
                        (unsigned long long)(f->first + f->n));
    f->at = k - f->first;
    return SLU_OK;
}

/* ---- steps ---- */

static int load(struct slu_schedulefile *f, uint64_t block, struct slu_err *err)
{
    uint64_t from = block * SLU_SF_BLOCK,
             n = f->n - from < SLU_SF_BLOCK ? f->n - from : SLU_SF_BLOCK;
    size_t bytes = (size_t)n * SLU_SF_RECORD;
    f->loaded = UINT64_MAX;
    slu_buf_clear(&f->block);
    int rc = slu_buf_reserve(&f->block, bytes, err);
    if (!rc)
        rc = slu_pread_full(f->fd, f->block.data, bytes,
                            f->head_byte + SLU_SF_RECORD * from, err);
    if (rc)
        return slu_err_at(err, "%s", f->path);
    if (slu_hash64(f->block.data, bytes) != slu_le64(f->hashes.data + 8 * block))
        return slu_fail(err, SLU_E_CHECKSUM, "%s: steps %llu … %llu are damaged",
                        f->path, (unsigned long long)(f->first + from),
                        (unsigned long long)(f->first + from + n - 1));
    f->loaded = block;
    return SLU_OK;
}

/* Whether the step is in range, and belongs to its pass; in version 1, also whether step
 * k belongs to that pass. */
static bool sound_step(const struct slu_steps_info *info,
                       const struct slu_train_step *s, uint64_t k)
{
    if (s->bucket >= info->n_bucket)
        return false;
    const struct slu_steps_bucket *b = &info->bucket[s->bucket];
    uint64_t size = b->per_step / b->unit, run = s->first / size,
             pass = s->cycle / info->cycles;
    if (s->first % size)
        return false;
    if (info->version == 1)
        return run < b->runs && pass == k / info->pass_steps;
    return pass < info->epochs &&
           run >= slu_steps_runs_before(info, s->bucket, pass, 0) &&
           run < slu_steps_runs_before(info, s->bucket, pass + 1, 0);
}

int slu_schedulefile_next(struct slu_schedulefile *f, struct slu_train_step *step,
                          size_t cap, size_t *n, struct slu_err *err)
{
    *n = 0;
    while (*n < cap && f->at < f->n) {
        uint64_t block = f->at / SLU_SF_BLOCK;
        if (f->loaded != block) {
            int rc = load(f, block, err);
            if (rc)
                return rc;
        }
        const uint8_t *p = f->block.data + f->at % SLU_SF_BLOCK * SLU_SF_RECORD;
        struct slu_train_step *s = &step[*n];
        s->first = slu_le64(p);
        s->cycle = slu_le32(p + 8);
        s->bucket = slu_le32(p + 12);
        if (!sound_step(&f->info, s, f->first + f->at))
            return slu_fail(err, SLU_E_FORMAT,
                            "%s: step %llu does not exist in this schedule", f->path,
                            (unsigned long long)(f->first + f->at));
        f->at++;
        ++*n;
    }
    return SLU_OK;
}

int slu_schedulefile_of(const struct slu_steps_info *info, const char *path,
                        const char *places, const char *set, bool *sure,
                        struct slu_err *err)
{
    char sum[33], seal[32];

    slu_u128_hex(info->checksum, sum);
    if (!info->has_checksum || !strstr(places, sum))
        return slu_fail(err, SLU_E_MISMATCH,
                        "%s: is a schedule of another set than %s: of checksum %s",
                        path, set, sum);
    snprintf(seal, sizeof seal, "\"%016llx\"", (unsigned long long)info->seal);
    *sure = info->seal && strstr(places, seal);
    return SLU_OK;
}

int slu_schedulefile_bins(struct slu_schedulefile *f, size_t n_bin, uint64_t *count,
                          struct slu_err *err)
{
    struct slu_train_step step[512];
    size_t n = 1;
    uint64_t k = 0;
    memset(count, 0, n_bin * f->info.n_bucket * sizeof *count);
    int rc = slu_schedulefile_seek(f, f->first, err);
    while (!rc && n) {
        rc = slu_schedulefile_next(f, step, 512, &n, err);
        for (size_t i = 0; i < n; i++, k++) {
            size_t bin = (size_t)((unsigned __int128)k * n_bin / f->n);
            count[bin * f->info.n_bucket + step[i].bucket]++;
        }
    }
    return rc;
}
