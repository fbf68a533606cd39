/* plan: what solving takes from the histogram on, one core, and how near the bound it
 * gets, for lognormal lengths (lognormal.h). Medians of several runs; the figures that
 * do not vary are a table in tests/unit/test_efficiency.c. */
#include <stdio.h>
#include <time.h>

#include "tests/bench/lognormal.h"

#define RUNS 15

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(void)
{
    static const struct {
        uint64_t capacity;
        double n_doc;
    } row[] = {{2048, 1e9}, {8192, 1e9}, {32768, 1e9}, {131072, 1e11}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        size_t n;
        struct slu_length_count *hist = lognormal(row[i].capacity, row[i].n_doc, &n);
        for (int m = SLU_PACK_BFD; hist && m <= SLU_PACK_LPFHP; m++) {
            struct slu_pack_cfg cfg = {.capacity = row[i].capacity};
            cfg.max_items = m == SLU_PACK_SPFHP ? 12 : 0;
            double second[RUNS];
            struct slu_pack_sum s = {0};
            for (int r = 0; r < RUNS; r++) {
                struct slu_pack_plan *plan;
                double begin = now();
                if (slu_pack_solve(&plan, (enum slu_pack_method)m, hist, n, &cfg, NULL))
                    return 1;
                second[r] = now() - begin;
                s = slu_pack_plan_sum(plan);
                slu_pack_plan_free(plan);
            }
            qsort(second, RUNS, sizeof *second, by_value);
            printf("%-6s L %6d: %8.3f ms (least %.3f), %7d groups, %.5f %% over\n",
                   slu_pack_method_name[m], (int)row[i].capacity,
                   second[RUNS / 2] * 1e3, second[0] * 1e3, (int)s.groups,
                   100 * (double)(s.bins - s.bound) / (double)s.bound);
            fflush(stdout);
        }
        free(hist);
    }
    return 0;
}
