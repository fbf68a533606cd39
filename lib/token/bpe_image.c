/* bpe_image.c - a model as one block of memory that can be written and read back. */
#include "lib/token/bpe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN 64
#define HUGE  (UINT64_C(2) << 20)

static bool is_mask(uint32_t mask)
{
    return mask >= 15 && mask < UINT32_MAX && !(mask & (mask + 1));
}

size_t bpe_layout(const struct bpe_head *h, struct bpe_span span[BPE_N_SECTION])
{
    size_t at = sizeof *h;

    /* Within these bounds nothing below can overflow. */
    if (h->n_id >= BPE_MAX_ID || h->n_tok < 256 || h->n_tok >= BPE_MAX_ID ||
        h->n_node < h->n_tok || h->n_node > BPE_MAX_NODE || !is_mask(h->child_mask) ||
        !is_mask(h->pair_mask) || !is_mask(h->might_mask) || !is_mask(h->seam4_mask) ||
        h->regular >= h->n_tok || (h->n_whole && !is_mask(h->whole_mask)))
        return 0;
    const size_t size[BPE_N_SECTION] = {
        [BPE_TOKEN] = h->n_tok * sizeof(struct bpe_token),
        [BPE_TWO] = 65536 * sizeof(uint32_t),
        [BPE_CHILD] = ((size_t)h->child_mask + 1) * sizeof(uint64_t),
        [BPE_BEST] = (size_t)(h->n_node - h->n_tok) * sizeof(uint32_t),
        [BPE_PAIR] = ((size_t)h->pair_mask + 1) * sizeof(uint64_t),
        [BPE_WHOLE] = h->n_whole ? ((size_t)h->whole_mask + 1) * sizeof(uint32_t) : 0,
        [BPE_MIGHT] = ((size_t)h->might_mask + 1) * sizeof(uint64_t),
        [BPE_ID_OF] = (h->regular + 1) * sizeof(uint32_t),
        [BPE_SEAM] = 65536 * sizeof(uint32_t),
        [BPE_SEAM4] = ((size_t)h->seam4_mask + 1) * sizeof(uint32_t),
    };
    for (unsigned k = 0; k < BPE_N_SECTION; k++) {
        at = (at + ALIGN - 1) / ALIGN * ALIGN;
        span[k] = (struct bpe_span){at, size[k]};
        at += size[k];
    }
    return (at + ALIGN - 1) / ALIGN * ALIGN;
}

void *bpe_image_alloc(size_t n_byte)
{
    size_t align = n_byte >= HUGE / 2 ? HUGE : ALIGN;
    size_t n = (n_byte + align - 1) / align * align;
    void *p = n < n_byte ? NULL : aligned_alloc(align, n);

    if (p && align == HUGE)
        (void)madvise(p, n, MADV_HUGEPAGE); /* before it is touched; advice only */
    return p;
}

const void *bpe_image(const struct tok_model *m, size_t *n_byte)
{
    *n_byte = m->image->n_byte;
    return m->image;
}

int bpe_attach(struct tok_model **out, const void *image, size_t n_byte,
               const struct slu_vocab_table *table, struct slu_err *err)
{
    const struct bpe_head *h = image;
    const uint8_t *base = image;
    struct bpe_span span[BPE_N_SECTION];

    *out = NULL;
    if (n_byte < sizeof *h || h->magic != BPE_MAGIC || h->version != BPE_VERSION ||
        h->n_byte != n_byte || h->n_id != table->n)
        return slu_fail(err, SLU_E_FORMAT, "not an image of this vocabulary");
    if (bpe_layout(h, span) != n_byte)
        return slu_fail(err, SLU_E_FORMAT, "an image with sizes that do not fit");
    struct tok_model *m = malloc(sizeof *m);
    if (!m)
        return slu_fail_nomem(err, sizeof *m);
    *m = (struct tok_model){
        .n_id = h->n_id,
        .child_mask = h->child_mask,
        .pair_mask = h->pair_mask,
        .n_whole = h->n_whole,
        .n_tok = h->n_tok,
        .token = (const void *)(base + span[BPE_TOKEN].off),
        .two = (const void *)(base + span[BPE_TWO].off),
        .child = (const void *)(base + span[BPE_CHILD].off),
        .best = (const void *)(base + span[BPE_BEST].off),
        .pair = (const void *)(base + span[BPE_PAIR].off),
        .might = (const void *)(base + span[BPE_MIGHT].off),
        .might_shift = (unsigned)__builtin_clz(h->might_mask) + 32,
        .id_of = (const void *)(base + span[BPE_ID_OF].off),
        .regular = h->regular,
        .seam = (const void *)(base + span[BPE_SEAM].off),
        .seam4 = (const void *)(base + span[BPE_SEAM4].off),
        .seam4_shift = (unsigned)__builtin_clz(h->seam4_mask) - 5,
        .whole = {table, (uint32_t *)(uintptr_t)(base + span[BPE_WHOLE].off),
                  h->whole_mask},
        .table = table,
        .image = h,
    };
    *out = m;
    return SLU_OK;
}

void bpe_free(struct tok_model *m)
{
    if (!m)
        return;
    free(m->own);
    free(m);
}
