/* Packing in memory: items as arrays by arrival and one pool of their tokens; kernels
 * sort, place and copy. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/histogram.h"
#include "lib/base/pages.h"
#include "lib/flow/radix.h"
#include "lib/pack/packing_cuda.h"
#include "lib/pack/packing_private.h"

/* Bytes per item besides its tokens and its id: on arrival (ARRIVED), then for its run,
 * its place among its domain's items, and the sort. */
#define ARRIVED                                                                        \
    (sizeof(struct slu_seg) + sizeof(uint32_t) + sizeof(uint64_t) + sizeof(uint32_t))
#define ITEM_BYTE (ARRIVED + 16 + 16 + 16)
#define LATE_BYTE (sizeof(uint64_t) + 2 * sizeof(uint32_t) + sizeof(struct slu_u128))
#define LANE_BYTE 1024 /* per domain */

/* ---- memory ---- */

/* Returns NULL if memory is exhausted. */
static void *map(size_t n_byte, bool huge)
{
    return slu_pages_new(n_byte, huge ? SLU_PAGES_HUGE : SLU_PAGES_SMALL);
}

/* Frees *pp and sets it to NULL. */
static void unmap(void *pp, size_t n_byte)
{
    void *p, *none = NULL;
    memcpy(&p, pp, sizeof p);
    memcpy(pp, &none, sizeof none);
    slu_pages_free(p, n_byte);
}

static size_t pool_byte(const struct slu_pack_mem *m)
{
    return m->cap_tok * m->cfg.tok_bytes + 64;
}

static void free_arrived(struct slu_pack_mem *m)
{
    unmap(&m->seg, m->cap_item * sizeof *m->seg);
    unmap(&m->len, m->cap_item * sizeof *m->len);
    unmap(&m->lane, m->cap_item * sizeof *m->lane);
    unmap(&m->src, m->cap_item * sizeof *m->src);
    unmap(&m->id, m->limit_byte);
    unmap(&m->late_first, m->cap_item * sizeof *m->late_first);
    unmap(&m->late_len, m->cap_item * sizeof *m->late_len);
    unmap(&m->late_item, m->cap_item * sizeof *m->late_item);
}

static void close_device(struct slu_pack_cuda *c)
{
    if (c)
        slu_pack_cuda_close(c);
    free(c);
}

void slu_pack_mem_free(struct slu_pack_mem *m)
{
    if (!m)
        return;
    close_device(m->cuda);
    close_device(m->left);
    free_arrived(m);
    unmap(&m->pool, pool_byte(m));
    size_t n = m->a.n_item;
    unmap(&m->arrival, n * sizeof *m->arrival);
    unmap(&m->len_of, n * sizeof *m->len_of);
    unmap(&m->src_of, n * sizeof *m->src_of);
    unmap(&m->a.order, n * sizeof *m->a.order);
    unmap(&m->a.run_item, n * sizeof *m->a.run_item);
    unmap(&m->a.run_dst, n * sizeof *m->a.run_dst);
    free(m->range);
    free(m->step);
    free(m->interval);
    free(m->room);
    free(m);
}

int slu_pack_mem_new(struct slu_pack_mem **out, const struct slu_packing_cfg *cfg,
                     struct slu_err *err)
{
    struct slu_pack_mem *m = calloc(1, sizeof *m);
    *out = m;
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    m->cfg = *cfg;
    m->limit_byte = cfg->budget_byte / 2;
    m->huge = cfg->budget_byte >= 64 << 20;
    m->cap_tok = m->limit_byte / cfg->tok_bytes;
    m->cap_item = m->limit_byte / ITEM_BYTE;
    m->cap_item = m->cap_item < UINT32_MAX - 1 ? m->cap_item : UINT32_MAX - 1;
    m->pool = map(pool_byte(m), m->huge);
    m->seg = map(m->cap_item * sizeof *m->seg, m->huge);
    m->len = map(m->cap_item * sizeof *m->len, m->huge);
    m->lane = map(m->cap_item * sizeof *m->lane, m->huge);
    m->src = map(m->cap_item * sizeof *m->src, m->huge);
    m->id = map(m->limit_byte, m->huge);
    m->late_first = map(m->cap_item * sizeof *m->late_first, m->huge);
    m->late_len = map(m->cap_item * sizeof *m->late_len, m->huge);
    m->late_item = map(m->cap_item * sizeof *m->late_item, m->huge);
    if (!m->pool || !m->seg || !m->len || !m->lane || !m->src || !m->id ||
        !m->late_first || !m->late_len || !m->late_item) {
        slu_pack_mem_free(m);
        *out = NULL;
    }
    return SLU_OK;
}

