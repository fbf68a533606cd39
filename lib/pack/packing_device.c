/* packing_device.c - when packing_mem.c has a device; and the hashes of sequences that
 * wait in the pool, which a device makes in place of the threads that read. If the
 * device fails, or there is none, the CPU does it. */
#include <stdlib.h>

#include "lib/base/pages.h"
#include "lib/pack/packing_cuda.h"
#include "lib/pack/packing_private.h"
#include "lib/stream/stream_summary.h"

int slu_pack_mem_fault(struct slu_pack_mem *m, int code, struct slu_err *err)
{
    slu_pack_cuda_leave(m->cuda);
    m->left = m->cuda; /* batches in flight have ids there */
    m->cuda = NULL;
    return slu_device_fault(m->cfg.device, code, err);
}

int slu_pack_device_enter(struct slu_pack_mem *m, struct slu_err *err)
{
    struct slu_device *d = m->cfg.device;
    if (!m->a.n_item ||
        !slu_device_take(d, SLU_WORK_PACK, m->a.n_pool_tok * m->a.tok_bytes / 2))
        return SLU_OK;
    m->cuda = malloc(sizeof *m->cuda);
    if (!m->cuda)
        return slu_fail_nomem(err, sizeof *m->cuda);
    int code = slu_pack_cuda_open(m->cuda, d->ordinal, &m->a);
    return code ? slu_pack_mem_fault(m, code, err) : SLU_OK;
}

int slu_pack_device_ready(struct slu_pack_mem *m, struct slu_err *err)
{
    /* All windows together have at most a sixteenth of the budget, or one bin each, in
     * the place of what batches have otherwise. */
    uint64_t window = m->cfg.budget_byte / 16 / SLU_PACK_WINDOWS / m->cfg.tok_bytes;
    window = window < 1 << 22 ? window : 1 << 22;
    window = window > m->cfg.capacity ? window : m->cfg.capacity;
    int code = slu_pack_cuda_ready(m->cuda, window);
    return code ? slu_pack_mem_fault(m, code, err) : SLU_OK;
}

/* ---- hashes that come late ---- */

void slu_pack_device_expect(struct slu_pack_mem *m)
{
    struct slu_device *d = m->cfg.device;
    struct slu_reader *r = m->cfg.reader;
    struct slu_err err = SLU_ERR_INIT; /* told when the inputs are read */
    struct slu_summary summary;
    const uint64_t least =
        slu_device_least(SLU_WORK_PACK, m->cfg.n_threads ? m->cfg.n_threads : 1);
    if (!r || !d || d->kind != SLU_DEVICE_AUTO || slu_reader_header(r)->n_bucket ||
        least > m->limit_byte / 2 || slu_reader_summary(r, false, &summary, &err) ||
        !slu_pack_mem_fits(m, summary.sum.n.tokens, summary.sum.n.sequences))
        return;
    const uint64_t n = summary.sum.n.tokens * m->cfg.tok_bytes / 2;
    if (n >= least)
        (void)slu_device_take(d, SLU_WORK_PACK, n);
}

bool slu_packing_hashes(const struct slu_packing *p)
{
    const struct slu_device *d = p->cfg.device;
    return p->mem && p->cfg.reader && d && d->ordinal >= 0;
}

void slu_pack_late_add(struct slu_pack_mem *m, uint64_t at, uint64_t len_tok,
                       size_t item)
{
    m->late_first[m->n_late] = at;
    m->late_len[m->n_late] = (uint32_t)len_tok;
    m->late_item[m->n_late++] = (uint32_t)item;
}

void slu_pack_late_give(struct slu_pack_mem *m, const struct slu_u128 *hash)
{
    const unsigned width = m->cfg.tok_bytes;
    for (size_t i = 0; i < m->n_late; i++) {
        struct slu_seg seg = m->seg[m->late_item[i]];
        seg.len_tok = m->late_len[i]; /* its items may be pieces */
        slu_reader_late(m->cfg.reader, &seg,
                        hash ? hash[i]
                             : slu_hash_tokens(m->pool + m->late_first[i] * width,
                                               seg.len_tok, width));
    }
    m->n_late = 0;
}

int slu_pack_late_finish(struct slu_pack_mem *m, struct slu_err *err)
{
    const size_t n_byte = m->n_late * sizeof *m->a.seq_hash;
    int rc = SLU_OK;
    if (m->cuda)
        m->a.seq_hash =
            slu_pages_new(n_byte, m->huge ? SLU_PAGES_HUGE : SLU_PAGES_SMALL);
    if (m->cuda && !m->a.seq_hash)
        return slu_fail_nomem(err, n_byte);
    int code = m->cuda ? slu_pack_cuda_hashes(m->cuda) : 0;
    if (code)
        rc = slu_pack_mem_fault(m, code, err);
    if (!rc)
        slu_pack_late_give(m, m->cuda ? m->a.seq_hash : NULL);
    slu_pages_free(m->a.seq_hash, n_byte);
    m->a.seq_hash = NULL;
    return rc;
}
