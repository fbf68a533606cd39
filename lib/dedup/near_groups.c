/* near_groups.c - what is sorted: key.hi the band's key (of a set: its hash's upper
 * half), key.lo the band (of a set: n_band) in the top 16 bits, then big-endian tag,
 * rank, ordinal, and of a set, or for what a hand-over knows of a group, a count. */
#include "lib/dedup/near_groups.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/order/radix.h"
#include "lib/order/sorter.h"
#include "lib/dedup/near_private.h"

#define NO_ORDINAL UINT64_MAX

struct slu_near_groups {
    struct slu_near_groups_cfg cfg;
    char *tmpdir;
    struct slu_sorter *by_key;
    uint64_t spilled_byte;
    /* The group at hand: prefix rank, ref ordinal; n of them, of which those past
     * max_member are in `large`. */
    struct slu_entry *member;
    size_t n, max_member;
    struct slu_sorter *large;
    uint64_t n_listed,
        n_unlisted; /* of a hand-over: kept ones named here, and others */
};

struct row {
    uint64_t tag, rank, ordinal, count;
};
enum { ROW = 24, ROW_COUNT = 32 };

int slu_near_groups_new(struct slu_near_groups **out,
                        const struct slu_near_groups_cfg *cfg, struct slu_err *err)
{
    *out = NULL;
    if (cfg->band_cap > cfg->member_byte / 32)
        return slu_fail(err, SLU_E_LIMIT,
                        "a band's cap of %llu documents needs more memory; give more "
                        "with -M",
                        (unsigned long long)cfg->band_cap);
    struct slu_near_groups *g = calloc(1, sizeof *g);
    if (!g)
        return slu_fail_nomem(err, sizeof *g);
    g->cfg = *cfg;
    g->cfg.tmpdir = g->tmpdir = strdup(cfg->tmpdir);
    g->max_member = cfg->member_byte / 2 / sizeof *g->member;
    struct slu_sorter_cfg sc = {cfg->sort_byte, cfg->tmpdir, cfg->n_threads};
    int rc = g->tmpdir ? slu_sorter_new(&g->by_key, &sc, err)
                       : slu_fail_nomem(err, strlen(cfg->tmpdir));
    if (rc)
        slu_near_groups_free(g);
    else
        *out = g;
    return rc;
}

void slu_near_groups_free(struct slu_near_groups *g)
{
    if (!g)
        return;
    slu_sorter_free(g->by_key);
    slu_sorter_free(g->large);
    free(g->member);
    free(g->tmpdir);
    free(g);
}

uint64_t slu_near_groups_spilled(const struct slu_near_groups *g)
{
    return g->spilled_byte + (g->by_key ? slu_sorter_spilled(g->by_key) : 0);
}

static int put(struct slu_near_groups *g, uint64_t key, unsigned band,
               const struct row *r, size_t n_byte, struct slu_err *err)
{
    const struct slu_u128 k = {(uint64_t)band << 48, key};
    const uint64_t be[4] = {slu_near_be(r->tag), slu_near_be(r->rank),
                            slu_near_be(r->ordinal), r->count};
    const struct slu_piece piece = {be, n_byte};

    return slu_sorter_add(g->by_key, k, &piece, 1, err);
}

int slu_near_groups_band(struct slu_near_groups *g, unsigned band, uint64_t key,
                         struct slu_u128 set_hash, uint64_t rank, uint64_t ordinal,
                         struct slu_err *err)
{
    /* Tag 0 is what a hand-over names. */
    const struct row r = {set_hash.lo ? set_hash.lo : 1, rank, ordinal, 0};

    return put(g, key, band, &r, ROW, err);
}

int slu_near_groups_set(struct slu_near_groups *g, struct slu_u128 set_hash,
                        uint64_t n_set, uint64_t rank, uint64_t ordinal,
                        struct slu_err *err)
{
    const struct row r = {set_hash.lo, rank, ordinal, n_set};

    return put(g, set_hash.hi, g->cfg.n_band, &r, ROW_COUNT, err);
}

int slu_near_groups_known(struct slu_near_groups *g, unsigned band, uint64_t key,
                          uint64_t n_doc, const uint64_t *kept, size_t n_kept,
                          struct slu_err *err)
{
    const struct row n = {0, 0, NO_ORDINAL, n_doc};

    if (n_kept > g->cfg.band_cap || n_kept > n_doc)
        return slu_fail(err, SLU_E_USAGE, "a group names more documents than it has");
    int rc = put(g, key, band, &n, ROW_COUNT, err);

    for (size_t i = 0; rc == SLU_OK && i < n_kept; i++) {
        const struct row r = {0, 0, kept[i], 0};
        rc = put(g, key, band, &r, ROW, err);
    }
    return rc;
}

/* ---- reading ---- */

static int read_row(const void *p, size_t n, struct row *r, struct slu_err *err)
{
    r->count = 0;
    if (n != ROW && n != ROW_COUNT)
        return slu_fail(err, SLU_E_FORMAT, "a spilled record is damaged");
    memcpy(r, p, n);
    r->tag = slu_near_be(r->tag);
    r->rank = slu_near_be(r->rank);
    r->ordinal = slu_near_be(r->ordinal);
    return SLU_OK;
}

