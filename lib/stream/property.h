/* property.h - what the documents of a sequence have, by name: domain, source, id,
 * length, score, and the fields of the stream's metadata. Whatever chooses, groups or
 * ranks by such a name asks here.
 *
 * Domain, source and id are texts; the length is that of the sequence, in tokens; the
 * score is slu_seq_score. What a document does not have is null, as an empty id is.
 *
 * Thread safety: no state; any thread.
 */
#ifndef SLU_STREAM_PROPERTY_H
#define SLU_STREAM_PROPERTY_H

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"
#include "metadata.h"
#include "stream.h"

SLU_BEGIN_DECLS

enum slu_property_at {
    SLU_PROPERTY_META,
    SLU_PROPERTY_DOMAIN,
    SLU_PROPERTY_SOURCE,
    SLU_PROPERTY_ID,
    SLU_PROPERTY_LENGTH,
    SLU_PROPERTY_SCORE,
    SLU_N_PROPERTY
};

struct slu_property {
    enum slu_property_at at;
    enum slu_meta_type type; /* of its values */
    uint64_t key;            /* META: of the field */
    const char *name;        /* borrowed */
};

/* Hashes of domains and sources by their numbers; all 0 at first. */
struct slu_property_memo {
    struct {
        uint64_t number, hash;
    } of[64];
};

/* Those that are no metadata. */
extern const struct slu_property slu_property_own[SLU_N_PROPERTY];

/* Finds the property of this name, which is borrowed, in a stream. SLU_E_MISMATCH: there
 * is none. */
SLU_MUST_USE int slu_property_find(struct slu_property *p, const char *name,
                                   const struct slu_header *h, struct slu_err *err);
/* The first segment that is not padding; NULL: all are. */
static inline const struct slu_seg *slu_seq_first(const struct slu_batch *b,
                                                  const struct slu_seq *q)
{
    const struct slu_seg *s = &b->seg[q->seg_off];

    for (uint64_t i = 0; i < q->n_seg; i++)
        if (s[i].source != SLU_PADDING)
            return &s[i];
    return NULL;
}

/* SLU_E_MISMATCH if the documents of the sequence, which has several segments, differ in
 * it. */
SLU_MUST_USE int slu_property_agree(const struct slu_property *p,
                                    const struct slu_batch *b, const struct slu_seq *q,
                                    struct slu_err *err);
/* The same for any sequence. */
SLU_MUST_USE static inline int slu_property_same(const struct slu_property *p,
                                                 const struct slu_batch *b,
                                                 const struct slu_seq *q,
                                                 struct slu_err *err)
{
    return q->n_seg > 1 ? slu_property_agree(p, b, q, err) : SLU_OK;
}

/* Gets the value of the document of segment s, which is in sequence q; false: null.
 * v->p is borrowed from the batch, from names, or is `number`. */
bool slu_property_get(const struct slu_property *p, struct slu_names *names,
                      const struct slu_batch *b, const struct slu_seq *q,
                      const struct slu_seg *s, uint8_t number[8],
                      struct slu_meta_value *v);
/* Gets the value of the metadata field with this key; false: null. v->p is borrowed from
 * the batch. */
bool slu_seg_meta(const struct slu_batch *b, const struct slu_seg *s, uint64_t key,
                  struct slu_meta_value *v);
/* What stands for the value of a sequence: XXH3-64 of its bytes, odd; 0: null, or
 * padding alone. SLU_E_MISMATCH as slu_property_same. */
SLU_MUST_USE int slu_property_hash(const struct slu_property *p,
                                   struct slu_names *names, const struct slu_batch *b,
                                   const struct slu_seq *q,
                                   struct slu_property_memo *memo, uint64_t *hash,
                                   struct slu_err *err);

SLU_END_DECLS

#endif
