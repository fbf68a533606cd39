/* forget.h - takes documents out of a set of shards: a new set in which their tokens are
 * padding that is not trained on.
 *
 * No sequence moves, and none goes, even if nothing is left of it: so sequences keep
 * their numbers, shards their bounds, and schedules stay valid. A document's segments
 * become padding of the same length; padding beside it joins them. Only the shards that
 * have such a segment are read and written; of the others the segment rows are read, and
 * slu_shards_write links their files.
 *
 * A set of format olmo without masks gets masks, and so all its shards are written.
 *
 * Thread safety: one thread at a time.
 */
#ifndef SLU_FORGET_H
#define SLU_FORGET_H

#include "formats/shards/shard.h"
#include "lib/filter/idset.h"
#include "lib/filter/where.h"

SLU_BEGIN_DECLS

struct slu_forget;

/* A segment that goes. Borrowed for the call. */
struct slu_forget_segment {
    const char *bucket; /* its name: D_8 */
    unsigned bucket_index;
    uint64_t length, sequence, shard; /* the bucket's length; numbers in the bucket */
    const struct slu_seg *seg;
    const uint8_t *id; /* seg->id_len bytes */
    const char *source;
};

struct slu_forget_result {
    struct slu_sum in;                     /* the set */
    struct slu_count gone;                 /* sequences 0: none goes */
    struct slu_count gone_where;           /* of these, what only `where` takes out */
    uint64_t segments, sequences, emptied; /* that go; that had one; without another */
    uint64_t shards, of_shards;            /* changed, of all */
    uint64_t ids;                          /* of those asked for, the ones found */
};

/* Opens the set in `dir` and finds the documents that go, by its segment rows: those whose
 * records' ids are in `drop`, and those for which `where` holds, an expression over their
 * properties but the length. Each is borrowed, or NULL. SLU_E_USAGE: `where` names the
 * length, which no segment has; SLU_E_MISMATCH: or a field that the set does not have. */
SLU_MUST_USE int slu_forget_open(struct slu_forget **f, const char *dir,
                                 const struct slu_idset *drop,
                                 const struct slu_expr *where, struct slu_err *err);
const struct slu_forget_result *slu_forget_result(const struct slu_forget *f);
/* Calls `each` for every segment that goes, in the order of the set. */
SLU_MUST_USE int slu_forget_each(struct slu_forget *f,
                                 int (*each)(void *ctx,
                                             const struct slu_forget_segment *s,
                                             struct slu_err *err),
                                 void *ctx, struct slu_err *err);

/* Sets format, options, header and names of cfg as they are of the set; the rest stays.
 * pad: id of the padding; SLU_NO_TOKEN: the set's. The caller adds its step to *h and
 * releases it, also after a failure. SLU_E_UNSUPPORTED if report.json does not say how the
 * set was written, SLU_E_USAGE without a padding id. */
SLU_MUST_USE int slu_forget_cfg(struct slu_forget *f, uint64_t pad,
                                struct slu_shards_cfg *cfg, struct slu_header *h,
                                struct slu_err *err);
/* A slu_shards_source, whose ctx is the handle, for slu_shards_write with that cfg. */
int slu_forget_source(void *forget, struct slu_pipe *pipe, struct slu_batch *b,
                      struct slu_err *err);
struct slu_step_list; /* lib/stream/steps.h */
/* Joins the steps that made the set to *steps. */
SLU_MUST_USE int slu_forget_steps(const struct slu_forget *f,
                                  struct slu_step_list *steps, struct slu_err *err);
/* slu_manifests_put_places of the set. */
SLU_MUST_USE int slu_forget_put_places(const struct slu_forget *f, struct slu_buf *out,
                                       struct slu_err *err);
/* NULL is legal. */
void slu_forget_free(struct slu_forget *f);

SLU_END_DECLS

#endif
