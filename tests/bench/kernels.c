/* kernels.c - measures each kernel and its CPU version, beside a plain copy.
 *
 *   bench-kernels [-n ITEMS] [-g IDS] [-T THREADS] [-L CAPACITY] [-r N] [-k hspgxc]
 *
 * The data is on the device before the clock starts, and stays there. `moved` counts the
 * bytes that a pass needs: each input read once, each output written once. `of memcpy`
 * compares them, per second, with the bytes that a plain copy of the same side reads and
 * writes. Medians of N. Needs kernels/ and the C library only; with libxxhash it also
 * measures a core's own hashing.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kernels/device.h"
#include "kernels/histogram.h"
#include "kernels/parallel.h"
#include "kernels/scan.h"
#include "kernels/sort.h"
#include "tests/bench/kernels.h"

size_t n_item = 20000000, n_id = 500000000;
unsigned n_threads = 2;
uint32_t capacity = 8192;
bool have_device;
double cpu_memcpy, cpu_memcpy_all, gpu_memcpy;
struct model model;
static unsigned rounds = 5;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void *big(size_t n_byte)
{
    void *p =
        mmap(NULL, n_byte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("bench-kernels");
        exit(1);
    }
    (void)madvise(p, n_byte, MADV_HUGEPAGE);
    memset(p, 0, n_byte);
    return p;
}

void must(int code, const char *what)
{
    if (!code)
        return;
    fprintf(stderr, "bench-kernels: %s: %s\n", what, slu_device_error(code));
    exit(1);
}

void *device(const void *host, size_t n_byte)
{
    void *p;
    must(slu_device_alloc(&p, n_byte + 16), "alloc");
    if (host)
        must(slu_device_put(p, host, n_byte, NULL), "put");
    return p;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double seconds(void (*run)(void *), void *arg, bool on)
{
    double t[64];
    void *from = NULL, *to = NULL;
    unsigned n = rounds < 64 ? rounds : 64;
    if (on) {
        must(slu_device_event_new(&from), "event");
        must(slu_device_event_new(&to), "event");
        run(arg); /* the first call loads the kernel */
        must(slu_device_sync(NULL), "warm-up");
    }
    for (unsigned i = 0; i < n; i++) {
        float ms;
        double began = now();
        if (on)
            must(slu_device_event_record(from, NULL), "event");
        run(arg);
        if (on) {
            must(slu_device_event_record(to, NULL), "event");
            must(slu_device_event_wait(to), "run");
            must(slu_device_event_ms(from, to, &ms), "event");
        }
        t[i] = on ? ms * 1e-3 : now() - began;
    }
    slu_device_event_free(from);
    slu_device_event_free(to);
    qsort(t, n, sizeof *t, by_value);
    return t[n / 2];
}

void row(const char *name, const char *where, double n, double n_byte, double t,
         double memcpy_s)
{
    printf("%-10s %-12s %10.3f ms %9.3f ns each %9.2f GB/s moved %5.0f %% of memcpy\n",
           name, where, t * 1e3, t / n * 1e9, n_byte / t * 1e-9,
           100 * n_byte / t / memcpy_s);
    fflush(stdout);
}

char *threads_name(unsigned n)
{
    static char name[32];
    snprintf(name, sizeof name, "cpu x %u", n);
    return name;
}

/* ---- copying ---- */

struct copy {
    char *to, *from;
    size_t n_byte;
    unsigned parts;
    bool back;
};

static void copy_part(void *arg, unsigned i)
{
    struct copy *c = arg;
    size_t at = slu_kernel_share(c->n_byte, i, c->parts);
    memcpy(c->to + at, c->from + at, slu_kernel_share(c->n_byte, i + 1, c->parts) - at);
}

static void copy_host(void *arg)
{
    struct copy *c = arg;
    slu_kernel_parallel(c->parts, copy_part, c);
}

static void copy_within(void *arg)
{
    struct copy *c = arg;
    must(slu_device_copy(c->to, c->from, c->n_byte, NULL), "copy");
}

static void copy_bus(void *arg)
{
    struct copy *c = arg;
    must(c->back ? slu_device_get_async(c->to, c->from, c->n_byte, NULL)
                 : slu_device_put(c->to, c->from, c->n_byte, NULL),
         "copy");
}