/* ---- arrival ---- */

uint64_t slu_pack_mem_hold(struct slu_pack_mem *m, const struct slu_batch *b,
                           const struct slu_run *run, size_t n_run)
{
    unsigned width = m->cfg.tok_bytes;
    uint64_t n = 0;
    if (atomic_load_explicit(&m->closed, memory_order_relaxed))
        return SLU_NOT_HELD;
    for (size_t i = 0; i < n_run; i++)
        n += run[i].seg.len_tok;
    uint64_t at = atomic_fetch_add(&m->n_tok, n);
    if (at > m->cap_tok || n > m->cap_tok - at) {
        atomic_store(&m->closed, true);
        return SLU_NOT_HELD;
    }
    uint8_t *to = m->pool + at * width;
    for (size_t i = 0, j; i < n_run; i = j) { /* neighbours in one copy */
        uint64_t from = run[i].tok_off, end = from + run[i].seg.len_tok;
        for (j = i + 1; j < n_run && run[j].tok_off == end; j++)
            end += run[j].seg.len_tok;
        memcpy(to, slu_batch_at(b, from), (end - from) * width);
        to += (end - from) * width;
    }
    return at;
}

/* Bytes of so many tokens and items, without ids of records. n_late: items whose
 * sequence is hashed later. */
static uint64_t bytes_of(const struct slu_pack_mem *m, uint64_t n_tok, uint64_t n_item,
                         uint64_t n_late)
{
    return n_tok * m->cfg.tok_bytes + n_item * ITEM_BYTE + n_late * LATE_BYTE;
}

bool slu_pack_mem_fits(const struct slu_pack_mem *m, uint64_t n_tok, uint64_t n_item)
{
    return n_tok <= m->cap_tok && n_item <= m->cap_item &&
           bytes_of(m, n_tok, n_item, n_item) <= m->limit_byte;
}

bool slu_pack_mem_put(struct slu_pack_mem *m, const struct slu_pack_item *it,
                      uint64_t at, size_t n_lane)
{
    uint64_t used = bytes_of(m, atomic_load_explicit(&m->n_tok, memory_order_relaxed),
                             m->n_item + 1, m->n_late + 1) +
                    n_lane * LANE_BYTE + m->n_id + slu_seg_str(&it->seg);
    if (at == SLU_NOT_HELD || m->n_item == m->cap_item || used > m->limit_byte) {
        atomic_store(&m->closed, true);
        return false;
    }
    size_t i = m->n_item++;
    m->seg[i] = it->seg;
    m->seg[i].id_off = m->n_id;
    m->len[i] = (uint32_t)it->seg.len_tok;
    m->lane[i] = it->lane;
    m->src[i] = at;
    if (slu_seg_str(&it->seg))
        memcpy(m->id + m->n_id, it->id, slu_seg_str(&it->seg));
    m->n_id += slu_seg_str(&it->seg);
    return true;
}

int slu_pack_mem_leave(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_mem *m = p->mem;
    uint64_t *position = calloc(p->n_lane, sizeof *position);
    int rc = SLU_OK;
    if (!position)
        return slu_fail_nomem(err, p->n_lane * sizeof *position);
    slu_pack_late_give(m, NULL);
    for (size_t i = 0; i < m->n_item && !rc; i++) {
        struct slu_pack_item it = {.seg = m->seg[i],
                                   .lane = m->lane[i],
                                   .position = position[m->lane[i]],
                                   .id = m->id + m->seg[i].id_off,
                                   .tok = m->pool + m->src[i] * m->cfg.tok_bytes};
        position[it.lane] += it.seg.len_tok;
        rc = slu_pack_flow_put(p, &it, err);
        if (!rc)
            rc = slu_pack_count(p, it.lane, it.seg.len_tok, err);
    }
    free(position);
    free_arrived(m);
    (void)madvise(m->pool, pool_byte(m), MADV_DONTNEED);
    return rc;
}

/* ---- the plan ---- */