static int put_large(struct slu_near_groups *g, const struct slu_entry *e,
                     struct slu_err *err)
{
    const struct slu_u128 key = {e->ref, e->prefix};

    return slu_sorter_add(g->large, key, NULL, 0, err);
}

static int add_member(struct slu_near_groups *g, const struct row *r,
                      struct slu_err *err)
{
    const struct slu_entry e = {r->rank, r->ordinal};
    int rc = SLU_OK;

    if (g->n < g->max_member) {
        g->member[g->n++] = e;
        return SLU_OK;
    }
    if (!g->large) {
        struct slu_sorter_cfg sc = {g->cfg.member_byte / 2, g->tmpdir,
                                    g->cfg.n_threads};
        rc = slu_sorter_new(&g->large, &sc, err);
        for (size_t i = 0; rc == SLU_OK && i < g->max_member; i++)
            rc = put_large(g, &g->member[i], err);
    }
    g->n++;
    return rc ? rc : put_large(g, &e, err);
}

static int cmp_ordinal(void *ctx, uint64_t a, uint64_t b)
{
    (void)ctx;
    return (a > b) - (a < b);
}

/* The next member in order. */
static int next_member(struct slu_near_groups *g, size_t i, struct slu_entry *e,
                       struct slu_err *err)
{
    struct slu_u128 key;
    const void *p;
    size_t n;

    if (!g->large) {
        *e = g->member[i];
        return SLU_OK;
    }
    int rc = slu_sorter_next(g->large, &key, &p, &n, err);
    *e = (struct slu_entry){key.hi, key.lo};
    return rc == SLU_EOF
               ? slu_fail(err, SLU_E_FORMAT, "a group of documents was cut short")
               : rc;
}

/* The pairs of the group at hand, which is emptied. */
static int end_group(struct slu_near_groups *g, struct slu_err *err)
{
    uint64_t cap = g->cfg.band_cap;
    /* The members that may be a pair's k: those of a hand-over, and others up to the
     * cap, which counts documents that the hand-over did not name. */
    uint64_t n_k = cap > g->n_unlisted ? cap - g->n_unlisted : 0;
    struct slu_entry e;
    int rc = SLU_OK;

    if (n_k < g->n_listed)
        n_k = g->n_listed;
    if (g->large)
        rc = slu_sorter_seal(g->large, err);
    else
        slu_entry_sort_by(g->member, g->n, cmp_ordinal, NULL);
    for (size_t i = 0; rc == SLU_OK && i < g->n; i++) {
        rc = next_member(g, i, &e, err);
        if (rc)
            break;
        if (i < n_k)
            g->member[i] = e;
        if (e.prefix == 0)
            continue; /* fixed */
        if (i >= n_k)
            rc = g->cfg.pair(g->cfg.ctx, e.ref, e.ref, err);
        for (size_t j = 0; rc == SLU_OK && j < i && j < n_k; j++)
            rc = g->cfg.pair(g->cfg.ctx, g->member[j].ref, e.ref, err);
    }
    if (g->large)
        g->spilled_byte += slu_sorter_spilled(g->large);
    slu_sorter_free(g->large);
    g->large = NULL;
    g->n = 0;
    g->n_listed = g->n_unlisted = 0;
    return rc;
}

int slu_near_groups_run(struct slu_near_groups *g, struct slu_err *err)
{
    struct slu_u128 now = {0, 0}, key;
    struct row first = {0, 0, NO_ORDINAL, 0}, r;
    bool any = false;
    const void *p;
    size_t n;

    g->member = malloc(g->max_member * sizeof *g->member);
    if (!g->member)
        return slu_fail_nomem(err, g->max_member * sizeof *g->member);
    int rc = slu_sorter_seal(g->by_key, err);
    while (rc == SLU_OK) {
        rc = slu_sorter_next(g->by_key, &key, &p, &n, err);
        if (rc == SLU_OK)
            rc = read_row(p, n, &r, err);
        if (rc)
            break;
        bool begins = !any || slu_u128_cmp(key, now);
        if (begins && g->n)
            rc = end_group(g, err);
        if (begins)
            g->n_listed = g->n_unlisted = 0;
        bool later = !begins && r.tag == first.tag; /* a twin of the one before */
        now = key;
        any = true;
        if (key.lo >> 48 == g->cfg.n_band) {
            if (rc == SLU_OK && later && r.rank)
                rc = g->cfg.twin(g->cfg.ctx, first.ordinal, r.ordinal, r.count, err);
        } else if (r.tag == 0 && r.ordinal == NO_ORDINAL) {
            g->n_unlisted = r.count - g->n_listed; /* named ones came before */
        } else if (rc == SLU_OK && (r.tag == 0 || !later)) {
            g->n_listed += r.tag == 0;
            rc = add_member(g, &r, err);
        }
        if (!later)
            first = r;
    }
    if (rc == SLU_EOF)
        rc = end_group(g, err);
    g->spilled_byte += slu_sorter_spilled(g->by_key);
    slu_sorter_free(g->by_key);
    g->by_key = NULL;
    return rc;
}
