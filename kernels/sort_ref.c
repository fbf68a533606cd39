#include "sort.h"

#include <string.h>

size_t slu_sort_lengths_ref_work(size_t n, uint32_t longest)
{
    (void)n;
    return ((size_t)longest + 2) * sizeof(uint32_t);
}

void slu_sort_lengths_ref(const uint32_t *len, size_t n, uint32_t longest,
                          uint32_t *order, void *work)
{
    uint32_t *at = work; /* at[v]: position of the next item of length v */
    memset(at, 0, slu_sort_lengths_ref_work(n, longest));
    for (size_t i = 0; i < n; i++)
        at[len[i]]++;
    uint32_t before = 0; /* number of items longer than v */
    for (size_t v = (size_t)longest + 1; v-- > 0;) {
        uint32_t here = at[v];
        at[v] = before;
        before += here;
    }
    for (size_t i = 0; i < n; i++)
        order[at[len[i]]++] = (uint32_t)i;
}
