/* plan_time.c - how long a packing takes when the lengths are in memory, on one core.
 *
 *   plan_time ours|ffd|tree CAPACITY FILE
 *
 * FILE has u32 lengths, native byte order, each between 1 and CAPACITY. Prints a JSON
 * object: bins, documents, tokens, and processor seconds of each step.
 *
 *   ours  histogram, plan (lib/pack/packer.h), and each document's bin and offset by
 * sorting and arithmetic (kernels/sort.h, place.h): what pack does but for the tokens;
 *         ffd: the same with first-fit decreasing
 *   tree  the plain algorithm of arXiv 2404.10830 in C: documents sorted by length,
 * each to the fullest bin that has room, found in a segment tree over the room left,
 *         bins of equal room first in, first out
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/histogram.h"
#include "kernels/place.h"
#include "kernels/sort.h"
#include "lib/pack/packer.h"

static uint32_t *length;
static size_t n;
static uint32_t capacity;

static void *need(size_t n_byte)
{
    void *p = calloc(n_byte + 64, 1);
    if (!p) {
        fprintf(stderr, "plan_time: no memory\n");
        exit(1);
    }
    return p;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void load(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) {
        fprintf(stderr, "plan_time: %s: cannot be read\n", path);
        exit(1);
    }
    n = (size_t)ftell(f) / sizeof *length;
    rewind(f);
    length = need(n * sizeof *length);
    if (fread(length, sizeof *length, n, f) != n)
        exit(1);
    fclose(f);
    for (size_t i = 0; i < n; i++)
        if (!length[i] || length[i] > capacity) {
            fprintf(stderr, "plan_time: a length is not in 1 ... %u\n", capacity);
            exit(1);
        }
}

/* ---- ours ---- */

static void place(const struct slu_pack_plan *plan, const uint32_t *order,
                  uint32_t *run_item, uint64_t *run_dst)
{
    struct slu_err err;
    struct slu_pack_interval *v;
    size_t n_v;
    uint64_t first = 0;
    struct slu_place_step *step = need(plan->n_group * sizeof *step);
    if (slu_pack_intervals(plan, &v, &n_v, &err))
        exit(1);
    struct slu_place_interval *in = need(n_v * sizeof *in);
    for (size_t i = 0; i < plan->n_group; i++) {
        const struct slu_pack_group *g = &plan->group[i];
        step[i] = (struct slu_place_step){.first = first,
                                          .repeat = g->repeat,
                                          .len_tok = g->len_tok,
                                          .first_bin = g->first_bin,
                                          .slot = g->slot,
                                          .used = g->capacity - g->room -
                                                  g->repeat * g->len_tok};
        slu_place_link(step, (uint32_t)i, g->parent);
        first += g->count * g->repeat;
    }
    for (size_t i = 0; i < n_v; i++)
        in[i] = (struct slu_place_interval){.first_bin = v[i].first_bin,
                                            .first_item = v[i].first_item,
                                            .items = v[i].items,
                                            .first_tok = v[i].first_tok,
                                            .capacity = v[i].capacity,
                                            .last = v[i].group};
    struct slu_place p = {order, n, step, plan->n_group, in, n_v};
    slu_place_cpu(&p, run_item, run_dst, 1);
    free(step);
    free(in);
    free(v);
}

