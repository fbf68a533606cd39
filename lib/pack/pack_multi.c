/* pack_multi.c - bins of several lengths: the multi-bucket composition of arXiv
 * 2407.07495, on the length histogram.
 *
 * From that paper: documents are taken from the longest to the shortest. The longest
 * one left opens a bin, and others are added until the bin is full. A bin may be
 * padded, up to a given share of it, so that no more documents are joined than
 * necessary. Here no item is cut (items longer than the longest bin have been cut
 * before), items are whole counts of lengths, and the choice of the bin is exact:
 *
 *   To try a bin of c ids: it takes the longest item, and while more than threshold x c
 *     of it is unfilled and it may have more items, the longest item that still fits.
 *     Bins that can hold the longest item are tried from short to long. The first whose
 *     padding is within the threshold is chosen; if none is, the bin with the least
 *     share of padding, of equals the shortest.
 *
 * A chosen bin comes out the same again as long as there are enough items for it and
 * for the bins tried before it. So it is made many times at once, and the time does not
 * depend on the number of items. Bins are in the order in which they are made.
 */
#include "lib/pack/packer_private.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"

/* Items of one length in a bin; a bin's parts are in order of length, longest first. */
struct part {
    uint64_t repeat;
    uint32_t row;
};

struct made {
    uint64_t count, capacity;
    size_t first, n; /* of part */
};

struct solver {
    const struct slu_length_count *hist;
    const struct slu_pack_cfg *cfg;
    uint64_t *left; /* by row: items without a bin */
    /* by row + 1 (0: none): itself if items are left, otherwise a lower row on the way
     * to the next one with items */
    uint32_t *below;
    struct part *part;
    size_t n_part, cap_part;
    struct made *made;
    size_t n_made, cap_made;
    struct part *tried; /* parts of one choice, bin by bin */
    size_t n_tried, cap_tried;
    size_t *end; /* by bin length: end of its parts in tried */
};

/* Returns the highest row of 1 … i with items left, or 0; rows count from 1 here. */
static uint32_t find(struct solver *s, uint32_t i)
{
    while (s->below[i] != i) {
        s->below[i] = s->below[s->below[i]];
        i = s->below[i];
    }
    return i;
}

/* Returns the highest row <= i (counted from 1) with length <= len_tok, or 0. */
static uint32_t within(const struct solver *s, uint32_t i, uint64_t len_tok)
{
    uint32_t lo = 0;
    while (lo < i) {
        uint32_t mid = lo + (i - lo + 1) / 2;
        if (s->hist[mid - 1].len_tok <= len_tok)
            lo = mid;
        else
            i = mid - 1;
    }
    return lo;
}

uint64_t slu_pack_tolerance(double padding_threshold, uint64_t capacity)
{
    return (uint64_t)(padding_threshold * (double)capacity);
}

/* Returns the ids that a bin may lack without further filling. */
static uint64_t tolerance(const struct slu_pack_cfg *cfg, uint64_t capacity)
{
    return slu_pack_tolerance(cfg->padding_threshold, capacity);
}

/* Appends to tried the parts of a bin that row i opens. *room: unfilled ids. */
static int try_bin(struct solver *s, uint32_t i, uint64_t capacity, uint64_t *room,
                   struct slu_err *err)
{
    uint64_t enough = tolerance(s->cfg, capacity), items = slu_pack_most(s->cfg);
    *room = capacity;
    while (i && items && (*room > enough || *room == capacity)) {
        uint64_t len = s->hist[i - 1].len_tok;
        uint64_t needed = *room > enough ? (*room - enough + len - 1) / len : 1;
        uint64_t k = slu_pack_min(slu_pack_min(*room / len, needed), s->left[i - 1]);
        k = slu_pack_min(k, items);
        int rc =
            slu_grow(&s->tried, &s->cap_tried, s->n_tried + 1, sizeof *s->tried, err);
        if (rc)
            return rc;
        s->tried[s->n_tried++] = (struct part){k, i - 1};
        *room -= k * len;
        items -= k;
        i = find(s, within(s, i - 1, *room));
    }
    return SLU_OK;
}

