#include "lib/dedup/near/near_mem.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/dedup/near/near_table.h"
#include "lib/dedup/near/shingle.h"

enum {
    SET_CHUNK = 4 << 20,     /* bytes of the arena mapped at a time */
    SET_ALONE = 1 << 20,     /* larger sets have an allocation of their own */
    MAX_DOC = (1 << 30) - 1, /* largest number of kept, and of dropped, documents: 30
                                bits */
};
/* in a value of near_sets: the rest is the number of a struct drop */
#define DROPPED (UINT32_C(1) << 31)

struct kept {
    const uint64_t *set;
    uint64_t n_set, ordinal;
    uint64_t stamp; /* the last document that had it as a candidate */
};

/* The witness of a dropped document whose set has no equal before it. */
struct drop {
    uint64_t inter, uni;
    uint32_t witness;
};

struct arena_chunk {
    uint64_t *p;
    size_t n_byte;
};

struct slu_near_mem {
    struct slu_near_mem_cfg cfg;
    struct near_budget budget;
    struct near_table *table; /* n_band */
    struct near_sets sets;
    struct near_pool kept, origin, drop, node;
    struct arena_chunk *chunk;
    size_t n_chunk, cap_chunk;
    uint64_t *next_set; /* next free position in the last shared chunk */
    size_t left;        /* hashes that still fit there */

    struct near_slot **slot; /* of the current document, one for each band */
    uint32_t *cand;
    size_t n_cand, cap_cand;
    uint64_t stamp;
    bool full, handed_over;
    struct slu_near_mem_stats stats;
};

int slu_near_mem_new(struct slu_near_mem **out, const struct slu_near_mem_cfg *cfg,
                     struct slu_err *err)
{
    struct slu_near_mem *m = calloc(1, sizeof *m);

    *out = NULL;
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    m->cfg = *cfg;
    m->budget.most_byte = cfg->budget_byte;
    near_pool_init(&m->kept, sizeof(struct kept), 16);
    near_pool_init(&m->origin, sizeof(struct slu_origin), 16);
    near_pool_init(&m->drop, sizeof(struct drop), 14);
    near_pool_init(&m->node, sizeof(struct near_node), 18);
    m->table = calloc(cfg->n_band ? cfg->n_band : 1, sizeof *m->table);
    m->slot = calloc(cfg->n_band ? cfg->n_band : 1, sizeof *m->slot);
    if (!m->table || !m->slot) {
        slu_near_mem_free(m);
        return slu_fail_nomem(err, cfg->n_band * sizeof *m->table);
    }
    *out = m;
    return SLU_OK;
}

static void free_sets(struct slu_near_mem *m)
{
    for (size_t i = 0; i < m->n_chunk; i++)
        near_unmap(&m->budget, m->chunk[i].p, m->chunk[i].n_byte);
    free(m->chunk);
    m->chunk = NULL;
    m->n_chunk = m->cap_chunk = m->left = 0;
}

void slu_near_mem_free(struct slu_near_mem *m)
{
    if (!m)
        return;
    for (unsigned b = 0; m->table && b < m->cfg.n_band; b++)
        near_table_release(&m->table[b], &m->budget);
    near_sets_release(&m->sets, &m->budget);
    near_pool_release(&m->kept, &m->budget);
    near_pool_release(&m->origin, &m->budget);
    near_pool_release(&m->drop, &m->budget);
    near_pool_release(&m->node, &m->budget);
    free_sets(m);
    free(m->table);
    free(m->slot);
    free(m->cand);
    free(m);
}

const struct slu_near_mem_stats *slu_near_mem_stats(const struct slu_near_mem *m)
{
    return &m->stats;
}

uint64_t slu_near_mem_peak(const struct slu_near_mem *m)
{
    return m->budget.peak_byte;
}

static struct slu_u128 set_hash(const struct slu_near_item *d)
{
    struct slu_u128 h = d->set_hash;