static void ours(enum slu_pack_method method)
{
    struct slu_err err;
    struct slu_pack_plan *plan;
    struct slu_pack_cfg cfg = {.capacity = capacity};
    uint64_t *count = need((capacity + 1) * sizeof *count), tok = 0;
    struct slu_length_count *row = need((capacity + 1) * sizeof *row);
    uint32_t *order = need(n * 4), *item = need(n * 4);
    uint64_t *dst = need(n * 8);
    void *work = need(slu_sort_lengths_cpu_work(n, capacity, 1));
    memset(order, 1, n * 4); /* pages are there before the clock starts, as the */
    memset(item, 1, n * 4);  /* interpreters of the others have theirs */
    memset(dst, 1, n * 8);
    size_t rows = 0;
    double t0 = now();
    for (size_t i = 0; i < n; i++)
        count[length[i]]++;
    for (uint32_t l = 1; l <= capacity; l++)
        if (count[l]) {
            row[rows++] = (struct slu_length_count){l, count[l]};
            tok += l * count[l];
        }
    double t1 = now();
    if (slu_pack_solve(&plan, method, row, rows, &cfg, &err)) {
        fprintf(stderr, "plan_time: %s\n", err.msg);
        exit(1);
    }
    double t2 = now();
    slu_sort_lengths_cpu(length, n, capacity, order, work, 1);
    double t3 = now();
    place(plan, order, item, dst);
    double t4 = now();
    for (size_t i = 1; i < n; i++)
        if (dst[i] < dst[i - 1] + length[item[i - 1]]) {
            fprintf(stderr, "plan_time: documents overlap\n");
            exit(1);
        }
    printf("{\"bins\": %llu, \"documents\": %zu, \"tokens\": %llu, \"seconds\": "
           "{\"histogram\": %.9f, \"plan\": %.9f, \"sort\": %.9f, "
           "\"place\": %.9f}}\n",
           (unsigned long long)plan->n_bin, n, (unsigned long long)tok, t1 - t0,
           t2 - t1, t3 - t2, t4 - t3);
    slu_pack_plan_free(plan);
}

/* ---- a segment tree ---- */

static uint32_t leaves, *tree;

static void set(uint32_t room, uint32_t value)
{
    uint32_t i = leaves + room;
    for (tree[i] = value, i >>= 1; i; i >>= 1)
        tree[i] = tree[2 * i] > tree[2 * i + 1] ? tree[2 * i] : tree[2 * i + 1];
}

static void best_fit(void)
{
    for (leaves = 1; leaves <= capacity; leaves *= 2)
        ;
    tree = need(2 * leaves * sizeof *tree);
    uint32_t *order = need(n * 4), *bin_of = need(n * 4), *next = need(n * 4);
    uint32_t *head = need((capacity + 1) * 4), *tail = need((capacity + 1) * 4);
    void *work = need(slu_sort_lengths_cpu_work(n, capacity, 1));
    uint32_t n_bin = 0;
    uint64_t tok = 0;
    memset(order, 1, n * 4);
    memset(bin_of, 1, n * 4);
    memset(next, 1, n * 4);
    double t0 = now();
    slu_sort_lengths_cpu(length, n, capacity, order, work, 1);
    double t1 = now();
    for (size_t k = 0; k < n; k++) {
        uint32_t l = length[order[k]], room = capacity, bin;
        tok += l;
        if (tree[1] >= l) {
            uint32_t i = 1;
            while (i < leaves)
                i = tree[2 * i] >= l ? 2 * i : 2 * i + 1;
            room = i - leaves;
            bin = head[room] - 1; /* numbers from 1: 0 is none */
            head[room] = next[bin];
            if (!head[room])
                set(room, 0);
        } else {
            bin = n_bin++;
        }
        bin_of[order[k]] = bin;
        room -= l;
        if (!room)
            continue;
        next[bin] = 0;
        if (head[room]) {
            next[tail[room] - 1] = bin + 1;
        } else {
            head[room] = bin + 1;
            set(room, room);
        }
        tail[room] = bin + 1;
    }
    double t2 = now();
    printf("{\"bins\": %" PRIu32 ", \"documents\": %zu, \"tokens\": %llu, \"seconds\": "
           "{\"sort\": %.9f, \"place\": %.9f}}\n",
           n_bin, n, (unsigned long long)tok, t1 - t0, t2 - t1);
}

int main(int argc, char **argv)
{
    if (argc != 4 || !(capacity = (uint32_t)strtoul(argv[2], NULL, 10)) ||
        capacity > SLU_MAX_CAPACITY) {
        fprintf(stderr, "usage: plan_time ours|ffd|tree CAPACITY FILE\n");
        return 2;
    }
    load(argv[3]);
    if (strcmp(argv[1], "tree") == 0)
        best_fit();
    else
        ours(strcmp(argv[1], "ffd") == 0 ? SLU_PACK_FFD : SLU_PACK_BFD);
    return 0;
}