/* Tries bins for the longest item; *bin is the one to make. */
static int choose(struct solver *s, uint32_t longest, size_t *bin, struct slu_err *err)
{
    const struct slu_pack_cfg *cfg = s->cfg;
    uint64_t best_room = 0, room;
    int rc = SLU_OK;
    *bin = cfg->n_bin_tok;
    s->n_tried = 0;
    for (size_t b = 0; b < cfg->n_bin_tok && !rc; b++) {
        uint64_t capacity = cfg->bin_tok[b];
        s->end[b] = s->n_tried;
        if (capacity < s->hist[longest - 1].len_tok)
            continue;
        rc = try_bin(s, longest, capacity, &room, err);
        s->end[b] = s->n_tried;
        bool good = room <= tolerance(cfg, capacity);
        /* shares of padding: room / capacity, both below 2^27 */
        if (good || *bin == cfg->n_bin_tok ||
            room * cfg->bin_tok[*bin] < best_room * capacity) {
            *bin = b;
            best_room = room;
        }
        for (size_t rest = b + 1; good && rest < cfg->n_bin_tok; rest++)
            s->end[rest] = s->n_tried;
        if (good)
            break;
    }
    return rc;
}

static const struct part *parts_of(const struct solver *s, size_t bin, size_t *n)
{
    size_t first = bin ? s->end[bin - 1] : 0;
    *n = s->end[bin] - first;
    return s->tried + first;
}

/* Returns how often the choice would come out the same: as long as there are items for
 * every tried bin. */
static uint64_t times(const struct solver *s, size_t bin)
{
    size_t n, m;
    const struct part *p = parts_of(s, bin, &n);
    uint64_t most = UINT64_MAX;
    for (size_t b = 0; b < s->cfg->n_bin_tok; b++) {
        const struct part *q = parts_of(s, b, &m);
        for (size_t i = 0, k = 0; i < n && k < m;) {
            if (p[i].row > q[k].row) {
                i++;
            } else if (p[i].row < q[k].row) {
                k++;
            } else {
                uint64_t spare = s->left[p[i].row] - q[k].repeat;
                most = slu_pack_min(most, spare / p[i].repeat + 1);
                i++;
                k++;
            }
        }
    }
    return most;
}

/* Makes the chosen bin as often as it comes out the same. */
static int make(struct solver *s, size_t bin, struct slu_err *err)
{
    size_t n;
    const struct part *p = parts_of(s, bin, &n);
    uint64_t count = times(s, bin);
    if (s->cfg->max_groups && s->n_part + n > s->cfg->max_groups)
        return slu_fail(err, SLU_E_LIMIT, "the plan has too many groups of bins");
    int rc = slu_grow(&s->made, &s->cap_made, s->n_made + 1, sizeof *s->made, err);
    if (!rc)
        rc = slu_grow(&s->part, &s->cap_part, s->n_part + n, sizeof *s->part, err);
    if (rc)
        return rc;
    s->made[s->n_made++] = (struct made){count, s->cfg->bin_tok[bin], s->n_part, n};
    memcpy(s->part + s->n_part, p, n * sizeof *p);
    s->n_part += n;
    for (size_t i = 0; i < n; i++) {
        uint32_t row = p[i].row;
        s->left[row] -= count * p[i].repeat;
        if (!s->left[row])
            s->below[row + 1] = row;
    }
    return SLU_OK;
}

