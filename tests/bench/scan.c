/* scan.c - how fast raw ids become a histogram of documents' lengths (kernels/scan.h),
 * beside a loop that only reads: the floor that memory sets, taken in the same run.
 *
 *   scan [MIB] [ROUNDS]      memory's share: 1024 MiB, 7 rounds; then data in the cache
 *
 * One thread. Every figure is the median of the rounds, which alternate with the
 * floor's; nothing else is written than Gtok/s, GB/s and the fraction of the floor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/scan.h"

enum { N_BIN = 1 << 20, MAX_ROUNDS = 101 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t mix(uint64_t z)
{
    z = (z + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Documents of 1 … 2 mean - 1 ids, every third one eight times shorter; 0: no EOS. */
static void fill(void *tok, size_t n, unsigned tok_bytes, uint64_t mean)
{
    uint64_t end = UINT64_MAX, d = 0;
    if (mean)
        end = mix(d) % (2 * mean - 1);
    for (size_t i = 0; i < n; i++) {
        uint32_t v = 1 + (uint32_t)(i * 40503u >> 4) % 50000;
        if (i == end) {
            uint64_t r = mix(++d), m = d % 3 ? mean : mean / 8 + 1;
            end += 1 + r % (2 * m - 1);
            v = 0;
        }
        if (tok_bytes == 2)
            ((uint16_t *)tok)[i] = (uint16_t)v;
        else
            ((uint32_t *)tok)[i] = v;
    }
}

/* Reads n_byte (a multiple of 64), and does the least with it. */
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2")))
#endif
static uint64_t
read_only(const void *p, size_t n_byte)
{
    const uint64_t *w = p;
    uint64_t s[16] = {0}, t = 0;
    for (size_t i = 0; i + 16 <= n_byte / 8; i += 16) {
        __builtin_prefetch(w + i + 512, 0, 2); /* as the scan does */
        __builtin_prefetch(w + i + 520, 0, 2);
        for (unsigned j = 0; j < 16; j++)
            s[j] += w[i + j];
    }
    for (unsigned j = 0; j < 16; j++)
        t += s[j];
    return t;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static volatile uint64_t sink;

struct bench {
    void *tok;
    uint64_t *count, *far;
    unsigned rounds;
};

/* n_byte of ids, `times` passes a round. */
static void measure(const struct bench *b, const char *what, size_t n_byte,
                    unsigned tok_bytes, unsigned times, const char *level)
{
    double floor_s[MAX_ROUNDS], scan_s[MAX_ROUNDS];
    const struct slu_eos_kernel *k = slu_eos_kernel(level);
    size_t n = n_byte / tok_bytes;
    struct slu_eos_block out = {0, 0, 0, 0};

    if (!k)
        return;
    for (unsigned r = 0; r < b->rounds; r++) {
        double t = now();
        for (unsigned i = 0; i < times; i++)
            sink += read_only(b->tok, n_byte);
        floor_s[r] = now() - t;
        t = now();
        for (unsigned i = 0; i < times; i++) {
            slu_eos_lengths(k, b->tok, n, tok_bytes, 0, b->count, N_BIN, b->far, &out);
            sink += out.n_eos;
        }
        scan_s[r] = now() - t;
    }
    qsort(floor_s, b->rounds, sizeof *floor_s, ascending);
    qsort(scan_s, b->rounds, sizeof *scan_s, ascending);
    double f = floor_s[b->rounds / 2], s = scan_s[b->rounds / 2];
    double tok = (double)n * times;
    printf("%-26s u%u %-8s %6.2f Gtok/s %6.1f GB/s  floor %6.1f GB/s  %3.0f %%\n", what,
           8 * tok_bytes, slu_eos_kernel_name(k), tok / s * 1e-9,
           tok * tok_bytes / s * 1e-9, tok * tok_bytes / f * 1e-9, 100 * f / s);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const uint64_t means[] = {0, 4000, 600, 100, 10};
    static const char *const levels[] = {"avx512", "avx2", "neon", "portable"};
    size_t n_byte = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1024) << 20;
    struct bench b = {.rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 7};
    if (!n_byte || !b.rounds || b.rounds > MAX_ROUNDS)
        return fprintf(stderr, "scan [MIB] [ROUNDS <= %d]\n", MAX_ROUNDS), 2;
    b.tok = aligned_alloc(64, n_byte);
    b.count = calloc(N_BIN, sizeof *b.count);
    b.far = malloc((slu_eos_far_most(n_byte / 2, N_BIN) + 1) * sizeof *b.far);
    if (!b.tok || !b.count || !b.far)
        return fprintf(stderr, "scan: no memory\n"), 1;
    for (unsigned w = 2; w <= 4; w += 2)
        for (size_t m = 0; m < sizeof means / sizeof *means; m++) {
            char what[64];
            fill(b.tok, n_byte / w, w, means[m]);
            snprintf(what, sizeof what, "memory, mean %llu",
                     (unsigned long long)means[m]);
            for (size_t l = 0; l < 4; l++)
                measure(&b, what, n_byte, w, 1, levels[l]);
            snprintf(what, sizeof what, "1 MiB in cache, mean %llu",
                     (unsigned long long)means[m]);
            for (size_t l = 0; l < 4; l++)
                measure(&b, what, n_byte < 1 << 20 ? n_byte : 1 << 20, w, 200,
                        levels[l]);
        }
    free(b.far);
    free(b.count);
    free(b.tok);
    return 0;
}
