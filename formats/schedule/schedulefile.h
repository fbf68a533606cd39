/* schedulefile.h - the file of a schedule (formats/SCHEDULE.md). The header describes
 * the schedule; a record of 16 bytes follows for each step, so that the position of
 * step k is computed; then hashes of blocks of steps, so that a trainer that resumes at
 * k can check the steps that it reads without reading others. The same schedule can be
 * written as JSON.
 *
 * Readers check the header, the file's size and the table of hashes when they open a
 * file, and each block before they return its steps. A step's bucket, sequences and
 * cycle are checked against the header, so no value from a forged file is out of range.
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

/* Creates a file for steps first_step … info->total_steps - 1. path NULL or "-":
 * standard output; a terminal is refused for the binary form unless `force`. info is
 * borrowed until close or abort. */
SLU_MUST_USE int slu_schedulefile_create(struct slu_schedulefile_writer **w,
                                         const char *path, bool json, bool force,
                                         const struct slu_steps_info *info,
                                         uint64_t first_step, struct slu_err *err);
SLU_MUST_USE int slu_schedulefile_put(struct slu_schedulefile_writer *w,
                                      const struct slu_train_step *step, size_t n,
                                      struct slu_err *err);
/* SLU_E_CONSERVATION if not all steps were put. Frees w, also on failure. */
SLU_MUST_USE int slu_schedulefile_close(struct slu_schedulefile_writer *w,
                                        struct slu_err *err);
/* Leaves the target unchanged. NULL is legal. */
void slu_schedulefile_abort(struct slu_schedulefile_writer *w);

/* Appends the members of the JSON object that describe the schedule, from "method" to
 * "buckets", without braces. */
SLU_MUST_USE int slu_schedulefile_put_json(struct slu_buf *text,
                                           const struct slu_steps_info *info,
                                           uint64_t first_step, uint64_t n_steps,
                                           struct slu_err *err);

/* ---- reading ---- */

/* Size of a file with n_steps steps. */
uint64_t slu_schedulefile_bytes(size_t n_bucket, uint64_t n_steps);
/* Whether path is a regular file that begins like a schedule. */
bool slu_schedulefile_is(const char *path);

struct slu_schedulefile;

/* SLU_E_TRUNCATED, SLU_E_CHECKSUM and SLU_E_FORMAT name the file. */
SLU_MUST_USE int slu_schedulefile_open(struct slu_schedulefile **f, const char *path,
                                       struct slu_err *err);
/* Borrowed. */
const struct slu_steps_info *slu_schedulefile_info(const struct slu_schedulefile *f);
/* Compares a schedule with a set that has these places (slu_manifests_put_places).
 * SLU_E_MISMATCH: another set, of other contents. *sure: the sequences have the order for
 * which it was made; false: they can have another. */
SLU_MUST_USE int slu_schedulefile_of(const struct slu_steps_info *info,
                                     const char *path, const char *places,
                                     const char *set, bool *sure, struct slu_err *err);
uint64_t slu_schedulefile_first(const struct slu_schedulefile *f);
uint64_t slu_schedulefile_count(const struct slu_schedulefile *f);
/* The next read returns step k of the training, which must be in the file or just after
 * its last step. Reads nothing. */
SLU_MUST_USE int slu_schedulefile_seek(struct slu_schedulefile *f, uint64_t k,
                                       struct slu_err *err);
/* Returns up to cap steps; *n is 0 only at the end. */
SLU_MUST_USE int slu_schedulefile_next(struct slu_schedulefile *f,
                                       struct slu_train_step *step, size_t cap,
                                       size_t *n, struct slu_err *err);
/* For pictures: counts the steps of each bucket in n_bin equal intervals. Sets
 * count[bin x n_bucket + bucket], an array of the caller with n_bin x n_bucket
 * elements. Reads the whole file. */
SLU_MUST_USE int slu_schedulefile_bins(struct slu_schedulefile *f, size_t n_bin,
                                       uint64_t *count, struct slu_err *err);
/* NULL is legal. */
void slu_schedulefile_free(struct slu_schedulefile *f);

SLU_END_DECLS

#endif
