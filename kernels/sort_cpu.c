#include "sort.h"

size_t slu_sort_lengths_cpu_work(size_t n, uint32_t longest, unsigned n_threads)
{
    (void)n_threads;
    return slu_sort_lengths_ref_work(n, longest);
}

void slu_sort_lengths_cpu(const uint32_t *len, size_t n, uint32_t longest,
                          uint32_t *order, void *work, unsigned n_threads)
{
    (void)n_threads;
    slu_sort_lengths_ref(len, n, longest, order, work);
}
