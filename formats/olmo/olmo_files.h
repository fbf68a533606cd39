/* olmo_files.h - writes files to a folder to which other programs may write as well:
 * OLMo-core's work folder W. W/manifest.jsonl (filelist.h) lists our files, and only
 * these are replaced. A file that is not listed may come from a killed run; then it has
 * the same bytes as the new one. With other bytes it belongs to another program, and is
 * not replaced: the run fails.
 *
 * Thread safety: one thread at a time.
 */
#ifndef SLU_OLMO_FILES_H
#define SLU_OLMO_FILES_H

#include <string.h>

#include "formats/shards/filelist.h"
#include "lib/base/le.h"

#define SLU_OLMO_WAIT (64 << 10)

/* W, and the files written there. */
struct slu_olmo_files {
    const char *work;
    struct slu_filelist list;
    size_t n_listed; /* files of the existing list, sorted by name */
};

/* A file that is being written. */
struct slu_olmo_sink {
    struct slu_out *out;
    struct slu_buf wait;
    struct slu_digest digest;
    int was;      /* an existing file that is not listed, or -1 */
    bool differs; /* the existing file differs */
};

/* Reads the list. */
SLU_MUST_USE int slu_olmo_begin(struct slu_olmo_files *w, const char *work,
                                struct slu_err *err);
/* Writes the list: the old files that still exist, and the new ones. rc: the result of
 * writing the files, returned unless it is SLU_OK. Releases w. */
SLU_MUST_USE int slu_olmo_finish(struct slu_olmo_files *w, int rc, struct slu_err *err);

/* Opens a file of W, and makes its folders. Set k to {.was = -1} first; k must not move
 * until slu_olmo_end. */
SLU_MUST_USE int slu_olmo_open(struct slu_olmo_sink *k, const struct slu_olmo_files *w,
                               struct slu_buf *path, struct slu_err *err);
SLU_MUST_USE int slu_olmo_write(struct slu_olmo_sink *k, const void *p, size_t n,
                                struct slu_err *err);
/* Ends the file of this path; rc: the result of writing it. SLU_E_MISMATCH if it would
 * replace a file of another program. */
SLU_MUST_USE int slu_olmo_end(struct slu_olmo_sink *k, struct slu_olmo_files *w,
                              const struct slu_buf *path, int rc, struct slu_err *err);

/* Writes the low n_byte bytes of v. */
static inline int slu_olmo_put(struct slu_olmo_sink *k, uint64_t v, unsigned n_byte,
                               struct slu_err *err)
{
    if (k->wait.len + 8 > SLU_OLMO_WAIT) {
        int rc = slu_olmo_write(k, k->wait.data, k->wait.len, err);
        if (rc)
            return rc;
        k->wait.len = 0;
    }
    uint8_t le[8];
    slu_put_le64(le, v); /* so that the low bytes come first */
    memcpy(k->wait.data + k->wait.len, le, n_byte);
    k->wait.len += n_byte;
    return SLU_OK;
}

#endif
