/* steps.h - the steps that made a stream, each with its account: what was read at the
 * first step, and what each step left out, up to these sequences.
 *
 * A stream carries the list in the frame acct (formats/STREAM.md, section 7): a reader
 * collects it, the program adds its own step, the writer writes it. A set has it in
 * report.json. Lists of joined streams are summed step by step where the steps are
 * equal, so the streams of a job's parts have the list of one run.
 *
 * A list has the steps without counts too: those of a stream without the frame, with
 * --no-provenance or of an earlier version, as its header names them. If the header
 * names none, one step stands for them, SLU_STEP_UNKNOWN. A step of several streams may
 * be both counted and uncounted.
 *
 * An account in a list has no from_work and to_work beyond what does not cancel, its
 * reasons are sorted, and reasons without counts are left out: equal work gives equal
 * bytes, in any number of parts.
 *
 * Thread safety: one thread at a time on a list.
 */
#ifndef SLU_STEPS_H
#define SLU_STEPS_H

#include "account.h"
#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "source_rows.h"
#include "stream.h"

struct slu_step_list {
    struct slu_step_row {
        struct slu_step step;
        struct slu_account account;     /* its reasons are owned by the list */
        struct slu_source_rows sources; /* of a step that read text */
        bool counted;                   /* it has an account */
        bool uncounted;                 /* a stream of it had none */
    } * row;
    size_t n, cap;
    char **reason; /* owned */
    size_t n_reason, cap_reason;
};

#define SLU_STEP_UNKNOWN "unknown" /* the program of an unknown step */

#define SLU_STEPS_INIT                                                                 \
    {                                                                                  \
        NULL, 0, 0, NULL, 0, 0                                                         \
    }

void slu_steps_release(struct slu_step_list *s);
/* Appends a step; copies it. account NULL: its counts are not known. */
SLU_MUST_USE int slu_steps_add(struct slu_step_list *s, const struct slu_step *step,
                               const struct slu_account *account, struct slu_err *err);
/* Adds more counts to the last step's. */
SLU_MUST_USE int slu_steps_count(struct slu_step_list *s,
                                 const struct slu_account *more, struct slu_err *err);
/* Counts a document that this step, a program before all that write streams, made of a
 * line of a file. It makes the step if it is missing. Such steps have files and no
 * account, and are side by side: a document is of one of them. */
SLU_MUST_USE int slu_steps_count_line(struct slu_step_list *s,
                                      const struct slu_step *step, const char *file,
                                      uint64_t n_tok, struct slu_u128 hash,
                                      struct slu_err *err);
/* Adds sources to the last step's. */
SLU_MUST_USE int slu_steps_sources(struct slu_step_list *s,
                                   const struct slu_source_rows *more,
                                   struct slu_err *err);
/* Adds the list of a stream that is joined with the stream of *s. Steps that are equal,
 * in the order of both lists, are summed; others are inserted before the next equal
 * one, or from 1000 steps on summed by program. */
SLU_MUST_USE int slu_steps_join(struct slu_step_list *s,
                                const struct slu_step_list *more, struct slu_err *err);
/* Adds an unknown step, without counts. */
SLU_MUST_USE int slu_steps_add_unknown(struct slu_step_list *s, struct slu_err *err);
/* Adds the steps in a stream's header, with the counts that are known. */
SLU_MUST_USE int slu_steps_of(struct slu_step_list *s, const struct slu_header *h,
                              const struct slu_step_list *counted, struct slu_err *err);
/* Sums all steps, if the last one wrote `out`: each of the list's other outputs is the
 * input of a later step, so total->in is what came from outside, or from streams without
 * counts. Reasons are borrowed from the list. False: the counts contradict that, or no
 * step has counts. */
bool slu_steps_total(const struct slu_step_list *s, const struct slu_count *out,
                     struct slu_account *total);
/* Whether it is a step of slu_steps_count_line. */
static inline bool slu_step_is_aside(const struct slu_step_row *row)
{
    return !row->counted && row->sources.n;
}
/* Whether the counts of the step are known, in all streams that were joined. */
static inline bool slu_step_known(const struct slu_step_row *row)
{
    return row->counted && !row->uncounted;
}
/* Whether there are steps, and the counts of all of them are known. */
bool slu_steps_complete(const struct slu_step_list *s);
/* Appends the list as a JSON array, a line a step: the members of slu_step_put_json,
 * if it is counted those of slu_account_put_json, "uncounted": true if a stream of it
 * had no counts, and "sources" if it has some. */
SLU_MUST_USE int slu_steps_put_json(const struct slu_step_list *s, struct slu_buf *out,
                                    struct slu_err *err);
/* Joins the list in such an array. */
SLU_MUST_USE int slu_steps_get_json(struct slu_step_list *s, struct slu_json_value v,
                                    struct slu_err *err);

/* ---- of a reader and a writer ---- */

/* Gives the list of the reader's streams, so far; it is complete after SLU_EOF.
 * Borrowed until the reader is freed. */
const struct slu_step_list *slu_reader_steps(const struct slu_reader *r);
/* Makes the reader add its list to *s, which must outlive the reader, now and while
 * frames are read. */
SLU_MUST_USE int slu_reader_collect(struct slu_reader *r, struct slu_step_list *s,
                                    struct slu_err *err);
/* Adds the list of the input of slu_reader_over. */
SLU_MUST_USE int slu_reader_add_steps(struct slu_reader *r,
                                      const struct slu_step_list *s,
                                      struct slu_err *err);
/* Writes the list, by a writer with slu_writer_cfg.steps; the last call before
 * slu_writer_close. */
SLU_MUST_USE int slu_writer_steps(struct slu_writer *w, const struct slu_step_list *s,
                                  struct slu_err *err);

#endif
