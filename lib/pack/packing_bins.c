/* Packing in memory: makes batches of bins, window by window. */
#include <string.h>

#include "lib/pack/packing_cuda.h"
#include "lib/pack/packing_private.h"

/* Ids up to this long are weighed as the longest id, longer ones exactly. */
#define SHORT_ID 256

static uint64_t bins_of(const struct slu_pack_mem *m, size_t interval)
{
    uint64_t end =
        interval + 1 < m->n_interval ? m->interval[interval + 1].first_bin : m->n_bin;
    return end - m->interval[interval].first_bin;
}

/* Returns the runs, from `run` on, of a bin of interval v that ends before id `end` of
 * the packed data. */
static uint64_t runs_of(const struct slu_pack_arrays *a,
                        const struct slu_place_interval *v, uint64_t run, uint64_t end)
{
    uint64_t n = v->items;
    if (!n)
        while (run + n < a->n_item && a->run_dst[run + n] < end)
            n++;
    return n;
}

static const struct slu_seg *seg_of(const struct slu_pack_mem *m, uint64_t run)
{
    uint32_t item = m->a.run_item[run];
    return &m->seg[m->arrival ? m->arrival[item] : item];
}

void slu_pack_mem_heaviest(struct slu_packing *p)
{
    const struct slu_pack_mem *m = p->mem;
    uint64_t run = 0;
    for (size_t i = 0; i < m->n_interval; i++) {
        const struct slu_place_interval *v = &m->interval[i];
        uint64_t n = v->items;
        for (uint64_t k = 0; !v->items && k < bins_of(m, i); k++, run += n) {
            n = runs_of(&m->a, v, run, v->first_tok + (k + 1) * v->capacity);
            p->most_items = n > p->most_items ? n : p->most_items;
        }
        p->most_items = n > p->most_items ? n : p->most_items;
    }
}

/* Returns the weight of bin k of an interval, which begins with run `run`; exact for
 * long ids. *n_run: its runs. */
static uint64_t weigh_bin(const struct slu_packing *p, size_t interval, uint64_t k,
                          uint64_t run, uint64_t *n_run)
{
    const struct slu_pack_mem *m = p->mem;
    const struct slu_place_interval *v = &m->interval[interval];
    bool kept = !(m->cfg.drop && m->room[interval]);
    uint64_t n = runs_of(&m->a, v, run, v->first_tok + (k + 1) * v->capacity), id = 0;
    for (uint64_t i = 0; i < n && kept && p->longest_id > SHORT_ID; i++)
        id += slu_seg_str(seg_of(m, run + i));
    if (p->longest_id <= SHORT_ID)
        id = n * p->longest_id;
    *n_run = n;
    return 16 * n + (kept ? v->capacity + 80 + id / 4 : 0);
}

/* Chooses the next bins. False: there are none. */
static bool choose(const struct slu_packing *p, struct slu_packing_window *w,
                   uint64_t tok)
{
    struct slu_pack_mem *m = p->mem;
    uint64_t weight = 0;
    w->interval = m->at_interval;
    w->bin = m->at_bin;
    w->first_run = m->at_run;
    while (m->at_interval < m->n_interval && weight < tok) { /* see slu_batch_weight */
        const struct slu_place_interval *v = &m->interval[m->at_interval];
        bool kept = !(m->cfg.drop && m->room[m->at_interval]);
        uint64_t left = bins_of(m, m->at_interval) - m->at_bin, n_run;
        uint64_t each = weigh_bin(p, m->at_interval, m->at_bin, m->at_run, &n_run);
        uint64_t n = (tok - weight + each - 1) / each;
        n = n < left ? n : left;
        if (!v->items || p->longest_id > SHORT_ID) /* bins differ */
            n = 1;
        if (m->cuda)
            n = slu_pack_cuda_add(m->cuda, n, v->capacity);
        if (!n) /* the device's window is full */
            break;
        weight += n * each;
        w->n_bin += n;
        w->n_run += n * n_run;
        w->n_tok += kept || m->cuda || m->cfg.masks ? n * v->capacity : 0;
        m->at_bin += n;
        m->at_run += n * n_run;
        if (n == left) {
            m->at_interval++;
            m->at_bin = 0;
        }
    }
    return w->n_bin;
}

/* Has the device fill the window after the last one, if there is one. */
static int launch(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_mem *m = p->mem;
    m->ahead = (struct slu_packing_window){0};
    int code =
        choose(p, &m->ahead, m->cuda->window_tok) ? slu_pack_cuda_launch(m->cuda) : 0;
    return code ? slu_pack_mem_fault(m, code, err) : SLU_OK;
}

int slu_pack_mem_take(struct slu_packing *p, struct slu_packing_window *w, uint64_t tok,
                      struct slu_err *err)
{
    struct slu_pack_mem *m = p->mem;
    int rc = m->cuda && !m->ahead.n_bin ? launch(p, err) : SLU_OK;
    if (rc)
        return rc;
    *w = m->ahead;
    m->ahead.n_bin = 0;
    if (!w->n_bin && (m->cuda || !choose(p, w, tok)))
        return SLU_EOF;
    if (m->cuda) /* the window behind this one, while the caller uses it */
        rc = launch(p, err);
    int code = !rc && m->cuda ? slu_pack_cuda_wait(m->cuda, &w->tok, &w->hash) : 0;
    w->got = m->cuda && !code;
    return code ? slu_pack_mem_fault(m, code, err) : rc;
}