static void read_file(void *arg)
{
    static char block[1 << 18]; /* as formats/ids/raw_file.c */
    const int fd = *(const int *)arg;
    for (off_t at = 0; pread(fd, block, sizeof block, at) > 0;)
        at += sizeof block;
}

static void measure_reading(const struct copy *c)
{
    int fd = memfd_create("ids", 0); /* its pages are the page cache's */
    if (fd < 0 || write(fd, c->from, c->n_byte) != (ssize_t)c->n_byte) {
        perror("bench-kernels");
        exit(1);
    }
    double took = seconds(read_file, &fd, false);
    model.read = took / ((double)c->n_byte / 2);
    printf("read       cpu x 1      %8.2f GB/s from the page cache\n",
           (double)c->n_byte / took * 1e-9);
    close(fd);
}

static void measure_copies(void)
{
    struct copy c = {big((size_t)1 << 28), big((size_t)1 << 28), (size_t)1 << 28, 1,
                     false};
    measure_reading(&c);
    double twice = 2 * (double)c.n_byte;
    cpu_memcpy = twice / seconds(copy_host, &c, false);
    printf("memcpy     cpu x 1      %8.2f GB/s read and written\n", cpu_memcpy * 1e-9);
    c.parts = n_threads;
    cpu_memcpy_all = twice / seconds(copy_host, &c, false);
    printf("memcpy     %-12s %8.2f GB/s\n", threads_name(n_threads),
           cpu_memcpy_all * 1e-9);
    munmap(c.to, c.n_byte);
    munmap(c.from, c.n_byte);
    if (!have_device)
        return;
    c.n_byte = (size_t)1 << 30;
    c.to = device(NULL, c.n_byte);
    c.from = device(NULL, c.n_byte);
    gpu_memcpy = 2 * (double)c.n_byte / seconds(copy_within, &c, true);
    printf("memcpy     device       %8.2f GB/s read and written\n", gpu_memcpy * 1e-9);
    slu_device_free(c.from);
    void *host, *there = c.to;
    must(slu_device_host_alloc(&host, c.n_byte), "page-locked memory");
    c = (struct copy){there, host, c.n_byte, 1, false};
    model.bus = (double)c.n_byte / seconds(copy_bus, &c, true);
    printf("memcpy     to device    %8.2f GB/s one way\n", model.bus * 1e-9);
    c = (struct copy){host, there, c.n_byte, 1, true};
    double back = (double)c.n_byte / seconds(copy_bus, &c, true);
    printf("memcpy     from device  %8.2f GB/s one way\n", back * 1e-9);
    model.bus = back < model.bus ? back : model.bus;
    slu_device_host_free(host);
    slu_device_free(there);
}

/* ---- data: lengths as text has them, mostly short, log-normal ---- */

static uint64_t rng_state = 88172645463325252u;

uint64_t rng(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    return rng_state ^= rng_state << 17;
}

uint32_t draw_length(void)
{
    static uint32_t quantile[65536];
    if (!quantile[0])
        for (int i = 0; i < 65536; i++) {
            double u = (i + 0.5) / 65536, lo = -6, hi = 6;
            for (int k = 0; k < 40; k++) {
                double mid = (lo + hi) / 2;
                *(erfc(-mid / sqrt(2)) / 2 < u ? &lo : &hi) = mid;
            }
            double x = 200 * exp(1.2 * lo);
            quantile[i] = x < 1 ? 1 : x > capacity ? capacity : (uint32_t)x;
        }
    uint64_t r = rng();
    uint32_t q = quantile[r >> 48], v = q + (uint32_t)(q * (r & 255) >> 12);
    return v < capacity ? v : capacity;
}

/* ---- histogram ---- */

struct counting {
    const uint32_t *len;
    uint64_t *count;
};

static void histogram_cpu(void *arg)
{
    struct counting *c = arg;
    slu_histogram_cpu(c->len, n_item, c->count, capacity + 1);
}

static void histogram_cuda(void *arg)
{
    struct counting *c = arg;
    must(slu_histogram_cuda(c->len, n_item, c->count, capacity + 1, NULL), "histogram");
}

