/* where.h - expressions (expr.h) over what a sequence has besides its tokens
 * (lib/stream/property.h).
 *
 * An expression that cannot be told because a field is null does not hold; a value whose
 * type does not fit is SLU_E_FORMAT.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_FILTER_WHERE_H
#define SLU_FILTER_WHERE_H

#include <stdbool.h>

#include "lib/filter/expr.h"
#include "lib/stream/batch.h"
#include "lib/stream/stream.h"

SLU_BEGIN_DECLS

struct slu_where;
/* h: of the stream, whose metadata the expression may name; SLU_E_MISMATCH if it has no
 * such field. All is borrowed. Caller frees with slu_where_free. */
SLU_MUST_USE int slu_where_new(struct slu_where **w, const struct slu_expr *e,
                               const struct slu_header *h, struct slu_names *names,
                               struct slu_err *err);
/* Whether the expression holds for a sequence; not if it is padding alone.
 * SLU_E_MISMATCH: its documents differ in a field that the expression names. */
SLU_MUST_USE int slu_where_ask(struct slu_where *w, const struct slu_batch *b,
                               const struct slu_seq *q, bool *holds,
                               struct slu_err *err);
/* Whether it holds for the document of segment s of the sequence, which is no padding;
 * length and score are those of the sequence. */
SLU_MUST_USE int slu_where_ask_segment(struct slu_where *w, const struct slu_batch *b,
                                       const struct slu_seq *q, const struct slu_seg *s,
                                       bool *holds, struct slu_err *err);
/* NULL is legal. */
void slu_where_free(struct slu_where *w);

SLU_END_DECLS

#endif