    if (!(h.lo | h.hi))
        h.lo = 1; /* a zero hash marks an empty slot */
    return h;
}

void slu_near_mem_prefetch(const struct slu_near_mem *m, const struct slu_near_item *d)
{
    if (!d->n_set || m->handed_over)
        return;
    for (unsigned b = 0; b < m->cfg.n_band; b++) {
        const struct near_table *t = &m->table[b];
        __builtin_prefetch(t->slot + near_home(d->key[b], t->n_slot));
    }
    __builtin_prefetch(m->sets.hash + near_home(set_hash(d).hi, m->sets.n_slot));
    __builtin_prefetch(m->sets.value + near_home(set_hash(d).hi, m->sets.n_slot));
}

/* ---- reserving memory ---- */

/* Reserves room for a set in the arena, at next_set. */
static int reserve_set(struct slu_near_mem *m, uint64_t n_set, bool *fits,
                       struct slu_err *err)
{
    size_t n_byte = SET_CHUNK;
    void *p;

    *fits = true;
    if (n_set <= m->left)
        return SLU_OK;
    if (n_set > SET_ALONE / sizeof *m->next_set)
        return SLU_OK; /* this memory is allocated when the set is added */
    int rc = slu_grow(&m->chunk, &m->cap_chunk, m->n_chunk + 1, sizeof *m->chunk, err);
    if (!rc)
        rc = near_map(&m->budget, n_byte, &p, err);
    if (rc)
        return rc;
    *fits = p != NULL;
    if (p) {
        m->chunk[m->n_chunk++] = (struct arena_chunk){p, n_byte};
        m->next_set = p;
        m->left = n_byte / sizeof *m->next_set;
    }
    return SLU_OK;
}

/* Reserves all memory that deciding d may take, whatever the decision, so that FULL
 * comes before any change. */
static int reserve(struct slu_near_mem *m, const struct slu_near_item *d, bool *fits,
                   struct slu_err *err)
{
    int rc = near_sets_reserve(&m->sets, &m->budget, fits, err);

    for (unsigned b = 0; !rc && *fits && b < m->cfg.n_band; b++)
        rc = near_table_reserve(&m->table[b], &m->budget, fits, err);
    if (!rc && *fits)
        rc = near_pool_reserve(&m->node, &m->budget, 2 * m->cfg.n_band, fits, err);
    if (!rc && *fits)
        rc = near_pool_reserve(&m->kept, &m->budget, 1, fits, err);
    if (!rc && *fits && m->cfg.details)
        rc = near_pool_reserve(&m->origin, &m->budget, 1, fits, err);
    if (!rc && *fits && m->cfg.details)
        rc = near_pool_reserve(&m->drop, &m->budget, 1, fits, err);
    if (!rc && *fits)
        rc = reserve_set(m, d->n_set, fits, err);
    if (m->kept.n >= MAX_DOC || m->drop.n >= MAX_DOC || m->node.n >= MAX_DOC)
        *fits = false;
    return rc;
}

/* ---- one document ---- */

static void tell_witness(const struct slu_near_mem *m, uint32_t doc,
                         struct slu_near_verdict *v)
{
    if (m->cfg.details)
        v->witness = *(const struct slu_origin *)near_pool_at(&m->origin, doc);
}

/* Whether an earlier document has the set of d; then d's outcome is that of the first.
 * */
static bool has_equal(struct slu_near_mem *m, const struct slu_near_item *d,
                      struct slu_near_verdict *v)
{
    if (!m->sets.n_slot)
        return false;
    size_t i = near_sets_find(&m->sets, set_hash(d));
    if (!(m->sets.hash[i].lo | m->sets.hash[i].hi))
        return false;
    uint32_t value = m->sets.value[i];
    v->answer = SLU_NEAR_DROPPED;
    v->equal = true;
    v->inter = v->uni = d->n_set;
    m->stats.equal_sets++;
    if (value & DROPPED && m->cfg.details) {
        const struct drop *p = near_pool_at(&m->drop, value & ~DROPPED);
        v->inter = p->inter;
        v->uni = p->uni;
        tell_witness(m, p->witness, v);
    } else if (m->cfg.details) {
        tell_witness(m, value, v);
    }
    return true;
}

