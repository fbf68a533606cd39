#include "copy.h"

void slu_copy_ref(const struct slu_copy *c, uint64_t first_tok, size_t n_tok, void *out)
{
    const uint16_t *pool2 = c->pool;
    const uint32_t *pool4 = c->pool;
    uint16_t *out2 = out;
    uint32_t *out4 = out;
    size_t r = 0; /* the run that covers id `at` or, if none does, the next */
    for (size_t t = 0; t < n_tok; t++) {
        uint64_t at = first_tok + t;
        while (r < c->n_run && c->run_dst[r] + c->len[c->run_item[r]] <= at)
            r++;
        uint32_t id = c->pad;
        if (r < c->n_run && c->run_dst[r] <= at) {
            uint64_t from = c->src[c->run_item[r]] + (at - c->run_dst[r]);
            id = c->tok_bytes == 2 ? pool2[from] : pool4[from];
        }
        if (c->tok_bytes == 2)
            out2[t] = (uint16_t)id;
        else
            out4[t] = id;
    }
}
