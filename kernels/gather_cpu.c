#include "gather.h"

void slu_gather_cpu(const struct slu_gather *g, uint64_t first_tok, size_t n_tok,
                    void *out, unsigned n_threads)
{
    (void)n_threads;
    slu_gather_ref(g, first_tok, n_tok, out);
}
