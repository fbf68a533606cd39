/* workfile_stage.h - the files of a work folder (workfile.h), by name:
 * FOLDER/NAME.I-of-N of a stage in N parts, FOLDER/NAME of one that is a single job.
 *
 * A file that was made otherwise is an error that names the difference; one that is
 * missing names the stage to run.
 *
 * Thread safety: all functions may be called from any thread.
 */
#ifndef SLU_WORKFILE_STAGE_H
#define SLU_WORKFILE_STAGE_H

#include <stdbool.h>

#include "lib/flow/workfile.h"

/* The name of a file; of 0: of a stage that is one job. Caller frees with free(). */
SLU_MUST_USE int slu_work_path(const char *folder, const char *name, uint64_t part,
                               uint64_t of, char **path, struct slu_err *err);
/* Whether a stage has left that file: by what it begins with, or, where it lies beside
 * the file of a part, by its name. */
bool slu_work_is(const char *path);
/* Opens a file that an earlier stage, `name`, must have left. want: kind, part, of,
 * param (NULL: any) and, unless any_tokenizer, the fingerprint. Caller frees with
 * slu_workfile_free. */
SLU_MUST_USE int slu_work_open(const char *folder, const char *name,
                               const struct slu_workfile_head *want, bool any_tokenizer,
                               struct slu_workfile **f, struct slu_err *err);
/* N of the files NAME.I-of-N in the folder: SLU_E_MISMATCH where there are none, or of
 * several N. */
SLU_MUST_USE int slu_work_parts(const char *folder, const char *name, uint64_t *of,
                                struct slu_err *err);

#endif
