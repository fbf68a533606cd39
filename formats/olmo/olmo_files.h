/* olmo_files.h - the files of a folder that others may write to as well, OLMo-core's
 * work folder W: W/manifest.jsonl lists ours (filelist.h), and only these are replaced.
 * A file that it does not list may be what a run left that was killed, which had the
 * same bytes; with other bytes it is somebody else's, and refused.
 *
 * Thread safety: one thread at a time.
 */
#ifndef SLU_OLMO_FILES_H
#define SLU_OLMO_FILES_H

#include <string.h>

#include "formats/shards/filelist.h"
#include "lib/base/le.h"

#define SLU_OLMO_GATHER (64 << 10)

/* W, and what is written there. */
struct slu_olmo_files {
    const char *work;
    struct slu_filelist list;
    size_t n_listed; /* by the list that was there, in order of name */
};

/* A file that is being written. */
struct slu_olmo_sink {
    struct slu_out *out;
    struct slu_buf wait;
    struct slu_digest digest;
    int was;      /* a file that is there and is not listed, or -1 */
    bool differs; /* from what is written */
};

/* Reads the list. */
SLU_MUST_USE int slu_olmo_begin(struct slu_olmo_files *w, const char *work,
                                struct slu_err *err);
/* Writes it: what was there and is there still, and what was written now. rc is that of
 * what was written, and returned if it is no SLU_OK. Releases w. */
SLU_MUST_USE int slu_olmo_finish(struct slu_olmo_files *w, int rc, struct slu_err *err);

/* A file of W, whose folders are made. k, {.was = -1} at first, stays where it is until
 * slu_olmo_end. */
SLU_MUST_USE int slu_olmo_open(struct slu_olmo_sink *k, const struct slu_olmo_files *w,
                               struct slu_buf *path, struct slu_err *err);
SLU_MUST_USE int slu_olmo_write(struct slu_olmo_sink *k, const void *p, size_t n,
                                struct slu_err *err);
/* Ends the file of that path: rc is that of what was put. SLU_E_MISMATCH where it would
 * replace somebody else's. */
SLU_MUST_USE int slu_olmo_end(struct slu_olmo_sink *k, struct slu_olmo_files *w,
                              const struct slu_buf *path, int rc, struct slu_err *err);

/* The low n_byte bytes of v. */
static inline int slu_olmo_put(struct slu_olmo_sink *k, uint64_t v, unsigned n_byte,
                               struct slu_err *err)
{
    if (k->wait.len + 8 > SLU_OLMO_GATHER) {
        int rc = slu_olmo_write(k, k->wait.data, k->wait.len, err);
        if (rc)
            return rc;
        k->wait.len = 0;
    }
    uint8_t le[8];
    slu_put_le64(le, v); /* its low bytes come first */
    memcpy(k->wait.data + k->wait.len, le, n_byte);
    k->wait.len += n_byte;
    return SLU_OK;
}

#endif
