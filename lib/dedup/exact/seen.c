#include "lib/dedup/exact/seen.h"

#include <string.h>

#include "lib/base/pages.h"

enum { MIN_SLOT = 1024 };

static size_t slot_byte(const struct slu_seen *s)
{
    return sizeof *s->hash + (s->origins ? sizeof *s->origin : 0);
}

void slu_seen_init(struct slu_seen *s, uint64_t max_byte, bool origins)
{
    memset(s, 0, sizeof *s);
    s->origins = origins;
    s->max_slot = max_byte / slot_byte(s);
    if (s->max_slot < MIN_SLOT)
        s->max_slot = MIN_SLOT;
}

void slu_seen_release(struct slu_seen *s)
{
    slu_pages_free(s->hash, s->n_slot * sizeof *s->hash);
    slu_pages_free(s->origin, s->n_slot * sizeof *s->origin);
    s->hash = NULL;
    s->origin = NULL;
    s->n = s->n_slot = 0;
}

/* The slot of h, or the empty slot where h would go. Slots ascend with the hash, except
 * for collisions, so growing walks both tables in order. */
static size_t find(const struct slu_seen *s, struct slu_u128 h)
{
    size_t i = (size_t)(((unsigned __int128)h.hi * s->n_slot) >> 64);

    while ((s->hash[i].lo | s->hash[i].hi) && slu_u128_cmp(s->hash[i], h))
        i = i + 1 == s->n_slot ? 0 : i + 1;
    return i;
}

/* Sizes are max_slot >> k, so that the last doubling ends at max_slot. */
static size_t next_size(const struct slu_seen *s)
{
    size_t n = s->max_slot;

    while (n / 2 >= MIN_SLOT && n / 2 > s->n_slot)
        n /= 2;
    return n;
}

static int grow(struct slu_seen *s, struct slu_err *err)
{
    struct slu_seen t = *s;

    t.n_slot = next_size(s);
    t.hash = slu_pages_new(t.n_slot * sizeof *t.hash, SLU_PAGES_SMALL);
    t.origin =
        s->origins ? slu_pages_new(t.n_slot * sizeof *t.origin, SLU_PAGES_SMALL) : NULL;
    if (!t.hash || (s->origins && !t.origin)) {
        slu_pages_free(t.hash, t.n_slot * sizeof *t.hash);
        return slu_fail_nomem(err, t.n_slot * slot_byte(s));
    }
    for (size_t i = 0; i < s->n_slot; i++) {
        if (!(s->hash[i].lo | s->hash[i].hi))
            continue;
        size_t k = find(&t, s->hash[i]);
        t.hash[k] = s->hash[i];
        if (t.origin)
            t.origin[k] = s->origin[i];
    }
    size_t n = s->n;
    slu_seen_release(s);
    *s = t;
    s->n = n;
    return SLU_OK;
}

int slu_seen_check(struct slu_seen *s, struct slu_u128 hash, struct slu_origin *origin,
                   enum slu_seen_answer *answer, struct slu_err *err)
{
    if (!(hash.lo | hash.hi))
        hash.lo = 1; /* a zero hash marks an empty slot */
    if (s->n >= s->n_slot - s->n_slot / 8 && s->n_slot < s->max_slot) {
        int rc = grow(s, err);
        if (rc)
            return rc;
    }
    size_t i = find(s, hash);
    if (s->hash[i].lo | s->hash[i].hi) {
        *answer = SLU_SEEN_KNOWN;
        if (s->origins)
            *origin = s->origin[i];
        return SLU_OK;
    }
    *answer = SLU_SEEN_FULL;
    if (s->n >= s->n_slot - s->n_slot / 8)
        return SLU_OK;
    *answer = SLU_SEEN_NEW;
    s->hash[i] = hash;
    if (s->origins)
        s->origin[i] = *origin;
    s->n++;
    return SLU_OK;
}
