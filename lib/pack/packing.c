#include "lib/pack/packing.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/pack/packing_cuda.h"
#include "lib/pack/packing_private.h"

/* Returns the least budget: a bin takes at most a sixteenth of it, and the counts of
 * lengths up to a bin's, a table of 2^i rows of 8 bytes, at most an eighth. */
static uint64_t least_budget(const struct slu_packing_cfg *cfg)
{
    uint64_t least = cfg->capacity * cfg->tok_bytes * 16, rows = 256;
    while (rows <= cfg->capacity && rows < (1 << 20))
        rows *= 2;
    return least > rows * 64 ? least : rows * 64;
}

struct slu_plan_head slu_packing_head(const struct slu_packing_cfg *cfg)
{
    struct slu_plan_head h = {.method = cfg->method,
                              .capacity = cfg->capacity,
                              .max_items = cfg->max_items,
                              .mix_domains = cfg->mix_domains};
    h.n_bin = slu_pack_kind[cfg->method].several ? cfg->n_bin_tok : 0;
    for (size_t b = 0; b < h.n_bin; b++) {
        h.bin[b].tok = cfg->bin_tok[b];
        h.bin[b].lack_tok = slu_pack_tolerance(cfg->padding_threshold, cfg->bin_tok[b]);
    }
    return h;
}

/* Compares the bins of a plan, h, with those requested. Both lists ascend to the same
 * length, so the first difference is inside both. */
static int check_bins(const struct slu_plan_head *h, const struct slu_plan_head *want,
                      struct slu_err *err)
{
    for (size_t b = 0; b < h->n_bin && b < want->n_bin; b++) {
        const struct slu_plan_bin *is = &h->bin[b], *ask = &want->bin[b];
        if (is->tok != ask->tok)
            return slu_fail(
                err, SLU_E_MISMATCH,
                "the plan was made for other bucket lengths: %s bins of %llu",
                is->tok < ask->tok ? "the plan has" : "the plan has no",
                (unsigned long long)(is->tok < ask->tok ? is->tok : ask->tok));
        if (is->lack_tok != ask->lack_tok)
            return slu_fail(
                err, SLU_E_MISMATCH,
                "the plan was made for bins of %llu tokens with at most %llu of "
                "padding, not %llu",
                (unsigned long long)is->tok, (unsigned long long)is->lack_tok,
                (unsigned long long)ask->lack_tok);
    }
    return SLU_OK;
}

/* Checks that the plan to apply was made for this cfg. */
static int check_head(const struct slu_packing_cfg *cfg, struct slu_err *err)
{
    if (!cfg->apply)
        return SLU_OK;
    const struct slu_plan_head h = slu_planfile_head(cfg->apply);
    const struct slu_plan_head want = slu_packing_head(cfg);
    if (h.method != cfg->method)
        return slu_fail(err, SLU_E_MISMATCH, "the plan was made by method %s, not %s",
                        slu_pack_method_name[h.method],
                        slu_pack_method_name[cfg->method]);
    if (h.capacity != cfg->capacity)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the plan was made for bins of %llu tokens, not of %llu",
                        (unsigned long long)h.capacity,
                        (unsigned long long)cfg->capacity);
    if (h.max_items != cfg->max_items)
        return slu_fail(err, SLU_E_MISMATCH,
                        "the plan was made for at most %llu segments a bin, not %llu "
                        "(0: any number)",
                        (unsigned long long)h.max_items,
                        (unsigned long long)cfg->max_items);
    if (h.mix_domains != cfg->mix_domains)
        return slu_fail(err, SLU_E_MISMATCH, "the plan was made for %s",
                        h.mix_domains ? "domains that share bins"
                                      : "domains that have bins of their own");
    return check_bins(&h, &want, err);
}

