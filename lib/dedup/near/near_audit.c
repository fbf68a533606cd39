#include "lib/dedup/near/near_audit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"

enum { MIN_SLOT = 1 << 12 };
#define NONE         UINT32_MAX
#define DRAW_OF_PAIR 0x61756469742e6eull /* number of the random variable: "audit.n" */

struct sampled {
    uint64_t draw;
    uint64_t *key, *set; /* in one allocation with this struct */
    uint64_t n_set;
    uint32_t id;            /* its index in by_id */
    uint64_t common, stamp; /* with the current document */
    uint64_t pairs, found;
    uint64_t pair_bin[SLU_NEAR_BINS], found_bin[SLU_NEAR_BINS];
};

struct slot {
    uint64_t hash;
    uint32_t head; /* number of a node plus 1; 0: empty */
};
struct node {
    uint32_t id, next; /* id of a struct sampled; next: number of a node plus 1 */
};

struct slu_near_audit {
    struct slu_near_audit_cfg cfg;
    struct sampled **heap; /* the sample; the largest draw comes first */
    size_t n, cap_heap;
    struct sampled **by_id; /* NULL: no longer in the sample */
    size_t n_id, cap_id;
    uint64_t live_hash; /* n-grams of the sample */
    uint64_t cost_hash; /* memory of the sample, measured in n-grams */

    /* The index. bit: tells for some bits of a hash whether a lookup is worth it. */
    struct slot *slot;
    uint8_t *bit; /* a byte for each slot */
    size_t n_slot, n_used;
    struct node *node;
    size_t n_node, cap_node;

    struct sampled **met; /* met by the current document */
    size_t n_met, cap_met;
    uint64_t stamp;
    uint64_t dropped, below, bin[SLU_NEAR_BINS];
};

int slu_near_audit_new(struct slu_near_audit **out,
                       const struct slu_near_audit_cfg *cfg, struct slu_err *err)
{
    struct slu_near_audit *a = calloc(1, sizeof *a);

    *out = NULL;
    if (!a)
        return slu_fail_nomem(err, sizeof *a);
    a->cfg = *cfg;
    *out = a;
    return SLU_OK;
}

void slu_near_audit_free(struct slu_near_audit *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n; i++)
        free(a->heap[i]);
    free(a->heap);
    free(a->by_id);
    free(a->slot);
    free(a->bit);
    free(a->node);
    free(a->met);
    free(a);
}

static unsigned bin_of(uint64_t inter, uint64_t uni)
{
    unsigned i = (unsigned)((unsigned __int128)inter * SLU_NEAR_BINS / uni);

    return i < SLU_NEAR_BINS ? i : SLU_NEAR_BINS - 1;
}

static bool similar(const struct slu_near_audit *a, uint64_t inter, uint64_t uni)
{
    return (unsigned __int128)inter * a->cfg.den >= (unsigned __int128)uni * a->cfg.num;
}

void slu_near_audit_drop(struct slu_near_audit *a, uint64_t inter, uint64_t uni)
{
    a->dropped++;
    a->below += !similar(a, inter, uni);
    a->bin[bin_of(inter, uni)]++;
}

/* ---- the index ---- */

static size_t home(const struct slu_near_audit *a, uint64_t hash)
{
    return (size_t)(((unsigned __int128)hash * a->n_slot) >> 64);
}

static struct slot *find(const struct slu_near_audit *a, uint64_t hash)
{
    size_t i = home(a, hash);

    while (a->slot[i].head && a->slot[i].hash != hash)
        i = i + 1 == a->n_slot ? 0 : i + 1;
    return &a->slot[i];
}

static void set_bit(struct slu_near_audit *a, uint64_t hash)
{
    a->bit[home(a, hash)] |= (uint8_t)(1u << (hash & 7));
}

static bool may_have(const struct slu_near_audit *a, uint64_t hash)
{
    return a->bit[home(a, hash)] >> (hash & 7) & 1;
}