/* Orders items by domain: sets each domain's range, and makes the arrays. */
static int by_domain(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_mem *m = p->mem;
    struct slu_pack_arrays *a = &m->a;
    size_t n = m->n_item;
    m->range = calloc(p->n_lane ? p->n_lane : 1, sizeof *m->range);
    if (!m->range)
        return slu_fail_nomem(err, p->n_lane * sizeof *m->range);
    uint64_t at = 0;
    for (size_t i = 0; i < p->n_lane; i++) {
        m->range[i].first_item = at;
        at += p->lane[i].n_item;
    }
    *a = (struct slu_pack_arrays){.n_item = n,
                                  .len = m->len,
                                  .src = m->src,
                                  .pool = m->pool,
                                  .n_pool_tok = m->n_tok,
                                  .tok_bytes = m->cfg.tok_bytes,
                                  .marked = m->cfg.masks,
                                  .seq_first = m->late_first,
                                  .seq_len = m->late_len,
                                  .n_seq = m->n_late,
                                  .pad = (uint32_t)m->cfg.pad,
                                  .range = m->range,
                                  .n_range = p->n_lane};
    if (p->n_lane < 2) {
        if (p->n_lane)
            m->range[0].n_item = n;
        return SLU_OK;
    }
    m->arrival = map(n * sizeof *m->arrival, m->huge);
    m->len_of = map(n * sizeof *m->len_of, m->huge);
    m->src_of = map(n * sizeof *m->src_of, m->huge);
    if (!m->arrival || !m->len_of || !m->src_of)
        return slu_fail_nomem(err, n * 16);
    for (size_t i = 0; i < n; i++) {
        struct slu_pack_range *r = &m->range[m->lane[i]];
        uint64_t to = r->first_item + r->n_item++;
        m->arrival[to] = (uint32_t)i;
        m->len_of[to] = m->len[i];
        m->src_of[to] = m->src[i];
    }
    a->len = m->len_of;
    a->src = m->src_of;
    unmap(&m->len, m->cap_item * sizeof *m->len);
    unmap(&m->src, m->cap_item * sizeof *m->src);
    return SLU_OK;
}

/* ---- the histogram and the plan ---- */

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Makes the histogram of a few lengths among many possible, without a table. */
static int count_few(const uint32_t *len, size_t n, struct slu_length_count **row,
                     size_t *n_row, struct slu_err *err)
{
    uint32_t *v = malloc(n * sizeof *v);
    struct slu_length_count *r = malloc(n * sizeof *r);
    size_t k = 0;
    if (!v || !r) {
        free(v);
        free(r);
        return slu_fail_nomem(err, n * sizeof *r);
    }
    memcpy(v, len, n * sizeof *v);
    qsort(v, n, sizeof *v, by_value);
    for (size_t i = 0; i < n; i++)
        if (k && r[k - 1].len_tok == v[i])
            r[k - 1].count++;
        else
            r[k++] = (struct slu_length_count){v[i], 1};
    free(v);
    *row = r;
    *n_row = k;
    return SLU_OK;
}

/* Makes the histogram of a range, and finds its longest. */
static int count(struct slu_packing *p, struct slu_pack_range *range,
                 struct slu_length_count **row, size_t *n_row, struct slu_err *err)
{
    struct slu_pack_mem *m = p->mem;
    const uint32_t *len = m->a.len + range->first_item;
    int rc = SLU_OK;
    for (size_t i = 0; i < range->n_item; i++)
        range->longest = len[i] > range->longest ? len[i] : range->longest;
    if (range->n_item < range->longest / 16) {
        slu_pack_timing(p, "histogram", NULL);
        return count_few(len, range->n_item, row, n_row, err);
    }
    const size_t n_bin = (size_t)range->longest + 1;
    uint64_t *n = malloc(n_bin * sizeof *n);
    if (!n)
        return slu_fail_nomem(err, n_bin * sizeof *n);
    if (m->cuda) {
        slu_pack_timing(p, "histogram", m->cfg.device->name);
        int code = slu_pack_cuda_count(m->cuda, range, n);
        rc = code ? slu_pack_mem_fault(m, code, err) : SLU_OK;
    }
    if (!rc && !m->cuda) {
        slu_pack_timing(p, "histogram", NULL);
        memset(n, 0, n_bin * sizeof *n);
        slu_histogram_cpu(len, range->n_item, n, n_bin);
    }
    if (!rc)
        rc = slu_lengths_make_rows(n, n_bin, 0, row, n_row, err);
    free(n);
    return rc;
}

