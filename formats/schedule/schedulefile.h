/* schedulefile.h - the file of a schedule (formats/SCHEDULE.md): a header that says all
 * about it, then a record of 16 bytes for each step, so that step k is found by
 * arithmetic, then hashes of blocks of steps, so that a trainer that resumes at k
 * checks what it reads and reads no more. The same as JSON.
 *
 * Readers check the header, the file's size and the table of hashes when they open a
 * file, and each block before they hand out its steps; a step's bucket, sequences and
 * cycle are in the range that the header allows. So nothing from a forged file is out
 * of range.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_SCHEDULEFILE_H
#define SLU_SCHEDULEFILE_H

#include <stdbool.h>

#include "lib/schedule/schedule_steps.h"

SLU_BEGIN_DECLS

/* ---- writing ---- */

struct slu_schedulefile_writer;

/* Steps first_step … info->total_steps - 1 follow. path NULL or "-": standard output; a
 * terminal is refused for the binary form unless `force`. info is borrowed until the
 * end. */
SLU_MUST_USE int slu_schedulefile_create(struct slu_schedulefile_writer **w,
                                         const char *path, bool json, bool force,
                                         const struct slu_steps_info *info,
                                         uint64_t first_step, struct slu_err *err);
SLU_MUST_USE int slu_schedulefile_put(struct slu_schedulefile_writer *w,
                                      const struct slu_train_step *step, size_t n,
                                      struct slu_err *err);
/* SLU_E_CONSERVATION where not all steps were put. Frees w, also when it fails. */
SLU_MUST_USE int slu_schedulefile_close(struct slu_schedulefile_writer *w,
                                        struct slu_err *err);
/* Leaves the target as it was. NULL is legal. */
void slu_schedulefile_abort(struct slu_schedulefile_writer *w);

/* The members of the JSON form's object that describe the schedule, from "method" to
 * "buckets", without braces. */
SLU_MUST_USE int slu_schedulefile_put_json(struct slu_buf *text,
                                           const struct slu_steps_info *info,
                                           uint64_t first_step, uint64_t n_steps,
                                           struct slu_err *err);

/* ---- reading ---- */

/* Bytes of the file that is n_steps long. */
uint64_t slu_schedulefile_bytes(size_t n_bucket, uint64_t n_steps);
/* The file at path is a schedule: a regular file that begins as one. */
bool slu_schedulefile_is(const char *path);

struct slu_schedulefile;

/* SLU_E_TRUNCATED, SLU_E_CHECKSUM, SLU_E_FORMAT name the file. */
SLU_MUST_USE int slu_schedulefile_open(struct slu_schedulefile **f, const char *path,
                                       struct slu_err *err);
/* Borrowed. */
const struct slu_steps_info *slu_schedulefile_info(const struct slu_schedulefile *f);
uint64_t slu_schedulefile_first(const struct slu_schedulefile *f);
uint64_t slu_schedulefile_count(const struct slu_schedulefile *f);
/* The next read gives step k of the training, which must be in the file or just behind
 * its last. Reads nothing. */
SLU_MUST_USE int slu_schedulefile_seek(struct slu_schedulefile *f, uint64_t k,
                                       struct slu_err *err);
/* Up to cap steps; *n is 0 at the end only. */
SLU_MUST_USE int slu_schedulefile_next(struct slu_schedulefile *f,
                                       struct slu_train_step *step, size_t cap,
                                       size_t *n, struct slu_err *err);
/* For pictures: the steps in n_bin equal stretches, by bucket. count[bin x n_bucket +
 * bucket] is set; the caller has n_bin x n_bucket of them. Reads the whole file. */
SLU_MUST_USE int slu_schedulefile_bins(struct slu_schedulefile *f, size_t n_bin,
                                       uint64_t *count, struct slu_err *err);
/* NULL is legal. */
void slu_schedulefile_free(struct slu_schedulefile *f);

SLU_END_DECLS

#endif