int slu_packing_new(struct slu_packing **out, const struct slu_packing_cfg *cfg,
                    struct slu_err *err)
{
    *out = NULL;
    if (cfg->capacity == 0 || cfg->capacity > SLU_MAX_CAPACITY)
        return slu_fail(err, SLU_E_USAGE, "a bin has 1 to %llu tokens",
                        (unsigned long long)SLU_MAX_CAPACITY);
    const struct slu_pack_kind *kind = &slu_pack_kind[cfg->method];
    int rc = kind->check ? kind->check(cfg->capacity, err) : SLU_OK;
    if (rc)
        return rc;
    if (least_budget(cfg) > cfg->budget_byte)
        return slu_advise(
            err, SLU_ADVISE_MEMORY,
            slu_fail(err, SLU_E_LIMIT, "bins of %llu tokens take %lluM of memory",
                     (unsigned long long)cfg->capacity,
                     (unsigned long long)((least_budget(cfg) + 0xfffff) >> 20)));
    rc = check_head(cfg, err);
    if (rc)
        return rc;
    struct slu_packing *p = calloc(1, sizeof *p);
    if (!p)
        return slu_fail_nomem(err, sizeof *p);
    p->cfg = *cfg;
    p->cuts = slu_pack_cuts(cfg->method);
    p->lengths_byte = cfg->budget_byte / 8;
    if (!cfg->plan_only)
        rc = slu_pack_mem_new(&p->mem, cfg, err);
    if (!rc && p->mem)
        slu_pack_device_expect(p->mem);
    if (!rc && cfg->related)
        rc = slu_pack_related_new(&p->related, err);
    if (!rc && cfg->related && !p->mem)
        rc = slu_advise(err, SLU_ADVISE_MEMORY,
                        slu_fail(err, SLU_E_LIMIT,
                                 "no memory is left to look for related documents in"));
    if (!rc && !cfg->plan_only && !p->mem)
        rc = slu_pack_ext_new(p, err);
    if (rc) {
        slu_packing_free(p);
        return rc;
    }
    *out = p;
    return SLU_OK;
}

static void free_lane(struct slu_pack_lane *s)
{
    slu_lengths_free(s->lengths);
    slu_pack_plan_free(s->plan);
    free(s->row);
}

void slu_packing_free(struct slu_packing *p)
{
    if (!p)
        return;
    slu_pack_mem_free(p->mem);
    slu_pack_ext_free(p->ext);
    slu_pack_related_free(p->related);
    for (size_t i = 0; i < p->n_lane; i++)
        free_lane(&p->lane[i]);
    free(p->lane);
    slu_map_release(&p->lane_of);
    free(p);
}

/* ---- arrival ---- */

int slu_pack_new_lane(struct slu_packing *p, uint32_t domain, struct slu_err *err)
{
    int rc = slu_grow(&p->lane, &p->cap_lane, p->n_lane + 1, sizeof *p->lane, err);
    if (!rc)
        rc = slu_map_set(&p->lane_of, domain, p->n_lane, err);
    if (!rc)
        p->lane[p->n_lane++] = (struct slu_pack_lane){.domain = domain};
    return rc;
}

int slu_pack_find_lane(struct slu_packing *p, uint32_t domain, uint32_t *lane,
                       struct slu_err *err)
{
    domain = p->cfg.mix_domains ? SLU_NO_DOMAIN : domain;
    uint64_t i;
    if (p->n_lane && p->lane[p->last_lane].domain == domain) {
        *lane = p->last_lane;
        return SLU_OK;
    }
    if (!slu_map_get(&p->lane_of, domain, &i)) {
        i = p->n_lane;
        int rc = slu_pack_new_lane(p, domain, err);
        if (rc)
            return rc;
    }
    *lane = p->last_lane = (uint32_t)i;
    return SLU_OK;
}

/* On arrival, lengths are counted on a device only for a plan alone. Those of items in
 * memory are counted where the device sorts them (packing_mem.c). */
