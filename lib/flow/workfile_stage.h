/* workfile_stage.h - finds the files of a work folder (workfile.h) by name:
 * FOLDER/NAME.I-of-N of a stage in N parts, FOLDER/NAME of a stage with one job.
 *
 * If a file was made with other options or inputs, the error names the difference; if a
 * file is missing, the error names the stage to run.
 *
 * Thread safety: all functions may be called from any thread.
 */
#ifndef SLU_WORKFILE_STAGE_H
#define SLU_WORKFILE_STAGE_H

#include <stdbool.h>

#include "lib/flow/workfile.h"

/* *path: name of a file; of 0: a stage with one job. Caller frees with free(). */
SLU_MUST_USE int slu_work_path(const char *folder, const char *name, uint64_t part,
                               uint64_t of, char **path, struct slu_err *err);
/* Whether a stage has left this file: decided by its first bytes or, for a file beside
 * that of a part, by its name. */
bool slu_work_is(const char *path);
/* Sets and returns SLU_E_CHECKSUM: the file of a stage has impossible contents. */
int slu_work_damaged(const char *path, struct slu_err *err);
/* Opens a file that an earlier stage, `name`, must have left; want: as for
 * slu_workfile_match, and kind. Caller frees with slu_workfile_free. */
SLU_MUST_USE int slu_work_open(const char *folder, const char *name,
                               const struct slu_workfile_head *want,
                               struct slu_workfile **f, struct slu_err *err);
/* Finds N of the files NAME.I-of-N in the folder; SLU_E_MISMATCH if there are no such
 * files, or files of several N. */
SLU_MUST_USE int slu_work_parts(const char *folder, const char *name, uint64_t *of,
                                struct slu_err *err);

#endif
