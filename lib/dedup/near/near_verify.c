#include "lib/dedup/near/near_verify.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/dedup/near/near_private.h"
#include "lib/dedup/near/shingle.h"
#include "lib/flow/sorter.h"

enum { ENTRIES = 512 }; /* documents that are looked up at once */
enum { RANK = 2 };

struct slu_near_verify {
    struct slu_near_verify_cfg cfg;
    struct slu_sorter *pairs;
    uint64_t block_word, k_word; /* numbers that fit for the sets of a block, and for
                                    a set of k */
    uint64_t *start;             /* n_block + 1 ordinals */
    size_t n_block, cap_block;
    unsigned shift_block, shift_k; /* positions of the block and of k in the sort key */

    size_t block; /* the block in memory; n_block: none */
    struct slu_stored *entry;
    size_t cap_entry;
    uint64_t *set, *k_set; /* sets of the block from its first document on; set of k,
                              or a window of it */
    size_t cap_set, cap_k_set;

    struct slu_stored look[ENTRIES]; /* entries of ordinals from look_at on */
    uint64_t look_at, n_look;
    struct slu_near_verify_result result;
};

/* Divides [d_first, d_end) into blocks. */
static int cut_blocks(struct slu_near_verify *v, struct slu_err *err)
{
    const struct slu_near_verify_cfg *c = &v->cfg;
    uint64_t weight = 0;
    int rc = slu_grow(&v->start, &v->cap_block, 2, sizeof *v->start, err);

    if (rc)
        return rc;
    v->start[0] = c->d_first;
    v->n_block = 1;
    for (uint64_t at = c->d_first; at < c->d_end;) {
        size_t n = c->d_end - at < ENTRIES ? (size_t)(c->d_end - at) : ENTRIES;
        rc = slu_store_look(v->cfg.set, at, n, v->look, err);
        for (size_t i = 0; !rc && i < n; i++) {
            uint64_t w = v->look[i].n + sizeof v->look[i] / 8;
            if (weight && weight + w > v->block_word) {
                rc = slu_grow(&v->start, &v->cap_block, v->n_block + 2,
                              sizeof *v->start, err);
                if (rc)
                    break;
                v->start[v->n_block++] = at + i;
                weight = 0;
            }
            weight += w;
        }
        if (rc)
            return rc;
        at += n;
    }
    v->start[v->n_block] = c->d_end;
    v->n_look = 0;
    return SLU_OK;
}

int slu_near_verify_new(struct slu_near_verify **out,
                        const struct slu_near_verify_cfg *cfg, struct slu_err *err)
{
    struct slu_near_verify *v = calloc(1, sizeof *v);

    *out = NULL;
    if (!v)
        return slu_fail_nomem(err, sizeof *v);
    v->cfg = *cfg;
    v->block_word = cfg->budget_byte / 4 / 8;
    v->k_word = cfg->budget_byte / 8 / 8;
    struct slu_sorter_cfg sc = {cfg->budget_byte / 2, cfg->tmpdir, cfg->n_threads};
    int rc = slu_sorter_new(&v->pairs, &sc, err);
    if (!rc)
        rc = cut_blocks(v, err);
    v->block = v->n_block;
    v->shift_block = 128 - slu_near_bits(v->n_block);
    v->shift_k = v->shift_block - slu_near_bits(v->cfg.n_doc);
    if (!rc && v->shift_k < slu_near_bits(v->cfg.n_doc))
        rc = slu_fail(err, SLU_E_LIMIT, "too many documents for this much memory");
    if (rc)
        slu_near_verify_free(v);
    else
        *out = v;
    return rc;
}

void slu_near_verify_free(struct slu_near_verify *v)
{
    if (!v)
        return;
    slu_sorter_free(v->pairs);
    free(v->start);
    free(v->entry);
    free(v->set);
    free(v->k_set);
    free(v);
}

const struct slu_near_verify_result *
slu_near_verify_result(const struct slu_near_verify *v)
{
    return &v->result;
}