static void bench_histogram(const uint32_t *len)
{
    uint64_t *count = big((capacity + 1) * (size_t)8);
    struct counting c = {len, count};
    double n_byte = 4 * (double)n_item;
    row("histogram", "cpu x 1", (double)n_item, n_byte,
        seconds(histogram_cpu, &c, false), cpu_memcpy);
    if (have_device) {
        uint32_t *dl = device(len, n_item * 4);
        uint64_t *dc = device(count, (capacity + 1) * (size_t)8);
        struct counting on = {dl, dc};
        row("histogram", "device", (double)n_item, n_byte,
            seconds(histogram_cuda, &on, true), gpu_memcpy);
        slu_device_free(dl);
        slu_device_free(dc);
    }
    munmap(count, (capacity + 1) * (size_t)8);
}

/* ---- sort ---- */

struct sorting {
    const uint32_t *len;
    uint32_t *order;
    void *work;
    size_t work_byte;
    unsigned threads;
};

static void sort_cpu(void *arg)
{
    struct sorting *s = arg;
    slu_sort_lengths_cpu(s->len, n_item, capacity, s->order, s->work, s->threads);
}

static void sort_cuda(void *arg)
{
    struct sorting *s = arg;
    must(slu_sort_lengths_cuda(s->len, n_item, capacity, 0, s->order, s->work,
                               s->work_byte, NULL),
         "sort");
}

static void bench_sort(const uint32_t *len, uint32_t *order)
{
    double n_byte = 8 * (double)n_item;
    for (unsigned t = 1; t <= n_threads; t = t < n_threads ? n_threads : t + 1) {
        size_t w = slu_sort_lengths_cpu_work(n_item, capacity, t);
        struct sorting s = {len, order, big(w), w, t};
        row("sort", threads_name(t), (double)n_item, n_byte,
            seconds(sort_cpu, &s, false), t == 1 ? cpu_memcpy : cpu_memcpy_all);
        munmap(s.work, w);
    }
    if (!have_device)
        return;
    size_t w = slu_sort_lengths_cuda_work(n_item, capacity);
    struct sorting s = {device(len, n_item * 4), device(NULL, n_item * 4),
                        device(NULL, w), w, 0};
    row("sort", "device", (double)n_item, n_byte, seconds(sort_cuda, &s, true),
        gpu_memcpy);
    slu_device_free((void *)(uintptr_t)s.len);
    slu_device_free(s.order);
    slu_device_free(s.work);
}

/* ---- scan ---- */

struct scanning {
    const void *tok;
    uint64_t *count, *far;
    struct slu_eos_block *b;
    void *work;
    size_t n, work_byte;
    unsigned tok_bytes;
};

static void scan_cpu(void *arg)
{
    struct scanning *s = arg;
    slu_eos_lengths(slu_eos_kernel(NULL), s->tok, s->n, s->tok_bytes, 0, s->count,
                    capacity + 1, s->far, s->b);
}

static void scan_cuda(void *arg)
{
    struct scanning *s = arg;
    must(slu_eos_lengths_cuda(s->tok, s->n, s->tok_bytes, 0, s->count, capacity + 1,
                              s->far, s->b, s->work, s->work_byte, NULL),
         "scan");
}

static void bench_scan(unsigned tok_bytes)
{
    size_t n = n_id < ((size_t)1 << 31) - 1 ? n_id : ((size_t)1 << 31) - 1;
    size_t far_byte = (slu_eos_far_most(n, capacity + 1) + 1) * 8, at = 0;
    char *tok = big(n * tok_bytes);
    memset(tok, 1, n * tok_bytes);
    while ((at += draw_length()) < n)
        memset(tok + at * tok_bytes, 0, tok_bytes);
    uint64_t *count = big((capacity + 1) * (size_t)8), *far = big(far_byte);
    struct slu_eos_block b;
    struct scanning s = {tok, count, far, &b, NULL, n, 0, tok_bytes};
    double n_byte = (double)tok_bytes * (double)n;
    double took = seconds(scan_cpu, &s, false);
    if (tok_bytes == 2)
        model.scan = took / (double)n;
    row(tok_bytes == 2 ? "scan u16" : "scan u32", "cpu x 1", (double)n, n_byte, took,
        cpu_memcpy);
    if (have_device) {
        size_t w = slu_eos_lengths_cuda_work(n);
        struct scanning on = {device(tok, n * tok_bytes),
                              device(count, (capacity + 1) * (size_t)8),
                              device(NULL, far_byte),
                              device(NULL, sizeof b),
                              device(NULL, w),
                              n,
                              w,
                              tok_bytes};
        row(tok_bytes == 2 ? "scan u16" : "scan u32", "device", (double)n, n_byte,
            seconds(scan_cuda, &on, true), gpu_memcpy);
        slu_device_free((void *)(uintptr_t)on.tok);
        slu_device_free(on.count);
        slu_device_free(on.far);
        slu_device_free(on.b);
        slu_device_free(on.work);
    }
    munmap(tok, n * tok_bytes);
    munmap(count, (capacity + 1) * (size_t)8);
    munmap(far, far_byte);
}