static struct slu_device *counting_device(const struct slu_packing *p)
{
    return p->cfg.plan_only ? p->cfg.device : NULL;
}

static int count_pending(struct slu_packing *p, struct slu_err *err)
{
    struct slu_pack_lane *s = &p->lane[p->pending.lane];
    size_t n = p->pending.n;
    int rc = SLU_OK;
    p->pending.n = 0;
    if (n && !s->lengths)
        rc = slu_lengths_new(&s->lengths, counting_device(p), &p->lengths_byte, err);
    if (n && !rc)
        rc = slu_lengths_add(s->lengths, p->pending.len_tok, n, err);
    if (rc == SLU_E_LIMIT && p->n_lane > 1)
        rc = slu_advise(
            err, SLU_ADVISE_MEMORY_OR_MIX,
            slu_fail(
                err, SLU_E_LIMIT,
                "the length histograms of %zu domains outgrow their share of memory",
                p->n_lane));
    return rc;
}

int slu_pack_count(struct slu_packing *p, uint32_t lane, uint64_t len_tok,
                   struct slu_err *err)
{
    const size_t most = sizeof p->pending.len_tok / sizeof *p->pending.len_tok;
    int rc = SLU_OK;
    if (p->cuts && !p->cfg.plan_only)
        return SLU_OK;
    if (p->pending.n == most || (p->pending.n && p->pending.lane != lane))
        rc = count_pending(p, err);
    p->pending.lane = lane;
    p->pending.len_tok[p->pending.n++] = len_tok;
    return rc;
}

/* Adds a piece, at most as long as a bin. */
static int add_piece(struct slu_packing *p, const struct slu_pack_item *it,
                     uint64_t held, struct slu_err *err)
{
    int rc = SLU_OK;
    if (p->mem && !p->ext) {
        if (slu_pack_mem_put(p->mem, it, held, p->n_lane))
            return SLU_OK;
        if (p->related)
            return slu_advise(
                err, SLU_ADVISE_MEMORY_OR_ORDER,
                slu_fail(
                    err, SLU_E_LIMIT,
                    "the sequences that wait for a bin take more than half of memory, "
                    "and related documents are looked for in memory only"));
        rc = slu_pack_ext_new(p, err);
        if (!rc)
            rc = slu_pack_mem_leave(p, err);
    }
    if (!rc && p->ext)
        rc = slu_pack_flow_put(p, it, err);
    if (rc || (p->ext && p->ext->site)) /* counted in an earlier stage */
        return rc;
    return slu_pack_count(p, it->lane, it->seg.len_tok, err);
}

/* Returns the sum of l^2 over the chunks of an item of len_tok tokens that begins at
 * `offset` of a bin. */
static unsigned __int128 squares_of_chunks(uint64_t offset, uint64_t len_tok,
                                           uint64_t capacity)
{
    uint64_t first = len_tok < capacity - offset ? len_tok : capacity - offset;
    uint64_t whole = (len_tok - first) / capacity, rest = (len_tok - first) % capacity;
    return (unsigned __int128)first * first + rest * rest +
           (unsigned __int128)whole * capacity * capacity;
}

