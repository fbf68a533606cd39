/* kernels.h - what the cases of each kernel share: results, random numbers, a device's
 * memory, random packings. main.c has the functions, packing.c those of packings.
 *
 * Each kernel's fast versions are compared with its oracle, and the oracle with its
 * definition, on random and hostile input. Needs only kernels/ and the C library, so that
 * the test runs on a bare machine with a device (`make check-gpu`).
 */
#ifndef SLU_TESTS_KERNELS_H
#define SLU_TESTS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/copy.h"
#include "kernels/place.h"

extern bool have_device;
extern char no_device[200]; /* why there is none */
extern size_t most_items;   /* larger cases are left out */

/* n, or an eighth of n if most_items leaves out all but small cases. */
int fewer(int n);

/* One line of the test's output. */
void result(bool good, const char *what);
void skipped(const char *what, const char *why);

/* 0 … n-1. */
uint64_t rnd(uint64_t n);
/* Caller frees. The test ends if there is no memory; so does to_device. */
void *need(size_t n_byte);

/* True if code is 0; else prints its error. */
bool device_said(int code, const char *what);
/* A copy of p on the device; p NULL: memory with any contents. Caller frees with
 * slu_device_free. */
void *to_device(const void *p, size_t n_byte);
/* Waits for the kernels before it; false if one of them failed. */
bool from_device(void *p, const void *d, size_t n_byte);

/* A packing as a solver might leave it. */
struct packing {
    size_t n; /* items */
    uint32_t longest;
    uint32_t *len;
    uint64_t *src;
    uint64_t n_pool, n_tok;
    struct slu_place_step *step;
    struct slu_place_interval *interval;
    size_t n_step, n_interval;
    uint32_t *order, *run_item;
    uint64_t *run_dst;
};

/* Caller frees with free_packing. run_item and run_dst have room, and no contents. */
void draw_packing(struct packing *p, size_t n_step, uint32_t longest,
                  uint64_t most_bins);
void free_packing(struct packing *p);
struct slu_place place_of(const struct packing *p);

void test_histogram(void);
void test_sort(void);
void test_place(void);
void test_copy(void);
void test_hash(void);
void test_scan(void);

#endif