/* Starts the device as pack does, with a gigabyte of page-locked memory. Returns the
 * code of what failed. */
static int start_device(int *n)
{
    const size_t n_byte = (size_t)1 << 30;
    const double began = now();
    int code = slu_device_count(n);
    if (!code && *n > 0)
        code = slu_device_select(0);
    have_device = !code && *n > 0;
    if (!have_device)
        return code;
    char *host = big(n_byte);
    must(slu_device_host_lock(host, n_byte), "page-locked memory");
    model.start = now() - began;
    slu_device_host_unlock(host);
    munmap(host, n_byte);
    return 0;
}

/* Prints the lines of lib/base/device_model.h. */
static void print_model(void)
{
    const struct {
        const char *name;
        double value;
    } LINE[] = {{"START_S", model.start}, {"BUS_BYTE_PER_S", model.bus},
                {"READ_S", model.read},   {"SCAN_S", model.scan},
                {"COPY_S", model.copy},   {"HASH_S", model.hash}};
    printf("\nlib/base/device_model.h, as measured here:\n");
    for (size_t i = 0; i < sizeof LINE / sizeof *LINE; i++)
        if (LINE[i].value > 0)
            printf("#define SLU_MODEL_%s %.3g\n", LINE[i].name, LINE[i].value);
}

int main(int argc, char **argv)
{
    int c, n = 0;
    char name[128] = "no device";
    const char *only = "hspgxc"; /* which kernels */
    while ((c = getopt(argc, argv, "n:g:T:L:r:k:")) != -1) {
        switch (c) {
        case 'n':
            n_item = (size_t)strtod(optarg, NULL);
            break;
        case 'g':
            n_id = (size_t)strtod(optarg, NULL);
            break;
        case 'T':
            n_threads = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'L':
            capacity = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'r':
            rounds = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'k':
            only = optarg;
            break;
        default:
            fprintf(stderr, "usage: bench-kernels [-n ITEMS] [-g IDS] [-T THREADS] "
                            "[-L CAPACITY] [-r ROUNDS] [-k hspgxc]\n");
            return 2;
        }
    }
    if (!n_item || n_id < 10000 || !n_threads || !capacity || !rounds)
        return 2;
    int code = start_device(&n);
    if (have_device)
        (void)slu_device_name(0, name, sizeof name);
    else if (code)
        snprintf(name, sizeof name, "%s", slu_device_error(code));
    printf("device: %s; %zu items, bins of %u ids, medians of %u\n", name, n_item,
           capacity, rounds);
    measure_copies();
    uint32_t *len = big(n_item * 4), *order = big(n_item * 4);
    for (size_t i = 0; i < n_item; i++)
        len[i] = draw_length();
    if (strchr(only, 'h'))
        bench_histogram(len);
    if (strchr(only, 's') || strchr(only, 'p'))
        bench_sort(len, order);
    if (strchr(only, 'p'))
        bench_place(len, order);
    for (unsigned b = 2; b <= 4 && strchr(only, 'g'); b += 2)
        bench_copy(b);
    for (unsigned b = 2; b <= 4 && strchr(only, 'x'); b += 2)
        bench_hash(b);
    for (unsigned b = 2; b <= 4 && strchr(only, 'c'); b += 2)
        bench_scan(b);
    print_model();
    return 0;
}
