#include "lib/dedup/exact/seen.h"

#include <string.h>

#include "lib/base/pages.h"

enum { MIN_SLOT = 1024 };

static size_t slot_byte(const struct slu_seen *s)
{
    return sizeof *s->hash + (s->places ? sizeof *s->place : 0);
}

void slu_seen_init(struct slu_seen *s, uint64_t max_byte, bool places)
{
    memset(s, 0, sizeof *s);
    s->places = places;
    s->max_slot = max_byte / slot_byte(s);
    if (s->max_slot < MIN_SLOT)
        s->max_slot = MIN_SLOT;
}

void slu_seen_release(struct slu_seen *s)
{
    slu_pages_free(s->hash, s->n_slot * sizeof *s->hash);
    slu_pages_free(s->place, s->n_slot * sizeof *s->place);
    s->hash = NULL;
    s->place = NULL;
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
    t.place =
        s->places ? slu_pages_new(t.n_slot * sizeof *t.place, SLU_PAGES_SMALL) : NULL;
    if (!t.hash || (s->places && !t.place)) {
        slu_pages_free(t.hash, t.n_slot * sizeof *t.hash);
        return slu_fail_nomem(err, t.n_slot * slot_byte(s));
    }
    for (size_t i = 0; i < s->n_slot; i++) {
        if (!(s->hash[i].lo | s->hash[i].hi))
            continue;
        size_t k = find(&t, s->hash[i]);
        t.hash[k] = s->hash[i];
        if (t.place)
            t.place[k] = s->place[i];
    }
    size_t n = s->n;
    slu_seen_release(s);
    *s = t;
    s->n = n;
    return SLU_OK;
}

int slu_seen_check(struct slu_seen *s, struct slu_u128 hash, struct slu_origin *place,
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
        if (s->places)
            *place = s->place[i];
        return SLU_OK;
    }
    *answer = SLU_SEEN_FULL;
    if (s->n >= s->n_slot - s->n_slot / 8)
        return SLU_OK;
    *answer = SLU_SEEN_NEW;
    s->hash[i] = hash;
    if (s->places)
        s->place[i] = *place;
    s->n++;
    return SLU_OK;
}