/* Appends a plan's groups to the steps, and its intervals. */
static int append_plan(struct slu_pack_mem *m, const struct slu_pack_plan *plan,
                       uint64_t first_item, struct slu_err *err)
{
    struct slu_pack_interval *v;
    size_t n, from = m->n_step;
    int rc = slu_pack_intervals(plan, &v, &n, err);
    if (!rc)
        rc = slu_grow(&m->step, &m->cap_step, from + plan->n_group, sizeof *m->step,
                      err);
    if (!rc)
        rc = slu_grow(&m->interval, &m->cap_interval, m->n_interval + n,
                      sizeof *m->interval, err);
    if (!rc)
        rc = slu_grow(&m->room, &m->cap_room, m->n_interval + n, sizeof *m->room, err);
    uint64_t at = first_item;
    for (size_t i = 0; i < plan->n_group && !rc; i++) {
        const struct slu_pack_group *g = &plan->group[i];
        bool opened = g->parent == SLU_PACK_OPENED;
        m->step[m->n_step] = (struct slu_place_step){
            .first = at,
            .repeat = g->repeat,
            .len_tok = g->len_tok,
            .first_bin = m->n_bin + g->first_bin,
            .slot = g->slot,
            .used = g->capacity - g->room - g->repeat * g->len_tok};
        slu_place_link(m->step, (uint32_t)m->n_step++,
                       opened ? SLU_PLACE_OPENED : (uint32_t)(from + g->parent));
        at += g->count * g->repeat;
    }
    for (size_t i = 0; i < n && !rc; i++) {
        m->room[m->n_interval] = (uint32_t)v[i].room;
        m->interval[m->n_interval++] =
            (struct slu_place_interval){.first_bin = m->n_bin + v[i].first_bin,
                                        .first_item = first_item + v[i].first_item,
                                        .items = v[i].items,
                                        .first_tok = m->n_packed + v[i].first_tok,
                                        .capacity = v[i].capacity,
                                        .last = (uint32_t)(from + v[i].group)};
        if (i + 1 == n)
            m->n_packed += v[i].first_tok + v[i].count * v[i].capacity;
    }
    m->n_bin += plan->n_bin;
    free(v);
    return rc;
}

/* Appends the intervals of concatenation: a domain's full bins, and a last one. */
static int append_chunks(struct slu_pack_mem *m, uint64_t n_tok, uint64_t first_item,
                         struct slu_err *err)
{
    uint64_t capacity = m->cfg.capacity, count[2] = {n_tok / capacity, 1},
             rest = n_tok % capacity;
    int rc = slu_grow(&m->interval, &m->cap_interval, m->n_interval + 2,
                      sizeof *m->interval, err);
    if (!rc)
        rc = slu_grow(&m->room, &m->cap_room, m->n_interval + 2, sizeof *m->room, err);
    for (unsigned i = 0; i < 2 && !rc; i++) {
        if (i ? !rest : !count[0])
            continue;
        m->room[m->n_interval] = (uint32_t)(i ? capacity - rest : 0);
        m->interval[m->n_interval++] =
            (struct slu_place_interval){.first_bin = m->n_bin,
                                        .first_item = first_item,
                                        .first_tok = m->n_packed,
                                        .capacity = capacity,
                                        .last = SLU_PLACE_OPENED};
        m->n_bin += count[i];
        m->n_packed += count[i] * capacity;
    }
    return rc;
}

static int plan_all(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_mem *m = p->mem;
    int rc = SLU_OK;
    for (size_t i = 0; i < p->n_lane && !rc; i++) {
        struct slu_pack_lane *s = &p->lane[i];
        struct slu_length_count *row = NULL;
        size_t n_row = 0;
        if (!p->cuts && p->related) {
            slu_pack_timing(p, "histogram", NULL);
            rc = slu_pack_related_rows(p, i, &row, &n_row, err);
        } else if (!p->cuts) {
            rc = count(p, &m->range[i], &row, &n_row, err);
        }
        slu_pack_timing(p, "plan", NULL);
        if (!rc)
            rc = slu_pack_make_plan(p, i, row, n_row, err);
        if (!rc && p->related)
            rc = slu_pack_related_append(p, i, err);
        else if (!rc && s->plan)
            rc = append_plan(m, s->plan, m->range[i].first_item, err);
        else if (!rc)
            rc = append_chunks(m, s->tok, m->range[i].first_item, err);
        slu_pack_plan_free(s->plan);
        s->plan = NULL;
        if (!rc)
            rc = slu_pack_check_plan(
                p, m->n_step * sizeof *m->step + m->n_interval * sizeof *m->interval,
                err);
    }
    p->n_bin = m->n_bin;
    return rc;
}

/* ---- the place of each item ---- */

/* Sorts a few items of many possible lengths, with 16 bytes each. */
static void sort_few(const uint32_t *len, size_t n, uint32_t *order,
                     struct slu_entry *e)
{
    for (size_t i = 0; i < n; i++)
        e[i] = (struct slu_entry){(uint64_t)(UINT32_MAX - len[i]) << 32 | i, i};
    slu_entry_sort(e, n);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)e[i].ref;
}