static int add_run(struct slu_packing *p, const struct slu_batch *b,
                   const struct slu_run *run, size_t i, uint64_t held, uint64_t *pieces,
                   struct slu_err *err)
{
    uint64_t left = run->seg.len_tok, capacity = p->cfg.capacity;
    struct slu_pack_item it = {.seg = run->seg, .id = b->str.data + run->seg.id_off};
    if (!left)
        return SLU_OK;
    int rc = slu_pack_find_lane(p, run->seg.domain, &it.lane, err);
    if (rc)
        return rc;
    struct slu_pack_lane *s = &p->lane[it.lane];
    p->id_byte += slu_seg_str(&run->seg);
    if (slu_seg_str(&run->seg) > p->longest_id)
        p->longest_id = slu_seg_str(&run->seg);
    s->items++;
    s->cut += left > capacity;
    s->cut_by_concat += s->tok % capacity + left > capacity;
    s->concat_squares += squares_of_chunks(s->tok % capacity, left, capacity);
    for (uint64_t at = 0; left && !rc; at += it.seg.len_tok, left -= it.seg.len_tok) {
        uint64_t bin, offset = 0;
        it.seg.len_tok = left < capacity ? left : capacity;
        if (p->cuts && !p->cfg.plan_only)
            it.seg.len_tok = slu_pack_chunk(s->tok, left, capacity, &bin, &offset);
        s->chunk_items = s->tok % capacity ? s->chunk_items + 1 : 1;
        if (p->cuts && s->chunk_items > p->most_items)
            p->most_items = s->chunk_items;
        it.seg.offset = run->seg.offset + at;
        it.position = s->tok;
        it.tok = slu_batch_at(b, run->tok_off + at);
        s->tok += it.seg.len_tok;
        s->n_item++;
        ++*pieces;
        rc = add_piece(p, &it, held == SLU_NOT_HELD ? held : held + at, err);
        if (!rc && p->related)
            rc = slu_pack_related_add(p, i, err);
    }
    return rc;
}

uint64_t slu_packing_hold(struct slu_packing *p, const struct slu_batch *b,
                          const struct slu_run *run, size_t n_run)
{
    return p->mem && n_run ? slu_pack_mem_hold(p->mem, b, run, n_run) : SLU_NOT_HELD;
}

int slu_packing_add(struct slu_packing *p, const struct slu_batch *b,
                    const struct slu_run *run, size_t n_run, uint64_t held, bool late,
                    uint64_t *pieces, struct slu_err *err)
{
    int rc = SLU_OK;
    if (held == SLU_NOT_HELD) /* try again: threads may have run ahead of the budget */
        held = slu_packing_hold(p, b, run, n_run);
    for (size_t i = 0; i < n_run && !rc; i++) {
        size_t item = p->mem && !p->ext ? p->mem->n_item : 0;
        rc = add_run(p, b, &run[i], i, held, pieces, err);
        if (late && !rc && !p->ext)
            slu_pack_late_add(p->mem, held, run[i].seg.len_tok, item);
        else if (late && !rc) /* the pool is gone */
            slu_reader_late(p->cfg.reader, &run[i].seg,
                            slu_batch_hash(b, run[i].tok_off, run[i].seg.len_tok));
        if (held != SLU_NOT_HELD)
            held += run[i].seg.len_tok;
    }
    return rc;
}

/* ---- the plan ---- */

void slu_pack_timing(const struct slu_packing *p, const char *name, const char *device)
{
    if (p->cfg.timing)
        p->cfg.timing(p->cfg.timing_ctx, name, device ? device : "cpu");
}

int slu_pack_check_plan(const struct slu_packing *p, uint64_t plan_byte,
                        struct slu_err *err)
{
    return plan_byte <= p->cfg.budget_byte / 2
               ? SLU_OK
               : slu_advise(
                     err, SLU_ADVISE_MEMORY_OR_MIX,
                     slu_fail(err, SLU_E_LIMIT,
                              "the plans of %zu domains outgrow their share of memory",
                              p->n_lane));
}

/* A bin is in one batch, and a part of it again where it is written; the sorter takes
 * three eighths, the plan the rest. */
uint64_t slu_pack_bin_limit(const struct slu_packing *p)
{
    return p->cfg.budget_byte / 2 + (26 << 20);
}

int slu_pack_refuse_bin(const struct slu_packing *p, uint64_t byte, struct slu_err *err)
{
    return slu_advise(
        err, p->cuts ? SLU_ADVISE_MEMORY : SLU_ADVISE_MEMORY_OR_SEGMENTS,
        slu_fail(
            err, SLU_E_LIMIT,
            "a bin has segments and ids of %llu MiB; memory leaves %llu MiB for it",
            (unsigned long long)(byte >> 20) + 1,
            (unsigned long long)(slu_pack_bin_limit(p) >> 20)));
}