static int add_candidate(struct slu_near_mem *m, uint32_t doc, struct slu_err *err)
{
    struct kept *k = near_pool_at(&m->kept, doc);

    if (k->stamp == m->stamp)
        return SLU_OK;
    k->stamp = m->stamp;
    int rc = slu_grow(&m->cand, &m->cap_cand, m->n_cand + 1, sizeof *m->cand, err);
    if (!rc)
        m->cand[m->n_cand++] = doc;
    return rc;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Finds d's slot in each band, and the kept documents there, each once, in order. */
static int find_candidates(struct slu_near_mem *m, const struct slu_near_item *d,
                           struct slu_err *err)
{
    bool capped = false;
    int rc = SLU_OK;

    m->stamp++;
    m->n_cand = 0;
    for (unsigned b = 0; !rc && b < m->cfg.n_band; b++) {
        struct near_slot *s = near_table_find(&m->table[b], d->key[b]);
        m->slot[b] = s;
        capped |= s->n >= m->cfg.band_cap;
        if (!s->n || s->head == NEAR_NONE)
            continue;
        if (!(s->head & NEAR_LIST)) {
            rc = add_candidate(m, s->head, err);
            continue;
        }
        for (uint32_t i = s->head & ~NEAR_LIST; !rc && i != NEAR_NONE;) {
            const struct near_node *node = near_pool_at(&m->node, i);
            rc = add_candidate(m, node->doc, err);
            i = node->next;
        }
    }
    m->stats.capped_documents += capped;
    m->stats.candidates += m->n_cand;
    if (m->n_cand > 1)
        qsort(m->cand, m->n_cand, sizeof *m->cand, compare_u32);
    return rc;
}

/* Finds the first candidate that is similar enough. */
static bool find_witness(struct slu_near_mem *m, const struct slu_near_item *d,
                         uint32_t *doc, struct slu_near_verdict *v)
{
    for (size_t i = 0; i < m->n_cand; i++) {
        const struct kept *k = near_pool_at(&m->kept, m->cand[i]);
        size_t inter = 0, need = 0;
        if (m->cfg.verify) {
            need = slu_sets_need(d->n_set, k->n_set, m->cfg.num, m->cfg.den);
            if (need > d->n_set || need > k->n_set) {
                m->stats.refused++;
                continue;
            }
        }
        if (m->cfg.verify || m->cfg.details)
            inter = slu_sets_intersect(d->set, d->n_set, k->set, k->n_set, need);
        if (inter < need) {
            m->stats.refused++;
            continue;
        }
        m->stats.verified += m->cfg.verify;
        *doc = m->cand[i];
        v->answer = SLU_NEAR_DROPPED;
        v->inter = inter;
        v->uni = d->n_set + k->n_set - inter;
        tell_witness(m, *doc, v);
        return true;
    }
    return false;
}

static int hold_set(struct slu_near_mem *m, const struct slu_near_item *d,
                    const uint64_t **set, struct slu_err *err)
{
    size_t n_byte = d->n_set * sizeof *d->set;

    if (d->n_set > m->left) {
        void *p = NULL;
        int rc =
            slu_grow(&m->chunk, &m->cap_chunk, m->n_chunk + 1, sizeof *m->chunk, err);
        if (!rc)
            rc = near_map(&m->budget, n_byte, &p, err);
        if (rc || !p)
            return rc ? rc : SLU_EOF;
        m->chunk[m->n_chunk++] = (struct arena_chunk){p, n_byte};
        memcpy(p, d->set, n_byte);
        *set = p;
        return SLU_OK;
    }
    memcpy(m->next_set, d->set, n_byte);
    *set = m->next_set;
    m->next_set += d->n_set;
    m->left -= d->n_set;
    return SLU_OK;
}

static void add_to_group(struct slu_near_mem *m, struct near_slot *s, uint32_t doc)
{
    uint32_t list = s->head;

    if (s->head == NEAR_NONE) {
        s->head = doc;
        return;
    }
    if (!(list & NEAR_LIST)) {
        struct near_node *first = near_pool_add(&m->node);
        *first = (struct near_node){list, NEAR_NONE};
        list = (uint32_t)(m->node.n - 1);
    }
    struct near_node *node = near_pool_add(&m->node);
    *node = (struct near_node){doc, list & ~NEAR_LIST};
    s->head = (uint32_t)(m->node.n - 1) | NEAR_LIST;
}

/* Counts a distinct document in its groups, kept or not. Only kept documents among the
 * first band_cap can be witnesses. */
static void join_groups(struct slu_near_mem *m, const struct slu_near_item *d,
                        bool is_kept, uint32_t doc)
{
    for (unsigned b = 0; b < m->cfg.n_band; b++) {
        struct near_slot *s = m->slot[b];
        if (!s->n) {
            s->key = d->key[b];
            s->head = NEAR_NONE;
            m->table[b].n++;
        }
        if (is_kept && s->n < m->cfg.band_cap)
            add_to_group(m, s, doc);
        s->n += s->n < UINT32_MAX;
    }
}

static void add_set(struct slu_near_mem *m, const struct slu_near_item *d,
                    uint32_t value)
{
    size_t i = near_sets_find(&m->sets, set_hash(d));

    m->sets.hash[i] = set_hash(d);
    m->sets.value[i] = value;
    m->sets.n++;
}

static int keep(struct slu_near_mem *m, const struct slu_near_item *d,
                struct slu_near_verdict *v, struct slu_err *err)
{
    const uint64_t *set = NULL;

    int rc = hold_set(m, d, &set, err);
    if (rc) {
        v->answer = SLU_NEAR_FULL;
        return rc == SLU_EOF ? SLU_OK : rc;
    }
    struct kept *k = near_pool_add(&m->kept);
    *k = (struct kept){set, d->n_set, d->ordinal, m->stamp};
    if (m->cfg.details)
        *(struct slu_origin *)near_pool_add(&m->origin) = d->origin;
    join_groups(m, d, true, (uint32_t)(m->kept.n - 1));
    add_set(m, d, (uint32_t)(m->kept.n - 1));
    return SLU_OK;
}

int slu_near_mem_put(struct slu_near_mem *m, const struct slu_near_item *d,
                     struct slu_near_verdict *v, struct slu_err *err)
{
    struct slu_near_mem_stats before;
    uint32_t witness = 0;
    bool fits;

    *v = (struct slu_near_verdict){.answer = SLU_NEAR_KEPT};
    if (!d->n_set)
        return SLU_OK;
    before = m->stats;
    if (has_equal(m, d, v)) {
        if (d->fixed) { /* the first stands for the fixed document */
            v->answer = SLU_NEAR_KEPT;
            m->stats = before;
        }
        return SLU_OK;
    }
    v->answer = SLU_NEAR_FULL;
    if (m->full)
        return SLU_OK;
    before = m->stats;
    int rc = reserve(m, d, &fits, err);
    if (!rc && fits)
        rc = find_candidates(m, d, err);
    if (rc)
        return rc;
    if (fits) {
        v->answer = SLU_NEAR_KEPT;
        if (d->fixed) {
            m->stats = before; /* a fixed document's comparisons are not counted */
            rc = keep(m, d, v, err);
        } else if (find_witness(m, d, &witness, v)) {
            uint32_t value = DROPPED;
            if (m->cfg.details) {
                *(struct drop *)near_pool_add(&m->drop) =
                    (struct drop){v->inter, v->uni, witness};
                value |= (uint32_t)(m->drop.n - 1);
            }
            join_groups(m, d, false, 0);
            add_set(m, d, value);
        } else {
            rc = keep(m, d, v, err);
        }
    }
    if (v->answer == SLU_NEAR_FULL) {
        m->full = true;
        m->stats = before;
    }
    return rc;
}

/* ---- hand-over ---- */

static int tell_group(struct slu_near_mem *m, unsigned band, const struct near_slot *s,
                      const struct slu_near_mem_sink *sink, uint64_t **ordinal,
                      size_t *cap, struct slu_err *err)
{
    size_t n = 0;
    int rc = SLU_OK;

    if (s->head != NEAR_NONE && !(s->head & NEAR_LIST)) {
        const struct kept *k = near_pool_at(&m->kept, s->head);
        return sink->group(sink->ctx, band, s->key, s->n, &k->ordinal, 1, err);
    }
    for (uint32_t i = s->head == NEAR_NONE ? NEAR_NONE : s->head & ~NEAR_LIST;
         !rc && i != NEAR_NONE;) {
        const struct near_node *node = near_pool_at(&m->node, i);
        rc = slu_grow(ordinal, cap, n + 1, sizeof **ordinal, err);
        if (!rc)
            (*ordinal)[n++] =
                ((const struct kept *)near_pool_at(&m->kept, node->doc))->ordinal;
        i = node->next;
    }
    for (size_t i = 0; i < n / 2; i++) { /* the list has the latest document first */
        uint64_t t = (*ordinal)[i];
        (*ordinal)[i] = (*ordinal)[n - 1 - i];
        (*ordinal)[n - 1 - i] = t;
    }
    return rc ? rc : sink->group(sink->ctx, band, s->key, s->n, *ordinal, n, err);
}

int slu_near_mem_hand_over(struct slu_near_mem *m, const struct slu_near_mem_sink *sink,
                           struct slu_err *err)
{
    uint64_t *ordinal = NULL;
    size_t cap = 0;
    int rc = SLU_OK;

    m->full = m->handed_over = true;
    for (uint64_t i = 0; !rc && i < m->kept.n; i++) {
        const struct kept *k = near_pool_at(&m->kept, i);
        rc = sink->kept(sink->ctx, k->ordinal, k->set, k->n_set, err);
    }
    free_sets(m);
    for (unsigned b = 0; !rc && b < m->cfg.n_band; b++) {
        for (size_t i = 0; !rc && i < m->table[b].n_slot; i++)
            if (m->table[b].slot[i].n)
                rc = tell_group(m, b, &m->table[b].slot[i], sink, &ordinal, &cap, err);
        near_table_release(&m->table[b], &m->budget);
    }
    near_pool_release(&m->node, &m->budget);
    if (!m->cfg.details)
        near_pool_release(&m->kept, &m->budget);
    free(ordinal);
    return rc;
}

uint64_t slu_near_mem_n_kept(const struct slu_near_mem *m)
{
    return m->kept.n;
}

void slu_near_mem_kept(const struct slu_near_mem *m, uint64_t i, uint64_t *ordinal,
                       struct slu_origin *origin)
{
    *ordinal = ((const struct kept *)near_pool_at(&m->kept, i))->ordinal;
    *origin = *(const struct slu_origin *)near_pool_at(&m->origin, i);
}

void slu_near_mem_forget_sets(struct slu_near_mem *m)
{
    near_sets_release(&m->sets, &m->budget);
    near_pool_release(&m->drop, &m->budget);
}

uint64_t slu_near_mem_left(const struct slu_near_mem *m)
{
    if (!m->cfg.details)
        return 0;
    return near_map_size(m->kept.item_byte << m->kept.shift) * m->kept.n_chunk +
           near_map_size(m->origin.item_byte << m->origin.shift) * m->origin.n_chunk;
}
