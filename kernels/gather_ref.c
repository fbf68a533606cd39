#include "gather.h"

void slu_gather_ref(const struct slu_gather *g, uint64_t first_tok, size_t n_tok,
                    void *out)
{
    const uint16_t *pool2 = g->pool;
    const uint32_t *pool4 = g->pool;
    uint16_t *out2 = out;
    uint32_t *out4 = out;
    size_t r = 0; /* the run that covers id `at` or, if none does, the next */
    for (size_t t = 0; t < n_tok; t++) {
        uint64_t at = first_tok + t;
        while (r < g->n_run && g->run_dst[r] + g->len[g->run_item[r]] <= at)
            r++;
        uint32_t id = g->pad;
        if (r < g->n_run && g->run_dst[r] <= at) {
            uint64_t from = g->src[g->run_item[r]] + (at - g->run_dst[r]);
            id = g->tok_bytes == 2 ? pool2[from] : pool4[from];
        }
        if (g->tok_bytes == 2)
            out2[t] = (uint16_t)id;
        else
            out4[t] = id;
    }
}