static int index_set(struct slu_near_audit *a, uint32_t id, struct slu_err *err)
{
    const struct sampled *s = a->by_id[id];
    int rc =
        slu_grow(&a->node, &a->cap_node, a->n_node + s->n_set, sizeof *a->node, err);

    if (rc)
        return rc;
    for (uint64_t i = 0; i < s->n_set; i++) {
        struct slot *t = find(a, s->set[i]);
        a->n_used += !t->head;
        a->node[a->n_node++] = (struct node){id, t->head};
        *t = (struct slot){s->set[i], (uint32_t)a->n_node};
        set_bit(a, s->set[i]);
    }
    return SLU_OK;
}

/* Builds the index of the current sample, with room for half as many more. */
static int rebuild(struct slu_near_audit *a, struct slu_err *err)
{
    size_t want = MIN_SLOT;
    int rc = SLU_OK;

    while (want < 3 * a->live_hash)
        want *= 2;
    free(a->slot);
    free(a->bit);
    a->n_slot = want;
    a->slot = calloc(want, sizeof *a->slot);
    a->bit = calloc(want, 1);
    if (!a->slot || !a->bit)
        return slu_fail_nomem(err, want * (sizeof *a->slot + 1));
    a->n_used = a->n_node = 0;
    size_t n = 0;
    for (size_t i = 0; i < a->n_id; i++)
        if (a->by_id[i]) {
            a->by_id[i]->id = (uint32_t)n;
            a->by_id[n++] = a->by_id[i];
        }
    a->n_id = n;
    for (size_t i = 0; !rc && i < a->n_id; i++)
        rc = index_set(a, (uint32_t)i, err);
    return rc;
}

/* ---- the sample ---- */

static void sift_up(struct slu_near_audit *a, size_t i)
{
    while (i && a->heap[(i - 1) / 2]->draw < a->heap[i]->draw) {
        struct sampled *t = a->heap[i];
        a->heap[i] = a->heap[(i - 1) / 2];
        a->heap[(i - 1) / 2] = t;
        i = (i - 1) / 2;
    }
}

static void sift_down(struct slu_near_audit *a)
{
    for (size_t i = 0, k; (k = 2 * i + 1) < a->n; i = k) {
        k += k + 1 < a->n && a->heap[k + 1]->draw > a->heap[k]->draw;
        if (a->heap[i]->draw >= a->heap[k]->draw)
            break;
        struct sampled *t = a->heap[i];
        a->heap[i] = a->heap[k];
        a->heap[k] = t;
    }
}

/* Memory of a document in addition to its n-grams, measured in n-grams; most of the
 * memory of short documents. */
static uint64_t own_cost(const struct slu_near_audit *a)
{
    return (sizeof(struct sampled) + a->cfg.n_band * sizeof(uint64_t)) /
           SLU_NEAR_AUDIT_BYTE;
}

/* Removes the document with the largest draw. */
static void evict(struct slu_near_audit *a)
{
    struct sampled *s = a->heap[0];

    a->heap[0] = a->heap[--a->n];
    sift_down(a);
    a->by_id[s->id] = NULL;
    a->live_hash -= s->n_set;
    a->cost_hash -= s->n_set + own_cost(a);
    free(s);
}

static int enter(struct slu_near_audit *a, const struct slu_near_item *d, uint64_t draw,
                 struct slu_err *err)
{
    size_t n_byte =
        sizeof(struct sampled) + (a->cfg.n_band + d->n_set) * sizeof *d->set;
    int rc = slu_grow(&a->heap, &a->cap_heap, a->n + 1, sizeof *a->heap, err);