/* Returns the name of lane i's domain, or NULL. */
static const char *name_of(const struct slu_packing *p, size_t i)
{
    uint32_t domain = p->lane[i].domain;
    return domain == SLU_NO_DOMAIN ? NULL : slu_names_domain(p->cfg.names, domain);
}

/* Checks that the plan to apply has the items' domains, in their order. */
static int check_domains(const struct slu_packing *p, struct slu_err *err)
{
    size_t n = p->cfg.apply ? slu_planfile_domains(p->cfg.apply) : p->n_lane;
    for (size_t i = 0; i < p->n_lane && i < n && p->cfg.apply; i++) {
        const char *is = name_of(p, i), *want = slu_planfile_name(p->cfg.apply, i);
        if (!is != !want || (is && strcmp(is, want)))
            return slu_fail(err, SLU_E_MISMATCH,
                            "the plan was made for other data: domain %zu is '%s', in "
                            "the plan '%s'",
                            i, is ? is : "", want ? want : "");
    }
    return n == p->n_lane
               ? SLU_OK
               : slu_fail(
                     err, SLU_E_MISMATCH,
                     "the plan was made for other data: %zu domain%s, in the plan %zu",
                     p->n_lane, slu_plural(p->n_lane), n);
}

/* Takes domain i's plan from the file. SLU_E_MISMATCH if it is for other items. */
static int apply_plan(struct slu_packing *p, size_t i,
                      const struct slu_length_count *row, size_t n, struct slu_err *err)
{
    struct slu_pack_lane *s = &p->lane[i];
    const char *name = name_of(p, i);
    int rc = slu_planfile_plan(p->cfg.apply, i, &s->plan, err);
    if (!rc)
        rc = slu_plan_check(s->plan, row, n, name ? name : "all documents", err);
    return rc;
}

struct slu_pack_cfg slu_pack_solver_cfg(const struct slu_packing *p)
{
    return (struct slu_pack_cfg){.capacity = p->cfg.capacity,
                                 .max_items = p->cfg.max_items,
                                 .max_groups = p->cfg.budget_byte / 2 /
                                               sizeof(struct slu_pack_group),
                                 .bin_tok = p->cfg.bin_tok,
                                 .n_bin_tok = p->cfg.n_bin_tok,
                                 .padding_threshold = p->cfg.padding_threshold};
}

int slu_pack_make_plan(struct slu_packing *p, size_t i, struct slu_length_count *row,
                       size_t n, struct slu_err *err)
{
    const struct slu_pack_cfg cfg = slu_pack_solver_cfg(p);
    struct slu_pack_lane *s = &p->lane[i];
    int rc = SLU_OK;
    if (p->cuts) {
        s->sum =
            slu_pack_concat_sum(s->items, s->tok, s->cut_by_concat, p->cfg.capacity);
    } else {
        rc = p->cfg.apply ? apply_plan(p, i, row, n, err)
                          : slu_pack_solve(&s->plan, p->cfg.method, row, n, &cfg, err);
        if (!rc && p->cfg.save)
            rc = slu_planfile_add(p->cfg.save, name_of(p, i), s->plan, err);
        if (!rc) {
            s->sum = slu_pack_plan_sum(s->plan);
            s->sum.items = s->items;
            s->sum.cut = s->cut;
        }
    }
    if (p->cfg.plan_only) {
        s->row = row;
        s->n_row = n;
    } else {
        free(row);
    }
    return rc;
}