/* Writes the bins as groups: by length, then in the order in which they were made. */
static int put_groups(struct solver *s, struct slu_pack_plan *plan, size_t n,
                      struct slu_err *err)
{
    struct item {
        size_t made;
        uint64_t repeat;
    } *item = malloc((s->n_part + 1) * sizeof *item);
    size_t *first = calloc(n + 2, sizeof *first); /* by row, from the longest */
    uint32_t *parent = malloc((s->n_made + 1) * sizeof *parent);
    int rc = SLU_OK;
    if (!item || !first || !parent) {
        rc = slu_fail_nomem(err, s->n_part * sizeof *item);
        goto out;
    }
    memset(parent, 0xff, (s->n_made + 1) * sizeof *parent);
    for (size_t k = 0; k < s->n_part; k++)
        first[n - 1 - s->part[k].row + 2]++;
    for (size_t r = 0; r < n; r++)
        first[r + 1] += first[r];
    for (size_t m = 0; m < s->n_made; m++)
        for (size_t k = s->made[m].first; k < s->made[m].first + s->made[m].n; k++)
            item[first[n - 1 - s->part[k].row + 1]++] =
                (struct item){m, s->part[k].repeat};
    for (size_t r = 0; r < n && !rc; r++) {
        uint64_t rank = 0, len = s->hist[n - 1 - r].len_tok;
        slu_pack_begin_length(plan, len);
        for (size_t k = first[r]; k < first[r + 1] && !rc; k++) {
            size_t m = item[k].made;
            rc = slu_pack_take(plan, s->cfg, parent[m], s->made[m].capacity, len,
                               item[k].repeat, s->made[m].count, &rank, err);
            parent[m] = (uint32_t)plan->n_group - 1;
        }
    }
out:
    free(item);
    free(first);
    free(parent);
    return rc;
}

static int check(const struct slu_pack_cfg *cfg, size_t n, struct slu_err *err)
{
    bool good = cfg->n_bin_tok && cfg->bin_tok[0] &&
                cfg->bin_tok[cfg->n_bin_tok - 1] == cfg->capacity &&
                cfg->padding_threshold >= 0 && cfg->padding_threshold <= 1 &&
                n < UINT32_MAX;
    for (size_t b = 1; good && b < cfg->n_bin_tok; b++)
        good = cfg->bin_tok[b] > cfg->bin_tok[b - 1];
    return good ? SLU_OK
                : slu_fail(err, SLU_E_USAGE,
                           "bins of several lengths take ascending lengths and a "
                           "threshold from 0 to 1");
}

static int init(struct solver *s, const struct slu_length_count *hist, size_t n,
                const struct slu_pack_cfg *cfg, struct slu_err *err)
{
    memset(s, 0, sizeof *s);
    s->hist = hist;
    s->cfg = cfg;
    s->left = malloc((n + 1) * sizeof *s->left);
    s->below = malloc((n + 1) * sizeof *s->below);
    s->end = malloc(cfg->n_bin_tok * sizeof *s->end);
    if (!s->left || !s->below || !s->end)
        return slu_fail_nomem(err, n * (sizeof *s->left + sizeof *s->below));
    s->below[0] = 0;
    for (size_t i = 0; i < n; i++) {
        s->left[i] = hist[i].count;
        s->below[i + 1] = (uint32_t)(hist[i].count ? i + 1 : i);
    }
    return SLU_OK;
}

int slu_pack_by_multi(struct slu_pack_plan **out, const struct slu_length_count *hist,
                      size_t n, const struct slu_pack_cfg *cfg, struct slu_err *err)
{
    struct solver s = {0};
    struct slu_pack_plan *plan = NULL;
    *out = NULL;
    int rc = check(cfg, n, err);
    if (!rc)
        rc = slu_pack_start(&plan, hist, n, cfg, err);
    if (!rc)
        rc = init(&s, hist, n, cfg, err);
    while (!rc) {
        uint32_t longest = find(&s, (uint32_t)n);
        size_t bin;
        if (!longest)
            break;
        rc = choose(&s, longest, &bin, err);
        if (!rc)
            rc = make(&s, bin, err);
    }
    if (!rc)
        rc = put_groups(&s, plan, n, err);
    if (!rc) {
        *out = plan;
        plan = NULL;
    }
    slu_pack_plan_free(plan);
    free(s.left);
    free(s.below);
    free(s.part);
    free(s.made);
    free(s.tried);
    free(s.end);
    return rc;
}