/* Appends a bin's segment rows; out has room. end_run: end of the window's runs. */
static int put_rows(const struct slu_pack_mem *m, uint64_t run, uint64_t n_run,
                    uint64_t end_run, uint64_t room, struct slu_batch *out,
                    struct slu_err *err)
{
    struct slu_seg *g = out->seg + out->n_seg;
    for (uint64_t i = 0; i < n_run; i++) {
        if (run + i + 8 < end_run) /* rows lie in random order */
            __builtin_prefetch(seg_of(m, run + i + 8));
        g[i] = *seg_of(m, run + i);
        if (!slu_seg_str(&g[i]))
            continue;
        const uint8_t *id = m->id + g[i].id_off;
        g[i].id_off = out->str.len;
        int rc = slu_buf_append(&out->str, id, slu_seg_str(&g[i]), err);
        if (rc)
            return rc;
    }
    if (room)
        g[n_run] = (struct slu_seg){
            .source = SLU_PADDING, .len_tok = room, .domain = SLU_NO_DOMAIN};
    out->n_seg += n_run + (room != 0);
    return SLU_OK;
}

/* loss_tok: tokens of the bin that are trained on. */
static void account_dropped(const struct slu_pack_mem *m, uint64_t run, uint64_t n_run,
                            uint64_t n_tok, uint64_t loss_tok,
                            struct slu_packing_stat *stat)
{
    struct slu_count n = {0, 1, n_tok, loss_tok};
    for (uint64_t i = 0; i < n_run; i++)
        n.documents += seg_of(m, run + i)->offset == 0;
    slu_count_add(&stat->not_full, n);
}

/* Fills bins [k, k + n) of an interval, from run *run on; advances *run. */
static int fill_bins(const struct slu_pack_mem *m, size_t interval, uint64_t k,
                     uint64_t n, uint64_t *run, struct slu_packing_window *w,
                     struct slu_batch *out, struct slu_err *err)
{
    const struct slu_place_interval *v = &m->interval[interval];
    uint64_t room = m->room[interval], first_tok = v->first_tok + k * v->capacity;
    bool dropped = m->cfg.drop && room;
    /* Masks of dropped bins are counted, so their ids are copied too. */
    const bool there = w->got || !dropped || m->cfg.masks;
    const uint8_t *ids = w->got ? w->tok : out->own.data;
    int rc = SLU_OK;
    if (there && !w->got) {
        const struct slu_copy copy = slu_pack_copy(&m->a);
        slu_copy_cpu(&copy, first_tok, n * v->capacity,
                     out->own.data + out->n_tok * m->cfg.tok_bytes, 1);
    }
    for (uint64_t i = 0; i < n && !rc; i++, w->n_filled++) {
        uint64_t n_run = runs_of(&m->a, v, *run, first_tok + (i + 1) * v->capacity);
        w->stat.joined += n_run - 1;
        if (dropped) {
            const void *tok = ids + out->n_tok * m->cfg.tok_bytes;
            account_dropped(m, *run, n_run, v->capacity - room,
                            m->cfg.masks ? slu_mask_count(tok, v->capacity) : 0,
                            &w->stat);
            out->n_tok += there ? v->capacity : 0;
        } else {
            w->stat.padding += room;
            if (w->got && w->hash)
                w->hash[out->n_seq] = w->hash[w->n_filled];
            out->seq[out->n_seq++] = (struct slu_seq){out->n_tok, v->capacity,
                                                      out->n_seg, n_run + (room != 0)};
            out->n_tok += v->capacity;
            rc = put_rows(m, *run, n_run, w->first_run + w->n_run, room, out, err);
        }
        *run += n_run;
    }
    return rc;
}

int slu_pack_mem_fill(const struct slu_packing *p, struct slu_packing_window *w,
                      struct slu_batch *out, struct slu_err *err)
{
    const struct slu_pack_mem *m = p->mem;
    slu_batch_clear(out);
    int rc = slu_grow(&out->seq, &out->cap_seq, w->n_bin, sizeof *out->seq, err);
    if (!rc)
        rc = slu_grow(&out->seg, &out->cap_seg, w->n_run + w->n_bin, sizeof *out->seg,
                      err);
    if (!rc && !w->got)
        rc = slu_buf_reserve(&out->own, w->n_tok * m->cfg.tok_bytes, err);
    uint64_t left = w->n_bin, k = w->bin, run = w->first_run;
    for (size_t i = w->interval; left && !rc; i++, k = 0) {
        uint64_t n = bins_of(m, i) - k;
        n = n < left ? n : left;
        rc = fill_bins(m, i, k, n, &run, w, out, err);
        left -= n;
    }
    out->own.len = w->got ? 0 : out->n_tok * m->cfg.tok_bytes;
    out->tok = w->got ? w->tok : out->own.data;
    if (!rc && w->got && w->hash)
        slu_batch_sum_known(out, w->hash);
    return rc;
}
