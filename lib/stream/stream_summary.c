/* stream_summary.c - what streams in regular files say of all their sequences: their
 * end frames have the sums, and the headers of their frames limit the longest. */
#include "stream_summary.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stream_reader.h"
#include "stream_tail.h"

void slu_summary_add(struct slu_summary *p, const struct slu_summary *more)
{
    const struct slu_u128 id[2] = {p->id, more->id};

    slu_sum_add(&p->sum, &more->sum);
    p->longest = more->longest > p->longest ? more->longest : p->longest;
    p->id = slu_hash128(id, sizeof id);
}

/* SLU_EOF if the file is not one complete stream, or cannot be read twice. */
static int of_file(const struct slu_reader *r, const char *path, struct slu_summary *p,
                   struct slu_err *err)
{
    struct slu_stream_tail t = {0};
    struct stat st;

    if (!strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode))
        return SLU_EOF;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return slu_fail_errno(err, "%s: cannot be opened", path);
    int rc = slu_stream_tail_read(&t, fd, (uint64_t)st.st_size, err);
    close(fd);
    if (rc < 0)
        return slu_err_at(err, "%s", path);
    *p = (struct slu_summary){
        .sum = {.n = {.sequences = t.n_seq, .tokens = t.n_tok}, .checksum = t.checksum},
        .longest = t.longest_byte / slu_header_stored(&r->header),
        .id = t.digest};
    return rc;
}

int slu_reader_summary(const struct slu_reader *r, bool close, struct slu_summary *p,
                       struct slu_err *err)
{
    int rc = SLU_OK;

    *p = (struct slu_summary){0};
    if (r->ops)
        return r->summary ? r->summary(r->input, close, p, err) : SLU_EOF;
    for (size_t i = 0; i < r->n_path && !rc; i++) {
        struct slu_summary more;
        rc = of_file(r, r->path[i], &more, err);
        if (!rc)
            slu_summary_add(p, &more);
    }
    return rc;
}

void slu_reader_set_summary(struct slu_reader *r, slu_summary_fn *summary)
{
    r->summary = summary;
}