int slu_pack_rows(struct slu_packing *p, size_t i, struct slu_length_count **row,
                  size_t *n, struct slu_err *err)
{
    struct slu_pack_lane *s = &p->lane[i];
    int rc = p->pending.n ? count_pending(p, err) : SLU_OK;
    *row = s->row; /* set if other parts counted */
    *n = s->n_row;
    s->row = NULL;
    if (!rc && s->lengths)
        rc = slu_lengths_rows(s->lengths, row, n, err);
    slu_lengths_free(s->lengths);
    s->lengths = NULL;
    return rc;
}

/* Plans from the counts of arrival. */
static int plan_counted(struct slu_packing *p, struct slu_err *err)
{
    const struct slu_device *d = counting_device(p);
    uint64_t plan_byte = 0;
    int rc = SLU_OK;
    for (size_t i = 0; i < p->n_lane && !rc; i++) {
        struct slu_pack_lane *s = &p->lane[i];
        struct slu_length_count *row = NULL;
        size_t n = 0;
        slu_pack_timing(p, "histogram", d ? d->name : NULL);
        rc = slu_pack_rows(p, i, &row, &n, err);
        slu_pack_timing(p, "plan", NULL);
        if (!rc)
            rc = slu_pack_make_plan(p, i, row, n, err);
        plan_byte += s->sum.groups * sizeof *s->plan->group;
        if (!rc)
            rc = slu_pack_check_plan(p, plan_byte, err);
        p->n_bin += s->sum.bins;
    }
    return rc;
}

int slu_packing_plan(struct slu_packing *p, struct slu_err *err)
{
    int rc = check_domains(p, err);
    if (rc)
        return rc;
    if (p->mem && !p->ext)
        return slu_pack_mem_plan(p, err);
    slu_pack_mem_free(p->mem);
    p->mem = NULL;
    return plan_counted(p, err);
}

/* ---- the bins ---- */

unsigned slu_packing_windows(const struct slu_packing *p)
{
    return p->mem && p->mem->cuda ? SLU_PACK_WINDOWS - 1 : UINT_MAX;
}

int slu_packing_take(struct slu_packing *p, struct slu_packing_window *w,
                     struct slu_batch *out, uint64_t tok, struct slu_err *err)
{
    *w = (struct slu_packing_window){0};
    return p->mem ? slu_pack_mem_take(p, w, tok, err)
                  : slu_pack_ext_next(p, w, out, tok, err);
}

uint64_t slu_packing_bin_byte(const struct slu_packing *p)
{
    uint64_t items = p->most_items, id = items * p->longest_id;
    return p->cfg.capacity * p->cfg.tok_bytes + (items + 1) * sizeof(struct slu_seg) +
           (id < p->id_byte ? id : p->id_byte);
}

int slu_packing_fill(const struct slu_packing *p, struct slu_packing_window *w,
                     struct slu_batch *out, struct slu_err *err)
{
    return p->mem ? slu_pack_mem_fill(p, w, out, err) : SLU_OK;
}

void slu_packing_settle(struct slu_packing *p, const struct slu_packing_window *w)
{
    p->stat.joined += w->stat.joined;
    p->stat.padding += w->stat.padding;
    slu_count_add(&p->stat.not_full, w->stat.not_full);
}

/* ---- totals ---- */

struct slu_pack_sum slu_packing_sum(const struct slu_packing *p)
{
    struct slu_pack_sum sum = {0};
    for (size_t i = 0; i < p->n_lane; i++)
        slu_pack_sum_add(&sum, &p->lane[i].sum);
    return sum;
}

struct slu_pack_sum slu_packing_baseline(const struct slu_packing *p)
{
    struct slu_pack_sum sum = {0};
    for (size_t i = 0; i < p->n_lane; i++) {
        const struct slu_pack_lane *s = &p->lane[i];
        struct slu_pack_sum one =
            slu_pack_concat_sum(s->items, s->tok, s->cut_by_concat, p->cfg.capacity);
        slu_pack_sum_add(&sum, &one);
    }
    return sum;
}

struct slu_packing_stat slu_packing_stat(const struct slu_packing *p)
{
    return p->stat;
}
