/* main.c - test_kernels: kernels.h says what it compares.
 *
 *   test_kernels [-s[ITEMS]] [-k KERNEL] [SEED]
 *
 * -s leaves out cases of more than ITEMS (70000: and two thirds of the longest), for
 * slow instruments; -k tests one kernel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"
#include "tests/kernels/kernels.h"

static int n_result, n_failed;
bool have_device;
char no_device[200];
size_t most_items = SIZE_MAX;

int fewer(int n)
{
    return most_items < 10000 ? (n + 7) / 8 : n;
}

void result(bool good, const char *what)
{
    printf("%s %d - %s\n", good ? "ok" : "not ok", ++n_result, what);
    fflush(stdout);
    n_failed += !good;
}

void skipped(const char *what, const char *why)
{
    printf("ok %d - %s # SKIP %s\n", ++n_result, what, why);
}

static uint64_t rng_state = 1;

uint64_t rnd(uint64_t n)
{
    uint64_t z = rng_state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % n;
}

void *need(size_t n_byte)
{
    void *p = malloc(n_byte ? n_byte : 1);
    if (!p) {
        fprintf(stderr, "test_kernels: out of memory\n");
        exit(1);
    }
    return p;
}

bool device_said(int code, const char *what)
{
    if (code)
        fprintf(stderr, "test_kernels: %s: %s\n", what, slu_device_error(code));
    return code == 0;
}

void *to_device(const void *p, size_t n_byte)
{
    void *d;
    if (!device_said(slu_device_alloc(&d, n_byte), "alloc"))
        exit(1);
    if (p && n_byte && !device_said(slu_device_put(d, p, n_byte, NULL), "put"))
        exit(1);
    return d;
}

bool from_device(void *p, const void *d, size_t n_byte)
{
    return device_said(slu_device_get(p, d, n_byte, NULL), "get");
}

static void wake(void)
{
    int n, code = slu_device_count(&n);
    if (code == 0 && n > 0)
        code = slu_device_select(0);
    have_device = code == 0 && n > 0;
    snprintf(no_device, sizeof no_device, "%s",
             code ? slu_device_error(code) : "no CUDA device");
}

static const struct {
    const char *name;
    void (*test)(void);
} KERNEL[] = {{"histogram", test_histogram}, {"sort", test_sort}, {"place", test_place},
              {"copy", test_copy},           {"hash", test_hash}, {"scan", test_scan}};

int main(int argc, char **argv)
{
    const char *only = NULL;
    char name[128] = "";
    if (argc > 1 && !strncmp(argv[1], "-s", 2)) {
        most_items = argv[1][2] ? strtoull(argv[1] + 2, NULL, 10) : 70000;
        argv++;
        argc--;
    }
    if (argc > 2 && !strcmp(argv[1], "-k")) {
        only = argv[2];
        argv += 2;
        argc -= 2;
    }
    if (argc > 1)
        rng_state = strtoull(argv[1], NULL, 10);
    wake();
    if (have_device) {
        (void)slu_device_name(0, name, sizeof name);
        fprintf(stderr, "test_kernels: on %s too\n", name);
    }
    for (size_t k = 0; k < sizeof KERNEL / sizeof *KERNEL; k++)
        if (!only || !strcmp(only, KERNEL[k].name))
            KERNEL[k].test();
    if (have_device)
        result(n_failed == 0, "the same on a CUDA device");
    else
        skipped("the same on a CUDA device", no_device);
    printf("1..%d\n", n_result);
    return n_failed != 0;
}