    if (!rc)
        rc = slu_grow(&a->by_id, &a->cap_id, a->n_id + 1, sizeof *a->by_id, err);
    if (rc)
        return rc;
    struct sampled *s = malloc(n_byte);
    if (!s)
        return slu_fail_nomem(err, n_byte);
    *s = (struct sampled){.draw = draw, .n_set = d->n_set};
    s->key = (void *)(s + 1);
    s->set = s->key + a->cfg.n_band;
    memcpy(s->key, d->key, a->cfg.n_band * sizeof *s->key);
    memcpy(s->set, d->set, d->n_set * sizeof *s->set);
    a->heap[a->n++] = s;
    sift_up(a, a->n - 1);
    s->id = (uint32_t)a->n_id;
    a->by_id[a->n_id++] = s;
    a->live_hash += s->n_set;
    a->cost_hash += s->n_set + own_cost(a);
    /* Evicted documents' nodes are freed at the next rebuild. */
    if (a->n_node + s->n_set > a->n_slot / 2 || a->n_node + s->n_set >= NONE)
        return rebuild(a, err);
    return index_set(a, (uint32_t)(a->n_id - 1), err);
}

/* ---- the join ---- */

static int meet(struct slu_near_audit *a, const struct slu_near_item *d,
                struct slu_err *err)
{
    a->stamp++;
    a->n_met = 0;
    for (uint64_t i = 0; i < d->n_set; i++) {
        if (!may_have(a, d->set[i]))
            continue;
        for (uint32_t k = find(a, d->set[i])->head; k; k = a->node[k - 1].next) {
            struct sampled *s = a->by_id[a->node[k - 1].id];
            if (!s)
                continue;
            if (s->stamp != a->stamp) {
                int rc =
                    slu_grow(&a->met, &a->cap_met, a->n_met + 1, sizeof *a->met, err);
                if (rc)
                    return rc;
                s->stamp = a->stamp;
                s->common = 0;
                a->met[a->n_met++] = s;
            }
            s->common++;
        }
    }
    return SLU_OK;
}

static bool share_band(const struct slu_near_audit *a, const uint64_t *x,
                       const uint64_t *y)
{
    for (unsigned b = 0; b < a->cfg.n_band; b++)
        if (x[b] == y[b])
            return true;
    return false;
}

int slu_near_audit_add(struct slu_near_audit *a, const struct slu_near_item *d,
                       struct slu_err *err)
{
    if (!d->n_set || !a->cfg.n_sample)
        return SLU_OK;
    int rc = a->n_slot ? meet(a, d, err) : SLU_OK;
    for (size_t i = 0; !rc && i < a->n_met; i++) {
        struct sampled *s = a->met[i];
        uint64_t uni = d->n_set + s->n_set - s->common;
        if (s->common == uni)
            continue;
        unsigned bin = bin_of(s->common, uni);
        bool band = share_band(a, s->key, d->key);
        s->pair_bin[bin]++;
        s->found_bin[bin] += band;
        s->pairs += similar(a, s->common, uni);
        s->found += band && similar(a, s->common, uni);
    }
    a->n_met = 0;
    uint64_t draw = slu_draw(a->cfg.seed, d->origin.source, d->origin.document,
                             d->origin.offset, DRAW_OF_PAIR);
    if (rc || (a->n == a->cfg.n_sample && draw >= a->heap[0]->draw))
        return rc;
    if (a->n == a->cfg.n_sample)
        evict(a);
    rc = enter(a, d, draw, err);
    /* If the sample exceeds its memory, it shrinks. */
    while (!rc && a->cost_hash > a->cfg.most_hash && a->n > 1) {
        evict(a);
        a->cfg.n_sample = a->n;
    }
    return rc;
}

void slu_near_audit_result(const struct slu_near_audit *a,
                           struct slu_near_audit_result *r)
{
    *r = (struct slu_near_audit_result){
        .sampled = a->n, .dropped = a->dropped, .below = a->below};
    memcpy(r->bin, a->bin, sizeof r->bin);
    for (size_t i = 0; i < a->n; i++) {
        r->pairs += a->heap[i]->pairs;
        r->found += a->heap[i]->found;
        for (unsigned b = 0; b < SLU_NEAR_BINS; b++) {
            r->pair_bin[b] += a->heap[i]->pair_bin[b];
            r->found_bin[b] += a->heap[i]->found_bin[b];
        }
    }
}