static int sort_items(struct slu_pack_mem *m, struct slu_err *err)
{
    struct slu_pack_arrays *a = &m->a;
    size_t n_work = 0;
    for (size_t i = 0; i < a->n_range;
         i++) /* at most 16 bytes per item, see ITEM_BYTE */
        n_work = a->range[i].n_item * 16 > n_work ? a->range[i].n_item * 16 : n_work;
    void *work = map(n_work ? n_work : 1, m->huge);
    if (!work)
        return slu_fail_nomem(err, n_work);
    for (size_t i = 0; i < a->n_range; i++) {
        const struct slu_pack_range *r = &a->range[i];
        const uint32_t *len = a->len + r->first_item;
        uint32_t *order = a->order + r->first_item;
        unsigned n_threads = m->cfg.n_threads ? m->cfg.n_threads : 1;
        while (n_threads > 1 &&
               slu_sort_lengths_cpu_work(r->n_item, r->longest, n_threads) > n_work)
            n_threads--;
        if (slu_sort_lengths_cpu_work(r->n_item, r->longest, n_threads) <= n_work &&
            r->n_item > r->longest / 16)
            slu_sort_lengths_cpu(len, r->n_item, r->longest, order, work, n_threads);
        else
            sort_few(len, r->n_item, order, work);
        for (size_t k = 0; r->first_item && k < r->n_item; k++)
            order[k] += (uint32_t)r->first_item;
    }
    unmap(&work, n_work ? n_work : 1);
    return SLU_OK;
}

/* Places items one after another; each domain begins a bin. */
static void place_chunks(const struct slu_packing *p)
{
    const struct slu_pack_arrays *a = &p->mem->a;
    uint64_t capacity = p->cfg.capacity, to = 0;
    for (size_t d = 0, i = 0; d < a->n_range; d++) {
        for (size_t k = 0; k < a->range[d].n_item; k++, i++) {
            a->run_item[i] = (uint32_t)i;
            a->run_dst[i] = to;
            to += a->len[i];
        }
        to = (to + capacity - 1) / capacity * capacity;
    }
}

static int sort_and_place(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_mem *m = p->mem;
    const struct slu_pack_arrays *a = &m->a;
    const struct slu_place place = {.order = a->order,
                                    .n = a->n_item,
                                    .step = a->step,
                                    .n_step = a->n_step,
                                    .interval = a->interval,
                                    .n_interval = a->n_interval};
    const char *name = m->cfg.device ? m->cfg.device->name : NULL;
    if (m->cuda) {
        slu_pack_timing(p, "sort", name);
        int code = slu_pack_cuda_sort(m->cuda);
        if (!code) {
            slu_pack_timing(p, "place", name);
            code = slu_pack_cuda_place(m->cuda);
        }
        if (!code)
            return SLU_OK;
        int rc = slu_pack_mem_fault(m, code, err);
        if (rc)
            return rc;
    }
    slu_pack_timing(p, "sort", NULL);
    int rc = sort_items(m, err);
    if (rc)
        return rc;
    slu_pack_timing(p, "place", NULL);
    slu_place_cpu(&place, a->run_item, a->run_dst,
                  p->cfg.n_threads ? p->cfg.n_threads : 1);
    return SLU_OK;
}

int slu_pack_mem_plan(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_mem *m = p->mem;
    struct slu_pack_arrays *a = &m->a;
    int rc = by_domain(p, err);
    if (!rc)
        rc = slu_pack_device_enter(m, err);
    if (!rc)
        rc = plan_all(p, err);
    if (!rc && !a->n_item)
        slu_pack_timing(p, "write", NULL);
    if (rc || !a->n_item)
        return rc;
    a->step = m->step;
    a->n_step = m->n_step;
    a->interval = m->interval;
    a->n_interval = m->n_interval;
    a->n_tok = m->n_packed;
    a->run_item = map(a->n_item * sizeof *a->run_item, m->huge);
    a->run_dst = map(a->n_item * sizeof *a->run_dst, m->huge);
    a->order = map(a->n_item * sizeof *a->order, m->huge);
    if (!a->run_item || !a->run_dst || !a->order)
        return slu_fail_nomem(err, a->n_item * 16);
    bool chunks = p->cuts || p->related;
    if (chunks) {
        slu_pack_timing(p, "place", NULL);
        if (p->related)
            slu_pack_related_place(p);
        else
            place_chunks(p);
    }
    if (m->cuda)
        rc = slu_pack_device_ready(m, err);
    if (!rc && !chunks)
        rc = sort_and_place(p, err);
    unmap(&a->order, a->n_item * sizeof *a->order);
    if (!rc && m->n_late)
        rc = slu_pack_late_finish(m, err);
    slu_pack_mem_heaviest(p);
    slu_pack_timing(p, "write", m->cuda ? m->cfg.device->name : NULL);
    return rc;
}
