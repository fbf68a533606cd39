/* near_oracle.h - near duplicates exactly as near.h defines them, without regard to
 * speed: all pairs, all bands. The oracle for tests of the fast version. */
#ifndef SLU_TESTS_NEAR_ORACLE_H
#define SLU_TESTS_NEAR_ORACLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct oracle_doc {
    uint64_t prio; /* order: fixed ones, then by (prio, place in the array) */
    bool fixed;
    const uint64_t *key; /* n_band */
    const uint64_t *set; /* ascending, distinct */
    uint64_t n_set;
    /* The answer. */
    bool dropped, capped;
    size_t witness; /* index */
    uint64_t inter, uni;
    /* Private. */
    size_t first; /* index of the first document with this set */
};

struct oracle_cfg {
    unsigned n_band;
    uint64_t num, den, band_cap;
    bool verify;
};

static inline bool oracle_before(const struct oracle_doc *doc, size_t a, size_t b)
{
    if (doc[a].fixed != doc[b].fixed)
        return doc[a].fixed;
    if (!doc[a].fixed && doc[a].prio != doc[b].prio)
        return doc[a].prio < doc[b].prio;
    return a < b;
}

static inline uint64_t oracle_common(const struct oracle_doc *a,
                                     const struct oracle_doc *b)
{
    uint64_t n = 0;

    for (uint64_t i = 0, j = 0; i < a->n_set; i++) {
        while (j < b->n_set && b->set[j] < a->set[i])
            j++;
        n += j < b->n_set && b->set[j] == a->set[i];
    }
    return n;
}

/* Whether k, the first of its set and before d, is a candidate for it; *capped if in a
 * common group d is past the cap. order: indices of the first documents of each set, in
 * order. */
static inline bool oracle_candidate(const struct oracle_cfg *c,
                                    const struct oracle_doc *doc, const size_t *order,
                                    size_t n_order, size_t k, size_t d)
{
    for (unsigned b = 0; b < c->n_band; b++) {
        if (doc[order[k]].key[b] != doc[order[d]].key[b])
            continue;
        uint64_t place = 0;
        for (size_t i = 0; i < k; i++)
            place += doc[order[i]].key[b] == doc[order[k]].key[b];
        if (place < c->band_cap)
            return true;
    }
    (void)n_order;
    return false;
}

static inline bool oracle_capped(const struct oracle_cfg *c,
                                 const struct oracle_doc *doc, const size_t *order,
                                 size_t d)
{
    for (unsigned b = 0; b < c->n_band; b++) {
        uint64_t place = 0;
        for (size_t i = 0; i < d; i++)
            place += doc[order[i]].key[b] == doc[order[d]].key[b];
        if (place >= c->band_cap)
            return true;
    }
    return false;
}

static inline void oracle_decide(const struct oracle_cfg *c, struct oracle_doc *doc,
                                 size_t n)
{
    size_t *order = malloc((n + 1) * sizeof *order), m = 0;

    for (size_t i = 0; i < n; i++) {
        doc[i].first = i;
        doc[i].dropped = doc[i].capped = false;
        for (size_t j = 0; j < n && doc[i].n_set; j++)
            if (doc[j].n_set == doc[i].n_set &&
                !memcmp(doc[j].set, doc[i].set, 8 * doc[i].n_set) &&
                oracle_before(doc, j, doc[i].first))
                doc[i].first = j;
        if (doc[i].first == i && doc[i].n_set)
            order[m++] = i;
    }
    for (size_t i = 1; i < m; i++) /* insertion sort */
        for (size_t j = i; j > 0 && oracle_before(doc, order[j], order[j - 1]); j--) {
            size_t t = order[j];
            order[j] = order[j - 1];
            order[j - 1] = t;
        }
    for (size_t d = 0; d < m; d++) {
        struct oracle_doc *x = &doc[order[d]];
        if (x->fixed)
            continue;
        x->capped = oracle_capped(c, doc, order, d);
        for (size_t k = 0; k < d && !x->dropped; k++) {
            const struct oracle_doc *y = &doc[order[k]];
            if (y->dropped || !oracle_candidate(c, doc, order, m, k, d))
                continue;
            uint64_t inter = oracle_common(x, y), uni = x->n_set + y->n_set - inter;
            if (c->verify && inter * c->den < uni * c->num)
                continue;
            x->dropped = true;
            x->witness = order[k];
            x->inter = inter;
            x->uni = uni;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const struct oracle_doc *f = &doc[doc[i].first];
        if (doc[i].first == i || doc[i].fixed)
            continue;
        doc[i].dropped = true;
        doc[i].witness = f->dropped ? f->witness : doc[i].first;
        doc[i].inter = f->dropped ? f->inter : f->n_set;
        doc[i].uni = f->dropped ? f->uni : f->n_set;
    }
    free(order);
}

/* ---- random documents ---- */

static inline uint64_t oracle_mix(uint64_t z)
{
    z = (z + UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline int oracle_cmp_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* n documents in families: copies of one set in which a few hashes differ; keys that
 * few values make collide. Freed by oracle_free. */
static inline struct oracle_doc *
oracle_make(size_t n, unsigned n_band, uint64_t n_family, uint64_t n_key, uint64_t seed)
{
    struct oracle_doc *doc = calloc(n, sizeof *doc);

    for (size_t i = 0; i < n; i++) {
        uint64_t r = oracle_mix(seed * 1000003 + i), family = r % n_family;
        uint64_t size = oracle_mix(family ^ seed) % 40, change = r >> 32 & 7;
        uint64_t *set = malloc((size + 1) * 8), *key = malloc((n_band + 1) * 8), m = 0;
        for (uint64_t j = 0; j < size; j++) {
            uint64_t who = oracle_mix(r + 77 * j) % 16 < change && r % 3 ? i : 0;
            set[j] = oracle_mix(family << 32 ^ j << 8 ^ who << 48 ^ seed);
        }
        qsort(set, size, 8, oracle_cmp_u64);
        for (uint64_t j = 0; j < size; j++)
            if (m == 0 || set[m - 1] != set[j])
                set[m++] = set[j];
        /* Equal sets have equal keys, as signatures have. */
        uint64_t h = m;
        for (uint64_t j = 0; j < m; j++)
            h = oracle_mix(h ^ set[j]);
        for (unsigned b = 0; b < n_band; b++)
            key[b] = oracle_mix((h >> b & 3 ? family : h % 7) % n_key + 1000 * (b % 3));
        doc[i].prio = r >> 40 & 15;
        doc[i].set = set;
        doc[i].n_set = m;
        doc[i].key = key;
    }
    return doc;
}

static inline void oracle_free(struct oracle_doc *doc, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free((void *)(uintptr_t)doc[i].set);
        free((void *)(uintptr_t)doc[i].key);
    }
    free(doc);
}

#endif