static size_t block_of(const struct slu_near_verify *v, uint64_t d)
{
    size_t lo = 0, hi = v->n_block;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (v->start[mid] <= d)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

int slu_near_verify_pair(struct slu_near_verify *v, uint64_t k, uint64_t d,
                         struct slu_err *err)
{
    if (d < v->cfg.d_first || d >= v->cfg.d_end || k >= v->cfg.n_doc)
        return slu_fail(err, SLU_E_FORMAT, "a pair names a document that is not there");
    unsigned __int128 x = (unsigned __int128)block_of(v, d) << v->shift_block |
                          (unsigned __int128)k << v->shift_k | d;
    const struct slu_u128 key = {(uint64_t)x, (uint64_t)(x >> 64)};

    return slu_sorter_add(v->pairs, key, NULL, 0, err);
}

/* ---- reading ---- */

static int look_up(struct slu_near_verify *v, uint64_t ordinal, struct slu_stored *e,
                   struct slu_err *err)
{
    if (ordinal < v->look_at || ordinal - v->look_at >= v->n_look) {
        uint64_t left = v->cfg.n_doc - ordinal;
        v->n_look = left < ENTRIES ? left : ENTRIES;
        v->look_at = ordinal;
        int rc = slu_store_look(v->cfg.set, ordinal, v->n_look, v->look, err);
        if (rc) {
            v->n_look = 0;
            return rc;
        }
    }
    *e = v->look[ordinal - v->look_at];
    return SLU_OK;
}

/* Allocates room for exactly n words at *p. */
static int reserve(uint64_t **p, size_t *cap, uint64_t n, struct slu_err *err)
{
    size_t byte;

    if (n <= *cap)
        return SLU_OK;
    free(*p);
    *cap = 0;
    *p = slu_mul_overflow(n, 8, &byte) ? NULL : malloc(byte);
    if (!*p)
        return slu_fail_nomem(err, n * 8);
    *cap = n;
    return SLU_OK;
}

static int load_block(struct slu_near_verify *v, size_t block, struct slu_err *err)
{
    uint64_t from = v->start[block], n_word = 0, at = 0;
    size_t n = (size_t)(v->start[block + 1] - from);

    v->block = v->n_block;
    if (n > v->cap_entry) {
        free(v->entry);
        v->cap_entry = 0;
        v->entry = calloc(n, sizeof *v->entry);
        if (!v->entry)
            return slu_fail_nomem(err, n * sizeof *v->entry);
        v->cap_entry = n;
    }
    int rc = slu_store_look(v->cfg.set, from, n, v->entry, err);
    for (size_t i = 0; !rc && i < n; i++)
        if (__builtin_add_overflow(n_word, v->entry[i].n, &n_word))
            rc = slu_fail_nomem(err, UINT64_MAX);
    if (!rc)
        rc = reserve(&v->set, &v->cap_set, n_word, err);
    for (size_t i = 0; !rc && i < n; i++) {
        struct slu_stored *e = &v->entry[i];
        if (e->n)
            rc = slu_store_read(v->cfg.set, from + i, e, 0, e->n, v->set + at, err);
        e->off = at; /* position in v->set from now on */
        at += e->n;
    }
    if (!rc)
        v->block = block;
    return rc;
}

/* Size of the intersection of k and d if k's set does not fit: reads it in windows. */
static int common_large(struct slu_near_verify *v, uint64_t k,
                        const struct slu_stored *ke, const uint64_t *d, uint64_t n_d,
                        uint64_t *inter, struct slu_err *err)
{
    *inter = 0;
    for (uint64_t at = 0, n; at < ke->n; at += n) {
        uint64_t m = 0;
        n = ke->n - at < v->k_word ? ke->n - at : v->k_word;
        int rc = slu_store_read(v->cfg.set, k, ke, at, n, v->k_set, err);
        if (rc)
            return rc;
        while (m < n_d && d[m] <= v->k_set[n - 1])
            m++;
        *inter += slu_sets_intersect(v->k_set, n, d, m, 0);
        d += m;
        n_d -= m;
    }
    return SLU_OK;
}

/* Checks one candidate; *loaded: k's set is in k_set. */
static int check(struct slu_near_verify *v, uint64_t k, const struct slu_stored *ke,
                 uint64_t d, bool *loaded, struct slu_err *err)
{
    const struct slu_stored *de = &v->entry[d - v->start[v->block]];
    uint64_t a = ke->n, b = de->n, inter = 0, least = 0;
    int rc = SLU_OK;

    v->result.candidates++;
    if (a == 0 || b == 0)
        return slu_fail(err, SLU_E_FORMAT, "a pair names a document without a set");
    if (v->cfg.verify) {
        least = slu_sets_need(a, b, v->cfg.num, v->cfg.den);
        if (least > a || least > b)
            return SLU_OK; /* without verification, similarity does not matter */
    }
    bool fits = a <= v->k_word;
    if (!*loaded) {
        uint64_t n = fits ? a : v->k_word;
        rc = reserve(&v->k_set, &v->cap_k_set, n, err);
        if (!rc && fits)
            rc = slu_store_read(v->cfg.set, k, ke, 0, n, v->k_set, err);
        *loaded = fits;
    }
    if (!rc && fits)
        inter = slu_sets_intersect(v->k_set, a, v->set + de->off, b, least);
    else if (!rc)
        rc = common_large(v, k, ke, v->set + de->off, b, &inter, err);
    if (rc || inter < least)
        return rc;
    v->result.edges++;
    const struct slu_near_edge e = {d,     de->word[RANK], k, ke->word[RANK],
                                    inter, a + b - inter};
    return v->cfg.edge(v->cfg.ctx, &e, err);
}

int slu_near_verify_run(struct slu_near_verify *v, struct slu_err *err)
{
    uint64_t last_k = UINT64_MAX, d_mask, k_mask;
    struct slu_u128 key, last = {0, 0};
    struct slu_stored ke = {0};
    bool any = false, loaded = false;
    const void *p;
    size_t n;

    k_mask = (UINT64_C(1) << (v->shift_block - v->shift_k)) - 1;
    d_mask = k_mask; /* both are ordinals */
    int rc = slu_sorter_seal(v->pairs, err);
    while (!rc) {
        rc = slu_sorter_next(v->pairs, &key, &p, &n, err);
        if (rc || (any && slu_u128_cmp(key, last) == 0))
            continue;
        any = true;
        last = key;
        unsigned __int128 x = (unsigned __int128)key.hi << 64 | key.lo;
        size_t block = (size_t)(x >> v->shift_block);
        uint64_t k = (uint64_t)(x >> v->shift_k) & k_mask, d = (uint64_t)x & d_mask;
        if (k == d) {
            v->result.capped++;
            continue;
        }
        if (block != v->block) {
            rc = load_block(v, block, err);
            last_k = UINT64_MAX;
        }
        if (!rc && k != last_k) {
            rc = look_up(v, k, &ke, err);
            last_k = k;
            loaded = false;
        }
        if (!rc)
            rc = check(v, k, &ke, d, &loaded, err);
    }
    v->result.spilled_byte = slu_sorter_spilled(v->pairs);
    return rc == SLU_EOF ? SLU_OK : rc;
}
