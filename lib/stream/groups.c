#include "groups.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/number.h"
#include "lib/flow/sorter.h"
#include "lib/stream/property.h"

const unsigned slu_quantile[SLU_N_QUANTILE] = {0, 50, 250, 500, 750, 950, 1000};

enum kind { LENGTH, SCORE, KINDS };

/* The high word of a key is a number times SPREAD, so that keys are spread; times BACK,
 * it is the number again. */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)
#define BACK   UINT64_C(0xf1de83e19937733d)
_Static_assert(SPREAD *BACK == 1, "inverse of each other");

struct slu_groups {
    struct slu_domains domains;
    struct slu_sorter *sorter;
    uint64_t *n; /* KINDS counts for no domain, then for each domain */
    size_t cap;
};

int slu_groups_new(struct slu_groups **out, uint64_t budget_byte, const char *tmpdir,
                   unsigned n_threads, struct slu_err *err)
{
    const struct slu_sorter_cfg cfg = {
        .budget_byte = budget_byte, .tmpdir = tmpdir, .n_threads = n_threads};
    struct slu_groups *g = calloc(1, sizeof *g);

    *out = g;
    return g ? slu_sorter_new(&g->sorter, &cfg, err) : slu_fail_nomem(err, sizeof *g);
}

void slu_groups_free(struct slu_groups *g)
{
    if (!g)
        return;
    slu_domains_release(&g->domains);
    slu_sorter_free(g->sorter);
    free(g->n);
    free(g);
}

uint64_t slu_groups_spilled(const struct slu_groups *g)
{
    return slu_sorter_spilled(g->sorter);
}

/* The double whose slu_double_key it is. */
static double value_of(uint64_t key)
{
    const uint64_t sign = UINT64_C(1) << 63, bits = key & sign ? key & ~sign : ~key;
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static int put(struct slu_groups *g, uint64_t group, enum kind kind, uint64_t value,
               struct slu_err *err)
{
    const uint64_t number = group * KINDS + kind;
    const struct slu_u128 key = {value, number * SPREAD};

    g->n[number]++;
    return slu_sorter_add(g->sorter, key, NULL, 0, err);
}

static int add_seq(struct slu_groups *g, const struct slu_batch *b,
                   const struct slu_seq *q, struct slu_err *err)
{
    const size_t had = g->cap;
    const double score = slu_seq_score(b, q);
    const struct slu_seg *s = slu_seq_first(b, q);
    const uint64_t group =
        s && s->domain != SLU_NO_DOMAIN ? (uint64_t)s->domain + 1 : 0;
    int rc = slu_property_same(&slu_property_own[SLU_PROPERTY_DOMAIN], b, q, err);

    if (!rc)
        rc = slu_grow(&g->n, &g->cap, KINDS * (group + 1), sizeof *g->n, err);
    if (rc)
        return rc;
    memset(g->n + had, 0, (g->cap - had) * sizeof *g->n);
    rc = put(g, group, LENGTH, q->len_tok, err);
    return rc || score != score ? rc : put(g, group, SCORE, slu_double_key(score), err);
}

int slu_groups_add(struct slu_groups *g, const struct slu_batch *b,
                   const struct slu_vocab_table *v, struct slu_err *err)
{
    int rc = slu_domains_add_batch(&g->domains, b, v, err);

    for (size_t i = 0; i < b->n_seq && !rc; i++)
        rc = add_seq(g, b, &b->seq[i], err);
    return rc;
}

/* ---- the list ---- */

/* *at: for no domain, then for each domain, its place in the list; NULL: none. */
static int find_places(const struct slu_groups *g, struct slu_names *names,
                       struct slu_group *list, size_t n, struct slu_group ***at,
                       struct slu_err *err)
{
    int rc = SLU_OK;

    *at = calloc(g->cap / KINDS + 1, sizeof **at);
    if (!*at)
        return slu_fail_nomem(err, g->cap);
    for (size_t i = 0; i < n && !rc; i++) {
        const char *name = list[i].sums.name;
        uint32_t d = 0;
        if (name)
            rc = slu_names_domain_number(names, name, strlen(name), &d, err);
        const uint64_t group = name ? (uint64_t)d + 1 : 0;
        if (rc || KINDS * group >= g->cap)
            continue;
        (*at)[group] = &list[i];
        list[i].n_length = g->n[KINDS * group + LENGTH];
        list[i].n_score = g->n[KINDS * group + SCORE];
    }
    return rc;
}

static int walk(struct slu_groups *g, struct slu_group *const *at, struct slu_err *err)
{
    struct slu_u128 key, last = {0, 0};
    uint64_t i = 0;
    const void *p;
    size_t n_byte;
    int rc = slu_sorter_seal(g->sorter, err);

    for (bool any = false; !rc; any = true) {
        rc = slu_sorter_next(g->sorter, &key, &p, &n_byte, err);
        if (rc)
            break;
        i = any && key.hi == last.hi ? i + 1 : 0;
        last = key;
        const uint64_t number = key.hi * BACK, n = g->n[number];
        struct slu_group *r = at[number / KINDS];
        for (unsigned k = 0; r && k < SLU_N_QUANTILE; k++) {
            if (i != (n - 1) / 1000 * slu_quantile[k] +
                         (n - 1) % 1000 * slu_quantile[k] / 1000)
                continue;
            if (number % KINDS == LENGTH)
                r->length[k] = key.lo;
            else
                r->score[k] = value_of(key.lo);
        }
    }
    return rc == SLU_EOF ? SLU_OK : rc;
}

int slu_groups_list(struct slu_groups *g, struct slu_names *names,
                    struct slu_group **list, size_t *n, struct slu_err *err)
{
    struct slu_domain_row *row;
    struct slu_group **at = NULL;
    int rc = slu_domains_list(&g->domains, names, &row, n, err);

    *list = rc ? NULL : calloc(*n + 1, sizeof **list);
    if (!rc && !*list)
        rc = slu_fail_nomem(err, (*n + 1) * sizeof **list);
    for (size_t i = 0; !rc && i < *n; i++)
        (*list)[i].sums = row[i];
    if (!rc)
        rc = find_places(g, names, *list, *n, &at, err);
    if (!rc)
        rc = walk(g, at, err);
    free(row);
    free(at);
    if (rc) {
        free(*list);
        *list = NULL;
    }
    return rc;
}
