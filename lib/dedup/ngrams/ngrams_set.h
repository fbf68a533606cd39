/* ngrams_set.h - a set of the n-grams of one document, reused for the next.
 *
 * Open addressing; a slot is valid only if it has the document's number, so the set
 * need not be cleared. Takes at least 32 bytes for each n-gram, for long documents 22.
 * Thread safety: one thread at a time.
 */
#ifndef SLU_DEDUP_NGRAMS_SET_H
#define SLU_DEDUP_NGRAMS_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/err.h"

#define SLU_GRAM_SET_LARGE ((size_t)1 << 18)

/* Zero before use. */
struct slu_gram_set {
    struct slu_gram_slot {
        uint64_t gram;
        uint32_t document, value;
    } * slot;
    size_t cap;
    uint32_t document;
};

static inline void slu_gram_set_release(struct slu_gram_set *s)
{
    free(s->slot);
    *s = (struct slu_gram_set){0};
}

/* As slu_buf_trim: frees memory that only long documents need. */
static inline void slu_gram_set_trim(struct slu_gram_set *s)
{
    if (s->cap > 2 * SLU_GRAM_SET_LARGE)
        slu_gram_set_release(s);
}

/* Empties the set and makes room for n n-grams. */
SLU_MUST_USE static inline int slu_gram_set_begin(struct slu_gram_set *s, size_t n,
                                                  struct slu_err *err)
{
    bool large = n > SLU_GRAM_SET_LARGE;
    if ((large ? n + n / 3 : 2 * n) > s->cap || s->document == UINT32_MAX) {
        size_t cap = 1024;
        while (cap < 2 * n && !large)
            cap *= 2;
        if (large)
            cap = n + n / 3;
        free(s->slot);
        s->slot = calloc(cap, sizeof *s->slot);
        s->cap = s->slot ? cap : 0;
        s->document = 0;
        if (!s->slot)
            return slu_fail_nomem(err, cap * sizeof *s->slot);
    }
    s->document++;
    return SLU_OK;
}

static inline struct slu_gram_slot *slu_gram_find(const struct slu_gram_set *s,
                                                  uint64_t gram)
{
    size_t i = (size_t)((unsigned __int128)gram * s->cap >> 64);

    while (s->slot[i].document == s->document && s->slot[i].gram != gram)
        i = i + 1 < s->cap ? i + 1 : 0;
    return &s->slot[i];
}

static inline bool slu_gram_has(const struct slu_gram_set *s, uint64_t gram)
{
    return slu_gram_find(s, gram)->document == s->document;
}

/* Returns false, with *value unchanged, if the n-gram was in the set. */
static inline bool slu_gram_add(struct slu_gram_set *s, uint64_t gram, uint32_t *value)
{
    struct slu_gram_slot *t = slu_gram_find(s, gram);

    if (t->document == s->document) {
        *value = t->value;
        return false;
    }
    *t = (struct slu_gram_slot){gram, s->document, *value};
    return true;
}

#endif
